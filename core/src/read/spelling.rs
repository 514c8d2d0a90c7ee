//! Paths as agents write them: plain, in quotation marks, with git's escapes, with blanks in them.

use super::text::{head, tail};
use crate::text::{quote_path, quoted_end, unescape_letters, unquote_path};

/// A path with its escapes and quotation marks taken away, and whether it was quoted: inside of quotation marks a
/// backslash is part of the name or an escape, elsewhere it is what Windows has between folders.
pub(super) fn unescaped(path: &str) -> (Vec<u8>, bool) {
    let path = path.trim();
    let quoted = Some(path).filter(|path| path.starts_with('"')).and_then(unquote_path);
    match quoted {
        Some(bytes) => (bytes, true),
        None => {
            let plain = path.trim_matches('"');
            (unescape_letters(plain).unwrap_or_else(|| plain.replace('\\', "/")).into_bytes(), false)
        }
    }
}

/// The one text a path has in the log.
pub(super) fn written(path: &[u8]) -> String {
    quote_path(path)
}

/// The quoted path at the beginning of a text, with its quotation marks, and the rest.
pub(super) fn quoted(text: &str) -> Option<(&str, &str)> {
    let end = quoted_end(text)?;
    let path = head(text, end);
    let says_something = path.len() > 2 && (path.contains('/') || path.contains('.'));
    says_something.then(|| (path, tail(text, end)))
}

/// Words that join two paths and are rarely part of one.
const JOINING: [&str; 12] =
    ["and", "or", "in", "at", "to", "from", "vs", "with", "for", "und", "near", "line"];

/// How many blanks a name may have that is not quoted.
const BLANKS: usize = 5;

/// The end of a path with blanks in it at the beginning of a text: `src/my file.py:3`. The first word has a slash and
/// no ending of a file, a later one has such an ending, and no word in between joins two things.
pub(super) fn with_blanks(text: &str, has_ending: impl Fn(&str) -> bool) -> Option<usize> {
    let first = text.split_whitespace().next()?;
    let begins = text.starts_with(first) && first.contains('/') && !first.starts_with('/');
    if !begins || first.contains([':', ',', ';', '(', '`', '"', '|']) || has_ending(first) {
        return None;
    }
    let mut at = first.len();
    for _ in 0..BLANKS {
        let rest = tail(text, at);
        let word = rest.strip_prefix(' ')?.split(' ').next().filter(|word| !word.is_empty())?;
        let joins = JOINING.iter().any(|known| word.eq_ignore_ascii_case(known));
        let bare = word.trim_end_matches([',', ';', ':', '.']);
        let path = bare.split_once(':').map_or(bare, |(path, _)| path);
        if joins || path.is_empty() || path.contains(['(', ')', '`', '"', '|', '=', ',', ';']) {
            return None;
        }
        if has_ending(path) {
            return Some(at + 1 + bare.len());
        }
        if bare.len() < word.len() {
            return None;
        }
        at += 1 + word.len();
    }
    None
}
