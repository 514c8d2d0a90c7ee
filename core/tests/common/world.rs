//! A made-up world that answers every order of a run, as a row of a table scripts it. The scripting language is
//! described in `docs/rules/stops.md`.

use std::collections::BTreeMap;

use archeflow_core::event::{
    AgentComplete, AgentFailed, AgentLost, AgentStart, AgentTimeout, AgentUsage, Base, BaseTests, Built,
    Chosen, CostSource, Decision, Entry, Event, FORMAT, Failure, Hardness, HookDone, MergeBuilt, MergeIntent,
    MergeRefused, OldTests, Order, Past, PreflightDone, PreflightStart, QuestionAnswered, QuestionKind,
    Refusal, Report, RunContinued, RunMerged, RunReverted, RunStart, SessionStart, SetupRun, Tested,
    TestsDone, TestsRan,
};
use archeflow_core::model::{
    Answer, AnswerBody, Change, ChangedFile, Citation, Confidence, Counted, Disposition, Domain, ExitWhen,
    FileStatus, Finding, Millionths, Money, Overlay, Policy, Prior, Proposal, Purpose, Reason, Review, Role,
    Seq, Severity, Shadow, ShadowSet, Sign, Signs, Status, Strategy, TestCounts, Traits, Verdict, Workflow,
    pipeline_team, team,
};
use archeflow_core::rules::prices;
use archeflow_core::run::Run;

/// No script here needs more rounds of orders and answers.
const ROUNDS: u32 = 300;

const MINI_EXPLORER: &str = "mini-explorer";

pub(crate) struct World {
    policy: Policy,
    strategy: Strategy,
    workflow: Workflow,
    max_cycles: Option<u32>,
    attended: bool,
    auto_merge: bool,
    domain: Domain,
    says: String,
    confidence: Confidence,
    strategy_for_tests: bool,
    test_files: u32,
    /// The Maker changes a text instead of code.
    prose: bool,
    rounds: Vec<Round>,
    mishaps: BTreeMap<String, Vec<String>>,
    builds: Vec<String>,
    tests: Vec<String>,
    /// How the setup and test commands end on the base commit.
    base_setup: Option<String>,
    base_tests: Option<String>,
    /// Tests that fail on the base commit, and on every tree that is to land.
    base_failing: Vec<String>,
    failing: Vec<String>,
    landings: Vec<String>,
    pub(crate) statuses: BTreeMap<String, Status>,
    /// What a person says about a shadow, and about an objection without evidence.
    shadow_says: String,
    rejection_says: String,
    /// What a reviewer does that is asked for evidence: `insists`, `shows` or `withdraws`.
    when_asked: String,
    exit: Option<ExitWhen>,
    /// A reviewer that replaces another finds nothing.
    successor_approves: bool,
    base_ran: TestsRan,
    ran: TestsRan,
    /// Seconds every attempt works.
    takes: Option<u64>,
    changed_files: u32,
    /// Deliveries in which no cited file was touched; contents are known only where this is given.
    untouched: Vec<usize>,
    /// What each archetype says it cost; `all` for everybody else.
    charges: BTreeMap<String, Money>,
    /// What each archetype is seen to use while it works, one report after the other.
    uses: BTreeMap<String, Vec<Money>>,
    spent_today: Money,
    /// When a person resumes a run that was stopped by a limited account: `late` or `early`.
    resumes: Vec<String>,
    /// The team has no Creator, or no reviewers.
    no_plan: bool,
    no_review: bool,
    /// How often the Maker has delivered something to review.
    delivered: usize,
    /// It was sent back for tests; what it brings then is the same delivery.
    for_tests: bool,
}

/// What one round of review finds.
#[derive(Default)]
struct Round {
    findings: Vec<Finding>,
    approved_all_the_same: bool,
    /// Reviewers that reject whatever they found.
    rejecting: Vec<String>,
    signs: Vec<Sign>,
}

pub(crate) struct Played {
    pub(crate) run: Run,
    pub(crate) log: Vec<Entry>,
}

impl World {
    /// `run`: the workflow or `pipeline`, then `max <n>`. `reviews`: rounds separated by `/`. `world`: words
    /// separated by commas.
    pub(crate) fn script(run: &str, reviews: &str, world: &str) -> World {
        let mut words = run.split_whitespace();
        let name = words.next().unwrap_or_default();
        let (strategy, workflow) = match Workflow::parse(name) {
            Some(workflow) => (Strategy::Pdca, workflow),
            None if name == "pipeline" => (Strategy::Pipeline, Workflow::Standard),
            None => panic!("no run is called '{name}'"),
        };
        let mut policy =
            Policy { test_command: Some("make test".to_owned()), preflight: false, ..Policy::default() };
        policy.shadows.enabled = false;
        policy.retries.jitter_percent = 0;
        let sure = Some(900_000);
        let mut made = World {
            policy,
            strategy,
            workflow,
            max_cycles: words.nth(1).map(number),
            attended: false,
            auto_merge: true,
            domain: Domain::Code,
            says: "yes".to_owned(),
            confidence: Confidence {
                task_understanding: sure,
                solution_completeness: sure,
                risk_coverage: sure,
            },
            strategy_for_tests: true,
            test_files: 1,
            prose: false,
            rounds: reviews.split('/').map(Round::script).collect(),
            mishaps: BTreeMap::new(),
            builds: Vec::new(),
            tests: Vec::new(),
            base_setup: None,
            base_ran: TestsRan::default(),
            ran: TestsRan::default(),
            base_tests: None,
            base_failing: Vec::new(),
            failing: Vec::new(),
            landings: Vec::new(),
            statuses: BTreeMap::new(),
            shadow_says: "accept".to_owned(),
            rejection_says: "land".to_owned(),
            when_asked: "insists".to_owned(),
            exit: None,
            successor_approves: false,
            takes: None,
            changed_files: 1,
            untouched: Vec::new(),
            charges: BTreeMap::new(),
            uses: BTreeMap::new(),
            spent_today: Money::ZERO,
            resumes: Vec::new(),
            no_plan: false,
            no_review: false,
            delivered: 0,
            for_tests: false,
        };
        world.split(',').map(str::trim).filter(|word| !word.is_empty()).for_each(|word| made.flag(word));
        made
    }

    fn flag(&mut self, flag: &str) {
        let (name, value) =
            flag.split_once(':').map_or((flag, ""), |(name, value)| (name.trim(), value.trim()));
        let list = || value.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        match name {
            "shadows" => self.policy.shadows.enabled = true,
            "shadows off" => self.policy.shadows.enabled = false,
            "echo chamber off" => self.policy.system_shadows.echo_chamber.fast_consensus = None,
            "strikes" => self.policy.shadows.strikes_in_cycle = number(value),
            "distinct breaks" => self.policy.shadows.distinct_breaks = true,
            "rejection says" => value.clone_into(&mut self.rejection_says),
            "asked" => value.clone_into(&mut self.when_asked),
            "exit" => self.exit = ExitWhen::ALL.into_iter().find(|exit| exit.name() == value),
            "successor approves" => self.successor_approves = true,
            "shadow says" => value.clone_into(&mut self.shadow_says),
            "takes" => self.takes = Some(u64::from(number(value))),
            "changed files" => self.changed_files = number(value),
            "untouched" => self.untouched = list().iter().filter_map(|word| word.parse().ok()).collect(),
            "extra cycles" => self.policy.extra_cycles = number(value),
            "rising" => self.policy.boundaries.rising_cycles = number(value),
            "checkpoint cycles" => self.policy.boundaries.checkpoint_cycles = number(value),
            "diverging" => self.policy.convergence.diverging_cycles = number(value),
            "convergence off" => self.policy.convergence.enabled = false,
            "evidence off" => self.policy.evidence.enabled = false,
            "no plan" => self.no_plan = true,
            "no review" => self.no_review = true,
            "attended" => self.attended = true,
            "asks before merging" => self.auto_merge = false,
            "says" => value.clone_into(&mut self.says),
            "no test command" => self.policy.test_command = None,
            "base setup" => {
                self.base_setup = Some(value.to_owned());
                self.policy.setup_command = Some("make setup".to_owned());
                self.policy.preflight = true;
            }
            "base tests" => {
                self.base_tests = Some(value.to_owned());
                self.policy.preflight = true;
            }
            "base failing" => self.base_failing = list(),
            "failing" => self.failing = list(),
            "unproven" => value.clone_into(&mut self.ran.unproven),
            "base ran" => self.base_ran.counts = Some(ran(value)),
            "ran" => self.ran.counts = Some(ran(value)),
            "old tests" => {
                let result = tested(Some(value));
                self.ran.old = Some(OldTests { result, counts: None, artifact: "old.log".to_owned() });
            }
            "base tests change" => self.base_ran.changed = list(),
            "tests change" => self.ran.changed = list(),
            "allow red base" => self.policy.allow_red_base = true,
            "--no-tests" => (self.policy.test_command, self.policy.no_tests) = (None, true),
            "attempts" => self.policy.retries.attempts = number(value),
            "second net" => self.policy.git.post_merge_test = true,
            "writing" => self.domain = Domain::Writing,
            "research" => self.domain = Domain::Research,
            "prose" => self.prose = true,
            "earlier journal" => self.policy.records_alternatives = false,
            "no test strategy" => self.strategy_for_tests = false,
            "no test files" => self.test_files = 0,
            "confidence" => self.confidence = confidence(value),
            "unverified" => drop(self.statuses.insert(value.to_owned(), Status::Unverified)),
            "budget" => self.policy.costs.budget_usd = Some(dollars(value)),
            "per agent" => self.policy.costs.per_agent_usd = Some(dollars(value)),
            "daily" => self.policy.costs.daily_usd = Some(dollars(value)),
            "spent today" => self.spent_today = dollars(value),
            "warn at" => self.policy.costs.warn_at_percent = number(value),
            "prices" => self.policy.costs.prices = prices::built_in().tiers.clone(),
            "simulated agents" => self.policy.agents.default = "sim:a.json".to_owned(),
            "play file" => self.policy.agents.default = "script:a.play".to_owned(),
            "cost" => self.charges = list().iter().map(|pair| charge(pair)).collect(),
            "uses" => {
                let pairs = list();
                let pairs = pairs.iter().filter_map(|pair| pair.split_once('='));
                let amounts = |amounts: &str| amounts.split('/').map(dollars).collect();
                self.uses = pairs.map(|(name, used)| (name.to_owned(), amounts(used))).collect();
            }
            "plays" => {
                let pairs = list();
                let pairs = pairs.iter().filter_map(|pair| pair.split_once('='));
                let named = pairs.map(|(name, agent)| (name.to_owned(), agent.to_owned()));
                self.policy.agents.by_archetype = named.collect();
            }
            "fallback" => self.policy.agents.fallback = list(),
            "park after" => self.policy.retries.park_after_ms = u64::from(number(value)) * 1_000,
            "resumes" => self.resumes = list(),
            "merge" => self.builds = list(),
            "tests" => self.tests = list(),
            "landing" => self.landings = list(),
            agent => {
                self.policy.shadows.enabled |= list().iter().any(|word| word == "sick");
                self.mishaps.insert(agent.to_owned(), list());
            }
        }
    }

    /// Plays the run to its end.
    pub(crate) fn play(self) -> Played {
        self.play_until(|_| false)
    }

    /// Plays until the run ends, or the log has come far enough.
    pub(crate) fn play_until(mut self, enough: impl Fn(&[Entry]) -> bool) -> Played {
        let mut run = Run::default();
        let mut log = vec![run.hear(0, self.request()), run.hear(0, self.session())];
        for _ in 0..ROUNDS {
            log.extend(run.settle(run.last));
            if let Some(now) = self.resumed(&run) {
                let session = SessionStart { fence: 2, ..self.session() };
                log.push(run.hear(now, session));
                log.push(run.hear(now, RunContinued::default()));
                continue;
            }
            if run.outcome.is_some() || enough(&log) {
                return Played { run, log };
            }
            let orders: Vec<(Seq, Order)> =
                run.open.iter().map(|(seq, order)| (*seq, order.clone())).collect();
            assert!(!orders.is_empty(), "the run waits for nothing; its last line: {:?}", log.last());
            for (seq, order) in orders {
                let report = self.running(&run, seq, &order).unwrap_or_else(|| self.answer(seq, &order));
                log.push(run.hear(run.last, report));
            }
        }
        panic!("the run does not end; its last line: {:?}", log.last())
    }

    /// What is heard of an agent before it ends by itself: what it uses, and that it was stopped for it.
    fn running(&mut self, run: &Run, seq: Seq, order: &Order) -> Option<Report> {
        let start = order.body::<AgentStart>()?;
        let archetype = start.archetype.clone();
        if run.ledger.used_up.contains(&seq) {
            let failed = AgentFailed {
                archetype,
                start_seq: seq,
                kind: Failure::Budget,
                reason: "it had used up its share".to_owned(),
                duration_ms: 1,
                kept_as: None,
                estimated_cost_usd: Some(run.seen_of(seq)),
                cost_source: None,
                tokens: None,
                notes: Vec::new(),
                reopens_in_ms: None,
                played: None,
                brief_chars: 0,
                session: None,
            };
            return Some(failed.into());
        }
        let uses = self.uses.get_mut(&archetype).filter(|uses| !uses.is_empty())?;
        let usage = AgentUsage {
            archetype,
            attempt_seq: seq,
            estimated_cost_usd: uses.remove(0),
            cost_source: CostSource::Priced,
            tokens: None,
            model: String::new(),
        };
        Some(usage.into())
    }

    /// When a person goes on with what a limited account has stopped.
    fn resumed(&mut self, run: &Run) -> Option<u64> {
        let complete = run.complete.as_ref().filter(|end| end.reason == Reason::ProviderBusy)?;
        let when = if self.resumes.is_empty() { None } else { Some(self.resumes.remove(0)) };
        match when?.as_str() {
            "early" => Some(run.last),
            "late" => Some(complete.reopens_at.unwrap_or(run.last)),
            other => panic!("nobody resumes '{other}'"),
        }
    }

    fn request(&self) -> RunStart {
        let mut seats: BTreeMap<String, Vec<_>> =
            Workflow::ALL.into_iter().map(|workflow| (workflow.name().to_owned(), team(workflow))).collect();
        seats.insert(Strategy::Pipeline.name().to_owned(), pipeline_team());
        let sits = |role: Role| match role {
            Role::Explorer | Role::Creator => !self.no_plan,
            Role::Maker => true,
            Role::Gatekeeper | Role::Reviewer => !self.no_review,
        };
        seats.values_mut().for_each(|team| team.retain(|seat| sits(seat.role)));
        let exit = self.exit.unwrap_or(if self.no_review { ExitWhen::Always } else { ExitWhen::default() });
        RunStart {
            overlay: Overlay { exit, ..Overlay::default() },
            task: "Add rate limiting".to_owned(),
            workflow: self.workflow,
            max_cycles: self.max_cycles.unwrap_or_else(|| self.policy.cycles(self.workflow)),
            strategy: self.strategy,
            domain: self.domain,
            team: Vec::new(),
            seats,
            tiers: BTreeMap::new(),
            personas: BTreeMap::new(),
            config: self.policy.clone(),
            config_hash: String::new(),
            base: Base { target: "refs/heads/main".to_owned(), commit: "base".to_owned() },
            branch: "archeflow/run".to_owned(),
            dry_run: false,
            chosen: Chosen::default(),
            format: FORMAT,
            version: String::new(),
            shadows: shadows(),
            past: Past { spent_today_usd: self.spent_today, ..Past::default() },
            ..RunStart::default()
        }
    }

    fn session(&self) -> SessionStart {
        SessionStart {
            fence: 1,
            why: "run".to_owned(),
            attended: self.attended,
            auto_merge: self.auto_merge,
            version: String::new(),
            tag: String::new(),
            agents: BTreeMap::new(),
            accounts: BTreeMap::new(),
            sandbox: String::new(),
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "only orders are answered")]
    fn answer(&mut self, seq: Seq, order: &Order) -> Report {
        match order {
            Order::AgentStart(start) => self.agent(seq, start),
            Order::MergeStart(_) => {
                MergeBuilt { start_seq: seq, built: self.build(), chain: Vec::new(), left_out: Vec::new() }
                    .into()
            }
            Order::PreflightStart(start) => self.preflight(seq, start).into(),
            Order::TestsStart(tests) => TestsDone {
                start_seq: seq,
                tree: tests.tree.clone(),
                setup: None,
                cache: Vec::new(),
                ran: self.ran.clone(),
                result: self.test(),
                exit: None,
                duration_ms: 1,
                artifact: String::new(),
                tail: "2 of 40 cases fail".to_owned(),
                lines: Vec::new(),
                failing: self.failing.clone(),
            }
            .into(),
            Order::MergeIntent(intent) => self.land(seq, intent),
            Order::RevertIntent(_) => RunReverted { start_seq: seq, commit: "revert".to_owned() }.into(),
            Order::HookStart(hook) => {
                HookDone { start_seq: seq, point: hook.point, ok: true, reason: String::new() }.into()
            }
            Order::QuestionAsked(question) => {
                let text = match question.kind {
                    QuestionKind::Merge | QuestionKind::RedBase => self.says.clone(),
                    QuestionKind::Rejection => self.rejection_says.clone(),
                    QuestionKind::Shadow => self.shadow_says.clone(),
                    _ => "more".to_owned(),
                };
                QuestionAnswered { start_seq: seq, text, by: String::new() }.into()
            }
            other => panic!("{} is not an order", other.name()),
        }
    }

    fn preflight(&self, seq: Seq, start: &PreflightStart) -> PreflightDone {
        let (artifact, lines) = (String::new(), vec!["2 of 40 cases fail".to_owned()]);
        let setup = start.setup_command.as_ref().map(|_| SetupRun {
            result: tested(self.base_setup.as_deref()),
            reused: false,
            from: None,
            duration_ms: 1,
            artifact: artifact.clone(),
            lines: lines.clone(),
        });
        let is_set_up = setup.as_ref().is_none_or(|setup| setup.result == Tested::Passed);
        let tests = start.test_command.as_ref().filter(|_| is_set_up).map(|_| BaseTests {
            result: tested(self.base_tests.as_deref()),
            exit: None,
            reused: false,
            cache: Vec::new(),
            duration_ms: 1,
            artifact,
            lines,
            failing: self.base_failing.clone(),
            ran: self.base_ran.clone(),
        });
        PreflightDone { start_seq: seq, setup, tests }
    }

    fn build(&mut self) -> Built {
        match next(&mut self.builds).as_deref() {
            None | Some("built") => Built::Candidate {
                old: "base".to_owned(),
                commit: "merge".to_owned(),
                tree: "tree".to_owned(),
            },
            Some("conflict") => Built::Conflict { paths: vec!["src/a.rs".to_owned()] },
            Some("nothing") => Built::Nothing,
            Some("base-gone") => Built::BaseGone { now: "elsewhere".to_owned() },
            Some("unsigned") => Built::NotSigned { what: "no key".to_owned() },
            Some("fault") => Built::Fault { what: "git failed".to_owned() },
            Some(other) => panic!("a merge can't end with '{other}'"),
        }
    }

    fn test(&mut self) -> Tested {
        tested(next(&mut self.tests).as_deref())
    }

    fn land(&mut self, seq: Seq, intent: &MergeIntent) -> Report {
        let why = match next(&mut self.landings).as_deref() {
            None | Some("landed") => {
                return RunMerged::by(seq, intent, 0).into();
            }
            Some("moved") => Refusal::Moved,
            Some("dirty") => Refusal::Dirty,
            Some("busy") => Refusal::Busy,
            Some("fault") => Refusal::Fault,
            Some(other) => panic!("a landing can't end with '{other}'"),
        };
        MergeRefused { start_seq: seq, why, detail: "refused".to_owned() }.into()
    }

    fn agent(&mut self, seq: Seq, start: &AgentStart) -> Report {
        self.for_tests |= matches!(start.purpose, Purpose::Tests | Purpose::Correct | Purpose::Replace)
            && start.role == Role::Maker;
        let exactly = called(start);
        let by_name = if exactly == MINI_EXPLORER { MINI_EXPLORER } else { start.archetype.as_str() };
        let key = if self.mishaps.contains_key(&exactly) { exactly.as_str() } else { by_name };
        let mishap = self.mishaps.get_mut(key).and_then(next_or_forever);
        let archetype = start.archetype.clone();
        let Some(kind) = mishap else { return self.done(seq, start).into() };
        let reason = kind.clone();
        let (kind, told) =
            kind.split_once('@').map_or((kind.as_str(), None), |(kind, told)| (kind, Some(told)));
        let reopens_in_ms = told.map(|told| u64::from(number(told)) * 1_000);
        let failed = |kind| AgentFailed {
            archetype: archetype.clone(),
            start_seq: seq,
            kind,
            reason: reason.clone(),
            duration_ms: 1,
            kept_as: None,
            estimated_cost_usd: None,
            cost_source: None,
            tokens: None,
            notes: Vec::new(),
            reopens_in_ms,
            played: None,
            brief_chars: 0,
            session: None,
        };
        let kind = match kind {
            "fine" => return self.done(seq, start).into(),
            "sick" => {
                let mut complete = self.done(seq, start);
                sicken(&mut complete, start.role);
                return complete.into();
            }
            "lost" => {
                let reason = "the program ended".to_owned();
                return AgentLost {
                    archetype,
                    start_seq: seq,
                    reason,
                    kept_as: None,
                    estimated_cost_usd: None,
                    cost_source: None,
                    tokens: None,
                }
                .into();
            }
            "silent" => return AgentTimeout(failed(Failure::Silence)).into(),
            "slow" => return AgentTimeout(failed(Failure::TooLong)).into(),
            "exit" => Failure::Exit,
            "empty" => Failure::Empty,
            "garbled" => Failure::Garbled,
            "busy" => Failure::Busy,
            "no-work" => Failure::NoWork,
            "auth" => Failure::Auth,
            "quota" => Failure::Quota,
            "rate-limit" => Failure::RateLimit,
            "overload" => Failure::Overload,
            "context" => Failure::ContextTooLong,
            "denied" => Failure::PermissionDenied,
            "refused" => Failure::Refused,
            "network" => Failure::Network,
            "not-started" => Failure::NotStarted,
            other => panic!("an agent can't end with '{other}'"),
        };
        failed(kind).into()
    }

    fn done(&mut self, seq: Seq, start: &AgentStart) -> AgentComplete {
        let mut change = None;
        let mut prior = Vec::new();
        let said = match start.role {
            Role::Explorer => AnswerBody::Prose,
            Role::Creator => AnswerBody::Proposal(Proposal {
                files: vec!["src/a.rs".to_owned()],
                confidence: self.confidence,
                has_test_strategy: self.strategy_for_tests,
                alternatives: 2,
                missing: Vec::new(),
            }),
            Role::Maker => {
                self.delivered += usize::from(!std::mem::take(&mut self.for_tests));
                change = Some(self.change());
                prior = self.fixed();
                AnswerBody::Prose
            }
            Role::Gatekeeper | Role::Reviewer => AnswerBody::Review(self.review(start)),
        };
        let status = self.statuses.get(&start.archetype).copied().unwrap_or(Status::Done);
        let remark = if status == Status::Done { String::new() } else { "a remark".to_owned() };
        AgentComplete {
            archetype: start.archetype.clone(),
            start_seq: seq,
            duration_ms: self.takes.map_or(1, |seconds| seconds * 1_000),
            artifacts: vec![format!("{}.md", start.archetype)],
            digest: String::new(),
            summary: String::new(),
            model: start.model,
            answer: Answer { status, remark, said, prior, traits: healthy(), ..Answer::default() },
            change,
            tokens: None,
            estimated_cost_usd: self.charges.get(&start.archetype).or(self.charges.get("all")).copied(),
            cost_source: None,
            session: None,
            played: None,
            brief_chars: 0,
            notes: Vec::new(),
        }
    }

    /// The round of review that judges what the Maker delivered last.
    fn round(&self) -> &Round {
        let round = self.delivered.saturating_sub(1);
        self.rounds.get(round).unwrap_or_else(|| panic!("the script has no round {}", round + 1))
    }

    fn change(&self) -> Change {
        let signs = self.round().signs.iter().map(|sign| Counted {
            sign: *sign,
            path: "src/a.rs".to_owned(),
            line: 3,
            detail: sign.name().to_owned(),
        });
        Change {
            commit: format!("work{}", self.delivered),
            tree: format!("tree{}", self.delivered),
            kept_as: "refs/archeflow/keep".to_owned(),
            files: (0..self.spread())
                .map(|n| match n {
                    0 if self.prose => (n, "paper/main.tex".to_owned()),
                    0 => (n, "src/a.rs".to_owned()),
                    n => (n, format!("src/extra_{n}.rs")),
                })
                .chain(self.cited().map(|path| (0, path)))
                .map(|(n, path)| ChangedFile {
                    path,
                    status: FileStatus::Modified,
                    added: 5,
                    deleted: 1,
                    content: self.content(n),
                })
                .collect(),
            files_left_out: u32::from(!self.has_files_outside() && !self.prose),
            test_files: self.test_files,
            commits: 1,
            uncommitted: false,
            signs: Signs { seen: signs.collect() },
            notes: Vec::new(),
        }
    }

    /// Further files of the change, in which the reviewers find something in any round.
    fn cited(&self) -> impl Iterator<Item = String> {
        let all = self.rounds.iter().flat_map(|round| &round.findings).map(|finding| finding.file.clone());
        let inside =
            all.filter(|file| self.has_files_outside() && file.starts_with("src/") && file != "src/a.rs");
        inside.collect::<std::collections::BTreeSet<String>>().into_iter()
    }

    /// Only where a row has a finding beside the change, all of its files are known.
    fn has_files_outside(&self) -> bool {
        let mut findings = self.rounds.iter().flat_map(|round| &round.findings);
        findings.any(|finding| finding.file.starts_with("other/"))
    }

    fn content(&self, file: u32) -> String {
        let touched = (1..=self.delivered).filter(|delivery| !self.untouched.contains(delivery)).count();
        if self.untouched.is_empty() { String::new() } else { format!("{file}.{touched}") }
    }

    /// A change that spreads triples with every cycle.
    fn spread(&self) -> u32 {
        let cycles = u32::try_from(self.delivered.saturating_sub(1)).unwrap_or(0);
        if self.changed_files > 1 { self.changed_files * 3_u32.pow(cycles) } else { self.changed_files }
    }

    /// The Maker says of everything the round before had and this one has not that it is fixed.
    fn fixed(&self) -> Vec<Prior> {
        let Some(before) = self.delivered.checked_sub(2).and_then(|round| self.rounds.get(round)) else {
            return Vec::new();
        };
        let now = &self.round().findings;
        let gone = before.findings.iter().filter(|old| now.iter().all(|found| found.file != old.file));
        gone.map(|old| Prior { disposition: Disposition::Fixed, text: old.description.clone() }).collect()
    }

    fn review(&self, start: &AgentStart) -> Review {
        let (round, archetype) = (self.round(), start.archetype.as_str());
        let mut findings: Vec<Finding> =
            round.findings.iter().filter(|finding| finding.source == archetype).cloned().collect();
        // Not corrected for a shadow.
        let asked = start.purpose == Purpose::Correct && start.note.contains("Withdraw the others");
        match self.when_asked.as_str() {
            "shows" if asked => findings.iter_mut().for_each(shows),
            "withdraws" if asked => findings.clear(),
            _ => {}
        }
        if self.successor_approves && start.purpose == Purpose::Replace {
            findings.clear();
        }
        let grave = findings.iter().any(|finding| finding.severity > Severity::Info);
        let bare = round.rejecting.iter().any(|name| name == archetype)
            && !(asked && self.when_asked == "withdraws");
        let rejected = (grave && !round.approved_all_the_same) || bare;
        let verdict = Some(if rejected { Verdict::Rejected } else { Verdict::Approved });
        Review { verdict, declared: None, findings, left_out: 0, unread: None }
    }
}

/// An answer that shows nothing of any shadow.
fn healthy() -> Traits {
    Traits {
        test_run: true,
        recommendation: true,
        synthesis: true,
        patterns: true,
        deviations: 99,
        ..Traits::default()
    }
}

/// The same answer with its archetype gone too far.
fn sicken(complete: &mut AgentComplete, role: Role) {
    let traits = &mut complete.answer.traits;
    match (role, complete.archetype.as_str()) {
        (Role::Explorer, _) => traits.tangents = 9,
        (Role::Creator, _) => traits.abstractions = 9,
        (Role::Maker, _) => {
            traits.deviations = 0;
            if let Some(change) = &mut complete.change {
                change.files.push(ChangedFile {
                    path: "src/unplanned.rs".to_owned(),
                    status: FileStatus::Modified,
                    added: 50,
                    deleted: 1,
                    content: String::new(),
                });
            }
        }
        (Role::Gatekeeper, _) => traits.compromised = 4,
        (_, "skeptic") => traits.reworded = 9,
        (_, "trickster") => traits.impossible = 9,
        (Role::Reviewer, _) => traits.considers = 9,
    }
}

impl Round {
    fn script(text: &str) -> Round {
        let mut round = Round::default();
        for word in text.split_whitespace().filter(|word| *word != "-" && *word != "clean") {
            if word == "approved" {
                round.approved_all_the_same = true;
            } else if let Some(name) = word.strip_suffix(":rejects") {
                round.rejecting.push(name.to_owned());
            } else if let Some(sign) = word.strip_prefix('+') {
                let sign = Sign::ALL.into_iter().find(|known| known.name() == sign);
                round.signs.push(sign.unwrap_or_else(|| panic!("no sign is called '{word}'")));
            } else {
                round.findings.push(finding(word));
            }
        }
        round
    }
}

fn shadows() -> BTreeMap<String, ShadowSet> {
    let named = ["explorer", "creator", "maker", "guardian", "skeptic", "trickster", "sage"];
    named.into_iter().map(str::to_owned).zip(Shadow::ALL.iter().map(|shadow| (*shadow).into())).collect()
}

/// The reviewer quotes the code that it means, in the change.
fn shows(finding: &mut Finding) {
    let file = finding.file.replace("other/", "src/");
    let quote = Some("let next = input[0];".to_owned());
    finding.citations = vec![Citation { file, line: 10, quote, holds: Some(true), related: Some(true) }];
    finding.evidence = "`let next = input[0];`".to_owned();
}

/// `[reviewer:]<letter>[! or .][? or ~ or ^][= or "][(category)]`.
pub(crate) fn finding(word: &str) -> Finding {
    let (source, rest) = word.split_once(':').unwrap_or(("guardian", word));
    let (mark, category) = match rest.split_once('(') {
        Some((mark, category)) => (mark, category.trim_end_matches(')')),
        None => (rest, "reliability"),
    };
    let mut marks = mark.chars();
    let letter = marks.next().filter(char::is_ascii_uppercase);
    let letter = letter.unwrap_or_else(|| panic!("'{word}' is not a finding")).to_ascii_lowercase();
    let (mut severity, mut founded) = (Severity::Warning, true);
    let (mut related, mut changed, mut quoted, mut quotes) = (None, true, false, None);
    for mark in marks {
        match mark {
            '~' => related = Some(false),
            '^' => changed = false,
            '=' => quoted = true,
            '"' => quotes = Some("let next = input[0];".to_owned()),
            '!' => severity = Severity::Critical,
            '.' => severity = Severity::Info,
            '?' => founded = false,
            other => panic!("'{other}' in '{word}' means nothing"),
        }
    }
    let file = if changed { format!("src/{letter}.rs") } else { format!("other/{letter}.rs") };
    let shown = quotes.as_ref().map(|code| format!(": `{code}`")).unwrap_or_default();
    let citation = Citation { file: file.clone(), line: 10, quote: quotes, holds: Some(true), related };
    Finding {
        source: source.to_owned(),
        location: format!("{file}:10"),
        file,
        line: 10,
        severity,
        category: category.to_owned(),
        flaw: None,
        description: format!("input{letter} breaks parser{letter} loudly{letter}{shown}"),
        fix: format!("check input{letter}"),
        evidence: if quoted { "`let next = input[0];`".to_owned() } else { String::new() },
        citations: if founded { vec![citation] } else { Vec::new() },
        anchor: String::new(),
        reproduction: None,
    }
}

impl Played {
    /// Everybody who was sent, with the agent where it is not the usual one, and the seconds waited before.
    pub(crate) fn ways(&self) -> String {
        let way = |entry: &Entry| {
            let Event::Order(Order::AgentStart(start)) = &entry.event else { return None };
            let agent = if start.agent.is_empty() { String::new() } else { format!("={}", start.agent) };
            let wait = if start.wait_ms == 0 { String::new() } else { format!("+{}", start.wait_ms / 1_000) };
            Some(format!("{}{agent}{wait}", start.archetype))
        };
        self.log.iter().filter_map(way).collect::<Vec<_>>().join(" ")
    }

    /// In how many seconds after its last line a parked run can go on.
    pub(crate) fn reopens(&self) -> String {
        let at = self.run.complete.as_ref().and_then(|complete| complete.reopens_at);
        at.map_or_else(String::new, |at| at.saturating_sub(self.run.last).to_string())
    }

    pub(crate) fn status(&self) -> &'static str {
        self.run.outcome.as_ref().map_or("", |outcome| outcome.status.name())
    }

    pub(crate) fn reason(&self) -> &'static str {
        self.run.outcome.as_ref().map_or("", |outcome| outcome.reason.name())
    }

    pub(crate) fn exit(&self) -> u8 {
        self.run.outcome.as_ref().map_or(255, archeflow_core::model::Outcome::exit_code)
    }

    /// `soft`, `hard` or nothing.
    pub(crate) fn broke(&self) -> &'static str {
        let of = |entry: &Entry| match &entry.event {
            Event::Decision(Decision::WiggumBreak(broke)) => Some(broke.hardness),
            _ => None,
        };
        match self.log.iter().find_map(of) {
            None => "",
            Some(Hardness::Soft) => "soft",
            Some(Hardness::Hard) => "hard",
        }
    }

    /// Shadows as they were seen, in order: whose, and what was done.
    pub(crate) fn actions(&self) -> String {
        let of = |entry: &Entry| match &entry.event {
            Event::Decision(Decision::ShadowDetected(seen)) => {
                Some(format!("{} {}", seen.archetype, seen.action.name()))
            }
            _ => None,
        };
        self.log.iter().filter_map(of).collect::<Vec<_>>().join(", ")
    }

    /// Everybody who was sent, in order.
    pub(crate) fn agents(&self) -> String {
        let of = |entry: &Entry| match &entry.event {
            Event::Order(Order::AgentStart(start)) => Some(called(start)),
            _ => None,
        };
        self.log.iter().filter_map(of).collect::<Vec<_>>().join(" ")
    }

    /// What an agent was told beyond its ordinary brief when it was sent last.
    pub(crate) fn last_note(&self, agent: &str) -> String {
        let of = |entry: &Entry| match &entry.event {
            Event::Order(Order::AgentStart(start)) if called(start) == agent => Some(start.note.clone()),
            _ => None,
        };
        self.log.iter().rev().find_map(of).unwrap_or_else(|| panic!("{agent} was never sent"))
    }

    pub(crate) fn count(&self, name: &str) -> usize {
        self.log.iter().filter(|entry| entry.event.name() == name).count()
    }
}

/// The archetype, with the purpose where it is not its ordinary work.
fn called(start: &AgentStart) -> String {
    match start.purpose {
        Purpose::Work => start.archetype.clone(),
        Purpose::Research => MINI_EXPLORER.to_owned(),
        Purpose::Correct | Purpose::Replace | Purpose::Retry | Purpose::Tests | Purpose::Fix => {
            format!("{}({})", start.archetype, start.purpose.name())
        }
    }
}

/// The next word of a script; the last one stays.
fn next(script: &mut Vec<String>) -> Option<String> {
    if script.len() > 1 { Some(script.remove(0)) } else { script.first().cloned() }
}

/// The next mishap; after the last all is well, unless the script ends with `forever`.
fn next_or_forever(script: &mut Vec<String>) -> Option<String> {
    match script.as_slice() {
        [] => None,
        [kind, forever] if forever == "forever" => Some(kind.clone()),
        [_, ..] => Some(script.remove(0)),
    }
}

pub(crate) fn dollars(word: &str) -> Money {
    Money::parse(word).unwrap_or_else(|| panic!("'{word}' is no amount"))
}

/// `maker=0.5`.
fn charge(pair: &str) -> (String, Money) {
    let (name, amount) = pair.split_once('=').unwrap_or_else(|| panic!("'{pair}' is no charge"));
    (name.to_owned(), dollars(amount))
}

/// `12` tests that passed, or `10 and 2 skipped`.
fn ran(words: &str) -> TestCounts {
    let (passed, rest) = words.split_once(" and ").unwrap_or((words, "0 skipped"));
    let skipped = rest.trim_end_matches(" skipped");
    TestCounts { passed: number(passed), failed: 0, skipped: number(skipped) }
}

fn number(word: &str) -> u32 {
    word.parse().unwrap_or_else(|_| panic!("'{word}' is not a number"))
}

/// Three scores, or `unreadable`.
pub(crate) fn confidence(words: &str) -> Confidence {
    let scores: Vec<Option<Millionths>> = words.split_whitespace().map(score).collect();
    let [task_understanding, solution_completeness, risk_coverage] = scores[..] else {
        panic!("'{words}' are not three scores")
    };
    Confidence { task_understanding, solution_completeness, risk_coverage }
}

/// A decimal number between 0 and 1 in millionths; `unreadable` is none.
pub(crate) fn score(word: &str) -> Option<Millionths> {
    if word == "unreadable" {
        return None;
    }
    let (whole, decimals) = word.split_once('.').unwrap_or_else(|| panic!("'{word}' is not a score"));
    Some(number(whole) * 1_000_000 + number(&format!("{decimals:0<6}")))
}

pub(crate) fn tested(word: Option<&str>) -> Tested {
    match word {
        None | Some("pass") => Tested::Passed,
        Some("fail") => Tested::Failed,
        Some("slow") => Tested::TimedOut,
        Some("broken") => Tested::Broken,
        Some(other) => panic!("tests can't end with '{other}'"),
    }
}
