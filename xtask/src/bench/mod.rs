//! `cargo xtask bench`: the goals of the program, measured.
//!
//! A goal is a ratio to a floor measured in the same run on the same machine, best of several, so that a busy or
//! slow machine says little about us; or it is a plain limit. A missed goal is reported and is not a failure.

mod agent;
mod client;
mod count;
mod engine;
mod fleet;
mod growth;
mod memory;
mod pages;
mod queue;
mod replay;
mod report;
mod review;
mod rules;
mod runs;
mod sandbox;
mod saved;
mod sprint;
mod startup;
mod storage;
mod workspace;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

pub(crate) use agent::play;
pub(crate) use client::relay;
pub(crate) use count::{COUNTED, prepare};

use crate::test;
use saved::SaveOptions;

/// One line of the table.
struct Row {
    what: String,
    /// What the machine takes for the same, without us.
    floor: Option<f64>,
    ours: f64,
    unit: &'static str,
    goal: Goal,
}

enum Goal {
    /// At most N times the floor.
    Times(f64),
    AtMost(f64),
    AtLeast(f64),
    /// Told for information.
    None,
}

type Rows = Result<Vec<Row>, Box<dyn std::error::Error>>;

/// What is measured, and with what.
struct Bench {
    root: PathBuf,
    program: PathBuf,
    /// This program, which is also the agent that does nothing.
    me: PathBuf,
    /// On the disk of the build, since a temporary folder may be memory.
    folder: tempfile::TempDir,
}

type Measure = fn(&Bench) -> Rows;

const MEASURES: [(&str, Measure); 18] = [
    ("startup", startup::measure),
    ("sandbox", sandbox::measure),
    ("engine", engine::measure),
    ("client", client::measure),
    ("workspace", workspace::measure),
    ("memory", memory::measure),
    ("fold", storage::measure),
    ("replay", replay::measure),
    ("rules", rules::measure),
    ("report", report::measure),
    ("review", review::measure),
    ("sprint", sprint::measure),
    ("queue", queue::measure),
    ("fleet", fleet::measure),
    ("runs", runs::measure),
    ("pages", pages::measure),
    ("growth", growth::measure),
    ("size", size),
];

/// Builds as for handing out, then measures from there: what is measured must be what users get.
pub(crate) fn build_and_run(root: &Path, args: &[&str]) -> ExitCode {
    if let Err(why) = SaveOptions::take(args).and_then(|(_, names)| known(&names)) {
        eprintln!("xtask bench: {why}");
        return ExitCode::from(2);
    }
    let words = ["cargo", "build", "--profile", "dist", "--package", "archeflow", "--package", "xtask"];
    let begun = Instant::now();
    if let Err(why) = test::through(root, &words, &[]) {
        eprintln!("xtask bench: {why}");
        return ExitCode::FAILURE;
    }
    println!("the build took {:.1} s", begun.elapsed().as_secs_f64());
    let me = test::built(root, "dist", "xtask");
    let args = saved::absolute(args);
    let words: Vec<&str> =
        [me.as_str(), "__bench"].into_iter().chain(args.iter().map(String::as_str)).collect();
    match test::through(root, &words, &[]) {
        Ok(_) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("xtask bench: {why}");
            ExitCode::FAILURE
        }
    }
}

fn known(names: &[&str]) -> Result<(), String> {
    let Some(unknown) = names.iter().find(|name| !MEASURES.iter().any(|(known, _)| known == *name)) else {
        return Ok(());
    };
    let known = MEASURES.map(|(name, _)| name).join(", ");
    Err(format!("nothing is called '{unknown}'. Known: {known}"))
}

pub(crate) fn run(root: &Path, args: &[&str]) -> ExitCode {
    let taken = SaveOptions::take(args).and_then(|(options, names)| known(&names).map(|()| (options, names)));
    let (options, names) = match taken {
        Ok(taken) => taken,
        Err(why) => {
            eprintln!("xtask bench: {why}");
            return ExitCode::from(2);
        }
    };
    match measure(root, &names).and_then(|rows| Ok(options.finish(&rows)?)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask bench: can't measure: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(root: &Path, names: &[&str]) -> Rows {
    let bench = Bench {
        root: root.to_path_buf(),
        program: test::built(root, "dist", "archeflow").into(),
        me: test::built(root, "dist", "xtask").into(),
        folder: tempfile::tempdir_in(Path::new(&test::built(root, "dist", "")))?,
    };
    println!("\n{:<46} {:>10} {:>10} {:>7}  {:>9}  met", "what", "floor", "ours", "ratio", "goal");
    let mut rows = Vec::new();
    for (name, measure) in MEASURES {
        if names.is_empty() || names.contains(&name) {
            let some = measure(&bench)?;
            some.iter().for_each(Row::print);
            rows.extend(some);
        }
    }
    Ok(rows)
}

impl Row {
    fn print(&self) {
        let value = |number: f64| format!("{number:.2} {}", self.unit);
        let ratio = self.floor.map(|floor| self.ours / floor);
        let (goal, met) = match self.goal {
            Goal::Times(times) => (format!("<= {times:.1}x"), ratio.map(|ratio| ratio <= times)),
            Goal::AtMost(most) => (format!("<= {}", value(most)), Some(self.ours <= most)),
            Goal::AtLeast(least) => (format!(">= {}", value(least)), Some(self.ours >= least)),
            Goal::None => (String::new(), None),
        };
        println!(
            "{:<46} {:>10} {:>10} {:>7}  {:>9}  {}",
            self.what,
            self.floor.map(value).unwrap_or_default(),
            value(self.ours),
            ratio.map(|ratio| format!("{ratio:.2}x")).unwrap_or_default(),
            goal,
            met.map_or("", |met| if met { "yes" } else { "NO" }),
        );
    }
}

fn size(bench: &Bench) -> Rows {
    #[expect(clippy::cast_precision_loss, reason = "a size for people")]
    let ours = std::fs::metadata(&bench.program)?.len() as f64 / 1e6;
    Ok(vec![Row {
        what: "release binary".to_owned(),
        floor: None,
        ours,
        unit: "MB",
        goal: Goal::AtMost(15.0),
    }])
}

/// The shortest of several tries.
fn best<E>(tries: u32, mut act: impl FnMut() -> Result<Duration, E>) -> Result<Duration, E> {
    let mut best = act()?;
    for _ in 1..tries {
        best = best.min(act()?);
    }
    Ok(best)
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Runs git in a folder and fails when it does.
fn git(folder: &Path, args: &[&str]) -> Result<Duration, Box<dyn std::error::Error>> {
    let begun = Instant::now();
    let output = std::process::Command::new("git")
        .args(["-c", "user.name=Bench", "-c", "user.email=bench@example.invalid", "-c", "gc.auto=0"])
        .args(args)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()?;
    if !output.status.success() {
        return Err(format!("git {args:?}: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(begun.elapsed())
}
