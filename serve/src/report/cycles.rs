//! The cycles of the HTML report: Plan, Do, Check and Act beside each other, a row for each cycle, and what goes back
//! between them. Boxes are HTML, so that the browser breaks long labels inside them, and a narrow screen has the phases
//! one below the other.

use archeflow_core::model::{Phase, Verdict};
use archeflow_core::projections::story::{CycleEnd, CycleStory, Deed, Ended, Step, Story};
use archeflow_core::projections::view::{self, Tone, capital};
use archeflow_core::text::short_line;
use maud::{Markup, html};

use super::markdown::split;
use super::svg::{Mark, mark, tone};
use super::{most, words};

const PHASES: [(Phase, &str); 4] =
    [(Phase::Plan, "Plan"), (Phase::Do, "Do"), (Phase::Check, "Check"), (Phase::Act, "Act")];
/// Boxes in one phase before the rest is counted.
const STACK: usize = 9;

/// One box: what it is, what came of it, and how its attempts went.
struct PhaseBox {
    name: String,
    says: String,
    title: String,
    tone: Tone,
    mark: Mark,
    attempts: Vec<bool>,
}

pub(super) fn draw(story: &Story) -> Markup {
    let (first, left_out, last) = split(&story.cycles, most::CYCLES_DRAWN);
    let drawn: Vec<&CycleStory> = first.iter().chain(last).collect();
    let used: Vec<(Phase, &str)> = PHASES
        .into_iter()
        .filter(|(phase, _)| drawn.iter().any(|cycle| !boxes(cycle, *phase).is_empty()))
        .collect();
    html! {
        div class={ "flow p" (used.len().max(1)) } {
            @for (n, cycle) in drawn.iter().enumerate() {
                @if left_out > 0 && n == first.len() {
                    p.between { (words::count(left_out, "cycle")) " left out" }
                }
                div.lap {
                    h3 { "Cycle " (cycle.number) }
                    div.phases {
                        @for (phase, title) in &used { (one_phase(cycle, *phase, title)) }
                    }
                }
                @if let Some(end) = cycle.end.as_ref().filter(|_| n + 1 < drawn.len()) {
                    p.between.back[end.to_creator + end.to_maker > 0] { (words::goes_back(end)) }
                }
            }
        }
    }
}

fn one_phase(cycle: &CycleStory, phase: Phase, title: &str) -> Markup {
    let all = boxes(cycle, phase);
    let shown = if all.len() > STACK { STACK - 1 } else { all.len() };
    html! {
        div.phase.empty[all.is_empty()] {
            h4 class=(phase.name()) { (title) }
            ul {
                @for one in all.iter().take(shown) { (one_box(one, phase)) }
                @if all.len() > shown { li.rest { "and " (all.len() - shown) " more" } }
            }
        }
    }
}

fn one_box(one: &PhaseBox, phase: Phase) -> Markup {
    let skipped = one.mark == Mark::Skipped;
    html! {
        li.box.skipped[skipped] title=(short_line(&one.title, most::SENTENCE)) {
            span class={ "edge " (phase.name()) } {}
            div {
                p.name.t { (short_line(&one.name, 120)) }
                p class={ "says t " (tone(one.tone)) } { (short_line(&one.says, 200)) }
            }
            @if one.attempts.len() > 1 {
                svg.pips viewBox={ "0 0 " (one.attempts.len().min(8) * 8) " 16" } width=(one.attempts.len().min(8) * 8) height="16" role="img" aria-label=(words::count(one.attempts.len(), "attempt")) {
                    @for (n, good) in one.attempts.iter().take(8).enumerate() {
                        @let class = if *good { "good" } else { "bad" };
                        circle class={ "pip " (class) } cx=(4 + n * 8) cy="8" r="2.5" {}
                    }
                }
            }
            svg.disc-of viewBox="-8 -8 16 16" width="16" height="16" aria-hidden="true" { (mark(one.mark)) }
        }
    }
}

fn boxes(cycle: &CycleStory, phase: Phase) -> Vec<PhaseBox> {
    let steps = cycle.steps.iter().filter(|step| step.phase == phase).map(of_step);
    let end = cycle.end.iter().filter(|_| phase == Phase::Act).map(of_end);
    let deeds = cycle.deeds.iter().filter(|deed| phase_of(deed) == phase).map(of_deed);
    // In Act the program acts after the end of the cycle; elsewhere before its agents.
    if phase == Phase::Act { steps.chain(end).chain(deeds).collect() } else { deeds.chain(steps).collect() }
}

/// Where the program did it. What is tried on the base commit comes before all planning.
fn phase_of(deed: &Deed) -> Phase {
    match deed.line.tag.as_str() {
        "[Base]" => Phase::Plan,
        "[Check]" => Phase::Check,
        _ => Phase::Act,
    }
}

fn of_deed(deed: &Deed) -> PhaseBox {
    PhaseBox {
        name: words::deed(&deed.line.doing),
        says: deed.line.outcome.clone(),
        title: format!("#{} {} {}", deed.seq, deed.line.doing, deed.line.outcome),
        tone: deed.line.tone,
        mark: match deed.line.tone {
            Tone::Good | Tone::Plain => Mark::Yes,
            Tone::Caution => Mark::No,
            Tone::Bad => Mark::Stop,
        },
        attempts: Vec::new(),
    }
}

fn of_step(step: &Step) -> PhaseBox {
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
        Ended::Done | Ended::Verdict(_) => match tone {
            Tone::Good => Mark::Yes,
            Tone::Plain | Tone::Caution => Mark::No,
            Tone::Bad => Mark::Stop,
        },
    };
    let attempts = step.attempts.iter().map(|attempt| attempt.good).collect();
    PhaseBox { name: capital(&step.archetype), says, title: words::sentence(step), tone, mark, attempts }
}

/// Where there are findings, they say more than the word.
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

fn of_end(end: &CycleEnd) -> PhaseBox {
    let (counts, follows, tone) = words::boundary(end);
    let why = end.stop.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    let mark = match tone {
        Tone::Good => Mark::Yes,
        Tone::Bad => Mark::Stop,
        Tone::Plain | Tone::Caution => Mark::No,
    };
    let title = format!("#{} {counts}: {follows}{why}", end.seq);
    PhaseBox { name: capital(follows), says: counts.to_lowercase(), title, tone, mark, attempts: Vec::new() }
}
