//! Teams, workflows, lenses and domains: files with names, that a setting or a flag can ask for.
//!
//! Every file is read, whether anything asks for it or not: a wrong word in one of them is an error of the
//! configuration. A repository's file wins over the user's, and that over a built-in one; a file of the folder that
//! `--config` names wins over all of them. Like an archetype a repository's file instructs agents what to do, so it takes part only when
//! approved (D-08).

mod domain;
mod lens;
mod sheet;
mod team;

use std::collections::{BTreeMap, BTreeSet};

use archeflow_core::model::{Archetype, DOMAINS, LENSES};
use archeflow_core::persona;

use super::layers::Withheld;
use super::{ConfigFile, Fault, in_full};

pub use domain::DomainFile;
pub use lens::LensFile;
pub use team::Team;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ShelfKind {
    Team,
    Workflow,
    Lens,
    Domain,
}

impl ShelfKind {
    pub const ALL: [ShelfKind; 4] =
        [ShelfKind::Team, ShelfKind::Workflow, ShelfKind::Lens, ShelfKind::Domain];

    pub fn folder(self) -> &'static str {
        match self {
            ShelfKind::Team => "teams",
            ShelfKind::Workflow => "workflows",
            ShelfKind::Lens => "lenses",
            ShelfKind::Domain => "domains",
        }
    }
}

/// Everything that can be asked for by name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Shelf {
    pub teams: BTreeMap<String, Team>,
    pub workflows: BTreeMap<String, Team>,
    pub lenses: BTreeMap<String, LensFile>,
    pub domains: BTreeMap<String, DomainFile>,
    /// Known by name, and not in effect because the repository's file is not approved.
    withheld: BTreeSet<(ShelfKind, String)>,
}

impl Shelf {
    pub(super) fn read(
        repository: &[ConfigFile],
        approved: bool,
        user: &[ConfigFile],
        named: &[ConfigFile],
        archetypes: &BTreeMap<String, Archetype>,
        faults: &mut Vec<Fault>,
    ) -> Shelf {
        let mut shelf = Shelf::default();
        for (name, text) in LENSES {
            shelf.put(ShelfKind::Lens, name, "built-in", text.as_bytes(), archetypes, faults);
        }
        for (name, text) in DOMAINS {
            shelf.put(ShelfKind::Domain, name, "built-in", text.as_bytes(), archetypes, faults);
        }
        for (path, bytes) in user {
            if let Some((kind, name)) = of_users(path) {
                shelf.put(kind, name, path, bytes, archetypes, faults);
            }
        }
        for (path, bytes) in repository {
            let Some((kind, name)) = in_repository(path) else { continue };
            if approved {
                shelf.put(kind, name, path, bytes, archetypes, faults);
            } else {
                // Read all the same: what can't be read can't be approved.
                Shelf::default().put(kind, name, path, bytes, archetypes, faults);
                shelf.withheld.insert((kind, name.to_owned()));
            }
        }
        for (path, bytes) in named {
            if let Some((kind, name)) = of_users(path) {
                shelf.put(kind, name, path, bytes, archetypes, faults);
            }
        }
        shelf
    }

    fn put(
        &mut self,
        kind: ShelfKind,
        name: &str,
        path: &str,
        bytes: &[u8],
        archetypes: &BTreeMap<String, Archetype>,
        faults: &mut Vec<Fault>,
    ) {
        let read = check_file(kind, name, path).map_err(|fault| vec![fault]).and_then(|()| {
            let key = name.to_owned();
            match kind {
                ShelfKind::Team => drop(self.teams.insert(key, team::team(name, path, bytes, archetypes)?)),
                ShelfKind::Workflow => {
                    drop(self.workflows.insert(key, team::workflow(name, path, bytes, archetypes)?));
                }
                ShelfKind::Lens => drop(self.lenses.insert(key, lens::read(name, path, bytes, archetypes)?)),
                ShelfKind::Domain => {
                    let file = domain::read(name, path, bytes, archetypes)?;
                    self.domains.entry(key).or_default().lay(file);
                }
            }
            Ok(())
        });
        faults.extend(read.err().into_iter().flatten());
    }

    /// The names that may be asked for, those included that wait for approval.
    pub(super) fn names(&self, kind: ShelfKind) -> Vec<String> {
        let mut names: BTreeSet<String> = match kind {
            ShelfKind::Team => self.teams.keys().cloned().collect(),
            ShelfKind::Workflow => self.workflows.keys().cloned().collect(),
            ShelfKind::Lens => self.lenses.keys().cloned().collect(),
            ShelfKind::Domain => self.domains.keys().cloned().collect(),
        };
        names.extend(self.withheld.iter().filter(|(other, _)| *other == kind).map(|(_, name)| name.clone()));
        names.into_iter().collect()
    }
}

/// What an unapproved repository would lay over the archetypes.
pub(super) fn withheld(repository: &[ConfigFile]) -> impl Iterator<Item = Withheld> {
    repository.iter().filter_map(|(path, bytes)| {
        let (kind, name) = in_repository(path)?;
        let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
        Some(Withheld {
            key: format!("{}.{}", kind.folder(), in_full(name)),
            value: format!("{lines} lines, digest {}", super::personas::digest(bytes)),
            path: in_full(path),
            line: 1,
            overruled: None,
        })
    })
}

/// Kind and name of a repository's file.
pub(crate) fn in_repository(path: &str) -> Option<(ShelfKind, &str)> {
    let (folder, file) = path.strip_prefix(".archeflow/")?.split_once('/')?;
    named(folder, file)
}

fn of_users(path: &str) -> Option<(ShelfKind, &str)> {
    let (folder, file) = path.rsplit_once('/')?;
    named(folder.rsplit('/').next()?, file)
}

/// `.yml` is let in here so that it can be refused with a reason.
fn named<'a>(folder: &str, file: &'a str) -> Option<(ShelfKind, &'a str)> {
    let kind = ShelfKind::ALL.into_iter().find(|kind| kind.folder() == folder)?;
    let name = file.strip_suffix(".yaml").or_else(|| file.strip_suffix(".yml"))?;
    (!name.contains('/')).then_some((kind, name))
}

fn check_file(kind: ShelfKind, name: &str, path: &str) -> Result<(), Fault> {
    let fault = |text: String| Err(Fault { path: in_full(path), line: 0, column: 0, text });
    if path.ends_with(".yml") {
        return fault(format!("the file ends with `.yml`; allowed: `{name}.yaml`"));
    }
    if let Err(why) = persona::check_name(name) {
        return fault(format!("the file's name is `{}`; allowed: {why}", super::shown(name)));
    }
    if kind == ShelfKind::Domain && !DOMAINS.iter().any(|(known, _)| *known == name) {
        return fault(format!("the domain is `{name}`; allowed: code, writing, research"));
    }
    if kind == ShelfKind::Workflow && archeflow_core::model::Workflow::parse(name).is_some() {
        return fault(format!("the workflow is `{name}`; allowed: a name that is not built in"));
    }
    Ok(())
}
