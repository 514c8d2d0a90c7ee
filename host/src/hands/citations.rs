//! Looks up what reviewers cite in the tree they reviewed (D-05).

use archeflow_core::words::{Answer, Citation, Said};

use crate::git::content::Tree;
use crate::git::{Oid, Repo, runner};

/// Lines around the cited one in which a quotation may stand.
const NEAR: usize = 10;

/// Marks every citation of a review as found or not.
pub(crate) fn resolve(repo: &Repo, commit: &str, answer: &mut Answer) -> Result<(), runner::Error> {
    let Said::Review(review) = &mut answer.said else { return Ok(()) };
    if review.findings.iter().all(|finding| finding.citations.is_empty()) {
        return Ok(());
    }
    let Ok(commit) = Oid::parse(commit.as_bytes()) else { return Ok(()) };
    let mut tree = Tree::open(repo, &commit);
    let mut wanted: Vec<Vec<u8>> = review
        .findings
        .iter()
        .flat_map(|finding| &finding.citations)
        .map(|citation| citation.file.as_bytes().to_vec())
        .collect();
    wanted.sort();
    wanted.dedup();
    let wanted: Vec<&[u8]> = wanted.iter().map(Vec::as_slice).collect();
    tree.load(&wanted)?;
    for citation in review.findings.iter_mut().flat_map(|finding| &mut finding.citations) {
        citation.holds = Some(holds(&mut tree, citation)?);
    }
    Ok(())
}

fn holds(tree: &mut Tree<'_>, citation: &Citation) -> Result<bool, runner::Error> {
    let path = citation.file.as_bytes();
    let Some(lines) = tree.line_count(path)? else { return Ok(false) };
    let line = citation.line as usize;
    if line > lines {
        return Ok(false);
    }
    let Some(quote) = citation.quote.as_deref().map(squeezed).filter(|quote| !quote.is_empty()) else {
        return Ok(true);
    };
    let (from, to) =
        if line == 0 { (1, lines) } else { (line.saturating_sub(NEAR).max(1), (line + NEAR).min(lines)) };
    for number in from..=to {
        let text = tree.line(path, number)?.unwrap_or_default();
        if squeezed(&String::from_utf8_lossy(&text)).contains(&quote) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// White space does not make a quotation wrong.
fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
