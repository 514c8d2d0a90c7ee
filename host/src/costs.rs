//! What each day cost: `.archeflow/costs/<date>.jsonl`, a line per run. The journals are the truth; these files only
//! let a day be added up without reading all of them.
//!
//! A run has one line for each day it ended or was stopped on. Where it has several, the last counts: so writing it
//! twice changes nothing, and a run that was continued replaces its earlier line.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use archeflow_core::event::Money;
use archeflow_core::run::Run;
use serde::{Deserialize, Serialize};

use crate::clock;
use crate::store::dir::{Dir, STATE};
use crate::store::files;

const FOLDER: &str = "costs";
const LARGEST: u64 = 64 << 20;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct CostLine {
    run: String,
    cost: Money,
    #[serde(default)]
    tokens: u64,
    #[serde(default)]
    models: Vec<String>,
    #[serde(default)]
    domain: String,
}

/// What runs have cost on a day. What can't be read counts as nothing: it only watches.
pub fn spent_on(root: &Path, date: &str) -> Money {
    read(root, &format!("{date}.jsonl")).values().map(|line| line.cost).sum()
}

/// Writes down what this run cost on the day of its last line, without what it cost on days before.
pub fn write(root: &Path, run_id: &str, run: &Run) -> Result<(), files::Error> {
    Dir::open(root)?.make(STATE, 0o755)?.make(FOLDER, 0o700)?;
    let name = format!("{}.jsonl", clock::date(run.last));
    let before: u64 = days(root)
        .into_iter()
        .filter(|day| *day < name)
        .filter_map(|day| read(root, &day).remove(run_id))
        .map(|line| line.cost.0)
        .sum();
    let accounts = &run.ledger.accounts;
    let tokens = accounts.values().map(|account| account.tokens);
    let mut models: Vec<String> = accounts.keys().map(|(_, tier)| tier.name().to_owned()).collect();
    models.sort();
    models.dedup();
    let line = CostLine {
        run: run_id.to_owned(),
        cost: Money(run.spent.0.saturating_sub(before)),
        tokens: tokens.fold(0, |sum, tokens| sum.saturating_add(tokens.input).saturating_add(tokens.output)),
        models,
        domain: run.request.as_ref().map(|request| request.domain.name().to_owned()).unwrap_or_default(),
    };
    if read(root, &name).get(run_id) == Some(&line) {
        return Ok(());
    }
    let path = root.join(STATE).join(FOLDER).join(name);
    let text = serde_json::to_string(&line).map_err(|error| files::Error::io("append to", &path, error))?;
    files::append_line_locked(&path, &text)
}

/// The last line of each run.
fn read(root: &Path, name: &str) -> BTreeMap<String, CostLine> {
    let bytes = files::read_capped(&root.join(STATE).join(FOLDER).join(name), LARGEST).unwrap_or_default();
    let lines =
        bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<CostLine>(line).ok());
    lines.map(|line| (line.run.clone(), line)).collect()
}

fn days(root: &Path) -> Vec<String> {
    let entries: io::Result<std::fs::ReadDir> = std::fs::read_dir(root.join(STATE).join(FOLDER));
    let names =
        entries.into_iter().flatten().flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.ends_with(".jsonl")).collect()
}

#[cfg(test)]
mod tests {
    use archeflow_core::event::Money;
    use archeflow_core::run::Run;

    use super::{spent_on, write};

    const DAY: u64 = 86_400_000;

    fn costing(last: u64, spent: u64) -> Run {
        let mut run = Run::default();
        (run.last, run.spent) = (last, Money(spent));
        run
    }

    /// BX-24, M-G16: a run counts on each day with what it cost since the day before, however often it is written.
    #[test]
    fn bx_24_m_g16_a_run_is_counted_once_on_each_day() -> Result<(), Box<dyn std::error::Error>> {
        let dir = tempfile::tempdir()?;
        let root = dir.path();
        for _ in 0..3 {
            write(root, "a", &costing(DAY, 300))?;
        }
        write(root, "b", &costing(DAY, 50))?;
        assert_eq!(spent_on(root, "1970-01-02"), Money(350));
        write(root, "a", &costing(DAY + 5, 400))?;
        assert_eq!(spent_on(root, "1970-01-02"), Money(450));
        write(root, "a", &costing(3 * DAY, 1_000))?;
        assert_eq!(spent_on(root, "1970-01-04"), Money(600));
        assert_eq!(spent_on(root, "1970-01-02"), Money(450));
        assert_eq!(spent_on(root, "1970-01-03"), Money(0));
        let lines = std::fs::read_to_string(root.join(".archeflow/costs/1970-01-02.jsonl"))?;
        assert_eq!(lines.lines().count(), 3, "{lines}");
        Ok(())
    }
}
