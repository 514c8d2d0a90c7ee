//! What an answer's text is like, in numbers ([`Traits`]). One file per role; each reads the text once.
//!
//! Phrases are signs, not proof: the thresholds and the immunities of `rules/shadows` decide what they mean. Where a
//! phrase can be read in two ways, the harmless one is taken.

mod creator;
mod explorer;
mod files;
mod maker;
mod review;

use super::lines::{LineKind, TextLine};
use super::sections::SectionedText;
use super::{Problems, review as reviews};
use crate::model::{AnswerBody, Role, Traits};

pub(crate) fn traits(role: Role, page: &SectionedText<'_>, said: &AnswerBody) -> Traits {
    match (role, said) {
        (Role::Explorer, _) => explorer::traits(page),
        (Role::Creator, _) => creator::traits(page),
        (Role::Maker, _) => maker::traits(page),
        (Role::Gatekeeper | Role::Reviewer, AnswerBody::Review(review)) => review::traits(page, review),
        (Role::Gatekeeper | Role::Reviewer, AnswerBody::Prose | AnswerBody::Proposal(_)) => Traits::default(),
    }
}

/// An answer that is read but for its traits, so that what they cost can be measured alone.
#[doc(hidden)]
pub struct Untold<'a> {
    role: Role,
    page: SectionedText<'a>,
    said: AnswerBody,
}

impl<'a> Untold<'a> {
    pub fn new(role: Role, archetype: &str, text: &'a str) -> Untold<'a> {
        let page = SectionedText::new(text);
        let said = match role {
            Role::Explorer | Role::Creator | Role::Maker => AnswerBody::Prose,
            Role::Gatekeeper | Role::Reviewer => {
                let context = reviews::ReviewContext::default();
                AnswerBody::Review(reviews::review(archetype, &page.lines, context, &mut Problems::default()))
            }
        };
        Untold { role, page, said }
    }

    pub fn traits(&self) -> Traits {
        traits(self.role, &self.page, &self.said)
    }
}

/// A line of own text, with the heading it is under.
struct Placed<'p, 'a> {
    line: &'p TextLine<'a>,
    /// The line is a heading itself; then the titles are its own.
    is_heading: bool,
    /// The titles above it, from the outermost to its own section.
    titles: Vec<&'p str>,
}

/// Calls back with every line of own text, in order.
fn each_own_line<'p, 'a>(page: &'p SectionedText<'a>, mut seen: impl FnMut(&Placed<'p, 'a>)) {
    let mut headings = page.titles().peekable();
    let mut open: Vec<(usize, &str)> = Vec::new();
    let mut placed: Option<Placed<'p, 'a>> = None;
    for (at, line) in page.lines.iter().enumerate() {
        let heading = headings.next_if(|(head, _, _)| *head == at);
        if let Some((_, level, title)) = heading {
            open.retain(|(above, _)| *above < level);
            open.push((level, title));
        }
        if line.kind != LineKind::Plain {
            continue;
        }
        let titles = match placed.take() {
            Some(before) if heading.is_none() => before.titles,
            Some(_) | None => open.iter().map(|(_, title)| *title).collect(),
        };
        let now = Placed { line, is_heading: heading.is_some(), titles };
        seen(&now);
        placed = Some(now);
    }
}

impl Placed<'_, '_> {
    /// Whether a heading above begins with one of these words.
    fn is_under(&self, starts: &[&str]) -> bool {
        self.titles.iter().any(|title| starts.iter().any(|start| title.starts_with(start)))
    }
}

fn number(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
