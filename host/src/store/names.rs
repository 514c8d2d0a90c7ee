//! What things may be called. A name becomes a file name, so it is checked wherever one comes in from outside.

use std::path::Path;

use archeflow_core::text::file_name;

use super::dir::Dir;
use super::journal::{self, Journal};

const LONGEST: usize = 128;
/// Nobody runs the same task more often in a day; a loop that gets here has gone wrong.
const MOST: u32 = 10_000;

/// Letters, digits, `.`, `_` and `-`, beginning with a letter or digit, without `..`.
pub fn valid_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    bytes.len() <= LONGEST
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(b))
        && !name.contains("..")
}

/// `index.jsonl` is in the folder of the journals and is none.
pub(crate) fn valid_run_id(name: &str) -> bool {
    valid_name(name) && name != "index"
}

/// The date and the words of the task.
pub fn run_id(date: &str, task: &str) -> String {
    format!("{date}-{}", file_name(task))
}

/// Claims the first free id of `<id>`, `<id>-2`, `<id>-3`, … and begins its journal and its artifact directory.
///
/// The journal decides: it can be created only once, so two processes never get the same id.
pub fn free_run_id(
    events: &Path,
    artifacts: &Path,
    date: &str,
    task: &str,
) -> Result<Journal, journal::Error> {
    let wish = run_id(date, task);
    let shelves = Dir::open(artifacts)?;
    for n in 1..=MOST {
        let id = if n == 1 { wish.clone() } else { format!("{wish}-{n}") };
        if !valid_run_id(&id) {
            return Err(journal::Error::BadName { run_id: id });
        }
        if shelves.kind(&id)?.is_some() {
            continue;
        }
        match Journal::create(events, &id) {
            Ok(journal) => {
                shelves.make(&id, 0o700)?;
                return Ok(journal);
            }
            Err(journal::Error::Exists { .. }) => {}
            Err(e) => return Err(e),
        }
    }
    Err(journal::Error::Exists { file: events.join(format!("{wish}-{MOST}.jsonl")) })
}

/// Claims exactly this id. One that was claimed before and never began is used: the process that claimed it is gone.
pub fn this_run_id(events: &Path, artifacts: &Path, id: &str) -> Result<Journal, journal::Error> {
    let journal = match Journal::create(events, id) {
        Err(journal::Error::Exists { file }) => {
            let opened = Journal::open(events, id)?;
            if !opened.lines.is_empty() {
                return Err(journal::Error::Exists { file });
            }
            opened.journal
        }
        other => other?,
    };
    Dir::open(artifacts)?.make(id, 0o700)?;
    Ok(journal)
}
