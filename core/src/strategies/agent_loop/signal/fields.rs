//! From a line to its fields: `- Agent: Planner`, in the ways practice writes it.

use super::How;
use crate::read::text::{bullet, head, is_emoji, tail};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Label {
    Agent,
    Result,
    Summary,
    Next,
    Risk,
    Confidence,
    Signature,
    /// A field the schema knows beside the four.
    Extra,
    Unknown,
}

impl Label {
    pub(super) const FOUR: [Label; 4] = [Label::Agent, Label::Result, Label::Summary, Label::Next];

    pub(super) fn is_of_the_four(self) -> bool {
        Label::FOUR.contains(&self)
    }
}

#[derive(Debug, Clone)]
pub(super) struct SignalField {
    pub(super) label: Label,
    /// The label is another word for the grammar's own.
    pub(super) is_alias: bool,
    pub(super) value: String,
    pub(super) notes: Vec<How>,
}

/// The longest label; a longer one is a sentence with a colon in it.
const MAX_LABEL: usize = 40;

/// The extra fields of the schema.
const EXTRAS: [&str; 16] = [
    "context",
    "context summary",
    "files in scope",
    "estimated loc",
    "files changed",
    "loc changed",
    "test summary",
    "issues found",
    "goal",
    "loop",
    "step",
    "project",
    "blocker",
    "blockers",
    "diagnostics",
    "questions",
];

/// The fields of a line; none for prose. `columns` are those of a table whose head came before.
pub(super) fn fields(text: &str, indent: u32, columns: &[Label]) -> Vec<SignalField> {
    let bare = text.trim();
    if let Some(signature) = signature(bare) {
        return vec![signature];
    }
    let mut found = if bare.contains('|') { piped(bare, columns) } else { Vec::new() };
    if found.is_empty() {
        found.extend(listed(bare, indent));
    }
    found
}

/// A signature has `Agent=` too, so it is looked for first.
fn signature(bare: &str) -> Option<SignalField> {
    let inner = undecorated(bare);
    let value = match split(inner) {
        Some((label, value, _)) if label.eq_ignore_ascii_case("signature") => value,
        _ if inner.contains('|') && starts_with(inner, "project") && inner.contains('=') => inner,
        _ => return None,
    };
    Some(SignalField { label: Label::Signature, is_alias: false, value: value.to_owned(), notes: Vec::new() })
}

/// `- Agent: Planner`.
fn listed(bare: &str, indent: u32) -> Option<SignalField> {
    let mut notes = Vec::new();
    if indent > 0 {
        notes.push(How::Indented);
    }
    let inner = match bullet(bare) {
        Some(width) => {
            if !bare.starts_with("- ") {
                notes.push(How::OtherMarker);
            }
            tail(bare, width)
        }
        None => {
            notes.push(How::NoMarker);
            bare
        }
    };
    let mut field = labelled(inner)?;
    notes.append(&mut field.notes);
    // Prose has colons too: only a list, or labels in bold, have unknown fields.
    let bold = notes.contains(&How::DecoratedLabel);
    let said = field.label != Label::Unknown || bold || !notes.contains(&How::NoMarker);
    said.then_some(SignalField { notes, ..field })
}

/// `Agent: Planner`, with all that may decorate it.
fn labelled(text: &str) -> Option<SignalField> {
    let (label, value, mut notes) = split(text)?;
    let plain = undecorated(label);
    if plain.len() != label.len() {
        notes.insert(0, How::DecoratedLabel);
    }
    let (label, is_alias) = name(plain)?;
    if label.is_of_the_four() && is_alias {
        notes.push(How::OtherLabel);
    } else if label.is_of_the_four() && !is_written_right(label, plain) {
        notes.push(How::LabelCase);
    }
    Some(SignalField { label, is_alias, value: value.to_owned(), notes })
}

/// The text before and after the colon.
fn split(text: &str) -> Option<(&str, &str, Vec<How>)> {
    let at = text.find([':', '=', '：'])?;
    let (label, rest) = (head(text, at).trim(), tail(text, at));
    // A removed line of a diff without its head is quoted text.
    if label.is_empty() || label.len() > MAX_LABEL || label.starts_with('-') {
        return None;
    }
    let sign = rest.chars().next()?;
    let value = tail(rest, sign.len_utf8());
    let mut notes = Vec::new();
    // `**Agent:** Planner` closes its emphasis behind the colon.
    let open = label.starts_with(['*', '_', '`']) && !label.ends_with(['*', '_', '`']);
    let value = if open {
        notes.push(How::DecoratedLabel);
        value.trim_start_matches(['*', '_', '`'])
    } else {
        value
    };
    if sign != ':' || head(text, at).ends_with(' ') || !(value.is_empty() || value.starts_with(' ')) {
        notes.push(How::Separator);
    }
    let label = if open { label.trim_start_matches(['*', '_', '`']) } else { label };
    Some((label, value.trim(), notes))
}

fn undecorated(text: &str) -> &str {
    text.trim_matches(|c: char| matches!(c, '*' | '_' | '`' | '#') || c.is_whitespace() || is_emoji(c))
}

fn is_written_right(label: Label, text: &str) -> bool {
    let right = match label {
        Label::Agent => "Agent",
        Label::Result => "Result",
        Label::Summary => "Step Summary",
        Label::Next => "Next",
        Label::Risk | Label::Confidence | Label::Signature | Label::Extra | Label::Unknown => text,
    };
    text == right
}

/// What a label means, and whether it is another word for it.
fn name(text: &str) -> Option<(Label, bool)> {
    let words: Vec<String> = text
        .split(|c: char| c.is_whitespace() || c == '_' || c == '-')
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    let is_word = |word: &String| word.chars().all(char::is_alphanumeric);
    if words.is_empty() || words.len() > 4 || !words.iter().all(is_word) {
        return None;
    }
    let text = words.join(" ");
    Some(match text.as_str() {
        "agent" => (Label::Agent, false),
        "result" => (Label::Result, false),
        "step summary" => (Label::Summary, false),
        "next" => (Label::Next, false),
        "risk" | "risk level" => (Label::Risk, false),
        "confidence" | "confidence level" | "confidence score" => (Label::Confidence, false),
        "signature" => (Label::Signature, false),
        "role" | "agent name" | "current agent" => (Label::Agent, true),
        "status" | "outcome" | "verdict" | "decision" => (Label::Result, true),
        "next agent" | "next role" | "next up" | "next action" => (Label::Next, true),
        known if EXTRAS.contains(&known) => (Label::Extra, false),
        other if other.ends_with("summary") => (Label::Summary, true),
        _ => (Label::Unknown, false),
    })
}

/// PC-10: a line of cells; a row of a table; a row below a head.
fn piped(bare: &str, columns: &[Label]) -> Vec<SignalField> {
    let (announced, rest) = announced(bare);
    let cells: Vec<&str> = rest.trim_matches('|').split('|').map(str::trim).collect();
    let is_row = bare.starts_with('|');
    if is_row && cells.len() == columns.len() && !is_rule(&cells) {
        return positional(&cells, columns, How::TableForm);
    }
    if let ([label, value], true) = (cells.as_slice(), is_row) {
        return row(label, value).into_iter().collect();
    }
    let unmarked = |cell: &&str| labelled(bullet(cell).map_or(cell, |width| tail(cell, width)));
    let labelled: Vec<SignalField> = cells.iter().filter_map(unmarked).collect();
    if labelled.iter().filter(|field| field.label.is_of_the_four()).count() >= 2 {
        return labelled.into_iter().map(|field| noted(field, How::PipeForm)).collect();
    }
    let in_order = announced && cells.len() == Label::FOUR.len();
    if in_order { positional(&cells, &Label::FOUR, How::PipeForm) } else { Vec::new() }
}

/// `SIGNAL BLOCK: …` and `SIGNAL BLOCK | …` announce a line.
fn announced(bare: &str) -> (bool, &str) {
    let inner = bullet(bare).map_or(bare, |width| tail(bare, width));
    let inner = inner.trim_start_matches(['*', '_', '`', '[']);
    if !starts_with(inner, "signal block") {
        return (false, bare);
    }
    let rest = tail(inner, "signal block".len());
    (true, rest.trim_start_matches(['*', '_', '`', ']', ':', '|', ' ', '-', '–', '—']))
}

fn starts_with(text: &str, lower: &str) -> bool {
    text.get(..lower.len()).is_some_and(|start| start.eq_ignore_ascii_case(lower))
}

fn positional(cells: &[&str], columns: &[Label], form: How) -> Vec<SignalField> {
    let field = |(cell, label): (&&str, &Label)| SignalField {
        label: *label,
        is_alias: false,
        value: (*cell).to_owned(),
        notes: vec![form],
    };
    cells.iter().zip(columns).map(field).collect()
}

fn row(label: &str, value: &str) -> Option<SignalField> {
    let (known, is_alias) = name(undecorated(label.trim_end_matches(':')))?;
    let mut notes = vec![How::TableForm];
    if is_alias {
        notes.push(How::OtherLabel);
    }
    let said = known != Label::Unknown;
    said.then(|| SignalField { label: known, is_alias, value: value.to_owned(), notes })
}

fn noted(mut field: SignalField, how: How) -> SignalField {
    field.notes.retain(|note| *note != How::NoMarker);
    field.notes.insert(0, how);
    field
}

fn is_rule(cells: &[&str]) -> bool {
    cells.iter().all(|cell| !cell.is_empty() && cell.chars().all(|c| matches!(c, '-' | ':')))
}

/// The line below the head of a table.
pub(super) fn is_table_rule(text: &str) -> bool {
    let bare = text.trim();
    bare.starts_with('|') && is_rule(&bare.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>())
}

/// The columns of a table whose head names at least three of the four.
pub(super) fn columns(text: &str) -> Vec<Label> {
    let bare = text.trim();
    if !bare.starts_with('|') {
        return Vec::new();
    }
    let cells = bare.trim_matches('|').split('|').map(|cell| name(undecorated(cell)));
    let labels: Vec<Label> = cells.map(|named| named.map_or(Label::Unknown, |(label, _)| label)).collect();
    let known = Label::FOUR.iter().filter(|label| labels.contains(label)).count();
    if known >= 3 { labels } else { Vec::new() }
}

/// Whether a heading or a line of its own announces a block.
pub(super) fn announces(text: &str) -> bool {
    let bare = undecorated(text).trim_end_matches([':', '*', '_', ']']).trim_start_matches('[');
    let lower = bare.to_ascii_lowercase();
    !lower.contains('|')
        && lower.len() <= 60
        && (lower.contains("signal block") || lower.contains("signal_block"))
}

/// Whether a line that is merely shown would begin a block.
pub(super) fn shows_an_agent(text: &str) -> bool {
    let bare = text.trim_start_matches(|c: char| matches!(c, '>' | '+' | '|') || c.is_whitespace());
    let bare = bare.trim_start_matches("<!--").trim_start();
    let inner = bullet(bare).map_or(bare, |width| tail(bare, width));
    let inner = inner.trim_start_matches(['-', '+', ' ']);
    let field = labelled(inner).filter(|field| field.label == Label::Agent && !field.is_alias);
    field.is_some_and(|field| super::values::first_speaker(&field.value).is_some())
}
