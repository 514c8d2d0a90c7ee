//! Handing out working copies of a repository of 20,000 files.

use std::fs::{create_dir_all, write};
use std::path::Path;
use std::time::{Duration, Instant};

use archeflow_host::git::workspace::{Pool, WorkspaceKind};
use archeflow_host::git::{GitEnv, ObjectId, Repo};

use super::{Bench, Goal, Row, Rows, git, ms};

const FOLDERS: usize = 200;
const FILES: usize = 100;
const WARM: u32 = 12;
const COLD: u32 = 4;

pub(super) fn measure(bench: &Bench) -> Rows {
    let place = bench.folder.path().join("large");
    generate(&place)?;
    let state = bench.folder.path().join("state-large");
    create_dir_all(&state)?;
    let repo = Repo::open(&place, &state, &GitEnv::of_process())?;
    let commit = repo.target(None)?.oid;

    git(&place, &["status"])?;
    let mut rows = Vec::new();
    for (kind, name) in [(WorkspaceKind::Maker, "maker"), (WorkspaceKind::Reader, "reader")] {
        let pool = Pool::new(&state, &repo);
        hand_out(&pool, kind, &commit)?;
        let (status, warm) = in_turns(
            WARM,
            |_| git(&place, &["status", "--porcelain", "--untracked-files=all"]),
            |_| hand_out(&pool, kind, &commit),
        )?;
        let (add, cold) = in_turns(
            COLD,
            |n| git(&place, &["worktree", "add", "-q", "--detach", &format!("../{name}-{n}")]),
            |n| {
                // A state of its own each time: nothing is there to be used again.
                let state = state.join(format!("{name}-{n}"));
                let repo = Repo::open(&place, &state, &GitEnv::of_process())?;
                hand_out(&Pool::new(&state, &repo), kind, &commit)
            },
        )?;
        for (how, floor, ours, times) in [("warm", status, warm, 1.2), ("cold", add, cold, 1.0)] {
            let against = if how == "warm" { "git status" } else { "git worktree add" };
            rows.push(Row {
                what: format!("{name}'s copy, {how}, against {against}"),
                floor: Some(ms(floor)),
                ours: ms(ours),
                unit: "ms",
                goal: Goal::Times(times),
            });
        }
    }
    Ok(rows)
}

type Timed = Result<Duration, Box<dyn std::error::Error>>;

/// The best of each, tried in turns, so that what else the machine does falls on both.
fn in_turns(
    tries: u32,
    mut floor: impl FnMut(u32) -> Timed,
    mut ours: impl FnMut(u32) -> Timed,
) -> Result<(Duration, Duration), Box<dyn std::error::Error>> {
    let mut best = (Duration::MAX, Duration::MAX);
    for n in 0..tries {
        best = (best.0.min(floor(n)?), best.1.min(ours(n)?));
    }
    Ok(best)
}

fn hand_out(pool: &Pool, kind: WorkspaceKind, commit: &ObjectId) -> Timed {
    let begun = Instant::now();
    let mut slot = pool.take(kind, "bench", commit)?;
    let took = begun.elapsed();
    if kind == WorkspaceKind::Maker {
        slot.abandon()?;
    }
    Ok(took)
}

fn generate(place: &Path) -> Result<(), Box<dyn std::error::Error>> {
    for folder in 0..FOLDERS {
        let folder = place.join(format!("folder-{folder}"));
        create_dir_all(&folder)?;
        for file in 0..FILES {
            let text = format!("{}\n", folder.display()).repeat(4);
            write(folder.join(format!("file-{file}.txt")), text)?;
        }
    }
    git(place, &["init", "-q", "-b", "main"])?;
    git(place, &["add", "-A"])?;
    git(place, &["commit", "-q", "-m", "Many files"])?;
    Ok(())
}
