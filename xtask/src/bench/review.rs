//! What a review takes of our own time: a change of 5,000 lines, a reviewer that does nothing, the processor time of
//! our process alone. Git's time and the reviewer's are theirs; the wall clock is printed beside it.
//!
//! Then a change of 100 MB in 20,000 files, in parts of 4 MB: the same time, and the most memory our process held.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use super::memory::high_water_kb;
use super::{Bench, Goal, Row, Rows, engine, git, ms};

const LINES: usize = 5_000;
const FILES: usize = 10;
const TRIES: usize = 7;

/// 75 lines each.
const LARGE_FILES: usize = 20_000;
const LARGE_TRIES: usize = 2;

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
    let script = folder.join("agent.sh");
    let sign = "code=$(sed -n 's/.*as in `STATUS: DONE \\([0-9a-f]*\\)`.*/\\1/p' | tail -n 1)\n";
    let sign = format!("{sign}sed -E \"s/(VERDICT|STATUS): [A-Z]+/& $code/\" {}\n", answer.display());
    fs::write(&script, sign)?;
    let agent = format!("cmd:sh {} {}", script.display(), answer.display());
    let home = folder.join("home");
    let (mut own, mut wall) = (Duration::MAX, Duration::MAX);
    for _ in 0..TRIES {
        let took = once(bench, &repo, &home, &["--agent", &agent])?;
        own = own.min(took.own);
        wall = wall.min(took.wall);
    }
    let row = |what: &str, took: Duration, goal| Row {
        what: format!("review of {LINES} lines: {what}"),
        floor: None,
        ours: ms(took),
        unit: "ms",
        goal,
    };
    let mut rows = vec![
        row("our own time", own, Goal::AtMost(50.0)),
        row("on the clock, git and all", wall, Goal::None),
    ];
    rows.extend(large(bench, &folder, &agent)?);
    Ok(rows)
}

fn large(bench: &Bench, folder: &Path, agent: &str) -> Rows {
    let (repo, home) = (folder.join("large"), folder.join("large-home"));
    engine::sample(&repo)?;
    git(&repo, &["checkout", "-q", "-B", "main"])?;
    git(&repo, &["checkout", "-q", "-b", "topic"])?;
    for n in 0..LARGE_FILES {
        let line =
            |k: usize| format!("file {n} line {k} and some more words to make it as long as lines are\n");
        let place = repo.join(format!("many/{}", n / 200));
        fs::create_dir_all(&place)?;
        fs::write(place.join(format!("file-{n}.txt")), (0..75).map(line).collect::<String>())?;
    }
    git(&repo, &["add", "-A"])?;
    git(&repo, &["commit", "-q", "-m", "Add a great many files"])?;
    let config = home.join(".config/archeflow");
    fs::create_dir_all(&config)?;
    fs::write(config.join("config.yaml"), "review:\n  part_bytes: 4000000\n")?;
    let (mut own, mut wall, mut peak) = (Duration::MAX, Duration::MAX, 0);
    for _ in 0..LARGE_TRIES {
        let took = once(bench, &repo, &home, &["--branch", "topic", "--base", "main", "--agent", agent])?;
        own = own.min(took.own);
        wall = wall.min(took.wall);
        peak = peak.max(took.peak_kb);
    }
    let row = |what: &str, ours: f64, unit, goal| Row {
        what: format!("review of 100 MB: {what}"),
        floor: None,
        ours,
        unit,
        goal,
    };
    #[expect(clippy::cast_precision_loss, reason = "a size for people")]
    let peak = peak as f64 / 1024.0;
    Ok(vec![
        row("our own time", own.as_secs_f64(), "s", Goal::AtMost(3.5)),
        row("on the clock, git and all", wall.as_secs_f64(), "s", Goal::None),
        row("peak memory", peak, "MiB", Goal::AtMost(200.0)),
    ])
}

/// What one review took.
struct ReviewCost {
    /// Processor time of our process without its children.
    own: Duration,
    wall: Duration,
    peak_kb: u64,
}

fn once(
    bench: &Bench,
    repo: &Path,
    home: &Path,
    words: &[&str],
) -> Result<ReviewCost, Box<dyn std::error::Error>> {
    fs::create_dir_all(home)?;
    let begun = Instant::now();
    let child = Command::new(&bench.program)
        .args(["review", "--format", "json"])
        .args(words)
        .current_dir(repo)
        .env("HOME", home)
        .env_remove("XDG_STATE_HOME")
        .env_remove("XDG_CONFIG_HOME")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let mut peak_kb = 0;
    let over = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    while waitid(WaitId::Pid(Pid::from_child(&child)), over)?.is_none() {
        // The kernel keeps the high-water mark; the last look before the end has it.
        peak_kb = peak_kb.max(high_water_kb(child.id()).unwrap_or(0));
        sleep(Duration::from_millis(1));
    }
    let wall = begun.elapsed();
    // It has ended and was not taken away yet: its times are still there, apart from its children's.
    let schedule = fs::read_to_string(format!("/proc/{}/schedstat", child.id()))?;
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id()))?;
    let output = child.wait_with_output()?;
    if !output.status.success() {
        return Err(format!("a review ended with {}", output.status).into());
    }
    Ok(ReviewCost { own: processor_time(&stat, &schedule), wall, peak_kb })
}

/// Of all its threads, in ticks of ten milliseconds; the first thread's own, where that is more, to the nanosecond.
fn processor_time(stat: &str, schedule: &str) -> Duration {
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    let first = schedule.split_whitespace().next().and_then(|field| field.parse().ok()).unwrap_or(0);
    Duration::from_millis((ticks(11) + ticks(12)) * 10).max(Duration::from_nanos(first))
}
