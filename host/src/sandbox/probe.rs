//! Which means this machine has, found out by trying them with the flags that are really used.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use super::policy::{SandboxLimits, SandboxNetwork, SandboxPolicy};
use super::{Sandbox, seatbelt};
use crate::platform::{caveats, confine, files as os};
use crate::proc::{self, Cause, Job, JobLimits, NotStarted, Sink, Watch};

/// What holds processes to their policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SandboxLevel {
    /// Namespaces of their own, by this program.
    Bubblewrap { program: PathBuf },
    /// Landlock and seccomp. `why` says what is amiss with bubblewrap.
    Landlock { why: String, remedy: String },
    /// The profiles of macOS.
    Seatbelt,
    /// Nothing.
    Absent { why: String, remedy: String },
}

const INSTALL: &str = "install bubblewrap (apt install bubblewrap, dnf install bubblewrap)";

const ALLOW: &str = "AppArmor keeps programs from making user namespaces; allow it for bwrap with a profile \
    (/etc/apparmor.d/bwrap with `userns,`) or for all programs with \
    `sysctl kernel.apparmor_restrict_unprivileged_userns=0`";

const NAMESPACES: &str = "allow user namespaces (`sysctl kernel.unprivileged_userns_clone=1`; in a container, \
    start it with a seccomp profile that allows them)";

impl SandboxLevel {
    /// One line for the user: what is in force and, if it is less than there could be, how to get more.
    pub fn line(&self) -> String {
        match self {
            Self::Bubblewrap { .. } => "sandbox: bubblewrap".to_owned(),
            Self::Seatbelt => "sandbox: Seatbelt (sandbox-exec)".to_owned(),
            Self::Landlock { why, remedy } => format!(
                "sandbox: Landlock and seccomp only, because {why}; commands can't use loopback ports and can see other \
                 processes, and Codex can't be started. To get the whole sandbox: {remedy}"
            ),
            Self::Absent { why, remedy } => format!("sandbox: none, because {why}. {remedy}"),
        }
    }

    /// One word for it, as journals have it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Bubblewrap { .. } => "bubblewrap",
            Self::Landlock { .. } => "landlock",
            Self::Seatbelt => "seatbelt",
            Self::Absent { .. } => "none",
        }
    }
}

/// Tries what there is, once per process.
pub fn probe(me: &Path) -> SandboxLevel {
    static FOUND: OnceLock<SandboxLevel> = OnceLock::new();
    let path = std::env::var_os("PATH").unwrap_or_default();
    FOUND.get_or_init(|| find(me, &path)).clone()
}

/// The same without remembering, with the folders that `bwrap` is looked for in.
pub fn find(me: &Path, path: &OsString) -> SandboxLevel {
    if caveats::SYSTEM == "macos" {
        return macos();
    }
    let bwrap = std::env::split_paths(path)
        .map(|folder| folder.join("bwrap"))
        .find(|program| program.is_absolute() && os::is_executable(program));
    let (why, remedy) = match bwrap {
        None => ("bwrap is not installed".to_owned(), INSTALL),
        Some(program) => {
            let level = SandboxLevel::Bubblewrap { program };
            match works(me, &level) {
                Ok(()) => return level,
                Err(why) if confine::restricts_namespaces() => (format!("bwrap fails: {why}"), ALLOW),
                Err(why) => (format!("bwrap fails: {why}"), NAMESPACES),
            }
        }
    };
    let level = SandboxLevel::Landlock { why: why.clone(), remedy: remedy.to_owned() };
    match works(me, &level) {
        Ok(()) => level,
        Err(other) => SandboxLevel::Absent {
            why: format!("{why}, and Landlock fails: {other}"),
            remedy: format!("To get it: {remedy}"),
        },
    }
}

fn macos() -> SandboxLevel {
    if os::is_executable(Path::new(seatbelt::PROGRAM)) {
        return SandboxLevel::Seatbelt;
    }
    let why = format!("{} is not there", seatbelt::PROGRAM);
    SandboxLevel::Absent { why, remedy: "It belongs to macOS.".to_owned() }
}

/// Whether a program can be started under a policy that has every part of a real one.
fn works(me: &Path, level: &SandboxLevel) -> Result<(), String> {
    let private = std::env::temp_dir();
    let policy = SandboxPolicy {
        cwd: "/".into(),
        home: private.clone(),
        tmp: private,
        writable: Vec::new(),
        readable: Vec::new(),
        sealed: Vec::new(),
        masked: Vec::new(),
        mounts: Vec::new(),
        network: SandboxNetwork::OwnLoopback,
        limits: SandboxLimits { open_files: Some(256), file_size: Some(1 << 20), ..SandboxLimits::default() },
        nested_sandboxes: false,
        env: Vec::new(),
        npm_cache: None,
    };
    let sandbox = Sandbox { level: level.clone(), policy, me: me.to_path_buf() };
    let job = Job {
        program: "/bin/sh".into(),
        args: vec!["-c".into(), "exit 0".into()],
        env: Vec::new(),
        cwd: "/".into(),
        stdin: Vec::new(),
        stdout: Sink::nothing(),
        stderr: Sink::Memory { keep: 4096 },
        limits: JobLimits { total: Duration::from_secs(20), ..JobLimits::default() },
        tag: format!("sandbox-probe-{}", crate::platform::process::getpid().as_raw_nonzero()),
        sandbox: Some(sandbox),
    };
    let ended = proc::run(job, &Watch::new(), &mut |_, _| {});
    let said = String::from_utf8_lossy(&ended.stderr.bytes).trim().replace('\n', "; ");
    match ended.cause {
        Cause::Exited(0) => Ok(()),
        Cause::Exited(code) if said.is_empty() => Err(format!("exit {code}")),
        Cause::Exited(_) => Err(said),
        Cause::Signaled(signal) => Err(format!("killed by signal {signal}")),
        Cause::Silent | Cause::TooLong | Cause::Stopped => Err("it did not end".to_owned()),
        Cause::OverLimit(what) => Err(what),
        Cause::NotStarted(NotStarted::Sandbox(why)) => Err(why),
        Cause::NotStarted(why) => Err(why.to_string()),
    }
}
