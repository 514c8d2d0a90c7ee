//! The Maker's shadow (AF-132, CL-15): momentum that has left the agreement.
//!
//! **Immune:** small changes, for which the test-first gate is there; documents, pictures, lock files, settings and
//! deletions, which need no test; a renaming or moving that the task asks for and whose tests were run; tests, lock
//! files and documents that the plan forgot to list; a module list or manifest with a few lines that wire a
//! planned file in; a file that had to change, if the Maker says which and why; and prose.

use super::{About, Facts, Places, is_code, number, sighting};
use crate::model::{Change, ChangedFile, Domain, FileStatus, Proposal, Sighting, Status, counted};
use crate::rules::signs::is_test_path;
use crate::settings::settings;

/// What is known of it.
pub(super) const ABOUT: About = About {
    title: "rogue",
    archetype: "maker",
    in_review: false,
    correction: "Read the proposal again. Write the tests it asks for and run them, commit item \
    by item, and take back every file it does not list, unless the work can't be done without it; then name the file and the \
    reason under `Notes`. Report the output of the last test run.",
};

settings! {
    /// AF-132 and CL-15.
    #[derive(Copy)]
    pub struct Rogue at "shadows.rogue." in (run.shadows.rogue) {
        no_tests: Option<u32> = Some(3), "no_tests", Limit(1, 1_000), GuardedAbove, "Maker: at least N code files changed, and no test file.";
        outside_files: Option<u32> = Some(1), "outside_files", Limit(1, 1_000), GuardedAbove, "Maker: at least N files that the proposal does not list.";
        one_commit: Option<u32> = Some(3), "one_commit", Limit(1, 1_000), GuardedAbove, "Maker: at least N code files and N items of the proposal in one commit.";
        no_test_run: Option<u32> = Some(3), "no_test_run", Limit(1, 1_000), GuardedAbove, "Maker: at least N code files changed, and no sign of a test run.";
        wiring_lines: u32 = 10, "wiring_lines", Whole(0, 1_000), GuardedAbove, "Maker: a module list or manifest with at most N changed lines need not be planned.";
    }
}

const TASK_BYTES: usize = 4000;

/// Work that changes no behaviour, so that the tests that exist are the tests it needs.
const PRESERVING: [&str; 12] = [
    "rename", "renaming", "refactor", "move", "moving", "extract", "inline", "format", "reformat", "typo",
    "dead", "unused",
];

/// Files that list other files. Code of their own is rarely in them.
const WIRING: [&str; 20] = [
    "mod.rs",
    "lib.rs",
    "main.rs",
    "__init__.py",
    "index.ts",
    "index.js",
    "index.tsx",
    "cargo.toml",
    "package.json",
    "go.mod",
    "pyproject.toml",
    "setup.cfg",
    "requirements.txt",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "cmakelists.txt",
    "makefile",
    "meson.build",
    "mix.exs",
];

pub(super) fn check(facts: &Facts<'_>, policy: &Rogue) -> Vec<Sighting> {
    let Some(change) = facts.change else { return Vec::new() };
    if matches!(facts.answer.status, Status::NeedsContext | Status::Blocked) {
        return Vec::new();
    }
    let code = number(change.files.iter().filter(|file| is_new_code(file)).count());
    [
        no_tests(facts, change, code, policy),
        outside_files(facts, change, policy),
        no_test_run(facts, code, policy),
        one_commit(facts, change, code, policy),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn no_tests(facts: &Facts<'_>, change: &Change, code: u32, policy: &Rogue) -> Option<Sighting> {
    let limit = policy.no_tests?;
    let lacks = code >= limit && change.test_files == 0 && facts.domain != Domain::Writing;
    let covered = facts.answer.traits.test_run && preserves_behaviour(facts.task);
    (lacks && !covered).then(|| {
        let detail =
            format!("{} changed and no test file, where {limit} call for one", counted(code, "code file"));
        sighting("no_tests", code, limit, detail)
    })
}

fn no_test_run(facts: &Facts<'_>, code: u32, policy: &Rogue) -> Option<Sighting> {
    let limit = policy.no_test_run?;
    let unseen = code >= limit && facts.domain == Domain::Code && !facts.answer.traits.test_run;
    unseen.then(|| {
        let detail =
            format!("{} changed and no sign in the answer that tests were run", counted(code, "code file"));
        sighting("no_test_run", code, limit, detail)
    })
}

fn one_commit(facts: &Facts<'_>, change: &Change, code: u32, policy: &Rogue) -> Option<Sighting> {
    let limit = policy.one_commit?;
    let items = facts.items;
    let squeezed = change.commits == 1 && code >= limit && items >= limit;
    (squeezed && !preserves_behaviour(facts.task)).then(|| {
        let detail = format!(
            "{} of the proposal and {} in a single commit",
            counted(items, "item"),
            counted(code, "code file")
        );
        sighting("one_commit", code, limit, detail)
    })
}

fn outside_files(facts: &Facts<'_>, change: &Change, policy: &Rogue) -> Option<Sighting> {
    let (limit, proposal) = (policy.outside_files?, facts.proposal?);
    let outside = outside(change, proposal, policy.wiring_lines);
    let unexplained = number(outside.len()).saturating_sub(facts.answer.traits.deviations);
    (unexplained >= limit.max(1)).then(|| {
        let detail = format!(
            "{} changed that the proposal does not list and no reason is given for, such as {}",
            counted(unexplained, "file"),
            outside.first().copied().unwrap_or_default()
        );
        sighting("outside_files", unexplained, limit, detail)
    })
}

/// The changed files a plan does not list and that don't follow from those it does. A plan without files says
/// nothing about any.
pub(crate) fn outside<'a>(change: &'a Change, proposal: &Proposal, wiring_lines: u32) -> Vec<&'a str> {
    let planned = Places::of_proposal(proposal);
    if planned.is_empty() {
        return Vec::new();
    }
    let paths = change.files.iter().filter(|file| !follows(file, wiring_lines));
    paths.map(|file| file.path.as_str()).filter(|path| !planned.hold(path)).collect()
}

/// Tests are the Maker's duty, and documents, pictures and lock files follow from the work, listed or not.
fn follows(file: &ChangedFile, wiring_lines: u32) -> bool {
    let name = file.path.trim_matches('"').rsplit('/').next().unwrap_or_default();
    let wiring = WIRING.iter().any(|known| name.eq_ignore_ascii_case(known));
    let small = file.added.saturating_add(file.deleted) <= wiring_lines;
    is_test_path(&file.path) || is_companion(name) || (wiring && small)
}

fn is_companion(name: &str) -> bool {
    const ENDINGS: [&str; 13] = [
        ".md",
        ".rst",
        ".adoc",
        ".lock",
        ".sum",
        ".snap",
        "-lock.json",
        "-lock.yaml",
        ".png",
        ".jpg",
        ".gif",
        ".svg",
        ".webp",
    ];
    ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Code that is there afterwards and is no test: what was deleted needs none.
fn is_new_code(file: &ChangedFile) -> bool {
    let written = file.status != FileStatus::Deleted && file.added > 0;
    written && is_code(&file.path) && !is_test_path(&file.path)
}

fn preserves_behaviour(task: &str) -> bool {
    super::words_of(task, TASK_BYTES)
        .any(|word| PRESERVING.iter().any(|known| word.eq_ignore_ascii_case(known)))
}
