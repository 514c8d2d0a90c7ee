//! The golden run, and what every crashed one is compared with.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use archeflow_core::event::Entry;

use super::audit::{self, Users};
use super::scene::{Ended, Scene, TOKENS};
use crate::user::as_strs;

pub(crate) struct Golden {
    pub(crate) entries: Vec<Entry>,
    pub(crate) decisions: Vec<String>,
    pub(crate) tree: String,
    pub(crate) artifacts: BTreeMap<PathBuf, String>,
    /// How often the run passes each place where it can be killed.
    pub(crate) places: BTreeMap<String, u64>,
}

/// The run without a crash.
pub(crate) fn golden() -> &'static Golden {
    static GOLDEN: OnceLock<Golden> = OnceLock::new();
    GOLDEN.get_or_init(|| {
        let scene = Scene::new();
        let before = Users::look(&scene.repo());
        let args = scene.run_args();
        let args = as_strs(&args);
        let (ended, places) = scene.traced(scene.command(&args));
        assert_eq!(ended.code, Some(0), "{}", ended.said);
        let entries = audit::journal(&scene.journal()).unwrap();
        let golden = Golden {
            decisions: audit::decisions(&entries),
            tree: scene.git(&["rev-parse", "main^{tree}"]),
            artifacts: audit::artifacts(&scene.repo(), &scene.id()),
            entries,
            places,
        };
        check(&scene, &before, &golden).unwrap();
        golden
    })
}

/// Everything that must hold of the standard run once it has ended, however it got there.
pub(crate) fn check(scene: &Scene, before: &Users, golden: &Golden) -> audit::Found {
    let repo = scene.repo();
    let entries = audit::journal(&scene.journal())?;
    audit::same_decisions(&golden.decisions, &entries)?;
    audit::ends(&entries, 1)?;
    let tree = scene.git(&["rev-parse", "main^{tree}"]);
    if tree != golden.tree {
        return Err(format!("the landed tree is {tree}, not {}", golden.tree));
    }
    audit::users_work(&repo, before, 1)?;
    audit::tested_is_landed(&repo, &entries)?;
    audit::reachable(&repo, TOKENS)?;
    // Every Maker writes down what it committed, outside of its sandbox.
    let ledger =
        fs::read_to_string(scene.base().join("ledger")).map_err(|error| format!("no ledger: {error}"))?;
    audit::reachable(&repo, ledger.lines())?;
    audit::no_process(&entries)?;
    audit::listed(&scene.events(), &scene.id(), "merged")?;
    audit::same_artifacts(&golden.artifacts, &audit::artifacts(&repo, &scene.id()))
}

/// Resumes until the run has ended; at the places given, it is killed again first.
pub(crate) fn see_through(scene: &Scene, kills: &[&str]) -> Result<Vec<Ended>, String> {
    let mut ends = Vec::new();
    for kill in kills {
        let shadow = fs::read(scene.journal()).unwrap_or_default();
        let ended = scene.resume(Some(kill));
        audit::prefix(&shadow, &scene.journal())?;
        let over = !ended.killed;
        ends.push(ended);
        if over {
            break;
        }
    }
    let shadow = fs::read(scene.journal()).unwrap_or_default();
    let ended = scene.resume(None);
    audit::prefix(&shadow, &scene.journal())?;
    // Code 2 says that there was nothing left to do.
    let over =
        ended.code == Some(0) || (ended.code == Some(2) && ended.said.contains("the run has ended (merged)"));
    if !over {
        return Err(format!("resuming ended with {:?}: {}", ended.code, ended.said));
    }
    ends.push(ended);
    Ok(ends)
}

/// Kills the standard run at a place, lets it be resumed (and killed again), and checks everything.
/// `false` when the run never came to that place.
pub(crate) fn kill_at(place: &str, again: &[&str]) -> Result<bool, String> {
    let golden = golden();
    let scene = Scene::new();
    let before = Users::look(&scene.repo());
    let ended = scene.run(Some(place));
    let killed = ended.killed;
    if !killed && ended.code != Some(0) {
        return Err(format!("{place}: ended with {:?}: {}", ended.code, ended.said));
    }
    if killed {
        let lost = cut_short(&scene);
        see_through(&scene, again).map_err(|what| format!("{place}, then {again:?}: {what}"))?;
        if again.is_empty() {
            let entries = audit::journal(&scene.journal())?;
            let sent = audit::sent(&golden.entries) + lost;
            audit::sent_as_often(&entries, sent).map_err(|what| format!("{place}: {what}"))?;
        }
    }
    check(&scene, &before, golden).map_err(|what| format!("{place}, then {again:?}: {what}"))?;
    Ok(killed)
}

/// Says how much was swept, past the test runner's ears.
pub(crate) fn tell(text: &str) {
    let _ = std::io::stderr().write_all(format!("{text}\n").as_bytes());
}

/// Attempts that a crash cut short: their agents must go out once more, and nobody else.
fn cut_short(scene: &Scene) -> usize {
    let attempts = scene.repo().join(".archeflow/artifacts").join(scene.id()).join("attempts");
    let attempts = fs::read_dir(attempts).into_iter().flatten().flatten();
    attempts.filter(|attempt| !attempt.path().join("done.json").exists()).count()
}

/// Does the same with many points on a few threads; all that is wrong is told at once.
pub(crate) fn sweep<T: Sync>(points: &[T], act: impl Fn(&T) -> Result<bool, String> + Sync) -> usize {
    let (next, killed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let worker = || {
        let mut wrong = Vec::new();
        while let Some(point) = points.get(next.fetch_add(1, Ordering::SeqCst)) {
            match act(point) {
                Ok(true) => drop(killed.fetch_add(1, Ordering::SeqCst)),
                Ok(false) => {}
                Err(what) => wrong.push(what),
            }
        }
        wrong
    };
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(worker)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{} of {} points:\n{}", wrong.len(), points.len(), wrong.join("\n"));
    killed.into_inner()
}
