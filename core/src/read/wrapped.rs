//! An answer that is nothing but one fence.

use super::lines::{self, LineKind, TextLine, scan};
use super::{findings, review, status};

/// The answer without the fence it is wrapped in, its lines keeping their numbers. It has to be the whole answer in
/// the form asked for, with its verdict and its status: a fence with less is a quotation that nothing introduces.
pub(crate) fn unwrapped(text: &str) -> Option<String> {
    let start = text.trim_start();
    if !start.starts_with(['`', '~']) {
        return None;
    }
    let page = scan(text);
    let shown = |line: &TextLine| line.kind != LineKind::Blank;
    let (first, last) = (page.iter().position(shown)?, page.iter().rposition(shown)?);
    let (open, close) = (page.get(first)?, page.get(last)?);
    let one = open.kind == LineKind::Open
        && close.kind == LineKind::Close
        && findings::is_plain_text(&lines::info(open.text));
    let inner = page.get(first + 1..last).filter(|_| one)?;
    if inner.iter().any(|line| line.kind != LineKind::Fenced) {
        return None;
    }
    let ending = inner.iter().rev().find(|line| !line.text.trim().is_empty())?;
    let whole = status::looks_like_one(ending.text) && inner.iter().any(|line| review::is_verdict(line.text));
    let content = text.get(open.start + open.text.len()..close.start).filter(|_| whole)?;
    let above = "\n".repeat(first);
    Some(format!("{above}{content}"))
}
