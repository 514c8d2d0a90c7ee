//! Progress as lines (AF-122): one per agent. On a terminal the running agents are shown below, with what they are
//! doing and for how long; elsewhere a line appears when it is complete.

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::time::Instant;

use archeflow_core::event::{
    AgentComplete, AgentFailed, AgentStart, AgentTimeout, Decision, Entry, Event, Order, QuestionAsked,
    SessionStart,
};
use archeflow_core::model::{Phase, Seq};
use archeflow_core::projections::usual_time::UsualTime;
use archeflow_core::projections::view::{self, ProgressLine};
use archeflow_core::rules::signs::masked;
use archeflow_core::rules::unmade::unmade_line;
use archeflow_core::run::Run;
use archeflow_host::drive::{Asked, RunObserver};
use crossterm::cursor::MoveUp;
use crossterm::terminal::{Clear, ClearType};

use super::text::{Paint, cut, pad, pad_after, safe, safe_line, width};

pub(crate) struct Lines {
    paint: Paint,
    run_id: String,
    /// Redrawn below everything else.
    live: bool,
    drawn: usize,
    out: BTreeMap<Seq, Out>,
    begun: bool,
    cycle: u32,
    frame: usize,
    interrupted: std::sync::Arc<std::sync::atomic::AtomicBool>,
    /// What runs like this one took.
    usual: Option<UsualTime>,
}

struct Out {
    tag: String,
    start: AgentStart,
    since: Instant,
    agent_line: String,
}

const SPINNER: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
/// Columns of the phase; longer ones, as a pipeline has, get a blank of their own.
const TAG: usize = 9;
const DOING: usize = 40;

impl Lines {
    pub(crate) fn new(run_id: &str, interrupted: std::sync::Arc<std::sync::atomic::AtomicBool>) -> Lines {
        let paint = Paint::for_stderr();
        Lines {
            paint,
            run_id: run_id.to_owned(),
            live: paint.0,
            drawn: 0,
            out: BTreeMap::new(),
            begun: false,
            cycle: 0,
            frame: 0,
            interrupted,
            usual: None,
        }
    }

    /// Says in the heading what runs like this one took.
    pub(crate) fn with_usual(mut self, usual: Option<UsualTime>) -> Lines {
        self.usual = usual;
        self
    }

    /// Lines already written are shown without waiting for anything: for `show` and for resumed runs.
    pub(crate) fn replay(run_id: &str) -> Lines {
        let mut lines = Lines::new(run_id, std::sync::Arc::default());
        lines.live = false;
        lines
    }

    /// Joins a run that is under way: prints its heading and the running agents.
    pub(crate) fn join(&mut self, run: &Run) {
        self.begun = true;
        self.cycle = run.number();
        self.header(run);
        for (seq, start) in run.open_agents() {
            let tag = view::tag(run, run.cycle().map_or(Phase::Plan, |cycle| cycle.phase), &start.archetype);
            let out = Out { tag, start: start.clone(), since: Instant::now(), agent_line: String::new() };
            self.out.insert(seq, out);
        }
    }

    fn say(&mut self, text: &str) {
        self.erase();
        tell!("{text}");
    }

    fn erase(&mut self) {
        if self.drawn > 0 {
            let back = MoveUp(u16::try_from(self.drawn).unwrap_or(u16::MAX));
            tell_part!("{back}{}", Clear(ClearType::FromCursorDown));
            self.drawn = 0;
        }
    }

    fn draw(&mut self) {
        if !self.live || self.out.is_empty() {
            return;
        }
        self.erase();
        let columns = width();
        let spin = SPINNER[self.frame % SPINNER.len()];
        self.frame += 1;
        let mut text = String::new();
        for out in self.out.values() {
            let elapsed = u64::try_from(out.since.elapsed().as_millis()).unwrap_or(0) / 100 * 100;
            let rest = format!(
                " {} {}  {}",
                pad(&view::doing(&out.start), DOING - 12),
                view::seconds(elapsed),
                out.agent_line
            );
            // A line that wraps could not be erased again.
            let room = columns.saturating_sub(out.tag.chars().count() + 4);
            text.push_str(&format!(
                "{} {}{}\n",
                self.paint.accent(&spin.to_string()),
                self.paint.tag(&out.tag),
                cut(&rest, room)
            ));
        }
        tell_part!("{text}");
        self.drawn = self.out.len();
    }

    fn header(&mut self, run: &Run) {
        let (title, second) = view::header(run);
        let rule = "━".repeat(3);
        let title = safe_line(&title);
        let fill = "━".repeat(width().min(100).saturating_sub(title.chars().count() + 5).max(3));
        let bold = self.paint.bold(&format!("{rule} {title} {fill}"));
        self.say(&bold);
        let second = format!("Run ID: {} | {second}", self.run_id);
        self.say(&second);
        if let Some(request) = &run.request {
            let lands = run.lands();
            if lands && request.config.test_command.is_none() && !request.config.no_tests {
                let warning = "No test command: landing will need your yes (set one with --test-command).";
                let warning = self.paint.tone(view::Tone::Caution, warning);
                self.say(&warning);
            }
            let agents = &request.config.agents;
            let mut who = vec![format!("all: {}", cut(&safe_line(&agents.default), 60))];
            who.extend(
                agents
                    .by_archetype
                    .iter()
                    .map(|(name, spec)| format!("{name}: {}", cut(&safe_line(spec), 40))),
            );
            let who = self.paint.dim(&format!("Agents: {}", who.join(", ")));
            self.say(&who);
        }
        if let Some(usual) = &self.usual {
            let usual = self.paint.dim(&format!("Time: {}", usual.words()));
            self.say(&usual);
        }
        let sandbox = run.session.as_ref().map_or("", |session| session.sandbox.as_str());
        if sandbox == SessionStart::NO_SANDBOX {
            let warning = "Sandbox: none. Agents, tests and hooks run with all your rights.";
            let warning = self.paint.tone(view::Tone::Caution, warning);
            self.say(&warning);
        } else if !sandbox.is_empty() {
            let level = self.paint.dim(&format!("Sandbox: {}", safe_line(sandbox)));
            self.say(&level);
        }
        self.say("");
    }

    fn print(&mut self, line: &ProgressLine) {
        let doing = safe_line(&line.doing);
        let outcome = safe_line(&line.outcome);
        let text = format!(
            "{}{} {} {}",
            pad_after(&line.tag, &self.paint.tag(&line.tag), TAG.max(line.tag.chars().count() + 1)),
            pad(&doing, DOING),
            self.paint.dim("->"),
            self.paint.tone(line.tone, &outcome)
        );
        self.say(&text);
    }
}

/// What an agent's end leaves to note.
fn notes_of(event: &Event) -> &[String] {
    let complete = event.body::<AgentComplete>().map(|complete| &complete.notes);
    let failed = event.body::<AgentFailed>().map(|failed| &failed.notes);
    let late = event.body::<AgentTimeout>().map(|late| &late.0.notes);
    complete.or(failed).or(late).map_or(&[], Vec::as_slice)
}

impl RunObserver for Lines {
    fn wrote(&mut self, run: &Run, entry: &Entry) {
        if !self.begun && run.request.is_some() && run.session.is_some() {
            self.begun = true;
            self.header(run);
        }
        if let Event::Order(Order::AgentStart(start)) = &entry.event {
            let tag = view::tag(run, entry.phase, &start.archetype);
            let out = Out { tag, start: (**start).clone(), since: Instant::now(), agent_line: String::new() };
            self.out.insert(entry.seq, out);
        }
        let start = entry.event.answers().and_then(|order| self.out.remove(&order)).map(|out| out.start);
        if let Event::Decision(Decision::PhaseTransition(transition)) = &entry.event
            && transition.cycle > 1
            && transition.cycle != self.cycle
        {
            self.cycle = transition.cycle;
            let text = self.paint.bold(&format!("\n{}", view::cycle_heading(run, transition.cycle)));
            self.say(&text);
        }
        if let Some(line) = view::line(run, entry, start.as_ref()) {
            self.print(&line);
        }
        let made = entry.event.body::<AgentComplete>().and_then(|complete| complete.change.as_ref());
        let unmade = made.and_then(|_| unmade_line(&run.corrections.unmade));
        for remark in unmade.iter().chain(made.iter().flat_map(|change| &change.notes)) {
            let text = format!("         {}", self.paint.tone(view::Tone::Caution, &safe_line(remark)));
            self.say(&text);
        }
        let notes = notes_of(&entry.event);
        if !notes.is_empty() {
            for note in notes {
                let text = self.paint.dim(&format!("         {}", safe_line(note)));
                self.say(&text);
            }
        } else if let Event::Decision(Decision::ReviewVerdict(verdict)) = &entry.event {
            for finding in verdict.findings.iter().take(5) {
                let text = format!(
                    "         {} {} {}: {}",
                    finding.severity.name(),
                    safe_line(&finding.location),
                    safe_line(&finding.category),
                    cut(&safe_line(&masked(&finding.description)), 90)
                );
                let text = self.paint.dim(&text);
                self.say(&text);
            }
            if verdict.findings.len() > 5 {
                let text = self.paint.dim(&format!("         … and {} more", verdict.findings.len() - 5));
                self.say(&text);
            }
        }
        self.draw();
    }

    fn agent_line(&mut self, order: Seq, text: &str) {
        if let Some(out) = self.out.get_mut(&order) {
            out.agent_line = safe_line(text);
        }
        self.draw();
    }

    fn tick(&mut self, _: &Run) {
        self.draw();
    }

    fn warn(&mut self, text: &str) {
        let text = self.paint.tone(view::Tone::Caution, &format!("warning: {}", safe(text)));
        self.say(&text);
    }

    /// R20: facts computed by the program, drawn last, and everything but a clear yes is a no.
    fn ask(&mut self, _: &Run, question: &QuestionAsked, elsewhere: &mut dyn FnMut() -> bool) -> Asked {
        self.erase();
        tell!();
        for detail in &question.details {
            tell!("  {}", safe_line(detail));
        }
        tell_part!("{} {} ", self.paint.bold(&safe(&question.question)), view::prompt(question.kind));
        let _ = std::io::stderr().flush();
        read_line(&self.interrupted, elsewhere)
    }
}

/// A line from the terminal, unless a signal comes first, or a request of another process.
pub(crate) fn read_line(
    interrupted: &std::sync::atomic::AtomicBool,
    elsewhere: &mut dyn FnMut() -> bool,
) -> Asked {
    use archeflow_host::platform::Errno;
    use archeflow_host::platform::poll::{self, PollFd, PollFlags};
    let stdin = std::io::stdin();
    let wait = std::time::Duration::from_millis(100);
    loop {
        if interrupted.load(std::sync::atomic::Ordering::SeqCst) {
            tell!();
            return Asked::Interrupted;
        }
        if elsewhere() {
            tell!();
            return Asked::Elsewhere;
        }
        let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
        match poll::wait(&mut fds, Some(wait)) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => break,
            Err(_) => return Asked::Left,
        }
    }
    let mut line = String::new();
    match stdin.lock().read_line(&mut line) {
        Ok(0) | Err(_) => Asked::Left,
        Ok(_) => Asked::Answer(line.trim().to_owned()),
    }
}
