//! `archeflow gc`: remove what nothing needs any more, and print what, how much and why.

use std::collections::BTreeMap;
use std::path::PathBuf;

use archeflow_core::text::byte_size;
use archeflow_host::cleaning::{
    self, CleanedItem, CleanedKind, CleanedRepository, CleaningReport, CleaningRequest,
};
use archeflow_host::config::Flags;
use archeflow_host::git::{GitEnv, Repo};
use archeflow_host::open::Project;
use archeflow_host::store::places::Places;
use serde_json::{Value, json};

use crate::args::GcArgs;
use crate::commands::list::look_around;
use crate::commands::{open_project, open_project_to_read, process_env};
use crate::failure::Failure;
use crate::output::CommandOutput;
use crate::render::text::{Paint, pad, safe_line};

/// Something could not be removed.
const ENVIRONMENT: u8 = 30;

pub(crate) fn run(args: &GcArgs) -> Result<CommandOutput, Failure> {
    let project = match args.dry_run {
        true => open_project_to_read(&args.place, false)?,
        false => open_project(&args.place, None, false)?,
    };
    let keep = project.settings(&Flags::default(), args.place.config.as_deref())?.keep();
    let mut unreadable = Vec::new();
    let mut repositories = if args.all { others(args, &project, &mut unreadable)? } else { Vec::new() };
    let state = project.state.clone();
    repositories.insert(0, CleanedRepository { places: project.places, repo: project.repo });
    let request = CleaningRequest {
        state: &state,
        repositories: &repositories,
        all: args.all,
        keep: &keep,
        dry_run: args.dry_run,
    };
    let mut report = cleaning::clean(&request);
    report.failed.extend(unreadable);
    let code = if report.failed.is_empty() { 0 } else { ENVIRONMENT };
    let output = match args.place.json {
        true => CommandOutput::json(as_json(args, &report, code)),
        false => CommandOutput::text(as_text(args, &report)),
    };
    Ok(output.with_code(code))
}

/// The other repositories with runs that are still there.
fn others(
    args: &GcArgs,
    project: &Project,
    unreadable: &mut Vec<(PathBuf, String)>,
) -> Result<Vec<CleanedRepository>, Failure> {
    let env = GitEnv::new(process_env()?.variables);
    let mut repositories = Vec::new();
    for root in look_around(&args.place, true)?.elsewhere {
        let opened = match args.dry_run {
            true => Repo::open_to_read(&root, &project.state, &env),
            false => Repo::open(&root, &project.state, &env),
        };
        let opened = opened.map_err(|error| error.to_string());
        let places = Places::at(&root).map_err(|error| error.to_string());
        match opened.and_then(|repo| Ok(CleanedRepository { places: places?, repo })) {
            Ok(one) => repositories.push(one),
            Err(why) => unreadable.push((root, why)),
        }
    }
    Ok(repositories)
}

/// Things of one kind for one reason.
struct Row {
    kind: CleanedKind,
    why: &'static str,
    count: usize,
    bytes: u64,
}

fn rows(items: &[CleanedItem]) -> Vec<Row> {
    let mut sums: BTreeMap<(CleanedKind, &'static str), (usize, u64)> = BTreeMap::new();
    for item in items {
        let (count, bytes) = sums.entry((item.kind, item.why)).or_default();
        (*count, *bytes) = (*count + 1, bytes.saturating_add(item.bytes));
    }
    sums.into_iter().map(|((kind, why), (count, bytes))| Row { kind, why, count, bytes }).collect()
}

fn as_json(args: &GcArgs, report: &CleaningReport, code: u8) -> Value {
    let listed = |items: &[CleanedItem]| -> Vec<Value> {
        let each = |item: &CleanedItem| {
            json!({
                "what": item.kind.name(), "path": item.path.display().to_string(), "bytes": item.bytes,
                "why": item.why,
            })
        };
        items.iter().map(each).collect()
    };
    let failed = |(path, why): &(PathBuf, String)| json!({ "path": path.display().to_string(), "why": why });
    json!({
        "dry_run": args.dry_run, "exit_code": code, "bytes": total(&report.removed),
        "removed": listed(&report.removed), "kept": listed(&report.kept),
        "failed": report.failed.iter().map(failed).collect::<Vec<_>>(),
    })
}

fn total(items: &[CleanedItem]) -> u64 {
    items.iter().map(|item| item.bytes).sum()
}

fn as_text(args: &GcArgs, report: &CleaningReport) -> String {
    let (mut out, paint) = (String::new(), Paint::for_stdout());
    let (removed, kept) = (rows(&report.removed), rows(&report.kept));
    if removed.is_empty() && report.failed.is_empty() {
        put!(out, "Nothing to remove.");
    }
    if !removed.is_empty() {
        put!(
            out,
            "{}",
            paint.dim(&line(if args.dry_run { "WOULD REMOVE" } else { "REMOVED" }, "COUNT", "DISK", "WHY"))
        );
        table(&mut out, &removed);
        put!(
            out,
            "{}",
            line("total", &report.removed.len().to_string(), &byte_size(total(&report.removed)), "")
        );
    }
    if !kept.is_empty() {
        put!(out, "\n{}", paint.dim(&line("KEPT", "COUNT", "DISK", "WHY")));
        table(&mut out, &kept);
    }
    for (path, why) in &report.failed {
        put!(out, "\nnot removed: {}: {}", safe_line(&path.display().to_string()), safe_line(why));
    }
    if args.dry_run && !removed.is_empty() {
        put!(out, "\nNothing was removed. Do it: archeflow gc{}", if args.all { " --all" } else { "" });
    }
    out
}

fn table(out: &mut String, rows: &[Row]) {
    for row in rows {
        put!(out, "{}", line(row.kind.name(), &row.count.to_string(), &byte_size(row.bytes), row.why));
    }
}

fn line(what: &str, count: &str, disk: &str, why: &str) -> String {
    format!("{}  {count:>6}  {disk:>8}  {why}", pad(what, 22)).trim_end().to_owned()
}
