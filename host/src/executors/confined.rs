//! The sandbox of an agent: what it needs goes in, its way to the model is opened, and everything else stays out.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use archeflow_core::model::Role;

use super::client;
use super::held_key::KeyHolding;
use crate::backends::AgentBackend;
use crate::backends::cli::{LinkedFile, Start};
use crate::backends::needs::{self, AgentNeeds, NeedsInputs};
use crate::nonce::nonce;
use crate::platform::files as os;
use crate::sandbox::proxy::{HostList, Proxy, is_loopback, of_url, variables as variables_of};
use crate::sandbox::{
    ClientNeeds, LocalPort, PrivateFolders, ProxyAccess, Sandbox, SandboxChoice, SandboxLevel, SandboxPolicy,
};
use crate::world::{World, WorldSandbox};

/// An agent's sandbox with what has to live as long as it does.
#[derive(Default)]
pub(super) struct AgentSandbox {
    pub(super) sandbox: Option<Sandbox>,
    proxy: Option<Proxy>,
    /// Logins that were linked into its home beside those of its client.
    logins: Vec<LinkedFile>,
    home: PathBuf,
}

/// What a sandbox is made for.
pub(super) struct AgentPlace<'a> {
    pub(super) agent: &'a AgentBackend,
    pub(super) role: Role,
    pub(super) tree: &'a Path,
    pub(super) private: PrivateFolders,
    /// A folder that only this program uses.
    pub(super) scratch: &'a Path,
    pub(super) env: &'a [(OsString, OsString)],
    /// The proxy that has its key.
    pub(super) held: Option<&'a KeyHolding>,
}

impl AgentSandbox {
    /// Makes the sandbox, opens the proxy, and links logins into the home. Without a sandbox nothing is changed.
    pub(super) fn make(world: &World, place: &AgentPlace<'_>, start: &mut Start) -> io::Result<AgentSandbox> {
        let WorldSandbox::On { level, choice } = &world.sandbox else { return Ok(AgentSandbox::default()) };
        let variables = variables(world, place, start);
        let mut needs = needs::of(
            place.agent,
            NeedsInputs {
                variables: &variables,
                linked: &start.linked,
                me: &world.me,
                checkout: world.places.root(),
                state: &world.state,
            },
        );
        if let Some(held) = place.held {
            // Without a key of its own it has no use for other hosts.
            needs.hosts.clear();
            needs.configured = vec![held.proxy.door()];
        }
        if choice.hold_keys && !needs.logins.is_empty() {
            let why =
                "sandbox.keys is proxy, which does not work with a client in a command line that has a login";
            return Err(io::Error::other(format!("{why}; set sandbox.keys to agent to give it its login")));
        }
        let strict = matches!(place.agent, AgentBackend::Cli(client, _) if !client.is_own());
        if let (SandboxLevel::Landlock { remedy, .. }, true, true) = (level, needs.own_sandbox, strict) {
            let why = "it has a sandbox of its own, which works only within bubblewrap";
            return Err(io::Error::other(format!("{why}. To get that: {remedy}")));
        }
        needs::by_its_path(&mut start.invocation, &variables);
        let own_loopback = matches!(level, SandboxLevel::Bubblewrap { .. });
        let proxy = open_proxy(choice, &needs, place.scratch, own_loopback)?;
        let logins = link(&needs, choice, &place.private.home, &variables)?;
        let mut writable = needs.writable;
        if let AgentBackend::Cli(..) = place.agent {
            // It keeps its sessions there, and sets their permissions.
            writable.push(place.private.home.clone());
        }
        let client_needs = ClientNeeds {
            readable: needs.readable,
            writable,
            proxy: proxy.as_ref().map(|opened| opened.access.clone()),
            own_sandbox: needs.own_sandbox,
        };
        let tree = place.tree;
        let made = world.sandbox_in(&place.private, |facts| match place.role {
            Role::Maker => SandboxPolicy::for_maker(facts, tree, &client_needs),
            Role::Explorer | Role::Creator | Role::Gatekeeper | Role::Reviewer => {
                SandboxPolicy::for_reader(facts, tree, &client_needs)
            }
        })?;
        let dependencies = world.dependencies().filter(|_| place.role == Role::Maker);
        dependencies.as_ref().map_or(Ok(()), |found| found.make_places(tree))?;
        let sandbox = made.map(|mut sandbox| {
            // Its client knows better where its folders are.
            let set = |name: &OsString| start.env.iter().any(|(known, _)| known == name);
            sandbox.policy.env.retain(|(name, _)| !set(name));
            sandbox.policy.env.extend(proxy.iter().flat_map(|opened| opened.variables.clone()));
            dependencies.iter().for_each(|found| found.show(&mut sandbox.policy, tree));
            sandbox
        });
        let home = place.private.home.clone();
        Ok(AgentSandbox { sandbox, proxy: proxy.map(|opened| opened.proxy), logins, home })
    }

    /// Hosts that it asked for in vain, in words for the report.
    pub(super) fn refused_hosts(&self) -> Option<String> {
        let refused = self.proxy.as_ref().map(Proxy::refused).filter(|refused| !refused.is_empty())?;
        Some(format!("the sandbox kept it from {} (setting sandbox.hosts)", refused.join(", ")))
    }

    /// Gives renewed logins back to the user.
    pub(super) fn end(self) {
        self.logins.iter().for_each(|login| client::unlink_file(&self.home, login));
    }
}

/// What the agent's process will have, and what of the user's belongs to its client.
fn variables(world: &World, place: &AgentPlace<'_>, start: &Start) -> Vec<(OsString, OsString)> {
    let users = place.held.map_or(&world.own, |held| &held.variables);
    let own = users.iter().filter(|(name, _)| match place.agent {
        AgentBackend::Cli(client, _) => name == "HOME" || client.own.iter().any(|own| name == own),
        AgentBackend::Cmd(_) | AgentBackend::Script(_) | AgentBackend::Sim(_) => false,
    });
    let mut all: Vec<(OsString, OsString)> = place.env.iter().chain(&start.env).cloned().collect();
    // Last, so that it wins: the home of the process is another one, and the user's things are in the user's.
    all.extend(own.cloned());
    all
}

/// A proxy and how it is found.
pub(super) struct OpenedProxy {
    pub(super) proxy: Proxy,
    pub(super) access: ProxyAccess,
    pub(super) variables: Vec<(OsString, OsString)>,
}

/// The way to the model, unless there is nobody to talk to or the user opened the whole network.
pub(super) fn open_proxy(
    choice: &SandboxChoice,
    needs: &AgentNeeds,
    scratch: &Path,
    own_loopback: bool,
) -> io::Result<Option<OpenedProxy>> {
    let named = needs.configured.iter().map(|(host, port)| {
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    });
    let user: Vec<String> = choice.hosts.iter().cloned().chain(named).collect();
    if choice.full_network || (user.is_empty() && needs.hosts.is_empty()) {
        return Ok(None);
    }
    let mut local: Vec<LocalPort> = Vec::new();
    for (host, port) in user.iter().filter_map(|entry| of_url(entry)) {
        let entry = LocalPort { host, port };
        if is_loopback(&entry.host) && !local.contains(&entry) {
            local.push(entry);
        }
    }
    let model: Vec<&str> = needs.hosts.iter().map(String::as_str).collect();
    let hosts = HostList::new(&model, &user);
    let socket = scratch.join("proxy.sock");
    if own_loopback {
        let proxy = Proxy::open(&socket, hosts)?;
        let access = ProxyAccess { socket, port: None, local };
        return Ok(Some(OpenedProxy { proxy, access, variables: Vec::new() }));
    }
    let word = nonce();
    let (proxy, port) = Proxy::open_port(hosts, &word)?;
    let access = ProxyAccess { socket, port: Some(port), local };
    Ok(Some(OpenedProxy { proxy, access, variables: variables_of(port, Some(&word)) }))
}

/// Puts the user's logins, settings and what else was named into the home, as links to where they are.
fn link(
    needs: &AgentNeeds,
    choice: &SandboxChoice,
    home: &Path,
    variables: &[(OsString, OsString)],
) -> io::Result<Vec<LinkedFile>> {
    os::private_directory().recursive(true).create(home)?;
    let users = variables.iter().rev().find(|(name, _)| name == "HOME").map(|(_, home)| PathBuf::from(home));
    let named = choice.read.iter().chain(&choice.write).filter_map(|path| {
        let below = users.as_ref().and_then(|users| path.strip_prefix(users).ok())?;
        (!below.as_os_str().is_empty()).then(|| (path.clone(), home.join(below)))
    });
    let settings = needs.settings.iter().map(|(path, below)| (path.clone(), home.join(below)));
    for (from, to) in settings.chain(named) {
        client::clear_links(home, &to);
        if std::fs::symlink_metadata(&to).is_ok_and(|meta| !meta.is_dir()) {
            std::fs::remove_file(&to)?;
        }
        to.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        if !to.exists() {
            os::symlink(&from, &to)?;
        }
    }
    let logins: Vec<LinkedFile> = needs
        .logins
        .iter()
        .map(|(from, below)| LinkedFile { from: from.clone(), to: home.join(below) })
        .collect();
    for login in &logins {
        client::clear_links(home, &login.to);
        client::link_file(home, login)?;
    }
    Ok(logins)
}
