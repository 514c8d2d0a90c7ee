//! The hidden command by which a model without a client works (`anthropic`, `openai`, `ollama`).

use std::io::Read;

use archeflow_host::client_output::own::OwnRecord;
use archeflow_host::model_agent::{self, ModelAgentEnv, Task};
use archeflow_host::proc;

use crate::failure::Failure;
use crate::output::{self, CommandOutput};

pub(crate) fn run(task: &str) -> Result<CommandOutput, Failure> {
    let wrong = |why: String| Failure::new(1, "model", why, "This command is not for people.");
    let task: Task = serde_json::from_str(task).map_err(|error| wrong(error.to_string()))?;
    let tree = std::env::current_dir().map_err(|error| wrong(error.to_string()))?;
    let mut brief = String::new();
    std::io::stdin().read_to_string(&mut brief).map_err(|error| wrong(error.to_string()))?;
    // Processes that a command leaves behind become our children and are ended before the next.
    proc::become_subreaper();
    let mut unwritten = None;
    let mut print = |record: &OwnRecord| {
        if let Err(error) = output::line(&record.print()) {
            unwritten = Some(error);
        }
    };
    let env =
        ModelAgentEnv { tree: &tree, brief, variables: std::env::vars_os().collect(), print: &mut print };
    model_agent::run(&task, env);
    Ok(CommandOutput::done().with_code(unwritten.map_or(0, |error| output::lost(&error, 0, None))))
}
