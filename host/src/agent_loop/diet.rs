//! The documents of `docs/agent_docs` (PJ-31; who gets which is the core's to say), and files a plan refers to that are
//! not there (PJ-33). Documents are read from the commit at hand, so no agent sees what is not in the project.

use crate::git::{ObjectId, Repo, runner};

/// From the root of the repository.
pub const FOLDER: &str = "docs/agent_docs";
/// What an agent can be expected to read of one document.
const LARGEST: u64 = 64 * 1024;
/// Most names that are listed.
const TOLD: usize = 10;

/// The names of all there are, for the core to choose from.
pub fn names(repo: &Repo, commit: &ObjectId) -> Result<Vec<String>, runner::Error> {
    let entries = repo.list_dir(commit, FOLDER.as_bytes())?;
    let mut names: Vec<String> =
        entries.into_iter().filter_map(|entry| name_of(&String::from_utf8_lossy(&entry.path))).collect();
    names.sort();
    Ok(names)
}

/// One of them; nothing where it is not there any more, or too long to be read.
pub fn text(repo: &Repo, commit: &ObjectId, name: &str) -> Result<Option<String>, runner::Error> {
    let bytes = repo.read_blob(commit, format!("{FOLDER}/{name}.md").as_bytes(), LARGEST)?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

/// `docs/agent_docs/GOALS.md` is `GOALS`; folders below it and other extensions are not documents.
fn name_of(path: &str) -> Option<String> {
    let name = path.rsplit_once('/').map_or(path, |(folder, name)| if folder == FOLDER { name } else { "" });
    name.strip_suffix(".md").filter(|name| !name.is_empty()).map(str::to_owned)
}

/// Paths that a plan points at in code marks and that neither exist nor are to be created (PJ-33, PJ-42).
pub fn absent(repo: &Repo, commit: &ObjectId, plan: &str) -> Result<Vec<String>, runner::Error> {
    let mut missing: Vec<String> = Vec::new();
    for line in plan.lines().filter(|line| !creates(line)) {
        for path in line.split('`').skip(1).step_by(2).filter_map(path_in) {
            if missing.len() == TOLD || missing.contains(&path) {
                continue;
            }
            if repo.list_dir(commit, path.as_bytes())?.is_empty() {
                missing.push(path);
            }
        }
    }
    Ok(missing)
}

/// All files that a plan names in code marks, with or without a folder (L-09).
pub fn named(plan: &str) -> Vec<String> {
    let mut named: Vec<String> = Vec::new();
    for span in plan.lines().flat_map(|line| line.split('`').skip(1).step_by(2)) {
        let path = path_in(span)
            .or_else(|| path_in(&format!("./x/{}", span.trim())).map(|path| path[2..].to_owned()));
        named.extend(path.filter(|path| !named.contains(path)));
    }
    named
}

/// A line with content.
fn creates(line: &str) -> bool {
    const WORDS: [&str; 6] = ["create", "new file", "add a file", "(new)", "adds", "introduce"];
    let line = line.to_lowercase();
    WORDS.iter().any(|word| line.contains(word))
}

/// `src/till.rs:12` is a path; `cargo test` and `1/2` are not.
fn path_in(span: &str) -> Option<String> {
    let span = span.trim();
    let path = span.split_once(':').map_or(span, |(path, _)| path);
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-');
    let inner = path.trim_start_matches("./");
    let last = inner.rsplit('/').next()?;
    let named = last.rsplit_once('.').is_some_and(|(stem, ending)| {
        !stem.is_empty()
            && (1..=8).contains(&ending.len())
            && ending.starts_with(|c: char| c.is_ascii_lowercase())
    });
    let plain = !inner.is_empty() && inner.chars().all(fits) && !inner.split('/').any(|part| part == "..");
    (plain && named && inner.contains('/')).then(|| inner.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{creates, name_of, path_in};

    #[test]
    fn pj_33_only_what_looks_like_a_path_is_looked_for() {
        for (span, path) in [
            ("src/till.rs", Some("src/till.rs")),
            ("src/till.rs:12", Some("src/till.rs")),
            ("./src/till.rs", Some("src/till.rs")),
            ("till.rs", None),
            ("cargo test", None),
            ("1/2", None),
            ("../etc/passwd.d", None),
            ("a/b", None),
            ("https://example.org/a.html", None),
            ("", None),
        ] {
            assert_eq!(path_in(span).as_deref(), path, "{span}");
        }
        assert!(creates("- Create `src/new.rs`"));
        assert!(!creates("- Change `src/till.rs`"));
    }

    #[test]
    fn pj_31_documents_lie_in_one_folder() {
        assert_eq!(name_of("docs/agent_docs/GOALS.md").as_deref(), Some("GOALS"));
        assert_eq!(name_of("docs/agent_docs/old/GOALS.md"), None);
        assert_eq!(name_of("docs/agent_docs/picture.png"), None);
    }
}
