//! How a diff is cut into parts that a reviewer can read.

use serde::{Deserialize, Serialize};

/// The numbers a diff is cut by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Splitting {
    /// No part is larger. About four bytes are a token.
    pub bytes_per_part: u32,
    /// Changed lines of a lock file that are shown.
    pub shown_lock_lines: u32,
    /// A generated, vendored or minified file with more changed lines than this is summarised; a smaller one is shown,
    /// because a name is no reason to hide a file.
    pub summarise_above_lines: u32,
    /// A line with more bytes is cut.
    pub longest_line: u32,
}

impl Default for Splitting {
    fn default() -> Self {
        Splitting {
            bytes_per_part: 240_000,
            shown_lock_lines: 40,
            summarise_above_lines: 200,
            longest_line: 20_000,
        }
    }
}

impl Splitting {
    /// A smaller part has no room for the header of a file and a line of it.
    pub const SMALLEST_PART: u32 = 8_192;
    /// A shorter piece of a line is of no use.
    pub const SHORTEST_LINE: u32 = 80;

    /// The size of a part: at least enough to mention every file.
    pub fn part(&self) -> usize {
        self.bytes_per_part.max(Self::SMALLEST_PART) as usize
    }

    /// What is shown of a line: never more than a quarter of a part.
    pub fn line(&self) -> usize {
        (self.longest_line.max(Self::SHORTEST_LINE) as usize).min(self.part() / 4)
    }
}
