//! The same idea one floor up: a queue of tasks over many repositories, of which each becomes a run of its own.
//!
//! [`queue`] has the nouns and the graph of what waits for what; [`list`] reads the plain list form of a queue. What a
//! sprint decides about runs it learns from their outcomes alone: it never looks into one.
//!
//! Deliberately absent: files, processes, the clock. See `docs/sprint.md`.

pub mod list;
pub mod queue;
