//! One transaction: builds a batch of everything that waits, and sorts its result.

use duroxide_core::Timestamp;
use duroxide_provider::{
    StrandedWork,
    store::{
        ActivityFetch, Answer, Batch, BatchPart, DeadLetterNote, Done, Fault, HeldBack, InstanceFetch, Op,
        Refusal, StoreFailure, StoredNode, Submitted,
    },
};

use super::StoreDriver;
use crate::{
    fetch::QueueFetch,
    job::Job,
    log,
    machine::{FetchNumbers, Prospect, Served},
    stranded,
};

/// How much stranded work is looked at for one item. Whoever ends stranded work begins with what has waited longest.
const STRANDED_MAX: usize = 1_000;

/// The result of a committed transaction, before its callers are answered.
#[derive(Debug)]
pub(super) struct Outcome {
    /// One answer for each operation.
    pub(super) answers: Vec<Result<Answer, Refusal>>,
    pub(super) instances: Served<InstanceFetch>,
    pub(super) activities: Served<ActivityFetch>,
    /// Whether due rows were promoted.
    pub(super) promoted: bool,
    /// Whether leases were changed because the clock was set.
    pub(super) changed_leases: bool,
    pub(super) dead_letters: Vec<DeadLetterNote>,
    /// How many ready items the claims skipped for lack of a capability.
    pub(super) held_back: HeldBack,
    pub(super) next_wake: Result<Option<Timestamp>, StoreFailure>,
}

/// Why a transaction had no effect, or none that anyone knows of.
#[derive(Debug)]
pub(super) enum Failed {
    /// A part that can wait was removed. The rest is tried again at once.
    WithoutPart,
    /// An operation broke.
    Operation(StoreFailure),
    /// Another transaction was in the way.
    LostRace(StoreFailure),
    /// The store does not serve.
    Unavailable(StoreFailure),
    /// The transaction may have been committed. `releases` give back the claims that it made.
    Unknown { failure: StoreFailure, releases: Vec<Op> },
}

/// The items that a fetch may take in order to end them, because no node can run them.
enum Endable {
    /// No fetch asks for such an item.
    NotAsked,
    /// Unknown, because the batch itself changes the nodes.
    NotKnownYet,
    Known {
        /// The nodes that were there.
        nodes: Vec<StoredNode>,
        /// The items that none of them can take.
        work: Vec<StrandedWork>,
    },
}

impl StoreDriver {
    /// Carries out operations, promotes what is due and serves the fetches that wait, all in one commit.
    pub(super) fn run_batch(&mut self, jobs: &[Job], now: Timestamp) -> Result<Outcome, Failed> {
        let endable = self.look_for_endable(jobs, now);
        self.machine.ask_demands();
        let (machine, allowance) = (&self.machine, self.lease_allowance);
        let longer_by = |lease| allowance.beside(lease);
        let (instance_fetches, instances) =
            machine.instances.requests(longer_by, |fetch| endable.prospect(fetch));
        let (activity_fetches, activities) =
            machine.activities.requests(longer_by, |fetch| endable.prospect(fetch));
        let batch = Batch {
            now,
            nonce: (self.nonces)(),
            clock_set_forward: machine.lease_change_due(now).map(|change| change.forward),
            operations: jobs.iter().map(|job| self.submitted(job, now)).collect(),
            promote: machine.promotion_is_due(now),
            instance_fetches,
            activity_fetches,
            nodes: endable.into_nodes(),
        };
        let (promoted, changed_leases) = (batch.promote, batch.clock_set_forward.is_some());
        match self.engine.transact(&batch) {
            Ok(done) => Ok(Outcome { promoted, changed_leases, ..Outcome::new(done, instances, activities) }),
            Err(fault) => Err(self.put_aside(fault, instances, activities, now)),
        }
    }

    /// Carries out one operation and serves nobody.
    pub(super) fn run_alone(&mut self, job: &Job, now: Timestamp) -> Result<Outcome, Failed> {
        let batch = Batch {
            now,
            nonce: (self.nonces)(),
            clock_set_forward: self.machine.lease_change_due(now).map(|change| change.forward),
            operations: vec![self.submitted(job, now)],
            ..Batch::default()
        };
        let changed_leases = batch.clock_set_forward.is_some();
        let (instances, activities) = (FetchNumbers::default(), FetchNumbers::default());
        match self.engine.transact(&batch) {
            Ok(done) => Ok(Outcome { changed_leases, ..Outcome::new(done, instances, activities) }),
            Err(fault) => Err(self.put_aside(fault, instances, activities, now)),
        }
    }

    fn submitted<'a>(&self, job: &'a Job, now: Timestamp) -> Submitted<'a> {
        // A clock that was set back meanwhile must not end a lease that its holder has.
        let waited = now.saturating_since(job.handed_in());
        Submitted { op: self.lease_allowance.applied_to(job.op()), waited }
    }

    /// Decides what to do after a fault. A part that broke alone is removed from the next batch, so that each retry has less
    /// that can fail.
    fn put_aside(
        &mut self,
        fault: Fault,
        instances: FetchNumbers,
        activities: FetchNumbers,
        now: Timestamp,
    ) -> Failed {
        let (part, failure) = match fault {
            Fault::Broken { part, failure } => (part, failure),
            Fault::LostRace(failure) => return Failed::LostRace(failure),
            Fault::Unavailable(failure) => return Failed::Unavailable(failure),
            Fault::OutcomeUnknown { failure, done } => {
                let outcome = done.map(|done| Outcome::new(*done, instances, activities));
                let releases = outcome.map(|outcome| outcome.releases()).unwrap_or_default();
                return Failed::Unknown { failure, releases };
            }
        };
        match part {
            BatchPart::Operation(_) | BatchPart::SomeOperation => return Failed::Operation(failure),
            BatchPart::Leases => {
                log::upkeep_failed(&self.name, "change_leases", &failure);
                self.machine.postpone_lease_change(now);
            }
            BatchPart::Promotion => {
                log::upkeep_failed(&self.name, "promote", &failure);
                self.machine.postpone_promotion(now);
            }
            BatchPart::InstanceFetch(index) => {
                instances.at(index).into_iter().for_each(|number| {
                    self.machine.instances.fail(number, failure.clone(), now);
                });
            }
            BatchPart::ActivityFetch(index) => {
                activities.at(index).into_iter().for_each(|number| {
                    self.machine.activities.fail(number, failure.clone(), now);
                });
            }
        }
        Failed::WithoutPart
    }

    /// Finds the items that no node can take, if a fetch asks for such an item. The transaction checks that no node has
    /// joined in between.
    fn look_for_endable(&mut self, jobs: &[Job], now: Timestamp) -> Endable {
        if !self.machine.instances.has_fetch_to_end() && !self.machine.activities.has_fetch_to_end() {
            return Endable::NotAsked;
        }
        if jobs.iter().any(|job| matches!(job.op(), Op::JoinNode(_) | Op::EndNode { .. })) {
            return Endable::NotKnownYet;
        }
        let found = self.engine.nodes().and_then(|nodes| {
            let (locks, ending) = (self.nodes.locks(), self.nodes.ending());
            let work = stranded::find(self.engine.reader(), &nodes, locks, &ending, now, STRANDED_MAX)?;
            Ok(Endable::Known { nodes, work })
        });
        found.unwrap_or_else(|failure| {
            log::upkeep_failed(&self.name, "nodes", &failure);
            Endable::Known { nodes: Vec::new(), work: Vec::new() }
        })
    }
}

impl Endable {
    fn prospect<F: QueueFetch>(&self, fetch: &F) -> Prospect {
        match self {
            _ if !fetch.is_to_end() => Prospect::Some,
            Self::NotKnownYet => Prospect::Later,
            Self::Known { work, .. } if work.iter().any(|work| fetch.names(work)) => Prospect::Some,
            Self::Known { .. } | Self::NotAsked => Prospect::None,
        }
    }

    fn into_nodes(self) -> Option<Vec<StoredNode>> {
        match self {
            Self::Known { nodes, .. } => Some(nodes),
            Self::NotAsked | Self::NotKnownYet => None,
        }
    }
}

impl Outcome {
    fn new(done: Done, instances: FetchNumbers, activities: FetchNumbers) -> Self {
        let mut outcome = Self {
            answers: done.answers,
            instances: instances.served(done.instances, done.readies.instances),
            activities: activities.served(done.activities, done.readies.activities),
            promoted: false,
            changed_leases: false,
            dead_letters: done.dead_letters,
            held_back: HeldBack::default(),
            next_wake: done.next_wake,
        };
        outcome.instances.take_notes(&mut outcome.dead_letters, &mut outcome.held_back);
        outcome.activities.take_notes(&mut outcome.dead_letters, &mut outcome.held_back);
        outcome
    }

    fn releases(&self) -> Vec<Op> {
        self.instances.releases().chain(self.activities.releases()).collect()
    }
}
