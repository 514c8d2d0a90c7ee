//! Numbers in sentences.

use std::fmt::Display;

/// A number and what it counts: `1 file`, `2 files`.
pub fn counted<N: Copy + Display + PartialEq + From<u8>>(n: N, noun: &str) -> String {
    if n == N::from(1) { format!("1 {noun}") } else { format!("{n} {noun}s") }
}
