//! What is remembered of a review: the change that somebody brought along.

use crate::event::ReviewOpened;
use crate::run::Run;

impl Run {
    /// The change is there already; its parts are the cycles.
    pub(crate) fn open_review(&mut self, opened: Box<ReviewOpened>) {
        self.work = Some(opened.change.clone());
        self.max_cycles = u32::try_from(opened.parts.len()).unwrap_or(u32::MAX).max(1);
        self.review = Some(opened);
    }
}
