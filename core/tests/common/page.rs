//! Reads the tables of a rule page. A table is known by the heading above it; a row knows its line, so that a
//! failing one can be named.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// The folder of the rule pages.
pub(crate) fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/rules")
}

pub(crate) struct Page {
    name: String,
    tables: Vec<Table>,
    executed: BTreeSet<String>,
    wrong: Vec<String>,
}

pub(crate) struct Table {
    pub(crate) heading: String,
    pub(crate) rows: Vec<Row>,
}

pub(crate) struct Row {
    place: String,
    cells: BTreeMap<String, String>,
}

impl Page {
    #[expect(clippy::disallowed_methods, reason = "the test reads the page; the core itself opens nothing")]
    pub(crate) fn open(name: &str) -> Page {
        let path = folder().join(format!("{name}.md"));
        let text =
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Page {
            name: name.to_owned(),
            tables: tables(name, &text),
            executed: BTreeSet::new(),
            wrong: Vec::new(),
        }
    }

    pub(crate) fn table(&mut self, heading: &str) -> &Table {
        self.executed.insert(heading.to_owned());
        self.tables.iter().find(|table| table.heading == heading).unwrap_or_else(|| {
            panic!("docs/rules/{}.md has no table under the heading '{heading}'", self.name)
        })
    }

    /// Executes every row of a table; [`Page::close`] fails with all that do not hold.
    pub(crate) fn check(&mut self, heading: &str, row: impl Fn(&Row)) {
        let table = self.table(heading);
        assert!(!table.rows.is_empty(), "the table '{heading}' has no rows");
        let mut wrong = Vec::new();
        for line in &table.rows {
            let executed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| row(line)));
            if let Err(panic) = executed {
                let what = said(&*panic);
                let known = what.starts_with(&line.place);
                wrong.push(if known { what.to_owned() } else { format!("{}: {what}", line.place) });
            }
        }
        self.wrong.extend(wrong);
    }

    /// Every table of the page has been executed, and every row holds.
    pub(crate) fn close(&self) {
        let all: BTreeSet<String> = self.tables.iter().map(|table| table.heading.clone()).collect();
        let left: Vec<_> = all.difference(&self.executed).collect();
        assert!(left.is_empty(), "tables of docs/rules/{}.md that nothing executes: {left:?}", self.name);
        assert!(self.wrong.is_empty(), "rows that do not hold:\n{}", self.wrong.join("\n"));
    }
}

fn said(panic: &(dyn Any + Send)) -> &str {
    let owned = panic.downcast_ref::<String>().map(String::as_str);
    owned.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panics")
}

impl Table {
    pub(crate) fn column(&self, name: &str) -> Vec<String> {
        self.rows.iter().map(|row| row.get(name).to_owned()).collect()
    }
}

impl Row {
    /// A cell as written; `-` is the empty text.
    pub(crate) fn get(&self, column: &str) -> &str {
        let cell =
            self.cells.get(column).unwrap_or_else(|| self.fail(&format!("there is no column '{column}'")));
        if cell == "-" { "" } else { cell }
    }

    pub(crate) fn has(&self, column: &str) -> bool {
        self.cells.contains_key(column)
    }

    pub(crate) fn yes(&self, column: &str) -> bool {
        match self.get(column) {
            "yes" => true,
            "no" => false,
            other => self.fail(&format!("'{other}' under '{column}' is neither yes nor no")),
        }
    }

    pub(crate) fn number(&self, column: &str) -> u32 {
        let cell = self.get(column);
        cell.parse().unwrap_or_else(|_| self.fail(&format!("'{cell}' under '{column}' is not a number")))
    }

    /// A word the given reader knows.
    pub(crate) fn word<T>(&self, column: &str, read: impl Fn(&str) -> Option<T>) -> T {
        let cell = self.get(column);
        read(cell).unwrap_or_else(|| self.fail(&format!("'{cell}' under '{column}' means nothing")))
    }

    /// A word, or nothing where the cell is `-`.
    pub(crate) fn maybe<T>(&self, column: &str, read: impl Fn(&str) -> Option<T>) -> Option<T> {
        (!self.get(column).is_empty()).then(|| self.word(column, read))
    }

    /// The cell must say what the code does.
    #[expect(clippy::needless_pass_by_value, reason = "so that a row can be compared with a value just made")]
    pub(crate) fn expect(&self, column: &str, actual: impl ToString) {
        let (written, actual) = (self.get(column), actual.to_string());
        if written != actual {
            self.fail(&format!("under '{column}' the page says '{written}', the code says '{actual}'"));
        }
    }

    pub(crate) fn fail(&self, what: &str) -> ! {
        panic!("{}: {what}", self.place)
    }
}

fn tables(page: &str, text: &str) -> Vec<Table> {
    let mut found: Vec<Table> = Vec::new();
    let (mut heading, mut columns, mut fenced): (String, Vec<String>, bool) =
        (String::new(), Vec::new(), false);
    for (number, line) in (1..).zip(text.lines().map(str::trim)) {
        if line.starts_with("```") {
            fenced = !fenced;
        }
        if fenced || !line.starts_with('|') {
            columns.clear();
            if let Some(title) = line.strip_prefix('#').filter(|_| !fenced) {
                heading = title.trim_start_matches('#').trim().to_owned();
            }
            continue;
        }
        let cells = cells(line);
        if columns.is_empty() {
            columns = cells;
            let again = found.iter().any(|table| table.heading == heading);
            assert!(!again, "docs/rules/{page}.md:{number}: a second table under the heading '{heading}'");
            found.push(Table { heading: heading.clone(), rows: Vec::new() });
            continue;
        }
        if cells.iter().all(|cell| cell.chars().all(|c| matches!(c, '-' | ':')) && cell.len() > 1) {
            continue;
        }
        let place = format!("docs/rules/{page}.md:{number}");
        assert_eq!(
            cells.len(),
            columns.len(),
            "{place}: the row has not as many cells as the table has columns"
        );
        let row = Row { place, cells: columns.iter().cloned().zip(cells).collect() };
        if let Some(table) = found.last_mut() {
            table.rows.push(row);
        }
    }
    found
}

fn cells(line: &str) -> Vec<String> {
    let inner = line.trim_start_matches('|').trim_end_matches('|').replace("\\|", "\u{1}");
    inner.split('|').map(|cell| bare(cell.trim()).replace('\u{1}', "|")).collect()
}

/// A cell that is one code span is its content.
fn bare(cell: &str) -> &str {
    let inside = cell.strip_prefix('`').and_then(|rest| rest.strip_suffix('`'));
    inside.filter(|inside| !inside.contains('`')).unwrap_or(cell)
}
