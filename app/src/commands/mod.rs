//! One file per command. A command returns its result and prints nothing on standard output; `main` does that.

mod acp;
pub(crate) mod agent_loop;
mod config;
mod dag;
mod demo;
mod discard;
mod doctor;
mod eval;
mod eval_report;
mod explain;
mod explain_reading;
mod export;
mod fleet;
mod forget;
mod gc;
mod hook;
mod init;
mod known;
mod list;
mod lsp;
#[cfg(feature = "man")]
pub(crate) mod man;
mod mcp;
mod memory;
mod model;
pub(crate) mod naming;
mod notify;
mod play;
mod pr;
mod replay;
mod report;
mod revert;
mod review;
mod rollback;
mod run;
pub(crate) mod sandboxed;
mod score;
mod session;
mod show;
mod sim;
pub(crate) mod sprint;
mod status;
pub(crate) mod steer;
mod transfer;
mod trust;
mod ui;
mod views;
mod watch;
mod watcher;
mod why;
mod worker;

use std::path::Path;

use archeflow_host::open::{ProcessEnv, Project};

use crate::args::{Cli, Command, CommonArgs, ConfigCommand};
use crate::failure::Failure;
use crate::output::CommandOutput;
use crate::render::tui::terminal;

pub(crate) fn run(cli: Cli) -> Result<CommandOutput, Failure> {
    if cli.command.tui() && !terminal::is_there() {
        return Err(Failure::usage(
            "--tui needs a terminal for input and output",
            "Omit --tui for line output, or watch the run from another terminal: archeflow watch",
        ));
    }
    match cli.command {
        Command::Run(args) => run::run(&args),
        Command::Review(args) => review::run(&args),
        Command::Sprint(args) => sprint::run(&args.what),
        Command::Worker(args) => worker::run(&args),
        Command::Loop(args) => agent_loop::run(&args.what),
        Command::Resume(args) => known::resume(&args),
        Command::Answer(args) => known::answer(&args),
        Command::Pause(args) => steer::pause(&args),
        Command::Stop(args) => steer::stop(&args),
        Command::Continue(args) => known::continue_run(&args),
        Command::Merge(args) => known::merge(&args),
        Command::Revert(args) => revert::run(&args),
        Command::Rollback(args) => rollback::run(&args),
        Command::Discard(args) => discard::run(&args),
        Command::Status(args) => status::run(&args),
        Command::Forget(args) => forget::run(&args),
        Command::Gc(args) => gc::run(&args),
        Command::List(args) => list::list(&args),
        Command::Show(args) => show::run(&args),
        Command::Watch(args) => watch::run(&args),
        Command::Pr(args) => pr::run(&args),
        Command::Ui(args) => ui::run(&args),
        Command::Lsp => lsp::run(),
        Command::Mcp(args) => mcp::run(&args),
        Command::Hook(args) => Ok(hook::run(args.what)),
        Command::Replay(args) => replay::run(&args.what),
        Command::Report(args) => report::run(&args),
        Command::Export(args) => export::run(&args.what),
        Command::Dag(args) => dag::run(&args),
        Command::Import(args) => transfer::import(&args),
        Command::Score(args) => score::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Init(args) => init::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Trust(args) => trust::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Config(args) => match args.what {
            ConfigCommand::Show(listing) => config::show(&listing),
        },
        Command::Memory(args) => memory::run(&args.what),
        Command::Fleet(args) => fleet::run(&args.what),
        Command::Eval(args) => eval::run(&args.what),
        Command::Notify(args) => notify::run(&args.what),
        Command::Completions { shell } => completions(shell),
        Command::Play { file } => play::run(&file),
        Command::Sim { file } => sim::run(&file),
        Command::Acp(args) => acp::run(args),
        Command::Model { task } => model::run(&task),
        Command::Watcher => Ok(watcher::run()),
    }
}

/// The environment of the process, read once.
pub(crate) fn process_env() -> Result<ProcessEnv, Failure> {
    let lost =
        |what: &str, error: std::io::Error| Failure::new(30, "environment", format!("{what}: {error}"), "");
    Ok(ProcessEnv {
        cwd: std::env::current_dir().map_err(|error| lost("the current folder can't be read", error))?,
        me: std::env::current_exe().map_err(|error| lost("this program can't find itself", error))?,
        variables: std::env::vars_os().collect(),
        version: env!("CARGO_PKG_VERSION"),
        no_sandbox: false,
    })
}

/// The repository a command is about.
pub(crate) fn open_project(
    place: &CommonArgs,
    branch: Option<&str>,
    needs_target: bool,
) -> Result<Project, Failure> {
    let env = ProcessEnv { no_sandbox: place.unsafe_no_sandbox, ..process_env()? };
    let dir = place.repo.clone().unwrap_or_else(|| env.cwd.clone());
    Ok(Project::open(env, Path::new(&dir), branch, needs_target)?)
}

/// The same for a command that only reads.
pub(crate) fn open_project_to_read(place: &CommonArgs, needs_target: bool) -> Result<Project, Failure> {
    let env = ProcessEnv { no_sandbox: place.unsafe_no_sandbox, ..process_env()? };
    let dir = place.repo.clone().unwrap_or_else(|| env.cwd.clone());
    Ok(Project::open_to_read(env, Path::new(&dir), needs_target)?)
}

fn completions(shell: crate::args::Shell) -> Result<CommandOutput, Failure> {
    let script = crate::args::complete::script(shell);
    script.map(CommandOutput::text).map_err(|error| Failure::new(30, "environment", error.to_string(), ""))
}
