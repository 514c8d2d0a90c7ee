//! `archeflow init --client`: what makes a coding agent know archeflow, where that belongs, and what would change.
//!
//! Most of it is whole files, those of `plugin/` in the repository. Two files belong to the user: one entry is added to
//! each, and every other byte stays as it is. Deliberately absent: starting a client. What a person has to type there is
//! printed.

mod json_entry;
mod pieces;
mod toml_entry;

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::config::user::inside;
use crate::store::files;

/// A coding agent that can be set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodingClient {
    Claude,
    Codex,
    Gemini,
    Opencode,
}

/// What is wanted for a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetupAction {
    Install,
    Remove,
}

/// Everything that would be written or removed. Nothing has been.
#[derive(Debug)]
pub struct SetupPlan {
    /// The folder with most of it.
    pub folder: PathBuf,
    pub files: Vec<PlannedFile>,
    /// Folders of archeflow's own, which are removed with the last file in them.
    own_folders: Vec<PathBuf>,
}

#[derive(Debug)]
pub struct PlannedFile {
    pub path: PathBuf,
    /// The same with links followed.
    real: PathBuf,
    pub before: Option<String>,
    /// Nothing if the file is to be removed.
    pub after: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileChange {
    New,
    Changed,
    Removed,
    Same,
}

#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    #[error("HOME is not set to an absolute path")]
    NoHome,
    #[error("{} can't be changed: {why}", path.display())]
    Unchangeable { path: PathBuf, why: String, entry: &'static str },
    #[error("{} is another's: it does not mention archeflow", path.display())]
    Others { path: PathBuf },
    #[error("{} leads out of your home folder", path.display())]
    LeadsOut { path: PathBuf },
    #[error("{} has been changed meanwhile", path.display())]
    Meanwhile { path: PathBuf },
    #[error(transparent)]
    Files(#[from] files::Error),
    #[error("{} could not be written: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// Larger files are not configuration.
const AT_MOST: u64 = 4 * 1024 * 1024;

impl CodingClient {
    /// What would change, by the user's environment.
    pub fn plan(
        self,
        variables: &[(OsString, OsString)],
        action: SetupAction,
    ) -> Result<SetupPlan, SetupError> {
        let folder_of = |name: &str| {
            let found = variables.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| PathBuf::from(value)).filter(|path| path.is_absolute())
        };
        let home = folder_of("HOME").ok_or(SetupError::NoHome)?;
        let planner = |base: &Path| Planner { within: [home.clone(), base.to_owned()], action };
        match self {
            CodingClient::Claude => {
                let data = folder_of("XDG_DATA_HOME").unwrap_or_else(|| home.join(".local/share"));
                planner(&data).own_folder(data.join("archeflow/claude"), &pieces::CLAUDE)
            }
            CodingClient::Gemini => {
                let base = folder_of("GEMINI_CLI_HOME").unwrap_or(home.clone());
                planner(&base).own_folder(base.join(".gemini/extensions/archeflow"), &pieces::GEMINI)
            }
            CodingClient::Codex => {
                let folder = folder_of("CODEX_HOME").unwrap_or_else(|| home.join(".codex"));
                let planner = planner(&folder);
                let config = planner.with_entry(folder.join("config.toml"), &TOML)?;
                let skill_folder = home.join(".agents/skills").join(pieces::SKILL_FOLDER);
                let skill = planner.whole(skill_folder.join("SKILL.md"), pieces::SKILL)?;
                Ok(SetupPlan { folder, files: vec![config, skill], own_folders: vec![skill_folder] })
            }
            CodingClient::Opencode => {
                let base = folder_of("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
                let folder = base.join("opencode");
                let planner = planner(&base);
                let names = ["opencode.json", "opencode.jsonc"].map(|name| folder.join(name));
                let config = names.iter().find(|path| path.exists()).unwrap_or(&names[0]);
                let mut files = vec![planner.with_entry(config.clone(), &JSON)?];
                for (name, text) in pieces::COMMANDS {
                    files.push(planner.whole(folder.join("command").join(name), text)?);
                }
                Ok(SetupPlan { folder, files, own_folders: Vec::new() })
            }
        }
    }
}

/// How an entry gets into a file of the user's, and out of it. Both give the whole text, or say why not.
struct EntryFormat {
    /// What a person would add.
    entry: &'static str,
    add: fn(&str) -> Result<String, String>,
    remove: fn(&str) -> Result<String, String>,
}

const TOML: EntryFormat =
    EntryFormat { entry: toml_entry::ENTRY, add: toml_entry::add, remove: toml_entry::remove };
const JSON: EntryFormat =
    EntryFormat { entry: json_entry::NEW_FILE, add: json_entry::add, remove: json_entry::remove };

struct Planner {
    /// Folders that nothing may lead out of.
    within: [PathBuf; 2],
    action: SetupAction,
}

impl Planner {
    /// A folder in which every file is archeflow's.
    fn own_folder(&self, folder: PathBuf, pieces: &[pieces::Piece]) -> Result<SetupPlan, SetupError> {
        let mut files = Vec::new();
        for (name, text) in pieces {
            let path = folder.join(name);
            let (real, before) = self.read(&path)?;
            files.push(PlannedFile { path, real, before, after: self.wanted(text) });
        }
        let mut own_folders: Vec<PathBuf> =
            files.iter().flat_map(|file| file.path.ancestors().skip(1).map(Path::to_owned)).collect();
        own_folders.retain(|above| above.starts_with(&folder));
        own_folders.sort_by_key(|above| std::cmp::Reverse(above.components().count()));
        own_folders.dedup();
        Ok(SetupPlan { folder, files, own_folders })
    }

    /// A file of archeflow's in a folder with files of others.
    fn whole(&self, path: PathBuf, text: &str) -> Result<PlannedFile, SetupError> {
        let (real, before) = self.read(&path)?;
        if before.as_ref().is_some_and(|before| !before.contains("archeflow")) {
            return Err(SetupError::Others { path });
        }
        Ok(PlannedFile { path, real, before, after: self.wanted(text) })
    }

    fn wanted(&self, text: &str) -> Option<String> {
        (self.action == SetupAction::Install).then(|| text.to_owned())
    }

    /// A file of the user's with an entry for archeflow.
    fn with_entry(&self, path: PathBuf, format: &EntryFormat) -> Result<PlannedFile, SetupError> {
        let (real, before) = self.read(&path)?;
        let text = before.as_deref().unwrap_or_default();
        let edited = match (self.action, &before) {
            (SetupAction::Install, _) => (format.add)(text).map(Some),
            (SetupAction::Remove, None) => Ok(None),
            (SetupAction::Remove, Some(_)) => (format.remove)(text).map(Some),
        };
        match edited {
            Ok(after) => Ok(PlannedFile { path, real, before, after }),
            Err(why) => Err(SetupError::Unchangeable { path, why, entry: format.entry }),
        }
    }

    /// Where the file is and what it holds. Links are followed, since people keep their settings elsewhere in their home,
    /// but not out of it.
    fn read(&self, path: &Path) -> Result<(PathBuf, Option<String>), SetupError> {
        let leads_out = || SetupError::LeadsOut { path: path.to_owned() };
        if !self.within.iter().any(|folder| inside(path, folder)) {
            return Err(leads_out());
        }
        let is_link = |path: &Path| fs::symlink_metadata(path).is_ok_and(|data| data.is_symlink());
        let Ok(real) = path.canonicalize() else {
            // A link to nothing could lead anywhere by the time it is written through.
            let dangling = path.ancestors().any(|above| is_link(above) && above.canonicalize().is_err());
            return if dangling { Err(leads_out()) } else { Ok((path.to_owned(), None)) };
        };
        let bytes = files::read_capped(&real, AT_MOST)?;
        match String::from_utf8(bytes) {
            Ok(text) => Ok((real, Some(text))),
            Err(_) => {
                let why = "it is not UTF-8".to_owned();
                Err(SetupError::Unchangeable { path: path.to_owned(), why, entry: "" })
            }
        }
    }
}

impl PlannedFile {
    pub fn change(&self) -> FileChange {
        match (&self.before, &self.after) {
            (before, after) if before == after => FileChange::Same,
            (_, None) => FileChange::Removed,
            (None, Some(_)) => FileChange::New,
            (Some(_), Some(_)) => FileChange::Changed,
        }
    }

    fn write(&self) -> Result<(), SetupError> {
        let failed = |source| SetupError::Io { path: self.path.clone(), source };
        let now = match files::read_capped(&self.real, AT_MOST) {
            Ok(bytes) => Some(bytes),
            Err(error) if error.io_kind() == Some(io::ErrorKind::NotFound) => None,
            Err(error) => return Err(error.into()),
        };
        // A person agreed to what was shown, and the client may have written meanwhile.
        if now.as_deref() != self.before.as_ref().map(String::as_bytes) {
            return Err(SetupError::Meanwhile { path: self.path.clone() });
        }
        let Some(text) = &self.after else { return fs::remove_file(&self.real).map_err(failed) };
        if let Some(above) = self.real.parent() {
            fs::create_dir_all(above).map_err(failed)?;
        }
        let permissions = fs::metadata(&self.real).ok().map(|data| data.permissions());
        files::write_atomic(&self.real, text.as_bytes())?;
        match permissions {
            Some(permissions) => fs::set_permissions(&self.real, permissions).map_err(failed),
            None => Ok(()),
        }
    }
}

impl SetupPlan {
    pub fn changes(&self) -> impl Iterator<Item = &PlannedFile> {
        self.files.iter().filter(|file| file.change() != FileChange::Same)
    }

    /// Writes what was planned, each file in one step. Done twice, it changes nothing the second time.
    pub fn carry_out(&self) -> Result<(), SetupError> {
        for file in self.changes() {
            file.write()?;
        }
        if self.files.iter().all(|file| file.after.is_none() || !self.is_own(&file.path)) {
            for folder in &self.own_folders {
                // One that still holds something is not removed.
                let _ = fs::remove_dir(folder);
            }
        }
        Ok(())
    }

    fn is_own(&self, path: &Path) -> bool {
        self.own_folders.iter().any(|folder| path.starts_with(folder))
    }
}

#[cfg(test)]
mod tests;
