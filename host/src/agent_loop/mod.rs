//! What the Human/Planner/Actor/Judge loop does outside the core: the file that people read and write, the Judge's checks, the
//! archives, the figures. What follows from any of it is decided in the core.

pub mod archive;
pub mod battery;
pub(crate) mod conversation;
pub mod cycle;
pub mod diet;
pub mod figures;
pub mod hear;
pub mod leave;
pub mod open;
pub(crate) mod orders;
pub(crate) mod restore;
