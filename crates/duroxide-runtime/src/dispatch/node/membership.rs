//! The node's place in the store: what it claims is free for others when it is gone.

use std::{
    collections::BTreeSet,
    sync::{Arc, OnceLock},
    time::Duration,
};

use duroxide_provider::{NodeAnnouncement, NodeCapability, NodeId, NodeMembership, TagFilter};
use tracing::warn;

use super::Node;
use crate::{
    dispatch::{provider_call, queue::session_owners},
    env::{Env, Tasks},
};

/// The pause before a node that could not join tries again. Until then its leases alone say that it lives.
const JOIN_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// The membership is tasks by a task, and not by the node: it ends with the executor that runs the node, even if
/// someone still holds a handle.
pub(crate) struct Membership {
    node: OnceLock<NodeId>,
    tasks: Tasks,
}

impl Membership {
    pub(crate) fn new(env: Arc<dyn Env>) -> Self {
        Self { node: OnceLock::new(), tasks: Tasks::new(env) }
    }

    /// The number under which this node claims, if the store gave it one.
    pub(crate) fn node(&self) -> Option<NodeId> {
        self.node.get().copied()
    }

    /// Tells the store that the node is gone, without waiting for it.
    pub(crate) fn leave(&self) {
        self.tasks.abort_all();
    }

    fn set(&self, membership: Arc<dyn NodeMembership>) {
        let _ = self.node.set(membership.node());
        self.tasks.spawn("membership", async move {
            let _membership = membership;
            std::future::pending::<()>().await;
        });
    }
}

/// Joins before any work is taken. A store that cannot answer now is asked again later.
pub(crate) async fn join(node: &Arc<Node>) {
    if !try_join(node).await {
        node.background.spawn("membership", join_later(Arc::clone(node)));
    }
}

async fn join_later(node: Arc<Node>) {
    loop {
        node.env.sleep(JOIN_AGAIN_AFTER).await;
        if try_join(&node).await {
            return;
        }
    }
}

/// Whether there is nothing left to try.
async fn try_join(node: &Node) -> bool {
    match provider_call("join_node", node.store.join_node(&announcement(node))).await {
        Ok(membership) => {
            if let Some(membership) = membership {
                let membership: Arc<dyn NodeMembership> = Arc::from(membership);
                node.quarantine.note_in(Arc::downgrade(&membership));
                node.membership.set(membership);
            }
            true
        }
        Err(error) => {
            warn!(
                target: "duroxide::runtime", %error,
                "could not join the store; if this process dies, what it holds waits for its lease"
            );
            !error.is_retryable()
        }
    }
}

fn announcement(node: &Node) -> NodeAnnouncement {
    let own_sessions = node.options.worker_node_id.is_none();
    NodeAnnouncement {
        name: node.id.clone(),
        session_owners: if own_sessions { session_owners(node) } else { Vec::new() },
        capability: capability(node),
    }
}

fn capability(node: &Node) -> NodeCapability {
    let options = &node.options;
    let versions =
        |name: &str| -> BTreeSet<_> { node.orchestrations.list_versions(name).into_iter().collect() };
    let names = node.orchestrations.list_names().into_iter();
    NodeCapability {
        replay_versions: match options.orchestration_concurrency {
            0 => Vec::new(),
            _ => node.filter.supported_duroxide_versions.clone(),
        },
        orchestrations: names.map(|name| (name.clone(), versions(&name))).collect(),
        activities: node.activities.list_names().into_iter().collect(),
        tags: match options.worker_concurrency {
            0 => TagFilter::None,
            _ => options.worker_tag_filter.clone(),
        },
        asks_for_registered_only: node.capability.is_some(),
    }
}
