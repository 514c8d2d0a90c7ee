//! Rows of a table as findings: which columns a header has, and what a row without a finding may be.

use super::draft::{Draft, FindingField};
use super::naming;
use super::text::{is_none, plain};

/// The columns of a header of findings: it has a severity, and a location or a description.
pub(super) fn columns(header: &[String]) -> Option<Vec<Option<FindingField>>> {
    if header.len() > 32 || header.len() < 2 {
        return None;
    }
    let columns: Vec<_> = header.iter().map(|cell| field_of(cell)).collect();
    let has = |field| columns.contains(&Some(field));
    (has(FindingField::Severity) && (has(FindingField::Location) || has(FindingField::Description)))
        .then_some(columns)
}

/// Whether a row repeats the header with these columns. The cell below the severity says so for nearly all rows.
pub(super) fn repeats_header(header: &[Option<FindingField>], cells: &[String]) -> bool {
    let at = header.iter().position(|field| *field == Some(FindingField::Severity));
    let field = at.and_then(|at| cells.get(at)).and_then(|cell| field_of(cell));
    field == Some(FindingField::Severity) && columns(cells).is_some_and(|again| again == header)
}

fn field_of(cell: &str) -> Option<FindingField> {
    FindingField::of_column(&plain(cell).to_lowercase())
}

pub(super) fn draft_of_row(columns: &[Option<FindingField>], cells: &[String]) -> Result<Draft, String> {
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
        if column.is_some_and(|column| column >= cells.len()) {
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
pub(super) fn is_tally_row(cells: &[String]) -> bool {
    let counts = |cell: &String| is_none(cell) || cell.bytes().all(|b| b.is_ascii_digit() || b == b'*');
    let total =
        |cell: &String| ["total", "count", "severity"].iter().any(|word| cell.eq_ignore_ascii_case(word));
    let severities = cells.iter().filter(|cell| naming::severity(cell).is_some()).count();
    let others = cells.len() - severities;
    let rest = || cells.iter().filter(|cell| naming::severity(cell).is_none());
    severities == 1 && others > 0 && rest().all(counts)
        || severities > 1 && rest().all(|c| counts(c) || total(c))
}

/// A cell that ticks off its row.
pub(super) fn is_check(cell: &str) -> bool {
    let word = cell.trim_start_matches(['*', '_', '`', ' ']);
    let end = word.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(word.len());
    let name = word.get(..end).unwrap_or("");
    let ticks = [
        "pass",
        "passed",
        "ok",
        "done",
        "complete",
        "completed",
        "yes",
        "met",
        "fixed",
        "verified",
        "approved",
    ];
    word.starts_with(['✅', '✓', '✔']) || ticks.iter().any(|tick| tick.eq_ignore_ascii_case(name))
}
