//! The parts of a file that a diff view shows. See README.md.

/// Returns first and last line of each part.
pub fn hunks(changed: &[usize], lines: usize, context: usize) -> Vec<(usize, usize)> {
    let mut changed: Vec<usize> = changed.iter().copied().filter(|line| (1..=lines).contains(line)).collect();
    changed.sort_unstable();
    changed.dedup();
    let mut joined: Vec<(usize, usize)> = Vec::new();
    for (first, last) in changed.into_iter().map(|line| around(line, lines, context)) {
        match joined.last_mut() {
            // At least one line must be hidden between two hunks.
            Some(before) if first - 1 <= before.1 => before.1 = last,
            _ => joined.push((first, last)),
        }
    }
    joined
}

/// Returns the range of lines around a changed one.
fn around(line: usize, lines: usize, context: usize) -> (usize, usize) {
    (line.saturating_sub(context).max(1), line.saturating_add(context).min(lines))
}
