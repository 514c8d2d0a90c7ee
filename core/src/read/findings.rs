//! Findings in the forms reviewers write them: a table, a heading, a block of labels, a list item, JSON in a fence.
//!
//! Every row that is seen is either accepted whole or reported as a problem, and so is every line that names a severity
//! (see [`super::naming`]) without becoming part of a finding. A finding states its location, severity, category and
//! description; a table has a column for the fix as well.

use super::Problems;
use super::draft::{Draft, FindingField};
use super::heads::{fill, label, opening, unprefixed};
use super::json::{self, Json};
use super::lines::{self, LineKind, TextLine};
use super::naming;
use super::review;
use super::sections;
use super::status;
use super::table;
use super::text::{is_none, plain, unbullet};
use crate::event::fitting;
use crate::model::{Finding, Severity, Verdict};

const MAX_FINDINGS: usize = 500;

/// The most that are read, to find the most severe among them.
const MAX_READ: usize = 20_000;

/// What JSON that means to be findings holds.
const SEVERITY_KEY: &str = "\"severity\"";

pub(crate) struct ParsedFindings {
    pub findings: Vec<Finding>,
    /// Also those beyond the bound.
    pub accepted: usize,
    /// Verdicts in JSON beside findings, with their lines.
    pub verdicts: Vec<(usize, Option<Verdict>)>,
}

pub(crate) fn findings(
    source: &str,
    lines: &[TextLine],
    categories: &[String],
    problems: &mut Problems,
) -> ParsedFindings {
    let found = ParsedFindings { findings: Vec::new(), accepted: 0, verdicts: Vec::new() };
    let mut reader =
        Reader { source, lines, categories, problems, found, rejected: 0, title: String::new(), group: None };
    let mut at = 0;
    while at < lines.len() {
        // Every step goes forward, whatever it made of the line.
        at = reader.step(at).max(at + 1);
    }
    reader.leave_group();
    reader.found
}

/// Leaves out what is too much for a line of the log, and returns how many that are.
pub(crate) fn keep_the_gravest(found: &mut Vec<Finding>, accepted: usize) -> usize {
    *found = fitting(std::mem::take(found), MAX_FINDINGS);
    accepted.saturating_sub(found.len())
}

/// A heading such as `Critical findings`, under which list items need no severity of their own.
struct Group {
    severity: Severity,
    line: usize,
    end: usize,
    rows_before: usize,
}

/// How a finding in several lines begins, which decides where it ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Heading,
    Item { indent: u32 },
    Line,
    Labels,
}

struct Reader<'r, 'a> {
    source: &'r str,
    lines: &'r [TextLine<'a>],
    /// Beside the built-in ones.
    categories: &'r [String],
    problems: &'r mut Problems,
    found: ParsedFindings,
    rejected: usize,
    /// The last heading: what a block of labels without a description is about.
    title: String,
    group: Option<Group>,
}

impl<'r, 'a> Reader<'r, 'a> {
    fn step(&mut self, at: usize) -> usize {
        if self.group.as_ref().is_some_and(|group| at >= group.end) {
            self.leave_group();
        }
        let Some(line) = self.lines.get(at) else { return at };
        match line.kind {
            LineKind::Open => self.fence(at),
            LineKind::Plain => self.plain(at, line),
            LineKind::Indented => {
                self.note_shown_row(at, at + 1);
                at
            }
            LineKind::Comment => {
                self.note_naming(at);
                at
            }
            LineKind::Blank | LineKind::Fenced | LineKind::Close | LineKind::Quote | LineKind::Diff => at,
        }
    }

    fn plain(&mut self, at: usize, line: &TextLine<'a>) -> usize {
        if status::looks_like_one(line.text) || review::is_control(line.text) {
            return at;
        }
        if table::is_row(line.text) {
            return self.rows(at, line);
        }
        if label(line.text).is_some() {
            return self.block(at, Draft::default(), Form::Labels);
        }
        if let Some((level, title)) = sections::heading(line) {
            return self.heading(at, level, title);
        }
        let text = unprefixed(unbullet(line.text.trim()));
        let listed = text.len() < line.text.trim().len();
        let form = if listed { Form::Item { indent: line.indent } } else { Form::Line };
        if let Some(draft) = opening(text, self.categories) {
            return self.block(at, draft, form);
        }
        if let Some(group) = self.group.as_ref().filter(|_| listed && !is_none(text)) {
            let mut draft = Draft::of(group.severity);
            fill(&mut draft, text, self.categories);
            return self.block(at, draft, form);
        }
        self.note_naming(at);
        at
    }

    // Tables.

    fn rows(&mut self, at: usize, line: &TextLine<'a>) -> usize {
        let header = table::cells(line.text, None);
        if let Some(columns) = columns(&header) {
            return self.table(at, &columns);
        }
        if table::begins(self.lines, at) {
            return self.other_table(at, header.len());
        }
        if naming::names(line.text) && !is_tally_row(&header) {
            self.unreadable(at);
        }
        at
    }

    fn table(&mut self, at: usize, columns: &[Option<FindingField>]) -> usize {
        let end = self.end_of_table(at);
        for (row, line) in self.lines.iter().enumerate().take(end).skip(at + 1) {
            if table::is_rule(line.text) {
                continue;
            }
            let cells = table::cells(line.text, Some(columns.len()));
            let repeated = self::columns(&cells).is_some_and(|again| again == columns);
            if repeated || cells.iter().all(|cell| is_none(cell)) {
                continue;
            }
            match draft_of_row(columns, &cells) {
                Ok(draft) => self.finish(row, draft),
                Err(problem) => self.reject(row, problem),
            }
        }
        end
    }

    fn end_of_table(&self, at: usize) -> usize {
        let rest = self.lines.iter().enumerate().skip(at + 1);
        let mut after = rest.filter(|(_, line)| line.kind != LineKind::Plain || !table::is_row(line.text));
        after.next().map_or(self.lines.len(), |(row, _)| row)
    }

    /// A table about something else. It may count findings; with four columns or more it may hold findings in words we
    /// do not know, which must not pass for none.
    fn other_table(&mut self, at: usize, width: usize) -> usize {
        let end = self.end_of_table(at);
        let mut holds_rows = false;
        for (row, line) in self.lines.iter().enumerate().take(end).skip(at) {
            let cells = table::cells(line.text, Some(width));
            if is_tally_row(&cells) || table::is_rule(line.text) {
                continue;
            }
            holds_rows |= row > at && !cells.iter().all(|cell| is_none(cell));
            if cells.iter().any(|cell| naming::severity(cell).is_some()) {
                self.unreadable(row);
            }
        }
        if width >= 4 && holds_rows {
            self.problems.at(at, "a table whose columns are not those of findings");
        }
        end
    }

    // Everything that is not a table.

    fn heading(&mut self, at: usize, level: usize, title: &str) -> usize {
        let title = unprefixed(sections::unnumber(title));
        let next = self.next_text_line(at + 1).filter(|line| line.kind == LineKind::Plain);
        let labelled =
            next.and_then(|line| label(line.text)).is_some_and(|(field, _)| field != FindingField::Severity);
        if let Some(severity) = naming::over_group(title) {
            if labelled {
                return self.block(at, Draft::of(severity), Form::Heading);
            }
            if !naming::leading(title).is_some_and(|lead| naming::is_tally(lead.rest)) && !counts_none(title)
            {
                self.leave_group();
                let end = sections::end_of(self.lines, at, level);
                let rows_before = self.found.accepted + self.rejected;
                self.group = Some(Group { severity, line: at, end, rows_before });
            }
            return at;
        }
        if let Some(draft) = opening(title, self.categories) {
            return self.block(at, draft, Form::Heading);
        }
        self.title = plain(title);
        self.note_naming(at);
        at
    }

    /// A group has to have held what its heading promised: findings, or the word none.
    fn leave_group(&mut self) {
        let Some(group) = self.group.take() else { return };
        let body = self.lines.get(group.line + 1..group.end).unwrap_or(&[]);
        let about_all = |line: &&TextLine| status::looks_like_one(line.text) || review::is_control(line.text);
        let mut body = body.iter().filter(|line| line.kind != LineKind::Blank && !about_all(line)).peekable();
        let rows = self.found.accepted + self.rejected - group.rows_before;
        if rows == 0 && (body.peek().is_none() || body.any(|line| !is_none(unbullet(line.text.trim())))) {
            self.unreadable(group.line);
        }
    }

    fn next_text_line(&self, at: usize) -> Option<&TextLine<'a>> {
        self.lines.iter().skip(at).find(|line| line.kind != LineKind::Blank)
    }

    /// Reads a finding that continues below its first line. Returns the line it ends at.
    fn block(&mut self, start: usize, mut draft: Draft, form: Form) -> usize {
        let mut at = if form == Form::Labels { start } else { start + 1 };
        while let Some(line) = self.lines.get(at) {
            let goes_on = match line.kind {
                LineKind::Blank => {
                    let Some(next) = (at..self.lines.len()).find(|i| self.kind(*i) != Some(LineKind::Blank))
                    else {
                        break;
                    };
                    at = next;
                    self.resumes(next, &draft, form)
                }
                LineKind::Plain => self.take(at, line, &mut draft, form),
                LineKind::Open if self.holds_findings(at) => false,
                LineKind::Open
                | LineKind::Fenced
                | LineKind::Close
                | LineKind::Quote
                | LineKind::Indented
                | LineKind::Diff => {
                    draft.more(line.text.trim_end());
                    at += 1;
                    continue;
                }
                LineKind::Comment => {
                    self.note_naming(at);
                    true
                }
            };
            if !goes_on {
                break;
            }
            if line.kind != LineKind::Blank {
                at += 1;
            }
        }
        self.close(start, draft, form);
        at
    }

    fn kind(&self, at: usize) -> Option<LineKind> {
        self.lines.get(at).map(|line| line.kind)
    }

    /// Whether a finding continues at this line, after blank ones.
    fn resumes(&self, at: usize, draft: &Draft, form: Form) -> bool {
        let Some(line) = self.lines.get(at) else { return false };
        let labelled = line.kind == LineKind::Plain && label(line.text).is_some();
        let shown = line.kind == LineKind::Open
            && matches!(draft.current, Some(FindingField::Evidence | FindingField::Fix));
        match form {
            Form::Heading => true,
            Form::Item { indent } => line.indent > indent,
            Form::Line | Form::Labels => labelled || shown,
        }
    }

    /// Adds a line to a finding; `false` if it belongs to something else.
    fn take(&mut self, at: usize, line: &TextLine<'a>, draft: &mut Draft, form: Form) -> bool {
        let text = line.text.trim();
        let starts_other = status::looks_like_one(line.text)
            || review::is_control(line.text)
            || is_break(text)
            || text.starts_with('#') && sections::heading(line).is_some()
            || table::is_row(line.text) && self.is_table(at, line);
        if starts_other {
            return false;
        }
        if let Some((field, value)) = label(line.text) {
            return add_label(draft, form, field, value);
        }
        let inner = unbullet(text);
        let listed = inner.len() < text.len();
        let sibling = matches!(form, Form::Item { indent } if listed && line.indent <= indent);
        if sibling || opening(unprefixed(inner), self.categories).is_some() {
            return false;
        }
        draft.more(inner);
        true
    }

    fn is_table(&self, at: usize, line: &TextLine<'a>) -> bool {
        let cells = table::cells(line.text, None);
        let severe = cells.iter().any(|cell| naming::severity(cell).is_some());
        severe || columns(&cells).is_some() || table::begins(self.lines, at)
    }

    /// Whether the fence that opens here is findings in JSON, which are no part of the finding above them.
    fn holds_findings(&self, at: usize) -> bool {
        let is_json = self.lines.get(at).is_some_and(|open| lines::info(open.text) == "json");
        is_json && self.fenced(at).any(|(_, line)| line.text.contains(SEVERITY_KEY))
    }

    fn close(&mut self, start: usize, mut draft: Draft, form: Form) {
        if form == Form::Labels {
            if draft.get(FindingField::Description).is_empty() && !self.title.is_empty() {
                let title = std::mem::take(&mut self.title);
                draft.add(FindingField::Description, &title);
            }
            if draft.severity.is_none() && draft.unclear.is_none() {
                draft.severity = self.group.as_ref().map(|group| group.severity);
            }
            let placed = !draft.get(FindingField::Location).is_empty()
                && !draft.get(FindingField::Category).is_empty();
            if draft.severity.is_none() && draft.unclear.is_none() {
                if placed {
                    self.reject(start, "a finding without a severity".to_owned());
                }
                return;
            }
        }
        self.finish(start, draft);
    }

    // Fences.

    fn fence(&mut self, at: usize) -> usize {
        let info = self.lines.get(at).map_or_else(String::new, |line| lines::info(line.text));
        let end = self.fenced(at).last().map_or(at, |(row, _)| row) + 1;
        match info.as_str() {
            "json" => self.json(at),
            "" | "md" | "markdown" | "text" | "txt" | "plaintext" => self.note_shown_row(at, end),
            _ => {}
        }
        end
    }

    fn fenced(&self, open: usize) -> impl Iterator<Item = (usize, &'r TextLine<'a>)> + use<'r, 'a> {
        self.lines.iter().enumerate().skip(open + 1).take_while(|(_, line)| line.kind == LineKind::Fenced)
    }

    /// A table that is merely shown is not read. If it looks like one of findings the reviewer may have meant it.
    fn note_shown_row(&mut self, start: usize, end: usize) {
        let shown = self.lines.iter().enumerate().take(end).skip(start).find(|(_, line)| {
            let text = line.text.trim();
            let row = text.starts_with('|') && naming::names(text) && table::cells(text, None).len() >= 4;
            row || text.contains(SEVERITY_KEY)
        });
        if let Some((row, _)) = shown {
            self.problems.at(row, "findings shown as code are not read");
        }
    }

    fn json(&mut self, at: usize) {
        let text: String = self.fenced(at).flat_map(|(_, line)| [line.text, "\n"]).collect();
        let value = json::parse(&text);
        if let Some((verdict, items)) = value.as_ref().and_then(findings_in) {
            self.found.verdicts.extend(verdict.map(|said| (at, verdict_of(said))));
            for item in items {
                self.finish(at, draft_of_json(item));
            }
        } else if text.contains(SEVERITY_KEY) {
            self.reject(at, "JSON that could not be read".to_owned());
        }
    }

    // What becomes of a row.

    fn finish(&mut self, line: usize, draft: Draft) {
        match draft.into_finding(self.source) {
            Ok(finding) => {
                self.found.accepted += 1;
                if self.found.findings.len() < MAX_READ {
                    self.found.findings.push(finding);
                }
            }
            Err(problem) => self.reject(line, problem),
        }
    }

    fn reject(&mut self, line: usize, problem: String) {
        self.rejected += 1;
        self.problems.at(line, problem);
    }

    fn note_naming(&mut self, at: usize) {
        if self.lines.get(at).is_some_and(|line| naming::names(line.text)) {
            self.unreadable(at);
        }
    }

    fn unreadable(&mut self, line: usize) {
        self.reject(line, "names a severity but could not be read as a finding".to_owned());
    }
}

/// The columns of a header of findings: it has a severity, and a location or a description.
fn columns(header: &[String]) -> Option<Vec<Option<FindingField>>> {
    if header.len() > 32 || header.len() < 2 {
        return None;
    }
    let columns: Vec<_> =
        header.iter().map(|cell| FindingField::of_column(&plain(cell).to_lowercase())).collect();
    let has = |field| columns.contains(&Some(field));
    (has(FindingField::Severity) && (has(FindingField::Location) || has(FindingField::Description)))
        .then_some(columns)
}

fn draft_of_row(columns: &[Option<FindingField>], cells: &[String]) -> Result<Draft, String> {
    if cells.len() > columns.len() {
        return Err(format!("a row of {} cells under {} columns", cells.len(), columns.len()));
    }
    let required = [
        FindingField::Location,
        FindingField::Severity,
        FindingField::Category,
        FindingField::Description,
        FindingField::Fix,
    ];
    for field in required {
        let column = columns.iter().position(|column| *column == Some(field));
        if column.is_none_or(|column| column >= cells.len()) {
            return Err(format!("a row without a {}", field.name()));
        }
    }
    let mut draft = Draft::default();
    for (column, cell) in columns.iter().zip(cells) {
        match column {
            Some(FindingField::Severity) => draft.set_severity(cell),
            Some(field) => draft.add(*field, cell),
            None => {}
        }
    }
    Ok(draft)
}

/// A row that only counts: severities beside numbers, or nothing but severities.
fn is_tally_row(cells: &[String]) -> bool {
    let counts = |cell: &String| is_none(cell) || cell.bytes().all(|b| b.is_ascii_digit() || b == b'*');
    let total =
        |cell: &String| ["total", "count", "severity"].iter().any(|word| cell.eq_ignore_ascii_case(word));
    let severities = cells.iter().filter(|cell| naming::severity(cell).is_some()).count();
    let others = cells.len() - severities;
    let rest = || cells.iter().filter(|cell| naming::severity(cell).is_none());
    severities == 1 && others > 0 && rest().all(counts)
        || severities > 1 && rest().all(|c| counts(c) || total(c))
}

/// `Critical (0)` and `Warnings: none` promise nothing.
fn counts_none(title: &str) -> bool {
    let last = title.split(|c: char| !c.is_alphanumeric()).rfind(|word| !word.is_empty());
    last.is_some_and(|word| word == "0" || word.eq_ignore_ascii_case("none"))
}

/// The findings in a list, in an object with a verdict, or alone.
fn findings_in(value: &Json) -> Option<(Option<&Json>, &[Json])> {
    let list = match value {
        Json::List(items) => items.as_slice(),
        Json::Map(_) => match value.get("findings") {
            Some(Json::List(items)) => return Some((value.get("verdict"), items)),
            Some(_) => return None,
            None => std::slice::from_ref(value),
        },
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::Text(_) => return None,
    };
    list.iter().any(|item| item.get("severity").is_some()).then_some((None, list))
}

fn draft_of_json(item: &Json) -> Draft {
    let mut draft = Draft::default();
    let Json::Map(entries) = item else { return draft };
    for (key, value) in entries {
        let (Some(field), Some(text)) = (FindingField::of_column(&key.to_lowercase()), value.scalar()) else {
            continue;
        };
        match field {
            FindingField::Severity => draft.set_severity(text),
            FindingField::Location
            | FindingField::Line
            | FindingField::Category
            | FindingField::Description
            | FindingField::Fix
            | FindingField::Evidence => {
                draft.add(field, text.trim());
            }
        }
    }
    draft
}

fn verdict_of(said: &Json) -> Option<Verdict> {
    match said.scalar() {
        Some("APPROVED") => Some(Verdict::Approved),
        Some("REJECTED") => Some(Verdict::Rejected),
        _ => None,
    }
}

/// Adds a labelled line. `false`: the label begins the next finding.
fn add_label(draft: &mut Draft, form: Form, field: FindingField, value: &str) -> bool {
    if field == FindingField::Severity {
        let repeated = draft.fields.contains_key(&FindingField::Severity);
        if !repeated {
            draft.set_severity(value);
            draft.add(FindingField::Severity, value);
        }
        return !repeated;
    }
    if form == Form::Labels
        && field == FindingField::Location
        && !draft.get(FindingField::Location).is_empty()
    {
        return false;
    }
    draft.add(field, value);
    true
}

/// A thematic break.
fn is_break(text: &str) -> bool {
    text.len() >= 3 && ['-', '*', '_'].iter().any(|mark| text.chars().all(|c| c == *mark || c == ' '))
}
