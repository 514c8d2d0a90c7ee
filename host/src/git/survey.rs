//! Surveys a commit for things that could be done next. Nothing of it is run.

use super::runner::{self, Error};
use super::{ObjectId, Repo};

/// A line with a mark such as TODO.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    pub file: String,
    pub line: u64,
    pub text: String,
}

/// The most that is read of the marks found; the rest is left out.
const CAP: usize = 4 << 20;

/// Folders with what this program writes or reads.
const OURS: [&str; 2] = [".archeflow/", "docs/orchestra/"];

impl Repo {
    /// The lines with a mark for later, outside of what is ours.
    pub fn marks(&self, commit: &ObjectId) -> Result<Vec<Mark>, Error> {
        let output = self
            .side()?
            .args(["grep", "--no-color", "-n", "-z", "-I", "-w", "-E", "-e", "TODO|FIXME"])
            .arg(commit.as_str())
            .cap(CAP)
            .run()?;
        match output.status.code() {
            // Found some, or found none.
            Some(0 | 1) => {
                let marks = output.stdout.split(|byte| *byte == b'\n').filter_map(mark);
                Ok(marks.filter(|mark| !OURS.iter().any(|ours| mark.file.starts_with(ours))).collect())
            }
            _ => Err(runner::failed("git grep".to_owned(), &output)),
        }
    }

    /// When a commit was made, in milliseconds since 1970.
    pub fn committed_at(&self, commit: &ObjectId) -> Result<u64, Error> {
        let output = self.side()?.args(["log", "-1", "--format=%ct", commit.as_str()]).done()?;
        let seconds: u64 = String::from_utf8_lossy(output.line()).trim().parse().unwrap_or(0);
        Ok(seconds.saturating_mul(1_000))
    }
}

/// `<commit>:<file>NUL<line>NUL<text>`.
fn mark(found: &[u8]) -> Option<Mark> {
    let text = String::from_utf8_lossy(found);
    let mut parts = text.splitn(3, '\0');
    let (_, file) = parts.next()?.split_once(':')?;
    let line = parts.next()?.parse().ok()?;
    Some(Mark { file: file.to_owned(), line, text: parts.next()?.trim().to_owned() })
}
