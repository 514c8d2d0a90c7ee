//! The entry in OpenCode's `opencode.json`, which may have comments and commas before a closing bracket.
//!
//! Comments are blanked out, so that what remains is JSON and every byte keeps its place. The entry is put into the text
//! there; whether the result says what it should is checked by reading it again.

use serde_json::{Value, json};

/// What a file that does not exist yet gets.
pub(super) const NEW_FILE: &str = include_str!("../../../plugin/opencode/opencode.json");

const MEMBER: &str = r#""archeflow": { "type": "local", "command": ["archeflow", "mcp"], "enabled": true }"#;

/// The text with the entry. An entry that is there already is the user's, whatever it says.
pub(super) fn add(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Ok(NEW_FILE.to_owned());
    }
    let (plain, mut wanted) = read(text)?;
    let plain = plain.as_bytes();
    let root = start(plain)?;
    let (at, member, indent) = match member(plain, root, "mcp") {
        Some(servers) if plain[servers.value] != b'{' => return Err("`mcp` is not an object".to_owned()),
        Some(servers) if self::member(plain, servers.value, "archeflow").is_some() => {
            return Ok(text.to_owned());
        }
        Some(servers) => (servers.value, MEMBER.to_owned(), "    "),
        None => (root, format!("\"mcp\": {{\n    {MEMBER}\n  }}"), "  "),
    };
    let outer = &indent[2..];
    let is_empty = plain.get(skip_blank(plain, at + 1)) == Some(&b'}');
    let behind = if is_empty { format!("\n{outer}") } else { ",".to_owned() };
    let after = format!("{}\n{indent}{member}{behind}{}", &text[..=at], &text[at + 1..]);
    wanted["mcp"]["archeflow"] = json!({ "type": "local", "command": ["archeflow", "mcp"], "enabled": true });
    checked(after, &wanted, "add")
}

/// The text without the entry, whatever it says.
pub(super) fn remove(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Ok(text.to_owned());
    }
    let (plain, mut wanted) = read(text)?;
    let plain = plain.as_bytes();
    let servers = member(plain, start(plain)?, "mcp").filter(|servers| plain[servers.value] == b'{');
    let found = servers.and_then(|servers| member(plain, servers.value, "archeflow"));
    let Some(found) = found else { return Ok(text.to_owned()) };
    // Commas are looked for where those before a bracket are still to be seen.
    let commented = without_comments(text)?;
    let commented = commented.as_bytes();
    let (mut from, mut to) = (found.key, found.end);
    let behind = skip_blank(commented, to);
    let before = commented[..from].iter().rposition(|byte| !byte.is_ascii_whitespace());
    if commented.get(behind) == Some(&b',') {
        to = behind + 1;
    } else if let Some(before) = before.filter(|before| commented[*before] == b',') {
        from = before;
    }
    // The line's own beginning goes with it.
    let blank = text[..from].trim_end_matches([' ', '\t']);
    let from = if blank.ends_with('\n') { blank.len() - 1 } else { from };
    let after = format!("{}{}", &text[..from], &text[to..]);
    if let Some(servers) = wanted.get_mut("mcp").and_then(Value::as_object_mut) {
        servers.remove("archeflow");
    }
    checked(after, &wanted, "remove")
}

fn checked(after: String, wanted: &Value, what: &str) -> Result<String, String> {
    match read(&after) {
        Ok((_, value)) if value == *wanted => Ok(after),
        Ok(_) | Err(_) => Err(format!("it is written in a way that this program can't {what} an entry in")),
    }
}

/// The text as plain JSON of the same length, and what it says.
fn read(text: &str) -> Result<(String, Value), String> {
    let mut plain = without_comments(text)?.into_bytes();
    let mut at = 0;
    while at < plain.len() {
        match plain[at] {
            b'"' => at = string_end(&plain, at),
            b',' if matches!(plain.get(skip_blank(&plain, at + 1)), Some(b'}' | b']')) => {
                plain[at] = b' ';
                at += 1;
            }
            _ => at += 1,
        }
    }
    let plain = String::from_utf8(plain).map_err(|error| error.to_string())?;
    let value: Value = serde_json::from_str(&plain).map_err(|error| error.to_string())?;
    if value.is_object() { Ok((plain, value)) } else { Err("it is not an object".to_owned()) }
}

fn without_comments(text: &str) -> Result<String, String> {
    let mut bytes = text.as_bytes().to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = match (bytes[at], bytes.get(at + 1)) {
            (b'"', _) => {
                at = string_end(&bytes, at);
                continue;
            }
            (b'/', Some(b'/')) => {
                bytes[at..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |n| at + n)
            }
            (b'/', Some(b'*')) => {
                let close = text[at + 2..].find("*/").ok_or("a comment has no end")?;
                at + 2 + close + 2
            }
            _ => {
                at += 1;
                continue;
            }
        };
        bytes[at..end].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
        at = end;
    }
    String::from_utf8(bytes).map_err(|error| error.to_string())
}

/// A member of an object: where its key begins, its value begins, and behind it.
struct Member {
    key: usize,
    value: usize,
    end: usize,
}

/// The member of this name in the object that opens here. The text is known to be JSON.
fn member(plain: &[u8], open: usize, name: &str) -> Option<Member> {
    let (mut depth, mut at) = (0_usize, open);
    while at < plain.len() {
        match plain[at] {
            b'"' => {
                let end = string_end(plain, at);
                let colon = skip_blank(plain, end);
                let is_key = depth == 1 && plain.get(colon) == Some(&b':');
                if is_key && plain.get(at + 1..end - 1) == Some(name.as_bytes()) {
                    let value = skip_blank(plain, colon + 1);
                    return (value < plain.len()).then(|| Member {
                        key: at,
                        value,
                        end: value_end(plain, value),
                    });
                }
                at = end;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth <= 1 => return None,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
    None
}

fn start(plain: &[u8]) -> Result<usize, String> {
    plain.iter().position(|byte| *byte == b'{').ok_or_else(|| "it is not an object".to_owned())
}

fn value_end(plain: &[u8], value: usize) -> usize {
    let (mut depth, mut at) = (0_usize, value);
    while at < plain.len() {
        match plain[at] {
            b'"' => {
                at = string_end(plain, at);
                if depth == 0 {
                    return at;
                }
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 0 => return at,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            b',' if depth == 0 => return at,
            _ => {}
        }
        at += 1;
    }
    at
}

/// Behind the string that begins here.
fn string_end(bytes: &[u8], from: usize) -> usize {
    let mut at = from + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn skip_blank(bytes: &[u8], from: usize) -> usize {
    let from = from.min(bytes.len());
    from + bytes[from..].iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}
