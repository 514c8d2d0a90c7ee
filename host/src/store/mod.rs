//! What the program keeps on disk, and the only code that writes it.
//!
//! The journal of a run is the truth and everything else can be derived from it; see [`journal`]. The other modules
//! answer smaller questions: where files are and whether the place is safe ([`places`]), how they may be named
//! ([`names`]), how a file changes without a moment in which it is half written ([`files`]), which runs there are
//! ([`index`]), how a journal is read while it grows ([`follow`]), who may act on a target ([`lock`]), which provider accounts
//! are limited ([`breakers`]), which runs are this user's own ([`own_runs`]), which messages were sent ([`notified`]) and who
//! looks ([`presence`]), and what earlier runs taught ([`memory`]).
//!
//! Nothing here knows what an event means. `data` goes in and comes out as raw JSON.

pub mod breakers;
pub(crate) mod dir;
pub mod files;
pub mod follow;
mod frame;
pub mod holder;
pub mod index;
pub mod journal;
pub mod lock;
pub mod memory;
pub mod metrics_key;
pub mod names;
pub mod notified;
pub mod own_runs;
pub mod places;
pub mod presence;
mod verify;
