//! Which files belong to a change, and which of them are code.

use std::borrow::Cow;

use crate::model::{Change, Finding, Proposal};
use crate::text::path_key;

/// A set of files, asked by paths as people write them: in full, or with their first folders left out.
///
/// They are compared by [`path_key`]: quotation marks and the two ways to write an `ö` make no other file.
#[derive(Debug, Default)]
pub(crate) struct Places<'a> {
    /// Each with its name first, in order.
    files: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// `src/http/` and `migrations/*.sql`: the text before the star or after the last slash.
    folders: Vec<(String, String)>,
    /// Some files are not known, so nothing counts as outside.
    open: bool,
}

impl<'a> Places<'a> {
    pub(crate) fn of_change(change: &'a Change) -> Places<'a> {
        let mut places = Places { open: change.files_left_out > 0, ..Places::default() };
        places.add_all(change.files.iter().map(|file| file.path.as_str()));
        places
    }

    pub(crate) fn of_proposal(proposal: &'a Proposal) -> Places<'a> {
        let mut places = Places::default();
        places.plan(proposal);
        places
    }

    /// The files of a plan beside those already there.
    pub(crate) fn plan(&mut self, proposal: &'a Proposal) {
        self.add_all(proposal.files.iter().map(String::as_str));
    }

    fn add_all(&mut self, paths: impl Iterator<Item = &'a str>) {
        paths.for_each(|path| self.add(path));
        self.files.sort_unstable();
    }

    fn add(&mut self, path: &'a str) {
        let path = path_key(path);
        if let Some((before, after)) = path.split_once('*') {
            self.folders.push((before.to_owned(), after.trim_start_matches(['*', '/']).to_owned()));
        } else if path.ends_with('/') || !name(&path).contains('.') {
            self.folders.push((path.clone().into_owned(), String::new()));
        }
        let name = match &path {
            Cow::Borrowed(path) => Cow::Borrowed(name(path)),
            Cow::Owned(path) => Cow::Owned(name(path).to_owned()),
        };
        self.files.push((name, path));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty() && !self.open
    }

    /// Whether a file belongs here.
    pub(crate) fn hold(&self, path: &str) -> bool {
        if self.open {
            return true;
        }
        let path = path_key(path);
        let path = &*path;
        let name = name(path);
        let first = self.files.partition_point(|(known, _)| **known < *name);
        let named = self.files.iter().skip(first).take_while(|(known, _)| *known == name);
        named.map(|(_, known)| known).any(|known| is_tail(known, path) || is_tail(path, known))
            || self.folders.iter().any(|(before, after)| is_in(path, before, after))
    }

    /// Whether a finding points into one of these files: by its place, or by any place it cites.
    pub(crate) fn touch(&self, finding: &Finding) -> bool {
        self.hold(&finding.file) || finding.citations.iter().any(|citation| self.hold(&citation.file))
    }
}

fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether a path ends with another one, cut between folders.
pub(crate) fn is_tail(long: &str, short: &str) -> bool {
    long.strip_suffix(short).is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

/// Whether a path is below a folder and ends as a pattern does.
pub(crate) fn is_in(path: &str, before: &str, after: &str) -> bool {
    path.strip_prefix(before).is_some_and(|rest| {
        let bounded =
            before.is_empty() || before.ends_with('/') || !after.is_empty() || rest.starts_with('/');
        bounded && rest.ends_with(after)
    })
}

/// CL-15: documents, pictures and lock files are no code. Nor are styles, settings and data, which have no
/// unit tests, and files without an extension, whose kind is unknown.
pub(crate) fn is_code(path: &str) -> bool {
    const OTHER: [&str; 62] = [
        "md",
        "markdown",
        "mdx",
        "rst",
        "adoc",
        "asciidoc",
        "txt",
        "tex",
        "bib",
        "pdf",
        "doc",
        "docx",
        "odt",
        "png",
        "jpg",
        "jpeg",
        "gif",
        "svg",
        "webp",
        "ico",
        "bmp",
        "avif",
        "tiff",
        "woff",
        "woff2",
        "ttf",
        "otf",
        "mp3",
        "mp4",
        "wav",
        "webm",
        "mov",
        "zip",
        "gz",
        "lock",
        "sum",
        "lockb",
        "json",
        "jsonl",
        "json5",
        "yaml",
        "yml",
        "toml",
        "ini",
        "cfg",
        "conf",
        "csv",
        "tsv",
        "xml",
        "properties",
        "env",
        "css",
        "scss",
        "sass",
        "less",
        "po",
        "pot",
        "snap",
        "map",
        "example",
        "gitignore",
        "editorconfig",
    ];
    let name = name(path.trim_matches('"'));
    let Some((stem, ending)) = name.rsplit_once('.') else { return false };
    let other = OTHER.iter().any(|other| ending.eq_ignore_ascii_case(other));
    !stem.is_empty() && !other
}
