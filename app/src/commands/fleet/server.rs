//! `archeflow fleet init`, `serve`, `add` and `remove`.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use archeflow_core::text::byte_size;
use archeflow_fleet::join::FleetRole;
use archeflow_fleet::server::{
    ClusterNode, FleetCluster, FleetFolder, FleetServer, FleetSettings, RouteSecret, ServerFault, TlsFiles,
    find_server,
};
use archeflow_host::platform::machine;
use archeflow_host::proc;
use serde_json::json;

use crate::args::{FleetAdd, FleetInit, FleetRemove, FleetServe, FolderArgs, MemberKind};
use crate::commands::fleet::{folder, open};
use crate::commands::process_env;
use crate::commands::trust::only_from_outside;
use crate::failure::Failure;
use crate::output::CommandOutput;
use crate::render::text::safe_line;

/// Servers of a cluster: with three, one may be lost.
const CLUSTER: usize = 3;
/// Of the free disk, in hundredths: a disk that is really full stops the server.
const MOST: u64 = 70;

pub(super) fn init(args: &FleetInit) -> Result<CommandOutput, Failure> {
    only_from_outside("make a fleet")?;
    let place = folder(&args.place)?;
    let (fleet, is_new) = FleetFolder::init(&place, &settings(args)?)?;
    let settings = fleet.settings()?;
    if args.json {
        return Ok(CommandOutput::json(json!({
            "folder": fleet.path(), "new": is_new, "servers": settings.servers, "copies": settings.copies(),
            "disk_bytes": settings.disk, "tls": settings.tls.is_some(),
        })));
    }
    let mut out = String::new();
    let shown = safe_line(&fleet.path().display().to_string());
    if is_new {
        put!(out, "Made a fleet in {shown}; it holds keys, so keep it private.");
    } else {
        put!(out, "There is a fleet in {shown} already; nothing was changed.");
    }
    put!(
        out,
        "Members reach it at {}; it keeps at most {}.",
        settings.servers.join(", "),
        byte_size(settings.disk)
    );
    let free = machine::free_space(fleet.path());
    if free.is_some_and(|free| settings.disk > free / 100 * MOST) {
        put!(out, "warning: that is more than {MOST} % of the free disk; a full disk stops the server.");
    }
    if settings.tls.is_none() && !is_local(&settings) {
        put!(out, "warning: without --tls-cert everything between the machines can be read on the way.");
    }
    let at = at(&args.place);
    put!(out, "Next:");
    if settings.cluster.is_some() {
        put!(out, "  Add members:     archeflow fleet add worker|person|conductor <name>{at}");
        put!(out, "  Copy the folder to all machines, then start each, in the order of --cluster:");
        put!(out, "                   archeflow fleet serve --node 1{at}   (2 and 3 on the others)");
    } else {
        put!(out, "  Start it:        archeflow fleet serve{at}");
        put!(out, "  Add members:     archeflow fleet add worker|person|conductor <name>{at}");
    }
    Ok(CommandOutput::text(out))
}

/// The option that names the same folder again.
fn at(args: &FolderArgs) -> String {
    args.folder
        .as_ref()
        .map(|folder| format!(" --folder {}", safe_line(&folder.display().to_string())))
        .unwrap_or_default()
}

fn is_local(settings: &FleetSettings) -> bool {
    let local = ["nats://127.", "nats://localhost:", "nats://[::1]:"];
    settings.servers.iter().all(|server| local.iter().any(|start| server.starts_with(start)))
}

fn settings(args: &FleetInit) -> Result<FleetSettings, Failure> {
    if !args.cluster.is_empty() && args.cluster.len() != CLUSTER {
        return Err(Failure::usage(
            format!("a cluster has three servers; {} given", args.cluster.len()),
            "With three, one may be lost. Give --cluster three times, or leave it out for one server.",
        ));
    }
    let everywhere = ["0.0.0.0:", "[::]:"].iter().any(|start| args.listen.starts_with(start));
    let servers = if !args.cluster.is_empty() {
        args.cluster.iter().map(ClusterNode::address).collect()
    } else if !args.server.is_empty() {
        args.server.clone()
    } else if everywhere {
        return Err(Failure::usage(
            format!("{} is no address that members can reach", args.listen),
            "Name one they can: --server nats://<this machine>:4222",
        ));
    } else {
        vec![format!("nats://{}", args.listen)]
    };
    let cwd = process_env()?.cwd;
    // The server is started in its own folder.
    let tls = match (&args.tls_cert, &args.tls_key, &args.tls_ca) {
        (Some(cert), Some(key), Some(ca)) => {
            Some(TlsFiles { cert: cwd.join(cert), key: cwd.join(key), ca: cwd.join(ca) })
        }
        _ => None,
    };
    let cluster = match args.cluster.as_slice() {
        [] => None,
        nodes => Some(FleetCluster { nodes: nodes.to_vec(), secret: secret()? }),
    };
    let listen = args.listen.clone();
    Ok(FleetSettings { v: 1, listen, servers, disk: args.disk, tls, cluster, members: Vec::new() })
}

fn secret() -> Result<RouteSecret, Failure> {
    let mut random = [0; 24];
    machine::random(&mut random).map_err(|error| Failure::new(30, "environment", error.to_string(), ""))?;
    Ok(RouteSecret(random.iter().map(|byte| format!("{byte:02x}")).collect()))
}

pub(super) fn serve(args: &FleetServe) -> Result<CommandOutput, Failure> {
    only_from_outside("start a server")?;
    let fleet = open(&args.place)?;
    let settings = fleet.settings()?;
    let (program, version) = find_server(args.nats_server.as_deref(), |name| std::env::var_os(name))?;
    let stop = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&stop);
    let listening = proc::signals::listen(move |_| asked.store(true, Ordering::SeqCst));
    listening.map_err(|error| Failure::new(30, "environment", error.to_string(), ""))?;
    tell!("Starting nats-server {version} ({}).", safe_line(&program.display().to_string()));
    if settings.cluster.is_some() {
        tell!("It is ready when the other servers of the cluster are there.");
    }
    let mut server = match FleetServer::start_node(&fleet, &program, args.node, &stop) {
        Ok(server) => server,
        Err(ServerFault::Stopped) => return Ok(CommandOutput::done()),
        Err(fault) => return Err(fault.into()),
    };
    tell!("Ready: members reach it at {}.", settings.servers.join(", "));
    tell!("Ctrl-C ends it. Agents that are running continue, and nothing new begins until it is back.");
    server.stay(&fleet, &stop)?;
    tell!("Ending the server.");
    drop(server);
    Ok(CommandOutput::done())
}

pub(super) fn add(args: &FleetAdd) -> Result<CommandOutput, Failure> {
    only_from_outside("add members to a fleet")?;
    let fleet = open(&args.place)?;
    let out = match &args.out {
        Some(out) => Some(process_env()?.cwd.join(out)),
        None => None,
    };
    let role = match args.role {
        MemberKind::Worker => FleetRole::Worker,
        MemberKind::Person => FleetRole::Person,
        MemberKind::Conductor => FleetRole::Conductor,
    };
    let path = fleet.add(role, &args.name, out.as_deref())?;
    let told = fleet.reload();
    if args.json {
        return Ok(CommandOutput::json(json!({
            "name": args.name, "role": role, "join_file": path, "server_reloaded": told,
        })));
    }
    let mut text = String::new();
    put!(text, "{} is a {role} now. Join file: {}", args.name, safe_line(&path.display().to_string()));
    put!(
        text,
        "It holds the key of {}: copy it to its machine with mode 600, and keep no other copy.",
        args.name
    );
    put!(text, "Use it there:    {}", used(role, &path));
    put!(text, "{}", effect(&fleet, told)?);
    Ok(CommandOutput::text(text))
}

/// The command that a member types.
fn used(role: FleetRole, path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = safe_line(&name);
    match role {
        FleetRole::Worker => format!("archeflow worker --join {name}"),
        FleetRole::Conductor => format!("archeflow sprint run --fleet {name}"),
        FleetRole::Person | FleetRole::Serve => format!("archeflow fleet status --fleet {name}"),
    }
}

/// When a change of the members takes effect.
fn effect(fleet: &FleetFolder, told: bool) -> Result<&'static str, Failure> {
    let together = fleet.settings()?.cluster.is_some();
    Ok(match (together, told) {
        (true, _) => {
            "Copy fleet.json and the server-*.conf of this folder to the other servers; they take effect there at once."
        }
        (false, true) => "The running server has read it.",
        (false, false) => "The server reads it when it starts: archeflow fleet serve",
    })
}

pub(super) fn remove(args: &FleetRemove) -> Result<CommandOutput, Failure> {
    only_from_outside("remove members of a fleet")?;
    let fleet = open(&args.place)?;
    fleet.remove(&args.name)?;
    let told = fleet.reload();
    if args.json {
        return Ok(CommandOutput::json(json!({ "name": args.name, "server_reloaded": told })));
    }
    let mut text = String::new();
    put!(text, "{} was removed; its join file opens nothing any more.", safe_line(&args.name));
    put!(text, "{}", effect(&fleet, told)?);
    Ok(CommandOutput::text(text))
}
