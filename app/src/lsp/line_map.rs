//! Where the lines of one text are in another: what a review cites, in the file as it is now.
//!
//! Lines are paired as a diff pairs them: from both ends, then by lines that both texts have exactly once, then by the
//! longest common sequence where little is left. The result depends on the two texts only, so it is the same after any
//! sequence of edits, and an undo brings a line back.

use std::collections::HashMap;

/// Lines times lines that are compared one by one.
const SMALL: usize = 250_000;
/// Blocks that are looked into; what is left after that counts as changed.
const BLOCKS: usize = 20_000;
/// A shorter line is found again in too many places.
const TELLING: usize = 4;

/// What became of a line. Lines are counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineFate {
    Kept(usize),
    /// Another line has its place.
    Changed(usize),
    Deleted,
}

pub(super) struct LineMap {
    /// For each old line the new one.
    pairs: Vec<Option<usize>>,
    new: usize,
}

impl LineMap {
    pub(super) fn between(old: &[u8], new: &[u8]) -> LineMap {
        let (old, new) = (lines(old), lines(new));
        let mut map = LineMap { pairs: vec![None; old.len()], new: new.len() };
        map.pair(&old, &new);
        map.find_moved(&old, &new);
        map
    }

    pub(super) fn fate(&self, line: usize) -> LineFate {
        match self.pairs.get(line) {
            Some(Some(kept)) => LineFate::Kept(*kept),
            Some(None) => self.of_unpaired(line),
            None => LineFate::Deleted,
        }
    }

    /// By the nearest lines before and after it that were kept.
    fn of_unpaired(&self, line: usize) -> LineFate {
        let before = (0..line).rev().find_map(|at| Some((at, self.pairs[at]?)));
        let after = self.pairs[line + 1..].iter().find_map(|pair| *pair).unwrap_or(self.new);
        let (first, skipped) = before.map_or((0, line), |(at, kept)| (kept + 1, line - at - 1));
        if first >= after {
            return LineFate::Deleted;
        }
        LineFate::Changed((first + skipped).min(after - 1))
    }

    fn pair(&mut self, old: &[&[u8]], new: &[&[u8]]) {
        let mut blocks = vec![(0..old.len(), 0..new.len())];
        let mut looked = 0;
        while let Some((mut ours, mut theirs)) = blocks.pop() {
            looked += 1;
            while !ours.is_empty() && !theirs.is_empty() && old[ours.start] == new[theirs.start] {
                self.pairs[ours.start] = Some(theirs.start);
                (ours.start, theirs.start) = (ours.start + 1, theirs.start + 1);
            }
            while !ours.is_empty() && !theirs.is_empty() && old[ours.end - 1] == new[theirs.end - 1] {
                (ours.end, theirs.end) = (ours.end - 1, theirs.end - 1);
                self.pairs[ours.end] = Some(theirs.end);
            }
            if ours.is_empty() || theirs.is_empty() || looked > BLOCKS {
                continue;
            }
            let anchors = anchors(&old[ours.clone()], &new[theirs.clone()]);
            if anchors.is_empty() {
                if ours.len().saturating_mul(theirs.len()) <= SMALL {
                    for (a, b) in common(&old[ours.clone()], &new[theirs.clone()]) {
                        self.pairs[ours.start + a] = Some(theirs.start + b);
                    }
                }
                continue;
            }
            let (mut a, mut b) = (ours.start, theirs.start);
            for (x, y) in anchors {
                let (x, y) = (ours.start + x, theirs.start + y);
                self.pairs[x] = Some(y);
                blocks.push((a..x, b..y));
                (a, b) = (x + 1, y + 1);
            }
            blocks.push((a..ours.end, b..theirs.end));
        }
    }

    /// A line that was cut and put elsewhere, or only indented: its text is among the new lines exactly once.
    fn find_moved(&mut self, old: &[&[u8]], new: &[&[u8]]) {
        let mut is_new = vec![true; new.len()];
        for kept in self.pairs.iter().flatten() {
            is_new[*kept] = false;
        }
        let lost = (0..old.len()).filter(|line| self.pairs[*line].is_none());
        let ours = once(lost.map(|line| (line, old[line].trim_ascii())));
        let theirs = once((0..new.len()).filter(|at| is_new[*at]).map(|at| (at, new[at].trim_ascii())));
        for (text, line) in ours {
            if let (Some(line), Some(Some(at))) = (line, theirs.get(text))
                && text.len() >= TELLING
            {
                self.pairs[line] = Some(*at);
            }
        }
    }
}

/// Lines without their ends. A file may have `\r\n` in the editor and `\n` in git.
fn lines(text: &[u8]) -> Vec<&[u8]> {
    if text.is_empty() {
        return Vec::new();
    }
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    text.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line)).collect()
}

/// Each text with its only line, or nothing where it has several.
fn once<'a>(lines: impl Iterator<Item = (usize, &'a [u8])>) -> HashMap<&'a [u8], Option<usize>> {
    let mut found = HashMap::new();
    for (line, text) in lines {
        found.entry(text).and_modify(|only| *only = None).or_insert(Some(line));
    }
    found
}

/// Lines that both have exactly once, in an order that both have.
fn anchors(old: &[&[u8]], new: &[&[u8]]) -> Vec<(usize, usize)> {
    let theirs = once(new.iter().copied().enumerate());
    let ours = once(old.iter().copied().enumerate());
    let both = old.iter().enumerate().filter(|(_, text)| matches!(ours.get(*text), Some(Some(_))));
    let pairs: Vec<(usize, usize)> =
        both.filter_map(|(line, text)| Some((line, (*theirs.get(text)?)?))).collect();
    longest_rising(&pairs)
}

/// The longest sequence of pairs whose second numbers rise. Their first numbers do.
fn longest_rising(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = vec![None; pairs.len()];
    for (at, (_, second)) in pairs.iter().enumerate() {
        let place = ends.partition_point(|end| pairs[*end].1 < *second);
        before[at] = place.checked_sub(1).map(|place| ends[place]);
        match ends.get_mut(place) {
            Some(end) => *end = at,
            None => ends.push(at),
        }
    }
    let chain = std::iter::successors(ends.last().copied(), |at| before[*at]);
    let mut found: Vec<(usize, usize)> = chain.map(|at| pairs[at]).collect();
    found.reverse();
    found
}

/// The longest common sequence.
fn common(old: &[&[u8]], new: &[&[u8]]) -> Vec<(usize, usize)> {
    let width = new.len() + 1;
    let mut length = vec![0_u32; (old.len() + 1) * width];
    for a in (0..old.len()).rev() {
        for b in (0..new.len()).rev() {
            length[a * width + b] = if old[a] == new[b] {
                length[(a + 1) * width + b + 1] + 1
            } else {
                length[(a + 1) * width + b].max(length[a * width + b + 1])
            };
        }
    }
    let (mut a, mut b, mut found) = (0, 0, Vec::new());
    while a < old.len() && b < new.len() {
        if old[a] == new[b] {
            found.push((a, b));
            (a, b) = (a + 1, b + 1);
        } else if length[(a + 1) * width + b] >= length[a * width + b + 1] {
            a += 1;
        } else {
            b += 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u_16_a_line_is_followed_through_edits() {
        use LineFate::{Changed, Deleted, Kept};
        for (old, new, line, fate) in [
            ("a\nb\nc", "a\nb\nc", 1, Kept(1)),
            ("a\nb\nc", "x\ny\na\nb\nc", 1, Kept(3)),
            ("a\nb\nc\n", "a\r\nb\r\nc\r\n", 2, Kept(2)),
            ("a\nb\nc", "a\nB\nc", 1, Changed(1)),
            ("a\nb\nc\nd", "a\nB\nd", 2, Changed(1)),
            ("a\nb\nc", "a\nc", 1, Deleted),
            ("a\nb\nc", "", 1, Deleted),
            ("a\nb\nc", "x", 1, Changed(0)),
            ("a\nb", "a\nb", 7, Deleted),
            ("{\n}\n{\n}\n", "{\n}\n{\n}\n{\n}\n", 1, Kept(1)),
            ("one\nlet cited = 1;\ntwo\n", "one\ntwo\n    let cited = 1;\n", 1, Kept(2)),
            ("q\nsame\nsame\nz\n", "same\nq\nz\n", 1, Deleted),
            ("", "", 0, Deleted),
        ] {
            assert_eq!(LineMap::between(old.as_bytes(), new.as_bytes()).fate(line), fate, "{old:?} {new:?}");
        }
    }

    #[test]
    fn u_16_large_and_odd_files_are_compared_in_a_moment() {
        let many = |word: &str, count: usize| format!("{word}\n").repeat(count);
        let numbered: String = (0..100_000).map(|n| format!("line {n}\n")).collect();
        let turned: String = (0..100_000).rev().map(|n| format!("line {n}\n")).collect();
        for (old, new) in [
            (many("a", 100_000), many("b", 100_000)),
            (many("a", 100_000), many("b", 1) + &many("a", 100_000)),
            (numbered.clone(), turned),
            (numbered.clone(), numbered.replace("line 5", "other 5")),
        ] {
            let map = LineMap::between(old.as_bytes(), new.as_bytes());
            let kept = |line: &usize| map.fate(*line) != LineFate::Deleted;
            assert!([0, 50_000, 99_999].iter().all(kept));
        }
    }
}
