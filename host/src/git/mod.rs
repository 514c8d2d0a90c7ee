//! Everything archeflow does with git.
//!
//! Four places hold git data, and they never trust each other more than they must:
//!
//! * the **user's repository**: read through [`repo`], changed only by [`land`] and by the refs that
//!   [`workspace`] publishes;
//! * the **side directory**: a git directory of our own with our own configuration that reads and writes the
//!   user's object store. Facts about commits ([`change`], [`content`]) and merges built without a working tree come
//!   from here, so nothing that is configured in the repository can run;
//! * the **workspaces** agents work in: their content is untrusted once an agent had them;
//! * the **store of a review** ([`subject`]), which borrows the user's objects and holds what was taken from the
//!   working tree, the index or a patch: the user's own store gets none of it.
//!
//! `native` answers plain questions without starting git, and [`runner`] is the only module that starts it. Nothing here prints or asks, and only [`remote`] fetches and pushes. The one branch that can go away
//! is a run's own: when its user discards it, and then its commits stay under a keep ref; or with the run itself, long
//! after it ended ([`kept`]).

mod begun;
pub mod bundle;
pub mod change;
pub mod checkouts;
pub mod content;
pub mod diff_lines;
mod facts;
mod files;
pub mod filters;
pub mod fresh;
pub mod kept;
pub mod land;
mod native;
mod oid;
pub mod parts;
pub mod remote;
pub mod repo;
pub mod runner;
mod side;
pub mod signing;
pub mod subject;
pub mod survey;
mod user_config;
pub mod user_state;
pub mod workspace;

pub(crate) use facts::work_tree_of;
pub(crate) use files::remove as remove_beneath;
pub use oid::ObjectId;
pub use repo::{GitEnv, Identity, Repo, Target};
