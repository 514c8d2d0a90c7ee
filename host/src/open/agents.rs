//! Which program works for each archetype: checked, made absolute and resolved before anything is spent.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use archeflow_core::model::Agents;

use super::{Error, Project};
use crate::backends::{self, AgentBackend};
use crate::config;
use crate::model_agent::place::{self, Wrong};
use crate::probe::{self, DefaultAgent};
use crate::world::{allowed_env, client_env};

impl Project {
    /// What belongs to clients: variables of the user's, what is set about models, and the keys that are named there.
    pub(super) fn client_variables(&self, settings: &config::Settings) -> Vec<(OsString, OsString)> {
        let mut own = client_env(self.env.variables.clone());
        own.push(settings.loops().written());
        own.extend(place::keys(&settings.model_keys(), &self.env.variables));
        own
    }

    /// Where the models of these agents are asked, if that is not the provider's own place.
    pub fn elsewhere(&self, agents: &Agents, settings: &config::Settings) -> Vec<String> {
        let own = self.client_variables(settings);
        let specs = std::iter::once(&agents.default).chain(agents.by_archetype.values());
        let mut urls = Vec::new();
        for spec in specs {
            let Ok(agent) = AgentBackend::parse(spec, &self.env.cwd) else { continue };
            if let Some(Ok(settled)) = agent.settled(&own)
                && settled.elsewhere
                && !urls.contains(&settled.place.url)
            {
                urls.push(settled.place.url);
            }
        }
        urls
    }

    /// The spec in full, if the agent can be started.
    pub fn checked(&self, spec: &str, settings: &config::Settings) -> Result<String, Error> {
        let agent = AgentBackend::parse(spec, &self.env.cwd)?;
        match agent.settled(&self.client_variables(settings)) {
            // A key that is missing stops the run like a login that is: with what to do.
            None | Some(Ok(_) | Err(Wrong::NoKey { .. })) => {}
            Some(Err(wrong)) => return Err(backends::Error::Place(wrong, spec.to_owned()).into()),
        }
        match agent.missing(self.path()) {
            Some(program) => Err(Error::AgentMissing { program, spec: spec.to_owned() }),
            None => Ok(agent.spec()),
        }
    }

    fn path(&self) -> Option<&std::ffi::OsStr> {
        let path = self.env.variables.iter().find(|(name, _)| name == "PATH");
        path.map(|(_, value)| value.as_os_str())
    }

    /// The client that is taken where none is named.
    pub fn default_client(&self) -> Option<&DefaultAgent> {
        let look = || {
            let variables = &self.env.variables;
            let (env, own) = (allowed_env(variables.clone(), &[]), client_env(variables.clone()));
            probe::choose(probe::clients(&env, &own))
        };
        self.default_client.get_or_init(look).as_ref()
    }

    /// Specs checked and made absolute before anything is spent.
    pub(crate) fn resolved_agents(
        &self,
        agents: &Agents,
        settings: &config::Settings,
    ) -> Result<Agents, Error> {
        if agents.default.is_empty() && agents.by_archetype.is_empty() {
            let default = self.default_client().ok_or(Error::NoAgent)?.spec.clone();
            let checked = |spec: &String| self.checked(spec, settings);
            let fallback = agents.fallback.iter().map(checked).collect::<Result<_, _>>()?;
            return Ok(with_accounts(Agents { default, fallback, ..agents.clone() }));
        }
        let resolve = |spec: &str| self.checked(spec, settings);
        let by_archetype = agents
            .by_archetype
            .iter()
            .map(|(name, spec)| resolve(spec).map(|spec| (name.clone(), spec)))
            .collect::<Result<_, _>>()?;
        let default = if agents.default.is_empty() { String::new() } else { resolve(&agents.default)? };
        let fallback = agents.fallback.iter().map(|spec| resolve(spec)).collect::<Result<_, _>>()?;
        Ok(with_accounts(Agents { default, by_archetype, fallback, ..agents.clone() }))
    }
}

fn with_accounts(agents: Agents) -> Agents {
    let specs = [&agents.default].into_iter().chain(agents.by_archetype.values()).chain(&agents.fallback);
    Agents { accounts: accounts(specs), ..agents }
}

/// The provider accounts behind specs, where a spec is not an account by itself (C6).
pub(super) fn accounts<'a>(specs: impl IntoIterator<Item = &'a String>) -> BTreeMap<String, String> {
    let account = |spec: &String| AgentBackend::parse(spec, Path::new("/")).ok().map(|agent| agent.account());
    let known = specs.into_iter().filter_map(|spec| Some((spec.clone(), account(spec)?)));
    known.filter(|(spec, account)| spec != account).collect()
}
