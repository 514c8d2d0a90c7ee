#[path = "../src/hunks.rs"]
mod hunks;

use hunks::hunks;

#[test]
fn one_hunk() {
    assert_eq!(hunks(&[5], 20, 3), [(2, 8)]);
    assert_eq!(hunks(&[1], 20, 3), [(1, 4)]);
    assert_eq!(hunks(&[20], 20, 3), [(17, 20)]);
    assert_eq!(hunks(&[5, 5], 20, 0), [(5, 5)]);
}

#[test]
fn hunks_far_apart() {
    assert_eq!(hunks(&[30, 10], 40, 2), [(8, 12), (28, 32)]);
}

#[test]
fn nothing_to_show() {
    assert_eq!(hunks(&[], 20, 3), []);
    assert_eq!(hunks(&[0, 21], 20, 3), []);
}
