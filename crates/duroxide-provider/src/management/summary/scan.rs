//! The summary of instances for providers that can only list everything.

use std::collections::BTreeMap;

use super::{InstanceCount, InstanceSummary, SummaryRequest};
use crate::{ProviderAdmin, ProviderError};

/// A summary by the plain methods: two reads of every instance.
pub(crate) async fn summarize<A: ProviderAdmin + ?Sized>(
    admin: &A,
    request: &SummaryRequest,
) -> Result<InstanceSummary, ProviderError> {
    let mut tally = InstanceTally::new(request);
    for id in admin.list_instances().await? {
        let read = async {
            let info = admin.get_instance_info(&id).await?;
            let execution = admin.get_execution_info(&id, info.current_execution_id).await?;
            Ok((info, execution))
        };
        match read.await {
            Ok((info, execution)) => {
                let identity = [info.orchestration_name, info.orchestration_version, info.status];
                tally.add(&info.instance_id, identity, info.created_at, execution.completed_at);
            }
            // It was deleted since it was listed. The contract gives this reason as a text only.
            Err(ProviderError { retryable: false, message, .. }) if message.contains("not found") => {}
            Err(error) => return Err(error),
        }
    }
    Ok(tally.into_summary())
}

/// Counts instances one by one.
pub(crate) struct InstanceTally<'a> {
    request: &'a SummaryRequest,
    counts: BTreeMap<[String; 3], u64>,
    summary: InstanceSummary,
}

impl<'a> InstanceTally<'a> {
    pub(crate) fn new(request: &'a SummaryRequest) -> Self {
        Self { request, counts: BTreeMap::new(), summary: InstanceSummary::empty(request) }
    }

    /// Counts an instance by its name, version and status.
    pub(crate) fn add(&mut self, id: &str, identity: [String; 3], created_at: u64, ended_at: Option<u64>) {
        count(&mut self.summary.started, self.request.bucket_of(created_at));
        let ended = ended_at.and_then(|at| self.request.bucket_of(at));
        let [_, _, status] = &identity;
        match status.as_str() {
            "Completed" => count(&mut self.summary.completed, ended),
            "Failed" => count(&mut self.summary.failed, ended),
            "Running" => self.summary.note_running(id, created_at),
            _ => {}
        }
        *self.counts.entry(identity).or_default() += 1;
    }

    pub(crate) fn into_summary(self) -> InstanceSummary {
        let counts = self.counts.into_iter();
        let counts =
            counts.map(|([name, version, status], count)| InstanceCount { name, version, status, count });
        InstanceSummary { counts: counts.collect(), ..self.summary }
    }
}

fn count(buckets: &mut [u64], bucket: Option<usize>) {
    if let Some(count) = bucket.and_then(|bucket| buckets.get_mut(bucket)) {
        *count += 1;
    }
}
