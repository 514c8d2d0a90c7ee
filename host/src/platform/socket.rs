//! Sockets between processes of one machine, and the user at their other end, as the kernel reports it.

use std::io;
use std::path::Path;

use super::system;

pub use std::os::unix::net::{UnixListener, UnixStream};

/// The process at the other end of a socket.
pub struct SocketPeer {
    pub user: u32,
    /// `None` for a process outside of our own process namespace.
    pub process: Option<i32>,
}

/// Opens a socket at a path that may be longer than the address of a socket can be.
pub fn bind(path: &Path) -> io::Result<UnixListener> {
    by_short_path(path, |path| UnixListener::bind(path))
}

/// Connects to one.
pub fn connect(path: &Path) -> io::Result<UnixStream> {
    by_short_path(path, |path| UnixStream::connect(path))
}

/// Goes through the open folder, whose path is short.
fn by_short_path<T>(path: &Path, act: impl Fn(&Path) -> io::Result<T>) -> io::Result<T> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let folder = std::fs::File::open(folder)?;
    match system::path_of_open(&folder) {
        Some(short) => act(&short.join(name)),
        None => act(path),
    }
}

pub fn peer(stream: &UnixStream) -> io::Result<SocketPeer> {
    let (user, process) = system::socket_peer(stream)?;
    Ok(SocketPeer { user, process: process.filter(|process| *process > 0) })
}
