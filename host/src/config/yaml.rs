//! A strict reader for the small part of YAML that configuration needs.
//!
//! Accepted: one document of mappings, lists and scalars, in block or flow style, with comments. Refused: anchors,
//! aliases, tags, merge keys, directives, duplicate keys, keys that aren't plain words, further documents, more than
//! [`MOST_BYTES`] or [`MOST_DEEP`], and text that isn't UTF-8 or holds characters a person can't see.
//!
//! Scalars stay text: the table of keys decides what a value is, never the value's looks. So `no` is the text
//! `no` everywhere, `1.10` keeps its zero, and no number is ever rounded.

use std::collections::BTreeMap;

use serde_saphyr::granit_parser::{
    ErrorKind, Event as YamlEvent, Marker, Parser, ScalarStyle, ScanError, options,
};

use super::{Fault, shown};

pub const MOST_BYTES: usize = 64 * 1024;
pub const MOST_DEEP: usize = 16;

/// A value and where it begins, both counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct YamlNode {
    pub value: Value,
    pub line: u32,
    pub column: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Nothing behind the colon, or an unquoted `~` or `null`.
    Nothing,
    Scalar(String),
    List(Vec<YamlNode>),
    Map(Vec<YamlEntry>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct YamlEntry {
    pub key: String,
    pub line: u32,
    pub column: u32,
    pub value: YamlNode,
}

/// Reads a file of keys and values. A file of comments, or of nothing, has no entries.
pub fn read(path: &str, bytes: &[u8]) -> Result<Vec<YamlEntry>, Fault> {
    let text = text(path, bytes)?;
    match root(path, text)? {
        None | Some(YamlNode { value: Value::Nothing, .. }) => Ok(Vec::new()),
        Some(YamlNode { value: Value::Map(entries), .. }) => Ok(entries),
        Some(YamlNode { value: Value::Scalar(_) | Value::List(_), line, column }) => {
            Err(fault(path, (line, column), "expected `key: value` lines".to_owned()))
        }
    }
}

/// The bytes as text that holds nothing unseen. A byte order mark at the start is what some editors write, and harmless.
fn text<'a>(path: &str, bytes: &'a [u8]) -> Result<&'a str, Fault> {
    if bytes.len() > MOST_BYTES {
        let text = format!("the file has {} bytes; at most {MOST_BYTES} are read", bytes.len());
        return Err(fault(path, (0, 0), text));
    }
    let text = str::from_utf8(bytes).map_err(|error| {
        let line = 1 + bytes.iter().take(error.valid_up_to()).filter(|byte| **byte == b'\n').count();
        fault(path, (small(line), 0), "the file is not UTF-8 text".to_owned())
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (n, line) in text.split('\n').enumerate() {
        let line = line.strip_suffix('\r').unwrap_or(line);
        if let Some((column, c)) = line.chars().enumerate().find(|(_, c)| unseen(*c) && *c != '\t') {
            let at = (small(n + 1), small(column + 1));
            return Err(fault(path, at, format!("the character U+{:04X} is not accepted", u32::from(c))));
        }
    }
    Ok(text)
}

fn unseen(c: char) -> bool {
    archeflow_core::text::is_unsafe(c)
}

/// An open list or mapping.
enum Open {
    List(Vec<YamlNode>),
    Map { entries: Vec<YamlEntry>, lines: BTreeMap<String, u32>, key: Option<(String, u32, u32)> },
}

/// One pass over the events of the parser, with a stack of our own, so that depth costs no call stack.
fn root(path: &str, text: &str) -> Result<Option<YamlNode>, Fault> {
    let limits = options! {
        disallow_directives: true,
        emit_unresolved_aliases: true,
        emit_comments: false,
        flow_nesting_limit: MOST_DEEP,
        block_nesting_limit: MOST_DEEP,
    };
    let mut reader = Reader { path, open: Vec::new(), root: None };
    let mut documents = 0;
    for event in Parser::new_from_str_with_options(text, limits) {
        let (event, span) = event.map_err(|error| scan_fault(path, &error))?;
        let at = position(&span.start);
        let refuse = |what: &str| Err(fault(path, at, what.to_owned()));
        if event.anchor_id().is_some() {
            return refuse(ANCHOR);
        }
        if event.tag().is_some() {
            return refuse("tags (`!name`) are not accepted");
        }
        match event {
            YamlEvent::StreamStart | YamlEvent::StreamEnd | YamlEvent::DocumentEnd => {}
            YamlEvent::DocumentStart(..) => {
                documents += 1;
                if documents > 1 {
                    return refuse("a second document (`---`) is not accepted");
                }
            }
            YamlEvent::Anchor(..) => return refuse(ANCHOR),
            YamlEvent::Alias(_) | YamlEvent::UnresolvedAlias(_) => {
                return refuse("aliases (`*name`) are not accepted");
            }
            YamlEvent::Scalar(text, style, ..) => reader.scalar(&text, style, at)?,
            YamlEvent::SequenceStart(..) => reader.open(Open::List(Vec::new()), at)?,
            YamlEvent::MappingStart(..) => {
                reader.open(Open::Map { entries: Vec::new(), lines: BTreeMap::new(), key: None }, at)?;
            }
            YamlEvent::SequenceEnd | YamlEvent::MappingEnd => reader.close()?,
            _ => return refuse("this part of YAML is not accepted"),
        }
    }
    Ok(reader.root)
}

const ANCHOR: &str = "anchors (`&name`) are not accepted";

struct Reader<'a> {
    path: &'a str,
    /// What is open, outermost first, and where it began.
    open: Vec<(Open, (u32, u32))>,
    root: Option<YamlNode>,
}

impl Reader<'_> {
    fn scalar(&mut self, text: &str, style: ScalarStyle, at: (u32, u32)) -> Result<(), Fault> {
        if let Some(c) = text.chars().find(|c| unseen(*c) && !matches!(c, '\n' | '\t')) {
            return Err(fault(
                self.path,
                at,
                format!("the character U+{:04X} is not accepted", u32::from(c)),
            ));
        }
        let plain = matches!(style, ScalarStyle::Plain);
        let nothing = plain && matches!(text, "" | "~" | "null" | "Null" | "NULL");
        if let Some((Open::Map { entries: _, lines, key: key @ None }, _)) = self.open.last_mut() {
            if nothing || text.is_empty() {
                return Err(fault(self.path, at, "a key without a name".to_owned()));
            }
            check_key(self.path, text, at)?;
            if let Some(first) = lines.insert(text.to_owned(), at.0) {
                let text = format!("the key `{}` is already set in line {first}", shown(text));
                return Err(fault(self.path, at, text));
            }
            *key = Some((text.to_owned(), at.0, at.1));
            return Ok(());
        }
        self.put(if nothing { Value::Nothing } else { Value::Scalar(text.to_owned()) }, at);
        Ok(())
    }

    fn open(&mut self, what: Open, at: (u32, u32)) -> Result<(), Fault> {
        if let Some((Open::Map { key: None, .. }, _)) = self.open.last() {
            return Err(fault(self.path, at, "a list or mapping can't be a key".to_owned()));
        }
        if self.open.len() >= MOST_DEEP {
            return Err(fault(self.path, at, too_deep()));
        }
        self.open.push((what, at));
        Ok(())
    }

    fn close(&mut self) -> Result<(), Fault> {
        let Some((closed, at)) = self.open.pop() else {
            return Err(fault(self.path, (0, 0), "an end without a beginning".to_owned()));
        };
        let value = match closed {
            Open::List(items) => Value::List(items),
            Open::Map { entries, .. } => Value::Map(entries),
        };
        self.put(value, at);
        Ok(())
    }

    fn put(&mut self, value: Value, (line, column): (u32, u32)) {
        let node = YamlNode { value, line, column };
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some((Open::List(items), _)) => items.push(node),
            Some((Open::Map { entries, key, .. }, _)) => {
                if let Some((key, line, column)) = key.take() {
                    entries.push(YamlEntry { key, line, column, value: node });
                }
            }
        }
    }
}

/// Keys are plain ASCII words. A letter that only looks like another can't hide in a key.
fn check_key(path: &str, key: &str, at: (u32, u32)) -> Result<(), Fault> {
    if key == "<<" {
        return Err(fault(path, at, "merge keys (`<<`) are not accepted".to_owned()));
    }
    match key.chars().find(|c| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '-' | '.')) {
        None => Ok(()),
        Some(c) => {
            let key = shown(key);
            let text = format!(
                "the key `{key}` holds the character U+{:04X}; keys are made of a to z, 0 to 9, `_` and `-`",
                u32::from(c)
            );
            Err(fault(path, at, text))
        }
    }
}

fn scan_fault(path: &str, error: &ScanError) -> Fault {
    let at = position(error.marker());
    if matches!(error.kind(), ErrorKind::RecursionLimitExceeded) {
        return fault(path, at, too_deep());
    }
    if matches!(error.kind(), ErrorKind::DirectiveDisallowed) {
        return fault(path, at, "directives (`%`) are not accepted".to_owned());
    }
    fault(path, at, format!("not readable as YAML: {}", error.kind()))
}

fn too_deep() -> String {
    format!("nested deeper than {MOST_DEEP} levels")
}

fn position(mark: &Marker) -> (u32, u32) {
    (small(mark.line()), small(mark.col() + 1))
}

/// Positions in 64 KB always fit.
fn small(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

fn fault(path: &str, (line, column): (u32, u32), text: String) -> Fault {
    Fault { path: path.to_owned(), line, column, text }
}
