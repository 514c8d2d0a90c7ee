//! Between the core's entries and the journal's lines.

use archeflow_core::event::{Entry, Event, FORMAT};
use archeflow_core::run::Run;
use archeflow_core::words::Phase;
use serde_json::value::RawValue;

use crate::clock;
use crate::store::journal::{self, Journal};
use crate::store::journal::{Line, Read, Text};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Journal(#[from] journal::Error),
    #[error(
        "{run_id}: line {line} is of type '{kind}', which this version does not know. It was written by a newer archeflow: use that one."
    )]
    Newer { run_id: String, line: u64, kind: String },
    #[error(
        "{run_id}: line {line} ({kind}) does not hold what its type promises: {why}. Nothing was touched."
    )]
    Unreadable { run_id: String, line: u64, kind: String, why: String },
    #[error("an entry could not be written as JSON: {0}")]
    Unwritable(#[from] serde_json::Error),
}

/// Appends entries as one batch, on disk when this returns.
pub fn append(journal: &mut Journal, entries: &[Entry]) -> Result<(), Error> {
    let run_id = journal.run_id().to_owned();
    let mut bodies: Vec<(String, Box<RawValue>)> = Vec::with_capacity(entries.len());
    for entry in entries {
        let mut json = Vec::with_capacity(512);
        entry.event.write(&mut serde_json::Serializer::new(&mut json))?;
        let text = String::from_utf8_lossy(&json).into_owned();
        bodies.push((clock::written(entry.at), RawValue::from_string(text)?));
    }
    let lines: Vec<Line<'_>> = entries
        .iter()
        .zip(&bodies)
        .map(|(entry, (ts, data))| Line {
            ts,
            run_id: &run_id,
            seq: entry.seq,
            parent: &entry.parent,
            kind: entry.event.name(),
            phase: entry.phase.name(),
            agent: entry.agent.as_deref(),
            data,
        })
        .collect();
    Ok(journal.append(&lines)?)
}

/// Folds a whole journal.
pub fn fold(text: &Text) -> Result<Run, Error> {
    fold_seeing(text, |_, _| {})
}

/// The same, with a look at every entry and the state it led to.
pub fn fold_seeing(text: &Text, mut see: impl FnMut(&Run, &Entry)) -> Result<Run, Error> {
    let mut run = Run::default();
    each(text, |entry| {
        run.apply(&entry);
        see(&run, &entry);
    })?;
    Ok(run)
}

/// Every entry in order.
pub fn entries(text: &Text) -> Result<Vec<Entry>, Error> {
    let mut entries = Vec::with_capacity(text.len());
    each(text, |entry| entries.push(entry))?;
    Ok(entries)
}

/// Lines decoded by one thread at a time, handed over in this many at once.
const CHUNK: usize = 4_096;

/// Decodes on a second thread while the caller takes in, since decoding is what costs.
fn each(text: &Text, mut take: impl FnMut(Entry)) -> Result<(), Error> {
    if text.len() < CHUNK {
        for line in text.iter() {
            take(decode(&line)?);
        }
        return Ok(());
    }
    let chunks = text.len().div_ceil(CHUNK);
    let decode_chunk = |chunk: usize| -> Result<Vec<Entry>, Error> {
        let to = ((chunk + 1) * CHUNK).min(text.len());
        (chunk * CHUNK..to).filter_map(|index| text.get(index)).map(|line| decode(&line)).collect()
    };
    let workers = std::thread::available_parallelism().map_or(2, usize::from).clamp(2, 8);
    std::thread::scope(|scope| {
        let mut streams = Vec::new();
        for worker in 0..workers {
            let (send, receive) = std::sync::mpsc::sync_channel(4);
            let decode_chunk = &decode_chunk;
            scope.spawn(move || {
                for chunk in (worker..chunks).step_by(workers) {
                    if send.send(decode_chunk(chunk)).is_err() {
                        return;
                    }
                }
            });
            streams.push(receive);
        }
        for chunk in 0..chunks {
            let Some(Ok(decoded)) = streams.get(chunk % workers).map(std::sync::mpsc::Receiver::recv) else {
                break;
            };
            decoded?.into_iter().for_each(&mut take);
        }
        Ok(())
    })
}

pub fn decode(line: &Read<'_>) -> Result<Entry, Error> {
    let named = |why: String| Error::Unreadable {
        run_id: line.run_id.to_owned(),
        line: line.seq,
        kind: line.kind.to_owned(),
        why,
    };
    let newer =
        || Error::Newer { run_id: line.run_id.to_owned(), line: line.seq, kind: line.kind.to_owned() };
    let mut json = serde_json::Deserializer::from_str(line.data);
    let event =
        Event::read(line.kind, &mut json).ok_or_else(newer)?.map_err(|error| named(error.to_string()))?;
    if let Event::RunStart(start) = &event
        && start.format > FORMAT
    {
        return Err(newer());
    }
    let phase = Phase::parse(line.phase).ok_or_else(|| named(format!("'{}' is no phase", line.phase)))?;
    Ok(Entry {
        seq: line.seq,
        at: clock::read(line.ts),
        parent: line.parents().collect(),
        phase,
        agent: line.agent.map(str::to_owned),
        event,
    })
}
