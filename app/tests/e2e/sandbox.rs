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
    let test = kept_in().unsandboxed().without_preflight();
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
    for config in [
        "sandbox:\n  network: full\n",
        "sandbox:\n  read: [/root]\n",
        "sandbox:\n  write: [/root]\n",
        "sandbox:\n  hosts: [example.org]\n",
    ] {
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
    let test = Test::new()
        .play("")
        .config("preflight: false\nsandbox:\n  file_size: 1\n")
        .tests("head -c 9000000 /dev/zero > big");
    let ended = test.go(&["--auto-merge"]).ended("stopped", "tests_failed", 13);
    let tail = ended.events("tests.done")[0]["tail"].to_string();
    assert!(tail.contains("sandbox.file_size"), "{tail}");
}

/// What an agent must not be able to do, each a command of the shell that succeeds where it is kept in.
fn attacks(test: &Test) -> String {
    let base = test.base();
    fs::create_dir_all(test.home().join(".ssh")).unwrap();
    fs::write(test.home().join(".ssh/id_rsa"), "precious").unwrap();
    fs::write(base.join("secret"), "precious").unwrap();
    let attacks = [
        "! cat 'BASE/secret'",
        "! cat 'HOME/.ssh/id_rsa'",
        "test \"$HOME\" != 'HOME' && echo x > ~/.gitconfig",
        "! ls 'BASE/repo/.archeflow'",
        "! ls 'HOME/.local/state/archeflow/own-runs'",
        "! touch 'BASE/repo/mark'",
        "! git -C 'BASE/repo' config core.pager evil",
        "! ls ../host.git",
        "! cat /proc/1/environ",
        "test $(ls -d /proc/[0-9]* | wc -l) -lt 12",
        "git log -1 && git status --short",
    ];
    let base = base.display().to_string();
    let home = test.home().display().to_string();
    let lines = attacks.iter().map(|line| line.replace("BASE", &base).replace("'HOME", &format!("'{home}")));
    lines.map(|line| format!("sh {line}\n")).collect()
}

const MADE: &str = "sh echo made >> src/app.txt; echo case >> tests/check_test.sh\ncommit Work\n\
    say <<END\n## Summary\n\nDone.\n\n## Tests\n\nall pass\n\nSTATUS: DONE\nEND\n\n";

#[test]
fn s_12_a_maker_sees_nothing_but_its_copy() {
    let test = Test::new();
    let scenes = format!("== maker ==\n{}{MADE}", attacks(&test));
    let test = test.play(&scenes);
    test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    assert!(test.read("src/app.txt").ends_with("made\n"));
    assert!(!test.home().join(".gitconfig").exists() && !test.repo.join("mark").exists());
    let open = Test::new();
    let scenes = format!("== maker ==\n{}{MADE}", attacks(&open));
    let open = open.play(&scenes).unsandboxed();
    open.go(&["--auto-merge"]).ended("failed", "agent_failures", 30);
}

#[test]
fn s_12_a_reviewer_can_change_nothing_and_sees_nothing_else() {
    let test = Test::new();
    let scenes = format!(
        "== guardian ==\n{}sh ! touch src/app.txt && ! rm README.md && ! echo x > new && ! git add -A\n\
         sh touch \"$TMPDIR/x\" ~/x /tmp/x\nsay <<END\nVERDICT: APPROVED\nFINDINGS: 0\n\nSTATUS: DONE\nEND\n\n",
        attacks(&test)
    );
    let test = test.play(&scenes);
    let merged = test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    assert_eq!(merged.times("guardian"), 1, "{merged}");
}

#[test]
fn s_12_an_agent_finds_its_files_and_its_usage_is_read() {
    let test = Test::new().cmd(
        "#!/bin/sh\n{sign}. \"$(dirname \"$0\")/words.sh\"\n\
         echo '{\"input_tokens\": 7, \"output_tokens\": 3, \"cost_usd\": 0.01}' > \"$ARCHEFLOW_USAGE_FILE\"\nsay | sign\n",
    );
    let words = "say() { printf 'VERDICT: APPROVED\\nFINDINGS: 0\\nSTATUS: DONE\\n'; }\n";
    fs::write(test.base().join("agents/words.sh"), words).unwrap();
    test.file("src/app.txt", "changed\n");
    let outcome = test.look(&["--reviewers", "guardian", "--format", "json"]);
    assert_eq!(outcome.code, 0, "{outcome}");
    assert!(outcome.journal.iter().any(|line| line["data"]["estimated_cost_usd"] == 0.01), "{outcome}");
}

/// Connects to both ports; the first has to answer, and the second must not be reached.
fn connects(open: u16, closed: u16) -> String {
    let to = |port: u16| format!("bash -c ': < /dev/tcp/127.0.0.1/{port}'");
    format!("== maker ==\nsh {}\nsh ! {}\n{MADE}", to(open), to(closed))
}

fn listening() -> (std::net::TcpListener, u16) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

#[test]
fn s_12_an_agent_reaches_the_hosts_that_its_user_lists_and_no_others() {
    let ((_open, open), (_closed, closed)) = (listening(), listening());
    let listed = format!("sandbox:\n  hosts: [\"127.0.0.1:{open}\"]\n");
    let test = Test::new().play(&connects(open, closed)).config(&listed);
    test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    // Nobody is listed, so nobody answers.
    let test = Test::new().play(&connects(open, closed));
    test.go(&["--auto-merge"]).ended("failed", "agent_failures", 30);
    for (setting, value) in [("hosts", "https://example.org/v1"), ("read", "notes"), ("write", "../notes")] {
        let test = Test::new().play("").config(&format!("sandbox:\n  {setting}: [\"{value}\"]\n"));
        test.go(&["--auto-merge"]).refused(2, &["sandbox.", value, "allowed:"]);
    }
}

/// A folder of programs without `bwrap`, so that the other level is in force.
pub(crate) fn without_bwrap(test: &Test) -> String {
    let bin = test.base().join("bin");
    fs::create_dir_all(&bin).unwrap();
    for folder in ["/usr/bin", "/bin"] {
        for entry in fs::read_dir(folder).unwrap().flatten().filter(|entry| entry.file_name() != "bwrap") {
            let _ = std::os::unix::fs::symlink(entry.path(), bin.join(entry.file_name()));
        }
    }
    bin.display().to_string()
}

#[test]
fn s_12_agents_work_where_there_is_only_landlock_and_reach_listed_ports_only() {
    let ((_open, open), (_closed, closed)) = (listening(), listening());
    let listed = format!("sandbox:\n  hosts: [\"127.0.0.1:{open}\"]\n");
    let test = Test::new();
    let base = test.base().display().to_string();
    fs::write(test.base().join("secret"), "precious").unwrap();
    let kept = format!("sh ! cat '{base}/secret'\nsh ! touch '{base}/repo/mark'\nsh ! touch ../mark\n");
    let scenes = connects(open, closed).replace("sh echo made", &format!("{kept}sh echo made"));
    let path = without_bwrap(&test);
    let test = test.play(&scenes).config(&listed).env("PATH", path);
    let merged = test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    assert_eq!(merged.events("session.start")[0]["sandbox"], "landlock", "{merged}");
    assert!(merged.stderr.contains("\nSandbox: landlock\n"), "{merged}");
    let merged = Test::new().unsandboxed().play("").go(&["--auto-merge"]).ended("merged", "approved", 0);
    assert!(merged.stderr.contains("\nSandbox: none. "), "{merged}");
}

#[test]
fn s_12_a_client_whose_key_can_not_be_held_is_refused_and_not_started() {
    for (agent, variable, words) in [
        ("claude", ("CLAUDE_CODE_OAUTH_TOKEN", "planted-secret"), "which needs a key in ANTHROPIC_API_KEY"),
        ("opencode:groq/x", ("GROQ_API_KEY", "planted-secret"), "needs the key of opencode's provider"),
        ("goose:groq/x", ("GROQ_API_KEY", "planted-secret"), "other providers than openai and anthropic"),
    ] {
        let test = Test::new().config("sandbox:\n  keys: proxy\n");
        let bin = test.base().join("bin");
        fs::create_dir_all(&bin).unwrap();
        let program = bin.join(agent.split(':').next().unwrap());
        fs::write(&program, "#!/bin/sh\nenv; echo started\n").unwrap();
        fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display());
        let test = test.env("PATH", path).env(variable.0, variable.1);
        let outcome = test.go(&["--agent", agent, "--auto-merge", "--budget", "50"]);
        let failed = outcome.events("agent.failed");
        let reason = failed.first().map(|failed| failed["reason"].to_string()).unwrap_or_default();
        assert!(reason.contains(words) && reason.contains("set sandbox.keys to agent"), "{agent}: {outcome}");
        assert!(!format!("{outcome}").contains("planted-secret"), "{outcome}");
    }
}
