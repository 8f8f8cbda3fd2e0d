//! Calling an activity until it succeeds, as a policy says.

mod policy;

use std::{future::Future, time::Duration};

pub(crate) use self::policy::without_not_retryable;
pub use self::policy::{BackoffStrategy, RetryOptions, RetryPolicy, is_not_retryable, not_retryable};
use super::{OrchestrationContext, activities::ActivityRequest};
use crate::{
    DurableFuture, Either2, ErrorDetails, RunOptions,
    engine::{Identity, Value},
    shortened_reason,
};

/// Why a retried call has no result.
#[derive(Debug)]
pub(crate) enum RetryEnd {
    /// The last attempt failed with this.
    Failed(Box<ErrorDetails>),
    /// An attempt took longer than `RetryPolicy::timeout`.
    TimedOut,
}

type AttemptResult = Result<String, Box<ErrorDetails>>;

/// The calls of one attempt. They are made before anything is awaited.
pub(crate) struct Attempt<C = DurableFuture<AttemptResult>> {
    call: C,
    deadline: Option<DurableFuture<()>>,
}

impl Attempt {
    /// The same attempt, whose call is kept elsewhere.
    pub(crate) fn kept<C>(self, keep: impl FnOnce(DurableFuture<AttemptResult>) -> C) -> Attempt<C> {
        Attempt { call: keep(self.call), deadline: self.deadline }
    }
}

impl OrchestrationContext {
    /// Makes the first attempt of a call, which [`Self::retry`] continues.
    pub(crate) fn first_attempt(&self, request: &ActivityRequest, options: &RetryOptions) -> Attempt {
        self.attempt(
            request,
            RunOptions { attempt_timeout: options.attempt_timeout, retry_of: None },
            options,
        )
    }

    /// Repeats a call while its attempts fail, the policy has attempts left and `again` wants another one. `keep` is given
    /// the call of each attempt and returns a future of its result.
    pub(crate) async fn retry<C: Future<Output = AttemptResult>>(
        &self,
        request: ActivityRequest,
        options: RetryOptions,
        first: Attempt<C>,
        keep: impl Fn(DurableFuture<AttemptResult>) -> C + Send,
        again: impl Fn(&ErrorDetails) -> bool + Send,
    ) -> Result<String, RetryEnd> {
        let policy = &options.policy;
        let mut current = first;
        let mut run = RunOptions { attempt_timeout: options.attempt_timeout, retry_of: None };
        let mut attempt = 1;
        loop {
            let Some(result) = self.outcome(current).await else { return Err(RetryEnd::TimedOut) };
            if request.keeps_key {
                run.retry_of.get_or_insert(self.last_resolved());
            }
            let delay = policy.delay_for_attempt(attempt);
            match result {
                Ok(output) => return Ok(output),
                Err(details)
                    if attempt < policy.max_attempts && !self.is_final(&details) && again(&details) =>
                {
                    self.log_retry(&request.name, attempt, policy.max_attempts, delay, &details);
                }
                Err(details) => return Err(RetryEnd::Failed(details)),
            }
            if !delay.is_zero() {
                self.timer_at(request.location, delay).await;
            }
            attempt += 1;
            current = self.attempt(&request, run, &options).kept(&keep);
        }
    }

    fn attempt(&self, request: &ActivityRequest, run: RunOptions, options: &RetryOptions) -> Attempt {
        let call = self.call_activity(request.clone(), Value::into_outcome).with_run_options(run);
        let deadline = options.policy.timeout.map(|timeout| self.timer_at(request.location, timeout));
        Attempt { call, deadline }
    }

    /// The result of an attempt; `None` if its deadline came first.
    async fn outcome<C: Future<Output = AttemptResult>>(&self, attempt: Attempt<C>) -> Option<AttemptResult> {
        let Attempt { call, deadline } = attempt;
        let Some(deadline) = deadline else { return Some(call.await) };
        match self.select2(call, deadline).await {
            Either2::First(result) => Some(result),
            Either2::Second(()) => None,
        }
    }

    /// The schedule of the call that returned its value last.
    fn last_resolved(&self) -> u64 {
        self.shared.lock().last_resolved().map_or(0, |resolved| resolved.event_id)
    }

    /// Whether an error ends the retries regardless of the policy. Executions of older versions retry it (S2.16).
    fn is_final(&self, details: &ErrorDetails) -> bool {
        self.shared.identity.generation.has_final_errors() && is_not_retryable(&details.display_message())
    }

    /// Logs that an activity runs again, with the schedule of the attempt that failed. The failure itself is logged where
    /// the activity ran.
    fn log_retry(
        &self,
        activity_name: &str,
        failed_attempts: u32,
        max_attempts: u32,
        delay: Duration,
        details: &ErrorDetails,
    ) {
        if self.is_replaying() {
            return;
        }
        let activity_id = self.last_resolved();
        let Identity { instance, execution_id, name, version, .. } = &self.shared.identity;
        tracing::info!(
            target: "duroxide::runtime",
            instance,
            execution_id,
            orchestration_name = name,
            version,
            activity_name,
            activity_id,
            failed_attempts,
            max_attempts,
            delay_ms = delay.as_millis() as u64,
            reason = shortened_reason(&details.display_message()),
            "retrying a failed activity"
        );
    }
}
