//! [`PeekLockEngine`]: the memory engine applies the rules, the store keeps the rows.

mod reads;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use duroxide_core::Timestamp;
use duroxide_provider::{
    OrchestrationClaim, WorkClaim,
    memory::{MemoryEngine, MemoryOptions},
    store::{
        ActivityFetch, Answer, ApplyError, Batch, Claimed, DeadLetterNote, Done, FailureClass, Fault,
        InstanceFetch, Op, StoreEngine, StoreFailure, StoredNode, TransactionSteps,
    },
};

use crate::{
    PeekLockStore, Step,
    plan::{needs_note, plan},
    recovery::{end_empty_locks, end_locks, recover},
};

/// A store engine on a [`PeekLockStore`]: the memory engine applies the rules and answers all reads, the
/// store keeps the rows.
///
/// A transaction plans steps and carries them out at its commit, operation by operation. If a step fails, the engine
/// reads all rows from the store again.
#[derive(Debug)]
pub struct PeekLockEngine<S> {
    store: S,
    memory: MemoryEngine,
    planned: Vec<Plan>,
    /// Whether memory and store may differ.
    stale: bool,
    reload: Reload,
    /// Whether the rows were read again on request, and the driver was not notified yet.
    reloaded: bool,
}

/// A handle that asks an engine to read its store again.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reload {
    requested: Arc<AtomicBool>,
}

impl Reload {
    pub(crate) fn request(&self) {
        self.requested.store(true, Ordering::SeqCst);
    }

    fn is_requested(&self) -> bool {
        self.requested.swap(false, Ordering::SeqCst)
    }
}

/// The steps of one operation or claim.
#[derive(Debug)]
struct Plan {
    steps: Vec<Step>,
    noted: bool,
}

impl<S: PeekLockStore> PeekLockEngine<S> {
    /// Opens a store and finishes interrupted operations.
    ///
    /// # Errors
    /// If the store cannot be read or repaired.
    pub fn open(mut store: S, options: MemoryOptions) -> Result<Self, StoreFailure> {
        let mut records = recover(&mut store)?;
        end_empty_locks(&mut records);
        if store.former_user_is_gone() {
            end_locks(&mut records);
        }
        let memory = MemoryEngine::restore(options, records)?;
        Ok(Self {
            store,
            memory,
            planned: Vec::new(),
            stale: false,
            reload: Reload::default(),
            reloaded: false,
        })
    }

    pub(crate) fn reload_handle(&self) -> Reload {
        self.reload.clone()
    }

    /// The underlying store.
    pub fn store(&mut self) -> &mut S {
        &mut self.store
    }

    /// Reads the store again. Locks stay as they are: their holders are in this process.
    fn read_store(&mut self) -> Result<(), StoreFailure> {
        self.planned.clear();
        self.stale = true;
        let mut records = recover(&mut self.store)?;
        end_empty_locks(&mut records);
        self.memory.replace(records)?;
        self.stale = false;
        Ok(())
    }

    /// Reads the store again if memory may differ from it.
    fn refresh(&mut self) -> Result<(), StoreFailure> {
        if self.reload.is_requested() {
            self.stale = true;
            self.reloaded = true;
        }
        if self.stale { self.read_store() } else { Ok(()) }
    }

    /// Plans the steps for the rows that the memory engine has just changed.
    fn plan(&mut self, is_round: bool) {
        let steps = plan(self.memory.take_changes());
        if !steps.is_empty() {
            let noted = needs_note(is_round, &steps);
            self.planned.push(Plan { steps, noted });
        }
    }

    /// Carries out the planned steps. `begun` is set once a write may have been made.
    fn carry_out(&mut self, begun: &mut bool) -> Result<(), StoreFailure> {
        for plan in std::mem::take(&mut self.planned) {
            if plan.noted {
                self.store.note_unfinished(&plan.steps)?;
                *begun = true;
            }
            for step in &plan.steps {
                step.run(&mut self.store)?;
                *begun = true;
            }
            if plan.noted {
                self.store.clear_unfinished()?;
            }
        }
        Ok(())
    }
}

impl<S: PeekLockStore> TransactionSteps for PeekLockEngine<S> {
    fn begin(&mut self, now: Timestamp) -> Result<(), StoreFailure> {
        self.refresh()?;
        self.memory.rules().begin(now)?;
        // `begin` changes rows too: the first transaction may shorten leases.
        self.plan(false);
        Ok(())
    }

    fn apply(&mut self, op: &Op, handed_in: Timestamp) -> Result<Answer, ApplyError> {
        let answer = self.memory.rules().apply(op, handed_in)?;
        self.plan(matches!(op, Op::CommitRound(_)));
        Ok(answer)
    }

    fn promote(&mut self) -> Result<Vec<DeadLetterNote>, StoreFailure> {
        let notes = self.memory.rules().promote()?;
        self.plan(false);
        Ok(notes)
    }

    fn shorten_leases(&mut self) -> Result<(), StoreFailure> {
        self.memory.rules().shorten_leases()?;
        self.plan(false);
        Ok(())
    }

    fn move_leases(&mut self, by: Duration) -> Result<(), StoreFailure> {
        self.memory.rules().move_leases(by)?;
        self.plan(false);
        Ok(())
    }

    fn claim_instances(
        &mut self,
        fetch: &InstanceFetch,
        nonce: u128,
    ) -> Result<Claimed<OrchestrationClaim>, StoreFailure> {
        let claimed = self.memory.rules().claim_instances(fetch, nonce)?;
        self.plan(false);
        Ok(claimed)
    }

    fn claim_activities(
        &mut self,
        fetch: &ActivityFetch,
        nonce: u128,
    ) -> Result<Claimed<WorkClaim>, StoreFailure> {
        let claimed = self.memory.rules().claim_activities(fetch, nonce)?;
        self.plan(false);
        Ok(claimed)
    }

    fn commit(&mut self) -> Result<(), StoreFailure> {
        let mut begun = false;
        self.carry_out(&mut begun).map_err(|failure| {
            self.stale = true;
            // Part of the operation may be stored. Recovery stores the rest, or the caller repeats the operation.
            let class = if begun { FailureClass::OutcomeUnknown } else { failure.class };
            StoreFailure { class, ..failure }
        })?;
        self.memory.rules().commit()
    }

    /// After a failed step the rows are read again, because other steps may have been carried out.
    fn rollback(&mut self) {
        self.planned.clear();
        self.memory.rules().rollback();
        if let Err(failure) = self.refresh() {
            tracing::warn!(target: "duroxide::providers::peek_lock", %failure, "the store cannot be read again yet");
        }
    }

    fn nodes(&mut self) -> Result<Vec<StoredNode>, StoreFailure> {
        self.memory.rules().nodes()
    }
}

impl<S: PeekLockStore> StoreEngine for PeekLockEngine<S> {
    fn transact(&mut self, batch: &Batch<'_>) -> Result<Done, Fault> {
        self.transact_in_steps(batch)
    }

    fn next_wake(&mut self, now: Timestamp) -> Result<Option<Timestamp>, StoreFailure> {
        StoreEngine::next_wake(&mut self.memory, now)
    }

    fn changed_elsewhere(&mut self) -> Result<bool, StoreFailure> {
        self.refresh()?;
        Ok(std::mem::take(&mut self.reloaded))
    }

    fn reopen(&mut self) -> Result<(), StoreFailure> {
        self.read_store()
    }
}
