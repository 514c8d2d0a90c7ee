//! A lens: categories, context, attention, evidence and tiers to be laid over the archetypes (BX-07).

use std::collections::BTreeMap;

use archeflow_core::model::{Archetype, Attention, FileTiming, Hundredths, Lens, Proof};

use super::super::Fault;
use super::super::kinds::written;
use super::super::yaml::{Value, YamlEntry};
use super::sheet::{PATHS, Sheet, join, plain_path, plain_word};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LensFile {
    pub path: String,
    pub lens: Lens,
    /// The lines of what can only be checked against the project or the table of keys.
    pub context_lines: BTreeMap<String, u32>,
    pub shadow_lines: BTreeMap<(String, String), u32>,
}

const KNOWN: [&str; 9] = [
    "name",
    "description",
    "version",
    "finding_categories",
    "context_inject",
    "attention",
    "shadow_overrides",
    "evidence_rules",
    "model_overrides",
];
const CATEGORIES: &str = "words of a to z, 0 to 9, `-` and `_`, at most 40 characters each";

pub(super) fn read(
    name: &str,
    path: &str,
    bytes: &[u8],
    archetypes: &BTreeMap<String, Archetype>,
) -> Result<LensFile, Vec<Fault>> {
    Sheet::read(path, bytes, archetypes, |sheet, entries| {
        let fields = sheet.fields("", entries, &KNOWN);
        sheet.name(&fields, name);
        sheet.text("description", fields.get("description"));
        sheet.text("version", fields.get("version"));
        let mut file = LensFile {
            path: path.to_owned(),
            lens: Lens { names: vec![name.to_owned()], ..Lens::default() },
            context_lines: BTreeMap::new(),
            shadow_lines: BTreeMap::new(),
        };
        file.lens.finding_categories = words(sheet, "finding_categories", fields.get("finding_categories"));
        context(sheet, &mut file, fields.get("context_inject"));
        for entry in sheet.by_archetype("attention", fields.get("attention")) {
            let attention = attention(sheet, &join("attention", &entry.key), entry);
            file.lens.attention.insert(entry.key.clone(), attention);
        }
        for entry in sheet.by_archetype("shadow_overrides", fields.get("shadow_overrides")) {
            let key = join("shadow_overrides", &entry.key);
            for param in sheet.section(&key, Some(&entry)) {
                match &param.value.value {
                    Value::Scalar(text) => {
                        let at = (entry.key.clone(), param.key.clone());
                        file.shadow_lines.insert(at.clone(), param.line);
                        file.lens.shadow_overrides.insert(at, text.clone());
                    }
                    Value::Nothing | Value::List(_) | Value::Map(_) => {
                        sheet.wrong(&join(&key, &param.key), &param.value, "a single value");
                    }
                }
            }
        }
        evidence(sheet, &mut file.lens, fields.get("evidence_rules"));
        for entry in sheet.by_archetype("model_overrides", fields.get("model_overrides")) {
            if let Some(tier) = sheet.tier(&join("model_overrides", &entry.key), entry) {
                file.lens.model_overrides.insert(entry.key.clone(), tier);
            }
        }
        Some(file)
    })
}

fn words(sheet: &mut Sheet<'_>, key: &str, entry: Option<&&YamlEntry>) -> Vec<String> {
    sheet.list(key, entry, CATEGORIES, plain_word).into_iter().map(|(word, _)| word.to_owned()).collect()
}

fn context(sheet: &mut Sheet<'_>, file: &mut LensFile, entry: Option<&&YamlEntry>) {
    let entries = sheet.section("context_inject", entry);
    let fields = sheet.fields("context_inject", entries, &FileTiming::ALL.map(FileTiming::name));
    for moment in FileTiming::ALL {
        let key = join("context_inject", moment.name());
        let paths = sheet.list(&key, fields.get(moment.name()), PATHS, plain_path);
        file.context_lines.extend(paths.iter().map(|(path, node)| ((*path).to_owned(), node.line)));
        if !paths.is_empty() {
            file.lens.context.insert(moment, paths.into_iter().map(|(path, _)| path.to_owned()).collect());
        }
    }
}

fn attention(sheet: &mut Sheet<'_>, key: &str, entry: &YamlEntry) -> Attention {
    let entries = sheet.section(key, Some(&entry));
    let fields = sheet.fields(key, entries, &["weight", "extra_focus", "extra_categories"]);
    let weight = fields.get("weight").and_then(|entry| {
        let weight = match &entry.value.value {
            Value::Scalar(text) => hundredths(text),
            Value::Nothing | Value::List(_) | Value::Map(_) => None,
        };
        if weight.is_none() {
            let allowed = "a decimal from 0.1 to 10 with at most two places";
            sheet.wrong(&join(key, "weight"), &entry.value, allowed);
        }
        weight
    });
    Attention {
        weight,
        extra_focus: sheet.text(&join(key, "extra_focus"), fields.get("extra_focus")).unwrap_or_default(),
        extra_categories: words(sheet, &join(key, "extra_categories"), fields.get("extra_categories")),
    }
}

fn hundredths(text: &str) -> Option<Hundredths> {
    let (whole, rest) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(rest) || whole.len() > 2 || rest.len() > 2 {
        return None;
    }
    let hundredths = whole.parse::<u32>().ok()? * 100 + format!("{rest:0<2}").parse::<u32>().ok()?;
    (10..=1_000).contains(&hundredths).then_some(hundredths)
}

fn evidence(sheet: &mut Sheet<'_>, lens: &mut Lens, entry: Option<&&YamlEntry>) {
    const KEY: &str = "evidence_rules";
    let Some(entry) = entry else { return };
    let Value::List(items) = &entry.value.value else {
        sheet.wrong(KEY, &entry.value, "a list of rules, each with category and requires");
        return;
    };
    for item in items {
        let Value::Map(entries) = &item.value else {
            sheet.wrong(KEY, item, "rules, each with category and requires");
            continue;
        };
        let fields = sheet.fields(KEY, entries, &["category", "requires"]);
        let category = sheet.text(&join(KEY, "category"), fields.get("category"));
        let names = Proof::ALL.map(Proof::name);
        let allowed = names.join(", ");
        let listed = sheet
            .list(&join(KEY, "requires"), fields.get("requires"), &allowed, |text| names.contains(&text));
        let proofs =
            Proof::ALL.into_iter().filter(|proof| listed.iter().any(|(name, _)| *name == proof.name()));
        match category.filter(|_| !listed.is_empty()) {
            Some(category) => lens.evidence.entry(category).or_default().extend(proofs),
            None => {
                let text =
                    format!("`{KEY}` is {}; allowed: category and requires, both filled", written(item));
                sheet.fault((item.line, item.column), text);
            }
        }
    }
}
