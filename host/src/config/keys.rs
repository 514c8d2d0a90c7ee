//! Every setting there is: one row each in [`KEYS`]. Reading, errors, defaults, `config show` and the table in the
//! manual all come from these rows.

use std::fmt;

use archeflow_core::model::{ARCHETYPES, HookPoint, Sign, Tier, Workflow, loop_team};

use crate::backends::{self, cli::Rest};
use crate::model_agent::place::ModelEndpoint;
use crate::nearest::closest;

use super::shown;
use super::yaml::{self, Node};

/// One setting.
#[derive(Debug)]
pub struct Key {
    /// Dotted, with `<archetype>`, `<workflow>`, `<sign>` or `<point>` where a name stands.
    pub path: &'static str,
    pub kind: Kind,
    pub class: Class,
    /// As it would be written in the file, or why there is none.
    pub default: Result<&'static str, &'static str>,
    pub meaning: &'static str,
}

/// What a value of this key is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `true` or `false`, nothing else.
    Switch,
    /// `false` and nothing else, for the reason given.
    Off(&'static str),
    /// A whole number within these bounds, both included.
    Whole(u64, u64),
    /// The same, or `off`.
    Limit(u64, u64),
    /// A list of at most so many whole numbers, each within the bounds.
    Wholes(usize, u64, u64),
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
    /// Which program plays an archetype.
    Agent,
    /// A list of at most so many of them, their order kept.
    Agents(usize),
    /// A list of names of environment variables.
    Variables,
    /// The name of a model.
    Model,
    /// Where something is asked.
    Url,
    /// A list of at most so many hosts with the variables that hold their keys.
    HostKeys(usize),
    /// A list of at most so many projects with percents.
    Shares(usize),
    /// A built-in workflow, or the name of a file.
    Workflow,
    /// The name of a file.
    Name,
    /// A list of at most so many names, their order kept.
    Names(usize),
    /// A list of at most so many texts, each on one line.
    Phrases(usize),
}

/// Whether a repository may set it without having been approved (R1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
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

/// A value that has been read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setting {
    Switch(bool),
    Whole(u64),
    Wholes(Vec<u64>),
    Millionths(u32),
    /// In millionths of a dollar.
    Money(u64),
    Word(&'static str),
    Text(String),
    Names(Vec<String>),
}

const SEVERITIES: Kind = Kind::Words(&["INFO", "WARNING", "CRITICAL"]);
const PERCENT: Kind = Kind::Whole(0, 100);
const RATE: Kind = Kind::Dollars(10_000);
const AMOUNT: Kind = Kind::Dollars(1_000_000);

/// In the order of the manual.
pub static KEYS: &[Key] = &[
    key("version", Kind::Release, Class::Inert, Err("none"), "Release that wrote the file."),
    key(
        "workflow",
        Kind::Workflow,
        Class::Inert,
        Err("chosen from the task"),
        "How many archetypes look at a change, and for how many cycles.",
    ),
    key("team", Kind::Name, Class::Inert, Err("that of the workflow"), "Who sits: the name of a team file."),
    key(
        "lenses",
        Kind::Names(MOST_LENSES),
        Class::Inert,
        Ok("[]"),
        "Laid over the archetypes, left to right: built-in ones or files.",
    ),
    key(
        "strategy",
        Kind::Words(&["pdca", "pipeline", "auto"]),
        Class::Inert,
        Ok("auto"),
        "Cycles until approved, one pass, or chosen from the task.",
    ),
    key(
        "domain",
        Kind::Words(&["code", "writing", "research"]),
        Class::Inert,
        Err("told by the project's files"),
        "What the project is made of; changes terms and review criteria.",
    ),
    key(
        "test_command",
        Kind::Command,
        Class::Guarded,
        Err("none"),
        "Decides whether a tree is good. Run before landing.",
    ),
    key(
        "confidence_floor",
        Kind::Share,
        Class::GuardedBelow,
        Ok("0.5"),
        "A score of the proposal below this opens the confidence gate.",
    ),
    key("max_cycles.fast", Kind::Whole(1, 10), Class::GuardedAbove, Ok("1"), "Cycles of the workflow fast."),
    key(
        "max_cycles.standard",
        Kind::Whole(1, 10),
        Class::GuardedAbove,
        Ok("2"),
        "Cycles of the workflow standard.",
    ),
    key(
        "max_cycles.thorough",
        Kind::Whole(1, 10),
        Class::GuardedAbove,
        Ok("3"),
        "Cycles of the workflow thorough.",
    ),
    key(
        "agents.default",
        Kind::Agent,
        Class::Guarded,
        Err("none; name one with --agent"),
        "Program that plays every archetype without one of its own.",
    ),
    key(
        "agents.env",
        Kind::Variables,
        Class::Guarded,
        Ok("[]"),
        "Environment variables of yours that agents get to see.",
    ),
    key(
        "agents.fallback",
        Kind::Agents(8),
        Class::Guarded,
        Ok("[]"),
        "Programs that take over, in this order, where an account can't serve.",
    ),
    key(
        "agents.structured",
        Kind::Switch,
        Class::Inert,
        Ok("true"),
        "Clients that can take a schema answer as Creator and reviewers in a form instead of Markdown.",
    ),
    key(
        "agents.<archetype>",
        Kind::Agent,
        Class::Guarded,
        Err("as `agents.default`"),
        "Program that plays this archetype.",
    ),
    key("models.default", Kind::Tier, Class::Inert, Err("by the archetype"), "Tier of every archetype."),
    key(
        "models.archetypes.<archetype>",
        Kind::Tier,
        Class::Inert,
        Err("by the archetype"),
        "Tier of this archetype.",
    ),
    key(
        "models.provider",
        Kind::Words(&["ollama"]),
        Class::Guarded,
        Err("none"),
        "Plays every archetype where no agent is named.",
    ),
    key(
        "models.mapping.<tier>",
        Kind::Model,
        Class::Guarded,
        Err("`qwen3:8b` for haiku, else `qwen3:14b`"),
        "Model of Ollama's that stands for this tier.",
    ),
    key(
        "models.ollama.base_url",
        Kind::Url,
        Class::Own,
        Err("OLLAMA_HOST, else this machine"),
        "Where Ollama is asked. ARCHEFLOW_OLLAMA_BASE_URL says otherwise.",
    ),
    key(
        "models.ollama.allow_remote",
        Kind::Switch,
        Class::Own,
        Ok("false"),
        "Ollama may be asked on another machine, by https.",
    ),
    key(
        "models.ollama.context",
        Kind::Whole(1_024, 10_000_000),
        Class::Guarded,
        Ok("32768"),
        "Tokens a model of Ollama's takes in at once.",
    ),
    key(
        "models.keys",
        Kind::HostKeys(32),
        Class::Own,
        Ok("[]"),
        "Which environment variable holds the key for a host that is no provider's own: `host=VARIABLE`.",
    ),
    key(
        "models.max_turns",
        Kind::Whole(1, 1_000),
        Class::GuardedAbove,
        Ok("60"),
        "Requests one attempt of `anthropic`, `openai` or `ollama` may make.",
    ),
    key(
        "models.max_tokens",
        Kind::Whole(16, 1_000_000),
        Class::Guarded,
        Err("16000 for `anthropic`, else up to the server"),
        "Tokens one answer of such a model may have.",
    ),
    key(
        "models.retry_waits_seconds",
        Kind::Wholes(5, 0, 60),
        Class::GuardedAbove,
        Ok("[1, 4]"),
        "Waits before such a request is tried again within an attempt.",
    ),
    key(
        "models.prices.<tier>.input",
        RATE,
        Class::Guarded,
        Err("the built-in page of prices"),
        "Dollars for a million tokens taken in.",
    ),
    key(
        "models.prices.<tier>.output",
        RATE,
        Class::Guarded,
        Err("the built-in page of prices"),
        "Dollars for a million tokens given out.",
    ),
    key(
        "models.prices.<tier>.cache_read",
        RATE,
        Class::Guarded,
        Err("a tenth of `input`"),
        "Dollars for a million tokens read from a cache.",
    ),
    key(
        "models.prices.<tier>.cache_write",
        RATE,
        Class::Guarded,
        Err("the built-in page of prices, or `input`"),
        "Dollars for a million tokens put into a cache.",
    ),
    key(
        "models.prices.<tier>.context_window",
        Kind::Whole(1_000, 100_000_000),
        Class::Guarded,
        Err("the built-in page of prices"),
        "Tokens a prompt and its answer may have together.",
    ),
    key(
        "costs.budget_usd",
        AMOUNT,
        Class::Inert,
        Err("none"),
        "What a run may cost. Warned at 50 %, cheaper reviewers from 80 %, no other cycle from 95 %, stop at 100 %.",
    ),
    key(
        "costs.per_agent_usd",
        AMOUNT,
        Class::Guarded,
        Err("what the role usually costs"),
        "What is set aside for each attempt while its cost is not known.",
    ),
    key(
        "costs.daily_usd",
        AMOUNT,
        Class::Inert,
        Err("none"),
        "What all runs in this repository may cost in a day (UTC).",
    ),
    key(
        "costs.warn_at_percent",
        Kind::Whole(1, 100),
        Class::GuardedAbove,
        Ok("50"),
        "Percent of a budget from which you are warned.",
    ),
    key(
        "models.workflows.<workflow>.default",
        Kind::Tier,
        Class::Inert,
        Err("none"),
        "Tier of every archetype in this workflow.",
    ),
    key(
        "models.workflows.<workflow>.archetypes.<archetype>",
        Kind::Tier,
        Class::Inert,
        Err("none"),
        "Tier of this archetype in this workflow; beats the other three.",
    ),
    key(
        "git.auto_merge",
        Kind::Switch,
        Class::Guarded,
        Ok("false"),
        "Land an approved and tested change without asking.",
    ),
    key(
        "git.auto_push",
        Kind::Off("pushing is not done by this version"),
        Class::Guarded,
        Ok("false"),
        "Push what landed.",
    ),
    key(
        "git.branch_prefix",
        Kind::Prefix,
        Class::Guarded,
        Ok("archeflow/"),
        "How the branches of runs begin.",
    ),
    key(
        "git.merge_strategy",
        Kind::Words(&["no-ff", "squash", "rebase"]),
        Class::Inert,
        Ok("no-ff"),
        "How a change lands.",
    ),
    key(
        "git.on_post_merge_failure",
        Kind::Words(&["halt", "cycle_back"]),
        Class::Inert,
        Err("cycle_back when attended, else halt"),
        "What follows when tests fail after landing; the landing is undone in any case.",
    ),
    key(
        "git.post_merge_test",
        Kind::Switch,
        Class::Inert,
        Ok("false"),
        "Run the test command once more after landing.",
    ),
    key(
        "limits.silence_seconds",
        Kind::Whole(1, 7_200),
        Class::GuardedAbove,
        Ok("300"),
        "An agent that says nothing for so long is stopped.",
    ),
    key(
        "limits.maker_minutes",
        Kind::Whole(1, 1_440),
        Class::GuardedAbove,
        Ok("45"),
        "Longest attempt of the Maker.",
    ),
    key(
        "limits.other_minutes",
        Kind::Whole(1, 1_440),
        Class::GuardedAbove,
        Ok("15"),
        "Longest attempt of everybody else.",
    ),
    key(
        "limits.mini_explorer_minutes",
        Kind::Whole(1, 240),
        Class::GuardedAbove,
        Ok("5"),
        "Longest research of the confidence gate.",
    ),
    key(
        "limits.tests_seconds",
        Kind::Whole(1, 86_400),
        Class::GuardedAbove,
        Ok("300"),
        "Longest run of the test command.",
    ),
    key(
        "limits.hook_seconds",
        Kind::Whole(1, 3_600),
        Class::GuardedAbove,
        Ok("60"),
        "Longest run of a hook.",
    ),
    key(
        "review.part_bytes",
        Kind::Whole(8_192, 4_000_000),
        Class::Inert,
        Ok("240000"),
        "The most of a diff that reviewers are shown at once; four bytes are about a token.",
    ),
    key(
        "review.trial_seconds",
        Kind::Whole(1, 3_600),
        Class::GuardedAbove,
        Ok("120"),
        "Longest run of a reproduction in a review with `--verify`, on each tree.",
    ),
    key(
        "review.trials",
        Kind::Whole(0, 1_000),
        Class::GuardedAbove,
        Ok("20"),
        "Reproductions run for each part of a review with `--verify`; the others are not tried.",
    ),
    key(
        "retries.attempts",
        Kind::Whole(0, 10),
        Class::GuardedAbove,
        Ok("1"),
        "Further attempts of an archetype the run can't do without.",
    ),
    key(
        "retries.failures_in_a_row",
        Kind::Whole(1, 20),
        Class::GuardedAbove,
        Ok("3"),
        "So many failures in a row, over all archetypes, break the run.",
    ),
    key(
        "retries.busy_waits_seconds",
        Kind::Wholes(20, 0, 3_600),
        Class::GuardedAbove,
        Ok("[2, 10, 30, 60, 120]"),
        "Waits before a busy account is asked again; after the last the run stops.",
    ),
    key(
        "retries.jitter_percent",
        PERCENT,
        Class::Inert,
        Ok("20"),
        "Up to so much is added to each of these waits, so that runs do not come back all at once.",
    ),
    key(
        "retries.park_after_seconds",
        Kind::Whole(0, 86_400),
        Class::GuardedAbove,
        Ok("300"),
        "A longer wait for an account is not waited for: the run stops and says when it can go on.",
    ),
    key(
        "retries.moved_base",
        Kind::Whole(0, 20),
        Class::GuardedAbove,
        Ok("3"),
        "Times a change is rebuilt and tested anew because the target branch moved.",
    ),
    key(
        "retries.questions",
        Kind::Whole(1, 20),
        Class::GuardedAbove,
        Ok("3"),
        "Times the same question may be asked.",
    ),
    key(
        "convergence.line_window",
        Kind::Whole(0, 1_000),
        Class::Inert,
        Ok("10"),
        "Lines between two findings that may still be the same one.",
    ),
    key(
        "convergence.overlap_percent",
        Kind::Whole(1, 100),
        Class::Inert,
        Ok("50"),
        "Shared keywords from which two findings can be the same one.",
    ),
    key(
        "convergence.overlap",
        Kind::Words(&["min", "jaccard"]),
        Class::Inert,
        Ok("min"),
        "What the shared keywords are a share of: the shorter finding, or both together.",
    ),
    key(
        "convergence.converging_above_percent",
        PERCENT,
        Class::GuardedBelow,
        Ok("80"),
        "Above this a run is converging.",
    ),
    key(
        "convergence.diverging_below_percent",
        PERCENT,
        Class::GuardedBelow,
        Ok("50"),
        "Below this a run is diverging; in between it is stalling.",
    ),
    key(
        "convergence.diverging_cycles",
        Kind::Whole(1, 10),
        Class::GuardedAbove,
        Ok("2"),
        "Diverging so many cycles running stops the run.",
    ),
    key(
        "convergence.zero_policy",
        Kind::Words(&["immediate", "two_consecutive"]),
        Class::GuardedAbove,
        Ok("immediate"),
        "When a score of 0 stops the run; two_consecutive counts as above.",
    ),
    key(
        "convergence.stop_without_baseline",
        Kind::Switch,
        Class::Inert,
        Ok("false"),
        "Stop on a score of 0 although the cycle before was clean.",
    ),
    key(
        "convergence.oscillating",
        Kind::Whole(1, 20),
        Class::GuardedAbove,
        Ok("2"),
        "So many findings that come and go break the run.",
    ),
    key(
        "convergence.persistent_floor",
        SEVERITIES,
        Class::Inert,
        Ok("CRITICAL"),
        "A finding this grave that stays open for two cycles goes to a person.",
    ),
    key(
        "convergence.tracked",
        SEVERITIES,
        Class::GuardedAbove,
        Ok("WARNING"),
        "Findings this grave or graver are followed over the cycles.",
    ),
    key(
        "raised.severity.<sign>",
        SEVERITIES,
        Class::GuardedBelow,
        Ok("CRITICAL"),
        "How grave it is when the program itself notices this in a change.",
    ),
    key(
        "raised.binary_bytes",
        Kind::Whole(0, 1_000_000_000),
        Class::GuardedAbove,
        Ok("1000000"),
        "A binary file larger than this counts as `large_binary`.",
    ),
    key("bundle", Kind::Name, Class::Inert, Err("none"), "Bundle that the file was written from."),
    key("bundle_version", Kind::Release, Class::Inert, Err("none"), "Release of that bundle."),
    key(
        "boundaries.checkpoint_minutes",
        Kind::Whole(1, 1_440),
        Class::GuardedAbove,
        Ok("45"),
        "Work of agents between two checkpoints.",
    ),
    key(
        "boundaries.checkpoint_cycles",
        Kind::Whole(1, 100),
        Class::GuardedAbove,
        Ok("3"),
        "Finished cycles between two checkpoints.",
    ),
    key(
        "boundaries.rising_cycles",
        Kind::Whole(0, 10),
        Class::GuardedAbove,
        Ok("2"),
        "Cycles in a row with more findings each that stop the run; 0 never does.",
    ),
    key(
        "boundaries.findings_at_most",
        Kind::Whole(1, 1_000),
        Class::Inert,
        Ok("20"),
        "More open findings than this are told as themes.",
    ),
    key("boundaries.themes", Kind::Whole(1, 50), Class::Inert, Ok("5"), "How many themes."),
    key(
        "boundaries.lessons_at_most",
        Kind::Whole(1, 100),
        Class::Inert,
        Ok("15"),
        "More lessons than this in one brief are cut.",
    ),
    key("boundaries.lessons_kept", Kind::Whole(1, 100), Class::Inert, Ok("5"), "To so many."),
    key(
        "boundaries.prompt_percent",
        Kind::Whole(1, 100),
        Class::Inert,
        Ok("50"),
        "A brief above this share of the context window loses its examples.",
    ),
    key(
        "shadows.enabled",
        Kind::Switch,
        Class::Guarded,
        Ok("true"),
        "Look for shadows in answers. The environment variable `ARCHEFLOW_SHADOWS=off` is the same as `false`.",
    ),
    key(
        "shadows.strikes_in_cycle",
        Kind::Whole(1, 100),
        Class::GuardedAbove,
        Ok("3"),
        "Detections of one shadow in one cycle that break the run.",
    ),
    key(
        "shadows.distinct_in_cycle",
        Kind::Whole(1, 100),
        Class::GuardedAbove,
        Ok("3"),
        "Different shadows in one cycle that are told to the user.",
    ),
    key("shadows.distinct_breaks", Kind::Switch, Class::Inert, Ok("false"), "And break the run."),
    key(
        "shadows.consecutive_break",
        Kind::Switch,
        Class::Guarded,
        Ok("true"),
        "Three detections of one shadow with no clean check between break the run.",
    ),
    key(
        "shadows.rabbit_hole.words",
        Kind::Limit(1, 1_000_000),
        Class::GuardedAbove,
        Ok("2000"),
        "Explorer: more words than this without a recommendation.",
    ),
    key(
        "shadows.rabbit_hole.tangents",
        Kind::Limit(1, 1_000),
        Class::GuardedAbove,
        Ok("3"),
        "Explorer: more tangents than this.",
    ),
    key(
        "shadows.rabbit_hole.files",
        Kind::Limit(1, 10_000),
        Class::GuardedAbove,
        Ok("15"),
        "Explorer: more files than this and no pattern among them.",
    ),
    key(
        "shadows.rabbit_hole.synthesis",
        Kind::Limit(1, 1_000_000),
        Class::GuardedAbove,
        Ok("500"),
        "Explorer: more words than this and no conclusion in their last quarter.",
    ),
    key(
        "shadows.over_architect.abstractions",
        Kind::Limit(0, 1_000),
        Class::GuardedAbove,
        Ok("2"),
        "Creator: more new abstractions than this.",
    ),
    key(
        "shadows.over_architect.future_proof",
        Kind::Limit(1, 1_000),
        Class::GuardedAbove,
        Ok("1"),
        "Creator: so many reasons that lie in the future.",
    ),
    key(
        "shadows.over_architect.scope",
        Kind::Limit(0, 1_000),
        Class::GuardedAbove,
        Ok("50"),
        "Creator: more work beyond the task than this, in percent of the work for it.",
    ),
    key(
        "shadows.over_architect.packages",
        Kind::Limit(0, 1_000),
        Class::GuardedAbove,
        Ok("1"),
        "Creator: more new packages than this.",
    ),
    key(
        "shadows.rogue.no_tests",
        Kind::Limit(1, 1_000),
        Class::GuardedAbove,
        Ok("3"),
        "Maker: so many code files changed and no test file.",
    ),
    key(
        "shadows.rogue.outside_files",
        Kind::Limit(1, 1_000),
        Class::GuardedAbove,
        Ok("1"),
        "Maker: so many files that the proposal does not list.",
    ),
    key(
        "shadows.rogue.one_commit",
        Kind::Limit(1, 1_000),
        Class::GuardedAbove,
        Ok("3"),
        "Maker: so many code files and items of the proposal in one commit.",
    ),
    key(
        "shadows.rogue.no_test_run",
        Kind::Limit(1, 1_000),
        Class::GuardedAbove,
        Ok("3"),
        "Maker: so many code files changed and no sign of a test run.",
    ),
    key(
        "shadows.rogue.wiring_lines",
        Kind::Whole(0, 1_000),
        Class::GuardedAbove,
        Ok("10"),
        "Maker: a module list or manifest with at most so many changed lines need not be planned.",
    ),
    key(
        "shadows.paranoid.criticals",
        Kind::Limit(1, 1_000),
        Class::GuardedAbove,
        Ok("3"),
        "Guardian: so many CRITICALs, and more than `ratio` for every WARNING.",
    ),
    key(
        "shadows.paranoid.ratio",
        Kind::Whole(1, 100),
        Class::GuardedAbove,
        Ok("2"),
        "Guardian: see `criticals`.",
    ),
    key(
        "shadows.paranoid.no_approvals",
        Kind::Limit(1, 1_000),
        Class::GuardedAbove,
        Ok("3"),
        "Guardian: so many reviews in one run and no approval among them.",
    ),
    key(
        "shadows.paranoid.fixes",
        Kind::Limit(1, 100),
        Class::GuardedBelow,
        Ok("50"),
        "Guardian: fixes for less than so many percent of the findings above INFO.",
    ),
    key(
        "shadows.paranoid.fixes_floor",
        Kind::Whole(1, 1_000),
        Class::GuardedAbove,
        Ok("3"),
        "Guardian: of fewer findings than this no percentage is taken.",
    ),
    key(
        "shadows.paranoid.compromised",
        Kind::Limit(1, 1_000),
        Class::GuardedAbove,
        Ok("1"),
        "Guardian: so many findings that presuppose a compromised system.",
    ),
    key(
        "shadows.paralytic.challenges",
        Kind::Limit(0, 1_000),
        Class::GuardedAbove,
        Ok("7"),
        "Skeptic: more challenges than this, and too few alternatives.",
    ),
    key(
        "shadows.paralytic.alternatives",
        Kind::Limit(1, 100),
        Class::GuardedBelow,
        Ok("50"),
        "Skeptic: alternatives for less than so many percent of the challenges.",
    ),
    key(
        "shadows.paralytic.any",
        Kind::Switch,
        Class::Inert,
        Ok("false"),
        "Skeptic: too many challenges or too few alternatives is enough; otherwise it takes both.",
    ),
    key(
        "shadows.paralytic.alternatives_floor",
        Kind::Whole(1, 1_000),
        Class::GuardedAbove,
        Ok("3"),
        "Skeptic: of fewer challenges than this no percentage is taken, where one is enough.",
    ),
    key(
        "shadows.paralytic.reworded",
        Kind::Limit(1, 1_000),
        Class::GuardedAbove,
        Ok("2"),
        "Skeptic: one concern said again so often in other words.",
    ),
    key(
        "shadows.paralytic.out_of_scope",
        Kind::Limit(0, 1_000),
        Class::GuardedAbove,
        Ok("3"),
        "Skeptic: more findings than this outside of the proposal.",
    ),
    key(
        "shadows.false_alarm.untouched",
        Kind::Limit(1, 1_000),
        Class::GuardedAbove,
        Ok("1"),
        "Trickster: so many findings in files that were not changed.",
    ),
    key(
        "shadows.false_alarm.findings",
        Kind::Limit(0, 1_000),
        Class::GuardedAbove,
        Ok("10"),
        "Trickster: more findings than this for fewer than `few_files` changed files.",
    ),
    key(
        "shadows.false_alarm.few_files",
        Kind::Whole(1, 10_000),
        Class::GuardedBelow,
        Ok("5"),
        "Trickster: see `findings`.",
    ),
    key(
        "shadows.false_alarm.strict",
        Kind::Switch,
        Class::Inert,
        Ok("false"),
        "Trickster: `findings` holds however many files were changed.",
    ),
    key(
        "shadows.false_alarm.impossible",
        Kind::Limit(1, 1_000),
        Class::GuardedAbove,
        Ok("1"),
        "Trickster: so many scenarios that can't happen.",
    ),
    key(
        "shadows.false_alarm.without_steps",
        Kind::Limit(0, 1_000),
        Class::GuardedAbove,
        Ok("3"),
        "Trickster: more findings than this without steps to reproduce them.",
    ),
    key(
        "shadows.bureaucrat.words",
        Kind::Limit(1, 1_000),
        Class::GuardedAbove,
        Ok("2"),
        "Sage: more than so many words for every line of the diff.",
    ),
    key(
        "shadows.bureaucrat.words_floor",
        Kind::Whole(0, 100_000),
        Class::GuardedAbove,
        Ok("150"),
        "Sage: a review of at most so many words is short, whatever the diff.",
    ),
    key(
        "shadows.bureaucrat.outside",
        Kind::Limit(1, 1_000),
        Class::GuardedAbove,
        Ok("1"),
        "Sage: so many findings in files that were not changed.",
    ),
    key(
        "shadows.bureaucrat.considers",
        Kind::Limit(0, 1_000),
        Class::GuardedAbove,
        Ok("2"),
        "Sage: more \"consider\" without an action than this.",
    ),
    key(
        "shadows.bureaucrat.trivial_docs",
        Kind::Limit(1, 1_000),
        Class::GuardedAbove,
        Ok("1"),
        "Sage: so many demands to document what explains itself.",
    ),
    key(
        "system_shadows.tunnel_vision.files",
        Kind::Limit(1, 100),
        Class::GuardedAbove,
        Ok("80"),
        "More than so many percent of the findings in a few of the changed files.",
    ),
    key(
        "system_shadows.tunnel_vision.files_percent",
        Kind::Whole(1, 100),
        Class::GuardedBelow,
        Ok("20"),
        "A few are fewer than so many percent.",
    ),
    key(
        "system_shadows.tunnel_vision.findings_floor",
        Kind::Whole(1, 1_000),
        Class::GuardedAbove,
        Ok("3"),
        "Of fewer findings than this no percentage is taken.",
    ),
    key(
        "system_shadows.tunnel_vision.category",
        Kind::Limit(1, 1_000),
        Class::GuardedAbove,
        Ok("3"),
        "So many findings and all of one category.",
    ),
    key(
        "system_shadows.tunnel_vision.reviewers",
        Kind::Whole(2, 100),
        Class::GuardedAbove,
        Ok("2"),
        "Reviewers that must have run for `category`.",
    ),
    key(
        "system_shadows.echo_chamber.duplicate_findings",
        Kind::Limit(0, 100),
        Class::GuardedAbove,
        Ok("60"),
        "More than so many percent of the findings raised by two reviewers.",
    ),
    key(
        "system_shadows.echo_chamber.fast_consensus",
        Kind::Limit(1, 86_400),
        Class::GuardedBelow,
        Ok("30"),
        "All approved without a finding in less than so many seconds.",
    ),
    key(
        "system_shadows.echo_chamber.reviewers",
        Kind::Whole(2, 100),
        Class::GuardedAbove,
        Ok("2"),
        "Reviewers that must have run.",
    ),
    key(
        "system_shadows.gold_plating",
        Kind::Limit(1, 1_000),
        Class::GuardedAbove,
        Ok("1"),
        "So many things fixed that nobody had to fix, while a CRITICAL stayed open.",
    ),
    key(
        "system_shadows.analysis_paralysis.plan_ratio",
        Kind::Limit(1, 1_000),
        Class::GuardedAbove,
        Ok("2"),
        "Plan took more than so many times as long as Do.",
    ),
    key(
        "system_shadows.analysis_paralysis.plan_floor_seconds",
        Kind::Whole(0, 86_400),
        Class::GuardedAbove,
        Ok("300"),
        "A plan of at most so many seconds is quick, whatever Do took.",
    ),
    key(
        "system_shadows.analysis_paralysis.explorer_starts",
        Kind::Limit(1, 1_000),
        Class::GuardedAbove,
        Ok("3"),
        "So many starts of the Explorer in one cycle.",
    ),
    key(
        "system_shadows.cargo_cult",
        Kind::Limit(1, 1_000),
        Class::GuardedAbove,
        Ok("1"),
        "So many lessons that were told and came back as findings.",
    ),
    key(
        "system_shadows.cargo_cult_percent",
        Kind::Whole(1, 100),
        Class::GuardedAbove,
        Ok("50"),
        "Words that a finding shares with a lesson it repeats, in percent of the shorter.",
    ),
    key(
        "system_shadows.broken_window",
        Kind::Limit(1, 1_000),
        Class::GuardedAbove,
        Ok("3"),
        "So many WARNINGs left open by runs one after the other.",
    ),
    key(
        "system_shadows.scope_creep.outside_files",
        Kind::Limit(1, 1_000),
        Class::GuardedAbove,
        Ok("1"),
        "So many files that the proposal does not list.",
    ),
    key(
        "system_shadows.scope_creep.double",
        Kind::Limit(1, 1_000),
        Class::GuardedAbove,
        Ok("2"),
        "More than so many times the files that the proposal lists.",
    ),
    key(
        "system_shadows.scope_creep.escalates",
        Kind::Words(&["double", "outside_files"]),
        Class::GuardedBelow,
        Ok("double"),
        "Which of the two counts for the ladder; the other is only told.",
    ),
    key(
        "memory.enabled",
        Kind::Switch,
        Class::Inert,
        Ok("true"),
        "Remember what runs find and tell later ones; off, nothing is read or written.",
    ),
    key(
        "memory.inject_threshold",
        Kind::Whole(1, 100),
        Class::Inert,
        Ok("2"),
        "A lesson seen in so many runs is told where its domain and archetype fit.",
    ),
    key(
        "memory.always_threshold",
        Kind::Whole(1, 1_000),
        Class::Inert,
        Ok("5"),
        "A lesson seen in so many runs is told to everybody.",
    ),
    key(
        "memory.max_lessons",
        Kind::Whole(0, 50),
        Class::GuardedAbove,
        Ok("10"),
        "Most lessons in one brief.",
    ),
    key(
        "memory.decay_after_runs",
        Kind::Whole(1, 1_000),
        Class::Inert,
        Ok("10"),
        "A lesson not seen for so many runs loses one; at zero it is archived.",
    ),
    key(
        "memory.match_percent",
        Kind::Whole(1, 100),
        Class::Inert,
        Ok("50"),
        "Shared words from which a finding and a lesson are the same issue.",
    ),
    key(
        "memory.ineffective_percent",
        Kind::Whole(1, 100),
        Class::Inert,
        Ok("30"),
        "Shared words from which a lesson that was told did not help.",
    ),
    key(
        "memory.ineffective_limit",
        Kind::Whole(1, 20),
        Class::Inert,
        Ok("2"),
        "A lesson that did not help so often is archived.",
    ),
    key(
        "memory.persistent_cycles",
        Kind::Whole(2, 10),
        Class::Inert,
        Ok("2"),
        "A finding open for so many cycles counts for more.",
    ),
    key("memory.persistent_boost", Kind::Whole(1, 10), Class::Inert, Ok("2"), "What such a finding counts."),
    key(
        "memory.share",
        Kind::Switch,
        Class::Own,
        Ok("false"),
        "Tell the lessons you keep for all repositories (`archeflow memory add --shared`).",
    ),
    key(
        "sprint.slots",
        Kind::Whole(1, 128),
        Class::GuardedAbove,
        Ok("4"),
        "Tasks of a sprint that run at a time.",
    ),
    key(
        "sprint.large",
        Kind::Whole(0, 128),
        Class::GuardedAbove,
        Ok("2"),
        "How many of them may be L or XL.",
    ),
    key("sprint.low_priority", Kind::Switch, Class::Guarded, Ok("false"), "Run P3 as well."),
    key(
        "sprint.load_percent",
        Kind::Whole(1, 100_000),
        Class::GuardedAbove,
        Ok("300"),
        "No further task begins above this load, in percent of the processors; one always runs.",
    ),
    key(
        "sprint.memory_mb",
        Kind::Whole(0, 10_000_000),
        Class::GuardedBelow,
        Ok("256"),
        "Nor with less memory than this available.",
    ),
    key(
        "sprint.checkpoint_tasks",
        Kind::Whole(1, 1_000),
        Class::GuardedAbove,
        Ok("3"),
        "Tasks after which a sprint has a checkpoint.",
    ),
    key(
        "sprint.checkpoint_minutes",
        Kind::Whole(1, 10_000),
        Class::GuardedAbove,
        Ok("45"),
        "Minutes of work after which it has one.",
    ),
    key(
        "sprint.quality_percent",
        PERCENT,
        Class::GuardedBelow,
        Ok("50"),
        "A checkpoint stops the sprint if the last task went worse than this much of the first.",
    ),
    key(
        "sprint.failures",
        Kind::Whole(1, 100),
        Class::GuardedAbove,
        Ok("3"),
        "Tasks that fail one after the other and stop the sprint at once.",
    ),
    key(
        "sprint.budget_usd",
        AMOUNT,
        Class::Inert,
        Err("none"),
        "What all runs of a sprint may cost together.",
    ),
    key(
        "sprint.shares",
        Kind::Shares(1_000),
        Class::Inert,
        Ok("[]"),
        "What a project may spend of it at most: `shop=40%`. Who is not named may spend all of it.",
    ),
    key(
        "sprint.checkpoint_budget_percent",
        Kind::Whole(1, 100),
        Class::GuardedAbove,
        Ok("80"),
        "A checkpoint stops the sprint if so much of the budget is spent.",
    ),
    key(
        "sprint.last_budget_percent",
        Kind::Whole(1, 100),
        Class::GuardedAbove,
        Ok("95"),
        "No further task begins once so much of the budget is spent.",
    ),
    key(
        "sprint.reruns",
        Kind::Whole(0, 20),
        Class::GuardedAbove,
        Ok("1"),
        "Times a task is run anew because the target changed in the same places.",
    ),
    key(
        "sprint.busy_minutes",
        Kind::Whole(1, 1_440),
        Class::Inert,
        Ok("15"),
        "After so long a run that waits for a provider is tried again, if the provider did not say when.",
    ),
    key(
        "sprint.patience_minutes",
        Kind::Whole(0, 10_080),
        Class::GuardedAbove,
        Ok("360"),
        "A longer wait for a provider is not waited for: the item goes back to the queue.",
    ),
    key(
        "sprint.landing_batch",
        Kind::Whole(1, 128),
        Class::Inert,
        Ok("8"),
        "Changes of a project that land in one step at most; 1 lands each by itself.",
    ),
    key(
        "sprint.warn_budget_percent",
        Kind::Whole(1, 100),
        Class::Inert,
        Ok("50"),
        "From here on a sprint tells how much of its budget is spent.",
    ),
    key(
        "sprint.standard_below_percent",
        PERCENT,
        Class::GuardedAbove,
        Ok("50"),
        "With less than this left of the budget, no task gets the workflow `thorough` for its size.",
    ),
    key(
        "sprint.fast_below_percent",
        PERCENT,
        Class::GuardedAbove,
        Ok("25"),
        "With less than this left, all get `fast`, except those whose workflow was named.",
    ),
    key(
        "hooks.<point>.command",
        Kind::Command,
        Class::Guarded,
        Err("none"),
        "In `hooks.yaml`, without the leading `hooks.`: run at this point of a run.",
    ),
    key(
        "hooks.<point>.fail_action",
        Kind::Words(&["warn", "abort"]),
        Class::Guarded,
        Err("abort for pre-merge, else warn"),
        "What follows when the hook's command fails.",
    ),
    key(
        "loop.max_lines",
        Kind::Whole(1, 100_000),
        Class::GuardedAbove,
        Ok("150"),
        "Lines a step of a loop may change, added and removed together.",
    ),
    key("loop.max_files", Kind::Whole(1, 1_000), Class::GuardedAbove, Ok("2"), "Files a step may change."),
    key(
        "loop.limit_mode",
        Kind::Words(&["either_suffices", "both_required"]),
        Class::Inert,
        Ok("either_suffices"),
        "Whether one of the two limits is enough, or both bind.",
    ),
    key(
        "loop.docs_tolerance_percent",
        PERCENT,
        Class::GuardedAbove,
        Ok("10"),
        "A step of documentation with low risk may be over its lines by less than this.",
    ),
    key(
        "loop.pause_after",
        Kind::Whole(1, 100),
        Class::GuardedAbove,
        Ok("5"),
        "So many INSUFFICIENT in a row pause a loop.",
    ),
    key(
        "loop.stuck_after",
        Kind::Whole(1, 100),
        Class::GuardedAbove,
        Ok("3"),
        "So many rounds without a person are told.",
    ),
    key(
        "loop.max_rounds",
        Kind::Whole(1, 1_000),
        Class::GuardedAbove,
        Ok("20"),
        "After so many rounds without a person nobody goes on until one has said something.",
    ),
    key(
        "loop.checkpoint_minutes",
        Kind::Whole(1, 10_080),
        Class::GuardedAbove,
        Ok("30"),
        "So long without a person is told.",
    ),
    key(
        "loop.approval",
        Kind::Words(&["every_pass", "goal_complete"]),
        Class::Guarded,
        Ok("every_pass"),
        "Whether a person is asked after every PASS, or when the whole goal is done.",
    ),
    key(
        "loop.confidence_floor",
        Kind::Whole(0, 10),
        Class::GuardedBelow,
        Ok("5"),
        "A plan with a confidence below this, of 10, is asked about.",
    ),
    key(
        "loop.docs",
        Kind::Whole(0, 20),
        Class::GuardedAbove,
        Ok("2"),
        "Documents of docs/agent_docs an agent is given at most.",
    ),
    key(
        "loop.forbidden",
        Kind::Phrases(64),
        Class::Guarded,
        Ok("[rm -rf, DROP TABLE, DROP DATABASE, DELETE FROM .. WHERE 1=1]"),
        "Commands that need a person's yes; `..` is a gap within a line.",
    ),
    key(
        "loop.risks.low",
        Kind::Names(64),
        Class::Guarded,
        Ok("[refactor, documentation, tests, comments]"),
        "Kinds of work with low risk.",
    ),
    key(
        "loop.risks.medium",
        Kind::Names(64),
        Class::Guarded,
        Ok("[api_changes, schema_migrations, dependencies, configuration]"),
        "Kinds of work that are told.",
    ),
    key(
        "loop.risks.high",
        Kind::Names(64),
        Class::Guarded,
        Ok("[authentication, authorization, data_deletion, secrets_management, deployment]"),
        "Kinds of work that are asked about first.",
    ),
    key(
        "loop.goals.iterations",
        Kind::Whole(1, 100),
        Class::Inert,
        Ok("3"),
        "Iterations of a cycle on average, at most, to be green.",
    ),
    key(
        "loop.goals.pass_percent",
        PERCENT,
        Class::Inert,
        Ok("70"),
        "Share of PASS among the Judge's verdicts, at least.",
    ),
    key(
        "loop.goals.pause_percent",
        PERCENT,
        Class::Inert,
        Ok("10"),
        "Share of cycles that pause, less than.",
    ),
    key(
        "loop.strict",
        Kind::Switch,
        Class::Inert,
        Ok("false"),
        "Take only signal blocks that the grammar itself matches.",
    ),
    key(
        "loop.unread_retries",
        Kind::Whole(0, 10),
        Class::GuardedAbove,
        Ok("1"),
        "So often an agent whose answer has no readable block is asked again.",
    ),
    key(
        "loop.network_retries",
        Kind::Whole(0, 20),
        Class::GuardedAbove,
        Ok("3"),
        "So often an agent is tried again that could not reach its provider.",
    ),
    key(
        "loop.first_pause_seconds",
        Kind::Whole(0, 3_600),
        Class::GuardedAbove,
        Ok("2"),
        "The pause before the first of these; it doubles each time.",
    ),
    key(
        "loop.goal_words",
        Kind::Whole(1, 20),
        Class::GuardedBelow,
        Ok("2"),
        "Words of a goal that must say something.",
    ),
    key(
        "loop.empty_words",
        Kind::Names(256),
        Class::Guarded,
        Ok(
            "[a, an, and, better, code, do, everything, fix, good, improve, it, make, of, on, please, project, some, something, stuff, that, the, them, thing, things, this, to, up, with, work, works]",
        ),
        "Words that say nothing about what is wanted.",
    ),
    key(
        "loop.linter_counts",
        Kind::Switch,
        Class::Guarded,
        Ok("true"),
        "A linter or formatter that fails is held against a step.",
    ),
    key(
        "loop.linter",
        Kind::Command,
        Class::Guarded,
        Err("told by the project's files"),
        "The linter of the Judge's battery.",
    ),
    key(
        "loop.formatter",
        Kind::Command,
        Class::Guarded,
        Err("told by the project's files"),
        "The formatter of the Judge's battery, checking only.",
    ),
    key(
        "loop.detect",
        Kind::Switch,
        Class::Guarded,
        Ok("true"),
        "Look for linter and formatter in the project's files.",
    ),
];

const fn key(
    path: &'static str,
    kind: Kind,
    class: Class,
    default: Result<&'static str, &'static str>,
    meaning: &'static str,
) -> Key {
    Key { path, kind, class, default, meaning }
}

/// Keys of the format that belong to features not built yet.
pub static LATER: &[&str] =
    &["git.commit_style", "git.enabled", "git.signing_key", "initialized", "patterns", "variables"];

/// What a path of the file turns out to be.
pub enum Found {
    Key(&'static Key),
    /// Further keys stand below it.
    Section,
    Later,
    Unknown,
}

/// The row for a path; `archetypes` are the names known beside the built-in ones.
pub fn find(path: &[&str], archetypes: &[String]) -> Found {
    let mut section = false;
    for key in KEYS {
        let mut wanted = key.path.split('.');
        let fits = path.iter().all(|part| wanted.next().is_some_and(|wanted| fits(wanted, part, archetypes)));
        match (fits, wanted.next()) {
            (true, None) => return Found::Key(key),
            (true, Some(_)) => section = true,
            (false, _) => {}
        }
    }
    let later = |later: &&str| later.split('.').zip(path).all(|(later, part)| later == *part);
    match section {
        true => Found::Section,
        false if LATER.iter().filter(|path_of| path_of.split('.').count() <= path.len()).any(later) => {
            Found::Later
        }
        false => Found::Unknown,
    }
}

/// The row for a path that has already been accepted.
pub fn known(path: &str) -> Option<&'static Key> {
    let path: Vec<&str> = path.split('.').collect();
    let any: Vec<String> = path.iter().map(|part| (*part).to_owned()).collect();
    match find(&path, &any) {
        Found::Key(key) => Some(key),
        Found::Section | Found::Later | Found::Unknown => None,
    }
}

/// What may stand below a section, names spelled out, in the order of the table.
pub fn siblings(section: &[&str], archetypes: &[String]) -> Vec<String> {
    let mut names = Vec::new();
    for key in KEYS {
        let mut wanted = key.path.split('.');
        if section.iter().all(|part| wanted.next().is_some_and(|wanted| fits(wanted, part, archetypes)))
            && let Some(next) = wanted.next()
            && (!section.is_empty() || next != "hooks")
        {
            for name in spelled_out(next, archetypes) {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
    }
    names
}

/// What is said about a key nobody knows: what was probably meant, and what there is in its place.
pub fn advice(path: &[&str], archetypes: &[String]) -> String {
    let (last, section) = path.split_last().unwrap_or((&"", &[]));
    let near = siblings(section, archetypes);
    if near.is_empty() && !section.is_empty() {
        return advice(section, archetypes);
    }
    let mut text = String::new();
    if last.contains('.') {
        text += "; write one level per line instead of a dotted key";
    } else if let Some(meant) = closest(last, &near) {
        let meant: Vec<&str> = section.iter().copied().chain([meant]).collect();
        text += &format!(" (did you mean `{}`?)", meant.join("."));
    } else if let Some(key) = KEYS.iter().find(|key| key.path.rsplit('.').next() == Some(last)) {
        text += &format!(" (did you mean `{}`?)", key.path);
    } else if section.is_empty() && *last == "hooks" {
        text += "; hooks stand in `hooks.yaml` beside this file";
    }
    let place = if section.is_empty() { "here".to_owned() } else { format!("in `{}`", section.join(".")) };
    format!("{text}; known {place}: {}", near.join(", "))
}

fn fits(wanted: &str, part: &str, archetypes: &[String]) -> bool {
    match wanted {
        "<archetype>" => {
            let known = ARCHETYPES.iter().any(|(name, _)| *name == part)
                || loop_team().iter().any(|seat| seat.archetype == part)
                || archetypes.iter().any(|name| name == part);
            known && archeflow_core::persona::check_name(part).is_ok()
        }
        "<workflow>" => Workflow::parse(part).is_some(),
        "<tier>" => Tier::parse(part).is_some(),
        "<sign>" => Sign::ALL.iter().any(|sign| sign.name() == part),
        "<point>" => HookPoint::ALL.iter().any(|point| point.name() == part),
        literal => literal == part,
    }
}

fn spelled_out(wanted: &str, archetypes: &[String]) -> Vec<String> {
    match wanted {
        "<archetype>" => {
            let seats = loop_team().into_iter().map(|seat| seat.archetype);
            let built_in = ARCHETYPES.iter().map(|(name, _)| (*name).to_owned()).chain(seats);
            built_in.chain(archetypes.iter().cloned()).collect()
        }
        "<workflow>" => Workflow::ALL.iter().map(|workflow| workflow.name().to_owned()).collect(),
        "<tier>" => ["haiku", "sonnet", "opus"].map(str::to_owned).to_vec(),
        "<sign>" => Sign::ALL.iter().map(|sign| sign.name().to_owned()).collect(),
        "<point>" => HookPoint::ALL.iter().map(|point| point.name().to_owned()).collect(),
        literal => vec![literal.to_owned()],
    }
}

impl Key {
    /// The built-in value.
    pub fn built_in(&self) -> Option<Setting> {
        let text = self.default.ok()?;
        let Some(items) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) else {
            return self.kind.read_text(text);
        };
        let items: Vec<&str> = items.split(", ").filter(|item| !item.is_empty()).collect();
        self.kind.read_items(&items)
    }

    /// Whether this value, set by a repository, has to be approved first.
    pub fn needs_approval(&self, value: &Setting) -> bool {
        let built_in = self.built_in();
        match self.class {
            Class::Inert => false,
            Class::Own => true,
            Class::Guarded => built_in.as_ref() != Some(value),
            Class::GuardedAbove => built_in.is_none_or(|built_in| self.exceeds(value, &built_in)),
            Class::GuardedBelow => built_in.is_none_or(|built_in| self.exceeds(&built_in, value)),
        }
    }

    fn exceeds(&self, a: &Setting, b: &Setting) -> bool {
        match (a, b) {
            (Setting::Whole(a), Setting::Whole(b)) => a > b,
            (Setting::Millionths(a), Setting::Millionths(b)) => a > b,
            (Setting::Money(a), Setting::Money(b)) => a > b,
            (Setting::Wholes(a), Setting::Wholes(b)) => {
                a.len() > b.len() || a.iter().sum::<u64>() > b.iter().sum::<u64>()
            }
            (Setting::Word(a), Setting::Word(b)) => self.kind.rank(a) > self.kind.rank(b),
            _ => a != b,
        }
    }
}

impl Kind {
    /// What may be written, for errors and the manual.
    pub fn allowed(self) -> String {
        match self {
            Kind::Switch => "true or false".to_owned(),
            Kind::Off(why) => format!("only false: {why}"),
            Kind::Whole(least, most) => format!("a whole number from {least} to {most}"),
            Kind::Limit(least, most) => format!("a whole number from {least} to {most}, or off"),
            Kind::Wholes(longest, least, most) => {
                format!("a list of at most {longest} whole numbers from {least} to {most}")
            }
            Kind::Share => "a decimal from 0 to 1 with at most six places".to_owned(),
            Kind::Dollars(most) => format!("dollars from 0 to {most} with at most six places"),
            Kind::Words(words) => words.join(", "),
            Kind::Tier => Tier::NAMES.to_owned(),
            Kind::Release => "a release number of at most 32 characters".to_owned(),
            Kind::Prefix => "begins with `archeflow/`, ends with `/`, holds only letters, \
                             digits, `-`, `_` and single `.` and `/`, at most 64 characters"
                .to_owned(),
            Kind::Command => format!("a command on one line, at most {LONGEST_COMMAND} bytes"),
            Kind::Agent => agents(),
            Kind::Agents(most) => format!("a list of at most {most}, each {}", agents()),
            Kind::Workflow => "fast, standard, thorough, or the name of a workflow file".to_owned(),
            Kind::Name => NAMED.to_owned(),
            Kind::Names(most) => format!("a list of at most {most} names"),
            Kind::Phrases(most) => {
                format!(
                    "a list of at most {most} texts without commas, each on one line of at most {LONGEST_PHRASE} bytes"
                )
            }
            Kind::Model => "the name of a model".to_owned(),
            Kind::Url => "https://host[:port], or http:// on this machine".to_owned(),
            Kind::HostKeys(most) => {
                format!("a list of at most {most} entries host=VARIABLE, the host with or without its port")
            }
            Kind::Shares(most) => {
                format!("a list of at most {most} entries project=percent, from 0 to 100, each project once")
            }
            Kind::Variables => format!(
                "a list of at most {MOST_VARIABLES} names of environment variables, none beginning with ARCHEFLOW_"
            ),
        }
    }

    /// The value of a node, or nothing when it isn't one of this kind.
    pub fn read(self, node: &Node) -> Option<Setting> {
        match &node.value {
            yaml::Value::Scalar(text) => self.read_text(text),
            yaml::Value::List(items) => {
                let items: Option<Vec<&str>> = items.iter().map(scalar).collect();
                self.read_items(&items?)
            }
            yaml::Value::Nothing | yaml::Value::Map(_) => None,
        }
    }

    pub fn read_text(self, text: &str) -> Option<Setting> {
        match self {
            Kind::Switch => switch(text).map(Setting::Switch),
            Kind::Off(_) => switch(text).filter(|on| !on).map(Setting::Switch),
            Kind::Whole(least, most) => whole(text, least, most).map(Setting::Whole),
            Kind::Limit(least, most) => match text {
                "off" => Some(Setting::Word("off")),
                _ => whole(text, least, most).map(Setting::Whole),
            },
            Kind::Share => share(text).map(Setting::Millionths),
            Kind::Dollars(most) => dollars(text, most).map(Setting::Money),
            Kind::Words(words) => words.iter().find(|word| **word == text).map(|word| Setting::Word(word)),
            Kind::Tier => Tier::parse(text).map(|tier| Setting::Word(tier.name())),
            Kind::Release => release(text).then(|| Setting::Text(text.to_owned())),
            Kind::Prefix => prefix(text).then(|| Setting::Text(text.to_owned())),
            Kind::Command => command(text),
            Kind::Agent => command(text).filter(|_| agent(text.trim())),
            Kind::Workflow => match Workflow::parse(text) {
                Some(workflow) => Some(Setting::Word(workflow.name())),
                None => Kind::Name.read_text(text),
            },
            Kind::Name => {
                archeflow_core::persona::check_name(text).is_ok().then(|| Setting::Text(text.to_owned()))
            }
            Kind::Names(_) => self.read_items(&text.split(',').map(str::trim).collect::<Vec<_>>()),
            Kind::Model => {
                let fits = !text.is_empty() && text.len() <= 200 && Rest::Model.takes(text);
                fits.then(|| Setting::Text(text.to_owned()))
            }
            Kind::Url => ModelEndpoint::read(text, "").ok().map(|place| Setting::Text(place.url)),
            Kind::Wholes(..)
            | Kind::Variables
            | Kind::Agents(_)
            | Kind::HostKeys(_)
            | Kind::Shares(_)
            | Kind::Phrases(_) => None,
        }
    }

    fn read_items(self, items: &[&str]) -> Option<Setting> {
        match self {
            Kind::Wholes(longest, least, most) if items.len() <= longest => {
                items.iter().map(|item| whole(item, least, most)).collect::<Option<_>>().map(Setting::Wholes)
            }
            Kind::Variables if items.len() <= MOST_VARIABLES && items.iter().all(|item| variable(item)) => {
                let mut names: Vec<String> = items.iter().map(|item| (*item).to_owned()).collect();
                names.sort();
                names.dedup();
                Some(Setting::Names(names))
            }
            Kind::Agents(most) if items.len() <= most => {
                let specs = items.iter().map(|item| match Kind::Agent.read_text(item) {
                    Some(Setting::Text(spec)) => Some(spec),
                    _ => None,
                });
                specs.collect::<Option<_>>().map(Setting::Names)
            }
            Kind::Names(most) => {
                let names: Vec<String> = items.iter().map(|item| (*item).to_owned()).collect();
                let fits = |name: &String| archeflow_core::persona::check_name(name).is_ok();
                let once = |(n, name): (usize, &String)| !names.iter().take(n).any(|other| other == name);
                let good =
                    names.len() <= most && names.iter().all(fits) && names.iter().enumerate().all(once);
                good.then_some(Setting::Names(names))
            }
            Kind::Phrases(most) if items.len() <= most && items.iter().all(|item| phrase(item)) => {
                Some(Setting::Names(items.iter().map(|item| item.trim().to_owned()).collect()))
            }
            Kind::HostKeys(most) if items.len() <= most && items.iter().all(|item| host_key(item)) => {
                Some(Setting::Names(items.iter().map(|item| (*item).to_owned()).collect()))
            }
            Kind::Shares(most) if items.len() <= most => {
                let shares: Option<Vec<(String, u64)>> = items.iter().map(|item| share_of(item)).collect();
                let mut names: Vec<String> = shares?.into_iter().map(|(project, _)| project).collect();
                names.sort_unstable();
                let once = names.windows(2).all(|pair| pair[0] != pair[1]);
                once.then(|| Setting::Names(items.iter().map(|item| (*item).to_owned()).collect()))
            }
            Kind::Wholes(..)
            | Kind::Agents(_)
            | Kind::Shares(_)
            | Kind::Model
            | Kind::Url
            | Kind::HostKeys(_)
            | Kind::Phrases(_)
            | Kind::Variables
            | Kind::Workflow
            | Kind::Dollars(_)
            | Kind::Name
            | Kind::Switch
            | Kind::Off(_)
            | Kind::Whole(..)
            | Kind::Limit(..)
            | Kind::Share
            | Kind::Words(_)
            | Kind::Tier
            | Kind::Release
            | Kind::Prefix
            | Kind::Command
            | Kind::Agent => None,
        }
    }

    fn rank(self, word: &str) -> Option<usize> {
        match self {
            Kind::Words(words) => words.iter().position(|known| *known == word),
            Kind::Switch
            | Kind::Off(_)
            | Kind::Whole(..)
            | Kind::Limit(..)
            | Kind::Wholes(..)
            | Kind::Share
            | Kind::Dollars(_)
            | Kind::Tier
            | Kind::Release
            | Kind::Prefix
            | Kind::Command
            | Kind::Agent
            | Kind::Agents(_)
            | Kind::Variables
            | Kind::Model
            | Kind::Url
            | Kind::HostKeys(_)
            | Kind::Shares(_)
            | Kind::Workflow
            | Kind::Name
            | Kind::Names(_)
            | Kind::Phrases(_) => None,
        }
    }

    /// Whether a value of this kind says where something is asked.
    pub fn names_a_host(self, value: &Setting) -> bool {
        let Setting::Text(text) = value else { return self == Kind::Url };
        let head = text.split([':', '@']).next().unwrap_or_default();
        let places = crate::backends::cli::find(head).is_some_and(|client| client.rest == Rest::ModelAt);
        self == Kind::Url || self == Kind::Agent && places && text.contains('@')
    }
}

fn scalar(node: &Node) -> Option<&str> {
    match &node.value {
        yaml::Value::Scalar(text) => Some(text),
        yaml::Value::Nothing | yaml::Value::List(_) | yaml::Value::Map(_) => None,
    }
}

fn switch(text: &str) -> Option<bool> {
    match text {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

/// Digits only, and no leading zero that could be meant as octal.
fn whole(text: &str, least: u64, most: u64) -> Option<u64> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|n| digits && (least..=most).contains(n))
}

fn share(text: &str) -> Option<u32> {
    const PLACES: usize = 6;
    let (whole, rest) = text.split_once('.').unwrap_or((text, "0"));
    let digits = !rest.is_empty() && rest.len() <= PLACES && rest.bytes().all(|byte| byte.is_ascii_digit());
    let rest: u32 = format!("{rest:0<PLACES$}").parse().ok().filter(|_| digits)?;
    match (whole, rest) {
        ("0", rest) => Some(rest),
        ("1", 0) => Some(1_000_000),
        _ => None,
    }
}

/// Written plainly: no sign, no exponent, no leading zero.
fn dollars(text: &str, most: u64) -> Option<u64> {
    const PLACES: usize = 6;
    let (digits, rest) = text.split_once('.').unwrap_or((text, "0"));
    let plain = !rest.is_empty() && rest.len() <= PLACES && rest.bytes().all(|byte| byte.is_ascii_digit());
    let micro = whole(digits, 0, most)? * 1_000_000;
    let rest: u64 = format!("{rest:0<PLACES$}").parse().ok().filter(|_| plain)?;
    Some(micro + rest).filter(|micro| *micro <= most * 1_000_000)
}

/// `shop=40`, with or without a percent sign.
pub fn share_of(text: &str) -> Option<(String, u64)> {
    let (project, percent) = text.rsplit_once('=')?;
    let percent = percent.trim();
    let percent = whole(percent.strip_suffix('%').unwrap_or(percent).trim_end(), 0, 100)?;
    let project = project.trim();
    let fits = !project.is_empty() && project.len() <= 200 && !project.contains(char::is_control);
    fits.then(|| (project.to_owned(), percent))
}

fn release(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+' | '_');
    (1..=32).contains(&text.len()) && text.chars().all(fits)
}

fn prefix(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let part = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphanumeric())
            && part.chars().all(fits)
            && !part.contains("..")
            && !part.ends_with('.')
            && !part.to_ascii_lowercase().ends_with(".lock")
    };
    text.len() <= 64
        && text.starts_with("archeflow/")
        && text.strip_suffix('/').is_some_and(|text| text.split('/').all(part))
}

const LONGEST_COMMAND: usize = 4_096;
const LONGEST_PHRASE: usize = 200;
const MOST_VARIABLES: usize = 64;
const MOST_LENSES: usize = 8;
const NAMED: &str = "the name of a file: a to z, 0 to 9, `-` and `_`, at most 32 characters";

fn phrase(text: &str) -> bool {
    !text.trim().is_empty()
        && text.len() <= LONGEST_PHRASE
        && !text.contains([',', '[', ']'])
        && !text.contains(char::is_control)
}

fn command(text: &str) -> Option<Setting> {
    let text = text.trim();
    let fits = !text.is_empty() && text.len() <= LONGEST_COMMAND && !text.contains(char::is_control);
    fits.then(|| Setting::Text(text.to_owned()))
}

/// The specs of all agents, the last one with an "or".
fn agents() -> String {
    let forms: Vec<&str> = backends::forms().into_iter().map(|(form, _)| form).collect();
    forms.split_last().map_or_else(String::new, |(last, others)| format!("{} or {last}", others.join(", ")))
}

/// The shape only; whether the program is there is found out when it is started.
fn agent(text: &str) -> bool {
    let end = text.find([':', '@']).unwrap_or(text.len());
    let (head, rest) = text.split_at(end);
    match head {
        "acp" | "cmd" | "script" => rest.strip_prefix(':').is_some_and(|rest| !rest.trim().is_empty()),
        name => crate::backends::cli::find(name).is_some(),
    }
}

/// `host=VARIABLE`.
fn host_key(text: &str) -> bool {
    let Some((host, name)) = text.split_once('=') else { return false };
    let place = ModelEndpoint::read(&format!("https://{host}"), "");
    place.is_ok_and(|place| place.url == format!("https://{}", host.to_lowercase()) && !host.contains('/'))
        && variable(name)
}

fn variable(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let start = |c: char| c.is_ascii_alphabetic() || c == '_';
    text.len() <= 128 && text.starts_with(start) && text.chars().all(fits) && !text.starts_with("ARCHEFLOW_")
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Setting::Switch(on) => write!(f, "{on}"),
            Setting::Whole(n) => write!(f, "{n}"),
            Setting::Wholes(list) => {
                let list: Vec<String> = list.iter().map(ToString::to_string).collect();
                write!(f, "[{}]", list.join(", "))
            }
            Setting::Millionths(1_000_000) => f.write_str("1.0"),
            Setting::Millionths(n) => {
                let places = format!("{n:06}");
                let places = places.trim_end_matches('0');
                write!(f, "0.{}", if places.is_empty() { "0" } else { places })
            }
            Setting::Money(micro) => {
                let places = format!("{:06}", micro % 1_000_000);
                let places = places.trim_end_matches('0');
                let dot = if places.is_empty() { "" } else { "." };
                write!(f, "{}{dot}{places}", micro / 1_000_000)
            }
            Setting::Word(word) => f.write_str(word),
            Setting::Text(text) => f.write_str(text),
            Setting::Names(names) => write!(f, "[{}]", names.join(", ")),
        }
    }
}

/// A value as its file has it, for an error.
pub fn written(node: &Node) -> String {
    match &node.value {
        yaml::Value::Nothing => "nothing".to_owned(),
        yaml::Value::Scalar(text) => format!("`{}`", shown(text)),
        yaml::Value::List(items) => {
            const MOST: usize = 8;
            let mut texts: Vec<String> =
                items.iter().take(MOST).map(|item| scalar(item).map_or("…".to_owned(), shown)).collect();
            if items.len() > MOST {
                texts.push("…".to_owned());
            }
            format!("`[{}]`", texts.join(", "))
        }
        yaml::Value::Map(_) => "a section of keys".to_owned(),
    }
}

/// The table of the manual.
pub fn table() -> String {
    let mut text =
        "| Key | Allowed | Default | Set by a repository | Meaning |\n|---|---|---|---|---|\n".to_owned();
    for key in KEYS {
        let default = match key.default {
            Ok(value) => format!("`{value}`"),
            Err(why) => why.to_owned(),
        };
        let class = match (key.class, key.default) {
            (Class::Inert, _) => "used",
            (Class::Guarded, Ok(_)) => "needs approval, except the default",
            (Class::Guarded, Err(_)) => "needs approval",
            (Class::GuardedAbove, _) => "needs approval above the default",
            (Class::GuardedBelow, _) => "needs approval below the default",
            (Class::Own, _) => "never",
        };
        // Angle brackets would be taken for HTML.
        let allowed = key.kind.allowed().replace('<', "\\<");
        text += &format!("| `{}` | {allowed} | {default} | {class} | {} |\n", key.path, key.meaning);
    }
    text
}
