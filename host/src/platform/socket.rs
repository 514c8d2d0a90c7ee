//! Sockets between processes of one machine, and the user at their other end, as the kernel reports it.

use std::io;

use super::system;

pub use std::os::unix::net::{UnixListener, UnixStream};

/// The process at the other end of a socket.
pub struct SocketPeer {
    pub user: u32,
    /// `None` for a process outside of our own process namespace.
    pub process: Option<i32>,
}

pub fn peer(stream: &UnixStream) -> io::Result<SocketPeer> {
    let (user, process) = system::socket_peer(stream)?;
    Ok(SocketPeer { user, process: process.filter(|process| *process > 0) })
}
