//! Looks which clients are installed, asks each for its version, and sees whether there is a login or a key. Nothing is
//! spent, and no login is opened: that it is there is all that is looked at.

use std::borrow::Borrow;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use archeflow_core::model::Tier;

use crate::backends::cli::{ALL, Client, CommandInputs, Start};
use crate::platform::removal::remove_tree;
use crate::proc::{self, Cause, Job, JobLimits, Sink, Watch};

/// A client that is there.
#[derive(Debug)]
pub struct InstalledClient {
    pub client: &'static Client,
    pub place: PathBuf,
    /// Its version, or why it is unknown.
    pub version: Result<[u32; 3], String>,
    pub login: Option<Login>,
    /// A variable that has to name its provider and does not.
    pub unnamed: Option<&'static str>,
}

/// What a client can sign in with, as far as one can see from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Login {
    File(PathBuf),
    Variable(&'static str),
}

impl InstalledClient {
    /// At least as new as the one this program was tried with.
    pub fn is_tried(&self) -> bool {
        self.version.as_ref().is_ok_and(|version| *version >= self.client.tried)
    }

    /// Why one should not count on it, and what helps.
    pub fn wrong(&self) -> Option<String> {
        match &self.version {
            Err(why) => Some(why.clone()),
            Ok(_) if !self.is_tried() => {
                let tried = dotted(self.client.tried);
                Some(format!("it is older than {tried}, the oldest that was tried; update it"))
            }
            Ok(_) if self.login.is_none() => {
                Some(format!("no login and no key are to be seen; {}", self.client.sign_in))
            }
            Ok(_) => self.unnamed.map(|name| format!("{name} is not set; {}", self.client.sign_in)),
        }
    }

    /// Version, path and login in words.
    pub fn describe(&self) -> String {
        let version = self.version.as_ref().map_or_else(|_| "of unknown version".to_owned(), |v| dotted(*v));
        let tried = match &self.version {
            Ok(version) if *version == self.client.tried => ", supported".to_owned(),
            Ok(version) if *version > self.client.tried => {
                format!(", newer than {}, the newest that was tried", dotted(self.client.tried))
            }
            Ok(_) | Err(_) => String::new(),
        };
        let login = match &self.login {
            Some(Login::File(path)) => format!(", login in {}", path.display()),
            Some(Login::Variable(name)) => format!(", key in {name}"),
            None => String::new(),
        };
        format!("{version} at {}{tried}{login}", self.place.display())
    }
}

/// The default agent and the reason for it.
#[derive(Debug, Clone)]
pub struct DefaultAgent {
    pub spec: String,
    pub why: String,
}

/// The first client that can be counted on; failing that, the first that is there. Those behind it are not looked at.
pub fn choose(clients: impl IntoIterator<Item = impl Borrow<InstalledClient>>) -> Option<DefaultAgent> {
    let mut fallback = None;
    for found in clients {
        let found = found.borrow();
        let spec = found.client.name.to_owned();
        let Some(wrong) = found.wrong() else {
            return Some(DefaultAgent { spec, why: format!("it is installed ({})", found.describe()) });
        };
        fallback.get_or_insert_with(|| DefaultAgent {
            why: format!("it is the first that is installed, but {wrong}"),
            spec,
        });
    }
    fallback
}

/// The clients on the path, asked one after the other with this environment; `own` is what they know themselves by.
pub fn clients<'a>(
    env: &'a [(OsString, OsString)],
    own: &'a [(OsString, OsString)],
) -> impl Iterator<Item = InstalledClient> + 'a {
    let path = env.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str());
    // Those without a program are part of this one, and always there.
    let theirs = ALL.into_iter().filter(|client| !client.program.is_empty());
    theirs.filter_map(move |client| {
        let place = place(client.program, path?)?;
        let (version, start) = asked(client, &place, env, own);
        let is_set = |name: &str| own.iter().any(|(known, value)| known == name && !value.is_empty());
        let unnamed = client.names_itself_by.iter().copied().find(|name| !is_set(name));
        Some(InstalledClient { client, place, version, login: login(client, own, &start), unnamed })
    })
}

/// The names of the clients on the path, none of which is asked anything.
pub fn on_path(env: &[(OsString, OsString)]) -> Vec<&'static str> {
    let path = env.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str());
    let theirs = ALL.into_iter().filter(|client| !client.program.is_empty());
    theirs
        .filter(|client| path.is_some_and(|path| place(client.program, path).is_some()))
        .map(|client| client.name)
        .collect()
}

/// Even to say its version, one client or another leaves things in its home: not in the user's.
fn asked(
    client: &'static Client,
    place: &Path,
    env: &[(OsString, OsString)],
    own: &[(OsString, OsString)],
) -> (Result<[u32; 3], String>, Start) {
    let home = std::env::temp_dir().join(format!("archeflow-probe-{}-{}", std::process::id(), client.name));
    let _ = std::fs::create_dir_all(&home);
    let start = start(client, own, &home);
    let version = version(place, &[env, &start.env].concat());
    let _ = remove_tree(&home);
    (version, start)
}

fn start(client: &Client, own: &[(OsString, OsString)], home: &Path) -> Start {
    client.command(&CommandInputs {
        writes: false,
        tier: Tier::Sonnet,
        model: "",
        tree: home,
        home,
        me: home,
        resumes: None,
        schema: None,
        share: None,
        variables: own,
        usual_provider: false,
        readable: None,
    })
}

/// A key in a variable goes before a file, as it does with clients.
fn login(client: &'static Client, own: &[(OsString, OsString)], start: &Start) -> Option<Login> {
    let is_key =
        |name: &str| ["KEY", "TOKEN", "CREDENTIALS", "CONTENT"].iter().any(|end| name.ends_with(end));
    let is_set = |name: &str| own.iter().any(|(known, value)| known == name && !value.is_empty());
    let key = client.own.iter().find(|name| is_key(name) && is_set(name)).map(|name| Login::Variable(name));
    let file = || start.linked.iter().map(|linked| linked.from.clone()).find(|file| file.is_file());
    key.or_else(|| file().map(Login::File))
}

fn dotted([a, b, c]: [u32; 3]) -> String {
    format!("{a}.{b}.{c}")
}

/// The version that a client prints, if it does.
pub fn version_of(
    client: &'static Client,
    env: &[(OsString, OsString)],
    own: &[(OsString, OsString)],
) -> String {
    let path = env.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str());
    let found = path.and_then(|path| place(client.program, path));
    match found.map(|place| asked(client, &place, env, own).0) {
        Some(Ok([major, minor, patch])) => format!("{major}.{minor}.{patch}"),
        Some(Err(_)) | None => String::new(),
    }
}

fn place(program: &str, path: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(path).map(|folder| folder.join(program)).find(|place| place.is_file())
}

fn version(place: &Path, env: &[(OsString, OsString)]) -> Result<[u32; 3], String> {
    let job = Job {
        program: place.into(),
        args: vec!["--version".into()],
        env: env.to_vec(),
        cwd: PathBuf::from("/"),
        stdin: Vec::new(),
        stdout: Sink::memory(),
        stderr: Sink::memory(),
        limits: JobLimits { total: Duration::from_secs(20), ..JobLimits::default() },
        tag: format!("probe.{}", std::process::id()),
        sandbox: None,
    };
    let ended = proc::run(job, &Watch::new(), &mut |_, _| {});
    let said = String::from_utf8_lossy(&ended.stdout.bytes).into_owned();
    match ended.cause {
        Cause::Exited(0) => number(&said).ok_or_else(|| format!("it says no version: {}", said.trim())),
        other @ (Cause::Exited(_)
        | Cause::Signaled(_)
        | Cause::Silent
        | Cause::TooLong
        | Cause::Stopped
        | Cause::OverLimit(_)
        | Cause::NotStarted(_)) => Err(format!("it can't be asked for its version ({other:?})")),
    }
}

/// The first word that is three numbers.
fn number(said: &str) -> Option<[u32; 3]> {
    said.split_whitespace().find_map(|word| {
        let mut parts = word.split(['.', '-', '+']).map(str::parse);
        Some([parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?])
    })
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn a_version_is_found_in_what_clients_say() {
        for (said, version) in [
            ("2.1.325 (Claude Code)\n", Some([2, 1, 325])),
            ("codex-cli 0.166.0\n", Some([0, 166, 0])),
            ("codex-cli 0.167.0-alpha.2", Some([0, 167, 0])),
            ("0.61.0\n", Some([0, 61, 0])),
            ("1.18.33\n", Some([1, 18, 33])),
            (" 1.34.0\n", Some([1, 34, 0])),
            ("no idea", None),
            ("", None),
        ] {
            assert_eq!(number(said), version, "{said}");
        }
    }
}
