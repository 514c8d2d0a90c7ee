//! A domain: its words, its measures, what to attend to in it (AF-004, AF-005, BX-27).

use std::collections::BTreeMap;

use archeflow_core::model::{Archetype, Tier};
use archeflow_core::rules::lens::unite;

use super::super::Fault;
use super::sheet::{PATHS, Sheet, join, plain_path, plain_word};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DomainFile {
    pub concepts: BTreeMap<String, String>,
    pub metrics: Vec<String>,
    pub review_focus: BTreeMap<String, String>,
    pub context: Vec<String>,
    pub model_overrides: BTreeMap<String, Tier>,
    /// Where a path of the context is named.
    pub context_lines: BTreeMap<String, (String, u32)>,
}

impl DomainFile {
    /// Lays another file over this one: lists are united, of two words the upper one counts.
    pub(super) fn lay(&mut self, upper: DomainFile) {
        self.concepts.extend(upper.concepts);
        unite(&mut self.metrics, upper.metrics);
        self.review_focus.extend(upper.review_focus);
        unite(&mut self.context, upper.context);
        self.model_overrides.extend(upper.model_overrides);
        self.context_lines.extend(upper.context_lines);
    }
}

pub(super) fn read(
    name: &str,
    path: &str,
    bytes: &[u8],
    archetypes: &BTreeMap<String, Archetype>,
) -> Result<DomainFile, Vec<Fault>> {
    Sheet::read(path, bytes, archetypes, |sheet, entries| {
        let known = ["name", "concepts", "metrics", "review_focus", "context", "model_overrides"];
        let fields = sheet.fields("", entries, &known);
        sheet.name(&fields, name);
        let mut file = DomainFile::default();
        for entry in sheet.section("concepts", fields.get("concepts")) {
            if let Some(text) = sheet.text(&join("concepts", &entry.key), Some(&entry)) {
                file.concepts.insert(entry.key.clone(), text);
            }
        }
        let words = "words of a to z, 0 to 9, `-` and `_`, at most 40 characters each";
        let metrics = sheet.list("metrics", fields.get("metrics"), words, plain_word);
        file.metrics = metrics.into_iter().map(|(word, _)| word.to_owned()).collect();
        for entry in sheet.by_archetype("review_focus", fields.get("review_focus")) {
            if let Some(text) = sheet.text(&join("review_focus", &entry.key), Some(&entry)) {
                file.review_focus.insert(entry.key.clone(), text);
            }
        }
        for (at, node) in sheet.list("context", fields.get("context"), PATHS, plain_path) {
            file.context.push(at.to_owned());
            file.context_lines.insert(at.to_owned(), (path.to_owned(), node.line));
        }
        for entry in sheet.by_archetype("model_overrides", fields.get("model_overrides")) {
            if let Some(tier) = sheet.tier(&join("model_overrides", &entry.key), entry) {
                file.model_overrides.insert(entry.key.clone(), tier);
            }
        }
        Some(file)
    })
}
