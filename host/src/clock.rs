//! The only wall clock. It dates lines and names runs; nothing is decided by it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::failpoint;

/// Milliseconds since 1970.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX).saturating_add_signed(failpoint::clock_error_ms())
}

/// The time that a line's date means.
pub fn instant(ms: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(ms)
}

/// `YYYY-MM-DDTHH:MM:SSZ`.
pub fn written(ms: u64) -> String {
    let seconds = ms / 1_000;
    let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{}T{hour:02}:{minute:02}:{second:02}Z", date(ms))
}

/// The millisecond within the second that [`written`] names.
pub fn millisecond(ms: u64) -> u16 {
    u16::try_from(ms % 1_000).unwrap_or_default()
}

/// The inverse of [`written`] and [`millisecond`]. Lines of old journals have no millisecond.
pub fn exact(text: &str, millisecond: Option<u16>) -> u64 {
    read(text).saturating_add(millisecond.map_or(0, u64::from))
}

/// `YYYY-MM-DD` in UTC.
pub fn date(ms: u64) -> String {
    let (year, month, day) = civil(ms / 86_400_000);
    format!("{year:04}-{month:02}-{day:02}")
}

/// The inverse of [`written`]; 0 for anything else.
pub fn read(text: &str) -> u64 {
    if let Ok([y0, y1, y2, y3, _, m0, m1, _, d0, d1, _, h0, h1, _, n0, n1, _, s0, s1, _]) =
        <[u8; 20]>::try_from(text.as_bytes())
    {
        let digits = [[y0, y1], [y2, y3], [m0, m1], [d0, d1], [h0, h1], [n0, n1], [s0, s1]];
        if digits.as_flattened().iter().all(u8::is_ascii_digit) {
            let [century, year, month, day, hour, minute, second] =
                digits.map(|[tens, ones]| u64::from(tens - b'0') * 10 + u64::from(ones - b'0'));
            return moment([century * 100 + year, month, day, hour, minute, second]);
        }
    }
    let number = |from: usize, to: usize| text.get(from..to).and_then(|part| part.parse::<u64>().ok());
    let parts = (number(0, 4), number(5, 7), number(8, 10), number(11, 13), number(14, 16), number(17, 19));
    let (Some(year), Some(month), Some(day), Some(hour), Some(minute), Some(second)) = parts else {
        return 0;
    };
    if text.len() != 20 { 0 } else { moment([year, month, day, hour, minute, second]) }
}

fn moment([year, month, day, hour, minute, second]: [u64; 6]) -> u64 {
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) {
        return 0;
    }
    ((days(year, month, day) * 24 + hour) * 3_600 + minute * 60 + second) * 1_000
}

/// Days since 1970 to year, month, day in the proleptic Gregorian calendar, counted in eras of 400 years that begin
/// in March, so that the leap day comes last.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

fn days(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year / 400, year % 400);
    let shifted_month = if month > 2 { month - 3 } else { month + 9 };
    let of_year = (153 * shifted_month + 2) / 5 + day - 1;
    let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
    era * 146_097 + of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::{date, exact, millisecond, read, written};

    #[test]
    fn dates_survive_the_round_trip() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400_000, "2000-02-29T00:00:00Z"),
            (1_775_606_400_000, "2026-04-08T00:00:00Z"),
            (4_102_444_799_000, "2099-12-31T23:59:59Z"),
        ] {
            assert_eq!((written(ms).as_str(), read(text)), (text, ms));
        }
        for ms in [0, 951_782_400_001, 1_775_606_400_999] {
            assert_eq!(exact(&written(ms), Some(millisecond(ms))), ms);
        }
        assert_eq!(exact("1970-01-01T00:00:02Z", None), 2_000);
        assert_eq!(date(1_775_606_400_000), "2026-04-08");
        assert_eq!([read(""), read("yesterday"), read("2026-13-01T00:00:00Z")], [0, 0, 0]);
    }
}
