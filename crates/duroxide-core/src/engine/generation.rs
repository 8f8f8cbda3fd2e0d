//! Rules of replay that were changed, and which executions keep the old ones.
//!
//! An execution is replayed by the rules of the version that started it, because its history was recorded by them. A
//! change that alters the actions of code becomes a new generation here, and each place where the generations differ
//! asks [`Generation`]. An old generation is removed when no execution of its versions can be running any more.

use semver::Version;

/// The rules by which an execution runs and is replayed. It follows from the pinned version and never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Generation {
    /// Before 0.5.0. A retry policy tries again after every error. Code that waits for nothing recorded stays running.
    First,
    /// From 0.5.0 on. An error made by `not_retryable` ends the retries. Code that waits although no call of its own is open
    /// fails.
    Second,
}

impl Generation {
    /// The generation of executions with this version stamp on their first event. A stamp that is no version counts as
    /// made by this build, as it does for the supported range (17.4).
    pub(crate) fn of(stamp: &str) -> Self {
        match Version::parse(stamp) {
            Ok(pinned) if (pinned.major, pinned.minor) < (0, 5) => Self::First,
            _ => Self::Second,
        }
    }

    /// Whether an error can be marked as not retryable. In histories of the first generation such a text has no meaning
    /// and was retried.
    pub(crate) fn has_final_errors(self) -> bool {
        self >= Self::Second
    }

    /// Whether code that waits although no call of its own is open fails. In the first generation it rested until it was
    /// cancelled.
    pub(crate) fn refuses_foreign_waits(self) -> bool {
        self >= Self::Second
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::BUILD_VERSION;

    /// S2.16, 17.1: versions compare as numbers, and pre-release parts do not count.
    #[test]
    fn the_pinned_version_decides() {
        let first = ["0.0.1", "0.1.32", "0.4.999", "0.4.0-rc.1"];
        let second = ["0.5.0", "0.5.0-rc.1", "0.10.0", "1.0.0", BUILD_VERSION, "yesterday", ""];
        assert_eq!(first.map(Generation::of), [Generation::First; 4]);
        assert_eq!(second.map(Generation::of), [Generation::Second; 7]);
    }
}
