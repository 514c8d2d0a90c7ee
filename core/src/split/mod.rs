//! A diff of any size, cut into parts that a reviewer can read, one part in memory at a time.
//!
//! Whole files stay together while they fit. A file that does not fit is cut between its hunks, and a hunk that does
//! not fit between its lines, with line numbers that stay right. A note marks the place of what is not shown. Nothing
//! is dropped silently: every file is mentioned, and every line of it is in a part or counted as not shown.
//!
//! Which files are treated as what is decided in [`filekind`](crate::rules::filekind).

mod hunk;
mod part;
mod pieces;
mod text;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::Splitting;
use crate::rules::filekind::{FileKind, Treatment, treatment};

pub use hunk::{PatchSide, Walk};
pub use pieces::{LineChunk, LineChunker};
pub use text::readable_header;

use part::Open;
use text::{Shortened, shortened};

/// What is known of a file before its diff is read. Files that are not named are plain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileSummary {
    pub kind: FileKind,
    pub added: u64,
    pub deleted: u64,
}

/// What comes out, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SplitOutput {
    Part(DiffPart),
    File(SplitFile),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffPart {
    /// Counted from 1.
    pub number: u32,
    pub text: String,
    /// Files that at least something of is in here.
    pub files: u32,
    /// Lines of hunks.
    pub lines: u64,
}

/// One file of the change and what reviewers get to see of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SplitFile {
    /// Quoted as git quotes.
    pub path: String,
    pub kind: FileKind,
    pub added: u64,
    pub deleted: u64,
    pub shown: FileCoverage,
    /// Lines that are shown only in part.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cut_lines: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileCoverage {
    Whole {
        part: u32,
    },
    /// In all of these parts.
    Split {
        first: u32,
        last: u32,
    },
    /// Only the first changed lines.
    Head {
        lines: u32,
        part: u32,
    },
    /// Only its name and counts, in this part.
    Summary {
        part: u32,
    },
}

/// Lines a header has at most. Git writes ten; what is more is text.
const HEADER_LINES: usize = 12;
/// A header line is never more than this share of a part, so that a header and a line of the file always fit.
const HEADER_SHARE: usize = 64;

/// The parts of a diff in which every line is whole, of about this many bytes. A line that needs more makes all parts
/// larger.
pub fn whole_lines(diff: &str, part: usize) -> Vec<String> {
    let room_of = |line: &str| {
        let header =
            ["diff --git ", "--- ", "+++ ", "rename ", "copy "].iter().any(|word| line.starts_with(word));
        (line.len() + 1).saturating_mul(if header { HEADER_SHARE } else { 4 })
    };
    let needed = diff.lines().map(room_of).max().unwrap_or(0);
    let part = u32::try_from(part.max(needed)).unwrap_or(u32::MAX);
    let splitting = Splitting { bytes_per_part: part, longest_line: part, ..Splitting::default() };
    let mut splitter = Splitter::new(&splitting, BTreeMap::new());
    let mut out = splitter.feed(diff.as_bytes());
    out.extend(splitter.finish());
    let parts = out.into_iter().filter_map(|output| match output {
        SplitOutput::Part(part) => Some(part.text),
        SplitOutput::File(_) => None,
    });
    parts.collect()
}

/// Takes a unified diff as git prints it, in bytes, and gives parts.
#[derive(Debug)]
pub struct Splitter {
    splitting: Splitting,
    known: BTreeMap<String, FileSummary>,
    lines: Option<LineChunker>,
    line: PendingLine,
    open: Open,
    file: Option<File>,
    out: Vec<SplitOutput>,
}

/// The line that is being read: its beginning, and how long it is.
#[derive(Debug, Clone, Default)]
struct PendingLine {
    kept: Vec<u8>,
    bytes: u64,
}

/// The file whose diff is being read.
#[derive(Debug, Default)]
struct File {
    header: Vec<PendingLine>,
    /// Known once its header is read.
    treatment: Option<Treatment>,
    walk: Walk,
    hidden_now: bool,
    path: String,
    kind: Option<FileKind>,
    added: u64,
    deleted: u64,
    hidden: u64,
    cut_lines: u32,
}

impl Splitter {
    /// `known` by path, quoted as git quotes.
    pub fn new(splitting: &Splitting, known: BTreeMap<String, FileSummary>) -> Splitter {
        let summarised: Vec<String> = known
            .iter()
            .filter(|(_, file)| is_not_whole(file, splitting))
            .map(|(path, file)| text::one_line(path, file))
            .collect();
        Splitter {
            splitting: splitting.clone(),
            lines: Some(LineChunker::new(splitting.line().max(text::LONGEST_HEADER), 0)),
            line: PendingLine::default(),
            open: Open::new(splitting.part(), summarised),
            file: None,
            known,
            out: Vec::new(),
        }
    }

    pub fn feed(&mut self, bytes: &[u8]) -> Vec<SplitOutput> {
        if let Some(mut lines) = self.lines.take() {
            lines.feed(bytes, &mut |piece| self.piece(piece));
            self.lines = Some(lines);
        }
        std::mem::take(&mut self.out)
    }

    pub fn finish(mut self) -> Vec<SplitOutput> {
        if let Some(mut lines) = self.lines.take() {
            lines.finish(&mut |piece| self.piece(piece));
        }
        self.end_file();
        self.open.close(&mut self.out);
        self.out
    }

    fn piece(&mut self, piece: LineChunk<'_>) {
        if piece.first {
            self.line.kept.clear();
            self.line.kept.extend_from_slice(piece.bytes);
            self.line.bytes = 0;
        }
        self.line.bytes += (piece.bytes.len() - piece.again) as u64;
        if piece.last {
            let line = std::mem::take(&mut self.line);
            self.whole_line(&line);
            self.line.kept = line.kept;
        }
    }

    fn whole_line(&mut self, line: &PendingLine) {
        let in_hunk = self.file.as_ref().is_some_and(|file| !file.walk.is_over());
        let remark = line.kept.starts_with(b"\\");
        if in_hunk || (remark && self.file.as_ref().is_some_and(|file| file.treatment.is_some())) {
            return self.hunk_line(line);
        }
        if line.kept.starts_with(b"diff --git ") || self.file.is_none() {
            self.end_file();
            self.file = Some(File::default());
        }
        if let Some((walk, section)) = Walk::begin(&line.kept) {
            self.end_header();
            return self.begin_hunk(walk, section, line.beyond());
        }
        match &mut self.file {
            Some(file) if file.treatment.is_none() && file.header.len() < HEADER_LINES => {
                file.header.push(line.clone());
            }
            _ => self.loose_line(line),
        }
    }

    /// The header is complete: now the file is known, and what is done with it.
    fn end_header(&mut self) {
        let Some(file) = self.file.as_mut().filter(|file| file.treatment.is_none()) else { return };
        file.path = text::path(&file.header);
        let known = self.known.get(&file.path);
        let binary = file.header.iter().any(|line| line.kept.starts_with(b"Binary files "));
        let kind = if binary { FileKind::Binary } else { known.map_or(FileKind::Plain, |known| known.kind) };
        let changed = known.map_or(0, |known| known.added.saturating_add(known.deleted));
        (file.kind, file.treatment) = (Some(kind), Some(treatment(kind, changed, &self.splitting)));
        let most = self.splitting.part() / HEADER_SHARE;
        let readable =
            |line: &PendingLine| shortened(&text::readable_header(&line.kept), most, line.beyond());
        let header: Vec<Shortened> = file.header.iter().map(readable).collect();
        file.cut_lines += u32::try_from(header.iter().filter(|line| line.hidden > 0).count()).unwrap_or(0);
        file.header = Vec::new();
        let header = header.into_iter().map(|line| line.text).collect();
        self.open.begin_file(header, &mut self.out);
    }

    fn begin_hunk(&mut self, walk: Walk, section: &[u8], beyond: u64) {
        let most = self.splitting.part() / HEADER_SHARE;
        let Some(file) = &mut self.file else { return };
        file.walk = walk;
        file.hidden_now = file.shows_no_more();
        if !file.hidden_now {
            let section = shortened(section, most, beyond);
            file.cut_lines += u32::from(section.hidden > 0);
            self.open.begin_hunk(walk, section.text, &mut self.out);
        }
    }

    fn hunk_line(&mut self, line: &PendingLine) {
        let Some(file) = &mut self.file else { return };
        let side = file.walk.step(&line.kept);
        if side == PatchSide::Remark {
            if !file.hidden_now {
                self.open.remark(&line.kept);
            }
            return;
        }
        if side != PatchSide::Both && file.shows_no_more() && !file.hidden_now {
            file.hidden_now = true;
            self.open.end_hunk();
        }
        match side {
            PatchSide::Added => file.added += 1,
            PatchSide::Deleted => file.deleted += 1,
            PatchSide::Both | PatchSide::Remark => {}
        }
        if file.hidden_now {
            file.hidden += u64::from(side != PatchSide::Both);
            return;
        }
        let shown = line.shortened(self.splitting.line());
        file.cut_lines += u32::from(shown.hidden > 0);
        let walk = file.walk;
        self.open.hunk_line(&shown.text, walk, &mut self.out);
    }

    /// Text that belongs to no hunk and no header. Git writes none; it is shown all the same.
    fn loose_line(&mut self, line: &PendingLine) {
        self.end_header();
        let shown = line.shortened(self.splitting.line());
        if let Some(file) = &mut self.file {
            file.cut_lines += u32::from(shown.hidden > 0);
        }
        self.open.end_hunk();
        self.open.line(&shown.text, &mut self.out);
    }

    fn end_file(&mut self) {
        self.end_header();
        let Some(file) = self.file.take() else { return };
        self.open.end_hunk();
        let kind = file.kind.unwrap_or(FileKind::Plain);
        if file.is_not_whole() {
            let line = text::not_shown(kind, &file);
            self.open.line(&line, &mut self.out);
        }
        let (first, last) = self.open.end_file();
        let shown = match file.treatment {
            Some(Treatment::Summary) => FileCoverage::Summary { part: last },
            Some(Treatment::Head(lines)) if file.hidden > 0 => FileCoverage::Head { lines, part: first },
            _ if first == last => FileCoverage::Whole { part: first },
            _ => FileCoverage::Split { first, last },
        };
        let File { path, added, deleted, cut_lines, .. } = file;
        self.out.push(SplitOutput::File(SplitFile { path, kind, added, deleted, shown, cut_lines }));
    }
}

impl PendingLine {
    fn shortened(&self, most: usize) -> Shortened {
        shortened(&self.kept, most, self.beyond())
    }

    /// Bytes of it that were not kept.
    fn beyond(&self) -> u64 {
        self.bytes - self.kept.len() as u64
    }
}

impl File {
    fn shows_no_more(&self) -> bool {
        match self.treatment {
            Some(Treatment::Head(lines)) => self.added + self.deleted >= u64::from(lines),
            Some(Treatment::Summary) => true,
            Some(Treatment::Whole) | None => false,
        }
    }

    fn is_not_whole(&self) -> bool {
        self.hidden > 0 || self.treatment == Some(Treatment::Summary)
    }
}

fn is_not_whole(file: &FileSummary, splitting: &Splitting) -> bool {
    treatment(file.kind, file.added.saturating_add(file.deleted), splitting) != Treatment::Whole
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
fn is_zero(n: &u32) -> bool {
    *n == 0
}
