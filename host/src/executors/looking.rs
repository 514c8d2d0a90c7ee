//! The facts of a change: which files, how much, and the signs the program raises findings for (D-07).
//!
//! A change may be of any size, so nothing of it is held as a whole: the diff and the test files go by line by line, and
//! what is kept of a file is a few numbers. A line that is too long to be held is looked at in pieces that overlap.

use std::collections::BTreeMap;

use archeflow_core::model::{Change, ChangedFile, FileStatus};
use archeflow_core::rules::signs::{self, ScannedFile, Strength};
use archeflow_core::split::{LineChunk, LineChunker, PatchSide, Walk};

use crate::git::change::{self, ChangedPath, PathStatus, quote_path};
use crate::git::content::stream_blobs;
use crate::git::{ObjectId, Repo, runner};

/// Files listed in the log; the rest is counted.
const FILES_AT_MOST: usize = 400;
/// And what they may take there: names can be long, and a line of the log has an end.
const FILES_BYTES_AT_MOST: usize = 100_000;
const SIGNS_BYTES_AT_MOST: usize = 80_000;
/// A longer line is looked at in pieces. What spans less than the overlap is whole in one of them.
const PIECE: usize = 1_000_000;
const OVERLAP: usize = 10_000;

pub fn change_of(
    repo: &Repo,
    base: &ObjectId,
    commit: &ObjectId,
    kept_as: &str,
    binary_bytes: u64,
) -> Result<Change, runner::Error> {
    let changed = change::changed(repo, base, commit)?;
    let paths: Vec<String> = changed.iter().map(|file| quote_path(&file.path)).collect();
    let added = Added::look(repo, base, commit, &paths)?;
    let strengths = strengths(repo, &changed, &paths)?;
    let seen: Vec<ScannedFile<'_>> = changed
        .iter()
        .zip(&paths)
        .enumerate()
        .map(|(n, (file, path))| ScannedFile {
            path,
            status: Some(status(file.status)),
            old_mode: mode(&file.old_mode),
            new_mode: mode(&file.new_mode),
            binary: file.added.is_none(),
            new_size: file.size_new,
            old: strengths[n].0,
            new: strengths[n].1,
            credential: added.found[n].credential,
        })
        .collect();
    let is_test = |(seen, found): &(&ScannedFile<'_>, &AddedLines)| {
        seen.status != Some(FileStatus::Deleted) && (signs::is_test_path(seen.path) || found.test)
    };
    let test_files = seen.iter().zip(&added.found).filter(is_test).count();
    let files = listed(&changed, &paths);
    Ok(Change {
        commit: commit.as_str().to_owned(),
        tree: repo.tree_of(commit)?.as_str().to_owned(),
        kept_as: kept_as.to_owned(),
        files_left_out: clamp((changed.len() - files.len()) as u64),
        files,
        test_files: clamp(test_files as u64),
        commits: change::commits(repo, base, commit)?,
        uncommitted: false,
        signs: signs::bounded(signs::look(&seen, binary_bytes), SIGNS_BYTES_AT_MOST),
        notes: Vec::new(),
    })
}

/// The number of files that fit into the log.
fn listed(changed: &[ChangedPath], paths: &[String]) -> Vec<ChangedFile> {
    let mut room = FILES_BYTES_AT_MOST;
    changed
        .iter()
        .zip(paths)
        .take(FILES_AT_MOST)
        .map(|(file, path)| ChangedFile {
            path: path.clone(),
            status: status(file.status),
            added: clamp(file.added.unwrap_or(0)),
            deleted: clamp(file.deleted.unwrap_or(0)),
        })
        .take_while(|file| {
            let bytes = serde_json::to_string(file).map_or(usize::MAX, |line| line.len() + 1);
            let fits = bytes <= room;
            room = room.saturating_sub(bytes);
            fits
        })
        .collect()
}

/// What is looked for in the added lines of a file.
#[derive(Debug, Clone, Default)]
struct AddedLines {
    /// The first credential: the line, and its kind.
    credential: Option<(u32, &'static str)>,
    test: bool,
}

/// A look at every added line of a diff. Only headers outside hunks count as headers, so that content which looks like
/// one can't move a line to another file.
struct Added<'a> {
    by_path: BTreeMap<&'a str, usize>,
    found: Vec<AddedLines>,
    file: Option<usize>,
    walk: Walk,
    /// The number of the line that is being read, when it is an added one.
    number: Option<u32>,
}

impl<'a> Added<'a> {
    fn look(
        repo: &Repo,
        base: &ObjectId,
        commit: &ObjectId,
        paths: &'a [String],
    ) -> Result<Added<'a>, runner::Error> {
        let by_path = paths.iter().enumerate().map(|(n, path)| (path.as_str(), n)).collect();
        let found = vec![AddedLines::default(); paths.len()];
        let mut added = Added { by_path, found, file: None, walk: Walk::default(), number: None };
        let mut lines = LineChunker::new(PIECE, OVERLAP);
        let parted = change::parted(repo, base, commit)?;
        change::diff_stream(repo, &parted, commit, &mut |bytes| {
            lines.feed(bytes, &mut |piece| added.piece(piece));
            Ok(())
        })?;
        lines.finish(&mut |piece| added.piece(piece));
        Ok(added)
    }

    fn piece(&mut self, piece: LineChunk<'_>) {
        if piece.first {
            self.number = None;
            if self.walk.is_over() {
                return self.header(piece.bytes);
            }
            let number = clamp(self.walk.new);
            if self.walk.step(piece.bytes) == PatchSide::Added {
                self.number = Some(number);
            }
        }
        let Some((file, number)) = self.file.zip(self.number) else { return };
        let found = &mut self.found[file];
        if found.credential.is_some() && found.test {
            return;
        }
        let text = String::from_utf8_lossy(&piece.bytes[usize::from(piece.first)..]);
        found.test |= piece.first && signs::adds_a_test(&text);
        if found.credential.is_none() {
            found.credential = signs::credential(&text).map(|kind| (number, kind));
        }
    }

    fn header(&mut self, line: &[u8]) {
        if line.starts_with(b"diff --git ") {
            self.file = None;
        } else if let Some(name) = line.strip_prefix(b"+++ ") {
            self.file = self.named(&String::from_utf8_lossy(name));
        } else if let Some((walk, _)) = Walk::begin(line) {
            self.walk = walk;
        }
    }

    /// `b/src/x.rs` or `"b/src/\303\274.rs"`, as one of the known paths, which are quoted the same way.
    fn named(&self, name: &str) -> Option<usize> {
        let name = name.strip_suffix('\t').unwrap_or(name);
        match name.strip_prefix("\"b/") {
            Some(quoted) => self.by_path.get(format!("\"{quoted}").as_str()).copied(),
            None => self.by_path.get(name.strip_prefix("b/")?).copied(),
        }
    }
}

/// How much the test files tested before and test now; nothing for all others.
fn strengths(
    repo: &Repo,
    changed: &[ChangedPath],
    paths: &[String],
) -> Result<Vec<(Strength, Strength)>, runner::Error> {
    let mut sums = vec![(Strength::default(), Strength::default()); changed.len()];
    let tests = || (0..changed.len()).filter(|n| signs::is_test_path(&paths[*n]));
    let old: Vec<usize> = tests().filter(|n| has_text(&changed[*n].old_oid, &changed[*n].old_mode)).collect();
    let new: Vec<usize> = tests().filter(|n| has_text(&changed[*n].new_oid, &changed[*n].new_mode)).collect();
    let oids: Vec<&ObjectId> = old.iter().map(|n| &changed[*n].old_oid).collect();
    read_strengths(repo, &oids, &mut |blob, line| sums[old[blob]].0 = sums[old[blob]].0.plus(line))?;
    let oids: Vec<&ObjectId> = new.iter().map(|n| &changed[*n].new_oid).collect();
    read_strengths(repo, &oids, &mut |blob, line| sums[new[blob]].1 = sums[new[blob]].1.plus(line))?;
    Ok(sums)
}

fn has_text(oid: &ObjectId, mode: &str) -> bool {
    !oid.is_zero() && mode != change::GITLINK
}

fn read_strengths(
    repo: &Repo,
    oids: &[&ObjectId],
    add: &mut dyn FnMut(usize, Strength),
) -> Result<(), runner::Error> {
    let mut reading = 0;
    let mut lines = LineChunker::new(PIECE, 0);
    stream_blobs(repo, oids, &mut |blob, bytes| {
        if blob != reading {
            lines.finish(&mut |piece| add(reading, strength_of(piece)));
            reading = blob;
        }
        lines.feed(bytes, &mut |piece| add(reading, strength_of(piece)));
    })?;
    lines.finish(&mut |piece| add(reading, strength_of(piece)));
    Ok(())
}

/// A line counts once, by its beginning if it is very long.
fn strength_of(piece: LineChunk<'_>) -> Strength {
    if piece.first {
        signs::strength_of_line(&String::from_utf8_lossy(piece.bytes))
    } else {
        Strength::default()
    }
}

fn status(status: PathStatus) -> FileStatus {
    match status {
        PathStatus::Added => FileStatus::Added,
        PathStatus::Modified => FileStatus::Modified,
        PathStatus::Deleted => FileStatus::Deleted,
        PathStatus::TypeChanged => FileStatus::TypeChanged,
    }
}

fn mode(text: &str) -> u32 {
    u32::from_str_radix(text, 8).unwrap_or(0)
}

fn clamp(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
