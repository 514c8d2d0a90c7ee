//! The page of a break as HTML. It is Markdown that the program wrote itself, so a handful of shapes is enough:
//! headings, tables, lists, paragraphs; bold, emphasis and code within a line. Everything else is text.

use archeflow_core::text::short_line;
use maud::{Markup, html};

use super::most;

pub(crate) fn draw(page: &str) -> Markup {
    let page: String = page.chars().take(most::PAGE).collect();
    let mut lines = page.lines().peekable();
    let mut blocks = Vec::new();
    while let Some(first) = lines.next() {
        let text = first.trim();
        // A title of the first rank is left out: the section has a title already.
        if text.is_empty() || text.starts_with("# ") {
            continue;
        }
        blocks.push(if let Some(title) = text.strip_prefix("### ") {
            html! { h4 { (inline(title)) } }
        } else if let Some(title) = text.strip_prefix("## ") {
            html! { h3 { (inline(title)) } }
        } else if text.starts_with('|') {
            let mut rows = vec![text];
            while let Some(row) = lines.next_if(|row| row.trim().starts_with('|')) {
                rows.push(row.trim());
            }
            table(&rows)
        } else if text.starts_with("- ") {
            let mut items = vec![text.to_owned()];
            while let Some(more) = lines.next_if(|more| more.starts_with("- ") || more.starts_with("  ")) {
                match (more.starts_with("- "), items.last_mut()) {
                    (false, Some(item)) => *item = format!("{item}\n{}", more.trim()),
                    (true, _) | (false, None) => items.push(more.to_owned()),
                }
            }
            list(&items)
        } else {
            html! { p { (inline(text)) } }
        });
    }
    html! { @for block in blocks { (block) } }
}

fn table(rows: &[&str]) -> Markup {
    let shown = rows.iter().enumerate().filter(|(n, row)| *n != 1 || !row.starts_with("|---"));
    html! {
        div.wide {
            table {
                @for (n, row) in shown {
                    tr {
                        @for text in cells(row) {
                            @if n == 0 { th { (inline(&text)) } } @else { td { (inline(&text)) } }
                        }
                    }
                }
            }
        }
    }
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

fn list(items: &[String]) -> Markup {
    html! {
        ul {
            @for item in items {
                li {
                    @for (n, part) in item.trim_start_matches("- ").lines().enumerate() {
                        @if n > 0 { br; }
                        (inline(part))
                    }
                }
            }
        }
    }
}

/// Code, bold and emphasis; everything else is escaped text. Marks that are never closed are text, too.
fn inline(text: &str) -> Markup {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['`', '*']) {
        let (before, from) = rest.split_at(at);
        pieces.push(html! { (piece(before)) });
        let mark = if from.starts_with('`') {
            "`"
        } else if from.starts_with("**") {
            "**"
        } else {
            "*"
        };
        let inner = &from[mark.len()..];
        match inner.find(mark).filter(|end| *end > 0) {
            Some(end) => {
                let within = piece(&inner[..end]);
                pieces.push(match mark {
                    "`" => html! { code { (within) } },
                    "**" => html! { strong { (within) } },
                    _ => html! { em { (within) } },
                });
                rest = &inner[end + mark.len()..];
            }
            None => {
                pieces.push(html! { (mark) });
                rest = inner;
            }
        }
    }
    html! { @for piece in pieces { (piece) } (piece(rest)) }
}

/// Blanks at the ends matter between pieces of one line.
fn piece(text: &str) -> String {
    let ends = |there: bool| if there { " " } else { "" };
    let inner = short_line(text, most::PARAGRAPH);
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
            assert_eq!(draw(markdown).into_string(), html);
        }
    }
}
