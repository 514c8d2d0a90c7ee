//! The description of a change, as Markdown. The text is other people's: it is quoted, so that none of them
//! can pass for a line of ours.

use crate::git::change::{self, ChangedPath, PathStatus, quote_path};
use crate::git::repo::Repo;
use crate::git::{ObjectId, runner};

const FILES: usize = 500;
const COMMITS: usize = 100;
/// For all messages together.
const WORDS: usize = 64 * 1024;
const TITLE: usize = 200;

/// The description, the notes, and at the end the files.
pub(super) fn whole(said: &str, notes: &[String], changed: &[ChangedPath]) -> String {
    let mut text = String::from(said);
    if !notes.is_empty() {
        section(&mut text, "Notes");
        notes.iter().for_each(|note| text.push_str(&format!("- {note}\n")));
    }
    section(&mut text, "Changed files");
    for one in changed.iter().take(FILES) {
        text.push_str(&format!("    {}\n", line(one)));
    }
    if let Some(more) = changed.len().checked_sub(FILES).filter(|more| *more > 0) {
        text.push_str(&format!("\nand {more} more\n"));
    }
    text
}

fn section(text: &mut String, name: &str) {
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(&format!("## {name}\n\n"));
}

fn line(one: &ChangedPath) -> String {
    let letter = match one.status {
        PathStatus::Added => 'A',
        PathStatus::Modified => 'M',
        PathStatus::Deleted => 'D',
        PathStatus::TypeChanged => 'T',
    };
    let counts = match (one.added, one.deleted) {
        (Some(added), Some(deleted)) => format!("+{added} -{deleted}"),
        (None, _) | (_, None) => "binary".to_owned(),
    };
    format!("{letter} {counts} {}", quote_path(&one.path))
}

/// The messages of the commits from `base` to `tip`, newest last.
pub(super) fn commits(repo: &Repo, base: &ObjectId, tip: &ObjectId) -> Result<String, runner::Error> {
    let range = format!("{base}..{tip}");
    let output = repo
        .side()?
        .args(["log", "-z", "--no-show-signature", "--no-color", "--no-mailmap", "--topo-order"])
        .args([&format!("--max-count={COMMITS}"), "--format=%h %B", &range])
        .cap(WORDS)
        .done()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut messages: Vec<&str> = said.split('\0').filter(|message| !message.trim().is_empty()).collect();
    if messages.is_empty() {
        return Ok(String::new());
    }
    messages.reverse();
    let all = change::commits(repo, base, tip)? as usize;
    let mut text = String::new();
    section(&mut text, "Commits");
    if let Some(more) = all.checked_sub(messages.len()).filter(|more| *more > 0) {
        text.push_str(&format!("{more} earlier ones are left out.\n\n"));
    }
    let quoted: Vec<String> = messages.into_iter().map(quoted).collect();
    text.push_str(&quoted.join("\n"));
    Ok(text)
}

/// Other people's text as a quote, under a heading of ours.
pub(super) fn quoted_section(heading: &str, words: &str) -> String {
    let mut text = String::new();
    section(&mut text, heading);
    let kept: String = words.chars().take(WORDS).collect();
    text.push_str(&quoted(&kept));
    if kept.len() < words.len() {
        text.push_str("\nThe rest is left out.\n");
    }
    text
}

fn quoted(words: &str) -> String {
    let words: String =
        words.chars().filter(|letter| !letter.is_control() || matches!(letter, '\n' | '\t')).collect();
    words.trim().lines().map(|line| format!("> {line}").trim_end().to_owned() + "\n").collect()
}

/// A title: one line of moderate length.
pub(super) fn one_line(text: &str) -> String {
    let words: String = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    words.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(TITLE).collect()
}
