//! [`ActivityContext`]: the view that an activity has of its run.

use std::sync::Arc;

use duroxide_core::TraceContext;
use tokio_util::sync::CancellationToken;

use crate::{
    Client,
    dispatch::{ActivityRun, InProgressGuard},
    observability::activity_span,
};

/// The identity of an activity's run, its cancellation signal, its log methods and a client.
#[derive(Debug, Clone)]
pub struct ActivityContext {
    call: Arc<ActivityCall>,
}

/// A run of an activity without a node, for the test kit.
#[doc(hidden)]
#[derive(Debug, Clone)]
pub struct DetachedCall {
    pub instance_id: String,
    pub execution_id: u64,
    pub orchestration_name: String,
    pub orchestration_version: String,
    pub activity_name: String,
    pub activity_id: u64,
    pub worker_id: String,
    pub session_id: Option<String>,
    pub tag: Option<String>,
    pub attempt: u32,
    pub cancellation: CancellationToken,
}

/// One run of an activity.
#[derive(Debug)]
pub(crate) struct ActivityCall {
    pub(crate) instance_id: String,
    pub(crate) execution_id: u64,
    pub(crate) orchestration_name: Arc<str>,
    pub(crate) orchestration_version: Arc<str>,
    pub(crate) activity_name: String,
    /// The id of the event that scheduled the activity.
    pub(crate) activity_id: u64,
    /// The id of the event that scheduled the first attempt of the call.
    pub(crate) first_activity_id: u64,
    /// The worker slot that runs it.
    pub(crate) worker_id: String,
    pub(crate) session_id: Option<String>,
    /// The routing tag.
    pub(crate) tag: Option<String>,
    /// The number of fetches so far.
    pub(crate) attempt: u32,
    /// Fires when the activity is asked to stop.
    pub(crate) cancellation: CancellationToken,
    pub(crate) client: Client,
    /// While a clone exists, a shutdown waits for the code of this activity.
    pub(crate) code: Option<Arc<InProgressGuard<ActivityRun>>>,
}

/// Logs one event on `duroxide::activity`. A macro, because the level is part of a call site's static data.
macro_rules! trace_activity {
    ($level:ident, $call:expr, $message:expr) => {
        tracing::$level!(
            target: "duroxide::activity",
            instance_id = %$call.instance_id,
            execution_id = $call.execution_id,
            orchestration_name = %$call.orchestration_name,
            orchestration_version = %$call.orchestration_version,
            activity_name = %$call.activity_name,
            activity_id = $call.activity_id,
            worker_id = %$call.worker_id,
            "{}",
            $message
        )
    };
}

impl ActivityContext {
    pub(crate) fn new(call: ActivityCall) -> Self {
        Self { call: Arc::new(call) }
    }

    /// The context of a run that no node makes, for the test kit.
    #[doc(hidden)]
    pub fn detached(call: DetachedCall, client: Client) -> Self {
        let DetachedCall { instance_id, execution_id, orchestration_name, orchestration_version, .. } = call;
        Self::new(ActivityCall {
            instance_id,
            execution_id,
            orchestration_name: orchestration_name.into(),
            orchestration_version: orchestration_version.into(),
            activity_name: call.activity_name,
            activity_id: call.activity_id,
            first_activity_id: call.activity_id,
            worker_id: call.worker_id,
            session_id: call.session_id,
            tag: call.tag,
            attempt: call.attempt,
            cancellation: call.cancellation,
            client,
            code: None,
        })
    }

    pub(crate) fn span(&self, attempt_count: u32, trace: Option<&TraceContext>) -> tracing::Span {
        activity_span(&self.call, attempt_count, trace)
    }

    /// A clone of the guard that a shutdown waits for.
    pub(crate) fn code(&self) -> Option<Arc<InProgressGuard<ActivityRun>>> {
        self.call.code.clone()
    }

    /// The instance that scheduled this activity.
    pub fn instance_id(&self) -> &str {
        &self.call.instance_id
    }

    /// The execution that scheduled this activity.
    pub fn execution_id(&self) -> u64 {
        self.call.execution_id
    }

    /// The name of the orchestration that scheduled this activity.
    pub fn orchestration_name(&self) -> &str {
        &self.call.orchestration_name
    }

    /// The handler version of the orchestration that scheduled this activity.
    pub fn orchestration_version(&self) -> &str {
        &self.call.orchestration_version
    }

    /// The name of this activity.
    pub fn activity_name(&self) -> &str {
        &self.call.activity_name
    }

    /// The worker slot that runs this activity.
    pub fn worker_id(&self) -> &str {
        &self.call.worker_id
    }

    /// The session of this activity.
    pub fn session_id(&self) -> Option<&str> {
        self.call.session_id.as_deref()
    }

    /// The routing tag of this activity.
    pub fn tag(&self) -> Option<&str> {
        self.call.tag.as_deref()
    }

    /// The number of this attempt to run the activity, counted from 1. An attempt that was abandoned without being
    /// charged, as at a shutdown, has the same number as the next one. A retry by a `RetryPolicy` is a new activity,
    /// which starts at 1 again.
    pub fn attempt(&self) -> u32 {
        self.call.attempt
    }

    /// A key that is the same in every attempt of the same call, and different for every other call: for a payment
    /// provider, say, that must see a repeated charge as the same one.
    ///
    /// Attempts are runs after a crash or a lost lease, and the retries of a typed call (`ctx.activity::<charge>(order)
    /// .retry(policy)`). A retry by `schedule_activity_with_retry` is a call of its own, with a key of its own.
    ///
    /// The key contains the id of the instance. An instance that is deleted and started again under the same id has the
    /// same keys again.
    pub fn idempotency_key(&self) -> String {
        let ActivityCall { instance_id, execution_id, first_activity_id, .. } = &*self.call;
        format!("{instance_id}/{execution_id}/{first_activity_id}")
    }

    /// Logs at INFO, with fields that identify the activity.
    pub fn trace_info(&self, message: impl Into<String>) {
        trace_activity!(info, self.call, message.into());
    }

    /// Logs at WARN, with fields that identify the activity.
    pub fn trace_warn(&self, message: impl Into<String>) {
        trace_activity!(warn, self.call, message.into());
    }

    /// Logs at ERROR, with fields that identify the activity.
    pub fn trace_error(&self, message: impl Into<String>) {
        trace_activity!(error, self.call, message.into());
    }

    /// Logs at DEBUG, with fields that identify the activity.
    pub fn trace_debug(&self, message: impl Into<String>) {
        trace_activity!(debug, self.call, message.into());
    }

    /// Whether the activity is asked to stop. It then has a grace period to clean up and return. The returned value is
    /// the outcome if the caller waits with `cancel_and_wait`, and is discarded otherwise.
    pub fn is_cancelled(&self) -> bool {
        self.call.cancellation.is_cancelled()
    }

    /// Resolves when the activity is asked to stop.
    pub async fn cancelled(&self) {
        self.call.cancellation.cancelled().await;
    }

    /// The token behind [`Self::cancelled`], to hand to other tasks.
    pub fn cancellation_token(&self) -> CancellationToken {
        self.call.cancellation.clone()
    }

    /// A client on the same store.
    pub fn get_client(&self) -> Client {
        self.call.client.clone()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;

    use tracing::Level;

    use super::*;
    use crate::fixture::{FakeStore, Logs};

    pub(crate) fn charge_on(store: Arc<FakeStore>) -> ActivityCall {
        ActivityCall {
            instance_id: "order-7".to_owned(),
            execution_id: 2,
            orchestration_name: "Order".into(),
            orchestration_version: "1.0.0".into(),
            activity_name: "Charge".to_owned(),
            activity_id: 5,
            first_activity_id: 5,
            worker_id: "work-0-abc".to_owned(),
            session_id: Some("s-1".to_owned()),
            tag: None,
            attempt: 3,
            cancellation: CancellationToken::new(),
            client: Client::new(store),
            code: None,
        }
    }

    #[test]
    fn an_activity_knows_its_caller() {
        let ctx = ActivityContext::new(charge_on(FakeStore::silent()));
        assert_eq!((ctx.instance_id(), ctx.execution_id()), ("order-7", 2));
        assert_eq!((ctx.orchestration_name(), ctx.orchestration_version()), ("Order", "1.0.0"));
        assert_eq!((ctx.activity_name(), ctx.worker_id()), ("Charge", "work-0-abc"));
        assert_eq!((ctx.session_id(), ctx.tag()), (Some("s-1"), None));
        assert_eq!(ctx.attempt(), 3);
        assert_eq!(ctx.idempotency_key(), "order-7/2/5", "the same in each attempt");
    }

    #[test]
    fn traces_say_which_activity_speaks() {
        let (logs, _guard) = Logs::capture();
        let ctx = ActivityContext::new(charge_on(FakeStore::silent()));
        ctx.trace_info("charging");
        ctx.trace_warn("slow");
        ctx.trace_error("declined");
        ctx.trace_debug("details");
        let lines = logs.lines();
        let levels_and_texts: Vec<_> = lines.iter().map(|line| (line.level, line.message.as_str())).collect();
        assert_eq!(
            levels_and_texts,
            [
                (Level::INFO, "charging"),
                (Level::WARN, "slow"),
                (Level::ERROR, "declined"),
                (Level::DEBUG, "details")
            ]
        );
        for line in lines {
            assert_eq!(line.target, "duroxide::activity");
            let expected = [
                ("activity_id", "5"),
                ("activity_name", "Charge"),
                ("execution_id", "2"),
                ("instance_id", "order-7"),
                ("orchestration_name", "Order"),
                ("orchestration_version", "1.0.0"),
                ("worker_id", "work-0-abc"),
            ];
            assert_eq!(line.field_pairs(), expected);
        }
    }

    /// 7.3
    #[tokio::test]
    async fn cancellation_reaches_every_clone_and_the_token() {
        let call = charge_on(FakeStore::silent());
        let runtime_side = call.cancellation.clone();
        let ctx = ActivityContext::new(call);
        let clone = ctx.clone();
        assert!(!clone.is_cancelled());
        runtime_side.cancel();
        clone.cancelled().await;
        assert!(ctx.is_cancelled() && ctx.cancellation_token().is_cancelled());
    }
}
