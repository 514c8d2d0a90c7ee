//! A sprint over many machines. Everything goes through one small trait ([`bus`]), implemented over NATS JetStream and in
//! memory for the simulation. The bus carries; it is not the truth: that is the sprint's log, each run's journal and git's
//! refs, so nothing here needs a message to arrive exactly once, and no change lands twice even if the server loses all it
//! has.

pub mod accounts;
pub mod approvals;
pub mod bus;
pub mod cleaning;
pub mod clones;
pub mod conductor;
pub mod dispatch;
pub mod files;
pub mod hold;
pub mod join;
pub mod journal;
pub mod keys;
pub mod ledger;
pub mod members;
pub mod message;
pub mod mirror;
pub mod names;
pub mod nats;
pub mod replica;
pub mod server;
pub mod shift;
pub mod sprint_log;
pub mod status;
mod swap;
pub mod worker;
