//! Rules that an engine can break.

use duroxide_core::Timestamp;
use duroxide_provider::{
    OrchestrationClaim, WorkClaim,
    store::{
        ActivityFetch, Answer, ApplyError, Claimed, InstanceFetch, Op, PreparedExecution, PreparedRound,
        Refusal, StoreFailure, TransactionSteps,
    },
};

/// One broken rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BrokenRule {
    IgnoresVersionFilter,
    UsesFirstRangeOnly,
    ForgetsPins,
    ForgetsAttempts,
    KeepsIgnoredAttempts,
    IgnoresAbandonDelay,
    EndsLeasesEarly,
    AcceptsAfterLease,
    RepeatsTokens,
    CommitsHalfOfARefusedRound,
    AcceptsStoredEventIds,
    SkipsUndecodableEvents,
    KeepsCancelledActivities,
    KeepsCancelledTimers,
    ForgetsNextExecution,
    ForgetsKeys,
    LosesStateChanges,
    LosesRoundMessages,
    LosesActivityResults,
    IgnoresTags,
    IgnoresSessionOwners,
    IgnoresHandlers,
    DeletesRunningInstances,
}

impl BrokenRule {
    pub(crate) fn apply(
        self,
        engine: &mut impl TransactionSteps,
        mut op: Op,
        handed_in: Timestamp,
    ) -> Result<Answer, ApplyError> {
        self.alter(&mut op);
        let handed_in = if self == Self::AcceptsAfterLease { Timestamp::ZERO } else { handed_in };
        let answer = engine.apply(&op, handed_in);
        match (self, op, &answer) {
            (Self::CommitsHalfOfARefusedRound, Op::CommitRound(round), Err(_)) => {
                for message in round.execution.messages {
                    engine.apply(&Op::EnqueueMessage(message), handed_in)?;
                }
                for activity in round.execution.activities {
                    engine.apply(&Op::EnqueueActivity(activity), handed_in)?;
                }
                answer
            }
            (
                Self::AcceptsStoredEventIds,
                _,
                Err(ApplyError::Refused(Refusal::DuplicateEvent { instance, .. })),
            ) => Ok(Answer::RoundCommitted { instance: instance.clone(), ended: None }),
            _ => answer,
        }
    }

    fn alter(self, op: &mut Op) {
        match op {
            Op::CommitRound(round) => self.alter_round(round),
            Op::AbandonInstance { delay, ignore_attempt, .. }
            | Op::AbandonActivity { delay, ignore_attempt, .. } => {
                if self == Self::IgnoresAbandonDelay {
                    *delay = None;
                }
                if self == Self::KeepsIgnoredAttempts {
                    *ignore_attempt = false;
                }
            }
            Op::EnqueueMessage(message) if self == Self::ForgetsKeys => message.key = None,
            Op::AckActivity { completion, .. } if self == Self::LosesActivityResults => *completion = None,
            Op::DeleteTree { force, .. } | Op::DeleteInstances { force, .. }
                if self == Self::DeletesRunningInstances =>
            {
                *force = true;
            }
            _ => {}
        }
    }

    fn alter_round(self, round: &mut PreparedRound) {
        self.alter_execution(&mut round.execution);
        if let Some(next) = &mut round.next {
            self.alter_execution(next);
        }
        match self {
            Self::KeepsCancelledActivities => round.cancelled_activities.clear(),
            Self::KeepsCancelledTimers => round.cancelled_timers.clear(),
            Self::ForgetsNextExecution => round.next = None,
            _ => {}
        }
    }

    fn alter_execution(self, execution: &mut PreparedExecution) {
        match self {
            Self::ForgetsPins => execution.metadata.pinned_duroxide_version = None,
            Self::LosesStateChanges => execution.changes.clear(),
            Self::LosesRoundMessages => execution.messages.clear(),
            Self::ForgetsKeys => execution.messages.iter_mut().for_each(|message| message.key = None),
            _ => {}
        }
    }

    pub(crate) fn claim_instances(
        self,
        engine: &mut impl TransactionSteps,
        mut fetch: InstanceFetch,
        nonce: u128,
    ) -> Result<Claimed<OrchestrationClaim>, StoreFailure> {
        match self {
            Self::IgnoresVersionFilter => fetch.versions = None,
            Self::UsesFirstRangeOnly => fetch.versions.iter_mut().for_each(|ranges| ranges.truncate(1)),
            Self::IgnoresHandlers => fetch.handlers = None,
            Self::EndsLeasesEarly => fetch.lock_timeout /= 4,
            _ => {}
        }
        let mut claimed = engine.claim_instances(&fetch, self.nonce(nonce))?;
        if self == Self::ForgetsAttempts {
            claimed.items.iter_mut().for_each(|claim| claim.attempt_count = 1);
        }
        Ok(claimed)
    }

    pub(crate) fn claim_activities(
        self,
        engine: &mut impl TransactionSteps,
        mut fetch: ActivityFetch,
        nonce: u128,
    ) -> Result<Claimed<WorkClaim>, StoreFailure> {
        match self {
            Self::IgnoresTags => fetch.tag_filter = duroxide_provider::TagFilter::Any,
            Self::IgnoresSessionOwners => {
                fetch.session.iter_mut().for_each(|session| "anyone".clone_into(&mut session.owner_id));
            }
            Self::IgnoresHandlers => fetch.handlers = None,
            Self::EndsLeasesEarly => fetch.lock_timeout /= 4,
            _ => {}
        }
        let mut claimed = engine.claim_activities(&fetch, self.nonce(nonce))?;
        if self == Self::ForgetsAttempts {
            claimed.items.iter_mut().for_each(|claim| claim.attempt_count = 1);
        }
        Ok(claimed)
    }

    fn nonce(self, nonce: u128) -> u128 {
        if self == Self::RepeatsTokens { 0 } else { nonce }
    }
}
