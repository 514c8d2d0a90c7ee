//! When a message about something that waits for a person is sent: once, again after an hour, and never while somebody
//! watches (docs/notifications.md).

/// What is still open after this long is sent again.
pub const AGAIN_MS: u64 = 3_600_000;
/// A person who did something at the terminal of the run this recently is taken to sit there.
pub const THERE_MS: u64 = 60_000;
/// How often it is looked whether a watcher has left.
pub const LOOK_MS: u64 = 2_000;

/// What is known about a message. Times are in milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NoticeFacts {
    /// When it was sent last.
    pub sent_at: Option<u64>,
    /// `archeflow watch` or a page shows what it is about.
    pub watched: bool,
    /// When the person at the terminal of this process did something last; nothing if there is none.
    pub acted_at: Option<u64>,
    pub now: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sending {
    Now,
    /// Look again after this many milliseconds.
    Later(u64),
}

pub fn sending(facts: NoticeFacts) -> Sending {
    let NoticeFacts { sent_at, watched, acted_at, now } = facts;
    // A date in the future comes from a clock that was wrong; a message twice is better than none.
    let left = |then: Option<u64>, wait: u64| {
        let since = now.checked_sub(then?)?;
        wait.checked_sub(since).filter(|left| *left > 0)
    };
    if let Some(left) = left(sent_at, AGAIN_MS) {
        return Sending::Later(left);
    }
    if let Some(left) = left(acted_at, THERE_MS) {
        return Sending::Later(left);
    }
    if watched { Sending::Later(LOOK_MS) } else { Sending::Now }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notify_once_and_again_after_an_hour_and_never_while_somebody_watches() {
        const NOW: u64 = 1_000_000_000;
        let ago = |ms: u64| Some(NOW - ms);
        let rows = [
            (None, false, None, Sending::Now),
            (None, true, None, Sending::Later(LOOK_MS)),
            (ago(1), false, None, Sending::Later(AGAIN_MS - 1)),
            (ago(1), true, None, Sending::Later(AGAIN_MS - 1)),
            (ago(AGAIN_MS - 1), false, None, Sending::Later(1)),
            (ago(AGAIN_MS), false, None, Sending::Now),
            (ago(AGAIN_MS), true, None, Sending::Later(LOOK_MS)),
            (Some(NOW + 1), false, None, Sending::Now),
            (None, false, ago(0), Sending::Later(THERE_MS)),
            (None, false, ago(THERE_MS - 1), Sending::Later(1)),
            (None, false, ago(THERE_MS), Sending::Now),
            (None, false, Some(NOW + 1), Sending::Now),
            (ago(AGAIN_MS), false, ago(1_000), Sending::Later(THERE_MS - 1_000)),
        ];
        for (sent_at, watched, acted_at, expected) in rows {
            let facts = NoticeFacts { sent_at, watched, acted_at, now: NOW };
            assert_eq!(sending(facts), expected, "{facts:?}");
        }
    }
}
