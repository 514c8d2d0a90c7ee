//! Listing, reading and searching.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::tree::{FolderEntryKind, Parts, ToolTree};
use super::{Input, given, needed, switch, whole};
use crate::git::runner::GitCommand;

const ENTRIES_AT_MOST: usize = 1_000;
const FILE_AT_MOST: u64 = 8 * 1024 * 1024;
const LINE_AT_MOST: usize = 1_000;
const SEARCHED_FILE: u64 = 2 * 1024 * 1024;
const FILES_AT_MOST: usize = 50_000;
const HITS_AT_MOST: usize = 200;
const SEARCH: Duration = Duration::from_secs(20);

pub(super) fn list(tree: &ToolTree, input: &Input) -> Result<String, String> {
    let parts = tree.parts(given(input, "path"))?;
    let (found, more) = if switch(input, "recursive") {
        walk(tree, parts, ENTRIES_AT_MOST)?
    } else {
        let entries = tree.entries(&parts)?;
        let more = entries.len() > ENTRIES_AT_MOST;
        let names = entries.into_iter().take(ENTRIES_AT_MOST).map(|entry| shown(&entry.name, entry.kind));
        (names.collect(), more)
    };
    let mut text = if found.is_empty() { "the folder is empty".to_owned() } else { found.join("\n") };
    if more {
        text += &format!("\n[there is more; the first {ENTRIES_AT_MOST} are shown]");
    }
    Ok(text)
}

fn shown(name: &str, kind: FolderEntryKind) -> String {
    match kind {
        FolderEntryKind::Folder => format!("{name}/"),
        FolderEntryKind::File => name.to_owned(),
        FolderEntryKind::Link => format!("{name} (a link)"),
        FolderEntryKind::Other => format!("{name} (no ordinary file)"),
    }
}

/// Everything beneath a folder, nearest first, and whether there is more than that.
fn walk(tree: &ToolTree, from: Parts, most: usize) -> Result<(Vec<String>, bool), String> {
    let depth = from.len();
    tree.entries(&from)?;
    let mut folders = VecDeque::from([from]);
    let mut found = Vec::new();
    while let Some(folder) = folders.pop_front() {
        for entry in tree.entries(&folder).unwrap_or_default() {
            if found.len() == most {
                return Ok((found, true));
            }
            let path: Parts = folder.iter().cloned().chain([entry.name]).collect();
            let below = path.get(depth..).unwrap_or_default().join("/");
            found.push(shown(&below, entry.kind));
            if entry.kind == FolderEntryKind::Folder {
                folders.push_back(path);
            }
        }
    }
    Ok((found, false))
}

pub(super) fn read(tree: &ToolTree, input: &Input) -> Result<String, String> {
    let parts = tree.parts(needed(input, "path")?)?;
    let bytes = tree.read(&parts, FILE_AT_MOST)?;
    if is_binary(&bytes) {
        return Err(format!("{} is not text", parts.join("/")));
    }
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    let from = whole(input, "from", 1, usize::MAX);
    let count = whole(input, "lines", 400, 2_000);
    if lines.is_empty() {
        return Ok("the file is empty".to_owned());
    }
    let part = lines.iter().enumerate().skip(from - 1).take(count);
    let mut shown: Vec<String> = part.map(|(n, line)| format!("{}\t{}", n + 1, cut(line))).collect();
    let last = from - 1 + shown.len();
    if shown.is_empty() {
        return Err(format!("the file has {} lines", lines.len()));
    }
    if last < lines.len() {
        shown.push(format!("[{} lines in all; read on with from: {}]", lines.len(), last + 1));
    }
    if bytes.len() as u64 == FILE_AT_MOST {
        shown.push(format!("[only the first {FILE_AT_MOST} bytes of the file were looked at]"));
    }
    Ok(shown.join("\n"))
}

fn cut(line: &str) -> String {
    let mut shown: String = line.chars().take(LINE_AT_MOST).collect();
    if shown.len() < line.len() {
        shown += " [the line goes on]";
    }
    shown
}

fn is_binary(bytes: &[u8]) -> bool {
    bytes.iter().take(8_192).any(|byte| *byte == 0)
}

pub(super) fn search(tree: &ToolTree, input: &Input) -> Result<String, String> {
    let text = needed(input, "text")?;
    if text.is_empty() || text.contains('\n') {
        return Err("`text` has to be part of one line".to_owned());
    }
    let (inside, ending) = (tree.parts(given(input, "path"))?, given(input, "ending"));
    let fold = switch(input, "ignore_case");
    let wanted = if fold { text.to_lowercase() } else { text.to_owned() };
    let until = Instant::now() + SEARCH;
    let mut hits = Vec::new();
    for parts in candidates(tree, &inside)?.into_iter().filter(|parts| parts.starts_with(&inside)) {
        if hits.len() >= HITS_AT_MOST || Instant::now() > until {
            hits.push("[there may be more; narrow the search with `path` or `ending`]".to_owned());
            break;
        }
        if !parts.last().is_some_and(|name| name.ends_with(ending)) {
            continue;
        }
        let Ok(bytes) = tree.read(&parts, SEARCHED_FILE) else { continue };
        if is_binary(&bytes) {
            continue;
        }
        let path = parts.join("/");
        for (n, line) in String::from_utf8_lossy(&bytes).lines().enumerate() {
            let found = if fold { line.to_lowercase().contains(&wanted) } else { line.contains(&wanted) };
            if found && hits.len() < HITS_AT_MOST {
                hits.push(format!("{path}:{}: {}", n + 1, cut(line.trim())));
            }
        }
    }
    Ok(if hits.is_empty() { "nothing was found".to_owned() } else { hits.join("\n") })
}

/// The files worth searching: what git knows and what it would take in. Without git, all of them.
fn candidates(tree: &ToolTree, inside: &[String]) -> Result<Vec<Parts>, String> {
    if tree.kind(inside)? == FolderEntryKind::File {
        return Ok(vec![inside.to_vec()]);
    }
    if let Some(known) = known_to_git(tree) {
        return Ok(known);
    }
    let (paths, _) = walk(tree, inside.to_vec(), FILES_AT_MOST)?;
    let files = paths.iter().filter(|path| !path.ends_with(['/', ')']));
    let parts = |path: &String| inside.iter().cloned().chain(path.split('/').map(str::to_owned)).collect();
    Ok(files.map(parts).collect())
}

fn known_to_git(tree: &ToolTree) -> Option<Vec<Parts>> {
    let folder = tree.root().join(".git");
    let git = GitCommand::new(&folder)
        .ok()
        .filter(|_| folder.symlink_metadata().is_ok_and(|meta| meta.is_dir()))?;
    let listing = git
        .work_tree(tree.root())
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .cap(16 * 1024 * 1024)
        .deadline(SEARCH)
        .done()
        .ok()?;
    let paths = listing.stdout.split(|byte| *byte == 0).filter_map(|path| std::str::from_utf8(path).ok());
    Some(
        paths
            .filter(|path| !path.is_empty())
            .filter_map(|path| tree.parts(path).ok())
            .take(FILES_AT_MOST)
            .collect(),
    )
}
