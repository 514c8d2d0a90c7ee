//! The result of a command, and the one place that prints it.

use std::io::{self, Write};

use crate::render::text::safe_json;

/// What a command returns: what goes to standard output, and the exit code.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    code: u8,
    body: Body,
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
        CommandOutput { code: 0, body: Body::Nothing }
    }

    pub(crate) fn text(text: String) -> CommandOutput {
        CommandOutput { code: 0, body: Body::Text(text) }
    }

    pub(crate) fn json(value: serde_json::Value) -> CommandOutput {
        CommandOutput { code: 0, body: Body::Json(value) }
    }

    pub(crate) fn with_code(self, code: u8) -> CommandOutput {
        CommandOutput { code, ..self }
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
            Err(error) => lost(&error, self.code),
        }
    }
}

/// The exit code where standard output could not take the result: never success. A closed pipe (`| head -1`) is the
/// reader's choice and ends quietly; anything else, such as a full disk, is reported.
pub(crate) fn lost(error: &io::Error, code: u8) -> u8 {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return if code == 0 { NO_READER } else { code };
    }
    tell!("error: the result could not be written to standard output: {error}");
    ENVIRONMENT
}

fn write(to: &mut impl Write, text: &str) -> io::Result<()> {
    to.write_all(text.as_bytes())?;
    to.flush()
}
