//! `archeflow pr`: a pull request for the branch of a run, with its report as text.

use archeflow_core::event::{Entry, RunStart};
use archeflow_core::projections::story::Story;
use archeflow_core::rules::run_names::RunUse;
use archeflow_core::text::{shell_word, short_line, unlinked};
use archeflow_host::forge::{Opening, RequestDraft, RequestView, branch_on_forge, open_request, push_branch};
use archeflow_host::git::remote::RemoteBranch;
use archeflow_host::{clock, log};
use serde_json::json;

use crate::args::PrArgs;
use crate::commands::review::{connect, requests};
use crate::commands::trust::only_from_outside;
use crate::commands::{list, naming, open_project};
use crate::failure::Failure;
use crate::output::CommandOutput;
use crate::render::text::safe_line;
use crate::report::diff::Diff;
use crate::report::{Report, markdown};

/// A step is left to a person.
const WAITS: u8 = 10;
/// A code host takes 65,536 characters.
const BODY_AT_MOST: usize = 60_000;
const TITLE_AT_MOST: usize = 200;
const BRANCHES: &str = "refs/heads/";

pub(crate) fn run(args: &PrArgs) -> Result<CommandOutput, Failure> {
    only_from_outside("open a pull request")?;
    let project = open_project(&args.place, None, false)?;
    let id = naming::run_id(&project, args.id.as_deref(), RunUse::Merge)?;
    let entries = log::entries(&list::text(&project, &id)?)?;
    let story = Story::of(&id, &entries);
    let branch = story.overview.branch.strip_prefix(BRANCHES).unwrap_or(&story.overview.branch).to_owned();
    let commit = match branch.as_str() {
        "" => None,
        name => {
            project.repo.resolve(&format!("{BRANCHES}{name}")).map_err(archeflow_host::review::Error::from)?
        }
    };
    let Some(commit) = commit else {
        let message = format!(
            "{id} has no branch that could be proposed: it has landed, was discarded, or made nothing"
        );
        return Err(Failure::usage(message, format!("See it with: archeflow show {id}")));
    };
    let report = Report { story: &story, diff: &Diff::missing(""), dag: None, written: clock::written };
    let task = story.overview.task.lines().next().unwrap_or_default();
    let draft = RequestDraft {
        base: args.base.clone().unwrap_or_else(|| target(&entries, &story)),
        title: args.title.clone().unwrap_or_else(|| short_line(task, TITLE_AT_MOST)),
        body: body(&unlinked(&markdown::for_others(&report))),
        is_draft: args.draft,
        branch: branch.clone(),
    };
    let mut connection = connect(&project, &args.place, args.dry_run)?;
    let push = format!("git push origin {commit}:{BRANCHES}{}", shell_word(&branch));
    let mut there = branch_on_forge(&mut connection, &branch)?;
    let is_there = |there: &Option<String>| there.as_deref() == Some(commit.as_str());
    let pushes = args.push && !is_there(&there);
    if pushes && !args.dry_run {
        push_branch(&project.repo, &commit, &branch)?;
        tell!("Pushed {} to origin.", safe_line(&branch));
        there = branch_on_forge(&mut connection, &branch)?;
    }
    let only_said = pushes && args.dry_run;
    if !only_said && !is_there(&there) {
        let state = match there {
            Some(other) => format!("is at {} on the forge, not at {commit}", safe_line(&other)),
            None => "is not on the forge".to_owned(),
        };
        let (end, hint) = if pushes {
            let hint = format!("Is `origin` pushed to another address? Else try again: archeflow pr {id}");
            (", although it was pushed", hint)
        } else {
            let hint = format!(
                "Push it, then run this again: {push}\n  Or let it be pushed: archeflow pr {id} --push"
            );
            (", and nothing was pushed", hint)
        };
        return Err(Failure::new(WAITS, "not_pushed", format!("{branch} {state}{end}"), hint));
    }
    let done = |view: &RequestView, is_new: bool| {
        if args.place.json {
            let object = json!({
                "run_id": id, "branch": branch, "number": view.number, "url": view.url, "opened": is_new, "pushed": pushes,
            });
            return CommandOutput::json(object);
        }
        let word = if is_new { "Opened" } else { "There is a request already, which is left as it is" };
        CommandOutput::text(format!("{word}: {}\n", safe_line(&view.url)))
    };
    Ok(match open_request(&mut connection, &draft)? {
        Opening::Dry => requests(pushes.then_some(push.as_str()), connection.collected(), args.place.json),
        Opening::Opened(view) => done(&view, true),
        Opening::Exists(view) => done(&view, false),
    })
}

/// Not more than a code host takes, and cut at the end of a line that is outside of a block of code.
fn body(report: &str) -> String {
    if report.len() <= BODY_AT_MOST {
        return report.to_owned();
    }
    let (mut length, mut outside, mut fence) = (0, 0, false);
    for line in report.split_inclusive('\n') {
        length += line.len();
        if length > BODY_AT_MOST {
            break;
        }
        fence ^= line.trim_start().starts_with("```");
        if !fence {
            outside = length;
        }
    }
    format!("{}\n… and more, which does not fit here.\n", &report[..outside])
}

/// The branch that the run was for, as the forge names it.
fn target(entries: &[Entry], story: &Story) -> String {
    let start = entries.iter().find_map(|entry| entry.event.body::<RunStart>());
    let remote = start.and_then(|start| RemoteBranch::parse(&start.base.target));
    remote.map_or_else(|| story.overview.target.clone(), |remote| remote.branch)
}
