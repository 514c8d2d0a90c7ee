//! The domain of a project, from flags, configuration and the names of its files (AF-004, BX-27).

use crate::model::Domain;
use crate::rules::shadows::is_code;
use crate::rules::signs::is_test_path;

/// The settings, highest precedence first, and the paths in the base commit.
#[derive(Debug, Clone, Default)]
pub struct Signals<'a> {
    pub flag: Option<Domain>,
    pub team: Option<Domain>,
    pub config: Option<Domain>,
    pub files: Vec<&'a str>,
}

const MANIFESTS: [&str; 14] = [
    "Cargo.toml",
    "package.json",
    "pyproject.toml",
    "setup.py",
    "go.mod",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "Gemfile",
    "mix.exs",
    "CMakeLists.txt",
    "Makefile",
    "composer.json",
    "deno.json",
];

/// Only these four places make a project a piece of writing; a code project may well have `docs/voice-calls.md`.
const VOICES: [&str; 4] = ["colette.yaml", ".archeflow/voice.md", "voice.md", "docs/voice.md"];

/// Sources of papers, beside which a bibliography means research (M-05).
const PAPERS: [&str; 7] = ["tex", "typ", "qmd", "rmd", "md", "rst", "org"];

/// Files in which chapters are written.
const CHAPTERS: [&str; 11] =
    ["md", "markdown", "tex", "typ", "txt", "rst", "adoc", "asciidoc", "org", "odt", "fountain"];

/// Further files that belong to a text and are neither code nor data.
const TYPESETTING: [&str; 5] = ["sty", "cls", "bst", "qmd", "rmd"];

/// The names of a folder of chapters; one chapter is none.
const FOLDERS_OF_CHAPTERS: [&str; 3] = ["chapters", "chapter", "manuscript"];

/// The domain, and why.
pub fn detect(signals: &Signals<'_>) -> (Domain, String) {
    for (said, by) in [(signals.flag, "flag"), (signals.team, "team"), (signals.config, "configuration")] {
        if let Some(domain) = said {
            return (domain, by.to_owned());
        }
    }
    let among = |names: &[&'static str]| names.iter().copied().find(|name| signals.files.contains(name));
    if let Some(name) = among(&VOICES) {
        return (Domain::Writing, format!("there is a {name}"));
    }
    let near = |path: &&&str| !path.strip_prefix("docs/").unwrap_or(path).contains('/');
    if let Some(path) = signals.files.iter().filter(near).find(|path| path.ends_with(".bib")) {
        return (Domain::Research, format!("there is a bibliography, {path}"));
    }
    let manifest = among(&MANIFESTS);
    // A program may come with a paper or a book about it; a Makefile may build nothing but a text.
    let builds_code = |name: &&str| *name != "Makefile" || signals.files.iter().any(|path| !is_prose(path));
    if let Some(name) = manifest.filter(builds_code) {
        return (Domain::Code, format!("there is a {name}"));
    }
    if let Some((paper, bibliography)) = paper(&signals.files) {
        return (
            Domain::Research,
            format!("there is a paper with a bibliography, {paper} and {bibliography}"),
        );
    }
    if let Some(folder) = folder_of_chapters(&signals.files) {
        return (Domain::Writing, format!("there is a folder of chapters, {folder}"));
    }
    match manifest {
        Some(name) => (Domain::Code, format!("there is a {name}")),
        None => (Domain::Code, "default".to_owned()),
    }
}

/// A source of a paper and its bibliography: in the same folder, or the bibliography in a folder below it. Fixtures of
/// tests are neither.
fn paper<'a>(files: &[&'a str]) -> Option<(&'a str, &'a str)> {
    let sources = || files.iter().copied().filter(|path| has_ending(path, &PAPERS));
    let bibliographies =
        files.iter().copied().filter(|path| has_ending(path, &["bib"]) && !is_test_path(path));
    bibliographies.into_iter().find_map(|bibliography| {
        let (folder, _) = parts(bibliography);
        let (above, _) = parts(folder);
        let beside = sources().find(|path| parts(path).0 == folder);
        let set = |path: &&str| parts(path).0 == above && has_ending(path, &["tex", "typ"]);
        Some((beside.or_else(|| sources().find(set))?, bibliography))
    })
}

/// A folder in the root, or one level below, that holds at least two chapters.
fn folder_of_chapters<'a>(files: &[&'a str]) -> Option<&'a str> {
    let folder = |path: &&'a str| {
        let (folder, _) = parts(path);
        let (above, name) = parts(folder);
        let named = FOLDERS_OF_CHAPTERS.iter().any(|known| name.eq_ignore_ascii_case(known));
        (named && !above.contains('/') && has_ending(path, &CHAPTERS)).then_some(folder)
    };
    let folders: Vec<&str> = files.iter().filter_map(folder).collect();
    folders.iter().copied().find(|one| folders.iter().filter(|other| *other == one).count() > 1)
}

/// Text, pictures, data or settings: nothing a test could run.
pub fn is_prose(path: &str) -> bool {
    !is_code(path) || has_ending(path, &CHAPTERS) || has_ending(path, &TYPESETTING)
}

fn has_ending(path: &str, endings: &[&str]) -> bool {
    let (_, name) = parts(path);
    name.rsplit_once('.')
        .is_some_and(|(_, ending)| endings.iter().any(|known| ending.eq_ignore_ascii_case(known)))
}

/// The folder of a path, empty for the root, and the name in it.
fn parts(path: &str) -> (&str, &str) {
    path.trim_matches('"').rsplit_once('/').unwrap_or(("", path.trim_matches('"')))
}

/// The voice profiles among these paths, in the order they are shown.
pub fn voices(files: &[&str]) -> Vec<String> {
    let further = files.iter().copied().filter(|path| {
        path.strip_prefix("docs/voice-").is_some_and(|rest| rest.ends_with(".md") && !rest.contains('/'))
    });
    VOICES.into_iter().filter(|name| files.contains(name)).chain(further).map(str::to_owned).collect()
}
