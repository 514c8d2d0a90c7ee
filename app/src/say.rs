//! The ways to write text. Standard output belongs to `output.rs`; everything here goes to standard error or into a
//! string. A reader that went away is no reason to panic.

/// A line, into the text that a command returns.
macro_rules! put {
    ($to:expr) => {
        $to.push('\n')
    };
    ($to:expr, $($text:tt)*) => {{
        use std::fmt::Write as _;
        let _ = writeln!($to, $($text)*);
    }};
}

/// A line of progress or a message, on standard error.
macro_rules! tell {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr().lock(), $($text)*);
    }};
}

/// Part of a line, on standard error.
macro_rules! tell_part {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = write!(std::io::stderr().lock(), $($text)*);
    }};
}
