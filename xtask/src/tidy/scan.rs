//! Takes Rust apart into code, string literals and comments, line by line: just enough to look for words where they
//! mean something.

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SourceLine {
    pub(super) number: usize,
    /// The line without comments; a string literal is left as `""`.
    pub(super) code: String,
    /// The string literals that begin on this line.
    pub(super) strings: Vec<String>,
    pub(super) comment: String,
}

pub(super) fn lines(text: &str) -> Vec<SourceLine> {
    let mut scan =
        Scan { rest: text, done: Vec::new(), now: SourceLine { number: 1, ..SourceLine::default() } };
    while !scan.rest.is_empty() {
        scan.step();
    }
    scan.done.push(scan.now);
    scan.done
}

/// Leaves modules marked `#[cfg(test)]` out.
pub(super) fn without_tests(lines: Vec<SourceLine>) -> Vec<SourceLine> {
    let mut kept: Vec<SourceLine> = Vec::new();
    let mut marked = false;
    let mut depth = 0_i32;
    for line in lines {
        let code = line.code.trim();
        if depth == 0 && code.starts_with("#[cfg(test)]") {
            marked = true;
            continue;
        }
        if depth == 0 && marked && !code.is_empty() && !code.starts_with("#[") {
            marked = false;
            if code.starts_with("mod ") {
                depth = braces(code);
                continue;
            }
        }
        if depth > 0 {
            depth += braces(code);
        } else {
            kept.push(line);
        }
    }
    kept
}

fn braces(code: &str) -> i32 {
    code.chars().map(|c| i32::from(c == '{') - i32::from(c == '}')).sum()
}

struct Scan<'a> {
    rest: &'a str,
    done: Vec<SourceLine>,
    now: SourceLine,
}

impl<'a> Scan<'a> {
    fn step(&mut self) {
        if self.rest.starts_with("//") {
            let end = self.rest.find('\n').unwrap_or(self.rest.len());
            let comment = self.take(end);
            self.now.comment.push_str(comment.trim_start_matches(['/', '!']));
        } else if self.rest.starts_with("/*") {
            self.block_comment();
        } else if let Some(hashes) = self.raw_string() {
            self.string(&format!("\"{hashes}"), false);
        } else if self.rest.starts_with('"') {
            self.take(1);
            self.string("\"", true);
        } else if self.rest.starts_with('\'') {
            self.quote();
        } else {
            self.plain();
        }
    }

    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        taken
    }

    fn plain(&mut self) {
        let Some(letter) = self.rest.chars().next() else { return };
        self.take(letter.len_utf8());
        if letter == '\n' { self.next_line() } else { self.now.code.push(letter) }
    }

    fn next_line(&mut self) {
        let number = self.now.number + 1;
        self.done.push(std::mem::replace(&mut self.now, SourceLine { number, ..SourceLine::default() }));
    }

    fn block_comment(&mut self) {
        let mut depth = 0;
        while !self.rest.is_empty() {
            if self.rest.starts_with("/*") || self.rest.starts_with("*/") {
                depth += if self.take(2) == "/*" { 1 } else { -1 };
                if depth == 0 {
                    return;
                }
            } else if let Some(letter) = self.rest.chars().next() {
                self.take(letter.len_utf8());
                if letter == '\n' { self.next_line() } else { self.now.comment.push(letter) }
            }
        }
    }

    /// Enters a raw string, and returns how many hashes end it.
    fn raw_string(&mut self) -> Option<String> {
        let inside_a_word = self.now.code.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let after = self.rest.strip_prefix("br").or_else(|| self.rest.strip_prefix('r'))?;
        let hashes: String = after.chars().take_while(|c| *c == '#').collect();
        let body = after[hashes.len()..].strip_prefix('"')?;
        if inside_a_word {
            return None;
        }
        self.rest = body;
        Some(hashes)
    }

    /// The rest of a string literal up to `end`; it belongs to the line it begins on.
    fn string(&mut self, end: &str, escapes: bool) {
        let began = self.done.len();
        let mut text = String::new();
        while !self.rest.is_empty() && !self.rest.starts_with(end) {
            let escaped = escapes && self.rest.starts_with('\\');
            for letter in self.rest.chars().take(if escaped { 2 } else { 1 }).collect::<Vec<_>>() {
                self.take(letter.len_utf8());
                text.push(letter);
                if letter == '\n' {
                    self.next_line();
                }
            }
        }
        self.take(end.len().min(self.rest.len()));
        let line = self.done.get_mut(began).unwrap_or(&mut self.now);
        line.strings.push(text);
        line.code.push_str("\"\"");
    }

    /// A character, or a lifetime.
    fn quote(&mut self) {
        let mut letters = self.rest.char_indices().skip(1);
        let length = match (letters.next(), letters.next()) {
            (Some((_, '\\')), _) => {
                self.rest[2..].char_indices().skip(1).find(|(_, c)| *c == '\'').map(|(at, _)| at + 3)
            }
            (Some(_), Some((at, '\''))) => Some(at + 1),
            _ => None,
        };
        self.take(length.unwrap_or(1));
        self.now.code.push('\'');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, code: &[&str], strings: &[&str], comments: &[&str]) {
        let lines = lines(text);
        assert_eq!(lines.iter().map(|line| line.code.as_str()).collect::<Vec<_>>(), code, "{text}");
        let found: Vec<_> = lines.iter().flat_map(|line| line.strings.iter().map(String::as_str)).collect();
        assert_eq!(found, strings, "{text}");
        let found: Vec<_> = lines.iter().map(|line| line.comment.trim()).filter(|c| !c.is_empty()).collect();
        assert_eq!(found, comments, "{text}");
    }

    #[test]
    fn code_strings_and_comments() {
        check("a(\"b // c\"); // d", &["a(\"\"); "], &["b // c"], &["d"]);
        check("r#\"a \" b\"# x", &["\"\" x"], &["a \" b"], &[]);
        check("\"a \\\" b\"", &["\"\""], &["a \\\" b"], &[]);
        check("/* a /* b */ c */ d", &[" d"], &[], &["a  b  c"]);
        check("let c = '\"'; // x", &["let c = '; "], &[], &["x"]);
        check("let c = '\\''; fn f<'a>() {}", &["let c = '; fn f<'a>() {}"], &[], &[]);
        check("for\"a\nb\";\nc", &["for\"\"", ";", "c"], &["a\nb"], &[]);
    }

    #[test]
    fn test_modules_are_left_out() {
        let text = "a\n#[cfg(test)]\nmod tests {\n    #![x]\n    b { }\n}\nc\n#[cfg(test)]\nfn d() {}";
        let kept: Vec<usize> = without_tests(lines(text)).iter().map(|line| line.number).collect();
        assert_eq!(kept, [1, 7, 9]);
    }
}
