//! The cycle file (`docs/context/current_cycle.md`): what people and other tools read and write of a loop.
//!
//! It is a rendering; only the journal counts. What we append is between two marks, which are comments that
//! no reader of Markdown shows. Each mark carries a digest of everything before it, so that the file itself shows where
//! its past was edited (PJ-32). The text after the last mark is not sealed yet: a person or another tool wrote it, and it is read.
//!
//! Anybody can compute a digest. So the host also compares the last one with its journal ([`CycleFileParts::seal`]) and, where it
//! kept the bytes, asks [`grown`]. Deliberately absent: files, and what a block means (see [`crate::strategies::agent_loop::signal`]).

mod archive;

pub use archive::{ArchiveStep, Ending, in_order, name, next_number, with_summary};

use crate::digest::sha256;
use crate::model::Speaker;
use crate::read::closed;

/// Where the chain of digests begins. It changes if the marks ever do.
const BEGINNING: &str = "archeflow cycle file 1";
const MARK: &str = "<!-- archeflow:";
const SEAL: usize = 32;

/// A file, part by part, in its order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CycleFileParts {
    pub parts: Vec<CycleFilePart>,
    /// The digest of the last mark; the beginning's where there is none.
    pub seal: String,
    /// How many blocks of ours there are.
    pub blocks: u32,
    /// The text after the last mark, and the line it begins on, counted from 1.
    pub fresh: String,
    pub fresh_line: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CycleFilePart {
    /// Between two blocks of ours: a person's, or another tool's.
    Theirs {
        line: usize,
        text: String,
    },
    Ours {
        line: usize,
        speaker: Speaker,
        text: String,
    },
}

/// Where the past is not what it was, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edited {
    pub first: usize,
    pub last: usize,
    pub what: String,
}

impl std::fmt::Display for Edited {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            out,
            "lines {} to {}: {}; put the text back, and write below the last block",
            self.first, self.last, self.what
        )
    }
}

/// Reads a file and checks its past.
pub fn parse(text: &str) -> Result<CycleFileParts, Edited> {
    let mut reader = Reader::new();
    let mut start = 0;
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        if let Some(mark) = mark(line) {
            reader.take(mark, number, text.get(reader.from..start).unwrap_or(""), start + line.len())?;
        } else if line.starts_with(MARK) {
            return Err(edited(number, number, "a mark that is none of ours"));
        }
        start += line.len();
    }
    reader.finish(text)
}

/// The file with a block of ours at its end. What was there stays as it is, byte for byte.
pub fn append(text: &str, past: &CycleFileParts, speaker: Speaker, body: &str) -> String {
    let number = past.blocks + 1;
    let line_end = if past.fresh.is_empty() || past.fresh.ends_with('\n') { "" } else { "\n" };
    let theirs = format!("{}{line_end}", past.fresh);
    let body = harmless(body);
    let opened = seal(&past.seal, &["theirs", &theirs]);
    let closed = seal(&opened, &[&number.to_string(), speaker.name(), &body]);
    format!(
        "{text}{line_end}{MARK} begin {number} {} {opened} -->\n{body}{MARK} end {number} {closed} -->\n",
        speaker.name()
    )
}

/// An agent's text that can't be taken for a mark, nor swallow what follows: whatever it opened is closed. It ends with
/// a line end.
pub fn harmless(body: &str) -> String {
    let mut text: String = body
        .split_inclusive('\n')
        .map(|line| {
            line.strip_prefix(MARK).map_or_else(|| line.to_owned(), |rest| format!("<!-- (archeflow) {rest}"))
        })
        .collect();
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&closed(&text));
    text
}

/// What was appended to a text; or where it differs first, as the line's number (PJ-32).
pub fn grown<'a>(before: &str, now: &'a str) -> Result<&'a str, usize> {
    if let Some(more) = now.strip_prefix(before) {
        return Ok(more);
    }
    let same = before.split('\n').zip(now.split('\n')).take_while(|(one, other)| one == other).count();
    Err(same + 1)
}

#[derive(Clone, Copy)]
enum Mark<'a> {
    Begin { number: u32, speaker: Speaker, seal: &'a str },
    End { number: u32, seal: &'a str },
}

fn mark(line: &str) -> Option<Mark<'_>> {
    let inner = line.strip_suffix('\n')?.strip_prefix(MARK)?.strip_suffix(" -->")?;
    let words: Vec<&str> = inner.split(' ').collect();
    let is_seal = |text: &str| text.len() == SEAL && text.bytes().all(|b| b.is_ascii_hexdigit());
    match words.as_slice() {
        ["", "begin", number, speaker, seal] if is_seal(seal) => {
            Some(Mark::Begin { number: number.parse().ok()?, speaker: Speaker::parse(speaker)?, seal })
        }
        ["", "end", number, seal] if is_seal(seal) => Some(Mark::End { number: number.parse().ok()?, seal }),
        _ => None,
    }
}

/// A digest over what was before and some texts, none of which can run into another.
fn seal(before: &str, texts: &[&str]) -> String {
    let mut message = before.to_owned();
    for text in texts {
        message.push_str(&format!("\n{} ", text.len()));
        message.push_str(text);
    }
    let digest = sha256(message.as_bytes());
    digest.iter().take(SEAL / 2).map(|byte| format!("{byte:02x}")).collect()
}

fn edited(first: usize, last: usize, what: impl Into<String>) -> Edited {
    Edited { first, last: last.max(first), what: what.into() }
}

struct Reader {
    past: CycleFileParts,
    /// Where the part at hand begins, in bytes and in lines.
    from: usize,
    line: usize,
    open: Option<(u32, Speaker)>,
}

impl Reader {
    fn new() -> Reader {
        let past = CycleFileParts { seal: seal(BEGINNING, &[]), ..CycleFileParts::default() };
        Reader { past, from: 0, line: 1, open: None }
    }

    fn take(&mut self, mark: Mark, number: usize, text: &str, after: usize) -> Result<(), Edited> {
        match mark {
            Mark::Begin { number: block, speaker, seal } => {
                self.begin(number, text, (block, speaker), seal)?;
            }
            Mark::End { number: block, seal } => self.end(number, text, block, seal)?,
        }
        self.from = after;
        self.line = number + 1;
        Ok(())
    }

    fn begin(&mut self, at: usize, text: &str, block: (u32, Speaker), found: &str) -> Result<(), Edited> {
        let (number, _) = block;
        if self.open.is_some() || number != self.past.blocks + 1 {
            let what = format!("block {number} begins where block {} was expected", self.past.blocks + 1);
            return Err(edited(at, at, what));
        }
        let expected = seal(&self.past.seal, &["theirs", text]);
        if expected != found {
            return Err(edited(self.line, at, format!("the text before block {number} was edited")));
        }
        if !text.is_empty() {
            self.past.parts.push(CycleFilePart::Theirs { line: self.line, text: text.to_owned() });
        }
        self.past.seal = expected;
        self.open = Some(block);
        Ok(())
    }

    fn end(&mut self, at: usize, text: &str, number: u32, found: &str) -> Result<(), Edited> {
        let Some((open, speaker)) = self.open.take().filter(|(open, _)| *open == number) else {
            return Err(edited(at, at, format!("block {number} ends and has not begun")));
        };
        let expected = seal(&self.past.seal, &[&open.to_string(), speaker.name(), text]);
        if expected != found {
            let what = format!("block {number}, of the {}, was edited", speaker.name());
            return Err(edited(self.line, at, what));
        }
        self.past.parts.push(CycleFilePart::Ours { line: self.line, speaker, text: text.to_owned() });
        self.past.seal = expected;
        self.past.blocks = number;
        Ok(())
    }

    fn finish(mut self, text: &str) -> Result<CycleFileParts, Edited> {
        let rest = text.get(self.from..).unwrap_or("");
        if let Some((number, speaker)) = self.open {
            let what = format!("block {number}, of the {}, has no end", speaker.name());
            return Err(edited(self.line, self.line + rest.lines().count(), what));
        }
        self.past.fresh = rest.to_owned();
        self.past.fresh_line = self.line;
        Ok(self.past)
    }
}
