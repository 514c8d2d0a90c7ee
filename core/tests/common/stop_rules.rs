//! Histories of cycles, and when rules would stop them: ours and four simple ones.

use archeflow_core::event::{Tracked, Trend};
use archeflow_core::model::{Citation, Convergence, Finding, Severity};
use archeflow_core::rules::convergence;

/// A run as it would go if nothing stopped it.
#[derive(Debug, Default)]
pub(crate) struct StopHistory {
    pub(crate) name: String,
    pub(crate) cycles: Vec<CycleOfHistory>,
    /// Cycles after which stopping, or landing, is right.
    pub(crate) right: Vec<usize>,
}

#[derive(Debug, Default)]
pub(crate) struct CycleOfHistory {
    pub(crate) findings: Vec<Finding>,
    /// Files that the diff since the cycle before touches; `None` where that is not known.
    pub(crate) touched: Option<Vec<String>>,
    /// The diff as text, to compare with the one before.
    pub(crate) diff: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopRule {
    Ours,
    Never,
    Third,
    SameDiff,
    CountDoesNotFall,
}

impl StopRule {
    pub(crate) const ALL: [StopRule; 5] =
        [StopRule::Ours, StopRule::Never, StopRule::Third, StopRule::SameDiff, StopRule::CountDoesNotFall];

    pub(crate) fn name(self) -> &'static str {
        match self {
            StopRule::Ours => "ours",
            StopRule::Never => "never stop",
            StopRule::Third => "after 3",
            StopRule::SameDiff => "same files again",
            StopRule::CountDoesNotFall => "count does not fall",
        }
    }
}

/// How a rule did on histories.
#[derive(Debug, Default, Clone)]
pub(crate) struct StopTally {
    pub(crate) right: usize,
    pub(crate) false_stop: usize,
    pub(crate) late: usize,
    pub(crate) mistakes: Vec<String>,
}

impl std::fmt::Display for StopTally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "right {} false {} late {}", self.right, self.false_stop, self.late)
    }
}

pub(crate) fn tally(histories: &[StopHistory], rule: StopRule) -> StopTally {
    let mut tally = StopTally::default();
    for history in histories {
        let end = end(history, rule);
        let (first, last) = (history.right.first(), history.right.last());
        if end.is_some_and(|end| history.right.contains(&end)) {
            tally.right += 1;
            continue;
        }
        let early = end.is_some_and(|end| first.is_none_or(|first| end < *first) && Some(&end) < last);
        if early {
            tally.false_stop += 1;
        } else {
            tally.late += 1;
        }
        let said = end.map_or("never".to_owned(), |end| format!("after {end}"));
        tally.mistakes.push(format!("{}: stops {said}, right is {:?}", history.name, history.right));
    }
    tally
}

/// The cycle after which a rule ends the run; a cycle without findings ends it anyway.
fn end(history: &StopHistory, rule: StopRule) -> Option<usize> {
    let policy = Convergence::default();
    let (mut open, mut trends): (Vec<Vec<Tracked>>, Vec<Trend>) = (Vec::new(), Vec::new());
    for (at, cycle) in history.cycles.iter().enumerate() {
        if cycle.findings.is_empty() {
            return Some(at + 1);
        }
        let before = at.checked_sub(1).and_then(|at| history.cycles.get(at));
        let stops = match rule {
            StopRule::Ours => {
                let past: Vec<&[Tracked]> = open.iter().map(Vec::as_slice).collect();
                let merged = convergence::merge(&cycle.findings, &policy);
                let (now, trend) = convergence::follow(merged, &past, &policy);
                let stops = trend.is_some_and(|mut trend| {
                    trend.untried = is_untried(cycle, &now, &trend);
                    let earlier: Vec<&Trend> = trends.iter().collect();
                    let stop = convergence::stop(&trend, &earlier, &policy);
                    let stays =
                        |found: &Tracked| found.cycles_open >= 2 && found.severity >= policy.persistent_floor;
                    let person = !trend.untried && now.iter().any(stays);
                    trends.push(trend);
                    stop.is_some() || person
                });
                open.push(now);
                stops
            }
            StopRule::Never => false,
            StopRule::Third => at + 1 >= 3,
            StopRule::SameDiff => {
                let again = |before: &CycleOfHistory| at > 1 && before.diff == cycle.diff;
                !cycle.diff.is_empty() && before.is_some_and(again)
            }
            StopRule::CountDoesNotFall => {
                before.is_some_and(|before| cycle.findings.len() >= before.findings.len())
            }
        };
        if stops {
            return Some(at + 1);
        }
    }
    None
}

fn is_untried(cycle: &CycleOfHistory, now: &[Tracked], trend: &Trend) -> bool {
    let Some(touched) = &cycle.touched else { return false };
    let mut persist = now.iter().filter(|found| trend.persistent_ids.contains(&found.id)).peekable();
    persist.peek().is_some() && !persist.any(|found| touched.contains(&found.file))
}

/// A finding of the Guardian with a place and a text.
pub(crate) fn finding_at(file: &str, line: u32, critical: bool, text: &str) -> Finding {
    Finding {
        source: "guardian".to_owned(),
        location: format!("{file}:{line}"),
        file: file.to_owned(),
        line,
        severity: if critical { Severity::Critical } else { Severity::Warning },
        category: "reliability".to_owned(),
        flaw: None,
        description: text.to_owned(),
        fix: String::new(),
        evidence: String::new(),
        citations: vec![Citation {
            file: file.to_owned(),
            line,
            quote: None,
            holds: Some(true),
            related: None,
        }],
        anchor: String::new(),
        reproduction: None,
    }
}

/// The histories of `core/tests/corpus/stops/histories.md`.
pub(crate) fn histories(page: &str) -> Vec<StopHistory> {
    let mut all: Vec<StopHistory> = Vec::new();
    let mut known: Vec<(String, Finding)> = Vec::new();
    for line in page.lines() {
        if let Some(name) = line.strip_prefix("## ") {
            all.push(StopHistory { name: name.to_owned(), ..StopHistory::default() });
            known.clear();
        }
        let Some(history) = all.last_mut() else { continue };
        if let Some(item) = line.strip_prefix("- ") {
            let words: Vec<&str> = item.splitn(4, ' ').collect();
            let [letter, place, severity, text] = words[..] else { continue };
            let (file, number) = place.rsplit_once(':').unwrap_or((place, "1"));
            let line = number.parse().unwrap_or(1);
            known.push((letter.to_owned(), finding_at(file, line, severity == "CRITICAL", text)));
        } else if let Some(right) = line.strip_prefix("right: ") {
            history.right = right.split(' ').filter_map(|word| word.parse().ok()).collect();
        } else if let Some((number, rest)) = line.split_once(": ")
            && number.parse::<u32>().is_ok()
            && let Some((open, diff)) = rest.split_once(" | ")
        {
            let found = open.split(' ').filter_map(|letter| known.iter().find(|(name, _)| name == letter));
            let files: Vec<String> =
                diff.split(", ").filter_map(|part| Some(part.split(' ').next()?.to_owned())).collect();
            history.cycles.push(CycleOfHistory {
                findings: found.map(|(_, finding)| finding.clone()).collect(),
                diff: files.join(" "),
                touched: Some(files),
            });
        }
    }
    all
}
