//! Paths of a repository as text: in the log, on screens, in prompts and in what agents write.
//!
//! A path is bytes. It is written as it is where it is UTF-8 without control characters, quotation marks and
//! backslashes; otherwise as a C string in quotation marks, as git writes it with `core.quotePath=false`. Only bytes
//! that are no UTF-8 differ from git, which prints them raw: they are escaped (`"caf\351.txt"`), so every path has
//! one text, and the text leads back to the same bytes.

use std::borrow::Cow;

use unicode_normalization::{UnicodeNormalization, is_nfc};

/// The text of a path.
pub fn quote_path(path: &[u8]) -> String {
    let is_plain = |c: char| !c.is_ascii_control() && c != '"' && c != '\\';
    if let Some(text) = std::str::from_utf8(path).ok().filter(|text| text.chars().all(is_plain)) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(path.len() + 8);
    out.push('"');
    for chunk in path.utf8_chunks() {
        for c in chunk.valid().chars() {
            match u8::try_from(c).ok().filter(u8::is_ascii) {
                Some(byte) => push_escaped(&mut out, byte),
                None => out.push(c),
            }
        }
        for byte in chunk.invalid() {
            push_octal(&mut out, *byte);
        }
    }
    out.push('"');
    out
}

/// The path of a text, also as git writes it with `core.quotePath=true`; `None` when a quoted text is not well formed.
pub fn unquote_path(text: &str) -> Option<Vec<u8>> {
    match text.strip_prefix('"') {
        None => Some(text.as_bytes().to_vec()),
        Some(inner) => unescaped(inner.strip_suffix('"')?),
    }
}

/// Where the C string at the beginning of a text ends, behind its closing quotation mark.
pub fn quoted_end(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.strip_prefix('"')?.char_indices().find_map(|(at, c)| {
        let closes = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        closes.then_some(at + 2)
    })
}

/// `gr\303\266\303\237e.py`, git's escapes without the quotation marks, where all backslashes are such escapes
/// and what they say is UTF-8. Anything else with backslashes may be a path of Windows.
pub fn unescape_letters(text: &str) -> Option<String> {
    let escapes = |rest: &str| {
        let digits = rest.as_bytes().get(..3)?;
        (matches!(digits[0], b'2' | b'3') && digits.iter().all(|d| (b'0'..=b'7').contains(d))).then_some(())
    };
    let mut after = text.split('\\').skip(1).peekable();
    after.peek()?;
    if !after.all(|rest| escapes(rest).is_some()) {
        return None;
    }
    String::from_utf8(unescaped(text)?).ok()
}

/// What two texts of one path have in common, for comparing only: without quotation marks, with slashes, and with
/// composed letters (`ö` may be written as one character or as `o` and a mark).
pub fn path_key(text: &str) -> Cow<'_, str> {
    if text.is_ascii() && !text.starts_with('"') && !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let plain = plain_path(text);
    let slashes = plain.replace('\\', "/");
    Cow::Owned(if is_nfc(&slashes) { slashes } else { slashes.nfc().collect() })
}

/// A path as people write it: without quotation marks and escapes, where that is possible.
///
/// Logs of older programs escape all letters beyond ASCII; such a path stays as it is, so that their rules
/// decide as they did.
fn plain_path(text: &str) -> Cow<'_, str> {
    if !text.starts_with('"') {
        return Cow::Borrowed(text);
    }
    let own = unquote_path(text).filter(|bytes| quote_path(bytes) == text);
    match own.and_then(|bytes| String::from_utf8(bytes).ok()) {
        Some(plain) => Cow::Owned(plain),
        None => Cow::Borrowed(text.trim_matches('"')),
    }
}

fn push_escaped(out: &mut String, byte: u8) {
    let letter = match byte {
        0x07 => 'a',
        0x08 => 'b',
        b'\t' => 't',
        b'\n' => 'n',
        0x0b => 'v',
        0x0c => 'f',
        b'\r' => 'r',
        b'"' => '"',
        b'\\' => '\\',
        0x20..=0x7e => return out.push(char::from(byte)),
        other => return push_octal(out, other),
    };
    out.push('\\');
    out.push(letter);
}

fn push_octal(out: &mut String, byte: u8) {
    out.push_str(&format!("\\{byte:03o}"));
}

fn unescaped(inner: &str) -> Option<Vec<u8>> {
    let mut rest = inner.bytes();
    let mut out = Vec::with_capacity(inner.len());
    while let Some(byte) = rest.next() {
        match byte {
            b'"' => return None,
            b'\\' => out.push(unescape(&mut rest)?),
            plain => out.push(plain),
        }
    }
    Some(out)
}

fn unescape(rest: &mut impl Iterator<Item = u8>) -> Option<u8> {
    Some(match rest.next()? {
        b'a' => 0x07,
        b'b' => 0x08,
        b't' => b'\t',
        b'n' => b'\n',
        b'v' => 0x0b,
        b'f' => 0x0c,
        b'r' => b'\r',
        same @ (b'"' | b'\\') => same,
        first @ b'0'..=b'3' => {
            let (second, third) = (octal(rest.next()?)?, octal(rest.next()?)?);
            (first - b'0') << 6 | second << 3 | third
        }
        _ => return None,
    })
}

fn octal(byte: u8) -> Option<u8> {
    matches!(byte, b'0'..=b'7').then(|| byte - b'0')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn j_01_every_path_has_one_text_that_leads_back_to_it() {
        let rows: [(&[u8], &str); 10] = [
            (b"src/a.rs", "src/a.rs"),
            ("src/größe.py".as_bytes(), "src/größe.py"),
            ("src/gro\u{308}ße.py".as_bytes(), "src/gro\u{308}ße.py"),
            (b"a b/c d.txt", "a b/c d.txt"),
            (b"it's.txt", "it's.txt"),
            (b"say \"hi\".txt", r#""say \"hi\".txt""#),
            (b"a\tb\nc", r#""a\tb\nc""#),
            (b"back\\slash", r#""back\\slash""#),
            (b"caf\xe9.txt", r#""caf\351.txt""#),
            (b"\x01\x7f", r#""\001\177""#),
        ];
        for (path, text) in rows {
            assert_eq!(quote_path(path), text);
            assert_eq!(unquote_path(text).as_deref(), Some(path), "{text}");
        }
        let mut all: Vec<u8> = (1..=255).collect();
        all.extend("ü漢🦀".bytes());
        assert_eq!(unquote_path(&quote_path(&all)).as_deref(), Some(all.as_slice()));
        for broken in [r#""a"#, r#""a"b""#, r#""\9""#, r#""\40""#, r#""\400""#] {
            assert_eq!(unquote_path(broken), None, "{broken}");
        }
    }

    #[test]
    fn j_01_what_git_escapes_is_read_and_windows_is_left_alone() {
        assert_eq!(
            unquote_path(r#""src/gr\303\266\303\237e.py""#).as_deref(),
            Some("src/größe.py".as_bytes())
        );
        assert_eq!(unescape_letters(r"src/gr\303\266\303\237e.py").as_deref(), Some("src/größe.py"));
        assert_eq!(unescape_letters(r"src\main.rs"), None);
        assert_eq!(unescape_letters(r"src\303.rs"), None, "half a letter");
        assert_eq!(unescape_letters("src/main.rs"), None);
    }

    #[test]
    fn j_01_one_path_has_one_key() {
        let key = path_key("src/größe.py");
        assert_eq!(path_key("src/gro\u{308}ße.py"), key);
        assert_eq!(path_key(r"src\größe.py"), key);
        assert_eq!(path_key(r#""a \"b\".py""#), "a \"b\".py");
        assert_ne!(path_key(r#""src/gr\303\266\303\237e.py""#), key, "as older programs wrote it");
        assert_ne!(path_key("src/Größe.py"), key);
    }

    #[test]
    fn the_end_of_a_quoted_text() {
        assert_eq!(quoted_end(r#""a \" b":3"#), Some(8));
        assert_eq!(quoted_end(r#""a"#), None);
        assert_eq!(quoted_end("a"), None);
    }
}
