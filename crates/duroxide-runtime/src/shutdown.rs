//! [`Shutdown`]: stops a node (21.1).

mod deadline;
mod left_running;

use std::{
    collections::BTreeSet,
    fmt,
    future::Future,
    pin::pin,
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

use futures_util::{
    FutureExt,
    future::{Either, Shared, join_all, select},
};
use tracing::warn;

use self::deadline::Deadline;
use crate::{
    dispatch::Node,
    env::{BoxFuture, Env, Tasks, lock},
};

/// How long a shutdown waits for a turn that does not return, before its thread is left behind.
const STUCK_TURN_MAX: Duration = Duration::from_millis(250);
/// How long abandoning the remaining claims may take. Locks that remain end with their leases.
const RELEASE_MAX: Duration = Duration::from_secs(1);

/// The shutdown of a node, shared by all calls that ask for it.
///
/// All calls poll the same future, and so does a spawned task. So dropping a call stops nothing, and a call outside of
/// the executor makes progress by itself.
pub(crate) struct Shutdown {
    /// `None` once the node has ended, so that remaining handles do not keep the store open.
    node: NodeSlot,
    deadline: Arc<Deadline>,
    end: OnceLock<Shared<BoxFuture>>,
}

type NodeSlot = Arc<Mutex<Option<Arc<Node>>>>;

impl Shutdown {
    pub(crate) fn of(node: Arc<Node>) -> Self {
        Self { node: Arc::new(Mutex::new(Some(node))), deadline: Arc::default(), end: OnceLock::new() }
    }

    /// The node, unless it has ended.
    pub(crate) fn node(&self) -> Option<Arc<Node>> {
        lock(&self.node).clone()
    }

    /// Stops fetching, lets running work finish until the earliest deadline of all calls, and resolves when no part of
    /// the node runs any more. With a timeout of zero no provider call is made.
    pub(crate) async fn within(self: Arc<Self>, timeout: Duration) {
        let Some(end) = self.ask(timeout) else { return };
        drop(self);
        end.await;
    }

    /// The shared future of the shutdown; `None` if the node has ended already.
    fn ask(&self, timeout: Duration) -> Option<Shared<BoxFuture>> {
        // The node is only borrowed: a clone could outlive the end that another call observes.
        let slot = lock(&self.node);
        let node = slot.as_ref()?;
        self.deadline.bring_forward(&node.env, timeout);
        if let Some(asked_before) = self.end.get() {
            return Some(asked_before.clone());
        }
        let whole: BoxFuture =
            Box::pin(end(Arc::clone(node), Arc::clone(&self.deadline), Arc::clone(&self.node)));
        let end = self.end.get_or_init(|| whole.shared()).clone();
        let env = Arc::clone(&node.env);
        drop(slot);
        env.spawn(Box::pin(end.clone()));
        Some(end)
    }
}

impl fmt::Debug for Shutdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shutdown").field("node", &*lock(&self.node)).finish_non_exhaustive()
    }
}

/// The whole shutdown. When it resolves, no part of the node runs or holds the store.
async fn end(node: Arc<Node>, deadline: Arc<Deadline>, slot: NodeSlot) {
    node.stopping.cancel();
    select(pin!(node.work.ended()), pin!(deadline.passed(&node.env))).await;
    node.work.abort_all();
    node.background.abort_all();
    node.user_code.abort_all();
    node.work.ended().await;
    node.background.ended().await;
    left_running::wait(&node, &deadline).await;
    release(&node, &deadline, &BTreeSet::new()).await;
    node.membership.leave();
    node.drop_on_turn_thread(node.cache.clear());
    close_turns(&node).await;
    drop(node);
    let last = lock(&slot).take();
    drop(last);
}

/// Abandons all claims except those in `keep`, without charging attempts. A spawned task calls the store, because the
/// caller of a shutdown may be outside of the executor that the store needs.
async fn release(node: &Arc<Node>, deadline: &Deadline, keep: &BTreeSet<String>) {
    if deadline.is_immediate() {
        return;
    }
    let held = node.locks.take_except(keep);
    if held.is_empty() {
        return;
    }
    let calls = Tasks::new(Arc::clone(&node.env));
    let caller = Arc::clone(node);
    calls.spawn("release", async move {
        join_all(held.iter().map(|(token, kind)| caller.abandon(*kind, token, None, true))).await;
    });
    within(&node.env, RELEASE_MAX, calls.ended()).await;
    calls.abort_all();
    calls.ended().await;
}

/// Ends the turn threads. A thread that is stuck in user code is left behind.
async fn close_turns(node: &Node) {
    within(&node.env, STUCK_TURN_MAX, node.env.close_turns()).await;
    for instance in node.turns.list() {
        warn!(target: "duroxide::runtime", instance, "left behind at shutdown: its turn does not return");
    }
}

/// Waits for `work` for at most `limit`, even if nothing drives the timers of the executor.
async fn within<T>(env: &Arc<dyn Env>, limit: Duration, work: impl Future<Output = T>) -> Option<T> {
    match select(pin!(work), env.sleep_off_executor(limit)).await {
        Either::Left((done, _)) => Some(done),
        Either::Right(_) => None,
    }
}
