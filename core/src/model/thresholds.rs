//! The numbers at which a virtue counts as its shadow, one struct for each shadow.
//!
//! A threshold that is `None` is switched off, and its trigger never fires; in the configuration that is written
//! `off`. The name of a threshold is the word of its trigger. What only shapes a trigger, such as a floor, is a plain
//! number.

use serde::{Deserialize, Serialize};

/// AF-130, the Explorer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RabbitHole {
    /// More words than this, and no recommendation.
    pub words: Option<u32>,
    /// More tangents than this.
    pub tangents: Option<u32>,
    /// More files than this, and no pattern among them.
    pub files: Option<u32>,
    /// More words than this, and no synthesis in the last quarter of them.
    pub synthesis: Option<u32>,
}

impl Default for RabbitHole {
    fn default() -> Self {
        RabbitHole { words: Some(2000), tangents: Some(3), files: Some(15), synthesis: Some(500) }
    }
}

/// AF-131, the Creator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OverArchitect {
    /// More new abstractions than this.
    pub abstractions: Option<u32>,
    /// So many reasons that lie in the future.
    pub future_proof: Option<u32>,
    /// Work beyond the task, in percent of the work for it, above this.
    pub scope: Option<u32>,
    /// More new packages than this.
    pub packages: Option<u32>,
}

impl Default for OverArchitect {
    fn default() -> Self {
        OverArchitect { abstractions: Some(2), future_proof: Some(1), scope: Some(50), packages: Some(1) }
    }
}

/// AF-132 and CL-15, the Maker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rogue {
    /// So many code files changed, and no test file.
    pub no_tests: Option<u32>,
    /// So many files that the proposal does not list.
    pub outside_files: Option<u32>,
    /// So many code files and so many items of the proposal, in one commit.
    pub one_commit: Option<u32>,
    /// So many code files changed, and no sign of a test run.
    pub no_test_run: Option<u32>,
    /// A module list or a manifest with at most so many changed lines only wires the planned files in.
    pub wiring_lines: u32,
}

impl Default for Rogue {
    fn default() -> Self {
        Rogue {
            no_tests: Some(3),
            outside_files: Some(1),
            one_commit: Some(3),
            no_test_run: Some(3),
            wiring_lines: 10,
        }
    }
}

/// AF-133 and CL-16, the Guardian.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Paranoid {
    /// So many CRITICALs, and more than [`Paranoid::ratio`] for every WARNING.
    pub criticals: Option<u32>,
    pub ratio: u32,
    /// So many reviews in a run and no approval among them.
    pub no_approvals: Option<u32>,
    /// Fixes for less than so many percent of the findings above INFO.
    pub fixes: Option<u32>,
    /// Of fewer findings than this no percentage is taken.
    pub fixes_floor: u32,
    /// So many findings that presuppose a system already taken over.
    pub compromised: Option<u32>,
}

impl Default for Paranoid {
    fn default() -> Self {
        Paranoid {
            criticals: Some(3),
            ratio: 2,
            no_approvals: Some(3),
            fixes: Some(50),
            fixes_floor: 3,
            compromised: Some(1),
        }
    }
}

/// AF-134 and CL-17, the Skeptic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Paralytic {
    /// More challenges than this.
    pub challenges: Option<u32>,
    /// Alternatives for less than so many percent of them.
    pub alternatives: Option<u32>,
    /// Each of the two is enough; otherwise it takes both.
    pub any: bool,
    /// Of fewer challenges than this no percentage is taken.
    pub alternatives_floor: u32,
    /// One concern said again so often in other words.
    pub reworded: Option<u32>,
    /// More findings than this outside of the proposal.
    pub out_of_scope: Option<u32>,
}

impl Default for Paralytic {
    fn default() -> Self {
        Paralytic {
            challenges: Some(7),
            alternatives: Some(50),
            any: false,
            alternatives_floor: 3,
            reworded: Some(2),
            out_of_scope: Some(3),
        }
    }
}

/// AF-135 and CL-20, the Trickster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FalseAlarm {
    /// So many findings in files that were not changed.
    pub untouched: Option<u32>,
    /// More findings than this for fewer than [`FalseAlarm::few_files`] changed files.
    pub findings: Option<u32>,
    pub few_files: u32,
    /// However many files were changed.
    pub strict: bool,
    /// So many scenarios that can't happen.
    pub impossible: Option<u32>,
    /// More findings than this without steps to reproduce them.
    pub without_steps: Option<u32>,
}

impl Default for FalseAlarm {
    fn default() -> Self {
        FalseAlarm {
            untouched: Some(1),
            findings: Some(10),
            few_files: 5,
            strict: false,
            impossible: Some(1),
            without_steps: Some(3),
        }
    }
}

/// AF-136 and CL-27, the Sage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Bureaucrat {
    /// More than so many words for every line of the diff.
    pub words: Option<u32>,
    /// A review of at most so many words is short, whatever the diff.
    pub words_floor: u32,
    /// So many findings in files that were not changed.
    pub outside: Option<u32>,
    /// More than so many "consider" without an action.
    pub considers: Option<u32>,
    /// So many demands to document what explains itself.
    pub trivial_docs: Option<u32>,
}

impl Default for Bureaucrat {
    fn default() -> Self {
        Bureaucrat {
            words: Some(2),
            words_floor: 150,
            outside: Some(1),
            considers: Some(2),
            trivial_docs: Some(1),
        }
    }
}

/// AF-140 and CL-01.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TunnelVision {
    /// More than so many percent of the findings lie in fewer than [`TunnelVision::files_percent`] of the files.
    pub files: Option<u32>,
    pub files_percent: u32,
    /// Of fewer findings than this no percentage is taken.
    pub findings_floor: u32,
    /// So many findings, from [`TunnelVision::reviewers`] reviewers that ran, and all of one category.
    pub category: Option<u32>,
    pub reviewers: u32,
}

impl Default for TunnelVision {
    fn default() -> Self {
        TunnelVision {
            files: Some(80),
            files_percent: 20,
            findings_floor: 3,
            category: Some(3),
            reviewers: 2,
        }
    }
}

/// AF-141 and CL-02.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EchoChamber {
    /// More than so many percent of the findings have a file and category that another reviewer raised too.
    pub duplicate_findings: Option<u32>,
    /// Everybody approved without a finding in less than so many seconds.
    pub fast_consensus: Option<u32>,
    pub reviewers: u32,
}

impl Default for EchoChamber {
    fn default() -> Self {
        EchoChamber { duplicate_findings: Some(60), fast_consensus: Some(30), reviewers: 2 }
    }
}

/// AF-144.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AnalysisParalysis {
    /// Plan took more than so many times as long as Do.
    pub plan_ratio: Option<u32>,
    /// A plan of at most so many seconds is quick, however quick Do was.
    pub plan_floor_seconds: u32,
    /// So many starts of the Explorer in one run.
    pub explorer_starts: Option<u32>,
}

impl Default for AnalysisParalysis {
    fn default() -> Self {
        AnalysisParalysis { plan_ratio: Some(2), plan_floor_seconds: 300, explorer_starts: Some(3) }
    }
}

/// AF-142 and CL-04.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScopeCreep {
    /// So many files that the proposal does not list.
    pub outside_files: Option<u32>,
    /// More than so many times the files that the proposal lists.
    pub double: Option<u32>,
    /// Which of the two counts for the ladder; the other is only told.
    pub escalates: ScopeLevel,
}

impl Default for ScopeCreep {
    fn default() -> Self {
        ScopeCreep { outside_files: Some(1), double: Some(2), escalates: ScopeLevel::Double }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScopeLevel {
    OutsideFiles,
    Double,
}

impl ScopeLevel {
    /// The trigger that escalates.
    pub fn name(self) -> &'static str {
        match self {
            ScopeLevel::OutsideFiles => "outside_files",
            ScopeLevel::Double => "double",
        }
    }
}
