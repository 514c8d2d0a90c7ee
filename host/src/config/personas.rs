//! Finds an archetype's file: the repository's if approved, else the user's, else the built-in one. The whole file
//! wins; nothing is merged. Before all of them comes the file of the folder that `--config` names ([`under`]).
//!
//! A repository's file is the text an agent is instructed with, so it counts as guarded like a command (D-08).

use archeflow_core::persona::{self, role_name};
use std::collections::BTreeMap;

use archeflow_core::model::{ARCHETYPES, Archetype, Persona};

use super::layers::Withheld;
use super::yaml::MOST_BYTES;
use super::{ConfigFile, Fault, Faults, REPOSITORY_ARCHETYPES};

/// Where a persona's text came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    BuiltIn,
    User { path: String },
    Repo { path: String },
}

/// An archetype as it takes part in a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedPersona {
    pub persona: Persona,
    pub origin: Origin,
    /// Of the whole text, in hexadecimal, for the log.
    pub digest: String,
    /// The repository's file of this name, which is not approved.
    pub withheld: Option<String>,
}

/// The files of the repository and of the user, in that order, as those of the folder named by `--config` leave them: its archetypes
/// are the user's, and replace both others of the same name.
pub fn under(
    named: &[ConfigFile],
    repository: &[ConfigFile],
    user: &[ConfigFile],
) -> (Vec<ConfigFile>, Vec<ConfigFile>) {
    let replaces =
        |name: Option<&str>| name.is_some() && named.iter().any(|(path, _)| name_of_users(path) == name);
    let theirs = repository.iter().filter(|(path, _)| !replaces(name_in_repository(path)));
    let ours = user.iter().filter(|(path, _)| !replaces(name_of_users(path)));
    (theirs.cloned().collect(), ours.chain(named).cloned().collect())
}

/// Looks a name up. A file that exists but can't be read is an error, never passed over.
pub fn find(
    name: &str,
    repository: &[ConfigFile],
    approved: bool,
    user: &[ConfigFile],
) -> Result<ResolvedPersona, Faults> {
    let theirs = repository.iter().find(|(path, _)| name_in_repository(path) == Some(name));
    let ours = user.iter().find(|(path, _)| name_of_users(path) == Some(name));
    let withheld = theirs.filter(|_| !approved).map(|(path, _)| path.clone());
    let part = |name: &str| plain(name, repository, approved, user);
    let (persona, origin, digest) = if let Some((path, bytes)) = theirs.filter(|_| approved) {
        (read(name, path, bytes, &part)?, Origin::Repo { path: path.clone() }, digest(bytes))
    } else if let Some((path, bytes)) = ours {
        (read(name, path, bytes, &part)?, Origin::User { path: path.clone() }, digest(bytes))
    } else if let Some((_, text)) = ARCHETYPES.iter().find(|(known, _)| *known == name) {
        (read(name, "built-in", text.as_bytes(), &part)?, Origin::BuiltIn, digest(text.as_bytes()))
    } else {
        return Err(unknown(name, repository, user, withheld.as_deref()).into());
    };
    Ok(ResolvedPersona { persona, origin, digest, withheld })
}

/// Every archetype there would be if the repository were approved, by name. Every file is read: a wrong one is an
/// error whether it is in the run's team or not.
pub(super) fn headers(
    repository: &[ConfigFile],
    user: &[ConfigFile],
    faults: &mut Vec<Fault>,
) -> BTreeMap<String, Archetype> {
    let mut found = BTreeMap::new();
    let built_in = ARCHETYPES.iter().filter_map(|(name, _)| persona::built_in(name));
    found.extend(built_in.map(|persona| (persona.archetype.name.clone(), persona.archetype)));
    let part = |name: &str| plain(name, repository, true, user);
    let ours = user.iter().filter_map(|file| Some((name_of_users(&file.0)?, file)));
    let theirs = repository.iter().filter_map(|file| Some((name_in_repository(&file.0)?, file)));
    for (name, (path, bytes)) in ours.chain(theirs) {
        match check_name(name, path).and_then(|()| read(name, path, bytes, &part)) {
            Ok(persona) => drop(found.insert(name.to_owned(), persona.archetype)),
            Err(Faults(more)) => faults.extend(more),
        }
    }
    found
}

/// The shadows in these files that no answer would be checked for. Not a fault of the file as such: runs that
/// began with it are resumed.
pub(crate) fn unwatched(repository: &[ConfigFile], approved: bool, user: &[ConfigFile]) -> Vec<Fault> {
    let theirs = repository.iter().filter(|(path, _)| approved && name_in_repository(path).is_some());
    let ours = user.iter().filter(|(path, _)| name_of_users(path).is_some());
    let faults = |(path, bytes): &ConfigFile| {
        let found = persona::unwatched(&String::from_utf8_lossy(bytes));
        let fault = |text| Fault { path: path.clone(), line: 0, column: 0, text };
        found.into_iter().map(fault).collect::<Vec<Fault>>()
    };
    theirs.chain(ours).flat_map(faults).collect()
}

fn check_name(name: &str, path: &str) -> Result<(), Faults> {
    persona::check_name(name).map_err(|why| {
        let text = format!("the file's name is `{}`; allowed: {why}", super::shown(name));
        Fault { path: super::in_full(path), line: 0, column: 0, text }.into()
    })
}

/// A single archetype, as a part of a combined one.
fn plain(name: &str, repository: &[ConfigFile], approved: bool, user: &[ConfigFile]) -> Option<Persona> {
    let theirs =
        repository.iter().filter(|_| approved).find(|(path, _)| name_in_repository(path) == Some(name));
    let ours = || user.iter().find(|(path, _)| name_of_users(path) == Some(name));
    match theirs.or_else(ours) {
        Some((path, bytes)) => read(name, path, bytes, &|_| None).ok(),
        None => persona::built_in(name),
    }
}

/// The names of archetypes that files bring along beside the built-in ones, approved or not.
pub fn names(repository: &[ConfigFile], user: &[ConfigFile]) -> Vec<String> {
    let theirs = repository.iter().filter_map(|(path, _)| name_in_repository(path));
    let ours = user.iter().filter_map(|(path, _)| name_of_users(path));
    let mut names: Vec<String> = theirs.chain(ours).map(str::to_owned).collect();
    names.retain(|name| {
        !ARCHETYPES.iter().any(|(known, _)| known == name) && persona::check_name(name).is_ok()
    });
    names.sort();
    names.dedup();
    names
}

/// Prompts that an unapproved repository would give to agents.
pub(super) fn withheld(repository: &[ConfigFile]) -> impl Iterator<Item = Withheld> {
    repository.iter().filter_map(|(path, bytes)| {
        let name = super::in_full(name_in_repository(path)?);
        let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
        let value = format!("{lines} lines of instructions, digest {}", digest(bytes));
        let path = super::in_full(path);
        Some(Withheld { key: format!("archetypes.{name}"), value, path, line: 1, overruled: None })
    })
}

/// The archetype a file of the repository is about: right below the one folder for them.
pub(super) fn name_in_repository(path: &str) -> Option<&str> {
    path.strip_prefix(REPOSITORY_ARCHETYPES)?.strip_suffix(".md").filter(|name| !name.contains('/'))
}

/// The same for the user's folder, wherever that is.
fn name_of_users(path: &str) -> Option<&str> {
    let (folder, file) = path.rsplit_once('/')?;
    file.strip_suffix(".md").filter(|_| folder.ends_with("/archetypes"))
}

fn read(
    name: &str,
    path: &str,
    bytes: &[u8],
    part: &dyn Fn(&str) -> Option<Persona>,
) -> Result<Persona, Faults> {
    let fault = |text: String| Fault { path: path.to_owned(), line: 0, column: 0, text };
    if bytes.len() > MOST_BYTES {
        let text = format!("the file has {} bytes; at most {MOST_BYTES} are read", bytes.len());
        return Err(fault(text).into());
    }
    let text = str::from_utf8(bytes).map_err(|_| fault("the file is not UTF-8 text".to_owned()))?;
    let persona =
        persona::parse_with(text, part).map_err(|texts| Faults(texts.into_iter().map(&fault).collect()))?;
    if persona.archetype.name != name {
        let text = format!(
            "the header names `{}`, the file `{name}`; they have to be the same",
            super::shown(&persona.archetype.name)
        );
        return Err(fault(text).into());
    }
    // Workflows assign the seven by role: a Maker that is a reviewer would leave its role empty.
    if let Some(built_in) = persona::built_in(name)
        && built_in.archetype.role != persona.archetype.role
    {
        let (is, was) = (role_name(persona.archetype.role), role_name(built_in.archetype.role));
        return Err(fault(format!(
            "the role is `{is}`; `{name}` is built in as `{was}` and has to stay that"
        ))
        .into());
    }
    Ok(persona)
}

fn unknown(name: &str, repository: &[ConfigFile], user: &[ConfigFile], withheld: Option<&str>) -> Fault {
    let mut known: Vec<String> = ARCHETYPES.iter().map(|(known, _)| (*known).to_owned()).collect();
    known.extend(names(repository, user).into_iter().filter(|known| known != name));
    let text = match withheld {
        Some(path) => format!("the archetype is only known from {path}, which is not approved"),
        None => format!("unknown archetype; known: {}", known.join(", ")),
    };
    Fault { path: super::shown(name), line: 0, column: 0, text }
}

pub(super) fn digest(bytes: &[u8]) -> String {
    const DIGITS: usize = 32;
    blake3::hash(bytes).to_hex().chars().take(DIGITS).collect()
}
