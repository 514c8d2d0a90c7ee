//! A change of any size, written to files that reviewers read one after the other, with a plan of what is where.
//!
//! The diff goes from git through [`split`](archeflow_core::split) to disk and is never in memory as a whole. What a
//! reviewer does not get to see is noted in the part where it would be, and in the plan.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use archeflow_core::model::Splitting;
use archeflow_core::rules::filekind::{self, FileKind};
use archeflow_core::split::{DiffPart, FileSummary, SplitOutput, Splitter};
use serde::{Deserialize, Serialize};

use super::change::{self, ChangedPath, GITLINK, quote_path};
use super::{ObjectId, Repo, content, runner};
use crate::store::{dir::Dir, files};

pub use archeflow_core::split::{FileCoverage, SplitFile};

/// The parts that were cut, and the files they are in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartPlan {
    pub parts: Vec<PartFile>,
    /// In the order of the diff.
    pub files: Vec<SplitFile>,
    /// Files that are not shown in full.
    pub summarised: u32,
    /// Lines that are shown only in part.
    pub cut_lines: u32,
    /// Of the whole diff, shown or not.
    pub bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartFile {
    /// `part-0001.diff`.
    pub name: String,
    pub digest: String,
    pub files: u32,
    /// Lines of hunks.
    pub lines: u64,
    pub bytes: u64,
}

/// The plan beside the parts, complete.
pub const PLAN: &str = "plan.json";

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Git(#[from] runner::Error),
    #[error(transparent)]
    Files(#[from] files::Error),
    #[error("cannot write the plan to {}: {source}", path.display())]
    Plan { path: PathBuf, source: serde_json::Error },
}

/// Cuts the diff from where the two parted to `commit` into parts in `folder`, which is made when it is missing;
/// the folder it is in exists.
pub fn cut(
    repo: &Repo,
    base: &ObjectId,
    commit: &ObjectId,
    folder: &Path,
    splitting: &Splitting,
) -> Result<PartPlan, Error> {
    make(folder)?;
    let parted = change::parted(repo, base, commit)?;
    let known = summarised_files(repo, &parted, commit, splitting)?;
    let mut writer = Writer::new(folder);
    let mut splitter = Splitter::new(splitting, known);
    let mut failed = None;
    let streamed = change::diff_stream(repo, &parted, commit, &mut |bytes| {
        writer.plan.bytes += bytes.len() as u64;
        writer.take(splitter.feed(bytes)).map_err(|error| {
            failed = Some(error);
            io::Error::other("a part could not be written")
        })
    });
    if let Some(error) = failed {
        return Err(error.into());
    }
    streamed?;
    writer.take(splitter.finish())?;
    writer.finish()
}

fn make(folder: &Path) -> Result<(), files::Error> {
    let (dir, name) = Dir::parent_of(folder)?;
    dir.make(name.to_str().ok_or_else(|| files::Error::refused(folder, "its name is not text"))?, 0o700)?;
    Ok(())
}

/// The files that are not plain. Only those with many changes are looked into.
fn summarised_files(
    repo: &Repo,
    base: &ObjectId,
    commit: &ObjectId,
    splitting: &Splitting,
) -> Result<BTreeMap<String, FileSummary>, runner::Error> {
    let changed = change::as_shown(repo, base, commit)?;
    let mut known = BTreeMap::new();
    let mut unclear: Vec<&ChangedPath> = Vec::new();
    for file in &changed {
        let path = quote_path(&file.path);
        let lines = file.added.unwrap_or(0) + file.deleted.unwrap_or(0);
        let kind = if file.added.is_none() { FileKind::Binary } else { filekind::kind(&path, "") };
        if kind != FileKind::Plain {
            known.insert(path, summary_of(kind, file));
        } else if lines > u64::from(splitting.summarise_above_lines) && has_content(file) {
            unclear.push(file);
        }
    }
    let oids: Vec<&ObjectId> = unclear.iter().map(|file| &file.new_oid).collect();
    let mut heads = vec![Vec::new(); oids.len()];
    content::stream_blobs(repo, &oids, &mut |blob, bytes| {
        let head: &mut Vec<u8> = &mut heads[blob];
        head.extend_from_slice(&bytes[..bytes.len().min(filekind::HEAD - head.len())]);
    })?;
    for (file, head) in unclear.into_iter().zip(heads) {
        let path = quote_path(&file.path);
        let kind = filekind::kind(&path, &String::from_utf8_lossy(&head));
        if kind != FileKind::Plain {
            known.insert(path, summary_of(kind, file));
        }
    }
    Ok(known)
}

fn has_content(file: &ChangedPath) -> bool {
    !file.new_oid.is_zero() && file.new_mode != GITLINK
}

fn summary_of(kind: FileKind, file: &ChangedPath) -> FileSummary {
    FileSummary { kind, added: file.added.unwrap_or(0), deleted: file.deleted.unwrap_or(0) }
}

struct Writer<'a> {
    folder: &'a Path,
    plan: PartPlan,
}

impl<'a> Writer<'a> {
    fn new(folder: &'a Path) -> Writer<'a> {
        let plan = PartPlan { parts: Vec::new(), files: Vec::new(), summarised: 0, cut_lines: 0, bytes: 0 };
        Writer { folder, plan }
    }

    fn take(&mut self, out: Vec<SplitOutput>) -> Result<(), files::Error> {
        for one in out {
            match one {
                SplitOutput::Part(part) => self.part(&part)?,
                SplitOutput::File(told) => {
                    self.plan.summarised += u32::from(is_not_whole(&told));
                    self.plan.cut_lines = self.plan.cut_lines.saturating_add(told.cut_lines);
                    self.plan.files.push(told);
                }
            }
        }
        Ok(())
    }

    fn part(&mut self, part: &DiffPart) -> Result<(), files::Error> {
        let name = format!("part-{:04}.diff", part.number);
        let bytes = part.text.as_bytes();
        files::write_atomic(&self.folder.join(&name), bytes)?;
        let digest = files::digest(bytes);
        let (files, lines) = (part.files, part.lines);
        self.plan.parts.push(PartFile { name, digest, files, lines, bytes: bytes.len() as u64 });
        Ok(())
    }

    fn finish(self) -> Result<PartPlan, Error> {
        let path = self.folder.join(PLAN);
        let json =
            serde_json::to_vec(&self.plan).map_err(|source| Error::Plan { path: path.clone(), source })?;
        files::write_atomic(&path, &json)?;
        Ok(self.plan)
    }
}

fn is_not_whole(told: &SplitFile) -> bool {
    match told.shown {
        FileCoverage::Whole { .. } | FileCoverage::Split { .. } => false,
        FileCoverage::Head { .. } | FileCoverage::Summary { .. } => true,
    }
}

/// Rows of a table in the plan for people. The rest is counted, and complete in [`PLAN`].
const ROWS: usize = 200;

/// The plan for people: what was sent, and what was not shown and why.
pub fn markdown(plan: &PartPlan) -> String {
    let mut out = String::from("# What was sent\n\n");
    let _ = writeln!(
        out,
        "{} files, {} bytes of diff in {} parts. Not shown in full: {} files; lines cut: {}. \
         The complete list is in `{PLAN}`.\n",
        plan.files.len(),
        plan.bytes,
        plan.parts.len(),
        plan.summarised,
        plan.cut_lines
    );
    parts_table(plan, &mut out);
    not_whole_table(plan, &mut out);
    cut_table(plan, &mut out);
    shown_table(plan, &mut out);
    out
}

fn parts_table(plan: &PartPlan, out: &mut String) {
    out.push_str("## Parts\n\n| part | files | lines | bytes | digest |\n|---|---|---|---|---|\n");
    for part in plan.parts.iter().take(ROWS) {
        let PartFile { name, digest, files, lines, bytes } = part;
        let _ = writeln!(out, "| `{name}` | {files} | {lines} | {bytes} | `{digest}` |");
    }
    and_more(plan.parts.len(), "parts", out);
}

fn not_whole_table(plan: &PartPlan, out: &mut String) {
    if plan.summarised == 0 {
        return;
    }
    out.push_str("## Not shown in full\n\n| file | why | added | deleted | shown |\n|---|---|---|---|---|\n");
    for told in plan.files.iter().filter(|told| is_not_whole(told)).take(ROWS) {
        let (path, why) = (code(&told.path), told.kind.name());
        let shown = match told.shown {
            FileCoverage::Head { lines, part } => format!("the first {lines} changed lines, in part {part}"),
            FileCoverage::Summary { part } => format!("name and counts, in part {part}"),
            FileCoverage::Whole { part } => format!("part {part}"),
            FileCoverage::Split { first, last } => format!("parts {first} to {last}"),
        };
        let _ = writeln!(out, "| {path} | {why} | {} | {} | {shown} |", told.added, told.deleted);
    }
    and_more(plan.summarised as usize, "files", out);
}

fn cut_table(plan: &PartPlan, out: &mut String) {
    let cut: Vec<&SplitFile> = plan.files.iter().filter(|told| told.cut_lines > 0).collect();
    if cut.is_empty() {
        return;
    }
    out.push_str("## Lines cut because they are too long\n\n| file | lines |\n|---|---|\n");
    for told in cut.iter().take(ROWS) {
        let _ = writeln!(out, "| {} | {} |", code(&told.path), told.cut_lines);
    }
    and_more(cut.len(), "files", out);
}

/// The files that are shown, by directory: a list of twenty thousand names is of no use.
fn shown_table(plan: &PartPlan, out: &mut String) {
    let mut folders: BTreeMap<&str, Folder> = BTreeMap::new();
    for told in plan.files.iter().filter(|told| !is_not_whole(told)) {
        let folder = told.path.rsplit_once('/').map_or(".", |(folder, _)| folder);
        folders.entry(folder.trim_start_matches('"')).or_default().add(told);
    }
    if folders.is_empty() {
        return;
    }
    out.push_str("## Shown\n\n| directory | files | added | deleted | parts |\n|---|---|---|---|---|\n");
    for (name, folder) in folders.iter().take(ROWS) {
        let Folder { files, added, deleted, first, last } = folder;
        let parts = if first == last { first.to_string() } else { format!("{first} to {last}") };
        let _ = writeln!(out, "| {} | {files} | {added} | {deleted} | {parts} |", code(name));
    }
    and_more(folders.len(), "directories", out);
}

#[derive(Default)]
struct Folder {
    files: u32,
    added: u64,
    deleted: u64,
    first: u32,
    last: u32,
}

impl Folder {
    fn add(&mut self, told: &SplitFile) {
        let (first, last) = match told.shown {
            FileCoverage::Whole { part }
            | FileCoverage::Head { part, .. }
            | FileCoverage::Summary { part } => (part, part),
            FileCoverage::Split { first, last } => (first, last),
        };
        self.first = if self.files == 0 { first } else { self.first.min(first) };
        self.last = self.last.max(last);
        self.files += 1;
        self.added += told.added;
        self.deleted += told.deleted;
    }
}

fn and_more(all: usize, what: &str, out: &mut String) {
    if all > ROWS {
        let _ = writeln!(out, "\nand {} more {what}: see `{PLAN}`.", all - ROWS);
    }
    out.push('\n');
}

/// Bytes of a path in a table.
const LONGEST_PATH: usize = 200;

/// A path as code in a table cell, whatever is in it. Git has quoted what is not printable.
fn code(path: &str) -> String {
    let mut end = path.len().min(LONGEST_PATH);
    while !path.is_char_boundary(end) {
        end -= 1;
    }
    let rest = if end < path.len() { "…" } else { "" };
    format!("`{}{rest}`", path[..end].replace('`', "'").replace('|', "\\|"))
}
