//! The events of a run as a tree on the terminal (BX-09).

use archeflow_core::projections::story::dag::Dag;
use archeflow_serve::report::graph;

use crate::render::text::Paint;

#[cfg(test)]
pub(crate) use archeflow_serve::report::graph::plain;
pub(crate) use archeflow_serve::report::graph::{dot, json, mermaid};

pub(crate) fn tree(dag: &Dag, paint: Paint, width: usize) -> String {
    graph::tree(dag, width, |line| {
        format!(
            "{}{} {}  {}{}",
            paint.dim(line.branches),
            paint.bold(line.number),
            paint.tag_of(line.node.phase, line.node.kind),
            line.label,
            paint.dim(line.from)
        )
    })
}
