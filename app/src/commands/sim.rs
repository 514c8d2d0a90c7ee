//! The hidden command that runs a simulated agent (`sim:`).

use std::path::Path;

use archeflow_host::backends::sim;

use super::play;
use crate::failure::Failure;
use crate::output::CommandOutput;

pub(crate) fn run(file: &Path) -> Result<CommandOutput, Failure> {
    let phase = std::env::var("ARCHEFLOW_PHASE").unwrap_or_default();
    match sim::act(file, &play::cue(), &phase) {
        Ok(()) => Ok(CommandOutput::done()),
        Err(error) => Err(Failure::new(1, "sim", error.to_string(), "")),
    }
}
