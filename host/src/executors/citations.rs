//! Looks up what reviewers cite in the tree they reviewed (D-05).

use archeflow_core::model::{Answer, AnswerBody, Citation};

use crate::git::content::CommitFiles;
use crate::git::{ObjectId, Repo, runner};

/// Lines around the cited one in which a quotation may be.
const NEAR: usize = 10;

/// Marks every citation of a review as found or not.
pub(crate) fn resolve(repo: &Repo, commit: &str, answer: &mut Answer) -> Result<(), runner::Error> {
    let AnswerBody::Review(review) = &mut answer.said else { return Ok(()) };
    if review.findings.iter().all(|finding| finding.citations.is_empty()) {
        return Ok(());
    }
    let Ok(commit) = ObjectId::parse(commit.as_bytes()) else { return Ok(()) };
    let mut tree = CommitFiles::open(repo, &commit);
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

/// Lines with less than this say nothing by themselves: a bracket, an `else`.
const TELLING: usize = 6;

/// Marks every finding with a digest of the code it is about, so that it is known again when lines have moved.
pub(crate) fn anchor(repo: &Repo, commit: &str, answer: &mut Answer) -> Result<(), runner::Error> {
    let AnswerBody::Review(review) = &mut answer.said else { return Ok(()) };
    let Ok(commit) = ObjectId::parse(commit.as_bytes()) else { return Ok(()) };
    let mut tree = CommitFiles::open(repo, &commit);
    let cited = review.findings.iter().filter(|finding| finding.line > 0 && !finding.file.is_empty());
    let mut wanted: Vec<Vec<u8>> = cited.map(|finding| finding.file.as_bytes().to_vec()).collect();
    wanted.sort();
    wanted.dedup();
    let wanted: Vec<&[u8]> = wanted.iter().map(Vec::as_slice).collect();
    tree.load(&wanted)?;
    for finding in review.findings.iter_mut().filter(|finding| finding.line > 0) {
        let quotes = finding.citations.iter().filter(|citation| citation.file == finding.file);
        let quote =
            quotes.filter_map(|citation| citation.quote.as_deref()).map(squeezed).find(|q| !q.is_empty());
        let text = code(&mut tree, finding.file.as_bytes(), finding.line as usize, quote.as_deref())?;
        finding.anchor =
            text.map(|text| blake3::hash(text.as_bytes()).to_hex()[..32].to_owned()).unwrap_or_default();
    }
    Ok(())
}

/// The line that is quoted near the cited one, else the cited one; with those around it if it has no content of its own.
fn code(
    tree: &mut CommitFiles<'_>,
    path: &[u8],
    line: usize,
    quote: Option<&str>,
) -> Result<Option<String>, runner::Error> {
    let Some(lines) = tree.line_count(path)? else { return Ok(None) };
    if line > lines {
        return Ok(None);
    }
    let mut text = |number: usize| {
        let bytes = tree.line(path, number)?.unwrap_or_default();
        Ok::<_, runner::Error>(squeezed(&String::from_utf8_lossy(&bytes)))
    };
    let mut at = line;
    if let Some(quote) = quote {
        let near = line.saturating_sub(NEAR).max(1)..=(line + NEAR).min(lines);
        let mut near: Vec<usize> = near.collect();
        near.sort_by_key(|number| number.abs_diff(line));
        for number in near {
            if text(number)?.contains(quote) {
                at = number;
                break;
            }
        }
    }
    let own = text(at)?;
    if own.chars().filter(|c| c.is_alphanumeric()).count() >= TELLING {
        return Ok(Some(own));
    }
    let around = [at.saturating_sub(1).max(1), at, (at + 1).min(lines)];
    let around = around.into_iter().map(text).collect::<Result<Vec<_>, _>>()?;
    Ok(Some(around.join("\n")))
}

fn holds(tree: &mut CommitFiles<'_>, citation: &Citation) -> Result<bool, runner::Error> {
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
