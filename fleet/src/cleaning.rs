//! `fleet gc`: which journals and files of a fleet nothing needs any more. A journal is removed whole or not at all, and never
//! one that has not ended. What is removed here is on the machines of workers and in git as it was.
//!
//! A file may be named by a new run while old ones are removed: its content is there already, so the worker puts nothing. So
//! names are read after the parts were listed, once more afterwards, and what was named in between is reported.

use std::collections::{BTreeMap, BTreeSet};

use archeflow_core::rules::run_names::RunState;
use archeflow_host::log;
use archeflow_host::store::journal::Text;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::bus::{Bus, BusError};
use crate::journal::{self, JournalFault};
use crate::names::{self, FILES, JOURNALS};
use crate::nats::NatsBus;

const RUNS: &str = "af1.j.run.";
const SPRINTS: &str = "af1.j.sprint.";
/// Behind it: run, line, name.
const NAMED: &str = "af1.f.n.";
const PARTS: &str = "af1.f.";

/// What `fleet gc` removes, and what it keeps and why.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct GcPlan {
    pub runs: Vec<String>,
    pub sprints: Vec<String>,
    /// Contents that no run names any more, by their hash.
    pub files: Vec<String>,
    /// Journals that stay: not ended, or not long enough ago.
    pub kept: usize,
    /// Journals that stay because they can't be read, with the reason.
    pub unreadable: Vec<(String, String)>,
    /// Subjects of all of these.
    #[serde(skip)]
    journals: Vec<String>,
    #[serde(skip)]
    names: Vec<String>,
}

/// Whether a journal can go.
#[derive(Debug, Clone, PartialEq, Eq)]
enum JournalFate {
    Open,
    Ended,
    Unreadable(String),
}

#[derive(Deserialize)]
struct NamedFile {
    hash: String,
}

/// Looks what can go, and changes nothing. `before` is in milliseconds since 1970 by the server's clock: what was written
/// later stays.
pub fn plan(bus: &NatsBus, before: u64) -> Result<GcPlan, BusError> {
    let mut plan = GcPlan::default();
    let sprints = fates(bus, SPRINTS, before, sprint_fate)?;
    let open: Vec<String> = sprints
        .iter()
        .filter(|(_, fate)| **fate != JournalFate::Ended)
        .map(|(subject, _)| format!("{RUNS}{}_", subject.trim_start_matches(SPRINTS)))
        .collect();
    let runs = fates(bus, RUNS, before, run_fate)?;
    let mut gone = BTreeSet::new();
    for (subject, fate) in runs.iter().chain(&sprints) {
        let name = subject.rsplit('.').next().unwrap_or_default();
        // A sprint that has not ended may still ask for its runs.
        let is_needed = open.iter().any(|start| subject.starts_with(start));
        match fate {
            JournalFate::Ended if !is_needed => {
                plan.journals.push(subject.clone());
                if subject.starts_with(RUNS) {
                    gone.insert(name.to_owned());
                    plan.runs.push(readable(name));
                } else {
                    plan.sprints.push(readable(name));
                }
            }
            JournalFate::Ended | JournalFate::Open => plan.kept += 1,
            JournalFate::Unreadable(why) => plan.unreadable.push((readable(name), why.clone())),
        }
    }
    let parts = parts(bus, before)?;
    let known: BTreeSet<&str> = runs.keys().filter_map(|subject| subject.strip_prefix(RUNS)).collect();
    let mut needed = BTreeSet::new();
    let mut next = 1;
    while let Some(kept) = bus.next_from(FILES, &format!("{NAMED}>"), next)? {
        next = kept.seq + 1;
        let run =
            kept.subject.strip_prefix(NAMED).and_then(|rest| rest.split('.').next()).unwrap_or_default();
        // The name of a file comes before the line; a run without a journal may be about to begin.
        let is_gone = gone.contains(run) || (!known.contains(run) && kept.at < before);
        match serde_json::from_slice::<NamedFile>(&kept.bytes) {
            Ok(file) if !is_gone => {
                needed.insert(file.hash);
            }
            Ok(_) => plan.names.push(kept.subject),
            // Of a newer version, perhaps: what it names is unknown, so all contents stay.
            Err(error) => {
                plan.unreadable.push((kept.subject, error.to_string()));
                needed.extend(parts.iter().cloned());
            }
        }
    }
    plan.names.sort();
    plan.names.dedup();
    plan.files = parts.into_iter().filter(|hash| !needed.contains(hash)).collect();
    Ok(plan)
}

/// Removes what was planned. First names, then contents, then the queues of sprints, then journals: what is left after an interruption is found by the next
/// one. The result names contents that a run has named again in the meantime.
pub fn carry_out(bus: &NatsBus, plan: &GcPlan) -> Result<Vec<String>, BusError> {
    for subject in &plan.names {
        bus.purge(FILES, subject)?;
    }
    for hash in &plan.files {
        bus.purge(FILES, &format!("{PARTS}{hash}.*"))?;
    }
    for sprint in &plan.sprints {
        bus.remove_queue(&names::reports(sprint))?;
    }
    for subject in &plan.journals {
        bus.purge(JOURNALS, subject)?;
    }
    let removed: BTreeSet<&String> = plan.files.iter().collect();
    let (mut missed, mut next) = (BTreeSet::new(), 1);
    while let Some(kept) = bus.next_from(FILES, &format!("{NAMED}>"), next)? {
        next = kept.seq + 1;
        let file = serde_json::from_slice::<NamedFile>(&kept.bytes).ok();
        missed.extend(file.map(|file| file.hash).filter(|hash| removed.contains(hash)));
    }
    Ok(missed.into_iter().collect())
}

fn fates(
    bus: &NatsBus,
    start: &str,
    before: u64,
    fate: impl Fn(&str, &[u8]) -> JournalFate,
) -> Result<BTreeMap<String, JournalFate>, BusError> {
    let mut all = BTreeMap::new();
    for subject in bus.subjects(JOURNALS, &format!("{start}>"))?.into_keys() {
        let Some(last) = bus.last(&subject)? else { continue };
        let found = if last.at >= before {
            JournalFate::Open
        } else {
            match journal::read(bus, &subject) {
                Ok(found) => fate(&readable(subject.trim_start_matches(start)), &found.text),
                Err(JournalFault::Bus(error)) => return Err(error),
                Err(fault) => JournalFate::Unreadable(fault.to_string()),
            }
        };
        all.insert(subject, found);
    }
    Ok(all)
}

fn run_fate(name: &str, text: &[u8]) -> JournalFate {
    let Some(text) = Text::whole(text.to_vec(), name) else {
        return JournalFate::Unreadable("lines are missing or damaged".to_owned());
    };
    match log::fold(&text).map(|run| RunState::of(&run, false)) {
        Err(error) => JournalFate::Unreadable(error.to_string()),
        Ok(RunState::Closed | RunState::Failed | RunState::Stopped | RunState::Planned) => JournalFate::Ended,
        Ok(
            RunState::Running
            | RunState::Paused
            | RunState::Interrupted
            | RunState::AwaitingAnswer
            | RunState::AwaitingMerge,
        ) => JournalFate::Open,
    }
}

/// A sprint has ended with its last line; one that was resumed has others behind it.
fn sprint_fate(_name: &str, text: &[u8]) -> JournalFate {
    if is_sprint_end(text) { JournalFate::Ended } else { JournalFate::Open }
}

/// Whether the last line of a sprint's log ends it.
pub(crate) fn is_sprint_end(text: &[u8]) -> bool {
    let last = text.split(|byte| *byte == b'\n').rfind(|line| !line.is_empty());
    let line: Option<Value> = last.and_then(|line| serde_json::from_slice(line).ok());
    line.is_some_and(|line| line["type"] == "sprint.end")
}

/// Hashes of contents whose parts all are from before a time.
fn parts(bus: &NatsBus, before: u64) -> Result<BTreeSet<String>, BusError> {
    let mut newest: BTreeMap<String, u64> = BTreeMap::new();
    for subject in bus.subjects(FILES, &format!("{PARTS}*.*"))?.into_keys() {
        let hash = subject.strip_prefix(PARTS).and_then(|rest| rest.split('.').next());
        let Some(hash) = hash else { continue };
        let at = bus.last(&subject)?.map_or(0, |kept| kept.at);
        let known = newest.entry(hash.to_owned()).or_default();
        *known = at.max(*known);
    }
    Ok(newest.into_iter().filter(|(_, at)| *at < before).map(|(hash, _)| hash).collect())
}

/// The name that a part of a subject was made of.
pub(crate) fn readable(token: &str) -> String {
    let mut bytes = Vec::with_capacity(token.len());
    let mut rest = token.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'_' => bytes.push(b'.'),
            b'=' => {
                let digit =
                    |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16)).unwrap_or(0);
                let (high, low) = (digit(rest.next()), digit(rest.next()));
                bytes.push(u8::try_from(high * 16 + low).unwrap_or(b'?'));
            }
            other => bytes.push(other),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::token;

    #[test]
    fn fl_84_names_are_read_back_from_subjects() {
        for name in ["2026-11-18-sprint.shop-tax.1", "a_b", "a b*>.", "ä=", ""] {
            assert_eq!(readable(&token(name)), name);
        }
        assert_eq!(readable("a=4"), "a@");
    }

    #[test]
    fn fl_84_only_the_last_line_ends_a_sprint() {
        let end = "{\"type\":\"sprint.end\"}\n";
        assert!(is_sprint_end(end.as_bytes()));
        assert!(!is_sprint_end(format!("{end}{{\"type\":\"sprint.session\"}}\n").as_bytes()));
        assert!(!is_sprint_end(b"nonsense\n") && !is_sprint_end(b""));
        assert_eq!(
            run_fate("r", b"nonsense\n"),
            JournalFate::Unreadable("lines are missing or damaged".to_owned())
        );
    }
}
