//! The known names closest to a mistyped one.

/// The name that differs in the fewest letters, if these are few.
pub fn closest<'a>(word: &str, names: &'a [String]) -> Option<&'a str> {
    const LONGEST: usize = 40;
    let word = word.to_lowercase();
    if word.len() > LONGEST {
        return None;
    }
    let near = names.iter().map(|name| (distance(&word, name), name)).min()?;
    is_near(near.0, &word).then_some(near.1.as_str())
}

/// Whether so many edits are a slip of the keys rather than another word.
pub(crate) fn is_near(edits: usize, word: &str) -> bool {
    edits <= 1 + word.len() / 4
}

/// Edits from one word to the other.
pub(crate) fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, a) in a.chars().enumerate() {
        let mut next = vec![i + 1];
        for (j, (b, pair)) in b.iter().zip(row.windows(2)).enumerate() {
            let &[diagonal, above] = pair else { continue };
            let left = next.get(j).copied().unwrap_or(usize::MAX);
            next.push((diagonal + usize::from(a != *b)).min(above + 1).min(left + 1));
        }
        row = next;
    }
    row.last().copied().unwrap_or(usize::MAX)
}
