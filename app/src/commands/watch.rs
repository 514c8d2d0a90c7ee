//! `archeflow watch`: a run as it happens, also one that another process drives. It reads the journal and never writes
//! it; keys that steer such a run are requests to the process that drives it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use archeflow_core::model::Outcome;
use archeflow_core::projections::live::Driven;
use archeflow_core::rules::run_names::{Meaning, RunUse, resolve};
use archeflow_core::run::Run;
use archeflow_host::drive::RunObserver;
use archeflow_host::open::Project;
use archeflow_host::sprint::reading;
use archeflow_host::store::follow::Follower;
use archeflow_host::store::journal::Journal;
use archeflow_host::store::presence::{Presence, Watched};
use archeflow_host::{log, proc};

use crate::args::{AnswerArgs, Session, WatchArgs};
use crate::commands::views::{self, FleetRun, FleetView};
use crate::commands::{known, naming, open_project, process_env, sprint, steer};
use crate::failure::Failure;
use crate::output::CommandOutput;
use crate::render::line::Lines;
use crate::render::summary;
use crate::render::text::{Paint, safe_line};
use crate::render::tui::stage::{Bring, Left, News, Shelf, Stage, driven_by};
use crate::render::tui::terminal::{self, Screen};
use crate::render::tui::{View, observer::no_screen};

/// How often a journal that does not grow is looked at.
const LOOK: Duration = Duration::from_millis(200);
/// A driver that is gone may have written its last lines just before.
const GRACE: Duration = Duration::from_secs(1);

pub(crate) fn run(args: &WatchArgs) -> Result<CommandOutput, Failure> {
    if let Some(fleet) = FleetView::asked_for(&args.view)? {
        let run = fleet.run(args.id.as_deref())?;
        return match args.place.json || !terminal::is_there() {
            true => follow_in_fleet(&fleet, &run, args.place.json),
            false => closed(look_in_fleet(fleet, &run)?),
        };
    }
    if let Some(sprint) = sprint(args)? {
        let root = sprint.root().to_owned();
        return sprint::watch::watch(
            sprint::watch::open(&sprint, args.id.as_deref())?,
            &root,
            args.place.json,
        );
    }
    let project = open_project(&args.place, None, false)?;
    let id = naming::run_id(&project, args.id.as_deref(), RunUse::Watch)?;
    if args.place.json || !terminal::is_there() {
        return follow(&project, &id, args.place.json);
    }
    let left = look(&project, &id)?;
    if let Left::Answer(text) = left {
        let session = Session::of(&args.place, false, true);
        return known::answer(&AnswerArgs { id: Some(id), text, session });
    }
    closed(left)
}

/// The view is closed, and nothing is to be done about the run.
fn closed(left: Left) -> Result<CommandOutput, Failure> {
    match left {
        Left::Signal(signal) => {
            Ok(CommandOutput::done().with_code(u8::try_from(128 + signal).unwrap_or(130)))
        }
        Left::Failed(failure) => Err(*failure),
        Left::Answer(_) | Left::Quit | Left::Plain | Left::Ended | Left::Gone => Ok(CommandOutput::done()),
    }
}

/// Where a sprint is meant: it was named, it is under way, or there is nothing else here to watch.
fn sprint(args: &WatchArgs) -> Result<Option<sprint::QueueFolder>, Failure> {
    let cwd = process_env()?.cwd;
    let place = sprint::QueueFolder::at(&args.place.repo.as_ref().map_or(cwd.clone(), |repo| cwd.join(repo)));
    let known = reading::sprint_ids(&place);
    let meant = match &args.id {
        Some(name) => known.contains(name) || fits_a_sprint_only(args, name, &known),
        None => {
            let driven = |id: &String| Journal::driver(&place.folder(), id).is_some();
            known.iter().any(driven) || !known.is_empty() && open_project(&args.place, None, false).is_err()
        }
    };
    Ok(meant.then_some(place))
}

/// A short name means a run where it can, else a sprint.
fn fits_a_sprint_only(args: &WatchArgs, name: &str, sprints: &[String]) -> bool {
    let runs = open_project(&args.place, None, false).and_then(|project| naming::runs(&project));
    let is_no_run = matches!(resolve(name, &runs.unwrap_or_default()), Meaning::None(_));
    is_no_run && !matches!(resolve(name, &naming::bare(sprints)), Meaning::None(_))
}

pub(crate) fn look(project: &Project, id: &str) -> Result<Left, Failure> {
    let events = project.places.events();
    let artifacts = project.places.artifacts().join(id);
    let view = View::new(id, driven_by(&events, id), Paint::for_stdout().0);
    let socket = Some(steer::socket_of(project, id));
    let shelf = Shelf { repo: Some(project.repo.clone()), events, artifacts, socket, bring: None };
    let stage = Stage::new(view, shelf, None, heard_signal()?)?;
    let screen = Screen::enter().map_err(|error| no_screen(&error))?;
    // While somebody looks, no message about the run is sent.
    let _looks = Presence::hold(&project.state, &Watched::run(project.places.root(), id)).ok();
    Ok(stage.play(screen))
}

/// The first signal that came; the second ends the program at once.
fn heard_signal() -> Result<Arc<AtomicI32>, Failure> {
    let signal = Arc::new(AtomicI32::new(0));
    let heard = Arc::clone(&signal);
    proc::signals::listen(move |signal| {
        if heard.swap(signal, Ordering::SeqCst) != 0 {
            terminal::leave();
            std::process::exit(128 + signal);
        }
    })
    .map_err(|error| no_screen(&error))?;
    Ok(signal)
}

/// A run of a fleet on the whole screen. It is read from its copy here, which is kept as new as the server's.
fn look_in_fleet(fleet: FleetView, found: &FleetRun) -> Result<Left, Failure> {
    let driven = Driven::Fleet { worker: found.worker.clone(), repository: found.repository.clone() };
    let view = View::new(&found.id, driven, Paint::for_stdout().0);
    let events = found.path.parent().unwrap_or(&found.path).to_owned();
    let artifacts = found.root().join(".archeflow/artifacts").join(&found.id);
    let fleet = Arc::new(fleet);
    let (from, id) = (Arc::clone(&fleet), found.id.clone());
    let bring: Bring = Box::new(move || from.bring_artifacts(&id));
    let shelf = Shelf { repo: None, events, artifacts, socket: None, bring: Some(bring) };
    let (says, news) = channel();
    let (replies, _replies) = channel();
    let stage = Stage::new(view, shelf, Some((news, replies)), heard_signal()?)?;
    let _stays_open = says.clone();
    if fleet.is_connected() {
        std::thread::Builder::new()
            .name("fleet".into())
            .spawn(move || keep_up(&fleet, &says))
            .map_err(|error| no_screen(&error))?;
    }
    let screen = Screen::enter().map_err(|error| no_screen(&error))?;
    Ok(stage.play(screen))
}

/// Reads what is new every second. While the server is away, that is said again and again: the screen shows it for a while.
fn keep_up(fleet: &FleetView, says: &Sender<News>) {
    let mut was_away = false;
    loop {
        std::thread::sleep(views::EVERY);
        let now = fleet.refresh();
        let said = match &now {
            Ok(_) if was_away => Some("The fleet's server answers again.".to_owned()),
            Ok(_) => None,
            Err(failure) => {
                Some(format!("No news, asked again every second: {}", safe_line(&failure.message)))
            }
        };
        was_away = now.is_err();
        if said.is_some_and(|text| says.send(News::Warning(text)).is_err()) {
            return;
        }
    }
}

/// Without a terminal: the lines of a run as they come, until it ends.
fn follow(project: &Project, id: &str, json: bool) -> Result<CommandOutput, Failure> {
    let events = project.places.events();
    let mut follower = Follower::open(&events, id)?;
    let mut observer = Lines::replay(id);
    let mut run = Run::default();
    let mut alone: Option<Instant> = None;
    loop {
        let mut entries = Vec::new();
        let some = follower.more(|line| entries.push(log::decode(line)))?;
        for entry in entries {
            let entry = entry?;
            run.apply(&entry);
            observer.wrote(&run, &entry);
        }
        if some {
            continue;
        }
        if run.outcome.is_some() {
            break;
        }
        let driven = Journal::driver(&events, id).is_some();
        alone = if driven { None } else { alone.or_else(|| Some(Instant::now())) };
        if alone.is_some_and(|since| since.elapsed() >= GRACE) {
            break;
        }
        std::thread::sleep(LOOK);
    }
    Ok(end(project, id, &run, json))
}

/// The lines of a run of a fleet as they come, until it ends. Whether a worker drives it is not known here, so it is waited for.
fn follow_in_fleet(fleet: &FleetView, found: &FleetRun, json: bool) -> Result<CommandOutput, Failure> {
    let events = found.path.parent().unwrap_or(&found.path);
    let mut follower = Follower::open(events, &found.id)?;
    let (mut observer, mut run, mut is_away) = (Lines::replay(&found.id), Run::default(), false);
    loop {
        if follower.is_another_file() {
            tell!("note: the journal was written again on the server; from its beginning:");
            follower = Follower::open(events, &found.id)?;
            (observer, run) = (Lines::replay(&found.id), Run::default());
        }
        let mut entries = Vec::new();
        let some = follower.more(|line| entries.push(log::decode(line)))?;
        for entry in entries {
            let entry = entry?;
            run.apply(&entry);
            observer.wrote(&run, &entry);
        }
        if some {
            continue;
        }
        if run.outcome.is_some() || !fleet.is_connected() {
            break;
        }
        std::thread::sleep(views::EVERY);
        is_away = fleet.refresh_or_say(is_away);
    }
    let code = run.outcome.as_ref().map_or(0, Outcome::exit_code);
    if let Some(outcome) = &run.outcome {
        summary::print(&found.id, &run, outcome, run.last.saturating_sub(run.began));
        tell!("{}", safe_line(&found.place()));
    }
    let output = match json {
        true => {
            let outcome = run.outcome.as_ref();
            CommandOutput::json(summary::json(found.root(), &found.id, &run, outcome, code, None))
        }
        false => CommandOutput::done(),
    };
    Ok(output.with_code(code))
}

/// How the run ended, as its own process prints it, with the same code.
fn end(project: &Project, id: &str, run: &Run, json: bool) -> CommandOutput {
    const NEEDS_YOU: u8 = 10;
    let code = run.outcome.as_ref().map_or(NEEDS_YOU, Outcome::exit_code);
    match &run.outcome {
        Some(outcome) => summary::print(id, run, outcome, run.last.saturating_sub(run.began)),
        None => tell!("\nno process drives this run any more; next: archeflow resume {id}"),
    }
    let output = match json {
        true => CommandOutput::json(summary::json(
            project.places.root(),
            id,
            run,
            run.outcome.as_ref(),
            code,
            None,
        )),
        false => CommandOutput::done(),
    };
    output.with_code(code)
}
