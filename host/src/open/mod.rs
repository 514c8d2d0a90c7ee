//! The one opener: new runs, reviews and loops, runs that exist, and runs re-entered at a phase.
//!
//! Everything is checked here before anything is started or spent. What differs between strategies is beside them
//! ([`crate::review`], [`crate::agent_loop::open`]); they use the steps in `new`.

mod agents;
mod existing;
mod git_ready;
mod new;
mod reenter;
pub(crate) mod team;
mod try_commands;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use archeflow_core::event::Report;
use archeflow_core::model::{ARCHETYPES, Persona};

use crate::config::{self, ConfigFile, Faults, personas, trust};
use crate::drive::Driver;
use crate::git::content::CommitFiles;
use crate::git::remote::{self, RemoteBranch};
use crate::git::{self, ObjectId, Repo, runner};
use crate::probe::DefaultAgent;
use crate::store::{files, journal, places};
use crate::{backends, log};

pub use existing::{Adoption, session};
pub(crate) use new::RunName;
pub use new::sandbox_of;
pub use try_commands::{CommandTrial, TriedCommands};

/// The digest of each persona's text, by archetype.
type Digests = BTreeMap<String, String>;

/// The user's environment, read once.
#[derive(Debug, Clone)]
pub struct ProcessEnv {
    pub cwd: PathBuf,
    pub me: PathBuf,
    pub variables: Vec<(OsString, OsString)>,
    pub version: &'static str,
    /// Somebody typed that commands are to run without a sandbox.
    pub no_sandbox: bool,
}

impl ProcessEnv {
    /// Paths from the environment.
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
    pub env: ProcessEnv,
    pub repo: Repo,
    pub places: places::Places,
    pub state: PathBuf,
    pub target: Option<git::Target>,
    /// The files below `.archeflow/` as the base commit has them.
    pub offer: trust::Offer,
    pub approved: bool,
    /// What the process that started this one was given; it holds in place of an approval in the state folder.
    given: Option<trust::NamedApproval>,
    pub user: Vec<ConfigFile>,
    /// The folder with a configuration of its own in which the user stands, from the root; empty for the root (U-16).
    pub folder: String,
    /// Where the user stands, from the root.
    pub standing: String,
    /// Looked for once.
    default_client: OnceLock<Option<DefaultAgent>>,
}

/// What was asked for on the command line.
#[derive(Debug, Clone, Default)]
pub struct RunRequest {
    pub task: String,
    pub flags: config::Flags,
    pub config_file: Option<PathBuf>,
    pub dry_run: bool,
    pub attended: bool,
    /// The name the run must have; made from the task if not given.
    pub id: Option<String>,
}

/// A run ready to be driven, with the reports before and after the start of its session.
pub struct OpenedRun {
    pub driver: Driver,
    pub before: Vec<Report>,
    pub after: Vec<Report>,
    /// The client that was chosen because none was named.
    pub default_agent: Option<DefaultAgent>,
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
    #[error("the repository brings commands, settings or instructions that are not approved: {what}")]
    Untrusted { what: String },
    #[error("agents can't be shown {path} (`agents.instructions`): {why}")]
    Instructions { path: String, why: String },
    #[error("commands can't be kept in a sandbox: {why}")]
    NoSandbox { why: String, remedy: String },
    #[error("only {most} files may be open at once: too few to start anything in a sandbox")]
    FewFiles { most: u64 },
    #[error("git converts files here with a filter, which is not run in working copies: {files}")]
    Filtered { files: String },
    #[error("this needs the working tree of a repository; {place} has none")]
    Bare { place: String },
    #[error("there is no run '{id}' here")]
    NoRun { id: String },
    #[error("the run '{id}' never began: the program ended before its first line was written")]
    NeverBegan { id: String },
    #[error(
        "the run '{id}' is foreign: its journal was not written by you on this machine, or is committed in this repository. It names commands to run, and none of them is"
    )]
    Foreign { id: String },
    #[error("the journal of '{id}' is committed in this repository, so it can change with every checkout")]
    Committed { id: String },
    #[error("'{id}' can't be the name of a run")]
    BadId { id: String },
    #[error("no agent was named")]
    NoAgent,
    #[error("the agent '{spec}' can't be started: there is no program '{program}'")]
    AgentMissing { program: String, spec: String },
    #[error("what the review '{id}' is about is no longer kept; start a new review")]
    SubjectGone { id: String },
    #[error("{remote}: {why}")]
    Remote { remote: String, why: String },
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

/// The user's own settings, where no repository takes part. `root` must not hold the user's files.
pub fn users_settings(env: &ProcessEnv, root: &Path, file: Option<&Path>) -> Result<config::Settings, Error> {
    let folders = env.places();
    let folder = config::user::folder(
        folders.xdg_config_home.as_deref().map(Path::new),
        folders.home.as_deref().map(Path::new),
    );
    let user = folder.map_or(Ok(Vec::new()), |folder| config::user::read(&folder, root))?;
    let file = file.map(config::user::read_named).transpose()?;
    let flags = config::Flags::default();
    let inputs =
        config::Inputs { repository: &[], approved: false, user: &user, file: file.as_ref(), flags: &flags };
    Ok(config::Settings::resolve(&inputs)?)
}

impl Project {
    /// Opens the repository around `dir` and reads what is configured for it, acting on nothing yet.
    pub fn open(
        env: ProcessEnv,
        dir: &Path,
        branch: Option<&str>,
        needs_target: bool,
    ) -> Result<Project, Error> {
        let (places, git_env) = found(&env, dir)?;
        let state = places.state_dir(&env.places())?;
        let repo = Repo::open(places.root(), &state, &git_env)?;
        Project::of(env, (dir, branch, needs_target), places, state, repo)
    }

    /// The same for commands that only read: they answer where nothing can be written, too.
    pub fn open_to_read(env: ProcessEnv, dir: &Path, needs_target: bool) -> Result<Project, Error> {
        let (places, git_env) = found(&env, dir)?;
        let state = places.state_dir_to_read(&env.places())?;
        let repo = Repo::open_to_read(places.root(), &state, &git_env)?;
        Project::of(env, (dir, None, needs_target), places, state, repo)
    }

    fn of(
        env: ProcessEnv,
        (dir, branch, needs_target): (&Path, Option<&str>, bool),
        places: places::Places,
        state: PathBuf,
        repo: Repo,
    ) -> Result<Project, Error> {
        let root = places.root().to_owned();
        let folders = env.places();
        let target = match repo.target(branch) {
            Ok(target) => Some(target),
            Err(_) if !needs_target => None,
            Err(error) => return Err(error.into()),
        };
        let standing = standing(dir, &root);
        let folder = match &target {
            Some(target) => nearest_configured(&repo, &target.oid, &standing)?,
            None => String::new(),
        };
        let files =
            target.as_ref().map_or(Ok(Vec::new()), |target| repository_files(&repo, &target.oid, &folder))?;
        let of_user = config::user::folder(
            folders.xdg_config_home.as_deref().map(Path::new),
            folders.home.as_deref().map(Path::new),
        );
        let user = of_user.map_or(Ok(Vec::new()), |folder| config::user::read(&folder, &root))?;
        let instructions = match &target {
            Some(target) => instruction_files(&repo, &target.oid, &files, &user)?,
            None => Vec::new(),
        };
        let offer = trust::Offer { root: root.clone(), folder: folder.clone(), files, instructions };
        let approved = trust::Trust::open(&state)?.approved(&offer);
        Ok(Project {
            env,
            repo,
            places,
            state,
            target,
            offer,
            approved,
            given: None,
            user,
            folder,
            standing,
            default_client: OnceLock::new(),
        })
    }

    pub fn settings(&self, flags: &config::Flags, file: Option<&Path>) -> Result<config::Settings, Error> {
        let file = file.map(config::user::read_named).transpose()?;
        let flags = &self.typed_here(flags);
        let inputs = config::Inputs {
            repository: &self.offer.files,
            approved: self.approved,
            user: &self.user,
            file: file.as_ref(),
            flags,
        };
        Ok(config::Settings::resolve(&inputs)?)
    }

    /// Commands that are typed run in the same folder as configured ones. The user's environment variables count as flags, unless a flag was given.
    fn typed_here(&self, flags: &config::Flags) -> config::Flags {
        let said = |wanted: &str| {
            let said = self.env.variables.iter().find(|(name, _)| name == wanted);
            said.map(|(_, value)| value.to_string_lossy().into_owned()).filter(|value| !value.is_empty())
        };
        let here = |command: &Option<String>| {
            command.as_ref().map(|command| config::folder::command_in(&self.folder, command))
        };
        config::Flags {
            test_command: here(&flags.test_command),
            setup_command: here(&flags.setup_command),
            shadows: flags.shadows.clone().or_else(|| said(config::layers::SHADOWS)),
            provider: flags.provider.clone().or_else(|| said(config::layers::PROVIDER)),
            ..flags.clone()
        }
    }

    /// The folder in which the user stands and which has a configuration of its own in this commit.
    pub(crate) fn configured_folder(&self, repo: &Repo, commit: &ObjectId) -> Result<String, runner::Error> {
        nearest_configured(repo, commit, &self.standing)
    }

    /// The archetype of this name, also from the folder that `--config` names.
    pub fn persona(&self, name: &str, file: Option<&Path>) -> Result<personas::ResolvedPersona, Error> {
        let (theirs, ours) = self.archetype_files(file)?;
        Ok(personas::find(name, &theirs, self.approved, &ours)?)
    }

    /// The files of the repository and of the user that archetypes are looked for in.
    pub fn archetype_files(&self, file: Option<&Path>) -> Result<(Vec<ConfigFile>, Vec<ConfigFile>), Error> {
        let named = file.map(config::user::read_named).transpose()?;
        let named = named.map(|named| named.others).unwrap_or_default();
        Ok(personas::under(&named, &self.offer.files, &self.user))
    }

    /// Takes the repository's configuration from this commit.
    pub(crate) fn read_configuration_from(&mut self, repo: &Repo, commit: &ObjectId) -> Result<(), Error> {
        self.folder = self.configured_folder(repo, commit)?;
        self.offer.folder.clone_from(&self.folder);
        self.offer.files = repository_files(repo, commit, &self.folder)?;
        self.offer.instructions = instruction_files(repo, commit, &self.offer.files, &self.user)?;
        self.approved = self.is_approved()?;
        Ok(())
    }

    fn is_approved(&self) -> Result<bool, Error> {
        let is_given = self.given.as_ref().is_some_and(|given| given.is_for(&self.offer));
        Ok(is_given || trust::Trust::open(&self.state)?.approved(&self.offer))
    }

    /// The same repository with an approval that holds if it is for exactly what is configured.
    pub fn with_approval(mut self, given: trust::NamedApproval) -> Result<Project, Error> {
        self.given = Some(given);
        self.approved = self.is_approved()?;
        Ok(self)
    }

    /// What the repository had configured at a commit, e.g. the one that a run began at.
    pub fn offer_at(&self, commit: &ObjectId) -> Result<trust::Offer, Error> {
        let folder = self.configured_folder(&self.repo, commit)?;
        let files = repository_files(&self.repo, commit, &folder)?;
        let instructions = instruction_files(&self.repo, commit, &files, &self.user)?;
        Ok(trust::Offer { root: self.offer.root.clone(), folder, files, instructions })
    }

    /// The same repository, for a change that is to land on a branch of a remote: that branch, as the remote has it now.
    pub fn onto_remote(mut self, remote: &str, branch: Option<&str>) -> Result<Project, Error> {
        let fault = |why: String| Error::Remote { remote: remote.to_owned(), why };
        let here = self.target.as_ref().map(|target| target.branch.clone()).unwrap_or_default();
        let name = branch.unwrap_or_else(|| archeflow_core::text::branch_name(&here)).to_owned();
        let branch = RemoteBranch { remote: remote.to_owned(), branch: name };
        if !branch.is_known(&self.repo)? {
            return Err(fault("there is no remote of this name, or its name has a `/`".to_owned()));
        }
        let fetched = remote::fetch(&self.repo, &branch).map_err(fault)?;
        let oid = fetched.ok_or_else(|| fault(format!("it has no branch {}", branch.branch)))?;
        let repo = self.repo.clone();
        self.read_configuration_from(&repo, &oid)?;
        self.target = Some(git::Target { branch: branch.tracking(), oid });
        Ok(self)
    }

    /// Every archetype with the digest of the text in force.
    fn personas(&self, file: Option<&Path>) -> Result<(Digests, BTreeMap<String, Persona>), Error> {
        let mut digests = BTreeMap::new();
        let mut personas = BTreeMap::new();
        let (theirs, ours) = self.archetype_files(file)?;
        let brought = match self.approved {
            true => personas::names(&theirs, &ours),
            false => personas::names(&[], &ours),
        };
        for name in ARCHETYPES.iter().map(|(name, _)| (*name).to_owned()).chain(brought) {
            let found = personas::find(&name, &theirs, self.approved, &ours)?;
            digests.insert(name.clone(), found.digest);
            personas.insert(name, found.persona);
        }
        Ok((digests, personas))
    }
}

/// The working tree around a folder, and how git is asked about it.
fn found(env: &ProcessEnv, dir: &Path) -> Result<(places::Places, git::GitEnv), Error> {
    let git_env = git::GitEnv::new(env.variables.clone());
    let root = git::work_tree_of(dir, &git_env)?;
    let root = root.ok_or_else(|| Error::Bare { place: dir.display().to_string() })?;
    Ok((places::Places::at(&root)?, git_env))
}

/// The folder below the root, with `/` between its parts; the root where it can't be named in text.
fn standing(dir: &Path, root: &Path) -> String {
    let (dir, root) = (dir.canonicalize(), root.canonicalize());
    let below =
        dir.ok().zip(root.ok()).and_then(|(dir, root)| Some(dir.strip_prefix(&root).ok()?.to_owned()));
    below.and_then(|below| below.to_str().map(str::to_owned)).unwrap_or_default()
}

/// The innermost folder at or above this one that the commit has a configuration in; empty for the root.
fn nearest_configured(repo: &Repo, commit: &ObjectId, standing: &str) -> Result<String, runner::Error> {
    let mut folder = standing;
    while !folder.is_empty() {
        let config = config::folder::below(folder, config::REPOSITORY_CONFIG);
        if !repo.list_dir(commit, config.as_bytes())?.is_empty() {
            return Ok(folder.to_owned());
        }
        folder = folder.rsplit_once('/').map_or("", |(above, _)| above);
    }
    Ok(String::new())
}

/// Reads the configuration from the base commit, not from the working tree (R4): that of the root, and over it that of
/// the folder.
fn repository_files(repo: &Repo, commit: &ObjectId, folder: &str) -> Result<Vec<ConfigFile>, Error> {
    const AT_MOST: u64 = 1024 * 1024;
    let mut files = Vec::new();
    let folders: &[&str] = if folder.is_empty() { &[""] } else { &["", folder] };
    let mut wanted: Vec<String> = Vec::new();
    for folder in folders {
        let of_folder = [config::REPOSITORY_CONFIG, config::REPOSITORY_HOOKS];
        wanted.extend(of_folder.map(|file| config::folder::below(folder, file)));
    }
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

/// The files of `agents.instructions` that the base commit has, whoever lists them: their content is the repository's.
fn instruction_files(
    repo: &Repo,
    commit: &ObjectId,
    repository: &[ConfigFile],
    user: &[ConfigFile],
) -> Result<Vec<ConfigFile>, Error> {
    let flags = config::Flags::default();
    let inputs = config::Inputs { repository, approved: true, user, file: None, flags: &flags };
    // What can't be read is reported when the settings are used.
    let Ok(settings) = config::Settings::resolve(&inputs) else { return Ok(Vec::new()) };
    let mut files = Vec::new();
    for path in settings.policy().agents.instructions {
        let mut tree = CommitFiles::open(repo, commit).cap(team::READING_AT_MOST);
        match tree.bytes(path.as_bytes())?.map(<[u8]>::to_vec) {
            Some(bytes) => files.push((path, bytes)),
            None if tree.exists(path.as_bytes())? => {
                let why = format!("it has more than {} bytes", team::READING_AT_MOST);
                return Err(Error::Instructions { path, why });
            }
            None => {}
        }
    }
    Ok(files)
}
