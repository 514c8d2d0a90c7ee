//! Terminals: their modes, their size, and who has them. Whether something is a terminal is known to `std`.

pub use rustix::process::{getpgrp, getsid};
pub use rustix::stdio::{stdin, stdout};
pub use rustix::termios::{isatty, tcgetpgrp};

use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags, open};
use rustix::termios::{
    LocalModes, OptionalActions, OutputModes, QueueSelector, SpecialCodeIndex, tcflush, tcgetattr,
    tcgetwinsize, tcsetattr,
};

use super::Errno;

/// Columns, if this is a terminal that knows.
pub fn columns(terminal: impl AsFd) -> Option<usize> {
    tcgetwinsize(terminal).ok().map(|size| usize::from(size.ws_col))
}

/// What a terminal in raw mode shall do nevertheless: turn Ctrl-C and Ctrl-Z into signals and begin lines at the left.
/// Reading from it never waits, so a key that came in part holds up nobody; the descriptor, which other processes
/// share, stays as it is.
pub fn keep_signals(terminal: impl AsFd) -> io::Result<()> {
    let mut modes = tcgetattr(&terminal)?;
    modes.local_modes |= LocalModes::ISIG;
    modes.output_modes |= OutputModes::OPOST;
    modes.special_codes[SpecialCodeIndex::VMIN] = 0;
    modes.special_codes[SpecialCodeIndex::VTIME] = 0;
    Ok(tcsetattr(&terminal, OptionalActions::Now, &modes)?)
}

/// Whether this process may read from or write to a terminal by its name. It does not become its own.
pub fn can_open(terminal: &Path) -> bool {
    let tried =
        |access| open(terminal, access | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty());
    tried(OFlags::RDONLY).is_ok() || tried(OFlags::WRONLY).is_ok()
}

/// Forgets what was typed and not read.
pub fn discard_input(terminal: impl AsFd) {
    let _ = tcflush(terminal, QueueSelector::IFlush);
}

/// One write past every buffer and lock, so that it also works in the middle of a panic.
pub fn write_raw(bytes: &[u8]) -> Result<usize, Errno> {
    rustix::io::write(stdout(), bytes)
}
