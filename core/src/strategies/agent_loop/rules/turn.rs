//! From a routed block to what it means in the state at hand: the bridge between the cycle file and the states.
//!
//! No agent writes for another. Only the agent whose turn it is counts, apart from a person, who may stop at any time.
//! A person's words mean what the state asks about: the same "go on, Planner" is an answer, a request for changes or a
//! restart.

use super::states::{State, TurnEvent};
use crate::model::{Speaker, Token};

/// A block that was routed (see [`crate::strategies::agent_loop::signal::route`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoutedSignal {
    /// The author of the text the block is in; text in the cycle file after our last mark is a person's.
    pub by: Speaker,
    pub agent: Speaker,
    /// `None` for an unclear result.
    pub result: Option<Token>,
    pub next: Speaker,
    /// What the program itself knows about it.
    pub facts: TurnFacts,
    /// The rules the loop began with ([`crate::model::LOOP_RULES`]).
    pub rules: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TurnFacts {
    /// The gate asks before this plan is acted on.
    pub gated: bool,
    /// A forbidden command, or a blocker that can't be removed.
    pub grave: bool,
    /// The checks have objections.
    pub objections: bool,
    /// The step is larger than allowed: it has failed whatever the Actor reports (PJ-30).
    pub oversized: bool,
    /// It reports that it is done and changed nothing.
    pub nothing_done: bool,
    /// The step changed the cycle file or an archive, which only the program writes (L-04).
    pub own_file: bool,
}

/// The event a block amounts to in this state; or why it amounts to none.
pub fn event_of(state: State, said: RoutedSignal) -> Result<TurnEvent, String> {
    if said.by != said.agent {
        return Err(format!("the {} writes in the name of the {}", said.by.name(), said.agent.name()));
    }
    if said.agent != Speaker::Human && state.whose() != Some(said.agent) {
        let turn = state.whose().map_or("nobody", Speaker::name);
        return Err(format!("the {} writes out of turn: it is the turn of {turn}", said.agent.name()));
    }
    let meant = match said.agent {
        Speaker::Human => of_human(state, said),
        Speaker::Planner => of_planner(said),
        Speaker::Actor => of_actor(said),
        Speaker::Judge => of_judge(said),
    };
    meant.ok_or_else(|| {
        let result = said.result.map_or("nothing clear", Token::name);
        format!("the {} says {result}, which means nothing in the state {}", said.agent.name(), state.name())
    })
}

fn of_human(state: State, said: RoutedSignal) -> Option<TurnEvent> {
    let approves = said.result.is_some_and(Token::approves);
    let to_planner = said.next == Speaker::Planner;
    match state {
        State::Idle => (said.result == Some(Token::Init)).then_some(TurnEvent::Goal),
        State::Waiting => (to_planner && !approves).then_some(TurnEvent::Answer),
        State::Gate | State::Approval if approves => Some(TurnEvent::Approve),
        State::Gate | State::Approval => to_planner.then_some(TurnEvent::RequestChanges),
        State::Paused => (to_planner && !approves).then_some(TurnEvent::Restart),
        State::Align
        | State::Execute
        | State::Evaluate
        | State::Landing
        | State::Failed
        | State::Archived
        | State::Stopped => None,
    }
}

fn of_planner(said: RoutedSignal) -> Option<TurnEvent> {
    match said.next {
        Speaker::Human => Some(TurnEvent::Questions),
        Speaker::Actor if said.facts.grave || said.facts.gated => Some(TurnEvent::GatedPlan),
        Speaker::Actor => Some(TurnEvent::Plan),
        Speaker::Planner | Speaker::Judge => None,
    }
}

fn of_actor(said: RoutedSignal) -> Option<TurnEvent> {
    match (said.result, said.next) {
        _ if said.facts.grave => Some(TurnEvent::GraveFail),
        _ if said.facts.oversized || said.facts.own_file => Some(TurnEvent::Fail),
        // A person who is needed is asked; only a failure that says so itself is an end (L-05, PJ-07).
        (result, Speaker::Human) if said.rules > 0 && result != Some(Token::Fail) => {
            Some(TurnEvent::NeedsPerson)
        }
        _ if said.facts.nothing_done => Some(TurnEvent::Fail),
        (Some(Token::Success), _) => Some(TurnEvent::Success),
        (Some(Token::Fail), Speaker::Human) => Some(TurnEvent::GraveFail),
        (Some(Token::Fail), _) => Some(TurnEvent::Fail),
        // Whatever else it writes: it did not do its step.
        (_, Speaker::Human) => Some(TurnEvent::GraveFail),
        (_, Speaker::Planner | Speaker::Actor | Speaker::Judge) => None,
    }
}

/// The count of INSUFFICIENT is ours: a Judge who counts otherwise pauses nothing, and prevents no pause.
fn of_judge(said: RoutedSignal) -> Option<TurnEvent> {
    match said.result {
        _ if said.facts.objections => Some(TurnEvent::Insufficient),
        Some(Token::Pass) => Some(TurnEvent::Pass),
        Some(Token::Insufficient) => Some(TurnEvent::Insufficient),
        _ => (said.next == Speaker::Human).then_some(TurnEvent::Unclear),
    }
}
