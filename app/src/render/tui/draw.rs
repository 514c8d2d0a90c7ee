//! The view on a screen. Whatever is drawn goes through [`put()`], and so through the filter: nothing an agent wrote
//! can reach a cell as anything but plain characters.

use archeflow_core::model::{Phase, RunStatus, Severity};
use archeflow_core::projections::live::{Driven, LiveAgent, LiveCycle, LiveDecision, LiveFinding};
use archeflow_core::projections::view::{self, Tone};
use archeflow_core::text::{cells, one_line};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::terminal::Frame;
use unicode_width::UnicodeWidthStr;

use super::View;
use super::view::{Over, Pane};

/// A smaller screen shows only a line that says so.
pub(crate) const SMALLEST: (u16, u16) = (40, 10);
/// From this width on the panes are in two columns.
const TWO_COLUMNS: u16 = 100;
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

    pub(super) fn fg(&self, colour: Color) -> Style {
        if self.view.colour { self.plain.fg(colour) } else { self.plain }
    }

    pub(super) fn bold(&self) -> Style {
        self.plain.add_modifier(Modifier::BOLD)
    }

    pub(super) fn dim(&self) -> Style {
        self.plain.add_modifier(Modifier::DIM)
    }

    fn tone(&self, tone: Tone) -> Style {
        match tone {
            Tone::Plain => self.plain,
            Tone::Good => self.fg(Color::Green),
            Tone::Caution => self.fg(Color::Yellow),
            Tone::Bad => self.fg(Color::Red),
        }
    }

    fn phase(&self, phase: Phase) -> Style {
        self.fg(match phase {
            Phase::Plan => Color::Blue,
            Phase::Do => Color::Green,
            Phase::Check => Color::Yellow,
            Phase::Act => Color::Magenta,
        })
    }

    // The parts of the screen.

    fn header(&self, buffer: &mut Buffer, area: Rect) {
        let view = self.view;
        let (tone, state) = self.state();
        let state = format!(" {state} · {} ", clock(view.live.elapsed()));
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
                let style = self.phase(phase).add_modifier(Modifier::BOLD | Modifier::REVERSED);
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

    fn state(&self) -> (Tone, String) {
        let view = self.view;
        if view.live.catching_up {
            return (Tone::Plain, "reading the journal".to_owned());
        }
        if let Some(outcome) = &view.live.run.outcome {
            let tone = match outcome.status {
                RunStatus::Merged | RunStatus::DryRun | RunStatus::Reviewed => Tone::Good,
                RunStatus::AwaitingMerge | RunStatus::AwaitingAnswer => Tone::Caution,
                RunStatus::Stopped | RunStatus::Failed | RunStatus::WiggumBreak => Tone::Bad,
            };
            return (tone, format!("{} ({})", outcome.status.name(), outcome.reason.name()));
        }
        match (&view.live.driven, view.live.run.question()) {
            (Driven::Nobody, _) => (Tone::Caution, "interrupted".to_owned()),
            (Driven::Here | Driven::Elsewhere { .. }, Some(_)) => {
                (Tone::Caution, "waits for an answer".to_owned())
            }
            (Driven::Here | Driven::Elsewhere { .. }, None) if view.live.run.paused.is_some() => {
                (Tone::Caution, "paused".to_owned())
            }
            (Driven::Here | Driven::Elsewhere { .. }, None) => (Tone::Good, "running".to_owned()),
        }
    }

    fn wide(&self, buffer: &mut Buffer, area: Rect) {
        let [left, right] = split_columns(area, area.width / 2);
        let left = Rect { width: left.width.saturating_sub(1), ..left };
        let money = self.money();
        let low = u16::try_from(self.view.live.cycles.len().clamp(1, 4) + money.len() + 2).unwrap_or(6);
        let [agents, low] = split_rows(left, left.height.saturating_sub(low).max(left.height / 2));
        let [findings, decisions] = split_rows(right, right.height * 11 / 20);
        self.agents(buffer, agents);
        self.curve(buffer, low, &money);
        self.findings(buffer, findings);
        self.decisions(buffer, decisions);
    }

    fn narrow(&self, buffer: &mut Buffer, area: Rect) {
        if area.height < 12 {
            let pane = match self.view.pane {
                Pane::Agents => Ink::agents,
                Pane::Findings => Ink::findings,
                Pane::Decisions => Ink::decisions,
            };
            pane(self, buffer, area);
            return;
        }
        let [rest, low] = split_rows(area, area.height - 2);
        let third = rest.height / 3;
        let [agents, rest] = split_rows(rest, rest.height - 2 * third);
        let [findings, decisions] = split_rows(rest, third);
        self.agents(buffer, agents);
        self.findings(buffer, findings);
        self.decisions(buffer, decisions);
        let money = self.money();
        let last = self.view.live.cycles.last().map(|line| self.cycle(line)).unwrap_or_default();
        put(buffer, low, 0, &last);
        if let Some(line) = money.first() {
            put(buffer, low, 1, line);
        }
    }

    pub(super) fn title(&self, buffer: &mut Buffer, area: Rect, title: &str, pane: Option<Pane>) -> Rect {
        let here = pane == Some(self.view.pane);
        let style = if here { self.fg(Color::Cyan).add_modifier(Modifier::BOLD) } else { self.dim() };
        let used = title.width() + 4;
        let line = "─".repeat(usize::from(area.width).saturating_sub(used));
        let mark = if here { "━━" } else { "──" };
        put(buffer, area, 0, &[(style, format!("{mark} {title} {line}"))]);
        Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area }
    }

    /// The rows around the selected one.
    fn list(&self, buffer: &mut Buffer, area: Rect, pane: Pane, row: impl Fn(usize) -> Row) {
        let (rows, at) = (self.view.rows(pane), self.view.row(pane));
        let tall = usize::from(area.height);
        let top = (at + 1).saturating_sub(tall.div_ceil(2)).min(rows.saturating_sub(tall));
        for (index, line) in (top..rows).zip(0..area.height) {
            let (left, right) = row(index);
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
        self.list(buffer, area, Pane::Agents, |index| {
            self.view.live.agents.get(index).map(|agent| self.agent(agent, index)).unwrap_or_default()
        });
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
                pieces.push((self.fg(Color::Cyan), format!("{spin} ")));
                pieces.push((self.phase(agent.phase), tag));
                pieces.push((self.bold(), name));
                pieces.push((self.plain, format!("{doing} {so_far}")));
                if !agent.live_output.is_empty() {
                    pieces.push((self.fg(Color::Cyan), format!("  {}", agent.live_output)));
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
        self.list(buffer, area, Pane::Findings, |index| {
            (
                self.view.live.findings.get(index).map(|found| self.finding(found)).unwrap_or_default(),
                Vec::new(),
            )
        });
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
            (if quiet { self.dim() } else { self.fg(Color::Cyan) }, format!(" {place} ")),
            (self.dim(), format!("{} ", found.source)),
            (body, found.description.clone()),
        ]
    }

    fn decisions(&self, buffer: &mut Buffer, area: Rect) {
        let area = self.title(buffer, area, "Decisions", Some(Pane::Decisions));
        self.list(buffer, area, Pane::Decisions, |index| {
            (
                self.view.live.decisions.get(index).map(|chosen| self.decision(chosen)).unwrap_or_default(),
                Vec::new(),
            )
        });
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
            pieces.push((self.fg(Color::Cyan), format!("  {} ", bar(u64::from(score), 1_000_000, 8))));
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
        let view = self.view;
        if let Some((at, warning)) = &view.warning
            && view.live.now < at + WARNED_MS
        {
            put(buffer, area, 0, &[(self.tone(Tone::Caution), format!(" {warning}"))]);
            return;
        }
        if let Some((_, question)) = view.live.run.question() {
            let style = self.fg(Color::Yellow).add_modifier(Modifier::BOLD | Modifier::REVERSED);
            let text = format!(" a  answer: {} ", one_line(&question.question));
            put(buffer, area, 0, &[(style, text)]);
            return;
        }
        let mut pieces = Vec::new();
        for (key, word) in [
            ("?", "help"),
            ("q", "leave"),
            ("s", "stop"),
            ("a", "answer"),
            ("d", "diff"),
            ("Tab", "pane"),
            ("Enter", "open"),
        ] {
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

/// `0:07`, `12:31`, `1:02:03`. The journal knows whole seconds.
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
