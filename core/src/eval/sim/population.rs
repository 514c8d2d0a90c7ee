//! Error rates of simulated agents.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Rates of a Maker and of reviewers. Keys that a file leaves out have the values of `fair`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SimPopulation {
    pub maker: SimMaker,
    /// All reviewers that `archetypes` does not name.
    pub reviewer: SimReviewer,
    /// By archetype; keys that are left out have the values of `reviewer`.
    pub archetypes: BTreeMap<String, SimReviewer>,
    pub tokens: SimTokens,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SimMaker {
    /// The first solution is the wrong one.
    pub wrong: f64,
    /// A wrong solution that is sent back becomes right, if the feedback names the flaw.
    pub fixes: f64,
    /// The same if the feedback does not.
    pub fixes_unasked: f64,
    /// A right solution that is sent back becomes wrong.
    pub breaks: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SimReviewer {
    /// A review of wrong work has a finding about the flaw, a CRITICAL with evidence.
    pub recall: f64,
    /// A review has a finding that names no flaw.
    pub false_alarms: f64,
    /// Share of the false alarms without evidence. The others cite a line that is there.
    pub unfounded: f64,
    /// Share of the false alarms that are CRITICAL; the others are WARNINGs.
    pub alarm_critical: f64,
    /// The flaw is described in other words than in the cycle before.
    pub rewords: f64,
    /// An answer has the form of the archetype's shadow. It says nothing about the work.
    pub shadow: f64,
}

/// Use of one attempt, by role.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SimTokens {
    pub explorer: SimUsage,
    pub creator: SimUsage,
    pub maker: SimUsage,
    pub reviewer: SimUsage,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SimUsage {
    pub input: u64,
    pub output: u64,
    pub dollars: f64,
}

impl Default for SimMaker {
    fn default() -> SimMaker {
        SimMaker { wrong: 0.4, fixes: 0.8, fixes_unasked: 0.1, breaks: 0.05 }
    }
}

impl Default for SimReviewer {
    fn default() -> SimReviewer {
        SimReviewer {
            recall: 0.7,
            false_alarms: 0.1,
            unfounded: 0.5,
            alarm_critical: 0.2,
            rewords: 0.2,
            shadow: 0.0,
        }
    }
}

impl Default for SimTokens {
    fn default() -> SimTokens {
        let usage = |input, output, dollars| SimUsage { input, output, dollars };
        SimTokens {
            explorer: usage(20_000, 1_500, 0.03),
            creator: usage(15_000, 2_000, 0.08),
            maker: usage(60_000, 6_000, 0.27),
            reviewer: usage(20_000, 1_000, 0.08),
        }
    }
}

/// The most that one attempt may report: the program does not believe more.
const MOST_DOLLARS: f64 = 1_000.0;
const MOST_TOKENS: u64 = 1_000_000_000;

impl SimPopulation {
    /// Reads a population from JSON.
    pub fn read(text: &str) -> Result<SimPopulation, String> {
        let value = serde_json::from_str(text).map_err(|error| format!("not a population: {error}"))?;
        SimPopulation::from_value(value)
    }

    /// The same from a value, which may come from another format.
    pub fn from_value(mut value: Value) -> Result<SimPopulation, String> {
        if !value.is_object() {
            return Err(
                "not a population: expected the keys maker, reviewer, archetypes and tokens".to_owned()
            );
        }
        inherit(&mut value);
        let population: SimPopulation =
            serde_json::from_value(value).map_err(|error| format!("not a population: {error}"))?;
        population.check()?;
        Ok(population)
    }

    /// A built-in population.
    pub fn named(name: &str) -> Option<SimPopulation> {
        built_in_populations().into_iter().find(|(known, _)| *known == name).map(|(_, population)| population)
    }

    /// The rates of a reviewer.
    pub fn reviewer(&self, archetype: &str) -> &SimReviewer {
        self.archetypes.get(archetype).unwrap_or(&self.reviewer)
    }

    /// Whether all rates are rates; all faults at once.
    pub fn check(&self) -> Result<(), String> {
        let mut faults = Vec::new();
        for (place, rate) in self.rates() {
            if !(0.0..=1.0).contains(&rate) {
                faults.push(format!("{place} is {rate}; give a decimal from 0 to 1"));
            }
        }
        let SimTokens { explorer, creator, maker, reviewer } = &self.tokens;
        for (role, usage) in
            [("explorer", explorer), ("creator", creator), ("maker", maker), ("reviewer", reviewer)]
        {
            if !(0.0..=MOST_DOLLARS).contains(&usage.dollars) {
                let dollars = usage.dollars;
                faults.push(format!("tokens.{role}.dollars is {dollars}; give an amount from 0 to 1000"));
            }
            if usage.input.max(usage.output) > MOST_TOKENS {
                faults.push(format!("tokens.{role} has more than {MOST_TOKENS} tokens; give fewer"));
            }
        }
        if faults.is_empty() { Ok(()) } else { Err(faults.join("; ")) }
    }

    fn rates(&self) -> Vec<(String, f64)> {
        let SimMaker { wrong, fixes, fixes_unasked, breaks } = self.maker;
        let mut rates: Vec<(String, f64)> =
            [("wrong", wrong), ("fixes", fixes), ("fixes_unasked", fixes_unasked), ("breaks", breaks)]
                .map(|(key, rate)| (format!("maker.{key}"), rate))
                .into();
        let named = self.archetypes.iter().map(|(name, rates)| (format!("archetypes.{name}"), rates));
        for (place, reviewer) in [("reviewer".to_owned(), &self.reviewer)].into_iter().chain(named) {
            let SimReviewer { recall, false_alarms, unfounded, alarm_critical, rewords, shadow } = *reviewer;
            rates.extend(
                [
                    ("recall", recall),
                    ("false_alarms", false_alarms),
                    ("unfounded", unfounded),
                    ("alarm_critical", alarm_critical),
                    ("rewords", rewords),
                    ("shadow", shadow),
                ]
                .map(|(key, rate)| (format!("{place}.{key}"), rate)),
            );
        }
        rates
    }
}

/// Gives archetypes the keys of `reviewer` that they leave out.
fn inherit(value: &mut Value) {
    let Some(general) = value.get("reviewer").and_then(Value::as_object).cloned() else { return };
    let Some(archetypes) = value.get_mut("archetypes").and_then(Value::as_object_mut) else { return };
    for own in archetypes.values_mut().filter_map(Value::as_object_mut) {
        for (key, rate) in &general {
            own.entry(key.as_str()).or_insert_with(|| rate.clone());
        }
    }
}

/// The populations that have a name. Each differs from `fair` in what its name says.
pub fn built_in_populations() -> Vec<(&'static str, SimPopulation)> {
    let (maker, reviewer) = (SimMaker::default, SimReviewer::default);
    let of = |maker, reviewer| SimPopulation { maker, reviewer, ..SimPopulation::default() };
    vec![
        ("fair", SimPopulation::default()),
        ("careless", of(SimMaker { wrong: 0.8, fixes: 0.6, ..maker() }, reviewer())),
        ("noisy", of(maker(), SimReviewer { false_alarms: 0.6, ..reviewer() })),
        ("blind", of(maker(), SimReviewer { recall: 0.2, ..reviewer() })),
        ("restless", of(SimMaker { breaks: 0.4, ..maker() }, SimReviewer { rewords: 0.7, ..reviewer() })),
        ("shadowed", of(maker(), SimReviewer { shadow: 0.4, ..reviewer() })),
    ]
}
