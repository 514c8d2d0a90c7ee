//! Which archetypes take part, in which order, for how many cycles.

use serde::{Deserialize, Serialize};

use super::Role;
use super::named::named;

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Phase {
        Plan = "plan",
        Do = "do",
        Check = "check",
        Act = "act",
    }
}

impl Phase {
    pub fn parse(word: &str) -> Option<Phase> {
        [Phase::Plan, Phase::Do, Phase::Check, Phase::Act].into_iter().find(|phase| phase.name() == word)
    }
}

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Default)]
    #[serde(rename_all = "lowercase")]
    pub enum Workflow {
        Fast = "fast",
        #[default]
        Standard = "standard",
        Thorough = "thorough",
    }
}

impl Workflow {
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

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Default)]
    #[serde(rename_all = "lowercase")]
    pub enum Strategy {
        #[default]
        Pdca = "pdca",
        Pipeline = "pipeline",
        /// A change that is there already: only Check, the parts of its diff one after the other (AF-003).
        Review = "review",
        /// A person, a Planner, an Actor and a Judge take turns (PJ-01..PJ-17). A step is a cycle.
        Loop = "loop",
    }
}

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Default)]
    #[serde(rename_all = "lowercase")]
    pub enum Domain {
        #[default]
        Code = "code",
        Writing = "writing",
        Research = "research",
    }
}

named! {
    /// Why an agent is started; agents see it as `ARCHEFLOW_PURPOSE`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Purpose {
        /// The role's ordinary work in this cycle.
        Work = "work",
        /// A correction prompt against a shadow.
        Correct = "correct",
        /// A fresh instance in place of one that stayed in its shadow.
        Replace = "replace",
        /// The last attempt failed or could not be read.
        Retry = "retry",
        /// The test-first gate (AF-063) sends the Maker back for tests.
        Tests = "tests",
        /// The focused mini-Explorer of the confidence gate (AF-056).
        Research = "research",
        /// The one targeted fix of the pipeline strategy (AF-191).
        Fix = "fix",
    }
}

/// An archetype that takes part in a workflow.
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

/// Reviewers of the pipeline that run only if the gatekeeper has findings (AF-190).
pub fn only_on_findings(archetype: &str) -> bool {
    archetype == SKEPTIC.0
}

/// Reviewers of the pipeline that look at quality; the others compare with the specification (AF-192).
pub fn reviews_quality(archetype: &str) -> bool {
    archetype == SAGE.0
}

/// The default reviewers of an existing change.
pub fn review_team() -> Vec<Participant> {
    seats(&[GUARDIAN])
}

/// The three participants of a loop, with their roles.
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
