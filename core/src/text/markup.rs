//! Text that stays text inside HTML, Markdown and JSON.

use std::fmt::Write as _;

use super::lines::{is_unsafe, log_line, one_line, short_line};

/// Text for HTML, in elements and in attributes alike. It is made safe and short before.
pub fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => push_text(&mut out, c),
        }
    }
    out
}

/// `&`, `<` and `>` begin markup in HTML and in Markdown.
fn push_text(out: &mut String, c: char) {
    match c {
        '&' => out.push_str("&amp;"),
        '<' => out.push_str("&lt;"),
        '>' => out.push_str("&gt;"),
        c => out.push(c),
    }
}

/// One line of a Markdown document: what could begin markup, a link, a table cell or HTML is escaped.
pub fn markdown(text: &str, most: usize) -> String {
    let mut out = String::new();
    for c in short_line(text, most).chars() {
        match c {
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '#' | '!' => out.extend(['\\', c]),
            c => push_text(&mut out, c),
        }
    }
    out
}

/// A blank without width, which breaks up what a code host would turn into a link after the markup was read.
const BREAK: &str = "&#8203;";

/// One line of Markdown posted on a code host. Text between backticks stays code. In the rest, markup, mentions,
/// references to issues and addresses stay text.
pub fn markdown_comment(text: &str, most: usize) -> String {
    let text = log_line(text, most);
    let (mut out, mut rest) = (String::with_capacity(text.len() + 16), text.as_str());
    while let Some((before, code, after)) = first_code(rest) {
        push_comment(&mut out, before);
        // A dollar sign beside a backtick begins a formula.
        let beside = |is: bool| if is { BREAK } else { "" };
        out.push_str(beside(before.ends_with('$')));
        push_code(&mut out, code);
        out.push_str(beside(after.starts_with('$')));
        rest = after;
    }
    push_comment(&mut out, rest);
    out
}

/// The text before the first code span, its content, and the text after it. A span is enclosed by two equally long rows
/// of backticks; other backticks are text.
fn first_code(text: &str) -> Option<(&str, &str, &str)> {
    let runs = || {
        let ticks = text.match_indices('`').map(|(at, _)| at);
        let begins = ticks.filter(|at| !text[..*at].ends_with('`'));
        begins.map(|at| (at, text[at..].chars().take_while(|c| *c == '`').count()))
    };
    runs().find_map(|(open, long)| {
        let (close, _) = runs().find(|(at, other)| *at > open && *other == long)?;
        let code = text[open + long..close].trim();
        (!code.is_empty()).then(|| (&text[..open], code, &text[close + long..]))
    })
}

/// Everything between backticks is text, except a backtick. Code is written as HTML, with all of it escaped, where a reader
/// could see it otherwise: a bar ends a table cell, a backslash may escape the closing backtick, and a tag is for no
/// reader to find, however it takes spans apart (R14).
fn push_code(out: &mut String, code: &str) {
    if code.contains(['|', '<']) || code.ends_with('\\') {
        out.push_str("<code>");
        push_comment(out, code);
        out.push_str("</code>");
    } else {
        out.extend(["`", &code.replace('`', "'"), "`"]);
    }
}

fn push_comment(out: &mut String, text: &str) {
    let mut before = ['\0'; 3];
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '@' => out.push_str(&["@", BREAK].concat()),
            '#' => out.push_str(&["\\#", BREAK].concat()),
            ':' if rest.peek() == Some(&'/') => out.push_str(&[":", BREAK].concat()),
            '.' if before.iter().all(|c| matches!(c, 'w' | 'W')) => out.push_str(&[".", BREAK].concat()),
            '-' if matches!(before[1..], ['G' | 'g', 'H' | 'h']) => out.push_str(&["-", BREAK].concat()),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '!' | '$' => out.extend(['\\', c]),
            c => push_text(out, c),
        }
        before = [before[1], before[2], c];
    }
}

/// A code span of Markdown, in a table cell or anywhere else. Empty text is no span.
pub fn code_span(text: &str, most: usize) -> String {
    let text = log_line(text, most).replace('`', "'").replace('|', "\\|");
    if text.is_empty() { String::new() } else { format!("`{text}`") }
}

/// A block of code, fenced by more backticks than are in it.
pub fn code_block(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}text\n{text}{}{fence}\n", if text.ends_with('\n') { "" } else { "\n" })
}

/// One line in a cell of a Markdown table, where a bar would begin the next cell.
pub fn table_cell(text: &str) -> String {
    one_line(text).replace('|', "\\|")
}

/// JSON, already written, in which everything that could drive a terminal or a workflow is an escape. It reads as the
/// same value.
pub fn json(written: &str) -> String {
    let mut text = String::with_capacity(written.len());
    for c in written.chars() {
        let command = c == '[' && text.ends_with("##");
        if command || (is_unsafe(c) && c != '\n') {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(text, "\\u{unit:04x}");
            }
        } else {
            text.push(c);
        }
    }
    text
}
