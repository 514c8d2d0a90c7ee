//! Sizes for people.

/// `163 MB`.
pub fn byte_size(bytes: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GB", 1_000_000_000), ("MB", 1_000_000), ("KB", 1_000)];
    let unit = UNITS.into_iter().find(|(_, unit)| bytes >= *unit);
    match unit {
        None => format!("{bytes} B"),
        // One place, rounded to the nearest.
        Some((name, unit)) if bytes < 10 * unit => {
            let tenths = (bytes.saturating_mul(10) + unit / 2) / unit;
            format!("{}.{} {name}", tenths / 10, tenths % 10)
        }
        Some((name, unit)) => format!("{} {name}", (bytes + unit / 2) / unit),
    }
}

#[cfg(test)]
mod tests {
    use super::byte_size;

    #[test]
    fn u_14_sizes_are_printed_with_two_digits_at_least() {
        for (bytes, printed) in [
            (0, "0 B"),
            (999, "999 B"),
            (1_000, "1.0 KB"),
            (162_860_000, "163 MB"),
            (9_940_000, "9.9 MB"),
            (12_345_678_901, "12 GB"),
        ] {
            assert_eq!(byte_size(bytes), printed);
        }
    }
}
