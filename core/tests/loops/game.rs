//! A loop in miniature: the run, its log, its file, and whoever answers.

#[path = "audit.rs"]
pub(crate) mod audit;

use archeflow_core::event::{
    AgentComplete, AgentFailed, AgentStart, Base, BatteryDone, Built, Checked, Decision, Entry, Event,
    Failure, LoopAppended, LoopArchived, LoopEdited, LoopHeard, LoopOpened, MergeBuilt, MergeRequested,
    Order, QuestionAnswered, QuestionDeferred, QuestionKind, Report, RunMerged, RunStart, SessionStart,
    Tested, TestsDone,
};
use archeflow_core::model::{
    Alert, Change, ChangedFile, CheckEnd, FileStatus, LOOP_RULES, LoopPolicy, Policy, Role, Seq, Signs,
    Speaker, Strategy, Tier, Word,
};
use archeflow_core::run::Run;
use archeflow_core::strategies::agent_loop::cyclefile::{Ending, append, grown, parse};
use archeflow_core::strategies::agent_loop::signal::{
    ActorStep, Route, RouteMode, answer, read, route, spoken,
};

#[derive(Clone)]
pub(crate) struct Game {
    pub(crate) run: Run,
    pub(crate) log: Vec<Entry>,
    pub(crate) file: String,
    request: RunStart,
    upfront: bool,
    goal: String,
    whole: Option<String>,
    /// Everything that was ever in the file, to see that nothing is rewritten.
    seen: String,
    checks: [CheckEnd; 3],
    crash_once: bool,
    conflict: bool,
    /// The rules the loop begins with.
    rules: u32,
    /// What the checks report instead of how they end.
    pub(crate) tests: Option<Checked>,
    pub(crate) linter: Option<Checked>,
}

impl Game {
    pub(crate) fn new() -> Game {
        let config = Policy { test_command: Some("make test".to_owned()), ..Policy::default() };
        let request = RunStart {
            task: "a discount from 100 euros on".to_owned(),
            strategy: Strategy::Loop,
            max_cycles: 5,
            config,
            base: Base { target: "refs/heads/main".to_owned(), commit: "base".to_owned() },
            branch: "archeflow/loop".to_owned(),
            format: 1,
            ..RunStart::default()
        };
        Game {
            run: Run::default(),
            log: Vec::new(),
            file: String::new(),
            goal: request.task.clone(),
            request,
            upfront: false,
            whole: None,
            seen: String::new(),
            checks: [CheckEnd::Passed; 3],
            crash_once: false,
            conflict: false,
            rules: LOOP_RULES,
            tests: None,
            linter: None,
        }
    }

    /// A loop that an earlier version began.
    pub(crate) fn of_first_rules() -> Game {
        Game { rules: 0, ..Game::new() }
    }

    pub(crate) fn upfront() -> Game {
        Game { upfront: true, ..Game::new() }
    }

    /// The thresholds, before the first line is played.
    pub(crate) fn policy(&mut self) -> &mut LoopPolicy {
        &mut self.request.config.looping
    }

    pub(crate) fn play(&mut self, lines: &[&str]) {
        let mut lines = lines.iter();
        if self.log.is_empty() {
            let goal = lines.as_slice().first().and_then(|line| line.strip_prefix("goal "));
            if let Some(goal) = goal {
                self.goal = goal.to_owned();
                lines.next();
            }
            self.open();
        }
        for line in lines {
            self.line(line);
        }
        self.machines();
    }

    fn open(&mut self) {
        self.hear(self.request.clone());
        self.session(true);
        let opened = LoopOpened {
            project: "shop".to_owned(),
            cycle_id: "2026-11-15-001".to_owned(),
            path: "docs/context/current_cycle.md".to_owned(),
            seal: parse("").unwrap().seal,
            goal: self.goal.clone(),
            upfront: self.upfront,
            documents: vec!["CODEBASE".to_owned(), "TESTING".to_owned()],
            rules: self.rules,
            ..LoopOpened::default()
        };
        self.hear(opened);
    }

    fn session(&mut self, attended: bool) {
        let fence = self.run.session.as_ref().map_or(1, |session| session.fence + 1);
        self.hear(SessionStart {
            fence,
            why: "played".to_owned(),
            attended,
            auto_merge: true,
            version: "0".to_owned(),
            tag: "t".to_owned(),
            agents: std::collections::BTreeMap::new(),
            accounts: std::collections::BTreeMap::new(),
            sandbox: String::new(),
        });
    }

    fn hear(&mut self, report: impl Into<Report>) {
        let entry = self.run.hear(1_000, report);
        self.log.push(entry);
        self.log.extend(self.run.settle(1_000));
    }

    fn line(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if self.sets(&words) {
            return;
        }
        self.machines();
        let rest = |n: usize| words.get(n..).unwrap_or(&[]).join(" ");
        match words[0] {
            "planner" | "actor" | "judge" => {
                self.agent(&words);
                self.checks = [CheckEnd::Passed; 3];
            }
            "say" => {
                let start_seq = self.asked();
                self.hear(QuestionAnswered { start_seq, text: rest(1), by: String::new() });
            }
            "word" => {
                let word = Word::ALL.into_iter().find(|word| word.name() == words[1]);
                let start_seq = Some(self.asked());
                self.hear(LoopHeard { start_seq, word, text: rest(2), ..LoopHeard::default() });
            }
            "stop" => self.hear(LoopHeard { word: Some(Word::Stop), ..LoopHeard::default() }),
            "file" => self.write_block(words[1], words[2]),
            "merge" => self.hear(MergeRequested::default()),
            "leave" => {
                let start_seq = self.asked();
                self.hear(QuestionDeferred { start_seq });
            }
            "network" => self.network(),
            other => panic!("nobody plays '{other}'"),
        }
    }

    /// What the world will be like.
    fn sets(&mut self, words: &[&str]) -> bool {
        let end = |word: &str| match word {
            "passed" => CheckEnd::Passed,
            "failed" => CheckEnd::Failed,
            "missing" => CheckEnd::Missing,
            "crashed" => CheckEnd::Crashed,
            other => panic!("no check ends '{other}'"),
        };
        if !matches!(words, ["tests" | "linter" | "security", ..]) {
            self.machines();
        }
        match words {
            ["tests", "crashed", "once"] => self.crash_once = true,
            ["tests", word] => self.checks[0] = end(word),
            ["linter", word] => self.checks[1] = end(word),
            ["security", word] => self.checks[2] = end(word),
            ["conflict"] => self.conflict = true,
            ["no", "conflict"] => self.conflict = false,
            ["edit"] => {
                self.whole = Some(self.file.clone());
                self.file = self.file.replacen("100 euros", "10 euros", 1);
            }
            ["mend"] => self.file = self.whole.take().unwrap(),
            ["scribble"] => {
                self.file.push_str(
                    "\nBy the way, the till is `till.sh`.\n\n> - Agent: Judge\n> - Next: Human\n\n",
                );
            }
            _ => return false,
        }
        true
    }

    fn asked(&self) -> Seq {
        let question = self.run.question().map(|(seq, _)| seq);
        question.unwrap_or_else(|| panic!("nobody asks anything\n{}", self.told()))
    }

    pub(crate) fn question(&self) -> Option<QuestionKind> {
        self.run.question().map(|(_, question)| question.kind)
    }

    pub(crate) fn agent_out(&self) -> Option<AgentStart> {
        self.run.open_agents().next().map(|(_, start)| start.clone())
    }

    /// `planner PLAN_CREATED Actor risk=low lines=3`.
    fn agent(&mut self, words: &[&str]) {
        let out = self.run.open_agents().next().map(|(seq, start)| (seq, start.clone()));
        let Some((seq, start)) = out.filter(|(_, start)| start.archetype == words[0]) else {
            panic!("the {} is not out\n{}", words[0], self.told())
        };
        let value = |key: &str| {
            words
                .iter()
                .find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
                .map(|v| v.replace('_', " ").replace("\\n", "\n"))
        };
        let mut text = format!("What I did: {}.\n\n", value("text").unwrap_or_default());
        if let (Some(result), Some(next)) = (words.get(1), words.get(2)) {
            let agent = Speaker::parse(words[0]).unwrap().name();
            text.push_str(&format!(
                "- **Agent**: {agent}\n- Result: {result}\n- Loop Summary: so it is\n- Next: {next} (please)\n"
            ));
            let more = [("risk", "Risk"), ("confidence", "Confidence"), ("kind", "Kind")];
            for (key, label) in more {
                text.push_str(&value(key).map(|value| format!("- {label}: {value}\n")).unwrap_or_default());
            }
            text.push_str("\nProject=shop | Agent=me | Step=1\n");
        }
        let number = |key: &str, default: u32| value(key).map_or(default, |v| v.parse().unwrap());
        let (lines, count) = (number("lines", 20), number("files", 1));
        let ending = if words.contains(&"docs") { "md" } else { "rs" };
        let mut files: Vec<ChangedFile> = (0..count).map(|n| changed(n, lines, ending)).collect();
        if let (Some(file), Some(path)) =
            (files.first_mut(), words.iter().find_map(|w| w.strip_prefix("path=")))
        {
            file.path = path.to_owned();
        }
        let added = value("added").unwrap_or_default();
        let planned: Vec<String> = value("planned").into_iter().collect();
        let step = ActorStep { files: &files, files_left_out: 0, added: &added, planned: &planned };
        let by = Speaker::parse(words[0]).unwrap();
        let answer = answer(by, text.as_bytes(), Some(step), &self.request.config.looping);
        let change = (start.role == Role::Maker && count > 0).then(|| change(seq, files));
        let complete = AgentComplete {
            archetype: start.archetype.clone(),
            start_seq: seq,
            duration_ms: 1_000,
            artifacts: vec![format!("{}-{seq}.md", start.archetype)],
            digest: text,
            summary: String::new(),
            model: Tier::Sonnet,
            answer,
            change,
            tokens: None,
            estimated_cost_usd: None,
            cost_source: None,
            notes: Vec::new(),
            session: None,
            played: None,
            brief_chars: 0,
        };
        self.hear(complete);
    }

    fn network(&mut self) {
        let (start_seq, start) =
            self.run.open_agents().next().map(|(seq, start)| (seq, start.clone())).unwrap();
        self.hear(AgentFailed {
            archetype: start.archetype,
            start_seq,
            kind: Failure::Network,
            reason: "no route".to_owned(),
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
        });
    }

    /// A person writes a block into the file, and the host reads it.
    fn write_block(&mut self, result: &str, next: &str) {
        self.file.push_str(&format!(
            "\n- Agent: Human\n- Result: {result}\n- Step Summary: written by hand\n- Next: {next}\n"
        ));
        let start_seq = Some(self.asked());
        let fresh = parse(&self.file).unwrap().fresh;
        let heard = spoken(&fresh, &self.request.config.looping);
        self.hear(LoopHeard {
            start_seq,
            spoken: Some(Box::new(heard)),
            text: fresh,
            ..LoopHeard::default()
        });
    }

    /// Everything the host does without an agent or a person.
    fn machines(&mut self) {
        while let Some((seq, order)) = self.run.open.iter().find_map(|(seq, order)| {
            let waits = matches!(order, Order::AgentStart(_) | Order::QuestionAsked(_));
            (!waits).then(|| (*seq, order.clone()))
        }) {
            let report = self.perform(seq, &order);
            self.hear(report);
        }
    }

    fn perform(&mut self, start_seq: Seq, order: &Order) -> Report {
        match order {
            Order::LoopAppend(order) => {
                let body =
                    order.artifact.as_ref().map(|artifact| artifact.digest.clone()).unwrap_or_default();
                let body = format!("{}\n{body}\n{}", order.above, order.text);
                let edited = |first: usize, last: usize, what: String| {
                    let number = |n: usize| u32::try_from(n).unwrap();
                    LoopEdited { start_seq, first: number(first), last: number(last), what }
                };
                let past = match parse(&self.file) {
                    Ok(past) => past,
                    Err(why) => return edited(why.first, why.last, why.what).into(),
                };
                if past.seal != order.seal {
                    return edited(0, 0, "the seal is another one".to_owned()).into();
                }
                assert_eq!(past.blocks + 1, order.number);
                self.file = append(&self.file, &past, order.speaker, &body);
                assert!(grown(&self.seen, &self.file).is_ok(), "PJ-32: only ever appended to");
                self.seen = self.file.clone();
                let past = parse(&self.file).unwrap();
                let theirs = String::new();
                LoopAppended { start_seq, seal: past.seal, blocks: past.blocks, theirs }.into()
            }
            Order::BatteryStart(start) => {
                let once = self.crash_once && start.attempt == 1;
                let ends =
                    if once { [CheckEnd::Crashed, CheckEnd::Passed, CheckEnd::Passed] } else { self.checks };
                let [tests, linter, security] = ends.map(|end| {
                    let tail = if end == CheckEnd::Failed { "1 failed, and this is why" } else { "" };
                    Checked { end, tail: tail.to_owned(), ..Checked::default() }
                });
                let tests = self.tests.clone().unwrap_or(tests);
                let linter = self.linter.clone().unwrap_or(linter);
                let (commit, artifact) = (start.commit.clone(), String::new());
                BatteryDone {
                    start_seq,
                    commit,
                    tests,
                    linter,
                    security,
                    old_tests: None,
                    duration_ms: 1_000,
                    artifact,
                }
                .into()
            }
            Order::LoopArchive(_) => LoopArchived {
                start_seq,
                path: "docs/context/archive/x.md".to_owned(),
                trouble: String::new(),
            }
            .into(),
            Order::MergeStart(_) if self.conflict => {
                let built = Built::Conflict { paths: vec!["till.rs".to_owned()] };
                MergeBuilt { start_seq, built, chain: Vec::new(), left_out: Vec::new() }.into()
            }
            Order::MergeStart(start) => {
                let (old, tree) = ("base".to_owned(), "tree".to_owned());
                let commit = format!("merge of {}", start.work);
                let built = Built::Candidate { old, commit, tree };
                MergeBuilt { start_seq, built, chain: Vec::new(), left_out: Vec::new() }.into()
            }
            Order::TestsStart(start) => TestsDone {
                start_seq,
                tree: start.tree.clone(),
                setup: None,
                cache: Vec::new(),
                ran: archeflow_core::event::TestsRan::default(),
                result: Tested::Passed,
                exit: Some(0),
                duration_ms: 1,
                artifact: String::new(),
                tail: String::new(),
                lines: Vec::new(),
                failing: Vec::new(),
            }
            .into(),
            Order::MergeIntent(intent) => RunMerged {
                start_seq,
                base: intent.target.clone(),
                strategy: intent.strategy,
                old: intent.old.clone(),
                commit: intent.new.clone(),
                tree: intent.tree.clone(),
                moved: 0,
            }
            .into(),
            other => panic!("nobody performs {}", other.name()),
        }
    }

    pub(crate) fn insufficient(&self) -> u32 {
        self.run.agent_loop.as_ref().unwrap().place.insufficient
    }

    pub(crate) fn count(&self, name: &str) -> usize {
        self.log.iter().filter(|entry| entry.event.name() == name).count()
    }

    pub(crate) fn agents(&self) -> usize {
        self.count("agent.start")
    }

    pub(crate) fn alerts(&self) -> Vec<Alert> {
        let alert = |entry: &Entry| match &entry.event {
            Event::Decision(Decision::LoopAlert(alert)) => Some(alert.alert),
            _ => None,
        };
        self.log.iter().filter_map(alert).collect()
    }

    /// How each snapshot was taken, and how many blockers it tells.
    pub(crate) fn archives(&self) -> Vec<(Ending, usize)> {
        let archive = |entry: &Entry| match &entry.event {
            Event::Order(Order::LoopArchive(archive)) => Some((archive.ending, archive.blockers.len())),
            _ => None,
        };
        self.log.iter().filter_map(archive).collect()
    }

    /// Who another tool would send, by the last block of the file.
    pub(crate) fn next_by_the_file(&self) -> Option<Speaker> {
        let reading = read(&self.file);
        match route(reading.last()?, RouteMode::Tolerant) {
            Route::To(next, _) => Some(next),
            Route::Refused(_) => None,
        }
    }

    /// The log tells the whole story, nothing more follows from it, and it keeps its promises.
    pub(crate) fn is_consistent(&self, name: &str) {
        let mut again = Run::replay(&self.log);
        assert!(again == self.run, "{name}: a replay is another run");
        assert!(again.settle(1_000).is_empty(), "{name}: a replay has something to add");
        if let Err(why) = audit::audit(&self.log) {
            panic!("{name}: {why}\n{}", self.told());
        }
    }

    pub(crate) fn told(&self) -> String {
        let line = |entry: &Entry| {
            let text: String = format!("{:?}", entry.event).chars().take(180).collect();
            format!("{:4} {} {text}\n", entry.seq, entry.event.name())
        };
        self.log.iter().skip(3).map(line).collect()
    }
}

/// All lines in the first file.
fn changed(n: u32, lines: u32, ending: &str) -> ChangedFile {
    let added = if n == 0 { lines } else { 0 };
    ChangedFile {
        path: format!("file-{n}.{ending}"),
        status: FileStatus::Modified,
        added,
        deleted: 0,
        content: String::new(),
    }
}

fn change(seq: Seq, files: Vec<ChangedFile>) -> Change {
    Change {
        commit: format!("commit-{seq}"),
        tree: format!("tree-{seq}"),
        kept_as: format!("refs/archeflow/keep/{seq}"),
        files,
        files_left_out: 0,
        test_files: 0,
        commits: 1,
        uncommitted: false,
        signs: Signs::default(),
        notes: Vec::new(),
    }
}
