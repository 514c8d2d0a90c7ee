//! One connection to a server at a time, and a new one when it is lost.
//!
//! The client's own reconnecting is not used: it keeps what was not sent and sends it when a server is back, long after
//! the caller got the error that there is no answer. Here a connection is used once. What waits for an answer when it ends
//! gets that error, and the next question goes to the next connection.

use std::collections::BTreeMap;
use std::future::ready;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use async_nats::rustls::pki_types::CertificateDer;
use async_nats::rustls::pki_types::pem::PemObject;
use async_nats::rustls::{ClientConfig, Error as TlsError, RootCertStore};
use async_nats::{
    Auth, AuthError, Client, ConnectError, ConnectErrorKind, ConnectOptions, Event, HeaderMap, Message,
    Request, RequestErrorKind, ServerError,
};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::{Either, select};
use tokio::runtime::{Builder, Handle};
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use crate::bus::{BusError, Heard};
use crate::join::{JoinError, JoinFile};

/// To reach a server and be let in.
const CONNECT: Duration = Duration::from_secs(5);
/// A connection that is silent for three of these is lost.
const PING: Duration = Duration::from_secs(5);
/// Between two attempts to connect.
const NAP: Duration = Duration::from_millis(200);
/// How long a refusal is believed without asking again.
const DENIED: Duration = Duration::from_secs(60);
/// Messages that wait for a slow listener; more are dropped.
const HEARD: usize = 4096;
/// The thread of the runtime, TLS included.
const STACK: usize = 512 * 1024;
/// What is permitted to every role, and answered at once.
const ROUND_TRIP: &str = "$JS.API.INFO";

/// Asks for a delivery.
pub(super) const PULL: &str = "$JS.API.CONSUMER.MSG.NEXT.";

pub(super) struct Link {
    shared: Arc<Shared>,
    runtime: Handle,
    stop: Arc<Notify>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    join: JoinFile,
    tls: Option<ClientConfig>,
    /// The connection, or why there is none. Changed while `desk` is held.
    state: watch::Sender<Result<Connection, String>>,
    desk: Mutex<Desk>,
}

#[derive(Clone)]
struct Connection {
    client: Client,
    number: u64,
    lost: Arc<Notify>,
}

/// Who waits for what.
#[derive(Default)]
struct Desk {
    last_id: u64,
    connections: u64,
    /// Requests without an answer, by the subject they went to.
    requests: Vec<(u64, String, oneshot::Sender<BusError>)>,
    listeners: Vec<Listener>,
    /// The tasks that hand on what this connection hears.
    forwarders: Vec<AbortHandle>,
    /// Subjects that were refused, and when.
    denied: BTreeMap<String, Instant>,
}

#[derive(Clone)]
struct Listener {
    id: u64,
    subject: String,
    to: SyncSender<Heard>,
}

impl Link {
    /// The first connection must succeed: what keeps a member out is said where it is started.
    pub(super) fn open(join: &JoinFile) -> Result<Link, JoinError> {
        let tls = join.ca.as_deref().map(|ca| trust(ca, join)).transpose()?;
        let state = watch::Sender::new(Err("not connected yet".to_owned()));
        let shared = Arc::new(Shared { join: join.clone(), tls, state, desk: Mutex::new(Desk::default()) });
        let runtime = Builder::new_current_thread().enable_all().build().map_err(JoinError::Runtime)?;
        let (handle, stop) = (runtime.handle().clone(), Arc::new(Notify::new()));
        let (tell, first) = mpsc::sync_channel(1);
        let (inner, stopped) = (Arc::clone(&shared), Arc::clone(&stop));
        let work = move || {
            runtime.block_on(async {
                let keep = pin!(keep_connected(inner, tell));
                select(keep, pin!(stopped.notified())).await;
            });
            // A name that is still being looked up is not waited for.
            runtime.shutdown_background();
        };
        let thread = std::thread::Builder::new().name("fleet".into()).stack_size(STACK).spawn(work);
        let thread = Some(thread.map_err(JoinError::Runtime)?);
        let link = Link { shared, runtime: handle, stop, thread };
        let limit = CONNECT * u32::try_from(join.servers.len() + 1).unwrap_or(2);
        match first.recv_timeout(limit) {
            Ok(Ok(())) => Ok(link),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(JoinError::Unreachable {
                servers: join.servers.join(", "),
                why: format!("no answer within {} s", limit.as_secs()),
            }),
        }
    }

    /// Sends a request and waits for its answer; nothing if nobody is there to answer.
    pub(super) fn ask(
        &self,
        subject: &str,
        headers: Option<HeaderMap>,
        payload: Bytes,
        limit: Duration,
    ) -> Result<Option<Message>, BusError> {
        let (tell, answer) = mpsc::sync_channel(1);
        let (shared, subject) = (Arc::clone(&self.shared), subject.to_owned());
        self.runtime.spawn(async move {
            let _ = tell.send(shared.ask(subject, headers, payload, limit).await);
        });
        // One limit to be connected, one for the answer.
        let patience = limit * 2 + CONNECT;
        answer.recv_timeout(patience).unwrap_or_else(|_| Err(no_answer("the connection was given up")))
    }

    /// Which connection this is; another number means that the server may be another, too.
    pub(super) fn number(&self) -> u64 {
        self.shared.desk().connections
    }

    pub(super) fn server_version(&self) -> String {
        let state = self.shared.state.borrow();
        state.as_ref().map(|connection| connection.client.server_info().version).unwrap_or_default()
    }

    pub(super) fn say(&self, subject: &str, payload: Bytes) -> Result<(), BusError> {
        self.shared.check_denied(subject)?;
        let connection = self.shared.state.borrow().clone().map_err(BusError::NoAnswer)?;
        let subject = subject.to_owned();
        let (tell, sent) = mpsc::sync_channel(1);
        self.runtime.spawn(async move {
            let end = connection.client.publish(subject, payload).await.map_err(|error| error.to_string());
            // It is the last word of a process that ends now, perhaps.
            let flushed = connection.client.flush().await.map_err(|error| error.to_string());
            let _ = tell.send(end.and(flushed));
        });
        match sent.recv_timeout(CONNECT) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(no_answer(&error)),
            Err(_) => Err(no_answer("it could not be sent")),
        }
    }

    /// Sends these if there is a connection; nobody waits for it.
    pub(super) fn say_all(&self, messages: Vec<(String, Bytes)>) {
        let Ok(connection) = self.shared.state.borrow().clone() else { return };
        self.runtime.spawn(async move {
            for (subject, payload) in messages {
                let _ = connection.client.publish(subject, payload).await;
            }
        });
    }

    /// Asks for several deliveries, and returns those that came.
    pub(super) fn pull(&self, subject: &str, payload: Bytes, most: usize, limit: Duration) -> Vec<Message> {
        let (tell, answer) = mpsc::sync_channel(1);
        let (shared, subject) = (Arc::clone(&self.shared), subject.to_owned());
        self.runtime.spawn(async move {
            let _ = tell.send(shared.pull(subject, payload, most, limit).await);
        });
        answer.recv_timeout(limit * 2 + CONNECT).unwrap_or_default()
    }

    pub(super) fn hear(&self, subject: &str, limit: Duration) -> Result<Receiver<Heard>, BusError> {
        let (to, heard) = mpsc::sync_channel(HEARD);
        let listener = {
            let mut desk = self.shared.desk();
            desk.last_id += 1;
            let listener = Listener { id: desk.last_id, subject: subject.to_owned(), to };
            desk.listeners.push(listener.clone());
            if let Ok(connection) = &*self.shared.state.borrow() {
                desk.forward(&self.runtime, &self.shared, &connection.client, listener.clone());
            }
            listener
        };
        // The server answers in order: what it says about the subscription comes before this answer.
        self.ask(ROUND_TRIP, None, Bytes::new(), limit)?;
        let desk = self.shared.desk();
        if desk.listeners.iter().any(|known| known.id == listener.id) {
            Ok(heard)
        } else {
            Err(BusError::Denied(format!("listening on {subject}")))
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.stop.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ask(
        &self,
        subject: String,
        headers: Option<HeaderMap>,
        payload: Bytes,
        limit: Duration,
    ) -> Result<Option<Message>, BusError> {
        self.check_denied(&subject)?;
        let connection = self.connected(limit).await?;
        let (id, stopped) = self.desk().wait_for(&subject);
        // A delivery comes under the subject it was kept on, by which the client can't tell whose answer it is: so the
        // question has an inbox of its own.
        let inbox = subject.starts_with(PULL).then(|| connection.client.new_inbox());
        let request = Request { payload: Some(payload), headers, timeout: Some(Some(limit)), inbox };
        let answer = pin!(connection.client.send_request(subject, request));
        let end = match select(answer, stopped).await {
            Either::Left((Ok(message), _)) => Ok(Some(message)),
            Either::Left((Err(error), _)) => match error.kind() {
                RequestErrorKind::NoResponders => Ok(None),
                RequestErrorKind::InvalidSubject | RequestErrorKind::MaxPayloadExceeded => {
                    Err(BusError::Wrong(error.to_string()))
                }
                RequestErrorKind::TimedOut => {
                    // Another connection may be quicker than what is left of this one.
                    connection.lost.notify_one();
                    Err(no_answer(&format!("none within {} s", limit.as_secs())))
                }
                RequestErrorKind::Other => Err(no_answer("the connection was lost")),
            },
            Either::Right((Ok(error), _)) => Err(error),
            Either::Right((Err(_), _)) => Err(no_answer("the connection was lost")),
        };
        self.desk().requests.retain(|(known, _, _)| *known != id);
        end
    }

    /// Until all came, or a message that is none: the server's word that there are no more.
    async fn pull(&self, subject: String, payload: Bytes, most: usize, limit: Duration) -> Vec<Message> {
        let mut came = Vec::new();
        let Ok(connection) = self.connected(limit).await else { return came };
        let inbox = connection.client.new_inbox();
        let Ok(mut heard) = connection.client.subscribe(inbox.clone()).await else { return came };
        if connection.client.publish_with_reply(subject, inbox, payload).await.is_err() {
            return came;
        }
        while came.len() < most {
            match timeout(limit, heard.next()).await {
                Ok(Some(message)) if message.status.is_none() => came.push(message),
                Ok(_) | Err(_) => break,
            }
        }
        came
    }

    async fn connected(&self, limit: Duration) -> Result<Connection, BusError> {
        let mut state = self.state.subscribe();
        let up = timeout(limit, state.wait_for(Result::is_ok)).await;
        match up {
            Ok(Ok(connection)) => connection.clone().map_err(BusError::NoAnswer),
            Ok(Err(_)) => Err(no_answer("the connection was given up")),
            Err(_) => Err(no_answer(&self.state.borrow().clone().err().unwrap_or_default())),
        }
    }

    fn check_denied(&self, subject: &str) -> Result<(), BusError> {
        let desk = self.desk();
        match desk.denied.get(subject) {
            Some(since) if since.elapsed() < DENIED => Err(BusError::Denied(format!("sending to {subject}"))),
            Some(_) | None => Ok(()),
        }
    }

    /// What the server and the client say of themselves.
    fn note(&self, event: &Event, lost: &Notify) {
        match event {
            Event::ServerError(ServerError::Other(text)) => self.note_violation(text),
            Event::Disconnected | Event::Closed => lost.notify_one(),
            Event::Connected
            | Event::LameDuckMode
            | Event::Draining
            | Event::SlowConsumer(_)
            | Event::ServerError(ServerError::AuthorizationViolation | ServerError::SlowConsumer(_))
            | Event::ClientError(_) => {}
        }
    }

    fn note_violation(&self, text: &str) {
        let Some((kind, subject)) = violation(text) else { return };
        let mut desk = self.desk();
        match kind {
            Violation::Publish => {
                desk.denied.retain(|_, since| since.elapsed() < DENIED);
                desk.denied.insert(subject.to_owned(), Instant::now());
                desk.stop(|to| to == subject, &BusError::Denied(format!("sending to {subject}")));
            }
            Violation::Subscribe if subject.starts_with(&inbox(&self.join.name)) => {
                let why = format!(
                    "answers to {}; the name in the join file is another than the key's",
                    self.join.name
                );
                desk.stop(|_| true, &BusError::Denied(why));
            }
            // A listener notices it: nothing more is heard.
            Violation::Subscribe => desk.listeners.retain(|listener| listener.subject != subject),
        }
    }
}

impl Desk {
    fn wait_for(&mut self, subject: &str) -> (u64, oneshot::Receiver<BusError>) {
        let (stop, stopped) = oneshot::channel();
        self.last_id += 1;
        self.requests.push((self.last_id, subject.to_owned(), stop));
        (self.last_id, stopped)
    }

    fn stop(&mut self, which: impl Fn(&str) -> bool, why: &BusError) {
        let (stopped, kept) = self.requests.drain(..).partition(|(_, subject, _)| which(subject));
        self.requests = kept;
        let stopped: Vec<(u64, String, oneshot::Sender<BusError>)> = stopped;
        for (_, _, stop) in stopped {
            let _ = stop.send(why.clone());
        }
    }

    fn forward(&mut self, runtime: &Handle, shared: &Arc<Shared>, client: &Client, listener: Listener) {
        let task = runtime.spawn(forward(Arc::clone(shared), client.clone(), listener));
        self.forwarders.push(task.abort_handle());
    }
}

async fn forward(shared: Arc<Shared>, client: Client, listener: Listener) {
    let Ok(mut heard) = client.subscribe(listener.subject.clone()).await else { return };
    while let Some(message) = heard.next().await {
        let message = Heard { subject: message.subject.to_string(), bytes: message.payload.to_vec() };
        if let Err(TrySendError::Disconnected(_)) = listener.to.try_send(message) {
            shared.desk().listeners.retain(|known| known.id != listener.id);
            return;
        }
    }
}

/// Connects, again and again. `first` is told how the first attempt ended; if it failed, there is no second.
async fn keep_connected(shared: Arc<Shared>, first: SyncSender<Result<(), JoinError>>) {
    let mut first = Some(first);
    loop {
        match connect(&shared).await {
            Ok(connection) => {
                let lost = Arc::clone(&connection.lost);
                take_up(&shared, connection);
                if let Some(first) = first.take() {
                    let _ = first.send(Ok(()));
                }
                lost.notified().await;
                give_up(&shared, "the connection was lost");
            }
            Err(error) => {
                if let Some(first) = first.take() {
                    let _ = first.send(Err(error));
                    return;
                }
                let why = error.to_string();
                shared.state.send_modify(|state| *state = Err(why));
                sleep(NAP).await;
            }
        }
    }
}

fn take_up(shared: &Arc<Shared>, mut connection: Connection) {
    let mut desk = shared.desk();
    desk.connections += 1;
    connection.number = desk.connections;
    desk.denied.clear();
    for listener in desk.listeners.clone() {
        desk.forward(&Handle::current(), shared, &connection.client, listener);
    }
    shared.state.send_modify(|state| *state = Ok(connection));
}

fn give_up(shared: &Arc<Shared>, why: &str) {
    let mut desk = shared.desk();
    shared.state.send_modify(|state| *state = Err(why.to_owned()));
    desk.forwarders.drain(..).for_each(|task| task.abort());
    desk.stop(|_| true, &no_answer(why));
}

/// The first of the servers that lets us in.
async fn connect(shared: &Arc<Shared>) -> Result<Connection, JoinError> {
    let mut why = None;
    for server in &shared.join.servers {
        match connect_to(shared, server).await {
            Ok(connection) => {
                crate::join::check_version(&connection.client.server_info().version, server)?;
                return Ok(connection);
            }
            Err(error) => why = Some(refusal(server, &shared.join, &error)),
        }
    }
    Err(why.unwrap_or_else(|| JoinError::Unreachable {
        servers: String::new(),
        why: "no server is named".into(),
    }))
}

async fn connect_to(shared: &Arc<Shared>, server: &str) -> Result<Connection, ConnectError> {
    let (key, used) = (shared.join.key.clone(), AtomicBool::new(false));
    let sign = move |nonce: Vec<u8>| {
        // A second time would be the client's own reconnecting.
        let signature = if used.swap(true, Ordering::SeqCst) { None } else { key.sign(&nonce) };
        let (nkey, mut auth) = (key.public(), Auth::new());
        ready(signature.map_or_else(
            || Err(AuthError::new("a connection is used once")),
            |signature| {
                auth.nkey = Some(nkey);
                auth.signature = Some(signature);
                Ok(auth)
            },
        ))
    };
    let lost = Arc::new(Notify::new());
    let (told, noticed) = (Arc::clone(shared), Arc::clone(&lost));
    let mut options = ConnectOptions::with_auth_callback(sign)
        .name(&shared.join.name)
        .custom_inbox_prefix(inbox(&shared.join.name))
        .connection_timeout(CONNECT)
        .ping_interval(PING)
        .max_reconnects(1)
        .ignore_discovered_servers()
        .event_callback(move |event| {
            told.note(&event, &noticed);
            ready(())
        });
    if let Some(tls) = &shared.tls {
        options = options.tls_client_config(tls.clone()).require_tls(true);
    }
    let client = options.connect(server).await?;
    Ok(Connection { client, number: 0, lost })
}

fn refusal(server: &str, join: &JoinFile, error: &ConnectError) -> JoinError {
    if let Some(why) = tls_fault(error, join.ca.is_some()) {
        return JoinError::Tls { server: server.to_owned(), why };
    }
    match error.kind() {
        ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => {
            JoinError::Refused { server: server.to_owned(), role: join.role, name: join.name.clone() }
        }
        ConnectErrorKind::ServerParse
        | ConnectErrorKind::Dns
        | ConnectErrorKind::TimedOut
        | ConnectErrorKind::Tls
        | ConnectErrorKind::Io
        | ConnectErrorKind::MaxReconnects => {
            JoinError::Unreachable { servers: server.to_owned(), why: error.to_string() }
        }
    }
}

/// What the two ends do not agree on, if that is why there is no connection.
fn tls_fault(error: &ConnectError, expects_tls: bool) -> Option<String> {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(found) = source {
        let inner = found.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        let tls =
            inner.and_then(|inner| inner.downcast_ref::<TlsError>()).or(found.downcast_ref::<TlsError>());
        if let Some(tls) = tls {
            return Some(match (tls, expects_tls) {
                (_, false) => {
                    "the server wants TLS, and the join file has no certificate to trust".to_owned()
                }
                (TlsError::InvalidMessage(_), true) => NO_TLS.to_owned(),
                (tls, true) => tls.to_string(),
            });
        }
        source = found.source();
    }
    // A server without TLS ends the connection, or waits for words it knows.
    let is_eof = error.to_string().contains("tls handshake eof");
    (expects_tls && is_eof).then(|| NO_TLS.to_owned())
}

const NO_TLS: &str = "the join file expects TLS, and the server has none";

/// Trusts this certificate and no other.
fn trust(ca: &str, join: &JoinFile) -> Result<ClientConfig, JoinError> {
    let wrong = |why: String| JoinError::Certificate { path: join.path.clone(), why };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(ca.as_bytes()) {
        let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
        roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(wrong("it holds no certificate".to_owned()));
    }
    Ok(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth())
}

/// Only the member of this name may listen there.
pub(crate) fn inbox(name: &str) -> String {
    format!("_INBOX.{name}")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Violation {
    Publish,
    Subscribe,
}

/// `Permissions Violation for Publish to "af1.o.x"`, as the server writes it.
fn violation(text: &str) -> Option<(Violation, &str)> {
    let rest = text.strip_prefix("Permissions Violation for ")?;
    let kind = match rest.split_once(' ')?.0 {
        "Publish" => Violation::Publish,
        "Subscription" => Violation::Subscribe,
        _ => return None,
    };
    Some((kind, rest.split('"').nth(1)?))
}

fn no_answer(why: &str) -> BusError {
    BusError::NoAnswer(why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fl_40_refusals_of_the_server_are_read() {
        for (text, expected) in [
            ("Permissions Violation for Publish to \"af1.o.x\"", Some((Violation::Publish, "af1.o.x"))),
            (
                "Permissions Violation for Subscription to \"af1.hb.>\"",
                Some((Violation::Subscribe, "af1.hb.>")),
            ),
            (
                "Permissions Violation for Subscription to \"a\" using queue \"b\"",
                Some((Violation::Subscribe, "a")),
            ),
            ("Permissions Violation for Nothing to \"a\"", None),
            ("Stale Connection", None),
            ("", None),
        ] {
            assert_eq!(violation(text), expected, "{text}");
        }
    }
}
