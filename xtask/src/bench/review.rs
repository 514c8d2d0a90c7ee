//! What a review takes of our own time: a change of 5,000 lines, a reviewer that does nothing, the processor time of
//! our process alone. Git's time and the reviewer's are theirs; the wall clock is printed beside it.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use super::{Bench, Goal, Row, Rows, engine, ms};

const LINES: usize = 5_000;
const FILES: usize = 10;
const TRIES: usize = 7;

pub(super) fn measure(bench: &Bench) -> Rows {
    let folder = bench.folder.path().join("review");
    let repo = folder.join("repo");
    fs::create_dir_all(&folder)?;
    engine::sample(&repo)?;
    for n in 0..FILES {
        let line = |k: usize| format!("let value_{k} = compute({n}, {k});\n");
        fs::write(repo.join(format!("new-{n}.rs")), (0..LINES / FILES).map(line).collect::<String>())?;
    }
    let answer = folder.join("answer.md");
    fs::write(&answer, "VERDICT: APPROVED\nFINDINGS: 0\n\nSTATUS: DONE\n")?;
    let agent = format!("cmd:sh -c 'cat > /dev/null; cat {}'", answer.display());
    let (mut own, mut wall) = (Duration::MAX, Duration::MAX);
    for _ in 0..TRIES {
        let (mine, all) = once(bench, &repo, &folder.join("home"), &agent)?;
        own = own.min(mine);
        wall = wall.min(all);
    }
    let row = |what: &str, took: Duration, goal| Row {
        what: format!("review of {LINES} lines: {what}"),
        floor: None,
        ours: ms(took),
        unit: "ms",
        goal,
    };
    Ok(vec![row("our own time", own, Goal::AtMost(50.0)), row("on the clock, git and all", wall, Goal::None)])
}

/// Processor time of our process without its children, and the time on the clock.
fn once(
    bench: &Bench,
    repo: &Path,
    home: &Path,
    agent: &str,
) -> Result<(Duration, Duration), Box<dyn std::error::Error>> {
    fs::create_dir_all(home)?;
    let begun = Instant::now();
    let child = Command::new(&bench.program)
        .args(["review", "--format", "json", "--agent", agent])
        .current_dir(repo)
        .env("HOME", home)
        .env_remove("XDG_STATE_HOME")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    waitid(WaitId::Pid(Pid::from_child(&child)), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)?;
    let wall = begun.elapsed();
    // It has ended and was not taken away yet: its times are still there, apart from its children's.
    let schedule = fs::read_to_string(format!("/proc/{}/schedstat", child.id()))?;
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id()))?;
    let output = child.wait_with_output()?;
    if !output.status.success() {
        return Err(format!("a review ended with {}", output.status).into());
    }
    Ok((processor_time(&stat, &schedule), wall))
}

/// Of all its threads, in ticks of ten milliseconds; the first thread's own, where that is more, to the nanosecond.
fn processor_time(stat: &str, schedule: &str) -> Duration {
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    let first = schedule.split_whitespace().next().and_then(|field| field.parse().ok()).unwrap_or(0);
    Duration::from_millis((ticks(11) + ticks(12)) * 10).max(Duration::from_nanos(first))
}
