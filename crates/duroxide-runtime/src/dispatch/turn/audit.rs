//! Audits turns: replays a sample of them from scratch and compares.

use duroxide_core::{
    ErrorDetails, Event,
    engine::{Divergence, Ending, Turn, audit, end_without_code},
};
use duroxide_provider::LoadedExecution;
use tokio::sync::oneshot;
use tracing::error;

use super::{
    InstanceWork,
    commit::TurnResult,
    ending::{record_of, seed_of},
};
use crate::{
    AuditAction,
    dispatch::{
        decide::{EndTarget, Handlers},
        measure::End,
    },
};

/// The part of a random number that decides whether a turn is audited.
const RANDOM_BITS: u32 = 53;

impl InstanceWork {
    /// Replays the turn from scratch, if it is in the sample. A difference is reported, or fails the execution. `None` if
    /// the lock was lost meanwhile.
    pub(super) async fn audited(&mut self, mut result: Box<TurnResult>) -> Option<Box<TurnResult>> {
        let audit = self.node.options.audit;
        let random =
            (self.node.env.random() >> (u128::BITS - RANDOM_BITS)) as f64 / (1_u64 << RANDOM_BITS) as f64;
        if random >= audit.fraction {
            return Some(result);
        }
        let starts = seed_of(&result.turn.delta).is_some();
        let loaded = if starts { LoadedExecution::default() } else { self.load().await? };
        let Some(replay) = self.begin_replay(&result, &loaded) else { return Some(result) };
        let Ok(Err(difference)) = self.lease.renew_during(replay).await else { return Some(result) };
        let instance = &self.claim.instance;
        error!(
            target: "duroxide::runtime",
            instance, execution_id = result.facts.execution_id,
            orchestration_name = &*result.facts.name, version = &*result.facts.version,
            %difference, "audit: a replay of this turn differs from its live execution"
        );
        self.node.metrics.record_audit_difference();
        if audit.action == AuditAction::Fail {
            self.fail_audited(&mut result, loaded.history, &difference);
        }
        Some(result)
    }

    /// Starts a replay of the recorded history with this turn. Resolves to the first difference.
    fn begin_replay(
        &self,
        result: &TurnResult,
        loaded: &LoadedExecution,
    ) -> Option<oneshot::Receiver<Result<(), Box<Divergence>>>> {
        let (name, version) = (&result.facts.name, &result.facts.version);
        let (_, handler) = Handlers::find(&self.node.orchestrations, name, Some(version))?;
        let setup = self.setup(handler, loaded.kv_snapshot.clone().into_iter().collect());
        let history: Vec<Event> = loaded.history.iter().chain(&result.turn.delta).cloned().collect();
        let (answer, answered) = oneshot::channel();
        // User code runs on turn threads only.
        let _running = self.node.env.run_turn(Box::new(move || drop(answer.send(audit(history, setup)))));
        Some(answered)
    }

    /// Puts a failure in the place of the turn.
    fn fail_audited(&self, result: &mut TurnResult, history: Vec<Event>, difference: &Divergence) {
        let target = seed_of(&result.turn.delta).map_or(EndTarget::Stored, EndTarget::Unstarted);
        let record = record_of(target, &self.claim.instance, result.facts.execution_id, history, None);
        let details = ErrorDetails::nondeterminism(format!("audit: {difference}"));
        let turn: Turn = end_without_code(record, Ending::Failed(details), self.node.now());
        result.facts.end = End::of(&turn.outcome);
        *result.turn = turn;
        self.node.drop_on_turn_thread(result.live.take().map(|live| *live));
    }
}
