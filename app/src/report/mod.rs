//! A run as a document: Markdown, one HTML file, JSON, or a single line. Everything here is drawing: a [`Story`] and
//! a [`Diff`] go in and text comes out, without a look at clock, disk or terminal.
//!
//! Every text of others passes `text.rs`. What is too much is left out, with a note.

mod blocks;
mod cycles;
pub(crate) mod diff;
pub(crate) mod graph;
pub(crate) mod html;
pub(crate) mod json;
pub(crate) mod markdown;
mod svg;
mod words;

#[cfg(test)]
pub(crate) mod tests;

use archeflow_core::projections::story::Story;
use archeflow_core::projections::story::dag::Dag;

use diff::Diff;

pub(crate) use words::summary;

/// Everything a report is drawn from.
pub(crate) struct Report<'a> {
    pub(crate) story: &'a Story,
    pub(crate) diff: &'a Diff,
    /// The events as a tree, where it was asked for.
    pub(crate) dag: Option<&'a Dag>,
    /// How moments are written, so that nothing here knows the calendar.
    pub(crate) written: fn(u64) -> String,
}

/// Limits of what is shown. The journal and the artifacts have all of it.
pub(crate) mod most {
    pub(crate) const CYCLES_DRAWN: usize = 8;
    pub(crate) const CYCLES_PLOTTED: usize = 40;
    pub(crate) const CYCLES_DOTTED: usize = 16;
    pub(crate) const FINDINGS: usize = 200;
    /// Of other reviewers, for each finding.
    pub(crate) const REMARKS: usize = 5;
    pub(crate) const DECISIONS: usize = 400;
    pub(crate) const OTHERS: usize = 100;
    pub(crate) const ARTIFACTS: usize = 300;
    pub(crate) const SENTENCE: usize = 400;
    pub(crate) const PARAGRAPH: usize = 1_500;
    pub(crate) const PAGE: usize = 60_000;
}
