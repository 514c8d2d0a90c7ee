//! Words that several pages use.

use archeflow_core::model::{RunStatus, Severity, counted};
use archeflow_core::projections::view::{Tone, capital};
use archeflow_core::text::short_line;
use archeflow_host::clock;

/// `40 s`, `3 min`, `2 h 5 min`, `4 days`.
pub(crate) fn span(ms: u64) -> String {
    let seconds = ms / 1_000;
    match seconds {
        0..=59 => format!("{seconds} s"),
        60..=3_599 => format!("{} min", seconds / 60),
        3_600..=86_399 if (seconds / 60).is_multiple_of(60) => format!("{} h", seconds / 3_600),
        3_600..=86_399 => format!("{} h {} min", seconds / 3_600, seconds / 60 % 60),
        86_400..=172_799 => "1 day".to_owned(),
        _ => format!("{} days", seconds / 86_400),
    }
}

pub(crate) fn repositories(n: usize) -> String {
    if n == 1 { "1 repository".to_owned() } else { format!("{n} repositories") }
}

pub(crate) fn status(status: Option<RunStatus>) -> String {
    status.map_or("running", RunStatus::name).replace('_', " ")
}

/// `till.sh:8`, or the file alone.
pub(crate) fn place(file: &str, line: u32) -> String {
    if line == 0 { file.to_owned() } else { format!("{file}:{line}") }
}

/// `5 min ago`; after a month the day.
pub(crate) fn ago(now: u64, then: u64) -> String {
    match now.saturating_sub(then) {
        0..60_000 => "just now".to_owned(),
        since @ 60_000..2_592_000_000 => format!("{} ago", span(since)),
        _ => clock::date(then),
    }
}

/// The beginning of the name of a commit.
pub(crate) fn short(oid: &str) -> String {
    oid.chars().filter(char::is_ascii_alphanumeric).take(8).collect()
}

/// The class of a severity in the style sheet.
pub(crate) fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "crit",
        Severity::Warning => "warn",
        Severity::Info => "info",
    }
}

pub(crate) fn tone(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "info",
        Tone::Good => "ok",
        Tone::Caution => "warn",
        Tone::Bad => "crit",
    }
}

/// What a run does in a phase.
pub(crate) fn doing(phase: &str) -> &'static str {
    match phase {
        "do" => "Implementing",
        "check" => "Checking",
        "act" => "Concluding",
        _ => "Planning",
    }
}

/// `Guardian and Skeptic`.
pub(crate) fn and(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| capital(name)).collect();
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

/// The spec of an agent without folders and options: `claude`, `cmd:agent.sh`.
pub(crate) fn agent(spec: &str) -> String {
    let (kind, rest) = spec.split_once(':').map_or((None, spec), |(kind, rest)| (Some(kind), rest));
    let word = rest.split_whitespace().next().unwrap_or(rest);
    let name = word.rsplit('/').next().unwrap_or(word);
    short_line(&kind.map_or_else(|| name.to_owned(), |kind| format!("{kind}:{name}")), 40)
}

/// `18.2k`.
pub(crate) fn thousands(n: u64) -> String {
    if n < 1_000 { n.to_string() } else { format!("{}.{}k", n / 1_000, n % 1_000 / 100) }
}

/// `1 critical, 2 warnings`.
pub(crate) fn severities(critical: u32, warning: u32) -> String {
    let parts: Vec<String> = [
        (critical > 0).then(|| format!("{critical} critical")),
        (warning > 0).then(|| counted(warning, "warning")),
    ]
    .into_iter()
    .flatten()
    .collect();
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u_16_an_agent_is_named_without_its_folder() {
        for (spec, name) in [
            ("claude", "claude"),
            ("claude:opus", "claude:opus"),
            ("cmd:/opt/x/agent.sh --fast", "cmd:agent.sh"),
            ("script:/dev/shm/demo.play", "script:demo.play"),
            ("", ""),
        ] {
            assert_eq!(agent(spec), name);
        }
    }

    #[test]
    fn u_16_spans_are_written_as_people_say_them() {
        for (ms, words) in [
            (0, "0 s"),
            (59_999, "59 s"),
            (60_000, "1 min"),
            (3_600_000, "1 h"),
            (7_500_000, "2 h 5 min"),
            (86_400_000, "1 day"),
            (4 * 86_400_000, "4 days"),
        ] {
            assert_eq!(span(ms), words);
        }
    }
}
