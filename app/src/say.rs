//! The only ways to print. A reader that went away (`archeflow list | head -1`) is no reason to panic.

/// A line of result, on standard output.
macro_rules! out {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout().lock(), $($text)*);
    }};
}

/// Part of a line, on standard output.
macro_rules! out_part {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = write!(std::io::stdout().lock(), $($text)*);
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
