//! The tools that are offered, and what a model gave as their arguments.

use std::sync::Arc;

use archeflow_core::rules::signs::without_credentials;
use archeflow_core::text::short_line;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Map, Value, json};

/// How long a call waits at most: clients give up after 60 s.
pub(super) const LONGEST_WAIT: u64 = 50;
/// Of a task or another text.
const TEXT: usize = 20_000;

/// Why a tool did nothing, for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ToolFailure {
    pub(super) words: String,
    /// Of the command that was started.
    pub(super) exit_code: Option<i64>,
}

impl ToolFailure {
    pub(super) fn new(words: impl Into<String>) -> ToolFailure {
        ToolFailure { words: words.into(), exit_code: None }
    }

    pub(super) fn object(&self) -> Value {
        // Other programs may have said it, who print what they were given.
        let words = without_credentials(&self.words);
        match self.exit_code {
            Some(code) => json!({ "error": words, "exit_code": code }),
            None => json!({ "error": words }),
        }
    }
}

pub(super) fn all() -> Vec<Tool> {
    let run_id = || json!({ "type": "string", "description": "Id of the run, as another tool gave it" });
    let wait = json!({
        "type": "integer", "minimum": 0, "maximum": LONGEST_WAIT, "default": LONGEST_WAIT,
        "description": "Seconds to wait for the result",
    });
    let reads = || ToolAnnotations::new().read_only(true).open_world(false);
    let starts = || ToolAnnotations::new().read_only(false).destructive(false);
    vec![
        Tool::new(
            "review",
            "Have independent reviewers look at a change. Gives the findings that count, or status \"working\" with a run_id \
             for `wait`. Changes no file of the project.",
            schema(
                json!({
                    "of": {
                        "type": "string", "enum": SUBJECTS, "default": "working_tree",
                        "description": "What to review: all uncommitted work, or that in `ref`",
                    },
                    "ref": { "type": "string", "description": "Branch, commit or range A..B, patch file, or number of a pull request" },
                    "base": { "type": "string", "description": "Commit that a branch or a patch is compared with" },
                    "reviewers": {
                        "type": "array", "items": { "type": "string" },
                        "description": "guardian, skeptic, sage, trickster; default: guardian",
                    },
                    "since_last": { "type": "boolean", "description": "Only what changed since the last review of the same subject" },
                    "wait_s": wait,
                }),
                &[],
            ),
        )
        .with_annotations(starts()),
        Tool::new(
            "run",
            "Start a run: agents plan, implement, review and test the task on a branch of its own. Gives its run_id at once; \
             follow it with `wait`. Costs money, at most the budget or the user's own limit. Merging is decided by the person.",
            schema(
                json!({
                    "task": { "type": "string", "description": "What to do" },
                    "budget": { "type": "number", "exclusiveMinimum": 0, "description": "Cost limit in dollars; ask the person if they gave none" },
                    "workflow": { "type": "string", "description": "fast, standard, thorough or a workflow file; default: chosen from the task" },
                }),
                &["task", "budget"],
            ),
        )
        .with_annotations(starts()),
        Tool::new(
            "wait",
            "Wait for a run or a review: gives its result, how far it is, or what the person has to decide.",
            schema(json!({ "run_id": run_id(), "wait_s": wait }), &["run_id"]),
        )
        .with_annotations(reads()),
        Tool::new(
            "status",
            "Show what waits for the person in this repository, what runs and what ended last; with run_id, one run.",
            schema(json!({ "run_id": run_id() }), &[]),
        )
        .with_annotations(reads()),
        Tool::new(
            "findings",
            "List the findings of a review or a run, at most 50, the most severe first.",
            schema(
                json!({
                    "run_id": run_id(),
                    "severity": { "type": "string", "enum": SEVERITIES, "description": "Only findings at least this severe" },
                    "file": { "type": "string", "description": "Only findings in this file or folder" },
                }),
                &["run_id"],
            ),
        )
        .with_annotations(reads()),
        Tool::new(
            "why",
            "List the decisions of a run, each with its rule and what it was based on.",
            schema(
                json!({
                    "run_id": run_id(),
                    "rule": { "type": "string", "description": "Only decisions by this rule or about this archetype" },
                }),
                &["run_id"],
            ),
        )
        .with_annotations(reads()),
        Tool::new(
            "sprint",
            "List the queue of tasks, or add a task as a proposal, which the person approves.",
            schema(
                json!({
                    "action": { "type": "string", "enum": ["list", "add"], "default": "list" },
                    "task": { "type": "string", "description": "For add: what to do" },
                    "project": { "type": "string", "default": ".", "description": "For add: folder of the project below the queue's" },
                    "priority": { "type": "string", "enum": ["P0", "P1", "P2", "P3"], "default": "P2" },
                    "estimate": { "type": "string", "enum": ["S", "M", "L", "XL"], "default": "M" },
                }),
                &[],
            ),
        )
        .with_annotations(starts().open_world(false)),
        Tool::new(
            "decide",
            "Put the open decision of a run before the person. You can't give the answer: the person is asked by the client, or \
             told what to type.",
            schema(json!({ "run_id": run_id() }), &["run_id"]),
        )
        .with_annotations(ToolAnnotations::new().read_only(false).open_world(false)),
    ]
}

const SUBJECTS: [&str; 6] = ["working_tree", "staged", "branch", "commit", "patch", "pr"];
const SEVERITIES: [&str; 3] = ["critical", "warning", "info"];

fn schema(properties: Value, required: &[&str]) -> Arc<JsonObject> {
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), properties);
    if !required.is_empty() {
        schema.insert("required".to_owned(), required.into());
    }
    schema.insert("additionalProperties".to_owned(), false.into());
    Arc::new(schema)
}

/// A call of a tool, read strictly.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Call {
    Review(ReviewCall),
    Run(RunCall),
    Wait { run_id: String, wait_s: u64 },
    Decide { run_id: String },
    AtOnce(QuickCall),
}

/// A call that is answered without waiting.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum QuickCall {
    Status { run_id: Option<String> },
    Findings { run_id: String, severity: Option<String>, file: Option<String> },
    Why { run_id: String, rule: Option<String> },
    SprintList,
    SprintAdd { task: String, project: String, priority: String, estimate: String },
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct RunCall {
    pub(super) task: String,
    /// In dollars.
    pub(super) budget: String,
    pub(super) workflow: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct ReviewCall {
    /// What to review, as options of the command.
    pub(super) subject: Vec<String>,
    /// For its name.
    pub(super) label: String,
    pub(super) reviewers: Vec<String>,
    pub(super) since_last: bool,
    pub(super) wait_s: u64,
}

impl Call {
    /// Nothing if no tool has this name.
    pub(super) fn read(name: &str, arguments: Option<&JsonObject>) -> Option<Result<Call, ToolFailure>> {
        let empty = JsonObject::new();
        let arguments = Arguments { given: arguments.unwrap_or(&empty) };
        Some(match name {
            "review" => {
                arguments.only(&["of", "ref", "base", "reviewers", "since_last", "wait_s"]).and_then(review)
            }
            "run" => arguments.only(&["task", "budget", "workflow"]).and_then(run),
            "wait" => arguments
                .only(&["run_id", "wait_s"])
                .and_then(|given| Ok(Call::Wait { run_id: given.run_id()?, wait_s: given.wait_s()? })),
            "status" => arguments.only(&["run_id"]).and_then(|given| {
                Ok(Call::AtOnce(QuickCall::Status { run_id: given.text("run_id")?.map(str::to_owned) }))
            }),
            "findings" => arguments.only(&["run_id", "severity", "file"]).and_then(|given| {
                let severity = given.one_of("severity", &SEVERITIES)?.map(str::to_owned);
                let file = given.text("file")?.map(str::to_owned);
                Ok(Call::AtOnce(QuickCall::Findings { run_id: given.run_id()?, severity, file }))
            }),
            "why" => arguments.only(&["run_id", "rule"]).and_then(|given| {
                Ok(Call::AtOnce(QuickCall::Why {
                    run_id: given.run_id()?,
                    rule: given.text("rule")?.map(str::to_owned),
                }))
            }),
            "sprint" => {
                arguments.only(&["action", "task", "project", "priority", "estimate"]).and_then(sprint)
            }
            "decide" => {
                arguments.only(&["run_id"]).and_then(|given| Ok(Call::Decide { run_id: given.run_id()? }))
            }
            _ => return None,
        })
    }
}

fn review(given: Arguments<'_>) -> Result<Call, ToolFailure> {
    let of = given.one_of("of", &SUBJECTS)?.unwrap_or("working_tree");
    let (reference, base) = (given.text("ref")?, given.text("base")?);
    let wants_ref = !matches!(of, "working_tree" | "staged");
    let reference = match (reference, wants_ref) {
        (None, true) => {
            return Err(ToolFailure::new(format!(
                "'ref' is missing: the {} to review",
                of.replace('_', " ")
            )));
        }
        (Some(_), false) => {
            let words =
                format!("'ref' says nothing about '{of}'; give 'of' too: branch, commit, patch or pr");
            return Err(ToolFailure::new(words));
        }
        (reference, _) => reference.unwrap_or_default(),
    };
    if base.is_some() && !matches!(of, "branch" | "patch") {
        return Err(ToolFailure::new("'base' is for a branch or a patch"));
    }
    let mut subject = match of {
        "working_tree" => Vec::new(),
        "staged" => vec!["--staged".to_owned()],
        of => vec![format!("--{of}={reference}")],
    };
    subject.extend(base.map(|base| format!("--base={base}")));
    Ok(Call::Review(ReviewCall {
        subject,
        label: format!("review {} {}", of.replace('_', " "), short_line(reference, 60)),
        reviewers: given.list("reviewers")?,
        since_last: given.flag("since_last")?,
        wait_s: given.wait_s()?,
    }))
}

fn run(given: Arguments<'_>) -> Result<Call, ToolFailure> {
    let task = given.needed("task", "what to do")?;
    let budget = match given.given.get("budget") {
        None => {
            return Err(ToolFailure::new(
                "'budget' is missing: a cost limit in dollars, which the person names",
            ));
        }
        Some(Value::Number(number)) if number.as_f64().is_some_and(|number| number > 0.0) => {
            number.to_string()
        }
        Some(_) => return Err(ToolFailure::new("'budget' has to be a number of dollars above 0, e.g. 5")),
    };
    Ok(Call::Run(RunCall { task, budget, workflow: given.text("workflow")?.map(str::to_owned) }))
}

fn sprint(given: Arguments<'_>) -> Result<Call, ToolFailure> {
    if given.one_of("action", &["list", "add"])?.unwrap_or("list") == "list" {
        return Ok(Call::AtOnce(QuickCall::SprintList));
    }
    let or = |name: &str, usual: &str| -> Result<String, ToolFailure> {
        Ok(given.text(name)?.unwrap_or(usual).to_owned())
    };
    Ok(Call::AtOnce(QuickCall::SprintAdd {
        task: given.needed("task", "what to do")?,
        project: or("project", ".")?,
        priority: or("priority", "P2")?,
        estimate: or("estimate", "M")?,
    }))
}

#[derive(Clone, Copy)]
struct Arguments<'a> {
    given: &'a JsonObject,
}

impl<'a> Arguments<'a> {
    /// Refuses what the tool does not have, so that a slip is not taken for a wish.
    fn only(self, known: &[&str]) -> Result<Arguments<'a>, ToolFailure> {
        match self.given.keys().find(|name| !known.contains(&name.as_str())) {
            None => Ok(self),
            Some(unknown) => Err(ToolFailure::new(format!(
                "there is no argument '{}'; known: {}",
                short_line(unknown, 60),
                known.join(", ")
            ))),
        }
    }

    fn text(&self, name: &str) -> Result<Option<&'a str>, ToolFailure> {
        match self.given.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if text.contains('\0') => {
                Err(ToolFailure::new(format!("'{name}' has a zero byte")))
            }
            Some(Value::String(text)) if text.chars().count() > TEXT => {
                Err(ToolFailure::new(format!("'{name}' is longer than {TEXT} characters")))
            }
            Some(Value::String(text)) => Ok(Some(text.as_str()).filter(|text| !text.trim().is_empty())),
            Some(_) => Err(ToolFailure::new(format!("'{name}' has to be a text"))),
        }
    }

    fn needed(&self, name: &str, what: &str) -> Result<String, ToolFailure> {
        let missing = || ToolFailure::new(format!("'{name}' is missing: {what}"));
        Ok(self.text(name)?.ok_or_else(missing)?.to_owned())
    }

    fn run_id(&self) -> Result<String, ToolFailure> {
        self.needed("run_id", "the id of a run, as another tool gave it; `status` lists them")
    }

    fn one_of(&self, name: &str, known: &[&str]) -> Result<Option<&'a str>, ToolFailure> {
        match self.text(name)? {
            Some(word) if !known.contains(&word) => Err(ToolFailure::new(format!(
                "'{name}' can't be '{}'; known: {}",
                short_line(word, 60),
                known.join(", ")
            ))),
            word => Ok(word),
        }
    }

    fn flag(&self, name: &str) -> Result<bool, ToolFailure> {
        match self.given.get(name) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(ToolFailure::new(format!("'{name}' has to be true or false"))),
        }
    }

    fn wait_s(&self) -> Result<u64, ToolFailure> {
        match self.given.get("wait_s") {
            None | Some(Value::Null) => Ok(LONGEST_WAIT),
            Some(value) => value.as_u64().filter(|seconds| *seconds <= LONGEST_WAIT).ok_or_else(|| {
                ToolFailure::new(format!("'wait_s' has to be a whole number from 0 to {LONGEST_WAIT}"))
            }),
        }
    }

    fn list(&self, name: &str) -> Result<Vec<String>, ToolFailure> {
        let wrong = || ToolFailure::new(format!("'{name}' has to be a list of at most 20 names"));
        match self.given.get(name) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(items)) if items.len() <= 20 => items
                .iter()
                .map(|item| item.as_str().filter(|text| !text.contains(['\0', ','])).map(str::to_owned))
                .collect::<Option<_>>()
                .ok_or_else(wrong),
            Some(_) => Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use super::*;

    fn read(name: &str, arguments: &Value) -> Result<Call, String> {
        let read = Call::read(name, arguments.as_object()).unwrap();
        read.map_err(|failure| failure.words)
    }

    #[test]
    fn mc_02_arguments_are_read_strictly() {
        assert_eq!(Call::read("merge", None), None);
        for (tool, arguments, words) in [
            ("run", json!({ "task": "x" }), "'budget' is missing"),
            ("run", json!({ "task": "x", "budget": 0 }), "above 0"),
            ("run", json!({ "task": "x", "budget": "5" }), "a number of dollars"),
            ("run", json!({ "task": " ", "budget": 5 }), "'task' is missing"),
            ("run", json!({ "task": "x", "budget": 5, "auto_merge": true }), "no argument 'auto_merge'"),
            ("review", json!({ "verify": true }), "no argument 'verify'"),
            ("review", json!({ "of": "all" }), "can't be 'all'"),
            ("review", json!({ "of": "branch" }), "'ref' is missing"),
            ("review", json!({ "ref": "main" }), "'ref' says nothing"),
            ("review", json!({ "base": "main" }), "'base' is for"),
            ("review", json!({ "reviewers": "guardian" }), "a list"),
            ("review", json!({ "since_last": 1 }), "true or false"),
            ("wait", json!({ "run_id": "r", "wait_s": 51 }), "from 0 to 50"),
            ("wait", json!({ "wait_s": 5 }), "'run_id' is missing"),
            ("decide", json!({ "run_id": "r", "answer": "yes" }), "no argument 'answer'"),
            ("status", json!({ "run_id": 7 }), "has to be a text"),
            ("status", json!({ "run_id": "a\0b" }), "zero byte"),
            ("sprint", json!({ "action": "approve" }), "can't be 'approve'"),
        ] {
            let failure = read(tool, &arguments).unwrap_err();
            assert!(failure.contains(words), "{tool} {arguments}: {failure}");
        }
    }

    #[test]
    fn mc_02_no_text_of_a_model_is_taken_for_an_option() {
        let Ok(Call::Review(review)) =
            read("review", &json!({ "of": "branch", "ref": "--verify", "base": "-x" }))
        else {
            panic!("not read")
        };
        assert_eq!(review.subject, ["--branch=--verify", "--base=-x"]);
    }

    #[test]
    fn mc_02_every_tool_is_read_and_has_a_strict_schema() {
        for tool in all() {
            assert!(Call::read(&tool.name, None).is_some(), "{}", tool.name);
            assert_eq!(tool.input_schema.get("additionalProperties"), Some(&Value::Bool(false)));
            let words = tool.description.unwrap();
            assert!(!words.contains("  ") && words.len() < 300, "{words}");
        }
    }
}
