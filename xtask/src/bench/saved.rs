//! The rows of a measurement in a file, and the change of each row against it.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::Row;

/// What is said beside the names of measurements.
#[derive(Debug, Default)]
pub(super) struct SaveOptions {
    save: Option<PathBuf>,
    compare: Option<SavedRows>,
}

/// An earlier measurement.
#[derive(Debug)]
struct SavedRows {
    file: PathBuf,
    machine: String,
    rows: Vec<SavedRow>,
}

#[derive(Debug, PartialEq)]
struct SavedRow {
    what: String,
    ours: f64,
    unit: String,
}

impl SaveOptions {
    /// Takes the options out of the words, and reads the file to compare with: what is wrong with it is said before
    /// anything is built or measured.
    pub(super) fn take<'a>(words: &[&'a str]) -> Result<(SaveOptions, Vec<&'a str>), String> {
        let (mut options, mut names) = (SaveOptions::default(), Vec::new());
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut file = || words.next().map(PathBuf::from).ok_or(format!("{word} needs a file"));
            match *word {
                "--save" => options.save = Some(file()?),
                "--compare" => options.compare = Some(SavedRows::read(file()?)?),
                unknown if unknown.starts_with('-') => {
                    return Err(format!(
                        "unknown option '{unknown}'. Known: --save <file>, --compare <file>"
                    ));
                }
                name => names.push(name),
            }
        }
        Ok((options, names))
    }

    /// Prints the changes and writes the file, as far as either is wanted.
    pub(super) fn finish(&self, rows: &[Row]) -> Result<(), String> {
        if let Some(before) = &self.compare {
            print!("{}", before.changes(rows));
        }
        let Some(file) = &self.save else { return Ok(()) };
        let text = serde_json::to_string_pretty(&object(rows)).map_err(|error| error.to_string())?;
        std::fs::write(file, text + "\n")
            .map_err(|error| format!("can't write {}: {error}", file.display()))?;
        println!("\nsaved {} rows in {}", rows.len(), file.display());
        Ok(())
    }
}

fn object(rows: &[Row]) -> Value {
    let rows: Vec<Value> = rows
        .iter()
        .map(|row| json!({ "what": row.what, "ours": row.ours, "floor": row.floor, "unit": row.unit }))
        .collect();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let load = std::fs::read_to_string("/proc/loadavg").ok();
    let load = load.as_deref().and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok());
    let processor = std::fs::read_to_string("/proc/cpuinfo").ok();
    let processor = processor.as_deref().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        line.split_once(':').map(|(_, name)| name.trim().to_owned())
    });
    json!({ "machine": { "cores": cores, "load_at_the_end": load, "processor": processor }, "rows": rows })
}

impl SavedRows {
    fn read(file: PathBuf) -> Result<SavedRows, String> {
        let remedy = "Write one with: cargo xtask bench --save <file>";
        let wrong = |why: String| format!("can't compare with {}: {why}. {remedy}", file.display());
        let text = std::fs::read_to_string(&file).map_err(|error| wrong(error.to_string()))?;
        let object: Value = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        let rows = object["rows"].as_array().ok_or_else(|| wrong("it has no list 'rows'".to_owned()))?;
        let read = |(n, row): (usize, &Value)| {
            let (what, unit) = (row["what"].as_str(), row["unit"].as_str());
            let row = what.zip(unit).zip(row["ours"].as_f64());
            let row = row.map(|((what, unit), ours)| SavedRow { what: what.into(), unit: unit.into(), ours });
            row.ok_or_else(|| wrong(format!("row {} needs 'what', 'unit' and a number 'ours'", n + 1)))
        };
        let rows = rows.iter().enumerate().map(read).collect::<Result<Vec<_>, _>>()?;
        let said = |name: &str| match &object["machine"][name] {
            Value::Null => "unknown".to_owned(),
            Value::String(text) => text.clone(),
            other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                other.to_string()
            }
        };
        let machine = format!(
            "{} cores, {}, load {} at the end",
            said("cores"),
            said("processor"),
            said("load_at_the_end")
        );
        Ok(SavedRows { file, machine, rows })
    }

    fn changes(&self, rows: &[Row]) -> String {
        let mut out = format!("\nagainst {} ({})\n", self.file.display(), self.machine);
        out.push_str(&format!("{:<62} {:>12} {:>12} {:>9}\n", "what", "before", "now", "change"));
        for row in rows {
            let before = self.rows.iter().find(|saved| saved.what == row.what && saved.unit == row.unit);
            let was = before.map_or("new".to_owned(), |saved| format!("{:.2} {}", saved.ours, saved.unit));
            let change = before.filter(|saved| saved.ours != 0.0);
            let change = change
                .map_or(String::new(), |saved| format!("{:+.1} %", (row.ours / saved.ours - 1.0) * 100.0));
            let now = format!("{:.2} {}", row.ours, row.unit);
            out.push_str(&format!("{:<62} {was:>12} {now:>12} {change:>9}\n", row.what));
        }
        out
    }
}

/// A path as the user typed it, for a process that is started elsewhere.
pub(super) fn absolute(words: &[&str]) -> Vec<String> {
    let here = std::env::current_dir().unwrap_or_default();
    let mut is_file = false;
    let mut out = Vec::new();
    for word in words {
        let path =
            if is_file { here.join(Path::new(word)).display().to_string() } else { (*word).to_owned() };
        is_file = matches!(*word, "--save" | "--compare");
        out.push(path);
    }
    out
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use super::super::{Goal, Row};
    use super::{SaveOptions, SavedRows};

    fn row(what: &str, ours: f64) -> Row {
        Row { what: what.to_owned(), floor: None, ours, unit: "ms", goal: Goal::None }
    }

    #[test]
    fn rows_that_were_saved_are_compared() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rows.json");
        let words = ["--save", file.to_str().unwrap(), "startup"];
        let (options, names) = SaveOptions::take(&words).unwrap();
        assert_eq!(names, ["startup"]);
        options.finish(&[row("one", 2.0), row("two", 0.0)]).unwrap();
        let changes =
            SavedRows::read(file).unwrap().changes(&[row("one", 1.0), row("two", 1.0), row("three", 1.0)]);
        let lines: Vec<Vec<&str>> = changes.lines().map(|line| line.split_whitespace().collect()).collect();
        assert!(lines.contains(&vec!["one", "2.00", "ms", "1.00", "ms", "-50.0", "%"]), "{changes}");
        assert!(lines.contains(&vec!["two", "0.00", "ms", "1.00", "ms"]), "{changes}");
        assert!(lines.contains(&vec!["three", "new", "1.00", "ms"]), "{changes}");
    }

    #[test]
    fn a_bad_file_is_named_with_what_is_wrong_and_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rows.json");
        for (text, why) in [
            (None, "No such file"),
            (Some("{"), "EOF while parsing"),
            (Some("[1]"), "it has no list 'rows'"),
            (
                Some("{\"rows\": [{\"what\": \"a\", \"unit\": \"ms\", \"ours\": \"1\"}]}"),
                "row 1 needs 'what', 'unit'",
            ),
        ] {
            if let Some(text) = text {
                std::fs::write(&file, text).unwrap();
            }
            let error = SaveOptions::take(&["--compare", file.to_str().unwrap()]).unwrap_err();
            assert!(
                error.contains(why) && error.contains("rows.json") && error.contains("--save"),
                "{error}"
            );
        }
        assert!(SaveOptions::take(&["--save"]).unwrap_err().contains("--save needs a file"));
        assert!(SaveOptions::take(&["--fast"]).unwrap_err().contains("unknown option '--fast'"));
    }
}
