//! `archeflow pause` and `stop`, and what `answer` and `resume` do where another process drives the run: requests on
//! its control socket.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use archeflow_core::rules::run_names::RunUse;
use archeflow_host::control::{self, Request, Requester, client};
use archeflow_host::open::Project;
use archeflow_host::store::journal::Journal;
use archeflow_host::world::World;
use serde_json::Value;

use crate::args::{AnswerArgs, Session, SteerArgs};
use crate::commands::{list, naming, open_project};
use crate::failure::Failure;
use crate::output::CommandOutput;
use crate::render::summary;

/// Agents have so long to end, and a landing to finish.
const STOPPING: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(50);

pub(crate) fn pause(args: &SteerArgs) -> Result<CommandOutput, Failure> {
    let project = open_project(&args.place, None, false)?;
    let id = &naming::run_id(&project, args.id.as_deref(), RunUse::Pause)?;
    send(&project, id, &Request::Pause { by: Requester::of(args.by.as_deref()) })?;
    let said = format!(
        "{id} is paused: running agents finish, nothing new starts. Resume it: archeflow resume {id}"
    );
    done(&project, id, Came::Paused, &said, args.place.json)
}

/// Comes back when the process has let go of the run, so that the next command can take it over.
pub(crate) fn stop(args: &SteerArgs) -> Result<CommandOutput, Failure> {
    let project = open_project(&args.place, None, false)?;
    let id = &naming::run_id(&project, args.id.as_deref(), RunUse::Stop)?;
    send(&project, id, &Request::Stop)?;
    let (events, begun) = (project.places.events(), Instant::now());
    while Journal::driver(&events, id).is_some() {
        if begun.elapsed() > STOPPING {
            let said = format!("{id} is being stopped; its agents have not ended yet");
            return done(&project, id, Came::Stopping, &said, args.place.json);
        }
        std::thread::sleep(LOOK);
    }
    let said = format!("{id} is stopped, its work is saved. Resume it: archeflow resume {id}");
    done(&project, id, Came::Stopped, &said, args.place.json)
}

/// Whether the run is driven by a living process.
fn is_driven(project: &Project, id: &str) -> bool {
    Journal::driver(&project.places.events(), id).is_some()
}

/// Answers through the process that drives the run; `None` where there is none to ask.
pub(super) fn answer(
    project: &Project,
    id: &str,
    args: &AnswerArgs,
) -> Result<Option<CommandOutput>, Failure> {
    let json = args.session.place.json;
    let (text, by) = (args.text.clone(), Requester::of(args.session.by.as_deref()));
    let request = Request::Answer { text, question: args.session.at, by };
    let said = format!("{id} is answered; the process that drives it continues");
    through_driver(project, id, &request, Came::Answered, &said, json)
}

/// Ends the pause of a run that another process drives; `None` where there is none to ask.
pub(super) fn resume(
    project: &Project,
    id: &str,
    session: &Session,
) -> Result<Option<CommandOutput>, Failure> {
    let said = format!("{id} is resumed; the process that drives it continues");
    let request = Request::Resume { by: Requester::of(session.by.as_deref()) };
    through_driver(project, id, &request, Came::Resumed, &said, session.place.json)
}

/// A process that was killed may hold its lock a little longer than its socket: it is not there to ask, and opening
/// the run waits for the lock.
fn through_driver(
    project: &Project,
    id: &str,
    request: &Request,
    came: Came,
    said: &str,
    json: bool,
) -> Result<Option<CommandOutput>, Failure> {
    if !is_driven(project, id) {
        return Ok(None);
    }
    match send(project, id, request) {
        Ok(_) => done(project, id, came, said, json).map(Some),
        Err(failure) if failure.reason == NOT_THERE => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// One request to the process that drives the run.
pub(super) fn send(project: &Project, id: &str, request: &Request) -> Result<Value, Failure> {
    list::known(project, id)?;
    let hint = format!("See where it is: archeflow status {id}");
    let Some(holder) = Journal::driver(&project.places.events(), id) else {
        return Err(Failure { reason: NOT_THERE, ..Failure::usage(format!("no process drives {id}"), hint) });
    };
    let path = control::socket(&project.state, runtime().as_deref(), &project.places.events(), id);
    client::send(&path, request).map_err(|error| match error {
        client::Error::Refused { message, .. } => {
            Failure::new(21, "refused", format!("{id}: {message} (the run is driven by {holder})"), hint)
        }
        error @ (client::Error::Unreachable(_) | client::Error::NoReply(_)) => {
            Failure { reason: NOT_THERE, ..unreachable(&error.to_string()) }
        }
        error @ (client::Error::OtherUser | client::Error::Garbled) => unreachable(&error.to_string()),
    })
}

/// The reason of a failure to reach the process that drives a run.
const NOT_THERE: &str = "held";

fn unreachable(message: &str) -> Failure {
    Failure::new(21, "refused", message, "Wait until it ends, or press Ctrl-C where it runs.")
}

/// The result of a request.
#[derive(Clone, Copy)]
enum Came {
    Paused,
    Resumed,
    Answered,
    Stopping,
    Stopped,
}

impl Came {
    /// The `reason` of the run's object: the run has not ended, and this was done to it.
    fn reason(self) -> &'static str {
        match self {
            Came::Paused => "paused",
            Came::Resumed => "resumed",
            Came::Answered => "answered",
            Came::Stopping => "stopping",
            Came::Stopped => "interrupted",
        }
    }
}

fn done(project: &Project, id: &str, came: Came, said: &str, json: bool) -> Result<CommandOutput, Failure> {
    tell!("{said}");
    if !json {
        return Ok(CommandOutput::done());
    }
    let run = list::fold(project, id)?;
    let signal = matches!(came, Came::Stopped).then_some(2);
    let mut object = summary::json(project.places.root(), id, &run, run.outcome.as_ref(), 0, signal);
    object["reason"] = came.reason().into();
    Ok(CommandOutput::json(object))
}

/// The socket of a run that this process drives.
pub(crate) fn own_socket(world: &World) -> PathBuf {
    control::socket(&world.state, runtime().as_deref(), &world.places.events(), &world.run_id)
}

/// The socket of any run.
pub(crate) fn socket_of(project: &Project, id: &str) -> PathBuf {
    control::socket(&project.state, runtime().as_deref(), &project.places.events(), id)
}

fn runtime() -> Option<PathBuf> {
    std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute())
}
