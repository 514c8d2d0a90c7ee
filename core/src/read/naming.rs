//! Severity words: which they are, and when a line names one.
//!
//! A line *names* a severity if CRITICAL, WARNING or INFO is in it as a label and not in running prose:
//!
//! 1. a cell of a row of pipes is a severity, in any case;
//! 2. `Severity:` (or `severity =`) is followed by one, in any case;
//! 3. the line begins with one, in any case, that is bracketed, bold, or followed by a colon or a dash; a place may
//!    come before it;
//! 4. it holds one in upper case anywhere else, unless that one is
//!    - inside a code span, or part of a longer name (`Level.INFO`, `non-CRITICAL`, `INFO-level`);
//!    - a tally: a number, `no`, `zero`, `any` or `without` directly before it and no colon behind it, or a number or
//!      `none` after a colon behind it with nothing further but the next severity (`CRITICAL: 0, WARNING: 1`);
//!    - in a sentence: directly behind an ordinary word, and not followed by a colon or a dash.
//!
//! Several severities joined by a slash, a comma or `or` are judged as one. When in doubt a line names a severity: that
//! costs a question to the reviewer, the other way round it would cost a finding.

use super::place;
use super::table;
use super::text::{between, first_word, head, holds, is_dash, is_emoji, is_none, spans, tail, unbullet};
use super::words;
use crate::model::{CATEGORIES, Severity};

/// The severity a cell or a label states, whatever decorates it.
pub(crate) fn severity(cell: &str) -> Option<Severity> {
    let decoration =
        |c: char| c.is_whitespace() || is_emoji(c) || matches!(c, '*' | '_' | '`' | '[' | ']' | '(' | ')');
    words::severity_of(cell.trim_matches(decoration))
}

/// The same, in one of the three words the brief asks for. In a table about something else `high` need not be one.
pub(crate) fn asked_severity(cell: &str) -> Option<Severity> {
    let decoration =
        |c: char| c.is_whitespace() || is_emoji(c) || matches!(c, '*' | '_' | '`' | '[' | ']' | '(' | ')');
    word(cell.trim_matches(decoration))
}

fn word(text: &str) -> Option<Severity> {
    let known = [Severity::Critical, Severity::Warning, Severity::Info];
    known.into_iter().find(|severity| text.eq_ignore_ascii_case(severity.name()))
}

/// See the module: whether a line names a severity.
pub(crate) fn names(text: &str) -> bool {
    if !holds(text, ["critical", "warning", "info"]) {
        let bare = || unbullet(text.trim().trim_start_matches('#').trim_start());
        return words::opens(first_word(text)) && opening(bare()).is_some();
    }
    let row =
        table::is_row(text) && table::cells(text, None).iter().any(|cell| asked_severity(cell).is_some());
    row || opening(unbullet(text.trim().trim_start_matches('#').trim_start())).is_some()
        || Sentence::new(text).names()
}

/// A severity at the front of a line and what follows its separator.
pub(crate) struct Lead<'a> {
    pub severity: Severity,
    pub rest: &'a str,
}

/// Rule 3: a severity at the front of a line, or behind a place at its front, that is not a tally.
pub(crate) fn opening(text: &str) -> Option<(Option<&str>, Lead<'_>)> {
    let lead = leading(text).map(|lead| (None, lead)).or_else(|| {
        let (place, rest) = place::leading(text)?;
        let separator = |c: char| c.is_whitespace() || is_dash(c) || matches!(c, ':' | ',' | '|' | '/' | '·');
        Some((Some(place), leading(rest.trim_start_matches(['*', '_']).trim_start_matches(separator))?))
    });
    lead.filter(|(_, lead)| !is_tally(lead.rest))
}

/// `SQL from input (CRITICAL)`: a title and the severity in brackets behind it.
pub(crate) fn closing(title: &str) -> Option<(&str, Severity)> {
    let bare = title.trim_end_matches(['*', '_', ' ']);
    let (title, last) = bare.strip_suffix([')', ']'])?.rsplit_once(['(', '['])?;
    Some((title.trim_end(), word(last)?))
}

/// A severity that is bracketed, bold, or followed by a colon, a dash or, in upper case, by a place.
pub(crate) fn leading(text: &str) -> Option<Lead<'_>> {
    let opener = |c: char| c.is_whitespace() || is_emoji(c) || matches!(c, '*' | '_' | '`' | '[' | '(');
    let inner = text.trim_start_matches(opener);
    let opened = head(text, text.len() - inner.len()).contains(['*', '_', '`', '[', '(']);
    let end = inner.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(inner.len());
    let (name, behind) = (head(inner, end), tail(inner, end));
    let severity = words::severity_of(name).filter(|_| words::opens(name))?;
    if let Some(rest) = numbered(name, behind) {
        return Some(Lead { severity, rest });
    }
    if behind.starts_with(|c: char| c.is_alphanumeric()) || is_name_part(behind) {
        return None;
    }
    let closer = |c: char| matches!(c, '*' | '_' | '`' | ']' | ')') || is_emoji(c);
    let bare = behind.trim_start_matches(closer);
    let closed = opened && (bare.len() < behind.len() || behind.starts_with(':'));
    let bare = bare.trim_start();
    let shouted = name.bytes().all(|b| b.is_ascii_uppercase());
    let listed = shouted && bare.strip_prefix(',').is_some_and(names_a_category);
    let separated = listed || bare.starts_with(|c| matches!(c, ':' | '|') || is_dash(c));
    let rest = bare.trim_start_matches(|c: char| {
        c.is_whitespace()
            || is_dash(c)
            || matches!(c, ':' | '|' | '*' | '_')
            || closer(c) && c != '`'
            || listed && c == ','
    });
    let placed = shouted && (rest.is_empty() || rest.starts_with('(') || place::leading(rest).is_some());
    if word(name).is_none() {
        // `high` and `low` are words of prose as well: bold alone does not make them severities.
        let bracketed = head(text, text.len() - inner.len()).contains(['[', '(']) && closed;
        let opens = bracketed || separated && (closed || shouted) || placed && !rest.is_empty();
        return opens.then_some(Lead { severity, rest });
    }
    (closed || separated || placed).then_some(Lead { severity, rest })
}

/// `CRITICAL, security: …` (D13).
fn names_a_category(behind: &str) -> bool {
    let behind = behind.trim_start();
    let end = behind.find(|c: char| !c.is_alphanumeric() && c != '-').unwrap_or(behind.len());
    CATEGORIES.contains(&head(behind, end).to_lowercase().as_str())
}

/// `HIGH-001: …`: a severity in capitals with a number, which names a finding. One that is ticked off is none.
fn numbered<'a>(name: &str, behind: &'a str) -> Option<&'a str> {
    let digits = behind.strip_prefix('-')?;
    let count = digits.bytes().take_while(u8::is_ascii_digit).count();
    let rest = tail(digits, count).trim_start_matches(['*', '_', '`', ']', ' ']);
    let separated = rest.starts_with(|c| matches!(c, ':' | '：') || is_dash(c));
    let named = count > 0 && count < 5 && name.bytes().all(|b| b.is_ascii_uppercase());
    (named && separated && !rest.contains(['✅', '✓', '✔'])).then(|| {
        rest.trim_start_matches(|c: char| {
            c.is_whitespace() || is_dash(c) || matches!(c, ':' | '：' | '*' | '_')
        })
    })
}

/// `-level`, `.x` and `::x` make a word part of a longer one.
fn is_name_part(behind: &str) -> bool {
    let joined =
        |mark: &str| behind.strip_prefix(mark).is_some_and(|rest| rest.starts_with(char::is_alphanumeric));
    behind.starts_with('_') && joined("_") || joined("-") || joined(".") || behind.starts_with("::")
}

/// Whether what follows a severity only counts: `0`, `none`, `2 findings`, `0, WARNING: 1`.
pub(crate) fn is_tally(rest: &str) -> bool {
    let rest = rest.trim_start_matches(['(', '*', ' ']);
    if !rest.is_empty() && is_none(rest) {
        return true;
    }
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let none = rest.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("none"));
    let counted = if digits > 0 {
        digits
    } else if none {
        4
    } else {
        return false;
    };
    let behind = tail(rest, counted);
    if behind.starts_with(char::is_alphanumeric) {
        return false;
    }
    let following = behind.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    // The next severity is judged by itself.
    let before_next = following.take_while(|next| word(next).is_none() && !is_plural(next));
    before_next.into_iter().all(|next| next == "and" || is_unit(next))
}

fn is_unit(text: &str) -> bool {
    ["finding", "findings", "issue", "issues", "found", "total"]
        .iter()
        .any(|unit| text.eq_ignore_ascii_case(unit))
}

fn is_plural(text: &str) -> bool {
    text.strip_suffix(['s', 'S']).is_some_and(|one| word(one).is_some())
}

/// The severity of a heading over several findings: `Critical`, `Warnings`, `🔴 CRITICAL findings (2)`.
pub(crate) fn over_group(title: &str) -> Option<Severity> {
    let mut named = title.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let first = named.next()?;
    let one = if words::severity_of(first).is_some() { first } else { first.strip_suffix(['s', 'S'])? };
    let severity = words::severity_of(one)?;
    let mut named = named.peekable();
    // `Notes` and `Suggestions` alone are no severities, `Important issues` are.
    if !words::opens(one) && (words::is_prose(one) || one.is_ascii() && named.peek().is_none()) {
        return None;
    }
    let kind = |text: &str| {
        is_unit(text)
            || GROUPED.iter().any(|kind| text.eq_ignore_ascii_case(kind))
            || text.bytes().all(|b| b.is_ascii_digit())
            // Another language's words for the same.
            || !text.contains(|c: char| c.is_ascii_alphabetic())
    };
    named.all(kind).then_some(severity)
}

/// Whether a heading begins with one of the three words the brief asks for.
pub(crate) fn names_asked(title: &str) -> bool {
    let first = title.split(|c: char| !c.is_alphanumeric()).find(|word| !word.is_empty()).unwrap_or("");
    word(first).is_some() || is_plural(first)
}

/// What a heading over several findings says beside their severity: what they are, and what is to be done.
const GROUPED: [&str; 24] = [
    "severity",
    "level",
    "priority",
    "risk",
    "problem",
    "problems",
    "concern",
    "concerns",
    "observation",
    "observations",
    "item",
    "items",
    "bug",
    "bugs",
    "suggestion",
    "suggestions",
    "must",
    "should",
    "fix",
    "be",
    "fixed",
    "not",
    "blocking",
    "none",
];

/// The words of a line, for rules 2 and 4.
struct Sentence<'a> {
    text: &'a str,
    words: Vec<(usize, usize)>,
    code: Vec<(usize, usize)>,
}

impl<'a> Sentence<'a> {
    fn new(text: &'a str) -> Self {
        let mut words: Vec<(usize, usize)> = Vec::new();
        for (at, c) in text.char_indices().filter(|(_, c)| c.is_alphanumeric() || *c == '_') {
            // Underscores at the edge of a word are emphasis, inside they join.
            let joined = words.last_mut().filter(|(_, end)| *end == at);
            match joined {
                Some((_, end)) => *end = at + c.len_utf8(),
                None if c == '_' => {}
                None => words.push((at, at + c.len_utf8())),
            }
        }
        for (start, end) in &mut words {
            *end = *start + between(text, *start, *end).trim_end_matches('_').len();
        }
        let code = spans(text).iter().map(|span| (span.open, span.close)).collect();
        Sentence { text, words, code }
    }

    fn names(&self) -> bool {
        let mut at = 0;
        while at < self.words.len() {
            let last = self.group(at);
            if let Some(last) = last {
                if self.group_names(at, last) {
                    return true;
                }
                at = last;
            }
            at += 1;
        }
        false
    }

    fn word(&self, at: usize) -> &'a str {
        self.words.get(at).map_or("", |(start, end)| between(self.text, *start, *end))
    }

    /// The text between the word before `at` and the word at `at`.
    fn gap(&self, at: usize) -> &'a str {
        let start = at.checked_sub(1).and_then(|before| self.words.get(before)).map_or(0, |(_, end)| *end);
        let end = self.words.get(at).map_or(self.text.len(), |(start, _)| *start);
        between(self.text, start, end)
    }

    fn is_severity(&self, at: usize) -> bool {
        word(self.word(at)).is_some_and(|severity| self.word(at) == severity.name() || self.labelled(at))
    }

    fn labelled(&self, at: usize) -> bool {
        let label = at.checked_sub(1).map_or("", |before| self.word(before));
        label.eq_ignore_ascii_case("severity") && self.gap(at).contains([':', '='])
    }

    /// The last word of the severities joined together from `at` on.
    fn group(&self, at: usize) -> Option<usize> {
        if !self.is_severity(at) {
            return None;
        }
        let mut last = at;
        loop {
            let joins =
                |gap: &str| gap.len() <= 8 && gap.chars().all(|c| c.is_whitespace() || "/,&+*".contains(c));
            let next = last + 1;
            let and = matches!(self.word(next), "or" | "and" | "nor");
            if self.is_severity(next) && joins(self.gap(next)) {
                last = next;
            } else if and && joins(self.gap(next)) && self.is_severity(next + 1) {
                last = next + 1;
            } else {
                return Some(last);
            }
        }
    }

    fn group_names(&self, first: usize, last: usize) -> bool {
        if self.labelled(first) {
            return true;
        }
        let start = self.words.get(first).map_or(0, |(start, _)| *start);
        let span = self.code.partition_point(|(_, close)| *close <= start);
        let in_code = self.code.get(span).is_some_and(|(open, _)| *open <= start);
        let before = self.gap(first);
        let after = self.words.get(last).map_or("", |(_, end)| tail(self.text, *end));
        let longer = first > 0 && matches!(before, "-" | "." | "::") || is_name_part(after);
        if in_code || longer {
            return false;
        }
        let quiet = |c: char| c.is_whitespace() || matches!(c, '*' | '_' | '"' | '\'' | '“');
        let adjacent = first > 0 && before.chars().all(quiet);
        let closing = after.trim_start_matches(|c: char| quiet(c) || matches!(c, '”' | ')'));
        if closing.starts_with([':', '=', '('])
            && is_tally(closing.trim_start_matches([':', '=', '(', '*', ' ']))
        {
            return false;
        }
        let label = closing.starts_with(|c| matches!(c, ':' | ']' | '|' | '<') || is_dash(c));
        !(adjacent
            && (self.counts(first - 1) && !closing.starts_with(':') || self.is_ordinary(first - 1) && !label))
    }

    fn counts(&self, at: usize) -> bool {
        let number = self.word(at).bytes().all(|b| b.is_ascii_digit());
        let line = at
            .checked_sub(1)
            .is_some_and(|before| self.word(before).to_ascii_lowercase().starts_with("line"));
        let none =
            ["no", "zero", "any", "without"].iter().any(|none| self.word(at).eq_ignore_ascii_case(none));
        number && !line && !self.gap(at).ends_with([':', '#']) || none
    }

    /// A word of a sentence: letters with white space before them, not a label and not shouted.
    fn is_ordinary(&self, at: usize) -> bool {
        let word = self.word(at);
        let letters = word.chars().all(char::is_alphabetic);
        let shouted = word.len() > 1 && word.chars().all(char::is_uppercase);
        let gap = self.gap(at);
        let free =
            at == 0 && gap.is_empty() || gap.ends_with(|c: char| c.is_whitespace() || "*_\"'(“".contains(c));
        letters && !shouted && free && !word.eq_ignore_ascii_case("severity")
    }
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn a_label_names_and_prose_does_not() {
        let naming = [
            "| src/a.rs:1 | CRITICAL | security | x | y |",
            "| a | critical |",
            "- **CRITICAL** src/a.rs:1",
            "- [warning] x",
            "Warning: x",
            "CRITICAL",
            "src/a.rs:10 CRITICAL sql",
            "src/a.rs CRITICAL sql",
            "src/a.rs line 10 CRITICAL sql",
            "1. CRITICAL sql",
            "1 CRITICAL: sql",
            "src/a.rs:10 — CRITICAL — security",
            "(severity: warning)",
            "Severity = INFO",
            "<td>CRITICAL</td>",
            "CRITICAL: 0 is taken for no limit",
            "CRITICAL: 0, 1 and 2 crash",
            "CRITICAL: no bounds check",
            "CRITICAL: 2 issues let attackers in",
            "CRITICAL: 0, WARNING: the door is open",
            "SECURITY CRITICAL sql",
            "This one is CRITICAL: it leaks.",
            "WARNING messages are lost",
        ];
        for text in naming {
            assert!(names(text), "{text}");
        }
        let silent = [
            "No CRITICAL findings.",
            "There are no **CRITICAL** or WARNING issues.",
            "0 CRITICAL, 1 WARNING, 2 INFO",
            "**0 CRITICAL / 0 WARNING**",
            "CRITICAL: 0, WARNING: 1, INFO: 2",
            "- CRITICAL: none",
            "CRITICAL (2)",
            "CRITICAL: 1 finding, WARNING: 2 findings",
            "Critical: 0",
            "Nothing here is CRITICAL.",
            "The log level INFO is enough.",
            "Uses `Level::WARNING` and Level.INFO and non-CRITICAL and INFO-level.",
            "Critical sections are short.",
            "This warning is expected.",
            "I found one WARNING, see the table.",
            "VERDICT: REJECTED",
            "For your information: nothing.",
        ];
        for text in silent {
            assert!(!names(text), "{text}");
        }
    }
}
