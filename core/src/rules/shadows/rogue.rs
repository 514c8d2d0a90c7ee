//! To come.

use super::Facts;
use crate::words::{Rogue, Sighting};

pub(super) const CORRECTION: &str = "";

pub(super) fn check(_: &Facts<'_>, _: &Rogue) -> Vec<Sighting> {
    Vec::new()
}
