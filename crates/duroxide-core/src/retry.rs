use std::time::Duration;

/// How an activity call is retried by `schedule_activity_with_retry`.
#[derive(Debug, Clone)]
pub struct RetryPolicy {
    /// Attempts in all, the first included.
    pub max_attempts: u32,
    /// How long to wait between attempts.
    pub backoff: BackoffStrategy,
    /// Bound on each attempt. An attempt that exceeds it ends the call without a retry.
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

    /// Bounds each attempt.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
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
    #[should_panic(expected = "max_attempts must be at least 1")]
    fn zero_attempts_are_refused() {
        let _ = RetryPolicy::new(0);
    }
}
