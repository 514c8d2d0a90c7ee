//! Shows: the archeflow command. Parses arguments, lets the host work, draws the core's projections.

#[macro_use]
mod say;

mod args;
mod commands;
mod failure;
mod lsp;
mod output;
mod render;
mod report;
mod review;

use std::ffi::OsString;
use std::process::ExitCode;

use archeflow_host::notify;
use archeflow_host::platform::{inherited, process::restrict_umask};
use archeflow_host::proc::signals::survive_size_limits;
use archeflow_host::telemetry;

use output::Afterwards;

/// A fold is half memory management: with the system's allocator it takes twice the time (docs/decisions/076).
#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Before there is a thread, and in the part of us inside a sandbox as well.
    inherited::keep_from_programs();
    let arguments: Vec<OsString> = std::env::args_os().collect();
    // Once per process that is started, so it does not wait for the rest.
    if let Some(entered) = commands::sandboxed::run(&arguments) {
        return entered;
    }
    restrict_umask();
    survive_size_limits();
    if let Some(answered) = args::complete::answer(&arguments) {
        return answered;
    }
    #[cfg(feature = "man")]
    if let Some(printed) = commands::man::run(&arguments) {
        return printed;
    }
    let cli = match args::parse(arguments) {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    let json = cli.command.json();
    let (code, afterwards) = match commands::run(cli) {
        Ok(mut output) => {
            let afterwards = output.afterwards();
            (output.print(), afterwards)
        }
        Err(failure) => (failure.report(json), None),
    };
    // The result is printed before messages on their way are waited for.
    for trouble in notify::finish() {
        tell!("warning: {}", render::text::safe_line(&trouble));
    }
    for trouble in telemetry::finish() {
        tell!("warning: {}", render::text::safe_line(&trouble));
    }
    afterwards.into_iter().for_each(Afterwards::perform);
    ExitCode::from(code)
}
