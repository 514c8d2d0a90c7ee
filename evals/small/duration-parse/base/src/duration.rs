//! Reads durations. The format is described in README.md.

const UNITS: [(char, u64); 4] = [('d', 86400), ('h', 3600), ('m', 60), ('s', 1)];

/// Returns the number of seconds of a duration.
pub fn parse_seconds(text: &str) -> Result<u64, String> {
    if text.is_empty() {
        return Err(not_a_duration(text));
    }
    let (digits, unit) = text.split_at(text.len() - 1);
    let amount: u64 = digits.parse().map_err(|_| not_a_duration(text))?;
    for (name, seconds) in UNITS {
        if unit.starts_with(name) {
            return Ok(amount * seconds);
        }
    }
    Err(not_a_duration(text))
}

fn not_a_duration(text: &str) -> String {
    format!("not a duration: {text}")
}
