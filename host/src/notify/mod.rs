//! Notifies a person who does not look that something waits for them (docs/notifications.md).
//!
//! The process that drives a run or a sprint says here what waits, once its line is on disk. A thread of its own decides
//! when a message is due ([`archeflow_core::rules::notifying`]), and each channel sends on another. Nothing waits for them
//! but [`finish`], at the very end of the program. A channel that fails is reported once.

mod channels;
mod program;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use archeflow_core::model::Seq;
use archeflow_core::projections::inbox::{InboxItem, InboxRun};
use archeflow_core::projections::notice::Notice;
use archeflow_core::rules::notifying::{NoticeFacts, Sending, sending};
use archeflow_core::run::Run;
use archeflow_core::settings::NotifySettings;

use crate::store::notified;
use crate::store::presence::Watched;
use crate::{clock, failpoint, proc};

pub use channels::NotifyEnv;
use channels::{Channel, Message};

/// The longest the program waits at its end for messages on their way: a little longer than a channel may take.
const LAST_WAIT: Duration = Duration::from_secs(6);

/// Messages to the thread that decides.
enum Post {
    Open(Box<OpenNotice>),
    Closed(Subject),
    /// The person at this terminal did something.
    Acted,
    Delivered {
        channel: &'static str,
        subject: Subject,
        line: Seq,
        result: Result<(), String>,
    },
    /// The program ends; reply once everything that is due was tried.
    Finish(Sender<()>),
}

/// What a message is about: a run or a sprint, by the folder it is in and its id.
type Subject = (PathBuf, String);

struct OpenNotice {
    notice: Notice,
    subject: Subject,
    /// Nothing is sent while somebody looks at one of these.
    watched: Vec<Watched>,
    /// Whether it still waits; for what other processes may have changed.
    still: Option<Still>,
    /// Tried last.
    sent_at: Option<u64>,
}

type Still = Box<dyn Fn() -> bool + Send>;

/// What went wrong and was not reported yet.
type Troubles = Arc<Mutex<Vec<String>>>;

/// The thread that decides, for the end of the program.
static STARTED: Mutex<Vec<(Sender<Post>, Troubles)>> = Mutex::new(Vec::new());

/// The way to the thread that decides.
pub struct Notifier {
    on: Vec<String>,
    post: Sender<Post>,
    troubles: Troubles,
}

impl Notifier {
    /// Nothing where no channel is set, and inside of a run or a sprint: the outermost process sends. `attended`: a
    /// person sits at the terminal of this process.
    pub fn start(
        settings: &NotifySettings,
        env: NotifyEnv,
        state: &Path,
        attended: bool,
    ) -> Option<Notifier> {
        let is_usable =
            |channel: &Channel| !matches!(channel, Channel::Terminal(_)) || env.terminal.is_some();
        let mut channels = Channel::all(settings);
        channels.retain(is_usable);
        if channels.is_empty() || settings.on.is_empty() || proc::inside_an_attempt() {
            return None;
        }
        let (post, posts) = channel();
        let troubles = Troubles::default();
        let env = Arc::new(env);
        let mut queues = Vec::new();
        for one in channels {
            let (send, receive) = channel::<Delivery>();
            let name = one.name();
            let (env, post) = (Arc::clone(&env), post.clone());
            let work = move || deliver(&one, &env, &receive, &post);
            match thread::Builder::new().name(format!("notify {name}")).spawn(work) {
                Ok(_) => queues.push((name, send)),
                Err(error) => lock(&troubles).push(trouble(name, &error.to_string())),
            }
        }
        let mut desk = Desk {
            state: state.to_owned(),
            link: settings.link.clone(),
            queues,
            open: Vec::new(),
            on_their_way: 0,
            acted_at: attended.then(clock::now),
            failed: BTreeSet::new(),
            troubles: Arc::clone(&troubles),
        };
        let decide = move || desk.work(&posts);
        let started = thread::Builder::new().name("notify".into()).spawn(decide);
        if let Err(error) = started {
            lock(&troubles).push(trouble("any channel", &error.to_string()));
        }
        STARTED.lock().unwrap_or_else(PoisonError::into_inner).push((post.clone(), Arc::clone(&troubles)));
        Some(Notifier { on: settings.on.clone(), post, troubles })
    }

    /// The person at this terminal did something, so they are there.
    pub fn acted(&self) {
        self.send(Post::Acted);
    }

    /// A run as it is now: it waits for a person, or it does not.
    pub fn about_run(&self, root: &Path, id: &str, run: &Run) {
        match notice_of(root, id, run) {
            Some(notice) => self.open(notice, (root.to_owned(), id.to_owned()), Vec::new(), None),
            None => self.closed(root, id),
        }
    }

    /// A fault ended the driving of a run before its end.
    pub fn about_fault(&self, root: &Path, id: &str, run: &Run, why: &str) {
        if let Some(item) = inbox_item(root, id, run, true) {
            let notice = Notice::of_fault(&item, run, why);
            self.open(notice, (root.to_owned(), id.to_owned()), Vec::new(), None);
        }
    }

    /// The same as [`Notifier::about_run`] for a run of a sprint, which other processes drive: `look` reads it again later.
    pub fn about_item(
        &self,
        root: &Path,
        id: &str,
        run: &Run,
        sprint: Watched,
        look: impl Fn(&dyn Fn(&Run) -> bool) -> bool + Send + 'static,
    ) {
        let Some(notice) = notice_of(root, id, run) else { return self.closed(root, id) };
        let (place, name, line) = (root.to_owned(), id.to_owned(), notice.line);
        let still: Still = Box::new(move || {
            look(&|run| notice_of(&place, &name, run).is_some_and(|notice| notice.line == line))
        });
        self.open(notice, (root.to_owned(), id.to_owned()), vec![sprint], Some(still));
    }

    /// A sprint waits for a person, or has ended.
    pub fn about_sprint(&self, root: &Path, watched: Watched, notice: Notice) {
        let subject = (root.to_owned(), notice.run.clone());
        self.open(notice, subject, vec![watched], None);
    }

    /// It no longer waits.
    pub fn closed(&self, root: &Path, id: &str) {
        self.send(Post::Closed((root.to_owned(), id.to_owned())));
    }

    fn open(&self, notice: Notice, subject: Subject, also: Vec<Watched>, still: Option<Still>) {
        if !self.on.iter().any(|on| on == notice.event.name()) {
            return self.send(Post::Closed(subject));
        }
        let mut watched = vec![Watched::run(&subject.0, &subject.1), Watched::Inbox];
        watched.extend(also);
        self.send(Post::Open(Box::new(OpenNotice { notice, subject, watched, still, sent_at: None })));
    }

    fn send(&self, post: Post) {
        // A thread that is gone was reported when it could not be started.
        let _ = self.post.send(post);
    }

    /// What went wrong since this was last asked. Each channel is in it once.
    pub fn troubles(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.troubles))
    }
}

/// Waits for messages on their way, for a few seconds at most. Returns what went wrong. Call once, at the end.
pub fn finish() -> Vec<String> {
    let started = std::mem::take(&mut *STARTED.lock().unwrap_or_else(PoisonError::into_inner));
    let mut troubles = Vec::new();
    for (post, left) in started {
        let (reply, done) = channel();
        if post.send(Post::Finish(reply)).is_ok() {
            let _ = done.recv_timeout(failpoint::last_wait(LAST_WAIT));
        }
        troubles.append(&mut lock(&left));
    }
    troubles
}

/// Sends a test message over every channel that is set, and says how each went.
pub fn try_all(settings: &NotifySettings, env: &NotifyEnv) -> Vec<(&'static str, Result<(), String>)> {
    let message = Message::new(Notice::test(), settings.link.clone(), clock::now());
    let channels = Channel::all(settings);
    channels.iter().map(|channel| (channel.name(), channel.send(&message, env))).collect()
}

fn notice_of(root: &Path, id: &str, run: &Run) -> Option<Notice> {
    Notice::of_run(&inbox_item(root, id, run, false)?, run)
}

fn inbox_item(root: &Path, id: &str, run: &Run, interrupted: bool) -> Option<InboxItem> {
    let repository = &root.display().to_string();
    InboxItem::of(InboxRun { run_id: id, name: id, repository, here: false, interrupted, run })
}

fn trouble(channel: &str, why: &str) -> String {
    format!(
        "a message by {channel} could not be sent: {why}. Runs are not affected; to try it: archeflow notify test"
    )
}

/// Not a channel: what was sent is recorded in the state folder.
const RECORD: &str = "the record";

fn unrecorded(why: &str) -> String {
    format!("a message was sent, but that could not be recorded, so it may be sent again: {why}")
}

fn lock(troubles: &Troubles) -> MutexGuard<'_, Vec<String>> {
    troubles.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A message for a channel.
struct Delivery {
    subject: Subject,
    line: Seq,
    message: Arc<Message>,
}

fn deliver(channel: &Channel, env: &NotifyEnv, receive: &Receiver<Delivery>, post: &Sender<Post>) {
    for Delivery { subject, line, message } in receive {
        let result = channel.send(&message, env);
        if post.send(Post::Delivered { channel: channel.name(), subject, line, result }).is_err() {
            return;
        }
    }
}

/// What the thread that decides knows.
struct Desk {
    state: PathBuf,
    link: Option<String>,
    queues: Vec<(&'static str, Sender<Delivery>)>,
    open: Vec<OpenNotice>,
    /// Messages that a channel has not answered for.
    on_their_way: usize,
    /// Nothing if nobody sits at the terminal.
    acted_at: Option<u64>,
    /// Channels that were reported.
    failed: BTreeSet<&'static str>,
    troubles: Troubles,
}

impl Desk {
    fn work(&mut self, posts: &Receiver<Post>) {
        let mut ending = None;
        loop {
            let next = self.look(clock::now());
            if ending.is_some() && self.on_their_way == 0 {
                // Dropping it is the reply.
                return;
            }
            let heard = match next {
                Some(wait) => posts.recv_timeout(wait),
                None => posts.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match heard {
                Ok(Post::Finish(reply)) => ending = Some(reply),
                Ok(post) => self.hear(post, clock::now()),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn hear(&mut self, post: Post, now: u64) {
        match post {
            Post::Open(mut notice) => {
                let (root, id) = &notice.subject;
                let known = self.open.iter().position(|open| open.subject == notice.subject);
                let known = known.map(|at| self.open.swap_remove(at));
                let here = known.filter(|known| known.notice.line == notice.notice.line);
                let here = here.and_then(|known| known.sent_at);
                let line = notice.notice.line;
                notice.sent_at = here.or_else(|| notified::sent_at(&self.state, root, id, line));
                self.open.push(*notice);
            }
            Post::Closed(subject) => self.open.retain(|open| open.subject != subject),
            Post::Acted => self.acted_at = self.acted_at.map(|_| now),
            Post::Delivered { channel, subject: (root, id), line, result } => {
                self.on_their_way = self.on_their_way.saturating_sub(1);
                let kept = result.map_err(|why| (channel, why)).and_then(|()| {
                    let kept = notified::remember(&self.state, &root, &id, line, now);
                    kept.map_err(|error| (RECORD, error.to_string()))
                });
                if let Err((what, why)) = kept
                    && self.failed.insert(what)
                {
                    let words = if what == RECORD { unrecorded(&why) } else { trouble(what, &why) };
                    lock(&self.troubles).push(words);
                }
            }
            Post::Finish(_) => {}
        }
    }

    /// Sends what is due, and says when to look again.
    fn look(&mut self, now: u64) -> Option<Duration> {
        let mut next = None;
        let mut gone = Vec::new();
        for (at, open) in self.open.iter_mut().enumerate() {
            let unwatched =
                NoticeFacts { sent_at: open.sent_at, watched: false, acted_at: self.acted_at, now };
            // Asking costs a look at a few files, so it comes last.
            let wait = match sending(unwatched) {
                Sending::Now => {
                    let watched = open.watched.iter().any(|one| one.is_watched(&self.state));
                    sending(NoticeFacts { watched, ..unwatched })
                }
                later @ Sending::Later(_) => later,
            };
            match wait {
                Sending::Later(ms) => next = Some(next.map_or(ms, |next: u64| next.min(ms))),
                Sending::Now if open.still.as_ref().is_some_and(|still| !still()) => gone.push(at),
                Sending::Now => {
                    open.sent_at = Some(now);
                    let message = Arc::new(Message::new(open.notice.clone(), self.link.clone(), now));
                    for (_, queue) in &self.queues {
                        let delivery = Delivery {
                            subject: open.subject.clone(),
                            line: open.notice.line,
                            message: Arc::clone(&message),
                        };
                        self.on_their_way += usize::from(queue.send(delivery).is_ok());
                    }
                    next = Some(next.unwrap_or(u64::MAX).min(archeflow_core::rules::notifying::AGAIN_MS));
                }
            }
        }
        gone.into_iter().rev().for_each(|at| drop(self.open.swap_remove(at)));
        next.map(Duration::from_millis)
    }
}

#[cfg(test)]
mod tests;
