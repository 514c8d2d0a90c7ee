//! Signatures on the commits that land, made by the user's git as `commit.gpgsign` asks for (U-06).
//!
//! Git starts a program to sign. It has to be the default one or be named in the user's own configuration: the
//! repository's `.git/config` may have come in an archive (S-13). Commits are built in the side directory, which reads no
//! configuration of the user's, so everything is passed on the command line.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;

use super::repo::Repo;
use super::runner::{self, GitCommand};
use crate::platform::files as os;

/// How the user signs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signing {
    /// `name=value`, for git's command line.
    settings: Vec<String>,
}

/// Why a commit can't be signed, with what the user can do about it.
#[derive(Debug, thiserror::Error)]
pub enum SigningFault {
    #[error(
        "commit.gpgsign is set, and only this repository's .git/config names the program that signs ({key} = {program}), so it is not run; name it in your own ~/.gitconfig: git config --global {key} {program}"
    )]
    ProgramOfRepository { key: String, program: String },
    #[error("gpg.format is '{format}'; git knows openpgp, x509 and ssh")]
    UnknownFormat { format: String },
    #[error(
        "commit.gpgsign is set with gpg.format = ssh, but there is no user.signingkey: git config user.signingkey <file>"
    )]
    NoKey,
    #[error("commit.gpgsign is set, but the key is not there: user.signingkey = {}", path.display())]
    KeyGone { path: PathBuf },
    #[error(transparent)]
    Git(#[from] runner::Error),
}

/// The last value of each key in the user's own files, and in any.
#[derive(Debug, Default)]
struct Values {
    own: BTreeMap<String, String>,
    all: BTreeMap<String, String>,
}

impl Repo {
    /// How commits are signed here; `None` if they are not.
    pub fn signing(&self) -> Result<Option<Signing>, SigningFault> {
        let values = self.signing_values();
        if !values.all.get("commit.gpgsign").is_some_and(|value| is_true(value)) {
            return Ok(None);
        }
        let format = values.all.get("gpg.format").map_or("openpgp", String::as_str);
        let keys: &[&str] = match format {
            "openpgp" => &["gpg.program", "gpg.openpgp.program"],
            "x509" => &["gpg.x509.program"],
            "ssh" => &["gpg.ssh.program", "gpg.ssh.defaultkeycommand"],
            other => return Err(SigningFault::UnknownFormat { format: other.to_owned() }),
        };
        let mut settings = vec![format!("gpg.format={format}")];
        let key = values.all.get("user.signingkey").filter(|key| !key.is_empty());
        for name in keys {
            if *name == "gpg.ssh.defaultkeycommand" && key.is_some() {
                continue;
            }
            let (own, any) = (values.own.get(*name), values.all.get(*name));
            match (own, any) {
                (own, Some(program)) if own != Some(program) => {
                    let (key, program) = ((*name).to_owned(), program.clone());
                    return Err(SigningFault::ProgramOfRepository { key, program });
                }
                (Some(program), _) => settings.push(format!("{name}={program}")),
                (None, _) => {}
            }
        }
        if format == "ssh" {
            self.check_ssh_key(key.map(String::as_str), &values)?;
        }
        settings.extend(key.map(|key| format!("user.signingkey={key}")));
        Ok(Some(Signing { settings }))
    }

    fn check_ssh_key(&self, key: Option<&str>, values: &Values) -> Result<(), SigningFault> {
        let Some(key) = key else {
            let command = values.own.contains_key("gpg.ssh.defaultkeycommand");
            return if command { Ok(()) } else { Err(SigningFault::NoKey) };
        };
        if key.starts_with("ssh-") || key.starts_with("key::") {
            return Ok(());
        }
        let path = match (key.strip_prefix("~/"), self.env.get("HOME")) {
            (Some(rest), Some(home)) => PathBuf::from(home).join(rest),
            _ => PathBuf::from(key),
        };
        if path.is_file() { Ok(()) } else { Err(SigningFault::KeyGone { path }) }
    }

    fn signing_values(&self) -> Values {
        let mut values = Values::default();
        for one in self.user.values() {
            let value = one.value.to_string_lossy().into_owned();
            if !one.is_local {
                values.own.insert(one.name.clone(), value.clone());
            }
            values.all.insert(one.name.clone(), value);
        }
        values
    }

    /// The same command, which signs the commit that it makes.
    pub(super) fn signed(&self, mut git: GitCommand, signing: &Signing) -> GitCommand {
        for setting in &signing.settings {
            git = git.setting(setting);
        }
        // No terminal: a passphrase is asked for by the user's own program for that, or not at all.
        git = git.env("SSH_ASKPASS", "/bin/false").env("SSH_ASKPASS_REQUIRE", "force");
        for (name, value) in self.env.signers() {
            git = git.env(&String::from_utf8_lossy(os::bytes(name)), OsStr::new(value));
        }
        git.arg("-S")
    }
}

/// As git reads a switch.
fn is_true(value: &str) -> bool {
    let value = value.to_ascii_lowercase();
    matches!(value.as_str(), "true" | "yes" | "on") || value.parse::<i64>().is_ok_and(|number| number != 0)
}
