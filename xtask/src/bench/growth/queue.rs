//! How `list` grows with the runs of a repository, and the start of a sprint with the items of its queue.

use super::{Curve, Curves};
use crate::bench::queue::WaitingSprint;
use crate::bench::runs::ManyRuns;
use crate::bench::{Bench, ms};

/// Three decades.
const COUNTS: [u32; 4] = [10, 100, 1_000, 10_000];
const TRIES: usize = 3;

pub(super) fn curves(bench: &Bench) -> Curves {
    let (mut runs, mut items) = (Vec::new(), Vec::new());
    for count in COUNTS {
        let made = ManyRuns::make(bench, 1, count as usize)?;
        runs.push((f64::from(count), ms(made.time(&["list"])?)));
        let mut began = f64::MAX;
        for _ in 0..TRIES {
            let sprint = WaitingSprint::start(bench, count as usize)?;
            began = began.min(ms(sprint.began));
            sprint.end()?;
        }
        items.push((f64::from(count), began));
    }
    Ok(vec![
        Curve { name: "runs per repository: list".to_owned(), unit: "ms", points: runs },
        Curve { name: "items per sprint: until the first agent".to_owned(), unit: "ms", points: items },
    ])
}
