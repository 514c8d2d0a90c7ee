//! One command of a suite, confined as the test command of a run is.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use archeflow_core::text::{cut, safe_line};

use super::check::CheckError;
use crate::git::{GitEnv, remove_beneath};
use crate::nonce::nonce;
use crate::platform::files as os;
use crate::proc::{self, Job, JobEnd, JobLimits, Sink, Watch};
use crate::sandbox::{PrivateFolders, Sandbox, SandboxFacts, SandboxPolicy};
use crate::world::WorldSandbox;

/// Lines of a command's output that are shown, and columns of each.
const LINES: usize = 12;
pub(super) const COLUMNS: usize = 200;
/// Bytes of it that are kept at all, from its beginning and its end.
const OUTPUT: u64 = 64 * 1024;

/// What the commands of a suite run with.
#[derive(Debug)]
pub struct CommandWorld {
    /// The environment of every command.
    pub env: Vec<(OsString, OsString)>,
    /// Which configuration git reads where it looks at clones.
    pub git: GitEnv,
    pub me: PathBuf,
    pub sandbox: WorldSandbox,
    /// Ends the commands.
    pub watch: Watch,
}

/// Where a command runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct CommandPlace<'a> {
    pub(super) tree: &'a Path,
    /// For its home and its temporary files, which are removed afterwards. It must be unused.
    pub(super) own: &'a Path,
    /// Stores that the tree's repository borrows objects from.
    pub(super) objects: &'a [PathBuf],
    /// A folder that the command is shown empty.
    pub(super) seal: &'a Path,
}

impl CommandWorld {
    /// A command line in a tree, both its streams together.
    pub(super) fn shell(
        &self,
        command: &str,
        place: CommandPlace<'_>,
        limit: Duration,
    ) -> Result<JobEnd, CheckError> {
        let private = PrivateFolders { home: place.own.join("home"), tmp: place.own.join("tmp") };
        for folder in [&private.home, &private.tmp] {
            os::private_directory().recursive(true).create(folder).map_err(machine)?;
        }
        let mut env = self.env.clone();
        env.push(("TMPDIR".into(), private.tmp.clone().into()));
        let sandbox = match &self.sandbox {
            WorldSandbox::Off => None,
            WorldSandbox::On { level, choice } => {
                let facts = SandboxFacts {
                    env: &self.env,
                    private: &private,
                    objects: place.objects,
                    checkout: place.seal,
                    choice,
                };
                let policy = SandboxPolicy::for_command(facts, place.tree);
                Some(Sandbox { level: level.clone(), policy, me: self.me.clone(), decoys: Vec::new() })
            }
        };
        let job = Job {
            program: "/bin/sh".into(),
            // Thousands of test names are more than one argument can hold.
            args: vec!["-c".into(), "exec 2>&1\neval \"$(cat)\"".into()],
            env,
            cwd: place.tree.to_path_buf(),
            stdin: command.as_bytes().to_vec(),
            stdout: Sink::Memory { keep: OUTPUT },
            stderr: Sink::nothing(),
            limits: JobLimits { total: limit, ..JobLimits::default() },
            tag: format!("eval.{}", nonce()),
            sandbox,
        };
        let ended = proc::run(job, &self.watch, &mut |_, _| {});
        let _ = remove_beneath(place.own);
        Ok(ended)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
pub(super) fn machine(error: std::io::Error) -> CheckError {
    CheckError::Machine(error.to_string())
}

pub(super) fn short(text: &str) -> String {
    cut(&safe_line(text), COLUMNS)
}

/// What a person needs to see why a command failed.
pub(super) fn last_lines(output: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(output);
    let lines: Vec<String> = text.lines().map(short).filter(|line| !line.is_empty()).collect();
    let from = lines.len().saturating_sub(LINES);
    lines.into_iter().skip(from).collect()
}
