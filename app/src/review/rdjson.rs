//! For reviewdog, which makes comments on code hosts of it. So messages are Markdown in which everything is text; the
//! original words are in `original_output`. There are no suggestions: a fix is advice, not a replacement.

use archeflow_core::model::Severity;
use archeflow_core::strategies::review::Listed;
use serde_json::{Value, json};

use super::{Sheet, most, rules, words};
use archeflow_core::text::markdown_comment;

pub(super) fn draw(sheet: &Sheet<'_>) -> Value {
    let counted = sheet.shown().map(|(found, _)| found).filter(|found| found.counts());
    let mut result = json!({
        "source": { "name": "archeflow" },
        "diagnostics": counted.map(diagnostic).collect::<Vec<_>>(),
    });
    let gravest = [Severity::Critical, Severity::Warning, Severity::Info];
    if let Some(grave) = gravest.into_iter().find(|grave| sheet.reviewed.count(*grave) > 0) {
        result["severity"] = level(grave).into();
    }
    result
}

fn diagnostic(found: &Listed) -> Value {
    let mut location = json!({ "path": found.file });
    if found.line > 0 {
        // Without columns, the whole line.
        location["range"] = json!({ "start": { "line": found.line } });
    }
    let said = words::message(found);
    json!({
        "message": message(found, &said),
        "location": location,
        "severity": level(found.severity),
        "source": { "name": "archeflow" },
        "code": { "value": rules::id(found) },
        "original_output": format!("{}: {said}", words::severity(found.severity)),
    })
}

/// A word of ours comes first, so that nothing begins a list, a heading or a command.
fn message(found: &Listed, said: &str) -> String {
    let inert: Vec<String> = said.lines().map(|line| markdown_comment(line, most::PARAGRAPH * 2)).collect();
    format!("**{}:** {}", words::severity(found.severity), inert.join("\n\n"))
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "ERROR",
        Severity::Warning => "WARNING",
        Severity::Info => "INFO",
    }
}
