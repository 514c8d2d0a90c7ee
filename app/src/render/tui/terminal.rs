//! The real screen: its modes, how they are put back, what is written to it and what keys come from it.
//!
//! It asks the terminal nothing, so there is no answer to wait for. Signals stay with the terminal: Ctrl-C and Ctrl-Z
//! do what they do everywhere. The modes are put back when a [`Screen`] ends, when anything panics, and around a pause;
//! [`leave`] can be called from anywhere and any number of times.

use std::io;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use archeflow_host::platform::Errno;
use archeflow_host::platform::poll::{self, PollFd, PollFlags};
use archeflow_host::platform::process::{Signal, getpid, kill_process};
use archeflow_host::platform::terminal::{
    discard_input, getpgrp, getsid, isatty, keep_signals, stdin, stdout, tcgetpgrp, write_raw,
};
use archeflow_host::proc::signals::Pauses;
use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::event::{self, DisableBracketedPaste, EnableBracketedPaste};
use crossterm::queue;
use crossterm::style::{Attribute, Print, SetAttribute, SetForegroundColor};
use crossterm::terminal::{
    self as crossterm_terminal, Clear, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
    enable_raw_mode,
};
use ratatui_core::backend::{Backend, ClearType, WindowSize};
use ratatui_core::buffer::Cell;
use ratatui_core::layout::{Position, Size};
use ratatui_core::style::{Color, Modifier};
use ratatui_core::terminal::{Frame, Terminal};

use super::View;
use super::draw::draw;
use super::keys::{Key, keys_of};
use crate::render::palette;

/// No screen is larger, whatever the terminal says.
const LARGEST: Size = Size { width: 500, height: 250 };
/// A terminal that takes nothing for so long is not looked at.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long crossterm may look for a key that is already there. It does not look at all when given no time.
const MOMENT: Duration = Duration::from_millis(1);
/// Events read before the view is drawn and signals are looked at again.
const EVENTS_AT_ONCE: usize = 256;

static ENTERED: AtomicBool = AtomicBool::new(false);
static BROKEN: AtomicBool = AtomicBool::new(false);

/// There is a terminal to draw on and to read keys from.
pub(crate) fn is_there() -> bool {
    let smart = std::env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb");
    smart && isatty(stdin()) && isatty(stdout())
}

pub(crate) struct Screen {
    terminal: Terminal<Tty>,
    /// More events were there than were read at once, so some may wait inside crossterm.
    unread: bool,
    pauses: &'static Pauses,
}

impl Screen {
    pub(crate) fn enter() -> io::Result<Screen> {
        let pauses = Pauses::hold()?;
        put_back_on_panic();
        enter()?;
        let terminal = Terminal::new(Tty::default()).inspect_err(|_| leave())?;
        Ok(Screen { terminal, unread: false, pauses })
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
        if !self.unread && !has_input(wait)? {
            return Ok(Vec::new());
        }
        let mut keys = Vec::new();
        for _ in 0..EVENTS_AT_ONCE {
            self.unread = event::poll(MOMENT)?;
            if !self.unread {
                break;
            }
            keys.extend(keys_of(event::read()?));
        }
        Ok(keys)
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
    // After a stop that nobody could prepare for, crossterm believes that its modes are still there.
    disable_raw_mode()?;
    enable_raw_mode()?;
    ENTERED.store(true, Ordering::SeqCst);
    keep_signals(stdin())?;
    // Keys typed before the view was there are not meant for it.
    discard_input(stdin());
    let mut bytes = Vec::new();
    queue!(
        bytes,
        EnterAlternateScreen,
        EnableBracketedPaste,
        Hide,
        SetAttribute(Attribute::Reset),
        Clear(crossterm_terminal::ClearType::All)
    )?;
    write_all(&bytes)
}

/// Restores the terminal. Never fails: there is no place left to report to.
pub(crate) fn leave() {
    if !ENTERED.swap(false, Ordering::SeqCst) {
        return;
    }
    let mut bytes = Vec::new();
    let reset = SetAttribute(Attribute::Reset);
    let _ = queue!(bytes, reset, DisableBracketedPaste, Show, LeaveAlternateScreen);
    let _ = write_all(&bytes);
    // Changing modes from the background would stop the process for good.
    if in_front() {
        let _ = disable_raw_mode();
        discard_input(stdin());
    }
}

/// Whether the terminal has something to read within this time. crossterm would try again and again to read from a
/// terminal that was closed, so this is found out before it is asked.
fn has_input(wait: Duration) -> io::Result<bool> {
    let input = stdin();
    let mut fds = [PollFd::new(&input, PollFlags::IN)];
    match poll::wait(&mut fds, Some(wait)) {
        Ok(0) | Err(Errno::INTR) => return Ok(false),
        Ok(_) => {}
        Err(error) => return Err(error.into()),
    }
    let closed = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
    if fds.iter().any(|fd| fd.revents().intersects(closed)) {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(true)
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
    let size = crossterm_terminal::window_size().ok().filter(|size| size.columns > 0 && size.rows > 0);
    size.map_or(Size::new(80, 24), |size| {
        Size::new(size.columns.min(LARGEST.width), size.rows.min(LARGEST.height))
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
    fn go(&mut self, to: Position) -> io::Result<()> {
        self.cursor = to;
        queue!(self.out, MoveTo(to.x, to.y))
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
                self.go(Position { x, y })?;
            }
            let looks = (cell.fg, cell.modifier);
            if style != Some(looks) {
                put_on(&mut self.out, looks)?;
                style = Some(looks);
            }
            // The last filter before the terminal, whatever filled the cell.
            let symbol = cell.symbol();
            let harmless = !symbol.chars().any(char::is_control);
            queue!(self.out, Print(if harmless { symbol } else { "?" }))?;
            // Terminals disagree on how wide some characters are; after those the position is set again.
            at = is_one_wide(symbol).then_some(Position { x: x + 1, y });
        }
        queue!(self.out, SetAttribute(Attribute::Reset))
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        queue!(self.out, Hide)
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        queue!(self.out, Show)
    }

    /// As it was last put; the terminal is not asked.
    fn get_cursor_position(&mut self) -> io::Result<Position> {
        Ok(self.cursor)
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        self.go(position.into())
    }

    fn clear(&mut self) -> io::Result<()> {
        self.clear_region(ClearType::All)
    }

    fn clear_region(&mut self, part: ClearType) -> io::Result<()> {
        let part = match part {
            ClearType::All => crossterm_terminal::ClearType::All,
            ClearType::AfterCursor => crossterm_terminal::ClearType::FromCursorDown,
            ClearType::BeforeCursor => crossterm_terminal::ClearType::FromCursorUp,
            ClearType::CurrentLine => crossterm_terminal::ClearType::CurrentLine,
            ClearType::UntilNewLine => crossterm_terminal::ClearType::UntilNewLine,
        };
        queue!(self.out, SetAttribute(Attribute::Reset), Clear(part))
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

/// The colour comes before the attributes: where `NO_COLOR` is set, crossterm resets everything in its place.
fn put_on(out: &mut Vec<u8>, (fg, modifier): (Color, Modifier)) -> io::Result<()> {
    queue!(out, SetAttribute(Attribute::Reset))?;
    if let Some(colour) = palette::of_cell(fg) {
        queue!(out, SetForegroundColor(colour))?;
    }
    let attributes = [
        (Modifier::BOLD, Attribute::Bold),
        (Modifier::DIM, Attribute::Dim),
        (Modifier::REVERSED, Attribute::Reverse),
    ];
    for (_, attribute) in attributes.iter().filter(|(flag, _)| modifier.contains(*flag)) {
        queue!(out, SetAttribute(*attribute))?;
    }
    Ok(())
}
