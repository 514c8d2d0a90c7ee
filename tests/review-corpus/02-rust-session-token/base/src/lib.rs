//! Who may do what.

pub mod auth;
