//! `cargo xtask test schemas`: what a review writes, held against the schemas by a validator that others wrote; and the
//! requests it sends to forges, held against their own descriptions.
//!
//! The tests check the same with a small checker of our own; this one knows the whole schema language. The requests are
//! those that the program sent in test F-42. There is no package with a description of GitLab.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::test;

/// In these versions, so that a check never changes by itself. About 130 MB, without what [`fetch`] removes again.
const PACKAGES: [&str; 9] = [
    "ajv@8.20.0",
    "ajv-formats@3.0.1",
    "@octokit/openapi@23.0.2",
    "@stoplight/prism-cli@5.16.0",
    "@octokit/graphql-schema@15.26.1",
    "graphql@16.15.0",
    "typescript@5.9.3",
    "gitea-js@1.23.0",
    "forgejo-js@11.0.0",
];

/// Recorded requests with the script that knows the forge's description, and what it is told before them.
const FORGES: [(&str, &str, &str, &[&str]); 3] = [
    ("forge.github.json", "github.cjs", include_str!("schemas/github.cjs"), &[]),
    ("forge.gitea.json", "gitea.cjs", include_str!("schemas/gitea.cjs"), &["gitea-js", "giteaApi"]),
    ("forge.forgejo.json", "gitea.cjs", include_str!("schemas/gitea.cjs"), &["forgejo-js", "forgejoApi"]),
];

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
    let recorded = root.join("app/tests/snapshots");
    for (schema, files) in PAIRS {
        let files = files.iter().map(|name| recorded.join(name));
        let arguments: Vec<PathBuf> = [root.join(schema)].into_iter().chain(files).collect();
        if !runs(&place, "check.cjs", SCRIPT, &arguments)? {
            return Err(format!("what a review writes does not fit {schema}"));
        }
    }
    for (requests, name, script, before) in FORGES {
        let before = before.iter().map(PathBuf::from);
        let arguments: Vec<PathBuf> = before.chain([recorded.join(requests)]).collect();
        if !runs(&place, name, script, &arguments)? {
            return Err(format!("the requests in {requests} do not fit the forge's description"));
        }
    }
    Ok(())
}

/// Runs a script beside the packages.
fn runs(place: &Path, name: &str, script: &str, arguments: &[PathBuf]) -> Result<bool, String> {
    let file = place.join(name);
    std::fs::write(&file, script).map_err(|error| format!("{}: {error}", file.display()))?;
    let status =
        Command::new("node").arg(&file).args(arguments).current_dir(place).stdin(Stdio::null()).status();
    let status = status.map_err(|error| format!("node is MISSING or can't be started: {error}"))?;
    Ok(status.success())
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
            "--ignore-scripts",
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
    // The same description for other products, and with every reference resolved: 400 MB.
    let described = place.join("node_modules/@octokit/openapi/generated");
    for entry in std::fs::read_dir(&described).into_iter().flatten().flatten() {
        if entry.file_name() != "api.github.com.json" {
            let _ = std::fs::remove_file(entry.path());
        }
    }
    std::fs::write(&mark, wanted).map_err(|error| format!("{}: {error}", mark.display()))
}
