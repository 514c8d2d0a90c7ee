//! A run as its journal has it now, for the pages about it.

use std::path::Path;
use std::sync::Arc;

use archeflow_core::event::Entry;
use archeflow_core::model::{Destination, RunStatus, Severity};
use archeflow_core::projections::live::{Driven, LiveFinding, LiveRun, bounded};
use archeflow_core::projections::story::{Life, State, Story};
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
    /// How often the journal was replaced by another one.
    pub(crate) restarts: u64,
    follower: Follower,
    tail: Tail,
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
        let follower = Follower::open(&events, id).ok()?;
        let model = RunModel::read_with(follower, repository, id, foreign);
        (!model.entries.is_empty()).then_some(model)
    }

    fn read_with(follower: Follower, repository: &Arc<Repository>, id: &str, foreign: bool) -> RunModel {
        let tail = Tail::new(&repository.root.join(".archeflow/artifacts").join(id));
        let mut model = RunModel {
            repository: Arc::clone(repository),
            id: id.to_owned(),
            entries: Vec::new(),
            ends: Vec::new(),
            damage: None,
            story: Story::of(id, &[]),
            live: LiveRun::new(id, Driven::Nobody),
            now: 0,
            foreign,
            restarts: 0,
            follower,
            tail,
        };
        model.look();
        model.listen();
        model
    }

    /// Reads what was added to the journal, and whether a process drives the run. Says whether anything is different.
    pub(crate) fn refresh(&mut self) -> bool {
        if self.follower.is_another_file() { self.begin_again() } else { self.look() }
    }

    fn look(&mut self) -> bool {
        let before = (self.entries.len(), self.damage.is_some(), self.live.driven.clone());
        if self.damage.is_none() {
            self.damage = self.read_on();
        }
        for entry in &self.entries[before.0..] {
            self.live.take(entry);
        }
        self.live.driven = match self.repository.is_copy {
            true => Driven::Fleet { worker: String::new(), repository: self.repository.name.clone() },
            false => driven(&self.repository.events(), &self.id),
        };
        self.live.now = clock::now();
        self.now = self.live.now;
        if self.entries.len() != before.0 {
            self.story = Story::of(&self.id, &self.entries);
        }
        before != (self.entries.len(), self.damage.is_some(), self.live.driven.clone())
    }

    /// The journal was replaced, cut or removed: what was read of it says nothing any more.
    fn begin_again(&mut self) -> bool {
        let Ok(follower) = Follower::open(&self.repository.events(), &self.id) else {
            let was_whole = self.damage.is_none();
            self.damage = Some("the journal is gone".to_owned());
            return was_whole;
        };
        let another = RunModel::read_with(follower, &self.repository, &self.id, self.foreign);
        *self = RunModel { restarts: self.restarts + 1, ..another };
        true
    }

    /// What running agents have printed since the last call.
    pub(crate) fn listen(&mut self) -> Vec<(u64, String)> {
        let heard = self.tail.look(&self.live.run);
        let heard = heard.into_iter().map(|(seq, text)| (seq, bounded(&text))).collect::<Vec<_>>();
        for (seq, text) in &heard {
            self.live.heard(*seq, text);
        }
        heard
    }

    /// Why nothing more can be read, if so.
    fn read_on(&mut self) -> Option<String> {
        loop {
            let (entries, ends) = (&mut self.entries, &mut self.ends);
            let mut unread = None;
            let more = self.follower.more_with_ends(|line, end| match log::decode(line) {
                Ok(entry) if unread.is_none() => {
                    entries.push(entry);
                    ends.push(end);
                }
                Ok(_) => {}
                Err(error) => unread = unread.take().or(Some(error.to_string())),
            });
            match more {
                Ok(true) if unread.is_none() => {}
                Ok(_) => return unread,
                Err(error) => return unread.or(Some(error.to_string())),
            }
        }
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

    /// The findings that are open now: those of the last end of a cycle, and those of the cycle under way.
    pub(crate) fn open_findings(&self) -> Vec<Life> {
        let mut open: Vec<Life> = self.story.lives.iter().filter(|life| life.is_open()).cloned().collect();
        let number = self.run().number();
        if self.run().cycle().is_none_or(|cycle| cycle.boundary.is_some()) {
            return open;
        }
        let fresh = self
            .live
            .findings
            .iter()
            .filter(|found| found.cycle == number && found.severity > Severity::Info);
        for found in fresh {
            let known =
                open.iter_mut().find(|life| life.file == found.file && life.description == found.description);
            match known {
                Some(life) if !life.source.contains(&found.source) => life.source.push(found.source.clone()),
                Some(_) => {}
                None => open.push(unended(found, self.story.cycles.len())),
            }
        }
        open
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

/// A finding of a cycle that has not ended. It has no id yet, so nothing can be decided about it.
fn unended(found: &LiveFinding, cycles: usize) -> Life {
    let mut states = vec![State::Absent; cycles.saturating_sub(1)];
    states.push(State::New);
    Life {
        id: String::new(),
        file: found.file.clone(),
        line: found.line,
        category: found.category.clone(),
        severity: found.severity,
        source: vec![found.source.clone()],
        description: found.description.clone(),
        also: Vec::new(),
        fix: String::new(),
        routes_to: Destination::Maker,
        regression_of: None,
        states,
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
