//! A git command that is started before its input is known.

use std::io;
use std::process::{Child, Stdio};

use super::runner::{Error, GitCommand, Output, end, failed};

impl GitCommand {
    /// Starts a command whose input comes later, so that its start costs no waiting.
    pub(super) fn begin(mut self) -> Result<BegunCommand, Error> {
        let child = self.start_with_stdin(Stdio::piped())?;
        Ok(BegunCommand { git: self, child: Some(child) })
    }
}

/// A command that waits for its input.
#[derive(Debug)]
pub(super) struct BegunCommand {
    git: GitCommand,
    child: Option<Child>,
}

impl BegunCommand {
    /// Gives it its input and runs it to its end. A failing exit status is an error.
    pub(super) fn finish(mut self, input: Vec<u8>) -> Result<Output, Error> {
        let what = self.git.what.clone();
        let Some(child) = self.child.take() else {
            return Err(Error::Io { what, source: io::ErrorKind::NotFound.into() });
        };
        let output = self.git.attend(child, input)?;
        if output.status.success() { Ok(output) } else { Err(failed(what, &output)) }
    }
}

impl Drop for BegunCommand {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            end(&mut [child]);
        }
    }
}
