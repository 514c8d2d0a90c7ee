//! The tests as they were before the loop began, on the new code (L-09). A step may change tests because more is asked for;
//! whether it still does what they asked for before, only they can say. It decides nothing: the Judge and people see it.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use archeflow_core::model::CheckEnd;
use archeflow_core::rules::signs::is_test_path;

use super::{CheckRun, OLD_TESTS, Wanted, set_up, tests};
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

/// A test file as it was.
struct OldFile {
    path: PathBuf,
    content: Vec<u8>,
    executable: bool,
}

/// Runs them where the step changed or removed tests that were there before and its own tests pass. `None` if the user
/// stopped it; nothing inside where there is nothing to run.
pub(super) fn run(
    world: &World,
    wanted: &Wanted<'_>,
    base: &ObjectId,
    commit: &ObjectId,
    new: &CheckRun,
) -> Option<Option<CheckRun>> {
    let Some(command) = wanted.tests.filter(|_| new.end == CheckEnd::Passed && !wanted.part) else {
        return Some(None);
    };
    // Without them nothing is said: the tests of the step passed, and that stands.
    let Some(files) = changed_tests(world, base, commit).filter(|files| !files.is_empty()) else {
        return Some(None);
    };
    let Ok(mut slot) = world.pool.take(WorkspaceKind::Scratch, &world.run_id, commit) else {
        return Some(None);
    };
    let tree = slot.tree();
    if set_up(world, wanted, commit, &mut slot)?.is_err() {
        return Some(None);
    }
    if files.iter().any(|file| put_back(&tree, file).is_err()) {
        return Some(None);
    }
    tests(world, wanted, OLD_TESTS, command, &tree).map(Some)
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
