//! What a provider's refusal means, and when it will serve again.

use archeflow_core::event::Failure;

use crate::client_output::{ClientFault, by_status, speaks_of};
use crate::clock;

/// An error response beyond its status.
#[derive(Debug, Clone, Copy)]
pub(super) struct ErrorReply<'a> {
    pub(super) status: u64,
    pub(super) said: &'a str,
    /// Names in lower case.
    pub(super) headers: &'a [(String, String)],
    pub(super) now_ms: u64,
}

const TOO_LONG: [&str; 4] = ["context length", "context size", "context_length", "exceed_context"];

/// The longest wait a provider may ask for; greater values are ignored.
const A_MONTH: u64 = 31 * 24 * 3_600;

pub(super) fn of(told: &ErrorReply<'_>) -> ClientFault {
    let ErrorReply { status, said, .. } = *told;
    let kind = match status {
        300..=399 => Failure::Refused,
        413 => Failure::ContextTooLong,
        400..=500 if speaks_of(said, &TOO_LONG) => Failure::ContextTooLong,
        408 | 425 => Failure::Overload,
        status => by_status(status, said),
    };
    let text = match (status, said) {
        (300..=399, _) => format!("it answered with a redirect ({status}), which is not followed"),
        (_, "") => format!("status {status}"),
        (_, said) => format!("{} (status {status})", short(said)),
    };
    let waits = matches!(kind, Failure::RateLimit | Failure::Quota | Failure::Overload);
    ClientFault { reopens: if waits { reopens(told) } else { None }, ..ClientFault::new(kind, text) }
}

/// Worth another try by ourselves.
pub(super) fn may_pass(kind: Failure) -> bool {
    matches!(kind, Failure::RateLimit | Failure::Overload | Failure::Network)
}

fn short(said: &str) -> String {
    let plain: String = said.chars().map(|c| if c.is_control() { ' ' } else { c }).take(400).collect();
    plain.trim().to_owned()
}

/// Seconds until the provider serves again, if it gives a plausible number.
fn reopens(told: &ErrorReply<'_>) -> Option<u64> {
    let header =
        |name: &str| told.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.trim());
    let until = |ms: u64| ms.checked_sub(told.now_ms).map(|left| left.div_ceil(1_000));
    let millis =
        header("retry-after-ms").and_then(|text| text.parse::<u64>().ok()).map(|ms| ms.div_ceil(1_000));
    let after = || {
        let text = header("retry-after")?;
        text.parse::<u64>().ok().or_else(|| until(http_date(text)?))
    };
    let resets = || {
        let of_anthropic = |(name, _): &&(String, String)| {
            name.starts_with("anthropic-ratelimit-") && name.ends_with("-reset")
        };
        let times = told.headers.iter().filter(of_anthropic).map(|(_, value)| clock::read(value.trim()));
        until(times.max().filter(|ms| *ms > 0)?)
    };
    millis.or_else(after).or_else(resets).filter(|seconds| *seconds <= A_MONTH)
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`, the one form that is still written.
fn http_date(text: &str) -> Option<u64> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let words: Vec<&str> = text.split_whitespace().collect();
    let [_, day, month, year, time, "GMT"] = words.as_slice() else { return None };
    let month = MONTHS.iter().position(|known| known == month)? + 1;
    Some(clock::read(&format!("{year}-{month:02}-{day:0>2}T{time}Z"))).filter(|ms| *ms > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m_g2_m_g3_m_g4_m_g5_a_refusal_is_distinguished() {
        for (status, said, kind) in [
            (401, "invalid x-api-key", Failure::Auth),
            (403, "", Failure::Auth),
            (402, "", Failure::Quota),
            (400, "Your credit balance is too low to access the API", Failure::Quota),
            (429, "You exceeded your current quota (insufficient_quota)", Failure::Quota),
            (429, "slow down", Failure::RateLimit),
            (400, "prompt is too long: 250000 tokens > 200000 maximum", Failure::ContextTooLong),
            (400, "This model's maximum context length is 4096 tokens", Failure::ContextTooLong),
            (400, "the request exceeds the available context size", Failure::ContextTooLong),
            (413, "", Failure::ContextTooLong),
            (404, "model 'x' not found", Failure::Refused),
            (302, "", Failure::Refused),
            (307, "", Failure::Refused),
            (408, "", Failure::Overload),
            (500, "", Failure::Overload),
            (503, "", Failure::Overload),
            (529, "overloaded", Failure::Overload),
        ] {
            let fault = of(&ErrorReply { status, said, headers: &[], now_ms: 0 });
            assert_eq!(fault.kind, kind, "{status} {said}");
        }
    }

    #[test]
    fn m_g3_a_provider_says_when_it_serves_again() {
        let now_ms = clock::read("2026-04-08T12:00:00Z");
        for (name, value, wanted) in [
            ("retry-after", "0", Some(0)),
            ("retry-after", "3600", Some(3_600)),
            ("retry-after", "Wed, 08 Apr 2026 12:00:30 GMT", Some(30)),
            ("retry-after", "Wed, 08 Apr 2026 11:00:00 GMT", None),
            ("retry-after", "soon", None),
            ("retry-after", "-1", None),
            ("retry-after", "99999999999999999999", None),
            ("retry-after", "99999999", None),
            ("retry-after-ms", "1500", Some(2)),
            ("anthropic-ratelimit-requests-reset", "2026-04-08T12:01:00Z", Some(60)),
            ("anthropic-ratelimit-requests-reset", "later", None),
            ("x-other", "5", None),
        ] {
            let headers = [(name.to_owned(), value.to_owned())];
            let fault = of(&ErrorReply { status: 429, said: "", headers: &headers, now_ms });
            assert_eq!(fault.reopens, wanted, "{name}: {value}");
        }
    }
}
