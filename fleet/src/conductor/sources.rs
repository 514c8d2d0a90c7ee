//! What a conductor reads: where projects have their remotes, and the journals of runs on the bus.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use archeflow_core::run::Run;
use archeflow_host::git::GitEnv;
use archeflow_host::git::runner::GitCommand;
use archeflow_host::log;
use archeflow_host::store::journal as lines;

use crate::bus::Bus;
use crate::message::Repository;
use crate::{journal, names};

/// How long a run that was read is shown before it is read again.
const FRESH: Duration = Duration::from_secs(5);
/// Runs that are kept at hand.
const MOST_RUNS: usize = 64;

/// The remotes of projects, each asked for once.
pub(super) struct Repositories {
    projects: PathBuf,
    known: BTreeMap<String, Repository>,
}

impl Repositories {
    pub(super) fn below(projects: &Path) -> Repositories {
        Repositories { projects: projects.to_owned(), known: BTreeMap::new() }
    }

    /// The error is for a person, and may be mended while the sprint runs.
    pub(super) fn find(&mut self, project: &str) -> Result<Repository, String> {
        if let Some(known) = self.known.get(project) {
            return Ok(known.clone());
        }
        let dir = self.projects.join(project);
        let ask = |args: &[&str]| {
            let asked = GitCommand::as_user(&dir, &GitEnv::of_process()).and_then(|git| git.args(args).run());
            let output =
                asked.map_err(|error| format!("git can't be asked in {}: {error}", dir.display()))?;
            let words = String::from_utf8_lossy(output.line()).into_owned();
            Ok::<_, String>(Some(words).filter(|words| output.status.success() && !words.is_empty()))
        };
        if !dir.is_dir() {
            return Err(format!("there is no project {}", dir.display()));
        }
        let Some(url) = ask(&["remote", "get-url", "origin"])? else {
            return Err(format!(
                "{project} has no remote that workers could reach: git -C {} remote add origin <url>",
                dir.display()
            ));
        };
        let Some(branch) = ask(&["symbolic-ref", "--short", "-q", "HEAD"])? else {
            return Err(format!(
                "{project} has no branch checked out: git -C {} switch <branch>",
                dir.display()
            ));
        };
        let repository = Repository { name: project.to_owned(), url: absolute(&dir, url), branch };
        self.known.insert(project.to_owned(), repository.clone());
        Ok(repository)
    }
}

/// A path relative to the project means nothing elsewhere.
fn absolute(dir: &Path, url: String) -> String {
    let is_address = url.contains("://") || url.split('/').next().is_some_and(|first| first.contains(':'));
    if is_address || Path::new(&url).is_absolute() {
        return url;
    }
    let path = dir.join(&url);
    path.canonicalize().unwrap_or(path).display().to_string()
}

/// Runs as their journals on the bus have them.
#[derive(Default)]
pub(super) struct RunsOnBus {
    known: BTreeMap<String, (Instant, Option<Arc<Run>>)>,
}

impl RunsOnBus {
    /// Nothing, if there is no journal that can be read.
    pub(super) fn find(&mut self, bus: &dyn Bus, run_id: &str) -> Option<Arc<Run>> {
        if let Some((at, run)) = self.known.get(run_id)
            && at.elapsed() < FRESH
        {
            return run.clone();
        }
        let found = journal::read(bus, &names::run_journal(run_id)).ok().filter(|found| found.lines > 0);
        let text = found.and_then(|found| lines::check(run_id, found.text).ok());
        let run = text.and_then(|text| log::fold(&text).ok()).map(Arc::new);
        if self.known.len() >= MOST_RUNS {
            self.known.retain(|_, (at, _)| at.elapsed() < FRESH);
        }
        self.known.insert(run_id.to_owned(), (Instant::now(), run.clone()));
        run
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fl_70_remotes_are_named_so_that_other_machines_find_them() {
        let dir = Path::new("/projects/shop");
        for (url, expected) in [
            ("ssh://git@host/shop.git", "ssh://git@host/shop.git"),
            ("git@host:shop.git", "git@host:shop.git"),
            ("/srv/shop.git", "/srv/shop.git"),
            ("../shop.git", "/projects/shop/../shop.git"),
            ("shop.git", "/projects/shop/shop.git"),
            ("a/b:c", "/projects/shop/a/b:c"),
        ] {
            assert_eq!(absolute(dir, url.to_owned()), expected, "{url}");
        }
    }
}
