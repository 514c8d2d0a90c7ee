//! What people and other programs see of runs and sprints, as values that follow from logs: drawn by the terminal, a
//! page or a protocol server, which add looks and nothing else.

pub mod board;
pub mod commit_message;
pub mod handoff;
pub mod inbox;
pub mod live;
pub mod notice;
pub mod prometheus;
pub mod replay;
pub mod story;
pub mod telemetry;
pub mod usual_time;
pub mod view;
