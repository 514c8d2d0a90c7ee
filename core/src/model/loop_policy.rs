//! The thresholds of the Human/Planner/Actor/Judge loop. The defaults are those of its founding document.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LoopPolicy {
    /// PJ-30: changed lines of a step, added and removed together.
    pub lines: u32,
    pub files: u32,
    pub limit_mode: LimitMode,
    /// PJ-52: a step of documentation may be over its lines by less than this, in percent.
    pub docs_tolerance: u32,
    /// PJ-35: so many INSUFFICIENT in a row pause the loop.
    pub pause_after: u32,
    /// PJ-60: so many rounds without a person are told.
    pub stuck_after: u32,
    /// After so many rounds without a person nobody goes on until one has said something. The founding document has no
    /// such end: an Actor that always fails would go on for ever.
    pub rounds: u32,
    /// PJ-36, PJ-63.
    pub checkpoint_ms: u64,
    pub approval: Approval,
    /// MX-03: a confidence below this goes to a person, 0 to 10.
    pub confidence_floor: u32,
    /// PJ-31.
    pub docs: u32,
    /// PJ-34. `..` is a gap within a line; letters behind one dash may stand in any order.
    pub forbidden: Vec<String>,
    pub risks: Risks,
    pub goals: Goals,
    /// A linter that fails is held against a step.
    pub linter_counts: bool,
    /// PJ-50: so often an agent is tried again that could not reach its provider.
    pub network_retries: u32,
    /// PJ-50: the pause before the first of them; it doubles each time.
    pub first_pause_ms: u64,
    /// PJ-01: a goal has at least so many words that say something.
    pub goal_words: u32,
    /// Words that say nothing about what is wanted.
    pub empty_words: Vec<String>,
    /// Only blocks that the grammar itself matches are routed (PJ-20).
    pub strict: bool,
    /// PJ-51: so often an agent whose answer has no block that can be routed is asked again; then a person is.
    pub unread_retries: u32,
    /// Linter and formatter, where they are not told by the project's files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub linter: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub formatter: Option<String>,
    /// Whether they are looked for in the project's files.
    pub detect: bool,
}

/// PC-01: whether either limit is enough, or both bind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum LimitMode {
    #[default]
    EitherSuffices,
    BothRequired,
}

/// PC-06: whether a person is asked after every PASS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Approval {
    #[default]
    EveryPass,
    GoalComplete,
}

/// MX-06: what kind of work has which risk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Risks {
    pub low: Vec<String>,
    pub medium: Vec<String>,
    pub high: Vec<String>,
}

/// PJ-64..PJ-67.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Goals {
    /// Iterations of a cycle, on average at most.
    pub iterations: u32,
    /// Percent of the Judge's verdicts that are PASS, at least.
    pub pass_rate: u32,
    /// Percent of the cycles that pause, less than.
    pub pause_rate: u32,
}

/// Words that say nothing about what is wanted.
const EMPTY: &str = "a an and better code do everything fix good improve it make of on please project some something \
                     stuff that the them thing things this to up with work works";

impl LoopPolicy {
    pub fn is_default(&self) -> bool {
        *self == LoopPolicy::default()
    }
}

impl Default for LoopPolicy {
    fn default() -> Self {
        let forbidden = ["rm -rf", "DROP TABLE", "DROP DATABASE", "DELETE FROM .. WHERE 1=1"];
        LoopPolicy {
            lines: 150,
            files: 2,
            limit_mode: LimitMode::default(),
            docs_tolerance: 10,
            pause_after: 5,
            stuck_after: 3,
            rounds: 20,
            checkpoint_ms: 30 * 60_000,
            approval: Approval::default(),
            confidence_floor: 5,
            docs: 2,
            forbidden: forbidden.map(str::to_owned).to_vec(),
            risks: Risks::default(),
            goals: Goals::default(),
            linter_counts: true,
            network_retries: 3,
            first_pause_ms: 2_000,
            goal_words: 2,
            empty_words: EMPTY.split_whitespace().map(str::to_owned).collect(),
            strict: false,
            unread_retries: 1,
            linter: None,
            formatter: None,
            detect: true,
        }
    }
}

impl Default for Risks {
    fn default() -> Self {
        let list = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        Risks {
            low: list(&["refactor", "documentation", "tests", "comments"]),
            medium: list(&["api_changes", "schema_migrations", "dependencies", "configuration"]),
            high: list(&[
                "authentication",
                "authorization",
                "data_deletion",
                "secrets_management",
                "deployment",
            ]),
        }
    }
}

impl Default for Goals {
    fn default() -> Self {
        Goals { iterations: 3, pass_rate: 70, pause_rate: 10 }
    }
}
