//! Reproductions below a review: commands and tests that show that a finding is true.
//!
//! A heading `Reproductions`, and under it an entry for each finding it is about: a line that names the finding by its
//! number or its place, a `sh` fence with the command, and fences whose info string names a file. What is not read
//! stays a problem and never declines the review: its findings are worth as much as they would be without.

use super::Problems;
use super::lines::{LineKind, TextLine};
use super::place;
use super::sections;
use super::text::{bullet, cap, head, is_dash, is_markup, tail};
use crate::event::written;
use crate::model::{Finding, Reproduction, Scratch};

const MAX_COMMAND: usize = 4_096;
const MAX_FILES: usize = 8;
const MAX_FILE: usize = 49_152;
/// All of a review's are in one line of the log, beside its findings.
const MAX_WRITTEN: usize = 60_000;
/// A line that names a finding has little else.
const MAX_HEAD: usize = 200;

/// The position of the section: its heading, and the line that ends it.
pub(crate) fn range(lines: &[TextLine]) -> Option<(usize, usize)> {
    let (start, level) = lines.iter().enumerate().find_map(|(at, line)| {
        let (level, title) = sections::heading(line)?;
        let title = sections::unnumber(title).trim_end_matches([':', '*', '_', ' ']);
        let alone = title.eq_ignore_ascii_case("reproductions")
            // A bold `Reproduction:` is a label of a finding.
            || level <= 6 && title.eq_ignore_ascii_case("reproduction");
        alone.then_some((at, level))
    })?;
    let mut rest = lines.iter().enumerate().skip(start + 1);
    let end = rest.find(|(_, line)| {
        let above = sections::heading(line).is_some_and(|(other, _)| other <= level);
        above && named(line).is_none()
    });
    Some((start, end.map_or(lines.len(), |(at, _)| at)))
}

/// The lines without what is read here: a command or a test that is shown is no finding, whatever is in it.
pub(crate) fn without<'a>(lines: &[TextLine<'a>], (start, end): (usize, usize)) -> Vec<TextLine<'a>> {
    let mut left = lines.to_vec();
    for line in left.iter_mut().take(end).skip(start) {
        let ours =
            matches!(line.kind, LineKind::Open | LineKind::Fenced | LineKind::Close) || named(line).is_some();
        if ours {
            line.kind = LineKind::Blank;
        }
    }
    if let Some(heading) = left.get_mut(start) {
        heading.kind = LineKind::Blank;
    }
    left
}

/// Gives findings the reproductions that name them.
pub(crate) fn attach(
    lines: &[TextLine],
    (start, end): (usize, usize),
    findings: &mut [Finding],
    problems: &mut Problems,
) {
    let mut reader = Reader { findings, problems, entry: None, room: MAX_WRITTEN };
    let mut at = start + 1;
    while let Some(line) = lines.get(at).filter(|_| at < end) {
        at = match line.kind {
            LineKind::Open => reader.fence(lines, at),
            LineKind::Plain => {
                reader.plain(at, line);
                at + 1
            }
            LineKind::Blank
            | LineKind::Fenced
            | LineKind::Close
            | LineKind::Quote
            | LineKind::Indented
            | LineKind::Diff
            | LineKind::Comment => at + 1,
        };
    }
    reader.close();
}

struct Reader<'r> {
    findings: &'r mut [Finding],
    problems: &'r mut Problems,
    entry: Option<Entry>,
    /// Bytes in the log that are left for reproductions.
    room: usize,
}

/// One entry while it is being collected.
struct Entry {
    line: usize,
    /// `None`: it names nothing, and the text under it belongs to no finding.
    finding: Option<usize>,
    regression: bool,
    command: Option<String>,
    files: Vec<Scratch>,
    wrong: bool,
}

impl Reader<'_> {
    fn plain(&mut self, at: usize, line: &TextLine) {
        if let Some(named) = named(line) {
            self.close();
            let finding = self.look_up(at, &named.which);
            self.entry = Some(Entry {
                line: at,
                finding,
                regression: named.regression,
                command: None,
                files: Vec::new(),
                wrong: finding.is_none(),
            });
        } else if line.text.trim_start().starts_with('#') && sections::heading(line).is_some() {
            self.close();
            self.problems.at(at, "a reproduction that names no finding");
            let (finding, command, files) = (None, None, Vec::new());
            self.entry = Some(Entry { line: at, finding, regression: true, command, files, wrong: true });
        }
    }

    fn look_up(&mut self, at: usize, which: &Which) -> Option<usize> {
        let found: Vec<usize> = match which {
            Which::Number(number) => {
                let index = usize::try_from(*number).ok().and_then(|number| number.checked_sub(1));
                index.filter(|index| *index < self.findings.len()).into_iter().collect()
            }
            Which::Place(file, line) => {
                let here = |finding: &Finding| finding.file == *file && finding.line == *line;
                let all = self.findings.iter().enumerate();
                all.filter(|(_, finding)| here(finding)).map(|(index, _)| index).collect()
            }
        };
        match found.as_slice() {
            [one] if self.findings.get(*one).is_some_and(|finding| finding.reproduction.is_some()) => {
                self.problems.at(at, "a second reproduction of the same finding");
                None
            }
            [one] => Some(*one),
            [] => {
                self.problems.at(at, "a reproduction of a finding that is not there");
                None
            }
            [..] => {
                self.problems.at(at, "a reproduction of a place with more than one finding: give its number");
                None
            }
        }
    }

    /// Takes in what a fence shows. Gives the line behind it.
    fn fence(&mut self, lines: &[TextLine], open: usize) -> usize {
        let body: Vec<&TextLine> =
            lines.iter().skip(open + 1).take_while(|line| line.kind == LineKind::Fenced).collect();
        let close = open + 1 + body.len();
        let closed = lines.get(close).is_some_and(|line| line.kind == LineKind::Close);
        let Some(line) = lines.get(open) else { return close + 1 };
        let shown = shown(line.text);
        match (&mut self.entry, shown) {
            (_, Shown::Other) => {}
            (_, Shown::Command | Shown::File(_)) if !closed => {
                self.spoil(open, "a reproduction whose fence is never closed");
            }
            (_, Shown::NotSh) => self.spoil(open, "a reproduction is run by sh: its fence is marked `sh`"),
            (None, Shown::Command) => self.problems.at(open, "a reproduction that names no finding"),
            (None, Shown::File(_)) => {}
            (Some(_), Shown::Command) => self.command(open, &content(line, &body)),
            (Some(_), Shown::File(path)) => self.file(open, &path, content(line, &body)),
        }
        close + 1
    }

    fn command(&mut self, at: usize, text: &str) {
        let command = text.trim();
        let Some(entry) = &mut self.entry else { return };
        if entry.command.is_some() {
            self.spoil(at, "a second command for the same finding");
        } else if command.is_empty() {
            self.spoil(at, "a reproduction without a command");
        } else if command.len() > MAX_COMMAND {
            self.spoil(at, format_args!("a command of more than {MAX_COMMAND} bytes"));
        } else {
            entry.command = Some(command.to_owned());
        }
    }

    fn file(&mut self, at: usize, path: &str, content: String) {
        let Some(entry) = &mut self.entry else { return };
        let Some(path) = inside(path) else {
            return self.spoil(at, format_args!("a file that is not inside the tree: {:?}", cap(path, 80)));
        };
        if content.len() > MAX_FILE {
            self.spoil(at, format_args!("a file of more than {MAX_FILE} bytes"));
        } else if entry.files.len() >= MAX_FILES {
            self.spoil(at, format_args!("more than {MAX_FILES} files in one reproduction"));
        } else if entry.files.iter().any(|file| file.path == path) {
            self.spoil(at, format_args!("the file {path} twice in one reproduction"));
        } else {
            entry.files.push(Scratch { path, content });
        }
    }

    fn spoil(&mut self, at: usize, why: impl std::fmt::Display) {
        if let Some(entry) = &mut self.entry {
            entry.wrong = true;
        }
        self.problems.at(at, why);
    }

    fn close(&mut self) {
        let Some(entry) = self.entry.take().filter(|entry| !entry.wrong) else { return };
        let Some(command) = entry.command else {
            return self.problems.at(entry.line, "a reproduction without a command");
        };
        let files = entry.files.iter().map(|file| written(&file.path) + written(&file.content));
        let length = written(&command) + files.sum::<usize>();
        let Some(room) = self.room.checked_sub(length) else {
            return self
                .problems
                .at(entry.line, "a reproduction that is too long, alone or with those before");
        };
        self.room = room;
        let finding = entry.finding.and_then(|index| self.findings.get_mut(index));
        if let Some(finding) = finding {
            let (files, regression) = (entry.files, entry.regression);
            finding.reproduction = Some(Reproduction { command, files, regression });
        }
    }
}

/// The content of an entry's head.
struct Named {
    which: Which,
    regression: bool,
}

enum Which {
    Number(u32),
    Place(String, u32),
}

/// `Finding 2`, `### Finding 2 (regression)`, `src/a.rs:12 (new)`: a line with nothing else on it.
fn named(line: &TextLine) -> Option<Named> {
    if line.kind != LineKind::Plain || line.text.len() > MAX_HEAD {
        return None;
    }
    let text = line.text.trim().trim_start_matches('#').trim_start();
    let text = bullet(text).map_or(text, |width| tail(text, width));
    let text = text.trim_matches(|c| is_markup(c) || c == ':');
    let (which, rest) = numbered(text).or_else(|| placed(text))?;
    let rest = rest.trim_matches(|c: char| is_markup(c) || is_dash(c) || matches!(c, ':' | '.' | ','));
    let regression = match rest.trim_matches(['(', ')', '[', ']']).trim().to_ascii_lowercase().as_str() {
        "" | "regression" | "a regression" => true,
        "new" | "new code" => false,
        _ if matches!(which, Which::Place(..)) => return None,
        other => !words(other).any(|word| word == "new") || words(other).any(|word| word == "regression"),
    };
    Some(Named { which, regression })
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// `Finding 2`, and what follows the number: nothing, or something set off from it.
fn numbered(text: &str) -> Option<(Which, &str)> {
    let (word, rest) = text.split_at_checked("finding".len())?;
    if !word.eq_ignore_ascii_case("finding") {
        return None;
    }
    let rest = rest.trim_start_matches([' ', '#']);
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let number = head(rest, digits).parse().ok()?;
    let behind = tail(rest, digits).trim_start_matches(is_markup);
    let apart = behind.is_empty() || behind.starts_with(|c: char| is_dash(c) || "([:,.".contains(c));
    apart.then_some((Which::Number(number), behind))
}

/// A place with its line, and what follows it.
fn placed(text: &str) -> Option<(Which, &str)> {
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let (word, rest) = (head(text, end).trim_matches(is_markup), tail(text, end));
    let (file, line) = place::place(word);
    (!file.is_empty() && line > 0).then_some((Which::Place(file, line), rest))
}

enum Shown {
    Command,
    /// For another shell.
    NotSh,
    File(String),
    Other,
}

/// The content of a fence according to its info string: `sh`, a language and a path, or a path alone.
fn shown(open: &str) -> Shown {
    let bare = open.trim();
    let inner = bullet(bare).map_or(bare, |width| tail(bare, width));
    let info = inner.trim_start_matches(['`', '~']).trim();
    match info.split_once(char::is_whitespace) {
        Some((_, path)) => Shown::File(path.trim().to_owned()),
        None if info.eq_ignore_ascii_case("sh") || info.eq_ignore_ascii_case("shell") => Shown::Command,
        None if ["bash", "zsh", "fish", "ksh"].iter().any(|name| info.eq_ignore_ascii_case(name)) => {
            Shown::NotSh
        }
        None if info.contains('/') => Shown::File(info.to_owned()),
        None => Shown::Other,
    }
}

/// The lines of a fence, without as much indentation as the fence itself has.
fn content(open: &TextLine, body: &[&TextLine]) -> String {
    let indent = open.text.bytes().take_while(|b| *b == b' ').count();
    let mut text = String::new();
    for line in body {
        let spaces = line.text.bytes().take(indent).take_while(|b| *b == b' ').count();
        text.push_str(tail(line.text, spaces));
        text.push('\n');
    }
    text
}

/// A path that stays inside the tree and out of git's own folder.
fn inside(path: &str) -> Option<String> {
    let path = place::inside(path.trim_matches(['`', '"', '\'']))?;
    let odd = |part: &str| part.is_empty() || part == "." || part.eq_ignore_ascii_case(".git");
    (path.len() <= 1_000 && !path.split('/').any(odd)).then_some(path)
}
