//! The words in a part that are the program's own, and other people's lines made short and readable.

use super::{File, FileSummary, PendingLine};
use crate::rules::filekind::{FileKind, Treatment};
use crate::text::{quote_path, unquote_path};

/// Bytes of a header line that are read, for the path in it.
pub(super) const LONGEST_HEADER: usize = 20_000;

/// A line as it is shown, and how many bytes of it are not.
pub(super) struct Shortened {
    pub(super) text: String,
    pub(super) hidden: u64,
}

/// At most `most` bytes of a line, which has `more` bytes beyond those given. What is not UTF-8 is shown as such.
pub(super) fn shortened(bytes: &[u8], most: usize, more: u64) -> Shortened {
    if let Some(text) = std::str::from_utf8(bytes).ok().filter(|text| text.len() <= most && more == 0) {
        return Shortened { text: text.to_owned(), hidden: 0 };
    }
    let (mut text, mut read) = (String::new(), 0);
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if text.len() + c.len_utf8() > most {
                return cut(text, (bytes.len() - read) as u64 + more);
            }
            text.push(c);
            read += c.len_utf8();
        }
        if chunk.invalid().is_empty() {
            continue;
        }
        if text.len() + char::REPLACEMENT_CHARACTER.len_utf8() > most {
            return cut(text, (bytes.len() - read) as u64 + more);
        }
        text.push(char::REPLACEMENT_CHARACTER);
        read += chunk.invalid().len();
    }
    if more > 0 { cut(text, more) } else { Shortened { text, hidden: 0 } }
}

fn cut(mut text: String, hidden: u64) -> Shortened {
    text.push_str(&format!("[archeflow: {hidden} bytes of this line are not shown]"));
    Shortened { text, hidden }
}

/// The path a header is about, as the log writes it: the new one, or the old one of a deleted file.
pub(super) fn path(header: &[PendingLine]) -> String {
    let named = |prefix: &[u8]| header.iter().find_map(|line| line.kept.strip_prefix(prefix));
    if let Some(name) = named(b"rename to ").or_else(|| named(b"copy to ")) {
        return written(name);
    }
    let Some(both) = named(b"diff --git ") else { return String::new() };
    same_name(both).unwrap_or_else(|| written(both))
}

/// `a/x b/x`, and `"a/\303" "b/\303"`: the same name twice, which may itself hold spaces.
fn same_name(both: &[u8]) -> Option<String> {
    let half = both.len().checked_sub(1)? / 2;
    let (one, other) = (both.get(..half)?, both.get(half + 1..)?);
    let bare = |side: &[u8], letter: u8| -> Option<Vec<u8>> {
        match side.strip_prefix(b"\"") {
            Some(quoted) => Some([b"\"", quoted.strip_prefix(&[letter, b'/'])?].concat()),
            None => Some(side.strip_prefix(&[letter, b'/'])?.to_vec()),
        }
    };
    let (one, other) = (bare(one, b'a')?, bare(other, b'b')?);
    (one == other).then(|| written(&other))
}

/// Git's name of a path, which may be quoted, as the log writes it.
fn written(name: &[u8]) -> String {
    let quoted = std::str::from_utf8(name).ok().filter(|name| name.starts_with('"'));
    quote_path(&quoted.and_then(unquote_path).unwrap_or_else(|| name.to_vec()))
}

/// Where a header names one path.
const NAMING: [&[u8]; 6] = [b"--- ", b"+++ ", b"rename from ", b"rename to ", b"copy from ", b"copy to "];

/// A line of a header in which a path that is no UTF-8 is written as in the log.
pub fn readable_header(line: &[u8]) -> Vec<u8> {
    if std::str::from_utf8(line).is_ok() {
        return line.to_vec();
    }
    let bare = line.strip_suffix(b"\t").unwrap_or(line);
    for prefix in NAMING {
        if let Some(name) = bare.strip_prefix(prefix) {
            return [prefix, quote_path(name).as_bytes()].concat();
        }
    }
    let prefix = b"diff --git ".as_slice();
    let halves = bare.strip_prefix(prefix).and_then(|both| {
        let half = both.len().checked_sub(1)? / 2;
        Some((both.get(..half)?, both.get(half + 1..)?))
    });
    match halves.filter(|(one, other)| one.get(2..) == other.get(2..)) {
        Some((one, other)) => {
            [prefix, quote_path(one).as_bytes(), b" ", quote_path(other).as_bytes()].concat()
        }
        None => String::from_utf8_lossy(line).into_owned().into_bytes(),
    }
}

/// The note in place of lines that are not shown.
pub(super) fn not_shown(kind: FileKind, file: &File) -> String {
    let counts = format!("+{} -{} lines", file.added, file.deleted);
    match file.treatment {
        Some(Treatment::Head(lines)) => format!(
            "[archeflow: {} file, {counts}; the first {lines} changed lines are shown, {} are not]",
            kind.name(),
            file.hidden
        ),
        Some(Treatment::Summary) if kind == FileKind::Binary => {
            "[archeflow: binary file; its content is not shown]".to_owned()
        }
        Some(Treatment::Summary | Treatment::Whole) | None => {
            format!("[archeflow: {} file, {counts}; summarised, its lines are not shown]", kind.name())
        }
    }
}

/// A file in the list of those that are not shown in full.
pub(super) fn one_line(path: &str, file: &FileSummary) -> String {
    match file.kind {
        FileKind::Binary => format!("  {path} (binary)"),
        FileKind::Plain | FileKind::Lock | FileKind::Vendored | FileKind::Generated | FileKind::Minified => {
            format!("  {path} ({}, +{} -{})", file.kind.name(), file.added, file.deleted)
        }
    }
}

/// Files that are not shown in full and are named at the beginning of the first part.
const NAMED: usize = 200;

/// What a part begins with.
pub(super) fn preamble(number: u32, summarised: &[String], room: usize) -> String {
    let mut text = format!("Part {number}.\n");
    if summarised.is_empty() {
        text.push('\n');
        return text;
    }
    if number > 1 {
        let files = summarised.len();
        text.push_str(&format!(
            "Files of this change that are not shown in full: {files}, named in part 1.\n\n"
        ));
        return text;
    }
    text.push_str("Not shown in full because they are generated; each is mentioned again in its place:\n");
    let mut named = 0;
    for line in summarised.iter().take(NAMED) {
        if text.len() + line.len() > room {
            break;
        }
        text.push_str(line);
        text.push('\n');
        named += 1;
    }
    if named < summarised.len() {
        text.push_str(&format!("  and {} more: see the plan\n", summarised.len() - named));
    }
    text.push('\n');
    text
}
