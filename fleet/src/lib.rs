//! A sprint over many machines. Everything goes through one small trait ([`bus`]), implemented over NATS JetStream and in
//! memory for the simulation. The bus carries; it is not the truth: that is the sprint's log, each run's journal and git's
//! refs, so nothing here needs a message to arrive exactly once, and no change lands twice even if the server loses all it
//! has.

pub mod bus;
pub mod dispatch;
pub mod join;
pub mod journal;
pub mod keys;
pub mod message;
pub mod names;
pub mod nats;
pub mod server;
pub mod worker;
