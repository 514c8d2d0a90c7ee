//! Inside: ports on the loopback of the sandbox, each connection of which goes to the socket of the proxy.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::thread;

use crate::platform::socket::UnixStream;
use crate::sandbox::policy::{LocalPort, ProxyAccess};

/// The port of the proxy inside, or one of the next if a model on this machine has it.
const PORT: u16 = 3128;

/// Names that programs look for to find a proxy; those in small letters are as old as those in capitals.
const NAMES: [&str; 6] = ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "https_proxy", "http_proxy", "all_proxy"];

/// The name by which the parts of this program find it, which take no proxy of anybody else's.
pub const VARIABLE: &str = "ARCHEFLOW_PROXY";

/// The name before the word that the proxy wants at a port.
pub(super) const USER: &str = "archeflow";

/// The longest answer to our own request for a tunnel.
const HEAD: usize = 4096;

/// The variables by which programs inside find the relay, or the proxy itself, which wants a word then.
pub fn variables(port: u16, word: Option<&str>) -> Vec<(OsString, OsString)> {
    let word = word.map(|word| format!("{USER}:{word}@")).unwrap_or_default();
    let address = format!("http://{word}{}:{port}", Ipv4Addr::LOCALHOST);
    let names = NAMES.iter().chain([&VARIABLE]);
    let mut all: Vec<(OsString, OsString)> =
        names.map(|name| (name.into(), address.clone().into())).collect();
    for name in ["NO_PROXY", "no_proxy"] {
        all.push((name.into(), "localhost,127.0.0.1,::1".into()));
    }
    // Node looks at the others only when told to.
    all.push(("NODE_USE_ENV_PROXY".into(), "1".into()));
    all
}

/// Opens the ports and answers them for as long as this process lives. Returns the one of the proxy.
pub(crate) fn relay(access: &ProxyAccess) -> io::Result<u16> {
    for local in &access.local {
        for address in addresses(&local.host) {
            // A machine without IPv6 has one of the two only.
            let Ok(listener) = TcpListener::bind((address, local.port)) else { continue };
            answer(listener, &access.socket, Some(local.clone()))?;
        }
    }
    let free = (PORT..).find(|port| access.local.iter().all(|local| local.port != *port)).unwrap_or(PORT);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, free))?;
    answer(listener, &access.socket, None)?;
    Ok(free)
}

/// The addresses that a name of this machine stands for.
fn addresses(host: &str) -> Vec<IpAddr> {
    match host.parse() {
        Ok(address) => vec![address],
        Err(_) => vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()],
    }
}

/// Connections to a model's port ask for the tunnel themselves: the program knows of no proxy.
fn answer(listener: TcpListener, socket: &Path, local: Option<LocalPort>) -> io::Result<()> {
    let socket: PathBuf = socket.to_path_buf();
    thread::Builder::new().name("relay".into()).spawn(move || {
        for inner in listener.incoming().flatten() {
            let (socket, local) = (socket.clone(), local.clone());
            let pass_on = move || {
                let outer = UnixStream::connect(&socket)?;
                if let Some(local) = &local {
                    ask(&outer, local)?;
                }
                join(&inner, &outer);
                io::Result::Ok(())
            };
            let _ = thread::Builder::new().name("relayed".into()).spawn(pass_on);
        }
    })?;
    Ok(())
}

fn ask(mut outer: &UnixStream, local: &LocalPort) -> io::Result<()> {
    let LocalPort { host, port } = local;
    let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
    outer.write_all(format!("CONNECT {host}:{port} HTTP/1.1\r\n\r\n").as_bytes())?;
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= HEAD || outer.read(&mut byte)? == 0 {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        head.extend_from_slice(&byte);
    }
    if head.starts_with(b"HTTP/1.1 200 ") { Ok(()) } else { Err(io::ErrorKind::ConnectionRefused.into()) }
}

/// Moves bytes both ways until both sides have said that no more come.
fn join(inner: &TcpStream, outer: &UnixStream) {
    let (Ok(from_inner), Ok(to_outer)) = (inner.try_clone(), outer.try_clone()) else { return };
    let there = thread::Builder::new().name("relayed".into()).spawn(move || {
        pump(from_inner, &to_outer);
        let _ = to_outer.shutdown(Shutdown::Write);
    });
    pump(outer, inner);
    let _ = inner.shutdown(Shutdown::Write);
    let _ = there.map(thread::JoinHandle::join);
}

/// Copies until the end of the input or until one side is gone.
pub(super) fn pump(mut from: impl Read, mut to: impl Write) {
    let _ = io::copy(&mut from, &mut to);
}
