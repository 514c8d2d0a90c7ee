//! To come.

use super::Facts;
use crate::words::{FalseAlarm, Sighting};

pub(super) const CORRECTION: &str = "";

pub(super) fn check(_: &Facts<'_>, _: &FalseAlarm) -> Vec<Sighting> {
    Vec::new()
}
