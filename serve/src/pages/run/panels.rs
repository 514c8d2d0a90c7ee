//! What is beside every part of a run: its cycles, agents, findings, decisions and cost.

use archeflow_core::event::NextAction;
use archeflow_core::model::counted;
use archeflow_core::model::{Phase, Severity, Verdict};
use archeflow_core::projections::live::LiveAgent;
use archeflow_core::projections::story::{Attempt, CycleStory, Ended, Life, State, Step};
use archeflow_core::projections::view::{self, Tone, capital};
use archeflow_core::text::short_line;
use maud::{Markup, html};

use super::super::words;
use crate::run_model::RunModel;

/// Cycles that are drawn; the report has all.
const CYCLES: usize = 6;
const AGENTS: usize = 8;
const FINDINGS: usize = 12;
const DECISIONS: usize = 4;

pub(super) fn track(run: &RunModel) -> Markup {
    let cycles = &run.story.cycles;
    let skipped = cycles.len().saturating_sub(CYCLES);
    let last = cycles.last().map_or(0, |cycle| cycle.number);
    let more = run.is_live() && last < run.run().max_cycles;
    html! {
        @if skipped > 0 { p.small.muted.before { "The first " (skipped) " cycles are in the report." } }
        ol.track aria-label="Cycles" {
            @for cycle in cycles.iter().skip(skipped) { (one_cycle(run, cycle, cycle.number == last)) }
            @if more {
                li.cycle.later {
                    h2 { "Cycle " (last + 1) " " span { "if findings stay open" } }
                    ol.phases { @for phase in PHASES { li { b { (capital(phase.name())) } } } }
                }
            }
        }
    }
}

const PHASES: [Phase; 4] = [Phase::Plan, Phase::Do, Phase::Check, Phase::Act];

fn one_cycle(run: &RunModel, cycle: &CycleStory, is_last: bool) -> Markup {
    let now = is_last && run.run().outcome.is_none();
    let at = run.run().cycle().map_or(Phase::Plan, |cycle| cycle.phase);
    let open = match &cycle.end {
        Some(end) => match words::severities(end.critical, end.warning) {
            none if none.is_empty() => "nothing open".to_owned(),
            some => format!("{some} open"),
        },
        None if now => so_far(run),
        None => String::new(),
    };
    html! {
        li.cycle.now[now] {
            h2 { "Cycle " (cycle.number) " " span.num { (open) } }
            ol.phases { @for phase in PHASES { (one_phase(cycle, phase, now, at)) } }
        }
    }
}

/// `2 warnings so far`.
fn so_far(run: &RunModel) -> String {
    let (open, cycle) = (run.open_findings(), run.story.cycles.len());
    let count = |severity: Severity| {
        let new = open.iter().filter(|life| life.severity == severity && life.states.len() == cycle);
        u32::try_from(new.count()).unwrap_or(u32::MAX)
    };
    match words::severities(count(Severity::Critical), count(Severity::Warning)) {
        none if none.is_empty() => none,
        some => format!("{some} so far"),
    }
}

fn one_phase(cycle: &CycleStory, phase: Phase, now: bool, at: Phase) -> Markup {
    let steps: Vec<&Step> = cycle.steps.iter().filter(|step| step.phase == phase).collect();
    let on = now && phase == at;
    let reached =
        if now { phase < at } else { !steps.is_empty() || phase == Phase::Act && cycle.end.is_some() };
    let class = match (on, reached) {
        (true, _) => "on",
        (false, true)
            if phase == Phase::Act && cycle.end.as_ref().is_some_and(|end| end.next != NextAction::Merge) =>
        {
            "back"
        }
        (false, true) => "done",
        (false, false) => "",
    };
    html! {
        li class=[(!class.is_empty()).then_some(class)] aria-current=[on.then_some("step")] {
            b { (capital(phase.name())) }
            (phase_words(cycle, phase, &steps, on))
        }
    }
}

fn phase_words(cycle: &CycleStory, phase: Phase, steps: &[&Step], on: bool) -> String {
    let working = steps.iter().filter(|step| step.result == Ended::Out).count();
    if on && working > 0 {
        return format!("{working} of {} work", steps.len());
    }
    match phase {
        Phase::Check => {
            let said =
                |wanted: Verdict| steps.iter().filter(|step| step.result == Ended::Verdict(wanted)).count();
            match (said(Verdict::Rejected), said(Verdict::Approved)) {
                (0, 0) => String::new(),
                (0, approved) => format!("{approved} approved"),
                (rejected, _) => format!("{rejected} rejected"),
            }
        }
        Phase::Act => match cycle.end.as_ref().map(|end| end.next) {
            Some(NextAction::CycleBack) => "sent back".to_owned(),
            Some(NextAction::Merge) => "approved".to_owned(),
            Some(NextAction::Stop) => "stopped".to_owned(),
            None => String::new(),
        },
        Phase::Plan | Phase::Do => match steps.iter().map(|step| step.took_ms()).sum::<u64>() {
            0 => String::new(),
            took => view::seconds(took),
        },
    }
}

/// Those that work now, then the others of the last cycle, the newest first.
pub(super) fn agents(run: &RunModel) -> Markup {
    let cycle = run.run().number();
    let (working, ended): (Vec<&LiveAgent>, Vec<&LiveAgent>) = run
        .live
        .agents
        .iter()
        .rev()
        .filter(|agent| agent.cycle == cycle.max(1))
        .partition(|agent| run.live.is_running(agent));
    let summary = match working.len() {
        0 => format!("cycle {}", cycle.max(1)),
        n => format!("{n} at work"),
    };
    html! {
        section.panel aria-label="Agents" {
            header { h2 { "Agents" } span.small.muted { (summary) } }
            @for agent in working.iter().chain(&ended).take(AGENTS) { (one_agent(run, agent)) }
            @if working.is_empty() && ended.is_empty() { p.empty { "None was started yet." } }
        }
    }
}

pub(super) fn one_agent(run: &RunModel, agent: &LiveAgent) -> Markup {
    let driven = run.is_live();
    let works = run.live.is_running(agent);
    let (dot, chip) = match &agent.ended {
        None if works && driven => ("on", None),
        None => ("", None),
        Some((Tone::Plain, outcome)) if outcome.starts_with("done") => {
            ("ok", Some(("ok", "Done".to_owned())))
        }
        Some((tone, outcome)) => (dot(*tone), Some((words::tone(*tone), first_word(outcome)))),
    };
    html! {
        article.agent {
            div.who {
                span { span class={ "dot " (dot) } {} (capital(&agent.archetype)) @if agent.attempt > 1 { " (attempt " (agent.attempt) ")" } }
                @if let Some((tone, word)) = chip {
                    span class={ "chip " (tone) } { (word) }
                } @else if works && driven {
                    span.small.muted.num { (words::span(run.now.saturating_sub(agent.since))) }
                } @else {
                    span.chip.warn { "left" }
                }
            }
            @match &agent.ended {
                Some((_, outcome)) => div.what { (short_line(outcome.strip_prefix("skipped: ").unwrap_or(outcome), 300)) },
                None => {
                    @if agent.live_output.is_empty() {
                        div.what { (agent.doing) }
                    } @else {
                        ul.stream { li.now data-heard=(agent.seq) { (agent.live_output) } }
                    }
                }
            }
            (numbers(run, agent))
        }
    }
}

fn numbers(run: &RunModel, agent: &LiveAgent) -> Markup {
    let attempt = attempt(run, agent.seq);
    html! {
        div.nums.num {
            @if let Some(attempt) = attempt {
                span title=(short_line(&attempt.agent, 200)) { (words::agent(&attempt.agent)) ", " (attempt.model.name()) " tier" }
                @if attempt.took_ms > 0 { span { (view::seconds(attempt.took_ms)) } }
            }
            @if let Some(tokens) = &agent.tokens {
                span { (words::thousands(tokens.input)) " in, " (words::thousands(tokens.output)) " out" }
            }
            @if let Some(cost) = agent.cost { span { (cost.shown()) } }
        }
    }
}

fn attempt(run: &RunModel, seq: u64) -> Option<&Attempt> {
    let steps = run.story.cycles.iter().flat_map(|cycle| &cycle.steps);
    steps.flat_map(|step| &step.attempts).find(|attempt| attempt.seq == seq)
}

fn dot(tone: Tone) -> &'static str {
    match tone {
        Tone::Good => "ok",
        Tone::Plain => "",
        Tone::Caution => "back",
        Tone::Bad => "bad",
    }
}

/// `REJECTED, 1 WARNING` is a chip with `Rejected` in it.
fn first_word(outcome: &str) -> String {
    let word: String = outcome.chars().take_while(|c| c.is_alphanumeric()).take(14).collect();
    if word.is_empty() { "done".to_owned() } else { capital(&word.to_lowercase()) }
}

pub(super) fn lives(run: &RunModel) -> Markup {
    let lives = &run.story.lives;
    if lives.is_empty() {
        return html! {};
    }
    let open = lives.iter().filter(|life| life.is_open()).count();
    let ended = lives.first().map_or(0, |life| life.states.len());
    let from = ended.saturating_sub(5);
    html! {
        section.panel {
            header { h2 { "Findings over the cycles" } span.small.muted.num { (open) " open, " (lives.len() - open) " closed" } }
            div.body {
                table.life {
                    thead {
                        tr {
                            th scope="col" { "Finding" }
                            @for n in from + 1..=ended { th.c.num scope="col" { (n) } }
                        }
                    }
                    tbody {
                        @for life in lives.iter().take(FINDINGS) {
                            tr.gone[!life.is_open()] {
                                td { (short_line(&life.description, 120)) code { (short_line(&life.place(), 80)) } }
                                @for state in life.states.iter().skip(from) { td.c { (mark(*state, life.severity)) } }
                            }
                        }
                    }
                }
                @if lives.len() > FINDINGS {
                    p.small.muted { a href={ (run.address()) "/findings" } { "All " (lives.len()) " findings" } }
                }
                (key(lives))
            }
        }
    }
}

fn key(lives: &[Life]) -> Markup {
    let used = |state: State| lives.iter().any(|life| life.states.contains(&state));
    let has = |severity: Severity| lives.iter().any(|life| life.severity == severity);
    html! {
        div.key {
            @for severity in [Severity::Critical, Severity::Warning].into_iter().filter(|one| has(*one)) {
                span { (mark(State::New, severity)) " " (severity.name().to_lowercase()) }
            }
            @for state in State::ALL.into_iter().filter(|state| !matches!(state, State::New | State::Absent) && used(*state)) {
                span { (mark(state, Severity::Warning)) " " (state.name()) }
            }
        }
    }
}

/// Shapes differ as well as colours.
pub(super) fn mark(state: State, severity: Severity) -> Markup {
    let colour = words::severity(severity);
    let label = format!("{}, {}", state.name(), severity.name());
    match state {
        State::Absent => html! { span.vh { "not there" } },
        State::New => html! {
            svg class={ "mark m-" (colour) } viewBox="0 0 14 14" role="img" aria-label=(label) { circle cx="7" cy="7" r="5" fill="currentColor" {} }
        },
        State::Persistent => html! {
            svg class={ "mark m-" (colour) } viewBox="0 0 14 14" role="img" aria-label=(label) {
                circle cx="7" cy="7" r="5" fill="currentColor" {} path d="M0 7h14" stroke="currentColor" stroke-width="2" {}
            }
        },
        State::Regressed => html! {
            svg class={ "mark m-" (colour) } viewBox="0 0 14 14" role="img" aria-label=(label) { path d="M7 1.5l5.6 10.5H1.4z" fill="currentColor" {} }
        },
        State::Oscillating => html! {
            svg class={ "mark m-" (colour) } viewBox="0 0 14 14" role="img" aria-label=(label) { path d="M7 .8L13.2 7 7 13.2.8 7z" fill="currentColor" {} }
        },
        State::Resolved => html! {
            svg.mark.m-ok viewBox="0 0 14 14" role="img" aria-label="resolved" {
                path d="M2.5 7.5l3 3 6-7" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" stroke-linejoin="round" {}
            }
        },
        State::Accepted => html! {
            svg.mark.m-info viewBox="0 0 14 14" role="img" aria-label="accepted" { path d="M2.5 5h9M2.5 9h9" stroke="currentColor" stroke-width="2" {} }
        },
    }
}

pub(super) fn why(run: &RunModel) -> Markup {
    let decisions = &run.story.decisions;
    if decisions.is_empty() {
        return html! {};
    }
    html! {
        section.panel {
            header {
                h2 { "Why it went this way" }
                a.small.muted href={ (run.address()) "/why" } { "All " (decisions.len()) " decisions" }
            }
            div.body {
                ol.why {
                    @for choice in decisions.iter().rev().take(DECISIONS) {
                        li {
                            span.seq { "#" (choice.seq) }
                            div {
                                span.rule { (short_line(&choice.why.rule, 20)) } " "
                                (short_line(&capital(&choice.why.decision), 200))
                            }
                        }
                    }
                }
            }
        }
    }
}

pub(super) fn cost(run: &RunModel) -> Markup {
    let overview = &run.story.overview;
    let reserved: u64 = run.run().open_agents().map(|(_, start)| start.reserved_usd.0).sum();
    let share = |part: u64, whole: u64| (part.saturating_mul(100) / whole.max(1)).min(100);
    html! {
        section.panel {
            header {
                h2 { "Cost" }
                span.small.num {
                    b.strong { (overview.spent.shown()) }
                    @if let Some(limit) = overview.limit { span.muted { " of " (limit.shown()) } }
                }
            }
            div.body {
                @if let Some(limit) = overview.limit {
                    @let (spent, promised) = (share(overview.spent.0, limit.0), share(reserved, limit.0));
                    svg.bar viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label={ (spent) " percent spent, " (promised) " percent reserved" } {
                        rect.a width=(spent) height="8" {}
                        rect.b x=(spent) width=(promised.min(100 - spent)) height="8" opacity=".55" {}
                    }
                }
                p.small.muted.num {
                    @if reserved > 0 && run.is_live() { (archeflow_core::model::Money(reserved).shown()) " is reserved for agents at work. " }
                    @if overview.unknown_costs > 0 {
                        (overview.unknown_costs) " of " (counted(overview.attempts, "attempt")) " did not report their cost."
                    } @else if overview.limit.is_none() {
                        "No limit was set."
                    }
                }
            }
        }
    }
}
