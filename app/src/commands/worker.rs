//! `archeflow worker`: performs the orders of a fleet on this machine.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use archeflow_core::sprint::event::RunEnd;
use archeflow_fleet::bus::{Bus, BusError};
use archeflow_fleet::join::{FleetRole, JoinFile};
use archeflow_fleet::message::{self, Control, ControlCommand, FORMAT, FleetOrder, Heartbeat, Work};
use archeflow_fleet::names;
use archeflow_fleet::nats::{NatsBus, NatsOptions};
use archeflow_fleet::shift::{self, ShiftFault, ShiftObserver, ShiftSetup, ShiftStop};
use archeflow_fleet::worker::Served;
use archeflow_host::open::ProcessEnv;
use archeflow_host::platform::machine;
use archeflow_host::proc;
use archeflow_host::store::places::Places;

use crate::args::{WorkerArgs, WorkerCommand, WorkerDrain};
use crate::commands::process_env;
use crate::commands::trust::only_from_outside;
use crate::failure::Failure;
use crate::output::CommandOutput;
use crate::render::text::{cut, safe_line};

/// A worker says something every ten seconds.
const DRAIN: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_secs(1);

pub(crate) fn run(args: &WorkerArgs) -> Result<CommandOutput, Failure> {
    only_from_outside("work for a fleet")?;
    match &args.what {
        Some(WorkerCommand::Drain(args)) => drain(args),
        None => work(args),
    }
}

fn work(args: &WorkerArgs) -> Result<CommandOutput, Failure> {
    let file = args.join.as_deref().unwrap_or(Path::new(""));
    let join = read_join(file, FleetRole::Worker)?;
    // The command line was read, which takes a good part of the program.
    machine::release_program();
    let env = ProcessEnv { no_sandbox: args.unsafe_no_sandbox, ..process_env()? };
    let folder = match &args.folder {
        Some(folder) => env.cwd.join(folder),
        None => Places::state_dir_made_elsewhere(&env.places())?.join(format!("fleet/worker-{}", join.name)),
    };
    let stop = Arc::new(ShiftStop::default());
    let heard = Arc::clone(&stop);
    let listening = proc::signals::listen(move |_| heard.ask());
    listening.map_err(|error| Failure::new(30, "environment", error.to_string(), ""))?;
    let setup =
        ShiftSetup { join, folder, slots: args.slots, labels: args.label.clone(), env, waits: args.wait };
    tell!(
        "{} works for {}, {} at a time, in {}; Ctrl-C hands its orders back",
        setup.join.name,
        safe_line(&setup.join.servers.join(", ")),
        setup.slots,
        safe_line(&setup.folder.display().to_string())
    );
    shift::work(&setup, &stop, &Lines).map_err(|fault| match fault {
        ShiftFault::Join(error) => error.into(),
        in_use @ ShiftFault::InUse { .. } => {
            Failure::new(21, "in_use", in_use.to_string(), "Stop it, or name another folder: --folder <dir>")
        }
        other @ ShiftFault::Io { .. } => Failure::new(30, "environment", other.to_string(), ""),
    })?;
    tell!("{} has ended", setup.join.name);
    Ok(CommandOutput::done())
}

fn read_join(file: &Path, role: FleetRole) -> Result<JoinFile, Failure> {
    let join = JoinFile::read(file)?;
    if join.role != role {
        return Err(Failure::usage(
            format!("the join file {} is that of a {}, and a {role}'s is needed", file.display(), join.role),
            format!("Make one where the server is: archeflow fleet add {role} <name>"),
        ));
    }
    Ok(join)
}

/// A line for each order that begins and ends.
struct Lines;

impl ShiftObserver for Lines {
    fn note(&self, text: &str) {
        tell!("{}", safe_line(text));
    }

    fn warn(&self, text: &str) {
        tell!("warning: {}", safe_line(text));
    }

    fn began(&self, order: &FleetOrder, run: &str) {
        let what = match &order.work {
            Work::Run { .. } | Work::Trial { .. } => "begins",
            Work::Resume { .. } => "is resumed",
            Work::Land { .. } | Work::Batch { .. } => "is to land",
        };
        tell!("{} {what} ({})", safe_line(run), safe_line(&order.repository.name));
    }

    fn ended(&self, run: &str, served: &Served, end: Option<&RunEnd>) {
        // Of an order that can't be read nobody knows the run.
        let run = if run.is_empty() { "an order".to_owned() } else { safe_line(run) };
        match (served, end) {
            (Served::Reported, Some(end)) => {
                let status = end.status.map_or("has no result", |status| status.name());
                let detail = cut(&safe_line(&end.detail), 300);
                let detail = if detail.is_empty() { detail } else { format!(": {detail}") };
                tell!("{run} {status}{detail}");
            }
            (Served::Reported, None) => tell!("{run} is done"),
            (Served::Fenced, _) => tell!("{run} was continued by another worker; nothing was landed here"),
            (Served::GaveUp(why), _) => tell!("{run} is handed back: {}", safe_line(why)),
            (Served::NotForUs, _) => tell!("{run} needs a newer version of archeflow, and is handed back"),
            (Served::Broken(why), _) => tell!("warning: an order can't be read: {}", safe_line(why)),
        }
    }
}

/// Says it until the worker's heartbeat shows it.
fn drain(args: &WorkerDrain) -> Result<CommandOutput, Failure> {
    let join = read_join(&args.join, FleetRole::Conductor)?;
    let bus = NatsBus::connect(&join, NatsOptions::default())?;
    let lost = |error: BusError| Failure::new(30, "fleet", error.to_string(), "");
    let heard = bus.hear(&names::heartbeat(&args.name)).map_err(lost)?;
    let control = Control { v: FORMAT, command: ControlCommand::Drain };
    let text = serde_json::to_vec(&control)
        .map_err(|error| Failure::new(30, "environment", error.to_string(), ""))?;
    let begun = Instant::now();
    while begun.elapsed() < DRAIN {
        bus.say(&names::control(&args.name), &text).map_err(lost)?;
        let Ok(beat) = heard.recv_timeout(LOOK) else { continue };
        if let Ok(beat) = message::read::<Heartbeat>(&beat.bytes)
            && beat.draining
        {
            let left = beat.holds.len();
            return Ok(CommandOutput::text(format!("{} takes nothing new; {left} under way\n", args.name)));
        }
    }
    Err(Failure::new(
        30,
        "no_heartbeat",
        format!("nothing was heard of a worker '{}' in {} s", args.name, DRAIN.as_secs()),
        "Is its name right, and does it run? archeflow fleet status",
    ))
}
