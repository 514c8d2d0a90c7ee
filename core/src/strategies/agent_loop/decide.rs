//! A loop (PJ-01..PJ-17): a person, a Planner, an Actor and a Judge take turns. A step is a cycle: Plan is `align`, Do is
//! `execute`, Check is `evaluate`, and the other states are questions, a landing, or the end.
//!
//! Words become a `loop.turn` first, by the rules of `rules/agent_loop`; then whatever the state asks for is ordered.

use crate::event::{
    BatteryStart, Conclusion, CycleBoundary, Failure, Hardness, LoopAlert, LoopArchive, LoopTurn, NextAction,
    Stop,
};
use crate::model::{
    Alert, CheckEnd, FileStatus, LoopState, PROGRAM, Participant, Phase, Purpose, Reason, Risk, Role,
    RunStatus, Seq, Speaker, Strategy, TurnEvent, Word, Workflow, loop_team,
};
use crate::projections::view::seconds;
use crate::run::{AgentLoop, Answered, Cycle, Run};
use crate::strategies::agent_loop::cyclefile::Ending;
use crate::strategies::agent_loop::rules::fewer::fewer;
use crate::strategies::agent_loop::rules::metrics::{self, LoopSnapshot};
use crate::strategies::agent_loop::rules::recovery::{LoopFault, Remedy, remedy};
use crate::strategies::agent_loop::rules::states::{self, LoopPosition};
use crate::strategies::agent_loop::rules::{goal, risk};
use crate::text::one_line;

use crate::steps::{boundary, budget, enter, finish, land, onward, point, send, settle, stop};
use crate::strategies::{Patience, StrategyRules};

use super::turns::{agents_turn, persons_turn};
use super::{LoopStrategy, asks};

impl StrategyRules for LoopStrategy {
    fn can_roll_back(&self) -> bool {
        false
    }

    fn seats_key(&self, _: Workflow) -> &'static str {
        Strategy::Loop.name()
    }

    fn team(&self, _: Workflow) -> Vec<Participant> {
        loop_team()
    }

    fn begin(&self, run: &Run) -> Vec<Conclusion> {
        run.agent_loop.as_ref().map_or_else(Vec::new, |agent_loop| begin(run, agent_loop))
    }

    fn next(&self, run: &Run, cycle: &Cycle) -> Vec<Conclusion> {
        run.agent_loop.as_ref().map_or_else(Vec::new, |agent_loop| next(run, cycle, agent_loop))
    }

    fn is_opened(&self, run: &Run) -> bool {
        run.agent_loop.is_some()
    }

    /// Each step compares its checks with those of the base (L-03).
    fn tests_base(&self) -> bool {
        false
    }

    fn answers_in_file(&self) -> bool {
        true
    }

    fn work(&self, run: &Run, role: Role) -> &'static str {
        match role {
            Role::Creator => "plan one step, or ask",
            Role::Maker => "carry out the step",
            Role::Gatekeeper => "judge the step",
            Role::Explorer | Role::Reviewer => send::work(run, role),
        }
    }

    /// PJ-50: an agent that could not reach its provider is tried again after a pause that grows.
    fn patience(&self, run: &Run, failure: Failure, tried: u32) -> Option<Patience> {
        if failure != Failure::Network {
            return None;
        }
        Some(match remedy(LoopFault::Network, tried.saturating_sub(1), &run.policy().looping) {
            Remedy::RetryAfter(ms) => Patience::RetryAfter(ms),
            Remedy::Retry
            | Remedy::RetryWithFewer
            | Remedy::ToPlanner
            | Remedy::ToHuman
            | Remedy::AskAgain => Patience::Exhausted,
        })
    }

    fn agreed_to_land(&self, run: &Run) -> bool {
        run.landing.agreed || run.loop_state() == LoopState::Landing
    }

    fn landed(&self, run: &Run) -> Vec<Conclusion> {
        landing_ended(run, TurnEvent::Landed, String::new())
    }

    /// Back to the person who approved it (PJ-11).
    fn not_landed(&self, run: &Run, _: RunStatus, _: Reason, detail: String) -> Vec<Conclusion> {
        landing_ended(run, TurnEvent::NotLanded, detail)
    }

    fn taken_back(&self, run: &Run, _: &Cycle, detail: String) -> Vec<Conclusion> {
        landing_ended(run, TurnEvent::NotLanded, format!("{detail}; the merge was taken back"))
    }

    fn cycle_began(&self, run: &mut Run) {
        run.begin_step();
    }

    fn worked(&self, run: &mut Run, ms: u64) {
        run.worked_alone(ms);
    }

    /// What lands of a loop has passed and was approved, and its steps continue where they were.
    fn asked_to_land(&self, run: &mut Run, line: Seq) -> bool {
        run.loop_asked_to_land(line);
        true
    }

    fn reentered(&self, run: &mut Run) -> bool {
        if !run.loop_is_over() {
            run.reopen();
        }
        true
    }

    fn can_continue(&self, run: &Run) -> bool {
        !run.loop_is_over()
    }
}

/// Before the first step: what is wanted, and how it goes.
fn begin(run: &Run, agent_loop: &AgentLoop) -> Vec<Conclusion> {
    let policy = &run.policy().looping;
    let how =
        if agent_loop.opened.upfront { "all loops are planned and approved first" } else { "step by step" };
    let limit = format!("{how}; {} INSUFFICIENT in a row pause it", policy.pause_after);
    vec![
        point(
            PROGRAM,
            "PJ-01",
            one_line(&agent_loop.goal),
            format!("loop {}, {limit}", agent_loop.opened.cycle_id),
        ),
        enter(run, "start", 1, Phase::Plan),
    ]
}

/// What follows when nothing is out.
fn next(run: &Run, cycle: &Cycle, agent_loop: &AgentLoop) -> Vec<Conclusion> {
    let over = matches!(agent_loop.place.state, LoopState::Failed | LoopState::Archived | LoopState::Stopped);
    let alerts = alerts(run, agent_loop);
    if !alerts.is_empty() {
        return alerts;
    }
    // Nobody has to mend a file first in order to stop.
    let stops = agent_loop.said.as_ref().is_some_and(|said| said.word == Some(Word::Stop));
    match (&agent_loop.edited, &agent_loop.owed) {
        (Some(edited), _) if !over && !stops => return asks::about_the_file(agent_loop, edited),
        (None, Some(owed)) => return vec![super::turns::append(run, agent_loop, owed)],
        (Some(_), _) | (None, None) => {}
    }
    if agent_loop.step_over && cycle.boundary.is_none() {
        return vec![concluded(run, cycle, agent_loop)];
    }
    // What has landed has landed, whoever said stop meanwhile.
    let landed = agent_loop.place.state == LoopState::Landing && run.landing.merged.is_some();
    if let Some(said) = agent_loop.said.as_ref().filter(|_| !landed) {
        return vec![persons_turn(run, agent_loop, said)];
    }
    if let Some((speaker, answered)) = untaken(cycle, agent_loop) {
        return vec![agents_turn(run, agent_loop, speaker, answered)];
    }
    in_state(run, cycle, agent_loop)
}

fn in_state(run: &Run, cycle: &Cycle, agent_loop: &AgentLoop) -> Vec<Conclusion> {
    match agent_loop.place.state {
        LoopState::Idle => idle(run, agent_loop),
        LoopState::Align if cycle.boundary.is_some() => next_step(run, cycle),
        LoopState::Align => seat(run, cycle, agent_loop, Role::Creator),
        LoopState::Execute => {
            in_phase(run, cycle, Phase::Do).unwrap_or_else(|| seat(run, cycle, agent_loop, Role::Maker))
        }
        LoopState::Evaluate => in_phase(run, cycle, Phase::Check)
            .or_else(|| battery(run, agent_loop))
            .unwrap_or_else(|| seat(run, cycle, agent_loop, Role::Gatekeeper)),
        LoopState::Waiting => asks::waiting(run, agent_loop),
        LoopState::Gate => asks::gate(agent_loop),
        LoopState::Approval => {
            in_phase(run, cycle, Phase::Act).unwrap_or_else(|| asks::approval(run, agent_loop))
        }
        LoopState::Landing => land::land(run, cycle),
        LoopState::Paused => paused(run, agent_loop),
        LoopState::Failed => archive(agent_loop, Ending::Failed).unwrap_or_else(|| {
            let why = agent_loop.blockers.last().map_or("nothing more can be done", String::as_str);
            finish(run, RunStatus::Failed, Reason::LoopFailed, format!("the loop failed: {why}"))
        }),
        LoopState::Archived => {
            archive(agent_loop, Ending::Success).unwrap_or_else(|| land::landed_for_good(run))
        }
        LoopState::Stopped => {
            finish(run, RunStatus::Stopped, Reason::LoopStopped, "you stopped the loop".to_owned())
        }
    }
}

/// PJ-01: a goal that says something begins a loop; another one is asked about. One that was begun and cleared is over.
fn idle(run: &Run, agent_loop: &AgentLoop) -> Vec<Conclusion> {
    if agent_loop.begun {
        let detail = "the loop was given up; its file can be cleared".to_owned();
        return finish(run, RunStatus::Stopped, Reason::LoopStopped, detail);
    }
    let policy = &run.policy().looping;
    if goal::is_vague(&agent_loop.goal, policy) {
        return asks::vague(agent_loop);
    }
    let place = states::after(agent_loop.place, TurnEvent::Goal, policy.pause_after);
    let turn = LoopTurn {
        by: Some(Speaker::Human),
        heard: Some(TurnEvent::Goal),
        summary: one_line(&agent_loop.goal),
        ..turn_to(agent_loop, agent_loop.line, place.unwrap_or(agent_loop.place))
    };
    vec![turn.into()]
}

/// Sends whoever's turn it is; before that, whatever failed before and what is asked about between steps.
fn seat(run: &Run, cycle: &Cycle, agent_loop: &AgentLoop, role: Role) -> Vec<Conclusion> {
    if let Some(events) = settle::failures(run, cycle) {
        return events;
    }
    if let Some(checkpoint) = boundary::checkpoint(run) {
        return vec![checkpoint];
    }
    let Some(seat) = run.seat(role) else {
        return finish(
            run,
            RunStatus::Failed,
            Reason::AgentFailures,
            "the loop has an empty seat".to_owned(),
        );
    };
    if role == Role::Creator && agent_loop.rounds_alone >= run.policy().looping.rounds {
        return asks::alone(agent_loop, &seat.archetype);
    }
    let retries = agent_loop.unread.saturating_sub(1);
    match (agent_loop.unread, remedy(LoopFault::Unparsable, retries, &run.policy().looping)) {
        (0, _) => vec![send(run, cycle, &seat, Purpose::Work, String::new())],
        (_, Remedy::AskAgain) => {
            let note = format!(
                "Your last answer could not be used: {}. Say the same once more, with a SIGNAL BLOCK at its end as \
                 described below. What you have done already stays done.",
                agent_loop.refused
            );
            vec![
                point(&seat.archetype, "PJ-51", agent_loop.refused.clone(), "asked once more".to_owned()),
                send(run, cycle, &seat, Purpose::Retry, note),
            ]
        }
        (_, _) => asks::unread(agent_loop, &seat.archetype),
    }
}

/// The next step, unless something says that this was the last one.
fn next_step(run: &Run, cycle: &Cycle) -> Vec<Conclusion> {
    match run.corrections.winding_down.clone().or_else(|| budget::last_cycle(run)) {
        Some(why) => stop(run, &why),
        None => vec![enter(run, cycle.phase.name(), cycle.number + 1, Phase::Plan)],
    }
}

fn in_phase(run: &Run, cycle: &Cycle, phase: Phase) -> Option<Vec<Conclusion>> {
    (cycle.phase < phase).then(|| onward(run, cycle, phase))
}

/// PJ-44: before the Judge speaks, everything that can be run is. Tests that crash are run once more, and then only those
/// that the change touches, where that can be told (PJ-50). What lands is tested with all of them in any case.
fn battery(run: &Run, agent_loop: &AgentLoop) -> Option<Vec<Conclusion>> {
    let crashed = agent_loop.battery.as_ref().is_some_and(|done| done.tests.end == CheckEnd::Crashed);
    let again = crashed
        && remedy(LoopFault::TestCrash, agent_loop.batteries.saturating_sub(1), &run.policy().looping)
            == Remedy::RetryWithFewer;
    if agent_loop.battery.is_some() && !again {
        return None;
    }
    let base = run.request.as_ref().map(|request| request.base.commit.clone()).unwrap_or_default();
    let all = run.policy().test_command.clone();
    let some = all.as_deref().filter(|_| again).and_then(|command| fewer(command, &touched(run)));
    let order = BatteryStart {
        commit: run.tip(),
        base,
        part: some.is_some(),
        test_command: some.or(all),
        limit_ms: run.policy().limits.tests_ms,
        attempt: agent_loop.batteries + 1,
    };
    Some(vec![order.into()])
}

/// The files of the change that are still there.
fn touched(run: &Run) -> Vec<&str> {
    let files = run.work.iter().flat_map(|work| &work.files);
    files.filter(|file| file.status != FileStatus::Deleted).map(|file| file.path.as_str()).collect()
}

/// PJ-10, PJ-56, PJ-71: the snapshot, a soft break, and the question.
fn paused(run: &Run, agent_loop: &AgentLoop) -> Vec<Conclusion> {
    if let Some(order) = archive(agent_loop, Ending::Incomplete) {
        return order;
    }
    let failed = agent_loop.place.failed.filter(|failed| *failed >= run.policy().looping.pause_after);
    let detail = match failed {
        Some(failed) => format!("the Actor failed {failed} times in a row: the loop is paused"),
        None => format!("{} INSUFFICIENT in a row: the loop is paused", agent_loop.place.insufficient),
    };
    if run.broke.is_none() {
        return stop(run, &Stop { reason: Reason::LoopPaused, detail, breaks: Some(Hardness::Soft) });
    }
    asks::paused(agent_loop, detail)
}

fn archive(agent_loop: &AgentLoop, ending: Ending) -> Option<Vec<Conclusion>> {
    let blockers = if ending == Ending::Success { Vec::new() } else { agent_loop.blockers.clone() };
    agent_loop.archived.is_none().then(|| vec![LoopArchive { ending, blockers }.into()])
}

/// PJ-11: what came of a landing, told by the program itself.
fn landing_ended(run: &Run, heard: TurnEvent, why: String) -> Vec<Conclusion> {
    let Some(agent_loop) = &run.agent_loop else { return vec![] };
    let place = states::after(agent_loop.place, heard, run.policy().looping.pause_after);
    let why = if why.is_empty() { Vec::new() } else { vec![why] };
    let turn = LoopTurn {
        heard: Some(heard),
        why,
        ..turn_to(agent_loop, run.lines, place.unwrap_or(agent_loop.place))
    };
    vec![turn.into()]
}

/// A turn of nobody in particular, from where the loop is to there.
pub(crate) fn turn_to(agent_loop: &AgentLoop, line: u64, to: LoopPosition) -> LoopTurn {
    LoopTurn {
        line,
        by: None,
        heard: None,
        from: agent_loop.place.state,
        to: to.state,
        insufficient: to.insufficient,
        failed: to.failed,
        said: None,
        risk: None,
        summary: String::new(),
        why: Vec::new(),
        deviations: Vec::new(),
    }
}

/// The answer of whoever's turn it is, where no turn is written about it yet.
fn untaken<'a>(cycle: &'a Cycle, agent_loop: &AgentLoop) -> Option<(Speaker, &'a Answered)> {
    let speaker = agent_loop.place.state.whose()?;
    let role = match speaker {
        Speaker::Planner => Role::Creator,
        Speaker::Actor => Role::Maker,
        Speaker::Judge => Role::Gatekeeper,
        Speaker::Human => return None,
    };
    cycle
        .answer_of(role)
        .filter(|answered| answered.seq > agent_loop.taken)
        .map(|answered| (speaker, answered))
}

/// PJ-60..PJ-63: each is told once until a person has spoken. Time is the time agents and checks took, as the log has it,
/// so that a replay tells the same.
fn alerts(run: &Run, agent_loop: &AgentLoop) -> Vec<Conclusion> {
    let plan = agent_loop.plan.as_ref().filter(|_| agent_loop.place.state == LoopState::Gate);
    let moment = LoopSnapshot {
        rounds_alone: agent_loop.rounds_alone,
        risk: plan.map(|plan| plan.risk),
        approved: plan.is_some_and(|plan| plan.approved),
        insufficient: agent_loop.place.insufficient,
        since_checkpoint_ms: agent_loop.alone_ms,
    };
    let due = metrics::alerts(moment, &run.policy().looping).into_iter();
    let due = due.filter(|alert| !agent_loop.told.contains(alert));
    due.map(|alert| LoopAlert { alert, detail: detail(alert, agent_loop) }.into()).collect()
}

fn detail(alert: Alert, agent_loop: &AgentLoop) -> String {
    match alert {
        Alert::Stuck => format!("{} rounds without a person", agent_loop.rounds_alone),
        Alert::HighRisk => "a plan of high risk waits for a person's yes".to_owned(),
        Alert::Paused => {
            format!("{} INSUFFICIENT in a row; that is what the pause is for", agent_loop.place.insufficient)
        }
        Alert::Duration => format!("{} of work without a person", seconds(agent_loop.alone_ms)),
    }
}

/// The end of a step. What is held against it is in the turns; findings of reviewers there are none.
fn concluded(run: &Run, cycle: &Cycle, agent_loop: &AgentLoop) -> Conclusion {
    let state = agent_loop.place.state;
    let met = matches!(state, LoopState::Approval);
    let next_action = match state {
        LoopState::Approval => NextAction::Merge,
        LoopState::Align => NextAction::CycleBack,
        LoopState::Idle
        | LoopState::Waiting
        | LoopState::Gate
        | LoopState::Execute
        | LoopState::Evaluate
        | LoopState::Landing
        | LoopState::Paused
        | LoopState::Failed
        | LoopState::Archived
        | LoopState::Stopped => NextAction::Stop,
    };
    CycleBoundary {
        extra_cycle: false,
        cycle: cycle.number,
        max_cycles: run.max_cycles,
        exit_condition: "pass".to_owned(),
        met,
        fixes_applied: 0,
        next_action,
        critical: 0,
        warning: 0,
        info: 0,
        convergence: None,
        stop: None,
        open: Vec::new(),
        passed_over: Vec::new(),
    }
    .into()
}

/// How risky a plan is (MX-06).
pub(crate) fn plan_risk(run: &Run, said: Option<Risk>, kinds: &[String]) -> Risk {
    let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
    risk::of(said, &kinds, &run.policy().looping)
}
