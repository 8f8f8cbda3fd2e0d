//! The background tasks of a node: session renewal, session cleanup, queue gauges and the sweeper.

use std::sync::Arc;

use tracing::{debug, warn};

use super::{Node, sweep};
use crate::dispatch::{provider_call, queue::session_owners, timing::renewal_interval};

pub(crate) fn start(node: &Arc<Node>) {
    if node.options.worker_concurrency > 0 {
        node.background.spawn("session renewal", keep_sessions(Arc::clone(node)));
        node.background.spawn("session cleanup", clean_sessions(Arc::clone(node)));
    }
    node.background.spawn("queue depths", watch_queues(Arc::clone(node)));
    node.background.spawn("sweeper", sweep::run(Arc::clone(node)));
}

/// Renews the sessions of this node's workers, once there can be any: a node without sessions asks the store for nothing. A
/// failed renewal is repeated well before the lease ends. Unused sessions go idle by themselves.
async fn keep_sessions(node: Arc<Node>) {
    let options = &node.options;
    let interval = renewal_interval(options.session_lock_timeout, options.session_lock_renewal_buffer, None);
    let owners = session_owners(&node);
    let owners: Vec<&str> = owners.iter().map(String::as_str).collect();
    let mut pause = interval;
    node.has_sessions.cancelled().await;
    loop {
        node.env.sleep(pause).await;
        let call = node.store.renew_session_lock(
            &owners,
            options.session_lock_timeout,
            options.session_idle_timeout,
        );
        pause = match provider_call("renew_session_lock", call).await {
            Ok(_) => interval,
            Err(error) => {
                warn!(target: "duroxide::runtime", %error, "sessions could not be renewed");
                interval / 4
            }
        };
    }
}

async fn clean_sessions(node: Arc<Node>) {
    loop {
        node.env.sleep(node.options.session_cleanup_interval).await;
        let call = node.store.cleanup_orphaned_sessions(node.options.session_idle_timeout);
        if let Err(error) = provider_call("cleanup_orphaned_sessions", call).await {
            debug!(target: "duroxide::runtime", %error, "orphaned sessions could not be removed");
        }
    }
}

async fn watch_queues(node: Arc<Node>) {
    loop {
        node.env.sleep(node.options.observability.gauge_poll_interval).await;
        let Some(admin) = node.store.as_management_capability() else { return };
        match provider_call("get_queue_depths", admin.get_queue_depths()).await {
            Ok(depths) => {
                let (orchestrator, worker) = (depths.orchestrator_queue as u64, depths.worker_queue as u64);
                node.metrics.update_queue_depths(orchestrator, worker);
            }
            Err(error) => debug!(target: "duroxide::runtime", %error, "queue depths could not be read"),
        }
        match provider_call("list_nodes", admin.list_nodes()).await {
            Ok(nodes) => node.metrics.update_nodes(nodes.len() as u64),
            Err(error) => debug!(target: "duroxide::runtime", %error, "nodes could not be counted"),
        }
        match provider_call("count_pending_instances", admin.count_pending_instances()).await {
            Ok(Some(count)) => node.metrics.update_pending_orchestrations(count),
            Ok(None) => {}
            Err(error) => {
                debug!(target: "duroxide::runtime", %error, "pending instances could not be counted");
            }
        }
    }
}

/// Sets the gauge of running instances. Called before any work is fetched, so that no instance is counted twice.
pub(crate) async fn count_running(node: &Node) {
    let Some(admin) = node.store.as_management_capability() else { return };
    if let Ok(metrics) = provider_call("get_system_metrics", admin.get_system_metrics()).await {
        node.metrics.set_active_orchestrations(i64::try_from(metrics.running_instances).unwrap_or(i64::MAX));
    }
}
