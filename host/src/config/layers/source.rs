//! Where a value came from.

use std::fmt;

use super::{Fault, whole_file};

/// Where a value came from; the stronger source compares greater.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    BuiltIn,
    Repo {
        path: String,
        line: u32,
    },
    User {
        path: String,
        line: u32,
    },
    File {
        path: String,
        line: u32,
    },
    /// As it is typed, with its dashes; or the name of an environment variable.
    Flag(&'static str),
}

impl Source {
    /// A stronger source has a higher one. Files of one repository are of equal rank, and in order.
    pub(super) fn rank(&self) -> u8 {
        match self {
            Source::BuiltIn => 0,
            Source::Repo { .. } => 1,
            Source::User { .. } => 2,
            Source::File { .. } => 3,
            Source::Flag(_) => 4,
        }
    }

    /// An error at this place.
    pub(super) fn fault(&self, text: String) -> Fault {
        match self {
            Source::Repo { path, line } | Source::User { path, line } | Source::File { path, line } => {
                Fault { path: path.clone(), line: *line, column: 0, text }
            }
            Source::BuiltIn => whole_file("configuration", &text),
            Source::Flag(flag) => whole_file(flag, &text),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::BuiltIn => f.write_str("built-in"),
            Source::Repo { path, line } | Source::User { path, line } | Source::File { path, line } => {
                write!(f, "{path}:{line}")
            }
            Source::Flag(name) => f.write_str(name),
        }
    }
}
