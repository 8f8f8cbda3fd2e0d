//! Times, durations, sizes and payloads as people read them.

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since the epoch, on this machine's clock.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A time as `2026-11-17 07:38:23`, in UTC.
pub(crate) fn time(ms: u64) -> String {
    let (days, seconds) = (ms / 86_400_000, ms / 1_000 % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}

/// A time of day as `07:38:23.250`, in UTC.
pub(crate) fn clock(ms: u64) -> String {
    let text = time(ms);
    format!("{}.{:03}", text.get(11..).unwrap_or_default(), ms % 1_000)
}

/// Year, month and day of a number of days since 1970, by the Gregorian calendar.
fn civil(days: u64) -> (u64, u64, u64) {
    // Years begin in March here, so that the leap day is the last day of a year.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

/// The milliseconds of a time as browsers write it, `2026-11-17T07:38` with or without seconds, taken as UTC.
pub(crate) fn parse_time(text: &str) -> Option<u64> {
    let (date, clock) = text.split_once('T')?;
    let numbers =
        |text: &str, mark| -> Option<Vec<u64>> { text.split(mark).map(|part| part.parse().ok()).collect() };
    let [year, month, day] = numbers(date, '-')?.try_into().ok()?;
    let clock = numbers(clock.trim_end_matches('Z'), ':')?;
    let (hour, minute, second) = (*clock.first()?, *clock.get(1)?, clock.get(2).copied().unwrap_or(0));
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || hour > 23 || minute > 59 || second > 59
    {
        return None;
    }
    // The inverse of `civil`. A day that does not exist, such as 31 April, does not survive the round trip.
    let shifted = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (shifted / 400, shifted % 400);
    let march_month = (month + 9) % 12;
    let day_of_year = (153 * march_month + 2) / 5 + day.checked_sub(1)?;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = (era * 146_097 + day_of_era).checked_sub(719_468)?;
    let exists = civil(days) == (year, month, day);
    exists.then_some((days * 86_400 + hour * 3_600 + minute * 60 + second) * 1_000)
}

/// A time on the page: the moment, and how long ago it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) at: String,
    /// `3 h ago`, or `in 3 h`.
    pub(crate) relative: String,
}

impl Moment {
    pub(crate) fn new(ms: u64, now_ms: u64) -> Self {
        let relative = match ms <= now_ms {
            true => format!("{} ago", duration(now_ms - ms)),
            false => format!("in {}", duration(ms - now_ms)),
        };
        Self { at: time(ms), relative }
    }
}

/// A duration with one or two units: `120 ms`, `4.2 s`, `3 min 5 s`, `2 h 10 min`, `4 d 3 h`.
pub(crate) fn duration(ms: u64) -> String {
    let two = |value: u64, unit: &str, rest: u64, small: &str| match rest {
        0 => format!("{value} {unit}"),
        rest => format!("{value} {unit} {rest} {small}"),
    };
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..10_000 => format!("{}.{} s", ms / 1_000, ms / 100 % 10),
        10_000..60_000 => format!("{} s", ms / 1_000),
        60_000..3_600_000 => two(ms / 60_000, "min", ms / 1_000 % 60, "s"),
        3_600_000..86_400_000 => two(ms / 3_600_000, "h", ms / 60_000 % 60, "min"),
        _ => two(ms / 86_400_000, "d", ms / 3_600_000 % 24, "h"),
    }
}

/// A number with separators: `1,234,567`.
pub(crate) fn number(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A size: `12 B`, `3.4 KiB`, `1.2 MiB`.
pub(crate) fn size(bytes: usize) -> String {
    let tenths = |unit: usize| format!("{}.{}", bytes / unit, bytes % unit * 10 / unit);
    match bytes {
        0..1_024 => format!("{bytes} B"),
        1_024..1_048_576 => format!("{} KiB", tenths(1_024)),
        _ => format!("{} MiB", tenths(1_048_576)),
    }
}

/// Splits a sentence with names in backticks into parts: whether the part is a name, and its text.
pub(crate) fn sentence(text: &str) -> Vec<(bool, String)> {
    let parts = text.split('`').enumerate().map(|(at, part)| (at % 2 == 1, part.to_owned()));
    parts.filter(|(_, part)| !part.is_empty()).collect()
}

/// A payload on the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShownPayload {
    /// The payload, indented if it is JSON.
    pub(crate) text: String,
    pub(crate) size: String,
    /// Only the beginning is shown.
    pub(crate) is_cut: bool,
}

impl ShownPayload {
    pub(crate) fn new(text: &str, bytes_max: usize) -> Self {
        let size = size(text.len());
        if text.len() > bytes_max {
            let text = format!("{}…", beginning(text, bytes_max));
            return Self { text, size, is_cut: true };
        }
        Self { text: pretty(text), size, is_cut: false }
    }

    pub(crate) fn is_short(&self) -> bool {
        self.text.len() <= 80 && !self.text.contains('\n')
    }
}

/// The longest beginning of at most this many bytes that ends between two characters.
pub(crate) fn beginning(text: &str, bytes_max: usize) -> &str {
    let end = (0..=bytes_max.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    text.get(..end.unwrap_or(0)).unwrap_or_default()
}

/// The beginning of a text as one line.
pub(crate) fn one_line(text: &str, bytes_max: usize) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match line.len() > bytes_max {
        true => format!("{}…", beginning(&line, bytes_max)),
        false => line,
    }
}

/// JSON objects and arrays over several lines; everything else as it is.
fn pretty(text: &str) -> String {
    if !text.starts_with(['{', '[']) {
        return text.to_owned();
    }
    let value = serde_json::from_str::<serde_json::Value>(text);
    value.and_then(|value| serde_json::to_string_pretty(&value)).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_utc() {
        assert_eq!(time(0), "1970-01-01 00:00:00");
        assert_eq!(time(951_782_400_000), "2000-02-29 00:00:00");
        assert_eq!(time(1_794_901_103_250), "2026-11-17 07:38:23");
        assert_eq!(clock(1_794_901_103_250), "07:38:23.250");
        assert_eq!(time(4_102_444_799_000), "2099-12-31 23:59:59");
    }

    #[test]
    fn times_can_be_read_back() {
        for text in
            ["1970-01-01 00:00:00", "2000-02-29 12:00:00", "2026-11-17 07:38:23", "2099-12-31 23:59:59"]
        {
            assert_eq!(parse_time(&text.replace(' ', "T")).map(time).as_deref(), Some(text));
        }
        assert_eq!(parse_time("2026-11-17T07:38").map(time).as_deref(), Some("2026-11-17 07:38:00"));
        for wrong in
            ["", "2026-11-17", "2026-02-30T00:00", "2026-11-17T24:00", "0000-00-00T00:00", "a-b-cTd:e"]
        {
            assert_eq!(parse_time(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn durations_have_at_most_two_units() {
        let cases = [
            (0, "0 ms"),
            (999, "999 ms"),
            (1_250, "1.2 s"),
            (59_999, "59 s"),
            (185_000, "3 min 5 s"),
            (7_800_000, "2 h 10 min"),
            (86_400_000, "1 d"),
            (360_000_000, "4 d 4 h"),
        ];
        for (ms, expected) in cases {
            assert_eq!(duration(ms), expected);
        }
    }

    #[test]
    fn moments_are_ago_or_in() {
        assert_eq!(Moment::new(1_000, 6_000).relative, "5.0 s ago");
        assert_eq!(Moment::new(66_000, 6_000).relative, "in 1 min");
    }

    #[test]
    fn numbers_and_sizes_can_be_read() {
        assert_eq!([number(0), number(999), number(1_234_567)], ["0", "999", "1,234,567"]);
        assert_eq!([size(12), size(3_500), size(1_300_000)], ["12 B", "3.4 KiB", "1.2 MiB"]);
    }

    #[test]
    fn names_of_a_sentence_stand_between_backticks() {
        let part = |is_name: bool, text: &str| (is_name, text.to_owned());
        assert_eq!(
            sentence("waits for `a` now"),
            [part(false, "waits for "), part(true, "a"), part(false, " now")]
        );
        assert_eq!(sentence("`a"), [part(true, "a")]);
    }

    #[test]
    fn json_is_pretty_and_long_payloads_are_cut_between_characters() {
        assert_eq!(ShownPayload::new("{\"a\":1}", 100).text, "{\n  \"a\": 1\n}");
        assert_eq!(ShownPayload::new("{broken", 100).text, "{broken");
        let cut = ShownPayload::new("ééé", 3);
        assert_eq!((cut.text.as_str(), cut.is_cut), ("é…", true));
        assert_eq!(one_line("a\nb\u{1b}c", 100), "a b c");
    }
}
