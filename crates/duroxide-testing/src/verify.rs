//! [`verify_open_instances`]: checks whether new code can go on with the running instances of a store.

mod report;

use std::{sync::Arc, thread, time::Duration};

use duroxide_core::{Event, EventRole};
use duroxide_provider::{
    InstanceInfo, InstanceQuery, LoadedExecution, Provider, ProviderAdmin, ProviderError,
};
use duroxide_runtime::{OrchestrationRegistry, client::RecordedHistory, typed::Handlers};
use futures_util::StreamExt;
use tokio::{task::spawn_blocking, time::timeout};

pub use report::{FindingReport, VerifyReport};

use crate::{ReplayError, replay};

/// Checks in progress per core: one instance is replayed while another one is read. More would only cost memory.
const READ_AHEAD: usize = 2;
/// Instances per page of the listing.
const PAGE: u32 = 500;
/// Time limit of one replay. Code that never returns must not stop the check.
const REPLAY_MAX: Duration = Duration::from_secs(60);

/// The progress of [`verify_open_instances`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Instances checked so far.
    pub checked: u64,
    /// Checked instances that cannot go on.
    pub failed: u64,
    /// Running instances when the check began.
    pub total: u64,
}

/// Why a check of a store could not be carried out.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum VerifyError {
    /// The store failed.
    Store(ProviderError),
    /// The store has no management calls, so its instances cannot be listed.
    ManagementNotAvailable,
    /// The handlers cannot be registered together.
    Handlers(String),
}

/// Replays every running instance of the store with these handlers, and reports the instances that cannot go on.
///
/// The check only reads, so it may run while nodes run the old code. Each instance is checked as it is when it is
/// read; instances that end meanwhile are left out. Only a few histories are in memory at a time. Call this function in
/// a tokio runtime; replays use its blocking threads.
///
/// ```no_run
/// # use std::{process::ExitCode, sync::Arc};
/// # use duroxide_provider::Provider;
/// # use duroxide_runtime::typed::Handlers;
/// # use duroxide_testing::{VerifyError, verify_open_instances};
/// # fn handlers() -> Handlers { Handlers::new() }
/// # async fn gate(store: Arc<dyn Provider>) -> Result<ExitCode, VerifyError> {
/// let report = verify_open_instances(&store, handlers(), |progress| {
///     eprint!("\r{} of {}", progress.checked, progress.total);
/// })
/// .await?;
/// println!("{report}");
/// Ok(report.exit_code())
/// # }
/// ```
///
/// # Errors
/// If the store cannot be read, or the handlers cannot be registered together. An instance that cannot go on is not an
/// error: the report contains it.
pub async fn verify_open_instances(
    store: &Arc<dyn Provider>,
    handlers: Handlers,
    mut progress: impl FnMut(Progress),
) -> Result<VerifyReport, VerifyError> {
    let (_, orchestrations) = handlers.build().map_err(|error| VerifyError::Handlers(error.to_string()))?;
    let admin = store.as_management_capability().ok_or(VerifyError::ManagementNotAvailable)?;
    let total = admin.get_system_metrics().await?.running_instances;
    let mut report = VerifyReport::default();
    let mut query = InstanceQuery::default().status("Running").limit(PAGE);
    loop {
        let page = admin.query_instances(&query).await?;
        let checks = page.instances.into_iter().map(|open| check(store, admin, &orchestrations, open));
        let mut checks = futures_util::stream::iter(checks).buffer_unordered(cores() * READ_AHEAD);
        while let Some(checked) = checks.next().await {
            report.add(checked?);
            progress(Progress { checked: report.checked(), failed: report.failed(), total });
        }
        let Some(next) = page.next else { return Ok(report) };
        query = query.after(next);
    }
}

/// The check of one instance.
#[derive(Debug)]
struct Checked {
    instance: String,
    name: String,
    version: String,
    /// `None` if the instance has ended meanwhile.
    result: Option<Result<(), ReplayError>>,
}

async fn check(
    store: &Arc<dyn Provider>,
    admin: &dyn ProviderAdmin,
    orchestrations: &OrchestrationRegistry,
    open: InstanceInfo,
) -> Result<Checked, ProviderError> {
    let InstanceInfo { instance_id, orchestration_name: name, orchestration_version: version, .. } = open;
    let mut execution_id = open.current_execution_id;
    let loaded = loop {
        let loaded = store.load_execution(&instance_id, execution_id).await?;
        // The key-values belong to the current execution, and the instance may have continued as new meanwhile.
        let now = admin.latest_execution_id(&instance_id).await?;
        if now == execution_id {
            break loaded;
        }
        execution_id = now;
    };
    let result = check_loaded(loaded, orchestrations).await;
    Ok(Checked { instance: instance_id, name, version, result })
}

async fn check_loaded(
    loaded: LoadedExecution,
    orchestrations: &OrchestrationRegistry,
) -> Option<Result<(), ReplayError>> {
    let LoadedExecution { history, history_error, kv_snapshot } = loaded;
    if let Some(error) = history_error {
        return Some(Err(ReplayError::Unreadable(error)));
    }
    if has_ended(&history) {
        return None;
    }
    let history = RecordedHistory::new(history, kv_snapshot.into_iter().collect())?;
    let orchestrations = orchestrations.clone();
    let replayed = spawn_blocking(move || replay(history, &orchestrations));
    let unfinished = |reason: String| Err(ReplayError::Unreadable(reason));
    Some(match timeout(REPLAY_MAX, replayed).await {
        Ok(Ok(result)) => result,
        Ok(Err(panic)) => unfinished(format!("its replay ended: {panic}")),
        Err(_) => unfinished(format!("its replay took longer than {} s", REPLAY_MAX.as_secs())),
    })
}

fn has_ended(history: &[Event]) -> bool {
    history.last().is_none_or(|last| matches!(last.kind.role(), EventRole::End))
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

impl From<ProviderError> for VerifyError {
    fn from(error: ProviderError) -> Self {
        Self::Store(error)
    }
}

impl std::fmt::Display for VerifyError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Store(error) => write!(f, "the store cannot be read: {error}"),
            Self::ManagementNotAvailable => {
                f.write_str("the store has no management calls, so its instances cannot be listed")
            }
            Self::Handlers(error) => write!(f, "the handlers cannot be registered together: {error}"),
        }
    }
}

impl std::error::Error for VerifyError {}
