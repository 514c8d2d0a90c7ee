//! Settings that no run is judged by: what to use, where to ask, how the program behaves around a run.

use std::collections::BTreeMap;

use super::{MOST_LENSES, SettingWord, settings};
use crate::model::{Domain, Tier};

settings! {
    pub struct ProgramSettings at "" in (program) {
        version: Option<String> = None, "version", Release, Inert, "Release that wrote the file.", unset "none";
        workflow: Option<String> = None, "workflow", Workflow, Inert,
            "Workflow: how many archetypes review a change, and the most cycles.", unset "chosen from the task";
        team: Option<String> = None, "team", Name, Inert, "Team file that selects the agents.", unset "that of the workflow";
        lenses: Vec<String> = Vec::new(), "lenses", Names(MOST_LENSES), Inert,
            "Lenses for the archetypes, applied left to right: built-in names or files.";
        strategy: StrategyChoice = StrategyChoice::Auto, "strategy", Words(&["pdca", "pipeline", "auto"]), Inert,
            "Cycles until approved (`pdca`), one pass (`pipeline`), or chosen from the task (`auto`).";
        domain: Option<Domain> = None, "domain", Words(&["code", "writing", "research"]), Inert,
            "Domain of the project; sets terms and review criteria.", unset "detected from the project's files";
        bundle: Option<String> = None, "bundle", Name, Inert, "Bundle that the file was written from.", unset "none";
        bundle_version: Option<String> = None, "bundle_version", Release, Inert, "Release of that bundle.", unset "none";
        agents: AgentAccess = AgentAccess::default();
        models: ModelAccess = ModelAccess::default();
        git: GitAccess = GitAccess::default();
        sandbox: SandboxAccess = SandboxAccess::default();
        keep: KeepSettings = KeepSettings::default();
        notify: NotifySettings = NotifySettings::default();
        telemetry: TelemetrySettings = TelemetrySettings::default();
        mcp: McpSettings = McpSettings::default();
        client: ClientSettings = ClientSettings::default();
        forge: ForgeSettings = ForgeSettings::default();
    }
}

/// Who decides the strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StrategyChoice {
    Pdca,
    Pipeline,
    Auto,
}

impl SettingWord for StrategyChoice {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("pdca", StrategyChoice::Pdca),
        ("pipeline", StrategyChoice::Pipeline),
        ("auto", StrategyChoice::Auto),
    ];
}

settings! {
    pub struct AgentAccess at "agents." in (program.agents) {
        env: Vec<String> = Vec::new(), "env", Variables, Guarded, "Environment variables passed on to agents.";
    }
}

settings! {
    /// How models without a client of their own are reached.
    pub struct ModelAccess at "models." in (program.models) {
        provider: Option<String> = None, "provider", Words(&["ollama"]), Guarded,
            "Provider for all archetypes when no agent is named.", unset "none";
        mapping: BTreeMap<Tier, String> = BTreeMap::new();
        ollama_url: Option<String> = None, "ollama.base_url", Url, Own,
            "Address of the Ollama server. `ARCHEFLOW_OLLAMA_BASE_URL` overrides it.", unset "OLLAMA_HOST, else this machine";
        ollama_remote: bool = false, "ollama.allow_remote", Switch, Own, "Allow an Ollama server on another machine, over https.";
        ollama_context: u64 = 32_768, "ollama.context", Whole(1_024, 10_000_000), Guarded, "Context window of Ollama models, in tokens.";
        keys: Vec<String> = Vec::new(), "keys", HostKeys(32), Own,
            "Environment variable that holds the key for a host: `host=VARIABLE`.";
        max_turns: u32 = 60, "max_turns", Whole(1, 1_000), GuardedAbove,
            "Most requests in one attempt of `anthropic`, `openai` or `ollama`.";
        max_tokens: Option<u64> = None, "max_tokens", Whole(16, 1_000_000), Guarded,
            "Most tokens in one answer of such a model.", unset "16000 for `anthropic`, else up to the server";
        retry_waits_ms: Vec<u64> = vec![1_000, 4_000], "retry_waits_seconds", Waits(5, 0, 60), GuardedAbove,
            "Waits before such a request is retried within an attempt.";
    }
}

settings! {
    pub struct GitAccess at "git." in (program.git) {
        auto_merge: bool = false, "auto_merge", Switch, Guarded, "Land an approved and tested change without asking.";
        auto_push: bool = false, "auto_push", Off("pushing is not done by this version"), Guarded, "Push landed changes.";
        branch_prefix: String = "archeflow/".to_owned(), "branch_prefix", Prefix, Guarded, "Prefix of run branches.";
        filters: FilterChoice = FilterChoice::Refuse, "filters", Words(&["refuse", "pointers"]), Guarded,
            "Files with a git filter, such as Git LFS: start no run (`refuse`), or let agents and tests see them as committed (`pointers`).";
    }
}

/// What to do about files that git converts with a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FilterChoice {
    Refuse,
    Pointers,
}

impl SettingWord for FilterChoice {
    const WORDS: &'static [(&'static str, Self)] =
        &[("refuse", FilterChoice::Refuse), ("pointers", FilterChoice::Pointers)];
}

/// Whom commands in the sandbox can talk to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxReach {
    /// Nobody: a loopback of their own.
    Own,
    /// Whomever the user can.
    Full,
}

impl SettingWord for SandboxReach {
    const WORDS: &'static [(&'static str, Self)] =
        &[("own", SandboxReach::Own), ("full", SandboxReach::Full)];
}

/// Who holds the key of an agent's provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyHolder {
    /// The agent's client, and so everything that runs with it.
    Agent,
    /// Our proxy outside of the sandbox.
    Proxy,
}

impl SettingWord for KeyHolder {
    const WORDS: &'static [(&'static str, Self)] =
        &[("agent", KeyHolder::Agent), ("proxy", KeyHolder::Proxy)];
}

settings! {
    /// What commands in the sandbox may reach and use up.
    pub struct SandboxAccess at "sandbox." in (program.sandbox) {
        network: SandboxReach = SandboxReach::Own, "network", Words(&["own", "full"]), Own,
            "Network of sandboxed commands and agents: a loopback of their own and, for agents, the hosts of their model; or all of yours (`full`).";
        hosts: Vec<String> = Vec::new(), "hosts", Phrases(64), Own,
            "Hosts that agents may reach besides those of their model: `name`, `*.suffix` or an address, with `:port` unless it is 443 or 80.";
        setup_hosts: Vec<String> = Vec::new(), "setup_hosts", Phrases(64), Own,
            "Hosts that `setup_command` may reach besides public registries of packages, written as in `sandbox.hosts`.";
        keys: KeyHolder = KeyHolder::Agent, "keys", Words(&["agent", "proxy"]), Own,
            "Where an agent's key is: in its own environment, or in a proxy outside of its sandbox that adds it to requests (`proxy`). Agents that can't work so are not started.";
        read: Vec<String> = Vec::new(), "read", Phrases(64), Own,
            "Files and folders that sandboxed commands and agents may also read: absolute, or below `~/`.";
        write: Vec<String> = Vec::new(), "write", Phrases(64), Own,
            "Files and folders that sandboxed agents may also change: absolute, or below `~/`.";
        memory_mb: u64 = 8_192, "memory", Whole(64, 4_194_304), GuardedAbove,
            "Most memory of a sandboxed command, all its processes together, in MB.";
        processes: u64 = 4_096, "processes", Whole(8, 1_000_000), GuardedAbove,
            "Most processes of a sandboxed command at one time.";
        file_size_mb: u64 = 8_192, "file_size", Whole(1, 4_194_304), GuardedAbove,
            "Largest file that a sandboxed command may write, in MB.";
        disk_mb: u64 = 32_768, "disk", Whole(16, 16_777_216), GuardedAbove,
            "Most disk space of a sandboxed command's folders, in MB.";
    }
}

settings! {
    /// How long files are kept that nothing needs any more (U-14).
    pub struct KeepSettings at "keep." in (program.keep) {
        automatic: bool = true, "automatic", Switch, Own,
            "Remove what is beyond these bounds when a run ends; `archeflow gc` does it in any case.";
        days: u64 = 90, "days", Whole(0, 36_500), Own,
            "Days that the journal, the artifacts and the refs of a merged, discarded or reviewed run are kept.";
        runs: u64 = 50, "runs", Whole(1, 1_000_000), Own,
            "Newest runs of a repository that are kept, however old they are.";
        copy_days: u64 = 7, "copy_days", Whole(0, 36_500), Own,
            "Days that working copies of a run that waits for you are kept; those of merged and discarded runs are removed at once.";
        cache_days: u64 = 30, "cache_days", Whole(0, 36_500), Own,
            "Days that installed dependencies (`setup_command`) and build results (`cache`) are kept after their last use.";
        cache_megabytes: u64 = 10_240, "cache_mb", Whole(0, 16_777_216), Own,
            "Most disk space of installed dependencies, of all repositories together, and as much of build results, in MB.";
    }
}

/// How messages are shown by a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TerminalMessages {
    Off,
    /// The escape sequence OSC 9.
    Osc9,
    /// The escape sequence OSC 777.
    Osc777,
}

impl SettingWord for TerminalMessages {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("off", TerminalMessages::Off),
        ("osc9", TerminalMessages::Osc9),
        ("osc777", TerminalMessages::Osc777),
    ];
}

/// What messages can be about, in the words of `notify.on`.
pub const NOTIFY_ON: &[&str] = &["decision", "break", "budget", "sprint_done"];

settings! {
    /// How a person is notified that a run waits. Nothing is sent unless a channel is set.
    pub struct NotifySettings at "notify." in (program.notify) {
        on: Vec<String> = NOTIFY_ON.iter().map(|&word| word.to_owned()).collect(), "on", WordList(NOTIFY_ON), Own,
            "What messages are sent about.";
        desktop: bool = false, "desktop", Switch, Own, "Show messages on the desktop, with `notify-send` or `osascript`.";
        terminal: TerminalMessages = TerminalMessages::Off, "terminal", Words(&["off", "osc9", "osc777"]), Own,
            "Escape sequence that makes your terminal show a message, if standard error is a terminal.";
        webhook: Option<String> = None, "webhook", SecretUrl, Own,
            "Address that messages are posted to, as JSON. Only its host is ever printed.", unset "none";
        webhook_secret: Option<String> = None, "webhook_secret", SecretName, Own,
            "Environment variable or file with the key that signs what is posted to `notify.webhook`.", unset "none, unsigned";
        ntfy: Option<String> = None, "ntfy", SecretUrl, Own,
            "Topic of an ntfy server that messages are posted to. Only its host is ever printed.", unset "none";
        command: Option<String> = None, "command", Command, Own,
            "Command that gets each message on standard input, as JSON.", unset "none";
        link: Option<String> = None, "link", SecretUrl, Own,
            "Address that messages lead to, e.g. where you reach `archeflow ui`. Only its host is ever printed.", unset "none";
    }
}

settings! {
    /// Runs as telemetry of OpenTelemetry. Nothing is sent unless an address is set or typed.
    pub struct TelemetrySettings at "telemetry." in (program.telemetry) {
        otlp: Option<String> = None, "otlp", SecretUrl, Own,
            "Address of a collector that runs are sent to while they are driven, as OTLP over HTTP, e.g. `http://127.0.0.1:4318`. Only its host is ever printed.", unset "none";
        content: bool = false, "content", Switch, Own,
            "Also send task, paths, commands, and words of agents and people.";
    }
}

settings! {
    /// What is allowed in the clients of coding agents, which `archeflow mcp` serves.
    pub struct McpSettings at "mcp." in (program.mcp) {
        decide: bool = false, "decide", Switch, Own,
            "Let a change land by an answer you give in a client of `archeflow mcp`. A client may be set up to answer by itself.";
    }
}

settings! {
    /// What the plugins of coding agents do by themselves.
    pub struct ClientSettings at "client." in (program.client) {
        review_on_stop: bool = false, "review_on_stop", Switch, Own,
            "Review what is not committed when Claude Code ends a turn, and let it go on with the findings. Each time costs a review.";
    }
}

/// The software of a forge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ForgeChoice {
    Github,
    Gitlab,
    Gitea,
    Forgejo,
}

impl SettingWord for ForgeChoice {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("github", ForgeChoice::Github),
        ("gitlab", ForgeChoice::Gitlab),
        ("gitea", ForgeChoice::Gitea),
        ("forgejo", ForgeChoice::Forgejo),
    ];
}

settings! {
    /// A forge that is not one of the well-known ones. A token is sent to its host, so no repository can set it.
    pub struct ForgeSettings at "forge." in (program.forge) {
        kind: Option<ForgeChoice> = None, "kind", Words(&["github", "gitlab", "gitea", "forgejo"]), Own,
            "Software of your own forge; github.com, gitlab.com, codeberg.org and gitea.com need no setting.", unset "none";
        url: Option<String> = None, "url", Url, Own,
            "Address of your own forge; it is used for remotes on its host only.", unset "none";
    }
}
