//! The feedback of the last cycle to the next one (AF-086, AF-092, AF-095), and the convergence report (AF-111).

use std::fmt::Write;

use crate::event::{CycleBoundary, Tracked, Trend};
use crate::model::{Boundaries, Destination, counted};
use crate::rules::pollution;
use crate::run::Run;

/// The last finished cycle: the one the present cycle has to answer to.
fn last_boundary(run: &Run) -> Option<&CycleBoundary> {
    let before = run.cycles.len().checked_sub(2)?;
    run.cycles.get(before)?.boundary.as_deref()
}

/// The part of the feedback one role may see: its own findings, and the numbers of the trend.
pub fn for_role(run: &Run, role: Destination) -> Option<String> {
    feedback_text(run, role, &run.policy().boundaries)
}

/// The same for a prompt that is too long for all of it: the most severe one by one, the rest as themes (AF-156).
pub fn in_short(run: &Run, role: Destination) -> Option<String> {
    feedback_text(run, role, &Boundaries { findings_at_most: 0, ..run.policy().boundaries.clone() })
}

fn feedback_text(run: &Run, role: Destination, policy: &Boundaries) -> Option<String> {
    let boundary = last_boundary(run)?;
    let mut text = String::new();
    if let Some(trend) = &boundary.convergence {
        summary(&mut text, boundary.cycle, trend);
        text.push('\n');
    }
    push_findings(&mut text, boundary, role, policy);
    let _ = write!(
        text,
        "\nUnder a heading `Prior issues`, give each of these a line of its own: its id, then Fixed, Deferred, \
         Accepted or Disputed, then why.\n"
    );
    Some(text)
}

/// `act-feedback.md`: everything, in two sections.
pub fn document(boundary: &CycleBoundary) -> String {
    let mut text = String::new();
    if let Some(trend) = &boundary.convergence {
        summary(&mut text, boundary.cycle, trend);
        text.push('\n');
        status_table(&mut text, boundary, trend);
        text.push('\n');
    }
    section(&mut text, boundary, Destination::Creator);
    text.push('\n');
    section(&mut text, boundary, Destination::Maker);
    text
}

fn summary(text: &mut String, cycle: u32, trend: &Trend) {
    let _ = write!(
        text,
        "## Convergence Analysis (Cycle {} → {cycle})\n\nScore: {} ({})\nResolved: {} | New: {} | Regressed: {} | \
         Persistent: {}\nRecommendation: {} — {}\n",
        cycle.saturating_sub(1),
        score(trend),
        trend.status.name(),
        trend.resolved,
        trend.new,
        trend.regressed,
        trend.persistent,
        capital(&trend.recommendation),
        trend.reason
    );
}

fn status_table(text: &mut String, boundary: &CycleBoundary, trend: &Trend) {
    text.push_str("### Finding Status\n\n| Finding | Status | Cycles |\n|---|---|---|\n");
    for found in &trend.resolved_findings {
        let _ = writeln!(text, "| {} | RESOLVED | {} |", cell(&found.description), found.cycles_open);
    }
    for found in &boundary.open {
        let status = class(trend, &found.id);
        let _ = writeln!(text, "| {} | {status} | {} |", cell(&found.description), found.cycles_open);
    }
}

/// The class of an open finding, in the founding documents' words.
pub fn class(trend: &Trend, id: &str) -> &'static str {
    let among = |ids: &[String]| ids.iter().any(|other| other == id);
    if among(&trend.oscillating) {
        "OSCILLATING"
    } else if among(&trend.regressed_ids) {
        "REGRESSED"
    } else if among(&trend.persistent_ids) {
        "PERSISTENT"
    } else {
        "NEW"
    }
}

/// AF-156: one by one, or as themes where they are too many to be held in mind.
fn push_findings(text: &mut String, boundary: &CycleBoundary, role: Destination, policy: &Boundaries) {
    let mine: Vec<&Tracked> = boundary.open.iter().filter(|found| found.routes_to == role).collect();
    if boundary.open.len() <= policy.findings_at_most as usize {
        section(text, boundary, role);
        return;
    }
    let (single, themes) = pollution::themes(&mine, &Boundaries { findings_at_most: 0, ..policy.clone() });
    let _ = writeln!(
        text,
        "## {}-Routed Issues\n\n{} findings are open, too many to list. The gravest one by one, the rest as themes; \
         the whole list is in `act-feedback.md` of the cycle before.\n",
        capital(role.name()),
        boundary.open.len()
    );
    single.iter().for_each(|found| item(text, found));
    for theme in themes {
        let _ = writeln!(
            text,
            "- **{}** {} of {} in {}, such as `{}`",
            theme.gravest.name(),
            counted(theme.findings, "finding"),
            theme.category,
            counted(theme.files.len(), "file"),
            theme.ids.iter().take(3).cloned().collect::<Vec<_>>().join("`, `")
        );
    }
}

fn item(text: &mut String, found: &Tracked) {
    let open = if found.cycles_open > 1 {
        format!(", open for {} cycles", found.cycles_open)
    } else {
        String::new()
    };
    let _ = writeln!(
        text,
        "- `{}` {}**{}** {} ({}{open}): {}{}",
        found.id,
        regression(found),
        found.severity.name(),
        place(found),
        found.source.join(", "),
        found.description,
        if found.fix.is_empty() { String::new() } else { format!(" Fix: {}", found.fix) }
    );
    for remark in &found.also {
        let _ = writeln!(text, "  - {} writes about it: {}", capital(&remark.source), remark.description);
    }
}

fn section(text: &mut String, boundary: &CycleBoundary, role: Destination) {
    let title = match role {
        Destination::Creator => "Creator",
        Destination::Maker => "Maker",
    };
    let _ = writeln!(text, "## {title}-Routed Issues\n");
    let mut none = true;
    // A regression comes before a new finding (AF-121).
    let (back, others): (Vec<&Tracked>, Vec<&Tracked>) = boundary
        .open
        .iter()
        .filter(|found| found.routes_to == role)
        .partition(|found| found.regression_of.is_some());
    for found in back.into_iter().chain(others) {
        none = false;
        item(text, found);
    }
    if none {
        text.push_str("(none)\n");
    }
}

fn regression(found: &Tracked) -> String {
    found
        .regression_of
        .as_ref()
        .map_or_else(String::new, |run| format!("**REGRESSION** (resolved in {run}) "))
}

/// The convergence report of one boundary.
pub fn report(boundary: &CycleBoundary, trend: &Trend) -> String {
    let cycle = boundary.cycle;
    let mut text = format!(
        "## Convergence Analysis (Cycle {} → {cycle})\n\n**Score:** {} ({})\n**Resolved:** {} | **New:** {} | \
         **Regressed:** {} | **Persistent:** {} | **Oscillating:** {}\n",
        cycle.saturating_sub(1),
        score(trend),
        trend.status.name(),
        trend.resolved,
        trend.new,
        trend.regressed,
        trend.persistent,
        trend.oscillating.len()
    );
    let of = |ids: &[String]| -> Vec<&Tracked> {
        boundary.open.iter().filter(|found| ids.contains(&found.id)).collect()
    };
    table(&mut text, "Resolved This Cycle", &trend.resolved_findings.iter().collect::<Vec<_>>(), false);
    table(&mut text, "New This Cycle", &of(&trend.new_ids), false);
    table(&mut text, "Regressed", &of(&trend.regressed_ids), false);
    table(&mut text, "Persistent (unresolved across cycles)", &of(&trend.persistent_ids), true);
    table(&mut text, "Oscillating", &of(&trend.oscillating), false);
    let _ = write!(text, "\n**Recommendation:** {} — {}\n", capital(&trend.recommendation), trend.reason);
    text
}

fn table(text: &mut String, title: &str, rows: &[&Tracked], with_age: bool) {
    let _ = write!(text, "\n### {title}\n\n");
    if rows.is_empty() {
        text.push_str("(none)\n");
        return;
    }
    text.push_str("| Source | Category | Place | Description |");
    text.push_str(if with_age { " Cycles Open |\n|---|---|---|---|---|\n" } else { "\n|---|---|---|---|\n" });
    for row in rows {
        let _ = write!(
            text,
            "| {} | {} | {} | {} |",
            row.source.join(", "),
            row.category,
            cell(&place(row)),
            cell(&row.description)
        );
        if with_age {
            let _ = write!(text, " {} |", row.cycles_open);
        }
        text.push('\n');
    }
}

/// Two decimals, truncated, for people.
pub fn score(trend: &Trend) -> String {
    format!("{}.{:02}", trend.score.0 / 1_000_000, trend.score.0 % 1_000_000 / 10_000)
}

fn place(found: &Tracked) -> String {
    match (found.file.as_str(), found.line) {
        ("", _) => found.category.clone(),
        (file, 0) => file.to_owned(),
        (file, line) => format!("{file}:{line}"),
    }
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace(['\n', '\r'], " ")
}

fn capital(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
