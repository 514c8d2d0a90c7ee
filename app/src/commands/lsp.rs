//! `archeflow lsp`: a language server on standard input and output, for editors.

use crate::commands::process_env;
use crate::commands::trust::only_from_outside;
use crate::failure::Failure;
use crate::lsp;
use crate::output::{CommandOutput, stream};

pub(crate) fn run() -> Result<CommandOutput, Failure> {
    // Findings can be accepted there, which only people do.
    only_from_outside("serve an editor")?;
    let ended = lsp::serve(process_env()?, stream());
    ended
        .map(|code| CommandOutput::done().with_code(code))
        .map_err(|why| Failure::new(30, "environment", why, ""))
}
