//! The text of a file as its editor has it, and positions in it: a line and a column in the units that were agreed on.

use lsp_types::{Position, Range, TextDocumentContentChangeEvent};

/// What columns count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum ColumnUnit {
    Utf8,
    /// Every client has it.
    #[default]
    Utf16,
}

impl ColumnUnit {
    pub(super) fn name(self) -> &'static str {
        match self {
            ColumnUnit::Utf8 => "utf-8",
            ColumnUnit::Utf16 => "utf-16",
        }
    }

    fn of(self, c: char) -> usize {
        match self {
            ColumnUnit::Utf8 => c.len_utf8(),
            ColumnUnit::Utf16 => c.len_utf16(),
        }
    }
}

/// A file that is open in the editor.
#[derive(Debug)]
pub(super) struct OpenDocument {
    /// As the client writes its address.
    pub(super) uri: lsp_types::Uri,
    pub(super) version: i32,
    pub(super) text: String,
}

impl OpenDocument {
    /// Changes in their order; one without a range is the whole text.
    pub(super) fn change(&mut self, changes: Vec<TextDocumentContentChangeEvent>, unit: ColumnUnit) {
        let mut lines = None;
        for change in changes {
            let Some(range) = change.range else {
                self.text = change.text;
                lines = None;
                continue;
            };
            let lines = lines.get_or_insert_with(|| EditorLines::of(&self.text));
            let ends = [range.start, range.end].map(|position| lines.offset(&self.text, position, unit));
            let bytes = ends[0].min(ends[1])..ends[0].max(ends[1]);
            self.text.replace_range(bytes.clone(), &change.text);
            lines.replaced(&self.text, &bytes, change.text.len());
        }
    }
}

/// Where the lines of a text begin, as editors count them: after `\n`, `\r\n` and a lone `\r`.
pub(super) struct EditorLines(Vec<usize>);

impl EditorLines {
    pub(super) fn of(text: &str) -> EditorLines {
        let mut starts = vec![0];
        starts.extend(starts_in(text, 0..text.len()));
        EditorLines(starts)
    }

    /// After these bytes were replaced by `new` others: only the lines around them are looked at again.
    fn replaced(&mut self, text: &str, old: &std::ops::Range<usize>, new: usize) {
        // One line more on both sides: the edit may have joined or parted a `\r\n`.
        let first = self.0.partition_point(|start| *start <= old.start).saturating_sub(2);
        let after = self.0.partition_point(|start| *start <= old.end + 1);
        let moved = |start: usize| start + new - old.len();
        let tail: Vec<usize> = self.0.drain(after..).map(moved).collect();
        let from = self.0.get(first).copied().unwrap_or(0);
        self.0.truncate(first + 1);
        let to = tail.first().map_or(text.len(), |start| start.saturating_sub(1));
        self.0.extend(starts_in(text, from..to));
        self.0.extend(tail);
    }

    /// The byte at a position. What is outside is brought inside: a line to the end of the text, a column to the end of
    /// its line or the beginning of its character.
    fn offset(&self, text: &str, position: Position, unit: ColumnUnit) -> usize {
        let line = usize::try_from(position.line).unwrap_or(usize::MAX);
        let Some(start) = self.0.get(line).copied() else { return text.len() };
        let wanted = usize::try_from(position.character).unwrap_or(usize::MAX);
        let mut column = 0;
        for (at, c) in text[start..].char_indices() {
            column += unit.of(c);
            if column > wanted || matches!(c, '\n' | '\r') {
                return start + at;
            }
        }
        text.len()
    }

    fn position(&self, text: &str, offset: usize, unit: ColumnUnit) -> Position {
        let line = self.0.partition_point(|start| *start <= offset).saturating_sub(1);
        let start = self.0.get(line).copied().unwrap_or(0);
        let before = text.get(start..offset).unwrap_or_default();
        let column: usize = before.chars().map(|c| unit.of(c)).sum();
        let narrow = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Position { line: narrow(line), character: narrow(column) }
    }

    pub(super) fn range(&self, text: &str, bytes: std::ops::Range<usize>, unit: ColumnUnit) -> Range {
        Range { start: self.position(text, bytes.start, unit), end: self.position(text, bytes.end, unit) }
    }
}

/// Where lines begin that end within these bytes.
fn starts_in(text: &str, bytes: std::ops::Range<usize>) -> impl Iterator<Item = usize> {
    let all = text.as_bytes();
    let part = all.get(bytes.clone()).unwrap_or_default().iter().zip(bytes);
    part.filter_map(|(byte, at)| {
        let ends = match byte {
            b'\n' => true,
            b'\r' => all.get(at + 1) != Some(&b'\n'),
            _ => false,
        };
        ends.then_some(at + 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Line breaks of all kinds are inserted, joined and parted; the lines are those of the whole text each time.
    #[test]
    fn u_16_lines_are_kept_over_many_edits() {
        let pieces = ["", "a", "\n", "\r", "\r\n", "bc\nd", "\n\r", "😀"];
        let mut text = "one\r\ntwo\nthree\rfour".to_owned();
        let mut lines = EditorLines::of(&text);
        let mut random = 7_u64;
        let mut next = |below: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(random >> 33).unwrap_or(0) % below.max(1)
        };
        for round in 0..20_000 {
            let mut ends = [next(text.len() + 1), next(text.len() + 1)];
            ends.sort_unstable();
            if text.len() < 60 {
                ends[1] = ends[0].max(ends[1].min(ends[0] + 3));
            }
            if !ends.iter().all(|end| text.is_char_boundary(*end)) {
                continue;
            }
            let piece = pieces[next(pieces.len())];
            text.replace_range(ends[0]..ends[1], piece);
            lines.replaced(&text, &(ends[0]..ends[1]), piece.len());
            assert_eq!(lines.0, EditorLines::of(&text).0, "{round}: {text:?}");
        }
    }

    fn document(text: &str) -> OpenDocument {
        let uri = super::super::address::uri_of(std::path::Path::new("/a")).expect("an address");
        OpenDocument { uri, version: 1, text: text.to_owned() }
    }

    fn edit(range: Option<[u32; 4]>, text: &str) -> TextDocumentContentChangeEvent {
        let range = range.map(|[line, character, to_line, to_character]| Range {
            start: Position { line, character },
            end: Position { line: to_line, character: to_character },
        });
        TextDocumentContentChangeEvent { range, range_length: None, text: text.to_owned() }
    }

    #[test]
    fn u_16_edits_are_made_where_the_client_means() {
        use ColumnUnit::{Utf8, Utf16};
        for (before, unit, range, text, after) in [
            ("a\nb\n", Utf16, Some([1, 0, 1, 1]), "c", "a\nc\n"),
            ("x😀y", Utf16, Some([0, 3, 0, 4]), "z", "x😀z"),
            ("x😀y", Utf8, Some([0, 5, 0, 6]), "z", "x😀z"),
            ("x😀y", Utf16, Some([0, 2, 0, 2]), "-", "x-😀y"),
            ("a\r\nb", Utf16, Some([0, 9, 1, 0]), " ", "a b"),
            ("a\rb\nc", Utf16, Some([1, 0, 2, 0]), "", "a\rc"),
            ("a", Utf16, Some([7, 7, 9, 9]), "b", "ab"),
            ("abc", Utf16, Some([0, 2, 0, 1]), "-", "a-c"),
            ("abc", Utf16, None, "d", "d"),
            ("a\n", Utf16, Some([u32::MAX, u32::MAX, u32::MAX, u32::MAX]), "b", "a\nb"),
        ] {
            let mut document = document(before);
            document.change(vec![edit(range, text)], unit);
            assert_eq!(document.text, after, "{before:?} {range:?}");
        }
    }

    #[test]
    fn u_16_columns_are_counted_in_the_agreed_unit() {
        let text = "é😀\tx\r\ny";
        let lines = EditorLines::of(text);
        let x = text.find('x').expect("it is there");
        for (unit, column) in [(ColumnUnit::Utf8, 7), (ColumnUnit::Utf16, 4)] {
            let range = lines.range(text, x..text.len(), unit);
            assert_eq!((range.start.line, range.start.character), (0, column), "{unit:?}");
            assert_eq!((range.end.line, range.end.character), (1, 1), "{unit:?}");
        }
    }
}
