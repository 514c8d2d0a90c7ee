//! Draws runs and evaluations as documents ([`report`], [`eval`]), serves runs as pages in a browser of this machine
//! (`archeflow ui`), and serves coding agents ([`mcp`]). A page or a result is made from journals at every request; the
//! servers remember nothing that a journal does not hold, so they can be killed at any moment.
//!
//! They have no way of their own to decide, land or write: what a person decides starts the command that would have been
//! typed. What may come in at all is decided in `access`, before any page is drawn. tokio is used in this crate and nowhere
//! else.

mod access;
mod catalog;
mod changes;
pub mod eval;
mod feeds;
pub mod mcp;
mod offers;
mod pages;
pub mod report;
mod run_model;
mod server;
mod sprints;
mod starting;

pub use server::{BringArtifacts, Limits, ServeError, ServeOptions, Server, ShownFleet, Stopper};
