//! Trials in memory: the rules of the program with simulated agents, without repositories, tests or processes. Thousands of
//! them take seconds, so that an evaluation can show what a rule is worth to a population, with narrow intervals.
//!
//! The run is the real one: its first line comes from the arm's configuration, the core decides, answers are read as those
//! of any agent, and quotations are looked up in the files. What git and tests would report is known from the setup of the
//! simulated agents: the visible tests pass for both solutions, the hidden ones for the right solution. The same trial as a
//! real run has the same outcome; the suite compares them.
//!
//! Absent on purpose: signs of a change (simulated solutions have none), traps, time.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use archeflow_core::accept;
use archeflow_core::eval::sim::{self, SimAnswer, SimCall, SimPopulation, SimSetup, WorkState};
use archeflow_core::eval::trial::ReviewerCounts;
use archeflow_core::eval::{EvalPlan, EvalTrial, TrialKey, TrialSet};
use archeflow_core::event::{
    AgentComplete, AgentFailed, AgentStart, BaseTests, Built, Entry, HookDone, HookStart, MergeBuilt,
    MergeIntent, MergeStart, Order, PreflightDone, PreflightStart, Report, RunMerged, RunStart, SessionStart,
    SetupRun, Tested, TestsDone, TestsRan, TestsStart, Tokens,
};
use archeflow_core::feedback;
use archeflow_core::model::{
    Answer, AnswerBody, Change, ChangedFile, Destination, FileStatus, Money, Role, Seq, Signs,
};
use archeflow_core::read;
use archeflow_core::rules::ledger::{self, Stated, Usage};
use archeflow_core::rules::signs::is_test_path;
use archeflow_core::run::Run;

use super::measure::{self, Judged};
use super::simulated::{trial_setup, write_setup};
use super::trial::{RunFacts, RunReader, shown, trial_end, trial_of};
use super::{EvalEnd, EvalFolder, EvalProgress, EvalRunError};
use crate::eval::{EvalSuite, EvalTask, TaskOrigin};
use crate::executors::look_up_in_memory;
use crate::store::files;

/// No run has more rounds of orders and reports.
const ROUNDS: u32 = 2_000;
/// Trials whose lines are written together.
const CHUNK: usize = 256;

/// Writes the file of some trial's agents, for questions about a run with them.
///
/// # Errors
/// If the task has no files that simulated agents could use, or the folder can't be written.
pub fn sample_agents(
    folder: &EvalFolder,
    plan: &EvalPlan,
    task: &EvalTask,
    population: &SimPopulation,
) -> Result<PathBuf, EvalRunError> {
    let arm = plan.arms.first().map(|arm| arm.name.clone()).unwrap_or_default();
    let key = TrialKey { task: task.name.clone(), arm, repeat: 1 };
    write_setup(folder, &key, &trial_setup(plan, &key, task, population)?)
}

/// What all trials in memory share.
#[derive(Debug)]
pub struct RulesOnly<'a> {
    pub folder: &'a EvalFolder,
    pub plan: &'a EvalPlan,
    pub suite: &'a EvalSuite,
    pub population: &'a SimPopulation,
    /// The first line of a run, by arm and task.
    pub starts: &'a BTreeMap<(String, String), RunStart>,
    /// Threads.
    pub jobs: usize,
}

impl RulesOnly<'_> {
    /// Runs all trials of the plan that are not over.
    ///
    /// # Errors
    /// If the folder can't be written, or a task has no files that simulated agents could use.
    pub fn run(
        &self,
        over: &TrialSet,
        is_stopping: &(dyn Fn() -> bool + Sync),
        on_progress: &dyn Fn(EvalProgress<'_>),
    ) -> Result<EvalEnd, EvalRunError> {
        let tasks: BTreeMap<&str, &EvalTask> =
            self.suite.tasks.iter().map(|task| (task.name.as_str(), task)).collect();
        let left: Vec<TrialKey> = self.plan.trials().filter(|key| over.get(key).is_none()).collect();
        let (mut done, mut spent) = (over.len(), over.iter().map(|trial| trial.money).sum::<Money>());
        for chunk in left.chunks(CHUNK) {
            if is_stopping() {
                return Ok(EvalEnd::Stopped);
            }
            let trials = self.chunk(chunk, &tasks)?;
            self.folder.append_all(&trials)?;
            for trial in &trials {
                done += 1;
                spent = spent.plus(trial.money);
                on_progress(EvalProgress { key: &trial.key, trial: Some(trial), done, spent });
            }
        }
        Ok(EvalEnd::Complete)
    }

    /// In the order of the keys, whichever thread is first.
    fn chunk(
        &self,
        keys: &[TrialKey],
        tasks: &BTreeMap<&str, &EvalTask>,
    ) -> Result<Vec<EvalTrial>, EvalRunError> {
        let share = keys.len().div_ceil(self.jobs.max(1)).max(1);
        let part = |keys: &[TrialKey]| {
            keys.iter().map(|key| self.trial(key, tasks)).collect::<Result<Vec<EvalTrial>, EvalRunError>>()
        };
        std::thread::scope(|scope| {
            let parts: Vec<_> = keys.chunks(share).map(|keys| scope.spawn(move || part(keys))).collect();
            let mut all = Vec::with_capacity(keys.len());
            for part in parts {
                let died = |_| EvalRunError::Machine("a trial in memory did not end".to_owned());
                all.extend(part.join().map_err(died)??);
            }
            Ok(all)
        })
    }

    fn trial(&self, key: &TrialKey, tasks: &BTreeMap<&str, &EvalTask>) -> Result<EvalTrial, EvalRunError> {
        let task = tasks.get(key.task.as_str()).ok_or_else(|| EvalRunError::NoTask(key.task.clone()))?;
        let start = self.starts.get(&(key.arm.clone(), key.task.clone()));
        let start = start.ok_or_else(|| EvalRunError::NoTask(key.task.clone()))?.clone();
        let setup = trial_setup(self.plan, key, task, self.population)?;
        let mut world = MemoryWorld::new(setup, task);
        let facts = world
            .live(start)
            .map_err(|why| EvalRunError::Machine(format!("{} can't run in memory: {why}", shown(key))))?;
        Ok(world.measured(key, &facts))
    }
}

/// What agents, git and tests would report.
struct MemoryWorld {
    setup: SimSetup,
    /// The content of the setup's paths, by commit. Others are never looked at.
    commits: BTreeMap<String, BTreeMap<String, String>>,
    /// The newest one, which the Maker reads.
    proposal: String,
}

const BASE: &str = "base";

impl MemoryWorld {
    fn new(setup: SimSetup, task: &EvalTask) -> MemoryWorld {
        let folder = match &task.origin {
            TaskOrigin::Files(base) => Some(base),
            TaskOrigin::Commit { .. } => None,
        };
        let read = |path: &String| fs::read_to_string(folder?.join(path)).ok();
        let base = setup.paths().into_iter().filter_map(|path| Some((path.clone(), read(&path)?))).collect();
        MemoryWorld { setup, commits: [(BASE.to_owned(), base)].into(), proposal: String::new() }
    }

    fn files(&self, commit: &str) -> &BTreeMap<String, String> {
        static NOTHING: BTreeMap<String, String> = BTreeMap::new();
        self.commits.get(commit).unwrap_or(&NOTHING)
    }

    /// Whether the hidden tests would pass.
    fn is_right(&self, commit: &str) -> bool {
        self.setup.state(self.files(commit)) == WorkState::Right
    }

    /// As the hidden tests of a real run would judge a commit.
    fn judged(&self, commit: &str, made: Option<&Change>) -> Judged {
        let files = self.files(commit);
        let right = &self.setup.right;
        let is_other = |path: &&String| files.get(*path) != right.get(*path);
        let changed = made.into_iter().flat_map(|made| &made.files).map(|file| &file.path);
        let own = changed.filter(|path| !right.contains_key(*path));
        Judged {
            passes: Some(self.is_right(commit)),
            traps_fallen: BTreeSet::new(),
            differs: right.keys().filter(is_other).chain(own).cloned().collect(),
        }
    }

    fn measured(&self, key: &TrialKey, facts: &RunFacts) -> EvalTrial {
        let run = &facts.run;
        let landed = run.complete.as_ref().and_then(|complete| complete.merged_oid.clone());
        let last = landed.or_else(|| run.work.as_ref().map(|work| work.commit.clone()));
        let mut reviewers: BTreeMap<String, ReviewerCounts> = BTreeMap::new();
        for cycle in &facts.reviewed {
            let judged = self.judged(&cycle.made.commit, run.work.as_ref());
            for (name, review) in &cycle.reviews {
                measure::count(reviewers.entry(name.clone()).or_default(), review, &judged, &cycle.made);
            }
        }
        let is_right = last.is_some_and(|commit| self.is_right(&commit));
        let mut trial = trial_of(key, trial_end(run), Some(is_right), facts);
        trial.reviewers = reviewers;
        trial.seconds = None;
        trial
    }

    /// From the first line of a run to its end.
    fn live(&mut self, mut start: RunStart) -> Result<RunFacts, String> {
        BASE.clone_into(&mut start.base.commit);
        let (mut run, mut seen, mut reader) = (Run::default(), Run::default(), RunReader::default());
        let mut lines: Vec<Entry> = vec![run.hear(0, start), run.hear(0, session())];
        for _ in 0..ROUNDS {
            lines.append(&mut run.settle(run.last));
            for line in lines.drain(..) {
                seen.apply(&line);
                reader.see(&seen, &line);
            }
            if run.outcome.is_some() {
                return Ok(reader.facts(run));
            }
            let orders: Vec<(Seq, Order)> =
                run.open.iter().map(|(seq, order)| (*seq, order.clone())).collect();
            if orders.is_empty() {
                return Err("the run waits for nothing".to_owned());
            }
            for (seq, order) in orders {
                let report = self.report(&run, seq, &order)?;
                lines.push(run.hear(run.last, report));
            }
        }
        Err(format!("it has not ended after {ROUNDS} rounds"))
    }

    fn report(&mut self, run: &Run, seq: Seq, order: &Order) -> Result<Report, String> {
        if let Some(start) = order.body::<AgentStart>() {
            return Ok(self.agent(run, seq, start));
        }
        if let Some(start) = order.body::<PreflightStart>() {
            return Ok(preflight(seq, start).into());
        }
        if let Some(tests) = order.body::<TestsStart>() {
            return Ok(passed(seq, &tests.tree).into());
        }
        if let Some(hook) = order.body::<HookStart>() {
            let done = HookDone { start_seq: seq, point: hook.point, ok: true, reason: String::new() };
            return Ok(done.into());
        }
        if order.body::<MergeStart>().is_some() {
            let work = run.work.as_ref().ok_or("there is nothing to merge")?;
            let commit = format!("merge of {}", work.commit);
            self.commits.insert(commit.clone(), self.files(&work.commit).clone());
            let built = Built::Candidate { old: BASE.to_owned(), commit, tree: work.tree.clone() };
            let built = MergeBuilt { start_seq: seq, built, chain: Vec::new(), left_out: Vec::new() };
            return Ok(built.into());
        }
        if let Some(intent) = order.body::<MergeIntent>() {
            return Ok(RunMerged::by(seq, intent, 0).into());
        }
        Err(format!("nothing answers {}", order.name()))
    }

    fn agent(&mut self, run: &Run, seq: Seq, start: &AgentStart) -> Report {
        let work = self.files(&start.at).clone();
        let said = sim::answer(
            &self.setup,
            SimCall {
                archetype: &start.archetype,
                phase: phase_name(start.role),
                cycle: start.cycle,
                purpose: start.purpose.name(),
                attempt: start.attempt,
                work: &work,
                prompt: &self.prompt(run, start.role),
            },
        );
        let request = run.request.as_ref();
        let categories = request.map(|request| request.categories.clone()).unwrap_or_default();
        let mut answer = read::answer_in(start.role, &start.archetype, said.text.as_bytes(), &categories, "");
        let mut change = None;
        match start.role {
            Role::Maker => change = Some(self.change(seq, &start.at, &said)),
            Role::Creator => self.proposal.clone_from(&said.text),
            Role::Gatekeeper | Role::Reviewer => look_up(run, &work, &mut answer),
            Role::Explorer => {}
        }
        let usage = Usage {
            tokens: Some(Tokens { input: said.usage.input, output: said.usage.output, ..Tokens::default() }),
            cost: Stated::read(&said.usage.dollars.to_string()),
            model: String::new(),
        };
        let cost = ledger::cost(&usage, &run.policy().costs, start.model, start.reserved_usd);
        if let Err((kind, reason)) = accept::accept(start.role, &answer, change.is_some(), false) {
            return AgentFailed {
                archetype: start.archetype.clone(),
                start_seq: seq,
                kind,
                reason,
                duration_ms: 0,
                kept_as: change.map(|change| change.kept_as),
                estimated_cost_usd: cost.map(|(cost, _)| cost),
                cost_source: cost.map(|(_, source)| source),
                tokens: usage.tokens,
                notes: Vec::new(),
                reopens_in_ms: None,
                played: None,
                brief_chars: 0,
                session: None,
            }
            .into();
        }
        AgentComplete {
            archetype: start.archetype.clone(),
            start_seq: seq,
            duration_ms: 0,
            artifacts: vec![format!("{}-{}-{}.md", start.archetype, start.cycle, start.attempt)],
            digest: files::digest(said.text.as_bytes()),
            summary: answer.summary.clone(),
            model: start.model,
            answer,
            change,
            tokens: usage.tokens,
            estimated_cost_usd: cost.map(|(cost, _)| cost),
            cost_source: cost.map(|(_, source)| source),
            notes: Vec::new(),
            session: None,
            played: None,
            brief_chars: 0,
        }
        .into()
    }

    /// The parts of a prompt that simulated agents read: feedback, and the proposal for the Maker.
    fn prompt(&self, run: &Run, role: Role) -> String {
        let feedback = |to: Destination| feedback::for_role(run, to).unwrap_or_default();
        match role {
            Role::Creator => feedback(Destination::Creator),
            Role::Maker => format!("{}\n{}", self.proposal, feedback(Destination::Maker)),
            Role::Explorer | Role::Gatekeeper | Role::Reviewer => String::new(),
        }
    }

    /// The whole difference from the base.
    fn change(&mut self, seq: Seq, at: &str, said: &SimAnswer) -> Change {
        let mut now = self.files(at).clone();
        for path in &said.remove {
            now.remove(path);
        }
        now.extend(said.write.iter().cloned());
        let before = self.files(BASE);
        let paths: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
        let changed = paths.into_iter().filter(|path| before.get(*path) != now.get(*path));
        let files: Vec<ChangedFile> =
            changed.map(|path| changed_file(path, before.get(path), now.get(path))).collect();
        let is_test = |file: &&ChangedFile| file.status != FileStatus::Deleted && is_test_path(&file.path);
        let whole: String = now.iter().map(|(path, text)| format!("{path}\n{text}\n")).collect();
        let commit = format!("work of {seq}");
        let change = Change {
            tree: digest(&whole),
            kept_as: format!("refs/archeflow/keep/{commit}"),
            test_files: count(files.iter().filter(is_test).count()),
            files,
            files_left_out: 0,
            commits: count(said.write.len() + said.remove.len()),
            uncommitted: false,
            signs: Signs::default(),
            notes: Vec::new(),
            commit: commit.clone(),
        };
        self.commits.insert(commit, now);
        change
    }
}

/// The first line of a session: nobody is there to ask, and a run lands by itself.
fn session() -> SessionStart {
    SessionStart { fence: 1, why: "run".to_owned(), auto_merge: true, ..SessionStart::default() }
}

fn preflight(seq: Seq, start: &PreflightStart) -> PreflightDone {
    let setup = start.setup_command.as_ref().map(|_| SetupRun {
        result: Tested::Passed,
        reused: false,
        from: None,
        duration_ms: 0,
        artifact: String::new(),
        lines: Vec::new(),
    });
    let tests = start.test_command.as_ref().map(|_| BaseTests {
        result: Tested::Passed,
        exit: Some(0),
        reused: false,
        cache: Vec::new(),
        duration_ms: 0,
        artifact: String::new(),
        lines: Vec::new(),
        failing: Vec::new(),
        ran: TestsRan::default(),
    });
    PreflightDone { start_seq: seq, setup, tests }
}

/// The visible tests pass for both solutions.
fn passed(seq: Seq, tree: &str) -> TestsDone {
    TestsDone {
        start_seq: seq,
        tree: tree.to_owned(),
        setup: None,
        cache: Vec::new(),
        ran: TestsRan::default(),
        result: Tested::Passed,
        exit: Some(0),
        duration_ms: 0,
        artifact: String::new(),
        tail: String::new(),
        lines: Vec::new(),
        failing: Vec::new(),
    }
}

/// Looks up what a review cites, as for a review of a commit.
fn look_up(run: &Run, work: &BTreeMap<String, String>, answer: &mut Answer) {
    let AnswerBody::Review(review) = &mut answer.said else { return };
    let changed: Vec<String> =
        run.work.iter().flat_map(|work| &work.files).map(|file| file.path.clone()).collect();
    look_up_in_memory(work, &changed, &mut review.findings);
}

fn changed_file(path: &str, before: Option<&String>, now: Option<&String>) -> ChangedFile {
    let lines = |text: Option<&String>| {
        let mut counts: BTreeMap<String, i64> = BTreeMap::new();
        text.into_iter()
            .flat_map(|text| text.lines())
            .for_each(|line| *counts.entry(line.to_owned()).or_default() += 1);
        counts
    };
    let (old, new) = (lines(before), lines(now));
    let beyond = |some: &BTreeMap<String, i64>, others: &BTreeMap<String, i64>| {
        let more = |(line, n): (&String, &i64)| (n - others.get(line).copied().unwrap_or(0)).max(0);
        u32::try_from(some.iter().map(more).sum::<i64>()).unwrap_or(u32::MAX)
    };
    ChangedFile {
        path: path.to_owned(),
        status: match (before, now) {
            (None, _) => FileStatus::Added,
            (Some(_), None) => FileStatus::Deleted,
            (Some(_), Some(_)) => FileStatus::Modified,
        },
        added: beyond(&new, &old),
        deleted: beyond(&old, &new),
        content: now.map(|text| digest(text)).unwrap_or_default(),
    }
}

fn digest(text: &str) -> String {
    let whole = files::digest(text.as_bytes());
    whole.get(..12).unwrap_or(&whole).to_owned()
}

fn count(found: usize) -> u32 {
    u32::try_from(found).unwrap_or(u32::MAX)
}

fn phase_name(role: Role) -> &'static str {
    match role {
        Role::Explorer | Role::Creator => "plan",
        Role::Maker => "do",
        Role::Gatekeeper | Role::Reviewer => "check",
    }
}
