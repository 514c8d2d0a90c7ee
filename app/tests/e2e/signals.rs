//! Signals, crashes and second drivers (FAULTS 6H, 6A).

use std::io::{BufRead, BufReader, Read};
use std::time::Duration;

use crate::harness::{Test, as_strs, each, running, signal};

const WAITS: &str =
    "== maker attempt=1 ==\nwrite half.txt <<END\nTOKEN-HALF\nEND\nsh touch {base}/working\nhang\n\n";

fn args(test: &Test) -> Vec<String> {
    test.arguments(crate::harness::TASK, &["--auto-merge"])
}

#[test]
fn m_h1_m_h3_one_signal_stops_cleanly_and_resume_finishes() {
    for (name, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        if name == "HUP" && hangups_are_ignored() {
            continue;
        }
        let test = Test::new().play(WAITS);
        let arguments = args(&test);
        let arguments = as_strs(&arguments);
        let stopped = test.during(&arguments, |child| {
            test.wait_for_file("working");
            signal(child, name);
        });
        assert_eq!(stopped.code, code, "{stopped}");
        assert_eq!(stopped.json["reason"], "interrupted");
        assert!(stopped.stderr.contains(&format!("archeflow resume {}", stopped.id)), "{stopped}");
        assert!(test.git(["log", "--all", "-p"]).contains("TOKEN-HALF"), "I2: the agent's work is kept");
        test.run(&["merge", &stopped.id]).refused(2, &["not finished"]);
        let merged = test.run(&["resume", &stopped.id]).ended("merged", "approved", 0);
        assert_eq!(merged.times("maker"), 2, "{merged}");
    }
}

/// Started under `nohup`, this test and all it starts are deaf to hangups, as they should be (M-H4).
fn hangups_are_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    u64::from_str_radix(ignored.trim(), 16).unwrap() & 1 == 1
}

#[test]
fn m_h4_a_hangup_that_is_ignored_stays_ignored() {
    let test = Test::new().play("== maker attempt=1 ==\nsh touch {base}/working\nsleep 1500\nsh echo x >> src/app.txt; echo y >> tests/check_test.sh\nsay <<END\nDone.\n\nSTATUS: DONE\nEND\n\n");
    let arguments = args(&test);
    let mut child = test
        .command("sh")
        .args(["-c", "trap '' HUP; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_archeflow")])
        .args(&arguments)
        .current_dir(&test.repo)
        .stdin(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    test.wait_for_file("working");
    let sent =
        std::process::Command::new("kill").args(["-s", "HUP", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn m_h2_the_second_signal_does_not_wait_for_the_deaf() {
    let deaf = "== maker attempt=1 ==\ndeaf\nsh touch {base}/working\nhang\n\n";
    // Nobody is ever killed for being slow here, so only the second signal can end this.
    let test = Test::new().play(deaf).env("ARCHEFLOW_FAILPOINT_GRACE", "endless");
    let arguments = args(&test);
    let arguments = as_strs(&arguments);
    let stopped = test.during(&arguments, |child| {
        test.wait_for_file("working");
        let mut said = BufReader::new(child.stderr.take().unwrap());
        signal(child, "INT");
        let mut line = String::new();
        while !line.contains("stopping") {
            line.clear();
            assert!(said.read_line(&mut line).unwrap() > 0, "it never said that it stops");
        }
        signal(child, "INT");
        said.read_to_string(&mut line).unwrap();
    });
    assert_eq!(stopped.code, 130, "{stopped}");
    let test = test.env("ARCHEFLOW_FAILPOINT_GRACE", "");
    test.run(&["resume", &stopped.id]).ended("merged", "approved", 0);
}

#[test]
fn m_h1_i5_a_signal_during_the_tests_leaves_no_process_and_can_be_resumed() {
    // They hold out as long as they are let, and have somebody who left their group.
    let holds_out = "trap '' TERM INT; setsid sh -c 'sleep 600; :' {base}/mark & touch {base}/working; wait";
    let test = Test::new()
        .play("")
        .tests(&format!("if [ ! -e {{base}}/working ]; then {holds_out}; fi; sh tests/check.sh"));
    let arguments = args(&test);
    let arguments = as_strs(&arguments);
    let stopped = test.during(&arguments, |child| {
        test.wait_for_file("working");
        signal(child, "INT");
    });
    assert_eq!(stopped.code, 130, "{stopped}");
    let mark = test.base().join("mark").display().to_string();
    assert_eq!(running(&mark), [""; 0], "{stopped}");
    let merged = test.run(&["resume", &stopped.id]).ended("merged", "approved", 0);
    assert_eq!((merged.times("maker"), merged.times("guardian")), (1, 1), "nobody is sent out twice");
}

#[test]
fn m_h8_a_signal_while_landing_lets_the_landing_finish() {
    // The landing is slow because the tree is large; a signal right after the intent must not leave it half done.
    for delay in [0, 5, 15, 30, 60] {
        let scene = "== maker ==\nsh i=0; mkdir many; while [ $i -lt 300 ]; do echo $i > many/$i.txt; i=$((i+1)); done; echo y >> tests/check_test.sh\n\
                     commit Many\nsay <<END\nDone.\n\nSTATUS: DONE\nEND\n\n";
        let test = Test::new().unshadowed().play(scene);
        let arguments = args(&test);
        let arguments = as_strs(&arguments);
        let ended = test.during(&arguments, |child| {
            test.wait_for("merge.intent", None);
            std::thread::sleep(Duration::from_millis(delay));
            signal(child, "INT");
        });
        assert!(matches!(ended.code, 0 | 130), "{ended}");
        let status = test.git(["status", "--porcelain"]);
        assert_eq!(status, "", "after {delay} ms, exit {}", ended.code);
        if ended.code == 130 {
            test.run(&["resume", &ended.id]).ended("merged", "approved", 0);
        }
    }
}

#[test]
fn i7_a_second_driver_is_refused_with_the_holder_of_the_run() {
    let test = Test::new().play(WAITS);
    let arguments = args(&test);
    let arguments = as_strs(&arguments);
    let stopped = test.during(&arguments, |child| {
        test.wait_for_file("working");
        let id = test.run_ids().pop().unwrap();
        for command in [&["resume", &id][..], &["merge", &id], &["discard", &id], &["answer", &id, "x"]] {
            let second = test
                .command(env!("CARGO_BIN_EXE_archeflow"))
                .args(command)
                .current_dir(&test.repo)
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&second.stderr).into_owned();
            assert_eq!(second.status.code(), Some(21), "{command:?}: {said}");
            assert!(said.contains(&child.id().to_string()), "names the holder {}: {said}", child.id());
        }
        // Looking disturbs nobody.
        for command in [&["status", &id][..], &["show", &id], &["list"]] {
            let look = test
                .command(env!("CARGO_BIN_EXE_archeflow"))
                .args(command)
                .current_dir(&test.repo)
                .output()
                .unwrap();
            assert!(look.status.success(), "{command:?}");
        }
        signal(child, "TERM");
    });
    assert_eq!(stopped.code, 143);
    test.run(&["resume", &stopped.id]).ended("merged", "approved", 0);
}

#[test]
fn i5_i6_a_killed_driver_is_taken_over_by_the_next() {
    let test = Test::new().play(WAITS);
    let arguments = args(&test);
    let arguments = as_strs(&arguments);
    let killed = test.during(&arguments, |child| {
        test.wait_for_file("working");
        child.kill().unwrap();
    });
    assert!(killed.killed);
    let merged = test.run(&["resume", &killed.id]).ended("merged", "approved", 0);
    assert_eq!(merged.events("agent.lost").len(), 1, "{merged}");
    assert!(test.git(["log", "--all", "-p"]).contains("TOKEN-HALF"), "I2");
}

#[test]
fn m_a1_a_crash_after_every_line_changes_no_decision() {
    let decisions = |outcome: &crate::harness::Outcome| -> Vec<String> {
        let said = outcome.events("decision.point").into_iter();
        said.map(|point| format!("{} {} {}", point["rule"], point["archetype"], point["decision"])).collect()
    };
    let golden = decisions(&Test::new().play("").go(&["--auto-merge"]).ended("merged", "approved", 0));
    let rows = ["recorded", "performed"].into_iter().flat_map(|point| (1..=12).map(move |n| (point, n)));
    each(rows, |(point, n)| {
        let test = Test::new().play("").env("ARCHEFLOW_FAILPOINT", format!("{point}:{n}"));
        let mut outcome = test.go(&["--auto-merge"]);
        let test = test.env("ARCHEFLOW_FAILPOINT", "");
        if outcome.killed && !outcome.id.is_empty() {
            outcome = test.run(&["resume", &outcome.id]);
        }
        // A crash after the last line leaves nothing to resume, and that is said.
        if outcome.code != 2 || !outcome.stderr.contains("has ended (merged)") {
            outcome = outcome.ended("merged", "approved", 0);
        }
        assert_eq!(decisions(&outcome), golden, "{point}:{n}\n{outcome}");
        assert_eq!(outcome.events("run.merged").len(), 1);
    });
}

#[test]
fn m_h6_a_reader_that_goes_away_does_not_hurt() {
    let test = Test::new().play("");
    let waiting = test.go(&[]).ended("awaiting_merge", "approved", 10);
    for command in
        [format!("show {}", waiting.id), "list".into(), "config show".into(), "explain guardian".into()]
    {
        let line = format!("'{}' {command} | head -c 1 > /dev/null; true", env!("CARGO_BIN_EXE_archeflow"));
        let output = test
            .command("bash")
            .args(["-o", "pipefail", "-c", &line])
            .current_dir(&test.repo)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!said.contains("panicked"), "{command}: {said}");
    }
    // A run whose progress nobody reads goes on to its end.
    let line = format!(
        "'{}' merge {} 2>&1 >/dev/null | head -c 1 > /dev/null",
        env!("CARGO_BIN_EXE_archeflow"),
        waiting.id
    );
    test.command("bash").args(["-c", &line]).current_dir(&test.repo).output().unwrap();
    let status = test.run(&["status", &waiting.id, "--json"]);
    assert_eq!(status.json["status"], "merged", "{status}");
}

/// Harmless ones change nothing; what the others kill is resumed.
/// Whether this process, and so its children, were started with a signal ignored.
fn is_ignored(signal: u32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap().trim();
    u64::from_str_radix(mask, 16).unwrap() >> (signal - 1) & 1 == 1
}

#[test]
fn m_h7_other_signals_have_an_effect_that_is_known() {
    let maker = "== maker attempt=1 ==\nsh touch {base}/working; until [ -e {base}/go ]; do sleep 0.05; done; echo x >> src/app.txt; echo y >> tests/check_test.sh\nsay <<END\nDone.\n\nSTATUS: DONE\nEND\n\n";
    // Shells start programs in the background with this one ignored, and the program leaves it so.
    let quit = (!is_ignored(3)).then_some("QUIT");
    let names = ["WINCH", "CHLD", "CONT", "PIPE", "XFSZ", "USR1", "XCPU", "ALRM"];
    each(names.into_iter().chain(quit), |name| {
        let test = Test::new().unshadowed().play(maker);
        let arguments = args(&test);
        let ended = test.during(&as_strs(&arguments), |child| {
            test.wait_for_file("working");
            for _ in 0..20 {
                signal(child, name);
            }
            std::fs::write(test.base().join("go"), "").unwrap();
        });
        match name {
            "WINCH" | "CHLD" | "CONT" | "PIPE" | "XFSZ" => drop(ended.ended("merged", "approved", 0)),
            _ => {
                assert!(ended.killed, "{name}\n{ended}");
                test.run(&["resume", &ended.id]).ended("merged", "approved", 0);
            }
        }
    });
}
