//! Listing many instances, page by page.

pub(crate) mod scan;
#[cfg(test)]
mod tests;

use serde::Serialize;

use crate::InstanceInfo;

/// Which instances a page shows. Criteria are ANDed; without any, all instances are listed.
///
/// An instance whose start was accepted and that no node has begun yet has the status [`Self::PENDING`]; its name, version
/// and parent are those of the queued start, the version `unknown` if none was asked for. The default of
/// [`query_instances`](crate::ProviderAdmin::query_instances) does not know of such instances.
///
/// Pages go from the newest instance to the oldest; ours go by when the store first got a message for the instance, the
/// default of [`query_instances`](crate::ProviderAdmin::query_instances) by `created_at`. A cursor is a place in that
/// order and nothing else: it stays valid while instances are created, change and are deleted, and the other criteria may
/// differ from page to page. No instance is listed twice, and none that was there before the first page, and matches when
/// its turn comes, is left out.
///
/// On SQLite status, name, parent and id prefix are sought by index, and so is the time of creation if few were created
/// then. Of several criteria one is sought and the others filter its rows, so a page of instances that are rare only by a
/// combination of criteria, their version or their last change reads all rows between them. Pending instances are found by
/// their queued starts, with any criteria.
///
/// ```
/// use duroxide_provider::InstanceQuery;
///
/// let failed_orders = InstanceQuery::default().status("Failed").id_prefix("order-").limit(50);
/// assert_eq!(failed_orders.page_size(), 50);
/// assert_eq!(InstanceQuery::default().page_size(), 100);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct InstanceQuery {
    /// Only instances whose current execution has this status.
    pub status: Option<String>,
    /// Only instances of this orchestration.
    pub orchestration_name: Option<String>,
    /// Only instances whose current execution has this handler version.
    pub orchestration_version: Option<String>,
    /// Only instances whose id has this prefix.
    pub id_prefix: Option<String>,
    /// Only children of this instance.
    pub parent: Option<String>,
    /// Only instances without a parent.
    pub roots_only: bool,
    /// Only instances created at this time or later, in milliseconds since the epoch.
    pub created_from: Option<u64>,
    /// Only instances created before this time, in milliseconds since the epoch.
    pub created_before: Option<u64>,
    /// Only instances that last changed at this time or later, in milliseconds since the epoch.
    pub updated_from: Option<u64>,
    /// Only instances that last changed before this time, in milliseconds since the epoch.
    pub updated_before: Option<u64>,
    /// How many instances a page holds; see [`Self::page_size`].
    pub limit: Option<u32>,
    /// Where the page begins: [`InstancePage::next`] of the one before.
    pub cursor: Option<String>,
}

/// Some of the instances that a query selects, newest first.
#[derive(Debug, Clone, Default, Serialize)]
pub struct InstancePage {
    /// The instances.
    pub instances: Vec<InstanceInfo>,
    /// The cursor of the page after this one; `None` on the last.
    pub next: Option<String>,
}

impl InstanceQuery {
    /// The status of an instance whose start is queued.
    pub const PENDING: &'static str = "Pending";
    /// How many instances a page holds if no limit is set.
    pub const DEFAULT_LIMIT: u32 = 100;
    /// How many instances a page holds at most. A greater limit means this one.
    pub const MAX_LIMIT: u32 = 1_000;

    /// Only instances whose current execution has this status.
    #[must_use]
    pub fn status(mut self, status: impl Into<String>) -> Self {
        self.status = Some(status.into());
        self
    }

    /// Only instances of this orchestration.
    #[must_use]
    pub fn orchestration_name(mut self, name: impl Into<String>) -> Self {
        self.orchestration_name = Some(name.into());
        self
    }

    /// Only instances whose current execution has this handler version.
    #[must_use]
    pub fn orchestration_version(mut self, version: impl Into<String>) -> Self {
        self.orchestration_version = Some(version.into());
        self
    }

    /// Only instances whose id has this prefix.
    #[must_use]
    pub fn id_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.id_prefix = Some(prefix.into());
        self
    }

    /// Only children of this instance.
    #[must_use]
    pub fn parent(mut self, instance: impl Into<String>) -> Self {
        self.parent = Some(instance.into());
        self
    }

    /// Only instances without a parent.
    #[must_use]
    pub fn roots_only(mut self) -> Self {
        self.roots_only = true;
        self
    }

    /// Only instances created at this time or later, in milliseconds since the epoch.
    #[must_use]
    pub fn created_from(mut self, millis: u64) -> Self {
        self.created_from = Some(millis);
        self
    }

    /// Only instances created before this time, in milliseconds since the epoch.
    #[must_use]
    pub fn created_before(mut self, millis: u64) -> Self {
        self.created_before = Some(millis);
        self
    }

    /// Only instances that last changed at this time or later, in milliseconds since the epoch.
    #[must_use]
    pub fn updated_from(mut self, millis: u64) -> Self {
        self.updated_from = Some(millis);
        self
    }

    /// Only instances that last changed before this time, in milliseconds since the epoch.
    #[must_use]
    pub fn updated_before(mut self, millis: u64) -> Self {
        self.updated_before = Some(millis);
        self
    }

    /// How many instances a page holds; see [`Self::page_size`].
    #[must_use]
    pub fn limit(mut self, limit: u32) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Begins where the page before ended: takes its [`InstancePage::next`].
    #[must_use]
    pub fn after(mut self, cursor: impl Into<String>) -> Self {
        self.cursor = Some(cursor.into());
        self
    }

    /// How many instances a page holds: the limit, between 1 and [`Self::MAX_LIMIT`], or [`Self::DEFAULT_LIMIT`].
    pub fn page_size(&self) -> usize {
        self.limit.unwrap_or(Self::DEFAULT_LIMIT).clamp(1, Self::MAX_LIMIT) as usize
    }

    /// Whether the criteria select this instance. Limit and cursor play no part.
    pub fn matches(&self, info: &InstanceInfo) -> bool {
        let is =
            |wanted: &Option<String>, value: &str| wanted.as_deref().is_none_or(|wanted| wanted == value);
        let within = |from: Option<u64>, before: Option<u64>, at: u64| {
            from.is_none_or(|from| from <= at) && before.is_none_or(|before| at < before)
        };
        let parent = info.parent_instance_id.as_deref();
        is(&self.status, &info.status)
            && is(&self.orchestration_name, &info.orchestration_name)
            && is(&self.orchestration_version, &info.orchestration_version)
            && self.id_prefix.as_ref().is_none_or(|prefix| info.instance_id.starts_with(prefix))
            && self.parent.as_deref().is_none_or(|wanted| parent == Some(wanted))
            && !(self.roots_only && parent.is_some())
            && within(self.created_from, self.created_before, info.created_at)
            && within(self.updated_from, self.updated_before, info.updated_at)
    }
}
