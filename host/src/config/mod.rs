//! Where a run's settings come from, and whether they may be believed.
//!
//! A repository's `.archeflow/` is data until its user approved exactly those bytes (D-08). So reading is strict and
//! inert ([`yaml`]), every key is in the table of [`archeflow_core::settings`], which says whether a repository may set it unasked ([`approval`]), the
//! layers are laid over one another with the origin of every value kept ([`layers`]), and approvals live outside
//! every repository ([`trust`]). Archetypes a user or a repository brings along are found in [`personas`], teams, workflows,
//! lenses and domains in [`shelf`].
//!
//! Nothing here reads the repository: the caller passes the bytes as they are in the base commit, so that a
//! change under review can't alter the rules that judge it. Nothing here runs, resolves or connects anything.

pub mod approval;
pub mod bundle;
pub mod folder;
pub mod keys;
pub mod kinds;
pub mod layers;
pub mod overrides;
pub mod personas;
pub mod shelf;
pub mod trust;
pub mod user;
pub mod yaml;

use std::fmt;

pub use layers::{Flags, Inputs, Row, Settings, Source, Withheld};
pub use trust::{Offer, Trust};
pub use user::NamedConfig;

/// A file that takes part: its path, which determines its kind, and its bytes.
pub type ConfigFile = (String, Vec<u8>);

pub const REPOSITORY_CONFIG: &str = ".archeflow/config.yaml";
pub const REPOSITORY_HOOKS: &str = ".archeflow/hooks.yaml";
pub const REPOSITORY_ARCHETYPES: &str = ".archeflow/archetypes/";

/// One thing wrong in one file, in words its author can act on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The file, or the flag, as the user knows it.
    pub path: String,
    /// From 1; 0 when it is about the whole file.
    pub line: u32,
    /// From 1; 0 when unknown.
    pub column: u32,
    pub text: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.text),
            line => write!(f, "{}:{line}: {}", self.path, self.text),
        }
    }
}

/// Everything found wrong, in the order of the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Faults(pub Vec<Fault>);

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, fault) in self.0.iter().enumerate() {
            if n > 0 {
                writeln!(f)?;
            }
            write!(f, "{fault}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Faults {}

impl From<Fault> for Faults {
    fn from(fault: Fault) -> Self {
        Faults(vec![fault])
    }
}

/// Text from a file as it may be shown on a terminal: short, and nothing in it can move the cursor or hide.
pub fn shown(text: &str) -> String {
    const MOST: usize = 80;
    let mut out: String = text.chars().take(MOST).map(plain).collect();
    if text.chars().nth(MOST).is_some() {
        out.push('…');
    }
    out
}

/// The whole of a text on one line, for a person who decides about it: nothing is left out.
pub fn in_full(text: &str) -> String {
    text.chars().map(plain).collect()
}

fn plain(c: char) -> String {
    if archeflow_core::text::is_unsafe(c) { c.escape_unicode().to_string() } else { c.to_string() }
}
