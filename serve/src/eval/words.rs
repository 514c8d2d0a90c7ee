//! Figures and conclusions in words.

use archeflow_core::eval::exact::PairedTest;
use archeflow_core::eval::paired::UndecidedReason;
use archeflow_core::eval::{ArmConclusion, Bounds, EvalMeasure, PairedComparison, TrialOutcome};

use super::most;

pub(super) const NOTHING: &str = "–";

pub(super) fn measure(measure: EvalMeasure) -> &'static str {
    match measure {
        EvalMeasure::Solved => "solved",
        EvalMeasure::WronglyLanded => "wrongly landed",
        EvalMeasure::RightlyHeldBack => "rightly held back",
        EvalMeasure::WronglyHeldBack => "wrongly held back",
        EvalMeasure::Failed => "failed",
        EvalMeasure::Trapped => "trapped",
        EvalMeasure::Cycles => "cycles",
        EvalMeasure::Tokens => "tokens",
        EvalMeasure::Dollars => "dollars",
        EvalMeasure::Minutes => "minutes",
        EvalMeasure::Decisions => "decisions",
    }
}

pub(super) fn outcome(outcome: TrialOutcome) -> &'static str {
    match outcome {
        TrialOutcome::Solved => "solved",
        TrialOutcome::WronglyLanded => "wrongly landed",
        TrialOutcome::RightlyHeldBack => "rightly held back",
        TrialOutcome::WronglyHeldBack => "wrongly held back",
        TrialOutcome::Failed => "failed",
        TrialOutcome::Unmeasured => "unmeasured",
    }
}

/// A figure with the digits that its measure deserves.
pub(super) fn figure(measure: EvalMeasure, value: f64) -> String {
    let text = match measure {
        EvalMeasure::Tokens => grouped(value),
        EvalMeasure::Dollars => {
            let is_small = value.abs() > 0.0 && value.abs() < 0.095;
            let digits = if is_small { 4 } else { 2 };
            format!("{}${:.digits$}", if value < 0.0 { "-" } else { "" }, value.abs())
        }
        EvalMeasure::Minutes if value.abs() >= 10.0 => format!("{value:.1}"),
        EvalMeasure::Solved
        | EvalMeasure::WronglyLanded
        | EvalMeasure::RightlyHeldBack
        | EvalMeasure::WronglyHeldBack
        | EvalMeasure::Failed
        | EvalMeasure::Trapped
        | EvalMeasure::Cycles
        | EvalMeasure::Minutes
        | EvalMeasure::Decisions => format!("{value:.2}"),
    };
    // Without the sign of a 0 that was rounded, and with a real minus.
    let is_zero = text.chars().all(|c| !c.is_ascii_digit() || c == '0');
    if is_zero { text.replace('-', "") } else { text.replace('-', "−") }
}

pub(super) fn signed(measure: EvalMeasure, value: f64) -> String {
    let text = figure(measure, value);
    let is_zero = text.chars().all(|c| !c.is_ascii_digit() || c == '0');
    if value > 0.0 && !is_zero { format!("+{text}") } else { text }
}

pub(super) fn interval(measure: EvalMeasure, bounds: Option<Bounds>) -> String {
    bounds.map_or_else(String::new, |bounds| {
        format!("{} to {}", figure(measure, bounds.lower), figure(measure, bounds.upper))
    })
}

pub(super) fn signed_interval(measure: EvalMeasure, bounds: Option<Bounds>) -> String {
    bounds.map_or_else(
        || NOTHING.to_owned(),
        |bounds| format!("{} to {}", signed(measure, bounds.lower), signed(measure, bounds.upper)),
    )
}

/// Whole numbers with commas.
fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let long = digits.len();
    let mut out = String::from(if value < 0.0 { "-" } else { "" });
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (long - at) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

pub(super) fn chance(p: f64) -> String {
    if p < 0.001 { "< 0.001".to_owned() } else { format!("{p:.3}") }
}

pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let digits = usize::from((percent - percent.round()).abs() > 0.01);
    format!("{percent:.digits$} %")
}

pub(super) fn count(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

/// A list of names that does not grow without end.
pub(super) fn names<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let all: Vec<&str> = names.into_iter().collect();
    let shown: Vec<&str> = all.iter().copied().take(most::NAMED).collect();
    let more = all.len() - shown.len();
    let text = shown.join(", ");
    if more > 0 { format!("{text} and {more} more") } else { text }
}

pub(super) fn test(test: PairedTest) -> String {
    match test {
        PairedTest::McNemar => "McNemar’s exact test".to_owned(),
        PairedTest::SignFlip => "the exact sign-flip test".to_owned(),
        PairedTest::SampledSignFlip { draws } => format!("the sign-flip test with {draws} random draws"),
    }
}

/// One word, for a table.
pub(super) fn verdict(conclusion: &ArmConclusion) -> (&'static str, &'static str) {
    match conclusion {
        ArmConclusion::Better => ("better", "good"),
        ArmConclusion::Worse => ("worse", "bad"),
        ArmConclusion::Undecided { .. } => ("no winner", "quiet"),
    }
}

/// Why no winner is named; empty if one is.
pub(super) fn reasons(one: &PairedComparison, alpha: f64) -> String {
    let reason = |reason: &UndecidedReason| match reason {
        UndecidedReason::NoTasksInCommon => "there is no task with results on both sides".to_owned(),
        UndecidedReason::SingleTask => "a single task shows nothing about other tasks".to_owned(),
        UndecidedReason::IntervalContainsZero => "the interval contains 0".to_owned(),
        UndecidedReason::NotSignificant => {
            format!(
                "chance alone gives such a difference too often: the corrected p is not below {}",
                short(alpha)
            )
        }
        UndecidedReason::NoBetterSide => {
            format!("more or less {} is neither better nor worse", measure(one.measure))
        }
    };
    match &one.conclusion {
        ArmConclusion::Better | ArmConclusion::Worse => String::new(),
        ArmConclusion::Undecided { because } => because.iter().map(reason).collect::<Vec<_>>().join("; "),
    }
}

/// Without digits that are not needed.
pub(super) fn short(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The smallest difference that would probably be seen. Shares do not differ by more than 1.
pub(super) fn visible_difference(one: &PairedComparison) -> Option<String> {
    let least = one.detectable.filter(|least| !one.measure.is_rate() || *least <= 1.0)?;
    Some(figure(one.measure, least))
}

/// What the comparison could have shown.
pub(super) fn power(one: &PairedComparison) -> String {
    let tasks = match one.tasks {
        0 => return format!("{}: no task has results on both sides, so no difference can be seen.", one.arm),
        1 => return format!("{}: a single task shows no difference between arms.", one.arm),
        more => format!("{}: with these {more} tasks", one.arm),
    };
    match (one.detectable, visible_difference(one)) {
        (Some(_), Some(least)) => format!("{tasks} a difference below {least} would probably not be seen."),
        (Some(_), None) => format!("{tasks} no difference would probably be seen, however large."),
        (None, _) => {
            format!("{tasks} the results don’t vary, so the least visible difference can’t be computed.")
        }
    }
}
