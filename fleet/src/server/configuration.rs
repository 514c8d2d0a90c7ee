//! The configuration of `nats-server`: one file for one server, and one for each server of a cluster.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::permissions::permissions;
use crate::join::FleetRole;

/// What a fleet was made with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetSettings {
    pub v: u32,
    /// `host:port` that the server listens on. Servers of a cluster listen where their nodes say.
    pub listen: String,
    /// Where members reach it.
    pub servers: Vec<String>,
    /// All that a server may keep, in bytes.
    pub disk: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsFiles>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<FleetCluster>,
    #[serde(default)]
    pub members: Vec<FleetMember>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsFiles {
    pub cert: PathBuf,
    pub key: PathBuf,
    pub ca: PathBuf,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetMember {
    pub name: String,
    pub role: FleetRole,
    /// The public half.
    pub key: String,
}

/// Servers that keep everything together: each message is on most of them before it is acknowledged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetCluster {
    pub nodes: Vec<ClusterNode>,
    pub secret: RouteSecret,
}

/// By which servers of a cluster know each other. Everybody who has it can read and write everything.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteSecret(pub String);

impl fmt::Debug for RouteSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RouteSecret")
    }
}

/// One server of a cluster, as members and the other servers reach it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterNode {
    pub host: String,
    /// For members.
    pub client: u16,
    /// For the other servers.
    pub cluster: u16,
}

impl FromStr for ClusterNode {
    type Err = String;

    fn from_str(text: &str) -> Result<ClusterNode, String> {
        let mut parts = text.rsplitn(3, ':');
        let mut port = || parts.next().and_then(|port| port.parse::<u16>().ok()).filter(|port| *port > 0);
        let (cluster, client) = (port(), port());
        let host = parts.next().filter(|host| is_host(host));
        match (host, client, cluster) {
            (Some(host), Some(client), Some(cluster)) if client != cluster => {
                Ok(ClusterNode { host: host.to_owned(), client, cluster })
            }
            _ => Err("HOST:CLIENTPORT:CLUSTERPORT is needed, e.g. nats-1.example.org:4222:6222".to_owned()),
        }
    }
}

/// A name, an address, or an address of IPv6 in brackets.
fn is_host(host: &str) -> bool {
    let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    match inner {
        Some(inner) => inner.parse::<IpAddr>().is_ok(),
        None => {
            let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
            !host.is_empty() && host.chars().all(known)
        }
    }
}

impl ClusterNode {
    pub fn address(&self) -> String {
        format!("nats://{}:{}", self.host, self.client)
    }

    /// On all interfaces: the name by which others reach a machine need not be its own. Except on one machine alone.
    fn listens(&self, port: u16) -> String {
        let bare = self.host.trim_matches(['[', ']']);
        let alone = bare == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        if alone { format!("{}:{port}", self.host) } else { format!("0.0.0.0:{port}") }
    }
}

impl FleetSettings {
    /// How often everything is kept.
    pub fn copies(&self) -> u8 {
        let nodes = self.cluster.as_ref().map_or(1, |cluster| cluster.nodes.len());
        u8::try_from(nodes).unwrap_or(u8::MAX)
    }

    /// Every server's number; none for a server that is alone.
    pub(super) fn numbers(&self) -> Vec<Option<u8>> {
        if self.cluster.is_some() { (1..=self.copies()).map(Some).collect() } else { vec![None] }
    }

    pub(super) fn node(&self, number: Option<u8>) -> Option<&ClusterNode> {
        self.cluster.as_ref()?.nodes.get(usize::from(number?).checked_sub(1)?)
    }
}

/// Names of files in the folder of a fleet that belong to one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerFiles {
    pub(super) configuration: String,
    pub(super) pid: String,
    pub(super) log: String,
    pub(super) data: String,
    pub(super) lock: String,
}

impl ServerFiles {
    pub(super) fn of(number: Option<u8>) -> ServerFiles {
        let end = number.map(|number| format!("-{number}")).unwrap_or_default();
        ServerFiles {
            configuration: format!("server{end}.conf"),
            pid: format!("server{end}.pid"),
            log: format!("server{end}.log"),
            data: format!("data{end}"),
            lock: format!("serve{end}"),
        }
    }
}

/// What the server of this number reads. It reads JSON as well as a form of its own.
pub(super) fn configuration(settings: &FleetSettings, number: Option<u8>) -> Value {
    let users: Vec<Value> = settings
        .members
        .iter()
        .map(|member| {
            let may = permissions(member.role, &member.name);
            json!({
                "nkey": member.key,
                "permissions": {"publish": {"allow": may.publish}, "subscribe": {"allow": may.subscribe}},
            })
        })
        .collect();
    let files = ServerFiles::of(number);
    let mut all = json!({
        "server_name": number.map_or_else(|| "archeflow".to_owned(), |number| format!("archeflow-{number}")),
        "listen": settings.listen,
        "pid_file": files.pid,
        "logfile": files.log,
        "logfile_size_limit": 10_000_000,
        "logfile_max_num": 5,
        "max_payload": 1_048_576,
        // What was acknowledged is on the disk.
        "jetstream": {
            "store_dir": files.data,
            "max_file_store": settings.disk,
            "max_memory_store": 16_000_000,
            "sync_interval": "always",
        },
        "accounts": {"FLEET": {"jetstream": "enabled", "users": users}},
    });
    if let Some(tls) = &settings.tls {
        all["tls"] = json!({"cert_file": tls.cert, "key_file": tls.key});
    }
    if let (Some(cluster), Some(node)) = (&settings.cluster, settings.node(number)) {
        all["listen"] = json!(node.listens(node.client));
        all["cluster"] = routes(settings, cluster, node);
    }
    all
}

/// How the servers reach each other.
fn routes(settings: &FleetSettings, cluster: &FleetCluster, node: &ClusterNode) -> Value {
    const USER: &str = "route";
    let secret = &cluster.secret.0;
    let others = cluster.nodes.iter().filter(|other| *other != node);
    let others: Vec<String> = others
        .map(|other| format!("nats-route://{USER}:{secret}@{}:{}", other.host, other.cluster))
        .collect();
    let mut routes = json!({
        "name": "archeflow",
        "listen": node.listens(node.cluster),
        "advertise": format!("{}:{}", node.host, node.cluster),
        "no_advertise": true,
        "authorization": {"user": USER, "password": secret, "timeout": 5},
        "routes": others,
    });
    if let Some(tls) = &settings.tls {
        // Each shows its certificate to the other.
        routes["tls"] = json!({"cert_file": tls.cert, "key_file": tls.key, "ca_file": tls.ca, "verify": true, "timeout": 5});
    }
    routes
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use super::*;

    fn settings(nodes: &[&str]) -> FleetSettings {
        let nodes: Vec<ClusterNode> = nodes.iter().map(|node| node.parse().unwrap()).collect();
        let secret = RouteSecret("hush".to_owned());
        FleetSettings {
            v: 1,
            listen: "127.0.0.1:4222".to_owned(),
            servers: nodes.iter().map(ClusterNode::address).collect(),
            disk: 1_000_000,
            tls: None,
            cluster: (!nodes.is_empty()).then_some(FleetCluster { nodes, secret }),
            members: Vec::new(),
        }
    }

    #[test]
    fn fl_80_nodes_of_a_cluster_are_read_and_others_refused() {
        for (text, host, client, cluster) in [
            ("nats-1.example.org:4222:6222", "nats-1.example.org", 4222, 6222),
            ("10.0.0.1:1:2", "10.0.0.1", 1, 2),
            ("[::1]:4222:6222", "[::1]", 4222, 6222),
        ] {
            let expected = ClusterNode { host: host.to_owned(), client, cluster };
            assert_eq!(text.parse::<ClusterNode>(), Ok(expected), "{text}");
        }
        for wrong in
            ["", "a", "a:1", "a:1:x", "a:0:2", "a:1:70000", ":1:2", "a:1:1", "a b:1:2", "::1:1:2", "u@h:1:2"]
        {
            assert!(wrong.parse::<ClusterNode>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn fl_80_one_server_has_no_routes_and_three_know_each_other() {
        let one = configuration(&settings(&[]), None);
        assert_eq!((&one["listen"], &one["cluster"]), (&json!("127.0.0.1:4222"), &Value::Null));
        assert_eq!(one["jetstream"]["store_dir"], "data");
        let three = settings(&["a.example:4222:6222", "b.example:4222:6222", "127.0.0.1:4223:6223"]);
        assert_eq!((three.copies(), three.numbers().len()), (3, 3));
        let first = configuration(&three, Some(1));
        assert_eq!(first["server_name"], "archeflow-1");
        assert_eq!(first["listen"], "0.0.0.0:4222");
        assert_eq!(first["cluster"]["advertise"], "a.example:6222");
        let expected = ["nats-route://route:hush@b.example:6222", "nats-route://route:hush@127.0.0.1:6223"];
        assert_eq!(first["cluster"]["routes"], json!(expected));
        assert_eq!(configuration(&three, Some(3))["listen"], "127.0.0.1:4223");
        assert!(three.node(Some(0)).is_none() && three.node(Some(4)).is_none() && three.node(None).is_none());
        assert!(!format!("{three:?}").contains("hush"), "the secret is printed");
    }
}
