//! How a run looks: lines on a terminal or in a log, a whole screen, or one JSON object.

pub(crate) mod costs;
pub(crate) mod line;
pub(crate) mod palette;
pub(crate) mod summary;
pub(crate) mod text;
pub(crate) mod tui;
