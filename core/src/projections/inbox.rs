//! Runs that are under way or wait for a person, each with the command to type: what `status` prints, and what a page
//! or a protocol server lists.

use serde::Serialize;

use crate::model::{Outcome, Reason, RunStatus};
use crate::projections::view::{self, Tone};
use crate::run::Run;
use crate::text::shell_word;

/// A run as a look at its repository finds it.
#[derive(Debug, Clone, Copy)]
pub struct InboxRun<'a> {
    pub run_id: &'a str,
    /// What the command to type calls it: its id, or a short name.
    pub name: &'a str,
    /// Where its repository is.
    pub repository: &'a str,
    /// The reader is in that repository, so the command needs no `--repo`.
    pub here: bool,
    /// It has not ended and no process drives it.
    pub interrupted: bool,
    pub run: &'a Run,
}

/// A run that is under way or waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InboxItem {
    pub run_id: String,
    pub repository: String,
    pub interrupted: bool,
    /// Somebody paused it.
    pub paused: bool,
    /// It does nothing more until a person has done something.
    pub waiting: bool,
    pub cycle: u32,
    pub phase: Option<&'static str>,
    pub reason: Option<&'static str>,
    pub question: Option<String>,
    /// What to know before acting, in a line.
    pub detail: String,
    /// The command to type, from anywhere.
    pub next: String,
}

impl InboxItem {
    /// Nothing, if there is nothing to do or watch: the run is merged, planned only, discarded, a review without findings, or
    /// a closed loop.
    pub fn of(found: InboxRun<'_>) -> Option<InboxItem> {
        let InboxRun { run_id, name, repository, here, interrupted, run } = found;
        if run.rules().is_closed(run) {
            return None;
        }
        let mut next = next(name, run, interrupted)?;
        if !here {
            next.push_str(&format!(" --repo {}", shell_word(repository)));
        }
        Some(InboxItem {
            run_id: run_id.to_owned(),
            repository: repository.to_owned(),
            interrupted,
            paused: run.paused.is_some(),
            waiting: run.outcome.is_some() || interrupted || run.paused.is_some() || run.question().is_some(),
            cycle: run.number(),
            phase: run.cycle().map(|cycle| cycle.phase.name()),
            reason: run.outcome.as_ref().map(|outcome| outcome.reason.name()),
            question: run.question().map(|(_, question)| question.question.clone()),
            detail: detail(run),
            next,
        })
    }
}

/// A run whose journal can't be read: what it waits for is not known, so a person has to look.
#[derive(Debug, Clone, Copy)]
pub struct DamagedRun<'a> {
    pub run_id: &'a str,
    pub name: &'a str,
    pub repository: &'a str,
    pub here: bool,
    pub why: &'a str,
}

impl From<DamagedRun<'_>> for InboxItem {
    fn from(found: DamagedRun<'_>) -> InboxItem {
        let DamagedRun { run_id, name, repository, here, why } = found;
        let place = if here { String::new() } else { format!(" --repo {}", shell_word(repository)) };
        InboxItem {
            run_id: run_id.to_owned(),
            repository: repository.to_owned(),
            interrupted: false,
            paused: false,
            waiting: true,
            cycle: 0,
            phase: None,
            reason: None,
            question: None,
            detail: format!("its journal can't be read: {why}"),
            next: format!("archeflow show {name}{place}"),
        }
    }
}

fn next(run_id: &str, run: &Run, interrupted: bool) -> Option<String> {
    match &run.outcome {
        Some(
            Outcome { reason: Reason::Discarded, .. }
            | Outcome { status: RunStatus::Merged | RunStatus::DryRun, .. }
            | Outcome { status: RunStatus::Reviewed, reason: Reason::Approved, .. },
        ) => None,
        Some(outcome) => {
            let mut commands = view::next_steps(run_id, run, outcome).into_iter().map(|(command, _)| command);
            commands.find(|command| command.starts_with("archeflow "))
        }
        None if interrupted || run.paused.is_some() => Some(format!("archeflow resume {run_id}")),
        None if run.question().is_some() => Some(format!("archeflow answer {run_id} \"…\"")),
        None => Some(format!("archeflow show {run_id}")),
    }
}

fn detail(run: &Run) -> String {
    match (&run.outcome, run.question()) {
        (_, Some((_, question))) => question.question.clone(),
        (Some(outcome), None) => outcome.detail.clone(),
        (None, None) => {
            let phase = run.cycle().map_or("plan", |cycle| cycle.phase.name());
            let running: Vec<String> = run.open_agents().map(|(_, start)| view::doing(start)).collect();
            let agents = if running.is_empty() { String::new() } else { format!(": {}", running.join(" ")) };
            let paused = if run.paused.is_some() { "paused: " } else { "" };
            format!("{paused}{phase}, cycle {} of {}{agents}", run.number().max(1), run.max_cycles)
        }
    }
}

/// How the status of a run, as the index of its repository has it, should feel.
pub fn tone(status: &str) -> Tone {
    match status {
        "merged" | "dry_run" | "reviewed" => Tone::Good,
        "awaiting_merge" | "awaiting_answer" | "interrupted" => Tone::Caution,
        "running" => Tone::Plain,
        _ => Tone::Bad,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paused_run_waits_to_be_resumed() {
        let mut run = Run::default();
        (run.paused, run.max_cycles) = (Some("socket".to_owned()), 2);
        let found =
            InboxRun { run_id: "r", name: "r", repository: "/a", here: true, interrupted: false, run: &run };
        let item = InboxItem::of(found);
        let drawn =
            item.as_ref().map(|item| (item.paused, item.waiting, item.detail.as_str(), item.next.as_str()));
        assert_eq!(drawn, Some((true, true, "paused: plan, cycle 1 of 2", "archeflow resume r")));
    }

    #[test]
    fn u_11_a_run_that_needs_a_person_has_its_command() {
        use Reason::{AgentFailures, Approved, Discarded, FindingsOpen};
        use RunStatus::{AwaitingMerge, Failed, Merged, Reviewed, Stopped};
        type Row = (Option<(RunStatus, Reason)>, bool, bool, Option<(&'static str, bool)>);
        let rows: [Row; 10] = [
            (None, false, true, Some(("archeflow show r", false))),
            (None, true, true, Some(("archeflow resume r", true))),
            (None, true, false, Some(("archeflow resume r --repo '/a b'", true))),
            (Some((AwaitingMerge, Approved)), false, true, Some(("archeflow merge r", true))),
            (Some((Failed, AgentFailures)), false, false, Some(("archeflow resume r --repo '/a b'", true))),
            (Some((Merged, Approved)), false, true, None),
            (Some((Stopped, Discarded)), false, true, None),
            (Some((RunStatus::DryRun, Reason::DryRun)), false, true, None),
            (Some((Reviewed, Approved)), false, true, None),
            (Some((Reviewed, FindingsOpen)), false, true, Some(("archeflow show r", true))),
        ];
        for (ended, interrupted, here, expected) in rows {
            let outcome = ended.map(|(status, reason)| Outcome { status, reason, detail: "why".to_owned() });
            let mut run = Run::default();
            run.outcome.clone_from(&outcome);
            let found = InboxRun { run_id: "r", name: "r", repository: "/a b", here, interrupted, run: &run };
            let item = InboxItem::of(found);
            let drawn = item.as_ref().map(|item| (item.next.as_str(), item.waiting));
            assert_eq!(drawn, expected, "{ended:?} {interrupted} {here}");
        }
    }
}
