//! Inside: a port on the loopback of the sandbox, each connection of which goes to the socket of the proxy.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::thread;

use crate::platform::socket::UnixStream;

/// The port inside. The loopback is the sandbox's own, so it is never taken.
pub const PORT: u16 = 3128;

/// Names that programs look for to find a proxy; those in small letters are as old as those in capitals.
const NAMES: [&str; 6] = ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "https_proxy", "http_proxy", "all_proxy"];

/// The variables by which programs inside find the relay.
pub fn variables() -> Vec<(OsString, OsString)> {
    let address = format!("http://{}:{PORT}", Ipv4Addr::LOCALHOST);
    let mut all: Vec<(OsString, OsString)> =
        NAMES.iter().map(|name| (name.into(), address.clone().into())).collect();
    for name in ["NO_PROXY", "no_proxy"] {
        all.push((name.into(), "localhost,127.0.0.1,::1".into()));
    }
    // Node looks at the others only when told to.
    all.push(("NODE_USE_ENV_PROXY".into(), "1".into()));
    all
}

/// Opens the port and answers it for as long as this process lives.
pub(crate) fn relay(socket: &Path) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, PORT))?;
    let socket = socket.to_path_buf();
    thread::Builder::new().name("relay".into()).spawn(move || {
        for inner in listener.incoming().flatten() {
            let Ok(outer) = UnixStream::connect(&socket) else { continue };
            let _ = thread::Builder::new().name("relayed".into()).spawn(move || join(&inner, &outer));
        }
    })?;
    Ok(())
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
