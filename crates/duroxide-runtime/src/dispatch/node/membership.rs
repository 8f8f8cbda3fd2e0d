//! The node's membership in the store: when the node dies, other nodes may take over its claims.

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

/// The pause before a node that could not join tries again. Until then only its leases show that it is alive.
const JOIN_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// The membership of a node. A task owns it, so that it ends with the executor that runs the node, even if a handle of
/// the node is still alive.
pub(crate) struct Membership {
    node: OnceLock<NodeId>,
    tasks: Tasks,
}

impl Membership {
    pub(crate) fn new(env: Arc<dyn Env>) -> Self {
        Self { node: OnceLock::new(), tasks: Tasks::new(env) }
    }

    /// The id under which this node claims, if the store gave it one.
    pub(crate) fn node(&self) -> Option<NodeId> {
        self.node.get().copied()
    }

    /// Ends the membership without waiting for the store.
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

/// Joins the store before any work is fetched. If the store cannot answer, a background task tries again.
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

/// Returns `false` if joining may succeed later.
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
                "could not join the store; if this process dies, its claims stay locked until their leases end"
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
        max_attempts: Some(options.max_attempts),
    }
}
