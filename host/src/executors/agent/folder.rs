//! An attempt's folder: brief, answer, usage, and that the process has ended.

use std::path::Path;

use super::super::client::Spoken;
use super::super::done::Done;
use super::super::{ExecutorFault, tail, usage};
use super::{ANSWER, Attempt, FORM, Fault, READ_AT_MOST, USAGE};
use crate::failpoint;
use crate::platform::files as os;
use crate::store::files;

/// The file with the code of the attempt.
const CODE: &str = "code";

/// The code of the attempt, or the part of one, that has this folder.
pub(super) fn code_in(folder: &Path) -> String {
    let bytes = files::read_capped(&folder.join(CODE), 64).unwrap_or_default();
    String::from_utf8(bytes).unwrap_or_default()
}

impl Attempt<'_> {
    /// The usage file is beside the agent's temporary files, where its path tells nothing about the user's checkout.
    pub(super) fn keep_usage(&self, folder: &Path) {
        let path = folder.join(USAGE);
        // A link would be followed with our rights.
        let plain = std::fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_file());
        if let (true, Ok(bytes)) = (plain, files::read_capped(&path, usage::LARGEST)) {
            let _ = files::write_atomic(&self.folder.join(USAGE), &bytes);
        }
    }

    /// The answer, or the end of it when it is too long to be read whole, and how much that leaves out. All that is
    /// kept of it stays in the attempt's folder.
    pub(super) fn answer_bytes(&self, spoken: Option<&Spoken>) -> (Vec<u8>, u64) {
        let path = self.folder.join(ANSWER);
        if let Some(spoken) = spoken {
            let _ = os::write_private(&path, &spoken.markdown);
        }
        if let Some(form) = spoken.and_then(|spoken| spoken.form.as_ref()) {
            let _ = os::write_private(&self.folder.join(FORM), form);
        }
        let whole = std::fs::metadata(&path).map_or(0, |meta| meta.len());
        let mut said = tail(&path, READ_AT_MOST);
        if whole <= READ_AT_MOST {
            return (said, 0);
        }
        let line = said.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let note =
            format!("[archeflow: the first {} bytes are only in {}]\n", whole - READ_AT_MOST, path.display());
        said.splice(..line, note.into_bytes());
        (said, whole - READ_AT_MOST)
    }

    pub(super) fn last_words(&self) -> String {
        let bytes = tail(&self.folder.join("stderr.log"), 2_000);
        let text = String::from_utf8_lossy(&bytes);
        let last = text.lines().rev().map(str::trim).find(|line| !line.is_empty());
        last.map_or_else(|| "nothing on standard error".to_owned(), |line| line.chars().take(300).collect())
    }

    pub(super) fn write_folder(&self) -> Result<(), Fault> {
        os::make_private(&self.folder).map_err(|error| self.trouble(&self.folder, &error))?;
        let code = self.folder.join(CODE);
        os::write_private(&code, &self.inputs.code).map_err(|error| self.trouble(&code, &error))?;
        let brief = self.folder.join("brief.md");
        os::write_private(&brief, self.prompt()).map_err(|error| self.trouble(&brief, &error))
    }

    /// The code that this attempt's brief named; after a crash another brief would name another one.
    pub(super) fn code(&self) -> String {
        code_in(&self.folder)
    }

    pub(super) fn write_done(&self, done: &Done) -> Result<(), Fault> {
        let path = self.folder.join("done.json");
        let json = serde_json::to_vec(done).unwrap_or_default();
        let temporary = self.folder.join("done.json.new");
        os::write_private(&temporary, json)
            .and_then(|()| std::fs::rename(&temporary, &path))
            .map_err(|error| self.trouble(&path, &error))?;
        failpoint::pass("agent.done");
        Ok(())
    }

    pub(super) fn read_done(&self) -> Option<Done> {
        let bytes = files::read_capped(&self.folder.join("done.json"), 64 * 1024).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    pub(super) fn write_artifact(&self, name: &str, bytes: &[u8]) -> Result<(), Fault> {
        let path = self.world.artifacts().join(name);
        files::write_atomic(&path, bytes).map_err(|error| {
            Fault::Trouble(ExecutorFault::Artifact {
                path: path.display().to_string(),
                why: error.to_string(),
            })
        })
    }

    #[expect(clippy::unused_self, reason = "reads as a sentence at its callers")]
    pub(super) fn trouble(&self, path: &Path, error: &std::io::Error) -> Fault {
        Fault::Trouble(ExecutorFault::Artifact { path: path.display().to_string(), why: error.to_string() })
    }
}
