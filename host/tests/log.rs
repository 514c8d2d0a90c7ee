//! The log in both directions: what is written is read back the same, and the quick fold is the plain one.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, which is what it is for")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use archeflow_core::event::{
    AgentComplete, AgentFailed, Base, Chosen, Entry, FORMAT, Failure, Report, RunStart, SessionStart,
};
use archeflow_core::model::{
    Answer, AnswerBody, Confidence, Domain, Policy, Proposal, Review, Role, Status, Strategy, Tier, Verdict,
    Workflow,
};
use archeflow_core::run::Run;
use archeflow_host::clock;
use archeflow_host::log;
use archeflow_host::store::journal::{Journal, JournalLine, Read};
use serde::Deserialize;
use serde_json::value::RawValue;

#[test]
fn d_01_state_is_the_fold_of_the_journal() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = Journal::create(folder.path(), "a-run").unwrap();
    let (live, written) = a_run();
    for batch in written.chunks(5) {
        log::append(&mut journal, batch).unwrap();
    }
    drop(journal);
    let text = Journal::read(&folder.path().join("a-run.jsonl")).unwrap();
    assert_eq!(log::entries(&text).unwrap(), written);
    assert_eq!(Run::replay(&written), live);
    assert_eq!(log::fold(&text).unwrap(), live);
    let kinds: Vec<&str> = written.iter().map(|entry| entry.event.name()).collect();
    for kind in ["decision.point", "review.verdict", "phase.transition", "agent.failed"] {
        assert!(kinds.contains(&kind), "{kind} does not occur");
    }
}

/// Every journal of the repository, recorded by the version of its day. The ones in `logs` have no seals.
const RECORDED: &[&str] = &[
    "logs/break.jsonl",
    "logs/demo.jsonl",
    "recorded/2026-11-15-greet-people-by-name-2.jsonl",
    "recorded/2026-11-15-greet-people-by-name.jsonl",
];

fn recordings() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../app/tests")
}

#[test]
fn m_a10_recorded_journals_are_written_again_byte_for_byte() {
    for name in RECORDED {
        let old = fs::read_to_string(recordings().join(name)).unwrap();
        let new = written_again(&old);
        let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
        assert_eq!((old.len(), old.is_empty()), (new.len(), false), "{name}");
        for (number, (old, new)) in old.iter().zip(&new).enumerate() {
            assert_eq!(*old, as_sealed_as(old, new), "{name}, line {}", number + 1);
        }
    }
}

/// Settings that came after a recording. The frozen configuration in `run.start` is always written in full, so reading
/// an older one fills them in; nothing else may differ.
const LATER_SETTINGS: &[&str] =
    &[r#","park_after_ms":300000"#, r#","jitter_percent":20"#, r#","structured":true"#];

fn without_later_settings(kind: &str, old: &str, new: String) -> String {
    let later = LATER_SETTINGS.iter().filter(|setting| kind == "run.start" && !old.contains(**setting));
    later.fold(new, |data, setting| data.replacen(setting, "", 1))
}

/// A new recording is held to the same.
#[test]
fn every_recorded_journal_is_listed() {
    let mut found: Vec<String> = Vec::new();
    for folder in ["logs", "recorded"] {
        for entry in fs::read_dir(recordings().join(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name.ends_with(".jsonl") {
                found.push(format!("{folder}/{name}"));
            }
        }
    }
    found.sort();
    assert_eq!(found, RECORDED);
}

#[derive(Deserialize)]
struct Recorded<'a> {
    ts: &'a str,
    ms: Option<u16>,
    run_id: &'a str,
    seq: u64,
    parent: Vec<u64>,
    #[serde(rename = "type")]
    kind: &'a str,
    phase: &'a str,
    agent: Option<&'a str>,
    #[serde(borrow)]
    data: &'a RawValue,
}

/// Each line through the typed event and back into a journal.
fn written_again(text: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut journal: Option<Journal> = None;
    for line in text.lines() {
        let Recorded { ts, ms, run_id, seq, parent, kind, phase, agent, data } =
            serde_json::from_str(line).unwrap();
        let numbers: Vec<String> = parent.iter().map(u64::to_string).collect();
        let (parent, data) = (numbers.join(","), data.get());
        let entry =
            log::decode(&Read { ts, ms, run_id, seq, parent: &parent, kind, phase, agent, data }).unwrap();
        let mut json = Vec::new();
        entry.event.write(&mut serde_json::Serializer::new(&mut json)).unwrap();
        let json = without_later_settings(kind, data, String::from_utf8(json).unwrap());
        let again = JournalLine {
            ts: &clock::written(entry.at),
            ms,
            run_id,
            seq: entry.seq,
            parent: &entry.parent,
            kind: entry.event.name(),
            phase: entry.phase.name(),
            agent: entry.agent.as_deref(),
            data: &RawValue::from_string(json).unwrap(),
        };
        let journal = journal.get_or_insert_with(|| Journal::create(folder.path(), run_id).unwrap());
        journal.append(&[again]).unwrap();
    }
    fs::read_to_string(journal.unwrap().path()).unwrap()
}

/// A line without its seal, where the other one has none.
fn as_sealed_as(old: &str, new: &str) -> String {
    match new.rsplit_once(",\"prev\":") {
        Some((unsealed, _)) if !old.contains(",\"prev\":") => format!("{unsealed}}}"),
        _ => new.to_owned(),
    }
}

/// As far as a plan, a failed Guardian, and reviews in a thorough run.
fn a_run() -> (Run, Vec<Entry>) {
    let mut run = Run::default();
    let now = 1_775_606_400_123;
    let mut written = vec![run.hear(now, request()), run.hear(now, session())];
    written.extend(run.settle(now));
    let mut failed = false;
    for _ in 0..12 {
        let Some((seq, start)) = run.open_agents().next().map(|(seq, start)| (seq, start.clone())) else {
            break;
        };
        let report = if start.role == Role::Gatekeeper && !failed {
            failed = true;
            let (archetype, reason) = (start.archetype.clone(), "it ended with exit code 1".to_owned());
            Report::from(AgentFailed {
                archetype,
                start_seq: seq,
                kind: Failure::Exit,
                reason,
                duration_ms: 3,
                kept_as: None,
                estimated_cost_usd: None,
                cost_source: None,
                tokens: None,
                notes: Vec::new(),
                reopens_in_ms: None,
                played: None,
                brief_chars: 0,
                session: None,
            })
        } else {
            complete(seq, start.archetype, start.role).into()
        };
        written.push(run.hear(now + 1_000, report));
        written.extend(run.settle(now + 1_000));
    }
    (run, written)
}

fn complete(start_seq: u64, archetype: String, role: Role) -> AgentComplete {
    let sure = Confidence {
        task_understanding: Some(900_000),
        solution_completeness: Some(900_000),
        risk_coverage: Some(900_000),
    };
    let said = match role {
        Role::Explorer | Role::Maker => AnswerBody::Prose,
        Role::Creator => AnswerBody::Proposal(Proposal { confidence: sure, ..Proposal::default() }),
        Role::Gatekeeper | Role::Reviewer => {
            AnswerBody::Review(Review { verdict: Some(Verdict::Approved), ..Review::default() })
        }
    };
    let change = (role == Role::Maker).then(|| {
        serde_json::from_str(
            r#"{"commit":"c1","tree":"t1","kept_as":"refs/archeflow/keep/a-run/1-maker.1","files":[],"test_files":1,
                "commits":1,"uncommitted":false,"signs":{}}"#,
        )
        .unwrap()
    });
    AgentComplete {
        artifacts: vec![format!("{archetype}.md")],
        archetype,
        start_seq,
        duration_ms: 7,
        digest: "d".to_owned(),
        summary: String::new(),
        model: Tier::Sonnet,
        answer: Answer { status: Status::Done, said, ..Answer::default() },
        change,
        tokens: None,
        estimated_cost_usd: None,
        cost_source: None,
        session: None,
        played: None,
        brief_chars: 0,
        notes: Vec::new(),
    }
}

fn request() -> RunStart {
    RunStart {
        task: "a task \"quoted\"\nover two lines".to_owned(),
        workflow: Workflow::Thorough,
        max_cycles: 3,
        strategy: Strategy::Pdca,
        domain: Domain::Code,
        team: Vec::new(),
        seats: BTreeMap::new(),
        tiers: BTreeMap::new(),
        personas: BTreeMap::new(),
        config: Policy::default(),
        config_hash: String::new(),
        base: Base { target: "refs/heads/main".to_owned(), commit: "b0".to_owned() },
        branch: "archeflow/a-run".to_owned(),
        dry_run: false,
        chosen: Chosen::default(),
        format: FORMAT,
        version: "0".to_owned(),
        ..RunStart::default()
    }
}

fn session() -> SessionStart {
    SessionStart {
        fence: 1,
        why: "test".to_owned(),
        attended: false,
        auto_merge: false,
        version: "0".to_owned(),
        tag: "a-run.0".to_owned(),
        agents: BTreeMap::new(),
        accounts: BTreeMap::new(),
        sandbox: String::new(),
    }
}
