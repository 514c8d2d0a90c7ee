//! Commands that need a person's approval (PJ-34). They are looked for in plans and in changes; a text that
//! only mentions one is found too, which is the careful side.

/// The first forbidden command of a text: its line, counted from 1, and the pattern that matched.
pub fn forbidden<'p>(text: &str, patterns: &'p [String]) -> Option<(usize, &'p str)> {
    (1..).zip(text.lines()).find_map(|(number, line)| {
        let words = words(line);
        let found = patterns.iter().find(|pattern| matches(&words, pattern));
        found.map(|pattern| (number, pattern.as_str()))
    })
}

/// The words of a line in lower case. Quotes and escapes hide nothing; a separator is a word of its own.
fn words(line: &str) -> Vec<String> {
    let mut spaced = String::with_capacity(line.len());
    for c in line.chars().filter(|c| !matches!(c, '"' | '\'' | '`' | '\\')) {
        match c {
            ';' | '|' | '&' | '(' | ')' | '{' | '}' => spaced.extend([' ', ';', ' ']),
            '=' => spaced.extend([' ', '=', ' ']),
            _ => spaced.extend(c.to_lowercase()),
        }
    }
    spaced.split_whitespace().map(str::to_owned).collect()
}

fn matches(line: &[String], pattern: &str) -> bool {
    let pattern = words(pattern);
    let Some((first, rest)) = pattern.split_first() else { return false };
    let begins = |word: &String| word == first || word.rsplit('/').next() == Some(first.as_str());
    (0..).zip(line).any(|(at, word)| begins(word) && follows(line.get(at + 1..).unwrap_or(&[]), rest))
}

/// Whether a pattern has more than its first word.
fn follows(line: &[String], pattern: &[String]) -> bool {
    let Some((wanted, rest)) = pattern.split_first() else { return true };
    if wanted == ".." {
        return (0..=line.len()).any(|at| follows(line.get(at..).unwrap_or(&[]), rest));
    }
    if wanted.starts_with('-') {
        return has_flags(line, wanted) && follows(line, rest);
    }
    line.split_first()
        .is_some_and(|(word, behind)| word.trim_end_matches([';', ',']) == wanted && follows(behind, rest))
}

/// Whether all letters of a flag are given before the command ends, together or one by one, or by their long names.
fn has_flags(line: &[String], wanted: &str) -> bool {
    let mut given = String::new();
    for word in line.iter().take_while(|word| *word != ";") {
        match word.as_str() {
            "--recursive" => given.push('r'),
            "--force" => given.push('f'),
            long if long.starts_with("--") => {}
            short => given.push_str(short.strip_prefix('-').unwrap_or("")),
        }
    }
    wanted.chars().skip(1).all(|letter| given.contains(letter))
}
