//! New runs: the steps that every strategy shares before its first line can be written.
//!
//! [`Project::prepare`] reads what is configured and approved, [`Preparation::check_agents`] resolves the programs,
//! [`team`] selects the participants, [`Project::claim`] takes a run id, [`Project::run_start`] makes the first line.
//! A review and a loop replace the fields of that line that are theirs.

use std::collections::BTreeMap;

use archeflow_core::event::{Base, FORMAT, Past, RunStart};
use archeflow_core::model::{Participant, Persona, Policy, ShadowSet};
use archeflow_core::run::Run;

use super::team::{self, SelectedTeam};
use super::{Digests, Error, OpenedRun, ProcessEnv, Project, RunRequest};
use crate::config::{Faults, Flags, Settings, Withheld, personas};
use crate::drive::Driver;
use crate::git::{self, ObjectId, Repo};
use crate::nonce::nonce;
use crate::platform::machine;
use crate::probe::DefaultAgent;
use crate::sandbox::{self, SandboxLevel};
use crate::store::journal::Journal;
use crate::store::{names, places};
use crate::world::{World, WorldSandbox, allowed_env};
use crate::{clock, costs, memory};

/// With fewer open files no sandbox can be started.
const FEWEST_FILES: u64 = 64;

/// What is configured for a new run, if all of it is approved.
pub(crate) struct Preparation {
    pub(crate) settings: Settings,
    pub(crate) policy: Policy,
    pub(crate) personas: BTreeMap<String, Persona>,
    digests: Digests,
    /// The client that was chosen because none was named.
    pub(crate) default_agent: Option<DefaultAgent>,
}

/// Where the id of a new run comes from.
pub(crate) enum RunName<'a> {
    /// Its artifacts exist already, its journal does not.
    Reentered(&'a str),
    /// Given on the command line.
    Given(&'a str),
    /// Made from these words and today's date.
    From(&'a str),
}

impl Preparation {
    /// Checks the agents before anything is spent; without a named one the installed client is used.
    pub(crate) fn check_agents(&mut self, project: &Project) -> Result<(), Error> {
        let agents = &self.policy.agents;
        if agents.default.is_empty() && agents.by_archetype.is_empty() {
            self.default_agent = project.default_client().cloned();
        }
        self.policy.agents = project.resolved_agents(agents, &self.settings)?;
        self.policy.costs.prices = self.settings.prices();
        Ok(())
    }

    pub(crate) fn select_team(
        &self,
        request: &RunRequest,
        tree: (&Repo, &ObjectId),
    ) -> Result<SelectedTeam, Error> {
        team::select(&self.settings, &request.flags, &request.task, &self.policy, &self.personas, tree)
    }
}

impl Project {
    /// A new run, claimed and ready for its request. Nothing has been started.
    pub fn new_run(self, request: &RunRequest) -> Result<OpenedRun, Error> {
        let name = request.id.as_deref().map_or(RunName::From(&request.task), RunName::Given);
        self.begin(request, &name)
    }

    /// A new run under the id of artifacts that exist already.
    pub(super) fn run_for_artifacts(self, request: &RunRequest, id: &str) -> Result<OpenedRun, Error> {
        self.begin(request, &RunName::Reentered(id))
    }

    fn begin(self, request: &RunRequest, name: &RunName<'_>) -> Result<OpenedRun, Error> {
        let (prepared, mut start) = self.checked_start(request)?;
        let journal = self.claim(name)?;
        start.branch = format!("{}{}", prepared.settings.branch_prefix(), journal.run_id());
        memory::recall(&self.places, &self.state, &mut start);
        self.opened(journal, prepared, start.into(), None)
    }

    /// What a run would begin with. Everything is checked as for a run, and nothing is claimed or started.
    pub fn would_start(&self, request: &RunRequest) -> Result<RunStart, Error> {
        Ok(self.checked_start(request)?.1)
    }

    /// The first line of a run, but for what its name decides.
    fn checked_start(&self, request: &RunRequest) -> Result<(Preparation, RunStart), Error> {
        if request.task.trim().is_empty() {
            return Err(Error::NoTask);
        }
        let mut prepared = self.prepare(request)?;
        self.check_git(&prepared.settings)?;
        self.sandbox(&prepared.settings)?;
        let target = self.target.clone().ok_or(git::repo::Error::Detached)?;
        prepared.check_agents(self)?;
        let team = prepared.select_team(request, (&self.repo, &target.oid))?;
        let base = Base { target: target.branch.clone(), commit: target.oid.to_string() };
        let participants = team.participants().to_vec();
        let start = self.run_start(&prepared, team, &participants, &request.task, base);
        Ok((prepared, RunStart { dry_run: request.dry_run, ..start }))
    }

    /// Reads the settings, refuses what is not approved, and applies what lenses say about shadows.
    pub(crate) fn prepare(&self, request: &RunRequest) -> Result<Preparation, Error> {
        self.prepare_if(request, |_| true)
    }

    /// The same where only some of the withheld settings would be used: the others stay withheld and need no approval.
    pub(crate) fn prepare_if(
        &self,
        request: &RunRequest,
        is_used: impl Fn(&Withheld) -> bool,
    ) -> Result<Preparation, Error> {
        let mut settings = self.settings(&request.flags, request.config_file.as_deref())?;
        let refused = settings.withheld().iter().filter(|held| is_used(held));
        let what: Vec<String> = refused.map(|w| format!("{} ({}:{})", w.key, w.path, w.line)).collect();
        if !what.is_empty() {
            return Err(Error::Untrusted { what: what.join(", ") });
        }
        self.check_instructions(&settings)?;
        let file = request.config_file.as_deref();
        let (theirs, ours) = self.archetype_files(file)?;
        let unwatched = personas::unwatched(&theirs, self.approved, &ours);
        if !unwatched.is_empty() {
            return Err(Faults(unwatched).into());
        }
        let (digests, personas) = self.personas(file)?;
        team::apply_shadow_overrides(&mut settings, &shadows(&personas))?;
        let mut policy = settings.policy();
        policy.folder.clone_from(&self.folder);
        // Those that the base commit has: a list in the user's own configuration is for all repositories.
        let shown = |path: &String| self.offer.instructions.iter().any(|(known, _)| known == path);
        policy.agents.instructions.retain(shown);
        Ok(Preparation { settings, policy, personas, digests, default_agent: None })
    }

    /// Agents are shown a repository's instructions only if a person approved exactly this content (C-11).
    fn check_instructions(&self, settings: &Settings) -> Result<(), Error> {
        let offered = &self.offer.instructions;
        let known = self.settings(&Flags::default(), None)?.policy().agents.instructions;
        if let Some(path) =
            settings.policy().agents.instructions.into_iter().find(|path| !known.contains(path))
        {
            let why =
                "it is listed only in what was given with --config. List it in your own configuration or the \
                       repository's"
                    .to_owned();
            return Err(Error::Instructions { path, why });
        }
        if self.approved || offered.is_empty() {
            return Ok(());
        }
        let what: Vec<String> = offered.iter().map(|(path, _)| format!("the content of {path}")).collect();
        Err(Error::Untrusted { what: what.join(", ") })
    }

    /// Who would take part in a run that is not begun yet.
    pub(super) fn seats_of(&self, request: &RunRequest) -> Result<Vec<Participant>, Error> {
        let prepared = self.prepare(request)?;
        let target = self.target.as_ref().ok_or(git::repo::Error::Detached)?;
        let team = prepared.select_team(request, (&self.repo, &target.oid))?;
        Ok(team.participants().to_vec())
    }

    pub(crate) fn claim(&self, name: &RunName<'_>) -> Result<Journal, Error> {
        places::check_writable(&self.state)?;
        self.places.make()?;
        let (events, artifacts) = (self.places.events(), self.places.artifacts());
        Ok(match name {
            RunName::Reentered(id) => Journal::create(&events, id)?,
            RunName::Given(id) => names::this_run_id(&events, &artifacts, id)?,
            RunName::From(words) => {
                names::free_run_id(&events, &artifacts, &clock::date(clock::now()), words)?
            }
        })
    }

    /// The first line of a run: everything a replay needs.
    pub(crate) fn run_start(
        &self,
        prepared: &Preparation,
        team: SelectedTeam,
        participants: &[Participant],
        task: &str,
        base: Base,
    ) -> RunStart {
        RunStart {
            task: task.to_owned(),
            workflow: team.workflow,
            max_cycles: team.max_cycles,
            strategy: team.strategy,
            domain: team.domain,
            team: participants.iter().map(|seat| seat.archetype.clone()).collect(),
            seats: team.seats,
            tiers: team.tiers,
            personas: prepared.digests.clone(),
            shadows: shadows(&prepared.personas),
            lenses: team.lenses,
            categories: team.categories,
            overlay: team.overlay,
            past: self.past(),
            config: prepared.policy.clone(),
            config_hash: prepared.settings.hash().to_owned(),
            base,
            branch: String::new(),
            dry_run: false,
            chosen: team.chosen,
            format: FORMAT,
            version: self.env.version.to_owned(),
        }
    }

    /// What earlier runs cost today, read once.
    fn past(&self) -> Past {
        let today = clock::date(clock::now());
        Past { spent_today_usd: costs::spent_on(self.places.root(), &today), ..Past::default() }
    }

    /// The claimed run with its first reports: the request before the session, what belongs to a strategy after it.
    pub(crate) fn opened(
        self,
        journal: Journal,
        prepared: Preparation,
        start: archeflow_core::event::Report,
        after: Option<archeflow_core::event::Report>,
    ) -> Result<OpenedRun, Error> {
        let driver = self.driver(journal, Run::default(), prepared.personas, &prepared.settings)?;
        Ok(OpenedRun {
            driver,
            before: vec![start],
            after: after.into_iter().collect(),
            default_agent: prepared.default_agent,
        })
    }

    /// What commands are held to; refused where nothing could and nobody typed that nothing should.
    pub(crate) fn sandbox(&self, settings: &Settings) -> Result<WorldSandbox, Error> {
        sandbox_of(&self.env, settings)
    }

    pub(super) fn driver(
        self,
        journal: Journal,
        run: Run,
        personas: BTreeMap<String, Persona>,
        settings: &Settings,
    ) -> Result<Driver, Error> {
        let sandbox = self.sandbox(settings)?;
        let run_id = journal.run_id().to_owned();
        let extra = settings.variables();
        let env = (allowed_env(self.env.variables.clone(), &extra), self.client_variables(settings));
        let tag = format!("{run_id}.{}", nonce());
        let me = self.env.me;
        let keep = settings.keep();
        let world =
            World::new(self.repo, self.places, self.state, run_id, tag, me, env, personas, sandbox, keep);
        let mut driver = Driver::new(world, run, journal);
        driver.notify = settings.notify();
        driver.telemetry = settings.telemetry();
        Ok(driver)
    }
}

/// The shadows of each archetype that has some.
fn shadows(personas: &BTreeMap<String, Persona>) -> BTreeMap<String, ShadowSet> {
    let sets = personas.iter().map(|(name, persona)| (name.clone(), ShadowSet::of(&persona.archetype)));
    sets.filter(|(_, set)| !set.0.is_empty()).collect()
}

/// The same for commands that belong to no repository.
pub fn sandbox_of(env: &ProcessEnv, settings: &Settings) -> Result<WorldSandbox, Error> {
    if env.no_sandbox {
        return Ok(WorldSandbox::Off);
    }
    match sandbox::probe(&env.me) {
        SandboxLevel::Absent { why, remedy } => match machine::open_files() {
            // What looks like a missing sandbox is then a probe that could not be made.
            Some(most) if most < FEWEST_FILES => Err(Error::FewFiles { most }),
            Some(_) | None => Err(Error::NoSandbox { why, remedy }),
        },
        level
        @ (SandboxLevel::Bubblewrap { .. } | SandboxLevel::Landlock { .. } | SandboxLevel::Seatbelt) => {
            let home = env.places().home.map(std::path::PathBuf::from);
            let choice = Box::new(settings.sandbox_choice(home.as_deref()));
            Ok(WorldSandbox::On { level, choice })
        }
    }
}
