//! Picks the execution to cache for an instance's next turn.

use duroxide_core::engine::Execution;
use duroxide_provider::{NextExecution, Round};

use super::InstanceWork;
use crate::{
    cache::CachedExecution,
    dispatch::{
        decide::{Handlers, incompatible_pin, recorded_handler},
        measure::{End, Facts},
    },
};

impl InstanceWork {
    /// The execution of the instance's next turn: the one that just ran, or the successor that its round has started.
    pub(super) fn execution_to_cache(
        &self,
        live: Box<CachedExecution>,
        facts: &Facts,
        round: &mut Round,
    ) -> Option<Box<CachedExecution>> {
        match facts.end {
            None => return Some(live),
            Some(End::Completed) => return None,
            Some(End::Failed(_) | End::ContinuedAsNew) => {}
        }
        let successor = round.next_execution.take().and_then(|next| self.successor_to_cache(&live, next));
        // Code that has not returned is still suspended, and dropping it runs user destructors.
        self.node.drop_on_turn_thread([*live]);
        successor
    }

    /// The successor that was just committed. Reading it back from the store would give the same execution, at a cost
    /// that grows with the messages it inherits (8.3).
    fn successor_to_cache(
        &self,
        predecessor: &CachedExecution,
        next: NextExecution,
    ) -> Option<Box<CachedExecution>> {
        let NextExecution { execution_id, history_delta, .. } = next;
        let (name, version) = recorded_handler(&history_delta)?;
        let (name, version) = (name.to_owned(), version.to_owned());
        let (_, handler) = Handlers::find(&self.node.orchestrations, &name, Some(&version))?;
        let position = predecessor.position.of_successor(&history_delta);
        let setup = self.setup(handler, predecessor.execution.key_values());
        let supported = &self.node.filter.supported_duroxide_versions;
        Some(Box::new(CachedExecution {
            replayable: incompatible_pin(&history_delta, supported).is_none(),
            execution: Execution::replay(history_delta, setup),
            execution_id,
            name,
            version,
            turns: 0,
            unreadable_pin: None,
            trace: predecessor.trace.clone(),
            position,
            steps: super::RunningSteps::default(),
        }))
    }
}
