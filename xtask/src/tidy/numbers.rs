//! Numbers of rules (`AF-071`, a test called `af_071_…`) lead to a row in `docs/specification.md`, those of faults
//! (`M-C12`) to one in `docs/faults.md`.

use std::collections::{BTreeMap, BTreeSet};

use super::{Complaint, Tree, complaint, faults};

const PAGE: &str = "docs/specification.md";
const PAGES: [&str; 2] = [PAGE, faults::PAGE];

const READ: [&str; 6] = [".rs", ".md", ".toml", ".yaml", ".yml", ".sh"];

/// Material for tests and recorded output: what is written there is no statement of ours. This file makes numbers up.
const LEFT_OUT: [&str; 4] = ["corpus", "snapshots/", "recorded/", "xtask/src/tidy/numbers.rs"];

/// Families with a dash, as they are written.
const DASHED: [&str; 7] = ["AF", "PJ", "PC", "CL", "BX", "MX", "D"];

/// Families without one, and the numbers they have: a letter and a digit alone may mean anything else.
const PLAIN: [(&str, u32, u32); 4] = [("A", 1, 3), ("C", 6, 6), ("I", 1, 12), ("R", 1, 22)];

/// The separators of a range.
const RANGES: [&str; 2] = ["..", TO];
const TO: &str = " to ";

/// `M-C12` is the family `M-C` and 12.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Number {
    pub(super) family: String,
    pub(super) index: u32,
    pub(super) spelled: String,
}

/// A place where a number is written, or a range of them.
#[derive(Debug)]
pub(super) struct Mention {
    path: String,
    line: usize,
    first: Number,
    last: Number,
}

impl Mention {
    fn covers(&self, number: &Number) -> bool {
        self.first.family == number.family && (self.first.index..=self.last.index).contains(&number.index)
    }

    pub(super) fn ends(&self) -> BTreeSet<&Number> {
        BTreeSet::from([&self.first, &self.last])
    }
}

/// Every number that is used has one row, and every row is used.
pub(super) fn specified(tree: &Tree) -> Vec<Complaint> {
    let mut rows = BTreeMap::new();
    let mut found = Vec::new();
    let mut within = Vec::new();
    for path in PAGES {
        let page = tree.get(path).unwrap_or_default();
        let (here, wrong) = rows_of(path, page);
        rows.extend(here.into_iter().map(|(number, line)| (number, (path, line))));
        found.extend(wrong);
        // A row that refers to another needs that one, but does not use it.
        within.extend((1..).zip(page.lines()).flat_map(|(line, text)| {
            let rule = text.split('|').skip(2).collect::<Vec<_>>().join("|");
            in_text(path, line, &rule)
        }));
    }
    let mentions = mentions(tree);
    for mention in mentions.iter().chain(&within) {
        for number in mention.ends().into_iter().filter(|number| !rows.contains_key(*number)) {
            let page = page_of(number);
            let what =
                format!("{} has no row in {page}: add the rule there, or remove the number", number.spelled);
            found.push(complaint(&mention.path, mention.line, what));
        }
    }
    // Rows of faults are used by tests, and have a check of their own.
    for (number, (path, line)) in rows.iter().filter(|(_, (path, _))| *path == PAGE) {
        if !mentions.iter().any(|mention| mention.covers(number)) {
            let what = format!(
                "{} is used nowhere: name it where the rule is kept, or remove the row",
                number.spelled
            );
            found.push(complaint(path, *line, what));
        }
    }
    found
}

/// The page that has the rows of a number's family.
fn page_of(number: &Number) -> &'static str {
    if number.family.starts_with("M-") { faults::PAGE } else { PAGE }
}

/// The rows of the page by their number, and what is wrong with them.
fn rows_of(path: &str, page: &str) -> (BTreeMap<Number, usize>, Vec<Complaint>) {
    let mut rows = BTreeMap::new();
    let mut found = Vec::new();
    for (line, text) in (1..).zip(page.lines()) {
        let Some((anchor, rest)) =
            text.strip_prefix("| <a id=\"").and_then(|rest| rest.split_once("\"></a>"))
        else {
            continue;
        };
        let (name, rule) = rest.split_once(" |").unwrap_or((rest, ""));
        let Some(number) = parse(name) else {
            found.push(complaint(path, line, format!("`{name}` is of no family")));
            continue;
        };
        if page_of(&number) != path {
            found.push(complaint(path, line, format!("the row of {name} belongs into {}", page_of(&number))));
        }
        if anchor != name.to_lowercase() {
            found.push(complaint(path, line, format!("the anchor of {name} is `{anchor}`")));
        }
        if rule.trim_matches([' ', '|']).is_empty() {
            found.push(complaint(path, line, format!("the row of {name} says nothing")));
        }
        if let Some(before) = rows.insert(number, line) {
            found.push(complaint(path, line, format!("{name} has a row already, on line {before}")));
        }
    }
    (rows, found)
}

fn mentions(tree: &Tree) -> Vec<Mention> {
    let mut found = Vec::new();
    for (path, text) in &tree.files {
        let is_read = !PAGES.contains(&path.as_str())
            && READ.iter().any(|ending| path.ends_with(ending))
            && !LEFT_OUT.iter().any(|part| path.contains(part));
        for (line, text) in (1..).zip(text.lines()).filter(|_| is_read) {
            found.extend(in_text(path, line, text));
            if path.ends_with(".rs") {
                found.extend(text.split("fn ").skip(1).flat_map(|name| in_name(path, line, name)));
            }
        }
    }
    found
}

fn in_text(path: &str, line: usize, text: &str) -> Vec<Mention> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || ['-', '_'].contains(&letter);
    let mut numbers = Vec::new();
    let mut rest = text;
    let mut to = false;
    while let Some(begin) = rest.find(is_part) {
        // `%C6` is a byte of a link and `#A1` a colour.
        let coded = rest[..begin].ends_with(['%', '=', '#']);
        let (before, after) = rest.split_at(begin);
        let end = after.find(|letter| !is_part(letter)).unwrap_or(after.len());
        let (word, after) = after.split_at(end);
        rest = after;
        if word != "to" {
            numbers.push((if to { TO } else { before }, parse(word).filter(|_| !coded)));
        }
        to = word == "to" && before == " ";
    }
    joined(path, line, &numbers)
}

/// The numbers in the name of a function: `af_071_`, `af071_`, `m_c12_`, `i5_`, `pj_01_to_pj_17_`.
pub(super) fn in_name(path: &str, line: usize, text: &str) -> Vec<Mention> {
    let end =
        text.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(text.len());
    let parts: Vec<&str> = text[..end].split('_').collect();
    let mut numbers = Vec::new();
    let mut between = "";
    let mut at = 0;
    while let Some(part) = parts.get(at) {
        let two = parts.get(at + 1).and_then(|next| parse(&format!("{part}-{next}").to_uppercase()));
        at += if two.is_some() { 2 } else { 1 };
        let one = || {
            let digits = part.find(|letter: char| letter.is_ascii_digit())?;
            let dashed = format!("{}-{}", &part[..digits], &part[digits..]).to_uppercase();
            parse(&dashed).or_else(|| parse(&part.to_uppercase()))
        };
        if *part == "to" {
            between = TO;
        } else {
            numbers.push((between, two.or_else(one)));
            between = "";
        }
    }
    joined(path, line, &numbers)
}

/// One mention for every number, and one for every two with a range's sign between them.
fn joined(path: &str, line: usize, numbers: &[(&str, Option<Number>)]) -> Vec<Mention> {
    let mut found: Vec<Mention> = Vec::new();
    let mut open = false;
    for (before, number) in numbers {
        if let Some(number) = number {
            match found
                .last_mut()
                .filter(|last| open && last.first.family == number.family && RANGES.contains(before))
            {
                Some(last) => last.last = number.clone(),
                None => found.push(Mention {
                    path: path.to_owned(),
                    line,
                    first: number.clone(),
                    last: number.clone(),
                }),
            }
        }
        open = number.is_some();
    }
    found
}

pub(super) fn parse(word: &str) -> Option<Number> {
    let at = word.find(|letter: char| letter.is_ascii_digit())?;
    let (family, digits) = word.split_at(at);
    let index = digits.parse().ok()?;
    let is_dashed = family.strip_suffix('-').is_some_and(|letters| DASHED.contains(&letters));
    let is_fault = matches!(family.as_bytes(), [b'M', b'-', b'A'..=b'Z']);
    let is_plain =
        PLAIN.iter().any(|(letter, least, most)| *letter == family && (*least..=*most).contains(&index));
    let spelled = word.to_owned();
    (is_dashed || is_fault || is_plain).then(|| Number { family: family.to_owned(), index, spelled })
}

#[cfg(test)]
mod tests {
    use super::super::tests::complains;
    use super::*;

    const FAULTS: &str = "| <a id=\"m-c12\"></a>M-C12 | Two. | Three. | x |";
    const PAGE_OF_THREE: &str = "\
| <a id=\"af-071\"></a>AF-071 | One. |
| <a id=\"r2\"></a>R2 | Three, as AF-071. |
| <a id=\"d-05\"></a>D-05 | Four. |";

    /// `page`, and the files that use it.
    fn check(page: &str, files: &[(&str, &str)], expected: &[&str]) {
        let mut all = vec![(PAGE, page), (faults::PAGE, FAULTS)];
        all.extend(files);
        all.sort_unstable();
        complains(specified, &all, expected);
    }

    #[test]
    fn numbers_without_a_row() {
        let used = ("core/src/a.rs", "// AF-071, M-C12 (R2)\nfn d_05_x() {}");
        check(PAGE_OF_THREE, &[used], &[]);
        check(PAGE_OF_THREE, &[used, ("docs/b.md", "\nas AF-072 says")], &["docs/b.md:2"]);
        check(PAGE_OF_THREE, &[used, ("app/tests/b.rs", "fn x_m_c13_y() {}")], &["app/tests/b.rs:1"]);
        check(
            PAGE_OF_THREE,
            &[used, ("app/tests/b.rs", "fn af072_m_c12_y() {}\n\"I3\"")],
            &["app/tests/b.rs:1", "app/tests/b.rs:2"],
        );
    }

    #[test]
    fn what_is_no_number() {
        let used = ("core/src/a.rs", "// AF-071 M-C12 R2 D-05");
        let others = "UTF-8, SHA-256, M-2.8 L10 P1 %C6 =C6 #A1 R99 x-R1 A1-b, FNV-1a";
        check(PAGE_OF_THREE, &[used, ("docs/b.md", others)], &[]);
        check(
            PAGE_OF_THREE,
            &[used, ("app/tests/snapshots/b.md", "AF-999"), ("core/tests/corpus/b.md", "R3")],
            &[],
        );
        check(PAGE_OF_THREE, &[used, ("core/src/b.rs", "fn read_a_line() {}\nfn d() {}")], &[]);
    }

    #[test]
    fn unused_rows() {
        let used = ("core/src/a.rs", "// AF-071 M-C12 D-05");
        check(PAGE_OF_THREE, &[used], &["docs/specification.md:2"]);
    }

    #[test]
    fn rows_that_are_wrong() {
        let used = ("core/src/a.rs", "// AF-071");
        let row = "| <a id=\"af-071\"></a>AF-071 | One. |";
        check(&format!("{row}\n{row}"), &[used], &["docs/specification.md:2"]);
        check("| <a id=\"af-71\"></a>AF-071 | One. |", &[used], &["docs/specification.md:1"]);
        check("| <a id=\"af-071\"></a>AF-071 | |", &[used], &["docs/specification.md:1"]);
        check("| <a id=\"af-071\"></a>AF-071 | As AF-072. |", &[used], &["docs/specification.md:1"]);
        check(&format!("{row}\n| <a id=\"zz-1\"></a>ZZ-1 | What? |"), &[used], &["docs/specification.md:2"]);
    }

    /// Both ends need a row; numbers between them are used if they have one.
    #[test]
    fn ranges() {
        let row = |number: u32| format!("| <a id=\"pj-{number}\"></a>PJ-{number} | x |");
        let page = [10, 12, 14].map(row).join("\n");
        for used in ["// PJ-10..PJ-14", "/// PJ-10 to PJ-14", "fn pj_10_to_pj_14_x() {}"] {
            check(&page, &[("core/src/a.rs", used)], &[]);
        }
        check(&page, &[("core/src/a.rs", "// PJ-10, PJ-14")], &["docs/specification.md:2"]);
        check(&page, &[("core/src/a.rs", "// PJ-10..PJ-15")], &["core/src/a.rs:1"]);
    }
}
