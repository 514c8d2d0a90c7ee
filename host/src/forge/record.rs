//! What was posted on a request: `forge/<digest>.json` in the state folder, written before and after each request that
//! posts. It is no proof that something arrived, so the forge is read before anything is posted; but what it says was
//! posted is never posted again, so that a comment a person deleted stays deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::connection::ForgeError;
use super::remote::ForgeAddress;
use crate::platform::files as os;
use crate::store::files;
use crate::store::lock::{self, Lock};

const FOLDER: &str = "forge";
const LARGEST: u64 = 8 * 1024 * 1024;
/// Steps are remembered for this many reviews of a request.
const RUNS_AT_MOST: usize = 50;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
struct Content {
    schema: u32,
    /// The request it is about.
    request: String,
    /// Findings that have been posted as threads.
    posted: BTreeSet<String>,
    /// The steps of each review that were answered.
    done: BTreeMap<String, BTreeSet<String>>,
    /// The step under way; after a crash, whether it arrived is seen on the forge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    begun: Option<(String, String)>,
}

/// Held by one process at a time.
#[derive(Debug)]
pub struct PostRecord {
    path: PathBuf,
    content: Content,
    _lock: Lock,
}

impl PostRecord {
    pub fn open(state: &Path, address: &ForgeAddress, number: u32) -> Result<PostRecord, ForgeError> {
        let failed = |error: String| ForgeError::Record(format!("what is posted can't be recorded: {error}"));
        let folder = state.join(FOLDER);
        os::private_directory().recursive(true).create(&folder).map_err(|error| failed(error.to_string()))?;
        let request = format!("{}#{number}", address.label());
        let name = lock::name_for(Path::new(&address.label()), &number.to_string());
        let lock = Lock::take(&folder, &name, Duration::ZERO).map_err(|error| match error {
            lock::Error::Held { .. } => ForgeError::Record(format!("another process posts to {request} now")),
            lock::Error::BadName { .. } | lock::Error::File(_) => failed(error.to_string()),
        })?;
        let path = folder.join(format!("{name}.json"));
        let read = files::read_capped(&path, LARGEST).ok();
        let content = read.and_then(|bytes| serde_json::from_slice::<Content>(&bytes).ok());
        let content = content.filter(|content| content.schema == 1 && content.request == request);
        let content = content.unwrap_or(Content { schema: 1, request, ..Content::default() });
        Ok(PostRecord { path, content, _lock: lock })
    }

    /// Findings that have been posted as threads, by their fingerprints.
    pub fn posted(&self) -> &BTreeSet<String> {
        &self.content.posted
    }

    pub(super) fn is_done(&self, run_id: &str, step: &str) -> bool {
        self.content.done.get(run_id).is_some_and(|steps| steps.contains(step))
    }

    /// A request is about to be sent.
    pub(super) fn begin(&mut self, run_id: &str, step: &str) -> Result<(), ForgeError> {
        self.content.begun = Some((run_id.to_owned(), step.to_owned()));
        self.write()
    }

    /// It was answered with success.
    pub(super) fn end(&mut self, run_id: &str, step: &str, posted: &[String]) -> Result<(), ForgeError> {
        self.content.begun = None;
        self.content.posted.extend(posted.iter().cloned());
        self.content.done.entry(run_id.to_owned()).or_default().insert(step.to_owned());
        while self.content.done.len() > RUNS_AT_MOST {
            self.content.done.pop_first();
        }
        self.write()
    }

    /// Threads that are seen on the forge were posted, whatever is recorded.
    pub fn saw(&mut self, fingerprints: impl IntoIterator<Item = String>) {
        self.content.posted.extend(fingerprints);
    }

    fn write(&self) -> Result<(), ForgeError> {
        let failed = |error: String| ForgeError::Record(format!("what is posted can't be recorded: {error}"));
        let bytes = serde_json::to_vec(&self.content).map_err(|error| failed(error.to_string()))?;
        files::write_atomic(&self.path, &bytes).map_err(|error| failed(error.to_string()))
    }
}
