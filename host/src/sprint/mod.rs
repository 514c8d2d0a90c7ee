//! Sprints: the queue file that people and sprints share, what a look at the projects proposes for it, and the loop that
//! lets its items run. Each run is this program started again, in a process group of its own: what a run needs to know
//! about being safe it knows already, and a sprint only reads how it ended.
//!
//! Deliberately absent: which item comes next, which is the core's.

pub mod center;
mod clerk;
pub mod crew;
pub mod drive;
pub mod entries;
mod fields;
mod landing;
pub mod local_crew;
mod log;
mod lookout;
pub mod opening;
pub mod page;
pub mod queue;
mod queue_copy;
mod queue_watch;
pub mod reading;
pub mod runs;
pub mod scan;
pub mod settings;
