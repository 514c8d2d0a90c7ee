//! Whether this program was started by something that a run started.

use crate::platform::process::{Pid, getpid};
use crate::platform::table::{self, Process};

use super::job::TAG;

/// More ancestors than any process has; the climb is bounded because processes come and go meanwhile.
const HIGHEST: usize = 1_000;

/// An agent, a test or a hook of a run is among the processes this one descends from, or is this one.
///
/// Only a person may approve. The variable can be taken out of the environment of a child, but not out of the one its
/// parent was started with; and a process that leaves its family is adopted by the archeflow that drives the run.
///
/// A person who decides on a page, in an editor or in the client of a coding agent is a person, so an `archeflow ui`, `lsp` or
/// `mcp` among the ancestors says nothing. They start inside of no attempt, and whatever a run below them starts has that run
/// among its ancestors. `mcp` starts what decides for an answer of the person only; no tool of a model can.
pub fn inside_an_attempt() -> bool {
    if std::env::var_os(TAG).is_some() {
        return true;
    }
    any_above(getpid())
}

/// A worker of a fleet started this process, and is itself inside of no attempt. It passes on what a person approved for the
/// fleet. What a run starts has that run as its parent, not the worker.
pub fn started_by_a_worker() -> bool {
    let is_worker = |pid: &Pid| table::runs_this_program(*pid) && table::was_started_as(*pid, WORKER);
    let worker = parent(getpid()).filter(is_worker);
    worker.is_some_and(|worker| !table::has_variable(worker, TAG, |_| true) && !any_above(worker))
}

/// How the worker of a fleet is started.
const WORKER: &str = "worker";

fn any_above(pid: Pid) -> bool {
    let ancestors = std::iter::successors(parent(pid), |pid| parent(*pid)).take(HIGHEST);
    ancestors.into_iter().any(|pid| table::has_variable(pid, TAG, |_| true) || drives(pid))
}

fn parent(pid: Pid) -> Option<Pid> {
    Pid::from_raw(Process::read(pid)?.parent)
}

/// Another one of us that may drive a run.
fn drives(pid: Pid) -> bool {
    table::runs_this_program(pid) && !["ui", "lsp", "mcp"].iter().any(|word| table::was_started_as(pid, word))
}
