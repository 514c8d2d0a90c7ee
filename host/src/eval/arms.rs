//! The arms of an evaluation: overlays of the configuration, so that an ablation is a file.
//!
//! An arm is a folder as `--config` takes it, and complete in itself: it names only archetypes, teams and lenses that it brings along or
//! that are built in. Which agent works, and for how much money, is the same in all arms, so no arm may say it.

#![expect(clippy::result_large_err, reason = "a suite collects faults as values, and an arm is read once")]

use std::path::Path;

use archeflow_core::text::closest;

use super::{SuiteFault, bad_name};
use crate::config::yaml::{self, YamlEntry};
use crate::config::{ConfigFile, Fault, Faults, Flags, Inputs, NamedConfig, Settings, user};

/// One way of working that is compared with others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvalArm {
    pub name: String,
    /// The first comment of its `config.yaml`.
    pub about: String,
    /// Path in the arm's folder, and content. `config.yaml` is always there.
    pub files: Vec<(String, Vec<u8>)>,
}

const CONFIG: &str = "config.yaml";

/// A built-in arm: its name, and its files below `evals/arms/<name>/`.
macro_rules! arm {
    ($name:literal: $($path:literal),+) => {
        ($name, &[$(($path, include_str!(concat!("../../../evals/arms/", $name, "/", $path)))),+])
    };
}

type BuiltInArm = (&'static str, &'static [(&'static str, &'static str)]);

const BUILT_IN: [BuiltInArm; 8] = [
    arm!("single": "config.yaml", "teams/single.yaml", "archetypes/maker.md"),
    arm!("self-review": "config.yaml", "teams/self-review.yaml", "archetypes/maker.md", "archetypes/self-reviewer.md"),
    arm!("reviewers-only": "config.yaml", "teams/reviewers-only.yaml", "archetypes/maker.md"),
    arm!(
        "pdca-generic": "config.yaml", "teams/generic.yaml", "archetypes/planner.md", "archetypes/builder.md",
        "archetypes/reviewer-one.md", "archetypes/reviewer-two.md"
    ),
    arm!("no-shadows": "config.yaml"),
    arm!("no-evidence": "config.yaml"),
    arm!("no-convergence": "config.yaml"),
    arm!("full": "config.yaml"),
];

/// Sections of `config.yaml` that are the same in all arms.
pub(super) const SHARED: [&str; 3] = ["agents", "models", "costs"];
/// The same in lenses and domains.
pub(super) const SHARED_MODELS: &str = "model_overrides";

/// Every arm that comes with the program, the simplest first.
pub fn built_in() -> Vec<EvalArm> {
    let arm = |(name, files): &BuiltInArm| {
        let files: Vec<(String, Vec<u8>)> =
            files.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())).collect();
        EvalArm { name: (*name).to_owned(), about: about(&files), files }
    };
    BUILT_IN.iter().map(arm).collect()
}

/// The arm that a word on the command line means: a built-in one by its name, or the user's own by the path of a file or folder.
pub fn find(word: &str) -> Result<EvalArm, SuiteFault> {
    let known = built_in();
    if let Some(arm) = known.iter().find(|arm| arm.name == word) {
        return Ok(arm.clone());
    }
    let names: Vec<String> = known.into_iter().map(|arm| arm.name).collect();
    let path = Path::new(word);
    if std::fs::symlink_metadata(path).is_err() {
        let near = closest(word, &names).map(|near| format!(", did you mean `{near}`?")).unwrap_or_default();
        let text = format!("there is no such arm{near}");
        let remedy =
            format!("Known arms: {}; or name a .yaml file or a folder of your own.", names.join(", "));
        return Err(fault(word, 0, text, &remedy));
    }
    let arm = read(path)?;
    if names.contains(&arm.name) {
        let text = format!("`{}` is the name of a built-in arm", arm.name);
        return Err(fault(word, 0, text, "Rename the file or folder."));
    }
    Ok(arm)
}

/// The arm whose files are in this folder.
pub fn of_folder(folder: &Path) -> Result<EvalArm, SuiteFault> {
    read(folder)
}

/// Reads an arm of the user's own and proves that a run could start with it.
fn read(path: &Path) -> Result<EvalArm, SuiteFault> {
    let place = path.display().to_string();
    let is_folder = path.is_dir();
    if !is_folder && path.extension().is_none_or(|ending| ending != "yaml") {
        let text = "an arm is a folder, or a file whose name ends in .yaml".to_owned();
        return Err(fault(&place, 0, text, "Name a folder with config.yaml in it, or a .yaml file."));
    }
    // The name of `.` is that of the folder it means.
    let real = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let name = if is_folder { real.file_name() } else { real.file_stem() };
    let name = name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if let Some(text) = bad_name(&name) {
        return Err(fault(&place, 0, text.to_owned(), "Rename the file or folder."));
    }
    let named = user::read_named(path).map_err(|faults| unreadable(&place, faults))?;
    check(&place, &named)?;
    let below = |(full, bytes): &ConfigFile| {
        let inner = Path::new(full).strip_prefix(path).ok().and_then(Path::to_str);
        (inner.filter(|_| is_folder).unwrap_or(CONFIG).to_owned(), bytes.clone())
    };
    let files: Vec<(String, Vec<u8>)> =
        std::iter::once(&named.config).chain(&named.others).map(below).collect();
    Ok(EvalArm { name, about: about(&files), files })
}

/// What all arms share is not set, and the rest is a configuration without faults.
fn check(place: &str, named: &NamedConfig) -> Result<(), SuiteFault> {
    let (config, bytes) = &named.config;
    let entries = yaml::read(config, bytes).map_err(|fault| unreadable(place, fault.into()))?;
    let mut shared: Vec<(String, YamlEntry)> = Vec::new();
    let of_config = entries.into_iter().filter(|entry| SHARED.contains(&entry.key.as_str()));
    shared.extend(of_config.map(|entry| (config.clone(), entry)));
    for (path, bytes) in named.others.iter().filter(|(path, _)| path.ends_with(".yaml")) {
        let entries = yaml::read(path, bytes).map_err(|fault| unreadable(place, fault.into()))?;
        let found = entries.into_iter().filter(|entry| entry.key == SHARED_MODELS);
        shared.extend(found.map(|entry| (path.clone(), entry)));
    }
    if let Some((path, entry)) = shared.first() {
        let text =
            format!("an arm can't set `{}`: agents, models and budget are the same in all arms", entry.key);
        let remedy = "Remove it; set it for all arms in your own configuration or on the command line.";
        let more =
            shared.iter().skip(1).map(|(path, entry)| format!("{path}:{}: `{}` too", entry.line, entry.key));
        return Err(SuiteFault { output: more.collect(), ..fault(path, entry.line, text, remedy) });
    }
    let flags = Flags::default();
    let inputs = Inputs { repository: &[], approved: false, user: &[], file: Some(named), flags: &flags };
    Settings::resolve(&inputs).map(drop).map_err(|faults| unreadable(place, faults))
}

/// The first fault with its place; the others are listed below it.
fn unreadable(place: &str, Faults(faults): Faults) -> SuiteFault {
    let mut faults = faults.into_iter();
    let first = faults.next();
    let remedy =
        "Correct it. Archetypes, teams and lenses that an arm names have to be in its folder, or built in.";
    let Some(Fault { path, line, text, .. }) = first else {
        return fault(place, 0, "can't be read".to_owned(), remedy);
    };
    SuiteFault { output: faults.map(|fault| fault.to_string()).collect(), ..fault(&path, line, text, remedy) }
}

/// The first comment of the configuration.
fn about(files: &[(String, Vec<u8>)]) -> String {
    let config = files.iter().find(|(path, _)| path == CONFIG);
    let text = config.map(|(_, bytes)| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default();
    let comment = text.lines().find_map(|line| line.trim_start().strip_prefix('#'));
    comment.map(|words| words.trim().to_owned()).unwrap_or_default()
}

fn fault(place: &str, line: u32, text: String, remedy: &str) -> SuiteFault {
    SuiteFault {
        task: String::new(),
        place: place.to_owned(),
        line,
        text,
        remedy: remedy.to_owned(),
        output: Vec::new(),
    }
}
