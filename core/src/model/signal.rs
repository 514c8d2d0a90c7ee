//! The words of the loop between a person, a Planner, an Actor and a Judge: the speaker, the result and the risk.

use serde::{Deserialize, Serialize};

/// The author of a block in the cycle file, and the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Speaker {
    Human,
    Planner,
    Actor,
    Judge,
}

impl Speaker {
    pub const ALL: [Speaker; 4] = [Speaker::Human, Speaker::Planner, Speaker::Actor, Speaker::Judge];

    /// As a block writes it.
    pub fn name(self) -> &'static str {
        match self {
            Speaker::Human => "Human",
            Speaker::Planner => "Planner",
            Speaker::Actor => "Actor",
            Speaker::Judge => "Judge",
        }
    }

    pub fn parse(text: &str) -> Option<Speaker> {
        Speaker::ALL.into_iter().find(|speaker| speaker.name().eq_ignore_ascii_case(text))
    }
}

/// The result of a block. The first seven are the grammar's own (PJ-20), the others are accepted (PC-02, PC-04).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Token {
    Init,
    PlanCreated,
    PlanUpdated,
    Success,
    Fail,
    Pass,
    Insufficient,
    ClarificationNeeded,
    FinalPlanCreated,
    Approved,
    MergeApproved,
    DeleteApproved,
    RevisionRequested,
    PrMerged,
    GoalCycleComplete,
}

impl Token {
    pub const ALL: [Token; 15] = [
        Token::Init,
        Token::PlanCreated,
        Token::PlanUpdated,
        Token::Success,
        Token::Fail,
        Token::Pass,
        Token::Insufficient,
        Token::ClarificationNeeded,
        Token::FinalPlanCreated,
        Token::Approved,
        Token::MergeApproved,
        Token::DeleteApproved,
        Token::RevisionRequested,
        Token::PrMerged,
        Token::GoalCycleComplete,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Token::Init => "INIT",
            Token::PlanCreated => "PLAN_CREATED",
            Token::PlanUpdated => "PLAN_UPDATED",
            Token::Success => "SUCCESS",
            Token::Fail => "FAIL",
            Token::Pass => "PASS",
            Token::Insufficient => "INSUFFICIENT",
            Token::ClarificationNeeded => "CLARIFICATION_NEEDED",
            Token::FinalPlanCreated => "FINAL_PLAN_CREATED",
            Token::Approved => "APPROVED",
            Token::MergeApproved => "MERGE_APPROVED",
            Token::DeleteApproved => "DELETE_APPROVED",
            Token::RevisionRequested => "REVISION_REQUESTED",
            Token::PrMerged => "PR_MERGED",
            Token::GoalCycleComplete => "GOAL_CYCLE_COMPLETE",
        }
    }

    /// Whether the grammar itself has it (PJ-20).
    pub fn is_of_the_grammar(self) -> bool {
        self <= Token::Insufficient
    }

    /// Only a person approves; an agent's approval is ignored.
    pub fn approves(self) -> bool {
        matches!(self, Token::Approved | Token::MergeApproved | Token::DeleteApproved)
    }
}

/// How risky a plan is (PJ-21). Ordered: the graver one counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    Low,
    Medium,
    High,
}

impl Risk {
    pub const ALL: [Risk; 3] = [Risk::Low, Risk::Medium, Risk::High];

    pub fn name(self) -> &'static str {
        match self {
            Risk::Low => "low",
            Risk::Medium => "medium",
            Risk::High => "high",
        }
    }

    pub fn parse(text: &str) -> Option<Risk> {
        Risk::ALL.into_iter().find(|risk| risk.name().eq_ignore_ascii_case(text))
    }
}
