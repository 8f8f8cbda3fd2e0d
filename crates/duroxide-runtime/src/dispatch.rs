//! Dispatch: fetches work from the two queues, runs user code, and commits the results.
//!
//! Deciding and acting are separate. `slots`, `timing`, `decide`, `round` and `ending` take values and return values;
//! the other modules carry out the decisions:
//!
//! * `queue` is the loop of one queue: it fetches, starts items that have a slot, and abandons items that find none in
//!   time;
//! * `turn` and `activity` process one claim each;
//! * `locks` renews the lock of a claim, `store_call` retries provider calls;
//! * `node` is the state that they share.

mod activity;
mod backoff_log;
mod decide;
mod failure_log;
mod locks;
mod measure;
mod node;
mod quarantine;
mod queue;
mod store_call;
mod timing;
mod turn;

use std::sync::Arc;

pub(crate) use activity::ActivityRun;
pub(crate) use decide::describe_ranges;
pub(crate) use node::{InProgressGuard, Node, NodeParts};
pub(crate) use store_call::provider_call;
pub(crate) use turn::{RunningSteps, event_bytes};

use node::{background, membership};
use queue::{Activities, Orchestrations};

/// Joins the store and starts the background tasks and dispatch loops of a node.
pub(crate) async fn start(node: &Arc<Node>) {
    background::count_running(node).await;
    membership::join(node).await;
    background::start(node);
    queue::start(Orchestrations::new(Arc::clone(node)));
    queue::start(Activities::new(Arc::clone(node)));
}
