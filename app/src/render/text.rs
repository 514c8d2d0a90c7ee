//! The terminal's colours and widths. Other people's text is filtered by [`archeflow_core::text`].

use std::io::IsTerminal;

use archeflow_core::model::Phase;
use archeflow_core::projections::view::Tone;
pub(crate) use archeflow_core::text::{cut, pad, pad_after, safe, safe_line};
use archeflow_host::platform::terminal::columns;
use crossterm::style::{Attribute, ContentStyle, Stylize};

use super::palette::{self, TextStyle};

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

    fn styled(self, style: TextStyle, text: &str) -> String {
        if style == TextStyle::default() { text.to_owned() } else { self.wrap(style.in_lines(), text) }
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.wrap(ContentStyle::new().attribute(Attribute::Bold), text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.wrap(ContentStyle::new().attribute(Attribute::Dim), text)
    }

    /// What can be typed.
    pub(crate) fn accent(self, text: &str) -> String {
        self.styled(palette::ACCENT, text)
    }

    pub(crate) fn tone(self, tone: Tone, text: &str) -> String {
        self.styled(palette::of_tone(tone), text)
    }

    /// A tag such as `[Plan]` in the style of its phase.
    pub(crate) fn tag(self, tag: &str) -> String {
        let phase = match tag {
            "[Plan]" => Phase::Plan,
            "[Do]" | "[Implement]" => Phase::Do,
            "[Check]" | "[Spec]" | "[Quality]" => Phase::Check,
            _ => Phase::Act,
        };
        self.tag_of(phase, tag)
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

    /// A word in the style of a phase.
    pub(crate) fn tag_of(self, phase: Phase, word: &str) -> String {
        self.styled(palette::of_phase(phase), word)
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
