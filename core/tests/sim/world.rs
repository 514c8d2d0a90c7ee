//! The people, agents, tests and git of one seed.

use std::collections::BTreeMap;

use archeflow_core::event::{
    AgentComplete, AgentFailed, AgentStart, AgentTimeout, Artifact, Base, BaseTests, Built, Chosen,
    Companion, EvidenceDone, EvidenceStart, Failure, HookDone, Imported, LeftOut, Link, LoopOpened,
    MergeBuilt, MergeRefused, MergeRequested, Order, PreflightDone, PreflightStart, QuestionAnswered,
    QuestionAsked, QuestionDeferred, QuestionKind, Ran, Refusal, Report, RevertBuilt, RevertRefused,
    RevertRequested, ReviewOpened, RunComplete, RunContinued, RunDiscarded, RunMerged, RunReentered,
    RunReverted, RunRolledBack, RunStart, Session, SessionStart, SetupRun, Tested, TestsDone, Together,
};
use archeflow_core::model::{
    AcceptedFinding, Answer, AnswerBody, Change, ChangedFile, Citation, Confidence, Counted, Disposition,
    Domain, FailAction, FileStatus, Finding, Flaw, Hook, HookPoint, MergeStrategy, OnPostMergeFailure,
    Overlap, Participant, Phase, Policy, Prior, Proposal, Purpose, Reason, Reproduction, Review, ReviewPart,
    Role, Seq, Severity, Shadow, ShadowSet, Sign, Signs, Status, Strategy, Subject, SubjectKind, Tier,
    Traits, Verdict, Workflow, ZeroPolicy, team,
};
use archeflow_core::strategies::review;

use super::chance::{Chance, word};
use super::ledger::Ledger;

pub(crate) struct World {
    pub(crate) seed: u64,
    pub(crate) request: RunStart,
    /// The change somebody brought along, where this is a review.
    pub(crate) opened: Option<ReviewOpened>,
    /// The goal of a loop, where this is one.
    pub(super) agent_loop: Option<LoopOpened>,
    mood: Mood,
    /// Findings and signs come in another order, and nothing else differs (D-13).
    shuffled: Option<u64>,
}

/// How likely, in percent, things are in this seed: so that some runs go far and others fail at once.
struct Mood {
    failing: u64,
    busy: u64,
    odd_status: u64,
    low_confidence: u64,
    clean: u64,
    grave: u64,
    unfounded: u64,
    signs: u64,
    git: u64,
    red: u64,
    people: u64,
    shadow: u64,
    provider: u64,
}

/// What a person does with an open question.
pub(crate) enum Reply {
    Says(Report),
    LeavesItOpen,
}

const FAULTS: [(&str, u32, &str, &str); 9] = [
    ("src/auth.rs", 12, "security", "token is compared in variable time"),
    ("src/auth.rs", 15, "security", "token compared before the length check"),
    ("src/auth.rs", 80, "security", "session cookie lacks the secure flag"),
    ("src/pool.rs", 40, "reliability", "connection leaks when the query fails"),
    ("src/pool.rs", 44, "design", "pool hides its limits from callers"),
    ("src/api.rs", 7, "breaking-change", "public field removed without notice"),
    ("src/api.rs", 9, "quality", "function name repeats the module"),
    ("", 0, "testing", "no test covers the empty input"),
    ("tests/pool.rs", 3, "testing", "test asserts nothing about release"),
];

impl World {
    pub(crate) fn new(seed: u64) -> World {
        let mut chance = Chance::keyed(seed, &[word("world")]);
        let mood = Mood {
            failing: chance.pick(&[0, 0, 3, 12, 40]),
            busy: chance.pick(&[0, 0, 2, 30]),
            odd_status: chance.pick(&[0, 0, 2, 12]),
            low_confidence: chance.pick(&[0, 3, 10, 30]),
            clean: chance.pick(&[10, 30, 60, 90]),
            grave: chance.pick(&[10, 35, 70]),
            unfounded: chance.pick(&[0, 10, 50]),
            signs: chance.pick(&[0, 5, 25]),
            git: chance.pick(&[0, 10, 40]),
            red: chance.pick(&[0, 10, 40]),
            people: chance.pick(&[10, 40, 80]),
            shadow: chance.pick(&[0, 0, 10, 40, 90]),
            // A stream of its own: what else happens in a seed stays as it was.
            provider: Chance::keyed(seed, &[word("mood")]).pick(&[0, 0, 0, 6, 25]),
        };
        let mut request = request(&mut chance);
        accounts(&mut Chance::keyed(seed, &[word("accounts")]), &mut request.config);
        World { seed, request, opened: None, agent_loop: None, mood, shuffled: None }
    }

    /// The same people with a change that is there already (AF-003).
    pub(crate) fn of_review(seed: u64) -> World {
        let mut world = World::new(seed);
        let mut chance = Chance::keyed(seed, &[word("review")]);
        let mut names = vec!["guardian", "skeptic", "sage", "trickster"];
        chance.shuffle(&mut names);
        names.truncate(chance.index(4) + 1);
        let seats =
            names.into_iter().map(|name| Participant { archetype: name.to_owned(), role: Role::Reviewer });
        world.request.strategy = Strategy::Review;
        world.request.seats = [(Strategy::Review.name().to_owned(), seats.collect())].into();
        world.request.dry_run = false;
        world.request.config.review.trials = chance.pick(&[20, 20, 20, 2, 0]);
        let artifact = |name: &str| Artifact { name: name.to_owned(), digest: "d".to_owned() };
        let part =
            |n: u32| ReviewPart { artifact: artifact(&format!("part-{n}")), files: 1, lines: 9, bytes: 99 };
        let parts = (1..=chance.pick(&[1, 1, 2, 3, 4])).map(part).collect();
        let accepted = accepted(&mut chance);
        // Not all of them: somebody has to see the later parts. A stream of its own, so that nothing else changes.
        let sitting = &world.request.seats[Strategy::Review.name()];
        let mut spared = Chance::keyed(seed, &[word("once")]);
        let once = sitting
            .iter()
            .skip(1)
            .map(|seat| seat.archetype.clone())
            .filter(|_| spared.percent(30))
            .collect();
        let subject = Subject { kind: SubjectKind::Branch, name: "b".to_owned(), key: "branch b".to_owned() };
        world.opened = Some(ReviewOpened {
            subject,
            change: world.change(&mut chance),
            about: artifact("about"),
            parts,
            once,
            plan: artifact("plan"),
            summarised: 0,
            earlier: None,
            accepted,
            verify: chance.percent(70),
        });
        world
    }

    pub(crate) fn shuffled(mut self, by: u64) -> World {
        self.shuffled = Some(by);
        self
    }

    /// What is reported once, after the first session began.
    pub(crate) fn opening(&self) -> Option<Report> {
        let review = self.opened.clone().map(Report::from);
        review.or_else(|| self.agent_loop.clone().map(Report::from))
    }

    /// Some people stop a loop in the midst of it.
    pub(crate) fn stop(&self, ledger: &Ledger) -> Option<Report> {
        self.agent_loop.as_ref()?;
        super::loops::stop(self, ledger)
    }

    pub(super) fn chance(&self, what: &str, key: &[u64]) -> Chance {
        Chance::keyed(self.seed ^ word(what), key)
    }

    /// The same for every process that drives the run between two acts of a person.
    pub(crate) fn session(&self, ledger: &Ledger) -> SessionStart {
        let mut chance = self.chance("session", &[ledger.acts]);
        SessionStart {
            fence: ledger.fence + 1,
            why: "simulated".to_owned(),
            attended: chance.percent(50),
            auto_merge: chance.percent(60),
            version: "0".to_owned(),
            tag: "sim".to_owned(),
            agents: BTreeMap::new(),
            accounts: BTreeMap::new(),
            sandbox: String::new(),
        }
    }

    /// What comes of an order that is not a question.
    pub(crate) fn answer(&self, ledger: &Ledger, seq: Seq, order: &Order) -> Report {
        match order {
            Order::AgentStart(start) => {
                let nth = ledger.attempts.get(&(start.cycle, start.archetype.clone())).copied().unwrap_or(0);
                self.agent(seq, start, nth)
            }
            order => self.machine(ledger, seq, order),
        }
    }

    pub(crate) fn agent(&self, seq: Seq, start: &AgentStart, nth: u64) -> Report {
        let key = [u64::from(start.cycle), word(&start.archetype), nth];
        let provider = &mut self.chance("provider", &key);
        if provider.percent(self.mood.provider) {
            return turned_away(provider, seq, start).into();
        }
        let mut chance = self.chance("agent", &key);
        if chance.percent(self.mood.failing) {
            return failure(&mut chance, seq, start);
        }
        if chance.percent(self.mood.busy) {
            return failed(seq, start, Failure::Busy).into();
        }
        let answer = match &self.agent_loop {
            Some(_) => super::loops::said(self, &mut chance, start),
            None => self.said(&mut chance, start.role, &start.archetype, start.purpose, start.cycle),
        };
        let idle = answer.spoken.as_ref().is_some_and(|spoken| spoken.size.unwrap_or_default().files == 0);
        let changes = !idle
            && start.role == Role::Maker
            && !matches!(answer.status, Status::Blocked | Status::NeedsContext);
        let change = changes.then(|| self.change(&mut chance));
        let digest = format!("{:x}", chance.next());
        AgentComplete {
            archetype: start.archetype.clone(),
            start_seq: seq,
            duration_ms: 1_000,
            artifacts: vec![format!("{}.md", start.archetype)],
            digest: digest.clone(),
            summary: String::new(),
            model: Tier::Sonnet,
            answer,
            change,
            tokens: None,
            estimated_cost_usd: None,
            cost_source: None,
            session: Some(Session { id: digest, counted: None }),
            played: None,
            brief_chars: 0,
            notes: Vec::new(),
        }
        .into()
    }

    fn said(&self, chance: &mut Chance, role: Role, name: &str, purpose: Purpose, cycle: u32) -> Answer {
        let status = if chance.percent(self.mood.odd_status) {
            chance.pick(&[Status::Unverified, Status::NeedsContext, Status::NeedsContext, Status::Blocked])
        } else {
            chance.pick(&[Status::Done, Status::Done, Status::Done, Status::DoneWithConcerns])
        };
        let said = match role {
            Role::Creator if chance.percent(2) => AnswerBody::Prose,
            Role::Creator => AnswerBody::Proposal(self.proposal(chance)),
            Role::Gatekeeper | Role::Reviewer => AnswerBody::Review(self.review(chance, name, cycle)),
            Role::Explorer | Role::Maker => AnswerBody::Prose,
        };
        let mut prior = Vec::new();
        if role == Role::Maker && purpose == Purpose::Work && cycle > 1 {
            for (_, _, _, words) in FAULTS.iter().filter(|_| chance.percent(50)) {
                prior.push(Prior { disposition: Disposition::Fixed, text: (*words).to_owned() });
            }
        }
        let sick = chance.percent(self.mood.shadow);
        let words = if sick { 5_000 } else { 100 };
        let traits = if sick { shadowed(role, name) } else { Traits { test_run: true, ..Traits::default() } };
        Answer { status, remark: "because".to_owned(), said, prior, words, traits, ..Answer::default() }
    }

    fn proposal(&self, chance: &mut Chance) -> Proposal {
        let low = self.mood.low_confidence;
        let mut score = || match chance.percent(low) {
            true => chance.pick(&[None, Some(0), Some(499_999)]),
            false => chance.pick(&[Some(500_000), Some(900_000)]),
        };
        let confidence = Confidence {
            task_understanding: score(),
            solution_completeness: score(),
            risk_coverage: score(),
        };
        Proposal {
            files: vec!["src/auth.rs".to_owned()],
            confidence,
            has_test_strategy: chance.percent(70),
            alternatives: 2,
            missing: Vec::new(),
        }
    }

    /// A few faults are there in this world for good; reviewers see some of them, now and then.
    fn review(&self, chance: &mut Chance, name: &str, cycle: u32) -> Review {
        let mut findings = Vec::new();
        if !chance.percent(self.mood.clean) {
            let habit = self.chance("habit", &[word(name), u64::from(cycle / 2)]).next();
            for _ in 0..chance.number(1, 4) {
                let which = match chance.percent(60) {
                    true => usize::try_from(habit % 3).unwrap() + chance.index(3),
                    false => chance.index(FAULTS.len()),
                };
                let which = which % FAULTS.len();
                let mut finding = self.finding(chance, name, which);
                if self.opened.is_some() {
                    finding.anchor = format!("anchor {which}");
                    finding.reproduction = chance.percent(50).then(|| reproduction(chance));
                }
                findings.push(finding);
            }
        }
        if let Some(by) = self.shuffled {
            Chance::keyed(by, &[word(name), u64::from(cycle)]).shuffle(&mut findings);
        }
        let grave = findings.iter().any(|finding| finding.severity > Severity::Info);
        let verdict = match (grave, chance.percent(90)) {
            (true, true) | (false, false) => Verdict::Rejected,
            (true, false) | (false, true) => Verdict::Approved,
        };
        Review { verdict: (!chance.percent(3)).then_some(verdict), findings, ..Review::default() }
    }

    fn finding(&self, chance: &mut Chance, source: &str, which: usize) -> Finding {
        let (file, line, category, words) = FAULTS[which];
        let severity = match (chance.percent(self.mood.grave), chance.percent(70)) {
            (true, _) => Severity::Critical,
            (false, true) => Severity::Warning,
            (false, false) => Severity::Info,
        };
        let line = if line == 0 { 0 } else { line + chance.number(0, 4) };
        let unfounded = chance.percent(self.mood.unfounded);
        let (hedge, evidence, citations) = match (unfounded, chance.below(4)) {
            (false, 0) => ("", "$ cargo test fails", vec![]),
            (false, 1) => ("might be: ", "", vec![citation(file, None)]),
            (false, 2) => ("", "", vec![Citation { related: Some(false), ..citation(file, Some(true)) }]),
            (false, _) => ("", "", vec![citation(file, Some(true))]),
            (true, 0) => ("might be: ", "", vec![]),
            (true, 1) => ("", "", vec![citation(file, Some(false))]),
            (true, 2) => ("appears to: ", "", vec![citation(file, Some(false))]),
            (true, _) => ("", "", vec![]),
        };
        Finding {
            source: source.to_owned(),
            location: format!("{file}:{line}"),
            file: file.to_owned(),
            line,
            severity,
            category: category.to_owned(),
            flaw: chance.pick(&[None, Some(Flaw::DesignFlaw), Some(Flaw::TestGap)]),
            description: format!("{hedge}{words}{}", chance.pick(&["", " here", " as before"])),
            fix: chance.pick(&["", "do it properly", "take it out"]).to_owned(),
            evidence: evidence.to_owned(),
            citations,
            anchor: String::new(),
            reproduction: None,
        }
    }

    fn change(&self, chance: &mut Chance) -> Change {
        let mut seen = Vec::new();
        if chance.percent(self.mood.signs) {
            for _ in 0..chance.number(1, 3) {
                let sign = chance.pick(&Sign::ALL[..8]);
                let path = chance.pick(&["src/auth.rs", "tests/pool.rs"]).to_owned();
                let counted = Counted { sign, detail: format!("{} in {path}", sign.name()), path, line: 0 };
                if !seen.contains(&counted) {
                    seen.push(counted);
                }
            }
        }
        let mark = chance.next();
        if let Some(by) = self.shuffled {
            Chance::keyed(by, &[mark]).shuffle(&mut seen);
        }
        Change {
            commit: format!("c{mark:016x}"),
            tree: format!("t{mark:016x}"),
            kept_as: "refs/archeflow/keep".to_owned(),
            files: CHANGED.map(changed_file).to_vec(),
            files_left_out: 0,
            test_files: chance.pick(&[0, 1, 2]),
            commits: 1,
            uncommitted: false,
            signs: Signs { seen },
            notes: Vec::new(),
        }
    }

    fn machine(&self, ledger: &Ledger, seq: Seq, order: &Order) -> Report {
        let at = |name: &'static str| self.chance(name, &[ledger.count(name)]);
        match order {
            Order::MergeStart(start) => {
                let chance =
                    &mut self.chance("merge.built", &[ledger.count("merge.built"), word(&start.work)]);
                let fails = chance.percent(self.mood.git);
                if let Some(with) = start.with.as_ref().filter(|_| !fails) {
                    return RunMerged {
                        start_seq: seq,
                        base: start.target.clone(),
                        strategy: start.strategy,
                        old: with.old.clone(),
                        commit: with.commit.clone(),
                        tree: with.tree.clone(),
                        moved: 0,
                    }
                    .into();
                }
                let built = match (fails, chance.below(5)) {
                    (true, 0) => Built::Conflict { paths: vec!["src/auth.rs".to_owned()] },
                    (true, 1) => Built::Nothing,
                    (true, 2) => Built::BaseGone { now: "elsewhere".to_owned() },
                    (true, 3) => Built::NotSigned { what: "there is no key".to_owned() },
                    (true, _) => Built::Fault { what: "the object store is gone".to_owned() },
                    (false, _) => {
                        let mark = chance.next();
                        Built::Candidate {
                            old: format!("o{mark:016x}"),
                            commit: format!("m{mark:016x}"),
                            tree: format!("u{mark:016x}"),
                        }
                    }
                };
                let (chain, left_out) = taken_along(chance, &start.before);
                MergeBuilt { start_seq: seq, built, chain, left_out }.into()
            }
            Order::TestsStart(start) => {
                let mut chance = at("tests.done");
                let result = match chance.percent(self.mood.red) {
                    true => chance.pick(&[Tested::Failed, Tested::Failed, Tested::TimedOut, Tested::Broken]),
                    false => Tested::Passed,
                };
                TestsDone {
                    start_seq: seq,
                    tree: start.tree.clone(),
                    setup: None,
                    cache: Vec::new(),
                    ran: archeflow_core::event::TestsRan::default(),
                    result,
                    exit: Some(i32::from(result != Tested::Passed)),
                    duration_ms: 1,
                    artifact: "tests.txt".to_owned(),
                    tail: "1 test failed".to_owned(),
                    lines: vec!["1 test failed".to_owned()],
                    failing: if result == Tested::Failed { failing(&mut chance) } else { Vec::new() },
                }
                .into()
            }
            Order::PreflightStart(start) => {
                tried_base(self.mood.red, &mut at("preflight.done"), seq, start).into()
            }
            Order::LoopAppend(_) | Order::BatteryStart(_) | Order::LoopArchive(_) => {
                super::loops::performed(self, ledger, seq, order)
            }
            Order::EvidenceStart(start) => tried(self.seed, seq, start).into(),
            Order::HookStart(start) => {
                let ok = !at("hook.done").percent(25);
                HookDone { start_seq: seq, point: start.point, ok, reason: "exit 1".to_owned() }.into()
            }
            Order::MergeIntent(intent) => {
                let tries = ledger.count("run.merged") + ledger.count("merge.refused");
                let mut chance = self.chance("landing", &[tries]);
                if chance.percent(self.mood.git) {
                    let why = chance.pick(&[
                        Refusal::Moved,
                        Refusal::Moved,
                        Refusal::Moved,
                        Refusal::Dirty,
                        Refusal::Busy,
                        Refusal::Fault,
                    ]);
                    return MergeRefused { start_seq: seq, why, detail: "not now".to_owned() }.into();
                }
                RunMerged::by(seq, intent, 0).into()
            }
            Order::RevertStart(_) => {
                let mut chance = at("revert.built");
                let mark = chance.next();
                let built = match chance.below(12) {
                    0 => Built::Conflict { paths: vec!["src/auth.rs".to_owned()] },
                    1 => Built::Nothing,
                    2 => Built::BaseGone { now: "elsewhere".to_owned() },
                    3 => Built::NotSigned { what: "there is no key".to_owned() },
                    4 => Built::Fault { what: "the object store is gone".to_owned() },
                    _ => Built::Candidate {
                        old: format!("t{mark:016x}"),
                        commit: format!("r{mark:016x}"),
                        tree: format!("v{mark:016x}"),
                    },
                };
                RevertBuilt { start_seq: seq, built }.into()
            }
            Order::RevertIntent(intent) if intent.tested.is_some() => {
                let mut chance = at("run.reverted");
                let commit = intent.tested.as_ref().map(|tested| tested.new.clone()).unwrap_or_default();
                let refusals =
                    [Refusal::Moved, Refusal::Moved, Refusal::Dirty, Refusal::Busy, Refusal::Fault];
                match chance.percent(70) {
                    true => RunReverted { start_seq: seq, commit }.into(),
                    false => RevertRefused {
                        start_seq: seq,
                        why: Some(chance.pick(&refusals)),
                        detail: "not now".to_owned(),
                    }
                    .into(),
                }
            }
            Order::RevertIntent(_) => {
                let mut chance = at("run.reverted");
                match chance.percent(80) {
                    true => RunReverted { start_seq: seq, commit: format!("r{:x}", chance.next()) }.into(),
                    false => {
                        RevertRefused { start_seq: seq, why: None, detail: "moved on".to_owned() }.into()
                    }
                }
            }
            other => unreachable!("not an order the world performs: {}", other.name()),
        }
    }

    pub(crate) fn reply(&self, ledger: &Ledger, seq: Seq, question: &QuestionAsked) -> Reply {
        let nth = ledger.asked.get(&question.kind).copied().unwrap_or(0);
        let mut chance = self.chance("reply", &[question.kind as u64, nth]);
        if chance.percent(8) {
            return Reply::LeavesItOpen;
        }
        if self.agent_loop.is_some() && question.kind != QuestionKind::LoopEdited && chance.percent(40) {
            return Reply::Says(super::loops::heard(&mut chance, seq, question.kind));
        }
        if chance.percent(10) {
            return Reply::Says(QuestionDeferred { start_seq: seq }.into());
        }
        Reply::Says(answered(&mut chance, seq, question.kind))
    }

    /// What a person does with a run that has ended. What has landed can only be taken back, and nobody touches what was
    /// thrown away.
    pub(crate) fn person(
        &self,
        ledger: &Ledger,
        complete: &RunComplete,
        worked: bool,
        ways_back: &[(u32, Phase)],
    ) -> Option<Report> {
        let mut chance = self.chance("person", &[ledger.acts]);
        let over = matches!(complete.reason, Reason::Discarded | Reason::Reverted);
        if ledger.acts >= 8 || over {
            return None;
        }
        if ledger.landed.is_some() {
            let plain = self.agent_loop.is_none() && self.mood.people > 0;
            return (plain && chance.percent(15)).then(|| RevertRequested {}.into());
        }
        // A loop that is over stays so, whoever asks for more.
        if matches!(complete.reason, Reason::LoopStopped | Reason::LoopFailed) {
            return None;
        }
        if !chance.percent(self.mood.people) {
            return None;
        }
        if let Some(question) = complete.question
            && chance.percent(70)
        {
            let kind = match complete.reason {
                _ if self.agent_loop.is_some() => ledger.last_asked.unwrap_or(QuestionKind::GoalQuestions),
                Reason::LowConfidence => QuestionKind::LowConfidence,
                Reason::NeedsContext => QuestionKind::NeedsContext,
                Reason::DryRun => QuestionKind::DryRun,
                Reason::RedBase if worked => QuestionKind::Merge,
                Reason::RedBase => QuestionKind::RedBase,
                Reason::ShadowStrikes | Reason::SystemShadow => QuestionKind::Shadow,
                _ => QuestionKind::Merge,
            };
            return Some(answered(&mut chance, question, kind));
        }
        Some(match chance.below(20) {
            0..8 => continued(&mut chance, ledger, 1).into(),
            8..10 => continued(&mut chance, ledger, 0).into(),
            10..14 if worked => requested(&mut chance).into(),
            14..18 => self.reentry(&mut chance, ledger, worked).into(),
            18 => RunDiscarded { kept_as: Vec::new(), by: String::new() }.into(),
            _ if !ways_back.is_empty() => {
                let (cycle, phase) = chance.pick(ways_back);
                RunRolledBack { cycle, phase }.into()
            }
            _ => return None,
        })
    }

    fn reentry(&self, chance: &mut Chance, ledger: &Ledger, worked: bool) -> RunReentered {
        let phase = match worked {
            true => chance.pick(&[Phase::Plan, Phase::Do, Phase::Check, Phase::Act]),
            false => chance.pick(&[Phase::Plan, Phase::Do]),
        };
        let cycle = ledger.cycle.max(1);
        let mut import = |role, name: &str| Imported {
            archetype: name.to_owned(),
            artifact: Artifact { name: format!("{name}.md"), digest: "d".to_owned() },
            answer: self.said(chance, role, name, Purpose::Work, cycle),
        };
        let mut proposal = import(Role::Creator, "creator");
        if !matches!(proposal.answer.said, AnswerBody::Proposal(_)) {
            proposal.answer.said = AnswerBody::Proposal(Proposal::default());
        }
        let making = import(Role::Maker, "maker");
        let mut reviews = vec![import(Role::Gatekeeper, "guardian"), import(Role::Reviewer, "sage")];
        reviews.truncate(chance.index(2) + 1);
        let change = self.change(chance);
        RunReentered {
            phase,
            proposal: (phase >= Phase::Do).then_some(proposal),
            making: (phase >= Phase::Check).then_some(making),
            change: (phase >= Phase::Check).then_some(change),
            reviews: if phase == Phase::Act { reviews } else { Vec::new() },
        }
    }
}

/// Some of the faults are known, and people live with them.
fn accepted(chance: &mut Chance) -> Vec<AcceptedFinding> {
    let share = chance.pick(&[0, 0, 20, 60]);
    let mut known = Vec::new();
    for (which, (file, _, category, _)) in FAULTS.iter().enumerate() {
        if chance.percent(share) {
            let fingerprint = review::fingerprint(category, file, &format!("anchor {which}"), "");
            known.push(AcceptedFinding { fingerprint, reason: "it has always been so".to_owned() });
        }
    }
    known
}

fn reproduction(chance: &mut Chance) -> Reproduction {
    let command = format!("test {:x}", chance.next());
    Reproduction { command, files: Vec::new(), regression: chance.percent(60) }
}

/// The same command always ends in the same way.
fn tried(seed: u64, seq: Seq, start: &EvidenceStart) -> EvidenceDone {
    let mut chance = Chance::keyed(seed, &[word(&start.reproduction.command)]);
    let mut ran = || match chance.pick(&[None, Some(0), Some(0), Some(1), Some(1), Some(101), Some(127)]) {
        None => Ran { why: "stopped".to_owned(), ..Ran::default() },
        exit => Ran { exit, ..Ran::default() },
    };
    let change = ran();
    let base = start.base.as_ref().map(|_| ran());
    EvidenceDone { start_seq: seq, change, base }
}

/// Some people accept some of what is open.
fn continued(chance: &mut Chance, ledger: &Ledger, cycles: u32) -> RunContinued {
    let mut accept = ledger.open.clone();
    let share = chance.pick(&[0, 0, 50, 100]);
    accept.retain(|_| chance.percent(share));
    RunContinued { cycles, accept, ..RunContinued::default() }
}

fn answered(chance: &mut Chance, seq: Seq, kind: QuestionKind) -> Report {
    let text = match kind {
        QuestionKind::Merge | QuestionKind::DryRun | QuestionKind::RedBase => {
            chance.pick(&["yes", "Y", "ok", "no", "what?", ""])
        }
        QuestionKind::LowConfidence => chance.pick(&["proceed", " Proceed ", "it is about logging", "yes"]),
        QuestionKind::Shadow => chance.pick(&["accept", "skip", "stop", "keep to the diff", "go on"]),
        QuestionKind::Rejection => chance.pick(&["land", "land", "fix", "stop", "it holds, see the log"]),
        QuestionKind::NeedsContext => chance.pick(&["the file is src/auth.rs", "no", "proceed"]),
        QuestionKind::GoalQuestions => chance.pick(&["in euros", "", "stop", "rounded down", "in euros"]),
        QuestionKind::PlanApproval => chance.pick(&["approve", "yes", "smaller, please", "stop", ""]),
        QuestionKind::StepApproval => chance.pick(&["approve", "yes", "name it better", "stop", ""]),
        QuestionKind::LoopPaused => chance.pick(&["smaller steps", "stop", "clear", ""]),
        QuestionKind::LoopEdited => chance.pick(&["again", "again", "stop"]),
    };
    QuestionAnswered { start_seq: seq, text: text.to_owned(), by: String::new() }.into()
}

/// What an answer looks like whose archetype went too far.
fn shadowed(role: Role, name: &str) -> Traits {
    let plain = Traits { test_run: true, ..Traits::default() };
    match (role, name) {
        (Role::Explorer, _) => Traits { tangents: 9, ..plain },
        (Role::Creator, _) => Traits { abstractions: 7, ..plain },
        (Role::Gatekeeper, _) => Traits { compromised: 4, ..plain },
        (_, "skeptic") => Traits { reworded: 5, ..plain },
        (_, "sage") => Traits { considers: 8, ..plain },
        (_, "trickster") => Traits { impossible: 3, ..plain },
        (Role::Maker | Role::Reviewer, _) => plain,
    }
}

/// The files of every change: findings elsewhere are beside it.
pub(crate) const CHANGED: [&str; 3] = ["src/auth.rs", "src/pool.rs", "src/api.rs"];

fn changed_file(path: &str) -> ChangedFile {
    let (status, content) = (FileStatus::Modified, String::new());
    ChangedFile { path: path.to_owned(), status, added: 1, deleted: 1, content }
}

fn citation(file: &str, holds: Option<bool>) -> Citation {
    Citation { file: file.to_owned(), line: 5, quote: None, holds, related: None }
}

fn failed(seq: Seq, start: &AgentStart, kind: Failure) -> AgentFailed {
    AgentFailed {
        archetype: start.archetype.clone(),
        start_seq: seq,
        kind,
        reason: format!("{kind:?}"),
        duration_ms: 1,
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
}

/// What a provider or the way to it does to an attempt.
fn turned_away(chance: &mut Chance, seq: Seq, start: &AgentStart) -> AgentFailed {
    let mut kinds = vec![
        Failure::RateLimit,
        Failure::RateLimit,
        Failure::RateLimit,
        Failure::Overload,
        Failure::Overload,
        Failure::Quota,
        Failure::Auth,
        Failure::ContextTooLong,
        Failure::ContextTooLong,
        Failure::Refused,
        Failure::Network,
    ];
    if start.role == Role::Maker {
        kinds.push(Failure::PermissionDenied);
    }
    let kind = chance.pick(&kinds);
    let told = chance.pick(&[None, None, Some(0), Some(30), Some(400_000), Some(2_000_000)]);
    AgentFailed { reopens_in_ms: told.filter(|_| kind.is_busy()), ..failed(seq, start, kind) }
}

/// One account for everybody, or several, and perhaps somebody to take over.
fn accounts(chance: &mut Chance, policy: &mut Policy) {
    let agents = &mut policy.agents;
    agents.default = "one".to_owned();
    for name in ["maker", "skeptic", "sage", "trickster"] {
        if chance.percent(30) {
            let other = chance.pick(&["one:large", "two"]);
            agents.by_archetype.insert(name.to_owned(), other.to_owned());
        }
    }
    agents.accounts = [("one:large".to_owned(), "one".to_owned())].into();
    let fallback = chance.pick(&[&[][..], &[][..], &["three"][..], &["two", "three"][..]]);
    agents.fallback = fallback.iter().map(|agent| (*agent).to_owned()).collect();
    policy.retries.park_after_ms = chance.pick(&[300_000, 300_000, 20]);
    policy.retries.jitter_percent = chance.pick(&[0, 20, 100]);
}

fn failure(chance: &mut Chance, seq: Seq, start: &AgentStart) -> Report {
    let mut kinds = vec![
        Failure::Exit,
        Failure::Exit,
        Failure::Signal,
        Failure::Empty,
        Failure::Silence,
        Failure::TooLong,
        Failure::WorkspaceGone,
        Failure::NotStarted,
    ];
    match start.role {
        Role::Maker => kinds.extend([Failure::NoWork, Failure::NoWork, Failure::NoWork]),
        Role::Gatekeeper | Role::Reviewer => {
            kinds.extend([Failure::Garbled, Failure::Garbled, Failure::Garbled]);
        }
        Role::Explorer | Role::Creator => kinds.push(Failure::Garbled),
    }
    let kind = chance.pick(&kinds);
    let failed = failed(seq, start, kind);
    match kind {
        Failure::Silence | Failure::TooLong => AgentTimeout(failed).into(),
        Failure::NotStarted
        | Failure::Exit
        | Failure::Signal
        | Failure::Empty
        | Failure::Garbled
        | Failure::NoWork
        | Failure::Busy
        | Failure::WorkspaceGone
        | Failure::Auth
        | Failure::Quota
        | Failure::RateLimit
        | Failure::Overload
        | Failure::ContextTooLong
        | Failure::Refused
        | Failure::Network
        | Failure::PermissionDenied
        | Failure::Budget => failed.into(),
    }
}

fn request(chance: &mut Chance) -> RunStart {
    let workflow = chance.pick(&Workflow::ALL);
    let strategy = chance.pick(&[Strategy::Pdca, Strategy::Pdca, Strategy::Pdca, Strategy::Pipeline]);
    let config = policy(chance);
    let seats = match chance.percent(20) {
        true => {
            Workflow::ALL.into_iter().map(|workflow| (workflow.name().to_owned(), team(workflow))).collect()
        }
        false => BTreeMap::new(),
    };
    RunStart {
        task: "make it so".to_owned(),
        workflow,
        max_cycles: config.cycles(workflow),
        strategy,
        domain: chance.pick(&[Domain::Code, Domain::Code, Domain::Code, Domain::Writing, Domain::Research]),
        team: Vec::new(),
        seats,
        tiers: BTreeMap::new(),
        personas: BTreeMap::new(),
        config,
        config_hash: String::new(),
        base: Base { target: "refs/heads/main".to_owned(), commit: "base".to_owned() },
        branch: "archeflow/sim".to_owned(),
        dry_run: chance.percent(8),
        chosen: Chosen::default(),
        format: 1,
        version: "0".to_owned(),
        shadows: shadows(),
        ..RunStart::default()
    }
}

fn shadows() -> BTreeMap<String, ShadowSet> {
    let named = ["explorer", "creator", "maker", "guardian", "skeptic", "trickster", "sage"];
    named.into_iter().map(str::to_owned).zip(Shadow::ALL.iter().map(|shadow| (*shadow).into())).collect()
}

fn policy(chance: &mut Chance) -> Policy {
    let mut policy = Policy::default();
    policy.shadows.enabled = chance.percent(80);
    policy.shadows.distinct_breaks = chance.percent(20);
    policy.shadows.consecutive_break = chance.percent(70);
    policy.shadows.strikes_in_cycle = chance.pick(&[3, 3, 2, 4]);
    policy.boundaries.checkpoint_ms = chance.pick(&[45 * 60_000, 10_000]);
    policy.boundaries.rising_cycles = chance.pick(&[0, 1, 2]);
    policy.retries.attempts = chance.number(0, 2);
    policy.retries.failures_in_a_row = chance.pick(&[2, 3, 3, 5]);
    policy.retries.busy_waits_ms = vec![5; chance.index(4)];
    policy.retries.moved_base = chance.number(1, 3);
    policy.retries.questions = chance.number(1, 3);
    let convergence = &mut policy.convergence;
    convergence.zero_policy = chance.pick(&[ZeroPolicy::Immediate, ZeroPolicy::TwoConsecutive]);
    convergence.overlap = chance.pick(&[Overlap::Weighed, Overlap::Weighed, Overlap::Min, Overlap::Jaccard]);
    convergence.stop_without_baseline = chance.percent(20);
    convergence.oscillating = chance.pick(&[1, 2, 2]);
    convergence.diverging_cycles = chance.pick(&[1, 2, 2]);
    convergence.persistent_floor = chance.pick(&[Severity::Critical, Severity::Critical, Severity::Warning]);
    convergence.tracked = chance.pick(&[Severity::Warning, Severity::Warning, Severity::Info]);
    for sign in Sign::ALL {
        if chance.percent(15) {
            policy.raised.severity.insert(sign, chance.pick(&[Severity::Info, Severity::Warning]));
        }
    }
    policy.git.merge_strategy =
        chance.pick(&[MergeStrategy::NoFf, MergeStrategy::Squash, MergeStrategy::Rebase]);
    policy.git.post_merge_test = chance.percent(40);
    policy.git.on_post_merge_failure =
        chance.pick(&[None, Some(OnPostMergeFailure::Halt), Some(OnPostMergeFailure::CycleBack)]);
    policy.test_command = chance.percent(75).then(|| "make test".to_owned());
    policy.no_tests = chance.percent(30);
    // Drawn aside, so that the rest of a seed's run stays as it was.
    let mut aside = chance.clone();
    policy.setup_command = aside.percent(30).then(|| "make setup".to_owned());
    policy.preflight = aside.percent(85);
    policy.allow_red_base = aside.percent(40);
    for point in HookPoint::ALL {
        if chance.percent(15) {
            let fail_action = chance.pick(&[FailAction::Warn, FailAction::Abort]);
            policy.hooks.push(Hook { point, command: "true".to_owned(), fail_action });
        }
    }
    for workflow in Workflow::ALL {
        if chance.percent(60) {
            policy.max_cycles.insert(workflow, chance.number(1, 5));
        }
    }
    policy
}

/// A person says it, or a sprint for several runs at a time, or after another run has taken this one along.
fn requested(chance: &mut Chance) -> MergeRequested {
    let mark = chance.next();
    let companion = |n: u32| Companion {
        run_id: format!("other.{n}"),
        work: format!("w{n}{mark:016x}"),
        base: format!("b{mark:016x}"),
        strategy: MergeStrategy::NoFf,
        message: String::new(),
    };
    match chance.below(5) {
        0 | 1 => MergeRequested {
            before: (1..=chance.number(1, 3)).map(companion).collect(),
            with: None,
            by: String::new(),
        },
        2 => {
            let [old, commit, tree, tip] = ["o", "m", "u", "t"].map(|kind| format!("{kind}{mark:016x}"));
            let with = Together { run_id: "other.9".to_owned(), old, commit, tree, tip };
            MergeRequested { before: Vec::new(), with: Some(with), by: String::new() }
        }
        _ => MergeRequested::default(),
    }
}

fn taken_along(chance: &mut Chance, before: &[Companion]) -> (Vec<Link>, Vec<LeftOut>) {
    let (mut chain, mut left_out) = (Vec::new(), Vec::new());
    for one in before {
        let (run_id, work) = (one.run_id.clone(), one.work.clone());
        if chance.percent(70) {
            let [old, commit, tree] = ["o", "m", "u"].map(|kind| format!("{kind}{work}"));
            chain.push(Link { run_id, work, old, commit, tree });
        } else {
            left_out.push(LeftOut { run_id, why: "a conflict".to_owned() });
        }
    }
    (chain, left_out)
}

fn tried_base(red: u64, chance: &mut Chance, seq: Seq, start: &PreflightStart) -> PreflightDone {
    let mut run = |sometimes: u64| match chance.percent(sometimes) {
        true => {
            chance.pick(&[Tested::Failed, Tested::Failed, Tested::Failed, Tested::TimedOut, Tested::Broken])
        }
        false => Tested::Passed,
    };
    let (artifact, lines) = (String::new(), vec!["1 test failed".to_owned()]);
    let setup = start.setup_command.as_ref().map(|_| SetupRun {
        result: run(red / 4),
        reused: false,
        from: None,
        duration_ms: 1,
        artifact: artifact.clone(),
        lines: lines.clone(),
    });
    let is_set_up = setup.as_ref().is_none_or(|setup| setup.result == Tested::Passed);
    let result = run(red);
    let failing = if result == Tested::Failed { failing(chance) } else { Vec::new() };
    let ran = archeflow_core::event::TestsRan::default();
    let tests = BaseTests {
        result,
        exit: None,
        reused: false,
        duration_ms: 1,
        artifact,
        lines,
        failing,
        ran,
        cache: Vec::new(),
    };
    let tests = start.test_command.as_ref().filter(|_| is_set_up).map(|_| tests);
    PreflightDone { start_seq: seq, setup, tests }
}

/// Some of a few tests; sometimes the output names none.
fn failing(chance: &mut Chance) -> Vec<String> {
    let names = ["adds", "divides", "multiplies"].into_iter().filter(|_| chance.percent(50));
    names.map(str::to_owned).collect()
}
