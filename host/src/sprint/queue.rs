//! The queue: `docs/orchestra/queue.json`, which people, other tools and several sprints read and write.
//!
//! Every change is made on the file as it is at that moment, under a lock, and replaces it in one step. What we don't
//! know in it is kept as it was written. An item that can't be read stays in the file and is named; it is never run.
//! An item is taken by compare-and-swap: only one that is still pending becomes ours, and only what is still ours is
//! settled by us.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use super::entries::Entries;
use super::fields::{JsonFields, QueueText};
use super::queue_watch::FileStamp;
use crate::platform::files::OFlags;
use crate::store::dir::{Dir, STATE};
use crate::store::lock::{self, Lock};
use crate::store::{files, names};
use archeflow_core::sprint::list::{self, ListedTask};
use archeflow_core::sprint::queue::{Graph, ItemStatus, Priority, QueueItem, TaskSize, freed_by};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

const FOLDERS: [&str; 2] = ["docs", "orchestra"];
pub(super) const NAME: &str = "queue.json";
/// Where sprints keep their own things, beside the queue's lock.
const SPRINTS: &str = "sprints";
/// A hundred thousand items fit.
const LARGEST: u64 = 64 << 20;
/// A task is a line of a journal as well.
const LONGEST_TASK: usize = 20_000;
/// Others need the lock for milliseconds.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{} can't be read: {why}. Nothing was changed", path.display())]
    Malformed { path: PathBuf, why: String },
    #[error("there is an item '{id}' already")]
    Exists { id: String },
    #[error("there is no item '{id}' that can be read")]
    Unknown { id: String },
    #[error("'{id}' is {}; only {wanted} can be {verb}", status.name())]
    NotNow { id: String, status: ItemStatus, wanted: &'static str, verb: &'static str },
    #[error("'{id}' can't be an item: {why}")]
    Unfit { id: String, why: String },
    #[error("these wait for each other for ever: {}", circle.join(" → "))]
    Circle { circle: Vec<String> },
    #[error(transparent)]
    Lock(#[from] lock::Error),
    #[error(transparent)]
    Files(#[from] files::Error),
}

/// The folder of a queue.
#[derive(Debug, Clone)]
pub struct QueueFolder {
    root: PathBuf,
}

/// A queue as it was when it was read.
#[derive(Debug, Clone, Default)]
pub struct Queue {
    /// Everything but the items, whose place in it is kept.
    head: JsonFields,
    entries: Entries,
    /// Where the items are that can be read, by their names.
    places: HashMap<String, usize>,
    /// The names of the others.
    unreadable: HashSet<String>,
    is_longer: bool,
    /// Claims and results that are not written yet. Each counts as a change, also where they are written together.
    unwritten: u64,
}

#[derive(Debug, Clone)]
pub(super) struct Entry {
    fields: EntryFields,
    item: Result<QueueItem, String>,
}

/// A queue is read far more often than changed, so an entry is taken apart only to be changed.
#[derive(Debug, Clone)]
enum EntryFields {
    Text(Box<RawValue>),
    Apart(JsonFields),
}

impl EntryFields {
    fn get<T: for<'de> Deserialize<'de>>(&self, name: &str) -> Option<T> {
        match self {
            EntryFields::Text(text) => serde_json::from_str::<JsonFields>(text.get()).ok()?.get(name),
            EntryFields::Apart(fields) => fields.get(name),
        }
    }

    fn apart(&mut self) -> Result<&mut JsonFields, serde_json::Error> {
        if let EntryFields::Text(text) = self {
            *self = EntryFields::Apart(serde_json::from_str(text.get())?);
        }
        match self {
            EntryFields::Apart(fields) => Ok(fields),
            EntryFields::Text(_) => Err(serde::de::Error::custom("an entry that can't be taken apart")),
        }
    }

    fn is_changed(&self) -> bool {
        matches!(self, EntryFields::Apart(fields) if fields.is_changed())
    }

    /// As it is written in the file: a field a line, or as others wrote it.
    fn text(&mut self) -> Result<&str, serde_json::Error> {
        if let EntryFields::Apart(fields) = self {
            *self = EntryFields::Text(RawValue::from_string(fields.lines(6)?)?);
        }
        match self {
            EntryFields::Text(text) => Ok(text.get()),
            EntryFields::Apart(_) => Err(serde::ser::Error::custom("an entry that can't be written")),
        }
    }
}

/// An entry that can't be read as an item, by its place in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueFault {
    pub number: usize,
    pub why: String,
}

/// The sprint that owns an item, or owned it last. The fence increases with each claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    pub sprint: String,
    pub fence: u64,
    /// The run to resume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
}

impl Claim {
    fn is_same(&self, other: &Claim) -> bool {
        (&self.sprint, self.fence) == (&other.sprint, other.fence)
    }
}

/// What is known about an item beside what it asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extra {
    pub notes: Option<String>,
    pub source: Option<String>,
}

/// What became of a list that was taken over.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportedTasks {
    pub added: Vec<QueueItem>,
    /// The same task is in the queue already.
    pub known: Vec<String>,
    pub faults: Vec<list::ListFault>,
}

impl QueueFolder {
    pub fn at(root: &Path) -> QueueFolder {
        QueueFolder { root: root.to_owned() }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn file(&self) -> PathBuf {
        self.root.join(FOLDERS[0]).join(FOLDERS[1]).join(NAME)
    }

    /// The folder of sprints, which may not be there yet.
    pub fn folder(&self) -> PathBuf {
        self.root.join(STATE).join(SPRINTS)
    }

    /// The folder of sprints, made if need be and kept out of git.
    pub fn sprints(&self) -> Result<PathBuf, Error> {
        let sprints = Dir::open(&self.root)?.make(STATE, 0o755)?.make(SPRINTS, 0o700)?;
        let path = self.folder();
        if sprints.kind(".gitignore")?.is_some() {
            return Ok(path);
        }
        match files::write_new(&path.join(".gitignore"), b"*\n") {
            Err(error) if error.io_kind() != Some(io::ErrorKind::AlreadyExists) => Err(error.into()),
            Ok(()) | Err(_) => Ok(path),
        }
    }

    /// The queue as it is now; an empty one where there is no file.
    pub fn read(&self) -> Result<Queue, Error> {
        match self.open()? {
            Some(file) => self.parse(&self.bytes_of(file)?),
            None => Ok(Queue::default()),
        }
    }

    /// What the file is at this moment, without reading it.
    pub(super) fn stamp(&self) -> Result<Option<FileStamp>, Error> {
        let Some(file) = self.open()? else { return Ok(None) };
        let meta = file.metadata().map_err(|error| files::Error::io("look at", &self.file(), error))?;
        Ok(Some(FileStamp::of(&meta)))
    }

    pub(super) fn open(&self) -> Result<Option<File>, Error> {
        let mut dir = Dir::open(&self.root)?;
        for name in FOLDERS {
            if dir.kind(name)?.is_none() {
                return Ok(None);
            }
            dir = dir.enter(name.as_ref())?;
        }
        if dir.kind(NAME)?.is_none() {
            return Ok(None);
        }
        Ok(Some(dir.file(NAME, OFlags::RDONLY)?))
    }

    pub(super) fn parse(&self, bytes: &[u8]) -> Result<Queue, Error> {
        Queue::parse(bytes).map_err(|why| Error::Malformed { path: self.file(), why })
    }

    pub(super) fn bytes_of(&self, file: File) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|error| files::Error::Io {
            doing: "read",
            path: self.file(),
            source: error,
        })?;
        if bytes.len() as u64 > LARGEST {
            return Err(files::Error::TooLarge { path: self.file(), max: LARGEST }.into());
        }
        Ok(bytes)
    }

    /// The folder of the queue, for the files beside it.
    pub(super) fn desk(&self) -> Result<Dir, Error> {
        Ok(Dir::open(&self.root)?.make(FOLDERS[0], 0o755)?.make(FOLDERS[1], 0o755)?)
    }

    /// Changes the queue as it is at this moment. If `change` fails, nothing is written.
    pub fn change<T>(&self, change: impl FnOnce(&mut Queue) -> Result<T, Error>) -> Result<T, Error> {
        let _lock = Lock::take(&self.sprints()?, "queue", PATIENCE)?;
        let mut queue = self.read()?;
        let result = change(&mut queue)?;
        self.write(&mut queue)?;
        Ok(result)
    }

    /// Writes a queue that was changed, and returns its text.
    pub(super) fn write(&self, queue: &mut Queue) -> Result<Option<String>, Error> {
        if !queue.is_changed() {
            return Ok(None);
        }
        queue.count_version();
        let text = queue.text().map_err(|error| {
            let why = plain(&error);
            Error::Malformed { path: self.file(), why }
        })?;
        files::replace_alone(&self.desk()?, NAME, text.as_bytes())?;
        Ok(Some(text))
    }
}

impl Queue {
    /// Every byte of an item is read twice: to find its end, and for what it asks. What else is in it is taken apart
    /// only when it is changed.
    fn parse(bytes: &[u8]) -> Result<Queue, String> {
        let quickly = std::str::from_utf8(bytes).ok().and_then(|text| serde_json::from_str(text).ok());
        match quickly {
            Some(QueueText { head, items }) => Ok(Queue::of(head, &items)),
            None => Queue::parse_odd(bytes),
        }
    }

    /// A file with two lists, or one with a fault that is to be named.
    fn parse_odd(bytes: &[u8]) -> Result<Queue, String> {
        let mut head: JsonFields = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        let text = head.text("items").map(str::to_owned);
        let list = text.as_deref().and_then(|text| serde_json::from_str::<Vec<&RawValue>>(text).ok());
        let list = list.filter(|list| list.iter().all(|entry| entry.get().starts_with('{')));
        let Some(list) = list else {
            return Err("it has no list of objects named 'items'".to_owned());
        };
        head.vacate("items");
        Ok(Queue::of(head, &list))
    }

    fn of(head: JsonFields, list: &[&RawValue]) -> Queue {
        let mut queue = Queue { entries: Entries::with_room(list.len()), head, ..Queue::default() };
        queue.places.reserve(list.len());
        for entry in list {
            queue.take_in((*entry).to_owned());
        }
        queue
    }

    fn take_in(&mut self, text: Box<RawValue>) {
        let item = serde_json::from_str::<QueueItem>(text.get()).map_err(|error| plain(&error));
        let item = item.and_then(|item| fit(&item).map(|()| item)).and_then(|item| {
            if self.places.contains_key(&item.id) {
                return Err(format!("'{}' is there twice", item.id));
            }
            self.places.insert(item.id.clone(), self.entries.len());
            Ok(item)
        });
        let fields = EntryFields::Text(text);
        if item.is_err() {
            self.unreadable.extend(fields.get::<String>("id"));
        }
        self.entries.push(Entry { fields, item });
    }

    fn is_changed(&self) -> bool {
        self.is_longer || self.head.is_changed() || self.entries.iter().any(|entry| entry.fields.is_changed())
    }

    /// What was not changed keeps its text.
    fn text(&mut self) -> Result<String, serde_json::Error> {
        let mut items = String::from("[");
        let mut between = "\n    ";
        for entry in self.entries.iter_mut() {
            items.push_str(between);
            items.push_str(entry.fields.text()?);
            between = ",\n    ";
        }
        items.push_str(if items.len() == 1 { "]" } else { "\n  ]" });
        let mut text = self.head.lines_with(2, "items", &items)?;
        text.push('\n');
        self.is_longer = false;
        self.head.unchanged();
        Ok(text)
    }

    fn count_version(&mut self) {
        let version: u64 = self.head.get("version").unwrap_or(0);
        let _ = self.head.set("version", &version.saturating_add(self.unwritten.max(1)));
        self.unwritten = 0;
    }

    /// The items that can be read, in their order.
    pub fn items(&self) -> impl Iterator<Item = &QueueItem> {
        self.entries.iter().filter_map(|entry| entry.item.as_ref().ok())
    }

    pub fn faults(&self) -> Vec<QueueFault> {
        let numbered = (1..).zip(self.entries.iter());
        numbered
            .filter_map(|(number, entry)| {
                Some(QueueFault { number, why: entry.item.as_ref().err()?.clone() })
            })
            .collect()
    }

    pub fn get(&self, id: &str) -> Option<&QueueItem> {
        self.entry(id)?.item.as_ref().ok()
    }

    pub fn extra(&self, id: &str) -> Extra {
        let apart: JsonFields;
        let fields = match self.entry(id).map(|entry| &entry.fields) {
            Some(EntryFields::Apart(fields)) => fields,
            Some(EntryFields::Text(text)) => {
                apart = serde_json::from_str(text.get()).unwrap_or_default();
                &apart
            }
            None => return Extra::default(),
        };
        Extra { notes: fields.get("notes"), source: fields.get("source") }
    }

    pub fn claim_of(&self, id: &str) -> Option<Claim> {
        self.entry(id)?.fields.get("claim")
    }

    /// Nothing is to be started from this queue now. A file can hold back, and never let go: that is for the command
    /// line.
    pub fn is_paused(&self) -> bool {
        self.head.get::<String>("mode").as_deref() == Some("PAUSED")
    }

    pub fn last_maintained(&self) -> Option<String> {
        self.head.get("last_maintained")
    }

    pub fn maintained(&mut self, at: &str) -> Result<(), Error> {
        self.head.set("last_maintained", &at).map_err(|error| unwritable(&error))
    }

    /// Adds an item at the end.
    pub fn add(&mut self, item: QueueItem, extra: &Extra) -> Result<(), Error> {
        self.append(item, extra)?;
        self.check_circles()
    }

    fn append(&mut self, item: QueueItem, extra: &Extra) -> Result<(), Error> {
        fit(&item).map_err(|why| Error::Unfit { id: item.id.clone(), why })?;
        if self.has(&item.id) {
            return Err(Error::Exists { id: item.id });
        }
        let mut fields: JsonFields = serde_json::to_string(&item)
            .and_then(|text| serde_json::from_str(&text))
            .map_err(|error| unwritable(&error))?;
        for (name, value) in [("notes", &extra.notes), ("source", &extra.source)] {
            if let Some(value) = value {
                fields.set(name, value).map_err(|error| unwritable(&error))?;
            }
        }
        self.places.insert(item.id.clone(), self.entries.len());
        self.entries.push(Entry { fields: EntryFields::Apart(fields), item: Ok(item) });
        self.is_longer = true;
        Ok(())
    }

    fn check_circles(&self) -> Result<(), Error> {
        match Graph::of(self.items()).cycle() {
            Some(circle) => Err(Error::Circle { circle: circle.into_iter().map(str::to_owned).collect() }),
            None => Ok(()),
        }
    }

    /// The same task for the same project that can still become something (M-N4).
    pub fn same_task(&self, project: &str, task: &str) -> Option<&QueueItem> {
        let same = |item: &&QueueItem| item.project == project && item.task.trim() == task.trim();
        self.items().filter(|item| item.status.is_open()).find(same)
    }

    /// The first free name of `<wish>`, `<wish>-2`, `<wish>-3`, …
    pub fn free_id(&self, wish: &str) -> String {
        let mut id = wish.to_owned();
        let mut n = 2_u32;
        while self.has(&id) {
            id = format!("{wish}-{n}");
            n += 1;
        }
        id
    }

    /// A proposed item may be run from now on.
    pub fn approve(&mut self, id: &str) -> Result<(), Error> {
        self.moves(id, &[ItemStatus::Proposed], ItemStatus::Pending, "what is proposed", "approved")
    }

    /// Cancels an item that is not running.
    pub fn cancel(&mut self, id: &str) -> Result<(), Error> {
        let from = [ItemStatus::Proposed, ItemStatus::Pending, ItemStatus::Blocked, ItemStatus::Failed];
        self.moves(id, &from, ItemStatus::Cancelled, "what has not begun", "cancelled")
    }

    /// What failed or was blocked may be tried again, and what was blocked by it alone.
    pub fn retry(&mut self, id: &str) -> Result<(), Error> {
        let from = [ItemStatus::Failed, ItemStatus::Blocked, ItemStatus::Cancelled];
        self.moves(id, &from, ItemStatus::Pending, "what failed, was blocked or cancelled", "tried again")?;
        let freed: Vec<String> = freed_by(self.items(), id);
        freed.iter().try_for_each(|id| self.put(id, ItemStatus::Pending))
    }

    /// Claims a pending item, or reports that another process was quicker. Claiming our own item again changes nothing.
    pub fn claim(&mut self, id: &str, sprint: &str) -> Result<Option<Claim>, Error> {
        let status = self.get(id).map(|item| item.status);
        let mine = self.claim_of(id).filter(|claim| claim.sprint == sprint);
        match (status, mine) {
            (Some(ItemStatus::Running), Some(claim)) => Ok(Some(claim)),
            (Some(ItemStatus::Pending), _) => {
                let last = self.claim_of(id);
                let fence = last.as_ref().map_or(1, |claim| claim.fence + 1);
                let claim = Claim { sprint: sprint.to_owned(), fence, run: last.and_then(|claim| claim.run) };
                self.put(id, ItemStatus::Running)?;
                self.fields_mut(id)?.set("claim", &claim).map_err(|error| unwritable(&error))?;
                self.unwritten += 1;
                Ok(Some(claim))
            }
            (Some(_) | None, _) => Ok(None),
        }
    }

    /// What became of an item. False when it is no longer the claimant's: then it is left as it is. The claim stays,
    /// with the run that the next owner of the item can resume.
    pub fn settle(
        &mut self,
        id: &str,
        claim: Option<&Claim>,
        to: ItemStatus,
        note: &str,
    ) -> Result<bool, Error> {
        let status = self.get(id).map(|item| item.status);
        let held = self.claim_of(id);
        let is_held = |claim: &Claim| held.as_ref().is_some_and(|held| held.is_same(claim));
        let ours = match claim {
            Some(claim) => status == Some(ItemStatus::Running) && is_held(claim),
            None => matches!(status, Some(ItemStatus::Pending | ItemStatus::Proposed)),
        };
        // Settled before, and killed before that could be written down.
        let done = status == Some(to) && claim.is_none_or(is_held);
        if !ours {
            return Ok(done);
        }
        self.put(id, to)?;
        self.unwritten += 1;
        let fields = self.fields_mut(id)?;
        if let Some(claim) = claim.filter(|claim| held.as_ref() != Some(claim)) {
            fields.set("claim", claim).map_err(|error| unwritable(&error))?;
        }
        if note.is_empty() {
            fields.remove("notes");
        } else {
            fields.set("notes", &note).map_err(|error| unwritable(&error))?;
        }
        Ok(true)
    }

    /// Takes over a plain list. What the entries wait for is found by their text, in the list or in the queue.
    pub fn import(&mut self, text: &str, project: &str, status: ItemStatus) -> Result<ImportedTasks, Error> {
        let (entries, faults) = list::read(text);
        let mut imported = ImportedTasks { faults, ..ImportedTasks::default() };
        let mut by_text: BTreeMap<String, String> = self
            .items()
            .filter(|item| item.project == project)
            .map(|item| (item.task.clone(), item.id.clone()))
            .collect();
        for entry in entries {
            if self.same_task(project, &entry.text).is_some()
                || (entry.done && by_text.contains_key(&entry.text))
            {
                imported.known.push(entry.text);
                continue;
            }
            match item_of(self, &entry, project, status, &by_text) {
                Ok(item) => {
                    by_text.insert(entry.text.clone(), item.id.clone());
                    let notes = entry.condition.map(|condition| format!("done: {condition}"));
                    let source = Some(format!("queue.md:{}", entry.line));
                    self.append(item.clone(), &Extra { notes, source })?;
                    imported.added.push(item);
                }
                Err(why) => imported.faults.push(list::ListFault { line: entry.line, why }),
            }
        }
        self.check_circles()?;
        Ok(imported)
    }

    fn moves(
        &mut self,
        id: &str,
        from: &[ItemStatus],
        to: ItemStatus,
        wanted: &'static str,
        verb: &'static str,
    ) -> Result<(), Error> {
        let status = self.get(id).ok_or_else(|| Error::Unknown { id: id.to_owned() })?.status;
        if !from.contains(&status) {
            return Err(Error::NotNow { id: id.to_owned(), status, wanted, verb });
        }
        self.put(id, to)
    }

    fn put(&mut self, id: &str, status: ItemStatus) -> Result<(), Error> {
        let entry = self.entry_mut(id)?;
        let fields = entry.fields.apart().map_err(|error| unwritable(&error))?;
        fields.set("status", &status).map_err(|error| unwritable(&error))?;
        if let Ok(item) = &mut entry.item {
            item.status = status;
        }
        Ok(())
    }

    /// Also those that can't be read have names.
    fn has(&self, id: &str) -> bool {
        self.places.contains_key(id) || self.unreadable.contains(id)
    }

    fn entry(&self, id: &str) -> Option<&Entry> {
        self.entries.get(*self.places.get(id)?)
    }

    fn entry_mut(&mut self, id: &str) -> Result<&mut Entry, Error> {
        let place = self.places.get(id).and_then(|place| self.entries.get_mut(*place));
        place.ok_or_else(|| Error::Unknown { id: id.to_owned() })
    }

    fn fields_mut(&mut self, id: &str) -> Result<&mut JsonFields, Error> {
        self.entry_mut(id)?.fields.apart().map_err(|error| unwritable(&error))
    }
}

/// A name for an item, from its project and its task.
pub fn wish(project: &str, task: &str) -> String {
    let last = project.rsplit('/').next().filter(|name| *name != ".").unwrap_or_default();
    archeflow_core::text::file_name(&format!("{last} {task}"))
}

fn item_of(
    queue: &Queue,
    entry: &ListedTask,
    project: &str,
    status: ItemStatus,
    by_text: &BTreeMap<String, String>,
) -> Result<QueueItem, String> {
    let mut depends_on = Vec::new();
    for text in &entry.depends {
        let id = by_text.get(text).cloned().or_else(|| queue.get(text).map(|item| item.id.clone()));
        depends_on.push(id.ok_or_else(|| format!("it depends on '{text}', which is no entry above it"))?);
    }
    Ok(QueueItem {
        id: queue.free_id(&wish(project, &entry.text)),
        project: project.to_owned(),
        task: entry.text.clone(),
        priority: Priority::P2,
        estimate: entry.workflow.as_deref().map_or(TaskSize::M, TaskSize::of_workflow),
        status: if entry.done { ItemStatus::Completed } else { status },
        depends_on,
        workflow: entry.workflow.clone(),
        files: Vec::new(),
    })
}

/// Names become files and branches, projects become folders (M-S12 and path traversal).
fn fit(item: &QueueItem) -> Result<(), String> {
    if !names::valid_name(&item.id) || item.id.len() > 64 {
        return Err(format!("'{}' is no name: letters, digits, '.', '_', '-', at most 64", short(&item.id)));
    }
    if item.task.trim().is_empty() || item.task.len() > LONGEST_TASK {
        return Err(format!("its task is empty or longer than {LONGEST_TASK} bytes"));
    }
    let below = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    if item.project.is_empty()
        || item.project.contains('\0')
        || !Path::new(&item.project).components().all(below)
    {
        return Err(format!("its project '{}' is no folder below the projects folder", short(&item.project)));
    }
    Ok(())
}

fn short(text: &str) -> String {
    text.chars().take(80).collect()
}

/// Without the position, which is in a text the user never saw.
fn plain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or(&text).to_owned()
}

fn unwritable(error: &serde_json::Error) -> Error {
    Error::Malformed { path: PathBuf::from(NAME), why: error.to_string() }
}
