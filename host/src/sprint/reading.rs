//! A sprint for viewers: read from its log, without holding or writing anything.

use std::path::{Path, PathBuf};

use archeflow_core::sprint::Sprint;
use archeflow_core::sprint::chronicle::Chronicle;

use super::drive::Error;
use super::log as lines;
use super::queue::QueueFolder;
use crate::store::follow::Follower;
use crate::store::journal::Journal;
use crate::store::presence::Watched;

/// How far a sprint has come. [`SprintReader::more`] reads on.
pub struct SprintReader {
    pub id: String,
    pub sprint: Sprint,
    pub chronicle: Chronicle,
    /// Its log is a copy: another machine drives it.
    pub is_copy: bool,
    dir: PathBuf,
    follower: Follower,
}

impl SprintReader {
    /// What a viewer of it looks at.
    pub fn watched(&self) -> Watched {
        Watched::sprint(&self.dir, &self.id)
    }

    pub fn open(place: &QueueFolder, id: &str) -> Result<SprintReader, Error> {
        let dir = place.folder();
        let follower = Follower::open(&dir, id)?;
        let (sprint, chronicle) = (Sprint::default(), Chronicle::default());
        let mut reading =
            SprintReader { id: id.to_owned(), sprint, chronicle, is_copy: false, dir, follower };
        reading.more()?;
        Ok(reading)
    }

    /// Reads the lines that were added. Returns whether there were any.
    pub fn more(&mut self) -> Result<bool, Error> {
        let mut any = false;
        loop {
            let mut entries = Vec::new();
            let some = self.follower.more(|line| entries.push(lines::decode(line)))?;
            for entry in entries {
                let entry = entry?;
                self.sprint.apply(&entry);
                self.chronicle.apply(&entry);
            }
            if !some {
                return Ok(any);
            }
            any = true;
        }
    }

    /// Whether a process drives it now, as far as can be known here.
    pub fn is_driven(&self) -> bool {
        self.is_copy || Journal::driver(&self.dir, &self.id).is_some()
    }
}

/// The sprints of a queue, oldest first.
pub fn sprint_ids(place: &QueueFolder) -> Vec<String> {
    listed(&place.folder())
}

/// The newest that a process drives, else the newest of all.
pub fn newest(place: &QueueFolder) -> Option<String> {
    let known = sprint_ids(place);
    let driven = known.iter().rev().find(|id| Journal::driver(&place.folder(), id).is_some());
    driven.or(known.last()).cloned()
}

pub(super) fn listed(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut ids: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter_map(|name| name.strip_suffix(".jsonl").map(str::to_owned))
        .collect();
    // By date, then by the number behind it: the tenth of a day comes after the second.
    ids.sort_by_key(|id| (id.chars().take(10).collect::<String>(), id.len(), id.clone()));
    ids
}
