//! Times and spans in words.

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// `12 s`, `90 min`, `2 h 59 min`, `5 d 3 h`: the largest unit of which there are two or more. Of hours and days also the next
/// smaller one, because half an hour matters to the reader.
pub(super) fn span(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => two_units((seconds / 3_600, "h"), (seconds / 60 % 60, "min")),
        _ => two_units((seconds / 86_400, "d"), (seconds / 3_600 % 24, "h")),
    }
}

fn two_units(large: (u64, &str), small: (u64, &str)) -> String {
    match small.0 {
        0 => format!("{} {}", large.0, large.1),
        _ => format!("{} {} {} {}", large.0, large.1, small.0, small.1),
    }
}

/// `14:02:11`, and `2026-11-17 14:02:11` if that is not the day of `now`.
pub(super) fn of_day(ms: u64, now_ms: Option<u64>) -> String {
    let seconds = ms % DAY_MS / 1000;
    let time = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if now_ms.is_some_and(|now| now / DAY_MS == ms / DAY_MS) {
        return time;
    }
    let (year, month, day) = date(ms / DAY_MS);
    format!("{year}-{month:02}-{day:02} {time}")
}

/// Year, month and day of a number of days since 1970-01-01, in the Gregorian calendar.
fn date(days: u64) -> (u64, u64, u64) {
    // Counted from 0000-03-01, so that a leap day is the last day of its year, and of its 4, 100 and 400 years.
    const DAYS_BEFORE_1970: u64 = 719_468;
    const DAYS_PER_400_YEARS: u64 = 146_097;
    let days = days + DAYS_BEFORE_1970;
    let (era, day_of_era) = (days / DAYS_PER_400_YEARS, days % DAYS_PER_400_YEARS);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Five months have 153 days, over and over, from March on.
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_spans_have_two_units() {
        let spans = [0, 999, 119_999, 120_000, 7_199_000, 7_200_000, 172_799_000, 172_800_000].map(span);
        assert_eq!(spans, ["0 s", "0 s", "119 s", "2 min", "119 min", "2 h", "47 h 59 min", "2 d"]);
        assert_eq!(span(5 * 86_400_000 + 3 * 3_600_000), "5 d 3 h");
    }

    #[test]
    fn dates_follow_the_calendar() {
        for (days, expected) in [
            (0, (1970, 1, 1)),
            (59, (1970, 3, 1)),
            (10_956, (1999, 12, 31)),
            (11_016, (2000, 2, 29)),
            (11_017, (2000, 3, 1)),
            (20_774, (2026, 11, 17)),
            (47_540, (2100, 2, 28)),
            (47_541, (2100, 3, 1)),
        ] {
            assert_eq!(date(days), expected, "{days}");
        }
    }

    #[test]
    fn another_day_is_named() {
        let at = 20_774 * DAY_MS + 50_531_000;
        assert_eq!(of_day(at, Some(20_774 * DAY_MS)), "14:02:11");
        assert_eq!(of_day(at, Some(20_775 * DAY_MS)), "2026-11-17 14:02:11");
        assert_eq!(of_day(at, None), "2026-11-17 14:02:11");
    }
}
