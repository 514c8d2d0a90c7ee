//! `archeflow replay whatif`: the same run under other reviewer weights (BX-12), or under another policy.

use std::collections::BTreeMap;

use archeflow_core::event::{Entry, RunStart};
use archeflow_core::model::{Outcome, Share};
use archeflow_core::projections::replay::decision::{DecisionText, verdict};
use archeflow_core::projections::replay::weights::{self, Weighed, WeighingError, Weight};
use archeflow_core::projections::replay::whatif::{Difference, End, PolicyChange, Unknown, WhatIf, refold};
use archeflow_core::projections::view::{Tone, capital};
use archeflow_core::run::Run;
use archeflow_host::config::overrides::{self, Anew};
use serde_json::{Value, json};

use crate::args::ReplayWhatif;
use crate::failure::Failure;
use crate::output::CommandOutput;
use crate::render::text::{Paint, pad, safe_line};

use super::{ended, entries, outcome_json, paint};

/// Differences beyond this number are only counted.
const SHOWN: usize = 12;

pub(super) fn run(args: &ReplayWhatif) -> Result<CommandOutput, Failure> {
    let given = weights_given(&args.weight)?;
    let threshold = threshold_given(args.threshold.as_deref())?;
    let pairs = pairs(args)?;
    let (id, log) = entries(&args.place, args.id.as_deref())?;
    let wants_weights = !given.is_empty() || args.threshold.is_some() || pairs.is_empty();
    let weighed = match wants_weights {
        true => Some(weights::weigh(&log, &given, threshold).map_err(|why| trouble(&id, why))?),
        false => None,
    };
    let policy = Policy::refolded(&id, &log, &pairs)?;
    if args.place.json {
        let policy = (!pairs.is_empty()).then(|| policy.json());
        return Ok(CommandOutput::json(object(&id, weighed.as_ref(), policy)));
    }
    let mut out = String::new();
    if let Some(weighed) = &weighed {
        draw_weights(&mut out, weighed);
        put!(out);
    }
    policy.draw(&mut out);
    Ok(CommandOutput::text(out))
}

fn weights_given(words: &[String]) -> Result<BTreeMap<String, Weight>, Failure> {
    let hint = "Write a number from 0 to 1000000, e.g. --weight guardian=2 --weight sage=0.5";
    let mut given = BTreeMap::new();
    for word in words {
        let Some((name, number)) = word.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            return Err(Failure::usage(format!("--weight '{word}' names no archetype with a weight"), hint));
        };
        let Some(weight) = weights::weight(number) else {
            return Err(Failure::usage(format!("--weight '{word}': '{number}' is no weight"), hint));
        };
        given.insert(name.to_owned(), weight);
    }
    Ok(given)
}

fn threshold_given(word: Option<&str>) -> Result<u32, Failure> {
    let Some(word) = word else { return Ok(weights::THRESHOLD) };
    weights::threshold(word).ok_or_else(|| {
        Failure::usage(format!("--threshold '{word}' is no share"), "Write a number from 0 to 1, e.g. 0.5")
    })
}

/// `--set` in its order, then `--workflow`.
fn pairs(args: &ReplayWhatif) -> Result<Vec<(String, String)>, Failure> {
    let mut pairs = Vec::new();
    for word in &args.set {
        let Some((key, value)) = word.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            let hint = "Write it as --set convergence.zero_policy=immediate";
            return Err(Failure::usage(format!("--set '{word}' sets no key to a value"), hint));
        };
        pairs.push((key.trim().to_owned(), value.to_owned()));
    }
    pairs.extend(args.workflow.iter().map(|name| ("workflow".to_owned(), name.clone())));
    Ok(pairs)
}

fn trouble(id: &str, why: WeighingError) -> Failure {
    match why {
        WeighingError::NoVerdict => Failure::usage(
            format!("{id} has no review: there is no verdict to weigh"),
            format!("See what was decided: archeflow replay timeline {id}"),
        ),
        WeighingError::Stranger { named, known } => Failure::usage(
            format!("--weight names '{named}', which gave no verdict in {id}"),
            format!("Verdicts are there of: {}", known.join(", ")),
        ),
        WeighingError::Weightless => Failure::usage(
            "all weights are 0: no verdict would count",
            "Give at least one reviewer a weight above 0.",
        ),
    }
}

/// The fields of the record that other programs read, and the other policy beside them where one was asked for.
fn object(id: &str, weighed: Option<&Weighed>, policy: Option<Value>) -> Value {
    let Some(weighed) = weighed else { return policy.unwrap_or_default() };
    let reviewers: Vec<Value> = weighed
        .reviewers
        .iter()
        .map(|one| {
            json!({
                "archetype": one.archetype, "verdict": verdict(one.verdict), "weight": number(one.weight),
                "strict": u8::from(one.is_strict()), "weighted_contrib": number(one.contributes()),
            })
        })
        .collect();
    let used: serde_json::Map<String, Value> =
        weighed.reviewers.iter().map(|one| (one.archetype.clone(), number(one.weight))).collect();
    let mut object = json!({
        "run_id": id,
        "threshold": Share(weighed.threshold),
        "weights_used": used,
        "strict_any_veto": { "outcome": weighed.strict.name() },
        "weighted_replay": {
            "weighted_strictness": number(weighed.strictness * 1_000),
            "outcome": weighed.weighted.name(),
        },
        "reviewers": reviewers,
    });
    if let (Some(policy), Some(fields)) = (policy, object.as_object_mut()) {
        fields.insert("policy".to_owned(), policy);
    }
    object
}

/// Millionths as the number people write.
fn number(millionths: u64) -> Value {
    json!(archeflow_core::model::Money(millionths))
}

fn decimal(millionths: u64) -> String {
    let text = format!("{}.{:06}", millionths / 1_000_000, millionths % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn draw_weights(out: &mut String, weighed: &Weighed) {
    let paint = paint();
    put!(out, "{}", paint.bold("Last verdict of each reviewer, weighted"));
    put!(out, "{}", paint.dim("  REVIEWER    VERDICT   WEIGHT  AGAINST"));
    for one in &weighed.reviewers {
        put!(
            out,
            "  {}  {}  {}  {}",
            pad(&safe_line(&one.archetype), 10),
            pad(verdict(one.verdict), 8),
            pad(&decimal(one.weight), 6),
            decimal(one.contributes())
        );
    }
    let strict = "every reviewer that does not approve blocks";
    put!(out, "  strict    {}  {}", shipped(paint, weighed.strict), paint.dim(strict));
    let share = format!(
        "{}.{:03} of the weight is against it; {} blocks",
        weighed.strictness / 1_000,
        weighed.strictness % 1_000,
        decimal(u64::from(weighed.threshold))
    );
    put!(out, "  weighted  {}  {}", shipped(paint, weighed.weighted), paint.dim(&share));
}

fn shipped(paint: Paint, ship: weights::Ship) -> String {
    let tone = if ship == weights::Ship::Ship { Tone::Good } else { Tone::Bad };
    paint.tone(tone, &pad(ship.name(), 5))
}

/// The run replayed, beside the recorded one.
struct Policy {
    id: String,
    anew: Anew,
    result: WhatIf,
    /// How the recorded run ended, if it did.
    was: Option<Outcome>,
    /// The first line that this version of the program decides otherwise, without any change.
    other_rules: Option<u64>,
}

impl Policy {
    fn refolded(id: &str, log: &[Entry], pairs: &[(String, String)]) -> Result<Policy, Failure> {
        let start = started(id, log)?;
        let anew = overrides::lay_over(&start, pairs)
            .map_err(|fault| Failure::usage(fault.to_string(), "All keys: docs/configuration.md"))?;
        let result = refold(log, &anew.change);
        let other_rules = match (result.differences.first(), pairs) {
            (None, _) => None,
            (Some(first), []) => Some(first.seq),
            (Some(_), _) => {
                let unchanged = refold(log, &PolicyChange { start, auto_merge: None });
                unchanged.differences.first().map(|difference| difference.seq)
            }
        };
        // Where nothing differs, the run that was folded is the recorded one.
        let was = match result.differences.as_slice() {
            [] => result.run.outcome.clone(),
            _ => Run::replay(log).outcome,
        };
        Ok(Policy { id: id.to_owned(), anew, result, was, other_rules })
    }

    fn would(&self) -> Option<&Outcome> {
        match &self.result.end {
            End::Known(outcome) => Some(outcome),
            End::StillOpen | End::Unknown(_) => None,
        }
    }

    fn json(&self) -> Value {
        let result = &self.result;
        let changes: Vec<Value> = self
            .anew
            .changes
            .iter()
            .map(|change| json!({ "key": change.key, "was": change.was, "would_be": change.would }))
            .collect();
        let differences: Vec<Value> = result.differences.iter().map(difference_json).collect();
        let unknown = match &result.end {
            End::Unknown(unknown) => json!({
                "after": unknown.after, "cycle": unknown.cycle, "phase": unknown.phase.name(),
                "would_order": unknown.ordered, "why": unknown.why,
            }),
            End::Known(_) | End::StillOpen => Value::Null,
        };
        json!({
            "run_id": self.id,
            "changes": changes,
            "first_difference": differences.first(),
            "differences": differences,
            "facts": { "recorded": result.facts, "used": result.used, "carried_to": result.carried_to },
            "outcome": {
                "was": outcome_json(self.was.as_ref()), "would_be": outcome_json(self.would()),
            },
            "unknown": unknown,
            "assumed": self.anew.assumed,
            "differs_unchanged_at": self.other_rules,
        })
    }

    fn draw(&self, out: &mut String) {
        let paint = paint();
        if let Some(seq) = self.other_rules {
            let text = format!(
                "note: this version of archeflow decides line #{seq} otherwise than the one that recorded the run"
            );
            put!(out, "{}", paint.tone(Tone::Caution, &text));
        }
        self.draw_changes(out, paint);
        match self.result.differences.as_slice() {
            [] => {
                put!(out, "  No decision differs: {} recorded reports lead to the same.", self.result.facts);
            }
            [first, more @ ..] => {
                draw_difference(out, paint, "First difference", first);
                more.iter().take(SHOWN).for_each(|other| draw_difference(out, paint, "Then", other));
                if more.len() > SHOWN {
                    put!(out, "  … and {} more (--json has them all)", more.len() - SHOWN);
                }
            }
        }
        self.draw_end(out, paint);
        for assumed in &self.anew.assumed {
            put!(out, "  {}", paint.dim(&format!("Assumed: {assumed}.")));
        }
    }

    fn draw_changes(&self, out: &mut String, paint: Paint) {
        if self.anew.changes.is_empty() {
            put!(out, "{}", paint.bold("Folded again under its own policy"));
            return;
        }
        for change in &self.anew.changes {
            let text = format!("What if {} were {} (it was {})?", change.key, change.would, change.was);
            put!(out, "{}", paint.bold(&safe_line(&text)));
        }
    }

    fn draw_end(&self, out: &mut String, paint: Paint) {
        let result = &self.result;
        let to = format!("to line #{}", result.carried_to);
        put!(out, "  Carries    {} of {} recorded reports, {to}", result.used, result.facts);
        put!(out, "  Ended      {}", safe_line(&ended(self.was.as_ref())));
        match &result.end {
            End::Known(_) if result.differences.is_empty() => {}
            End::Known(outcome) => {
                let text = safe_line(&ended(Some(outcome)));
                put!(out, "  Would end  {}", paint.tone(Tone::Good, &text));
            }
            End::StillOpen => put!(out, "  Would end  nowhere: the recording stops before"),
            End::Unknown(unknown) => draw_unknown(out, paint, unknown),
        }
    }
}

/// The first line of a run.
fn started(id: &str, log: &[Entry]) -> Result<RunStart, Failure> {
    let start = log.first().and_then(|entry| entry.event.body::<RunStart>());
    start.cloned().ok_or_else(|| archeflow_host::open::Error::NeverBegan { id: id.to_owned() }.into())
}

fn difference_json(difference: &Difference) -> Value {
    let told = |told: Option<&DecisionText>| {
        told.map_or(Value::Null, |told| {
            json!({ "rule": told.rule, "archetype": told.who, "input": told.input, "decision": told.decision })
        })
    };
    json!({
        "seq": difference.seq, "cycle": difference.cycle, "phase": difference.phase.name(),
        "rule": difference.rule(), "was": told(difference.was.as_ref()), "would_be": told(difference.would.as_ref()),
    })
}

fn draw_difference(out: &mut String, paint: Paint, what: &str, difference: &Difference) {
    let told = |told: Option<&DecisionText>| told.map_or("nothing", |told| told.decision.as_str()).to_owned();
    let rule = match difference.rule() {
        "" => String::new(),
        rule => format!(", {rule}"),
    };
    let place = match difference.cycle {
        0 => "before the first cycle".to_owned(),
        cycle => format!("cycle {cycle}, {}", capital(difference.phase.name())),
    };
    let after = if difference.was.is_none() { "after " } else { "" };
    put!(
        out,
        "  {}  {}",
        paint.accent(what),
        safe_line(&format!("{after}#{} ({place}{rule})", difference.seq))
    );
    put!(out, "    was       {}", safe_line(&told(difference.was.as_ref())));
    put!(out, "    would be  {}", safe_line(&told(difference.would.as_ref())));
}

fn draw_unknown(out: &mut String, paint: Paint, unknown: &Unknown) {
    let place = format!("cycle {}, {}", unknown.cycle, capital(unknown.phase.name()));
    let text = format!("unknown from here: after #{} ({place})", unknown.after);
    put!(out, "  Would end  {}", paint.tone(Tone::Caution, &text));
    put!(out, "    next      {}", safe_line(&unknown.ordered.join("; ")));
    put!(out, "    but       {}", safe_line(&unknown.why));
}
