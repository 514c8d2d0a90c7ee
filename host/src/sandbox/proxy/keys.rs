//! A proxy that holds the key of an agent's provider. The agent's client is given our address and a placeholder; requests
//! with that placeholder go on to the provider with the real key, others nowhere.
//!
//! It listens at a port of this machine, which agents reach like any model there. Others on the machine reach it too, but
//! without the placeholder, which is random and good for one attempt.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use super::server::{LINES, PATIENCE, read_head};
use crate::model_agent::http::{ForwardedRequest, Http, ResponseHead};
use crate::platform::machine;

/// How long a provider may take between two pieces of an answer.
const ANSWER: Duration = Duration::from_secs(15 * 60);

/// Requests at one time.
const AT_ONCE: usize = 64;

/// The longest line between the pieces of a request's body.
const SIZE_LINE: u64 = 1024;

/// Headers that hold a key, as providers read them.
const KEY_HEADERS: [&str; 3] = ["authorization", "x-api-key", "x-goog-api-key"];

/// Headers that are about the connection to us, or that would lead the answer around us.
const OURS: [&str; 14] = [
    "accept-encoding",
    "connection",
    "content-length",
    "cookie",
    "expect",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// A key, and where it may be sent. It can't be shown.
pub struct KeyTarget {
    pub key: String,
    /// The provider's address: `https://host` with a port and a path, if it has them.
    pub url: String,
}

/// A proxy that runs as long as this value lives.
pub struct KeyProxy {
    door: SocketAddr,
    state: Arc<KeyState>,
}

struct KeyState {
    placeholder: String,
    key: String,
    /// Scheme, host and port.
    origin: String,
    /// The path that requests have to begin with; empty for all.
    path: String,
    http: Http,
    closed: AtomicBool,
    running: AtomicUsize,
}

/// Why a request was not passed on: the status, and what to do about it.
#[derive(Debug, PartialEq, Eq)]
struct Refusal(u16, String);

/// A request as it goes on.
#[derive(Debug, PartialEq, Eq)]
struct KeyedRequest {
    method: String,
    path: String,
    headers: Vec<(String, Vec<u8>)>,
    body: BodyLength,
    /// The client waits for our word before it sends the body.
    waits: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodyLength {
    None,
    Known(u64),
    InPieces,
}

impl fmt::Debug for KeyProxy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("KeyProxy").field("door", &self.door).finish_non_exhaustive()
    }
}

impl KeyProxy {
    /// Opens a port and answers it on threads of its own. `roots` is a file with certificates to trust.
    ///
    /// # Errors
    /// When no port can be opened, the address or the key can't be used, or there is nothing random for a placeholder.
    pub fn open(target: KeyTarget, roots: Option<&Path>) -> io::Result<KeyProxy> {
        let (origin, path) = split(&target.url)?;
        if target.key.is_empty() || !target.key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(io::Error::other("the key has characters that can't be sent"));
        }
        let mut random = [0_u8; 16];
        machine::random(&mut random)?;
        let digits: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let door = listener.local_addr()?;
        let state = Arc::new(KeyState {
            placeholder: format!("archeflow-{digits}"),
            key: target.key,
            origin,
            path,
            http: Http::new(ANSWER, roots, None).map_err(io::Error::other)?,
            closed: AtomicBool::new(false),
            running: AtomicUsize::new(0),
        });
        let shared = Arc::clone(&state);
        thread::Builder::new().name("keys".into()).spawn(move || {
            for client in listener.incoming() {
                if shared.closed.load(Ordering::Acquire) {
                    return;
                }
                let Ok(client) = client else { continue };
                let state = Arc::clone(&shared);
                let _ = thread::Builder::new().name("keyed".into()).spawn(move || {
                    let count = state.running.fetch_add(1, Ordering::AcqRel);
                    let _ = if count < AT_ONCE {
                        serve(&client, &state)
                    } else {
                        let why = format!("more than {AT_ONCE} requests at one time");
                        refuse(&client, &Refusal(503, why))
                    };
                    state.running.fetch_sub(1, Ordering::AcqRel);
                });
            }
        })?;
        Ok(KeyProxy { door, state })
    }

    /// What the client is given in place of its key.
    pub fn placeholder(&self) -> &str {
        &self.state.placeholder
    }

    /// Whether this is the key itself.
    pub fn is_key(&self, text: &std::ffi::OsStr) -> bool {
        text == self.state.key.as_str()
    }

    /// What the client is given in place of its provider's address.
    pub fn url(&self) -> String {
        format!("http://{}{}", self.door, self.state.path)
    }

    /// The host and port of that.
    pub fn door(&self) -> (String, u16) {
        (self.door.ip().to_string(), self.door.port())
    }
}

impl Drop for KeyProxy {
    fn drop(&mut self) {
        self.state.closed.store(true, Ordering::Release);
        // Wakes the thread that waits for the next connection.
        drop(TcpStream::connect(self.door));
    }
}

/// An address as where to connect, and the path below which requests are.
fn split(url: &str) -> io::Result<(String, String)> {
    let wrong = || io::Error::other("the provider's address is not http://host or https://host");
    let (scheme, rest) = url.trim().split_once("://").ok_or_else(wrong)?;
    if !["http", "https"].contains(&scheme) || rest.contains(['?', '#', '@']) {
        return Err(wrong());
    }
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    super::of_url(&format!("{scheme}://{host}")).ok_or_else(wrong)?;
    Ok((format!("{scheme}://{host}"), path.trim_end_matches('/').to_owned()))
}

fn serve(client: &TcpStream, state: &KeyState) -> io::Result<()> {
    client.set_read_timeout(Some(PATIENCE))?;
    let mut input = client;
    let (head, rest) = match read_head(&mut input) {
        Ok(read) => read,
        Err(error) => return refuse(client, &Refusal(400, error.to_string())),
    };
    let request = match state.understand(&head) {
        Ok(request) => request,
        Err(refusal) => return refuse(client, &refusal),
    };
    if request.waits {
        input.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    let input = BufReader::new(io::Cursor::new(rest).chain(client));
    let mut body = Body { input, length: request.body, left: 0, begun: false };
    let mut output = AnswerWriter { client, begun: false, in_pieces: false };
    let forwarded = state.http.forward(
        ForwardedRequest {
            method: &request.method,
            url: &format!("{}{}", state.origin, request.path),
            headers: &request.headers,
            body: match request.body {
                BodyLength::None => None,
                BodyLength::Known(length) => Some((&mut body, Some(length))),
                BodyLength::InPieces => Some((&mut body, None)),
            },
        },
        &mut |head, bytes| output.put(head, bytes),
    );
    match forwarded {
        Ok(()) => output.end(),
        // What has begun is cut off: the client sees that it is not whole.
        Err(_) if output.begun => Ok(()),
        Err(why) => {
            let why = why.replace(&state.key, "…");
            refuse(client, &Refusal(502, format!("archeflow can't reach {}: {why}", state.origin)))
        }
    }
}

impl KeyState {
    /// The request with the real key in place of the placeholder.
    fn understand(&self, head: &[u8]) -> Result<KeyedRequest, Refusal> {
        let wrong = |why: &str| Refusal(400, why.to_owned());
        let mut lines = [httparse::EMPTY_HEADER; LINES];
        let mut request = httparse::Request::new(&mut lines);
        let read = request.parse(head).ok().filter(httparse::Status::is_complete);
        let (Some(_), Some(method), Some(target)) = (read, request.method, request.path) else {
            return Err(wrong("the head of the request can't be read, or it has too many lines"));
        };
        let (path, query) =
            target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
        let below =
            path.strip_prefix(&self.path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        let climbs = path.contains("..") || path.to_ascii_lowercase().contains("%2e");
        if !path.starts_with('/') || !below || climbs {
            return Err(wrong("only paths below the address of the provider are passed on"));
        }
        let mut known = false;
        let mut headers = Vec::new();
        let (mut length, mut in_pieces, mut waits) = (None, false, false);
        for line in request.headers.iter() {
            let name = line.name.to_ascii_lowercase();
            let text = std::str::from_utf8(line.value).unwrap_or_default().trim();
            match name.as_str() {
                "content-length" => {
                    let new =
                        text.parse::<u64>().map_err(|_| wrong("the length of the body can't be read"))?;
                    if length.replace(new).is_some_and(|old| old != new) {
                        return Err(wrong("the request has two lengths"));
                    }
                }
                "transfer-encoding" if text.eq_ignore_ascii_case("chunked") => in_pieces = true,
                "transfer-encoding" => return Err(wrong("only chunked bodies are passed on")),
                "expect" => waits = text.eq_ignore_ascii_case("100-continue"),
                _ => {}
            }
            if KEY_HEADERS.contains(&name.as_str()) {
                let (scheme, given) =
                    text.split_once(' ').map_or(("", text), |(scheme, rest)| (scheme, rest));
                // Another key than the placeholder is not ours to pass on.
                if given.trim() == self.placeholder {
                    known = true;
                    let space = if scheme.is_empty() { "" } else { " " };
                    headers.push((name, format!("{scheme}{space}{}", self.key).into_bytes()));
                }
            } else if !OURS.contains(&name.as_str()) {
                headers.push((name, line.value.to_vec()));
            }
        }
        let mut path = path.to_owned();
        for (at, pair) in query.into_iter().flat_map(|query| query.split('&')).enumerate() {
            let is_key = pair.strip_prefix("key=").is_some_and(|given| given == self.placeholder);
            known |= is_key;
            path.push(if at == 0 { '?' } else { '&' });
            path.push_str(&if is_key { format!("key={}", percent(&self.key)) } else { pair.to_owned() });
        }
        if !known {
            let why = "this key is not the one that archeflow gave to this agent (setting sandbox.keys)";
            return Err(Refusal(401, why.to_owned()));
        }
        let body = match (length, in_pieces) {
            (Some(_), true) => return Err(wrong("a body has a length or comes in pieces, not both")),
            (Some(length), false) => BodyLength::Known(length),
            (None, true) => BodyLength::InPieces,
            (None, false) => BodyLength::None,
        };
        Ok(KeyedRequest { method: method.to_owned(), path, headers, body, waits })
    }
}

/// As it is written in an address.
fn percent(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// The body of a request, as it comes.
struct Body<R> {
    input: R,
    length: BodyLength,
    /// Bytes of the present piece.
    left: u64,
    begun: bool,
}

impl<R: BufRead> Body<R> {
    /// The next piece, if there is one.
    fn next_piece(&mut self) -> io::Result<()> {
        match (self.length, self.begun) {
            (BodyLength::None, _) | (BodyLength::Known(_), true) => self.length = BodyLength::None,
            (BodyLength::Known(length), false) => self.left = length,
            (BodyLength::InPieces, begun) => {
                if begun {
                    self.line()?;
                }
                let line = self.line()?;
                let digits = line.split(';').next().unwrap_or_default().trim();
                self.left = u64::from_str_radix(digits, 16)
                    .map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
                if self.left == 0 {
                    while !self.line()?.trim().is_empty() {}
                    self.length = BodyLength::None;
                }
            }
        }
        self.begun = true;
        Ok(())
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        let read = self.input.by_ref().take(SIZE_LINE).read_line(&mut line)?;
        if read == 0 || !line.ends_with('\n') {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(line)
    }
}

impl<R: BufRead> Read for Body<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.left == 0 && self.length != BodyLength::None {
            self.next_piece()?;
        }
        if self.left == 0 || into.is_empty() {
            return Ok(0);
        }
        let read = self.input.by_ref().take(self.left).read(into)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left = self.left.saturating_sub(read as u64);
        Ok(read)
    }
}

/// Hands the answer on, each piece when it comes.
struct AnswerWriter<'a> {
    client: &'a TcpStream,
    begun: bool,
    in_pieces: bool,
}

impl AnswerWriter<'_> {
    fn put(&mut self, head: &ResponseHead, bytes: &[u8]) -> io::Result<()> {
        let mut client = self.client;
        if !self.begun {
            self.begun = true;
            let length = head.headers.iter().find(|(name, _)| name == "content-length");
            let bare = matches!(head.status, 204 | 304);
            self.in_pieces = length.is_none() && !bare;
            let mut text = format!("HTTP/1.1 {} Answer\r\nconnection: close\r\n", head.status);
            for (name, value) in head.headers.iter().filter(|(name, _)| !OURS.contains(&name.as_str())) {
                text.push_str(&format!("{name}: {value}\r\n"));
            }
            match length {
                Some((name, value)) => text.push_str(&format!("{name}: {value}\r\n\r\n")),
                None if self.in_pieces => text.push_str("transfer-encoding: chunked\r\n\r\n"),
                None => text.push_str("\r\n"),
            }
            client.write_all(text.as_bytes())?;
        }
        if bytes.is_empty() {
            return Ok(());
        }
        if !self.in_pieces {
            return client.write_all(bytes);
        }
        let mut piece = format!("{:x}\r\n", bytes.len()).into_bytes();
        piece.extend_from_slice(bytes);
        piece.extend_from_slice(b"\r\n");
        client.write_all(&piece)
    }

    fn end(self) -> io::Result<()> {
        let mut client = self.client;
        if self.in_pieces { client.write_all(b"0\r\n\r\n") } else { Ok(()) }
    }
}

fn refuse(mut client: &TcpStream, Refusal(status, why): &Refusal) -> io::Result<()> {
    let reason = match status {
        400 => "Bad Request",
        401 => "Unauthorized",
        503 => "Service Unavailable",
        _ => "Bad Gateway",
    };
    let body = serde_json::json!({"error": {"type": "archeflow", "message": why}}).to_string();
    let head = format!(
        "HTTP/1.1 {status} {reason}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    client.write_all(head.as_bytes())?;
    client.write_all(body.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, channel};

    type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

    /// A provider that answers every request with this, and says what it was asked.
    fn provider(answer: &'static str) -> Result<(String, Receiver<String>)> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = format!("http://{}/v1", listener.local_addr()?);
        let (send, asked) = channel();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let mut input = &client;
                let Ok((head, rest)) = read_head(&mut input) else { continue };
                let head = String::from_utf8_lossy(&head).into_owned();
                let mut text = rest;
                // Bodies in these tests end with a full stop.
                while !head.starts_with("GET") && !text.contains(&b'.') {
                    let mut more = [0; 64];
                    let read = input.read(&mut more).unwrap_or_default();
                    text.extend_from_slice(more.get(..read).unwrap_or_default());
                }
                let _ = input.write_all(answer.as_bytes());
                let _ = send.send(head + &String::from_utf8_lossy(&text));
            }
        });
        Ok((address, asked))
    }

    fn ask(proxy: &KeyProxy, request: &str) -> Result<String> {
        let mut client = TcpStream::connect(proxy.door)?;
        client.write_all(request.replace("{key}", proxy.placeholder()).as_bytes())?;
        let mut answer = String::new();
        client.read_to_string(&mut answer)?;
        Ok(answer)
    }

    fn open(url: &str) -> Result<KeyProxy> {
        Ok(KeyProxy::open(KeyTarget { key: "real+key".to_owned(), url: url.to_owned() }, None)?)
    }

    #[test]
    fn s_12_the_provider_gets_the_key_in_place_of_the_placeholder() -> Result {
        let (url, asked) = provider("HTTP/1.1 200 OK\r\nx-more: 1\r\ncontent-length: 4\r\n\r\nwell")?;
        let proxy = open(&url)?;
        assert!(proxy.url().ends_with("/v1"), "{}", proxy.url());
        for (request, line) in [
            (
                "POST /v1/messages HTTP/1.1\r\nX-Api-Key: {key}\r\ncontent-length: 6\r\n\r\nhello.",
                "x-api-key: real+key",
            ),
            (
                "POST /v1/x HTTP/1.1\r\nAuthorization: Bearer {key}\r\nx-api-key: other\r\ntransfer-encoding: chunked\r\n\r\n\
                 3\r\nab.\r\n0\r\n\r\n",
                "authorization: Bearer real+key",
            ),
            ("GET /v1/x?a=1&key={key} HTTP/1.1\r\n\r\n", "GET /v1/x?a=1&key=real%2Bkey HTTP/1.1"),
            ("GET /v1 HTTP/1.1\r\nx-goog-api-key: {key}\r\nCookie: c\r\n\r\n", "x-goog-api-key: real+key"),
        ] {
            let answer = ask(&proxy, request)?;
            assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\nwell"), "{answer}");
            assert!(answer.contains("x-more: 1") && !answer.contains("real"), "{answer}");
            let asked = asked.recv()?;
            assert!(asked.contains(line), "{asked}");
            assert!(
                !asked.contains("archeflow-") && !asked.contains("other") && !asked.contains("cookie"),
                "{asked}"
            );
        }
        Ok(())
    }

    #[test]
    fn s_12_without_the_placeholder_nothing_goes_on() -> Result {
        let (url, asked) = provider("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")?;
        let proxy = open(&url)?;
        let long = format!("GET /v1 HTTP/1.1\r\nx-api-key: {{key}}\r\nx: {}\r\n\r\n", "y".repeat(70_000));
        let many = format!("GET /v1 HTTP/1.1\r\nx-api-key: {{key}}\r\n{}\r\n", "x: y\r\n".repeat(200));
        for (request, status) in [
            ("GET /v1/x HTTP/1.1\r\n\r\n", 401),
            ("GET /v1/x HTTP/1.1\r\nx-api-key: archeflow-0\r\n\r\n", 401),
            ("GET /v1/x?key=archeflow-0 HTTP/1.1\r\nauthorization: Bearer\r\n\r\n", 401),
            ("GET /v2/x HTTP/1.1\r\nx-api-key: {key}\r\n\r\n", 400),
            ("GET /v1x HTTP/1.1\r\nx-api-key: {key}\r\n\r\n", 400),
            ("GET /v1/../x HTTP/1.1\r\nx-api-key: {key}\r\n\r\n", 400),
            ("GET /v1/%2E%2e/x HTTP/1.1\r\nx-api-key: {key}\r\n\r\n", 400),
            ("GET http://example.org/v1 HTTP/1.1\r\nx-api-key: {key}\r\n\r\n", 400),
            ("CONNECT example.org:443 HTTP/1.1\r\nx-api-key: {key}\r\n\r\n", 400),
            ("POST /v1 HTTP/1.1\r\nx-api-key: {key}\r\ncontent-length: -1\r\n\r\n", 400),
            ("POST /v1 HTTP/1.1\r\nx-api-key: {key}\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n", 400),
            (
                "POST /v1 HTTP/1.1\r\nx-api-key: {key}\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
                400,
            ),
            ("\u{0}nonsense\r\n\r\n", 400),
            (&long, 400),
            (&many, 400),
        ] {
            let answer = ask(&proxy, request).unwrap_or_else(|_| "HTTP/1.1 400 cut off".to_owned());
            let shown: String = request.chars().take(80).collect();
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{shown}: {answer}");
        }
        assert!(asked.try_recv().is_err(), "the provider was not asked");
        Ok(())
    }

    /// The first piece of a stream is there before the second is sent: the provider waits until the client has read it.
    #[test]
    fn s_12_an_answer_is_passed_on_piece_by_piece() -> Result {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("http://{}", listener.local_addr()?);
        let (go, wait) = channel::<()>();
        thread::spawn(move || -> io::Result<()> {
            let (client, _) = listener.accept()?;
            let mut client = &client;
            read_head(&mut client)?;
            client.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n6\r\nfirst;\r\n")?;
            let _ = wait.recv();
            client.write_all(b"7\r\nsecond;\r\n0\r\n\r\n")
        });
        let proxy = open(&url)?;
        let mut client = TcpStream::connect(proxy.door)?;
        let head = format!("GET / HTTP/1.1\r\nx-api-key: {}\r\n\r\n", proxy.placeholder());
        client.write_all(head.as_bytes())?;
        let (mut text, mut byte) = (Vec::new(), [0]);
        while !text.ends_with(b"first;") {
            client.read_exact(&mut byte)?;
            text.extend_from_slice(&byte);
        }
        go.send(())?;
        let mut rest = String::new();
        client.read_to_string(&mut rest)?;
        assert!(rest.ends_with("7\r\nsecond;\r\n0\r\n\r\n"), "{rest}");
        Ok(())
    }

    #[test]
    fn s_12_an_address_or_a_key_that_can_not_be_used_is_refused() -> Result {
        for url in
            ["", "example.org", "file:///etc", "https://", "https://me:word@example.org", "https://a b"]
        {
            assert!(open(url).is_err(), "{url}");
        }
        let target = KeyTarget { key: "two\r\nlines".to_owned(), url: "https://example.org".to_owned() };
        assert!(KeyProxy::open(target, None).is_err());
        // The port is closed: the answer says so, and does not contain the key.
        let free = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let answer = ask(&open(&format!("http://{free}"))?, "GET / HTTP/1.1\r\nx-api-key: {key}\r\n\r\n")?;
        assert!(answer.starts_with("HTTP/1.1 502 ") && !answer.contains("real+key"), "{answer}");
        Ok(())
    }
}
