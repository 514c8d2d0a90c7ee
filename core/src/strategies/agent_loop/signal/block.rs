//! Finds the blocks in the lines of a text, and makes a signal of each.

use super::fields::{self, Label, SignalField};
use super::standing::{is_struck_out, is_withdrawn_heading, withdraws, withdraws_a_block};
use super::{Deviation, How, Signal, route, values};
use crate::model::{Risk, Speaker, Token};
use crate::read::lines::{LineKind, TextLine};
use crate::read::text::{cap, plain};

const MAX_SUMMARY: usize = 1000;
/// A hostile block can deviate on a million lines; at most this many are kept.
const MAX_DEVIATIONS: usize = 100;

pub(super) fn blocks(lines: &[TextLine]) -> Vec<Signal> {
    let mut finder = Finder::default();
    for (number, line) in (1..).zip(lines) {
        finder.take(number, line);
    }
    finder.close();
    finder.signals
}

/// A block that is being read.
#[derive(Default)]
struct Draft {
    /// A heading announced it.
    announced: bool,
    fields: Vec<(usize, SignalField)>,
    /// Which of the four are among the fields: agent, result, summary, next.
    has: [bool; 4],
    notes: Vec<Deviation>,
    /// Lines right above the block that take it back, such as a heading.
    doubts: Vec<usize>,
    blank: bool,
    columns: Vec<Label>,
}

impl Draft {
    fn push(&mut self, line: usize, field: SignalField) {
        for (label, has) in Label::FOUR.iter().zip(&mut self.has) {
            *has |= field.label == *label;
        }
        self.fields.push((line, field));
    }

    fn has(&self, label: Label) -> bool {
        Label::FOUR.iter().zip(self.has).any(|(other, has)| has && *other == label)
    }

    /// How many of the four are there.
    fn of_the_four(&self) -> usize {
        self.has.iter().filter(|has| **has).count()
    }

    fn is_complete(&self) -> bool {
        self.has(Label::Next) && self.of_the_four() >= 3
    }

    /// An author and a result, and nobody is next yet.
    fn is_half(&self) -> bool {
        self.has(Label::Agent) && self.has(Label::Result) && !self.has(Label::Next)
    }

    /// A second paragraph of a summary, or the list that is one.
    fn is_in_summary(&self) -> bool {
        self.is_half() && self.fields.last().is_some_and(|(_, field)| field.label == Label::Summary)
    }

    /// A list that happens to mention an agent is no block.
    fn is_block(&self) -> bool {
        let enough = self.of_the_four();
        let named = self.has(Label::Agent) && (self.has(Label::Result) || self.has(Label::Next));
        enough >= 3 || named || (self.announced && enough >= 2)
    }
}

#[derive(Default)]
struct Finder {
    draft: Draft,
    signals: Vec<Signal>,
    /// The block before may still get its signature.
    unsigned: bool,
    /// Nothing but a risk, a confidence or a signature was since the block before.
    adjoining: bool,
    /// The heading over the text at hand takes it back.
    withdrawn_heading: Option<usize>,
    /// The text since the block before; a plan may have fields outside its block.
    risk: Option<Risk>,
}

impl Finder {
    fn take(&mut self, number: usize, line: &TextLine) {
        match line.kind {
            LineKind::Blank => {
                self.draft.columns.clear();
                if self.draft.is_complete() { self.close() } else { self.draft.blank = true }
            }
            LineKind::Plain => self.take_text(number, line),
            LineKind::Open
            | LineKind::Fenced
            | LineKind::Close
            | LineKind::Quote
            | LineKind::Indented
            | LineKind::Diff
            | LineKind::Comment => {
                self.close();
                self.unsigned = false;
                self.adjoining = false;
            }
        }
    }

    fn take_text(&mut self, number: usize, line: &TextLine) {
        let columns = fields::columns(line.text);
        if !columns.is_empty() {
            let announced = self.draft.announced && self.draft.fields.is_empty();
            self.close();
            self.draft = Draft { announced, columns, ..Draft::default() };
            return;
        }
        if fields::is_table_rule(line.text) {
            return;
        }
        let found = fields::fields(line.text, line.indent, &self.draft.columns);
        if found.is_empty() {
            return self.take_prose(number, line);
        }
        for field in found {
            self.take_field(number, field);
        }
    }

    fn take_prose(&mut self, number: usize, line: &TextLine) {
        if line.text.trim_start().starts_with('#') {
            self.withdrawn_heading = is_withdrawn_heading(line.text).then_some(number);
        }
        if fields::announces(line.text) {
            self.close();
            self.draft.announced = true;
        } else if self.draft.fields.is_empty() {
            self.draft.announced &= is_break(line.text);
        } else if (self.draft.blank && !self.draft.is_in_summary())
            || line.text.trim_start().starts_with('#')
            || is_break(line.text)
        {
            self.close();
        } else {
            self.go_on(number, line.text.trim());
        }
        self.unsigned &= is_break(line.text);
        self.adjoining &= is_break(line.text);
        if self.draft.fields.is_empty() && withdraws_a_block(line.text) {
            self.withdraw_last(number);
        }
    }

    /// A line below a block that takes something back is about that block, as far as can be told: it is asked about.
    fn withdraw_last(&mut self, number: usize) {
        let Some(signal) = self.signals.last_mut() else { return };
        if !matches!(signal.result, Some(Token::Insufficient | Token::Fail) | None) {
            signal.result = None;
            note(signal, number, How::WithdrawnResult);
            signal.deviations.truncate(MAX_DEVIATIONS);
        }
    }

    /// A line behind a field that is none itself.
    fn go_on(&mut self, number: usize, text: &str) {
        let Some((_, field)) = self.draft.fields.last_mut() else { return };
        let how = match field.label {
            Label::Summary => {
                field.value.push(' ');
                field.value.push_str(text);
                How::WrappedSummary
            }
            Label::Risk | Label::Confidence | Label::Signature | Label::Extra | Label::Unknown => return,
            // What follows a result is a part of it: it may take it back.
            Label::Result => {
                field.value.push_str(" (");
                field.value.push_str(text);
                field.value.push(')');
                How::StrayText
            }
            Label::Agent | Label::Next => How::StrayText,
        };
        self.draft.notes.push(Deviation { line: number, how });
    }

    fn take_field(&mut self, number: usize, field: SignalField) {
        if field.label == Label::Signature {
            return self.take_signature(number, field);
        }
        if field.label == Label::Risk {
            self.risk = self.risk.max(values::risk(&field.value));
        }
        let four = field.label.is_of_the_four();
        let empty = self.draft.fields.is_empty();
        if empty && !four && self.adjoining {
            self.take_late(number, &field);
        }
        if empty && !four {
            return;
        }
        // Behind a blank line a block goes on as long as it has no end yet (L-01); so does one without a next agent.
        let known = four || field.label != Label::Unknown || self.draft.is_half();
        if self.begins_another(&field) || (self.draft.blank && !empty && !known) {
            self.close();
            if !four {
                return;
            }
        }
        if self.draft.blank && !self.draft.fields.is_empty() {
            self.draft.notes.push(Deviation { line: number, how: How::BlankLine });
        }
        self.draft.blank = false;
        self.unsigned = false;
        self.adjoining = false;
        if self.draft.fields.is_empty() {
            self.draft.doubts.extend(self.withdrawn_heading.take());
        }
        self.draft.push(number, field);
    }

    /// A risk or a confidence behind a blank line still belongs to the block above it.
    fn take_late(&mut self, number: usize, field: &SignalField) {
        let Some(signal) = self.signals.last_mut() else { return };
        match field.label {
            Label::Risk => {
                signal.risk = signal.risk.max(self.risk.take());
                signal.deviations.retain(|deviation| deviation.how != How::MissingRisk);
                if signal.risk.is_none() {
                    note(signal, number, How::UnreadableRisk);
                }
            }
            Label::Confidence => {
                let (confidence, how) = values::confidence(&field.value);
                signal.confidence = confidence;
                signal.deviations.extend(how.map(|how| Deviation { line: number, how }));
            }
            Label::Agent
            | Label::Result
            | Label::Summary
            | Label::Next
            | Label::Signature
            | Label::Extra
            | Label::Unknown => {}
        }
    }

    /// A second agent begins another block, unless it is right below the first.
    fn begins_another(&self, field: &SignalField) -> bool {
        let spoken = self.draft.has(Label::Result) || self.draft.has(Label::Next) || self.draft.blank;
        field.label == Label::Agent && !field.is_alias && self.draft.has(Label::Agent) && spoken
    }

    fn take_signature(&mut self, number: usize, field: SignalField) {
        if !self.draft.fields.is_empty() {
            self.draft.push(number, field);
            return;
        }
        let Some(signal) = self.signals.last_mut().filter(|_| self.unsigned) else { return };
        signal.deviations.retain(|deviation| deviation.how != How::MissingSignature);
        sign(signal, number, &field.value);
        signal.last = number;
        self.unsigned = false;
    }

    fn close(&mut self) {
        let draft = std::mem::take(&mut self.draft);
        if !draft.is_block() {
            return;
        }
        let risk = self.risk.take();
        let signal = made(draft, risk);
        self.unsigned = signal.signature.is_none();
        self.adjoining = true;
        self.withdrawn_heading = None;
        self.signals.push(signal);
    }
}

fn is_break(text: &str) -> bool {
    let bare = text.trim();
    bare.len() >= 3 && bare.chars().all(|c| matches!(c, '-' | '*' | '_' | '='))
}

fn made(draft: Draft, risk: Option<Risk>) -> Signal {
    let first = draft.fields.first().map_or(0, |(line, _)| *line);
    let last = draft.fields.last().map_or(first, |(line, _)| *line);
    let mut signal = Signal { first, last, risk, deviations: draft.notes, ..Signal::default() };
    let (doubts, fields) = (draft.doubts, draft.fields);
    let (spare, fields) = without_spare_aliases(fields);
    note_form(&mut signal, &fields);
    note_order(&mut signal, &fields);
    take_values(&mut signal, &fields);
    take_back(&mut signal, &fields, &spare, doubts);
    note_combination(&mut signal);
    signal.deviations.sort_unstable();
    signal.deviations.dedup();
    signal.deviations.truncate(MAX_DEVIATIONS);
    signal
}

/// Lines and values of further fields for the result.
type SpareResults = Vec<(usize, String)>;

/// Another word for a field counts only where the right one is missing. Gives what such fields say about the result too.
fn without_spare_aliases(fields: Vec<(usize, SignalField)>) -> (SpareResults, Vec<(usize, SignalField)>) {
    let right: Vec<Label> =
        fields.iter().filter(|(_, field)| !field.is_alias).map(|(_, f)| f.label).collect();
    let spare = |field: &SignalField| field.is_alias && right.contains(&field.label);
    let results = fields.iter().filter(|(_, field)| field.label == Label::Result && spare(field));
    let results = results.map(|(line, field)| (*line, field.value.clone())).collect();
    let kept = fields.into_iter().map(|(line, field)| {
        if spare(&field) {
            (line, SignalField { label: Label::Extra, notes: Vec::new(), ..field })
        } else {
            (line, field)
        }
    });
    (results, kept.collect())
}

fn note(signal: &mut Signal, line: usize, how: How) {
    signal.deviations.push(Deviation { line, how });
}

fn note_form(signal: &mut Signal, fields: &[(usize, SignalField)]) {
    let last = fields.iter().rposition(|(_, field)| field.label.is_of_the_four()).unwrap_or(0);
    for (at, (line, field)) in fields.iter().enumerate() {
        let inside = at < last;
        match field.label {
            Label::Agent | Label::Result | Label::Summary | Label::Next => {
                signal.deviations.extend(field.notes.iter().map(|how| Deviation { line: *line, how: *how }));
            }
            Label::Risk | Label::Confidence | Label::Signature | Label::Extra if inside => {
                note(signal, *line, How::ExtraField);
            }
            Label::Unknown => note(signal, *line, How::UnknownField),
            Label::Risk | Label::Confidence | Label::Signature | Label::Extra => {}
        }
    }
}

fn note_order(signal: &mut Signal, fields: &[(usize, SignalField)]) {
    let place = |label: Label| Label::FOUR.iter().position(|other| *other == label);
    let places = fields.iter().filter_map(|(line, field)| Some((*line, place(field.label)?)));
    let places: Vec<(usize, usize)> = places.collect();
    let wrong = places.iter().zip(places.iter().skip(1)).find(|((_, one), (_, other))| one > other);
    if let Some((_, (line, _))) = wrong {
        note(signal, *line, How::Order);
    }
}

fn take_values(signal: &mut Signal, fields: &[(usize, SignalField)]) {
    if let Some((line, value)) = only(signal, fields, Label::Agent, How::MissingAgent) {
        let (agent, how) = values::agent(&value);
        signal.agent = agent;
        signal.deviations.extend(how.map(|how| Deviation { line, how }));
    }
    if let Some((line, value)) = only(signal, fields, Label::Result, How::MissingResult) {
        let (result, notes) = values::result(&value, signal.agent);
        signal.result = result;
        signal.deviations.extend(notes.into_iter().map(|how| Deviation { line, how }));
    }
    if let Some((_, value)) = only(signal, fields, Label::Summary, How::MissingSummary) {
        signal.summary = cap(&plain(&value), MAX_SUMMARY);
    }
    if let Some((line, value)) = only(signal, fields, Label::Next, How::MissingNext) {
        let (next, how) = values::next(&value);
        signal.next = next;
        signal.deviations.extend(how.map(|how| Deviation { line, how }));
    }
    for (line, field) in fields {
        match field.label {
            Label::Risk if values::risk(&field.value).is_none() => note(signal, *line, How::UnreadableRisk),
            Label::Confidence => {
                let (confidence, how) = values::confidence(&field.value);
                signal.confidence = confidence;
                signal.deviations.extend(how.map(|how| Deviation { line: *line, how }));
            }
            Label::Signature => sign(signal, *line, &field.value),
            Label::Agent
            | Label::Result
            | Label::Summary
            | Label::Next
            | Label::Risk
            | Label::Extra
            | Label::Unknown => {}
        }
    }
}

/// Another field for the result that says otherwise, a withdrawn author or next agent, or a withdrawing line around the
/// block takes the result back. A rejection stays one.
fn take_back(
    signal: &mut Signal,
    fields: &[(usize, SignalField)],
    spare: &[(usize, String)],
    doubts: Vec<usize>,
) {
    if matches!(signal.result, Some(Token::Insufficient | Token::Fail)) {
        return;
    }
    let others = spare.iter().filter(|(_, value)| values::contradicts(value, signal.result));
    let others = others.map(|(line, _)| *line);
    let named = fields.iter().filter(|(_, field)| matches!(field.label, Label::Agent | Label::Next));
    let named = named.filter(|(_, field)| is_struck_out(&field.value) || withdraws(&field.value));
    let found: Vec<usize> = others.chain(named.map(|(line, _)| *line)).chain(doubts).collect();
    for line in found {
        signal.result = None;
        note(signal, line, How::WithdrawnResult);
    }
}

/// The one value of a field. Two that differ are a conflict; the same twice is only noted.
fn only(
    signal: &mut Signal,
    fields: &[(usize, SignalField)],
    label: Label,
    missing: How,
) -> Option<(usize, String)> {
    let mut named = fields.iter().filter(|(_, field)| field.label == label && !field.value.is_empty());
    let Some((line, field)) = named.next() else {
        let line =
            fields.iter().find(|(_, field)| field.label == label).map_or(signal.first, |(line, _)| *line);
        note(signal, line, missing);
        return None;
    };
    for (again, other) in named {
        // Several summaries are no contradiction.
        let same = other.value == field.value || label == Label::Summary;
        note(signal, *again, if same { How::Repeated } else { How::Conflict });
    }
    Some((*line, field.value.clone()))
}

fn sign(signal: &mut Signal, line: usize, value: &str) {
    signal.signature = values::signature(value);
    let Some(signature) = &signal.signature else { return note(signal, line, How::UnreadableSignature) };
    let signer = values::signer(signature);
    if signer.is_some() && signal.agent.is_some() && signer != signal.agent {
        note(signal, line, How::SignatureDisagrees);
    }
}

/// What is only seen when all fields are there.
fn note_combination(signal: &mut Signal) {
    let line = signal.first;
    if signal.signature.is_none() && !signal.deviates(How::UnreadableSignature) {
        note(signal, line, How::MissingSignature);
    }
    let planned = signal.agent == Some(Speaker::Planner) && signal.next == Some(Speaker::Actor);
    if planned && signal.risk.is_none() && !signal.deviates(How::UnreadableRisk) {
        note(signal, line, How::MissingRisk);
    }
    let (Some(agent), Some(next)) = (signal.agent, signal.next) else { return };
    if signal.result.is_some_and(|token: Token| !route::may_say(agent, token)) {
        note(signal, line, How::NotTheirs);
    }
    let extended = matches!(
        (agent, signal.result, next),
        (Speaker::Actor, Some(Token::Fail), Speaker::Human)
            | (Speaker::Actor, Some(Token::Success), Speaker::Human | Speaker::Planner)
            | (Speaker::Judge, Some(Token::Pass), Speaker::Planner)
    );
    if extended {
        note(signal, line, How::ExtendedTriple);
    }
    if route::amounts_to(agent, signal.result, next).is_none() {
        note(signal, line, How::IllegalTriple);
    }
}
