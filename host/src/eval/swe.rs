//! Reads tasks in the shape of SWE-bench: one JSON object per line, with patches instead of folders, and repositories
//! that the user has cloned.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use archeflow_core::text::shell_word;
use serde_json::{Map, Value};

use super::suite::FaultList;
use super::{EvalCommand, EvalSuite, EvalTask, RepositoryPlace, SuiteFault, TaskFiles, TaskOrigin, bad_name};
use crate::config::shown;
use crate::git::ObjectId;

/// Where the names of tests go in the test command.
pub const TESTS: &str = "{tests}";

/// Of the whole file.
const LARGEST: u64 = 1 << 30;

/// The lines name no limit.
const LIMIT: Duration = Duration::from_secs(30 * 60);

const FIELDS: &str = "The fields are listed in docs/evaluation.md.";

/// What the lines don't say.
#[derive(Debug, Clone, Copy)]
pub struct SweOptions<'a> {
    pub clones: Option<&'a Path>,
    pub test_command: Option<&'a str>,
}

/// Reads a file with one task per line.
pub fn read(file: &Path, options: SweOptions<'_>) -> EvalSuite {
    let name = file.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut faults = FaultList::new("", file.display().to_string());
    let text = text(file, &mut faults);
    let clones = options.clones.map(|folder| (folder, folder.canonicalize()));
    let clones = match clones {
        Some((_, Ok(real))) if real.is_dir() => Some(real),
        Some((folder, _)) => {
            let text = format!("--clones: {} is not a folder", folder.display());
            faults.add(0, text, "Name the folder that has the clones.");
            None
        }
        None => {
            let text = "the file names repositories, and --clones is missing".to_owned();
            faults.add(0, text, "Clone them, and name the folder: --clones <dir>");
            None
        }
    };
    let command = options.test_command.filter(|command| command.contains(TESTS));
    if command.is_none() {
        let text = match options.test_command {
            Some(_) => "--test-command has no {tests}",
            None => "the file names tests, and --test-command is missing",
        };
        faults.add(0, text.to_owned(), "Write the command that runs them: --test-command 'pytest {tests}'");
    }
    let mut suite = EvalSuite {
        about: format!("Tasks of {}", file.display()),
        name,
        root: None,
        tasks: Vec::new(),
        unread: Vec::new(),
        faults: faults.found,
    };
    let mut reader =
        SweReader { file, clones: clones.as_deref(), command, names: BTreeMap::new(), suite: &mut suite };
    let mut number = 0;
    for line in text.lines() {
        number += 1;
        if !line.trim().is_empty() {
            reader.line(number, line);
        }
    }
    if suite.tasks.is_empty() && suite.unread.is_empty() && suite.faults.is_empty() {
        suite.faults.push(SuiteFault {
            task: String::new(),
            place: file.display().to_string(),
            line: 0,
            text: "the file has no task".to_owned(),
            remedy: FIELDS.to_owned(),
            output: Vec::new(),
        });
    }
    suite
}

fn text(file: &Path, faults: &mut FaultList) -> String {
    let size = fs::metadata(file).map(|meta| meta.len());
    if size.as_ref().is_ok_and(|size| *size > LARGEST) {
        faults.add(0, "the file has more than a gigabyte".to_owned(), "Split it.");
        return String::new();
    }
    match fs::read(file).map(String::from_utf8) {
        Ok(Ok(text)) => text,
        Ok(Err(error)) => {
            let good = error.utf8_error().valid_up_to();
            let lines = error.as_bytes().iter().take(good).filter(|byte| **byte == b'\n').count();
            let line = u32::try_from(lines + 1).unwrap_or(u32::MAX);
            faults.add(line, "the file is not UTF-8 text".to_owned(), "Write it again in UTF-8.");
            String::new()
        }
        Err(error) => {
            faults.add(0, format!("can't be read: {error}"), "Name a file that can be read.");
            String::new()
        }
    }
}

struct SweReader<'a> {
    file: &'a Path,
    clones: Option<&'a Path>,
    command: Option<&'a str>,
    /// The line of each name, in lower case.
    names: BTreeMap<String, u32>,
    suite: &'a mut EvalSuite,
}

impl SweReader<'_> {
    fn line(&mut self, number: u32, line: &str) {
        let mut faults = FaultList::new("", self.file.display().to_string());
        let object = match serde_json::from_str::<Value>(line) {
            Ok(Value::Object(object)) => Some(object),
            Ok(_) => {
                faults.add(number, "the line is not a JSON object".to_owned(), FIELDS);
                None
            }
            Err(error) => {
                let text = format!("not readable as JSON: {error}");
                faults.add(number, text, "Write one JSON object per line.");
                None
            }
        };
        let mut name = format!("line-{number}");
        let task = object.and_then(|object| {
            let mut fields = SweFields { object: &object, line: number, faults: &mut faults };
            let id = fields.text("instance_id");
            if let Some(id) = &id {
                name.clone_from(id);
                fields.faults.task.clone_from(id);
            }
            self.task(id, &mut fields)
        });
        match task.filter(|_| faults.found.is_empty()) {
            // A command is missing only if the whole suite has that fault.
            Some(task) => self.suite.tasks.push(task),
            None => self.suite.unread.push(shown(&name)),
        }
        self.suite.faults.append(&mut faults.found);
    }

    fn task(&mut self, name: Option<String>, fields: &mut SweFields<'_>) -> Option<EvalTask> {
        let line = fields.line;
        if let Some(name) = &name {
            if let Some(text) = bad_name(name) {
                fields.fault(format!("instance_id: {text}"), "Rename it.");
            }
            if let Some(first) = self.names.insert(name.to_lowercase(), line) {
                let text = format!("the instance_id `{}` is already in line {first}", shown(name));
                fields.fault(text, "Remove one of the two.");
            }
        }
        let repository = fields.text("repo").and_then(|repo| self.clone_of(&repo, fields));
        let commit = fields.text("base_commit").and_then(|id| {
            let parsed = ObjectId::parse(id.as_bytes()).ok();
            if parsed.is_none() {
                let text = format!("base_commit `{}` is not the full id of a commit", shown(&id));
                fields.fault(text, "Write all 40 digits.");
            }
            parsed
        });
        let text = fields.text("problem_statement");
        let test_patch = fields.text("test_patch");
        let patch = fields.object.contains_key("patch").then(|| fields.text("patch")).flatten();
        let failing = fields.tests("FAIL_TO_PASS");
        let passing = fields.tests("PASS_TO_PASS");
        if failing.as_ref().is_some_and(Vec::is_empty) {
            fields
                .fault("FAIL_TO_PASS names no test".to_owned(), "Name the tests that the change makes pass.");
        }
        let command = |tests: &[String]| {
            let words: Vec<String> = tests.iter().map(|test| shell_word(test)).collect();
            self.command
                .map(|command| EvalCommand { command: command.replace(TESTS, &words.join(" ")), line })
        };
        let (failing, passing) = (failing?, passing?);
        let visible = if passing.is_empty() { None } else { Some(command(&passing)?) };
        Some(EvalTask {
            name: name?,
            file: self.file.display().to_string(),
            line,
            language: None,
            text: text?,
            visible,
            hidden: command(&failing)?,
            limit: LIMIT,
            dollars: None,
            traps: Vec::new(),
            origin: TaskOrigin::Commit { place: repository?, commit: commit?, line },
            hidden_files: TaskFiles::Patch { text: with_newline(test_patch?), field: "test_patch" },
            reference: patch.map(|text| TaskFiles::Patch { text: with_newline(text), field: "patch" }),
            trap: None,
        })
    }

    /// `<clones>/<owner>__<name>` or `<clones>/<name>`.
    fn clone_of(&self, repo: &str, fields: &mut SweFields<'_>) -> Option<RepositoryPlace> {
        let parts: Vec<&str> = repo.split('/').collect();
        let &[owner, name] = &parts[..] else {
            let text = format!("repo `{}` is not of the form owner/name", shown(repo));
            fields.fault(text, FIELDS);
            return None;
        };
        if let Some(text) = bad_name(owner).or(bad_name(name)) {
            fields.fault(format!("repo `{}`: {text}", shown(repo)), FIELDS);
            return None;
        }
        let folder = self.clones?;
        let places: [PathBuf; 2] = [folder.join(format!("{owner}__{name}")), folder.join(name)];
        let found = places.iter().find(|place| place.is_dir()).cloned();
        if found.is_none() {
            let [first, second] = places.map(|place| place.display().to_string());
            let text = format!("the repository {repo} is missing: neither {first} nor {second} is a folder");
            fields.fault(text, &format!("Clone it there: git clone https://github.com/{repo} {first}"));
        }
        found.map(RepositoryPlace::Clone)
    }
}

/// A patch whose last newline was trimmed is damaged to git.
fn with_newline(mut patch: String) -> String {
    if !patch.ends_with('\n') {
        patch.push('\n');
    }
    patch
}

/// The fields of one line.
struct SweFields<'a> {
    object: &'a Map<String, Value>,
    line: u32,
    faults: &'a mut FaultList,
}

impl SweFields<'_> {
    fn fault(&mut self, text: String, remedy: &str) {
        self.faults.add(self.line, text, remedy);
    }

    fn text(&mut self, field: &str) -> Option<String> {
        match self.object.get(field) {
            Some(Value::String(text)) if text.trim().is_empty() => {
                self.fault(format!("{field} is empty"), FIELDS);
                None
            }
            Some(Value::String(text)) => Some(text.clone()),
            Some(_) => {
                self.fault(format!("{field} must be a text"), FIELDS);
                None
            }
            None => {
                self.fault(format!("{field} is missing"), FIELDS);
                None
            }
        }
    }

    /// A list of names, or a text that contains one as JSON, as the published files have it.
    fn tests(&mut self, field: &str) -> Option<Vec<String>> {
        let inner;
        let list = match self.object.get(field) {
            None => {
                self.fault(format!("{field} is missing"), FIELDS);
                return None;
            }
            Some(Value::String(text)) => {
                inner = serde_json::from_str::<Value>(text).unwrap_or(Value::Null);
                &inner
            }
            Some(other) => other,
        };
        let names = list.as_array().and_then(|list| {
            list.iter().map(|name| name.as_str().map(str::to_owned)).collect::<Option<Vec<String>>>()
        });
        let Some(names) = names else {
            self.fault(format!("{field} must be a list of test names, or a text that contains one"), FIELDS);
            return None;
        };
        let is_bad = |name: &&String| name.is_empty() || name.starts_with('-') || name.contains(['\0', '\n']);
        if let Some(bad) = names.iter().find(is_bad) {
            let text = format!("{field}: `{}` is not the name of a test", shown(bad));
            self.fault(
                text,
                "A name is one line and does not begin with `-`: it becomes a word of the test command.",
            );
            return None;
        }
        Some(names)
    }
}
