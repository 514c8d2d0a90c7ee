//! The terminal's colours and widths. Other people's text is filtered by [`archeflow_core::text`].

use std::io::IsTerminal;

use archeflow_core::model::Phase;
use archeflow_core::projections::view::Tone;
pub(crate) use archeflow_core::text::{cut, pad, pad_after, safe, safe_line};
use archeflow_host::platform::terminal::columns;
use crossterm::style::{Attribute, Color, ContentStyle, Stylize};

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

    fn wrap(self, style: ContentStyle, text: &str) -> String {
        if self.0 { style.apply(text).to_string() } else { text.to_owned() }
    }

    /// One of the six colours that every terminal has; crossterm calls them the dark ones.
    fn colour(self, colour: Color, text: &str) -> String {
        self.wrap(ContentStyle::new().with(colour), text)
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.wrap(ContentStyle::new().attribute(Attribute::Bold), text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.wrap(ContentStyle::new().attribute(Attribute::Dim), text)
    }

    pub(crate) fn cyan(self, text: &str) -> String {
        self.colour(Color::DarkCyan, text)
    }

    pub(crate) fn tone(self, tone: Tone, text: &str) -> String {
        match tone {
            Tone::Plain => text.to_owned(),
            Tone::Good => self.colour(Color::DarkGreen, text),
            Tone::Caution => self.colour(Color::DarkYellow, text),
            Tone::Bad => self.colour(Color::DarkRed, text),
        }
    }

    /// The colours of the phases: plan blue, do green, check yellow, act magenta.
    pub(crate) fn tag(self, tag: &str) -> String {
        let colour = match tag {
            "[Plan]" => Color::DarkBlue,
            "[Do]" | "[Implement]" => Color::DarkGreen,
            "[Check]" | "[Spec]" | "[Quality]" => Color::DarkYellow,
            _ => Color::DarkMagenta,
        };
        self.colour(colour, tag)
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
        let colour = match phase {
            Phase::Plan => Color::DarkBlue,
            Phase::Do => Color::DarkGreen,
            Phase::Check => Color::DarkYellow,
            Phase::Act => Color::DarkMagenta,
        };
        self.colour(colour, word)
    }
}

/// The terminal's width; 80 if unknown.
pub(crate) fn width() -> usize {
    columns(std::io::stderr()).unwrap_or(80).clamp(20, 400)
}

/// The width of standard output, if it is a terminal.
pub(crate) fn stdout_width() -> Option<usize> {
    columns(std::io::stdout()).map(|columns| columns.clamp(20, 400))
}
