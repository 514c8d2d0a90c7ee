//! Reads what `KERN_PROCARGS2` answers: the number of arguments, the program's path, padding, the arguments, the
//! environment. Each text ends with a zero byte.

/// The part with the environment, as texts that end with a zero byte; nothing if the answer is cut short before it.
pub(super) fn environment(answer: &[u8]) -> Option<&[u8]> {
    let (count, rest) = arguments(answer)?;
    (0..count).try_fold(rest, |rest, _| after(rest))
}

/// The first argument behind the name of the program.
pub(super) fn first(answer: &[u8]) -> Option<&[u8]> {
    let (count, rest) = arguments(answer)?;
    let rest = after(rest).filter(|_| count > 1)?;
    rest.split(|&byte| byte == 0).next()
}

/// What follows the first text.
fn after(rest: &[u8]) -> Option<&[u8]> {
    let end = rest.iter().position(|&byte| byte == 0)?;
    rest.get(end + 1..)
}

/// The number of arguments, and the part that begins with them.
fn arguments(answer: &[u8]) -> Option<(usize, &[u8])> {
    let (count, rest) = answer.split_first_chunk::<4>()?;
    let count = usize::try_from(i32::from_ne_bytes(*count)).ok()?;
    let path = rest.iter().position(|&byte| byte == 0)?;
    let rest = rest.get(path..)?;
    let padding = rest.iter().position(|&byte| byte != 0)?;
    Some((count, rest.get(padding..)?))
}

#[cfg(test)]
mod tests {
    use super::{environment, first};

    fn answer(count: i32, rest: &[u8]) -> Vec<u8> {
        [&count.to_ne_bytes(), rest].concat()
    }

    /// The number of arguments, what follows it, and the environment in that.
    type Row = (i32, &'static [u8], Option<&'static [u8]>);

    #[test]
    fn the_environment_follows_the_arguments() {
        let rows: [Row; 6] = [
            (2, b"/bin/sh\0\0\0\0sh\0-c\0A=1\0B=2\0\0", Some(b"A=1\0B=2\0\0")),
            (2, b"/bin/sh\0\0sh\0\0A=1\0", Some(b"A=1\0")),
            (1, b"/bin/sh\0sh\0", Some(b"")),
            (3, b"/bin/sh\0sh\0-c\0", None),
            (-1, b"/bin/sh\0sh\0", None),
            (1, b"/bin/sh", None),
        ];
        for (count, rest, expected) in rows {
            let answer = answer(count, rest);
            assert_eq!(environment(&answer), expected, "{count} {}", rest.escape_ascii());
        }
        assert_eq!(environment(b"\x01"), None);
    }

    #[test]
    fn the_first_argument_follows_the_name() {
        assert_eq!(first(&answer(3, b"/bin/af\0\0af\0ui\0--port\0A=1\0")), Some(&b"ui"[..]));
        assert_eq!(first(&answer(1, b"/bin/af\0\0af\0ui\0")), None);
        assert_eq!(first(b"\x01"), None);
    }
}
