//! The summary of instances for providers that can only list everything.

use std::collections::BTreeMap;

use super::{InstanceCount, InstanceSummary, SummaryRequest};
use crate::{ExecutionInfo, InstanceInfo, ProviderAdmin, ProviderError};

/// A summary by the plain methods: two reads of every instance.
pub(crate) async fn summarize<A: ProviderAdmin + ?Sized>(
    admin: &A,
    request: &SummaryRequest,
) -> Result<InstanceSummary, ProviderError> {
    let mut tally = Tally::new(request);
    for id in admin.list_instances().await? {
        let read = async {
            let info = admin.get_instance_info(&id).await?;
            let execution = admin.get_execution_info(&id, info.current_execution_id).await?;
            Ok((info, execution))
        };
        match read.await {
            Ok((info, execution)) => tally.add(&info, &execution),
            // It was deleted since it was listed. The contract gives this reason as a text only.
            Err(ProviderError { retryable: false, message, .. }) if message.contains("not found") => {}
            Err(error) => return Err(error),
        }
    }
    Ok(tally.into_summary())
}

struct Tally<'a> {
    request: &'a SummaryRequest,
    counts: BTreeMap<(String, String, String), u64>,
    summary: InstanceSummary,
}

impl<'a> Tally<'a> {
    fn new(request: &'a SummaryRequest) -> Self {
        Self { request, counts: BTreeMap::new(), summary: InstanceSummary::empty(request) }
    }

    fn add(&mut self, info: &InstanceInfo, execution: &ExecutionInfo) {
        let key = (info.orchestration_name.clone(), info.orchestration_version.clone(), info.status.clone());
        *self.counts.entry(key).or_default() += 1;
        count(&mut self.summary.started, self.request.bucket_of(info.created_at));
        let ended = execution.completed_at.and_then(|at| self.request.bucket_of(at));
        match info.status.as_str() {
            "Completed" => count(&mut self.summary.completed, ended),
            "Failed" => count(&mut self.summary.failed, ended),
            "Running" => self.summary.note_running(&info.instance_id, info.created_at),
            _ => {}
        }
    }

    fn into_summary(self) -> InstanceSummary {
        let counts = self.counts.into_iter();
        let counts =
            counts.map(|((name, version, status), count)| InstanceCount { name, version, status, count });
        InstanceSummary { counts: counts.collect(), ..self.summary }
    }
}

fn count(buckets: &mut [u64], bucket: Option<usize>) {
    if let Some(count) = bucket.and_then(|bucket| buckets.get_mut(bucket)) {
        *count += 1;
    }
}
