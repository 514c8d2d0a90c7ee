//! The view in the process that drives the run. The screen has a thread of its own, so that it moves and reads keys
//! also while the driver is busy; what it needs to know it reads from the journal.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use archeflow_core::event::{Entry, QuestionAsked};
use archeflow_core::model::Seq;
use archeflow_core::projections::live::Driven;
use archeflow_core::run::Run;
use archeflow_host::drive::{Asked, Driver, RunObserver};

use super::View;
use super::stage::{Left, News, Reply, Shelf, Stage};
use super::terminal::Screen;
use crate::commands::steer::own_socket;
use crate::failure::Failure;
use crate::render::line::Lines;
use crate::render::text::Paint;

pub(crate) struct Live {
    run_id: String,
    interrupted: Arc<AtomicBool>,
    news: Sender<News>,
    replies: Receiver<Reply>,
    screen: Option<JoinHandle<()>>,
    /// Printed again after the screen is closed, so that they are not missed.
    warnings: Vec<String>,
    /// After the person has left the view.
    plain: Option<Lines>,
}

impl Live {
    pub(crate) fn begin(driver: &Driver, interrupted: Arc<AtomicBool>) -> Result<Live, Failure> {
        let world = &driver.world;
        let run_id = world.run_id.clone();
        let shelf = Shelf {
            repo: Some(world.repo.clone()),
            events: world.places.events(),
            artifacts: world.artifacts(),
            socket: Some(own_socket(world)),
            bring: None,
        };
        let view = View::new(&run_id, Driven::Here, Paint::for_stdout().0);
        let (news, hears) = channel();
        let (says, replies) = channel();
        let stage = Stage::new(view, shelf, Some((hears, says.clone())), Arc::new(AtomicI32::new(0)))?;
        let screen = Screen::enter().map_err(|error| no_screen(&error))?;
        let play = move || {
            let left = stage.play(screen);
            let _ = says.send(Reply::Over(left));
        };
        let screen = std::thread::Builder::new()
            .name("screen".into())
            .spawn(play)
            .map_err(|error| no_screen(&error))?;
        let warnings = Vec::new();
        Ok(Live { run_id, interrupted, news, replies, screen: Some(screen), warnings, plain: None })
    }

    fn say(&self, news: News) {
        // A closed screen has sent a message, which is read before the next question.
        let _ = self.news.send(news);
    }

    /// Takes over from a screen that has ended.
    fn look(&mut self, run: &Run) {
        while self.plain.is_none() {
            match self.replies.try_recv() {
                Ok(Reply::Over(left)) => self.go_plain(run, left),
                Ok(Reply::Answer(_)) => {}
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => self.go_plain(run, Left::Gone),
            }
        }
    }

    fn go_plain(&mut self, run: &Run, left: Left) {
        self.close();
        if let Left::Failed(failure) = left {
            tell!("warning: the view ended: {}", crate::render::text::safe(&failure.message));
        }
        let mut lines = Lines::new(&self.run_id, Arc::clone(&self.interrupted));
        lines.join(run);
        self.plain = Some(lines);
    }

    /// The run has ended: the screen stays until a key or a signal, so that its end can be read.
    pub(crate) fn stay(&mut self) {
        if self.plain.is_some() {
            return;
        }
        self.say(News::Ended);
        while !self.interrupted.load(Ordering::SeqCst) {
            match self.replies.recv_timeout(Duration::from_millis(100)) {
                Ok(Reply::Answer(_)) | Err(RecvTimeoutError::Timeout) => {}
                Ok(Reply::Over(_)) | Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Closes the screen and prints the warnings of that time.
    fn close(&mut self) {
        self.say(News::End);
        if let Some(screen) = self.screen.take() {
            let _ = screen.join();
        }
        super::terminal::leave();
        for warning in std::mem::take(&mut self.warnings) {
            tell!("warning: {}", crate::render::text::safe(&warning));
        }
    }

    fn answered(
        &mut self,
        run: &Run,
        question: &QuestionAsked,
        elsewhere: &mut dyn FnMut() -> bool,
    ) -> Asked {
        self.say(News::Asked);
        loop {
            if self.interrupted.load(Ordering::SeqCst) {
                return Asked::Interrupted;
            }
            if elsewhere() {
                self.say(News::Withdrawn);
                return Asked::Elsewhere;
            }
            let left = match self.replies.recv_timeout(Duration::from_millis(100)) {
                Ok(Reply::Answer(text)) => return Asked::Answer(text),
                Err(RecvTimeoutError::Timeout) => continue,
                Ok(Reply::Over(left)) => left,
                Err(RecvTimeoutError::Disconnected) => Left::Gone,
            };
            self.go_plain(run, left);
            return self.plain.as_mut().map_or(Asked::Left, |lines| lines.ask(run, question, elsewhere));
        }
    }
}

impl RunObserver for Live {
    fn wrote(&mut self, run: &Run, entry: &Entry) {
        self.look(run);
        if let Some(lines) = &mut self.plain {
            lines.wrote(run, entry);
        }
    }

    fn agent_line(&mut self, order: Seq, text: &str) {
        match &mut self.plain {
            Some(lines) => lines.agent_line(order, text),
            None => self.say(News::AgentLine(order, text.to_owned())),
        }
    }

    fn tick(&mut self, run: &Run) {
        self.look(run);
        if let Some(lines) = &mut self.plain {
            lines.tick(run);
        }
    }

    fn warn(&mut self, text: &str) {
        match &mut self.plain {
            Some(lines) => lines.warn(text),
            None => {
                self.warnings.push(text.to_owned());
                self.say(News::Warning(text.to_owned()));
            }
        }
    }

    fn ask(&mut self, run: &Run, question: &QuestionAsked, elsewhere: &mut dyn FnMut() -> bool) -> Asked {
        self.look(run);
        match &mut self.plain {
            Some(lines) => lines.ask(run, question, elsewhere),
            None => self.answered(run, question, elsewhere),
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.close();
    }
}

pub(crate) fn no_screen(error: &std::io::Error) -> Failure {
    Failure::new(30, "environment", format!("the terminal can't be used: {error}"), "Leave out --tui.")
}
