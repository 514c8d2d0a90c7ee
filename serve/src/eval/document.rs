//! Sections of text, tables and pictures, drawn as Markdown or as HTML. All text in here is plain; drawing escapes it.

use std::fmt::Write;

use archeflow_core::text::{markdown, short_line};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::most;

/// The look of all reports, and what only evaluations need.
const STYLE: &str = concat!(include_str!("../report/style.css"), include_str!("style.css"));

/// An evaluation, or two of them, ready to be drawn.
pub struct Document {
    pub(super) eyebrow: String,
    pub(super) title: String,
    /// The most important result, in a sentence or two.
    pub(super) lead: String,
    /// What a reader must know before any figure.
    pub(super) warnings: Vec<String>,
    /// Name, value and more about it.
    pub(super) facts: Vec<(&'static str, String, String)>,
    pub(super) sections: Vec<Section>,
    pub(super) foot: String,
}

pub(super) struct Section {
    pub(super) id: &'static str,
    pub(super) title: String,
    pub(super) blocks: Vec<Block>,
}

pub(super) enum Block {
    Text(String),
    List(Vec<String>),
    Table(Table),
    /// In HTML only: a table has the same figures.
    Picture(Picture),
}

pub(super) struct Table {
    /// Says what the table shows, for readers that can't see where it is.
    pub(super) caption: String,
    pub(super) head: Vec<Head>,
    pub(super) rows: Vec<Vec<Cell>>,
    /// The number of rows that are not shown.
    pub(super) left_out: usize,
    pub(super) class: &'static str,
}

pub(super) struct Head {
    pub(super) text: String,
    pub(super) is_number: bool,
}

#[derive(Default)]
pub(super) struct Cell {
    pub(super) text: String,
    /// The interval or the reason, in small letters.
    pub(super) more: String,
    /// The look of the cell.
    pub(super) class: &'static str,
}

pub(super) struct Picture {
    pub(super) svg: Markup,
    pub(super) caption: String,
    /// What the colours mean: class and word.
    pub(super) key: Vec<(&'static str, &'static str)>,
}

pub(super) fn words(text: impl Into<String>) -> Head {
    Head { text: text.into(), is_number: false }
}

pub(super) fn number(text: impl Into<String>) -> Head {
    Head { text: text.into(), is_number: true }
}

pub(super) fn cell(text: impl Into<String>) -> Cell {
    Cell { text: text.into(), ..Cell::default() }
}

pub(super) fn cell_with(text: impl Into<String>, more: impl Into<String>) -> Cell {
    Cell { text: text.into(), more: more.into(), class: "" }
}

impl Document {
    pub fn markdown(&self) -> String {
        let mut out = format!("# {}\n", markdown(&self.title, most::TEXT));
        for warning in &self.warnings {
            let _ = write!(out, "\n> **{}**\n", markdown(warning, most::TEXT));
        }
        let _ = write!(out, "\n{}\n\n", markdown(&self.lead, 4 * most::TEXT));
        for (name, value, more) in &self.facts {
            let more =
                if more.is_empty() { String::new() } else { format!(" ({})", markdown(more, most::TEXT)) };
            let _ = writeln!(out, "- **{name}:** {}{more}", markdown(value, most::TEXT));
        }
        for section in &self.sections {
            let _ = write!(out, "\n## {}\n", markdown(&section.title, most::TEXT));
            for block in &section.blocks {
                markdown_block(&mut out, block);
            }
        }
        let _ = write!(out, "\n---\n\n{}\n", markdown(&self.foot, most::TEXT));
        out
    }

    /// One page without scripts or requests; the policy in its head enforces that.
    pub fn html(&self) -> String {
        let policy = format!(
            "default-src 'none'; style-src '{}'; base-uri 'none'; form-action 'none'",
            archeflow_core::digest::source(STYLE)
        );
        let page = html! {
            (DOCTYPE) "\n"
            html lang="en" { "\n"
                head { "\n"
                    meta charset="utf-8"; "\n"
                    meta http-equiv="Content-Security-Policy" content=(policy); "\n"
                    meta name="viewport" content="width=device-width, initial-scale=1"; "\n"
                    meta name="color-scheme" content="light dark"; "\n"
                    meta name="referrer" content="no-referrer"; "\n"
                    title { (short_line(&self.title, 120)) } "\n"
                    style { (PreEscaped(STYLE)) } "\n"
                } "\n"
                body.eval { "\n"
                    main { "\n"
                        (self.header())
                        @for section in &self.sections {
                            section id=(section.id) {
                                h2 { (short_line(&section.title, most::TEXT)) } "\n"
                                @for block in &section.blocks { (html_block(block)) "\n" }
                            } "\n"
                        }
                        footer { (short_line(&self.foot, most::TEXT)) } "\n"
                    } "\n"
                } "\n"
            } "\n"
        };
        page.into_string()
    }

    fn header(&self) -> Markup {
        html! {
            header {
                p.eyebrow { (short_line(&self.eyebrow, most::TEXT)) }
                h1.t { (short_line(&self.title, most::TEXT)) }
                @for warning in &self.warnings { p.warning role="note" { (short_line(warning, most::TEXT)) } }
                p.result.t { (short_line(&self.lead, 4 * most::TEXT)) }
                dl.facts {
                    @for (name, value, more) in &self.facts {
                        div {
                            dt { (name) }
                            dd.t { (short_line(value, 120)) }
                            @if !more.is_empty() { dd.more.t { (short_line(more, 200)) } }
                        }
                    }
                }
                nav aria-label="Sections" {
                    @for section in &self.sections {
                        a href={ "#" (section.id) } { (short_line(&section.title, 40)) }
                    }
                }
            }
            "\n"
        }
    }
}

fn markdown_block(out: &mut String, block: &Block) {
    match block {
        Block::Text(text) => {
            let _ = write!(out, "\n{}\n", markdown(text, 4 * most::TEXT));
        }
        Block::List(items) => {
            out.push('\n');
            for item in items {
                let _ = writeln!(out, "- {}", markdown(item, most::TEXT));
            }
        }
        Block::Table(table) => {
            let head: Vec<String> = table.head.iter().map(|head| markdown(&head.text, most::NAME)).collect();
            let rule: Vec<&str> =
                table.head.iter().map(|head| if head.is_number { "--:" } else { "---" }).collect();
            let _ = write!(out, "\n| {} |\n|{}|\n", head.join(" | "), rule.join("|"));
            for row in &table.rows {
                let row: Vec<String> = row.iter().map(markdown_cell).collect();
                let _ = writeln!(out, "| {} |", row.join(" | "));
            }
            if table.left_out > 0 {
                let _ = write!(out, "\n… and {} more.\n", table.left_out);
            }
        }
        Block::Picture(_) => {}
    }
}

fn markdown_cell(cell: &Cell) -> String {
    let text = markdown(&cell.text, most::TEXT);
    if cell.more.is_empty() { text } else { format!("{text} ({})", markdown(&cell.more, most::TEXT)) }
}

fn html_block(block: &Block) -> Markup {
    match block {
        Block::Text(text) => html! { p.said.t { (short_line(text, 4 * most::TEXT)) } },
        Block::List(items) => html! {
            ul.said { @for item in items { li.t { (short_line(item, most::TEXT)) } } }
        },
        Block::Table(table) => html_table(table),
        Block::Picture(picture) => html! {
            figure {
                div.wide tabindex="0" role="group" aria-label=(short_line(&picture.caption, 200)) { (picture.svg) }
                @if !picture.key.is_empty() {
                    p.key { @for (class, word) in &picture.key { span { (swatch(class)) (word) } } }
                }
                figcaption.t { (short_line(&picture.caption, most::TEXT)) }
            }
        },
    }
}

/// A patch of the colour that a word stands for.
fn swatch(class: &str) -> Markup {
    html! {
        svg.swatch viewBox="0 0 12 12" aria-hidden="true" { rect class=(class) width="12" height="12" rx="3" {} }
    }
}

fn html_table(table: &Table) -> Markup {
    let class = |head: Option<&Head>| head.is_some_and(|head| head.is_number).then_some("n");
    html! {
        div.wide tabindex="0" role="group" aria-label=(short_line(&table.caption, 200)) {
            table class=(table.class) {
                caption { (short_line(&table.caption, most::TEXT)) }
                thead {
                    tr {
                        @for head in &table.head {
                            th scope="col" class=[class(Some(head))] { (short_line(&head.text, most::NAME)) }
                        }
                    }
                }
                tbody {
                    @for row in &table.rows {
                        tr {
                            @for (at, one) in row.iter().enumerate() {
                                @if at == 0 {
                                    th scope="row" { (inner(one)) }
                                } @else {
                                    @let shown = [class(table.head.get(at)).unwrap_or_default(), one.class].join(" ");
                                    td class=(shown.trim()) { (inner(one)) }
                                }
                            }
                        }
                    }
                }
            }
        }
        @if table.left_out > 0 { p.soft { "… and " (table.left_out) " more." } }
    }
}

fn inner(cell: &Cell) -> Markup {
    html! {
        (short_line(&cell.text, most::TEXT))
        @if !cell.more.is_empty() { " " span.more { (short_line(&cell.more, most::TEXT)) } }
    }
}
