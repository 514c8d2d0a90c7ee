//! To come.

use super::Facts;
use crate::words::{RabbitHole, Sighting};

pub(super) const CORRECTION: &str = "";

pub(super) fn check(_: &Facts<'_>, _: &RabbitHole) -> Vec<Sighting> {
    Vec::new()
}
