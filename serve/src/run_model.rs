//! A run as its journal has it now, for the pages about it.

use std::path::Path;
use std::sync::Arc;

use archeflow_core::event::Entry;
use archeflow_core::model::RunStatus;
use archeflow_core::projections::live::{Driven, LiveRun};
use archeflow_core::projections::story::Story;
use archeflow_core::run::Run;
use archeflow_host::store::follow::Follower;
use archeflow_host::store::journal::Journal;
use archeflow_host::tail::Tail;
use archeflow_host::{clock, log};

use crate::catalog::Repository;

pub(crate) struct RunModel {
    pub(crate) repository: Arc<Repository>,
    pub(crate) id: String,
    pub(crate) entries: Vec<Entry>,
    /// For each entry, the byte after its line.
    pub(crate) ends: Vec<u64>,
    /// Why nothing after them can be read.
    pub(crate) damage: Option<String>,
    pub(crate) story: Story,
    pub(crate) live: LiveRun,
    pub(crate) now: u64,
    /// This machine did not start it.
    pub(crate) foreign: bool,
}

/// How a run is at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    Running,
    /// A question is open, and a process waits for the answer.
    Asks,
    Paused,
    Interrupted,
    Ended(RunStatus),
}

impl RunModel {
    /// Nothing where there is no such run, or not a single line of it can be read.
    pub(crate) fn read(repository: &Arc<Repository>, id: &str, foreign: bool) -> Option<RunModel> {
        let events = repository.events();
        let mut follower = Follower::open(&events, id).ok()?;
        let (mut entries, mut ends) = (Vec::new(), Vec::new());
        let damage = loop {
            let mut unread = None;
            let more = follower.more_with_ends(|line, end| match log::decode(line) {
                Ok(entry) if unread.is_none() => {
                    entries.push(entry);
                    ends.push(end);
                }
                Ok(_) => {}
                Err(error) => unread = unread.take().or(Some(error.to_string())),
            });
            match more {
                Ok(true) if unread.is_none() => {}
                Ok(_) => break unread,
                Err(error) => break unread.or(Some(error.to_string())),
            }
        };
        if entries.is_empty() {
            return None;
        }
        let mut live = LiveRun::new(id, driven(&events, id));
        entries.iter().for_each(|entry| live.take(entry));
        live.now = clock::now();
        let mut tail = Tail::new(&repository.root.join(".archeflow/artifacts").join(id));
        for (seq, text) in tail.look(&live.run) {
            live.heard(seq, &text);
        }
        let (story, now) = (Story::of(id, &entries), live.now);
        let (repository, id) = (Arc::clone(repository), id.to_owned());
        Some(RunModel { repository, id, entries, ends, damage, story, live, now, foreign })
    }

    pub(crate) fn run(&self) -> &Run {
        &self.live.run
    }

    /// The last line that was read.
    pub(crate) fn last_seq(&self) -> u64 {
        self.entries.last().map_or(0, |entry| entry.seq)
    }

    /// The byte after it.
    pub(crate) fn end(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    pub(crate) fn address(&self) -> String {
        address(&self.repository.key, &self.id)
    }

    pub(crate) fn standing(&self) -> Standing {
        let run = self.run();
        match &run.outcome {
            Some(outcome) => Standing::Ended(outcome.status),
            None if self.live.driven == Driven::Nobody => Standing::Interrupted,
            None if run.paused.is_some() => Standing::Paused,
            None if run.question().is_some() => Standing::Asks,
            None => Standing::Running,
        }
    }

    pub(crate) fn is_live(&self) -> bool {
        matches!(self.standing(), Standing::Running | Standing::Asks | Standing::Paused)
    }
}

/// The path of the pages of a run. Run ids are made of letters that need no escape.
pub(crate) fn address(repository: &str, id: &str) -> String {
    format!("/run/{repository}/{id}")
}

pub(crate) fn driven(events: &Path, id: &str) -> Driven {
    match Journal::driver(events, id) {
        Some(holder) => Driven::Elsewhere { pid: holder.pid, host: holder.host },
        None => Driven::Nobody,
    }
}
