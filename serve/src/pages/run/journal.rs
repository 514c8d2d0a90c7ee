//! The journal of a run, line by line. Long ones are cut into pages here, not in the browser.

use archeflow_core::event::Entry;
use archeflow_core::projections::story::dag::label;
use archeflow_core::text::short_line;
use archeflow_host::clock;
use maud::{Markup, html};

use super::super::Fields;
use crate::run_model::RunModel;

/// Lines on one page.
const LINES: usize = 500;

/// The last lines; with `?to=<seq>` those up to that one.
pub(super) fn draw(run: &RunModel, fields: &Fields) -> Markup {
    let last = run.entries.len();
    let to = fields.get("to").and_then(|to| to.parse::<usize>().ok()).map_or(last, |to| to.clamp(1, last));
    let from = to.saturating_sub(LINES);
    let shown = run.entries.get(from..to).unwrap_or(&[]);
    html! {
        section.panel aria-label="Journal" {
            header {
                h2 { "Journal" }
                span.small.muted.num { "lines " (from + 1) " to " (to) " of " (last) }
            }
            (pages(run, from, to, last))
            div.scroll tabindex="0" role="region" aria-label="Lines of the journal" {
                table.journal {
                    thead { tr { th.num scope="col" { "#" } th scope="col" { "Time" } th scope="col" { "Event" } th scope="col" { "What" } } }
                    tbody #journal data-last=[(to == last).then_some(run.end())] {
                        @for entry in shown { (row(entry)) }
                    }
                }
            }
        }
    }
}

fn pages(run: &RunModel, from: usize, to: usize, last: usize) -> Markup {
    let link =
        |to: usize, word: &str| html! { a.btn href={ (run.address()) "/journal?to=" (to) } { (word) } };
    html! {
        @if from > 0 || to < last {
            div.pages {
                @if from > 0 { (link(from, "Earlier lines")) }
                @if to < last { (link((to + LINES).min(last), "Later lines")) }
            }
        }
    }
}

pub(crate) fn row(entry: &Entry) -> Markup {
    let written = clock::written(entry.at);
    let time = written.get(11..19).unwrap_or(&written);
    html! {
        tr id={ "l" (entry.seq) } {
            td.num.muted { (entry.seq) }
            td.num.muted title=(written) { (time) }
            td { span class={ "kind " (entry.phase.name()) } { (entry.event.name()) } }
            td.what { (short_line(&label(&entry.event), 400)) }
        }
    }
}
