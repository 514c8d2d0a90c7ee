//! The facts of a change: which files, how much, and the signs the program raises findings for (D-07).

use archeflow_core::rules::signs::{self, Seen};
use archeflow_core::words::{Change, ChangedFile, FileStatus};

use crate::git::change::{self, Changed, Status, quote_path};
use crate::git::content::Tree;
use crate::git::{Oid, Repo, runner};

/// Files listed in the log; the rest is counted.
const FILES_AT_MOST: usize = 400;
const SCAN_AT_MOST: usize = 20_000_000;

pub fn change_of(
    repo: &Repo,
    base: &Oid,
    commit: &Oid,
    kept_as: &str,
    binary_bytes: u64,
) -> Result<Change, runner::Error> {
    let changed = change::changed(repo, base, commit)?;
    let paths: Vec<String> = changed.iter().map(|file| quote_path(&file.path)).collect();
    let diff = change::diff_text(repo, base, commit, SCAN_AT_MOST)?;
    let diff = String::from_utf8_lossy(&diff.bytes).into_owned();
    let texts = test_texts(repo, base, commit, &changed, &paths)?;
    let mut added = added_lines(&diff, &paths);
    let seen: Vec<Seen<'_>> = changed
        .iter()
        .zip(&paths)
        .zip(&texts)
        .map(|((file, path), (old_text, new_text))| Seen {
            path,
            status: Some(status(file.status)),
            old_mode: mode(&file.old_mode),
            new_mode: mode(&file.new_mode),
            binary: file.added.is_none(),
            new_size: file.size_new,
            old_text,
            new_text,
            added: added.remove(path.as_str()).unwrap_or_default(),
        })
        .collect();
    let is_test = |seen: &&Seen<'_>| {
        seen.status != Some(FileStatus::Deleted)
            && (signs::is_test_path(seen.path) || signs::adds_a_test(&seen.added))
    };
    let test_files = seen.iter().filter(is_test).count();
    let files: Vec<ChangedFile> = changed
        .iter()
        .zip(&paths)
        .take(FILES_AT_MOST)
        .map(|(file, path)| ChangedFile {
            path: path.clone(),
            status: status(file.status),
            added: clamp(file.added.unwrap_or(0)),
            deleted: clamp(file.deleted.unwrap_or(0)),
        })
        .collect();
    Ok(Change {
        commit: commit.as_str().to_owned(),
        tree: repo.tree_of(commit)?.as_str().to_owned(),
        kept_as: kept_as.to_owned(),
        files_left_out: clamp(changed.len().saturating_sub(FILES_AT_MOST) as u64),
        files,
        test_files: clamp(test_files as u64),
        commits: change::commits(repo, base, commit)?,
        uncommitted: false,
        signs: signs::look(&seen, binary_bytes),
        notes: Vec::new(),
    })
}

/// Old and new text of the test files, empty for all others.
fn test_texts(
    repo: &Repo,
    base: &Oid,
    commit: &Oid,
    changed: &[Changed],
    paths: &[String],
) -> Result<Vec<(String, String)>, runner::Error> {
    if !paths.iter().any(|path| signs::is_test_path(path)) {
        return Ok(vec![(String::new(), String::new()); changed.len()]);
    }
    let mut old = Tree::open(repo, base);
    let mut new = Tree::open(repo, commit);
    let wanted: Vec<&[u8]> = changed
        .iter()
        .zip(paths)
        .filter(|(_, path)| signs::is_test_path(path))
        .map(|(file, _)| file.path.as_slice())
        .collect();
    old.load(&wanted)?;
    new.load(&wanted)?;
    let mut texts = Vec::with_capacity(changed.len());
    for (file, path) in changed.iter().zip(paths) {
        if !signs::is_test_path(path) {
            texts.push((String::new(), String::new()));
            continue;
        }
        let text = |bytes: Option<&[u8]>| String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned();
        texts.push((text(old.bytes(&file.path)?), text(new.bytes(&file.path)?)));
    }
    Ok(texts)
}

/// Added lines with their numbers, by path. Only headers outside hunks count as headers, so that content which
/// looks like one can't move a line to another file.
fn added_lines<'a>(
    diff: &'a str,
    paths: &'a [String],
) -> std::collections::BTreeMap<&'a str, Vec<(u32, &'a str)>> {
    let mut added: std::collections::BTreeMap<&str, Vec<(u32, &str)>> = std::collections::BTreeMap::new();
    let (mut path, mut number, mut old_left, mut new_left) = (None, 0_u32, 0_u32, 0_u32);
    for line in diff.split('\n') {
        if old_left == 0 && new_left == 0 {
            if line.starts_with("diff --git ") {
                path = None;
            } else if let Some(name) = line.strip_prefix("+++ ") {
                path = new_name(name, paths);
            } else if let Some((old, start, new)) = hunk(line) {
                (old_left, number, new_left) = (old, start, new);
            }
            continue;
        }
        match line.as_bytes().first() {
            Some(b'+') => {
                if let Some(path) = path {
                    added.entry(path).or_default().push((number, line.get(1..).unwrap_or_default()));
                }
                number += 1;
                new_left = new_left.saturating_sub(1);
            }
            Some(b'-') => old_left = old_left.saturating_sub(1),
            Some(b'\\') => {}
            _ => {
                number += 1;
                old_left = old_left.saturating_sub(1);
                new_left = new_left.saturating_sub(1);
            }
        }
    }
    added
}

/// `+++ b/src/x.rs` or `+++ "b/src/\303\274.rs"`, as one of the known paths, which are quoted the same way.
fn new_name<'a>(name: &str, paths: &'a [String]) -> Option<&'a str> {
    let name = name.strip_suffix('\t').unwrap_or(name);
    let known = |wanted: &str| paths.iter().map(String::as_str).find(|path| *path == wanted);
    match name.strip_prefix("\"b/") {
        Some(quoted) => known(&format!("\"{quoted}")),
        None => known(name.strip_prefix("b/")?),
    }
}

/// `@@ -a,b +c,d @@`: b, c and d.
fn hunk(line: &str) -> Option<(u32, u32, u32)> {
    let rest = line.strip_prefix("@@ -")?;
    let (old, rest) = rest.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let range = |text: &str| -> Option<(u32, u32)> {
        match text.split_once(',') {
            Some((start, count)) => Some((start.parse().ok()?, count.parse().ok()?)),
            None => Some((text.parse().ok()?, 1)),
        }
    };
    let (_, old_count) = range(old)?;
    let (start, new_count) = range(new)?;
    Some((old_count, start, new_count))
}

fn status(status: Status) -> FileStatus {
    match status {
        Status::Added => FileStatus::Added,
        Status::Modified => FileStatus::Modified,
        Status::Deleted => FileStatus::Deleted,
        Status::TypeChanged => FileStatus::TypeChanged,
    }
}

fn mode(text: &str) -> u32 {
    u32::from_str_radix(text, 8).unwrap_or(0)
}

fn clamp(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
