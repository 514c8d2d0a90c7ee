//! JSON lines on standard input and output. A line that is no message gets an error and the next one is read, so that a
//! client with a fault learns of it and nothing else is lost. Nothing is read while too much waits to be written, and nothing
//! that comes too early reaches the crate's server, which would end by it.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::io::{self, BufRead, Read, Write};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use archeflow_core::text::short_line;
use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorCode, ErrorData, GetMeta,
    InitializeRequestParams, JsonRpcMessage, ProtocolVersion, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::sync::mpsc::{self, Receiver, Sender, UnboundedSender};

/// The longest message: a task or a text of a person is far shorter.
pub(super) const LONGEST: usize = 4 * 1024 * 1024;
/// Messages that wait to be handled; each may be the longest.
const WAITING: usize = 4;
/// Bytes that wait to be written; while there are more, nothing is read.
const UNREAD: usize = 8 * 1024 * 1024;
/// Requests that are not answered yet.
const UNANSWERED: usize = 1_000;
/// How long a client that has closed its side may take nothing of what is left for it.
pub(super) const PATIENCE: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(20);

/// What the client sent.
enum Heard {
    Line(Vec<u8>),
    TooLong,
}

/// How it is between the client and us.
#[derive(Default)]
pub(super) struct Traffic {
    /// Bytes that wait to be written.
    unread: AtomicUsize,
    /// The client has closed its side.
    closed: AtomicBool,
    questions: Mutex<Vec<Question>>,
}

/// A question to the person that a call has put.
struct Question {
    call: RequestId,
    id: RequestId,
    withdrawn: bool,
}

impl Traffic {
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }

    /// Bytes that wait to be written.
    pub(super) fn unread(&self) -> usize {
        self.unread.load(Ordering::SeqCst)
    }

    /// More waits to be written than a client that reads would leave.
    pub(super) fn is_full(&self) -> bool {
        self.unread() > UNREAD
    }

    /// From now on an answer counts that comes before the call is cancelled.
    pub(super) fn asked(&self, call: &RequestId, id: &RequestId) {
        let question = Question { call: call.clone(), id: id.clone(), withdrawn: false };
        self.questions.lock().unwrap_or_else(PoisonError::into_inner).push(question);
    }

    /// Nobody waits for the answer any more.
    pub(super) fn answered(&self, id: &RequestId) {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner).retain(|question| question.id != *id);
    }

    fn withdraw(&self, call: &RequestId) {
        let mut questions = self.questions.lock().unwrap_or_else(PoisonError::into_inner);
        for question in questions.iter_mut().filter(|question| question.call == *call) {
            question.withdrawn = true;
        }
    }

    /// Whether the answer comes after its call was cancelled. Some clients write numbers as texts.
    fn is_withdrawn(&self, id: &RequestId) -> bool {
        let questions = self.questions.lock().unwrap_or_else(PoisonError::into_inner);
        let id = id.to_string();
        questions.iter().any(|question| question.withdrawn && question.id.to_string() == id)
    }
}

/// Whichever is ready first; `one`, if both are.
pub(super) async fn first_of<A, B>(
    one: impl Future<Output = A>,
    other: impl Future<Output = B>,
) -> Result<A, B> {
    let (mut one, mut other) = (pin!(one), pin!(other));
    poll_fn(|context| match one.as_mut().poll(context) {
        Poll::Ready(done) => Poll::Ready(Ok(done)),
        Poll::Pending => other.as_mut().poll(context).map(Err),
    })
    .await
}

pub(super) struct Wire {
    from: Receiver<Heard>,
    to: UnboundedSender<Vec<u8>>,
    /// A request was taken that begins a session of either era. Nothing but requests counts before.
    begun: bool,
    /// Requests that are not answered yet, as they are written.
    unanswered: BTreeSet<String>,
    traffic: Arc<Traffic>,
}

impl Wire {
    /// Reads standard input in a thread of its own, and writes in another, which is to be waited for at the end.
    pub(super) fn open(
        output: impl Write + Send + 'static,
        traffic: &Arc<Traffic>,
    ) -> io::Result<(Wire, JoinHandle<()>)> {
        let (tell, from) = mpsc::channel(WAITING);
        let reading = Arc::clone(traffic);
        let read = move || {
            read_all(&mut io::stdin().lock(), &tell);
            reading.close();
        };
        Builder::new().name("mcp-reader".into()).spawn(read)?;
        Wire::between(from, output, traffic)
    }

    fn between(
        from: Receiver<Heard>,
        mut output: impl Write + Send + 'static,
        traffic: &Arc<Traffic>,
    ) -> io::Result<(Wire, JoinHandle<()>)> {
        let (to, mut lines) = mpsc::unbounded_channel::<Vec<u8>>();
        let writing = Arc::clone(traffic);
        let write = move || {
            while let Some(line) = lines.blocking_recv() {
                // A client that reads no more has gone: the channel closes, and the server ends.
                if output.write_all(&line).and_then(|()| output.flush()).is_err() {
                    writing.close();
                    return;
                }
                writing.unread.fetch_sub(line.len(), Ordering::SeqCst);
            }
        };
        let writer = Builder::new().name("mcp-writer".into()).spawn(write)?;
        let (unanswered, traffic) = (BTreeSet::new(), Arc::clone(traffic));
        Ok((Wire { from, to, begun: false, unanswered, traffic }, writer))
    }

    /// Puts a message where the writer finds it; how much waits there is limited by reading no more.
    fn write(&self, message: &ServerJsonRpcMessage) -> io::Result<()> {
        let mut line = serde_json::to_vec(message).map_err(io::Error::other)?;
        line.push(b'\n');
        self.traffic.unread.fetch_add(line.len(), Ordering::SeqCst);
        let gone = |_| io::Error::new(io::ErrorKind::BrokenPipe, "the client reads no more");
        self.to.send(line).map_err(gone)
    }

    /// Waits until the client has read most of what it was sent. Says whether to go on.
    async fn has_room(&self) -> bool {
        let (mut left, mut since) = (usize::MAX, Instant::now());
        while self.traffic.is_full() && !self.to.is_closed() {
            let now = self.traffic.unread();
            if now != left || !self.traffic.is_closed() {
                (left, since) = (now, Instant::now());
            } else if since.elapsed() >= PATIENCE {
                return false;
            }
            tokio::time::sleep(LOOK).await;
        }
        !self.to.is_closed()
    }

    /// The message, if the server is to have it; else what to answer, if anything.
    fn taken(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> Result<ClientJsonRpcMessage, Option<Box<ServerJsonRpcMessage>>> {
        match &message {
            JsonRpcMessage::Request(request) => {
                let written = serde_json::to_string(&request.id).unwrap_or_default();
                if self.unanswered.contains(&written) {
                    // Without its id: that is the other one's.
                    let words = format!(
                        "a request with the id {} is being answered; this one was refused",
                        short_line(&written, 80)
                    );
                    return Err(Some(invalid(None, ErrorCode::INVALID_REQUEST, words)));
                }
                if let Some(words) = wrong_initialize(&request.request) {
                    let id = Some(request.id.clone());
                    return Err(Some(invalid(id, ErrorCode::INVALID_PARAMS, words)));
                }
                if self.unanswered.len() >= UNANSWERED {
                    let words = format!("{UNANSWERED} requests are not answered yet; this one was refused");
                    return Err(Some(invalid(Some(request.id.clone()), ErrorCode::INTERNAL_ERROR, words)));
                }
                self.unanswered.insert(written);
                self.begun |= begins(&request.request);
                Ok(message)
            }
            _ if !self.begun => Err(None),
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(call) = &cancelled.params.request_id
                {
                    self.traffic.withdraw(call);
                    // It gets no answer.
                    self.unanswered.remove(&serde_json::to_string(call).unwrap_or_default());
                }
                Ok(message)
            }
            JsonRpcMessage::Response(response) if self.traffic.is_withdrawn(&response.id) => Err(None),
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => Ok(message),
        }
    }
}

/// What is wrong with the first request of a session; the crate takes it for a method it does not know.
fn wrong_initialize(request: &ClientRequest) -> Option<String> {
    let ClientRequest::CustomRequest(request) = request else { return None };
    (request.method == "initialize").then(|| {
        let params = request.params.clone().unwrap_or_default();
        let why = match serde_json::from_value::<InitializeRequestParams>(params) {
            Ok(_) => String::new(),
            Err(error) => format!(": {}", why(&error)),
        };
        format!(
            "initialize can't be read{why}; it needs 'protocolVersion' (a text), 'capabilities' (an object) and \
             'clientInfo' (an object with 'name' and 'version')"
        )
    })
}

/// Whether the crate's server begins a session by it, and does not refuse it.
fn begins(request: &ClientRequest) -> bool {
    if matches!(request, ClientRequest::InitializeRequest(_)) {
        return true;
    }
    let meta = request.get_meta();
    !matches!(request, ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_))
        && meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty()
        && meta.protocol_version().is_some_and(|version| ProtocolVersion::KNOWN_VERSIONS.contains(&version))
}

impl Transport<RoleServer> for Wire {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let id = match &message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        if let Some(id) = id {
            self.unanswered.remove(&serde_json::to_string(id).unwrap_or_default());
        }
        std::future::ready(self.write(&message))
    }

    /// Nothing is lost if this is given up at any place where it waits.
    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            if !self.has_room().await {
                return None;
            }
            let heard = first_of(self.from.recv(), self.to.closed()).await.ok()??;
            let understood = match heard {
                Heard::Line(line) => understand(&line).and_then(|message| self.taken(message)),
                Heard::TooLong => Err(Some(invalid(
                    None,
                    ErrorCode::INVALID_REQUEST,
                    format!("a message may have {LONGEST} bytes at most; this one was not read"),
                ))),
            };
            match understood {
                Ok(message) => return Some(message),
                Err(Some(error)) => self.write(&error).ok()?,
                Err(None) => {}
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.traffic.close();
        self.from.close();
        Ok(())
    }
}

fn read_all(from: &mut impl BufRead, tell: &Sender<Heard>) {
    loop {
        let mut line = Vec::new();
        let Ok(1..) = from.by_ref().take(LONGEST as u64 + 1).read_until(b'\n', &mut line) else { return };
        let heard = if line.len() > LONGEST && line.last() != Some(&b'\n') {
            drop(line);
            if !skip_line(from) {
                return;
            }
            Heard::TooLong
        } else {
            Heard::Line(line)
        };
        if tell.blocking_send(heard).is_err() {
            return;
        }
    }
}

/// Reads on behind the next line break; says whether there was one.
fn skip_line(from: &mut impl BufRead) -> bool {
    loop {
        let Ok(some) = from.fill_buf() else { return false };
        if some.is_empty() {
            return false;
        }
        match some.iter().position(|byte| *byte == b'\n') {
            Some(at) => {
                from.consume(at + 1);
                return true;
            }
            None => {
                let all = some.len();
                from.consume(all);
            }
        }
    }
}

/// The message of a line, or what to answer; a blank line and a notification that can't be read get no answer.
fn understand(line: &[u8]) -> Result<ClientJsonRpcMessage, Option<Box<ServerJsonRpcMessage>>> {
    if line.trim_ascii().is_empty() {
        return Err(None);
    }
    let value: Value = serde_json::from_slice(line).map_err(|error| {
        Some(invalid(None, ErrorCode::PARSE_ERROR, format!("a line is no JSON: {}", why(&error))))
    })?;
    let Value::Object(fields) = &value else {
        let words = "a message is one JSON object on a line of its own".to_owned();
        return Err(Some(invalid(None, ErrorCode::INVALID_REQUEST, words)));
    };
    let id = fields.get("id").and_then(|id| serde_json::from_value::<RequestId>(id.clone()).ok());
    let is_notification = !fields.contains_key("id") && fields.contains_key("method");
    serde_json::from_value(value).map_err(|error| {
        let words = format!("this is no JSON-RPC 2.0 message of the protocol: {}", why(&error));
        (!is_notification).then(|| invalid(id, ErrorCode::INVALID_REQUEST, words))
    })
}

/// In words for people who don't know how this program is written.
fn why(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = match text.split_once("expected struct ") {
        Some((before, _)) => format!("{before}expected an object"),
        None if text.contains("did not match any variant") => "its fields don't fit together".to_owned(),
        None => text,
    };
    short_line(&text, 200)
}

fn invalid(id: Option<RequestId>, code: ErrorCode, words: String) -> Box<ServerJsonRpcMessage> {
    Box::new(ServerJsonRpcMessage::error(ErrorData::new(code, words, None), id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mc_01_a_line_that_is_no_message_is_answered() {
        let answer = |line: &str| match understand(line.as_bytes()) {
            Ok(_) => "taken".to_owned(),
            Err(None) => "ignored".to_owned(),
            Err(Some(error)) => serde_json::to_string(&error).unwrap_or_default(),
        };
        assert_eq!(answer(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#), "taken");
        assert_eq!(answer("  \r\n"), "ignored");
        assert_eq!(answer(r#"{"jsonrpc":"1.0","method":"notifications/initialized"}"#), "ignored");
        for (line, code, id) in [
            ("{", "-32700", ""),
            ("[]", "-32600", ""),
            ("7", "-32600", ""),
            (r#"{"jsonrpc":"1.0","id":7,"method":"ping"}"#, "-32600", "\"id\":7"),
            (r#"{"id":"a"}"#, "-32600", "\"id\":\"a\""),
            (&"[".repeat(10_000), "-32700", ""),
        ] {
            let said = answer(line);
            assert!(said.contains(code) && said.contains(id), "{line}: {said}");
            assert!(!said.contains("enum") && !said.contains("struct"), "{said}");
        }
    }

    #[test]
    fn mc_01_a_line_that_is_too_long_is_not_kept() {
        let (tell, mut from) = mpsc::channel(8);
        let mut text = vec![b'x'; LONGEST + 10];
        text.extend(b"\n{}\n");
        text.extend(vec![b'y'; LONGEST + 10]);
        read_all(&mut io::Cursor::new(text), &tell);
        assert!(matches!(from.try_recv(), Ok(Heard::TooLong)));
        assert!(matches!(from.try_recv(), Ok(Heard::Line(line)) if line == b"{}\n"));
        assert!(from.try_recv().is_err());
    }

    #[test]
    fn mc_37_nothing_is_read_while_too_much_waits_to_be_written() -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        runtime.block_on(async {
            let traffic = Arc::new(Traffic::default());
            let (tell, from) = mpsc::channel(8);
            let (mut wire, writer) = Wire::between(from, io::sink(), &traffic)?;
            let ping = |id: u32| {
                Heard::Line(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#).into_bytes())
            };
            for id in 0..2 {
                assert!(tell.send(ping(id)).await.is_ok());
            }
            traffic.unread.store(UNREAD + 1, Ordering::SeqCst);
            assert!(tokio::time::timeout(LOOK, wire.receive()).await.is_err());
            traffic.unread.store(UNREAD, Ordering::SeqCst);
            assert!(wire.receive().await.is_some());
            traffic.unread.store(0, Ordering::SeqCst);
            // What waits is counted until it is written.
            wire.send(ServerJsonRpcMessage::error(ErrorData::internal_error("x", None), None)).await?;
            drop(tell);
            assert!(wire.receive().await.is_some() && wire.receive().await.is_none());
            drop(wire);
            assert!(writer.join().is_ok());
            assert_eq!(traffic.unread.load(Ordering::SeqCst), 0);
            Ok(())
        })
    }

    #[test]
    fn mc_37_too_many_requests_at_once_are_refused() -> io::Result<()> {
        let (_, from) = mpsc::channel(8);
        let (mut wire, _) = Wire::between(from, io::sink(), &Arc::default())?;
        let mut answer = |id: usize| {
            let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
            understand(line.as_bytes()).and_then(|message| wire.taken(message)).is_ok()
        };
        assert!((0..UNANSWERED).all(&mut answer));
        assert!(!answer(UNANSWERED) && !answer(0));
        Ok(())
    }
}
