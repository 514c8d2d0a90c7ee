//! Reads the folder of an evaluation: the plan in `eval.json` and one trial per line in `trials.jsonl`.
//!
//! Both may come from somebody else. Everything that is wrong is reported at once, with its place.

use std::collections::BTreeSet;
use std::fmt;
use std::io::ErrorKind;
use std::path::Path;

use archeflow_core::eval::{EvalPlan, EvalTrial, TrialSet};
use serde_json::Value;

use crate::config::shown;
use crate::store::files;

pub const PLAN_FILE: &str = "eval.json";
pub const TRIALS_FILE: &str = "trials.jsonl";

const LARGEST_PLAN: u64 = 16 << 20;
const LARGEST_TRIALS: u64 = 512 << 20;
/// A file with more faults than this is no record of trials.
const MOST_FAULTS: usize = 100;

/// One thing in the folder that is wrong, or that was skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordFault {
    pub place: String,
    /// From 1; 0 if it is about the whole file.
    pub line: usize,
    pub text: String,
    pub remedy: String,
}

impl fmt::Display for RecordFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.place, self.text)?,
            line => write!(f, "{}:{line}: {}", self.place, self.text)?,
        }
        if self.remedy.is_empty() { Ok(()) } else { write!(f, "\n  {}", self.remedy) }
    }
}

/// The trials that were recorded, and what was skipped on the way.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordedTrials {
    pub trials: TrialSet,
    pub notes: Vec<RecordFault>,
}

/// Reads `eval.json`.
pub fn read_plan(folder: &Path) -> Result<EvalPlan, Vec<RecordFault>> {
    let file = folder.join(PLAN_FILE);
    let place = file.display().to_string();
    let one = |line: usize, text: String, remedy: &str| {
        vec![RecordFault { place: place.clone(), line, text, remedy: remedy.to_owned() }]
    };
    let bytes = files::read_capped(&file, LARGEST_PLAN).map_err(|error| match error.io_kind() {
        Some(ErrorKind::NotFound | ErrorKind::NotADirectory) => one(
            0,
            "there is no such file".to_owned(),
            "Name the folder of an evaluation; `archeflow eval run` makes one.",
        ),
        _ => one(0, error.to_string(), "Make it readable, then try again."),
    })?;
    let again = "Start the evaluation again with `archeflow eval run`, in another folder.";
    let found: Value = serde_json::from_slice(&bytes)
        .map_err(|why| one(why.line(), format!("no JSON: {}", shown(&why.to_string())), again))?;
    if let Some(format) = found.get("v").and_then(Value::as_u64)
        && format > u64::from(EvalPlan::FORMAT)
    {
        let text = format!("a plan of format {format}, written by a newer version");
        return Err(one(0, text, "Update archeflow."));
    }
    let plan: EvalPlan = serde_json::from_value(found)
        .map_err(|why| one(0, format!("no plan of an evaluation: {}", shown(&why.to_string())), again))?;
    let wrong = faults_of(&plan);
    if wrong.is_empty() {
        return Ok(plan);
    }
    Err(wrong
        .into_iter()
        .take(MOST_FAULTS)
        .map(|text| RecordFault { place: place.clone(), line: 0, text, remedy: again.to_owned() })
        .collect())
}

fn faults_of(plan: &EvalPlan) -> Vec<String> {
    let mut wrong = Vec::new();
    if plan.tasks.is_empty() {
        wrong.push("the plan has no task".to_owned());
    }
    if plan.arms.is_empty() {
        wrong.push("the plan has no arm".to_owned());
    }
    if plan.repeats == 0 {
        wrong.push("the plan has 0 repeats".to_owned());
    }
    let mut seen = BTreeSet::new();
    for task in &plan.tasks {
        if !seen.insert(&task.name) {
            wrong.push(format!("two tasks are named {}", shown(&task.name)));
        }
    }
    seen.clear();
    for arm in &plan.arms {
        if !seen.insert(&arm.name) {
            wrong.push(format!("two arms are named {}", shown(&arm.name)));
        }
    }
    wrong
}

/// Reads `trials.jsonl`. A file that is missing has no trials: the first one has not ended yet.
///
/// Skipped with a note: a last line that a kill cut off, since that trial runs again, and further records of a trial, since
/// the first counts.
pub fn read_trials(folder: &Path, plan: &EvalPlan) -> Result<RecordedTrials, Vec<RecordFault>> {
    let file = folder.join(TRIALS_FILE);
    let place = file.display().to_string();
    let fault = |line: usize, text: String, remedy: &str| RecordFault {
        place: place.clone(),
        line,
        text,
        remedy: remedy.to_owned(),
    };
    let mut read = RecordedTrials::default();
    let bytes = match files::read_capped(&file, LARGEST_TRIALS) {
        Ok(bytes) => bytes,
        Err(error) if error.io_kind() == Some(ErrorKind::NotFound) => {
            read.notes.push(fault(0, "there is no such file, so no trial has ended yet".to_owned(), ""));
            return Ok(read);
        }
        Err(error) => return Err(vec![fault(0, error.to_string(), "Make it readable, then try again.")]),
    };
    let tasks: BTreeSet<&str> = plan.tasks.iter().map(|task| task.name.as_str()).collect();
    let arms: BTreeSet<&str> = plan.arms.iter().map(|arm| arm.name.as_str()).collect();
    let is_whole = bytes.last().is_none_or(|byte| *byte == b'\n');
    let lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    let mut faults = Vec::new();
    for (number, line) in (1..).zip(&lines) {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let trial = match trial_of(line) {
            Ok(trial) => trial,
            Err(_) if number == lines.len() && !is_whole => {
                let text = "the last line is cut off, so it is skipped; its trial runs again";
                read.notes.push(fault(number, text.to_owned(), ""));
                continue;
            }
            Err((text, remedy)) => {
                faults.push(fault(number, text, &remedy));
                continue;
            }
        };
        let key = &trial.key;
        let named = format!("{} in arm {}, repeat {}", shown(&key.task), shown(&key.arm), key.repeat);
        let is_planned = tasks.contains(key.task.as_str())
            && arms.contains(key.arm.as_str())
            && (1..=plan.repeats).contains(&key.repeat);
        if !is_planned {
            let remedy = format!("Remove the line, or put back the {PLAN_FILE} that it belongs to.");
            faults.push(fault(number, format!("{named}: the plan has no such trial"), &remedy));
        } else if !read.trials.add(trial) {
            let text = format!("{named}: recorded before, so this line is skipped");
            read.notes.push(fault(number, text, ""));
        }
    }
    if faults.is_empty() {
        return Ok(read);
    }
    let more = faults.len().saturating_sub(MOST_FAULTS);
    faults.truncate(MOST_FAULTS);
    if more > 0 {
        faults.push(fault(0, format!("{more} more lines with faults"), "Correct the others first."));
    }
    Err(faults)
}

/// The error is a text and a remedy.
fn trial_of(line: &[u8]) -> Result<EvalTrial, (String, String)> {
    let text = std::str::from_utf8(line).map_err(|_| {
        ("the line is not UTF-8".to_owned(), "Remove the line, and the trial runs again.".to_owned())
    })?;
    EvalTrial::read(text).map_err(|why| {
        // The sentence ends with its remedy.
        let (text, remedy) =
            why.rsplit_once("; ").unwrap_or((&why, "remove the line, and the trial runs again"));
        let mut remedy = remedy.to_owned();
        if let Some(first) = remedy.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        (shown(text), format!("{remedy}."))
    })
}

#[cfg(test)]
mod tests;
