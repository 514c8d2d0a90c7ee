//! Steps per run and events per journal.

use std::time::Instant;

use archeflow_host::log;
use archeflow_host::store::journal::Journal;

use super::{Curve, Curves};
use crate::bench::storage::MadeUp;
use crate::bench::{Bench, best, ms};

const STEPS: [u32; 4] = [100, 1_000, 10_000, 100_000];
const EVENTS: [u32; 4] = [1_000, 10_000, 100_000, 1_000_000];
const WORLD: MadeUp = MadeUp { failures: 20, endless: true };

pub(super) fn curves(bench: &Bench) -> Curves {
    Ok(vec![steps_per_run()?, events_per_journal(bench)?])
}

/// The core alone: reports heard and everything that follows from them, the world answering at once.
fn steps_per_run() -> Result<Curve, Box<dyn std::error::Error>> {
    let mut points = Vec::new();
    for steps in STEPS {
        let took = best(3, || -> Result<_, String> {
            let begun = Instant::now();
            let (run, taken) = WORLD.play_steps(steps, drop);
            let took = begun.elapsed();
            if taken < steps {
                return Err(format!("the made-up run ended after {taken} steps: {:?}", run.outcome));
            }
            Ok(took)
        })?;
        points.push((f64::from(steps), ms(took)));
    }
    Ok(Curve { name: "steps per run".to_owned(), unit: "ms", points })
}

/// Read, checked and folded.
fn events_per_journal(bench: &Bench) -> Result<Curve, Box<dyn std::error::Error>> {
    let folder = bench.folder.path().join("growing");
    std::fs::create_dir_all(&folder)?;
    let mut points = Vec::new();
    for events in EVENTS {
        let name = format!("events-{events}");
        WORLD.write(&folder, &name, events.into())?;
        let path = folder.join(format!("{name}.jsonl"));
        let took = best(3, || -> Result<_, Box<dyn std::error::Error>> {
            let begun = Instant::now();
            let run = log::fold(&Journal::read(&path)?)?;
            let took = begun.elapsed();
            if run.lines < events.into() {
                return Err(format!("{} of {events} events were read", run.lines).into());
            }
            Ok(took)
        })?;
        std::fs::remove_file(&path)?;
        points.push((f64::from(events), ms(took)));
    }
    Ok(Curve { name: "events per journal".to_owned(), unit: "ms", points })
}
