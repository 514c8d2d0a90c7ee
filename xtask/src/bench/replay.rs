//! A long run looked at again: its timeline, and what another policy would have made of it, by the program itself.

use std::process::Command;
use std::time::{Duration, Instant};

use archeflow_host::log;
use archeflow_host::store::journal::Journal;

use super::storage::MadeUp;
use super::{Bench, Goal, Row, Rows, best, engine, ms};

const LINES: u64 = 10_000;

/// What is asked, and whether the goal is for it. All three read, check and decode the whole log.
const ASKED: [(&str, &[&str]); 3] = [
    ("timeline", &["timeline", "long"]),
    ("whatif, nothing changed", &["whatif", "long"]),
    ("whatif, other policy", &["whatif", "long", "--set", "convergence.line_window=11"]),
];

pub(super) fn measure(bench: &Bench) -> Rows {
    let repo = bench.folder.path().join("replayed");
    engine::sample(&repo)?;
    let events = repo.join(".archeflow/events");
    std::fs::create_dir_all(&events)?;
    let (mut journal, mut lines) = (Journal::create(&events, "long")?, Vec::new());
    MadeUp { failures: 20, endless: true }.play_until(LINES, |entry| lines.push(entry));
    for batch in lines.chunks(1_000) {
        log::append(&mut journal, batch)?;
    }
    drop(journal);
    let floor = best(5, || run(bench, &repo, &["list"]))?;
    let mut rows = Vec::new();
    for (what, words) in ASKED {
        let words = [&["replay"], words].concat();
        let took = best(15, || run(bench, &repo, &words))?;
        rows.push(Row {
            what: format!("replay {what}, {} lines", lines.len()),
            floor: Some(ms(floor)),
            ours: ms(took),
            unit: "ms",
            goal: Goal::AtMost(100.0),
        });
    }
    Ok(rows)
}

fn run(
    bench: &Bench,
    repo: &std::path::Path,
    words: &[&str],
) -> Result<Duration, Box<dyn std::error::Error>> {
    let begun = Instant::now();
    let output = Command::new(&bench.program)
        .args(words)
        .current_dir(repo)
        .env("XDG_STATE_HOME", bench.folder.path().join("state"))
        .env("XDG_CONFIG_HOME", bench.folder.path().join("config"))
        .output()?;
    match output.status.success() {
        true => Ok(begun.elapsed()),
        false => Err(format!("{words:?}: {}", String::from_utf8_lossy(&output.stderr)).into()),
    }
}
