//! Where a finished cycle goes (PJ-55..PJ-58): its name, its number, and what is done in which order.

use serde::{Deserialize, Serialize};

/// How a cycle ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    Success,
    Incomplete,
    Failed,
}

impl Ending {
    pub const ALL: [Ending; 3] = [Ending::Success, Ending::Incomplete, Ending::Failed];

    pub fn suffix(self) -> &'static str {
        match self {
            Ending::Success => "",
            Ending::Incomplete => "_incomplete",
            Ending::Failed => "_failed",
        }
    }

    fn heading(self) -> Option<&'static str> {
        match self {
            Ending::Success => None,
            Ending::Incomplete => Some("Pause summary"),
            Ending::Failed => Some("Failure summary"),
        }
    }
}

/// `2026-11-15_cycle-007_failed.md`. The date is an argument.
pub fn name(date: &str, number: u32, ending: Ending) -> String {
    format!("{date}_cycle-{number:03}{}.md", ending.suffix())
}

/// The next number of a day. However a cycle ended, its number is taken.
pub fn next_number<'a>(date: &str, names: impl IntoIterator<Item = &'a str>) -> u32 {
    let start = format!("{date}_cycle-");
    let number = |name: &str| {
        let rest = name.strip_prefix(&start)?.strip_suffix(".md")?;
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, suffix) = rest.split_at_checked(digits)?;
        let known = Ending::ALL.iter().any(|ending| ending.suffix() == suffix);
        digits.parse::<u32>().ok().filter(|_| known)
    };
    names.into_iter().filter_map(number).max().unwrap_or(0).saturating_add(1)
}

/// The snapshot: the file as it is, and below it why it is not a success.
pub fn with_summary(text: &str, ending: Ending, blockers: &[String]) -> String {
    let Some(heading) = ending.heading() else { return text.to_owned() };
    let line_end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    let told = blockers
        .iter()
        .map(|blocker| format!("- {}\n", blocker.split_whitespace().collect::<Vec<_>>().join(" ")));
    let told: String = told.collect();
    let told = if told.is_empty() { "- No blocker was named.\n".to_owned() } else { told };
    format!("{text}{line_end}\n## {heading}\n\n{told}")
}

/// What is done when a cycle succeeds (PJ-58).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ArchiveStep {
    Approval,
    Landing,
    Snapshot,
    Notice,
    Clearing,
}

/// The next step, given those that are done; nothing where one was left out or all are done.
pub fn in_order(done: &[ArchiveStep]) -> Option<ArchiveStep> {
    const ALL: [ArchiveStep; 5] = [
        ArchiveStep::Approval,
        ArchiveStep::Landing,
        ArchiveStep::Snapshot,
        ArchiveStep::Notice,
        ArchiveStep::Clearing,
    ];
    let begun = ALL.get(..done.len())?;
    (begun == done).then(|| ALL.get(done.len()).copied()).flatten()
}
