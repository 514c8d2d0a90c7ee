//! Which lines a forge shows of a change, and which lines another commit changed.

use std::collections::{BTreeMap, BTreeSet};

use archeflow_core::split::{PatchSide, Walk};
use archeflow_core::text::quote_path;

use super::change::{self, path_in_header};
use super::runner;
use super::{ObjectId, Repo};

/// Most of a diff that is read. Lines behind it count as not shown.
const DIFF_AT_MOST: usize = 64 * 1024 * 1024;

/// A changed file: its name before, and the lines of the new file that a diff shows, each with its number before.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShownFile {
    pub old_path: String,
    pub lines: BTreeMap<u32, Option<u32>>,
}

/// The files of a change as a forge shows them, by their paths as the log writes them.
pub fn shown_lines(
    repo: &Repo,
    base: &ObjectId,
    commit: &ObjectId,
) -> Result<BTreeMap<String, ShownFile>, runner::Error> {
    let mut files: BTreeMap<String, ShownFile> = BTreeMap::new();
    // Files without a line, such as deleted and binary ones, are in the change as well.
    for changed in change::changed(repo, base, commit)? {
        let path = quote_path(&changed.path);
        files.insert(path.clone(), ShownFile { old_path: path, ..ShownFile::default() });
    }
    let diff = change::diff_text(repo, base, commit, DIFF_AT_MOST)?;
    for (old_path, new_path, lines) in files_of(&diff.bytes) {
        let Some(new_path) = new_path else { continue };
        let old_path = old_path.unwrap_or_else(|| new_path.clone());
        let shown = lines.into_iter().filter_map(|(old, new)| Some((new?, old))).collect();
        files.insert(new_path, ShownFile { old_path, lines: shown });
    }
    Ok(files)
}

/// The lines of one commit that another does not have any more, by path; also if neither comes from the other.
pub fn lines_gone(
    repo: &Repo,
    from: &ObjectId,
    to: &ObjectId,
) -> Result<BTreeMap<String, BTreeSet<u32>>, runner::Error> {
    let output = repo
        .side()?
        .args(["diff-tree", "-r", "-p", "-M", "-U0", "--no-ext-diff", "--no-textconv", "--no-color"])
        .args([from.as_str(), to.as_str()])
        .cap(DIFF_AT_MOST)
        .done()?;
    let gone = files_of(&output.stdout).into_iter().filter_map(|(old_path, _, lines)| {
        let lines = lines.into_iter().filter(|(_, new)| new.is_none()).filter_map(|(old, _)| old);
        Some((old_path?, lines.collect()))
    });
    Ok(gone.collect())
}

/// A line of a diff: its number before and after.
type Numbers = (Option<u32>, Option<u32>);

/// The files of a diff that have hunks: both names, and all lines.
fn files_of(diff: &[u8]) -> Vec<(Option<String>, Option<String>, Vec<Numbers>)> {
    let mut files: Vec<(Option<String>, Option<String>, Vec<Numbers>)> = Vec::new();
    let mut old_path = None;
    let mut walk: Option<Walk> = None;
    let number = |number: u64| u32::try_from(number).ok();
    for line in diff.split_inclusive(|byte| *byte == b'\n') {
        if let Some(under_way) = walk.as_mut().filter(|walk| !walk.is_over()) {
            let (old, new) = (number(under_way.old), number(under_way.new));
            let side = under_way.step(line);
            let numbers = match side {
                PatchSide::Added => (None, new),
                PatchSide::Deleted => (old, None),
                PatchSide::Both => (old, new),
                PatchSide::Remark => continue,
            };
            if let Some((_, _, lines)) = files.last_mut() {
                lines.push(numbers);
            }
        } else if let Some(name) = line.strip_prefix(b"--- ") {
            old_path = path_in_header(name, b"a/");
        } else if let Some(name) = line.strip_prefix(b"+++ ") {
            files.push((old_path.take(), path_in_header(name, b"b/"), Vec::new()));
        } else if let Some((begun, _)) = Walk::begin(line) {
            walk = Some(begun);
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f_25_lines_are_numbered_as_a_diff_shows_them() {
        let diff = b"diff --git a/x b/y\n--- a/x\n+++ b/y\n@@ -2,3 +2,2 @@ fn\n one\n-two\n+2\n--- a/evil\n@@ -9 +8,0 @@\n-nine\n\\ No newline at end of file\ndiff --git a/n b/n\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+new\n";
        let files = files_of(diff);
        let some = |name: &str| Some(name.to_owned());
        let wanted = vec![
            (
                some("x"),
                some("y"),
                vec![(Some(2), Some(2)), (Some(3), None), (None, Some(3)), (Some(4), None), (Some(9), None)],
            ),
            (None, some("n"), vec![(None, Some(1))]),
        ];
        assert_eq!(files, wanted);
    }
}
