//! The domain of a project, from flags, configuration and the names of its files (AF-004, BX-27).

use crate::model::Domain;

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
    match among(&MANIFESTS) {
        Some(name) => (Domain::Code, format!("there is a {name}")),
        None => (Domain::Code, "default".to_owned()),
    }
}

/// The voice profiles among these paths, in the order they are shown.
pub fn voices(files: &[&str]) -> Vec<String> {
    let further = files.iter().copied().filter(|path| {
        path.strip_prefix("docs/voice-").is_some_and(|rest| rest.ends_with(".md") && !rest.contains('/'))
    });
    VOICES.into_iter().filter(|name| files.contains(name)).chain(further).map(str::to_owned).collect()
}
