//! What on disk is still needed (U-14). The tables are in `docs/rules/keeping.md`.
//!
//! Deliberately absent: looking and removing. The host finds out what there is and whether a process holds it.

use crate::model::named::named;
use crate::rules::run_names::RunState;
use crate::settings::KeepSettings;

named! {
    /// What can still happen to a run, as far as its files are concerned.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum RunFate {
        /// A process drives it.
        Driven = "driven",
        /// It has not ended and no process drives it: it can be resumed.
        Interrupted = "interrupted",
        /// It has ended, and a person can answer, continue or merge it.
        Waiting = "waiting",
        /// Merged, discarded, reviewed, or a loop that has ended.
        Closed = "closed",
        /// It has no journal any more.
        Gone = "gone",
        /// Its journal can't be read, or it was not started here.
        Unknown = "unknown",
    }
}

impl RunFate {
    pub fn of(state: RunState) -> RunFate {
        match state {
            RunState::Running | RunState::Paused => RunFate::Driven,
            RunState::Interrupted => RunFate::Interrupted,
            RunState::AwaitingAnswer
            | RunState::AwaitingMerge
            | RunState::Failed
            | RunState::Stopped
            | RunState::Planned => RunFate::Waiting,
            RunState::Closed => RunFate::Closed,
        }
    }
}

/// Whether something is removed, with the reason for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeepDecision {
    Keep(&'static str),
    Remove(&'static str),
}

use KeepDecision::{Keep, Remove};

const IN_USE: &str = "in use";
const UNDER_WAY: &str = "the run is under way";
const RESUMABLE: &str = "the run can be resumed";
const WAITS: &str = "the run waits for you";
const NOT_OURS: &str = "the run can't be read or was not started here";
const ENDED: &str = "the run has ended";
const RUN_GONE: &str = "the run is gone";
const YOUNG: &str = "recent";
const OLD: &str = "old";
const CRASHED: &str = "left by a program that was killed";

/// A working copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyFacts {
    /// A process has its lock.
    pub held: bool,
    /// It holds an agent's work that no ref keeps.
    pub pending: bool,
    /// The run that used it last.
    pub run: RunFate,
    /// Days since that run's last event, or since its last use if the run is gone.
    pub idle_days: u64,
    /// A person asked for room; otherwise a run has just ended.
    pub asked: bool,
}

pub fn copy(facts: CopyFacts, bounds: &KeepSettings) -> KeepDecision {
    let CopyFacts { held, pending, run, idle_days, asked } = facts;
    match run {
        _ if held => Keep(IN_USE),
        RunFate::Driven => Keep(UNDER_WAY),
        RunFate::Interrupted => Keep(RESUMABLE),
        RunFate::Unknown => Keep(NOT_OURS),
        RunFate::Waiting | RunFate::Closed | RunFate::Gone if pending && idle_days < bounds.days => {
            Keep("holds work that is in no commit")
        }
        RunFate::Waiting if pending => Keep("holds work that is in no commit"),
        RunFate::Waiting if !asked && idle_days < bounds.copy_days => Keep(WAITS),
        RunFate::Waiting => Remove("made again when the run continues"),
        RunFate::Closed => Remove(ENDED),
        RunFate::Gone => Remove(RUN_GONE),
    }
}

/// A run with its journal, artifacts and refs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunFacts {
    pub run: RunFate,
    /// Days since its last event.
    pub age_days: u64,
    /// Runs of the same repository with later events.
    pub newer: u64,
    /// A process drives another run of the repository, and would take vanished refs for an agent's doing.
    pub others_driven: bool,
}

pub fn run(facts: RunFacts, bounds: &KeepSettings) -> KeepDecision {
    match facts.run {
        RunFate::Driven => Keep(UNDER_WAY),
        RunFate::Interrupted => Keep(RESUMABLE),
        RunFate::Waiting => Keep(WAITS),
        RunFate::Unknown | RunFate::Gone => Keep(NOT_OURS),
        RunFate::Closed if facts.newer < bounds.runs => Keep("one of the newest runs"),
        RunFate::Closed if facts.age_days < bounds.days => Keep(YOUNG),
        RunFate::Closed if facts.others_driven => Keep("another run of the repository is under way"),
        RunFate::Closed => Remove(OLD),
    }
}

/// Dependencies that a setup command installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetupFacts {
    /// A run has them, or they are being made.
    pub held: bool,
    /// The command that made them had ended well.
    pub complete: bool,
    pub idle_days: u64,
    pub megabytes: u64,
    /// Of those that were used later.
    pub newer_megabytes: u64,
}

pub fn setup(facts: SetupFacts, bounds: &KeepSettings) -> KeepDecision {
    match () {
        () if facts.held => Keep(IN_USE),
        () if !facts.complete => Remove(CRASHED),
        () if facts.idle_days >= bounds.cache_days => Remove("not used lately"),
        () if facts.newer_megabytes.saturating_add(facts.megabytes) > bounds.cache_megabytes => {
            Remove("more than the cache may have")
        }
        () => Keep("used lately"),
    }
}

/// The change that a review is about, copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReviewStoreFacts {
    /// It has a run already.
    pub complete: bool,
    pub run: RunFate,
    pub age_days: u64,
    /// Stores of the same repository that are newer.
    pub newer: u64,
}

/// Reviews that have ended can still be shown with their change for so long.
const REVIEW_STORES: u64 = 20;
const REVIEW_STORE_DAYS: u64 = 14;

pub fn review_store(facts: ReviewStoreFacts) -> KeepDecision {
    let recent = facts.newer < REVIEW_STORES || facts.age_days < REVIEW_STORE_DAYS;
    match facts.run {
        _ if !facts.complete && facts.age_days == 0 => Keep("being made"),
        _ if !facts.complete => Remove(CRASHED),
        RunFate::Driven => Keep(UNDER_WAY),
        RunFate::Interrupted => Keep(RESUMABLE),
        RunFate::Waiting => Keep(WAITS),
        RunFate::Unknown => Keep(NOT_OURS),
        RunFate::Closed if recent => Keep(YOUNG),
        RunFate::Closed => Remove(OLD),
        RunFate::Gone => Remove(RUN_GONE),
    }
}

/// The homes of a run's clients, which hold their conversations.
pub fn home(run: RunFate) -> KeepDecision {
    match run {
        RunFate::Driven => Keep(UNDER_WAY),
        RunFate::Interrupted => Keep(RESUMABLE),
        RunFate::Waiting => Keep(WAITS),
        RunFate::Unknown => Keep(NOT_OURS),
        RunFate::Closed => Remove(ENDED),
        RunFate::Gone => Remove(RUN_GONE),
    }
}

/// A temporary folder or file. The process that made it removes it, unless it is killed.
pub fn temporary(maker_is_alive: bool) -> KeepDecision {
    if maker_is_alive { Keep(IN_USE) } else { Remove(CRASHED) }
}

/// That a tree passed its tests. Tools change, so it counts for an hour.
pub const PASSED_MINUTES: u64 = 60;

pub fn passed(age_minutes: u64) -> KeepDecision {
    if age_minutes < PASSED_MINUTES { Keep(YOUNG) } else { Remove(OLD) }
}

/// The note that a run was started here, whose journal is gone: somebody may have moved it away for a while.
pub fn record(age_days: u64, bounds: &KeepSettings) -> KeepDecision {
    if age_days < bounds.days { Keep(YOUNG) } else { Remove(RUN_GONE) }
}

/// A ref of ours that no run here owns: its run is gone, or it keeps a commit that a branch of ours once had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LooseRefFacts {
    /// Days since its commit was made.
    pub age_days: u64,
    /// A run that is still there began before that commit, and may be the one that needs it.
    pub run_is_older: bool,
    pub others_driven: bool,
}

pub fn loose_ref(facts: LooseRefFacts, bounds: &KeepSettings) -> KeepDecision {
    match () {
        () if facts.run_is_older => Keep("a run may need it"),
        () if facts.age_days < bounds.days => Keep(YOUNG),
        () if facts.others_driven => Keep("another run of the repository is under way"),
        () => Remove(OLD),
    }
}
