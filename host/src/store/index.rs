//! The list of runs, `.archeflow/events/index.jsonl`. A convenience for looking up: the journals are the truth, so a
//! line that cannot be read is skipped and counted.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::files::{self, Error};

const LARGEST: u64 = 64 << 20;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexEntry {
    pub run_id: String,
    pub status: String,
    pub task: String,
    pub ts: String,
    /// When a parked run can be resumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reopens_at: Option<String>,
    /// When a person took the landing back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reverted_at: Option<String>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Index {
    /// One entry per run, the last that was written, in the order in which the runs first appeared.
    pub runs: Vec<IndexEntry>,
    pub skipped: usize,
}

pub fn append(events: &Path, entry: &IndexEntry) -> Result<(), Error> {
    let path = events.join("index.jsonl");
    let line = serde_json::to_string(entry).map_err(|e| Error::io("append to", &path, e))?;
    files::append_line_locked(&path, &line)
}

/// Takes a run off the list: a line more instead of one less, because others may be adding theirs at this moment.
pub fn remove(events: &Path, run_id: &str) -> Result<(), Error> {
    let (task, ts) = (String::new(), String::new());
    let (run_id, status) = (run_id.to_owned(), REMOVED.to_owned());
    append(events, &IndexEntry { run_id, status, task, ts, reopens_at: None, reverted_at: None })
}

/// The status of a run that was removed.
const REMOVED: &str = "removed";

pub fn read(events: &Path) -> Result<Index, Error> {
    let bytes = match files::read_capped(&events.join("index.jsonl"), LARGEST) {
        Err(e) if e.io_kind() == Some(io::ErrorKind::NotFound) => return Ok(Index::default()),
        bytes => bytes?,
    };
    Ok(parse(&bytes))
}

fn parse(bytes: &[u8]) -> Index {
    let mut index = Index::default();
    let mut known: HashMap<String, usize> = HashMap::new();
    for line in bytes.split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
        let Ok(entry) = serde_json::from_slice::<IndexEntry>(line) else {
            index.skipped += 1;
            continue;
        };
        match known.get(&entry.run_id) {
            Some(at) => index.runs[*at] = entry,
            None => {
                known.insert(entry.run_id.clone(), index.runs.len());
                index.runs.push(entry);
            }
        }
    }
    index.runs.retain(|entry| entry.status != REMOVED);
    index
}
