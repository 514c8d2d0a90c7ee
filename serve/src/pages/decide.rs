//! The form in which a person decides about a run. What it starts is the command beside each choice, and nothing else.

use archeflow_core::event::{Tested, Tracked};
use archeflow_core::model::{Severity, counted};
use archeflow_core::projections::inbox::{InboxItem, InboxRun};
use archeflow_core::projections::story::{Life, findings};
use archeflow_core::projections::view::capital;
use archeflow_core::text::short_line;
use maud::{Markup, html};

use super::words;
use crate::offers::{self, Offer};
use crate::run_model::{RunModel, Standing};
use crate::server::Ui;

/// What a form carries besides the choice: which run, which line it is about, and that the page is ours.
pub(crate) fn hidden(ui: &Ui, run: &RunModel) -> Markup {
    html! {
        input type="hidden" name="csrf" value=(ui.access.form.text());
        input type="hidden" name="run" value={ (run.repository.key) "/" (run.id) };
        input type="hidden" name="at" value=(run.run().decision_line());
    }
}

/// Everything about the decision that waits; nothing where none does.
pub(crate) fn draw(ui: &Ui, run: &RunModel, is_run_page: bool) -> Markup {
    let state = run.run();
    let offers = offers::decisions(run);
    let is_over = run.repository.is_copy && !is_waiting(run);
    if offers.is_empty() && !run.foreign || is_over {
        return html! {};
    }
    let reason = state.outcome.as_ref().map(|outcome| outcome.reason.name().replace('_', " "));
    let heading =
        if is_run_page { "Waits for you".to_owned() } else { short_line(&run.story.overview.task, 200) };
    html! {
        section.decide aria-labelledby="waits" {
            header {
                h2 #waits { (heading) }
                span.small.muted {
                    @if !is_run_page { a.link href=(run.address()) { (run.repository.name) } ", " }
                    "cycle " (state.number().max(1)) " of " (state.max_cycles.max(1))
                    @if let Some(reason) = reason { ", " (reason) }
                    ", " (words::span(run.now.saturating_sub(state.last))) " ago"
                }
            }
            div.in {
                (question(run))
                (sides(run))
                @if let Some(fleet) = &ui.fleet {
                    p.muted { "Decided where the run is. What to type, and where: " code { "archeflow status " (run.id) " --fleet " (fleet.file.display()) } }
                } @else if run.foreign {
                    p.muted { "This machine did not start it, so it is shown and never executed. See what it would execute: " code { "archeflow trust --run " (run.id) } }
                } @else if ui.read_only {
                    (commands(&offers))
                } @else {
                    (form(ui, run, &offers, is_run_page))
                }
            }
        }
    }
}

/// Whether a person has to do something about a run of a fleet.
fn is_waiting(run: &RunModel) -> bool {
    let id = run.id.as_str();
    let found =
        InboxRun { run_id: id, name: id, repository: "", here: true, interrupted: false, run: run.run() };
    InboxItem::of(found).is_some_and(|item| item.waiting)
}

fn question(run: &RunModel) -> Markup {
    let state = run.run();
    let asked = state.question().map(|(_, question)| question);
    let text = match (asked, &state.outcome, run.standing()) {
        (Some(question), ..) => question.question.clone(),
        (None, Some(outcome), _) => outcome.detail.clone(),
        (None, None, Standing::Paused) => "It is paused: nothing new starts.".to_owned(),
        (None, None, _) => "It was interrupted: no process drives it any more. Its work is saved.".to_owned(),
    };
    html! {
        p.q { (short_line(&capital(&text), 900)) }
        @if let Some(question) = asked {
            @if !question.details.is_empty() {
                ul.facts-list { @for line in question.details.iter().take(20) { li { (short_line(line, 300)) } } }
            }
        }
    }
}

/// The open findings in the reviewers' words, beside each other.
fn sides(run: &RunModel) -> Markup {
    let boundary = run.run().cycle().and_then(|cycle| cycle.boundary.as_ref());
    let open: &[Tracked] = boundary.map_or(&[], |boundary| boundary.open.as_slice());
    html! {
        @if !open.is_empty() {
            div.sides {
                @for found in open.iter().take(4) {
                    (quote(&found.source, found.severity, &words::place(&found.file, found.line), &found.description, ""))
                }
                @for life in instead(run, open).iter().take(4) {
                    (quote(&life.source, life.severity, &life.place(), &life.description, ", while the other was gone"))
                }
            }
            @if open.len() > 4 { p.small.muted { "and " (counted(open.len() - 4, "more finding")) } }
        }
    }
}

fn quote(source: &[String], severity: Severity, place: &str, words: &str, when: &str) -> Markup {
    html! {
        div.quote {
            span.cite {
                (short_line(&words::and(source), 80)) ", " (severity.name().to_lowercase()) ", "
                code { (short_line(place, 120)) } (when)
            }
            (short_line(words, 400))
        }
    }
}

/// Of findings that undo each other, those that are gone at the moment.
fn instead<'a>(run: &'a RunModel, open: &[Tracked]) -> Vec<&'a Life> {
    let lives = &run.story.lives;
    let back = lives.iter().filter(|life| open.iter().any(|found| found.id == life.id));
    let mut others: Vec<&Life> = back.flat_map(|life| findings::other_side(lives, life)).collect();
    others.dedup_by(|a, b| a.id == b.id);
    others
}

fn commands(offers: &[Offer]) -> Markup {
    html! {
        ul.steps { @for offer in offers { li { code { (short_line(&offer.command, 400)) } span.muted { (offer.title) } } } }
    }
}

fn form(ui: &Ui, run: &RunModel, offers: &[Offer], is_run_page: bool) -> Markup {
    let needs_text = offers.iter().any(|offer| offer.needs_text);
    let label = match offers.iter().find(|offer| offer.needs_text) {
        Some(offer) if offer.command.starts_with("archeflow answer ") => {
            "Your answer, as the agents will read it"
        }
        Some(offer) if offer.wants_amount => "The new limit of the whole run, in dollars",
        _ => "Your words, as the agents will read them",
    };
    html! {
        form.decision method="post" action="/do" {
            (hidden(ui, run))
            fieldset.opts {
                legend.lab { "What do you decide?" }
                @for (n, offer) in offers.iter().enumerate() {
                    label.opt {
                        input type="radio" name="choice" value=(n) checked[n == 0] data-text=[offer.needs_text.then_some("yes")];
                        b { (short_line(&offer.title, 120)) }
                        span.cost.num { (offer.cost) }
                        span.then { (offer.then) }
                        code { (short_line(&offer.command, 300)) }
                    }
                }
            }
            @if needs_text {
                div { label.lab for="text" { (label) } textarea #text name="text" maxlength="20000" {} }
            }
            div.row {
                span.small.muted { "It starts the command that is named, as if you had typed it. Nothing lands without its tests." }
                span.actions {
                    @if !is_run_page { a.btn href=(run.address()) { "See the run" } }
                    button.btn.go type="submit" { "Decide " kbd { "Ctrl ↵" } }
                }
            }
        }
    }
}

/// Buttons for a run that is under way.
pub(crate) fn steering(ui: &Ui, run: &RunModel) -> Markup {
    let offers = if ui.read_only { Vec::new() } else { offers::steering(run) };
    html! {
        @for offer in offers {
            form method="post" action="/do" {
                (hidden(ui, run))
                input type="hidden" name="steer" value=(offer.title);
                @let class = if offer.command.starts_with("archeflow stop ") { "btn no" } else { "btn" };
                button class=(class) type="submit" title=(offer.command) { (offer.title) }
            }
        }
    }
}

/// Below a finding: accept it, with a reason.
pub(crate) fn accepting(ui: &Ui, run: &RunModel, finding: &str) -> Markup {
    let offer = if ui.read_only { None } else { offers::accepting(run, finding) };
    html! {
        @if offer.is_some() {
            footer {
                details {
                    summary.btn.plain { "Accept as it is…" }
                    form.accept method="post" action="/do" {
                        (hidden(ui, run))
                        input type="hidden" name="accept" value=(finding);
                        label { span.lab { "Why it is accepted; kept in the journal" } textarea name="text" required maxlength="20000" {} }
                        div.row { span.small.muted { "Then the rest is judged again." } span.actions { button.btn.go type="submit" { "Accept" } } }
                    }
                }
            }
        }
    }
}

/// Asked once more before anything lands or is given up: exactly what, and how its tests went.
pub(crate) fn confirmation(ui: &Ui, run: &RunModel, choice: &str, offer: &Offer) -> Markup {
    let (state, overview) = (run.run(), &run.story.overview);
    let lands = offer.lands();
    let tests = state.landing.tested.as_ref().or(state.last_tests.as_ref()).map(|tests| match tests.result {
        Tested::Passed => "passed when it was last tested",
        Tested::Failed | Tested::TimedOut | Tested::Broken => "did not pass when it was last tested",
    });
    let title = if lands {
        format!("Land it on {}?", short_line(&overview.target, 80))
    } else {
        format!("{}?", offer.title.trim_end_matches('.'))
    };
    html! {
        div.crumbs { a href=(run.address()) { (short_line(&overview.task, 120)) } }
        div.title { div { h1 { (title) } } }
        section.decide aria-label="Confirm" {
            div.in {
                p.q { (short_line(&overview.task, 400)) }
                dl.rows.facts-of {
                    @if let Some(work) = &state.work {
                        dt { "Commit" } dd { code { (short_line(&work.commit, 64)) } }
                        dt { "Tree" } dd { code { (short_line(&work.tree, 64)) } }
                        dt { "Files" } dd { (work.files.len() + work.files_left_out as usize) }
                    }
                    dt { "Tests" } dd { (tests.unwrap_or("not run yet in a landing")) @if lands { "; they run again on exactly the tree that lands" } }
                    dt { "Command" } dd { code { (short_line(&offer.command, 300)) } }
                }
                p { (offer.then) }
                form.row method="post" action="/do" {
                    (hidden(ui, run))
                    input type="hidden" name="choice" value=(choice);
                    input type="hidden" name="sure" value="yes";
                    span.actions {
                        a.btn href=(run.address()) { "Back" }
                        button type="submit" class=(if lands { "btn go" } else { "btn no" }) { (if lands { "Land it" } else { "Yes, do it" }) }
                    }
                }
            }
        }
    }
}
