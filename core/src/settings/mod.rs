//! Every setting, one row each: path, kind, bounds, who may set it, default, help and the field it fills.
//!
//! A row is written where its field is, with the `settings!` macro: the same line declares the field, its
//! default and its row. Rows that have a name in their path, or that fill more than a field, are in `named`.
//! Reading files, errors, `config show`, `replay whatif --set` and the table of the manual all come from these rows.
//!
//! Deliberately absent: reading text. What a command line of an agent or an address looks like is known to the host.

mod field;
mod named;
mod program;
mod table;
mod value;

use std::sync::LazyLock;

use crate::model::{
    Agents, Boundaries, Convergence, Costs, EvidencePolicy, Git, Goals, Limits, LoopPolicy, Memory, Models,
    Policy, Raised, Retries, Reviewing, Risks, Splitting,
};
use crate::rules::{shadows, system};
use crate::sprint::policy::SprintPolicy;

pub use field::{SettingField, SettingWord};
pub use program::{
    AgentAccess, ClientSettings, FilterChoice, ForgeChoice, ForgeSettings, GitAccess, KeepSettings,
    KeyHolder, McpSettings, ModelAccess, NOTIFY_ON, NotifySettings, ProgramSettings, SandboxAccess,
    SandboxReach, StrategyChoice, TelemetrySettings, TerminalMessages,
};
pub(crate) use table::{place, settings};
pub use value::{SettingValue, share_of, whole_number};

/// The most lenses that can be named at once.
pub const MOST_LENSES: usize = 8;

/// One setting.
#[derive(Debug)]
pub struct SettingRow {
    /// Dotted, with `<archetype>`, `<workflow>`, `<tier>`, `<sign>` or `<point>` in place of a name.
    pub path: &'static str,
    pub kind: SettingKind,
    pub class: SettingClass,
    pub preset: Preset,
    pub help: &'static str,
    pub home: Home,
    pub(crate) read: Read,
    pub(crate) write: Write,
}

/// The names in a path are handed over in their order.
type Read = fn(&AllSettings, &[&str]) -> Option<SettingValue>;
type Write = fn(&mut AllSettings, &[&str], &SettingValue) -> bool;

/// Which of the three records a setting fills.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Home {
    /// The policy that a run is judged by; frozen into its first line.
    Run,
    /// The bounds of a sprint.
    Sprint,
    /// Settings of the program besides these.
    Program,
}

/// All settings with their values.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AllSettings {
    pub run: Policy,
    pub sprint: SprintPolicy,
    pub program: ProgramSettings,
}

/// The value of a setting that is not set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// The default of its field.
    Field,
    /// This text, for a setting whose field is an entry that is not there.
    Text(&'static str),
    /// None, for this reason.
    Unset(&'static str),
}

/// What a value of a setting is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingKind {
    /// `true` or `false`, nothing else.
    Switch,
    /// `false` and nothing else, for the reason given.
    Off(&'static str),
    /// A whole number within these bounds, both included.
    Whole(u64, u64),
    /// The same, or `off`.
    Limit(u64, u64),
    /// A whole number of seconds; its field holds milliseconds.
    Seconds(u64, u64),
    /// A whole number of minutes; its field holds milliseconds.
    Minutes(u64, u64),
    /// A list of at most N waits in whole seconds, each within the bounds; its field holds milliseconds.
    Waits(usize, u64, u64),
    /// A decimal from 0 to 1 with at most six places, kept exactly.
    Share,
    /// Dollars from nothing to this many, with at most six places, kept exactly.
    Dollars(u64),
    /// One of these words, mildest first where they have an order.
    Words(&'static [&'static str]),
    Tier,
    /// A release number.
    Release,
    /// The beginning of branch names.
    Prefix,
    /// A command line for the shell, on one line.
    Command,
    /// The program or model behind an archetype.
    Agent,
    /// A list of at most N of them, their order kept.
    Agents(usize),
    /// A list of names of environment variables.
    Variables,
    /// The name of a model.
    Model,
    /// The address of a server.
    Url,
    /// A list of at most N hosts with the variables that hold their keys.
    HostKeys(usize),
    /// A list of at most N projects with percents.
    Shares(usize),
    /// A built-in workflow, or the name of a file.
    Workflow,
    /// The name of a file.
    Name,
    /// A list of at most N names, their order kept.
    Names(usize),
    /// A list of at most N texts, each on one line.
    Phrases(usize),
    /// A list of at most N folders of a working copy.
    Folders(usize),
    /// A list of some of these words, each once.
    WordList(&'static [&'static str]),
    /// An address that may hold a secret: of its value only the host is shown.
    SecretUrl,
    /// Where a secret is: an environment variable, or a file.
    SecretName,
}

impl SettingKind {
    pub const SEVERITY: SettingKind = SettingKind::Words(&["INFO", "WARNING", "CRITICAL"]);
    pub const PERCENT: SettingKind = SettingKind::Whole(0, 100);
    /// Dollars for a million tokens.
    pub const RATE: SettingKind = SettingKind::Dollars(10_000);
    pub const AMOUNT: SettingKind = SettingKind::Dollars(1_000_000);

    /// How many of its field's units one written unit has.
    fn unit(self) -> u64 {
        self.number().map_or(1, |number| number.unit)
    }

    /// The bounds of a single number.
    pub fn bounds(self) -> Option<(u64, u64)> {
        self.number()?.bounds
    }

    fn number(self) -> Option<NumberKind> {
        let single = |unit, least, most| Some(NumberKind { unit, bounds: Some((least, most)) });
        match self {
            SettingKind::Whole(least, most) | SettingKind::Limit(least, most) => single(1, least, most),
            SettingKind::Seconds(least, most) => single(1_000, least, most),
            SettingKind::Minutes(least, most) => single(60_000, least, most),
            SettingKind::Waits(..) => Some(NumberKind { unit: 1_000, bounds: None }),
            SettingKind::Switch
            | SettingKind::Off(_)
            | SettingKind::Share
            | SettingKind::Dollars(_)
            | SettingKind::Words(_)
            | SettingKind::Tier
            | SettingKind::Release
            | SettingKind::Prefix
            | SettingKind::Command
            | SettingKind::Agent
            | SettingKind::Agents(_)
            | SettingKind::Variables
            | SettingKind::Model
            | SettingKind::Url
            | SettingKind::HostKeys(_)
            | SettingKind::Shares(_)
            | SettingKind::Workflow
            | SettingKind::Name
            | SettingKind::Names(_)
            | SettingKind::Phrases(_)
            | SettingKind::Folders(_)
            | SettingKind::WordList(_)
            | SettingKind::SecretUrl
            | SettingKind::SecretName => None,
        }
    }
}

/// What a whole number in a file is in its field.
struct NumberKind {
    unit: u64,
    /// `None`: a list of numbers.
    bounds: Option<(u64, u64)>,
}

/// Whether a repository may set it without having been approved (R1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingClass {
    /// Can neither run, reach nor loosen anything.
    Inert,
    /// Needs approval, unless it only repeats the default.
    Guarded,
    /// More than the default needs approval; less doesn't.
    GuardedAbove,
    /// Less than the default needs approval; more doesn't.
    GuardedBelow,
    /// The user's alone: a repository that sets it is at fault, approved or not.
    Own,
}

impl SettingRow {
    /// The value in its field, in the units of the file. `None`: not set.
    pub fn value(&self, all: &AllSettings, path: &str) -> Option<SettingValue> {
        (self.read)(all, &self.names(path)).map(|value| value.divided(self.kind.unit()))
    }

    /// Writes a value that was read for this row into its field. `false`: the field takes no such value.
    pub fn fill(&self, all: &mut AllSettings, path: &str, value: &SettingValue) -> bool {
        (self.write)(all, &self.names(path), &value.clone().times(self.kind.unit()))
    }

    /// The default as it would be written in a file, or why there is none.
    pub fn default(&self) -> Result<String, &'static str> {
        match self.preset {
            Preset::Text(text) => Ok(text.to_owned()),
            Preset::Unset(why) => Err(why),
            Preset::Field => {
                static BUILT_IN: LazyLock<AllSettings> = LazyLock::new(AllSettings::default);
                let value = self.value(&BUILT_IN, self.path);
                value.map(|value| value.to_string()).ok_or("none")
            }
        }
    }

    fn names<'a>(&self, path: &'a str) -> Vec<&'a str> {
        let parts = self.path.split('.').zip(path.split('.'));
        parts.filter(|(wanted, _)| wanted.starts_with('<')).map(|(_, name)| name).collect()
    }
}

/// All rows, in the order of the manual.
pub fn rows() -> impl Iterator<Item = &'static SettingRow> {
    GROUPS.iter().chain(shadows::ROWS).chain(AFTER_SHADOWS).flat_map(|rows| rows.iter())
}

static GROUPS: &[&[SettingRow]] = &[
    ProgramSettings::ROWS,
    Policy::ROWS,
    named::MAX_CYCLES,
    Agents::ROWS,
    AgentAccess::ROWS,
    named::AGENTS,
    Models::ROWS,
    ModelAccess::ROWS,
    named::MODELS,
    Costs::ROWS,
    GitAccess::ROWS,
    Git::ROWS,
    SandboxAccess::ROWS,
    KeepSettings::ROWS,
    NotifySettings::ROWS,
    TelemetrySettings::ROWS,
    McpSettings::ROWS,
    ClientSettings::ROWS,
    ForgeSettings::ROWS,
    Limits::ROWS,
    Reviewing::ROWS,
    Splitting::ROWS,
    Retries::ROWS,
    Convergence::ROWS,
    EvidencePolicy::ROWS,
    named::RAISED,
    Raised::ROWS,
    Boundaries::ROWS,
];

static AFTER_SHADOWS: &[&[SettingRow]] = &[
    system::TunnelVision::ROWS,
    system::EchoChamber::ROWS,
    system::AnalysisParalysis::ROWS,
    system::SystemShadows::ROWS,
    system::ScopeCreep::ROWS,
    Memory::ROWS,
    SprintPolicy::ROWS,
    named::HOOKS,
    LoopPolicy::ROWS,
    Risks::ROWS,
    Goals::ROWS,
];
