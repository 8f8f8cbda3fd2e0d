//! Random steps: a correct runtime, impatient clients and a careless operator.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use duroxide_core::WorkItem;

use super::{
    Turn,
    dice::Dice,
    items::{self, NONSENSE},
    scenario::{batch_fetch, work_fetch},
    script::{Model, Script, first_turn, started},
    subject::{Observation, Step},
};
use crate::{
    DeadLetter, HandlerCapability, InstanceFilter, NodeId, OrchestrationClaim, PruneOptions,
    SessionFetchConfig, TagFilter, VersionRange, VersionTriple,
    store::{ActivityFetch, InstanceFetch, MessageKind, MessageRow, NodeRow, Op},
};

/// How seldom a client sends very many messages: each later step reads all of them.
const FLOOD_ONE_IN: u64 = 300;

/// Makes steps out of numbers. The same numbers and the same observations make the same steps, so a failed run can
/// be repeated and cut short.
///
/// The driver keeps a small model of every instance, and commits only rounds that a correct runtime would: so the
/// invariants must hold.
#[derive(Debug, Default)]
pub struct Driver {
    instances: BTreeMap<String, Model>,
    claims: Vec<OrchestrationClaim>,
    works: Vec<WorkItem>,
    /// Claims that are not yet committed or abandoned.
    held_claims: Vec<usize>,
    /// Activities that are not yet acked or abandoned.
    held_works: Vec<usize>,
    dead_letters: Vec<DeadLetter>,
    /// The last number of each node that ever joined.
    joined: BTreeMap<String, NodeId>,
    /// The node that is joining.
    joining: Option<String>,
    /// Messages of a client that ignores the backoff.
    to_send: Vec<WorkItem>,
    /// The current commit, and the model of the instance if it succeeds.
    pending: Option<(String, Model)>,
}

impl Driver {
    /// The next step.
    pub fn step(&mut self, number: u64) -> Step {
        let mut dice = Dice(number);
        if let Some(item) = self.to_send.pop() {
            return Step::Apply(Op::EnqueueMessage(MessageRow::new(item, None).unwrap()));
        }
        match dice.roll(20) {
            0..=3 => self.send(&mut dice),
            4..=7 => Step::ClaimInstances(instance_fetch(&mut dice)),
            8..=9 => Step::ClaimActivities(activity_fetch(&mut dice)),
            10..=13 => self.use_claim(&mut dice),
            14..=16 => self.use_work(&mut dice),
            17 if dice.one_in(4) => Step::SetForward(pass(&mut dice)),
            17 => Step::Pass(pass(&mut dice)),
            18 if dice.one_in(2) => self.nodes(&mut dice),
            18 => sessions(&mut dice),
            _ => self.operate(&mut dice),
        }
    }

    /// Updates the models with the result of the last step.
    pub fn learn(&mut self, seen: &Observation) {
        self.held_claims.extend(self.claims.len()..self.claims.len() + seen.instances.len());
        self.claims.extend(seen.instances.iter().cloned());
        self.held_works.extend(self.works.len()..self.works.len() + seen.activities.len());
        self.works.extend(seen.activities.iter().map(|work| work.item.clone()));
        self.dead_letters.clone_from(&seen.dead_letters);
        if let (Some(name), Some(Ok(answer))) = (self.joining.take(), &seen.answer) {
            let number = answer.trim_start_matches("Joined(NodeId(").trim_end_matches("))");
            self.joined.insert(name, NodeId(number.parse().unwrap()));
        }
        if let Some((id, model)) = self.pending.take()
            && seen.answer.as_ref().is_some_and(Result::is_ok)
        {
            self.instances.insert(id, model);
        }
    }

    fn nodes(&mut self, dice: &mut Dice) -> Step {
        let name = node_name(dice);
        let (session_owners, capability) = (vec!["w1".to_owned()], "{}".to_owned());
        let row = NodeRow { name: name.clone(), session_owners, capability };
        match (dice.roll(7), dice.pick(&self.held_claims), dice.pick(&self.held_works)) {
            (0..=1, _, _) => {
                self.joining = Some(name);
                Step::Apply(Op::JoinNode(row))
            }
            (2, _, _) => {
                let node = self.joined.get(&name).map(|node| (*node, row));
                Step::Apply(Op::RenewNodes { nodes: node.into_iter().collect() })
            }
            (3, Some(claim), _) => Step::EndNodeByInstance { name, claim: *claim },
            (4, _, Some(work)) => Step::EndNodeByActivity { name, work: *work },
            _ => Step::Apply(Op::EndNode { name, blamed: None }),
        }
    }

    fn send(&self, dice: &mut Dice) -> Step {
        let id = dice.instance();
        if dice.one_in(FLOOD_ONE_IN) {
            return Step::Flood { instance: id };
        }
        let number = dice.roll(1_000).to_string();
        let kinds = [MessageKind::Other, MessageKind::Start, MessageKind::Queue];
        let item = match dice.roll(12) {
            0..=3 => items::start(&id),
            4..=5 => items::raise(&id, &number),
            6..=7 => items::queue(&id, &number),
            8 => items::cancel(&id),
            // Of an execution that never existed: a store does not check it.
            9 => items::completed(&id, 900 + dice.roll(3)),
            10 => {
                let kind = *dice.pick(&kinds).unwrap();
                return Step::Apply(Op::EnqueueMessage(items::undecodable_message(&id, kind)));
            }
            _ => {
                let row = items::undecodable_activity("nobody", dice.roll(3));
                return Step::Apply(Op::EnqueueActivity(row));
            }
        };
        let delay = dice.delay().filter(|_| dice.one_in(4));
        Step::Apply(Op::EnqueueMessage(MessageRow::new(item, delay).unwrap()))
    }

    /// Commits, abandons or renews a claim, which may be lost.
    fn use_claim(&mut self, dice: &mut Dice) -> Step {
        let Some(claim) = lock(dice, &mut self.held_claims, self.claims.len()) else {
            return Step::ClaimInstances(instance_fetch(dice));
        };
        match dice.roll(10) {
            0 => {
                self.held_claims.push(claim);
                Step::RenewInstance { claim }
            }
            1..=2 => self.abandon(claim, dice),
            _ => self.commit(claim, dice),
        }
    }

    fn abandon(&mut self, claim: usize, dice: &mut Dice) -> Step {
        let OrchestrationClaim { instance, messages, .. } = &self.claims[claim];
        let queue = messages.iter().any(|item| matches!(item, WorkItem::QueueMessage { .. }));
        if queue && dice.one_in(2) {
            self.to_send = vec![items::raise(instance, "later"), items::queue(instance, "later")];
        }
        Step::AbandonInstance { claim, delay: dice.delay(), ignore_attempt: dice.one_in(2) }
    }

    fn commit(&mut self, claim: usize, dice: &mut Dice) -> Step {
        let claimed = self.claims[claim].clone();
        let Some((turn, model)) = self.turn(&claimed, dice) else {
            return Step::AbandonInstance { claim, delay: dice.delay(), ignore_attempt: false };
        };
        self.pending = Some((claimed.instance, model));
        let handed_in_ago = Duration::from_secs(dice.roll(3) * 4);
        Step::Commit { claim, round: Box::new(turn.round()), handed_in_ago }
    }

    /// The turn of a correct runtime; `None` if it would abandon the batch.
    fn turn(&self, claim: &OrchestrationClaim, dice: &mut Dice) -> Option<(Turn, Model)> {
        let last_event_id = claim.position.map_or(0, |position| position.last_event_id);
        let known = self.instances.get(&claim.instance).filter(|_| last_event_id > 0);
        let successor = claim.messages.iter().any(|item| matches!(item, WorkItem::ContinueAsNew { .. }));
        let (turn, model) = match known {
            None => first_turn(claim),
            Some(model) if model.ended => return Some((Turn::later(claim), model.clone())),
            Some(model) if model.awaits_successor && !successor => return None,
            Some(model) if model.awaits_successor => {
                let execution_id = model.execution_id + 1;
                let parent = model.parent.clone();
                let model = Model { execution_id, parent, ..Model::default() };
                (started(&claim.instance, &model), model)
            }
            Some(model) => (Turn::later(claim), model.clone()),
        };
        let mut script = Script { turn, model, instance: claim.instance.clone() };
        script.deliver(&claim.messages);
        script.act(dice);
        Some((script.turn, script.model))
    }

    /// Acks, abandons or renews an activity, which may be lost.
    fn use_work(&mut self, dice: &mut Dice) -> Step {
        let Some(work) = lock(dice, &mut self.held_works, self.works.len()) else {
            return Step::ClaimActivities(activity_fetch(dice));
        };
        match (&self.works[work], dice.roll(6)) {
            (_, 0) => {
                self.held_works.push(work);
                Step::RenewActivity { work }
            }
            (WorkItem::ActivityExecute { instance, execution_id, id, .. }, 1..=4) => {
                let mut completion = items::completed(instance, *id);
                if let WorkItem::ActivityCompleted { execution_id: of, .. } = &mut completion {
                    *of = *execution_id;
                }
                let completion = Box::new(completion);
                if dice.one_in(2)
                    && let Some(model) = self.after_completion(instance, *execution_id, *id)
                {
                    self.pending = Some((instance.clone(), model));
                    return Step::AckAndTurn { work, completion };
                }
                Step::Ack { work, completion }
            }
            _ => Step::AbandonActivity { work, delay: dice.delay(), ignore_attempt: dice.one_in(2) },
        }
    }

    /// An instance that waits for an activity, after a turn that records its completion.
    fn after_completion(&self, instance: &str, execution_id: u64, id: u64) -> Option<Model> {
        let mut model = self.instances.get(instance)?.clone();
        let waits = model.execution_id == execution_id && !model.ended && !model.awaits_successor;
        (waits && model.activities.remove(&id)).then_some(model)
    }

    fn operate(&self, dice: &mut Dice) -> Step {
        let instance = dice.instance();
        let now = 1_000_000 + dice.roll(200_000);
        let before = Some(now).filter(|_| dice.one_in(2));
        let filter = InstanceFilter {
            instance_ids: Some(vec![instance.clone(), "i1".to_owned()]).filter(|_| dice.one_in(2)),
            completed_before: before,
            limit: Some(2).filter(|_| dice.one_in(3)),
        };
        let keep_last = [None, Some(0), Some(2)][usize::try_from(dice.roll(3)).unwrap()];
        let options = PruneOptions { keep_last, completed_before: before };
        Step::Apply(match dice.roll(10) {
            9 => Op::StartIfNew(MessageRow::start(items::start(&instance)).unwrap()),
            0 => Op::DeleteTree { instance, force: dice.one_in(3) },
            1 => Op::DeleteInstances { ids: vec![instance, "nobody".to_owned()], force: dice.one_in(3) },
            2 => Op::DeleteBulk(filter),
            3 => Op::Prune { instance, options },
            4 => Op::PruneBulk { filter, options },
            5 => Op::SetMaxAttempts(u32::try_from(dice.roll(4)).unwrap()),
            _ => return self.use_dead_letter(dice),
        })
    }

    /// Retries decodable dead letters, and discards the others.
    fn use_dead_letter(&self, dice: &mut Dice) -> Step {
        match dice.pick(&self.dead_letters) {
            Some(letter) if letter.payload == NONSENSE && dice.one_in(2) => {
                Step::Apply(Op::DiscardDeadLetter { id: letter.id.clone() })
            }
            Some(letter) => Step::Apply(Op::RetryDeadLetter { id: letter.id.clone() }),
            None => Step::Apply(Op::RetryDeadLetter { id: "77".to_owned() }),
        }
    }
}

/// Mostly a lock that is held, which is then used up; sometimes any that ever was.
fn lock(dice: &mut Dice, held: &mut Vec<usize>, all: usize) -> Option<usize> {
    if dice.one_in(6) && all > 0 {
        return usize::try_from(dice.roll(all as u64)).ok();
    }
    let held_for = usize::try_from(dice.roll(3)).unwrap().min(held.len().saturating_sub(1));
    (!held.is_empty()).then(|| held.remove(held_for))
}

fn pass(dice: &mut Dice) -> Duration {
    let times = [1, 1, 150, 150, 150, 1_000, 1_000, 1_000, 3_000, 3_000, 10_000, 61_000];
    Duration::from_millis(*dice.pick(&times).unwrap())
}

fn instance_fetch(dice: &mut Dice) -> InstanceFetch {
    let triple = |major| VersionTriple { major, minor: 0, patch: 0 };
    let major = dice.roll(3);
    let versions = match dice.roll(6) {
        0 => Some(vec![VersionRange { min: triple(major), max: triple(major) }]),
        1 => Some(vec![VersionRange { min: triple(0), max: triple(9) }]),
        2 if dice.one_in(4) => Some(Vec::new()),
        _ => None,
    };
    let max = usize::try_from(1 + dice.roll(3)).unwrap();
    let free_slots = max.saturating_sub(usize::try_from(dice.roll(3)).unwrap());
    let whole_mailbox = dice.one_in(2);
    let handlers = dice.one_in(5).then(|| some_handlers(dice));
    let only = dice.one_in(12).then(|| dice.instance());
    InstanceFetch {
        versions,
        handlers,
        free_slots,
        whole_mailbox,
        node: node(dice),
        only,
        ..batch_fetch(max)
    }
}

fn activity_fetch(dice: &mut Dice) -> ActivityFetch {
    let owner = ["w1", "w2"][usize::try_from(dice.roll(2)).unwrap()];
    let session = SessionFetchConfig {
        owner_id: owner.to_owned(),
        lock_timeout: Duration::from_secs(2 + dice.roll(9)),
    };
    let tag_filter = match dice.roll(5) {
        0 => TagFilter::default_only(),
        1 => TagFilter::tags(["gpu"]),
        2 => TagFilter::default_and(["cpu"]),
        _ => TagFilter::any(),
    };
    let max = usize::try_from(1 + dice.roll(3)).unwrap();
    let free_slots = max.saturating_sub(usize::try_from(dice.roll(3)).unwrap());
    let session = Some(session).filter(|_| !dice.one_in(3));
    let handlers = dice.one_in(5).then(|| some_handlers(dice));
    ActivityFetch { session, tag_filter, free_slots, handlers, node: node(dice), ..work_fetch(max) }
}

/// A node that has some handlers, or all.
fn some_handlers(dice: &mut Dice) -> HandlerCapability {
    let mut handlers = HandlerCapability::default();
    if dice.one_in(2) {
        handlers.supported_orchestrations = Some(BTreeMap::new());
        handlers.supported_activities = Some(BTreeSet::new());
    }
    handlers
}

/// One of the first nodes to join, which may have joined, have ended or join later; or none.
fn node(dice: &mut Dice) -> Option<NodeId> {
    dice.one_in(2).then(|| NodeId(1 + dice.roll(4)))
}

fn node_name(dice: &mut Dice) -> String {
    ["n1", "n2", "n3"][usize::try_from(dice.roll(3)).unwrap()].to_owned()
}

fn sessions(dice: &mut Dice) -> Step {
    let idle_timeout = Duration::from_secs(1 + dice.roll(8));
    Step::Apply(if dice.one_in(2) {
        let owners = vec![["w1", "w2"][usize::try_from(dice.roll(2)).unwrap()].to_owned()];
        Op::RenewSessions { owners, extend_for: Duration::from_secs(5), idle_timeout }
    } else {
        Op::CleanupSessions
    })
}
