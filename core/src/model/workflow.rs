//! Which archetypes sit, in which order, for how many cycles.

use serde::{Deserialize, Serialize};

use super::Role;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    Plan,
    Do,
    Check,
    Act,
}

impl Phase {
    pub fn name(self) -> &'static str {
        match self {
            Phase::Plan => "plan",
            Phase::Do => "do",
            Phase::Check => "check",
            Phase::Act => "act",
        }
    }

    pub fn parse(word: &str) -> Option<Phase> {
        [Phase::Plan, Phase::Do, Phase::Check, Phase::Act].into_iter().find(|phase| phase.name() == word)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum Workflow {
    Fast,
    #[default]
    Standard,
    Thorough,
}

impl Workflow {
    pub const ALL: [Workflow; 3] = [Workflow::Fast, Workflow::Standard, Workflow::Thorough];

    pub fn name(self) -> &'static str {
        match self {
            Workflow::Fast => "fast",
            Workflow::Standard => "standard",
            Workflow::Thorough => "thorough",
        }
    }

    pub fn parse(word: &str) -> Option<Workflow> {
        Workflow::ALL.into_iter().find(|workflow| workflow.name() == word)
    }

    /// AF-022.
    pub fn max_cycles(self) -> u32 {
        match self {
            Workflow::Fast => 1,
            Workflow::Standard => 2,
            Workflow::Thorough => 3,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum Strategy {
    #[default]
    Pdca,
    Pipeline,
    /// A change that is there already: only Check, the parts of its diff one after the other (AF-003).
    Review,
    /// A person, a Planner, an Actor and a Judge take turns (PJ-01..PJ-17). A step is a cycle.
    Loop,
}

impl Strategy {
    pub fn name(self) -> &'static str {
        match self {
            Strategy::Pdca => "pdca",
            Strategy::Pipeline => "pipeline",
            Strategy::Review => "review",
            Strategy::Loop => "loop",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum Domain {
    #[default]
    Code,
    Writing,
    Research,
}

impl Domain {
    pub fn name(self) -> &'static str {
        match self {
            Domain::Code => "code",
            Domain::Writing => "writing",
            Domain::Research => "research",
        }
    }
}

/// Why an agent is started; agents see it as `ARCHEFLOW_PURPOSE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Purpose {
    /// The role's ordinary work in this cycle.
    Work,
    /// A correction prompt against a shadow.
    Correct,
    /// A fresh instance in place of one that stayed in its shadow.
    Replace,
    /// The last attempt failed or could not be read.
    Retry,
    /// The test-first gate (AF-063) sends the Maker back for tests.
    Tests,
    /// The focused mini-Explorer of the confidence gate (AF-056).
    Research,
    /// The one targeted fix of the pipeline strategy (AF-191).
    Fix,
}

impl Purpose {
    pub fn name(self) -> &'static str {
        match self {
            Purpose::Work => "work",
            Purpose::Correct => "correct",
            Purpose::Replace => "replace",
            Purpose::Retry => "retry",
            Purpose::Tests => "tests",
            Purpose::Research => "research",
            Purpose::Fix => "fix",
        }
    }
}

/// An archetype's place in a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Participant {
    pub archetype: String,
    pub role: Role,
}

/// The team of a workflow (AF-023), in the order of the cycle.
pub fn team(workflow: Workflow) -> Vec<Participant> {
    let names: &[(&str, Role)] = match workflow {
        Workflow::Fast => &[CREATOR, MAKER, GUARDIAN],
        Workflow::Standard => &[EXPLORER, CREATOR, MAKER, GUARDIAN, SKEPTIC, SAGE],
        Workflow::Thorough => &[EXPLORER, CREATOR, MAKER, GUARDIAN, SKEPTIC, SAGE, TRICKSTER],
    };
    seats(names)
}

/// The team of the pipeline strategy (AF-190).
pub fn pipeline_team() -> Vec<Participant> {
    seats(&[CREATOR, MAKER, GUARDIAN, SKEPTIC, SAGE])
}

/// Who looks at a change that is there already, where nobody is named.
pub fn review_team() -> Vec<Participant> {
    seats(&[GUARDIAN])
}

/// The three seats of a loop, in the roles the machine knows.
pub fn loop_team() -> Vec<Participant> {
    seats(&[("planner", Role::Creator), ("actor", Role::Maker), ("judge", Role::Gatekeeper)])
}

fn seats(names: &[(&str, Role)]) -> Vec<Participant> {
    names.iter().map(|(name, role)| Participant { archetype: (*name).to_owned(), role: *role }).collect()
}

const EXPLORER: (&str, Role) = ("explorer", Role::Explorer);
const CREATOR: (&str, Role) = ("creator", Role::Creator);
const MAKER: (&str, Role) = ("maker", Role::Maker);
const GUARDIAN: (&str, Role) = ("guardian", Role::Gatekeeper);
const SKEPTIC: (&str, Role) = ("skeptic", Role::Reviewer);
const SAGE: (&str, Role) = ("sage", Role::Reviewer);
const TRICKSTER: (&str, Role) = ("trickster", Role::Reviewer);
