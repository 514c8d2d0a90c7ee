//! Reports of runs. They are drawn in `archeflow-serve`, which shares the drawing with its pages; the tree in colours is the
//! terminal's.

pub(crate) mod graph;

#[cfg(test)]
pub(crate) mod tests;

pub(crate) use archeflow_serve::report::{Report, diff, html, json, markdown, summary};
