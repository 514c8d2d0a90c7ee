//! What an earlier life of this program left running when it was killed.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use super::job::TAG;
use crate::platform::process::{Signal, getpid, user};
use crate::platform::table::{self, Process, ProcessId};

/// The longest this takes; a process that hangs in the kernel stays.
const PATIENCE: Duration = Duration::from_secs(5);

/// Before the tag of the process that started us, on every git of ours: it is never killed half-way because of that.
pub const GIT_OF: &str = "git-of:";

/// How often new ones are looked for before all are killed.
const FREEZES: usize = 16;

/// Kills every process of this user whose tag begins with the prefix, and returns how many there were.
///
/// Nothing without the tag in its environment is ever signalled, nor this process and those it descends from. The
/// prefix `run-1` also matches `run-10`, so it should end with whatever separates the parts of a tag. An empty
/// prefix matches nothing.
pub fn kill_leftovers(tag_prefix: &str) -> usize {
    if tag_prefix.is_empty() {
        return 0;
    }
    kill_found(|| tagged(|value| value.starts_with(tag_prefix.as_bytes())))
}

/// Kills whatever the search finds until it finds nothing more, and returns how many there were.
pub(super) fn kill_found(find: impl Fn() -> Vec<Process>) -> usize {
    let mut known: BTreeSet<ProcessId> = BTreeSet::new();
    let mut freezes = 0;
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        let found = find();
        if found.is_empty() {
            break;
        }
        let before = known.len();
        known.extend(found.iter().map(Process::id));
        // While new ones turn up they are only stopped: what is stopped cannot fork. One of us, or a child of such a one
        // that is just being started, has locks that no other process could take while it is stopped.
        if known.len() > before && freezes < FREEZES {
            freezes += 1;
            for entry in &found {
                let at_once = table::runs_this_program(entry.pid);
                entry.signal(if at_once { Signal::KILL } else { Signal::STOP });
            }
        } else {
            freezes = 0;
            found.iter().for_each(|entry| entry.signal(Signal::KILL));
            thread::sleep(Duration::from_millis(1));
        }
    }
    known.len()
}

/// Continues every git that a process with such a tag had started. A sweep stops what it is going to kill; killed itself
/// in between, it leaves them stopped for ever.
pub fn wake_git(tag_prefix: &str) {
    let (mark, me) = (format!("{GIT_OF}{tag_prefix}"), user());
    let is_one = |entry: &&Process| {
        !entry.dead
            && entry.owner() == Some(me)
            && table::has_variable(entry.pid, TAG, |value| value.starts_with(mark.as_bytes()))
    };
    table::all().iter().filter(is_one).for_each(|entry| entry.signal(Signal::CONT));
}

/// The living processes of this user with such a tag, without this one and those it descends from.
pub(super) fn tagged(condition: impl Fn(&[u8]) -> bool) -> Vec<Process> {
    let table = table::all();
    let ours = lineage(&table);
    let me = user();
    let is_leftover = |entry: &Process| {
        !entry.dead
            && !ours.contains(&entry.number())
            && entry.owner() == Some(me)
            && table::has_variable(entry.pid, TAG, &condition)
    };
    table.iter().copied().filter(is_leftover).collect()
}

/// This process, its parent, and so on up.
fn lineage(table: &[Process]) -> BTreeSet<i32> {
    let mut line = BTreeSet::new();
    let mut next = Some(getpid().as_raw_nonzero().get());
    while let Some(number) = next.filter(|&number| line.insert(number)) {
        next = table.iter().find(|entry| entry.number() == number).map(|entry| entry.parent);
    }
    line
}
