//! Planners, Actors, Judges and people of one seed, and the file they write in.

use std::collections::BTreeMap;

use archeflow_core::event::AgentStart;
use archeflow_core::event::{
    BatteryDone, Checked, Decision, Entry, Event, LoopAppended, LoopArchived, LoopEdited, LoopHeard,
    LoopOpened, Order, QuestionKind, Report,
};
use archeflow_core::model::{
    Answer, Approval, CheckEnd, LOOP_RULES, LimitMode, Risk, Role, Seq, Speaker, Status, StepSize, Strategy,
    Token, TurnSignal, Word,
};

use super::chance::{Chance, word};
use super::ledger::Ledger;
use super::world::World;

/// What some loop must have had; the beginnings of names.
pub(crate) const WANTED: [&str; 35] = [
    "end approved merged",
    "end approved awaiting_merge",
    "end loop_paused",
    "end loop_failed",
    "end loop_stopped",
    "end loop_edited",
    "end needs_context",
    "end agent_failures",
    "turn goal",
    "turn questions",
    "turn answer",
    "turn plan",
    "turn gated_plan",
    "turn success",
    "turn fail",
    "turn grave_fail",
    "turn needs_person",
    "turn pass",
    "turn pass_on",
    "turn insufficient",
    "turn unclear",
    "turn approve",
    "turn request_changes",
    "turn landed",
    "turn not_landed",
    "turn restart",
    "turn clear",
    "turn stop",
    "refused words of the Planner",
    "refused words of the Human",
    "alert stuck",
    "alert high_risk",
    "alert paused",
    "battery again",
    "loop.edited",
];

impl World {
    /// The same people with a goal, and a Planner, an Actor and a Judge (PJ-01..PJ-17).
    pub(crate) fn of_loop(seed: u64) -> World {
        let mut world = World::new(seed);
        let mut chance = Chance::keyed(seed, &[word("loop")]);
        world.request.strategy = Strategy::Loop;
        world.request.seats = BTreeMap::new();
        world.request.shadows = BTreeMap::new();
        world.request.dry_run = false;
        world.request.max_cycles = 5;
        let policy = &mut world.request.config.looping;
        policy.pause_after = chance.pick(&[5, 5, 5, 2, 1]);
        policy.approval = chance.pick(&[Approval::EveryPass, Approval::EveryPass, Approval::GoalComplete]);
        policy.limit_mode = chance.pick(&[LimitMode::EitherSuffices, LimitMode::BothRequired]);
        policy.linter_counts = chance.percent(70);
        policy.unread_retries = chance.pick(&[1, 1, 0, 2]);
        policy.rounds = chance.pick(&[20, 20, 3]);
        policy.checkpoint_ms = chance.pick(&[30 * 60_000, 5_000]);
        let vague = chance.percent(10);
        world.agent_loop = Some(LoopOpened {
            project: "shop".to_owned(),
            cycle_id: "2026-11-15-001".to_owned(),
            path: "docs/context/current_cycle.md".to_owned(),
            seal: "s0".to_owned(),
            goal: if vague { "fix it" } else { "a discount from 100 euros on" }.to_owned(),
            in_file: chance.percent(20),
            upfront: chance.percent(20),
            rules: chance.pick(&[LOOP_RULES, LOOP_RULES, 0]),
            ..LoopOpened::default()
        });
        world
    }

    /// How likely something is in this loop, in percent: some go far, others nowhere.
    fn likely(&self, what: &str, of: &[u64]) -> u64 {
        Chance::keyed(self.seed, &[word("loop mood"), word(what)]).pick(of)
    }
}

/// What a seat says.
pub(crate) fn said(world: &World, chance: &mut Chance, start: &AgentStart) -> Answer {
    let mut spoken = match start.role {
        Role::Creator => planned(world, chance),
        Role::Maker => acted(world, chance),
        Role::Gatekeeper | Role::Explorer | Role::Reviewer => judged(world, chance),
    };
    if chance.percent(world.likely("garbled", &[0, 0, 10, 40])) {
        spoken.fault = "no block".to_owned();
    } else if chance.percent(world.likely("out of turn", &[0, 0, 3])) {
        spoken.agent = Some(Speaker::Human);
    }
    Answer { status: Status::Done, spoken: Some(Box::new(spoken)), ..Answer::default() }
}

fn block(agent: Speaker, result: Token, next: Speaker, chance: &mut Chance) -> TurnSignal {
    TurnSignal {
        agent: Some(agent),
        result: Some(result),
        next: Some(next),
        summary: format!("so it is, {:x}", chance.below(1_000)),
        ..TurnSignal::default()
    }
}

fn planned(world: &World, chance: &mut Chance) -> TurnSignal {
    let asks = chance.percent(world.likely("asking", &[0, 10, 40]));
    let last = chance.percent(50);
    let (result, next) = match (asks, last) {
        (true, _) => (chance.pick(&[Token::PlanUpdated, Token::ClarificationNeeded]), Speaker::Human),
        (false, true) => (Token::FinalPlanCreated, Speaker::Actor),
        (false, false) => (chance.pick(&[Token::PlanCreated, Token::PlanUpdated]), Speaker::Actor),
    };
    let mut spoken = block(Speaker::Planner, result, next, chance);
    spoken.risk =
        chance.pick(&[None, Some(Risk::Low), Some(Risk::Low), Some(Risk::Medium), Some(Risk::High)]);
    spoken.confidence = chance.pick(&[None, None, Some(9), Some(5), Some(4)]);
    spoken.forbidden = forbidden(world, chance);
    spoken
}

fn acted(world: &World, chance: &mut Chance) -> TurnSignal {
    let (result, next) = match chance.percent(world.likely("failing step", &[0, 10, 60])) {
        true => chance.pick(&[
            (Token::Fail, Speaker::Planner),
            (Token::Fail, Speaker::Planner),
            (Token::Fail, Speaker::Human),
            (Token::Success, Speaker::Human),
        ]),
        false => (Token::Success, Speaker::Judge),
    };
    let mut spoken = block(Speaker::Actor, result, next, chance);
    let (lines, files) = (chance.pick(&[0, 20, 150, 151, 164, 165]), chance.pick(&[0, 1, 2, 2, 3]));
    spoken.size = Some(StepSize { lines, files, docs_only: chance.percent(20) });
    spoken.forbidden = forbidden(world, chance);
    spoken
}

fn judged(world: &World, chance: &mut Chance) -> TurnSignal {
    let passes = chance.percent(world.likely("passing", &[0, 30, 70, 95]));
    let (result, next) = match (passes, chance.below(8)) {
        (true, 0) => (Token::Pass, Speaker::Planner),
        (true, _) => (Token::Pass, Speaker::Human),
        (false, 0) => (Token::GoalCycleComplete, Speaker::Human),
        (false, _) => (Token::Insufficient, Speaker::Planner),
    };
    let mut spoken = block(Speaker::Judge, result, next, chance);
    spoken.confidence = chance.pick(&[None, None, Some(9), Some(4)]);
    spoken
}

fn forbidden(world: &World, chance: &mut Chance) -> Option<String> {
    chance.percent(world.likely("forbidden", &[0, 0, 4])).then(|| "rm -rf on line 3".to_owned())
}

/// What comes of an order that only loops have.
pub(crate) fn performed(world: &World, ledger: &Ledger, start_seq: Seq, order: &Order) -> Report {
    match order {
        Order::LoopAppend(append) => {
            let tries = ledger.count("loop.appended") + ledger.count("loop.edited");
            if world.chance("append", &[tries]).percent(world.likely("edits", &[0, 0, 5])) {
                let what = "block 1, of the Human, was edited".to_owned();
                return LoopEdited { start_seq, first: 2, last: 3, what }.into();
            }
            let seal = format!("s{}", append.number);
            let mut meanwhile = world.chance("meanwhile", &[tries]);
            let theirs = match meanwhile.below(100) {
                0..5 => "Mind the tax.".to_owned(),
                5 => "stop".to_owned(),
                _ => String::new(),
            };
            LoopAppended { start_seq, seal, blocks: append.number, theirs }.into()
        }
        Order::BatteryStart(start) => {
            let mut chance = world.chance("battery", &[ledger.count("battery.done")]);
            let red = world.likely("red", &[0, 10, 40]);
            let mut ran = |ends: &[CheckEnd]| {
                let end = if chance.percent(red) { chance.pick(ends) } else { CheckEnd::Passed };
                Checked { end, ..Checked::default() }
            };
            let tests = ran(&[CheckEnd::Failed, CheckEnd::Crashed, CheckEnd::Missing]);
            let linter = ran(&[CheckEnd::Failed, CheckEnd::Missing, CheckEnd::Crashed]);
            let security = ran(&[CheckEnd::Failed]);
            let (commit, artifact) = (start.commit.clone(), "battery.txt".to_owned());
            BatteryDone {
                start_seq,
                commit,
                tests,
                linter,
                security,
                old_tests: None,
                duration_ms: 500,
                artifact,
            }
            .into()
        }
        _ => LoopArchived { start_seq, path: "archive/x.md".to_owned(), trouble: String::new() }.into(),
    }
}

/// A person at the cycle file, or with a command.
pub(crate) fn heard(chance: &mut Chance, seq: Seq, kind: QuestionKind) -> Report {
    let fitting = match kind {
        QuestionKind::PlanApproval | QuestionKind::StepApproval => {
            [Word::Approve, Word::Approve, Word::Reject]
        }
        QuestionKind::LoopPaused => [Word::Restart, Word::Clear, Word::Restart],
        _ => [Word::Answer; 3],
    };
    let (start_seq, text) = (Some(seq), "said by a person".to_owned());
    if chance.percent(50) {
        let word = Some(match chance.percent(85) {
            true => chance.pick(&fitting),
            false => chance.pick(&Word::ALL),
        });
        return LoopHeard { start_seq, word, text, ..LoopHeard::default() }.into();
    }
    let (result, next) = chance.pick(&[
        (Token::Approved, Speaker::Judge),
        (Token::Approved, Speaker::Judge),
        (Token::RevisionRequested, Speaker::Planner),
        (Token::Init, Speaker::Planner),
    ]);
    let mut spoken = block(Speaker::Human, result, next, chance);
    if chance.percent(10) {
        spoken.agent = Some(Speaker::Judge);
    }
    LoopHeard { start_seq, spoken: Some(Box::new(spoken)), text, ..LoopHeard::default() }.into()
}

/// After so many answers of agents, whatever is under way.
pub(crate) fn stop(world: &World, ledger: &Ledger) -> Option<Report> {
    let after = world.likely("stop after", &[0, 0, 0, 0, 1, 2, 4, 7]);
    let now = after > 0 && ledger.count("agent.complete") == after && !ledger.stopped;
    now.then(|| LoopHeard { word: Some(Word::Stop), ..LoopHeard::default() }.into())
}

/// What was there, for [`WANTED`].
pub(crate) fn read(log: &[Entry], seen: &mut BTreeMap<String, u32>) {
    let mut note = |what: String| *seen.entry(what).or_default() += 1;
    for entry in log {
        match &entry.event {
            Event::Decision(Decision::LoopTurn(turn)) => match turn.heard {
                Some(heard) => note(format!("turn {}", heard.name())),
                None => note(format!("refused words of the {}", turn.by.map_or("-", Speaker::name))),
            },
            Event::Decision(Decision::LoopAlert(alert)) => note(format!("alert {}", alert.alert.name())),
            Event::Order(Order::BatteryStart(start)) if start.attempt > 1 => note("battery again".to_owned()),
            Event::Report(Report::LoopEdited(_)) => note("loop.edited".to_owned()),
            _ => {}
        }
    }
}
