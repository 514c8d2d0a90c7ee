//! Files for the person who takes over: the page of a break, and the state at a checkpoint.

use archeflow_core::event::{Decision, Entry, Event};
use archeflow_core::projections::handoff;
use archeflow_core::run::Run;

use crate::log;
use crate::store::files;
use crate::store::journal::Journal;
use crate::world::World;

/// The page of a break, among the artifacts.
pub const PAGE: &str = "wiggum-break.md";

/// The state of all runs of the project.
const CONTROL_CENTER: &str = "control-center.md";

/// Writes what these entries make necessary; says what went wrong.
pub fn write(world: &World, run: &Run, entries: &[Entry]) -> Vec<String> {
    let ends = entries.iter().any(|entry| matches!(entry.event, Event::Decision(Decision::RunComplete(_))));
    let pauses =
        entries.iter().any(|entry| matches!(entry.event, Event::Decision(Decision::PolicyCheckpoint(_))));
    if !ends && !pauses {
        return Vec::new();
    }
    let Ok(log) = read(world) else { return vec!["the log could not be read for a hand-off".to_owned()] };
    let mut warnings = Vec::new();
    let mut put = |path: std::path::PathBuf, text: String| {
        if let Err(error) = files::write_atomic(&path, text.as_bytes()) {
            warnings.push(format!("the page of the break was not written: {error}"));
        }
    };
    if let Some(page) = handoff::page(&world.run_id, run, &log) {
        put(world.artifacts().join(PAGE), page);
    }
    if pauses {
        let center = world.places.root().join(".archeflow").join(CONTROL_CENTER);
        put(center, handoff::standing(&world.run_id, run, &log));
    }
    warnings
}

fn read(world: &World) -> Result<Vec<Entry>, log::Error> {
    let path = world.places.events().join(format!("{}.jsonl", world.run_id));
    log::entries(&Journal::read(&path)?)
}
