//! Something to read: an artifact, the diff, the help. Its lines are wrapped to the width of the screen once.

use archeflow_core::model::counted;
use unicode_width::UnicodeWidthChar;

use crate::render::text::safe;
use crate::report::diff::{Diff, Kind};
use archeflow_core::projections::live::bounded;

/// More is cut, and the page says so.
const LINES: usize = 20_000;
const LONGEST: usize = 4_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Look {
    #[default]
    Plain,
    Title,
    Added,
    Deleted,
    Dim,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Page {
    pub(crate) title: String,
    lines: Vec<(Look, String)>,
    /// As shown on the screen.
    pub(crate) rows: Vec<(Look, String)>,
    wide: usize,
    pub(crate) top: usize,
}

impl Page {
    pub(crate) fn new(title: &str, lines: Vec<(Look, String)>) -> Page {
        Page { title: bounded(title), lines, ..Page::default() }
    }

    /// A text as it is, with its headings marked.
    pub(crate) fn text(title: &str, text: &str) -> Page {
        let clean = |line: &str| safe(&line.chars().take(LONGEST).collect::<String>()).replace('\t', "    ");
        let mut lines: Vec<(Look, String)> = text
            .lines()
            .take(LINES)
            .map(|line| (if line.starts_with('#') { Look::Title } else { Look::Plain }, clean(line)))
            .collect();
        if text.lines().nth(LINES).is_some() {
            lines.push((Look::Dim, format!("… only the first {LINES} lines are shown")));
        }
        Page::new(title, lines)
    }

    pub(crate) fn diff(diff: &Diff) -> Page {
        let mut lines = Vec::new();
        if let Some(missing) = &diff.missing {
            lines.push((Look::Plain, bounded(missing)));
        }
        for file in &diff.files {
            let counts = format!("  +{} -{}", file.added, file.deleted);
            lines.push((Look::Title, format!("{} {}{counts}", file.word, bounded(&file.path))));
            for (kind, text) in &file.lines {
                let look = match kind {
                    Kind::Hunk | Kind::Note => Look::Dim,
                    Kind::Same => Look::Plain,
                    Kind::Added => Look::Added,
                    Kind::Deleted => Look::Deleted,
                };
                let text: String = text.chars().take(LONGEST).collect();
                lines.push((look, safe(&text).replace('\t', "    ")));
            }
            lines.push((Look::Plain, String::new()));
        }
        lines.extend(diff.left_out().map(|words| (Look::Dim, words)));
        let title = format!(
            "The change: {}, +{} -{}",
            counted(diff.files.len(), "file"),
            diff.added(),
            diff.deleted()
        );
        Page::new(&title, lines)
    }

    /// Wraps again if the width has changed.
    pub(crate) fn fit(&mut self, wide: usize) {
        let wide = wide.max(1);
        if self.wide == wide {
            return;
        }
        self.wide = wide;
        self.rows.clear();
        for (look, line) in &self.lines {
            let rows = wrapped(line, wide).into_iter().map(|row| (*look, row));
            self.rows.extend(rows);
        }
    }

    /// Moves by rows; a page ends at its last screenful.
    pub(crate) fn scroll(&mut self, by: isize, tall: usize) {
        let most = self.rows.len().saturating_sub(tall);
        self.top = self.top.saturating_add_signed(by).min(most);
    }
}

/// Cuts a line into rows of at most this width, at blanks where there are some.
pub(crate) fn wrapped(line: &str, wide: usize) -> Vec<String> {
    let mut rows = Vec::new();
    let (mut row, mut used, mut blank) = (String::new(), 0, None);
    for c in line.chars() {
        let width = c.width().unwrap_or(0);
        if used + width > wide && !row.is_empty() {
            let rest = match blank {
                Some(at) if c != ' ' => row.split_off(at),
                Some(_) | None => String::new(),
            };
            rows.push(row.trim_end().to_owned());
            row = rest.trim_start().to_owned();
            used = row.chars().map(|c| c.width().unwrap_or(0)).sum();
            blank = None;
            if c == ' ' {
                continue;
            }
        }
        if c == ' ' && !row.trim().is_empty() {
            blank = Some(row.len());
        }
        row.push(c);
        used += width;
    }
    rows.push(row);
    rows
}
