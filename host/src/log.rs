//! Between the core's entries and the journal's lines.

use archeflow_core::event::{
    DecisionPoint, Entry, Event, FORMAT, PhaseTransition, Report, ReviewVerdict, Share,
};
use archeflow_core::model::{Phase, Verdict};
use archeflow_core::run::Run;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::clock;
use crate::store::journal::{self, Journal, JournalLine, Read, Text};

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
    let bodies = bodies(entries)?;
    Ok(journal.append(&lines(&run_id, entries, &bodies))?)
}

/// The digest of the first line, if these entries would begin the journal.
pub(crate) fn first_digest(journal: &Journal, entries: &[Entry]) -> Result<Option<String>, Error> {
    let first = entries.get(..1).unwrap_or_default();
    let bodies = bodies(first)?;
    Ok(journal.first_digest(&lines(journal.run_id(), first, &bodies))?)
}

/// When each entry was made, and its data, as they are written.
fn bodies(entries: &[Entry]) -> Result<Vec<(String, Box<RawValue>)>, Error> {
    let mut bodies: Vec<(String, Box<RawValue>)> = Vec::with_capacity(entries.len());
    for entry in entries {
        let mut json = Vec::with_capacity(512);
        entry.event.write(&mut serde_json::Serializer::new(&mut json))?;
        let text = String::from_utf8_lossy(&json).into_owned();
        bodies.push((clock::written(entry.at), RawValue::from_string(text)?));
    }
    Ok(bodies)
}

fn lines<'a>(
    run_id: &'a str,
    entries: &'a [Entry],
    bodies: &'a [(String, Box<RawValue>)],
) -> Vec<JournalLine<'a>> {
    entries
        .iter()
        .zip(bodies)
        .map(|(entry, (ts, data))| JournalLine {
            ts,
            ms: Some(clock::millisecond(entry.at)),
            run_id,
            seq: entry.seq,
            parent: &entry.parent,
            kind: entry.event.name(),
            phase: entry.phase.name(),
            agent: entry.agent.as_deref(),
            data,
        })
        .collect()
}

/// Folds a whole journal.
pub fn fold(text: &Text) -> Result<Run, Error> {
    let mut run = Run::default();
    each(text, decode_for_fold, |entries| entries.drain(..).for_each(|entry| run.take(entry)))?;
    Ok(run)
}

/// The same, with a look at every entry and the state it led to.
pub fn fold_seeing(text: &Text, mut see: impl FnMut(&Run, &Entry)) -> Result<Run, Error> {
    let mut run = Run::default();
    each(text, decode, |entries| {
        for entry in entries.iter() {
            run.apply(entry);
            see(&run, entry);
        }
    })?;
    Ok(run)
}

/// Every entry in order.
pub fn entries(text: &Text) -> Result<Vec<Entry>, Error> {
    let mut entries = Vec::with_capacity(text.len());
    each(text, decode, |some| entries.append(some))?;
    Ok(entries)
}

/// Lines decoded by one thread at a time, handed over in this many at once.
const CHUNK: usize = 4_096;

/// How a line becomes an entry.
type Decode = fn(&Read<'_>) -> Result<Entry, Error>;

/// Decodes on other threads while the caller takes in, since decoding is what costs. What the caller leaves goes back
/// to the thread it came from: freeing another thread's memory costs more than making it did.
fn each(text: &Text, decode: Decode, mut take: impl FnMut(&mut Vec<Entry>)) -> Result<(), Error> {
    let chunks = text.len().div_ceil(CHUNK);
    let decode_chunk = |chunk: usize| -> Result<Vec<Entry>, Error> {
        let to = ((chunk + 1) * CHUNK).min(text.len());
        (chunk * CHUNK..to).filter_map(|index| text.get(index)).map(|line| decode(&line)).collect()
    };
    if chunks <= 1 {
        take(&mut decode_chunk(0)?);
        return Ok(());
    }
    let workers = std::thread::available_parallelism().map_or(2, usize::from).clamp(2, 8);
    std::thread::scope(|scope| {
        let mut streams = Vec::new();
        for worker in 0..workers {
            let (send, receive) = std::sync::mpsc::sync_channel(4);
            let (give_back, returned) = std::sync::mpsc::channel::<Vec<Entry>>();
            let decode_chunk = &decode_chunk;
            scope.spawn(move || {
                for chunk in (worker..chunks).step_by(workers) {
                    returned.try_iter().for_each(drop);
                    if send.send(decode_chunk(chunk)).is_err() {
                        return;
                    }
                }
                drop(send);
                returned.iter().for_each(drop);
            });
            streams.push((receive, give_back));
        }
        for chunk in 0..chunks {
            let Some((stream, give_back)) = streams.get(chunk % workers) else { break };
            let Ok(decoded) = stream.recv() else { break };
            let mut entries = decoded?;
            take(&mut entries);
            // A thread that has ended needs nothing back.
            let _ = give_back.send(entries);
        }
        drop(streams);
        Ok(())
    })
}

pub fn decode(line: &Read<'_>) -> Result<Entry, Error> {
    let event = read_event(line, |json| Event::read(line.kind, json))?;
    let (parent, agent) = (line.parents().collect(), line.agent.map(str::to_owned));
    Ok(Entry { seq: line.seq, at: clock::exact(line.ts, line.ms), parent, phase: phase(line)?, agent, event })
}

/// Only what the fold keeps: it looks at neither parents nor agent, nor at the words of most decisions.
fn decode_for_fold(line: &Read<'_>) -> Result<Entry, Error> {
    let event = read_event(line, |json| Light::read(line.kind, json))?;
    Ok(Entry {
        seq: line.seq,
        at: clock::exact(line.ts, line.ms),
        parent: Vec::new(),
        phase: phase(line)?,
        agent: None,
        event,
    })
}

type Json<'a> = serde_json::Deserializer<serde_json::de::StrRead<'a>>;

fn read_event<'a>(
    line: &Read<'a>,
    read: impl FnOnce(&mut Json<'a>) -> Option<Result<Event, serde_json::Error>>,
) -> Result<Event, Error> {
    let newer =
        || Error::Newer { run_id: line.run_id.to_owned(), line: line.seq, kind: line.kind.to_owned() };
    let mut json = serde_json::Deserializer::from_str(line.data);
    let event = read(&mut json).ok_or_else(newer)?.map_err(|error| unreadable(line, error.to_string()))?;
    if let Event::Report(Report::RunStart(start)) = &event
        && start.format > FORMAT
    {
        return Err(newer());
    }
    Ok(event)
}

fn phase(line: &Read<'_>) -> Result<Phase, Error> {
    Phase::parse(line.phase).ok_or_else(|| unreadable(line, format!("'{}' is no phase", line.phase)))
}

fn unreadable(line: &Read<'_>, why: String) -> Error {
    Error::Unreadable { run_id: line.run_id.to_owned(), line: line.seq, kind: line.kind.to_owned(), why }
}

/// The parts of frequent lines that the fold remembers. Everything else about them is for readers.
struct Light;

impl Light {
    fn read<'de, D: Deserializer<'de>>(kind: &str, data: D) -> Option<Result<Event, D::Error>> {
        #[derive(Deserialize)]
        struct Point {
            archetype: String,
            rule: String,
        }
        #[derive(Deserialize)]
        struct VerdictData {
            archetype: String,
            verdict: Verdict,
        }
        #[derive(Deserialize)]
        struct Transition {
            to: Phase,
            cycle: u32,
        }
        Some(match kind {
            "decision.point" => Point::deserialize(data).map(|Point { archetype, rule }| {
                let (input, decision) = (String::new(), String::new());
                DecisionPoint { archetype, rule, input, decision, confidence: Share::ONE }.into()
            }),
            "review.verdict" => VerdictData::deserialize(data).map(|VerdictData { archetype, verdict }| {
                ReviewVerdict { archetype, verdict, findings: Vec::new(), same_model: false }.into()
            }),
            "phase.transition" => Transition::deserialize(data).map(|Transition { to, cycle }| {
                PhaseTransition { from: String::new(), to, cycle, artifacts_so_far: Vec::new() }.into()
            }),
            _ => return Event::read(kind, data),
        })
    }
}
