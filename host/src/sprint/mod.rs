//! Sprints: the queue file that people and sprints share, and what a look at the projects proposes for it.
//!
//! Deliberately absent: which item comes next, which is the core's.

mod fields;
pub mod queue;
pub mod scan;
