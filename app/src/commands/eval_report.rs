//! `archeflow eval report` and `archeflow eval compare`: what evaluations found. Reads their folders and starts nothing.

use std::path::Path;

use archeflow_core::eval::report::ReportOptions;
use archeflow_core::eval::{EvalDifference, EvalPlan, EvalReport, SamplingOptions, TrialSet};
use archeflow_host::clock;
use archeflow_host::eval::record::{self, RecordFault};
use archeflow_serve::eval::{Document, difference, report as report_document};
use serde_json::{Value, json};

use crate::args::{EvalCompareArgs, EvalFormatArgs, EvalReportArgs};
use crate::commands::process_env;
use crate::failure::Failure;
use crate::output::{CommandOutput, to_file};
use crate::render::text::{safe, safe_json, safe_line};

const REFUSED: u8 = 2;
/// The end of the year 9999, the last that dates are written for.
const LAST_MOMENT: u64 = 253_402_300_799_999;

/// One evaluation as it was read.
struct Evaluation {
    plan: EvalPlan,
    trials: TrialSet,
    notes: Vec<RecordFault>,
}

pub(crate) fn report(args: &EvalReportArgs) -> Result<CommandOutput, Failure> {
    let found = match evaluation(&args.folder) {
        Ok(found) => found,
        Err(faults) => return Ok(refused(&faults, args.format.json)),
    };
    not_over(&args.format, &[&args.folder])?;
    let baseline = baseline(&found.plan, args.baseline.as_deref())?;
    let sampling = sampling(&args.format);
    let options = ReportOptions { baseline, measure: args.format.measure, sampling };
    let report = EvalReport::of(&found.plan, &found.trials, options);
    let notes = noted(&found.notes);
    written(
        &args.format,
        || as_json(&report, &notes),
        || report_document::document(&report, &moment(found.plan.started), &notes),
        &format!("archeflow eval report {}", args.folder.display()),
    )
}

/// A report must not replace what it was made from.
fn not_over(format: &EvalFormatArgs, folders: &[&Path]) -> Result<(), Failure> {
    let place = |path: &Path| path.canonicalize().ok();
    let Some(output) = format.output.as_deref().and_then(place) else { return Ok(()) };
    let records =
        folders.iter().flat_map(|folder| ["eval.json", "trials.jsonl"].map(|name| folder.join(name)));
    if records.filter_map(|path| place(&path)).all(|path| path != output) {
        return Ok(());
    }
    let text = format!("{} is a record of the evaluation", output.display());
    Err(Failure::usage(text, "Name another file with --output."))
}

pub(crate) fn compare(args: &EvalCompareArgs) -> Result<CommandOutput, Failure> {
    let (first, second) = match (evaluation(&args.first), evaluation(&args.second)) {
        (Ok(first), Ok(second)) => (first, second),
        (first, second) => {
            let faults = [first.err(), second.err()].into_iter().flatten().flatten();
            return Ok(refused(&faults.collect::<Vec<_>>(), args.format.json));
        }
    };
    not_over(&args.format, &[&args.first, &args.second])?;
    let sampling = sampling(&args.format);
    if let Some(arm) = &args.arm {
        for (folder, plan) in [(&args.first, &first.plan), (&args.second, &second.plan)] {
            if !plan.arms.iter().any(|one| one.name == *arm) {
                let message = format!("{} has no arm {}", folder.display(), safe_line(arm));
                return Err(Failure::usage(message, format!("Its arms: {}", arms(plan))));
            }
        }
    }
    let found = EvalDifference::of(
        (&first.plan, &first.trials),
        (&second.plan, &second.trials),
        args.arm.as_deref(),
        args.format.measure,
        sampling,
    );
    if found.tasks.is_empty() {
        return Err(Failure::usage(
            "the two evaluations have no task in common, so there is nothing to compare",
            "Name two evaluations of the same suite.",
        ));
    }
    if found.arms.is_empty() {
        let message = format!(
            "the two evaluations have no arm in common: A has {}, B has {}",
            arms(&first.plan),
            arms(&second.plan)
        );
        return Err(Failure::usage(message, "Name two evaluations with an arm of the same name."));
    }
    if found.is_other_suite() {
        tell!("warning: the files of the suite differ, so tasks of the same name may not be the same task");
    }
    let notes: Vec<String> = [noted(&first.notes), noted(&second.notes)].concat();
    let started = [moment(first.plan.started), moment(second.plan.started)];
    let [first_started, second_started] = &started;
    written(
        &args.format,
        || as_json(&found, &notes),
        || difference::document(&found, [first_started, second_started], &notes, sampling.power),
        &format!("archeflow eval compare {} {}", args.first.display(), args.second.display()),
    )
}

fn evaluation(folder: &Path) -> Result<Evaluation, Vec<RecordFault>> {
    let plan = record::read_plan(folder)?;
    let read = record::read_trials(folder, &plan)?;
    Ok(Evaluation { plan, trials: read.trials, notes: read.notes })
}

fn baseline<'a>(plan: &'a EvalPlan, wanted: Option<&str>) -> Result<&'a str, Failure> {
    let named = |name: &str| plan.arms.iter().find(|arm| arm.name == name);
    let found = match wanted {
        Some(wanted) => named(wanted),
        None => named("single").or_else(|| plan.arms.first()),
    };
    found.map(|arm| arm.name.as_str()).ok_or_else(|| {
        let message = format!("--baseline: there is no arm {}", safe_line(wanted.unwrap_or_default()));
        Failure::usage(message, format!("The arms: {}", arms(plan)))
    })
}

fn arms(plan: &EvalPlan) -> String {
    let names: Vec<String> = plan.arms.iter().map(|arm| safe_line(&arm.name)).collect();
    names.join(", ")
}

fn sampling(args: &EvalFormatArgs) -> SamplingOptions {
    SamplingOptions { confidence: args.confidence, ..SamplingOptions::default() }.checked()
}

fn moment(ms: u64) -> String {
    if ms <= LAST_MOMENT { clock::written(ms) } else { "unknown".to_owned() }
}

fn noted(notes: &[RecordFault]) -> Vec<String> {
    notes.iter().map(ToString::to_string).collect()
}

fn as_json(found: &impl serde::Serialize, notes: &[String]) -> Result<Value, Failure> {
    let mut object = serde_json::to_value(found).map_err(|error| {
        Failure::new(30, "environment", format!("it can't be written as JSON: {error}"), "")
    })?;
    object["notes"] = json!(notes);
    Ok(object)
}

/// Prints the result, or writes it to the file that was named.
fn written(
    args: &EvalFormatArgs,
    object: impl FnOnce() -> Result<Value, Failure>,
    document: impl FnOnce() -> Document,
    again: &str,
) -> Result<CommandOutput, Failure> {
    let text = match (args.json, args.html) {
        (true, _) => format!("{}\n", safe_json(&object()?)),
        (false, true) => document().html(),
        (false, false) => document().markdown(),
    };
    match &args.output {
        Some(path) => {
            let path = process_env()?.cwd.join(path);
            to_file(&path, text.as_bytes(), again)?;
            tell!("Report: {}", safe_line(&path.display().to_string()));
            Ok(CommandOutput::done())
        }
        None => Ok(CommandOutput::text(text)),
    }
}

/// All faults at once. A folder with faults is refused like any other bad input.
fn refused(faults: &[RecordFault], as_json: bool) -> CommandOutput {
    for fault in faults {
        tell!("{}", safe(&fault.to_string()));
    }
    if !as_json {
        return CommandOutput::done().with_code(REFUSED);
    }
    let fault = |fault: &RecordFault| {
        json!({
            "place": fault.place, "line": Some(fault.line).filter(|line| *line > 0), "text": fault.text,
            "remedy": fault.remedy,
        })
    };
    let faults: Vec<Value> = faults.iter().map(fault).collect();
    CommandOutput::json(json!({ "exit_code": REFUSED, "faults": faults })).with_code(REFUSED)
}
