//! Git as users have it: filters, sparse checkouts, worktrees, submodules, line endings. Each works, or is refused before
//! an agent starts.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::harness::Test;
use crate::user::{PROGRAM, printed};

const POINTER: &str = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";

/// Of a run whose Maker commits and whose change lands. It takes 17.
const MOST_GIT_PROCESSES: usize = 19;

/// One change lands, and the checkout is clean afterwards.
fn lands(test: &Test) {
    test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    assert_eq!(test.git(["status", "--porcelain"]), "");
}

#[test]
fn u_05_m_e25_files_with_a_filter_are_refused_before_an_agent_starts() {
    // A filter of the user's own, one that only the repository names, and Git LFS that is not installed.
    for scope in [Some("--global"), Some("--local"), None] {
        let test = Test::new().play("");
        test.file(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\nplain.bin !filter\n");
        test.file("deep/data.bin", POINTER).file("plain.bin", "plain\n");
        test.commit("LFS");
        if let Some(scope) = scope {
            for key in ["filter.lfs.clean", "filter.lfs.smudge"] {
                let ran = format!("touch '{}'; cat", test.base().join("ran").display());
                test.git(["config", scope, key, &ran]);
            }
        }
        let refused =
            test.go(&["--auto-merge"]).refused(21, &["deep/data.bin (filter=lfs)", "git.filters: pointers"]);
        assert!(!refused.stderr.contains("plain.bin"), "{refused}");
        assert_eq!(refused.json["reason"], "filters");
        assert_eq!(test.run_ids(), [""; 0], "a run was begun");
        // The user's own filters are run where git looks at the user's own checkout.
        let ran = test.base().join("ran").exists();
        assert!(!ran || scope == Some("--global"), "the filter was run");
        let test = test.config("git:\n  filters: pointers\n");
        let merged = test.go(&["--auto-merge"]).ended("merged", "approved", 0);
        assert!(merged.stderr.contains("as committed: deep/data.bin (filter=lfs)"), "{merged}");
    }
}

#[test]
fn u_05_attributes_outside_of_the_commit_count_and_others_do_not() {
    let test = Test::new().play("");
    test.file(".git/info/attributes", "src/*.txt filter=crypt\n");
    test.go(&["--auto-merge"]).refused(21, &["src/app.txt (filter=crypt)"]);
    let test = Test::new().play("");
    fs::create_dir_all(test.home().join(".config/git")).unwrap();
    fs::write(test.home().join(".config/git/attributes"), "*.md filter=notes\n").unwrap();
    test.go(&["--auto-merge"]).refused(21, &["README.md (filter=notes)"]);
    // The word alone is none, and an attribute for paths that are not there concerns nobody.
    let test = Test::new().play("");
    test.file(".gitattributes", "# filter=lfs\n*.psd filter=lfs\n*.txt -filter\n");
    test.commit("Attributes");
    lands(&test);
}

#[test]
fn u_05_a_sparse_checkout_stays_sparse() {
    let test = Test::new().play("");
    test.file("other/big.txt", "big\n");
    test.commit("More");
    test.git(["sparse-checkout", "set", "src", "tests"]);
    assert!(!test.repo.join("other/big.txt").exists());
    lands(&test);
    assert!(!test.repo.join("other/big.txt").exists(), "it was filled");
    assert!(test.read("src/app.txt").contains("made in"));
}

#[test]
fn u_05_a_linked_worktree_is_a_checkout_like_any_other() {
    let test = Test::new().play("");
    let linked = test.base().join("linked");
    test.git(["worktree", "add", "-q", "-b", "feature", linked.to_str().unwrap()]);
    let mut program = test.command(PROGRAM);
    program.args(test.arguments("Add a line to the app", &["--auto-merge"])).current_dir(&linked);
    let output = program.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
    assert!(fs::read_to_string(linked.join("src/app.txt")).unwrap().contains("made in"));
    let subject = test.git(["log", "-1", "--format=%s", "feature"]);
    assert_eq!(subject, "Add a line to the app");
    assert!(!test.read("src/app.txt").contains("made in"), "the main checkout has another branch");
}

#[test]
fn u_05_submodules_are_named_before_the_run() {
    let test = Test::new().play("");
    let sub = test.base().join("sub");
    test.repository(&sub, &[("lib.txt", "lib\n")]);
    let add =
        ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", sub.to_str().unwrap(), "lib"];
    test.git(add);
    test.commit("Submodule");
    let merged = test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    assert!(merged.stderr.contains("submodules are empty folders for agents and tests: lib"), "{merged}");
    assert_eq!(test.git(["status", "--porcelain"]), "");
}

#[test]
fn u_05_names_that_differ_in_case_only_are_two_files_where_the_file_system_says_so() {
    let test = Test::new().play("");
    test.file("Readme.md", "# Another\n");
    test.commit("Two of them");
    lands(&test);
    assert_eq!(
        (test.read("README.md").as_str(), test.read("Readme.md").as_str()),
        ("# The app\n", "# Another\n")
    );
}

#[test]
fn u_05_line_endings_of_the_checkout_stay_as_the_user_has_them() {
    for (attributes, autocrlf) in [("* text=auto eol=crlf\n", "false"), ("* text=auto\n", "true")] {
        let test = Test::new().play("");
        test.git(["config", "core.autocrlf", autocrlf]);
        test.file(".gitattributes", attributes);
        test.git(["add", "--renormalize", "."]);
        test.commit("Attributes");
        test.git(["rm", "-q", "--cached", "-r", "."]);
        test.git(["reset", "-q", "--hard"]);
        assert!(test.read("src/app.txt").contains("line 1\r\n"), "{attributes}");
        lands(&test);
        let app = test.read("src/app.txt");
        assert!(app.contains("line 1\r\n") && app.contains("made in cycle 1 attempt 1\r\n"), "{app:?}");
        let stored = test.git(["cat-file", "blob", "HEAD:src/app.txt"]);
        assert!(!stored.contains('\r'), "{stored:?}");
    }
}

/// A case that is no longer answered by the program itself falls back to git, which every other test takes for right.
#[test]
fn i15_a_plain_run_starts_few_git_processes() {
    let test = Test::new().play("");
    let bin = test.base().join("bin");
    fs::create_dir_all(&bin).unwrap();
    let path = std::env::var("PATH").unwrap();
    let git =
        std::env::split_paths(&path).map(|folder| folder.join("git")).find(|git| git.is_file()).unwrap();
    let calls = test.base().join("calls");
    let script = format!(
        "#!/bin/sh\n[ \"$GIT_EDITOR\" = false ] && echo \"$*\" >> '{}'\nexec '{}' \"$@\"\n",
        calls.display(),
        git.display()
    );
    fs::write(bin.join("git"), script).unwrap();
    fs::set_permissions(bin.join("git"), PermissionsExt::from_mode(0o755)).unwrap();
    let test = test.env("PATH", format!("{}:{path}", bin.display()));
    test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    // Only those of the program: the harness asks git as well, with an editor of its own or none.
    let calls = fs::read_to_string(calls).unwrap();
    assert!(calls.contains("diff-tree"), "they are not written down: {calls}");
    assert!(calls.lines().count() <= MOST_GIT_PROCESSES, "{calls}");
}

/// Git itself waits for it without end.
#[test]
fn r_13_a_pipe_where_git_reads_is_refused() {
    for place in [".git/info/exclude", ".gitignore", ".gitattributes"] {
        let test = Test::new().play("");
        let _ = std::fs::remove_file(test.repo.join(place));
        test.sh(&format!("mkfifo {place}"));
        // The auditor asks git.
        let refused = test.unaudited().go(&["--auto-merge"]);
        assert!(refused.code != 0 && refused.stderr.contains("it is a pipe"), "{place}: {refused}");
    }
}

#[test]
fn r_13_a_pipe_for_a_gitignore_in_a_folder_below_holds_no_run_up() {
    let test = Test::new().play("");
    test.sh("mkfifo src/.gitignore");
    let merged = test.unaudited().go(&["--auto-merge"]).ended("merged", "approved", 0);
    assert!(merged.stderr.contains("it can't be listed: git status"), "{merged}");
}
