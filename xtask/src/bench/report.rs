//! What it takes to look at a run with a long journal: the report as HTML and the graph, by the program itself.

use std::process::{Command, Stdio};
use std::time::Instant;

use archeflow_host::log;
use archeflow_host::store::journal::Journal;

use super::storage::MadeUp;
use super::{Bench, Goal, Row, Rows, best, engine, ms};

const LINES: u64 = 10_000;
const TRIES: u32 = 7;

pub(super) fn measure(bench: &Bench) -> Rows {
    let repo = bench.folder.path().join("repo-report");
    engine::sample(&repo)?;
    let events = repo.join(".archeflow/events");
    std::fs::create_dir_all(&events)?;
    let mut journal = Journal::create(&events, "long")?;
    let mut entries = Vec::new();
    MadeUp { failures: 2, endless: true }.play_until(LINES, |entry| entries.push(entry));
    log::append(&mut journal, &entries)?;
    drop(journal);
    let home = bench.folder.path().join("home-report");
    std::fs::create_dir_all(&home)?;
    let mut rows = Vec::new();
    for (what, words) in [
        ("report as HTML", &["report", "long", "--html"][..]),
        ("report as Markdown", &["report", "long"]),
        ("graph of events", &["dag", "long"]),
    ] {
        let took = best(TRIES, || -> Result<_, Box<dyn std::error::Error>> {
            let begun = Instant::now();
            let status = Command::new(&bench.program)
                .args(words)
                .current_dir(&repo)
                .env("HOME", &home)
                .env_remove("XDG_STATE_HOME")
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .status()?;
            if status.success() { Ok(begun.elapsed()) } else { Err(format!("{what}: {status}").into()) }
        })?;
        rows.push(Row {
            what: format!("{what}, {} lines", entries.len()),
            floor: None,
            ours: ms(took),
            unit: "ms",
            goal: Goal::AtMost(200.0),
        });
    }
    Ok(rows)
}
