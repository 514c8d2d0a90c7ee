//! What a run built, judged by the hidden tests.
//!
//! Hidden tests run on what the run landed or left, and on what each cycle's reviewers were shown. No agent works any more
//! by then.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use archeflow_core::eval::TrialKey;
use archeflow_core::eval::trial::ReviewerCounts;
use archeflow_core::model::{Change, Review, Severity};
use archeflow_core::run::Run;

use super::trial::RunFacts;
use super::{Bench, EvalRunError};
use crate::eval::check::CheckError;
use crate::eval::confined::CommandPlace;
use crate::eval::copy::{self, CopyFault};
use crate::eval::{EvalTask, TaskFiles};
use crate::git::fresh::{CommitSource, FreshRepository};
use crate::git::{ObjectId, remove_beneath};
use crate::proc::Cause;

/// What is known about a trial beside its journal.
#[derive(Default)]
pub(super) struct Measured {
    pub(super) hidden_pass: Option<bool>,
    pub(super) traps_fallen: BTreeSet<String>,
    pub(super) reviewers: BTreeMap<String, ReviewerCounts>,
}

/// What the hidden tests say about one commit.
pub(super) struct Judged {
    /// `None` if they could not be run.
    pub(super) passes: Option<bool>,
    pub(super) traps_fallen: BTreeSet<String>,
    /// Files in which it is not like the reference.
    pub(super) differs: BTreeSet<String>,
}

impl Bench<'_> {
    /// `None` if the evaluation is stopped meanwhile.
    pub(super) fn measured(
        &self,
        key: &TrialKey,
        task: &EvalTask,
        told: Option<&RunFacts>,
    ) -> Result<Option<Measured>, EvalRunError> {
        let Some(RunFacts { run, reviewed, .. }) = told else {
            return Ok(Some(Measured { hidden_pass: Some(false), ..Measured::default() }));
        };
        let mut known: BTreeMap<String, Judged> = BTreeMap::new();
        let landed = run.complete.as_ref().and_then(|complete| complete.merged_oid.clone());
        let last = landed.or_else(|| run.work.as_ref().map(|work| work.commit.clone()));
        // What is built on the base alone is tested; a run without a change has the base, which fails.
        let mut measured = Measured { hidden_pass: Some(false), ..Measured::default() };
        if let Some(commit) = &last {
            let Some(judged) = self.judged(key, task, run, commit, &mut known)? else { return Ok(None) };
            measured.hidden_pass = judged.passes;
            measured.traps_fallen.clone_from(&judged.traps_fallen);
        }
        for cycle in reviewed {
            let commit = &cycle.made.commit;
            let Some(judged) = self.judged(key, task, run, commit, &mut known)? else { return Ok(None) };
            for (name, review) in &cycle.reviews {
                count(measured.reviewers.entry(name.clone()).or_default(), review, judged, &cycle.made);
            }
        }
        Ok(Some(measured))
    }

    fn judged<'a>(
        &self,
        key: &TrialKey,
        task: &EvalTask,
        run: &Run,
        commit: &str,
        known: &'a mut BTreeMap<String, Judged>,
    ) -> Result<Option<&'a Judged>, EvalRunError> {
        if !known.contains_key(commit) {
            let judged = match self.judge(key, task, run, commit) {
                Ok(judged) => judged,
                Err(CheckError::Stopped) => return Ok(None),
                Err(CheckError::Machine(why)) => return Err(EvalRunError::Machine(why)),
            };
            known.insert(commit.to_owned(), judged);
        }
        Ok(known.get(commit))
    }

    /// Hidden tests and traps, in a fresh copy of the commit.
    fn judge(&self, key: &TrialKey, task: &EvalTask, run: &Run, commit: &str) -> Result<Judged, CheckError> {
        let failed = |why: String| {
            CheckError::Machine(format!("{} can't be measured: {why}", super::trial::shown(key)))
        };
        let repository = self.crew.repository(key);
        let place = self.scratch.path().join(format!("judge-{}", crate::nonce::nonce()));
        let tree = place.join("tree");
        fs::create_dir_all(&tree).map_err(|error| failed(error.to_string()))?;
        let source = CommitSource::of_folder(&repository, &self.options.world.git, None)
            .map_err(|error| failed(error.to_string()))?;
        let commit =
            ObjectId::parse(commit.as_bytes()).map_err(|_| failed(format!("{commit} is no commit")))?;
        let fresh =
            FreshRepository::of_commit(&tree, &source, &commit).map_err(|error| failed(error.to_string()))?;
        fresh.ok_or_else(|| failed(format!("{commit} is not in the repository")))?;
        let differs = differs(task, &tree, run.work.as_ref());
        self.add_hidden(task, &tree, &place).map_err(failed)?;
        let shell = |number: usize, command: &str| {
            let own = place.join(format!("own-{number}"));
            let at = CommandPlace { tree: &tree, own: &own, objects: &source.stores, seal: &self.seal };
            self.options.world.shell(command, at, task.limit)
        };
        let passes = match shell(0, &task.hidden.command)?.cause {
            Cause::Exited(0) => Some(true),
            // The machine, not the work.
            Cause::Exited(126 | 127) | Cause::NotStarted(_) => None,
            Cause::Stopped => return Err(CheckError::Stopped),
            // A change that makes the tests hang, crash or use too much fails them.
            Cause::Exited(_) | Cause::Signaled(_) | Cause::Silent | Cause::TooLong | Cause::OverLimit(_) => {
                Some(false)
            }
        };
        let mut traps_fallen = BTreeSet::new();
        for (number, trap) in task.traps.iter().enumerate() {
            match shell(number + 1, &trap.fallen.command)?.cause {
                Cause::Exited(0) => drop(traps_fallen.insert(trap.name.clone())),
                Cause::Stopped => return Err(CheckError::Stopped),
                Cause::Exited(_)
                | Cause::Signaled(_)
                | Cause::Silent
                | Cause::TooLong
                | Cause::OverLimit(_)
                | Cause::NotStarted(_) => {}
            }
        }
        let _ = remove_beneath(&place);
        Ok(Judged { passes, traps_fallen, differs })
    }

    /// The hidden files as the suite has them, whatever an agent put into their place.
    fn add_hidden(&self, task: &EvalTask, tree: &Path, place: &Path) -> Result<(), String> {
        let text = |fault: CopyFault| match fault {
            CopyFault::Machine(why) | CopyFault::Patch(_, why) => why,
            CopyFault::NoCommit => "the commit is not in the repository".to_owned(),
            CopyFault::HiddenThere => "the repository has a folder hidden/".to_owned(),
        };
        match &task.hidden_files {
            TaskFiles::Folder(_) => {
                let there = tree.join(copy::HIDDEN);
                if fs::symlink_metadata(&there).is_ok() {
                    remove_beneath(&there).map_err(|error| error.to_string())?;
                }
                copy::add_hidden(tree, task, &|| false).map_err(text)
            }
            // A patch is made for the base. An agent may have changed the same tests, so whole files are taken.
            TaskFiles::Patch { text: patch, .. } => {
                let with_tests = place.join("base");
                copy::make(&with_tests, task, self.source(task), None, &|| false).map_err(text)?;
                copy::add_hidden(&with_tests, task, &|| false).map_err(text)?;
                patched_paths(patch).into_iter().try_for_each(|path| replace(&with_tests, tree, &path))
            }
        }
    }
}

/// Paths that a patch names, without those that lead out of the tree.
fn patched_paths(patch: &str) -> BTreeSet<PathBuf> {
    let named = |line: &str| {
        let path = line.strip_prefix("+++ b/").or_else(|| line.strip_prefix("--- a/"))?;
        let path = PathBuf::from(path.split('\t').next().unwrap_or(path));
        let is_plain = path.components().all(|part| matches!(part, std::path::Component::Normal(_)));
        is_plain.then_some(path)
    };
    patch.lines().filter_map(named).collect()
}

fn replace(from: &Path, to: &Path, path: &Path) -> Result<(), String> {
    let (old, new) = (from.join(path), to.join(path));
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    // Folders on the way may be links that an agent made.
    let mut above = to.to_path_buf();
    for part in path.parent().into_iter().flat_map(Path::components) {
        above.push(part);
        if fs::symlink_metadata(&above).is_ok_and(|meta| !meta.is_dir()) {
            remove_beneath(&above).map_err(failed)?;
        }
    }
    if fs::symlink_metadata(&new).is_ok() {
        remove_beneath(&new).map_err(failed)?;
    }
    match fs::symlink_metadata(&old) {
        Ok(meta) if meta.is_file() => {
            fs::create_dir_all(&above).map_err(failed)?;
            fs::copy(&old, &new).map(drop).map_err(failed)
        }
        // Deleted by the patch.
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Files of the reference that are different in the tree, and files that only the work has changed. Empty if the task has no
/// reference in a folder.
fn differs(task: &EvalTask, tree: &Path, work: Option<&Change>) -> BTreeSet<String> {
    let changed = || work.into_iter().flat_map(|work| &work.files).map(|file| file.path.clone());
    let Some(TaskFiles::Folder(reference)) = &task.reference else { return changed().collect() };
    let paths = crate::eval::folders::files_below(reference);
    // A link that an agent made may lead anywhere, and is not like a file.
    let read = |root: &Path, path: &str| {
        let (root, place) = (root.canonicalize().ok()?, root.join(path).canonicalize().ok()?);
        let is_plain = place == root.join(path) && fs::metadata(&place).is_ok_and(|meta| meta.is_file());
        if is_plain { fs::read(place).ok() } else { None }
    };
    let is_other = |path: &&String| read(reference, path) != read(tree, path);
    let mut differs: BTreeSet<String> = paths.iter().filter(is_other).cloned().collect();
    differs.extend(changed().filter(|path| !paths.contains(path)));
    differs
}

/// A finding is confirmed if the hidden tests fail and it is about a file that is not like the reference. A reviewer that
/// has none such of work that fails has missed it.
pub(super) fn count(counts: &mut ReviewerCounts, review: &Review, judged: &Judged, made: &Change) {
    let Some(passes) = judged.passes else { return };
    let is_about = |file: &str| {
        if judged.differs.is_empty() {
            made.files.iter().any(|one| one.path == file)
        } else {
            judged.differs.contains(file)
        }
    };
    let grave = review.findings.iter().filter(|finding| finding.severity > Severity::Info);
    let (right, wrong): (Vec<_>, Vec<_>) = grave.partition(|finding| !passes && is_about(&finding.file));
    let number = |found: usize| u32::try_from(found).unwrap_or(u32::MAX);
    counts.confirmed += number(right.len());
    counts.refuted += number(wrong.len());
    counts.missed += u32::from(!passes && right.is_empty());
}
