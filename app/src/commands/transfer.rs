//! `archeflow export run` and `archeflow import`: a run moves to another clone of its repository.

use archeflow_core::rules::run_names::RunUse;
use archeflow_core::text::shell_word;
use archeflow_host::git::bundle;
use archeflow_host::transfer::Error;
use serde_json::json;

use crate::args::{ExportRunArgs, ImportArgs};
use crate::commands::trust::only_from_outside;
use crate::commands::{naming, open_project};
use crate::failure::Failure;
use crate::output::CommandOutput;
use crate::render::text::{safe, safe_line};

pub(crate) fn export_run(args: &ExportRunArgs) -> Result<CommandOutput, Failure> {
    let project = open_project(&args.place, None, false)?;
    let id = naming::run_id(&project, args.id.as_deref(), RunUse::Show)?;
    let file = args.output.clone().unwrap_or_else(|| format!("{id}.bundle").into());
    let file = project.env.cwd.join(file);
    let exported = project.export_run(&id, &file)?;
    if args.place.json {
        return Ok(CommandOutput::json(json!({
            "run_id": exported.run_id, "file": file.display().to_string(), "lines": exported.lines,
            "artifacts": exported.artifacts, "refs": exported.refs, "bytes": exported.bytes,
        })));
    }
    let word = shell_word(&file.display().to_string());
    let mut out = String::new();
    put!(
        out,
        "Wrote {}: {} ({} events, {} files, {} refs).",
        safe(&file.display().to_string()),
        size(exported.bytes),
        exported.lines,
        exported.artifacts,
        exported.refs
    );
    put!(out, "It quotes what agents read and wrote: give it only to people who may see this repository.");
    put!(out, "In another clone of the repository:");
    put!(out, "  archeflow import {}", safe_line(&word));
    Ok(CommandOutput::text(out))
}

pub(crate) fn import(args: &ImportArgs) -> Result<CommandOutput, Failure> {
    only_from_outside("import a run")?;
    let project = open_project(&args.place, None, false)?;
    let file = project.env.cwd.join(&args.file);
    let imported = project.import_run(&file)?;
    let (id, own) = (&imported.run_id, imported.adoption.own);
    if args.place.json {
        return Ok(CommandOutput::json(json!({
            "run_id": id, "task": imported.task, "lines": imported.lines, "known_lines": imported.known,
            "artifacts": imported.artifacts, "refs": imported.refs, "approved": own, "guarded": imported.adoption.commands,
        })));
    }
    let mut out = String::new();
    let new = imported.lines - imported.known;
    put!(
        out,
        "Imported {}: {new} new events, {} files, {} refs.",
        safe(id),
        imported.artifacts,
        imported.refs
    );
    if own {
        put!(out, "It was here already, and is yours.");
        return Ok(CommandOutput::text(out));
    }
    put!(out, "Look at it: archeflow show {}", safe(id));
    if imported.has_landed {
        return Ok(CommandOutput::text(out));
    }
    put!(out, "Before it can be resumed, see the commands that it names and approve them:");
    put!(out, "  archeflow trust --run {}", safe(id));
    put!(out, "  archeflow resume {}", safe(id));
    put!(out, "Resume it in one place only: nothing joins two continuations of a run.");
    Ok(CommandOutput::text(out))
}

/// Bytes, as people say them.
fn size(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{} KB", bytes.div_ceil(1_000)),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000),
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let message = error.to_string();
        match error {
            Error::Open(error) => (*error).into(),
            Error::Journal(error) => error.into(),
            Error::Log(error) => error.into(),
            Error::Files(error) => error.into(),
            Error::Git(_) | Error::Bundle(bundle::Error::Git(_)) => {
                Failure::new(30, "git_fault", message, "Check that git works here: git status")
            }
            Error::Bundle(bundle::Error::Io { .. }) => Failure::new(30, "environment", message, ""),
            Error::Bundle(bundle::Error::NotFetched { .. }) => Failure::usage(
                message,
                "Get them first: git fetch --all. If they are nowhere, this is a clone of another repository. Nothing was changed.",
            ),
            Error::Bundle(bundle::Error::NotOurs { .. } | bundle::Error::Damaged { .. })
            | Error::NotOurs { .. }
            | Error::BadParts { .. } => {
                Failure::usage(message, "Export the run again, and copy the file whole. Nothing was changed.")
            }
            Error::Newer { .. } => Failure::usage(message, "Install that version here. Nothing was changed."),
            Error::Refs(_) => Failure::new(
                21,
                "refused",
                message,
                "Rename or switch away from the branch, then import again.",
            ),
            Error::Lock(_) => {
                Failure::new(30, "environment", message, "Another export or import is under way; try again.")
            }
            Error::Exists { .. } => Failure::usage(message, "Name another file: -o <file>"),
            Error::NotARun { .. } => Failure::usage(message, "See the runs there are: archeflow list"),
            Error::Driven { id, .. } => Failure::usage(
                message,
                format!("End it first; what its agents have finished is kept: archeflow stop {id}"),
            ),
            Error::Unportable { .. } => Failure::usage(message, "Move the file away, or rename it."),
            Error::Older { .. } => Failure::usage(message, "Nothing was changed: what is here is newer."),
            Error::Differs { .. } => Failure::usage(
                message,
                "Nothing was changed. Import it into another clone, or discard and remove the one here.",
            ),
        }
    }
}
