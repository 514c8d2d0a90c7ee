//! Going back to the end of a phase (M-03): the run's artifacts and its branch become what they were. The journal says
//! it first; all of this follows from the state and is done again after a crash, until the next agent starts.
//!
//! A ref for each phase of each cycle names the commit that existed when the phase ended.

use std::fs;
use std::path::{Path, PathBuf};

use archeflow_core::event::Artifact;
use archeflow_core::model::Phase;
use archeflow_core::run::{Cycle, PhaseEnd, Rollback, Run};

use crate::executors::ANSWER;
use crate::failpoint;
use crate::git::workspace::{self, point, retire};
use crate::git::{ObjectId, runner};
use crate::platform::files as os;
use crate::store::files;
use crate::world::World;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Files(#[from] files::Error),
    #[error(transparent)]
    Branch(#[from] workspace::Error),
    #[error(transparent)]
    Git(#[from] runner::Error),
}

/// Makes files and branch what the run went back to, if that is the last thing that happened to it.
pub(crate) fn carry_out(world: &World, run: &Run) -> Result<(), Error> {
    let Some(rollback) = run.rollback.as_ref().filter(|rollback| rollback.is_fresh) else { return Ok(()) };
    put_away(&world.artifacts(), rollback)?;
    for (artifact, answer) in run.cycle().map(artifacts).unwrap_or_default() {
        put_back(&world.artifacts(), artifact, &answer)?;
    }
    failpoint::pass("rollback.files");
    let Some(request) = &run.request else { return Ok(()) };
    let branch = format!("refs/heads/{}", request.branch);
    match run.work.as_ref().and_then(|work| ObjectId::parse(work.commit.as_bytes()).ok()) {
        Some(commit) => point(&world.repo, &[(commit, branch)])?,
        None => {
            let keep = world.keep_ref(&format!("rolled-back-{}", rollback.seq));
            retire(&world.repo, &branch, &keep)?;
        }
    }
    Ok(())
}

/// An artifact that would be needed at the end of a phase and is there no more.
pub fn missing_artifact(world: &World, end: &PhaseEnd) -> Option<PathBuf> {
    let folder = world.artifacts();
    let is_missing = |(artifact, answer): &(&Artifact, PathBuf)| find(&folder, artifact, answer).is_none();
    artifacts(&end.cycle).into_iter().find(is_missing).map(|(artifact, _)| folder.join(&artifact.name))
}

/// The artifacts of a cycle, each with the place of the answer it was made of, below the artifact folder.
fn artifacts(cycle: &Cycle) -> Vec<(&Artifact, PathBuf)> {
    let answers = cycle.answers.iter().map(|(name, answered)| (name.as_str(), answered));
    let all = answers.chain(cycle.mini_explorer.iter().map(|answered| ("explorer", answered)));
    let named = all.filter(|(_, answered)| !answered.artifact.name.is_empty());
    let place = |name: &str, seq| Path::new("attempts").join(format!("{seq}-{name}")).join(ANSWER);
    named.map(|(name, answered)| (&answered.artifact, place(name, answered.start_seq))).collect()
}

/// Moves the artifacts of the phases that are taken back to `before-<line>`. The folder gets its name when everything
/// is in it, so a second try after a crash finishes the first.
fn put_away(folder: &Path, rollback: &Rollback) -> Result<(), files::Error> {
    let whole = folder.join(format!("before-{}", rollback.seq));
    if whole.is_dir() {
        return Ok(());
    }
    let into = folder.join(format!("before-{}.part", rollback.seq));
    let io = |path: &Path, source| files::Error::Io { doing: "move to", path: path.to_path_buf(), source };
    os::make_private(&into).map_err(|error| io(&into, error))?;
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (name, to) = (entry.file_name(), into.join(entry.file_name()));
        if is_taken_back(&name.to_string_lossy(), rollback) && !to.exists() {
            fs::rename(entry.path(), &to).map_err(|error| io(&to, error))?;
        }
    }
    fs::rename(&into, &whole).map_err(|error| io(&whole, error))
}

fn is_taken_back(name: &str, rollback: &Rollback) -> bool {
    let of_cycle = |rest: &str| {
        let number: Option<u32> = rest.split('.').next().and_then(|number| number.parse().ok());
        number.is_some_and(|number| number >= rollback.cycle)
    };
    let now = ["plan-", "do-", "check-"].iter().any(|start| name.starts_with(start));
    let archived = ["cycle-", "findings-cycle-", "convergence-cycle-"].iter();
    now || name == "act-feedback.md" || archived.filter_map(|start| name.strip_prefix(start)).any(of_cycle)
}

/// Where an artifact is that must have this digest: in its place, archived, put away, or still an answer.
fn find(folder: &Path, artifact: &Artifact, answer: &Path) -> Option<(PathBuf, Vec<u8>)> {
    let folders = |folder: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|e| e.path()).collect()
    };
    let below = folders(folder);
    let deeper = below.iter().flat_map(|folder| folders(folder)).collect::<Vec<_>>();
    let archived = below.iter().chain(&deeper).map(|folder| folder.join(&artifact.name));
    let places = [folder.join(&artifact.name)].into_iter().chain(archived).chain([folder.join(answer)]);
    let mut read = places.filter_map(|path| Some((path.clone(), files::read_capped(&path, AT_MOST).ok()?)));
    read.find(|(_, bytes)| files::digest(bytes) == artifact.digest)
}

const AT_MOST: u64 = 64 << 20;
/// Not in the journal, and needed by `--start-from`.
const CHANGED_FILES: &str = "do-maker-files.txt";

/// What is missing is named when it is needed; [`missing_artifact`] was asked before.
fn put_back(folder: &Path, artifact: &Artifact, answer: &Path) -> Result<(), files::Error> {
    let place = folder.join(&artifact.name);
    let Some((found, bytes)) = find(folder, artifact, answer) else { return Ok(()) };
    if found == place {
        return Ok(());
    }
    files::write_atomic(&place, &bytes)?;
    if artifact.name.starts_with("do-")
        && let Ok(list) = files::read_capped(&found.with_file_name(CHANGED_FILES), AT_MOST)
    {
        files::write_atomic(&folder.join(CHANGED_FILES), &list)?;
    }
    Ok(())
}

/// Keeps the commit that exists at the end of a phase, and those of earlier phases that a crash prevented.
pub(crate) fn keep_phases(world: &World, run: &Run) -> Result<(), runner::Error> {
    let commit_of = |end: &PhaseEnd| {
        let base = || run.request.as_ref().map(|request| request.base.commit.clone());
        let name = end.work.as_ref().map(|work| work.commit.clone()).or_else(base)?;
        ObjectId::parse(name.as_bytes()).ok()
    };
    let ends = run.phase_ends.iter().filter_map(|(key, end)| Some((reference(world, *key), commit_of(end)?)));
    let ends: Vec<(String, ObjectId)> = ends.collect();
    world.repo.keep(&ends)?;
    world.note_kept(ends.iter().map(|(name, _)| name.as_str()));
    Ok(())
}

fn reference(world: &World, (cycle, phase): (u32, Phase)) -> String {
    world.keep_ref(&format!("{cycle}/{}", phase.name()))
}
