//! Text that becomes a name: of a file, in an address, on a command line.

use super::letters::plain_letters;

const LONGEST_FILE_NAME: usize = 48;
const LONGEST_IDENTIFIER: usize = 60;

/// The words of a text as the name of a file, which is never empty.
pub fn file_name(text: &str) -> String {
    let name = plain_words(text);
    if name.is_empty() { "task".to_owned() } else { name }
}

/// The words of a text in small plain letters, digits and single hyphens, cut between words. Letters that have no plain
/// form are left out, so it may be empty.
pub fn plain_words(text: &str) -> String {
    let mut name = String::new();
    for c in plain_letters(text) {
        if c.is_ascii_alphanumeric() {
            name.push(c.to_ascii_lowercase());
        } else if !name.is_empty() && !name.ends_with('-') {
            name.push('-');
        }
        // One more than fits, to see whether the cut falls between two words.
        if name.len() > LONGEST_FILE_NAME {
            break;
        }
    }
    if name.len() > LONGEST_FILE_NAME {
        let at = name.rfind('-').unwrap_or(LONGEST_FILE_NAME);
        name.truncate(at);
    }
    name.trim_end_matches('-').to_owned()
}

/// Letters, digits, hyphens and underscores only: it is part of addresses and file names of other tools.
pub fn identifier(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c.to_ascii_lowercase() } else { '-' };
    let name: String = text.chars().take(LONGEST_IDENTIFIER).map(plain).collect();
    let name = name.trim_matches('-');
    if name.is_empty() { "other".to_owned() } else { name.to_owned() }
}

/// One word of a command line that a person copies into a shell, in quotes where it needs them.
pub fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "./_-:+@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}
