//! A review as something to read: on a terminal, in a pull request, or by a program. Everything here is drawing: a
//! [`Sheet`] goes in and text comes out, without a look at clock, disk or terminal.
//!
//! Every text of others passes [`archeflow_core::text`]. What is too much is left out, with a note. The formats are described in
//! `docs/review.md`.

mod frame;
mod github;
mod json;
mod markdown;
mod rdjson;
mod rules;
mod sarif;
mod terminal;
mod words;

#[cfg(test)]
mod schema;
#[cfg(test)]
mod tests;

use std::io;

use archeflow_core::strategies::review::{Frame, Listed, Reviewed, Since};

use crate::render::text::{Paint, stdout_width};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Terminal,
    Markdown,
    Json,
    Sarif,
    Rdjson,
    Github,
}

impl Format {
    pub(crate) const ALL: [Format; 6] =
        [Format::Terminal, Format::Markdown, Format::Json, Format::Sarif, Format::Rdjson, Format::Github];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Format::Terminal => "terminal",
            Format::Markdown => "markdown",
            Format::Json => "json",
            Format::Sarif => "sarif",
            Format::Rdjson => "rdjson",
            Format::Github => "github",
        }
    }

    /// By its name; an unknown name is answered with the known ones.
    pub(crate) fn parse(name: &str) -> Result<Format, String> {
        Format::ALL.into_iter().find(|format| format.name() == name).ok_or_else(|| {
            let names = Format::ALL.map(Format::name).join(", ");
            format!("'{name}' is no format of a review; there are {names}")
        })
    }
}

/// How it may look where people read it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    pub(crate) paint: Paint,
    /// In columns.
    pub(crate) width: usize,
}

impl Look {
    /// For a file or a pipe.
    pub(crate) const PLAIN: Look = Look { paint: Paint(false), width: 100 };

    pub(crate) fn for_stdout() -> Look {
        Look { paint: Paint::for_stdout(), width: stdout_width().unwrap_or(Look::PLAIN.width) }
    }
}

/// Everything a review is drawn from.
pub(crate) struct Sheet<'a> {
    pub(crate) run_id: &'a str,
    pub(crate) version: &'a str,
    pub(crate) reviewed: &'a Reviewed,
    /// The lines that the findings point to, in their order.
    pub(crate) frames: &'a [Option<Frame>],
    /// Only what is different from the review before.
    pub(crate) since_last: bool,
    /// Where the plan of what was sent to whom is.
    pub(crate) plan: &'a str,
    pub(crate) repository_root: Option<&'a str>,
}

impl<'a> Sheet<'a> {
    /// The findings with the lines they point to.
    fn all(&self) -> impl Iterator<Item = (&'a Listed, Option<&'a Frame>)> {
        let frames = self.frames.iter().map(Option::as_ref).chain(std::iter::repeat(None));
        self.reviewed.findings.iter().zip(frames)
    }

    /// The findings that are shown.
    fn shown(&self) -> impl Iterator<Item = (&'a Listed, Option<&'a Frame>)> {
        let since_last = self.since_last;
        self.all().filter(move |(found, _)| !since_last || is_news(found))
    }

    /// Findings that count and were there before.
    fn persistent(&self) -> usize {
        let is_old = |found: &&Listed| found.counts() && found.since == Some(Since::Persistent);
        self.reviewed.findings.iter().filter(is_old).count()
    }

    /// With `--since-last`, nothing is printed if there is nothing new.
    fn is_silent(&self) -> bool {
        self.since_last && !self.reviewed.has_news()
    }
}

fn is_news(found: &Listed) -> bool {
    found.counts() && found.since != Some(Since::Persistent)
}

/// Limits of what is shown. Only JSON has all of it.
mod most {
    /// Findings with a frame and all remarks on a terminal; the others have a line each.
    pub(super) const FRAMED: usize = 200;
    pub(super) const REMARKS: usize = 5;
    pub(super) const SENTENCE: usize = 400;
    pub(super) const PARAGRAPH: usize = 1_500;
    pub(super) const CODE: usize = 400;
    /// A comment on a code host ends at 65,536 characters.
    pub(super) const COMMENT: usize = 60_000;
    /// What ends a comment for the program itself.
    pub(super) const MARKER: usize = 12_000;
    pub(super) const ROWS: usize = 50;
    /// What code scanning takes in one run.
    pub(super) const RESULTS: usize = 25_000;
    /// What a step of a workflow shows of each level.
    pub(super) const ANNOTATIONS: usize = 10;
}

/// Writes the review in this format. With `since_last` and nothing new, the formats for people are empty.
pub(crate) fn write(
    format: Format,
    sheet: &Sheet<'_>,
    out: &mut dyn io::Write,
    look: Look,
) -> io::Result<()> {
    let text = match format {
        Format::Terminal => terminal::draw(sheet, look),
        Format::Markdown => markdown::draw(sheet),
        Format::Json => written(&json::draw(sheet)),
        Format::Sarif => written(&sarif::draw(sheet, most::RESULTS)),
        Format::Rdjson => written(&rdjson::draw(sheet)),
        Format::Github => github::draw(sheet),
    };
    out.write_all(text.as_bytes())
}

/// One finding as a Markdown document.
pub(crate) fn evidence(run_id: &str, found: &Listed, frame: Option<&Frame>) -> String {
    markdown::page(run_id, found, frame)
}

/// What a posted review says about the threads of its request. Numbers are places in the list of findings.
pub(crate) struct PostedThreads<'a> {
    pub(crate) begun: usize,
    pub(crate) resolved: usize,
    pub(crate) reopened: usize,
    pub(crate) persistent: usize,
    pub(crate) without_thread: Vec<usize>,
    /// Still raised, but their thread was resolved or deleted by a person.
    pub(crate) proposed: Vec<usize>,
    /// The file of a thread, and why it is left open.
    pub(crate) left_open: Vec<(&'a str, &'static str)>,
}

impl PostedThreads<'_> {
    /// `2 new threads, 1 resolved, 3 still open.`
    pub(crate) fn counts(&self) -> String {
        let others = [
            (self.resolved, "resolved"),
            (self.reopened, "opened again"),
            (self.persistent, "still open"),
            (self.left_open.len(), "not raised any more but left open"),
        ];
        let others = others.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!(", {n} {what}"));
        format!("{}{}.", words::count(self.begun, "new thread"), others.collect::<String>())
    }
}

/// A finding as a comment on a code host.
pub(crate) fn comment(found: &Listed) -> String {
    markdown::comment(found)
}

/// The whole review as a comment on a code host.
pub(crate) fn overview(sheet: &Sheet<'_>, posted: &PostedThreads<'_>) -> String {
    markdown::overview(sheet, posted)
}

/// The first letters of a commit's name.
pub(crate) fn short(oid: &str) -> String {
    words::short(oid)
}

/// `1 finding`, `2 findings`.
pub(crate) fn count(n: usize, what: &str) -> String {
    words::count(n, what)
}

/// `2 critical, 1 warning`, with what does not count.
pub(crate) fn counts(reviewed: &Reviewed) -> String {
    words::counts(reviewed)
}

/// A finding as an editor shows it beside a line: the reviewer's words, and what speaks for them.
pub(crate) fn message(found: &Listed) -> String {
    words::message(found)
}

/// What a finding quotes in backticks: most likely what it means.
pub(crate) use frame::meant;

/// JSON over several lines that drives neither a terminal nor a workflow.
fn written(value: &impl serde::Serialize) -> String {
    archeflow_core::text::json(&serde_json::to_string_pretty(value).unwrap_or_default()) + "\n"
}
