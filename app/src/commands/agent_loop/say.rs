//! Messages of a person to a loop, which then continues.

use std::time::{Duration, Instant};

use archeflow_core::event::{LoopHeard, QuestionKind, Report};
use archeflow_core::model::Word;
use archeflow_core::run::Run;
use archeflow_host::agent_loop::cycle::{self, CycleFile, PATH};
use archeflow_host::agent_loop::hear;
use archeflow_host::agent_loop::open::{LoopRun, is_open, put_away};
use archeflow_host::drive::Driver;
use archeflow_host::open::{self, Project};
use archeflow_host::store::journal;
use serde_json::json;

use super::screen::commands;
use super::{drive, pick};
use crate::args::{LoopAnswer, LoopSay, LoopSession, Which};
use crate::commands::open_project;
use crate::failure::Failure;
use crate::output::CommandOutput;

/// How long a loop that is asked to stop may take to stop its agents.
const PATIENCE: Duration = Duration::from_secs(90);

/// With a text, the answer; without one, what is in the cycle file.
pub(super) fn answer(args: &LoopAnswer) -> Result<CommandOutput, Failure> {
    if let Some(text) = &args.text {
        return word(Word::Answer, text, &args.which, &args.session);
    }
    let driver = open(&args.which, &args.session)?;
    waits(&driver)?;
    let heard = hear::from_file(&driver.world, &driver.run).map_err(about_file)?;
    let Some(heard) = heard else {
        let hint = format!(
            "Say it here: archeflow loop answer \"<text>\"; or write a block below everything else in {PATH}: Agent: Human, \
             Result, Step Summary, Next: Planner"
        );
        return Err(Failure::usage(format!("there is no new block of yours in {PATH}"), hint));
    };
    drive(driver, "loop answer", &args.session, Vec::new(), vec![heard.into()])
}

pub(super) fn word(
    word: Word,
    text: &str,
    which: &Which,
    session: &LoopSession,
) -> Result<CommandOutput, Failure> {
    let text = text.trim();
    if text.is_empty() && word != Word::Approve {
        let example = format!("archeflow loop {} \"<what to say>\"", word.name());
        return Err(Failure::usage("no text was given", format!("Write: {example}")));
    }
    let driver = open(which, session)?;
    let (start_seq, kind) = waits(&driver)?;
    if !fits(word, kind) {
        return Err(unfit(word, &driver.run, &driver.world.run_id));
    }
    let heard = person_message(Some(start_seq), word, text, session);
    drive(driver, &format!("loop {}", word.name()), session, Vec::new(), vec![heard])
}

fn person_message(start_seq: Option<u64>, word: Word, text: &str, session: &LoopSession) -> Report {
    let by = session.session().by();
    LoopHeard { start_seq, word: Some(word), text: text.to_owned(), by, ..LoopHeard::default() }.into()
}

/// Whether a command fits the open question. The core checks the rest.
fn fits(word: Word, kind: QuestionKind) -> bool {
    match word {
        Word::Answer => {
            matches!(kind, QuestionKind::GoalQuestions | QuestionKind::LoopEdited | QuestionKind::LoopPaused)
        }
        Word::Approve | Word::Reject => {
            matches!(kind, QuestionKind::PlanApproval | QuestionKind::StepApproval)
        }
        Word::Restart | Word::Clear => kind == QuestionKind::LoopPaused,
        Word::Stop => true,
    }
}

fn unfit(word: Word, run: &Run, id: &str) -> Failure {
    let asked = run.question().map(|(_, question)| question.question.clone()).unwrap_or_default();
    Failure::usage(format!("'{}' is no answer to what the loop asks: {asked}", word.name()), choices(run, id))
}

fn choices(run: &Run, id: &str) -> String {
    let all: Vec<String> = commands(id, run, false)
        .into_iter()
        .map(|(command, meaning)| format!("{command} ({meaning})"))
        .collect();
    format!("What you can do: {}", all.join("; "))
}

/// The question that is open.
fn waits(driver: &Driver) -> Result<(u64, QuestionKind), Failure> {
    hear::question(&driver.run).ok_or_else(|| {
        let (id, state) = (&driver.world.run_id, driver.run.loop_state().name());
        Failure::usage(
            format!("the loop {id} waits for no answer; it is in the state {state}"),
            choices(&driver.run, id),
        )
    })
}

pub(super) fn stop(args: &LoopSay) -> Result<CommandOutput, Failure> {
    let known = pick(&open_project(&args.session.place, None, false)?, args.which.id.as_deref())?;
    if !is_open(&known.run) {
        let message = format!("the loop {} has ended already ({})", known.id, known.run.loop_state().name());
        return Err(Failure::usage(message, choices(&known.run, &known.id)));
    }
    let driver = called_in(&known, &args.session)?;
    let heard = person_message(driver.run.question().map(|(seq, _)| seq), Word::Stop, "", &args.session);
    drive(driver, "loop stop", &args.session, Vec::new(), vec![heard])
}

/// The process that drives it is asked to stop first, as by Ctrl-C.
fn called_in(known: &LoopRun, session: &LoopSession) -> Result<Driver, Failure> {
    let begun = Instant::now();
    let mut asked = false;
    loop {
        match again(known, session) {
            Err(open::Error::Journal(journal::Error::Held { holder: Some(holder), .. }))
                if begun.elapsed() < PATIENCE =>
            {
                if !asked {
                    tell!("note: the loop is driven by pid {}; it is asked to stop", holder.pid);
                    asked = archeflow_host::agent_loop::leave::interrupt(&holder);
                    if !asked {
                        return Err(
                            journal::Error::Held { run_id: known.id.clone(), holder: Some(holder) }.into()
                        );
                    }
                }
                std::thread::sleep(Duration::from_millis(50));
            }
            other => return Ok(other?),
        }
    }
}

fn again(known: &LoopRun, session: &LoopSession) -> Result<Driver, open::Error> {
    let env = crate::commands::process_env().map_err(|_| open::Error::NoRun { id: known.id.clone() })?;
    let dir = session.place.repo.clone().unwrap_or_else(|| env.cwd.clone());
    let project = Project::open(env, &dir, None, false)?;
    project.existing(&known.id, session.place.config.as_deref()).map(|(driver, _)| driver)
}

pub(super) fn clear(args: &LoopSay) -> Result<CommandOutput, Failure> {
    let project = open_project(&args.session.place, None, false)?;
    let known = pick(&project, args.which.id.as_deref())?;
    if hear::question(&known.run).is_some_and(|(_, kind)| kind == QuestionKind::LoopPaused) {
        let driver = open(&args.which, &args.session)?;
        let (seq, _) = waits(&driver)?;
        drive(
            driver,
            "loop clear",
            &args.session,
            Vec::new(),
            vec![person_message(Some(seq), Word::Clear, "", &args.session)],
        )?;
    } else if is_open(&known.run) {
        let message = format!("the loop {} is still open ({})", known.id, known.run.loop_state().name());
        return Err(Failure::new(21, "refused", message, choices(&known.run, &known.id)));
    }
    let kept = put_away(&CycleFile::new(project.places.root(), &project.state)).map_err(about_file)?;
    match &kept {
        Some(kept) => tell!("{PATH} is empty now; what stood in it is in {kept}"),
        None => tell!("{PATH} was empty already"),
    }
    Ok(match args.session.place.json {
        true => {
            CommandOutput::json(json!({ "run_id": known.id, "cleared": kept.is_some(), "archive": kept }))
        }
        false => CommandOutput::done(),
    })
}

fn open(which: &Which, session: &LoopSession) -> Result<Driver, Failure> {
    let id = pick(&open_project(&session.place, None, false)?, which.id.as_deref())?.id;
    crate::commands::known::open(&id, &session.session())
}

/// What is wrong with the cycle file, and what to do about it.
pub(crate) fn about_file(error: cycle::Error) -> Failure {
    let message = error.to_string();
    match error {
        cycle::Error::Edited(_) => Failure::new(
            21,
            "edited",
            message,
            format!("Nothing was written. A copy of earlier blocks may be in git or in your editor: {PATH}"),
        ),
        cycle::Error::NotText { .. } => Failure::new(21, "refused", message, "Nothing was written."),
        cycle::Error::Restless => Failure::new(30, "environment", message, ""),
        cycle::Error::Files(error) => error.into(),
        cycle::Error::Lock(_) => Failure::new(30, "environment", message, ""),
    }
}
