//! What each agent may see (AF-030..AF-039, D-14).
//!
//! The sources have no field for a reviewer's answer, so no agent can be shown one; and an agent's brief is written
//! from what [`look`] returns, never from the sources.

use std::collections::BTreeSet;

use crate::model::{Role, Sight};

/// Everything that could be shown to an agent in this cycle. Filled by the host from artifacts and git.
#[derive(Debug, Clone, Default)]
pub struct ContextSources {
    pub task: String,
    /// The team has no Creator, so there is no proposal to be missing.
    pub unplanned: bool,
    pub research: Option<String>,
    pub proposal: Option<String>,
    pub risks: Option<String>,
    pub diff: Option<String>,
    pub summary: Option<String>,
    pub creator_feedback: Option<String>,
    pub maker_feedback: Option<String>,
}

/// What one agent is shown, each with its heading.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentContext {
    pub sections: Vec<(&'static str, String)>,
    /// Things this agent must have and the sources lack (AF-039).
    pub missing: Vec<&'static str>,
}

/// What the founding documents allow a role at the very most. A persona may ask for less.
pub fn allowed(role: Role) -> BTreeSet<Sight> {
    let sights: &[Sight] = match role {
        Role::Explorer => &[Sight::Task],
        Role::Creator => &[Sight::Task, Sight::Research, Sight::Feedback],
        Role::Maker => &[Sight::Task, Sight::Proposal, Sight::Feedback],
        Role::Gatekeeper => &[Sight::Diff, Sight::Risks],
        Role::Reviewer => &[Sight::Proposal, Sight::Diff, Sight::Summary, Sight::Risks],
    };
    sights.iter().copied().collect()
}

/// What an agent of this role with these sights is shown. In a team without a Creator the task takes the place of the proposal, and a
/// reviewer of the proposal is shown the change, for there is nothing else to review.
pub fn shown(role: Role, sees: &BTreeSet<Sight>, unplanned: bool) -> BTreeSet<Sight> {
    let mut shown: BTreeSet<Sight> = allowed(role).intersection(sees).copied().collect();
    if unplanned && shown.remove(&Sight::Proposal) {
        shown.insert(Sight::Task);
        shown.extend(Some(Sight::Diff).filter(|_| role == Role::Reviewer));
    }
    shown
}

/// Picks from the sources what this role, with these sights, may see.
pub fn look(role: Role, sees: &BTreeSet<Sight>, desk: &ContextSources) -> AgentContext {
    let mut seen = AgentContext::default();
    for sight in shown(role, sees, desk.unplanned) {
        let (heading, text, required) = match sight {
            Sight::Task => ("Task", Some(&desk.task), true),
            Sight::Research => ("Research", desk.research.as_ref(), false),
            Sight::Proposal => ("Proposal", desk.proposal.as_ref(), true),
            Sight::Risks => ("Risks named in the proposal", desk.risks.as_ref(), false),
            Sight::Diff => ("Diff", desk.diff.as_ref(), true),
            Sight::Summary => ("Implementation summary", desk.summary.as_ref(), false),
            Sight::Feedback => {
                let feedback = match role {
                    Role::Creator => desk.creator_feedback.as_ref(),
                    Role::Maker => desk.maker_feedback.as_ref(),
                    Role::Explorer | Role::Gatekeeper | Role::Reviewer => None,
                };
                ("Feedback from the last cycle", feedback, false)
            }
        };
        match text {
            Some(text) => seen.sections.push((heading, text.clone())),
            None if required => seen.missing.push(heading),
            None => {}
        }
    }
    seen
}
