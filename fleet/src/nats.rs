//! The bus over NATS JetStream: publish with expectations, direct reads, pulls and acknowledgements, each one request with one
//! answer. The client's conveniences (key-value watch, ordered consumers, object store) have hung after restarts of servers
//! and are not used; nor is its layer for JetStream, which is larger than these few requests.

mod layout;
mod link;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::Receiver;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use archeflow_host::clock;
use async_nats::header::{HeaderMap, HeaderName, HeaderValue};
use async_nats::{Message, StatusCode};
use bytes::Bytes;
use serde_json::{Value, json};

use crate::bus::{Bus, BusError, BusSeq, Delivery, Expect, Heard, Kept, Lease, Put, PutEnd};
use crate::join::{JoinError, JoinFile};

use layout::QueuePlace;
pub use layout::stream_names;
use link::Link;
pub(crate) use link::inbox;

#[derive(Debug, Clone, Copy)]
pub struct NatsOptions {
    /// To be connected, and again to be answered. Then there is no answer.
    pub limit: Duration,
    /// How long a delivery is leased, in queues that this member makes.
    pub lease: Duration,
}

impl Default for NatsOptions {
    fn default() -> NatsOptions {
        NatsOptions { limit: Duration::from_secs(10), lease: Duration::from_secs(60) }
    }
}

/// A connection to the fleet's server. All of it blocks and may be used by many threads at once.
pub struct NatsBus {
    link: Link,
    options: NatsOptions,
    /// Queues that are known to be there, on the connection of this number.
    made: Mutex<(u64, BTreeSet<String>)>,
}

/// How often a queue that nobody has made is looked for.
const LOOK: Duration = Duration::from_millis(250);
/// How long a server reads its configuration, at most.
const READING: Duration = Duration::from_secs(3);

impl NatsBus {
    /// A refusal is believed when it is repeated: a server that is reading its configuration again may know nobody for a
    /// moment.
    pub fn connect(join: &JoinFile, options: NatsOptions) -> Result<NatsBus, JoinError> {
        let begun = Instant::now();
        loop {
            match Link::open(join) {
                Ok(link) => return Ok(NatsBus { link, options, made: Mutex::new((0, BTreeSet::new())) }),
                Err(JoinError::Refused { .. }) if begun.elapsed() < READING => {
                    std::thread::sleep(READING / 10);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// What the server calls its version; empty while there is no connection.
    pub fn server_version(&self) -> String {
        self.link.server_version()
    }

    /// Makes all streams, or brings them to these limits. `bytes` are for all together. Only `fleet serve` has permission.
    pub fn lay_out(&self, bytes: u64, copies: u8) -> Result<(), BusError> {
        for (name, config) in layout::streams(bytes, copies) {
            // A server that has the stream already counts its bytes twice when it is to be made again.
            let what = match self.api(&format!("STREAM.INFO.{name}"), &json!({})) {
                Ok(_) => "UPDATE",
                Err(Fault::Code(NO_STREAM, _)) => "CREATE",
                Err(fault) => return Err(fault.into()),
            };
            self.api(&format!("STREAM.{what}.{name}"), &config)?;
        }
        Ok(())
    }

    /// Makes a queue, or brings it to this lease.
    pub fn make_queue(&self, queue: &str) -> Result<(), BusError> {
        let place = QueuePlace::of(queue)?;
        self.make(&place)
    }

    /// Removes a queue with what is left in it. One that is not there is no fault.
    pub fn remove_queue(&self, queue: &str) -> Result<(), BusError> {
        let place = QueuePlace::of(queue)?;
        loop {
            match self.pull(&place, Duration::ZERO) {
                Ok(Some(left)) => self.lease(&left.token, Lease::Done)?,
                Ok(None) | Err(None) => break,
                Err(Some(error)) => return Err(error),
            }
        }
        self.forget(&place);
        match self.api(&format!("CONSUMER.DELETE.{}.{}", place.stream, place.consumer), &json!({})) {
            Ok(_) | Err(Fault::Code(NO_CONSUMER, _)) => Ok(()),
            Err(fault) => Err(fault.into()),
        }
    }

    /// Removes one message, e.g. an order that was answered.
    pub fn remove(&self, stream: &str, seq: BusSeq) -> Result<(), BusError> {
        let request = json!({"seq": seq, "no_erase": true});
        match self.api(&format!("STREAM.MSG.DELETE.{stream}"), &request) {
            Ok(_) => Ok(()),
            Err(Fault::Code(code, _)) if NO_MESSAGE.contains(&code) => Ok(()),
            Err(fault) => Err(fault.into()),
        }
    }

    /// Removes all messages of a subject, which may have wildcards.
    pub fn purge(&self, stream: &str, subject: &str) -> Result<(), BusError> {
        self.api(&format!("STREAM.PURGE.{stream}"), &json!({"filter": subject}))?;
        Ok(())
    }

    /// What the server says about a stream: `state` with its messages and bytes, `config` with its limits.
    pub fn stream_info(&self, stream: &str) -> Result<Value, BusError> {
        Ok(self.api(&format!("STREAM.INFO.{stream}"), &json!({}))?)
    }

    /// The same about the consumer of a queue: `num_pending` wait, `num_ack_pending` are leased.
    pub fn queue_info(&self, queue: &str) -> Result<Value, BusError> {
        let place = QueuePlace::of(queue)?;
        Ok(self.api(&format!("CONSUMER.INFO.{}.{}", place.stream, place.consumer), &json!({}))?)
    }

    /// What the server says about every queue of a stream.
    pub fn queue_infos(&self, stream: &str) -> Result<Vec<Value>, BusError> {
        let mut all: Vec<Value> = Vec::new();
        loop {
            let answer = self.api(&format!("CONSUMER.LIST.{stream}"), &json!({"offset": all.len()}))?;
            let page = answer["consumers"].as_array().cloned().unwrap_or_default();
            let is_last = page.is_empty();
            all.extend(page);
            if is_last || all.len() as u64 >= answer["total"].as_u64().unwrap_or(0) {
                return Ok(all);
            }
        }
    }

    /// Subjects that match one with wildcards, and how many messages each has.
    pub fn subjects(&self, stream: &str, filter: &str) -> Result<BTreeMap<String, u64>, BusError> {
        let mut all = BTreeMap::new();
        let mut offset = 0;
        loop {
            let body = json!({"subjects_filter": filter, "offset": offset});
            let answer = self.api(&format!("STREAM.INFO.{stream}"), &body)?;
            let page = answer["state"]["subjects"].as_object().cloned().unwrap_or_default();
            offset += page.len() as u64;
            let is_last = page.is_empty();
            all.extend(page.into_iter().map(|(subject, count)| (subject, count.as_u64().unwrap_or(0))));
            if is_last || offset >= answer["total"].as_u64().unwrap_or(0) {
                return Ok(all);
            }
        }
    }

    fn ask(&self, subject: &str, body: &Value, limit: Duration) -> Result<Option<Message>, BusError> {
        self.link.ask(subject, None, Bytes::from(body.to_string()), limit)
    }

    /// A request to JetStream that is answered with JSON.
    fn api(&self, what: &str, body: &Value) -> Result<Value, Fault> {
        let answer = self.ask(&format!("$JS.API.{what}"), body, self.options.limit)?;
        let Some(answer) = answer else {
            return Err(
                BusError::Wrong("the server keeps nothing: it runs without JetStream".to_owned()).into()
            );
        };
        api_answer(&answer.payload)
    }

    /// Nobody answers for this stream: because it is not there, or because it has no leader just now.
    fn unanswered(&self, stream: &str) -> BusError {
        match self.stream_info(stream) {
            Ok(_) => BusError::NoAnswer(format!("nobody answers for the stream {stream} just now")),
            Err(error) => error,
        }
    }

    fn make(&self, place: &QueuePlace) -> Result<(), BusError> {
        let key = format!("{}.{}", place.stream, place.consumer);
        let number = self.link.number();
        {
            let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
            if made.0 != number {
                *made = (number, BTreeSet::new());
            }
            if made.1.contains(&key) {
                return Ok(());
            }
        }
        self.api(&format!("CONSUMER.CREATE.{key}"), &place.config(self.options.lease))?;
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if made.0 == number {
            made.1.insert(key);
        }
        Ok(())
    }

    fn forget(&self, place: &QueuePlace) {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.1.remove(&format!("{}.{}", place.stream, place.consumer));
    }

    fn read(&self, stream: &str, body: &Value) -> Result<Option<Kept>, BusError> {
        let subject = format!("$JS.API.DIRECT.GET.{stream}");
        let Some(answer) = self.ask(&subject, body, self.options.limit)? else {
            return Err(self.unanswered(stream));
        };
        match answer.status {
            None => kept(&answer).map(Some),
            Some(StatusCode::NOT_FOUND) => Ok(None),
            Some(status) => {
                Err(BusError::Wrong(format!("{stream}: {status} {}", answer.description.unwrap_or_default())))
            }
        }
    }

    /// One pull. `Err(None)`: the queue is not there.
    fn pull(&self, place: &QueuePlace, wait: Duration) -> Result<Option<Delivery>, Option<BusError>> {
        let body = if wait < Duration::from_millis(10) {
            json!({"batch": 1, "no_wait": true})
        } else {
            json!({"batch": 1, "expires": layout::nanoseconds(wait)})
        };
        let subject = format!("{}{}.{}", link::PULL, place.stream, place.consumer);
        let Some(answer) = self.ask(&subject, &body, wait + self.options.limit)? else { return Err(None) };
        let said = answer.description.clone().unwrap_or_default();
        match answer.status {
            None => Ok(Some(delivery(&answer)?)),
            Some(StatusCode::NOT_FOUND | StatusCode::TIMEOUT) => Ok(None),
            Some(StatusCode::REQUEST_TERMINATED) if said.contains("Deleted") => Err(None),
            Some(status) => Err(Some(BusError::NoAnswer(format!("{status} {said}")))),
        }
    }
}

impl Bus for NatsBus {
    fn put(&self, put: Put<'_>) -> Result<PutEnd, BusError> {
        let stream = layout::stream_of(put.subject)?;
        let is_order = put.subject.starts_with("af1.o.");
        let queue = is_order.then(|| QueuePlace::of(put.subject)).transpose()?;
        let make = || match queue.as_ref().map_or(Ok(()), |place| self.make(place)) {
            // The one who may give orders may make queues; anybody else is refused below.
            Ok(()) | Err(BusError::Denied(_)) => Ok(()),
            Err(error) => Err(error),
        };
        make()?;
        let headers = headers(&put)?;
        let bytes = Bytes::copy_from_slice(put.bytes);
        let Some(answer) = self.link.ask(put.subject, headers, bytes, self.options.limit)? else {
            return Err(self.unanswered(stream));
        };
        match api_answer(&answer.payload) {
            Ok(answer) => match answer["seq"].as_u64() {
                Some(seq) => {
                    // The connection may have been made anew meanwhile, to a server that has lost its queues.
                    make()?;
                    Ok(PutEnd::Kept(seq))
                }
                None => Err(BusError::Wrong("the server's answer has no number".to_owned())),
            },
            Err(Fault::Code(WRONG_LAST | WRONG_LAST_CONSTANT, _)) => Ok(PutEnd::Refused),
            Err(Fault::Code(code, said)) if FULL.contains(&code) => {
                Err(BusError::Full(format!("{stream}, {said} ({code}); {MAKE_ROOM}")))
            }
            Err(fault) => Err(fault.into()),
        }
    }

    fn last(&self, subject: &str) -> Result<Option<Kept>, BusError> {
        self.read(layout::stream_of(subject)?, &json!({"last_by_subj": subject}))
    }

    fn next_from(&self, stream: &str, subject: &str, seq: BusSeq) -> Result<Option<Kept>, BusError> {
        self.read(stream, &json!({"seq": seq.max(1), "next_by_subj": subject}))
    }

    fn prepare(&self, queue: &str) -> Result<(), BusError> {
        self.make_queue(queue)
    }

    fn take(&self, queue: &str, wait: Duration) -> Result<Option<Delivery>, BusError> {
        let (place, begun) = (QueuePlace::of(queue)?, Instant::now());
        loop {
            let left = wait.saturating_sub(begun.elapsed());
            match self.pull(&place, left) {
                Ok(delivery) => return Ok(delivery),
                Err(Some(error)) => return Err(error),
                Err(None) => self.forget(&place),
            }
            match self.make(&place) {
                Ok(()) => continue,
                Err(BusError::Denied(_)) => {
                    self.stream_info(place.stream)?;
                }
                Err(error) => return Err(error),
            }
            let left = wait.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Ok(None);
            }
            std::thread::sleep(left.min(LOOK));
        }
    }

    fn lease(&self, token: &str, lease: Lease) -> Result<(), BusError> {
        let Some(parts) = token_parts(token) else {
            return Err(BusError::Wrong("this names no delivery".to_owned()));
        };
        let word = match lease {
            Lease::Extend => "+WPI".to_owned(),
            Lease::Done => "+ACK".to_owned(),
            Lease::Back(delay) => format!("-NAK {}", json!({"delay": layout::nanoseconds(delay)})),
            Lease::Never => "+TERM".to_owned(),
        };
        match self.link.ask(token, None, Bytes::from(word), self.options.limit)? {
            Some(_) => Ok(()),
            None => Err(BusError::Wrong(format!("the queue {} is not there any more", parts.consumer))),
        }
    }

    fn take_some(&self, queue: &str, most: usize, wait: Duration) -> Result<Vec<Delivery>, BusError> {
        let mut some: Vec<Delivery> = self.take(queue, wait)?.into_iter().collect();
        if !some.is_empty() && most > 1 {
            let place = QueuePlace::of(queue)?;
            let subject = format!("{}{}.{}", link::PULL, place.stream, place.consumer);
            let body = Bytes::from(json!({"batch": most - 1, "no_wait": true}).to_string());
            // What is taken already counts, whatever becomes of the rest.
            let more = self.link.pull(&subject, body, most - 1, self.options.limit);
            some.extend(more.iter().filter_map(|message| delivery(message).ok()));
        }
        Ok(some)
    }

    fn done_with(&self, tokens: &[String]) {
        let ours = tokens.iter().filter(|token| token_parts(token).is_some());
        self.link.say_all(ours.map(|token| (token.clone(), Bytes::from_static(b"+ACK"))).collect());
    }

    fn remove(&self, stream: &str, seq: BusSeq) -> Result<(), BusError> {
        NatsBus::remove(self, stream, seq)
    }

    fn say(&self, subject: &str, bytes: &[u8]) -> Result<(), BusError> {
        self.link.say(subject, Bytes::copy_from_slice(bytes))
    }

    fn hear(&self, subject: &str) -> Result<Receiver<Heard>, BusError> {
        self.link.hear(subject, self.options.limit)
    }
}

const NO_STREAM: u64 = 10059;
const NO_CONSUMER: u64 = 10014;
const WRONG_LAST: u64 = 10071;
const WRONG_LAST_CONSTANT: u64 = 10164;
/// No such message, in three ways to say it.
const NO_MESSAGE: [u64; 3] = [10037, 10043, 10057];
/// A limit of the stream, of the account, of the server's memory, of its disk; and no resources at all.
const FULL: [u64; 5] = [10077, 10002, 10028, 10047, 10023];

/// What to do about it. Members that wait show it, so it is part of the error.
const MAKE_ROOM: &str = "make room with archeflow fleet gc, or give the server a larger disk";

/// An error of JetStream, by its number, or of the way there.
enum Fault {
    Code(u64, String),
    Bus(BusError),
}

impl From<BusError> for Fault {
    fn from(error: BusError) -> Fault {
        Fault::Bus(error)
    }
}

impl From<Fault> for BusError {
    fn from(fault: Fault) -> BusError {
        match fault {
            Fault::Bus(error) => error,
            Fault::Code(code, said) if FULL.contains(&code) => BusError::Full(format!("{said} ({code})")),
            Fault::Code(code, said) if said.contains("temporarily") => {
                BusError::NoAnswer(format!("{said} ({code})"))
            }
            Fault::Code(code, said) => BusError::Wrong(format!("{said} ({code})")),
        }
    }
}

fn api_answer(payload: &[u8]) -> Result<Value, Fault> {
    let answer: Value = serde_json::from_slice(payload)
        .map_err(|error| BusError::Wrong(format!("the server's answer can't be read: {error}")))?;
    let error = &answer["error"];
    if error.is_null() {
        return Ok(answer);
    }
    let said = error["description"].as_str().unwrap_or("the server gives no reason").to_owned();
    Err(Fault::Code(error["err_code"].as_u64().unwrap_or(0), said))
}

fn headers(put: &Put<'_>) -> Result<Option<HeaderMap>, BusError> {
    let mut map = HeaderMap::new();
    let mut add = |name: &str, value: &str| {
        let name = name.parse::<HeaderName>();
        let value = value.parse::<HeaderValue>();
        match (name, value) {
            (Ok(name), Ok(value)) => {
                map.insert(name, value);
                Ok(())
            }
            (Err(error), _) => Err(BusError::Wrong(error.to_string())),
            (_, Err(error)) => Err(BusError::Wrong(error.to_string())),
        }
    };
    for (name, value) in put.headers {
        add(name, value)?;
    }
    if let Some(id) = put.id {
        add("Nats-Msg-Id", id)?;
    }
    if let Expect::Last(seq) = put.expect {
        add("Nats-Expected-Last-Subject-Sequence", &seq.to_string())?;
    }
    Ok((!map.is_empty()).then_some(map))
}

/// Headers of the sender, in order of their names; those of the server are read by us.
fn own_headers(map: Option<&HeaderMap>) -> Vec<(String, String)> {
    let all = map.into_iter().flat_map(HeaderMap::iter);
    let named = all.filter_map(|(name, values)| Some((name.to_string(), values.last()?.to_string())));
    let mut own: Vec<(String, String)> = named.filter(|(name, _)| !name.starts_with("Nats-")).collect();
    own.sort();
    own
}

fn kept(message: &Message) -> Result<Kept, BusError> {
    // The server adds its own behind those that a message was sent with.
    let header = |name: &str| {
        let name = name.parse::<HeaderName>().ok()?;
        message.headers.as_ref().and_then(|map| map.get_last(name)).map(HeaderValue::as_str)
    };
    let place = header("Nats-Subject").zip(header("Nats-Sequence").and_then(|seq| seq.parse().ok()));
    let Some((subject, seq)) = place else {
        return Err(BusError::Wrong("the server does not say where a message was kept".to_owned()));
    };
    Ok(Kept {
        subject: subject.to_owned(),
        seq,
        at: header("Nats-Time-Stamp").map_or(0, milliseconds),
        headers: own_headers(message.headers.as_ref()),
        bytes: message.payload.to_vec(),
    })
}

/// `2026-11-18T02:03:31.123456789Z`; trailing zeros are left out.
fn milliseconds(text: &str) -> u64 {
    let seconds = text.get(..19).map_or(0, |seconds| clock::read(&format!("{seconds}Z")));
    let fraction = text.get(19..).and_then(|rest| rest.strip_prefix('.')).unwrap_or_default();
    let digits = fraction.bytes().take_while(u8::is_ascii_digit).map(|digit| u64::from(digit - b'0'));
    let thousandths = digits.chain([0, 0, 0]).take(3).fold(0, |sum, digit| sum * 10 + digit);
    seconds + thousandths
}

struct TokenParts<'a> {
    consumer: &'a str,
    times: u64,
    seq: BusSeq,
}

/// `$JS.ACK.<stream>.<consumer>.<times>.<seq>.…`, or with domain and account behind `ACK`.
fn token_parts(token: &str) -> Option<TokenParts<'_>> {
    let parts: Vec<&str> = token.strip_prefix("$JS.ACK.")?.split('.').collect();
    let at = if parts.len() == 7 { 0 } else { 2 };
    let number = |n: usize| parts.get(at + n).and_then(|part| part.parse().ok());
    Some(TokenParts { consumer: parts.get(at + 1)?, times: number(2)?, seq: number(3)? })
}

fn delivery(message: &Message) -> Result<Delivery, BusError> {
    let token = message.reply.as_ref().map(ToString::to_string).unwrap_or_default();
    let Some(parts) = token_parts(&token) else {
        return Err(BusError::Wrong(format!("a delivery can't be answered: {token}")));
    };
    Ok(Delivery {
        subject: message.subject.to_string(),
        seq: parts.seq,
        times: parts.times,
        headers: own_headers(message.headers.as_ref()),
        bytes: message.payload.to_vec(),
        token,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fl_43_times_and_tokens_of_the_server_are_read() {
        for (text, expected) in [
            ("1970-01-01T00:00:01Z", 1_000),
            ("1970-01-01T00:00:01.5Z", 1_500),
            ("1970-01-01T00:00:01.0423456Z", 1_042),
            ("nonsense", 0),
            ("", 0),
        ] {
            assert_eq!(milliseconds(text), expected, "{text}");
        }
        for (token, expected) in [
            ("$JS.ACK.AF_ORDERS.o-linux.3.17.21.1763430211000000000.0", Some(("o-linux", 3, 17))),
            ("$JS.ACK._.HASH.AF_ORDERS.o-linux.3.17.21.1763430211000000000.0.x", Some(("o-linux", 3, 17))),
            ("$JS.ACK.AF_ORDERS", None),
            ("af1.o.linux", None),
            ("", None),
        ] {
            let parts = token_parts(token);
            assert_eq!(parts.map(|parts| (parts.consumer, parts.times, parts.seq)), expected, "{token}");
        }
    }

    #[test]
    fn fl_44_headers_that_the_protocol_cannot_carry_are_refused() {
        fn put<'a>(headers: &'a [(&'a str, &'a str)]) -> Put<'a> {
            Put { subject: "af1.f.a.0", expect: Expect::Anything, id: None, headers, bytes: b"" }
        }
        assert!(headers(&put(&[])).is_ok_and(|map| map.is_none()));
        assert!(headers(&put(&[("Af-Session", "s1")])).is_ok_and(|map| map.is_some()));
        for wrong in [("Af:Session", "s1"), ("Af-Session", "a\r\nb"), ("Ä", "b")] {
            assert!(matches!(headers(&put(&[wrong])), Err(BusError::Wrong(_))), "{wrong:?}");
        }
    }
}
