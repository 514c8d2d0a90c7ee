//! `archeflow review`: a change that is there already, looked at by reviewers; nothing is written, nothing lands.

mod post;

use std::io::Read;
use std::path::{Path, PathBuf};

use archeflow_core::model::{AcceptedFinding, RunStatus, Severity};
use archeflow_core::strategies::review::{self, Listed, Reviewed};
use archeflow_host::config::Flags;
use archeflow_host::drive::DriveEnd;
use archeflow_host::git::subject::{self, ReviewTarget};
use archeflow_host::log;
use archeflow_host::open::{Project, RunRequest};
use archeflow_host::review::{
    Baseline, DEFAULT_BASELINE, Error, ReviewRequest, as_reviewed, earlier, frames,
};
use archeflow_host::store::files;

use crate::args::{DocumentArgs, ReviewArgs, Session};
use crate::commands::run::{notice_choice, pairs};
use crate::commands::session::{attended, go, stopped};
use crate::commands::trust::only_from_outside;
use crate::commands::{list, naming, open_project};
use crate::failure::Failure;
use crate::output::{CommandOutput, to_file};
use crate::render::text::safe_line;
use crate::review::{Format, Look, Sheet, write};

pub(crate) use post::{connect, requests};

/// D-16: reviewers rejected.
const REJECTED: u8 = 14;
/// A longer patch is refused.
const PATCH_AT_MOST: u64 = 512 * 1024 * 1024;

pub(crate) fn run(args: &ReviewArgs) -> Result<CommandOutput, Failure> {
    let wish = Wish::read(args)?;
    let home = open_project(&args.place, None, false)?;
    if let Some(name) = &args.run {
        return show(&home, &naming::named(&home, name)?, args, &wish);
    }
    let requested = requested(args, &home)?;
    let session = Session::of(&args.place, args.unattended, args.tui);
    let opened = match home.review(&requested) {
        Err(Error::Subject(subject::Error::Nothing { what })) => return Ok(nothing(&what, &wish)),
        other => other?,
    };
    if let Some(choice) = &opened.default_agent {
        notice_choice(choice);
    }
    let mut driver = opened.driver;
    let driven = go(&mut driver, "review", &session, false, opened.before, opened.after)?;
    let run_id = driver.world.run_id.clone();
    let outcome = match &driven.ended {
        DriveEnd::Outcome(outcome) => outcome.clone(),
        DriveEnd::Signal(signal) => return Ok(CommandOutput::done().with_code(stopped(&run_id, *signal))),
    };
    let run = driver.run.clone();
    let home = open_project(&args.place, None, false)?;
    let reviewed = looked_at(&home, &run_id)?;
    let output = drawn(&home, &run_id, &reviewed, args, &wish)?.and_then(move || driven.clean(&driver));
    if outcome.status == RunStatus::Reviewed {
        return Ok(output.with_code(wish.verdict(&reviewed)));
    }
    tell!("{}", safe_line(&format!("the review did not come to its end: {}", outcome.detail)));
    for (command, what) in archeflow_core::projections::view::next_steps(&run_id, &run, &outcome) {
        tell!("  {} ({what})", safe_line(&command));
    }
    Ok(output.with_code(outcome.exit_code()))
}

/// How the result is wanted.
struct Wish {
    documents: Vec<Document>,
    fail_on: Option<Severity>,
}

/// A format, and the file it goes to; `None` for standard output.
struct Document {
    format: Format,
    output: Option<PathBuf>,
}

impl Document {
    fn read(args: &DocumentArgs, json: bool) -> Result<Document, Failure> {
        let format = match (&args.format, json) {
            (Some(name), false) => Format::parse(name).map_err(|why| Failure::usage(why, ""))?,
            (None, true) => Format::Json,
            (None, false) => Format::Terminal,
            (Some(_), true) => {
                return Err(Failure::usage("--json and --format say two things", "Write --format json"));
            }
        };
        Ok(Document { format, output: args.output.clone() })
    }
}

impl Wish {
    fn read(args: &ReviewArgs) -> Result<Wish, Failure> {
        let documents = args.documents.0.iter().map(|document| Document::read(document, args.place.json));
        let documents = documents.collect::<Result<_, _>>()?;
        let fail_on = match args.fail_on.as_deref() {
            None => None,
            Some("critical") => Some(Severity::Critical),
            Some("warning") => Some(Severity::Warning),
            Some(other) => {
                let message = format!("--fail-on '{other}' is no severity to fail on");
                return Err(Failure::usage(message, "Known: critical, warning"));
            }
        };
        if args.base.is_some() && args.branch.is_none() && args.patch.is_none() {
            let hint = "Write --branch <branch> --base <commit>, or --patch <file> --base <commit>";
            return Err(Failure::usage("--base says nothing without a branch or a patch", hint));
        }
        if args.post && args.pr.is_none() && args.run.is_none() {
            let hint = "Write --pr <number> --post, or --run <review> --post for an earlier review";
            return Err(Failure::usage("--post says nothing without a pull request", hint));
        }
        Ok(Wish { documents, fail_on })
    }

    /// What was not looked at as a whole has not passed, nor what a reviewer rejects without an answer.
    fn verdict(&self, reviewed: &Reviewed) -> u8 {
        match self.fail_on {
            Some(floor) if !reviewed.passes(floor) => REJECTED,
            Some(_) | None => 0,
        }
    }
}

fn requested(args: &ReviewArgs, home: &Project) -> Result<ReviewRequest, Failure> {
    let reviewers = args.reviewers.as_deref().unwrap_or_default();
    let reviewers: Vec<String> =
        reviewers.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
    let flags = Flags {
        workflow: args.workflow.clone(),
        domain: args.domain.clone(),
        team: args.team.clone(),
        lens: args.lens.clone(),
        agent: args.agent.clone(),
        agent_for: pairs(&args.agent_for)?,
        budget: args.budget.clone(),
        ..Flags::default()
    };
    let session = Session::of(&args.place, args.unattended, args.tui);
    let wanted = RunRequest {
        task: String::new(),
        flags,
        config_file: args.place.config.clone(),
        dry_run: false,
        attended: attended(&session),
        id: args.named.clone(),
    };
    let baseline = args.baseline.as_ref().map(|path| home.env.cwd.join(path));
    Ok(ReviewRequest { ask: ask(args, home)?, wanted, reviewers, verify: args.verify, baseline })
}

fn ask(args: &ReviewArgs, home: &Project) -> Result<ReviewTarget, Failure> {
    if args.staged {
        return Ok(ReviewTarget::Staged);
    }
    if let Some(branch) = &args.branch {
        return Ok(ReviewTarget::Branch { branch: branch.clone(), base: args.base.clone() });
    }
    if let Some(range) = &args.commit {
        return Ok(ReviewTarget::Commits { range: range.clone() });
    }
    if let Some(number) = args.pr {
        let read = post::request(args, home, number)?;
        return Ok(ReviewTarget::PullRequest { number, read });
    }
    let Some(path) = &args.patch else { return Ok(ReviewTarget::WorkingTree) };
    let name = path.display().to_string();
    let bytes = if path == Path::new("-") {
        let unread = |error| Failure::usage(format!("standard input can't be read: {error}"), "");
        whole(std::io::stdin().lock()).map_err(unread)?
    } else if path.starts_with("/dev/fd") {
        // What a shell opened for `--patch <(command)`.
        let read = std::fs::File::open(path).and_then(whole);
        read.map_err(|error| Failure::usage(format!("{name} can't be read: {error}"), ""))?
    } else {
        // Nothing else than a file is opened: a pipe may never say a word.
        files::read_capped(&home.env.cwd.join(path), PATCH_AT_MOST).map_err(|error| {
            Failure::usage(error.to_string(), "Give a patch from another command with: --patch -")
        })?
    };
    Ok(ReviewTarget::Patch { bytes, name, base: args.base.clone() })
}

/// A patch may come from another command.
fn whole(from: impl Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(PATCH_AT_MOST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > PATCH_AT_MOST {
        return Err(std::io::Error::other(format!("it has more than {PATCH_AT_MOST} bytes")));
    }
    Ok(bytes)
}

fn nothing(what: &str, wish: &Wish) -> CommandOutput {
    tell!("nothing to review: {}", safe_line(what));
    match wish.documents.iter().any(|document| document.format == Format::Json && document.output.is_none()) {
        true => CommandOutput::json(serde_json::Value::Null),
        false => CommandOutput::done(),
    }
}

/// An earlier result once more, in whatever format.
fn show(home: &Project, id: &str, args: &ReviewArgs, wish: &Wish) -> Result<CommandOutput, Failure> {
    let reviewed = looked_at(home, id)?;
    Ok(drawn(home, id, &reviewed, args, wish)?.with_code(wish.verdict(&reviewed)))
}

fn looked_at(home: &Project, id: &str) -> Result<Reviewed, Failure> {
    let entries = log::entries(&list::text(home, id)?)?;
    let run = archeflow_core::run::Run::replay(&entries);
    let (Some(mut reviewed), Some(opened)) = (review::of(&entries), run.review.as_deref()) else {
        return Err(Failure::usage(
            format!("{id} is no review"),
            format!("See it with: archeflow show {id}"),
        ));
    };
    if let Some(earlier) = earlier(&home.places, id, opened) {
        review::compare(&mut reviewed, &earlier);
    }
    Ok(reviewed)
}

/// The result in every format that was asked for: files are written, and what is for standard output is returned.
fn drawn(
    home: &Project,
    id: &str,
    reviewed: &Reviewed,
    args: &ReviewArgs,
    wish: &Wish,
) -> Result<CommandOutput, Failure> {
    let repo = as_reviewed(&home.repo, &home.state, id);
    let frames = frames(&repo, reviewed);
    let plan = home.places.artifacts().join(id).join("plan.md");
    let plan = plan.strip_prefix(home.places.root()).unwrap_or(&plan).display().to_string();
    let root = home.places.root().display().to_string();
    let sheet = Sheet {
        run_id: id,
        version: env!("CARGO_PKG_VERSION"),
        reviewed,
        frames: &frames,
        since_last: args.since_last,
        plan: &plan,
        repository_root: Some(&root),
    };
    let failed = |error: std::io::Error| {
        Failure::new(30, "environment", format!("the result was not written: {error}"), "")
    };
    let again = format!("archeflow review --run {id}");
    let mut output = CommandOutput::done();
    for document in &wish.documents {
        let look = if document.output.is_some() { Look::PLAIN } else { Look::for_stdout() };
        let mut text = Vec::new();
        write(document.format, &sheet, &mut text, look).map_err(failed)?;
        match &document.output {
            Some(path) => {
                let path = home.env.cwd.join(path);
                to_file(&path, &text, &again)?;
                tell!("Review: {}", safe_line(&path.display().to_string()));
            }
            None => {
                let text = String::from_utf8_lossy(&text).into_owned();
                output = CommandOutput::text(text).recorded(again.clone());
            }
        }
    }
    accept(home, id, reviewed, args)?;
    let is_whole = reviewed.outcome.as_ref().is_some_and(|outcome| outcome.status == RunStatus::Reviewed);
    if args.post && is_whole {
        let all = Sheet { since_last: false, ..sheet };
        return Ok(post::run(home, args, &all, wish.fail_on)?.unwrap_or(output));
    }
    if args.post {
        tell!("warning: nothing was posted, because the review did not come to its end");
    }
    Ok(output)
}

/// Adds findings to a baseline: those that are named, or all that count.
fn accept(home: &Project, id: &str, reviewed: &Reviewed, args: &ReviewArgs) -> Result<(), Failure> {
    let (Some(reason), false) = (&args.reason, args.accept.is_empty() && args.write_baseline.is_none())
    else {
        return Ok(());
    };
    let mut counted: Vec<&Listed> = reviewed.findings.iter().filter(|found| found.counts()).collect();
    if !args.accept.is_empty() {
        only_from_outside("accept findings")?;
        let is_open = |wanted: &str| counted.iter().any(|found| found.fingerprint == wanted);
        if let Some(unknown) = args.accept.iter().find(|wanted| !is_open(wanted)) {
            let message = format!("{id} has no finding '{}' that counts", safe_line(unknown));
            return Err(Failure::usage(message, format!("See their ids with: archeflow review --run {id}")));
        }
        counted.retain(|found| args.accept.contains(&found.fingerprint));
    }
    if reason.trim().is_empty() {
        return Err(Failure::usage("a finding is accepted for a reason", "Write it behind --reason"));
    }
    let path = match &args.write_baseline {
        Some(path) => home.env.cwd.join(path),
        None => home.places.root().join(DEFAULT_BASELINE),
    };
    let accepted = counted
        .into_iter()
        .map(|found| AcceptedFinding { fingerprint: found.fingerprint.clone(), reason: reason.clone() })
        .collect();
    let more = Baseline::add(&path, accepted).map_err(Error::from)?;
    tell!("accepted {more} more in {}", safe_line(&path.display().to_string()));
    Ok(())
}
