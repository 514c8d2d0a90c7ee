//! To come.

use super::Facts;
use crate::words::{OverArchitect, Sighting};

pub(super) const CORRECTION: &str = "";

pub(super) fn check(_: &Facts<'_>, _: &OverArchitect) -> Vec<Sighting> {
    Vec::new()
}
