//! The time at which a provider serves again, from its message: `try again in 1h 5m`, `retry after 30 seconds`. Only
//! what is unmistakable is read; anything else is no statement.

/// Seconds, rounded up.
pub fn read(said: &str) -> Option<u64> {
    let said = said.to_lowercase();
    let after =
        ["try again in ", "retry in ", "retry after ", "retry-after: ", "resets in ", "available in "]
            .iter()
            .find_map(|lead| said.split_once(lead).map(|(_, rest)| rest))?;
    let mut seconds: Option<u64> = None;
    let mut words = after.split([' ', ',']).filter(|word| !word.is_empty() && *word != "and").peekable();
    while let Some(word) = words.next() {
        let spelled = match words.peek() {
            Some(next) if word.ends_with(|c: char| c.is_ascii_digit()) => format!("{word}{next}"),
            Some(_) | None => word.to_owned(),
        };
        let Some(part) = parts(&spelled) else { break };
        if spelled != word {
            words.next();
        }
        seconds = Some(seconds.unwrap_or(0).saturating_add(part));
    }
    seconds
}

/// `1h5m20s`, `1.3s`, `3hours`.
fn parts(word: &str) -> Option<u64> {
    let mut rest = word.trim_end_matches(['.', ';', ')', '!']);
    let mut seconds = 0_u64;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: u64 = rest.get(..digits)?.parse().ok()?;
        rest = rest.get(digits..)?;
        let fraction =
            rest.strip_prefix('.').map(|more| more.trim_start_matches(|c: char| c.is_ascii_digit()));
        let letters = fraction.unwrap_or(rest);
        let end = letters.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(letters.len());
        let unit = letters.get(..end)?;
        rest = letters.get(end..)?;
        let value = number.checked_add(u64::from(fraction.is_some() && unit != "ms"))?;
        seconds = seconds.checked_add(match unit {
            "ms" => value.div_ceil(1_000),
            "s" | "sec" | "secs" | "second" | "seconds" => value,
            "m" | "min" | "mins" | "minute" | "minutes" => value.checked_mul(60)?,
            "h" | "hour" | "hours" => value.checked_mul(3_600)?,
            "d" | "day" | "days" => value.checked_mul(86_400)?,
            _ => return None,
        })?;
    }
    Some(seconds)
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn m_g3_a_provider_says_when_in_words() {
        for (said, seconds) in [
            ("Rate limit reached. Please try again in 20s.", Some(20)),
            ("Please try again in 1.3s. Visit the page", Some(2)),
            ("Please try again in 350ms", Some(1)),
            ("try again in 6m0s", Some(360)),
            ("You have hit your usage limit. Try again in 3 hours 12 minutes.", Some(11_520)),
            ("try again in 2 days, 1 hour and 5 minutes or upgrade", Some(176_700)),
            ("429 Too Many Requests; retry after 30 seconds", Some(30)),
            ("try again in a moment", None),
            ("try again in 99999999999999999999 hours", None),
            ("try again in 5 apples", None),
            ("try again later", None),
            ("", None),
        ] {
            assert_eq!(read(said), seconds, "{said}");
        }
    }
}
