//! To come.

use super::Facts;
use crate::words::{Paralytic, Sighting};

pub(super) const CORRECTION: &str = "";

pub(super) fn check(_: &Facts<'_>, _: &Paralytic) -> Vec<Sighting> {
    Vec::new()
}
