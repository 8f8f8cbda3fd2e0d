//! [`RuntimeOptions`]: every setting of a runtime with its default.

use std::time::Duration;

use duroxide_core::RuntimeLimits;
use duroxide_provider::{SemverRange, TagFilter};

use crate::ObservabilityConfig;

/// Every setting of a runtime.
///
/// Build it with `RuntimeOptions { …, ..Default::default() }`: fields may be added.
#[derive(Debug, Clone)]
pub struct RuntimeOptions {
    /// The pause after a fetch that returned nothing before its long poll ended.
    pub dispatcher_min_poll_interval: Duration,
    /// How long a fetch waits for work inside the provider.
    pub dispatcher_long_poll_timeout: Duration,
    /// Turns that run at the same time; 0 runs none here.
    pub orchestration_concurrency: usize,
    /// Activities that run at the same time; 0 runs none here.
    pub worker_concurrency: usize,
    /// The lock timeout of an instance.
    pub orchestrator_lock_timeout: Duration,
    /// How long before its end an instance's lock is renewed.
    pub orchestrator_lock_renewal_buffer: Duration,
    /// The lock timeout of an activity.
    pub worker_lock_timeout: Duration,
    /// How long before its end an activity's lock is renewed.
    pub worker_lock_renewal_buffer: Duration,
    /// Logging and metrics.
    pub observability: ObservabilityConfig,
    /// The delay of abandoned work that this node has no handler for.
    pub unregistered_backoff: UnregisteredBackoffConfig,
    /// The number of fetches after which a message is poison.
    pub max_attempts: u32,
    /// How long an activity that was asked to stop may clean up before its task is aborted.
    pub activity_cancellation_grace_period: Duration,
    /// Pinned versions this node replays; `None` is 0.0.0 to this build, both included.
    pub supported_replay_versions: Option<SemverRange>,
    /// The length of a session's lease.
    pub session_lock_timeout: Duration,
    /// How long before its end a session's lock is renewed.
    pub session_lock_renewal_buffer: Duration,
    /// The time without activity after which a session can be claimed by another owner.
    pub session_idle_timeout: Duration,
    /// How often orphaned sessions are removed.
    pub session_cleanup_interval: Duration,
    /// The maximum number of distinct sessions in flight.
    pub max_sessions_per_runtime: usize,
    /// The owner id of this node's sessions, if they should survive a restart.
    pub worker_node_id: Option<String>,
    /// Which tagged activities run here.
    pub worker_tag_filter: TagFilter,
    /// How long one turn may take; `None` is unlimited.
    pub turn_timeout: Option<Duration>,
    /// How long one run of an activity may take; `None` is unlimited.
    pub activity_execution_timeout: Option<Duration>,
    /// Limits on payloads, histories, mailboxes and turns.
    pub limits: RuntimeLimits,
    /// Live executions cached between turns; 0 replays every turn.
    pub execution_cache_size: usize,
    /// Memory for these executions, in bytes; 256 MiB by default. Counts inputs, results and events that reached the
    /// code, unread messages and key-values. The least recently used execution is evicted first, and a larger one is
    /// not cached.
    pub execution_cache_bytes: usize,
    /// Whether fetches ask only for work that this node has handlers for.
    pub handler_capability_filter: bool,
    /// Pinned versions this node replays besides `supported_replay_versions`.
    pub extra_replay_versions: Vec<SemverRange>,
    /// The time after which work that no node can take is ended, with an error that names the missing capability;
    /// `None` only reports it. All nodes must be of this release or later, because older nodes do not announce their
    /// capabilities.
    pub sweep_unsupported_after: Option<Duration>,
    /// Whether a cancellation ends an execution that no node can replay, without replaying it.
    pub cancel_only_fallback: bool,
    /// Which turns are replayed from scratch and compared with their live execution; none by default.
    pub audit: AuditOptions,
}

/// Turns that are replayed from scratch, to find code that does not do the same again.
///
/// Replaying costs a read of the whole history and a run of the code over it. In tests audit every turn and let a difference fail
/// the execution; in production audit one turn in thousands and watch `duroxide_audit_differences_total`.
///
/// ```
/// # use duroxide_runtime::{AuditAction, AuditOptions, RuntimeOptions};
/// let in_tests = AuditOptions { fraction: 1.0, action: AuditAction::Fail };
/// let in_production = AuditOptions { fraction: 0.001, action: AuditAction::Report };
/// let options = RuntimeOptions { audit: in_tests, ..RuntimeOptions::default() };
/// # let _ = (options, in_production);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AuditOptions {
    /// The fraction of turns that are audited, from 0 (none) to 1 (all).
    pub fraction: f64,
    /// The reaction to a difference.
    pub action: AuditAction,
}

/// The reaction to a difference between a turn and its replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuditAction {
    /// The difference is logged as an error and counted in `duroxide_audit_differences_total`. The execution goes on.
    Report,
    /// The difference is reported, and the execution fails with `ConfigErrorKind::Nondeterminism` in place of the turn.
    Fail,
}

impl Default for AuditOptions {
    fn default() -> Self {
        Self { fraction: 0.0, action: AuditAction::Report }
    }
}

impl Default for RuntimeOptions {
    fn default() -> Self {
        Self {
            dispatcher_min_poll_interval: Duration::from_millis(100),
            dispatcher_long_poll_timeout: Duration::from_secs(30),
            orchestration_concurrency: 2,
            worker_concurrency: 2,
            orchestrator_lock_timeout: Duration::from_secs(5),
            orchestrator_lock_renewal_buffer: Duration::from_secs(2),
            worker_lock_timeout: Duration::from_secs(30),
            worker_lock_renewal_buffer: Duration::from_secs(5),
            observability: ObservabilityConfig::default(),
            unregistered_backoff: UnregisteredBackoffConfig::default(),
            max_attempts: 10,
            activity_cancellation_grace_period: Duration::from_secs(10),
            supported_replay_versions: None,
            session_lock_timeout: Duration::from_secs(30),
            session_lock_renewal_buffer: Duration::from_secs(5),
            session_idle_timeout: Duration::from_secs(300),
            session_cleanup_interval: Duration::from_secs(300),
            max_sessions_per_runtime: 10,
            worker_node_id: None,
            worker_tag_filter: TagFilter::default(),
            turn_timeout: Some(Duration::from_secs(60)),
            activity_execution_timeout: None,
            limits: RuntimeLimits::default(),
            execution_cache_size: 10_000,
            execution_cache_bytes: 256 << 20,
            handler_capability_filter: false,
            extra_replay_versions: Vec::new(),
            sweep_unsupported_after: None,
            cancel_only_fallback: false,
            audit: AuditOptions::default(),
        }
    }
}

impl RuntimeOptions {
    /// Refuses settings under which sessions would go idle while their activities run.
    #[expect(clippy::panic, reason = "the published contract of starting a runtime")]
    pub(crate) fn assert_valid(&self) {
        // Renewing an activity's lock keeps its session active: with an idle timeout below that interval a session
        // would go idle between two renewals.
        let renewal_interval = self
            .worker_lock_timeout
            .checked_sub(self.worker_lock_renewal_buffer)
            .unwrap_or(Duration::from_secs(1));
        if self.session_idle_timeout <= renewal_interval {
            panic!(
                "session_idle_timeout ({}s) must be greater than worker lock renewal interval ({}s). \
                 Sessions would be taken for idle while their activities still run.",
                self.session_idle_timeout.as_secs_f64(),
                renewal_interval.as_secs_f64(),
            );
        }
    }
}

/// The delay of work that a node has no handler for: doubling from `base_delay` up to `max_delay`.
#[derive(Debug, Clone)]
pub struct UnregisteredBackoffConfig {
    /// The first delay.
    pub base_delay: Duration,
    /// The longest delay.
    pub max_delay: Duration,
}

impl Default for UnregisteredBackoffConfig {
    fn default() -> Self {
        Self { base_delay: Duration::from_secs(1), max_delay: Duration::from_secs(60) }
    }
}

impl UnregisteredBackoffConfig {
    /// The delay after fetch number `attempt_count`, counted from 1; 0 behaves like 1.
    pub fn delay(&self, attempt_count: u32) -> Duration {
        /// Further doublings change nothing: 64 times the base is long enough for any deployment.
        const MAX_DOUBLINGS: u32 = 6;
        let doublings = attempt_count.saturating_sub(1).min(MAX_DOUBLINGS);
        self.base_delay.saturating_mul(1 << doublings).min(self.max_delay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delays_secs(config: &UnregisteredBackoffConfig, attempts: impl IntoIterator<Item = u32>) -> Vec<u64> {
        attempts.into_iter().map(|attempt| config.delay(attempt).as_secs()).collect()
    }

    /// S0.9, S0.12, S0.40
    #[test]
    fn the_default_backoff_doubles_from_one_second_to_a_minute() {
        let config = UnregisteredBackoffConfig::default();
        assert_eq!(delays_secs(&config, 1..=9), [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    }

    /// S0.10
    #[test]
    fn attempt_zero_behaves_like_the_first() {
        let config = UnregisteredBackoffConfig::default();
        assert_eq!(config.delay(0), config.delay(1));
    }

    /// S0.10, S0.41
    #[test]
    fn doubling_ends_at_64_times_the_base_and_never_overflows() {
        let config =
            UnregisteredBackoffConfig { base_delay: Duration::from_secs(1), max_delay: Duration::MAX };
        assert_eq!(delays_secs(&config, [7, 8, 100, u32::MAX]), [64, 64, 64, 64]);
        let huge = UnregisteredBackoffConfig { base_delay: Duration::MAX, max_delay: Duration::MAX };
        assert_eq!(huge.delay(u32::MAX), Duration::MAX);
    }

    /// S0.6, S0.8, S0.42
    #[test]
    fn base_and_maximum_are_configurable() {
        let config = UnregisteredBackoffConfig {
            base_delay: Duration::from_millis(100),
            max_delay: Duration::from_millis(500),
        };
        let delays: Vec<_> = (1..=5).map(|attempt| config.delay(attempt).as_millis()).collect();
        assert_eq!(delays, [100, 200, 400, 500, 500]);
        let flat = UnregisteredBackoffConfig { max_delay: Duration::from_millis(10), ..config };
        assert_eq!(flat.delay(1), Duration::from_millis(10), "the maximum holds for the base too");
    }

    /// S0.30, S1.19, S3.30, C1
    #[test]
    fn the_defaults_are_the_published_ones() {
        let options = RuntimeOptions::default();
        assert_eq!(options.dispatcher_min_poll_interval, Duration::from_millis(100));
        assert_eq!(options.dispatcher_long_poll_timeout, Duration::from_secs(30));
        assert_eq!((options.orchestration_concurrency, options.worker_concurrency), (2, 2));
        assert_eq!(options.orchestrator_lock_timeout, Duration::from_secs(5));
        assert_eq!(options.orchestrator_lock_renewal_buffer, Duration::from_secs(2));
        assert_eq!(options.worker_lock_timeout, Duration::from_secs(30));
        assert_eq!(options.worker_lock_renewal_buffer, Duration::from_secs(5));
        assert_eq!(options.unregistered_backoff.base_delay, Duration::from_secs(1));
        assert_eq!(options.max_attempts, 10);
        assert_eq!(options.activity_cancellation_grace_period, Duration::from_secs(10));
        assert_eq!(options.supported_replay_versions, None);
        assert_eq!(options.session_idle_timeout, Duration::from_secs(300));
        assert_eq!(options.max_sessions_per_runtime, 10);
        assert_eq!(options.worker_tag_filter, TagFilter::DefaultOnly);
        assert_eq!(options.turn_timeout, Some(Duration::from_secs(60)));
        assert_eq!(options.activity_execution_timeout, None);
        assert_eq!((options.execution_cache_size, options.execution_cache_bytes), (10_000, 256 << 20));
        assert!(!options.handler_capability_filter);
    }

    #[test]
    fn the_defaults_are_valid() {
        RuntimeOptions::default().assert_valid();
    }

    #[test]
    #[should_panic(
        expected = "session_idle_timeout (25s) must be greater than worker lock renewal interval (25s)."
    )]
    fn a_session_must_outlive_the_renewals_of_its_activities() {
        let idle = Duration::from_secs(25);
        RuntimeOptions { session_idle_timeout: idle, ..Default::default() }.assert_valid();
    }

    #[test]
    #[should_panic(
        expected = "session_idle_timeout (0.5s) must be greater than worker lock renewal interval (1s)."
    )]
    fn a_buffer_above_the_lease_counts_as_one_second() {
        RuntimeOptions {
            session_idle_timeout: Duration::from_millis(500),
            worker_lock_timeout: Duration::from_secs(2),
            worker_lock_renewal_buffer: Duration::from_secs(5),
            ..Default::default()
        }
        .assert_valid();
    }
}
