//! [`ActivityContext`]: what an activity knows about its run.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::{
    Client,
    dispatch::{ActivityRun, InProgressGuard},
    observability::activity_span,
};

/// What an activity knows about itself, and how it learns that nobody wants its result any more.
#[derive(Debug, Clone)]
pub struct ActivityContext {
    call: Arc<ActivityCall>,
}

/// One run of an activity: everything its context tells.
#[derive(Debug)]
pub(crate) struct ActivityCall {
    /// The instance that scheduled it.
    pub(crate) instance_id: String,
    /// The execution that scheduled it.
    pub(crate) execution_id: u64,
    /// The name of that orchestration.
    pub(crate) orchestration_name: String,
    /// The handler version of that orchestration.
    pub(crate) orchestration_version: String,
    /// The activity's name.
    pub(crate) activity_name: String,
    /// The event id of its schedule.
    pub(crate) activity_id: u64,
    /// The slot that runs it.
    pub(crate) worker_id: String,
    /// The session it belongs to.
    pub(crate) session_id: Option<String>,
    /// Its routing tag.
    pub(crate) tag: Option<String>,
    /// How often it has been fetched.
    pub(crate) attempt: u32,
    /// Fires when the result is no longer wanted.
    pub(crate) cancellation: CancellationToken,
    /// A client on the same store.
    pub(crate) client: Client,
    /// Tells a shutdown that something may still run for this activity.
    pub(crate) code: Option<Arc<InProgressGuard<ActivityRun>>>,
}

/// One event on `duroxide::activity`. The level is part of a call site's static data, so each level is its own.
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

    /// The span in which its code runs.
    pub(crate) fn span(&self, attempt_count: u32) -> tracing::Span {
        activity_span(&self.call, attempt_count)
    }

    /// Keeps the entry of the running code, as the context itself does.
    pub(crate) fn code(&self) -> Option<Arc<InProgressGuard<ActivityRun>>> {
        self.call.code.clone()
    }

    /// The instance that scheduled this activity.
    pub fn instance_id(&self) -> &str {
        &self.call.instance_id
    }

    /// The execution that scheduled it.
    pub fn execution_id(&self) -> u64 {
        self.call.execution_id
    }

    /// The name of the orchestration that scheduled it.
    pub fn orchestration_name(&self) -> &str {
        &self.call.orchestration_name
    }

    /// The handler version of the orchestration that scheduled it.
    pub fn orchestration_version(&self) -> &str {
        &self.call.orchestration_version
    }

    /// This activity's name.
    pub fn activity_name(&self) -> &str {
        &self.call.activity_name
    }

    /// The worker slot that runs it.
    pub fn worker_id(&self) -> &str {
        &self.call.worker_id
    }

    /// The session it belongs to.
    pub fn session_id(&self) -> Option<&str> {
        self.call.session_id.as_deref()
    }

    /// Its routing tag.
    pub fn tag(&self) -> Option<&str> {
        self.call.tag.as_deref()
    }

    /// Which attempt to run the activity this is, counted from 1. Attempts that were given back without counting, as at a
    /// shutdown, have the same number as the next one. A retry by a `RetryPolicy` is a new activity, which starts at 1 again.
    pub fn attempt(&self) -> u32 {
        self.call.attempt
    }

    /// Logs at INFO with the fields that say which activity speaks.
    pub fn trace_info(&self, message: impl Into<String>) {
        trace_activity!(info, self.call, message.into());
    }

    /// Logs at WARN.
    pub fn trace_warn(&self, message: impl Into<String>) {
        trace_activity!(warn, self.call, message.into());
    }

    /// Logs at ERROR.
    pub fn trace_error(&self, message: impl Into<String>) {
        trace_activity!(error, self.call, message.into());
    }

    /// Logs at DEBUG.
    pub fn trace_debug(&self, message: impl Into<String>) {
        trace_activity!(debug, self.call, message.into());
    }

    /// Whether the activity is asked to stop. It then has a grace period to clean up and return; what it returns is the
    /// outcome if its caller waits for it with `cancel_and_wait`, and is discarded otherwise.
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
            orchestration_name: "Order".to_owned(),
            orchestration_version: "1.0.0".to_owned(),
            activity_name: "Charge".to_owned(),
            activity_id: 5,
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
    fn an_activity_knows_who_called_it() {
        let ctx = ActivityContext::new(charge_on(FakeStore::silent()));
        assert_eq!((ctx.instance_id(), ctx.execution_id()), ("order-7", 2));
        assert_eq!((ctx.orchestration_name(), ctx.orchestration_version()), ("Order", "1.0.0"));
        assert_eq!((ctx.activity_name(), ctx.worker_id()), ("Charge", "work-0-abc"));
        assert_eq!((ctx.session_id(), ctx.tag()), (Some("s-1"), None));
        assert_eq!(ctx.attempt(), 3);
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
