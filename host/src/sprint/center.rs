//! `docs/orchestra/control-center.md` and `docs/orchestra/session-log.md`: what people find when they come back.
//!
//! Both follow from the log, so they can be written again at any time. People write in them too: of the control
//! center only the text between the two markers is generated, and the rest is kept. The session log only grows.
//! What goes wrong here is a warning; no sprint stops for it.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use archeflow_core::sprint::chronicle::SprintSessionEnd;

use super::crew::SprintSetup;
use super::drive::Error;
use super::page::{self, PageFacts};
use super::queue::QueueFolder;
use super::queue_watch::QueueWatch;
use super::reading::SprintReader;
use crate::clock;
use crate::platform::files::OFlags;
use crate::store::dir::Dir;
use crate::store::files;
use crate::store::lock::Lock;

const CENTER: &str = "control-center.md";
const SESSIONS: &str = "session-log.md";
const BEGIN: &str =
    "<!-- archeflow: begin. Everything from here to the end mark is written by `archeflow sprint run`. -->";
const END: &str = "<!-- archeflow: end -->";
/// How our lines begin, whatever follows in a later release.
const BEGINS: &str = "<!-- archeflow: begin";
const ENDS: &str = "<!-- archeflow: end";
/// People write more than we do, but no books.
const LARGEST: u64 = 16 << 20;
const PATIENCE: Duration = Duration::from_secs(10);

/// The two pages of a sprint that is driven, which reads on in its log as it grows.
#[derive(Default)]
pub(super) struct ControlCenter {
    reading: Option<SprintReader>,
    /// There is something new that is not on the pages yet.
    is_due: bool,
    last: Option<(Instant, Duration)>,
}

impl ControlCenter {
    /// Something is to be shown. What concerns people most is shown at once.
    pub(super) fn is_due(&mut self, at_once: bool) {
        self.is_due = true;
        if at_once {
            self.last = None;
        }
    }

    /// Writes both if they are due. Where they take long, they are written the less often: they take one part in twenty
    /// of the time at most.
    pub(super) fn keep(&mut self, setup: &SprintSetup, queue: &QueueWatch) -> Vec<String> {
        let is_early = self.last.is_some_and(|(at, took)| at.elapsed() < took * 20);
        if !self.is_due || is_early {
            return Vec::new();
        }
        let begun = Instant::now();
        let reading = match self.reading.take() {
            Some(mut reading) => reading.more().map(|_| reading),
            None => SprintReader::open(&setup.place, &setup.sprint_id),
        };
        let wrong = match reading {
            Ok(reading) => {
                let wrong = write(setup, &reading, queue);
                self.reading = Some(reading);
                wrong
            }
            Err(error) => vec![unwritten(&error)],
        };
        (self.is_due, self.last) = (false, Some((begun, begun.elapsed())));
        wrong
    }
}

/// Writes both again from the log. Returns the errors.
fn write(setup: &SprintSetup, reading: &SprintReader, queue: &QueueWatch) -> Vec<String> {
    let (place, projects) = (&setup.place, setup.projects.as_path());
    let written = (|| -> Result<Vec<String>, Error> {
        let now = clock::now();
        let copy = queue.now(place, now)?;
        let facts = PageFacts { reading, queue: &copy.queue, place, projects, now };
        let _lock = Lock::take(&place.sprints()?, "center", PATIENCE).map_err(super::queue::Error::from)?;
        let desk = place.desk()?;
        let mut wrong = Vec::new();
        wrong.extend(write_center(&desk, &facts).err());
        wrong.extend(log_sessions(&desk, &facts).err());
        Ok(wrong)
    })();
    written.unwrap_or_else(|error| vec![unwritten(&error)])
}

fn unwritten(error: &Error) -> String {
    format!("the control center was not written: {error}")
}

/// The path of the file.
pub fn file(place: &QueueFolder) -> PathBuf {
    place.file().with_file_name(CENTER)
}

fn write_center(desk: &Dir, facts: &PageFacts<'_>) -> Result<(), String> {
    let path = desk.path().join(CENTER);
    let told = |error: files::Error| format!("{} was not written: {error}", path.display());
    let before = read(desk, CENTER).map_err(told)?;
    let text = put(&before, &page::center(facts))
        .map_err(|why| format!("{}:{why}. It was left as it is; mend or remove the mark", path.display()))?;
    if text == before {
        return Ok(());
    }
    files::replace_alone(desk, CENTER, text.as_bytes()).map_err(told)
}

/// Replaces our part of a page. The text before and after it stays.
fn put(page: &str, ours: &str) -> Result<String, String> {
    let block = format!("{BEGIN}\n\n{}\n\n{END}\n", ours.trim_end());
    let marks = |mark: &str| -> Vec<usize> {
        let numbered = page.lines().enumerate();
        numbered.filter(|(_, line)| line.starts_with(mark)).map(|(n, _)| n).collect()
    };
    let lines: Vec<&str> = page.split_inclusive('\n').collect();
    match (&marks(BEGINS)[..], &marks(ENDS)[..]) {
        ([], []) if page.trim().is_empty() => Ok(block),
        ([], []) => Ok(format!("{}\n\n{block}", page.trim_end())),
        ([begin], [end]) if begin < end => {
            Ok(format!("{}{block}{}", lines[..*begin].concat(), lines[end + 1..].concat()))
        }
        ([], [end, ..]) => Err(format!("{}: an end mark without a begin mark", end + 1)),
        ([begin], _) => Err(format!("{}: a begin mark without one end mark behind it", begin + 1)),
        ([_, second, ..], _) => Err(format!("{}: a second begin mark", second + 1)),
    }
}

/// Every session that is over and is not in the log yet, at its end. A session that was killed is recorded by the next.
fn log_sessions(desk: &Dir, facts: &PageFacts<'_>) -> Result<(), String> {
    let path = desk.path().join(SESSIONS);
    let told = |error: files::Error| format!("{} was not written: {error}", path.display());
    let known = read(desk, SESSIONS).map_err(told)?;
    let mut more = String::new();
    let sessions = &facts.reading.chronicle.sessions;
    for (n, session) in sessions.iter().enumerate() {
        let heading = format!("## {}, session {}", facts.reading.id, session.number);
        let goes_on = session.over == SprintSessionEnd::Open && n + 1 == sessions.len();
        if goes_on || known.lines().any(|line| line == heading) {
            continue;
        }
        more.push_str(&format!("\n{heading}\n\n{}", page::session(facts, session)));
    }
    if more.is_empty() {
        return Ok(());
    }
    let title = if known.is_empty() { "# Session log\n" } else { "" };
    append(desk, &path, &format!("{title}{more}")).map_err(told)
}

fn append(desk: &Dir, path: &Path, text: &str) -> Result<(), files::Error> {
    use std::io::Write;
    let mut file = desk.file(SESSIONS, OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_data());
    written.map_err(|error| files::Error::io("append to", path, error))
}

/// Empty where there is none.
fn read(desk: &Dir, name: &str) -> Result<String, files::Error> {
    if desk.kind(name)?.is_none() {
        return Ok(String::new());
    }
    let path = desk.path().join(name);
    let mut bytes = Vec::new();
    let file = desk.file(name, OFlags::RDONLY)?;
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|error| files::Error::io("read", &path, error))?;
    if bytes.len() as u64 > LARGEST {
        return Err(files::Error::TooLarge { path, max: LARGEST });
    }
    String::from_utf8(bytes).map_err(|_| files::Error::refused(&path, "it is not UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use super::{BEGIN, END, put};

    #[test]
    fn af_150_what_a_person_wrote_around_our_part_stays() {
        let ours = |text: &str| format!("{BEGIN}\n\n{text}\n\n{END}\n");
        let (old, new) = (ours("old"), ours("new"));
        for (page, now) in [
            (String::new(), Ok(new.clone())),
            ("\n\n".to_owned(), Ok(new.clone())),
            ("My notes".to_owned(), Ok(format!("My notes\n\n{new}"))),
            (old.clone(), Ok(new.clone())),
            (format!("# Mine\n\n{old}\nlast words"), Ok(format!("# Mine\n\n{new}\nlast words"))),
            (format!("a\r\n{old}b\r\n"), Ok(format!("a\r\n{new}b\r\n"))),
            (old.trim_end().to_owned(), Ok(new.clone())),
            (format!("a\n{BEGIN}\nold\n"), Err("2: a begin mark without one end mark behind it")),
            (format!("{END}\n{BEGIN}\n"), Err("2: a begin mark without one end mark behind it")),
            (format!("{END}\n"), Err("1: an end mark without a begin mark")),
            (format!("{old}{old}"), Err("6: a second begin mark")),
        ] {
            assert_eq!(put(&page, "new\n"), now.map_err(str::to_owned), "{page:?}");
        }
    }
}
