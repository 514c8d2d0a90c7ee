//! Turns the text of an agent into an [`Answer`]. Reading never fails and never guesses: what is not understood becomes
//! a problem with its line, and a rule that sees a problem can decline the answer (D-04).
//!
//! Text the agent merely shows (code fences, quotes, indented code, diffs) is never control: see `lines`. The tables
//! in `docs/rules/answers.md` define what is accepted, and the tests execute them.
//!
//! Deliberately absent: whether a finding is evidenced, blocks or routes anywhere. The reader reports the content of
//! the text.

mod code;
mod draft;
mod findings;
mod heads;
mod json;
pub(crate) mod lines;
mod naming;
mod parts;
pub(crate) mod place;
mod proposal;
mod reproductions;
mod review;
mod rows;
mod sections;
mod spelling;
mod status;
mod structured;
mod table;
mod test_counts;
mod test_names;
mod test_output;
pub(crate) mod text;
mod traits;
mod transcripts;
mod verdict;
#[doc(hidden)]
mod withdrawn;
pub mod words;
mod wrapped;

pub(crate) use lines::closed;
pub use parts::of_parts;
pub use sections::section;
pub use structured::{render, schema_for, schema_with_reproductions};
pub use test_counts::test_counts;
pub use test_names::{NamedTests, named_tests};
pub use test_output::failing_tests;
#[doc(hidden)]
pub use traits::Untold;

use crate::model::{Answer, AnswerBody, Role};
use lines::{LineKind, TextLine};
use review::ReviewContext;
use sections::SectionedText;

/// A hostile answer can hold a million unreadable rows; at most this many complaints are kept.
const MAX_PROBLEMS: usize = 100;

/// Reads one answer, as the given archetype in the given role gave it.
pub fn answer(role: Role, archetype: &str, bytes: &[u8]) -> Answer {
    answer_in(role, archetype, bytes, &[], "")
}

/// The same in a run whose lenses brought categories of their own, from an agent whose brief named this code, or none.
pub fn answer_in(role: Role, archetype: &str, bytes: &[u8], categories: &[String], code: &str) -> Answer {
    let mut text = text::decode(bytes);
    let is_review = matches!(role, Role::Gatekeeper | Role::Reviewer);
    text = is_review.then(|| wrapped::unwrapped(&text)).flatten().unwrap_or(text);
    let mut page = SectionedText::new(&text);
    let coded = code::apply(&mut page.lines, code);
    let lines = &page.lines;
    let mut problems = Problems::default();

    let (status, last) = status::status(lines, code.is_empty() || coded.status, &mut problems);
    let said = match role {
        Role::Explorer | Role::Maker => AnswerBody::Prose,
        Role::Creator => AnswerBody::Proposal(proposal::proposal(&page, &mut problems)),
        Role::Gatekeeper | Role::Reviewer => {
            let uncoded = !code.is_empty() && !coded.verdict;
            let context = ReviewContext { categories, coded: coded.verdict, uncoded };
            let mut review = review::review(archetype, lines, context, &mut problems);
            review.unread = review.unread.or_else(|| status::overrun(lines));
            AnswerBody::Review(review)
        }
    };
    Answer {
        status,
        remark: status::remark(status, last, &page),
        words: page.lines.iter().map(|line| words(line.text)).sum(),
        summary: summary(lines, &said),
        traits: traits::traits(role, &page, &said),
        spoken: None,
        said,
        prior: proposal::prior(&page, &mut problems),
        problems: problems.into_vec(),
    }
}

/// The words of a line. Nearly all text is ASCII, where a word ends at a byte before white space.
pub(crate) fn words(line: &str) -> u32 {
    if !line.is_ascii() {
        return u32::try_from(line.split_whitespace().count()).unwrap_or(u32::MAX);
    }
    let bytes = line.as_bytes();
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r');
    // As many bytes at once as a byte can count.
    let here = bytes.get(..bytes.len().saturating_sub(1)).unwrap_or_default().chunks(255);
    let next = bytes.get(1..).unwrap_or_default().chunks(255);
    let end = |(one, next): (&u8, &u8)| u8::from(!is_space(one) & is_space(next));
    let ends: u32 =
        here.zip(next).map(|(here, next)| u32::from(here.iter().zip(next).map(end).sum::<u8>())).sum();
    ends + u32::from(bytes.last().is_some_and(|last| !is_space(last)))
}

/// The first line of prose, without its markup. A review without prose is summed up by its first finding.
fn summary(lines: &[TextLine], said: &AnswerBody) -> String {
    let prose = lines.iter().filter(|line| line.kind == LineKind::Plain).find(|line| is_prose(line));
    if let Some(line) = prose {
        return text::cap(&text::plain(text::unbullet(line.text.trim())), 160);
    }
    match said {
        AnswerBody::Review(review) => {
            review.findings.first().map_or_else(String::new, |f| text::cap(&text::plain(&f.description), 160))
        }
        AnswerBody::Prose | AnswerBody::Proposal(_) => String::new(),
    }
}

fn is_prose(line: &TextLine) -> bool {
    sections::heading(line).is_none()
        && !table::is_row(line.text)
        && !status::looks_like_one(line.text)
        && !review::is_control(line.text)
        && line.text.chars().any(char::is_alphanumeric)
}

/// What could not be read, in the order of the readers, bounded.
#[derive(Default)]
pub(crate) struct Problems {
    kept: Vec<String>,
    more: usize,
}

impl Problems {
    /// `line` counts from 0, people count from 1.
    pub(crate) fn at(&mut self, line: usize, what: impl std::fmt::Display) {
        self.note(format!("line {}: {what}", line + 1));
    }

    pub(crate) fn note(&mut self, problem: String) {
        if self.kept.len() < MAX_PROBLEMS {
            self.kept.push(problem);
        } else {
            self.more += 1;
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.kept.len() + self.more
    }

    /// The first problem beyond the limit, and how many more there are.
    pub(crate) fn since(&self, before: usize) -> Option<String> {
        let more = self.count().checked_sub(before + 1)?;
        let first = self.kept.get(before).map_or("more problems than are kept", String::as_str);
        Some(if more == 0 { first.to_owned() } else { format!("{first} (and {more} more)") })
    }

    fn into_vec(mut self) -> Vec<String> {
        if self.more > 0 {
            self.kept.push(format!("and {} more problems", self.more));
        }
        self.kept
    }
}
