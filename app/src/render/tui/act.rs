//! What a key means in the current view: a change of the view, or a request that `stage` carries out.

use archeflow_core::event::QuestionKind;
use archeflow_core::model::Seq;
use archeflow_core::projections::live::Driven;

use super::View;
use super::keys::{KEYS, Key};
use super::page::{Look, Page};
use super::view::{Answering, Choice, Over, Pane};
use crate::render::text::safe_line;

/// What the view can't do itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wish {
    Leave,
    Stop,
    Pause,
    Resume,
    /// Leave the view and continue the run in plain lines.
    Plain,
    Answer(String),
    /// The artifact of an agent, or what it has printed so far.
    Open(OpenedStart),
    /// The change between two commits.
    Diff {
        from: String,
        to: String,
    },
}

/// The start of an agent that is looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OpenedStart {
    pub(crate) seq: Seq,
    pub(crate) archetype: String,
    pub(crate) cycle: u32,
    /// From 1, within the cycle.
    pub(crate) attempt: u32,
    pub(crate) artifact: Option<String>,
}

/// A longer answer is refused.
const LONGEST_ANSWER: usize = 16 * 1024;

pub(crate) fn act(key: &Key, view: &mut View) -> Option<Wish> {
    match std::mem::take(&mut view.over) {
        Over::Nothing => on_panes(key, view),
        Over::Page(page) => {
            on_page(key, page, view);
            None
        }
        Over::Answer(answering) => on_answer(key, answering, view),
        Over::Choose(choice) => on_choice(key, choice, view),
        Over::Note(_) => None,
        Over::End => on_end(key, view),
    }
}

/// The end was read: the usual keys for "back" leave, all others look around.
fn on_end(key: &Key, view: &mut View) -> Option<Wish> {
    if matches!(key, Key::Char('q') | Key::Esc | Key::Enter) {
        Some(Wish::Leave)
    } else {
        on_panes(key, view)
    }
}

fn on_panes(key: &Key, view: &mut View) -> Option<Wish> {
    let tall = isize::from(i16::try_from(view.size.1 / 3).unwrap_or(10)).max(1);
    match key {
        Key::Char('?') => view.over = Over::Page(help()),
        Key::Char('q') => return leave(view),
        Key::Char('s') => stop(view),
        Key::Char('p') => return pause(view),
        Key::Char('a') => answer(view),
        Key::Char('d') => return diff(view),
        Key::Tab | Key::Right => turn(view, 1),
        Key::BackTab | Key::Left => turn(view, Pane::ALL.len() - 1),
        Key::Up | Key::Char('k') => go(view, -1),
        Key::Down | Key::Char('j') => go(view, 1),
        Key::PageUp => go(view, -tall),
        Key::PageDown => go(view, tall),
        Key::Home => view.at[view.pane.index()] = Some(0),
        Key::End => view.at[view.pane.index()] = None,
        Key::Enter => return open(view),
        Key::Esc if view.stays => return leave(view),
        Key::Esc | Key::Backspace | Key::Char(_) | Key::Paste(_) => {}
    }
    None
}

fn turn(view: &mut View, by: usize) {
    let next = (view.pane.index() + by) % Pane::ALL.len();
    view.pane = Pane::ALL[next];
}

/// Whoever goes to the last line follows what comes from there on.
fn go(view: &mut View, by: isize) {
    let (pane, last) = (view.pane, view.rows(view.pane).saturating_sub(1));
    let to = view.row(pane).saturating_add_signed(by);
    view.at[pane.index()] = (to < last).then_some(to);
}

fn leave(view: &mut View) -> Option<Wish> {
    if view.live.driven == Driven::Here && view.live.run.outcome.is_none() {
        view.over = Over::Choose(Choice::Leave);
        return None;
    }
    Some(Wish::Leave)
}

fn stop(view: &mut View) {
    view.over = match &view.live.driven {
        _ if view.live.run.outcome.is_some() => note(&["The run has ended already."]),
        Driven::Here | Driven::Elsewhere { .. } => Over::Choose(Choice::Stop),
        Driven::Fleet { worker, repository } => on_its_worker(worker, repository),
        Driven::Nobody => note(&["No process drives this run. To resume it:", &resume(view)]),
    };
}

/// A pause loses nothing and is ended by the same key, so it needs no second yes.
fn pause(view: &mut View) -> Option<Wish> {
    view.over = match &view.live.driven {
        _ if view.live.run.outcome.is_some() => note(&["The run has ended already."]),
        Driven::Here | Driven::Elsewhere { .. } if view.live.run.paused.is_some() => {
            return Some(Wish::Resume);
        }
        Driven::Here | Driven::Elsewhere { .. } => return Some(Wish::Pause),
        Driven::Fleet { worker, repository } => on_its_worker(worker, repository),
        Driven::Nobody => note(&["No process drives this run. To resume it:", &resume(view)]),
    };
    None
}

fn answer(view: &mut View) {
    let Some((_, question)) = view.live.run.question() else {
        view.over = note(&["No question is open."]);
        return;
    };
    view.over = match &view.live.driven {
        Driven::Nobody if view.stays => {
            let command = format!("  archeflow answer {} \"...\"", view.live.run_id);
            note(&["The run has ended here. Leave with q, then:", &command])
        }
        Driven::Fleet { worker, repository } => on_its_worker(worker, repository),
        Driven::Here if !view.asked => note(&["In a moment: the question is still being written down."]),
        Driven::Here | Driven::Elsewhere { .. } | Driven::Nobody => {
            let choices = choices(question.kind, &question.archetype);
            Over::Answer(Answering { choices, chosen: choices.len(), text: String::new() })
        }
    };
}

/// Answers with a meaning of their own; all others are passed to the agents as they are.
fn choices(kind: QuestionKind, archetype: &str) -> &'static [&'static str] {
    match kind {
        QuestionKind::Merge | QuestionKind::DryRun | QuestionKind::RedBase => &["yes", "no"],
        QuestionKind::LowConfidence => &["proceed"],
        QuestionKind::Shadow if archetype.is_empty() => &["go on", "stop"],
        QuestionKind::Shadow => &["accept", "stop"],
        QuestionKind::Rejection => &["land", "fix", "stop"],
        QuestionKind::PlanApproval | QuestionKind::StepApproval => &["approve", "stop"],
        QuestionKind::LoopPaused => &["stop"],
        QuestionKind::LoopEdited => &["again", "stop"],
        QuestionKind::NeedsContext | QuestionKind::GoalQuestions => &[],
    }
}

fn diff(view: &mut View) -> Option<Wish> {
    let Some((from, to)) = view.live.span() else {
        view.over = note(&["Nothing was made yet."]);
        return None;
    };
    Some(Wish::Diff { from, to })
}

fn open(view: &mut View) -> Option<Wish> {
    let row = view.row(view.pane);
    let agent = match view.pane {
        Pane::Agents => view.live.agents.get(row)?,
        Pane::Findings => {
            let found = view.live.findings.get(row)?;
            let Some(agent) = view.live.artifact_of(found.cycle, &found.source) else {
                let words = [found.description.clone()];
                view.over = Over::Note(words.to_vec());
                return None;
            };
            agent
        }
        Pane::Decisions => {
            let chosen = view.live.decisions.get(row)?;
            let (seq, text) = (chosen.seq, chosen.text.clone());
            let why = format!("archeflow show {} --why {seq}", view.live.run_id);
            view.over =
                if chosen.rule.is_empty() { note(&[&text]) } else { note(&[&text, "In full:", &why]) };
            return None;
        }
    };
    Some(Wish::Open(OpenedStart {
        seq: agent.seq,
        archetype: agent.archetype.clone(),
        cycle: agent.cycle,
        attempt: agent.attempt,
        artifact: agent.artifact.clone(),
    }))
}

fn on_page(key: &Key, mut page: Page, view: &mut View) {
    let tall = usize::from(view.size.1).saturating_sub(2).max(1);
    let screen = isize::try_from(tall).unwrap_or(1);
    match key {
        Key::Esc | Key::Enter | Key::Backspace | Key::Left | Key::Char('q' | '?') => {
            if view.unread_end {
                view.show_end();
            }
            return;
        }
        Key::Up | Key::Char('k') => page.scroll(-1, tall),
        Key::Down | Key::Char('j') => page.scroll(1, tall),
        Key::PageUp | Key::Char('b') => page.scroll(-screen, tall),
        Key::PageDown | Key::Char(' ') => page.scroll(screen, tall),
        Key::Home | Key::Char('g') => page.top = 0,
        Key::End | Key::Char('G') => page.scroll(isize::MAX, tall),
        Key::Tab | Key::BackTab | Key::Right | Key::Char(_) | Key::Paste(_) => {}
    }
    view.over = Over::Page(page);
}

fn on_answer(key: &Key, mut answering: Answering, view: &mut View) -> Option<Wish> {
    let own = answering.choices.len();
    match key {
        Key::Esc => return None,
        Key::Enter => {
            let text =
                answering.choices.get(answering.chosen).map_or(answering.text.as_str(), |choice| choice);
            if !text.trim().is_empty() {
                return Some(Wish::Answer(text.trim().to_owned()));
            }
        }
        Key::Up | Key::BackTab => answering.chosen = answering.chosen.saturating_sub(1),
        Key::Down | Key::Tab => answering.chosen = (answering.chosen + 1).min(own),
        Key::Backspace => {
            answering.text.pop();
        }
        Key::Char(c) => {
            answering.chosen = own;
            answering.text.push(*c);
        }
        Key::Paste(text) => {
            answering.chosen = own;
            answering.text.push_str(&safe_line(text));
        }
        Key::Left | Key::Right | Key::PageUp | Key::PageDown | Key::Home | Key::End => {}
    }
    if answering.text.len() > LONGEST_ANSWER {
        answering.text = answering.text.chars().take(LONGEST_ANSWER / 4).collect();
    }
    view.over = Over::Answer(answering);
    None
}

/// Everything but a clear word leaves things as they are.
fn on_choice(key: &Key, choice: Choice, view: &mut View) -> Option<Wish> {
    match (choice, key) {
        (Choice::Stop, Key::Char('y' | 'Y')) | (Choice::Leave, Key::Char('s' | 'S')) => Some(Wish::Stop),
        (Choice::Leave, Key::Char('p' | 'P')) => Some(Wish::Plain),
        (Choice::Stop, Key::Char('n' | 'N') | Key::Esc | Key::Enter)
        | (Choice::Leave, Key::Char('q') | Key::Esc | Key::Enter) => None,
        (choice, _) => {
            view.over = Over::Choose(choice);
            None
        }
    }
}

fn note(lines: &[&str]) -> Over {
    Over::Note(lines.iter().map(|line| (*line).to_owned()).collect())
}

/// A run of a fleet is only looked at.
fn on_its_worker(worker: &str, repository: &str) -> Over {
    let worker = if worker.is_empty() { "its worker" } else { worker };
    let place = format!("in its clone of {}.", safe_line(repository));
    note(&[&format!("Commands about this run are typed on {},", safe_line(worker)), &place])
}

fn resume(view: &View) -> String {
    format!("  archeflow resume {}", view.live.run_id)
}

fn help() -> Page {
    let mut lines = vec![(Look::Plain, String::new())];
    let wide = KEYS.iter().map(|(key, _)| key.chars().count()).max().unwrap_or(0);
    for (key, what) in KEYS {
        let blanks = " ".repeat(wide - key.chars().count());
        lines.push((Look::Plain, format!("  {key}{blanks}  {what}")));
    }
    lines.push((Look::Plain, String::new()));
    for words in [
        "Agents: what each does or how it ended, its tokens and its cost.",
        "Findings: ✗ critical, ▲ warning, · advice, ✓ resolved; dim where the evidence did not hold.",
        "Decisions: line of the journal and number of the rule; `archeflow show <id> --why` has all of them.",
    ] {
        lines.push((Look::Dim, format!("  {words}")));
    }
    Page::new("Help", lines)
}
