//! The runs of a sprint for viewers of all of them: each journal read as it grows, nothing written.

use std::collections::BTreeMap;
use std::path::Path;

use archeflow_core::run::Run;

use crate::log;
use crate::store::follow::Follower;

#[derive(Default)]
pub struct Runs {
    known: BTreeMap<String, (Follower, Run)>,
}

impl Runs {
    /// Nobody looks at it any more.
    pub(super) fn forget(&mut self, run_id: &str) {
        self.known.remove(run_id);
    }

    /// A run as it is now. Nothing, if there is no journal that can be read.
    pub fn look(&mut self, repository: &Path, run_id: &str) -> Option<&Run> {
        if !self.known.contains_key(run_id) {
            let events = repository.join(".archeflow/events");
            let follower = Follower::open(&events, run_id).ok()?;
            self.known.insert(run_id.to_owned(), (follower, Run::default()));
        }
        let (follower, run) = self.known.get_mut(run_id)?;
        loop {
            let mut entries = Vec::new();
            let some = follower.more(|line| entries.extend(log::decode(line))).ok()?;
            entries.iter().for_each(|entry| run.apply(entry));
            if !some {
                return Some(run);
            }
        }
    }
}
