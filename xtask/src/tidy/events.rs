//! Matches over events name every type of line, so that a new one does not compile until each reader has an opinion.
//!
//! clippy says so for `_` as a whole arm. It does not look into tuples, options and nested enums; this rule does.

use super::scan;
use super::{Complaint, Tree, complaint};

const SOURCES: [&str; 3] = ["core/src/", "host/src/", "app/src/"];

/// The enums of the two languages.
const ENUMS: [&str; 7] =
    ["Event::", "Decision::", "Order::", "Report::", "Conclusion::", "Topic::", "SprintEvent::"];

/// No arm that takes whatever is left in a match that names types of lines.
pub(super) fn wildcards(tree: &Tree) -> Vec<Complaint> {
    let mut found = Vec::new();
    for (path, text) in tree.under(&SOURCES, ".rs") {
        let lines = scan::without_tests(scan::lines(text));
        let code: Vec<(usize, char)> = lines
            .iter()
            .flat_map(|line| line.code.chars().chain(['\n']).map(|letter| (line.number, letter)))
            .collect();
        for arms in matches_in(&code) {
            let named = |arm: &Arm| ENUMS.iter().any(|name| names_variant(&arm.pattern, name));
            if !arms.iter().any(named) {
                continue;
            }
            for arm in arms.iter().filter(|arm| alternatives(&arm.pattern).any(|one| takes_rest(one, &arms)))
            {
                let what = format!("`{}` takes types of lines that nobody thought of", arm.pattern.trim());
                found.push(complaint(path, arm.line, what));
            }
        }
    }
    found
}

struct Arm {
    line: usize,
    pattern: String,
}

/// The arms of every match, those within others included.
fn matches_in(code: &[(usize, char)]) -> Vec<Vec<Arm>> {
    let text: String = code.iter().map(|(_, letter)| *letter).collect();
    // Positions are counted in characters.
    let letters: Vec<char> = text.chars().collect();
    let is_word = |at: usize| letters.get(at).is_some_and(|c| c.is_alphanumeric() || *c == '_');
    let keyword: Vec<char> = "match".chars().collect();
    let starts = (0..letters.len()).filter(|at| {
        letters[*at..].starts_with(&keyword) && !is_word(at + keyword.len()) && (*at == 0 || !is_word(at - 1))
    });
    starts
        .filter_map(|at| {
            let begin = at + keyword.len();
            let open = begin + outside(&letters[begin..]).find(|(_, c)| matches!(c, '{' | ';'))?.0;
            (letters.get(open) == Some(&'{')).then(|| arms(code, &letters, open + 1))
        })
        .collect()
}

/// The letters outside of all brackets, with their positions, up to the bracket that closes what is around them. An
/// opening bracket counts as outside.
fn outside(letters: &[char]) -> impl Iterator<Item = (usize, char)> {
    let mut depth = 0_i32;
    let mut over = false;
    letters.iter().enumerate().filter_map(move |(at, letter)| {
        let was = depth;
        match letter {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        over |= depth < 0;
        (!over && was == 0).then_some((at, *letter))
    })
}

fn arms(code: &[(usize, char)], letters: &[char], mut at: usize) -> Vec<Arm> {
    let mut arms = Vec::new();
    loop {
        let rest = &letters[at..];
        let arrow = outside(rest).find(|(at, _)| rest[*at..].starts_with(&['=', '>']));
        let Some((arrow, _)) = arrow else { return arms };
        let line = rest.iter().position(|c| !c.is_whitespace()).map_or(at, |blank| at + blank);
        arms.push(Arm { line: code[line].0, pattern: rest[..arrow].iter().collect() });
        let body = at + arrow + 2;
        let rest = &letters[body..];
        let is_block = rest.iter().find(|c| !c.is_whitespace()) == Some(&'{');
        let mut open = outside(rest).skip_while(|(_, c)| *c != '{');
        let end = if is_block {
            // After the block: the next letter that is outside again.
            open.nth(1).map(|(at, _)| at)
        } else {
            outside(rest).find(|(_, c)| *c == ',').map(|(at, _)| at + 1)
        };
        let Some(end) = end else { return arms };
        at = body + end;
        at += letters[at..].iter().take_while(|c| c.is_whitespace() || **c == ',').count();
    }
}

/// Whether a pattern names a variant of an enum: `Report::Done`, but not `Report::new`.
fn names_variant(pattern: &str, name: &str) -> bool {
    pattern.match_indices(name).any(|(at, _)| {
        let alone = !pattern[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        alone && pattern[at + name.len()..].starts_with(char::is_uppercase)
    })
}

/// The alternatives of a pattern; none of them where a guard decides.
fn alternatives(pattern: &str) -> impl Iterator<Item = &str> {
    let guarded = pattern.contains(" if ");
    parts(pattern, '|').into_iter().filter(move |_| !guarded)
}

/// A text divided at a letter, outside of brackets.
fn parts(text: &str, by: char) -> Vec<&str> {
    let mut depth = 0_i32;
    text.split(|c| {
        depth += i32::from("([{".contains(c)) - i32::from(")]}".contains(c));
        depth == 0 && c == by
    })
    .map(str::trim)
    .filter(|part| !part.is_empty())
    .collect()
}

/// Whether a pattern takes everything, or everything of an enum whose variants other arms name one by one.
fn takes_rest(pattern: &str, arms: &[Arm]) -> bool {
    if takes_all(pattern) {
        return true;
    }
    // `Event::Report(_)` beside `Event::Report(Report::Done(_))`. A name instead of `_` hands the rest on.
    let Some(outer) = pattern.strip_suffix("_)") else { return false };
    arms.iter().any(|arm| {
        let mut inner = arm.pattern.match_indices(outer).map(|(at, _)| &arm.pattern[at + outer.len()..]);
        inner.any(|inner| inner.starts_with(char::is_uppercase))
    })
}

fn takes_all(pattern: &str) -> bool {
    let pattern =
        pattern.trim().trim_start_matches('&').trim_start_matches("ref ").trim_start_matches("mut ");
    let within = |open: &str| pattern.strip_prefix(open).and_then(|rest| rest.strip_suffix(')'));
    if let Some(inner) = within("Some(").or_else(|| within("Ok(")) {
        return takes_all(inner);
    }
    if let Some(inner) = within("(") {
        return parts(inner, ',').into_iter().all(takes_all);
    }
    !pattern.is_empty()
        && pattern.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && !["true", "false"].contains(&pattern)
}

#[cfg(test)]
mod tests {
    use super::super::tests::complains;
    use super::*;

    fn check(arms: &str, at: &[&str]) {
        let text = format!("fn f() {{\n    match event {{\n{arms}\n    }}\n}}");
        complains(wildcards, &[("core/src/a.rs", &text)], at);
    }

    #[test]
    fn arms_that_take_the_rest() {
        check("Order::A(_) => 1,\n_ => 2,", &["core/src/a.rs:4"]);
        check("Order::A(_) => { g({ 1 }) }\nother => 2,", &["core/src/a.rs:4"]);
        check("(Order::A(a), Order::A(b)) => a == b,\n(a, b) => a.is(b),", &["core/src/a.rs:4"]);
        check("Some(SprintEvent::Run { item, .. }) => item,\nSome(_) | None => x,", &["core/src/a.rs:4"]);
        check(
            "Event::Report(Report::A(_)) => match x { _ => 1 },\nEvent::Report(_) => 2,",
            &["core/src/a.rs:4"],
        );
    }

    #[test]
    fn arms_that_name_what_they_take() {
        check("Order::A(_) | Order::B(_) => 1,\nOrder::C(_) => 2,", &[]);
        check("Event::Decision(d) => d.name(),\nEvent::Order(_) | Event::Report(_) => x,", &[]);
        check("Event::Decision(Decision::A(_)) if x => 1,\nEvent::Decision(d) => f(d),", &[]);
        check("(Order::A(_), _) => 1,\n(Order::B(_), Some(x)) => 2,\n(Order::B(_), None) => 3,", &[]);
        check("Kind::A => Order::A(x),\n_ => Order::B(x),", &[]);
        check("_ if x => 1,\nOrder::A(_) => 2,", &[]);
    }
}
