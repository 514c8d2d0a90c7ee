//! Text that stays text inside HTML, Markdown and JSON.

use std::fmt::Write as _;
use std::ops::Range;

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
    for (at, c) in text.char_indices() {
        let after = &text[at + c.len_utf8()..];
        match c {
            '#' => out.push_str("\\#"),
            // A line that begins with it can be a command to the code host.
            '/' if out.is_empty() => out.push_str("\\/"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '!' | '$' => out.extend(['\\', c]),
            c => push_text(out, c),
        }
        if c == '#' || links(before, c, after) {
            out.push_str(BREAK);
        }
        before = [before[1], before[2], c];
    }
}

/// Whether a code host could take what begins or goes on here for a mention, a reference or an address: `@name`, `#1`, `!1`,
/// `$1`, `%1`, `&1`, `~1`, `[issue:1]`, `GH-1`, `://` and `www.`.
fn links(before: [char; 3], c: char, after: &str) -> bool {
    let follows = |is: fn(&char) -> bool| after.chars().next().is_some_and(|next| is(&next));
    match c {
        '@' => true,
        '#' | '!' | '$' | '%' | '&' | '~' => follows(char::is_ascii_digit),
        '[' => after.trim_start_matches(|c: char| c.is_ascii_lowercase() || c == '_').starts_with(':'),
        ':' => follows(|next| *next == '/'),
        '.' => before.iter().all(|c| matches!(c, 'w' | 'W')),
        '-' => matches!(before[1..], ['G' | 'g', 'H' | 'h']),
        _ => false,
    }
}

/// A Markdown document of ours in which a code host finds nobody to notify, nothing to link and no command: mentions,
/// references to issues and addresses in it stay text. Code is left as it is where there is no doubt that it is code.
pub fn unlinked(document: &str) -> String {
    let mut out = String::with_capacity(document.len() + 64);
    let mut fence: Option<usize> = None;
    let mut block: Vec<&str> = Vec::new();
    for line in document.split_inclusive('\n') {
        let marks = fence_in(line);
        match (fence, marks) {
            (Some(open), Some((ticks, true))) if ticks >= open => fence = None,
            (Some(_), _) => {}
            (None, Some((ticks, _))) => {
                push_block(&mut out, &mut block);
                fence = Some(ticks);
            }
            (None, None) => {
                block.push(line);
                if line.trim().is_empty() {
                    push_block(&mut out, &mut block);
                }
                continue;
            }
        }
        out.push_str(line);
    }
    push_block(&mut out, &mut block);
    out
}

/// The backticks of a line that begins or ends a block of code, and whether it may end one.
fn fence_in(line: &str) -> Option<(usize, bool)> {
    let inner = line.trim_start_matches(' ');
    let rest = inner.trim_start_matches('`');
    let ticks = inner.len() - rest.len();
    let is_fence = line.len() - inner.len() < 4 && ticks >= 3 && !rest.contains('`');
    is_fence.then(|| (ticks, rest.trim().is_empty()))
}

/// Lines that belong together. A span of code may begin in one and end in another, so none is taken for code unless all
/// begin and end in their line.
fn push_block(out: &mut String, block: &mut Vec<&str>) {
    let spans: Option<Vec<Vec<Range<usize>>>> = block.iter().map(|line| spans_in(line)).collect();
    for (at, line) in block.iter().enumerate() {
        if line.trim_start().starts_with('/') {
            out.push('\\');
        }
        let mut from = 0;
        let known = spans.as_ref().and_then(|spans| spans.get(at)).map(Vec::as_slice).unwrap_or_default();
        for span in known {
            push_unlinked(out, &line[from..span.start]);
            out.push_str(&line[span.clone()]);
            from = span.end;
        }
        push_unlinked(out, &line[from..]);
    }
    block.clear();
}

/// The spans of code in a line of Markdown, with their backticks; nothing if one of them does not end in it. One with a
/// bar is none: in a table, the bar would end the cell before it.
fn spans_in(line: &str) -> Option<Vec<Range<usize>>> {
    let run = |at: usize| line[at..].len() - line[at..].trim_start_matches('`').len();
    let mut spans = Vec::new();
    let mut at = 0;
    while let Some(found) = line[at..].find(['`', '\\']) {
        let begin = at + found;
        let long = run(begin);
        if long == 0 {
            let escaped = line[begin + 1..].chars().next().map_or(0, char::len_utf8);
            at = begin + 1 + escaped;
            continue;
        }
        let mut end = begin + long;
        loop {
            end += line[end..].find('`')?;
            let closing = run(end);
            end += closing;
            if closing == long {
                break;
            }
        }
        if line[begin..end].replace("\\|", "").contains('|') {
            return None;
        }
        spans.push(begin..end);
        at = end;
    }
    Some(spans)
}

fn push_unlinked(out: &mut String, text: &str) {
    let mut before = ['\0'; 3];
    for (at, c) in text.char_indices() {
        out.push(c);
        if links(before, c, &text[at + c.len_utf8()..]) {
            out.push_str(BREAK);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f_14_a_posted_document_notifies_nobody_and_links_nothing() {
        let rows = [
            ("cc @me, see #12 and GH-3", "cc @&#8203;me, see #&#8203;12 and GH-&#8203;3"),
            ("https://e.org www.e.org", "https:&#8203;//e.org www.&#8203;e.org"),
            ("# Heading\n## 2: b", "# Heading\n## 2: b"),
            ("`@me #12` @you", "`@me #12` @&#8203;you"),
            ("```text\n@me #1\n```\n@you", "```text\n@me #1\n```\n@&#8203;you"),
            ("````\n```\n@me\n````\n@you", "````\n```\n@me\n````\n@&#8203;you"),
            ("see !1, &2, %3 and [issue:4]", "see !&#8203;1, &&#8203;2, %&#8203;3 and [&#8203;issue:4]"),
            // What a code host does not read as code is none, and what it reads as code is left alone.
            ("\\`@me\\`", "\\`@&#8203;me\\`"),
            ("\\\\`@me`", "\\\\`@me`"),
            ("`` a ` @me `` @you", "`` a ` @me `` @&#8203;you"),
            ("a ` b\n` @me ` c", "a ` b\n` @&#8203;me ` c"),
            ("a ` b\n\n` @me ` c", "a ` b\n\n` @me ` c"),
            ("| ` | @me ` |", "| ` | @&#8203;me ` |"),
            ("| `a\\|b @me` |", "| `a\\|b @me` |"),
            ("    ```\n@me", "    ```\n@&#8203;me"),
            ("```a`b\n@me", "```a`b\n@&#8203;me"),
            ("```\n```js\n@me\n```\n@you", "```\n```js\n@me\n```\n@&#8203;you"),
            // A command to a code host stands at the beginning of a line.
            ("/merge\n a /b\n/close @me", "\\/merge\n a /b\n\\/close @&#8203;me"),
        ];
        for (text, expected) in rows {
            assert_eq!(unlinked(text), expected);
        }
    }
}
