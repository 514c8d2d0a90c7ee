//! The pictures of the HTML report: how the findings moved, shares, and the marks of the cycles. Colours are classes of
//! the style sheet, so that they follow light and dark; every picture has a text description.

use archeflow_core::event::Trend;
use archeflow_core::feedback;
use archeflow_core::projections::story::{CycleEnd, CycleStory, Story};
use archeflow_core::projections::view::Tone;
use archeflow_core::text::short_line;
use maud::{Markup, html};

use super::{most, words};

/// The sign on a box of the cycles.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Mark {
    Yes,
    No,
    Stop,
    Skipped,
    Wait,
}

/// Around the origin.
pub(super) fn mark(mark: Mark) -> Markup {
    let (class, path) = match mark {
        Mark::Yes => ("good", "M-3.5 0.3l2.4 2.4l4.4 -5"),
        Mark::No => ("caution", "M0 -3.6v4.2M0 3.4v0.2"),
        Mark::Stop => ("bad", "M-2.8 -2.8l5.6 5.6M2.8 -2.8l-5.6 5.6"),
        Mark::Skipped => ("quiet", "M-3 0h6"),
        Mark::Wait => ("quiet", "M0 -3v3l2 1.5"),
    };
    html! {
        circle class={ "disc " (class) } r="8" {}
        path class={ "sign " (class) } d=(path) {}
    }
}

pub(super) fn tone(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "plain",
        Tone::Good => "good",
        Tone::Caution => "caution",
        Tone::Bad => "bad",
    }
}

const LEFT: usize = 40;
const RIGHT: usize = 16;
/// A cycle is no wider than this, so that two of them do not look like a desert, nor do all fill more than a page.
const STEP: usize = 150;
const WIDEST: usize = 960;

/// Whether there is a curve to draw: one cycle alone moves nowhere.
pub(super) fn converges(story: &Story) -> bool {
    story.cycles.iter().any(|cycle| cycle.end.as_ref().is_some_and(|end| end.trend.is_some()))
}

/// The score between its bands above, what was open below: one picture, one axis of cycles.
pub(super) fn convergence(story: &Story) -> Option<Markup> {
    let ends: Vec<(&CycleStory, &CycleEnd)> =
        story.cycles.iter().filter_map(|cycle| Some((cycle, cycle.end.as_ref()?))).collect();
    let from = ends.len().saturating_sub(most::CYCLES_PLOTTED);
    let ends = ends.get(from..).unwrap_or_default();
    if !ends.iter().any(|(_, end)| end.trend.is_some()) {
        return None;
    }
    let step = ((WIDEST - LEFT - RIGHT) / ends.len().max(1)).min(STEP);
    let wide = step * ends.len();
    let x = |n: usize| LEFT + step * n + step / 2;
    let told: Vec<String> = ends.iter().map(|(cycle, end)| in_one(cycle, end)).collect();
    let words = short_line(&told.join(". "), most::PARAGRAPH);
    Some(html! {
        svg.plot viewBox={ "0 0 " (LEFT + wide + RIGHT) " 290" } width=(LEFT + wide + RIGHT) height="290" role="img" aria-label=(words) {
            (bands(story.bands, wide))
            (scores(ends, x))
            (bars(ends, x, (step * 6 / 10).min(44)))
            text.axis x="0" y="284" { "cycle" }
        }
    })
}

fn in_one(cycle: &CycleStory, end: &CycleEnd) -> String {
    let (counts, ..) = words::boundary(end);
    let trend = end.trend.as_ref().map(|trend| {
        format!(
            ", score {} {}, {} resolved, {} new, {} regressed, {} persistent",
            feedback::score(trend),
            trend.status.name(),
            trend.resolved,
            trend.new,
            trend.regressed,
            trend.persistent
        )
    });
    format!("Cycle {}: {counts}{}", cycle.number, trend.unwrap_or_default())
}

const TOP: usize = 14;
const HIGH: usize = 110;

/// The position of a score in percent.
fn height(percent: u32) -> usize {
    TOP + HIGH - HIGH * percent.min(100) as usize / 100
}

fn bands((above, below): (u32, u32), wide: usize) -> Markup {
    html! {
        @for (class, from, to) in [("good", 100, above), ("caution", above, below), ("bad", below, 0)] {
            rect class={ "band " (class) } x=(LEFT) y=(height(from)) width=(wide) height=(height(to) - height(from)) {}
        }
        @for percent in [0, below, above, 100] {
            text.axis.end x=(LEFT - 6) y=(height(percent) + 4) {
                (format!("{}.{:02}", percent / 100, percent % 100))
            }
        }
    }
}

fn scores(ends: &[(&CycleStory, &CycleEnd)], x: impl Fn(usize) -> usize) -> Markup {
    let points: Vec<(usize, usize, &Trend)> = ends
        .iter()
        .enumerate()
        .filter_map(|(n, (_, end))| {
            end.trend.as_ref().map(|trend| (x(n), height(trend.score.0 / 10_000), trend))
        })
        .collect();
    let path: Vec<String> = points.iter().map(|(x, y, _)| format!("{x} {y}")).collect();
    html! {
        path.curve d={ "M" (path.join("L")) } {}
        @for (x, y, trend) in &points {
            @let label = format!("{} {}", feedback::score(trend), trend.status.name());
            g {
                title { (label) }
                circle.point cx=(x) cy=(y) r="4" {}
                @if points.len() <= 10 {
                    @let above = if *y < TOP + 24 { y + 20 } else { y - 10 };
                    text.label.mid x=(x) y=(above) { (label) }
                }
            }
        }
    }
}

const UNDER: usize = 158;
const ROOM: usize = 104;

/// Open findings stacked upwards by how they came, resolved ones below the line; both on one scale.
fn bars(ends: &[(&CycleStory, &CycleEnd)], x: impl Fn(usize) -> usize, wide: usize) -> Markup {
    let up = ends.iter().map(|(_, end)| open(end).iter().sum::<u32>()).max().unwrap_or(0);
    let down = ends.iter().map(|(_, end)| resolved(end)).max().unwrap_or(0);
    let scaled = |n: u32| ROOM * n as usize / (up + down).max(1) as usize;
    let base = UNDER + scaled(up);
    let last = x(0) - LEFT + x(ends.len().saturating_sub(1));
    let mut drawn = Vec::new();
    for (n, (cycle, end)) in ends.iter().enumerate() {
        let left = x(n) - wide / 2;
        let mut y = base;
        for (count, class) in open(end).into_iter().zip(["persistent", "new", "regressed"]) {
            y -= scaled(count);
            drawn.push(bar(class, count, [left, y, wide, scaled(count)]));
        }
        drawn.push(bar("resolved", resolved(end), [left, base + 1, wide, scaled(resolved(end))]));
        let all: u32 = open(end).iter().sum();
        drawn.push(html! {
            @if ends.len() <= 16 { text.label.mid x=(x(n)) y=(y - 6) { (all) " open" } }
            text.axis.mid x=(x(n)) y="284" { (cycle.number) }
        });
    }
    html! {
        @for part in drawn { (part) }
        path.base d={ "M" (LEFT) " " (base) "H" (last) } {}
    }
}

fn bar(class: &str, count: u32, [x, y, wide, high]: [usize; 4]) -> Markup {
    html! {
        @if count > 0 {
            g {
                title { (count) " " (class) }
                rect class={ "bar " (class) } x=(x) y=(y) width=(wide) height=(high.max(1)) {}
            }
        }
    }
}

/// Persistent, new, and back again. In the first cycle everything is new.
fn open(end: &CycleEnd) -> [u32; 3] {
    match &end.trend {
        Some(trend) => [trend.persistent, trend.new, trend.regressed],
        None => [0, end.to_creator + end.to_maker, 0],
    }
}

fn resolved(end: &CycleEnd) -> u32 {
    end.trend.as_ref().map_or(0, |trend| trend.resolved)
}

/// A share of a whole as a bar, in a table.
pub(super) fn share(part: u64, whole: u64) -> Markup {
    let wide = (part * 120).checked_div(whole).unwrap_or(0);
    html! {
        svg.share viewBox="0 0 120 10" aria-hidden="true" {
            rect.track width="120" height="10" rx="5" {}
            rect.fill width=(if part > 0 { wide.max(4) } else { 0 }) height="10" rx="5" {}
        }
    }
}
