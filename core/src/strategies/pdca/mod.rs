//! Cycles of Plan, Do, Check and Act until a change is approved or the cycles are used up.

mod decide;
mod view;

/// The strategy of a plain run.
pub(crate) struct Pdca;
