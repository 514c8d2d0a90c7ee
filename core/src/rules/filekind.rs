//! What kind of file a changed file is: whether a person wrote it, or a tool. Its table is `docs/rules/filekinds.md`.
//!
//! The kind only determines how much of a large file reviewers see. A name or a comment is easily forged, so a small
//! file is shown whatever it calls itself, a large one is summarised by name and counts, and the program's own scan
//! ([`signs`](super::signs)) reads all of them. Where it is not clear, the file is `FileKind::Plain`.

use serde::{Deserialize, Serialize};

use crate::model::Splitting;
use crate::model::named::named;

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum FileKind {
        Plain = "plain",
        /// The exact versions a package manager chose.
        Lock = "lock",
        /// Third-party code, copied in.
        Vendored = "vendored",
        /// Written by a tool.
        Generated = "generated",
        /// Made small for machines, or a map of that.
        Minified = "minified",
        Binary = "binary",
    }
}

/// How much of a file reviewers get to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Treatment {
    Whole,
    /// Only the first N changed lines.
    Head(u32),
    /// Its name and its counts.
    Summary,
}

/// The treatment of a file by its kind and number of changed lines.
pub fn treatment(kind: FileKind, changed: u64, splitting: &Splitting) -> Treatment {
    match kind {
        FileKind::Plain => Treatment::Whole,
        FileKind::Binary => Treatment::Summary,
        FileKind::Lock if changed > u64::from(splitting.shown_lock_lines) => {
            Treatment::Head(splitting.shown_lock_lines)
        }
        FileKind::Vendored | FileKind::Generated | FileKind::Minified
            if changed > u64::from(splitting.summarise_above_lines) =>
        {
            Treatment::Summary
        }
        FileKind::Lock | FileKind::Vendored | FileKind::Generated | FileKind::Minified => Treatment::Whole,
    }
}

/// How many bytes of a file's beginning [`kind`] needs to see.
pub const HEAD: usize = 8 * 1024;

/// The kind of a file, by its path (quoted or not) and the beginning of its *new* content. Without content, as for a
/// deleted file, only the path counts.
pub fn kind(path: &str, head: &str) -> FileKind {
    let path = path.trim_matches('"');
    let mut folders: Vec<&str> = path.split('/').collect();
    let name = folders.pop().unwrap_or_default();
    if head.contains('\0') {
        FileKind::Binary
    } else if LOCKS.contains(&name) {
        FileKind::Lock
    } else if is_vendored(&folders) {
        FileKind::Vendored
    } else if is_minified(name, head) {
        FileKind::Minified
    } else if is_named_generated(&folders, name) || says_generated(head) {
        FileKind::Generated
    } else {
        FileKind::Plain
    }
}

const LOCKS: [&str; 26] = [
    "Cargo.lock",
    "package-lock.json",
    "npm-shrinkwrap.json",
    "yarn.lock",
    "pnpm-lock.yaml",
    "bun.lock",
    "deno.lock",
    "poetry.lock",
    "uv.lock",
    "pdm.lock",
    "pixi.lock",
    "Pipfile.lock",
    "conda-lock.yml",
    "go.sum",
    "go.work.sum",
    "Gemfile.lock",
    "composer.lock",
    "flake.lock",
    "mix.lock",
    "pubspec.lock",
    "Podfile.lock",
    "Package.resolved",
    "packages.lock.json",
    "gradle.lockfile",
    "MODULE.bazel.lock",
    ".terraform.lock.hcl",
];

/// A folder called `vendor` may also be about people who sell things. It counts at the top, where package managers put
/// it, and where what follows is a place such as `github.com`.
fn is_vendored(folders: &[&str]) -> bool {
    const SURE: [&str; 7] = [
        "node_modules",
        "third_party",
        "third-party",
        "thirdparty",
        "bower_components",
        "jspm_packages",
        "site-packages",
    ];
    let sure = folders.iter().any(|folder| SURE.contains(folder));
    let vendor = folders.iter().enumerate().any(|(at, folder)| {
        let below = folders.get(at + 1).copied().unwrap_or_default();
        *folder == "vendor" && (at == 0 || below.contains('.') || below == "bundle")
    });
    let yarn = folders.windows(2).any(|two| matches!(two, [".yarn", "releases" | "plugins" | "cache"]));
    sure || vendor || yarn
}

fn is_minified(name: &str, head: &str) -> bool {
    const NAMES: [&str; 4] = [".min.js", ".min.mjs", ".min.cjs", ".min.css"];
    const MAPS: [&str; 5] = [".js.map", ".mjs.map", ".cjs.map", ".css.map", ".ts.map"];
    const SQUEEZED: [&str; 4] = [".js", ".mjs", ".cjs", ".css"];
    let ends = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
    ends(&NAMES) || ends(&MAPS) || (ends(&SQUEEZED) && is_mostly_long_lines(head))
}

/// Lines that no person writes; text of which half is in such lines is generated.
const UNWRITTEN_LINE: usize = 1_000;

fn is_mostly_long_lines(head: &str) -> bool {
    let long: usize = head.lines().map(str::len).filter(|length| *length > UNWRITTEN_LINE).sum();
    long > 0 && long * 2 > head.len()
}

fn is_named_generated(folders: &[&str], name: &str) -> bool {
    const ENDINGS: [&str; 18] = [
        ".pb.go",
        ".pb.gw.go",
        "_grpc.pb.go",
        ".pb.cc",
        ".pb.h",
        ".pb.swift",
        "_pb2.py",
        "_pb2.pyi",
        "_pb2_grpc.py",
        "_pb.js",
        "_pb.d.ts",
        "_pb.rb",
        ".g.dart",
        ".freezed.dart",
        ".designer.cs",
        ".Designer.cs",
        ".g.cs",
        ".g.i.cs",
    ];
    let snapshot = name.ends_with(".snap")
        && folders.last().is_some_and(|folder| matches!(*folder, "__snapshots__" | "snapshots"));
    snapshot || ENDINGS.iter().any(|ending| name.ends_with(ending) && name.len() > ending.len())
}

/// Only the comment a file begins with can say so, and only in the words tools use: a file about generated files, or
/// one with those words in a string, was written by a person.
fn says_generated(head: &str) -> bool {
    let comment = leading_comment(head);
    let forbids = comment.iter().any(|line| forbids_editing(line));
    comment.iter().any(|line| is_mark(line) || (forbids && names_a_maker(line)))
}

/// Lines in which a file may say what it is.
const LINES_OF_HEAD: usize = 25;

/// The text of the comment before the first line of code, without its signs, in small letters.
fn leading_comment(head: &str) -> Vec<String> {
    const BLOCKS: [(&str, &str); 4] = [("/*", "*/"), ("<!--", "-->"), ("\"\"\"", "\"\"\""), ("{-", "-}")];
    const SIGNS: [&str; 7] = ["//", "#", "--", ";", "%", "'", ".."];
    const PROLOGUES: [&str; 6] = ["#!", "<?xml", "<?php", "<!doctype", "@charset", "\"use strict\""];
    let mut lines = Vec::new();
    let mut block: Option<&str> = None;
    for line in head.trim_start_matches('\u{feff}').lines().take(LINES_OF_HEAD) {
        let line = line.trim().to_lowercase();
        let mut text = line.as_str();
        if block.is_none() {
            if text.is_empty() || PROLOGUES.iter().any(|prologue| text.starts_with(prologue)) {
                continue;
            }
            if let Some((opening, closing)) = BLOCKS.iter().find(|(opening, _)| text.starts_with(opening)) {
                block = Some(closing);
                text = &text[opening.len()..];
            } else if !SIGNS.iter().any(|sign| text.starts_with(sign)) {
                break;
            }
        }
        if let Some(at) = block.and_then(|closing| text.find(closing)) {
            let after = text[at..].trim_start_matches(['*', '/', '-', '>', '"', '}']);
            lines.push(bare(&text[..at]));
            block = None;
            if !after.trim().is_empty() {
                break;
            }
            continue;
        }
        lines.push(bare(text));
    }
    lines
}

fn bare(text: &str) -> String {
    let text = text.trim_matches(|c: char| {
        c.is_whitespace() || matches!(c, '/' | '*' | '#' | '-' | ';' | '%' | '\'' | '!' | '=')
    });
    text.to_owned()
}

/// Words that only tools put there.
fn is_mark(line: &str) -> bool {
    let word = |mark: &str| {
        line.strip_prefix(mark)
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    };
    word("@generated")
        || word("this file is @generated")
        || word("this file is automatically @generated")
        || line.starts_with("<auto-generated")
        || (line.starts_with("code generated ") && forbids_editing(line))
}

fn forbids_editing(line: &str) -> bool {
    const WORDS: [&str; 5] =
        ["do not edit", "don't edit", "do not modify", "do not change", "should not be edited"];
    WORDS.iter().any(|words| line.contains(words))
}

/// A line that begins by saying who made the file.
fn names_a_maker(line: &str) -> bool {
    const BEGINNINGS: [&str; 13] = [
        "generated by",
        "generated from",
        "autogenerated",
        "auto-generated",
        "auto generated",
        "automatically generated",
        "this file is generated",
        "this file was generated",
        "this file is auto",
        "this file was auto",
        "this file has been generated",
        "this file has been auto",
        "generated code",
    ];
    BEGINNINGS.iter().any(|beginning| line.starts_with(beginning))
}
