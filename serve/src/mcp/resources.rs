//! What can be read whole: runs, reports, diffs, findings, decisions. And the prompts, which a person starts in the client.

use archeflow_core::text::{revealed, short_line};
use rmcp::ErrorData;
use rmcp::model::{
    GetPromptResult, JsonObject, Prompt, PromptArgument, PromptMessage, ReadResourceResult, Resource,
    ResourceContents, ResourceTemplate, Role,
};
use serde_json::{Value, json};

use super::tools::ToolFailure;
use super::work::{Desk, FOREIGN};
use crate::changes;

const RUNS: &str = "archeflow://runs";
const RUN: &str = "archeflow://run/";
const JSON: &str = "application/json";
const MARKDOWN: &str = "text/markdown";
const TEXT: &str = "text/plain";
/// The longest text of a resource, in bytes.
const LONGEST: usize = 2_000_000;

/// What there is to read of a run.
const PARTS: [(&str, &str, &str); 4] = [
    ("report", MARKDOWN, "What the run did, as a document"),
    ("diff", "text/x-diff", "The change that was made, or that was reviewed"),
    ("findings", JSON, "All findings, with evidence"),
    ("why", TEXT, "Every decision, with its rule and what it was based on"),
];

pub(super) fn all() -> Vec<Resource> {
    let words = "The last 50 runs of this repository, the newest last";
    vec![Resource::new(RUNS, "runs").with_description(words).with_mime_type(JSON)]
}

pub(super) fn templates() -> Vec<ResourceTemplate> {
    let template = |(part, kind, words): (&str, &str, &str)| {
        ResourceTemplate::new(format!("{RUN}{{run_id}}/{part}"), part)
            .with_description(words)
            .with_mime_type(kind)
    };
    PARTS.into_iter().map(template).collect()
}

pub(super) fn read(desk: &Desk, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let unknown = || {
        let words = format!(
            "there is no resource {}; known: {RUNS}, {RUN}<run_id>/report, …/diff, …/findings, …/why",
            short_line(uri, 120)
        );
        ErrorData::resource_not_found(words, Some(json!({ "uri": short_line(uri, 400) })))
    };
    let failed = |failure: ToolFailure| ErrorData::internal_error(failure.words, None);
    let (kind, mut text) = if uri == RUNS {
        (JSON, plain(desk.printed_text(&["list", "--json", "--limit", "50"]).map_err(failed)?))
    } else {
        let (id, part) = uri.strip_prefix(RUN).and_then(|rest| rest.split_once('/')).ok_or_else(unknown)?;
        let (part, kind, _) = PARTS.into_iter().find(|(name, ..)| *name == part).ok_or_else(unknown)?;
        let run = desk.run(id).map_err(|_| unknown())?;
        let text = match part {
            "report" => desk.printed_text(&["report", "--", id]).map(plain),
            // What would hide in a change is written out.
            "diff" => changes::text_of(Some(&desk.state), &run, LONGEST)
                .map(|text| {
                    text.split('\n').map(|line| revealed(line, usize::MAX)).collect::<Vec<_>>().join("\n")
                })
                .map_err(ToolFailure::new),
            "findings" if run.run().review.is_some() => desk
                .printed(&["review", "--json", "--run", id])
                .map(|review| marked(review, run.foreign).to_string()),
            "findings" => desk.printed(&["report", "--json", "--", id]).map(|report| {
                let found = report.get("findings").cloned().unwrap_or_default();
                marked(json!({ "run_id": id, "findings": found }), run.foreign).to_string()
            }),
            _ => desk.printed_text(&["show", "--why", "--", id]).map(plain),
        };
        let mut text = text.map_err(failed)?;
        if run.foreign && kind != JSON {
            text.insert_str(0, &format!("{FOREIGN}\n\n"));
        }
        (kind, text)
    };
    if text.len() > LONGEST {
        let end = (0..=LONGEST).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(end.unwrap_or(0));
        text.push_str("\n(cut)\n");
    }
    Ok(ReadResourceResult::new(vec![ResourceContents::text(text, uri).with_mime_type(kind)]))
}

fn plain(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

fn marked(mut object: Value, foreign: bool) -> Value {
    if foreign {
        object["foreign"] = true.into();
        object["note"] = FOREIGN.into();
    }
    object
}

pub(super) fn prompts() -> Vec<Prompt> {
    let argument = |name: &str, words: &str, required: bool| {
        PromptArgument::new(name).with_description(words).with_required(required)
    };
    vec![
        Prompt::new(
            "review",
            Some("Have the present change reviewed, and put right what counts"),
            Some(vec![argument("of", "Branch, commit or range; default: all uncommitted work", false)]),
        ),
        Prompt::new(
            "run",
            Some("Hand a task to a run, and follow it"),
            Some(vec![
                argument("task", "What to do", true),
                argument("budget", "Cost limit in dollars", true),
            ]),
        ),
    ]
}

pub(super) fn prompt(name: &str, arguments: Option<&JsonObject>) -> Result<GetPromptResult, ErrorData> {
    let given = |name: &str| {
        let text = arguments.and_then(|arguments| arguments.get(name)).and_then(Value::as_str);
        text.map(|text| short_line(text, 2_000)).filter(|text| !text.is_empty())
    };
    let missing = |name: &str| ErrorData::invalid_params(format!("the prompt needs '{name}'"), None);
    let text = match name {
        "review" => {
            let of = given("of").map_or_else(|| "all uncommitted work".to_owned(), |of| format!("`{of}`"));
            format!(
                "Have {of} reviewed with the archeflow tool `review`. While its status is \"working\", call `wait`. \
                 Then tell me each finding with its place, put right what you agree with, and say what you don't agree \
                 with and why. Don't accept or dismiss findings for me."
            )
        }
        "run" => {
            let (task, budget) = (
                given("task").ok_or_else(|| missing("task"))?,
                given("budget").ok_or_else(|| missing("budget"))?,
            );
            format!(
                "Start a run with the archeflow tool `run`, with a budget of {budget} dollars and this task: {task}\n\
                 Follow it with `wait` and tell me in a line what happens. When something has to be decided, call `decide`, \
                 which asks me; don't decide for me and don't type such commands yourself."
            )
        }
        other => {
            let words = format!("there is no prompt '{}'; known: review, run", short_line(other, 60));
            return Err(ErrorData::invalid_params(words, None));
        }
    };
    Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]))
}
