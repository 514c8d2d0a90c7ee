//! A Creator's proposal (AF-052): the parts the machine acts on. The text itself goes to the Maker unread.

use std::collections::BTreeSet;

use super::Problems;
use super::lines::{LineKind, TextLine};
use super::place;
use super::sections::{self, SectionedText};
use super::spelling;
use super::table;
use super::text::{between, bullet, cap, head, is_dash, is_emoji, is_none, plain, spans, tail, unbullet};
use crate::model::{Confidence, Disposition, Millionths, Prior, Proposal};

/// The headings a proposal must have.
pub(crate) const HEADINGS: [&str; 6] =
    ["Architecture", "Files", "Alternatives", "Test strategy", "Confidence", "Risks"];

const MAX_FILES: usize = 1000;
pub(super) const MAX_PRIOR: usize = 500;

pub(crate) fn proposal(page: &SectionedText, problems: &mut Problems) -> Proposal {
    let missing = HEADINGS.iter().filter(|heading| page.range(heading).is_none());
    Proposal {
        files: files(page, problems),
        confidence: confidence(page, problems),
        has_test_strategy: page.body("Test strategy").is_some_and(sections::says_something),
        alternatives: page.body("Alternatives").map_or(0, alternatives),
        missing: missing.map(|heading| (*heading).to_owned()).collect(),
    }
}

/// One path per list item, row or sub-heading. The items below one with a path describe it and are passed over.
fn files(page: &SectionedText, problems: &mut Problems) -> Vec<String> {
    let Some((start, end)) = page.range("Files") else { return Vec::new() };
    let lines = &page.lines;
    let mut files = Vec::new();
    let mut seen = BTreeSet::new();
    let mut described: Option<u32> = None;
    for (at, line) in
        lines.iter().enumerate().take(end).skip(start).filter(|(_, line)| line.kind == LineKind::Plain)
    {
        let listed = bullet(line.text.trim()).is_some() && !table::is_row(line.text);
        if described.is_some_and(|indent| line.indent > indent) {
            continue;
        }
        described = None;
        let Some(entry) = entry(lines, at, line, listed) else { continue };
        let Some(path) = path_in(&entry) else { continue };
        if listed {
            described = Some(line.indent);
        }
        match place::inside(path) {
            Some(path) if files.len() < MAX_FILES => {
                if seen.insert(path.clone()) {
                    files.push(path);
                }
            }
            Some(_) => problems.at(at, "more files than anybody will change"),
            None => problems.at(at, format_args!("{:?} is not a path inside the repository", cap(path, 80))),
        }
    }
    files
}

/// The text in which a line would name a file.
fn entry(lines: &[TextLine], at: usize, line: &TextLine, listed: bool) -> Option<String> {
    let text = line.text.trim();
    if listed {
        return Some(unbullet(text).to_owned());
    }
    if table::is_row(text) {
        let header = table::begins(lines, at) || table::is_rule(text);
        let cells = if header { Vec::new() } else { table::cells(text, None) };
        return cells.into_iter().find(|cell| path_in(cell).is_some());
    }
    let title = sections::heading(line).filter(|_| text.starts_with('#'))?.1;
    Some(title.to_owned())
}

/// The path an entry is about: the first in code, or else the first word that looks like one.
fn path_in(entry: &str) -> Option<&str> {
    for span in spans(entry).iter().take(8) {
        let code = between(entry, span.start, span.end).trim();
        let named = !code.contains(char::is_whitespace) || place::has_extension(code.trim_matches('"'));
        let alone = span.open <= 2 && !code.is_empty() && named;
        if alone || place::is_path(code) {
            return Some(unlined(code));
        }
    }
    let bare = entry.trim_start_matches(['*', '_', '(', '[', ' ']);
    let blanks = || spelling::with_blanks(bare, place::has_extension).map(|end| head(bare, end));
    if let Some(path) = spelling::quoted(bare).map(|(path, _)| path).or_else(blanks) {
        return Some(unlined(path));
    }
    let mut words = entry.split_whitespace().map(|word| {
        let word = word.trim_start_matches(['*', '_', '(', '[', '"']);
        word.trim_end_matches(['*', ':', ',', ';', '.', ')', ']', '"'])
    });
    let first = words.next().filter(|word| place::is_path(word));
    first
        .or_else(|| words.take(12).find(|word| place::has_extension(word) && word.contains('/')))
        .map(unlined)
}

/// A file is listed without a line.
fn unlined(path: &str) -> &str {
    match path.rsplit_once(':') {
        Some((file, line)) if !line.is_empty() && line.bytes().all(|b| b.is_ascii_digit() || b == b'-') => {
            file
        }
        _ => path,
    }
}

/// The larger of the ways to list them, so that a table under a sub-heading is not counted twice.
fn alternatives(lines: &[TextLine]) -> u32 {
    let said = || lines.iter().enumerate().filter(|(_, line)| line.kind == LineKind::Plain);
    let items: Vec<u32> =
        said().filter(|(_, l)| bullet(l.text.trim()).is_some()).map(|(_, l)| l.indent).collect();
    let outer = items.iter().min().copied().unwrap_or(0);
    let items = items.iter().filter(|indent| **indent <= outer + 1).count();
    let none = said().all(|(_, line)| is_none(unbullet(line.text.trim())));
    let headings = said().filter(|(_, line)| sections::heading(line).is_some()).count();
    let rows = said().filter(|(at, line)| is_body_row(lines, *at, line)).count();
    let most = items.max(headings).max(rows);
    if none { 0 } else { u32::try_from(most).unwrap_or(u32::MAX) }
}

fn is_body_row(lines: &[TextLine], at: usize, line: &TextLine) -> bool {
    table::is_row(line.text) && !table::is_rule(line.text) && !table::begins(lines, at)
}

// Confidence (AF-053).

const AXES: [&str; 3] = ["task understanding", "solution completeness", "risk coverage"];

/// What is known of one axis so far.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Score {
    Missing,
    Unreadable,
    Read(Millionths),
}

fn confidence(page: &SectionedText, problems: &mut Problems) -> Confidence {
    let mut scores = [Score::Missing; 3];
    if let Some((start, end)) = page.range("Confidence") {
        for (line, axis, text) in stated_scores(&page.lines, start, end) {
            let Some(score) = scores.get_mut(axis) else { continue };
            let said = millionths(&text).map_or(Score::Unreadable, Score::Read);
            let contradicts = *score != Score::Missing && *score != said;
            if said == Score::Unreadable || contradicts {
                let what =
                    if contradicts { "contradicts an earlier one" } else { "is not a decimal from 0 to 1" };
                problems.at(line, format_args!("the score {:?} {what}", cap(&text, 40)));
            }
            *score = if contradicts { Score::Unreadable } else { said };
        }
    }
    for (axis, score) in AXES.iter().zip(scores) {
        if score == Score::Missing {
            problems.note(format!("no confidence in {axis}"));
        }
    }
    let [task, solution, risk] = scores.map(|score| match score {
        Score::Read(millionths) => Some(millionths),
        Score::Missing | Score::Unreadable => None,
    });
    Confidence { task_understanding: task, solution_completeness: solution, risk_coverage: risk }
}

/// Line, axis and score as written, from rows, list items and lines.
fn stated_scores(lines: &[TextLine], start: usize, end: usize) -> Vec<(usize, usize, String)> {
    let mut stated = Vec::new();
    let mut header: Vec<String> = Vec::new();
    for (at, line) in
        lines.iter().enumerate().take(end).skip(start).filter(|(_, line)| line.kind == LineKind::Plain)
    {
        if !table::is_row(line.text) {
            header.clear();
            stated.extend(score_of_line(line.text).map(|(axis, score)| (at, axis, score)));
            continue;
        }
        if table::is_rule(line.text) {
            continue;
        }
        let cells = table::cells(line.text, None);
        if table::begins(lines, at) || cells.iter().any(|cell| is_score_column(cell)) {
            header = cells;
            continue;
        }
        let axis = cells.iter().enumerate().find_map(|(column, cell)| Some((column, axis(cell)?)));
        match axis {
            Some((column, axis)) => stated.push((at, axis, score_of_row(&header, &cells, column))),
            // The axes may be the columns.
            None => stated.extend(
                header
                    .iter()
                    .zip(&cells)
                    .filter_map(|(name, cell)| Some((at, axis_exact(name)?, cell.clone()))),
            ),
        }
    }
    stated
}

fn is_score_column(cell: &str) -> bool {
    matches!(plain(cell).to_lowercase().as_str(), "score" | "confidence" | "value" | "rating")
}

fn axis(cell: &str) -> Option<usize> {
    let text = plain(cell).to_lowercase();
    let text = text.trim_start_matches(|c: char| !c.is_alphanumeric());
    AXES.iter().position(|axis| text.starts_with(axis))
}

fn axis_exact(cell: &str) -> Option<usize> {
    let text = plain(cell).to_lowercase();
    AXES.iter().position(|axis| text == *axis)
}

fn score_of_row(header: &[String], cells: &[String], axis: usize) -> String {
    let named = header.iter().position(|cell| is_score_column(cell));
    let beside = if axis + 1 < cells.len() { axis + 1 } else { axis.wrapping_sub(1) };
    cells.get(named.unwrap_or(beside)).cloned().unwrap_or_default()
}

/// `Task understanding: 0.8 (because …)`. What follows the number must not be another one.
fn score_of_line(text: &str) -> Option<(usize, String)> {
    let text = plain(unbullet(text.trim()));
    let axis = axis(&text)?;
    let (_, score) = text.split_once([':', '=', '–', '—'])?;
    let score = score.trim();
    let end = score.find(char::is_whitespace).unwrap_or(score.len());
    let (number, why) = score.split_at_checked(end)?;
    let why = why.trim_start();
    let reasoned = why.starts_with(|c| is_dash(c) || c == '(')
        && !why.trim_start_matches(|c: char| !c.is_alphanumeric()).starts_with(|c: char| c.is_ascii_digit());
    let whole =
        if reasoned { number.trim_end_matches([',', ';', '.']) } else { score.trim_end_matches(['.', ';']) };
    Some((axis, whole.to_owned()))
}

/// An exact decimal in [0, 1], cut to millionths and never rounded.
pub(crate) fn millionths(cell: &str) -> Option<Millionths> {
    let text = cell.trim_matches(|c: char| c.is_whitespace() || is_emoji(c) || matches!(c, '*' | '_' | '`'));
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return None;
    }
    match whole.trim_start_matches('0') {
        "" => {
            let digits = fraction.bytes().chain(std::iter::repeat(b'0')).take(6);
            Some(digits.fold(0, |sum, digit| sum * 10 + Millionths::from(digit - b'0')))
        }
        "1" if fraction.bytes().all(|b| b == b'0') => Some(1_000_000),
        _ => None,
    }
}

// Prior issues.

/// What became of earlier findings: each line or row under `Prior issues` with one of four words.
pub(crate) fn prior(page: &SectionedText, problems: &mut Problems) -> Vec<Prior> {
    let Some((start, end)) = page.range("Prior issues") else { return Vec::new() };
    let lines = &page.lines;
    let mut prior = Vec::new();
    for (at, line) in lines.iter().enumerate().take(end).skip(start) {
        let is_head = table::is_rule(line.text) || table::begins(lines, at);
        if line.kind != LineKind::Plain || is_head || prior.len() >= MAX_PRIOR {
            continue;
        }
        match disposition(line.text) {
            DispositionChoice::Nothing => {}
            DispositionChoice::One(disposition) => {
                let text = if table::is_row(line.text) {
                    table::cells(line.text, None).join(" | ")
                } else {
                    unbullet(line.text.trim()).to_owned()
                };
                prior.push(Prior { disposition, text: cap(&text, 1000) });
            }
            DispositionChoice::Several => problems.at(at, "more than one disposition"),
        }
    }
    prior
}

enum DispositionChoice {
    Nothing,
    One(Disposition),
    Several,
}

/// The disposition a line states. Of several words the one that is a label counts: alone in a cell, or right
/// after a colon or a dash.
fn disposition(text: &str) -> DispositionChoice {
    if table::is_row(text) {
        let cells = table::cells(text, None);
        let mut alone = cells.iter().filter_map(|cell| word(&plain(cell)));
        if let Some(disposition) = alone.next() {
            return if alone.all(|other| other == disposition) {
                DispositionChoice::One(disposition)
            } else {
                DispositionChoice::Several
            };
        }
    }
    let mut any = BTreeSet::new();
    let mut labels = BTreeSet::new();
    let mut negated = false;
    let mut end = 0;
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '\'');
    for found in words {
        let start = end;
        end = start + found.len() + tail(text, start + found.len()).chars().next().map_or(0, char::len_utf8);
        if found.is_empty() {
            continue;
        }
        if let Some(disposition) = word(found).filter(|_| !negated) {
            any.insert(disposition);
            let before = between(text, 0, start).trim_end_matches(['*', '_', '`', ' ', '[', '(']);
            if before.is_empty() || before.ends_with(|c| c == ':' || is_dash(c)) {
                labels.insert(disposition);
            }
        }
        negated = ["not", "never", "isn't", "wasn't", "no"].iter().any(|no| found.eq_ignore_ascii_case(no));
    }
    let chosen = if labels.is_empty() { any } else { labels };
    let mut chosen = chosen.into_iter();
    match (chosen.next(), chosen.next()) {
        (None, _) => DispositionChoice::Nothing,
        (Some(one), None) => DispositionChoice::One(one),
        (Some(_), Some(_)) => DispositionChoice::Several,
    }
}

fn word(text: &str) -> Option<Disposition> {
    let known = [
        ("fixed", Disposition::Fixed),
        ("deferred", Disposition::Deferred),
        ("accepted", Disposition::Accepted),
        ("disputed", Disposition::Disputed),
    ];
    known.into_iter().find(|(name, _)| text.eq_ignore_ascii_case(name)).map(|(_, disposition)| disposition)
}
