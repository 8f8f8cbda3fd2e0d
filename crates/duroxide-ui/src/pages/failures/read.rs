//! [`FailureCache`]: reads failed instances and groups them.
//!
//! A few failures are read and grouped for every request. Many failures are read page by page in the background, and
//! cached: see [`CachedAnswer`](crate::cached_answer::CachedAnswer).

use std::sync::Arc;

use duroxide::{Client, ClientError, InstancePage, InstanceQuery};

use super::groups::{Grouped, Grouping};
use crate::{
    cached_answer::{Answer, CachedAnswer},
    format,
    redact::Redact,
};

/// Bounds of a read of failed instances.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Instances per page. The newest page is grouped while the user waits.
    pub(crate) page: u32,
    /// Maximum number of instances grouped: the newest ones.
    pub(crate) total: u64,
}

/// The groups are cached this many times as long as their read took. Failures are many only where something is badly
/// wrong, and reading them must not add to the load.
const CACHED_PER_READ: u32 = 100;
const BOUNDS: Bounds = Bounds { page: 500, total: 100_000 };

/// A cache of failed instances in groups.
#[derive(Debug)]
pub(crate) struct FailureCache {
    bounds: Bounds,
    cached: Arc<CachedAnswer<Grouped>>,
}

/// Failed instances in groups, and how complete they are.
#[derive(Debug)]
pub(super) enum Found {
    /// All of them, read now.
    All(Grouped),
    /// The newest ones, read now. The others are still being read.
    Newest(Grouped),
    /// All of them up to the bound, read some time ago.
    Cached(Arc<Answer<Grouped>>),
}

impl FailureCache {
    pub(crate) fn new() -> Self {
        Self::with(BOUNDS)
    }

    pub(crate) fn with(bounds: Bounds) -> Self {
        Self { bounds, cached: CachedAnswer::cached_for(CACHED_PER_READ) }
    }

    pub(super) async fn read(&self, client: &Client, redact: &Redact) -> Result<Found, ClientError> {
        let newest = client.query_instances(&self.query()).await?;
        let is_all = newest.next.is_none();
        if !is_all && let Some(cached) = self.all(client, redact).await {
            return Ok(Found::Cached(cached));
        }
        let mut grouping = Grouping::default();
        newest.instances.iter().for_each(|info| grouping.add(info, redact));
        let grouped = grouping.finish(!is_all, format::now_ms());
        Ok(if is_all { Found::All(grouped) } else { Found::Newest(grouped) })
    }

    /// A fingerprint that changes when another instance has failed, and when the cached groups were read again.
    pub(super) async fn fingerprint(
        &self,
        client: &Client,
        redact: &Redact,
    ) -> Result<impl std::hash::Hash + use<>, ClientError> {
        let newest = client.query_instances(&self.query().limit(1)).await?;
        let newest = newest.instances.into_iter().next().map(|info| (info.instance_id, info.updated_at));
        // The page shows cached groups: asking for an old answer starts the next read.
        if self.cached.reads() > 0 {
            self.all(client, redact).await;
        }
        Ok((newest, self.cached.reads()))
    }

    async fn all(&self, client: &Client, redact: &Redact) -> Option<Arc<Answer<Grouped>>> {
        self.cached.get(all(client.clone(), redact.clone(), self.bounds)).await
    }

    fn query(&self) -> InstanceQuery {
        failed(self.bounds)
    }
}

impl Found {
    pub(super) fn grouped(&self) -> &Grouped {
        match self {
            Self::All(grouped) | Self::Newest(grouped) => grouped,
            Self::Cached(answer) => &answer.value,
        }
    }

    pub(super) fn is_reading(&self) -> bool {
        matches!(self, Self::Newest(_))
    }

    pub(super) fn is_cached(&self) -> bool {
        matches!(self, Self::Cached(_))
    }
}

fn failed(bounds: Bounds) -> InstanceQuery {
    InstanceQuery::default().status("Failed").limit(bounds.page)
}

/// All failed instances up to the bound, page by page.
async fn all(client: Client, redact: Redact, bounds: Bounds) -> Option<Grouped> {
    let mut grouping = Grouping::default();
    let at_ms = format::now_ms();
    let mut query = failed(bounds);
    loop {
        let page = client.query_instances(&query).await;
        let page = page.inspect_err(
            |error| tracing::warn!(target: "duroxide::ui", %error, "reading failed instances failed"),
        );
        let InstancePage { instances, next } = page.ok()?;
        instances.iter().for_each(|info| grouping.add(info, &redact));
        match next {
            Some(next) if grouping.looked_at() < bounds.total => query = query.after(next),
            next => return Some(grouping.finish(next.is_some(), at_ms)),
        }
    }
}
