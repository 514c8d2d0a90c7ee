//! To come.

use super::Facts;
use crate::words::{Bureaucrat, Sighting};

pub(super) const CORRECTION: &str = "";

pub(super) fn check(_: &Facts<'_>, _: &Bureaucrat) -> Vec<Sighting> {
    Vec::new()
}
