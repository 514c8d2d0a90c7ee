//! What the operating system refuses or takes away (FAULTS 6A, 6B): the run stops with words, and resumes when there is
//! enough again.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::harness::{Outcome, TASK, Test, as_strs, each};
use crate::user::{PROGRAM, wait_until};

/// A copy of the repository and the home on a small file system, which only this shell and its children see. `squeeze`
/// takes room away before the run, `relieve` gives it back before the run is resumed or, if there was none, started.
const SMALL: &str = r#"
set -e
mount -t tmpfs -o size=64m none "$SMALL"
mkdir "$SMALL/tmp"; cp -a "$REPO" "$SMALL/repo"; cp -a "$HOME" "$SMALL/home"
export HOME="$SMALL/home" TMPDIR="$SMALL/tmp"; cd "$SMALL/repo"
set +e
before=$(git rev-parse main)
SQUEEZE
"$@" > "$OUT/out" 2> "$OUT/err"; echo "first $?"
[ "$(git rev-parse main)" = "$before" ] || echo "moved, status '$(git status --porcelain)'"
RELIEVE
id=$(ls .archeflow/events 2>/dev/null | sed -n 's/.jsonl$//p' | grep -v index | head -n 1)
program=$1
again() { if [ -n "$id" ]; then "$program" resume "$id"; else "$@"; fi; }
again "$@" > "$OUT/out2" 2> "$OUT/err2"; second=$?
if grep -q "never began" "$OUT/err2"; then "$@" > "$OUT/out2" 2> "$OUT/err2"; second=$?; fi
if grep -q "the run has ended (awaiting_merge)" "$OUT/err2"; then "$program" merge "$id" > "$OUT/out2" 2> "$OUT/err2"; second=$?; fi
if grep -q "the run has ended (merged)" "$OUT/err2"; then second=0; fi
echo "second $second"
git fsck --connectivity-only > /dev/null 2>&1; echo "fsck $?"
echo "status '$(git status --porcelain)' $(tail -n 1 src/app.txt)"
"#;

struct Squeezed {
    first: i32,
    printed: String,
}

fn squeezed(test: &Test, squeeze: &str, relieve: &str) -> Squeezed {
    let (small, out) = (test.base().join("small"), test.base().join("out"));
    fs::create_dir_all(&small).unwrap();
    fs::create_dir_all(&out).unwrap();
    let script = SMALL.replace("SQUEEZE", squeeze).replace("RELIEVE", relieve);
    let mut shell = test.command("unshare");
    shell.args(["-Urm", "sh", "-c", &script, "sh", PROGRAM]).args(test.arguments(TASK, &["--auto-merge"]));
    shell.env("SMALL", &small).env("REPO", &test.repo).env("OUT", &out);
    let output = shell.output().unwrap();
    let read = |name: &str| fs::read_to_string(out.join(name)).unwrap_or_default();
    let printed = format!(
        "{squeeze}\n{}{}\n{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
        read("err"),
        read("err2")
    );
    let first = printed.lines().find_map(|line| line.strip_prefix("first ")?.parse().ok());
    Squeezed { first: first.unwrap_or_else(|| panic!("{printed}")), printed }
}

/// It stopped with words or not at all, and what was left of it landed later.
fn lands_later(test: &Test, squeeze: &str, relieve: &str) -> i32 {
    let Squeezed { first, printed } = squeezed(test, squeeze, relieve);
    assert!(matches!(first, 0 | 30), "nobody else is at work: it is the disk\n{printed}");
    for word in ["second 0", "fsck 0", "status '' made in cycle"] {
        assert!(printed.contains(word), "{word}\n{printed}");
    }
    if let Some(moved) = printed.lines().find(|line| line.starts_with("moved, ")) {
        assert_eq!(moved, "moved, status ''", "{printed}");
    }
    first
}

fn space_left(kilobytes: u32) -> String {
    format!(
        "room=$(df -k --output=avail \"$SMALL\" | tail -n 1); \
         head -c $(( (room - {kilobytes}) * 1024 )) /dev/zero > \"$SMALL/filler\""
    )
}

const MORE_SPACE: &str = "rm \"$SMALL/filler\"";

#[test]
fn m_b5_a_full_disk_stops_the_run_and_it_lands_when_there_is_space() {
    each([0, 30, 80, 160, 240, 320, 400, 500, 700, 20_000], |kilobytes| {
        let test = Test::new().play("");
        let first = lands_later(&test, &space_left(kilobytes), MORE_SPACE);
        assert!(kilobytes > 30 || first == 30, "{kilobytes} KB are not enough");
        assert!(kilobytes < 20_000 || first == 0, "{kilobytes} KB are enough");
    });
}

/// The change is large, so what fails is one of the copies of it, the last one in the user's own checkout.
#[test]
fn s_10_m_b6_a_disk_that_fills_up_with_the_change_loses_nothing() {
    let scene = "== maker ==\nsh head -c 700000 /dev/urandom | od -An -tx1 -v > big.txt; echo c >> tests/check_test.sh; echo 'made in cycle' >> src/app.txt\n\
                 commit Much\nsay <<END\nDone.\n\nSTATUS: DONE\nEND\n\n";
    each([1_000, 3_000, 4_000, 5_000, 6_000, 7_000, 8_000, 9_000, 10_000, 12_000], |kilobytes| {
        let test = Test::new().unshadowed().play(scene);
        lands_later(&test, &space_left(kilobytes), MORE_SPACE);
    });
}

#[test]
fn m_b7_a_disk_without_inodes_stops_the_run_and_it_lands_when_there_are_some() {
    each([0, 20, 60, 100, 150, 200, 5_000], |inodes| {
        let squeeze = format!(
            "used=$(df --output=iused \"$SMALL\" | tail -n 1); mount -o remount,nr_inodes=$((used + {inodes})) \"$SMALL\""
        );
        let first =
            lands_later(&Test::new().play(""), &squeeze, "mount -o remount,nr_inodes=90000 \"$SMALL\"");
        assert!(inodes > 20 || first == 30, "{inodes} are not enough");
    });
}

#[test]
fn m_b11_m_b12_m_b14_what_is_read_only_is_named() {
    let state =
        "mkdir -p \"$HOME/.local/state\"; mount -t tmpfs -o ro none \"$HOME/.local/state\"; \"$1\" doctor";
    let refused = squeezed(&Test::new().play(""), state, "umount \"$HOME/.local/state\"");
    assert!(matches!(refused.first, 21 | 30), "{}", refused.printed);
    assert!(refused.printed.contains("second 0"), "{}", refused.printed);
    assert!(
        refused.printed.contains(".local/state") && refused.printed.contains("BAD"),
        "{}",
        refused.printed
    );

    let repository = "mount --bind . .; mount -o remount,bind,ro .; cd \"$PWD\"";
    let refused =
        squeezed(&Test::new().play(""), repository, "cd /; umount \"$SMALL/repo\"; cd \"$SMALL/repo\"");
    assert!(matches!(refused.first, 21 | 30), "{}", refused.printed);
    assert!(refused.printed.contains("second 0"), "{}", refused.printed);
}

/// A command that can't write to a folder, whoever runs it.
fn without_writing(test: &Test, folder: &Path, arguments: &[&str]) -> Output {
    let mut command = test.command("bwrap");
    command.args(["--dev-bind", "/", "/", "--ro-bind"]).args([folder, folder]).args(["--", PROGRAM]);
    command.args(arguments).current_dir(&test.repo).output().unwrap()
}

#[test]
fn r_13_m_b11_what_only_reads_answers_where_nothing_can_be_written() {
    let test = Test::new().play("");
    let waiting = test.go(&[]).ended("awaiting_merge", "approved", 10);
    let used = test.home().join(".local/state");
    let new = test.base().join("new");
    fs::create_dir_all(&new).unwrap();
    let elsewhere = Test::new().env("XDG_STATE_HOME", &new);
    for (test, folder, id) in [(&test, &used, Some(&waiting.id)), (&elsewhere, &new, None)] {
        let show = id.map(|id| vec!["show", id.as_str()]);
        let commands = [vec!["status"], vec!["list"], vec!["gc", "--dry-run"], vec!["config", "show"]];
        for command in commands.into_iter().chain(show) {
            let answer = without_writing(test, folder, &command);
            assert!(answer.status.success(), "{command:?}: {answer:?}");
            let printed = String::from_utf8(answer.stdout).unwrap();
            let named = id.is_none_or(|id| printed.contains(id.as_str()));
            assert!(named || !matches!(command[0], "status" | "list"), "{command:?}: {printed}");
        }
        let doctor = without_writing(test, folder, &["doctor"]);
        let printed = String::from_utf8(doctor.stdout).unwrap();
        for words in ["ok   repository", "BAD  working copies", "XDG_STATE_HOME", "personas"] {
            assert!(printed.contains(words), "{words}: {printed}");
        }
        let run = without_writing(test, folder, &["run", TASK, "--agent", "cmd:/bin/true", "--no-tests"]);
        let said = String::from_utf8(run.stderr).unwrap();
        assert_eq!(run.status.code(), Some(30), "{said}");
        assert!(said.contains(folder.to_str().unwrap()) && said.contains("XDG_STATE_HOME"), "{said}");
        assert!(!said.contains("archeflow resume"), "{said}");
    }
    let all = without_writing(&test, &test.repo.join(".archeflow"), &["show", &waiting.id]);
    assert!(all.status.success(), "{all:?}");
}

const WAITS: &str =
    "== maker attempt=1 ==\nwrite half.txt <<END\nTOKEN-HALF\nEND\nsh touch {base}/working\nhang\n\n";

/// Takes something away while the Maker works, and lets the run go on until it notices.
fn taken_away(test: &Test, take: impl FnOnce()) -> Outcome {
    let arguments = test.arguments(TASK, &["--auto-merge"]);
    test.during(&as_strs(&arguments), |_| {
        test.wait_for_file("working");
        take();
        fs::write(test.base().join("go"), "").unwrap();
    })
}

const UNTIL_GO: &str = "== maker attempt=1 ==\nsh touch {base}/working; until [ -e {base}/go ]; do sleep 0.05; done; echo 'made in cycle' >> src/app.txt; echo c >> tests/check_test.sh\n\
                        commit Add\nsay <<END\nDone.\n\nSTATUS: DONE\nEND\n\n";

#[test]
fn m_b13_a_journal_that_is_deleted_stops_the_run() {
    let test = Test::new().unshadowed().unaudited().play(UNTIL_GO);
    let main = test.git(["rev-parse", "main"]);
    let stopped = taken_away(&test, || fs::remove_dir_all(test.repo.join(".archeflow")).unwrap());
    assert!(matches!(stopped.code, 30 | 40), "{stopped}");
    assert_eq!(test.git(["rev-parse", "main"]), main, "{stopped}");
    assert_eq!(test.git(["status", "--porcelain"]), "", "{stopped}");
}

#[test]
fn m_e22_a_repository_that_is_moved_away_stops_the_run_and_it_resumes() {
    let test = Test::new().unshadowed().unaudited().play(UNTIL_GO);
    let away = test.base().join("away");
    let stopped = taken_away(&test, || fs::rename(&test.repo, &away).unwrap());
    // What was made meanwhile at the old place is no repository.
    let _ = fs::remove_dir_all(&test.repo);
    fs::rename(&away, &test.repo).unwrap();
    assert!(!matches!(stopped.code, 0 | -1), "{stopped}");
    let id = test.run_ids().pop().unwrap();
    test.run(&["resume", &id]).ended("merged", "approved", 0);
}

/// Starts the program with a limit of the shell; afterwards without.
fn limited(limit: &str) -> Option<i32> {
    let test = Test::new().play("");
    let mut shell = test.command("sh");
    shell.args(["-c", &format!("{limit}; exec \"$@\""), "sh", PROGRAM]);
    shell.args(test.arguments(TASK, &["--auto-merge"])).current_dir(&test.repo);
    let output = shell.output().unwrap();
    // Where the limit ended the program before the first line of its log, there is nothing to resume.
    let began = test.run_ids().into_iter().find(|id| !test.journal_bytes(id).is_empty());
    match began {
        _ if output.status.code() == Some(0) => {}
        Some(id) => drop(test.run(&["resume", &id]).ended("merged", "approved", 0)),
        None => drop(test.go(&["--auto-merge"]).ended("merged", "approved", 0)),
    }
    assert_eq!(test.git(["status", "--porcelain"]), "", "{limit}");
    output.status.code()
}

#[test]
fn m_b16_without_open_files_the_run_stops_and_resumes() {
    each((8..26).chain([32, 64, 256]), |files| {
        let code = limited(&format!("ulimit -n {files}"));
        assert!(matches!(code, Some(0 | 30 | 127)), "{files} files: {code:?}");
        assert!(files < 256 || code == Some(0), "{files} files: {code:?}");
    });
}

/// Whatever it died of: nothing of the user's changed that was not approved, and the run lands with more memory.
#[test]
fn m_a8_without_memory_the_run_stops_and_resumes() {
    each([40_000, 80_000, 120_000, 200_000, 400_000], |kilobytes| {
        limited(&format!("ulimit -c 0; ulimit -v {kilobytes}"));
    });
}

#[test]
fn m_a14_a_run_continues_without_the_shell_that_started_it() {
    let test = Test::new().unshadowed().play(UNTIL_GO);
    let mut shell = test.command("sh");
    shell.args(["-c", "\"$@\" > /dev/null 2>&1 & echo $!", "sh", PROGRAM]);
    shell.args(test.arguments(TASK, &["--auto-merge"])).current_dir(&test.repo).stderr(Stdio::null());
    let output = shell.output().unwrap();
    let pid = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    test.wait_for_file("working");
    fs::write(test.base().join("go"), "").unwrap();
    let complete = test.wait_for("run.complete", None);
    assert_eq!(complete["data"]["status"], "merged");
    let gone = || {
        Command::new("kill").args(["-0", &pid]).stderr(Stdio::null()).status().is_ok_and(|end| !end.success())
    };
    wait_until(gone, || format!("{pid} is still there"));
}

/// No decision follows from when a file was changed.
#[test]
fn m_b19_file_times_of_another_century_change_nothing() {
    let test = Test::new().play(WAITS);
    let arguments = test.arguments(TASK, &["--auto-merge"]);
    let stopped = test.during(&as_strs(&arguments), |child| {
        test.wait_for_file("working");
        crate::harness::signal(child, "TERM");
    });
    assert_eq!(stopped.code, 143, "{stopped}");
    for (top, date) in [(test.repo.clone(), "2100-01-01"), (test.home(), "1980-01-01")] {
        let touched =
            Command::new("find").arg(top).args(["-exec", "touch", "-h", "-d", date, "{}", "+"]).status();
        assert!(touched.unwrap().success());
    }
    test.run(&["resume", &stopped.id]).ended("merged", "approved", 0);
}
