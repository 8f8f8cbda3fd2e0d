//! [`OverviewCache`]: caches reads that need a pass over the store.

pub(crate) mod cached_answer;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use duroxide::{Client, InstanceSummary, QueueSummary, SummaryRequest, providers::JoinedNode};

use crate::{
    cached_answer::{Answer, CachedAnswer},
    format,
};

/// The length of a bucket of time.
pub(crate) const BUCKET: Duration = Duration::from_secs(120);
/// The number of buckets: a day.
pub(crate) const BUCKETS: u32 = 720;

/// Counts over all instances, and the time at which their first bucket begins.
#[derive(Debug)]
pub(crate) struct Counted {
    pub(crate) from_ms: u64,
    pub(crate) at_ms: u64,
    pub(crate) summary: InstanceSummary,
    /// Open instances by the duroxide version that they are pinned to.
    pub(crate) pinned: BTreeMap<String, u64>,
}

/// The queued work and the nodes.
#[derive(Debug)]
pub(crate) struct Queued {
    /// `None` if the store cannot summarise its queues.
    pub(crate) queues: Option<QueueSummary>,
    pub(crate) nodes: Vec<JoinedNode>,
    /// The time of the read, by the store's clock if that is known.
    pub(crate) now_ms: u64,
}

/// Caches the reads that need a pass over the store.
#[derive(Debug)]
pub(crate) struct OverviewCache {
    client: Client,
    counted: Arc<CachedAnswer<Counted>>,
    queued: Arc<CachedAnswer<Queued>>,
}

impl OverviewCache {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, counted: CachedAnswer::new(), queued: CachedAnswer::new() }
    }

    pub(crate) async fn counted(&self) -> Option<Arc<Answer<Counted>>> {
        self.counted.get(count(self.client.clone())).await
    }

    pub(crate) async fn queued(&self) -> Option<Arc<Answer<Queued>>> {
        self.queued.get(queued(self.client.clone())).await
    }

    /// The number of finished reads.
    pub(crate) fn reads(&self) -> u64 {
        self.counted.reads() + self.queued.reads()
    }
}

async fn count(client: Client) -> Option<Counted> {
    let bucket_ms = u64::try_from(BUCKET.as_millis()).unwrap_or(u64::MAX);
    let at_ms = format::now_ms();
    // The bucket that has just begun is the last one.
    let end = (at_ms / bucket_ms + 1) * bucket_ms;
    let from_ms = end.saturating_sub(bucket_ms * u64::from(BUCKETS));
    let request = SummaryRequest { from_ms, bucket_ms, buckets: BUCKETS };
    let summary = logged("counting instances", client.summarize_instances(&request).await)?;
    let pinned = logged("counting pinned versions", client.get_running_duroxide_version_spread().await)?;
    Some(Counted { from_ms, at_ms, summary, pinned })
}

async fn queued(client: Client) -> Option<Queued> {
    let queues = logged("reading the queues", client.summarize_queues().await);
    let nodes = logged("reading the nodes", client.list_nodes().await)?;
    let now_ms = queues.as_ref().map_or_else(format::now_ms, |queues| queues.now_ms);
    Some(Queued { queues, nodes, now_ms })
}

fn logged<T>(what: &'static str, result: Result<T, duroxide::ClientError>) -> Option<T> {
    result.inspect_err(|error| tracing::warn!(target: "duroxide::ui", %error, "{what} failed")).ok()
}
