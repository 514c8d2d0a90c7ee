//! Path names as git shows them (`core.quotePath`): one line each, plain when harmless, otherwise a C string.

/// Quotes a path exactly as git does with `core.quotePath=true`.
pub fn quote_path(path: &[u8]) -> String {
    if path.iter().all(|&byte| is_plain(byte)) {
        return path.iter().map(|&byte| char::from(byte)).collect();
    }
    let mut out = String::with_capacity(path.len() + 8);
    out.push('"');
    for &byte in path {
        push_escaped(&mut out, byte);
    }
    out.push('"');
    out
}

/// The inverse of [`quote_path`]; `None` when the text is not a well-formed quoted path.
pub fn unquote_path(text: &str) -> Option<Vec<u8>> {
    let Some(inner) = text.strip_prefix('"') else {
        return Some(text.as_bytes().to_vec());
    };
    let mut rest = inner.strip_suffix('"')?.as_bytes().iter().copied();
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

fn is_plain(byte: u8) -> bool {
    matches!(byte, 0x20..=0x7e) && byte != b'"' && byte != b'\\'
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
        plain if is_plain(plain) => return out.push(char::from(plain)),
        other => return out.push_str(&format!("\\{other:03o}")),
    };
    out.push('\\');
    out.push(letter);
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
