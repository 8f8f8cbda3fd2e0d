//! A memory engine that counts its calls and fails as a test has planned.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use duroxide_core::Timestamp;
use duroxide_provider::{
    OrchestrationClaim, WorkClaim,
    memory::{MemoryEngine, MemoryTables},
    rules::Rules,
    store::{
        ActivityFetch, Answer, ApplyError, Batch, Claimed, DeadLetterNote, Done, EventRow, FailureClass,
        Fault, InstanceFetch, Op, Readies, StoreFailure, StoreReader as _, StoredExecution, TransactionSteps,
    },
    testing::{EngineLayer, StepLayer},
};

/// A place where an engine can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Point {
    Begin,
    Apply,
    Promote,
    ClampLeases,
    MoveLeases,
    ClaimInstances,
    ClaimActivities,
    Commit,
    /// The commit happens, and then fails.
    AfterCommit,
    Rollback,
    NextWake,
    ChangedElsewhere,
    Reopen,
    Maintain,
    Read,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Harm {
    Fail(FailureClass),
    Panic,
}

#[derive(Default)]
struct Script {
    calls: BTreeMap<Point, usize>,
    harms: Vec<(Point, String, Harm)>,
    changed_elsewhere: bool,
    nothing_ready: bool,
    batches: Vec<usize>,
    reads_before_first_commit: usize,
    /// Instances whose second event is undecodable.
    corrupt: BTreeSet<String>,
    /// Calls that fail, by their number.
    numbered: BTreeMap<(Point, usize), FailureClass>,
    /// Called first in each commit, to let time pass, for example.
    during_commit: Option<Arc<dyn Fn() + Send + Sync>>,
    /// Transactions that lose a race, by their number.
    lost_races: BTreeSet<usize>,
    /// Each transaction as it was asked for.
    asked: Vec<String>,
}

/// The calls of the engine and its planned failures; shared between a test and its engine.
#[derive(Clone, Default)]
pub(crate) struct Plan(Arc<Mutex<Script>>);

impl Plan {
    /// How often the engine was there.
    pub(crate) fn count(&self, point: Point) -> usize {
        self.0.lock().unwrap().calls.get(&point).copied().unwrap_or(0)
    }

    /// The next call there fails, once.
    pub(crate) fn fail_next(&self, point: Point, class: FailureClass) {
        self.harm(point, "", Harm::Fail(class));
    }

    /// The call there after the next `calls` fails, once.
    pub(crate) fn fail_after(&self, point: Point, calls: usize, class: FailureClass) {
        let mut script = self.0.lock().unwrap();
        let so_far = script.calls.get(&point).copied().unwrap_or(0);
        script.numbered.insert((point, so_far + calls + 1), class);
    }

    /// Of the transactions from here on these are carried out, lose a race at their commit, and have no effect.
    pub(crate) fn lose_races(&self, numbers: impl IntoIterator<Item = usize>) {
        let mut script = self.0.lock().unwrap();
        script.asked.clear();
        script.lost_races = numbers.into_iter().collect();
    }

    /// The transactions since [`Self::lose_races`], as texts.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.0.lock().unwrap().asked.clone()
    }

    /// Notes a transaction. Returns whether it loses a race.
    fn ask(&self, batch: &Batch<'_>) -> bool {
        let mut script = self.0.lock().unwrap();
        // Each try has a number of its own for its tokens.
        let asked = Batch { nonce: 0, turns: None, ..batch.clone() };
        script.asked.push(format!("{asked:?}"));
        let number = script.asked.len();
        script.lost_races.remove(&number)
    }

    /// Cancels the planned failures that have not happened.
    pub(crate) fn forgive_all(&self) {
        let mut script = self.0.lock().unwrap();
        script.harms.clear();
        script.numbered.clear();
    }

    /// Lets all operations whose text contains `marker` fail.
    pub(crate) fn break_ops_with(&self, marker: &str, class: FailureClass) {
        self.harm(Point::Apply, marker, Harm::Fail(class));
    }

    /// Lets all operations whose text contains `marker` panic.
    pub(crate) fn panic_at_ops_with(&self, marker: &str) {
        self.harm(Point::Apply, marker, Harm::Panic);
    }

    /// The next call there panics, once.
    pub(crate) fn panic_next(&self, point: Point) {
        self.harm(point, "", Harm::Panic);
    }

    /// Another process changed the store.
    pub(crate) fn change_elsewhere(&self) {
        self.0.lock().unwrap().changed_elsewhere = true;
    }

    /// Another process changed the store, and made nothing ready by it.
    pub(crate) fn change_elsewhere_in_vain(&self) {
        self.change_elsewhere();
        self.0.lock().unwrap().nothing_ready = true;
    }

    /// The second event of this instance cannot be decoded from now on.
    pub(crate) fn corrupt_second_event_of(&self, instance: &str) {
        self.0.lock().unwrap().corrupt.insert(instance.to_owned());
    }

    fn read(&self, instance: &str, mut events: Vec<EventRow>) -> Vec<EventRow> {
        if self.0.lock().unwrap().corrupt.contains(instance) {
            events[1].data = "nonsense".to_owned();
        }
        events
    }

    /// Whether an engine with this plan is alive.
    pub(crate) fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// Every commit does this first.
    pub(crate) fn during_commit(&self, act: impl Fn() + Send + Sync + 'static) {
        self.0.lock().unwrap().during_commit = Some(Arc::new(act));
    }

    /// How many reads came before the first commit.
    pub(crate) fn reads_before_first_commit(&self) -> usize {
        self.0.lock().unwrap().reads_before_first_commit
    }

    /// Operations in each committed transaction.
    pub(crate) fn batches(&self) -> Vec<usize> {
        self.0.lock().unwrap().batches.clone()
    }

    fn harm(&self, point: Point, marker: &str, harm: Harm) {
        self.0.lock().unwrap().harms.push((point, marker.to_owned(), harm));
    }

    /// Counts a call and lets it fail if it is its turn.
    fn pass(&self, point: Point, text: &str) -> Result<(), StoreFailure> {
        let harm = {
            let mut script = self.0.lock().unwrap();
            let number = *script.calls.entry(point).and_modify(|calls| *calls += 1).or_insert(1);
            if let Some(class) = script.numbered.remove(&(point, number)) {
                return Err(StoreFailure::new(class, format!("planned failure at {point:?} {number}")));
            }
            if point == Point::Read && script.batches.is_empty() {
                script.reads_before_first_commit += 1;
            }
            let found = script
                .harms
                .iter()
                .position(|(at, marker, _)| *at == point && text.contains(marker.as_str()));
            found.map(|place| {
                let (_, marker, harm) = script.harms[place].clone();
                if marker.is_empty() {
                    script.harms.remove(place);
                }
                harm
            })
        };
        match harm {
            None => Ok(()),
            Some(Harm::Fail(class)) => Err(StoreFailure::new(class, format!("planned failure at {point:?}"))),
            Some(Harm::Panic) => panic!("planned panic at {point:?}"),
        }
    }
}

/// A memory engine that fails as planned.
pub(crate) struct ScriptedEngine {
    inner: MemoryEngine,
    is_open: bool,
    applied: usize,
    plan: Plan,
}

impl ScriptedEngine {
    pub(crate) fn new(plan: Plan) -> Self {
        Self::over(MemoryEngine::default(), plan)
    }

    /// An engine that already holds something.
    pub(crate) fn over(inner: MemoryEngine, plan: Plan) -> Self {
        Self { inner, is_open: false, applied: 0, plan }
    }
}

impl EngineLayer for ScriptedEngine {
    type Engine = MemoryEngine;

    fn with_engine<T>(&mut self, call: impl FnOnce(&mut MemoryEngine) -> T) -> T {
        call(&mut self.inner)
    }

    fn transact(&mut self, batch: &Batch<'_>) -> Result<Done, Fault> {
        if !self.plan.ask(batch) {
            return self.transact_in_steps(batch);
        }
        self.plan.fail_next(Point::Commit, FailureClass::Retryable);
        let Err(fault) = self.transact_in_steps(batch) else { panic!("the commit fails") };
        Err(Fault::LostRace(fault.failure().clone()))
    }

    fn next_wake(&mut self, _now: Timestamp) -> Result<Option<Timestamp>, StoreFailure> {
        self.plan.pass(Point::NextWake, "")?;
        self.inner.rules().next_wake()
    }

    fn changed_elsewhere(&mut self) -> Result<bool, StoreFailure> {
        self.plan.pass(Point::ChangedElsewhere, "")?;
        Ok(std::mem::take(&mut self.plan.0.lock().unwrap().changed_elsewhere))
    }

    fn may_be_ready(&mut self) -> Result<Readies, StoreFailure> {
        let ready = !self.plan.0.lock().unwrap().nothing_ready;
        Ok(Readies { instances: ready, activities: ready })
    }

    fn reopen(&mut self) -> Result<(), StoreFailure> {
        self.plan.pass(Point::Reopen, "")
    }

    fn maintain(&mut self) -> Result<(), StoreFailure> {
        assert!(!self.is_open, "upkeep inside a transaction");
        self.plan.pass(Point::Maintain, "")
    }

    fn before_read(&mut self) -> Result<(), StoreFailure> {
        self.plan.pass(Point::Read, "")
    }

    fn history(&mut self, instance: &str, execution_id: Option<u64>) -> Result<Vec<EventRow>, StoreFailure> {
        Ok(self.plan.read(instance, self.inner.history(instance, execution_id)?))
    }

    fn load(&mut self, instance: &str, execution_id: u64) -> Result<StoredExecution, StoreFailure> {
        let stored = self.inner.load(instance, execution_id)?;
        Ok(StoredExecution { events: self.plan.read(instance, stored.events), ..stored })
    }
}

impl StepLayer for ScriptedEngine {
    type Steps = Rules<MemoryTables>;

    fn with_steps<T>(&mut self, call: impl FnOnce(&mut Self::Steps) -> T) -> T {
        call(self.inner.rules())
    }

    fn begin(&mut self, now: Timestamp) -> Result<(), StoreFailure> {
        self.plan.pass(Point::Begin, "")?;
        assert!(!self.is_open, "a transaction is open");
        self.is_open = true;
        self.applied = 0;
        self.inner.rules().begin(now)
    }

    fn apply(&mut self, op: &Op, handed_in: Timestamp) -> Result<Answer, ApplyError> {
        let answer = self.inner.rules().apply(op, handed_in)?;
        // After the write, so that only a rollback undoes it.
        self.plan.pass(Point::Apply, &format!("{op:?}"))?;
        self.applied += 1;
        Ok(answer)
    }

    fn promote(&mut self) -> Result<Vec<DeadLetterNote>, StoreFailure> {
        self.plan.pass(Point::Promote, "")?;
        self.inner.rules().promote()
    }

    fn shorten_leases(&mut self) -> Result<(), StoreFailure> {
        self.plan.pass(Point::ClampLeases, "")?;
        self.inner.rules().shorten_leases()
    }

    fn move_leases(&mut self, by: Duration) -> Result<(), StoreFailure> {
        self.plan.pass(Point::MoveLeases, "")?;
        self.inner.rules().move_leases(by)
    }

    fn claim_instances(
        &mut self,
        fetch: &InstanceFetch,
        nonce: u128,
    ) -> Result<Claimed<OrchestrationClaim>, StoreFailure> {
        self.plan.pass(Point::ClaimInstances, "")?;
        self.inner.rules().claim_instances(fetch, nonce)
    }

    fn claim_activities(
        &mut self,
        fetch: &ActivityFetch,
        nonce: u128,
    ) -> Result<Claimed<WorkClaim>, StoreFailure> {
        self.plan.pass(Point::ClaimActivities, "")?;
        self.inner.rules().claim_activities(fetch, nonce)
    }

    fn commit(&mut self) -> Result<(), StoreFailure> {
        let act = self.plan.0.lock().unwrap().during_commit.clone();
        act.iter().for_each(|act| act());
        self.plan.pass(Point::Commit, "")?;
        self.inner.rules().commit()?;
        self.is_open = false;
        self.plan.0.lock().unwrap().batches.push(self.applied);
        self.plan.pass(Point::AfterCommit, "")
    }

    fn rollback(&mut self) {
        if std::mem::take(&mut self.is_open) {
            self.inner.rules().rollback();
        }
        self.plan.pass(Point::Rollback, "").unwrap();
    }
}
