//! `archeflow fleet`: the message server of a fleet, who belongs to it, and what operators look at and clean up.

mod operate;
mod server;

use std::path::{Path, PathBuf};
use std::time::Duration;

use archeflow_fleet::bus::BusError;
use archeflow_fleet::join::{FleetRole, JoinError, JoinFile};
use archeflow_fleet::nats::{NatsBus, NatsOptions};
use archeflow_fleet::server::{FleetFolder, ServerFault};
use archeflow_host::store::places::Places;

use crate::args::{FleetCommand, FolderArgs};
use crate::commands::process_env;
use crate::failure::Failure;
use crate::output::CommandOutput;

/// The folder of a server in the user's state folder. Workers have theirs beside it.
const FOLDER: &str = "fleet-server";

pub(crate) fn run(what: &FleetCommand) -> Result<CommandOutput, Failure> {
    match what {
        FleetCommand::Init(args) => server::init(args),
        FleetCommand::Serve(args) => server::serve(args),
        FleetCommand::Add(args) => server::add(args),
        FleetCommand::Remove(args) => server::remove(args),
        FleetCommand::Status(args) => operate::status(args),
        FleetCommand::Gc(args) => operate::gc(args),
        FleetCommand::Budget(args) => operate::budget(args),
    }
}

/// Where the fleet is, or is to be made.
fn folder(args: &FolderArgs) -> Result<PathBuf, Failure> {
    let env = process_env()?;
    match &args.folder {
        Some(folder) => Ok(env.cwd.join(folder)),
        None => Ok(Places::state_dir_made_elsewhere(&env.places())?.join(FOLDER)),
    }
}

fn open(args: &FolderArgs) -> Result<FleetFolder, Failure> {
    Ok(FleetFolder::open(&folder(args)?)?)
}

/// A connection that may give orders.
pub(crate) struct ConductorLink {
    pub(crate) bus: NatsBus,
    /// Of the member.
    pub(crate) name: String,
    pub(crate) lease: Duration,
}

/// Joins a fleet to give orders to workers that offer what is needed.
pub(crate) fn as_conductor(
    file: &Path,
    need: &[String],
    lease_seconds: Option<u64>,
) -> Result<ConductorLink, Failure> {
    let join = JoinFile::read(file)?;
    if join.role != FleetRole::Conductor {
        return Err(Failure::usage(
            format!(
                "the join file {} is that of a {}; only a conductor may give orders",
                file.display(),
                join.role
            ),
            "Make one where the server is, and copy it here: archeflow fleet add conductor <name>",
        ));
    }
    if let Some(wrong) = need.iter().find(|need| !need.contains(':') || need.contains(char::is_whitespace)) {
        return Err(Failure::usage(
            format!("--need '{wrong}' is nothing that a worker offers"),
            "For example: --need agent:claude, --need os:linux, --need label:gpu",
        ));
    }
    let standard = NatsOptions::default();
    let lease = lease_seconds.map_or(standard.lease, Duration::from_secs);
    let bus = NatsBus::connect(&join, NatsOptions { lease, ..standard })?;
    Ok(ConductorLink { bus, name: join.name, lease })
}

/// A connection as the member of a join file, if its role is one of these.
fn connect(path: &Path, roles: &[FleetRole]) -> Result<(NatsBus, JoinFile), Failure> {
    let join = JoinFile::read(&process_env()?.cwd.join(path))?;
    if !roles.contains(&join.role) {
        let names: Vec<String> = roles.iter().map(ToString::to_string).collect();
        let message = format!(
            "{} is the join file of a {}; that of a {} is needed",
            path.display(),
            join.role,
            names.join(" or ")
        );
        let remedy = format!("Add one where the server is: archeflow fleet add {} <name>", names.join("|"));
        return Err(Failure::usage(message, remedy));
    }
    let bus = NatsBus::connect(&join, NatsOptions::default())?;
    Ok((bus, join))
}

impl From<ServerFault> for Failure {
    fn from(fault: ServerFault) -> Failure {
        let (message, hint) = (fault.to_string(), fault.remedy());
        match fault {
            ServerFault::NoFleet { .. }
            | ServerFault::BadName { .. }
            | ServerFault::Known { .. }
            | ServerFault::Unknown { .. }
            | ServerFault::Needed { .. }
            | ServerFault::NoNode { .. }
            | ServerFault::Tls { .. } => Failure::usage(message, hint),
            ServerFault::Join(error) => error.into(),
            ServerFault::Files(error) => Failure { hint, ..error.into() },
            ServerFault::Settings { .. }
            | ServerFault::NoServer
            | ServerFault::NotAServer { .. }
            | ServerFault::ServerVersion { .. }
            | ServerFault::NotReady { .. }
            | ServerFault::Died { .. }
            | ServerFault::Stopped
            | ServerFault::LayOut(_)
            | ServerFault::Members(_)
            | ServerFault::Lock(_)
            | ServerFault::Io { .. } => Failure::new(30, "environment", message, hint),
        }
    }
}

impl From<JoinError> for Failure {
    fn from(error: JoinError) -> Failure {
        let (message, hint) = (error.to_string(), error.remedy());
        match error {
            JoinError::Open { .. } => Failure::new(21, "refused", message, hint),
            JoinError::Unreadable { .. }
            | JoinError::Format { .. }
            | JoinError::Newer { .. }
            | JoinError::Certificate { .. }
            | JoinError::Unwritable { .. } => Failure::usage(message, hint),
            JoinError::Unreachable { .. }
            | JoinError::Tls { .. }
            | JoinError::Refused { .. }
            | JoinError::Version { .. }
            | JoinError::Runtime(_) => Failure::new(30, "fleet", message, hint),
        }
    }
}

impl From<BusError> for Failure {
    fn from(error: BusError) -> Failure {
        let hint = match &error {
            BusError::NoAnswer(_) => "Is the server running there (archeflow fleet serve)? Then try again.",
            BusError::Denied(_) => {
                "The role of the join file has no permission for it; docs/fleet-operations.md lists the roles."
            }
            BusError::Full(_) => {
                "Remove what is not needed any more: archeflow fleet gc --fleet <conductor's join file>"
            }
            BusError::Wrong(_) => "",
        };
        Failure::new(30, "fleet", error.to_string(), hint)
    }
}
