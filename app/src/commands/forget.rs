//! `archeflow forget`: take repositories off the list of those with runs. Nothing in them is touched, and the next run
//! in one puts it back.

use std::path::{Path, PathBuf};

use archeflow_host::repositories;
use archeflow_host::store::places::Places;
use serde_json::json;

use crate::args::ForgetArgs;
use crate::commands::process_env;
use crate::failure::Failure;
use crate::output::CommandOutput;
use crate::render::text::safe_line;

pub(crate) fn run(args: &ForgetArgs) -> Result<CommandOutput, Failure> {
    let env = process_env()?;
    let state = Places::state_dir_elsewhere(&env.places())?;
    let known = state.as_deref().map_or(Ok(Vec::new()), repositories::read)?;
    let meant: Vec<PathBuf> = if args.gone {
        known.into_iter().filter(|root| repositories::is_gone(root)).collect()
    } else {
        let named = args.folders.iter().map(|folder| listed(&known, &env.cwd.join(folder)));
        named.collect::<Result<_, _>>()?
    };
    let mut forgotten = Vec::new();
    for root in &meant {
        if let Some(state) = &state
            && repositories::forget(state, root)?
        {
            forgotten.push(root.display().to_string());
        }
    }
    if args.json {
        return Ok(CommandOutput::json(json!({ "forgotten": forgotten })));
    }
    let mut out = String::new();
    for root in &forgotten {
        put!(out, "forgotten: {}", safe_line(root));
    }
    if forgotten.is_empty() {
        put!(out, "No repository on the list is gone.");
    }
    Ok(CommandOutput::text(out))
}

/// A folder as the list has it: as it was typed, or without the links in it.
fn listed(known: &[PathBuf], folder: &Path) -> Result<PathBuf, Failure> {
    let real = folder.canonicalize().ok();
    // Without a dot or a slash at its end.
    let plain: PathBuf = folder.components().collect();
    let found = known.iter().find(|root| **root == plain || Some(*root) == real.as_ref());
    found.cloned().ok_or_else(|| {
        Failure::usage(
            format!("{} is not on the list of repositories", folder.display()),
            "Those that are: archeflow list --all",
        )
    })
}
