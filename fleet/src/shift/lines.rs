//! The journal of a run here, on its way to the server. What a line names is on the server and on the remote before the line
//! itself is handed out: also if the line is published again because the server has lost it.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use archeflow_host::git::{ObjectId, remote};
use archeflow_host::open::Project;
use archeflow_host::replica::parts;
use archeflow_host::store::files as disk;
use serde::{Deserialize, Serialize};

use super::patience::Patience;
use crate::bus::{Bus, BusError};
use crate::files;
use crate::journal::{Found, LocalLines};

/// The largest artifact that is sent.
const LARGEST: u64 = 512 << 20;
/// The name under which a line has the refs of its run.
const REFS: &str = "git-refs.json";

/// The refs of a run when a line was published.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RefsAtLine {
    /// Of the line. Another session's line of this number has other refs.
    digest: String,
    pub(super) refs: BTreeMap<String, ObjectId>,
}

/// The journal of a run in a clone.
pub(super) struct RunLines {
    pub(super) bus: Arc<dyn Bus>,
    pub(super) project: Project,
    pub(super) run: String,
    pub(super) patience: Rc<Patience>,
    /// What only a person can put right, e.g. a remote that refuses the work.
    pub(super) trouble: Rc<RefCell<Option<String>>>,
    pub(super) pushed: RefCell<BTreeSet<ObjectId>>,
}

impl RunLines {
    pub(super) fn path(project: &Project, run: &str) -> PathBuf {
        project.places.events().join(format!("{run}.jsonl"))
    }

    fn put(&self, line: u64, name: &str, bytes: &[u8]) -> Result<(), String> {
        let put = self.patience.ask(|| files::put(&*self.bus, &self.run, line, name, bytes));
        put.map_err(|error| format!("{name}: {error}"))
    }

    /// Brings what these lines name to where another machine finds it.
    fn send_named(&self, lines: &[u8], last: u64) -> Result<(), String> {
        let named = parts::named_in(&self.run, lines).map_err(|error| error.to_string())?;
        for artifact in &named.artifacts {
            match self.project.artifact_file(&self.run, artifact) {
                Some(path) => {
                    let bytes = disk::read_capped(&path, LARGEST).map_err(|error| error.to_string())?;
                    self.put(artifact.line, &artifact.name, &bytes)?;
                }
                // For people only, and gone.
                None if artifact.digest.is_none() => {}
                None => return Err(format!("the artifact {} of {} is not there", artifact.name, self.run)),
            }
        }
        if named.has_commits {
            self.send_refs(lines, last)?;
        }
        Ok(())
    }

    fn send_refs(&self, lines: &[u8], last: u64) -> Result<(), String> {
        let refs = self.project.run_refs(&self.run).map_err(|error| error.to_string())?;
        let known = self.pushed.borrow().clone();
        let new: BTreeSet<ObjectId> =
            refs.values().filter(|commit| !known.contains(*commit)).cloned().collect();
        let pushed =
            self.patience.git(|| remote::push_kept(&self.project.repo, remote::ORIGIN, &self.run, &new));
        if let Err(why) = pushed {
            *self.trouble.borrow_mut() = Some(why.clone());
            return Err(why);
        }
        self.pushed.borrow_mut().extend(new);
        let at = RefsAtLine { digest: digest_of_last(lines), refs };
        let text = serde_json::to_vec(&at).map_err(|error| error.to_string())?;
        self.put(last, REFS, &text)
    }
}

impl LocalLines for RunLines {
    fn lines_from(&self, first: u64, bytes: usize) -> Result<Vec<u8>, String> {
        let path = RunLines::path(&self.project, &self.run);
        let text = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let (mut lines, mut last) = (Vec::new(), first.saturating_sub(1));
        let whole = text.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
        for line in whole.skip(usize::try_from(last).unwrap_or(usize::MAX)) {
            if !lines.is_empty() && lines.len() + line.len() > bytes {
                break;
            }
            lines.extend_from_slice(line);
            last += 1;
        }
        self.send_named(&lines, last)?;
        Ok(lines)
    }
}

fn digest_of_last(lines: &[u8]) -> String {
    let last = lines.split_inclusive(|byte| *byte == b'\n').next_back().unwrap_or_default();
    disk::digest(last)
}

/// The refs that belong to a journal as it was found; none if no line of it has any.
pub(super) fn refs_at(
    bus: &dyn Bus,
    patience: &Patience,
    all: &[files::FleetFile],
    found: &Found,
) -> Result<BTreeMap<String, ObjectId>, BusError> {
    let lines: Vec<&[u8]> = found.text.split_inclusive(|byte| *byte == b'\n').collect();
    let mut maps: Vec<&files::FleetFile> = all.iter().filter(|file| file.name == REFS).collect();
    maps.sort_by_key(|file| file.line);
    for file in maps.into_iter().rev() {
        let index = usize::try_from(file.line).unwrap_or(usize::MAX).wrapping_sub(1);
        let Some(line) = lines.get(index) else { continue };
        let content = patience.ask(|| files::get(bus, file))?;
        let at = content.and_then(|content| serde_json::from_slice::<RefsAtLine>(&content).ok());
        if let Some(at) = at.filter(|at| at.digest == disk::digest(line)) {
            return Ok(at.refs);
        }
    }
    Ok(BTreeMap::new())
}
