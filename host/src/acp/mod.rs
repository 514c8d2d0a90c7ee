//! The bridge to agents that speak the Agent Client Protocol: JSON-RPC, a message a line, over their standard input and
//! output. It is one of the clients that are part of this program: a process of its own, started and ended by the same
//! supervision as every other, which starts the agent, gives it the brief, and prints the result as the lines of
//! `client_output/own.rs`.
//!
//! `talk.rs` is the conversation and has no effects: messages in, messages out. What may be done without asking a person
//! is in `permission.rs`, the meaning of stop reasons and usage in `signs.rs`, what is used while it works in `transcript.rs`. The pipes around it are in `bridge.rs`.
//!
//! Deliberately absent: files and terminals for the agent, which works on its copy itself; limits, which are the
//! supervisor's; settings, which are the user's own.

mod bridge;
mod permission;
mod signs;
mod talk;
mod transcript;

pub use bridge::run;
pub use permission::Permission;
pub use talk::{AcpAction, AcpTask, Talk};
pub use transcript::TranscriptFolder;
