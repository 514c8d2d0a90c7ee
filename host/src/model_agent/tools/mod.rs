//! What a model can do in a working copy: look around, and if it is the Maker's also change things. What goes wrong is
//! reported to the model, which then tries something else; nothing here fails the attempt.

mod commands;
mod looking;
pub(crate) mod tree;
mod writing;

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::talk::{ToolCall, ToolResult, ToolSpec};
use tree::ToolTree;

/// The most of a result that is shown to the model.
const SHOWN_AT_MOST: usize = 48 * 1024;

/// Where tools are used, and what they may do there.
pub struct Bench {
    tree: ToolTree,
    writes: bool,
    /// What commands get to see.
    variables: Vec<(OsString, OsString)>,
    patience: Duration,
}

/// A call that was dealt with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Used {
    pub outcome: ToolResult,
    /// For the live output.
    pub note: String,
    /// It exists and is not for this role.
    pub denied: bool,
}

type Input = Map<String, Value>;

/// One tool.
struct Tool {
    name: &'static str,
    about: &'static str,
    /// It changes the working copy.
    writes: bool,
    input: fn() -> Value,
    /// What people see, before what it is used on.
    verb: &'static str,
    /// The part of the input that names what it is used on.
    on: &'static str,
    work: fn(&Bench, &Input) -> Result<String, String>,
}

const ALL: [Tool; 6] = [
    Tool {
        name: "list",
        about: "Lists a folder of the working copy. Folders end with a slash.",
        writes: false,
        input: || {
            schema(
                &[
                    (
                        "path",
                        "string",
                        "the folder, from the root of the working copy; the root if not given",
                    ),
                    ("recursive", "boolean", "everything below it as well"),
                ],
                &[],
            )
        },
        verb: "lists",
        on: "path",
        work: |bench, input| looking::list(&bench.tree, input),
    },
    Tool {
        name: "read",
        about: "Reads a text file, with line numbers. Long files are read in parts.",
        writes: false,
        input: || {
            schema(
                &[
                    ("path", "string", "the file, from the root of the working copy"),
                    ("from", "integer", "the first line; 1 if not given"),
                    ("lines", "integer", "how many lines; 400 if not given, at most 2000"),
                ],
                &["path"],
            )
        },
        verb: "reads",
        on: "path",
        work: |bench, input| looking::read(&bench.tree, input),
    },
    Tool {
        name: "search",
        about: "Finds the lines of text files that contain a text, exactly as it is given.",
        writes: false,
        input: || {
            schema(
                &[
                    ("text", "string", "what to look for; no pattern, it is taken literally"),
                    ("path", "string", "only in this folder or file"),
                    ("ending", "string", "only in files whose name ends like this, for example .rs"),
                    ("ignore_case", "boolean", "capitals do not matter"),
                ],
                &["text"],
            )
        },
        verb: "searches",
        on: "text",
        work: |bench, input| looking::search(&bench.tree, input),
    },
    Tool {
        name: "write",
        about: "Writes a whole file; folders above it are made. What was there is replaced.",
        writes: true,
        input: || {
            schema(
                &[
                    ("path", "string", "the file, from the root of the working copy"),
                    ("content", "string", "all of the file"),
                ],
                &["path", "content"],
            )
        },
        verb: "edits",
        on: "path",
        work: |bench, input| writing::write(&bench.tree, input),
    },
    Tool {
        name: "edit",
        about: "Replaces a text in a file by another. The old text has to be there exactly once, spaces and all.",
        writes: true,
        input: || {
            schema(
                &[
                    ("path", "string", "the file, from the root of the working copy"),
                    ("old", "string", "what is there, with as much around it as makes it unique"),
                    ("new", "string", "what should be there instead"),
                ],
                &["path", "old", "new"],
            )
        },
        verb: "edits",
        on: "path",
        work: |bench, input| writing::edit(&bench.tree, input),
    },
    Tool {
        name: "run",
        about: "Runs a command in the root of the working copy with /bin/sh and shows what it prints. What it leaves running is ended.",
        writes: true,
        input: || {
            schema(
                &[
                    ("command", "string", "the command line"),
                    ("seconds", "integer", "how long it may take; 120 if not given, at most 600"),
                ],
                &["command"],
            )
        },
        verb: "runs",
        on: "command",
        work: commands::run,
    },
];

/// What a role is offered.
pub fn offers(writes: bool) -> Vec<ToolSpec> {
    let tools = ALL.iter().filter(|tool| writes || !tool.writes);
    tools.map(|tool| ToolSpec { name: tool.name, about: tool.about, input: (tool.input)() }).collect()
}

/// The tools a Maker can't do without.
pub const NEEDED: [&str; 3] = ["write", "edit", "run"];

impl Bench {
    pub fn new(tree: &Path, writes: bool, variables: Vec<(OsString, OsString)>, patience: Duration) -> Bench {
        Bench { tree: ToolTree::new(tree), writes, variables, patience }
    }

    /// What people see before a call is dealt with.
    pub fn note(call: &ToolCall) -> String {
        let on =
            |tool: &Tool| call.object().and_then(|input| input.get(tool.on)?.as_str().map(str::to_owned));
        match ALL.iter().find(|tool| tool.name == call.name) {
            Some(tool) => format!("{} {}", tool.verb, on(tool).unwrap_or_else(|| ".".to_owned())),
            None => format!("wants a tool there is not: {}", call.name),
        }
    }

    pub fn work(&self, call: &ToolCall) -> Used {
        let tool = ALL.iter().find(|tool| tool.name == call.name);
        let denied = tool.is_some_and(|tool| tool.writes && !self.writes);
        let result = match (tool, call.object()) {
            (None, _) => {
                let known: Vec<&str> = offers(self.writes).iter().map(|offer| offer.name).collect();
                Err(format!("there is no tool of that name; there are: {}", known.join(", ")))
            }
            (Some(_), _) if denied => Err("your role may read and not change anything".to_owned()),
            (Some(_), None) => Err("the input is not a JSON object".to_owned()),
            (Some(tool), Some(input)) => (tool.work)(self, &input),
        };
        let failed = result.is_err();
        let text = match result {
            Ok(text) => shortened(text),
            Err(why) => shortened(format!("error: {why}")),
        };
        let outcome = ToolResult { id: call.id.clone(), name: call.name.clone(), text, failed };
        Used { outcome, note: Bench::note(call), denied }
    }
}

/// The beginning and the end, where most of what matters is.
fn shortened(text: String) -> String {
    if text.len() <= SHOWN_AT_MOST {
        return text;
    }
    let half = SHOWN_AT_MOST / 2;
    let boundary = |at: &usize| text.is_char_boundary(*at);
    let head = (0..=half).rev().find(boundary).unwrap_or(0);
    let tail = (text.len() - half..=text.len()).find(boundary).unwrap_or(text.len());
    let (before, after) = (text.get(..head).unwrap_or_default(), text.get(tail..).unwrap_or_default());
    format!("{before}\n[{} bytes are left out]\n{after}", tail - head)
}

fn schema(fields: &[(&str, &str, &str)], required: &[&str]) -> Value {
    let properties: Input = fields
        .iter()
        .map(|(name, kind, about)| ((*name).to_owned(), json!({"type": kind, "description": about})))
        .collect();
    json!({"type": "object", "properties": properties, "required": required})
}

/// A text that has to be there.
fn needed<'a>(input: &'a Input, name: &str) -> Result<&'a str, String> {
    input.get(name).and_then(Value::as_str).ok_or_else(|| format!("`{name}` is missing, or no text"))
}

fn given<'a>(input: &'a Input, name: &str) -> &'a str {
    input.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Some models write numbers as text.
fn whole(input: &Input, name: &str, usual: usize, most: usize) -> usize {
    let value = input.get(name);
    let number = value.and_then(Value::as_u64).or_else(|| value?.as_str()?.trim().parse().ok());
    number.and_then(|number| usize::try_from(number).ok()).unwrap_or(usual).clamp(1, most)
}

fn switch(input: &Input, name: &str) -> bool {
    let value = input.get(name);
    value.and_then(Value::as_bool).unwrap_or_else(|| value.and_then(Value::as_str) == Some("true"))
}
