//! The next agent (PJ-22): a block that names it in a legal combination is routed, everything else is a protocol error.

use super::{How, Signal};
use crate::model::named::named;
use crate::model::{Speaker, Token};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteMode {
    /// Only what the grammar itself matches.
    Strict,
    /// What can be resolved without guessing.
    Tolerant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// The next agent, and the result. `None` is an unclear verdict; only a person gets it.
    To(Speaker, Option<Token>),
    Refused(RouteFault),
}

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum RouteFault {
        NoAgent = "no_agent",
        NoNext = "no_next",
        Conflict = "conflict",
        Illegal = "illegal",
        /// A plan that is withdrawn or hedged, or a step that is withdrawn.
        Withdrawn = "withdrawn",
        NotStrict = "not_strict",
    }
}

pub fn route(signal: &Signal, mode: RouteMode) -> Route {
    if signal.deviates(How::Conflict) {
        return Route::Refused(RouteFault::Conflict);
    }
    let Some(agent) = signal.agent else { return Route::Refused(RouteFault::NoAgent) };
    let Some(next) = signal.next else { return Route::Refused(RouteFault::NoNext) };
    if mode == RouteMode::Strict
        && signal.deviations.iter().any(|deviation| deviation.how.breaks_the_pattern())
    {
        return Route::Refused(RouteFault::NotStrict);
    }
    if is_not_meant(signal, agent, next) {
        return Route::Refused(RouteFault::Withdrawn);
    }
    match amounts_to(agent, signal.result, next) {
        Some(token) => Route::To(next, token),
        None => Route::Refused(RouteFault::Illegal),
    }
}

/// A plan with a condition is not carried out, and neither is one that was taken back; a step that is taken back is not
/// judged. What a Judge or a person takes back is unclear, and that has a way of its own.
fn is_not_meant(signal: &Signal, agent: Speaker, next: Speaker) -> bool {
    let withdrawn = signal.deviates(How::WithdrawnResult);
    match (agent, next) {
        (Speaker::Planner, Speaker::Actor) => withdrawn || signal.deviates(How::HedgedResult),
        (Speaker::Actor, Speaker::Judge) => withdrawn,
        _ => false,
    }
}

/// What a block amounts to; nothing for a combination that does not exist. Where the result means nothing, only the
/// careful reading is taken: what an Actor has done is judged, what a Judge did not clearly pass has not passed.
pub(super) fn amounts_to(agent: Speaker, result: Option<Token>, next: Speaker) -> Option<Option<Token>> {
    let Some(result) = result.filter(|token| may_say(agent, *token)) else {
        return unclear(agent, next);
    };
    is_legal(agent, result, next).then_some(Some(result))
}

fn unclear(agent: Speaker, next: Speaker) -> Option<Option<Token>> {
    match (agent, next) {
        (Speaker::Planner, Speaker::Actor) => Some(Some(Token::PlanUpdated)),
        (Speaker::Planner, Speaker::Human) => Some(Some(Token::ClarificationNeeded)),
        (Speaker::Actor, Speaker::Judge) => Some(Some(Token::Success)),
        (Speaker::Actor, Speaker::Planner) => Some(Some(Token::Fail)),
        (Speaker::Judge, Speaker::Planner) => Some(Some(Token::Insufficient)),
        (Speaker::Actor | Speaker::Judge, Speaker::Human) | (Speaker::Human, Speaker::Planner) => Some(None),
        // It is not finished; it is asked once more, as after any answer that does not end a turn.
        (Speaker::Planner, Speaker::Planner)
        | (Speaker::Actor, Speaker::Actor)
        | (Speaker::Judge, Speaker::Judge) => Some(None),
        (Speaker::Human, Speaker::Human | Speaker::Actor | Speaker::Judge)
        | (Speaker::Planner, Speaker::Judge)
        | (Speaker::Judge, Speaker::Actor) => None,
    }
}

/// Whether this agent may give a result. Only a person approves.
pub(super) fn may_say(agent: Speaker, result: Token) -> bool {
    match result {
        Token::Init
        | Token::Approved
        | Token::MergeApproved
        | Token::DeleteApproved
        | Token::RevisionRequested => agent == Speaker::Human,
        Token::PlanCreated | Token::PlanUpdated | Token::ClarificationNeeded | Token::FinalPlanCreated => {
            agent == Speaker::Planner
        }
        Token::Success | Token::Fail => agent == Speaker::Actor,
        Token::Pass | Token::Insufficient => agent == Speaker::Judge,
        Token::PrMerged | Token::GoalCycleComplete => agent != Speaker::Planner,
    }
}

fn is_legal(agent: Speaker, result: Token, next: Speaker) -> bool {
    match result {
        Token::Init | Token::RevisionRequested => next == Speaker::Planner,
        Token::PlanCreated | Token::PlanUpdated | Token::FinalPlanCreated => {
            matches!(next, Speaker::Actor | Speaker::Human)
        }
        Token::ClarificationNeeded => next == Speaker::Human,
        // A finished step goes to the Judge, and a named person is asked, whatever `Next` says (L-01, L-05).
        Token::Success => next != Speaker::Actor,
        // To a person where the command was forbidden or nothing can be done (PC-03).
        Token::Fail | Token::Insufficient => matches!(next, Speaker::Planner | Speaker::Human),
        // With steps that are collected until the goal is reached, the Planner is next (MX-01).
        Token::Pass => matches!(next, Speaker::Human | Speaker::Planner),
        // Texts name the merging agent in several ways (PC-05); the program merges, whatever agent is named.
        Token::Approved | Token::MergeApproved | Token::DeleteApproved => true,
        Token::PrMerged | Token::GoalCycleComplete => agent == Speaker::Human || next == Speaker::Human,
    }
}
