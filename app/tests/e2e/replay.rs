//! Runs looked at again: timeline, what-if, compare, and a decision explained. The manual's examples are executed on two
//! recorded runs that the program itself made from a play file; `UPDATE=1` records them anew and writes the manual.

use std::fs;
use std::path::{Path, PathBuf};

use archeflow_core::event::{Entry, Event, Report};
use archeflow_core::projections::replay::whatif::{PolicyChange, refold};
use archeflow_core::projections::replay::{compare, timeline};
use archeflow_host::log;
use archeflow_host::store::journal::Journal;
use serde_json::{Value, json};

use crate::harness::{Test, review};

/// What the auditor asks of every journal: folded again under its own policy, nothing differs (AF-180).
pub(crate) fn differs_unchanged(journal: &Path) -> Option<String> {
    let entries = log::entries(&Journal::read(journal).ok()?).ok()?;
    let Event::Report(Report::RunStart(start)) = &entries.first()?.event else { return None };
    let same = refold(&entries, &PolicyChange { start: (**start).clone(), auto_merge: None });
    let first = same.differences.first()?;
    Some(format!("AF-180: folded again, {} differs at {first:?}", journal.display()))
}

fn recorded() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded")
}

/// The recorded journals, by name.
fn journals(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let mut journals: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|ending| ending == "jsonl")).collect();
    journals.retain(|path| !path.ends_with("index.jsonl"));
    journals.sort_by_key(|journal| id(journal));
    journals
}

fn id(journal: &Path) -> String {
    journal.file_stem().unwrap().to_string_lossy().into_owned()
}

fn entries(journal: &Path) -> Vec<Entry> {
    log::entries(&Journal::read(journal).unwrap()).unwrap()
}

/// A repository that has the recorded runs.
fn library() -> Test {
    let test = Test::new().unaudited();
    for journal in journals(&recorded()) {
        test.file(format!(".archeflow/events/{}.jsonl", id(&journal)), fs::read(&journal).unwrap());
    }
    test
}

/// Plays both runs of the manual in a repository of their own.
fn record() -> Test {
    let test = Test::empty("repo").unaudited();
    test.file("greet.sh", "echo Hello\n").file("tests/run.sh", "sh greet.sh | grep -q Hello\n");
    test.commit("First commit");
    let (play, patient) = (test.base().join("greeter.play"), test.base().join("config.yaml"));
    fs::copy(recorded().join("greeter.play"), &play).unwrap();
    fs::copy(recorded().join("config.yaml"), &patient).unwrap();
    let usual = test.base().join("usual.yaml");
    let text = fs::read_to_string(&patient).unwrap().replace("two_consecutive", "immediate");
    fs::write(&usual, text).unwrap();
    let agent = format!("script:{}", play.display());
    for config in [patient, usual] {
        let ended = test.run(&[
            "run",
            "Greet people by name",
            "--workflow",
            "standard",
            "--strategy",
            "pdca",
            "--agent",
            &agent,
            "--config",
            config.to_str().unwrap(),
            "--test-command",
            "sh tests/run.sh",
            "--auto-merge",
            "--unattended",
        ]);
        assert!(matches!(ended.code, 10 | 14), "{ended}");
    }
    test
}

#[test]
fn af_180_the_recorded_runs_are_what_the_program_still_makes() {
    let test = record();
    let fresh = journals(&test.repo.join(".archeflow/events"));
    if std::env::var_os("UPDATE").is_some() {
        update(&fresh);
    }
    let kept = journals(&recorded());
    assert_eq!((fresh.len(), kept.len()), (2, 2));
    for (fresh, kept) in fresh.iter().zip(&kept) {
        assert_eq!(differs_unchanged(kept), None, "the recording is of another time: run with UPDATE=1");
        let (fresh, kept) = (timeline::of(&entries(fresh)), timeline::of(&entries(kept)));
        assert_eq!(compare::parting(&fresh, &kept), None, "run with UPDATE=1");
    }
}

/// Takes the fresh journals in place of the kept ones, in the manual too.
fn update(fresh: &[PathBuf]) {
    let page = manual();
    let mut text = fs::read_to_string(&page).unwrap();
    let kept = journals(&recorded());
    // The longer name first: the other is its beginning.
    for (old, new) in kept.iter().zip(fresh).rev() {
        text = text.replace(&id(old), &id(new));
        fs::remove_file(old).unwrap();
    }
    for new in fresh {
        fs::copy(new, recorded().join(new.file_name().unwrap())).unwrap();
    }
    fs::write(&page, text).unwrap();
    examples(true);
}

fn manual() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/replay.md")
}

#[test]
fn bx_12_af_180_the_manual_shows_what_the_program_prints() {
    if std::env::var_os("UPDATE").is_none() {
        examples(false);
    }
}

/// Every `console` block of the manual: the command, then exactly what it prints.
fn examples(update: bool) {
    let (test, page) = (library(), manual());
    let text = fs::read_to_string(&page).unwrap();
    let mut written = String::new();
    let mut examples = 0;
    let mut parts = text.split("```console\n");
    written.push_str(parts.next().unwrap());
    for part in parts {
        let (block, rest) = part.split_once("```\n").expect("a block that ends");
        let (command, output) = block.split_once('\n').expect("a command");
        let words: Vec<&str> =
            command.strip_prefix("$ archeflow ").expect("one of ours").split(' ').collect();
        let ran = test.run(&words);
        let printed = if ran.code == 0 { &ran.stdout } else { &ran.stderr };
        if !update {
            assert_eq!(output, printed, "{command}: run with UPDATE=1");
        }
        written.push_str(&format!("```console\n{command}\n{printed}```\n{rest}"));
        examples += 1;
    }
    assert!(examples >= 6, "the manual has {examples} examples");
    if update {
        fs::write(&page, written).unwrap();
    }
}

#[test]
fn bx_12_the_record_has_exactly_its_fields() {
    let test = library();
    let id = id(&journals(&recorded())[0]);
    let weights = ["replay", "whatif", &id, "--weight", "guardian=2", "--weight", "sage=0.5", "--json"];
    let record = test.run(&weights);
    let reviewer = |archetype: &str, verdict: &str, weight: f64, strict: u8, contrib: f64| {
        json!({
            "archetype": archetype, "verdict": verdict, "weight": weight, "strict": strict,
            "weighted_contrib": contrib,
        })
    };
    let wanted = json!({
        "run_id": id,
        "threshold": 0.5,
        "weights_used": { "guardian": 2.0, "sage": 0.5, "skeptic": 1.0 },
        "strict_any_veto": { "outcome": "BLOCK" },
        "weighted_replay": { "weighted_strictness": 0.143, "outcome": "SHIP" },
        "reviewers": [
            reviewer("guardian", "APPROVED", 2.0, 0, 0.0),
            reviewer("sage", "REJECTED", 0.5, 1, 0.5),
            reviewer("skeptic", "APPROVED", 1.0, 0, 0.0),
        ],
    });
    assert_eq!(record.json, wanted);
    for (threshold, outcome) in [("0.142857", "BLOCK"), ("0.142858", "SHIP"), ("0", "BLOCK"), ("1", "SHIP")] {
        let weighed = test.run(&[&weights[..], &["--threshold", threshold]].concat());
        assert_eq!(weighed.json["weighted_replay"]["outcome"], outcome, "{threshold}");
    }
    let both = test.run(&[&weights[..], &["--set", "convergence.zero_policy=immediate"]].concat());
    assert_eq!(both.json["policy"]["outcome"]["would_be"]["reason"], "stop_stuck", "{both}");
    assert_eq!(both.json["reviewers"], wanted["reviewers"]);
}

#[test]
fn af_180_what_if_says_how_far_it_knows() {
    let test = library();
    let id = id(&journals(&recorded())[0]);
    let what_if = |more: &[&str]| {
        let ran = test.run(&[&["replay", "whatif", &id, "--json"], more].concat());
        assert_eq!(ran.code, 0, "{ran}");
        ran.json
    };
    for (more, rule, reason, would_order) in [
        (&["--set", "convergence.zero_policy=immediate"][..], "AF-109", "stop_stuck", ""),
        (&["--set", "max_cycles=1"], "AF-022", "max_cycles", ""),
        (&["--set", "max_cycles.standard=2"], "AF-022", "max_cycles", ""),
        (&["--set", "convergence.diverging_cycles=1"], "AF-109", "converged_stop_diverging", ""),
        (&["--set", "convergence.tracked=CRITICAL"], "AF-109", "", "send the creator (work, cycle 2"),
        (&["--set", "confidence_floor=0.7"], "A3", "", "send the explorer (research, cycle 1"),
        (&["--set", "models.archetypes.maker=opus"], "", "", "send the maker (work, cycle 1"),
        (&["--workflow", "fast"], "AF-022", "", "send the creator (work, cycle 1"),
        (&["--set", "evidence.reliability=run"], "AF-073", "", ""),
        (&["--set", "limits.hook_seconds=9"], "", "max_cycles", ""),
        (&["--set", "max_cycles=1", "--set", "confidence_floor=0.7"], "AF-022", "", "send the explorer"),
    ] {
        let result = what_if(more);
        let first = result["first_difference"]["rule"].as_str().unwrap_or_default();
        assert_eq!(first, rule, "{more:?}: {result}");
        if !reason.is_empty() {
            assert_eq!(result["outcome"]["would_be"]["reason"], reason, "{more:?}: {result}");
        }
        let next = result["unknown"]["would_order"][0].as_str().unwrap_or_default();
        assert!(next.starts_with(would_order), "{more:?}: {result}");
        assert_eq!(
            result["unknown"].is_null(),
            !result["outcome"]["would_be"].is_null(),
            "{more:?}: {result}"
        );
    }
    let nothing = what_if(&["--set", "limits.hook_seconds=9"]);
    assert_eq!(nothing["differences"], json!([]));
    assert_eq!(nothing["facts"]["used"], nothing["facts"]["recorded"]);
}

/// What a person said to a run that had stopped is nothing to one that would not have.
#[test]
fn af_083_af_180_what_people_did_after_an_end_is_for_that_end() {
    let test = record();
    let id = id(&journals(&test.repo.join(".archeflow/events"))[1]);
    let gone_on = test.run(&["continue", &id, "--one-more-cycle", "--unattended"]);
    assert_eq!(gone_on.events("run.continued").len(), 1, "{gone_on}");
    let set = ["--set", "convergence.zero_policy=two_consecutive", "--set", "max_cycles=4"];
    let result = test.run(&[&["replay", "whatif", &id, "--json"], &set[..]].concat()).json;
    let next = result["unknown"]["would_order"][0].as_str().unwrap_or_default();
    assert!(next.starts_with("send the creator (work, cycle 3"), "{result}");
    assert_eq!(result["unknown"]["why"], "the Creator would have got other feedback");
    let carried_to = result["facts"]["carried_to"].as_u64().unwrap();
    let line = &gone_on.journal[usize::try_from(carried_to).unwrap() - 1];
    assert_eq!((&line["type"], &line["agent"]), (&"agent.complete".into(), &"explorer".into()));
    let reports = |line: &&Value| {
        let kind = line["type"].as_str().unwrap_or_default();
        matches!(kind, "run.start" | "preflight.done" | "agent.complete")
            || (kind == "session.start" && line["seq"] == 2)
    };
    let heard =
        gone_on.journal.iter().filter(|line| line["seq"].as_u64() <= Some(carried_to)).filter(reports);
    assert_eq!(result["facts"]["used"].as_u64(), Some(heard.count() as u64), "{result}");
}

#[test]
fn af_196_any_decision_is_explained_from_the_journal() {
    let test = library();
    let id = id(&journals(&recorded())[0]);
    let timeline = test.run(&["replay", "timeline", &id, "--json"]);
    let decisions = timeline.json["decisions"].as_array().unwrap().clone();
    assert!(decisions.len() > 20, "{timeline}");
    for decision in &decisions {
        let seq = decision["seq"].to_string();
        let told = test.run(&["show", &id, "--why", &seq]);
        assert_eq!(told.code, 0, "{told}");
        for word in ["decided", "the rule", "written in", "docs/rules/"] {
            assert!(told.stdout.contains(word), "{seq}: '{word}' is missing\n{told}");
        }
        assert!(told.stdout.contains(decision["rule"].as_str().unwrap()), "{told}");
    }
    for topic in ["A2", "a2", "convergence", "sage", "AF-109"] {
        assert!(test.run(&["show", &id, "--why", topic]).stdout.contains("written in"), "{topic}");
    }
    let first = decisions[0]["seq"].to_string();
    for (what, words) in [
        ("1", ["is no decision but run.start", "Decisions are in the lines"]),
        ("9999", ["has no line #9999", &first]),
        ("weather", ["is about 'weather'", "Topics: "]),
    ] {
        test.run(&["show", &id, "--why", what]).refused(2, &words);
    }
    test.run(&["show", &id, "3"]).refused(2, &["--why"]);
}

#[test]
fn af_180_runs_stand_side_by_side() {
    let test = library();
    let ids: Vec<String> = journals(&recorded()).iter().map(|journal| id(journal)).collect();
    let compared = test.run(&["replay", "compare", &ids[0], &ids[1], "--json"]);
    let runs = compared.json["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    assert_eq!(runs[0]["cycles"].as_array().map(Vec::len), Some(3), "{compared}");
    assert_eq!(runs[1]["cycles"][1]["findings"]["persistent"], 1, "{compared}");
    assert_eq!(compared.json["first_differences"][0]["first"]["decision"], "findings open: one more cycle");
    let same = test.run(&["replay", "compare", &ids[0], &ids[0], "--json"]);
    assert_eq!(same.json["first_differences"][0]["same"], true);
    test.run(&["replay", "compare", &ids[0]]).refused(2, &["2 values required"]);
    test.run(&["replay", "compare", &ids[0], "nowhere"]).refused(2, &["there is no run 'nowhere'"]);
}

#[test]
fn af_180_bad_input_is_refused() {
    let test = library();
    let id = id(&journals(&recorded())[0]);
    let what_if = |flag: &str, value: &str, words: &[&str]| {
        test.run(&["replay", "whatif", &id, flag, value]).refused(2, words);
    };
    for weight in
        ["guardian", "guardian=", "guardian=heavy", "guardian=-1", "guardian=NaN", "=1", "guardian=1e99"]
    {
        what_if("--weight", weight, &["--weight"]);
    }
    what_if("--weight", "wizard=1", &["'wizard', which gave no verdict", "guardian, sage, skeptic"]);
    for threshold in ["much", "-0.1", "1.1", ""] {
        what_if("--threshold", threshold, &["--threshold"]);
    }
    what_if("--set", "max_cycles", &["sets no key"]);
    what_if("--set", "max_cycles=many", &["a whole number from 1 to 10"]);
    what_if("--set", "convergence.zero=1", &["unknown key `convergence.zero`", "zero_policy"]);
    what_if("--set", "team=mine", &["is no rule"]);
    what_if("--workflow", "slow", &["fast, standard, thorough"]);
    let all = ["guardian", "sage", "skeptic"].map(|name| format!("{name}=0"));
    let zero: Vec<&str> = all.iter().flat_map(|weight| ["--weight", weight]).collect();
    test.run(&[&["replay", "whatif", &id], &zero[..]].concat()).refused(2, &["all weights are 0"]);
    for command in [&["timeline", "nowhere"][..], &["whatif", "nowhere"], &["timeline", "../../etc/passwd"]] {
        test.run(&[&["replay"], command].concat()).refused(2, &["archeflow list"]);
    }
    test.file(".archeflow/events/empty.jsonl", "");
    test.run(&["replay", "timeline", "empty"]).refused(2, &["never began"]);
    let journal = fs::read_to_string(&journals(&recorded())[0]).unwrap();
    test.file(".archeflow/events/damaged.jsonl", journal.replacen("AF-022", "AF-023", 1));
    for command in ["timeline", "whatif"] {
        test.run(&["replay", command, "damaged"]).refused(40, &["is damaged"]);
    }
}

#[test]
fn bx_12_a_run_without_a_review_has_nothing_to_weigh() {
    let test = Test::new().play(&format!("== maker ==\nexit 3\n\n{}", review("guardian", "APPROVED", &[])));
    let failed = test.go(&["--unattended"]);
    assert!(!failed.id.is_empty(), "{failed}");
    test.run(&["replay", "whatif", &failed.id]).refused(2, &["there is no verdict to weigh"]);
    let other = test.run(&["replay", "whatif", &failed.id, "--set", "retries.attempts=0", "--json"]);
    assert_eq!(other.json["outcome"]["would_be"]["reason"], "agent_failures", "{other}");
    let more = test.run(&["replay", "whatif", &failed.id, "--set", "retries.attempts=2", "--json"]);
    assert_eq!(more.json["outcome"]["would_be"], Value::Null, "{more}");
    assert!(more.json["unknown"]["would_order"][0].as_str().unwrap().starts_with("send the maker"), "{more}");
}
