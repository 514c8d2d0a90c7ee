//! Lays the sources of settings over one another and remembers where each value came from.
//!
//! From weak to strong: built-in, the repository, the user's own file, the file or folder named by `--config`, flags. The
//! user's file beats the repository's because the user is the one who answers for this machine: a choice made
//! there holds in every repository, and what a stranger wrote into a clone can't take it back. A repository that
//! wants another value for all its contributors still gets it from those who have set none themselves.

mod checks;
mod files;
mod flags;
mod show;
mod source;

use std::collections::BTreeMap;
use std::path::Path;

use archeflow_core::model::{Domain, LoopPolicy, Policy, Price, Strategy, Tier, Workflow};
use archeflow_core::rules::prices;
use archeflow_core::settings::{
    AllSettings, ClientSettings, FilterChoice, ForgeSettings, KeepSettings, KeyHolder, McpSettings,
    NotifySettings, ProgramSettings, SandboxAccess, SandboxReach, SettingKind, SettingRow, SettingValue,
    StrategyChoice, TelemetrySettings, rows,
};
use archeflow_core::sprint;

use crate::model_agent;
use crate::sandbox::policy::below_home;
use crate::sandbox::{SandboxChoice, SandboxLimits};

use super::folder::{self, FolderFile};
use super::keys::{self, KeyMatch};
use super::kinds::KindText;
use super::shelf::{self, LensFile, Shelf, Team};
use super::{ConfigFile, Fault, Faults, NamedConfig, in_full, personas, shown};

pub use flags::{Flags, PROVIDER, SHADOWS};
pub use show::Row;
pub use source::Source;

/// Everything that takes part in a run's settings.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// The files below `.archeflow/` as they are in the base commit, with paths from the repository's root.
    pub repository: &'a [ConfigFile],
    /// Whether the user approved exactly these files ([`super::Trust::approved`]).
    pub approved: bool,
    /// The user's own files, as [`super::user::read`] found them.
    pub user: &'a [ConfigFile],
    /// The file or folder named by `--config`.
    pub file: Option<&'a NamedConfig>,
    pub flags: &'a Flags,
}

/// A value of the repository that is not in effect because it is not approved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Withheld {
    pub key: String,
    /// In full and on one line, safe to print.
    pub value: String,
    pub path: String,
    pub line: u32,
    /// A stronger source sets this key, so approval would change nothing about it.
    pub overruled: Option<Source>,
}

/// The settings of a run, each with its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Only what some source sets; the rest is built in.
    values: BTreeMap<String, SetValue>,
    withheld: Vec<Withheld>,
    no_tests: bool,
    shelf: Shelf,
    hash: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct SetValue {
    value: SettingValue,
    source: Source,
    /// What it replaced, weakest first.
    beaten: Vec<Source>,
}

/// One key as a file sets it.
struct FileValue {
    key: String,
    value: SettingValue,
    path: String,
    line: u32,
}

type FileValues = Result<Vec<FileValue>, Vec<Fault>>;

/// One key as one source sets it.
struct SourcedValue {
    key: String,
    value: SettingValue,
    source: Source,
}

impl Settings {
    /// Reads every file and decides every value. Any fault in any file is an error: a typo never means the default.
    pub fn resolve(inputs: &Inputs<'_>) -> Result<Settings, Faults> {
        let mut faults = Vec::new();
        let named = inputs.file.map_or(&[][..], |named| &named.others);
        let (theirs, ours) = personas::under(named, inputs.repository, inputs.user);
        let archetypes = personas::names(&theirs, &ours);
        let headers = personas::headers(&theirs, &ours, &mut faults);
        let shelf =
            Shelf::read(inputs.repository, inputs.approved, inputs.user, named, &headers, &mut faults);
        let mut found = Vec::new();
        for (path, bytes) in inputs.repository {
            let read = match FolderFile::of(path) {
                Some(FolderFile::Config { folder }) => {
                    files::config(path, bytes, &archetypes).map(|values| in_folder(folder, values))
                }
                Some(FolderFile::Hooks { folder }) => {
                    files::hooks(path, bytes).map(|values| in_folder(folder, values))
                }
                None if personas::name_in_repository(path).is_some() => Ok(Vec::new()),
                None if shelf::in_repository(path).is_some() => Ok(Vec::new()),
                None => Err(vec![whole_file(path, "this file takes no part in the configuration")]),
            };
            keep(read, &mut found, &mut faults, |path, line| Source::Repo { path, line });
        }
        faults.extend(checks::the_users_own(&found));
        let (mut found, mut withheld) = checks::guard(found, inputs.approved);
        if !inputs.approved {
            withheld.extend(personas::withheld(inputs.repository));
            withheld.extend(shelf::withheld(inputs.repository));
        }
        for (path, bytes) in inputs.user {
            let read = match path.rsplit('/').next() {
                Some("config.yaml") => files::config(path, bytes, &archetypes),
                Some("hooks.yaml") => files::hooks(path, bytes),
                Some(_) | None => Ok(Vec::new()),
            };
            keep(read, &mut found, &mut faults, |path, line| Source::User { path, line });
        }
        if let Some(NamedConfig { config: (path, bytes), others }) = inputs.file {
            let read = files::config(path, bytes, &archetypes);
            keep(read, &mut found, &mut faults, |path, line| Source::File { path, line });
            for (path, bytes) in others.iter().filter(|(path, _)| path.ends_with("/hooks.yaml")) {
                let read = files::hooks(path, bytes);
                keep(read, &mut found, &mut faults, |path, line| Source::File { path, line });
            }
        }
        flags::read(inputs.flags, &archetypes, &mut found, &mut faults);

        faults.extend(checks::unknown_names(&found, &shelf));
        let mut values = lay(found);
        if inputs.flags.agent.is_some() {
            one_agent(&mut values);
        }
        faults.extend(checks::disagreements(&values));
        faults.extend(checks::two_teams(&values));
        faults.extend(checks::sandbox_paths(&values));
        faults.extend(checks::sandbox_hosts(&values));
        if !faults.is_empty() {
            return Err(Faults(faults));
        }
        for held in &mut withheld {
            held.overruled = values.get(&held.key).map(|set| set.source.clone());
        }
        let no_tests = inputs.flags.no_tests == Some(true);
        Ok(Settings { values, withheld, no_tests, shelf, hash: hash(inputs) })
    }

    /// What the repository asks for and doesn't get until it is approved.
    pub fn withheld(&self) -> &[Withheld] {
        &self.withheld
    }

    /// Whether the user set this key: on the command line or in a file of their own, not by what a repository says.
    pub fn is_set_by_user(&self, key: &str) -> bool {
        self.values.get(key).is_some_and(|set| !matches!(set.source, Source::Repo { .. }))
    }

    /// A digest of every byte that took part, for `run.start`.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// Every setting at its value: the built-in one, or that of the source with the highest precedence.
    pub fn all(&self) -> AllSettings {
        let mut all = AllSettings::default();
        self.fill(&mut all);
        all
    }

    /// Values go into their fields in the order of the table, because a later row may refine an earlier one.
    fn fill(&self, all: &mut AllSettings) {
        let named = self.named();
        for row in rows() {
            for (key, set) in self.set_for(row, &named) {
                let taken = row.fill(all, key, &set.value);
                debug_assert!(taken, "the field of `{key}` takes every value of its kind");
            }
        }
    }

    /// What is set for a row: one value, or one for each name.
    fn set_for<'a>(&'a self, row: &SettingRow, named: &NamedValues<'a>) -> Vec<(&'a str, &'a SetValue)> {
        if !row.path.contains('<') {
            return self.values.get(row.path).map(|set| (row.path, set)).into_iter().collect();
        }
        named.get(row.path).cloned().unwrap_or_default()
    }

    fn named(&self) -> NamedValues<'_> {
        let mut named = NamedValues::new();
        for (key, set) in &self.values {
            if let Some(row) = keys::known(key).filter(|row| row.path.contains('<')) {
                named.entry(row.path).or_default().push((key, set));
            }
        }
        named
    }

    /// `None`: chosen from the task.
    pub fn workflow(&self) -> Option<Workflow> {
        Workflow::parse(&self.all().program.workflow?)
    }

    /// Everything that can be asked for by name.
    pub fn shelf(&self) -> &Shelf {
        &self.shelf
    }

    /// The team that was asked for by name, and the workflow file.
    pub fn team(&self) -> Option<&Team> {
        self.shelf.teams.get(&self.all().program.team?)
    }

    pub fn workflow_file(&self) -> Option<&Team> {
        let name = self.all().program.workflow?;
        self.shelf.workflows.get(&name).filter(|_| Workflow::parse(&name).is_none())
    }

    /// The lenses that were asked for, left to right.
    pub fn lenses(&self) -> Vec<&LensFile> {
        let names = self.all().program.lenses;
        names.iter().filter_map(|name| self.shelf.lenses.get(name)).collect()
    }

    /// A threshold set by a lens. It replaces the built-in value; a configured value has precedence.
    pub fn lay_under(&mut self, key: &str, text: &str, path: &str, line: u32) -> Result<(), Fault> {
        let fault = |text: String| Fault { path: path.to_owned(), line, column: 0, text };
        let parts: Vec<&str> = key.split('.').collect();
        let KeyMatch::Setting(row) = keys::find(&parts, &[]) else {
            return Err(fault(format!("unknown key `{}`{}", shown(key), keys::advice(&parts, &[]))));
        };
        let Some(value) = row.kind.read_text(text) else {
            let text = format!("`{key}` is `{}`; allowed: {}", shown(text), row.kind.allowed());
            return Err(fault(text));
        };
        let source = Source::Repo { path: path.to_owned(), line };
        self.values.entry(key.to_owned()).or_insert(SetValue { value, source, beaten: Vec::new() });
        Ok(())
    }

    /// `None`: chosen from the task (AF-021).
    pub fn strategy(&self) -> Option<Strategy> {
        match self.all().program.strategy {
            StrategyChoice::Pdca => Some(Strategy::Pdca),
            StrategyChoice::Pipeline => Some(Strategy::Pipeline),
            StrategyChoice::Auto => None,
        }
    }

    /// `None`: not set; code.
    pub fn domain(&self) -> Option<Domain> {
        self.all().program.domain
    }

    pub fn auto_merge(&self) -> bool {
        self.all().program.git.auto_merge
    }

    /// What to do about files that git converts with a program.
    pub fn filters(&self) -> FilterChoice {
        self.all().program.git.filters
    }

    /// Prefix of run branches; ends with `/`.
    pub fn branch_prefix(&self) -> String {
        self.all().program.git.branch_prefix
    }

    /// Names of environment variables that agents get beside the program's own.
    pub fn variables(&self) -> Vec<String> {
        self.all().program.agents.env
    }

    /// What commands in the sandbox may reach and use up.
    pub fn sandbox(&self) -> SandboxAccess {
        self.all().program.sandbox
    }

    /// How long files are kept that nothing needs any more.
    pub fn keep(&self) -> KeepSettings {
        self.all().program.keep
    }

    /// How a person is notified that a run waits.
    pub fn notify(&self) -> NotifySettings {
        self.all().program.notify
    }

    /// What is allowed in the clients of coding agents.
    pub fn mcp(&self) -> McpSettings {
        self.all().program.mcp
    }

    /// What the plugins of coding agents do by themselves.
    pub fn client(&self) -> ClientSettings {
        self.all().program.client
    }

    /// A forge of the user's own.
    pub fn forge(&self) -> ForgeSettings {
        self.all().program.forge
    }

    /// Where runs are sent as telemetry, and how much of them.
    pub fn telemetry(&self) -> TelemetrySettings {
        self.all().program.telemetry
    }

    /// The same as the sandbox takes it.
    pub fn sandbox_choice(&self, home: Option<&Path>) -> SandboxChoice {
        let settings = self.sandbox();
        let bytes = |mega: u64| Some(mega.saturating_mul(1024 * 1024));
        SandboxChoice {
            full_network: settings.network == SandboxReach::Full,
            hold_keys: settings.keys == KeyHolder::Proxy,
            read: settings.read.iter().map(|path| below_home(path, home)).collect(),
            write: settings.write.iter().map(|path| below_home(path, home)).collect(),
            hosts: settings.hosts,
            setup_hosts: settings.setup_hosts,
            limits: SandboxLimits {
                memory: bytes(settings.memory_mb),
                processes: Some(settings.processes),
                file_size: bytes(settings.file_size_mb),
                disk: bytes(settings.disk_mb),
                open_files: None,
            },
        }
    }

    /// Hosts and the variables that hold their keys, as `host=VARIABLE`.
    pub fn model_keys(&self) -> Vec<String> {
        self.all().program.models.keys
    }

    /// The rules this run is judged by. Prices are frozen when a run is opened: [`Settings::prices`].
    pub fn policy(&self) -> Policy {
        let AllSettings { mut run, program, .. } = self.all();
        run.costs.prices.clear();
        run.no_tests = self.no_tests;
        if self.no_tests {
            run.test_command = None;
        }
        if run.agents.default.is_empty() {
            run.agents.default = program.models.provider.unwrap_or_default();
        }
        run
    }

    /// What each tier costs: the built-in page of prices, and what the user sets otherwise.
    pub fn prices(&self) -> BTreeMap<Tier, Price> {
        let mut all = AllSettings::default();
        all.run.costs.prices.clone_from(&prices::built_in().tiers);
        self.fill(&mut all);
        all.run.costs.prices
    }

    /// The thresholds of the Human/Planner/Actor/Judge loop.
    pub fn looping(&self) -> LoopPolicy {
        self.all().run.looping
    }

    /// The bounds of a sprint. Permission to run without asking is none of them: it is given on the command line alone
    /// (BX-22).
    pub fn sprint(&self) -> sprint::policy::SprintPolicy {
        self.all().sprint
    }

    /// Settings of models without a client of their own.
    pub fn loops(&self) -> model_agent::ModelSettings {
        let AllSettings { run, program: ProgramSettings { models, .. }, .. } = self.all();
        let mut settings = model_agent::ModelSettings {
            turns: models.max_turns,
            tokens: models.max_tokens,
            waits_ms: models.retry_waits_ms,
            // An agent gives up waiting for its provider before the program gives up waiting for the agent.
            patience_ms: (run.limits.silence_ms * 3 / 5).max(1_000),
            context: models.ollama_context,
            ollama_url: models.ollama_url,
            ollama_remote: models.ollama_remote,
            ..model_agent::ModelSettings::default()
        };
        let mapped = models.mapping.into_iter().map(|(tier, model)| (tier.name().to_owned(), model));
        settings.mapping.extend(mapped);
        settings
    }
}

/// Values of rows that have one for each name, by the path of the row.
type NamedValues<'a> = BTreeMap<&'static str, Vec<(&'a str, &'a SetValue)>>;

/// The commands that a file of this folder sets run there, and the folders that it names are in it.
fn in_folder(folder: &str, values: Vec<FileValue>) -> Vec<FileValue> {
    let has_place = |key: &str| {
        let kind = keys::known(key).map(|row| row.kind);
        matches!(kind, Some(SettingKind::Command | SettingKind::Folders(_)))
    };
    let placed = |read: FileValue| match has_place(&read.key) {
        true => FileValue { value: folder::value_in(folder, read.value), ..read },
        false => read,
    };
    values.into_iter().map(placed).collect()
}

fn keep(
    read: FileValues,
    found: &mut Vec<SourcedValue>,
    faults: &mut Vec<Fault>,
    source: impl Fn(String, u32) -> Source,
) {
    match read {
        Ok(lines) => found.extend(lines.into_iter().map(|FileValue { key, value, path, line }| {
            SourcedValue { key, value, source: source(path, line) }
        })),
        Err(more) => faults.extend(more),
    }
}

/// `found` is in order of precedence, lowest first, so the last value of a key counts.
fn lay(found: Vec<SourcedValue>) -> BTreeMap<String, SetValue> {
    let mut values: BTreeMap<String, SetValue> = BTreeMap::new();
    for SourcedValue { key, value, source } in found {
        let mut beaten = Vec::new();
        if let Some(before) = values.remove(&key) {
            debug_assert!(before.source.rank() <= source.rank(), "sources are laid from weak to strong");
            beaten = before.beaten;
            beaten.push(before.source);
        }
        values.insert(key, SetValue { value, source, beaten });
    }
    values
}

/// Keys below `agents` that name no archetype.
const NO_ARCHETYPES: [&str; 6] = ["default", "env", "structured", "fallback", "instructions", "uncoded"];

/// `--agent` applies to all archetypes, also those with an agent in a file; only `--agent-for` overrides it.
fn one_agent(values: &mut BTreeMap<String, SetValue>) {
    let mut beaten = Vec::new();
    values.retain(|key, set| {
        let keep = match key.strip_prefix("agents.") {
            None => true,
            Some(name) if NO_ARCHETYPES.contains(&name) => true,
            Some(_) => matches!(set.source, Source::Flag(_)),
        };
        if !keep {
            beaten.push(set.source.clone());
        }
        keep
    });
    if let Some(default) = values.get_mut("agents.default") {
        default.beaten.extend(beaten);
        default.beaten.sort();
    }
}

fn whole_file(path: &str, text: &str) -> Fault {
    Fault { path: in_full(path), line: 0, column: 0, text: text.to_owned() }
}

fn hash(inputs: &Inputs<'_>) -> String {
    const DIGITS: usize = 32;
    let mut hasher = blake3::Hasher::new();
    let mut add = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    add(b"archeflow settings 1");
    let layers: [(&str, Vec<&ConfigFile>); 3] = [
        ("repository", inputs.repository.iter().collect()),
        ("user", inputs.user.iter().collect()),
        (
            "file",
            inputs
                .file
                .iter()
                .flat_map(|named| std::iter::once(&named.config).chain(&named.others))
                .collect(),
        ),
    ];
    for (layer, mut files) in layers {
        files.sort();
        add(layer.as_bytes());
        add(&(files.len() as u64).to_le_bytes());
        for (path, bytes) in files {
            add(path.as_bytes());
            add(bytes);
        }
    }
    add(if inputs.approved { b"approved" } else { b"unapproved" });
    add(format!("{:?}", inputs.flags).as_bytes());
    hasher.finalize().to_hex().chars().take(DIGITS).collect()
}
