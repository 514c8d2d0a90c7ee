//! Reads durations. The format is described in README.md.

const UNITS: [(char, u64); 4] = [('d', 86400), ('h', 3600), ('m', 60), ('s', 1)];

/// Returns the number of seconds of a duration.
pub fn parse_seconds(text: &str) -> Result<u64, String> {
    let mut total = 0;
    let mut digits = String::new();
    let mut next_unit = 0;
    for sign in text.chars() {
        if sign.is_ascii_digit() {
            digits.push(sign);
            continue;
        }
        let unit = UNITS.iter().position(|(name, _)| *name == sign).ok_or_else(|| not_a_duration(text))?;
        if unit < next_unit {
            return Err(not_a_duration(text));
        }
        next_unit = unit + 1;
        let amount: u64 = digits.parse().map_err(|_| not_a_duration(text))?;
        total += amount * UNITS[unit].1;
        digits.clear();
    }
    if text.is_empty() || !digits.is_empty() {
        return Err(not_a_duration(text));
    }
    Ok(total)
}

fn not_a_duration(text: &str) -> String {
    format!("not a duration: {text}")
}
