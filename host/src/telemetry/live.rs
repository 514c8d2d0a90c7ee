//! Sends a run while it is driven: at the end of each cycle and when it ends, on a thread of its own, after the lines are
//! on disk. Nothing waits for it but [`finish`], at the very end of the program.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use archeflow_core::event::{CycleBoundary, Entry, QuestionAsked, RunComplete, SessionEnd};
use archeflow_core::model::Seq;
use archeflow_core::settings::TelemetrySettings;

use super::target::{OtlpTarget, is_live};
use super::{export, of_run};
use crate::store::journal::Journal;
use crate::{failpoint, log};

/// The longest one export may take, all its messages together.
const LIMIT: Duration = Duration::from_secs(2);
/// The longest the program waits at its end: for one that is under way, and for the last.
const LAST_WAIT: Duration = Duration::from_secs(5);

/// What went wrong and was not reported yet.
type Troubles = Arc<Mutex<Vec<String>>>;

enum Post {
    /// Send what is new.
    Send,
    /// The program ends; reply once everything was tried.
    Finish(Sender<()>),
}

static STARTED: Mutex<Vec<(Sender<Post>, Troubles)>> = Mutex::new(Vec::new());

/// The way to the thread that sends.
pub struct LiveTelemetry {
    post: Sender<Post>,
    troubles: Troubles,
}

impl LiveTelemetry {
    /// Nothing where no address is set. A wrong one is reported as a collector that is down is.
    pub fn start(
        settings: &TelemetrySettings,
        variables: &[(OsString, OsString)],
        run_id: &str,
        events: &Path,
        artifacts: &Path,
    ) -> Option<LiveTelemetry> {
        if !is_live(settings, variables) {
            return None;
        }
        let (post, posts) = channel();
        let troubles = Troubles::default();
        match OtlpTarget::of(None, settings, variables) {
            Ok(target) => {
                let mut sender = LiveSender {
                    target,
                    content: settings.content,
                    run_id: run_id.to_owned(),
                    journal: events.join(format!("{run_id}.jsonl")),
                    artifacts: artifacts.to_owned(),
                    sent: 0,
                    failed: false,
                    troubles: Arc::clone(&troubles),
                };
                let work = move || sender.work(&posts);
                if let Err(error) = thread::Builder::new().name("telemetry".into()).spawn(work) {
                    lock(&troubles).push(trouble(run_id, &error.to_string(), ""));
                }
            }
            Err(error) => lock(&troubles).push(trouble(run_id, &error.to_string(), error.remedy())),
        }
        STARTED.lock().unwrap_or_else(PoisonError::into_inner).push((post.clone(), Arc::clone(&troubles)));
        Some(LiveTelemetry { post, troubles })
    }

    /// These lines are on disk.
    pub fn wrote(&self, entries: &[Entry]) {
        let is_due = |entry: &Entry| {
            entry.event.body::<CycleBoundary>().is_some()
                || entry.event.body::<RunComplete>().is_some()
                || entry.event.body::<QuestionAsked>().is_some()
                || entry.event.body::<SessionEnd>().is_some()
        };
        if entries.iter().any(is_due) {
            // A thread that is gone was reported when it could not be started.
            let _ = self.post.send(Post::Send);
        }
    }

    /// What went wrong since this was last asked: the first failure of this process, and no other.
    pub fn troubles(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.troubles))
    }
}

/// Waits for what is on its way, for a few seconds at most. Returns what went wrong. Call once, at the end.
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

struct LiveSender {
    target: OtlpTarget,
    content: bool,
    run_id: String,
    journal: PathBuf,
    artifacts: PathBuf,
    /// Up to this line a collector has everything.
    sent: Seq,
    failed: bool,
    troubles: Troubles,
}

impl LiveSender {
    fn work(&mut self, posts: &Receiver<Post>) {
        while let Ok(first) = posts.recv() {
            // Several that waited are one.
            let mut ending = None;
            let mut due = false;
            for post in std::iter::once(first).chain(posts.try_iter()) {
                match post {
                    Post::Send => due = true,
                    Post::Finish(reply) => ending = Some(reply),
                }
            }
            if due
                && let Err((why, remedy)) = self.send()
                && !std::mem::replace(&mut self.failed, true)
            {
                lock(&self.troubles).push(trouble(&self.run_id, &why, remedy));
            }
            if ending.is_some() {
                // Dropping it is the reply.
                return;
            }
        }
    }

    fn send(&mut self) -> Result<(), (String, &'static str)> {
        let read = |error: log::Error| (error.to_string(), "");
        let text = Journal::read(&self.journal).map_err(|error| read(error.into()))?;
        let entries = log::entries(&text).map_err(read)?;
        let telemetry = of_run(&self.run_id, &entries, &self.artifacts, self.content);
        let line = telemetry.line;
        let telemetry = telemetry.after(self.sent);
        let within = failpoint::notification_limit(LIMIT);
        export(&telemetry, &self.target, Some(within))
            .map_err(|error| (error.to_string(), error.remedy()))?;
        self.sent = line;
        Ok(())
    }
}

fn trouble(run_id: &str, why: &str, remedy: &str) -> String {
    let remedy = if remedy.is_empty() { String::new() } else { format!(". {remedy}") };
    format!(
        "telemetry was not sent: {why}{remedy}. The run is not affected; later: archeflow export otlp {run_id}"
    )
}

fn lock(troubles: &Troubles) -> MutexGuard<'_, Vec<String>> {
    troubles.lock().unwrap_or_else(PoisonError::into_inner)
}
