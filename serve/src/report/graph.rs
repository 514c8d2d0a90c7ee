//! The events of a run as a tree, and as graphs for other programs (BX-09). Each format has its own
//! escapes: a label is text of others.

use std::fmt::Write;

use archeflow_core::model::Phase;
use archeflow_core::projections::story::dag::{DEEPEST, Dag, Node};
use archeflow_core::text::{cut, safe_line};
use serde_json::json;

/// The tree without colours, a line per event.
pub fn plain(dag: &Dag) -> String {
    tree(dag, 160, |line| {
        format!("{}{} {}  {}{}", line.branches, line.number, line.node.kind, line.label, line.from)
    })
}

/// The parts of a line of the tree.
pub struct TreeLine<'a> {
    pub branches: &'a str,
    pub number: &'a str,
    pub node: &'a Node,
    pub label: &'a str,
    pub from: &'a str,
}

/// A line per event, painted by the caller.
pub fn tree(dag: &Dag, width: usize, paint: impl Fn(&TreeLine<'_>) -> String) -> String {
    let mut out = String::new();
    for node in &dag.nodes {
        let branches = branches(node);
        let number = format!("#{}", node.seq);
        let from = from(node);
        let used = branches.chars().count() + number.len() + node.kind.len() + from.chars().count() + 4;
        let label = cut(&safe_line(&node.label), width.saturating_sub(used).max(20));
        let line = TreeLine { branches: &branches, number: &number, node, label: &label, from: &from };
        let _ = writeln!(out, "{}", paint(&line));
    }
    out
}

fn branches(node: &Node) -> String {
    let Some((last, above)) = node.last.split_last() else { return String::new() };
    let mut out: String = above.iter().map(|last| if *last { "   " } else { "│  " }).collect();
    out.push_str(if *last { "└─ " } else { "├─ " });
    if node.depth > DEEPEST {
        out.push_str(&format!("(depth {}) ", node.depth));
    }
    out
}

/// Causes the place in the tree does not show.
fn from(node: &Node) -> String {
    let told = node.other_parents();
    let mut out = String::new();
    if !told.is_empty() {
        out.push_str("  <-");
        told.iter().take(12).for_each(|seq| out.push_str(&format!(" #{seq}")));
        if told.len() > 12 {
            let _ = write!(out, " and {} more", told.len() - 12);
        }
    }
    if node.orphan {
        out.push_str("  (orphan)");
    }
    out
}

pub fn json(run_id: &str, dag: &Dag) -> serde_json::Value {
    let nodes = dag.nodes.iter().map(|node| {
        json!({
            "seq": node.seq, "type": node.kind, "phase": node.phase, "agent": node.agent, "label": node.label,
            "parents": node.parents, "under": node.under, "depth": node.depth, "orphan": node.orphan,
        })
    });
    json!({ "run_id": run_id, "nodes": nodes.collect::<Vec<_>>() })
}

/// For Graphviz.
pub fn dot(run_id: &str, dag: &Dag) -> String {
    let mut out = format!(
        "digraph \"{}\" {{\n  rankdir=TB;\n  node [shape=box, style=\"rounded,filled\", fontname=\"sans-serif\", fontsize=10];\n  edge [color=\"#888888\"];\n",
        dotted(run_id)
    );
    for node in &dag.nodes {
        let _ = writeln!(
            out,
            "  n{} [label=\"{}\", fillcolor=\"{}\"];",
            node.seq,
            dotted(&caption(node)),
            colour(node.phase)
        );
    }
    for (from, to) in edges(dag) {
        let _ = writeln!(out, "  n{from} -> n{to};");
    }
    out.push_str("}\n");
    out
}

/// For Mermaid, as code hosts draw it.
pub fn mermaid(dag: &Dag) -> String {
    let mut out = String::from("flowchart TD\n");
    for node in &dag.nodes {
        let _ = writeln!(out, "  n{}[\"{}\"]:::{}", node.seq, entities(&caption(node)), node.phase.name());
    }
    for (from, to) in edges(dag) {
        let _ = writeln!(out, "  n{from} --> n{to}");
    }
    for phase in [Phase::Plan, Phase::Do, Phase::Check, Phase::Act] {
        let _ =
            writeln!(out, "  classDef {} fill:{},stroke:#888888,color:#111111", phase.name(), colour(phase));
    }
    out
}

/// Every cause that is there. An orphan's missing causes have no node to begin at.
fn edges(dag: &Dag) -> Vec<(u64, u64)> {
    let known: std::collections::BTreeSet<u64> = dag.nodes.iter().map(|node| node.seq).collect();
    let mut edges: Vec<(u64, u64)> = dag
        .nodes
        .iter()
        .flat_map(|node| node.parents.iter().map(|parent| (*parent, node.seq)))
        .filter(|(from, _)| known.contains(from))
        .collect();
    edges.sort_unstable();
    edges
}

fn caption(node: &Node) -> String {
    format!("#{} {}\n{}", node.seq, node.kind, cut(&safe_line(&node.label), 60))
}

fn colour(phase: Phase) -> &'static str {
    match phase {
        Phase::Plan => "#dbe7fb",
        Phase::Do => "#d9f0df",
        Phase::Check => "#fbeecd",
        Phase::Act => "#eadcf7",
    }
}

/// Inside a quoted string of DOT only the quote and the backslash mean something.
fn dotted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Mermaid reads Markdown and HTML in labels; as numbered entities nothing but letters and digits is left to read.
fn entities(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '\n' => out.push_str("<br/>"),
            c if c.is_alphanumeric() || matches!(c, ' ' | ',' | '.' | ':' | '-') => out.push(c),
            c => out.push_str(&format!("#{};", u32::from(c))),
        }
    }
    out
}
