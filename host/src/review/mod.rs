//! Opens reviews of changes that are there already: takes the subject, cuts its diff into parts, and collects what is
//! known about it. The engine does the rest, as for every run.

mod baseline;
mod frames;
mod history;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use archeflow_core::event::{Artifact, Base, Chosen, ReviewOpened, RunStart};
use archeflow_core::model::{
    Participant, Persona, ReviewPart, Role, Sight, Strategy, Subject, SubjectKind, review_team,
};
use archeflow_core::strategies;

use crate::cleaning;
use crate::executors::{self, WantedSigns};
use crate::git::subject::{self, ReviewSubject, ReviewTarget};
use crate::git::{Repo, parts, runner};
use crate::nonce::nonce;
use crate::open::{self, OpenedRun, Project, RunName, RunRequest};
use crate::platform::removal::remove_tree;
use crate::store::journal::Journal;
use crate::store::{files, index};

pub use baseline::{Baseline, BaselineError, DEFAULT as DEFAULT_BASELINE};
pub use frames::frames;
pub use history::{earlier, ended};

/// What was asked for on the command line.
#[derive(Debug, Clone)]
pub struct ReviewRequest {
    pub ask: ReviewTarget,
    pub wanted: RunRequest,
    /// Archetypes by name; empty for those of the workflow or team, or the Guardian alone.
    pub reviewers: Vec<String>,
    pub verify: bool,
    pub baseline: Option<PathBuf>,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Start(Box<open::Error>),
    #[error(transparent)]
    Subject(#[from] subject::Error),
    #[error(transparent)]
    Parts(#[from] parts::Error),
    #[error(transparent)]
    Git(#[from] runner::Error),
    #[error(transparent)]
    Files(#[from] files::Error),
    #[error(transparent)]
    Baseline(#[from] BaselineError),
    #[error("'{name}' is no reviewer; known: {known}")]
    NoReviewer { name: String, known: String },
    #[error("{} could not be used: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
}

impl From<open::Error> for Error {
    fn from(error: open::Error) -> Error {
        Error::Start(Box::new(error))
    }
}

/// Where what reviews of a repository are about is kept.
fn stores(state: &Path, repo: &Repo) -> PathBuf {
    cleaning::review_stores(state, repo.id())
}

/// The objects of a review's change.
fn store(state: &Path, repo: &Repo, run_id: &str) -> PathBuf {
    stores(state, repo).join(run_id)
}

impl Project {
    /// A new review, claimed and ready for its first events. Nothing has been started, and nothing of the user's was touched.
    pub fn review(mut self, requested: &ReviewRequest) -> Result<OpenedRun, Error> {
        let fresh = stores(&self.state, &self.repo).join(format!("{}{}", subject::FRESH, nonce()));
        let taken = subject::take_folder(&self.repo, &fresh, &requested.ask, &|repo, base| {
            self.configured_folder(repo, base)
        })?;
        let opened = self.judged_by(&taken).and_then(|()| self.open_review(requested, &taken, &fresh));
        if opened.is_err() {
            let _ = remove_tree(&fresh);
        }
        opened
    }

    /// The review of exactly this content: the newest one of the same subject, or one that is under way. Nothing is kept of
    /// the look.
    pub fn review_of_this(&self, ask: &ReviewTarget) -> Result<Option<String>, Error> {
        let fresh = stores(&self.state, &self.repo).join(format!("{}{}", subject::FRESH, nonce()));
        let folder_of = |repo: &Repo, base: &_| self.configured_folder(repo, base);
        let taken = subject::take_folder(&self.repo, &fresh, ask, &folder_of);
        let _ = remove_tree(&fresh);
        let taken = taken?;
        let events = self.places.events();
        let runs = index::read(&events).unwrap_or_default().runs;
        let running = runs.into_iter().filter(|run| run.status == "running").map(|run| run.run_id);
        let under_way = running.filter(|id| Journal::driver(&events, id).is_some());
        let mut known = history::latest(&self.places, &taken.key).into_iter().chain(under_way);
        Ok(known.find(|id| {
            let commit = history::reviewed_commit(&self.places, id);
            self.is_own(id) && commit.is_some_and(|commit| commit == taken.commit.to_string())
        }))
    }

    /// R4: the rules are those of the base. A change under review can't alter what judges it.
    fn judged_by(&mut self, taken: &ReviewSubject) -> Result<(), Error> {
        Ok(self.read_configuration_from(&taken.repo, &taken.base)?)
    }

    fn open_review(
        self,
        requested: &ReviewRequest,
        taken: &ReviewSubject,
        fresh: &Path,
    ) -> Result<OpenedRun, Error> {
        let baseline = Baseline::read(requested.baseline.as_deref(), (&taken.repo, &taken.base))?;
        let wanted = RunRequest { task: taken.title.clone(), ..requested.wanted.clone() };
        // A command that a review never runs needs no approval, nor does a value that the command line replaces.
        let mut prepared =
            self.prepare_if(&wanted, |held| held.overruled.is_none() && strategies::review::uses(&held.key))?;
        prepared.check_agents(&self)?;
        let mut team = prepared.select_team(&wanted, (&taken.repo, &taken.base))?;
        let personas = &prepared.personas;
        let named = wanted.flags.workflow.is_some() || wanted.flags.team.is_some();
        let sitting = match (requested.reviewers.as_slice(), named) {
            ([], false) => review_team(),
            ([], true) => team.participants().to_vec(),
            (names, _) => seats(names, personas)?,
        };
        // In a review all reviewers start at once.
        let sitting: Vec<Participant> = sitting
            .into_iter()
            .filter(|seat| matches!(seat.role, Role::Gatekeeper | Role::Reviewer))
            .map(|seat| Participant { role: Role::Reviewer, ..seat })
            .collect();
        let subject = subject_of(requested, taken);
        team.seats.insert(Strategy::Review.name().to_owned(), sitting.clone());
        let name = format!("review {}", subject.label());
        let journal = self.claim(&wanted.id.as_deref().map_or(RunName::From(&name), RunName::Given))?;
        let artifacts = self.places.artifacts();
        let run_id = journal.run_id().to_owned();
        let place = store(&self.state, &self.repo, &run_id);
        std::fs::rename(fresh, &place).map_err(|source| Error::Io { path: place.clone(), source })?;
        let repo = with_review_objects(&self.repo, &self.state, &run_id)?;
        let folder = artifacts.join(&run_id);
        let cut = parts::cut(&repo, &taken.base, &taken.commit, &folder, &prepared.policy.review.splitting)?;
        let once: Vec<String> = sitting
            .iter()
            .map(|seat| &seat.archetype)
            .filter(|name| !sees(personas, name, Sight::Diff))
            .cloned()
            .collect();
        // If no reviewer is shown the diff, one part is enough.
        let shown = if once.len() == sitting.len() { 1 } else { cut.parts.len() };
        let parts: Vec<ReviewPart> = cut.parts.iter().take(shown).map(part).collect();
        let about = write(&folder, "about.md", &taken.about)?;
        let plan = parts::markdown(&cut) + &to_whom(&sitting, personas);
        let plan = write(&folder, "plan.md", &plan)?;
        let earlier = history::carried(&self.places, &subject.key, &folder)?;
        let binary_bytes = prepared.policy.raised.binary_bytes;
        let wanted = WantedSigns { binary_bytes, test_command: None };
        let change = executors::change_of(&repo, &taken.base, &taken.commit, "", wanted)?;
        let base = Base { target: String::new(), commit: taken.base.to_string() };
        let chosen =
            Chosen { strategy_by: "archeflow review".to_owned(), against: Vec::new(), ..team.chosen.clone() };
        let request = RunStart {
            max_cycles: 1,
            strategy: Strategy::Review,
            chosen,
            ..self.run_start(&prepared, team, &sitting, &taken.title, base)
        };
        let opened = ReviewOpened {
            subject,
            change,
            about,
            parts,
            once,
            plan,
            summarised: cut.summarised,
            earlier,
            accepted: baseline.accepted,
            verify: requested.verify,
        };
        let mut project = self;
        project.repo = repo;
        Ok(project.opened(journal, prepared, request.into(), Some(opened.into()))?)
    }
}

/// The repository as the agents of a review see it: with the objects of its change.
pub(crate) fn with_review_objects(repo: &Repo, state: &Path, run_id: &str) -> Result<Repo, open::Error> {
    let place = store(state, repo, run_id);
    subject::reopen(repo, &place).ok_or_else(|| open::Error::SubjectGone { id: run_id.to_owned() })
}

/// For viewers of an old review; the user's own repository where its change is not kept any more.
pub fn as_reviewed(repo: &Repo, state: &Path, run_id: &str) -> Repo {
    subject::reopen(repo, &store(state, repo, run_id)).unwrap_or_else(|| repo.clone())
}

fn sees(personas: &BTreeMap<String, Persona>, archetype: &str, sight: Sight) -> bool {
    personas.get(archetype).is_some_and(|persona| persona.archetype.sees.contains(&sight))
}

/// Which reviewer sees what of it.
fn to_whom(sitting: &[Participant], personas: &BTreeMap<String, Persona>) -> String {
    let mut text = "\n## To whom\n\n| reviewer | is shown |\n|---|---|\n".to_owned();
    for seat in sitting {
        let sees = |sight| sees(personas, &seat.archetype, sight);
        let shown = match (sees(Sight::Diff), sees(Sight::Proposal)) {
            (true, true) => "every part, and what the change says of itself (`about.md`)",
            (true, false) => "every part",
            (false, _) => "what the change says of itself (`about.md`), once",
        };
        text.push_str(&format!("| {} | {shown} |\n", seat.archetype));
    }
    text
}

fn seats(names: &[String], personas: &BTreeMap<String, Persona>) -> Result<Vec<Participant>, Error> {
    let reviews = |role: Role| matches!(role, Role::Gatekeeper | Role::Reviewer);
    let known = || {
        let all = personas.values().filter(|persona| reviews(persona.archetype.role));
        all.map(|persona| persona.archetype.name.clone()).collect::<Vec<_>>().join(", ")
    };
    let mut seats: Vec<Participant> = Vec::new();
    for name in names {
        let persona = personas.get(name).filter(|persona| reviews(persona.archetype.role));
        let Some(persona) = persona else {
            return Err(Error::NoReviewer { name: name.clone(), known: known() });
        };
        if seats.iter().all(|seat| seat.archetype != *name) {
            seats.push(Participant { archetype: name.clone(), role: persona.archetype.role });
        }
    }
    Ok(seats)
}

fn subject_of(requested: &ReviewRequest, taken: &ReviewSubject) -> Subject {
    let (kind, name) = match &requested.ask {
        ReviewTarget::WorkingTree => (SubjectKind::WorkingTree, String::new()),
        ReviewTarget::Staged => (SubjectKind::Staged, String::new()),
        ReviewTarget::Branch { branch, .. } => (SubjectKind::Branch, branch.clone()),
        ReviewTarget::Commits { range } => (SubjectKind::Commits, range.clone()),
        ReviewTarget::Patch { name, .. } => (SubjectKind::Patch, name.clone()),
        ReviewTarget::PullRequest { number, .. } => (SubjectKind::PullRequest, number.to_string()),
    };
    Subject { kind, name, key: taken.key.clone() }
}

fn part(cut: &parts::PartFile) -> ReviewPart {
    let artifact = Artifact { name: cut.name.clone(), digest: cut.digest.clone() };
    ReviewPart { artifact, files: cut.files, lines: cut.lines, bytes: cut.bytes }
}

fn write(folder: &Path, name: &str, text: &str) -> Result<Artifact, files::Error> {
    files::write_atomic(&folder.join(name), text.as_bytes())?;
    Ok(Artifact { name: name.to_owned(), digest: files::digest(text.as_bytes()) })
}
