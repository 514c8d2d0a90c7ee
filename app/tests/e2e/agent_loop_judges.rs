//! How a loop judges, through the front door (rows L and M-02): the checks against the base, who is asked, the cycle file.

use std::fs;

use crate::agent_loop::{FILE, World, block, done, plan, says, seen};
use crate::user::PROGRAM;

/// Runs a linter that the user set, and tests that count.
fn with_linter(world: &World, script: &str) -> Vec<String> {
    world.write("lint.sh", script);
    let config = world.base().join("config.yaml");
    let linter = format!("sh {}/lint.sh", world.base().display());
    fs::write(
        &config,
        format!("loop: {{linter: \"{linter}\"}}\nsandbox: {{read: [\"{}\"]}}\n", world.base().display()),
    )
    .unwrap();
    vec!["--config".to_owned(), config.to_str().unwrap().to_owned()]
}

/// Fails on every file it finds, as linters do in old projects.
const LINT: &str = "for f in *.txt; do echo \"$f:1:1: E1 no tax in $f\"; done; exit 1\n";

#[test]
fn l_03_u_03_what_the_linter_found_before_fails_no_step_and_what_is_new_does() {
    let world = World::new();
    let more = with_linter(&world, LINT);
    let more: Vec<&str> = more.iter().map(String::as_str).collect();
    world.start(&more).is("approval", 10).tells("linter failed (as before the loop began)");
    assert!(world.text().contains("price.txt:1:1: E1 no tax"), "{}", world.text());

    let world = World::new();
    let more = with_linter(&world, LINT);
    let more: Vec<&str> = more.iter().map(String::as_str).collect();
    world.turns("actor", &[done("echo 2 > more.txt")]);
    let asks = says("Planner", "CLARIFICATION_NEEDED", "Human", "");
    world.turns("planner", &[plan("PLAN_CREATED", "low"), asks]);
    let seen = world.start(&more);
    seen.is("waiting", 10)
        .tells("tests pass, the linter fails")
        .tells("linter: more.txt:1:1: E1 no tax in more.txt");
    assert!(world.text().contains("more.txt:1:1: E1"), "{}", world.text());
    assert!(world.told("planner", 1).contains("more.txt:1:1: E1"), "the Planner is told which");
}

#[test]
fn l_05_an_actor_that_needs_a_person_is_answered_and_continues() {
    let world = World::new();
    let needs = says("Actor", "NEEDS_INPUT", "Human", "echo 'Which tax do I take?'");
    world.turns("actor", &[needs, done("echo 2 > price.txt")]);
    let asked = world.start(&[]);
    asked
        .is("waiting", 10)
        .tells("The Actor needs you")
        .tells("Which tax do I take?")
        .tells("archeflow loop answer");
    world.say(&["answer", "seven percent"]).is("approval", 10);
    assert!(world.told("planner", 1).contains("seven percent"), "{}", world.told("planner", 1));
    world.say(&["approve"]).is("archived", 0);
    assert_eq!(world.price(), "2");
}

#[test]
fn l_06_a_cycle_file_that_is_gone_is_written_again() {
    for by_hand in [false, true] {
        let world = World::new();
        if by_hand {
            let asks = says("Planner", "CLARIFICATION_NEEDED", "Human", "echo 'Which tax?'");
            world.turns("planner", &[asks, plan("PLAN_UPDATED", "low")]);
            world.start(&[]).is("waiting", 10);
            let answer = block("Human", "INIT", "Planner").replace("Human says INIT", "seven percent");
            world.write_cycle(&format!("{}\nIt is seven percent.\n\n{answer}", world.text()));
            world.say(&["answer"]).is("approval", 10);
        } else {
            world.start(&[]).is("approval", 10);
        }
        let before = world.text();
        fs::remove_file(world.root().join(FILE)).unwrap();
        world.say(&["status"]).tells("the file is gone");
        world.say(&["approve"]).is("archived", 0);
        let after = world.text();
        if by_hand {
            assert!(after.contains("It is seven percent."), "{after}");
        } else {
            assert_eq!(after.get(..before.len()), Some(before.as_str()), "byte for byte what it was");
        }
        let blocks = |text: &str| text.matches("archeflow: begin").count();
        assert_eq!(blocks(&after), blocks(&before) + 1, "{after}");
        assert_eq!((world.price().as_str(), world.archives().len()), ("2", 1));
    }
}

#[test]
fn l_08_m_02_the_change_can_be_seen_where_it_is_asked_about() {
    let world = World::new();
    let seen = world.start(&[]);
    seen.is("approval", 10).tells("changed price.txt (+1 -1)").tells("see the change: git diff HEAD...");
    let details = seen.object["question"]["details"].as_array().unwrap();
    let command =
        details.iter().filter_map(|line| line.as_str()?.strip_prefix("see the change: ")).next().unwrap();
    assert!(world.shell(command).contains("+2"), "the command shows it");
    let text = world.text();
    for part in [
        "What the step changes:",
        "~~~diff\n",
        "\n-1\n+2\n",
        "- Tests: passed",
        "- Linter: missing",
        "- Security: passed",
        "- Scope: within (2 lines in 1 file)",
    ] {
        assert!(text.contains(part), "no '{part}' in {text}");
    }
    world.say(&["approve"]).is("archived", 0);
    let archive = world.shell("cat docs/context/archive/*.md");
    assert!(archive.contains("\n-1\n+2\n") && archive.contains("- Tests: passed"), "{archive}");
}

#[test]
fn l_09_fewer_tests_than_before_are_pointed_at() {
    let world = World::new();
    world.shell("mkdir tests; echo 'echo 551 passed' > tests/run.sh; git add -A; git -c user.name=x -c user.email=x@x commit -qm Tests");
    world.turns("actor", &[done("echo 'echo 1 passed' > tests/run.sh")]);
    let mut command = world.command(PROGRAM);
    command.args(["loop", "start", "Show the prices with tax", "--json", "--agent", &world.agent()]);
    let seen = seen(&command.args(["--test-command", "sh tests/run.sh"]).output().unwrap());
    seen.is("approval", 10).tells("look at: 1 tests ran, 551 before the loop began");
    seen.tells("look at: changed and not planned: tests/run.sh");
    seen.tells("look at: what the test command runs changed: tests/run.sh");
    assert!(world.told("judge", 0).contains("1 tests ran, 551 before"), "{}", world.told("judge", 0));
}

#[test]
fn l_09_old_tests_run_on_the_new_code() {
    let prepare = "mkdir tests; echo with tax > price.txt; \
        printf '%s\\n' 'grep -q tax price.txt || { echo FAIL: no tax; exit 1; }' > tests/price_test.sh; \
        git add -A; git -c user.name=x -c user.email=x@x commit -qm Tests";
    let test_command = "for t in tests/*_test.sh; do sh $t || exit 1; done; echo 1 passed";
    let wanted = "the tests as they were before the loop do not pass on the new code: FAIL: no tax";
    // The step that changes what the tests ask for, one that only adds to them, and one that removes them.
    for (step, is_sign) in [
        ("echo without > price.txt; echo true > tests/price_test.sh", true),
        ("echo with tax and more > price.txt; echo 'grep -q more price.txt' >> tests/price_test.sh", false),
        (
            "echo without > price.txt; git rm -q tests/price_test.sh; mkdir -p tests; echo true > tests/other_test.sh",
            true,
        ),
        ("echo without > price.txt; rm -r tests; mkdir t; ln -s t tests; echo true > t/other_test.sh", true),
    ] {
        let world = World::new();
        world.shell(prepare);
        world.turns("actor", &[done(step)]);
        let mut command = world.command(PROGRAM);
        command.args(["loop", "start", "Show the prices with tax", "--json", "--agent", &world.agent()]);
        let seen = seen(&command.args(["--test-command", test_command]).output().unwrap());
        let told = world.told("judge", 0);
        assert_eq!(told.contains(wanted), is_sign, "{step}: {told}");
        assert!(told.contains("Tests as they were before the loop, on the new code"), "{step}: {told}");
        if is_sign {
            seen.is("approval", 10).tells(&format!("look at: {wanted}"));
        }
    }
}
