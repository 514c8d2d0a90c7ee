//! Between other people's text and a document: bounded, without anything invisible, and escaped for where it goes.

use archeflow_core::persona::hides;

use crate::render::text::{cut, safe, safe_line};

/// One line of bounded length, for HTML. No markup survives, in text and in attributes alike.
pub(super) fn line(text: &str, most: usize) -> String {
    escaped(&cut(&safe_line(&bounded(text, most)), most))
}

/// Several lines, for HTML.
pub(super) fn lines(text: &str, most: usize) -> String {
    escaped(&cut(&safe(&bounded(text, most)), most))
}

/// Text that is harmless already in everything but markup.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// A line of a file, in which nothing is dropped: what would hide is written out, as a reader of a diff must see it.
pub(super) fn laid_open(line: &str, most: usize) -> String {
    let mut out = String::new();
    for (n, c) in line.chars().enumerate() {
        if n == most {
            out.push('…');
            break;
        }
        if c == '\t' || !(c.is_control() || hides(c)) {
            out.push(c);
        } else {
            out.push_str(&format!("⟨U+{:04X}⟩", u32::from(c)));
        }
    }
    out
}

/// One line of Markdown: what could begin markup, a link, a table cell or HTML is escaped.
pub(super) fn marked(text: &str, most: usize) -> String {
    let mut out = String::new();
    for c in cut(&safe_line(&bounded(text, most)), most).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '#' | '!' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

/// A code span of Markdown, in a table cell or anywhere else.
pub(super) fn code(text: &str, most: usize) -> String {
    let text = cut(&safe_line(&bounded(text, most)), most).replace('`', "'").replace('|', "\\|");
    if text.is_empty() { String::new() } else { format!("`{text}`") }
}

/// What is cut anyway is not looked at in full.
fn bounded(text: &str, most: usize) -> String {
    text.chars().take(most.saturating_mul(4)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r14_markup_and_controls_do_not_survive() {
        for (hostile, html, markdown) in [
            (
                "</script><script>x()</script>",
                "&lt;/script&gt;&lt;script&gt;x()&lt;/script&gt;",
                "&lt;/script&gt;&lt;script&gt;x()&lt;/script&gt;",
            ),
            (
                "<img src=x onerror='y'>",
                "&lt;img src=x onerror=&#39;y&#39;&gt;",
                "&lt;img src=x onerror='y'&gt;",
            ),
            ("a\u{1b}[2Jb\u{202e}c\u{200b}d", "a[2Jbcd", "a\\[2Jbcd"),
            ("![x](http://e.example/p)", "![x](http://e.example/p)", "\\!\\[x\\](http://e.example/p)"),
            ("a | b\nc", "a | b c", "a \\| b c"),
            ("&lt;", "&amp;lt;", "&amp;lt;"),
        ] {
            assert_eq!((line(hostile, 400).as_str(), marked(hostile, 400).as_str()), (html, markdown));
        }
        assert_eq!(line(&"x".repeat(1_000_000), 10), "xxxxxxxxx…");
        assert_eq!(code("a`b|c", 9), "`a'b\\|c`");
        assert_eq!(laid_open("a\u{202e}b\r\tc", 9), "a⟨U+202E⟩b⟨U+000D⟩\tc");
        assert_eq!(lines("a\n<b>", 9), "a\n&lt;b&gt;");
    }
}
