//! The change, file by file, with the findings at their lines.

use std::collections::BTreeMap;

use archeflow_core::model::{ReproductionResult, counted};
use archeflow_core::projections::story::evidence::{self, Evidence};
use archeflow_core::projections::story::{Life, State};
use archeflow_core::projections::view::capital;
use archeflow_core::rules::unmade::unmade_line;
use archeflow_core::text::{revealed, short_line, short_text};
use maud::{Markup, html};

use super::super::{decide, words};
use super::panel;
use crate::report::diff::{Diff, FileDiff, Kind};
use crate::run_model::RunModel;
use crate::server::Ui;

/// Of one line.
const WIDEST: usize = 600;

pub(super) fn draw(ui: &Ui, run: &RunModel, diff: &Diff) -> Markup {
    let found = run.open_findings();
    let open: Vec<&Life> = found.iter().collect();
    let shown = |life: &&&Life| diff.files.iter().any(|file| file.path == life.file);
    let elsewhere: Vec<&Life> = open.iter().filter(|life| !shown(life)).copied().collect();
    html! {
        div.stack {
            @if let Some(unmade) = unmade_line(&run.story.planned_missing) { p.small.muted { (short_line(&capital(&unmade), 200)) } }
            @for note in &run.story.change_notes { p.small.muted { (short_line(&capital(note), 200)) } }
            @if !elsewhere.is_empty() { (outside(ui, run, &elsewhere)) }
            @if let Some(why) = &diff.missing {
                (panel("The change", &html! { p.muted { (short_line(why, 400)) } }))
            } @else {
                p.small.muted.num {
                    (counted(diff.files.len() + diff.files_left_out, "file")) ", +" (diff.added()) " −" (diff.deleted())
                }
                @for file in &diff.files { (one_file(ui, run, file, &open, diff.files.len() <= 20)) }
                @if let Some(left_out) = diff.left_out() { p.small.muted { (left_out) " See all of it: " code { (short_line(&diff.command, 300)) } } }
            }
        }
    }
}

/// Findings that are at no line of the change.
fn outside(ui: &Ui, run: &RunModel, lives: &[&Life]) -> Markup {
    html! {
        section.panel aria-label="Findings outside of the change" {
            header { h2 { "Findings outside of the change" } }
            @for life in lives.iter().take(50) { (finding(ui, run, life)) }
        }
    }
}

fn one_file(ui: &Ui, run: &RunModel, file: &FileDiff, open: &[&Life], is_open: bool) -> Markup {
    let rows = numbered(file);
    let mut at: BTreeMap<Option<u32>, Vec<&Life>> = BTreeMap::new();
    for life in open.iter().filter(|life| life.file == file.path) {
        let line = rows.iter().any(|row| row.new == Some(life.line)).then_some(life.line);
        at.entry(line).or_default().push(life);
    }
    html! {
        details.panel.file open[is_open || !at.is_empty()] {
            summary {
                code { (revealed(&file.path, 200)) }
                @if let Some(from) = &file.from { span.small.muted { "from " (revealed(from, 200)) } }
                span.small.muted.num { (file.word) ", +" (file.added) " −" (file.deleted) }
            }
            @for life in at.get(&None).into_iter().flatten() { (finding(ui, run, life)) }
            div.scroll tabindex="0" role="region" aria-label={ "Lines of " (revealed(&file.path, 200)) } {
                table.diff {
                    @for row in &rows { (one_row(ui, run, row, &at)) }
                    @if file.left_out > 0 {
                        tr.hunk { td colspan="4" { (more_of(run, file)) } }
                    }
                }
            }
        }
    }
}

/// Where the rest of a file is shown; nowhere, if it is shown alone already.
fn more_of(run: &RunModel, file: &FileDiff) -> Markup {
    let left_out = counted(file.left_out, "more line");
    html! {
        a.link href={ (run.address()) "/file?path=" (encoded(&file.path)) } { (left_out) " of this file" }
    }
}

/// For an address.
fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// One file of the change.
pub(super) fn draw_file(ui: &Ui, run: &RunModel, diff: &Diff) -> Markup {
    let found = run.open_findings();
    let open: Vec<&Life> = found.iter().collect();
    html! {
        div.stack {
            p { a.link href=(run.address()) { "All files of the change" } }
            @if let Some(why) = &diff.missing { (panel("The change", &html! { p.muted { (why) } })) }
            @for file in &diff.files { (one_file(ui, run, file, &open, true)) }
        }
    }
}

/// A line of a diff with its numbers before and after.
struct Row<'a> {
    kind: Kind,
    old: Option<u32>,
    new: Option<u32>,
    text: &'a str,
}

fn numbered(file: &FileDiff) -> Vec<Row<'_>> {
    let (mut old, mut new) = (0_u32, 0_u32);
    let rows = file.lines.iter().map(|(kind, text)| {
        let row = |old, new, text| Row { kind: *kind, old, new, text };
        let rest = || text.get(1..).unwrap_or("");
        match kind {
            Kind::Hunk => {
                (old, new) = starts(text);
                row(None, None, text.as_str())
            }
            Kind::Note => row(None, None, text.as_str()),
            Kind::Same => {
                let numbers = (old, new);
                (old, new) = (old.saturating_add(1), new.saturating_add(1));
                row(Some(numbers.0), Some(numbers.1), rest())
            }
            Kind::Added => {
                new = new.saturating_add(1);
                row(None, Some(new - 1), rest())
            }
            Kind::Deleted => {
                old = old.saturating_add(1);
                row(Some(old - 1), None, rest())
            }
        }
    });
    rows.collect()
}

/// `@@ -31,9 +31,14 @@`: the first line before and after.
fn starts(hunk: &str) -> (u32, u32) {
    let number = |mark: char| {
        let side = hunk.split(' ').find_map(|word| word.strip_prefix(mark))?;
        side.split(',').next()?.parse().ok()
    };
    (number('-').unwrap_or(0), number('+').unwrap_or(0))
}

fn one_row(ui: &Ui, run: &RunModel, row: &Row<'_>, findings: &BTreeMap<Option<u32>, Vec<&Life>>) -> Markup {
    let text = revealed(row.text, WIDEST);
    let here = row.new.and_then(|line| findings.get(&Some(line)));
    let (class, sign) = match row.kind {
        Kind::Hunk | Kind::Note => return html! { tr.hunk { td colspan="4" { (text) } } },
        Kind::Same => (None, ""),
        Kind::Added => (Some("add"), "+"),
        Kind::Deleted => (Some("del"), "−"),
    };
    html! {
        tr class=[class] {
            td.n { @if let Some(old) = row.old { (old) } }
            td.n { @if let Some(new) = row.new { (new) } }
            td.sign { (sign) }
            td { (text) }
        }
        @for life in here.into_iter().flatten() {
            tr.note { td colspan="4" { (finding(ui, run, life)) } }
        }
    }
}

/// A finding as its reviewer wrote it.
pub(super) fn finding(ui: &Ui, run: &RunModel, life: &Life) -> Markup {
    let severity = life.severity.name().to_lowercase();
    let since = since(life);
    html! {
        article.finding aria-label={ "Finding, " (severity) ", " (since) } {
            div.in {
                div.meta {
                    span class={ "chip " (words::severity(life.severity)) } { (capital(&severity)) }
                    span { (short_line(&life.category, 40)) }
                    span { (short_line(&words::and(&life.source), 80)) }
                    span { (since) }
                    code { (short_line(&life.place(), 120)) }
                }
                p.say { (short_line(&life.description, 600)) }
                @if !life.fix.is_empty() { p.fix { (short_line(&life.fix, 600)) } }
                @for remark in life.also.iter().take(5) {
                    div.ev { b { (short_line(&capital(&remark.source), 40)) ": " } (short_line(&remark.description, 400)) }
                }
                @for evidence in evidence::evidence(run.run(), life).iter().take(5) { (checked(evidence)) }
                @if let Some(run) = &life.regression_of {
                    div.ev { "Resolved before in " code { (short_line(run, 80)) } }
                }
            }
            @if life.is_open() { (decide::accepting(ui, run, &life.id)) }
        }
    }
}

/// What the reviewer brought forward, and what the program found when it looked.
fn checked(evidence: &Evidence) -> Markup {
    let cited = evidence.citations.iter().take(5);
    html! {
        @if let Some((command, ran)) = &evidence.reproduction {
            div.ev {
                b {
                    (match ran.as_ref().map(|ran| ran.result) {
                        Some(ReproductionResult::Confirmed) => "Confirmed. ",
                        Some(ReproductionResult::Refuted) => "Refuted. ",
                        Some(ReproductionResult::NotReproduced) => "Not reproduced. ",
                        None => "Not run. ",
                    })
                }
                @if let Some(ran) = ran { (short_line(&ran.words, 300)) ": " }
                code { (short_line(command, 300)) }
                @if let Some(ran) = ran.as_ref().filter(|ran| !ran.output.trim().is_empty()) {
                    details { summary { "Its output" } pre.text { (short_text(&ran.output, 4_000)) } }
                }
            }
        }
        @for citation in cited {
            div.ev {
                b {
                    (match (citation.holds, citation.quote.is_some()) {
                        (Some(true), true) => "Cited code found. ",
                        (Some(true), false) => "Cited line found. ",
                        (Some(false), _) => "Not there as cited. ",
                        (None, _) => "Not checked. ",
                    })
                }
                code { (short_line(&words::place(&citation.file, citation.line), 120)) }
                @if let Some(quote) = &citation.quote { ": " code { (short_line(quote, 300)) } }
            }
        }
        @if evidence.citations.is_empty() && evidence.reproduction.is_none() && !evidence.text.trim().is_empty() {
            div.ev { b { "Evidence of the reviewer. " } (short_line(&evidence.text, 400)) }
        }
    }
}

/// `new in cycle 2`, `persistent since cycle 1`.
fn since(life: &Life) -> String {
    let first = life.states.iter().position(|state| state.is_open()).map_or(1, |at| at + 1);
    match life.states.last() {
        Some(State::New) | None => format!("new in cycle {}", life.states.len().max(1)),
        Some(State::Persistent) => format!("persistent since cycle {first}"),
        Some(state @ (State::Regressed | State::Oscillating)) => {
            format!("{}, first in cycle {first}", state.name())
        }
        Some(state @ (State::Resolved | State::Accepted)) => state.name().to_owned(),
        Some(State::Absent) => format!("found in cycle {first}, closed since"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u_16_lines_of_a_diff_have_their_numbers() {
        let text = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -31,3 +31,4 @@ fn a\n same\n-old\n+new\n+more\n same\n@@ -9999999999,1 +x @@\n";
        let diff = Diff::read(text, None, String::new());
        let rows: Vec<(Option<u32>, Option<u32>, &str)> =
            numbered(&diff.files[0]).iter().map(|row| (row.old, row.new, row.text)).collect();
        assert_eq!(
            rows,
            [
                (None, None, "@@ -31,3 +31,4 @@ fn a"),
                (Some(31), Some(31), "same"),
                (Some(32), None, "old"),
                (None, Some(32), "new"),
                (None, Some(33), "more"),
                (Some(33), Some(34), "same"),
            ]
        );
        assert_eq!(starts("@@ -99999999999,1 +x @@"), (0, 0));
    }
}
