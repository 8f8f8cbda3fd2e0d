//! Typed authoring: handlers and calls that the compiler checks.
//!
//! [`macro@crate::activity`] and [`macro@crate::orchestration`] leave a function as it is and add a type of the same name,
//! which has the name under which the handler is recorded and the types of its values. Calls name that type, so a wrong
//! input, a wrong output and a misspelt name do not compile:
//!
//! ```
//! use std::sync::Arc;
//! use duroxide::prelude::*;
//!
//! #[duroxide::activity]
//! async fn reserve(_ctx: ActivityContext, item: String, count: u32) -> Result<String, String> {
//!     Ok(format!("{count} {item} from shelf 3"))
//! }
//!
//! #[duroxide::orchestration]
//! async fn order(ctx: OrchestrationContext, item: String) -> Result<String, String> {
//!     let reserved = ctx.activity::<reserve>((item, 2)).retry(RetryPolicy::new(5)).await?;
//!     Ok(format!("shipped {reserved}"))
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = Arc::new(SqliteProvider::new_in_memory().await?);
//! let runtime = Runtime::builder(store.clone()).activity::<reserve>().orchestration::<order>().build().await?;
//!
//! let client = Client::new(store);
//! let order = client.start::<order>("order-1", "teapots".to_owned()).await?;
//! assert_eq!(order.result().await??, "shipped 2 teapots from shelf 3");
//! runtime.shutdown(None).await;
//! # Ok(())
//! # }
//! ```
//!
//! Nothing new is recorded: `ctx.activity::<reserve>(input)` records the same events as `ctx.schedule_activity("reserve",
//! json)`, where `json` is the JSON of the input, and a caller by name gets the JSON of the output. So typed handlers and
//! handlers of texts call each other, and one program can have both.
//!
//! # Values
//!
//! Every value is recorded as its JSON, so it comes back as it went. The older `_typed` calls write a value whose JSON is a
//! string as the bare text, so that they and calls with texts can talk to each other. That loses something: the string `7`
//! and the number 7 become the same text, as do `"null"` and `None`.
//!
//! # Errors
//!
//! The error type of a handler is any type that is serializable and has a text. It is recorded as JSON inside the error
//! text, and the caller gets it back as [`CallError::Failed`]; other failures have variants of their own: see [`CallError`].

#[cfg(feature = "macros")]
pub(crate) mod attributes;

pub use duroxide_core::typed::{
    Activity, ActivityCall, CallError, CallMode, ChildCall, DecodeError, Key, NotUndone, Once, Orchestration,
    OrchestrationCode, Outcome, Retried, RetriedStep, Saga, SagaCause, SagaError, SagaStep, StepCall,
};
pub use duroxide_runtime::{
    registry::ActivityRegistryBuilder,
    typed::{
        ActivityCode, ActivityService, BuildError, FrozenError, Handle, Handlers, RuntimeBuilder,
        ServiceActivity, TypedStatus,
    },
};
