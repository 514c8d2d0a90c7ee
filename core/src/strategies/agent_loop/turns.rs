//! From words to a turn of a loop: what somebody said, weighed with what the program knows, and the block that the cycle
//! file gets for it.

use crate::event::{Checked, Conclusion, LoopAppend, LoopTurn};
use crate::model::{
    Approval, CheckEnd, LoopState, Risk, Speaker, StepSize, Token, TurnEvent, TurnSignal, Word, counted,
};
use crate::run::{AgentLoop, Answered, Owed, PersonMessage, Run, is_yes};
use crate::strategies::agent_loop::rules::battery::{Battery, Check, objections};
use crate::strategies::agent_loop::rules::limits::{Scope, scope};
use crate::strategies::agent_loop::rules::turn::{self, TurnFacts};
use crate::strategies::agent_loop::rules::{goal, risk, states};
use crate::strategies::agent_loop::signal::{Block, render};
use crate::text::one_line;

use super::decide::{plan_risk, turn_to};

/// What a person's words mean is a matter of what they were asked.
pub(crate) fn persons_turn(run: &Run, agent_loop: &AgentLoop, said: &PersonMessage) -> Conclusion {
    let state = agent_loop.place.state;
    let to_an_agent = state.whose().filter(|whose| *whose != Speaker::Human);
    let meant = match (said.word, to_an_agent) {
        (Some(Word::Stop), _) => Ok(TurnEvent::Stop),
        (_, Some(agent)) => Err(format!("told to the {}", agent.name())),
        (Some(Word::Answer), None) if state == LoopState::Idle => read_words(run, agent_loop, said),
        (Some(word), None) => Ok(outright(word)),
        (None, None) => read_words(run, agent_loop, said),
    };
    let policy = &run.policy().looping;
    let meant = meant.and_then(|heard| {
        let then = states::after(agent_loop.place, heard, policy.pause_after);
        then.map(|place| (heard, place)).ok_or_else(|| refusal(state, heard))
    });
    let spoken = said.spoken.as_deref();
    let base = LoopTurn {
        by: Some(Speaker::Human),
        said: spoken.and_then(|spoken| spoken.result),
        summary: spoken.map_or_else(|| one_line(&said.text), |spoken| spoken.summary.clone()),
        deviations: spoken.map(|spoken| spoken.deviations.clone()).unwrap_or_default(),
        ..turn_to(agent_loop, said.line, agent_loop.place)
    };
    match meant {
        Ok((heard, place)) => {
            let (to, insufficient, failed) = (place.state, place.insufficient, place.failed);
            LoopTurn { heard: Some(heard), to, insufficient, failed, ..base }.into()
        }
        Err(why) => LoopTurn { why: vec![why], ..base }.into(),
    }
}

fn outright(word: Word) -> TurnEvent {
    match word {
        Word::Answer => TurnEvent::Answer,
        Word::Approve => TurnEvent::Approve,
        Word::Reject => TurnEvent::RequestChanges,
        Word::Restart => TurnEvent::Restart,
        Word::Clear => TurnEvent::Clear,
        Word::Stop => TurnEvent::Stop,
    }
}

fn refusal(state: LoopState, heard: TurnEvent) -> String {
    format!("{} means nothing in the state {}", heard.name().replace('_', " "), state.name())
}

/// A block from the file, or free words.
fn read_words(run: &Run, agent_loop: &AgentLoop, said: &PersonMessage) -> Result<TurnEvent, String> {
    let state = agent_loop.place.state;
    if state == LoopState::Idle {
        let vague = goal::is_vague(&agent_loop.goal, &run.policy().looping);
        return if vague { Err("the goal still says too little".to_owned()) } else { Ok(TurnEvent::Goal) };
    }
    if let Some(spoken) = &said.spoken {
        return routed(agent_loop, Speaker::Human, spoken, TurnFacts::default());
    }
    let text = said.text.trim();
    if text.is_empty() {
        return Err("nothing was said".to_owned());
    }
    let approves = is_yes(text) || matches!(text.to_lowercase().as_str(), "approve" | "approved");
    Ok(match state {
        LoopState::Gate | LoopState::Approval if approves => TurnEvent::Approve,
        LoopState::Gate | LoopState::Approval => TurnEvent::RequestChanges,
        LoopState::Paused if text.eq_ignore_ascii_case("clear") => TurnEvent::Clear,
        LoopState::Paused => TurnEvent::Restart,
        LoopState::Idle
        | LoopState::Align
        | LoopState::Waiting
        | LoopState::Execute
        | LoopState::Evaluate
        | LoopState::Landing
        | LoopState::Failed
        | LoopState::Archived
        | LoopState::Stopped => TurnEvent::Answer,
    })
}

/// What an agent's answer comes to (PJ-22): its block, and what the program knows about it.
pub(crate) fn agents_turn(run: &Run, agent_loop: &AgentLoop, by: Speaker, answered: &Answered) -> Conclusion {
    let empty = TurnSignal { fault: "no block".to_owned(), ..TurnSignal::default() };
    let spoken = answered.answer.spoken.as_deref().unwrap_or(&empty);
    let (facts, mut why) = facts(run, agent_loop, by, spoken);
    let policy = &run.policy().looping;
    let meant = routed(agent_loop, by, &as_meant(agent_loop, by, spoken), facts);
    let meant = meant.map(|heard| midway(run, agent_loop, spoken, heard)).and_then(|heard| {
        let then = states::after(agent_loop.place, heard, policy.pause_after);
        then.map(|place| (heard, place)).ok_or_else(|| refusal(agent_loop.place.state, heard))
    });
    let (heard, place) = match meant {
        Ok((heard, place)) => {
            why.extend(another_next(spoken, heard, place.state));
            (Some(heard), place)
        }
        Err(fault) => {
            why = vec![fault];
            (None, agent_loop.place)
        }
    };
    LoopTurn {
        by: Some(by),
        heard,
        said: spoken.result,
        risk: (by == Speaker::Planner).then(|| plan_risk(run, spoken.risk, &spoken.kinds)),
        summary: spoken.summary.clone(),
        why,
        deviations: spoken.deviations.clone(),
        ..turn_to(agent_loop, answered.seq, place)
    }
    .into()
}

/// What a block is told where somebody else than it names is next: no step goes past the Judge, and no PASS past a person
/// unless the loop collects its steps.
fn another_next(spoken: &TurnSignal, heard: TurnEvent, to: LoopState) -> Option<String> {
    let named = spoken.next?;
    let past_the_judge = heard == TurnEvent::Success && named != Speaker::Judge;
    let past_a_person = heard == TurnEvent::Pass && named == Speaker::Planner && to == LoopState::Approval;
    match (past_the_judge, past_a_person) {
        (true, _) => Some("the step is judged first".to_owned()),
        (false, true) => Some("a person decides about the PASS first".to_owned()),
        (false, false) => None,
    }
}

fn routed(
    agent_loop: &AgentLoop,
    by: Speaker,
    spoken: &TurnSignal,
    facts: TurnFacts,
) -> Result<TurnEvent, String> {
    let (state, rules) = (agent_loop.place.state, agent_loop.opened.rules);
    if !spoken.fault.is_empty() {
        return Err(spoken.fault.clone());
    }
    let (Some(agent), Some(next)) = (spoken.agent, spoken.next) else {
        return Err("the block names nobody".to_owned());
    };
    turn::event_of(state, turn::RoutedSignal { by, agent, result: spoken.result, next, facts, rules })
}

/// A plan of all loops is shown to a person, whoever the Planner names next (MX-02); only its questions are questions.
fn as_meant(agent_loop: &AgentLoop, by: Speaker, spoken: &TurnSignal) -> TurnSignal {
    let created = matches!(spoken.result, Some(Token::PlanCreated | Token::FinalPlanCreated));
    let shows_all = by == Speaker::Planner && created && plans_all(agent_loop);
    let next = if shows_all { Some(Speaker::Actor) } else { spoken.next };
    TurnSignal { next, ..spoken.clone() }
}

fn plans_all(agent_loop: &AgentLoop) -> bool {
    agent_loop.opened.upfront && agent_loop.whole_plan.is_none()
}

/// MX-01, PC-06: before the last step of a goal a PASS goes on, unless the Judge itself is unsure.
fn midway(run: &Run, agent_loop: &AgentLoop, spoken: &TurnSignal, heard: TurnEvent) -> TurnEvent {
    let policy = &run.policy().looping;
    let last = agent_loop.plan.as_ref().is_none_or(|plan| plan.last);
    let unsure = spoken.confidence.is_some_and(|confidence| confidence < policy.confidence_floor);
    // L-09: nobody else would look at a step that changed what judges it.
    let suspicious = agent_loop.opened.rules > 0 && !super::view::step_signs(run, agent_loop).is_empty();
    let goes_on = policy.approval == Approval::GoalComplete && !last && !unsure && !suspicious;
    if heard == TurnEvent::Pass && goes_on { TurnEvent::PassOn } else { heard }
}

/// What the program holds against a block, and in which words.
fn facts(run: &Run, agent_loop: &AgentLoop, by: Speaker, spoken: &TurnSignal) -> (TurnFacts, Vec<String>) {
    match by {
        Speaker::Planner => of_plan(run, agent_loop, spoken),
        Speaker::Actor => of_step(run, agent_loop, spoken),
        Speaker::Judge => of_verdict(run, agent_loop),
        Speaker::Human => (TurnFacts::default(), Vec::new()),
    }
}

fn of_plan(run: &Run, agent_loop: &AgentLoop, spoken: &TurnSignal) -> (TurnFacts, Vec<String>) {
    let policy = &run.policy().looping;
    let (level, mut why) = (plan_risk(run, spoken.risk, &spoken.kinds), Vec::new());
    let asked = risk::gate(level, spoken.confidence, false, policy) == risk::Gate::Ask;
    if asked && level == Risk::High {
        why.push("high risk".to_owned());
    } else if asked {
        why.push(format!("confidence {} of 10", spoken.confidence.unwrap_or(0)));
    }
    if plans_all(agent_loop) {
        why.push("the plan of all loops needs a yes".to_owned());
    }
    why.extend(spoken.forbidden.iter().map(|found| format!("forbidden command: {found}")));
    let facts = TurnFacts {
        gated: asked || plans_all(agent_loop),
        grave: spoken.forbidden.is_some(),
        ..TurnFacts::default()
    };
    (facts, why)
}

fn of_step(run: &Run, agent_loop: &AgentLoop, spoken: &TurnSignal) -> (TurnFacts, Vec<String>) {
    let mut why = Vec::new();
    // A person who said yes to a plan with such a command said yes to the command.
    let allowed = agent_loop.plan.as_ref().is_some_and(|plan| plan.approved && plan.forbidden);
    let grave = spoken.forbidden.as_ref().filter(|_| !allowed);
    why.extend(grave.map(|found| format!("forbidden command: {found}")));
    let size = spoken.size.unwrap_or_default();
    let policy = &run.policy().looping;
    let oversized = step_scope(run, agent_loop, size) == Scope::Exceeded;
    if oversized {
        let said = |lines: u32, files: u32| (counted(lines, "line"), counted(files, "file"));
        let ((lines, files), (most, allowed)) =
            (said(size.lines, size.files), said(policy.lines, policy.files));
        why.push(format!("the step is too large: {lines} in {files}, {most} or {allowed} allowed"));
    }
    let nothing_done = size.files == 0 && spoken.result == Some(Token::Success);
    if nothing_done {
        why.push("nothing was changed".to_owned());
    }
    let own_file = own_file(run, agent_loop);
    why.extend(
        own_file.iter().map(|path| {
            format!("it changes {path}, which only the program writes: take that out of the step")
        }),
    );
    let taken_back = oversized || own_file.is_some();
    if let Some(work) = run.work.as_ref().filter(|work| taken_back && !work.kept_as.is_empty()) {
        why.push(format!("what was done is kept as {}", work.kept_as));
    }
    let own_file = own_file.is_some();
    (TurnFacts { grave: grave.is_some(), oversized, nothing_done, own_file, ..TurnFacts::default() }, why)
}

/// L-04: the cycle file and its archives are the program's. A step with one of them could never land, because the file in
/// the working tree is not the one of the step.
fn own_file(run: &Run, agent_loop: &AgentLoop) -> Option<String> {
    if agent_loop.opened.rules == 0 {
        return None;
    }
    let path = agent_loop.opened.path.as_str();
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let archives = format!("{folder}/archive/");
    let mut files = run.work.iter().flat_map(|work| &work.files).map(|file| file.path.as_str());
    files.find(|file| *file == path || (!folder.is_empty() && file.starts_with(&archives))).map(str::to_owned)
}

pub(crate) fn step_scope(run: &Run, agent_loop: &AgentLoop, size: StepSize) -> Scope {
    scope(size, agent_loop.plan.as_ref().map(|plan| plan.risk), &run.policy().looping)
}

/// PJ-45: the battery's word, whatever the Judge says. Scope was looked at when the Actor came back.
fn of_verdict(run: &Run, agent_loop: &AgentLoop) -> (TurnFacts, Vec<String>) {
    let Some(done) = &agent_loop.battery else {
        return (TurnFacts { objections: true, ..TurnFacts::default() }, vec!["nothing was run".to_owned()]);
    };
    let of = |checked: &Checked, crashed: Check| match checked.end {
        CheckEnd::Passed => Check::Passed,
        CheckEnd::Failed if checked.failed_before_too() => Check::FailedBefore,
        CheckEnd::Failed => Check::Failed,
        CheckEnd::Missing => Check::Missing,
        CheckEnd::Crashed => crashed,
    };
    let battery = Battery {
        tests: of(&done.tests, Check::Failed),
        linter: of(&done.linter, Check::Missing),
        security: of(&done.security, Check::Missing),
        scope: Scope::Within,
        judge: Some(true),
    };
    let mut why: Vec<String> =
        objections(battery, &run.policy().looping).into_iter().map(str::to_owned).collect();
    if !why.is_empty() && agent_loop.opened.rules > 0 {
        why.extend(super::view::what_fails(done));
    }
    (TurnFacts { objections: !why.is_empty(), ..TurnFacts::default() }, why)
}

/// The block the file gets: an agent's own text, and below it what it amounts to where that is something else; a person's
/// words with a block in their name.
pub(crate) fn append(run: &Run, agent_loop: &AgentLoop, owed: &Owed) -> Conclusion {
    let text = match owed.turn.by {
        None => owed.text.clone(),
        Some(Speaker::Human) => format!("{}\n\n{}", owed.text.trim(), block(run, agent_loop, owed)),
        Some(Speaker::Planner | Speaker::Actor | Speaker::Judge) => overruled(run, agent_loop, owed),
    };
    let judged = owed.turn.by == Some(Speaker::Judge) && agent_loop.opened.rules > 0;
    let above = if judged { super::view::results(run, agent_loop) } else { owed.above.clone() };
    LoopAppend {
        speaker: owed.speaker,
        number: agent_loop.blocks + 1,
        seal: agent_loop.seal.clone(),
        artifact: owed.artifact.clone(),
        text,
        above,
        diff: owed.diff.clone(),
    }
    .into()
}

/// PJ-23: the last block decides who is next, so where the program overrules one, its own stands below it.
fn overruled(run: &Run, agent_loop: &AgentLoop, owed: &Owed) -> String {
    let turn = &owed.turn;
    let same = match turn.heard {
        Some(TurnEvent::Fail | TurnEvent::GraveFail) => {
            turn.said == Some(Token::Fail) && turn.to != LoopState::Paused && turn.why.is_empty()
        }
        Some(TurnEvent::Insufficient) => {
            turn.said == Some(Token::Insufficient) && turn.to != LoopState::Paused && turn.why.is_empty()
        }
        Some(TurnEvent::GatedPlan | TurnEvent::PassOn) => false,
        Some(TurnEvent::Success | TurnEvent::Pass) => turn.why.is_empty(),
        Some(
            TurnEvent::Goal
            | TurnEvent::Questions
            | TurnEvent::Answer
            | TurnEvent::Plan
            | TurnEvent::NeedsPerson
            | TurnEvent::Unclear
            | TurnEvent::Approve
            | TurnEvent::RequestChanges
            | TurnEvent::Landed
            | TurnEvent::NotLanded
            | TurnEvent::Restart
            | TurnEvent::Clear
            | TurnEvent::Stop,
        )
        | None => true,
    };
    if same {
        return String::new();
    }
    let told: String = turn.why.iter().map(|why| format!("- {why}\n")).collect();
    format!("What the program makes of it:\n\n{told}\n{}", block(run, agent_loop, owed))
}

fn block(run: &Run, agent_loop: &AgentLoop, owed: &Owed) -> String {
    let turn = &owed.turn;
    let (result, next) = in_the_grammar(turn);
    let overrules = agent_loop.opened.rules > 0 && turn.by != Some(Speaker::Human);
    let summary = match (turn.summary.as_str(), turn.why.as_slice()) {
        // L-10: the agent's summary is of the verdict that does not count.
        (_, _) if overrules => own_summary(turn),
        ("", []) => turn.heard.map_or("told", TurnEvent::name).replace('_', " "),
        ("", why) => why.join("; "),
        (summary, _) => summary.to_owned(),
    };
    render(Block {
        agent: owed.speaker,
        result,
        summary: &summary,
        next,
        project: &agent_loop.opened.project,
        step: run.number(),
    })
}

/// What the program's own block says: why it overrules, or what comes of the turn.
fn own_summary(turn: &LoopTurn) -> String {
    let paused = (turn.to == LoopState::Paused).then(|| {
        match turn.failed.filter(|_| turn.heard == Some(TurnEvent::Fail)) {
            Some(failed) => format!("the Actor failed {failed} times in a row, the loop is paused"),
            None => format!("{} INSUFFICIENT in a row, the loop is paused", turn.insufficient),
        }
    });
    let said: Vec<String> = turn.why.iter().cloned().chain(paused).collect();
    match (said.as_slice(), turn.heard) {
        ([], Some(TurnEvent::PassOn)) => "the step passes, the goal goes on".to_owned(),
        ([], Some(TurnEvent::GatedPlan)) => "the plan waits for a person's approval".to_owned(),
        ([], heard) => heard.map_or("told", TurnEvent::name).replace('_', " "),
        (said, _) => said.join("; "),
    }
}

fn in_the_grammar(turn: &LoopTurn) -> (Token, Speaker) {
    let next = turn.to.whose().unwrap_or(Speaker::Judge);
    let result = match turn.heard {
        Some(TurnEvent::Goal | TurnEvent::Restart | TurnEvent::Answer) | None => Token::Init,
        Some(TurnEvent::Questions) => Token::ClarificationNeeded,
        Some(TurnEvent::Plan) => Token::PlanCreated,
        Some(TurnEvent::GatedPlan) => Token::PlanUpdated,
        Some(TurnEvent::Success) => Token::Success,
        Some(TurnEvent::Fail | TurnEvent::GraveFail | TurnEvent::NeedsPerson) => Token::Fail,
        Some(TurnEvent::Pass | TurnEvent::PassOn) => Token::Pass,
        Some(TurnEvent::Insufficient | TurnEvent::Unclear | TurnEvent::Landed | TurnEvent::NotLanded) => {
            Token::Insufficient
        }
        Some(TurnEvent::Approve) => Token::Approved,
        Some(TurnEvent::RequestChanges) => Token::RevisionRequested,
        Some(TurnEvent::Clear | TurnEvent::Stop) => Token::GoalCycleComplete,
    };
    (result, next)
}
