//! [`Node`]: the state that the loops and tasks of one runtime share.

pub(super) mod background;
mod descriptors;
mod in_progress;
pub(super) mod membership;
mod sweep;

pub(crate) use in_progress::InProgressGuard;

use std::{fmt, sync::Arc, time::Duration};

use duroxide_core::{Clock, OrchestrationHandlerRef, Timestamp};
use duroxide_provider::{DispatcherCapabilityFilter, HandlerCapability, Provider, SemverRange};
use semver::Version;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::{
    activity::{ActivityRun, RunningActivities},
    decide::Handlers,
    locks::{HeldLocks, LockKind},
    node::membership::Membership,
    provider_call,
    quarantine::Quarantine,
    timing::{WORK_RENEWAL_MAX, renewal_interval},
};
use crate::{
    ActivityRegistry, Client, OrchestrationRegistry, RuntimeOptions,
    cache::{CachedExecution, ExecutionCache},
    env::{Env, Tasks, Timer},
    observability::MetricsProvider,
};

use descriptors::Descriptors;
use in_progress::InProgress;

/// The parts that a node is built from.
pub(crate) struct NodeParts {
    pub env: Arc<dyn Env>,
    pub clock: Arc<dyn Clock>,
    pub store: Arc<dyn Provider>,
    pub options: RuntimeOptions,
    pub orchestrations: OrchestrationRegistry,
    pub activities: ActivityRegistry,
    pub metrics: Arc<MetricsProvider>,
}

/// A running node: everything its loops and tasks share.
pub(crate) struct Node {
    pub env: Arc<dyn Env>,
    /// The clock of all recorded times.
    pub clock: Arc<dyn Clock>,
    pub store: Arc<dyn Provider>,
    pub options: RuntimeOptions,
    pub orchestrations: OrchestrationRegistry,
    pub activities: ActivityRegistry,
    pub metrics: Arc<MetricsProvider>,
    pub client: Client,
    pub filter: DispatcherCapabilityFilter,
    pub capability: Option<HandlerCapability>,
    /// Random, so that no two slots of two nodes share an id.
    pub id: String,
    pub cache: ExecutionCache,
    pub descriptors: Descriptors,
    pub running: Arc<RunningActivities>,
    pub locks: HeldLocks,
    pub membership: Membership,
    pub quarantine: Arc<Quarantine>,
    /// The instances whose turns run right now.
    pub turns: Arc<InProgress<String>>,
    /// The activities whose code runs, or whose context is still held by something they started.
    pub activity_code: Arc<InProgress<ActivityRun>>,
    /// Fires with the first claim of an activity that belongs to a session.
    pub has_sessions: CancellationToken,
    /// Fires when the node stops fetching.
    pub stopping: CancellationToken,
    /// The dispatch loops and the tasks of claimed items.
    pub work: Tasks,
    /// User code of activities.
    pub user_code: Tasks,
    /// Session renewal, gauges and the sweeper.
    pub background: Tasks,
}

/// Timeout and renewal interval of a lock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LeaseTerms {
    pub timeout: Duration,
    pub interval: Duration,
}

impl Node {
    pub(crate) fn new(parts: NodeParts) -> Self {
        let NodeParts { env, clock, store, options, orchestrations, activities, metrics } = parts;
        Self {
            client: Client::with_limits(Arc::clone(&store), options.limits.clone())
                .with_timer(Arc::clone(&env) as Arc<dyn Timer>),
            filter: DispatcherCapabilityFilter { supported_duroxide_versions: supported_versions(&options) },
            capability: options
                .handler_capability_filter
                .then(|| handler_capability(&orchestrations, &activities)),
            id: env.node_name(),
            cache: ExecutionCache::new(options.execution_cache_size, options.execution_cache_bytes),
            descriptors: Descriptors::default(),
            running: Arc::default(),
            turns: Arc::default(),
            activity_code: Arc::default(),
            locks: HeldLocks::default(),
            membership: Membership::new(Arc::clone(&env)),
            quarantine: Arc::default(),
            has_sessions: CancellationToken::new(),
            stopping: CancellationToken::new(),
            work: Tasks::new(Arc::clone(&env)),
            user_code: Tasks::of_user_code(Arc::clone(&env)),
            background: Tasks::new(Arc::clone(&env)),
            env,
            clock,
            store,
            options,
            orchestrations,
            activities,
            metrics,
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn lease_terms(&self, kind: LockKind) -> LeaseTerms {
        let options = &self.options;
        let (timeout, buffer, at_most) = match kind {
            LockKind::Instance => {
                (options.orchestrator_lock_timeout, options.orchestrator_lock_renewal_buffer, None)
            }
            LockKind::Activity => {
                (options.worker_lock_timeout, options.worker_lock_renewal_buffer, Some(WORK_RENEWAL_MAX))
            }
        };
        LeaseTerms { timeout, interval: renewal_interval(timeout, buffer, at_most) }
    }

    /// Abandons a claim. If the call fails, the lock is left to its lease, which is no longer renewed.
    pub(crate) async fn abandon(
        &self,
        kind: LockKind,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) {
        let answer = match kind {
            LockKind::Instance => {
                let call = self.store.abandon_orchestration_item(token, delay, ignore_attempt);
                provider_call("abandon_orchestration_item", call).await
            }
            LockKind::Activity => {
                let call = self.store.abandon_work_item(token, delay, ignore_attempt);
                provider_call("abandon_work_item", call).await
            }
        };
        self.locks.remove(token);
        if let Err(error) = answer
            && !error.is_lock_lost()
        {
            warn!(target: "duroxide::runtime", %error, "could not abandon a claim; its lock ends with its lease");
        }
    }

    /// Drops executions on a turn thread, because their destructors are user code.
    pub(crate) fn drop_on_turn_thread(&self, executions: impl IntoIterator<Item = CachedExecution>) {
        let executions: Vec<_> = executions.into_iter().collect();
        if !executions.is_empty() {
            self.env.run_turn(Box::new(move || drop(executions)));
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.drop_on_turn_thread(self.cache.clear());
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node").field("id", &self.id).field("cache", &self.cache).finish_non_exhaustive()
    }
}

impl Handlers for OrchestrationRegistry {
    fn find(&self, name: &str, version: Option<&str>) -> Option<(String, OrchestrationHandlerRef)> {
        match version {
            Some(text) => {
                let handler = self.resolve_handler_exact(name, &Version::parse(text).ok()?)?;
                Some((text.to_owned(), handler))
            }
            None => self.resolve_handler(name).map(|(version, handler)| (version.to_string(), handler)),
        }
    }
}

/// The pinned versions this node replays (17.2).
fn supported_versions(options: &RuntimeOptions) -> Vec<SemverRange> {
    let configured = options.supported_replay_versions.clone();
    std::iter::once(configured.unwrap_or_else(SemverRange::default_for_current_build))
        .chain(options.extra_replay_versions.iter().cloned())
        .collect()
}

/// The handlers of this node, by name and version (17.7).
fn handler_capability(
    orchestrations: &OrchestrationRegistry,
    activities: &ActivityRegistry,
) -> HandlerCapability {
    let exactly = |version: Version| SemverRange::new(version.clone(), version);
    let versions = |name: &str| orchestrations.list_versions(name).into_iter().map(exactly).collect();
    HandlerCapability {
        supported_orchestrations: Some(
            orchestrations.list_names().into_iter().map(|name| (name.clone(), versions(&name))).collect(),
        ),
        supported_activities: Some(activities.list_names().into_iter().collect()),
    }
}
