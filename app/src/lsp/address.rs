//! Addresses of files, as editors write them.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use archeflow_host::platform::files;
use lsp_types::Uri;

/// The path in a `file` address of this machine.
pub(super) fn path_of(uri: &str) -> Option<PathBuf> {
    let (scheme, rest) = uri.split_once("://")?;
    if !scheme.eq_ignore_ascii_case("file") {
        return None;
    }
    let (host, _) = rest.split_once('/')?;
    if !host.is_empty() && !host.eq_ignore_ascii_case("localhost") {
        return None;
    }
    let path = rest[host.len()..].split(['?', '#']).next().unwrap_or_default();
    let bytes = decoded(path)?;
    (!bytes.contains(&0)).then(|| files::path(bytes))
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| (byte? as char).to_digit(16);
        let (high, low) = (digit(rest.next())?, digit(rest.next())?);
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    Some(bytes)
}

/// The address of a file.
pub(super) fn uri_of(path: &Path) -> Option<Uri> {
    let mut uri = "file://".to_owned();
    for byte in files::bytes(path) {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(char::from(*byte));
            }
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    Uri::from_str(&uri).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u_16_addresses_of_files_and_nothing_else_are_paths() {
        for (uri, path) in [
            ("file:///a/b.rs", Some("/a/b.rs")),
            ("FILE://localhost/a%20b/%F0%9F%98%80#x", Some("/a b/😀")),
            ("file:///c%3A/x?y=1", Some("/c:/x")),
            ("file://other/a", None),
            ("file:///a%2", None),
            ("file:///a%zz", None),
            ("file:///a%00b", None),
            ("untitled:Untitled-1", None),
            ("git:///a", None),
            ("file:", None),
            ("", None),
        ] {
            assert_eq!(path_of(uri), path.map(PathBuf::from), "{uri}");
        }
        let odd = files::path(b"/a b/\xff%#?\xc3\xa4.rs".to_vec());
        let uri = uri_of(&odd).map(|uri| uri.as_str().to_owned()).unwrap_or_default();
        assert_eq!(uri, "file:///a%20b/%FF%25%23%3F%C3%A4.rs");
        assert_eq!(path_of(&uri), Some(odd));
    }
}
