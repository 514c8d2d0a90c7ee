//! Runs by short names and without a name, and what a shell completes (U-12).

use std::process::{Command, Stdio};

use crate::harness::{Outcome, Test};

/// A run of this task that waits for a merge.
fn waiting(test: &Test, task: &str) -> String {
    started(test, task, &["--unattended"]).ended("awaiting_merge", "approved", 10).id
}

fn started(test: &Test, task: &str, more: &[&str]) -> Outcome {
    let arguments = test.arguments(task, more);
    test.run(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn u_12_a_short_name_means_the_same_run_in_every_command() {
    let test = Test::new().play("");
    let first = waiting(&test, "Größe der Fenster ändern");
    let second = waiting(&test, "Fix the login");
    assert!(first.ends_with("-groesse-der-fenster-aendern"), "{first}");
    let cases: [(&str, &str); 6] = [
        ("groesse", &first),
        ("Größe", &first),
        ("fenster ändern", &first),
        ("@2", &first),
        ("last", &second),
        ("login", &second),
    ];
    for (name, id) in cases {
        for command in [
            &["status"][..],
            &["show"],
            &["show", "--why"],
            &["report", "--summary"],
            &["dag"],
            &["replay", "timeline"],
            &["replay", "whatif"],
            &["memory", "why"],
            &["trust", "--show", "--run"],
        ] {
            let shown = test.run(&[command, &[name]].concat());
            assert_eq!(shown.code, 0, "{command:?} {name}\n{shown}");
            let said = shown.stderr.lines().filter(|line| line.starts_with(&format!("Run: {id} ("))).count();
            assert_eq!(said, 1, "{command:?} {name}: the choice is printed once\n{shown}");
        }
        let json = test.run(&["status", name, "--json"]);
        assert_eq!(json.json["run_id"], id, "{name}\n{json}");
    }
    let whole = test.run(&["status", &second]);
    assert!(!whole.stderr.contains("Run:"), "a whole id needs no explanation\n{whole}");
    let compared = test.run(&["replay", "compare", "@1", "gro", "--json"]);
    let ids: Vec<&str> =
        compared.json["runs"].as_array().unwrap().iter().map(|run| run["run_id"].as_str().unwrap()).collect();
    assert_eq!(ids, [second.as_str(), first.as_str()], "{compared}");

    // What drives takes them as well.
    test.run(&["continue", "fenster", "--one-more-cycle", "--unattended"]);
    test.run(&["merge", "fix-the"]).ended("merged", "approved", 0);
    assert_eq!(test.run(&["discard", "gross"]).code, 2, "nothing was guessed");
    assert_eq!(test.run(&["discard", "groes"]).json["run_id"], *first);
}

#[test]
fn u_12_an_ambiguous_name_lists_the_runs_and_an_unknown_one_the_nearest() {
    let test = Test::new().play("");
    let (first, second) = (waiting(&test, "Fix the login"), waiting(&test, "Fix the logout"));
    for command in [&["show", "fix"][..], &["merge", "fix"], &["discard", "fix-the"], &["show", "20"]] {
        let refused = test.run(command).refused(2, &["2 runs", &first, &second, "Fix the logout"]);
        assert!(refused.journal.iter().all(|line| line["type"] != "merge.requested"), "{refused}");
    }
    test.run(&["show", "fix-teh-logout"]).refused(2, &["there is no run", "Did you mean", &second]);
    test.run(&["show", "nowhere"]).refused(2, &["there is no run 'nowhere'", "archeflow list"]);
    test.run(&["resume", "../../etc/passwd"]).refused(2, &["there is no run"]);
    let json = test.run(&["show", "fix", "--json"]).refused(2, &[]);
    assert_eq!(json.json["exit_code"], 2, "{json}");
}

#[test]
fn u_12_without_a_name_a_command_takes_the_run_it_can_act_on() {
    let test = Test::new().play("");
    for command in ["show", "report", "dag", "merge", "resume", "watch", "discard"] {
        test.run(&[command]).refused(2, &["there is no run in this repository"]);
    }
    let first = waiting(&test, "Fix the login");
    let shown = test.run(&["show"]);
    assert!(shown.code == 0 && shown.stderr.contains(&format!("Run: {first}")), "{shown}");
    test.run(&["resume"]).refused(2, &["no run here is interrupted, paused or failed"]);
    test.run(&["answer", "yes"]).refused(2, &["no run here has an open question"]);
    test.run(&["answer", &first]).refused(2, &["there is no answer for"]);
    test.run(&["stop"]).refused(2, &["no run here is running"]);
    let second = waiting(&test, "Fix the logout");
    test.run(&["discard"]).refused(2, &["2 runs", &first, &second]);
    let merged = test.run(&["merge", "--unattended"]).ended("merged", "approved", 0);
    assert_eq!(merged.id, second, "the newest that waits\n{merged}");
    let discarded = test.run(&["discard"]);
    assert_eq!(discarded.id, first, "the only one left\n{discarded}");
    assert!(discarded.stderr.contains(&format!("Run: {first}")), "{discarded}");
    test.run(&["merge"]).refused(2, &["no run here waits for a merge"]);
    let watched = test.run(&["watch", "--json"]);
    assert_eq!(watched.json["run_id"], second, "{watched}");
}

#[test]
fn u_12_an_answer_finds_the_only_question() {
    let test = Test::new().play("== maker attempt=1 ==\nsay <<END\nWhich?\n\nSTATUS: NEEDS_CONTEXT\nEND\n\n");
    let asks = test.go(&["--unattended"]).ended("awaiting_answer", "needs_context", 10);
    let answered = test.run(&["answer", "the red one", "--unattended"]);
    assert_eq!(answered.id, asks.id, "{answered}");
    assert_eq!(answered.events("question.answered")[0]["text"], "the red one", "{answered}");
}

#[test]
fn u_12_an_interrupted_run_is_resumed_without_its_name() {
    let test = Test::new().play(
        "== maker ==\nsh touch {base}/working\nsh while [ ! -e {base}/go ]; do sleep 0.05; done\n\
         sh echo made >> src/app.txt; echo case >> tests/check_test.sh\ncommit Add the line\n\
         say <<END\n## Summary\n\nA line.\n\nSTATUS: DONE\nEND\n\n",
    );
    let arguments = test.arguments("Fix the login", &["--auto-merge"]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let killed = test.during(&arguments, |child| {
        test.wait_for_file("working");
        child.kill().unwrap();
    });
    test.write("go", "");
    let resumed = test.run(&["resume"]).ended("merged", "approved", 0);
    assert_eq!(resumed.id, killed.id, "{resumed}");
}

/// What a shell would offer for the last of these words.
fn completed(test: &Test, shell: &str, words: &[&str]) -> Vec<String> {
    let mut command = test.command(env!("CARGO_BIN_EXE_archeflow"));
    let output = command
        .env("_ARCHEFLOW_COMPLETE", shell)
        .env("_CLAP_COMPLETE_INDEX", (words.len() - 1).to_string())
        .env("_CLAP_IFS", "\n")
        .arg("--")
        .args(words)
        .current_dir(&test.repo)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn u_12_shells_complete_runs_and_values() {
    let test = Test::new().play("");
    let id = waiting(&test, "Fix the login: now");
    test.file(".archeflow/workflows/careful.yaml", "");
    for (words, wanted) in [
        (&["archeflow", "show", ""][..], id.as_str()),
        (&["archeflow", "merge", "20"], &id),
        (&["archeflow", "run", "--start-from", "do", "--run", ""], &id),
        (&["archeflow", "loop", "status", ""], &id),
        (&["archeflow", "discard", "fix"], "fix-the-login-now"),
        (&["archeflow", "run", "x", "--workflow", ""], "thorough"),
        (&["archeflow", "run", "x", "--workflow", "c"], "careful"),
        (&["archeflow", "run", "x", "--agent", "cl"], "claude"),
        (&["archeflow", "run", "x", "--agent-for", "gu"], "guardian="),
        (&["archeflow", "review", "--format", "s"], "sarif"),
        (&["archeflow", "review", "--reviewers", "sk"], "skeptic"),
        (&["archeflow", "score", "--archetype", "sa"], "sage"),
        (&["archeflow", "explain", "max"], "max_cycles"),
        (&["archeflow", "init", "--set", "costs.bud"], "costs.budget_usd="),
        (&["archeflow", "sta"], "status"),
    ] {
        for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
            let offered = completed(&test, shell, words);
            // Behind the value is its help, in each shell's own way.
            let is_it = |line: &String| {
                line == wanted
                    || line.starts_with(&format!("{wanted}\t"))
                    || line.starts_with(&format!("{wanted}:"))
            };
            assert!(offered.iter().any(is_it), "{shell} {words:?}: {offered:?}");
        }
    }
    let told = completed(&test, "fish", &["archeflow", "show", ""]);
    assert!(told.contains(&format!("{id}\tFix the login: now")), "{told:?}");
    // Somewhere else there is nothing to complete, and nothing goes wrong.
    let elsewhere = completed(&test, "bash", &["archeflow", "show", "--repo", "/", ""]);
    assert!(!elsewhere.iter().any(|line| line.contains("fix")), "{elsewhere:?}");
}

/// The script in a real bash: it is read, the function it registers is called as by the Tab key, and the program found
/// in the path is asked.
#[test]
fn u_12_bash_itself_completes_a_run() {
    let test = Test::new().play("");
    let id = waiting(&test, "Fix the login");
    let script = test.run(&["completions", "bash"]);
    let path = test.write("completions.bash", &script.stdout);
    let folder = test.base().join("bin");
    std::fs::create_dir_all(&folder).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_archeflow"), folder.join("archeflow")).unwrap();
    for (line, wanted) in [("archeflow show 20", id.as_str()), ("archeflow mer", "merge")] {
        let words: Vec<&str> = line.split(' ').collect();
        let pressed = format!(
            "source '{}'; COMP_WORDS=({line}); COMP_CWORD={}; COMP_TYPE=9; \
             set -- $(complete -p archeflow); while [ \"$1\" != -F ]; do shift; done; \
             \"$2\" archeflow '{}' '{}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            path.display(),
            words.len() - 1,
            words[words.len() - 1],
            words[words.len() - 2],
        );
        let mut bash: Command = test.command("bash");
        let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
        let output = bash
            .args(["--norc", "-c", &pressed])
            .env("PATH", path)
            .current_dir(&test.repo)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let offered = String::from_utf8_lossy(&output.stdout).into_owned();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert_eq!(offered.trim(), wanted, "{line}: {complaint}");
    }
}
