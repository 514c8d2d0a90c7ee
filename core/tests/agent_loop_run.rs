//! Drives a whole run through a loop with scripted agents, a person, and a real cycle file in memory: what the host would
//! do, without a host. Every row is one way through the states.
#![expect(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test that panics has failed, and most lines are of no interest"
)]

#[path = "loops/game.rs"]
mod game;

use archeflow_core::event::{Decision, Event, Order, QuestionKind, Report};
use archeflow_core::model::{Alert, Approval, CheckEnd, LimitMode, LoopState, Reason, RunStatus, Speaker};
use archeflow_core::projections::handoff;
use archeflow_core::projections::story::Story;
use archeflow_core::projections::story::dag::Dag;
use archeflow_core::strategies::agent_loop::brief::{Material, brief, documents, shown};
use archeflow_core::strategies::agent_loop::cyclefile::Ending;

use game::Game;

const PLAN: &str = "planner PLAN_CREATED Actor";
const DONE: &str = "actor SUCCESS Judge";
const PASS: &str = "judge PASS Human";
const RED: &str = "judge INSUFFICIENT Planner";

/// Where a script ends: the state, and the status and reason of the run if it has ended.
type End = (LoopState, Option<(RunStatus, Reason)>);

fn script(lines: &[&str]) -> Game {
    let mut game = Game::new();
    game.play(lines);
    game
}

/// Every transition, by scripted agents and people.
#[test]
fn pj_01_to_pj_17_scripts() {
    let waits = |state| (state, None);
    let ended = |state, status, reason| (state, Some((status, reason)));
    let merged = ended(LoopState::Archived, RunStatus::Merged, Reason::Approved);
    let failed = ended(LoopState::Failed, RunStatus::Failed, Reason::LoopFailed);
    let stopped = ended(LoopState::Stopped, RunStatus::Stopped, Reason::LoopStopped);
    let rows: &[(&str, &[&str], End)] = &[
        ("PJ-01 a goal begins", &[], waits(LoopState::Align)),
        ("PJ-01 a vague goal asks", &["goal fix it"], waits(LoopState::Idle)),
        ("PJ-01 it says more", &["goal fix it", "say the login timeout"], waits(LoopState::Align)),
        ("PJ-01 it says nothing", &["goal fix it", "say please"], waits(LoopState::Idle)),
        ("PJ-02 questions", &["planner PLAN_UPDATED Human"], waits(LoopState::Waiting)),
        ("PJ-02 other words", &["planner CLARIFICATION_NEEDED Human"], waits(LoopState::Waiting)),
        ("PJ-03 an answer", &["planner PLAN_UPDATED Human", "say euros"], waits(LoopState::Align)),
        ("PJ-03 by command", &["planner PLAN_UPDATED Human", "word answer euros"], waits(LoopState::Align)),
        ("PJ-03 in the file", &["planner PLAN_UPDATED Human", "file INIT Planner"], waits(LoopState::Align)),
        ("PJ-03 not a yes", &["planner PLAN_UPDATED Human", "word approve"], waits(LoopState::Waiting)),
        ("PJ-04 a plan", &[PLAN], waits(LoopState::Execute)),
        ("PJ-05 done", &[PLAN, DONE], waits(LoopState::Evaluate)),
        ("PJ-06 a blocker", &[PLAN, "actor FAIL Planner"], waits(LoopState::Align)),
        ("PJ-07 nothing helps", &[PLAN, "actor FAIL Human"], failed),
        ("PJ-07 forbidden", &[PLAN, "actor SUCCESS Judge added=rm_-rf_build"], failed),
        ("PJ-08 a pass", &[PLAN, DONE, PASS], waits(LoopState::Approval)),
        ("PJ-09 not yet", &[PLAN, DONE, RED], waits(LoopState::Align)),
        ("PJ-11 approved", &[PLAN, DONE, PASS, "say approve"], merged),
        ("PJ-11 by command", &[PLAN, DONE, PASS, "word approve"], merged),
        ("PJ-11 in the file", &[PLAN, DONE, PASS, "file APPROVED Judge"], merged),
        ("PJ-11 by merge", &[PLAN, DONE, PASS, "merge"], merged),
        ("PJ-11 a merge is no PASS", &[PLAN, DONE, "merge"], waits(LoopState::Evaluate)),
        (
            "PJ-11 it does not land",
            &[PLAN, DONE, PASS, "conflict", "say approve"],
            waits(LoopState::Approval),
        ),
        (
            "PJ-11 and then it does",
            &[PLAN, DONE, PASS, "conflict", "say approve", "no conflict", "say approve"],
            merged,
        ),
        ("PJ-12 changes", &[PLAN, DONE, PASS, "say call it otherwise"], waits(LoopState::Align)),
        ("PJ-12 by command", &[PLAN, DONE, PASS, "word reject smaller"], waits(LoopState::Align)),
        (
            "PJ-12 in the file",
            &[PLAN, DONE, PASS, "file REVISION_REQUESTED Planner"],
            waits(LoopState::Align),
        ),
        ("PJ-14 stop before it began", &["goal fix it", "say stop"], stopped),
        ("PJ-14 stop at once", &["stop"], stopped),
        ("PJ-14 stop an Actor", &[PLAN, "stop"], stopped),
        ("PJ-14 stop a Judge", &[PLAN, DONE, "stop"], stopped),
        ("PJ-14 stop at a question", &[PLAN, DONE, PASS, "say stop"], stopped),
        ("PJ-22 nonsense is asked again", &["planner nonsense"], waits(LoopState::Align)),
        ("PJ-51 twice goes to a person", &["planner nonsense", "planner nonsense"], waits(LoopState::Align)),
        (
            "PJ-51 who tells it",
            &["planner nonsense", "planner nonsense", "say use the block", PLAN],
            waits(LoopState::Execute),
        ),
        ("PJ-22 out of turn", &["planner SUCCESS Judge"], waits(LoopState::Align)),
        (
            "PJ-34 a plan with one",
            &["planner PLAN_CREATED Actor text=DROP_TABLE_users"],
            waits(LoopState::Gate),
        ),
        (
            "PJ-34 a yes to it",
            &["planner PLAN_CREATED Actor text=rm_-rf_x", "say yes", "actor SUCCESS Judge added=rm_-rf_x"],
            waits(LoopState::Evaluate),
        ),
        (
            "PJ-34 a yes to something else",
            &["planner PLAN_CREATED Actor risk=high", "say yes", "actor SUCCESS Judge added=rm_-rf_x"],
            failed,
        ),
        ("PJ-45 red tests", &[PLAN, DONE, "tests failed", PASS], waits(LoopState::Align)),
        ("PJ-45 red linter", &[PLAN, DONE, "linter failed", PASS], waits(LoopState::Align)),
        ("PJ-45 a credential", &[PLAN, DONE, "security failed", PASS], waits(LoopState::Align)),
        ("PJ-43 no tests, noted", &[PLAN, DONE, "tests missing", PASS], waits(LoopState::Approval)),
        (
            "PJ-50 a crash is tried again",
            &[PLAN, DONE, "tests crashed once", PASS],
            waits(LoopState::Approval),
        ),
        ("PJ-50 a second is a failure", &[PLAN, DONE, "tests crashed", PASS], waits(LoopState::Align)),
        ("PJ-46 nothing was done", &[PLAN, "actor SUCCESS Judge lines=0 files=0"], waits(LoopState::Align)),
        ("MX-03 unsure", &["planner PLAN_CREATED Actor confidence=4"], waits(LoopState::Gate)),
        ("MX-03 sure enough", &["planner PLAN_CREATED Actor confidence=5"], waits(LoopState::Execute)),
        ("MX-06 high risk", &["planner PLAN_CREATED Actor risk=high"], waits(LoopState::Gate)),
        (
            "MX-06 by its kind",
            &["planner PLAN_CREATED Actor risk=low kind=deployment"],
            waits(LoopState::Gate),
        ),
        ("MX-06 a no", &["planner PLAN_CREATED Actor risk=high", "say smaller"], waits(LoopState::Align)),
        ("MX-06 a yes", &["planner PLAN_CREATED Actor risk=high", "say yes"], waits(LoopState::Execute)),
        ("PJ-22 unclear verdict", &[PLAN, DONE, "judge LOOP_COMPLETE Human"], waits(LoopState::Waiting)),
        ("PC-04 a Judge approves nothing", &[PLAN, DONE, "judge APPROVED Human"], waits(LoopState::Waiting)),
    ];
    for (name, lines, (state, end)) in rows {
        let game = script(lines);
        let ended = game.run.outcome.as_ref().map(|outcome| (outcome.status, outcome.reason));
        assert_eq!((game.run.loop_state(), ended), (*state, *end), "{name}\n{}", game.told());
        game.is_consistent(name);
    }
}

/// PJ-30, PC-01, PJ-52: by the real diff, whatever the Actor says. A step that is too large is no part of what lands.
#[test]
fn pj_30_pj_52_the_size_of_a_step() {
    let rows = [
        ("lines=150 files=3", LimitMode::EitherSuffices, LoopState::Evaluate),
        ("lines=151 files=2", LimitMode::EitherSuffices, LoopState::Evaluate),
        ("lines=151 files=3", LimitMode::EitherSuffices, LoopState::Align),
        ("lines=150 files=2", LimitMode::BothRequired, LoopState::Evaluate),
        ("lines=151 files=2", LimitMode::BothRequired, LoopState::Align),
        ("lines=150 files=3", LimitMode::BothRequired, LoopState::Align),
        ("lines=164 files=2 docs", LimitMode::BothRequired, LoopState::Evaluate),
        ("lines=165 files=2 docs", LimitMode::BothRequired, LoopState::Align),
        ("lines=164 files=2", LimitMode::BothRequired, LoopState::Align),
    ];
    for (size, mode, wanted) in rows {
        let mut game = Game::new();
        game.policy().limit_mode = mode;
        game.play(&["planner PLAN_CREATED Actor risk=low", &format!("actor SUCCESS Judge {size}")]);
        assert_eq!(game.run.loop_state(), wanted, "{size}, {mode:?}\n{}", game.told());
        let kept = game.run.work.is_some();
        assert_eq!(kept, wanted == LoopState::Evaluate, "{size}: what failed is taken back\n{}", game.told());
    }
}

#[test]
fn pj_09_pj_10_pj_13_pj_56_the_fifth_pauses_and_a_restart_resets_the_count() {
    let mut game = Game::new();
    for n in 1..=5 {
        game.play(&[PLAN, DONE, RED]);
        let wanted = if n < 5 { LoopState::Align } else { LoopState::Paused };
        assert_eq!(game.run.loop_state(), wanted, "after {n}");
        assert_eq!(game.insufficient(), n);
    }
    assert_eq!(game.archives(), [(Ending::Incomplete, 5)], "{}", game.told());
    assert_eq!(game.question(), Some(QuestionKind::LoopPaused));
    assert!(game.count("wiggum.break") == 1, "a pause is a soft break");
    assert_eq!(game.alerts(), [Alert::Stuck, Alert::Paused]);
    for (words, state) in
        [("say stop", LoopState::Stopped), ("say clear", LoopState::Idle), ("stop", LoopState::Stopped)]
    {
        let mut other = game.clone();
        other.play(&[words]);
        let ended = other.run.outcome.as_ref().map(|outcome| outcome.reason);
        assert_eq!((other.run.loop_state(), ended), (state, Some(Reason::LoopStopped)), "{words}");
    }
    game.play(&["say smaller steps", PLAN, DONE, RED]);
    assert_eq!((game.run.loop_state(), game.insufficient()), (LoopState::Align, 1));
    game.play(&[PLAN, DONE, PASS, "say approve"]);
    assert_eq!(game.archives(), [(Ending::Incomplete, 5), (Ending::Success, 0)]);
    game.is_consistent("pause");
}

/// PJ-09: a PASS in between sets the count back.
#[test]
fn pj_09_four_and_a_pass_and_one_more() {
    let mut game = Game::new();
    for _ in 0..4 {
        game.play(&[PLAN, DONE, RED]);
    }
    game.play(&[PLAN, DONE, PASS, "say once more", PLAN, DONE, RED]);
    assert_eq!((game.run.loop_state(), game.insufficient()), (LoopState::Align, 1));
}

/// A pause that nobody answers parks the run; so does every other question.
#[test]
fn pj_17_an_unanswered_question_parks_the_run() {
    let mut game = Game::new();
    game.play(&[PLAN, DONE, PASS, "leave"]);
    let outcome = game.run.outcome.clone().unwrap();
    assert_eq!((outcome.status, outcome.reason), (RunStatus::AwaitingMerge, Reason::Approved));
    game.play(&["word approve"]);
    assert_eq!(game.run.loop_state(), LoopState::Archived, "{}", game.told());
    game.is_consistent("parked");
}

/// PJ-02: what the Planner asks is put to the person.
#[test]
fn pj_02_its_questions_are_asked() {
    let game = script(&["planner PLAN_UPDATED Human text=first.\\n\\nIn_euros?\\n\\n>_Or_not?\\n\\n"]);
    let (_, question) = game.run.question().unwrap();
    assert!(question.details.contains(&"In euros?".to_owned()), "{question:?}");
    assert!(!question.details.iter().any(|line| line.contains("Or not")), "a quote asks nothing");
}

/// Steps that never pass and never fail the Judge come before a person all the same.
#[test]
fn pj_60_an_unattended_loop_stops() {
    let mut game = Game::new();
    game.policy().rounds = 2;
    game.play(&[PLAN, "actor FAIL Planner", PLAN, "actor FAIL Planner"]);
    assert_eq!(game.question(), Some(QuestionKind::GoalQuestions), "{}", game.told());
    game.play(&["say try the other file", PLAN]);
    assert_eq!(game.run.loop_state(), LoopState::Execute, "{}", game.told());
    game.is_consistent("alone");
}

/// PJ-56, PJ-71: a pause that nobody answers has the page of a break, and whoever tells of runs can tell of this one.
#[test]
fn pj_71_the_page_of_a_pause() {
    let mut game = Game::new();
    for _ in 0..5 {
        game.play(&[PLAN, DONE, RED]);
    }
    game.play(&["leave"]);
    let outcome = game.run.outcome.clone().unwrap();
    assert_eq!((outcome.status, outcome.reason), (RunStatus::WiggumBreak, Reason::LoopPaused));
    let page = handoff::page("r", &game.run, &game.log).unwrap();
    assert!(page.contains("5 INSUFFICIENT in a row") && page.contains("archeflow loop restart"), "{page}");
    assert!(!page.contains("archeflow merge"), "nothing of it has passed: {page}");
    let story = Story::of("r", &game.log);
    assert_eq!((story.status(), story.reason()), ("wiggum_break", "loop_paused"));
    assert_eq!(Dag::of(&game.log).nodes.len(), game.log.len());
    game.play(&["word restart smaller", PLAN]);
    assert_eq!(game.run.loop_state(), LoopState::Execute);
}

#[test]
fn pj_57_a_failure_is_archived_as_one() {
    let game = script(&[PLAN, "actor SUCCESS Judge added=rm_-rf_build"]);
    assert_eq!(game.archives(), [(Ending::Failed, 1)]);
    assert!(game.run.work.is_none(), "nothing of it lands");
}

/// PJ-32: nothing is appended to an edited past, nobody goes on, and put back it does.
#[test]
fn pj_32_an_edited_past() {
    let mut game = Game::new();
    game.play(&[PLAN, "edit", DONE]);
    assert_eq!(game.question(), Some(QuestionKind::LoopEdited), "{}", game.told());
    let before = game.agents();
    game.play(&["say again"]);
    assert_eq!(game.question(), Some(QuestionKind::LoopEdited), "still edited");
    assert_eq!(game.agents(), before, "nobody is sent meanwhile");
    let mut other = game.clone();
    other.play(&["stop"]);
    let ended = other.run.outcome.as_ref().map(|outcome| outcome.reason);
    assert_eq!(ended, Some(Reason::LoopStopped), "nobody has to mend it first\n{}", other.told());
    game.play(&["mend", "say again", PASS]);
    assert_eq!(game.run.loop_state(), LoopState::Approval, "{}", game.told());
    game.play(&["edit", "word approve", "say stop"]);
    assert_eq!(game.run.outcome.as_ref().map(|outcome| outcome.reason), Some(Reason::LoopStopped));
}

/// People write into the file between steps: what is no block is carried along, and what is one counts once.
#[test]
fn pj_32_a_person_writes_into_the_file_between_steps() {
    let mut game = Game::new();
    game.play(&[PLAN, "scribble", DONE, "scribble", PASS, "file APPROVED Judge"]);
    assert_eq!(game.run.loop_state(), LoopState::Archived, "{}", game.told());
    assert_eq!(game.file.matches("By the way").count(), 2);
    game.is_consistent("scribbled");
}

/// MX-01: steps are collected, and only the last PASS asks.
#[test]
fn mx_01_a_goal_of_several_steps_is_asked_about_once() {
    let mut game = Game::new();
    game.policy().approval = Approval::GoalComplete;
    game.play(&[PLAN, DONE, PASS]);
    assert_eq!(game.run.loop_state(), LoopState::Align, "{}", game.told());
    game.play(&[PLAN, DONE, RED, "planner FINAL_PLAN_CREATED Actor", DONE, PASS]);
    assert_eq!(game.run.loop_state(), LoopState::Approval, "{}", game.told());
    game.play(&["say approve"]);
    assert_eq!((game.count("run.merged"), game.run.number()), (1, 3));
    game.is_consistent("goal");
}

/// MX-02: the plan of all loops needs a yes, whoever the Planner names next; later plans do not.
#[test]
fn mx_02_all_loops_are_planned_first() {
    for first in [PLAN, "planner PLAN_CREATED Human"] {
        let mut game = Game::upfront();
        game.play(&[first]);
        assert_eq!(game.question(), Some(QuestionKind::PlanApproval), "{first}\n{}", game.told());
        game.play(&["word approve", DONE, RED, PLAN]);
        assert_eq!(game.run.loop_state(), LoopState::Execute, "{}", game.told());
        assert!(game.run.agent_loop.as_ref().unwrap().whole_plan.is_some());
    }
    let mut game = Game::upfront();
    game.play(&["planner PLAN_UPDATED Human"]);
    assert_eq!(game.run.loop_state(), LoopState::Waiting, "its questions are questions");
}

/// PJ-60..PJ-63: told once each until a person has spoken, and nothing stops for them.
#[test]
fn pj_60_to_pj_63_alerts() {
    let mut game = Game::new();
    for _ in 0..4 {
        game.play(&[PLAN, DONE, RED]);
    }
    assert_eq!(game.alerts(), [Alert::Stuck]);
    game.play(&[PLAN, DONE, PASS, "say once more"]);
    for _ in 0..3 {
        game.play(&[PLAN, DONE, RED]);
    }
    assert_eq!(game.alerts(), [Alert::Stuck, Alert::Stuck]);
    let game = script(&["planner PLAN_CREATED Actor risk=high"]);
    assert_eq!(game.alerts(), [Alert::HighRisk]);
    let mut game = Game::new();
    game.policy().checkpoint_ms = 2_500;
    game.play(&[PLAN, DONE, PASS]);
    assert_eq!(game.alerts(), [Alert::Duration]);
}

/// Where the program overrules a block, its own stands last in the file: whoever routes by the file routes right (PJ-23).
#[test]
fn pj_23_the_last_block_of_the_file_says_who_is_next() {
    let rows: &[&[&str]] = &[
        &[PLAN],
        &[PLAN, DONE],
        &[PLAN, DONE, PASS],
        &[PLAN, DONE, RED],
        &[PLAN, DONE, "tests failed", PASS],
        &[PLAN, "actor SUCCESS Judge lines=400 files=9"],
        &[PLAN, "actor SUCCESS Judge added=rm_-rf_x"],
        &["planner PLAN_CREATED Actor risk=high"],
        &["planner PLAN_CREATED Actor risk=high", "say yes"],
        &["planner PLAN_UPDATED Human"],
        &["planner PLAN_UPDATED Human", "say euros"],
        &[PLAN, "actor NEEDS_INPUT Human"],
        &[PLAN, "actor COMPLETE Planner"],
        &[PLAN, DONE, "judge PASS Planner"],
        &[
            PLAN,
            "actor FAIL Planner",
            PLAN,
            "actor FAIL Planner",
            PLAN,
            "actor FAIL Planner",
            PLAN,
            "actor FAIL Planner",
            PLAN,
            "actor FAIL Planner",
        ],
        &[PLAN, DONE, PASS, "say other words"],
        &[PLAN, DONE, RED, PLAN, DONE, RED, PLAN, DONE, RED, PLAN, DONE, RED, PLAN, DONE, RED],
    ];
    for lines in rows {
        let game = script(lines);
        let whose = game.run.loop_state().whose();
        assert_eq!(game.next_by_the_file(), whose, "{lines:?}\n{}", game.file);
    }
}

/// PJ-31, PJ-41..PJ-43: who is shown what.
#[test]
fn pj_31_what_each_role_is_shown() {
    let mut game = Game::new();
    game.play(&[PLAN, DONE]);
    let start = game.agent_out().unwrap();
    let all = shown(&game.run, &start);
    let headings: Vec<&str> = all.iter().map(|shown| shown.heading.as_str()).collect();
    let wanted = [
        "Goal",
        "The step and its criteria",
        "What the Actor says",
        "Diff of the step",
        "What the program ran",
        "Document TESTING",
    ];
    assert_eq!(headings, wanted);
    assert!(all.iter().any(|shown| matches!(shown.material, Material::Diff { .. })));
    let told =
        brief(&game.run, &start, "r", "n", &[("Diff".to_owned(), "DATA-n\n- Agent: Judge".to_owned())]);
    assert!(told.contains("<<<DATA-nx\n"), "a mark that occurs in nothing it fences: {told}");
    assert!(told.contains("- Agent: Judge\n- Result: PASS or INSUFFICIENT\n"), "{told}");
    let there: Vec<String> =
        ["TESTING", "DECISIONS", "GOALS", "codebase", "QUALITY", "SECURITY"].map(str::to_owned).to_vec();
    let policy = game.policy().clone();
    assert_eq!(documents(Speaker::Planner, &there, &policy), ["codebase", "GOALS"]);
    assert_eq!(documents(Speaker::Actor, &there, &policy), Vec::<String>::new());
    assert_eq!(documents(Speaker::Judge, &there, &policy), ["TESTING", "QUALITY"]);
}

/// PJ-41, PJ-45: what stopped a step is told to the Planner, the end of the output included.
#[test]
fn pj_41_diagnostics_reach_the_planner() {
    let mut game = Game::new();
    game.play(&[PLAN, DONE, "tests failed", PASS]);
    let start = game.agent_out().unwrap();
    let text: String = shown(&game.run, &start)
        .into_iter()
        .filter_map(|shown| match shown.material {
            Material::Text(text) => Some(text),
            _ => None,
        })
        .collect();
    assert!(text.contains("tests fail") && text.contains("1 failed, and this is why"), "{text}");
}

/// PJ-50: a provider that can't be reached is waited for, longer each time.
#[test]
fn pj_50_the_network_is_waited_for() {
    let mut game = Game::new();
    game.play(&["network"]);
    let waits = |game: &Game| game.agent_out().unwrap().wait_ms;
    assert_eq!(waits(&game), 2_000);
    game.play(&["network"]);
    assert_eq!(waits(&game), 4_000);
    game.play(&[PLAN]);
    assert_eq!(game.run.loop_state(), LoopState::Execute);
}

/// The battery is really ordered, on exactly the commit that the Judge sees.
#[test]
fn pj_44_the_battery_is_run_before_the_judge_speaks() {
    let game = script(&[PLAN, DONE, PASS]);
    let mut ran = None;
    for entry in &game.log {
        match &entry.event {
            Event::Report(Report::BatteryDone(done)) => ran = Some((done.commit.clone(), done.tests.end)),
            Event::Order(Order::AgentStart(start)) if start.archetype == "judge" => {
                assert_eq!(ran, Some((start.at.clone(), CheckEnd::Passed)));
            }
            _ => {}
        }
    }
    assert!(ran.is_some());
}

/// A journal of earlier rules is decided as it was.
#[test]
fn l_05_l_07_a_loop_keeps_the_rules_it_began_with() {
    let mut game = Game::of_first_rules();
    game.play(&[PLAN, "actor NEEDS_INPUT Human"]);
    assert_eq!(game.run.loop_state(), LoopState::Failed);
    let mut game = Game::of_first_rules();
    game.play(&[PLAN, "actor FAIL Planner"].repeat(7));
    assert_eq!(game.run.loop_state(), LoopState::Align);
    let counted = game.log.iter().any(
        |entry| matches!(&entry.event, Event::Decision(Decision::LoopTurn(turn)) if turn.failed.is_some()),
    );
    assert!(!counted, "and written as it was");
}
