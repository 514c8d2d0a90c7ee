//! A finding while it is being collected, and what it takes to become one.

use std::collections::BTreeMap;

use super::naming;
use super::place;
use super::text::{cap, head, is_markup, is_none, plain, tail};
use super::words;
use crate::model::{Finding, Flaw, Severity};

pub(crate) const MAX_CELL: usize = 4000;

/// The location of a finding that names none.
const NOWHERE: &str = "-";

/// The category of a finding that names none.
const UNSTATED: &str = "general";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FindingField {
    Location,
    Line,
    Severity,
    Category,
    Description,
    Fix,
    Evidence,
}

impl FindingField {
    pub(crate) fn name(self) -> &'static str {
        match self {
            FindingField::Location => "location",
            FindingField::Line => "line",
            FindingField::Severity => "severity",
            FindingField::Category => "category",
            FindingField::Description => "description",
            FindingField::Fix => "fix",
            FindingField::Evidence => "evidence",
        }
    }

    /// The column or the key of this name.
    pub(crate) fn of_column(name: &str) -> Option<FindingField> {
        Some(match name {
            "location" | "file" | "files" | "file:line" | "file/line" | "where" | "path" | "place" => {
                FindingField::Location
            }
            "line" | "lines" => FindingField::Line,
            "severity" | "sev" => FindingField::Severity,
            "category" | "type" => FindingField::Category,
            "description" | "issue" | "finding" | "problem" | "details" | "title" | "message" => {
                FindingField::Description
            }
            "fix" | "suggestion" | "suggested fix" | "recommendation" | "recommended fix"
            | "proposed fix" | "suggested_fix" | "remedy" => FindingField::Fix,
            "evidence" | "proof" | "reproduction" | "reproduction steps" | "repro" | "steps" => {
                FindingField::Evidence
            }
            _ => return words::column(name),
        })
    }

    /// The label of this name. Fewer than columns: in running text more words mean something else.
    pub(crate) fn of_label(name: &str) -> Option<FindingField> {
        match name {
            "type" | "title" | "message" | "details" | "steps" | "line" | "lines" | "files" | "sev"
            | "行" => None,
            "impact" => Some(FindingField::Description),
            "steps to reproduce" => Some(FindingField::Evidence),
            _ => FindingField::of_column(name),
        }
    }
}

/// A finding while it is being collected.
#[derive(Default)]
pub(crate) struct Draft {
    pub fields: BTreeMap<FindingField, String>,
    pub severity: Option<Severity>,
    /// What later lines add to.
    pub current: Option<FindingField>,
    /// A severity that is none, or a second one.
    pub unclear: Option<String>,
}

impl Draft {
    pub(crate) fn of(severity: Severity) -> Draft {
        Draft { severity: Some(severity), ..Draft::default() }
    }

    pub(crate) fn get(&self, field: FindingField) -> &str {
        self.fields.get(&field).map_or("", String::as_str)
    }

    pub(crate) fn add(&mut self, field: FindingField, text: &str) {
        let value = self.fields.entry(field).or_default();
        if !value.is_empty() && !text.is_empty() {
            value.push_str(if field == FindingField::Location { ", " } else { "\n" });
        }
        value.push_str(text);
        self.current = Some(field);
    }

    pub(crate) fn more(&mut self, text: &str) {
        let field = self.current.filter(|f| {
            !matches!(f, FindingField::Location | FindingField::Category | FindingField::Severity)
        });
        self.add(field.unwrap_or(FindingField::Description), text);
    }

    pub(crate) fn set_severity(&mut self, text: &str) {
        match (naming::severity(text), self.severity) {
            (None, _) => self.unclear = Some(unknown_severity(text)),
            (Some(said), Some(before)) if said != before => {
                self.unclear = Some(format!("severity {} and {}", before.name(), said.name()));
            }
            (Some(said), _) => self.severity = Some(said),
        }
        self.current = Some(FindingField::Severity);
    }

    /// Whether it names a place, be it `-`.
    pub(crate) fn is_placed(&self) -> bool {
        !self.get(FindingField::Location).trim().is_empty()
            || !place_in(self.get(FindingField::Description)).is_empty()
    }

    /// The finding, if it has a severity and a description. A place and a category are wanted, and what is missing is
    /// stated as such (J-02, J-08).
    pub(crate) fn into_finding(mut self, source: &str) -> Result<Finding, String> {
        if let Some(problem) = self.unclear {
            return Err(problem);
        }
        let severity = self.severity.ok_or("a finding without a severity")?;
        if self.get(FindingField::Description).trim().is_empty() {
            return Err(format!("a {} finding without a description", severity.name()));
        }
        if self.get(FindingField::Location).is_empty() {
            let place = place_in(self.get(FindingField::Description));
            self.add(FindingField::Location, if place.is_empty() { NOWHERE } else { &place });
        }
        let location = self.location();
        let (file, line) = place::place(&location);
        let (category, flaw) = Some(self.get(FindingField::Category))
            .filter(|said| !is_none(said))
            .map_or_else(|| (UNSTATED.to_owned(), None), category);
        let (description, evidence) =
            (cap(self.get(FindingField::Description), MAX_CELL), self.stated(FindingField::Evidence));
        let citations = place::citations(&file, line, &description, &evidence);
        Ok(Finding {
            source: source.to_owned(),
            location,
            file,
            line,
            severity,
            category,
            flaw,
            description,
            fix: self.stated(FindingField::Fix),
            evidence,
            citations,
            anchor: String::new(),
            reproduction: None,
        })
    }

    /// A lone dash states nothing.
    fn stated(&self, field: FindingField) -> String {
        let value = self.get(field);
        if value.chars().any(char::is_alphanumeric) { cap(value, MAX_CELL) } else { String::new() }
    }

    /// File and line may come in two columns.
    fn location(&self) -> String {
        let location = cap(self.get(FindingField::Location), MAX_CELL);
        let line = cap(self.get(FindingField::Line), 20);
        if is_none(&line) || place::place(&location).1 > 0 {
            return location;
        }
        format!("{}:{line}", location.trim_matches('`'))
    }
}

/// The first place that a description names.
fn place_in(description: &str) -> String {
    let mut words = description.split_whitespace();
    let place = words.find(|word| place::mention(word.trim_matches('`')).is_some()).unwrap_or("");
    place.trim_matches(|c| is_markup(c) || matches!(c, '(' | ')' | ',' | '.' | ':')).to_owned()
}

fn unknown_severity(text: &str) -> String {
    format!("unknown severity {:?}", cap(text, 40))
}

/// The category in the words of [`CATEGORIES`] where it is one of them, and what a reliability finding blames.
pub(crate) fn category(text: &str) -> (String, Option<Flaw>) {
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

pub(crate) fn category_flaw(text: &str) -> Option<Flaw> {
    let text = text.to_lowercase().replace(['-', '_'], " ");
    match (text.contains("design flaw"), text.contains("test gap")) {
        (true, false) => Some(Flaw::DesignFlaw),
        (false, true) => Some(Flaw::TestGap),
        _ => None,
    }
}
