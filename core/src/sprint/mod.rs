//! The same idea one floor up: a queue of tasks over many repositories, of which each becomes a run of its own.
//!
//! [`queue`] has the nouns and the graph of what waits for what; [`list`] reads the plain list form of a queue. A
//! sprint has a log as a run has one ([`event`]), is the fold over it ([`Sprint`]), and [`decide`] returns what
//! follows, bounded by its [`policy`] and its [`budget`]; [`landing`] is its merge queue. What people ask afterwards is
//! in its [`chronicle`]. What it knows of a run is how it ended ([`standing`]): it never looks into one.
//!
//! Deliberately absent: files, processes, the clock. See `docs/sprint.md`.

pub mod breaker;
pub mod budget;
pub mod chronicle;
pub mod decide;
pub mod event;
mod fold;
pub mod items;
pub mod landing;
pub mod list;
pub mod policy;
pub mod queue;
pub mod standing;

pub use fold::{ItemStage, ItemState, SinceCheckpoint, Sprint, run_id};
