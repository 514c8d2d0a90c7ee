//! A block as the grammar has it (PJ-20, PJ-21), for what we write into the cycle file ourselves.

use crate::model::{Speaker, Token};
use crate::read::text::{cap, plain};

const MAX_SUMMARY: usize = 300;

/// The content of a block. A question uses the grammar's own words (PC-02); so does everything else that has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block<'a> {
    pub agent: Speaker,
    pub result: Token,
    pub summary: &'a str,
    pub next: Speaker,
    pub project: &'a str,
    pub step: u32,
}

pub fn render(block: Block) -> String {
    let result = match block.result {
        Token::ClarificationNeeded => Token::PlanUpdated,
        Token::FinalPlanCreated => Token::PlanCreated,
        other @ (Token::Init
        | Token::PlanCreated
        | Token::PlanUpdated
        | Token::Success
        | Token::Fail
        | Token::Pass
        | Token::Insufficient
        | Token::Approved
        | Token::MergeApproved
        | Token::DeleteApproved
        | Token::RevisionRequested
        | Token::PrMerged
        | Token::GoalCycleComplete) => other,
    };
    let (agent, result, next) = (block.agent.name(), result.name(), block.next.name());
    let project: String = block.project.chars().filter(|c| !matches!(c, '|' | '=' | ',' | ';')).collect();
    let (summary, project) = (one_line(block.summary), one_line(&project));
    format!(
        "- Agent: {agent}\n- Result: {result}\n- Step Summary: {summary}\n- Next: {next}\n\n\
         Project={project} | Agent={agent} | Step={}\n",
        block.step
    )
}

/// On one line, and never nothing.
fn one_line(text: &str) -> String {
    let text = cap(&plain(text), MAX_SUMMARY);
    let pipes = text.replace('|', "/");
    if pipes.chars().any(char::is_alphanumeric) { pipes } else { "(nothing said)".to_owned() }
}
