//! A look at every line a step adds (PJ-44). A diff may be of any size, so it goes by line by line, and what is kept are
//! the first findings and the number of all.

use archeflow_core::split::{LineChunk, LineChunker, PatchSide, Walk};
use archeflow_core::strategies::agent_loop::rules::leaks::{self, LeakKind};

use crate::git::{ObjectId, Repo, change, runner};

/// Findings that are listed one by one.
const TOLD: usize = 20;
/// A longer line is looked at in pieces. What spans less than the overlap is whole in one of them.
const PIECE: usize = 100_000;
const OVERLAP: usize = 2_000;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scan {
    pub spotted: Vec<Spotted>,
    /// Findings beyond those.
    pub left_out: u32,
    /// Added lines that were looked at.
    pub lines: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spotted {
    pub class: LeakKind,
    pub kind: &'static str,
    pub path: String,
    pub line: u64,
    /// Masked.
    pub shown: String,
}

pub(super) fn look(repo: &Repo, base: &ObjectId, commit: &ObjectId) -> Result<Scan, String> {
    let mut scan = Scan::default();
    let looked = each_added(repo, base, commit, &mut |added| scan.take(&added));
    looked.map(|()| scan).map_err(|error| error.to_string())
}

/// The lines that a step adds, without their marks, up to a size.
pub(crate) fn added_text(
    repo: &Repo,
    base: &ObjectId,
    commit: &ObjectId,
    most: usize,
) -> Result<String, runner::Error> {
    let mut text = String::new();
    each_added(repo, base, commit, &mut |added| {
        if text.len() + added.text.len() < most {
            text.push_str(added.text);
            text.push('\n');
        }
    })?;
    Ok(text)
}

impl Scan {
    fn take(&mut self, added: &Added<'_>) {
        self.lines += u64::from(added.first);
        for leak in leaks::leaks_in(added.path, added.text) {
            if self.spotted.len() == TOLD {
                self.left_out = self.left_out.saturating_add(1);
                continue;
            }
            let leaks::Leak { class, kind, shown } = leak;
            self.spotted.push(Spotted { class, kind, path: added.path.to_owned(), line: added.line, shown });
        }
    }
}

/// An added line, or a piece of a very long one.
struct Added<'a> {
    path: &'a str,
    line: u64,
    text: &'a str,
    first: bool,
}

fn each_added(
    repo: &Repo,
    base: &ObjectId,
    commit: &ObjectId,
    each: &mut dyn FnMut(Added<'_>),
) -> Result<(), runner::Error> {
    let mut walker = Walker::default();
    let mut lines = LineChunker::new(PIECE, OVERLAP);
    let parted = change::parted(repo, base, commit)?;
    change::diff_stream(repo, &parted, commit, &mut |bytes| {
        lines.feed(bytes, &mut |piece| walker.piece(piece, each));
        Ok(())
    })?;
    lines.finish(&mut |piece| walker.piece(piece, each));
    Ok(())
}

/// Only headers outside hunks count as headers, so that content which looks like one can't move a line to another file.
#[derive(Default)]
struct Walker {
    path: String,
    walk: Walk,
    /// The number of the line that is being read, when it is an added one.
    number: Option<u64>,
}

impl Walker {
    fn piece(&mut self, piece: LineChunk<'_>, each: &mut dyn FnMut(Added<'_>)) {
        if piece.first {
            self.number = None;
            if self.walk.is_over() {
                return self.header(piece.bytes);
            }
            let number = self.walk.new;
            if self.walk.step(piece.bytes) == PatchSide::Added {
                self.number = Some(number);
            }
        }
        let Some(line) = self.number else { return };
        let text = String::from_utf8_lossy(piece.bytes.get(usize::from(piece.first)..).unwrap_or_default());
        each(Added { path: &self.path, line, text: &text, first: piece.first });
    }

    fn header(&mut self, line: &[u8]) {
        if line.starts_with(b"diff --git ") {
            self.path = String::new();
        } else if let Some(name) = line.strip_prefix(b"+++ ") {
            self.path = change::path_in_header(name, b"b/").unwrap_or_default();
        } else if let Some((walk, _)) = Walk::begin(line) {
            self.walk = walk;
        }
    }
}
