//! Taking things away from a process: limits, system calls, files. Whoever asks for it decides what; see
//! [`sandbox`](crate::sandbox).

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use rustix::process::{Pid, Resource, Rlimit, WaitOptions, setrlimit};

use super::system;

/// What the kernel takes from a process that has to keep the machine's own view of files (Landlock and seccomp).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restriction {
    pub writable: Vec<PathBuf>,
    pub readable: Vec<PathBuf>,
    pub network: RestrictedNetwork,
    /// Whether it may change permissions by path: the kernel can't tell which file is meant.
    pub modes: bool,
}

/// What of the internet a restricted process may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestrictedNetwork {
    None,
    /// Connections to these ports, of whatever machine: the kernel knows no addresses here.
    Ports(Vec<u16>),
    Full,
}

/// What the kernel can't take away, in words for the user.
pub type MissingRestrictions = Vec<&'static str>;

/// Restricts this process and everything it will start. Fails when files can't be kept from it.
pub fn restrict(restriction: &Restriction) -> io::Result<MissingRestrictions> {
    system::restrict(restriction)
}

/// The system call filters for a program that has namespaces of its own, as the kernel reads them.
pub fn filters(nested_sandboxes: bool) -> io::Result<Vec<Vec<u8>>> {
    system::filters(nested_sandboxes)
}

/// A file in memory with this content, to be read from its beginning.
pub fn memory_file(content: &[u8]) -> io::Result<OwnedFd> {
    system::memory_file(content)
}

/// Whether this system keeps ordinary users from making user namespaces unless a profile of AppArmor allows it.
pub fn restricts_namespaces() -> bool {
    system::restricts_namespaces()
}

/// The number of an open file, to be named in an argument.
pub fn number(file: &OwnedFd) -> i32 {
    file.as_raw_fd()
}

/// Takes over a file that was handed over under this number, so that it is not handed on.
#[expect(
    unsafe_code,
    reason = "a number becomes a file; it is one that the program which started us left open for us"
)]
pub fn take_over(number: i32) -> io::Result<OwnedFd> {
    use std::os::fd::{BorrowedFd, FromRawFd};
    if number <= 2 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: the number is only used for one call, which fails if nothing is open under it.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    rustix::io::fcntl_setfd(borrowed, rustix::io::FdFlags::CLOEXEC)?;
    // SAFETY: it is open, and nothing else in this process knows of it: it was handed over at the start.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// A resource with a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limited {
    /// Bytes of private memory of each process.
    Memory,
    /// Processes and threads of this user in this user namespace.
    Processes,
    FileSize,
    OpenFiles,
}

/// Limits this process and everything it will start. A limit that is stricter already stays.
pub fn limit(what: Limited, most: u64) -> io::Result<()> {
    let resource = match what {
        Limited::Memory => Resource::Data,
        Limited::Processes => Resource::Nproc,
        Limited::FileSize => Resource::Fsize,
        Limited::OpenFiles => Resource::Nofile,
    };
    let present = rustix::process::getrlimit(resource).maximum;
    let most = present.map_or(most, |present| present.min(most));
    Ok(setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?)
}

/// Keeps other processes of this user from looking into this one.
pub fn hide_memory() {
    system::hide_memory();
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessEnd {
    pub code: Option<i32>,
    pub signal: Option<i32>,
}

/// What is known of the children once the dead are buried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChildrenLeft {
    /// How the one that is asked about ended, if it did now.
    pub ended: Option<ProcessEnd>,
    /// Whether any child is left.
    pub any: bool,
}

/// Buries every child that ended, as the first process of a namespace must, and looks for the end of one.
pub fn bury(awaited: Pid) -> ChildrenLeft {
    let mut ended = None;
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid == awaited => {
                ended = Some(ProcessEnd { code: status.exit_status(), signal: status.terminating_signal() });
            }
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Ok(None) => return ChildrenLeft { ended, any: true },
            Err(_) => return ChildrenLeft { ended, any: false },
        }
    }
}

/// Becomes another program. Returns only when that fails.
pub fn become_program(command: &mut Command) -> io::Error {
    command.exec()
}
