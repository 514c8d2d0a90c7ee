//! What fits into a line of the log. The host writes no line of more than 262,144 bytes, so findings, which come in any
//! number, are bounded before they get there.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::{FindingLine, Tracked};
use crate::model::{Finding, Severity};

/// Bytes for findings in a line that holds other things too.
const ROOM: usize = 180_000;

/// The names of a few fields, and what else surrounds a text.
const AROUND: usize = 50;

/// An item of a list in a line.
pub(crate) trait Listed {
    fn severity(&self) -> Severity;

    /// About as many bytes as it takes.
    fn length(&self) -> usize;
}

/// As many as fit, in their order. A CRITICAL is never left out for a WARNING, wherever it is; within a severity
/// the first are kept.
pub(crate) fn fitting<T: Listed>(mut all: Vec<T>, most: usize) -> Vec<T> {
    let mut order: Vec<(usize, &T)> = all.iter().enumerate().collect();
    order.sort_by_key(|(at, one)| (Reverse(one.severity()), *at));
    let mut room = ROOM;
    let mut fits = |one: &T| {
        let left = room.checked_sub(one.length());
        room = left.unwrap_or(room);
        left.is_some()
    };
    let kept: BTreeSet<usize> =
        order.into_iter().take(most).take_while(|(_, one)| fits(one)).map(|(at, _)| at).collect();
    let mut at = 0..;
    all.retain(|_| at.next().is_some_and(|at| kept.contains(&at)));
    all
}

impl Listed for Finding {
    fn severity(&self) -> Severity {
        self.severity
    }

    fn length(&self) -> usize {
        let cited = self.citations.iter();
        let cited = cited.map(|one| AROUND + written(&one.file) + one.quote.as_deref().map_or(0, written));
        let texts = [&self.location, &self.file, &self.description, &self.fix, &self.evidence];
        AROUND * 4 + all(&texts) + cited.sum::<usize>()
    }
}

impl Listed for Tracked {
    fn severity(&self) -> Severity {
        self.severity
    }

    fn length(&self) -> usize {
        let sources = self.source.iter().map(|source| source.len() + 4).sum::<usize>();
        let also = self.also.iter().map(|remark| AROUND + all(&[&remark.source, &remark.description]));
        let texts = [&self.id, &self.file, &self.description, &self.fix, &self.anchor];
        AROUND * 4 + sources + all(&texts) + also.sum::<usize>()
    }
}

impl Listed for FindingLine {
    fn severity(&self) -> Severity {
        self.severity
    }

    fn length(&self) -> usize {
        AROUND * 3 + all(&[&self.location, &self.description, &self.fix, &self.source])
    }
}

fn all(texts: &[&String]) -> usize {
    texts.iter().map(|text| written(text)).sum()
}

/// How long a text is as a JSON string.
pub(crate) fn written(text: &str) -> usize {
    // Nearly all texts are written as they are; without a way out in the middle, many bytes are looked at in one step.
    let special = |byte: u8| u8::from(!(b' '..0x7f).contains(&byte) | (byte == b'"') | (byte == b'\\'));
    if text.bytes().fold(0, |any, byte| any | special(byte)) == 0 {
        return text.len();
    }
    let more = |byte: u8| match byte {
        b'"' | b'\\' | b'\n' | b'\t' | b'\r' => 1,
        0..=0x1f | 0x7f => 5,
        _ => 0,
    };
    let ascii: usize = text.bytes().map(more).sum();
    // Control characters beyond ASCII have two bytes.
    let beyond =
        if text.is_ascii() { 0 } else { text.chars().filter(|c| !c.is_ascii() && c.is_control()).count() };
    text.len() + ascii + 4 * beyond
}
