//! Which sprint a session drives: one that was interrupted, else a new one. Sprints of fleets have names of their own, since
//! their runs are elsewhere: a session on one machine can't continue them.

use std::io;
use std::path::Path;

use archeflow_core::sprint::Sprint;

use super::drive::Error;
use super::log as lines;
use super::queue::QueueFolder;
use super::reading;
use crate::clock;
use crate::platform::machine;
use crate::store::files;
use crate::store::journal::{self, Journal, Opened};

/// More sprints in a day than this mean that a loop has gone wrong.
const MOST: u32 = 10_000;
/// What follows the date in the id of a fleet's sprint.
const OF_FLEET: &str = "-fleet-";
const DATE: usize = "2026-11-18".len();

/// A sprint's log, claimed.
pub struct OpenedSprint {
    pub journal: Journal,
    pub sprint: Sprint,
}

/// Whether workers of a fleet perform this sprint.
pub fn is_of_fleet(sprint_id: &str) -> bool {
    sprint_id.get(DATE..).is_some_and(|rest| rest.starts_with(OF_FLEET))
}

/// The oldest sprint of this queue that has not ended and that no process drives, else a new one.
pub fn open(place: &QueueFolder) -> Result<OpenedSprint, Error> {
    let dir = place.sprints()?;
    if let Some(opened) = interrupted(&dir, |id| !is_of_fleet(id))? {
        return Ok(opened);
    }
    let wish = format!("{}-sprint", clock::date(clock::now()));
    for n in 1..=MOST {
        let id = if n == 1 { wish.clone() } else { format!("{wish}-{n}") };
        match Journal::create(&dir, &id) {
            Ok(journal) => return Ok(OpenedSprint { journal, sprint: Sprint::default() }),
            // Held: another process has found the file before it was locked here, and uses it.
            Err(journal::Error::Exists { .. } | journal::Error::Held { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(journal::Error::Exists { file: dir.join(wish) }.into())
}

/// The same for the sprint of a fleet. Its id is unique wherever it was made.
pub fn open_of_fleet(place: &QueueFolder) -> Result<OpenedSprint, Error> {
    let dir = place.sprints()?;
    if let Some(opened) = interrupted(&dir, is_of_fleet)? {
        return Ok(opened);
    }
    let (now, mut random) = (clock::now(), [0; 3]);
    machine::random(&mut random).map_err(|error| {
        let error = io::Error::new(error.kind(), format!("no random number for its name: {error}"));
        journal::Error::from(files::Error::io("begin a sprint in", &dir, error))
    })?;
    let time: String =
        clock::written(now).chars().skip(DATE + 1).filter(char::is_ascii_digit).take(6).collect();
    let hex: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let id = format!("{}{OF_FLEET}{time}-{hex}", clock::date(now));
    Ok(OpenedSprint { journal: Journal::create(&dir, &id)?, sprint: Sprint::default() })
}

fn interrupted(dir: &Path, is_meant: impl Fn(&str) -> bool) -> Result<Option<OpenedSprint>, Error> {
    for id in reading::listed(dir).into_iter().filter(|id| is_meant(id)) {
        match Journal::open(dir, &id) {
            Ok(opened) => {
                let sprint = lines::fold(&opened.lines)?;
                // One that was killed before it began is as good as new.
                if sprint.end.is_none() {
                    return Ok(Some(OpenedSprint { journal: opened.journal, sprint }));
                }
            }
            Err(journal::Error::Held { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

/// The log of one sprint as `kept` has it, which is what counts. Lines that are only here stay if they continue it;
/// others followed from nothing that counts, and are set aside.
pub fn open_as_kept(place: &QueueFolder, id: &str, kept: Vec<u8>) -> Result<OpenedSprint, Error> {
    let dir = place.sprints()?;
    let kept = journal::check(id, kept)?;
    let opened = match Journal::create(&dir, id) {
        Ok(journal) => {
            drop(journal);
            Journal::open(&dir, id)?
        }
        Err(journal::Error::Exists { .. }) => Journal::open(&dir, id)?,
        Err(error) => return Err(error.into()),
    };
    let (theirs, ours) = (kept.bytes(), opened.lines.bytes());
    let opened = if ours.starts_with(theirs) { opened } else { replaced(&dir, id, opened, theirs)? };
    Ok(OpenedSprint { sprint: lines::fold(&opened.lines)?, journal: opened.journal })
}

fn replaced(dir: &Path, id: &str, opened: Opened, theirs: &[u8]) -> Result<Opened, Error> {
    let ours = opened.lines.bytes();
    let both = ours.iter().zip(theirs).take_while(|(one, other)| one == other).count();
    let common = ours.get(..both).and_then(|same| same.iter().rposition(|byte| *byte == b'\n'));
    let common = common.map_or(0, |newline| newline + 1);
    opened.journal.cut_behind(common as u64)?;
    let rest = theirs.get(common..).unwrap_or_default();
    Journal::open(dir, id)?.journal.extend_and_close(rest)?;
    Ok(Journal::open(dir, id)?)
}
