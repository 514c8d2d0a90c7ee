//! The engine's own time per step: from an agent's end to the next one's start, as the agents see it.
//!
//! The floor is a loop that does what no engine can do without: start the same agent the same way, feed it a brief,
//! take its answer, and put two lines on disk.

use std::collections::BTreeMap;
use std::fs::{File, create_dir, create_dir_all};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use super::agent::{Appearance, appearances};
use super::{Bench, Goal, Row, Rows, git};

const RUNS: usize = 6;
const BARE_STEPS: usize = 60;

/// A step with its goal: between two readers nothing but the journal must happen, while a Maker's working copy has to
/// be made and collected.
const STEPS: [(&str, &str, Goal); 5] = [
    ("explorer", "creator", Goal::Times(1.4)),
    ("guardian", "skeptic", Goal::Times(2.0)),
    ("guardian", "sage", Goal::Times(2.0)),
    ("creator", "maker", Goal::Times(2.0)),
    ("maker", "guardian", Goal::AtMost(8.0)),
];

pub(super) fn measure(bench: &Bench) -> Rows {
    let bare = pauses(&bare_loop(bench)?);
    let floor = bare.values().flatten().copied().min().ok_or("the bare loop has no steps")?;
    let seen = (0..RUNS).map(|n| one_run(bench, n)).collect::<Result<Vec<_>, _>>()?;
    let ours = best_pauses(&seen);
    let mut rows = Vec::new();
    for (from, to, goal) in STEPS {
        let Some(best) = ours.get(&(from.to_owned(), to.to_owned())) else { continue };
        rows.push(Row {
            what: format!("engine time per step: {from} -> {to}"),
            floor: Some(millis(floor)),
            ours: millis(*best),
            unit: "ms",
            goal,
        });
    }
    Ok(rows)
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds for people")]
pub(super) fn millis(nanos: u128) -> f64 {
    nanos as f64 / 1e6
}

fn bare_loop(bench: &Bench) -> Result<Vec<Appearance>, Box<dyn std::error::Error>> {
    let folder = bench.folder.path().join("bare");
    create_dir(&folder)?;
    let line = format!("exec {} __noop-agent {}", bench.me.display(), folder.display());
    let mut log = File::create(bench.folder.path().join("bare.log"))?;
    let brief = vec![b'x'; 8_000];
    for _ in 0..BARE_STEPS {
        let mut child = Command::new("/bin/sh")
            .args(["-c", &line])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        child.stdin.take().ok_or("no input")?.write_all(&brief)?;
        child.stdout.take().ok_or("no output")?.read_to_end(&mut Vec::new())?;
        child.wait()?;
        for _ in 0..2 {
            log.write_all(&brief[..1_000])?;
            log.sync_data()?;
        }
    }
    Ok(appearances(&folder)?)
}

fn one_run(bench: &Bench, n: usize) -> Result<Vec<Appearance>, Box<dyn std::error::Error>> {
    let repo = bench.folder.path().join(format!("repo-{n}"));
    sample(&repo)?;
    let folder = bench.folder.path().join(format!("seen-{n}"));
    create_dir(&folder)?;
    let output = command(bench, &repo, &folder).output()?;
    let seen = appearances(&folder)?;
    if seen.len() < 5 {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(
            format!("a run sent {} agents and ended with {}:\n{said}", seen.len(), output.status).into()
        );
    }
    Ok(seen)
}

/// A repository with one file.
pub(super) fn sample(repo: &Path) -> Result<(), Box<dyn std::error::Error>> {
    create_dir_all(repo)?;
    std::fs::write(repo.join("a.txt"), "hello\n")?;
    git(repo, &["init", "-q", "-b", "main"])?;
    git(repo, &["add", "-A"])?;
    git(repo, &["commit", "-q", "-m", "One file"])?;
    Ok(())
}

/// A run of the release binary with the agent that does nothing.
pub(super) fn command(bench: &Bench, repo: &Path, folder: &Path) -> Command {
    command_with(bench, repo, &format!("cmd:{} __noop-agent {}", bench.me.display(), folder.display()))
}

/// A run of the release binary with this agent, away from the user's own state.
pub(super) fn command_with(bench: &Bench, repo: &Path, agent: &str) -> Command {
    let mut command = Command::new(&bench.program);
    command
        .args(["run", "Greet everybody", "--workflow", "standard", "--strategy", "pdca", "--no-tests"])
        // What a sandbox adds to a start is a measure of its own.
        .args(["--auto-merge", "--unattended", "--unsafe-no-sandbox"])
        .args(["--agent", agent])
        .current_dir(repo)
        .stdin(Stdio::null())
        .env("XDG_STATE_HOME", bench.folder.path().join("state"))
        .env("XDG_CONFIG_HOME", bench.folder.path().join("config"))
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_AUTHOR_NAME", "Bench")
        .env("GIT_AUTHOR_EMAIL", "bench@example.invalid")
        .env("GIT_CONFIG_NOSYSTEM", "1");
    command
}

type Step = (String, String);

/// The shortest pause of each step over several runs.
pub(super) fn best_pauses(runs: &[Vec<Appearance>]) -> BTreeMap<Step, u128> {
    let mut best = BTreeMap::new();
    for (step, times) in runs.iter().flat_map(|seen| pauses(seen)) {
        let known = best.entry(step).or_insert(u128::MAX);
        *known = times.into_iter().fold(*known, u128::min);
    }
    best
}

/// The pauses without a running agent, by the agents before and after.
pub(super) fn pauses(seen: &[Appearance]) -> BTreeMap<Step, Vec<u128>> {
    let mut pauses: BTreeMap<Step, Vec<u128>> = BTreeMap::new();
    for (n, next) in seen.iter().enumerate() {
        let Some(last) = seen[..n].iter().max_by_key(|before| before.ended) else { continue };
        if last.ended <= next.began {
            pauses.entry((last.role.clone(), next.role.clone())).or_default().push(next.began - last.ended);
        }
    }
    pauses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_between_the_last_end_and_the_next_start() {
        let seen = [(0, 10, "a"), (15, 30, "b"), (16, 40, "c"), (43, 50, "d")]
            .map(|(began, ended, role)| Appearance { began, ended, role: role.to_owned() });
        let pauses = pauses(&seen);
        let expected = [(("a", "b"), 5), (("c", "d"), 3)];
        assert_eq!(pauses.len(), expected.len());
        for ((from, to), gap) in expected {
            assert_eq!(pauses[&(from.to_owned(), to.to_owned())], [gap]);
        }
    }
}
