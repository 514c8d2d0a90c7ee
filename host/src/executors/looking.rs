//! The facts of a change: which files, how much, and the signs the program raises findings for (D-07).
//!
//! A change may be of any size, so nothing of it is held as a whole: the diff and the test files go by line by line, and
//! what is kept of a file is a few numbers. A line that is too long to be held is looked at in pieces that overlap.

use std::collections::BTreeMap;

use archeflow_core::model::{Change, ChangedFile, Counted, FileStatus, Sign};
use archeflow_core::rules::signs::{self, BinaryContent, Judges, ScannedFile, Strength, StrengthReader};
use archeflow_core::split::{LineChunk, LineChunker, PatchSide, Walk};

use super::context::DIFF_AT_MOST;
use crate::git::change::{self, ChangedPath, PathStatus, quote_path};
use crate::git::content::{self, stream_blobs};
use crate::git::{ObjectId, Repo, runner};

/// Files listed in the log; the rest is counted.
const FILES_AT_MOST: usize = 400;
/// And what they may take there: names can be long, and a line of the log has an end.
const FILES_BYTES_AT_MOST: usize = 100_000;
/// Digits of the name of a file's content: enough to tell two contents of one file apart.
const CONTENT_DIGITS: usize = 12;
const SIGNS_BYTES_AT_MOST: usize = 80_000;
/// A longer line is looked at in pieces. What spans less than the overlap is whole in one of them.
const PIECE: usize = 1_000_000;
const OVERLAP: usize = 10_000;

/// What signs are looked for beside those of every change.
#[derive(Debug, Clone, Copy)]
pub struct WantedSigns<'a> {
    pub binary_bytes: u64,
    /// The command that tests the change, whose script the change may touch (L-09).
    pub test_command: Option<&'a str>,
}

pub fn change_of(
    repo: &Repo,
    base: &ObjectId,
    commit: &ObjectId,
    kept_as: &str,
    wanted: WantedSigns<'_>,
) -> Result<Change, runner::Error> {
    let changed = change::changed(repo, base, commit)?;
    let paths: Vec<String> = changed.iter().map(|file| quote_path(&file.path)).collect();
    let added = Added::look(repo, base, commit, &paths)?;
    let judges = wanted.test_command.map(|command| judges(repo, base, command)).transpose()?;
    let judged = |path: &str| judges.as_ref().is_some_and(|judges| judges.contains(path));
    let is_read = |path: &str| {
        signs::is_test_path(path)
            || signs::has_tests_inside(path)
            || signs::steers_collection(path)
            || judged(path)
    };
    let strengths = strengths(repo, &changed, &paths, &is_read)?;
    let contents = binary_contents(repo, &changed)?;
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
            removed: file.deleted.unwrap_or(0),
            old: strengths[n].0,
            new: strengths[n].1,
            credential: added.found[n].credential,
            turned: added.found[n].turned,
            content: contents.get(&n).copied().unwrap_or_default(),
        })
        .collect();
    let is_test = |(seen, found): &(&ScannedFile<'_>, &AddedLines)| {
        seen.status != Some(FileStatus::Deleted) && (signs::is_test_path(seen.path) || found.test)
    };
    let test_files = seen.iter().zip(&added.found).filter(is_test).count();
    let files = listed(&changed, &paths);
    let mut signs = signs::look(&seen, wanted.binary_bytes);
    signs.seen.extend(judges.map(|judges| signs::own_judges(&seen, &judges)).unwrap_or_default());
    signs.seen.extend(names_clash(repo, commit, &changed)?);
    Ok(Change {
        commit: commit.as_str().to_owned(),
        tree: repo.tree_of(commit)?.as_str().to_owned(),
        kept_as: kept_as.to_owned(),
        files_left_out: clamp((changed.len() - files.len()) as u64),
        files,
        test_files: clamp(test_files as u64),
        commits: change::commits(repo, base, commit)?,
        uncommitted: false,
        signs: signs::bounded(signs, SIGNS_BYTES_AT_MOST),
        notes: Vec::new(),
    })
}

/// So many files are read to see what they run or read in.
const READ_IN_AT_MOST: usize = 60;

/// What judges the change: the scripts that the test command runs, and those that they read in.
fn judges(repo: &Repo, base: &ObjectId, command: &str) -> Result<Judges, runner::Error> {
    let mut judges = Judges::of(command);
    let mut left: Vec<String> = judges.run.iter().cloned().collect();
    let mut tree = content::CommitFiles::open(repo, base).cap(RECOGNISED_AT_MOST);
    for _ in 0..READ_IN_AT_MOST {
        let Some(path) = left.pop() else { break };
        let Some(text) = tree.bytes(path.as_bytes())? else { continue };
        left.extend(judges.take_in(&path, &String::from_utf8_lossy(text), command));
    }
    Ok(judges)
}

/// The largest file that is shown if it is text after all.
pub(super) const RECOGNISED_AT_MOST: u64 = 256 * 1024;
/// The largest file that is read to see what it is, and how much of it is looked at.
const READ_AT_MOST: u64 = 64 << 20;
const BEGINNING: usize = 256 * 1024;

/// Whether git shows no line of this file, although it is there.
pub(super) fn is_binary(file: &ChangedPath) -> bool {
    file.added.is_none() && file.new_mode.starts_with("100")
}

/// What each changed binary file is, by its place in the list.
fn binary_contents(
    repo: &Repo,
    changed: &[ChangedPath],
) -> Result<BTreeMap<usize, BinaryContent>, runner::Error> {
    let looked_at = |file: &ChangedPath| is_binary(file) && file.size_new <= READ_AT_MOST;
    let wanted: Vec<(usize, &ObjectId)> = changed
        .iter()
        .enumerate()
        .filter(|(_, file)| looked_at(file))
        .map(|(n, file)| (n, &file.new_oid))
        .collect();
    if wanted.is_empty() {
        return Ok(BTreeMap::new());
    }
    let oids: Vec<&ObjectId> = wanted.iter().map(|(_, oid)| *oid).collect();
    let mut begins = vec![Vec::new(); oids.len()];
    stream_blobs(repo, &oids, &mut |blob, bytes| {
        let room = BEGINNING.saturating_sub(begins[blob].len());
        begins[blob].extend_from_slice(&bytes[..bytes.len().min(room)]);
    })?;
    Ok(wanted.iter().zip(begins).map(|((n, _), bytes)| (*n, BinaryContent::of(&bytes))).collect())
}

/// A changed path that many file systems would take for another one of the new tree.
fn names_clash(
    repo: &Repo,
    commit: &ObjectId,
    changed: &[ChangedPath],
) -> Result<Option<Counted>, runner::Error> {
    if !changed.iter().any(|file| file.status == PathStatus::Added) {
        return Ok(None);
    }
    let all = repo.list_dir(commit, b"")?;
    let changed = changed.iter().map(|file| file.path.as_slice());
    let found = crate::git::land::clash(all.iter().map(|file| file.path.as_slice()), changed);
    Ok(found.map(|(one, other)| {
        let (path, other) = (quote_path(one), quote_path(other));
        let detail = format!("{path} and {other} differ only in case or in how accents are stored: many systems take them for one file");
        Counted { sign: Sign::NamesClash, path, line: 0, detail }
    }))
}

/// S-03: what reviewers are not shown must not land. Says so where the diff is larger than what they are shown.
pub(super) fn not_shown(
    repo: &Repo,
    base: &ObjectId,
    commit: &ObjectId,
) -> Result<Option<Counted>, runner::Error> {
    let shown = change::diff_text(repo, base, commit, DIFF_AT_MOST)?;
    Ok(shown.truncated_at.map(|whole| {
        let detail = format!("the diff has {whole} bytes and reviewers are shown {DIFF_AT_MOST}");
        Counted { sign: Sign::NotShown, path: ".".to_owned(), line: 0, detail }
    }))
}

/// What git's diff leaves out: binary files with size and kind, and the whole text of those that are text.
pub(super) fn left_out_by_diff(
    repo: &Repo,
    base: &ObjectId,
    commit: &ObjectId,
) -> Result<String, runner::Error> {
    let changed = change::changed(repo, base, commit)?;
    let contents = binary_contents(repo, &changed)?;
    let mut out = String::new();
    for (n, file) in changed.iter().enumerate().filter(|(_, file)| is_binary(file)) {
        let content = contents.get(&n).copied().unwrap_or_default();
        let (path, size, kind) = (quote_path(&file.path), file.size_new, content.name());
        out.push_str(&format!("\n[binary file {path}: {size} bytes, {kind}, mode {}]\n", file.new_mode));
        if content == BinaryContent::Text && file.size_new <= RECOGNISED_AT_MOST {
            let bytes = content::read_blobs(repo, &[&file.new_oid])?.pop().unwrap_or_default();
            for line in String::from_utf8_lossy(&bytes).lines() {
                out.push_str(&format!("+{}\n", line.replace('\0', "␀")));
            }
        }
    }
    Ok(out)
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
            content: file.new_oid.as_str().chars().take(CONTENT_DIGITS).collect(),
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
    /// The first line with characters that change the order of text on a screen.
    turned: Option<u32>,
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
        let text = String::from_utf8_lossy(&piece.bytes[usize::from(piece.first)..]);
        if found.turned.is_none() && signs::turns_text(&text) {
            found.turned = Some(number);
        }
        found.test |= piece.first && signs::adds_a_test(&text);
        if found.credential.is_none() {
            found.credential = signs::credential(&text).map(|kind| (number, kind));
        }
    }

    fn header(&mut self, line: &[u8]) {
        if line.starts_with(b"diff --git ") {
            self.file = None;
        } else if let Some(name) = line.strip_prefix(b"+++ ") {
            self.file = self.named(name);
        } else if let Some((walk, _)) = Walk::begin(line) {
            self.walk = walk;
        }
    }

    /// `b/src/größe.rs`, or `"b/src/\"x\".rs"`, as one of the known paths.
    fn named(&self, name: &[u8]) -> Option<usize> {
        self.by_path.get(change::path_in_header(name, b"b/")?.as_str()).copied()
    }
}

/// How much the test files and scripts tested before and test now; nothing for all others.
fn strengths(
    repo: &Repo,
    changed: &[ChangedPath],
    paths: &[String],
    is_read: &dyn Fn(&str) -> bool,
) -> Result<Vec<(Strength, Strength)>, runner::Error> {
    let mut sums = vec![(Strength::default(), Strength::default()); changed.len()];
    let tests = || (0..changed.len()).filter(|n| is_read(&paths[*n]));
    let old: Vec<usize> = tests().filter(|n| has_text(&changed[*n].old_oid, &changed[*n].old_mode)).collect();
    let new: Vec<usize> = tests().filter(|n| has_text(&changed[*n].new_oid, &changed[*n].new_mode)).collect();
    let oids: Vec<&ObjectId> = old.iter().map(|n| &changed[*n].old_oid).collect();
    let mut readers: Vec<StrengthReader<'_>> = old.iter().map(|n| StrengthReader::new(&paths[*n])).collect();
    read_strengths(repo, &oids, &mut |blob, line| readers[blob].line(line))?;
    old.iter().zip(readers).for_each(|(n, reader)| sums[*n].0 = reader.sum);
    let oids: Vec<&ObjectId> = new.iter().map(|n| &changed[*n].new_oid).collect();
    let mut readers: Vec<StrengthReader<'_>> = new.iter().map(|n| StrengthReader::new(&paths[*n])).collect();
    read_strengths(repo, &oids, &mut |blob, line| readers[blob].line(line))?;
    new.iter().zip(readers).for_each(|(n, reader)| sums[*n].1 = reader.sum);
    Ok(sums)
}

fn has_text(oid: &ObjectId, mode: &str) -> bool {
    !oid.is_zero() && mode != change::GITLINK
}

/// Each line of each file, once, by its beginning if it is very long.
fn read_strengths(
    repo: &Repo,
    oids: &[&ObjectId],
    add: &mut dyn FnMut(usize, &str),
) -> Result<(), runner::Error> {
    let mut reading = 0;
    let mut lines = LineChunker::new(PIECE, 0);
    let mut line = |blob: usize, piece: LineChunk<'_>| {
        if piece.first {
            add(blob, &String::from_utf8_lossy(piece.bytes));
        }
    };
    stream_blobs(repo, oids, &mut |blob, bytes| {
        if blob != reading {
            lines.finish(&mut |piece| line(reading, piece));
            reading = blob;
        }
        lines.feed(bytes, &mut |piece| line(reading, piece));
    })?;
    lines.finish(&mut |piece| line(reading, piece));
    Ok(())
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
