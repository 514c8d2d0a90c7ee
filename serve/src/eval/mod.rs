//! Evaluations as documents: what `archeflow eval report` and `archeflow eval compare` show, as Markdown or as one HTML page.
//!
//! [`report`] and [`difference`] write a [`Document`]; one place draws it in either format and escapes every text, since
//! names and descriptions of suites come from others.

pub mod difference;
mod document;
mod pictures;
pub mod report;
#[cfg(test)]
mod tests;
mod words;

pub use document::Document;

/// Limits of what is shown. JSON has all of it.
mod most {
    pub(super) const NAME: usize = 60;
    pub(super) const TEXT: usize = 600;
    pub(super) const ARMS_DRAWN: usize = 24;
    pub(super) const TASKS: usize = 400;
    pub(super) const ROWS: usize = 600;
    pub(super) const NAMED: usize = 40;
}
