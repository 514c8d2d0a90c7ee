//! Who holds something: a few words next to a lock, for people. The lock itself is the kernel's, so that the death
//! of the holder frees it at once; these words are never evidence of anything.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::platform::{Errno, machine, process};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    pub pid: u32,
    pub host: String,
    pub since: String,
}

impl Holder {
    pub fn me() -> Holder {
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Holder { pid: std::process::id(), host: machine::host_name(), since: utc(seconds) }
    }

    /// Whether a process of this number runs here. Somebody else's host can't be asked, so its word is taken.
    pub fn is_alive(&self) -> bool {
        if self.host != Holder::me().host {
            return true;
        }
        let pid = process::numbered(self.pid);
        pid.is_some_and(|pid| {
            // Not allowed to signal it: it is there.
            !matches!(process::test(pid), Err(Errno::SRCH))
        })
    }

    pub(crate) fn text(&self) -> String {
        format!("pid {}\nhost {}\nsince {}\n", self.pid, self.host, self.since)
    }

    /// `None` for anything but a whole text: the holder may be writing it at this moment.
    pub(crate) fn parse(text: &str) -> Option<Holder> {
        let mut lines = text.lines();
        let mut value = |key: &str| lines.next()?.strip_prefix(key)?.strip_prefix(' ').map(printable);
        Some(Holder { pid: value("pid")?.parse().ok()?, host: value("host")?, since: value("since")? })
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pid {} on host {} since {}", self.pid, self.host, self.since)
    }
}

/// The holder in words, or that it is unknown.
pub(crate) fn name(holder: Option<&Holder>) -> String {
    holder.map_or_else(|| "another process".to_owned(), ToString::to_string)
}

/// The text is shown on a terminal and is in a place where others may write.
fn printable(text: &str) -> String {
    archeflow_core::text::short_line(text, 80)
}

/// Days to a civil date, counting in years that begin in March so that the leap day comes last.
fn utc(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::{Holder, utc};

    #[test]
    fn dates() {
        assert_eq!(utc(0), "1970-01-01T00:00:00Z");
        assert_eq!(utc(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(utc(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(utc(1_775_606_400), "2026-04-08T00:00:00Z");
    }

    #[test]
    fn round_trip_and_half_texts() {
        let me = Holder::me();
        let text = me.text();
        assert_eq!(Holder::parse(&text), Some(me));
        assert_eq!(Holder::parse(""), None);
        assert_eq!(Holder::parse("pid x\nhost y\nsince z\n"), None);
        assert_eq!(Holder::parse("pid 1\nhost y\n"), None);
    }
}
