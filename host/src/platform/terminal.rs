//! Terminals: their modes, their size, and who has them. Whether something is a terminal is known to `std`.

pub use rustix::process::{getpgrp, getsid};
pub use rustix::stdio::{stdin, stdout};
pub use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, isatty, tcflush, tcgetattr,
    tcgetpgrp, tcgetwinsize, tcsetattr,
};

use std::os::fd::AsFd;

use super::Errno;

/// Columns, if this is a terminal that knows.
pub fn columns(terminal: impl AsFd) -> Option<usize> {
    tcgetwinsize(terminal).ok().map(|size| usize::from(size.ws_col))
}

/// One read past every buffer, as the system answers it.
pub fn read_keys(into: &mut [u8]) -> Result<usize, Errno> {
    rustix::io::read(stdin(), into)
}

/// One write past every buffer and lock, so that it also works in the middle of a panic.
pub fn write_raw(bytes: &[u8]) -> Result<usize, Errno> {
    rustix::io::write(stdout(), bytes)
}
