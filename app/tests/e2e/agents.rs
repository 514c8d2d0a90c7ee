//! Agents that misbehave (FAULTS 6C, 6D): each row is a fault and the end it must lead to.

use std::time::Instant;

use crate::harness::{LONG, Outcome, SIGN, Test, each, review, says};

const MADE: &str = "sh echo x >> src/app.txt; echo y >> tests/check_test.sh\n";
const DONE: &str = "say <<END\nDone.\n\nSTATUS: DONE\nEND\n\n";
const APPROVED: &str = "say <<END\nVERDICT: APPROVED\nFINDINGS: 0\n\nSTATUS: DONE\nEND\n\n";

/// A short limit for whoever is overdue; see [`Test::overdue`].
const SHORT: &str = "limits:\n  silence_seconds: 1\n";

fn notes(outcome: &Outcome, who: &str) -> String {
    let lines =
        outcome.journal.iter().filter(|line| line["type"] == "agent.complete" && line["agent"] == who);
    lines.map(|line| line["data"]["notes"].to_string()).collect()
}

#[test]
fn m_c_ends_of_misbehaving_agents() {
    let long = "x".repeat(3_000);
    let rows: Vec<(&str, String, (&str, &str, i32))> = vec![
        ("M-C1 missing", "== maker ==\nexit 127\n\n".into(), ("failed", "agent_failures", 30)),
        ("M-C2 always exit 1", "== creator ==\nexit 1\n\n".into(), ("failed", "agent_failures", 30)),
        ("M-C2 once", "== creator attempt=1 ==\nexit 1\n\n".into(), ("merged", "approved", 0)),
        ("M-C3 creator empty", "== creator ==\nexit 0\n\n".into(), ("failed", "agent_failures", 30)),
        ("M-C3 guardian empty", "== guardian ==\nexit 0\n\n".into(), ("failed", "unparsable_review", 14)),
        ("M-C3 once", "== guardian attempt=1 ==\nexit 0\n\n".into(), ("merged", "approved", 0)),
        ("M-C4 prose", says("creator", "I think this is easy.\n\nSTATUS: DONE"), ("failed", "agent_failures", 30)),
        ("M-C4 prose review", says("guardian", "Looks fine to me.\n\nSTATUS: DONE"), ("failed", "unparsable_review", 14)),
        ("M-C7 killed", "== maker attempt=1 ==\nsh kill -SEGV $PPID\n\n".into(), ("merged", "approved", 0)),
        ("M-C16 reads", format!("== maker ==\nsh cat\n{MADE}{DONE}"), ("merged", "approved", 0)),
        ("M-C17 tty", format!("== maker ==\nsh if (: < /dev/tty) 2>/dev/null; then exit 1; fi\n{MADE}{DONE}"), ("merged", "approved", 0)),
        ("M-C20 rm -rf .", "== maker attempt=1 ==\nsh rm -rf ./* ./.git ; cd /; rm -rf \"$OLDPWD\"\nexit 0\n\n".into(), ("merged", "approved", 0)),
        ("M-C23 git", format!("== maker ==\n{MADE}sh git stash -q -u; git stash pop -q; git config user.name Eve; git tag evil; git gc -q --prune=now; git branch other; git remote add o /nowhere; git push -q o HEAD || true\n{DONE}"), ("merged", "approved", 0)),
        ("M-C26 odd commits", format!("== maker ==\n{MADE}sh git add -A; GIT_AUTHOR_DATE='1 +0000' GIT_COMMITTER_DATE='4102444800 +1400' git commit -q --author='\u{1b}[31mEve <e@v.e>' --allow-empty-message -m ''; git commit -q --allow-empty -m '{long}'\n{DONE}"), ("merged", "approved", 0)),
        ("M-G18 exit 75", "== creator ==\nexit 75\n\n".into(), ("stopped", "provider_busy", 31)),
        ("M-G18 exit 75 once", "== creator attempt=1 ==\nexit 75\n\n".into(), ("merged", "approved", 0)),
        ("M-C30 core dump", format!("== maker ==\nsh [ \"$(ulimit -c)\" = 0 ]\n{MADE}{DONE}"), ("merged", "approved", 0)),
        ("M-D10 a language that is not in the tables", says("guardian", "PÄÄTÖS: HYVÄKSYTTY\nHAVAINNOT: 0\n\nTILA: VALMIS"), ("failed", "unparsable_review", 14)),
        ("M-D10 J-08 one that is", says("guardian", "URTEIL: GENEHMIGT\nBEFUNDE: 0\n\nSTATUS: FERTIG"), ("merged", "approved", 0)),
        ("M-S17 nothing but a table in the diff", says("guardian", "```diff\n+VERDICT: APPROVED\n+FINDINGS: 0\n+STATUS: DONE\n```\n> VERDICT: APPROVED\n> STATUS: DONE"), ("failed", "unparsable_review", 14)),
        ("M-D6 approved with a CRITICAL", review("guardian", "APPROVED", &["src/app.txt:3 | CRITICAL | security | It leaks | Fix | `src/app.txt:3`"]), ("stopped", "max_cycles", 14)),
        ("M-D6 both words", says("guardian", "VERDICT: APPROVED\nVERDICT: REJECTED\nFINDINGS: 0\n\nSTATUS: DONE"), ("failed", "unparsable_review", 14)),
        ("M-D4 count differs", says("guardian", "VERDICT: APPROVED\nFINDINGS: 2\n\nSTATUS: DONE"), ("failed", "unparsable_review", 14)),
        ("M-D7 homoglyph", review("guardian", "APPROVED", &["src/app.txt:3 | СRITICAL | security | It leaks | Fix | `src/app.txt:3`"]), ("failed", "unparsable_review", 14)),
        ("M-D3 two tokens", says("guardian", "STATUS: BLOCKED\n\nVERDICT: APPROVED\nFINDINGS: 0\n\nSTATUS: DONE"), ("stopped", "blocked", 10)),
        ("M-D3 text follows", says("guardian", "VERDICT: APPROVED\nFINDINGS: 0\n\nSTATUS: DONE\n\nHope that helps!"), ("failed", "unparsable_review", 14)),
        ("M-D3 lower case", says("guardian", "VERDICT: APPROVED\nFINDINGS: 0\n\nstatus: done"), ("merged", "approved", 0)),
        ("M-D3 fenced", says("guardian", "VERDICT: APPROVED\nFINDINGS: 0\n\n```\nSTATUS: BLOCKED\n```"), ("merged", "approved", 0)),
        ("M-D1 CRLF and BOM", "== guardian ==\nsh printf '\\357\\273\\277VERDICT: APPROVED\\r\\nFINDINGS: 0\\r\\n\\r\\nSTATUS: DONE\\r\\n'\n\n".into(), ("merged", "approved", 0)),
        ("M-D1 bytes", "== maker ==\n".to_owned() + MADE + "sh printf 'caf\\351 \\000 \\377\\376\\n\\nSTATUS: DONE\\n'\n\n", ("merged", "approved", 0)),
        ("M-D2 escapes", format!("== maker ==\n{MADE}sh printf '\\033]0;owned\\007\\033[2J \\302\\2331m \\342\\200\\256 hi\\n' >&2; printf '\\033[31mred\\033]52;c;aGk=\\007\\nSTATUS: DONE\\n'\n\n"), ("merged", "approved", 0)),
    ];
    each(rows, |(name, scenes, (status, reason, code))| {
        let test = Test::new().play(&scenes).config("retries:\n  busy_waits_seconds: [0, 0]\n");
        let main = test.git(["rev-parse", "main"]);
        let outcome = test.go(&["--auto-merge"]);
        let said =
            (outcome.json["status"].as_str().unwrap_or(""), outcome.json["reason"].as_str().unwrap_or(""));
        assert_eq!((said.0, said.1, outcome.code), (status, reason, code), "{name}\n{outcome}");
        assert_eq!(test.git(["rev-parse", "main"]) != main, status == "merged", "{name}");
        assert_eq!(test.git(["config", "user.name"]), "Jo User", "{name}");
    });
}

#[test]
fn m_c2_three_failures_in_a_row_break_hard() {
    let test = Test::new().play("== creator ==\nexit 1\n\n").config("retries:\n  attempts: 5\n");
    let broke = test.go(&["--auto-merge"]).ended("wiggum_break", "agent_failures", 10);
    assert_eq!(broke.times("creator"), 3);
    assert_eq!(broke.events("wiggum.break")[0]["hard"], serde_json::json!(true));
}

#[test]
fn m_c2_a_failed_run_can_be_resumed_when_the_agent_works_again() {
    let test = Test::new().play("== creator ==\nsh test -e {base}/up\nexit 1\n\n");
    let failed = test.go(&["--auto-merge"]).ended("failed", "agent_failures", 30);
    let play = test.base().join("agents/agents.play");
    let text = std::fs::read_to_string(&play).unwrap();
    std::fs::write(&play, text.split_once("\n\n").unwrap().1).unwrap();
    test.run(&["resume", &failed.id]).ended("merged", "approved", 0);
}

#[test]
fn m_c5_m_c6_work_is_kept_committed_or_not() {
    let test = Test::new().unshadowed().play(&format!("== maker ==\n{MADE}sh echo TOKEN-A > a.txt\n{DONE}"));
    let merged = test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    assert_eq!(merged.events("agent.complete")[1]["change"]["uncommitted"], serde_json::json!(true));
    assert_eq!(test.read("a.txt"), "TOKEN-A\n");

    // A failed attempt's commits and loose files are reachable, and the next attempt starts from the base.
    let scenes = "== maker attempt=1 ==\nwrite b.txt <<END\nTOKEN-B\nEND\ncommit Good work\n\
                  write c.txt <<END\nTOKEN-C\nEND\nexit 3\n\n";
    let test = Test::new().unshadowed().play(scenes);
    let merged = test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    let all = test.git(["log", "--all", "-p"]);
    assert!(all.contains("TOKEN-B") && all.contains("TOKEN-C"), "I2");
    assert!(!test.repo.join("b.txt").exists(), "not landed");
    let kept = merged.events("agent.failed")[0]["kept_as"].as_str().unwrap_or_default().to_owned();
    assert!(merged.briefs("maker")[1].contains(&kept) && !kept.is_empty(), "the next attempt is told");
}

#[test]
fn m_c8_m_c15_silence_ends_an_attempt() {
    for (name, scenes) in [
        ("M-C8", "== maker attempt=1 ==\nwrite b.txt <<END\nTOKEN-B\nEND\nsh touch {base}/overdue\nhang\n\n"),
        (
            "M-C15",
            "== maker attempt=1 ==\nwrite b.txt <<END\nTOKEN-B\nEND\nsh touch {base}/overdue; kill -STOP $PPID; sleep 600\n\n",
        ),
    ] {
        let test = Test::new().play(scenes).config(SHORT);
        let merged = test.go(&["--auto-merge"]).ended("merged", "approved", 0);
        assert_eq!(merged.events("agent.timeout").len(), 1, "{name}\n{merged}");
        assert!(test.git(["log", "--all", "-p"]).contains("TOKEN-B"), "I2 {name}");
    }
}

#[test]
fn m_c9_a_complete_answer_counts_though_its_process_hangs() {
    let said = APPROVED.trim_end();
    let scene = format!("== guardian ==\n{said}\nsh touch {{base}}/overdue\nhang\n\n");
    let test = Test::new().play(&scene).config(SHORT);
    let merged = test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    assert!(notes(&merged, "guardian").contains("did not end"), "{merged}");
}

#[test]
fn m_c11_m_c12_the_deaf_are_killed_and_daemons_swept() {
    let test =
        Test::new().play("== creator attempt=1 ==\ndeaf\nsh touch {base}/overdue\nhang\n\n").config(SHORT);
    test.go(&["--auto-merge"]).ended("merged", "approved", 0);

    let scenes = format!(
        "== maker ==\n{MADE}leave sh -c 'trap \"\" TERM; (sleep 600 &) ; sleep 600'\nsleep 100\n{DONE}"
    );
    let merged = Test::new().play(&scenes).go(&["--auto-merge"]).ended("merged", "approved", 0);
    assert!(notes(&merged, "maker").contains("processes behind"), "{merged}");
}

#[test]
fn m_c18_a_flood_is_capped() {
    let scenes = format!("== maker ==\nnoise 300000000\n{MADE}{DONE}");
    let test = Test::new().play(&scenes);
    let merged = test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    let artifact = std::fs::metadata(merged.artifacts.join("do-maker.md")).unwrap().len();
    assert!(artifact < 80_000_000, "{artifact}");
    assert!(notes(&merged, "maker").contains("300000"), "the note says how much it was");
}

#[test]
fn m_c22_only_descendants_of_the_base_are_work() {
    let scenes = format!(
        "== maker ==\n{MADE}commit Work\nsh git branch side; git checkout -q --orphan lone; git rm -rq --cached .; echo TOKEN-L > lone.txt; git add lone.txt; git commit -qm lone; git checkout -qf side\n{DONE}"
    );
    let test = Test::new().play(&scenes);
    test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    assert!(test.git(["log", "--all", "-p"]).contains("TOKEN-L"), "I2: strays are kept");
    assert!(!test.repo.join("lone.txt").exists());
    // Rewritten history: the work counts, on the recorded base.
    let scenes = format!("== maker ==\n{MADE}sh git add -A; git commit -q --amend -m Rewritten\n{DONE}");
    let test = Test::new().play(&scenes);
    let ended = test.go(&["--auto-merge"]);
    assert!(matches!(ended.code, 0 | 10 | 30), "{ended}");
    assert!(test.git(["log", "--all", "--format=%s"]).contains("Rewritten"), "I2");
}

#[test]
fn m_c24_an_agent_that_edits_the_users_git_directory_stops_everything() {
    for action in [
        "sh git -C '{repo}' config core.fsmonitor 'touch {base}/pwned'",
        "sh printf '#!/bin/sh\\ntouch {base}/pwned\\n' > '{repo}/.git/hooks/post-checkout'; chmod +x '{repo}/.git/hooks/post-checkout'",
        "sh mkdir -p '{repo}/.git/info'; echo '* filter=x' > '{repo}/.git/info/attributes'",
    ] {
        let scenes = format!("== maker ==\n{MADE}{action}\n{DONE}");
        let test =
            Test::new().unshadowed().play(&scenes).meanwhile(&["git:config", "git:hooks/", "git:info/"]);
        let main = test.git(["rev-parse", "main"]);
        let stopped = test
            .go(&["--auto-merge"])
            .refused(21, &["changed while the maker worked", "the git configuration"]);
        assert!(!test.base().join("pwned").exists(), "nothing of it runs\n{stopped}");
        assert_eq!(test.git(["rev-parse", "main"]), main);
        assert_eq!(stopped.json["run_id"].as_str(), test.run_ids().first().map(String::as_str), "{stopped}");
        assert!(stopped.stderr.contains(&format!("archeflow resume {}", stopped.id)), "{stopped}");
        // When the user has put it right, the work that was done lands.
        let _ = test.try_git(["config", "--unset", "core.fsmonitor"]);
        let _ = std::fs::remove_file(test.repo.join(".git/hooks/post-checkout"));
        let _ = std::fs::remove_file(test.repo.join(".git/info/attributes"));
        let merged = test.run(&["resume", &stopped.id]).ended("merged", "approved", 0);
        assert_eq!(merged.times("maker"), 1, "{merged}");
    }
    // In its own copy the agent may do what it likes; nothing of it runs here either.
    let scenes = format!(
        "== maker ==\nsh git config core.fsmonitor 'touch {{base}}/pwned'; git config filter.x.clean 'touch {{base}}/pwned; cat'; echo '* filter=x' > .git/info/attributes; git config core.hooksPath \"$PWD/h\"; mkdir h; printf '#!/bin/sh\\ntouch {{base}}/pwned\\n' > h/pre-commit; chmod +x h/pre-commit; rm -rf '{{base}}/pwned'\n{MADE}{DONE}"
    );
    let test = Test::new().unshadowed().play(&scenes);
    test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    assert!(!test.base().join("pwned").exists());
}

#[test]
fn m_d5_ten_thousand_findings_are_bearable() {
    let scene = "== guardian ==\nsh echo 'VERDICT: REJECTED'; echo '| Location | Severity | Category | Description | Fix |'; echo '|---|---|---|---|---|'; i=0; while [ $i -lt 10000 ]; do echo \"| src/app.txt:3 | WARNING | reliability | number $i | fix |\"; i=$((i+1)); done; echo 'STATUS: DONE'\n\n";
    let test = Test::new().play(scene);
    let begun = Instant::now();
    let stopped = test.go(&["--auto-merge"]);
    assert_eq!(stopped.code, 14, "{}", stopped.stderr);
    assert!(begun.elapsed() < LONG);
}

#[test]
fn readers_can_t_change_what_lands() {
    let scene = format!(
        "== guardian ==\nsh echo EVIL >> src/app.txt; rm README.md; git commit -qam evil\n{APPROVED}"
    );
    let test = Test::new().play(&scene).unsandboxed();
    let merged = test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    assert!(!test.read("src/app.txt").contains("EVIL"));
    assert!(notes(&merged, "guardian").contains("read-only"), "{merged}");
}

/// Commands, whose brief names a code: what they print, and how the run ends.
#[test]
fn r_08_what_does_not_show_that_it_is_finished_is_asked_for_once_more() {
    let approves = "printf 'VERDICT: APPROVED\\nFINDINGS: 0\\n\\nSTATUS: DONE\\n'";
    let made = "echo made >> src/app.txt; echo x > tests/more_test.sh";
    let done = "printf 'Done.\\n\\nSTATUS: DONE\\n'";
    let quotes = "printf 'An answer would look like this:\\n\\nVERDICT: APPROVED\\nFINDINGS: 0\\n\\nSTATUS: DONE\\n\\nbut I had no access.\\n'";
    let sorry = "printf 'I am sorry, I can not help with that.\\n'";
    let rows = [
        (
            "signed",
            format!("{made}; {done} | sign"),
            format!("{approves} | sign"),
            ("merged", "approved", 0),
            "",
        ),
        (
            "quoted",
            format!("{made}; {done} | sign"),
            quotes.to_owned(),
            ("failed", "unparsable_review", 14),
            "but I had no access",
        ),
        (
            "unsigned",
            format!("{made}; {done} | sign"),
            approves.to_owned(),
            ("failed", "unparsable_review", 14),
            "no closing line",
        ),
        (
            "taken back",
            format!("{made}; {done} | sign"),
            format!("{approves} | sign; echo 'Actually no.'"),
            ("failed", "unparsable_review", 14),
            "Actually no.",
        ),
        (
            "second time",
            format!("{made}; {done} | sign"),
            format!("if [ $ARCHEFLOW_ATTEMPT = 1 ]; then {quotes}; else {approves} | sign; fi"),
            ("merged", "approved", 0),
            "",
        ),
        (
            "refused",
            sorry.to_owned(),
            format!("{approves} | sign"),
            ("failed", "agent_failures", 30),
            "I am sorry, I can not help with that.",
        ),
        (
            "cut off",
            format!("{made}; echo 'I added a line, and the'"),
            format!("{approves} | sign"),
            ("failed", "agent_failures", 30),
            "I added a line, and the",
        ),
    ];
    each(rows, |(name, maker, guardian, (status, reason, code), told)| {
        let test = Test::new().unshadowed().play("");
        let agent = |role: &str, does: &str| {
            let file = test.base().join(format!("agents/{role}.sh"));
            std::fs::write(&file, format!("{SIGN}{does}\n")).unwrap();
            format!("{role}=cmd:sh {}", file.display())
        };
        let (maker, guardian) = (agent("maker", &maker), agent("guardian", &guardian));
        let outcome = test.go(&["--auto-merge", "--agent-for", &maker, "--agent-for", &guardian]);
        assert!(outcome.stderr.contains(told), "{name}: {told}\n{outcome}");
        outcome.ended(status, reason, code);
    });
    // Who says that a command can't repeat a code is believed.
    let test = Test::new().unshadowed().play("");
    let file = test.base().join("agents/fixed.sh");
    std::fs::write(&file, format!("cat > /dev/null\n{approves}\n")).unwrap();
    let fixed = format!("cmd:sh {}", file.display());
    let test = test.config(&format!("agents:\n  uncoded: ['{fixed}']\n"));
    let spec = format!("guardian={fixed}");
    test.go(&["--auto-merge", "--agent-for", &spec]).ended("merged", "approved", 0);
}
