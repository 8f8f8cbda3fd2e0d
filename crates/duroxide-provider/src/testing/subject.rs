//! An engine under random steps, and its observed results.

use std::{borrow::Cow, time::Duration};

use duroxide_core::{Timestamp, WorkItem};

use super::{
    answers::{instance_reads, pages, queries, summaries},
    items,
    told_end::check_told_end,
};
use crate::{
    ClaimToken, DeadLetter, OrchestrationClaim, Round, WorkClaim,
    store::{
        ActivityFetch, Answer, Batch, DeadLetterNote, Done, Fault, HeldBack, InstanceFetch, MessageRow, Op,
        PreparedRound, Refusal, StoreEngine, StoreFailure, StoreReader, StoreSnapshot, Submitted,
        WaitingFetch, bounds::CLAIM_MESSAGES_MAX,
    },
};

/// One step. Locks are named by the position of their claim among all claims of the run, because tokens differ
/// between engines.
#[derive(Debug, Clone)]
pub enum Step {
    /// Time passes.
    Pass(Duration),
    /// The clock is set forward, and the store notices.
    SetForward(Duration),
    /// An operation without a lock.
    Apply(Op),
    /// A client sends more messages to an instance than one claim takes.
    Flood {
        /// The id of the instance.
        instance: String,
    },
    /// A claim of instances.
    ClaimInstances(InstanceFetch),
    /// A claim of activities.
    ClaimActivities(ActivityFetch),
    /// A commit, submitted a while ago.
    Commit {
        /// The number of the claim, which each engine maps to its own token.
        claim: usize,
        /// The round.
        round: Box<Round>,
        /// How long ago.
        handed_in_ago: Duration,
    },
    /// An abandoned instance.
    AbandonInstance {
        /// The number of the claim, which each engine maps to its own token.
        claim: usize,
        /// How long it stays hidden.
        delay: Option<Duration>,
        /// Whether the attempt is taken back.
        ignore_attempt: bool,
    },
    /// A renewed instance.
    RenewInstance {
        /// The number of the claim, which each engine maps to its own token.
        claim: usize,
    },
    /// An acked activity.
    Ack {
        /// The claim.
        work: usize,
        /// Its completion.
        completion: Box<WorkItem>,
    },
    /// An acked activity, and the turn of the instance that is claimed with it, which may run early.
    AckAndTurn {
        /// The claim.
        work: usize,
        /// Its completion.
        completion: Box<WorkItem>,
    },
    /// An abandoned activity.
    AbandonActivity {
        /// The claim.
        work: usize,
        /// How long it stays hidden.
        delay: Option<Duration>,
        /// Whether the attempt is taken back.
        ignore_attempt: bool,
    },
    /// A renewed activity.
    RenewActivity {
        /// The claim.
        work: usize,
    },
    /// A node ends, because of an instance that it had claimed.
    EndNodeByInstance {
        /// The node's name.
        name: String,
        /// The number of the claim, which each engine maps to its own token.
        claim: usize,
    },
    /// A node ends, because of an activity that it had claimed.
    EndNodeByActivity {
        /// The node's name.
        name: String,
        /// The claim.
        work: usize,
    },
}

/// The result of a step, without the parts that may differ between engines.
#[derive(Debug, Default)]
pub struct Observation {
    /// Claimed instances; tokens and incarnations are blank here and in activities.
    pub instances: Vec<OrchestrationClaim>,
    /// Claimed activities; tokens are blank.
    pub activities: Vec<WorkClaim>,
    /// Rows that became dead letters.
    pub buried: Vec<DeadLetterNote>,
    /// The items that a claim skipped.
    pub held_back: HeldBack,
    /// The answer to an operation, or why it was refused.
    pub answer: Option<Result<String, String>>,
    /// The dead letters after the step.
    pub dead_letters: Vec<DeadLetter>,
}

impl Observation {
    /// As text, to compare engines by.
    pub fn text(&self) -> String {
        format!("{self:#?}")
    }
}

/// An engine under random steps.
#[expect(missing_debug_implementations, reason = "an engine need not show itself")]
pub struct Subject {
    pub(super) engine: Box<dyn StoreEngine>,
    pub(super) now: Timestamp,
    nonce: u128,
    /// How many steps were taken. Engines may need different numbers of transactions for one.
    steps: usize,
    instance_tokens: Vec<String>,
    activity_tokens: Vec<String>,
}

const LEASE: Duration = Duration::from_secs(10);

impl Subject {
    /// A fresh, empty engine with default options.
    pub fn new(engine: impl StoreEngine) -> Self {
        Self {
            engine: Box::new(engine),
            now: Timestamp::from_millis(1_000_000),
            nonce: 0,
            steps: 0,
            instance_tokens: Vec::new(),
            activity_tokens: Vec::new(),
        }
    }

    /// Takes a step. Due rows are promoted before it and after it.
    ///
    /// # Errors
    /// If the store fails.
    pub fn take(&mut self, step: &Step) -> Result<Observation, StoreFailure> {
        self.steps += 1;
        let mut batch = Batch { promote: true, ..Batch::default() };
        match step {
            Step::Pass(time) => self.now = self.now.saturating_add(*time),
            Step::SetForward(time) => {
                self.now = self.now.saturating_add(*time);
                batch.clock_set_forward = Some(*time);
            }
            _ => {}
        }
        let mut seen = Observation { buried: self.transact(batch)?.dead_letters, ..Observation::default() };
        match step {
            Step::Pass(_) | Step::SetForward(_) => {}
            Step::ClaimInstances(fetch) => self.claim_instances(fetch, &mut seen)?,
            Step::ClaimActivities(fetch) => self.claim_activities(fetch, &mut seen)?,
            Step::Flood { instance } => self.flood(instance)?,
            Step::AckAndTurn { completion, .. } => {
                seen.answer = Some(self.ack_and_turn(step, completion)?);
            }
            _ => {
                let (op, handed_in) = self.operation(step);
                seen.answer = Some(self.apply(&op, handed_in)?);
                let promoted = self.transact(Batch { promote: true, ..Batch::default() })?;
                seen.buried.extend(promoted.dead_letters);
            }
        }
        seen.dead_letters = self.engine.dead_letters(None)?;
        Ok(seen)
    }

    /// Carries out a batch at the current time.
    pub(super) fn transact(&mut self, batch: Batch<'_>) -> Result<Done, StoreFailure> {
        self.nonce += 1;
        let batch = Batch { now: self.now, nonce: self.nonce, ..batch };
        self.engine.transact(&batch).map_err(Fault::into_failure)
    }

    /// Carries out one operation.
    pub(super) fn answer(
        &mut self,
        op: &Op,
        handed_in: Timestamp,
    ) -> Result<Result<Answer, Refusal>, StoreFailure> {
        let waited = self.now.saturating_since(handed_in);
        let operations = vec![Submitted { op: Cow::Borrowed(op), waited }];
        let mut done = self.transact(Batch { operations, ..Batch::default() })?;
        Ok(done.answers.pop().expect("every operation is answered"))
    }

    fn flood(&mut self, instance: &str) -> Result<(), StoreFailure> {
        let mut messages: Vec<Op> = (0..CLAIM_MESSAGES_MAX + 5)
            .map(|number| match number % 3 {
                0 => items::queue(instance, &number.to_string()),
                _ => items::raise(instance, &number.to_string()),
            })
            .map(|item| Op::EnqueueMessage(MessageRow::new(item, None).unwrap()))
            .collect();
        // The item comes last and is taken all the same.
        messages.push(Op::EnqueueMessage(MessageRow::new(items::start(instance), None).unwrap()));
        let operations = messages.iter().map(Submitted::now).collect();
        let done = self.transact(Batch { operations, ..Batch::default() })?;
        done.answers.into_iter().for_each(|answer| drop(answer.unwrap()));
        Ok(())
    }

    fn apply(&mut self, op: &Op, handed_in: Timestamp) -> Result<Result<String, String>, StoreFailure> {
        match self.answer(op, handed_in)? {
            Ok(answer) => {
                check_told_end(&mut *self.engine, op, &answer);
                let mut answer = self.finish(op, answer, handed_in)?;
                // Engines may report an end without a read or leave it to a read.
                if let Answer::RoundCommitted { ended, .. } = &mut answer {
                    *ended = None;
                }
                Ok(Ok(format!("{answer:?}")))
            }
            Err(refusal) => Ok(Err(refusal.to_string())),
        }
    }

    fn claim_instances(&mut self, fetch: &InstanceFetch, seen: &mut Observation) -> Result<(), StoreFailure> {
        let fetches = vec![WaitingFetch::new(fetch)];
        let done = self.transact(Batch { instance_fetches: fetches, ..Batch::default() })?;
        let claimed = done.instances.into_iter().flatten().next().unwrap_or_default();
        seen.buried.extend(claimed.dead_letters);
        seen.held_back = claimed.held_back;
        for mut claim in claimed.items {
            self.instance_tokens.push(std::mem::take(&mut claim.lock_token));
            if let Some(position) = &mut claim.position {
                position.incarnation = 0;
            }
            seen.instances.push(claim);
        }
        Ok(())
    }

    fn claim_activities(
        &mut self,
        fetch: &ActivityFetch,
        seen: &mut Observation,
    ) -> Result<(), StoreFailure> {
        let fetches = vec![WaitingFetch::new(fetch)];
        let done = self.transact(Batch { activity_fetches: fetches, ..Batch::default() })?;
        let claimed = done.activities.into_iter().flatten().next().unwrap_or_default();
        seen.buried.extend(claimed.dead_letters);
        seen.held_back = claimed.held_back;
        for mut claim in claimed.items {
            self.activity_tokens.push(std::mem::take(&mut claim.lock_token));
            claim.incarnation = None;
            seen.activities.push(claim);
        }
        Ok(())
    }

    /// The operation of a step, with this engine's tokens, and when it was submitted.
    pub(super) fn operation(&self, step: &Step) -> (Op, Timestamp) {
        let instance = |claim: &usize| self.instance_tokens[*claim].clone();
        let activity = |work: &usize| self.activity_tokens[*work].clone();
        let op = match step {
            Step::Apply(op) => op.clone(),
            Step::Commit { claim, round, handed_in_ago } => {
                let round = PreparedRound::new(&instance(claim), round).unwrap();
                return (Op::CommitRound(Box::new(round)), self.now.saturating_sub(*handed_in_ago));
            }
            Step::AbandonInstance { claim, delay, ignore_attempt } => {
                Op::AbandonInstance { token: instance(claim), delay: *delay, ignore_attempt: *ignore_attempt }
            }
            Step::RenewInstance { claim } => Op::RenewInstance { token: instance(claim), extend_for: LEASE },
            Step::Ack { work, completion } | Step::AckAndTurn { work, completion } => {
                let completion = MessageRow::completion(completion.clone()).unwrap();
                Op::AckActivity { token: activity(work), completion: Some(completion) }
            }
            Step::AbandonActivity { work, delay, ignore_attempt } => {
                Op::AbandonActivity { token: activity(work), delay: *delay, ignore_attempt: *ignore_attempt }
            }
            Step::RenewActivity { work } => Op::RenewActivity { token: activity(work), extend_for: LEASE },
            Step::EndNodeByInstance { name, claim } => {
                Op::EndNode { name: name.clone(), blamed: Some(ClaimToken::Instance(instance(claim))) }
            }
            Step::EndNodeByActivity { name, work } => {
                Op::EndNode { name: name.clone(), blamed: Some(ClaimToken::Activity(activity(work))) }
            }
            Step::Pass(_)
            | Step::SetForward(_)
            | Step::ClaimInstances(_)
            | Step::ClaimActivities(_)
            | Step::Flood { .. } => panic!("{step:?} is no operation"),
        };
        (op, self.now)
    }

    /// Everything in the store.
    ///
    /// # Errors
    /// If the store fails.
    pub fn snapshot(&mut self) -> Result<StoreSnapshot, StoreFailure> {
        self.engine.snapshot()
    }

    /// Everything in the store, with blank tokens.
    ///
    /// # Errors
    /// If the store fails.
    pub fn comparable_snapshot(&mut self) -> Result<StoreSnapshot, StoreFailure> {
        let mut snapshot = self.engine.snapshot()?;
        for row in &mut snapshot.instances {
            row.lock.iter_mut().for_each(|lock| lock.token.clear());
            row.activities.iter_mut().filter_map(|row| row.lock.as_mut()).for_each(|lock| lock.token.clear());
        }
        Ok(snapshot)
    }

    /// The answers of all reads as text, to compare engines.
    ///
    /// # Errors
    /// If the store fails.
    pub fn reads(&mut self) -> Result<String, StoreFailure> {
        let reader: &mut dyn StoreReader = self.engine.as_mut();
        let ids = reader.instances(None)?;
        let mut seen = format!(
            "{ids:?}\n{:?}\n{:?}\n{:?}\n{:?}\n",
            reader.instances(Some("Running"))?,
            reader.running_versions()?,
            reader.system_metrics()?,
            reader.queue_depths()?,
        );
        seen += &format!("{:?}\n", reader.pending_instances()?);
        seen += &format!("{:?}\n", reader.nodes()?);
        seen += &format!("{:?}\n", reader.ready_instances(&|needs| needs.pinned.is_none(), 3)?);
        seen += &format!("{:?}\n", reader.ready_instances(&|_| true, 9)?);
        seen += &format!("{:?}\n", reader.ready_activities(&|_, tag| tag.is_none(), 3)?);
        seen += &summaries(reader, self.now)?;
        // Every step is followed by reads; with two queries each time all of them are soon covered.
        let turn = self.steps % 64;
        for query in queries(self.now).iter().cycle().skip(2 * turn).take(2) {
            seen += &format!("{query:?}: {:?}\n", pages(reader, query)?);
        }
        for id in ["i1", "i2", "i3"] {
            let holds = [1, 2, 4, 8].map(|at_least| reader.mailbox_holds(id, at_least));
            seen += &format!("{id} {holds:?} {:?}\n", reader.status_or_pending(id)?);
        }
        let id = ["i1", "i2", "i3"][self.steps % 3];
        seen += &format!("{:?}\n", reader.queued_work(id, self.now)?);
        for id in &ids {
            seen += &instance_reads(reader, id)?;
        }
        Ok(seen)
    }
}
