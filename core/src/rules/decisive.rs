//! Which lines of a check's output say what fails, and which of them are new (L-03). Nothing here knows a tool: a line
//! counts by the words failures are printed with, and two lines are the same if they differ in numbers only.

use std::collections::BTreeMap;

/// Lines that are kept of one output.
const AT_MOST: usize = 10;
/// Lines without such words that are taken in their place.
const LAST: usize = 3;
const LONGEST: usize = 200;

/// What fails now and what failed before, in the words of the outputs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FailingLines {
    /// Not there before, or more often than before.
    pub new: Vec<String>,
    pub old: Vec<String>,
}

/// The lines of an output that say what fails; its last lines where none does.
pub fn decisive(output: &str) -> Vec<String> {
    let lines = output.lines().map(str::trim).filter(|line| !line.is_empty());
    let telling: Vec<String> = lines.clone().filter(|line| says_failure(line)).map(shortened).collect();
    if !telling.is_empty() {
        return telling;
    }
    let all: Vec<&str> = lines.collect();
    let from = all.len().saturating_sub(LAST);
    all.into_iter().skip(from).map(shortened).collect()
}

/// What fails now against what failed before; all of it is new where nothing failed.
pub fn compared(now: &str, before: Option<&str>) -> FailingLines {
    let mut had: BTreeMap<String, u32> = BTreeMap::new();
    for line in before.map(decisive).unwrap_or_default() {
        *had.entry(without_numbers(&line)).or_default() += 1;
    }
    let mut found = FailingLines::default();
    for line in decisive(now) {
        let left = had.get_mut(&without_numbers(&line)).filter(|left| **left > 0);
        let list = match left {
            Some(left) => {
                *left -= 1;
                &mut found.old
            }
            None => &mut found.new,
        };
        if list.len() < AT_MOST {
            list.push(line);
        }
    }
    found
}

fn says_failure(line: &str) -> bool {
    let lower = line.to_lowercase();
    if is_heading(line) {
        return false;
    }
    let mut words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let first = words.next().unwrap_or_default();
    let none = ["0 failed", "0 failures", "0 errors", "no errors", "no failures"];
    if none.iter().any(|none| lower.contains(none)) && !lower.contains("panicked") {
        return false;
    }
    let marks =
        ["failed", "failure", "failing", "error", "panicked", "traceback", "assert", "not ok", "fatal"];
    let fails = first == "fail" || marks.iter().any(|mark| lower.contains(mark));
    fails || line.starts_with(['✗', '✘', '✖', '×']) || names_a_place(line)
}

/// `===== FAILURES =====`; a line of counts between such marks says more.
fn is_heading(line: &str) -> bool {
    let marks = |text: &str| text.starts_with("===") || text.starts_with("---") || text.starts_with("___");
    marks(line) && line.ends_with(['=', '-', '_']) && !line.contains(|c: char| c.is_ascii_digit())
}

/// `src/till.py:3:1: F401 …`, as linters print it.
fn names_a_place(line: &str) -> bool {
    let mut parts = line.splitn(3, ':');
    let (Some(path), Some(number), Some(_)) = (parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    let number = number.trim();
    path.contains('.')
        && !path.contains(char::is_whitespace)
        && !number.is_empty()
        && number.bytes().all(|byte| byte.is_ascii_digit())
}

fn without_numbers(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    for c in line.chars() {
        let c = if c.is_ascii_digit() { '0' } else { c };
        if c != '0' || !out.ends_with('0') {
            out.push(c);
        }
    }
    out
}

fn shortened(line: &str) -> String {
    line.chars().take(LONGEST).collect()
}
