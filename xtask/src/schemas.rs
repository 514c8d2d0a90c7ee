//! `cargo xtask test schemas`: what a review writes, held against the schemas by a validator that others wrote.
//!
//! The tests check the same with a small checker of our own; this one knows the whole schema language.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::test;

/// In this version, so that a check never changes by itself. About 3 MB.
const PACKAGES: [&str; 2] = ["ajv@8.20.0", "ajv-formats@3.0.1"];

/// Each schema with the recorded outputs that have to fit.
const PAIRS: [(&str, &[&str]); 3] = [
    ("docs/schemas/vendor/sarif-2.1.0.json", &["review.sarif.sarif"]),
    ("docs/schemas/vendor/rdjson.schema.json", &["review.rdjson.json"]),
    ("docs/schemas/review.schema.json", &["review.json.json", "review.since-last.json.json"]),
];

/// Takes a schema and files; says what does not fit, and that a file with a word too much does not.
const SCRIPT: &str = r#"
const fs = require("fs");
const Ajv = require("ajv").default;
const ajv = new Ajv({ strict: false, allErrors: true, unicodeRegExp: false });
require("ajv-formats").default(ajv);
const [schema, ...files] = process.argv.slice(2);
const fits = ajv.compile(JSON.parse(fs.readFileSync(schema, "utf8")));
let wrong = 0;
for (const file of files) {
  const data = JSON.parse(fs.readFileSync(file, "utf8"));
  if (!fits(data)) { wrong = 1; console.error(file, JSON.stringify(fits.errors.slice(0, 5), null, 1)); }
  else console.log("fits:", file);
  if (fits({ ...data, nobodyKnowsThis: true, version: 3, schema: "x" })) { wrong = 1; console.error(schema, "takes anything"); }
}
process.exit(wrong);
"#;

pub(crate) fn check(root: &Path) -> Result<(), String> {
    let place = root.join("target/validators");
    fetch(&place)?;
    let script = place.join("check.cjs");
    std::fs::write(&script, SCRIPT).map_err(|error| format!("{}: {error}", script.display()))?;
    for (schema, files) in PAIRS {
        let files = files.iter().map(|name| root.join("app/tests/snapshots").join(name));
        let status = Command::new("node")
            .arg(&script)
            .arg(root.join(schema))
            .args(files)
            .current_dir(&place)
            .stdin(Stdio::null())
            .status()
            .map_err(|error| format!("node is MISSING or can't be started: {error}"))?;
        if !status.success() {
            return Err(format!("what a review writes does not fit {schema}"));
        }
    }
    Ok(())
}

fn fetch(place: &Path) -> Result<(), String> {
    let mark = place.join("fetched");
    let wanted = PACKAGES.join(" ");
    if std::fs::read_to_string(&mark).is_ok_and(|there| there == wanted) {
        return Ok(());
    }
    if !test::is_there("npm") {
        let why = "npm is MISSING: install Node.js 20 or newer, or leave it out with `cargo xtask test --without-clients`";
        return Err(why.to_owned());
    }
    std::fs::create_dir_all(place).map_err(|error| format!("{}: {error}", place.display()))?;
    println!("fetching {wanted}");
    let status = Command::new("npm")
        .args([
            "install",
            "--no-audit",
            "--no-fund",
            "--no-save",
            "--no-update-notifier",
            "--fetch-retries=2",
        ])
        .args(["--prefix"])
        .arg(place)
        .args(PACKAGES)
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("npm can't be started: {error}"))?;
    if !status.success() {
        return Err(format!("the validator could not be fetched: npm ended with {status}"));
    }
    std::fs::write(&mark, wanted).map_err(|error| format!("{}: {error}", mark.display()))
}
