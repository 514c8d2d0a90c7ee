//! All runs of a sprint on one screen: a row each, of which one can be opened. Like the view of one run it only shows;
//! what is drawn goes through the same filter.

use std::path::PathBuf;

use archeflow_core::view::{Tone, seconds};
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::terminal::Frame;

use super::draw::{SMALLEST, clean, put};
use super::keys::Key;
use crate::commands::sprint::board::{Head, Row};
use crate::faces::text::{cut, pad};

/// Rows that are no items: two above the table, its heading, and one below.
const FRAME: u16 = 4;

pub(crate) struct Board {
    head: Option<Head>,
    rows: Vec<Row>,
    chosen: usize,
    top: usize,
    size: (u16, u16),
    colour: bool,
}

/// What is wished by a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    Leave,
    /// A run and its repository.
    Open(String, PathBuf),
}

impl Board {
    pub(crate) fn new(colour: bool) -> Board {
        Board { head: None, rows: Vec::new(), chosen: 0, top: 0, size: (80, 24), colour }
    }

    /// Takes in how things are. Says whether that is different from before. Who was chosen stays chosen.
    pub(crate) fn show(&mut self, head: Head, rows: Vec<Row>) -> bool {
        if self.head.as_ref() == Some(&head) && self.rows == rows {
            return false;
        }
        let chosen = self.rows.get(self.chosen).map(|row| row.item.clone());
        let again = chosen.and_then(|item| rows.iter().position(|row| row.item == item));
        (self.head, self.rows) = (Some(head), rows);
        self.go_to(again.unwrap_or(self.chosen));
        true
    }

    pub(crate) fn fit(&mut self, size: (u16, u16)) -> bool {
        let changed = self.size != size;
        self.size = size;
        if changed {
            self.go_to(self.chosen);
        }
        changed
    }

    /// The screen was somebody else's meanwhile.
    pub(crate) fn again(&mut self) {
        self.head = None;
    }

    pub(crate) fn act(&mut self, key: &Key) -> Option<Wish> {
        let page = self.page();
        match key {
            Key::Char('q') | Key::Esc => return Some(Wish::Leave),
            Key::Enter => {
                let (run, repository) = self.rows.get(self.chosen)?.run.clone()?;
                return Some(Wish::Open(run, repository));
            }
            Key::Up | Key::Char('k') => self.go_to(self.chosen.saturating_sub(1)),
            Key::Down | Key::Char('j') => self.go_to(self.chosen + 1),
            Key::PageUp => self.go_to(self.chosen.saturating_sub(page)),
            Key::PageDown => self.go_to(self.chosen + page),
            Key::Home => self.go_to(0),
            Key::End => self.go_to(usize::MAX),
            Key::Char(_)
            | Key::Tab
            | Key::BackTab
            | Key::Backspace
            | Key::Left
            | Key::Right
            | Key::Paste(_) => return None,
        }
        // Something moved, so the next look counts as news.
        self.again();
        None
    }

    fn page(&self) -> usize {
        usize::from(self.size.1.saturating_sub(FRAME)).max(1)
    }

    fn go_to(&mut self, row: usize) {
        self.chosen = row.min(self.rows.len().saturating_sub(1));
        let page = self.page();
        self.top = self.top.min(self.chosen).max((self.chosen + 1).saturating_sub(page));
    }

    pub(crate) fn draw(&self, frame: &mut Frame<'_>) {
        let area = frame.area();
        let buffer = frame.buffer_mut();
        let plain = Style::new();
        if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
            put(buffer, area, 0, &[(plain, "too small".to_owned())]);
            return;
        }
        let (bold, dim) = (plain.add_modifier(Modifier::BOLD), plain.add_modifier(Modifier::DIM));
        if let Some(head) = &self.head {
            let state = (self.tone(head.tone), format!("  {}", head.state));
            put(buffer, area, 0, &[(bold, format!(" {}", head.id)), state]);
            put(buffer, area, 1, &[(plain, format!(" {}", head.counts))]);
        }
        let columns = Columns::of(&self.rows, area);
        put(buffer, area, 2, &[(dim, columns.heading())]);
        let shown = self.rows.iter().enumerate().skip(self.top).take(self.page());
        for ((n, row), at) in shown.zip(3..) {
            let style = if n == self.chosen { plain.add_modifier(Modifier::REVERSED) } else { plain };
            let [before, state, behind] = columns.row(row);
            let tone = if n == self.chosen { style } else { self.tone(row.tone) };
            put(buffer, area, at, &[(style, before), (tone, state), (style, behind)]);
        }
        let hidden = self.rows.len().saturating_sub(self.page());
        let more =
            if hidden > 0 { format!("  {} of {}", self.chosen + 1, self.rows.len()) } else { String::new() };
        let keys = format!(" ↑ ↓ choose   Enter opens the run   q leaves; the sprint goes on{more}");
        put(buffer, area, area.height - 1, &[(dim, keys)]);
    }

    fn tone(&self, tone: Tone) -> Style {
        let plain = Style::new();
        match tone {
            _ if !self.colour => plain,
            Tone::Plain => plain,
            Tone::Good => plain.fg(Color::Green),
            Tone::Caution => plain.fg(Color::Yellow),
            Tone::Bad => plain.fg(Color::Red),
        }
    }
}

/// How wide the columns are whose width depends on what is in them.
struct Columns {
    item: usize,
    project: usize,
    wide: usize,
}

const STATE: usize = 13;

impl Columns {
    fn of(rows: &[Row], area: Rect) -> Columns {
        let most = usize::from(area.width) / 4;
        let widest = |text: fn(&Row) -> &str, least: usize| {
            let wide = rows.iter().map(|row| clean(text(row)).chars().count()).max().unwrap_or(0);
            wide.clamp(least, most.max(least))
        };
        let wide = usize::from(area.width);
        Columns { item: widest(|row| &row.item, 4), project: widest(|row| &row.project, 7), wide }
    }

    fn heading(&self) -> String {
        let [before, state, behind] =
            self.laid(["ITEM", "PROJECT", "STATE", "PHASE", "CYCLE", "FINDINGS", "COST", "ELAPSED", "TASK"]);
        format!("{before}{state}{behind}")
    }

    fn row(&self, row: &Row) -> [String; 3] {
        let (cost, elapsed) = (row.cost.shown(), row.elapsed.map_or(String::new(), seconds));
        self.laid([
            &row.item,
            &row.project,
            row.state,
            row.phase,
            &row.cycle,
            &row.findings,
            &cost,
            &elapsed,
            &row.text,
        ])
    }

    fn laid(&self, cells: [&str; 9]) -> [String; 3] {
        let [item, project, state, phase, cycle, findings, cost, elapsed, text] = cells;
        let fixed = |text: &str, wide: usize| pad(&cut(&clean(text), wide), wide);
        let before = format!(" {}  {}  ", fixed(item, self.item), fixed(project, self.project));
        let behind = format!(
            "  {}  {}  {}  {}  {}  {}",
            fixed(phase, 5),
            fixed(cycle, 5),
            fixed(findings, 8),
            fixed(cost, 8),
            fixed(elapsed, 8),
            clean(text)
        );
        let used = before.chars().count() + STATE;
        [before, fixed(state, STATE), pad(&behind, self.wide.saturating_sub(used))]
    }
}
