//! Findings as diagnostics, at the place where the cited line is now.

use std::collections::HashMap;
use std::path::Path;

use archeflow_core::model::Severity;
use archeflow_core::strategies::review::Listed;
use archeflow_host::store::files;
use lsp_types::{
    Diagnostic, DiagnosticRelatedInformation, DiagnosticSeverity, Location, NumberOrString, Range, Uri,
};

use super::LanguageServer;
use super::address::uri_of;
use super::document::EditorLines;
use super::line_map::{LineFate, LineMap};
use super::repository::{OpenReview, ReviewedRepository, is_inside};
use crate::review::{meant, message};

pub(super) const SOURCE: &str = "archeflow";
/// Larger files are not read; what an editor has open is shown whatever its size.
const LARGEST: u64 = 10 * 1024 * 1024;
const MOST_RELATED: usize = 10;
const CHANGED: &str = "The cited line has changed since the review.";

/// The text of a file as it is now, with the lines of the reviewed one in it.
struct Mapped {
    text: String,
    lines: EditorLines,
    /// Where the lines begin that git counts: after each `\n`.
    starts: Vec<usize>,
    map: Option<LineMap>,
}

impl Mapped {
    fn of(text: String, reviewed: Option<&[u8]>) -> Mapped {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        let map = reviewed.map(|reviewed| LineMap::between(reviewed, text.as_bytes()));
        Mapped { lines: EditorLines::of(&text), starts, map, text }
    }

    /// Where a line of the reviewed file is now, in bytes, and whether another is in its place. Lines are counted from 1; 0
    /// is the file as a whole.
    fn find(&self, line: u32) -> Option<(std::ops::Range<usize>, bool)> {
        let Some(line) = usize::try_from(line).ok()?.checked_sub(1) else {
            return Some((self.line(0)?, false));
        };
        let fate = self.map.as_ref().map_or(LineFate::Kept(line), |map| map.fate(line));
        match fate {
            LineFate::Kept(line) => Some((self.line(line)?, false)),
            LineFate::Changed(line) => Some((self.line(line)?, true)),
            LineFate::Deleted => None,
        }
    }

    /// The bytes of a line without blanks around it.
    fn line(&self, number: usize) -> Option<std::ops::Range<usize>> {
        let start = *self.starts.get(number)?;
        let end = self.starts.get(number + 1).map_or(self.text.len(), |next| next - 1);
        let line = &self.text[start..end];
        let from = start + (line.len() - line.trim_start().len());
        Some(from.min(start + line.trim_end().len())..start + line.trim_end().len())
    }
}

impl<W: std::io::Write> LanguageServer<W> {
    /// The diagnostics of a file now, each with the finding it is about.
    pub(super) fn diagnose(&self, repository: &ReviewedRepository, file: &str) -> Vec<Diagnostic> {
        let Some(review) = &repository.review else { return Vec::new() };
        let mut mapped = HashMap::new();
        let here = review.findings.iter().filter(|found| found.file == file);
        here.filter_map(|found| self.diagnostic(repository, review, found, &mut mapped)).collect()
    }

    fn diagnostic(
        &self,
        repository: &ReviewedRepository,
        review: &OpenReview,
        found: &Listed,
        mapped: &mut HashMap<String, Option<Mapped>>,
    ) -> Option<Diagnostic> {
        let (range, changed) =
            self.range(repository, review, (&found.file, found.line), &meant(found), mapped)?;
        let mut message = message(found);
        if changed {
            message.push('\n');
            message.push_str(CHANGED);
        }
        let mut related = Vec::new();
        if self.client.related {
            for (file, line) in found.places.iter().take(MOST_RELATED) {
                let place = self.range(repository, review, (file, *line), &[], mapped);
                let uri = self.uri(repository, file);
                if let (Some((range, _)), Some(uri)) = (place, uri) {
                    let message = "The finding rests on this line, too.".to_owned();
                    related.push(DiagnosticRelatedInformation { location: Location { uri, range }, message });
                }
            }
        }
        Some(Diagnostic {
            range,
            severity: Some(severity(found.severity)),
            code: Some(NumberOrString::String(found.fingerprint.clone())),
            source: Some(SOURCE.to_owned()),
            message,
            related_information: (!related.is_empty()).then_some(related),
            ..Diagnostic::default()
        })
    }

    /// Where a cited place is now; what the finding quotes of the line, if it is there, else the line.
    fn range(
        &self,
        repository: &ReviewedRepository,
        review: &OpenReview,
        (file, line): (&str, u32),
        quotes: &[&str],
        mapped: &mut HashMap<String, Option<Mapped>>,
    ) -> Option<(Range, bool)> {
        let read = || {
            let text = is_inside(file).then(|| self.text(&repository.root.join(file)))??;
            Some(Mapped::of(text, review.content(file)))
        };
        let mapped = mapped.entry(file.to_owned()).or_insert_with(read).as_ref()?;
        let (bytes, changed) = mapped.find(line)?;
        let text = &mapped.text[bytes.clone()];
        let quoted =
            quotes.iter().filter(|_| line > 0).find_map(|quote| Some((text.find(quote)?, quote.len())));
        let bytes = quoted.map_or(bytes.clone(), |(at, length)| bytes.start + at..bytes.start + at + length);
        Some((mapped.lines.range(&mapped.text, bytes, self.client.unit), changed))
    }

    /// A file as the editor has it, else as the disk has it.
    fn text(&self, path: &Path) -> Option<String> {
        match self.documents.get(path) {
            Some(open) => Some(open.text.clone()),
            None => {
                let bytes = files::read_capped(path, LARGEST).ok()?;
                Some(String::from_utf8_lossy(&bytes).into_owned())
            }
        }
    }

    /// The address of a file, as the client writes it.
    pub(super) fn uri(&self, repository: &ReviewedRepository, file: &str) -> Option<Uri> {
        match self.documents.get(&repository.root.join(file)) {
            Some(open) => Some(open.uri.clone()),
            None => uri_of(&repository.named(file)),
        }
    }
}

fn severity(severity: Severity) -> DiagnosticSeverity {
    match severity {
        Severity::Critical => DiagnosticSeverity::ERROR,
        Severity::Warning => DiagnosticSeverity::WARNING,
        Severity::Info => DiagnosticSeverity::INFORMATION,
    }
}
