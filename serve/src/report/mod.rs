//! A run as a document: Markdown, one HTML file, JSON, or a single line. Everything here is drawing: a [`Story`] and
//! a [`Diff`] go in and text comes out, without a look at clock, disk or terminal.
//!
//! Every text of others passes `text.rs`. What is too much is left out, with a note. The pages of a run show parts of the
//! same drawing, so there is one place that escapes.

pub(crate) mod blocks;
mod cycles;
pub mod diff;
pub mod graph;
pub mod html;
pub mod json;
pub mod markdown;
mod svg;
mod words;

use archeflow_core::projections::story::Story;
use archeflow_core::projections::story::dag::Dag;

use diff::Diff;

pub use words::summary;

/// Everything a report is drawn from.
pub struct Report<'a> {
    pub story: &'a Story,
    pub diff: &'a Diff,
    /// The events as a tree, where it was asked for.
    pub dag: Option<&'a Dag>,
    /// How moments are written, so that nothing here knows the calendar.
    pub written: fn(u64) -> String,
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
