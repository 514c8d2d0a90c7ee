//! For a comment on a pull request: the sum, a table, and each finding to unfold. It never grows beyond what a code
//! host takes for a comment.

use std::fmt::Write as _;

use archeflow_core::strategies::review::{Frame, Listed, Reviewer};

use super::words::{self, Aside};
use super::{PostedThreads, Sheet, frame, most};
use archeflow_core::text::{code_block, code_span, html, log_line, markdown_comment};

pub(super) fn draw(sheet: &Sheet<'_>) -> String {
    if sheet.is_silent() {
        return String::new();
    }
    let mut out = String::new();
    head(&mut out, sheet);
    let counted: Vec<(&Listed, Option<&Frame>)> = sheet.shown().filter(|(found, _)| found.counts()).collect();
    table(&mut out, &counted);
    let after = [resolved(sheet), asides(sheet), reviewers(sheet), foot(sheet)].concat();
    let room = most::COMMENT.saturating_sub(after.len());
    details(&mut out, &counted, room);
    out + &after
}

fn head(out: &mut String, sheet: &Sheet<'_>) {
    let reviewed = sheet.reviewed;
    let _ = writeln!(out, "## Review of {}\n", markdown_comment(&words::subject(reviewed), most::SENTENCE));
    let _ = writeln!(out, "**{}** in {}.", words::counts(reviewed), words::size(reviewed));
    if sheet.since_last {
        let _ = writeln!(out, "\n{}", since_last(sheet));
    }
    for said in words::coverage(reviewed) {
        let strong = if reviewed.is_whole() { "" } else { "**" };
        let _ = writeln!(out, "\n{strong}{}{strong}", markdown_comment(&said, most::SENTENCE * 2));
    }
}

fn since_last(sheet: &Sheet<'_>) -> String {
    if !sheet.reviewed.compared {
        return "There was no earlier review to compare with: everything is new.".to_owned();
    }
    let news = sheet.shown().count();
    let gone = sheet.reviewed.resolved.len();
    format!("Since the last review: {news} new or back, {gone} resolved, {} persistent.", sheet.persistent())
}

fn table(out: &mut String, counted: &[(&Listed, Option<&Frame>)]) {
    if counted.is_empty() {
        return;
    }
    out.push_str("\n| Severity | Rule | Where | What |\n|---|---|---|---|\n");
    for (found, _) in counted.iter().take(most::ROWS) {
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} |",
            words::severity(found.severity),
            code_span(&found.rule, 60),
            code_span(&found.place(), 120),
            markdown_comment(&found.description, 160)
        );
    }
    left_out(out, counted.len().saturating_sub(most::ROWS), "findings that count");
}

fn left_out(out: &mut String, more: usize, what: &str) {
    if more > 0 {
        let _ = writeln!(out, "\n… and {more} more {what}.");
    }
}

fn details(out: &mut String, counted: &[(&Listed, Option<&Frame>)], room: usize) {
    // The sentence about what is left out has to fit as well.
    const SPARE: usize = 200;
    for (told, (found, frame)) in counted.iter().enumerate() {
        let one = detail(found, *frame);
        if out.len() + one.len() + SPARE > room {
            left_out(out, counted.len() - told, "findings than fit here");
            return;
        }
        out.push_str(&one);
    }
}

/// A finding on a page of its own, with everything that speaks for it.
pub(super) fn page(run_id: &str, found: &Listed, frame: Option<&Frame>) -> String {
    let mut out = format!(
        "# {} {} at {}\n{}",
        words::severity(found.severity),
        code_span(&found.rule, 60),
        code_span(&found.place(), most::SENTENCE),
        body(found, frame)
    );
    if let Some(tried) = found.trial.as_ref().filter(|tried| !tried.tail.trim().is_empty()) {
        let _ = write!(out, "\n**Printed:**\n\n{}", code_block(&tried.tail));
    }
    let _ = writeln!(out, "\n**Run:** {}", code_span(run_id, 100));
    out
}

/// A finding as a comment at its line, without the line, which is shown above it.
pub(super) fn comment(found: &Listed) -> String {
    format!("**{}** {}\n{}", words::severity(found.severity), code_span(&found.rule, 60), body(found, None))
}

/// A review as a comment on the whole request: what became of its threads, and every finding that has none.
pub(super) fn overview(sheet: &Sheet<'_>, posted: &PostedThreads<'_>) -> String {
    let mut out = String::new();
    head(&mut out, sheet);
    let _ = writeln!(out, "\n{}", posted.counts());
    let after = [left_open(posted), proposals(sheet, posted), verdicts(sheet), foot(sheet)].concat();
    let room = most::COMMENT.saturating_sub(after.len() + most::MARKER);
    let of = |at: &usize| sheet.all().nth(*at);
    let without: Vec<(&Listed, Option<&Frame>)> = posted.without_thread.iter().filter_map(of).collect();
    if !without.is_empty() {
        let _ = writeln!(out, "\n### Without a thread of their own ({})", without.len());
        table(&mut out, &without);
        details(&mut out, &without, room);
    }
    out + &after
}

fn left_open(posted: &PostedThreads<'_>) -> String {
    let mut out = String::new();
    if posted.left_open.is_empty() {
        return out;
    }
    let _ = writeln!(out, "\n### Not raised any more, but left open ({})\n", posted.left_open.len());
    for (file, why) in posted.left_open.iter().take(most::ROWS) {
        let _ = writeln!(out, "- {}: {why}", code_span(file, 120));
    }
    left_out(&mut out, posted.left_open.len().saturating_sub(most::ROWS), "threads");
    out
}

fn proposals(sheet: &Sheet<'_>, posted: &PostedThreads<'_>) -> String {
    let mut out = String::new();
    if posted.proposed.is_empty() {
        return out;
    }
    let _ = writeln!(
        out,
        "\n### Still there, but resolved or deleted by a person ({})\n\nIf they are accepted, say so in the baseline: {}\n",
        posted.proposed.len(),
        code_span(&format!("archeflow review --run {} --accept <id> --reason \"…\"", sheet.run_id), 300)
    );
    let of = |at: &usize| sheet.reviewed.findings.get(*at);
    for found in posted.proposed.iter().filter_map(of).take(most::ROWS) {
        let what = markdown_comment(&found.description, 160);
        let place = code_span(&found.place(), 120);
        let _ = writeln!(out, "- {place}: {what} ({})", code_span(&found.fingerprint, 64));
    }
    left_out(&mut out, posted.proposed.len().saturating_sub(most::ROWS), "findings");
    out
}

fn detail(found: &Listed, frame: Option<&Frame>) -> String {
    let place = log_line(&found.place(), most::SENTENCE);
    let place = if place.is_empty() { String::new() } else { format!(" at <code>{}</code>", html(&place)) };
    format!(
        "\n<details>\n<summary><b>{}</b> <code>{}</code>{place}</summary>\n{}\n</details>\n",
        words::severity(found.severity),
        html(&log_line(&found.rule, 60)),
        body(found, frame)
    )
}

fn body(found: &Listed, frame: Option<&Frame>) -> String {
    let mut out = format!("\n**What:** {}\n", markdown_comment(&found.description, most::PARAGRAPH));
    if let Some(frame) = frame.filter(|frame| !frame.lines.is_empty()) {
        let _ = write!(out, "\n{}", code_block(&drawn(found, frame)));
    }
    let mut say = |name: &str, text: String| {
        if !text.is_empty() {
            let _ = write!(out, "\n**{name}:** {text}\n");
        }
    };
    say("Evidence", markdown_comment(&found.evidence, most::PARAGRAPH));
    say(
        "Tried",
        found
            .trial
            .as_ref()
            .map(|tried| markdown_comment(&words::trial(tried), most::PARAGRAPH))
            .unwrap_or_default(),
    );
    say("Fix", markdown_comment(&found.fix, most::PARAGRAPH));
    for remark in found.also.iter().take(most::REMARKS) {
        let said = markdown_comment(&remark.description, most::SENTENCE);
        say("Also", format!("{} says: {said}", markdown_comment(&remark.source, 60)));
    }
    let since = found.since.map(|since| format!(", {}", words::since(since))).unwrap_or_default();
    say(
        "Raised by",
        format!(
            "{}{since}, {}",
            markdown_comment(&words::sources(found), most::SENTENCE),
            code_span(&found.fingerprint, 64)
        ),
    );
    out
}

fn drawn(found: &Listed, frame: &Frame) -> String {
    let gutter = frame::gutter(frame);
    let rows = frame::rows(found, frame, 120).into_iter().map(|row| {
        let sign = if row.mark.is_some() { '>' } else { ' ' };
        format!("{sign} {:>gutter$} | {}\n", row.number, row.text)
    });
    rows.collect()
}

fn resolved(sheet: &Sheet<'_>) -> String {
    let known = &sheet.reviewed.resolved;
    let mut out = String::new();
    if known.is_empty() {
        return out;
    }
    let _ = writeln!(out, "\n### Resolved ({})\n", known.len());
    for one in known.iter().take(most::ROWS) {
        let what = markdown_comment(&one.description, 160);
        let _ = writeln!(out, "- {} in {}: {what}", code_span(&one.rule, 60), code_span(&one.file, 120));
    }
    left_out(&mut out, known.len().saturating_sub(most::ROWS), "that are gone");
    out
}

fn asides(sheet: &Sheet<'_>) -> String {
    let mut out = String::new();
    for aside in Aside::ALL.into_iter().filter(|_| !sheet.since_last) {
        let those: Vec<&Listed> = sheet.reviewed.findings.iter().filter(|found| aside.holds(found)).collect();
        if those.is_empty() {
            continue;
        }
        let _ = writeln!(out, "\n### Does not count: {} ({})\n", aside.heading(), those.len());
        for found in those.iter().take(most::ROWS) {
            let why = words::why(found).map(|why| markdown_comment(&why.replace('_', " "), 160));
            let why = why.filter(|why| !why.is_empty()).map(|why| format!(" ({why})")).unwrap_or_default();
            let what = markdown_comment(&found.description, 160);
            let _ = writeln!(
                out,
                "- {} {}: {what}{why}",
                code_span(&found.rule, 60),
                code_span(&found.place(), 120)
            );
        }
        left_out(&mut out, those.len().saturating_sub(most::ROWS), "that do not count");
    }
    out
}

fn reviewers(sheet: &Sheet<'_>) -> String {
    let mut out = String::new();
    if sheet.reviewed.reviewers.is_empty() {
        return out;
    }
    out.push_str(
        "\n| Reviewer | Verdict | Findings | Model | Tokens | Cost |\n|---|---|---:|---|---:|---:|\n",
    );
    for reviewer in sheet.reviewed.reviewers.iter().take(most::ROWS) {
        let model = reviewer.player.as_ref().map(|player| code_span(&player.model, 80)).unwrap_or_default();
        let _ = writeln!(
            out,
            "| {} | {} | {} | {model} | {} | {} |",
            markdown_comment(&reviewer.archetype, 60),
            words::verdict(reviewer),
            reviewer.findings,
            words::tokens(reviewer),
            words::cost(reviewer)
        );
    }
    out
}

/// The reviewers in one line, where tokens and costs are nobody's business.
fn verdicts(sheet: &Sheet<'_>) -> String {
    let verdict = |reviewer: &Reviewer| {
        let name = markdown_comment(&reviewer.archetype, 60);
        format!("{name} {} ({})", words::verdict(reviewer), words::count(reviewer.findings, "finding"))
    };
    let all: Vec<String> = sheet.reviewed.reviewers.iter().take(most::ROWS).map(verdict).collect();
    if all.is_empty() { String::new() } else { format!("\nReviewers: {}.\n", all.join(", ")) }
}

fn foot(sheet: &Sheet<'_>) -> String {
    format!(
        "\n<sub>archeflow {}, run {}, commit {} against {}.</sub>\n",
        html(&log_line(sheet.version, 40)),
        code_span(sheet.run_id, 100),
        code_span(&words::short(&sheet.reviewed.commit), 10),
        code_span(&words::short(&sheet.reviewed.base), 10)
    )
}
