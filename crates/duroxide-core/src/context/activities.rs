//! Scheduling activities: plain, typed, on a session, with retries.

use std::time::Duration;

use serde::{Serialize, de::DeserializeOwned};

use super::{OrchestrationContext, encode_or_panic, into_result, into_typed_result};
use crate::{
    Action, CallKind, DurableFuture, Either2, RetryOptions, codec,
    engine::{Identity, Value},
    is_not_retryable, shortened_reason,
};

const OUTPUT: &str = "output of activity";
const TIMED_OUT: &str = "timeout: activity timed out";

/// # Activities: where side effects happen
impl OrchestrationContext {
    /// Calls an activity.
    pub fn schedule_activity(
        &self,
        name: impl Into<String>,
        input: impl Into<String>,
    ) -> DurableFuture<Result<String, String>> {
        self.activity(name.into(), input.into(), None, into_result)
    }

    /// Calls an activity with a typed input and output.
    ///
    /// # Panics
    /// If the input has no JSON form.
    pub fn schedule_activity_typed<In: Serialize, Out: DeserializeOwned + Send + 'static>(
        &self,
        name: impl Into<String>,
        input: &In,
    ) -> DurableFuture<Result<Out, String>> {
        let name = name.into();
        let place = self.place(OUTPUT, &name);
        self.activity(name, encode_or_panic(input), None, into_typed_result(place))
    }

    /// Calls an activity of a session: activities of one session run on one worker while it lives.
    pub fn schedule_activity_on_session(
        &self,
        name: impl Into<String>,
        input: impl Into<String>,
        session_id: impl Into<String>,
    ) -> DurableFuture<Result<String, String>> {
        self.activity(name.into(), input.into(), Some(session_id.into()), into_result)
    }

    /// Calls an activity of a session with a typed input and output.
    ///
    /// # Panics
    /// If the input has no JSON form.
    pub fn schedule_activity_on_session_typed<In: Serialize, Out: DeserializeOwned + Send + 'static>(
        &self,
        name: impl Into<String>,
        input: &In,
        session_id: impl Into<String>,
    ) -> DurableFuture<Result<Out, String>> {
        let name = name.into();
        let place = self.place(OUTPUT, &name);
        self.activity(name, encode_or_panic(input), Some(session_id.into()), into_typed_result(place))
    }

    /// Calls an activity until it succeeds, as often and with such waits as the policy says. Returns the last
    /// error. Neither `timeout: activity timed out` (see [`RetryPolicy::with_timeout`](crate::RetryPolicy::with_timeout)) nor an error that the activity
    /// made with [`not_retryable`](crate::not_retryable) is retried.
    pub async fn schedule_activity_with_retry(
        &self,
        name: impl Into<String>,
        input: impl Into<String>,
        policy: impl Into<RetryOptions>,
    ) -> Result<String, String> {
        self.retry(name.into(), input.into(), &policy.into(), None).await
    }

    /// [`schedule_activity_with_retry`](Self::schedule_activity_with_retry) with a typed input and output.
    ///
    /// # Panics
    /// If the input has no JSON form.
    pub async fn schedule_activity_with_retry_typed<In: Serialize, Out: DeserializeOwned>(
        &self,
        name: impl Into<String>,
        input: &In,
        policy: impl Into<RetryOptions>,
    ) -> Result<Out, String> {
        let name = name.into();
        let place = self.place(OUTPUT, &name);
        let output = self.retry(name, encode_or_panic(input), &policy.into(), None).await?;
        codec::decode_at(&output, || place.to_string())
    }

    /// [`schedule_activity_with_retry`](Self::schedule_activity_with_retry) on a session.
    pub async fn schedule_activity_with_retry_on_session(
        &self,
        name: impl Into<String>,
        input: impl Into<String>,
        policy: impl Into<RetryOptions>,
        session_id: impl Into<String>,
    ) -> Result<String, String> {
        self.retry(name.into(), input.into(), &policy.into(), Some(session_id.into())).await
    }

    /// [`schedule_activity_with_retry_on_session`](Self::schedule_activity_with_retry_on_session) with a typed
    /// input and output.
    ///
    /// # Panics
    /// If the input has no JSON form.
    pub async fn schedule_activity_with_retry_on_session_typed<In: Serialize, Out: DeserializeOwned>(
        &self,
        name: impl Into<String>,
        input: &In,
        policy: impl Into<RetryOptions>,
        session_id: impl Into<String>,
    ) -> Result<Out, String> {
        let (name, session_id) = (name.into(), Some(session_id.into()));
        let place = self.place(OUTPUT, &name);
        let output = self.retry(name, encode_or_panic(input), &policy.into(), session_id).await?;
        codec::decode_at(&output, || place.to_string())
    }

    pub(super) fn activity<T>(
        &self,
        name: String,
        input: String,
        session_id: Option<String>,
        convert: impl FnOnce(Value) -> T + Send + 'static,
    ) -> DurableFuture<T> {
        let called = name.clone();
        let action = Action::CallActivity { scheduling_event_id: 0, name, input, session_id, tag: None };
        self.call(CallKind::Activity, &called, action, convert)
    }

    async fn retry(
        &self,
        name: String,
        input: String,
        options: &RetryOptions,
        session_id: Option<String>,
    ) -> Result<String, String> {
        let RetryOptions { policy, attempt_timeout } = options;
        let mut attempt = 1;
        loop {
            let call = self
                .activity(name.clone(), input.clone(), session_id.clone(), into_result)
                .bounded(*attempt_timeout);
            let delay = policy.delay_for_attempt(attempt);
            match self.attempt(call, policy.timeout).await {
                Attempt::Done(Err(error)) if attempt < policy.max_attempts && !self.is_final(&error) => {
                    self.log_retry(&name, attempt, policy.max_attempts, delay, &error);
                }
                Attempt::Done(result) => return result,
                Attempt::TimedOut => return Err(TIMED_OUT.to_owned()),
            }
            if !delay.is_zero() {
                self.schedule_timer(delay).await;
            }
            attempt += 1;
        }
    }

    /// Whether an error ends the retries, whatever the policy says. Executions of older versions retry it (S2.16).
    fn is_final(&self, error: &str) -> bool {
        self.shared.identity.generation.has_final_errors() && is_not_retryable(error)
    }

    /// Logs that an activity runs again, with the schedule of the attempt that failed. The failure itself is logged where
    /// the activity ran.
    fn log_retry(
        &self,
        activity_name: &str,
        failed_attempts: u32,
        max_attempts: u32,
        delay: Duration,
        error: &str,
    ) {
        if self.is_replaying() {
            return;
        }
        let activity_id = self.shared.lock().last_resolved();
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
            reason = shortened_reason(error),
            "retrying a failed activity"
        );
    }

    async fn attempt(
        &self,
        call: DurableFuture<Result<String, String>>,
        timeout: Option<Duration>,
    ) -> Attempt {
        let Some(timeout) = timeout else { return Attempt::Done(call.await) };
        match self.select2(call, self.schedule_timer(timeout)).await {
            Either2::First(result) => Attempt::Done(result),
            Either2::Second(()) => Attempt::TimedOut,
        }
    }
}

enum Attempt {
    Done(Result<String, String>),
    TimedOut,
}
