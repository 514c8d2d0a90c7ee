//! The pictures of an evaluation. Colours are classes of the style sheet, so that they follow light and dark; every picture
//! has a title and a description, and a table beside it has the same figures.

use archeflow_core::eval::report::ArmReport;
use archeflow_core::eval::{ArmConclusion, Bounds, EvalMeasure, PairedComparison, TrialOutcome};
use archeflow_core::text::{cut, short_line};
use maud::{Markup, html};

use super::{most, words};

const WIDE: f64 = 760.0;
/// Room for names on the left.
const NAMES: f64 = 150.0;
const RIGHT: f64 = 24.0;
const ROW: f64 = 30.0;
/// Characters of a name that fit into [`NAMES`].
const NAME: usize = 20;

/// One decimal is enough for a place in a picture.
fn at(place: f64) -> String {
    format!("{place:.1}")
}

fn frame(id: &str, title: &str, description: &str, high: f64, inner: &Markup) -> Markup {
    html! {
        svg.plot viewBox={ "0 0 " (WIDE) " " (at(high)) } width=(WIDE) height=(at(high)) role="img"
            aria-labelledby={ (id) "-title " (id) "-desc" } {
            title id={ (id) "-title" } { (short_line(title, 200)) }
            desc id={ (id) "-desc" } { (short_line(description, 4 * most::TEXT)) }
            (inner)
        }
    }
}

fn name(text: &str, y: f64) -> Markup {
    html! {
        text.label.end x=(at(NAMES - 12.0)) y=(at(y)) {
            @if text.chars().count() > NAME { title { (short_line(text, 200)) } }
            (cut(&short_line(text, 200), NAME))
        }
    }
}

/// The class of an outcome in the style sheet.
pub(super) fn outcome_class(outcome: TrialOutcome) -> &'static str {
    match outcome {
        TrialOutcome::Solved => "o-solved",
        TrialOutcome::WronglyLanded => "o-wrong",
        TrialOutcome::RightlyHeldBack => "o-right-held",
        TrialOutcome::WronglyHeldBack => "o-wrong-held",
        TrialOutcome::Failed => "o-failed",
        TrialOutcome::Unmeasured => "o-unmeasured",
    }
}

/// A bar per arm, divided by outcome.
pub(super) fn outcomes(arms: &[ArmReport]) -> Option<Markup> {
    let arms: Vec<&ArmReport> =
        arms.iter().filter(|arm| arm.measures.trials > 0).take(most::ARMS_DRAWN).collect();
    if arms.is_empty() {
        return None;
    }
    let width = WIDE - NAMES - RIGHT;
    let high = 30.0 + ROW * arms.len() as f64;
    let mut told = Vec::new();
    let mut drawn = Vec::new();
    for (row, arm) in arms.iter().enumerate() {
        let top = 4.0 + ROW * row as f64;
        let all = arm.outcomes.values().sum::<u64>().max(1) as f64;
        let mut left = NAMES;
        let mut parts = Vec::new();
        let mut segments = Vec::new();
        for (outcome, count) in &arm.outcomes {
            let wide = width * *count as f64 / all;
            let word = format!("{count} {}", words::outcome(*outcome));
            segments.push(html! {
                g {
                    title { (short_line(&arm.measures.arm, 60)) ": " (word) }
                    rect class={ "part " (outcome_class(*outcome)) } x=(at(left)) y=(at(top)) width=(at(wide)) height="22" {}
                    @if wide >= 22.0 {
                        text class={ "inside mid " (outcome_class(*outcome)) } x=(at(left + wide / 2.0)) y=(at(top + 15.5)) { (count) }
                    }
                }
            });
            parts.push(word);
            left += wide;
        }
        told.push(format!("{}: {}", arm.measures.arm, parts.join(", ")));
        drawn.push(html! { (name(&arm.measures.arm, top + 15.5)) @for segment in segments { (segment) } });
    }
    let base = 4.0 + ROW * arms.len() as f64;
    let inner = html! {
        @for part in drawn { (part) }
        @for share in [0, 25, 50, 75, 100] {
            text.axis.mid x=(at(NAMES + width * f64::from(share) / 100.0)) y=(at(base + 14.0)) { (share) " %" }
        }
    };
    Some(frame("outcomes-picture", "Outcomes of each arm", &told.join(". "), high, &inner))
}

/// Ends of an axis with steps that people count in.
struct Scale {
    from: f64,
    to: f64,
    step: f64,
    left: f64,
    width: f64,
}

impl Scale {
    fn new(least: f64, greatest: f64, left: f64, width: f64) -> Scale {
        let span = (greatest - least).max(1e-9);
        let power = 10.0_f64.powf((span / 5.0).log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .into_iter()
            .map(|times| times * power)
            .find(|step| span / step <= 6.0)
            .unwrap_or(10.0 * power);
        let (from, to) = ((least / step).floor() * step, (greatest / step).ceil() * step);
        Scale { from, to: if to > from { to } else { from + step }, step, left, width }
    }

    fn place(&self, value: f64) -> f64 {
        self.left + self.width * ((value - self.from) / (self.to - self.from)).clamp(0.0, 1.0)
    }

    fn ticks(&self) -> impl Iterator<Item = f64> {
        let count = ((self.to - self.from) / self.step).round().clamp(1.0, 20.0) as u32;
        let (from, step) = (self.from, self.step);
        (0..=count).map(move |n| from + step * f64::from(n))
    }
}

/// A dot and an interval per arm, around a line at 0.
pub(super) fn differences(comparisons: &[PairedComparison], title: &str) -> Option<Markup> {
    let rows: Vec<(&PairedComparison, f64, Bounds)> = comparisons
        .iter()
        .filter_map(|one| {
            let difference = one.mean_difference?;
            Some((one, difference, one.interval.unwrap_or(Bounds { lower: difference, upper: difference })))
        })
        .take(most::ARMS_DRAWN)
        .collect();
    let measure = rows.first()?.0.measure;
    let least = rows.iter().map(|(_, _, bounds)| bounds.lower).fold(0.0, f64::min);
    let greatest = rows.iter().map(|(_, _, bounds)| bounds.upper).fold(0.0, f64::max);
    let scale = Scale::new(least, greatest, NAMES, WIDE - NAMES - RIGHT - 20.0);
    let base = 8.0 + ROW * rows.len() as f64;
    let told: Vec<String> = rows
        .iter()
        .map(|(one, difference, bounds)| {
            format!(
                "{}: {}, interval {}, {}",
                one.arm,
                words::signed(measure, *difference),
                words::signed_interval(measure, Some(*bounds)),
                words::verdict(&one.conclusion).0
            )
        })
        .collect();
    let inner = html! {
        @for tick in scale.ticks() {
            path.grid d={ "M" (at(scale.place(tick))) " 4V" (at(base)) } {}
            text.axis.mid x=(at(scale.place(tick))) y=(at(base + 15.0)) { (words::signed(measure, tick)) }
        }
        path.zero d={ "M" (at(scale.place(0.0))) " 0V" (at(base)) } {}
        @for (row, (one, difference, bounds)) in rows.iter().enumerate() {
            @let y = 8.0 + ROW * row as f64 + ROW / 2.0;
            @let class = difference_class(&one.conclusion);
            (name(&one.arm, y + 4.0))
            g class=(class) {
                title { (short_line(told.get(row).map_or("", String::as_str), 300)) }
                path.span d={ "M" (at(scale.place(bounds.lower))) " " (at(y)) "H" (at(scale.place(bounds.upper))) } {}
                circle.spot cx=(at(scale.place(*difference))) cy=(at(y)) r="5.5" {}
            }
        }
    };
    Some(frame("differences-picture", title, &told.join(". "), base + 22.0, &inner))
}

fn difference_class(conclusion: &ArmConclusion) -> &'static str {
    match conclusion {
        ArmConclusion::Better => "d-better",
        ArmConclusion::Worse => "d-worse",
        ArmConclusion::Undecided { .. } => "d-open",
    }
}

/// What is paid for what is solved. The first amount that any arm has is the cost.
pub(super) fn cost(arms: &[ArmReport]) -> Option<(EvalMeasure, Markup)> {
    let mean = |arm: &ArmReport, measure| arm.measures.figures.get(&measure).map(|found| found.mean);
    let cost = [EvalMeasure::Dollars, EvalMeasure::Tokens, EvalMeasure::Minutes, EvalMeasure::Cycles]
        .into_iter()
        .find(|measure| arms.iter().any(|arm| mean(arm, *measure).is_some_and(|mean| mean > 0.0)))?;
    let points: Vec<(&str, f64, f64, Option<Bounds>)> = arms
        .iter()
        .take(most::ARMS_DRAWN)
        .filter_map(|arm| {
            let solved = arm.measures.figures.get(&EvalMeasure::Solved)?;
            Some((arm.measures.arm.as_str(), mean(arm, cost)?, solved.mean, solved.interval))
        })
        .collect();
    if points.len() < 2 {
        return None;
    }
    let greatest = points.iter().map(|(_, cost, ..)| *cost).fold(0.0, f64::max);
    let x = Scale::new(0.0, greatest, 56.0, WIDE - 56.0 - NAMES);
    let (top, high) = (30.0, 250.0);
    let y = |solved: f64| top + high * (1.0 - solved.clamp(0.0, 1.0));
    let told: Vec<String> = points
        .iter()
        .map(|(arm, paid, solved, _)| {
            let solved = words::figure(EvalMeasure::Solved, *solved);
            format!("{arm}: solved {solved} for {} {}", words::figure(cost, *paid), words::measure(cost))
        })
        .collect();
    let labels = spread_out(
        &points.iter().map(|(_, paid, solved, _)| (x.place(*paid), y(*solved))).collect::<Vec<_>>(),
    );
    let inner = html! {
        @for share in [0.0, 0.25, 0.5, 0.75, 1.0] {
            path.grid d={ "M56 " (at(y(share))) "H" (at(WIDE - NAMES)) } {}
            text.axis.end x="48" y=(at(y(share) + 4.0)) { (words::figure(EvalMeasure::Solved, share)) }
        }
        @for tick in x.ticks() {
            text.axis.mid x=(at(x.place(tick))) y=(at(top + high + 17.0)) { (words::figure(cost, tick)) }
        }
        text.axis x="0" y="10" { "solved" }
        text.axis.end x=(at(WIDE - NAMES)) y=(at(top + high + 34.0)) { (words::measure(cost)) " per trial" }
        @for ((point, label), told) in points.iter().zip(labels).zip(&told) {
            @let (arm, paid, solved, interval) = point;
            @let (px, py) = (x.place(*paid), y(*solved));
            g.spots {
                title { (short_line(told, 300)) }
                @if let Some(bounds) = interval {
                    path.whisker d={ "M" (at(px)) " " (at(y(bounds.lower))) "V" (at(y(bounds.upper))) } {}
                }
                @if (label - py).abs() > 6.0 {
                    path.leader d={ "M" (at(px + 6.0)) " " (at(py)) "L" (at(px + 14.0)) " " (at(label)) } {}
                }
                circle.spot cx=(at(px)) cy=(at(py)) r="5.5" {}
                text.label x=(at(px + 17.0)) y=(at(label + 4.0)) { (cut(&short_line(arm, 200), NAME)) }
            }
        }
    };
    let title = format!("Solved against {}", words::measure(cost));
    Some((cost, frame("cost-picture", &title, &told.join(". "), top + high + 42.0, &inner)))
}

/// Heights of labels beside these points, so that labels of near points don't cover each other.
fn spread_out(points: &[(f64, f64)]) -> Vec<f64> {
    const APART: f64 = 14.0;
    /// A label is about this wide.
    const LONG: f64 = 140.0;
    let mut order: Vec<usize> = (0..points.len()).collect();
    let place = |index: &usize| points.get(*index).copied().unwrap_or_default();
    order.sort_by(|one, other| place(one).1.total_cmp(&place(other).1));
    let mut placed: Vec<(f64, f64)> = Vec::new();
    let mut heights = vec![0.0; points.len()];
    for index in order {
        let (x, wanted) = place(&index);
        let mut height = wanted;
        for (other, taken) in &placed {
            if (other - x).abs() < LONG && height < taken + APART {
                height = taken + APART;
            }
        }
        placed.push((x, height));
        placed.sort_by(|one, other| one.1.total_cmp(&other.1));
        if let Some(slot) = heights.get_mut(index) {
            *slot = height;
        }
    }
    heights
}
