//! The lines of the reviewed tree around what a finding is about, for people.

use archeflow_core::strategies::review::{Frame, Reviewed};

use crate::git::content::CommitFiles;
use crate::git::{ObjectId, Repo};

/// Lines before and after.
const AROUND: usize = 2;
/// More findings than anyone reads.
const AT_MOST: usize = 1_000;
const LONGEST_LINE: usize = 2_000;

/// One for each finding, in their order; `None` where there is nothing to show.
pub fn frames(repo: &Repo, reviewed: &Reviewed) -> Vec<Option<Frame>> {
    let Ok(commit) = ObjectId::parse(reviewed.commit.as_bytes()) else { return Vec::new() };
    let mut tree = CommitFiles::open(repo, &commit);
    let wanted =
        |found: &&archeflow_core::strategies::review::Listed| !found.file.is_empty() && found.line > 0;
    let mut paths: Vec<&[u8]> =
        reviewed.findings.iter().take(AT_MOST).filter(wanted).map(|found| found.file.as_bytes()).collect();
    paths.sort_unstable();
    paths.dedup();
    if !paths.is_empty() && tree.load(&paths).is_err() {
        return Vec::new();
    }
    let mut shown = 0;
    let mut frame = |found: &archeflow_core::strategies::review::Listed| {
        if !wanted(&found) || shown >= AT_MOST {
            return None;
        }
        shown += 1;
        around(&mut tree, found.file.as_bytes(), found.line as usize)
    };
    reviewed.findings.iter().map(&mut frame).collect()
}

fn around(tree: &mut CommitFiles<'_>, path: &[u8], line: usize) -> Option<Frame> {
    let count = tree.line_count(path).ok()??;
    if line > count {
        return None;
    }
    let first = line.saturating_sub(AROUND).max(1);
    let mut lines = Vec::new();
    for number in first..=(line + AROUND).min(count) {
        let text = tree.line(path, number).ok()??;
        let text = &text[..text.len().min(LONGEST_LINE)];
        lines.push(String::from_utf8_lossy(text).trim_end_matches('\r').to_owned());
    }
    Some(Frame { first: u32::try_from(first).ok()?, lines })
}
