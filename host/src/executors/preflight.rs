//! Tries the setup and test commands on the base commit before the first agent starts (U-10).

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use archeflow_core::event::{BaseTests, PreflightDone, PreflightStart, SetupRun, Tested, TestsRan};
use archeflow_core::model::Seq;
use archeflow_core::rules::keeping::PASSED_MINUTES;

use super::{build_cache, checks, setup};
use crate::git::ObjectId;
use crate::git::workspace::WorkspaceKind;
use crate::platform::files as os;
use crate::store::files;
use crate::world::World;

/// A tree that passed its tests is not tested again before its next run for so long. Tools may change.
const FRESH: Duration = Duration::from_secs(PASSED_MINUTES * 60);
/// Below the program's state.
pub(crate) const FOLDER: &str = "passed";
/// The artifact with the output of the tests on the base commit.
pub(super) const BASE_LOG: &str = "base-tests.log";

pub(super) fn perform(world: &World, seq: Seq, start: &PreflightStart) -> PreflightDone {
    let broken = |why: String| PreflightDone {
        start_seq: seq,
        setup: None,
        tests: Some(BaseTests {
            result: Tested::Broken,
            exit: None,
            reused: false,
            cache: Vec::new(),
            duration_ms: 0,
            artifact: String::new(),
            lines: vec![why],
            failing: Vec::new(),
            ran: TestsRan::default(),
        }),
    };
    let commit = match ObjectId::parse(start.commit.as_bytes()) {
        Ok(commit) => commit,
        Err(error) => return broken(error.to_string()),
    };
    let mut slot = match world.pool.take(WorkspaceKind::Scratch, &world.run_id, &commit) {
        Ok(slot) => slot,
        Err(error) => return broken(format!("no scratch copy: {error}")),
    };
    let tree = slot.tree();
    let setup: Option<SetupRun> = setup::prepare(world, seq, &commit, &mut slot, "base-setup.log");
    let is_set_up = setup.as_ref().is_none_or(|setup| setup.result == Tested::Passed);
    let tests = start.test_command.as_ref().filter(|_| is_set_up).map(|command| {
        let known = PassedTests::of(world, &commit, command);
        if known.as_ref().is_some_and(PassedTests::is_fresh) {
            return passed_earlier(known.map(|known| known.ran()).unwrap_or_default());
        }
        let artifact = BASE_LOG.to_owned();
        let log = world.artifacts().join(&artifact);
        let cache = build_cache::lay(world, &commit, &tree);
        let ran = checks::in_copy(world, seq, command, &tree, &log, start.tests_limit_ms);
        let tests = checks::tested(&ran, &log, start.tests_limit_ms);
        let ran = TestsRan { changed: slot.changed_files(), ..tests.ran };
        if let (Tested::Passed, Some(known)) = (tests.result, known) {
            known.note(&ran);
        }
        BaseTests {
            result: tests.result,
            exit: tests.exit,
            reused: false,
            cache,
            duration_ms: tests.duration_ms,
            artifact,
            lines: tests.lines,
            failing: tests.failing,
            ran,
        }
    });
    PreflightDone { start_seq: seq, setup, tests }
}

fn passed_earlier(ran: TestsRan) -> BaseTests {
    BaseTests {
        result: Tested::Passed,
        exit: Some(0),
        reused: true,
        cache: Vec::new(),
        duration_ms: 0,
        artifact: String::new(),
        lines: Vec::new(),
        failing: Vec::new(),
        ran,
    }
}

/// That a command passed on a tree, kept for the next runs on it: the items of a sprint begin from the same commit, and
/// what a run landed is what the next one begins from.
pub(super) struct PassedTests {
    folder: PathBuf,
    path: PathBuf,
}

impl PassedTests {
    pub(super) fn of(world: &World, commit: &ObjectId, command: &str) -> Option<PassedTests> {
        let tree = world.repo.tree_of(commit).ok()?;
        let setup = world.setup().map_or("", |setup| setup.command.as_str());
        let mut hasher = blake3::Hasher::new();
        for part in [world.repo.id(), tree.as_str(), command, setup, world.sandbox.name()] {
            hasher.update(part.as_bytes());
            hasher.update(&[0]);
        }
        let folder = world.state.join(FOLDER);
        let path = folder.join(&hasher.finalize().to_hex()[..32]);
        Some(PassedTests { folder, path })
    }

    fn is_fresh(&self) -> bool {
        let age = |path: &PathBuf| fs::metadata(path).ok()?.modified().ok()?.elapsed().ok();
        age(&self.path).is_some_and(|age| age < FRESH)
    }

    /// Without it the tests are run once more.
    pub(super) fn note(&self, ran: &TestsRan) {
        let _ = self.try_note(ran);
    }

    fn try_note(&self, ran: &TestsRan) -> io::Result<()> {
        os::private_directory().recursive(true).create(&self.folder)?;
        files::write_atomic(&self.path, &serde_json::to_vec(ran)?).map_err(io::Error::other)
    }

    /// What ran then; notes of earlier versions are empty.
    fn ran(&self) -> TestsRan {
        let text = files::read_capped(&self.path, 1 << 20).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }
}
