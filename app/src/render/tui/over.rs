//! What is drawn over the panes: pages to read, questions to answer, notes.

use archeflow_core::model::{Outcome, counted};
use archeflow_core::projections::view;
use archeflow_core::text::cells;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Modifier, Style};
use unicode_width::UnicodeWidthStr;

use super::draw::{Ink, Piece, put, split_rows, wrapped_pieces};
use super::page::{Look, Page, wrapped};
use super::view::{Answering, Choice, Over};
use crate::render::palette;

/// Commands that are proposed at the end; `archeflow show` has all of them.
const MOST_STEPS: usize = 6;

impl Ink<'_> {
    pub(super) fn over(&self, buffer: &mut Buffer, area: Rect) {
        let wide = usize::from(area.width).saturating_sub(6).min(90);
        match &self.view.over {
            Over::Nothing | Over::Page(_) => {}
            Over::Answer(answering) => self.boxed(buffer, area, "Question", &self.question(answering, wide)),
            Over::Choose(Choice::Stop) => {
                let lines = [
                    "Stop the run? Agents are stopped and their work is saved.",
                    "",
                    "y  stop it      n  continue",
                ];
                self.boxed(buffer, area, "Stop", &lines.map(|line| vec![(self.plain, line.to_owned())]));
            }
            Over::Choose(Choice::Leave) => {
                let lines = [
                    "The run continues only while this process runs.",
                    "",
                    "p    continue in plain lines",
                    "s    stop the run; its work is saved",
                    "Esc  stay here",
                ];
                self.boxed(buffer, area, "Leave", &lines.map(|line| vec![(self.plain, line.to_owned())]));
            }
            Over::Note(lines) => {
                let rows = lines.iter().flat_map(|line| wrapped(&cells(line), wide));
                let rows: Vec<Vec<Piece>> = rows.map(|row| vec![(self.plain, row)]).collect();
                self.boxed(buffer, area, "Note", &rows);
            }
            Over::End => {
                if let Some(outcome) = &self.view.live.run.outcome {
                    self.boxed(buffer, area, "The run has ended", &self.end(outcome, wide));
                }
            }
        }
    }

    /// How it ended, what is open, and what to type next.
    fn end(&self, outcome: &Outcome, wide: usize) -> Vec<Vec<Piece>> {
        let live = &self.view.live;
        let (tone, state) = self.state();
        let mut rows = vec![vec![(self.tone(tone).add_modifier(Modifier::BOLD), state)]];
        rows.extend(wrapped(&cells(&outcome.detail), wide).into_iter().map(|row| vec![(self.plain, row)]));
        let open = live.run.complete.as_ref().map_or(0, |complete| complete.unresolved.len());
        if open > 0 {
            rows.push(vec![(self.plain, format!("{} open", counted(open, "finding")))]);
        }
        let steps = view::next_steps(&live.run_id, &live.run, outcome);
        if !steps.is_empty() {
            rows.extend([Vec::new(), vec![(self.plain, "Next:".to_owned())]]);
        }
        for (command, meaning) in steps.iter().take(MOST_STEPS) {
            let pieces = [(self.accent(), format!("  {command}  ")), (self.dim(), (*meaning).to_owned())];
            rows.extend(wrapped_pieces(&pieces, wide, 4));
        }
        rows.extend([
            Vec::new(),
            vec![(self.dim(), "q, Esc or Enter leaves; all other keys work as before".to_owned())],
        ]);
        rows
    }

    /// R20: facts of the program first, then the question, the answers last.
    fn question(&self, answering: &Answering, wide: usize) -> Vec<Vec<Piece>> {
        let Some((_, question)) = self.view.live.run.question() else {
            return vec![vec![(self.plain, "The question is answered already.".to_owned())]];
        };
        let mut rows: Vec<Vec<Piece>> = Vec::new();
        for detail in question.details.iter().take(12) {
            rows.extend(wrapped(&cells(detail), wide).into_iter().map(|row| vec![(self.dim(), row)]));
        }
        let words = wrapped(&cells(&question.question), wide);
        rows.extend(words.into_iter().take(10).map(|row| vec![(self.bold(), row)]));
        rows.push(Vec::new());
        for (choice, index) in answering.choices.iter().zip(0..) {
            rows.push(vec![self.option(answering.chosen == index, choice)]);
        }
        let own = answering.chosen == answering.choices.len();
        let label = if answering.choices.is_empty() { "answer: " } else { "or your words: " };
        let room = wide.saturating_sub(label.width() + 4);
        let mut shown: String = cells(&answering.text).chars().rev().take(room).collect();
        shown = shown.chars().rev().collect();
        rows.push(vec![self.option(own, &format!("{label}{shown}{}", if own { "▏" } else { "" }))]);
        rows.push(vec![(self.dim(), "↑ ↓ choose   Enter send   Esc later".to_owned())]);
        rows
    }

    fn option(&self, chosen: bool, text: &str) -> Piece {
        let mark = if chosen { "▸" } else { " " };
        let style = if chosen { self.accent().add_modifier(Modifier::BOLD) } else { self.plain };
        (style, format!("{mark} {text}"))
    }

    fn boxed(&self, buffer: &mut Buffer, area: Rect, title: &str, rows: &[Vec<Piece>]) {
        let of = |row: &Vec<Piece>| row.iter().map(|(_, text)| cells(text).width()).sum::<usize>();
        let widest = rows.iter().map(of).max().unwrap_or(0).max(title.width() + 2);
        let width = u16::try_from(widest + 4).unwrap_or(u16::MAX).min(area.width);
        let height = u16::try_from(rows.len() + 2).unwrap_or(u16::MAX).min(area.height);
        let place = Rect {
            x: area.x + (area.width - width) / 2,
            y: area.y + (area.height - height) / 2,
            width,
            height,
        };
        let edge = self.accent();
        let line = |left: &str, fill: &str, right: &str, title: &str| {
            let fill = fill.repeat(usize::from(width).saturating_sub(2 + title.width()));
            vec![(edge, format!("{left}{title}{fill}{right}"))]
        };
        for row in 0..height {
            put(buffer, place, row, &[(self.plain, " ".repeat(usize::from(width)))]);
            let at_row = Rect { y: place.y + row, height: 1, ..place };
            buffer.set_style(at_row, Style::reset());
        }
        put(buffer, place, 0, &line("╭", "─", "╮", &format!("─ {title} ")));
        put(buffer, place, height.saturating_sub(1), &line("╰", "─", "╯", ""));
        for row in 1..height.saturating_sub(1) {
            put(buffer, place, row, &[(edge, "│".to_owned())]);
            put(buffer, Rect { x: place.right() - 1, width: 1, ..place }, row, &[(edge, "│".to_owned())]);
        }
        let inside = Rect {
            x: place.x + 2,
            y: place.y + 1,
            width: width.saturating_sub(4),
            height: height.saturating_sub(2),
        };
        // The end of a question is what has to be answered.
        let skip = rows.len().saturating_sub(usize::from(inside.height));
        for (row, line) in rows.iter().skip(skip).zip(0..) {
            put(buffer, inside, line, row);
        }
    }

    pub(super) fn page(&self, buffer: &mut Buffer, area: Rect, page: &Page) {
        let [rest, footer] = split_rows(area, area.height - 1);
        let body = self.title(buffer, rest, &page.title, None);
        for ((look, line), row) in page.rows.iter().skip(page.top).zip(0..body.height) {
            let style = match look {
                Look::Plain => self.plain,
                Look::Title => self.bold(),
                Look::Added => self.styled(palette::ADDED),
                Look::Deleted => self.styled(palette::DELETED),
                Look::Dim => self.dim(),
            };
            put(buffer, body, row, &[(style, line.clone())]);
        }
        let last = (page.top + usize::from(body.height)).min(page.rows.len());
        let text =
            format!(" {}-{last} of {}   ↑ ↓ PgUp PgDn  Esc back", page.top.min(last) + 1, page.rows.len());
        put(buffer, footer, 0, &[(self.dim(), text)]);
    }
}
