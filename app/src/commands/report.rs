//! `archeflow report`: what a run did, as a document made from its log; the diff comes from git.

use archeflow_core::projections::story::Story;
use archeflow_core::projections::story::dag::Dag;
use archeflow_core::rules::run_names::RunUse;
use archeflow_host::git::{ObjectId, change};
use archeflow_host::open::Project;
use archeflow_host::{clock, log};

use crate::args::ReportArgs;
use crate::commands::{list, naming, open_project};
use crate::failure::Failure;
use crate::output::{CommandOutput, to_file};
use crate::render::text::{safe_json, safe_line};
use crate::report::diff::{self, Diff};
use crate::report::{Report, html, json, markdown, summary};

pub(crate) fn run(args: &ReportArgs) -> Result<CommandOutput, Failure> {
    let project = open_project(&args.place, None, false)?;
    let id = naming::run_id(&project, args.id.as_deref(), RunUse::Show)?;
    let entries = log::entries(&list::text(&project, &id)?)?;
    let story = Story::of(&id, &entries);
    let text = if args.summary && !args.place.json {
        format!("{}\n", summary(&story))
    } else {
        let diff = changed(&project, &story);
        let dag = args.dag.then(|| Dag::of(&entries));
        let report = Report { story: &story, diff: &diff, dag: dag.as_ref(), written: clock::written };
        match (args.place.json, args.html) {
            (true, _) => format!("{}\n", safe_json(&json::draw(&story, &diff))),
            (false, true) => html::draw(&report),
            (false, false) => markdown::draw(&report),
        }
    };
    match &args.output {
        Some(path) => {
            let path = project.env.cwd.join(path);
            to_file(&path, text.as_bytes(), &format!("archeflow report {id}"))?;
            tell!("Report: {}", safe_line(&path.display().to_string()));
            Ok(CommandOutput::done())
        }
        None => Ok(CommandOutput::text(text)),
    }
}

/// What landed, or else what is on the branch.
fn changed(project: &Project, story: &Story) -> Diff {
    let Some((base, commit)) = story.span() else { return Diff::missing("Nothing was made.") };
    let (Ok(from), Ok(to)) = (ObjectId::parse(base.as_bytes()), ObjectId::parse(commit.as_bytes())) else {
        return Diff::missing("The log names no commits for it.");
    };
    match change::diff_text(&project.repo, &from, &to, diff::BYTES) {
        Ok(read) => {
            let command = format!("git diff {from}...{to}");
            Diff::read(&read.text(), read.truncated_at, command)
        }
        Err(error) => Diff::missing(format!("The commits are not in the repository any more: {error}")),
    }
}
