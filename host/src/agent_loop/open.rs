//! Opens loops: what must be there first, and the two lines a loop begins with. The engine does the rest.

use std::io::Read;
use std::path::{Path, PathBuf};

use archeflow_core::event::{Base, Chosen, LoopOpened, RunStart};
use archeflow_core::model::{Approval, LOOP_RULES, Speaker, Strategy, Token, Workflow, loop_team};
use archeflow_core::run::Run;
use archeflow_core::strategies::agent_loop::cyclefile;
use archeflow_core::strategies::agent_loop::rules::goal;
use archeflow_core::strategies::agent_loop::signal;
pub use archeflow_core::strategies::agent_loop::view::is_open;

use super::cycle::{self, CycleFile, CycleFileState, PATH};
use super::{archive, diet};
use crate::git::{self, runner};
use crate::open::{self, OpenedRun, Project, RunName, RunRequest};
use crate::store::journal::Journal;
use crate::store::places::Places;
use crate::store::{files, index, names};
use crate::{clock, log, memory};

/// What was asked for on the command line; the goal is the task, and may be in the cycle file instead.
#[derive(Debug, Clone, Default)]
pub struct LoopRequest {
    pub wanted: RunRequest,
    /// The name of the folder if not given.
    pub project: Option<String>,
    /// All loops are planned first (MX-02).
    pub upfront: bool,
    pub approval: Option<Approval>,
    /// Empty the cycle file first; its content is kept in the archive.
    pub clear: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Start(Box<open::Error>),
    #[error(transparent)]
    Cycle(#[from] cycle::Error),
    #[error(transparent)]
    Git(#[from] runner::Error),
    /// PJ-01, PJ-40.
    #[error("the goal says too little: \"{goal}\"")]
    Vague { goal: String },
    #[error("no goal was given, and no block in {PATH} says one")]
    NoGoal,
    #[error("the project's name '{name}' can't be used in a signature")]
    BadProject { name: String },
    /// One file is one conversation.
    #[error("the loop {id} is still open in this working tree ({state})")]
    Open { id: String, state: &'static str },
    #[error("{PATH} still has an earlier cycle in it ({blocks} blocks)")]
    NotClear { blocks: u32 },
}

impl From<open::Error> for Error {
    fn from(error: open::Error) -> Error {
        Error::Start(Box::new(error))
    }
}

/// A loop ready to be driven.
pub struct OpenedLoop {
    pub opened: OpenedRun,
    /// The archive file of the earlier cycle, if one was archived.
    pub archived: Option<String>,
}

/// A loop of a repository, folded.
#[derive(Debug, Clone)]
pub struct LoopRun {
    pub id: String,
    pub run: Run,
}

/// Everything `run.start` needs to know to begin one.
struct Goal {
    text: String,
    in_file: bool,
}

impl Project {
    /// A new loop, claimed and ready for its first events. Nothing has been started, and the cycle file is as it was.
    pub fn open_loop(self, requested: &LoopRequest) -> Result<OpenedLoop, Error> {
        let mut prepared = self.prepare(&requested.wanted)?;
        let policy = &mut prepared.policy;
        policy.looping.approval = requested.approval.unwrap_or(policy.looping.approval);
        // S-05: a detected linter is the repository's code. It runs where the repository is approved or the user said so.
        let may_detect = self.approved || prepared.settings.is_set_by_user("loop.detect");
        policy.looping.detect = policy.looping.detect && may_detect;
        let project = project(requested, self.places.root())?;
        if let Some(open) = loops(&self.places).into_iter().find(|known| is_open(&known.run)) {
            return Err(Error::Open { id: open.id, state: open.run.loop_state().name() });
        }
        let file = CycleFile::new(self.places.root(), &self.state);
        let seen = ready(&file, requested.clear)?;
        let goal = goal_of(requested, &seen)?;
        if goal::is_vague(&goal.text, &policy.looping) {
            return Err(Error::Vague { goal: goal.text });
        }
        self.check_git(&prepared.settings)?;
        prepared.check_agents(&self)?;
        let target = self.target.clone().ok_or(open::Error::Repo(git::repo::Error::Detached))?;
        let wanted = RunRequest { task: goal.text.clone(), ..requested.wanted.clone() };
        let mut team = prepared.select_team(&wanted, (&self.repo, &target.oid))?;
        let participants = loop_team();
        team.seats.insert(Strategy::Loop.name().to_owned(), participants.clone());
        let documents = diet::names(&self.repo, &target.oid)?;
        let archived = if requested.clear { put_away(&file)? } else { None };
        let words = format!("loop {}", wanted.task);
        let journal = self.claim(&wanted.id.as_deref().map_or(RunName::From(&words), RunName::Given))?;
        let base = Base { target: target.branch.clone(), commit: target.oid.to_string() };
        let chosen = Chosen {
            strategy_by: "archeflow loop".to_owned(),
            workflow_by: "archeflow loop".to_owned(),
            domain_by: team.chosen.domain_by.clone(),
            against: Vec::new(),
        };
        // Lenses, shadows and team files are for archetypes; the roles of a loop have none.
        let mut request = RunStart {
            workflow: Workflow::Standard,
            max_cycles: prepared.policy.looping.pause_after,
            strategy: Strategy::Loop,
            shadows: std::collections::BTreeMap::new(),
            lenses: Vec::new(),
            categories: Vec::new(),
            overlay: archeflow_core::model::Overlay::default(),
            branch: format!("{}{}", prepared.settings.branch_prefix(), journal.run_id()),
            chosen,
            ..self.run_start(&prepared, team, &participants, &goal.text, base)
        };
        memory::recall(&self.places, &self.state, &mut request);
        let date = clock::date(clock::now());
        let number = cyclefile::next_number(&date, archive::all(&file)?.iter().map(String::as_str));
        let opened = LoopOpened {
            project,
            cycle_id: format!("{date}-{number:03}"),
            path: PATH.to_owned(),
            seal: seen.past.seal,
            blocks: seen.past.blocks,
            goal: goal.text,
            in_file: goal.in_file,
            upfront: requested.upfront,
            documents,
            heard: files::digest(seen.past.fresh.as_bytes()),
            rules: LOOP_RULES,
        };
        let opened = self.opened(journal, prepared, request.into(), Some(opened.into()))?;
        Ok(OpenedLoop { opened, archived })
    }
}

/// It is in the signature of every block.
fn project(requested: &LoopRequest, root: &Path) -> Result<String, Error> {
    let folder = || root.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = requested.project.clone().or_else(folder).unwrap_or_else(|| "project".to_owned());
    let fits = |c: char| !c.is_control() && !matches!(c, '|' | '=' | ',' | ';' | ':');
    let good = !name.trim().is_empty() && name.chars().count() <= 80 && name.chars().all(fits);
    if good { Ok(name.trim().to_owned()) } else { Err(Error::BadProject { name }) }
}

/// PJ-01: the file is clear, or has only what a person wrote for this goal. One that is cleared first is as good as
/// empty.
fn ready(file: &CycleFile, clear: bool) -> Result<CycleFileState, Error> {
    if clear {
        return Ok(CycleFileState::default());
    }
    let seen = file.look()?;
    match seen.past.blocks {
        0 => Ok(seen),
        blocks => Err(Error::NotClear { blocks }),
    }
}

/// Empties the cycle file. Nothing is lost: its content is in the archive, or is put there now.
pub fn put_away(file: &CycleFile) -> Result<Option<String>, cycle::Error> {
    let text = file.raw()?;
    if text.trim().is_empty() {
        return Ok(None);
    }
    let kept = match archive::holding(file, &text)? {
        Some(name) => name,
        None => {
            let why = ["The file was cleared before this cycle came to an end.".to_owned()];
            archive::write(file, &clock::date(clock::now()), cyclefile::Ending::Incomplete, &why)?
        }
    };
    file.clear(&text)?;
    Ok(Some(kept))
}

fn goal_of(requested: &LoopRequest, seen: &CycleFileState) -> Result<Goal, Error> {
    let typed = requested.wanted.task.trim();
    if !typed.is_empty() {
        return Ok(Goal { text: typed.to_owned(), in_file: false });
    }
    let reading = signal::read(&seen.past.fresh);
    let block = reading.last().filter(|block| {
        block.agent == Some(Speaker::Human) && block.result == Some(Token::Init) && !block.summary.is_empty()
    });
    let text = block.map(|block| block.summary.clone()).ok_or(Error::NoGoal)?;
    Ok(Goal { text, in_file: true })
}

/// The loops of a repository, in the order in which they began. What can't be read is no loop.
pub fn loops(places: &Places) -> Vec<LoopRun> {
    let folded = |(id, path): (String, PathBuf)| {
        let run = log::fold(&Journal::read(&path).ok()?).ok()?;
        (run.strategy() == Strategy::Loop && run.agent_loop.is_some()).then_some(LoopRun { id, run })
    };
    journals(places).into_iter().filter_map(folded).collect()
}

/// The journals that begin like a loop's: not every run is folded to find the few.
pub fn journals(places: &Places) -> Vec<(String, PathBuf)> {
    let events = places.events();
    let known = index::read(&events).unwrap_or_default();
    let all = known
        .runs
        .into_iter()
        .map(|entry| (entry.run_id.clone(), events.join(format!("{}.jsonl", entry.run_id))));
    all.filter(|(id, path)| names::valid_name(id) && begins_as_loop(path)).collect()
}

fn begins_as_loop(path: &Path) -> bool {
    const ENOUGH: u64 = 64 * 1024;
    let Ok(file) = files::open_for_reading(path) else { return false };
    let mut start = Vec::new();
    let read = file.take(ENOUGH).read_to_end(&mut start);
    let line = start.split(|byte| *byte == b'\n').next().unwrap_or_default();
    read.is_ok() && String::from_utf8_lossy(line).contains("\"strategy\":\"loop\"")
}

/// For errors about files.
impl From<files::Error> for Error {
    fn from(error: files::Error) -> Error {
        Error::Cycle(error.into())
    }
}
