//! Lines without anything that drives a terminal or hides, at most N characters long.

/// Characters that show nothing or reorder what is around them, so that a person reads other text than a machine.
pub fn hides(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Whether a character drives a terminal or hides from the reader. Line breaks and tabs count as well.
pub fn is_unsafe(c: char) -> bool {
    c.is_control() || hides(c)
}

/// Text without anything that could drive a terminal or hide from the reader: no escapes, no controls but line breaks
/// and tabs, no direction marks, no invisible characters.
pub fn safe(text: &str) -> String {
    text.chars().filter(|c| matches!(c, '\n' | '\t') || !is_unsafe(*c)).collect()
}

/// The same on one line, with one blank between words.
pub fn safe_line(text: &str) -> String {
    if is_plain(text) {
        return text.to_owned();
    }
    let blank = |c: char| if c.is_whitespace() { ' ' } else { c };
    let visible: String = text.chars().map(blank).filter(|c| !is_unsafe(*c)).collect();
    words(&visible)
}

/// A safe line of at most N characters.
pub fn short_line(text: &str, most: usize) -> String {
    cut(&safe_line(&beginning(text, most)), most)
}

/// Safe lines of at most N characters in all.
pub fn short_text(text: &str, most: usize) -> String {
    cut(&safe(&beginning(text, most)), most)
}

/// A safe line in which a code host's workflow finds no command: its log takes `##[` for one anywhere.
pub fn log_line(text: &str, most: usize) -> String {
    without_commands(&short_line(text, most))
}

/// The same over several lines.
pub fn log_text(text: &str, most: usize) -> String {
    without_commands(&short_text(text, most))
}

pub(super) fn without_commands(text: &str) -> String {
    text.replace("##[", "## [")
}

/// A branch as people name it: `main`, or `origin/main` for one of a remote.
pub fn branch_name(reference: &str) -> &str {
    let local = reference.strip_prefix("refs/heads/");
    local.or_else(|| reference.strip_prefix("refs/remotes/")).unwrap_or(reference)
}

/// One line of at most 160 characters for the inside of the program. It is not filtered: journals hold such lines, and
/// what a person wrote stays as it was until it is printed.
pub fn one_line(text: &str) -> String {
    cut(&words(text), 160)
}

/// Cuts to N characters, with an ellipsis.
pub fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// Pads by characters, so that colours added later do not count.
pub fn pad(text: &str, width: usize) -> String {
    pad_after(text, text, width)
}

/// Pads painted text by the width of the plain one.
pub fn pad_after(plain: &str, painted: &str, width: usize) -> String {
    let missing = width.saturating_sub(plain.chars().count());
    format!("{painted}{}", " ".repeat(missing))
}

/// A line of a file of which nothing is dropped: what would hide is written out, as a reader of a diff must see it.
pub fn revealed(line: &str, most: usize) -> String {
    let mut out = String::new();
    for (n, c) in line.chars().enumerate() {
        if n == most {
            out.push('…');
            break;
        }
        if c == '\t' { out.push(c) } else { reveal(&mut out, c) }
    }
    out
}

pub(super) fn reveal(out: &mut String, c: char) {
    if is_unsafe(c) {
        out.push_str(&format!("⟨U+{:04X}⟩", u32::from(c)));
    } else {
        out.push(c);
    }
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Text that is cut anyway is not filtered to its end. Four times as much is left, since the filter takes some away.
fn beginning(text: &str, most: usize) -> String {
    text.chars().take(most.saturating_mul(4)).collect()
}

/// Most text is one line of letters with nothing to take out; ten thousand findings have a lot of it.
fn is_plain(text: &str) -> bool {
    let mut before = b' ';
    for byte in text.as_bytes() {
        if !matches!(byte, b' '..=b'~') || (*byte == b' ' && before == b' ') {
            return false;
        }
        before = *byte;
    }
    before != b' ' || text.is_empty()
}
