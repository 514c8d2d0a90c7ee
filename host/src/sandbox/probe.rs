//! Which means this machine has, found out by trying them with the flags that are really used, and by trying to get out.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use super::policy::{SandboxLimits, SandboxNetwork, SandboxPolicy};
use super::selftest::{self, Bait};
use super::{Sandbox, bwrap, seatbelt};
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

const REPLACE: &str = "use the bubblewrap of your distribution in its newest version, and please report this";

const NAMESPACES: &str = "allow user namespaces (`sysctl kernel.unprivileged_userns_clone=1`; in a container, \
    start it with a seccomp profile that allows them)";

impl SandboxLevel {
    /// One line for the user: what is in force and, if it is less than there could be, how to get more.
    pub fn line(&self) -> String {
        match self {
            Self::Bubblewrap { .. } => "sandbox: bubblewrap".to_owned(),
            Self::Seatbelt => "sandbox: Seatbelt (sandbox-exec)".to_owned(),
            Self::Landlock { why, remedy } => format!(
                "sandbox: Landlock and seccomp only, because {why}; commands can't use loopback ports or \
                 unix sockets and can see other processes, and Codex can't be started. To get the whole sandbox: {remedy}"
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
                Err(Unusable::Leaks(why)) => (format!("bwrap is not used: {why}"), REPLACE),
                Err(Unusable::Fails(why)) => {
                    let remedy = if confine::restricts_namespaces() { ALLOW } else { NAMESPACES };
                    (format!("bwrap fails: {why}"), remedy)
                }
            }
        }
    };
    let level = SandboxLevel::Landlock { why: why.clone(), remedy: remedy.to_owned() };
    match works(me, &level) {
        Ok(()) => level,
        Err(Unusable::Fails(other)) => SandboxLevel::Absent {
            why: format!("{why}, and Landlock fails: {other}"),
            remedy: format!("To get it: {remedy}"),
        },
        Err(Unusable::Leaks(other)) => SandboxLevel::Absent {
            why: format!("{why}, and Landlock is not used: {other}"),
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

/// Why a level can't be used.
enum Unusable {
    /// No program can be started.
    Fails(String),
    /// What must not be possible inside is.
    Leaks(String),
}

/// The exit code of the self-test when it found a way out.
const WAY_OUT: i32 = 125;

/// Whether a program can be started under a policy that has every part of a real one, and is kept in: it is the part of us
/// that tries to get out.
fn works(me: &Path, level: &SandboxLevel) -> Result<(), Unusable> {
    let own_terminals = matches!(level, SandboxLevel::Bubblewrap { .. });
    let bait = Bait::lay(own_terminals);
    let bait = bait.map_err(|error| Unusable::Fails(format!("no temporary folder can be made: {error}")))?;
    let job = job(me, level, &bait).map_err(|error| Unusable::Fails(error.to_string()))?;
    let ended = proc::run(job, &Watch::new(), &mut |_, _| {});
    let said = String::from_utf8_lossy(&ended.stderr.bytes).trim().replace('\n', "; ");
    let why = match ended.cause {
        Cause::Exited(0) => return Ok(()),
        Cause::Exited(WAY_OUT) => return Err(Unusable::Leaks(said.replacen("sandbox: ", "", 1))),
        Cause::Exited(code) if said.is_empty() => format!("exit {code}"),
        Cause::Exited(_) => said,
        Cause::Signaled(signal) => format!("killed by signal {signal}"),
        Cause::Silent | Cause::TooLong | Cause::Stopped => "it did not end".to_owned(),
        Cause::OverLimit(what) => what,
        Cause::NotStarted(NotStarted::Sandbox(why)) => why,
        Cause::NotStarted(why) => why.to_string(),
    };
    Err(Unusable::Fails(why))
}

fn job(me: &Path, level: &SandboxLevel, bait: &Bait) -> io::Result<Job> {
    // Bubblewrap has it at a place of its own, and nothing else of its folder.
    let (program, readable) = match level {
        SandboxLevel::Bubblewrap { .. } => (PathBuf::from(bwrap::ME), Vec::new()),
        SandboxLevel::Landlock { .. } | SandboxLevel::Seatbelt | SandboxLevel::Absent { .. } => {
            (me.to_path_buf(), vec![me.to_path_buf()])
        }
    };
    let policy = SandboxPolicy {
        cwd: "/".into(),
        home: bait.private.clone(),
        tmp: bait.private.clone(),
        writable: Vec::new(),
        readable,
        sealed: Vec::new(),
        masked: Vec::new(),
        mounts: Vec::new(),
        network: SandboxNetwork::OwnLoopback,
        limits: SandboxLimits { open_files: Some(256), file_size: Some(1 << 20), ..SandboxLimits::default() },
        nested_sandboxes: false,
        env: Vec::new(),
        npm_cache: None,
    };
    Ok(Job {
        program: program.into(),
        args: vec![selftest::ARGUMENT.into(), bait.attempts.text()?.into()],
        env: Vec::new(),
        cwd: "/".into(),
        stdin: Vec::new(),
        stdout: Sink::nothing(),
        stderr: Sink::Memory { keep: 4096 },
        limits: JobLimits { total: Duration::from_secs(20), ..JobLimits::default() },
        tag: format!("sandbox-probe-{}", crate::platform::process::getpid().as_raw_nonzero()),
        sandbox: Some(Sandbox {
            level: level.clone(),
            policy,
            me: me.to_path_buf(),
            decoys: vec!["/".into()],
        }),
    })
}
