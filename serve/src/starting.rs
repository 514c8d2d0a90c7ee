//! Starting the commands of this program that a person would type, and seeing what came of them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use archeflow_core::text::short_text;
use archeflow_host::control::Requester;
use archeflow_host::detached::Detached;

use crate::offers::Offer;
use crate::run_model::RunModel;

/// How long a command may take to write its first line before it is taken to be under way.
pub(crate) const FIRST_LINE: Duration = Duration::from_secs(20);
pub(crate) const LOOK: Duration = Duration::from_millis(30);
/// How long a command may take that prints an object.
const TIME: Duration = Duration::from_secs(30);
/// The longest object, in bytes.
const LONGEST: u64 = 64 * 1024 * 1024;

/// The runs about which a decision is being carried out. Of two that are the same, the journal has one line, and nobody could
/// tell whose it is.
#[derive(Default)]
pub(crate) struct Deciding(Mutex<BTreeSet<String>>);

impl Deciding {
    /// Nothing while another decision about this run is being carried out.
    pub(crate) fn begin(&self, run: &str) -> Option<DecisionTurn<'_>> {
        self.runs().insert(run.to_owned()).then(|| DecisionTurn { of: self, run: run.to_owned() })
    }

    fn runs(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) struct DecisionTurn<'a> {
    of: &'a Deciding,
    run: String,
}

impl Drop for DecisionTurn<'_> {
    fn drop(&mut self) {
        self.of.runs().remove(&self.run);
    }
}

pub(crate) enum Came {
    Begun,
    /// With its exit code.
    Refused(Option<i32>),
}

/// Options of the command for a decision: by which way it came, and which line of the journal it is about. One that steers
/// is meant for the run as it is, whatever it has done meanwhile.
pub(crate) fn decision_options(run: &RunModel, offer: &Offer, by: Requester, at: Option<u64>) -> Vec<String> {
    let mut options = Vec::new();
    if offer.command.starts_with("archeflow loop ") {
        options.extend(["--run".to_owned(), run.id.clone()]);
    }
    options.extend(["--by", by.name()].map(str::to_owned));
    if let Some(at) = at {
        options.extend(["--at", &at.to_string(), "--unattended"].map(str::to_owned));
    }
    options
}

/// A decision whose command was started.
pub(crate) struct Decision<'a> {
    pub(crate) run: &'a RunModel,
    pub(crate) offer: &'a Offer,
    /// The person's.
    pub(crate) text: &'a str,
    pub(crate) by: Requester,
    /// It stops or pauses a run that goes on meanwhile.
    pub(crate) steers: bool,
}

impl Decision<'_> {
    /// Waits until the decision is in the journal or the command has ended. One that takes longer is under way.
    pub(crate) fn outcome(&self, started: &Detached) -> Came {
        let mut watch = JournalWatch::of(self.run);
        loop {
            match self.came(started, &mut watch) {
                Some(came) => return came,
                None => std::thread::sleep(LOOK),
            }
        }
    }

    /// One look at what came of it, if anything came yet.
    ///
    /// Others may decide at the same moment, so that the journal has grown says nothing: the line has to be this decision.
    pub(crate) fn came(&self, started: &Detached, watch: &mut JournalWatch) -> Option<Came> {
        // Asked first: what it wrote before it ended is in the journal then.
        let ended = started.ended();
        let length = length(&self.run.repository.events().join(format!("{}.jsonl", self.run.id)));
        if length != watch.length {
            watch.length = length;
            watch.is_there = self.is_in_journal();
        }
        match ended {
            _ if watch.is_there && !self.steers => Some(Came::Begun),
            Some(Some(0)) => Some(Came::Begun),
            Some(code) => Some(Came::Refused(code)),
            None => (watch.begun.elapsed() >= FIRST_LINE).then_some(Came::Begun),
        }
    }

    fn is_in_journal(&self) -> bool {
        let run = self.run;
        let now = RunModel::read(&run.repository, &run.id, run.foreign);
        let entries = now.as_ref().map_or(&[][..], |now| now.entries.get(run.entries.len()..).unwrap_or(&[]));
        entries.iter().any(|entry| self.offer.is_made_by(&entry.event, self.text, self.by))
    }
}

/// What was seen of a journal while a command is waited for.
pub(crate) struct JournalWatch {
    begun: Instant,
    length: u64,
    is_there: bool,
}

impl JournalWatch {
    pub(crate) fn of(run: &RunModel) -> JournalWatch {
        JournalWatch { begun: Instant::now(), length: run.end(), is_there: false }
    }
}

pub(crate) fn length(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |meta| meta.len())
}

/// What a command prints on standard output, whatever its exit code says about the run; else what it printed on standard
/// error.
pub(crate) fn printed(
    program: &Path,
    arguments: &[String],
    folder: &Path,
    state: &Path,
) -> Result<Vec<u8>, String> {
    let folder = if folder.is_dir() { folder.to_owned() } else { PathBuf::from("/") };
    let answer = Detached::start_for_output(program, arguments, &folder, state)
        .and_then(|started| started.output(TIME, LONGEST).map(|output| (output, started.said())));
    match answer {
        Err(error) => Err(format!("it can't be read: {error}")),
        Ok((output, said)) if output.is_empty() => {
            let said = short_text(said.trim(), 2_000);
            Err(if said.is_empty() {
                "the command printed nothing; is the disk full?".to_owned()
            } else {
                said
            })
        }
        Ok((output, _)) => Ok(output),
    }
}
