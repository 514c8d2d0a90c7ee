//! The newest review of a repository and what is open of it, read again when something changed.
//!
//! A look costs a few calls to the file system. The journal is read only when it, the list of runs or the baseline is
//! another than before.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

use archeflow_core::event::RunStart;
use archeflow_core::model::{RunStatus, Strategy};
use archeflow_core::strategies::review::{self, Frame, Listed, Reviewed};
use archeflow_host::git::content::CommitFiles;
use archeflow_host::git::{GitEnv, ObjectId, Repo};
use archeflow_host::log;
use archeflow_host::open::ProcessEnv;
use archeflow_host::review::{Baseline, DEFAULT_BASELINE, as_reviewed, frames};
use archeflow_host::store::index;
use archeflow_host::store::journal::Journal;
use archeflow_host::store::names::valid_name;
use archeflow_host::store::own_runs::RepositoryRuns;
use archeflow_host::store::places::Places;

/// More runs are not read to find a review.
const MOST_READ: usize = 200;
/// More findings than anyone reads in an editor.
const MOST_FINDINGS: usize = 2_000;
/// Files of the reviewed tree are kept up to this many bytes in all; lines of others are not followed.
const MOST_BYTES: usize = 64 * 1024 * 1024;

/// Each with its content, if that is kept.
type CitedFiles = BTreeMap<String, Option<Vec<u8>>>;

pub(super) struct ReviewedRepository {
    /// The folder as the file system has it.
    pub(super) root: PathBuf,
    /// The same folder as the client calls it.
    named: PathBuf,
    env: ProcessEnv,
    seen: Vec<(PathBuf, Option<FileStamp>)>,
    /// Runs that are no reviews.
    others: BTreeSet<String>,
    pub(super) review: Option<OpenReview>,
}

/// A review with findings that are still open.
pub(super) struct OpenReview {
    pub(super) run_id: String,
    reviewed: Reviewed,
    pub(super) findings: Vec<Listed>,
    /// The cited files as they were reviewed.
    files: CitedFiles,
}

/// A file that has the same is taken to be the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileStamp(u64, Option<SystemTime>);

impl FileStamp {
    pub(super) fn of(path: &Path) -> Option<FileStamp> {
        let meta = std::fs::metadata(path).ok()?;
        Some(FileStamp(meta.len(), meta.modified().ok()))
    }
}

impl ReviewedRepository {
    /// The repository around a folder that the client named.
    pub(super) fn around(folder: &Path, env: &ProcessEnv) -> Option<ReviewedRepository> {
        let real = std::fs::canonicalize(folder).ok()?;
        let root = real.ancestors().find(|above| above.join(".git").exists())?.to_owned();
        let below = real.strip_prefix(&root).ok()?;
        let named = if folder.ends_with(below) {
            folder.ancestors().nth(below.components().count()).map(Path::to_owned)
        } else {
            None
        };
        let named = named.unwrap_or_else(|| root.clone());
        Some(ReviewedRepository {
            root,
            named,
            env: env.clone(),
            seen: Vec::new(),
            others: BTreeSet::new(),
            review: None,
        })
    }

    /// Reads what has changed. Says whether anything may have.
    pub(super) fn look(&mut self) -> bool {
        let is_same = |(path, stamp): &(PathBuf, Option<FileStamp>)| FileStamp::of(path) == *stamp;
        if !self.seen.is_empty() && self.seen.iter().all(is_same) {
            return false;
        }
        let events = self.root.join(".archeflow/events");
        let baseline = self.root.join(DEFAULT_BASELINE);
        // Looked at before they are read: what is written meanwhile is seen the next time.
        self.seen = [events.join("index.jsonl"), baseline.clone()]
            .map(|path| (path.clone(), FileStamp::of(&path)))
            .into();
        let found = self.newest(&events);
        let accepted = Baseline::at(&baseline).unwrap_or_default().accepted;
        self.review = found.map(|(run_id, reviewed, files)| {
            let is_open = |found: &&Listed| {
                found.counts() && accepted.iter().all(|one| one.fingerprint != found.fingerprint)
            };
            let findings = reviewed.findings.iter().filter(is_open).take(MOST_FINDINGS).cloned().collect();
            OpenReview { run_id, reviewed, findings, files }
        });
        true
    }

    /// The newest review of this user that has a result: it came to its end, or a part of it has findings.
    fn newest(&mut self, events: &Path) -> Option<(String, Reviewed, CitedFiles)> {
        let state = Places::state_dir_elsewhere(&self.env.places()).ok()??;
        Places::at(&self.root).ok()?.check_owner().ok()?;
        let runs = index::read(events).unwrap_or_default().runs;
        let own = RepositoryRuns::open(&state, &self.root, events)?;
        for entry in runs.into_iter().rev().take(MOST_READ) {
            let id = entry.run_id;
            if !valid_name(&id) || self.others.contains(&id) {
                continue;
            }
            let path = events.join(format!("{id}.jsonl"));
            let stamp = FileStamp::of(&path);
            let entries = Journal::read(&path).ok().and_then(|text| log::entries(&text).ok());
            let Some(entries) = entries else { continue };
            let start = entries.first().and_then(|first| first.event.body::<RunStart>());
            if start.is_some_and(|start| start.strategy != Strategy::Review) {
                self.others.insert(id);
                continue;
            }
            // A journal that came with the repository is not shown unasked.
            if !own.is_own(&id) {
                continue;
            }
            self.seen.push((path, stamp));
            let Some(reviewed) = review::of(&entries) else { continue };
            let ended = reviewed.outcome.as_ref().is_some_and(|end| end.status == RunStatus::Reviewed);
            if ended || !reviewed.findings.is_empty() {
                let files = self.reviewed_files(&state, &id, &reviewed);
                return Some((id, reviewed, files));
            }
        }
        None
    }

    fn reviewed_files(&mut self, state: &Path, id: &str, reviewed: &Reviewed) -> CitedFiles {
        if let Some(known) = self.review.take()
            && known.run_id == id
            && known.reviewed.findings == reviewed.findings
        {
            return known.files;
        }
        let counted = reviewed.findings.iter().filter(|found| found.counts()).take(MOST_FINDINGS);
        let cited = counted.flat_map(|found| {
            std::iter::once(&found.file).chain(found.places.iter().map(|(file, _)| file)).cloned()
        });
        let mut files: CitedFiles = cited.filter(|file| is_inside(file)).map(|file| (file, None)).collect();
        let (Some(repo), Ok(commit)) = (self.git(state, id), ObjectId::parse(reviewed.commit.as_bytes()))
        else {
            return files;
        };
        let mut tree = CommitFiles::open(&repo, &commit);
        let mut room = MOST_BYTES;
        for (file, content) in &mut files {
            if let Ok(Some(bytes)) = tree.bytes(file.as_bytes())
                && let Some(left) = room.checked_sub(bytes.len())
            {
                (room, *content) = (left, Some(bytes.to_vec()));
            }
        }
        files
    }

    /// Git with the objects of a review's change.
    fn git(&self, state: &Path, id: &str) -> Option<Repo> {
        let repo = Repo::open(&self.root, state, &GitEnv::new(self.env.variables.clone())).ok()?;
        Some(as_reviewed(&repo, state, id))
    }

    /// The files that open findings are in.
    pub(super) fn files(&self) -> BTreeSet<PathBuf> {
        let findings = self.review.iter().flat_map(|review| &review.findings);
        findings.filter(|found| is_inside(&found.file)).map(|found| self.root.join(&found.file)).collect()
    }

    /// A file of this repository, from its root.
    pub(super) fn relative<'a>(&self, path: &'a Path) -> Option<&'a str> {
        path.strip_prefix(&self.root).ok()?.to_str()
    }

    /// A file as the client calls it.
    pub(super) fn named(&self, file: &str) -> PathBuf {
        self.named.join(file)
    }

    pub(super) fn finding(&self, fingerprint: &str) -> Option<&Listed> {
        self.review.as_ref()?.findings.iter().find(|found| found.fingerprint == fingerprint)
    }

    /// The lines around what a finding cites.
    pub(super) fn frame(&self, fingerprint: &str) -> Option<Frame> {
        let review = self.review.as_ref()?;
        let state = Places::state_dir_elsewhere(&self.env.places()).ok()??;
        let repo = self.git(&state, &review.run_id)?;
        let only = |found: &Listed| found.fingerprint == fingerprint;
        let findings: Vec<Listed> = review.findings.iter().filter(|found| only(found)).cloned().collect();
        frames(&repo, &Reviewed { findings, ..review.reviewed.clone() }).into_iter().next()?
    }
}

impl OpenReview {
    /// A cited file as it was reviewed, if it is kept.
    pub(super) fn content(&self, file: &str) -> Option<&[u8]> {
        self.files.get(file)?.as_deref()
    }
}

/// A path that leads to nowhere else. Reviewers wrote it.
pub(super) fn is_inside(file: &str) -> bool {
    let mut parts = Path::new(file).components().peekable();
    parts.peek().is_some() && parts.all(|part| matches!(part, Component::Normal(_))) && !file.contains('\0')
}
