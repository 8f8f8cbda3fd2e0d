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
                let identity = [&*info.orchestration_name, &*info.orchestration_version, &*info.status];
                tally.add(&info.instance_id, identity, info.created_at, execution.completed_at);
            }
            // The instance was deleted since it was listed. The contract gives this reason as a text only.
            Err(ProviderError { retryable: false, message, .. }) if message.contains("not found") => {}
            Err(error) => return Err(error),
        }
    }
    Ok(tally.into_summary())
}

/// Counts instances one by one. It allocates for each new name, version and status, not for each instance.
#[derive(Debug)]
pub struct InstanceTally<'a> {
    request: &'a SummaryRequest,
    /// By name, version and status, with a NUL behind the first two.
    counts: BTreeMap<String, u64>,
    key: String,
    summary: InstanceSummary,
}

impl<'a> InstanceTally<'a> {
    /// A summary without instances.
    pub fn new(request: &'a SummaryRequest) -> Self {
        let summary = InstanceSummary::empty(request);
        Self { request, counts: BTreeMap::new(), key: String::new(), summary }
    }

    /// Counts an instance by its name, version and status, when it was created and when it ended, in milliseconds.
    pub fn add(
        &mut self,
        id: &str,
        [name, version, status]: [&str; 3],
        created_at: u64,
        ended_at: Option<u64>,
    ) {
        count(&mut self.summary.started, self.request.bucket_of(created_at));
        let ended = ended_at.and_then(|at| self.request.bucket_of(at));
        match status {
            "Completed" => count(&mut self.summary.completed, ended),
            "Failed" => count(&mut self.summary.failed, ended),
            "Running" => self.summary.note_running(id, created_at),
            _ => {}
        }
        self.key.clear();
        for part in [name, "\0", version, "\0", status] {
            self.key.push_str(part);
        }
        match self.counts.get_mut(&self.key) {
            Some(count) => *count += 1,
            None => drop(self.counts.insert(self.key.clone(), 1)),
        }
    }

    /// The summary of all that was counted.
    pub fn into_summary(self) -> InstanceSummary {
        let described = |(key, count): (String, u64)| {
            let mut parts = key.splitn(3, '\0').map(str::to_owned);
            let mut next = || parts.next().unwrap_or_default();
            InstanceCount { name: next(), version: next(), status: next(), count }
        };
        let mut counts: Vec<_> = self.counts.into_iter().map(described).collect();
        counts.sort_unstable();
        InstanceSummary { counts, ..self.summary }
    }
}

fn count(buckets: &mut [u64], bucket: Option<usize>) {
    if let Some(count) = bucket.and_then(|bucket| buckets.get_mut(bucket)) {
        *count += 1;
    }
}
