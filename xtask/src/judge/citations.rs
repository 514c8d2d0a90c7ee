//! What reviewers cite, and what others made up in its place (`e_citations.jsonl`).
//!
//! The data has the line at the cited place and not its file, so files are put together from lines of the same project:
//! the cited one where it was, others around it. Made-up citations are those of the red team: code of another project
//! quoted as evidence, and another line of the file.

use std::path::Path;

use archeflow_core::model::{AnswerBody, Finding, Role, Severity};
use archeflow_core::read;
use archeflow_core::rules::evidence;
use archeflow_host::executors::look_up_in_folder;
use serde_json::Value;

use super::{Measure, Measures, number, share, text};

pub(super) fn measure(items: &[Value]) -> Measures {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let [mut stand, mut quoted, mut lost, mut asked, mut costs, mut unplaced, mut beside, mut elsewhere] =
        [0_u32; 8];
    let (mut all, mut mistakes) = (0_u32, Vec::new());
    for (at, item) in items.iter().enumerate() {
        let (line, lines) = (number(item, "line"), number(item, "lines"));
        let cited = text(item, "text_at_line").trim();
        if line == 0 || line > lines || text(item, "file").is_empty() {
            continue;
        }
        all += 1;
        let foreign = items
            .iter()
            .cycle()
            .skip(at + 1)
            .take(items.len())
            .find(|other| repo(other) != repo(item) && text(other, "text_at_line").trim().len() >= 20);
        let Some(foreign) = foreign.map(|other| text(other, "text_at_line").trim()) else { continue };
        write(folder.path(), items, item)?;
        // Code marks in the title may quote code that is there; here only the evidence is to be weighed.
        let (file, title) = (text(item, "file"), text(item, "title").replace('`', ""));
        let place = format!("{file}:{line}");
        let look = |place: &str, severity: &str, evidence: &str| -> Result<Severity, String> {
            Ok(counts_as(&looked_up(folder.path(), finding(place, severity, &title, evidence)?)?))
        };
        let is_asked = |place: &str| -> Result<bool, String> {
            let found = looked_up(folder.path(), finding(place, "CRITICAL", &title, "")?)?;
            Ok(evidence::is_unrelated(&found))
        };
        let true_one = look(&place, "WARNING", "")?;
        stand += u32::from(true_one == Severity::Warning);
        if true_one != Severity::Warning {
            mistakes.push(format!("{place}: a true citation falls"));
        }
        quoted +=
            u32::from(!is_quotable(cited) || look(file, "CRITICAL", &code(cited))? == Severity::Critical);
        lost += u32::from(look(&place, "CRITICAL", "")? != Severity::Critical);
        let questioned = is_asked(&place)?;
        asked += u32::from(questioned);
        costs += u32::from(questioned && is_critical(item));
        let stands = look(file, "CRITICAL", &code(foreign))? != Severity::Info;
        unplaced += u32::from(stands);
        if stands {
            mistakes.push(format!("{file}: made-up code stands: {foreign}"));
        }
        let next = format!("{file}:{} {}", (line + 1).min(lines), code(foreign));
        beside += u32::from(look(&place, "CRITICAL", &next)? != Severity::Info);
        let other = (line + lines / 2) % lines + 1;
        elsewhere += u32::from(is_asked(&format!("{file}:{other}"))?);
    }
    let of = |count: u32| format!("{count} of {all}");
    let row = |what: &str, figure: String, baseline: &str, goal: &str, met: bool| Measure {
        what: what.to_owned(),
        baseline: baseline.to_owned(),
        figure,
        goal: goal.to_owned(),
        met,
        mistakes: Vec::new(),
    };
    let standing = "any line that exists: all";
    let mut rows = vec![
        row("true citations stand", of(stand), standing, "99 %", share(stand, all) >= 0.99),
        row("true quotations stand", of(quoted), standing, "99 %", share(quoted, all) >= 0.99),
        row("made-up code without a line stands", of(unplaced), "all", "0", unplaced == 0),
        row("made-up code at the next line stands", of(beside), "all", "0", beside == 0),
        row("true line alone loses a CRITICAL unasked", of(lost), standing, "2 %", share(lost, all) <= 0.02),
        row("true line alone, asked about as a CRITICAL", of(asked), "none", "no goal", true),
        row(
            "true line alone is asked about, with its own severity",
            of(costs),
            "none",
            "5 %",
            share(costs, all) <= 0.05,
        ),
        row(
            "another line alone is asked about",
            of(elsewhere),
            "none",
            "more than true ones",
            elsewhere > asked,
        ),
    ];
    if let Some(first) = rows.first_mut() {
        first.mistakes = mistakes;
    }
    Ok(rows)
}

fn repo(item: &Value) -> &str {
    item.get("source").map_or("", |source| text(source, "repo"))
}

/// Only CRITICALs are asked about. The reviews that the data is from number theirs `CR-01`, and warnings `WR-01`.
fn is_critical(item: &Value) -> bool {
    item.get("source").is_some_and(|source| text(source, "id").starts_with("CR"))
}

fn code(line: &str) -> String {
    format!("`{}`", line.replace('`', "'"))
}

/// Whether a line can be quoted in a cell so that it is code.
fn is_quotable(line: &str) -> bool {
    line.len() >= 8 && !line.contains(['`', '|']) && line.contains(['(', '=', ';', '{', ':', '"'])
}

/// The cited line where it was, and lines of the same project that other findings cite elsewhere.
fn write(folder: &Path, items: &[Value], item: &Value) -> Result<(), String> {
    let project: Vec<&str> = items
        .iter()
        .filter(|other| repo(other) == repo(item))
        .map(|other| text(other, "text_at_line"))
        .collect();
    let filler = project.iter().cycle();
    let (line, lines) = (number(item, "line") as usize, number(item, "lines") as usize);
    let mut content: Vec<&str> = filler.copied().take(lines).collect();
    if let Some(cited) = content.get_mut(line - 1) {
        *cited = text(item, "text_at_line");
    }
    let path = folder.join(text(item, "file"));
    let parent = path.parent().unwrap_or(folder);
    std::fs::create_dir_all(parent)
        .and_then(|()| std::fs::write(&path, content.join("\n") + "\n"))
        .map_err(|error| format!("{}: {error}", path.display()))
}

fn finding(place: &str, severity: &str, title: &str, evidence: &str) -> Result<Finding, String> {
    let cell = |text: &str| text.replace('|', "/").replace('\n', " ");
    let review = format!(
        "VERDICT: REJECTED\nFINDINGS: 1\n\n| Location | Severity | Category | Description | Fix | Evidence |\n\
         |---|---|---|---|---|---|\n| {place} | {severity} | quality | {} | See above. | {} |\n\nSTATUS: DONE\n",
        cell(title),
        cell(evidence)
    );
    let answer = read::answer(Role::Reviewer, "skeptic", review.as_bytes());
    match answer.said {
        AnswerBody::Review(review) => review.findings.into_iter().next(),
        AnswerBody::Prose | AnswerBody::Proposal(_) => None,
    }
    .ok_or_else(|| format!("not read: {review}"))
}

fn looked_up(folder: &Path, finding: Finding) -> Result<Finding, String> {
    let mut findings = [finding];
    look_up_in_folder(folder, &mut findings).map_err(|error| error.to_string())?;
    let [finding] = findings;
    Ok(finding)
}

fn counts_as(finding: &Finding) -> Severity {
    evidence::weigh(finding).map_or(finding.severity, |why| finding.severity.min(why.counts_as()))
}
