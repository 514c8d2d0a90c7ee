//! Between a sprint's entries and the lines of its journal.

use archeflow_core::sprint::Sprint;
use archeflow_core::sprint::event::{SprintEntry, SprintEvent};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::clock;
use crate::log::Error;
use crate::store::journal::{Journal, JournalLine, Read, Text};

/// What an event looks like between two braces of a line.
#[derive(Serialize, Deserialize)]
struct Parts {
    #[serde(rename = "type")]
    kind: String,
    data: Box<RawValue>,
}

/// Appends entries as one batch, on disk when this returns.
pub(super) fn append(journal: &mut Journal, entries: &[SprintEntry]) -> Result<(), Error> {
    let sprint_id = journal.run_id().to_owned();
    let mut bodies = Vec::with_capacity(entries.len());
    for entry in entries {
        let parts: Parts = serde_json::from_str(&serde_json::to_string(&entry.event)?)?;
        let parent: Vec<u64> = entry.event.answers().into_iter().collect();
        bodies.push((clock::written(entry.at), parts, parent));
    }
    let lines: Vec<JournalLine<'_>> = entries
        .iter()
        .zip(&bodies)
        .map(|(entry, (ts, parts, parent))| JournalLine {
            ts,
            ms: Some(clock::millisecond(entry.at)),
            run_id: &sprint_id,
            seq: entry.seq,
            parent,
            kind: &parts.kind,
            phase: "sprint",
            agent: None,
            data: &parts.data,
        })
        .collect();
    Ok(journal.append(&lines)?)
}

/// Folds a whole journal.
pub(super) fn fold(text: &Text) -> Result<Sprint, Error> {
    Ok(Sprint::replay(&entries(text)?))
}

/// Every entry in order.
pub(super) fn entries(text: &Text) -> Result<Vec<SprintEntry>, Error> {
    text.iter().map(|line| decode(&line)).collect()
}

pub(super) fn decode(line: &Read<'_>) -> Result<SprintEntry, Error> {
    let json = format!("{{\"type\":{},\"data\":{}}}", serde_json::to_string(line.kind)?, line.data);
    let event: SprintEvent = serde_json::from_str(&json).map_err(|error| Error::Unreadable {
        run_id: line.run_id.to_owned(),
        line: line.seq,
        kind: line.kind.to_owned(),
        why: error.to_string(),
    })?;
    Ok(SprintEntry { seq: line.seq, at: clock::exact(line.ts, line.ms), event })
}
