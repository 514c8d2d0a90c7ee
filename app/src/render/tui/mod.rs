//! The live view of a run in a terminal: `archeflow watch`, and `--tui` for commands that drive.
//!
//! [`View`] is computed from the journal and the live output of agents; [`draw`] puts it on a screen and [`act`]
//! maps a key to a request. None of the three touches anything. [`terminal`] is the real screen with its
//! modes and how to undo them, [`stage`] the loop that brings all of them together, and [`observer`] the connection to the driver.
//!
//! [`board`] shows all runs of a sprint at once.
//!
//! Deliberately absent: anything that decides or writes. The view reads the journal like any other reader, also in the
//! process that drives; all it can do there is what a person at a plain terminal can.

pub(crate) mod act;
pub(crate) mod board;
pub(crate) mod draw;
pub(crate) mod keys;
pub(crate) mod observer;
mod over;
pub(crate) mod page;
pub(crate) mod stage;
pub(crate) mod terminal;
pub(crate) mod view;

#[cfg(test)]
mod tests;

pub(crate) use view::View;
