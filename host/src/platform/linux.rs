//! Linux: `/proc`, pidfds, subreapers and the death signal of a parent.

mod changes;
mod filter;
mod landlock;
mod pages;
mod start;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{MemfdFlags, RawMode, Stat, memfd_create};
use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal};
use rustix::rand::{GetRandomFlags, getrandom};

pub(super) use changes::FolderChanges;
pub(super) use pages::release_program;
pub(super) use start::start_session;

use super::Errno;
use super::machine::ProcessMemory;
use super::table::Process;

pub(super) const ADOPTS_ORPHANS: bool = true;
pub(super) const IGNORES_CASE: bool = false;

/// The kernel's flag of a task that is exiting.
const EXITING: u64 = 0x4;

pub(super) fn numbers() -> Vec<Pid> {
    let Ok(listing) = fs::read_dir("/proc") else { return Vec::new() };
    let names = listing.filter_map(|item| item.ok()?.file_name().to_str()?.parse().ok());
    names.filter_map(Pid::from_raw).collect()
}

/// Not every kernel is built with the short lists of children.
pub(super) fn child_numbers() -> Option<Vec<Pid>> {
    static HAS_LISTS: OnceLock<bool> = OnceLock::new();
    if !*HAS_LISTS.get_or_init(|| Path::new("/proc/thread-self/children").exists()) {
        return None;
    }
    let Ok(threads) = fs::read_dir("/proc/self/task") else { return Some(Vec::new()) };
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("children")).ok());
    Some(lists.flat_map(|list| parse_numbers(&list)).collect())
}

fn parse_numbers(list: &str) -> Vec<Pid> {
    list.split_ascii_whitespace().filter_map(|word| Pid::from_raw(word.parse().ok()?)).collect()
}

pub(super) fn process(pid: Pid) -> Option<Process> {
    let mut stat = [0; 1024];
    let length = File::open(proc_file(pid, "stat")).ok()?.read(&mut stat).ok()?;
    parse_stat(pid, stat.get(..length)?)
}

/// The name of the program is in parentheses and may hold anything, also parentheses.
fn parse_stat(pid: Pid, stat: &[u8]) -> Option<Process> {
    let after_name = stat.iter().rposition(|&byte| byte == b')')? + 1;
    let fields = std::str::from_utf8(stat.get(after_name..)?).ok()?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse().ok();
    Some(Process {
        pid,
        start: fields.get(19)?.parse().ok()?,
        parent: number(1)?,
        group: number(2)?,
        session: number(3)?,
        dead: matches!(*fields.first()?, "Z" | "X" | "x"),
        dying: fields.get(6)?.parse::<u64>().ok()? & EXITING != 0,
    })
}

pub(super) fn environment(pid: Pid) -> Option<Vec<u8>> {
    fs::read(proc_file(pid, "environ")).ok()
}

pub(super) fn first_argument(pid: Pid) -> Option<Vec<u8>> {
    let line = fs::read(proc_file(pid, "cmdline")).ok()?;
    line.split(|byte| *byte == 0).nth(1).map(<[u8]>::to_vec)
}

pub(super) fn owner(pid: Pid) -> Option<u32> {
    fs::metadata(proc_file(pid, "")).ok().map(|meta| meta.uid())
}

pub(super) fn program(pid: Pid) -> Option<PathBuf> {
    fs::read_link(proc_file(pid, "exe")).ok()
}

pub(super) fn program_file(pid: Pid) -> Option<(u64, u64)> {
    fs::metadata(proc_file(pid, "exe")).ok().map(|found| (found.dev(), found.ino()))
}

fn proc_file(pid: Pid, name: &str) -> String {
    format!("/proc/{}/{name}", pid.as_raw_nonzero())
}

/// The handle is taken first, then compared, so no later process of the same number is meant.
pub(super) fn signal(process: &Process, signal: Signal) {
    let Ok(handle) = pidfd_open(process.pid, PidfdFlags::empty()) else { return };
    if Process::read(process.pid).is_some_and(|now| now.start == process.start) {
        let _ = pidfd_send_signal(&handle, signal);
    }
}

pub(super) fn adopt_orphans() -> bool {
    rustix::process::set_child_subreaper(Some(getpid())).is_ok() && process(getpid()).is_some()
}

pub(super) fn die_with_parent() -> Result<(), Errno> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
}

pub(super) fn exit_notice(pid: Pid) -> io::Result<OwnedFd> {
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

pub(super) fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
    mask & (1 << (signal - 1)) != 0
}

pub(super) fn has_open(file: &Path) -> Option<i32> {
    let holds = |pid: &Pid| {
        let Ok(open) = fs::read_dir(proc_file(*pid, "fd")) else { return false };
        open.flatten().filter_map(|fd| fs::read_link(fd.path()).ok()).any(|link| link == file)
    };
    numbers().into_iter().find(holds).map(|pid| pid.as_raw_nonzero().get())
}

pub(super) fn raw_mode(mode: u32) -> RawMode {
    mode
}

pub(super) fn owner_and_mode(stat: &Stat) -> (u32, u32) {
    (stat.st_uid, stat.st_mode)
}

pub(super) fn sync(file: BorrowedFd<'_>) -> Result<(), Errno> {
    rustix::fs::fsync(file)
}

pub(super) fn sync_file_system(directory: BorrowedFd<'_>) -> Result<(), Errno> {
    rustix::fs::syncfs(directory)
}

pub(super) fn random(into: &mut [u8]) -> io::Result<()> {
    let mut filled = 0;
    while let Some(rest) = into.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        filled += rustix::io::retry_on_intr(|| getrandom(&mut *rest, GetRandomFlags::empty()))?;
    }
    Ok(())
}

pub(super) fn load() -> Option<u64> {
    hundredths(fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?)
}

pub(super) fn available_memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

/// The kernel's running count, which is cheap and has shared memory once for each process.
pub(super) fn memory_of(pid: Pid) -> Option<ProcessMemory> {
    let text = fs::read_to_string(proc_file(pid, "status")).ok()?;
    Some(ProcessMemory { own: kilobytes(&text, "RssAnon:")?, shared: kilobytes(&text, "RssShmem:")? })
}

/// The same with this process's part of what it shares; dear, because the kernel looks at every page.
pub(super) fn share_of_memory(pid: Pid) -> Option<ProcessMemory> {
    let text = fs::read_to_string(proc_file(pid, "smaps_rollup")).ok()?;
    Some(ProcessMemory { own: kilobytes(&text, "Pss_Anon:")?, shared: kilobytes(&text, "Pss_Shmem:")? })
}

/// The number of kilobytes on the line that begins so, in bytes.
fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().trim_end_matches(" kB").parse::<u64>().ok().map(|count| count * 1024)
}

/// Bytes in file systems that are memory (`/dev/shm` and whatever else was mounted) of these processes and not ours.
pub(super) fn memory_in_files(pids: &[Pid]) -> u64 {
    let namespace = |pid: Pid| fs::read_link(proc_file(pid, "ns/mnt")).ok();
    let mut known: Vec<String> = in_memory(getpid()).into_iter().map(|(device, _)| device).collect();
    let mut seen = vec![namespace(getpid())];
    let mut used = 0_u64;
    for pid in pids {
        let space = namespace(*pid);
        if space.is_none() || seen.contains(&space) {
            continue;
        }
        seen.push(space);
        for (device, place) in in_memory(*pid) {
            if known.contains(&device) {
                continue;
            }
            let root = PathBuf::from(proc_file(*pid, "root"));
            if let Some(bytes) = held_by(&root, &device, &place) {
                known.push(device);
                used = used.saturating_add(bytes);
            }
        }
    }
    used
}

/// Bytes in the file system of this device at this place below a root. `None` if the place is in another one: a process
/// that builds a sandbox changes its mounts and its root between two looks at it, and then the same path may lead to a
/// disk.
fn held_by(root: &Path, device: &str, place: &Path) -> Option<u64> {
    let place = root.join(place.strip_prefix("/").unwrap_or(place));
    let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::CLOEXEC;
    let opened = rustix::fs::open(&place, flags, rustix::fs::Mode::empty()).ok()?;
    let at = rustix::fs::fstat(&opened).ok()?.st_dev;
    if format!("{}:{}", rustix::fs::major(at), rustix::fs::minor(at)) != device {
        return None;
    }
    let found = rustix::fs::fstatvfs(&opened).ok()?;
    Some(found.f_blocks.saturating_sub(found.f_bfree).saturating_mul(found.f_frsize))
}

/// Device and place of each file system in memory that a process sees from its root on.
fn in_memory(pid: Pid) -> Vec<(String, PathBuf)> {
    let text = fs::read_to_string(proc_file(pid, "mountinfo")).unwrap_or_default();
    let entry = |line: &str| {
        let (mount, file_system) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(2);
        let (device, root, place) = (fields.next()?, fields.next()?, fields.next()?);
        let memory = matches!(file_system.split(' ').next()?, "tmpfs" | "ramfs");
        (memory && root == "/").then(|| (device.to_owned(), unescaped(place)))
    };
    text.lines().filter_map(entry).collect()
}

/// A path as the kernel lists it: blanks, line breaks and backslashes are three octal digits after a backslash.
fn unescaped(path: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits =
            after.get(..3).filter(|_| *first == b'\\').and_then(|three| std::str::from_utf8(three).ok());
        let code = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { after.get(3..).unwrap_or_default() } else { after };
    }
    PathBuf::from(OsString::from_vec(bytes))
}

/// `1.25` as 125.
fn hundredths(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.')?;
    Some(whole.parse::<u64>().ok()? * 100 + part.get(..2)?.parse::<u64>().ok()?)
}

/// The user and the process at the other end of a socket.
pub(super) fn socket_peer(stream: &std::os::unix::net::UnixStream) -> io::Result<(u32, Option<i32>)> {
    // SO_PEERCRED says 0 for a process that this namespace can't see; the wrapper has no number for that.
    let credentials = rustix::net::sockopt::socket_peercred(stream)?;
    Ok((credentials.uid.as_raw(), Some(credentials.pid.as_raw_nonzero().get())))
}

pub(super) use landlock::restrict;

pub(super) fn filters(nested_sandboxes: bool) -> io::Result<Vec<Vec<u8>>> {
    // They are the same at every start.
    static MADE: [OnceLock<Vec<Vec<u8>>>; 2] = [const { OnceLock::new() }; 2];
    let [plain, nested] = &MADE;
    let made = if nested_sandboxes { nested } else { plain };
    if let Some(programs) = made.get() {
        return Ok(programs.clone());
    }
    let scope = filter::FilterScope {
        nested_sandboxes,
        own_namespaces: true,
        network: filter::FilteredNetwork::Full,
        modes: true,
    };
    let programs: Vec<Vec<u8>> = filter::programs(scope)?.iter().map(filter::bytes).collect();
    Ok(made.get_or_init(|| programs).clone())
}

pub(super) fn memory_file(content: &[u8]) -> io::Result<OwnedFd> {
    let mut file = File::from(memfd_create("archeflow", MemfdFlags::CLOEXEC)?);
    file.write_all(content)?;
    file.rewind()?;
    Ok(file.into())
}

pub(super) fn restricts_namespaces() -> bool {
    let switch = fs::read_to_string("/proc/sys/kernel/apparmor_restrict_unprivileged_userns");
    switch.is_ok_and(|value| value.trim() == "1")
}

/// A short path to an open folder.
pub(super) fn path_of_open(file: &fs::File) -> Option<PathBuf> {
    use std::os::fd::AsRawFd;
    Some(PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd())))
}

pub(super) fn hide_memory() {
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use super::*;

    #[test]
    fn a_program_name_cannot_forge_the_line() {
        let line = b"7 (a) Z 9 9 9) S 3 5 6 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 100 2 3";
        let process = parse_stat(getpid(), line);
        let facts = process.map(|p| (p.parent, p.group, p.session, p.start, p.dead, p.dying));
        assert_eq!(facts, Some((3, 5, 6, 4711, false, false)));
        assert_eq!(parse_stat(getpid(), b"7 (a) S 3 5"), None);
        assert_eq!(parse_stat(getpid(), b""), None);
    }

    #[test]
    fn the_list_of_children_is_numbers() {
        let found: Vec<i32> =
            parse_numbers("12 345 6 ").iter().map(|pid| pid.as_raw_nonzero().get()).collect();
        assert_eq!(found, [12, 345, 6]);
        assert!(parse_numbers("").is_empty());
    }

    /// A process between two mounts: its list names a file system that its root does not show any more.
    #[test]
    fn s_12_another_file_system_at_the_place_of_a_memory_file_system_is_not_counted() {
        let root = tempfile::tempdir().unwrap();
        let moved = root.path().join("moved");
        let all = in_memory(getpid());
        let held: Vec<_> =
            all.iter().filter(|(device, place)| held_by(Path::new("/"), device, place).is_some()).collect();
        assert!(!held.is_empty(), "no file system in memory here: {all:?}");
        for (device, place) in held {
            fs::create_dir_all(moved.join(place.strip_prefix("/").unwrap())).unwrap();
            let elsewhere = format!("{device}0");
            assert_eq!(held_by(Path::new("/"), &elsewhere, place), None);
            assert_eq!(held_by(&root.path().join("gone"), device, place), None);
            let own = fs::metadata(&moved).unwrap().dev();
            let same = format!("{}:{}", rustix::fs::major(own), rustix::fs::minor(own)) == *device;
            assert_eq!(held_by(&moved, device, place).is_some(), same);
        }
    }

    #[test]
    fn a_path_in_the_list_of_mounts_is_read_whole() {
        for (listed, path) in [
            ("/dev/shm", "/dev/shm"),
            ("/a\\040b\\011c\\012d", "/a b\tc\nd"),
            ("/a\\134040", "/a\\040"),
            ("/a\\9", "/a\\9"),
            ("/a\\", "/a\\"),
            ("/\\777", "/\\777"),
        ] {
            assert_eq!(unescaped(listed), Path::new(path), "{listed}");
        }
    }

    #[test]
    fn load_is_read_in_hundredths() {
        assert_eq!(
            [hundredths("1.25"), hundredths("0.07"), hundredths("12"), hundredths("x.yz")],
            [Some(125), Some(7), None, None]
        );
    }
}
