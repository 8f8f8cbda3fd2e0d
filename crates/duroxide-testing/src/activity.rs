//! [`TestActivity`]: contexts for unit tests of activities.

use std::sync::Arc;

use duroxide_core::typed::Activity;
use duroxide_runtime::{ActivityContext, Client, DetachedCall};
use duroxide_store::MemoryProvider;
use tokio_util::sync::CancellationToken;

/// Builds an [`ActivityContext`], so that a unit test can call an activity without a node.
///
/// ```
/// # use duroxide_runtime::ActivityContext;
/// # use duroxide_testing::TestActivity;
/// async fn charge(ctx: ActivityContext, amount: u64) -> Result<String, String> {
///     match ctx.attempt() {
///         1 => Err("card reader is busy".to_owned()),
///         _ => Ok(format!("{amount} for {}, key {}", ctx.instance_id(), ctx.idempotency_key())),
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let run = TestActivity::new("charge").instance("order-1");
/// assert!(charge(run.clone().context(), 700).await.is_err());
/// let again = charge(run.attempt(2).context(), 700).await;
/// assert_eq!(again.unwrap(), "700 for order-1, key order-1/1/2");
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct TestActivity {
    call: DetachedCall,
    client: Option<Client>,
}

impl TestActivity {
    /// The first attempt of an activity of this name: of instance `test`, execution 1, scheduled by event 2.
    pub fn new(name: impl Into<String>) -> Self {
        let call = DetachedCall {
            instance_id: "test".to_owned(),
            execution_id: 1,
            orchestration_name: "Test".to_owned(),
            orchestration_version: "1.0.0".to_owned(),
            activity_name: name.into(),
            activity_id: 2,
            worker_id: "test-worker".to_owned(),
            session_id: None,
            tag: None,
            attempt: 1,
            cancellation: CancellationToken::new(),
        };
        Self { call, client: None }
    }

    /// The first attempt of a typed activity.
    pub fn of<A: Activity>() -> Self {
        Self::new(A::NAME)
    }

    /// The instance that scheduled the activity.
    pub fn instance(mut self, id: impl Into<String>) -> Self {
        self.call.instance_id = id.into();
        self
    }

    /// The orchestration that scheduled the activity.
    pub fn orchestration(mut self, name: impl Into<String>, version: impl Into<String>) -> Self {
        self.call.orchestration_name = name.into();
        self.call.orchestration_version = version.into();
        self
    }

    /// The id of the event that scheduled the activity. Each call of an instance has its own event.
    pub fn scheduled_by(mut self, event_id: u64) -> Self {
        self.call.activity_id = event_id;
        self
    }

    /// The number of this attempt, counted from 1.
    pub fn attempt(mut self, attempt: u32) -> Self {
        self.call.attempt = attempt;
        self
    }

    /// The session of the activity.
    pub fn session(mut self, id: impl Into<String>) -> Self {
        self.call.session_id = Some(id.into());
        self
    }

    /// The routing tag of the activity.
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.call.tag = Some(tag.into());
        self
    }

    /// The client that the activity's context returns. The default is a client on an empty store.
    pub fn client(mut self, client: Client) -> Self {
        self.client = Some(client);
        self
    }

    /// The cancellation token of the activity. Cancelling it asks the activity to stop, before or during the call.
    pub fn cancellation(&self) -> CancellationToken {
        self.call.cancellation.clone()
    }

    /// The context to call the activity with.
    pub fn context(self) -> ActivityContext {
        let client = self.client.unwrap_or_else(|| Client::new(Arc::new(MemoryProvider::new())));
        ActivityContext::detached(self.call, client)
    }
}
