//! Reads durations. The format is described in README.md.

const UNITS: [(char, u64); 4] = [('d', 86400), ('h', 3600), ('m', 60), ('s', 1)];

/// Returns the number of seconds of a duration.
pub fn parse_seconds(text: &str) -> Result<u64, String> {
    seconds(text).ok_or_else(|| not_a_duration(text))
}

fn seconds(text: &str) -> Option<u64> {
    let mut total: u64 = 0;
    let mut units = UNITS.iter();
    let mut amount: Option<u64> = None;
    for sign in text.chars() {
        if let Some(digit) = sign.to_digit(10) {
            let before = amount.unwrap_or(0);
            amount = Some(before.checked_mul(10)?.checked_add(u64::from(digit))?);
        } else {
            // The iterator has passed all larger units and the same one.
            let (_, seconds) = units.find(|(name, _)| *name == sign)?;
            total = total.checked_add(amount.take()?.checked_mul(*seconds)?)?;
        }
    }
    (amount.is_none() && !text.is_empty()).then_some(total)
}

fn not_a_duration(text: &str) -> String {
    format!("not a duration: {text}")
}
