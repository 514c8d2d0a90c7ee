//! The parts of a file that a diff view shows. See README.md.

/// Returns first and last line of each part.
pub fn hunks(changed: &[usize], lines: usize, context: usize) -> Vec<(usize, usize)> {
    let mut changed: Vec<usize> = changed.iter().copied().filter(|line| (1..=lines).contains(line)).collect();
    changed.sort_unstable();
    changed.dedup();
    let mut merged: Vec<(usize, usize)> = Vec::new();
    for line in changed {
        let (first, last) = around(line, lines, context);
        match merged.last_mut() {
            Some(previous) if first <= previous.1 => previous.1 = previous.1.max(last),
            _ => merged.push((first, last)),
        }
    }
    merged
}

/// Returns the range of lines around a changed one.
fn around(line: usize, lines: usize, context: usize) -> (usize, usize) {
    (line.saturating_sub(context).max(1), line.saturating_add(context).min(lines))
}
