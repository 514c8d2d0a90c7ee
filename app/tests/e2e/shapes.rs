//! Repositories of every shape (FAULTS 6E): each lands a change or is refused with words, and nothing else changes.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};

use crate::harness::{TASK, Test};

#[test]
fn m_e1_m_e2_m_e3_places_that_are_refused() {
    let unborn = Test::empty("repo").play("").unaudited();
    unborn.go(&[]).refused(21, &["commit"]);
    let detached = Test::new().play("");
    detached.git(["checkout", "-q", "--detach"]);
    detached.go(&[]).refused(21, &["--target"]);
    detached.go(&["--target", "main", "--auto-merge"]).ended("merged", "approved", 0);
    let nowhere = Test::new().play("").unaudited().from("..");
    nowhere.go(&[]).refused(21, &["--repo"]);
    let inside = Test::new().play("").from(".git");
    inside.go(&[]).refused(21, &[]);
    let bare = Test::new().play("").unaudited();
    bare.git(["clone", "-q", "--bare", ".", "../bare.git"]);
    let bare = bare.from("../bare.git");
    bare.go(&[]).refused(21, &[]);
}

#[test]
fn m_s11_state_that_is_a_link_is_refused() {
    let test = Test::new().play("");
    let victim = test.base().join("victim");
    fs::create_dir(&victim).unwrap();
    symlink(&victim, test.repo.join(".archeflow")).unwrap();
    test.go(&[]).refused(21, &[".archeflow"]);
    assert_eq!(fs::read_dir(&victim).unwrap().count(), 0, "nothing was written through it");
    for name in ["events", "artifacts"] {
        let test = Test::new().play("");
        let victim = test.base().join("victim");
        fs::create_dir(&victim).unwrap();
        fs::create_dir(test.repo.join(".archeflow")).unwrap();
        symlink(&victim, test.repo.join(".archeflow").join(name)).unwrap();
        test.go(&[]).refused(21, &[name]);
        assert_eq!(fs::read_dir(&victim).unwrap().count(), 0, "{name}");
    }
    // Files that are links are not written through either.
    let test = Test::new().play("");
    let victim = test.base().join("victim");
    fs::write(&victim, "mine").unwrap();
    fs::create_dir(test.repo.join(".archeflow")).unwrap();
    symlink(&victim, test.repo.join(".archeflow/progress.md")).unwrap();
    test.go(&["--auto-merge"]);
    assert_eq!(fs::read_to_string(&victim).unwrap(), "mine", "progress.md was written through a link");
}

/// A shape is prepared, then one change must land in it.
fn lands(name: &str, prepare: impl FnOnce(Test) -> Test) {
    let test = prepare(Test::new().play(""));
    let merged = test.go(&["--auto-merge"]);
    assert_eq!((merged.code, merged.json["status"].as_str()), (0, Some("merged")), "{name}\n{merged}");
    assert!(test.read("src/app.txt").contains("made in cycle 1"), "{name}");
}

fn hook(test: &Test, name: &str, body: &str) {
    let path = test.repo.join(".git/hooks").join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn m_e_shapes_in_which_a_change_lands() {
    lands("master only", |test| {
        test.git(["branch", "-q", "-M", "master"]);
        test
    });
    lands("M-E16 hooks", |test| {
        for name in [
            "pre-commit",
            "commit-msg",
            "prepare-commit-msg",
            "post-checkout",
            "reference-transaction",
            "post-merge",
            "pre-merge-commit",
            "post-commit",
        ] {
            hook(&test, name, "touch \"$HOME/hook-ran\"; exit 1");
        }
        test
    });
    lands("M-E17 hooksPath", |test| {
        test.git(["config", "core.hooksPath", "/nowhere"]);
        test
    });
    lands("M-E28 names", |test| {
        for name in [
            "with space.txt",
            "ünïcødé.txt",
            "new\nline.txt",
            "tab\tand\"quote\\.txt",
            "-dash",
            ":(glob)*",
            "日本語.txt",
        ] {
            test.file(name, "x\n");
        }
        test.file(OsStr::from_bytes(b"latin\xe9.txt"), "x\n");
        test.file(format!("{}.txt", "n".repeat(250)), "x\n");
        test.commit("Names");
        test
    });
}

#[test]
fn m_e_more_shapes_in_which_a_change_lands() {
    lands("M-E24 submodule", |test| {
        let sub = test.base().join("sub");
        fs::create_dir(&sub).unwrap();
        let git = |arguments: &[&str]| {
            assert!(test.command("git").args(arguments).current_dir(&sub).status().unwrap().success());
        };
        git(&["init", "-q"]);
        git(&["-c", "user.name=S", "-c", "user.email=s@s", "commit", "-q", "--allow-empty", "-m", "Sub"]);
        test.git([
            "-c",
            "protocol.file.allow=always",
            "submodule",
            "--quiet",
            "add",
            sub.to_str().unwrap(),
            "lib",
        ]);
        test.commit("Submodule");
        test
    });
    lands("M-E7 sparse index features", |test| {
        for (key, value) in
            [("core.untrackedCache", "true"), ("core.splitIndex", "false"), ("core.commitGraph", "true")]
        {
            test.git(["config", key, value]);
        }
        test.git(["commit-graph", "write", "--reachable"]);
        test
    });
    lands("M-E31 autocrlf", |test| {
        test.file(".gitattributes", "* text=auto\n");
        test.commit("Attributes");
        test
    });
    lands("M-E33 packed refs and many", |test| {
        for n in 0..50 {
            test.git(["branch", &format!("old/{n}")]);
        }
        test.git(["pack-refs", "--all"]);
        test
    });
    lands("M-E35 worktrees that are missing, locked or half made", |test| {
        for name in ["missing", "locked"] {
            let path = test.base().join(name);
            test.git(["worktree", "add", "-q", "--detach", path.to_str().unwrap()]);
            fs::remove_dir_all(path).unwrap();
        }
        test.git(["worktree", "lock", test.base().join("locked").to_str().unwrap()]);
        fs::create_dir(test.repo.join(".git/worktrees/half")).unwrap();
        fs::write(test.repo.join(".git/worktrees/half/HEAD"), "").unwrap();
        test
    });
    lands("from a subdirectory", |test| test.from("src"));
    lands("environment of a hook", |test| {
        let git = test.repo.join(".git");
        test.env("GIT_DIR", "/nowhere")
            .env("GIT_INDEX_FILE", git.join("other-index"))
            .env("GIT_WORK_TREE", "/")
    });
}

#[test]
fn m_e30_repository_paths_of_every_kind() {
    for name in ["with space", "new\nline", "ünï-日本", "quo'te\"s", "-dash", "$HOME `x`"] {
        let test = Test::named(name).play("");
        test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    }
    let test = Test::named(OsStr::from_bytes(b"latin\xe9")).play("");
    let ended = test.go(&["--auto-merge"]);
    assert!(matches!(ended.code, 0 | 21), "a path that is no UTF-8 works or is refused with words\n{ended}");
    // Through a link.
    let test = Test::new().play("");
    symlink(&test.repo, test.base().join("link")).unwrap();
    let test = test.from("../link");
    test.go(&["--auto-merge"]).ended("merged", "approved", 0);
}

#[test]
fn m_e28_the_makers_file_names_are_kept_exactly_and_shown_safely() {
    let scene = "== maker ==\nsh printf x > 'a b.txt'; printf x > 'ünï.txt'; printf x > \"$(printf 'new\\nline.txt')\"; printf x > \"$(printf 'latin\\351.txt')\"; printf x > \"$(printf 'esc\\033]0;owned\\007.txt')\"; printf x > ./-dash; echo y >> tests/check_test.sh\n\
                 commit Names\nsay <<END\nDone.\n\nSTATUS: DONE\nEND\n\n";
    let test = Test::new().unshadowed().play(scene);
    let merged = test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    for name in [
        &b"a b.txt"[..],
        "ünï.txt".as_bytes(),
        b"new\nline.txt",
        b"latin\xe9.txt",
        b"esc\x1b]0;owned\x07.txt",
        b"-dash",
    ] {
        assert!(test.repo.join(OsStr::from_bytes(name)).exists(), "{}", String::from_utf8_lossy(name));
    }
    let list = merged.artifact("do-maker-files.txt");
    assert_eq!(list.lines().count(), 7, "D-11: one path a line\n{list}");
    assert!(list.contains("\"new\\nline.txt\"") && list.contains("\"latin\\351.txt\""), "{list}");
    assert_eq!(test.git(["status", "--porcelain"]), "");
}

#[test]
fn m_e27_type_and_mode_changes_land_or_are_raised() {
    let scene = "== maker ==\nsh chmod +x src/app.txt; git mv README.md docs.md; echo y >> tests/check_test.sh\n\
                 commit Modes\nsay <<END\nDone.\n\nSTATUS: DONE\nEND\n\n";
    let test = Test::new().unshadowed().play(scene);
    test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    assert!(test.repo.join("docs.md").exists() && !test.repo.join("README.md").exists());
    let mode = fs::metadata(test.repo.join("src/app.txt")).unwrap().permissions().mode();
    assert_eq!(mode & 0o111, 0o111);
    let scene = "== maker ==\nsh rm README.md; mkdir README.md; echo x > README.md/x; echo y >> tests/check_test.sh\n\
                 commit Type\nsay <<END\nDone.\n\nSTATUS: DONE\nEND\n\n";
    let test = Test::new().unshadowed().play(scene);
    test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    assert!(test.repo.join("README.md/x").exists());
}

#[test]
fn m_e29_names_that_reach_into_git_are_not_taken() {
    let scene = "== maker ==\nsh mkdir -p sub/.git sub/.GIT; echo evil > sub/.git/config; echo y >> tests/check_test.sh; echo z >> src/app.txt\n\
                 say <<END\nDone.\n\nSTATUS: DONE\nEND\n\n";
    let test = Test::new().play(scene);
    let ended = test.go(&["--auto-merge"]);
    assert!(!test.repo.join("sub/.git").exists() && !test.repo.join("sub/.GIT").exists(), "{ended}");
}

#[test]
fn m_e5_shallow_clones_work() {
    let test = Test::new().play("");
    for n in 0..3 {
        test.file("more.txt", format!("{n}\n"));
        test.commit("More");
    }
    let url = format!("file://{}", test.repo.display());
    let clone = test.base().join("clone");
    test.git(["clone", "-q", "--depth", "1", &url, clone.to_str().unwrap()]);
    let mut test = test;
    test.repo = clone;
    let test = test.from("");
    test.git(["config", "user.name", "Jo User"]);
    test.git(["config", "user.email", "jo@example.org"]);
    test.go(&["--auto-merge"]).ended("merged", "approved", 0);
}

#[test]
fn runs_from_a_linked_worktree_land_there() {
    let test = Test::new().play("");
    let linked = test.base().join("linked");
    test.git(["worktree", "add", "-q", "-b", "side", linked.to_str().unwrap()]);
    let main = test.repo.clone();
    let mut test = test;
    test.repo = linked;
    let test = test.from("").watch(main).meanwhile(&["git:worktrees/linked/"]);
    test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    assert!(test.read("src/app.txt").contains("made in cycle 1"));
}

#[test]
fn m_f15_m_n1_runs_side_by_side_all_land() {
    let scene = "== maker ==\nsh echo \"$ARCHEFLOW_RUN_ID\" > \"made-$ARCHEFLOW_RUN_ID.txt\"; echo y > \"tests/$ARCHEFLOW_RUN_ID.test.sh\"\n\
                 commit Work\nsay <<END\nDone.\n\nSTATUS: DONE\nEND\n\n";
    let test = Test::new().unshadowed().play(scene);
    let arguments = test.arguments(TASK, &["--auto-merge"]);
    let start = || {
        test.command(env!("CARGO_BIN_EXE_archeflow"))
            .args(&arguments)
            .current_dir(&test.repo)
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap()
    };
    let both = [start(), start(), start()];
    for child in both {
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!(test.run_ids().len(), 3);
    for id in test.run_ids() {
        assert!(test.repo.join(format!("made-{id}.txt")).exists());
    }
    assert_eq!(test.git(["status", "--porcelain"]), "");
}

/// Clones the repository of a test beside it, and works in the clone from now on.
fn cloned(test: Test, options: &[&str]) -> Test {
    let url = format!("file://{}", test.repo.display());
    let clone = test.base().join("clone");
    test.git(["config", "uploadpack.allowFilter", "true"]);
    let words = [&["clone", "-q"], options, &[&url, clone.to_str().unwrap()]].concat();
    test.git(words);
    let mut test = test;
    test.repo = clone;
    let test = test.from("");
    test.git(["config", "user.name", "Jo User"]);
    test.git(["config", "user.email", "jo@example.org"]);
    test
}

#[test]
fn m_e6_a_partial_clone_whose_objects_are_missing_stops_the_run() {
    for options in [&["--filter=blob:none"][..], &["--filter=blob:none", "--no-checkout"]] {
        let test = Test::new().play("");
        test.file("src/app.txt", test.read("src/app.txt") + "line 21\n");
        test.commit("More");
        let test = cloned(test, options).unaudited();
        fs::remove_dir_all(test.base().join("repo")).unwrap();
        let main = test.git(["rev-parse", "main"]);
        let stopped = test.go(&["--auto-merge"]);
        assert!(matches!(stopped.code, 21 | 30), "{stopped}");
        assert_eq!(test.git(["rev-parse", "main"]), main);
    }
}

#[test]
fn m_e34_a_damaged_or_missing_object_stops_the_run_and_is_not_repaired() {
    for garbage in [Some("garbage"), None] {
        let test = Test::new().play("").unaudited();
        let blob = test.git(["rev-parse", "HEAD:src/app.txt"]);
        let object = test.repo.join(".git/objects").join(&blob[..2]).join(&blob[2..]);
        fs::remove_file(&object).unwrap();
        if let Some(garbage) = garbage {
            fs::write(&object, garbage).unwrap();
        }
        let main = test.git(["rev-parse", "main"]);
        let stopped = test.go(&["--auto-merge"]);
        assert!(matches!(stopped.code, 21 | 30), "{stopped}");
        assert_eq!(test.git(["rev-parse", "main"]), main);
        assert_eq!(fs::read_to_string(&object).ok().as_deref(), garbage, "{stopped}");
    }
}

/// Only root can give a file away.
#[test]
fn m_e38_a_repository_of_another_user_is_refused_as_git_does() {
    let test = Test::new().play("").unaudited();
    let given = std::process::Command::new("chown")
        .args(["-R", "4711:4711"])
        .arg(&test.repo)
        .stderr(std::process::Stdio::null())
        .status();
    if !given.unwrap().success() {
        return;
    }
    let refused = test.go(&["--auto-merge"]);
    assert!(matches!(refused.code, 21 | 30), "{refused}");
    assert!(refused.stderr.contains("dubious ownership"), "{refused}");
    assert!(!test.home().join(".gitconfig").exists(), "no exception is added");
}
