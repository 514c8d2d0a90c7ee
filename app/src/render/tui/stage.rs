//! The loop behind the view: journal lines, live output, keys and time come in, frames go out.
//!
//! It is the same for a run of this process and of another one. Lines always come from the journal, each once. A
//! driver in this process also sends live output and questions; otherwise the output files of agents are read.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::time::{Duration, Instant};

use archeflow_core::model::Seq;
use archeflow_core::projections::live::{Driven, LiveRun, bounded};
use archeflow_host::control::{Request, Requester, client};
use archeflow_host::git::{ObjectId, Repo, change};
use archeflow_host::store::follow::Follower;
use archeflow_host::store::journal::Journal;
use archeflow_host::store::{files, names};
use archeflow_host::tail::Tail;
use archeflow_host::{clock, history, log};

use super::View;
use super::act::{OpenedStart, Wish, act};
use super::page::Page;
use super::terminal::{self, Screen};
use super::view::Over;
use crate::failure::Failure;
use crate::report::diff::{self, Diff};

/// At least this long between two frames.
const BETWEEN: Duration = Duration::from_millis(100);
/// A turn of the spinner.
const TURN_MS: u64 = 250;
const GLANCE: Duration = Duration::from_millis(300);
const WHO_DRIVES: Duration = Duration::from_secs(1);
/// The longest file that is opened.
const LARGEST: u64 = 4_000_000;

/// Messages of the driver in this process, besides the journal.
pub(crate) enum News {
    AgentLine(Seq, String),
    Warning(String),
    /// The open question is put to the person here.
    Asked,
    /// It is put no longer: another process answered it, or steered the run.
    Withdrawn,
    /// The run has ended. The screen stays until a key.
    Ended,
    /// Close the screen.
    End,
}

/// Messages of the person at the screen to the driver in this process.
pub(crate) enum Reply {
    Answer(String),
    /// The view is closed; output continues in plain lines.
    Over(Left),
}

/// Why the view ended.
pub(crate) enum Left {
    Quit,
    Plain,
    Answer(String),
    /// The driver said so.
    Ended,
    Signal(i32),
    /// Nobody is at the terminal any more.
    Gone,
    Failed(Box<Failure>),
}

/// Folders of the artifacts that can be opened.
pub(crate) struct Shelf {
    /// Without one, changes can't be shown.
    pub(crate) repo: Option<Repo>,
    pub(crate) events: PathBuf,
    pub(crate) artifacts: PathBuf,
    /// The control socket of the run.
    pub(crate) socket: Option<PathBuf>,
    /// Brings artifacts here that are on another machine.
    pub(crate) bring: Option<Bring>,
}

pub(crate) type Bring = Box<dyn Fn() -> Result<(), String> + Send>;

pub(crate) struct Stage {
    view: View,
    follower: Follower,
    shelf: Shelf,
    glance: Tail,
    /// In the process that drives.
    driver: Option<(Receiver<News>, Sender<Reply>)>,
    signal: Arc<AtomicI32>,
    glanced: Option<Instant>,
    asked_who: Option<Instant>,
    looked_back: bool,
}

impl Stage {
    pub(crate) fn new(
        mut view: View,
        shelf: Shelf,
        driver: Option<(Receiver<News>, Sender<Reply>)>,
        signal: Arc<AtomicI32>,
    ) -> Result<Stage, Failure> {
        let follower = Follower::open(&shelf.events, &view.live.run_id)?;
        view.live.catching_up = true;
        let glance = Tail::new(&shelf.artifacts);
        Ok(Stage {
            view,
            follower,
            shelf,
            glance,
            driver,
            signal,
            glanced: None,
            asked_who: None,
            looked_back: false,
        })
    }

    pub(crate) fn play(mut self, mut screen: Screen) -> Left {
        match self.turns(&mut screen) {
            Ok(left) => left,
            Err(Trouble::Terminal(_)) => Left::Gone,
            Err(Trouble::Journal(failure)) => Left::Failed(failure),
        }
    }

    fn turns(&mut self, screen: &mut Screen) -> Result<Left, Trouble> {
        let mut changed = true;
        let mut drawn: Option<Instant> = None;
        loop {
            changed |= screen.pause()?;
            if let Some(left) = self.is_over() {
                return Ok(left);
            }
            let busy = self.take_lines()?;
            let read_up = self.view.live.catching_up && !busy;
            if !busy {
                changed |= self.look_back();
            }
            self.view.live.catching_up &= busy;
            match self.take_news() {
                Heard::End => return Ok(Left::Ended),
                Heard::Something => changed = true,
                Heard::Nothing => {}
            }
            changed |= busy | read_up | self.pass_time() | self.fit(terminal::size());
            let rest = drawn.map_or(Duration::ZERO, |drawn| BETWEEN.saturating_sub(drawn.elapsed()));
            if changed && rest.is_zero() && !terminal::is_hidden() {
                screen.draw(&self.view)?;
                (changed, drawn) = (false, Some(Instant::now()));
            }
            let wait = if busy { Duration::ZERO } else { BETWEEN.min(rest.max(Duration::from_millis(20))) };
            let wait = if changed || busy { wait } else { BETWEEN };
            if terminal::is_hidden() {
                std::thread::sleep(BETWEEN);
                continue;
            }
            for key in screen.keys(wait)? {
                // What is typed is seen at once.
                (changed, drawn) = (true, None);
                if let Some(left) = act(&key, &mut self.view).and_then(|wish| self.grant(wish)) {
                    return Ok(left);
                }
            }
        }
    }

    /// What earlier runs of this repository took; once, as soon as the journal says what was asked for.
    fn look_back(&mut self) -> bool {
        let live = &mut self.view.live;
        let Some(request) = live.run.request.as_ref().filter(|_| !self.looked_back) else { return false };
        self.looked_back = true;
        live.usual = history::usual_time(&self.shelf.events, request, &live.run_id);
        live.usual.is_some()
    }

    fn is_over(&self) -> Option<Left> {
        match self.signal.load(Ordering::SeqCst) {
            0 => terminal::is_broken().then_some(Left::Gone),
            signal => Some(Left::Signal(signal)),
        }
    }

    /// New lines of the journal, a bounded number of them.
    fn take_lines(&mut self) -> Result<bool, Trouble> {
        if self.is_of_fleet() && self.follower.is_another_file() {
            self.begin_again()?;
        }
        let mut entries = Vec::new();
        let mut fault = None;
        let some = self
            .follower
            .more(|line| match log::decode(line) {
                Ok(entry) => entries.push(entry),
                Err(error) => fault = fault.take().or(Some(error)),
            })
            .map_err(|error| Trouble::Journal(Box::new(error.into())))?;
        entries.iter().for_each(|entry| self.view.live.take(entry));
        fault.map_or(Ok(some), |error| Err(Trouble::Journal(Box::new(error.into()))))
    }

    /// The copy of a journal was made anew, since the server has another one now.
    fn begin_again(&mut self) -> Result<(), Trouble> {
        let live = &mut self.view.live;
        self.follower = Follower::open(&self.shelf.events, &live.run_id)
            .map_err(|error| Trouble::Journal(Box::new(error.into())))?;
        let driven = std::mem::take(&mut live.driven);
        *live = LiveRun::new(&live.run_id, driven);
        live.catching_up = true;
        self.looked_back = false;
        self.view.warning = Some((clock::now(), "the journal was written again on the server".to_owned()));
        Ok(())
    }

    fn take_news(&mut self) -> Heard {
        let mut heard = Heard::Nothing;
        let Some((news, _)) = &self.driver else { return heard };
        loop {
            heard = match news.try_recv() {
                Ok(News::AgentLine(order, text)) => {
                    self.view.live.heard(order, &text);
                    Heard::Something
                }
                Ok(News::Warning(text)) => {
                    self.view.warning = Some((clock::now(), bounded(&text)));
                    Heard::Something
                }
                Ok(News::Asked) => {
                    self.view.asked = true;
                    Heard::Something
                }
                Ok(News::Withdrawn) => {
                    self.view.asked = false;
                    Heard::Something
                }
                Ok(News::Ended) => {
                    self.view.stay();
                    Heard::Something
                }
                Ok(News::End) | Err(TryRecvError::Disconnected) => return Heard::End,
                Err(TryRecvError::Empty) => return heard,
            };
        }
    }

    /// Says whether anything that is shown depends on the time that has passed.
    fn pass_time(&mut self) -> bool {
        let (before, now) = (self.view.live.now, clock::now());
        self.view.live.now = now;
        let turn = usize::try_from(now / TURN_MS).unwrap_or(0);
        let turned = self.view.live.moves() && turn != self.view.frame;
        self.view.frame = turn;
        let ticks = self.view.live.run.outcome.is_none() && before / 1_000 != now / 1_000;
        turned | ticks | self.look_around()
    }

    /// The run is driven in this process, and has not ended.
    fn drives(&self) -> bool {
        self.driver.is_some() && !self.view.stays && !self.is_of_fleet()
    }

    fn is_of_fleet(&self) -> bool {
        matches!(self.view.live.driven, Driven::Fleet { .. })
    }

    /// Only for a run of another process: who drives it, and what its agents print.
    fn look_around(&mut self) -> bool {
        if self.drives() || self.is_of_fleet() {
            return false;
        }
        let mut changed = false;
        if self.asked_who.is_none_or(|last| last.elapsed() >= WHO_DRIVES) {
            self.asked_who = Some(Instant::now());
            let driven = driven_by(&self.shelf.events, &self.view.live.run_id);
            changed = driven != self.view.live.driven;
            self.view.live.driven = driven;
        }
        if self.view.live.moves() && self.glanced.is_none_or(|last| last.elapsed() >= GLANCE) {
            self.glanced = Some(Instant::now());
            for (order, text) in self.glance.look(&self.view.live.run) {
                self.view.live.heard(order, &text);
                changed = true;
            }
        }
        changed
    }

    fn fit(&mut self, size: (u16, u16)) -> bool {
        let changed = self.view.size != size;
        self.view.size = size;
        if let Over::Page(page) = &mut self.view.over {
            page.fit(usize::from(size.0));
        }
        changed
    }

    fn grant(&mut self, wish: Wish) -> Option<Left> {
        match wish {
            Wish::Leave => return Some(Left::Quit),
            Wish::Plain => return Some(Left::Plain),
            Wish::Stop if !self.drives() => self.steer(&Request::Stop, "The run is being stopped."),
            Wish::Stop => {
                // The same way as Ctrl-C, which the driver listens to.
                archeflow_host::platform::process::interrupt_self();
            }
            Wish::Pause => {
                self.steer(
                    &Request::Pause { by: Requester::Socket },
                    "The run is paused: running agents finish, nothing new starts.",
                );
            }
            Wish::Resume => self.steer(&Request::Resume { by: Requester::Socket }, "The run is resumed."),
            Wish::Answer(text) => match self.driver.as_ref().filter(|_| self.drives()) {
                Some((_, replies)) => {
                    self.view.asked = false;
                    let _ = replies.send(Reply::Answer(text));
                }
                None if self.view.live.driven == Driven::Nobody => return Some(Left::Answer(text)),
                None => {
                    // Only the question that is shown here: another one may be open by now.
                    let question = self.view.live.run.question().map(|(seq, _)| seq);
                    self.steer(
                        &Request::Answer { text, question, by: Requester::Socket },
                        "The answer is sent.",
                    );
                }
            },
            Wish::Open(start) => self.view.over = Over::Page(self.shelf.open(&start)),
            Wish::Diff { from, to } => self.view.over = Over::Page(self.shelf.diff(&from, &to)),
        }
        None
    }

    /// Sends a request to the process that drives the run, and shows the result.
    fn steer(&mut self, request: &Request, done: &str) {
        let said = match &self.shelf.socket {
            None => "The run has no control socket: its path would be too long.".to_owned(),
            Some(socket) => match client::send(socket, request) {
                Ok(_) => done.to_owned(),
                Err(error) => format!("Refused: {error}."),
            },
        };
        self.view.over = Over::Note(vec![said]);
    }
}

enum Heard {
    Nothing,
    Something,
    End,
}

enum Trouble {
    Terminal(#[expect(dead_code, reason = "a closed terminal can't show a reason")] io::Error),
    Journal(Box<Failure>),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Trouble {
        Trouble::Terminal(error)
    }
}

/// By the words beside the journal's lock.
pub(crate) fn driven_by(events: &std::path::Path, run_id: &str) -> Driven {
    Journal::driver(events, run_id)
        .map_or(Driven::Nobody, |holder| Driven::Elsewhere { pid: holder.pid, host: holder.host })
}

impl Shelf {
    /// What an agent delivered; where that is not there, what it has printed so far.
    fn open(&self, start: &OpenedStart) -> Page {
        let OpenedStart { seq, archetype, cycle, attempt, artifact } = start;
        if let Some(name) = artifact.as_deref().filter(|name| names::valid_name(name)) {
            let archived = self.artifacts.join(format!("cycle-{cycle}")).join(name);
            let look = || read(&archived).or_else(|| read(&self.artifacts.join(name)));
            let text = match &self.bring {
                None => look(),
                // Under the same name there may be a newer one.
                Some(bring) => match bring() {
                    Ok(()) => look(),
                    Err(why) => look().or_else(|| Some(format!("It can't be brought here: {why}"))),
                },
            };
            if let Some(text) = text {
                return Page::text(&format!("{name}, cycle {cycle}"), &text);
            }
        }
        let mut text = String::new();
        let folder = self.artifacts.join("attempts").join(format!("{seq}-{archetype}"));
        for (file, what) in [
            ("answer.md", "printed so far"),
            ("stream.jsonl", "what its client says"),
            ("stderr.log", "on standard error"),
            ("brief.md", "its brief"),
        ] {
            let part = names::valid_name(archetype).then(|| read(&folder.join(file))).flatten();
            if let Some(part) = part.filter(|part| !part.trim().is_empty()) {
                text.push_str(&format!("# {what}: {file}\n\n{part}\n\n"));
            }
        }
        if text.is_empty() {
            text = "Nothing is there.".to_owned();
        }
        Page::text(&format!("{archetype}, cycle {cycle}, attempt {attempt}"), &text)
    }

    fn diff(&self, from: &str, to: &str) -> Page {
        let (Ok(base), Ok(commit)) = (ObjectId::parse(from.as_bytes()), ObjectId::parse(to.as_bytes()))
        else {
            return Page::diff(&Diff::missing("The log names no commits for it."));
        };
        let Some(repo) = &self.repo else {
            return Page::diff(&Diff::missing("The commits are in the clone of the run's worker, not here."));
        };
        match change::diff_text(repo, &base, &commit, diff::BYTES) {
            Ok(read) => {
                Page::diff(&Diff::read(&read.text(), read.truncated_at, format!("git diff {from}...{to}")))
            }
            Err(error) => Page::diff(&Diff::missing(format!("The commits are not there: {error}"))),
        }
    }
}

fn read(path: &std::path::Path) -> Option<String> {
    let bytes = files::read_capped(path, LARGEST).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
