//! Files named in running text.

/// Endings that make a word a file even without a folder before it: `user.name` is none.
const ENDINGS: [&str; 56] = [
    "rs", "py", "ts", "tsx", "js", "jsx", "mjs", "go", "java", "kt", "rb", "php", "c", "h", "cc", "cpp",
    "hpp", "cs", "swift", "scala", "sh", "sql", "md", "rst", "json", "yaml", "yml", "toml", "html", "css",
    "scss", "vue", "svelte", "ex", "exs", "erl", "hs", "ml", "lua", "proto", "graphql", "tf", "gradle",
    "xml", "txt", "cfg", "ini", "lock", "ipynb", "jl", "dart", "zig", "pl", "tex", "csv", "hcl",
];

/// Calls back with every file a line names, as it is written.
pub(super) fn each<'a>(line: &'a str, mut found: impl FnMut(&'a str)) {
    let bytes = line.as_bytes();
    let mut done = 0;
    for (dot, _) in line.match_indices('.') {
        let ending = bytes.iter().skip(dot + 1).take(9).take_while(|b| b.is_ascii_alphanumeric()).count();
        if dot < done || ending == 0 || ending > 8 || !bytes.get(dot + 1).is_some_and(u8::is_ascii_alphabetic)
        {
            continue;
        }
        let end = dot + 1 + ending;
        let more =
            bytes.get(end).is_some_and(|b| matches!(b, b'_' | b'(' | b'/' | b'.') && !ends_here(bytes, end));
        let start = bytes.iter().take(dot).rposition(|b| !is_path(*b)).map_or(done, |at| (at + 1).max(done));
        let path = line.get(start..end).unwrap_or_default();
        let foreign =
            line.get(..start).is_some_and(|before| before.ends_with("://") || before.ends_with(':'));
        let known =
            line.get(dot + 1..end).is_some_and(|ending| ENDINGS.contains(&ending)) || path.contains('/');
        if start < dot && known && !more && !(foreign && path.starts_with('/')) {
            found(path);
            done = end;
        }
    }
}

/// A full stop behind a file ends the sentence, not the name.
fn ends_here(bytes: &[u8], at: usize) -> bool {
    bytes.get(at) == Some(&b'.') && bytes.get(at + 1).is_none_or(|b| !b.is_ascii_alphanumeric())
}

fn is_path(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'/' | b'.' | b'@' | b'+') || byte >= 0x80
}
