//! How reviewers did: `.archeflow/memory/effectiveness.jsonl`, a line per run and archetype, written when a run ends.
//!
//! A run can end more than once: it waits, then it is merged. Its last line counts, and one that is no different is
//! not written.

use std::io;
use std::path::Path;

use archeflow_core::event::{Entry, Money, Share};
use archeflow_core::model::Tier;
use archeflow_core::rules::scoring::{self, Record, Score};
use serde::{Deserialize, Serialize};

use crate::clock;
use crate::log;
use crate::store::dir::{Dir, STATE};
use crate::store::files;
use crate::store::journal::{self, Journal};

const FOLDER: &str = "memory";
const FILE: &str = "effectiveness.jsonl";
const LARGEST: u64 = 64 << 20;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Files(#[from] files::Error),
    #[error(transparent)]
    Journal(#[from] journal::Error),
    #[error(transparent)]
    Log(#[from] log::Error),
}

/// One line, as SCHEMAS has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScoreLine {
    pub ts: String,
    pub run_id: String,
    pub archetype: String,
    pub signal_to_noise: Share,
    pub fix_rate: Share,
    /// Useful findings for a dollar; nothing where nothing was paid or the cost is not known.
    #[serde(default)]
    pub cost_efficiency: Option<Money>,
    pub accuracy: Share,
    pub cycle_impact: bool,
    pub composite_score: Share,
    #[serde(default)]
    pub tokens: u64,
    #[serde(default)]
    pub cost_usd: Money,
    pub model: Tier,
    /// All it stated. `signal_to_noise` is `findings_useful` in relation to it.
    #[serde(default)]
    pub findings_total: u32,
    /// Those of INFO among them; in lines from before D16, beside them.
    #[serde(default)]
    pub findings_info: u32,
    #[serde(default)]
    pub findings_useful: u32,
    #[serde(default)]
    pub fixes_applied: u32,
}

/// Lines that could be read, oldest run first, one for each run and archetype; and how many could not.
#[derive(Debug, Default)]
pub struct Scores {
    pub lines: Vec<ScoreLine>,
    pub skipped: usize,
}

impl Scores {
    pub fn records(&self) -> Vec<Record> {
        let record = |line: &ScoreLine| Record {
            run_id: line.run_id.clone(),
            archetype: line.archetype.clone(),
            model: line.model,
            composite: line.composite_score.0,
            signal_to_noise: line.signal_to_noise.0,
        };
        self.lines.iter().map(record).collect()
    }
}

pub fn read(root: &Path) -> Result<Scores, files::Error> {
    let path = root.join(STATE).join(FOLDER).join(FILE);
    let bytes = match files::read_capped(&path, LARGEST) {
        Err(error) if error.io_kind() == Some(io::ErrorKind::NotFound) => return Ok(Scores::default()),
        bytes => bytes?,
    };
    let mut scores = Scores::default();
    for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let Ok(line) = serde_json::from_slice::<ScoreLine>(line) else {
            scores.skipped += 1;
            continue;
        };
        match scores.lines.iter_mut().find(|known| same(known, &line)) {
            Some(known) => *known = line,
            None => scores.lines.push(line),
        }
    }
    Ok(scores)
}

fn same(a: &ScoreLine, b: &ScoreLine) -> bool {
    (&a.run_id, &a.archetype) == (&b.run_id, &b.archetype)
}

/// Scores a run that has ended, from its journal.
pub fn write(root: &Path, run_id: &str) -> Result<(), Error> {
    let text = Journal::read(&root.join(STATE).join("events").join(format!("{run_id}.jsonl")))?;
    let entries = log::entries(&text)?;
    let scores = scoring::scores(&entries);
    if scores.is_empty() {
        return Ok(());
    }
    Dir::open(root)?.make(STATE, 0o755)?.make(FOLDER, 0o700)?;
    let known = read(root)?;
    let path = root.join(STATE).join(FOLDER).join(FILE);
    for score in scores {
        let line = line(run_id, &entries, &score);
        // Only when it was written may differ.
        let says_nothing_new = |old: &ScoreLine| *old == ScoreLine { ts: old.ts.clone(), ..line.clone() };
        if known.lines.iter().any(says_nothing_new) {
            continue;
        }
        let text =
            serde_json::to_string(&line).map_err(|error| files::Error::io("append to", &path, error))?;
        files::append_line_locked(&path, &text)?;
    }
    Ok(())
}

fn line(run_id: &str, entries: &[Entry], score: &Score) -> ScoreLine {
    let decimal =
        |n: u128, d: u128| Money(u64::try_from(n.saturating_mul(1_000_000) / d).unwrap_or(u64::MAX));
    ScoreLine {
        ts: clock::written(entries.last().map_or(0, |entry| entry.at)),
        run_id: run_id.to_owned(),
        archetype: score.archetype.clone(),
        signal_to_noise: Share(score.signal_to_noise().millionths()),
        fix_rate: Share(score.fix_rate().millionths()),
        cost_efficiency: score.useful_per_dollar().map(|ratio| decimal(ratio.0, ratio.1)),
        accuracy: Share(score.accuracy().millionths()),
        cycle_impact: score.impact,
        composite_score: Share(score.composite()),
        tokens: score.tokens,
        cost_usd: score.cost,
        model: score.model,
        findings_total: score.total.saturating_add(score.info),
        findings_info: score.info,
        findings_useful: score.useful,
        fixes_applied: score.fixed,
    }
}
