//! The loop: a person, a Planner, an Actor and a Judge take turns (PJ-01..PJ-17). A step is a cycle.

mod asks;
pub mod brief;
pub mod cyclefile;
mod decide;
pub mod rules;
pub mod signal;
mod state;
mod turns;
pub mod view;

pub use state::{AgentLoop, Note, Owed, PersonMessage, Plan};

pub(crate) struct LoopStrategy;
