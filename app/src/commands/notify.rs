//! `archeflow notify test`: a message over every channel that is set, and how each went.

use archeflow_host::notify::{self, NotifyEnv};
use archeflow_host::open::users_settings;
use archeflow_host::store::places::Places;
use serde_json::json;

use crate::args::{NotifyCommand, NotifyTest};
use crate::commands::session::notify_env;
use crate::commands::trust::only_from_outside;
use crate::commands::{open_project, process_env};
use crate::failure::Failure;
use crate::output::CommandOutput;
use crate::render::text::{pad, safe_line};

/// A channel failed: something outside of the program is to be seen to.
const FAILED: u8 = 30;

pub(crate) fn run(what: &NotifyCommand) -> Result<CommandOutput, Failure> {
    match what {
        NotifyCommand::Test(args) => test(args),
    }
}

fn test(args: &NotifyTest) -> Result<CommandOutput, Failure> {
    only_from_outside("send messages")?;
    let env = process_env()?;
    let state = Places::state_dir_elsewhere(&env.places())?;
    let dir = state.unwrap_or_else(std::env::temp_dir);
    // These settings are the user's alone; a repository matters only in that it must not hold the user's files.
    let root = open_project(&args.place, None, false).map(|project| project.places.root().to_owned());
    let root = root.unwrap_or_else(|_| dir.clone());
    let settings = users_settings(&env, &root, args.place.config.as_deref())?.notify();
    let env: NotifyEnv = notify_env(&dir)?;
    let results = notify::try_all(&settings, &env);
    if results.is_empty() {
        return Err(Failure::usage(
            "no channel is set, so nothing is ever sent",
            "Set one in your own configuration, e.g. notify: {desktop: true}; docs/notifications.md lists them",
        ));
    }
    let code = if results.iter().all(|(_, result)| result.is_ok()) { 0 } else { FAILED };
    if args.place.json {
        let channels = results.iter().map(|(channel, result)| {
            json!({ "channel": channel, "sent": result.is_ok(), "error": result.as_ref().err() })
        });
        let channels: Vec<_> = channels.collect();
        return Ok(CommandOutput::json(json!({ "channels": channels })).with_code(code));
    }
    let mut out = String::new();
    for (channel, result) in &results {
        let word = match result {
            Ok(()) => "sent".to_owned(),
            Err(why) => format!("failed: {}", safe_line(why)),
        };
        put!(out, "{}  {word}", pad(channel, 8));
    }
    Ok(CommandOutput::text(out).with_code(code))
}
