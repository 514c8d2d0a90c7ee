//! For the log of a workflow: one command a line, which the code host shows beside the code.
//!
//! Nothing a reviewer wrote can issue another command: every text is on its own line's end, with its line breaks and
//! percent signs encoded, and in a property without colons and commas.

use archeflow_core::model::Severity;
use archeflow_core::strategies::review::Listed;

use super::{Sheet, most, words};
use archeflow_core::text::{log_line, log_text};

pub(super) fn draw(sheet: &Sheet<'_>) -> String {
    if sheet.is_silent() {
        return String::new();
    }
    let mut out = String::new();
    let mut hidden = 0;
    for severity in [Severity::Critical, Severity::Warning, Severity::Info] {
        // The closing line is a notice, too.
        let room = most::ANNOTATIONS - usize::from(severity == Severity::Info);
        let those = || sheet.shown().filter(|(found, _)| found.counts() && found.severity == severity);
        those().take(room).for_each(|(found, _)| out.push_str(&annotation(found)));
        hidden += those().count().saturating_sub(room);
    }
    out + &closing(sheet, hidden)
}

fn annotation(found: &Listed) -> String {
    let mut properties = Vec::new();
    if !found.file.is_empty() {
        properties.push(format!("file={}", property(&found.file)));
        if found.line > 0 {
            properties.push(format!("line={}", found.line));
        }
    }
    let title = format!("archeflow {}", log_line(&found.rule, 60));
    properties.push(format!("title={}", property(&title)));
    let level = match found.severity {
        Severity::Critical => "error",
        Severity::Warning => "warning",
        Severity::Info => "notice",
    };
    format!("::{level} {}::{}\n", properties.join(","), data(&words::message(found)))
}

/// The sum, and what does not fit into annotations.
fn closing(sheet: &Sheet<'_>, hidden: usize) -> String {
    let mut said = vec![format!("archeflow: {}.", words::counts(sheet.reviewed))];
    if sheet.since_last {
        let (gone, old) = (sheet.reviewed.resolved.len(), sheet.persistent());
        said.push(format!("Since the last review: {gone} resolved, {old} persistent."));
    }
    if hidden > 0 {
        said.push(format!("{hidden} more than can be shown here; the other formats have them."));
    }
    said.extend(words::coverage(sheet.reviewed));
    let level = if sheet.reviewed.unanswered().is_empty() { "notice" } else { "warning" };
    format!("::{level} title=archeflow::{}\n", data(&said.join(" ")))
}

fn data(text: &str) -> String {
    let text = log_text(text, most::PARAGRAPH * 3);
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Paths are left as they are in everything but what could drive something.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
