//! Does: the journal, git, processes and configuration behind archeflow. It never prints and never decides.
//!
//! Read [`drive`] first: the loop that records what the core decides, performs its orders through [`executors`], and
//! feeds back what the world reports. [`open`] opens runs;
//! [`world`] is what the executors reach for. Below are the modules for one thing each: [`store`], [`git`],
//! [`proc`], [`platform`], [`config`], [`backends`], [`client_output`], [`model_agent`].

pub mod drive;

pub mod control;

pub mod detached;

pub mod client_setup;

pub mod open;

pub mod replica;

pub mod rollback;

pub mod transfer;

pub mod review;

pub mod sprint;

mod strategies;

pub mod agent_loop;

pub mod eval;
pub mod executors;

pub mod co_landing;

pub mod cleaning;

pub mod tail;
pub mod telemetry;

pub mod world;

pub mod projections;

pub mod handoff;
mod hands;

pub mod history;

pub mod memory;

pub mod log;

pub mod forge;

pub mod notify;

pub mod backends;

pub mod client_output;

pub mod acp;
pub mod model_agent;

pub mod probe;

pub mod trial;

pub mod config;

pub mod git;

pub mod store;

pub mod proc;

pub mod sandbox;

pub mod platform;

pub mod clock;

mod nonce;

pub mod secrets;

mod copies;
pub mod costs;

pub mod repositories;

pub mod scores;

pub mod failpoint;
