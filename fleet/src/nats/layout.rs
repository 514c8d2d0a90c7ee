//! What is where on the server: streams, their limits, and the consumers behind queues.
//!
//! A *queue* of [`crate::bus::Bus::take`] is named by its subject: `af1.o.<class>` for the orders of a class,
//! `af1.r.<sprint>` for the reports of a sprint, `af1.s.>` and `af1.a.>` for what people submit. A name without `af1.` is
//! a class. Behind each queue is one durable consumer of the subject's stream, named after the subject (`o-<class>`) and shared
//! by all who take from it. It is made on demand by the conductor, which alone has permission for it: before its first
//! order to a class, and when it first takes. For a member without that permission a queue that nobody has made is empty.

use std::time::Duration;

use serde_json::{Value, json};

use crate::bus::BusError;
use crate::names;

/// A stream, and its share of the disk in thousandths.
struct Stream {
    name: &'static str,
    subjects: &'static [&'static str],
    queue: bool,
    share: u64,
    days: u64,
    /// How many messages of a subject are kept; 0 for all.
    last: u64,
}

const ALL: [Stream; 9] = [
    Stream { name: names::ORDERS, subjects: &["af1.o.>"], queue: true, share: 20, days: 0, last: 0 },
    Stream { name: names::REPORTS, subjects: &["af1.r.>"], queue: true, share: 20, days: 0, last: 0 },
    Stream { name: names::JOURNALS, subjects: &["af1.j.>"], queue: false, share: 300, days: 0, last: 0 },
    Stream { name: names::FILES, subjects: &["af1.f.>"], queue: false, share: 550, days: 0, last: 0 },
    Stream {
        name: "AF_SUBMIT",
        subjects: &["af1.s.>", "af1.a.>"],
        queue: false,
        share: 20,
        days: 366,
        last: 0,
    },
    key_value("KV_AF_LEDGER", &["$KV.AF_LEDGER.>"]),
    key_value("KV_AF_ACCOUNT", &["$KV.AF_ACCOUNT.>"]),
    key_value("KV_AF_TRUST", &["$KV.AF_TRUST.>"]),
    key_value("KV_AF_REPO", &["$KV.AF_REPO.>"]),
];

const fn key_value(name: &'static str, subjects: &'static [&'static str]) -> Stream {
    Stream { name, subjects, queue: false, share: 10, days: 0, last: 8 }
}

/// Every stream with what makes it. `bytes` are for all of them together.
pub(super) fn streams(bytes: u64, copies: u8) -> impl Iterator<Item = (&'static str, Value)> {
    ALL.iter().map(move |stream| {
        let config = json!({
            "name": stream.name,
            "subjects": stream.subjects,
            "retention": if stream.queue { "workqueue" } else { "limits" },
            "storage": "file",
            // Nothing that was kept is lost to make room: the one who writes gets an error.
            "discard": "new",
            "max_bytes": bytes / 1000 * stream.share,
            "max_age": nanoseconds(Duration::from_secs(stream.days * 86_400)),
            "max_msgs": -1,
            "max_consumers": -1,
            "max_msgs_per_subject": if stream.last == 0 { json!(-1) } else { json!(stream.last) },
            "max_msg_size": -1,
            "num_replicas": copies,
            "duplicate_window": nanoseconds(Duration::from_secs(120)),
            "allow_direct": true,
        });
        (stream.name, config)
    })
}

/// The names of all streams.
pub fn stream_names() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|stream| stream.name)
}

/// The stream that keeps a subject.
pub(super) fn stream_of(subject: &str) -> Result<&'static str, BusError> {
    let is_below = |pattern: &str| pattern.strip_suffix('>').is_some_and(|above| subject.starts_with(above));
    let stream = ALL.iter().find(|stream| stream.subjects.iter().any(|pattern| is_below(pattern)));
    stream
        .map(|stream| stream.name)
        .ok_or_else(|| BusError::Wrong(format!("nothing is kept on the subject {subject}")))
}

/// A queue as the server knows it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct QueuePlace {
    pub(super) stream: &'static str,
    pub(super) consumer: String,
    pub(super) subject: String,
}

impl QueuePlace {
    pub(super) fn of(queue: &str) -> Result<QueuePlace, BusError> {
        let subject = if queue.starts_with("af1.") { queue.to_owned() } else { format!("af1.o.{queue}") };
        let stream = stream_of(&subject)?;
        let mut consumer = String::new();
        for c in subject.chars().skip("af1.".len()) {
            match c {
                'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' | '=' => consumer.push(c),
                '.' if !consumer.contains('-') => consumer.push('-'),
                other => consumer.push_str(&format!("%{:02x}", u32::from(other))),
            }
        }
        Ok(QueuePlace { stream, consumer, subject })
    }

    /// What makes its consumer.
    pub(super) fn config(&self, lease: Duration) -> Value {
        json!({
            "stream_name": self.stream,
            "config": {
                "name": self.consumer,
                "durable_name": self.consumer,
                "filter_subject": self.subject,
                "deliver_policy": "all",
                "replay_policy": "instant",
                "ack_policy": "explicit",
                "ack_wait": nanoseconds(lease),
                "max_deliver": -1,
                "max_ack_pending": 5_000,
                "max_waiting": 5_000,
            },
        })
    }
}

pub(super) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fl_41_queues_and_subjects_have_a_place() {
        for (queue, stream, consumer, subject) in [
            ("linux", "AF_ORDERS", "o-linux", "af1.o.linux"),
            ("af1.o.agent=3aclaude", "AF_ORDERS", "o-agent=3aclaude", "af1.o.agent=3aclaude"),
            ("af1.r.2026-11-18-sprint", "AF_REPORTS", "r-2026-11-18-sprint", "af1.r.2026-11-18-sprint"),
            ("af1.s.>", "AF_SUBMIT", "s-%3e", "af1.s.>"),
            ("a.b c", "AF_ORDERS", "o-a%2eb%20c", "af1.o.a.b c"),
        ] {
            let consumer = consumer.to_owned();
            let expected = QueuePlace { stream, consumer, subject: subject.to_owned() };
            assert_eq!(QueuePlace::of(queue), Ok(expected), "{queue}");
        }
        assert!(QueuePlace::of("af1.hb.w1").is_err());
        for (subject, expected) in
            [("$KV.AF_LEDGER.all", "KV_AF_LEDGER"), ("af1.j.run.x", "AF_JOURNAL"), ("af1.f.ab.0", "AF_FILES")]
        {
            assert_eq!(stream_of(subject), Ok(expected));
        }
    }

    #[test]
    fn fl_42_all_streams_fit_on_the_disk_together() {
        let sum: u64 = ALL.iter().map(|stream| stream.share).sum();
        assert!(sum <= 1000, "{sum}");
        let made: Vec<u64> =
            streams(1_000_000, 1).filter_map(|(_, config)| config["max_bytes"].as_u64()).collect();
        assert_eq!(made.iter().sum::<u64>(), sum * 1000);
        assert!(made.iter().all(|bytes| *bytes > 0));
    }
}
