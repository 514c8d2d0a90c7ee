//! Opens runs: a new one from a request, or one that exists, folded from its log.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use archeflow_core::event::{Base, Event, FORMAT, Past, RunStart, SessionStart};
use archeflow_core::model::{ARCHETYPES, Archetype, Money, Persona, Role, Shadow, Strategy};
use archeflow_core::run::Run;

use crate::backends::{self, AgentBackend};
use crate::config::{self, Faults, Part, personas, trust};
use crate::drive::Driver;
use crate::git::{self, ObjectId, Repo, runner};
use crate::model_agent::place::{self, Wrong};
use crate::probe::{self, Choice};
use crate::store::journal::{self, Journal};
use crate::store::{files, names, places};
use crate::team::{self, Lineup};
use crate::world::{World, allowed_env, client_env};
use crate::{clock, costs, executors, failpoint, log, memory, proc, projections, review};

/// The digest of each persona's text, by archetype.
type Digests = BTreeMap<String, String>;

/// Where the program stands: the user's environment, taken once.
#[derive(Debug, Clone)]
pub struct ProcessEnv {
    pub cwd: PathBuf,
    pub me: PathBuf,
    pub variables: Vec<(OsString, OsString)>,
    pub version: &'static str,
}

impl ProcessEnv {
    /// What the environment says about places.
    pub fn places(&self) -> places::Env {
        let variable = |name: &str| {
            let found = self.variables.iter().find(|(known, value)| known == name && !value.is_empty());
            found.map(|(_, value)| value.clone())
        };
        places::Env {
            home: variable("HOME"),
            xdg_state_home: variable("XDG_STATE_HOME"),
            xdg_config_home: variable("XDG_CONFIG_HOME"),
        }
    }
}

/// A repository with everything that is configured for it.
pub struct Project {
    pub ground: ProcessEnv,
    pub repo: Repo,
    pub places: places::Places,
    pub state: PathBuf,
    pub target: Option<git::Target>,
    /// The files below `.archeflow/` as the base commit has them.
    pub offer: trust::Offer,
    pub approved: bool,
    pub user: Vec<Part>,
    /// Looked for once.
    at_hand: OnceLock<Option<Choice>>,
}

/// What was asked for on the command line.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    pub task: String,
    pub flags: config::Flags,
    pub config_file: Option<PathBuf>,
    pub dry_run: bool,
    pub attended: bool,
    /// The name the run must have; made from the task if not given.
    pub id: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Repo(#[from] git::repo::Error),
    #[error(transparent)]
    Git(#[from] runner::Error),
    #[error(transparent)]
    Files(#[from] files::Error),
    #[error(transparent)]
    Config(#[from] Faults),
    #[error(transparent)]
    Trust(#[from] trust::TrustError),
    #[error(transparent)]
    Backend(#[from] backends::Error),
    #[error(transparent)]
    Journal(#[from] journal::Error),
    #[error(transparent)]
    Log(#[from] log::Error),
    #[error("the repository's own configuration names commands nobody approved: {what}")]
    Untrusted { what: String },
    #[error("this needs the working tree of a repository; {place} has none")]
    Bare { place: String },
    #[error("there is no run '{id}' here")]
    NoRun { id: String },
    #[error("the run '{id}' never began: the program ended before its first line was written")]
    NeverBegan { id: String },
    #[error(
        "the log of '{id}' is committed in this repository: it may have come with it, and it names commands to run"
    )]
    Foreign { id: String },
    #[error("'{id}' can't be the name of a run")]
    BadId { id: String },
    #[error("no agent was named")]
    NoAgent,
    #[error("the agent '{spec}' can't be started: there is no program '{program}'")]
    AgentMissing { program: String, spec: String },
    #[error("what the review '{id}' is about is no longer kept; begin it anew")]
    SubjectGone { id: String },
    #[error("the task is empty")]
    NoTask,
    #[error("to start from {phase}, {path} is needed and is not there")]
    NoArtifact { path: String, phase: &'static str },
    #[error("{id} was merged already")]
    Merged { id: String },
    #[error("{path} can't be used: {why}")]
    BadArtifact { path: String, why: String },
    #[error("{flag} can't be changed for a run that exists; it was frozen when the run began ({was})")]
    Frozen { flag: &'static str, was: String },
}

impl Project {
    /// Opens the repository around `dir` and reads what is configured for it, acting on nothing yet.
    pub fn open(
        ground: ProcessEnv,
        dir: &Path,
        branch: Option<&str>,
        needs_target: bool,
    ) -> Result<Project, Error> {
        let env = ground.places();
        let git_env = git::GitEnv::new(ground.variables.clone());
        let root = git::repo::work_tree_of(dir, &git_env)?;
        let root = root.ok_or_else(|| Error::Bare { place: dir.display().to_string() })?;
        let places = places::Places::at(&root)?;
        let state = places.state_dir(&env)?;
        let repo = Repo::open(&root, &state, &git_env)?;
        let target = match repo.target(branch) {
            Ok(target) => Some(target),
            Err(_) if !needs_target => None,
            Err(error) => return Err(error.into()),
        };
        let files = target.as_ref().map_or(Ok(Vec::new()), |target| repository_files(&repo, &target.oid))?;
        let offer = trust::Offer { root: root.clone(), files };
        let approved = trust::Trust::open(&state)?.approved(&offer);
        let folder = config::user::folder(
            env.xdg_config_home.as_deref().map(Path::new),
            env.home.as_deref().map(Path::new),
        );
        let user = folder.map_or(Ok(Vec::new()), |folder| config::user::read(&folder, &root))?;
        Ok(Project { ground, repo, places, state, target, offer, approved, user, at_hand: OnceLock::new() })
    }

    pub fn settings(&self, flags: &config::Flags, file: Option<&Path>) -> Result<config::Settings, Error> {
        let file = file.map(config::user::read_named).transpose()?;
        let flags = &self.with_environment(flags);
        let inputs = config::Inputs {
            repository: &self.offer.files,
            approved: self.approved,
            user: &self.user,
            file: file.as_ref(),
            flags,
        };
        Ok(config::Settings::resolve(&inputs)?)
    }

    /// What the user's environment says counts as typed, unless something else was.
    fn with_environment(&self, flags: &config::Flags) -> config::Flags {
        let said = |wanted: &str| {
            let said = self.ground.variables.iter().find(|(name, _)| name == wanted);
            said.map(|(_, value)| value.to_string_lossy().into_owned()).filter(|value| !value.is_empty())
        };
        config::Flags {
            shadows: flags.shadows.clone().or_else(|| said(config::layers::SHADOWS)),
            provider: flags.provider.clone().or_else(|| said(config::layers::PROVIDER)),
            ..flags.clone()
        }
    }

    pub fn persona(&self, name: &str) -> Result<personas::Found, Error> {
        Ok(personas::find(name, &self.offer.files, self.approved, &self.user)?)
    }

    /// A new run, claimed and ready to be told its request. Nothing has been started.
    pub fn new_run(self, wanted: &Wanted) -> Result<(Driver, Vec<Event>), Error> {
        self.begin(wanted, None)
    }

    /// A new run with a name that is given: its artifacts are there already, its log is not.
    pub(crate) fn named_run(self, wanted: &Wanted, id: &str) -> Result<(Driver, Vec<Event>), Error> {
        self.begin(wanted, Some(id))
    }

    fn begin(self, wanted: &Wanted, id: Option<&str>) -> Result<(Driver, Vec<Event>), Error> {
        if wanted.task.trim().is_empty() {
            return Err(Error::NoTask);
        }
        let (settings, found, personas) = self.approved_settings(wanted)?;
        let target = self.target.clone().ok_or(git::repo::Error::Detached)?;
        let mut policy = settings.policy();
        policy.agents = self.resolved_agents(&policy.agents, &settings)?;
        policy.costs.prices = settings.prices();
        let lineup = self.line_up(wanted, &settings, &policy, &personas)?;
        self.places.make()?;
        let (events, artifacts) = (self.places.events(), self.places.artifacts());
        let journal = match id {
            Some(id) => Journal::create(&events, id)?,
            None if wanted.id.is_some() => {
                names::this_run_id(&events, &artifacts, wanted.id.as_deref().unwrap_or_default())?
            }
            None => names::free_run_id(&events, &artifacts, &clock::date(clock::now()), &wanted.task)?,
        };
        let run_id = journal.run_id().to_owned();
        let mut request = RunStart {
            task: wanted.task.clone(),
            workflow: lineup.workflow,
            max_cycles: lineup.max_cycles,
            strategy: lineup.strategy,
            domain: lineup.domain,
            team: lineup.sitting().iter().map(|seat| seat.archetype.clone()).collect(),
            seats: lineup.seats,
            tiers: lineup.tiers,
            personas: found,
            shadows: shadows(&personas),
            lenses: lineup.lenses,
            categories: lineup.categories,
            overlay: lineup.overlay,
            past: self.past(),
            config: policy,
            config_hash: settings.hash().to_owned(),
            base: Base { target: target.branch.clone(), commit: target.oid.to_string() },
            branch: format!("{}{run_id}", settings.branch_prefix()),
            dry_run: wanted.dry_run,
            chosen: lineup.chosen,
            format: FORMAT,
            version: self.ground.version.to_owned(),
        };
        memory::recall(&self.places, &self.state, &mut request);
        let driver = self.driver(journal, Run::default(), personas, &settings);
        Ok((driver, vec![request.into()]))
    }

    /// What earlier runs left behind, read once.
    pub(crate) fn past(&self) -> Past {
        let today = clock::date(clock::now());
        Past { spent_today_usd: costs::spent_on(self.places.root(), &today), ..Past::default() }
    }

    /// What is configured, if all of it may be believed, with the archetypes and what lenses say about shadows.
    pub(crate) fn approved_settings(
        &self,
        wanted: &Wanted,
    ) -> Result<(config::Settings, Digests, BTreeMap<String, Persona>), Error> {
        let mut settings = self.settings(&wanted.flags, wanted.config_file.as_deref())?;
        if !settings.withheld().is_empty() {
            let what: Vec<String> =
                settings.withheld().iter().map(|w| format!("{} ({}:{})", w.key, w.path, w.line)).collect();
            return Err(Error::Untrusted { what: what.join(", ") });
        }
        let (found, personas) = self.personas()?;
        team::lay_shadows(&mut settings, &shadows(&personas))?;
        Ok((settings, found, personas))
    }

    fn line_up(
        &self,
        wanted: &Wanted,
        settings: &config::Settings,
        policy: &archeflow_core::model::Policy,
        personas: &BTreeMap<String, Persona>,
    ) -> Result<Lineup, Error> {
        let target = self.target.as_ref().ok_or(git::repo::Error::Detached)?;
        let tree = (&self.repo, &target.oid);
        team::line_up(settings, &wanted.flags, &wanted.task, policy, personas, tree)
    }

    /// Who would sit as gatekeeper in a run that is not begun yet.
    pub(crate) fn gatekeeper(&self, wanted: &Wanted) -> Result<Option<String>, Error> {
        let (settings, _, personas) = self.approved_settings(wanted)?;
        let lineup = self.line_up(wanted, &settings, &settings.policy(), &personas)?;
        let seat = lineup.sitting().iter().find(|seat| seat.role == Role::Gatekeeper);
        Ok(seat.map(|seat| seat.archetype.clone()))
    }

    /// A run that exists, folded from its log and ready to be driven on. Leftovers of its last driver are ended.
    pub fn existing(self, id: &str, file: Option<&Path>) -> Result<(Driver, Option<journal::Repair>), Error> {
        self.existing_with(id, file, &config::Flags::default())
    }

    /// The same, with agents named anew. What is frozen in the log can't be changed.
    pub(crate) fn existing_with(
        self,
        id: &str,
        file: Option<&Path>,
        flags: &config::Flags,
    ) -> Result<(Driver, Option<journal::Repair>), Error> {
        if !names::valid_name(id) {
            return Err(Error::BadId { id: id.to_owned() });
        }
        if self.came_with_the_repository(id)? {
            return Err(Error::Foreign { id: id.to_owned() });
        }
        let opened = match Journal::open(&self.places.events(), id) {
            Err(journal::Error::Missing { .. }) => return Err(Error::NoRun { id: id.to_owned() }),
            other => other?,
        };
        let mut fixes = Vec::new();
        let run = log::fold_seeing(&opened.lines, |run, entry| {
            fixes.extend(projections::fix_line(id, run, entry));
        })?;
        let unopened = match run.strategy() {
            Strategy::Review => run.review.is_none(),
            Strategy::Loop => run.agent_loop.is_none(),
            Strategy::Pdca | Strategy::Pipeline => false,
        };
        if run.request.is_none() || unopened {
            return Err(Error::NeverBegan { id: id.to_owned() });
        }
        if let Some(session) = &run.session {
            proc::kill_leftovers(&format!("{}.", session.tag));
        }
        failpoint::pass("swept");
        let mut house = self.begun_with(&run)?;
        if run.review.is_some() {
            house.repo = review::lending(&house.repo, &house.state, id)?;
        }
        let settings = house.settings(&config::Flags::default(), file)?;
        let agents = house.agents_anew(&run, flags, &settings)?;
        let (_, personas) = house.personas()?;
        let mut driver = house.driver(opened.journal, run, personas, &settings);
        driver.agents = agents;
        projections::catch_up(&driver.world, &driver.run)?;
        projections::catch_up_fixes(&driver.world, &fixes)?;
        projections::catch_up_index(&driver.world, &driver.run);
        let _ = memory::ended(&driver.world, &driver.run);
        let _ = review::ended(&driver.world, &driver.run);
        Ok((driver, opened.repaired))
    }

    /// R4: the repository's files as they were when the run began. What was committed since does not judge it.
    fn begun_with(mut self, run: &Run) -> Result<Project, Error> {
        let base =
            run.request.as_ref().and_then(|request| ObjectId::parse(request.base.commit.as_bytes()).ok());
        if let Some(base) = base
            && self.repo.has_commit(&base)?
        {
            let repo = self.repo.clone();
            self.believe(&repo, &base)?;
        }
        Ok(self)
    }

    /// Takes the repository's configuration from this commit.
    pub(crate) fn believe(&mut self, repo: &Repo, commit: &ObjectId) -> Result<(), Error> {
        self.offer.files = repository_files(repo, commit)?;
        self.approved = trust::Trust::open(&self.state)?.approved(&self.offer);
        Ok(())
    }

    pub(crate) fn driver(
        self,
        journal: Journal,
        run: Run,
        personas: BTreeMap<String, Persona>,
        settings: &config::Settings,
    ) -> Driver {
        let run_id = journal.run_id().to_owned();
        let extra = settings.variables();
        let env = (allowed_env(self.ground.variables.clone(), &extra), self.client_variables(settings));
        let tag = format!("{run_id}.{}", executors::nonce());
        let world =
            World::new(self.repo, self.places, self.state, run_id, tag, self.ground.me, env, personas);
        Driver::new(world, run, journal)
    }

    /// D-08: a log freezes what the user allowed when the run began. One that a commit brings was allowed by nobody.
    fn came_with_the_repository(&self, id: &str) -> Result<bool, Error> {
        let Some(commit) = self.repo.resolve("HEAD")? else { return Ok(false) };
        let log = format!(".archeflow/events/{id}.jsonl");
        Ok(!self.repo.list_dir(&commit, log.as_bytes())?.is_empty())
    }

    /// Every archetype with the digest of the text in force.
    fn personas(&self) -> Result<(Digests, BTreeMap<String, Persona>), Error> {
        let mut digests = BTreeMap::new();
        let mut personas = BTreeMap::new();
        let brought = match self.approved {
            true => personas::names(&self.offer.files, &self.user),
            false => personas::names(&[], &self.user),
        };
        for name in ARCHETYPES.iter().map(|(name, _)| (*name).to_owned()).chain(brought) {
            let found = self.persona(&name)?;
            digests.insert(name.clone(), found.digest);
            personas.insert(name, found.persona);
        }
        Ok((digests, personas))
    }

    fn agents_anew(
        &self,
        run: &Run,
        flags: &config::Flags,
        settings: &config::Settings,
    ) -> Result<BTreeMap<String, String>, Error> {
        let policy = run.policy();
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

    /// What belongs to clients: variables of the user's, what is set about models, and the keys that are named there.
    fn client_variables(&self, settings: &config::Settings) -> Vec<(OsString, OsString)> {
        let mut own = client_env(self.ground.variables.clone());
        own.push(settings.loops().written());
        own.extend(place::keys(&settings.model_keys(), &self.ground.variables));
        own
    }

    /// Where the models of these agents are asked, if that is not the provider's own place.
    pub fn elsewhere(
        &self,
        agents: &archeflow_core::model::Agents,
        settings: &config::Settings,
    ) -> Vec<String> {
        let own = self.client_variables(settings);
        let specs = std::iter::once(&agents.default).chain(agents.by_archetype.values());
        let mut told = Vec::new();
        for spec in specs {
            let Ok(agent) = AgentBackend::parse(spec, &self.ground.cwd) else { continue };
            if let Some(Ok(settled)) = agent.settled(&own)
                && settled.elsewhere
                && !told.contains(&settled.place.url)
            {
                told.push(settled.place.url);
            }
        }
        told
    }

    fn checked(&self, spec: &str, settings: &config::Settings) -> Result<String, Error> {
        let agent = AgentBackend::parse(spec, &self.ground.cwd)?;
        match agent.settled(&self.client_variables(settings)) {
            // A key that is missing stops the run like a login that is: with what to do.
            None | Some(Ok(_) | Err(Wrong::NoKey { .. })) => {}
            Some(Err(wrong)) => return Err(backends::Error::Place(wrong, spec.to_owned()).into()),
        }
        match agent.missing(self.path()) {
            Some(program) => Err(Error::AgentMissing { program, spec: spec.to_owned() }),
            None => Ok(agent.spec()),
        }
    }

    fn path(&self) -> Option<&std::ffi::OsStr> {
        let path = self.ground.variables.iter().find(|(name, _)| name == "PATH");
        path.map(|(_, value)| value.as_os_str())
    }

    /// The client that is taken where none is named.
    pub fn client_at_hand(&self) -> Option<&Choice> {
        let look = || {
            let variables = &self.ground.variables;
            let (env, own) = (allowed_env(variables.clone(), &[]), client_env(variables.clone()));
            probe::choose(probe::clients(&env, &own))
        };
        self.at_hand.get_or_init(look).as_ref()
    }

    /// Specs checked and made absolute before anything is spent.
    pub(crate) fn resolved_agents(
        &self,
        agents: &archeflow_core::model::Agents,
        settings: &config::Settings,
    ) -> Result<archeflow_core::model::Agents, Error> {
        if agents.default.is_empty() && agents.by_archetype.is_empty() {
            let default = self.client_at_hand().ok_or(Error::NoAgent)?.spec.clone();
            let checked = |spec: &String| self.checked(spec, settings);
            let fallback = agents.fallback.iter().map(checked).collect::<Result<_, _>>()?;
            return Ok(with_accounts(archeflow_core::model::Agents { default, fallback, ..agents.clone() }));
        }
        let resolve = |spec: &str| self.checked(spec, settings);
        let by_archetype = agents
            .by_archetype
            .iter()
            .map(|(name, spec)| resolve(spec).map(|spec| (name.clone(), spec)))
            .collect::<Result<_, _>>()?;
        let default = if agents.default.is_empty() { String::new() } else { resolve(&agents.default)? };
        let fallback = agents.fallback.iter().map(|spec| resolve(spec)).collect::<Result<_, _>>()?;
        Ok(with_accounts(archeflow_core::model::Agents { default, by_archetype, fallback, ..agents.clone() }))
    }
}

fn with_accounts(agents: archeflow_core::model::Agents) -> archeflow_core::model::Agents {
    let specs = [&agents.default].into_iter().chain(agents.by_archetype.values()).chain(&agents.fallback);
    archeflow_core::model::Agents { accounts: accounts(specs), ..agents }
}

/// The provider accounts behind specs, where a spec does not stand for itself (C6).
fn accounts<'a>(specs: impl IntoIterator<Item = &'a String>) -> BTreeMap<String, String> {
    let account = |spec: &String| AgentBackend::parse(spec, Path::new("/")).ok().map(|agent| agent.account());
    let known = specs.into_iter().filter_map(|spec| Some((spec.clone(), account(spec)?)));
    known.filter(|(spec, account)| spec != account).collect()
}

/// The report that a process now drives the run.
pub fn session(driver: &Driver, why: &str, attended: bool, auto_merge: bool, version: &str) -> Event {
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
    }
    .into()
}

/// Reads the configuration from the base commit, not from the working tree (R4).
fn repository_files(repo: &Repo, commit: &ObjectId) -> Result<Vec<Part>, Error> {
    const AT_MOST: u64 = 1024 * 1024;
    let mut files = Vec::new();
    let mut wanted: Vec<String> =
        vec![config::REPOSITORY_CONFIG.to_owned(), config::REPOSITORY_HOOKS.to_owned()];
    for entry in repo.list_dir(commit, b".archeflow")? {
        let name = String::from_utf8_lossy(&entry.path).into_owned();
        let persona = name.starts_with(config::REPOSITORY_ARCHETYPES) && name.ends_with(".md");
        if persona || config::shelf::in_repository(&name).is_some() {
            wanted.push(name);
        }
    }
    for path in wanted {
        if let Some(bytes) = repo.read_blob(commit, path.as_bytes(), AT_MOST)? {
            files.push((path, bytes));
        }
    }
    Ok(files)
}

/// The shadow an archetype names, else the one its role is prone to.
pub(crate) fn shadows(personas: &BTreeMap<String, Persona>) -> BTreeMap<String, Shadow> {
    let of = |archetype: &Archetype| {
        Shadow::parse(&archetype.shadow).or(match archetype.role {
            Role::Explorer => Some(Shadow::RabbitHole),
            Role::Creator => Some(Shadow::OverArchitect),
            Role::Maker => Some(Shadow::Rogue),
            Role::Gatekeeper => Some(Shadow::Paranoid),
            Role::Reviewer => None,
        })
    };
    personas.iter().filter_map(|(name, persona)| Some((name.clone(), of(&persona.archetype)?))).collect()
}
