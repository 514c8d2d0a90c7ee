//! The options of `archeflow fleet`.

use std::path::PathBuf;

use archeflow_fleet::server::ClusterNode;
use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Args)]
pub(crate) struct FleetArgs {
    #[command(subcommand)]
    pub(crate) what: FleetCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FleetCommand {
    /// Make the folder of a fleet's server: its configuration, keys and data
    Init(FleetInit),
    /// Start the message server of a fleet, and stop it when this command is stopped
    Serve(FleetServe),
    /// Add a worker, person or conductor, and write its join file
    Add(FleetAdd),
    /// Remove a member; its join file is of no use from then on
    Remove(FleetRemove),
    /// Show workers, orders, budgets, sprints and the server
    Status(FleetStatusArgs),
    /// Remove journals that ended long ago, and files that only they name
    Gc(FleetGcArgs),
    /// Show or set a budget that sprints share, or release what is left of a run
    Budget(FleetBudgetArgs),
}

impl FleetCommand {
    pub(crate) fn json(&self) -> bool {
        match self {
            FleetCommand::Init(args) => args.json,
            FleetCommand::Serve(_) => false,
            FleetCommand::Add(args) => args.json,
            FleetCommand::Remove(args) => args.json,
            FleetCommand::Status(args) => args.json,
            FleetCommand::Gc(args) => args.json,
            FleetCommand::Budget(args) => args.json,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct FolderArgs {
    /// Folder of the fleet [default: fleet-server in your state folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct FleetInit {
    #[command(flatten)]
    pub(crate) place: FolderArgs,
    /// Address the server listens on; 0.0.0.0:4222 for all interfaces
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:4222", value_parser = listen)]
    pub(crate) listen: String,
    /// Address by which members reach the server; repeatable [default: nats:// and the address of --listen]
    #[arg(long, value_name = "URL", value_parser = server)]
    pub(crate) server: Vec<String>,
    /// One of three servers, each on a machine of its own; given three times
    #[arg(long, value_name = "HOST:CLIENTPORT:CLUSTERPORT", conflicts_with_all = ["listen", "server"])]
    pub(crate) cluster: Vec<ClusterNode>,
    /// Disk space that a server may use, e.g. 500MB or 200GB; below 70 % of the disk
    #[arg(long, value_name = "SIZE", default_value = "10GB", value_parser = size)]
    pub(crate) disk: u64,
    /// Certificate of the server, as PEM
    #[arg(long, value_name = "FILE", requires_all = ["tls_key", "tls_ca"])]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Key of that certificate, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Certificate that signed it, as PEM; members trust no other
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_ca: Option<PathBuf>,
    /// Print the result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct FleetServe {
    #[command(flatten)]
    pub(crate) place: FolderArgs,
    /// The nats-server to start [default: ARCHEFLOW_NATS_SERVER, else the one on the PATH]
    #[arg(long, value_name = "PATH")]
    pub(crate) nats_server: Option<PathBuf>,
    /// Number of this server in a cluster, from 1, in the order given to `fleet init`
    #[arg(long, value_name = "N")]
    pub(crate) node: Option<u8>,
}

/// Who can be added.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum MemberKind {
    Worker,
    Person,
    Conductor,
}

#[derive(Debug, Args)]
pub(crate) struct FleetAdd {
    /// Role of the member
    #[arg(value_enum)]
    pub(crate) role: MemberKind,
    /// Name: letters, digits and -
    pub(crate) name: String,
    /// Write the join file here; it must not exist [default: NAME.join in the folder of the fleet]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) place: FolderArgs,
    /// Print the result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct FleetRemove {
    /// Name of the member
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) place: FolderArgs,
    /// Print the result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct FleetStatusArgs {
    /// Join file of a person or conductor
    #[arg(long, value_name = "FILE")]
    pub(crate) fleet: PathBuf,
    /// Print numbers for Prometheus
    #[arg(long, conflicts_with = "json")]
    pub(crate) prometheus: bool,
    /// Print the result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct FleetGcArgs {
    /// Join file of a conductor
    #[arg(long, value_name = "FILE")]
    pub(crate) fleet: PathBuf,
    /// Keep what was written in the last N days
    #[arg(long, value_name = "DAYS", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) older_than: u32,
    /// Show what would be removed and remove nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print the result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct FleetBudgetArgs {
    /// Name of the budget
    pub(crate) name: String,
    /// Most that may be spent, in dollars, or unlimited; makes the budget if there is none
    #[arg(long, value_name = "USD")]
    pub(crate) cap: Option<String>,
    /// Release what is reserved for this run, which will not report any more
    #[arg(long, value_name = "RUN")]
    pub(crate) release: Option<String>,
    /// Join file of a conductor
    #[arg(long, value_name = "FILE")]
    pub(crate) fleet: PathBuf,
    /// Print the result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

fn listen(text: &str) -> Result<String, String> {
    let known = text.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty() && !host.contains('/') && port.parse::<u16>().is_ok_and(|port| port > 0)
    });
    if known { Ok(text.to_owned()) } else { Err("HOST:PORT is needed, e.g. 0.0.0.0:4222".to_owned()) }
}

fn server(text: &str) -> Result<String, String> {
    let rest = text.strip_prefix("nats://").map(listen);
    match rest {
        Some(Ok(rest)) if !rest.contains('@') => Ok(text.to_owned()),
        Some(_) | None => {
            Err("nats://HOST:PORT is needed, e.g. nats://build.example.org:4222; encryption follows from --tls-cert".to_owned())
        }
    }
}

/// Below this a stream has no room for a message of the largest size.
const SMALLEST: u64 = 120_000_000;

fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text.get(digits.len()..).unwrap_or_default().to_ascii_uppercase().as_str() {
        "" | "B" => Some(1),
        "KB" | "K" => Some(1_000),
        "MB" | "M" => Some(1_000_000),
        "GB" | "G" => Some(1_000_000_000),
        "TB" | "T" => Some(1_000_000_000_000),
        _ => None,
    };
    let bytes =
        digits.trim().parse::<u64>().ok().zip(unit).and_then(|(number, unit)| number.checked_mul(unit));
    match bytes {
        Some(bytes) if bytes >= SMALLEST => Ok(bytes),
        Some(_) => Err("a server needs at least 120MB".to_owned()),
        None => Err("a number with a unit is needed, e.g. 500MB or 200GB".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fl_80_sizes_and_addresses_of_a_fleet_are_read() {
        for (text, expected) in
            [("120MB", Some(120_000_000)), ("10GB", Some(10_000_000_000)), ("2tb", Some(2_000_000_000_000))]
        {
            assert_eq!(size(text).ok(), expected, "{text}");
        }
        for wrong in ["", "GB", "1MB", "10 apples", "-1GB", "1.5GB", "99999999999TB"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
        for right in ["0.0.0.0:4222", "[::1]:4222", "localhost:1"] {
            assert!(listen(right).is_ok() && server(&format!("nats://{right}")).is_ok(), "{right}");
        }
        for wrong in ["", "4222", ":4222", "host:", "host:0", "host:70000"] {
            assert!(listen(wrong).is_err() && server(&format!("nats://{wrong}")).is_err(), "{wrong}");
        }
        for wrong in ["host:4222", "tls://host:4222", "nats://user:secret@host:4222", "nats://host/x:1"] {
            assert!(server(wrong).is_err(), "{wrong}");
        }
    }
}
