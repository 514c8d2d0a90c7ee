//! The result of a command, and the one place that prints it.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;

use archeflow_host::store::files;

use crate::failure::Failure;
use crate::render::text::{safe_json, safe_line};

/// What a command returns: what goes to standard output, and the exit code.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    code: u8,
    body: Body,
    /// The command that prints the result again, if it is on disk.
    again: Option<String>,
    /// What may take long and changes nothing about the result.
    afterwards: Option<Afterwards>,
}

pub(crate) struct Afterwards(Box<dyn FnOnce()>);

impl Afterwards {
    pub(crate) fn perform(self) {
        (self.0)();
    }
}

impl fmt::Debug for Afterwards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Afterwards").finish_non_exhaustive()
    }
}

#[derive(Debug)]
enum Body {
    Nothing,
    /// For people, or a document in the format they asked for.
    Text(String),
    /// For `--json`.
    Json(serde_json::Value),
}

/// The reader went away: the exit code of a program ended by SIGPIPE.
const NO_READER: u8 = 128 + 13;
const ENVIRONMENT: u8 = 30;

impl CommandOutput {
    /// Success, and nothing to print.
    pub(crate) fn done() -> CommandOutput {
        CommandOutput { code: 0, body: Body::Nothing, again: None, afterwards: None }
    }

    pub(crate) fn text(text: String) -> CommandOutput {
        CommandOutput { code: 0, body: Body::Text(text), again: None, afterwards: None }
    }

    pub(crate) fn json(value: serde_json::Value) -> CommandOutput {
        CommandOutput { code: 0, body: Body::Json(value), again: None, afterwards: None }
    }

    pub(crate) fn with_code(self, code: u8) -> CommandOutput {
        CommandOutput { code, ..self }
    }

    /// The result is recorded, and this command prints it again.
    pub(crate) fn recorded(self, again: String) -> CommandOutput {
        CommandOutput { again: Some(again), ..self }
    }

    /// To be done once the result is printed.
    pub(crate) fn and_then(self, act: impl FnOnce() + 'static) -> CommandOutput {
        CommandOutput { afterwards: Some(Afterwards(Box::new(act))), ..self }
    }

    pub(crate) fn afterwards(&mut self) -> Option<Afterwards> {
        self.afterwards.take()
    }

    /// Prints it and gives the exit code of the program.
    pub(crate) fn print(self) -> u8 {
        let text = match self.body {
            Body::Nothing => return self.code,
            Body::Text(text) => text,
            Body::Json(value) => format!("{}\n", safe_json(&value)),
        };
        match write(&mut io::stdout().lock(), &text) {
            Ok(()) => self.code,
            Err(error) => lost(&error, self.code, self.again.as_deref()),
        }
    }
}

/// Text of a process that answers line by line, such as an agent; the caller prints the end with [`CommandOutput`].
pub(crate) fn line(text: &str) -> io::Result<()> {
    write(&mut io::stdout().lock(), text)
}

/// Standard output for a protocol that writes it itself.
pub(crate) fn stream() -> impl Write {
    io::stdout()
}

/// Writes a document to the file that `--output` names. `again` is the command that prints it once more.
pub(crate) fn to_file(path: &Path, bytes: &[u8], again: &str) -> Result<(), Failure> {
    files::write_atomic(path, bytes).map_err(|error| {
        let failure = Failure::from(error);
        let hint = format!("Nothing of the run is lost. When that is right: {again}");
        Failure { hint, ..failure }
    })
}

/// The exit code where standard output could not take the result: never success. A closed pipe (`| head -1`) is the
/// reader's choice and ends quietly; anything else, such as a full disk, is reported.
pub(crate) fn lost(error: &io::Error, code: u8, again: Option<&str>) -> u8 {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return if code == 0 { NO_READER } else { code };
    }
    let again = again.map(|again| format!("; it is recorded: {}", safe_line(again))).unwrap_or_default();
    tell!("error: the result could not be written to standard output: {error}{again}");
    ENVIRONMENT
}

fn write(to: &mut impl Write, text: &str) -> io::Result<()> {
    to.write_all(text.as_bytes())?;
    to.flush()
}
