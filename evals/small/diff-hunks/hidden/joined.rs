#[path = "../src/hunks.rs"]
mod hunks;

use hunks::hunks;

#[test]
fn overlapping_hunks_are_joined() {
    assert_eq!(hunks(&[5, 7], 20, 3), [(2, 10)]);
    assert_eq!(hunks(&[7, 5, 6], 20, 3), [(2, 10)]);
    assert_eq!(hunks(&[4, 8, 12], 40, 2), [(2, 14)]);
    assert_eq!(hunks(&[1, 20], 20, usize::MAX), [(1, 20)]);
}

#[test]
fn hunks_without_a_line_between_them_are_joined() {
    assert_eq!(hunks(&[5, 6], 20, 0), [(5, 6)]);
    assert_eq!(hunks(&[5, 10], 20, 2), [(3, 12)]);
    assert_eq!(hunks(&[1, 2, 3, 5], 9, 0), [(1, 3), (5, 5)]);
}

#[test]
fn one_line_between_two_hunks_is_hidden() {
    assert_eq!(hunks(&[5, 7], 20, 0), [(5, 5), (7, 7)]);
    assert_eq!(hunks(&[5, 11], 20, 2), [(3, 7), (9, 13)]);
}

/// Compares with a slow computation, line by line.
#[test]
fn all_small_files() {
    for lines in 0..9 {
        for context in 0..4 {
            for set in 0..(1u32 << lines) {
                let changed: Vec<usize> = (1..=lines).filter(|line| set & (1 << (line - 1)) != 0).collect();
                let shown: Vec<usize> =
                    (1..=lines).filter(|line| changed.iter().any(|other| other.abs_diff(*line) <= context)).collect();
                let mut expected: Vec<(usize, usize)> = Vec::new();
                for line in shown {
                    match expected.last_mut() {
                        Some(last) if last.1 + 1 == line => last.1 = line,
                        _ => expected.push((line, line)),
                    }
                }
                assert_eq!(hunks(&changed, lines, context), expected, "{changed:?} of {lines} lines, context {context}");
            }
        }
    }
}
