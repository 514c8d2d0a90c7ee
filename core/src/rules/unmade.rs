//! Which files a plan names and the work does not touch. It blocks nothing: a plan may name a file that turned out to
//! be right as it is. The rows are in `docs/rules/gates.md`.
//!
//! The log has the names of a change, not the whole tree, so a file that is missing and one that is as it was are not
//! told apart.

use std::collections::BTreeSet;

use super::shadows::{is_in, is_tail};
use crate::model::Change;
use crate::read::place;
use crate::text::path_key;

/// Names on one line; the others are counted.
const NAMED: usize = 5;
/// Characters of that line, which is indented on screens of 80 columns.
const WIDTH: usize = 70;
const HEAD: &str = "planned, not in the change: ";

/// The planned files that the change does not touch, each once. Folders and patterns name no file, and of a change that is
/// not known in full nothing is missing.
pub fn unmade<'a>(planned: impl IntoIterator<Item = &'a str>, change: &Change) -> Vec<String> {
    if change.files_left_out > 0 {
        return Vec::new();
    }
    let planned: Vec<String> = planned.into_iter().map(plain).collect();
    let exact: BTreeSet<&str> = planned.iter().map(String::as_str).collect();
    let touched: Vec<_> = change.files.iter().map(|file| path_key(&file.path)).collect();
    let known: BTreeSet<&str> = touched.iter().map(|path| &**path).collect();
    // With folders left out, or with some before the repository's own. What is planned in full is no other file.
    let is_touched = |planned: &str| {
        touched.iter().any(|path| {
            is_tail(path, planned)
                || is_in(path, planned, "")
                || (!exact.contains(&**path) && is_tail(planned, path))
        })
    };
    let mut unmade = Vec::new();
    for path in &planned {
        let is_made = known.contains(path.as_str()) || !is_file(path) || is_touched(path);
        if !is_made && !unmade.contains(path) {
            unmade.push(path.clone());
        }
    }
    unmade
}

/// Not a folder or a pattern, as far as a path shows it.
fn is_file(path: &str) -> bool {
    !path.is_empty()
        && !path.ends_with('/')
        && !path.contains(['*', '?', '{', '<', '…'])
        && !path.contains("...")
}

/// A path without quotation marks, and without the line or the remark behind it.
fn plain(path: &str) -> String {
    let key = path_key(path.trim_matches('`'));
    let key = key.trim_start_matches("./");
    let (file, _) = place::place(key);
    let rest = key.strip_prefix(file.as_str()).filter(|_| !file.is_empty()).unwrap_or_default();
    let is_remark = rest.starts_with([':', '#']) || rest.trim_start().starts_with('(');
    if is_remark { file } else { key.to_owned() }
}

/// The same in a line: as many names as there is room for, and how many more there are.
pub fn unmade_line(files: &[String]) -> Option<String> {
    let more = |shown: usize| match files.len() - shown {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let mut line = format!("{HEAD}{}", ending(files.first()?, WIDTH - HEAD.len() - more(1).len()));
    let mut shown = 1;
    for file in files.iter().take(NAMED).skip(1) {
        let longer = format!("{line}, {file}");
        if longer.chars().count() + more(shown + 1).len() > WIDTH {
            break;
        }
        (line, shown) = (longer, shown + 1);
    }
    Some(line + &more(shown))
}

/// The last characters of a path, which say more than its first.
fn ending(path: &str, most: usize) -> String {
    let length = path.chars().count();
    if length <= most {
        return path.to_owned();
    }
    std::iter::once('…').chain(path.chars().skip(length + 1 - most)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r_12_the_line_fits_a_narrow_screen_and_counts_the_rest() {
        let named = |files: &[&str]| {
            unmade_line(&files.iter().map(|file| (*file).to_owned()).collect::<Vec<_>>()).unwrap_or_default()
        };
        let long = format!("{}/ö.rs", "src/deep".repeat(20));
        assert_eq!(named(&[]), "");
        assert_eq!(named(&["a", "b", "c", "d", "e"]), "planned, not in the change: a, b, c, d, e");
        assert_eq!(
            named(&["a", "b", "c", "d", "e", "f", "g"]),
            "planned, not in the change: a, b, c, d, e and 2 more"
        );
        let cut = named(&[&long, "src/b_as_well.rs"]);
        assert!(cut.chars().count() <= WIDTH && cut.ends_with("/ö.rs and 1 more"), "{cut}");
        let many: Vec<&str> = std::iter::repeat_n(long.as_str(), 1000).collect();
        assert!(named(&many).chars().count() <= WIDTH, "{}", named(&many));
    }
}
