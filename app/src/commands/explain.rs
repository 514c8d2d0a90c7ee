//! `archeflow explain`: an archetype's text in force, a workflow, a reason, an exit code.

use archeflow_core::model::{ARCHETYPES, Reason, Workflow, counted, pipeline_team, team};
use archeflow_host::config::Flags;
use archeflow_host::config::personas::{self, Origin};

use crate::args::ExplainArgs;
use crate::commands::{explain_reading, open_project};
use crate::failure::Failure;
use crate::output::CommandOutput;
use crate::render::text::safe;

pub(crate) fn run(args: &ExplainArgs) -> Result<CommandOutput, Failure> {
    let what = args.what.to_lowercase();
    match what.as_str() {
        "answer" => return explain_reading::answer(args),
        "same" => return explain_reading::same(args),
        _ if !args.files.is_empty() || args.role.is_some() => {
            return Err(Failure::usage(
                format!("explain {what} takes no files and no role"),
                "They are for 'explain answer' and 'explain same'",
            ));
        }
        _ => {}
    }
    if ARCHETYPES.iter().any(|(name, _)| *name == what) {
        return archetype(&what, args);
    }
    let brought = brought(args);
    if brought.contains(&what) {
        return archetype(&what, args);
    }
    if let Some(text) = from_shelf(&what, args)? {
        return explanation(&what, &text, args);
    }
    let text = if let Some(workflow) = Workflow::parse(&what) {
        let seats: Vec<String> = team(workflow).into_iter().map(|seat| seat.archetype).collect();
        format!("{what}: {}; at most {}", seats.join(", "), counted(workflow.max_cycles(), "cycle"))
    } else if what == "pipeline" {
        let seats: Vec<String> = pipeline_team().into_iter().map(|seat| seat.archetype).collect();
        format!("pipeline: {}; linear, one targeted fix, no further cycles", seats.join(", "))
    } else if let Some(reason) = Reason::ALL.into_iter().find(|reason| reason.name() == what) {
        format!("{what}: {}", reason_text(reason))
    } else if let Some(text) = exit_code(&what) {
        format!("exit code {what}: {text}")
    } else {
        let mut names: Vec<&str> = ARCHETYPES.iter().map(|(name, _)| *name).collect();
        names.extend(brought.iter().map(String::as_str));
        let reasons: Vec<&str> = Reason::ALL.iter().map(|reason| reason.name()).collect();
        return Err(Failure::usage(
            format!("nothing is known about '{}'", args.what),
            format!(
                "Known: {}; fast, standard, thorough, pipeline; {}; exit codes such as 14",
                names.join(", "),
                reasons.join(", ")
            ),
        ));
    };
    explanation(&what, &text, args)
}

fn explanation(what: &str, text: &str, args: &ExplainArgs) -> Result<CommandOutput, Failure> {
    Ok(if args.place.json {
        CommandOutput::json(serde_json::json!({ "what": what, "text": text }))
    } else {
        CommandOutput::text(format!("{}\n", safe(text)))
    })
}

/// Archetypes that files bring along, approved or not.
fn brought(args: &ExplainArgs) -> Vec<String> {
    let project = open_project(&args.place, None, false);
    let files = project.map(|project| project.archetype_files(args.place.config.as_deref()));
    match files {
        Ok(Ok((theirs, ours))) => personas::names(&theirs, &ours),
        Ok(Err(_)) | Err(_) => Vec::new(),
    }
}

/// A team, a workflow file, a domain or a lens of that name. Unapproved files are not in effect and not explained.
fn from_shelf(what: &str, args: &ExplainArgs) -> Result<Option<String>, Failure> {
    let Ok(project) = open_project(&args.place, None, false) else { return Ok(None) };
    let settings = project.settings(&Flags::default(), args.place.config.as_deref())?;
    let shelf = settings.shelf();
    if let Some(team) = shelf.teams.get(what).or_else(|| shelf.workflows.get(what)) {
        let seats: Vec<&str> = team.seats.iter().map(|seat| seat.archetype.as_str()).collect();
        let cycles = team.max_cycles.map_or("as the workflow has".to_owned(), |n| n.to_string());
        return Ok(Some(format!(
            "{what}: {}; lands on {}; cycles: {cycles} ({})",
            seats.join(", "),
            team.exit.name(),
            team.path
        )));
    }
    if let Some(domain) = shelf.domains.get(what) {
        let mut text = format!("{what}: a domain\nmeasures: {}", domain.metrics.join(", "));
        for (word, meaning) in domain.concepts.iter().chain(&domain.review_focus) {
            text += &format!("\n{word}: {meaning}");
        }
        return Ok(Some(text));
    }
    Ok(shelf.lenses.get(what).map(|file| {
        let mut text = format!(
            "{what}: a lens ({})\ncategories: {}",
            file.path,
            file.lens.finding_categories.join(", ")
        );
        for (name, attention) in &file.lens.attention {
            text += &format!("\n{name}: {}", attention.extra_focus);
        }
        text
    }))
}

fn archetype(name: &str, args: &ExplainArgs) -> Result<CommandOutput, Failure> {
    let place = open_project(&args.place, None, false);
    let (text, origin, digest) = match place {
        Ok(project) => {
            let found = project.persona(name, args.place.config.as_deref())?;
            let origin = match &found.origin {
                Origin::BuiltIn => "built in".to_owned(),
                Origin::Repo { path } => format!("this repository: {path}"),
                Origin::User { path } => format!("your own: {path}"),
            };
            if args.eject && !ARCHETYPES.iter().any(|(known, _)| *known == name) {
                return Err(Failure::usage(
                    format!("'{name}' is not built in; it is already a file"),
                    format!("Edit it: {origin}"),
                ));
            }
            if args.eject {
                return eject(&project, name, args.place.json);
            }
            let header = &found.persona.archetype;
            let sees: Vec<&str> = header.sees.iter().map(|sight| sight.name()).collect();
            let head = format!(
                "# {name}\n\n{}\n\nvirtue: {} | shadow: {} | tier: {} | sees: {}\n",
                header.summary,
                header.virtue,
                header.shadow,
                header.tier.name(),
                sees.join(", ")
            );
            (format!("{head}\n{}", found.persona.prompt.trim()), origin, found.digest)
        }
        // Outside of a repository the built-in text is what there is.
        Err(_) => {
            let persona = archeflow_core::persona::built_in(name).ok_or_else(|| {
                Failure::new(30, "bug", format!("the built-in persona '{name}' can't be read"), "")
            })?;
            (persona.prompt.trim().to_owned(), "built in".to_owned(), String::new())
        }
    };
    Ok(if args.place.json {
        CommandOutput::json(
            serde_json::json!({ "archetype": name, "origin": origin, "digest": digest, "text": text }),
        )
    } else {
        CommandOutput::text(format!("{}\n\n(text in force: {origin})\n", safe(&text)))
    })
}

fn eject(project: &archeflow_host::open::Project, name: &str, json: bool) -> Result<CommandOutput, Failure> {
    let text = ARCHETYPES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text).unwrap_or_default();
    project.places.make()?;
    let folder = project.places.root().join(".archeflow/archetypes");
    std::fs::create_dir_all(&folder)
        .map_err(|error| Failure::new(30, "environment", format!("{}: {error}", folder.display()), ""))?;
    let path = folder.join(format!("{name}.md"));
    archeflow_host::store::files::write_new(&path, text.as_bytes())?;
    Ok(if json {
        CommandOutput::json(
            serde_json::json!({ "archetype": name, "path": path.to_string_lossy(), "written": true }),
        )
    } else {
        CommandOutput::text(format!(
            "Wrote {}. Edit it, commit it, then approve it: archeflow trust\n",
            path.display()
        ))
    })
}

fn exit_code(code: &str) -> Option<&'static str> {
    Some(match code {
        "0" => "done",
        "2" => "usage or configuration error; nothing was started",
        "10" => "a decision of yours is needed",
        "11" => "budget used up",
        "12" => "merge conflict, or the target branch moved",
        "13" => "tests failed",
        "14" => "reviewers rejected, or could not be read",
        "20" => "the repository's configuration is not approved",
        "21" => "refused: unsafe environment, not ready, or locked by another process",
        "30" => "environment fault: disk, git, permissions, an agent that can't be started",
        "31" => "provider unavailable after retries, or agent not logged in",
        "40" => "damaged state; nothing was touched",
        "141" => "the reader of the result went away, as in `archeflow list | head -1`",
        "129" | "130" | "143" => "ended by a signal, after clean-up; continue with archeflow resume",
        _ => return None,
    })
}

fn reason_text(reason: Reason) -> &'static str {
    match reason {
        Reason::Approved => "every reviewer that counts approved",
        Reason::DryRun => "planned only, as asked",
        Reason::RejectedWithoutEvidence => {
            "a reviewer rejects the change and shows no evidence, also when asked: a person must decide"
        }
        Reason::MaxCycles => "findings are open and no cycle is left; the work is on its branch",
        Reason::PersistentCritical => "the same CRITICAL stayed open for two cycles: a person must decide",
        Reason::ConvergedStopDiverging => {
            "two consecutive cycles added more findings than they resolved (soft break)"
        }
        Reason::StopStuck => "a cycle resolved nothing (soft break)",
        Reason::StopIdenticalFindings => "the findings are the same as in the cycle before (soft break)",
        Reason::Oscillation => "two or more findings come and go: the fixes undo each other (hard break)",
        Reason::FindingsRising => "reviewers find more in every cycle (soft break)",
        Reason::ShadowStrikes => {
            "an agent kept falling into its shadow: the task may be too large or too vague"
        }
        Reason::SystemShadow => "the process itself keeps going wrong in the same way: a person must decide",
        Reason::Checkpoint => "a checkpoint found that quality is falling (soft break)",
        Reason::AgentFailures => "agents failed and could not be replaced",
        Reason::Budget => "the budget is used up, or too small for the next step; the work is saved",
        Reason::ProviderBusy => "the provider is unavailable: rate limit, overload or used-up quota",
        Reason::NotSignedIn => "the agent is not logged in: log in with its own client, then resume",
        Reason::UnparsableReview => "a review could not be read, so it can't count as an approval",
        Reason::NoChange => "there is no change to review or to land",
        Reason::TestsFailed => "the test command fails on the merged tree; the target was not moved",
        Reason::TestCommandBroken => "the test command itself can't be run",
        Reason::RedBase => {
            "the tests fail before any change: `archeflow answer` starts the run all the same, and the change lands if no other test fails then"
        }
        Reason::SetupFailed => "the setup command fails or can't be run on the base commit; nothing was paid",
        Reason::PostMergeTests => "tests failed after landing; the merge was reverted (hard break)",
        Reason::MergeConflict => "the change conflicts with the target; nothing was forced",
        Reason::BaseMoved => "the target moved or lost the commit the run began from",
        Reason::DirtyTree => "your checkout has changes on paths the merge touches; it was left alone",
        Reason::TargetBusy => "a git operation is under way in your checkout; it was left alone",
        Reason::SigningFailed => {
            "git could not sign the commit (commit.gpgsign): make the key available, then merge the run"
        }
        Reason::NoTestCommand => "approved, but untested: landing needs your yes",
        Reason::SecurityDowngraded => {
            "a security CRITICAL was downgraded for lack of evidence: check it before landing"
        }
        Reason::HookAbort => "a hook failed and is configured to stop the run",
        Reason::NeedsContext => "an agent asks something only you can answer",
        Reason::LowConfidence => "the plan does not understand the task well enough",
        Reason::Blocked => "an agent reports that it is blocked",
        Reason::GitFault => "git could not do what was needed",
        Reason::Reverted => "you took the landing back with a commit that was tested",
        Reason::FindingsOpen => "a review is complete and has findings above INFO",
        Reason::LoopPaused => {
            "too many steps in a row did not pass the Judge: restart or stop the loop (soft break)"
        }
        Reason::LoopFailed => "a step ran a forbidden command, or its blocker can't be removed",
        Reason::LoopStopped => "you stopped the loop; its work is kept on its branch",
        Reason::LoopEdited => "the past of the cycle file was edited, so nothing is appended to it",
        Reason::Discarded => "you discarded the run; its commits are kept under refs/archeflow/keep/",
    }
}
