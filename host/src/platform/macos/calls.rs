//! The system calls of macOS that no safe library offers without the headers of an SDK at build time. Each function
//! makes one call, gives it a buffer it owns together with that buffer's size, and returns plain values.

#![expect(
    unsafe_code,
    reason = "libproc and sysctl have no safe interface that builds without Apple's headers; every call gets a buffer of ours and its length"
)]

use std::ffi::{CStr, OsStr, c_int, c_void};
use std::mem::size_of;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;

/// Of `proc_info.h`, absent from `libc`: the file behind a descriptor, with its path.
const PROC_PIDFDVNODEPATHINFO: c_int = 2;
const PROX_FDTYPE_VNODE: u32 = 1;
/// Where the path is in that answer: behind the state of the descriptor (24 bytes) and of the file (152 bytes).
const PATH_AT: usize = 176;
const PATH_LENGTH: usize = 1024;

/// The arguments and environment of a process are at most this long (`ARG_MAX`).
const MOST_ARGUMENTS: usize = 1024 * 1024;

/// Every process, dead ones included.
pub(super) fn all_pids() -> Vec<i32> {
    // SAFETY: without a buffer the call only counts.
    let expected = unsafe { libc::proc_listallpids(ptr::null_mut(), 0) };
    // Room for those that start in between.
    let mut pids = vec![0_i32; usize::try_from(expected).unwrap_or(0) + 64];
    let Ok(size) = c_int::try_from(pids.len() * size_of::<i32>()) else { return Vec::new() };
    // SAFETY: the buffer is ours, is `size` bytes long, and lives until the call returns.
    let found = unsafe { libc::proc_listallpids(pids.as_mut_ptr().cast(), size) };
    pids.truncate(usize::try_from(found).unwrap_or(0));
    pids
}

/// Parent, group, owner, start and state. The argument 1 asks for dead processes too.
pub(super) fn bsd_info(pid: i32) -> Option<libc::proc_bsdinfo> {
    // SAFETY: the structure consists of numbers and arrays of numbers, for which zero is a value.
    let mut info: libc::proc_bsdinfo = unsafe { std::mem::zeroed() };
    let size = c_int::try_from(size_of::<libc::proc_bsdinfo>()).ok()?;
    let to = ptr::from_mut(&mut info).cast::<c_void>();
    // SAFETY: `to` points to `size` bytes of ours that live until the call returns.
    let written = unsafe { libc::proc_pidinfo(pid, libc::PROC_PIDTBSDINFO, 1, to, size) };
    (written == size).then_some(info)
}

pub(super) fn program(pid: i32) -> Option<PathBuf> {
    let mut path = vec![0_u8; usize::try_from(libc::PROC_PIDPATHINFO_MAXSIZE).ok()?];
    let size = u32::try_from(path.len()).ok()?;
    // SAFETY: the buffer is ours, is `size` bytes long, and lives until the call returns.
    let length = unsafe { libc::proc_pidpath(pid, path.as_mut_ptr().cast(), size) };
    let path = path.get(..usize::try_from(length).ok().filter(|&length| length > 0)?)?;
    Some(PathBuf::from(OsStr::from_bytes(path)))
}

/// What a process was started with, as `arguments.rs` reads it. Readable only for the same user.
pub(super) fn arguments(pid: i32) -> Option<Vec<u8>> {
    let mut request = [libc::CTL_KERN, libc::KERN_PROCARGS2, pid];
    let mut answer = vec![0_u8; MOST_ARGUMENTS];
    let mut size = answer.len();
    let count = u32::try_from(request.len()).ok()?;
    // SAFETY: request and answer are ours and live until the call returns; `size` is the length of the answer, and
    // nothing is written to the kernel.
    let result = unsafe {
        libc::sysctl(
            request.as_mut_ptr(),
            count,
            answer.as_mut_ptr().cast(),
            &raw mut size,
            ptr::null_mut(),
            0,
        )
    };
    answer.truncate(if result == 0 { size } else { 0 });
    (result == 0).then_some(answer)
}

/// A number the system has under this name, in whichever width.
pub(super) fn number(name: &CStr) -> Option<u64> {
    let mut answer = [0_u8; 8];
    let mut size = answer.len();
    // SAFETY: the name ends with a zero byte, `size` is the length of the answer, both live until the call returns,
    // and nothing is written to the kernel.
    let result = unsafe {
        libc::sysctlbyname(name.as_ptr(), answer.as_mut_ptr().cast(), &raw mut size, ptr::null_mut(), 0)
    };
    match (result, size) {
        (0, 4) => answer.first_chunk().map(|narrow| u64::from(u32::from_ne_bytes(*narrow))),
        (0, 8) => Some(u64::from_ne_bytes(answer)),
        _ => None,
    }
}

pub(super) fn load_in_hundredths() -> Option<u64> {
    let mut minute = [0_f64];
    // SAFETY: the array is ours and has the one element that is asked for.
    let answered = unsafe { libc::getloadavg(minute.as_mut_ptr(), 1) };
    let [minute] = minute;
    if answered != 1 || !(0.0..1e6).contains(&minute) {
        return None;
    }
    format!("{:.0}", minute * 100.0).parse().ok()
}

pub(super) fn is_ignored(signal: i32) -> bool {
    // SAFETY: the structure consists of numbers, for which zero is a value.
    let mut current: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: without a new action the call only writes the present one to `current`, which is ours.
    let result = unsafe { libc::sigaction(signal, ptr::null(), &raw mut current) };
    result == 0 && current.sa_sigaction == libc::SIG_IGN
}

/// Whether one of the process's descriptors is this file. Only the same user's descriptors are listed.
pub(super) fn has_open(pid: i32, file: &Path) -> bool {
    let path = file.as_os_str().as_bytes();
    let files = descriptors(pid).into_iter().filter(|fd| fd.proc_fdtype == PROX_FDTYPE_VNODE);
    files.filter_map(|fd| path_of(pid, fd.proc_fd)).any(|found| found == path)
}

fn descriptors(pid: i32) -> Vec<libc::proc_fdinfo> {
    // SAFETY: without a buffer the call only says how many bytes there are.
    let expected = unsafe { libc::proc_pidinfo(pid, libc::PROC_PIDLISTFDS, 0, ptr::null_mut(), 0) };
    let each = size_of::<libc::proc_fdinfo>();
    let count = usize::try_from(expected).unwrap_or(0) / each + 16;
    let mut found = vec![libc::proc_fdinfo { proc_fd: 0, proc_fdtype: 0 }; count];
    let Ok(size) = c_int::try_from(count * each) else { return Vec::new() };
    // SAFETY: the buffer is ours, is `size` bytes long, and lives until the call returns.
    let written =
        unsafe { libc::proc_pidinfo(pid, libc::PROC_PIDLISTFDS, 0, found.as_mut_ptr().cast(), size) };
    found.truncate(usize::try_from(written).unwrap_or(0) / each);
    found
}

fn path_of(pid: i32, fd: i32) -> Option<Vec<u8>> {
    let mut answer = [0_u8; PATH_AT + PATH_LENGTH];
    let size = c_int::try_from(answer.len()).ok()?;
    // SAFETY: the buffer is ours, is `size` bytes long, and lives until the call returns.
    let written =
        unsafe { libc::proc_pidfdinfo(pid, fd, PROC_PIDFDVNODEPATHINFO, answer.as_mut_ptr().cast(), size) };
    let path = answer.get(PATH_AT..).filter(|_| written == size)?;
    let end = path.iter().position(|&byte| byte == 0)?;
    path.get(..end).map(<[u8]>::to_vec)
}

/// The user at the other end of a local socket.
pub(super) fn peer_user(fd: c_int) -> std::io::Result<u32> {
    let (mut user, mut group) = (0, 0);
    // SAFETY: both places are ours and live until the call returns.
    let result = unsafe { libc::getpeereid(fd, &raw mut user, &raw mut group) };
    if result == 0 { Ok(user) } else { Err(std::io::Error::last_os_error()) }
}

/// The process at the other end of a local socket.
pub(super) fn peer_process(fd: c_int) -> Option<i32> {
    let mut pid: c_int = 0;
    let mut size = libc::socklen_t::try_from(size_of::<c_int>()).ok()?;
    let to = ptr::from_mut(&mut pid).cast::<c_void>();
    // SAFETY: `to` points to `size` bytes of ours that live until the call returns.
    let result = unsafe { libc::getsockopt(fd, libc::SOL_LOCAL, libc::LOCAL_PEERPID, to, &raw mut size) };
    (result == 0).then_some(pid)
}
