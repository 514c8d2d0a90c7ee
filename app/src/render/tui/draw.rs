//! The view on a screen. Whatever is drawn goes through [`put()`], and so through the filter: nothing an agent wrote
//! can reach a cell as anything but plain characters.

use archeflow_core::model::{Phase, Severity};
use archeflow_core::projections::live::{Driven, LiveAgent, LiveCycle, LiveDecision, LiveFinding};
use archeflow_core::projections::view::{self, Tone};
use archeflow_core::text::{cells, one_line};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Modifier, Style};
use ratatui_core::terminal::Frame;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::View;
use super::view::{Over, Pane};
use crate::render::palette::{self, TextStyle};

/// A smaller screen shows only a line that says so.
pub(crate) const SMALLEST: (u16, u16) = (40, 10);
/// From this width on the panes are in two columns.
const TWO_COLUMNS: u16 = 100;
/// Agents that decide on the width of their column: the newest.
const LOOKED_AT: usize = 64;
/// Lines for an agent that runs, with what it prints.
const MOST_OF_OUTPUT: usize = 2;
/// Columns of what an agent prints that count as needed.
const OUTPUT_COLUMNS: usize = 24;
const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// How long a warning is shown in the last row.
const WARNED_MS: u64 = 20_000;

/// A run of characters in one style.
pub(super) type Piece = (Style, String);
/// The left and the right side of a row.
type Row = (Vec<Piece>, Vec<Piece>);

pub(crate) fn draw(frame: &mut Frame<'_>, view: &View) {
    let area = frame.area();
    let ink = Ink { view, plain: Style::new() };
    ink.screen(frame.buffer_mut(), area);
}

/// Pieces cut to a width, with an ellipsis where something is missing.
pub(super) fn put(buffer: &mut Buffer, area: Rect, row: u16, pieces: &[Piece]) {
    if row >= area.height || area.width == 0 {
        return;
    }
    let (mut x, y, end) = (area.x, area.y + row, area.right());
    for (style, text) in pieces {
        let text = cells(text);
        let room = usize::from(end - x);
        if text.width() > room {
            let last = buffer.set_stringn(x, y, &text, room.saturating_sub(1), *style).0;
            buffer.set_stringn(last.min(end - 1), y, "…", 1, *style);
            return;
        }
        x = buffer.set_stringn(x, y, &text, room, *style).0;
    }
}

/// Pieces in as many lines as they need, broken between words. All lines but the first begin with blanks.
pub(super) fn wrapped_pieces(pieces: &[Piece], wide: usize, indent: usize) -> Vec<Vec<Piece>> {
    let (wide, indent) = (wide.max(1), indent.min(wide / 2));
    let mut lines: Vec<Vec<Piece>> = vec![Vec::new()];
    let (mut used, mut least) = (0, 0);
    for (style, text) in pieces {
        let text = cells(text);
        for word in text.split_inclusive(' ') {
            if used + word.trim_end_matches(' ').width() > wide && used > least {
                lines.push(vec![(Style::new(), " ".repeat(indent))]);
                (used, least) = (indent, indent);
            }
            let mut part = String::new();
            for c in word.chars() {
                let width = c.width().unwrap_or(0);
                if used + width > wide && c != ' ' {
                    push(&mut lines, *style, &std::mem::take(&mut part));
                    lines.push(vec![(Style::new(), " ".repeat(indent))]);
                    (used, least) = (indent, indent);
                }
                // Blanks at the end of a line are nothing to see.
                if used + width <= wide {
                    part.push(c);
                    used += width;
                }
            }
            push(&mut lines, *style, &part);
        }
    }
    lines
}

fn push(lines: &mut [Vec<Piece>], style: Style, text: &str) {
    let Some(line) = lines.last_mut().filter(|_| !text.is_empty()) else { return };
    match line.last_mut() {
        Some((last, before)) if *last == style => before.push_str(text),
        Some(_) | None => line.push((style, text.to_owned())),
    }
}

/// The first lines; what does not fit is joined to the last of them, which then ends with an ellipsis.
fn cut_to(mut lines: Vec<Row>, most: usize) -> Vec<Row> {
    let rest = lines.split_off(most.min(lines.len()));
    if let Some((last, _)) = lines.last_mut() {
        for (line, _) in rest {
            for (style, text) in line.into_iter().filter(|(_, text)| !text.trim().is_empty()) {
                let blank =
                    if last.last().is_some_and(|(_, before)| before.ends_with(' ')) { "" } else { " " };
                last.push((style, format!("{blank}{}", text.trim_start())));
            }
        }
    }
    lines
}

/// Rows for three panes one above the other. What one does not need, the others get.
fn shared(tall: usize, needs: [usize; 3]) -> [usize; 3] {
    let all: usize = needs.iter().sum();
    if all <= tall {
        let more = (tall - all) / 3;
        let [agents, findings, decisions] = needs.map(|need| need + more);
        return [agents + (tall - all) % 3, findings, decisions];
    }
    let mut order = [0, 1, 2];
    order.sort_by_key(|n| needs.get(*n).copied().unwrap_or(0));
    let (mut left, mut given) = (tall, [0; 3]);
    for (n, index) in order.into_iter().enumerate() {
        if let (Some(slot), Some(need)) = (given.get_mut(index), needs.get(index)) {
            *slot = (*need).min(left / (3 - n));
            left -= *slot;
        }
    }
    given
}

pub(super) struct Ink<'a> {
    pub(super) view: &'a View,
    pub(super) plain: Style,
}

impl Ink<'_> {
    fn screen(&self, buffer: &mut Buffer, area: Rect) {
        if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
            let (wide, tall) = SMALLEST;
            let text =
                format!("too small, archeflow needs {wide}x{tall}; this is {}x{}", area.width, area.height);
            put(buffer, area, 0, &[(self.plain, text)]);
            return;
        }
        if let Over::Page(page) = &self.view.over {
            self.page(buffer, area, page);
            return;
        }
        let top = if area.height >= 16 { 4 } else { 2 };
        let [header, rest] = split_rows(area, top);
        let [body, footer] = split_rows(rest, rest.height.saturating_sub(1));
        self.header(buffer, header);
        if area.width >= TWO_COLUMNS {
            self.wide(buffer, body);
        } else {
            self.narrow(buffer, body);
        }
        self.footer(buffer, footer);
        self.over(buffer, body);
    }

    // Styles.

    pub(super) fn styled(&self, style: TextStyle) -> Style {
        style.in_cells(self.view.colour)
    }

    pub(super) fn accent(&self) -> Style {
        self.styled(palette::ACCENT)
    }

    pub(super) fn bold(&self) -> Style {
        self.plain.add_modifier(Modifier::BOLD)
    }

    pub(super) fn dim(&self) -> Style {
        self.plain.add_modifier(Modifier::DIM)
    }

    pub(super) fn tone(&self, tone: Tone) -> Style {
        self.styled(palette::of_tone(tone))
    }

    fn phase(&self, phase: Phase) -> Style {
        self.styled(palette::of_phase(phase))
    }

    // The parts of the screen.

    fn header(&self, buffer: &mut Buffer, area: Rect) {
        let view = self.view;
        let (tone, state) = self.state();
        let usual = view.live.against_usual().map(|words| format!(" {words}")).unwrap_or_default();
        let state = format!(" {state} · {}{usual} ", clock(view.live.elapsed()));
        let wide = u16::try_from(state.width()).unwrap_or(u16::MAX).min(area.width / 2);
        let [left, right] = split_columns(area, area.width - wide);
        let task = view.live.run.request.as_ref().map(|request| request.task.clone()).unwrap_or_default();
        put(buffer, left, 0, &[(self.bold(), format!(" {}", one_line(&task)))]);
        put(buffer, right, 0, &[(self.tone(tone).add_modifier(Modifier::BOLD), state)]);
        let cycle = format!("cycle {} of {}", view.live.run.number().max(1), view.live.run.max_cycles.max(1));
        if area.height < 4 {
            let (_, word) = self.phase_now();
            let text = format!(" {cycle} · {word} · {}", view.live.run_id);
            put(buffer, area, 1, &[(self.dim(), text)]);
            return;
        }
        let (_, second) = view::header(&view.live.run);
        let second =
            second.split(" | ").filter(|part| !part.starts_with("Cycle:")).collect::<Vec<_>>().join(" · ");
        let second = if second.is_empty() { second } else { format!(" · {second}") };
        put(buffer, area, 1, &[(self.dim(), format!(" {}{second}", view.live.run_id))]);
        let mut pieces = vec![(self.plain, format!(" {cycle}   "))];
        pieces.extend(self.phases());
        put(buffer, area, 2, &pieces);
    }

    fn phases(&self) -> Vec<Piece> {
        let (now, _) = self.phase_now();
        let ended = self.view.live.run.outcome.is_some();
        let mut pieces = Vec::new();
        for phase in [Phase::Plan, Phase::Do, Phase::Check, Phase::Act] {
            if phase != Phase::Plan {
                pieces.push((self.dim(), " ─── ".to_owned()));
            }
            let word = self.word(phase);
            if now == Some(phase) && !ended {
                let style = self.bold().add_modifier(Modifier::REVERSED);
                pieces.push((style, format!(" {word} ")));
            } else if now.is_some_and(|now| phase <= now) {
                pieces.push((self.phase(phase), format!("✓ {word}")));
            } else {
                pieces.push((self.dim(), format!("○ {word}")));
            }
        }
        pieces
    }

    fn phase_now(&self) -> (Option<Phase>, String) {
        let phase = self.view.live.run.cycle().map(|cycle| cycle.phase);
        (phase, phase.map_or_else(|| "not begun".to_owned(), |phase| self.word(phase)))
    }

    fn word(&self, phase: Phase) -> String {
        view::tag(&self.view.live.run, phase, "").trim_matches(['[', ']']).to_owned()
    }

    pub(super) fn state(&self) -> (Tone, String) {
        let shown = self.view;
        if shown.live.catching_up {
            return (Tone::Plain, "reading the journal".to_owned());
        }
        let run = &shown.live.run;
        if let Some(outcome) = &run.outcome {
            let tone = view::outcome_tone(outcome.status, view::gravest_open(run));
            return (tone, format!("{} ({})", outcome.status.name(), outcome.reason.name()));
        }
        match (&shown.live.driven, shown.live.run.question()) {
            (Driven::Nobody, _) => (Tone::Caution, "interrupted".to_owned()),
            (Driven::Here | Driven::Elsewhere { .. } | Driven::Fleet { .. }, Some(_)) => {
                (Tone::Caution, "waits for an answer".to_owned())
            }
            (Driven::Here | Driven::Elsewhere { .. } | Driven::Fleet { .. }, None)
                if shown.live.run.paused.is_some() =>
            {
                (Tone::Caution, "paused".to_owned())
            }
            (Driven::Fleet { worker, .. }, None) if !worker.is_empty() => {
                (Tone::Good, format!("running on {worker}"))
            }
            (Driven::Here | Driven::Elsewhere { .. } | Driven::Fleet { .. }, None) => {
                (Tone::Good, "running".to_owned())
            }
        }
    }

    /// Agents take the columns they need, up to a half; findings and decisions have the rest.
    fn wide(&self, buffer: &mut Buffer, area: Rect) {
        let money = self.money();
        let [left, right] = split_columns(area, self.agents_width(&money).min(area.width / 2));
        let left = Rect { width: left.width.saturating_sub(1), ..left };
        let low = u16::try_from(self.view.live.cycles.len().clamp(1, 4) + money.len() + 2).unwrap_or(6);
        let [agents, low] = split_rows(left, left.height.saturating_sub(low).max(left.height / 2));
        let half = usize::from(right.height) * 11 / 20;
        let tall = self.tall(Pane::Findings, right);
        let free = usize::from(right.height).saturating_sub(self.tall(Pane::Decisions, right));
        let tall = if tall <= half { tall.max(free.min(half)) } else { tall.min(free.max(half)) };
        let [findings, decisions] = split_rows(right, u16::try_from(tall).unwrap_or(right.height));
        self.agents(buffer, agents);
        self.curve(buffer, low, &money);
        self.findings(buffer, findings);
        self.decisions(buffer, decisions);
    }

    /// The columns that agents, cycles and costs need to be read whole. What an agent prints counts
    /// only in part.
    fn agents_width(&self, money: &[Vec<Piece>]) -> u16 {
        let wide = |pieces: &[Piece]| pieces.iter().map(|(_, text)| cells(text).width()).sum::<usize>();
        let live = &self.view.live;
        let last = live.agents.len().saturating_sub(LOOKED_AT);
        let agents = live.agents.iter().enumerate().skip(last).map(|(index, agent)| {
            let (left, right) = self.agent(agent, index);
            let prints = live.is_running(agent) && !agent.live_output.is_empty();
            let printed = left.last().filter(|_| prints).map_or(0, |(_, text)| cells(text).width());
            (wide(&left) + wide(&right)).saturating_sub(printed.saturating_sub(OUTPUT_COLUMNS))
        });
        let cycles = live.cycles.iter().map(|line| wide(&self.cycle(line)));
        let all = agents.chain(cycles).chain(money.iter().map(|line| wide(line)));
        u16::try_from(all.max().unwrap_or(0) + 2).unwrap_or(u16::MAX).max(TWO_COLUMNS / 2 - 2)
    }

    fn narrow(&self, buffer: &mut Buffer, area: Rect) {
        if area.height < 12 {
            self.pane(buffer, area, self.view.pane);
            return;
        }
        let [mut rest, low] = split_rows(area, area.height - 2);
        let needs = Pane::ALL.map(|pane| self.tall(pane, rest));
        for (pane, tall) in Pane::ALL.into_iter().zip(shared(usize::from(rest.height), needs)) {
            let [mine, others] = split_rows(rest, u16::try_from(tall).unwrap_or(rest.height));
            self.pane(buffer, mine, pane);
            rest = others;
        }
        let money = self.money();
        let last = self.view.live.cycles.last().map(|line| self.cycle(line)).unwrap_or_default();
        put(buffer, low, 0, &last);
        if let Some(line) = money.first() {
            put(buffer, low, 1, line);
        }
    }

    fn pane(&self, buffer: &mut Buffer, area: Rect, pane: Pane) {
        match pane {
            Pane::Agents => self.agents(buffer, area),
            Pane::Findings => self.findings(buffer, area),
            Pane::Decisions => self.decisions(buffer, area),
        }
    }

    /// The rows that a pane of this width needs to show everything whole, and its title; no more than there are.
    fn tall(&self, pane: Pane, area: Rect) -> usize {
        let most = usize::from(area.height);
        let mut tall = 1;
        for index in (0..self.view.rows(pane)).rev() {
            tall += self.laid(pane, index, area.width).len();
            if tall >= most {
                return most;
            }
        }
        tall.max(2).min(most)
    }

    pub(super) fn title(&self, buffer: &mut Buffer, area: Rect, title: &str, pane: Option<Pane>) -> Rect {
        let here = pane == Some(self.view.pane);
        let style = if here { self.accent().add_modifier(Modifier::BOLD) } else { self.dim() };
        let used = title.width() + 4;
        let line = "─".repeat(usize::from(area.width).saturating_sub(used));
        let mark = if here { "━━" } else { "──" };
        put(buffer, area, 0, &[(style, format!("{mark} {title} {line}"))]);
        Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area }
    }

    /// The lines of one row: as many as its text needs at this width.
    fn laid(&self, pane: Pane, index: usize, width: u16) -> Vec<Row> {
        let live = &self.view.live;
        let ((left, right), indent) = match pane {
            Pane::Agents => {
                (live.agents.get(index).map(|agent| self.agent(agent, index)).unwrap_or_default(), 20)
            }
            Pane::Findings => {
                let found = live.findings.get(index).map(|found| self.finding(found)).unwrap_or_default();
                ((found, Vec::new()), 12)
            }
            Pane::Decisions => {
                let chosen =
                    live.decisions.get(index).map(|chosen| self.decision(chosen)).unwrap_or_default();
                ((chosen, Vec::new()), 14)
            }
        };
        let aside: usize = right.iter().map(|(_, text)| text.width()).sum();
        let wide = usize::from(width).saturating_sub(aside.min(usize::from(width) / 3)).max(1);
        let indent = if wide < 2 * indent { wide / 4 } else { indent };
        let mut lines: Vec<Row> =
            wrapped_pieces(&left, wide, indent).into_iter().map(|line| (line, Vec::new())).collect();
        if let Some((_, end)) = lines.first_mut() {
            *end = right;
        }
        // What an agent prints changes often and should not move everything below it.
        let moves =
            pane == Pane::Agents && live.agents.get(index).is_some_and(|agent| live.is_running(agent));
        if moves { cut_to(lines, MOST_OF_OUTPUT) } else { lines }
    }

    /// The rows around the selected one. Where lines are free, rows are shown whole: the selected one first, then the
    /// newest.
    fn list(&self, buffer: &mut Buffer, area: Rect, pane: Pane) {
        let (rows, at) = (self.view.rows(pane), self.view.row(pane));
        let tall = usize::from(area.height);
        let top = (at + 1).saturating_sub(tall.div_ceil(2)).min(rows.saturating_sub(tall));
        let mut shown: Vec<(usize, Vec<Row>, usize)> =
            (top..rows).take(tall).map(|index| (index, self.laid(pane, index, area.width), 1)).collect();
        let mut free = tall.saturating_sub(shown.len());
        let first = at.saturating_sub(top);
        let newest = (0..shown.len()).rev().filter(|n| *n != first);
        for n in [first].into_iter().chain(newest).collect::<Vec<_>>() {
            if let Some((_, lines, given)) = shown.get_mut(n) {
                let more = lines.len().saturating_sub(1).min(free);
                *given += more;
                free -= more;
            }
        }
        let mut line = 0;
        for (index, lines, given) in shown {
            for (left, right) in cut_to(lines, given) {
                let aside: usize = right.iter().map(|(_, text)| text.width()).sum();
                let aside = u16::try_from(aside).unwrap_or(u16::MAX).min(area.width / 3);
                let [start, end] = split_columns(area, area.width - aside);
                put(buffer, start, line, &left);
                put(buffer, end, line, &right);
                if index == at && pane == self.view.pane {
                    let place = Rect { y: area.y + line, height: 1, ..area };
                    // One bar, whatever the colours below it.
                    buffer.set_style(place, Style::reset().add_modifier(Modifier::REVERSED));
                }
                line += 1;
            }
        }
    }

    fn agents(&self, buffer: &mut Buffer, area: Rect) {
        let out = self
            .view
            .live
            .agents
            .iter()
            .rev()
            .take(64)
            .filter(|agent| self.view.live.is_running(agent))
            .count();
        let title = if out > 0 { format!("Agents: {out} running") } else { "Agents".to_owned() };
        let area = self.title(buffer, area, &title, Some(Pane::Agents));
        self.list(buffer, area, Pane::Agents);
        if self.view.live.agents.is_empty() {
            put(buffer, area, 0, &[(self.dim(), " no agent was started yet".to_owned())]);
        }
    }

    fn agent(&self, agent: &LiveAgent, index: usize) -> Row {
        let before = index.checked_sub(1).and_then(|index| self.view.live.agents.get(index));
        let first = before.is_none_or(|before| before.cycle != agent.cycle);
        let cycle = if first { format!("{} ", agent.cycle) } else { "  ".to_owned() };
        let tag = format!("{:<5} ", self.word(agent.phase).chars().take(5).collect::<String>());
        let name = view::capital(&agent.archetype);
        let doing = agent.doing.trim_start_matches(name.as_str()).trim().trim_end_matches("...");
        let name = format!("{name:<10}");
        let mut pieces = vec![(self.dim(), cycle)];
        match &agent.ended {
            None if self.view.live.moves() => {
                let spin = SPINNER[self.view.frame % SPINNER.len()];
                let so_far = clock(self.view.live.now.saturating_sub(agent.since));
                pieces.push((self.accent(), format!("{spin} ")));
                pieces.push((self.phase(agent.phase), tag));
                pieces.push((self.bold(), name));
                pieces.push((self.plain, format!("{doing} {so_far}")));
                if !agent.live_output.is_empty() {
                    pieces.push((self.accent(), format!("  {}", agent.live_output)));
                }
            }
            None => {
                pieces.push((self.dim(), "◌ ".to_owned()));
                pieces.push((self.phase(agent.phase), tag));
                pieces.push((self.plain, name));
                pieces.push((self.dim(), format!("{doing}, not heard of")));
            }
            Some((tone, outcome)) => {
                let skipped = outcome.starts_with("skipped");
                let mark = match tone {
                    _ if skipped => "· ",
                    Tone::Plain | Tone::Good => "✓ ",
                    Tone::Caution => "▲ ",
                    Tone::Bad => "✗ ",
                };
                pieces.push((if skipped { self.dim() } else { self.tone(*tone) }, mark.to_owned()));
                pieces.push((self.phase(agent.phase), tag));
                pieces.push((self.plain, name));
                pieces.push((if skipped { self.dim() } else { self.tone(*tone) }, outcome.clone()));
            }
        }
        (pieces, vec![(self.dim(), spent(agent))])
    }

    fn findings(&self, buffer: &mut Buffer, area: Rect) {
        let count = self.view.live.findings.len();
        let title = if count > 0 { format!("Findings: {count}") } else { "Findings".to_owned() };
        let area = self.title(buffer, area, &title, Some(Pane::Findings));
        self.list(buffer, area, Pane::Findings);
        if count == 0 {
            put(buffer, area, 0, &[(self.dim(), " none so far".to_owned())]);
        }
    }

    fn finding(&self, found: &LiveFinding) -> Vec<Piece> {
        let (mark, tone) = match (found.resolved, found.severity) {
            (true, _) => ("✓", Tone::Good),
            (false, Severity::Critical) => ("✗", Tone::Bad),
            (false, Severity::Warning) => ("▲", Tone::Caution),
            (false, Severity::Info) => ("·", Tone::Plain),
        };
        let word = match found.downgraded {
            Some(from) => format!("{} (was {})", found.severity.name(), from.name()),
            None => format!("{:<8}", found.severity.name()),
        };
        let old = found.cycle < self.view.live.run.number();
        let quiet = found.downgraded.is_some() || old || found.resolved;
        let body = if quiet { self.dim() } else { self.plain };
        let loud = if quiet && !found.resolved { self.dim() } else { self.tone(tone) };
        let place = if found.place.is_empty() { found.category.clone() } else { found.place.clone() };
        vec![
            (loud, format!(" {mark} ")),
            (if quiet { self.dim() } else { self.tone(tone).add_modifier(Modifier::BOLD) }, word),
            (if quiet { self.dim() } else { self.accent() }, format!(" {place} ")),
            (self.dim(), format!("{} ", found.source)),
            (body, found.description.clone()),
        ]
    }

    fn decisions(&self, buffer: &mut Buffer, area: Rect) {
        let area = self.title(buffer, area, "Decisions", Some(Pane::Decisions));
        self.list(buffer, area, Pane::Decisions);
    }

    fn decision(&self, chosen: &LiveDecision) -> Vec<Piece> {
        let number = format!(" {:>4} ", format!("#{}", chosen.seq));
        let rule = (self.phase(chosen.phase), format!("{:<7}", chosen.rule));
        vec![(self.dim(), number), rule, (self.tone(chosen.tone), format!(" {}", chosen.text))]
    }

    fn curve(&self, buffer: &mut Buffer, area: Rect, money: &[Vec<Piece>]) {
        let area = self.title(buffer, area, "Convergence and cost", None);
        let room = usize::from(area.height).saturating_sub(money.len());
        let skip = self.view.live.cycles.len().saturating_sub(room);
        let mut row = 0;
        for line in self.view.live.cycles.iter().skip(skip) {
            put(buffer, area, row, &self.cycle(line));
            row += 1;
        }
        if row == 0 {
            put(buffer, area, 0, &[(self.dim(), " no cycle has ended yet".to_owned())]);
            row = 1;
        }
        for line in money {
            put(buffer, area, row, line);
            row += 1;
        }
    }

    fn cycle(&self, line: &LiveCycle) -> Vec<Piece> {
        let [critical, warning, info] = line.counts;
        let tone = if critical > 0 {
            Tone::Bad
        } else if warning > 0 {
            Tone::Caution
        } else {
            Tone::Good
        };
        let mut pieces = vec![
            (self.plain, format!(" cycle {} ", line.number)),
            (self.tone(tone), format!("✗ {critical} ▲ {warning} · {info}")),
        ];
        if let Some(score) = line.score {
            pieces.push((self.accent(), format!("  {} ", bar(u64::from(score), 1_000_000, 8))));
            let hundredths = score / 10_000;
            pieces.push((self.plain, format!("{}.{:02} ", hundredths / 100, hundredths % 100)));
        }
        pieces.push((self.dim(), line.words.clone()));
        pieces
    }

    fn money(&self) -> Vec<Vec<Piece>> {
        let run = &self.view.live.run;
        let tokens: u64 =
            run.ledger.accounts.values().map(|account| account.tokens.input + account.tokens.output).sum();
        let tokens = if tokens > 0 { format!(", {} tokens", thousands(tokens)) } else { String::new() };
        let Some(limit) = run.limits().into_iter().next() else {
            let text = format!(" spent {}{tokens}, no limit", run.spent.shown());
            return vec![vec![(self.dim(), text)]];
        };
        let percent = run.budget_percent().unwrap_or(0);
        let tone = match percent {
            0..50 => Tone::Good,
            50..95 => Tone::Caution,
            _ => Tone::Bad,
        };
        let aside = run.set_aside();
        let aside = if aside > archeflow_core::model::Money::ZERO {
            format!(", {} reserved", aside.shown())
        } else {
            String::new()
        };
        vec![vec![
            (self.plain, " budget ".to_owned()),
            (self.tone(tone), bar(u64::from(percent), 100, 16)),
            (self.plain, format!(" {} of {} ({percent} %)", limit.spent.shown(), limit.cap.shown())),
            (self.dim(), format!("{aside}{tokens}")),
        ]]
    }

    fn footer(&self, buffer: &mut Buffer, area: Rect) {
        let shown = self.view;
        if let Some((at, warning)) = &shown.warning
            && shown.live.now < at + WARNED_MS
        {
            put(buffer, area, 0, &[(self.tone(Tone::Caution), format!(" {warning}"))]);
            return;
        }
        let elsewhere = match &shown.live.driven {
            Driven::Fleet { worker, .. } if worker.is_empty() => Some("its worker"),
            Driven::Fleet { worker, .. } => Some(worker.as_str()),
            Driven::Here | Driven::Elsewhere { .. } | Driven::Nobody => None,
        };
        if let Some((_, question)) = shown.live.run.question() {
            let style = self.bold().add_modifier(Modifier::REVERSED);
            let asked = one_line(&question.question);
            let text = match elsewhere {
                Some(worker) => format!(" asks on {worker}: {asked} "),
                None => format!(" a  answer: {asked} "),
            };
            put(buffer, area, 0, &[(style, text)]);
            return;
        }
        let mut pieces = Vec::new();
        let keys = [
            ("?", "help"),
            ("q", "leave"),
            ("s", "stop"),
            ("a", "answer"),
            ("d", "diff"),
            ("Tab", "pane"),
            ("Enter", "open"),
        ];
        let live = &shown.live;
        let ended = live.run.outcome.as_ref().filter(|_| !live.catching_up);
        let next = ended.map(|outcome| view::next_steps(&live.run_id, &live.run, outcome));
        if let Some((command, _)) = next.iter().flatten().next() {
            pieces.push((self.bold(), " next: ".to_owned()));
            pieces.push((self.accent(), format!("{command}  ")));
            pieces.extend(elsewhere.map(|worker| (self.dim(), format!("on {worker}  "))));
        }
        let of_no_use = |key: &str| (ended.is_some() || elsewhere.is_some()) && (key == "s" || key == "a");
        for (key, word) in keys.into_iter().filter(|(key, _)| !of_no_use(key)) {
            pieces.push((self.bold(), format!(" {key} ")));
            pieces.push((self.dim(), format!("{word} ")));
        }
        put(buffer, area, 0, &pieces);
    }
}

fn spent(agent: &LiveAgent) -> String {
    let tokens = agent.tokens.map(|tokens| format!(" {:>6}", thousands(tokens.input + tokens.output)));
    let cost = agent.cost.map(|cost| format!(" {:>6} ", cost.shown()));
    tokens.into_iter().chain(cost).collect()
}

/// `0:07`, `12:31`, `1:02:03`.
fn clock(ms: u64) -> String {
    let (hours, minutes, seconds) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

/// `12.3k`, `4.5M`.
fn thousands(n: u64) -> String {
    match n {
        0..1_000 => n.to_string(),
        1_000..1_000_000 => format!("{}.{}k", n / 1_000, n % 1_000 / 100),
        _ => format!("{}.{}M", n / 1_000_000, n % 1_000_000 / 100_000),
    }
}

fn bar(part: u64, whole: u64, wide: u64) -> String {
    let full = (part.min(whole) * wide / whole.max(1)).min(wide);
    (0..wide).map(|n| if n < full { '█' } else { '░' }).collect()
}

pub(super) fn split_rows(area: Rect, top: u16) -> [Rect; 2] {
    let top = top.min(area.height);
    [Rect { height: top, ..area }, Rect { y: area.y + top, height: area.height - top, ..area }]
}

fn split_columns(area: Rect, left: u16) -> [Rect; 2] {
    let left = left.min(area.width);
    [Rect { width: left, ..area }, Rect { x: area.x + left, width: area.width - left, ..area }]
}
