//! The folder of an evaluation.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use archeflow_core::eval::{EvalPlan, EvalTrial, TrialKey};

use crate::eval::{EvalSuite, TaskFiles, TaskOrigin};
use crate::git::remove_beneath;
use crate::platform::files as os;
use crate::store::files;

const PLAN: &str = "eval.json";
const TRIALS: &str = "trials.jsonl";
/// The name of the repository in the folder of a trial.
pub(super) const REPOSITORY: &str = "repo";
/// The run of a trial on this machine. Each has a repository of its own.
pub(super) const RUN: &str = "trial";

#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    #[error("{path}: {source}")]
    Io { path: String, source: io::Error },
    #[error("another `archeflow eval run` uses {0}")]
    InUse(String),
}

/// A folder that this process alone uses.
#[derive(Debug)]
pub struct EvalFolder {
    path: PathBuf,
    /// Locked as long as this lives.
    _lock: File,
}

impl EvalFolder {
    /// Makes the folder unless it is there, and locks it.
    pub fn open(path: &Path) -> Result<EvalFolder, FolderError> {
        let failed = |source| FolderError::Io { path: path.display().to_string(), source };
        for folder in ["arms", "journals", "trials", "state", "agents"] {
            os::private_directory().recursive(true).create(path.join(folder)).map_err(failed)?;
        }
        // Sandboxes compare paths: there must be no link in this one.
        let path = path.canonicalize().map_err(failed)?;
        let lock = File::create(path.join("lock")).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {
                drop_cut_line(&path.join(TRIALS)).map_err(failed)?;
                Ok(EvalFolder { path, _lock: lock })
            }
            Err(std::fs::TryLockError::WouldBlock) => Err(FolderError::InUse(path.display().to_string())),
            Err(std::fs::TryLockError::Error(source)) => Err(failed(source)),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn arm(&self, name: &str) -> PathBuf {
        self.path.join("arms").join(name)
    }

    pub(super) fn state(&self) -> PathBuf {
        self.path.join("state")
    }

    /// The file with the setup of a trial's simulated agents.
    pub(super) fn agents(&self, key: &TrialKey) -> PathBuf {
        self.path.join("agents").join(format!("{}.json", name(key)))
    }

    /// What is kept of a trial until it is over.
    pub fn trial(&self, key: &TrialKey) -> PathBuf {
        self.path.join("trials").join(name(key))
    }

    /// The mark of all processes that belong to this evaluation, whichever session started them.
    pub(super) fn tag(&self) -> String {
        let digest = files::digest(self.path.as_os_str().as_encoded_bytes());
        format!("eval-{}.", digest.get(..16).unwrap_or(&digest))
    }

    pub fn write_plan(&self, plan: &EvalPlan) -> Result<(), files::Error> {
        let text = serde_json::to_string_pretty(plan).unwrap_or_default();
        files::write_atomic(&self.path.join(PLAN), (text + "\n").as_bytes())
    }

    /// Writes the files of an arm. They are the same in every session: [`EvalPlan`] has their digest.
    pub fn write_arm(&self, name: &str, content: &[(String, Vec<u8>)]) -> Result<(), FolderError> {
        let folder = self.arm(name);
        for (path, bytes) in content {
            let place = folder.join(path);
            let failed = |source| FolderError::Io { path: place.display().to_string(), source };
            let parent = place.parent().unwrap_or(&folder);
            os::private_directory().recursive(true).create(parent).map_err(failed)?;
            std::fs::write(&place, bytes).map_err(failed)?;
        }
        Ok(())
    }

    pub(super) fn append(&self, trial: &EvalTrial) -> Result<(), files::Error> {
        let line = serde_json::to_string(trial).unwrap_or_default();
        files::append_line_locked(&self.path.join(TRIALS), &line)
    }

    pub(super) fn append_all(&self, trials: &[EvalTrial]) -> Result<(), files::Error> {
        let lines: Vec<String> =
            trials.iter().map(|trial| serde_json::to_string(trial).unwrap_or_default()).collect();
        files::append_lines_locked(&self.path.join(TRIALS), &lines)
    }

    /// Keeps the journal of a run, which is here now.
    pub(super) fn keep_journal(&self, key: &TrialKey, journal: &Path) -> Result<(), files::Error> {
        match std::fs::read(journal) {
            Ok(bytes) => {
                files::write_atomic(&self.path.join("journals").join(format!("{}.jsonl", name(key))), &bytes)
            }
            // A run that was stopped at its limit before it had written a line.
            Err(_) => Ok(()),
        }
    }

    /// What can't be removed stays where it is, and is removed by the next session.
    pub(super) fn remove_repository(&self, key: &TrialKey) {
        let folder = self.trial(key);
        if folder.exists() {
            let _ = remove_beneath(&folder);
        }
        let _ = std::fs::remove_file(self.agents(key));
    }
}

/// Names of tasks and arms are made of letters, digits, `-`, `_` and `.`, so `+` separates them.
pub(super) fn name(key: &TrialKey) -> String {
    format!("{}+{}+{}", key.task, key.arm, key.repeat)
}

/// A digest of all that a suite's trials depend on: commands, texts, limits, and every file that is laid into a repository.
pub fn suite_digest(suite: &EvalSuite) -> io::Result<String> {
    let mut digest = files::Digest::default();
    let mut put = |text: &str| {
        digest.add(&(text.len() as u64).to_le_bytes());
        digest.add(text.as_bytes());
    };
    let mut folders: Vec<PathBuf> = Vec::new();
    for task in &suite.tasks {
        put(&task.name);
        put(&task.text);
        put(task.visible.as_ref().map_or("", |command| &command.command));
        put(&task.hidden.command);
        put(&format!("{:?} {:?}", task.limit, task.dollars));
        for trap in &task.traps {
            put(&trap.name);
            put(&trap.fallen.command);
        }
        match &task.origin {
            TaskOrigin::Files(folder) => folders.push(folder.clone()),
            TaskOrigin::Commit { commit, .. } => put(commit.as_str()),
        }
        for files in
            [Some(&task.hidden_files), task.reference.as_ref(), task.trap.as_ref()].into_iter().flatten()
        {
            match files {
                TaskFiles::Folder(folder) => folders.push(folder.clone()),
                TaskFiles::Patch { text, .. } => put(text),
            }
        }
    }
    for folder in folders {
        add_folder(&mut digest, &folder, &folder)?;
    }
    Ok(digest.hex())
}

fn add_folder(digest: &mut files::Digest, root: &Path, folder: &Path) -> io::Result<()> {
    let mut entries = std::fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let (path, kind) = (entry.path(), entry.file_type()?);
        if kind.is_dir() {
            add_folder(digest, root, &path)?;
            continue;
        }
        let below = path.strip_prefix(root).unwrap_or(&path).as_os_str().as_encoded_bytes();
        let content = if kind.is_symlink() {
            std::fs::read_link(&path)?.into_os_string().into_encoded_bytes()
        } else {
            std::fs::read(&path)?
        };
        let mode = if kind.is_symlink() { 0 } else { os::mode(&entry.metadata()?) & 0o111 };
        for part in [below, &content, &[u8::from(mode != 0)]] {
            digest.add(&(part.len() as u64).to_le_bytes());
            digest.add(part);
        }
    }
    Ok(())
}

/// Removes a last line that a kill cut off: its trial runs again, and the next line must not follow a part of one.
fn drop_cut_line(trials: &Path) -> io::Result<()> {
    let bytes = match std::fs::read(trials) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let last = String::from_utf8_lossy(bytes.get(whole..).unwrap_or_default());
    if last.is_empty() || EvalTrial::read(&last).is_ok() {
        return Ok(());
    }
    let file = File::options().write(true).open(trials)?;
    file.set_len(whole as u64)?;
    file.sync_data()
}
