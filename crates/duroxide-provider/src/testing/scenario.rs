//! One engine in virtual time.

use std::{borrow::Cow, time::Duration};

use duroxide_core::{Event, Timestamp, WorkItem};

use super::{Turn, told_end::check_told_end};
use crate::{
    DeadLetter, DeleteInstanceResult, DispatcherCapabilityFilter, OrchestrationClaim, OrchestrationFetch,
    PruneResult, Round, SemverRange, SessionFetchConfig, TagFilter, WorkClaim, WorkFetch, invariant,
    store::{
        ActivityFetch, ActivityRow, Answer, Batch, Claimed, Done, Ended, EventRow, InstanceFetch,
        InstanceSnapshot, MessageRow, Op, PreparedRound, Refusal, StateChange, StoreEngine, StoreReader,
        StoreSnapshot, Submitted, Unfinished, WaitingFetch,
    },
};

/// How long locks last in stories.
pub const LEASE: Duration = Duration::from_secs(10);

/// One engine in virtual time. Every call is one transaction; after each the invariants are checked.
#[expect(missing_debug_implementations, reason = "an engine need not show itself")]
pub struct Scenario {
    engine: Box<dyn StoreEngine>,
    now: Timestamp,
    nonce: u128,
    checked: bool,
}

impl Scenario {
    /// Story time begins at 1,000,000 ms.
    pub const BEGIN_MS: u64 = 1_000_000;

    /// A story about this engine.
    pub fn new(engine: impl StoreEngine) -> Self {
        Self {
            engine: Box::new(engine),
            now: Timestamp::from_millis(Self::BEGIN_MS),
            nonce: 0,
            checked: true,
        }
    }

    /// Allows histories in this story that a runtime would not write.
    #[must_use]
    pub fn without_invariants(mut self) -> Self {
        self.checked = false;
        self
    }

    // ---- time -----------------------------------------------------------------------------------------------

    /// The current time in milliseconds.
    pub fn now_ms(&self) -> u64 {
        self.now.as_millis()
    }

    /// The current time.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Lets time pass.
    pub fn pass(&mut self, time: Duration) {
        self.now = self.now.saturating_add(time);
    }

    /// Sets the clock back.
    pub fn turn_back(&mut self, time: Duration) {
        self.now = Timestamp::from_micros(self.now.as_micros() - u64::try_from(time.as_micros()).unwrap());
    }

    /// Sets the clock back, and the store notices.
    pub fn notice_turn_back(&mut self, time: Duration) {
        self.turn_back(time);
        self.transact(Batch { clock_set_forward: Some(Duration::ZERO), ..Batch::default() });
    }

    /// Sets the clock forward, and the store notices before it does anything else.
    pub fn notice_turn_forward(&mut self, time: Duration) {
        self.pass(time);
        self.notice_again(time);
    }

    /// Another process notices the same step.
    pub fn notice_again(&mut self, time: Duration) {
        self.transact(Batch { clock_set_forward: Some(time), ..Batch::default() });
    }

    /// Promotes due rows.
    pub fn promote(&mut self) {
        self.transact(Batch { promote: true, ..Batch::default() });
    }

    /// Lets the leases of stories end.
    pub fn pass_lease(&mut self) {
        self.pass(LEASE);
    }

    /// When the engine wants to be woken.
    pub fn next_wake(&mut self) -> Option<Timestamp> {
        self.engine.next_wake(self.now).unwrap()
    }

    // ---- operations -----------------------------------------------------------------------------------------

    /// Applies an operation submitted now.
    pub fn apply(&mut self, op: &Op) -> Result<Answer, Refusal> {
        self.apply_handed_in(op, self.now)
    }

    /// Applies an operation submitted earlier.
    pub fn apply_handed_in(&mut self, op: &Op, handed_in: Timestamp) -> Result<Answer, Refusal> {
        let submitted = Submitted { op: Cow::Borrowed(op), waited: self.now.saturating_since(handed_in) };
        let mut done = self.transact(Batch { operations: vec![submitted], ..Batch::default() });
        let answer = done.answers.pop().expect("every operation is answered")?;
        check_told_end(&mut *self.engine, op, &answer);
        Ok(answer)
    }

    /// Queues a message or an activity.
    pub fn send(&mut self, item: &WorkItem) {
        let op = match item {
            WorkItem::ActivityExecute { .. } => Op::EnqueueActivity(ActivityRow::new(item.clone()).unwrap()),
            _ => Op::EnqueueMessage(MessageRow::new(item.clone(), None).unwrap()),
        };
        self.apply(&op).unwrap();
    }

    /// Queues one of very many messages: the invariants are not checked again for each.
    pub fn send_unchecked(&mut self, item: &WorkItem) {
        self.apply_unchecked(&Op::EnqueueMessage(MessageRow::new(item.clone(), None).unwrap()));
    }

    /// Applies one of very many operations: the invariants are not checked again for each.
    pub fn apply_unchecked(&mut self, op: &Op) {
        let checked = std::mem::replace(&mut self.checked, false);
        self.apply(op).unwrap();
        self.checked = checked;
    }

    /// Queues a message that becomes visible later.
    pub fn send_later(&mut self, item: &WorkItem, delay: Duration) {
        self.apply(&Op::EnqueueMessage(MessageRow::new(item.clone(), Some(delay)).unwrap())).unwrap();
    }

    /// Commits a turn under a claim.
    pub fn commit(&mut self, claim: &OrchestrationClaim, turn: Turn) -> Result<(), Refusal> {
        self.commit_round(claim, turn.round())
    }

    /// Commits a turn under a claim. Returns the end that the engine reports, if the turn ended the instance.
    pub fn commit_end(&mut self, claim: &OrchestrationClaim, turn: Turn) -> Option<Ended> {
        let round = PreparedRound::new(&claim.lock_token, &turn.round()).unwrap();
        match self.apply(&Op::CommitRound(Box::new(round))).unwrap() {
            Answer::RoundCommitted { ended, .. } => ended,
            answer => panic!("a round was answered with {answer:?}"),
        }
    }

    /// Commits a round under a claim.
    pub fn commit_round(&mut self, claim: &OrchestrationClaim, round: Round) -> Result<(), Refusal> {
        let round = PreparedRound::new(&claim.lock_token, &round).unwrap();
        self.apply(&Op::CommitRound(Box::new(round))).map(|_| ())
    }

    /// Abandons a claim.
    pub fn abandon(
        &mut self,
        claim: &OrchestrationClaim,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), Refusal> {
        let token = claim.lock_token.clone();
        self.apply(&Op::AbandonInstance { token, delay, ignore_attempt }).map(|_| ())
    }

    /// Renews a claim.
    pub fn renew(&mut self, claim: &OrchestrationClaim) -> Result<(), Refusal> {
        let token = claim.lock_token.clone();
        self.apply(&Op::RenewInstance { token, extend_for: LEASE }).map(|_| ())
    }

    /// Acks an activity.
    pub fn ack(&mut self, work: &WorkClaim, completion: Option<&WorkItem>) -> Result<(), Refusal> {
        let completion = completion.map(|item| MessageRow::completion(item.clone()).unwrap());
        self.apply(&Op::AckActivity { token: work.lock_token.clone(), completion }).map(|_| ())
    }

    /// Abandons an activity.
    pub fn abandon_work(
        &mut self,
        work: &WorkClaim,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), Refusal> {
        let token = work.lock_token.clone();
        self.apply(&Op::AbandonActivity { token, delay, ignore_attempt }).map(|_| ())
    }

    /// Renews an activity.
    pub fn renew_work(&mut self, work: &WorkClaim) -> Result<(), Refusal> {
        let token = work.lock_token.clone();
        self.apply(&Op::RenewActivity { token, extend_for: LEASE }).map(|_| ())
    }

    /// Renews an activity. Returns whether it was asked to stop.
    pub fn renew_work_is_stopped(&mut self, work: &WorkClaim) -> Result<bool, Refusal> {
        let token = work.lock_token.clone();
        match self.apply(&Op::RenewActivity { token, extend_for: LEASE })? {
            Answer::Renewed { stop_requested } => Ok(stop_requested),
            answer => panic!("a renewal was answered with {answer:?}"),
        }
    }

    /// Appends events outside a round.
    pub fn append(&mut self, instance: &str, execution_id: u64, events: &[Event]) -> Result<(), Refusal> {
        let op = Op::Append {
            instance: instance.to_owned(),
            execution_id,
            events: events.iter().map(EventRow::new).collect(),
            changes: StateChange::of(events),
        };
        self.apply(&op).map(|_| ())
    }

    /// Applies an operation that deletes instances, and removes the rows that it leaves.
    pub fn delete(&mut self, op: &Op) -> Result<DeleteInstanceResult, Refusal> {
        let (mut total, mut unfinished) = deleted(self.apply(op)?);
        assert_eq!(unfinished.instances, Vec::<String>::new(), "a story deletes few instances");
        while let Some(task) = unfinished.rows {
            let (step, left) = deleted(self.apply(&Op::RemoveRows { task })?);
            total.executions_deleted += step.executions_deleted;
            total.events_deleted += step.events_deleted;
            total.queue_messages_deleted += step.queue_messages_deleted;
            unfinished = left;
        }
        Ok(total)
    }

    /// Deletes an instance with its tree, running or not.
    pub fn force_delete(&mut self, instance: &str) -> DeleteInstanceResult {
        self.delete(&Op::DeleteTree { instance: instance.to_owned(), force: true }).unwrap()
    }

    /// Applies an operation that prunes executions.
    pub fn prune(&mut self, op: &Op) -> Result<PruneResult, Refusal> {
        self.apply(op).map(|answer| match answer {
            Answer::Pruned(result) => result,
            other => panic!("unexpected answer {other:?}"),
        })
    }

    /// Applies an operation that counts.
    pub fn count(&mut self, op: &Op) -> usize {
        match self.apply(op).unwrap() {
            Answer::Count(count) => count,
            other => panic!("unexpected answer {other:?}"),
        }
    }

    // ---- claims ---------------------------------------------------------------------------------------------

    /// Claims one instance as the plain fetch does.
    pub fn claim(&mut self) -> Option<OrchestrationClaim> {
        self.claim_all(&InstanceFetch { whole_mailbox: true, ..batch_fetch(1) }).items.pop()
    }

    /// Claims instances.
    pub fn claim_all(&mut self, fetch: &InstanceFetch) -> Claimed<OrchestrationClaim> {
        let fetches = vec![WaitingFetch::new(fetch)];
        let done = self.transact(Batch { promote: true, instance_fetches: fetches, ..Batch::default() });
        let mut claimed = done.instances.into_iter().flatten().next().expect("the fetch is new");
        claimed.dead_letters.splice(0..0, done.dead_letters);
        claimed
    }

    /// Claims one instance with a version filter.
    pub fn claim_versions(&mut self, ranges: &[SemverRange]) -> Option<OrchestrationClaim> {
        let filter = DispatcherCapabilityFilter { supported_duroxide_versions: ranges.to_vec() };
        let request = OrchestrationFetch::new(LEASE, Duration::ZERO).with_filter(Some(&filter));
        self.claim_all(&InstanceFetch::new(&request)).items.pop()
    }

    /// Claims one activity without session or tag.
    pub fn work(&mut self) -> Option<WorkClaim> {
        self.work_all(&work_fetch(1)).items.pop()
    }

    /// Claims one activity as the owner of sessions.
    pub fn session_work(&mut self, owner: &str) -> Option<WorkClaim> {
        let session = SessionFetchConfig { owner_id: owner.to_owned(), lock_timeout: LEASE };
        self.work_all(&ActivityFetch { session: Some(session), ..work_fetch(1) }).items.pop()
    }

    /// Claims one activity by tag.
    pub fn tagged_work(&mut self, tag_filter: TagFilter) -> Option<WorkClaim> {
        self.work_all(&ActivityFetch { tag_filter, ..work_fetch(1) }).items.pop()
    }

    /// Claims activities.
    pub fn work_all(&mut self, fetch: &ActivityFetch) -> Claimed<WorkClaim> {
        let fetches = vec![WaitingFetch::new(fetch)];
        let done = self.transact(Batch { promote: true, activity_fetches: fetches, ..Batch::default() });
        done.activities.into_iter().flatten().next().expect("the fetch is new")
    }

    // ---- short cuts -----------------------------------------------------------------------------------------

    /// Starts an instance and commits its first turn.
    pub fn run_first_turn(&mut self, turn: Turn, start: &WorkItem) {
        self.send(start);
        let claim = self.claim().expect("the start is visible");
        assert_eq!(claim.instance, start.target_instance());
        self.commit(&claim, turn).unwrap();
    }

    /// An instance that ran its first turn and waits.
    pub fn running(&mut self, instance: &str) {
        self.run_first_turn(Turn::first(instance), &super::items::start(instance));
    }

    /// An instance that has ended.
    pub fn ended(&mut self, instance: &str) {
        self.run_first_turn(Turn::first(instance).complete("done"), &super::items::start(instance));
    }

    // ---- reads ----------------------------------------------------------------------------------------------

    /// The engine's reads.
    pub fn read(&mut self) -> &mut dyn StoreReader {
        self.engine.as_mut()
    }

    /// Everything.
    pub fn snapshot(&mut self) -> StoreSnapshot {
        self.engine.snapshot().unwrap()
    }

    /// Everything of one instance or mailbox.
    pub fn instance(&mut self, id: &str) -> Option<InstanceSnapshot> {
        self.snapshot().instances.into_iter().find(|row| row.instance == id)
    }

    /// The attempt counts of an instance's messages, in order.
    pub fn attempts(&mut self, id: &str) -> Vec<u32> {
        let row = self.instance(id).unwrap_or_default();
        row.messages.iter().map(|message| message.attempt_count).collect()
    }

    /// The dead letters.
    pub fn dead_letters(&mut self) -> Vec<DeadLetter> {
        self.engine.dead_letters(None).unwrap()
    }

    /// One transaction at the current time, after which the invariants hold.
    pub fn transact(&mut self, batch: Batch<'_>) -> Done {
        self.nonce += 1;
        let batch = Batch { now: self.now, nonce: self.nonce, ..batch };
        let done = self.engine.transact(&batch).unwrap_or_else(|fault| panic!("the store failed: {fault}"));
        self.check_invariants();
        done
    }

    fn check_invariants(&mut self) {
        if !self.checked {
            return;
        }
        let violations = invariant::check(&self.engine.snapshot().unwrap());
        assert!(violations.is_empty(), "{}", violations.iter().map(|v| format!("{v}\n")).collect::<String>());
    }
}

fn deleted(answer: Answer) -> (DeleteInstanceResult, Unfinished) {
    match answer {
        Answer::Deleted(result) => (result, Unfinished::default()),
        Answer::DeletedPart(result, unfinished) => (result, unfinished),
        other => panic!("unexpected answer {other:?}"),
    }
}

/// A fetch of up to `max` instances, all of which can start at once.
pub fn batch_fetch(max: usize) -> InstanceFetch {
    InstanceFetch::new(&OrchestrationFetch::new(LEASE, Duration::ZERO).with_max(max, max))
}

/// A fetch of up to `max` activities without session or tag, all of which can start at once.
pub fn work_fetch(max: usize) -> ActivityFetch {
    ActivityFetch::new(&WorkFetch::new(LEASE, Duration::ZERO, &TagFilter::DefaultOnly).with_max(max, max))
}
