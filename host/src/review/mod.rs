//! Opens reviews of changes that are there already: takes the subject, cuts its diff into parts, and says what is
//! known about it. The engine does the rest, as for every run.

mod baseline;
mod frames;
mod history;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use archeflow_core::event::{Artifact, Base, Chosen, Event, FORMAT, ReviewOpened, RunStart};
use archeflow_core::model::{
    Participant, Persona, ReviewPart, Role, Sight, Strategy, Subject, SubjectKind, review_team,
};
use archeflow_core::run::{REVIEW, Run};

use crate::drive::Driver;
use crate::git::subject::{self, ReviewSubject, ReviewTarget};
use crate::git::{Repo, parts, runner};
use crate::probe::Choice;
use crate::start::{self, Project, Wanted};
use crate::store::{files, names};
use crate::{clock, executors, team};

pub use baseline::{Baseline, BaselineError, DEFAULT as DEFAULT_BASELINE};
pub use frames::frames;
pub use history::{earlier, ended};

/// What was asked for on the command line.
#[derive(Debug, Clone)]
pub struct Requested {
    pub ask: ReviewTarget,
    pub wanted: Wanted,
    /// Archetypes by name; empty for those of the workflow or team, or the Guardian alone.
    pub reviewers: Vec<String>,
    pub verify: bool,
    pub baseline: Option<PathBuf>,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Start(Box<start::Error>),
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

impl From<start::Error> for Error {
    fn from(error: start::Error) -> Error {
        Error::Start(Box::new(error))
    }
}

/// A review ready to be driven.
pub struct Opened {
    pub driver: Driver,
    pub before: Vec<Event>,
    pub after: Vec<Event>,
    /// The client that was taken because nobody named one.
    pub at_hand: Option<Choice>,
}

/// Where what reviews of a repository are about is kept.
fn stores(state: &Path, repo: &Repo) -> PathBuf {
    state.join("reviews").join(repo.id())
}

/// The objects of a review's change.
fn store(state: &Path, repo: &Repo, run_id: &str) -> PathBuf {
    stores(state, repo).join(run_id)
}

/// Stores beyond these are removed, the oldest first, unless they are young.
const KEPT: usize = 20;
const YOUNG: std::time::Duration = std::time::Duration::from_secs(14 * 24 * 60 * 60);

impl Project {
    /// A new review, claimed and ready to be told. Nothing has been started, and nothing of the user's was touched.
    pub fn review(mut self, requested: &Requested) -> Result<Opened, Error> {
        let fresh = stores(&self.state, &self.repo).join(format!("new-{}", executors::nonce()));
        let taken = subject::take(&self.repo, &fresh, &requested.ask)?;
        let opened = self.judged_by(&taken).and_then(|()| self.open_review(requested, &taken, &fresh));
        if opened.is_err() {
            let _ = std::fs::remove_dir_all(&fresh);
        }
        opened
    }

    /// R4: the rules are those of the base. A change under review can't alter what judges it.
    fn judged_by(&mut self, taken: &ReviewSubject) -> Result<(), Error> {
        Ok(self.believe(&taken.repo, &taken.base)?)
    }

    fn open_review(
        self,
        requested: &Requested,
        taken: &ReviewSubject,
        fresh: &Path,
    ) -> Result<Opened, Error> {
        let baseline = Baseline::read(requested.baseline.as_deref(), (&taken.repo, &taken.base))?;
        let wanted = Wanted { task: taken.title.clone(), ..requested.wanted.clone() };
        let (settings, found, personas) = self.approved_settings(&wanted)?;
        let mut policy = settings.policy();
        let unnamed = policy.agents.default.is_empty() && policy.agents.by_archetype.is_empty();
        let at_hand = if unnamed { self.client_at_hand().cloned() } else { None };
        policy.agents = self.resolved_agents(&policy.agents, &settings)?;
        policy.costs.prices = settings.prices();
        let tree = (&taken.repo, &taken.base);
        let mut lineup = team::line_up(&settings, &wanted.flags, &wanted.task, &policy, &personas, tree)?;
        let named = wanted.flags.workflow.is_some() || wanted.flags.team.is_some();
        let sitting = match (requested.reviewers.as_slice(), named) {
            ([], false) => review_team(),
            ([], true) => lineup.sitting().to_vec(),
            (names, _) => seats(names, &personas)?,
        };
        // In a review nobody goes first: all look at once.
        let sitting: Vec<Participant> = sitting
            .into_iter()
            .filter(|seat| matches!(seat.role, Role::Gatekeeper | Role::Reviewer))
            .map(|seat| Participant { role: Role::Reviewer, ..seat })
            .collect();
        let subject = subject_of(requested, taken);
        lineup.seats.insert(REVIEW.to_owned(), sitting.clone());
        self.places.make()?;
        let (events, artifacts) = (self.places.events(), self.places.artifacts());
        let name = format!("review {}", subject.said());
        let journal = names::free_run_id(&events, &artifacts, &clock::date(clock::now()), &name)
            .map_err(start::Error::from)?;
        let run_id = journal.run_id().to_owned();
        let place = store(&self.state, &self.repo, &run_id);
        std::fs::rename(fresh, &place).map_err(|source| Error::Io { path: place.clone(), source })?;
        let repo = lending(&self.repo, &self.state, &run_id)?;
        let folder = artifacts.join(&run_id);
        let cut = parts::cut(&repo, &taken.base, &taken.commit, &folder, &policy.review.splitting)?;
        let once: Vec<String> = sitting
            .iter()
            .map(|seat| &seat.archetype)
            .filter(|name| !sees(&personas, name, Sight::Diff))
            .cloned()
            .collect();
        // Where nobody is shown the diff, one look is all there is.
        let shown = if once.len() == sitting.len() { 1 } else { cut.parts.len() };
        let parts: Vec<ReviewPart> = cut.parts.iter().take(shown).map(part).collect();
        let about = write(&folder, "about.md", &taken.about)?;
        let plan = parts::markdown(&cut) + &to_whom(&sitting, &personas);
        let plan = write(&folder, "plan.md", &plan)?;
        let earlier = history::carried(&self.places, &subject.key, &folder)?;
        let bytes = policy.raised.binary_bytes;
        let change = executors::change_of(&repo, &taken.base, &taken.commit, "", bytes)?;
        let request = RunStart {
            task: taken.title.clone(),
            workflow: lineup.workflow,
            max_cycles: 1,
            strategy: Strategy::Review,
            domain: lineup.domain,
            team: sitting.iter().map(|seat| seat.archetype.clone()).collect(),
            seats: lineup.seats,
            tiers: lineup.tiers,
            personas: found,
            shadows: start::shadows(&personas),
            lenses: lineup.lenses,
            categories: lineup.categories,
            overlay: lineup.overlay,
            past: self.past(),
            config: policy,
            config_hash: settings.hash().to_owned(),
            base: Base { target: String::new(), commit: taken.base.to_string() },
            branch: String::new(),
            dry_run: false,
            chosen: Chosen {
                strategy_by: "archeflow review".to_owned(),
                workflow_by: lineup.chosen.workflow_by,
                domain_by: lineup.chosen.domain_by,
                against: Vec::new(),
            },
            format: FORMAT,
            version: self.ground.version.to_owned(),
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
        subject::sweep(&stores(&self.state, &self.repo), KEPT, YOUNG, &|name| name == run_id);
        let mut house = self;
        house.repo = repo;
        let driver = house.driver(journal, Run::default(), personas, &settings);
        Ok(Opened { driver, before: vec![request.into()], after: vec![opened.into()], at_hand })
    }
}

/// The repository as the agents of a review see it: with the objects of its change.
pub(crate) fn lending(repo: &Repo, state: &Path, run_id: &str) -> Result<Repo, start::Error> {
    let place = store(state, repo, run_id);
    subject::reopen(repo, &place).ok_or_else(|| start::Error::SubjectGone { id: run_id.to_owned() })
}

/// For whoever looks at a review later; the user's own repository where its change is not kept any more.
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

fn subject_of(requested: &Requested, taken: &ReviewSubject) -> Subject {
    let (kind, name) = match &requested.ask {
        ReviewTarget::WorkingTree => (SubjectKind::WorkingTree, String::new()),
        ReviewTarget::Staged => (SubjectKind::Staged, String::new()),
        ReviewTarget::Branch { branch, .. } => (SubjectKind::Branch, branch.clone()),
        ReviewTarget::Commits { range } => (SubjectKind::Commits, range.clone()),
        ReviewTarget::Patch { name, .. } => (SubjectKind::Patch, name.clone()),
        ReviewTarget::PullRequest { number } => (SubjectKind::PullRequest, number.to_string()),
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
