//! macOS: libproc and sysctl for the table of processes, `F_FULLFSYNC`, and the watcher where Linux has signals.
//!
//! Compiled, linted and linked by `cargo xtask test macos`; not yet run on a Mac.

mod arguments;
mod calls;
mod changes;

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{RawMode, Stat};
use rustix::process::{Pid, Signal, getpid, getsid, kill_process};

pub(super) use changes::FolderChanges;

use super::Errno;
use super::machine::ProcessMemory;
use super::process;
use super::session::{SessionCommand, SessionLeader};
use super::table::Process;

pub(super) const ADOPTS_ORPHANS: bool = false;
pub(super) const IGNORES_CASE: bool = true;

/// The kernel's flag of a process that is exiting (`PROC_FLAG_INEXIT`).
const EXITING: u32 = 4;

pub(super) fn numbers() -> Vec<Pid> {
    calls::all_pids().into_iter().filter_map(Pid::from_raw).collect()
}

/// The short list names living children only, so the whole table is read instead.
pub(super) fn child_numbers() -> Option<Vec<Pid>> {
    None
}

pub(super) fn process(pid: Pid) -> Option<Process> {
    let info = calls::bsd_info(pid.as_raw_nonzero().get())?;
    let number = |value: u32| i32::try_from(value).ok();
    Some(Process {
        pid,
        start: info.pbi_start_tvsec.saturating_mul(1_000_000).saturating_add(info.pbi_start_tvusec),
        parent: number(info.pbi_ppid)?,
        group: number(info.pbi_pgid)?,
        session: getsid(Some(pid)).map_or(0, |session| session.as_raw_nonzero().get()),
        dead: info.pbi_status == libc::SZOMB,
        dying: info.pbi_flags & EXITING != 0,
    })
}

pub(super) fn environment(pid: Pid) -> Option<Vec<u8>> {
    let bytes = calls::arguments(pid.as_raw_nonzero().get())?;
    arguments::environment(&bytes).map(<[u8]>::to_vec)
}

pub(super) fn first_argument(pid: Pid) -> Option<Vec<u8>> {
    let bytes = calls::arguments(pid.as_raw_nonzero().get())?;
    arguments::first(&bytes).map(<[u8]>::to_vec)
}

pub(super) fn owner(pid: Pid) -> Option<u32> {
    calls::bsd_info(pid.as_raw_nonzero().get()).map(|info| info.pbi_uid)
}

pub(super) fn program(pid: Pid) -> Option<PathBuf> {
    calls::program(pid.as_raw_nonzero().get())
}

pub(super) fn program_file(pid: Pid) -> Option<(u64, u64)> {
    fs::metadata(program(pid)?).ok().map(|found| (found.dev(), found.ino()))
}

/// There are no handles here: between the look and the signal the number could be given away, which the system does
/// only after it has gone round all of them.
pub(super) fn signal(process: &Process, signal: Signal) {
    if Process::read(process.pid).is_some_and(|now| now.start == process.start) {
        let _ = kill_process(process.pid, signal);
    }
}

/// Orphans go to launchd, so the watcher is started in place of adopting them.
pub(super) fn adopt_orphans() -> bool {
    super::watcher::start();
    false
}

/// The watcher does it; see there.
pub(super) fn die_with_parent() -> Result<(), Errno> {
    Ok(())
}

/// By `fork`, with the steps in between that `std` leaves to us.
pub(super) fn start_session(start: &SessionCommand<'_>) -> io::Result<SessionLeader> {
    // Only a sandbox hands files over, and there is none here.
    if !start.files.is_empty() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let mut command = Command::new(start.program);
    command.args(start.args).env_clear().envs(&start.env).current_dir(start.cwd);
    command.stdin(if start.reads { Stdio::piped() } else { Stdio::null() });
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    process::own_session(&mut command);
    let mut child = command.spawn()?;
    Ok(SessionLeader {
        pid: Pid::from_child(&child),
        stdin: child.stdin.take(),
        stdout: child.stdout.take(),
        stderr: child.stderr.take(),
    })
}

/// A waiting thread does it.
pub(super) fn exit_notice(_: Pid) -> io::Result<OwnedFd> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn is_ignored(signal: i32) -> bool {
    calls::is_ignored(signal)
}

pub(super) fn has_open(file: &Path) -> Option<i32> {
    let file = fs::canonicalize(file).ok()?;
    let me = getpid().as_raw_nonzero().get();
    calls::all_pids().into_iter().filter(|&pid| pid != me).find(|&pid| calls::has_open(pid, &file))
}

/// Modes are shorter here; what does not fit is no permission.
pub(super) fn raw_mode(mode: u32) -> RawMode {
    RawMode::try_from(mode & 0o7777).unwrap_or(0)
}

pub(super) fn owner_and_mode(stat: &Stat) -> (u32, u32) {
    (stat.st_uid, u32::from(stat.st_mode))
}

/// Through the cache of the drive too. File systems that don't know the request (network, FAT) get the usual one.
pub(super) fn sync(file: BorrowedFd<'_>) -> Result<(), Errno> {
    rustix::fs::fcntl_fullfsync(file).or_else(|_| rustix::fs::fsync(file))
}

/// `sync` only begins to write; the drive writes in order, so a full sync of one descriptor then waits for the rest.
pub(super) fn sync_file_system(directory: BorrowedFd<'_>) -> Result<(), Errno> {
    rustix::fs::sync();
    sync(directory)
}

/// What nobody has written to is not counted as the process' own memory here.
pub(super) fn release_program() {}

pub(super) fn random(into: &mut [u8]) -> io::Result<()> {
    File::open("/dev/urandom")?.read_exact(into)
}

pub(super) fn load() -> Option<u64> {
    calls::load_in_hundredths()
}

pub(super) fn available_memory() -> Option<u64> {
    let percent = calls::number(c"kern.memorystatus_level")?;
    Some(calls::number(c"hw.memsize")? / 1024 * percent.min(100) / 100)
}

/// The user and the process at the other end of a socket.
pub(super) fn socket_peer(stream: &std::os::unix::net::UnixStream) -> io::Result<(u32, Option<i32>)> {
    use std::os::fd::AsRawFd;
    let fd = stream.as_raw_fd();
    Ok((calls::peer_user(fd)?, calls::peer_process(fd)))
}

/// Seatbelt is told by a profile, not from inside.
pub(super) fn restrict(_: &super::confine::Restriction) -> io::Result<super::confine::MissingRestrictions> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn filters(_nested_sandboxes: bool) -> io::Result<Vec<Vec<u8>>> {
    Ok(Vec::new())
}

/// Only `bwrap` reads from one.
pub(super) fn memory_file(_content: &[u8]) -> io::Result<OwnedFd> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn restricts_namespaces() -> bool {
    false
}

/// There is none: long paths can't be sockets here.
pub(super) fn path_of_open(_: &std::fs::File) -> Option<std::path::PathBuf> {
    None
}

/// There is no such switch; the system keeps debuggers from programs itself.
pub(super) fn hide_memory() {}

/// Not asked for: the limit of each process holds.
pub(super) fn memory_of(_pid: Pid) -> Option<ProcessMemory> {
    None
}

pub(super) fn share_of_memory(_pid: Pid) -> Option<ProcessMemory> {
    None
}

pub(super) fn memory_in_files(_pids: &[Pid]) -> u64 {
    0
}
