//! The layout of the repository: no forgotten modules, no leftovers.

use super::scan::{self, SourceLine};
use super::{Complaint, Tree, complaint};

const RUST: [&str; 6] = ["core/", "host/", "serve/", "fleet/", "app/", "xtask/"];

/// A longer file should be split.
const SOURCE_AT_MOST: usize = 700;

/// Tests are rows; a longer list of them is not harder to read.
const TESTS_AT_MOST: usize = 1_500;

/// Longer ones, and why they are one file all the same.
const LONG: [(&str, &str); 2] = [
    ("host/src/config/keys.rs", "the table of all keys"),
    ("host/src/config/layers.rs", "how that table is filled, with its errors"),
];

pub(super) fn long_files(tree: &Tree) -> Vec<Complaint> {
    let mut found = Vec::new();
    for (path, text) in tree.under(&RUST, ".rs").filter(|(path, _)| !LONG.iter().any(|(ok, _)| ok == path)) {
        let most = if path.contains("/tests/") { TESTS_AT_MOST } else { SOURCE_AT_MOST };
        let lines = text.lines().count();
        if lines > most {
            found.push(complaint(path, lines, format!("{lines} lines; a file has at most {most}")));
        }
    }
    found
}

/// Imports of one operating system, or of Unix, belong to one module.
pub(super) fn system_imports(tree: &Tree) -> Vec<Complaint> {
    let names = ["rustix::", "libc::", "std::os::unix", "std::os::linux"];
    let mut found = Vec::new();
    for (path, lines) in tree.sources(&["core/src/", "host/src/", "fleet/src/", "app/src/"]) {
        if path.starts_with("host/src/platform/") {
            continue;
        }
        for line in lines {
            let name = names.iter().find(|name| line.code.contains(*name)).copied();
            let file = line.strings.iter().any(|text| text.starts_with("/proc")).then_some("/proc");
            let name = name.or(file);
            found.extend(
                name.map(|name| complaint(path, line.number, format!("{name} belongs to host/src/platform"))),
            );
        }
    }
    found
}

/// A built-in archetype is a file and a line.
pub(super) fn archetypes(tree: &Tree) -> Vec<Complaint> {
    let list = tree.get("core/src/model/archetype.rs").unwrap_or_default();
    let missing = tree.under(&["core/archetypes/"], ".md").filter(|(path, _)| {
        let name = path.rsplit('/').next().unwrap_or(path);
        !list.contains(&format!("archetypes/{name}\")"))
    });
    missing.map(|(path, _)| complaint(path, 1, "is not in ARCHETYPES")).collect()
}

/// A module that is not declared is not compiled.
pub(super) fn orphans(tree: &Tree) -> Vec<Complaint> {
    let mut found = Vec::new();
    for (path, _) in tree.under(&RUST, ".rs") {
        let parts: Vec<&str> = path.trim_end_matches(".rs").split('/').collect();
        let [_, kind, inner @ ..] = parts.as_slice() else { continue };
        let declared = match (*kind, inner) {
            ("src", ["main" | "lib"] | ["bin", _]) | ("tests" | "benches" | "examples", [_]) => true,
            (_, [folders @ .., "mod"]) => {
                is_declared(tree, &parts[..parts.len() - 1 - folders.len()], folders)
            }
            (_, all) => is_declared(tree, &parts[..parts.len() - all.len()], all),
        };
        if !declared {
            found.push(complaint(path, 1, "no `mod` declares this file"));
        }
    }
    found
}

/// Whether one of the files that may declare the module `names` below `base` does.
fn is_declared(tree: &Tree, base: &[&str], names: &[&str]) -> bool {
    let Some((name, above)) = names.split_last() else { return true };
    let base = base.join("/");
    let in_tests = !base.ends_with("/src");
    let parents: Vec<String> = match above {
        [] => vec![format!("{base}/lib.rs"), format!("{base}/main.rs")],
        above => {
            let folder = above.join("/");
            vec![format!("{base}/{folder}/mod.rs"), format!("{base}/{folder}.rs")]
        }
    };
    let declares = |text: &str| {
        scan::lines(text).iter().any(|line| {
            let words: Vec<&str> = line.code.split_whitespace().collect();
            words.windows(2).any(|pair| pair[0] == "mod" && pair[1].trim_end_matches([';', '{']) == *name)
        })
    };
    if in_tests {
        // Test binaries declare their helpers in nested `mod` blocks, each for itself.
        let folder = format!("{base}/");
        let by_path = format!("#[path = \"{}.rs\"]", names.join("/"));
        return tree.under(&[&folder], ".rs").any(|(_, text)| declares(text) || text.contains(&by_path));
    }
    parents.iter().filter_map(|parent| tree.get(parent)).any(declares)
}

pub(super) fn leftovers(tree: &Tree) -> Vec<Complaint> {
    let words = ["todo!", "dbg!", "unimplemented!"];
    code(tree, |line| {
        words.iter().find(|word| line.code.contains(*word)).map(|word| format!("{word} was left here"))
    })
}

pub(super) fn skipped_tests(tree: &Tree) -> Vec<Complaint> {
    code(tree, |line| line.code.contains("#[ignore]").then(|| "say why: #[ignore = \"...\"]".to_owned()))
}

/// A task with the number of an issue is a plan; without one it is a wish.
pub(super) fn tasks(tree: &Tree) -> Vec<Complaint> {
    code(tree, |line| {
        let marks = ["TODO", "FIXME", "XXX", "HACK"];
        let mark = marks.iter().find(|mark| is_task(&line.comment, mark))?;
        let issue =
            line.comment.split('#').skip(1).any(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        (!issue).then(|| format!("{mark} without the number of an issue"))
    })
}

/// Whether a comment is a task. One that only mentions such marks is none.
fn is_task(comment: &str, mark: &str) -> bool {
    let begins = comment.trim_start().strip_prefix(mark);
    begins.is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
        || [":", "("].iter().any(|sign| comment.contains(&format!("{mark}{sign}")))
}

fn code(tree: &Tree, complains: impl Fn(&SourceLine) -> Option<String>) -> Vec<Complaint> {
    let mut found = Vec::new();
    for (path, text) in tree.under(&RUST, ".rs") {
        for line in scan::lines(text) {
            found.extend(complains(&line).map(|what| complaint(path, line.number, what)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::tests::complains;
    use super::*;

    #[test]
    fn forgotten_archetypes() {
        let list =
            ("core/src/model/archetype.rs", "(\"maker\", include_str!(\"../../archetypes/maker.md\")),");
        complains(archetypes, &[list, ("core/archetypes/maker.md", "")], &[]);
        complains(archetypes, &[list, ("core/archetypes/baker.md", "")], &["core/archetypes/baker.md:1"]);
    }

    #[test]
    fn the_system_outside_of_its_room() {
        let inside = ("host/src/platform/linux.rs", "use rustix::fs::open;");
        let comment = ("core/src/a.rs", "// rustix::fs is not for us");
        complains(system_imports, &[inside, comment], &[]);
        let import = ("host/src/store/dir.rs", "use std::fs;\nuse std::os::unix::fs::MetadataExt;");
        let file = ("app/src/b.rs", "let text = read(\"/proc/meminfo\");");
        complains(system_imports, &[import, file], &["host/src/store/dir.rs:2", "app/src/b.rs:1"]);
    }

    #[test]
    fn forgotten_modules() {
        let lib = ("core/src/lib.rs", "pub mod a;\nmod b;");
        let below = ("core/src/b/mod.rs", "mod c;\n// mod d;");
        complains(orphans, &[lib, below, ("core/src/a.rs", ""), ("core/src/b/c.rs", "")], &[]);
        complains(orphans, &[lib, below, ("core/src/b/d.rs", "")], &["core/src/b/d.rs:1"]);
        complains(orphans, &[lib, ("core/src/e/mod.rs", "")], &["core/src/e/mod.rs:1"]);
        let test = ("core/tests/t.rs", "mod common {\n    pub(crate) mod page;\n}");
        complains(orphans, &[test, ("core/tests/common/page.rs", "")], &[]);
        complains(orphans, &[test, ("core/tests/common/word.rs", "")], &["core/tests/common/word.rs:1"]);
        let named = ("core/tests/u.rs", "#[path = \"harness/run.rs\"]\nmod harness;");
        complains(orphans, &[named, ("core/tests/harness/run.rs", "")], &[]);
    }

    #[test]
    fn endless_files() {
        let long = "x\n".repeat(SOURCE_AT_MOST + 1);
        complains(long_files, &[("host/src/a.rs", &long)], &["host/src/a.rs:701"]);
        complains(long_files, &[("host/tests/a.rs", &long), ("host/src/config/keys.rs", &long)], &[]);
    }

    #[test]
    fn things_left_lying_about() {
        complains(leftovers, &[("core/src/a.rs", "\ntodo!()")], &["core/src/a.rs:2"]);
        complains(leftovers, &[("app/tests/a.rs", "dbg!(x)")], &["app/tests/a.rs:1"]);
        complains(leftovers, &[("core/src/a.rs", "// todo!\nlet a = \"dbg!\";")], &[]);
    }

    #[test]
    fn tasks_without_issue() {
        complains(tasks, &[("core/src/a.rs", "x // TODO: later")], &["core/src/a.rs:1"]);
        complains(tasks, &[("core/src/a.rs", "/* FIXME */")], &["core/src/a.rs:1"]);
        complains(tasks, &[("core/src/a.rs", "/// A line with a mark such as TODO.")], &[]);
        complains(tasks, &[("core/src/a.rs", "// TODO(#12): later\nlet t = \"TODO\";")], &[]);
    }

    #[test]
    fn skipped_without_reason() {
        complains(skipped_tests, &[("core/tests/a.rs", "#[test]\n#[ignore]")], &["core/tests/a.rs:2"]);
        complains(skipped_tests, &[("core/tests/a.rs", "#[ignore = \"needs a real client\"]")], &[]);
    }
}
