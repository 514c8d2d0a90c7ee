//! Moving a run to another clone of its repository, also on another machine: its journal, its artifacts and its refs in one
//! file. Nothing else is needed to resume it there, and no step that has ended is repeated.
//!
//! The file is a git bundle ([`crate::git::bundle`]). An imported run is foreign until a person has looked at the commands
//! that its journal names (`archeflow trust --run`), however well it is known: what was added to it elsewhere is not.

mod take_over;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use archeflow_core::model::Strategy;
use archeflow_core::run::Run;
use serde::{Deserialize, Serialize};

use crate::failpoint;
use crate::git::bundle::{self, BundleRecord, BundleStore};
use crate::git::workspace::{self, point};
use crate::git::{ObjectId, runner};
use crate::open::{self, Adoption, Project};
use crate::store::dir::Dir;
use crate::store::journal::{self, Journal, Text};
use crate::store::own_runs::OwnRun;
use crate::store::places::Places;
use crate::store::{files, lock, names};
use crate::{log, projections};

pub use take_over::{RunParts, TakeOver, TakenOver};

/// The version of the file's format.
const FORMAT: u32 = 1;
const MANIFEST: &str = "manifest.json";
const JOURNAL: &str = "journal.jsonl";
const ARTIFACTS: &str = "artifacts/";
/// Where bundles are made and looked at, in the user's state folder.
const FOLDER: &str = "transfer";
const WAIT: Duration = Duration::from_secs(60);

const LARGEST_MANIFEST: u64 = 16 << 20;
const LARGEST_FILE: u64 = 512 << 20;
const LARGEST_RUN: u64 = 4 << 30;
const MOST_FILES: usize = 100_000;
const DEEPEST: usize = 8;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Open(#[from] Box<open::Error>),
    #[error(transparent)]
    Journal(#[from] journal::Error),
    #[error(transparent)]
    Log(#[from] log::Error),
    #[error(transparent)]
    Files(#[from] files::Error),
    #[error(transparent)]
    Git(#[from] runner::Error),
    #[error(transparent)]
    Bundle(#[from] bundle::Error),
    #[error(transparent)]
    Refs(#[from] workspace::Error),
    #[error(transparent)]
    Lock(#[from] lock::Error),
    #[error("{} exists already", path.display())]
    Exists { path: PathBuf },
    #[error("{id} is a {what}, and only runs can be exported")]
    NotARun { id: String, what: &'static str },
    #[error("{id} is being driven right now{by}")]
    Driven { id: String, by: String },
    #[error("{} can't be exported: {why}", path.display())]
    Unportable { path: PathBuf, why: &'static str },
    #[error("{} is not a file that `archeflow export run` wrote: {why}", path.display())]
    NotOurs { path: PathBuf, why: String },
    #[error("{} was written by a newer version (format {found}; this one reads {FORMAT})", path.display())]
    Newer { path: PathBuf, found: u64 },
    #[error(
        "{id} is here already, and its journal is longer than the imported one ({here} lines; {there} in the file)"
    )]
    Older { id: String, here: usize, there: usize },
    #[error("another run with the id {id} is here already")]
    Differs { id: String },
    #[error("what was given of the run {id} is not one: {why}")]
    BadParts { id: String, why: String },
}

impl From<open::Error> for Error {
    fn from(error: open::Error) -> Error {
        Error::Open(Box::new(error))
    }
}

/// What the file says about itself.
#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    v: u32,
    run_id: String,
    /// The program that wrote it.
    version: String,
    lines: usize,
    /// All refs of the run, with their commits.
    refs: BTreeMap<String, ObjectId>,
}

#[derive(Debug)]
pub struct ExportedRun {
    pub run_id: String,
    pub lines: usize,
    pub artifacts: usize,
    pub refs: usize,
    pub bytes: u64,
}

pub struct ImportedRun {
    pub run_id: String,
    pub task: String,
    pub has_landed: bool,
    pub lines: usize,
    /// Lines that were here before.
    pub known: usize,
    pub artifacts: usize,
    pub refs: usize,
    pub adoption: Adoption,
}

/// The journal of a run that is here already, held so that nobody drives it.
fn held(events: &Path, id: &str) -> Result<Option<journal::Opened>, Error> {
    match Journal::open(events, id) {
        Ok(opened) => Ok(Some(opened)),
        Err(journal::Error::Missing { .. }) => Ok(None),
        Err(other) => Err(other.into()),
    }
}

impl Project {
    /// Writes a run to a file that does not exist yet.
    pub fn export_run(&self, id: &str, into: &Path) -> Result<ExportedRun, Error> {
        if !names::valid_name(id) {
            return Err(open::Error::BadId { id: id.to_owned() }.into());
        }
        self.places.check_owner()?;
        let events = self.places.events();
        let text = match Journal::read(&events.join(format!("{id}.jsonl"))) {
            Err(journal::Error::Missing { .. }) => {
                return Err(open::Error::NoRun { id: id.to_owned() }.into());
            }
            other => other?,
        };
        if let Some(driver) = Journal::driver(&events, id) {
            return Err(Error::Driven { id: id.to_owned(), by: format!(", by {driver}") });
        }
        let run = log::fold(&text)?;
        let branch = portable(id, &run)?;
        if fs::symlink_metadata(into).is_ok() {
            return Err(Error::Exists { path: into.to_owned() });
        }
        let _lock = lock::Lock::take(&self.state, FOLDER, WAIT)?;
        let store = BundleStore::lay_out(&self.repo, &self.state.join(FOLDER))?;

        let refs = self.refs_of(id, branch)?;
        let manifest = Manifest {
            v: FORMAT,
            run_id: id.to_owned(),
            version: self.env.version.to_owned(),
            lines: text.len(),
            refs,
        };
        let io = |path: &Path, error: io::Error| files::Error::io("write", path, error);
        let written = |name: &str, bytes: &[u8]| {
            let path = store.dir().join(name);
            fs::write(&path, bytes).map_err(|error| io(&path, error)).map(|()| (name.to_owned(), path))
        };
        let described = serde_json::to_vec_pretty(&manifest).map_err(|error| io(into, error.into()))?;
        let mut records = vec![written(MANIFEST, &described)?, written(JOURNAL, text.bytes())?];
        // The journal was read first: whatever it names was there before.
        let artifacts = files_below(&self.places.artifacts().join(id))?;
        let count = artifacts.len();
        records.extend(artifacts.into_iter().map(|(name, path)| (format!("{ARTIFACTS}{name}"), path)));

        let base =
            run.request.as_ref().and_then(|request| ObjectId::parse(request.base.commit.as_bytes()).ok());
        let tips: BTreeSet<ObjectId> = manifest.refs.values().cloned().chain(base).collect();
        store.pack(&records, &tips.into_iter().collect::<Vec<_>>(), into)?;
        let bytes = fs::metadata(into).map_err(|error| files::Error::io("look at", into, error))?.len();
        Ok(ExportedRun {
            run_id: id.to_owned(),
            lines: text.len(),
            artifacts: count,
            refs: manifest.refs.len(),
            bytes,
        })
    }

    /// All refs of a run, with their commits.
    pub(crate) fn refs_of(&self, id: &str, branch: String) -> Result<BTreeMap<String, ObjectId>, Error> {
        let kept = self.repo.kept_refs()?.into_iter().filter(|kept| kept.run_id == id);
        let mut refs: BTreeMap<String, ObjectId> = kept.map(|kept| (kept.name, kept.commit)).collect();
        if let Some(tip) = self.repo.resolve(&branch)? {
            refs.insert(branch, tip);
        }
        Ok(refs)
    }

    /// Brings a run that was exported elsewhere. Safe to repeat; the journal comes last, so that a run that is there is whole.
    pub fn import_run(&self, from: &Path) -> Result<ImportedRun, Error> {
        self.places.check_owner()?;
        let _lock = lock::Lock::take(&self.state, FOLDER, WAIT)?;
        let store = BundleStore::lay_out(&self.repo, &self.state.join(FOLDER))?;
        let arrived = Arrived::read(&store, from)?;
        let (id, text) = (&arrived.manifest.run_id, &arrived.text);
        if self.came_with_the_repository(id)? {
            return Err(open::Error::Committed { id: id.clone() }.into());
        }
        let places = Places::open(self.places.root())?;
        let events = places.events();
        // Held until the end, so that nobody drives it meanwhile.
        let held = held(&events, id)?;
        let here = held.as_ref().map_or(&[][..], |held| held.lines.bytes());
        let known = held.as_ref().map_or(0, |held| held.lines.len());
        if !text.bytes().starts_with(here) {
            return Err(if here.starts_with(text.bytes()) {
                Error::Older { id: id.clone(), here: known, there: text.len() }
            } else {
                Error::Differs { id: id.clone() }
            });
        }
        let is_new = here.len() < text.bytes().len();
        if is_new {
            // Somebody else wrote the new lines.
            OwnRun { state: &self.state, root: places.root(), run_id: id }.forget()?;
        }
        let tips: BTreeSet<ObjectId> =
            arrived.manifest.refs.values().cloned().chain(arrived.base.clone()).collect();
        store.send(&tips.into_iter().collect::<Vec<_>>())?;
        let refs: Vec<(ObjectId, String)> =
            arrived.manifest.refs.iter().map(|(name, commit)| (commit.clone(), name.clone())).collect();
        point(&self.repo, &refs)?;
        failpoint::pass("import.refs");
        for record in &arrived.artifacts {
            let name = record.path.strip_prefix(ARTIFACTS).unwrap_or(&record.path);
            write_below(&places, id, name, &store.bytes(record)?)?;
        }
        failpoint::pass("import.files");
        if is_new {
            files::write_atomic(&events.join(format!("{id}.jsonl")), text.bytes())?;
            projections::enter(&events, id, &arrived.run)?;
        }
        drop(held);
        Ok(ImportedRun {
            run_id: id.clone(),
            task: arrived.run.request.as_ref().map(|request| request.task.clone()).unwrap_or_default(),
            has_landed: arrived.run.landing.merged.is_some(),
            lines: text.len(),
            known,
            artifacts: arrived.artifacts.len(),
            refs: refs.len(),
            adoption: self.adoption(id)?,
        })
    }
}

/// The branch of a run that can be moved.
fn portable(id: &str, run: &Run) -> Result<String, Error> {
    let refused = |what| Err(Error::NotARun { id: id.to_owned(), what });
    match (run.strategy(), &run.request) {
        (Strategy::Review, _) => refused("review"),
        (Strategy::Loop, _) => refused("loop"),
        (Strategy::Pdca | Strategy::Pipeline, Some(request)) => Ok(format!("refs/heads/{}", request.branch)),
        (Strategy::Pdca | Strategy::Pipeline, None) => {
            Err(open::Error::NeverBegan { id: id.to_owned() }.into())
        }
    }
}

/// What a file holds, looked at and found to be a run. Nothing of it is in the repository yet.
struct Arrived {
    manifest: Manifest,
    text: Text,
    run: Run,
    base: Option<ObjectId>,
    artifacts: Vec<BundleRecord>,
}

impl Arrived {
    fn read(store: &BundleStore<'_>, from: &Path) -> Result<Arrived, Error> {
        let not_ours = |why: String| Error::NotOurs { path: from.to_owned(), why };
        let commit = store.unpack(from)?;
        let records = store.records(&commit)?.map_err(not_ours)?;
        check_sizes(&records).map_err(not_ours)?;
        let named = |name: &str, largest: u64| {
            let record = records.iter().find(|record| record.path == name);
            record
                .filter(|record| record.bytes <= largest)
                .ok_or_else(|| not_ours(format!("it has no {name}, or one that is too large")))
        };
        let described = store.bytes(named(MANIFEST, LARGEST_MANIFEST)?)?;
        let manifest = read_manifest(from, &described)?;
        let id = manifest.run_id.clone();
        if !names::valid_name(&id) {
            return Err(open::Error::BadId { id }.into());
        }
        // Checked as every journal is: in a file of its name.
        let copy = store.dir().join(format!("{id}.jsonl"));
        let bytes = store.bytes(named(JOURNAL, LARGEST_FILE)?)?;
        fs::write(&copy, &bytes).map_err(|error| files::Error::io("write", &copy, error))?;
        let text = Journal::read(&copy).map_err(|error| not_ours(error.to_string()))?;
        if text.len() != manifest.lines || text.bytes().len() != bytes.len() {
            return Err(not_ours("its journal is not as long as it says".to_owned()));
        }
        let run = log::fold(&text).map_err(|error| not_ours(error.to_string()))?;
        let branch = portable(&id, &run)?;
        let base = check_refs(&id, &run, &branch, &manifest.refs, |commit| store.has_commit(commit))?;
        let base = Some(base.map_err(not_ours)?);
        let artifacts = records.into_iter().filter(|record| record.path.starts_with(ARTIFACTS)).collect();
        Ok(Arrived { manifest, text, run, base, artifacts })
    }
}

/// Looks at the refs of a run before any is moved: they are its own, and their commits are there. Returns the commit that the
/// run began at.
fn check_refs<E>(
    id: &str,
    run: &Run,
    branch: &str,
    refs: &BTreeMap<String, ObjectId>,
    has_commit: impl Fn(&ObjectId) -> Result<bool, E>,
) -> Result<Result<ObjectId, String>, E> {
    let kept = format!("refs/archeflow/keep/{id}/");
    for (name, commit) in refs {
        if name != branch && !name.starts_with(&kept) {
            return Ok(Err(format!("it would move a ref that is not the run's: {}", name.escape_debug())));
        }
        if !has_commit(commit)? {
            return Ok(Err(format!("it lacks the commit {commit}")));
        }
    }
    let request = run.request.as_ref();
    let base = request.and_then(|request| ObjectId::parse(request.base.commit.as_bytes()).ok());
    Ok(match base {
        Some(base) if has_commit(&base)? => Ok(base),
        Some(_) | None => Err("it lacks the commit that the run began at".to_owned()),
    })
}

fn read_manifest(from: &Path, bytes: &[u8]) -> Result<Manifest, Error> {
    let not_ours =
        |why: serde_json::Error| Error::NotOurs { path: from.to_owned(), why: format!("{MANIFEST}: {why}") };
    let value: serde_json::Value = serde_json::from_slice(bytes).map_err(not_ours)?;
    match value.get("v").and_then(serde_json::Value::as_u64) {
        Some(found) if found > u64::from(FORMAT) => Err(Error::Newer { path: from.to_owned(), found }),
        _ => serde_json::from_value(value).map_err(not_ours),
    }
}

fn check_sizes(records: &[BundleRecord]) -> Result<(), String> {
    if records.len() > MOST_FILES {
        return Err(format!("it has more than {MOST_FILES} files"));
    }
    let mut sum = 0u64;
    for record in records {
        let is_known = [MANIFEST, JOURNAL].contains(&record.path.as_str());
        let name = record.path.strip_prefix(ARTIFACTS);
        if !is_known && !name.is_some_and(is_portable) {
            return Err(format!("it has a file that no run has: '{}'", record.path.escape_debug()));
        }
        sum = sum.saturating_add(record.bytes);
        if record.bytes > LARGEST_FILE || sum > LARGEST_RUN {
            return Err(format!("'{}' makes it too large", record.path.escape_debug()));
        }
    }
    Ok(())
}

/// Whether a file below the artifacts of a run can have this name everywhere.
fn is_portable(name: &str) -> bool {
    let parts: Vec<&str> = name.split('/').collect();
    let plain = |part: &str| {
        let letters = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | ' ');
        !part.is_empty() && part.len() <= 255 && !part.starts_with('.') && part.chars().all(letters)
    };
    parts.len() <= DEEPEST && parts.iter().all(|part| plain(part))
}

/// The files of a run, by their names from its folder, sorted. Links are not followed; what a kill left of a file is skipped.
fn files_below(folder: &Path) -> Result<Vec<(String, PathBuf)>, Error> {
    let mut found = Vec::new();
    let mut folders = vec![(String::new(), folder.to_owned())];
    while let Some((prefix, folder)) = folders.pop() {
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && prefix.is_empty() => break,
            entries => entries.map_err(|error| files::Error::io("read", &folder, error))?,
        };
        for entry in entries {
            let entry = entry.map_err(|error| files::Error::io("read", &folder, error))?;
            let (path, name) = (entry.path(), entry.file_name());
            if name.to_string_lossy().starts_with('.') {
                continue;
            }
            let unportable = |why| Error::Unportable { path: path.clone(), why };
            let name = name.to_str().ok_or_else(|| unportable("its name is no text"))?;
            let name = format!("{prefix}{name}");
            let kind = entry.file_type().map_err(|error| files::Error::io("look at", &path, error))?;
            match (kind.is_dir(), kind.is_file()) {
                _ if !is_portable(&name) => {
                    return Err(unportable("its name has characters that not every machine allows"));
                }
                (true, _) => folders.push((format!("{name}/"), path)),
                (_, true) => found.push((name, path)),
                _ => return Err(unportable("it is neither a file nor a folder")),
            }
        }
    }
    found.sort();
    Ok(found)
}

fn write_below(places: &Places, id: &str, name: &str, bytes: &[u8]) -> Result<(), files::Error> {
    let mut dir = Dir::open(&places.artifacts())?.make(id, 0o700)?;
    let mut parts: Vec<&str> = name.split('/').collect();
    let file = parts.pop().unwrap_or_default();
    for part in parts {
        dir = dir.make(part, 0o700)?;
    }
    files::replace(&dir, file.as_ref(), bytes)
}
