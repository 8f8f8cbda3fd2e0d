//! One transaction: operations, promotion, claims, commit.

use std::time::Duration;

use duroxide_core::Timestamp;
use duroxide_provider::store::{
    ActivityOrder, Answer, DeadLetterNote, FailureClass, HeldBack, InstanceOrder, Op, Readies, Refusal,
    StoreFailure,
};

use super::{Nonces, SteadyClock, engine::GuardedEngine, lease_start::LeaseAllowance, nodes::Nodes};
use crate::{
    job::Job,
    machine::{Machine, Served, Taken},
    order::Order,
    stranded,
};

/// A transaction about to run.
pub(super) struct Transaction<'a> {
    pub(super) engine: &'a mut GuardedEngine,
    pub(super) machine: &'a Machine,
    pub(super) nonces: &'a mut Nonces,
    pub(super) steady_clock: &'a SteadyClock,
    /// The time of everything in it.
    pub(super) now: Timestamp,
    pub(super) allowance: LeaseAllowance,
    pub(super) nodes: &'a Nodes,
}

/// How much stranded work is looked at for one item. Whoever ends stranded work begins with what has waited longest.
const STRANDED_MAX: usize = 1_000;

/// What a committed transaction did. Nobody has been told yet.
#[derive(Debug)]
pub(super) struct Outcome {
    /// One for each operation.
    pub(super) answers: Vec<Result<Answer, Refusal>>,
    pub(super) instances: Served<InstanceOrder>,
    pub(super) activities: Served<ActivityOrder>,
    /// Whether due rows were promoted.
    pub(super) promoted: bool,
    /// Whether leases were changed because the clock was set.
    pub(super) changed_leases: bool,
    pub(super) aside: Aside,
    /// How long the commit took, which is mostly the disk's time.
    pub(super) commit_took: Duration,
}

/// What a committed transaction of one operation did.
#[derive(Debug)]
pub(super) struct Alone {
    pub(super) answer: Result<Answer, Refusal>,
    /// Whether leases were changed because the clock was set.
    pub(super) changed_leases: bool,
}

/// What a transaction put aside or passed over; the operator hears of it.
#[derive(Debug, Default)]
pub(super) struct Aside {
    pub(super) dead_letters: Vec<DeadLetterNote>,
    /// What claims passed over for lack of a capability.
    pub(super) held_back: HeldBack,
}

/// Why a transaction had no effect, or none that anyone knows of.
#[derive(Debug)]
pub(super) enum Fault {
    /// It could not begin or end; nothing happened.
    Whole(StoreFailure),
    /// An operation broke.
    Op(StoreFailure),
    /// Due rows could not be promoted.
    Promotion(StoreFailure),
    /// Leases could not be changed as a clock that was set requires.
    Leases(StoreFailure),
    /// The claim for this order broke.
    InstanceOrder(u64, StoreFailure),
    /// The claim for this order broke.
    ActivityOrder(u64, StoreFailure),
    /// It may or may not have happened. `releases` give back what it granted.
    Unknown { failure: StoreFailure, releases: Vec<Op> },
}

impl Fault {
    pub(super) fn into_failure(self) -> StoreFailure {
        match self {
            Self::Whole(failure)
            | Self::Op(failure)
            | Self::Promotion(failure)
            | Self::Leases(failure)
            | Self::InstanceOrder(_, failure)
            | Self::ActivityOrder(_, failure)
            | Self::Unknown { failure, .. } => failure,
        }
    }

    /// Wherever it shows, an unknown outcome concerns the whole store.
    fn into_unknown(self) -> Self {
        let releases = match &self {
            Self::Unknown { releases, .. } => releases.clone(),
            _ => Vec::new(),
        };
        let failure = StoreFailure { class: FailureClass::OutcomeUnknown, ..self.into_failure() };
        Self::Unknown { failure, releases }
    }

    fn is_unknown(&self) -> bool {
        let (Self::Whole(failure)
        | Self::Op(failure)
        | Self::Promotion(failure)
        | Self::Leases(failure)
        | Self::InstanceOrder(_, failure)
        | Self::ActivityOrder(_, failure)
        | Self::Unknown { failure, .. }) = self;
        failure.class == FailureClass::OutcomeUnknown
    }
}

impl Transaction<'_> {
    /// Runs operations, promotes what is due and serves the fetches that wait, all in one commit.
    pub(super) fn run(mut self, jobs: &[Job]) -> Result<Outcome, Fault> {
        self.begin()?;
        let filled = self.fill(jobs);
        let mut outcome = self.or_roll_back(filled)?;
        let filled_at = (self.steady_clock)();
        let committed = self.engine.commit().map_err(|failure| match failure.class {
            // One operation is to blame, but the commit does not say which.
            FailureClass::Permanent => Fault::Op(failure),
            FailureClass::Retryable => Fault::Whole(failure),
            FailureClass::OutcomeUnknown => Fault::Unknown { failure, releases: outcome.releases() },
        });
        self.or_roll_back(committed)?;
        outcome.commit_took = (self.steady_clock)().saturating_sub(filled_at);
        Ok(outcome)
    }

    /// Runs one operation and serves nobody.
    pub(super) fn run_alone(mut self, job: &Job) -> Result<Alone, Fault> {
        self.begin()?;
        let filled = self.change_leases().and_then(|changed| Ok((changed, self.apply(job)?)));
        let (changed_leases, answer) = self.or_roll_back(filled)?;
        let committed = self.engine.commit().map_err(|failure| match failure.class {
            FailureClass::Permanent => Fault::Op(failure),
            FailureClass::Retryable | FailureClass::OutcomeUnknown => Fault::Whole(failure),
        });
        self.or_roll_back(committed)?;
        Ok(Alone { answer, changed_leases })
    }

    fn begin(&mut self) -> Result<(), Fault> {
        let begun = self.engine.begin(self.now).map_err(Fault::Whole);
        self.or_roll_back(begun)
    }

    fn or_roll_back<T>(&mut self, result: Result<T, Fault>) -> Result<T, Fault> {
        result.map_err(|fault| match self.engine.rollback() {
            Ok(()) if !fault.is_unknown() => fault,
            _ => fault.into_unknown(),
        })
    }

    fn fill(&mut self, jobs: &[Job]) -> Result<Outcome, Fault> {
        let changed_leases = self.change_leases()?;
        let mut readies = Readies::default();
        let mut answers = Vec::with_capacity(jobs.len());
        for job in jobs {
            let answer = self.apply(job)?;
            if answer.is_ok() {
                readies = readies.or(job.op().readies());
            }
            answers.push(answer);
        }
        let mut aside = Aside::default();
        let promoted = self.machine.promotion_is_due(self.now);
        if promoted {
            aside.dead_letters = self.engine.promote().map_err(Fault::Promotion)?;
            readies = Readies { instances: true, activities: true };
        }
        let machine = self.machine;
        let instances = machine
            .instances
            .serve(readies.instances, |order| self.claim(order, &mut aside))
            .map_err(|(number, failure)| Fault::InstanceOrder(number, failure))?;
        let activities = machine
            .activities
            .serve(readies.activities, |order| self.claim(order, &mut aside))
            .map_err(|(number, failure)| Fault::ActivityOrder(number, failure))?;
        Ok(Outcome {
            answers,
            instances,
            activities,
            promoted,
            changed_leases,
            aside,
            commit_took: Duration::ZERO,
        })
    }

    /// If the clock was set, leases are changed before anything else happens: operations check them, promotions end them.
    fn change_leases(&mut self) -> Result<bool, Fault> {
        let Some(change) = self.machine.lease_change_due(self.now) else { return Ok(false) };
        if !change.forward.is_zero() {
            self.engine.move_leases(change.forward).map_err(Fault::Leases)?;
        }
        self.engine.clamp_leases().map_err(Fault::Leases)?;
        Ok(true)
    }

    fn apply(&mut self, job: &Job) -> Result<Result<Answer, Refusal>, Fault> {
        // A clock that was set back meanwhile must not end a lease that its holder has.
        let handed_in = job.handed_in().min(self.now);
        let op = self.allowance.applied_to(job.op());
        self.engine.apply(&op, handed_in).map_err(Fault::Op)
    }

    fn claim<O: Order>(&mut self, order: &O, aside: &mut Aside) -> Result<Taken<O>, StoreFailure> {
        if order.is_to_end() && !self.is_stranded(order)? {
            return Ok(Taken { claims: Vec::new(), was_all: false });
        }
        let nonce = (self.nonces)();
        let claimed = match self.allowance.beside(order.lock_timeout()) {
            Some(allowance) => self.engine.claim(&order.with_longer_leases(allowance), nonce)?,
            None => self.engine.claim(order, nonce)?,
        };
        aside.dead_letters.extend(claimed.dead_letters);
        aside.held_back.add(claimed.held_back);
        Ok(Taken { claims: claimed.items, was_all: claimed.took_all })
    }

    /// Whether still no node can take the item that is to be ended. Nodes join in transactions too, so one that can take
    /// it has either joined, and is seen here, or finds the item locked.
    fn is_stranded<O: Order>(&mut self, order: &O) -> Result<bool, StoreFailure> {
        let (locks, ending) = (self.nodes.locks(), self.nodes.ending());
        let found = stranded::find(self.engine.reader(), locks, &ending, self.now, STRANDED_MAX)?;
        Ok(found.iter().any(|work| order.names(work)))
    }
}

impl Outcome {
    fn releases(&self) -> Vec<Op> {
        self.instances.releases().chain(self.activities.releases()).collect()
    }
}
