//! Outside: a proxy for HTTP on a socket of the file system, which passes on to allowed hosts and to nobody else.

use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::hosts::{Admission, HostList, is_public, split_port};
use super::relay::{USER, pump};
use crate::platform::socket::{self, UnixStream};

/// The longest head of a request.
const HEAD: usize = 64 * 1024;

/// How many lines a head may have.
pub(super) const LINES: usize = 128;

/// How long a head may take, and a connection to be made.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// How many hosts that were refused are remembered.
const REMEMBERED: usize = 256;

/// A proxy that runs as long as this value lives.
#[derive(Debug)]
pub struct Proxy {
    door: ProxyDoor,
    shared: Arc<ProxyState>,
}

/// Where it is asked.
#[derive(Debug)]
enum ProxyDoor {
    Socket(PathBuf),
    Port(SocketAddr),
}

/// A connection, of whichever kind.
trait ProxyClient: Read + Write + Send + Sized + 'static {
    fn again(&self) -> io::Result<Self>;
    fn patience(&self, time: Option<Duration>) -> io::Result<()>;
    fn close(&self, how: Shutdown);
}

impl ProxyClient for UnixStream {
    fn again(&self) -> io::Result<Self> {
        self.try_clone()
    }

    fn patience(&self, time: Option<Duration>) -> io::Result<()> {
        self.set_read_timeout(time)
    }

    fn close(&self, how: Shutdown) {
        let _ = self.shutdown(how);
    }
}

impl ProxyClient for TcpStream {
    fn again(&self) -> io::Result<Self> {
        self.try_clone()
    }

    fn patience(&self, time: Option<Duration>) -> io::Result<()> {
        self.set_read_timeout(time)
    }

    fn close(&self, how: Shutdown) {
        let _ = self.shutdown(how);
    }
}

#[derive(Debug)]
struct ProxyState {
    hosts: HostList,
    /// What a request has to bring along in `Proxy-Authorization`.
    pass: Option<String>,
    refused: Mutex<BTreeSet<String>>,
    closed: AtomicBool,
}

/// What the head of a request asks for.
#[derive(Debug, PartialEq, Eq)]
enum ProxyRequest {
    /// A connection, whatever goes over it.
    Tunnel { host: String, port: u16 },
    /// One request without encryption, with the head to send on.
    Plain { host: String, port: u16, head: Vec<u8> },
}

impl Proxy {
    /// Opens the socket and answers it on threads of its own.
    ///
    /// # Errors
    /// When the socket can't be made: the folder is not there.
    pub fn open(path: &Path, hosts: HostList) -> io::Result<Proxy> {
        let listener = socket::bind(path)?;
        let shared = Arc::new(ProxyState::new(hosts, None));
        let state = Arc::clone(&shared);
        thread::Builder::new().name("proxy".into()).spawn(move || {
            for client in listener.incoming() {
                if state.closed.load(Ordering::Acquire) {
                    return;
                }
                client.map(|client| answer_client(client, &state)).unwrap_or_default();
            }
        })?;
        Ok(Proxy { door: ProxyDoor::Socket(path.to_path_buf()), shared })
    }

    /// The same at a port of this machine. Others on it can connect too, so every request has to bring the word.
    ///
    /// # Errors
    /// When no port can be opened.
    pub fn open_port(hosts: HostList, word: &str) -> io::Result<(Proxy, u16)> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(ProxyState::new(hosts, Some(word)));
        let state = Arc::clone(&shared);
        thread::Builder::new().name("proxy".into()).spawn(move || {
            for client in listener.incoming() {
                if state.closed.load(Ordering::Acquire) {
                    return;
                }
                client.map(|client| answer_client(client, &state)).unwrap_or_default();
            }
        })?;
        Ok((Proxy { door: ProxyDoor::Port(address), shared }, address.port()))
    }

    /// Hosts that were asked for and are not on the list, for the report.
    pub fn refused(&self) -> Vec<String> {
        let refused = self.shared.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.iter().cloned().collect()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::Release);
        // Wakes the thread that waits for the next connection.
        match &self.door {
            ProxyDoor::Socket(path) => drop(socket::connect(path)),
            ProxyDoor::Port(address) => drop(TcpStream::connect(address)),
        }
    }
}

impl ProxyState {
    fn new(hosts: HostList, word: Option<&str>) -> ProxyState {
        let pass = word.map(|word| format!("Basic {}", base64(format!("{USER}:{word}").as_bytes())));
        ProxyState { hosts, pass, refused: Mutex::default(), closed: AtomicBool::new(false) }
    }

    /// Whether a request may be made at all.
    fn admits(&self, head: &[u8]) -> bool {
        let Some(pass) = &self.pass else { return true };
        let head = String::from_utf8_lossy(head);
        let given = head.lines().filter_map(|line| line.split_once(':'));
        let mut given = given.filter(|(name, _)| name.trim().eq_ignore_ascii_case("proxy-authorization"));
        given.any(|(_, value)| value.trim() == pass)
    }
}

fn answer_client(client: impl ProxyClient, state: &Arc<ProxyState>) {
    let state = Arc::clone(state);
    let serve = move || drop(serve(client, &state));
    let _ = thread::Builder::new().name("proxied".into()).spawn(serve);
}

/// As it is written in the heads of requests.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let byte = |at: usize| u32::from(three.get(at).copied().unwrap_or_default());
        let bits = (byte(0) << 16) | (byte(1) << 8) | byte(2);
        for (at, shift) in [18, 12, 6, 0].into_iter().enumerate() {
            let digit = usize::try_from((bits >> shift) & 63).unwrap_or_default();
            let digit = DIGITS.get(digit).map_or('=', |digit| char::from(*digit));
            text.push(if at <= three.len() { digit } else { '=' });
        }
    }
    text
}

fn serve<C: ProxyClient>(mut client: C, state: &ProxyState) -> io::Result<()> {
    client.patience(Some(PATIENCE))?;
    let (head, rest) = match read_head(&mut client) {
        Ok(read) => read,
        Err(error) => return answer(&mut client, 400, &error.to_string()),
    };
    if !state.admits(&head) {
        return answer(&mut client, 407, "this proxy belongs to an agent of archeflow");
    }
    let Some(request) = understand(&head) else {
        return answer(&mut client, 400, "archeflow's proxy takes CONNECT and http:// requests");
    };
    let (host, port) = match &request {
        ProxyRequest::Tunnel { host, port } | ProxyRequest::Plain { host, port, .. } => (host, *port),
    };
    let server = match reach(host, port, state) {
        Ok(server) => server,
        Err((status, why)) => return answer(&mut client, status, &why),
    };
    match &request {
        ProxyRequest::Tunnel { .. } => {
            client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
        }
        ProxyRequest::Plain { head, .. } => (&server).write_all(head)?,
    }
    (&server).write_all(&rest)?;
    client.patience(None)?;
    join(client, &server)
}

/// Connects to an allowed host at an allowed address. The address is looked up once, so it can't change in between.
fn reach(host: &str, port: u16, state: &ProxyState) -> Result<TcpStream, (u16, String)> {
    let admission = state.hosts.admits(host, port);
    let refuse = |why: String| {
        let mut refused = state.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.len() < REMEMBERED {
            refused.insert(format!("{host}:{port}"));
        }
        (403, why)
    };
    if admission == Admission::Refused {
        return Err(refuse(format!("{host}:{port} is not among the hosts that this agent may reach")));
    }
    let found = (host, port).to_socket_addrs().map_err(|error| (502, format!("{host}: {error}")))?;
    let allowed = |address: &SocketAddr| admission == Admission::Anywhere || is_public(address.ip());
    let addresses: Vec<SocketAddr> = found.filter(allowed).collect();
    if addresses.is_empty() {
        return Err(refuse(format!("{host} has no address in the internet")));
    }
    let mut last = String::new();
    for address in addresses {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(server) => return Ok(server),
            Err(error) => last = error.to_string(),
        }
    }
    Err((502, format!("{host}:{port}: {last}")))
}

/// The head of a request, and what came behind it.
pub(super) fn read_head(client: &mut impl Read) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let rest = bytes.split_off(end + 4);
            return Ok((bytes, rest));
        }
        let read = client.read(&mut chunk)?;
        if read == 0 || bytes.len() + read > HEAD {
            return Err(io::Error::other("the head of the request is cut off or too long"));
        }
        bytes.extend_from_slice(chunk.get(..read).unwrap_or_default());
    }
}

/// What a head asks for. `None` for anything that is not a request to a proxy.
fn understand(head: &[u8]) -> Option<ProxyRequest> {
    let mut lines = [httparse::EMPTY_HEADER; LINES];
    let mut request = httparse::Request::new(&mut lines);
    request.parse(head).ok().filter(httparse::Status::is_complete)?;
    let (method, target) = (request.method?, request.path?);
    if method == "CONNECT" {
        let (host, port) = split_port(target);
        return Some(ProxyRequest::Tunnel { host: plain_host(host)?, port: port? });
    }
    let rest = target.strip_prefix("http://")?;
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let (host, port) = split_port(authority);
    let slash = if path.starts_with('/') { "" } else { "/" };
    let mut head =
        format!("{method} {slash}{path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n").into_bytes();
    let ours = ["host", "connection", "proxy-connection", "proxy-authorization", "keep-alive"];
    for line in request.headers.iter().filter(|line| !ours.contains(&line.name.to_ascii_lowercase().as_str()))
    {
        head.extend_from_slice(line.name.as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(line.value);
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    Some(ProxyRequest::Plain { host: plain_host(host)?, port: port.unwrap_or(80), head })
}

/// A name or address, without anything that could be read as more.
fn plain_host(host: &str) -> Option<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._:".contains(c);
    (!host.is_empty() && host.chars().all(plain)).then(|| host.to_owned())
}

fn answer(client: &mut impl Write, status: u16, why: &str) -> io::Result<()> {
    let reason = match status {
        400 => "Bad Request",
        403 => "Forbidden",
        407 => "Proxy Authentication Required",
        _ => "Bad Gateway",
    };
    let length = why.len();
    let head = format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    client.write_all(head.as_bytes())?;
    client.write_all(why.as_bytes())
}

/// Moves bytes both ways until both sides have said that no more come.
fn join<C: ProxyClient>(mut client: C, server: &TcpStream) -> io::Result<()> {
    let (from_client, to_server) = (client.again()?, server.try_clone()?);
    let there = thread::Builder::new().name("proxied".into()).spawn(move || {
        pump(from_client, &to_server);
        let _ = to_server.shutdown(Shutdown::Write);
    })?;
    pump(server, &mut client);
    client.close(Shutdown::Write);
    let _ = there.join();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s_12_heads_are_understood_or_refused() {
        let tunnel = |host: &str, port| Some(ProxyRequest::Tunnel { host: host.to_owned(), port });
        for (head, request) in [
            ("CONNECT a.b:443 HTTP/1.1\r\nHost: a.b:443\r\n\r\n", tunnel("a.b", 443)),
            ("CONNECT [::1]:443 HTTP/1.1\r\n\r\n", tunnel("::1", 443)),
            ("CONNECT a.b HTTP/1.1\r\n\r\n", None),
            ("CONNECT u@a.b:443 HTTP/1.1\r\n\r\n", None),
            ("GET / HTTP/1.1\r\nHost: a.b\r\n\r\n", None),
            ("GET https://a.b/ HTTP/1.1\r\n\r\n", None),
            ("nonsense\r\n\r\n", None),
        ] {
            assert_eq!(understand(head.as_bytes()), request, "{head}");
        }
    }

    #[test]
    fn s_12_at_a_port_only_requests_with_the_word_are_answered() {
        let state = ProxyState::new(HostList::default(), Some("open sesame"));
        let right = format!("Basic {}", base64(b"archeflow:open sesame"));
        for (pass, admitted) in [(right.as_str(), true), ("Basic x", false), ("", false)] {
            let head = format!("CONNECT a.b:443 HTTP/1.1\r\nproxy-AUTHORIZATION: {pass}\r\n\r\n");
            assert_eq!(state.admits(head.as_bytes()), admitted, "{pass}");
        }
        assert!(!state.admits(b"CONNECT a.b:443 HTTP/1.1\r\n\r\n"));
        assert_eq!(base64(b"archeflow:x"), "YXJjaGVmbG93Ong=");
    }

    #[test]
    fn s_12_a_plain_request_goes_on_without_what_was_meant_for_us() {
        let head =
            "POST http://a.b:81/x?y HTTP/1.1\r\nHost: other\r\nProxy-Authorization: secret\r\nA: 1\r\n\r\n";
        let Some(ProxyRequest::Plain { host, port, head }) = understand(head.as_bytes()) else {
            panic!("it is a request")
        };
        assert_eq!((host.as_str(), port), ("a.b", 81));
        let head = String::from_utf8_lossy(&head);
        assert_eq!(head, "POST /x?y HTTP/1.1\r\nHost: a.b:81\r\nConnection: close\r\nA: 1\r\n\r\n");
    }
}
