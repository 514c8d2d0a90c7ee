//! The lines of the reviewed tree around what a finding is about, for people.

use archeflow_core::rules::signs::masked;
use archeflow_core::strategies::review::{Frame, Reviewed};

use crate::git::content::CommitFiles;
use crate::git::{ObjectId, Repo};

/// Lines before and after.
const AROUND: usize = 2;
/// More findings than anyone reads.
const AT_MOST: usize = 1_000;
const LONGEST_LINE: usize = 2_000;
/// Lines before the first that is shown in which a private key may begin.
const KEY_LINES: usize = 120;
/// Of a longer line, so much more is looked at: a key may lie across the cut.
const ACROSS: usize = 500;

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
    let from = first.saturating_sub(KEY_LINES).max(1);
    let mut lines = Vec::new();
    for number in from..=(line + AROUND).min(count) {
        let text = tree.line(path, number).ok()??;
        let text = &text[..text.len().min(LONGEST_LINE + ACROSS)];
        lines.push(String::from_utf8_lossy(text).trim_end_matches('\r').to_owned());
    }
    Some(Frame { first: u32::try_from(first).ok()?, lines: without_keys(&lines, first - from) })
}

/// These lines but the first ones, without the keys in them (D-07).
fn without_keys(lines: &[String], first: usize) -> Vec<String> {
    let told = masked(&lines.join("\n"));
    let whole = |line: &str| (0..=LONGEST_LINE.min(line.len())).rev().find(|at| line.is_char_boundary(*at));
    let cut = |line: &str| line[..whole(line).unwrap_or(0)].to_owned();
    told.split('\n').skip(first).map(cut).collect()
}

#[cfg(test)]
mod tests {
    use super::{LONGEST_LINE, without_keys};

    fn shown(text: &str, first: usize) -> String {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        without_keys(&lines, first).join("\n")
    }

    #[test]
    fn d_07_the_code_around_a_finding_is_shown_without_its_keys() {
        let token = format!("ghp_{}", "a1".repeat(18));
        assert_eq!(
            shown(&format!("fn f() {{\n    let k = \"{token}\";\n}}"), 0),
            "fn f() {\n    let k = \"***\";\n}"
        );
        let pem = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nQk3x\n-----END RSA PRIVATE KEY-----\nlast";
        assert_eq!(shown(pem, 2), "***\n***\nlast", "also where the key began further up");
        let long = format!("{} {token}", "x".repeat(LONGEST_LINE - 10));
        assert!(!shown(&long, 0).contains("ghp_"), "also across the cut of a long line");
        assert_eq!(shown("let total = add(1, 2);", 0), "let total = add(1, 2);");
    }
}
