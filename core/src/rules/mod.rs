//! A rule is a function from facts to a verdict. It takes the narrowest slice of facts that answers its question,
//! and its table is in `docs/rules`.

pub mod alternatives;
pub mod attention;
pub(crate) mod bag;
pub mod breaker;
pub mod client_files;
pub mod convergence;
mod credentials;
pub mod decisive;
pub mod domain;
pub mod estimate;
pub mod evidence;
pub mod exit;
pub mod filekind;
pub mod gates;
pub mod identity;
pub mod keeping;
pub mod ledger;
pub mod lens;
pub mod memory;
pub mod notifying;
pub(crate) mod phrases;
pub mod players;
pub mod pollution;
pub mod prices;
pub mod proposals;
pub mod raised;
pub mod red_base;
pub mod routing;
pub mod run_names;
pub mod scoring;
pub mod selection;
pub mod shadows;
pub mod signs;
pub mod system;
pub mod tiers;
pub mod trial;
