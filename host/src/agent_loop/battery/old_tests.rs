//! The tests as they were before the loop began, on the new code (L-09). It decides nothing: the Judge and people see it.

use archeflow_core::model::CheckEnd;

use super::{CheckRun, OLD_TESTS, Wanted, set_up, tests};
use crate::executors::old_tests::OldFiles;
use crate::git::ObjectId;
use crate::git::workspace::WorkspaceKind;
use crate::world::World;

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
    let Some(files) = OldFiles::of(world, base, commit) else {
        return Some(None);
    };
    let Ok(mut slot) = world.pool.take(WorkspaceKind::Scratch, &world.run_id, commit) else {
        return Some(None);
    };
    let tree = slot.tree();
    if set_up(world, wanted, commit, &mut slot)?.is_err() {
        return Some(None);
    }
    if files.put_back(&tree).is_err() {
        return Some(None);
    }
    tests(world, wanted, OLD_TESTS, command, &tree).map(Some)
}
