//! What a source may not say, and values that make no sense together.

use std::collections::BTreeMap;
use std::path::Path;

use archeflow_core::model::Workflow;
use archeflow_core::settings::{SettingClass, SettingValue};

use super::{Fault, KindText, SetValue, Shelf, Source, SourcedValue, Withheld, in_full, keys, shown};
use crate::config::approval::BuiltIn;
use crate::config::shelf::ShelfKind;
use crate::sandbox::policy::{below_home, is_plain};
use crate::sandbox::proxy::HostList;

/// What no repository may say, not even an approved one.
pub(super) fn the_users_own(found: &[SourcedValue]) -> Vec<Fault> {
    let is_own = |said: &&SourcedValue| {
        keys::known(&said.key)
            .is_some_and(|key| key.class == SettingClass::Own || key.kind.names_a_host(&said.value))
    };
    let own = found.iter().filter(is_own);
    let fault = |said: &SourcedValue| {
        let allowed = match keys::known(&said.key).map(|key| key.class) {
            Some(SettingClass::Own) => "nothing, a repository can't set it",
            Some(_) | None => {
                "an agent without `@`, a repository can't choose the host your key goes to (R5)"
            }
        };
        let text = format!(
            "`{}` is `{}`; allowed: {allowed}. Set it in your own configuration",
            said.key, said.value
        );
        let (path, line) = match &said.source {
            Source::Repo { path, line } | Source::User { path, line } | Source::File { path, line } => {
                (path.clone(), *line)
            }
            Source::BuiltIn | Source::Flag(_) => (String::new(), 0),
        };
        Fault { path, line, column: 0, text }
    };
    own.map(fault).collect()
}

/// Splits the repository's values into what is used and what waits for approval. Guarding is by key and value,
/// so an unapproved repository can make a run more careful but never less.
pub(super) fn guard(found: Vec<SourcedValue>, approved: bool) -> (Vec<SourcedValue>, Vec<Withheld>) {
    let (used, held): (Vec<SourcedValue>, Vec<SourcedValue>) = found.into_iter().partition(|said| {
        approved || keys::known(&said.key).is_some_and(|key| !key.needs_approval(&said.value))
    });
    let withheld = held.into_iter().map(|SourcedValue { key, value, source }| {
        let (path, line) = match source {
            Source::Repo { path, line } | Source::User { path, line } | Source::File { path, line } => {
                (path, line)
            }
            Source::BuiltIn | Source::Flag(_) => (String::new(), 0),
        };
        Withheld { key, value: in_full(&value.to_string()), path, line, overruled: None }
    });
    (used, withheld.collect())
}

/// Unknown names, also where a source of higher precedence overrides them.
pub(super) fn unknown_names(found: &[SourcedValue], shelf: &Shelf) -> Vec<Fault> {
    const ASK: [(&str, ShelfKind); 3] =
        [("team", ShelfKind::Team), ("workflow", ShelfKind::Workflow), ("lenses", ShelfKind::Lens)];
    let mut faults = Vec::new();
    for said in found {
        let Some((key, kind)) = ASK.into_iter().find(|(key, _)| *key == said.key) else { continue };
        let asked = match &said.value {
            SettingValue::Text(name) => std::slice::from_ref(name),
            SettingValue::Names(names) => names,
            SettingValue::Switch(_)
            | SettingValue::Whole(_)
            | SettingValue::Wholes(_)
            | SettingValue::Millionths(_)
            | SettingValue::Money(_)
            | SettingValue::Word(_) => &[],
        };
        let mut known = shelf.names(kind);
        if kind == ShelfKind::Workflow {
            known.splice(0..0, Workflow::ALL.iter().map(|workflow| workflow.name().to_owned()));
        }
        for name in asked.iter().filter(|name| !known.contains(name)) {
            let none = if known.is_empty() { "nothing, for there is no such file" } else { "" };
            let text = format!("`{key}` is `{}`; allowed: {none}{}", shown(name), known.join(", "));
            faults.push(said.source.fault(text));
        }
    }
    faults
}

/// A team and a workflow file both select the team.
pub(super) fn two_teams(values: &BTreeMap<String, SetValue>) -> Option<Fault> {
    let (team, workflow) = (values.get("team")?, values.get("workflow")?);
    let SettingValue::Text(name) = &workflow.value else { return None };
    let text = format!(
        "`team` is `{}` and `workflow` is `{name}`; allowed: one of them, since both select the team",
        team.value
    );
    Some(team.source.fault(text))
}

/// A relative path would mean another place in every working copy.
pub(super) fn sandbox_paths(values: &BTreeMap<String, SetValue>) -> Vec<Fault> {
    let wrong = |key: &'static str| {
        // What is below the home is as right as what is below any other folder.
        let is_right = |text: &String| is_plain(&below_home(text, Some(Path::new("/home"))));
        entries(values, key, is_right, "absolute paths or paths below `~/`, without `..`, other than `/`")
    };
    ["sandbox.read", "sandbox.write"].into_iter().flat_map(wrong).collect()
}

/// An address with a scheme or a path would never match the host of a request.
pub(super) fn sandbox_hosts(values: &BTreeMap<String, SetValue>) -> Vec<Fault> {
    let allowed = "`name`, `*.suffix` or an address, with `:port` unless it is 443 or 80";
    entries(values, "sandbox.hosts", |text| HostList::is_entry(text), allowed)
}

/// The faults of a list, one for each entry that is not right.
fn entries(
    values: &BTreeMap<String, SetValue>,
    key: &str,
    is_right: impl Fn(&String) -> bool,
    allowed: &str,
) -> Vec<Fault> {
    let Some(SetValue { value: SettingValue::Names(list), source, .. }) = values.get(key) else {
        return Vec::new();
    };
    let wrong = list.iter().filter(|text| !is_right(text));
    wrong.map(|text| source.fault(format!("`{key}` is `{}`; allowed: {allowed}", shown(text)))).collect()
}

/// Values that are each allowed but make no sense together.
pub(super) fn disagreements(values: &BTreeMap<String, SetValue>) -> Option<Fault> {
    const ABOVE: &str = "convergence.converging_above_percent";
    const BELOW: &str = "convergence.diverging_below_percent";
    let whole = |key: &str| {
        let built_in = || keys::known(key).and_then(BuiltIn::built_in);
        match values.get(key).map(|set| set.value.clone()).or_else(built_in) {
            Some(SettingValue::Whole(n)) => n,
            _ => 0,
        }
    };
    let (above, below) = (whole(ABOVE), whole(BELOW));
    if below <= above {
        return None;
    }
    let text = format!("`{BELOW}` is `{below}`; allowed: at most `{ABOVE}`, which is `{above}`");
    Some(values.get(BELOW).or_else(|| values.get(ABOVE))?.source.fault(text))
}
