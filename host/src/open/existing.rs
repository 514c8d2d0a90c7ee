//! Runs that exist: replayed from their journal and ready to be driven on.

use std::collections::BTreeMap;
use std::path::Path;

use archeflow_core::event::{Event, FixApplied, Report, SessionStart};
use archeflow_core::model::Money;
use archeflow_core::run::Run;

use super::agents::accounts;
use super::{Error, Project};
use crate::config;
use crate::drive::Driver;
use crate::git::ObjectId;
use crate::store::journal::{self, Journal};
use crate::store::names;
use crate::store::own_runs::OwnRun;
use crate::store::places;
use crate::{failpoint, log, memory, proc, projections, review};

impl Project {
    /// A run that exists, folded from its log and ready to be driven on. Leftovers of its last driver are ended.
    pub fn existing(self, id: &str, file: Option<&Path>) -> Result<(Driver, Option<journal::Repair>), Error> {
        self.existing_with(id, file, &config::Flags::default())
    }

    /// The same, with other agents. What is frozen in the log can't be changed.
    pub(crate) fn existing_with(
        self,
        id: &str,
        file: Option<&Path>,
        flags: &config::Flags,
    ) -> Result<(Driver, Option<journal::Repair>), Error> {
        if !names::valid_name(id) {
            return Err(Error::BadId { id: id.to_owned() });
        }
        self.places.check_owner()?;
        places::check_writable(&self.state)?;
        let own = OwnRun { state: &self.state, root: self.places.root(), run_id: id };
        if !self.places.events().join(format!("{id}.jsonl")).exists() {
            return Err(Error::NoRun { id: id.to_owned() });
        }
        if self.came_with_the_repository(id)? || !own.is_known()? {
            return Err(self.foreign_or_unbegun(id));
        }
        let opened = match Journal::open(&self.places.events(), id) {
            Err(journal::Error::Missing { .. }) => return Err(Error::NoRun { id: id.to_owned() }),
            other => other?,
        };
        // A journal without a line names no command; it is told below.
        if !(opened.lines.is_empty() || own.wrote(&opened.lines)?) {
            return Err(Error::Foreign { id: id.to_owned() });
        }
        let mut fixes = Vec::new();
        let is_fix = |event: &Event| event.body::<FixApplied>().is_some();
        let run = log::fold_seeing_some(&opened.lines, is_fix, |run, entry| {
            fixes.extend(projections::fix_line(id, run, entry));
        })?;
        if run.request.is_none() || !run.is_opened() {
            return Err(Error::NeverBegan { id: id.to_owned() });
        }
        if let Some(session) = &run.session {
            proc::kill_leftovers(&format!("{}.", session.tag));
        }
        failpoint::pass("swept");
        let mut project = self.at_base_of(&run)?;
        if run.review.is_some() {
            project.repo = review::with_review_objects(&project.repo, &project.state, id)?;
        }
        let settings = project.settings(&config::Flags::default(), file)?;
        let agents = project.renamed_agents(&run, flags, &settings)?;
        let (_, personas) = project.personas(file)?;
        let mut driver = project.driver(opened.journal, run, personas, &settings)?;
        driver.agents = agents;
        projections::catch_up(&driver.world, &driver.run)?;
        projections::catch_up_fixes(&driver.world, &fixes)?;
        projections::catch_up_index(&driver.world, &driver.run);
        let _ = memory::ended(&driver.world, &driver.run);
        let _ = review::ended(&driver.world, &driver.run);
        Ok((driver, opened.repaired))
    }

    /// R4: the repository's files as they were when the run began. What was committed since does not judge it.
    fn at_base_of(mut self, run: &Run) -> Result<Project, Error> {
        let base =
            run.request.as_ref().and_then(|request| ObjectId::parse(request.base.commit.as_bytes()).ok());
        if let Some(base) = base
            && self.repo.has_commit(&base)?
        {
            let repo = self.repo.clone();
            self.read_configuration_from(&repo, &base)?;
        }
        Ok(self)
    }

    /// A run that was claimed and never began has nothing that could be foreign.
    fn foreign_or_unbegun(&self, id: &str) -> Error {
        match Journal::read(&self.places.events().join(format!("{id}.jsonl"))) {
            Ok(text) if text.is_empty() => Error::NeverBegan { id: id.to_owned() },
            Ok(_) | Err(_) => Error::Foreign { id: id.to_owned() },
        }
    }

    /// What a run whose journal came from elsewhere would execute. Nothing is written and nothing started.
    pub fn adoption(&self, id: &str) -> Result<Adoption, Error> {
        if !names::valid_name(id) {
            return Err(Error::BadId { id: id.to_owned() });
        }
        self.places.check_owner()?;
        let path = self.places.events().join(format!("{id}.jsonl"));
        let text = match Journal::read(&path) {
            Err(journal::Error::Missing { .. }) => return Err(Error::NoRun { id: id.to_owned() }),
            other => other?,
        };
        let lines = text.len() as u64;
        let Some(digest) = text.digest_of(text.len()) else {
            return Err(Error::NeverBegan { id: id.to_owned() });
        };
        if self.came_with_the_repository(id)? {
            return Err(Error::Committed { id: id.to_owned() });
        }
        let mut commands = Vec::new();
        log::fold_seeing(&text, |_, entry| commands.extend(commands_in(&entry.event)))?;
        commands.dedup();
        let own = OwnRun { state: &self.state, root: self.places.root(), run_id: id }.wrote(&text)?;
        Ok(Adoption { commands, own, lines, digest })
    }

    /// Takes the run over as it was shown: should its journal change before it is resumed, it is foreign again.
    pub fn adopt(&self, id: &str, adoption: &Adoption) -> Result<(), Error> {
        let own = OwnRun { state: &self.state, root: self.places.root(), run_id: id };
        Ok(own.remember(adoption.lines, &adoption.digest)?)
    }

    /// Whether this is the journal of a run that was started or taken over here; what can't be established is not.
    pub fn is_own(&self, id: &str) -> bool {
        let own = OwnRun { state: &self.state, root: self.places.root(), run_id: id };
        let text = Journal::read(&self.places.events().join(format!("{id}.jsonl")));
        text.is_ok_and(|text| text.is_empty() || own.wrote(&text).unwrap_or(false))
    }

    /// D-08: a log freezes what the user allowed when the run began. A log that comes with a commit was not allowed by the user.
    pub(crate) fn came_with_the_repository(&self, id: &str) -> Result<bool, Error> {
        let Some(commit) = self.repo.resolve("HEAD")? else { return Ok(false) };
        let log = format!(".archeflow/events/{id}.jsonl");
        Ok(!self.repo.list_dir(&commit, log.as_bytes())?.is_empty())
    }

    fn renamed_agents(
        &self,
        run: &Run,
        flags: &config::Flags,
        settings: &config::Settings,
    ) -> Result<BTreeMap<String, String>, Error> {
        let (policy, flags) = (run.policy(), &self.typed_here(flags));
        let differs = |flag: &Option<String>, was: &str| flag.as_deref().is_some_and(|flag| flag != was);
        let tests = policy.test_command.clone().unwrap_or_else(|| "none".to_owned());
        if differs(&flags.test_command, &tests) {
            return Err(Error::Frozen { flag: "--test-command", was: tests });
        }
        let workflow = run.request.as_ref().map(|request| request.workflow.name()).unwrap_or_default();
        if differs(&flags.workflow, workflow) && differs(&flags.workflow, &run.overlay().workflow) {
            return Err(Error::Frozen { flag: "--workflow", was: workflow.to_owned() });
        }
        let budget = policy.costs.budget_usd.map_or_else(|| "none".to_owned(), Money::shown);
        if flags.budget.as_deref().is_some_and(|flag| Money::parse(flag) != policy.costs.budget_usd) {
            return Err(Error::Frozen { flag: "--budget", was: budget });
        }
        let lenses = run.request.as_ref().map(|request| request.lenses.join(",")).unwrap_or_default();
        for (flag, given, was) in
            [("--team", &flags.team, run.overlay().team.clone()), ("--lens", &flags.lens, lenses)]
        {
            if differs(given, &was) {
                let was = if was.is_empty() { "none".to_owned() } else { was };
                return Err(Error::Frozen { flag, was });
            }
        }
        let resolve = |spec: &str| self.checked(spec, settings);
        let mut agents = BTreeMap::new();
        if let Some(spec) = &flags.agent {
            agents.insert(String::new(), resolve(spec)?);
        }
        for (archetype, spec) in &flags.agent_for {
            agents.insert(archetype.clone(), resolve(spec)?);
        }
        Ok(agents)
    }
}

/// A run that could be taken over.
pub struct Adoption {
    /// Everything it names that would be executed, given to commands, or asked for.
    pub commands: Vec<String>,
    /// It is this machine's own already.
    pub own: bool,
    lines: u64,
    digest: String,
}

/// What a line of a journal brings into force.
fn commands_in(event: &Event) -> Vec<String> {
    let Event::Report(report) = event else { return Vec::new() };
    let mut commands = Vec::new();
    let mut add = |name: &str, value: &str| {
        if !value.is_empty() {
            commands.push(format!("{name} = {value}"));
        }
    };
    if let Report::RunStart(start) = report {
        let policy = &start.config;
        add("setup_command", policy.setup_command.as_deref().unwrap_or_default());
        add("test_command", policy.test_command.as_deref().unwrap_or_default());
        add("agents.default", &policy.agents.default);
        policy.agents.by_archetype.iter().for_each(|(name, spec)| add(&format!("agents.{name}"), spec));
        policy.agents.fallback.iter().for_each(|spec| add("agents.fallback", spec));
        add("loop.linter", policy.looping.linter.as_deref().unwrap_or_default());
        add("loop.formatter", policy.looping.formatter.as_deref().unwrap_or_default());
        for hook in &policy.hooks {
            add(hook.point.name(), &hook.command);
        }
        add("git.target", &start.base.target);
    }
    if let Report::SessionStart(session) = report {
        session.agents.iter().for_each(|(name, spec)| add(&format!("session agents.{name}"), spec));
        add("auto_merge", if session.auto_merge { "true" } else { "" });
    }
    commands
}

/// The report that a process now drives the run.
pub fn session(driver: &Driver, why: &str, attended: bool, auto_merge: bool, version: &str) -> Report {
    let fence = driver.run.session.as_ref().map_or(0, |session| session.fence) + 1;
    SessionStart {
        fence,
        why: why.to_owned(),
        attended,
        auto_merge,
        version: version.to_owned(),
        tag: driver.world.tag.clone(),
        agents: driver.agents.clone(),
        accounts: accounts(driver.agents.values()),
        sandbox: driver.world.sandbox.name().to_owned(),
    }
    .into()
}
