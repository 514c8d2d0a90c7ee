//! Supervision of child processes: start one, feed it, listen to it, end it, and leave nothing of it behind.
//!
//! A job is over when its *leader* (the process we started) has exited and its pipes were drained for a bounded
//! time; never when a pipe happens to close, because anything the leader started may hold it open for ever. Then
//! the sweep removes every descendant that is still alive, also those that left the process group.
//!
//! What the child does wrong is data ([`Cause`]), so [`run`] returns no error. Deliberately absent: what the output
//! means, retries. The decisions about time are in `clock.rs` and know no system call.

mod clock;
mod inside;
mod job;
mod leader;
mod leftovers;
mod meter;
mod pump;
mod ring;
pub mod signals;
mod sink;
mod sweep;
mod watch;

use std::fs::File;
use std::io::Read;
use std::time::{Duration, Instant};

use crate::failpoint;
use crate::platform::poll;
use crate::platform::process::Signal;
use crate::platform::session::SessionLeader;
use crate::platform::watcher;
use crate::sandbox::{InsideReport, Sandbox};
use crate::secrets::Secrets;
use clock::{Act, Clock};
use leader::Leader;
use meter::Meter;
use pump::Pump;
use sink::Keeper;
use sweep::Running;

pub use crate::platform::table::is_descendant;
pub use inside::{inside_an_attempt, started_by_a_worker};
pub use job::{Cause, Job, JobEnd, JobLimits, NotStarted, Stream, TAG};
pub use leftovers::{GIT_OF, kill_leftovers, wake_git};
pub use sink::{Sink, SinkReport};
pub use sweep::{all_over, become_subreaper, family, finish_all, kill_family};
pub use watch::Watch;

/// Runs a job to its end and sweeps up after it.
///
/// Blocks the calling thread, which must be the one that stays: the leader dies with the thread that started it.
/// `on_output` sees every chunk in the order it was read and should be quick, because the limits are checked
/// between chunks. It may call [`Watch::stop`] itself.
pub fn run(job: Job, watch: &Watch, on_output: &mut dyn FnMut(Stream, &[u8])) -> JobEnd {
    run_masked(job, &Secrets::default(), watch, on_output)
}

/// The same; whatever it prints loses these before anybody sees it.
pub fn run_masked(
    job: Job,
    secrets: &Secrets,
    watch: &Watch,
    on_output: &mut dyn FnMut(Stream, &[u8]),
) -> JobEnd {
    let begun = Instant::now();
    let running = Running::enter();
    let mut ended = attempt(job, secrets, watch, on_output);
    ended.leftovers += running.leave();
    ended.duration = begun.elapsed();
    ended
}

/// The beginning of what was kept.
fn said(sink: &Sink, kept: &SinkReport) -> Vec<u8> {
    match sink {
        Sink::File { path, .. } => {
            let mut bytes = Vec::new();
            let file = File::open(path).ok();
            let _ = file.map(|file| file.take(WHY).read_to_end(&mut bytes));
            bytes
        }
        Sink::Memory { .. } => kept.bytes.clone(),
    }
}

/// Bytes of what is said of a sandbox that can't be set up.
const WHY: u64 = 4096;

fn attempt(
    mut job: Job,
    secrets: &Secrets,
    watch: &Watch,
    on_output: &mut dyn FnMut(Stream, &[u8]),
) -> JobEnd {
    if watch.asked().is_some() {
        return unstarted(Cause::Stopped);
    }
    let is_wrapped = job.sandbox.as_ref().is_some_and(Sandbox::has_outer_process);
    if is_wrapped && job.stderr == Sink::nothing() {
        // Why the sandbox can't be set up is said there and nowhere else.
        job.stderr = Sink::Memory { keep: WHY };
    }
    let (stdout, stderr) = match (Keeper::open(&job.stdout), Keeper::open(&job.stderr)) {
        (Ok(stdout), Ok(stderr)) => (stdout, stderr),
        (Err(error), _) | (_, Err(error)) => return unstarted(Cause::NotStarted(NotStarted::other(&error))),
    };
    let (mut child, report) = match job.spawn() {
        Ok(started) => started,
        Err(error) => return unstarted(Cause::NotStarted(NotStarted::of(&job, &error))),
    };
    watcher::cover(child.pid);
    sweep::remember(&job.tag);
    let stdin = std::mem::take(&mut job.stdin);
    let pump = Pump::new(&mut child, stdin, (stdout, stderr), secrets);
    let mut ended = supervise(child, pump, &job, watch, on_output);
    // Whoever could write to it is gone, but something that left the sandbox's reach may still hold it open.
    let report = report.filter(|report| poll::never_block(report).is_ok()).and_then(InsideReport::read);
    ended.leftovers += report.as_ref().map_or(0, |report| report.leftovers);
    if is_wrapped {
        ended.cause = ended.cause.seen_outside(report.as_ref(), &said(&job.stderr, &ended.stderr));
    }
    ended.cause = ended.cause.seen_inside(report).with_reason(job.sandbox.as_ref());
    ended
}

/// From the first instruction of the leader to the last byte of its descendants.
fn supervise(
    child: SessionLeader,
    mut pump: Pump,
    job: &Job,
    watch: &Watch,
    on_output: &mut dyn FnMut(Stream, &[u8]),
) -> JobEnd {
    let outer = job.sandbox.as_ref().is_some_and(Sandbox::has_outer_process);
    let mut leader = Leader::new(child, outer);
    let grace = if failpoint::endless_grace() { Duration::MAX } else { job.limits.grace };
    let mut clock = Clock::start(Instant::now(), JobLimits { grace, ..job.limits });
    let mut buried = Instant::now();
    let mut meter =
        job.sandbox.as_ref().map(|sandbox| Meter::new(&sandbox.policy, leader.pid(), Instant::now()));
    let mut over = None;
    loop {
        let before = Instant::now();
        let stopped = failpoint::limits_wait();
        if stopped.is_some() {
            clock.restart(before);
        }
        let deadline = clock.deadline().into_iter().chain(meter.as_ref().map(Meter::deadline)).min();
        let patience = stopped.or_else(|| remaining(deadline, before));
        let seen = pump.turn(&leader, watch, patience, on_output);
        sweep::reap_dead(&mut buried, before);
        let act = clock.step(before, Instant::now(), seen);
        let act = match meter.as_mut().filter(|_| act == Act::Wait).and_then(|meter| meter.look(before)) {
            Some(limit) => {
                let act = clock.over_limit(Instant::now());
                over = over.or(Some(limit).filter(|_| act == Act::Kill));
                act
            }
            None => act,
        };
        match act {
            Act::Wait => {}
            Act::Ask => {
                failpoint::limit_reached();
                leader.ask();
            }
            Act::Kill => leader.signal(Signal::KILL),
            Act::Finish => break,
        }
    }
    let forced = clock.forced();
    let group = leader.pid();
    let status = leader.reap();
    let leftovers = sweep::after_job(&job.tag, group, forced.is_some());
    pump.rest(on_output);
    let (stdout, stderr) = pump.close();
    let cause = over.map_or_else(|| Cause::of(forced, status), Cause::OverLimit);
    JobEnd { cause, duration: Duration::ZERO, leftovers, stdout, stderr }
}

fn remaining(deadline: Option<Instant>, now: Instant) -> Option<Duration> {
    deadline.map(|at| at.saturating_duration_since(now))
}

fn unstarted(cause: Cause) -> JobEnd {
    JobEnd {
        cause,
        duration: Duration::ZERO,
        leftovers: 0,
        stdout: SinkReport::default(),
        stderr: SinkReport::default(),
    }
}
