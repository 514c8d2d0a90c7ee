//! Settings laid over the policy that a run began with, for `replay whatif --set` (AF-180). The row of a setting knows its
//! field, so every setting that a run is judged by can be changed.

use std::collections::BTreeSet;

use archeflow_core::event::RunStart;
use archeflow_core::model::{CATEGORIES, Policy, Proof, Strategy, Workflow};
use archeflow_core::projections::replay::whatif::PolicyChange;
use archeflow_core::settings::{AllSettings, Home, SettingRow, SettingValue};

use super::keys::{self, KeyMatch};
use super::kinds::KindText;
use super::{Fault, shown, yaml};

/// A setting as it was and as it would be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    pub key: String,
    pub was: String,
    pub would: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anew {
    pub change: PolicyChange,
    pub changes: Vec<Changed>,
    /// What is taken for granted about the recorded answers.
    pub assumed: Vec<&'static str>,
}

const SAME_CYCLES: &str =
    "briefs would have named another number of cycles; answers are taken to be the same";
const SAME_EVIDENCE: &str =
    "reviewers would have been given other rules of evidence; their answers are assumed to be the same";

/// Lays `key=value` pairs over the first line of a run, from left to right.
pub fn lay_over(start: &RunStart, pairs: &[(String, String)]) -> Result<Anew, Fault> {
    let change = PolicyChange { start: start.clone(), auto_merge: None };
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
    /// Sets one key and returns its old value.
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
                change(&mut start.config, &of, value)?;
                Ok(std::mem::replace(&mut start.max_cycles, start.config.cycles(start.workflow)).to_string())
            }
            ["max_cycles", workflow] => {
                let was = change(&mut start.config, key, value)?;
                if *workflow == start.workflow.name() {
                    start.max_cycles = start.config.cycles(start.workflow);
                }
                Ok(was)
            }
            ["git", "auto_merge"] => {
                let on = value.parse().map_err(|_| not_one(key, value, "true or false"))?;
                self.auto_merge(on);
                Ok("as set for each session".to_owned())
            }
            ["evidence", category] if *category != "enabled" => evidence(start, category, value),
            ["hooks", point, "fail_action"]
                if !start.config.hooks.iter().any(|hook| hook.point.name() == *point) =>
            {
                Err(fault(&format!("`{}`: the run had no {} hook", shown(key), shown(point))))
            }
            _ => change(&mut start.config, key, value),
        }
    }

    fn auto_merge(&mut self, on: bool) {
        self.change.auto_merge = Some(on);
    }
}

/// What a category's findings must show; set by the lenses of the run, and by nothing else.
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

/// Sets one field of the policy and returns what it was.
fn change(policy: &mut Policy, key: &str, text: &str) -> Result<String, Fault> {
    let row = row(key)?;
    if row.home != Home::Run {
        let text =
            format!("`{}` is no rule that a run is judged by: it can't be changed afterwards", shown(key));
        return Err(fault(&text));
    }
    let value = read(row, text).ok_or_else(|| not_one(key, text, &row.kind.allowed()))?;
    let mut all = AllSettings { run: policy.clone(), ..AllSettings::default() };
    let was = row.value(&all, key);
    if !row.fill(&mut all, key, &value) {
        return Err(fault(&format!("`{}` can't be laid over the run's policy", shown(key))));
    }
    *policy = all.run;
    Ok(was.map_or_else(|| "not set".to_owned(), |was| was.to_string()))
}

fn row(key: &str) -> Result<&'static SettingRow, Fault> {
    let parts: Vec<&str> = key.split('.').collect();
    match keys::find(&parts, &[]) {
        KeyMatch::Setting(row) => Ok(row),
        KeyMatch::Section | KeyMatch::Later | KeyMatch::Unknown => {
            Err(fault(&format!("unknown key `{}`{}", shown(key), keys::advice(&parts, &[]))))
        }
    }
}

/// A list is read as it would be in a file.
fn read(row: &SettingRow, text: &str) -> Option<SettingValue> {
    if !text.starts_with('[') || text.contains('\n') {
        return row.kind.read_text(text);
    }
    let entries = yaml::read("--set", format!("value: {text}\n").as_bytes()).ok()?;
    row.kind.read(&entries.first()?.value)
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
    use archeflow_core::model::{FailAction, Hook, HookPoint, Policy, ZeroPolicy};
    use archeflow_core::settings::{SettingKind, rows};

    use super::*;

    fn set(pairs: &[(&str, &str)]) -> Result<Anew, Fault> {
        let pairs: Vec<(String, String)> =
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let mut start = RunStart { max_cycles: 2, ..RunStart::default() };
        start.config.convergence.zero_policy = ZeroPolicy::TwoConsecutive;
        start.config.retries.attempts = 7;
        lay_over(&start, &pairs)
    }

    #[test]
    fn af_180_every_setting_of_the_policy_can_be_changed() {
        for row in rows().filter(|row| row.home == Home::Run) {
            let name = row.path.replace("<archetype>", "sage").replace("<workflow>", "fast");
            let name = name
                .replace("<sign>", "ci_changed")
                .replace("<tier>", "haiku")
                .replace("<point>", "pre-merge");
            let mut policy = Policy::default();
            policy.hooks.push(Hook {
                point: HookPoint::PreMerge,
                command: "true".to_owned(),
                fail_action: FailAction::Warn,
            });
            let (one, other) = two(row.kind);
            change(&mut policy, &name, one).unwrap_or_else(|fault| panic!("{fault}"));
            let before = policy.clone();
            let was = change(&mut policy, &name, other).unwrap_or_else(|fault| panic!("{fault}"));
            assert_eq!(was, one, "{name}");
            assert_ne!(policy, before, "{name} changes nothing");
        }
    }

    /// Two values of each kind.
    fn two(kind: SettingKind) -> (&'static str, &'static str) {
        match kind {
            SettingKind::Switch => ("true", "false"),
            SettingKind::Whole(..)
            | SettingKind::Limit(..)
            | SettingKind::Seconds(..)
            | SettingKind::Minutes(..) => {
                let (least, most) = kind.bounds().unwrap_or_default();
                (Box::leak(least.to_string().into()), Box::leak(most.to_string().into()))
            }
            SettingKind::Waits(..) => ("[1]", "[1, 2]"),
            SettingKind::Share => ("0.25", "0.5"),
            SettingKind::Dollars(_) => ("1", "2.5"),
            // The first two may be two words for the same, such as `step` and `every_pass`.
            SettingKind::Words(words) => (words[0], words[words.len() - 1]),
            SettingKind::Tier => ("haiku", "opus"),
            SettingKind::Command => ("one", "two"),
            SettingKind::Agent => ("cmd:one", "cmd:two"),
            SettingKind::Agents(_) => ("[codex]", "[claude, codex]"),
            SettingKind::Names(_) | SettingKind::Phrases(_) | SettingKind::Folders(_) => ("[one]", "[two]"),
            SettingKind::Off(_)
            | SettingKind::Release
            | SettingKind::Prefix
            | SettingKind::Variables
            | SettingKind::Workflow
            | SettingKind::Name
            | SettingKind::Model
            | SettingKind::Url
            | SettingKind::HostKeys(_)
            | SettingKind::WordList(_)
            | SettingKind::SecretUrl
            | SettingKind::SecretName
            | SettingKind::Shares(_) => panic!("no rule of a run is a {kind:?}"),
        }
    }

    #[test]
    fn af_180_one_key_is_laid_over_and_the_rest_stays() {
        for (pairs, wanted) in [
            (&[("convergence.zero_policy", "immediate")][..], "zero two_consecutive -> immediate"),
            (&[("limits.silence_seconds", "60")], "silence 300 -> 60"),
            (&[("shadows.rabbit_hole.words", "off")], "words 2000 -> off"),
            (&[("retries.busy_waits_seconds", "[1, 2]")], "waits [2, 10, 30, 60, 120] -> [1, 2]"),
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
