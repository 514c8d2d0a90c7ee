//! Handing out working copies of a repository of 20,000 files.

use std::fs::{create_dir_all, write};
use std::path::Path;
use std::time::{Duration, Instant};

use archeflow_host::git::workspace::{Kind, Pool};
use archeflow_host::git::{Env, Oid, Repo};

use super::{Bench, Goal, Row, Rows, best, git, ms};

const FOLDERS: usize = 200;
const FILES: usize = 100;
const WARM: u32 = 5;
const COLD: u32 = 3;

pub(super) fn measure(bench: &Bench) -> Rows {
    let place = bench.folder.path().join("large");
    generate(&place)?;
    let state = bench.folder.path().join("state-large");
    create_dir_all(&state)?;
    let repo = Repo::open(&place, &state, &Env::of_process())?;
    let commit = repo.target(None)?.oid;

    git(&place, &["status"])?;
    let status = best(WARM, || git(&place, &["status", "--porcelain"]))?;
    let mut n = 0;
    let add = best(COLD, || {
        n += 1;
        git(&place, &["worktree", "add", "-q", "--detach", &format!("../worktree-{n}")])
    })?;

    let mut rows = Vec::new();
    for (kind, name) in [(Kind::Maker, "maker"), (Kind::Reader, "reader")] {
        let mut tries = 0;
        let cold = best(COLD, || {
            tries += 1;
            // A state of its own each time: nothing is there to be used again.
            let state = state.join(format!("{name}-{tries}"));
            let repo = Repo::open(&place, &state, &Env::of_process())?;
            hand_out(&Pool::new(&state, &repo), kind, &commit)
        })?;
        let pool = Pool::new(&state, &repo);
        hand_out(&pool, kind, &commit)?;
        let warm = best(WARM, || hand_out(&pool, kind, &commit))?;
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

fn hand_out(pool: &Pool, kind: Kind, commit: &Oid) -> Result<Duration, Box<dyn std::error::Error>> {
    let begun = Instant::now();
    let mut slot = pool.take(kind, "bench", commit)?;
    let took = begun.elapsed();
    if kind == Kind::Maker {
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
