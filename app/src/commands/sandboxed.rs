//! The hidden commands by which this program runs within a sandbox, or puts one on itself.

use std::ffi::OsString;
use std::process::ExitCode;

use archeflow_host::sandbox;

/// The exit code when nothing was started because there is no sandbox to start it in.
const NO_SANDBOX: u8 = 125;

pub(crate) fn run(arguments: &[OsString]) -> Option<ExitCode> {
    let code = match sandbox::enter(arguments)? {
        Ok(code) => u8::try_from(code & 0xff).unwrap_or(NO_SANDBOX),
        Err(error) => {
            tell!("sandbox: {error}");
            NO_SANDBOX
        }
    };
    Some(ExitCode::from(code))
}
