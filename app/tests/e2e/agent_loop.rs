//! Loops through the front door: real repositories, real processes, a Planner, an Actor and a Judge that follow a script.

use std::fs;
use std::ops::Deref;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::user::{PROGRAM, TestUser, printed};

pub(crate) const FILE: &str = "docs/context/current_cycle.md";

/// Plays the next of its seat's turns; the last one again and again. Keeps what it was told.
const AGENT: &str = r#"
seat="$1/$ARCHEFLOW_ROLE"
n=$(ls "$seat.told" 2>/dev/null | wc -l); mkdir -p "$seat.told"; cat > "$seat.told/$n"
turn=$(ls "$seat" | sort | head -1)
sh -e "$seat/$turn" || exit $?
if [ "$(ls "$seat" | wc -l)" -gt 1 ]; then rm "$seat/$turn"; fi
"#;

pub(crate) struct World {
    user: TestUser,
}

impl Deref for World {
    type Target = TestUser;

    fn deref(&self) -> &TestUser {
        &self.user
    }
}

impl World {
    pub(crate) fn new() -> World {
        let world = World { user: TestUser::new() };
        world.open_base();
        world.write("agent.sh", AGENT);
        world.own_repository(&world.root(), &[("price.txt", "1\n")]);
        world.turns("planner", &[plan("PLAN_CREATED", "low")]);
        world.turns("actor", &[done("echo 2 > price.txt")]);
        world.turns("judge", &[says("Judge", "PASS", "Human", "")]);
        world
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.base().join("till")
    }

    pub(crate) fn turns(&self, seat: &str, scripts: &[String]) {
        let folder = self.base().join("turns").join(seat);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        for (n, script) in scripts.iter().enumerate() {
            fs::write(folder.join(format!("{n:02}")), script).unwrap();
        }
    }

    /// What a seat was told, the first time, the second time, and so on.
    pub(crate) fn told(&self, seat: &str, time: usize) -> String {
        let path = self.base().join("turns").join(format!("{seat}.told")).join(time.to_string());
        fs::read_to_string(path).unwrap_or_default()
    }

    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = self.user.command(program);
        command.env("ARCHEFLOW_SHADOWS", "off").current_dir(self.root());
        command
    }

    pub(crate) fn shell(&self, script: &str) -> String {
        let output = self.command("sh").args(["-ec", script]).output().unwrap();
        assert!(output.status.success(), "{script}: {}", printed(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn starting(&self, more: &[&str]) -> Command {
        let mut command = self.command(PROGRAM);
        command.args(["loop", "start", "Show the prices with tax", "--project", "till", "--json"]);
        command.args(["--agent", &self.agent(), "--test-command", "test ! -e red"]).args(more);
        command
    }

    pub(crate) fn agent(&self) -> String {
        format!("cmd:sh {}/agent.sh {}/turns", self.base().display(), self.base().display())
    }

    pub(crate) fn start(&self, more: &[&str]) -> Seen {
        seen(&self.starting(more).output().unwrap())
    }

    pub(crate) fn say(&self, arguments: &[&str]) -> Seen {
        let mut command = self.command(PROGRAM);
        seen(&command.arg("loop").args(arguments).arg("--json").output().unwrap())
    }

    pub(crate) fn text(&self) -> String {
        fs::read_to_string(self.root().join(FILE)).unwrap()
    }

    pub(crate) fn write_cycle(&self, text: &str) {
        fs::write(self.root().join(FILE), text).unwrap();
    }

    pub(crate) fn archives(&self) -> Vec<String> {
        let listed = fs::read_dir(self.root().join("docs/context/archive"));
        let mut names: Vec<String> = listed
            .map(|listed| listed.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect())
            .unwrap_or_default();
        names.sort();
        names.into_iter().map(|name| name.split_once("_cycle-").unwrap().1.to_owned()).collect()
    }

    pub(crate) fn price(&self) -> String {
        self.shell("git show main:price.txt").trim().to_owned()
    }
}

/// What the program said at the end.
#[derive(Debug)]
pub(crate) struct Seen {
    code: Option<i32>,
    pub(crate) object: Value,
    told: String,
}

impl Seen {
    pub(crate) fn state(&self) -> &str {
        self.object["state"].as_str().unwrap_or("none")
    }

    #[track_caller]
    pub(crate) fn is(&self, state: &str, code: i32) -> &Seen {
        assert_eq!((self.state(), self.code), (state, Some(code)), "{}\n{:#}", self.told, self.object);
        self
    }

    #[track_caller]
    pub(crate) fn tells(&self, text: &str) -> &Seen {
        let all = format!("{}{:#}", self.told, self.object);
        assert!(all.contains(text), "no '{text}' in {all}");
        self
    }
}

pub(crate) fn seen(output: &Output) -> Seen {
    let object = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    Seen { code: output.status.code(), object, told: String::from_utf8_lossy(&output.stderr).into_owned() }
}

pub(crate) fn block(agent: &str, result: &str, next: &str) -> String {
    format!(
        "- Agent: {agent}\n- Result: {result}\n- Step Summary: {agent} says {result}\n- Next: {next}\n\n\
         Project=till | Agent={agent} | Step=1\n"
    )
}

pub(crate) fn says(agent: &str, result: &str, next: &str, before: &str) -> String {
    format!("{before}\ncat <<'END'\n{}END\n", block(agent, result, next))
}

pub(crate) fn plan(result: &str, risk: &str) -> String {
    let block =
        block("Planner", result, "Actor").replace("\n\nProject", &format!("\n- Risk: {risk}\n\nProject"));
    format!("cat <<'END'\nChange `price.txt`.\n\n{block}END\n")
}

pub(crate) fn done(work: &str) -> String {
    says("Actor", "SUCCESS", "Judge", &format!("{work}\ngit add -A && git commit -q --allow-empty -m Work"))
}

#[test]
fn pj_01_to_pj_11_from_a_goal_to_its_landing() {
    let world = World::new();
    world.start(&[]).is("approval", 10).tells("archeflow loop approve");
    let before = world.text();
    assert_eq!(before.matches("archeflow: begin").count(), 4, "{before}");
    assert_eq!(world.price(), "1", "nothing lands without a yes");
    let staged = world.shell("git diff --cached --name-only");
    world.say(&["approve"]).is("archived", 0);
    assert!(world.text().starts_with(&before), "PJ-32: earlier bytes never change");
    assert_eq!((world.price().as_str(), staged.as_str()), ("2", ""));
    assert_eq!(world.archives(), ["001.md"]);
    let metrics = world.say(&["metrics"]);
    assert_eq!((&metrics.object["succeeded"], &metrics.object["approvals"]), (&1.into(), &1.into()));
    world.say(&["clear"]);
    assert_eq!(world.text(), "");
    world.turns("actor", &[done("echo 3 > price.txt")]);
    world.start(&["--clear"]).is("approval", 10);
}

#[test]
fn pj_02_pj_03_the_planner_asks_and_is_answered() {
    for by_hand in [false, true] {
        let world = World::new();
        let asks = says("Planner", "CLARIFICATION_NEEDED", "Human", "echo 'Which tax?'");
        world.turns("planner", &[asks, plan("PLAN_UPDATED", "low")]);
        world.start(&[]).is("waiting", 10).tells("archeflow loop answer");
        assert_eq!(world.told("actor", 0), "", "the Actor must not run");
        let answered = if by_hand {
            let block = block("Human", "INIT", "Planner").replace("Human says INIT", "seven percent");
            world.write_cycle(&format!("{}\nIt is seven percent.\n\n{block}", world.text()));
            world.say(&["status"]).tells("from line");
            world.say(&["answer"])
        } else {
            world.say(&["answer", "seven percent"])
        };
        answered.is("approval", 10);
        assert!(world.told("planner", 1).contains("seven percent"), "{}", world.told("planner", 1));
        let written = world.text().matches("seven percent").count();
        assert_eq!(written, 2, "in the words and in the block, once each: {}", world.text());
    }
}

/// A change of so many lines in so many files, with this ending.
fn sized(lines: u32, files: u32, ending: &str) -> String {
    let first = lines - (files - 1);
    let rest = (1..files).map(|n| format!("echo x > part{n}.{ending}\n"));
    format!("seq {first} > part0.{ending}\n{}", rest.collect::<String>())
}

#[test]
fn pj_30_pj_52_pc_01_the_size_of_a_step_is_counted_from_its_diff() {
    let asks = says("Planner", "CLARIFICATION_NEEDED", "Human", "");
    for (lines, files, ending, mode, state) in [
        (150, 2, "sh", "both_required", "approval"),
        (151, 2, "sh", "both_required", "waiting"),
        (150, 3, "sh", "both_required", "waiting"),
        (151, 2, "sh", "either_suffices", "approval"),
        (150, 3, "sh", "either_suffices", "approval"),
        (151, 3, "sh", "either_suffices", "waiting"),
        (164, 3, "md", "either_suffices", "approval"),
        (165, 3, "md", "either_suffices", "waiting"),
    ] {
        let world = World::new();
        world.turns("planner", &[plan("PLAN_CREATED", "low"), asks.clone()]);
        world.turns("actor", &[done(&sized(lines, files, ending))]);
        let config = world.base().join("config.yaml");
        fs::write(&config, format!("loop: {{limit_mode: {mode}}}\n")).unwrap();
        let seen = world.start(&["--config", config.to_str().unwrap()]);
        assert_eq!(seen.state(), state, "{lines} lines in {files} {ending} files, {mode}: {}", seen.told);
        if state == "waiting" {
            seen.tells(&format!("{lines} lines"));
            assert_eq!(world.told("judge", 0), "", "a step that is too large is not judged");
        }
    }
}

#[test]
fn pj_09_pj_10_pj_13_the_fifth_insufficient_pauses_and_a_restart_resets_the_count() {
    let world = World::new();
    world.turns("actor", &[done("date +%N >> price.txt")]);
    world.turns("judge", &[says("Judge", "INSUFFICIENT", "Planner", "echo 'No tax yet.'")]);
    let paused = world.start(&[]);
    paused.is("paused", 10).tells("archeflow loop restart").tells("stuck");
    assert_eq!(paused.object["insufficient"], 5);
    assert_eq!(world.archives(), ["001_incomplete.md"]);
    world.say(&["approve"]).tells("is no answer to what the loop asks");
    world.turns("judge", &[says("Judge", "INSUFFICIENT", "Planner", ""), says("Judge", "PASS", "Human", "")]);
    let again = world.say(&["restart", "take the tax from tax.txt"]);
    again.is("approval", 10);
    assert!(world.told("planner", 5).contains("take the tax from tax.txt"));
    world.say(&["approve"]).is("archived", 0);
    assert_eq!(world.archives(), ["001_incomplete.md", "002.md"]);
    let metrics = world.say(&["metrics"]).object;
    assert_eq!((&metrics["paused"], &metrics["insufficient"]), (&1.into(), &6.into()));
    assert_eq!(metrics["figures"][0]["light"], "red", "{metrics:#}");
}

#[test]
fn pj_12_changes_are_requested_by_command_and_by_hand() {
    let world = World::new();
    world.turns("actor", &[done("echo 2 > price.txt"), done("echo 3 > price.txt")]);
    world.start(&[]).is("approval", 10);
    world.say(&["reject", "round it up"]).is("approval", 10);
    assert!(world.told("planner", 1).contains("round it up"));
    let wish = block("Human", "REVISION_REQUESTED", "Planner");
    world.turns("actor", &[done("echo 4 > price.txt")]);
    world.write_cycle(&format!("{}\nFour, please.\n\n{wish}", world.text()));
    world.say(&["answer"]).is("approval", 10);
    assert!(
        world.told("planner", 2).contains("REVISION_REQUESTED") || world.told("planner", 2).contains("Four")
    );
    world.say(&["approve"]).is("archived", 0);
    assert_eq!(world.price(), "4");
}

#[test]
fn pc_04_a_block_of_a_person_in_the_file_approves_and_one_that_is_shown_does_not() {
    let world = World::new();
    world.start(&[]).is("approval", 10);
    let yes = block("Human", "APPROVED", "Judge");
    let text = world.text();
    for shown in [yes.replace("- ", "> - "), format!("```\n{yes}```\n")] {
        world.write_cycle(&format!("{text}\n{shown}"));
        world.say(&["answer"]).tells("no new block of yours");
    }
    world.write_cycle(&format!("{text}\n{}", block("Judge", "PASS", "Human")));
    world.say(&["answer"]).is("approval", 10).tells("in the name of the Judge");
    assert_eq!(world.price(), "1");
    world.write_cycle(&format!("{text}\n{yes}"));
    let id = world.say(&["status"]).object["run_id"].as_str().unwrap().to_owned();
    let resumed = world.command(PROGRAM).args(["resume", &id, "--json"]).output().unwrap();
    seen(&resumed).is("archived", 0);
    assert_eq!(world.price(), "2");
}

#[test]
fn pj_32_an_edited_past_is_refused_with_its_place_and_continues_when_restored() {
    let world = World::new();
    world.start(&[]).is("approval", 10);
    let text = world.text();
    let line = text.lines().position(|line| line.contains("Planner says")).unwrap() + 1;
    world.write_cycle(&text.replace("Planner says", "Planner said"));
    let refused = world.say(&["approve"]);
    assert_eq!(refused.code, Some(10), "{}", refused.told);
    refused.tells("block 2, of the Planner, was edited").tells("archeflow loop answer again");
    let told = refused.object["question"]["question"].as_str().unwrap().to_owned();
    let place = told.split("lines ").nth(1).unwrap();
    let numbers: Vec<usize> =
        place.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).take(2).collect();
    assert!(numbers[0] <= line && line <= numbers[1], "{told}: line {line}");
    assert_eq!(world.text(), text.replace("Planner says", "Planner said"), "nothing was written");
    assert_eq!(world.price(), "1");
    world.write_cycle(&text);
    world.say(&["answer", "again"]).is("archived", 0);
    assert_eq!(world.price(), "2");
}

#[test]
fn pj_34_a_forbidden_command_waits_for_a_person_or_ends_the_loop() {
    let world = World::new();
    let plan = plan("PLAN_CREATED", "low").replace("Change `price.txt`.", "Run rm -rf build first.");
    world.turns("planner", &[plan]);
    world.start(&[]).is("gate", 10).tells("rm -rf");
    assert_eq!(world.told("actor", 0), "");
    world.say(&["approve"]).is("approval", 10);

    let world = World::new();
    world.turns("actor", &[done("echo 'rm -rf /' > clean.sh")]);
    let failed = world.start(&[]);
    assert_eq!(failed.state(), "failed", "{}", failed.told);
    failed.tells("rm -rf");
    assert_eq!(world.archives(), ["001_failed.md"]);
    assert_eq!(world.told("judge", 0), "");
    world.say(&["approve"]).tells("waits for no answer");
}

#[test]
fn mx_06_a_high_risk_is_asked_about_first() {
    let world = World::new();
    world.turns("planner", &[plan("PLAN_CREATED", "high")]);
    world.start(&[]).is("gate", 10).tells("risk: high");
    assert_eq!(world.told("actor", 0), "");
    world.say(&["reject", "smaller steps"]).is("gate", 10);
    assert!(world.told("planner", 1).contains("smaller steps"));
    world.say(&["stop"]).is("stopped", 10);
}

#[test]
fn mx_01_mx_02_all_loops_are_planned_first_and_only_the_goal_is_approved() {
    let world = World::new();
    world.turns("planner", &[plan("PLAN_CREATED", "low"), plan("FINAL_PLAN_CREATED", "low")]);
    world.turns("actor", &[done("echo 2 > price.txt"), done("echo 3 > tax.txt")]);
    world.start(&["--plan-all", "--approval", "goal_complete"]).is("gate", 10);
    world.say(&["approve"]).is("approval", 10);
    assert!(!world.told("judge", 1).is_empty(), "both steps were judged before anybody was asked");
    world.say(&["approve"]).is("archived", 0);
    assert_eq!((world.price().as_str(), world.shell("git show main:tax.txt").as_str()), ("2", "3\n"));
}

#[test]
fn pj_45_a_red_battery_overrides_a_pass_and_a_credential_blocks() {
    let asks = says("Planner", "CLARIFICATION_NEEDED", "Human", "");
    let key = ["AK", "IAIOSFODNN7QRTWPKE"].concat();
    for (work, config, why) in [
        ("touch red", "", "tests fail"),
        (
            "echo 2 > price.txt",
            "loop: {linter: 'grep -q 1 price.txt || { echo bad style; exit 1; }'}\n",
            "tests pass, the linter fails",
        ),
        ("echo 'key=KEY' > a.py", "", "security issue"),
    ] {
        let world = World::new();
        world.turns("planner", &[plan("PLAN_CREATED", "low"), asks.clone()]);
        world.turns("actor", &[done(&work.replace("KEY", &key))]);
        let file = world.base().join("config.yaml");
        fs::write(&file, config).unwrap();
        let seen = world.start(&["--config", file.to_str().unwrap()]);
        seen.is("waiting", 10).tells(why);
        assert_eq!(seen.object["insufficient"], 1, "{:#}", seen.object);
        if why == "security issue" {
            seen.tells("a.py:1: credential: cloud access key (AKIA… (20 characters))");
            assert!(!format!("{}{}", seen.told, seen.object).contains(&key), "it is shown masked");
            assert!(!world.text().contains(&key));
        }
    }
}

/// The linter of a repository is its code: it runs where the user said so, and not because it is there.
#[test]
fn s_05_a_linter_that_a_repository_brings_along_runs_only_with_permission() {
    for (config, linter) in
        [("", "linter missing"), ("loop: {detect: true}\n", "tests pass, the linter fails")]
    {
        let world = World::new();
        world.shell(
            "echo '{\"name\": \"x\", \"scripts\": {\"lint\": \"grep -q 1 price.txt\"}}' > package.json; git add -A; git -c user.name=x -c user.email=x@x commit -qm lint",
        );
        let asks = says("Planner", "CLARIFICATION_NEEDED", "Human", "");
        world.turns("planner", &[plan("PLAN_CREATED", "low"), asks]);
        world.turns("actor", &[done("echo 2 > price.txt")]);
        let file = world.base().join("config.yaml");
        fs::write(&file, config).unwrap();
        let seen = world.start(&["--config", file.to_str().unwrap()]);
        seen.is(if config.is_empty() { "approval" } else { "waiting" }, 10).tells(linter);
    }
}

/// A suite that crashes as a whole: the tests of the change are run by themselves, the person is told that this was a
/// part, and nothing lands that all of them were not run on.
#[test]
fn pj_50_after_a_crash_the_tests_of_the_change_are_run() {
    let world = World::new();
    let programs = world.base().join("bin");
    fs::create_dir(&programs).unwrap();
    let runner = programs.join("pytest");
    fs::write(
        &runner,
        "#!/bin/sh\n[ $# -gt 0 ] || kill -SEGV $$\ntest -e \"$1\" && echo \"1 passed in 0.1s\"\n",
    )
    .unwrap();
    fs::set_permissions(&runner, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    world.turns("actor", &[done("echo 2 > price.txt; mkdir tests; echo pass > tests/test_price.py")]);
    let archeflow = |arguments: &[&str]| {
        let mut command = world.command(PROGRAM);
        seen(&command.env("PATH", &path).arg("loop").args(arguments).arg("--json").output().unwrap())
    };
    let begun = archeflow(&[
        "start",
        "Show the prices with tax",
        "--agent",
        &world.agent(),
        "--test-command",
        "pytest",
    ]);
    begun
        .is("approval", 10)
        .tells("tests passed (1 passed, only those of the change), linter missing, security passed");
    begun.tells("the whole suite crashed, so only the tests of the change were run");
    assert!(
        world.told("judge", 0).contains("the whole suite crashed, so only"),
        "{}",
        world.told("judge", 0)
    );
    archeflow(&["approve"]).is("approval", 10).tells("the last landing did not happen");
    assert_eq!(world.price(), "1", "what lands is tested with all of them");
    fs::write(&runner, "#!/bin/sh\necho '7 passed in 0.1s'\n").unwrap();
    archeflow(&["approve"]).is("archived", 0);
    assert_eq!(world.price(), "2");
}

#[test]
fn pj_06_pj_51_a_fail_goes_back_and_an_answer_without_a_block_is_asked_again() {
    let world = World::new();
    let fail = says("Actor", "FAIL", "Planner", "echo 'There is no tax table.'");
    world.turns("actor", &[fail, "echo 'I did something.'".to_owned(), done("echo 2 > price.txt")]);
    world.start(&[]).is("approval", 10).tells("no block");
    assert!(world.told("planner", 1).contains("no tax table"), "{}", world.told("planner", 1));
    assert_eq!(world.say(&["status"]).object["step"], 2);
}

#[test]
fn pj_60_an_actor_that_always_fails_is_stopped() {
    let world = World::new();
    world.turns("actor", &[says("Actor", "FAIL", "Planner", "")]);
    let config = world.base().join("config.yaml");
    fs::write(&config, "loop: {max_rounds: 4}\n").unwrap();
    let seen = world.start(&["--config", config.to_str().unwrap()]);
    assert_eq!(seen.code, Some(10), "{}", seen.told);
    assert_eq!(seen.object["turn"], "Human", "{:#}", seen.object);
    seen.tells("stuck");
    assert_eq!(world.told("actor", 4), "");
}

#[test]
fn pj_44_an_unclear_verdict_is_a_question() {
    let world = World::new();
    world.turns("judge", &[says("Judge", "MOSTLY_FINE", "Human", ""), says("Judge", "PASS", "Human", "")]);
    world.turns("actor", &[done("date +%N >> price.txt")]);
    world.start(&[]).is("waiting", 10);
    assert_eq!(world.price(), "1");
    world.say(&["answer", "look at the rounding"]).is("approval", 10);
}

#[test]
fn pj_14_a_loop_is_stopped_while_its_actor_works() {
    let world = World::new();
    let works = format!("echo 9 > price.txt; touch '{}'; sleep 300", world.home().join("out").display());
    world.turns("actor", &[says("Actor", "SUCCESS", "Judge", &works)]);
    let mut child = world.starting(&[]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    world.wait_for_file("home/out");
    let status = world.say(&["status"]);
    assert_eq!(
        (status.state(), &status.object["pid"]),
        ("execute", &child.id().into()),
        "{:#}",
        status.object
    );
    world.say(&["stop"]).is("stopped", 10);
    child.wait().unwrap();
    assert_eq!(world.price(), "1");
    world.say(&["stop"]).tells("has ended already");
}

/// What a person writes while somebody works reaches whoever is next. It was not written about what that comes to, so it
/// approves nothing; but a stop is a stop.
#[test]
fn pc_04_what_is_written_while_an_agent_works_is_not_lost() {
    let approval = block("Human", "APPROVED", "Planner");
    for (during, words, state, code) in [
        ("actor", "Keep it below 3.", "approval", 10),
        ("judge", &approval, "approval", 10),
        ("actor", "Stop", "stopped", 10),
    ] {
        let world = World::new();
        // The agent stands for somebody who writes there, so the sandbox has to let it.
        fs::create_dir_all(world.root().join("docs/context")).unwrap();
        world.configure("sandbox:\n  write: [\"{base}\", \"{base}/till/docs/context\"]\n");
        fs::write(world.base().join("words"), format!("{words}\n")).unwrap();
        let writes = format!("cat \"{0}/words\" >> \"{0}/till/{FILE}\"", world.base().display());
        match during {
            "actor" => world.turns("actor", &[done(&format!("echo 2 > price.txt; {writes}"))]),
            _ => {
                world.turns("actor", &["2", "3"].map(|price| done(&format!("echo {price} > price.txt"))));
                world.turns("judge", &[says("Judge", "PASS", "Human", &writes)]);
            }
        }
        world.start(&[]).is(state, code).tells("You wrote meanwhile");
        assert!(world.text().contains(words), "{}", world.text());
        assert_eq!(world.price(), "1", "{words}: nothing lands without a yes");
        let told = [world.told("judge", 0), world.told("judge", 1)];
        match words {
            "Keep it below 3." => assert!(told[0].contains("Human: Keep it below 3."), "{}", told[0]),
            "Stop" => assert_eq!(told, ["", ""], "the Judge was not asked any more"),
            _ => {
                world.say(&["reject", "Do it anew."]).is("approval", 10);
                let planner = world.told("planner", 1);
                assert!(
                    planner.contains("Human says APPROVED") && planner.contains("Do it anew."),
                    "{planner}"
                );
            }
        }
    }
}

#[test]
fn every_wrong_command_is_refused_with_a_remedy() {
    let world = World::new();
    let rows: [(&[&str], &str); 4] = [
        (&["status"], "there is no loop in this repository"),
        (&["approve", "--run", "nobody"], "there is no loop 'nobody' here"),
        (&["start", "fix it"], "the goal says too little"),
        (&["start"], "no goal was given"),
    ];
    for (arguments, told) in rows {
        let seen = world.say(arguments);
        assert_eq!(seen.code, Some(2), "{arguments:?}: {}", seen.told);
        seen.tells(told);
    }
    world.start(&["--agent-for", "juge=cmd:true"]).tells("planner, actor, judge");
    world.say(&["start", "Show all prices", "--project", "a|b"]).tells("can't be used in a signature");
    assert!(!world.root().join(FILE).exists(), "nothing was begun");
    world.start(&[]).is("approval", 10);
    world.start(&[]).tells("is still open in this working tree");
    world.say(&["restart", "x"]).tells("is no answer to what the loop asks");
    world.say(&["reject", " "]).tells("no text was given");
    world.say(&["clear"]).tells("is still open");
    world.say(&["stop"]).is("stopped", 10);
    world.start(&[]).tells("still has an earlier cycle in it").tells("--clear");
}

#[test]
fn pj_40_the_goal_may_stand_in_the_file() {
    let world = World::new();
    fs::create_dir_all(world.root().join("docs/context")).unwrap();
    let goal = block("Human", "INIT", "Planner").replace("Human says INIT", "Show all prices with tax");
    world.write_cycle(&format!("# What I want\n\n{goal}"));
    let begun = world.say(&["start", "--agent", &world.agent(), "--no-tests"]);
    begun.is("approval", 10);
    assert_eq!(begun.object["goal"], "Show all prices with tax");
    assert!(world.text().starts_with("# What I want\n"));
    assert_eq!(world.text().matches("archeflow: begin").count(), 3, "the goal is not written twice");
}

/// Killed anywhere, it goes on and comes to the same file and the same branch.
#[test]
fn m_a1_killed_and_resumed_a_loop_comes_to_the_same_end() {
    let golden = World::new();
    golden.start(&[]).is("approval", 10);
    let waiting = golden.text();
    golden.say(&["approve"]).is("archived", 0);
    let ended = golden.text();
    let points = [
        ("loop.appended:1", "start"),
        ("loop.appended:3", "start"),
        ("battery.ran:1", "start"),
        ("agent.done:2", "start"),
        ("work.published:1", "start"),
        ("recorded:6", "start"),
        ("performed:5", "start"),
        ("loop.appended:1", "approve"),
        ("recorded:2", "approve"),
        ("land.moved:1", "approve"),
        ("loop.kept:1", "approve"),
    ];
    for (point, during) in points {
        let world = World::new();
        let killed = |mut command: Command| {
            let output = command.env("ARCHEFLOW_FAILPOINT", point).output().unwrap();
            assert_eq!(output.status.code(), None, "{point} was not passed: {}", printed(&output));
        };
        let resumed = || {
            let id = world.say(&["status"]).object["run_id"].as_str().unwrap_or_default().to_owned();
            let mut command = world.command(PROGRAM);
            seen(&command.args(["resume", &id, "--json"]).output().unwrap())
        };
        if during == "start" {
            killed(world.starting(&[]));
            resumed().is("approval", 10);
        } else {
            world.start(&[]).is("approval", 10);
        }
        assert_eq!(world.text(), waiting, "{point}");
        if during == "approve" {
            let mut command = world.command(PROGRAM);
            command.args(["loop", "approve", "--json"]);
            killed(command);
            resumed().is("archived", 0);
        } else {
            world.say(&["approve"]).is("archived", 0);
        }
        assert_eq!(world.text(), ended, "{point}");
        assert_eq!((world.price().as_str(), world.archives().len()), ("2", 1), "{point}");
    }
}

/// What the page tells a newcomer to type works as it stands.
#[test]
fn the_examples_of_the_page_work() {
    let page = include_str!("../../../docs/loop.md");
    let section = page.split("## In five minutes").nth(1).unwrap();
    let script = section.split("```sh\n").nth(1).unwrap().split("\n```").next().unwrap();
    let user = TestUser::new();
    let program = Path::new(PROGRAM).parent().unwrap().to_owned();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let output = user.command("sh").args(["-ec", script]).env("PATH", path).output().unwrap();
    let all = printed(&output);
    assert!(output.status.success(), "{all}");
    for told in ["archeflow loop answer", "landed and archived", "yes, from 100 euros on", "1 (100 %) landed"]
    {
        assert!(all.contains(told), "no '{told}' in {all}");
    }
}
