//! `archeflow ui`: all runs in a browser of this machine.

use std::time::Duration;

use archeflow_host::proc;
use archeflow_host::store::places::Places;
use archeflow_serve::{Limits, ServeError, ServeOptions, Server};

use crate::args::UiArgs;
use crate::commands::process_env;
use crate::commands::trust::only_from_outside;
use crate::failure::Failure;
use crate::output::CommandOutput;

pub(crate) fn run(args: &UiArgs) -> Result<CommandOutput, Failure> {
    // The address is a key to all runs of the user.
    only_from_outside("serve pages")?;
    let env = process_env()?;
    let server = Server::bind(ServeOptions {
        port: args.port,
        host: args.host.clone(),
        idle_exit: args.idle_exit.map(|minutes| Duration::from_secs(minutes.saturating_mul(60))),
        read_only: args.read_only,
        program: env.me.clone(),
        cwd: env.cwd.clone(),
        state: Places::state_dir_elsewhere(&env.places())?,
        version: env.version,
        limits: Limits::default(),
    })?;
    let stopper = server.stopper();
    let listening = proc::signals::listen(move |_| stopper.stop());
    listening.map_err(|error| Failure::new(30, "environment", error.to_string(), ""))?;
    tell!("Open this address in a browser of this machine; it is the key, so share it with nobody:");
    tell!("  {}", server.address());
    tell!("Ctrl-C ends it. Runs are not affected.");
    server.run()?;
    Ok(CommandOutput::done())
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Failure {
        let hint = match &error {
            ServeError::PortInUse { .. } => {
                "Is another `archeflow ui` running? Choose another port: --port 0"
            }
            ServeError::Port { .. } => "Choose another port: --port 0",
            ServeError::Random(_) | ServeError::Runtime(_) => "",
        };
        Failure::new(30, "environment", error.to_string(), hint)
    }
}
