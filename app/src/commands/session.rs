//! Driving a run to its end in front of a person or a script, the same way for every command that does.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use archeflow_core::event::{Report, RunResumed};
use archeflow_core::model::{Outcome, RunStatus};
use archeflow_core::run::Run;
use archeflow_core::settings::NotifySettings;
use archeflow_host::cleaning;
use archeflow_host::config::trust::NamedApproval;
use archeflow_host::control::{self, Server};
use archeflow_host::drive::{DriveEnd, Driver, RunObserver};
use archeflow_host::executors::Message;
use archeflow_host::history;
use archeflow_host::notify::{Notifier, NotifyEnv};
use archeflow_host::open::{self, Project};
use archeflow_host::proc;
use archeflow_host::sandbox::SandboxLevel;
use archeflow_host::telemetry::LiveTelemetry;
use archeflow_host::world::WorldSandbox;

use crate::args::Session;
use crate::commands::steer::own_socket;
use crate::commands::trust::only_from_outside;
use crate::commands::{agent_loop, process_env};
use crate::failure::Failure;
use crate::output::CommandOutput;
use crate::render::line::Lines;
use crate::render::summary;
use crate::render::text::safe_line;
use crate::render::tui::observer::Live;

/// A session is attended if input and output are terminals and no flag says otherwise.
pub(crate) fn attended(session: &Session) -> bool {
    !session.unattended && (session.tui || talks())
}

pub(crate) fn talks() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Tells the run what happened outside, opens a session, and drives.
pub(crate) fn drive(
    mut driver: Driver,
    why: &str,
    session: &Session,
    auto_merge: bool,
    before: Vec<Report>,
    after: Vec<Report>,
) -> Result<CommandOutput, Failure> {
    let driven = go(&mut driver, why, session, auto_merge, before, after)?;
    let output = printed(&driver, &driven, session)?;
    Ok(output.and_then(move || driven.clean(&driver)))
}

fn printed(driver: &Driver, driven: &Driven, session: &Session) -> Result<CommandOutput, Failure> {
    let Driven { ended, took_ms, .. } = driven;
    if let Some(output) = agent_loop::end(driver, ended, session.place.json) {
        return Ok(output);
    }
    let (run_id, root) = (driver.world.run_id.clone(), driver.world.places.root().to_path_buf());
    let (code, outcome, signal) = match ended {
        DriveEnd::Outcome(outcome) => {
            summary::print(&run_id, &driver.run, outcome, *took_ms);
            (outcome.exit_code(), Some(outcome), None)
        }
        DriveEnd::Signal(signal) => (stopped(&run_id, *signal), None, Some(*signal)),
    };
    if let Some(refused) = revert_refused(&root, &run_id, &driver.run) {
        return Err(refused);
    }
    let output = match session.place.json {
        true => CommandOutput::json(summary::json(&root, &run_id, &driver.run, outcome, code, signal))
            .recorded(format!("archeflow show {run_id}")),
        false => CommandOutput::done(),
    };
    Ok(output.with_code(code))
}

/// The run is merged as before, but what was asked for did not happen.
fn revert_refused(root: &Path, run_id: &str, run: &Run) -> Option<Failure> {
    let complete = run.complete.as_ref()?;
    let reason = complete.revert_refused?;
    let detail = complete.detail.clone();
    let code = Outcome { status: RunStatus::Stopped, reason, detail: detail.clone() }.exit_code();
    let hint = format!("It is merged as before. Try again: archeflow revert {run_id}");
    let mut failure = Failure::new(code, reason.name(), detail, hint);
    failure.run = Some(summary::json(root, run_id, run, Some(&complete.outcome()), code, None));
    Some(failure)
}

/// How a session ended.
pub(crate) struct Driven {
    pub(crate) ended: DriveEnd,
    /// Without the time that a person looked at the end.
    pub(crate) took_ms: u64,
    /// A signal asked for the end.
    interrupted: Arc<AtomicBool>,
    is_clean: bool,
}

/// How long working copies may be removed without a word.
const SILENT: Duration = Duration::from_secs(1);

impl Driven {
    /// Removes what the run needs no more, once its result was printed. A signal ends it, and the exit code stays that of the
    /// result.
    pub(crate) fn clean(&self, driver: &Driver) {
        match &self.ended {
            DriveEnd::Outcome(_) if !self.is_clean => clean(driver, &self.interrupted),
            DriveEnd::Outcome(_) | DriveEnd::Signal(_) => {}
        }
    }
}

fn clean(driver: &Driver, interrupted: &AtomicBool) {
    let (begun, mut told) = (Instant::now(), false);
    let left = cleaning::after_run(driver, || {
        if !told && begun.elapsed() >= SILENT {
            told = true;
            tell!("removing working copies …");
        }
        !interrupted.load(Ordering::SeqCst)
    });
    not_removed(&left);
    if told && interrupted.load(Ordering::SeqCst) {
        tell!("stopped; the next run or archeflow gc removes the rest");
    }
}

/// The same without printing the end, which the caller does.
pub(crate) fn go(
    driver: &mut Driver,
    why: &str,
    session: &Session,
    auto_merge: bool,
    before: Vec<Report>,
    after: Vec<Report>,
) -> Result<Driven, Failure> {
    let begun = Instant::now();
    proc::become_subreaper();
    let interrupted = Arc::new(AtomicBool::new(false));
    listen(driver, &interrupted);
    let run_id = driver.world.run_id.clone();
    let mut face = Face::of(driver, session, Arc::clone(&interrupted), &before)?;
    let observer = face.observer();
    match &driver.world.sandbox {
        WorldSandbox::Off => {
            observer.warn("no sandbox: agents, test commands and hooks run with your rights");
        }
        WorldSandbox::On { level: level @ SandboxLevel::Landlock { .. }, .. } => observer.warn(&level.line()),
        WorldSandbox::On { .. } => {}
    }
    driver.notifier = notifier(&driver.notify, &driver.world.state, attended(session))?;
    driver.live_telemetry = live_telemetry(driver)?;
    let opened = open::session(driver, why, attended(session), auto_merge, env!("CARGO_PKG_VERSION"));
    let resumed = driver.run.paused.as_ref().map(|_| RunResumed { by: why.to_owned() }.into());
    if resumed.is_some() {
        observer.warn("the run was paused; it is resumed");
    }
    let control = control(driver, observer);
    let reports = before.into_iter().chain([opened]).chain(resumed).chain(after).collect();
    let ended = driver.tell(observer, reports).and_then(|()| driver.drive(observer));
    let took_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    drop(control);
    proc::finish_all();
    let mut left = Vec::new();
    let mut is_clean = false;
    if let (Face::Live(live), Ok(DriveEnd::Outcome(_)), true) = (&mut face, &ended, attended(session)) {
        // The end is on the screen. Only who holds the run may clean up after it.
        left = cleaning::after_run(driver, || !interrupted.load(Ordering::SeqCst));
        is_clean = true;
        // What the end proposes to type may be typed elsewhere meanwhile.
        driver.let_go();
        live.stay();
    }
    // The terminal is restored before anything else is printed.
    drop(face);
    not_removed(&left);
    ended.map(|ended| Driven { ended, took_ms, interrupted, is_clean }).map_err(|error| {
        let root = driver.world.places.root();
        if let Some(notifier) = &driver.notifier {
            notifier.about_fault(root, &run_id, &driver.run, &error.to_string());
        }
        let mut failure = Failure::from(error);
        failure.hint = failure.hint.replace("<id>", &run_id);
        failure.run = Some(summary::json(root, &run_id, &driver.run, None, failure.code, None));
        failure
    })
}

fn not_removed(left: &[(PathBuf, String)]) {
    for (path, why) in left {
        let path = safe_line(&path.display().to_string());
        tell!("warning: {path} could not be removed: {}; try again: archeflow gc", safe_line(why));
    }
}

/// Has the process that started this one keep a copy of the journal, if it said so. A signal meanwhile ends the program: nothing
/// has begun.
pub(crate) fn join_replica(driver: &mut Driver, session: &Session) -> Result<(), Failure> {
    let Some(socket) = &session.replica else { return Ok(()) };
    driver.join_replica(socket).map_err(|error| {
        let mut failure = Failure::from(error);
        failure.hint = failure.hint.replace("<id>", &driver.world.run_id);
        failure
    })
}

/// Takes the approval that the process which started this one was given.
pub(crate) fn with_given_approval(project: Project, session: &Session) -> Result<Project, Failure> {
    let Some(given) = &session.approved else { return Ok(project) };
    if !proc::started_by_a_worker() {
        only_from_outside("approve anything")?;
    }
    let given = NamedApproval::parse(given).ok_or_else(|| {
        Failure::usage(
            format!("--approved '{given}' names no repository and digest"),
            "Write <name>=<64 hexadecimal digits>",
        )
    })?;
    Ok(project.with_approval(given)?)
}

/// What notifies a person who does not look, if a channel is set.
pub(crate) fn notifier(
    settings: &NotifySettings,
    state: &Path,
    attended: bool,
) -> Result<Option<Notifier>, Failure> {
    Ok(Notifier::start(settings, notify_env(state)?, state, attended))
}

/// What sends the run to a collector while it is driven, if the user set one.
fn live_telemetry(driver: &Driver) -> Result<Option<LiveTelemetry>, Failure> {
    let world = &driver.world;
    let (events, artifacts) = (world.places.events(), world.artifacts());
    let variables = process_env()?.variables;
    Ok(LiveTelemetry::start(&driver.telemetry, &variables, &world.run_id, &events, &artifacts))
}

pub(crate) fn notify_env(state: &Path) -> Result<NotifyEnv, Failure> {
    let write = |text: &str| tell_part!("{text}");
    let terminal = std::io::stderr().is_terminal().then_some(write as fn(&str));
    Ok(NotifyEnv { variables: process_env()?.variables, dir: state.to_owned(), terminal })
}

/// Other processes can steer the run as long as this is held. A run that they can't reach is a run all the same.
fn control(driver: &Driver, observer: &mut dyn RunObserver) -> Option<Server> {
    let post = driver.post();
    let opened = control::serve(&own_socket(&driver.world), move |steering| {
        post.send(Message::Steer(steering)).is_ok()
    });
    opened
        .map_err(|error| {
            observer.warn(&format!("other processes can't stop, pause or answer this run: {error}"));
        })
        .ok()
}

/// What shows the run while it is driven.
enum Face {
    Lines(Box<Lines>),
    Live(Box<Live>),
}

impl Face {
    /// `before`: what the run is told first, with the request if it is new.
    fn of(
        driver: &Driver,
        session: &Session,
        interrupted: Arc<AtomicBool>,
        before: &[Report],
    ) -> Result<Face, Failure> {
        if session.tui {
            return Ok(Face::Live(Box::new(Live::begin(driver, interrupted)?)));
        }
        let new = before
            .iter()
            .find_map(|report| if let Report::RunStart(start) = report { Some(&**start) } else { None });
        let run_id = &driver.world.run_id;
        let events = driver.world.places.events();
        let request = driver.run.request.as_deref().or(new);
        let usual = request.and_then(|request| history::usual_time(&events, request, run_id));
        Ok(Face::Lines(Box::new(Lines::new(run_id, interrupted).with_usual(usual))))
    }

    fn observer(&mut self) -> &mut dyn RunObserver {
        match self {
            Face::Lines(lines) => &mut **lines,
            Face::Live(live) => &mut **live,
        }
    }
}

/// Says that a signal ended the session, and gives its exit code.
pub(crate) fn stopped(run_id: &str, signal: i32) -> u8 {
    tell!("\nstopped by signal {signal}; all work is kept; next: archeflow resume {run_id}");
    u8::try_from(128 + signal).unwrap_or(130)
}

/// First signal: stop cleanly. Second: at once.
fn listen(driver: &Driver, interrupted: &Arc<AtomicBool>) {
    let (post, flag, world) = (driver.post(), Arc::clone(interrupted), Arc::clone(&driver.world));
    let heard = proc::signals::listen(move |signal| {
        if flag.swap(true, Ordering::SeqCst) {
            world.kill_now();
        }
        let _ = post.send(Message::Signal(signal));
    });
    if let Err(error) = heard {
        tell!("warning: signals can't be heard ({error}); stopping will not be clean");
    }
}
