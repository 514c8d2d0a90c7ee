//! An agent's key in our proxy instead of in its environment (`sandbox.keys: proxy`).

use std::ffi::{OsStr, OsString};
use std::path::Path;

use crate::backends::AgentBackend;
use crate::backends::cli::Rest;
use crate::backends::held_keys::{HeldKey, is_secret};
use crate::sandbox::proxy::KeyProxy;
use crate::world::{World, WorldSandbox};

/// The proxy of one attempt, and the variables that lead its client there.
pub(super) struct KeyHolding {
    pub(super) proxy: KeyProxy,
    /// In place of the user's.
    pub(super) variables: Vec<(OsString, OsString)>,
    /// Whether the provider is the one that the client asks without being told another.
    pub(super) usual: bool,
}

impl KeyHolding {
    /// Opens the proxy where one is asked for. Agents that have no key need none: they are held to that.
    pub(super) fn open(world: &World, agent: &AgentBackend) -> Result<Option<KeyHolding>, String> {
        let WorldSandbox::On { choice, .. } = &world.sandbox else { return Ok(None) };
        let (client, model) = match agent {
            _ if !choice.hold_keys => return Ok(None),
            AgentBackend::Script(_) | AgentBackend::Sim(_) => return Ok(None),
            AgentBackend::Cli(client, model) if client.rest != Rest::Command => (client, model),
            AgentBackend::Cmd(_) | AgentBackend::Cli(..) => return without_secrets(world).map(|()| None),
        };
        if client.is_own() {
            // It is a part of this program, and gives its key to no command.
            return Ok(None);
        }
        let HeldKey { target, usual, way } = HeldKey::find(client, model, &world.own)?;
        let roots = variable(&world.env, "SSL_CERT_FILE").map(Path::new);
        let proxy = KeyProxy::open(target, roots)
            .map_err(|error| format!("sandbox.keys is proxy, but {error} ({})", way.source()))?;
        let variables = way.replaced(&world.own, proxy.placeholder(), &proxy.url());
        Ok(Some(KeyHolding { proxy, variables, usual }))
    }
}

/// A command line gets what the user names, and nothing can take its place.
fn without_secrets(world: &World) -> Result<(), String> {
    match world.env.iter().find(|(name, _)| is_secret(name)) {
        None => Ok(()),
        Some((name, _)) => Err(format!(
            "sandbox.keys is proxy, which does not work with command lines, and {} would be in its environment; \
             take it out of agents.env, or set sandbox.keys to agent",
            name.display()
        )),
    }
}

fn variable<'a>(variables: &'a [(OsString, OsString)], wanted: &str) -> Option<&'a OsStr> {
    let found = variables.iter().find(|(name, value)| name == wanted && !value.is_empty());
    found.map(|(_, value)| value.as_os_str())
}
