//! Files kept from a process by Landlock, and the rest by a filter of system calls.

use std::io;

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, NetPort, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetStatus, Scope,
};

use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

use super::filter::{self, FilterScope, FilteredNetwork};
use crate::platform::confine::{MissingRestrictions, RestrictedNetwork, Restriction};

/// Without these rights handled, files outside could be emptied.
const NEEDED: ABI = ABI::V3;

/// The rights we know of.
const KNOWN: ABI = ABI::V6;

pub(in crate::platform) fn restrict(restriction: &Restriction) -> io::Result<MissingRestrictions> {
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(NEEDED))
        .map_err(io::Error::other)?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(KNOWN))
        .map_err(io::Error::other)?;
    let mut ruleset = ruleset.scope(Scope::from_all(KNOWN)).map_err(io::Error::other)?;
    // Without the internet there is nothing to handle: its sockets are refused.
    if let RestrictedNetwork::Ports(_) = restriction.network {
        ruleset = ruleset
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessNet::ConnectTcp)
            .map_err(|_| {
                io::Error::other("this kernel can't limit connections to ports (Linux 6.7 or newer)")
            })?
            .set_compatibility(CompatLevel::BestEffort);
    }
    let mut ruleset = ruleset.create().map_err(io::Error::other)?;
    if let RestrictedNetwork::Ports(ports) = &restriction.network {
        for port in ports {
            let rule = NetPort::new(*port, AccessNet::ConnectTcp);
            ruleset = ruleset.add_rule(rule).map_err(io::Error::other)?;
        }
    }
    let writing = AccessFs::from_all(KNOWN) & !(AccessFs::MakeBlock | AccessFs::MakeChar);
    for (paths, rights) in
        [(&restriction.readable, AccessFs::from_read(KNOWN)), (&restriction.writable, writing)]
    {
        for path in paths {
            // What is not there needs no rule.
            let Ok(place) = PathFd::new(path) else { continue };
            let rights = if path.is_dir() { rights } else { rights & AccessFs::from_file(KNOWN) };
            ruleset = ruleset.add_rule(PathBeneath::new(place, rights)).map_err(io::Error::other)?;
        }
    }
    let status = ruleset.restrict_self().map_err(io::Error::other)?;
    // What root could do beside being the owner; no program that is started regains it.
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    let network = match restriction.network {
        RestrictedNetwork::None => FilteredNetwork::None,
        RestrictedNetwork::Ports(_) => FilteredNetwork::Connections,
        RestrictedNetwork::Full => FilteredNetwork::Full,
    };
    let scope =
        FilterScope { nested_sandboxes: false, own_namespaces: false, network, modes: restriction.modes };
    for program in &filter::programs(scope)? {
        seccompiler::apply_filter(program).map_err(io::Error::other)?;
    }
    match status.ruleset {
        RulesetStatus::FullyEnforced => Ok(Vec::new()),
        RulesetStatus::PartiallyEnforced => Ok(vec!["signals to other programs", "abstract sockets"]),
        RulesetStatus::NotEnforced => Err(io::ErrorKind::Unsupported.into()),
    }
}
