//! `archeflow trust`: approve exactly the content this repository's configuration has now (D-08), or one run whose
//! journal came from elsewhere (S-01).

use std::io::{BufRead, IsTerminal, Write};

use archeflow_host::clock;
use archeflow_host::config::trust::{Guarded, Trust};
use archeflow_host::open::{self, Project};
use archeflow_host::proc;
use archeflow_host::store::memory::MemoryStore;

mod fleet;

use crate::args::TrustArgs;
use crate::commands::{naming, open_project};
use crate::failure::Failure;
use crate::output::CommandOutput;
use crate::render::text::safe;

pub(crate) fn run(args: &TrustArgs) -> Result<CommandOutput, Failure> {
    if !args.show {
        only_from_outside("approve or revoke anything")?;
    }
    let project = open_project(&args.place, None, args.run.is_none())?;
    if let Some(name) = &args.run {
        return adopt(args, &project, &naming::named(&project, name)?);
    }
    if let Some(join) = &args.fleet {
        return fleet::run(args, &project, join);
    }
    let mut trust = Trust::open(&project.state).map_err(open::Error::from)?;
    if args.revoke {
        let had = trust.revoke(&project.offer.place()).map_err(open::Error::from)?;
        if args.place.json {
            return Ok(CommandOutput::json(serde_json::json!({ "approved": false, "revoked": had })));
        }
        let said = if had { "The approval is taken back.\n" } else { "Nothing was approved here.\n" };
        return Ok(CommandOutput::text(said.to_owned()));
    }
    let place = project.offer.place();
    let memory = MemoryStore::of(&project.places, &project.state);
    let mut guarded = project.offer.guarded()?;
    let lessons = lessons(&memory)?;
    let approved = (project.approved || guarded.is_empty()) && lessons.is_empty();
    guarded.extend(lessons);
    let approve = |trust: &mut Trust| -> Result<(), Failure> {
        memory.approve()?;
        Ok(trust.approve(&project.offer, &clock::written(clock::now())).map_err(open::Error::from)?)
    };
    if args.place.json {
        let rows: Vec<_> = guarded.iter().map(described).collect();
        if args.yes && !args.show {
            approve(&mut trust)?;
        }
        let approved = (args.yes && !args.show) || approved;
        let code = if approved || args.show { 0 } else { NOT_APPROVED };
        let answer = serde_json::json!({ "approved": approved, "guarded": rows });
        return Ok(CommandOutput::json(answer).with_code(code));
    }
    if guarded.is_empty() {
        let none = "This repository's configuration (as committed) names nothing that needs approval.\n";
        return Ok(CommandOutput::text(none.to_owned()));
    }
    let mut out = listed(&project, &guarded);
    for change in project.offer.changes(trust.last(&place))? {
        let (before, after) =
            (change.before.as_deref().unwrap_or("nothing"), change.after.as_deref().unwrap_or("nothing"));
        if trust.last(&place).is_some() {
            put!(
                out,
                "  changed since you approved it: {} from {} to {}",
                safe(&change.key),
                safe(before),
                safe(after)
            );
        }
    }
    if approved {
        put!(out, "You approved exactly this already.");
        return Ok(CommandOutput::text(out));
    }
    if args.show {
        return Ok(CommandOutput::text(out));
    }
    if !agreed(args.yes, &mut out, APPROVE) {
        return Ok(refused(out));
    }
    approve(&mut trust)?;
    put!(out, "Approved. Any change to these files asks again.");
    Ok(CommandOutput::text(out))
}

/// Approves what the repository's configuration has now, for somebody who was just shown it.
pub(crate) fn approve_now(project: &Project) -> Result<(), Failure> {
    let mut trust = Trust::open(&project.state).map_err(open::Error::from)?;
    Ok(trust.approve(&project.offer, &clock::written(clock::now())).map_err(open::Error::from)?)
}

/// Shows what is not approved yet and asks for it, at a terminal. Whether it is approved now.
pub(crate) fn offer(project: &Project) -> Result<bool, Failure> {
    let guarded = project.offer.guarded()?;
    if project.approved || guarded.is_empty() {
        return Ok(false);
    }
    only_from_outside("approve anything")?;
    tell!("This repository's configuration is not approved yet. It names:");
    guarded.iter().for_each(|row| tell!("  {}", safe(&described(row))));
    if !confirmed(APPROVE) {
        return Ok(false);
    }
    approve_now(project)?;
    Ok(true)
}

/// Nothing was approved; the same code as a run that finds something unapproved.
const NOT_APPROVED: u8 = 20;

/// Only a person approves. What a run started is not one, whatever it types.
pub(crate) fn only_from_outside(what: &str) -> Result<(), Failure> {
    if !proc::inside_an_attempt() {
        return Ok(());
    }
    Err(Failure::new(
        21,
        "from_inside",
        format!("processes that a run started can't {what}"),
        "Type it yourself, in a terminal that no agent, test or hook opened.",
    ))
}

/// A yes on the command line, or typed at a terminal after what is asked about was shown. Anything else is a no.
pub(crate) fn agreed(yes: bool, shown: &mut String, question: &str) -> bool {
    if yes {
        return true;
    }
    if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
        return false;
    }
    // The person has to see what is asked about before the question.
    tell_part!("{}", std::mem::take(shown));
    confirmed(question)
}

fn refused(mut out: String) -> CommandOutput {
    put!(out, "Not approved. Without a terminal only --yes approves.");
    CommandOutput::text(out).with_code(NOT_APPROVED)
}

/// A run whose journal this machine did not write: shown with everything it would execute, and taken over on a yes.
fn adopt(args: &TrustArgs, project: &Project, id: &str) -> Result<CommandOutput, Failure> {
    let adoption = project.adoption(id)?;
    let approve = args.yes && !args.show;
    if args.place.json {
        if approve {
            project.adopt(id, &adoption)?;
        }
        let own = adoption.own || approve;
        let code = if own || args.show { 0 } else { NOT_APPROVED };
        let answer = serde_json::json!({ "approved": own, "run_id": id, "guarded": adoption.commands });
        return Ok(CommandOutput::json(answer).with_code(code));
    }
    let mut out = String::new();
    put!(out, "The run {} would execute:", safe(id));
    for command in &adoption.commands {
        put!(out, "  {}", safe(command));
    }
    if adoption.own {
        put!(out, "It is yours already.");
        return Ok(CommandOutput::text(out));
    }
    if args.show {
        return Ok(CommandOutput::text(out));
    }
    if !agreed(args.yes, &mut out, APPROVE) {
        return Ok(refused(out));
    }
    project.adopt(id, &adoption)?;
    put!(out, "Adopted, as it is now: archeflow resume {}", safe(id));
    Ok(CommandOutput::text(out))
}

/// Lessons that came with the repository or were edited by hand: they would reach prompts.
fn lessons(memory: &MemoryStore) -> Result<Vec<Guarded>, Failure> {
    if memory.is_own() {
        return Ok(Vec::new());
    }
    let shelf = memory.read()?;
    let row = |key: &str, value: &str, line: usize| Guarded {
        key: key.to_owned(),
        value: value.to_owned(),
        path: format!(".archeflow/memory/{key}.jsonl"),
        line: u32::try_from(line + 1).unwrap_or(u32::MAX),
    };
    let told = shelf.lessons.values().enumerate().map(|(n, lesson)| row("lessons", &lesson.description, n));
    let mut rows: Vec<Guarded> = told.collect();
    let resolved = shelf.resolved.values().count();
    if resolved > 0 {
        rows.push(row("resolved", &format!("{resolved} examples of findings that were resolved"), 0));
    }
    if rows.is_empty() {
        rows.push(row("lessons", "lines that can't be read", 0));
    }
    Ok(rows)
}

/// What an approval is for.
fn listed(project: &Project, guarded: &[Guarded]) -> String {
    let (mut out, place) = (String::new(), project.offer.place());
    put!(out, "{} configures, as committed on the checked-out branch:", safe(&place.display().to_string()));
    for row in guarded {
        put!(out, "  {}", safe(&described(row)));
    }
    out
}

fn described(row: &Guarded) -> String {
    format!("{} = {}  ({}:{})", row.key, row.value, row.path, row.line)
}

const APPROVE: &str = "Approve exactly this? [y/N] ";

fn confirmed(question: &str) -> bool {
    tell_part!("{question}");
    let _ = std::io::stderr().flush();
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).is_ok() && archeflow_core::run::is_yes(&line)
}
