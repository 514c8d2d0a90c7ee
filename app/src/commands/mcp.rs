//! `archeflow mcp`: a server for coding agents, on standard input and output.

use archeflow_host::git::repo;
use archeflow_host::open::{Error, Project, users_settings};
use archeflow_host::store::places::Places;
use archeflow_serve::mcp::{McpOptions, McpSettings, serve};

use crate::args::McpArgs;
use crate::commands::process_env;
use crate::commands::trust::only_from_outside;
use crate::failure::Failure;
use crate::output::{CommandOutput, stream};

pub(crate) fn run(args: &McpArgs) -> Result<CommandOutput, Failure> {
    // An agent of a run must not start another one, nor bring a person's answers.
    only_from_outside("serve coding agents")?;
    let env = process_env()?;
    let state = Places::state_dir_made_elsewhere(&env.places())?;
    let dir = args.repo.as_ref().map_or_else(|| env.cwd.clone(), |repo| env.cwd.join(repo));
    if !dir.is_dir() {
        let message = format!("there is no folder {}", dir.display());
        return Err(Failure::usage(message, "Name a repository: --repo <dir>"));
    }
    // Outside of a repository the tools say so; it may become one while the client is open.
    let (root, apart) = match Project::open(env.clone(), &dir, None, false) {
        Ok(project) => (project.places.root().to_owned(), project.places.root().to_owned()),
        // A folder that is none may well hold the user's files: clients are also started at home.
        Err(Error::Repo(repo::Error::NotARepository { .. }) | Error::Bare { .. }) => (dir, state.clone()),
        Err(error) => return Err(error.into()),
    };
    // A file that can't be read is reported now; later it is read again whenever it is needed.
    let (of, at) = (env.clone(), apart);
    users_settings(&of, &at, None)?;
    let settings = move || {
        let settings = users_settings(&of, &at, None).map_err(|error| error.to_string())?;
        Ok(McpSettings { may_land: settings.mcp().decide, budget: settings.policy().costs.budget_usd })
    };
    let options =
        McpOptions { program: env.me, root, state, version: env.version, settings: Box::new(settings) };
    serve(options, stream())?;
    Ok(CommandOutput::done())
}
