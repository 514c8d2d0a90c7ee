//! Bundles: a configuration to begin with. Five are built in; others are in the user's folder or at a given path.
//!
//! A bundle only proposes files. What it puts into a repository takes effect like everything else there: after
//! `archeflow trust`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use archeflow_core::persona;
use archeflow_core::settings::SettingValue;

use super::keys::{self, KeyMatch};
use super::kinds::{self, KindText};
use super::layers::{Flags, Inputs, Settings};
use super::shelf::{ShelfKind, in_repository};
use super::yaml::{self, MOST_BYTES, Value, YamlEntry};
use super::{ConfigFile, Fault, Faults, REPOSITORY_ARCHETYPES, REPOSITORY_CONFIG, REPOSITORY_HOOKS, shown};

const MANIFEST: &str = "bundle.yaml";
const VERSION: &str = "1";

/// A configuration to begin with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bundle {
    pub name: String,
    pub description: String,
    pub version: String,
    /// Values for `config.yaml`, by dotted key.
    pub values: BTreeMap<String, SettingValue>,
    /// Further files, with their paths from the repository's root; `config.yaml` among them where there is one.
    pub files: Vec<ConfigFile>,
    /// Files the project has to have.
    pub requires: Vec<String>,
}

/// Name, what it is for, and the values it sets (BX-19).
type BuiltInBundle = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

const BUILT_IN: [BuiltInBundle; 5] = [
    (
        "quick-fix",
        "A small repair: one cycle, one reviewer, two dollars.",
        &[("workflow", "fast"), ("costs.budget_usd", "2")],
    ),
    (
        "backend-feature",
        "A feature over several files: two cycles, three reviewers, five dollars.",
        &[("workflow", "standard"), ("costs.budget_usd", "5")],
    ),
    (
        "security-review",
        "Something that must not go wrong: every reviewer, the security lens, fifteen dollars.",
        &[("workflow", "thorough"), ("costs.budget_usd", "15"), ("lenses", "security")],
    ),
    (
        "writing",
        "Prose: chapters and voice instead of modules and tests.",
        &[
            ("workflow", "standard"),
            ("costs.budget_usd", "5"),
            ("domain", "writing"),
            ("lenses", "prose-voice"),
        ],
    ),
    (
        "research",
        "An argument with sources: claims, citations, method.",
        &[("workflow", "standard"), ("costs.budget_usd", "5"), ("domain", "research")],
    ),
];

pub fn built_in() -> Vec<Bundle> {
    let bundle = |(name, description, values): &BuiltInBundle| {
        let mut bundle = Bundle {
            name: (*name).to_owned(),
            description: (*description).to_owned(),
            version: VERSION.to_owned(),
            ..Bundle::default()
        };
        for (key, value) in *values {
            let set = bundle.set("built-in", key, value);
            debug_assert!(set.is_ok(), "{set:?}");
        }
        bundle
    };
    BUILT_IN.iter().map(bundle).collect()
}

/// The bundles in the user's folder.
pub fn of_user(folder: &Path) -> Result<Vec<Bundle>, Faults> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(Vec::new()) };
    let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    folders.retain(|folder| folder.join(MANIFEST).is_file());
    folders.sort();
    folders.iter().map(|folder| Bundle::load(folder)).collect()
}

impl Bundle {
    /// Sets a key, checked by the table of keys.
    pub fn set(&mut self, place: &str, key: &str, text: &str) -> Result<(), Fault> {
        let fault = |text: String| Fault { path: place.to_owned(), line: 0, column: 0, text };
        let parts: Vec<&str> = key.split('.').collect();
        let archetypes = self.archetypes();
        let KeyMatch::Setting(row) = keys::find(&parts, &archetypes) else {
            return Err(fault(format!("unknown key `{}`{}", shown(key), keys::advice(&parts, &archetypes))));
        };
        let Some(value) = row.kind.read_text(text) else {
            return Err(fault(format!("`{key}` is `{}`; allowed: {}", shown(text), row.kind.allowed())));
        };
        self.values.insert(key.to_owned(), value);
        Ok(())
    }

    pub fn sets(&self, key: &str) -> bool {
        self.values.contains_key(key)
    }

    /// Reads a bundle from its folder.
    pub fn load(folder: &Path) -> Result<Bundle, Faults> {
        let manifest = folder.join(MANIFEST);
        let path = manifest.display().to_string();
        let bytes = read(&manifest)?;
        let entries = yaml::read(&path, &bytes)?;
        let mut bundle = Bundle { version: VERSION.to_owned(), ..Bundle::default() };
        let mut variables = Vec::new();
        let known = ["name", "description", "version", "domain", "includes", "requires", "variables"];
        for entry in &entries {
            match (entry.key.as_str(), &entry.value.value) {
                ("name", Value::Scalar(text)) if persona::check_name(text).is_ok() => {
                    bundle.name.clone_from(text);
                }
                ("description", Value::Scalar(text)) => bundle.description.clone_from(text),
                ("version", Value::Scalar(text)) => bundle.version.clone_from(text),
                ("domain", Value::Scalar(text)) => variables.push(("domain", text.as_str(), entry.line)),
                ("includes", Value::Map(includes)) => {
                    bundle.files = included(folder, &path, includes)?;
                }
                ("requires", Value::List(items)) => bundle.requires.extend(items.iter().filter_map(scalar)),
                ("variables", Value::Map(entries)) => {
                    for entry in entries {
                        let Value::Scalar(text) = &entry.value.value else {
                            return Err(wrong(&path, entry, "a single value").into());
                        };
                        variables.push((entry.key.as_str(), text.as_str(), entry.line));
                    }
                }
                (key, _) if known.contains(&key) => {
                    return Err(wrong(&path, entry, allowed(key)).into());
                }
                (key, _) => {
                    let text = format!("unknown key `{}`; known here: {}", shown(key), known.join(", "));
                    return Err(at(&path, entry.line, text).into());
                }
            }
        }
        if bundle.name.is_empty() {
            return Err(at(&path, 0, "`name` is missing; allowed: the name of the bundle".to_owned()).into());
        }
        bundle.take_config()?;
        for (key, text, line) in variables {
            bundle.set(&path, key, text).map_err(|fault| Fault { line, ..fault })?;
        }
        Ok(bundle)
    }

    /// The values its `config.yaml` sets.
    fn take_config(&mut self) -> Result<(), Faults> {
        let archetypes = self.archetypes();
        let Some((path, bytes)) = self.files.iter().find(|(path, _)| path == REPOSITORY_CONFIG) else {
            return Ok(());
        };
        let entries = yaml::read(path, bytes)?;
        let mut values = BTreeMap::new();
        flatten(&[], &entries, &archetypes, &mut values);
        self.values = values;
        Ok(())
    }

    fn archetypes(&self) -> Vec<String> {
        super::personas::names(&self.files, &[])
    }

    /// The files to write, paths from the repository's root, with the configuration made from the values. All of them
    /// have been read as a run would read them.
    pub fn laid_out(&self, comment: &str) -> Result<Vec<ConfigFile>, Faults> {
        let mut values = self.values.clone();
        if !self.name.is_empty() {
            values.insert("bundle".to_owned(), SettingValue::Text(self.name.clone()));
            values.insert("bundle_version".to_owned(), SettingValue::Text(self.version.clone()));
        }
        let mut files: Vec<ConfigFile> =
            self.files.iter().filter(|(path, _)| path != REPOSITORY_CONFIG).cloned().collect();
        files.push((REPOSITORY_CONFIG.to_owned(), format!("{comment}{}", written(&values)).into_bytes()));
        files.sort();
        check(&files)?;
        Ok(files)
    }

    /// Keeps the configuration in a project's working tree as a bundle in the user's folder. Nothing is overwritten.
    pub fn save(name: &str, root: &Path, bundles: &Path) -> Result<PathBuf, Faults> {
        if let Err(why) = persona::check_name(name) {
            return Err(at("--save", 0, format!("the name is `{}`; allowed: {why}", shown(name))).into());
        }
        let files = project_files(root)?;
        if files.is_empty() {
            let text = "there is nothing to save; a bundle needs a configuration in .archeflow".to_owned();
            return Err(at(&root.display().to_string(), 0, text).into());
        }
        check(&files)?;
        let folder = bundles.join(name);
        if folder.exists() {
            let text = "a bundle of this name exists already".to_owned();
            return Err(at(&folder.display().to_string(), 0, text).into());
        }
        let mut own: Vec<ConfigFile> = vec![(MANIFEST.to_owned(), manifest_of(name, &files).into_bytes())];
        own.extend(
            files.into_iter().map(|(path, bytes)| (path.trim_start_matches(".archeflow/").to_owned(), bytes)),
        );
        lay_down(&folder, &own)?;
        Ok(folder)
    }
}

/// Writes files that are not there yet, with the folders they need.
pub fn lay_down(root: &Path, files: &[ConfigFile]) -> Result<(), Faults> {
    for (path, bytes) in files {
        let target = root.join(path);
        let failed = |error: &dyn std::fmt::Display| {
            at(&target.display().to_string(), 0, format!("can't be written: {error}"))
        };
        let above = target.parent().unwrap_or(root);
        if fs::symlink_metadata(above).is_ok_and(|data| data.is_symlink()) {
            return Err(failed(&"its folder is a symbolic link, which may lead anywhere").into());
        }
        fs::create_dir_all(above).map_err(|error| failed(&error))?;
        crate::store::files::write_new(&target, bytes).map_err(|error| failed(&error))?;
    }
    Ok(())
}

/// The same for one file.
pub fn check_config(path: &str, text: &str) -> Result<(), Faults> {
    check(&[(path.to_owned(), text.as_bytes().to_vec())])
}

/// What a run would make of these files, were they approved.
fn check(files: &[ConfigFile]) -> Result<(), Faults> {
    let flags = Flags::default();
    let inputs = Inputs { repository: files, approved: true, user: &[], file: None, flags: &flags };
    Settings::resolve(&inputs).map(drop)
}

fn manifest_of(name: &str, files: &[ConfigFile]) -> String {
    let mut text =
        format!("name: {name}\ndescription: Saved from a project.\nversion: \"{VERSION}\"\nincludes:\n");
    let has = |wanted: &str| files.iter().any(|(path, _)| path == wanted);
    text += &format!("  config: {}\n  hooks: {}\n", has(REPOSITORY_CONFIG), has(REPOSITORY_HOOKS));
    let named = |names: Vec<&str>| format!("[{}]", names.join(", "));
    let personas = files.iter().filter_map(|(path, _)| super::personas::name_in_repository(path)).collect();
    text += &format!("  archetypes: {}\n", named(personas));
    for kind in ShelfKind::ALL {
        let of_kind =
            files.iter().filter_map(|(path, _)| in_repository(path)).filter(|(other, _)| *other == kind);
        text += &format!("  {}: {}\n", singular(kind), named(of_kind.map(|(_, name)| name).collect()));
    }
    text
}

fn singular(kind: ShelfKind) -> &'static str {
    match kind {
        ShelfKind::Team => "team",
        ShelfKind::Workflow => "workflow",
        ShelfKind::Lens => "lens",
        ShelfKind::Domain => "domain",
    }
}

/// The files a manifest names, by their paths in a repository.
fn included(folder: &Path, path: &str, includes: &[YamlEntry]) -> Result<Vec<ConfigFile>, Faults> {
    let mut wanted: Vec<String> = Vec::new();
    for entry in includes {
        let folder = match entry.key.as_str() {
            "config" | "hooks" => {
                match &entry.value.value {
                    Value::Scalar(text) if text == "true" => wanted.push(format!("{}.yaml", entry.key)),
                    Value::Scalar(text) if text == "false" => {}
                    Value::Scalar(_) | Value::Nothing | Value::List(_) | Value::Map(_) => {
                        return Err(wrong(path, entry, "true or false").into());
                    }
                }
                continue;
            }
            "archetypes" => "archetypes",
            key => match ShelfKind::ALL.into_iter().find(|kind| singular(*kind) == key) {
                Some(kind) => kind.folder(),
                None => {
                    let text = format!(
                        "unknown key `includes.{}`; known in `includes`: config, hooks, archetypes, team, workflow, \
                         lens, domain",
                        shown(key)
                    );
                    return Err(at(path, entry.line, text).into());
                }
            },
        };
        let ending = if folder == "archetypes" { "md" } else { "yaml" };
        let names: Option<Vec<String>> = match &entry.value.value {
            Value::List(items) => items.iter().map(scalar).collect(),
            Value::Scalar(_) | Value::Nothing | Value::Map(_) => None,
        };
        let names = names.filter(|names| names.iter().all(|name| persona::check_name(name).is_ok()));
        let names = names.ok_or_else(|| wrong(path, entry, "a list of names"))?;
        wanted.extend(names.iter().map(|name| format!("{folder}/{name}.{ending}")));
    }
    let part = |file: String| Ok((format!(".archeflow/{file}"), read(&folder.join(file))?));
    wanted.into_iter().map(part).collect()
}

/// The configuration in a working tree: the same files a commit of it would bring along.
fn project_files(root: &Path) -> Result<Vec<ConfigFile>, Faults> {
    let mut paths = vec![REPOSITORY_CONFIG.to_owned(), REPOSITORY_HOOKS.to_owned()];
    let folders = ShelfKind::ALL.map(|kind| format!(".archeflow/{}", kind.folder()));
    for folder in folders.iter().map(String::as_str).chain([REPOSITORY_ARCHETYPES.trim_end_matches('/')]) {
        let entries = fs::read_dir(root.join(folder)).into_iter().flatten().flatten();
        paths.extend(entries.filter_map(|entry| Some(format!("{folder}/{}", entry.file_name().to_str()?))));
    }
    paths.retain(|path| {
        let takes_part = path == REPOSITORY_CONFIG
            || path == REPOSITORY_HOOKS
            || super::personas::name_in_repository(path).is_some()
            || in_repository(path).is_some();
        takes_part && root.join(path).is_file()
    });
    paths.sort();
    paths.into_iter().map(|path| Ok((path.clone(), read(&root.join(&path))?))).collect()
}

fn read(path: &Path) -> Result<Vec<u8>, Fault> {
    crate::store::files::read_capped(path, MOST_BYTES as u64)
        .map_err(|error| at(&path.display().to_string(), 0, format!("can't be read: {error}")))
}

/// Every value a file sets, by dotted key. What is not known is left for [`check`] to name.
fn flatten(
    section: &[&str],
    entries: &[YamlEntry],
    archetypes: &[String],
    values: &mut BTreeMap<String, SettingValue>,
) {
    for entry in entries {
        let path: Vec<&str> = section.iter().copied().chain([entry.key.as_str()]).collect();
        match (keys::find(&path, archetypes), &entry.value.value) {
            (KeyMatch::Setting(row), _) => {
                values.extend(row.kind.read(&entry.value).map(|value| (path.join("."), value)));
            }
            (KeyMatch::Section, Value::Map(entries)) => flatten(&path, entries, archetypes, values),
            (KeyMatch::Section | KeyMatch::Later | KeyMatch::Unknown, _) => {}
        }
    }
}

/// The values as a file: one level per line.
fn written(values: &BTreeMap<String, SettingValue>) -> String {
    let mut text = String::new();
    let mut open: Vec<&str> = Vec::new();
    for (key, value) in values {
        let parts: Vec<&str> = key.split('.').collect();
        let (last, sections) = parts.split_last().unwrap_or((&"", &[]));
        let shared = open.iter().zip(sections).take_while(|(a, b)| a == b).count();
        for (depth, section) in sections.iter().enumerate().skip(shared) {
            text += &format!("{}{section}:\n", "  ".repeat(depth));
        }
        open = sections.to_vec();
        text += &format!("{}{last}: {}\n", "  ".repeat(sections.len()), plain(value));
    }
    text
}

fn plain(value: &SettingValue) -> String {
    let text = value.to_string();
    match value {
        SettingValue::Text(_) => quoted(&text),
        SettingValue::Switch(_)
        | SettingValue::Whole(_)
        | SettingValue::Wholes(_)
        | SettingValue::Millionths(_)
        | SettingValue::Money(_)
        | SettingValue::Word(_)
        | SettingValue::Names(_) => text,
    }
}

/// A text as a YAML value.
pub fn quoted(text: &str) -> String {
    let plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '.')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || " ./_-".contains(c))
        && !matches!(text, "null" | "Null" | "NULL");
    if plain { text.to_owned() } else { format!("'{}'", text.replace('\'', "''")) }
}

fn scalar(node: &yaml::YamlNode) -> Option<String> {
    match &node.value {
        Value::Scalar(text) => Some(text.clone()),
        Value::Nothing | Value::List(_) | Value::Map(_) => None,
    }
}

fn allowed(key: &str) -> &'static str {
    match key {
        "name" => "the name of the bundle: a to z, 0 to 9, `-` and `_`",
        "includes" => "a section with config, hooks, archetypes, team, workflow, lens, domain",
        "requires" => "a list of files the project has to have",
        "variables" => "a section of keys of the configuration",
        _ => "one line of text",
    }
}

fn wrong(path: &str, entry: &YamlEntry, allowed: &str) -> Fault {
    let text = format!("`{}` is {}; allowed: {allowed}", shown(&entry.key), kinds::written(&entry.value));
    at(path, entry.line, text)
}

fn at(path: &str, line: u32, text: String) -> Fault {
    Fault { path: path.to_owned(), line, column: 0, text }
}
