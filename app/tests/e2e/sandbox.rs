//! S-12: commands run in the sandbox unless somebody types that they should not, and the journal says which it was.

use std::fs;

use crate::harness::Test;

/// Passes only where the file beside the repository can't be read. These repositories lie below `/tmp`, which is private,
/// so writing there succeeds and reaches nobody.
fn kept_in() -> Test {
    let test = Test::new().play("");
    fs::write(test.base().join("secret"), "precious").unwrap();
    let base = test.base().display().to_string();
    test.tests(&format!(
        "touch '{base}/mark'; ! cat '{base}/secret' && touch \"$HOME/x\" && sh tests/check.sh"
    ))
}

#[test]
fn s_12_m_f11_a_test_command_reaches_nothing_outside_its_copy() {
    let test = kept_in();
    let merged = test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    let level = merged.events("session.start")[0]["sandbox"].clone();
    assert!(level == "bubblewrap" || level == "landlock", "{level}");
    assert_eq!(fs::read_to_string(test.base().join("secret")).unwrap(), "precious");
    assert!(!test.base().join("mark").exists() && !test.home().join("x").exists());
}

#[test]
fn s_12_without_the_sandbox_only_by_typing_it_and_on_record() {
    let test = kept_in().unsandboxed();
    let ended = test.go(&["--auto-merge"]).ended("stopped", "tests_failed", 13);
    assert_eq!(ended.events("session.start")[0]["sandbox"], "none");
    assert!(ended.stderr.contains("no sandbox"), "{ended}");
    // No file can say it, and a repository can't open the network either.
    for (config, words) in [
        ("sandbox:\n  enabled: false\n", "sandbox.enabled"),
        ("unsafe_no_sandbox: true\n", "unsafe_no_sandbox"),
    ] {
        let test = Test::new().play("").config(config);
        let refused = test.go(&["--auto-merge"]);
        assert!(refused.code != 0 && refused.stderr.contains(words), "{refused}");
    }
    for config in ["sandbox:\n  network: full\n", "sandbox:\n  read: [/root]\n"] {
        let test = Test::new().play("");
        test.file(".archeflow/config.yaml", config);
        test.commit("Configure");
        let refused = test.go(&["--auto-merge"]);
        assert!(refused.code != 0 && refused.sent().is_empty(), "{refused}");
    }
}

#[test]
fn s_12_a_hook_changes_nothing_outside_the_checkout() {
    let test = Test::new().play("");
    let base = test.base().display().to_string();
    let folder = test.home().join(".config/archeflow");
    fs::create_dir_all(&folder).unwrap();
    let command =
        format!("test -e src/app.txt && git log -1 && ! touch .git/mark && {{ touch {base}/mark; true; }}");
    fs::write(folder.join("hooks.yaml"), format!("pre-merge:\n  command: '{command}'\n")).unwrap();
    test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    assert!(!test.base().join("mark").exists() && !test.repo.join(".git/mark").exists());
}

#[test]
fn s_12_a_limit_that_is_hit_is_named() {
    let test =
        Test::new().play("").config("sandbox:\n  file_size: 1\n").tests("head -c 9000000 /dev/zero > big");
    let ended = test.go(&["--auto-merge"]).ended("stopped", "tests_failed", 13);
    let tail = ended.events("tests.done")[0]["tail"].to_string();
    assert!(tail.contains("sandbox.file_size"), "{tail}");
}
