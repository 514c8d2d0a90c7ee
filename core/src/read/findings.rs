//! Findings in the forms reviewers write them: a table, a heading, a block of labels, a list item, JSON in a fence.
//!
//! Every row that is seen is either accepted whole or reported as a problem, and so is every line that names a severity
//! (see [`super::naming`]) without becoming part of a finding. A finding states its location, severity, category and
//! description; a table has a column for the fix as well.

use std::collections::BTreeMap;

use super::Problems;
use super::json::{self, Json};
use super::lines::{self, Kind, Line};
use super::naming;
use super::place;
use super::review;
use super::sections;
use super::status;
use super::table;
use super::text::{cap, head, is_dash, is_emoji, is_markup, is_none, plain, tail, unbullet};
use crate::words::{CATEGORIES, Finding, Flaw, Severity, Verdict};

const MAX_FINDINGS: usize = 500;
const MAX_CELL: usize = 4000;

pub(crate) struct Found {
    pub findings: Vec<Finding>,
    /// Also those beyond the bound.
    pub accepted: usize,
    /// Said in JSON beside findings, with their lines.
    pub verdicts: Vec<(usize, Option<Verdict>)>,
}

pub(crate) fn findings(source: &str, lines: &[Line], problems: &mut Problems) -> Found {
    let found = Found { findings: Vec::new(), accepted: 0, verdicts: Vec::new() };
    let mut reader =
        Reader { source, lines, problems, found, rejected: 0, title: String::new(), group: None };
    let mut at = 0;
    while at < lines.len() {
        // Every step goes forward, whatever it made of the line.
        at = reader.step(at).max(at + 1);
    }
    reader.leave_group();
    let left_out = reader.found.accepted.saturating_sub(MAX_FINDINGS);
    if left_out > 0 {
        reader.problems.note(format!("{left_out} findings left out: only the first {MAX_FINDINGS} are kept"));
    }
    reader.found
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Field {
    Location,
    Line,
    Severity,
    Category,
    Description,
    Fix,
    Evidence,
}

impl Field {
    fn name(self) -> &'static str {
        match self {
            Field::Location => "location",
            Field::Line => "line",
            Field::Severity => "severity",
            Field::Category => "category",
            Field::Description => "description",
            Field::Fix => "fix",
            Field::Evidence => "evidence",
        }
    }

    /// The column or the key of this name.
    fn of_column(name: &str) -> Option<Field> {
        Some(match name {
            "location" | "file" | "files" | "file:line" | "file/line" | "where" | "path" | "place" => {
                Field::Location
            }
            "line" | "lines" => Field::Line,
            "severity" | "sev" => Field::Severity,
            "category" | "type" => Field::Category,
            "description" | "issue" | "finding" | "problem" | "details" | "title" | "message" => {
                Field::Description
            }
            "fix" | "suggestion" | "suggested fix" | "recommendation" | "recommended fix"
            | "proposed fix" | "suggested_fix" | "remedy" => Field::Fix,
            "evidence" | "proof" | "reproduction" | "reproduction steps" | "repro" | "steps" => {
                Field::Evidence
            }
            _ => return None,
        })
    }

    /// The label of this name. Fewer than columns: in running text more words mean something else.
    fn of_label(name: &str) -> Option<Field> {
        match name {
            "type" | "title" | "message" | "details" | "steps" | "line" | "lines" | "files" | "sev" => None,
            "impact" => Some(Field::Description),
            "steps to reproduce" => Some(Field::Evidence),
            _ => Field::of_column(name),
        }
    }
}

/// A finding while it is being collected.
#[derive(Default)]
struct Draft {
    fields: BTreeMap<Field, String>,
    severity: Option<Severity>,
    /// What later lines add to.
    current: Option<Field>,
    /// A severity that is none, or a second one.
    unclear: Option<String>,
}

impl Draft {
    fn of(severity: Severity) -> Draft {
        Draft { severity: Some(severity), ..Draft::default() }
    }

    fn get(&self, field: Field) -> &str {
        self.fields.get(&field).map_or("", String::as_str)
    }

    fn add(&mut self, field: Field, text: &str) {
        let value = self.fields.entry(field).or_default();
        if !value.is_empty() && !text.is_empty() {
            value.push_str(if field == Field::Location { ", " } else { "\n" });
        }
        value.push_str(text);
        self.current = Some(field);
    }

    fn more(&mut self, text: &str) {
        let field =
            self.current.filter(|f| !matches!(f, Field::Location | Field::Category | Field::Severity));
        self.add(field.unwrap_or(Field::Description), text);
    }

    fn set_severity(&mut self, text: &str) {
        match (naming::severity(text), self.severity) {
            (None, _) => self.unclear = Some(unknown_severity(text)),
            (Some(said), Some(before)) if said != before => {
                self.unclear = Some(format!("severity {} and {}", before.name(), said.name()));
            }
            (Some(said), _) => self.severity = Some(said),
        }
        self.current = Some(Field::Severity);
    }
}

fn unknown_severity(text: &str) -> String {
    format!("unknown severity {:?}", cap(text, 40))
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
    lines: &'r [Line<'a>],
    problems: &'r mut Problems,
    found: Found,
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
            Kind::Open => self.fence(at),
            Kind::Plain => self.plain(at, line),
            Kind::Indented => {
                self.note_shown_row(at, at + 1);
                at
            }
            Kind::Comment => {
                self.note_naming(at);
                at
            }
            Kind::Blank | Kind::Fenced | Kind::Close | Kind::Quote | Kind::Diff => at,
        }
    }

    fn plain(&mut self, at: usize, line: &Line<'a>) -> usize {
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
        if let Some(draft) = opening(text) {
            return self.block(at, draft, form);
        }
        if let Some(group) = self.group.as_ref().filter(|_| listed && !is_none(text)) {
            let mut draft = Draft::of(group.severity);
            fill(&mut draft, text);
            return self.block(at, draft, form);
        }
        self.note_naming(at);
        at
    }

    // Tables.

    fn rows(&mut self, at: usize, line: &Line<'a>) -> usize {
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

    fn table(&mut self, at: usize, columns: &[Option<Field>]) -> usize {
        let end = self.end_of_table(at);
        for (row, line) in (0..).zip(self.lines).take(end).skip(at + 1) {
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
        let mut after = rest.filter(|(_, line)| line.kind != Kind::Plain || !table::is_row(line.text));
        after.next().map_or(self.lines.len(), |(row, _)| row)
    }

    /// A table about something else. It may count findings; with four columns or more it may hold findings in words we
    /// do not know, which must not pass for none.
    fn other_table(&mut self, at: usize, width: usize) -> usize {
        let end = self.end_of_table(at);
        let mut holds_rows = false;
        for (row, line) in (0..).zip(self.lines).take(end).skip(at) {
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
        let next = self.next_said(at + 1).filter(|line| line.kind == Kind::Plain);
        let labelled =
            next.and_then(|line| label(line.text)).is_some_and(|(field, _)| field != Field::Severity);
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
        if let Some(draft) = opening(title) {
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
        let about_all = |line: &&Line| status::looks_like_one(line.text) || review::is_control(line.text);
        let mut body = body.iter().filter(|line| line.kind != Kind::Blank && !about_all(line)).peekable();
        let rows = self.found.accepted + self.rejected - group.rows_before;
        if rows == 0 && (body.peek().is_none() || body.any(|line| !is_none(unbullet(line.text.trim())))) {
            self.unreadable(group.line);
        }
    }

    fn next_said(&self, at: usize) -> Option<&Line<'a>> {
        self.lines.iter().skip(at).find(|line| line.kind != Kind::Blank)
    }

    /// Reads a finding that goes on below its first line. Gives the line it ends at.
    fn block(&mut self, start: usize, mut draft: Draft, form: Form) -> usize {
        let mut at = if form == Form::Labels { start } else { start + 1 };
        while let Some(line) = self.lines.get(at) {
            let goes_on = match line.kind {
                Kind::Blank => {
                    let Some(next) = (at..self.lines.len()).find(|i| self.kind(*i) != Some(Kind::Blank))
                    else {
                        break;
                    };
                    at = next;
                    self.resumes(next, &draft, form)
                }
                Kind::Plain => self.take(at, line, &mut draft, form),
                Kind::Open if self.holds_findings(at) => false,
                Kind::Open | Kind::Fenced | Kind::Close | Kind::Quote | Kind::Indented | Kind::Diff => {
                    draft.more(line.text.trim_end());
                    at += 1;
                    continue;
                }
                Kind::Comment => {
                    self.note_naming(at);
                    true
                }
            };
            if !goes_on {
                break;
            }
            if line.kind != Kind::Blank {
                at += 1;
            }
        }
        self.close(start, draft, form);
        at
    }

    fn kind(&self, at: usize) -> Option<Kind> {
        self.lines.get(at).map(|line| line.kind)
    }

    /// Whether a finding goes on at this line, after blank ones.
    fn resumes(&self, at: usize, draft: &Draft, form: Form) -> bool {
        let Some(line) = self.lines.get(at) else { return false };
        let labelled = line.kind == Kind::Plain && label(line.text).is_some();
        let shown = line.kind == Kind::Open && matches!(draft.current, Some(Field::Evidence | Field::Fix));
        match form {
            Form::Heading => true,
            Form::Item { indent } => line.indent > indent,
            Form::Line | Form::Labels => labelled || shown,
        }
    }

    /// Adds a line to a finding, or says that it belongs to something else.
    fn take(&mut self, at: usize, line: &Line<'a>, draft: &mut Draft, form: Form) -> bool {
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
        if sibling || opening(unprefixed(inner)).is_some() {
            return false;
        }
        draft.more(inner);
        true
    }

    fn is_table(&self, at: usize, line: &Line<'a>) -> bool {
        let cells = table::cells(line.text, None);
        let severe = cells.iter().any(|cell| naming::severity(cell).is_some());
        severe || columns(&cells).is_some() || table::begins(self.lines, at)
    }

    /// Whether the fence that opens here is findings in JSON, which are no part of the finding above them.
    fn holds_findings(&self, at: usize) -> bool {
        let is_json = self.lines.get(at).is_some_and(|open| lines::info(open.text) == "json");
        is_json && self.fenced(at).any(|(_, line)| line.text.contains("\"severity\""))
    }

    fn close(&mut self, start: usize, mut draft: Draft, form: Form) {
        if form == Form::Labels {
            if draft.get(Field::Description).is_empty() && !self.title.is_empty() {
                let title = std::mem::take(&mut self.title);
                draft.add(Field::Description, &title);
            }
            if draft.severity.is_none() && draft.unclear.is_none() {
                draft.severity = self.group.as_ref().map(|group| group.severity);
            }
            let placed = !draft.get(Field::Location).is_empty() && !draft.get(Field::Category).is_empty();
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
            "json" => self.json(at, end),
            "" | "md" | "markdown" | "text" | "txt" | "plaintext" => self.note_shown_row(at, end),
            _ => {}
        }
        end
    }

    fn fenced(&self, open: usize) -> impl Iterator<Item = (usize, &'r Line<'a>)> + use<'r, 'a> {
        (0..).zip(self.lines).skip(open + 1).take_while(|(_, line)| line.kind == Kind::Fenced)
    }

    /// A table that is merely shown is not read. If it looks like one of findings the reviewer may have meant it.
    fn note_shown_row(&mut self, start: usize, end: usize) {
        let shown = (0..).zip(self.lines).take(end).skip(start).find(|(_, line)| {
            let text = line.text.trim();
            text.starts_with('|') && naming::names(text) && table::cells(text, None).len() >= 4
        });
        if let Some((row, _)) = shown {
            self.problems.at(row, "a findings table inside code is not read");
        }
    }

    fn json(&mut self, at: usize, end: usize) {
        let text: String = self.fenced(at).flat_map(|(_, line)| [line.text, "\n"]).collect();
        let value = json::parse(&text);
        let items = match &value {
            Some(Json::List(items)) => items,
            Some(map @ Json::Map(_)) => {
                let Some(Json::List(items)) = map.get("findings") else { return };
                if let Some(said) = map.get("verdict") {
                    self.found.verdicts.push((at, verdict_of(said)));
                }
                items
            }
            Some(Json::Null | Json::Bool(_) | Json::Number(_) | Json::Text(_)) => return,
            None => {
                if text.contains("\"severity\"")
                    || self.lines.get(at..end).is_some_and(|l| l.iter().any(|l| naming::names(l.text)))
                {
                    self.reject(at, "JSON that could not be read".to_owned());
                }
                return;
            }
        };
        let in_list = matches!(value, Some(Json::List(_)));
        if in_list && !items.iter().any(|item| item.get("severity").is_some()) {
            return;
        }
        for item in items {
            let draft = draft_of_json(item);
            self.finish(at, draft);
        }
    }

    // What becomes of a row.

    fn finish(&mut self, line: usize, mut draft: Draft) {
        if let Some(problem) = draft.unclear.take() {
            return self.reject(line, problem);
        }
        let Some(severity) = draft.severity else {
            return self.reject(line, "a finding without a severity".to_owned());
        };
        if draft.get(Field::Location).is_empty() {
            let place = draft
                .get(Field::Description)
                .split_whitespace()
                .find(|word| place::mention(word.trim_matches('`')).is_some());
            let place = place.map(|word| {
                word.trim_matches(|c| is_markup(c) || matches!(c, '(' | ')' | ',' | '.' | ':')).to_owned()
            });
            draft.add(Field::Location, &place.unwrap_or_default());
        }
        for field in [Field::Location, Field::Category, Field::Description] {
            let value = draft.get(field);
            if value.trim().is_empty() || field == Field::Category && is_none(value) {
                return self
                    .reject(line, format!("a {} finding without a {}", severity.name(), field.name()));
            }
        }
        self.accept(severity, &draft);
    }

    fn accept(&mut self, severity: Severity, draft: &Draft) {
        self.found.accepted += 1;
        if self.found.findings.len() >= MAX_FINDINGS {
            return;
        }
        let value = |field| cap(draft.get(field), MAX_CELL);
        let stated = |field| {
            Some(value(field)).filter(|text| text.chars().any(char::is_alphanumeric)).unwrap_or_default()
        };
        let mut location = value(Field::Location);
        let line_column = draft.get(Field::Line);
        if !line_column.is_empty() && !is_none(line_column) && place::place(&location).1 == 0 {
            location = format!("{}:{line_column}", location.trim_matches('`'));
        }
        let (file, line) = place::place(&location);
        let (category, flaw) = category(draft.get(Field::Category));
        let (description, evidence) = (value(Field::Description), stated(Field::Evidence));
        let citations = place::citations(&file, line, &description, &evidence);
        self.found.findings.push(Finding {
            source: self.source.to_owned(),
            location,
            file,
            line,
            severity,
            category,
            flaw,
            description,
            fix: stated(Field::Fix),
            evidence,
            citations,
        });
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
fn columns(header: &[String]) -> Option<Vec<Option<Field>>> {
    if header.len() > 32 || header.len() < 2 {
        return None;
    }
    let columns: Vec<_> = header.iter().map(|cell| Field::of_column(&plain(cell).to_lowercase())).collect();
    let has = |field| columns.contains(&Some(field));
    (has(Field::Severity) && (has(Field::Location) || has(Field::Description))).then_some(columns)
}

fn draft_of_row(columns: &[Option<Field>], cells: &[String]) -> Result<Draft, String> {
    if cells.len() > columns.len() {
        return Err(format!("a row of {} cells under {} columns", cells.len(), columns.len()));
    }
    let required = [Field::Location, Field::Severity, Field::Category, Field::Description, Field::Fix];
    for field in required {
        let column = columns.iter().position(|column| *column == Some(field));
        if column.is_none_or(|column| column >= cells.len()) {
            return Err(format!("a row without a {}", field.name()));
        }
    }
    let mut draft = Draft::default();
    for (column, cell) in columns.iter().zip(cells) {
        match column {
            Some(Field::Severity) => draft.set_severity(cell),
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

fn draft_of_json(item: &Json) -> Draft {
    let mut draft = Draft::default();
    let Json::Map(entries) = item else { return draft };
    for (key, value) in entries {
        let (Some(field), Some(text)) = (Field::of_column(&key.to_lowercase()), value.scalar()) else {
            continue;
        };
        match field {
            Field::Severity => draft.set_severity(text),
            Field::Location
            | Field::Line
            | Field::Category
            | Field::Description
            | Field::Fix
            | Field::Evidence => {
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

/// `**Fix:** bind parameters` and its variants.
fn label(text: &str) -> Option<(Field, &str)> {
    let text = unbullet(text.trim()).trim_start_matches(['*', '_', '`']);
    let colon = text.char_indices().take(30).find(|(_, c)| *c == ':')?.0;
    let name = head(text, colon).trim_end_matches(['*', '_', '`', ' ']);
    let field = Field::of_label(&name.to_ascii_lowercase())?;
    Some((field, tail(text, colon + 1).trim_start_matches(['*', '_']).trim()))
}

/// Adds a labelled line. `false`: the label begins the next finding.
fn add_label(draft: &mut Draft, form: Form, field: Field, value: &str) -> bool {
    if field == Field::Severity {
        let repeated = draft.fields.contains_key(&Field::Severity);
        if !repeated {
            draft.set_severity(value);
            draft.add(Field::Severity, value);
        }
        return !repeated;
    }
    if form == Form::Labels && field == Field::Location && !draft.get(Field::Location).is_empty() {
        return false;
    }
    draft.add(field, value);
    true
}

/// A finding that begins with its severity, or with its place and then its severity.
fn opening(text: &str) -> Option<Draft> {
    let (place, lead) = naming::opening(text)?;
    let mut draft = Draft::of(lead.severity);
    if let Some(place) = place {
        draft.add(Field::Location, place);
    }
    fill(&mut draft, lead.rest);
    Some(draft)
}

fn is_separator(c: char) -> bool {
    c.is_whitespace() || is_dash(c) || is_emoji(c) || matches!(c, ':' | ',' | '|' | '/' | '·')
}

/// Takes place and category from the front of a text; what remains describes, up to `Fix:` and `Evidence:`.
fn fill(draft: &mut Draft, text: &str) {
    let mut rest = text;
    for _ in 0..3 {
        rest = rest.trim_start_matches(is_separator);
        if draft.get(Field::Location).is_empty()
            && let Some((place, behind)) = place::leading(rest)
        {
            draft.add(Field::Location, place);
            rest = behind.trim_start_matches('*');
        } else if draft.get(Field::Category).is_empty()
            && let Some((category, behind)) = leading_category(rest)
        {
            draft.add(Field::Category, category);
            rest = behind;
        } else {
            break;
        }
    }
    let rest = rest.trim_start_matches(is_separator);
    for (field, part) in labelled_parts(rest) {
        match field {
            Field::Severity => draft.set_severity(part),
            Field::Location
            | Field::Line
            | Field::Category
            | Field::Description
            | Field::Fix
            | Field::Evidence => {
                draft.add(field, part);
            }
        }
    }
}

/// `(security)`, `[reliability (test gap)]`, `security:` or `reliability (test gap) —`.
fn leading_category(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start_matches(['*', '_', '`']);
    for (open, close) in [('(', ')'), ('[', ']')] {
        if let Some(inner) = text.strip_prefix(open) {
            let end = matching(inner, open, close)?;
            let (name, behind) = (head(inner, end), tail(inner, end + 1));
            let plausible =
                name.split_whitespace().count() <= 5 && !name.contains(|c: char| c.is_ascii_digit());
            return (plausible && !name.trim().is_empty()).then_some((name, behind));
        }
    }
    let end = text.find(|c: char| !c.is_alphanumeric() && !matches!(c, '-' | '_')).unwrap_or(text.len());
    let spaced = text.get(..15).filter(|two| two.eq_ignore_ascii_case("breaking change"));
    let name = spaced.unwrap_or(head(text, end));
    if !CATEGORIES.contains(&category(name).0.as_str()) {
        return None;
    }
    let behind = tail(text, name.len());
    let bare = behind.trim_start_matches(['*', '_', '`', ' ']);
    if let Some(inner) = bare.strip_prefix('(')
        && let Some(end) = matching(inner, '(', ')')
        && category_flaw(head(inner, end)).is_some()
    {
        let after = tail(inner, end + 1);
        return Some((head(text, text.len() - after.len()), after));
    }
    bare.starts_with(|c| matches!(c, ':' | '|' | ',' | '·') || is_dash(c)).then_some((name, bare))
}

/// Where the bracket closes that was open at the start, if within a category's length.
fn matching(text: &str, open: char, close: char) -> Option<usize> {
    let mut depth = 0;
    for (at, c) in text.char_indices().take(80) {
        if c == open {
            depth += 1;
        } else if c == close && depth == 0 {
            return Some(at);
        } else if c == close {
            depth -= 1;
        }
    }
    None
}

/// Cuts a text at labels inside it: `it leaks. Fix: close it. Evidence: …`.
fn labelled_parts(text: &str) -> Vec<(Field, &str)> {
    let mut parts = Vec::new();
    let mut field = Field::Description;
    let mut start = 0;
    for (colon, _) in text.char_indices().filter(|(_, c)| *c == ':') {
        let before = text.get(start..colon).unwrap_or("").trim_end_matches(['*', '_', '`']);
        let Some((next, name)) = inline_label(before) else { continue };
        let part = head(before, before.len() - name).trim_end_matches(['*', '_', '`', ' ', '(', '—', '–']);
        parts.push((field, part.trim()));
        field = next;
        start = colon
            + 1
            + (tail(text, colon + 1).len() - tail(text, colon + 1).trim_start_matches(['*', '_']).len());
    }
    parts.push((field, tail(text, start).trim().trim_end_matches("**")));
    parts.retain(|(field, part)| !part.is_empty() || *field == Field::Fix);
    parts
}

/// The label a text ends with, and its length.
fn inline_label(text: &str) -> Option<(Field, usize)> {
    let labels = [
        "Suggested fix",
        "Fix",
        "Suggestion",
        "Recommendation",
        "Evidence",
        "Proof",
        "Reproduction",
        "Category",
        "Location",
        "Severity",
    ];
    labels.into_iter().find_map(|label| {
        let before = text.strip_suffix(label)?;
        let free = before.is_empty()
            || before.ends_with(|c: char| is_markup(c) || matches!(c, '(' | '[' | '—' | '–'));
        free.then_some((Field::of_label(&label.to_ascii_lowercase())?, label.len()))
    })
}

/// The category in the words of [`CATEGORIES`] where it is one of them, and what a reliability finding blames.
fn category(text: &str) -> (String, Option<Flaw>) {
    let text = plain(text).to_lowercase();
    let flaw = category_flaw(&text);
    let cut = text.find(['(', ':', ',', '/']).filter(|at| *at > 0);
    let dashed = text.find(" - ").or_else(|| text.find(['—', '–']));
    let cut = cut.into_iter().chain(dashed).min();
    let base = match cut {
        Some(at) if flaw.is_some() || tail(&text, at).starts_with('(') => head(&text, at),
        _ => &text,
    };
    let words =
        base.split(|c: char| c.is_whitespace() || c == '_' || c == '-').filter(|word| !word.is_empty());
    let name = cap(&words.collect::<Vec<_>>().join("-"), 60);
    let flaw = flaw.filter(|_| name == "reliability");
    (name, flaw)
}

fn category_flaw(text: &str) -> Option<Flaw> {
    let text = text.to_lowercase().replace(['-', '_'], " ");
    match (text.contains("design flaw"), text.contains("test gap")) {
        (true, false) => Some(Flaw::DesignFlaw),
        (false, true) => Some(Flaw::TestGap),
        _ => None,
    }
}

/// `Finding 1:` and `Issue #2 -` in front of a finding.
fn unprefixed(text: &str) -> &str {
    let text = text.trim_start_matches(['*', '_']).trim_start();
    let Some(rest) = ["finding", "issue"].iter().find_map(|word| {
        let (start, rest) = text.split_at_checked(word.len())?;
        start.eq_ignore_ascii_case(word).then_some(rest)
    }) else {
        return text;
    };
    let rest = rest.trim_start_matches([' ', '#']);
    let number = rest.bytes().take_while(u8::is_ascii_digit).count();
    if number == 0 {
        return text;
    }
    tail(rest, number).trim_start_matches(|c| is_separator(c) || matches!(c, '.' | '*'))
}

/// A thematic break.
fn is_break(text: &str) -> bool {
    text.len() >= 3 && ['-', '*', '_'].iter().any(|mark| text.chars().all(|c| c == *mark || c == ' '))
}
