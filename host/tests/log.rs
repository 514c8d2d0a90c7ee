//! The log in both directions: what is written is read back the same, and the quick fold is the plain one.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, which is what it is for")]

use std::collections::BTreeMap;

use archeflow_core::event::{
    AgentComplete, AgentFailed, Base, Chosen, Entry, Event, FORMAT, Failure, RunStart, SessionStart,
};
use archeflow_core::model::{
    Answer, AnswerBody, Confidence, Domain, Policy, Proposal, Review, Role, Status, Strategy, Tier, Verdict,
    Workflow,
};
use archeflow_core::run::Run;
use archeflow_host::log;
use archeflow_host::store::journal::Journal;

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

/// As far as a plan, a failed Guardian, and reviews in a thorough run.
fn a_run() -> (Run, Vec<Entry>) {
    let mut run = Run::default();
    let now = 1_775_606_400_000;
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
            Event::from(AgentFailed {
                archetype,
                start_seq: seq,
                kind: Failure::Exit,
                reason,
                duration_ms: 3,
                kept_as: None,
                estimated_cost_usd: None,
                reopens_in_ms: None,
                played: None,
                brief_chars: 0,
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
    }
}
