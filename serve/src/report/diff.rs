//! A unified diff taken apart by file, with bounds. Hunks are read by the counts in their headers, so that a line of
//! content can't pass for a header.

use archeflow_core::model::counted;
use archeflow_core::text::{quote_path, quoted_end, unquote_path};

/// How much of a diff a report shows.
const FILES: usize = 300;
const LINES: usize = 4_000;
const LINES_OF_A_FILE: usize = 800;
/// Of a file that is shown alone.
const LINES_ALONE: usize = 20_000;
/// Bytes of a diff that are read at all.
pub const BYTES: usize = 4_000_000;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Diff {
    pub files: Vec<FileDiff>,
    /// Files that are left out, even by name.
    pub files_left_out: usize,
    /// The size of the whole, where only its beginning was read.
    pub cut_at: Option<u64>,
    /// Why there is none.
    pub missing: Option<String>,
    /// How to see all of it.
    pub command: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileDiff {
    pub path: String,
    /// Where it was before, if it was renamed.
    pub from: Option<String>,
    pub word: &'static str,
    pub added: usize,
    pub deleted: usize,
    pub lines: Vec<(Kind, String)>,
    pub left_out: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Hunk,
    Same,
    Added,
    Deleted,
    Note,
}

impl Diff {
    pub fn missing(why: impl Into<String>) -> Diff {
        Diff { missing: Some(why.into()), ..Diff::default() }
    }

    pub fn read(text: &str, cut_at: Option<u64>, command: String) -> Diff {
        let mut diff = Diff::within(text, cut_at, command, (LINES, LINES_OF_A_FILE));
        diff.files_left_out = diff.files.len().saturating_sub(FILES);
        diff.files.truncate(FILES);
        diff
    }

    /// One file of it alone, with more of its lines.
    pub fn read_file(text: &str, path: &str, command: String) -> Diff {
        let mut diff = Diff::within(text, None, command, (usize::MAX, LINES_ALONE));
        diff.files.retain(|file| file.path == path);
        if diff.files.is_empty() {
            return Diff::missing("That file is not in the part of the change that is read.");
        }
        diff
    }

    fn within(text: &str, cut_at: Option<u64>, command: String, (most, of_a_file): (usize, usize)) -> Diff {
        let mut diff = Diff { cut_at, command, ..Diff::default() };
        let (mut old, mut new, mut told) = (0_usize, 0_usize, 0_usize);
        for line in text.lines() {
            let in_hunk = old + new > 0;
            if !in_hunk && line.starts_with("diff --git ") {
                diff.begin(line);
                continue;
            }
            let Some(file) = diff.files.last_mut() else { continue };
            let kind = match (in_hunk, line.as_bytes().first()) {
                (false, _) => {
                    if let Some(counts) = hunk(line) {
                        (old, new) = counts;
                        Kind::Hunk
                    } else if line.starts_with('\\') {
                        Kind::Note
                    } else {
                        file.header(line);
                        continue;
                    }
                }
                (true, Some(b'+')) => {
                    new = new.saturating_sub(1);
                    file.added += 1;
                    Kind::Added
                }
                (true, Some(b'-')) => {
                    old = old.saturating_sub(1);
                    file.deleted += 1;
                    Kind::Deleted
                }
                (true, Some(b'\\')) => Kind::Note,
                (true, _) => {
                    (old, new) = (old.saturating_sub(1), new.saturating_sub(1));
                    Kind::Same
                }
            };
            if told < most && file.lines.len() < of_a_file {
                told += 1;
                file.lines.push((kind, line.to_owned()));
            } else {
                file.left_out += 1;
            }
        }
        diff
    }

    fn begin(&mut self, line: &str) {
        let path = named(line.trim_start_matches("diff --git "));
        self.files.push(FileDiff { path, word: "changed", ..FileDiff::default() });
    }

    pub fn added(&self) -> usize {
        self.files.iter().map(|file| file.added).sum()
    }

    pub fn deleted(&self) -> usize {
        self.files.iter().map(|file| file.deleted).sum()
    }

    /// What is not shown, in a sentence; nothing where all of it is.
    pub fn left_out(&self) -> Option<String> {
        let lines: usize = self.files.iter().map(|file| file.left_out).sum();
        let mut parts = Vec::new();
        if lines > 0 {
            parts.push(counted(lines, "line"));
        }
        if self.files_left_out > 0 {
            parts.push(counted(self.files_left_out, "file"));
        }
        if let Some(whole) = self.cut_at {
            parts.push(format!("everything after the first {BYTES} of {whole} bytes"));
        }
        (!parts.is_empty()).then(|| format!("Left out here: {}.", parts.join(", ")))
    }
}

impl FileDiff {
    fn header(&mut self, line: &str) {
        let side = |rest: &str| {
            let name = unquote_path(rest.trim_end_matches('\t'))?;
            name.strip_prefix(b"a/").or_else(|| name.strip_prefix(b"b/")).map(quote_path)
        };
        if let Some(rest) = line.strip_prefix("+++ ") {
            self.path = side(rest).unwrap_or_else(|| std::mem::take(&mut self.path));
        } else if let Some(rest) = line.strip_prefix("--- ") {
            self.path = side(rest).unwrap_or_else(|| std::mem::take(&mut self.path));
        } else if let Some(from) = line.strip_prefix("rename from ") {
            (self.from, self.word) = (Some(shown(from)), "renamed");
        } else if let Some(to) = line.strip_prefix("rename to ") {
            self.path = shown(to);
        } else if line.starts_with("new file") {
            self.word = "new";
        } else if line.starts_with("deleted file") {
            self.word = "deleted";
        } else if line.starts_with("Binary files") || line.starts_with("GIT binary patch") {
            self.lines.push((Kind::Note, "binary content".to_owned()));
        } else if line.starts_with("old mode") || line.starts_with("new mode") {
            self.lines.push((Kind::Note, line.to_owned()));
        }
    }
}

/// The file of a header, `a/<name> b/<name>`. Both names are the same, unless it was renamed, which other lines say; so
/// the middle is known, whatever the name is made of.
fn named(names: &str) -> String {
    if names.starts_with('"') {
        let first = quoted_end(names).and_then(|end| unquote_path(names.get(..end)?));
        let name = first.as_deref().and_then(|name| name.strip_prefix(b"a/"));
        return name.map_or_else(|| names.to_owned(), quote_path);
    }
    let half = names.len().saturating_sub(5) / 2;
    let name = names.get(2..2 + half).filter(|name| names == format!("a/{name} b/{name}"));
    name.unwrap_or(names).to_owned()
}

/// A name as git writes it in a line of its own.
fn shown(name: &str) -> String {
    unquote_path(name).map_or_else(|| name.to_owned(), |name| quote_path(&name))
}

/// `@@ -1,5 +1,6 @@`: how many lines of the old and of the new side follow.
fn hunk(line: &str) -> Option<(usize, usize)> {
    let (old, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let count = |side: &str| match side.split_once(',') {
        Some((_, count)) => count.parse().ok(),
        None => side.parse::<usize>().ok().map(|_| 1),
    };
    Some((count(old)?, count(new)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIFF: &str = "diff --git a/src/a.rs b/src/a.rs\nindex 1..2 100644\n--- a/src/a.rs\n+++ b/src/a.rs\n\
                        @@ -1,3 +1,3 @@ fn a\n same\n--- a/fake\n+++ b/fake\n same\n\
                        diff --git a/old name b/new name\nsimilarity index 90%\nrename from old name\nrename to new name\n\
                        diff --git a/x.bin b/x.bin\nnew file mode 100644\nBinary files /dev/null and b/x.bin differ\n";

    #[test]
    fn bx_10_content_does_not_pass_for_a_header() {
        let diff = Diff::read(DIFF, None, String::new());
        let told: Vec<_> = diff.files.iter().map(|f| (f.path.as_str(), f.word, f.added, f.deleted)).collect();
        assert_eq!(
            told,
            [("src/a.rs", "changed", 1, 1), ("new name", "renamed", 0, 0), ("x.bin", "new", 0, 0)]
        );
        assert_eq!(diff.files[0].lines[3], (Kind::Added, "+++ b/fake".to_owned()));
        assert_eq!(diff.left_out(), None);
    }

    /// A name can look like the end of a header, and files without lines have nothing else.
    #[test]
    fn u_16_no_name_passes_for_another() {
        for (names, path) in [
            ("a/x b/x", "x"),
            ("a/evil b/README.md b/evil b/README.md", "evil b/README.md"),
            ("a/ b/ b/ b/", " b/"),
            ("\"a/a\\nb.txt\" \"b/a\\nb.txt\"", "\"a\\nb.txt\""),
            ("\"a/q\\\\\" \"b/q\\\\\"", "\"q\\\\\""),
            ("\"a/\\377.bin\" \"b/\\377.bin\"", "\"\\377.bin\""),
            ("a/old b/new", "a/old b/new"),
        ] {
            let text = format!("diff --git {names}\nBinary files differ\n");
            let diff = Diff::read(&text, None, String::new());
            assert_eq!(diff.files[0].path, path, "{names}");
        }
        let renamed = "diff --git \"a/a\\tb\" b/c\nrename from \"a\\tb\"\nrename to c\n";
        let diff = Diff::read(renamed, None, String::new());
        assert_eq!((diff.files[0].path.as_str(), diff.files[0].from.as_deref()), ("c", Some("\"a\\tb\"")));
    }

    #[test]
    fn bx_10_what_is_left_out_is_noted() {
        let many: String = (0..400)
            .map(|n| {
                format!(
                    "diff --git a/f{n} b/f{n}\n--- a/f{n}\n+++ b/f{n}\n@@ -0,0 +1,900 @@\n{}",
                    "+x\n".repeat(900)
                )
            })
            .collect();
        let alone = Diff::read_file(&many, "f1", String::new());
        assert_eq!(alone.files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["f1"]);
        assert_eq!((alone.files[0].left_out, alone.files[0].lines.len()), (0, 901));
        assert!(Diff::read_file(&many, "nowhere", String::new()).missing.is_some());
        let diff = Diff::read(&many, Some(9_000_000), String::new());
        assert_eq!((diff.files.len(), diff.files_left_out), (FILES, 100));
        assert_eq!(diff.files.iter().map(|file| file.lines.len()).sum::<usize>(), LINES);
        assert_eq!(diff.files[0].left_out, 101);
        let words = diff.left_out().unwrap_or_default();
        assert!(words.contains("100 files") && words.contains("9000000 bytes"), "{words}");
    }
}
