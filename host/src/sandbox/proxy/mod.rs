//! The way out for agents: a proxy of ours outside, which passes on what its list allows, and a relay inside.
//! [`KeyProxy`] also holds the key of an agent's provider.

mod hosts;
mod keys;
mod relay;
mod server;

pub use hosts::{HostList, is_loopback, of_url};
pub use keys::{KeyProxy, KeyTarget};
pub(super) use relay::relay;
pub use relay::{VARIABLE, variables};
pub use server::Proxy;
