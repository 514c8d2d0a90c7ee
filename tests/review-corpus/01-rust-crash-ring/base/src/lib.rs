//! Keeps what happened last, so that a crash can be understood.

mod journal;
mod ring;

pub use journal::Journal;
pub use ring::{Entry, Ring};
