//! A long journal, read and folded; and the core alone, run after run.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use archeflow_core::event::{
    AgentComplete, AgentFailed, AgentStart, Base, Built, Chosen, Entry, FORMAT, Failure, HookDone,
    MergeBuilt, Order, PreflightDone, QuestionDeferred, Report, RunMerged, RunReverted, RunStart,
    SessionStart, Tested, TestsDone,
};
use archeflow_core::model::{
    Answer, AnswerBody, Change, ChangedFile, Citation, Confidence, Domain, FileStatus, Finding, Policy,
    Proposal, Review, Role, Seq, Severity, Signs, Status, Strategy, Verdict, Workflow, pipeline_team, team,
};
use archeflow_core::run::Run;
use archeflow_host::log;
use archeflow_host::store::journal::Journal;

use super::{Bench, Goal, Row, Rows, best, ms};

const LINES: u64 = 1_000_000;
/// Lines per write when the journal is made; a run writes as many as one report brings about.
const BATCH: usize = 5_000;
const RUNS: u32 = 2_000;
/// Of the run that is resumed.
const RESUMED: u64 = 100_000;

pub(super) fn measure(bench: &Bench) -> Rows {
    let events = bench.folder.path().join("events");
    std::fs::create_dir_all(&events)?;
    let run = MadeUp { failures: 20, endless: true }.write(&events, "long", LINES)?;
    let path = events.join("long.jsonl");
    let megabytes = std::fs::metadata(&path)?.len() / 1_000_000;
    let (mut read_time, mut cpu) = (Duration::MAX, Duration::MAX);
    let fold = best(3, || -> Result<_, Box<dyn std::error::Error>> {
        let (begun, cpu_before) = (Instant::now(), cpu_time());
        let text = Journal::read(&path)?;
        read_time = read_time.min(begun.elapsed());
        let folded = log::fold(&text)?;
        let took = begun.elapsed();
        cpu = cpu.min(cpu_time() - cpu_before);
        if folded == run { Ok(took) } else { Err("the fold differs from the run that was played".into()) }
    })?;
    let resumed = resume(&events)?;
    let begun = Instant::now();
    let mut lines = 0;
    for _ in 0..RUNS {
        lines += MadeUp { failures: 0, endless: false }.play_until(LINES, drop).lines;
    }
    let per_second = f64::from(RUNS) / begun.elapsed().as_secs_f64();
    Ok(vec![
        Row {
            what: format!("read and fold {} lines ({megabytes} MB)", run.lines),
            floor: None,
            ours: fold.as_secs_f64(),
            unit: "s",
            goal: Goal::AtMost(1.0),
        },
        plain("  of which reading and checking", read_time.as_secs_f64(), "s"),
        plain("  CPU time of all its threads", cpu.as_secs_f64(), "s"),
        Row {
            what: format!("resume of a run with {RESUMED} lines"),
            floor: None,
            ours: ms(resumed),
            unit: "ms",
            goal: Goal::AtMost(100.0),
        },
        Row {
            what: format!("runs of the core alone ({} lines each)", lines / u64::from(RUNS)),
            floor: None,
            ours: per_second,
            unit: "/s",
            goal: Goal::AtLeast(20_000.0),
        },
    ])
}

/// From opening the journal, with its lock and every check, to the first decision.
fn resume(events: &Path) -> Result<Duration, Box<dyn std::error::Error>> {
    MadeUp { failures: 20, endless: true }.write(events, "resumed", RESUMED)?;
    best(5, || {
        let begun = Instant::now();
        let opened = Journal::open(events, "resumed")?;
        let mut run = log::fold(&opened.lines)?;
        run.hear(0, session());
        let decided = run.settle(0);
        let took = begun.elapsed();
        if run.lines < RESUMED || decided.is_empty() && run.open.is_empty() {
            return Err("the run that is resumed has nothing to do".into());
        }
        Ok(took)
    })
}

fn plain(what: &str, ours: f64, unit: &'static str) -> Row {
    Row { what: what.to_owned(), floor: None, ours, unit, goal: Goal::None }
}

fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// A world that answers every order at once.
#[derive(Clone, Copy)]
pub(super) struct MadeUp {
    /// Attempts of every agent that fail before one succeeds.
    pub(super) failures: u32,
    /// Whether the reviewers always find something new, so that the run never ends.
    pub(super) endless: bool,
}

impl MadeUp {
    /// Writes the journal of a run that reaches this many lines, and returns the run.
    pub(super) fn write(
        self,
        folder: &Path,
        name: &str,
        lines: u64,
    ) -> Result<Run, Box<dyn std::error::Error>> {
        let (mut journal, mut batch) = (Journal::create(folder, name)?, Vec::new());
        let mut trouble = None;
        let run = self.play_until(lines, |entry| {
            batch.push(entry);
            if batch.len() >= BATCH && trouble.is_none() {
                trouble = log::append(&mut journal, &batch).err();
                batch.clear();
            }
        });
        if let Some(trouble) = trouble {
            return Err(trouble.into());
        }
        log::append(&mut journal, &batch)?;
        if run.lines < lines {
            return Err(format!("the made-up run ended after {} lines: {:?}", run.lines, run.outcome).into());
        }
        Ok(run)
    }

    pub(super) fn play_until(self, lines: u64, wrote: impl FnMut(Entry)) -> Run {
        self.play(|run, _| run.lines >= lines, wrote).0
    }

    /// Stops after this many reports; says how many there were.
    pub(super) fn play_steps(self, steps: u32, wrote: impl FnMut(Entry)) -> (Run, u32) {
        self.play(|_, taken| taken >= steps, wrote)
    }

    fn play(self, is_enough: impl Fn(&Run, u32) -> bool, mut wrote: impl FnMut(Entry)) -> (Run, u32) {
        let mut steps = 0;
        let mut run = Run::default();
        wrote(run.hear(0, request()));
        wrote(run.hear(0, session()));
        loop {
            run.settle(0).into_iter().for_each(&mut wrote);
            let orders: Vec<(Seq, Order)> =
                run.open.iter().map(|(seq, order)| (*seq, order.clone())).collect();
            if run.outcome.is_some() || orders.is_empty() || is_enough(&run, steps) {
                return (run, steps);
            }
            for (seq, order) in orders {
                if let Some(report) = self.answer(seq, &order) {
                    wrote(run.hear(0, report));
                    steps += 1;
                }
            }
        }
    }

    pub(super) fn answer(self, seq: Seq, order: &Order) -> Option<Report> {
        Some(match order {
            Order::AgentStart(start) if start.attempt <= self.failures => AgentFailed {
                archetype: start.archetype.clone(),
                start_seq: seq,
                kind: Failure::Exit,
                reason: "it ended with exit code 1: connection reset by peer".to_owned(),
                duration_ms: 1_250,
                kept_as: None,
                estimated_cost_usd: None,
                cost_source: None,
                tokens: None,
                notes: Vec::new(),
                reopens_in_ms: None,
                played: None,
                brief_chars: 0,
                session: None,
            }
            .into(),
            Order::AgentStart(start) => self.done(seq, start).into(),
            Order::MergeStart(_) => {
                let built = Built::Candidate {
                    old: "base".to_owned(),
                    commit: "merge".to_owned(),
                    tree: "tree".to_owned(),
                };
                MergeBuilt { start_seq: seq, built, chain: Vec::new(), left_out: Vec::new() }.into()
            }
            Order::PreflightStart(_) => PreflightDone { start_seq: seq, setup: None, tests: None }.into(),
            Order::TestsStart(tests) => TestsDone {
                start_seq: seq,
                tree: tests.tree.clone(),
                cache: Vec::new(),
                setup: None,
                ran: archeflow_core::event::TestsRan::default(),
                result: Tested::Passed,
                exit: None,
                duration_ms: 1,
                artifact: String::new(),
                tail: String::new(),
                lines: Vec::new(),
                failing: Vec::new(),
            }
            .into(),
            Order::MergeIntent(intent) => RunMerged {
                start_seq: seq,
                base: intent.target.clone(),
                strategy: intent.strategy,
                old: intent.old.clone(),
                commit: intent.new.clone(),
                tree: intent.tree.clone(),
                moved: 0,
            }
            .into(),
            Order::RevertIntent(_) => RunReverted { start_seq: seq, commit: "revert".to_owned() }.into(),
            Order::HookStart(hook) => {
                HookDone { start_seq: seq, point: hook.point, ok: true, reason: String::new() }.into()
            }
            Order::QuestionAsked(_) => QuestionDeferred { start_seq: seq }.into(),
            Order::EvidenceStart(_)
            | Order::LoopAppend(_)
            | Order::BatteryStart(_)
            | Order::LoopArchive(_)
            | Order::RevertStart(_) => return None,
        })
    }

    pub(super) fn done(self, seq: Seq, start: &AgentStart) -> AgentComplete {
        let sure = Some(900_000);
        let said = match start.role {
            Role::Explorer | Role::Maker => AnswerBody::Prose,
            Role::Creator => AnswerBody::Proposal(Proposal {
                files: vec!["src/a.rs".to_owned()],
                confidence: Confidence {
                    task_understanding: sure,
                    solution_completeness: sure,
                    risk_coverage: sure,
                },
                has_test_strategy: true,
                alternatives: 2,
                missing: Vec::new(),
            }),
            Role::Gatekeeper | Role::Reviewer => AnswerBody::Review(self.review(start)),
        };
        AgentComplete {
            archetype: start.archetype.clone(),
            start_seq: seq,
            duration_ms: 1,
            artifacts: vec![format!("{}.md", start.archetype)],
            digest: "0123456789abcdef0123456789abcdef".to_owned(),
            summary: "What was asked for is done, as far as it goes, and was tried twice.".to_owned(),
            model: start.model,
            answer: Answer { status: Status::Done, said, ..Answer::default() },
            change: (start.role == Role::Maker).then(|| change(start.cycle)),
            tokens: None,
            estimated_cost_usd: None,
            cost_source: None,
            session: None,
            played: None,
            brief_chars: 0,
            notes: Vec::new(),
        }
    }

    fn review(self, start: &AgentStart) -> Review {
        let finds = start.role == Role::Gatekeeper && (self.endless || start.cycle == 1);
        let file = format!("src/part{}.rs", start.cycle);
        let finding = Finding {
            source: start.archetype.clone(),
            location: format!("{file}:10"),
            file: file.clone(),
            line: 10,
            severity: Severity::Warning,
            category: "reliability".to_owned(),
            flaw: None,
            description: format!("input{0} breaks parser{0} loudly", start.cycle),
            fix: "check the input".to_owned(),
            evidence: String::new(),
            citations: vec![Citation { file, line: 10, quote: None, holds: Some(true), related: None }],
            anchor: String::new(),
            reproduction: None,
        };
        let verdict = Some(if finds { Verdict::Rejected } else { Verdict::Approved });
        Review { verdict, findings: if finds { vec![finding] } else { Vec::new() }, ..Review::default() }
    }
}

fn change(cycle: u32) -> Change {
    Change {
        commit: format!("work{cycle}"),
        tree: format!("tree{cycle}"),
        kept_as: "refs/archeflow/keep".to_owned(),
        files: vec![ChangedFile {
            path: "src/a.rs".to_owned(),
            status: FileStatus::Modified,
            added: 5,
            deleted: 1,
            content: String::new(),
        }],
        files_left_out: 0,
        test_files: 1,
        commits: 1,
        uncommitted: false,
        signs: Signs { seen: Vec::new() },
        notes: Vec::new(),
    }
}

/// A standard run that neither failures nor slow progress can stop.
pub(super) fn request() -> RunStart {
    let mut config = Policy { no_tests: true, ..Policy::default() };
    config.retries.attempts = u32::MAX;
    config.retries.failures_in_a_row = u32::MAX;
    config.convergence.diverging_below_percent = 0;
    config.convergence.diverging_cycles = u32::MAX;
    let mut seats: BTreeMap<String, Vec<_>> =
        Workflow::ALL.into_iter().map(|workflow| (workflow.name().to_owned(), team(workflow))).collect();
    seats.insert(Strategy::Pipeline.name().to_owned(), pipeline_team());
    RunStart {
        task: "Add rate limiting".to_owned(),
        workflow: Workflow::Standard,
        max_cycles: u32::MAX,
        strategy: Strategy::Pdca,
        domain: Domain::Code,
        team: Vec::new(),
        seats,
        tiers: BTreeMap::new(),
        personas: BTreeMap::new(),
        config,
        config_hash: String::new(),
        base: Base { target: "refs/heads/main".to_owned(), commit: "base".to_owned() },
        branch: "archeflow/run".to_owned(),
        dry_run: false,
        chosen: Chosen::default(),
        format: FORMAT,
        version: String::new(),
        ..RunStart::default()
    }
}

pub(super) fn session() -> SessionStart {
    SessionStart { fence: 1, why: "run".to_owned(), auto_merge: true, ..SessionStart::default() }
}
