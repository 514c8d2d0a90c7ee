//! The hidden command that is the bridge to an agent (`acp:`). The brief comes on standard input.

use std::io::Read;
use std::path::PathBuf;

use archeflow_host::acp::{self, AcpTask, Permission, TranscriptFolder};

use crate::args::AcpArgs;
use crate::commands::process_env;
use crate::failure::Failure;
use crate::output::{self, CommandOutput};

pub(crate) fn run(args: AcpArgs) -> Result<CommandOutput, Failure> {
    let lost = |error: std::io::Error| Failure::new(1, "acp", error.to_string(), "");
    let mut brief = Vec::new();
    std::io::stdin().read_to_end(&mut brief).map_err(lost)?;
    let tree = process_env()?.cwd;
    let scratch = std::env::var_os("TMPDIR").map(Into::into);
    let task = AcpTask {
        permission: Permission {
            writes: args.writes,
            places: [tree.clone()].into_iter().chain(scratch).collect(),
        },
        tree,
        resumes: args.resumes,
        brief: String::from_utf8_lossy(&brief).into_owned(),
        transcripts: transcripts(),
    };
    let code = acp::run(&args.command, task, &mut output::stream()).map_err(lost)?;
    Ok(CommandOutput::done().with_code(code))
}

/// Where the clients behind the known agents keep their transcripts: the agent has this process's environment.
fn transcripts() -> Vec<TranscriptFolder> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let usual = |folder: &str| home.as_ref().map(|home| home.join(folder));
    [
        ("claude", "CLAUDE_CONFIG_DIR", ".claude"),
        ("codex", "CODEX_HOME", ".codex"),
        ("gemini", "GEMINI_CLI_HOME", ""),
    ]
    .into_iter()
    .filter_map(|(client, variable, folder)| {
        let home = std::env::var_os(variable).map(PathBuf::from).or_else(|| usual(folder))?;
        Some(TranscriptFolder { client, home })
    })
    .collect()
}
