//! Strict reading of one file with named fields: every fault names file, line, key, value and what is allowed.

use std::collections::BTreeMap;

use archeflow_core::model::{ARCHETYPES, Archetype, Tier};
use archeflow_core::persona;

use super::super::kinds::written;
use super::super::yaml::{self, Value, YamlEntry, YamlNode};
use super::super::{Fault, shown};

pub(super) const LONGEST_TEXT: usize = 500;
const LONGEST_LIST: usize = 32;

pub(super) struct Sheet<'a> {
    pub(super) path: &'a str,
    pub(super) archetypes: &'a BTreeMap<String, Archetype>,
    faults: Vec<Fault>,
}

/// Entries of one section by their keys.
pub(super) type Fields<'e> = BTreeMap<&'e str, &'e YamlEntry>;

impl<'a> Sheet<'a> {
    /// Reads the file and passes it to `fill`; any fault makes it none.
    pub(super) fn read<T>(
        path: &'a str,
        bytes: &[u8],
        archetypes: &'a BTreeMap<String, Archetype>,
        fill: impl FnOnce(&mut Sheet<'a>, &[YamlEntry]) -> Option<T>,
    ) -> Result<T, Vec<Fault>> {
        let entries = yaml::read(path, bytes).map_err(|fault| vec![fault])?;
        let mut sheet = Sheet { path, archetypes, faults: Vec::new() };
        let filled = fill(&mut sheet, &entries);
        match filled {
            Some(filled) if sheet.faults.is_empty() => Ok(filled),
            Some(_) | None => Err(sheet.faults),
        }
    }

    pub(super) fn fault(&mut self, (line, column): (u32, u32), text: String) {
        self.faults.push(Fault { path: self.path.to_owned(), line, column, text });
    }

    pub(super) fn wrong(&mut self, key: &str, node: &YamlNode, allowed: &str) {
        let text = format!("`{key}` is {}; allowed: {allowed}", written(node));
        self.fault((node.line, node.column), text);
    }

    /// The fields of a section. Unknown ones are faults that list the known.
    pub(super) fn fields<'e>(
        &mut self,
        section: &str,
        entries: &'e [YamlEntry],
        known: &[&str],
    ) -> Fields<'e> {
        let mut fields = Fields::new();
        for entry in entries {
            if known.contains(&entry.key.as_str()) {
                fields.insert(&entry.key, entry);
                continue;
            }
            let key = join(section, &shown(&entry.key));
            let place = if section.is_empty() { "here".to_owned() } else { format!("in `{section}`") };
            let text = format!("unknown key `{key}`; known {place}: {}", known.join(", "));
            self.fault((entry.line, entry.column), text);
        }
        fields
    }

    /// The entries of a section; nothing where all of its lines are commented out.
    pub(super) fn section<'e>(&mut self, key: &str, entry: Option<&&'e YamlEntry>) -> &'e [YamlEntry] {
        let Some(entry) = entry else { return &[] };
        match &entry.value.value {
            Value::Map(entries) => entries,
            Value::Nothing => &[],
            Value::Scalar(_) | Value::List(_) => {
                self.wrong(key, &entry.value, "a section of keys, one level below");
                &[]
            }
        }
    }

    /// A field that must be the name of its file.
    pub(super) fn name(&mut self, fields: &Fields<'_>, name: &str) {
        let Some(entry) = fields.get("name") else { return };
        if !matches!(&entry.value.value, Value::Scalar(text) if text == name) {
            self.wrong("name", &entry.value, &format!("`{name}`, the name of the file"));
        }
    }

    /// One line of prose.
    pub(super) fn text(&mut self, key: &str, entry: Option<&&YamlEntry>) -> Option<String> {
        let entry = entry?;
        match &entry.value.value {
            Value::Scalar(text)
                if !text.trim().is_empty() && text.len() <= LONGEST_TEXT && !text.contains('\n') =>
            {
                Some(text.trim().to_owned())
            }
            Value::Scalar(_) | Value::Nothing | Value::List(_) | Value::Map(_) => {
                self.wrong(key, &entry.value, &format!("one line of text, at most {LONGEST_TEXT} bytes"));
                None
            }
        }
    }

    pub(super) fn word<T: Copy>(
        &mut self,
        key: &str,
        entry: Option<&&YamlEntry>,
        words: &[(&str, T)],
    ) -> Option<T> {
        let entry = entry?;
        let said = match &entry.value.value {
            Value::Scalar(text) => words.iter().find(|(word, _)| word == text),
            Value::Nothing | Value::List(_) | Value::Map(_) => None,
        };
        if said.is_none() {
            let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            self.wrong(key, &entry.value, &known.join(", "));
        }
        said.map(|(_, value)| *value)
    }

    pub(super) fn whole(
        &mut self,
        key: &str,
        entry: Option<&&YamlEntry>,
        least: u32,
        most: u32,
    ) -> Option<u32> {
        let entry = entry?;
        let said = match &entry.value.value {
            Value::Scalar(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok(),
            Value::Scalar(_) | Value::Nothing | Value::List(_) | Value::Map(_) => None,
        };
        let said = said.filter(|n| (least..=most).contains(n));
        if said.is_none() {
            self.wrong(key, &entry.value, &format!("a whole number from {least} to {most}"));
        }
        said
    }

    pub(super) fn tier(&mut self, key: &str, entry: &YamlEntry) -> Option<Tier> {
        let tier = match &entry.value.value {
            Value::Scalar(text) => Tier::parse(text),
            Value::Nothing | Value::List(_) | Value::Map(_) => None,
        };
        if tier.is_none() {
            self.wrong(key, &entry.value, Tier::NAMES);
        }
        tier
    }

    /// A list of single words, each with its node, so that a later fault can name its line.
    pub(super) fn list<'e>(
        &mut self,
        key: &str,
        entry: Option<&&'e YamlEntry>,
        allowed: &str,
        fits: impl Fn(&str) -> bool,
    ) -> Vec<(&'e str, &'e YamlNode)> {
        let Some(entry) = entry else { return Vec::new() };
        let Value::List(items) = &entry.value.value else {
            self.wrong(key, &entry.value, &format!("a list of {allowed}"));
            return Vec::new();
        };
        if items.len() > LONGEST_LIST {
            self.wrong(key, &entry.value, &format!("at most {LONGEST_LIST} entries"));
        }
        let mut found: Vec<(&str, &YamlNode)> = Vec::new();
        for item in items {
            match &item.value {
                Value::Scalar(text) if found.iter().any(|(other, _)| other == text) => {
                    self.wrong(key, item, "each entry once");
                }
                Value::Scalar(text) if fits(text) => found.push((text, item)),
                Value::Scalar(_) | Value::Nothing | Value::List(_) | Value::Map(_) => {
                    self.wrong(key, item, allowed);
                }
            }
        }
        found
    }

    /// A section with archetypes or roles as keys; other keys are faults that list the known ones.
    pub(super) fn by_archetype<'e>(
        &mut self,
        key: &str,
        entry: Option<&&'e YamlEntry>,
    ) -> Vec<&'e YamlEntry> {
        let mut known: Vec<&str> = ARCHETYPES.iter().map(|(name, _)| *name).collect();
        known.extend(["gatekeeper", "reviewer"]);
        let archetypes = self.archetypes;
        known.extend(archetypes.keys().map(String::as_str).filter(|name| persona::built_in(name).is_none()));
        let entries = self.section(key, entry);
        let fields = self.fields(key, entries, &known);
        entries.iter().filter(|entry| fields.contains_key(entry.key.as_str())).collect()
    }
}

pub(super) fn join(section: &str, key: &str) -> String {
    if section.is_empty() { key.to_owned() } else { format!("{section}.{key}") }
}

/// A category or a measure: lower case, digits and dashes.
pub(super) fn plain_word(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    (1..=40).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.chars().all(fits)
}

pub(super) const PATHS: &str = "plain relative paths inside the project, outside of .git and .archeflow";

/// A path that can't lead anywhere but into the project's own files.
pub(super) fn plain_path(text: &str) -> bool {
    let part = |part: &str| !part.is_empty() && part != "." && part != "..";
    let own = |head: &str| head.eq_ignore_ascii_case(".git") || head == ".archeflow";
    text.len() <= 200
        && !text.contains(['\\', ':'])
        && !text.contains(char::is_control)
        && text.split('/').all(part)
        && !text.split('/').next().is_some_and(own)
}
