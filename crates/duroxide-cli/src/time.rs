//! Times for people and scripts: UTC in ISO form, ages in short form, and both read back.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Now, in milliseconds since the epoch.
pub(crate) fn now_ms() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
}

/// The last millisecond of the year 9999. A later time in a store is damage, or means never.
const LAST: u64 = 253_402_300_799_999;

/// `2026-11-17T07:38:21.042Z`
pub(crate) fn iso(millis: u64) -> String {
    let millis = millis.min(LAST);
    let (year, month, day) = date_of(millis / DAY);
    let (hour, minute) = (millis % DAY / HOUR, millis % HOUR / MINUTE);
    let (second, milli) = (millis % MINUTE / SECOND, millis % SECOND);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

/// `42 ms`, `3.1 s`, `5 min`, `3 h`, `12 d`: two figures are enough to judge an age.
pub(crate) fn short(duration: Duration) -> String {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    match millis {
        0..SECOND => format!("{millis} ms"),
        SECOND..10_000 => format!("{}.{} s", millis / SECOND, millis % SECOND / 100),
        10_000..MINUTE => format!("{} s", millis / SECOND),
        MINUTE..HOUR => format!("{} min", millis / MINUTE),
        HOUR..DAY => format!("{} h", millis / HOUR),
        _ => format!("{} d", millis / DAY),
    }
}

/// The time since `since_ms` by this machine's clock, or zero if the clock that wrote it is ahead.
pub(crate) fn age(since_ms: u64, now_ms: u64) -> String {
    short(Duration::from_millis(now_ms.saturating_sub(since_ms)))
}

/// Reads `30s`, `5m`, `12h` or `7d`.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("'{text}' is no duration: write 500ms, 30s, 5m, 12h or 7d");
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let millis = match unit {
        "ms" => 1,
        "s" => SECOND,
        "m" | "min" => MINUTE,
        "h" => HOUR,
        "d" => DAY,
        _ => return Err(wrong()),
    };
    number.checked_mul(millis).map(Duration::from_millis).ok_or_else(wrong)
}

/// A moment that the user names: milliseconds since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment(pub(crate) u64);

impl Moment {
    /// Reads a UTC time (`2026-11-17`, `2026-11-17T07:38`, `2026-11-17T07:38:21Z`) or an age (`7d`: seven days ago).
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        Self::parse_at(text, now_ms())
    }

    fn parse_at(text: &str, now_ms: u64) -> Result<Self, String> {
        if let Ok(ago) = parse_duration(text) {
            let ago = u64::try_from(ago.as_millis()).unwrap_or(u64::MAX);
            return Ok(Self(now_ms.saturating_sub(ago)));
        }
        let wrong = || {
            format!("'{text}' is no time: write 2026-11-17, 2026-11-17T07:38:21Z (UTC), or an age such as 7d")
        };
        parse_iso(text).map(Self).ok_or_else(wrong)
    }
}

fn parse_iso(text: &str) -> Option<u64> {
    let text = text.strip_suffix('Z').unwrap_or(text);
    let (date, time) = text.split_once(['T', ' ']).unwrap_or((text, "00:00"));
    let mut parts = date.splitn(3, '-').map(|part| part.parse::<u64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let days = days_of(year, month, day)?;
    let (time, fraction) = time.split_once('.').unwrap_or((time, ""));
    let mut parts = time.splitn(3, ':').map(|part| part.parse::<u64>().ok());
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next().unwrap_or(Some(0))?);
    let millis: u64 = format!("{fraction:0<3.3}").parse().ok()?;
    let is_time = hour < 24 && minute < 60 && second < 60;
    is_time.then(|| days * DAY + hour * HOUR + minute * MINUTE + second * SECOND + millis)
}

/// Converts days since the epoch into a Gregorian date. Walks years and months, because dates in stores are near.
fn date_of(mut days: u64) -> (u64, u64, u64) {
    let mut year = 1970;
    while days >= days_in_year(year) {
        days -= days_in_year(year);
        year += 1;
    }
    let mut month = 1;
    while days >= days_in_month(year, month) {
        days -= days_in_month(year, month);
        month += 1;
    }
    (year, month, days + 1)
}

fn days_of(year: u64, month: u64, day: u64) -> Option<u64> {
    let is_date = (1970..10_000).contains(&year)
        && (1..=12).contains(&month)
        && (1..=days_in_month(year, month)).contains(&day);
    let years: u64 = (1970..year).map(days_in_year).sum();
    let months: u64 = (1..month).map(|month| days_in_month(year, month)).sum();
    is_date.then_some(years + months + day - 1)
}

fn is_leap(year: u64) -> bool {
    (year.is_multiple_of(4) && !year.is_multiple_of(100)) || year.is_multiple_of(400)
}

fn days_in_year(year: u64) -> u64 {
    if is_leap(year) { 366 } else { 365 }
}

fn days_in_month(year: u64, month: u64) -> u64 {
    match month {
        2 => 28 + u64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAP_DAY: u64 = 1_709_251_199_042;

    #[test]
    fn times_are_utc_and_read_back() {
        assert_eq!(iso(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(iso(LEAP_DAY), "2024-02-29T23:59:59.042Z");
        for millis in [0, LEAP_DAY, LEAP_DAY + 1_000, 4_102_444_800_000, LAST] {
            assert_eq!(parse_iso(&iso(millis)), Some(millis), "{}", iso(millis));
        }
    }

    /// A damaged row must not stop a listing.
    #[test]
    fn a_time_beyond_the_calendar_is_its_end() {
        assert_eq!(iso(u64::MAX), "9999-12-31T23:59:59.999Z");
    }

    #[test]
    fn ages_are_short() {
        for (millis, text) in [
            (42, "42 ms"),
            (3_140, "3.1 s"),
            (59_999, "59 s"),
            (60_000, "1 min"),
            (3 * HOUR + 59 * MINUTE, "3 h"),
            (12 * DAY, "12 d"),
        ] {
            assert_eq!(short(Duration::from_millis(millis)), text);
        }
        assert_eq!(age(5_000, 4_000), "0 ms", "another clock is ahead");
    }

    #[test]
    fn a_moment_is_a_time_or_an_age() {
        let at = |text| Moment::parse_at(text, LEAP_DAY).map(|moment| iso(moment.0));
        assert_eq!(at("1d").unwrap(), "2024-02-28T23:59:59.042Z");
        assert_eq!(at("90s").unwrap(), "2024-02-29T23:58:29.042Z");
        assert_eq!(at("2024-02-29").unwrap(), "2024-02-29T00:00:00.000Z");
        assert_eq!(at("2024-02-29T07:38").unwrap(), "2024-02-29T07:38:00.000Z");
        assert_eq!(at("2024-02-29 07:38:21.5Z").unwrap(), "2024-02-29T07:38:21.500Z");
        for wrong in
            ["", "yesterday", "2023-02-29", "2024-13-01", "2024-02-29T24:00", "7w", "1969-01-01", "d"]
        {
            assert!(at(wrong).unwrap_err().contains("write 2026-11-17"), "{wrong}");
        }
    }

    #[test]
    fn a_duration_has_a_unit() {
        assert_eq!(parse_duration("5m").unwrap(), Duration::from_secs(300));
        assert_eq!(parse_duration("500ms").unwrap(), Duration::from_millis(500));
        for wrong in ["5", "m", "-5s", "5 s", "99999999999999999999s", "18446744073709551615d"] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }
}
