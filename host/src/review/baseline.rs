//! Findings that people know and live with, each with the reason.

use std::path::{Path, PathBuf};

use archeflow_core::model::AcceptedFinding;
use serde::{Deserialize, Serialize};

use crate::git::{ObjectId, Repo, runner};
use crate::store::files;

/// Looked for in the base commit: a change can't bring its own pardon along.
pub const DEFAULT: &str = ".archeflow/baseline.json";

const BYTES_AT_MOST: u64 = 2_000_000;
/// All of them are in one line of the log.
const AT_MOST: usize = 4_000;
const LONGEST_REASON: usize = 100;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    pub schema: u32,
    pub accepted: Vec<AcceptedFinding>,
}

#[derive(Debug, thiserror::Error)]
pub enum BaselineError {
    #[error("the baseline {place} can't be read: {why}")]
    Unreadable { place: String, why: String },
    #[error(transparent)]
    Git(#[from] runner::Error),
}

impl Baseline {
    /// The named file, or the one the base commit has, or none.
    pub fn read(named: Option<&Path>, (repo, base): (&Repo, &ObjectId)) -> Result<Baseline, BaselineError> {
        match named {
            Some(path) => {
                let wrong =
                    |why: String| BaselineError::Unreadable { place: path.display().to_string(), why };
                let bytes =
                    files::read_capped(path, BYTES_AT_MOST).map_err(|error| wrong(error.to_string()))?;
                Baseline::parse(&bytes).map_err(wrong)
            }
            None => {
                let Some(bytes) = repo.read_blob(base, DEFAULT.as_bytes(), BYTES_AT_MOST)? else {
                    return Ok(Baseline::default());
                };
                let wrong = |why| BaselineError::Unreadable { place: format!("{DEFAULT} of {base}"), why };
                Baseline::parse(&bytes).map_err(wrong)
            }
        }
    }

    /// A file as it is now. One that is not there accepts nothing.
    pub fn at(path: &Path) -> Result<Baseline, BaselineError> {
        let wrong = |why: String| BaselineError::Unreadable { place: path.display().to_string(), why };
        match files::read_capped(path, BYTES_AT_MOST) {
            Ok(bytes) => Baseline::parse(&bytes).map_err(wrong),
            Err(_) if !path.exists() => Ok(Baseline { schema: 1, accepted: Vec::new() }),
            Err(error) => Err(wrong(error.to_string())),
        }
    }

    fn parse(bytes: &[u8]) -> Result<Baseline, String> {
        let mut read: Baseline = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if read.schema != 1 {
            return Err(format!("its schema is {}; known: 1", read.schema));
        }
        if read.accepted.len() > AT_MOST {
            return Err(format!("it accepts {} findings; at most {AT_MOST} are taken", read.accepted.len()));
        }
        for one in &mut read.accepted {
            let plain =
                one.fingerprint.len() == 32 && one.fingerprint.bytes().all(|byte| byte.is_ascii_hexdigit());
            if !plain {
                let told = crate::config::shown(&one.fingerprint);
                return Err(format!(
                    "'{told}' is no fingerprint: 32 hexadecimal digits, as a review prints them"
                ));
            }
            if one.reason.trim().is_empty() {
                return Err(format!("{} is accepted without a reason; say why", one.fingerprint));
            }
            one.reason = one.reason.chars().take(LONGEST_REASON).collect();
        }
        Ok(read)
    }

    /// Adds findings to a file, or makes it. What is in it already keeps its reason.
    pub fn add(path: &Path, more: Vec<AcceptedFinding>) -> Result<usize, BaselineError> {
        let wrong = |why: String| BaselineError::Unreadable { place: path.display().to_string(), why };
        let mut baseline = Baseline::at(path)?;
        let before = baseline.accepted.len();
        for one in more {
            if baseline.accepted.iter().all(|known| known.fingerprint != one.fingerprint) {
                baseline.accepted.push(one);
            }
        }
        baseline.accepted.sort();
        let text = serde_json::to_string_pretty(&baseline).map_err(|error| wrong(error.to_string()))? + "\n";
        files::write_atomic(&PathBuf::from(path), text.as_bytes())
            .map_err(|error| wrong(error.to_string()))?;
        Ok(baseline.accepted.len() - before)
    }
}
