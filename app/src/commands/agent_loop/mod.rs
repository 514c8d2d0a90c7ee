//! `archeflow loop`: a person, a Planner, an Actor and a Judge take turns.

pub(crate) mod args;
mod metrics;
mod say;
mod screen;
mod start;

use archeflow_core::event::Report;
use archeflow_core::model::Word;
use archeflow_core::rules::run_names::{self, Meaning, NamedRun, RunState};
use archeflow_host::agent_loop::hear;
use archeflow_host::agent_loop::open::{LoopRun, is_open, loops};
use archeflow_host::drive::{DriveEnd, Driver};
use archeflow_host::open::Project;

use crate::args::{LoopCommand, LoopLook, LoopSession};
use crate::commands::session::stopped;
use crate::commands::trust::only_from_outside;
use crate::commands::{naming, open_project};
use crate::failure::Failure;
use crate::output::CommandOutput;

pub(crate) fn run(what: &LoopCommand) -> Result<CommandOutput, Failure> {
    match what {
        LoopCommand::Start(args) => start::run(args),
        LoopCommand::Status(args) => status(args),
        LoopCommand::Answer(args) => say::answer(args),
        LoopCommand::Approve(args) => {
            only_from_outside("approve a step")?;
            say::word(Word::Approve, "", &args.which, &args.session)
        }
        LoopCommand::Reject(args) => say::word(Word::Reject, &args.text, &args.which, &args.session),
        LoopCommand::Stop(args) => say::stop(args),
        LoopCommand::Restart(args) => say::word(Word::Restart, &args.text, &args.which, &args.session),
        LoopCommand::Clear(args) => say::clear(args),
        LoopCommand::Metrics(args) => metrics::run(args),
    }
}

fn status(args: &LoopLook) -> Result<CommandOutput, Failure> {
    let project = open_project(&args.place, None, false)?;
    let known = pick(&project, args.id.as_deref())?;
    let screen = screen::Screen::of(&project.places, &project.state, &known.id, &known.run);
    Ok(match args.place.json {
        true => CommandOutput::json(screen.json()),
        false => CommandOutput::text(screen.text()),
    })
}

/// The loop that is meant: the one that is named, else the one that is open, else the last.
fn pick(project: &Project, id: Option<&str>) -> Result<LoopRun, Failure> {
    let mut known = loops(&project.places);
    let at = match id {
        Some(name) => named(name, &known)?,
        None => {
            let newest = known.len().checked_sub(1);
            let open = known.iter().rposition(|known| is_open(&known.run));
            open.or(newest).ok_or_else(|| {
                Failure::usage(
                    "there is no loop in this repository",
                    "Begin one: archeflow loop start \"<goal>\" --agent <spec>",
                )
            })?
        }
    };
    Ok(known.swap_remove(at))
}

/// The place of the loop that is named, by the rules for runs.
fn named(name: &str, known: &[LoopRun]) -> Result<usize, Failure> {
    let runs: Vec<NamedRun> = known
        .iter()
        .map(|known| NamedRun {
            id: known.id.clone(),
            task: known.run.request.as_ref().map(|request| request.task.clone()).unwrap_or_default(),
            state: RunState::of(&known.run, false),
            asks: false,
        })
        .collect();
    match run_names::resolve(name, &runs) {
        Meaning::One(at) => {
            if runs[at].id != name {
                naming::chosen(&runs[at]);
            }
            Ok(at)
        }
        Meaning::Several(found) => Err(naming::several("loop", &format!("'{name}' fits"), &runs, &found)),
        Meaning::None(near) => {
            let names: Vec<&str> = known.iter().map(|known| known.id.as_str()).collect();
            let all = if names.is_empty() {
                "There is none here.".to_owned()
            } else {
                format!("There is: {}", names.join(", "))
            };
            let hint = naming::did_you_mean(&runs, &near).unwrap_or(all);
            Err(Failure::usage(format!("there is no loop '{name}' here"), hint))
        }
    }
}

/// Drives a loop until it ends or waits for a person, and prints its state.
fn drive(
    driver: Driver,
    why: &str,
    session: &LoopSession,
    before: Vec<Report>,
    after: Vec<Report>,
) -> Result<CommandOutput, Failure> {
    crate::commands::session::drive(driver, why, &session.session(), false, before, after)
}

/// What is in the cycle file when a run that has ended is resumed.
pub(crate) enum FileAnswer {
    /// The run is no loop, or has no open question.
    NotAsked,
    Missing,
    Written(Report),
}

/// What a person wrote into the cycle file of a loop is the answer to its open question.
pub(crate) fn answer_in_file(driver: &Driver) -> Result<FileAnswer, Failure> {
    if hear::question(&driver.run).is_none() {
        return Ok(FileAnswer::NotAsked);
    }
    let heard = hear::from_file(&driver.world, &driver.run).map_err(say::about_file)?;
    Ok(heard.map_or(FileAnswer::Missing, |heard| FileAnswer::Written(heard.into())))
}

/// Where a loop is after it was driven: for people at once, for machines in the output.
/// Nothing, if the run is no loop.
pub(crate) fn end(driver: &Driver, ended: &DriveEnd, json: bool) -> Option<CommandOutput> {
    driver.run.agent_loop.as_ref()?;
    let run_id = driver.world.run_id.clone();
    let screen = screen::Screen::of(&driver.world.places, &driver.world.state, &run_id, &driver.run);
    let code = match ended {
        DriveEnd::Outcome(outcome) => outcome.exit_code(),
        DriveEnd::Signal(signal) => stopped(&run_id, *signal),
    };
    if matches!(ended, DriveEnd::Outcome(_)) {
        screen.print();
    }
    if !json {
        return Some(CommandOutput::done().with_code(code));
    }
    let mut object = screen.json();
    object["exit_code"] = code.into();
    Some(CommandOutput::json(object).with_code(code))
}
