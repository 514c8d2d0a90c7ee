//! The part that is being filled. It never grows beyond its limit: what does not fit goes to the next one, in the largest
//! unit that keeps things together.

use super::hunk::{self, Walk};
use super::{DiffPart, SplitOutput, text};

/// Space reserved for a remark after the lines, and for a header whose numbers grow when it is rewritten.
const SLACK: usize = 160;
const LONGEST_REMARK: usize = 64;

#[derive(Debug)]
pub(super) struct Open {
    limit: usize,
    summarised: Vec<String>,
    number: u32,
    text: String,
    /// Where what comes after the preamble begins.
    body: usize,
    files: u32,
    lines: u64,
    file: Option<Placed>,
    hunk: Option<Piece>,
}

/// The file that is being written, where it begins in this part, and what was in the part before it.
#[derive(Debug)]
struct Placed {
    header: Vec<String>,
    at: usize,
    lines_before: u64,
    first: u32,
}

/// The hunk, or the rest of it, that is being written.
#[derive(Debug)]
struct Piece {
    section: String,
    from: Walk,
    to: Walk,
    at: usize,
    /// Where its lines begin, after its header.
    body: usize,
    lines_before: u64,
}

impl Open {
    pub(super) fn new(limit: usize, summarised: Vec<String>) -> Open {
        let mut open = Open {
            limit,
            summarised,
            number: 0,
            text: String::new(),
            body: 0,
            files: 0,
            lines: 0,
            file: None,
            hunk: None,
        };
        open.begin_part();
        open
    }

    pub(super) fn begin_file(&mut self, header: Vec<String>, out: &mut Vec<SplitOutput>) {
        let bytes: usize = header.iter().map(|line| line.len() + 1).sum();
        if self.text.len() + bytes > self.room() && self.text.len() > self.body {
            self.end_part(out);
        }
        let at = self.text.len();
        for line in &header {
            self.push(line);
        }
        self.files += 1;
        self.file = Some(Placed { header, at, lines_before: self.lines, first: self.number });
    }

    /// The first and the last part the file is in.
    pub(super) fn end_file(&mut self) -> (u32, u32) {
        let first = self.file.take().map_or(self.number, |file| file.first);
        (first, self.number)
    }

    pub(super) fn begin_hunk(&mut self, walk: Walk, section: String, out: &mut Vec<SplitOutput>) {
        self.end_hunk();
        let header = hunk::header(&walk, &walk, &section);
        self.make_room(header.len() + 1, out);
        self.open_hunk(walk, section);
    }

    /// The header is written again with what the piece really holds; a piece without lines goes.
    pub(super) fn end_hunk(&mut self) {
        let Some(piece) = self.hunk.take() else { return };
        if piece.from == piece.to {
            self.text.truncate(piece.at);
            return;
        }
        let header = hunk::header(&piece.from, &piece.to, &piece.section) + "\n";
        self.text.replace_range(piece.at..piece.body, &header);
    }

    pub(super) fn hunk_line(&mut self, line: &str, walk: Walk, out: &mut Vec<SplitOutput>) {
        self.make_room(line.len() + 1, out);
        self.push(line);
        self.lines += 1;
        if let Some(piece) = &mut self.hunk {
            piece.to = walk;
        }
    }

    /// A remark stays with its line.
    pub(super) fn remark(&mut self, bytes: &[u8]) {
        let remark = text::shortened(&bytes[..bytes.len().min(LONGEST_REMARK)], LONGEST_REMARK, 0);
        self.push(&remark.text);
    }

    pub(super) fn line(&mut self, line: &str, out: &mut Vec<SplitOutput>) {
        self.make_room(line.len() + 1, out);
        self.push(line);
    }

    pub(super) fn close(&mut self, out: &mut Vec<SplitOutput>) {
        self.end_hunk();
        self.file = None;
        if self.text.len() > self.body {
            self.end_part(out);
        }
    }

    fn make_room(&mut self, bytes: usize, out: &mut Vec<SplitOutput>) {
        let fits = |open: &Open| open.text.len() + bytes <= open.room();
        if !fits(self) {
            self.move_file(out);
        }
        if !fits(self) {
            self.move_hunk(out);
        }
        if !fits(self) {
            self.break_here(out);
        }
    }

    /// The file goes to a part of its own, if it is not alone here.
    fn move_file(&mut self, out: &mut Vec<SplitOutput>) {
        let Some(mut file) = self.file.take() else { return };
        if file.at > self.body {
            let tail = self.text.split_off(file.at);
            let lines = self.lines - file.lines_before;
            (self.lines, self.files) = (file.lines_before, self.files - 1);
            self.end_part(out);
            let shift = |at: usize| at - file.at + self.body;
            if let Some(piece) = &mut self.hunk {
                (piece.at, piece.body) = (shift(piece.at), shift(piece.body));
                piece.lines_before -= file.lines_before;
            }
            self.text.push_str(&tail);
            (self.lines, self.files) = (lines, 1);
            (file.at, file.first, file.lines_before) = (self.body, self.number, 0);
        }
        self.file = Some(file);
    }

    /// The hunk goes to the next part, if others of its file came before it here. The file is alone in this part.
    fn move_hunk(&mut self, out: &mut Vec<SplitOutput>) {
        let Some(mut piece) = self.hunk.take() else { return };
        if piece.lines_before > 0 {
            let tail = self.text.split_off(piece.at);
            let lines = self.lines - piece.lines_before;
            self.lines = piece.lines_before;
            self.end_part(out);
            self.continue_file();
            piece.body = piece.body - piece.at + self.text.len();
            (piece.at, piece.lines_before) = (self.text.len(), 0);
            self.text.push_str(&tail);
            self.lines = lines;
        }
        self.hunk = Some(piece);
    }

    /// Between two lines.
    fn break_here(&mut self, out: &mut Vec<SplitOutput>) {
        let rest = self.hunk.as_ref().map(|piece| (piece.to, piece.section.clone()));
        self.end_hunk();
        self.end_part(out);
        self.continue_file();
        if let Some((walk, section)) = rest {
            self.open_hunk(walk, section);
        }
    }

    fn open_hunk(&mut self, walk: Walk, section: String) {
        let at = self.text.len();
        self.push(&hunk::header(&walk, &walk, &section));
        let (body, lines_before) = (self.text.len(), self.lines);
        self.hunk = Some(Piece { section, from: walk, to: walk, at, body, lines_before });
    }

    fn continue_file(&mut self) {
        let Some(mut file) = self.file.take() else { return };
        (file.at, file.lines_before) = (self.text.len(), 0);
        for (n, line) in file.header.iter().enumerate() {
            let line = if n == 0 { format!("{line} (continued)") } else { line.clone() };
            self.push(&line);
        }
        self.files = 1;
        self.file = Some(file);
    }

    fn push(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn room(&self) -> usize {
        self.limit - SLACK
    }

    fn begin_part(&mut self) {
        self.number += 1;
        self.text = text::preamble(self.number, &self.summarised, self.limit / 4);
        self.body = self.text.len();
        (self.files, self.lines) = (0, 0);
    }

    fn end_part(&mut self, out: &mut Vec<SplitOutput>) {
        let text = std::mem::take(&mut self.text);
        out.push(SplitOutput::Part(DiffPart {
            number: self.number,
            text,
            files: self.files,
            lines: self.lines,
        }));
        self.begin_part();
    }
}
