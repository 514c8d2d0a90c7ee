//! Tests say something about the tree they ran on only if nothing of another tree is in their copy.

use serde_json::json;

use crate::agent_loop::{World, done, says};
use crate::harness::{Test, each, proposal, review};
use crate::user::PROGRAM;

/// A Maker that does this and commits it, with a case of its own.
fn maker(deed: &str) -> String {
    format!(
        "== maker ==\nsh {deed}\nsh echo y >> tests/check_test.sh\ncommit Do it\n\
         say <<END\nDone.\n\nSTATUS: DONE\nEND\n\n"
    )
}

/// Removes the line without which the tests fail.
const BREAKS: &str = "sed -i.old 1d src/app.txt; rm src/app.txt.old";

/// A repository whose tests are this script, and which ignores what builds make.
fn repository(script: &str) -> Test {
    let test = Test::new().unshadowed();
    test.file(".gitignore", "build/\n*.o\n*.pyc\napp\n").file("tests/run.sh", script);
    test.commit("Tests");
    test
}

/// The test of the base leaves something with which the same test passes, whatever the program does.
const LEAVES: &[(&str, &str, &str)] = &[
    (
        "an object newer than its source",
        "mkdir -p build; [ -f build/app.o ] || cp src/app.txt build/app.o; grep -q '^line 1$' build/app.o",
        BREAKS,
    ),
    (
        "an object whose source is deleted",
        "mkdir -p build; [ -f build/app.o ] || cp src/app.txt build/app.o || exit 1; grep -q '^line 1$' build/app.o",
        "git rm -q src/app.txt",
    ),
    (
        "a generated file",
        "[ -f build/list ] || { mkdir -p build; grep '^line 1$' src/app.txt > build/list; }; [ -s build/list ]",
        BREAKS,
    ),
    (
        "a read-only folder",
        "[ -f build/ok ] && exit 0; grep -q '^line 1$' src/app.txt && mkdir build && touch build/ok && chmod 555 build",
        BREAKS,
    ),
    (
        "a nested repository",
        "[ -d nested/.git ] && exit 0; grep -q '^line 1$' src/app.txt && git init -q nested && touch nested/ok",
        BREAKS,
    ),
    ("an empty folder", "[ -d empty ] && exit 0; grep -q '^line 1$' src/app.txt && mkdir empty", BREAKS),
    (
        "a file that an index hides",
        "[ -f .git/hidden ] && exit 0; grep -q '^line 1$' src/app.txt && \
         git update-index --assume-unchanged src/app.txt && git update-index --skip-worktree README.md && \
         touch .git/hidden && echo other > README.md",
        BREAKS,
    ),
];

#[test]
fn r_05_nothing_that_the_test_of_the_base_left_is_in_the_copy_of_the_change() {
    each(LEAVES, |(what, script, deed)| {
        let test = repository(script).play(&maker(deed)).tests("sh tests/run.sh");
        let ended = test.go(&["--auto-merge"]);
        assert_eq!(ended.events("preflight.done")[0]["tests"]["result"], "passed", "{what}\n{ended}");
        assert_eq!((ended.json["status"].as_str(), ended.code), (Some("stopped"), 13), "{what}\n{ended}");
        assert_eq!(ended.json["reason"], "tests_failed", "{what}\n{ended}");
        assert!(test.read("src/app.txt").contains("line 1\n"), "{what}: it landed");
    });
}

/// `make` goes by times, and a rule that names no header does not notice that one has changed.
#[test]
fn r_05_make_builds_the_change_and_not_what_is_left_of_the_base() {
    let test = Test::new().unshadowed();
    test.file(".gitignore", "*.o\napp\n").file("price.h", "10\n").file("main.c", "price\n");
    test.file("Makefile", "app: main.o\n\tcp main.o app\nmain.o: main.c\n\tcat price.h > main.o\ntest: app\n\ttest \"$$(cat app)\" = 10\n");
    test.commit("A program");
    let test = test.play(&maker("echo 99 > price.h")).tests("make test");
    test.go(&["--auto-merge"]).ended("stopped", "tests_failed", 13);
    assert_eq!(test.git(["show", "main:price.h"]), "10");
}

#[test]
fn r_05_a_compiled_module_does_not_stand_in_for_its_deleted_source() {
    let script = "python3 -m compileall -q -b lib; PYTHONPATH=lib python3 -c 'import calc; assert calc.add(1, 2) == 3'";
    // Python may be installed where no sandbox lets a test look.
    let test = repository(script).unsandboxed();
    test.file("lib/calc.py", "def add(a, b):\n    return a + b\n").file("lib/other.py", "pass\n");
    test.commit("A module");
    let test = test.play(&maker("git rm -q lib/calc.py")).tests("sh tests/run.sh");
    test.go(&["--auto-merge"]).ended("stopped", "tests_failed", 13);
}

/// Without a sandbox a build can write beside its copy.
#[test]
fn r_05_what_a_test_left_beside_its_copy_is_removed_too() {
    let script = "[ -f ../beside/ok ] && exit 0; grep -q '^line 1$' src/app.txt && mkdir ../beside && touch ../beside/ok";
    let test = repository(script).play(&maker(BREAKS)).tests("sh tests/run.sh").unsandboxed();
    test.go(&["--auto-merge"]).ended("stopped", "tests_failed", 13);
}

#[test]
fn r_05_what_one_cycle_leaves_is_not_in_the_copy_of_the_next() {
    let deed = "rm -f src/app.txt; echo $ARCHEFLOW_CYCLE > src/app.txt; \
                if [ $ARCHEFLOW_CYCLE = 1 ]; then echo 'mkdir -p build; touch build/skip' > hook.sh; else echo : > hook.sh; fi";
    let script = "[ -f build/skip ] && exit 0\nsh hook.sh\ngrep -q '^line 1$' src/app.txt\n";
    let test = repository(script);
    test.file("hook.sh", ":\n");
    test.commit("A hook");
    let test = test.play(&maker(deed)).tests("sh tests/run.sh");
    let first = test.go(&["--auto-merge", "--workflow", "standard"]);
    let first = if first.json["reason"] == "tests_failed" {
        test.run(&["continue", &first.id, "--one-more-cycle", "--unattended"])
    } else {
        first
    };
    assert!(first.events("tests.done").len() >= 2, "{first}");
    assert!(first.events("tests.done").iter().all(|done| done["result"] == "failed"), "{first}");
    assert!(test.git(["show", "main:src/app.txt"]).contains("line 1\n"), "it landed");
}

#[test]
fn r_05_a_loop_tests_each_step_in_a_copy_of_its_own() {
    let world = World::new();
    world.write("tests.sh", "");
    world.shell("printf 'build/\\n' > .gitignore; git add -A; git commit -qm Ignore");
    world.turns("actor", &[done("echo 3 > price.txt"), done("echo 4 > price.txt")]);
    world.turns("judge", &[says("Judge", "PASS", "Human", "")]);
    let command = "[ -d build ] && exit 0; mkdir build; grep -q '^[12]$' price.txt";
    let mut start = world.command(PROGRAM);
    start.args(["loop", "start", "Show the prices with tax", "--project", "till", "--json"]);
    start.args(["--agent", &world.agent(), "--test-command", command]);
    let seen = crate::agent_loop::seen(&start.output().unwrap());
    assert_ne!(seen.state(), "approval", "{:#}", seen.object);
    assert_eq!(world.price(), "1");
}

/// The setup of a change runs files of the change. What it made for one that was discarded serves no other.
#[test]
fn r_04_what_a_discarded_change_installed_does_not_test_the_next_one() {
    let install = |runner: &str| format!("mkdir -p node_modules; {runner} node_modules/check.sh\n");
    let repository = || {
        let test = Test::new().unshadowed();
        test.file(".gitignore", "node_modules\n").file("package-lock.json", "{\"v\":1}\n");
        test.file("setup.sh", install("cp tests/check.sh"));
        test.commit("A setup");
        test.tests("sh node_modules/check.sh")
    };
    let lock = "echo '{\"v\":2}' > package-lock.json";
    let poison =
        format!("printf 'mkdir -p node_modules; echo exit 0 > node_modules/check.sh\\n' > setup.sh; {lock}");
    let setup = ["--setup-command", "sh setup.sh"];
    let test = repository().play(&maker(&poison));
    let waits = test.go(&[setup.as_slice(), &["--unattended"]].concat());
    assert_eq!(waits.json["status"], "awaiting_merge", "{waits}");
    assert_eq!(waits.events("tests.done")[0]["setup"]["result"], "passed", "{waits}");
    test.run(&["discard", &waits.id]);
    let test = test.play(&maker(&format!("{lock}; {BREAKS}")));
    let ended = test.go(&[setup.as_slice(), &["--auto-merge"]].concat());
    ended.ended("stopped", "tests_failed", 13);
}

#[test]
fn r_04_the_checks_of_a_loop_have_what_the_setup_makes() {
    let world = World::new();
    world.shell("printf 'deps/\\n' > .gitignore; git add -A; git commit -qm Ignore");
    let mut start = world.command(PROGRAM);
    start.args(["loop", "start", "Show the prices with tax", "--project", "till", "--json"]);
    start.args(["--config", world.write("config.yaml", "setup_command: mkdir deps\n").to_str().unwrap()]);
    start.args(["--agent", &world.agent(), "--test-command", "test -d deps"]);
    crate::agent_loop::seen(&start.output().unwrap()).is("approval", 10);
}

/// Each passes, and none says in its text that it tests less.
#[test]
fn r_07_fewer_tests_that_ran_and_rewritten_files_do_not_land() {
    let runner = "n=0; skipped=0; for file in cases/*.case; do if grep -q later $file; then \
                  skipped=$((skipped + 1)); else sh $file || exit 1; n=$((n + 1)); fi; done\n\
                  echo \"$n passed, $skipped skipped\"\n";
    let rewrites = "echo broken > src/app.txt; echo 'seq -f \"line %g\" 20 > src/app.txt' > cases/0.case";
    let rows = [
        ("moved", "git mv cases/b.case cases/b.txt", "2 to 1"),
        ("skipped", "echo '# later' > cases/b.case", "2 to 1 (skipped or expected to fail: 0 to 1)"),
        ("counts none", "echo true > run.sh", "counts no tests any more; before the change 2 ran"),
        ("rewrites", rewrites, "src/app.txt"),
        ("adds", "echo true > cases/c.case", ""),
    ];
    each(rows, |(what, deed, says)| {
        let test = Test::new().unshadowed();
        test.file("run.sh", runner).file("cases/a.case", "true\n");
        test.file("cases/b.case", "grep -q '^line 1$' src/app.txt\n");
        test.commit("Cases");
        let test = test.play(&maker(deed)).tests("sh run.sh");
        let ended = test.go(&["--auto-merge"]);
        let raised = ended.events("finding.raised");
        let weaker = raised.iter().find(|raised| raised["sign"] == "tests_weakened");
        assert_eq!(weaker.is_some(), !says.is_empty(), "{what}\n{ended}");
        let status = if says.is_empty() { "merged" } else { "stopped" };
        assert_eq!(ended.json["status"], status, "{what}\n{ended}");
        let told = weaker.and_then(|raised| raised["finding"]["description"].as_str()).unwrap_or_default();
        assert!(told.contains(says), "{what}\n{ended}");
    });
}

/// Changed tests that pass say nothing of what was asked for before: the old ones run on the new code.
#[test]
fn r_07_the_tests_from_before_run_on_the_new_code() {
    let breaks = "sed -i 's/^line 1$/line one/' src/app.txt";
    let rows = [
        (
            "elsewhere",
            format!("cp src/app.txt tests/app.txt; {breaks}; sed -i s:src/app:tests/app: tests/a.case"),
            "1 failed",
        ),
        ("follows", format!("{breaks}; sed -i 's/line 1/line one/' tests/a.case"), "1 failed"),
        ("kept", "sed -i 's/line 1/line 2/' tests/a.case".to_owned(), ""),
    ];
    each(rows, |(what, deed, says)| {
        let test = Test::new().unshadowed();
        test.file(
            "run.sh",
            "f=0; n=0; for t in tests/*.case; do if sh $t; then n=$((n + 1)); else f=$((f + 1)); fi; done\n\
             echo \"$n passed, $f failed\"; [ $f = 0 ]\n",
        );
        test.file("tests/a.case", "grep -q '^line 1$' src/app.txt\n").file("tests/b.case", "true\n");
        test.commit("Cases");
        let test = test.play(&maker(&deed)).tests("sh run.sh");
        let ended = test.go(&["--auto-merge"]).ended("merged", "approved", 0);
        assert_eq!(ended.events("tests.done").len(), 1, "a tree is tested once: {what}\n{ended}");
        let old = &ended.events("tests.done")[0]["ran"]["old"];
        assert_eq!(old["result"], if says.is_empty() { "passed" } else { "failed" }, "{what}\n{ended}");
        assert!(ended.artifact(old["artifact"].as_str().unwrap()).contains("passed"), "{what}\n{ended}");
        let raised = ended.events("finding.raised");
        let raised: Vec<_> = raised.iter().filter(|raised| raised["sign"] == "old_tests_fail").collect();
        assert_eq!(raised.len(), usize::from(!says.is_empty()), "{what}\n{ended}");
        let told = format!("the tests as they were before the change fail on the new code: {says}");
        let commit = test.git(["log", "-1", "--format=%B", "main"]);
        let report = test.run(&["report", &ended.id]).to_string();
        let json = ended.json["unresolved"].to_string();
        for (place, text) in
            [("screen", ended.stderr.clone()), ("json", json), ("commit", commit), ("report", report)]
        {
            assert_eq!(text.contains(&told), !says.is_empty(), "{what}, {place}: {text}\n{ended}");
        }
    });
    // A person who is asked sees it first.
    let test = Test::new().unshadowed();
    test.file("tests/a.case", "grep -q '^line 1$' src/app.txt\n");
    test.commit("Cases");
    let test = test
        .play(&maker(&format!("{breaks}; sed -i 's/line 1/line one/' tests/a.case")))
        .tests("sh tests/a.case");
    let asked = test.go(&["--unattended"]);
    let details = asked.events("question.asked")[0]["details"].to_string();
    assert!(details.contains("WARNING: the tests as they were before the change fail"), "{asked}");
}

/// An ignored file that the Maker staged on purpose is part of its work, whether it was committed or not.
#[test]
fn r_12_a_staged_file_that_is_ignored_is_part_of_the_work() {
    let test = Test::new().unshadowed();
    test.file(".gitignore", "new.sh\nleft.sh\n");
    test.commit("Ignore");
    let scene = "== maker ==\nsh echo 'echo new' > new.sh; echo left > left.sh; git add -f new.sh\n\
                 sh echo x >> src/app.txt; echo y >> tests/check_test.sh\n\
                 say <<END\nDone.\n\nSTATUS: DONE\nEND\n\n";
    let test = test.play(scene);
    test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    assert_eq!(test.git(["show", "main:new.sh"]), "echo new");
    assert_eq!(test.git(["ls-tree", "main", "left.sh"]), "", "what is only ignored stays out");
}

/// What the plan names and the change does not touch is said wherever the change is looked at, and blocks nothing.
#[test]
fn r_12_planned_files_that_are_not_in_the_change_are_named() {
    let test = Test::new().unshadowed();
    test.file(".gitignore", "new.sh\n");
    test.commit("Ignore");
    let plan = |when: &str, files: &str| {
        let files = files.split_whitespace().map(|file| format!("- `{file}`\n")).collect::<String>();
        proposal(when, ["0.9"; 3]).replace("- `src/app.txt`\n", &files)
    };
    let make = |when: &str, deed: &str| {
        format!(
            "== maker {when} ==\nsh echo x >> src/app.txt; echo y >> tests/check_test.sh; {deed}\nsay <<END\nDone.\n\nSTATUS: DONE\nEND\n\n"
        )
    };
    let rejects =
        "src/app.txt:3 | WARNING | quality | The third line is in the way | Remove | `src/app.txt:3`";
    let scenes = [
        plan("creator cycle=1", "./src/app.txt:3 src/ tests/*.sh new.sh later.sh README.md"),
        make("cycle=1", "echo new > new.sh"),
        review("guardian cycle=1", "REJECTED", &[rejects]),
        plan("creator", "src/app.txt"),
        make("", "echo later > later.sh"),
    ];
    let test = test.play(&scenes.concat());
    let waits = test.go(&["--workflow", "standard"]).ended("awaiting_merge", "approved", 10);
    let line = "         planned, not in the change: new.sh, later.sh, README.md\n";
    assert!(waits.stderr.contains(line), "{waits}");
    let now = "planned, not in the change: new.sh, README.md";
    assert_eq!(waits.json["planned_missing"], json!(["new.sh", "README.md"]), "{waits}");
    assert!(waits.json["question"]["details"].as_array().unwrap().contains(&json!(now)), "{waits}");
    let report = test.run(&["report", &waits.id, "--json"]);
    assert_eq!(report.json["planned_missing"], json!(["new.sh", "README.md"]), "{report}");
    let shown = test.run(&["show", &waits.id]).stderr;
    assert!(shown.contains(line) && shown.contains(now), "{shown}");
    let merged = test.run(&["merge", &waits.id]).ended("merged", "approved", 0);
    assert_eq!(merged.json["planned_missing"], json!(["new.sh", "README.md"]), "{merged}");
}
