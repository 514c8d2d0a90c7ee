//! The same checks on the commit a run began from (L-03): what failed there is not a step's fault, and how many tests
//! there were says whether a step runs fewer (L-09). It is done once per command and kept beside the run's artifacts.

use std::collections::BTreeMap;

use archeflow_core::model::CheckEnd;
use archeflow_core::read::test_counts;
use archeflow_core::rules::decisive::compared;
use serde::{Deserialize, Serialize};

use super::{CheckRun, OLD_TESTS, Wanted, execute, output, set_up, tests};
use crate::git::ObjectId;
use crate::git::workspace::WorkspaceKind;
use crate::store::files;
use crate::world::World;

const NAME: &str = "check-base.json";
const LARGEST: u64 = 16 * 1024 * 1024;
/// What of an output is kept to compare with.
const KEPT: usize = 200_000;

/// How a command ended before the first step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BaseRun {
    pub end: CheckEnd,
    pub passed: Option<u32>,
    pub failed: Option<u32>,
    output: String,
}

/// Adds to each check how it was before, where that matters: to the tests, for their number, and to whatever fails. `None`
/// if the user stopped it.
pub(super) fn compare(
    world: &World,
    wanted: &Wanted<'_>,
    base: &ObjectId,
    ran: &mut [CheckRun],
) -> Option<()> {
    let path = world.artifacts().join(NAME);
    let kept = files::read_capped(&path, LARGEST).unwrap_or_default();
    let mut known: BTreeMap<String, BaseRun> = serde_json::from_slice(&kept).unwrap_or_default();
    for check in ran {
        let counted = check.what == "tests" && !wanted.part && check.counts.is_some();
        let concerns = !check.command.is_empty() && (counted || check.end == CheckEnd::Failed);
        if !concerns || (check.what == "tests" && wanted.part) {
            continue;
        }
        let key = format!("{base} {} {}", name(check), check.command);
        let before = match known.get(&key) {
            Some(before) => before.clone(),
            None => {
                let Some(before) = run(world, wanted, base, check)? else { continue };
                known.insert(key, before.clone());
                // Without it the command is run once more next time.
                let text = serde_json::to_vec(&known).unwrap_or_default();
                let _ = files::write_atomic(&path, &text);
                before
            }
        };
        if check.end == CheckEnd::Failed && before.end == CheckEnd::Failed {
            check.failing = compared(&output(&log(world, wanted, check.what)), Some(&before.output));
        }
        check.before = Some(before);
    }
    Some(())
}

/// Old tests are the tests of the base, whatever code they run on.
fn name(check: &CheckRun) -> &'static str {
    if check.what == OLD_TESTS { "tests" } else { check.what }
}

fn log(world: &World, wanted: &Wanted<'_>, what: &str) -> std::path::PathBuf {
    world.artifacts().join(format!("check-battery-{}-{what}.log", wanted.seq))
}

/// The command on a checkout of the base; nothing where there is none to be had.
fn run(world: &World, wanted: &Wanted<'_>, base: &ObjectId, check: &CheckRun) -> Option<Option<BaseRun>> {
    let Ok(mut slot) = world.pool.take(WorkspaceKind::Scratch, &world.run_id, base) else {
        return Some(None);
    };
    let tree = slot.tree();
    if set_up(world, wanted, base, &mut slot)?.is_err() {
        return Some(None);
    }
    let what = match name(check) {
        "tests" => "tests-before",
        "linter" => "linter-before",
        _ => "formatter-before",
    };
    let ran = match name(check) {
        "tests" => tests(world, wanted, what, &check.command, &tree)?,
        _ => execute(world, wanted, what, &check.command, &tree)?,
    };
    let output = output(&log(world, wanted, what));
    let from = output.len().saturating_sub(KEPT);
    let from = (from..=output.len()).find(|at| output.is_char_boundary(*at)).unwrap_or(0);
    let counts = if name(check) == "tests" { test_counts(&output) } else { None };
    Some(Some(BaseRun {
        end: ran.end,
        passed: counts.map(|counts| counts.passed),
        failed: counts.map(|counts| counts.failed),
        output: output[from..].to_owned(),
    }))
}
