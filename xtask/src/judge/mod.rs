//! How well the program judges, measured on a folder of labelled review histories.
//!
//! Each measure reads its own file of the folder, calls the rules as a run does, and is printed beside what a trivial
//! rule scores on the same data. The folder is not part of the repository: its texts were written by others.

mod citations;
mod pairs;
mod reader;
mod shadows;
mod signals;
mod stops;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::Value;

/// One row of the table.
pub(crate) struct Measure {
    pub(crate) what: String,
    /// What a trivial rule scores on the same data.
    pub(crate) baseline: String,
    pub(crate) figure: String,
    pub(crate) goal: String,
    pub(crate) met: bool,
    /// What was judged wrongly, one line each; printed with `--mistakes`.
    pub(crate) mistakes: Vec<String>,
}

type Measures = Result<Vec<Measure>, String>;

type Measuring = fn(&[Value]) -> Measures;

/// Every file of labelled data and what measures it.
const FILES: &[(&str, Measuring)] = &[
    ("a_asked.jsonl", reader::asked),
    ("a_free.jsonl", reader::free),
    ("b_pairs.jsonl", pairs::measure),
    ("c_sequences.jsonl", stops::measure),
    ("a_free.jsonl", shadows::measure),
    ("e_citations.jsonl", citations::measure),
    ("f_signals.jsonl", signals::measure),
];

pub(crate) fn run(root: &Path, arguments: &[&str]) -> ExitCode {
    let mistakes = arguments.contains(&"--mistakes");
    let folder = arguments
        .iter()
        .find(|argument| !argument.starts_with("--"))
        .map_or_else(|| root.join("../shared/judgement"), PathBuf::from);
    let mut rows = Vec::new();
    for (name, measure) in FILES {
        let path = folder.join(name);
        let measured = read(&path).and_then(|items| measure(&items));
        match measured {
            Ok(measures) => rows.extend(measures),
            Err(error) => {
                eprintln!("{}: {error}", path.display());
                return ExitCode::FAILURE;
            }
        }
    }
    print(&rows, mistakes);
    if rows.iter().all(|row| row.met) { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

fn read(path: &Path) -> Result<Vec<Value>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(at, line)| serde_json::from_str(line).map_err(|error| format!("line {}: {error}", at + 1)))
        .collect()
}

fn print(rows: &[Measure], mistakes: bool) {
    let width = |cell: fn(&Measure) -> &str, title: &str| {
        rows.iter().map(|row| cell(row).chars().count()).chain([title.len()]).max().unwrap_or(0)
    };
    let what = width(|row| &row.what, "what");
    let figure = width(|row| &row.figure, "measured");
    let baseline = width(|row| &row.baseline, "trivial rule");
    println!("{:what$}  {:figure$}  {:baseline$}  goal", "what", "measured", "trivial rule");
    for row in rows {
        let short = if row.met { "" } else { "  (not met)" };
        println!(
            "{:what$}  {:figure$}  {:baseline$}  {}{short}",
            row.what, row.figure, row.baseline, row.goal
        );
        for mistake in row.mistakes.iter().filter(|_| mistakes) {
            println!("    {mistake}");
        }
    }
}

/// True and false positives and negatives of a yes-or-no question.
#[derive(Default, Clone, Copy)]
pub(crate) struct Tally {
    right: u32,
    wrong: u32,
    missed: u32,
}

impl Tally {
    pub(crate) fn add(&mut self, truth: bool, answer: bool) {
        match (truth, answer) {
            (true, true) => self.right += 1,
            (false, true) => self.wrong += 1,
            (true, false) => self.missed += 1,
            (false, false) => {}
        }
    }

    pub(crate) fn precision(self) -> f64 {
        share(self.right, self.right + self.wrong)
    }

    pub(crate) fn recall(self) -> f64 {
        share(self.right, self.right + self.missed)
    }

    pub(crate) fn f1(self) -> f64 {
        share(2 * self.right, 2 * self.right + self.wrong + self.missed)
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "P {:.2} R {:.2} F1 {:.2}", self.precision(), self.recall(), self.f1())
    }
}

/// A share of nothing is whole: there was nothing to get wrong.
pub(crate) fn share(part: u32, whole: u32) -> f64 {
    if whole == 0 { 1.0 } else { f64::from(part) / f64::from(whole) }
}

pub(crate) fn text<'a>(item: &'a Value, key: &str) -> &'a str {
    item.get(key).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn number(item: &Value, key: &str) -> u32 {
    item.get(key).and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok()).unwrap_or(0)
}
