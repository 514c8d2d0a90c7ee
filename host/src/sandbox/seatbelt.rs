//! macOS: a profile for `sandbox-exec`, made from the same policy. Text only, so it is tested everywhere.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use super::bwrap::Start;
use super::policy::{SandboxNetwork, SandboxPolicy};

/// The system's program that starts others under a profile.
pub(super) const PROGRAM: &str = "/usr/bin/sandbox-exec";

/// What of the system may be read.
const SYSTEM: [&str; 14] = [
    "/usr",
    "/bin",
    "/sbin",
    "/System",
    "/Library/Apple",
    "/Library/Developer/CommandLineTools",
    "/Library/Frameworks",
    "/Applications/Xcode.app",
    "/opt",
    "/private/etc/ssl",
    "/private/etc/passwd",
    "/private/etc/localtime",
    "/private/var/db/timezone",
    "/private/var/select",
];

/// What every program needs to start at all.
const BASE: &str = "(version 1)\n(deny default)\n(import \"system.sb\")\n\
    (allow process-fork)\n(allow process-exec)\n(allow signal (target same-sandbox))\n\
    (allow process-info* (target same-sandbox))\n(allow sysctl-read)\n(allow ipc-posix-shm*)\n\
    (allow file-read-metadata)\n(allow file-ioctl (literal \"/dev/tty\"))\n\
    (allow file-read* file-write* (literal \"/dev/null\") (literal \"/dev/zero\") (literal \"/dev/tty\")\
    (literal \"/dev/random\") (literal \"/dev/urandom\"))\n";

pub(super) fn start(policy: &SandboxPolicy, program: &OsStr, args: &[OsString]) -> io::Result<Start> {
    let mut line: Vec<OsString> = vec!["-p".into(), profile(policy)?.into(), program.into()];
    line.extend(args.iter().cloned());
    Ok((PROGRAM.into(), line, Vec::new()))
}

/// Later lines win, so what is refused within an allowed folder comes last.
pub(super) fn profile(policy: &SandboxPolicy) -> io::Result<String> {
    let mut text = BASE.to_owned();
    let system: Vec<PathBuf> = SYSTEM.iter().map(PathBuf::from).collect();
    let own = [policy.home.clone(), policy.tmp.clone()];
    rule(&mut text, "allow file-read*", &system)?;
    rule(&mut text, "allow file-read*", &policy.readable)?;
    rule(&mut text, "allow file-read* file-write*", &own)?;
    rule(&mut text, "allow file-read* file-write*", &policy.writable)?;
    // A folder that may be read within one that may be written stays as it is.
    let inner: Vec<PathBuf> =
        policy.readable.iter().filter(|path| is_below(path, &policy.writable)).cloned().collect();
    rule(&mut text, "deny file-write*", &inner)?;
    rule(&mut text, "deny file-read* file-write*", &policy.masked)?;
    match &policy.network {
        SandboxNetwork::Full => text.push_str("(allow network*)\n"),
        // There are no loopbacks of one's own: this one is shared with the machine.
        SandboxNetwork::OwnLoopback => text.push_str(LOOPBACK),
        SandboxNetwork::Proxy(proxy) => {
            text.push_str(LOOPBACK);
            let socket = quoted(&proxy.socket)?;
            text.push_str(&format!("(allow network-outbound (literal {socket}))\n"));
            for port in proxy.port.into_iter().chain(proxy.local.iter().map(|local| local.port)) {
                text.push_str(&format!("(allow network-outbound (remote ip \"localhost:{port}\"))\n"));
            }
        }
    }
    Ok(text)
}

const LOOPBACK: &str = "(allow network-bind (local ip \"localhost:*\"))\n\
    (allow network-inbound (local ip \"localhost:*\"))\n";

fn rule(text: &mut String, what: &str, paths: &[PathBuf]) -> io::Result<()> {
    for path in paths {
        text.push_str(&format!("({what} (subpath {}))\n", quoted(path)?));
    }
    Ok(())
}

fn is_below(path: &Path, folders: &[PathBuf]) -> bool {
    folders.iter().any(|folder| path != folder && path.starts_with(folder))
}

/// A path as a string of the profile's language. One that could end the string is refused.
fn quoted(path: &Path) -> io::Result<String> {
    let plain = path.to_str().filter(|text| !text.chars().any(|c| c == '"' || c == '\\' || c.is_control()));
    let plain =
        plain.ok_or_else(|| io::Error::other(format!("{}: can't be named in a profile", path.display())))?;
    Ok(format!("\"{plain}\""))
}
