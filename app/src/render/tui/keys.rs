//! From the events of a terminal to the keys that the view knows. All others are nothing.

use crossterm::event::{Event, KeyCode, KeyModifiers};

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
    ("Esc", "back; leaves a run of this process that has ended"),
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

/// A paste with more characters is cut.
const LONGEST_PASTE: usize = 16 * 1024;

/// A key together with Alt is two, as terminals send it: Escape, and the key.
pub(crate) fn keys_of(event: Event) -> Vec<Key> {
    match event {
        Event::Paste(text) => vec![Key::Paste(text.chars().take(LONGEST_PASTE).collect())],
        Event::Key(key) if key.is_press() => {
            let alt = key.modifiers.contains(KeyModifiers::ALT).then_some(Key::Esc);
            let known = key_of(key.code, key.modifiers.contains(KeyModifiers::CONTROL));
            alt.into_iter().chain(known).collect()
        }
        Event::Key(_) | Event::Mouse(_) | Event::Resize(..) | Event::FocusGained | Event::FocusLost => {
            Vec::new()
        }
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the view knows few of the keys there are")]
fn key_of(code: KeyCode, control: bool) -> Option<Key> {
    match code {
        // A line feed and an old terminal's backspace come as these.
        KeyCode::Char('j') if control => Some(Key::Enter),
        KeyCode::Char('h') if control => Some(Key::Backspace),
        KeyCode::Char(c) => (!control && !c.is_control()).then_some(Key::Char(c)),
        KeyCode::Enter => Some(Key::Enter),
        KeyCode::Esc => Some(Key::Esc),
        KeyCode::Tab => Some(Key::Tab),
        KeyCode::BackTab => Some(Key::BackTab),
        KeyCode::Backspace => Some(Key::Backspace),
        KeyCode::Up => Some(Key::Up),
        KeyCode::Down => Some(Key::Down),
        KeyCode::Left => Some(Key::Left),
        KeyCode::Right => Some(Key::Right),
        KeyCode::PageUp => Some(Key::PageUp),
        KeyCode::PageDown => Some(Key::PageDown),
        KeyCode::Home => Some(Key::Home),
        KeyCode::End => Some(Key::End),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

    use super::{Key, LONGEST_PASTE, keys_of};

    #[test]
    fn events_become_the_keys_of_the_view() {
        let press = |code, modifiers| Event::Key(KeyEvent::new(code, modifiers));
        let none = KeyModifiers::NONE;
        let released = KeyEvent::new_with_kind(KeyCode::Char('q'), none, KeyEventKind::Release);
        let rows: [(Event, &[Key]); 11] = [
            (press(KeyCode::Char('q'), none), &[Key::Char('q')]),
            (press(KeyCode::Char('Ü'), KeyModifiers::SHIFT), &[Key::Char('Ü')]),
            (press(KeyCode::Up, KeyModifiers::CONTROL), &[Key::Up]),
            (press(KeyCode::BackTab, KeyModifiers::SHIFT), &[Key::BackTab]),
            (press(KeyCode::Char('s'), KeyModifiers::ALT), &[Key::Esc, Key::Char('s')]),
            (press(KeyCode::Char('s'), KeyModifiers::CONTROL), &[]),
            (press(KeyCode::Char('j'), KeyModifiers::CONTROL), &[Key::Enter]),
            (press(KeyCode::Char('h'), KeyModifiers::CONTROL), &[Key::Backspace]),
            (press(KeyCode::F(1), none), &[]),
            (Event::Key(released), &[]),
            (Event::Resize(80, 24), &[]),
        ];
        for (event, keys) in rows {
            assert_eq!(keys_of(event.clone()), keys, "{event:?}");
        }
    }

    #[test]
    fn a_paste_is_one_key_of_bounded_length() {
        assert_eq!(keys_of(Event::Paste("s\ry".to_owned())), [Key::Paste("s\ry".to_owned())]);
        let cut = keys_of(Event::Paste("ü".repeat(LONGEST_PASTE + 1)));
        assert_eq!(cut, [Key::Paste("ü".repeat(LONGEST_PASTE))]);
    }
}
