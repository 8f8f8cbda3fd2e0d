//! The life of a few instances, transaction by transaction.
//!
//! It runs once on a sound store, which gives a transcript: every step with its time and its tokens, and the whole
//! content of the store after it. The rest of the transcript after any step can be played on a store with the content after that step.
//! Row numbers may differ then, because a store that was opened anew does not know which large texts it has, and so may
//! the tokens of claims; the steps use those that the store gives.

use std::{collections::BTreeMap, time::Duration};

use duroxide_core::{EventKind, Timestamp, WorkItem};
use duroxide_provider::{
    OrchestrationClaim, WorkClaim,
    store::{
        ActivityFetch, ApplyError, InstanceFetch, MessageRow, Op, PreparedRound, StoreFailure, StoreReader,
        StoreSnapshot, TransactionSteps,
    },
    testing::{
        Turn,
        items::{queue, raise, start},
        scenario::{batch_fetch, work_fetch},
    },
};
use duroxide_sqlite::{SqliteEngine, SqliteOptions};
use fault_vfs::Disk;

pub(crate) const FILE: &str = "store.db";
const BEGIN: Timestamp = Timestamp::from_millis(1_000_000);
/// Longer than a page, so that it needs several.
const LONG_TEXT_BYTES: usize = 9_000;

/// One step: a transaction, or a checkpoint between two.
#[derive(Debug, Clone)]
enum Step {
    Apply(Vec<Op>),
    ClaimInstances(InstanceFetch),
    ClaimActivities(ActivityFetch),
    Checkpoint,
}

impl Step {
    /// The same step with the tokens that a store has given instead of the recorded ones.
    fn with_tokens(&self, tokens: &BTreeMap<String, String>) -> Self {
        let given =
            |token: &mut String| tokens.get(token).into_iter().for_each(|given| token.clone_from(given));
        let mut step = self.clone();
        if let Self::Apply(ops) = &mut step {
            ops.iter_mut().for_each(|op| match op {
                Op::CommitRound(round) => given(&mut round.token),
                Op::AckActivity { token, .. } => given(token),
                _ => {}
            });
        }
        step
    }
}

/// All steps of a story, and the content of the store before, between and after them.
pub(crate) struct Transcript {
    /// Each with its time, and with the token of its claim.
    steps: Vec<(Step, Timestamp, Option<String>)>,
    /// One more than there are steps.
    states: Vec<StoreSnapshot>,
}

impl Transcript {
    /// Tells the story on a sound disk.
    pub(crate) fn record() -> Self {
        let disk = Disk::new();
        let mut narrator = Narrator::new(open(&disk, SqliteOptions::default()));
        tell(&mut narrator);
        narrator.transcript
    }

    pub(crate) fn len(&self) -> usize {
        self.steps.len()
    }

    /// Plays the steps from `from` on, until the store fails. Returns how many of all steps have then been done.
    pub(crate) fn play(&self, engine: &mut SqliteEngine, from: usize) -> usize {
        let rest = self.steps.iter().enumerate().skip(from);
        let (mut done, mut tokens) = (from, BTreeMap::new());
        for (number, (step, now, recorded)) in rest {
            let Ok(given) = take(engine, number, &step.with_tokens(&tokens), *now) else {
                engine.steps().rollback();
                break;
            };
            tokens.extend(recorded.clone().zip(given.token()));
            done += 1;
        }
        done
    }

    /// How many steps led to this state, if it is a state between two steps at all; at most `at_most`.
    pub(crate) fn steps_before(&self, state: &StoreSnapshot, at_most: usize) -> Option<usize> {
        let last = at_most.min(self.len());
        (0..=last).rev().find(|steps| same(&self.states[*steps], state))
    }

    pub(crate) fn is_end(&self, state: &StoreSnapshot) -> bool {
        same(&self.states[self.len()], state)
    }
}

/// A store that was just opened does not know the time yet.
fn same(one: &StoreSnapshot, other: &StoreSnapshot) -> bool {
    one.instances == other.instances && one.dead_letters == other.dead_letters
}

/// Opens the store of a disk.
pub(crate) fn open(disk: &Disk, options: SqliteOptions) -> SqliteEngine {
    SqliteEngine::open(&disk.url(FILE), options).unwrap()
}

/// Everything that is in a store.
pub(crate) fn content(engine: &mut SqliteEngine) -> StoreSnapshot {
    engine.snapshot().unwrap()
}

/// The result of a step.
#[derive(Default)]
struct Given {
    instances: Vec<OrchestrationClaim>,
    activities: Vec<WorkClaim>,
}

impl Given {
    fn token(&self) -> Option<String> {
        let instances = self.instances.iter().map(|claim| &claim.lock_token);
        instances.chain(self.activities.iter().map(|claim| &claim.lock_token)).next().cloned()
    }
}

fn take(
    engine: &mut SqliteEngine,
    number: usize,
    step: &Step,
    now: Timestamp,
) -> Result<Given, StoreFailure> {
    let nonce = u128::try_from(number).unwrap() + 1;
    if matches!(step, Step::Checkpoint) {
        return engine.checkpoint().map(|()| Given::default());
    }
    engine.steps().begin(now)?;
    engine.steps().promote()?;
    let mut given = Given::default();
    match step {
        Step::Apply(ops) => ops.iter().try_for_each(|op| apply(engine, op, now))?,
        Step::ClaimInstances(fetch) => given.instances = engine.steps().claim_instances(fetch, nonce)?.items,
        Step::ClaimActivities(fetch) => {
            given.activities = engine.steps().claim_activities(fetch, nonce)?.items;
        }
        Step::Checkpoint => {}
    }
    engine.steps().commit()?;
    Ok(given)
}

fn apply(engine: &mut SqliteEngine, op: &Op, now: Timestamp) -> Result<(), StoreFailure> {
    match engine.steps().apply(op, now) {
        Ok(_) => Ok(()),
        Err(ApplyError::Broken(failure)) => Err(failure),
        Err(ApplyError::Refused(refusal)) => panic!("the store stands elsewhere: {refusal}, {op:?}"),
    }
}

/// Takes steps and writes them down.
struct Narrator {
    engine: SqliteEngine,
    now: Timestamp,
    transcript: Transcript,
}

impl Narrator {
    fn new(mut engine: SqliteEngine) -> Self {
        let transcript = Transcript { steps: Vec::new(), states: vec![content(&mut engine)] };
        Self { engine, now: BEGIN, transcript }
    }

    fn take(&mut self, step: Step) -> Given {
        self.now = self.now.saturating_add(Duration::from_millis(1));
        let number = self.transcript.len();
        let given = take(&mut self.engine, number, &step, self.now).unwrap();
        self.transcript.steps.push((step, self.now, given.token()));
        self.transcript.states.push(content(&mut self.engine));
        given
    }

    fn send(&mut self, items: &[WorkItem]) {
        let op = |item: &WorkItem| Op::EnqueueMessage(MessageRow::new(item.clone(), None).unwrap());
        self.take(Step::Apply(items.iter().map(op).collect()));
    }

    fn claim(&mut self, instance: &str) -> OrchestrationClaim {
        let fetch = InstanceFetch { whole_mailbox: true, ..batch_fetch(1) };
        let claim = self.take(Step::ClaimInstances(fetch)).instances.pop().unwrap();
        assert_eq!(claim.instance, instance);
        claim
    }

    fn commit(&mut self, claim: &OrchestrationClaim, turn: Turn) {
        let round = PreparedRound::new(&claim.lock_token, &turn.round()).unwrap();
        self.take(Step::Apply(vec![Op::CommitRound(Box::new(round))]));
    }

    /// Runs the next activity.
    fn work(&mut self) {
        let work = self.take(Step::ClaimActivities(work_fetch(1))).activities.pop().unwrap();
        let completion = Some(MessageRow::completion(completion_of(&work.item)).unwrap());
        self.take(Step::Apply(vec![Op::AckActivity { token: work.lock_token, completion }]));
    }

    fn checkpoint(&mut self) {
        self.take(Step::Checkpoint);
    }
}

pub(crate) fn completion_of(activity: &WorkItem) -> WorkItem {
    let WorkItem::ActivityExecute { instance, execution_id, id, .. } = activity else {
        panic!("no activity: {activity:?}")
    };
    let (instance, execution_id, id) = (instance.clone(), *execution_id, *id);
    WorkItem::ActivityCompleted { instance, execution_id, id, result: "ok".to_owned() }
}

/// Starts, rounds with all kinds of work, acks, an enqueue to a running instance, a child and its parent, a cancelled
/// timer, key-value state, continue-as-new, ends; and checkpoints, so that the log begins anew in between.
fn tell(store: &mut Narrator) {
    store.send(&[start("order")]);
    let claim = store.claim("order");
    let turn = Turn::first("order").activity().timer(9_000_000).set("step", "1").status(Some("paying"));
    store.commit(&claim, turn.child("child"));
    let claim = store.claim("child");
    let turn = Turn::first_of_child("child", "order", 1, 6).complete("done");
    store.commit(&claim, turn.send(report_of_child()));
    store.send(&[raise("order", &"x".repeat(LONG_TEXT_BYTES)), start("other")]);
    store.work();
    store.checkpoint();

    let claim = store.claim("order");
    let next = Turn::start_of("order", 2).set("seed", "1").activity();
    let turn = Turn::later(&claim).event(Some(6), child_completed()).event(None, external_event());
    let turn = turn.completed(2).cancel_timer(3).set("step", "2");
    store.commit(&claim, turn.continue_with(next));
    let claim = store.claim("other");
    store.commit(&claim, Turn::first("other").complete("done"));
    let claim = store.claim("order");
    store.commit(&claim, Turn::later(&claim).status(Some("shipping")));
    store.checkpoint();

    store.send(&[queue("order", "last words")]);
    store.work();
    let claim = store.claim("order");
    let turn = Turn::later(&claim).event(None, queue_event()).completed(3);
    store.commit(&claim, turn.complete("done"));
}

fn report_of_child() -> WorkItem {
    WorkItem::SubOrchCompleted {
        parent_instance: "order".to_owned(),
        parent_execution_id: 1,
        parent_id: 6,
        result: "done".to_owned(),
    }
}

fn child_completed() -> EventKind {
    EventKind::SubOrchestrationCompleted { result: "done".to_owned() }
}

fn external_event() -> EventKind {
    EventKind::ExternalEvent { name: "e".to_owned(), data: "x".repeat(LONG_TEXT_BYTES) }
}

fn queue_event() -> EventKind {
    EventKind::QueueEventDelivered { name: "q".to_owned(), data: "last words".to_owned() }
}
