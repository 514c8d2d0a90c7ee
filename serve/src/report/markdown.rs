//! The report as Markdown (BX-10): for a pull request, a ticket, an editor.

use std::fmt::Write;

use archeflow_core::feedback;
use archeflow_core::model::Phase;
use archeflow_core::projections::story::{CycleStory, Life, State, Story};
use archeflow_core::projections::view::{self, capital};

use super::{Report, graph, most, words};
use archeflow_core::text::{code_span, markdown, revealed, safe};

pub fn draw(report: &Report<'_>) -> String {
    let story = report.story;
    let mut out = String::new();
    overview(&mut out, report);
    at_home(&mut out, story);
    if let Some(page) = &story.page {
        broke(&mut out, page);
    }
    flow(&mut out, story);
    lives(&mut out, story);
    convergence(&mut out, story);
    costs(&mut out, story);
    corrections(&mut out, story);
    questions(&mut out, story);
    decisions(&mut out, story);
    diff(&mut out, report);
    artifacts(&mut out, story);
    if let Some(dag) = report.dag {
        let _ = write!(out, "\n## Events\n\n```text\n{}```\n", fenced(&graph::plain(dag)));
    }
    foot(&mut out, story);
    out
}

/// The same for other people, such as the readers of a pull request: without what is on this machine only, such as commands,
/// paths and next steps.
pub fn for_others(report: &Report<'_>) -> String {
    let story = report.story;
    let mut out = String::new();
    overview(&mut out, report);
    flow(&mut out, story);
    lives(&mut out, story);
    convergence(&mut out, story);
    corrections(&mut out, story);
    decisions(&mut out, story);
    foot(&mut out, story);
    out
}

fn foot(out: &mut String, story: &Story) {
    let _ = write!(
        out,
        "\n---\n\nMade from the journal of `{}`, {} lines, by archeflow {}. `#n` is a line of it.\n",
        story.run_id,
        story.overview.events,
        markdown(&story.overview.version, 40)
    );
}

fn overview(out: &mut String, report: &Report<'_>) {
    let story = report.story;
    let _ = write!(
        out,
        "# {}\n\n**{}** ({}): {}\n\nRun `{}`\n\n| | | |\n|---|---|---|\n",
        markdown(&story.overview.task, most::SENTENCE),
        story.status(),
        story.reason(),
        markdown(story.overview.outcome.as_ref().map_or("not ended", |end| &end.detail), most::SENTENCE),
        story.run_id
    );
    for fact in words::facts(story, report.written) {
        let _ = writeln!(
            out,
            "| {} | {} | {} |",
            fact.name,
            markdown(&fact.value, 200),
            markdown(&fact.more, 200)
        );
    }
}

/// The agents' commands, and what to type next.
fn at_home(out: &mut String, story: &Story) {
    let agents: Vec<String> =
        story.overview.agents.iter().take(12).map(|agent| code_span(agent, 120)).collect();
    if !agents.is_empty() {
        let _ = writeln!(out, "| Played by | {} | |", agents.join(", "));
    }
    // The page of a break replaces it.
    if !story.next.is_empty() && story.page.is_none() {
        out.push_str("\nNext:\n\n");
        for (command, meaning) in &story.next {
            let _ = writeln!(out, "- {}: {meaning}", code_span(command, most::SENTENCE));
        }
    }
}

/// The page is Markdown of our own; its headings move one level down. HTML in it would not be ours.
fn broke(out: &mut String, page: &str) {
    out.push('\n');
    let page: String = page.chars().take(most::PAGE).collect();
    for line in safe(&page).lines() {
        let line =
            line.replace('&', "&amp;").replace('<', "&lt;").replace("](", "\\](").replace("![", "!\\[");
        let _ = if line.starts_with('#') { writeln!(out, "#{line}") } else { writeln!(out, "{line}") };
    }
}

fn flow(out: &mut String, story: &Story) {
    out.push_str("\n## The cycles\n\n| Cycle | Plan | Do | Check | Act |\n|---|---|---|---|---|\n");
    let (first, left_out, last) = split(&story.cycles, most::CYCLES_DRAWN);
    first.iter().for_each(|cycle| row(out, cycle));
    if left_out > 0 {
        let _ = writeln!(out, "| … | {} left out | | | |", words::count(left_out, "cycle"));
    }
    last.iter().for_each(|cycle| row(out, cycle));
}

fn row(out: &mut String, cycle: &CycleStory) {
    let cell = |phase: Phase| {
        let steps = cycle.steps.iter().filter(|step| step.phase == phase);
        steps.take(20).map(|step| markdown(&words::sentence(step), 240)).collect::<Vec<_>>()
    };
    let mut act = cell(Phase::Act);
    if let Some(end) = &cycle.end {
        let (counts, follows, _) = words::boundary(end);
        act.push(format!("**{follows}**: {counts}"));
    }
    let deeds = cycle.deeds.iter().take(20);
    act.extend(deeds.map(|deed| {
        format!("{}: {}", markdown(&words::deed(&deed.line.doing), 80), markdown(&deed.line.outcome, 120))
    }));
    let [plan, make, check] = [Phase::Plan, Phase::Do, Phase::Check].map(|phase| cell(phase).join("<br>"));
    let _ = writeln!(out, "| {} | {plan} | {make} | {check} | {} |", cycle.number, act.join("<br>"));
}

/// The first and the last of many, and how many are between.
pub(super) fn split<T>(all: &[T], most: usize) -> (&[T], usize, &[T]) {
    if all.len() <= most {
        return (all, 0, &[]);
    }
    let head = most / 4;
    let tail = most - head;
    (&all[..head], all.len() - most, &all[all.len() - tail..])
}

/// Letters and shapes, so that a table of dots reads without colour.
pub(super) fn dot(state: State) -> &'static str {
    match state {
        State::Absent => "·",
        State::New => "●",
        State::Persistent => "◉",
        State::Resolved => "✓",
        State::Regressed => "▲",
        State::Oscillating => "◆",
        State::Accepted => "=",
    }
}

fn lives(out: &mut String, story: &Story) {
    out.push_str("\n## The findings\n\n");
    if story.lives.is_empty() {
        out.push_str("No finding above INFO was open at the end of any cycle.\n");
    } else {
        dots(out, story);
    }
    let counts = |n: usize| {
        if n > most::OTHERS { format!(" (the first {} of {n})", most::OTHERS) } else { String::new() }
    };
    if !story.raised.is_empty() {
        let _ = write!(out, "\nRaised by the program itself{}:\n\n", counts(story.raised.len()));
        for raised in story.raised.iter().take(most::OTHERS) {
            let found = &raised.finding;
            let _ = writeln!(
                out,
                "- {} {}: {} (#{})",
                found.severity.name(),
                code_span(&found.location, 120),
                markdown(&found.description, most::SENTENCE),
                raised.seq
            );
        }
    }
    if !story.set_aside.is_empty() {
        let _ = write!(out, "\nCounted as advice only{}:\n\n", counts(story.set_aside.len()));
        for aside in story.set_aside.iter().take(most::OTHERS) {
            let what = &aside.what;
            let _ = writeln!(
                out,
                "- cycle {}, {}: {} ({}, was {}, #{})",
                aside.cycle,
                markdown(&capital(&what.archetype), 40),
                markdown(&what.description, most::SENTENCE),
                what.reason.name().replace('_', " "),
                what.from.name(),
                aside.seq
            );
        }
    }
}

/// What other reviewers wrote about the same finding.
fn also(life: &Life) -> String {
    let remarks = life.also.iter().take(most::REMARKS).map(|remark| {
        let source = markdown(&capital(&remark.source), 40);
        format!("<br>{source}: {}", markdown(&remark.description, most::SENTENCE))
    });
    remarks.collect()
}

fn dots(out: &mut String, story: &Story) {
    let cycles = story.lives.first().map_or(0, |life| life.states.len());
    let from = cycles.saturating_sub(most::CYCLES_DOTTED);
    out.push_str("| Finding | Severity |");
    (from..cycles).for_each(|n| out.push_str(&format!(" {} |", n + 1)));
    out.push_str(" What |\n|---|---|");
    (from..cycles).for_each(|_| out.push_str(":-:|"));
    out.push_str("---|\n");
    for life in story.lives.iter().take(most::FINDINGS) {
        let _ = write!(out, "| {} | {} |", code_span(&life.id, 120), life.severity.name());
        life.states.iter().skip(from).for_each(|state| out.push_str(&format!(" {} |", dot(*state))));
        let again =
            life.regression_of.as_ref().map(|run| format!(" (resolved before in {})", markdown(run, 80)));
        let _ = writeln!(
            out,
            " {}{}{} |",
            markdown(&life.description, most::SENTENCE),
            also(life),
            again.unwrap_or_default()
        );
    }
    if story.lives.len() > most::FINDINGS {
        let _ = writeln!(out, "\n… and {} more.", story.lives.len() - most::FINDINGS);
    }
    let key: Vec<String> =
        State::ALL.iter().map(|state| format!("{} {}", dot(*state), state.name())).collect();
    let _ = writeln!(out, "\n{}", key.join(", "));
}

fn convergence(out: &mut String, story: &Story) {
    let trends: Vec<_> =
        story.cycles.iter().filter_map(|cycle| Some((cycle, cycle.end.as_ref()?.trend.as_ref()?))).collect();
    if trends.is_empty() {
        return;
    }
    out.push_str("\n## Convergence\n\n| Cycle | Score | | Resolved | New | Regressed | Persistent | Recommendation |\n|---|---|---|---|---|---|---|---|\n");
    let (first, left_out, last) = split(&trends, most::CYCLES_PLOTTED);
    for (cycle, trend) in first.iter().chain(last) {
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} | {} |",
            cycle.number,
            feedback::score(trend),
            trend.status.name(),
            trend.resolved,
            trend.new,
            trend.regressed,
            trend.persistent,
            markdown(&trend.recommendation, 120)
        );
    }
    if left_out > 0 {
        let _ = writeln!(out, "\n{} in the middle left out.", words::count(left_out, "cycle"));
    }
}

fn costs(out: &mut String, story: &Story) {
    if story.costs.is_empty() {
        return;
    }
    out.push_str("\n## Cost by archetype\n\n| Archetype | Model | Attempts | Time | Tokens in / out | Cost |\n|---|---|--:|--:|--:|--:|\n");
    for cost in story.costs.iter().take(most::OTHERS) {
        let unknown = if cost.unknown == cost.attempts { "not known".to_owned() } else { cost.cost.shown() };
        let tokens = if cost.counted == 0 {
            "not known".to_owned()
        } else {
            format!("{} / {}", cost.tokens.input, cost.tokens.output)
        };
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {tokens} | {unknown} |",
            markdown(&capital(&cost.archetype), 40),
            cost.model.name(),
            cost.attempts,
            view::seconds(cost.worked_ms)
        );
    }
}

fn corrections(out: &mut String, story: &Story) {
    if story.corrections.is_empty() {
        return;
    }
    out.push_str("\n## Shadows and corrections\n\n");
    for seen in story.corrections.iter().take(most::OTHERS) {
        let _ = writeln!(
            out,
            "- cycle {}, {}: **{}**, {} (#{}): {}",
            seen.cycle,
            markdown(&capital(&seen.archetype), 40),
            markdown(&seen.shadow.replace('_', " "), 60),
            seen.action.name(),
            seen.seq,
            markdown(&seen.seen.join("; "), most::SENTENCE)
        );
    }
    more(out, story.corrections.len(), most::OTHERS);
}

fn questions(out: &mut String, story: &Story) {
    if story.questions.is_empty() {
        return;
    }
    out.push_str("\n## Questions\n\n");
    for question in story.questions.iter().take(most::OTHERS) {
        let answer = question
            .answer
            .as_deref()
            .map_or("*(not answered)*".to_owned(), |text| markdown(text, most::SENTENCE));
        let _ =
            writeln!(out, "- {} (#{})\n  {answer}", markdown(&question.text, most::SENTENCE), question.seq);
    }
}

fn decisions(out: &mut String, story: &Story) {
    out.push_str("\n## Decisions\n\n| # | Rule | Who | Looked at | Decided | Instead of |\n|--:|---|---|---|---|---|\n");
    let (first, left_out, last) = split(&story.decisions, most::DECISIONS);
    for (n, choice) in first.iter().chain(last).enumerate() {
        if n == first.len() && left_out > 0 {
            let _ = writeln!(out, "| … | | | {left_out} left out | | |");
        }
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} |",
            choice.seq,
            markdown(&choice.why.rule, 20),
            markdown(&choice.why.who, 40),
            markdown(&choice.why.input, most::SENTENCE),
            markdown(&choice.why.decision, most::SENTENCE),
            markdown(&choice.alternatives.join("; "), most::SENTENCE)
        );
    }
}

fn diff(out: &mut String, report: &Report<'_>) {
    let diff = report.diff;
    out.push_str("\n## The change\n\n");
    if let Some(why) = &diff.missing {
        let _ = writeln!(out, "{}", markdown(why, most::SENTENCE));
        return;
    }
    let _ = writeln!(
        out,
        "{}, +{} −{}\n",
        words::count(diff.files.len() + diff.files_left_out, "file"),
        diff.added(),
        diff.deleted()
    );
    for file in &diff.files {
        let from =
            file.from.as_ref().map(|from| format!(" from {}", code_span(from, 200))).unwrap_or_default();
        let _ = writeln!(
            out,
            "- {} {}{from}, +{} −{}",
            file.word,
            code_span(&file.path, 200),
            file.added,
            file.deleted
        );
    }
    let text: String = diff
        .files
        .iter()
        .flat_map(|file| {
            let name = format!("--- {}", revealed(&file.path, 200));
            let rest = (file.left_out > 0).then(|| format!("… {} more lines of this file", file.left_out));
            std::iter::once(name)
                .chain(file.lines.iter().map(|(_, line)| revealed(line, most::SENTENCE)))
                .chain(rest)
        })
        .map(|line| line + "\n")
        .collect();
    let fence = fence(&text);
    let _ = write!(out, "\n{fence}diff\n{text}{fence}\n");
    if let Some(left_out) = diff.left_out() {
        let _ = write!(out, "\n{left_out} See all of it: {}\n", code_span(&diff.command, 300));
    }
}

fn artifacts(out: &mut String, story: &Story) {
    if story.artifacts.is_empty() {
        return;
    }
    let _ = write!(
        out,
        "\n## Artifacts\n\nIn `.archeflow/artifacts/{}/`; those of earlier cycles in `cycle-<n>/`.\n\n",
        story.run_id
    );
    for kept in story.artifacts.iter().take(most::ARTIFACTS) {
        let _ = writeln!(
            out,
            "- cycle {}: {} by the {} (#{})",
            kept.cycle,
            code_span(&kept.name, 120),
            markdown(&kept.by, 40),
            kept.seq
        );
    }
    more(out, story.artifacts.len(), most::ARTIFACTS);
}

fn more(out: &mut String, there: usize, told: usize) {
    if there > told {
        let _ = writeln!(out, "\n… and {} more.", there - told);
    }
}

/// A fence longer than any in the text.
fn fence(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}

/// Inside a fence of three.
fn fenced(text: &str) -> String {
    text.replace("```", "'''")
}
