//! Settings laid over the policy that a run was begun with, for whoever asks what would have been (AF-180).
//!
//! Where a setting goes in the policy is not written down a second time: two values of it make two policies, and where
//! those two differ is its place. So every key of the table can be asked about, also one that comes later.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use archeflow_core::event::RunStart;
use archeflow_core::model::{CATEGORIES, FailAction, Hook, HookPoint, Policy, Proof, Strategy, Workflow};
use archeflow_core::projections::replay::whatif::Change;
use serde_json::Value;

use super::keys::{self, Found, Kind};
use super::{Fault, Faults, Flags, Inputs, Part, Settings, shown};

/// A setting as it was and as it would be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    pub key: String,
    pub was: String,
    pub would: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anew {
    pub change: Change,
    pub changes: Vec<Changed>,
    /// What is taken for granted about the recorded answers.
    pub assumed: Vec<&'static str>,
}

const SAME_CYCLES: &str =
    "briefs would have named another number of cycles; answers are taken to be the same";
const SAME_EVIDENCE: &str =
    "reviewers would have been told other rules of evidence; their answers are taken to be the same";

/// Lays `key=value` pairs over the first line of a run, from left to right.
pub fn lay_over(start: &RunStart, pairs: &[(String, String)]) -> Result<Anew, Fault> {
    let change = Change { start: start.clone(), auto_merge: None };
    let mut anew = Anew { change, changes: Vec::new(), assumed: Vec::new() };
    for (key, value) in pairs {
        let was = anew.set(key, value.trim())?;
        anew.changes.push(Changed { key: key.clone(), was, would: value.trim().to_owned() });
    }
    let convergence = &anew.change.start.config.convergence;
    if convergence.diverging_below_percent > convergence.converging_above_percent {
        return Err(fault("convergence.diverging_below_percent would be above converging_above_percent"));
    }
    if anew.change.start.max_cycles != start.max_cycles {
        anew.assumed.push(SAME_CYCLES);
    }
    if anew.change.start.overlay.evidence != start.overlay.evidence {
        anew.assumed.push(SAME_EVIDENCE);
    }
    Ok(anew)
}

impl Anew {
    /// Sets one key and says what it was.
    fn set(&mut self, key: &str, value: &str) -> Result<String, Fault> {
        let start = &mut self.change.start;
        match key.split('.').collect::<Vec<_>>().as_slice() {
            ["workflow"] => {
                let was = start.workflow.name().to_owned();
                start.workflow =
                    Workflow::parse(value).ok_or_else(|| not_one(key, value, "fast, standard, thorough"))?;
                start.max_cycles = start.config.cycles(start.workflow);
                start.team.clear();
                Ok(was)
            }
            ["strategy"] => {
                let was = start.strategy.name().to_owned();
                let known =
                    [Strategy::Pdca, Strategy::Pipeline].into_iter().find(|known| known.name() == value);
                start.strategy = known.ok_or_else(|| not_one(key, value, "pdca, pipeline"))?;
                Ok(was)
            }
            ["max_cycles"] => {
                let of = format!("max_cycles.{}", start.workflow.name());
                start.config = with(&start.config, &of, value)?;
                Ok(std::mem::replace(&mut start.max_cycles, start.config.cycles(start.workflow)).to_string())
            }
            ["max_cycles", workflow] => {
                let was = Workflow::parse(workflow).map(|workflow| start.config.cycles(workflow));
                start.config = with(&start.config, key, value)?;
                if *workflow == start.workflow.name() {
                    start.max_cycles = start.config.cycles(start.workflow);
                }
                Ok(was.map(|was| was.to_string()).unwrap_or_default())
            }
            ["git", "auto_merge"] => {
                let on = value.parse().map_err(|_| not_one(key, value, "true or false"))?;
                self.auto_merge(on);
                Ok("as each session said".to_owned())
            }
            ["evidence", category] => evidence(start, category, value),
            ["hooks", point, what] => hook(&mut start.config.hooks, (point, what), value),
            _ => {
                let before = start.config.clone();
                start.config = with(&before, key, value)?;
                Ok(told(&before, key, value))
            }
        }
    }

    fn auto_merge(&mut self, on: bool) {
        self.change.auto_merge = Some(on);
    }
}

/// What a category's findings must show; the lenses of the run said so, and nothing else can.
fn evidence(start: &mut RunStart, category: &str, value: &str) -> Result<String, Fault> {
    let known = CATEGORIES.iter().copied().chain(start.categories.iter().map(String::as_str));
    if !known.clone().any(|known| known == category) {
        return Err(not_one("evidence", category, &known.collect::<Vec<_>>().join(", ")));
    }
    let proof = |word: &str| Proof::ALL.into_iter().find(|proof| proof.name() == word);
    let wanted: Option<BTreeSet<Proof>> = match value {
        "none" => Some(BTreeSet::new()),
        list => list.split(',').map(|word| proof(word.trim())).collect(),
    };
    let key = format!("evidence.{category}");
    let wanted = wanted.ok_or_else(|| not_one(&key, value, "none, or a list of line, run and quote"))?;
    let was = match wanted.is_empty() {
        true => start.overlay.evidence.remove(category),
        false => start.overlay.evidence.insert(category.to_owned(), wanted),
    };
    let names = |proofs: BTreeSet<Proof>| proofs.into_iter().map(Proof::name).collect::<Vec<_>>().join(",");
    Ok(was.map_or_else(|| "none".to_owned(), names))
}

fn hook(hooks: &mut Vec<Hook>, (point, what): (&str, &str), value: &str) -> Result<String, Fault> {
    let key = format!("hooks.{point}.{what}");
    let points = HookPoint::ALL.map(HookPoint::name).join(", ");
    let point = HookPoint::ALL.into_iter().find(|known| known.name() == point);
    let point = point.ok_or_else(|| not_one("hooks", &key, &points))?;
    let known = hooks.iter_mut().find(|hook| hook.point == point);
    match (what, known) {
        ("command", Some(hook)) => Ok(std::mem::replace(&mut hook.command, value.to_owned())),
        ("command", None) => {
            let fail_action = if point == HookPoint::PreMerge { FailAction::Abort } else { FailAction::Warn };
            hooks.push(Hook { point, command: value.to_owned(), fail_action });
            Ok("none".to_owned())
        }
        ("fail_action", Some(hook)) => {
            let now = match value {
                "warn" => FailAction::Warn,
                "abort" => FailAction::Abort,
                _ => return Err(not_one(&key, value, "warn, abort")),
            };
            let was = std::mem::replace(&mut hook.fail_action, now);
            Ok(if was == FailAction::Warn { "warn" } else { "abort" }.to_owned())
        }
        ("fail_action", None) => Err(fault(&format!("`{key}`: the run had no {} hook", point.name()))),
        _ => Err(not_one("hooks", &key, "hooks.<point>.command, hooks.<point>.fail_action")),
    }
}

/// The policy with one key at another value.
fn with(policy: &Policy, key: &str, value: &str) -> Result<Policy, Fault> {
    let wanted = leaves(&policy_of(key, value)?);
    let mut leaves = leaves(policy);
    for place in places(key, value)? {
        match wanted.get(&place) {
            Some(leaf) => leaves.insert(place, leaf.clone()),
            None => leaves.remove(&place),
        };
    }
    serde_json::from_value(tree(leaves))
        .map_err(|error| fault(&format!("`{key}` can't be laid over the run's policy: {error}")))
}

/// What stood in the places of a key, as people write it.
fn told(policy: &Policy, key: &str, value: &str) -> String {
    let leaves = leaves(policy);
    let places = places(key, value).unwrap_or_default();
    let was = places.iter().next().and_then(|place| Some((place.last()?, leaves.get(place)?)));
    match was {
        None => "not set".to_owned(),
        Some((_, Value::Null)) => "off".to_owned(),
        Some((_, Value::String(text))) => text.clone(),
        Some((name, Value::Number(ms))) if name.ends_with("_ms") => {
            archeflow_core::view::seconds(ms.as_u64().unwrap_or(0))
        }
        // The one number that is a share of a million in the log.
        Some((name, Value::Number(share))) if name == "confidence_floor" => {
            let text = format!("0.{:06}", share.as_u64().unwrap_or(0));
            if share.as_u64() == Some(1_000_000) {
                "1".to_owned()
            } else {
                text.trim_end_matches('0').to_owned()
            }
        }
        Some((_, other)) => other.to_string(),
    }
}

type Place = Vec<String>;

/// Where a key goes: wherever the policies of two of its values differ.
fn places(key: &str, value: &str) -> Result<BTreeSet<Place>, Fault> {
    let wanted = leaves(&policy_of(key, value)?);
    let mut places = BTreeSet::new();
    for other in others(kind(key)?) {
        let Ok(policy) = policy_of(key, &other) else { continue };
        let other = leaves(&policy);
        let differs = |place: &&Place| wanted.get(*place) != other.get(*place);
        places.extend(wanted.keys().chain(other.keys()).filter(differs).cloned());
    }
    if places.is_empty() {
        let text =
            format!("`{}` is no rule that a run is judged by: it can't be changed afterwards", shown(key));
        return Err(fault(&text));
    }
    Ok(places)
}

/// Values of every kind, so that two of them differ whatever was asked for.
fn others(kind: Kind) -> Vec<String> {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    match kind {
        Kind::Switch => words(&["true", "false"]),
        Kind::Whole(least, most) | Kind::Limit(least, most) => vec![least.to_string(), most.to_string()],
        Kind::Wholes(_, least, _) => vec!["[]".to_owned(), format!("[{least}]")],
        Kind::Share | Kind::Dollars(_) => words(&["0", "1"]),
        Kind::Words(known) => words(known),
        Kind::Tier => words(&["haiku", "opus"]),
        Kind::Command => words(&["one", "two"]),
        Kind::Agent => words(&["cmd:one", "cmd:two"]),
        Kind::Names(_) | Kind::Phrases(_) => words(&["[one]", "[two]"]),
        Kind::Off(_)
        | Kind::Release
        | Kind::Prefix
        | Kind::Variables
        | Kind::Workflow
        | Kind::Name
        | Kind::Agents(_)
        | Kind::Model
        | Kind::Url
        | Kind::HostKeys(_)
        | Kind::Shares(_) => Vec::new(),
    }
}

fn kind(key: &str) -> Result<Kind, Fault> {
    let parts: Vec<&str> = key.split('.').collect();
    match keys::find(&parts, &[]) {
        Found::Key(row) => Ok(row.kind),
        Found::Section | Found::Later | Found::Unknown => {
            Err(fault(&format!("unknown key `{}`{}", shown(key), keys::advice(&parts, &[]))))
        }
    }
}

/// The built-in policy with this one key set.
fn policy_of(key: &str, value: &str) -> Result<Policy, Fault> {
    let kind = kind(key)?;
    let is_list = matches!(kind, Kind::Wholes(..) | Kind::Names(_) | Kind::Phrases(_))
        && value.starts_with('[')
        && !value.contains('\n');
    let settings = if is_list {
        let not_so = |_| fault(&format!("`{key}` is `{}`; allowed: {}", shown(value), kind.allowed()));
        resolved(Some(&written(key, value))).map_err(not_so)?
    } else {
        static BUILT_IN: LazyLock<Option<Settings>> = LazyLock::new(|| resolved(None).ok());
        let built_in = BUILT_IN.clone();
        let mut settings = built_in.ok_or_else(|| fault("the built-in settings can't be read"))?;
        settings.lay_under(key, value, "--set", 0)?;
        settings
    };
    let mut policy = settings.policy();
    policy.costs.prices = settings.prices();
    Ok(policy)
}

fn resolved(file: Option<&Part>) -> Result<Settings, Faults> {
    let flags = Flags::default();
    Settings::resolve(&Inputs { repository: &[], approved: false, user: &[], file, flags: &flags })
}

/// A list can only be read where it stands in a file.
fn written(key: &str, value: &str) -> Part {
    let mut text = String::new();
    let parts: Vec<&str> = key.split('.').collect();
    for (depth, part) in parts.iter().enumerate() {
        text.push_str(&format!("{}{part}:", "  ".repeat(depth)));
        text.push_str(&if depth + 1 == parts.len() { format!(" {value}\n") } else { "\n".to_owned() });
    }
    ("--set".to_owned(), text.into_bytes())
}

/// A policy as it stands in a log, every value by its place. Lists are values.
fn leaves(policy: &Policy) -> BTreeMap<Place, Value> {
    fn walk(value: Value, place: Place, leaves: &mut BTreeMap<Place, Value>) {
        let Value::Object(fields) = value else {
            leaves.insert(place, value);
            return;
        };
        for (name, value) in fields {
            walk(value, place.iter().cloned().chain([name]).collect(), leaves);
        }
    }
    let mut all = BTreeMap::new();
    walk(serde_json::to_value(policy).unwrap_or_default(), Vec::new(), &mut all);
    all
}

fn tree(leaves: BTreeMap<Place, Value>) -> Value {
    let mut root = Value::Object(serde_json::Map::new());
    for (place, leaf) in leaves {
        let mut at = &mut root;
        for name in place {
            if !at.is_object() {
                *at = Value::Object(serde_json::Map::new());
            }
            at = &mut at[name];
        }
        *at = leaf;
    }
    root
}

fn not_one(key: &str, value: &str, allowed: &str) -> Fault {
    fault(&format!("`{key}` is `{}`; allowed: {allowed}", shown(value)))
}

fn fault(text: &str) -> Fault {
    Fault { path: "--set".to_owned(), line: 0, column: 0, text: text.to_owned() }
}

#[cfg(test)]
mod tests {
    use archeflow_core::event::RunStart;
    use archeflow_core::model::{Policy, ZeroPolicy};

    use super::super::keys::{KEYS, Key};
    use super::*;

    fn set(pairs: &[(&str, &str)]) -> Result<Anew, Fault> {
        let pairs: Vec<(String, String)> =
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let mut start = RunStart { max_cycles: 2, ..RunStart::default() };
        start.config.convergence.zero_policy = ZeroPolicy::TwoConsecutive;
        start.config.retries.attempts = 7;
        lay_over(&start, &pairs)
    }

    /// Keys of the table that no first line of a run holds, or that have arms of their own.
    const ELSEWHERE: [&str; 22] = [
        "version",
        "workflow",
        "team",
        "lenses",
        "strategy",
        "domain",
        "agents.env",
        "agents.fallback",
        "models.keys",
        "models.provider",
        "models.mapping.<tier>",
        "models.ollama.base_url",
        "models.ollama.allow_remote",
        "models.ollama.context",
        "models.retry_waits_seconds",
        "models.max_turns",
        "models.max_tokens",
        "git.auto_merge",
        "git.auto_push",
        "git.branch_prefix",
        "bundle",
        "bundle_version",
    ];

    #[test]
    fn af_180_every_key_of_the_policy_has_its_place() {
        // What bounds a sprint judges no run.
        let elsewhere = |key: &Key| key.path.starts_with("hooks.") || key.path.starts_with("sprint.");
        for key in KEYS.iter().filter(|key| !elsewhere(key)) {
            let name = key.path.replace("<archetype>", "sage").replace("<workflow>", "fast");
            let name = name.replace("<sign>", "ci_changed").replace("<tier>", "haiku");
            let found = others(key.kind).first().map(|value| places(&name, value));
            let placed = matches!(&found, Some(Ok(places)) if !places.is_empty());
            assert!(placed || ELSEWHERE.contains(&key.path), "{name} goes nowhere: {found:?}");
        }
    }

    #[test]
    fn af_180_one_key_is_laid_over_and_the_rest_stays() {
        for (pairs, wanted) in [
            (&[("convergence.zero_policy", "immediate")][..], "zero two_consecutive -> immediate"),
            (&[("limits.silence_seconds", "60")], "silence 5m 0s -> 60"),
            (&[("shadows.rabbit_hole.words", "off")], "words 2000 -> off"),
            (&[("retries.busy_waits_seconds", "[1, 2]")], "waits [2000,10000,30000,60000,120000] -> [1, 2]"),
            (&[("confidence_floor", "0.75")], "floor 0.5 -> 0.75"),
            (&[("costs.budget_usd", "2.5")], "budget not set -> 2.5"),
            (&[("retries.attempts", "1")], "attempts 7 -> 1"),
        ] {
            let anew = set(pairs).unwrap_or_else(|fault| panic!("{fault}"));
            let change = &anew.changes[0];
            let (_, told) = wanted.split_once(' ').unwrap_or_default();
            assert_eq!(format!("{} -> {}", change.was, change.would), told);
            let back: Vec<(String, String)> = vec![];
            assert_ne!(anew.change.start.config, Policy::default());
            assert_eq!(
                lay_over(&anew.change.start, &back).map(|same| same.change.start),
                Ok(anew.change.start)
            );
        }
        let both =
            set(&[("max_cycles", "3"), ("workflow", "fast")]).unwrap_or_else(|fault| panic!("{fault}"));
        assert_eq!((both.change.start.max_cycles, both.changes[0].was.as_str()), (1, "2"));
        assert_eq!(both.change.start.config.retries.attempts, 7);
        let one = set(&[("retries.attempts", "1")]).unwrap_or_else(|fault| panic!("{fault}"));
        assert_eq!(one.change.start.config.retries.attempts, 1);
        assert_eq!(one.change.start.config.convergence.zero_policy, ZeroPolicy::TwoConsecutive);
    }

    #[test]
    fn af_180_what_is_no_rule_is_refused_with_what_is_known() {
        for (key, value, told) in [
            ("convergence.zero_polcy", "immediate", "did you mean `convergence.zero_policy`?"),
            ("nonsense", "1", "unknown key `nonsense`"),
            ("convergence", "1", "unknown key `convergence`"),
            ("convergence.zero_policy", "maybe", "allowed: immediate, two_consecutive"),
            ("max_cycles", "0", "a whole number from 1 to 10"),
            ("max_cycles", "-1", "a whole number from 1 to 10"),
            ("team", "mine", "is no rule that a run is judged by"),
            ("workflow", "slow", "allowed: fast, standard, thorough"),
            ("evidence.luck", "line", "allowed: "),
            ("evidence.security", "witness", "none, or a list of line, run and quote"),
            ("hooks.pre-merge.fail_action", "warn", "had no pre-merge hook"),
            ("convergence.diverging_below_percent", "90", "above converging_above_percent"),
            ("retries.busy_waits_seconds", "5", "a list of at most"),
        ] {
            let fault = set(&[(key, value)]).expect_err("no rule, or no value of it").to_string();
            assert!(fault.contains(told), "{key}={value}: {fault}");
        }
    }
}
