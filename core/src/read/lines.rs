//! Distinguishes an agent's own text from text that it quotes.
//!
//! Shown is: a code fence (``` or ~~~ of any length, up to its close or the end of the answer), a block quote, indented
//! code, a diff (a hunk after its `@@` line, or a line that begins with `+` and no space), a comment in HTML, and what is in
//! `<pre>` or `<blockquote>`. Only a [`Kind::Plain`] line can be a status, a verdict, a heading or a row.

use super::text::{bullet, head, tail};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineKind {
    Plain,
    Blank,
    /// The line that opens a fence; its info string is still on it.
    Open,
    Fenced,
    Close,
    Quote,
    Indented,
    Diff,
    Comment,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct TextLine<'a> {
    /// Where the line begins in the scanned text.
    pub start: usize,
    /// Without its line end.
    pub text: &'a str,
    /// In columns, a tab reaching to the next multiple of four.
    pub indent: u32,
    pub kind: LineKind,
}

/// The lines of a text. `\n`, `\r\n` and a lone `\r` end one.
pub(crate) fn scan(text: &str) -> Vec<TextLine<'_>> {
    let mut scanner = Scanner::default();
    let mut lines = Vec::new();
    let mut start = 0;
    while start < text.len() {
        let rest = tail(text, start);
        let end = memchr::memchr2(b'\n', b'\r', rest.as_bytes()).unwrap_or(rest.len());
        let content = head(rest, end);
        let ending = if tail(rest, end).starts_with("\r\n") { 2 } else { 1 };
        let indent = indent(content);
        lines.push(TextLine { start, text: content, indent, kind: scanner.kind(content, indent) });
        start += end + ending;
    }
    lines
}

fn indent(text: &str) -> u32 {
    let mut columns: u32 = 0;
    for byte in text.bytes() {
        columns = match byte {
            b' ' => columns.saturating_add(1),
            b'\t' => (columns / 4).saturating_add(1).saturating_mul(4),
            _ => break,
        };
    }
    columns
}

struct Fence {
    mark: char,
    length: usize,
    indent: u32,
    /// It shows a diff, in which a fence of the file begins with the space of an unchanged line.
    diff: bool,
}

#[derive(Default)]
struct Scanner {
    fence: Option<Fence>,
    comment: bool,
    /// The tag that ends a quotation in HTML.
    element: Option<&'static str>,
    hunk: bool,
    /// The column at which the innermost list item's text begins.
    list: Option<u32>,
    /// The line before was own text, so an indented line continues it.
    paragraph: bool,
}

impl Scanner {
    fn kind(&mut self, text: &str, indent: u32) -> LineKind {
        let kind = self.judge(text, indent);
        self.paragraph = matches!(kind, LineKind::Plain | LineKind::Quote);
        kind
    }

    fn judge(&mut self, text: &str, indent: u32) -> LineKind {
        let bare = text.trim();
        if let Some(fence) = &self.fence {
            let closed = closes(fence, bare, indent);
            if closed {
                self.fence = None;
            }
            return if closed { LineKind::Close } else { LineKind::Fenced };
        }
        if self.comment {
            self.comment = !text.contains("-->");
            return LineKind::Comment;
        }
        if let Some(end) = self.element {
            self.element = (!text.to_ascii_lowercase().contains(end)).then_some(end);
            return LineKind::Comment;
        }
        if bare.is_empty() {
            // Ends a hunk too: what follows may be the reviewer speaking again.
            self.hunk = false;
            return LineKind::Blank;
        }
        if self.is_diff(text) {
            return LineKind::Diff;
        }
        let base = self.list.unwrap_or(0);
        if indent >= base.saturating_add(4) && !self.paragraph {
            return LineKind::Indented;
        }
        self.classify_text(bare, indent)
    }

    fn is_diff(&mut self, text: &str) -> bool {
        if text.starts_with("@@ -") {
            self.hunk = true;
            return true;
        }
        self.hunk = self.hunk && text.starts_with(['+', '-', ' ', '\\']);
        let added = text.strip_prefix('+').is_some_and(|rest| !rest.starts_with([' ', '\t']));
        self.hunk || added || text.starts_with("diff --git ")
    }

    fn classify_text(&mut self, bare: &str, indent: u32) -> LineKind {
        let width = bullet(bare);
        match width {
            Some(width) => self.list = Some(indent.saturating_add(u32::try_from(width).unwrap_or(4))),
            None if !self.paragraph && self.list.is_some_and(|column| indent < column) => self.list = None,
            None => {}
        }
        let inner = width.map_or(bare, |width| tail(bare, width));
        if inner.starts_with('>') {
            return LineKind::Quote;
        }
        if let Some(comment) = inner.strip_prefix("<!--") {
            self.comment = !comment.contains("-->");
            return LineKind::Comment;
        }
        if inner.starts_with('<') {
            let lower = inner.to_ascii_lowercase();
            if let Some((_, end)) = QUOTATIONS.iter().find(|(start, _)| lower.starts_with(start)) {
                self.element = (!lower.contains(end)).then_some(end);
                return LineKind::Comment;
            }
        }
        self.fence = opens(inner, indent);
        if self.fence.is_some() { LineKind::Open } else { LineKind::Plain }
    }
}

/// Elements of HTML that show somebody else's words.
const QUOTATIONS: [(&str, &str); 2] = [("<pre", "</pre"), ("<blockquote", "</blockquote")];

fn opens(text: &str, indent: u32) -> Option<Fence> {
    let mark = text.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let info = text.trim_start_matches(mark);
    let length = text.len() - info.len();
    let inline = mark == '`' && info.contains('`');
    let diff = matches!(info.trim().to_ascii_lowercase().as_str(), "diff" | "patch" | "udiff");
    (length >= 3 && !inline).then_some(Fence { mark, length, indent, diff })
}

fn closes(fence: &Fence, bare: &str, indent: u32) -> bool {
    bare.len() >= fence.length
        && indent <= fence.indent.saturating_add(if fence.diff { 0 } else { 3 })
        && bare.chars().all(|c| c == fence.mark)
}

/// What closes a text that ends within a fence or a comment, so that nothing after it is swallowed; usually nothing.
pub(crate) fn closed(text: &str) -> String {
    let mut scanner = Scanner::default();
    for line in text.lines() {
        scanner.kind(line, indent(line));
    }
    match &scanner.fence {
        Some(fence) => format!("{}\n", fence.mark.to_string().repeat(fence.length)),
        None if scanner.comment => "-->\n".to_owned(),
        None if scanner.element.is_some() => format!("{}>\n", scanner.element.unwrap_or_default()),
        None => String::new(),
    }
}

/// The info string of a fence's first line, in lower case: `json`, `diff`, or nothing.
pub(crate) fn info(open: &str) -> String {
    let bare = open.trim();
    let inner = bullet(bare).map_or(bare, |width| tail(bare, width));
    let info = inner.trim_start_matches(['`', '~']).trim();
    info.split(|c: char| c.is_whitespace() || c == ',').next().unwrap_or("").to_ascii_lowercase()
}
