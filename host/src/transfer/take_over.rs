//! Taking a run over from its parts, as a worker of a fleet has them: the bytes of its journal, its artifacts and its refs.
//!
//! Everything is looked at before anything changes, and the journal comes last, as with a file ([`super`]). What differs is who
//! vouches for it: a worker, which says whether the run is this machine's own.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use archeflow_core::run::Run;

use super::{
    Error, FOLDER, LARGEST_FILE, MOST_FILES, WAIT, check_refs, held, is_portable, portable, write_below,
};
use crate::git::ObjectId;
use crate::git::workspace::point;
use crate::open::{self, Project};
use crate::replica::parts;
use crate::store::dir::Dir;
use crate::store::journal::{self, Text};
use crate::store::own_runs::OwnRun;
use crate::store::places::Places;
use crate::store::{files, lock, names};
use crate::{failpoint, log, projections};

/// A run as it was kept elsewhere.
#[derive(Debug, Clone, Copy)]
pub struct RunParts<'a> {
    pub run_id: &'a str,
    /// All of its lines, byte for byte.
    pub journal: &'a [u8],
    /// Files with the content of its artifacts, by their places ([`parts::placed`]).
    pub artifacts: &'a BTreeMap<String, PathBuf>,
    /// Its refs. Their commits were fetched before, under whatever name.
    pub refs: &'a BTreeMap<String, ObjectId>,
}

/// What the caller answers for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TakeOver {
    /// The run is this machine's own: whoever wrote the journal was allowed to run its commands here.
    pub is_own: bool,
    /// Lines that are only here give way; they are kept in another file.
    pub sets_aside: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenOver {
    pub lines: usize,
    /// Lines that were here before.
    pub known: usize,
    /// Where the lines are that were only here.
    pub set_aside: Option<PathBuf>,
}

impl Project {
    /// Makes a run known here, or brings it up to date. Safe to repeat.
    pub fn take_over(&self, run: RunParts<'_>, how: TakeOver) -> Result<TakenOver, Error> {
        self.places.check_owner()?;
        let id = run.run_id;
        let arrived = Checked::look(self, run)?;
        let text = &arrived.text;
        if self.came_with_the_repository(id)? {
            return Err(open::Error::Committed { id: id.to_owned() }.into());
        }
        let _lock = lock::Lock::take(&self.state, FOLDER, WAIT)?;
        self.places.make()?;
        let places = Places::open(self.places.root())?;
        let events = places.events();
        let path = events.join(format!("{id}.jsonl"));
        // Held until the end, so that nobody drives it meanwhile.
        let held = held(&events, id)?;
        let here = held.as_ref().map_or(&[][..], |held| held.lines.bytes());
        let known = held.as_ref().map_or(0, |held| held.lines.len());
        let mut set_aside = None;
        if !text.bytes().starts_with(here) {
            let common = common_lines(here, text.bytes());
            if !how.sets_aside {
                return Err(if here.starts_with(text.bytes()) {
                    Error::Older { id: id.to_owned(), here: known, there: text.len() }
                } else {
                    Error::Differs { id: id.to_owned() }
                });
            }
            set_aside = Some(journal::set_aside(&path, here.get(common.bytes..).unwrap_or_default())?);
            put_attempts_away(&places.artifacts().join(id), common.lines)?;
        }
        let is_new = here != text.bytes();
        let own = OwnRun { state: &self.state, root: places.root(), run_id: id };
        if is_new && !how.is_own {
            own.forget()?;
        }
        let refs: Vec<(ObjectId, String)> =
            run.refs.iter().map(|(name, commit)| (commit.clone(), name.clone())).collect();
        point(&self.repo, &refs)?;
        failpoint::pass("import.refs");
        let folder = Dir::open(&places.artifacts())?.make(id, 0o700)?;
        for (name, bytes) in &arrived.artifacts {
            write_below(&places, id, name, bytes)?;
        }
        // One that is missing would be made of what the current cycle has.
        let over = arrived.run.cycles.iter().filter(|cycle| cycle.number < arrived.run.number());
        for cycle in over {
            folder.make(&format!("cycle-{}", cycle.number), 0o700)?;
        }
        projections::boundaries(folder.path(), &arrived.run)?;
        failpoint::pass("import.files");
        if is_new {
            files::write_atomic(&path, text.bytes())?;
            projections::enter(&events, id, &arrived.run)?;
        }
        if how.is_own {
            // As a run that was begun here: its end may still be cut off.
            let first = text.digest_of(1).ok_or_else(|| open::Error::NeverBegan { id: id.to_owned() })?;
            own.remember(1, &first)?;
        }
        drop(held);
        Ok(TakenOver { lines: text.len(), known, set_aside })
    }
}

/// The parts, looked at and found to be a run. Nothing has changed yet.
struct Checked {
    text: Text,
    run: Run,
    artifacts: Vec<(String, Vec<u8>)>,
}

impl Checked {
    fn look(project: &Project, parts: RunParts<'_>) -> Result<Checked, Error> {
        let id = parts.run_id;
        let bad = |why: String| Error::BadParts { id: id.to_owned(), why };
        if !names::valid_run_id(id) {
            return Err(open::Error::BadId { id: id.to_owned() }.into());
        }
        let text = journal::check(id, parts.journal.to_vec())?;
        if text.bytes().len() != parts.journal.len() {
            return Err(bad("its journal ends in the middle of a line".to_owned()));
        }
        let run = log::fold(&text)?;
        let branch = portable(id, &run)?;
        check_refs(id, &run, &branch, parts.refs, |commit| project.repo.has_commit(commit))?.map_err(bad)?;
        if parts.artifacts.len() > MOST_FILES {
            return Err(bad(format!("it has more than {MOST_FILES} artifacts")));
        }
        let mut artifacts = Vec::new();
        for (name, path) in parts.artifacts {
            if !is_portable(name) {
                return Err(bad(format!("no run has an artifact '{}'", name.escape_debug())));
            }
            artifacts.push((name.clone(), files::read_capped(path, LARGEST_FILE)?));
        }
        let placed = parts::placed_in(&text).map_err(|error| bad(error.to_string()))?;
        for placed in placed {
            let Some(digest) = placed.artifact.digest else { continue };
            let found = artifacts.iter().find(|(name, _)| *name == placed.place);
            if found.is_none_or(|(_, bytes)| files::digest(bytes) != digest) {
                return Err(bad(format!("its artifact '{}' is missing or another one", placed.place)));
            }
        }
        Ok(Checked { text, run, artifacts })
    }
}

/// How much two journals have in common from their beginning.
struct CommonLines {
    lines: u64,
    bytes: usize,
}

fn common_lines(one: &[u8], other: &[u8]) -> CommonLines {
    let lines = |bytes: &[u8]| bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let (one, other): (Vec<Vec<u8>>, Vec<Vec<u8>>) = (lines(one), lines(other));
    let same = one.iter().zip(&other).take_while(|(one, other)| one == other);
    same.fold(CommonLines { lines: 0, bytes: 0 }, |sum, (line, _)| CommonLines {
        lines: sum.lines + 1,
        bytes: sum.bytes + line.len(),
    })
}

/// The folder of an attempt is named after the line that ordered it. Those of lines that give way would be taken for others.
fn put_attempts_away(folder: &Path, lines: u64) -> Result<(), Error> {
    let attempts = folder.join("attempts");
    let into = folder.join(format!("fenced-{lines}"));
    let io = |path: &Path, error| Error::Files(files::Error::io("move", path, error));
    for entry in fs::read_dir(&attempts).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let seq: Option<u64> = name.split('-').next().and_then(|seq| seq.parse().ok());
        if seq.is_none_or(|seq| seq <= lines) {
            continue;
        }
        fs::create_dir_all(&into).map_err(|error| io(&into, error))?;
        let taken: BTreeSet<PathBuf> =
            fs::read_dir(&into).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        let free = (1u32..).map(|n| into.join(format!("{name}.{n}"))).find(|path| !taken.contains(path));
        let Some(free) = free else { continue };
        fs::rename(entry.path(), &free).map_err(|error| io(&free, error))?;
    }
    Ok(())
}
