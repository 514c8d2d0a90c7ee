//! Landing on a target that moves, is dirty, or is not where one looks (FAULTS 6F, 6E).

use std::process::Stdio;

use crate::harness::{TASK, Test, review};
use crate::user::PROGRAM;

/// A run that waits to be landed, and what somebody else does in the user's repository before it is.
fn waiting(test: &Test, deed: &str) -> String {
    let waiting = test.go(&[]).ended("awaiting_merge", "approved", 10);
    test.sh(deed);
    waiting.id
}

const CHANGE: &str = "== maker ==\nsh echo ours >> src/app.txt; echo y >> tests/check_test.sh\ncommit Work\n\
    say <<END\nDone.\n\nSTATUS: DONE\nEND\n\n";

const MOVED: [&str; 4] = ["ref:refs/heads/main", "git:", "file:", "ref:refs/heads/other"];

#[test]
fn m_f1_a_conflict_is_never_forced() {
    let deed = "echo theirs >> src/app.txt; git commit -qam Theirs";
    let test = Test::new().play(CHANGE);
    let stopped = test.run(&["merge", &waiting(&test, deed)]).ended("stopped", "merge_conflict", 12);
    assert!(stopped.stderr.contains("src/app.txt"), "{stopped}");
    assert_eq!(test.git(["log", "-1", "--format=%s"]), "Theirs");
    assert_eq!(test.git(["status", "--porcelain"]), "");
    assert!(test.git(["branch", "--list", "archeflow/*"]).contains(&stopped.id), "the branch is kept");
}

#[test]
fn m_e20_a_base_that_moved_on_is_tested_as_it_is_now() {
    let deed = "echo theirs > other.txt; git add -A; git commit -qm Theirs";
    let test = Test::new().play(CHANGE).tests("ls other.txt; sh tests/check.sh");
    let id = waiting(&test, deed);
    let merged = test.run(&["merge", &id]).ended("merged", "approved", 0);
    assert_eq!(merged.events("tests.done").len(), 2, "{merged}");
    let folder = std::fs::read_dir(test.repo.join(".archeflow/artifacts").join(&id)).unwrap();
    let logs: Vec<String> = folder
        .map(|entry| {
            String::from_utf8_lossy(&std::fs::read(entry.unwrap().path()).unwrap_or_default()).into()
        })
        .collect();
    assert!(logs.iter().any(|text| text.lines().any(|line| line == "other.txt")), "{logs:?}");
    assert_eq!(test.read("other.txt"), "theirs\n");
    assert_eq!(test.git(["log", "--format=%s", "main"]).lines().filter(|s| *s == "Theirs").count(), 1);
}

#[test]
fn m_f16_a_target_that_moves_during_the_tests_is_built_and_tested_again() {
    let test = Test::new().play("").without_preflight().meanwhile(&MOVED).tests(
        "if [ ! -e {base}/moved ]; then touch {base}/moved; cd {base}/repo && echo t > other.txt && git add other.txt && git commit -qm Theirs; fi; true",
    );
    let merged = test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    assert_eq!(merged.events("tests.done").len(), 2, "{merged}");
    assert_eq!(merged.events("merge.refused")[0]["why"], "moved");
    let test = Test::new()
        .play("")
        .meanwhile(&MOVED)
        .config("preflight: false\nretries:\n  moved_base: 2\n")
        .tests("cd {base}/repo && date +%N > other.txt && git add other.txt && git commit -qm Theirs");
    test.go(&["--auto-merge"]).ended("stopped", "base_moved", 12);
}

#[test]
fn m_e20_a_base_that_was_rewritten_or_deleted_stops_the_run() {
    for deed in [
        "git commit -q --amend -m Rewritten",
        "git checkout -q --detach && git branch -q -D main",
        "git checkout -q --orphan fresh && git commit -qm Fresh && git branch -q -M fresh main",
    ] {
        let test = Test::new().play(CHANGE);
        test.run(&["merge", &waiting(&test, deed)]).ended("stopped", "base_moved", 12);
    }
}

#[test]
fn m_e10_a_dirty_tree_in_the_way_waits_and_lands_when_clean() {
    let test = Test::new().play("");
    test.file("src/app.txt", "my own half-done work\n");
    let waiting = test.go(&["--auto-merge"]).ended("awaiting_merge", "dirty_tree", 10);
    assert!(waiting.stderr.contains("src/app.txt"), "{waiting}");
    assert_eq!(test.read("src/app.txt"), "my own half-done work\n");
    test.run(&["merge", &waiting.id]).ended("awaiting_merge", "dirty_tree", 10);
    test.git(["checkout", "-q", "src/app.txt"]);
    test.run(&["merge", &waiting.id]).ended("merged", "approved", 0);
}

#[test]
fn m_e9_unrelated_dirt_of_every_kind_stays_and_the_change_lands() {
    let test = Test::new().play("");
    test.file(".gitignore", "*.ignored\n").file("edited.txt", "one\n").file("staged.txt", "one\n");
    test.commit("More files");
    test.file("edited.txt", "two\n").file("staged.txt", "two\n").file("new.txt", "untracked\n");
    test.file("secret.ignored", "ignored\n").file("intent.txt", "later\n");
    test.git(["add", "staged.txt"]);
    test.git(["add", "-N", "intent.txt"]);
    let before = test.git(["status", "--porcelain"]);
    let merged = test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    assert!(merged.stderr.contains("uncommitted work"), "and it is said\n{merged}");
    assert_eq!(test.git(["status", "--porcelain"]), before);
}

#[test]
fn m_e11_an_untracked_or_ignored_file_in_the_way_is_not_overwritten() {
    for ignore in ["", "tests/check_test.sh\n"] {
        let test = Test::new().play("");
        if !ignore.is_empty() {
            test.file(".gitignore", ignore);
            test.commit("Ignore");
        }
        test.file("tests/check_test.sh", "mine\n");
        let scene = "== maker ==\nsh echo x >> src/app.txt; echo y >> tests/check_test.sh; git add -f tests/check_test.sh\n\
                     commit Work\nsay <<END\nDone.\n\nSTATUS: DONE\nEND\n\n";
        let test = test.play(scene);
        let waiting = test.go(&["--auto-merge"]).ended("awaiting_merge", "dirty_tree", 10);
        assert_eq!(test.read("tests/check_test.sh"), "mine\n");
        std::fs::remove_file(test.repo.join("tests/check_test.sh")).unwrap();
        test.run(&["merge", &waiting.id]).ended("merged", "approved", 0);
    }
}

#[test]
fn m_e12_an_operation_under_way_is_left_alone() {
    let test = Test::new().play("");
    test.git(["checkout", "-q", "-b", "side"]);
    test.file("README.md", "side\n");
    test.commit("Side");
    test.git(["checkout", "-q", "main"]);
    test.file("README.md", "main\n");
    test.commit("Main");
    assert!(!test.try_git(["merge", "side"]).status.success());
    let ended = test.go(&["--auto-merge"]);
    assert!(matches!(ended.code, 10 | 21), "{ended}");
    assert!(test.repo.join(".git/MERGE_HEAD").exists());
}

#[test]
fn m_e13_a_held_index_lock_is_not_broken_however_young() {
    // As when the user has `git commit` open in an editor since a moment ago.
    let test = Test::new().play("").tests("touch {base}/repo/.git/index.lock").meanwhile(&["git:index.lock"]);
    let waiting = test.go(&["--auto-merge"]).ended("awaiting_merge", "target_busy", 10);
    assert!(waiting.stderr.contains("index.lock"), "named\n{waiting}");
    assert!(test.repo.join(".git/index.lock").exists(), "{waiting}");
    let test = test.meanwhile(&[]);
    std::fs::remove_file(test.repo.join(".git/index.lock")).unwrap();
    std::fs::write(test.repo.join("tests/unrelated.txt"), "").unwrap();
    let again = test.meanwhile(&["git:index.lock"]);
    again.run(&["merge", &waiting.id]).ended("awaiting_merge", "target_busy", 10);
}

#[test]
fn target_another_branch_that_is_not_checked_out() {
    let test = Test::new().play("");
    test.git(["branch", "release"]);
    let main = test.git(["rev-parse", "main"]);
    let merged = test.go(&["--auto-merge", "--target", "release"]).ended("merged", "approved", 0);
    assert_eq!(test.git(["rev-parse", "main"]), main);
    assert_eq!(merged.json["merged_oid"].as_str().unwrap(), test.git(["rev-parse", "release"]));
    assert_eq!(test.git(["status", "--porcelain"]), "");
    test.go(&["--target", "nowhere"]).refused(2, &["nowhere"]);
}

#[test]
fn m_e23_a_linked_worktree_that_has_the_target_moves_with_it() {
    let test = Test::new().play("");
    let linked = test.base().join("linked");
    test.git(["worktree", "add", "-q", "-b", "release", linked.to_str().unwrap()]);
    let test = test.meanwhile(&["file1:", "git:worktrees/linked/"]).watch(&linked);
    test.go(&["--auto-merge", "--target", "release"]).ended("merged", "approved", 0);
    let text = std::fs::read_to_string(linked.join("src/app.txt")).unwrap();
    assert!(text.contains("made in cycle 1"), "the checkout of the target shows what landed");
    let status = test.command("git").args(["status", "--porcelain"]).current_dir(&linked).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&status.stdout), "");
    // And dirt there is respected as well.
    let test = Test::new().play("");
    let linked = test.base().join("linked");
    test.git(["worktree", "add", "-q", "-b", "release", linked.to_str().unwrap()]);
    std::fs::write(linked.join("src/app.txt"), "half done\n").unwrap();
    let test = test.watch(&linked);
    test.go(&["--auto-merge", "--target", "release"]).ended("awaiting_merge", "dirty_tree", 10);
}

#[test]
fn bx04_squash_and_rebase() {
    for (strategy, parents) in [("no-ff", 2), ("squash", 1), ("rebase", 1)] {
        let scene = "== maker ==\nsh echo x >> src/app.txt\ncommit One\nsh echo y >> tests/check_test.sh\ncommit Two\n\
                     say <<END\nDone.\n\nSTATUS: DONE\nEND\n\n";
        let test = Test::new().play(scene).config(&format!("git:\n  merge_strategy: {strategy}\n"));
        let base = test.git(["rev-parse", "main"]);
        test.go(&["--auto-merge"]).ended("merged", "approved", 0);
        let count = test.git(["log", "-1", "--format=%P", "main"]).split(' ').count();
        assert_eq!(count, parents, "{strategy}");
        let subjects = test.git(["log", "--first-parent", "--format=%s", &format!("{base}..main")]);
        match strategy {
            "rebase" => assert_eq!(subjects, "Two\nOne"),
            _ => assert_eq!(subjects, TASK),
        }
        assert_eq!(test.git(["status", "--porcelain"]), "");
    }
}

#[test]
fn m_e21_the_user_may_look_at_the_runs_branch() {
    let row = "src/app.txt:3 | CRITICAL | security | The third line leaks | Remove | `src/app.txt:3`";
    let test = Test::new().play(&review("guardian cycle=1", "REJECTED", &[row]));
    let stopped = test.go(&["--auto-merge"]).ended("stopped", "max_cycles", 14);
    test.git(["checkout", "-q", &format!("archeflow/{}", stopped.id)]);
    let merged = test.run(&["continue", &stopped.id, "--one-more-cycle"]).ended("merged", "approved", 0);
    assert_eq!(
        test.git(["status", "--porcelain"]),
        "",
        "the checked-out run branch is not moved under the user\n{merged}"
    );
}

#[test]
fn m_e36_gc_in_between_loses_nothing() {
    let test = Test::new().play("").meanwhile(&["git:"]);
    let waiting = test.go(&[]).ended("awaiting_merge", "approved", 10);
    test.git(["reflog", "expire", "--expire=now", "--all"]);
    test.git(["gc", "-q", "--prune=now"]);
    test.run(&["merge", &waiting.id]).ended("merged", "approved", 0);
}

#[test]
fn m_e15_locks_of_others_on_refs_and_configuration_are_not_broken() {
    for (name, lands) in [("refs/heads/main.lock", false), ("packed-refs.lock", true), ("config.lock", true)]
    {
        let test = Test::new().play("");
        let lock = test.repo.join(".git").join(name);
        std::fs::write(&lock, "").unwrap();
        let main = test.git(["rev-parse", "main"]);
        let ended = test.go(&["--auto-merge"]);
        assert!(lock.exists(), "{name} is gone\n{ended}");
        assert_eq!(ended.code == 0, lands, "{name}\n{ended}");
        assert_eq!(test.git(["rev-parse", "main"]) != main, lands, "{name}");
        assert_eq!(test.git(["status", "--porcelain"]), "", "{name}");
        std::fs::remove_file(&lock).unwrap();
        if !lands {
            test.run(&["merge", &ended.id]).ended("merged", "approved", 0);
        }
    }
}

/// Each is overtaken by the one before. A run that was overtaken lands next.
#[test]
fn r_13_six_runs_at_once_all_land() {
    let scenes = "== maker ==\nsh f=$(mktemp src/newXXXXXX) && chmod 644 $f && echo made > $f && echo case > tests/$(basename $f)_test.sh\n\
        commit Work\nsay <<END\n## Summary\n\nDone.\n\n## Tests\n\nall pass\n\nSTATUS: DONE\nEND\n\n";
    let test = Test::new().unshadowed().play(scenes).tests("sleep 1; sh tests/check.sh");
    let children: Vec<_> = (0..6)
        .map(|n| {
            let arguments = test.arguments(&format!("Add file {n} to the app"), &["--auto-merge"]);
            let mut command = test.command(PROGRAM);
            command.args(arguments).current_dir(&test.repo);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let landed = test.git(["ls-tree", "-r", "--name-only", "main", "src/"]);
    assert_eq!(landed.lines().filter(|line| line.contains("/new")).count(), 6, "{landed}");
}
