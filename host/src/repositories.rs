//! The repositories the user has run in: `repositories.jsonl` in the user's own state folder, a line each. It lets
//! `list` and `status` look everywhere; nothing else depends on it, and one that is gone is skipped.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::git::change::{quote_path, unquote_path};
use crate::platform::files as os;
use crate::store::files::{self, Error};

const NAME: &str = "repositories.jsonl";
const LARGEST: u64 = 4 << 20;

/// Paths are quoted as git quotes them: a path need not be text.
#[derive(Debug, Serialize, Deserialize)]
struct RepositoryLine {
    path: String,
    /// It was taken off the list. A line more instead of one less: others may be adding theirs at this moment.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    forgotten: bool,
}

/// Notes a repository, once.
pub fn remember(state: &Path, root: &Path) -> Result<(), Error> {
    if read(state)?.iter().any(|known| known == root) {
        return Ok(());
    }
    append(state, root, false)
}

/// Takes a repository off the list; `false` where it is not on it. A later run there puts it back.
pub fn forget(state: &Path, root: &Path) -> Result<bool, Error> {
    if !read(state)?.iter().any(|known| known == root) {
        return Ok(false);
    }
    append(state, root, true)?;
    Ok(true)
}

/// Whether there is nothing to list any more.
pub fn is_gone(root: &Path) -> bool {
    !root.join(".archeflow/events").is_dir()
}

fn append(state: &Path, root: &Path, forgotten: bool) -> Result<(), Error> {
    let file = state.join(NAME);
    let line = RepositoryLine { path: quote_path(os::bytes(root)), forgotten };
    let line = serde_json::to_string(&line).map_err(|error| Error::io("append to", &file, error))?;
    files::append_line_locked(&file, &line)
}

/// Every repository that was noted, oldest first, whether it is still there or not.
pub fn read(state: &Path) -> Result<Vec<PathBuf>, Error> {
    let bytes = match files::read_capped(&state.join(NAME), LARGEST) {
        Err(error) if error.io_kind() == Some(io::ErrorKind::NotFound) => return Ok(Vec::new()),
        bytes => bytes?,
    };
    let mut known: Vec<PathBuf> = Vec::new();
    let lines = bytes
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice::<RepositoryLine>(line).ok());
    for line in lines {
        let Some(path) = unquote_path(&line.path).map(os::path).filter(|path| path.is_absolute()) else {
            continue;
        };
        if line.forgotten {
            known.retain(|one| *one != path);
        } else if !known.contains(&path) {
            known.push(path);
        }
    }
    Ok(known)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use super::*;

    #[test]
    fn bx_32_a_repository_is_noted_once_whatever_it_is_called() {
        let state = tempfile::tempdir().unwrap();
        assert!(read(state.path()).unwrap().is_empty());
        let odd = os::path(b"/a/\xff \"b\n".to_vec());
        let paths = [PathBuf::from("/a/b"), odd, PathBuf::from("/c")];
        for path in paths.iter().chain(&paths) {
            remember(state.path(), path).unwrap();
        }
        assert_eq!(read(state.path()).unwrap(), paths);
        files::append_line_locked(&state.path().join(NAME), "{\"path\": \"relative\"}").unwrap();
        files::append_line_locked(&state.path().join(NAME), "garbage").unwrap();
        remember(state.path(), Path::new("/d")).unwrap();
        assert_eq!(read(state.path()).unwrap().len(), 4);
    }

    #[test]
    fn u_11_a_repository_is_forgotten_until_something_runs_there_again() {
        let state = tempfile::tempdir().unwrap();
        let (a, b) = (Path::new("/a"), Path::new("/b"));
        assert!(!forget(state.path(), a).unwrap());
        remember(state.path(), a).unwrap();
        remember(state.path(), b).unwrap();
        assert!(forget(state.path(), a).unwrap());
        assert!(!forget(state.path(), a).unwrap());
        assert_eq!(read(state.path()).unwrap(), [b]);
        remember(state.path(), a).unwrap();
        assert_eq!(read(state.path()).unwrap(), [b, a]);
    }
}
