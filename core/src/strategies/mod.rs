//! The ways of working: a folder for each, with its decisions, what it remembers, how it is shown, and its own rules.

pub mod agent_loop;
pub mod review;
