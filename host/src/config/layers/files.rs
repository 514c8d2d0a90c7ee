//! What one file sets: every key by the table, every fault with its line.

use archeflow_core::model::HookPoint;
use archeflow_core::settings::{SettingField, SettingKind, SettingRow};

use super::{FileValue, FileValues, KeyMatch, KindText, keys, shown, whole_file};
use crate::config::Fault;
use crate::config::kinds::{host_only, written};
use crate::config::yaml::{self, Value, YamlEntry};

/// Faults beyond this number in one file are only counted.
const ENOUGH_FAULTS: usize = 20;

pub(super) fn config(path: &str, bytes: &[u8], archetypes: &[String]) -> FileValues {
    let entries = yaml::read(path, bytes).map_err(|fault| vec![fault])?;
    let mut walk = Walk { path, archetypes, lines: Vec::new(), faults: Vec::new(), more: 0 };
    for entry in &entries {
        match entry.key.as_str() {
            "hooks" => walk.unknown(&[&entry.key], entry),
            _ => walk.entry(&[], entry),
        }
    }
    walk.done()
}

/// A hook is one decision: the source of its command also decides, by its value or by omission, what a failure means.
pub(super) fn hooks(path: &str, bytes: &[u8]) -> FileValues {
    let entries = yaml::read(path, bytes).map_err(|fault| vec![fault])?;
    let mut walk = Walk { path, archetypes: &[], lines: Vec::new(), faults: Vec::new(), more: 0 };
    for entry in &entries {
        let before = walk.faults.len();
        walk.entry(&["hooks"], entry);
        let Some(point) = HookPoint::ALL.into_iter().find(|point| point.name() == entry.key) else {
            continue;
        };
        let names = |part: &str| format!("hooks.{}.{part}", point.name());
        let has = |part: &str| walk.lines.iter().any(|line| line.key == names(part));
        if walk.faults.len() > before {
            continue;
        }
        if !has("command") {
            let text =
                format!("the hook `{}` has no command; known in it: command, fail_action", point.name());
            walk.fault(entry, text);
        } else if !has("fail_action")
            && let Some(value) = point.fail_action().read()
        {
            let (key, path) = (names("fail_action"), path.to_owned());
            walk.lines.push(FileValue { key, value, path, line: entry.line });
        }
    }
    walk.done()
}

/// The way through one file.
struct Walk<'a> {
    path: &'a str,
    archetypes: &'a [String],
    lines: Vec<FileValue>,
    faults: Vec<Fault>,
    /// Faults that were only counted.
    more: usize,
}

impl Walk<'_> {
    fn entry(&mut self, section: &[&str], entry: &YamlEntry) {
        let path: Vec<&str> = section.iter().copied().chain([entry.key.as_str()]).collect();
        if entry.key.contains('.') {
            return self.unknown(&path, entry);
        }
        match (keys::find(&path, self.archetypes), &entry.value.value) {
            (KeyMatch::Setting(key), _) => self.value(key, &path, entry),
            (KeyMatch::Section, Value::Map(entries)) => {
                for entry in entries {
                    self.entry(&path, entry);
                }
            }
            // A section whose lines are all commented out.
            (KeyMatch::Section, Value::Nothing) => {}
            (KeyMatch::Section, Value::Scalar(_) | Value::List(_)) => {
                let is = written(&entry.value);
                let below = keys::siblings(&path, self.archetypes).join(", ");
                let text =
                    format!("`{}` is {is}; allowed: the keys {below}, one level below", path.join("."));
                self.fault(entry, text);
            }
            (KeyMatch::Later, _) => {
                let here = keys::siblings(section, self.archetypes).join(", ");
                let text =
                    format!("`{}` is not supported by this version; known here: {here}", path.join("."));
                self.fault(entry, text);
            }
            (KeyMatch::Unknown, _) => self.unknown(&path, entry),
        }
    }

    fn value(&mut self, key: &SettingRow, path: &[&str], entry: &YamlEntry) {
        match key.kind.read(&entry.value) {
            Some(value) => {
                let (key, path) = (path.join("."), self.path.to_owned());
                self.lines.push(FileValue { key, value, path, line: entry.line });
            }
            None => {
                let name = path.join(".");
                let is = match (key.kind, &entry.value.value) {
                    // It may hold a secret although it is wrong.
                    (SettingKind::SecretUrl, Value::Scalar(text)) => format!("`{}`", host_only(text)),
                    (SettingKind::SecretName, Value::Scalar(text)) if !text.is_empty() => "`…`".to_owned(),
                    _ => written(&entry.value),
                };
                self.fault(entry, format!("`{name}` is {is}; allowed: {}", key.kind.allowed()));
            }
        }
    }

    fn unknown(&mut self, path: &[&str], entry: &YamlEntry) {
        if self.faults.len() >= ENOUGH_FAULTS {
            self.more += 1;
            return;
        }
        let advice = keys::advice(path, self.archetypes);
        self.fault(entry, format!("unknown key `{}`{advice}", shown(&path.join("."))));
    }

    fn fault(&mut self, entry: &YamlEntry, text: String) {
        if self.faults.len() >= ENOUGH_FAULTS {
            self.more += 1;
            return;
        }
        let (line, column) = (entry.line, entry.column);
        self.faults.push(Fault { path: self.path.to_owned(), line, column, text });
    }

    fn done(mut self) -> FileValues {
        if self.more > 0 {
            self.faults.push(whole_file(self.path, &format!("and {} more like these", self.more)));
        }
        if self.faults.is_empty() { Ok(self.lines) } else { Err(self.faults) }
    }
}
