//! `archeflow gc` and the bounds that the end of a run enforces (U-14): what is not needed goes, what can be resumed,
//! answered or merged stays.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::harness::{Outcome, TASK, Test, each, review};
use crate::user::PROGRAM;

fn state(test: &Test) -> PathBuf {
    test.home().join(".local/state/archeflow")
}

/// What is in a folder below the state folder, by name.
fn below(test: &Test, folder: &str) -> Vec<String> {
    names(&state(test).join(folder))
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|one| one.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The folder with the working copies of the test's repository.
fn pool(test: &Test) -> PathBuf {
    let pools = below(test, "workspaces");
    assert_eq!(pools.len(), 1, "{pools:?}");
    state(test).join("workspaces").join(&pools[0])
}

fn copies(test: &Test) -> Vec<String> {
    names(&pool(test))
}

/// The paths that a cleaning removed, or would remove.
fn removed(cleaned: &Outcome, what: &str) -> Vec<String> {
    listed(cleaned, "removed", what)
}

fn listed(cleaned: &Outcome, list: &str, what: &str) -> Vec<String> {
    let items = cleaned.json[list].as_array().unwrap_or_else(|| panic!("{cleaned}"));
    let of_kind = items.iter().filter(|item| item["what"] == what);
    of_kind.map(|item| item["path"].as_str().unwrap().to_owned()).collect()
}

/// Everything below a folder with its size, without what only says that somebody looked.
fn everything(folder: &Path) -> Vec<(PathBuf, u64)> {
    let mut found = Vec::new();
    let mut left = vec![folder.to_path_buf()];
    while let Some(at) = left.pop() {
        for entry in fs::read_dir(&at).into_iter().flatten().flatten() {
            let meta = entry.metadata().unwrap();
            if meta.is_dir() {
                left.push(entry.path());
            } else if entry.path().extension().is_none_or(|end| end != "lock") {
                found.push((entry.path(), meta.len()));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn u_14_copies_of_a_run_go_when_it_landed_or_was_discarded() {
    let test = Test::new().play("");
    let merged = test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    assert_eq!(copies(&test), Vec::<String>::new());
    let waiting = test.go(&[]).ended("awaiting_merge", "approved", 10);
    assert!(!copies(&test).is_empty(), "a run that waits is continued with what it built");
    test.run(&["discard", &waiting.id]).ended("stopped", "discarded", 0);
    assert_eq!(copies(&test), Vec::<String>::new());
    // Nothing that shows the runs or takes a landing back needs them.
    for command in [&["show", &merged.id][..], &["report", &merged.id], &["replay", "timeline", &merged.id]] {
        let shown = test.run(command);
        assert_eq!(shown.code, 0, "{shown}");
    }
    let kept = test.git(["for-each-ref", "--format=%(refname)", "refs/archeflow/keep"]);
    assert!(kept.contains(&waiting.id) && kept.contains("discarded"), "{kept}");
    test.run(&["revert", &merged.id]).ended("merged", "reverted", 0);
    let cleaned = test.run(&["gc"]);
    assert_eq!((cleaned.code, cleaned.stdout.contains("working copies")), (0, false), "{cleaned}");
}

#[test]
fn r_13_the_result_is_printed_before_copies_are_removed_and_a_signal_ends_their_removal() {
    let test = Test::new().play("");
    let paused = test.base().join("paused");
    let begin = |arguments: &[String]| {
        let mut program = test.command(PROGRAM);
        program.args(arguments).current_dir(&test.repo);
        program.env("ARCHEFLOW_FAILPOINT_PAUSE", format!("cleaning.renamed={}", paused.display()));
        program.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let mut run = begin(&test.arguments(TASK, &["--auto-merge", "--json"]));
    let mut printed = String::new();
    BufReader::new(run.stdout.take().unwrap()).read_line(&mut printed).unwrap();
    let result: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!((&result["status"], &result["exit_code"]), (&"merged".into(), &0.into()), "{printed}");
    // Removing takes long, and says so.
    let mut said = BufReader::new(run.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(said.any(|line| line.starts_with("removing working copies")));
    test.wait_for_file("paused");
    assert!(!copies(&test).is_empty());
    assert!(Command::new("kill").arg(run.id().to_string()).status().unwrap().success());
    assert_eq!(run.wait().unwrap().code(), Some(0));
    assert!(said.any(|line| line.starts_with("stopped; the next run or archeflow gc removes the rest")));
    assert!(!copies(&test).is_empty());
    let cleaned = test.run(&["gc"]);
    assert_eq!((cleaned.code, copies(&test)), (0, Vec::new()), "{cleaned}");
}

#[test]
fn u_14_a_dry_run_removes_nothing_and_a_run_that_waits_goes_on_without_its_copies() {
    let test = Test::new().play("").unsandboxed();
    let waiting = test.go(&[]).ended("awaiting_merge", "approved", 10);
    let before = everything(&state(&test));
    let dry = test.run(&["gc", "--dry-run"]);
    let said = [
        "WOULD REMOVE",
        "working copies",
        "made again when the run continues",
        "total",
        "Nothing was removed",
    ];
    for word in said {
        assert!(dry.stdout.contains(word), "{word}\n{dry}");
    }
    assert_eq!(everything(&state(&test)), before);
    let planned = removed(&test.beside(&["gc", "--dry-run"]), "working copies");
    assert!(!planned.is_empty());
    let cleaned = test.beside(&["gc"]);
    assert_eq!((cleaned.code, removed(&cleaned, "working copies")), (0, planned), "{cleaned}");
    assert!(cleaned.json["bytes"].as_u64().unwrap() > 0);
    assert_eq!(copies(&test), Vec::<String>::new());
    assert_eq!(listed(&cleaned, "kept", "runs").len(), 1);
    let again = test.run(&["gc"]);
    assert!(again.stdout.starts_with("Nothing to remove."), "{again}");
    test.run(&["merge", &waiting.id]).ended("merged", "approved", 0);
}

#[test]
fn u_14_a_stopped_run_is_continued_after_a_cleaning() {
    let rejected = review(
        "guardian attempt=1 cycle=1",
        "REJECTED",
        &["src/app.txt:1 | CRITICAL | security | It is open | Close it | `line 1`"],
    );
    let rejected = rejected.replace(" attempt=1 cycle=1 ==", " cycle=1 ==");
    let test = Test::new().unshadowed().play(&rejected).config("max_cycles:\n  fast: 1\n");
    let stopped = test.go(&["--auto-merge"]);
    assert_eq!(stopped.json["status"], "stopped", "{stopped}");
    let cleaned = test.beside(&["gc"]);
    assert!(!removed(&cleaned, "working copies").is_empty(), "{cleaned}");
    assert_eq!(copies(&test), Vec::<String>::new());
    test.run(&["continue", &stopped.id, "--one-more-cycle"]).ended("merged", "approved", 0);
}

#[test]
fn u_14_what_a_killed_run_needs_to_be_resumed_stays() {
    each(["agent.ended:2", "work.collected:1", "work.published:1", "agent.housed:2"], |point| {
        let test = Test::new().play("").config("keep:\n  days: 0\n  runs: 1\n  copy_days: 0\n");
        let test = test.env("ARCHEFLOW_FAILPOINT", point);
        let killed = test.go(&["--auto-merge"]);
        assert!(killed.killed, "{killed}");
        let test = test.env("ARCHEFLOW_FAILPOINT", "");
        let left = copies(&test);
        assert!(left.iter().any(|name| name.starts_with("maker-")), "{left:?}");
        let cleaned = test.beside(&["gc", "--all"]);
        assert_eq!((cleaned.code, removed(&cleaned, "working copies").len()), (0, 0), "{point}\n{cleaned}");
        assert_eq!(copies(&test), left, "{point}");
        assert_eq!(below(&test, "tmp"), Vec::<String>::new(), "{point}: a temporary folder is left");
        test.run(&["resume", &killed.id]).ended("merged", "approved", 0);
    });
}

/// A Maker that says when it has begun and waits to be told to go on.
const WAITS: &str = "== maker ==\nsh touch {base}/begun; while [ ! -e {base}/go ]; do sleep 0.02; done\n\
                     sh cat deps/tool; echo x >> src/app.txt; echo y >> tests/check_test.sh\n\
                     commit Do it\nsay <<END\nDone.\n\nSTATUS: DONE\nEND\n\n";

#[test]
fn u_14_nothing_that_a_running_run_uses_is_removed() {
    let test = Test::new().unshadowed().play(WAITS).tests("grep -q made deps/tool");
    test.configure("keep:\n  days: 0\n  runs: 1\n  copy_days: 0\n  cache_days: 0\n");
    test.file("package-lock.json", "{}\n");
    test.commit("A lock file");
    let setup = "mkdir deps && echo made > deps/tool";
    let arguments = test.arguments(TASK, &["--auto-merge", "--setup-command", setup]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let merged = test.during(&arguments, |_| {
        test.wait_for_file("begun");
        for _ in 0..2 {
            let cleaned = test.beside(&["gc", "--all"]);
            let went = cleaned.json["removed"].as_array().unwrap();
            assert!(cleaned.code == 0 && went.iter().all(|item| item["what"] == "test results"), "{cleaned}");
            let kept: Vec<&Value> = cleaned.json["kept"].as_array().unwrap().iter().collect();
            for (what, why) in [
                ("working copies", "in use"),
                ("installed dependencies", "in use"),
                ("temporary files", "in use"),
                ("runs", "one of the newest runs"),
            ] {
                assert!(
                    kept.iter().any(|item| item["what"] == what && item["why"] == why),
                    "{what}\n{cleaned}"
                );
            }
        }
        fs::write(test.base().join("go"), "").unwrap();
    });
    merged.ended("merged", "approved", 0);
    // The last user is gone, and by this user's settings nothing unused is kept.
    assert_eq!(below(&test, "setup"), Vec::<String>::new());
    assert_eq!(copies(&test), Vec::<String>::new());
    assert_eq!(below(&test, "tmp"), Vec::<String>::new());
}

#[test]
fn u_14_old_runs_go_with_all_they_have_and_those_that_wait_stay() {
    let test = Test::new().play("").config("keep:\n  days: 0\n  runs: 1\n");
    let waiting = test.go(&[]).ended("awaiting_merge", "approved", 10);
    let first = test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    test.run(&["show", &first.id]);
    let second = test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    let artifacts = test.repo.join(".archeflow/artifacts");
    let mut ids = test.run_ids();
    ids.sort();
    let mut expected = vec![waiting.id.clone(), second.id.clone()];
    expected.sort();
    assert_eq!(ids, expected);
    assert_eq!(names(&artifacts), expected);
    assert_eq!(below(&test, "own-runs").len(), 2);
    let refs = test.git(["for-each-ref", "--format=%(refname)"]);
    assert!(!refs.contains(&format!("/{}/", first.id)) && !refs.ends_with(&first.id), "{refs}");
    assert!(refs.contains(&format!("refs/heads/archeflow/{}", waiting.id)), "{refs}");
    let listed = test.run(&["list"]).stdout;
    assert!(!listed.contains(&format!("{} ", first.id)) && listed.contains(&second.id), "{listed}");
    test.run(&["show", &first.id]).refused(2, &["no run"]);
    test.run(&["discard", &waiting.id]).ended("stopped", "discarded", 0);
    // An id that is free again is given again, and its run is a new one.
    let again = test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    assert!(test.run(&["list"]).stdout.contains(&again.id));
}

#[test]
fn u_14_by_default_a_run_that_has_ended_is_kept_and_a_repository_has_no_say() {
    let test = Test::new().play("");
    for _ in 0..3 {
        test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    }
    let cleaned = test.beside(&["gc"]);
    assert_eq!((removed(&cleaned, "runs").len(), test.run_ids().len()), (0, 3), "{cleaned}");
    test.file(".archeflow/config.yaml", "keep:\n  runs: 1\n");
    test.commit("Keep nothing");
    for command in [&["gc"][..], &["run", "x", "--agent", "cmd:true"]] {
        test.run(command).refused(2, &["keep.runs"]);
    }
}

#[test]
fn u_14_killed_anywhere_a_cleaning_leaves_what_is_usable_and_the_next_one_finishes() {
    let points = (1..=4).map(|n| format!("cleaning.renamed:{n}"));
    let points = points
        .chain(["cleaning.part_removed:1", "cleaning.unlisted:1", "cleaning.unlisted:2"].map(str::to_owned));
    each(points, |point| {
        let test = Test::new().play("").config("keep:\n  automatic: false\n");
        let first = test.go(&["--auto-merge"]).ended("merged", "approved", 0);
        let second = test.go(&["--auto-merge"]).ended("merged", "approved", 0);
        let waiting = test.go(&[]).ended("awaiting_merge", "approved", 10);
        assert!(!copies(&test).is_empty(), "what is automatic is off");
        test.configure("keep:\n  automatic: false\n  days: 0\n  runs: 1\n");
        let test = test.env("ARCHEFLOW_FAILPOINT", &point);
        let killed = test.run(&["gc"]);
        assert!(killed.killed, "{point}\n{killed}");
        let test = test.env("ARCHEFLOW_FAILPOINT", "");
        for id in test.run_ids() {
            let shown = test.run(&["show", &id]);
            assert_eq!(shown.code, 0, "{point}\n{shown}");
        }
        assert_eq!(test.run(&["list"]).code, 0);
        let cleaned = test.beside(&["gc"]);
        assert_eq!(cleaned.code, 0, "{point}\n{cleaned}");
        assert_eq!(test.run_ids(), [waiting.id.as_str()], "{point}: {} {}", first.id, second.id);
        assert_eq!(names(&test.repo.join(".archeflow/artifacts")), [waiting.id.as_str()], "{point}");
        assert_eq!(copies(&test), Vec::<String>::new(), "{point}");
        let again = test.run(&["gc"]);
        assert!(again.stdout.starts_with("Nothing to remove."), "{point}\n{again}");
        test.run(&["merge", &waiting.id]).ended("merged", "approved", 0);
    });
}

#[test]
fn u_14_two_cleanings_at_once_are_fine() {
    let test = Test::new().play("").config("keep:\n  automatic: false\n");
    for _ in 0..3 {
        test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    }
    let last = test.go(&[]).ended("awaiting_merge", "approved", 10);
    test.configure("keep:\n  automatic: false\n  days: 0\n  runs: 1\n");
    each(0..4, |_| {
        let cleaned = test.beside(&["gc"]);
        assert_eq!(cleaned.code, 0, "{cleaned}");
    });
    assert_eq!(test.run_ids(), [last.id.as_str()]);
    assert_eq!(copies(&test), Vec::<String>::new());
    test.run(&["merge", &last.id]).ended("merged", "approved", 0);
}

#[test]
fn u_14_links_are_not_followed() {
    let test = Test::new().play("").config("keep:\n  automatic: false\n");
    let first = test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    test.configure("keep:\n  days: 0\n  runs: 1\n  cache_days: 0\n");
    let outside = test.base().join("outside");
    fs::create_dir_all(outside.join("sub")).unwrap();
    fs::write(outside.join("mine"), "mine\n").unwrap();
    fs::write(outside.join("sub/mine"), "mine\n").unwrap();
    let artifacts = test.repo.join(".archeflow/artifacts").join(&first.id);
    fs::remove_dir_all(&artifacts).unwrap();
    fs::create_dir_all(state(&test).join("homes")).unwrap();
    fs::create_dir_all(state(&test).join("tmp/gone.0011.5")).unwrap();
    for place in [
        artifacts.clone(),
        pool(&test).join("maker-7"),
        pool(&test).join(".removed-0011"),
        pool(&test).join("reader-0/tree/away"),
        state(&test).join("setup"),
        state(&test).join("homes/gone"),
        state(&test).join("tmp/gone.0011.6"),
        state(&test).join("tmp/gone.0011.5/away"),
        test.base().join("tmp/archeflow-probe-1-x"),
    ] {
        let folder = place.parent().unwrap();
        let mode = fs::metadata(folder).unwrap().permissions();
        fs::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        symlink(&outside, &place).unwrap();
        fs::set_permissions(folder, mode).unwrap();
    }
    let cleaned = test.beside(&["gc", "--all"]);
    assert_eq!(cleaned.code, 0, "{cleaned}");
    assert_eq!(test.run_ids().len(), 1);
    assert!(!artifacts.is_symlink() && !pool(&test).join("reader-0").exists());
    assert_eq!(names(&outside), ["mine", "sub"], "{cleaned}");
    assert_eq!(names(&outside.join("sub")), ["mine"]);
}

#[test]
fn u_14_what_can_t_be_removed_is_named_and_the_rest_goes() {
    let test = Test::new().play("").config("keep:\n  automatic: false\n");
    test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    let stuck = pool(&test).join("reader-0");
    fs::remove_file(stuck.join("lock")).unwrap();
    fs::create_dir(stuck.join("lock")).unwrap();
    let cleaned = test.run(&["gc"]);
    assert_eq!(cleaned.code, 30, "{cleaned}");
    let line = format!("not removed: {}", stuck.display());
    assert!(cleaned.stdout.contains(&line) && cleaned.stdout.contains("working copies"), "{cleaned}");
    assert_eq!(copies(&test), ["reader-0"]);
    fs::remove_dir(stuck.join("lock")).unwrap();
    assert_eq!(test.run(&["gc"]).code, 0);
    assert_eq!(copies(&test), Vec::<String>::new());
}

#[test]
fn u_14_leftovers_of_killed_programs_go() {
    let test = Test::new().play("");
    let merged = test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    let ours = std::process::id();
    let left = [
        state(&test).join(format!("tmp/{}.0011.5", merged.id)),
        state(&test).join("tmp/gone.item.1.0011.17.setup"),
        state(&test).join("tmp/try.4194305"),
        state(&test).join("homes/gone"),
        state(&test).join("setup/unfinished/tree"),
        state(&test).join("self-test-4194305"),
        test.base().join("tmp/archeflow-probe-4194305-claude"),
    ];
    let alive = [
        state(&test).join(format!("tmp/try.{ours}")),
        test.base().join(format!("tmp/archeflow-probe-{ours}-claude")),
        state(&test).join("tmp/somebodys"),
    ];
    left.iter().chain(&alive).for_each(|path| fs::create_dir_all(path).unwrap());
    let cleaned = test.beside(&["gc"]);
    assert_eq!(cleaned.code, 0, "{cleaned}");
    let there: Vec<&PathBuf> = left.iter().filter(|path| path.exists()).collect();
    assert_eq!(there, Vec::<&PathBuf>::new());
    assert!(alive.iter().all(|path| path.exists()), "{cleaned}");
}

#[test]
fn u_14_a_review_keeps_its_change_while_it_can_be_resumed() {
    let test = Test::new().play("");
    test.file("src/app.txt", "changed\n");
    let reviewed = test.look(&["--json"]);
    assert_eq!(reviewed.code, 0, "{reviewed}");
    assert_eq!(copies(&test), Vec::<String>::new(), "a review that has ended");
    let test = test.env("ARCHEFLOW_FAILPOINT", "agent.housed:1");
    let killed = test.look(&["--json"]);
    assert!(killed.killed, "{killed}");
    let test = test.env("ARCHEFLOW_FAILPOINT", "");
    let ids = test.run_ids();
    test.configure("keep:\n  days: 0\n  runs: 1\n");
    let cleaned = test.beside(&["gc", "--all"]);
    assert_eq!(cleaned.code, 0, "{cleaned}");
    let open = ids.last().unwrap();
    let resumed = test.beside(&["resume", open]);
    assert_eq!(resumed.json["status"], "reviewed", "{resumed}");
}

#[test]
fn u_14_what_a_repository_that_is_gone_left_is_removed() {
    let test = Test::new().play("").config("keep:\n  automatic: false\n  days: 0\n");
    test.go(&[]).ended("awaiting_merge", "approved", 10);
    assert!(!copies(&test).is_empty());
    fs::remove_dir_all(&test.repo).unwrap();
    test.own_repository(&test.base().join("other"), &[("a", "b\n")]);
    let other = test.base().join("other");
    let test = test.from(other).unaudited();
    let cleaned = test.beside(&["gc"]);
    assert_eq!(removed(&cleaned, "working copies").len(), 0, "{cleaned}");
    let cleaned = test.beside(&["gc", "--all"]);
    assert!(!removed(&cleaned, "working copies").is_empty(), "{cleaned}");
    assert!(
        below(&test, "workspaces")
            .iter()
            .all(|pool| names(&state(&test).join("workspaces").join(pool)).is_empty())
    );
    assert_eq!(below(&test, "own-runs"), Vec::<String>::new());
}

#[test]
fn u_14_a_run_that_was_not_started_here_keeps_all_it_has() {
    let test = Test::new().play("").config("keep:\n  automatic: false\n  days: 0\n  runs: 1\n");
    test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    test.go(&[]).ended("awaiting_merge", "approved", 10);
    let (left, runs) = (copies(&test), test.run_ids());
    let refs = test.git(["for-each-ref"]);
    fs::remove_dir_all(state(&test).join("own-runs")).unwrap();
    let cleaned = test.beside(&["gc", "--all"]);
    assert_eq!((cleaned.code, copies(&test), test.run_ids()), (0, left, runs), "{cleaned}");
    assert_eq!(test.git(["for-each-ref"]), refs);
    let kept = listed(&cleaned, "kept", "working copies");
    assert!(!kept.is_empty() && cleaned.stdout.contains("was not started here"), "{cleaned}");
}
