//! Tries again, politely.

pub mod backoff;
