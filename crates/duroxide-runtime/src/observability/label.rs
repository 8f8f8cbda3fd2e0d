//! Label values. Numbers become ranges, so that the number of time series stays bounded.

/// How many turns an execution took.
pub(super) fn turn_count(turns: u64) -> &'static str {
    match turns {
        0..=5 => "1-5",
        6..=10 => "6-10",
        11..=50 => "11-50",
        _ => "50+",
    }
}

/// How often an activity was fetched before the run that counts.
pub(super) fn retry_attempt(attempt: u32) -> &'static str {
    match attempt {
        0 => "0",
        1 => "1",
        2 => "2",
        _ => "3+",
    }
}

/// An activity's tag.
pub(super) fn tag(tag: Option<&str>) -> String {
    tag.unwrap_or("default").to_owned()
}
