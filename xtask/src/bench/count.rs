//! Work of the program that is always the same, for counting its instructions: see `crate::instructions`.

use std::path::Path;

use archeflow_host::log;
use archeflow_host::store::journal::Journal;

use super::rules;
use super::storage::MadeUp;

/// Enough for the start of the process to say little.
const EVENTS: u64 = 3_000;
const RUNS: u32 = 20;
const ANSWERS: u32 = 3;

type Work = fn(&Path) -> Result<(), Box<dyn std::error::Error>>;

/// What is counted, by name.
pub(crate) const COUNTED: [(&str, Work); 4] =
    [("fold", fold), ("decide", decide), ("read", read), ("step", step)];

/// Writes what [`fold`] reads.
pub(crate) fn prepare(folder: &Path) -> Result<(), Box<dyn std::error::Error>> {
    MadeUp { failures: 20, endless: true }.write(folder, "counted", EVENTS).map(drop)
}

/// A journal, read, checked and folded.
fn fold(folder: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let run = log::fold(&Journal::read(&folder.join("counted.jsonl"))?)?;
    if run.lines < EVENTS { Err("the journal is too short".into()) } else { Ok(()) }
}

/// Whole runs of the core alone.
fn decide(_: &Path) -> Result<(), Box<dyn std::error::Error>> {
    for _ in 0..RUNS {
        let run = MadeUp { failures: 0, endless: false }.play_until(u64::MAX, drop);
        if run.outcome.is_none() {
            return Err("a run does not end".into());
        }
    }
    Ok(())
}

/// A long answer of a reviewer.
fn read(_: &Path) -> Result<(), Box<dyn std::error::Error>> {
    rules::read_answers(ANSWERS);
    Ok(())
}

/// The step after a long review, with all rules.
fn step(_: &Path) -> Result<(), Box<dyn std::error::Error>> {
    rules::take_steps(ANSWERS)
}
