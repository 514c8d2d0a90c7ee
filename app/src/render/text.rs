//! The one filter between other people's text and the terminal (R14), and our own small palette.

use std::io::IsTerminal;

use archeflow_core::model::Phase;
use archeflow_core::persona::hides;
use archeflow_core::view::Tone;
use archeflow_host::platform::terminal::columns;

/// Text of others without anything that could drive a terminal or hide from the reader: no escapes, no controls
/// but line breaks and tabs, no direction marks, no invisible characters.
pub(crate) fn safe(text: &str) -> String {
    text.chars().filter(|c| matches!(c, '\n' | '\t') || !(c.is_control() || hides(*c))).collect()
}

/// The same on one line.
pub(crate) fn safe_line(text: &str) -> String {
    safe(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// JSON in which everything that could drive a terminal is written as an escape. It reads as the same value.
pub(crate) fn safe_json(value: &serde_json::Value) -> String {
    use std::fmt::Write;
    let mut text = String::new();
    for c in value.to_string().chars() {
        if c.is_control() || hides(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(text, "\\u{unit:04x}");
            }
        } else {
            text.push(c);
        }
    }
    text
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

/// Pads by characters, so that colours added later do not count.
pub(crate) fn pad(text: &str, width: usize) -> String {
    let missing = width.saturating_sub(text.chars().count());
    format!("{text}{}", " ".repeat(missing))
}

/// Pads painted text by the width of the plain one.
pub(crate) fn pad_after(plain: &str, painted: &str, width: usize) -> String {
    let missing = width.saturating_sub(plain.chars().count());
    format!("{painted}{}", " ".repeat(missing))
}

/// Cuts to a width, with an ellipsis.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// The terminal's width; 80 when nobody knows.
pub(crate) fn width() -> usize {
    columns(std::io::stderr()).unwrap_or(80).clamp(20, 400)
}

/// The width of standard output, if it is a terminal.
pub(crate) fn stdout_width() -> Option<usize> {
    columns(std::io::stdout()).map(|columns| columns.clamp(20, 400))
}

#[cfg(test)]
mod tests {
    use super::{safe, safe_json, safe_line};

    #[test]
    fn m_d2_nothing_reaches_the_terminal_that_could_drive_it() {
        for (hostile, harmless) in [
            ("\x1b]52;c;aGk=\x07hello", "]52;c;aGk=hello"),
            ("\x1b[2J\x1b[31mred", "[2J[31mred"),
            ("a\u{9b}31mb", "a31mb"),
            ("left\u{202e}right", "leftright"),
            ("zero\u{200b}width", "zerowidth"),
            ("bell\x07 back\x08space\r", "bell backspace"),
            ("plain ✓ ünïcode", "plain ✓ ünïcode"),
        ] {
            assert_eq!(safe(hostile), harmless);
            assert_eq!(safe(&safe(hostile)), safe(hostile));
        }
        assert_eq!(safe_line("two\nlines\tand more"), "two lines and more");
    }

    #[test]
    fn m_d2_json_is_the_same_value_and_harmless() {
        let value = serde_json::json!({ "task": "a\u{9b}31m \u{202e} \u{e0041} \x1b[2J ünïcode \" \\" });
        let text = safe_json(&value);
        assert_eq!(safe(&text), text);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).ok(), Some(value));
    }
}
