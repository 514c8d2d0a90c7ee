//! The fleet's server: a folder with its configuration, keys and data, and the `nats-server` that is started with it.
//!
//! `fleet.json` is what was asked for: address, disk, certificates, and who belongs to the fleet with which public key.
//! `server.conf` is made from it (`server-1.conf` and so on in a cluster), and so are join files, each once.

mod configuration;
mod folder;
mod permissions;
mod process;

pub use configuration::{ClusterNode, FleetCluster, FleetMember, FleetSettings, RouteSecret, TlsFiles};
pub use folder::{FleetFolder, ServerFault};
pub use permissions::{Permissions, permissions};
pub use process::{FleetServer, ServerEnd, find_server};
