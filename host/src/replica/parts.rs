//! What the lines of a journal name besides themselves: artifacts and commits. Both have to be where another machine finds
//! them before it is shown the lines.
//!
//! To resume a run, these are needed and nothing else: the journal, the artifacts it names, and the run's refs. Folders of
//! attempts are not: an attempt that has ended is in the journal, and one that has not is made again elsewhere. Feedback,
//! findings, indexes and ends of phases follow from the journal.

use std::collections::BTreeMap;
use std::path::PathBuf;

use archeflow_core::event::{
    AgentComplete, AgentFailed, AgentLost, AgentTimeout, Event, Imported, MergeBuilt, MergeIntent,
    PreflightDone, RevertBuilt, RevertIntent, RunDiscarded, RunReentered, RunRolledBack, RunStart, TestsDone,
};
use archeflow_core::model::Seq;

use crate::git::ObjectId;
use crate::open::{self, Project};
use crate::store::journal::{self, Journal, LineFault, Text};
use crate::store::{files, names};
use crate::{log, projections, transfer};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("line {line} of {run_id} can't be read: {why}")]
    Line { run_id: String, line: u64, why: LineFault },
    #[error("a line of {run_id} was expected, and there is one of {found}")]
    AnotherRun { run_id: String, found: String },
    #[error(transparent)]
    Log(#[from] log::Error),
}

/// A file of a run that a line of its journal names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedArtifact {
    /// The number of the line.
    pub line: Seq,
    /// Below the run's artifact folder, as it was called when the line was written.
    pub name: String,
    /// What the file must be for the run to use it; nothing for files that only people look at.
    pub digest: Option<String>,
}

/// What some lines name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NamedParts {
    pub artifacts: Vec<NamedArtifact>,
    /// Some line names a commit that the run made: its refs have to be there.
    pub has_commits: bool,
}

/// Where an artifact belongs for the run to be resumed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedArtifact {
    pub artifact: NamedArtifact,
    /// Below the run's artifact folder: those of earlier cycles are archived.
    pub place: String,
}

/// What these lines of a run name. They need not begin its journal.
pub fn named_in(run_id: &str, lines: &[u8]) -> Result<NamedParts, Error> {
    let mut named = NamedParts::default();
    let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    for (line, number) in lines.zip(1..) {
        let read = journal::read_line(line).map_err(|why| Error::Line {
            run_id: run_id.to_owned(),
            line: number,
            why,
        })?;
        if read.run_id != run_id {
            return Err(Error::AnotherRun { run_id: run_id.to_owned(), found: read.run_id.to_owned() });
        }
        let entry = log::decode(&read)?;
        named.artifacts.extend(artifacts_in(entry.seq, &entry.event));
        named.has_commits |= has_commits(&entry.event);
    }
    Ok(named)
}

/// Where everything that a whole journal names belongs.
pub fn placed(run_id: &str, journal: &[u8]) -> Result<Vec<PlacedArtifact>, Error> {
    placed_in(&journal::check(run_id, journal.to_vec()).map_err(log::Error::from)?)
}

pub(crate) fn placed_in(text: &Text) -> Result<Vec<PlacedArtifact>, Error> {
    // By cycle and name: what was written again in the same cycle replaced what was there.
    let mut found: BTreeMap<(u32, String), NamedArtifact> = BTreeMap::new();
    let is_back = |event: &Event| event.body::<RunRolledBack>().is_some();
    let is_seen = |event: &Event| is_back(event) || !artifacts_in(0, event).is_empty();
    let run = log::fold_seeing_some(text, is_seen, |run, entry| {
        let cycle = run.number().max(1);
        if is_back(&entry.event) {
            found.retain(|(of, _), _| *of <= cycle);
        }
        let named = artifacts_in(entry.seq, &entry.event).into_iter();
        found.extend(named.map(|artifact| ((cycle, artifact.name.clone()), artifact)));
    })?;
    let place = |((cycle, name), artifact): ((u32, String), NamedArtifact)| {
        let is_archived = cycle < run.number() && projections::is_of_cycle(&name);
        let place = if is_archived { format!("cycle-{cycle}/{name}") } else { name };
        PlacedArtifact { artifact, place }
    };
    // Of files that are not archived, the newest is last.
    let by_place = found.into_iter().map(place).map(|placed| (placed.place.clone(), placed));
    Ok(by_place.collect::<BTreeMap<String, PlacedArtifact>>().into_values().collect())
}

fn artifacts_in(line: Seq, event: &Event) -> Vec<NamedArtifact> {
    let mut named = Vec::new();
    let mut add = |name: &str, digest: Option<&String>| {
        if !name.is_empty() {
            named.push(NamedArtifact { line, name: name.to_owned(), digest: digest.cloned() });
        }
    };
    if let Some(AgentComplete { artifacts, digest, .. }) = event.body() {
        // The first is the answer.
        let digests = [Some(digest)].into_iter().chain(std::iter::repeat(None));
        artifacts.iter().zip(digests).for_each(|(name, digest)| add(name, digest));
    }
    if let Some(RunReentered { proposal, making, reviews, .. }) = event.body() {
        let all = proposal.iter().chain(making).chain(reviews).map(|imported: &Imported| &imported.artifact);
        all.for_each(|artifact| add(&artifact.name, Some(&artifact.digest)));
    }
    if let Some(TestsDone { artifact, .. }) = event.body() {
        add(artifact, None);
    }
    if let Some(PreflightDone { setup, tests, .. }) = event.body() {
        setup.iter().for_each(|setup| add(&setup.artifact, None));
        tests.iter().for_each(|tests| add(&tests.artifact, None));
    }
    named
}

fn has_commits(event: &Event) -> bool {
    let made = event.body::<AgentComplete>().is_some_and(|complete| complete.change.is_some());
    let failed = event.body::<AgentFailed>().is_some_and(|failed| failed.kept_as.is_some());
    let too_long = event.body::<AgentTimeout>().is_some_and(|failed| failed.kept_as.is_some());
    let lost = event.body::<AgentLost>().is_some_and(|lost| lost.kept_as.is_some());
    let reentered = event.body::<RunReentered>().is_some_and(|reentered| reentered.change.is_some());
    let built = event.body::<MergeBuilt>().is_some() || event.body::<RevertBuilt>().is_some();
    let lands = event.body::<MergeIntent>().is_some() || event.body::<RevertIntent>().is_some();
    let back = event.body::<RunRolledBack>().is_some() || event.body::<RunDiscarded>().is_some();
    made || failed || too_long || lost || reentered || built || lands || back
}

impl Project {
    /// Where the file is here that a line of a run names; nothing if it is there no more.
    pub fn artifact_file(&self, id: &str, artifact: &NamedArtifact) -> Option<PathBuf> {
        if !names::valid_name(id) || !names::valid_name(&artifact.name) {
            return None;
        }
        let folder = self.places.artifacts().join(id);
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        // Archived meanwhile.
        let below = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let places = [folder].into_iter().chain(below.map(|entry| entry.path()));
        let is_it = |path: &PathBuf| match files::read_capped(path, LARGEST) {
            Ok(bytes) => artifact.digest.as_ref().is_none_or(|digest| files::digest(&bytes) == *digest),
            Err(_) => false,
        };
        places.map(|folder| folder.join(&artifact.name)).find(is_it)
    }

    /// All refs of a run as they are here, to be put where another machine finds them.
    pub fn run_refs(&self, id: &str) -> Result<BTreeMap<String, ObjectId>, transfer::Error> {
        if !names::valid_name(id) {
            return Err(open::Error::BadId { id: id.to_owned() }.into());
        }
        let text = Journal::read(&self.places.events().join(format!("{id}.jsonl")))?;
        let first = text.get(0).map(|line| log::decode(&line)).transpose()?;
        let branch =
            first.as_ref().and_then(|entry| entry.event.body::<RunStart>()).map(|start| &start.branch);
        let branch = branch.ok_or_else(|| open::Error::NeverBegan { id: id.to_owned() })?;
        self.refs_of(id, format!("refs/heads/{branch}"))
    }
}

const LARGEST: u64 = 512 << 20;
