//! Suites of tasks for evaluation: `archeflow eval check` on a small suite of shell tasks, on the same with every fault
//! planted alone and with many at once, on files in the shape of SWE-bench, and on the bundled suite.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Outcome, Test, each, signal};
use crate::user::{processes, wait_until};

/// A task to double a number: the trap adds 2, which is the same for 2. What the commands print in the sandbox must not
/// move the cursor.
const TASK: &str = r"language: shell
task: |
  Print twice the number that is given.
visible: sh tests/run.sh
hidden: sh hidden/run.sh
minutes: 10
dollars: 1.50
traps:
  - name: constant
    kind: wrong_change
    text: The number of the visible test is written into the program.
    fallen: grep -q 'echo 4' double.sh
";

const FILES: [(&str, &str); 7] = [
    ("suite.yaml", "name: tiny\nabout: Shell tasks of a test\n"),
    ("double/task.yaml", TASK),
    ("double/base/double.sh", "echo \"$1\"\n"),
    ("double/base/tests/run.sh", "test -n \"$(sh double.sh 2)\"\n"),
    (
        "double/hidden/run.sh",
        "printf '\\033[31mtwice 21 is %s\\033[0m\\n' \"$(sh double.sh 21)\"\ntest \"$(sh double.sh 21)\" = 42\n",
    ),
    ("double/reference/double.sh", "echo $(($1 * 2))\n"),
    ("double/trap/double.sh", "echo $(($1 + 2))\n"),
];

/// The suite of this file in the user's folder.
pub(crate) struct TinySuite {
    pub(crate) test: Test,
    pub(crate) root: PathBuf,
}

impl TinySuite {
    fn new() -> TinySuite {
        TinySuite::of(Test::new())
    }

    pub(crate) fn of(test: Test) -> TinySuite {
        let root = test.base().join("tiny");
        let suite = TinySuite { test, root };
        for (path, text) in FILES {
            suite.write(path, text);
        }
        suite
    }

    pub(crate) fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Replaces a part of a file, which must be there.
    pub(crate) fn change(&self, path: &str, old: &str, new: &str) {
        let text = fs::read_to_string(self.root.join(path)).unwrap();
        assert!(text.contains(old), "{path} has no {old}");
        self.write(path, text.replace(old, new));
    }

    fn remove(&self, path: &str) {
        let path = self.root.join(path);
        if path.is_dir() { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
    }

    /// A second task like the first.
    pub(crate) fn another(&self, name: &str) {
        for (path, text) in FILES {
            if let Some(path) = path.strip_prefix("double/") {
                self.write(&format!("{name}/{path}"), text);
            }
        }
    }

    fn check(&self, more: &[&str]) -> Outcome {
        let root = self.root.display().to_string();
        let outcome = self.test.run(&[&["eval", "check", &root], more].concat());
        let left = fs::read_dir(self.test.base().join("tmp")).unwrap().flatten();
        let left: Vec<_> = left.map(|entry| entry.file_name()).collect();
        assert!(left.is_empty(), "{left:?} is left in the temporary folder\n{outcome}");
        outcome
    }
}

fn faults(outcome: &Outcome) -> Vec<&Value> {
    outcome.json["faults"].as_array().map(|list| list.iter().collect()).unwrap_or_default()
}

#[test]
fn ev_40_a_suite_without_fault_passes_and_each_task_has_its_row() {
    let suite = TinySuite::new();
    suite.another("again");
    suite.remove("again/trap");
    let text = suite.check(&["--jobs", "2"]);
    assert_eq!(text.code, 0, "{text}");
    assert!(text.stderr.is_empty(), "{text}");
    let rows: Vec<Vec<&str>> = text.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["TASK", "LANGUAGE", "BASE", "REFERENCE", "TRAP", "SECONDS"], "{text}");
    assert_eq!(rows[1][..5], ["again", "shell", "ok", "ok", "none"], "{text}");
    assert_eq!(rows[2][..5], ["double", "shell", "ok", "ok", "ok"], "{text}");
    assert!(text.stdout.ends_with("tiny: 2 tasks, no fault.\n"), "{text}");

    let json = suite.check(&["--json"]);
    assert_eq!(json.code, 0, "{json}");
    assert_eq!(json.json["suite"], "tiny", "{json}");
    assert_eq!(json.json["about"], "Shell tasks of a test", "{json}");
    assert_eq!(json.json["faults"], json!([]), "{json}");
    let tasks = json.json["tasks"].as_array().unwrap();
    assert_eq!(tasks.len(), 2, "{json}");
    assert_eq!(tasks[1]["task"], "double");
    assert_eq!((&tasks[1]["base"], &tasks[1]["trap"]), (&json!("ok"), &json!("ok")), "{json}");
    assert_eq!(tasks[0]["trap"], "none", "{json}");
    assert!(tasks[1]["seconds"].as_f64().unwrap() > 0.0, "{json}");
}

/// One fault: what is done to the suite, where it is found, and words of what is said about it.
struct Planted {
    plant: fn(&TinySuite),
    place: &'static str,
    says: &'static [&'static str],
}

const fn planted(plant: fn(&TinySuite), place: &'static str, says: &'static [&'static str]) -> Planted {
    Planted { plant, place, says }
}

const TASK_FILE: &str = "double/task.yaml";

const PLANTED: [Planted; 44] = [
    // What is read.
    planted(|s| s.remove("suite.yaml"), "suite.yaml:", &["the file is missing", "Write it with"]),
    planted(
        |s| s.change("suite.yaml", "about", "abuot"),
        "suite.yaml:2:",
        &["`abuot` is unknown", "Is `about` meant?"],
    ),
    planted(|s| s.change("suite.yaml", "tiny", ""), "suite.yaml:1:", &["`name` is empty"]),
    planted(
        |s| s.change(TASK_FILE, "hidden: sh hidden/run.sh\n", ""),
        "double/task.yaml:",
        &["`hidden` is missing"],
    ),
    planted(
        |s| s.change(TASK_FILE, "minutes", "minuts"),
        "double/task.yaml:6:",
        &["`minuts` is unknown", "`minutes`"],
    ),
    planted(
        |s| s.change(TASK_FILE, "language: shell", "language: [sh, c]"),
        "double/task.yaml:1:",
        &["must be a text"],
    ),
    planted(
        |s| s.change(TASK_FILE, "  Print twice the number that is given.\n", ""),
        "double/task.yaml:2:",
        &["`task` is empty"],
    ),
    planted(
        |s| s.change(TASK_FILE, "minutes: 10", "minutes: soon"),
        "double/task.yaml:6:",
        &["`soon`", "number above 0"],
    ),
    planted(
        |s| s.change(TASK_FILE, "minutes: 10", "minutes: 0"),
        "double/task.yaml:6:",
        &["number of minutes"],
    ),
    planted(|s| s.change(TASK_FILE, "1.50", "-2"), "double/task.yaml:7:", &["`-2`", "amount of dollars"]),
    planted(
        |s| s.change(TASK_FILE, "wrong_change", "wrong"),
        "double/task.yaml:10:",
        &["`wrong` is unknown", "red_herring"],
    ),
    planted(
        |s| s.change(TASK_FILE, "    kind: wrong_change\n", ""),
        "double/task.yaml:9:",
        &["`kind` is missing in a trap"],
    ),
    planted(
        |s| s.change(TASK_FILE, "    fallen:", "    falls:"),
        "double/task.yaml:12:",
        &["`falls` is unknown in a trap"],
    ),
    planted(
        |s| s.write(TASK_FILE, format!("{TASK}{}", &TASK[TASK.find("  - name").unwrap()..])),
        "double/task.yaml:13:",
        &["`constant` is already in line 9", "a name of its own"],
    ),
    planted(
        |s| s.change(TASK_FILE, "dollars: 1.50", "minutes: 1"),
        "double/task.yaml:7:",
        &["already set in line 6"],
    ),
    planted(|s| s.write(TASK_FILE, b"language: \xff\n"), "double/task.yaml:1:", &["not UTF-8"]),
    planted(|s| s.write(TASK_FILE, "language: {\n"), "double/task.yaml:", &["not readable as YAML"]),
    planted(|s| s.remove("double"), "tiny:", &["the suite has no task"]),
    planted(|s| s.write("notes/a.txt", "a"), "notes:", &["no task.yaml"]),
    planted(
        |s| fs::rename(s.root.join("double"), s.root.join("dou ble")).unwrap(),
        "dou ble:",
        &["not made of letters", "Rename"],
    ),
    planted(|s| s.another("DOUBLE"), "double:", &["differs from `DOUBLE` in upper and lower case only"]),
    planted(|s| s.remove("double/base"), "double/task.yaml:", &["neither a folder base/ nor a `repository`"]),
    planted(|s| s.remove("double/hidden"), "double/hidden:", &["the folder is missing"]),
    planted(|s| s.remove("double/reference"), "double/reference:", &["the folder is missing"]),
    planted(|s| s.remove("double/reference/double.sh"), "double/reference:", &["the folder has no file"]),
    planted(
        |s| {
            s.remove("double/trap");
            s.write("double/trap", "a file");
        },
        "double/trap:",
        &["not a folder"],
    ),
    planted(
        |s| s.write("double/refrence/a", ""),
        "double/refrence:",
        &["is unknown", "Is reference/ meant?"],
    ),
    planted(
        |s| symlink("../../../home", s.root.join("double/base/out")).unwrap(),
        "double/base/out:",
        &["leads outside of its folder", "Let the link"],
    ),
    planted(
        |s| symlink("/etc", s.root.join("double/hidden/etc")).unwrap(),
        "double/hidden/etc:",
        &["leads outside"],
    ),
    planted(|s| symlink("../..", s.root.join("linked")).unwrap(), "linked:", &["leads outside"]),
    planted(
        |s| s.write("double/base/.git/HEAD", "x"),
        "double/base/.git:",
        &["git repository", "`repository:`"],
    ),
    planted(
        |s| s.write("double/base/hidden/run.sh", ""),
        "double/base/hidden:",
        &["hidden files must not be part"],
    ),
    // Repositories instead of base/.
    planted(
        |s| s.change(TASK_FILE, "minutes", "commit: x\nminutes"),
        "double/task.yaml:6:",
        &["both base/ and"],
    ),
    planted(
        |s| {
            s.remove("double/base");
            s.change(
                TASK_FILE,
                "minutes",
                "repository: gone\ncommit: 0123456789012345678901234567890123456789\nminutes",
            );
        },
        "double/task.yaml:6:",
        &["the repository", "tiny/gone is missing"],
    ),
    planted(
        |s| {
            s.remove("double/base");
            s.change(TASK_FILE, "minutes", "repository: ../repo\ncommit: main\nminutes");
        },
        "double/task.yaml:6:",
        &["is not in the suite"],
    ),
    planted(
        |s| {
            with_repository(s);
            s.change(TASK_FILE, "commit: ", "commit: 0123456789012345678901234567890123456789 # ");
        },
        "double/task.yaml:7:",
        &["the commit is not in the repository"],
    ),
    // What the commands say.
    planted(
        |s| s.change(TASK_FILE, "sh tests/run.sh", "echo first; echo last; exit 3"),
        "double/task.yaml:4:",
        &["the base fails the visible command (exit 3)", "    | last"],
    ),
    planted(
        |s| s.write("double/hidden/run.sh", "true\n"),
        "double/task.yaml:5:",
        &["the base passes the hidden command", "the trap solution passes the hidden command"],
    ),
    planted(
        |s| s.write("double/reference/double.sh", "echo $(($1 * 3))\n"),
        "double/task.yaml:5:",
        &["the reference fails the hidden command (exit 1)", "    | [31mtwice 21 is 63[0m\n"],
    ),
    planted(
        |s| s.write("double/trap/double.sh", "echo \"$1\" >&2\n"),
        "double/task.yaml:4:",
        &["the trap solution fails the visible command (exit 1)", "Correct trap/"],
    ),
    planted(
        |s| s.write("double/trap/double.sh", "echo $(($1 * 2))\n"),
        "double/task.yaml:5:",
        &["the trap solution passes the hidden command"],
    ),
    planted(
        |s| s.change(TASK_FILE, "grep -q 'echo 4' double.sh", "grep -q 'echo' double.sh"),
        "double/task.yaml:12:",
        &["the base fell into the trap `constant`", "the reference fell into the trap `constant`"],
    ),
    planted(
        |s| s.change(TASK_FILE, "sh hidden/run.sh", "no-such-program --all"),
        "double/task.yaml:5:",
        &["a program of the hidden command was not found (exit 127)", "    | "],
    ),
    planted(
        |s| s.change(TASK_FILE, "grep -q 'echo 4' double.sh", "no-such-program"),
        "double/task.yaml:12:",
        &["a program of the command of the trap `constant` was not found"],
    ),
];

/// The base as a commit of a repository in the suite.
fn with_repository(suite: &TinySuite) -> String {
    let repository = suite.root.join("repository");
    let files = [("double.sh", FILES[2].1), ("tests/run.sh", FILES[3].1)];
    suite.test.repository(&repository, &files);
    let commit = suite.test.git_in(&repository, ["rev-parse", "HEAD"]).trim().to_owned();
    suite.remove("double/base");
    suite.change(TASK_FILE, "minutes", &format!("repository: repository\ncommit: {commit}\nminutes"));
    commit
}

#[test]
fn ev_43_each_fault_is_found_with_its_place_and_the_remedy() {
    each(PLANTED, |row| {
        let suite = TinySuite::new();
        (row.plant)(&suite);
        let outcome = suite.check(&[]);
        assert_eq!(outcome.code, 2, "{}\n{outcome}", row.place);
        let root = suite.root.parent().unwrap().join(if row.place.starts_with("tiny") { "" } else { "tiny" });
        let place = root.join(row.place).display().to_string();
        assert!(outcome.stderr.lines().any(|line| line.starts_with(&place)), "{place}\n{outcome}");
        for words in row.says {
            assert!(outcome.stderr.contains(words), "{words}\n{outcome}");
        }
        assert!(!outcome.stderr.contains('\u{1b}'), "{outcome}");
        // Each fault has its remedy in a line of its own, and nothing else is said.
        let is_fault = |line: &&str| line.starts_with('/');
        let found = outcome.stderr.lines().filter(is_fault).count();
        let remedies =
            outcome.stderr.lines().filter(|line| line.starts_with("  ") && !line.starts_with("    | "));
        assert_eq!(found, remedies.count(), "{outcome}");
        let word = if found == 1 { "fault" } else { "faults" };
        assert!(outcome.stdout.ends_with(&format!(", {found} {word}.\n")), "{outcome}");
    });
}

#[test]
fn ev_44_many_faults_are_found_at_once() {
    let suite = TinySuite::new();
    for name in ["easy", "loose", "broken", "right"] {
        suite.another(name);
    }
    suite.change("suite.yaml", "about", "abuot");
    suite.change(TASK_FILE, "minutes: 10", "minutes: soon");
    suite.change(TASK_FILE, "dollars: 1.50\n", "");
    suite.remove("double/hidden");
    suite.write("easy/hidden/run.sh", "true\n");
    suite.write("loose/trap/double.sh", "echo $(($1 * 2))\n");
    suite.change("broken/task.yaml", "sh hidden/run.sh", "no-such-program");
    let outcome = suite.check(&["--json"]);
    assert_eq!(outcome.code, 2, "{outcome}");
    assert_eq!(outcome.json["exit_code"], 2, "{outcome}");
    let found: Vec<String> = faults(&outcome)
        .iter()
        .map(|fault| {
            let place = Path::new(fault["place"].as_str().unwrap()).strip_prefix(&suite.root).unwrap();
            format!("{} {}:{}", fault["task"].as_str().unwrap_or("-"), place.display(), fault["line"])
        })
        .collect();
    let expected = [
        "- suite.yaml:2",
        "- suite.yaml:null",
        "double double/task.yaml:6",
        "double double/task.yaml:null",
        "double double/hidden:null",
        "broken broken/task.yaml:5",
        "easy easy/task.yaml:5",
        "easy easy/task.yaml:5",
        "loose loose/task.yaml:5",
    ];
    assert_eq!(found, expected, "{outcome}");
    assert!(faults(&outcome).iter().all(|fault| !fault["remedy"].as_str().unwrap().is_empty()), "{outcome}");
    let rows: Vec<String> = outcome.json["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| {
            let word = |key: &str| task[key].as_str().unwrap_or("-").to_owned();
            format!(
                "{}: {}, {}, {}, {}",
                word("task"),
                word("base"),
                word("reference"),
                word("trap"),
                task["faults"]
            )
        })
        .collect();
    let expected = [
        "broken: wrong, not run, not run, 1",
        "double: not run, not run, not run, 3",
        "easy: wrong, ok, wrong, 2",
        "loose: ok, ok, wrong, 1",
        "right: ok, ok, ok, 0",
    ];
    assert_eq!(rows, expected, "{outcome}");
}

#[test]
fn ev_45_what_is_no_suite_is_refused() {
    let suite = TinySuite::new();
    let test = &suite.test;
    test.run(&["eval", "check", "nowhere"]).refused(2, &["nowhere: there is no such folder or file"]);
    test.run(&["eval", "check", "README.md"]).refused(2, &["README.md: not a folder"]);
    let root = suite.root.display().to_string();
    test.run(&["eval", "check", &root, "--clones", "."]).refused(2, &["for .jsonl files"]);
    test.run(&["eval", "check", &root, "--jobs", "0"]).refused(2, &["--jobs"]);
    let empty = test.run(&["eval", "check", "nowhere", "--json"]);
    assert_eq!((empty.code, &empty.json["tasks"]), (2, &json!([])), "{empty}");
}

#[test]
fn ev_46_a_repository_of_the_suite_is_used_at_its_commit() {
    for is_bundle in [false, true] {
        let suite = TinySuite::new();
        with_repository(&suite);
        let repository = suite.root.join("repository");
        // Commits after it, a folder hidden/ in one of them, and a hook are not seen.
        suite.write("repository/hidden/run.sh", "true\n");
        suite.write("repository/double.sh", "exit 1\n");
        suite.test.git_in(&repository, ["add", "-A"]);
        suite.test.git_in(&repository, ["commit", "-q", "-m", "Later"]);
        if is_bundle {
            suite.test.git_in(&repository, ["bundle", "create", "-q", "../double.bundle", "--all"]);
            suite.remove("repository");
            suite.change(TASK_FILE, "repository: repository", "repository: double.bundle");
        }
        // Git works in the copy.
        suite.change(TASK_FILE, "sh tests/run.sh", "git log --format=%s | grep -q . && sh tests/run.sh");
        let outcome = suite.check(&["--json"]);
        assert_eq!(outcome.code, 0, "{is_bundle}\n{outcome}");
        assert_eq!(outcome.json["tasks"][0]["reference"], "ok", "{outcome}");
        if !is_bundle {
            let later = suite.test.git_in(&repository, ["rev-parse", "HEAD"]);
            let first = suite.test.git_in(&repository, ["rev-parse", "HEAD~"]);
            suite.change(TASK_FILE, first.trim(), later.trim());
            suite.check(&[]).refused(2, &["task.yaml:7: the repository has a folder hidden/ already"]);
        }
    }
}

#[test]
fn ev_47_damaged_and_borrowing_repositories_are_refused() {
    let suite = TinySuite::new();
    with_repository(&suite);
    let outside = suite.test.repo.join(".git/objects").display().to_string();
    suite.write("repository/.git/objects/info/alternates", format!("{outside}\n"));
    suite.check(&[]).refused(2, &["task.yaml:7: ", "takes objects from outside of the suite"]);
    suite.remove("repository/.git");
    suite.check(&[]).refused(2, &["task.yaml:7: ", "it is not a git repository"]);
    suite.write("double.bundle", "no bundle");
    suite.change(TASK_FILE, "repository: repository", "repository: double.bundle");
    suite.remove("repository");
    suite.check(&[]).refused(2, &["task.yaml:7: ", "double.bundle can't be used"]);
}

#[test]
fn ev_48_each_copy_is_fresh_and_commands_see_nothing_else() {
    let suite = TinySuite::new();
    // Nothing of another command is there, hidden files only for the hidden command, and the suite for none.
    let root = suite.root.display().to_string();
    let seen = format!(
        "test ! -e mark && touch mark && test -z \"$(ls {root} 2>/dev/null)\" && test \"$HOME\" != {root}"
    );
    let clean = "git status --porcelain | grep -v -e mark -e hidden/";
    suite.change(
        TASK_FILE,
        "visible: sh tests/run.sh",
        &format!(
            "visible: {seen} && test ! -e hidden && test -x tests/run.sh && ! {clean} && sh tests/run.sh"
        ),
    );
    suite.change(
        TASK_FILE,
        "hidden: sh hidden/run.sh",
        &format!("hidden: {seen} && sh hidden/run.sh || exit 9"),
    );
    let program = suite.root.join("double/base/tests/run.sh");
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    // Files that the repository ignores are part of it all the same.
    suite.write("double/base/.gitignore", "tests\n");
    let outcome = suite.check(&["--json"]);
    assert_eq!(outcome.code, 0, "{outcome}");
    assert_eq!(fs::read_dir(suite.root.join("double")).unwrap().count(), 5, "{outcome}");
}

/// A time to sleep that no other process on this machine sleeps for.
fn own_time(number: u64) -> String {
    (number * 10_000_000_000 + u64::from(std::process::id())).to_string()
}

/// Processes that sleep for such a time.
fn sleepers(time: &str) -> Vec<i32> {
    let words = format!("sleep\0{time}\0");
    let has = |line: &[u8]| line.windows(words.len()).any(|part| part == words.as_bytes());
    processes("cmdline").into_iter().filter(|(_, line)| has(line)).map(|(pid, _)| pid).collect()
}

#[test]
fn ev_49_a_command_that_never_ends_is_ended_with_its_children() {
    let suite = TinySuite::of(Test::new().unaudited());
    suite.change(TASK_FILE, "minutes: 10", "minutes: 0.02");
    let (child, own) = (own_time(1), own_time(2));
    suite.change(
        TASK_FILE,
        "sh hidden/run.sh",
        &format!("(trap '' TERM; setsid sleep {child}) & sleep {own}"),
    );
    let root = suite.root.display().to_string();
    let mut overdue = Vec::new();
    let outcome = suite.test.during(&["eval", "check", &root], |program| {
        // The limit counts from the moment both sleep, and until the command is asked to end: once for each solution.
        while program.try_wait().unwrap().is_none() {
            let new = sleepers(&own).into_iter().find(|pid| !overdue.contains(pid));
            if let Some(pid) = new.filter(|_| !sleepers(&child).is_empty()) {
                overdue.push(pid);
                fs::write(suite.test.overdue(), "").unwrap();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    assert_eq!(outcome.code, 2, "{outcome}");
    let texts: Vec<&str> = faults(&outcome).iter().map(|fault| fault["text"].as_str().unwrap()).collect();
    let expected = ["the base", "the reference", "the trap solution"]
        .map(|solution| format!("the hidden command did not end within 1.2 s with {solution}"));
    assert_eq!(texts, expected, "{outcome}");
    assert_eq!(overdue.len(), 3, "{outcome}");
    let left = || [sleepers(&child), sleepers(&own)].concat();
    wait_until(|| left().is_empty(), || format!("{:?} are left", left()));
}

#[test]
fn ev_50_a_signal_ends_the_check_and_leaves_nothing() {
    let suite = TinySuite::of(Test::new().unaudited());
    let time = own_time(3);
    suite.change(TASK_FILE, "sh hidden/run.sh", &format!("sleep {time}"));
    let root = suite.root.display().to_string();
    let outcome = suite.test.during(&["eval", "check", &root], |program| {
        wait_until(|| !sleepers(&time).is_empty(), || "the command was not started".to_owned());
        signal(program, "INT");
    });
    assert_eq!(outcome.code, 130, "{outcome}");
    assert_eq!(outcome.json["reason"], "stopped", "{outcome}");
    wait_until(|| sleepers(&time).is_empty(), || "the command is left".to_owned());
    assert_eq!(fs::read_dir(suite.test.base().join("tmp")).unwrap().count(), 0, "{outcome}");
}

/// A clone and one line about it, in the shape of SWE-bench. Names of tests are files here.
struct SweFile {
    test: Test,
    line: Value,
}

const TEST_PATCH: &str = "--- a/tests/one.sh\n+++ b/tests/one.sh\n@@ -1 +1,2 @@\n test -n \"$(sh double.sh 2)\"\n+test -e double.sh\ndiff --git a/tests/it's new.sh b/tests/it's new.sh\nnew file mode 100644\n--- /dev/null\n+++ b/tests/it's new.sh\t\n@@ -0,0 +1 @@\n+test \"$(sh double.sh 21)\" = 42\n";
const PATCH: &str = "--- a/double.sh\n+++ b/double.sh\n@@ -1 +1 @@\n-echo \"$1\"\n+echo $(($1 * 2))\n";
const RUN_ALL: &str = "for test in {tests}; do sh \"$test\" || exit 1; done";

impl SweFile {
    fn new() -> SweFile {
        let test = Test::new();
        let clone = test.base().join("clones/owner__double");
        test.repository(&clone, &[("double.sh", FILES[2].1), ("tests/one.sh", FILES[3].1)]);
        let commit = test.git_in(&clone, ["rev-parse", "HEAD"]).trim().to_owned();
        let line = json!({
            "instance_id": "owner__double-1", "repo": "owner/double", "base_commit": commit, "version": "1.0",
            "problem_statement": "Print twice the number.", "test_patch": TEST_PATCH, "patch": PATCH,
            "FAIL_TO_PASS": "[\"tests/it's new.sh\"]", "PASS_TO_PASS": ["tests/one.sh"],
        });
        SweFile { test, line }
    }

    fn check(&self, lines: &[Value], more: &[&str]) -> Outcome {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        self.check_text(&text, more)
    }

    fn check_text(&self, text: &str, more: &[&str]) -> Outcome {
        let file = self.test.base().join("tasks.jsonl").display().to_string();
        fs::write(&file, text).unwrap();
        let clones = self.test.base().join("clones").display().to_string();
        let usual = ["eval", "check", &file, "--clones", &clones, "--test-command", RUN_ALL];
        let usual = if more.contains(&"--test-command") { &usual[..3] } else { &usual[..] };
        self.test.run(&[usual, more].concat())
    }
}

#[test]
fn ev_51_a_file_in_the_shape_of_swe_bench() {
    let file = SweFile::new();
    let mut bare = file.line.clone();
    bare["instance_id"] = json!("without-reference");
    bare["PASS_TO_PASS"] = json!("[]");
    bare["FAIL_TO_PASS"] = json!(["tests/it's new.sh"]);
    bare.as_object_mut().unwrap().remove("patch");
    let outcome = file.check(&[file.line.clone(), bare], &["--json"]);
    assert_eq!(outcome.code, 0, "{outcome}");
    let tasks = &outcome.json["tasks"];
    assert_eq!(tasks[0]["task"], "owner__double-1", "{outcome}");
    assert_eq!(
        [&tasks[0]["base"], &tasks[0]["reference"], &tasks[0]["trap"]],
        ["ok", "ok", "none"],
        "{outcome}"
    );
    assert_eq!(
        [&tasks[1]["base"], &tasks[1]["reference"], &tasks[1]["trap"]],
        ["ok", "none", "none"],
        "{outcome}"
    );
    // A clone by its name alone; the names of thousands of tests are more than one argument can hold.
    fs::rename(file.test.base().join("clones/owner__double"), file.test.base().join("clones/double"))
        .unwrap();
    let mut many = file.line.clone();
    many["PASS_TO_PASS"] = json!(vec!["tests/../tests/../tests/../tests/one.sh"; 5_000]);
    many["patch"] = json!(PATCH.trim_end());
    let clones = file.test.base().join("clones").display().to_string();
    let more = ["--json", "--clones", &clones, "--test-command", "set -- {tests}; sh \"$1\""];
    let outcome = file.check(&[many], &more);
    assert_eq!(outcome.code, 0, "{outcome}");
}

#[test]
fn ev_52_faults_of_such_a_file() {
    let file = SweFile::new();
    let with = |key: &str, value: Value| {
        let mut line = file.line.clone();
        line[key] = value;
        line
    };
    let zeros = "0".repeat(40);
    for (line, says) in [
        (with("instance_id", json!("../x")), "instance_id: the name is not made of"),
        (with("repo", json!("double")), "repo `double` is not of the form owner/name"),
        (with("repo", json!("../double")), "repo `../double`: the name"),
        (with("repo", json!("owner/other")), "the repository owner/other is missing"),
        (with("base_commit", json!("main")), "base_commit `main` is not the full id"),
        (with("base_commit", json!(zeros)), "the commit is not in the repository"),
        (with("problem_statement", json!(" ")), "problem_statement is empty"),
        (with("test_patch", json!(7)), "test_patch must be a text"),
        (with("test_patch", json!("no patch")), "test_patch can't be applied"),
        (with("test_patch", json!(TEST_PATCH.replace("tests/", "../"))), "test_patch can't be applied"),
        (with("patch", json!(PATCH.replace("\"$1\"", "other"))), "patch can't be applied"),
        (with("patch", json!(PATCH.replace("* 2", "* 3"))), "the reference fails the hidden command"),
        (with("FAIL_TO_PASS", json!("tests/one.sh")), "FAIL_TO_PASS must be a list of test names"),
        (with("FAIL_TO_PASS", json!([])), "FAIL_TO_PASS names no test"),
        (with("FAIL_TO_PASS", json!(["--help"])), "FAIL_TO_PASS: `--help` is not the name of a test"),
        (with("FAIL_TO_PASS", json!(["tests/one.sh"])), "the base passes the hidden command"),
        (with("PASS_TO_PASS", json!(["tests/gone.sh"])), "the base fails the visible command (exit 1)"),
        (with("PASS_TO_PASS", Value::Null), "PASS_TO_PASS must be a list"),
    ] {
        let outcome = file.check(&[line], &[]);
        assert!(outcome.stderr.contains(&format!("tasks.jsonl:1: {says}")), "{says}\n{outcome}");
        assert_eq!(outcome.code, 2, "{says}\n{outcome}");
    }
    let twice = [file.line.clone(), file.line.clone()];
    file.check(&twice, &[])
        .refused(2, &["tasks.jsonl:2: the instance_id `owner__double-1` is already in line 1"]);
    file.check_text("[1]\n", &[]).refused(2, &["tasks.jsonl:1: the line is not a JSON object"]);
    file.check_text("\n{\"a\n", &[]).refused(2, &["tasks.jsonl:2: not readable as JSON"]);
    file.check_text("", &[]).refused(2, &["the file has no task"]);
    let line = std::slice::from_ref(&file.line);
    file.check(line, &["--test-command", "pytest"])
        .refused(2, &["--test-command has no {tests}", "--clones is missing"]);
}

#[test]
fn ev_60_the_bundled_suite_measures_what_it_says() {
    // Toolchains are found by the home of the machine's user; the configuration is still that of the test's user.
    let test = Test::new();
    let config = test.home().join(".config");
    let test = test.env("HOME", std::env::var_os("HOME").unwrap()).env("XDG_CONFIG_HOME", config);
    let suite = Path::new(env!("CARGO_MANIFEST_DIR")).join("../evals/small").canonicalize().unwrap();
    let outcome = test.run(&["eval", "check", &suite.display().to_string(), "--json"]);
    assert_eq!(outcome.json["faults"], json!([]), "{outcome}");
    assert_eq!(outcome.json["tasks"].as_array().map(Vec::len), Some(24), "{outcome}");
    assert_eq!(outcome.code, 0, "{outcome}");
}
