//! What has to be right in the user's git before an agent is started: found out at the landing, it would have cost money.

use archeflow_core::settings::FilterChoice;

use super::{Error, Project};
use crate::config::Settings;
use crate::git::change::{GITLINK, quote_path};
use crate::git::filters::FilteredPath;
use crate::git::{self, Target};

/// Files that a message lists by name.
const NAMED: usize = 5;

impl Project {
    /// Commits can be made in the user's name and signed if the user signs (U-06), and working copies hold what the user
    /// sees (U-05).
    pub fn check_git(&self, settings: &Settings) -> Result<(), Error> {
        if !self.repo.identity().configured {
            return Err(git::repo::Error::NoIdentity.into());
        }
        self.repo.signing().map_err(git::repo::Error::from)?;
        let found = self.filtered(settings, FilterChoice::Refuse)?;
        if found.is_empty() { Ok(()) } else { Err(Error::Filtered { files: named(&found) }) }
    }

    /// What agents and tests see otherwise than the user does.
    pub fn git_notes(&self, settings: &Settings) -> Result<Vec<String>, Error> {
        let mut notes = Vec::new();
        let found = self.filtered(settings, FilterChoice::Pointers)?;
        if !found.is_empty() {
            let files = named(&found);
            notes.push(format!("agents and tests see files with a git filter as committed: {files}"));
        }
        let submodules = self.submodules()?;
        if !submodules.is_empty() {
            notes.push(format!("submodules are empty folders for agents and tests: {}", listed(&submodules)));
        }
        Ok(notes)
    }

    /// The files with a filter, if the setting is this one.
    fn filtered(&self, settings: &Settings, choice: FilterChoice) -> Result<Vec<FilteredPath>, Error> {
        match &self.target {
            Some(Target { oid, .. }) if settings.filters() == choice => Ok(self.repo.filtered_paths(oid)?),
            Some(_) | None => Ok(Vec::new()),
        }
    }

    fn submodules(&self) -> Result<Vec<String>, Error> {
        let Some(target) = &self.target else { return Ok(Vec::new()) };
        let entries = self.repo.list_dir(&target.oid, b"")?;
        let links = entries.iter().filter(|entry| entry.mode == GITLINK);
        Ok(links.map(|entry| quote_path(&entry.path)).collect())
    }
}

fn named(found: &[FilteredPath]) -> String {
    let one = |file: &FilteredPath| {
        format!("{} (filter={})", quote_path(&file.path), quote_path(file.filter.as_bytes()))
    };
    listed(&found.iter().map(one).collect::<Vec<_>>())
}

fn listed(all: &[String]) -> String {
    let shown = all.get(..NAMED).unwrap_or(all).join(", ");
    match all.len().saturating_sub(NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
