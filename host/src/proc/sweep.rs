//! Removes what jobs leave behind, also what left their process group or cleared its environment.
//!
//! As a subreaper we become the parent of every descendant that loses its own. So an *orphan* is a child of ours
//! that is not in the registry, and everything a dead leader left is an orphan or descends from one. An orphan is a
//! job's when it carries the job's tag or is still in its session; what cannot be attributed is left to the last
//! job that runs. A dead orphan is merely reaped.
//!
//! A table of processes is never of one moment, so one pass proves nothing unless it finds nothing: the dead stay
//! in the table until we reap them, hence a pass without any orphan means that there is none.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Child;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::job::TAG;
use super::leftovers::{self, GIT_OF};
use super::signals;
use crate::platform::children;
use crate::platform::process::{
    self, ADOPTS_ORPHANS, Pid, Signal, getpid, has_dead_child, is_childless, kill_process, kill_process_group,
};
use crate::platform::table::{self, Process, ProcessId};
use crate::platform::watcher;

/// The longest a sweep takes; a process that hangs in the kernel is left to the next one.
const PATIENCE: Duration = Duration::from_secs(10);

/// So long a git of ours may take to finish what it does before it counts as left behind: killed half-way it leaves its
/// locks in the user's repository, and its work half done.
const LEAVE: Duration = Duration::from_secs(5);

/// How often new members of a family are looked for before the family is killed.
const FREEZES: usize = 16;

/// How often an orphan that shows no tag is looked at again: between fork and exec there is none to see.
const SECOND_LOOKS: usize = 3;

/// How long a family that was killed may take to be gone.
const FAREWELL: Duration = Duration::from_millis(500);

/// How often the dead are buried while a job runs.
const BURIAL: Duration = Duration::from_secs(1);

static POSSIBLE: AtomicBool = AtomicBool::new(false);
static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// Makes orphans of our children ours. Call once at the start of the program; on systems without it, does nothing.
///
/// Also sees to it that exit codes reach us, whatever the program was started with.
pub fn become_subreaper() {
    signals::keep_exit_codes();
    if process::adopt_orphans() {
        POSSIBLE.store(true, Ordering::Release);
    }
}

/// Kills and reaps every child that is not registered. For the end of the program, when no job runs any more.
pub fn finish_all() -> usize {
    sweep(&Claim::Everything)
}

/// Kills a child of ours, its group and everything that still descends from it. Waiting for it is the caller's.
pub fn kill_family(child: &Child) {
    let pid = Pid::from_child(child);
    match Process::read(pid) {
        Some(root) => drop(kill_families(&[root])),
        None => drop(kill_process_group(pid, Signal::KILL)),
    }
}

/// Who belongs to a child of ours at this moment.
pub fn family(child: &Child) -> Family {
    let root = Process::read(Pid::from_child(child));
    Family(root.map(|root| table::families(&table::all(), &[root])).unwrap_or_default())
}

/// Processes by number and time of birth, so that no other can be meant later.
pub struct Family(Vec<Process>);

impl Family {
    /// Those that are still there, and waits for a moment till they no longer are.
    pub fn kill(&self) {
        let begun = Instant::now();
        let alive = |member: &&Process| {
            Process::read(member.pid).is_some_and(|now| now.start == member.start && !now.dead)
        };
        while begun.elapsed() < FAREWELL && self.0.iter().any(|member| alive(&member)) {
            self.0.iter().filter(alive).for_each(|member| member.signal(Signal::KILL));
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Whether orphans become our children and can be listed.
pub(super) fn is_possible() -> bool {
    POSSIBLE.load(Ordering::Acquire)
}

/// Sweeps what belongs to a job whose leader is reaped. Members of the group of a job that was ended by force were
/// killed with it and are not counted, however long they take to die.
pub(super) fn after_job(tag: &str, leader: Pid, forced: bool) -> usize {
    sweep(&Claim::Job { tag, leader: leader.as_raw_nonzero().get(), forced })
}

/// Counts the jobs that run, so that the last one knows that it is.
pub(super) struct Running(());

impl Running {
    pub(super) fn enter() -> Self {
        RUNNING.fetch_add(1, Ordering::AcqRel);
        Self(())
    }

    /// The last job sweeps processes that belong to no job.
    pub(super) fn leave(self) -> usize {
        drop(self);
        sweep(&Claim::Unattributed)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Whether every job is over, after waiting for that at most so long.
pub fn all_over(patience: Duration) -> bool {
    let begun = Instant::now();
    loop {
        if RUNNING.load(Ordering::Acquire) == 0 {
            return true;
        }
        if begun.elapsed() >= patience {
            return false;
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Which orphans a sweep may kill.
enum Claim<'a> {
    Job { tag: &'a str, leader: i32, forced: bool },
    Unattributed,
    Everything,
}

impl Claim<'_> {
    /// While the registry is locked no job can start a process, so the answer holds as long as the lock.
    fn holds(&self) -> bool {
        match self {
            Self::Job { .. } | Self::Everything => true,
            Self::Unattributed => RUNNING.load(Ordering::Acquire) == 0,
        }
    }

    /// An orphan belongs to the job when it or anything that descends from it does.
    fn covers(&self, orphan: &Process, table: &[Process]) -> bool {
        match self {
            Self::Job { tag, leader, .. } => {
                let is_kin = |entry: &Process| {
                    entry.session == *leader || is_tagged(entry.pid, |value| value == tag.as_bytes())
                };
                is_kin(orphan) || table::families(table, &[*orphan]).iter().any(is_kin)
            }
            Self::Unattributed | Self::Everything => true,
        }
    }

    /// The same from the orphan alone, as far as that goes.
    fn is_sure_of(&self, orphan: Pid) -> bool {
        match self {
            Self::Job { tag, .. } => is_tagged(orphan, |value| value == tag.as_bytes()),
            Self::Unattributed | Self::Everything => true,
        }
    }

    fn counts(&self, entry: &Process) -> bool {
        match self {
            Self::Job { leader, forced, .. } => !(*forced && entry.group == *leader),
            Self::Unattributed | Self::Everything => true,
        }
    }
}

fn is_tagged(pid: Pid, condition: impl Fn(&[u8]) -> bool) -> bool {
    table::has_variable(pid, TAG, condition)
}

fn sweep(claim: &Claim) -> usize {
    if ADOPTS_ORPHANS { sweep_adopted(claim) } else { sweep_marked(claim) }
}

/// The tags of the jobs of this program, for systems where only a tag identifies the owner of an orphan.
static TAGS: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

pub(super) fn remember(tag: &str) {
    if !ADOPTS_ORPHANS {
        TAGS.lock().unwrap_or_else(PoisonError::into_inner).insert(tag.to_owned());
    }
}

/// Where orphans get another parent they are recognised by the session of their job or by its tag. One that left the
/// session and whose environment can't be read is not found.
fn sweep_marked(claim: &Claim) -> usize {
    match claim {
        Claim::Job { tag, leader, forced } => {
            let session = BTreeSet::from([*leader]);
            // A member of a group that was killed with its job is not counted, however long it takes to die.
            let count = |one: &Process| !(*forced && one.group == *leader);
            let of_session = leftovers::kill_found(|| {
                watcher::members(&session).into_iter().filter(|one| count(one)).collect()
            });
            of_session + leftovers::kill_found(|| leftovers::tagged(|value| value == tag.as_bytes()))
        }
        Claim::Unattributed | Claim::Everything if !claim.holds() => 0,
        Claim::Unattributed | Claim::Everything => {
            let tags = TAGS.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let is_ours = |value: &[u8]| tags.iter().any(|tag| tag.as_bytes() == value);
            leftovers::kill_found(|| if tags.is_empty() { Vec::new() } else { leftovers::tagged(is_ours) })
        }
    }
}

fn sweep_adopted(claim: &Claim) -> usize {
    let begun = Instant::now();
    let mut killed = BTreeSet::new();
    let mut looks = 0;
    while begun.elapsed() < PATIENCE {
        match pass(claim, begun.elapsed() < LEAVE, &mut killed) {
            Pass::Clean => break,
            Pass::Strangers if looks == SECOND_LOOKS => break,
            Pass::Strangers => looks += 1,
            Pass::Busy => {}
        }
        thread::sleep(Duration::from_micros(500));
    }
    killed.len()
}

/// What one look at our children showed.
enum Pass {
    /// No orphan.
    Clean,
    /// Only orphans that are not to be claimed.
    Strangers,
    /// Something was reaped or killed; look again.
    Busy,
}

fn pass(claim: &Claim, spare_git: bool, killed: &mut BTreeSet<ProcessId>) -> Pass {
    let ours = children::lock();
    if !claim.holds() || is_childless() {
        return Pass::Clean;
    }
    halt(claim, &ours, spare_git);
    let (dead, rest): (Vec<Process>, Vec<Process>) = orphans(&ours).into_iter().partition(|entry| entry.dead);
    // A first thread that ended looks dead while others of its process live on; it cannot be reaped.
    let (reaped, headless): (Vec<Process>, Vec<Process>) = dead.into_iter().partition(reap);
    let (dying, alive): (Vec<Process>, Vec<Process>) = rest.into_iter().partition(|entry| entry.dying);
    let (gits, alive): (Vec<Process>, Vec<Process>) =
        alive.into_iter().partition(|entry| spare_git && may_be_git(entry.pid));
    let moving = !reaped.is_empty() || !dying.is_empty() || !gits.is_empty();
    if alive.is_empty() && headless.is_empty() {
        return if moving { Pass::Busy } else { Pass::Clean };
    }
    let table = table::all();
    let mut claimed = [alive, headless].concat();
    claimed.retain(|orphan| claim.covers(orphan, &table));
    if claimed.is_empty() {
        return if moving { Pass::Busy } else { Pass::Strangers };
    }
    let family = kill_families(&claimed);
    killed.extend(family.iter().filter(|entry| claim.counts(entry)).map(Process::id));
    Pass::Busy
}

/// Stops at once what is certainly claimed: against what forks without end, every moment between seeing and stopping
/// counts. The numbers are those of our own children, which keep them until we reap them; no other process can.
fn halt(claim: &Claim, ours: &BTreeSet<u32>, spare_git: bool) {
    let is_ours = |pid: &Pid| u32::try_from(pid.as_raw_nonzero().get()).is_ok_and(|id| ours.contains(&id));
    for orphan in table::child_numbers().into_iter().filter(|pid| !is_ours(pid)) {
        if claim.is_sure_of(orphan) && !(spare_git && may_be_git(orphan)) {
            let _ = kill_process(orphan, Signal::STOP);
        }
    }
}

/// A git that a program of ours had started before it was killed itself, or one that is about to be. Stopped before its
/// exec, it would hold the locks of its parent for as long as it stays stopped: for ever, if we are killed ourselves.
fn may_be_git(orphan: Pid) -> bool {
    is_tagged(orphan, |value| value.starts_with(GIT_OF.as_bytes())) || table::runs_this_program(orphan)
}

/// Reaps adopted processes that have ended while jobs run, at most every now and then; else they would pile up
/// for as long as the longest job. Costs one system call if there is nothing to reap.
pub(super) fn reap_dead(last: &mut Instant, now: Instant) {
    if now.saturating_duration_since(*last) < BURIAL {
        return;
    }
    *last = now;
    let ours = children::lock();
    if has_dead_child() {
        let orphans = orphans(&ours);
        for dead in orphans.iter().filter(|entry| entry.dead) {
            reap(dead);
        }
    }
}

fn orphans(ours: &BTreeSet<u32>) -> Vec<Process> {
    let is_ours = |entry: &Process| u32::try_from(entry.number()).is_ok_and(|id| ours.contains(&id));
    table::children().into_iter().filter(|entry| !is_ours(entry)).collect()
}

fn reap(orphan: &Process) -> bool {
    process::reap(orphan.pid)
}

/// Stops the families first, so that nothing is forked while we kill: a walk is not atomic, a frozen family is.
fn kill_families(roots: &[Process]) -> Vec<Process> {
    let mut frozen: BTreeMap<ProcessId, Process> = roots.iter().map(|root| (root.id(), *root)).collect();
    strike(roots, Signal::STOP);
    for _ in 0..FREEZES {
        let mut members = table::families(&table::all(), roots);
        members.retain(|entry| !frozen.contains_key(&entry.id()));
        if members.is_empty() {
            break;
        }
        strike(&members, Signal::STOP);
        frozen.extend(members.into_iter().map(|entry| (entry.id(), entry)));
    }
    let family: Vec<Process> = frozen.into_values().collect();
    strike(&family, Signal::KILL);
    family
}

/// Each process, and its group where that cannot be ours: a signal to a group also reaches processes that are being forked.
/// Jobs have sessions of their own and a group never spans two, so no group holds anyone else's process.
fn strike(entries: &[Process], signal: Signal) {
    // In a container the session may be one from outside, whose number here is 0: getsid can't say that.
    let my_session = Process::read(getpid()).map_or(0, |me| me.session);
    let groups: BTreeSet<i32> =
        entries.iter().filter(|entry| entry.session != my_session).map(|entry| entry.group).collect();
    for group in groups.into_iter().filter(|&group| group > 1).filter_map(Pid::from_raw) {
        let _ = kill_process_group(group, signal);
    }
    for entry in entries {
        entry.signal(signal);
    }
}
