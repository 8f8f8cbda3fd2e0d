//! Waits for activities that cannot be aborted.
//!
//! An activity that blocks its thread cannot be aborted: its task ends when its code returns. Code that an activity has
//! started elsewhere (`spawn_blocking`, a thread) may outlive the activity's task; it is tracked by the activity's
//! context, if it holds the context.

use std::{pin::pin, sync::Arc, time::Duration};

use futures_util::future::select;
use tracing::warn;

use super::{Deadline, release, within};
use crate::dispatch::Node;

/// How long the code of activities may take to end before the wait is logged.
const UNREPORTED_MAX: Duration = Duration::from_millis(250);
/// The pause between the first two reports; each further pause is twice as long.
const REPORT_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// The longest pause between two reports.
const REPORT_PAUSE_MAX: Duration = Duration::from_secs(60);
/// How long contexts may be held after the tasks of their activities have ended. Limited, because a context may be held
/// by something that waits forever.
const CONTEXTS_MAX: Duration = Duration::from_secs(5);

/// Waits until no code of an activity runs. The locks of these activities stay, so that no other node runs them at the
/// same time. All other claims are abandoned first.
pub(super) async fn wait(node: &Arc<Node>, deadline: &Deadline) {
    let mut ended = pin!(ended(node));
    if within(&node.env, UNREPORTED_MAX, &mut ended).await.is_some() {
        return;
    }
    let kept = node.activity_code.list().into_iter().map(|run| run.lock_token).collect();
    release(node, deadline, &kept).await;
    select(ended, pin!(report(node))).await;
}

/// Resolves when all tasks have ended and their contexts are dropped, or the time for the contexts is over.
async fn ended(node: &Node) {
    node.user_code.ended().await;
    if within(&node.env, CONTEXTS_MAX, node.activity_code.ended()).await.is_none() {
        for run in node.activity_code.list() {
            warn!(
                target: "duroxide::runtime",
                instance = run.instance, activity_name = run.activity_name, activity_id = run.activity_id,
                "left behind at shutdown: something that the activity started still holds its context"
            );
        }
    }
}

/// Logs the activities that the shutdown waits for, at growing intervals.
async fn report(node: &Node) {
    let mut pause = REPORT_AGAIN_AFTER;
    loop {
        let now = node.env.moment();
        for run in node.activity_code.list() {
            warn!(
                target: "duroxide::runtime",
                instance = run.instance, activity_name = run.activity_name, activity_id = run.activity_id,
                running_ms = now.since(run.began).as_millis() as u64,
                "shutdown waits for an activity that has not returned"
            );
        }
        node.env.sleep_off_executor(pause).await;
        pause = pause.saturating_mul(2).min(REPORT_PAUSE_MAX);
    }
}
