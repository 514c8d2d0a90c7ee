//! The report as one HTML file: no script, no request, no style but its own. The policy in its head enforces that in
//! the browser, whatever an agent wrote. Everything in the markup below is escaped unless it says
//! [`PreEscaped`].

use std::collections::BTreeSet;

use archeflow_core::model::Severity;
use archeflow_core::projections::replay::rulebook::{self, Rule};
use archeflow_core::projections::story::{Cost, Life, State, Story, StoryDecision};
use archeflow_core::projections::view::{self, Tone, capital};
use archeflow_core::text::{revealed, short_line, short_text};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::diff::{FileDiff, Kind};
use super::markdown::split;
use super::{Report, blocks, cycles, graph, most, svg, words};

const STYLE: &str = include_str!("style.css");

pub fn draw(report: &Report<'_>) -> String {
    let story = report.story;
    let body = html! {
        (header(report))
        @if let Some(page) = &story.page {
            (broke(page))
        } @else if story.tone() != Tone::Good && !story.next.is_empty() {
            (next(story))
        }
        (section("cycles", "The cycles", &cycles::draw(story)))
        (section("findings", "The findings", &findings(story)))
        @if let Some(plot) = converging(story) { (section("convergence", "Convergence", &plot)) }
        (section("cost", "Cost by archetype", &costs(story)))
        @if !story.corrections.is_empty() {
            (section("shadows", "Shadows and corrections", &corrections(story)))
        }
        @if !story.questions.is_empty() { (section("questions", "Questions", &questions(story))) }
        (section("decisions", "Decisions and their reasons", &decisions(story)))
        @if !rules(story).is_empty() { (section("rules", "The rules behind them", &rulebook_of(story))) }
        (section("change", "The change", &change(report)))
        (section("artifacts", "Artifacts", &artifacts(story)))
        @if let Some(dag) = report.dag {
            (section("events", "Events", &html! { pre.tree { (graph::plain(dag)) } }))
        }
    };
    page(story, &body)
}

/// What the page may load: its own style sheet and nothing else.
pub fn policy() -> String {
    let style = archeflow_core::digest::source(STYLE);
    format!("default-src 'none'; style-src '{style}'; base-uri 'none'; form-action 'none'")
}

fn page(story: &Story, body: &Markup) -> String {
    let policy = policy();
    let page = html! {
        (DOCTYPE) "\n"
        html lang="en" { "\n"
            head { "\n"
                meta charset="utf-8"; "\n"
                meta http-equiv="Content-Security-Policy" content=(policy); "\n"
                meta name="viewport" content="width=device-width, initial-scale=1"; "\n"
                meta name="color-scheme" content="light dark"; "\n"
                meta name="referrer" content="no-referrer"; "\n"
                title { (story.status()) ": " (short_line(&story.overview.task, 120)) } "\n"
                style { (PreEscaped(STYLE)) } "\n"
            } "\n"
            body { "\n"
                (PreEscaped(SHAPES)) "\n"
                main { "\n"
                    (body) "\n"
                    footer {
                        "Made from the journal of " code { (short_line(&story.run_id, 200)) } ", "
                        (story.overview.events) " lines, by archeflow " (short_line(&story.overview.version, 40))
                        ". Every fact above follows from it; " span.seq { "#n" } " is a line of it."
                    } "\n"
                } "\n"
            } "\n"
        } "\n"
    };
    page.into_string()
}

/// The dots of the findings, drawn once and used by name. Shapes differ as well as colours.
const SHAPES: &str = "<svg class=\"shapes\" aria-hidden=\"true\"><defs>\
<symbol id=\"new\" viewBox=\"-8 -8 16 16\"><circle class=\"s-new\" r=\"5.5\"/></symbol>\
<symbol id=\"persistent\" viewBox=\"-8 -8 16 16\"><circle class=\"s-persistent-ring\" r=\"5.5\"/><circle class=\"s-persistent\" r=\"2.6\"/></symbol>\
<symbol id=\"resolved\" viewBox=\"-8 -8 16 16\"><path class=\"s-resolved\" d=\"M-4.5 0.5l3 3l6 -7\"/></symbol>\
<symbol id=\"regressed\" viewBox=\"-8 -8 16 16\"><path class=\"s-regressed\" d=\"M0 -5.5l5.6 10h-11.2z\"/></symbol>\
<symbol id=\"oscillating\" viewBox=\"-8 -8 16 16\"><path class=\"s-oscillating\" d=\"M0 -6.2l6.2 6.2l-6.2 6.2l-6.2 -6.2z\"/></symbol>\
<symbol id=\"accepted\" viewBox=\"-8 -8 16 16\"><path class=\"s-accepted\" d=\"M-4.5 -2.2h9M-4.5 2.2h9\"/></symbol>\
<symbol id=\"absent\" viewBox=\"-8 -8 16 16\"><circle class=\"s-absent\" r=\"1.3\"/></symbol>\
</defs></svg>";

/// One of the [`SHAPES`].
fn shape(state: State) -> Markup {
    PreEscaped(format!("<use href=\"#{}\"/>", state.name()))
}

fn section(id: &str, title: &str, inner: &Markup) -> Markup {
    html! { section id=(id) { h2 { (title) } (inner) } "\n" }
}

fn header(report: &Report<'_>) -> Markup {
    let story = report.story;
    let overview = &story.overview;
    let detail = overview.outcome.as_ref().map_or("It has not ended.", |outcome| &outcome.detail);
    html! {
        header {
            p.eyebrow { "ArcheFlow run " span.t { (short_line(&story.run_id, 200)) } }
            h1.t { (short_line(&overview.task, most::SENTENCE)) }
            p.verdict {
                strong class={ "pill " (svg::tone(story.tone())) } { (story.status().replace('_', " ")) }
                " " span.reason { (story.reason().replace('_', " ")) }
                " " span.t { (short_line(detail, most::SENTENCE)) }
            }
            dl.facts {
                @for fact in words::facts(story, report.written) {
                    div class=(fact.name.to_lowercase()) {
                        dt { (fact.name) }
                        dd.t { (short_line(&fact.value, 120)) }
                        dd.more.t { (short_line(&fact.more, 120)) }
                    }
                }
            }
            @if !overview.agents.is_empty() {
                p.played {
                    "Agents: "
                    @for (n, agent) in overview.agents.iter().take(8).enumerate() {
                        @if n > 0 { ", " }
                        code { (short_line(agent, 90)) }
                    }
                }
            }
            nav aria-label="Sections" {
                @for (id, name, there) in [
                    ("cycles", "Cycles", true),
                    ("findings", "Findings", true),
                    ("convergence", "Convergence", svg::converges(story)),
                    ("cost", "Cost", true),
                    ("shadows", "Shadows", !story.corrections.is_empty()),
                    ("questions", "Questions", !story.questions.is_empty()),
                    ("decisions", "Decisions", true),
                    ("rules", "Rules", !rules(story).is_empty()),
                    ("change", "Change", true),
                    ("artifacts", "Artifacts", true),
                    ("events", "Events", report.dag.is_some()),
                ] {
                    @if there { a href={ "#" (id) } { (name) } }
                }
            }
        }
        "\n"
    }
}

/// The decision to make is shown open; what led to it is a click away, and most of it is listed below in any case.
fn broke(page: &str) -> Markup {
    let decision = page.match_indices("\n## ").nth(1).map_or(page.len(), |(at, _)| at);
    let (first, rest) = page.split_at(decision);
    let inner = html! {
        (blocks::draw(first))
        @if !rest.trim().is_empty() {
            details { summary { "The whole page" } (blocks::draw(rest)) }
        }
    };
    section("break", "The run stopped by itself", &inner)
}

fn next(story: &Story) -> Markup {
    html! {
        section #next .next {
            h2 { "Next" }
            ul {
                @for (command, meaning) in &story.next {
                    li { code { (short_line(command, most::SENTENCE)) } " " span.soft { (meaning) } }
                }
            }
        }
        "\n"
    }
}

fn findings(story: &Story) -> Markup {
    html! {
        @if story.lives.is_empty() {
            p.soft { "No finding above INFO was open at the end of any cycle." }
        } @else {
            (lives(story))
        }
        (others(story).unwrap_or_default())
    }
}

/// Findings of the program itself, and those that count as advice only.
pub(crate) fn others(story: &Story) -> Option<Markup> {
    if story.raised.is_empty() && story.set_aside.is_empty() {
        return None;
    }
    Some(html! {
        @if !story.raised.is_empty() {
            h3 { "Raised by the program itself" }
            ul.plain {
                @for raised in story.raised.iter().take(most::OTHERS) {
                    li {
                        (badge(raised.finding.severity))
                        " " code { (short_line(&raised.finding.location, 120)) }
                        " " span.t { (short_line(&raised.finding.description, most::SENTENCE)) }
                        " " span.seq { "#" (raised.seq) }
                    }
                }
            }
            (more(story.raised.len(), most::OTHERS))
        }
        @if !story.set_aside.is_empty() {
            h3 { "Counted as advice only" }
            ul.plain {
                @for aside in story.set_aside.iter().take(most::OTHERS) {
                    li {
                        (badge(aside.what.from))
                        " " span.t { (short_line(&aside.what.description, most::SENTENCE)) }
                        " " span.soft {
                            (short_line(&capital(&aside.what.archetype), 40)) ", cycle " (aside.cycle) ": "
                            (aside.what.reason.name().replace('_', " "))
                        }
                        " " span.seq { "#" (aside.seq) }
                    }
                }
            }
            (more(story.set_aside.len(), most::OTHERS))
        }
    })
}

fn lives(story: &Story) -> Markup {
    let cycles = story.lives.first().map_or(0, |life| life.states.len());
    let from = cycles.saturating_sub(most::CYCLES_DOTTED);
    html! {
        div.wide {
            table.lives {
                thead {
                    tr {
                        th scope="col" { "Finding" }
                        @for n in from + 1..=cycles {
                            th scope="col" .dot { abbr title={ "cycle " (n) } { (n) } }
                        }
                    }
                }
                tbody {
                    @for life in story.lives.iter().take(most::FINDINGS) { (one_life(life, from)) }
                }
            }
        }
        (more(story.lives.len(), most::FINDINGS))
        @if from > 0 { p.soft { "The first " (words::count(from, "cycle")) " not shown." } }
        p.key {
            @for state in State::ALL.into_iter().filter(|state| *state != State::Absent) {
                span { svg.mark aria-hidden="true" { (shape(state)) } (state.name()) }
            }
        }
    }
}

fn one_life(life: &Life, from: usize) -> Markup {
    let closed = (!life.is_open()).then_some("closed");
    html! {
        tr class=[closed] {
            th scope="row" {
                (badge(life.severity))
                " " span.t.what { (short_line(&life.description, most::SENTENCE)) }
                @if let Some(run) = &life.regression_of {
                    " " em.again { "resolved before in " (short_line(run, 80)) }
                }
                p.where {
                    code { (short_line(&life.place(), 120)) } " "
                    (short_line(&life.category, 40)) " · " (short_line(&life.source.join(", "), 80))
                }
                @for remark in life.also.iter().take(most::REMARKS) {
                    p.t {
                        (short_line(&capital(&remark.source), 40)) ": "
                        (short_line(&remark.description, most::SENTENCE))
                    }
                }
                @if !life.fix.is_empty() { p.fix.t { (short_line(&life.fix, most::SENTENCE)) } }
            }
            @for (n, state) in life.states.iter().enumerate().skip(from) {
                td.dot {
                    svg.mark role="img" aria-label={ "cycle " (n + 1) ": " (state.name()) } {
                        title { (state.name()) }
                        (shape(*state))
                    }
                }
            }
        }
    }
}

fn badge(severity: Severity) -> Markup {
    html! { span class={ "badge " (severity.name().to_lowercase()) } { (severity.name()) } }
}

/// How the findings moved, if there is anything to draw.
pub(crate) fn converging(story: &Story) -> Option<Markup> {
    svg::convergence(story).map(|plot| convergence(story, &plot))
}

fn convergence(story: &Story, plot: &Markup) -> Markup {
    let last = story.cycles.iter().rev().find_map(|cycle| cycle.end.as_ref()?.trend.as_ref());
    html! {
        @if let Some(trend) = last {
            p.lead {
                strong { (short_line(&capital(&trend.recommendation), 80)) }
                " " span.t { (short_line(&trend.reason, most::SENTENCE)) }
            }
        }
        figure.wide {
            (plot)
            figcaption {
                "Above: the convergence score, 1.00 when everything that moved was resolved. Below, by cycle: findings that are "
                span.k.persistent { "persistent" } ", " span.k.new { "new" } ", " span.k.regressed { "back again" }
                ", and under the line " span.k.resolved { "resolved" } "."
            }
        }
    }
}

pub(crate) fn costs(story: &Story) -> Markup {
    if story.costs.is_empty() {
        return html! { p.soft { "Nobody was sent." } };
    }
    let by_time = story.overview.spent.0 == 0;
    let share = |cost: &Cost| if by_time { cost.worked_ms } else { cost.cost.0 };
    let whole = story.costs.iter().map(share).max().unwrap_or(0);
    let counted = story.costs.iter().any(|cost| cost.counted > 0);
    let tokens = |cost: &Cost, n: u64| if cost.counted == 0 { "—".to_owned() } else { thousands(n) };
    let known =
        |cost: &Cost| if cost.unknown == cost.attempts { "—".to_owned() } else { cost.cost.shown() };
    html! {
        div.wide {
            table.costs {
                thead {
                    tr {
                        th { "Archetype" } th { "Model" } th.n { "Attempts" } th.n { "Time" }
                        @if counted { th.n { "Tokens in" } th.n { "Tokens out" } }
                        @if !by_time { th.n { "Cost" } }
                        // Above the bars, which have no heading.
                        td {}
                    }
                }
                tbody {
                    @for cost in story.costs.iter().take(most::OTHERS) {
                        tr {
                            th scope="row" { (short_line(&capital(&cost.archetype), 40)) }
                            td { (cost.model.name()) }
                            td.n { (cost.attempts) }
                            td.n { (view::seconds(cost.worked_ms)) }
                            @if counted {
                                td.n { (tokens(cost, cost.tokens.input)) }
                                td.n { (tokens(cost, cost.tokens.output)) }
                            }
                            @if !by_time { td.n { (known(cost)) } }
                            td { (svg::share(share(cost), whole)) }
                        }
                    }
                }
            }
        }
        @if by_time {
            p.soft.note { "No agent reported its cost; the bars compare time." }
        } @else if story.overview.unknown_costs > 0 {
            p.soft.note {
                (words::count(story.overview.unknown_costs as usize, "attempt")) " did not say what they cost."
            }
        }
    }
}

fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let groups: Vec<&str> =
        (0..digits.len()).rev().step_by(3).map(|end| &digits[end.saturating_sub(2)..=end]).collect();
    groups.into_iter().rev().collect::<Vec<_>>().join(" ")
}

pub(crate) fn corrections(story: &Story) -> Markup {
    html! {
        ul.cards {
            @for seen in story.corrections.iter().take(most::OTHERS) {
                li {
                    p {
                        strong { (short_line(&capital(&seen.shadow.replace('_', " ")), 60)) }
                        " of the " span.t { (short_line(&capital(&seen.archetype), 40)) }
                        " " span.pill.caution { (seen.action.name()) }
                        " " span.soft { "cycle " (seen.cycle) }
                        " " span.seq { "#" (seen.seq) }
                    }
                    p.t { (short_line(&seen.seen.join("; "), most::SENTENCE)) }
                    details {
                        summary { "What follows" }
                        pre.t { (short_text(&seen.detail, most::PARAGRAPH)) }
                    }
                }
            }
        }
        (more(story.corrections.len(), most::OTHERS))
    }
}

pub(crate) fn questions(story: &Story) -> Markup {
    html! {
        ul.cards {
            @for question in story.questions.iter().take(most::OTHERS) {
                li {
                    p.t {
                        strong { (short_line(&question.text, most::SENTENCE)) }
                        " " span.seq { "#" (question.seq) }
                    }
                    p.t {
                        @if let Some(answer) = &question.answer {
                            (short_line(answer, most::SENTENCE))
                        } @else {
                            span.soft { "Nobody has answered." }
                        }
                    }
                }
            }
        }
    }
}

/// The decisions, and the rules they follow from.
pub(crate) fn why(story: &Story) -> Markup {
    html! {
        (decisions(story))
        @if !rules(story).is_empty() { h3 { "The rules behind them" } (rulebook_of(story)) }
    }
}

fn decisions(story: &Story) -> Markup {
    let (first, left_out, last) = split(&story.decisions, most::DECISIONS);
    let all: Vec<&StoryDecision> = first.iter().chain(last).collect();
    let before = |n: usize| n.checked_sub(1).and_then(|n| all.get(n)).map_or(0, |choice| choice.cycle);
    html! {
        div.wide {
            table.decisions {
                thead { tr { th.n { "#" } th { "Rule" } th { "Decided" } } }
                tbody {
                    @for (n, choice) in all.iter().enumerate() {
                        @if n == first.len() && left_out > 0 {
                            tr.rest { td colspan="3" { (left_out) " left out" } }
                        }
                        @if choice.cycle != before(n) {
                            tr.cycle { td colspan="3" { "Cycle " (choice.cycle) } }
                        }
                        (decision(choice))
                    }
                }
            }
        }
    }
}

fn decision(choice: &StoryDecision) -> Markup {
    html! {
        tr {
            td.n.seq { (choice.seq) }
            td {
                @if let Some(rule) = rulebook::find(&choice.why.rule) {
                    a class={ "rule " (choice.phase.name()) } href={ "#" (anchor(rule)) } title=(rule.says) { (rule.number) }
                } @else {
                    span class={ "rule " (choice.phase.name()) } { (short_line(&choice.why.rule, 20)) }
                }
            }
            td {
                p.t { (short_line(&choice.why.decision, most::SENTENCE)) }
                p.because.t {
                    (short_line(&choice.why.who, 40)) ": " (short_line(&choice.why.input, most::SENTENCE))
                }
                @if !choice.alternatives.is_empty() {
                    p.because.t {
                        "instead of: " (short_line(&choice.alternatives.join("; "), most::SENTENCE))
                    }
                }
            }
        }
    }
}

/// The rules that decided something, in the order of a run.
fn rules(story: &Story) -> Vec<&'static Rule> {
    let used: BTreeSet<&str> = story
        .decisions
        .iter()
        .filter_map(|choice| rulebook::find(&choice.why.rule))
        .map(|rule| rule.number)
        .collect();
    rulebook::RULES.iter().filter(|rule| used.contains(rule.number)).collect()
}

/// What a number links to. The page has to work without a network, so the rule is said here.
fn anchor(rule: &Rule) -> String {
    format!("rule-{}", rule.number.to_lowercase())
}

fn rulebook_of(story: &Story) -> Markup {
    html! {
        dl.rules {
            @for rule in rules(story) {
                div id=(anchor(rule)) {
                    dt { code { (rule.number) } " " (rule.topic) }
                    dd { (rule.says) " " span.soft { code { (rule.path()) } } }
                }
            }
        }
    }
}

fn change(report: &Report<'_>) -> Markup {
    let diff = report.diff;
    if let Some(why) = &diff.missing {
        return html! { p.soft.t { (short_line(why, most::SENTENCE)) } };
    }
    // Many files are a list to choose from; few are there to be read.
    let open = diff.files.len() <= 20;
    html! {
        p.soft {
            (words::count(diff.files.len() + diff.files_left_out, "file")) ", "
            span.plus { "+" (diff.added()) } " " span.minus { "−" (diff.deleted()) }
        }
        @for file in &diff.files { (one_file(file, open)) }
        @if let Some(left_out) = diff.left_out() {
            p.soft { (left_out) " See all of it: " code { (short_line(&diff.command, 300)) } }
        }
    }
}

fn one_file(file: &FileDiff, open: bool) -> Markup {
    let class = |kind: &Kind| match kind {
        Kind::Hunk => "hunk",
        Kind::Same => "same",
        Kind::Added => "add",
        Kind::Deleted => "del",
        Kind::Note => "note",
    };
    html! {
        details.file open[open] {
            summary {
                code { (revealed(&file.path, 200)) }
                @if let Some(from) = &file.from { " " span.soft { "from " (revealed(from, 200)) } }
                " " span.soft { (file.word) }
                " " span.plus { "+" (file.added) } " " span.minus { "−" (file.deleted) }
            }
            pre.diff {
                @for (kind, text) in &file.lines {
                    span class=(class(kind)) { (revealed(text, most::SENTENCE)) "\n" }
                }
                @if file.left_out > 0 {
                    span.note { "… " (file.left_out) " more lines of this file\n" }
                }
            }
        }
    }
}

fn artifacts(story: &Story) -> Markup {
    if story.artifacts.is_empty() {
        return html! { p.soft { "None." } };
    }
    html! {
        p.soft {
            "In " code { ".archeflow/artifacts/" (short_line(&story.run_id, 200)) "/" }
            "; those of earlier cycles in " code { "cycle-<n>/" } "."
        }
        div.wide {
            table {
                thead { tr { th.n { "Cycle" } th { "File" } th { "By" } th.n { "#" } } }
                tbody {
                    @for kept in story.artifacts.iter().take(most::ARTIFACTS) {
                        tr {
                            td.n { (kept.cycle) }
                            td { code { (short_line(&kept.name, 120)) } }
                            td { (short_line(&capital(&kept.by), 40)) }
                            td.n.seq { (kept.seq) }
                        }
                    }
                }
            }
        }
        (more(story.artifacts.len(), most::ARTIFACTS))
    }
}

fn more(there: usize, shown: usize) -> Markup {
    html! { @if there > shown { p.soft { "… and " (there - shown) " more." } } }
}
