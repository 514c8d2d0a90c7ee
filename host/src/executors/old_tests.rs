//! The tests as they were before a change, put back into a copy of the new code (L-09, R-07). A change may change tests because
//! more is asked for; whether it still does what they asked for before, only they can say.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use archeflow_core::event::{OldTests, Tested, TestsStart};
use archeflow_core::model::Seq;
use archeflow_core::rules::signs::is_test_path;

use super::{build_cache, checks, setup};
use crate::git::workspace::WorkspaceKind;
use crate::git::{ObjectId, change};
use crate::platform::files as os;
use crate::platform::removal::remove_tree;
use crate::world::World;

/// More files are a rewrite of the tests, and putting them back would say little.
const FILES_AT_MOST: usize = 200;

/// A regular file, and one that can be executed.
const PLAIN: &str = "100644";
const EXECUTABLE: &str = "100755";

/// The test files that a change altered or removed, as they were.
pub(crate) struct OldFiles(Vec<OldFile>);

struct OldFile {
    path: PathBuf,
    content: Vec<u8>,
    executable: bool,
}

impl OldFiles {
    /// Nothing where there is nothing to put back.
    pub(crate) fn of(world: &World, base: &ObjectId, commit: &ObjectId) -> Option<OldFiles> {
        changed_tests(world, base, commit).filter(|files| !files.is_empty()).map(OldFiles)
    }

    pub(crate) fn put_back(&self, tree: &Path) -> io::Result<()> {
        self.0.iter().try_for_each(|file| put_back(tree, file))
    }
}

/// Runs them on a candidate that passed its own tests, in a copy of its own. Nothing where there is nothing to run, or a copy
/// can't be made: the tests of the change passed, and that stands.
pub(super) fn run(
    world: &World,
    seq: Seq,
    start: &TestsStart,
    base: &str,
    commit: &ObjectId,
) -> Option<OldTests> {
    let files = OldFiles::of(world, &ObjectId::parse(base.as_bytes()).ok()?, commit)?;
    let mut slot = world.pool.take(WorkspaceKind::Scratch, &world.run_id, commit).ok()?;
    let tree = slot.tree();
    let setup = setup::prepare(world, seq, commit, &mut slot, &format!("act-old-setup-{seq}.log"));
    if setup.is_some_and(|setup| setup.result != Tested::Passed) {
        return None;
    }
    build_cache::lay(world, commit, &tree);
    files.put_back(&tree).ok()?;
    let artifact = format!("act-old-tests-{seq}.log");
    let log = world.artifacts().join(&artifact);
    let ended = checks::in_copy(world, seq, &start.command, &tree, &log, start.limit_ms);
    let tested = checks::tested(&ended, &log, start.limit_ms);
    Some(OldTests { result: tested.result, counts: tested.ran.counts, artifact })
}

fn changed_tests(world: &World, base: &ObjectId, commit: &ObjectId) -> Option<Vec<OldFile>> {
    let base = change::parted(&world.repo, base, commit).ok()?;
    let changed = change::changed(&world.repo, &base, commit).ok()?;
    let was_test = |path: &change::ChangedPath| {
        [PLAIN, EXECUTABLE].contains(&path.old_mode.as_str())
            && is_test_path(&String::from_utf8_lossy(&path.path))
    };
    let changed: Vec<_> = changed.into_iter().filter(was_test).collect();
    if changed.len() > FILES_AT_MOST {
        return None;
    }
    let old = |path: change::ChangedPath| {
        let content = change::blob_at(&world.repo, &base, &path.path).ok()??;
        let executable = path.old_mode == EXECUTABLE;
        Some(OldFile { path: os::path(path.path), content, executable })
    };
    changed.into_iter().map(old).collect()
}

/// Writes a file into a copy of the step. Nothing in the copy leads the writing elsewhere: links on the way are replaced.
fn put_back(tree: &Path, file: &OldFile) -> io::Result<()> {
    if !file.path.components().all(|part| matches!(part, Component::Normal(_))) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut at = tree.to_path_buf();
    for folder in file.path.parent().into_iter().flat_map(Path::components) {
        at.push(folder);
        match fs::symlink_metadata(&at) {
            Ok(meta) if meta.is_dir() => continue,
            Ok(_) => fs::remove_file(&at)?,
            Err(_) => {}
        }
        fs::create_dir(&at)?;
    }
    let path = tree.join(&file.path);
    match fs::symlink_metadata(&path) {
        Ok(meta) if meta.is_dir() => remove_tree(&path)?,
        Ok(_) => fs::remove_file(&path)?,
        Err(_) => {}
    }
    fs::write(&path, &file.content)?;
    if file.executable { os::set_mode(&path, 0o755) } else { Ok(()) }
}
