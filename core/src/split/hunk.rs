//! The position of a hunk's line in both files. Lines are counted as the hunk's header says and never guessed from how
//! they look, so that content which looks like a header stays content.

/// A walk through one hunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Walk {
    old_left: u64,
    new_left: u64,
    /// The number the next line has in the old file, and in the new one.
    pub old: u64,
    pub new: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchSide {
    Added,
    Deleted,
    Both,
    /// `\ No newline at end of file`, about the line before.
    Remark,
}

impl Walk {
    /// `@@ -a,b +c,d @@ section`: the walk, and the section.
    pub fn begin(line: &[u8]) -> Option<(Walk, &[u8])> {
        let rest = line.strip_prefix(b"@@ -")?;
        let end = rest.windows(3).position(|three| three == b" @@")?;
        let ranges = std::str::from_utf8(&rest[..end]).ok()?;
        let (old, new) = ranges.split_once(" +")?;
        let ((old, old_left), (new, new_left)) = (range(old)?, range(new)?);
        Some((Walk { old_left, new_left, old, new }, &rest[end + 3..]))
    }

    pub fn is_over(&self) -> bool {
        self.old_left == 0 && self.new_left == 0
    }

    /// Which side a line of the hunk belongs to, and on past it.
    pub fn step(&mut self, line: &[u8]) -> PatchSide {
        let side = match line.first() {
            Some(b'+') => PatchSide::Added,
            Some(b'-') => PatchSide::Deleted,
            Some(b'\\') => PatchSide::Remark,
            // Some tools leave the space off an empty line.
            _ => PatchSide::Both,
        };
        if matches!(side, PatchSide::Added | PatchSide::Both) {
            self.new += 1;
            self.new_left = self.new_left.saturating_sub(1);
        }
        if matches!(side, PatchSide::Deleted | PatchSide::Both) {
            self.old += 1;
            self.old_left = self.old_left.saturating_sub(1);
        }
        side
    }
}

/// `12,3` or `12`: the number of the next line, and how many there are. An empty range names the line before it.
fn range(text: &str) -> Option<(u64, u64)> {
    let (start, count) = text.split_once(',').unwrap_or((text, "1"));
    let (start, count): (u64, u64) = (start.parse().ok()?, count.parse().ok()?);
    Some((if count == 0 { start.saturating_add(1) } else { start }, count))
}

/// The header of the part of a hunk between two places of the walk.
pub(super) fn header(from: &Walk, to: &Walk, section: &str) -> String {
    let range = |from: u64, to: u64| {
        let count = to - from;
        format!("{},{count}", if count == 0 { from.saturating_sub(1) } else { from })
    };
    format!("@@ -{} +{} @@{section}", range(from.old, to.old), range(from.new, to.new))
}
