//! The page of a break as HTML. It is Markdown that the program wrote itself, so a handful of shapes is enough:
//! headings, tables, lists, paragraphs; bold, emphasis and code within a line. Whatever else stands there is text.

use std::fmt::Write;

use super::most;
use archeflow_core::text::{html, short_line};

pub(super) fn draw(page: &str) -> String {
    let mut out = String::new();
    let page: String = page.chars().take(most::PAGE).collect();
    let mut lines = page.lines().peekable();
    while let Some(first) = lines.next() {
        let text = first.trim();
        if text.is_empty() {
            continue;
        }
        if let Some(title) = text.strip_prefix("### ") {
            let _ = write!(out, "<h4>{}</h4>", inline(title));
        } else if let Some(title) = text.strip_prefix("## ") {
            let _ = write!(out, "<h3>{}</h3>", inline(title));
        } else if text.starts_with("# ") {
            // The section has a title already.
        } else if text.starts_with('|') {
            let mut rows = vec![text];
            while let Some(row) = lines.next_if(|row| row.trim().starts_with('|')) {
                rows.push(row.trim());
            }
            table(&mut out, &rows);
        } else if text.starts_with("- ") {
            let mut items = vec![text.to_owned()];
            while let Some(more) = lines.next_if(|more| more.starts_with("- ") || more.starts_with("  ")) {
                match (more.starts_with("- "), items.last_mut()) {
                    (false, Some(item)) => *item = format!("{item}\n{}", more.trim()),
                    (true, _) | (false, None) => items.push(more.to_owned()),
                }
            }
            list(&mut out, &items);
        } else {
            let _ = write!(out, "<p>{}</p>", inline(text));
        }
    }
    out
}

fn table(out: &mut String, rows: &[&str]) {
    out.push_str("<div class=\"wide\"><table>");
    for (n, row) in rows.iter().enumerate().filter(|(n, row)| *n != 1 || !row.starts_with("|---")) {
        let cell = if n == 0 { "th" } else { "td" };
        out.push_str("<tr>");
        for text in cells(row) {
            let _ = write!(out, "<{cell}>{}</{cell}>", inline(&text));
        }
        out.push_str("</tr>");
    }
    out.push_str("</table></div>");
}

/// The cells of a row; an escaped bar is text.
fn cells(row: &str) -> Vec<String> {
    let inner = row.trim().trim_start_matches('|').trim_end_matches('|');
    let mut cells = vec![String::new()];
    let mut chars = inner.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if chars.peek() == Some(&'|') => {
                cells.last_mut().into_iter().for_each(|cell| cell.push('|'));
                chars.next();
            }
            '|' => cells.push(String::new()),
            c => cells.last_mut().into_iter().for_each(|cell| cell.push(c)),
        }
    }
    cells.iter().map(|cell| cell.trim().to_owned()).collect()
}

fn list(out: &mut String, items: &[String]) {
    out.push_str("<ul>");
    for item in items {
        let mut parts = item.trim_start_matches("- ").lines();
        let _ = write!(out, "<li>{}", inline(parts.next().unwrap_or_default()));
        for more in parts {
            let _ = write!(out, "<br>{}", inline(more));
        }
        out.push_str("</li>");
    }
    out.push_str("</ul>");
}

/// Code, bold and emphasis; everything else is escaped text. Marks that are never closed are text, too.
fn inline(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['`', '*']) {
        let (before, from) = rest.split_at(at);
        out.push_str(&line_of(before));
        let (mark, tag) = if from.starts_with('`') {
            ("`", "code")
        } else if from.starts_with("**") {
            ("**", "strong")
        } else {
            ("*", "em")
        };
        let inner = &from[mark.len()..];
        match inner.find(mark).filter(|end| *end > 0) {
            Some(end) => {
                let _ = write!(out, "<{tag}>{}</{tag}>", line_of(&inner[..end]));
                rest = &inner[end + mark.len()..];
            }
            None => {
                out.push_str(mark);
                rest = inner;
            }
        }
    }
    out.push_str(&line_of(rest));
    out
}

/// Blanks at the ends matter between pieces of one line.
fn line_of(text: &str) -> String {
    let ends = |there: bool| if there { " " } else { "" };
    let inner = html(&short_line(text, most::PARAGRAPH));
    if inner.is_empty() {
        return ends(!text.is_empty()).to_owned();
    }
    format!("{}{inner}{}", ends(text.starts_with(' ')), ends(text.ends_with(' ')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn af_159_the_page_keeps_its_shapes_and_nothing_else() {
        for (markdown, html) in [
            ("# T\n\nA **b** `c` *d:* e", "<p>A <strong>b</strong> <code>c</code> <em>d:</em> e</p>"),
            ("## T\n### `a:b`", "<h3>T</h3><h4><code>a:b</code></h4>"),
            ("- one:\n  `x`\n- two", "<ul><li>one:<br><code>x</code></li><li>two</li></ul>"),
            (
                "| a | b |\n|---|---|\n| 1 \\| 2 | `<i>` |",
                "<div class=\"wide\"><table><tr><th>a</th><th>b</th></tr><tr><td>1 | 2</td><td><code>&lt;i&gt;</code></td></tr></table></div>",
            ),
            ("2 * 3 ` 4", "<p>2 * 3 ` 4</p>"),
            (
                "<script>x</script> [a](javascript:b)",
                "<p>&lt;script&gt;x&lt;/script&gt; [a](javascript:b)</p>",
            ),
            ("**<b>**", "<p><strong>&lt;b&gt;</strong></p>"),
        ] {
            assert_eq!(draw(markdown), html);
        }
    }
}
