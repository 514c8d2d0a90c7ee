//! From the bytes a terminal sends to keys. What is not known is nothing.

/// What every key does, for the help on the screen; `docs/watch.md` has the same table.
pub(crate) const KEYS: [(&str, &str); 12] = [
    ("?", "this help"),
    ("q", "leave; if this process drives the run, asks whether to stop it or continue in plain lines"),
    ("s", "stop the run, after a yes"),
    ("p", "pause the run, or resume it: running agents finish, nothing new starts"),
    ("a", "answer the open question"),
    ("d", "the change as it is now"),
    ("Tab, Shift-Tab, ← →", "go to another pane"),
    ("↑ ↓, j k", "go to another line"),
    ("PgUp PgDn, Home End", "go further; End follows what comes"),
    ("Enter", "open the artifact of an agent or a finding; show a decision in full"),
    ("Esc", "back"),
    ("Ctrl-Z", "suspend; `fg` comes back"),
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Key {
    Char(char),
    Enter,
    Esc,
    Tab,
    BackTab,
    Backspace,
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Home,
    End,
    /// Pasted text, which is never taken for keys.
    Paste(String),
}

/// A paste that is longer is cut.
const LONGEST_PASTE: usize = 16 * 1024;
/// A sequence that is longer is none.
const LONGEST_SEQUENCE: usize = 64;

/// Bytes that are not a whole key yet.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    rest: Vec<u8>,
    pasted: Option<Vec<u8>>,
}

impl Keys {
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Vec<Key> {
        self.rest.extend_from_slice(bytes);
        let mut keys = Vec::new();
        while let Some((used, key)) = self.next() {
            self.rest.drain(..used);
            keys.extend(key);
        }
        keys
    }

    /// Nothing came for a while: an escape that stood alone was the key.
    pub(crate) fn idle(&mut self) -> Option<Key> {
        let alone = self.rest == [0x1b];
        if self.pasted.is_none() {
            self.rest.clear();
        }
        alone.then_some(Key::Esc)
    }

    /// The next key and the bytes it took; `None` where more must come first.
    fn next(&mut self) -> Option<(usize, Option<Key>)> {
        if self.pasted.is_some() {
            return self.paste();
        }
        match *self.rest.first()? {
            0x1b => self.escaped(),
            b'\r' | b'\n' => Some((1, Some(Key::Enter))),
            b'\t' => Some((1, Some(Key::Tab))),
            0x7f | 0x08 => Some((1, Some(Key::Backspace))),
            0..0x20 => Some((1, None)),
            byte => {
                let length = match byte {
                    0..0x80 => 1,
                    0xc0..0xe0 => 2,
                    0xe0..0xf0 => 3,
                    0xf0..0xf8 => 4,
                    _ => return Some((1, None)),
                };
                let bytes = self.rest.get(..length)?;
                let c = str::from_utf8(bytes).ok().and_then(|text| text.chars().next());
                Some((length, c.filter(|c| !c.is_control()).map(Key::Char)))
            }
        }
    }

    fn escaped(&mut self) -> Option<(usize, Option<Key>)> {
        match *self.rest.get(1)? {
            b'[' => {
                let body = self.rest.get(2..)?;
                let Some(end) = body.iter().position(|byte| (0x40..=0x7e).contains(byte)) else {
                    return (body.len() > LONGEST_SEQUENCE).then_some((body.len() + 2, None));
                };
                let (parameters, last) = (body.get(..end)?, *body.get(end)?);
                let key = match (parameters, last) {
                    (b"200", b'~') => {
                        self.pasted = Some(Vec::new());
                        None
                    }
                    (b"5", b'~') => Some(Key::PageUp),
                    (b"6", b'~') => Some(Key::PageDown),
                    (b"1" | b"7", b'~') => Some(Key::Home),
                    (b"4" | b"8", b'~') => Some(Key::End),
                    (_, b'Z') => Some(Key::BackTab),
                    (_, letter) => arrow(letter),
                };
                Some((end + 3, key))
            }
            b'O' => self.rest.get(2).map(|letter| (3, arrow(*letter))),
            // Escape twice, or with another key: the first one counts.
            _ => Some((1, Some(Key::Esc))),
        }
    }

    /// Everything up to the end of the paste.
    fn paste(&mut self) -> Option<(usize, Option<Key>)> {
        const END: &[u8] = b"\x1b[201~";
        let pasted = self.pasted.as_mut()?;
        let found = self.rest.windows(END.len()).position(|window| window == END);
        let taken = found.unwrap_or_else(|| self.rest.len().saturating_sub(END.len() - 1));
        let room = LONGEST_PASTE.saturating_sub(pasted.len()).min(taken);
        pasted.extend_from_slice(self.rest.get(..room).unwrap_or_default());
        if found.is_some() {
            let text = String::from_utf8_lossy(&self.pasted.take().unwrap_or_default()).into_owned();
            return Some((taken + END.len(), Some(Key::Paste(text))));
        }
        (taken > 0).then_some((taken, None))
    }
}

fn arrow(letter: u8) -> Option<Key> {
    match letter {
        b'A' => Some(Key::Up),
        b'B' => Some(Key::Down),
        b'C' => Some(Key::Right),
        b'D' => Some(Key::Left),
        b'H' => Some(Key::Home),
        b'F' => Some(Key::End),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Key, Keys};

    #[test]
    fn bytes_become_keys_however_they_are_cut() {
        let rows: [(&[u8], &[Key]); 12] = [
            (b"q", &[Key::Char('q')]),
            (b"\x1b[A\x1b[B\x1bOC\x1b[D", &[Key::Up, Key::Down, Key::Right, Key::Left]),
            (b"\x1b[5~\x1b[6~", &[Key::PageUp, Key::PageDown]),
            (b"\x1b[1~\x1b[H\x1b[4~\x1b[F", &[Key::Home, Key::Home, Key::End, Key::End]),
            (b"\t\x1b[Z\r", &[Key::Tab, Key::BackTab, Key::Enter]),
            ("ü漢".as_bytes(), &[Key::Char('ü'), Key::Char('漢')]),
            (b"\x1b[1;5A", &[Key::Up]),
            (b"\x1b[?1;2c\x1b[>0;1c", &[]),
            (b"\x00\x01\xff\x80", &[]),
            (b"\x7f\x08", &[Key::Backspace, Key::Backspace]),
            (b"\x1bs", &[Key::Esc, Key::Char('s')]),
            (b"a\x1b[200~s\ry\x1b[201~b", &[Key::Char('a'), Key::Paste("s\ry".to_owned()), Key::Char('b')]),
        ];
        for (bytes, keys) in rows {
            assert_eq!(Keys::default().feed(bytes), keys, "{bytes:?}");
            let mut slow = Keys::default();
            let one_by_one: Vec<Key> = bytes.iter().flat_map(|byte| slow.feed(&[*byte])).collect();
            assert_eq!(one_by_one, keys, "{bytes:?} one by one");
        }
    }

    #[test]
    fn an_escape_alone_is_a_key_once_nothing_follows() {
        let mut keys = Keys::default();
        assert_eq!(keys.feed(b"\x1b"), []);
        assert_eq!(keys.idle(), Some(Key::Esc));
        assert_eq!(keys.idle(), None);
        assert_eq!(keys.feed(b"\x1b[999"), []);
        assert_eq!(keys.idle(), None);
        assert_eq!(keys.feed(b"q"), [Key::Char('q')]);
    }
}
