//! Any agent that speaks the Agent Client Protocol, by its command line: `acp:<command line>`. The bridge in `acp/` is
//! started in its place and prints the lines of [`own`].
//!
//! The agent is the user's own, with the user's own settings: it gets the environment every command gets, and the
//! switches by which known agents leave a repository's settings alone. What they obey all the same is not in their
//! working copy.

use super::{Client, CommandInputs, Rest, Start, counts_nothing, own, pairs};
use crate::backends::Invocation;

/// Tools a Maker can't do without; being refused one of them is reported by the tool's kind alone.
const NEEDED_TOOLS: [&str; 4] = ["edit", "execute", "delete", "move"];

/// The hidden command by which this program is the bridge.
const COMMAND: &str = "__acp";

pub(super) const CLIENT: Client = Client {
    name: "acp",
    form: "acp:<command line>",
    title: "any agent that speaks the Agent Client Protocol",
    vendor: "ACP",
    program: "",
    rest: Rest::Command,
    tried: [0, 0, 0],
    sign_in: "log in with the agent itself, or name the variable its key is in under `agents.env`",
    own: &[],
    names_itself_by: &[],
    needs: &NEEDED_TOOLS,
    counts_on: false,
    takes_schema: false,
    resumes_fragments: true,
    usage_files: &[],
    count: counts_nothing,
    command,
    hear: own::hear,
};

const SWITCHES: [(&str, &str); 4] = [
    ("OPENCODE_DISABLE_PROJECT_CONFIG", "1"),
    ("OPENCODE_DISABLE_CLAUDE_CODE", "1"),
    ("OPENCODE_DISABLE_EXTERNAL_SKILLS", "1"),
    ("CONTEXT_FILE_NAMES", "[]"),
];

fn command(inputs: &CommandInputs<'_>) -> Start {
    let mut args = vec![COMMAND.into()];
    if inputs.writes {
        args.push("--writes".into());
    }
    if let Some(session) = inputs.resumes {
        args.push(format!("--resumes={}", session.id).into());
    }
    args.extend(["--".into(), inputs.model.into()]);
    let invocation = Invocation { program: inputs.me.into(), args };
    Start { invocation, env: pairs(&SWITCHES), linked: Vec::new(), files: Vec::new() }
}
