//! The pure core of archeflow: everything that has happened goes in, what should happen now comes out.
//!
//! Read in this order: [`model`], [`event`], [`run`], [`decide`], [`steps`], [`strategies`], then any of the [`rules`].
//! Then the prompts of agents ([`brief`], [`feedback`]), the parts of a large change ([`split`]), answers ([`read`],
//! [`accept`]), what people see ([`projections`]), many tasks in many places ([`sprint`]), and what an evaluation shows
//! ([`eval`]).
//!
//! **Invariant:** nothing here reads a clock, a file, an environment variable or a process. Time and chance arrive
//! as arguments, and deciding twice on the same facts gives the same answer twice. The manifest (libraries that only
//! compute) and `clippy.toml` prove it.

pub mod digest;

pub mod text;

pub mod model;

pub mod event;

pub mod decide;

pub mod run;

pub mod rules;

pub mod settings;

pub mod brief;

pub mod feedback;
pub mod guide;

pub mod read;

pub mod accept;

pub mod steps;

pub mod strategies;

pub mod split;

pub mod persona;

pub mod projections;

pub mod sprint;

pub mod eval;
