//! Dispatch: takes work from the two queues, runs user code, and commits what came of it.
//!
//! Deciding and acting are apart. `slots`, `timing`, `decide`, `round` and `ending` take values and return values; the others
//! carry out what they decided:
//!
//! * `queue` is the loop of one queue: fetch, start what has a slot, give back what has none; `slot` is the slot's side, and
//!   `crew` the tasks that run it;
//! * `orchestration` and `worker` say what the loop fetches, and hand each claim to `turn` or `activity`;
//! * `renewal` keeps a claim's lock, `commit` insists on a result until the store has it.

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
pub(crate) use turn::event_bytes;

use node::{background, membership};
use queue::{Activities, Orchestrations};

/// Starts the loops of a node.
pub(crate) async fn start(node: &Arc<Node>) {
    background::count_running(node).await;
    membership::join(node).await;
    background::start(node);
    queue::start(Orchestrations::new(Arc::clone(node)));
    queue::start(Activities::new(Arc::clone(node)));
}
