//! The system's table of processes.

use std::collections::BTreeSet;

use super::process::{Pid, Signal, getpid};
use super::system;

/// Where the system shows its processes as files, if it does.
pub const FOLDER: &str = "/proc";

/// Number and start time: together they name a process for ever; the number alone may be given away again.
pub type ProcessId = (i32, u64);

/// One process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    pub pid: Pid,
    /// In the system's own unit; only compared.
    pub start: u64,
    pub parent: i32,
    pub group: i32,
    pub session: i32,
    pub dead: bool,
    /// On its way out by itself: its files are closed, its end not yet recorded.
    pub dying: bool,
}

impl Process {
    pub fn read(pid: Pid) -> Option<Self> {
        system::process(pid)
    }

    pub fn number(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    pub fn id(&self) -> ProcessId {
        (self.number(), self.start)
    }

    /// The user it belongs to.
    pub fn owner(&self) -> Option<u32> {
        system::owner(self.pid)
    }

    /// Signals this process and no later one of the same number, as far as the system can rule that out.
    pub fn signal(&self, signal: Signal) {
        system::signal(self, signal);
    }
}

/// Every process we may see.
pub fn all() -> Vec<Process> {
    system::numbers().into_iter().filter_map(Process::read).collect()
}

/// Our own children, dead ones included, threads taken together.
pub fn children() -> Vec<Process> {
    if let Some(children) = system::child_numbers() {
        return children.into_iter().filter_map(Process::read).collect();
    }
    let me = getpid().as_raw_nonzero().get();
    all().into_iter().filter(|process| process.parent == me).collect()
}

/// The numbers of our own children, at the price of one small read; nothing where the system has no such list.
pub fn child_numbers() -> Vec<Pid> {
    system::child_numbers().unwrap_or_default()
}

/// Whether a process was started with this variable at a value that satisfies the condition.
pub fn has_variable(pid: Pid, variable: &str, condition: impl Fn(&[u8]) -> bool) -> bool {
    let Some(environment) = system::environment(pid) else { return false };
    environment.split(|&byte| byte == 0).any(|entry| {
        let value = entry.strip_prefix(variable.as_bytes()).and_then(|rest| rest.strip_prefix(b"="));
        value.is_some_and(&condition)
    })
}

/// Whether a process runs this very program: another one of us, or a child of such a one that is just being started.
/// Between fork and exec it still has the environment and the open files of its parent.
pub fn runs_this_program(pid: Pid) -> bool {
    let mine = system::program_file(getpid());
    mine.is_some() && system::program_file(pid) == mine
}

/// Whether a process was started with this word behind the name of its program.
pub fn was_started_as(pid: Pid, word: &str) -> bool {
    system::first_argument(pid).is_some_and(|first| first == word.as_bytes())
}

/// The roots and everything that descends from them, as far as it is alive.
pub fn families(table: &[Process], roots: &[Process]) -> Vec<Process> {
    let mut members: BTreeSet<i32> = roots.iter().map(Process::number).collect();
    loop {
        let before = members.len();
        let children = table.iter().filter(|process| members.contains(&process.parent));
        let children: Vec<i32> = children.map(Process::number).collect();
        members.extend(children);
        if members.len() == before {
            break;
        }
    }
    table.iter().filter(|process| !process.dead && members.contains(&process.number())).copied().collect()
}

/// Whether this process started the other one, directly or through others. A process that can't be seen was not.
pub fn is_descendant(pid: i32) -> bool {
    let me = getpid().as_raw_nonzero().get();
    let parent = |pid: i32| Some(Process::read(Pid::from_raw(pid)?)?.parent);
    // Processes may come and go while this climbs, so it is bounded.
    let climbed = std::iter::successors(parent(pid), |pid| parent(*pid)).take(10_000);
    climbed.take_while(|pid| *pid > 0).any(|pid| pid == me)
}
