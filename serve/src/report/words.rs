//! The words that Markdown, HTML and the one-line summary share.

use archeflow_core::event::NextAction;
use archeflow_core::model::Verdict;
pub(super) use archeflow_core::model::counted as count;
use archeflow_core::projections::story::{CycleEnd, Ended, Step, Story};
use archeflow_core::projections::view::{self, Tone, capital};

use super::most;
use archeflow_core::text::{cut, safe_line};

/// `merged (approved): Give the discount … | 2 cycles, 8 agents, 1.3s, $0.12 | main 1034e5e469`.
pub fn summary(story: &Story) -> String {
    let overview = &story.overview;
    let mut line = format!(
        "{} ({}): {} | {}, {}, {}",
        story.status(),
        story.reason(),
        cut(&safe_line(&overview.task), 100),
        cycles(story),
        count(overview.attempts as usize, "agent"),
        view::seconds(overview.worked_ms),
    );
    if overview.spent.0 > 0 {
        line.push_str(&format!(", {}", overview.spent.shown()));
    }
    let open = story.lives.iter().filter(|life| life.is_open()).count();
    if open > 0 {
        line.push_str(&format!(", {} open", count(open, "finding")));
    }
    if let Some(landed) = &overview.landed {
        line.push_str(&format!(" | {} {}", safe_line(&overview.target), short(&landed.commit)));
    }
    line
}

pub(super) fn cycles(story: &Story) -> String {
    count(story.cycles.len(), "cycle")
}

pub(super) fn short(oid: &str) -> String {
    safe_line(oid.get(..10).unwrap_or(oid))
}

/// A fact of the overview: name, value, and a remark in small print.
pub(super) struct Fact {
    pub(super) name: &'static str,
    pub(super) value: String,
    pub(super) more: String,
}

/// The top of every report. Values are plain text of ours and of others, not escaped.
pub(super) fn facts(story: &Story, written: fn(u64) -> String) -> Vec<Fact> {
    let overview = &story.overview;
    let fact = |name, value: String, more: String| Fact { name, value, more };
    let strategy = view::label(overview.strategy, overview.workflow).to_owned();
    let limit = overview.limit.map(|limit| format!("of {} allowed", limit.shown())).unwrap_or_default();
    let cost = if overview.spent.0 == 0 && overview.unknown_costs > 0 {
        fact("Cost", "not known".to_owned(), "no agent reported its cost".to_owned())
    } else {
        fact("Cost", overview.spent.shown(), limit)
    };
    let mut facts = vec![
        fact(
            "Time",
            view::seconds(story.took_ms().max(overview.worked_ms)),
            format!("agents worked {}", view::seconds(overview.worked_ms)),
        ),
        fact(
            "Cycles",
            format!("{} of {}", story.cycles.len(), overview.max_cycles),
            format!("workflow {strategy}"),
        ),
        fact("Agents", count(overview.attempts as usize, "attempt"), models(story)),
        cost,
    ];
    if let Some(change) = &story.change {
        let (added, deleted) =
            change.files.iter().fold((0, 0), |(a, d), file| (a + file.added, d + file.deleted));
        let files = change.files.len() + change.files_left_out as usize;
        facts.push(fact("Change", count(files, "file"), format!("+{added} −{deleted}")));
    }
    if !story.planned_missing.is_empty() {
        let missing = count(story.planned_missing.len(), "file");
        facts.push(fact("Planned", format!("{missing} not in the change"), story.planned_missing.join(", ")));
    }
    if !story.change_notes.is_empty() {
        let notes = count(story.change_notes.len(), "note");
        facts.push(fact("Collected", format!("with {notes}"), story.change_notes.join("; ")));
    }
    facts.push(match &overview.landed {
        Some(landed) => {
            let back = landed.reverted.as_ref().map(|by| format!("reverted by {}", short(by)));
            fact("Landed", short(&landed.commit), back.unwrap_or_else(|| format!("on {}", overview.target)))
        }
        None => fact("For", overview.target.clone(), "not landed".to_owned()),
    });
    if overview.unsandboxed {
        facts.push(fact("Sandbox", "none".to_owned(), "--unsafe-no-sandbox was typed".to_owned()));
    }
    facts.push(fact("Branch", overview.branch.clone(), format!("from {}", short(&overview.base))));
    facts.push(fact(
        "When",
        written(overview.began).replace('T', " ").replace('Z', " UTC"),
        format!("{} lines of journal", overview.events),
    ));
    facts
}

fn models(story: &Story) -> String {
    story.overview.models.iter().map(|model| model.name()).collect::<Vec<_>>().join(", ")
}

/// `REJECTED, 1 WARNING`, `done`, `skipped: …`
pub(super) fn result(step: &Step) -> (String, Tone) {
    match &step.result {
        Ended::Out => ("still running".to_owned(), Tone::Plain),
        Ended::Done => ("done".to_owned(), Tone::Good),
        Ended::Verdict(verdict) => {
            let tone = match verdict {
                _ if step.found[0] > 0 => Tone::Bad,
                Verdict::Approved => Tone::Good,
                Verdict::Rejected => Tone::Caution,
            };
            (format!("{}{}", verdict.name(), found(step)), tone)
        }
        Ended::Failed(_) => ("failed".to_owned(), Tone::Bad),
        Ended::Skipped(_) => ("skipped".to_owned(), Tone::Plain),
    }
}

fn found(step: &Step) -> String {
    let words: Vec<String> = step
        .found
        .iter()
        .zip(["CRITICAL", "WARNING", "INFO"])
        .filter(|(n, _)| **n > 0)
        .map(|(n, word)| format!("{n} {word}"))
        .collect();
    if words.is_empty() { String::new() } else { format!(", {}", words.join(", ")) }
}

/// Everything about a step in a sentence.
pub(super) fn sentence(step: &Step) -> String {
    let (result, _) = result(step);
    let reason = match &step.result {
        Ended::Failed(reason) | Ended::Skipped(reason) => format!(": {}", cut(reason, most::SENTENCE)),
        Ended::Out | Ended::Done | Ended::Verdict(_) => String::new(),
    };
    let took =
        if step.attempts.is_empty() { String::new() } else { format!(", {}", view::seconds(step.took_ms())) };
    let times =
        if step.attempts.len() > 1 { format!(", {} attempts", step.attempts.len()) } else { String::new() };
    format!("{} {result}{reason}{took}{times}", capital(&step.archetype))
}

/// The end of a cycle in words: the counts, and what follows.
pub(super) fn boundary(end: &CycleEnd) -> (String, &'static str, Tone) {
    let counts: Vec<String> = [(end.critical, "CRITICAL"), (end.warning, "WARNING"), (end.info, "INFO")]
        .into_iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, word)| format!("{n} {word}"))
        .collect();
    let counts = if counts.is_empty() { "nothing open".to_owned() } else { counts.join(", ") };
    let counts = end.passed_over.as_ref().map_or(counts.clone(), |over| format!("{counts}; {over}"));
    let found = match (end.critical, end.warning) {
        (1.., _) => Tone::Bad,
        (0, 1..) => Tone::Caution,
        (0, 0) => Tone::Good,
    };
    let (follows, tone) = match (end.exit_condition.as_str(), end.next) {
        // A review ends after its last part, whatever it found.
        ("reviewed", _) => ("reviewed", found),
        ("parts_left", _) => ("on to the next part", found),
        (_, NextAction::Merge) if end.passed_over.is_some() => ("nothing blocks", found.max(Tone::Caution)),
        (_, NextAction::Merge) => ("approved", found),
        (_, NextAction::CycleBack) => ("one more cycle", Tone::Caution),
        (_, NextAction::Stop) => ("stop", Tone::Bad),
    };
    (counts, follows, tone)
}

/// `2 findings go back: 1 to the Creator, 1 to the Maker`.
pub(super) fn goes_back(end: &CycleEnd) -> String {
    if end.exit_condition == "parts_left" {
        return "the next part".to_owned();
    }
    let all = (end.to_creator + end.to_maker) as usize;
    let parts: Vec<String> = [(end.to_creator, "Creator"), (end.to_maker, "Maker")]
        .into_iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, who)| format!("{n} to the {who}"))
        .collect();
    match all {
        0 => "once more".to_owned(),
        1 => format!("1 finding goes back: {}", parts.join(", ")),
        all => format!("{all} findings go back: {}", parts.join(", ")),
    }
}

/// An action in two words; the full text is beside it.
pub(super) fn deed(doing: &str) -> String {
    let doing = doing.trim_end_matches('.');
    let known = [
        ("Testing before", "Before any change"),
        ("Setting up", "Before any change"),
        ("Building the revert", "Build the revert"),
        ("Building", "Build the merge"),
        ("Testing", "Tests"),
        ("Landing", "Landing"),
        ("Taking the merge back", "Taking it back"),
    ];
    known
        .iter()
        .find(|(begins, _)| doing.starts_with(begins))
        .map_or_else(|| doing.to_owned(), |(_, word)| (*word).to_owned())
}
