//! All runs of a sprint on one screen: a row each, of which one can be opened. Like the view of one run it only shows;
//! what is drawn goes through the same filter.

use archeflow_core::projections::board::{BoardHeading, BoardRow, SprintBoard};
use archeflow_core::projections::view::{Tone, seconds};
use archeflow_core::text::cells;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Modifier, Style};
use ratatui_core::terminal::Frame;

use super::draw::{SMALLEST, put};
use super::keys::Key;
use crate::render::palette;
use crate::render::text::{cut, pad};

/// Rows that are no items: two above the table, its heading, and one below.
const FRAME: u16 = 4;

pub(crate) struct Board {
    heading: Option<BoardHeading>,
    rows: Vec<BoardRow>,
    chosen: usize,
    top: usize,
    size: (u16, u16),
    colour: bool,
}

/// What is wished by a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    Leave,
    Open { run: String, project: String },
}

impl Board {
    pub(crate) fn new(colour: bool) -> Board {
        Board { heading: None, rows: Vec::new(), chosen: 0, top: 0, size: (80, 24), colour }
    }

    /// Takes in how things are. Says whether that is different from before. Who was chosen stays chosen.
    pub(crate) fn show(&mut self, board: SprintBoard) -> bool {
        let SprintBoard { heading, rows } = board;
        if self.heading.as_ref() == Some(&heading) && self.rows == rows {
            return false;
        }
        let chosen = self.rows.get(self.chosen).map(|row| row.item.clone());
        let again = chosen.and_then(|item| rows.iter().position(|row| row.item == item));
        (self.heading, self.rows) = (Some(heading), rows);
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

    /// Another view used the screen meanwhile.
    pub(crate) fn again(&mut self) {
        self.heading = None;
    }

    pub(crate) fn act(&mut self, key: &Key) -> Option<Wish> {
        let page = self.page();
        match key {
            Key::Char('q') | Key::Esc => return Some(Wish::Leave),
            Key::Enter => {
                let row = self.rows.get(self.chosen)?;
                return Some(Wish::Open { run: row.run.clone()?, project: row.project.clone() });
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
        if let Some(heading) = &self.heading {
            let state = (self.tone(heading.tone), format!("  {}", heading.state));
            put(buffer, area, 0, &[(bold, format!(" {}", heading.id)), state]);
            put(buffer, area, 1, &[(plain, format!(" {}", heading.counts))]);
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
        let keys = format!(" ↑ ↓ choose   Enter opens the run   q leaves{more}");
        put(buffer, area, area.height - 1, &[(dim, keys)]);
    }

    fn tone(&self, tone: Tone) -> Style {
        palette::of_tone(tone).in_cells(self.colour)
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
    fn of(rows: &[BoardRow], area: Rect) -> Columns {
        let most = usize::from(area.width) / 4;
        let widest = |text: fn(&BoardRow) -> &str, least: usize| {
            let wide = rows.iter().map(|row| cells(text(row)).chars().count()).max().unwrap_or(0);
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

    fn row(&self, row: &BoardRow) -> [String; 3] {
        let (cost, elapsed) = (row.cost.shown(), row.elapsed.map_or(String::new(), seconds));
        let cycle = row.cycle.map_or(String::new(), |cycle| cycle.to_string());
        let findings = row.findings.map_or(String::new(), |count| count.to_string());
        self.laid([
            &row.item,
            &row.project,
            row.state,
            row.phase,
            &cycle,
            &findings,
            &cost,
            &elapsed,
            &row.text,
        ])
    }

    fn laid(&self, row: [&str; 9]) -> [String; 3] {
        let [item, project, state, phase, cycle, findings, cost, elapsed, text] = row;
        let fixed = |text: &str, wide: usize| pad(&cut(&cells(text), wide), wide);
        let before = format!(" {}  {}  ", fixed(item, self.item), fixed(project, self.project));
        let behind = format!(
            "  {}  {}  {}  {}  {}  {}",
            fixed(phase, 5),
            fixed(cycle, 5),
            fixed(findings, 8),
            fixed(cost, 8),
            fixed(elapsed, 8),
            cells(text)
        );
        let used = before.chars().count() + STATE;
        [before, fixed(state, STATE), pad(&behind, self.wide.saturating_sub(used))]
    }
}

#[cfg(test)]
mod tests {
    use archeflow_core::model::Money;
    use ratatui_core::backend::TestBackend;
    use ratatui_core::terminal::Terminal;

    use super::*;

    fn row(n: usize, text: &str) -> BoardRow {
        BoardRow {
            item: format!("item-{n:02}"),
            project: "shop".to_owned(),
            state: "running",
            tone: Tone::Plain,
            phase: "check",
            cycle: Some(1),
            findings: Some(2),
            cost: Money(1_500_000),
            elapsed: Some(65_000),
            run: (n != 1).then(|| format!("s.item-{n:02}.1")),
            text: text.to_owned(),
        }
    }

    fn sprint(rows: Vec<BoardRow>) -> SprintBoard {
        let state = "under way for 1m 5s".to_owned();
        let heading = BoardHeading {
            id: "2026-11-15-sprint".to_owned(),
            state,
            tone: Tone::Good,
            counts: "30 under way".to_owned(),
        };
        SprintBoard { heading, rows }
    }

    fn drawn(board: &mut Board, size: (u16, u16)) -> Vec<String> {
        board.fit(size);
        let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
        terminal.draw(|frame| board.draw(frame)).unwrap();
        let buffer = terminal.backend().buffer();
        let cells = |y: u16| (0..size.0).map(move |x| buffer[(x, y)].symbol()).collect::<String>();
        (0..size.1).map(|y| cells(y).trim_end().to_owned()).collect()
    }

    #[test]
    fn af_122_a_row_for_each_item_and_keys_that_go_through_them() {
        let mut board = Board::new(false);
        assert!(board.show(sprint((0..30).map(|n| row(n, "Do it")).collect())));
        assert!(!board.show(sprint((0..30).map(|n| row(n, "Do it")).collect())), "nothing is new");
        let screen = drawn(&mut board, (100, 14));
        assert_eq!(screen[0], " 2026-11-15-sprint  under way for 1m 5s");
        assert_eq!(
            screen[3],
            " item-00  shop     running        check  1      2         $1.50     1m 5s     Do it"
        );
        for (keys, first, wish) in [
            (&[Key::Enter][..], "item-00", Some("s.item-00.1")),
            (&[Key::Down, Key::Enter], "item-00", None),
            (&[Key::End, Key::Enter], "item-20", Some("s.item-29.1")),
            (&[Key::Home, Key::PageDown, Key::Enter], "item-01", Some("s.item-10.1")),
            (&[Key::Up, Key::Up, Key::Enter], "item-01", Some("s.item-08.1")),
        ] {
            let wishes: Vec<Wish> = keys.iter().filter_map(|key| board.act(key)).collect();
            let opened = wish.map(|run| Wish::Open { run: run.to_owned(), project: "shop".to_owned() });
            assert_eq!(wishes, opened.into_iter().collect::<Vec<_>>(), "{keys:?}");
            assert!(drawn(&mut board, (100, 14))[3].contains(first), "{keys:?}");
        }
        assert_eq!(board.act(&Key::Char('q')), Some(Wish::Leave));
    }

    #[test]
    fn r14_hostile_text_is_only_text_at_any_size() {
        let hostile = "a\u{1b}[2Jb\u{202e}c\u{200b}\td\u{7}";
        let mut board = Board::new(true);
        board.show(sprint(vec![BoardRow { item: hostile.to_owned(), ..row(0, hostile) }]));
        for size in [(100, 14), (40, 10), (10, 3), (1, 1), (300, 100)] {
            let screen = drawn(&mut board, size).concat();
            assert!(!screen.contains(archeflow_core::text::is_unsafe), "{size:?}");
        }
    }
}
