//! The hidden command that runs a play file (`script:`).

use std::path::Path;

use archeflow_host::backends::script::{self, Cue};

use crate::failure::Failure;
use crate::output::CommandOutput;

/// What this process is started for.
pub(super) fn cue() -> Cue {
    let text = |name: &str| std::env::var(name).unwrap_or_default();
    let number = |name: &str| text(name).parse().unwrap_or(0);
    Cue {
        role: text("ARCHEFLOW_ROLE"),
        cycle: number("ARCHEFLOW_CYCLE"),
        purpose: text("ARCHEFLOW_PURPOSE"),
        attempt: number("ARCHEFLOW_ATTEMPT"),
        usage_file: text("ARCHEFLOW_USAGE_FILE").into(),
    }
}

pub(crate) fn run(file: &Path) -> Result<CommandOutput, Failure> {
    match script::play(file, &cue()) {
        Ok(code) => Ok(CommandOutput::done().with_code(u8::try_from(code).unwrap_or(1))),
        Err(error) => Err(Failure::new(1, "play", error.to_string(), "")),
    }
}
