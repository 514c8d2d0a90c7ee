//! Where there are no user namespaces: Landlock, a filter of system calls and limits, which this program puts on itself
//! before it becomes the other one.
//!
//! It keeps less than `bwrap` does: the machine's processes stay visible, there is no loopback, socket, shared memory or
//! terminal of its own, permissions of files outside can be changed, and a client can't build a sandbox of its own in it.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::process::Command;

use super::bwrap::{DISPENSABLE, NAMES, SYSTEM};
use super::inside::{self, InsideFault, InsideOrder, InsideReport};
use super::policy::{SandboxNetwork, SandboxPolicy};
use crate::platform::confine::{self, MissingRestrictions, RestrictedNetwork, Restriction};
use crate::platform::inherited;

/// The hidden subcommand.
pub(super) const ARGUMENT: &str = "__sandbox";

/// Devices that programs expect to write to. No terminal: those that a program makes can't be told from the user's, which
/// it could write to and read from. Not `/dev/shm` either: what others share there can't be told from its own.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Both halves of what the subcommand is told, as one argument each.
pub(super) fn arguments(
    policy: &SandboxPolicy,
    order: &InsideOrder,
    program: &OsString,
    args: &[OsString],
) -> io::Result<Vec<OsString>> {
    if !policy.masked.is_empty() {
        return Err(io::Error::other("files can't be masked without bubblewrap; install it (bwrap)"));
    }
    if !policy.mounts.is_empty() {
        return Err(io::Error::other(
            "folders can't be shown elsewhere without bubblewrap; install it (bwrap)",
        ));
    }
    let policy = serde_json::to_string(policy).map_err(io::Error::other)?;
    let head: [OsString; 4] = [ARGUMENT.into(), policy.into(), order.text()?.into(), program.clone()];
    Ok(head.into_iter().chain(args.iter().cloned()).collect())
}

/// Restricts this process and becomes the program. Returns only when that failed, with the exit code to end with.
///
/// # Errors
/// When the restriction can't be put on: nothing was started then.
pub(super) fn run(policy: &str, order: &str, program: &OsString, args: &[OsString]) -> io::Result<i32> {
    let policy: SandboxPolicy = serde_json::from_str(policy).map_err(io::Error::other)?;
    let order: InsideOrder = serde_json::from_str(order).map_err(io::Error::other)?;
    inherited::close_all_but(order.report);
    let mut report = File::from(confine::take_over(order.report)?);
    inside::reported(&mut report, |report| become_confined(&policy, report, program, args))
}

fn become_confined(
    policy: &SandboxPolicy,
    report: &mut File,
    program: &OsString,
    args: &[OsString],
) -> io::Result<i32> {
    restrict(policy)?;
    let limits = policy.limits;
    // Counted over all processes of the user here, so it would strike before anything has begun.
    inside::set_limits(&super::SandboxLimits { processes: None, ..limits })?;
    let error = confine::become_program(Command::new(program).args(args));
    let not_started = Some(InsideFault::of(program, &error));
    inside::tell(report, &InsideReport { not_started, ..InsideReport::default() });
    Ok(127)
}

/// Puts a policy on this process, as far as the kernel can.
pub(super) fn restrict(policy: &SandboxPolicy) -> io::Result<MissingRestrictions> {
    let system = SYSTEM
        .iter()
        .chain(&DISPENSABLE)
        .chain(NAMES.iter().filter(|_| policy.network == SandboxNetwork::Full));
    let mut readable: Vec<PathBuf> = system.map(PathBuf::from).collect();
    readable.push(PROCESSES.into());
    readable.extend(policy.readable.iter().cloned());
    let mut writable: Vec<PathBuf> = DEVICES.iter().map(PathBuf::from).collect();
    writable.extend([policy.home.clone(), policy.tmp.clone()]);
    writable.extend(policy.writable.iter().cloned());
    let network = match &policy.network {
        SandboxNetwork::Full => RestrictedNetwork::Full,
        SandboxNetwork::OwnLoopback => RestrictedNetwork::None,
        // The proxy, and models on this machine at the ports they really have.
        SandboxNetwork::Proxy(proxy) => {
            let local = proxy.local.iter().map(|local| local.port);
            RestrictedNetwork::Ports(proxy.port.into_iter().chain(local).collect())
        }
    };
    confine::restrict(&Restriction {
        // Who writes nothing has no reason to change permissions, and it could be those of any file.
        modes: !policy.writable.is_empty(),
        network,
        readable,
        writable,
    })
}

/// Programs look themselves up there. What it shows of others is what the kernel shows everybody.
const PROCESSES: &str = crate::platform::table::FOLDER;
