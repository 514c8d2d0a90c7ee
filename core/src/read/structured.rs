//! Answers in a form: what a client sends that was given a schema, as the Markdown the brief asks for.
//!
//! The form is written out as Markdown and then read by the one reader, like any other answer. So a finding is the same
//! finding whichever way it came, the rules that count words and headings have something to count, and what people
//! find in the artifacts is what was judged. The price is care with strings: the text of a field is content and may
//! not become a heading, a verdict or a row of its own, so lines that could are quoted (decision 022).
//!
//! The schemas are also the check: a value is held against its schema here, whatever the client claims to have checked.
//! Explorer and Maker have none. Their answers are prose, and a form of one field would only put it in quotation marks.

use std::fmt::Write;

use super::heads::{label, opening};
use super::json::{self, Json};
use super::lines::{LineKind, TextLine, scan};
use super::proposal::HEADINGS;
use super::text::cap;
use super::{naming, review, sections, status, table};
use crate::model::Role;

const REVIEW: &str = include_str!("../../schemas/review.json");
/// The same, with a reproduction for each finding: for reviews that run them.
const VERIFIED: &str = include_str!("../../schemas/review-verified.json");
const PROPOSAL: &str = include_str!("../../schemas/proposal.json");

/// The JSON schema of a role's answer, for clients that take one. Strict: every property is required, and no other is
/// allowed.
pub fn schema_for(role: Role) -> Option<&'static str> {
    match role {
        Role::Explorer | Role::Maker => None,
        Role::Creator => Some(PROPOSAL),
        Role::Gatekeeper | Role::Reviewer => Some(REVIEW),
    }
}

/// The same where reproductions are run.
pub fn schema_with_reproductions(role: Role) -> Option<&'static str> {
    match role {
        Role::Explorer | Role::Maker | Role::Creator => schema_for(role),
        Role::Gatekeeper | Role::Reviewer => Some(VERIFIED),
    }
}

/// What an answer may leave out: it was given the schema that does not ask for it.
const OPTIONAL: &str = "reproduction";

/// The Markdown of an answer in JSON, or what keeps it from fitting the role's schema.
pub fn render(role: Role, text: &str) -> Result<String, String> {
    let schema = schema_with_reproductions(role).and_then(json::parse).ok_or("this role answers in prose")?;
    let value = json::parse(text).ok_or("it is not JSON")?;
    fits(&schema, &value, "the answer")?;
    let value = Form(&value);
    Ok(match role {
        Role::Creator => proposal(value),
        Role::Explorer | Role::Maker | Role::Gatekeeper | Role::Reviewer => reviewed(value),
    })
}

// The check.

/// Holds a value against as much of JSON Schema as ours use.
fn fits(schema: &Json, value: &Json, at: &str) -> Result<(), String> {
    let wanted = schema.get("type").and_then(Json::scalar).unwrap_or_default();
    match (wanted, value) {
        ("object", Json::Map(entries)) => object_fits(schema, value, entries, at),
        ("array", Json::List(items)) => {
            let each = schema.get("items").unwrap_or(&Json::Null);
            let mut items = items.iter().enumerate();
            items.try_for_each(|(n, item)| fits(each, item, &format!("{at}[{n}]")))
        }
        ("number", Json::Number(_)) | ("boolean", Json::Bool(_)) => Ok(()),
        ("string", Json::Text(text)) => match schema.get("enum") {
            Some(Json::List(allowed)) if !allowed.contains(value) => {
                Err(format!("{at} is {:?}", cap(text, 40)))
            }
            _ => Ok(()),
        },
        _ => Err(format!("{at} is no {wanted}")),
    }
}

fn object_fits(schema: &Json, value: &Json, entries: &[(String, Json)], at: &str) -> Result<(), String> {
    let known = match schema.get("properties") {
        Some(Json::Map(known)) => known.as_slice(),
        _ => &[],
    };
    if let Some((stranger, _)) =
        entries.iter().find(|(name, _)| !known.iter().any(|(known, _)| known == name))
    {
        return Err(format!("{at} has an unknown field {:?}", cap(stranger, 40)));
    }
    known.iter().try_for_each(|(name, schema)| match value.get(name) {
        None if name == OPTIONAL => Ok(()),
        None => Err(format!("{at} has no {name}")),
        Some(value) => fits(schema, value, &format!("{at}.{name}")),
    })
}

/// A value that fits its schema.
#[derive(Clone, Copy)]
struct Form<'a>(&'a Json);

impl<'a> Form<'a> {
    fn text(self, name: &str) -> &'a str {
        self.0.get(name).and_then(Json::scalar).unwrap_or_default()
    }

    fn list(self, name: &str) -> &'a [Json] {
        match self.0.get(name) {
            Some(Json::List(items)) => items,
            _ => &[],
        }
    }

    fn each(self, name: &str) -> impl Iterator<Item = Form<'a>> {
        self.list(name).iter().map(Form)
    }
}

// The review.

fn reviewed(form: Form<'_>) -> String {
    let mut page = String::new();
    let findings = form.list("findings");
    let _ = write!(page, "VERDICT: {}\nFINDINGS: {}\n", form.text("verdict"), findings.len());
    if !findings.is_empty() {
        page.push_str(
            "\n| Location | Severity | Category | Description | Fix | Evidence |\n|---|---|---|---|---|---|\n",
        );
    }
    for finding in form.each("findings") {
        for field in ["location", "severity", "category", "description", "fix", "evidence"] {
            let _ = write!(page, "| {} ", cell(finding.text(field)));
        }
        page.push_str("|\n");
    }
    reproductions(&mut page, form);
    close(&mut page, form, &|line| speaks_of_findings(line).then(|| quoted(line)));
    page
}

fn reproductions(page: &mut String, form: Form<'_>) {
    let mut entries = String::new();
    for (number, finding) in (1..).zip(form.each("findings")) {
        let Some(tried) = finding.0.get(OPTIONAL).map(Form) else { continue };
        let (command, files) = (tried.text("command"), tried.list("files"));
        if command.trim().is_empty() && files.is_empty() {
            continue;
        }
        let new = if tried.0.get("about_new_code") == Some(&Json::Bool(true)) { " (new)" } else { "" };
        let _ = write!(entries, "\n### Finding {number}{new}\n");
        shown(&mut entries, "sh", command);
        for file in tried.each("files") {
            // An empty path is still passed on, so that it can be refused.
            let path = Some(one_line(file.text("path"))).filter(|path| !path.is_empty());
            let info = format!("text {}", path.as_deref().unwrap_or("\"\""));
            shown(&mut entries, &info, file.text("content"));
        }
    }
    if !entries.is_empty() {
        section(page, "Reproductions", &entries);
    }
}

/// A fence that nothing in the text closes.
fn shown(page: &mut String, info: &str, text: &str) {
    let longest = text.split(|c| c != '~').map(str::len).max().unwrap_or(0);
    let fence = "~".repeat(longest.max(2) + 1);
    let between = if text.is_empty() || text.ends_with(['\n', '\r']) { "" } else { "\n" };
    let _ = write!(page, "\n{fence}{info}\n{text}{between}{fence}\n");
}

/// Whether the reader of reviews could take this line for more than a remark.
fn speaks_of_findings(line: &TextLine<'_>) -> bool {
    !matches!(line.kind, LineKind::Plain | LineKind::Blank)
        || sections::heading(line).is_some()
        || status::looks_like_one(line.text)
        || review::is_control(line.text)
        || table::is_row(line.text)
        || naming::names(line.text)
        || label(line.text).is_some()
        || opening(line.text.trim(), &[]).is_some()
}

/// One cell of a row: on one line, with its pipes escaped.
fn cell(text: &str) -> String {
    one_line(text).replace('|', "\\|")
}

// The proposal.

fn proposal(form: Form<'_>) -> String {
    let mut page = String::new();
    let reflection = form.text("mini_reflection");
    if !reflection.trim().is_empty() {
        section(&mut page, "Mini-reflection", &prose(reflection, &kept_apart));
    }
    section(&mut page, "Architecture", &prose(form.text("architecture"), &kept_apart));
    let files = form.each("files").map(|file| about(&path(file.text("path")), file.text("work")));
    section(&mut page, "Files", &items(files));
    let alternatives = form.each("alternatives").map(|other| {
        format!("{}: rejected, {}", one_line(other.text("option")), one_line(other.text("rejected_because")))
    });
    section(&mut page, "Alternatives", &items(alternatives));
    let tests = form.list("test_strategy").iter().filter_map(Json::scalar).map(one_line);
    section(&mut page, "Test strategy", &items(tests));
    section(&mut page, "Confidence", &scores(Form(form.0.get("confidence").unwrap_or(&Json::Null))));
    let risks = form.each("risks").map(|risk| {
        format!("{} Mitigation: {}", one_line(risk.text("risk")), one_line(risk.text("mitigation")))
    });
    section(&mut page, "Risks", &items(risks));
    let prior = form.each("prior_issues").map(|prior| {
        format!(
            "{}: {}, {}",
            one_line(prior.text("issue")),
            prior.text("outcome"),
            one_line(prior.text("why"))
        )
    });
    if !form.list("prior_issues").is_empty() {
        section(&mut page, "Prior issues", &items(prior));
    }
    close(&mut page, form, &kept_apart);
    page
}

fn section(page: &mut String, heading: &str, body: &str) {
    let between = if page.is_empty() { "" } else { "\n" };
    let _ = write!(page, "{between}## {heading}\n{body}");
}

fn scores(confidence: Form<'_>) -> String {
    let mut rows = "| Axis | Score |\n|---|---|\n".to_owned();
    for (axis, name) in [
        ("Task understanding", "task_understanding"),
        ("Solution completeness", "solution_completeness"),
        ("Risk coverage", "risk_coverage"),
    ] {
        let _ = writeln!(rows, "| {axis} | {} |", confidence.text(name));
    }
    rows
}

/// A path is alone in code marks.
fn path(text: &str) -> String {
    let text = one_line(text).replace('`', "");
    if text.is_empty() { text } else { format!("`{text}`") }
}

fn about(path: &str, work: &str) -> String {
    let work = one_line(work);
    if path.is_empty() || work.is_empty() { format!("{path}{work}") } else { format!("{path}: {work}") }
}

/// A list. Nothing in an item divides cells or begins something of its own.
fn items(texts: impl Iterator<Item = String>) -> String {
    let mut list = String::new();
    for text in texts.filter(|text| !text.is_empty()) {
        let text = text.replace('|', "\\|");
        let begins = [">", "<!--", "```", "~~~"].iter().any(|mark| text.starts_with(mark));
        let _ = writeln!(list, "- {}{text}", if begins { "\\" } else { "" });
    }
    if list.is_empty() { "None.\n".to_owned() } else { list }
}

/// What becomes of a line in a proposal's prose that could be taken for one of its parts: a known heading and a status
/// are quoted, other headings go below ours.
fn kept_apart(line: &TextLine<'_>) -> Option<String> {
    let is_status = line.kind == LineKind::Plain && status::looks_like_one(line.text);
    if line.kind == LineKind::Comment || is_status {
        return Some(quoted(line));
    }
    let (level, title) = sections::heading(line)?;
    let title = sections::unnumber(title);
    let ours = HEADINGS.iter().chain(&OTHERS);
    let known = ours
        .into_iter()
        .any(|name| title.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name)));
    match level {
        _ if known => Some(quoted(line)),
        1 | 2 => Some(format!("### {title}")),
        _ => None,
    }
}

/// Beginnings of the headings that mean something beside those a proposal must have.
const OTHERS: [&str; 7] =
    ["Prior issues", "Mini-reflection", "Concern", "Question", "Open question", "Need", "Block"];

// Both.

/// The remark below the heading its status has, and the status.
fn close(page: &mut String, form: Form<'_>, instead: &dyn Fn(&TextLine<'_>) -> Option<String>) {
    let (remark, status) = (form.text("remark"), form.text("status"));
    if !remark.trim().is_empty() {
        let heading = match status {
            "DONE_WITH_CONCERNS" => "Concerns",
            "NEEDS_CONTEXT" => "Questions",
            "BLOCKED" => "Blockers",
            _ => "Notes",
        };
        section(page, heading, &prose(remark, instead));
    }
    let _ = write!(page, "\nSTATUS: {status}\n");
}

/// Several lines, with something else in place of those that must not be read as more than content. A fence that is
/// never closed would swallow what follows and is quoted to its end.
fn prose(text: &str, instead: &dyn Fn(&TextLine<'_>) -> Option<String>) -> String {
    let lines = scan(text.trim());
    let in_fence = lines.last().is_some_and(|last| matches!(last.kind, LineKind::Open | LineKind::Fenced));
    let open = lines.iter().rposition(|line| line.kind == LineKind::Open).filter(|_| in_fence);
    let mut out = String::with_capacity(text.len() + 16);
    for (at, line) in lines.iter().enumerate() {
        let swallowed = open.is_some_and(|open| at >= open).then(|| quoted(line));
        let replaced = swallowed.or_else(|| instead(line));
        let _ = writeln!(out, "{}", replaced.as_deref().unwrap_or(line.text));
    }
    out
}

fn quoted(line: &TextLine<'_>) -> String {
    format!("> {}", line.text)
}

fn one_line(text: &str) -> String {
    let text = text.trim();
    if text.contains(['\n', '\r']) {
        return text
            .split(['\n', '\r'])
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect::<Vec<_>>()
            .join(" ");
    }
    text.to_owned()
}
