//! The log of a sprint on the bus. The local log is written first; then its lines are published, and only then anything
//! follows from them. So a conductor that was overtaken orders nothing more, and another one finds all there is.

use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use archeflow_host::sprint::crew::NotKept;

use crate::bus::Bus;
use crate::journal::{Found, JournalFault, JournalWriter, LocalLines};
use crate::names;

type Question = (u64, SyncSender<Result<(), NotKept>>);

/// One session that publishes the log of a sprint.
pub struct SprintLog {
    questions: Mutex<Sender<Question>>,
}

impl SprintLog {
    /// `found` is what the bus has; the local log begins with it. The session's name is unique among all there ever are.
    pub fn start(bus: Arc<dyn Bus>, sprint: &str, session: &str, found: Found, file: &Path) -> SprintLog {
        let (questions, asked) = channel::<Question>();
        let (subject, sprint) = (names::sprint_journal(sprint), sprint.to_owned());
        let (session, local) = (session.to_owned(), FileLines::of(file));
        // The writer borrows the bus, so both live on one thread. It ends with the crew.
        thread::spawn(move || {
            let mut writer = JournalWriter::new(&*bus, subject, session, &found);
            while let Ok((lines, tell)) = asked.recv() {
                let end = writer.publish(&local, lines).map_err(|fault| not_kept(&sprint, &fault));
                let _ = tell.send(end);
            }
        });
        SprintLog { questions: Mutex::new(questions) }
    }

    /// Publishes the local log up to this line.
    pub fn publish(&self, lines: u64) -> Result<(), NotKept> {
        let (tell, answer) = sync_channel(1);
        let asked = self.questions.lock().unwrap_or_else(PoisonError::into_inner).send((lines, tell));
        let gone = || NotKept::Yet("the log is not published any more".to_owned());
        asked.map_err(|_| gone())?;
        answer.recv().unwrap_or_else(|_| Err(gone()))
    }
}

fn not_kept(sprint: &str, fault: &JournalFault) -> NotKept {
    match fault {
        JournalFault::Fenced { by } => NotKept::Fenced(format!("{by} has taken {sprint} over")),
        JournalFault::Bus(error) => NotKept::Yet(error.to_string()),
        JournalFault::Local(_) | JournalFault::Broken { .. } => NotKept::Yet(fault.to_string()),
    }
}

/// The lines of a journal's file.
pub struct FileLines {
    path: PathBuf,
    /// Where a line begins that was asked for before: the next ones are behind it.
    known: Mutex<(u64, u64)>,
}

impl FileLines {
    pub fn of(path: &Path) -> FileLines {
        FileLines { path: path.to_owned(), known: Mutex::new((1, 0)) }
    }

    fn read(&self, first: u64, bytes: usize) -> std::io::Result<Vec<u8>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut line, mut at) = if known.0 <= first { *known } else { (1, 0) };
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(at))?;
        let (mut file, mut found, mut next) = (BufReader::new(file), Vec::new(), Vec::new());
        loop {
            next.clear();
            let read = file.read_until(b'\n', &mut next)?;
            // A line without its end is still being written.
            if next.last() != Some(&b'\n') {
                return Ok(found);
            }
            if line >= first {
                if !found.is_empty() && found.len() + next.len() > bytes {
                    return Ok(found);
                }
                found.extend_from_slice(&next);
            } else {
                at += read as u64;
                *known = (line + 1, at);
            }
            line += 1;
        }
    }
}

impl LocalLines for FileLines {
    fn lines_from(&self, first: u64, bytes: usize) -> Result<Vec<u8>, String> {
        self.read(first, bytes).map_err(|error| format!("{}: {error}", self.path.display()))
    }
}
