//! Many runs in many repositories, as they are after years: what `status` and `list` take to look at all of them.
//!
//! Every run is a whole journal of the core's own making, noted in the index of its repository when it began and when
//! it ended, and known as begun here. They were merged, but for one of each repository, which was interrupted.

use std::fs::{File, create_dir_all};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use archeflow_core::event::Entry;
use archeflow_host::store::index::IndexEntry;
use archeflow_host::store::journal::Journal;
use archeflow_host::store::own_runs::OwnRun;
use archeflow_host::{log, repositories};

use super::storage::MadeUp;
use super::{Bench, Goal, Row, Rows, best, git, ms};

const RUNS: usize = 10_000;
const REPOSITORIES: usize = 200;
const TRIES: u32 = 7;

type Fault = Box<dyn std::error::Error>;

pub(super) fn measure(bench: &Bench) -> Rows {
    let made = ManyRuns::make(bench, REPOSITORIES, RUNS / REPOSITORIES)?;
    let rows =
        [("status", &["status"][..]), ("list", &["list", "--all"]), ("list of one repository", &["list"])];
    let rows = rows.into_iter().map(|(what, words)| {
        let ours = ms(made.time(words)?);
        let what = format!("{what}, {RUNS} runs in {REPOSITORIES} repositories");
        Ok(Row { what, floor: None, ours, unit: "ms", goal: Goal::AtMost(80.0) })
    });
    rows.collect()
}

/// Repositories with runs that have ended.
pub(super) struct ManyRuns {
    program: PathBuf,
    home: PathBuf,
    first: PathBuf,
}

impl ManyRuns {
    pub(super) fn make(bench: &Bench, repositories: usize, each: usize) -> Result<ManyRuns, Fault> {
        let base = bench.folder.path().join(format!("runs-{repositories}-{each}"));
        let home = base.join("home");
        let state = home.join(".local/state/archeflow");
        create_dir_all(&state)?;
        let mut lines = Vec::new();
        MadeUp { failures: 0, endless: false }.play_until(u64::MAX, |entry| lines.push(entry));
        for n in 0..repositories {
            let root = base.join(format!("repository-{n:03}"));
            create_dir_all(root.join(".archeflow/events"))?;
            git(&root, &["init", "-q"])?;
            let root = root.canonicalize()?;
            repositories::remember(&state, &root)?;
            runs_in(&root, &state, each, &lines)?;
        }
        Ok(ManyRuns { program: bench.program.clone(), home, first: base.join("repository-000") })
    }

    pub(super) fn first(&self) -> &Path {
        &self.first
    }

    pub(super) fn home(&self) -> &Path {
        &self.home
    }

    /// The shortest of several times a command takes in the first repository.
    pub(super) fn time(&self, words: &[&str]) -> Result<Duration, Fault> {
        best(TRIES, || {
            let begun = Instant::now();
            let mut command = Command::new(&self.program);
            command.args(words).current_dir(&self.first).env("HOME", &self.home);
            command.env_remove("XDG_STATE_HOME").env_remove("XDG_CONFIG_HOME");
            let output = command.stdin(Stdio::null()).output()?;
            let took = begun.elapsed();
            let text = String::from_utf8_lossy(&output.stdout);
            match output.status.success() && text.contains("merged") && !text.contains("foreign") {
                true => Ok(took),
                false => Err(format!("{words:?}: {}", String::from_utf8_lossy(&output.stderr)).into()),
            }
        })
    }
}

fn runs_in(root: &Path, state: &Path, each: usize, lines: &[Entry]) -> Result<(), Fault> {
    let events = root.join(".archeflow/events");
    let mut index = File::create(events.join("index.jsonl"))?;
    // The same journal under many names: the name is in every line, so each is written once and copied as text.
    let mut journal = Journal::create(&events, "2026-01-01-first-of-all-000000")?;
    log::append(&mut journal, lines)?;
    drop(journal);
    let made = events.join("2026-01-01-first-of-all-000000.jsonl");
    for n in 0..each {
        let run_id = format!("2026-01-01-polish-greeting-{n:06}");
        let path = events.join(format!("{run_id}.jsonl"));
        // Waits: it is read whole, so it must be a journal of its own.
        let waits = n == 0;
        if waits {
            let mut journal = Journal::create(&events, &run_id)?;
            log::append(&mut journal, &lines[..lines.len() / 2])?;
        } else {
            std::fs::copy(&made, &path)?;
        }
        let text = std::fs::read(&path)?;
        let first = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let digest = archeflow_host::store::files::digest(first);
        OwnRun { state, root, run_id: &run_id }.remember(1, &digest)?;
        for status in if waits { &["running"][..] } else { &["running", "merged"] } {
            let entry = IndexEntry {
                run_id: run_id.clone(),
                status: (*status).to_owned(),
                task: format!("Make part {n} of the greeting polite to everybody who comes by"),
                ts: format!("2026-01-{:02}T{:02}:{:02}:00Z", 1 + n / 1440 % 28, n / 60 % 24, n % 60),
                reopens_at: None,
                reverted_at: None,
            };
            writeln!(index, "{}", serde_json::to_string(&entry)?)?;
        }
    }
    std::fs::remove_file(made)?;
    Ok(())
}
