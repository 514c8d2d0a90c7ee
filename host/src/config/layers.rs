//! Lays the sources of settings over one another and remembers where each value came from.
//!
//! From weak to strong: built-in, the repository, the user's own file, the file named by `--config`, flags. The
//! user's file beats the repository's because the user is the one who answers for this machine: a choice made
//! there holds in every repository, and what a stranger wrote into a clone can't take it back. A repository that
//! wants another value for everybody who works on it still gets it from all who haven't decided otherwise.

use std::collections::BTreeMap;
use std::fmt;

use archeflow_core::model::{
    Approval, Boundaries, Domain, FailAction, Goals, Hook, HookPoint, LimitMode, LoopPolicy, MergeStrategy,
    Money, OnPostMergeFailure, Overlap, Policy, Price, Risks, Severity, Sign, Strategy, Tier, Workflow,
    ZeroPolicy,
};
use archeflow_core::rules::prices::built_in;

use crate::model_agent;

use super::keys::{self, Class, Found, KEYS, Key, Setting};
use super::shelf::{self, Kind, LensFile, Shelf, Team};
use super::yaml::{self, Entry, Value};
use super::{Fault, Faults, Part, REPOSITORY_CONFIG, REPOSITORY_HOOKS, in_full, personas, shadows, shown};

/// Everything that takes part in a run's settings.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// The files below `.archeflow/` as they are in the base commit, with paths from the repository's root.
    pub repository: &'a [Part],
    /// Whether the user approved exactly these files ([`super::Trust::approved`]).
    pub approved: bool,
    /// The user's own files, as [`super::user::read`] found them.
    pub user: &'a [Part],
    /// The file named by `--config`.
    pub file: Option<&'a Part>,
    pub flags: &'a Flags,
}

/// What was typed for this run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Flags {
    pub workflow: Option<String>,
    pub strategy: Option<String>,
    pub domain: Option<String>,
    pub team: Option<String>,
    /// Names with commas between them.
    pub lens: Option<String>,
    pub agent: Option<String>,
    /// Archetype and agent.
    pub agent_for: Vec<(String, String)>,
    pub test_command: Option<String>,
    pub no_tests: Option<bool>,
    pub auto_merge: Option<bool>,
    /// Dollars.
    pub budget: Option<String>,
    /// The environment variable [`SHADOWS`].
    pub shadows: Option<String>,
    /// The environment variable [`PROVIDER`].
    pub provider: Option<String>,
}

/// `off` switches the detection of shadows off for whoever sets it (BX-34).
pub const SHADOWS: &str = "ARCHEFLOW_SHADOWS";

/// Who is asked where no agent is named.
pub const PROVIDER: &str = "ARCHEFLOW_MODEL_PROVIDER";

/// Where a value came from; the stronger source compares greater.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    BuiltIn,
    Repo {
        path: String,
        line: u32,
    },
    User {
        path: String,
        line: u32,
    },
    File {
        path: String,
        line: u32,
    },
    /// As it is typed, with its dashes; or the name of an environment variable.
    Flag(&'static str),
}

impl Source {
    /// Something wrong with what stands there.
    fn fault(&self, text: String) -> Fault {
        match self {
            Source::Repo { path, line } | Source::User { path, line } | Source::File { path, line } => {
                Fault { path: path.clone(), line: *line, column: 0, text }
            }
            Source::BuiltIn => whole_file("configuration", &text),
            Source::Flag(flag) => whole_file(flag, &text),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::BuiltIn => f.write_str("built-in"),
            Source::Repo { path, line } | Source::User { path, line } | Source::File { path, line } => {
                write!(f, "{path}:{line}")
            }
            Source::Flag(name) => f.write_str(name),
        }
    }
}

/// A value of the repository that is not in force, because nobody approved it.
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

/// One line of `archeflow config show`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub key: String,
    /// Safe to print; empty when nothing is set.
    pub value: String,
    pub source: Source,
    pub note: String,
}

/// The settings of a run, each with its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Only what some source sets; the rest is built in.
    values: BTreeMap<String, Set>,
    withheld: Vec<Withheld>,
    no_tests: bool,
    shelf: Shelf,
    hash: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Set {
    value: Setting,
    source: Source,
    /// What it replaced, weakest first.
    beaten: Vec<Source>,
}

/// Faults beyond this number in one file are only counted.
const ENOUGH_FAULTS: usize = 20;

impl Settings {
    /// Reads every file and decides every value. Any fault in any file is an error: a typo never means the default.
    pub fn resolve(inputs: &Inputs<'_>) -> Result<Settings, Faults> {
        let mut faults = Vec::new();
        let archetypes = personas::names(inputs.repository, inputs.user);
        let headers = personas::headers(inputs.repository, inputs.user, &mut faults);
        let shelf = Shelf::read(inputs.repository, inputs.approved, inputs.user, &headers, &mut faults);
        let mut found = Vec::new();
        for (path, bytes) in inputs.repository {
            let read = match path.as_str() {
                REPOSITORY_CONFIG => config(path, bytes, &archetypes),
                REPOSITORY_HOOKS => hooks(path, bytes),
                _ if personas::name_in_repository(path).is_some() => Ok(Vec::new()),
                _ if shelf::in_repository(path).is_some() => Ok(Vec::new()),
                _ => Err(vec![whole_file(path, "this file takes no part in the configuration")]),
            };
            keep(read, &mut found, &mut faults, |path, line| Source::Repo { path, line });
        }
        faults.extend(the_users_own(&found));
        let (mut found, mut withheld) = guard(found, inputs.approved);
        if !inputs.approved {
            withheld.extend(personas::withheld(inputs.repository));
            withheld.extend(shelf::withheld(inputs.repository));
        }
        for (path, bytes) in inputs.user {
            let read = match path.rsplit('/').next() {
                Some("config.yaml") => config(path, bytes, &archetypes),
                Some("hooks.yaml") => hooks(path, bytes),
                Some(_) | None => Ok(Vec::new()),
            };
            keep(read, &mut found, &mut faults, |path, line| Source::User { path, line });
        }
        if let Some((path, bytes)) = inputs.file {
            let read = config(path, bytes, &archetypes);
            keep(read, &mut found, &mut faults, |path, line| Source::File { path, line });
        }
        flags(inputs.flags, &archetypes, &mut found, &mut faults);

        faults.extend(strangers(&found, &shelf));
        let mut values = lay(found);
        if inputs.flags.agent.is_some() {
            one_agent(&mut values);
        }
        faults.extend(disagreements(&values));
        faults.extend(two_teams(&values));
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

    /// A digest of every byte that took part, for `run.start`.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// `None`: chosen from the task.
    pub fn workflow(&self) -> Option<Workflow> {
        self.word("workflow").and_then(Workflow::parse)
    }

    /// Everything that can be asked for by name.
    pub fn shelf(&self) -> &Shelf {
        &self.shelf
    }

    /// The team that was asked for by name, and the workflow file.
    pub fn team(&self) -> Option<&Team> {
        self.shelf.teams.get(&self.text("team")?)
    }

    pub fn workflow_file(&self) -> Option<&Team> {
        self.shelf.workflows.get(&self.text("workflow")?)
    }

    /// The lenses that were asked for, left to right.
    pub fn lenses(&self) -> Vec<&LensFile> {
        let names = match self.get("lenses") {
            Some(Setting::Names(names)) => names,
            _ => Vec::new(),
        };
        names.iter().filter_map(|name| self.shelf.lenses.get(name)).collect()
    }

    /// What a lens says about a threshold. It takes the place of what is built in; whoever set the key wins.
    pub fn lay_under(&mut self, key: &str, text: &str, path: &str, line: u32) -> Result<(), Fault> {
        let fault = |text: String| Fault { path: path.to_owned(), line, column: 0, text };
        let parts: Vec<&str> = key.split('.').collect();
        let Found::Key(row) = keys::find(&parts, &[]) else {
            return Err(fault(format!("unknown key `{}`{}", shown(key), keys::advice(&parts, &[]))));
        };
        let Some(value) = row.kind.read_text(text) else {
            let text = format!("`{key}` is `{}`; allowed: {}", shown(text), row.kind.allowed());
            return Err(fault(text));
        };
        let source = Source::Repo { path: path.to_owned(), line };
        self.values.entry(key.to_owned()).or_insert(Set { value, source, beaten: Vec::new() });
        Ok(())
    }

    /// `None`: chosen from the task (AF-021).
    pub fn strategy(&self) -> Option<Strategy> {
        let word = self.word("strategy");
        [Strategy::Pdca, Strategy::Pipeline].into_iter().find(|strategy| Some(strategy.name()) == word)
    }

    /// `None`: nobody said; code.
    pub fn domain(&self) -> Option<Domain> {
        let word = self.word("domain");
        [Domain::Code, Domain::Writing, Domain::Research]
            .into_iter()
            .find(|domain| Some(domain.name()) == word)
    }

    pub fn auto_merge(&self) -> bool {
        self.switch("git.auto_merge")
    }

    /// How the branches of runs begin; ends with `/`.
    pub fn branch_prefix(&self) -> String {
        self.text("git.branch_prefix").unwrap_or_default()
    }

    /// Names of environment variables that agents get beside the program's own.
    pub fn variables(&self) -> Vec<String> {
        match self.get("agents.env") {
            Some(Setting::Names(names)) => names,
            _ => Vec::new(),
        }
    }

    /// The rules this run is judged by.
    pub fn policy(&self) -> Policy {
        let mut policy = Policy::default();
        self.models(&mut policy);
        self.agents(&mut policy);
        self.limits(&mut policy);
        self.convergence(&mut policy);
        self.boundaries(&mut policy);
        self.costs(&mut policy);
        shadows::read(self, &mut policy);
        self.memory(&mut policy);
        policy.looping = self.looping();
        policy.raised.binary_bytes = self.whole("raised.binary_bytes");
        for sign in Sign::ALL {
            let key = format!("raised.severity.{}", sign.name());
            if self.values.contains_key(&key) {
                policy.raised.severity.insert(sign, self.severity(&key));
            }
        }
        policy.git.merge_strategy = match self.word("git.merge_strategy") {
            Some("squash") => MergeStrategy::Squash,
            Some("rebase") => MergeStrategy::Rebase,
            Some(_) | None => MergeStrategy::NoFf,
        };
        policy.git.post_merge_test = self.switch("git.post_merge_test");
        policy.git.on_post_merge_failure = match self.word("git.on_post_merge_failure") {
            Some("halt") => Some(OnPostMergeFailure::Halt),
            Some("cycle_back") => Some(OnPostMergeFailure::CycleBack),
            Some(_) | None => None,
        };
        policy.no_tests = self.no_tests;
        policy.test_command = if self.no_tests { None } else { self.text("test_command") };
        policy.hooks = HookPoint::ALL.into_iter().filter_map(|point| self.hook(point)).collect();
        for workflow in Workflow::ALL {
            let cycles = narrow(self.whole(&format!("max_cycles.{}", workflow.name())));
            if cycles != workflow.max_cycles() {
                policy.max_cycles.insert(workflow, cycles);
            }
        }
        if let Some(Setting::Millionths(floor)) = self.get("confidence_floor") {
            policy.confidence_floor.0 = floor;
        }
        policy
    }

    fn models(&self, policy: &mut Policy) {
        for (key, set) in &self.values {
            let Setting::Word(word) = set.value else { continue };
            let Some(tier) = Tier::parse(word) else { continue };
            let models = &mut policy.models;
            match key.split('.').collect::<Vec<_>>().as_slice() {
                ["models", "default"] => models.default = Some(tier),
                ["models", "archetypes", name] => {
                    models.archetypes.insert((*name).to_owned(), tier);
                }
                ["models", "workflows", workflow, rest @ ..] => {
                    let Some(workflow) = Workflow::parse(workflow) else { continue };
                    let models = models.workflows.entry(workflow).or_default();
                    match rest {
                        ["archetypes", name] => {
                            models.archetypes.insert((*name).to_owned(), tier);
                        }
                        _ => models.default = Some(tier),
                    }
                }
                _ => {}
            }
        }
    }

    /// What is set about models without a client, for the loop around them.
    pub fn loops(&self) -> model_agent::ModelSettings {
        let silence_ms = self.whole("limits.silence_seconds") * 1_000;
        let mapped = self.values.iter().filter_map(|(key, set)| {
            let tier = Tier::parse(key.strip_prefix("models.mapping.")?)?;
            Some((tier.name().to_owned(), set.value.to_string()))
        });
        let waits = match self.get("models.retry_waits_seconds") {
            Some(Setting::Wholes(waits)) => waits,
            _ => Vec::new(),
        };
        let mut settings = model_agent::ModelSettings {
            turns: narrow(self.whole("models.max_turns")),
            tokens: match self.get("models.max_tokens") {
                Some(Setting::Whole(tokens)) => Some(tokens),
                _ => None,
            },
            waits_ms: waits.into_iter().map(|seconds| seconds * 1_000).collect(),
            // Whoever waits for a provider gives up before others give up waiting for it.
            patience_ms: (silence_ms * 3 / 5).max(1_000),
            context: self.whole("models.ollama.context"),
            ollama_url: self.text("models.ollama.base_url"),
            ollama_remote: self.switch("models.ollama.allow_remote"),
            ..model_agent::ModelSettings::default()
        };
        settings.mapping.extend(mapped);
        settings
    }

    /// Hosts and the variables that hold their keys, as `host=VARIABLE`.
    pub fn model_keys(&self) -> Vec<String> {
        match self.get("models.keys") {
            Some(Setting::Names(keys)) => keys,
            _ => Vec::new(),
        }
    }

    fn agents(&self, policy: &mut Policy) {
        let provider = || self.word("models.provider").map(str::to_owned);
        policy.agents.default = self.text("agents.default").or_else(provider).unwrap_or_default();
        policy.agents.structured = self.switch("agents.structured");
        for (key, set) in &self.values {
            if let (Some(name), Setting::Text(spec)) = (key.strip_prefix("agents."), &set.value)
                && name != "default"
            {
                policy.agents.by_archetype.insert(name.to_owned(), spec.clone());
            }
        }
        if let Some(Setting::Names(specs)) = self.get("agents.fallback") {
            policy.agents.fallback = specs;
        }
    }

    fn limits(&self, policy: &mut Policy) {
        const SECOND: u64 = 1_000;
        const MINUTE: u64 = 60 * SECOND;
        let limits = &mut policy.limits;
        limits.silence_ms = self.whole("limits.silence_seconds") * SECOND;
        limits.maker_ms = self.whole("limits.maker_minutes") * MINUTE;
        limits.other_ms = self.whole("limits.other_minutes") * MINUTE;
        limits.mini_explorer_ms = self.whole("limits.mini_explorer_minutes") * MINUTE;
        limits.tests_ms = self.whole("limits.tests_seconds") * SECOND;
        limits.hook_ms = self.whole("limits.hook_seconds") * SECOND;
        policy.review.splitting.bytes_per_part = narrow(self.whole("review.part_bytes"));
        policy.review.trial_ms = self.whole("review.trial_seconds") * SECOND;
        policy.review.trials = narrow(self.whole("review.trials"));
        let retries = &mut policy.retries;
        retries.attempts = narrow(self.whole("retries.attempts"));
        retries.failures_in_a_row = narrow(self.whole("retries.failures_in_a_row"));
        retries.moved_base = narrow(self.whole("retries.moved_base"));
        retries.questions = narrow(self.whole("retries.questions"));
        if let Some(Setting::Wholes(waits)) = self.get("retries.busy_waits_seconds") {
            retries.busy_waits_ms = waits.into_iter().map(|seconds| seconds * SECOND).collect();
        }
        retries.jitter_percent = narrow(self.whole("retries.jitter_percent"));
        retries.park_after_ms = self.whole("retries.park_after_seconds") * SECOND;
    }

    fn convergence(&self, policy: &mut Policy) {
        let convergence = &mut policy.convergence;
        let number = |name: &str| narrow(self.whole(&format!("convergence.{name}")));
        convergence.line_window = number("line_window");
        convergence.overlap_percent = number("overlap_percent");
        convergence.converging_above_percent = number("converging_above_percent");
        convergence.diverging_below_percent = number("diverging_below_percent");
        convergence.diverging_cycles = number("diverging_cycles");
        convergence.oscillating = number("oscillating");
        convergence.overlap = match self.word("convergence.overlap") {
            Some("jaccard") => Overlap::Jaccard,
            Some(_) | None => Overlap::Min,
        };
        convergence.zero_policy = match self.word("convergence.zero_policy") {
            Some("two_consecutive") => ZeroPolicy::TwoConsecutive,
            Some(_) | None => ZeroPolicy::Immediate,
        };
        convergence.stop_without_baseline = self.switch("convergence.stop_without_baseline");
        convergence.persistent_floor = self.severity("convergence.persistent_floor");
        convergence.tracked = self.severity("convergence.tracked");
    }

    fn boundaries(&self, policy: &mut Policy) {
        const MINUTE: u64 = 60_000;
        let number = |name: &str| narrow(self.whole(&format!("boundaries.{name}")));
        policy.boundaries = Boundaries {
            checkpoint_ms: self.whole("boundaries.checkpoint_minutes") * MINUTE,
            checkpoint_cycles: number("checkpoint_cycles"),
            lessons_at_most: number("lessons_at_most"),
            lessons_kept: number("lessons_kept"),
            findings_at_most: number("findings_at_most"),
            themes: number("themes"),
            prompt_percent: number("prompt_percent"),
            rising_cycles: number("rising_cycles"),
        };
    }

    fn costs(&self, policy: &mut Policy) {
        let costs = &mut policy.costs;
        costs.budget_usd = self.money("costs.budget_usd");
        costs.per_agent_usd = self.money("costs.per_agent_usd");
        costs.daily_usd = self.money("costs.daily_usd");
        costs.warn_at_percent = narrow(self.whole("costs.warn_at_percent"));
    }

    /// What each tier costs: the built-in page, and what the user says otherwise. Whoever names the price of an input
    /// token and is silent about cached ones means the usual tenth.
    pub fn prices(&self) -> BTreeMap<Tier, Price> {
        let mut prices = built_in().tiers.clone();
        for (tier, price) in &mut prices {
            let rate = |name: &str| self.priced(*tier, name);
            if let Some(Setting::Money(input)) = rate("input") {
                price.input = Money(input);
                price.cache_read = Money(input.div_ceil(10));
                price.cache_write = Money(input);
            }
            for (name, field) in [
                ("output", &mut price.output),
                ("cache_read", &mut price.cache_read),
                ("cache_write", &mut price.cache_write),
            ] {
                if let Some(Setting::Money(micro)) = rate(name) {
                    *field = Money(micro);
                }
            }
            if let Some(Setting::Whole(window)) = rate("context_window") {
                price.context_window = window;
            }
        }
        prices
    }

    /// A tier may be called by either of its names.
    fn priced(&self, tier: Tier, rate: &str) -> Option<Setting> {
        self.values.iter().find_map(|(key, set)| {
            let (name, last) = key.strip_prefix("models.prices.")?.split_once('.')?;
            (Tier::parse(name) == Some(tier) && last == rate).then(|| set.value.clone())
        })
    }

    pub(super) fn money(&self, key: &str) -> Option<Money> {
        match self.get(key) {
            Some(Setting::Money(micro)) => Some(Money(micro)),
            _ => None,
        }
    }

    fn memory(&self, policy: &mut Policy) {
        let memory = &mut policy.memory;
        let number = |name: &str| narrow(self.whole(&format!("memory.{name}")));
        memory.enabled = self.switch("memory.enabled");
        memory.inject_threshold = number("inject_threshold");
        memory.always_threshold = number("always_threshold");
        memory.max_lessons = number("max_lessons");
        memory.decay_after_runs = number("decay_after_runs");
        memory.match_percent = number("match_percent");
        memory.ineffective_percent = number("ineffective_percent");
        memory.ineffective_limit = number("ineffective_limit");
        memory.persistent_cycles = number("persistent_cycles");
        memory.persistent_boost = number("persistent_boost");
        memory.share = self.switch("memory.share");
    }

    /// The thresholds of the Human/Planner/Actor/Judge loop.
    pub fn looping(&self) -> LoopPolicy {
        let number = |name: &str| narrow(self.whole(&format!("loop.{name}")));
        let list = |name: &str| match self.get(&format!("loop.{name}")) {
            Some(Setting::Names(names)) => names,
            _ => Vec::new(),
        };
        let chosen = |name: &str, word: &str| self.word(&format!("loop.{name}")) == Some(word);
        LoopPolicy {
            lines: number("max_lines"),
            files: number("max_files"),
            limit_mode: if chosen("limit_mode", "both_required") {
                LimitMode::BothRequired
            } else {
                LimitMode::EitherSuffices
            },
            docs_tolerance: number("docs_tolerance_percent"),
            pause_after: number("pause_after"),
            stuck_after: number("stuck_after"),
            rounds: number("max_rounds"),
            checkpoint_ms: self.whole("loop.checkpoint_minutes") * 60_000,
            approval: if chosen("approval", "goal_complete") {
                Approval::GoalComplete
            } else {
                Approval::EveryPass
            },
            confidence_floor: number("confidence_floor"),
            docs: number("docs"),
            forbidden: list("forbidden"),
            risks: Risks { low: list("risks.low"), medium: list("risks.medium"), high: list("risks.high") },
            goals: Goals {
                iterations: number("goals.iterations"),
                pass_rate: number("goals.pass_percent"),
                pause_rate: number("goals.pause_percent"),
            },
            linter_counts: self.switch("loop.linter_counts"),
            network_retries: number("network_retries"),
            first_pause_ms: self.whole("loop.first_pause_seconds") * 1_000,
            goal_words: number("goal_words"),
            empty_words: list("empty_words"),
            strict: self.switch("loop.strict"),
            unread_retries: number("unread_retries"),
            linter: self.text("loop.linter"),
            formatter: self.text("loop.formatter"),
            detect: self.switch("loop.detect"),
        }
    }

    fn hook(&self, point: HookPoint) -> Option<Hook> {
        let command = self.text(&format!("hooks.{}.command", point.name()))?;
        let fail_action = match self.word(&format!("hooks.{}.fail_action", point.name())) {
            Some("warn") => FailAction::Warn,
            Some("abort") => FailAction::Abort,
            Some(_) | None => fail_action(point),
        };
        Some(Hook { point, command, fail_action })
    }

    /// Every setting in force, in the order of the manual, and what was withheld.
    pub fn show(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for key in KEYS {
            if !key.path.contains('<') {
                rows.push(self.row(key.path, key));
                continue;
            }
            let names = self.values.keys().chain(self.withheld.iter().map(|held| &held.key));
            let mut names: Vec<&String> =
                names.filter(|name| keys::known(name).is_some_and(|known| known.path == key.path)).collect();
            names.sort();
            names.dedup();
            rows.extend(names.into_iter().map(|name| self.row(name, key)));
        }
        for held in self.withheld.iter().filter(|held| keys::known(&held.key).is_none()) {
            let note = not_in_force(held);
            rows.push(Row { key: held.key.clone(), value: String::new(), source: Source::BuiltIn, note });
        }
        rows
    }

    fn row(&self, name: &str, key: &Key) -> Row {
        let mut notes: Vec<String> =
            self.withheld.iter().filter(|held| held.key == name).map(not_in_force).collect();
        let Some(set) = self.values.get(name) else {
            let (value, note) = match key.default {
                Ok(value) => (value, None),
                Err(why) => ("", Some(why.to_owned())),
            };
            notes.splice(0..0, note);
            let note = notes.join("; ");
            return Row { key: name.to_owned(), value: value.to_owned(), source: Source::BuiltIn, note };
        };
        if name == "test_command" && self.no_tests {
            notes.insert(0, "not run: --no-tests".to_owned());
        }
        notes.extend(set.beaten.iter().rev().map(|beaten| format!("also set at {beaten}")));
        Row {
            key: name.to_owned(),
            value: in_full(&set.value.to_string()),
            source: set.source.clone(),
            note: notes.join("; "),
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<Setting> {
        match self.values.get(key) {
            Some(set) => Some(set.value.clone()),
            None => keys::known(key).and_then(Key::built_in),
        }
    }

    pub(super) fn word(&self, key: &str) -> Option<&'static str> {
        match self.get(key) {
            Some(Setting::Word(word)) => Some(word),
            _ => None,
        }
    }

    fn text(&self, key: &str) -> Option<String> {
        match self.get(key) {
            Some(Setting::Text(text)) => Some(text),
            _ => None,
        }
    }

    pub(super) fn switch(&self, key: &str) -> bool {
        self.get(key) == Some(Setting::Switch(true))
    }

    pub(super) fn whole(&self, key: &str) -> u64 {
        match self.get(key) {
            Some(Setting::Whole(n)) => n,
            _ => unreachable!("`{key}` is a number with a default in the table of keys"),
        }
    }

    fn severity(&self, key: &str) -> Severity {
        match self.word(key) {
            Some("INFO") => Severity::Info,
            Some("WARNING") => Severity::Warning,
            Some(_) | None => Severity::Critical,
        }
    }
}

/// A key a file sets, and the line.
struct Line {
    key: String,
    value: Setting,
    path: String,
    line: u32,
}

type Lines = Result<Vec<Line>, Vec<Fault>>;

/// One key as one source sets it.
struct Said {
    key: String,
    value: Setting,
    source: Source,
}

fn keep(read: Lines, found: &mut Vec<Said>, faults: &mut Vec<Fault>, source: impl Fn(String, u32) -> Source) {
    match read {
        Ok(lines) => found.extend(lines.into_iter().map(|Line { key, value, path, line }| Said {
            key,
            value,
            source: source(path, line),
        })),
        Err(more) => faults.extend(more),
    }
}

fn config(path: &str, bytes: &[u8], archetypes: &[String]) -> Lines {
    let entries = yaml::read(path, bytes).map_err(|fault| vec![fault])?;
    let mut walk = Walk { path, archetypes, lines: Vec::new(), faults: Vec::new(), more: 0 };
    for entry in &entries {
        match entry.key.as_str() {
            "hooks" => walk.unknown(&[&entry.key], entry),
            _ => walk.entry(&[], entry),
        }
    }
    walk.done()
}

/// A hook is one decision: whoever names the command also decides, if only by silence, what its failure means.
fn hooks(path: &str, bytes: &[u8]) -> Lines {
    let entries = yaml::read(path, bytes).map_err(|fault| vec![fault])?;
    let mut walk = Walk { path, archetypes: &[], lines: Vec::new(), faults: Vec::new(), more: 0 };
    for entry in &entries {
        let before = walk.faults.len();
        walk.entry(&["hooks"], entry);
        let Some(point) = HookPoint::ALL.into_iter().find(|point| point.name() == entry.key) else {
            continue;
        };
        let names = |part: &str| format!("hooks.{}.{part}", point.name());
        let has = |part: &str| walk.lines.iter().any(|line| line.key == names(part));
        if walk.faults.len() > before {
            continue;
        }
        if !has("command") {
            let text =
                format!("the hook `{}` has no command; known in it: command, fail_action", point.name());
            walk.fault(entry, text);
        } else if !has("fail_action") {
            let word = match fail_action(point) {
                FailAction::Warn => "warn",
                FailAction::Abort => "abort",
            };
            walk.lines.push(Line {
                key: names("fail_action"),
                value: Setting::Word(word),
                path: path.to_owned(),
                line: entry.line,
            });
        }
    }
    walk.done()
}

/// SCHEMAS: a failing hook stops a run only where something is about to land.
fn fail_action(point: HookPoint) -> FailAction {
    match point {
        HookPoint::PreMerge => FailAction::Abort,
        HookPoint::RunStart | HookPoint::PostMerge | HookPoint::RunComplete => FailAction::Warn,
    }
}

/// The way through one file.
struct Walk<'a> {
    path: &'a str,
    archetypes: &'a [String],
    lines: Vec<Line>,
    faults: Vec<Fault>,
    /// Faults that were only counted.
    more: usize,
}

impl Walk<'_> {
    fn entry(&mut self, section: &[&str], entry: &Entry) {
        let path: Vec<&str> = section.iter().copied().chain([entry.key.as_str()]).collect();
        if entry.key.contains('.') {
            return self.unknown(&path, entry);
        }
        match (keys::find(&path, self.archetypes), &entry.value.value) {
            (Found::Key(key), _) => self.value(key, &path, entry),
            (Found::Section, Value::Map(entries)) => {
                for entry in entries {
                    self.entry(&path, entry);
                }
            }
            // A section whose lines are all commented out.
            (Found::Section, Value::Nothing) => {}
            (Found::Section, Value::Scalar(_) | Value::List(_)) => {
                let written = keys::written(&entry.value);
                let below = keys::siblings(&path, self.archetypes).join(", ");
                let text =
                    format!("`{}` is {written}; allowed: the keys {below}, one level below", path.join("."));
                self.fault(entry, text);
            }
            (Found::Later, _) => {
                let here = keys::siblings(section, self.archetypes).join(", ");
                let text =
                    format!("`{}` is not supported by this version; known here: {here}", path.join("."));
                self.fault(entry, text);
            }
            (Found::Unknown, _) => self.unknown(&path, entry),
        }
    }

    fn value(&mut self, key: &Key, path: &[&str], entry: &Entry) {
        match key.kind.read(&entry.value) {
            Some(value) => {
                let (key, path) = (path.join("."), self.path.to_owned());
                self.lines.push(Line { key, value, path, line: entry.line });
            }
            None => {
                let (name, written) = (path.join("."), keys::written(&entry.value));
                self.fault(entry, format!("`{name}` is {written}; allowed: {}", key.kind.allowed()));
            }
        }
    }

    fn unknown(&mut self, path: &[&str], entry: &Entry) {
        if self.faults.len() >= ENOUGH_FAULTS {
            self.more += 1;
            return;
        }
        let advice = keys::advice(path, self.archetypes);
        self.fault(entry, format!("unknown key `{}`{advice}", shown(&path.join("."))));
    }

    fn fault(&mut self, entry: &Entry, text: String) {
        if self.faults.len() >= ENOUGH_FAULTS {
            self.more += 1;
            return;
        }
        let (line, column) = (entry.line, entry.column);
        self.faults.push(Fault { path: self.path.to_owned(), line, column, text });
    }

    fn done(mut self) -> Lines {
        if self.more > 0 {
            self.faults.push(whole_file(self.path, &format!("and {} more like these", self.more)));
        }
        if self.faults.is_empty() { Ok(self.lines) } else { Err(self.faults) }
    }
}

fn whole_file(path: &str, text: &str) -> Fault {
    Fault { path: in_full(path), line: 0, column: 0, text: text.to_owned() }
}

/// What no repository may say, not even an approved one.
fn the_users_own(found: &[Said]) -> Vec<Fault> {
    let is_own = |said: &&Said| {
        keys::known(&said.key)
            .is_some_and(|key| key.class == Class::Own || key.kind.names_a_host(&said.value))
    };
    let own = found.iter().filter(is_own);
    let fault = |said: &Said| {
        let allowed = match keys::known(&said.key).map(|key| key.class) {
            Some(Class::Own) => "nothing, a repository can't set it",
            Some(_) | None => {
                "an agent without `@`, a repository can't choose the host your key goes to (R5)"
            }
        };
        let text = format!(
            "`{}` is `{}`; allowed: {allowed}. Set it in your own configuration",
            said.key, said.value
        );
        let (path, line) = match &said.source {
            Source::Repo { path, line } | Source::User { path, line } | Source::File { path, line } => {
                (path.clone(), *line)
            }
            Source::BuiltIn | Source::Flag(_) => (String::new(), 0),
        };
        Fault { path, line, column: 0, text }
    };
    own.map(fault).collect()
}

/// Splits what the repository says into what is used and what waits for approval. Guarding is by key and value,
/// so an unapproved repository can make a run more careful but never less.
fn guard(found: Vec<Said>, approved: bool) -> (Vec<Said>, Vec<Withheld>) {
    let (used, held): (Vec<Said>, Vec<Said>) = found.into_iter().partition(|said| {
        approved || keys::known(&said.key).is_some_and(|key| !key.needs_approval(&said.value))
    });
    let withheld = held.into_iter().map(|Said { key, value, source }| {
        let (path, line) = match source {
            Source::Repo { path, line } | Source::User { path, line } | Source::File { path, line } => {
                (path, line)
            }
            Source::BuiltIn | Source::Flag(_) => (String::new(), 0),
        };
        Withheld { key, value: in_full(&value.to_string()), path, line, overruled: None }
    });
    (used, withheld.collect())
}

fn flags(flags: &Flags, archetypes: &[String], found: &mut Vec<Said>, faults: &mut Vec<Fault>) {
    let mut typed: Vec<(&'static str, String, String)> = Vec::new();
    for (flag, key, value) in [
        ("--workflow", "workflow", &flags.workflow),
        ("--strategy", "strategy", &flags.strategy),
        ("--domain", "domain", &flags.domain),
        ("--team", "team", &flags.team),
        ("--lens", "lenses", &flags.lens),
        ("--agent", "agents.default", &flags.agent),
        ("--test-command", "test_command", &flags.test_command),
        ("--budget", "costs.budget_usd", &flags.budget),
        (PROVIDER, "models.provider", &flags.provider),
    ] {
        typed.extend(value.iter().map(|value| (flag, key.to_owned(), value.clone())));
    }
    typed.extend(
        flags.auto_merge.iter().map(|on| ("--auto-merge", "git.auto_merge".to_owned(), on.to_string())),
    );
    if let Some(text) = &flags.shadows {
        let on = match text.as_str() {
            "on" => Some("true"),
            "off" => Some("false"),
            _ => None,
        };
        match on {
            Some(on) => typed.push((SHADOWS, "shadows.enabled".to_owned(), on.to_owned())),
            None => {
                let text = format!("`{}` is not allowed; allowed: on, off", shown(text));
                faults.push(whole_file(SHADOWS, &text));
            }
        }
    }
    for (name, spec) in &flags.agent_for {
        match keys::find(&["agents", name], archetypes) {
            Found::Key(key) if key.path == "agents.<archetype>" => {
                typed.push(("--agent-for", format!("agents.{name}"), spec.clone()));
            }
            Found::Key(_) | Found::Section | Found::Later | Found::Unknown => {
                let mut known = keys::siblings(&["agents"], archetypes);
                known.retain(|name| !matches!(name.as_str(), "default" | "env" | "structured" | "fallback"));
                let text = format!("unknown archetype `{}`; known: {}", shown(name), known.join(", "));
                faults.push(whole_file("--agent-for", &text));
            }
        }
    }
    for (flag, key, text) in typed {
        let Some(row) = keys::known(&key) else { continue };
        match row.kind.read_text(&text) {
            Some(value) => found.push(Said { key, value, source: Source::Flag(flag) }),
            None => {
                let text =
                    format!("`{}` is not allowed for `{key}`; allowed: {}", shown(&text), row.kind.allowed());
                faults.push(whole_file(flag, &text));
            }
        }
    }
    if flags.no_tests == Some(true) && flags.test_command.is_some() {
        faults.push(whole_file("--no-tests", "can't be given together with --test-command"));
    }
}

/// `found` comes in order of strength, so the last word on a key stands.
fn lay(found: Vec<Said>) -> BTreeMap<String, Set> {
    let mut values: BTreeMap<String, Set> = BTreeMap::new();
    for Said { key, value, source } in found {
        let mut beaten = Vec::new();
        if let Some(before) = values.remove(&key) {
            debug_assert!(before.source <= source, "sources are laid from weak to strong");
            beaten = before.beaten;
            beaten.push(before.source);
        }
        values.insert(key, Set { value, source, beaten });
    }
    values
}

/// Whoever types `--agent` means everybody, also those whose agent a file names; only `--agent-for` says otherwise.
fn one_agent(values: &mut BTreeMap<String, Set>) {
    let mut beaten = Vec::new();
    values.retain(|key, set| {
        let keep = match key.strip_prefix("agents.") {
            None | Some("default" | "env" | "structured" | "fallback") => true,
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

/// Names that nothing is known by, also where a stronger source says something else.
fn strangers(found: &[Said], shelf: &Shelf) -> Vec<Fault> {
    const ASK: [(&str, Kind); 3] =
        [("team", Kind::Team), ("workflow", Kind::Workflow), ("lenses", Kind::Lens)];
    let mut faults = Vec::new();
    for said in found {
        let Some((key, kind)) = ASK.into_iter().find(|(key, _)| *key == said.key) else { continue };
        let asked = match &said.value {
            Setting::Text(name) => std::slice::from_ref(name),
            Setting::Names(names) => names,
            Setting::Switch(_)
            | Setting::Whole(_)
            | Setting::Wholes(_)
            | Setting::Millionths(_)
            | Setting::Money(_)
            | Setting::Word(_) => &[],
        };
        let mut known = shelf.names(kind);
        if kind == Kind::Workflow {
            known.splice(0..0, Workflow::ALL.iter().map(|workflow| workflow.name().to_owned()));
        }
        for name in asked.iter().filter(|name| !known.contains(name)) {
            let none = if known.is_empty() { "nothing, for there is no such file" } else { "" };
            let text = format!("`{key}` is `{}`; allowed: {none}{}", shown(name), known.join(", "));
            faults.push(said.source.fault(text));
        }
    }
    faults
}

/// A team and a workflow file both say who sits.
fn two_teams(values: &BTreeMap<String, Set>) -> Option<Fault> {
    let (team, workflow) = (values.get("team")?, values.get("workflow")?);
    let Setting::Text(name) = &workflow.value else { return None };
    let text = format!(
        "`team` is `{}` and `workflow` is `{name}`; allowed: one of them, for both say who sits",
        team.value
    );
    Some(team.source.fault(text))
}

/// Values that are each allowed but make no sense together.
fn disagreements(values: &BTreeMap<String, Set>) -> Option<Fault> {
    const ABOVE: &str = "convergence.converging_above_percent";
    const BELOW: &str = "convergence.diverging_below_percent";
    let whole = |key: &str| {
        let built_in = || keys::known(key).and_then(Key::built_in);
        match values.get(key).map(|set| set.value.clone()).or_else(built_in) {
            Some(Setting::Whole(n)) => n,
            _ => 0,
        }
    };
    let (above, below) = (whole(ABOVE), whole(BELOW));
    if below <= above {
        return None;
    }
    let text = format!("`{BELOW}` is `{below}`; allowed: at most `{ABOVE}`, which is `{above}`");
    Some(values.get(BELOW).or_else(|| values.get(ABOVE))?.source.fault(text))
}

fn not_in_force(held: &Withheld) -> String {
    format!("`{}` from {}:{} is not in force: not approved", held.value, held.path, held.line)
}

/// Bounds in the table of keys keep every count far below the limit of `u32`.
pub(super) fn narrow(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

fn hash(inputs: &Inputs<'_>) -> String {
    const DIGITS: usize = 32;
    let mut hasher = blake3::Hasher::new();
    let mut add = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    add(b"archeflow settings 1");
    let layers = [
        ("repository", inputs.repository),
        ("user", inputs.user),
        ("file", inputs.file.map_or(&[][..], std::slice::from_ref)),
    ];
    for (layer, files) in layers {
        let mut files: Vec<&Part> = files.iter().collect();
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
