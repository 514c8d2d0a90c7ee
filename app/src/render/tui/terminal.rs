//! The real screen: its modes, how they are put back, what is written to it and what keys come from it.
//!
//! It asks the terminal nothing, so there is no answer to wait for. Signals stay with the terminal: Ctrl-C and Ctrl-Z
//! do what they do everywhere. The modes are put back when a [`Screen`] ends, when anything panics, and around a pause;
//! [`leave`] can be called from anywhere and any number of times.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once};
use std::time::{Duration, Instant};

use archeflow_host::platform::Errno;
use archeflow_host::platform::poll::{self, PollFd, PollFlags};
use archeflow_host::platform::process::{Signal, getpid, kill_process};
use archeflow_host::platform::terminal::{
    LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, getpgrp, getsid, isatty,
    read_keys, stdin, stdout, tcflush, tcgetattr, tcgetpgrp, tcgetwinsize, tcsetattr, write_raw,
};
use archeflow_host::proc::signals::Pauses;
use ratatui_core::backend::{Backend, ClearType, WindowSize};
use ratatui_core::buffer::Cell;
use ratatui_core::layout::{Position, Size};
use ratatui_core::style::{Color, Modifier};
use ratatui_core::terminal::{Frame, Terminal};

use super::View;
use super::draw::draw;
use super::keys::{Key, Keys};

/// Another screen, no cursor, pastes marked as such.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?2004h\x1b[?25l\x1b[0m\x1b[2J";
const LEAVE: &[u8] = b"\x1b[0m\x1b[?2004l\x1b[?25h\x1b[?1049l";
/// No screen is larger, whatever the terminal says.
const LARGEST: Size = Size { width: 500, height: 250 };
/// A terminal that takes nothing for so long is not looked at.
const PATIENCE: Duration = Duration::from_secs(5);

/// The modes from before, while they are changed.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);
static ENTERED: AtomicBool = AtomicBool::new(false);
static BROKEN: AtomicBool = AtomicBool::new(false);

/// There is a terminal to draw on and to read keys from.
pub(crate) fn is_there() -> bool {
    let smart = std::env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb");
    smart && isatty(stdin()) && isatty(stdout())
}

pub(crate) struct Screen {
    terminal: Terminal<Tty>,
    keys: Keys,
    pauses: &'static Pauses,
}

impl Screen {
    pub(crate) fn enter() -> io::Result<Screen> {
        let pauses = Pauses::hold()?;
        put_back_on_panic();
        enter()?;
        let terminal = Terminal::new(Tty::default()).inspect_err(|_| leave())?;
        Ok(Screen { terminal, keys: Keys::default(), pauses })
    }

    pub(crate) fn draw(&mut self, view: &View) -> io::Result<()> {
        #[cfg(debug_assertions)]
        assert!(std::env::var_os("ARCHEFLOW_PANIC").is_none(), "a test asked for this");
        self.terminal.draw(|frame| draw(frame, view)).map(drop)
    }

    /// Draws something else than the view of one run.
    pub(crate) fn draw_with(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(draw).map(drop)
    }

    /// The keys that come within this time. An error means that the terminal is gone.
    pub(crate) fn keys(&mut self, wait: Duration) -> io::Result<Vec<Key>> {
        let input = stdin();
        let mut fds = [PollFd::new(&input, PollFlags::IN)];
        match poll::wait(&mut fds, Some(wait)) {
            Ok(0) => return Ok(self.keys.idle().into_iter().collect()),
            Err(Errno::INTR) => return Ok(Vec::new()),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let mut bytes = [0; 1024];
        match read_keys(&mut bytes) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => Ok(self.keys.feed(bytes.get(..n).unwrap_or_default())),
            Err(Errno::INTR | Errno::AGAIN) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }

    /// Pauses where the terminal asks for it, and draws everything again after a pause. Returns whether there was one.
    pub(crate) fn pause(&mut self) -> io::Result<bool> {
        if self.pauses.asked.swap(false, Ordering::SeqCst) && can_be_resumed() {
            leave();
            self.pauses.over.store(false, Ordering::SeqCst);
            kill_process(getpid(), Signal::STOP)?;
            self.woken();
        }
        // Whoever was sent to the background waits there until the terminal is theirs again.
        if !self.pauses.over.load(Ordering::SeqCst) || !in_front() {
            return Ok(false);
        }
        self.pauses.over.store(false, Ordering::SeqCst);
        enter()?;
        self.terminal.clear()?;
        Ok(true)
    }
}

impl Screen {
    /// The signal that ended a pause may reach another thread a moment later. Taken then, it would count as one more.
    fn woken(&self) {
        let begun = Instant::now();
        while !self.pauses.over.load(Ordering::SeqCst) && begun.elapsed() < Duration::from_millis(200) {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.pauses.over.store(true, Ordering::SeqCst);
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
        self.pauses.release();
    }
}

/// Something panicked, and the terminal was put back for good.
pub(crate) fn is_broken() -> bool {
    BROKEN.load(Ordering::SeqCst)
}

/// Somebody else has the terminal for now.
pub(crate) fn is_hidden() -> bool {
    !in_front()
}

/// Columns and rows.
pub(crate) fn size() -> (u16, u16) {
    let size = measured();
    (size.width, size.height)
}

fn enter() -> io::Result<()> {
    let mut before = BEFORE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let usual = match before.take() {
        Some(usual) => usual,
        None => tcgetattr(stdin())?,
    };
    let mut modes = usual.clone();
    modes.local_modes &= !(LocalModes::ICANON | LocalModes::ECHO | LocalModes::IEXTEN);
    modes.special_codes[SpecialCodeIndex::VMIN] = 1;
    modes.special_codes[SpecialCodeIndex::VTIME] = 0;
    *before = Some(usual);
    tcsetattr(stdin(), OptionalActions::Now, &modes)?;
    // What was typed before the view was there is not meant for it.
    let _ = tcflush(stdin(), QueueSelector::IFlush);
    ENTERED.store(true, Ordering::SeqCst);
    write_all(ENTER)
}

/// Restores the terminal. Never fails: there is no place left to report to.
pub(crate) fn leave() {
    if !ENTERED.swap(false, Ordering::SeqCst) {
        return;
    }
    let _ = write_all(LEAVE);
    // Changing modes from the background would stop the process for good.
    let before = BEFORE.try_lock().ok().and_then(|mut before| before.take());
    if let Some(usual) = before.filter(|_| in_front()) {
        let _ = tcsetattr(stdin(), OptionalActions::Now, &usual);
        let _ = tcflush(stdin(), QueueSelector::IFlush);
    }
}

fn put_back_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            BROKEN.store(true, Ordering::SeqCst);
            leave();
            usual(info);
        }));
    });
}

/// A leader of a session has no shell above it that could say `fg`.
fn can_be_resumed() -> bool {
    getsid(None).is_ok_and(|session| session != getpid())
}

fn in_front() -> bool {
    tcgetpgrp(stdin()).map_or(true, |group| group == getpgrp())
}

fn measured() -> Size {
    let size = tcgetwinsize(stdout()).ok().filter(|size| size.ws_col > 0 && size.ws_row > 0);
    size.map_or(Size::new(80, 24), |size| {
        Size::new(size.ws_col.min(LARGEST.width), size.ws_row.min(LARGEST.height))
    })
}

/// Past the buffer and the lock of standard output, so that a panic in the middle of a line can use it too.
fn write_all(mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match write_raw(bytes) {
            Ok(n) => bytes = bytes.get(n..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let output = stdout();
                let mut fds = [PollFd::new(&output, PollFlags::OUT)];
                if poll::wait(&mut fds, Some(PATIENCE)) == Ok(0) {
                    return Err(io::ErrorKind::TimedOut.into());
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Turns cells into what a terminal understands. A frame is written at once.
#[derive(Debug, Default)]
pub(super) struct Tty {
    out: Vec<u8>,
    cursor: Position,
}

impl Tty {
    fn go(&mut self, to: Position) {
        self.out.extend_from_slice(format!("\x1b[{};{}H", to.y + 1, to.x + 1).as_bytes());
        self.cursor = to;
    }
}

impl Backend for Tty {
    type Error = io::Error;

    fn draw<'a, I>(&mut self, content: I) -> io::Result<()>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        let mut at: Option<Position> = None;
        let mut style = None;
        for (x, y, cell) in content {
            if at != Some(Position { x, y }) {
                self.go(Position { x, y });
            }
            let looks = (cell.fg, cell.modifier);
            if style != Some(looks) {
                self.out.extend_from_slice(looks_like(looks).as_bytes());
                style = Some(looks);
            }
            // The last filter before the terminal, whatever filled the cell.
            let symbol = cell.symbol();
            let harmless = !symbol.chars().any(char::is_control);
            self.out.extend_from_slice(if harmless { symbol.as_bytes() } else { b"?" });
            // Terminals disagree on how wide some characters are; after those the position is set again.
            at = is_one_wide(symbol).then_some(Position { x: x + 1, y });
        }
        self.out.extend_from_slice(b"\x1b[0m");
        Ok(())
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        self.out.extend_from_slice(b"\x1b[?25l");
        Ok(())
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        self.out.extend_from_slice(b"\x1b[?25h");
        Ok(())
    }

    /// As it was last put; the terminal is not asked.
    fn get_cursor_position(&mut self) -> io::Result<Position> {
        Ok(self.cursor)
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        self.go(position.into());
        Ok(())
    }

    fn clear(&mut self) -> io::Result<()> {
        self.clear_region(ClearType::All)
    }

    fn clear_region(&mut self, part: ClearType) -> io::Result<()> {
        let code = match part {
            ClearType::All => "2J",
            ClearType::AfterCursor => "J",
            ClearType::BeforeCursor => "1J",
            ClearType::CurrentLine => "2K",
            ClearType::UntilNewLine => "K",
        };
        self.out.extend_from_slice(format!("\x1b[0m\x1b[{code}").as_bytes());
        Ok(())
    }

    fn size(&self) -> io::Result<Size> {
        Ok(measured())
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        Ok(WindowSize { columns_rows: measured(), pixels: Size::default() })
    }

    fn flush(&mut self) -> io::Result<()> {
        let frame = std::mem::take(&mut self.out);
        // After the modes were put back, nothing may be drawn over what the shell shows.
        if ENTERED.load(Ordering::SeqCst) { write_all(&frame) } else { Ok(()) }
    }
}

/// Letters of Latin scripts, and the lines and marks the view itself draws with.
fn is_one_wide(symbol: &str) -> bool {
    let mut chars = symbol.chars();
    let first = chars.next().unwrap_or(' ');
    chars.next().is_none() && matches!(first, ' '..='~' | '\u{a1}'..='\u{24f}' | '\u{2500}'..='\u{259f}')
}

pub(super) fn looks_like((fg, modifier): (Color, Modifier)) -> String {
    let mut codes = vec![0];
    for (flag, code) in [(Modifier::BOLD, 1), (Modifier::DIM, 2), (Modifier::REVERSED, 7)] {
        if modifier.contains(flag) {
            codes.push(code);
        }
    }
    codes.extend(colour(fg));
    let codes: Vec<String> = codes.iter().map(u8::to_string).collect();
    format!("\x1b[{}m", codes.join(";"))
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the view uses the six colours every terminal has")]
fn colour(colour: Color) -> Option<u8> {
    match colour {
        Color::Red => Some(31),
        Color::Green => Some(32),
        Color::Yellow => Some(33),
        Color::Blue => Some(34),
        Color::Magenta => Some(35),
        Color::Cyan => Some(36),
        _ => None,
    }
}
