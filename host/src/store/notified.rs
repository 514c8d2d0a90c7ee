//! Which message about a run was sent last: `notified/<digest>.json` in the state folder, so that a resumed run does not
//! repeat it. A file that is missing, torn or about another line means that nothing was sent.

use std::path::{Path, PathBuf};

use archeflow_core::model::Seq;
use serde::{Deserialize, Serialize};

use super::{files, lock};
use crate::platform::files as os;

const FOLDER: &str = "notified";
const LARGEST: u64 = 64 * 1024;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct SentRecord {
    run: String,
    /// The line of the journal that it was about.
    line: Seq,
    /// In milliseconds since 1970.
    sent_at: u64,
}

/// When a message about this line was sent last.
pub fn sent_at(state: &Path, root: &Path, run: &str, line: Seq) -> Option<u64> {
    let bytes = files::read_capped(&place(state, root, run), LARGEST).ok()?;
    let record = serde_json::from_slice::<SentRecord>(&bytes).ok()?;
    (record.run == run && record.line == line).then_some(record.sent_at)
}

pub fn remember(state: &Path, root: &Path, run: &str, line: Seq, sent_at: u64) -> Result<(), files::Error> {
    let folder = state.join(FOLDER);
    os::private_directory()
        .recursive(true)
        .create(&folder)
        .map_err(|error| files::Error::io("create the directory", &folder, error))?;
    let record = SentRecord { run: run.to_owned(), line, sent_at };
    let path = place(state, root, run);
    let bytes = serde_json::to_vec(&record).map_err(|error| files::Error::io("write", &path, error))?;
    files::write_atomic(&path, &bytes)
}

/// The run is removed.
pub(crate) fn forget(state: &Path, root: &Path, run: &str) {
    let _ = std::fs::remove_file(place(state, root, run));
}

fn place(state: &Path, root: &Path, run: &str) -> PathBuf {
    state.join(FOLDER).join(format!("{}.json", lock::name_for(root, run)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notify_a_message_is_remembered_by_its_line() -> Result<(), Box<dyn std::error::Error>> {
        let dir = tempfile::tempdir()?;
        let (state, root) = (dir.path(), Path::new("/repo"));
        assert_eq!(sent_at(state, root, "r", 4), None);
        remember(state, root, "r", 4, 1_000)?;
        assert_eq!(sent_at(state, root, "r", 4), Some(1_000));
        assert_eq!(sent_at(state, root, "r", 5), None, "another question");
        assert_eq!(sent_at(state, root, "s", 4), None, "another run");
        assert_eq!(sent_at(state, Path::new("/other"), "r", 4), None, "another repository");
        std::fs::write(place(state, root, "r"), "{torn")?;
        assert_eq!(sent_at(state, root, "r", 4), None);
        remember(state, root, "r", 4, 2_000)?;
        forget(state, root, "r");
        assert_eq!(sent_at(state, root, "r", 4), None);
        Ok(())
    }
}
