//! Who is at the other end of a socket, as the kernel says.

use std::io;
use std::os::unix::net::UnixStream;

pub(super) struct Peer {
    pub(super) user: u32,
    /// `None` for a process outside of our own process namespace.
    pub(super) process: Option<i32>,
}

#[cfg(target_os = "linux")]
pub(super) fn peer(stream: &UnixStream) -> io::Result<Peer> {
    // SO_PEERCRED says 0 for a process that this namespace can't see; the wrapper has no number for that.
    let credentials = rustix::net::sockopt::socket_peercred(stream)?;
    let process = credentials.pid.as_raw_nonzero().get();
    Ok(Peer { user: credentials.uid.as_raw(), process: (process > 0).then_some(process) })
}

#[cfg(not(target_os = "linux"))]
pub(super) fn peer(_: &UnixStream) -> io::Result<Peer> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "the user at the other end of a socket can't be checked here",
    ))
}
