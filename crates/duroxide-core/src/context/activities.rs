//! Scheduling activities: plain, typed, on a session, with retries.

use std::{future::Future, panic::Location};

use serde::{Serialize, de::DeserializeOwned};

use super::{
    OrchestrationContext, TextOrigin, encode_or_panic, into_result, into_typed_result, retries::RetryEnd,
};
use crate::{
    Action, CallKind, DurableFuture, RetryOptions, codec,
    engine::{Caller, Value},
};

const OUTPUT: &str = "output of activity";
const TIMED_OUT: &str = "timeout: activity timed out";

/// # Activities: where side effects happen
impl OrchestrationContext {
    /// Calls an activity.
    #[track_caller]
    pub fn schedule_activity(
        &self,
        name: impl Into<String>,
        input: impl Into<String>,
    ) -> DurableFuture<Result<String, String>> {
        self.call_activity(ActivityRequest::new(name, input), into_result)
    }

    /// Calls an activity with a typed input and output.
    ///
    /// A value whose JSON is a string is written as the bare text; see [`codec`](crate::codec) for what that loses.
    ///
    /// # Panics
    /// If the input has no JSON form.
    #[track_caller]
    pub fn schedule_activity_typed<In: Serialize, Out: DeserializeOwned + Send + 'static>(
        &self,
        name: impl Into<String>,
        input: &In,
    ) -> DurableFuture<Result<Out, String>> {
        let name = name.into();
        let origin = self.origin(OUTPUT, &name);
        self.call_activity(ActivityRequest::new(name, encode_or_panic(input)), into_typed_result(origin))
    }

    /// Calls an activity of a session: activities of one session run on one worker while it lives.
    #[track_caller]
    pub fn schedule_activity_on_session(
        &self,
        name: impl Into<String>,
        input: impl Into<String>,
        session_id: impl Into<String>,
    ) -> DurableFuture<Result<String, String>> {
        self.call_activity(ActivityRequest::new(name, input).on_session(session_id), into_result)
    }

    /// Calls an activity of a session with a typed input and output.
    ///
    /// A value whose JSON is a string is written as the bare text; see [`codec`](crate::codec) for what that loses.
    ///
    /// # Panics
    /// If the input has no JSON form.
    #[track_caller]
    pub fn schedule_activity_on_session_typed<In: Serialize, Out: DeserializeOwned + Send + 'static>(
        &self,
        name: impl Into<String>,
        input: &In,
        session_id: impl Into<String>,
    ) -> DurableFuture<Result<Out, String>> {
        let name = name.into();
        let origin = self.origin(OUTPUT, &name);
        let request = ActivityRequest::new(name, encode_or_panic(input)).on_session(session_id);
        self.call_activity(request, into_typed_result(origin))
    }

    /// Calls an activity until it succeeds, with the attempts and delays of the policy. Returns the last
    /// error. Not retried are `timeout: activity timed out` (see
    /// [`RetryPolicy::with_timeout`](crate::RetryPolicy::with_timeout)) and errors that the activity made with
    /// [`not_retryable`](crate::not_retryable).
    #[track_caller]
    pub fn schedule_activity_with_retry(
        &self,
        name: impl Into<String>,
        input: impl Into<String>,
        policy: impl Into<RetryOptions>,
    ) -> impl Future<Output = Result<String, String>> {
        self.retry_text(ActivityRequest::new(name, input), policy.into())
    }

    /// [`schedule_activity_with_retry`](Self::schedule_activity_with_retry) with a typed input and output.
    ///
    /// A value whose JSON is a string is written as the bare text; see [`codec`](crate::codec) for what that loses.
    ///
    /// # Panics
    /// If the input has no JSON form.
    #[track_caller]
    pub fn schedule_activity_with_retry_typed<In: Serialize, Out: DeserializeOwned>(
        &self,
        name: impl Into<String>,
        input: &In,
        policy: impl Into<RetryOptions>,
    ) -> impl Future<Output = Result<Out, String>> {
        let name = name.into();
        let origin = self.origin(OUTPUT, &name);
        self.retry_typed(ActivityRequest::new(name, encode_or_panic(input)), policy.into(), origin)
    }

    /// [`schedule_activity_with_retry`](Self::schedule_activity_with_retry) on a session.
    #[track_caller]
    pub fn schedule_activity_with_retry_on_session(
        &self,
        name: impl Into<String>,
        input: impl Into<String>,
        policy: impl Into<RetryOptions>,
        session_id: impl Into<String>,
    ) -> impl Future<Output = Result<String, String>> {
        self.retry_text(ActivityRequest::new(name, input).on_session(session_id), policy.into())
    }

    /// [`schedule_activity_with_retry_on_session`](Self::schedule_activity_with_retry_on_session) with a typed
    /// input and output.
    ///
    /// A value whose JSON is a string is written as the bare text; see [`codec`](crate::codec) for what that loses.
    ///
    /// # Panics
    /// If the input has no JSON form.
    #[track_caller]
    pub fn schedule_activity_with_retry_on_session_typed<In: Serialize, Out: DeserializeOwned>(
        &self,
        name: impl Into<String>,
        input: &In,
        policy: impl Into<RetryOptions>,
        session_id: impl Into<String>,
    ) -> impl Future<Output = Result<Out, String>> {
        let name = name.into();
        let origin = self.origin(OUTPUT, &name);
        let request = ActivityRequest::new(name, encode_or_panic(input)).on_session(session_id);
        self.retry_typed(request, policy.into(), origin)
    }

    pub(crate) fn call_activity<T>(
        &self,
        request: ActivityRequest,
        convert: impl FnOnce(Value) -> T + Send + 'static,
    ) -> DurableFuture<T> {
        let ActivityRequest { name, input, session_id, tag, keeps_key: _, location } = request;
        let called = name.clone();
        let action = Action::CallActivity { scheduling_event_id: 0, name, input, session_id, tag };
        self.call_at(location, CallKind::Activity, &called, action, convert)
    }

    /// Retries a call that returns the texts of errors.
    async fn retry_text(&self, request: ActivityRequest, options: RetryOptions) -> Result<String, String> {
        let first = self.first_attempt(&request, &options);
        self.retry(request, options, first, |call| call, |_| true).await.map_err(|end| match end {
            RetryEnd::Failed(details) => details.display_message(),
            RetryEnd::TimedOut => TIMED_OUT.to_owned(),
        })
    }

    async fn retry_typed<Out: DeserializeOwned>(
        &self,
        request: ActivityRequest,
        options: RetryOptions,
        origin: TextOrigin,
    ) -> Result<Out, String> {
        let output = self.retry_text(request, options).await?;
        codec::decode_at(&output, || origin.to_string())
    }
}

/// A call of an activity, which may be made several times.
#[derive(Debug, Clone)]
pub(crate) struct ActivityRequest {
    pub(crate) name: String,
    pub(crate) input: String,
    pub(crate) session_id: Option<String>,
    pub(crate) tag: Option<String>,
    /// Later attempts have the idempotency key of the first. Calls by name keep the work items that they always had.
    pub(crate) keeps_key: bool,
    /// The call in the user's code.
    pub(crate) location: Caller,
}

impl ActivityRequest {
    #[track_caller]
    pub(crate) fn new(name: impl Into<String>, input: impl Into<String>) -> Self {
        let location = Location::caller();
        Self {
            name: name.into(),
            input: input.into(),
            session_id: None,
            tag: None,
            keeps_key: false,
            location,
        }
    }

    pub(crate) fn on_session(self, session_id: impl Into<String>) -> Self {
        Self { session_id: Some(session_id.into()), ..self }
    }
}
