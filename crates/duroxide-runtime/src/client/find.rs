//! Finding one instance, also one that no node has begun.

use duroxide_core::{Timestamp, WorkItem};
use duroxide_provider::{
    InstanceInfo, InstanceQuery, ProviderAdmin, ProviderError, QueuedMessageInfo, QueuedWork,
    store::pending_info,
};

use super::{Client, ClientError};

impl Client {
    /// The store's record of an instance, also of a started one that no node has begun. Such an instance has the status
    /// [`InstanceQuery::PENDING`](duroxide_provider::InstanceQuery::PENDING), and the name, version and parent of its queued
    /// start. [`get_instance_info`](Self::get_instance_info) does not find it.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use duroxide_provider::InstanceQuery;
    /// # use duroxide_runtime::{Client, ClientError};
    /// # use duroxide_store::MemoryProvider;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), ClientError> {
    /// # let client = Client::new(Arc::new(MemoryProvider::new()));
    /// client.start_orchestration("order-1", "Order", "teapot").await?;
    /// let order = client.find_instance("order-1").await?;
    /// assert_eq!((order.orchestration_name.as_str(), order.status.as_str()), ("Order", InstanceQuery::PENDING));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InstanceNotFound`, `ManagementNotAvailable`, or the store's error.
    pub async fn find_instance(&self, instance: &str) -> Result<InstanceInfo, ClientError> {
        let admin = self.admin()?;
        if let Some(info) = begun(admin, instance).await? {
            return Ok(info);
        }
        if self.store.read_status_or_pending(instance).await?.is_none() {
            return Err(ClientError::InstanceNotFound { instance_id: instance.to_owned() });
        }
        let work = admin.read_queued_work(instance).await?;
        Ok(record(admin, instance, work.as_ref()).await?)
    }
}

/// The record of an instance that exists. Read its queued work first: a node that begins the instance between the two reads
/// takes the start out of the queue, and the record exists.
pub(super) async fn record(
    admin: &dyn ProviderAdmin,
    instance: &str,
    work: Option<&QueuedWork>,
) -> Result<InstanceInfo, ProviderError> {
    if let Some(info) = begun(admin, instance).await? {
        return Ok(info);
    }
    if let Some(info) = work.and_then(|work| described_by_start(instance, work)) {
        return Ok(info);
    }
    // Queued work shows the first messages of a long mailbox only; the start may be behind them.
    let listed = listed(admin, instance).await?;
    Ok(listed.unwrap_or_else(|| pending_info(instance.to_owned(), "", Timestamp::ZERO, Timestamp::ZERO)))
}

/// The record of an instance that a node has begun. The store's error is only a text, so every error that is not worth a
/// second attempt means that there is no record.
async fn begun(admin: &dyn ProviderAdmin, instance: &str) -> Result<Option<InstanceInfo>, ProviderError> {
    match admin.get_instance_info(instance).await {
        Err(error) if !error.is_retryable() => Ok(None),
        info => info.map(Some),
    }
}

/// The record of an instance that no node has begun, from its queued start.
fn described_by_start(instance: &str, work: &QueuedWork) -> Option<InstanceInfo> {
    let is_start = |shown: &&QueuedMessageInfo| {
        let item = serde_json::from_str(&shown.data).ok();
        matches!(item, Some(WorkItem::StartOrchestration { .. } | WorkItem::ContinueAsNew { .. }))
    };
    let start = work.messages.iter().find(is_start)?;
    let since = Timestamp::from_millis(start.enqueued_at_ms);
    Some(pending_info(instance.to_owned(), &start.data, since, since))
}

/// The instance among those that no node has begun.
async fn listed(admin: &dyn ProviderAdmin, instance: &str) -> Result<Option<InstanceInfo>, ProviderError> {
    let mut query = InstanceQuery::default().status(InstanceQuery::PENDING).id_prefix(instance);
    loop {
        let page = admin.query_instances(&query).await?;
        let found = page.instances.into_iter().find(|info| info.instance_id == instance);
        match (found, page.next) {
            (None, Some(next)) => query = query.after(next),
            (found, _) => return Ok(found),
        }
    }
}
