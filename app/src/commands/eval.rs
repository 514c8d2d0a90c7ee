//! `archeflow eval`. Here is `check`: whether the tasks of a suite measure what they say.

mod fleet;
mod run;

use std::io::IsTerminal;
use std::num::NonZeroUsize;
use std::path::Path;

use archeflow_core::text::cut;
use archeflow_host::eval::check::{self, CheckError, CheckOptions, CheckProgress, SolutionCheck, TaskCheck};
use archeflow_host::eval::confined::CommandWorld;
use archeflow_host::eval::swe::SweOptions;
use archeflow_host::eval::{EvalSuite, SuiteFault, suite, swe};
use archeflow_host::git::GitEnv;
use archeflow_host::open::{self, users_settings};
use archeflow_host::proc::{self, Watch};
use archeflow_host::world::allowed_env;
use serde_json::{Value, json};

use crate::args::{EvalCheckArgs, EvalSubcommand, SuiteSource};
use crate::commands::{eval_report, process_env};
use crate::failure::Failure;
use crate::output::CommandOutput;
use crate::render::text::{Paint, pad, pad_after, safe, safe_line, width};

/// A suite with faults is refused like any other bad input.
const REFUSED: u8 = 2;
const ENVIRONMENT: u8 = 30;
/// As the shell has it for Ctrl-C.
const STOPPED: u8 = 130;

pub(crate) fn run(what: &EvalSubcommand) -> Result<CommandOutput, Failure> {
    match what {
        EvalSubcommand::Check(args) => check(args),
        EvalSubcommand::Report(args) => eval_report::report(args),
        EvalSubcommand::Compare(args) => eval_report::compare(args),
        EvalSubcommand::Run(args) => run::run(args),
    }
}

fn check(args: &EvalCheckArgs) -> Result<CommandOutput, Failure> {
    let suite = read_suite(&args.source)?;
    let checks = if suite.tasks.is_empty() {
        Vec::new()
    } else {
        let setup =
            command_setup(&suite, &args.source.suite, args.config.as_deref(), args.unsafe_no_sandbox)?;
        checked(&suite, &setup, args.jobs, args.json)?
    };
    let rows = rows(&suite, &checks);
    let faults: Vec<&SuiteFault> =
        suite.faults.iter().chain(checks.iter().flat_map(|one| &one.faults)).collect();
    let code = if faults.is_empty() { 0 } else { REFUSED };
    if args.json {
        return Ok(CommandOutput::json(as_json(&suite, &rows, &faults, code)).with_code(code));
    }
    for fault in &faults {
        tell!("{}", safe(&fault.to_string()));
    }
    Ok(CommandOutput::text(as_text(&suite, &rows, faults.len())).with_code(code))
}

fn read_suite(source: &SuiteSource) -> Result<EvalSuite, Failure> {
    let is_file = source.suite.is_file() && source.suite.extension().is_some_and(|ending| ending == "jsonl");
    if !is_file && (source.clones.is_some() || source.test_command.is_some()) {
        return Err(Failure::usage(
            "--clones and --test-command are for .jsonl files",
            "Leave them out: a task.yaml names its repository and its commands.",
        ));
    }
    Ok(if is_file {
        let test_command = source.test_command.as_deref();
        swe::read(&source.suite, SweOptions { clones: source.clones.as_deref(), test_command })
    } else {
        suite::read(&source.suite)
    })
}

/// What commands of a suite run with, by the user's settings.
fn command_setup(
    suite: &EvalSuite,
    place: &Path,
    config: Option<&Path>,
    no_sandbox: bool,
) -> Result<CommandWorld, Failure> {
    let env = open::ProcessEnv { no_sandbox, ..process_env()? };
    let root = suite.root.as_deref().unwrap_or(place);
    let settings = users_settings(&env, root, config)?;
    let sandbox = open::sandbox_of(&env, &settings)?;
    let watch = Watch::new();
    proc::become_subreaper();
    let heard = watch.clone();
    let listening =
        proc::signals::listen(move |_| if heard.is_stopping() { heard.kill_now() } else { heard.stop() });
    listening.map_err(|error| {
        Failure::new(ENVIRONMENT, "environment", format!("signals can't be heard: {error}"), "")
    })?;
    Ok(CommandWorld {
        env: allowed_env(env.variables.clone(), &settings.variables()),
        git: GitEnv::new(env.variables),
        me: env.me,
        sandbox,
        watch,
    })
}

/// Runs the commands of all tasks that could be read.
fn checked(
    suite: &EvalSuite,
    world: &CommandWorld,
    jobs: Option<NonZeroUsize>,
    quiet: bool,
) -> Result<Vec<TaskCheck>, Failure> {
    let jobs = jobs.map_or_else(cores, NonZeroUsize::get);
    let on_terminal = std::io::stderr().is_terminal() && !quiet;
    let progress = |now: CheckProgress<'_>| {
        if on_terminal {
            let line = format!("{} of {} tasks checked, {}", now.done, now.tasks, safe_line(now.task));
            // One write, so that the lines of two threads are not mixed.
            tell_part!("\r\u{1b}[K{}", cut(&line, width().saturating_sub(1)));
        }
    };
    let found = check::check(suite, &CheckOptions { jobs, world }, &progress);
    if on_terminal {
        tell_part!("\r\u{1b}[K");
    }
    proc::finish_all();
    found.map_err(|error| match error {
        CheckError::Stopped => Failure::new(STOPPED, "stopped", "stopped; nothing is left of the check", ""),
        CheckError::Machine(why) => {
            Failure::new(ENVIRONMENT, "environment", why, "Put that right, then check again.")
        }
    })
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// One task of the suite, whether it was checked or not.
struct TaskRow<'a> {
    name: &'a str,
    language: Option<&'a str>,
    /// Base, reference and trap.
    solutions: [SolutionCheck; 3],
    seconds: f64,
    faults: usize,
}

fn rows<'a>(suite: &'a EvalSuite, checks: &'a [TaskCheck]) -> Vec<TaskRow<'a>> {
    let faults_of = |name: &str| suite.faults.iter().filter(|fault| fault.task == name).count();
    let checked = checks.iter().map(|one| TaskRow {
        name: &one.name,
        language: one.language.as_deref(),
        solutions: [one.base, one.reference, one.trap],
        seconds: one.took.as_secs_f64(),
        faults: one.faults.len(),
    });
    let unread = suite.unread.iter().map(|name| TaskRow {
        name,
        language: None,
        solutions: [SolutionCheck::NotRun; 3],
        seconds: 0.0,
        faults: faults_of(name),
    });
    let mut rows: Vec<TaskRow<'_>> = checked.chain(unread).collect();
    rows.sort_by_key(|row| row.name);
    rows
}

fn as_json(suite: &EvalSuite, rows: &[TaskRow<'_>], faults: &[&SuiteFault], code: u8) -> Value {
    let task = |row: &TaskRow<'_>| {
        let [base, reference, trap] = row.solutions.map(SolutionCheck::name);
        json!({
            "task": row.name, "language": row.language, "base": base, "reference": reference, "trap": trap,
            "seconds": (row.seconds * 1000.0).round() / 1000.0, "faults": row.faults,
        })
    };
    json!({
        "suite": suite.name, "about": suite.about, "exit_code": code,
        "tasks": rows.iter().map(task).collect::<Vec<_>>(),
        "faults": faults.iter().map(|fault| fault_json(fault)).collect::<Vec<_>>(),
    })
}

fn fault_json(fault: &SuiteFault) -> Value {
    json!({
        "task": Some(&fault.task).filter(|name| !name.is_empty()), "place": fault.place,
        "line": Some(fault.line).filter(|line| *line > 0), "text": fault.text, "remedy": fault.remedy,
        "output": fault.output,
    })
}

fn as_text(suite: &EvalSuite, rows: &[TaskRow<'_>], faults: usize) -> String {
    let (mut out, paint) = (String::new(), Paint::for_stdout());
    let wide = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0).clamp(4, 60);
    let line = |name: &str, language: &str, [base, reference, trap]: [&str; 3], seconds: &str| {
        let name = pad(&cut(name, 60), wide);
        let language = pad(&cut(language, 12), 12);
        format!("{name}  {language}  {}  {}  {}  {seconds:>7}", pad(base, 7), pad(reference, 9), pad(trap, 7))
    };
    if !rows.is_empty() {
        let head = line("TASK", "LANGUAGE", ["BASE", "REFERENCE", "TRAP"], "SECONDS");
        put!(out, "{}", pad_after(&head, &paint.dim(&head), 0));
    }
    for row in rows {
        let language = row.language.map_or_else(|| "-".to_owned(), safe_line);
        let seconds = format!("{:.1}", row.seconds);
        put!(
            out,
            "{}",
            line(&safe_line(row.name), &language, row.solutions.map(SolutionCheck::name), &seconds)
        );
    }
    let name = if suite.name.is_empty() { String::new() } else { format!("{}: ", safe_line(&suite.name)) };
    let tasks = if rows.len() == 1 { "1 task".to_owned() } else { format!("{} tasks", rows.len()) };
    match faults {
        0 => put!(out, "{name}{tasks}, no fault."),
        1 => put!(out, "{name}{tasks}, 1 fault."),
        more => put!(out, "{name}{tasks}, {more} faults."),
    }
    out
}
