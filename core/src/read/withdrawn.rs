//! An approval that the same answer takes back in prose.
//!
//! `VERDICT: APPROVED`, and further down *I take my approval back*: what counts is not for a reader of words to say, so the
//! answer is unclear and asked for again (`docs/rules/endings.md`). Tables, fences, quotations and what is in quotation marks
//! are not the reviewer's word about its verdict.

use super::lines::{LineKind, TextLine};
use super::table;
use super::text::{bullet, head, tail};
use super::words::{self, NO_WITHDRAWAL, REJECTED_AFTER_ALL, REJECTED_ALONE, WITHDRAWALS};

/// The line behind `verdict` that begins the paragraph in which the approval is taken back.
pub(super) fn taken_back(lines: &[TextLine], verdict: usize) -> Option<usize> {
    let mut paragraph = (0, String::new());
    for (at, line) in lines.iter().enumerate().skip(verdict.saturating_add(1)) {
        let own = line.kind == LineKind::Plain && !table::is_row(line.text);
        let bare = line.text.trim();
        let begins = !own || bare.starts_with('#') || bullet(bare).is_some();
        if begins && withdraws(&paragraph.1) {
            return Some(paragraph.0);
        }
        if begins || paragraph.1.is_empty() {
            paragraph = (at, String::new());
        }
        if own {
            paragraph.1.push_str(bare);
            paragraph.1.push(' ');
        }
        // A heading is a paragraph of its own.
        if own && bare.starts_with('#') {
            if withdraws(&paragraph.1) {
                return Some(at);
            }
            paragraph.1.clear();
        }
    }
    withdraws(&paragraph.1).then_some(paragraph.0)
}

fn withdraws(paragraph: &str) -> bool {
    let said = without_quotations(paragraph);
    said.split(['.', '!', '?', ';', '—', '–', '。', '！']).any(|sentence| {
        let alone = sentence.rsplit([':', '：']).next().unwrap_or(sentence);
        let alone = alone.trim_matches(|c: char| !c.is_alphanumeric());
        if REJECTED_ALONE.contains(&alone) {
            return true;
        }
        let key = words::key(&sentence.replace([',', ':', '(', ')'], " "));
        REJECTED_AFTER_ALL.contains(&key.as_str()) || WITHDRAWALS.iter().any(|phrase| says(&key, phrase))
    })
}

/// The sentence has these words, one after the other, `…` being up to three others; and none before them that turns them
/// round, such as `no reason to`.
fn says(sentence: &str, phrase: &str) -> bool {
    let (first, rest) = phrase.split_once(" … ").unwrap_or((phrase, ""));
    if !sentence.contains(first) {
        return false;
    }
    let words: Vec<&str> = sentence.split(' ').collect();
    let (first, rest): (Vec<&str>, Vec<&str>) =
        (first.split(' ').collect(), rest.split(' ').filter(|word| !word.is_empty()).collect());
    (0..words.len()).any(|at| {
        let (before, here) = words.split_at(at);
        let Some(behind) = here.strip_prefix(first.as_slice()) else { return false };
        let gaps = if rest.is_empty() { 0..=0 } else { 1..=3 };
        let ends = gaps.filter_map(|gap| behind.get(gap..)).any(|behind| behind.starts_with(&rest));
        ends && !before.iter().any(|word| NO_WITHDRAWAL.contains(word))
    })
}

fn without_quotations(text: &str) -> String {
    let mut own = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((at, open)) = rest.char_indices().find(|(_, c)| closing(*c).is_some()) {
        let behind = tail(rest, at + open.len_utf8());
        let close = behind.char_indices().find(|(_, c)| closing(open).is_some_and(|marks| marks.contains(c)));
        own.push_str(head(rest, at));
        own.push(' ');
        // One that is never closed quotes nothing.
        rest = close.map_or(behind, |(end, mark)| tail(behind, end + mark.len_utf8()));
    }
    own.push_str(rest);
    own
}

fn closing(open: char) -> Option<&'static [char]> {
    Some(match open {
        '`' => &['`'],
        '"' => &['"'],
        '“' => &['”'],
        '„' => &['“', '”'],
        '«' => &['»'],
        '»' => &['«'],
        '「' => &['」'],
        _ => return None,
    })
}
