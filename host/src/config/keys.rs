//! Which setting a path means: [`find`] for a path in a file, [`advice`] for one that is unknown.

use std::collections::HashMap;
use std::sync::LazyLock;

use archeflow_core::model::{ARCHETYPES, HookPoint, Sign, Tier, Workflow, loop_team};
use archeflow_core::settings::{SettingRow, rows};

use archeflow_core::text::closest;

/// Keys of the format that belong to features not built yet.
pub static LATER: &[&str] =
    &["git.commit_style", "git.enabled", "git.signing_key", "initialized", "patterns", "variables"];

/// What a path of a file is.
pub enum KeyMatch {
    Setting(&'static SettingRow),
    /// It has further keys below it.
    Section,
    /// It belongs to a feature that is not built yet.
    Later,
    Unknown,
}

/// The row for a path; `archetypes` are the names known beside the built-in ones.
pub fn find(path: &[&str], archetypes: &[String]) -> KeyMatch {
    let mut section = false;
    for key in rows_below(path) {
        let mut wanted = key.parts.iter();
        let fits = path.iter().all(|part| wanted.next().is_some_and(|wanted| fits(wanted, part, archetypes)));
        match (fits, wanted.next()) {
            (true, None) => return KeyMatch::Setting(key.row),
            (true, Some(_)) => section = true,
            (false, _) => {}
        }
    }
    let later = |later: &&str| later.split('.').zip(path).all(|(later, part)| later == *part);
    match section {
        true => KeyMatch::Section,
        false if LATER.iter().filter(|path_of| path_of.split('.').count() <= path.len()).any(later) => {
            KeyMatch::Later
        }
        false => KeyMatch::Unknown,
    }
}

/// A row with the parts of its path.
struct SplitRow {
    row: &'static SettingRow,
    parts: Vec<&'static str>,
}

/// The rows whose path begins with the first part of this one, in the order of the table. No row begins with a name.
fn rows_below(path: &[&str]) -> impl Iterator<Item = &'static SplitRow> {
    static ROWS: LazyLock<HashMap<&'static str, Vec<SplitRow>>> = LazyLock::new(|| {
        let mut all: HashMap<&'static str, Vec<SplitRow>> = HashMap::new();
        for row in rows() {
            let parts: Vec<&'static str> = row.path.split('.').collect();
            all.entry(parts[0]).or_default().push(SplitRow { row, parts });
        }
        all
    });
    path.first().and_then(|first| ROWS.get(*first)).into_iter().flatten()
}

/// The row for a path that has already been accepted.
pub fn known(path: &str) -> Option<&'static SettingRow> {
    let path: Vec<&str> = path.split('.').collect();
    let any: Vec<String> = path.iter().map(|part| (*part).to_owned()).collect();
    match find(&path, &any) {
        KeyMatch::Setting(key) => Some(key),
        KeyMatch::Section | KeyMatch::Later | KeyMatch::Unknown => None,
    }
}

/// The keys allowed in a section, names spelled out, in the order of the table.
pub fn siblings(section: &[&str], archetypes: &[String]) -> Vec<String> {
    let mut names = Vec::new();
    for key in rows() {
        let mut wanted = key.path.split('.');
        if section.iter().all(|part| wanted.next().is_some_and(|wanted| fits(wanted, part, archetypes)))
            && let Some(next) = wanted.next()
            && (!section.is_empty() || next != "hooks")
        {
            for name in spelled_out(next, archetypes) {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
    }
    names
}

/// The message for an unknown key: the closest known one, and the keys of its section.
pub fn advice(path: &[&str], archetypes: &[String]) -> String {
    let (last, section) = path.split_last().unwrap_or((&"", &[]));
    let near = siblings(section, archetypes);
    if near.is_empty() && !section.is_empty() {
        return advice(section, archetypes);
    }
    let mut text = String::new();
    if last.contains('.') {
        text += "; write one level per line instead of a dotted key";
    } else if let Some(meant) = closest(last, &near) {
        let meant: Vec<&str> = section.iter().copied().chain([meant]).collect();
        text += &format!(" (did you mean `{}`?)", meant.join("."));
    } else if let Some(key) = rows().find(|key| key.path.rsplit('.').next() == Some(last)) {
        text += &format!(" (did you mean `{}`?)", key.path);
    } else if section.is_empty() && *last == "hooks" {
        text += "; hooks belong in `hooks.yaml` beside this file";
    }
    let place = if section.is_empty() { "here".to_owned() } else { format!("in `{}`", section.join(".")) };
    format!("{text}; known {place}: {}", near.join(", "))
}

fn fits(wanted: &str, part: &str, archetypes: &[String]) -> bool {
    match wanted {
        "<archetype>" => {
            let known = ARCHETYPES.iter().any(|(name, _)| *name == part)
                || loop_team().iter().any(|seat| seat.archetype == part)
                || archetypes.iter().any(|name| name == part);
            known && archeflow_core::persona::check_name(part).is_ok()
        }
        "<workflow>" => Workflow::parse(part).is_some(),
        "<tier>" => Tier::parse(part).is_some(),
        "<sign>" => Sign::ALL.iter().any(|sign| sign.name() == part),
        "<point>" => HookPoint::ALL.iter().any(|point| point.name() == part),
        literal => literal == part,
    }
}

fn spelled_out(wanted: &str, archetypes: &[String]) -> Vec<String> {
    match wanted {
        "<archetype>" => {
            let seats = loop_team().into_iter().map(|seat| seat.archetype);
            let built_in = ARCHETYPES.iter().map(|(name, _)| (*name).to_owned()).chain(seats);
            built_in.chain(archetypes.iter().cloned()).collect()
        }
        "<workflow>" => Workflow::ALL.iter().map(|workflow| workflow.name().to_owned()).collect(),
        "<tier>" => ["haiku", "sonnet", "opus"].map(str::to_owned).to_vec(),
        "<sign>" => Sign::ALL.iter().map(|sign| sign.name().to_owned()).collect(),
        "<point>" => HookPoint::ALL.iter().map(|point| point.name().to_owned()).collect(),
        literal => vec![literal.to_owned()],
    }
}
