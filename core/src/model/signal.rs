//! The words of the loop between a person, a Planner, an Actor and a Judge: the speaker, the result and the risk.

use serde::{Deserialize, Serialize};

use super::named::named;

named! {
    /// The author of a block in the cycle file, and the next one.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Speaker {
        Human = "Human",
        Planner = "Planner",
        Actor = "Actor",
        Judge = "Judge",
    }
}

impl Speaker {
    pub fn parse(text: &str) -> Option<Speaker> {
        Speaker::ALL.into_iter().find(|speaker| speaker.name().eq_ignore_ascii_case(text))
    }
}

named! {
    /// The result of a block. The first seven are the grammar's own (PJ-20), the others are accepted (PC-02, PC-04).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "SCREAMING_SNAKE_CASE")]
    pub enum Token {
        Init = "INIT",
        PlanCreated = "PLAN_CREATED",
        PlanUpdated = "PLAN_UPDATED",
        Success = "SUCCESS",
        Fail = "FAIL",
        Pass = "PASS",
        Insufficient = "INSUFFICIENT",
        ClarificationNeeded = "CLARIFICATION_NEEDED",
        FinalPlanCreated = "FINAL_PLAN_CREATED",
        Approved = "APPROVED",
        MergeApproved = "MERGE_APPROVED",
        DeleteApproved = "DELETE_APPROVED",
        RevisionRequested = "REVISION_REQUESTED",
        PrMerged = "PR_MERGED",
        GoalCycleComplete = "GOAL_CYCLE_COMPLETE",
    }
}

impl Token {
    /// Whether the grammar itself has it (PJ-20).
    pub fn is_of_the_grammar(self) -> bool {
        self <= Token::Insufficient
    }

    /// Only a person approves; an agent's approval is ignored.
    pub fn approves(self) -> bool {
        matches!(self, Token::Approved | Token::MergeApproved | Token::DeleteApproved)
    }
}

named! {
    /// How risky a plan is (PJ-21). Ordered: the graver one counts.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Risk {
        Low = "low",
        Medium = "medium",
        High = "high",
    }
}

impl Risk {
    pub fn parse(text: &str) -> Option<Risk> {
        Risk::ALL.into_iter().find(|risk| risk.name().eq_ignore_ascii_case(text))
    }
}
