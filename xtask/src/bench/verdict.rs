//! Targets, and whether they were met.

use std::fmt;

use serde::Serialize;

use super::table::number;

/// The target of the row at FULL.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) enum Target {
    /// At least so many times better than the published crate.
    Times(f64),
    /// Below this.
    Below(f64),
}

/// Whether a target is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Met,
    Missed,
}

impl Target {
    /// Judges our figure, or how many times better it is.
    pub(super) fn judge(&self, ours: Option<f64>, ratio: Option<f64>) -> Option<Verdict> {
        let met = match self {
            Self::Times(times) => ratio? >= *times,
            Self::Below(bound) => ours? < *bound,
        };
        Some(if met { Verdict::Met } else { Verdict::Missed })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Times(times) => write!(f, "≥ {} ×", number(*times)),
            Self::Below(bound) => write!(f, "< {}", number(*bound)),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Met => "met",
            Self::Missed => "**missed**",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_counts_from_its_bound_on() {
        assert_eq!(Target::Times(50.0).judge(None, Some(50.0)), Some(Verdict::Met));
        assert_eq!(Target::Times(50.0).judge(None, Some(49.9)), Some(Verdict::Missed));
    }

    #[test]
    fn a_bound_is_judged_without_the_published_crate() {
        assert_eq!(Target::Below(3.0).judge(Some(2.9), None), Some(Verdict::Met));
        assert_eq!(Target::Below(3.0).judge(Some(3.0), None), Some(Verdict::Missed));
    }

    #[test]
    fn a_missing_figure_gets_no_verdict() {
        assert_eq!(Target::Times(50.0).judge(Some(1.0), None), None);
        assert_eq!(Target::Below(3.0).judge(None, None), None);
    }
}
