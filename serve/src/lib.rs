//! Draws runs as documents ([`report`]), and serves them as pages in a browser of this machine (`archeflow ui`). A page is drawn from journals at every request; the
//! server remembers nothing that a journal does not hold, so it can be killed at any moment.
//!
//! It has no way of its own to decide, land or write: what a person decides on a page starts the command that would have been
//! typed. What may come in at all is decided in `access`, before any page is
//! drawn. tokio is used in this crate and nowhere else.

mod access;
mod catalog;
mod changes;
mod feeds;
mod offers;
mod pages;
pub mod report;
mod run_model;
mod server;
mod sprints;

pub use server::{Limits, ServeError, ServeOptions, Server, Stopper};
