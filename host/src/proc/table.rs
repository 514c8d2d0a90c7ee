//! The system's table of processes, as `/proc` tells it. Where there is none the table is empty.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::OnceLock;

use rustix::process::{Pid, Signal, getpid};

use super::job::TAG;

/// Number and start time: together they name a process for ever; the number alone may be given away again.
pub(super) type Name = (i32, u64);

/// One process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) pid: Pid,
    pub(super) start: u64,
    pub(super) parent: i32,
    pub(super) group: i32,
    pub(super) session: i32,
    pub(super) dead: bool,
    /// On its way out by itself: its files are closed, its end not yet recorded.
    pub(super) dying: bool,
}

/// The kernel's flag of a task that is exiting.
const EXITING: u64 = 0x4;

/// Every process we may see.
pub(super) fn all() -> Vec<Entry> {
    let Ok(listing) = fs::read_dir("/proc") else { return Vec::new() };
    let names = listing.filter_map(|item| item.ok()?.file_name().to_str()?.parse().ok());
    names.filter_map(Pid::from_raw).filter_map(Entry::read).collect()
}

/// Our own children, dead ones included, threads taken together.
pub(super) fn children() -> Vec<Entry> {
    if tells_children() {
        return listed_children().into_iter().filter_map(Entry::read).collect();
    }
    let me = getpid().as_raw_nonzero().get();
    all().into_iter().filter(|entry| entry.parent == me).collect()
}

/// The numbers of our own children, at the price of one small read; nothing where the kernel has no such lists.
pub(super) fn child_numbers() -> Vec<Pid> {
    if tells_children() { listed_children() } else { Vec::new() }
}

/// Whether a process was started with a tag that satisfies the condition.
pub(super) fn is_tagged(pid: Pid, condition: impl Fn(&[u8]) -> bool) -> bool {
    let Ok(environ) = fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())) else { return false };
    environ.split(|&byte| byte == 0).any(|variable| {
        let value = variable.strip_prefix(TAG.as_bytes()).and_then(|rest| rest.strip_prefix(b"="));
        value.is_some_and(&condition)
    })
}

/// Whether a process runs this very program: another one of us, or a child of such a one that is just being started.
/// Between fork and exec it still has the environment and the open files of its parent.
pub(super) fn is_one_of_us(pid: Pid) -> bool {
    let file = |path: &str| fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    let mine = file("/proc/self/exe");
    mine.is_some() && file(&format!("/proc/{}/exe", pid.as_raw_nonzero())) == mine
}

/// The roots and everything that descends from them, as far as it is alive.
pub(super) fn families(table: &[Entry], roots: &[Entry]) -> Vec<Entry> {
    let mut members: BTreeSet<i32> = roots.iter().map(Entry::number).collect();
    loop {
        let before = members.len();
        let children = table.iter().filter(|entry| members.contains(&entry.parent));
        let children: Vec<i32> = children.map(Entry::number).collect();
        members.extend(children);
        if members.len() == before {
            break;
        }
    }
    table.iter().filter(|entry| !entry.dead && members.contains(&entry.number())).copied().collect()
}

/// Whether this process started the other one, directly or through others. A process that can't be seen was not.
pub fn is_descendant(pid: i32) -> bool {
    let me = getpid().as_raw_nonzero().get();
    let parent = |pid: i32| Some(Entry::read(Pid::from_raw(pid)?)?.parent);
    // Processes may come and go while this climbs, so it is bounded.
    let climbed = std::iter::successors(parent(pid), |pid| parent(*pid)).take(10_000);
    climbed.take_while(|pid| *pid > 0).any(|pid| pid == me)
}

impl Entry {
    pub(super) fn read(pid: Pid) -> Option<Self> {
        let mut stat = [0; 1024];
        let length = File::open(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?.read(&mut stat).ok()?;
        Self::parse(pid, stat.get(..length)?)
    }

    /// The name of the program stands in parentheses and may hold anything, also parentheses.
    fn parse(pid: Pid, stat: &[u8]) -> Option<Self> {
        let after_name = stat.iter().rposition(|&byte| byte == b')')? + 1;
        let fields = std::str::from_utf8(stat.get(after_name..)?).ok()?;
        let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse().ok();
        Some(Self {
            pid,
            start: fields.get(19)?.parse().ok()?,
            parent: number(1)?,
            group: number(2)?,
            session: number(3)?,
            dead: matches!(*fields.first()?, "Z" | "X" | "x"),
            dying: fields.get(6)?.parse::<u64>().ok()? & EXITING != 0,
        })
    }

    pub(super) fn number(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    pub(super) fn name(&self) -> Name {
        (self.number(), self.start)
    }

    /// Whether its environment, as it was when its program started, has a tag that satisfies the condition.
    pub(super) fn is_tagged(&self, condition: impl Fn(&[u8]) -> bool) -> bool {
        is_tagged(self.pid, condition)
    }

    pub(super) fn owner(&self) -> Option<u32> {
        fs::metadata(format!("/proc/{}", self.number())).ok().map(|meta| meta.uid())
    }

    /// Signals this process and no later one of the same number: the handle is taken first, then compared.
    #[cfg(target_os = "linux")]
    pub(super) fn signal(&self, signal: Signal) {
        use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
        let Ok(handle) = pidfd_open(self.pid, PidfdFlags::empty()) else { return };
        if Self::read(self.pid).is_some_and(|now| now.start == self.start) {
            let _ = pidfd_send_signal(&handle, signal);
        }
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn signal(&self, _: Signal) {}
}

/// Not every kernel is built with the short lists of children.
fn tells_children() -> bool {
    static TELLS: OnceLock<bool> = OnceLock::new();
    *TELLS.get_or_init(|| Path::new("/proc/thread-self/children").exists())
}

fn listed_children() -> Vec<Pid> {
    let Ok(threads) = fs::read_dir("/proc/self/task") else { return Vec::new() };
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("children")).ok());
    lists.flat_map(|list| numbers(&list)).collect()
}

fn numbers(list: &str) -> Vec<Pid> {
    list.split_ascii_whitespace().filter_map(|word| Pid::from_raw(word.parse().ok()?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_name_cannot_forge_the_line() {
        let line = b"7 (a) Z 9 9 9) S 3 5 6 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 100 2 3";
        let entry = Entry::parse(getpid(), line);
        let facts = entry.map(|e| (e.parent, e.group, e.session, e.start, e.dead, e.dying));
        assert_eq!(facts, Some((3, 5, 6, 4711, false, false)));
        assert_eq!(Entry::parse(getpid(), b"7 (a) S 3 5"), None);
        assert_eq!(Entry::parse(getpid(), b""), None);
    }

    #[test]
    fn the_list_of_children_is_numbers() {
        let found: Vec<i32> = numbers("12 345 6 ").iter().map(|pid| pid.as_raw_nonzero().get()).collect();
        assert_eq!(found, [12, 345, 6]);
        assert!(numbers("").is_empty());
    }
}
