//! Stopping a node (semantics 21.1).

use std::{fmt, future::Future, pin::pin, sync::Arc, time::Duration};

use futures_util::future::{Either, join_all, select};
use tokio::sync::watch;
use tracing::warn;

use crate::{
    dispatch::Node,
    env::{Env, Moment},
};

/// How long user code that ignores its end is waited for before it is left behind.
const STUCK_MAX: Duration = Duration::from_millis(250);
/// How long giving back locks may take; what is left then is left to its lease.
const RELEASE_MAX: Duration = Duration::from_secs(1);

/// The one shutdown of a node, whoever asks for it and how often.
pub(crate) struct Shutdown {
    /// The earliest deadline anybody asked for.
    deadline: watch::Sender<Option<Moment>>,
    ended: watch::Sender<bool>,
}

impl Default for Shutdown {
    fn default() -> Self {
        Self { deadline: watch::Sender::new(None), ended: watch::Sender::new(false) }
    }
}

impl fmt::Debug for Shutdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shutdown").field("ended", &*self.ended.borrow()).finish_non_exhaustive()
    }
}

impl Shutdown {
    /// Stops taking work and lets what runs finish until the deadline. The work is done in a task of its own, so
    /// that a caller who gives up waiting stops nothing.
    pub(crate) async fn within(self: Arc<Self>, node: Arc<Node>, timeout: Duration) {
        let env = Arc::clone(&node.env);
        if self.hurry(env.moment().after(timeout)) {
            let shutdown = Arc::clone(&self);
            env.spawn(Box::pin(async move {
                shutdown.drive(&node).await;
                // Whoever waits for the end may count on the store being free.
                drop(node);
                shutdown.ended.send_replace(true);
            }));
        } else {
            drop(node);
        }
        self.wait().await;
    }

    /// Ends everything at once: no provider call, nothing given back, no executor needed.
    pub(crate) async fn now(self: Arc<Self>, node: Arc<Node>) {
        self.hurry(Moment::default());
        node.stopping.cancel();
        abort(&node);
        node.work.ended().await;
        node.background.ended().await;
        node.membership.leave();
        node.retire(node.cache.clear());
        drop(node.env.close_turns());
        drop(node);
        self.ended.send_replace(true);
    }

    /// Notes a deadline and says whether it is the first.
    fn hurry(&self, asked: Moment) -> bool {
        let mut first = false;
        self.deadline.send_modify(|deadline| {
            first = deadline.is_none();
            *deadline = Some(deadline.map_or(asked, |earlier| earlier.min(asked)));
        });
        first
    }

    async fn wait(&self) {
        // The sender is in `self`, so waiting cannot fail.
        let _ = self.ended.subscribe().wait_for(|ended| *ended).await;
    }

    async fn drive(&self, node: &Arc<Node>) {
        node.stopping.cancel();
        select(pin!(node.work.ended()), pin!(self.deadline_passed(&node.env))).await;
        abort(node);
        node.work.ended().await;
        node.background.ended().await;
        if within(&node.env, STUCK_MAX, node.user_code.ended()).await.is_none() {
            for task in node.user_code.labels() {
                warn!(target: "duroxide::runtime", task, "left behind at shutdown: it does not return");
            }
        }
        if !self.is_immediate() {
            within(&node.env, RELEASE_MAX, release(node)).await;
        }
        node.membership.leave();
        node.retire(node.cache.clear());
        let turns = node.env.close_turns();
        if within(&node.env, STUCK_MAX, turns).await.is_none() {
            for instance in node.turns.instances() {
                warn!(target: "duroxide::runtime", instance, "left behind at shutdown: its turn does not return");
            }
        }
    }

    fn is_immediate(&self) -> bool {
        *self.deadline.borrow() == Some(Moment::default())
    }

    /// Resolves when the deadline has passed, also if it is brought forward meanwhile.
    async fn deadline_passed(&self, env: &Arc<dyn Env>) {
        let mut deadlines = self.deadline.subscribe();
        loop {
            let deadline = *deadlines.borrow_and_update();
            let passed = async {
                match deadline {
                    Some(deadline) => env.sleep_until(deadline).await,
                    None => std::future::pending().await,
                }
            };
            if let Either::Left(_) = select(pin!(passed), pin!(deadlines.changed())).await {
                return;
            }
        }
    }
}

fn abort(node: &Node) {
    node.work.abort_all();
    node.background.abort_all();
    node.user_code.abort_all();
}

/// Gives back what is still locked, attempt taken back.
async fn release(node: &Node) {
    let held = node.held.take_all();
    join_all(held.iter().map(|(token, kind)| node.abandon(*kind, token, None, true))).await;
}

async fn within<T>(env: &Arc<dyn Env>, limit: Duration, work: impl Future<Output = T>) -> Option<T> {
    match select(pin!(work), env.sleep(limit)).await {
        Either::Left((done, _)) => Some(done),
        Either::Right(_) => None,
    }
}
