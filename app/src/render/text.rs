//! The terminal's colours and widths. Other people's text is filtered by [`archeflow_core::text`].

use std::io::IsTerminal;

use archeflow_core::model::Phase;
use archeflow_core::projections::view::Tone;
pub(crate) use archeflow_core::text::{cut, pad, pad_after, safe, safe_line};
use archeflow_host::platform::terminal::columns;

/// What the program prints as JSON on a terminal.
pub(crate) fn safe_json(value: &serde_json::Value) -> String {
    archeflow_core::text::json(&value.to_string())
}

/// Colours, or none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint(pub(crate) bool);

impl Paint {
    pub(crate) fn for_stderr() -> Paint {
        Paint(Paint::wanted() && std::io::stderr().is_terminal())
    }

    fn wrap(self, code: &str, text: &str) -> String {
        if self.0 { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.wrap("2", text)
    }

    pub(crate) fn cyan(self, text: &str) -> String {
        self.wrap("36", text)
    }

    pub(crate) fn tone(self, tone: Tone, text: &str) -> String {
        match tone {
            Tone::Plain => text.to_owned(),
            Tone::Good => self.wrap("32", text),
            Tone::Caution => self.wrap("33", text),
            Tone::Bad => self.wrap("31", text),
        }
    }

    /// The colours of the phases: plan blue, do green, check yellow, act magenta.
    pub(crate) fn tag(self, tag: &str) -> String {
        let code = match tag {
            "[Plan]" => "34",
            "[Do]" | "[Implement]" => "32",
            "[Check]" | "[Spec]" | "[Quality]" => "33",
            _ => "35",
        };
        self.wrap(code, tag)
    }
}

impl Paint {
    pub(crate) fn for_stdout() -> Paint {
        Paint(Paint::wanted() && std::io::stdout().is_terminal())
    }

    fn wanted() -> bool {
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        !plain
    }

    /// A word in the colour of a phase.
    pub(crate) fn tag_of(self, phase: Phase, word: &str) -> String {
        let code = match phase {
            Phase::Plan => "34",
            Phase::Do => "32",
            Phase::Check => "33",
            Phase::Act => "35",
        };
        self.wrap(code, word)
    }
}

/// The terminal's width; 80 when nobody knows.
pub(crate) fn width() -> usize {
    columns(std::io::stderr()).unwrap_or(80).clamp(20, 400)
}

/// The width of standard output, if it is a terminal.
pub(crate) fn stdout_width() -> Option<usize> {
    columns(std::io::stdout()).map(|columns| columns.clamp(20, 400))
}
