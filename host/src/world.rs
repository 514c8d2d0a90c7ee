//! What executors use: the repository, the working copies, the folders, the environment agents get.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use archeflow_core::event::SessionStart;
use archeflow_core::model::{Persona, Policy, Seq};
use archeflow_core::settings::KeepSettings;

use crate::backends::cli::ALL;
use crate::backends::cli::Client;
use crate::copies::Copies;
use crate::executors::build_cache::CacheChoice;
use crate::executors::setup::{Dependencies, SetupCommand};
use crate::git::Repo;
use crate::git::user_state::{self, UserState};
use crate::git::workspace::Pool;
use crate::platform::files as os;
use crate::proc::Watch;
use crate::sandbox::{PrivateFolders, Sandbox, SandboxChoice, SandboxFacts, SandboxLevel, SandboxPolicy};
use crate::store::lock::Lock;
use crate::store::own_runs::OwnRun;
use crate::store::places::Places;

/// Names and values.
type Variables = Vec<(OsString, OsString)>;

/// The user's repository at a moment.
#[derive(Debug)]
struct SeenState {
    at: Instant,
    state: UserState,
}

/// How long after an attempt the user's repository is taken to be as it was then: from one agent to the next.
const STILL_HOLDS: Duration = Duration::from_millis(50);

pub struct World {
    pub repo: Repo,
    pub pool: Pool,
    pub places: Places,
    /// The program's own state, outside every repository.
    pub state: PathBuf,
    pub run_id: String,
    /// Marks every process of this session.
    pub tag: String,
    /// This program, which also runs play files.
    pub me: PathBuf,
    /// The environment every child starts from.
    pub env: Vec<(OsString, OsString)>,
    /// What of the user's environment belongs to clients: where their home is, their keys. Each gets its own only.
    pub own: Vec<(OsString, OsString)>,
    pub personas: BTreeMap<String, Persona>,
    pub watch: Watch,
    /// What installs the dependencies of the tests.
    setup: OnceLock<Option<SetupCommand>>,
    /// Folders that come back in later tests.
    cache: OnceLock<Option<CacheChoice>>,
    /// Those of the commit that was set up last.
    dependencies: Mutex<Option<Dependencies>>,
    /// What commands are held to.
    pub sandbox: WorldSandbox,
    /// How long files are kept that nothing needs any more.
    pub keep: KeepSettings,
    /// Stops agents only: the rest of the run continues without them.
    pub agents_watch: Watch,
    /// Stops one agent, by the line of its start.
    attempts: Mutex<BTreeMap<Seq, Watch>>,
    pub(crate) copies: Copies,
    diffs: Mutex<BTreeMap<String, String>>,
    /// Of clients that were asked.
    versions: Mutex<BTreeMap<String, String>>,
    /// The user's repository as it was after the last attempt.
    last_seen: Mutex<Option<SeenState>>,
    /// The refs that keep what this run made, since this process began. Nothing may remove them while it works.
    kept: Mutex<BTreeSet<String>>,
    /// Held by a run whose landing came too late, until the next try is over: other runs wait with theirs.
    pub(crate) landing_turn: Mutex<Option<Lock>>,
}

/// Whether commands run in a sandbox, and in which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorldSandbox {
    /// Somebody typed that they should not.
    Off,
    On {
        level: SandboxLevel,
        choice: Box<SandboxChoice>,
    },
}

impl WorldSandbox {
    /// As the session's line has it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Off => SessionStart::NO_SANDBOX,
            Self::On { level, .. } => level.name(),
        }
    }
}

/// The names passed on to children, besides those the user lists.
const PASSED: [&str; 20] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TERM_PROGRAM",
    "XDG_CONFIG_HOME",
    "XDG_CACHE_HOME",
    "XDG_DATA_HOME",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "PYENV_ROOT",
];

/// Builds the children's environment from an allow-list (R6). Whatever is not named here stays with us.
pub fn allowed_env(
    all: impl IntoIterator<Item = (OsString, OsString)>,
    extra: &[String],
) -> Vec<(OsString, OsString)> {
    let mut env: Vec<(OsString, OsString)> = all
        .into_iter()
        .filter(|(name, _)| {
            name.to_str().is_some_and(|name| {
                PASSED.contains(&name) || name.starts_with("LC_") || extra.iter().any(|other| other == name)
            })
        })
        .collect();
    for (name, value) in [
        ("TERM", "dumb"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_ASKPASS", "/bin/false"),
        ("GIT_EDITOR", "false"),
        ("GIT_CONFIG_COUNT", "2"),
        ("GIT_CONFIG_KEY_0", "commit.gpgsign"),
        ("GIT_CONFIG_VALUE_0", "false"),
        ("GIT_CONFIG_KEY_1", "tag.gpgsign"),
        ("GIT_CONFIG_VALUE_1", "false"),
    ] {
        env.push((name.into(), value.into()));
    }
    env
}

/// What clients know themselves by.
pub fn client_env(all: impl IntoIterator<Item = (OsString, OsString)>) -> Vec<(OsString, OsString)> {
    let known =
        |name: &OsString| name == "HOME" || ALL.iter().any(|client| client.own.iter().any(|own| name == own));
    all.into_iter().filter(|(name, _)| known(name)).collect()
}

impl World {
    /// This run, as the state folder knows the runs that were started here.
    pub fn own_run(&self) -> OwnRun<'_> {
        OwnRun { state: &self.state, root: self.places.root(), run_id: &self.run_id }
    }

    #[expect(clippy::too_many_arguments, reason = "a plain constructor of plain parts")]
    pub fn new(
        repo: Repo,
        places: Places,
        state: PathBuf,
        run_id: String,
        tag: String,
        me: PathBuf,
        (env, own): (Variables, Variables),
        personas: BTreeMap<String, Persona>,
        sandbox: WorldSandbox,
        keep: KeepSettings,
    ) -> World {
        let pool = Pool::new(&state, &repo);
        let (diffs, versions) = (Mutex::default(), Mutex::default());
        let copies = Copies::new(pool.clone(), run_id.clone());
        World {
            repo,
            pool,
            places,
            state,
            run_id,
            tag,
            me,
            env,
            own,
            personas,
            watch: Watch::new(),
            setup: OnceLock::new(),
            cache: OnceLock::new(),
            dependencies: Mutex::default(),
            sandbox,
            keep,
            agents_watch: Watch::new(),
            attempts: Mutex::default(),
            copies,
            diffs,
            versions,
            last_seen: Mutex::default(),
            kept: Mutex::default(),
            landing_turn: Mutex::default(),
        }
    }

    /// The run's setup command and `cache`, as its first line has them.
    pub(crate) fn note_setup(&self, policy: &Policy) {
        self.setup.get_or_init(|| {
            let limit_ms = policy.limits.setup_ms;
            policy.setup_command.clone().map(|command| SetupCommand { command, limit_ms })
        });
        self.cache.get_or_init(|| {
            let (folders, test_command) = (policy.cache.clone(), policy.test_command.clone());
            let test_command = test_command.unwrap_or_default();
            (!folders.is_empty()).then_some(CacheChoice { folders, test_command })
        });
    }

    pub(crate) fn cache(&self) -> Option<&CacheChoice> {
        self.cache.get()?.as_ref()
    }

    pub(crate) fn setup(&self) -> Option<&SetupCommand> {
        self.setup.get()?.as_ref()
    }

    /// What copies are shown besides the files of their commit.
    pub(crate) fn dependencies(&self) -> Option<Dependencies> {
        self.dependencies.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn use_dependencies(&self, found: Option<Dependencies>) {
        *self.dependencies.lock().unwrap_or_else(PoisonError::into_inner) = found;
    }

    /// The watch of one attempt, which ends with those of all agents.
    pub fn watch_attempt(&self, start: Seq) -> Watch {
        let mut attempts = self.attempts.lock().unwrap_or_else(PoisonError::into_inner);
        attempts.entry(start).or_insert_with(|| self.agents_watch.branch()).clone()
    }

    /// Ends one attempt at once: it would only use up more.
    pub fn end_attempt(&self, start: Seq) {
        self.watch_attempt(start).kill_now();
    }

    /// Asks everything that was started to end.
    pub fn stop(&self) {
        self.watch.stop();
        self.agents_watch.stop();
    }

    /// The same without asking.
    pub fn kill_now(&self) {
        self.watch.kill_now();
        self.agents_watch.kill_now();
    }

    pub fn artifacts(&self) -> PathBuf {
        self.places.artifacts().join(&self.run_id)
    }

    pub fn keep_ref(&self, name: &str) -> String {
        format!("refs/archeflow/keep/{}/{name}", self.run_id)
    }

    /// What is compared before and after somebody worked who is not us. What was found unchanged a moment ago, after the
    /// last one, still holds: a process that is left of it and changes something in between is noticed the next time.
    pub fn user_state(&self) -> Result<UserState, crate::git::runner::Error> {
        let seen = self.last_seen.lock().unwrap_or_else(PoisonError::into_inner).take();
        match seen.filter(|seen| seen.at.elapsed() < STILL_HOLDS) {
            Some(seen) => Ok(seen.state),
            None => self.user_state_now(),
        }
    }

    fn user_state_now(&self) -> Result<UserState, crate::git::runner::Error> {
        match self.sandbox {
            WorldSandbox::Off => UserState::whole(&self.repo),
            WorldSandbox::On { .. } => Ok(UserState::configuration(&self.repo)),
        }
    }

    /// These refs were made by this run.
    pub(crate) fn note_kept<'a>(&self, names: impl Iterator<Item = &'a str>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(names.filter(|name| name.starts_with("refs/archeflow/keep/")).map(str::to_owned));
    }

    /// What changed in the user's repository since `before`, while somebody worked who must leave it alone.
    pub(crate) fn changed_since(&self, before: &UserState) -> Option<String> {
        // Another run may be landing just now: its files are there before its branch has moved.
        for pause in [50, 200, 500, 1_000, 2_000] {
            if self.changes_since(before).is_empty() {
                return None;
            }
            std::thread::sleep(std::time::Duration::from_millis(pause));
        }
        let changes = self.changes_since(before);
        (!changes.is_empty()).then(|| user_state::list(&changes))
    }

    fn changes_since(&self, before: &UserState) -> Vec<String> {
        match self.user_state_now() {
            Ok(now) => {
                let mut changes = before.changes(&self.repo, &now);
                if matches!(self.sandbox, WorldSandbox::Off) {
                    let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
                    let gone = now.missing(&kept).map(|name| format!("{name} is gone"));
                    changes.extend(gone.filter(|gone| !changes.contains(gone)).collect::<Vec<_>>());
                }
                if changes.is_empty() {
                    let seen = SeenState { at: Instant::now(), state: now };
                    *self.last_seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(seen);
                }
                changes
            }
            Err(error) => vec![format!("git can't read it any more ({error})")],
        }
    }

    /// Gives back what the run has reserved for its agents; nothing is started any more.
    pub(crate) fn release(&self) {
        self.copies.release();
        self.use_dependencies(None);
        *self.landing_turn.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The sandbox of one command: its private folders are made below `scratch`. `None` when there is to be none.
    pub(crate) fn sandbox_for(
        &self,
        scratch: &Path,
        make: impl FnOnce(SandboxFacts<'_>) -> SandboxPolicy,
    ) -> std::io::Result<Option<Sandbox>> {
        self.sandbox_in(&PrivateFolders { home: scratch.join("home"), tmp: scratch.join("tmp") }, make)
    }

    /// The same with these private folders, which are made.
    pub(crate) fn sandbox_in(
        &self,
        private: &PrivateFolders,
        make: impl FnOnce(SandboxFacts<'_>) -> SandboxPolicy,
    ) -> std::io::Result<Option<Sandbox>> {
        let WorldSandbox::On { level, choice } = &self.sandbox else { return Ok(None) };
        for folder in [&private.home, &private.tmp] {
            os::private_directory().recursive(true).create(folder)?;
        }
        let objects = self.repo.object_stores();
        let policy = make(SandboxFacts {
            env: &self.env,
            private,
            objects: &objects,
            checkout: self.places.root(),
            choice,
        });
        Ok(Some(Sandbox { level: level.clone(), policy, me: self.me.clone(), decoys: Vec::new() }))
    }

    /// The version a client prints, asked for once.
    pub(crate) fn version_of(&self, client: &'static Client) -> String {
        let mut versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = || crate::probe::version_of(client, &self.env, &self.own);
        versions.entry(client.name.to_owned()).or_insert_with(asked).clone()
    }

    /// The diff reviewers of `commit` see, made once.
    pub fn diff(
        &self,
        key: String,
        make: impl FnOnce() -> Result<String, crate::git::runner::Error>,
    ) -> Result<String, crate::git::runner::Error> {
        let mut diffs = self.diffs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(diff) = diffs.get(&key) {
            return Ok(diff.clone());
        }
        let diff = make()?;
        diffs.insert(key, diff.clone());
        Ok(diff)
    }
}
