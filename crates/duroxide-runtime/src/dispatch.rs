//! Dispatch: takes work from the two queues, runs user code, and commits what came of it.
//!
//! Deciding and acting are apart. `slots`, `timing`, `admit`, `round` and `ending` take values and return values; the others
//! carry out what they decided:
//!
//! * `queue` is the loop of one queue: fetch, start what has a slot, give back what has none; `seat` is the slot's side, and
//!   `crew` the tasks that run it;
//! * `orchestration` and `worker` say what the loop fetches, and hand each claim to `turn` or `activity`;
//! * `renewal` keeps a claim's lock, `commit` insists on a result until the store has it.

mod activity;
mod admit;
mod background;
mod batch;
mod commit;
mod condemn;
mod crew;
mod descriptors;
mod ending;
mod failure_log;
mod held;
mod in_progress;
mod lacking;
mod lost_answer;
mod measure;
mod membership;
mod node;
mod orchestration;
mod pin;
mod quarantine;
mod queue;
mod record;
mod renewal;
mod round;
mod running;
mod seat;
mod sessions;
mod slots;
mod store_call;
mod sweep;
mod timing;
mod turn;
mod worker;

use std::sync::Arc;

pub(crate) use in_progress::InProgressGuard;
pub(crate) use node::{Node, NodeParts};
pub(crate) use pin::describe_ranges;
pub(crate) use round::event_bytes;
pub(crate) use running::ActivityRun;
pub(crate) use store_call::guarded;

/// Starts the loops of a node.
pub(crate) async fn start(node: &Arc<Node>) {
    background::count_running(node).await;
    membership::join(node).await;
    background::start(node);
    queue::start(orchestration::Orchestrations::new(Arc::clone(node)));
    queue::start(worker::Activities::new(Arc::clone(node)));
}
