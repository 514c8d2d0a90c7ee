//! Between the core's entries and the journal's lines.

use std::borrow::Cow;
use std::fmt;

use archeflow_core::event::{
    DecisionPoint, DecisionRecord, Entry, Event, FORMAT, PhaseTransition, Report, ReviewVerdict, Share,
};
use archeflow_core::model::{Phase, Verdict};
use archeflow_core::run::Run;
use serde::de::{SeqAccess, Visitor};
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
    fold_seeing_some(text, |_| false, |_, _| {})
}

/// The same, with a look at the entries of some types and the state each of them led to. Their parents and agent are
/// left out.
pub(crate) fn fold_seeing_some(
    text: &Text,
    is_seen: impl Fn(&Event) -> bool,
    mut see: impl FnMut(&Run, &Entry),
) -> Result<Run, Error> {
    let mut run = Run::default();
    each(text, decode_for_fold, |entries| {
        let mut entries = entries.drain(..).peekable();
        while let Some(entry) = entries.next() {
            if is_seen(&entry.event) {
                run.apply(&entry);
                see(&run, &entry);
            } else {
                run.take_before(entry, entries.peek());
            }
        }
    })?;
    Ok(run)
}

/// The same, with a look at every entry and the state it led to.
pub fn fold_seeing(text: &Text, mut see: impl FnMut(&Run, &Entry)) -> Result<Run, Error> {
    let mut run = Run::default();
    each(text, decode_whole, |entries| {
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
    each(text, decode_whole, |some| entries.append(some))?;
    Ok(entries)
}

/// Lines decoded by one thread at a time, handed over in this many at once.
const CHUNK: usize = 4_096;

/// How a line becomes an entry, given the type of the line after it.
type Decode = fn(&Read<'_>, Option<&str>) -> Result<Entry, Error>;

/// Decodes on other threads while the caller takes in, since decoding is what costs. What the caller leaves goes back
/// to the thread it came from: freeing another thread's memory costs more than making it did. The list itself is used
/// again: giving back so much memory at once makes the allocator tidy up all it has.
fn each(text: &Text, decode: Decode, mut take: impl FnMut(&mut Vec<Entry>)) -> Result<(), Error> {
    let chunks = text.len().div_ceil(CHUNK);
    let decode_chunk = |chunk: usize, mut entries: Vec<Entry>| -> Result<Vec<Entry>, Error> {
        entries.clear();
        entries.reserve(CHUNK.min(text.len()));
        let mut next = text.get(chunk * CHUNK);
        for index in chunk * CHUNK..((chunk + 1) * CHUNK).min(text.len()) {
            let Some(line) = next else { break };
            next = text.get(index + 1);
            entries.push(decode(&line, next.map(|next| next.kind))?);
        }
        Ok(entries)
    };
    if chunks <= 1 {
        take(&mut decode_chunk(0, Vec::new())?);
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
                    let used = returned.try_iter().last().unwrap_or_default();
                    if send.send(decode_chunk(chunk, used)).is_err() {
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

fn decode_whole(line: &Read<'_>, _: Option<&str>) -> Result<Entry, Error> {
    decode(line)
}

/// Only what the fold keeps: it looks at neither parents nor agent, nor at the words of most decisions. Those of a
/// choice are kept if the line that explains it is missing: a torn batch may end in between.
fn decode_for_fold(line: &Read<'_>, next: Option<&str>) -> Result<Entry, Error> {
    let is_explained = next == Some("decision");
    let event = read_event(line, |json| Light::read(line.kind, json, is_explained))?;
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

/// The parts of frequent lines that the fold remembers. Everything else about them is for readers: it has to be there
/// and of its type, and is not copied.
struct Light;

impl Light {
    fn read<'de, D: Deserializer<'de>>(
        kind: &str,
        data: D,
        is_explained: bool,
    ) -> Option<Result<Event, D::Error>> {
        Some(match kind {
            "decision.point" => PointData::deserialize(data).map(|point| point.event(is_explained)),
            "decision" => RecordData::deserialize(data).map(|_| RecordData::event()),
            "review.verdict" => VerdictData::deserialize(data).map(|VerdictData { archetype, verdict }| {
                ReviewVerdict { archetype, verdict, findings: Vec::new(), same_model: false }.into()
            }),
            "phase.transition" => TransitionData::deserialize(data).map(|TransitionData { to, cycle }| {
                PhaseTransition { from: String::new(), to, cycle, artifacts_so_far: Vec::new() }.into()
            }),
            _ => return Event::read(kind, data),
        })
    }
}

#[derive(Deserialize)]
struct PointData<'a> {
    archetype: String,
    rule: String,
    #[serde(borrow)]
    input: Cow<'a, str>,
    #[serde(borrow)]
    decision: Cow<'a, str>,
    confidence: Share,
}

impl PointData<'_> {
    fn event(self, is_explained: bool) -> Event {
        let PointData { archetype, rule, input, decision, confidence } = self;
        // The one rule whose input is remembered.
        let keeps_input = !is_explained || rule == "J-04";
        let input = if keeps_input { input.into_owned() } else { String::new() };
        let decision = if is_explained { String::new() } else { decision.into_owned() };
        DecisionPoint { archetype, rule, input, decision, confidence }.into()
    }
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "read to check that it is there")]
struct RecordData<'a> {
    #[serde(borrow)]
    archetype: Cow<'a, str>,
    #[serde(borrow)]
    rule: Cow<'a, str>,
    #[serde(borrow)]
    what: Cow<'a, str>,
    #[serde(borrow)]
    chosen: Cow<'a, str>,
    alternatives: Texts,
    #[serde(borrow)]
    rationale: Cow<'a, str>,
}

impl RecordData<'_> {
    fn event() -> Event {
        let (archetype, rule, what, chosen) = Default::default();
        let (alternatives, rationale) = Default::default();
        DecisionRecord { archetype, rule, what, chosen, alternatives, rationale }.into()
    }
}

#[derive(Deserialize)]
struct VerdictData {
    archetype: String,
    verdict: Verdict,
}

#[derive(Deserialize)]
struct TransitionData {
    to: Phase,
    cycle: u32,
}

/// A list of texts that nobody keeps.
struct Texts;

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Passing;
        impl<'de> Visitor<'de> for Passing {
            type Value = Texts;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a sequence")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Texts, A::Error> {
                while from.next_element::<Passed<'de>>()?.is_some() {}
                Ok(Texts)
            }
        }
        #[derive(Deserialize)]
        struct Passed<'a>(
            #[serde(borrow)]
            #[expect(dead_code, reason = "read to check it")]
            Cow<'a, str>,
        );
        from.deserialize_seq(Passing)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use std::collections::BTreeMap;

    use archeflow_core::event::{AgentFailed, Failure, Order, RunStart, SessionStart};
    use archeflow_core::model::{Policy, Workflow, team};

    use super::*;

    /// A run whose first agents fail, so that choices are explained, and a choice whose input is remembered.
    fn played() -> Vec<Entry> {
        let standard = Workflow::Standard;
        let request = RunStart {
            workflow: standard,
            max_cycles: 3,
            seats: BTreeMap::from([(standard.name().to_owned(), team(standard))]),
            config: Policy { no_tests: true, preflight: false, ..Policy::default() },
            format: FORMAT,
            ..RunStart::default()
        };
        let mut run = Run::default();
        let mut entries = vec![run.hear(1_000, request), run.hear(1_000, session())];
        for at in [2_000, 3_000, 4_000] {
            entries.extend(run.settle(at));
            for (start_seq, order) in run.open.clone() {
                let Order::AgentStart(start) = order else { continue };
                entries.push(run.hear(at, AgentFailed { archetype: start.archetype, start_seq, ..failed() }));
            }
        }
        entries.extend(run.settle(5_000));
        entries
    }

    fn session() -> SessionStart {
        SessionStart { fence: 1, why: "run".to_owned(), ..SessionStart::default() }
    }

    fn failed() -> AgentFailed {
        AgentFailed {
            archetype: String::new(),
            start_seq: 0,
            kind: Failure::Exit,
            reason: "it ended with \"exit code 1\"".to_owned(),
            duration_ms: 5,
            kept_as: None,
            estimated_cost_usd: None,
            cost_source: None,
            tokens: None,
            notes: Vec::new(),
            reopens_in_ms: None,
            played: None,
            brief_chars: 0,
            session: None,
        }
    }

    fn journal(entries: &[Entry]) -> Text {
        let temp = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(temp.path(), "r").unwrap();
        append(&mut journal, entries).unwrap();
        Journal::read(&temp.path().join("r.jsonl")).unwrap()
    }

    /// I3: what the fold leaves out of a line is never missed, wherever a journal ends: also between a choice and the
    /// line that explains it.
    #[test]
    fn i3_the_fold_is_the_replay_of_every_line_wherever_the_journal_ends() {
        let entries = played();
        let kinds: Vec<&str> = entries.iter().map(|entry| entry.event.name()).collect();
        let torn = kinds.windows(2).filter(|pair| **pair == ["decision.point", "decision"]).count();
        assert!(torn >= 3, "{kinds:?}");
        for lines in 1..=entries.len() {
            let text = journal(entries.get(..lines).unwrap());
            let replayed = Run::replay(&super::entries(&text).unwrap());
            assert_eq!(fold(&text).unwrap(), replayed, "after {:?}", kinds.get(..lines));
        }
    }

    /// A line that lacks what its type promises is named, also where the fold does not keep it.
    #[test]
    fn m_b3_the_fold_reads_what_it_does_not_keep() {
        let text = journal(&played());
        for (kind, good, bad) in [
            ("decision", "\"rationale\"", "\"reason\""),
            ("decision", "\"alternatives\":[\"", "\"alternatives\":[1,\""),
            ("decision.point", "\"input\"", "\"inputs\""),
        ] {
            let line = text.iter().find(|line| line.kind == kind).unwrap();
            let data = line.data.replacen(good, bad, 1);
            assert_ne!(data, line.data, "{kind}: {good}");
            let changed = Read { data: &data, ..line };
            for result in [decode_for_fold(&changed, Some("decision")), decode(&changed)] {
                let Err(Error::Unreadable { line: number, .. }) = result else { panic!("{kind}: {bad}") };
                assert_eq!(number, line.seq);
            }
        }
    }
}
