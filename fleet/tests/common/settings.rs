//! A fleet with one server on this machine.

use std::net::TcpListener;

use archeflow_fleet::server::FleetSettings;

/// Its port was free a moment ago.
pub(crate) fn one_server(disk: u64) -> FleetSettings {
    let listen = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let servers = vec![format!("nats://{listen}")];
    FleetSettings { v: 1, listen, servers, disk, tls: None, cluster: None, members: Vec::new() }
}
