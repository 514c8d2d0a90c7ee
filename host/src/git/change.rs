//! Facts about a change: which paths differ between two commits, by how much, and the diff to show.

use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::begun::BegunCommand;
use super::native::{AskGit, Native, ObjectKind, Objects};
use super::repo::{Repo, answered};
use super::{ObjectId, content, runner};
use crate::hands;

use archeflow_core::split::readable_header;
pub use archeflow_core::text::{quote_path, unquote_path};

/// For commands that read every byte of a change; a very large one takes a while.
pub(super) const LONG: Duration = Duration::from_secs(900);

/// What happened to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathStatus {
    Added,
    Modified,
    Deleted,
    /// Between file, symbolic link and submodule.
    TypeChanged,
}

/// One path that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedPath {
    pub path: Vec<u8>,
    pub status: PathStatus,
    /// Six octal digits; `000000` when the path is absent.
    pub old_mode: String,
    pub new_mode: String,
    pub old_oid: ObjectId,
    pub new_oid: ObjectId,
    /// Lines added; `None` for binary content.
    pub added: Option<u64>,
    pub deleted: Option<u64>,
    /// The size of the new content; 0 when there is none.
    pub size_new: u64,
}

/// Changes between two commits that were asked for before. They can't change: commits are named by their content.
#[derive(Debug, Default)]
pub(super) struct KnownChanges {
    latest: Mutex<LatestChange>,
    /// A process that will make the diff of the next change.
    begun: Mutex<Option<Receiver<BegunCommand>>>,
}

type Pair = (ObjectId, ObjectId);

#[derive(Debug, Default)]
struct LatestChange {
    paths: Option<(Pair, Vec<ChangedPath>)>,
    text: Option<(Pair, Vec<u8>)>,
}

/// What is kept of one change. A larger one is asked for again.
const MOST_KEPT: usize = 256 * 1024;

impl KnownChanges {
    fn known(&self) -> MutexGuard<'_, LatestChange> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begun(&self) -> MutexGuard<'_, Option<Receiver<BegunCommand>>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn paths(&self, pair: &Pair) -> Option<Vec<ChangedPath>> {
        self.known().paths.as_ref().filter(|(known, _)| known == pair).map(|(_, paths)| paths.clone())
    }

    fn keep_paths(&self, pair: Pair, paths: &[ChangedPath]) {
        if paths.len() <= MOST_KEPT / 256 {
            self.known().paths = Some((pair, paths.to_vec()));
        }
    }

    fn text(&self, pair: &Pair, cap: usize) -> Option<DiffText> {
        let known = self.known();
        let (_, bytes) = known.text.as_ref().filter(|(known, _)| known == pair)?;
        let truncated_at = (bytes.len() > cap).then_some(bytes.len() as u64);
        Some(DiffText { bytes: bytes[..bytes.len().min(cap)].to_vec(), truncated_at })
    }

    fn keep_text(&self, pair: Pair, text: &DiffText) {
        if text.truncated_at.is_none() && text.bytes.len() <= MOST_KEPT {
            self.known().text = Some((pair, text.bytes.clone()));
        }
    }
}

/// A unified diff, cut at the limit asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffText {
    pub bytes: Vec<u8>,
    /// The size of the whole when `bytes` is only its beginning.
    pub truncated_at: Option<u64>,
}

impl DiffText {
    /// As text. Paths that are no UTF-8 are quoted as everywhere, other such bytes are shown as what they are.
    pub fn text(&self) -> String {
        if let Ok(text) = std::str::from_utf8(&self.bytes) {
            return text.to_owned();
        }
        let is_header = |line: &[u8]| {
            let known: [&[u8]; 5] = [b"diff --git ", b"--- ", b"+++ ", b"rename ", b"copy "];
            known.iter().any(|word| line.starts_with(word))
        };
        let lines = self.bytes.split(|byte| *byte == b'\n').map(|line| {
            let readable = is_header(line).then(|| readable_header(line));
            String::from_utf8_lossy(readable.as_deref().unwrap_or(line)).into_owned()
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// The paths that differ from `base` to `commit`, without guessing at renames.
pub fn changed(repo: &Repo, base: &ObjectId, commit: &ObjectId) -> Result<Vec<ChangedPath>, runner::Error> {
    let pair = (base.clone(), commit.clone());
    if let Some(known) = repo.known_changes.paths(&pair) {
        return Ok(known);
    }
    // The text is wanted too when a process is there that makes both.
    let is_ready = repo.known_changes.begun().is_some() && repo.tree_of(base)? != repo.tree_of(commit)?;
    let counted = || repo.native().and_then(|objects| counted_here(objects, base, commit));
    let changed = match if is_ready { Err(AskGit) } else { counted() } {
        Ok(changed) => changed,
        Err(AskGit) => match counted_with_text(repo, base, commit)? {
            Some(changed) => changed,
            None => counted_by_git(repo, base, commit)?,
        },
    };
    repo.known_changes.keep_paths(pair, &changed);
    Ok(changed)
}

/// Starts the process that will make the diff of a change that is about to be known. While it starts, the change is
/// collected.
pub fn get_ready(repo: &Repo) {
    let (send, receive) = channel();
    let command = repo.side().map(|git| git.args(["diff-tree", "--stdin"]).args(COUNTS_AND_TEXT));
    if let Ok(command) = command
        && hands::start(move || {
            if let Ok(begun) = command.begin() {
                let _ = send.send(begun);
            }
        })
        .is_ok()
    {
        *repo.known_changes.begun() = Some(receive);
    }
}

/// Ends the process of [`get_ready`] if nothing was asked of it.
pub fn be_done(repo: &Repo) {
    *repo.known_changes.begun() = None;
}

const COUNTS_AND_TEXT: [&str; 11] = [
    "-r",
    "-z",
    "--raw",
    "--numstat",
    "--no-abbrev",
    "-p",
    "-M",
    "--full-index",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
];

/// The output of a process that was made ready, if there is one.
fn from_ready(repo: &Repo, base: &ObjectId, commit: &ObjectId) -> Option<Vec<u8>> {
    let begun = repo.known_changes.begun().take()?.recv().ok()?;
    let (old, new) = (repo.tree_of(base).ok()?, repo.tree_of(commit).ok()?);
    let pair = format!("{old} {new}\n").into_bytes();
    let mut output = begun.finish(pair.clone()).ok()?.stdout;
    // It repeats what it was asked.
    output.starts_with(&pair).then(|| output.split_off(pair.len()))
}

/// Counts and diff of a small change from one process, since a step that needs one needs both. `None`
/// if the change is large, or has renames, which the counts are without.
fn counted_with_text(
    repo: &Repo,
    base: &ObjectId,
    commit: &ObjectId,
) -> Result<Option<Vec<ChangedPath>>, runner::Error> {
    let is_small = |objects: &Objects| {
        let mut bytes = 0_u64;
        let touched = objects.touched(base, commit)?;
        if touched.len() > MOST_COUNTED {
            return Ok(false);
        }
        for one in touched {
            for oid in [&one.old_oid, &one.new_oid].into_iter().filter(|oid| !oid.is_zero()) {
                bytes = bytes.saturating_add(objects.header(oid)?.ok_or(AskGit)?.1);
            }
        }
        Ok(bytes <= MOST_KEPT as u64)
    };
    if repo.native().and_then(is_small) != Ok(true) {
        return Ok(None);
    }
    let output = match from_ready(repo, base, commit) {
        Some(output) => output,
        None => {
            let git = repo.side()?.arg("diff-tree").args(COUNTS_AND_TEXT);
            git.args([base.as_str(), commit.as_str()]).done()?.stdout
        }
    };
    // An empty field parts the paths from the diff.
    let Some(end) = output.windows(2).position(|pair| pair == [0, 0]) else { return Ok(None) };
    let (paths, text) = (&output[..=end], &output[end + 2..]);
    let has_rename = paths.split(|byte| *byte == 0).any(|field| {
        field.starts_with(b":")
            && field.rsplit(|byte| *byte == b' ').next().is_some_and(|word| word.starts_with(b"R"))
    });
    let Some(mut changed) = parse(paths).filter(|_| !has_rename) else { return Ok(None) };
    fill_sizes(repo, &mut changed)?;
    let text = DiffText { bytes: text.to_vec(), truncated_at: None };
    repo.known_changes.keep_text((base.clone(), commit.clone()), &text);
    Ok(Some(changed))
}

/// Git is quicker with more files.
const MOST_COUNTED: usize = 200;

/// The lines of files that are new or gone need no comparison.
fn counted_here(objects: &Objects, base: &ObjectId, commit: &ObjectId) -> Native<Vec<ChangedPath>> {
    let mut changed = objects.touched(base, commit)?;
    if changed.len() > MOST_COUNTED {
        return Err(AskGit);
    }
    for one in &mut changed {
        let oid = match one.status {
            PathStatus::Added => &one.new_oid,
            PathStatus::Deleted => &one.old_oid,
            PathStatus::Modified | PathStatus::TypeChanged => return Err(AskGit),
        };
        if one.old_mode == GITLINK || one.new_mode == GITLINK {
            return Err(AskGit);
        }
        let content = objects.read(oid, ObjectKind::Blob)?;
        let lines = (!content.is_empty()).then(|| {
            content.iter().filter(|byte| **byte == b'\n').count() + usize::from(!content.ends_with(b"\n"))
        });
        let lines = (!is_binary(&content)).then_some(lines.unwrap_or(0) as u64);
        let none = lines.map(|_| 0);
        (one.added, one.deleted) =
            if one.status == PathStatus::Added { (lines, none) } else { (none, lines) };
        one.size_new = if one.status == PathStatus::Added { content.len() as u64 } else { 0 };
    }
    Ok(changed)
}

/// As git decides it.
fn is_binary(content: &[u8]) -> bool {
    content[..content.len().min(8000)].contains(&0)
}

pub(super) fn counted_by_git(
    repo: &Repo,
    base: &ObjectId,
    commit: &ObjectId,
) -> Result<Vec<ChangedPath>, runner::Error> {
    let output = repo
        .side()?
        .args(["diff-tree", "-r", "-z", "--raw", "--numstat", "--no-abbrev", "--no-renames"])
        .args(["--no-ext-diff", "--no-textconv", "--no-color", base.as_str(), commit.as_str()])
        .deadline(LONG)
        .done()?;
    let mut changed = parse(&output.stdout).ok_or_else(|| unexpected(&output.stdout))?;
    fill_sizes(repo, &mut changed)?;
    Ok(changed)
}

/// The same without line counts and sizes, which cost reading every file.
pub(super) fn touched(
    repo: &Repo,
    base: &ObjectId,
    commit: &ObjectId,
) -> Result<Vec<ChangedPath>, runner::Error> {
    if let Ok(changed) = repo.native().and_then(|objects| objects.touched(base, commit)) {
        return Ok(changed);
    }
    let output = repo
        .side()?
        .args([
            "diff-tree",
            "-r",
            "-z",
            "--raw",
            "--no-abbrev",
            "--no-renames",
            base.as_str(),
            commit.as_str(),
        ])
        .done()?;
    parse(&output.stdout).ok_or_else(|| unexpected(&output.stdout))
}

/// The paths as the diff shows them: a rename is one path, the new one, with the lines that differ.
pub(super) fn as_shown(
    repo: &Repo,
    base: &ObjectId,
    commit: &ObjectId,
) -> Result<Vec<ChangedPath>, runner::Error> {
    let output = repo
        .side()?
        .args(["diff-tree", "-r", "-z", "--raw", "--numstat", "--no-abbrev", "-M"])
        .args(["--no-ext-diff", "--no-textconv", "--no-color", base.as_str(), commit.as_str()])
        .deadline(LONG)
        .done()?;
    parse(&output.stdout).ok_or_else(|| unexpected(&output.stdout))
}

/// The diff from where the two parted to `commit`, for a reviewer.
pub fn diff_text(
    repo: &Repo,
    base: &ObjectId,
    commit: &ObjectId,
    cap: usize,
) -> Result<DiffText, runner::Error> {
    let parted = parted(repo, base, commit)?;
    let pair = (parted.clone(), commit.clone());
    if let Some(known) = repo.known_changes.text(&pair, cap) {
        return Ok(known);
    }
    let output = repo
        .side()?
        .args(["diff-tree", "-r", "-p", "-M", "--full-index", "--no-ext-diff", "--no-textconv", "--no-color"])
        .args([parted.as_str(), commit.as_str()])
        .cap(cap)
        .done()?;
    let truncated_at = (output.total > output.stdout.len() as u64).then_some(output.total);
    let text = DiffText { bytes: output.stdout, truncated_at };
    repo.known_changes.keep_text(pair, &text);
    Ok(text)
}

/// The same diff as a whole, from where the two [`parted`], handed over as it comes.
pub fn diff_stream(
    repo: &Repo,
    parted: &ObjectId,
    commit: &ObjectId,
    take: runner::Taker<'_>,
) -> Result<(), runner::Error> {
    let pair = (parted.clone(), commit.clone());
    if let Some(known) = repo.known_changes.text(&pair, usize::MAX) {
        let io = |source| runner::Error::Io { what: "diff-tree".to_owned(), source };
        return take(&known.bytes).map_err(io);
    }
    let mut kept = Some(Vec::new());
    repo.side()?
        .args(["diff-tree", "-r", "-p", "-M", "--full-index", "--no-ext-diff", "--no-textconv", "--no-color"])
        .args([parted.as_str(), commit.as_str()])
        .deadline(LONG)
        .stream(&mut |bytes| {
            kept = kept.take().filter(|kept: &Vec<u8>| kept.len() + bytes.len() <= MOST_KEPT);
            if let Some(kept) = &mut kept {
                kept.extend_from_slice(bytes);
            }
            take(bytes)
        })?;
    if let Some(bytes) = kept {
        repo.known_changes.keep_text(pair, &DiffText { bytes, truncated_at: None });
    }
    Ok(())
}

/// The path behind `---` or `+++` in a diff, without its `a/` or `b/`, as the log writes it.
pub(crate) fn path_in_header(name: &[u8], side: &[u8]) -> Option<String> {
    let name = name.strip_suffix(b"\n").unwrap_or(name);
    let name = name.strip_suffix(b"\r").unwrap_or(name);
    let name = name.strip_suffix(b"\t").unwrap_or(name);
    let quoted = std::str::from_utf8(name).ok().filter(|name| name.starts_with('"'));
    let bytes = quoted.and_then(unquote_path).unwrap_or_else(|| name.to_vec());
    bytes.strip_prefix(side).map(quote_path)
}

/// How many commits lead from `base` to `commit`.
pub fn commits(repo: &Repo, base: &ObjectId, commit: &ObjectId) -> Result<u32, runner::Error> {
    if let Ok(count) = repo.history().and_then(|objects| objects.distance(base, commit)) {
        return Ok(count);
    }
    let range = format!("{base}..{commit}");
    let output = repo.side()?.args(["rev-list", "--count", &range]).done()?;
    Ok(String::from_utf8_lossy(output.line()).trim().parse().unwrap_or(0))
}

/// Where two lines of history parted; `None` when they have nothing in common.
pub fn merge_base(repo: &Repo, one: &ObjectId, other: &ObjectId) -> Result<Option<ObjectId>, runner::Error> {
    if let Ok(base) = repo.history().and_then(|objects| objects.merge_base(one, other)) {
        return Ok(Some(base));
    }
    let args = ["merge-base", one.as_str(), other.as_str()];
    let output = repo.side()?.args(args).run()?;
    match output.status.code() {
        Some(0) => answered(&args, &output).map(Some),
        Some(1) => Ok(None),
        _ => answered(&args, &repo.side()?.args(args).done()?).map(Some),
    }
}

/// Where a diff for a reviewer begins: where the two parted, or `base` when they have nothing in common.
pub fn parted(repo: &Repo, base: &ObjectId, commit: &ObjectId) -> Result<ObjectId, runner::Error> {
    Ok(merge_base(repo, base, commit)?.unwrap_or_else(|| base.clone()))
}

/// The content of a file in a commit.
pub fn blob_at(repo: &Repo, commit: &ObjectId, path: &[u8]) -> Result<Option<Vec<u8>>, runner::Error> {
    Ok(content::CommitFiles::open(repo, commit).cap(u64::MAX).bytes(path)?.map(<[u8]>::to_vec))
}

fn parse(output: &[u8]) -> Option<Vec<ChangedPath>> {
    let mut fields = output.split(|byte| *byte == 0).filter(|field| !field.is_empty()).peekable();
    let mut changed = Vec::new();
    while let Some(meta) = fields.next_if(|field| field.starts_with(b":")) {
        let mut path = fields.next()?;
        if meta.rsplit(|byte| *byte == b' ').next()?.starts_with(b"R") {
            path = fields.next()?;
        }
        changed.push(raw(meta, path)?);
    }
    // The counts follow in the same order.
    let mut rest = changed.iter_mut();
    while let Some(counts) = fields.next() {
        let Some(one) = rest.next() else { break };
        let mut words = counts.splitn(3, |byte| *byte == b'\t');
        (one.added, one.deleted) = (number(words.next()?), number(words.next()?));
        let mut path = words.next()?;
        if path.is_empty() {
            // A rename: the old name, then the new one.
            path = fields.nth(1)?;
        }
        if path != one.path {
            return None;
        }
    }
    Some(changed)
}

fn raw(meta: &[u8], path: &[u8]) -> Option<ChangedPath> {
    let meta = std::str::from_utf8(meta.strip_prefix(b":")?).ok()?;
    let [old_mode, new_mode, old_oid, new_oid, letter] = meta.split(' ').collect::<Vec<_>>()[..] else {
        return None;
    };
    let status = match letter.as_bytes().first()? {
        b'A' => PathStatus::Added,
        b'D' => PathStatus::Deleted,
        b'T' => PathStatus::TypeChanged,
        _ => PathStatus::Modified,
    };
    Some(ChangedPath {
        path: path.to_vec(),
        status,
        old_mode: old_mode.to_owned(),
        new_mode: new_mode.to_owned(),
        old_oid: ObjectId::parse(old_oid.as_bytes()).ok()?,
        new_oid: ObjectId::parse(new_oid.as_bytes()).ok()?,
        added: None,
        deleted: None,
        size_new: 0,
    })
}

fn number(word: &[u8]) -> Option<u64> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

fn fill_sizes(repo: &Repo, changed: &mut [ChangedPath]) -> Result<(), runner::Error> {
    let mut files: Vec<&mut ChangedPath> =
        changed.iter_mut().filter(|one| !one.new_oid.is_zero() && one.new_mode != GITLINK).collect();
    if files.is_empty() {
        return Ok(());
    }
    let sizes =
        |objects: &Objects| files.iter().map(|one| objects.header(&one.new_oid)).collect::<Native<Vec<_>>>();
    if let Ok(sizes) = repo.native().and_then(sizes)
        && sizes.iter().all(Option::is_some)
    {
        for (one, size) in files.iter_mut().zip(sizes) {
            one.size_new = size.map_or(0, |(_, size)| size);
        }
        return Ok(());
    }
    let input: String = files.iter().map(|one| format!("{}\n", one.new_oid)).collect();
    let output = repo.side()?.args(["cat-file", "--batch-check=%(objectsize)"]).input(input).done()?;
    for (one, size) in files.iter_mut().zip(output.stdout.split(|byte| *byte == b'\n')) {
        one.size_new = number(size).ok_or_else(|| unexpected(size))?;
    }
    Ok(())
}

/// The mode of a submodule entry.
pub(crate) const GITLINK: &str = "160000";

fn unexpected(answer: &[u8]) -> runner::Error {
    let answer = String::from_utf8_lossy(&answer[..answer.len().min(200)]).escape_debug().to_string();
    runner::Error::Unexpected { what: "diff-tree".to_owned(), answer }
}
