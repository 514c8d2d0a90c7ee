//! A run looked at again, from its log alone: its decisions in order, under other weights, under other policy, beside
//! other runs, and the rule behind each decision.
//!
//! Read in this order: [`decision`], [`timeline`], [`rulebook`], [`weights`], then [`whatif`] with `facts`, and
//! [`compare`]. Deliberately absent: effects, files, and guesses. What the log does not contain is reported as unknown.

pub mod compare;
pub mod decision;
mod facts;
pub mod rulebook;
pub mod timeline;
pub mod weights;
pub mod whatif;
