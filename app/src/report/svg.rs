//! The pictures of the HTML report: the cycles, and how the findings moved. Colours are classes of the style sheet, so
//! that they follow light and dark; every picture has a text description.

use archeflow_core::event::Trend;
use archeflow_core::feedback;
use archeflow_core::model::{Phase, Verdict};
use archeflow_core::projections::story::{CycleEnd, CycleStory, Ended, Step, Story};
use archeflow_core::projections::view::{self, Tone, capital};
use archeflow_core::text::short_line;
use maud::{Markup, html};

use super::markdown::split;
use super::{most, words};

const GUTTER: usize = 76;
const COLUMN: usize = 232;
const BOX: usize = 200;
const TALL: usize = 48;
const GAP: usize = 10;
const BETWEEN: usize = 52;
const WIDTH: usize = GUTTER + 3 * COLUMN + BOX + 4;
const PHASES: [(Phase, &str); 4] =
    [(Phase::Plan, "Plan"), (Phase::Do, "Do"), (Phase::Check, "Check"), (Phase::Act, "Act")];
/// Boxes in one column before the rest is counted.
const STACK: usize = 9;

/// One box: two lines of text, a mark, and how its attempts went.
struct Cell {
    name: String,
    says: String,
    title: String,
    tone: Tone,
    mark: Mark,
    pips: Vec<bool>,
}

#[derive(Clone, Copy, PartialEq)]
enum Mark {
    Yes,
    No,
    Stop,
    Skipped,
    Wait,
}

/// Plan, Do, Check and Act from left to right, a row for each cycle, and the way back between them.
pub(super) fn cycles(story: &Story) -> Markup {
    let (first, left_out, last) = split(&story.cycles, most::CYCLES_DRAWN);
    let mut rows = Vec::new();
    let mut y = 34;
    for (n, cycle) in first.iter().chain(last).enumerate() {
        if left_out > 0 && n == first.len() {
            let words = words::count(left_out, "cycle");
            rows.push(html! { text.soft.mid x=(WIDTH / 2) y=(y + 18) { (words) " left out" } });
            y += 36;
        }
        let (drawn, bottom, act) = row(cycle, y);
        rows.push(drawn);
        y = bottom;
        let goes_on = n + 1 < first.len() + last.len();
        if let Some(end) = cycle.end.as_ref().filter(|_| goes_on) {
            rows.push(back(end, act, y));
        }
        y += if goes_on { BETWEEN } else { 4 };
    }
    let words = short_line(&in_words(story), most::PARAGRAPH);
    html! {
        svg.cycles viewBox={ "0 0 " (WIDTH) " " (y) } role="img" aria-label=(words) {
            @for (n, (phase, title)) in PHASES.iter().enumerate() {
                @let x = GUTTER + n * COLUMN;
                text class={ "head " (phase.name()) } x=(x) y="16" { (title) }
                path class={ "rule " (phase.name()) } d={ "M" (x) " 23h" (BOX) } {}
            }
            @for row in rows { (row) }
        }
    }
}

fn in_words(story: &Story) -> String {
    let cycles = story.cycles.iter().take(most::CYCLES_DRAWN).map(|cycle| {
        let steps: Vec<String> = cycle.steps.iter().take(20).map(words::sentence).collect();
        let end = cycle.end.as_ref().map(|end| {
            let (counts, follows, _) = words::boundary(end);
            format!("; {counts}: {follows}")
        });
        format!("Cycle {}: {}{}", cycle.number, steps.join(", "), end.unwrap_or_default())
    });
    cycles.collect::<Vec<_>>().join(". ")
}

/// One cycle drawn, where it ends, and where its last column does.
fn row(cycle: &CycleStory, top: usize) -> (Markup, usize, usize) {
    let mut drawn = vec![html! {
        text.cycle x="0" y=(top + 18) { "Cycle" }
        text.number x="0" y=(top + 42) { (cycle.number) }
    }];
    let (mut bottom, mut end) = (top + TALL, top + TALL);
    let mut before: Option<usize> = None;
    for (n, (phase, _)) in PHASES.iter().enumerate() {
        let cells = column(cycle, *phase);
        let x = GUTTER + n * COLUMN;
        let told = if cells.len() > STACK { STACK - 1 } else { cells.len() };
        for (at, cell) in cells.iter().take(told).enumerate() {
            drawn.push(draw(cell, *phase, x, top + at * (TALL + GAP)));
        }
        if cells.len() > told {
            let y = top + told * (TALL + GAP) + 18;
            drawn.push(html! { text.soft x=(x + 12) y=(y) { "and " (cells.len() - told) " more" } });
        }
        if !cells.is_empty() {
            if let Some(from) = before {
                drawn.push(arrow(from + BOX, x, top + TALL / 2));
            }
            before = Some(x);
            let shown = if cells.len() > told { told + 1 } else { told };
            end = top + shown * (TALL + GAP) - GAP;
            bottom = bottom.max(end);
        }
    }
    (html! { @for part in drawn { (part) } }, bottom, end)
}

fn arrow(from: usize, to: usize, y: usize) -> Markup {
    html! {
        path.way d={ "M" (from + 4) " " (y) "H" (to - 9) } {}
        path.tip d={ "M" (to - 10) " " (y - 4) "l6 4l-6 4z" } {}
    }
}

/// From the end of Act to the beginning of the next Plan.
fn back(end: &CycleEnd, act: usize, y: usize) -> Markup {
    let (from, to) = (GUTTER + 3 * COLUMN + BOX / 2, GUTTER + BOX / 2);
    let middle = y + BETWEEN / 2;
    let text = words::goes_back(end);
    let half = text.chars().count() * 7 / 2 + 12;
    let centre = usize::midpoint(from, to);
    let way =
        format!("M{from} {}V{}q0 8 -8 8H{}q-8 0 -8 8V{}", act + 4, middle - 8, to + 8, y + BETWEEN - 10);
    html! {
        path.loop d=(way) {}
        path.loop-tip d={ "M" (to - 4) " " (y + BETWEEN - 11) "l4 7l4 -7z" } {}
        rect.paper x=(centre - half) y=(middle - 10) width=(half * 2) height="20" {}
        text.loop-text.mid x=(centre) y=(middle + 4) { (short_line(&text, 120)) }
    }
}

fn column(cycle: &CycleStory, phase: Phase) -> Vec<Cell> {
    let mut cells: Vec<Cell> = cycle.steps.iter().filter(|step| step.phase == phase).map(of_step).collect();
    if phase == Phase::Act {
        cells.extend(cycle.end.iter().map(of_end));
        cells.extend(cycle.deeds.iter().map(|deed| Cell {
            name: words::deed(&deed.line.doing),
            says: deed.line.outcome.clone(),
            title: format!("#{} {} {}", deed.seq, deed.line.doing, deed.line.outcome),
            tone: deed.line.tone,
            mark: match deed.line.tone {
                Tone::Good | Tone::Plain => Mark::Yes,
                Tone::Caution => Mark::No,
                Tone::Bad => Mark::Stop,
            },
            pips: Vec::new(),
        }));
    }
    cells
}

fn of_step(step: &Step) -> Cell {
    let (says, tone) = words::result(step);
    let took = if step.attempts.is_empty() {
        String::new()
    } else {
        format!(" · {}", view::seconds(step.took_ms()))
    };
    let says = match &step.result {
        Ended::Verdict(verdict) => reviewed(*verdict, step.found),
        Ended::Out | Ended::Done | Ended::Failed(_) | Ended::Skipped(_) => format!("{says}{took}"),
    };
    let mark = match &step.result {
        Ended::Out => Mark::Wait,
        Ended::Skipped(_) => Mark::Skipped,
        Ended::Failed(_) => Mark::Stop,
        Ended::Done | Ended::Verdict(_) if tone == Tone::Good => Mark::Yes,
        Ended::Done | Ended::Verdict(_) => Mark::No,
    };
    let pips = step.attempts.iter().map(|attempt| attempt.good).collect();
    Cell { name: capital(&step.archetype), says, title: words::sentence(step), tone, mark, pips }
}

/// The box is narrow: where there are findings, they say more than the word.
fn reviewed(verdict: Verdict, found: [u32; 3]) -> String {
    let counts: Vec<String> = found
        .iter()
        .zip(["critical", "warning", "info"])
        .filter(|(n, _)| **n > 0)
        .map(|(n, word)| format!("{n} {word}"))
        .collect();
    let word = verdict.name().to_lowercase();
    match (verdict, counts.is_empty()) {
        (_, true) => word,
        (Verdict::Approved, false) => format!("{word}, {}", counts.join(", ")),
        (Verdict::Rejected, false) => counts.join(", "),
    }
}

fn of_end(end: &CycleEnd) -> Cell {
    let (counts, follows, tone) = words::boundary(end);
    let why = end.stop.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    let mark = match tone {
        Tone::Good => Mark::Yes,
        Tone::Bad => Mark::Stop,
        Tone::Plain | Tone::Caution => Mark::No,
    };
    let title = format!("#{} {counts}: {follows}{why}", end.seq);
    Cell { name: capital(follows), says: counts.to_lowercase(), title, tone, mark, pips: Vec::new() }
}

fn draw(cell: &Cell, phase: Phase, x: usize, y: usize) -> Markup {
    let skipped = cell.mark == Mark::Skipped;
    html! {
        g {
            title { (short_line(&cell.title, most::SENTENCE)) }
            rect.box.skipped[skipped] x=(x) y=(y) width=(BOX) height=(TALL) rx="8" {}
            rect class={ "edge " (phase.name()) @if skipped { " skipped" } } x=(x) y=(y + 10) width="3" height=(TALL - 20) rx="1.5" {}
            text.name.skipped[skipped] x=(x + 14) y=(y + 20) { (short_line(&cell.name, 20)) }
            text class={ "says " (tone(cell.tone)) } x=(x + 14) y=(y + 37) { (short_line(&cell.says, 31)) }
            (mark(cell.mark, x + BOX - 20, y + 17))
            @if cell.pips.len() > 1 {
                @for (n, good) in cell.pips.iter().rev().take(8).enumerate() {
                    @let class = if *good { "good" } else { "bad" };
                    circle class={ "pip " (class) } cx=(x + BOX - 38 - n * 8) cy=(y + 17) r="2.5" {}
                }
            }
        }
    }
}

fn mark(mark: Mark, x: usize, y: usize) -> Markup {
    let (class, path) = match mark {
        Mark::Yes => ("good", "M-3.5 0.3l2.4 2.4l4.4 -5"),
        Mark::No => ("caution", "M0 -3.6v4.2M0 3.4v0.2"),
        Mark::Stop => ("bad", "M-2.8 -2.8l5.6 5.6M2.8 -2.8l-5.6 5.6"),
        Mark::Skipped => ("quiet", "M-3 0h6"),
        Mark::Wait => ("quiet", "M0 -3v3l2 1.5"),
    };
    html! {
        g transform={ "translate(" (x) " " (y) ")" } {
            circle class={ "disc " (class) } r="8" {}
            path class={ "sign " (class) } d=(path) {}
        }
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
