//! How a loop judges (rows L and M-02): what counts as a verdict, who is asked, and what is held against a step.
#![expect(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test that panics has failed, and most lines are of no interest"
)]

#[path = "loops/game.rs"]
#[expect(dead_code, reason = "other pages ask the game for more than this one")]
mod game;

use archeflow_core::event::{Checked, Event, Order};
use archeflow_core::model::{Approval, CheckEnd, LoopState, RunStatus, Speaker};
use archeflow_core::rules::decisive::compared;
use archeflow_core::strategies::agent_loop::cyclefile::Ending;

use game::Game;

const PLAN: &str = "planner PLAN_CREATED Actor";
const DONE: &str = "actor SUCCESS Judge";
const PASS: &str = "judge PASS Human";
const RED: &str = "judge INSUFFICIENT Planner";

fn script(lines: &[&str]) -> Game {
    let mut game = Game::new();
    game.play(lines);
    game
}

/// A result that was taken back carries nothing out and lands nothing.
#[test]
fn l_02_a_verdict_that_is_taken_back_is_no_pass() {
    for word in ["~~PASS~~", "PASS?", "PASS(withdrawn)", "PASS(revoked)", "PASS(unsure)"] {
        let game = script(&[PLAN, DONE, &format!("judge {word} Human")]);
        assert_eq!(game.run.loop_state(), LoopState::Waiting, "{word}\n{}", game.told());
        let game = script(&[PLAN, DONE, &format!("judge {word} Planner")]);
        assert_eq!(game.run.loop_state(), LoopState::Align, "{word}\n{}", game.told());
        assert_eq!(game.insufficient(), 1, "{word}");
    }
    let game = script(&["planner PLAN_CREATED(superseded) Actor"]);
    assert_eq!(game.run.loop_state(), LoopState::Align, "{}", game.told());
    assert_eq!(
        game.agent_out().unwrap().archetype,
        "planner",
        "it is asked once more, and nothing is carried out"
    );
}

/// Who is next is the loop's to say: no step goes past the Judge, and a PASS for the Planner is a PASS.
#[test]
fn l_01_a_finished_step_is_judged_and_a_pass_for_the_planner_is_one() {
    for result in ["SUCCESS", "COMPLETE", "LOOP_COMPLETE"] {
        let game = script(&[PLAN, &format!("actor {result} Planner")]);
        assert_eq!(game.run.loop_state(), LoopState::Evaluate, "{result}\n{}", game.told());
    }
    let game = script(&[PLAN, DONE, "judge PASS Planner"]);
    assert_eq!(game.run.loop_state(), LoopState::Approval);
    let mut game = Game::new();
    game.policy().approval = Approval::GoalComplete;
    game.play(&[PLAN, DONE, "judge PASS Planner"]);
    assert_eq!(game.run.loop_state(), LoopState::Align, "steps are collected");
    assert_eq!(game.run.work.as_ref().map(|work| work.files.len()), Some(1), "and this one is kept");
    let game = script(&[PLAN, "actor IN_PROGRESS Actor"]);
    assert_eq!(game.agent_out().unwrap().archetype, "actor", "who names itself is asked once more");
}

/// A person who is needed is asked, and the loop continues with the answer.
#[test]
fn l_05_an_actor_that_needs_a_person_asks() {
    for said in [
        "actor NEEDS_INPUT Human text=Which_rate?\\nI_wait",
        "actor COMPLETE Human text=Which_rate?\\nI_wait",
    ] {
        let mut game = script(&[PLAN, said]);
        assert_eq!(game.run.loop_state(), LoopState::Waiting, "{}", game.told());
        let (_, question) = game.run.question().unwrap();
        assert!(question.question.starts_with("The Actor needs you"), "{}", question.question);
        assert!(question.details.iter().any(|line| line.contains("Which rate?")), "{:?}", question.details);
        assert!(game.run.work.is_none(), "nothing that nobody judged is built upon");
        game.play(&["say seven percent", PLAN, DONE, PASS, "say approve"]);
        assert_eq!(game.run.outcome.as_ref().unwrap().status, RunStatus::Merged, "{}", game.told());
        game.is_consistent(said);
    }
    let game = script(&[PLAN, "actor FAIL Human"]);
    assert_eq!(game.run.loop_state(), LoopState::Failed, "PJ-07: a failure that nothing helps is an end");
}

/// Failures of the Actor pause the loop as verdicts of the Judge do.
#[test]
fn l_07_an_actor_that_always_fails_pauses_the_loop() {
    let round = [PLAN, "actor FAIL Planner"];
    let game = script(&round.repeat(5));
    assert_eq!(game.run.loop_state(), LoopState::Paused, "{}", game.told());
    assert_eq!(game.agents(), 10);
    let (_, question) = game.run.question().unwrap();
    assert!(question.details[0].contains("the Actor failed 5 times in a row"), "{:?}", question.details);
    assert_eq!(game.archives(), [(Ending::Incomplete, 5)]);
    let mut game = script(&round.repeat(4));
    game.play(&[PLAN, DONE, RED]);
    game.play(&round.repeat(4));
    assert_eq!(game.run.loop_state(), LoopState::Align, "a finished step counts anew");
}

/// The cycle file is the program's: a step that changes it fails at once, with a reason.
#[test]
fn l_04_a_step_that_touches_the_cycle_file_is_objected_to() {
    for path in ["docs/context/current_cycle.md", "docs/context/archive/2026-11-15_cycle-001.md"] {
        let game = script(&[PLAN, &format!("actor SUCCESS Judge path={path}")]);
        assert_eq!(game.run.loop_state(), LoopState::Align, "{}", game.told());
        assert!(
            game.file.contains(&format!("it changes {path}, which only the program writes")),
            "{}",
            game.file
        );
        assert!(game.run.work.is_none(), "its work is taken back");
    }
    let game = script(&[PLAN, "actor SUCCESS Judge path=docs/context/notes.md"]);
    assert_eq!(game.run.loop_state(), LoopState::Evaluate);
}

/// The block of the program says why, not what the agent said about the verdict that does not count.
#[test]
fn l_10_an_overruled_block_has_its_own_summary() {
    let game = script(&[PLAN, DONE, "tests failed", PASS]);
    let own = game.file.rsplit("What the program makes of it").next().unwrap();
    assert!(own.contains("- Step Summary: tests fail"), "{own}");
    assert!(!own.contains("so it is"), "{own}");
}

fn failing(lines: &[&str], before: Option<CheckEnd>) -> Checked {
    let lines = lines.iter().map(|line| (*line).to_owned()).collect();
    Checked { end: CheckEnd::Failed, lines, before, ..Checked::default() }
}

/// What failed before is shown and fails no step; what is new does, and is named.
#[test]
fn l_03_a_check_that_failed_before_fails_no_step() {
    let mut game = Game::new();
    game.linter = Some(failing(&[], Some(CheckEnd::Failed)));
    game.play(&[PLAN, DONE, PASS]);
    assert_eq!(game.run.loop_state(), LoopState::Approval, "{}", game.told());
    let (_, question) = game.run.question().unwrap();
    assert!(question.details.iter().any(|line| line.contains("linter failed (as before the loop began)")));

    for before in [Some(CheckEnd::Failed), Some(CheckEnd::Passed), None] {
        let mut game = Game::new();
        game.linter = Some(failing(&["till.py:3:1: F401 unused"], before));
        game.play(&[PLAN, DONE, PASS]);
        assert_eq!(game.run.loop_state(), LoopState::Align, "{}", game.told());
        assert!(game.file.contains("linter: till.py:3:1: F401 unused"), "{}", game.file);
    }
    let mut game = Game::new();
    let more = Checked { failed: Some(2), failed_before: Some(1), ..failing(&[], Some(CheckEnd::Failed)) };
    game.tests = Some(more);
    game.play(&[PLAN, DONE, PASS]);
    assert_eq!(game.run.loop_state(), LoopState::Align, "one more test fails than before");
}

/// Lines are the same if they differ in numbers only, and count as often as they are there.
#[test]
fn l_03_the_lines_that_decide() {
    let before = "src/a.py:3:1: E501 too long\n1 failed, 5 passed in 0.31s\n";
    let rows: &[(&str, &[&str])] = &[
        ("src/a.py:4:1: E501 too long\n1 failed, 5 passed in 0.29s\n", &[]),
        ("src/a.py:4:1: E501 too long\nsrc/a.py:9:1: E501 too long\n", &["src/a.py:9:1: E501 too long"]),
        ("FAILED tests/test_a.py::test_b\n", &["FAILED tests/test_a.py::test_b"]),
        (
            "test result: ok. 5 passed; 0 failed\nit is over\n",
            &["test result: ok. 5 passed; 0 failed", "it is over"],
        ),
    ];
    for (now, new) in rows {
        assert_eq!(compared(now, Some(before)).new, *new, "{now}");
    }
    assert_eq!(compared(before, None).new.len(), 2, "without a base all of it is new");
}

/// A person who is asked sees the files and how to look at them.
#[test]
fn l_08_the_approval_names_the_files_and_the_way_to_see_them() {
    let game = script(&[PLAN, "actor SUCCESS Judge lines=9 files=2", PASS]);
    let (_, question) = game.run.question().unwrap();
    let has = |text: &str| question.details.iter().any(|line| line == text);
    assert!(has("changed file-0.rs (+9 -0)") && has("changed file-1.rs (+0 -0)"), "{:?}", question.details);
    assert!(has("see the change: git diff HEAD...archeflow/loop"), "{:?}", question.details);
}

/// A step that runs fewer tests, or changes what nobody planned, is pointed at, and is not collected unseen.
#[test]
fn l_09_fewer_tests_and_unplanned_files_are_signs() {
    let counted = |passed, before| {
        let end = CheckEnd::Passed;
        Checked { end, passed: Some(passed), passed_before: before, ..Checked::default() }
    };
    let rows = [
        (counted(1, Some(551)), DONE, Some("look at: 1 tests ran, 551 before the loop began")),
        (counted(551, Some(551)), DONE, None),
        (counted(5, None), DONE, None),
        (
            Checked { passed: None, ..counted(0, Some(3)) },
            DONE,
            Some("look at: the tests print no count any more"),
        ),
        (
            counted(3, Some(3)),
            "actor SUCCESS Judge planned=till.rs",
            Some("look at: changed and not planned: file-0.rs"),
        ),
        (counted(3, Some(3)), "actor SUCCESS Judge planned=file-0.rs", None),
        (counted(3, Some(3)), "actor SUCCESS Judge path=src/till.rs planned=till.rs", None),
        (counted(3, Some(3)), "actor SUCCESS Judge path=src/till.rs planned=src", None),
    ];
    for (tests, done, sign) in rows {
        let mut game = Game::new();
        game.tests = Some(tests.clone());
        game.play(&[PLAN, done, PASS]);
        let (_, question) = game.run.question().unwrap();
        let found = question.details.iter().find(|line| line.starts_with("look at")).map(String::as_str);
        assert_eq!(found, sign, "{:?}", question.details);

        let mut game = Game::new();
        game.policy().approval = Approval::GoalComplete;
        game.tests = Some(tests);
        game.play(&[PLAN, done, PASS]);
        let collected = if sign.is_some() { LoopState::Approval } else { LoopState::Align };
        assert_eq!(game.run.loop_state(), collected, "{done}");
    }
}

/// A step can be reviewed from the file alone: its diff is ordered with the Actor's block, the results are above the Judge's.
#[test]
fn m_02_the_cycle_file_holds_the_diff_and_the_results() {
    let game = script(&[PLAN, "actor SUCCESS Judge lines=9", PASS]);
    let appended = |by: Speaker| {
        let mut found = game.log.iter().filter_map(|entry| match &entry.event {
            Event::Order(Order::LoopAppend(append)) if append.speaker == by => Some(append.clone()),
            _ => None,
        });
        found.next_back().unwrap()
    };
    let diff = appended(Speaker::Actor).diff.unwrap();
    assert!(diff.from == "base" && diff.to.starts_with("commit-"), "{diff:?}");
    let above = appended(Speaker::Judge).above;
    for line in
        ["- Tests: passed", "- Linter: passed", "- Security: passed", "- Scope: within (9 lines in 1 file)"]
    {
        assert!(above.contains(line), "{above}");
    }
    assert!(appended(Speaker::Planner).diff.is_none());
}
