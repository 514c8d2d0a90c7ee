//! What a hostile client can send, byte by byte over a raw socket, and what it gets.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

use archeflow_serve::{Limits, ServeError, ServeOptions, Server, Stopper};

/// Only a fault takes so long.
const LONG: Duration = Duration::from_secs(600);

struct Served {
    port: u16,
    token: String,
    stopper: Stopper,
    thread: Option<JoinHandle<Result<(), ServeError>>>,
    _state: tempfile::TempDir,
}

impl Served {
    fn with(change: impl FnOnce(&mut ServeOptions)) -> Served {
        let state = tempfile::tempdir().unwrap();
        let mut options = ServeOptions {
            port: 0,
            host: None,
            fleet: None,
            read_only: false,
            program: "/bin/false".into(),
            cwd: "/nonexistent".into(),
            idle_exit: None,
            state: Some(state.path().to_owned()),
            metrics_key: None,
            version: "test",
            limits: Limits::default(),
        };
        change(&mut options);
        let server = Server::bind(options).unwrap();
        let address = server.address();
        let (place, token) = address.split_once("/in?t=").unwrap();
        let port = place.rsplit_once(':').unwrap().1.parse().unwrap();
        let (token, stopper) = (token.to_owned(), server.stopper());
        let thread = Some(std::thread::spawn(move || server.run()));
        Served { port, token, stopper, thread, _state: state }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream
    }

    /// Sends these bytes and reads to the end. What asks for an answer waits for it; anything else ends here.
    fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect();
        let _ = stream.write_all(bytes);
        if !bytes.windows(17).any(|part| part == b"Connection: close") {
            let _ = stream.shutdown(Shutdown::Write);
        }
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn get(&self, path: &str, headers: &str) -> String {
        let port = self.port;
        self.raw(
            format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n{headers}\r\n")
                .as_bytes(),
        )
    }

    fn cookie(&self) -> String {
        let answer = self.get(&format!("/in?t={}", self.token), "");
        let line = answer.lines().find(|line| line.to_lowercase().starts_with("set-cookie:")).unwrap();
        let value = line.split_once(':').unwrap().1.trim().split(';').next().unwrap();
        format!("Cookie: {value}\r\n")
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stopper.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or("closed")
}

#[test]
fn u_16_the_token_is_exchanged_for_a_cookie_and_nothing_else_opens_the_door() {
    let served = Served::with(|_| {});
    let entered = served.get(&format!("/in?t={}", served.token), "");
    assert_eq!(status(&entered), "200", "{entered}");
    let cookie = entered.lines().find(|line| line.to_lowercase().starts_with("set-cookie:")).unwrap();
    assert!(cookie.contains(&format!("archeflow-{}=", served.port)), "{cookie}");
    assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict"), "{cookie}");
    assert!(!cookie.contains(&served.token), "the cookie is not the token");
    let cookie = served.cookie();
    assert_eq!(status(&served.get("/", &cookie)), "200");
    assert_eq!(status(&served.get("/style.css", &cookie)), "200");
    assert_eq!(status(&served.get("/nowhere", &cookie)), "404");
    let token = &served.token;
    for path in ["/", "/style.css", "/nowhere", "/in", "/in?t=", "/in?t=%00", &format!("/?t={token}")] {
        let answer = served.get(path, "");
        assert_eq!(status(&answer), "401", "{path}: {answer}");
        assert!(!answer.to_lowercase().contains("set-cookie"), "{path}");
    }
    let cut = &token[..token.len() - 1];
    assert_eq!(status(&served.get(&format!("/in?t={cut}"), "")), "401");
    assert_eq!(status(&served.get(&format!("/in?t={token}0"), "")), "401");
}

#[test]
fn u_16_every_answer_has_its_policy() {
    let served = Served::with(|_| {});
    let cookie = served.cookie();
    for answer in [served.get("/", &cookie), served.get("/", ""), served.get("/nowhere", &cookie)] {
        let head = answer.split("\r\n\r\n").next().unwrap().to_lowercase();
        for line in [
            "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
            "x-content-type-options: nosniff",
            "cache-control: no-store",
            "referrer-policy: same-origin",
            "cross-origin-opener-policy: same-origin",
            "cross-origin-resource-policy: same-origin",
        ] {
            assert!(head.contains(line), "{line} in {head}");
        }
        assert!(!answer.contains("<style") && !answer.contains("<script>") && !answer.contains(" style="));
    }
}

#[test]
fn u_16_another_host_origin_or_site_is_refused() {
    let served = Served::with(|options| options.host = Some("box.example".to_owned()));
    let (port, cookie) = (served.port, served.cookie());
    let ask = |method: &str, path: &str, headers: &str| {
        let request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n{cookie}{headers}\r\n");
        status(&served.raw(request.as_bytes())).to_owned()
    };
    let host = format!("Host: 127.0.0.1:{port}\r\n");
    for (headers, expected) in [
        (host.clone(), "200"),
        (format!("Host: localhost:{port}\r\n"), "200"),
        ("Host: box.example\r\n".to_owned(), "200"),
        (format!("Host: evil.example:{port}\r\n"), "421"),
        ("Host: 127.0.0.1\r\n".to_owned(), "421"),
        (format!("Host: 127.0.0.1:{}\r\n", port ^ 1), "421"),
        (format!("Host: 127.0.0.1:{port}.evil.example\r\n"), "421"),
        (format!("Host: user@127.0.0.1:{port}\r\n"), "421"),
        (String::new(), "421"),
        (format!("{host}Host: evil.example\r\n"), "421"),
        (format!("{host}Origin: http://evil.example\r\n"), "403"),
        (format!("{host}Origin: null\r\n"), "403"),
        (format!("{host}Origin: http://127.0.0.1:{}\r\n", port ^ 1), "403"),
        (format!("{host}Origin: https://127.0.0.1:{port}\r\n"), "403"),
        (format!("{host}Sec-Fetch-Site: cross-site\r\n"), "403"),
        (format!("{host}Sec-Fetch-Site: same-site\r\n"), "403"),
        (format!("{host}Sec-Fetch-Site: same-origin\r\n"), "200"),
    ] {
        assert_eq!(ask("GET", "/", &headers), expected, "{headers:?}");
    }
    assert_eq!(ask("GET", &format!("http://127.0.0.1:{port}/"), &host), "400", "a proxy request");
    assert_eq!(ask("POST", "/", &host), "403", "without an origin");
    assert_eq!(ask("POST", "/", &format!("{host}Origin: http://127.0.0.1:{port}\r\n")), "405");
    assert_eq!(ask("OPTIONS", "/", &host), "403", "a preflight without an origin");
    assert_eq!(ask("TRACE", "/", &format!("{host}Origin: http://127.0.0.1:{port}\r\n")), "405");
}

#[test]
fn u_16_a_form_needs_origin_session_token_and_a_size() {
    let served = Served::with(|_| {});
    let (port, cookie) = (served.port, served.cookie());
    let origin = format!("Origin: http://127.0.0.1:{port}\r\n");
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    let post = |headers: &str, body: &str, length: usize| {
        let request = format!(
            "POST /do HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
        );
        status(&served.raw(request.as_bytes())).to_owned()
    };
    let whole = format!("{cookie}{origin}{form}");
    assert_eq!(post(&format!("{cookie}{form}"), "", 0), "403", "without an origin");
    assert_eq!(post(&format!("{cookie}{form}Origin: null\r\n"), "", 0), "403");
    assert_eq!(post(&format!("{cookie}{form}Origin: http://localhost:{port}\r\n"), "", 0), "403");
    assert_eq!(post(&format!("{origin}{form}"), "", 0), "401", "without a session");
    assert_eq!(post(&format!("{whole}Sec-Fetch-Site: same-site\r\n"), "", 0), "403");
    assert_eq!(post(&whole, "", 0), "403", "without the page's token");
    assert_eq!(post(&whole, &format!("csrf={}", served.token), 69), "403", "with another token");
    assert_eq!(post(&format!("{cookie}{origin}Content-Type: text/plain\r\n"), "csrf=x", 6), "415");
    assert_eq!(post(&format!("{cookie}{origin}Content-Type: application/json\r\n"), "{}", 2), "415");
    let long = "a".repeat(70 * 1024);
    assert_eq!(post(&whole, &long, long.len()), "413");
    assert_eq!(post(&whole, "", usize::MAX / 2), "413", "a length is no promise");
    let read_only = Served::with(|options| options.read_only = true);
    let request = format!(
        "POST /do HTTP/1.1\r\nHost: 127.0.0.1:{0}\r\nOrigin: http://127.0.0.1:{0}\r\nConnection: close\r\nContent-Length: 0\r\n{1}{form}\r\n",
        read_only.port,
        read_only.cookie()
    );
    assert_eq!(status(&read_only.raw(request.as_bytes())), "404");
}

#[test]
fn u_16_streams_are_for_runs_there_are() {
    let served = Served::with(|_| {});
    let cookie = served.cookie();
    for (of, expected) in [
        ("", "400"),
        ("?of=", "400"),
        ("?of=run", "400"),
        ("?of=run/x/y", "404"),
        ("?of=run/x/../../y", "404"),
        ("?of=run/x/y&from=99999999999999999999999", "404"),
    ] {
        assert_eq!(status(&served.get(&format!("/events{of}"), &cookie)), expected, "{of}");
        assert_eq!(status(&served.get(&format!("/events{of}"), "")), "401", "{of}");
    }
}

#[test]
fn u_16_what_is_no_request_gets_no_page() {
    let served = Served::with(|_| {});
    let cookie = served.cookie();
    let host = format!("Host: 127.0.0.1:{}\r\n", served.port);
    for bytes in [
        &b"\x16\x03\x01\x02\x00\x01\x00"[..],
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\r\n\r\n\r\n",
        b"GET",
        b"",
    ] {
        let answer = served.raw(bytes);
        assert!(matches!(status(&answer), "400" | "421" | "505" | "closed"), "{bytes:?}: {answer}");
    }
    // Two requests in one, by two ideas of where the first ends.
    let smuggled = format!(
        "POST / HTTP/1.1\r\n{host}{cookie}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\n{host}{cookie}\r\n"
    );
    let answer = served.raw(smuggled.as_bytes());
    assert!(!answer.contains("200 OK"), "{answer}");
    for path in ["/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd", "/%00", "/style.css/.."] {
        let answer = served.get(path, &cookie);
        assert_eq!(status(&answer), "404", "{path}");
    }
}

#[test]
fn u_16_a_head_has_a_size_and_a_time() {
    let served = Served::with(|options| options.limits.head_time = Duration::from_millis(200));
    let long = format!("X-Long: {}\r\n", "a".repeat(20 * 1024));
    assert_eq!(status(&served.get("/", &long)), "431");
    assert_eq!(status(&served.get(&format!("/{}", "a".repeat(20 * 1024)), "")), "431");
    let many: String = (0..2_000).map(|n| format!("H{n}: x\r\n")).collect();
    assert_eq!(status(&served.get("/", &many)), "431");
    // Nothing, and half a head: both are ended by the server, which this test waits for.
    for begun in [&b""[..], b"GET / HTTP/1.1\r\nHost: 127", b"GET / HTTP/1.1\r\n"] {
        let mut stream = served.connect();
        stream.write_all(begun).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        assert!(matches!(status(&answer), "408" | "closed"), "{begun:?}: {answer}");
    }
    // So is a connection that stays open after its answer.
    let mut stream = served.connect();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: nobody\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert_eq!(status(&String::from_utf8_lossy(&answer)), "421");
}

#[test]
fn u_16_connections_are_counted() {
    let served = Served::with(|options| options.limits.connections = 3);
    let cookie = served.cookie();
    let asks = format!("GET /style.css HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n{cookie}\r\n", served.port);
    // Each has been accepted for certain once it was answered. Those that asked before may be gone a moment later.
    let held: Vec<TcpStream> = (0..3)
        .map(|_| {
            loop {
                let mut stream = served.connect();
                stream.write_all(asks.as_bytes()).unwrap();
                let mut first = [0; 12];
                stream.read_exact(&mut first).unwrap();
                match &first {
                    b"HTTP/1.1 200" => break stream,
                    _ => std::thread::yield_now(),
                }
            }
        })
        .collect();
    assert_eq!(status(&served.get("/style.css", &cookie)), "503");
    drop(held);
    // The places are free again; how soon is the system's.
    while status(&served.get("/style.css", &cookie)) != "200" {
        std::thread::yield_now();
    }
}

#[test]
fn r_13_connections_without_the_cookie_keep_nobody_out() {
    let served = Served::with(|options| {
        options.limits.connections = 2;
        options.limits.strangers = 4;
        options.limits.head_time = LONG;
    });
    let cookie = served.cookie();
    let mut held: Vec<TcpStream> = (0..40)
        .map(|n| {
            let mut stream = served.connect();
            let begun: [&[u8]; 3] =
                [b"", b"GET / HTTP/1.1\r\nHost: 127", b"GET / HTTP/1.1\r\nHost: nobody\r\n\r\n"];
            let _ = stream.write_all(begun[n % 3]);
            stream
        })
        .collect();
    // The last one waits behind all others.
    assert_eq!(status(&served.get("/style.css", &cookie)), "200");
    // The oldest was closed for a newer one.
    let mut nothing = Vec::new();
    let _ = held[0].read_to_end(&mut nothing);
    assert_eq!(status(&served.get(&format!("/in?t={}", served.token), "")), "200");
    drop(held);
}

#[test]
fn u_16_a_port_in_use_is_said() {
    let served = Served::with(|_| {});
    let options = ServeOptions {
        port: served.port,
        host: None,
        fleet: None,
        read_only: false,
        program: "/bin/false".into(),
        cwd: "/nonexistent".into(),
        idle_exit: None,
        state: None,
        metrics_key: None,
        version: "test",
        limits: Limits::default(),
    };
    assert!(matches!(Server::bind(options), Err(ServeError::PortInUse { .. })));
}

/// Requests whose answers nobody reads hold no place for ever.
#[test]
fn u_16_a_client_that_takes_nothing_loses_its_place() {
    let served = Served::with(|options| {
        options.limits.connections = 2;
        options.limits.write_time = Duration::from_millis(1);
    });
    let cookie = served.cookie();
    let greedy: Vec<TcpStream> = (0..2)
        .map(|_| {
            let mut stream = served.connect();
            stream.set_nonblocking(true).unwrap();
            let requests =
                format!("GET /nowhere HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n{cookie}\r\n", served.port)
                    .repeat(200);
            // Until nothing more is taken: then the server waits for its own answers to be taken.
            while stream.write_all(requests.as_bytes()).is_ok() {}
            stream
        })
        .collect();
    let begun = std::time::Instant::now();
    while status(&served.get("/style.css", &cookie)) != "200" {
        assert!(begun.elapsed() < LONG, "the places are never given back");
        std::thread::yield_now();
    }
    drop(greedy);
}

#[test]
fn u_16_a_server_without_requests_ends_if_it_should() {
    let mut served = Served::with(|options| options.idle_exit = Some(Duration::from_millis(1)));
    assert!(served.thread.take().unwrap().join().unwrap().is_ok());
}
