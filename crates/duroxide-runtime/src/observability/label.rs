//! Label values. Numbers become ranges, so that the number of time series stays bounded. Texts are copied at most once
//! for all metrics of one event, because a node records several metrics for each item.

use std::sync::Arc;

use metrics::SharedString;

/// The values that the runtime itself uses.
const OUTCOMES: [&str; 11] = [
    "success",
    "error",
    "failed",
    "cancelled",
    "app_error",
    "infra_error",
    "config_error",
    "client",
    "suborchestration",
    "continueAsNew",
    "continuedAsNew",
];

/// How something began or ended. Values of the runtime are not copied.
pub(super) fn outcome(outcome: &str) -> SharedString {
    OUTCOMES.iter().find(|known| **known == outcome).map_or_else(|| text(outcome), |known| (*known).into())
}

/// A text that several metrics can share.
pub(super) fn text(text: &str) -> SharedString {
    Arc::<str>::from(text).into()
}

/// How many turns an execution took.
pub(super) fn turn_count(turns: u64) -> &'static str {
    match turns {
        0..=5 => "1-5",
        6..=10 => "6-10",
        11..=50 => "11-50",
        _ => "50+",
    }
}

/// The number of fetches before the run that counts.
pub(super) fn retry_attempt(attempt: u32) -> &'static str {
    match attempt {
        0 => "0",
        1 => "1",
        2 => "2",
        _ => "3+",
    }
}

pub(super) fn tag(tag: Option<&str>) -> SharedString {
    tag.map_or_else(|| "default".into(), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_keep_their_values() {
        for known in OUTCOMES {
            assert_eq!(&*outcome(known), known);
        }
        assert_eq!(&*outcome("of another kind"), "of another kind");
        assert_eq!((tag(None), tag(Some("gpu"))), ("default".into(), "gpu".into()));
    }
}
