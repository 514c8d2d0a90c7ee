//! `archeflow eval run`: every task in every arm, as real runs.

use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use archeflow_core::eval::sim::SimPopulation;
use archeflow_core::eval::{
    ArmMeasures, EvalMeasure, EvalPlan, EvalTrial, PlannedArm, PlannedTask, TrialKey, TrialOutcome, TrialSet,
};
use archeflow_core::model::{Money, counted};
use archeflow_core::rules::estimate;
use archeflow_core::text::{cut, shell_word};
use archeflow_host::clock;
use archeflow_host::config::Flags;
use archeflow_host::drive::Asked;
use archeflow_host::eval::arms::{self, EvalArm};
use archeflow_host::eval::population::population;
use archeflow_host::eval::record::{self, RecordFault};
use archeflow_host::eval::run::{
    self, EvalEnd, EvalFolder, EvalObserver, EvalOptions, EvalProgress, EvalRunError, FolderError,
    LocalTrials, RulesOnly, TrialAgents, TrialCrew, suite_digest,
};
use archeflow_host::eval::sight::AgentSight;
use archeflow_host::eval::{EvalSuite, SuiteFault};
use archeflow_host::open::{ProcessEnv, Project, RunRequest};
use archeflow_host::proc;
use archeflow_host::store::files;
use archeflow_host::world::WorldSandbox;
use serde_json::{Value, json};

use super::fleet::JoinedEvaluation;
use super::{ENVIRONMENT, REFUSED, STOPPED, checked, command_setup, cores, fault_json, read_suite};
use crate::args::EvalRunArgs;
use crate::commands::process_env;
use crate::failure::Failure;
use crate::output::CommandOutput;
use crate::render::line::read_line;
use crate::render::text::{Paint, pad, safe, safe_line};

/// Not all trials are over.
const UNFINISHED: u8 = 10;
const OVER_BUDGET: u8 = 11;
/// The confidence of the intervals in the summary; a report can have another one.
const CONFIDENCE: f64 = 0.95;
const MOST_REPEATS: u32 = 10_000;
const SIMULATED: &str = "sim:";

pub(super) fn run(args: &EvalRunArgs) -> Result<CommandOutput, Failure> {
    let env = ProcessEnv { no_sandbox: args.unsafe_no_sandbox, ..process_env()? };
    let suite = read_suite(&args.source)?;
    let mut faults = suite.faults.clone();
    let tasks = selected_tasks(args, &suite, &mut faults);
    let arms = selected_arms(&args.arms, &mut faults);
    let agents =
        agents(&args.agent, &env.cwd).map_err(|why| Failure::usage(why, "See docs/evaluation.md."))?;
    let world = command_setup(&suite, &args.source.suite, None, args.unsafe_no_sandbox)?;
    let folder = args.output.clone().unwrap_or_else(|| default_folder(&suite));
    outside_of_suite(&folder, &suite)?;
    if let (TrialAgents::Named(agent), WorldSandbox::On { .. }, None) = (&agents, &world.sandbox, &args.fleet)
    {
        unseen_by(agent, &args.source.suite, &folder, &env)?;
    }
    let earlier = earlier(&folder)?;
    let fleet = JoinedEvaluation::join(args, &env.cwd, &folder, earlier.is_some())?;
    let digest =
        suite_digest(&suite).map_err(|error| environment(format!("the suite can't be read: {error}")))?;
    let wanted =
        EvalPlan { population: population_digest(&agents), ..plan(args, &suite, &tasks, &arms, &digest)? };
    if let Some((before, _)) = &earlier {
        same_evaluation(before, &wanted, &folder)?;
    }
    if args.rules_only && !matches!(agents, TrialAgents::Simulated(_)) {
        let hint = "Give a population, as in --agent sim:fair, or leave out --rules-only.";
        return Err(Failure::usage("--rules-only is for simulated agents", hint));
    }
    // Nothing of a suite that was checked has changed since. In memory none of its commands is run.
    if earlier.is_none() && faults.is_empty() && !args.rules_only {
        tell!("Checking the suite …");
        let chosen =
            EvalSuite { tasks: tasks.clone(), faults: Vec::new(), unread: Vec::new(), ..copied(&suite) };
        let checks = checked(&chosen, &world, args.jobs, args.json)?;
        faults.extend(checks.into_iter().flat_map(|one| one.faults));
    }
    if !faults.is_empty() {
        return Ok(refused(args, &suite, &faults));
    }
    let (before, over) = earlier.unzip();
    let plan = match before {
        Some(before) => extended(before, wanted),
        None => wanted,
    };
    let over = over.unwrap_or_default();
    let open = EvalFolder::open(&folder).map_err(|error| folder_failed(&error))?;
    for arm in &arms {
        open.write_arm(&arm.name, &arm.files).map_err(|error| folder_failed(&error))?;
    }
    let left: Vec<TrialKey> = plan.trials().filter(|key| over.get(key).is_none()).collect();
    let packed = fleet.as_ref().map(|_| JoinedEvaluation::packed(&open, &plan)).transpose()?;
    let estimate = estimated(&plan, &open, &env, args)?;
    tell!("{}", shown_estimate(&plan, &estimate, left.len(), args));
    if !left.is_empty() && !args.yes && estimate.most > Money::ZERO {
        agree(&folder)?;
    }
    if let TrialAgents::Simulated(population) = &agents
        && args.rules_only
    {
        open.write_plan(&plan)?;
        let ended = in_memory(args, (&open, &plan, &suite, &over), population, (&env, &world.watch));
        let ended = ended.map_err(|error| match error {
            InMemoryError::Run(error) => run_failed(&error),
            InMemoryError::Start(failure) => *failure,
        })?;
        let trials = record::read_trials(open.path(), &plan).map_err(|faults| record_failed(&faults))?.trials;
        return Ok(summary(args, &plan, &trials, ended, &folder));
    }
    // Without a plan nothing has begun, so the fleet is known before the plan.
    let on_fleet = match (&fleet, packed) {
        (Some(fleet), Some(arms)) => Some(fleet.crew(args, &open, arms, &left)?),
        (_, _) => None,
    };
    open.write_plan(&plan)?;
    let jobs = args.jobs.map_or_else(cores, NonZeroUsize::get);
    let watch = world.watch.clone();
    let options =
        EvalOptions { jobs: if fleet.is_some() { cores() } else { jobs }, world, keep: args.keep, agents };
    let screen = Screen { planned: plan.trials().count(), quiet: args.quiet || args.json };
    let here;
    let crew: &dyn TrialCrew = match &on_fleet {
        Some(crew) => crew,
        None => {
            here = LocalTrials {
                folder: &open,
                jobs,
                me: env.me,
                cwd: env.cwd.clone(),
                variables: env.variables,
                no_sandbox: args.unsafe_no_sandbox,
                watch,
            };
            &here
        }
    };
    let ended = run::run(&open, &plan, &suite, &over, &options, crew, &screen);
    drop(on_fleet);
    proc::finish_all();
    let ended = ended.map_err(|error| run_failed(&error))?;
    if let Some(fleet) = fleet.filter(|_| ended == EvalEnd::Complete) {
        fleet.forget_reports(open.path());
    }
    let trials = record::read_trials(open.path(), &plan).map_err(|faults| record_failed(&faults))?.trials;
    Ok(summary(args, &plan, &trials, ended, &folder))
}

enum InMemoryError {
    Run(EvalRunError),
    Start(Box<Failure>),
}

impl From<EvalRunError> for InMemoryError {
    fn from(error: EvalRunError) -> InMemoryError {
        InMemoryError::Run(error)
    }
}

/// Trials in memory. Each arm's first line is that of a real run in a repository of the task.
fn in_memory(
    args: &EvalRunArgs,
    (folder, plan, suite, over): (&EvalFolder, &EvalPlan, &EvalSuite, &TrialSet),
    population: &SimPopulation,
    (env, watch): (&ProcessEnv, &proc::Watch),
) -> Result<EvalEnd, InMemoryError> {
    let failed = |error: archeflow_host::open::Error| InMemoryError::Start(Box::new(error.into()));
    let mut starts = BTreeMap::new();
    for task in suite.tasks.iter().filter(|task| plan.tasks.iter().any(|known| known.name == task.name)) {
        let repository = run::task_repository(task)?;
        let agents = run::sample_agents(folder, plan, task, population)?;
        for arm in &plan.arms {
            let project = Project::open(env.clone(), &repository.path(), None, true).map_err(failed)?;
            let request = RunRequest {
                task: task.text.clone(),
                flags: Flags {
                    agent: Some(format!("{SIMULATED}{}", agents.display())),
                    test_command: task.visible.as_ref().map(|visible| visible.command.clone()),
                    no_tests: task.visible.is_none().then_some(true),
                    auto_merge: Some(true),
                    budget: task.dollars.map(Money::written),
                    ..Flags::default()
                },
                config_file: Some(folder.arm(&arm.name)),
                dry_run: false,
                attended: false,
                id: None,
            };
            let start = project.would_start(&request).map_err(failed)?;
            starts.insert((arm.name.clone(), task.name.clone()), start);
        }
    }
    let jobs = args.jobs.map_or_else(cores, std::num::NonZeroUsize::get);
    let trials = RulesOnly { folder, plan, suite, population, starts: &starts, jobs };
    // A line for each of thousands of trials helps nobody.
    Ok(trials.run(over, &|| watch.is_stopping(), &|_| {})?)
}

/// `EvalSuite` has no copy of itself, since reading one is cheap.
fn copied(suite: &EvalSuite) -> EvalSuite {
    EvalSuite {
        name: suite.name.clone(),
        about: suite.about.clone(),
        root: suite.root.clone(),
        tasks: suite.tasks.clone(),
        unread: suite.unread.clone(),
        faults: suite.faults.clone(),
    }
}

fn selected_tasks(
    args: &EvalRunArgs,
    suite: &EvalSuite,
    faults: &mut Vec<SuiteFault>,
) -> Vec<archeflow_host::eval::EvalTask> {
    for name in &args.tasks {
        let known = suite.tasks.iter().any(|task| task.name == *name) || suite.unread.contains(name);
        if !known {
            let names: Vec<&str> = suite.tasks.iter().map(|task| task.name.as_str()).collect();
            faults.push(typed("--tasks", format!("the suite has no task `{name}`"), names.join(", ")));
        }
    }
    let is_chosen = |name: &str| args.tasks.is_empty() || args.tasks.iter().any(|chosen| chosen == name);
    suite.tasks.iter().filter(|task| is_chosen(&task.name)).cloned().collect()
}

fn selected_arms(words: &[String], faults: &mut Vec<SuiteFault>) -> Vec<EvalArm> {
    let mut found: Vec<EvalArm> = Vec::new();
    for word in words {
        match arms::find(word) {
            Ok(arm) if found.iter().any(|known| known.name == arm.name) => {
                let text = format!("two arms are called `{}`", arm.name);
                faults.push(typed("--arms", text, "Rename the file or folder of one.".to_owned()));
            }
            Ok(arm) => found.push(arm),
            Err(fault) => faults.push(fault),
        }
    }
    found
}

fn typed(flag: &str, text: String, known: String) -> SuiteFault {
    SuiteFault {
        task: String::new(),
        place: flag.to_owned(),
        line: 0,
        text,
        remedy: known,
        output: Vec::new(),
    }
}

/// `sim:` with the name or the file of a population is expanded for each trial; every other agent is used as it is typed.
fn agents(word: &str, cwd: &Path) -> Result<TrialAgents, String> {
    let Some(name) = word.strip_prefix(SIMULATED) else { return Ok(TrialAgents::Named(word.to_owned())) };
    population(name, cwd).map(|population| TrialAgents::Simulated(Box::new(population)))
}

fn population_digest(agents: &TrialAgents) -> String {
    match agents {
        TrialAgents::Named(_) => String::new(),
        TrialAgents::Simulated(population) => {
            files::digest(&serde_json::to_vec(population).unwrap_or_default())
        }
    }
}

fn default_folder(suite: &EvalSuite) -> PathBuf {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' };
    let name: String = suite.name.chars().map(plain).take(60).collect();
    PathBuf::from(format!("eval-{}", if name.is_empty() { "suite" } else { &name }))
}

/// What an evaluation writes must not become part of what is evaluated.
fn outside_of_suite(folder: &Path, suite: &EvalSuite) -> Result<(), Failure> {
    let Some(root) = suite.root.as_ref().and_then(|root| root.canonicalize().ok()) else { return Ok(()) };
    let whole = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    // The part of it that is there already, by its real name.
    let above = whole.ancestors().find_map(|above| above.canonicalize().ok());
    if above.is_none_or(|above| !above.starts_with(&root)) {
        return Ok(());
    }
    let text = format!("the folder {} is in the suite {}", folder.display(), root.display());
    Err(Failure::usage(text, "Name a folder outside of the suite with --output."))
}

/// An agent's script is shown to it with its folder, which must not bring the hidden tests along.
fn unseen_by(agent: &str, suite: &Path, folder: &Path, env: &ProcessEnv) -> Result<(), Failure> {
    let sight = AgentSight { cwd: &env.cwd, me: &env.me, variables: &env.variables, evaluation: folder };
    let Some(shown) = sight.of_suite(agent, suite) else { return Ok(()) };
    let text = format!(
        "the agent would be shown {}, and with it files of the suite {}: hidden tests and references",
        shown.display(),
        suite.display()
    );
    Err(Failure::usage(text, "Move the agent's script to a folder of its own, outside of the suite."))
}

/// An evaluation that was begun in this folder.
fn earlier(folder: &Path) -> Result<Option<(EvalPlan, TrialSet)>, Failure> {
    if !folder.join("eval.json").exists() {
        if folder.join("trials.jsonl").exists() {
            let text = format!(
                "{} has trials.jsonl and no eval.json, so nobody knows what its trials are of",
                folder.display()
            );
            return Err(Failure::usage(text, "Put eval.json back, or name another folder with --output."));
        }
        return Ok(None);
    }
    let plan = record::read_plan(folder).map_err(|faults| record_failed(&faults))?;
    let read = record::read_trials(folder, &plan).map_err(|faults| record_failed(&faults))?;
    for note in &read.notes {
        tell!("note: {}", safe(&note.to_string()));
    }
    Ok(Some((plan, read.trials)))
}

fn plan(
    args: &EvalRunArgs,
    suite: &EvalSuite,
    tasks: &[archeflow_host::eval::EvalTask],
    arms: &[EvalArm],
    digest: &str,
) -> Result<EvalPlan, Failure> {
    if !(1..=MOST_REPEATS).contains(&args.repeat) {
        return Err(Failure::usage(format!("--repeat {} is not from 1 to {MOST_REPEATS}", args.repeat), ""));
    }
    let budget = args.budget.as_deref().map(|text| {
        let wrong =
            || Failure::usage(format!("--budget '{text}' is no amount"), "In dollars, e.g. --budget 5");
        Money::parse(text).filter(|money| *money > Money::ZERO).ok_or_else(wrong)
    });
    let task = |task: &archeflow_host::eval::EvalTask| PlannedTask {
        name: task.name.clone(),
        language: task.language.clone(),
        traps: task.traps.iter().map(|trap| trap.name.clone()).collect(),
        dollars: task.dollars,
        seconds: task.limit.as_secs(),
    };
    let arm = |arm: &EvalArm| PlannedArm {
        name: arm.name.clone(),
        about: arm.about.clone(),
        digest: arm_digest(arm),
    };
    Ok(EvalPlan {
        v: EvalPlan::FORMAT,
        suite: suite.name.clone(),
        about: suite.about.clone(),
        suite_digest: digest.to_owned(),
        tasks: tasks.iter().map(task).collect(),
        arms: arms.iter().map(arm).collect(),
        repeats: args.repeat,
        agent: args.agent.clone(),
        simulated: args.agent.starts_with(SIMULATED),
        population: String::new(),
        rules_only: args.rules_only,
        seed: args.seed,
        budget: budget.transpose()?,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started: clock::now(),
    })
}

fn arm_digest(arm: &EvalArm) -> String {
    let mut digest = files::Digest::default();
    for (path, bytes) in &arm.files {
        for part in [path.as_bytes(), bytes] {
            digest.add(&(part.len() as u64).to_le_bytes());
            digest.add(part);
        }
    }
    digest.hex()
}

/// Trials can be added to an evaluation, but all of them must be about the same.
fn same_evaluation(before: &EvalPlan, now: &EvalPlan, folder: &Path) -> Result<(), Failure> {
    let mut other = Vec::new();
    let mut look = |what: &str, differs: bool| {
        if differs {
            other.push(what.to_owned());
        }
    };
    look("the suite", before.suite_digest != now.suite_digest);
    look("--agent", before.agent != now.agent);
    look("the population of the agents", before.population != now.population);
    look("--seed", before.seed != now.seed);
    look("--rules-only", before.rules_only != now.rules_only);
    look("the version of archeflow", before.version != now.version);
    for arm in &now.arms {
        let known = before.arms.iter().find(|known| known.name == arm.name);
        look(&format!("the arm {}", arm.name), known.is_some_and(|known| known.digest != arm.digest));
    }
    if other.is_empty() {
        return Ok(());
    }
    Err(Failure::usage(
        format!("{} has an evaluation that differs in {}", folder.display(), other.join(", ")),
        "Name another folder with --output, or repeat the command as it was.",
    ))
}

/// The earlier plan with what was added to it: tasks, arms and repeats.
fn extended(before: EvalPlan, now: EvalPlan) -> EvalPlan {
    let mut plan = before;
    let known: BTreeSet<String> = plan.arms.iter().map(|arm| arm.name.clone()).collect();
    plan.arms.extend(now.arms.into_iter().filter(|arm| !known.contains(&arm.name)));
    let known: BTreeSet<String> = plan.tasks.iter().map(|task| task.name.clone()).collect();
    plan.tasks.extend(now.tasks.into_iter().filter(|task| !known.contains(&task.name)));
    plan.repeats = plan.repeats.max(now.repeats);
    plan.budget = now.budget;
    plan
}

fn refused(args: &EvalRunArgs, suite: &EvalSuite, faults: &[SuiteFault]) -> CommandOutput {
    if args.json {
        let faults: Vec<Value> = faults.iter().map(fault_json).collect();
        let object = json!({ "suite": suite.name, "exit_code": REFUSED, "faults": faults });
        return CommandOutput::json(object).with_code(REFUSED);
    }
    for fault in faults {
        tell!("{}", safe(&fault.to_string()));
    }
    let found = counted(u32::try_from(faults.len()).unwrap_or(u32::MAX), "fault");
    CommandOutput::text(format!("{found}; nothing was run.\n")).with_code(REFUSED)
}

/// What a usual trial of each arm costs, and all of them at most.
struct EvalEstimate {
    arms: Vec<(String, Money, Money)>,
    most: Money,
}

/// From the configuration of each arm, in a repository of the first task.
fn estimated(
    plan: &EvalPlan,
    folder: &EvalFolder,
    env: &ProcessEnv,
    args: &EvalRunArgs,
) -> Result<EvalEstimate, Failure> {
    let mut arms = Vec::new();
    let mut most = Money::ZERO;
    let sample = run::sample_repository().map_err(|error| run_failed(&error))?;
    for arm in &plan.arms {
        let project = Project::open(env.clone(), &sample.path(), None, true)?;
        let free = plan.simulated;
        let flags = Flags {
            agent: (!free).then(|| args.agent.clone()),
            test_command: Some("true".to_owned()),
            ..Flags::default()
        };
        let request = RunRequest {
            task: "estimate".to_owned(),
            flags,
            config_file: Some(folder.arm(&arm.name)),
            dry_run: false,
            attended: false,
            id: None,
        };
        let (cycle, whole) = if free {
            // What simulated agents report is part of the simulation; nobody is paid.
            (Money::ZERO, Money::ZERO)
        } else {
            let start = project.would_start(&request)?;
            let seats = start.seats.get(start.workflow.name()).cloned().unwrap_or_default();
            let cost =
                estimate::before(&start.config, &seats, &start.tiers, start.workflow, start.max_cycles);
            (cost.cycle, cost.most)
        };
        for task in &plan.tasks {
            let capped = task.dollars.map_or(whole, |cap| whole.min(cap));
            most = most.plus(Money(capped.0.saturating_mul(u64::from(plan.repeats))));
        }
        arms.push((arm.name.clone(), cycle, whole));
    }
    Ok(EvalEstimate { arms, most: plan.budget.map_or(most, |budget| most.min(budget)) })
}

fn shown_estimate(plan: &EvalPlan, estimate: &EvalEstimate, left: usize, args: &EvalRunArgs) -> String {
    let mut out = String::new();
    let number = |n: usize, what: &str| counted(u32::try_from(n).unwrap_or(u32::MAX), what);
    put!(
        out,
        "{}: {}, {}, {}: {} to run{}",
        safe_line(&plan.suite),
        number(plan.tasks.len(), "task"),
        number(plan.arms.len(), "arm"),
        counted(plan.repeats, "repeat"),
        number(left, "trial"),
        args.jobs.map_or(String::new(), |jobs| format!(", {jobs} at a time"))
    );
    if plan.simulated {
        put!(out, "Simulated agents cost nothing.");
        return out.trim_end().to_owned();
    }
    let wide = plan.arms.iter().map(|arm| arm.name.chars().count()).max().unwrap_or(0).max(3);
    put!(out, "{}  a cycle    a trial at most", pad("ARM", wide));
    for (arm, cycle, whole) in &estimate.arms {
        put!(out, "{}  {:>8}  {:>8}", pad(&safe_line(arm), wide), cycle.shown(), whole.shown());
    }
    put!(
        out,
        "All trials: at most {} by usual costs, the limits of the tasks and --budget.",
        estimate.most.shown()
    );
    out.trim_end().to_owned()
}

fn agree(folder: &Path) -> Result<(), Failure> {
    let hint = "Add --yes to start without being asked.";
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Err(Failure::usage("trials cost money, and there is no terminal to ask on", hint));
    }
    tell_part!("Start? [y/N] ");
    match read_line(&AtomicBool::new(false), &mut || false) {
        Asked::Answer(text) if archeflow_core::run::is_yes(&text) => Ok(()),
        Asked::Answer(_) | Asked::Left | Asked::Interrupted | Asked::Elsewhere => {
            let text = format!("nothing was started in {}", folder.display());
            Err(Failure::new(STOPPED, "stopped", text, hint))
        }
    }
}

/// A line for each trial that is over.
struct Screen {
    planned: usize,
    quiet: bool,
}

impl EvalObserver for Screen {
    fn progress(&self, now: EvalProgress<'_>) {
        let Some(trial) = now.trial.filter(|_| !self.quiet) else { return };
        let (planned, wide) = (self.planned, self.planned.to_string().len());
        tell!(
            "{:>wide$}/{planned}  {}  {}  {}  {}",
            now.done,
            pad(trial.outcome().name(), 17),
            pad(&cut(&safe_line(&trial.key.task), 24), 24),
            pad(&cut(&safe_line(&trial.key.arm), 16), 16),
            trial.money.shown()
        );
    }

    fn warn(&self, text: &str) {
        tell!("warning: {}", safe_line(text));
    }
}

fn summary(
    args: &EvalRunArgs,
    plan: &EvalPlan,
    trials: &TrialSet,
    ended: EvalEnd,
    folder: &Path,
) -> CommandOutput {
    let planned = plan.trials().count();
    let code = match ended {
        EvalEnd::Complete => 0,
        EvalEnd::Budget => OVER_BUDGET,
        EvalEnd::Waiting => UNFINISHED,
        EvalEnd::Stopped => STOPPED,
    };
    let measures: Vec<ArmMeasures> =
        plan.arms.iter().map(|arm| ArmMeasures::of(trials, &arm.name, CONFIDENCE)).collect();
    if args.json {
        let ended = match ended {
            EvalEnd::Complete => "complete",
            EvalEnd::Budget => "budget",
            EvalEnd::Waiting => "waiting",
            EvalEnd::Stopped => "stopped",
        };
        return CommandOutput::json(json!({
            "suite": plan.suite, "folder": folder, "exit_code": code, "ended": ended, "trials": trials.len(),
            "planned": planned, "simulated": plan.simulated, "arms": measures,
        }))
        .with_code(code);
    }
    let mut out = String::new();
    let paint = Paint::for_stdout();
    let wide = plan.arms.iter().map(|arm| arm.name.chars().count()).max().unwrap_or(0).max(3);
    let head = format!(
        "{}  {:>6}  {:>6}  {:>8}  {:>9}  {:>9}  {:>6}  {:>6}  {:>8}",
        pad("ARM", wide),
        "TRIALS",
        "SOLVED",
        "WRONG IN",
        "RIGHT OUT",
        "WRONG OUT",
        "FAILED",
        "CYCLES",
        "DOLLARS"
    );
    put!(out, "{}", paint.dim(&head));
    for arm in &measures {
        let mean = |measure: EvalMeasure| arm.figures.get(&measure).map(|figure| figure.mean);
        let rate =
            |measure| mean(measure).map_or_else(|| "-".to_owned(), |value| format!("{:.0} %", value * 100.0));
        let amount = |measure, places: usize| {
            mean(measure).map_or_else(|| "-".to_owned(), |value| format!("{value:.places$}"))
        };
        put!(
            out,
            "{}  {:>6}  {:>6}  {:>8}  {:>9}  {:>9}  {:>6}  {:>6}  {:>8}",
            pad(&safe_line(&arm.arm), wide),
            arm.trials,
            rate(EvalMeasure::Solved),
            rate(EvalMeasure::WronglyLanded),
            rate(EvalMeasure::RightlyHeldBack),
            rate(EvalMeasure::WronglyHeldBack),
            rate(EvalMeasure::Failed),
            amount(EvalMeasure::Cycles, 1),
            amount(EvalMeasure::Dollars, 2)
        );
    }
    if plan.simulated {
        let in_memory = if plan.rules_only { " Nothing but the rules was run." } else { "" };
        put!(out, "These agents are simulated: the figures say nothing about a model.{in_memory}");
    }
    let place = shell_word(&folder.to_string_lossy());
    match ended {
        EvalEnd::Complete => put!(
            out,
            "All {planned} trials are over. Intervals and comparisons: archeflow eval report {place}"
        ),
        EvalEnd::Budget => put!(
            out,
            "{} of {planned} trials are over; the rest does not fit into the budget. Repeat the command with a higher --budget to go on.",
            trials.len()
        ),
        EvalEnd::Waiting => put!(
            out,
            "{} of {planned} trials are over; the provider of the others is busy, or a warning above says what interrupted them. Repeat the command to resume.",
            trials.len()
        ),
        EvalEnd::Stopped => {
            put!(out, "{} of {planned} trials are over. Repeat the command to resume.", trials.len());
        }
    }
    let unmeasured =
        trials.iter().filter(|trial: &&EvalTrial| trial.outcome() == TrialOutcome::Unmeasured).count();
    if unmeasured > 0 {
        put!(out, "The hidden tests of {unmeasured} trials could not be run.");
    }
    CommandOutput::text(out).with_code(code)
}

fn environment(text: String) -> Failure {
    Failure::new(ENVIRONMENT, "environment", text, "Put that right, then repeat the command: it resumes.")
}

fn folder_failed(error: &FolderError) -> Failure {
    match error {
        FolderError::InUse(_) => {
            Failure::usage(error.to_string(), "Wait for it, or name another folder with --output.")
        }
        FolderError::Io { .. } => environment(error.to_string()),
    }
}

fn record_failed(faults: &[RecordFault]) -> Failure {
    let text: Vec<String> = faults.iter().map(ToString::to_string).collect();
    Failure::usage(text.join("\n"), "")
}

fn run_failed(error: &EvalRunError) -> Failure {
    environment(error.to_string())
}
