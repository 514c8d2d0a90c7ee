//! Pages: tested, linked, and true on every machine.

use super::{Complaint, Tree, complaint};

/// A page of rules is executed by a test, or it is only an opinion.
pub(super) fn rule_pages(tree: &Tree) -> Vec<Complaint> {
    let tests: Vec<&str> = tree.under(&["core/tests/"], ".rs").map(|(_, text)| text).collect();
    let untested = tree.under(&["docs/rules/"], ".md").filter(|(path, _)| {
        let page = path.trim_start_matches("docs/rules/").trim_end_matches(".md");
        let by_name = format!("\"{page}\"");
        !tests.iter().any(|text| text.contains(&by_name) || text.contains(&format!("{page}.md")))
    });
    untested.map(|(path, _)| complaint(path, 1, "no test in core/tests reads this page")).collect()
}

const PAGES: [&str; 5] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/"];

/// Relative links of pages lead to files of the repository.
pub(super) fn links(tree: &Tree) -> Vec<Complaint> {
    let mut found = Vec::new();
    for (path, text) in tree.under(&PAGES, ".md") {
        let mut fenced = false;
        for (number, line) in (1..).zip(text.lines()) {
            fenced ^= line.trim_start().starts_with("```");
            if fenced {
                continue;
            }
            for target in targets(line).filter(|target| is_relative(target)) {
                let place = resolve(path, target);
                let folder = format!("{place}/");
                let there = place.is_empty()
                    || tree.files.iter().any(|(known, _)| *known == place || known.starts_with(&folder));
                if !there {
                    found.push(complaint(path, number, format!("`{target}` leads nowhere")));
                }
            }
        }
    }
    found
}

/// The target in `[text](target)`, outside of `code`.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    let prose = line.split('`').step_by(2);
    prose.flat_map(|part| part.split("](").skip(1)).filter_map(|rest| {
        rest.split([')', ' ']).next().map(|target| target.split('#').next().unwrap_or(target))
    })
}

fn is_relative(target: &str) -> bool {
    !target.is_empty() && !target.contains("://") && !target.starts_with("mailto:")
}

fn resolve(page: &str, target: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in target.trim_end_matches('/').split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Where people keep their files. A test may make one up, under these names.
const HOMES: [&str; 4] = ["/home/", "/Users/", "/root/", "C:\\Users\\"];
const MADE_UP: [&str; 5] = ["me/", "you/", "user/", "ada/", "u/"];

/// A path that exists on the author's machine only.
pub(super) fn machine_paths(tree: &Tree) -> Vec<Complaint> {
    let here = crate::root().display().to_string();
    let mut found = Vec::new();
    for (path, text) in tree.files.iter().filter(|(path, _)| path != "xtask/src/tidy/docs.rs") {
        for (number, line) in (1..).zip(text.lines()) {
            let home = HOMES.iter().find(|home| {
                line.match_indices(*home).any(|(at, _)| {
                    let after = &line[at + home.len()..];
                    let named = after.starts_with(|c: char| c.is_alphanumeric());
                    named && !MADE_UP.iter().any(|name| after.starts_with(name))
                })
            });
            if home.is_some() || line.contains(&here) {
                found.push(complaint(path, number, "a path of one machine"));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::tests::complains;
    use super::*;

    #[test]
    fn untested_rules() {
        let test = ("core/tests/tables.rs", "Page::open(\"evidence\"); // and gates.md");
        complains(rule_pages, &[test, ("docs/rules/evidence.md", ""), ("docs/rules/gates.md", "")], &[]);
        complains(rule_pages, &[test, ("docs/rules/luck.md", "")], &["docs/rules/luck.md:1"]);
    }

    #[test]
    fn dead_links() {
        let good =
            ("docs/a.md", "[b](b.md#top) [c](../README.md) [d](https://e.example/x) [f](rules/) [g](#h)");
        let others = [("docs/b.md", ""), ("README.md", "`[x](y)`"), ("docs/rules/r.md", "")];
        complains(links, &[good, others[0], others[1], others[2]], &[]);
        complains(links, &[("README.md", "\n[a](docs/a.md)")], &["README.md:2"]);
        complains(links, &[("docs/a.md", "[a](../../b.md)")], &["docs/a.md:1"]);
    }

    #[test]
    fn paths_of_one_machine() {
        complains(machine_paths, &[("a.md", "in /home/jo/src")], &["a.md:1"]);
        complains(machine_paths, &[("a.rs", &format!("{}/target", crate::root().display()))], &["a.rs:1"]);
        complains(machine_paths, &[("a.rs", "\"/home/me/.config\""), ("b.md", "`/home/`, `$HOME`")], &[]);
    }
}
