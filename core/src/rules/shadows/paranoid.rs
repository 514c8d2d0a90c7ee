//! To come.

use super::Facts;
use crate::words::{Paranoid, Sighting};

pub(super) const CORRECTION: &str = "";

pub(super) fn check(_: &Facts<'_>, _: &Paranoid) -> Vec<Sighting> {
    Vec::new()
}
