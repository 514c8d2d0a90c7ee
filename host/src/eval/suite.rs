//! Reads a suite that is a folder: `suite.yaml`, and a folder per task with `task.yaml`, `base/`, `hidden/`, `reference/`
//! and `trap/`. Everything that is wrong is collected; nothing runs.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use archeflow_core::model::Money;
use archeflow_core::text::closest;

use super::copy::HIDDEN;
use super::{
    EvalCommand, EvalSuite, EvalTask, EvalTrap, RepositoryPlace, SuiteFault, TaskFiles, TaskOrigin, TrapKind,
    bad_name, folders,
};
use crate::config::yaml::{self, Value, YamlEntry, YamlNode};
use crate::config::{Fault, shown};
use crate::git::ObjectId;

const SUITE: &str = "suite.yaml";
const TASK: &str = "task.yaml";
const BASE: &str = "base";
const REFERENCE: &str = "reference";
const TRAP: &str = "trap";

const SUITE_KEYS: &[&str] = &["name", "about"];
const TASK_KEYS: &[&str] =
    &["language", "task", "visible", "hidden", "minutes", "dollars", "traps", "repository", "commit"];
const TRAP_KEYS: &[&str] = &["name", "kind", "text", "fallen"];

const FORMAT: &str = "The format is in docs/evaluation.md.";
/// A day.
const MOST_MINUTES: f64 = 1440.0;

/// Reads the suite in a folder. Faults name files below `folder` as it is written here.
pub fn read(folder: &Path) -> EvalSuite {
    let root = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
    let mut suite = EvalSuite {
        name: String::new(),
        about: String::new(),
        root: Some(root.clone()),
        tasks: Vec::new(),
        unread: Vec::new(),
        faults: Vec::new(),
    };
    if !folder.is_dir() {
        let (text, remedy) = match fs::symlink_metadata(folder) {
            Ok(_) => (
                "not a folder, nor a file whose name ends in .jsonl",
                "Name the folder with suite.yaml in it.",
            ),
            Err(_) => {
                ("there is no such folder or file", "Name a folder with suite.yaml in it, or a .jsonl file.")
            }
        };
        suite.faults.push(SuiteFault {
            task: String::new(),
            place: folder.display().to_string(),
            line: 0,
            text: text.to_owned(),
            remedy: remedy.to_owned(),
            output: Vec::new(),
        });
        return suite;
    }
    read_head(folder, &mut suite);
    match task_folders(folder) {
        Ok(names) => read_tasks(folder, &root, names, &mut suite),
        Err(error) => {
            let mut faults = FaultList::new("", folder.display().to_string());
            faults.add(0, format!("can't be read: {error}"), "Make it readable.");
            suite.faults.append(&mut faults.found);
        }
    }
    suite
}

fn read_head(folder: &Path, suite: &mut EvalSuite) {
    let mut faults = FaultList::new("", folder.join(SUITE).display().to_string());
    if let Some(entries) = faults.yaml(&folder.join(SUITE), "Write it with the keys `name` and `about`.") {
        let map = YamlMap::new(&entries, SUITE_KEYS, &mut faults);
        suite.name = map.text("name", &mut faults).map(|(text, _)| text).unwrap_or_default();
        suite.about = map.text("about", &mut faults).map(|(text, _)| text).unwrap_or_default();
    }
    suite.faults.append(&mut faults.found);
}

/// Folders without a leading dot, in the order of their names.
fn task_folders(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        let kind = entry.file_type()?;
        if !is_hidden && (kind.is_dir() || kind.is_symlink() && entry.path().is_dir()) {
            names.push(PathBuf::from(entry.file_name()));
        }
    }
    names.sort();
    Ok(names)
}

fn read_tasks(folder: &Path, root: &Path, names: Vec<PathBuf>, suite: &mut EvalSuite) {
    let mut without = Vec::new();
    let mut known: BTreeMap<String, String> = BTreeMap::new();
    for name in names {
        let place = folder.join(&name);
        let shown_name = name.display().to_string();
        let mut faults = FaultList::new(&shown_name, place.display().to_string());
        if fs::symlink_metadata(&place).is_ok_and(|meta| meta.is_symlink()) {
            faults.add(
                0,
                "the link leads outside of its folder".to_owned(),
                "Copy the folder to this place.",
            );
            suite.unread.push(shown_name);
            suite.faults.append(&mut faults.found);
            continue;
        }
        if fs::symlink_metadata(place.join(TASK)).is_err() {
            without.push(name);
            continue;
        }
        if let Some(text) = bad_name(&shown_name) {
            faults.add(0, text.to_owned(), "Rename the folder.");
        }
        if let Some(other) = known.insert(shown_name.to_lowercase(), shown_name.clone()) {
            let text = format!("the name differs from `{other}` in upper and lower case only");
            faults.add(0, text, "Rename the folder: names become folders on machines that ignore case.");
        }
        let task = read_task(folder, root, &place, &shown_name, &mut faults);
        match task.filter(|_| faults.found.is_empty()) {
            Some(task) => suite.tasks.push(task),
            None => suite.unread.push(shown_name),
        }
        suite.faults.append(&mut faults.found);
    }
    for name in without {
        let place = folder.join(&name);
        let real = root.join(&name);
        let is_repository = suite.tasks.iter().any(|task| match &task.origin {
            TaskOrigin::Commit { place, .. } => place.path().starts_with(&real),
            TaskOrigin::Files(_) => false,
        });
        if !is_repository {
            let shown_name = name.display().to_string();
            let mut faults = FaultList::new(&shown_name, place.display().to_string());
            faults.add(
                0,
                "the folder has no task.yaml, and no task names it as its repository".to_owned(),
                "Write task.yaml, or move the folder out of the suite.",
            );
            suite.unread.push(shown_name);
            suite.faults.append(&mut faults.found);
        }
    }
    if suite.tasks.is_empty() && suite.unread.is_empty() {
        let mut faults = FaultList::new("", folder.display().to_string());
        faults.add(0, "the suite has no task".to_owned(), "Add a folder with a task.yaml.");
        suite.faults.append(&mut faults.found);
    }
}

fn read_task(
    suite: &Path,
    root: &Path,
    place: &Path,
    name: &str,
    faults: &mut FaultList,
) -> Option<EvalTask> {
    let file = place.join(TASK);
    faults.place = file.display().to_string();
    let entries = faults.yaml(&file, FORMAT)?;
    let map = YamlMap::new(&entries, TASK_KEYS, faults);
    let language = map.text("language", faults);
    let text = map.text("task", faults);
    let visible = map.command("visible", faults);
    let hidden = map.command("hidden", faults);
    let limit = map.minutes(faults);
    let dollars = map.dollars(faults);
    let traps = map.traps(faults);
    let origin = origin(&map, suite, root, place, faults);
    let own = |path: &Path| matches!(&origin, Some(TaskOrigin::Commit { place, .. }) if place.path().starts_with(path));
    let hidden_files = folder(place, HIDDEN, faults);
    let reference = folder(place, REFERENCE, faults);
    let trap = fs::symlink_metadata(place.join(TRAP)).is_ok().then(|| folder(place, TRAP, faults)).flatten();
    unknown_folders(place, &root.join(name), own, faults);
    Some(EvalTask {
        name: name.to_owned(),
        file: file.display().to_string(),
        line: 0,
        language: Some(language?.0),
        text: text?.0,
        visible: Some(visible?),
        hidden: hidden?,
        limit: limit?,
        dollars: Some(dollars?),
        traps: traps?,
        origin: origin?,
        hidden_files: TaskFiles::Folder(hidden_files?),
        reference: Some(TaskFiles::Folder(reference?)),
        trap: trap.map(TaskFiles::Folder),
    })
}

/// Either `base/`, or a repository of the suite with a commit.
fn origin(
    map: &YamlMap<'_>,
    suite: &Path,
    root: &Path,
    place: &Path,
    faults: &mut FaultList,
) -> Option<TaskOrigin> {
    let has_base = fs::symlink_metadata(place.join(BASE)).is_ok();
    let (repository, commit) = (map.entry("repository"), map.entry("commit"));
    let line = repository.or(commit).map_or(0, |entry| entry.line);
    match (has_base, repository, commit) {
        (true, None, None) => Some(TaskOrigin::Files(folder(place, BASE, faults)?)),
        (true, _, _) => {
            let text = "the task has both base/ and a `repository` or `commit`".to_owned();
            faults.add(line, text, "Keep one of them.");
            None
        }
        (false, None, None) => {
            let text = "there is neither a folder base/ nor a `repository`".to_owned();
            faults.add(0, text, "Put the files that agents get into base/.");
            None
        }
        (false, Some(_), None) | (false, None, Some(_)) => {
            let text = "`repository` and `commit` belong together".to_owned();
            faults.add(line, text, "Add the one that is missing.");
            None
        }
        (false, Some(_), Some(_)) => {
            let repository = map.text("repository", faults);
            let commit = map.text("commit", faults);
            let found = repository.and_then(|(path, line)| repository_of(&path, line, suite, root, faults));
            let (commit, line) = commit?;
            match ObjectId::parse(commit.as_bytes()) {
                Ok(commit) => Some(TaskOrigin::Commit { place: found?, commit, line }),
                Err(_) => {
                    let text = format!("`{}` is not the full id of a commit", shown(&commit));
                    faults.add(line, text, "Write all 40 digits, as `git rev-parse HEAD` prints them.");
                    None
                }
            }
        }
    }
}

/// Only what belongs to the suite: a suite of somebody else must not name other repositories of this machine.
fn repository_of(
    path: &str,
    line: u32,
    suite: &Path,
    root: &Path,
    faults: &mut FaultList,
) -> Option<RepositoryPlace> {
    let inside = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    if !Path::new(path).components().all(inside) {
        let text = format!("the repository `{}` is not in the suite", shown(path));
        faults.add(line, text, "Name a folder or a .bundle file by its path from the suite's folder.");
        return None;
    }
    let Ok(real) = root.join(path).canonicalize() else {
        let text = format!("the repository {} is missing", suite.join(path).display());
        faults.add(
            line,
            text,
            "Add the folder or the .bundle file, or correct its path from the suite's folder.",
        );
        return None;
    };
    if !real.starts_with(root) {
        let text = format!("the repository `{}` is a link that leads outside of the suite", shown(path));
        faults.add(line, text, "Copy the repository into the suite.");
        return None;
    }
    if real.is_dir() {
        return Some(RepositoryPlace::OfSuite(real));
    }
    if real.is_file() && real.extension().is_some_and(|ending| ending == "bundle") {
        return Some(RepositoryPlace::Bundle(real));
    }
    let text = format!("the repository `{}` is neither a folder nor a .bundle file", shown(path));
    faults.add(line, text, "Make one: git bundle create <file>.bundle --all");
    None
}

/// A folder of the task with at least one file, none of which leads outside or is where hidden files belong.
fn folder(place: &Path, name: &str, faults: &mut FaultList) -> Option<PathBuf> {
    let path = place.join(name);
    let at = path.display().to_string();
    let before = faults.found.len();
    match fs::symlink_metadata(&path) {
        Err(_) => faults.add_at(&at, "the folder is missing".to_owned(), FORMAT),
        Ok(meta) if meta.is_symlink() => {
            faults.add_at(
                &at,
                "the link leads outside of its folder".to_owned(),
                "Copy the folder to this place.",
            );
        }
        Ok(meta) if !meta.is_dir() => faults.add_at(&at, "not a folder".to_owned(), FORMAT),
        Ok(_) => match folders::look(&path) {
            Err(error) => faults.add_at(&at, format!("can't be read: {error}"), "Make it readable."),
            Ok(look) => {
                if look.files == 0 {
                    faults.add_at(&at, "the folder has no file".to_owned(), FORMAT);
                }
                for fault in look.faults {
                    faults.add_at(&path.join(fault.path).display().to_string(), fault.text, fault.remedy);
                }
                let taken = path.join(HIDDEN);
                if name != HIDDEN && fs::symlink_metadata(&taken).is_ok() {
                    let text = "hidden files must not be part of what agents see".to_owned();
                    faults.add_at(
                        &taken.display().to_string(),
                        text,
                        "Move them to the task's folder hidden/.",
                    );
                }
            }
        },
    }
    (faults.found.len() == before).then_some(path)
}

/// A folder with another name is a slip of the keys: its files would be used for nothing.
fn unknown_folders(place: &Path, real: &Path, own: impl Fn(&Path) -> bool, faults: &mut FaultList) {
    const KNOWN: [&str; 4] = [BASE, HIDDEN, REFERENCE, TRAP];
    let mut names: Vec<_> = fs::read_dir(place).into_iter().flatten().flatten().collect();
    names.sort_by_key(fs::DirEntry::file_name);
    for entry in names {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder && !KNOWN.contains(&name.as_str()) && !own(&real.join(entry.file_name())) {
            let known = KNOWN.map(str::to_owned);
            let remedy = match closest(&name, &known) {
                Some(near) => format!("Is {near}/ meant? Known are base/, hidden/, reference/ and trap/."),
                None => "Remove it. Known are base/, hidden/, reference/ and trap/.".to_owned(),
            };
            faults.add_at(&entry.path().display().to_string(), "the folder is unknown".to_owned(), &remedy);
        }
    }
}

/// Faults of one file or one task.
pub(super) struct FaultList {
    pub(super) task: String,
    pub(super) place: String,
    pub(super) found: Vec<SuiteFault>,
}

impl FaultList {
    pub(super) fn new(task: &str, place: String) -> FaultList {
        FaultList { task: task.to_owned(), place, found: Vec::new() }
    }

    pub(super) fn add(&mut self, line: u32, text: String, remedy: &str) {
        let (task, place) = (self.task.clone(), self.place.clone());
        self.found.push(SuiteFault {
            task,
            place,
            line,
            text,
            remedy: remedy.to_owned(),
            output: Vec::new(),
        });
    }

    fn add_at(&mut self, place: &str, text: String, remedy: &str) {
        self.add(0, text, remedy);
        if let Some(fault) = self.found.last_mut() {
            fault.place = place.to_owned();
        }
    }

    /// The entries of a file that must be one of the suite itself.
    fn yaml(&mut self, file: &Path, remedy: &str) -> Option<Vec<YamlEntry>> {
        let Ok(meta) = fs::symlink_metadata(file) else {
            self.add(0, "the file is missing".to_owned(), remedy);
            return None;
        };
        if !meta.is_file() {
            let text =
                if meta.is_symlink() { "the link leads outside of its folder" } else { "not a plain file" };
            self.add(0, text.to_owned(), "Put a plain file at this place.");
            return None;
        }
        if meta.len() > yaml::MOST_BYTES as u64 {
            let text = format!("the file has {} bytes; at most {} are read", meta.len(), yaml::MOST_BYTES);
            self.add(0, text, "Move long texts to files of the task.");
            return None;
        }
        let bytes = match fs::read(file) {
            Ok(bytes) => bytes,
            Err(error) => {
                self.add(0, format!("can't be read: {error}"), "Make it readable.");
                return None;
            }
        };
        match yaml::read(&self.place, &bytes) {
            Ok(entries) => Some(entries),
            Err(Fault { line, text, .. }) => {
                self.add(line, text, "Write plain YAML in UTF-8: keys, texts and lists.");
                None
            }
        }
    }
}

/// The keys of a mapping, each known.
struct YamlMap<'a> {
    entries: &'a [YamlEntry],
    /// What it is, in the words of a fault.
    of: String,
    /// Where it begins.
    line: u32,
}

impl<'a> YamlMap<'a> {
    fn new(entries: &'a [YamlEntry], known: &[&str], faults: &mut FaultList) -> YamlMap<'a> {
        YamlMap::within(entries, known, String::new(), 0, faults)
    }

    fn within(
        entries: &'a [YamlEntry],
        known: &[&str],
        of: String,
        line: u32,
        faults: &mut FaultList,
    ) -> YamlMap<'a> {
        for entry in entries.iter().filter(|entry| !known.contains(&entry.key.as_str())) {
            let names: Vec<String> = known.iter().map(|&name| name.to_owned()).collect();
            let all = names.join(", ");
            let remedy = match closest(&entry.key, &names) {
                Some(near) => format!("Is `{near}` meant? Known are {all}."),
                None => format!("Remove it. Known are {all}."),
            };
            faults.add(entry.line, format!("the key `{}` is unknown{of}", shown(&entry.key)), &remedy);
        }
        YamlMap { entries, of, line }
    }

    fn entry(&self, key: &str) -> Option<&'a YamlEntry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    fn needed(&self, key: &str, faults: &mut FaultList) -> Option<&'a YamlEntry> {
        let found = self.entry(key);
        if found.is_none() {
            faults.add(self.line, format!("the key `{key}` is missing{}", self.of), FORMAT);
        }
        found
    }

    /// A text that is not empty, without blanks around it, and the line of its key.
    fn text(&self, key: &str, faults: &mut FaultList) -> Option<(String, u32)> {
        let entry = self.needed(key, faults)?;
        let text = match &entry.value.value {
            Value::Scalar(text) => text.trim(),
            Value::Nothing => "",
            Value::List(_) | Value::Map(_) => {
                faults.add(entry.line, format!("`{key}` must be a text"), FORMAT);
                return None;
            }
        };
        if text.is_empty() {
            faults.add(entry.line, format!("`{key}` is empty"), "Write a text after the colon.");
            return None;
        }
        Some((text.to_owned(), entry.line))
    }

    fn command(&self, key: &str, faults: &mut FaultList) -> Option<EvalCommand> {
        self.text(key, faults).map(|(command, line)| EvalCommand { command, line })
    }

    fn minutes(&self, faults: &mut FaultList) -> Option<Duration> {
        let (text, line) = self.text("minutes", faults)?;
        let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let number = text.parse::<f64>().ok().filter(|_| is_plain);
        match number.filter(|number| *number > 0.0 && *number <= MOST_MINUTES) {
            Some(number) => Some(Duration::from_secs_f64(number * 60.0)),
            None => {
                let text =
                    format!("`minutes` is `{}`, which is not a number of minutes up to a day", shown(&text));
                faults.add(line, text, "Write a number above 0, such as 5 or 0.5.");
                None
            }
        }
    }

    fn dollars(&self, faults: &mut FaultList) -> Option<Money> {
        let (text, line) = self.text("dollars", faults)?;
        let found = Money::parse(&text).filter(|money| *money > Money::ZERO);
        if found.is_none() {
            let text = format!("`dollars` is `{}`, which is not an amount of dollars", shown(&text));
            faults.add(line, text, "Write a number above 0, such as 2 or 0.50.");
        }
        found
    }

    fn traps(&self, faults: &mut FaultList) -> Option<Vec<EvalTrap>> {
        let Some(entry) = self.entry("traps") else { return Some(Vec::new()) };
        let items = match &entry.value.value {
            Value::Nothing => return Some(Vec::new()),
            Value::List(items) => items,
            Value::Scalar(_) | Value::Map(_) => {
                faults.add(entry.line, "`traps` must be a list".to_owned(), FORMAT);
                return None;
            }
        };
        let mut lines: BTreeMap<String, u32> = BTreeMap::new();
        let mut traps = Vec::new();
        let mut is_whole = true;
        for item in items {
            let trap = trap(item, faults);
            if let Some(trap) = &trap
                && let Some(first) = lines.insert(trap.name.clone(), item.line)
            {
                let text = format!("the trap `{}` is already in line {first}", shown(&trap.name));
                faults.add(item.line, text, "Give each trap a name of its own.");
            }
            is_whole &= trap.is_some();
            traps.extend(trap);
        }
        is_whole.then_some(traps)
    }
}

fn trap(item: &YamlNode, faults: &mut FaultList) -> Option<EvalTrap> {
    let Value::Map(entries) = &item.value else {
        faults.add(item.line, "a trap must have the keys name, kind, text and fallen".to_owned(), FORMAT);
        return None;
    };
    let map = YamlMap::within(entries, TRAP_KEYS, " in a trap".to_owned(), item.line, faults);
    let name = map.text("name", faults);
    let kind = map.text("kind", faults).and_then(|(word, line)| {
        let found = TrapKind::ALL.into_iter().find(|kind| kind.name() == word);
        if found.is_none() {
            let all = TrapKind::ALL.map(TrapKind::name).join(", ");
            faults.add(
                line,
                format!("the kind `{}` is unknown", shown(&word)),
                &format!("Write one of {all}."),
            );
        }
        found
    });
    let text = map.text("text", faults);
    let fallen = map.command("fallen", faults);
    Some(EvalTrap { name: name?.0, kind: kind?, text: text?.0, fallen: fallen? })
}
