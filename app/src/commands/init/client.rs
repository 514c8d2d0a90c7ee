//! `archeflow init --client`: shows what would be written for a coding agent, asks, and writes it.

use archeflow_core::text::shell_word;
use archeflow_host::client_setup::{
    CodingClient, FileChange, PlannedFile, SetupAction, SetupError, SetupPlan,
};
use serde_json::{Value, json};

use crate::args::{ClientName, InitArgs};
use crate::commands::process_env;
use crate::commands::session::talks;
use crate::commands::trust::{agreed, only_from_outside};
use crate::failure::Failure;
use crate::output::CommandOutput;
use crate::render::text::{safe, safe_line};

/// Lines around a change.
const AROUND: usize = 3;
/// Nothing was agreed to.
const NOT_WRITTEN: u8 = 2;

pub(super) fn run(args: &InitArgs, name: ClientName) -> Result<CommandOutput, Failure> {
    only_from_outside("set up a coding agent")?;
    let env = process_env()?;
    let client = match name {
        ClientName::Claude => CodingClient::Claude,
        ClientName::Codex => CodingClient::Codex,
        ClientName::Gemini => CodingClient::Gemini,
        ClientName::Opencode => CodingClient::Opencode,
    };
    let action = if args.remove { SetupAction::Remove } else { SetupAction::Install };
    let plan = client.plan(&env.variables, action)?;
    let is_there = plan.changes().next().is_none();
    let wanted = !is_there && !args.dry_run;
    let mut shown = shown(&plan, args);
    let writes = wanted && (args.yes || (!args.place.json && agreed(false, &mut shown, &question(args))));
    if writes {
        plan.carry_out()?;
    }
    let code = if wanted && !writes { NOT_WRITTEN } else { 0 };
    let path = env.variables.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.clone());
    let mut folders = path.iter().flat_map(std::env::split_paths);
    if !args.remove && !folders.any(|folder| folder.join("archeflow").is_file()) {
        tell!("note: there is no `archeflow` on your PATH; coding agents start it by that name");
    }
    let next = next_steps(client, args.remove, &plan);
    if args.place.json {
        return Ok(CommandOutput::json(json(name, &plan, &next, writes)).with_code(code));
    }
    match (is_there, writes) {
        (true, _) => put!(shown, "Nothing to change."),
        (false, true) => put!(shown, "{}", if args.remove { "Removed." } else { "Written." }),
        (false, false) if args.dry_run || talks() => put!(shown, "Nothing was written."),
        (false, false) => put!(shown, "Nothing was written. Without a terminal only --yes writes."),
    }
    if writes || is_there {
        for step in next {
            put!(shown, "{step}");
        }
    }
    Ok(CommandOutput::text(shown).with_code(code))
}

fn question(args: &InitArgs) -> String {
    if args.remove { "Remove this? [y/N] ".to_owned() } else { "Write this? [y/N] ".to_owned() }
}

/// New files by name, or in full where nothing else is wanted; changes of files that are there as a diff.
fn shown(plan: &SetupPlan, args: &InitArgs) -> String {
    let mut out = String::new();
    for file in &plan.files {
        let path = safe_line(&file.path.display().to_string());
        let text = file.after.as_deref().unwrap_or_default();
        match file.change() {
            FileChange::Same if file.after.is_none() => {}
            FileChange::Same => put!(out, "unchanged  {path}"),
            FileChange::Removed => put!(out, "remove     {path}"),
            FileChange::New => {
                put!(out, "new        {path}");
                if args.dry_run {
                    text.lines().for_each(|line| put!(out, "  {}", safe(line)));
                }
            }
            FileChange::Changed => {
                put!(out, "change     {path}");
                put!(out, "{}", safe(diff(file).trim_end()));
            }
        }
    }
    out
}

/// A unified diff with one hunk, from the first line that differs to the last.
fn diff(file: &PlannedFile) -> String {
    let lines = |text: &'_ Option<String>| -> Vec<String> {
        text.iter().flat_map(|text| text.lines()).map(str::to_owned).collect()
    };
    let (old, new) = (lines(&file.before), lines(&file.after));
    let same = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let rest = old.len().min(new.len()) - same;
    let tail = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(old, new)| old == new).count();
    let from = same.saturating_sub(AROUND);
    let below = tail.min(AROUND);
    let (old_end, new_end) = (old.len() - tail, new.len() - tail);
    let start = |count: usize| if count == 0 { from } else { from + 1 };
    let (old_count, new_count) = (old_end + below - from, new_end + below - from);
    let path = file.path.display();
    let mut out = format!("--- {path}\n+++ {path}\n");
    put!(out, "@@ -{},{old_count} +{},{new_count} @@", start(old_count), start(new_count));
    old[from..same].iter().for_each(|line| put!(out, " {line}"));
    old[same..old_end].iter().for_each(|line| put!(out, "-{line}"));
    new[same..new_end].iter().for_each(|line| put!(out, "+{line}"));
    old[old_end..old_end + below].iter().for_each(|line| put!(out, " {line}"));
    out
}

/// What is left for the person to do, and how to see that it worked.
fn next_steps(client: CodingClient, is_removed: bool, plan: &SetupPlan) -> Vec<String> {
    let folder = shell_word(&plan.folder.display().to_string());
    let steps: &[String] = &match (client, is_removed) {
        (CodingClient::Claude, false) => vec![
            "Claude Code reads the plugin from that folder. Once, type:".to_owned(),
            format!("  claude plugin marketplace add {folder}"),
            "  claude plugin install archeflow@archeflow".to_owned(),
        ],
        (CodingClient::Claude, true) => vec![
            "Take it out of Claude Code as well:".to_owned(),
            "  claude plugin uninstall archeflow@archeflow".to_owned(),
            "  claude plugin marketplace remove archeflow".to_owned(),
        ],
        (CodingClient::Codex, false) => vec!["See it with: codex mcp list".to_owned()],
        (CodingClient::Gemini, false) => vec![
            "See it with: gemini extensions list".to_owned(),
            "Gemini CLI starts servers only in folders that you trust there.".to_owned(),
        ],
        (CodingClient::Opencode, false) => vec!["See it with: opencode mcp list".to_owned()],
        (CodingClient::Codex | CodingClient::Gemini | CodingClient::Opencode, true) => Vec::new(),
    };
    steps.to_vec()
}

fn json(name: ClientName, plan: &SetupPlan, next: &[String], written: bool) -> Value {
    let change = |file: &PlannedFile| match file.change() {
        FileChange::New => "new",
        FileChange::Changed => "change",
        FileChange::Removed => "remove",
        FileChange::Same => "unchanged",
    };
    let file = |file: &PlannedFile| {
        let diff = (file.change() == FileChange::Changed).then(|| diff(file));
        json!({
            "path": file.path.to_string_lossy(), "change": change(file), "content": file.after, "diff": diff,
        })
    };
    json!({
        "client": name.to_string(), "folder": plan.folder.to_string_lossy(),
        "files": plan.files.iter().map(file).collect::<Vec<_>>(), "next": next, "written": written,
    })
}

impl From<SetupError> for Failure {
    fn from(error: SetupError) -> Failure {
        let message = error.to_string();
        match error {
            SetupError::NoHome => Failure::usage(message, "Set HOME to your home folder."),
            SetupError::Unchangeable { entry: "", .. } => {
                Failure::usage(message, "Nothing was written. Repair it first.")
            }
            SetupError::Unchangeable { entry, .. } => Failure::usage(
                message,
                format!("Nothing was written. Repair it, or change it by hand; the entry is:\n\n{entry}"),
            ),
            SetupError::Others { .. } => {
                Failure::usage(message, "Nothing was written. Move it away, or rename it.")
            }
            SetupError::LeadsOut { .. } => Failure::new(
                21,
                "unsafe",
                message,
                "Nothing was written. Put a plain file or folder there, or a link that stays in your home.",
            ),
            SetupError::Meanwhile { .. } => {
                Failure::usage(message, "Type the command again to see what would change now.")
            }
            SetupError::Files(error) => error.into(),
            SetupError::Io { .. } => Failure::new(30, "environment", message, ""),
        }
    }
}
