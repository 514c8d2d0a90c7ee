//! How a diff is cut into parts that a reviewer can read.

use crate::settings::settings;

settings! {
    /// The numbers a diff is cut by.
    pub struct Splitting at "review." in (run.review.splitting) {
        bytes_per_part: u32 = 240_000, "part_bytes", Whole(8_192, 4_000_000), Inert,
            "Most bytes of a diff that reviewers see at once; four bytes are about one token.";
        /// Changed lines of a lock file that are shown.
        shown_lock_lines: u32 = 40;
        /// A generated, vendored or minified file with more changed lines than this is summarised; a smaller one is shown,
        /// because a name is no reason to hide a file.
        summarise_above_lines: u32 = 200;
        /// A line with more bytes is cut.
        longest_line: u32 = 20_000;
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
