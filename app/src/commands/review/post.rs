//! `archeflow review --post`: the result of a review on its pull request.

use archeflow_core::model::{Severity, SubjectKind};
use archeflow_core::strategies::review::{
    LeftAlone, Listed, OnlyInSummary, Reviewed, ThreadAction, ThreadPlan, ThreadWord, thread_plan,
};
use archeflow_core::text::{log_line, safe, unquote_path};
use archeflow_host::forge::{
    CheckDraft, CheckNote, CommentDraft, Connection, ForgeAddress, ForgeError, OwnThreads, PostRecord,
    Posting, ReplyDraft, RequestState, SentRequest, comment_marker, post, reply_marker, summary_marker,
};
use archeflow_host::git::ObjectId;
use archeflow_host::git::diff_lines::{ShownFile, shown_lines};
use archeflow_host::git::subject::PullRequestFacts;
use archeflow_host::open::{Project, users_settings};
use archeflow_host::review::as_reviewed;
use serde_json::{Value, json};
use std::collections::BTreeMap;

use crate::args::{CommonArgs, ReviewArgs};
use crate::commands::trust::only_from_outside;
use crate::failure::Failure;
use crate::output::CommandOutput;
use crate::render::text::safe_line;
use crate::review::{self, Format, Look, PostedThreads, Sheet, count, write};

/// The request has moved since it was reviewed.
const REFUSED: u8 = 21;
/// Findings that a check can show at lines; more are in its summary only.
const NOTES_AT_MOST: usize = 500;

/// The forge that this repository is on, with a token.
pub(crate) fn connect(home: &Project, place: &CommonArgs, is_dry: bool) -> Result<Connection, Failure> {
    let address = address(home, place)?;
    Ok(Connection::open(&home.repo, address, &home.env.variables, is_dry)?)
}

fn address(home: &Project, place: &CommonArgs) -> Result<ForgeAddress, Failure> {
    let settings = users_settings(&home.env, home.places.root(), place.config.as_deref())?;
    Ok(ForgeAddress::of(&home.repo, &settings.forge())?)
}

/// What `--pr` is about. Without `--post`, a request on GitHub is read with its own client.
pub(super) fn request(
    args: &ReviewArgs,
    home: &Project,
    number: u32,
) -> Result<Option<Box<PullRequestFacts>>, Failure> {
    if args.post {
        only_from_outside("post on a forge")?;
    } else if address(home, &args.place).is_ok_and(|address| !address.is_read_by_client()) {
        // It is read below.
    } else {
        return Ok(None);
    }
    let mut connection = connect(home, &args.place, true)?;
    let view = connection.view(number)?;
    if args.post && !view.is_open {
        return Err(closed(number));
    }
    Ok(Some(Box::new(view.facts(connection.address.kind))))
}

fn closed(number: u32) -> Failure {
    Failure::usage(
        format!("pull request {number} is closed, so nothing is posted"),
        format!("Review it without posting: archeflow review --pr {number}"),
    )
}

/// Posts a review, or prints the requests that would be sent.
pub(super) fn run(
    home: &Project,
    args: &ReviewArgs,
    sheet: &Sheet<'_>,
    floor: Option<Severity>,
) -> Result<Option<CommandOutput>, Failure> {
    only_from_outside("post on a forge")?;
    let again = format!("The review is kept. To post it: archeflow review --run {} --post", sheet.run_id);
    send(home, args, sheet, floor).map_err(|failure| match failure.hint.as_str() {
        "" => Failure { hint: again, ..failure },
        _ => failure,
    })
}

fn send(
    home: &Project,
    args: &ReviewArgs,
    sheet: &Sheet<'_>,
    floor: Option<Severity>,
) -> Result<Option<CommandOutput>, Failure> {
    let reviewed = sheet.reviewed;
    let number = match reviewed.subject.kind {
        SubjectKind::PullRequest => reviewed.subject.name.parse::<u32>().ok(),
        SubjectKind::WorkingTree
        | SubjectKind::Staged
        | SubjectKind::Branch
        | SubjectKind::Commits
        | SubjectKind::Patch => None,
    };
    let Some(number) = number else {
        let message = format!("{} is no review of a pull request", sheet.run_id);
        return Err(Failure::usage(message, "Review one: archeflow review --pr <number> --post"));
    };
    let mut connection = connect(home, &args.place, args.dry_run)?;
    let mut record = PostRecord::open(&home.state, &connection.address, number)?;
    let state = connection.state(number)?;
    if !state.view.is_open {
        return Err(closed(number));
    }
    if state.view.head != reviewed.commit {
        let (now, then) = (review::short(&state.view.head), review::short(&reviewed.commit));
        let message = format!("pull request {number} is at {now} now, and the review is of {then}");
        let hint = format!("Nothing was posted. Review it again: archeflow review --pr {number} --post");
        return Err(Failure::new(REFUSED, "moved", message, hint));
    }
    let repo = as_reviewed(&home.repo, &home.state, sheet.run_id);
    let gone = |error: &dyn std::fmt::Display| Failure::new(30, "git_fault", error.to_string(), "");
    let base = ObjectId::parse(reviewed.base.as_bytes()).map_err(|error| gone(&error))?;
    let head = ObjectId::parse(reviewed.commit.as_bytes()).map_err(|error| gone(&error))?;
    let shown = shown_lines(&repo, &base, &head).map_err(|error| gone(&error))?;
    let mut own = OwnThreads::read(&state, &repo, &shown, &record);
    record.saw(own.facts.threads.iter().map(|thread| thread.fingerprint.clone()));
    let mut was_refused = false;
    let (plan, result) = loop {
        let plan = thread_plan(reviewed, &own.facts);
        let posting = posting(sheet, &plan, &own, &shown, floor)?;
        match post(&mut connection, &mut record, &state, &posting) {
            Ok(result) => break (plan, result),
            // A forge does not show every line that git shows, and refuses the whole review for one of them.
            Err(ForgeError::Lines { fingerprints, why }) if !was_refused => {
                let findings = count(fingerprints.len(), "finding");
                tell!("warning: no thread for {findings}, only the summary: {}", safe_line(&why));
                own.facts.refused.extend(fingerprints);
                was_refused = true;
            }
            Err(error) => return Err(error.into()),
        }
    };
    for note in &result.notes {
        tell!("warning: {}", safe_line(note));
    }
    if args.dry_run {
        return Ok(Some(requests(None, connection.collected(), args.place.json)));
    }
    let counts = posted_threads(reviewed, &plan, &own).counts();
    tell!("Posted on {}: {counts}", safe_line(&address_of(&state)));
    Ok(None)
}

fn address_of(state: &RequestState) -> String {
    if state.view.url.is_empty() {
        format!("pull request {}", state.view.number)
    } else {
        state.view.url.clone()
    }
}

/// What was not sent, for people or as JSON: a push, and requests.
pub(crate) fn requests(push: Option<&str>, all: &[SentRequest], json: bool) -> CommandOutput {
    if json {
        let object = |one: &SentRequest| json!({ "method": one.method, "url": one.url, "body": one.body });
        let requests: Vec<Value> = all.iter().map(object).collect();
        let mut object = json!({ "requests": requests });
        if let Some(push) = push {
            object["push_command"] = push.into();
        }
        return CommandOutput::json(object);
    }
    let mut out = String::new();
    if let Some(push) = push {
        put!(out, "{}\n", safe_line(push));
    }
    for one in all {
        put!(out, "{} {}", one.method, safe_line(&one.url));
        if let Some(body) = &one.body {
            outline(&mut out, body, "  ");
        }
        put!(out, "");
    }
    put!(out, "Nothing was sent.");
    CommandOutput::text(out)
}

/// A longer value on one line is of no use to a person.
const VALUE_AT_MOST: usize = 300;

/// The content of a request to read: one value in a line, and texts of several lines as they are.
fn outline(out: &mut String, value: &Value, pad: &str) {
    let entries: Vec<(String, &Value)> = match value {
        Value::Object(all) => {
            all.iter().map(|(name, value)| (format!("{}:", safe_line(name)), value)).collect()
        }
        Value::Array(all) => all.iter().map(|value| ("-".to_owned(), value)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    };
    for (name, value) in entries {
        let deeper = format!("{pad}  ");
        match value {
            Value::String(text) if text.contains('\n') => {
                put!(out, "{pad}{name}");
                for line in text.lines() {
                    put!(out, "{}", format!("{deeper}{}", safe(line)).trim_end());
                }
            }
            Value::String(text) => put!(out, "{pad}{name} {}", log_line(text, VALUE_AT_MOST)),
            Value::Object(_) | Value::Array(_) => {
                put!(out, "{pad}{name}");
                outline(out, value, &deeper);
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => put!(out, "{pad}{name} {value}"),
        }
    }
}

/// What the summary says about threads.
fn posted_threads<'a>(reviewed: &Reviewed, plan: &ThreadPlan, own: &'a OwnThreads) -> PostedThreads<'a> {
    let mut posted = PostedThreads {
        begun: 0,
        resolved: 0,
        reopened: 0,
        persistent: 0,
        without_thread: plan.only_in_summary.iter().map(|(finding, _)| *finding).collect(),
        proposed: Vec::new(),
        left_open: Vec::new(),
    };
    for action in &plan.actions {
        match action {
            ThreadAction::Post { .. } => posted.begun += 1,
            ThreadAction::Resolve { .. } => posted.resolved += 1,
            ThreadAction::Reopen { .. } => posted.reopened += 1,
            ThreadAction::Propose { finding } if reviewed.findings.get(*finding).is_some() => {
                posted.proposed.push(*finding);
            }
            ThreadAction::Propose { .. } => {}
            ThreadAction::Leave { why: LeftAlone::Persistent, .. } => posted.persistent += 1,
            ThreadAction::Leave { thread, why } => {
                let file = own.facts.threads.get(*thread).map(|thread| thread.file.as_str());
                posted.left_open.extend(file.zip(why.reason()));
            }
        }
    }
    posted
}

fn posting(
    sheet: &Sheet<'_>,
    plan: &ThreadPlan,
    own: &OwnThreads,
    shown: &BTreeMap<String, ShownFile>,
    floor: Option<Severity>,
) -> Result<Posting, Failure> {
    let reviewed = sheet.reviewed;
    let finding = |at: usize| reviewed.findings.get(at);
    let (mut comments, mut replies) = (Vec::new(), Vec::new());
    for action in &plan.actions {
        match *action {
            ThreadAction::Post { finding: at } => {
                comments.extend(finding(at).map(|found| comment(found, shown)));
            }
            ThreadAction::Resolve { thread, reply, close } => {
                let text = format!("No longer raised at `{}`.", review::short(&reviewed.commit));
                let draft = reply_to(own, thread, ThreadWord::Resolved, reply.then_some(text));
                replies.extend(draft.map(|draft| ReplyDraft { close: close.then_some(true), ..draft }));
            }
            ThreadAction::Reopen { thread, finding: at, reply, open } => {
                let text = finding(at)
                    .filter(|_| reply)
                    .map(|found| format!("It is back.\n\n{}", review::comment(found)));
                let draft = reply_to(own, thread, ThreadWord::Back, text);
                replies.extend(draft.map(|draft| ReplyDraft { close: open.then_some(false), ..draft }));
            }
            ThreadAction::Propose { .. } | ThreadAction::Leave { .. } => {}
        }
    }
    let is_wanted = plan.has_news && !own.summaries.contains(sheet.run_id);
    let summary = is_wanted.then(|| {
        let names = |is: fn(OnlyInSummary) -> bool| {
            let those = plan.only_in_summary.iter().filter(|(_, why)| is(*why));
            let those = those.filter_map(|(at, _)| finding(*at));
            those.map(|found| found.identity().to_owned()).collect::<Vec<String>>()
        };
        let (listed, refused) = (names(|_| true), names(|why| why == OnlyInSummary::Refused));
        let text = review::overview(sheet, &posted_threads(reviewed, plan, own));
        format!("{text}\n{}", summary_marker(sheet.run_id, &listed, &refused))
    });
    let mut sarif = Vec::new();
    let failed = |error: std::io::Error| Failure::new(30, "environment", error.to_string(), "");
    write(Format::Sarif, sheet, &mut sarif, Look::PLAIN).map_err(failed)?;
    let run_id = sheet.run_id.to_owned();
    Ok(Posting { run_id, summary, comments, replies, check: check(sheet, floor), sarif })
}

fn reply_to(own: &OwnThreads, thread: usize, word: ThreadWord, text: Option<String>) -> Option<ReplyDraft> {
    let facts = own.facts.threads.get(thread)?;
    let body = text.map(|text| format!("{text}\n\n{}", reply_marker(word, &facts.fingerprint)));
    Some(ReplyDraft { thread: *own.threads.get(thread)?, word, body, close: None })
}

/// A path of the log as a forge writes it.
fn plain_path(path: &str) -> String {
    let bytes = Some(path).filter(|path| path.starts_with('"')).and_then(unquote_path);
    bytes.map_or_else(|| path.to_owned(), |bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn comment(found: &Listed, shown: &BTreeMap<String, ShownFile>) -> CommentDraft {
    let file = shown.get(&found.file);
    let marker = comment_marker(found.identity(), &found.sources);
    CommentDraft {
        fingerprint: found.identity().to_owned(),
        path: plain_path(&found.file),
        old_path: plain_path(file.map_or(&found.file, |file| &file.old_path)),
        line: found.line,
        old_line: file.and_then(|file| file.lines.get(&found.line).copied().flatten()),
        body: format!("{}\n{marker}", review::comment(found)),
    }
}

fn check(sheet: &Sheet<'_>, floor: Option<Severity>) -> CheckDraft {
    let reviewed = sheet.reviewed;
    let counted = reviewed.findings.iter().filter(|found| found.counts());
    let notes = counted.filter(|found| !found.file.is_empty() && found.line > 0).take(NOTES_AT_MOST);
    let note = |found: &Listed| CheckNote {
        path: plain_path(&found.file),
        line: found.line,
        level: match found.severity {
            Severity::Critical => "failure",
            Severity::Warning => "warning",
            Severity::Info => "notice",
        },
        title: log_line(&format!("archeflow {}", found.rule), 100),
        message: review::message(found),
    };
    let counts = review::counts(reviewed);
    let whole = if reviewed.is_whole() { "" } else { "; not all of it was looked at" };
    CheckDraft {
        run_id: sheet.run_id.to_owned(),
        passed: reviewed.passes(floor.unwrap_or(Severity::Critical)),
        title: format!("{counts}{whole}"),
        summary: format!("{counts}{whole}. Threads and summary are on the pull request."),
        notes: notes.map(note).collect(),
    }
}
