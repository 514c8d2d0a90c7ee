//! A repository with several projects (U-16): configuration, commands and diff are those of where the user stands.

use std::fs;

use crate::harness::{Test, review};

const MAKER: &str = "== maker ==\nsh echo made >> packages/a/app.txt; echo case >> packages/a/check_test.sh\n\
                     commit Do it\nsay <<END\nDone.\n\nSTATUS: DONE\nEND\n\n";

/// Two packages; the one has its own configuration, the other has none.
fn test() -> Test {
    let test = Test::new().unshadowed().play(MAKER).without_tests();
    test.file(".archeflow/config.yaml", "test_command: sh tests/check.sh\nworkflow: fast\n");
    test.file("packages/a/.archeflow/config.yaml", "test_command: test -e app.txt && echo of-a\n");
    test.file("packages/a/app.txt", "a\n").file("packages/a/src/deep.txt", "x\n");
    test.file("packages/b/app.txt", "b\n");
    test.commit("Packages");
    test
}

#[test]
fn u_16_tests_and_configuration_are_those_of_where_the_user_stands() {
    for (place, command) in [
        ("", "sh tests/check.sh"),
        ("packages/b", "sh tests/check.sh"),
        ("packages/a", "cd packages/a && { test -e app.txt && echo of-a\n}"),
        ("packages/a/src", "cd packages/a && { test -e app.txt && echo of-a\n}"),
    ] {
        let test = test().from(place);
        test.go(&["--auto-merge"]).refused(20, &["test_command", "archeflow trust"]);
        assert_eq!(test.run(&["trust", "--yes"]).code, 0);
        let merged = test.go(&["--auto-merge"]).ended("merged", "approved", 0);
        let start = &merged.events("run.start")[0];
        assert_eq!(start["config"]["test_command"], command, "{place}");
        assert_eq!(start["workflow"], "fast", "{place}: what the folder does not set is the root's");
        let brief = &merged.briefs("maker")[0];
        assert_eq!(brief.contains("in the folder `packages/a`"), place.starts_with("packages/a"), "{brief}");
    }
}

#[test]
fn u_16_each_folder_is_approved_for_itself() {
    let test = test();
    assert_eq!(test.run(&["trust", "--yes"]).code, 0);
    let test = test.from("packages/a");
    test.go(&["--auto-merge"]).refused(20, &["packages/a/.archeflow/config.yaml"]);
    assert_eq!(test.run(&["trust", "--yes"]).code, 0);
    test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    let test = test.from("");
    test.go(&["--auto-merge"]).ended("merged", "approved", 0);
}

#[test]
fn u_16_a_typed_command_runs_in_the_same_folder() {
    for (place, command) in
        [("packages/a", "cd packages/a && grep -q a app.txt"), ("packages/b", "grep -q a packages/a/app.txt")]
    {
        let test = test().from(place);
        assert_eq!(test.run(&["trust", "--yes"]).code, 0);
        let typed = command.trim_start_matches("cd packages/a && ");
        let merged = test.go(&["--auto-merge", "--test-command", typed]).ended("merged", "approved", 0);
        assert_eq!(merged.events("run.start")[0]["config"]["test_command"], command, "{place}");
    }
}

#[test]
fn u_16_a_change_to_a_nested_configuration_is_a_sign() {
    let maker = "== maker ==\nsh echo 'test_command: \"true\"' > packages/a/.archeflow/config.yaml; \
                 echo case >> tests/x_test.sh\ncommit Do it\nsay <<END\nDone.\n\nSTATUS: DONE\nEND\n\n";
    let test = Test::new().unshadowed().play(maker);
    test.file("packages/a/.archeflow/config.yaml", "workflow: fast\n");
    test.commit("A package");
    let ended = test.go(&["--auto-merge"]);
    assert!(ended.code != 0 && ended.stderr.contains("packages/a/.archeflow/config.yaml"), "{ended}");
    assert!(test.read("packages/a/.archeflow/config.yaml").contains("workflow"), "{ended}");
}

#[test]
fn u_16_a_review_is_about_the_folder_where_the_user_stands() {
    let found = review("guardian", "APPROVED", &[]);
    for (place, files) in [("", "a b"), ("packages/a", "a"), ("packages/b", "a b")] {
        let test = Test::new().play(&found).without_tests();
        test.file("packages/a/.archeflow/config.yaml", "workflow: fast\n");
        test.file("packages/a/app.txt", "a\n")
            .file("packages/a/gone.txt", "a\n")
            .file("packages/b/app.txt", "b\n");
        test.commit("Packages");
        test.file("packages/a/app.txt", "a\nmore\n").file("packages/b/app.txt", "b\nmore\n");
        fs::remove_file(test.repo.join("packages/a/gone.txt")).unwrap();
        let test = test.from(place);
        let agent = format!("script:{}", test.base().join("agents/agents.play").display());
        let reviewed = test.run(&["review", "--agent", &agent, "--unattended"]);
        assert_eq!(reviewed.code, 0, "{reviewed}");
        let brief = &reviewed.briefs("guardian")[0];
        for package in ["a", "b"] {
            let path = format!("packages/{package}/app.txt");
            assert_eq!(brief.contains(&path), files.contains(package), "{place}: {brief}");
        }
        assert!(brief.contains("packages/a/gone.txt"), "{brief}");
        let about = reviewed.artifact("about.md");
        assert_eq!(about.contains("Only what changed in packages/a"), place == "packages/a", "{about}");
    }
    let test = Test::new().play(&found).without_tests();
    test.file("packages/a/.archeflow/config.yaml", "workflow: fast\n");
    test.commit("Packages");
    test.file("README.md", "other\n");
    let test = test.from("packages/a");
    let nothing = test.run(&["review", "--agent", "cmd:true", "--unattended"]);
    assert!(nothing.stderr.contains("nothing differs in packages/a"), "{nothing}");
}

#[test]
fn u_16_init_configures_the_project_where_the_user_stands() {
    let test = Test::new().without_tests().meanwhile(&["file:packages/a/.archeflow/config.yaml"]);
    test.file("packages/a/Cargo.toml", "[package]\nname = \"a\"\n").file("packages/b/notes.txt", "x\n");
    test.commit("Packages");
    let test = test.from("packages/b");
    assert_eq!(test.run(&["init", "--dry-run"]).code, 0);
    let test = test.from("packages/a");
    let written = test.run(&["init"]);
    assert!(written.code == 0 && written.stdout.contains("typed in packages/a"), "{written}");
    assert!(test.read("packages/a/.archeflow/config.yaml").contains("test_command: cargo test"));
    assert_eq!(test.read(".archeflow/config.yaml"), "");
}
