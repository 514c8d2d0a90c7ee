//! A look at every line a step adds (PJ-44). A diff may be of any size, so it goes by line by line, and what is kept are
//! the first findings and the number of all.

use archeflow_core::rules::looped::leaks::{self, Class};
use archeflow_core::split::{Lines, Piece, Side, Walk};

use crate::git::{Oid, Repo, change, runner};

/// Findings that are told one by one.
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
    pub class: Class,
    pub kind: &'static str,
    pub path: String,
    pub line: u64,
    /// Masked.
    pub shown: String,
}

pub(super) fn look(repo: &Repo, base: &Oid, commit: &Oid) -> Result<Scan, String> {
    looked(repo, base, commit).map_err(|error| error.to_string())
}

fn looked(repo: &Repo, base: &Oid, commit: &Oid) -> Result<Scan, runner::Error> {
    let mut looker = Looker::default();
    let mut lines = Lines::new(PIECE, OVERLAP);
    let parted = change::parted(repo, base, commit)?;
    change::diff_stream(repo, &parted, commit, &mut |bytes| {
        lines.feed(bytes, &mut |piece| looker.piece(piece));
        Ok(())
    })?;
    lines.finish(&mut |piece| looker.piece(piece));
    Ok(looker.scan)
}

/// Only headers outside hunks count as headers, so that content which looks like one can't move a line to another file.
#[derive(Default)]
struct Looker {
    scan: Scan,
    path: String,
    walk: Walk,
    /// The number of the line that is being read, when it is an added one.
    number: Option<u64>,
}

impl Looker {
    fn piece(&mut self, piece: Piece<'_>) {
        if piece.first {
            self.number = None;
            if self.walk.is_over() {
                return self.header(piece.bytes);
            }
            let number = self.walk.new;
            if self.walk.step(piece.bytes) == Side::Added {
                self.number = Some(number);
                self.scan.lines += 1;
            }
        }
        let Some(line) = self.number else { return };
        let text = String::from_utf8_lossy(piece.bytes.get(usize::from(piece.first)..).unwrap_or_default());
        for leak in leaks::found(&self.path, &text) {
            if self.scan.spotted.len() == TOLD {
                self.scan.left_out = self.scan.left_out.saturating_add(1);
                continue;
            }
            let leaks::Leak { class, kind, shown } = leak;
            self.scan.spotted.push(Spotted { class, kind, path: self.path.clone(), line, shown });
        }
    }

    fn header(&mut self, line: &[u8]) {
        if line.starts_with(b"diff --git ") {
            self.path = String::new();
        } else if let Some(name) = line.strip_prefix(b"+++ ") {
            let name = String::from_utf8_lossy(name);
            let name = name.trim_end_matches(['\t', '\n', '\r']).trim_matches('"');
            self.path = name.strip_prefix("b/").unwrap_or(name).to_owned();
        } else if let Some((walk, _)) = Walk::begin(line) {
            self.walk = walk;
        }
    }
}
