//! What earlier runs of a repository say about a new one. Read-only, bounded, and never an error: without an answer
//! the program says nothing.

use std::path::Path;

use archeflow_core::event::RunStart;
use archeflow_core::projections::usual_time::{PastRun, UsualTime};

use crate::log;
use crate::store::{index, journal::Journal, names};

/// Journals that are read, the newest first.
const LOOKED_AT: usize = 10;
/// As many runs of the same kind are enough.
const ENOUGH: usize = 6;
/// A longer journal is not read.
const LARGEST: u64 = 1 << 20;
/// States of runs that came to their end.
const ENDED: [&str; 4] = ["merged", "awaiting_merge", "reviewed", "dry_run"];

/// How long runs like this one took here.
pub fn usual_time(events: &Path, request: &RunStart, run_id: &str) -> Option<UsualTime> {
    let index = index::read(events).ok()?;
    let ended = index.runs.iter().rev().filter(|run| {
        run.run_id != run_id && ENDED.contains(&run.status.as_str()) && names::valid_run_id(&run.run_id)
    });
    let read = ended.take(LOOKED_AT).filter_map(|run| past_run(events, &run.run_id));
    let like: Vec<PastRun> = read.filter(|past| past.is_like(request)).take(ENOUGH).collect();
    UsualTime::of(request, &like)
}

fn past_run(events: &Path, run_id: &str) -> Option<PastRun> {
    let path = events.join(format!("{run_id}.jsonl"));
    let is_short =
        std::fs::symlink_metadata(&path).is_ok_and(|found| found.is_file() && found.len() <= LARGEST);
    if !is_short {
        return None;
    }
    PastRun::of(&log::entries(&Journal::read(&path).ok()?).ok()?)
}
