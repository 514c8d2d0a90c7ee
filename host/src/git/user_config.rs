//! The few values of the user's git configuration that concern us: who commits, and what is ignored.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::files;
use super::native::{AskGit, Native};
use super::repo::{Error, GitEnv};
use super::runner::GitCommand;
use crate::platform::files as os;

/// Author and committer of the program's commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    pub name: String,
    pub email: String,
    pub committer_name: String,
    pub committer_email: String,
    /// False when the user has set no identity and this is the program's own.
    pub configured: bool,
}

impl Default for Identity {
    fn default() -> Identity {
        let (name, email) = ("archeflow".to_owned(), "archeflow@localhost".to_owned());
        let (committer_name, committer_email) = (name.clone(), email.clone());
        Identity { name, email, committer_name, committer_email, configured: false }
    }
}

/// The few values of the user's configuration that concern us, in the order git reads them.
#[derive(Debug)]
pub(super) struct UserConfig(Vec<ConfigValue>);

#[derive(Debug)]
pub(super) struct ConfigValue {
    /// In lower case.
    pub(super) name: String,
    pub(super) value: OsString,
    /// From the repository's own files, not from the user's.
    pub(super) is_local: bool,
}

/// Which refs have a log; one that has one keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoggedRefs {
    Known,
    Branches,
    All,
}

impl UserConfig {
    pub(super) fn read(path: &Path, env: &GitEnv) -> Result<UserConfig, Error> {
        const WANTED: &str = r"^((user|author|committer)\.(name|email)|core\.((excludes|attributes)file|logallrefupdates|sharedrepository)|commit\.gpgsign|user\.signingkey|gpg\..*)$";
        let args = ["config", "--includes", "--show-scope", "-z", "--get-regexp", WANTED];
        let listing = GitCommand::as_user(path, env)?.args(args).run()?.stdout;
        let (mut values, mut fields) = (Vec::new(), listing.split(|byte| *byte == 0));
        while let (Some(scope), Some(pair)) = (fields.next(), fields.next()) {
            // A key without a value is true.
            let end = pair.iter().position(|byte| *byte == b'\n');
            let (name, value) =
                end.map_or((pair, b"true".as_slice()), |end| (&pair[..end], &pair[end + 1..]));
            values.push(ConfigValue {
                name: String::from_utf8_lossy(name).into_owned(),
                value: os::owned_name(value.to_vec()),
                is_local: matches!(scope, b"local" | b"worktree"),
            });
        }
        Ok(UserConfig(values))
    }

    pub(super) fn values(&self) -> &[ConfigValue] {
        &self.0
    }

    fn last(&self, name: &str) -> Option<&OsString> {
        let given = |one: &&ConfigValue| one.name == name && !one.value.is_empty();
        self.0.iter().rev().find(given).map(|one| &one.value)
    }

    /// The user's file of attributes for all repositories, if one is set. A place that is not spelled out is git's matter.
    pub(super) fn attributes_file(&self, env: &GitEnv) -> Native<Option<PathBuf>> {
        let Some(set) = self.last("core.attributesfile") else { return Ok(None) };
        match (os::bytes(set).strip_prefix(b"~/"), env.get("HOME")) {
            (Some(rest), Some(home)) => Ok(Some(PathBuf::from(home).join(files::path(rest)))),
            (None, _) if os::bytes(set).starts_with(b"/") => Ok(Some(PathBuf::from(set))),
            (Some(_), None) | (None, _) => Err(AskGit),
        }
    }

    /// Which refs get a log when they are made, as the repository's own file says. Files that a group may write are git's
    /// matter.
    pub(super) fn logged_refs(&self, has_work_tree: bool) -> Native<LoggedRefs> {
        let local = |name: &str| {
            let mut given = self.0.iter().rev().filter(|one| one.is_local && one.name == name);
            given.next().map(|one| os::bytes(&one.value).to_ascii_lowercase())
        };
        if local("core.sharedrepository").is_some() {
            return Err(AskGit);
        }
        match local("core.logallrefupdates").as_deref() {
            None if has_work_tree => Ok(LoggedRefs::Branches),
            None | Some(b"false") => Ok(LoggedRefs::Known),
            Some(b"true") => Ok(LoggedRefs::Branches),
            Some(b"always") => Ok(LoggedRefs::All),
            Some(_) => Err(AskGit),
        }
    }

    pub(super) fn identity(&self, env: &GitEnv) -> Identity {
        let value = |variable: &str, names: [&str; 2]| {
            let given = env.get(variable).filter(|value| !value.is_empty());
            let found = given.or_else(|| self.last(names[0])).or_else(|| self.last(names[1]))?;
            Some(found.to_string_lossy().into_owned())
        };
        let name = value("GIT_AUTHOR_NAME", ["author.name", "user.name"]);
        let email = value("GIT_AUTHOR_EMAIL", ["author.email", "user.email"]);
        let (Some(name), Some(email)) = (name, email) else { return Identity::default() };
        let committer_name = value("GIT_COMMITTER_NAME", ["committer.name", "user.name"]);
        let committer_email = value("GIT_COMMITTER_EMAIL", ["committer.email", "user.email"]);
        Identity {
            committer_name: committer_name.unwrap_or_else(|| name.clone()),
            committer_email: committer_email.unwrap_or_else(|| email.clone()),
            name,
            email,
            configured: true,
        }
    }

    /// The user's own ignore list, which applies in workspaces too.
    pub(super) fn excludes(&self, env: &GitEnv) -> Vec<u8> {
        let home = env.get("HOME").map(PathBuf::from);
        let file = match self.last("core.excludesfile") {
            Some(set) => match (os::bytes(&set).strip_prefix(b"~/"), &home) {
                (Some(rest), Some(home)) => Some(home.join(files::path(rest))),
                (Some(_), None) => None,
                (None, _) => Some(PathBuf::from(set)),
            },
            None => {
                let config = env.get("XDG_CONFIG_HOME").filter(|value| !value.is_empty()).map(PathBuf::from);
                config.or_else(|| home.map(|home| home.join(".config"))).map(|dir| dir.join("git/ignore"))
            }
        };
        let mut bytes = file.and_then(|file| fs::read(file).ok()).unwrap_or_default();
        if !bytes.is_empty() {
            bytes.insert(0, b'\n');
        }
        bytes
    }
}
