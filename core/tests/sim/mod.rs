//! A made-up world for the core: what agents, git, tests, hooks and people do comes from a seed and from nothing else.
//!
//! Results are keyed by what is asked, never by when: so the same world can be lived through calmly, in any order,
//! or with crashes, and must come to the same decisions.

pub(crate) mod chance;
pub(crate) mod corrections;
pub(crate) mod facts;
pub(crate) mod ledger;
pub(crate) mod life;
pub(crate) mod loops;
pub(crate) mod projection;
pub(crate) mod promises;
pub(crate) mod reviews;
pub(crate) mod whatif;
pub(crate) mod world;
