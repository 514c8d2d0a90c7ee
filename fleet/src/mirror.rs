//! A copy of the fleet's journals on this machine, for looking at them with the code there is for files.
//!
//! It is a folder of its own in the user's state directory, laid out like a folder of projects: runs are in
//! `projects/<project>/.archeflow/events`, sprints in `projects/.archeflow/sprints`. None of it is a git repository, and no
//! run in it is known as one of this machine, so nothing in it can be resumed, landed, answered or discarded.
//!
//! Only what is new is read: the stream is appended to, so everything before a message that is still there is as it was.
//! When the first or the last known message is gone or another one, the server has forgotten or removed something; then the last
//! message of every journal is compared by position and time, and a journal whose last message is another one is read again.
//! What the server no longer has is removed here as well.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use archeflow_core::model::Money;
use archeflow_host::platform::files as os;
use archeflow_host::platform::removal::remove_tree;
use archeflow_host::replica::parts;
use archeflow_host::sprint::queue::QueueFolder;
use archeflow_host::store::index::IndexEntry;
use archeflow_host::store::journal::Journal;
use archeflow_host::store::{files, index, lock, names as file_names};
use archeflow_host::{clock, log, projections, repositories};
use serde::{Deserialize, Serialize};

use crate::bus::{Bus, BusError, BusSeq, Kept};
use crate::files as fleet_files;
use crate::join::JoinFile;
use crate::journal::Found;
use crate::names::{self, JOURNALS, SESSION};

const FORMAT: u32 = 1;
const ALL: &str = "af1.j.>";
const NOTES: &str = "mirror.json";
const LARGEST: u64 = 256 << 20;
/// The longest journal that is shown.
const LARGEST_JOURNAL: u64 = 1 << 30;
/// What is read is written down each time this much has come.
const AT_ONCE: usize = 16 << 20;
/// Another viewer may be copying a large fleet for the first time.
const WAIT: Duration = Duration::from_secs(120);
/// Where runs are whose sprint is not known.
const NO_PROJECT: &str = "unknown";

#[derive(Debug, thiserror::Error)]
pub enum MirrorError {
    #[error(transparent)]
    Bus(#[from] BusError),
    #[error("the copies of the fleet's journals can't be kept: {0}")]
    Files(#[from] files::Error),
    #[error("the copies of the fleet's journals can't be kept: {0}")]
    Lock(#[from] lock::Error),
    #[error("{} was written by a newer version of archeflow", .0.display())]
    Newer(PathBuf),
}

/// The copies of one fleet's journals.
#[derive(Debug, Clone)]
pub struct Mirror {
    folder: PathBuf,
}

/// What a look at the server brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Refreshed {
    /// Messages that were new.
    pub messages: u64,
    /// Journals that were read again or removed, since the server has others now.
    pub replaced: u64,
}

/// A run of the fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MirroredRun {
    pub id: String,
    pub project: String,
    /// The session that wrote its last lines.
    pub session: String,
    /// As a list of runs has it; nothing while its journal can't be read.
    pub entry: Option<IndexEntry>,
    pub spent: Money,
    /// Why a message of it can't be read.
    pub broken: Option<String>,
    /// Its journal.
    pub path: PathBuf,
}

/// What is known of the server and of each journal.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
struct Notes {
    v: u32,
    /// When the server was last asked, in milliseconds since 1970.
    asked_at: u64,
    first: Option<Mark>,
    last: Option<Mark>,
    /// By subject.
    journals: BTreeMap<String, Copied>,
    /// The project of an item, by `<sprint>.<item>`.
    projects: BTreeMap<String, String>,
}

/// One message. Positions begin anew when a server has lost everything; its clock tells such messages apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
struct Mark {
    seq: BusSeq,
    at: u64,
}

impl Mark {
    fn of(kept: &Kept) -> Mark {
        Mark { seq: kept.seq, at: kept.at }
    }
}

/// How much of a journal is here.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
struct Copied {
    last: Mark,
    bytes: u64,
    /// Of these bytes: a file that is not as it was left is made again.
    digest: String,
    session: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    project: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    entry: Option<IndexEntry>,
    #[serde(default)]
    spent: Money,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    broken: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum JournalName {
    Run(String),
    Sprint(String),
}

impl JournalName {
    /// Nothing for a subject that names no file.
    fn of(subject: &str) -> Option<JournalName> {
        let (kind, part) = subject.strip_prefix("af1.j.")?.split_once('.')?;
        let id = names::name_of(part).filter(|id| file_names::valid_name(id) && id != "index")?;
        match kind {
            "run" => Some(JournalName::Run(id)),
            "sprint" => Some(JournalName::Sprint(id)),
            _ => None,
        }
    }
}

impl Mirror {
    /// The copies of the fleet that a join file leads to, in the user's state directory.
    pub fn open(state: &Path, join: &JoinFile) -> Result<Mirror, MirrorError> {
        let servers: BTreeSet<&str> = join.servers.iter().map(String::as_str).collect();
        let mut named = servers.into_iter().collect::<Vec<_>>().join("\n");
        named.push('\0');
        named.push_str(join.ca.as_deref().unwrap_or_default());
        let digest: String = files::digest(named.as_bytes()).chars().take(12).collect();
        let mirror = Mirror { folder: state.join("fleet").join(format!("view-{digest}")) };
        make_folder(&mirror.projects())?;
        Ok(mirror)
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Laid out like a folder of projects with a queue.
    pub fn projects(&self) -> PathBuf {
        self.folder.join("projects")
    }

    /// When the server was last asked, in milliseconds since 1970 and half a minute exact; nothing if never.
    pub fn asked_at(&self) -> Option<u64> {
        self.notes().ok().map(|notes| notes.asked_at).filter(|at| *at > 0)
    }

    /// Every run that is here, by id.
    pub fn runs(&self) -> Result<Vec<MirroredRun>, MirrorError> {
        let runs = self.notes()?.journals.into_iter().filter_map(|(subject, copied)| {
            let JournalName::Run(id) = JournalName::of(&subject)? else { return None };
            let path = self.run_file(&copied.project, &id);
            Some(MirroredRun {
                id,
                project: copied.project,
                session: copied.session,
                entry: copied.entry,
                spent: copied.spent,
                broken: copied.broken,
                path,
            })
        });
        let mut runs: Vec<MirroredRun> = runs.collect();
        runs.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(runs)
    }

    /// Reads what is new on the server. What was read before a failure is kept.
    pub fn refresh(&self, bus: &dyn Bus) -> Result<Refreshed, MirrorError> {
        let _lock = lock::Lock::take(&self.folder, "mirror", WAIT)?;
        let before = self.notes()?;
        let mut copying = Copying { mirror: self, bus, notes: before.clone(), done: Refreshed::default() };
        let end = copying.catch_up();
        let now = clock::now();
        // More exact than this, nobody needs to know it.
        if end.is_ok() && now.abs_diff(before.asked_at) > 30_000 {
            copying.notes.asked_at = now;
        }
        if copying.notes != before {
            self.write_notes(&copying.notes)?;
        }
        end.map(|()| copying.done)
    }

    /// Brings the artifacts of a run that are not here yet, and says how many came. One that the server does not have, or
    /// has with another content than the journal says, is left out.
    pub fn bring_artifacts(&self, bus: &dyn Bus, run: &str) -> Result<usize, MirrorError> {
        let known = self.runs()?.into_iter().find(|known| known.id == run);
        let Some(MirroredRun { project, path, .. }) = known else { return Ok(0) };
        let text = files::read_capped(&path, LARGEST_JOURNAL)?;
        let Ok(placed) = parts::placed(run, &text) else { return Ok(0) };
        let folder = self.artifacts(&project, run);
        let all = fleet_files::list(bus, run)?;
        let mut brought = 0;
        for placed in placed {
            // What a journal of another machine names becomes a path here.
            let is_name = placed.place.split('/').all(file_names::valid_name);
            let Some(file) = fleet_files::find(&all, &placed.artifact).filter(|_| is_name) else { continue };
            let path = folder.join(&placed.place);
            // A later cycle writes other content under the same name.
            let here = files::read_capped(&path, LARGEST).ok();
            if here.is_some_and(|bytes| file.has(&bytes)) {
                continue;
            }
            let Some(content) = fleet_files::get(bus, file)? else { continue };
            make_folder(path.parent().unwrap_or(&folder))?;
            files::write_atomic(&path, &content)?;
            brought += 1;
        }
        Ok(brought)
    }

    fn notes(&self) -> Result<Notes, MirrorError> {
        let path = self.folder.join(NOTES);
        let Ok(bytes) = files::read_capped(&path, LARGEST) else { return Ok(Notes::default()) };
        // Only a copy: one that can't be read is made again.
        let notes: Notes = serde_json::from_slice(&bytes).unwrap_or_default();
        if notes.v > FORMAT {
            return Err(MirrorError::Newer(path));
        }
        Ok(notes)
    }

    fn write_notes(&self, notes: &Notes) -> Result<(), MirrorError> {
        let path = self.folder.join(NOTES);
        let notes = Notes { v: FORMAT, ..notes.clone() };
        let bytes = serde_json::to_vec(&notes).map_err(|error| files::Error::io("write", &path, error))?;
        Ok(files::write_atomic(&path, &bytes)?)
    }

    fn events(&self, project: &str) -> PathBuf {
        self.projects().join(project).join(".archeflow/events")
    }

    fn run_file(&self, project: &str, id: &str) -> PathBuf {
        self.events(project).join(format!("{id}.jsonl"))
    }

    fn artifacts(&self, project: &str, run: &str) -> PathBuf {
        self.projects().join(project).join(".archeflow/artifacts").join(run)
    }

    fn sprint_file(&self, id: &str) -> PathBuf {
        QueueFolder::at(&self.projects()).folder().join(format!("{id}.jsonl"))
    }
}

/// What a journal is made from.
struct Base<'a> {
    /// The bytes of its file.
    here: &'a [u8],
    /// What is known to be part of it.
    found: Found,
    /// All messages are there, from the first on.
    is_whole: bool,
}

/// One refresh, under way.
struct Copying<'a> {
    mirror: &'a Mirror,
    bus: &'a dyn Bus,
    notes: Notes,
    done: Refreshed,
}

impl Copying<'_> {
    fn catch_up(&mut self) -> Result<(), MirrorError> {
        let first = self.at_or_after(1)?;
        let last = match self.notes.last {
            Some(last) => self.at_or_after(last.seq)?,
            None => None,
        };
        if (first, last) != (self.notes.first, self.notes.last) && self.notes.last.is_some() {
            self.compare()?;
        }
        self.notes.first = first;
        let mut come: BTreeMap<String, Vec<Kept>> = BTreeMap::new();
        let mut size = 0;
        let end = loop {
            let next = self.notes.last.map_or(1, |last| last.seq + 1);
            match self.bus.next_from(JOURNALS, ALL, next) {
                Ok(Some(kept)) => {
                    self.notes.last = Some(Mark::of(&kept));
                    size += kept.bytes.len();
                    let known = self.notes.journals.get(&kept.subject);
                    if known.is_none_or(|known| known.last.seq < kept.seq) {
                        come.entry(kept.subject.clone()).or_default().push(kept);
                    }
                }
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
            if size >= AT_ONCE {
                self.write(std::mem::take(&mut come))?;
                self.mirror.write_notes(&self.notes)?;
                size = 0;
            }
        };
        self.write(come)?;
        Ok(end?)
    }

    fn at_or_after(&self, seq: BusSeq) -> Result<Option<Mark>, BusError> {
        Ok(self.bus.next_from(JOURNALS, ALL, seq)?.as_ref().map(Mark::of))
    }

    /// The server is not as it was: finds out which journals are, and from where on the stream has to be read.
    fn compare(&mut self) -> Result<(), MirrorError> {
        let known: Vec<(String, Mark)> =
            self.notes.journals.iter().map(|(subject, copied)| (subject.clone(), copied.last)).collect();
        let mut same = None;
        for (subject, mark) in known {
            match self.bus.last(&subject)? {
                Some(kept) if Mark::of(&kept) == mark => same = same.max(Some(mark)),
                Some(_) => self.read_again(&subject)?,
                None => self.remove(&subject)?,
            }
        }
        self.notes.last = same;
        Ok(())
    }

    /// What has come, sprints first: they say where their runs belong.
    fn write(&mut self, come: BTreeMap<String, Vec<Kept>>) -> Result<(), MirrorError> {
        let is_run = |subject: &str| matches!(JournalName::of(subject), Some(JournalName::Run(_)));
        let (runs, sprints): (Vec<_>, Vec<_>) =
            come.into_iter().partition(|(subject, _)| is_run(subject.as_str()));
        for (subject, messages) in sprints.into_iter().chain(runs) {
            self.done.messages += messages.len() as u64;
            self.extend(&subject, &messages)?;
        }
        Ok(())
    }

    /// Adds the next messages of a journal to its file.
    fn extend(&mut self, subject: &str, messages: &[Kept]) -> Result<(), MirrorError> {
        let Some(name) = JournalName::of(subject) else { return Ok(()) };
        let copied = self.notes.journals.get(subject).cloned().unwrap_or_default();
        let path = self.file(&name, &copied.project);
        let here = files::read_capped(&path, LARGEST_JOURNAL).unwrap_or_default();
        let length = usize::try_from(copied.bytes).unwrap_or(usize::MAX);
        let known = here.get(..length).filter(|known| length == 0 || files::digest(known) == copied.digest);
        let Some(known) = known else { return self.read_again(subject) };
        let found = Found::already(known.to_vec());
        self.take(subject, &name, copied, Base { here: &here, found, is_whole: false }, messages)
    }

    /// The whole journal, as the server has it now.
    fn read_again(&mut self, subject: &str) -> Result<(), MirrorError> {
        let Some(name) = JournalName::of(subject) else { return Ok(()) };
        let mut messages: Vec<Kept> = Vec::new();
        while let Some(kept) =
            self.bus.next_from(JOURNALS, subject, messages.last().map_or(1, |last| last.seq + 1))?
        {
            messages.push(kept);
        }
        if messages.is_empty() {
            return self.remove(subject);
        }
        self.done.replaced += 1;
        let project = self.notes.journals.get(subject).map(|copied| copied.project.clone());
        let copied = Copied { project: project.unwrap_or_default(), ..Copied::default() };
        let here =
            files::read_capped(&self.file(&name, &copied.project), LARGEST_JOURNAL).unwrap_or_default();
        let base = Base { here: &here, found: Found::default(), is_whole: true };
        self.take(subject, &name, copied, base, &messages)
    }

    /// The lines of these messages behind those that are known.
    fn take(
        &mut self,
        subject: &str,
        name: &JournalName,
        mut copied: Copied,
        base: Base<'_>,
        messages: &[Kept],
    ) -> Result<(), MirrorError> {
        let Base { here, mut found, is_whole } = base;
        let known = found.text.len();
        for kept in messages {
            copied.last = Mark::of(kept);
            copied.session = kept.header(SESSION).unwrap_or_default().to_owned();
            match found.take(kept) {
                Ok(true) => {}
                // Something is missing before it: here, or on the server too.
                Ok(false) if !is_whole => return self.read_again(subject),
                Ok(false) => {}
                Err(fault) => copied.broken = Some(fault.to_string()),
            }
        }
        self.keep(subject, name, copied, here, &found.text)?;
        if let JournalName::Sprint(id) = name {
            let more = here.get(..known).and_then(|known| found.text.strip_prefix(known));
            self.learn_projects(id, more.unwrap_or(&found.text));
        }
        Ok(())
    }

    /// Makes the file of a journal what it should be, and notes it.
    fn keep(
        &mut self,
        subject: &str,
        name: &JournalName,
        mut copied: Copied,
        here: &[u8],
        text: &[u8],
    ) -> Result<(), MirrorError> {
        if let JournalName::Run(id) = name
            && copied.project.is_empty()
        {
            copied.project = self.project_of(id);
            let root = self.mirror.projects().join(&copied.project);
            make_folder(&self.mirror.events(&copied.project))?;
            repositories::remember(&self.mirror.folder, &root)?;
        }
        let path = self.file(name, &copied.project);
        match text.strip_prefix(here) {
            Some([]) => {}
            // Viewers that follow the file see it grow.
            Some(more) if !here.is_empty() => append(&path, more)?,
            // Another file under the same name: viewers notice that it was replaced.
            Some(_) | None => {
                make_folder(path.parent().unwrap_or(&self.mirror.folder))?;
                files::write_atomic(&path, text)?;
            }
        }
        if let JournalName::Run(id) = name {
            self.list(id, &mut copied, &path)?;
        }
        copied.bytes = text.len() as u64;
        copied.digest = files::digest(text);
        self.notes.journals.insert(subject.to_owned(), copied);
        Ok(())
    }

    fn remove(&mut self, subject: &str) -> Result<(), MirrorError> {
        let Some(name) = JournalName::of(subject) else { return Ok(()) };
        let Some(copied) = self.notes.journals.remove(subject) else { return Ok(()) };
        self.done.replaced += 1;
        let removed = |end: std::io::Result<()>, path: &Path| match end {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(files::Error::io("remove", path, error))
            }
            Ok(()) | Err(_) => Ok(()),
        };
        let path = self.file(&name, &copied.project);
        removed(std::fs::remove_file(&path), &path)?;
        if let JournalName::Run(id) = &name {
            let folder = self.mirror.artifacts(&copied.project, id);
            removed(remove_tree(&folder), &folder)?;
            index::remove(&self.mirror.events(&copied.project), id)?;
        }
        Ok(())
    }

    /// Notes how far a run has come, and enters it in the list of its project when its status is another one. A journal that
    /// can't be read is left to those who show it.
    fn list(&self, id: &str, copied: &mut Copied, path: &Path) -> Result<(), MirrorError> {
        let folded = Journal::read(path).ok().and_then(|text| log::fold(&text).ok());
        copied.spent = folded.as_ref().map_or(copied.spent, |run| run.spent);
        copied.entry = folded.map(|run| projections::index_entry(id, &run));
        let Some(now) = &copied.entry else { return Ok(()) };
        let events = self.mirror.events(&copied.project);
        let known = index::read(&events)?.runs.into_iter().find(|entry| entry.run_id == id);
        if known.map(|known| IndexEntry { ts: now.ts.clone(), ..known }).as_ref() != Some(now) {
            index::append(&events, now)?;
        }
        Ok(())
    }

    fn file(&self, name: &JournalName, project: &str) -> PathBuf {
        match name {
            JournalName::Run(id) => self.mirror.run_file(project, id),
            JournalName::Sprint(id) => self.mirror.sprint_file(id),
        }
    }

    /// Where a run belongs, by the log of its sprint. Runs are named `<sprint>.<item>.<attempt>`.
    fn project_of(&self, run: &str) -> String {
        let item = run.rsplit_once('.').map(|(item, _)| item);
        let project = item.and_then(|item| self.notes.projects.get(item));
        project.cloned().unwrap_or_else(|| NO_PROJECT.to_owned())
    }

    fn learn_projects(&mut self, sprint: &str, text: &[u8]) {
        #[derive(Deserialize)]
        struct SeenLine {
            #[serde(rename = "type")]
            kind: String,
            data: SeenData,
        }
        #[derive(Deserialize)]
        struct SeenData {
            item: SeenItem,
        }
        #[derive(Deserialize)]
        struct SeenItem {
            id: String,
            project: String,
        }
        let lines = text.split(|byte| *byte == b'\n');
        let seen = lines.filter_map(|line| serde_json::from_slice::<SeenLine>(line).ok());
        for line in seen.filter(|line| line.kind == "item.seen") {
            let item = line.data.item;
            if is_project(&item.project) {
                self.notes.projects.insert(format!("{sprint}.{}", item.id), item.project);
            }
        }
    }
}

/// What another machine calls a project becomes a folder here.
fn is_project(project: &str) -> bool {
    let mut parts = Path::new(project).components();
    let is_name = |part: Component<'_>| match part {
        Component::Normal(name) => name.to_str().is_some_and(file_names::valid_name),
        Component::CurDir => true,
        Component::ParentDir | Component::RootDir | Component::Prefix(_) => false,
    };
    !project.is_empty() && parts.all(is_name)
}

fn append(path: &Path, bytes: &[u8]) -> Result<(), files::Error> {
    let io = |error| files::Error::io("append to", path, error);
    let mut file: File =
        os::without_links(std::fs::OpenOptions::new().append(true)).open(path).map_err(io)?;
    file.write_all(bytes).map_err(io)
}

/// For the user only, from its first moment on.
fn make_folder(path: &Path) -> Result<(), files::Error> {
    let made = os::private_directory().recursive(true).create(path);
    made.map_err(|error| files::Error::io("create the directory", path, error))
}
