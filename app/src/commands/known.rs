//! Commands that continue an existing run: resume, answer, continue, merge.

use std::time::Duration;

use archeflow_core::event::{MergeRequested, QuestionAnswered, Report, RunContinued};
use archeflow_core::model::{Money, Outcome, Reason, RunStatus};
use archeflow_core::rules::run_names::{RunUse, can_be_tried_again};
use archeflow_host::drive::Driver;
use archeflow_host::open::Project;
use archeflow_host::{clock, co_landing};

use crate::args::{AnswerArgs, ContinueArgs, MergeArgs, ResumeArgs, Session};
use crate::commands::agent_loop::{self, FileAnswer};
use crate::commands::session::{attended, drive, join_replica, notifier, with_given_approval};
use crate::commands::trust::only_from_outside;
use crate::commands::{naming, open_project, steer};
use crate::failure::Failure;
use crate::output::CommandOutput;
use crate::render::summary;

pub(crate) fn resume(args: &ResumeArgs) -> Result<CommandOutput, Failure> {
    let project = open_project(&args.session.place, None, false)?;
    let id = naming::run_id(&project, args.id.as_deref(), RunUse::Resume)?;
    if let Some(output) = steer::resume(&project, &id, &args.session)? {
        return Ok(output);
    }
    let driver = open_in(project, &id, &args.session)?;
    let reopens_at = driver.run.complete.as_ref().and_then(|complete| complete.reopens_at);
    if let (Some(outcome), Some(reopens_at)) = (&driver.run.outcome, reopens_at)
        && let Some(output) = parked(args, &driver, outcome, reopens_at)
    {
        return Ok(output);
    }
    let after = match driver.run.outcome.clone() {
        None => Vec::new(),
        Some(outcome) => match agent_loop::answer_in_file(&driver)? {
            FileAnswer::Written(report) => vec![report],
            FileAnswer::NotAsked if can_be_tried_again(&outcome) => {
                vec![RunContinued { by: args.session.by(), ..RunContinued::default() }.into()]
            }
            FileAnswer::Missing | FileAnswer::NotAsked => {
                // Its process may have been killed before the message was sent.
                let attended = attended(&args.session);
                if let Some(notifier) = notifier(&driver.notify, &driver.world.state, attended)? {
                    notifier.about_run(driver.world.places.root(), &id, &driver.run);
                }
                return Err(ended(&id, &driver, Some(&outcome)));
            }
        },
    };
    go_on(driver, "resume", &args.session, after)
}

/// A parked run is resumed when its account is available again, not before: its one attempt would be wasted.
/// So it ends as it had ended, or waits.
fn parked(args: &ResumeArgs, driver: &Driver, outcome: &Outcome, reopens_at: u64) -> Option<CommandOutput> {
    if reopens_at <= clock::now() {
        return None;
    }
    let (id, when) = (&driver.world.run_id, summary::when(reopens_at));
    if args.wait {
        tell!("waiting until {when}; Ctrl-C stops waiting and leaves the run unchanged");
        while clock::now() < reopens_at {
            std::thread::sleep(Duration::from_millis(reopens_at.saturating_sub(clock::now()).min(200)));
        }
        return None;
    }
    tell!("{id} is parked: its account serves again at {when}");
    tell!("  Resume it then, or wait for it here: archeflow resume {id} --wait");
    let (root, code) = (driver.world.places.root(), outcome.exit_code());
    let output = match args.session.place.json {
        true => CommandOutput::json(summary::json(root, id, &driver.run, Some(outcome), code, None)),
        false => CommandOutput::done(),
    };
    Some(output.with_code(code))
}

fn ended(id: &str, driver: &Driver, outcome: Option<&Outcome>) -> Failure {
    let Some(outcome) = outcome else { return Failure::usage(format!("{id} has not ended"), "") };
    let steps = archeflow_core::projections::view::next_steps(id, &driver.run, outcome);
    let hint: Vec<String> =
        steps.into_iter().map(|(command, meaning)| format!("{command} ({meaning})")).collect();
    let message = format!("the run has ended ({}): {}", outcome.status.name(), outcome.detail);
    Failure::usage(message, format!("What you can do: {}", hint.join("; ")))
}

pub(crate) fn answer(args: &AnswerArgs) -> Result<CommandOutput, Failure> {
    let project = open_project(&args.session.place, None, false)?;
    if args.id.is_none() && naming::is_run(&project, &args.text) {
        return Err(Failure::usage(
            format!("there is no answer for {}", args.text),
            format!("Write it behind the run: archeflow answer {} \"<text>\"", args.text),
        ));
    }
    let id = &naming::run_id(&project, args.id.as_deref(), RunUse::Answer)?;
    if let Some(output) = steer::answer(&project, id, args)? {
        return Ok(output);
    }
    only_from_outside("answer a question")?;
    let driver = open_in(project, id, &args.session)?;
    let Some((start_seq, _)) = driver.run.question() else {
        return Err(Failure::usage(
            format!("{id} waits for no answer"),
            format!("Show its state: archeflow status {id}"),
        ));
    };
    let text = args.text.clone();
    go_on(
        driver,
        "answer",
        &args.session,
        vec![QuestionAnswered { start_seq, text, by: args.session.by() }.into()],
    )
}

pub(crate) fn continue_run(args: &ContinueArgs) -> Result<CommandOutput, Failure> {
    let driver = open_named(args.id.as_deref(), RunUse::Continue, &args.session)?;
    let id = &driver.world.run_id;
    match &driver.run.outcome {
        None => {
            let hint = format!("Go on with it: archeflow resume {id}");
            return Err(Failure::usage(format!("{id} has not stopped"), hint));
        }
        Some(outcome)
            if matches!(outcome.status, RunStatus::Merged | RunStatus::Reviewed)
                || outcome.reason == Reason::Discarded =>
        {
            return Err(ended(id, &driver, Some(outcome)));
        }
        Some(_) => {}
    }
    accepted(&driver, args)?;
    let again = args.one_more_cycle || args.ruling.is_some() || args.rescope.is_some();
    let continued = RunContinued {
        cycles: u32::from(again),
        ruling: args.ruling.clone().unwrap_or_default(),
        accept: args.accept.clone(),
        rescope: args.rescope.clone().unwrap_or_default(),
        budget_usd: args.budget.as_deref().map(dollars).transpose()?,
        reason: args.reason.clone().unwrap_or_default(),
        by: args.session.by(),
    };
    go_on(driver, "continue", &args.session, vec![continued.into()])
}

/// Only what is open can be accepted.
fn accepted(driver: &Driver, args: &ContinueArgs) -> Result<(), Failure> {
    let boundary = driver.run.cycle().and_then(|cycle| cycle.boundary.as_ref());
    let known: Vec<&str> = boundary
        .map(|boundary| boundary.open.iter().map(|found| found.id.as_str()).collect())
        .unwrap_or_default();
    match args.accept.iter().find(|id| !known.contains(&id.as_str())) {
        None => Ok(()),
        Some(id) => Err(Failure::usage(
            format!("no open finding of {} is called '{id}'", driver.world.run_id),
            format!("Open are: {}", if known.is_empty() { "none".to_owned() } else { known.join(", ") }),
        )),
    }
}

fn dollars(text: &str) -> Result<Money, Failure> {
    Money::parse(text).ok_or_else(|| {
        Failure::usage(format!("--budget '{text}' is no amount of dollars"), "Write a number like 5 or 2.50")
    })
}

pub(crate) fn merge(args: &MergeArgs) -> Result<CommandOutput, Failure> {
    let driver = open_named(args.id.as_deref(), RunUse::Merge, &args.session)?;
    let id = driver.world.run_id.clone();
    if driver.run.review.is_some() {
        let hint = format!("See what it found: archeflow review --run {id}");
        return Err(Failure::usage(format!("{id} is a review; nothing of it lands"), hint));
    }
    match &driver.run.outcome {
        Some(outcome) if outcome.status == RunStatus::Merged => {
            return Err(Failure::usage(format!("{id} was merged already"), ""));
        }
        Some(outcome) if outcome.reason == Reason::Discarded => {
            return Err(Failure::usage(
                format!("{id} was discarded"),
                "Its work is under refs/archeflow/keep/.",
            ));
        }
        Some(_) => {}
        None => {
            let hint = format!("Let it finish first: archeflow resume {id}");
            return Err(Failure::usage(format!("{id} is not finished"), hint));
        }
    }
    if driver.run.work.is_none() {
        return Err(Failure::usage(format!("{id} has made nothing that could be merged"), ""));
    }
    let (places, run) = (&driver.world.places, &driver.run);
    let apart = |error: co_landing::Error| {
        Failure::usage(error.to_string(), format!("Land it by itself: archeflow merge {id}"))
    };
    let others = args.before.iter().chain(&args.landed_with).map(String::as_str);
    co_landing::check_own(&driver.world, others).map_err(apart)?;
    let before = co_landing::companions(places, run, &args.before).map_err(apart)?;
    let with = args.landed_with.as_deref();
    let with = with.map(|lead| co_landing::together(places, run, &id, lead)).transpose().map_err(apart)?;
    go_on(driver, "merge", &args.session, vec![MergeRequested { before, with, by: args.session.by() }.into()])
}

/// The run that is named, or that the command acts on where none is.
pub(crate) fn open_named(name: Option<&str>, usage: RunUse, session: &Session) -> Result<Driver, Failure> {
    let project = open_project(&session.place, None, false)?;
    let id = naming::run_id(&project, name, usage)?;
    open_in(project, &id, session)
}

pub(crate) fn open(id: &str, session: &Session) -> Result<Driver, Failure> {
    open_in(open_project(&session.place, None, false)?, id, session)
}

fn open_in(project: Project, id: &str, session: &Session) -> Result<Driver, Failure> {
    let project = with_given_approval(project, session)?;
    let (mut driver, repaired) = project.existing(id, session.place.config.as_deref())?;
    if let Some(repair) = repaired {
        tell!(
            "note: the log's last line was torn ({} bytes); it was saved as {} and the run continues from the line before",
            repair.bytes,
            repair.saved_as.display()
        );
    }
    // Also for a run that has ended: its last lines may not have been sent.
    join_replica(&mut driver, session)?;
    if session.at.is_some_and(|at| at != driver.run.decision_line()) {
        return Err(Failure::new(
            21,
            "moved",
            format!("{id} is no longer where it was when you decided; nothing was done"),
            format!("See where it is: archeflow status {id}"),
        ));
    }
    Ok(driver)
}

pub(crate) fn go_on(
    driver: Driver,
    why: &str,
    session: &Session,
    after: Vec<Report>,
) -> Result<CommandOutput, Failure> {
    let before = driver.run.session.as_ref();
    // What the user allowed when the run began still holds; `--auto-merge` can add to it.
    let auto_merge = session.auto_merge || before.is_some_and(|session| session.auto_merge);
    drive(driver, why, session, auto_merge, Vec::new(), after)
}
