//! Findings in the forms reviewers write them: a table, a heading, a block of labels, a list item, JSON in a fence.
//!
//! Every row that is seen is either accepted whole or reported as a problem, and so is every line that names a severity
//! (see [`super::naming`]) without becoming part of a finding. A finding states its location, severity, category and
//! description; a table has a column for the fix as well.

use super::Problems;
use super::draft::{Draft, FindingField};
use super::heads::{fill, label, opening, unnamed, unprefixed};
use super::json::{self, Json};
use super::lines::{self, LineKind, TextLine};
use super::naming;
use super::review;
use super::rows::{self, columns, draft_of_row, is_check, is_tally_row};
use super::sections;
use super::status;
use super::table;
use super::text::{is_none, plain, unbullet};
use super::verdict::{self, VerdictClaim};
use crate::event::fitting;
use crate::model::{Finding, Severity};

const MAX_FINDINGS: usize = 500;

/// The most that are read, to find the most severe among them.
const MAX_READ: usize = 20_000;

/// The most fences below findings that are looked at.
const MAX_FENCES: usize = 50;

/// What JSON that means to be findings holds.
const SEVERITY_KEY: &str = "\"severity\"";

#[derive(Default)]
pub(crate) struct ParsedFindings {
    pub findings: Vec<Finding>,
    /// Also those beyond the bound.
    pub accepted: usize,
    /// Verdicts in JSON beside findings, with their lines.
    pub verdicts: Vec<(usize, VerdictClaim)>,
    /// The lines of findings above INFO that name no place, not even `-`.
    pub unplaced: Vec<(usize, Severity)>,
    /// How many problems are rows that are shown as code.
    pub shown: usize,
    /// Lines that open a fence which is part of no finding, below the first one.
    pub fences: Vec<usize>,
}

pub(crate) fn findings(
    source: &str,
    lines: &[TextLine],
    categories: &[String],
    problems: &mut Problems,
) -> ParsedFindings {
    let mut reader = Reader {
        source,
        lines,
        categories,
        problems,
        found: ParsedFindings::default(),
        rejected: 0,
        title: String::new(),
        group: None,
        blocked: None,
    };
    if reader.bare_json() {
        return reader.found;
    }
    let mut at = 0;
    while at < lines.len() {
        // Every step goes forward, whatever it made of the line.
        at = reader.step(at).max(at + 1);
    }
    reader.leave_group();
    reader.found
}

/// The lines with tables in fences as if they were not.
pub(crate) fn with_shown_tables<'a>(lines: &[TextLine<'a>]) -> Vec<TextLine<'a>> {
    let mut unfenced = lines.to_vec();
    let mut in_text = false;
    for line in &mut unfenced {
        line.kind = match line.kind {
            LineKind::Open => {
                in_text = is_plain_text(&lines::info(line.text));
                if in_text { LineKind::Blank } else { LineKind::Open }
            }
            LineKind::Close if in_text => LineKind::Blank,
            LineKind::Fenced if in_text && table::is_row(line.text) => LineKind::Plain,
            LineKind::Fenced if in_text => LineKind::Blank,
            LineKind::Fenced
            | LineKind::Close
            | LineKind::Plain
            | LineKind::Blank
            | LineKind::Quote
            | LineKind::Indented
            | LineKind::Diff
            | LineKind::Comment => line.kind,
        };
    }
    unfenced
}

/// The info strings of a fence around text, not code.
pub(super) fn is_plain_text(info: &str) -> bool {
    matches!(info, "" | "md" | "markdown" | "text" | "txt" | "plaintext")
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
    level: usize,
    end: usize,
    rows_before: usize,
    /// In other words than the brief's and of no weight: it need not hold findings.
    lax: bool,
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
    /// Whether the status is BLOCKED, once that was asked.
    blocked: Option<bool>,
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
        if let Some(group) = self.group.as_ref().filter(|_| listed && !says_none(text)) {
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
            if rows::repeats_header(columns, &cells) || cells.iter().all(|cell| is_none(cell)) {
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
        let mut holds_other = false;
        for (row, line) in self.lines.iter().enumerate().take(end).skip(at) {
            let cells = table::cells(line.text, Some(width));
            if is_tally_row(&cells) || table::is_rule(line.text) {
                continue;
            }
            holds_rows |= row > at && !cells.iter().all(|cell| is_none(cell));
            holds_other |= row > at && !cells.iter().any(|cell| is_check(cell));
            if cells.iter().any(|cell| naming::asked_severity(cell).is_some()) {
                self.unreadable(row);
            }
        }
        if width >= 4 && holds_rows && holds_other {
            self.problems.at(at, "a table whose columns are not those of findings");
        }
        end
    }

    // Everything that is not a table.

    fn heading(&mut self, at: usize, level: usize, title: &str) -> usize {
        let bare = sections::unnumber(title);
        let numbered = bare.len() < title.len() && title.starts_with(|c: char| c.is_ascii_digit());
        let titled = numbered || unnamed(bare).is_some();
        let title = unprefixed(bare);
        let next = self.next_text_line(at + 1).filter(|line| line.kind == LineKind::Plain);
        let labelled =
            next.and_then(|line| label(line.text)).is_some_and(|(field, _)| field != FindingField::Severity);
        if let Some(severity) = naming::over_group(title).filter(|_| !self.is_about_status(title)) {
            if labelled {
                return self.block(at, Draft::of(severity), Form::Heading);
            }
            if !naming::leading(title).is_some_and(|lead| naming::is_tally(lead.rest)) && !counts_none(title)
            {
                self.leave_group();
                let end = sections::end_of(self.lines, at, level);
                let rows_before = self.found.accepted + self.rejected;
                let lax = severity == Severity::Info && !naming::names_asked(title);
                self.group = Some(Group { severity, line: at, level, end, rows_before, lax });
            }
            return at;
        }
        if let Some(draft) = opening(title, self.categories) {
            return self.block(at, draft, Form::Heading);
        }
        if let Some((title, severity)) = naming::closing(title).filter(|_| labelled) {
            let mut draft = Draft::of(severity);
            fill(&mut draft, title, self.categories);
            return self.block(at, draft, Form::Heading);
        }
        let inside = self.group.as_ref().filter(|group| group.level < level && level <= 6);
        if let Some(group) = inside.filter(|_| titled && !ticked_off(title)) {
            let mut draft = Draft::of(group.severity);
            fill(&mut draft, title, self.categories);
            return self.block(at, draft, Form::Heading);
        }
        self.title = plain(title);
        self.note_naming(at);
        at
    }

    /// Under `Blockers` an agent that is blocked says why: that is its remark (AF-040).
    fn is_about_status(&mut self, title: &str) -> bool {
        let blockers = title.get(..7).is_some_and(|word| word.eq_ignore_ascii_case("blocker"));
        let lines = self.lines;
        let blocked = || {
            let mut own = lines.iter().filter(|line| line.kind == LineKind::Plain);
            own.any(|line| status::is_blocked(line.text))
        };
        blockers && *self.blocked.get_or_insert_with(blocked)
    }

    /// A group has to have held what its heading promised: findings, or the word none.
    fn leave_group(&mut self) {
        let Some(group) = self.group.take() else { return };
        let body = self.lines.get(group.line + 1..group.end).unwrap_or(&[]);
        let about_all = |line: &&TextLine| status::looks_like_one(line.text) || review::is_control(line.text);
        let mut body = body.iter().filter(|line| line.kind != LineKind::Blank && !about_all(line)).peekable();
        let rows = self.found.accepted + self.rejected - group.rows_before;
        if !group.lax
            && rows == 0
            && (body.peek().is_none() || body.any(|line| !says_none(unbullet(line.text.trim()))))
        {
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
        let severe = cells.iter().any(|cell| naming::asked_severity(cell).is_some());
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
        if self.found.accepted > 0 && self.found.fences.len() < MAX_FENCES {
            self.found.fences.push(at);
        }
        match info.as_str() {
            "json" => self.json(at),
            text if is_plain_text(text) => self.note_shown_row(at, end),
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
            self.found.shown += 1;
            self.problems.at(row, "findings shown as code are not read");
        }
    }

    /// An answer that is JSON and nothing else.
    fn bare_json(&mut self) -> bool {
        let mut shown = self.lines.iter().enumerate().filter(|(_, line)| !line.text.trim().is_empty());
        let Some((at, first)) = shown.next() else { return false };
        let last = shown.next_back().map_or(first, |(_, last)| last);
        let starts = first.text.trim_start().starts_with(['{', '[']);
        if !starts || !last.text.trim_end().ends_with(['}', ']']) {
            return false;
        }
        let text: String = self.lines.iter().flat_map(|line| [line.text, "\n"]).collect();
        let value = json::parse(&text);
        let is_review = value.as_ref().and_then(findings_in).is_some();
        if is_review {
            self.read_json(at, value.as_ref(), &text);
        }
        is_review
    }

    fn json(&mut self, at: usize) {
        let text: String = self.fenced(at).flat_map(|(_, line)| [line.text, "\n"]).collect();
        let value = json::parse(&text);
        self.read_json(at, value.as_ref(), &text);
    }

    fn read_json(&mut self, at: usize, value: Option<&Json>, text: &str) {
        if let Some((verdict, items)) = value.and_then(findings_in) {
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
        let placed = draft.is_placed();
        match draft.into_finding(self.source) {
            Ok(finding) => {
                if !placed && finding.severity > Severity::Info && self.found.unplaced.len() < MAX_FINDINGS {
                    self.found.unplaced.push((line, finding.severity));
                }
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

fn verdict_of(said: &Json) -> VerdictClaim {
    said.scalar().map_or(VerdictClaim::asked(None), verdict::of_value)
}

/// `None.`, `No critical issues found.`
pub(super) fn says_none(text: &str) -> bool {
    let bare = text.trim_matches(|c: char| !c.is_alphanumeric());
    if is_none(text) {
        return true;
    }
    let mut named = bare.split(' ');
    let no = named.next().is_some_and(|word| word.eq_ignore_ascii_case("no"));
    let last = bare.rsplit(' ').find(|word| {
        !["found", "identified", "detected", "remaining", "remain"]
            .iter()
            .any(|end| word.eq_ignore_ascii_case(end))
    });
    let units = ["issues", "findings", "problems", "concerns", "vulnerabilities", "blockers"];
    let only_words = bare.bytes().all(|b| b.is_ascii_alphabetic() || matches!(b, b' ' | b'-'));
    let of = last.is_some_and(|word| units.iter().any(|unit| word.eq_ignore_ascii_case(unit)));
    no && of && only_words && bare.len() <= 60
}

/// A heading with a tick is about something that was checked or mended.
fn ticked_off(title: &str) -> bool {
    title.contains(['✅', '✓', '✔'])
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
