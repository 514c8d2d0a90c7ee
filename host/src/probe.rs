//! Looks which clients are installed, and asks each for its version. Nothing is spent.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use crate::backends::cli::{ALL, Client};
use crate::proc::{self, Cause, Job, Limits, Sink, Watch};

/// A client that is there.
#[derive(Debug)]
pub struct Found {
    pub client: &'static Client,
    pub place: PathBuf,
    /// What it says its version is, or why it can't say.
    pub version: Result<[u32; 3], String>,
}

impl Found {
    /// At least as new as the one this program was tried with.
    pub fn is_tried(&self) -> bool {
        self.version.as_ref().is_ok_and(|version| *version >= self.client.tried)
    }
}

/// All clients on the path, asked with this environment.
pub fn clients(env: &[(OsString, OsString)]) -> Vec<Found> {
    let path = env.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str());
    let found = |client: &'static Client| {
        let place = place(client.program, path?)?;
        let version = version(&place, env);
        Some(Found { client, place, version })
    };
    ALL.into_iter().filter_map(found).collect()
}

fn place(program: &str, path: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(path).map(|folder| folder.join(program)).find(|place| place.is_file())
}

fn version(place: &std::path::Path, env: &[(OsString, OsString)]) -> Result<[u32; 3], String> {
    let job = Job {
        program: place.into(),
        args: vec!["--version".into()],
        env: env.to_vec(),
        cwd: PathBuf::from("/"),
        stdin: Vec::new(),
        stdout: Sink::memory(),
        stderr: Sink::memory(),
        limits: Limits { total: Duration::from_secs(20), ..Limits::default() },
        tag: format!("probe.{}", std::process::id()),
    };
    let ended = proc::run(job, &Watch::new(), &mut |_, _| {});
    let said = String::from_utf8_lossy(&ended.stdout.bytes).into_owned();
    match ended.cause {
        Cause::Exited(0) => number(&said).ok_or_else(|| format!("it says no version: {}", said.trim())),
        other @ (Cause::Exited(_)
        | Cause::Signaled(_)
        | Cause::Silent
        | Cause::TooLong
        | Cause::Stopped
        | Cause::NotStarted(_)) => Err(format!("it can't be asked for its version ({other:?})")),
    }
}

/// The first word that is three numbers.
fn number(said: &str) -> Option<[u32; 3]> {
    said.split_whitespace().find_map(|word| {
        let mut parts = word.split(['.', '-', '+']).map(str::parse);
        Some([parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?])
    })
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn a_version_is_found_in_what_clients_say() {
        for (said, version) in [
            ("2.1.325 (Claude Code)\n", Some([2, 1, 325])),
            ("codex-cli 0.166.0\n", Some([0, 166, 0])),
            ("codex-cli 0.167.0-alpha.2", Some([0, 167, 0])),
            ("0.61.0\n", Some([0, 61, 0])),
            ("1.18.33\n", Some([1, 18, 33])),
            (" 1.34.0\n", Some([1, 34, 0])),
            ("no idea", None),
            ("", None),
        ] {
            assert_eq!(number(said), version, "{said}");
        }
    }
}
