//! [`RetryPolicy`] and the delays between attempts.

use std::time::Duration;

/// How an activity call is retried by `schedule_activity_with_retry`.
#[derive(Debug, Clone)]
pub struct RetryPolicy {
    /// The maximum number of attempts, the first included.
    pub max_attempts: u32,
    /// How long to wait between attempts.
    pub backoff: BackoffStrategy,
    /// Bound on each attempt, see [`with_timeout`](Self::with_timeout).
    pub timeout: Option<Duration>,
}

impl RetryPolicy {
    /// A policy with this many attempts, the default backoff and no timeout.
    ///
    /// # Panics
    /// If `max_attempts` is 0.
    pub fn new(max_attempts: u32) -> Self {
        assert!(max_attempts >= 1, "max_attempts must be at least 1");
        Self { max_attempts, ..Self::default() }
    }

    /// Bounds each attempt from the call to its result: waiting for a worker and downtime count. An attempt that takes
    /// longer ends the whole call with `timeout: activity timed out`, without a retry, and its activity is asked to
    /// stop.
    ///
    /// This is a deadline for the caller. To bound how long an activity runs once a worker has begun it, use
    /// [`with_attempt_timeout`](Self::with_attempt_timeout).
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Bounds how long each attempt runs, measured by the worker from the moment it starts the activity. Waiting in a
    /// backlog and downtime do not count.
    ///
    /// An activity that runs longer is asked to stop (its token fires), is dropped after
    /// `activity_cancellation_grace_period`, and the attempt has failed with
    /// `timeout: activity attempt timed out after {n} ms`, which is retried as the policy says. An activity that blocks
    /// its thread cannot be dropped and may still run during the next attempt.
    #[must_use]
    pub fn with_attempt_timeout(self, timeout: Duration) -> RetryOptions {
        RetryOptions::from(self).with_attempt_timeout(timeout)
    }

    /// Sets the wait between attempts.
    #[must_use]
    pub fn with_backoff(mut self, backoff: BackoffStrategy) -> Self {
        self.backoff = backoff;
        self
    }

    /// The wait after the given attempt failed; attempts count from 1.
    pub fn delay_for_attempt(&self, attempt: u32) -> Duration {
        self.backoff.delay_for_attempt(attempt)
    }
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { max_attempts: 3, backoff: BackoffStrategy::default(), timeout: None }
    }
}

/// A [`RetryPolicy`] with a bound on the duration of each attempt. [`RetryPolicy::with_attempt_timeout`] returns it, and the
/// retrying calls accept it.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RetryOptions {
    /// The attempts and the delays between them.
    pub policy: RetryPolicy,
    /// How long each attempt may run, from the moment a worker starts it.
    pub attempt_timeout: Option<Duration>,
}

impl RetryOptions {
    /// Like [`RetryPolicy::with_attempt_timeout`].
    #[must_use]
    pub fn with_attempt_timeout(mut self, timeout: Duration) -> Self {
        self.attempt_timeout = Some(timeout);
        self
    }

    /// Like [`RetryPolicy::with_timeout`].
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.policy = self.policy.with_timeout(timeout);
        self
    }

    /// Like [`RetryPolicy::with_backoff`].
    #[must_use]
    pub fn with_backoff(mut self, backoff: BackoffStrategy) -> Self {
        self.policy = self.policy.with_backoff(backoff);
        self
    }
}

impl From<RetryPolicy> for RetryOptions {
    fn from(policy: RetryPolicy) -> Self {
        Self { policy, attempt_timeout: None }
    }
}

/// The prefix of errors that are not retried. It is recorded in histories, so it must never change.
const NOT_RETRYABLE: &str = "[not retryable] ";

/// Marks an error that a retry cannot fix, such as a declined card or a malformed request. If an activity returns the
/// marked text, `schedule_activity_with_retry` ends with it at once.
///
/// The text begins with `[not retryable] `, also where it is shown and where it is passed on, so that every caller above
/// sees it. Marking a text twice changes nothing.
///
/// ```
/// # use duroxide_core::{is_not_retryable, not_retryable};
/// fn charge(cents: i64) -> Result<String, String> {
///     if cents <= 0 {
///         return Err(not_retryable("nothing to charge"));
///     }
///     Err("the bank does not answer".into())
/// }
/// assert!(is_not_retryable(&charge(0).unwrap_err()));
/// assert!(!is_not_retryable(&charge(5).unwrap_err()));
/// ```
pub fn not_retryable(error: impl Into<String>) -> String {
    let error = error.into();
    if is_not_retryable(&error) { error } else { format!("{NOT_RETRYABLE}{error}") }
}

/// Whether an error text was made by [`not_retryable`].
pub fn is_not_retryable(error: &str) -> bool {
    error.starts_with(NOT_RETRYABLE)
}

/// An error text without the mark of [`not_retryable`].
pub(crate) fn without_not_retryable(error: &str) -> &str {
    error.strip_prefix(NOT_RETRYABLE).unwrap_or(error)
}

/// How waits between attempts grow.
#[derive(Debug, Clone)]
pub enum BackoffStrategy {
    /// No wait.
    None,
    /// Always the same wait.
    Fixed {
        /// The wait.
        delay: Duration,
    },
    /// `base * attempt`, up to `max`.
    Linear {
        /// The first wait.
        base: Duration,
        /// The longest wait.
        max: Duration,
    },
    /// `base * multiplier^(attempt - 1)`, up to `max`.
    Exponential {
        /// The first wait.
        base: Duration,
        /// Growth per attempt.
        multiplier: f64,
        /// The longest wait.
        max: Duration,
    },
}

impl BackoffStrategy {
    /// The wait after the given attempt failed; attempts count from 1.
    pub fn delay_for_attempt(&self, attempt: u32) -> Duration {
        match self {
            Self::None => Duration::ZERO,
            Self::Fixed { delay } => *delay,
            Self::Linear { base, max } => base.saturating_mul(attempt).min(*max),
            Self::Exponential { base, multiplier, max } => {
                let exponent = i32::try_from(attempt.saturating_sub(1)).unwrap_or(i32::MAX);
                let seconds = base.as_secs_f64() * multiplier.powi(exponent);
                // Overflow and NaN (a multiplier that is not a number) both mean "as long as allowed".
                Duration::try_from_secs_f64(seconds).map_or(*max, |delay| delay.min(*max))
            }
        }
    }
}

impl Default for BackoffStrategy {
    fn default() -> Self {
        Self::Exponential { base: Duration::from_millis(100), multiplier: 2.0, max: Duration::from_secs(30) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_grows_and_saturates() {
        let backoff = BackoffStrategy::default();
        let millis: Vec<_> =
            [1, 2, 3, 4, 40, u32::MAX].map(|n| backoff.delay_for_attempt(n).as_millis()).to_vec();
        assert_eq!(millis, [100, 200, 400, 800, 30_000, 30_000]);
    }

    #[test]
    fn linear_is_capped() {
        let backoff = BackoffStrategy::Linear { base: Duration::from_secs(2), max: Duration::from_secs(5) };
        assert_eq!(backoff.delay_for_attempt(2), Duration::from_secs(4));
        assert_eq!(backoff.delay_for_attempt(u32::MAX), Duration::from_secs(5));
    }

    #[test]
    fn options_keep_the_policy_whatever_the_order() {
        let second = Duration::from_secs(1);
        let before = RetryPolicy::new(7).with_timeout(second).with_attempt_timeout(second);
        let after = RetryPolicy::new(7).with_attempt_timeout(second).with_timeout(second);
        for options in [before, after.with_backoff(BackoffStrategy::default())] {
            assert_eq!(options.policy.max_attempts, 7);
            assert_eq!((options.policy.timeout, options.attempt_timeout), (Some(second), Some(second)));
        }
        assert_eq!(RetryOptions::from(RetryPolicy::new(1)).attempt_timeout, None);
    }

    #[test]
    fn a_text_is_marked_once() {
        let once = not_retryable("declined");
        assert_eq!(once, "[not retryable] declined");
        assert_eq!(not_retryable(once.clone()), once);
        assert!(!is_not_retryable("declined: [not retryable] "));
    }

    #[test]
    #[should_panic(expected = "max_attempts must be at least 1")]
    fn zero_attempts_are_refused() {
        let _ = RetryPolicy::new(0);
    }
}
