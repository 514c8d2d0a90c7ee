//! `docs/faults.md`: each row of the fault matrix lists the tests that have its number in their names.

use std::collections::BTreeMap;

use super::numbers::{self, Number};
use super::{Complaint, Tree, complaint, scan};

pub(crate) const PAGE: &str = "docs/faults.md";

/// Starts the part of a row's last cell that is written by hand.
const REASON: &str = "Not tested:";

/// The page is up to date, and each row has a test or a reason.
pub(super) fn matrix(tree: &Tree) -> Vec<Complaint> {
    let page = tree.get(PAGE).unwrap_or_default();
    let tests = tests(tree);
    let mut found = Vec::new();
    let mut before: Option<Number> = None;
    for (line, text) in (1..).zip(page.lines()) {
        let Some(row) = Row::read(text) else { continue };
        let name = &row.number.spelled;
        let is_tested = tests.contains_key(&row.number);
        if !is_tested && row.reason.is_none() {
            let what = format!("{name} has no test: write one, or say why after `{REASON}`");
            found.push(complaint(PAGE, line, what));
        } else if row.reason.is_some_and(|reason| reason.split_whitespace().count() < 5) {
            found.push(complaint(PAGE, line, format!("the reason of {name} says too little")));
        } else if row.with(&tests) != text {
            found.push(complaint(PAGE, line, format!("{name} is out of date: run `cargo xtask docs`")));
        }
        let expected = before
            .as_ref()
            .filter(|before| before.family == row.number.family)
            .map_or(1, |before| before.index + 1);
        if row.number.index != expected {
            found.push(complaint(PAGE, line, format!("{name} is not the next number of its section")));
        }
        before = Some(row.number);
    }
    found
}

/// The page with the tests as they are now.
pub(crate) fn in_manual(tree: &Tree, page: &str) -> String {
    let tests = tests(tree);
    let lines = page.lines().map(|text| Row::read(text).map_or(text.to_owned(), |row| row.with(&tests)));
    lines.map(|line| line + "\n").collect()
}

/// `| <a id="m-c12"></a>M-C12 | fault | what must hold | tests Not tested: reason |`
struct Row<'a> {
    number: Number,
    written: &'a str,
    reason: Option<&'a str>,
}

impl<'a> Row<'a> {
    fn read(text: &'a str) -> Option<Row<'a>> {
        let (_, rest) = text.strip_prefix("| <a id=\"")?.split_once("\"></a>")?;
        let number = numbers::parse(rest.split(" |").next()?)?;
        let (written, cell) = text.trim_end().strip_suffix('|')?.rsplit_once('|')?;
        let reason = cell.find(REASON).map(|at| cell[at..].trim());
        Some(Row { number, written, reason })
    }

    fn with(&self, tests: &BTreeMap<Number, Vec<String>>) -> String {
        let listed = tests.get(&self.number).map(|names| names.join(", ")).unwrap_or_default();
        let listed = if listed.is_empty() || self.reason.is_none() { listed } else { listed + ". " };
        let cell = listed + self.reason.unwrap_or_default();
        format!("{}|{}|", self.written, if cell.is_empty() { " ".to_owned() } else { format!(" {cell} ") })
    }
}

/// Links to the tests of each row, in the order of their files.
fn tests(tree: &Tree) -> BTreeMap<Number, Vec<String>> {
    let mut found: BTreeMap<Number, Vec<String>> = BTreeMap::new();
    for (path, text) in tree.under(&["app/", "core/", "host/"], ".rs") {
        let mut marked = false;
        // Rows of tables are in functions of their own, too, where a whole file is tests.
        let mut within = path.contains("/tests/");
        let mut add = |number: &Number, name: &str| {
            let link = format!("[`{name}`](../{path})");
            let links = found.entry(number.clone()).or_default();
            if !links.contains(&link) {
                links.push(link);
            }
        };
        for line in scan::lines(text) {
            marked |= line.code.trim() == "#[test]";
            if let Some((_, name)) = line.code.split_once("fn ").filter(|_| marked) {
                marked = false;
                within = true;
                let name = name.split('(').next().unwrap_or(name);
                for mention in numbers::in_name(path, line.number, name) {
                    // A range would claim rows that nobody looked at.
                    mention.ends().into_iter().for_each(|number| add(number, name));
                }
            }
            for row in line.strings.iter().filter(|_| within) {
                for number in named_by(row) {
                    add(&number, &row.replace('|', "/"));
                }
            }
        }
    }
    found.retain(|number, _| number.family.starts_with("M-"));
    found
}

/// The numbers a row of a table begins with: `M-D6 both words`. A message, `M-D6: …`, names no row.
fn named_by(text: &str) -> Vec<Number> {
    let words: Vec<&str> = text.split(' ').collect();
    let numbers: Vec<Number> = words.iter().map_while(|word| numbers::parse(word)).collect();
    if numbers.len() < words.len() && !text.contains('\n') { numbers } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::super::tests::complains;
    use super::*;

    const ROW: &str = "| <a id=\"m-c1\"></a>M-C1 | missing | It is named. |";

    fn check(cells: &[(&str, &str)], code: &str, expected: &[&str]) {
        let rows: Vec<String> = cells
            .iter()
            .map(|(number, cell)| ROW.replace("m-c1", &number.to_lowercase()).replace("M-C1", number) + cell)
            .collect();
        complains(matrix, &[("app/tests/a.rs", code), (PAGE, &rows.join("\n"))], expected);
    }

    #[test]
    fn a_row_has_a_test_or_a_reason() {
        let test = "#[test]\nfn m_c1_x() {}";
        let listed = " [`m_c1_x`](../app/tests/a.rs) |";
        check(&[("M-C1", listed)], test, &[]);
        check(&[("M-C1", " Not tested: there is no such thing yet. |")], "", &[]);
        check(&[("M-C1", " |")], "", &["docs/faults.md:1"]);
        check(&[("M-C1", " Not tested: why? |")], "", &["docs/faults.md:1"]);
        // A function that is no test, a message, and another row prove nothing.
        for code in ["fn m_c1_x() {}", "#[test]\nfn x() { \"M-C1: so\"; }", "#[test]\nfn m_c11_x() {}"] {
            check(&[("M-C1", " |")], code, &["docs/faults.md:1"]);
        }
    }

    #[test]
    fn the_page_is_up_to_date() {
        let test = "#[test]\nfn m_c1_m_c2_x() {}\nconst A: [&str; 1] = [\"M-C2 a row\"];";
        let one = " [`m_c1_m_c2_x`](../app/tests/a.rs)";
        let two = format!("{one}, [`M-C2 a row`](../app/tests/a.rs)");
        check(&[("M-C1", &format!("{one} |")), ("M-C2", &format!("{two} |"))], test, &[]);
        let part = format!("{one}. Not tested: a part of it on macOS. |");
        check(&[("M-C1", &part), ("M-C2", &format!("{two} |"))], test, &[]);
        check(&[("M-C1", &format!("{one} |")), ("M-C2", &format!("{one} |"))], test, &["docs/faults.md:2"]);
        // A test that is gone.
        check(&[("M-C1", &format!("{one} |"))], "", &["docs/faults.md:1"]);
    }

    #[test]
    fn no_number_is_left_out() {
        let reason = " Not tested: there is no such thing yet. |";
        check(&[("M-C1", reason), ("M-C2", reason), ("M-D1", reason)], "", &[]);
        check(&[("M-C1", reason), ("M-C3", reason)], "", &["docs/faults.md:2"]);
        check(&[("M-C2", reason)], "", &["docs/faults.md:1"]);
    }

    #[test]
    fn what_is_generated_is_up_to_date() {
        let files = [
            ("app/tests/a.rs", "#[test]\nfn m_c1_x() {}"),
            (
                PAGE,
                "# Page\n\n| <a id=\"m-c1\"></a>M-C1 | a | b | Not tested: something else that is rare. |\n",
            ),
        ];
        let tree = |files: &[(&str, &str)]| Tree {
            files: files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect(),
        };
        let page = in_manual(&tree(&files), files[1].1);
        assert!(page.contains("(../app/tests/a.rs). Not tested: something"), "{page}");
        let again = tree(&[files[0], (PAGE, &page)]);
        assert_eq!(matrix(&again), []);
        assert_eq!(in_manual(&again, &page), page);
    }
}
