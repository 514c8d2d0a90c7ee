//! Paths of a review as the reviewed tree spells them (J-01): a model may write an `ö` composed where the tree has it
//! decomposed, and the other way round.

use std::collections::BTreeMap;

use archeflow_core::model::{Answer, AnswerBody};
use archeflow_core::text::{path_key, quote_path, unquote_path};

use crate::git::{ObjectId, Repo, runner};

/// Gives every path beyond ASCII that the tree does not have the spelling of the only file with the same key, and
/// writes the locations of such findings in that spelling too: there are many ways to write them, and one file.
pub(super) fn respell(repo: &Repo, commit: &str, answer: &mut Answer) -> Result<(), runner::Error> {
    let AnswerBody::Review(review) = &mut answer.said else { return Ok(()) };
    let Ok(commit) = ObjectId::parse(commit.as_bytes()) else { return Ok(()) };
    let mut named: Vec<&mut String> = Vec::new();
    for finding in &mut review.findings {
        named.push(&mut finding.file);
        named.extend(finding.citations.iter_mut().map(|citation| &mut citation.file));
    }
    named.retain(|path| is_odd(path));
    if named.is_empty() {
        return Ok(());
    }
    let mut by_key: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
    for entry in repo.list_dir(&commit, b"")? {
        by_key.entry(path_key(&quote_path(&entry.path)).into_owned()).or_default().push(entry.path);
    }
    for path in named {
        let Some(known) = by_key.get(&*path_key(path)) else { continue };
        let own = unquote_path(path).unwrap_or_default();
        if let [only] = known.as_slice()
            && *only != own
        {
            *path = quote_path(only);
        }
    }
    for finding in review.findings.iter_mut().filter(|finding| is_odd(&finding.file)) {
        finding.location = match finding.line {
            0 => finding.file.clone(),
            line => format!("{}:{line}", finding.file),
        };
    }
    Ok(())
}

fn is_odd(path: &str) -> bool {
    !path.is_ascii() || path.starts_with('"')
}
