//! `cargo xtask clients`: the agents people use, in the versions the program was tried with, in a folder of their own.
//! About 800 MB, once; what is there is left alone.

use std::path::Path;
use std::process::{Command, ExitCode};

/// Folder, package, version.
const CLIENTS: [(&str, &str, &str); 2] =
    [("claude", "@anthropic-ai/claude-code", "2.1.325"), ("codex", "@openai/codex", "0.166.0")];

pub(crate) fn fetch(root: &Path) -> ExitCode {
    for (name, package, version) in CLIENTS {
        let folder = root.join("target/clients").join(name);
        if has(&folder, package, version) {
            println!("{name} {version} is there");
            continue;
        }
        println!("fetching {name} {version}");
        if let Err(why) = install(&folder, package, version) {
            eprintln!("{name} could not be fetched: {why}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn has(folder: &Path, package: &str, version: &str) -> bool {
    let manifest = std::fs::read_to_string(folder.join("node_modules").join(package).join("package.json"));
    manifest.is_ok_and(|text| text.contains(&format!("\"version\": \"{version}\"")))
}

fn install(folder: &Path, package: &str, version: &str) -> Result<(), String> {
    std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    // A version by number: without one, an older Node silently gets an older client.
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--no-save", "--prefix"]).arg(folder);
    let status = npm.arg(format!("{package}@{version}")).status().map_err(|error| format!("npm: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("npm ended with {status}")) }
}
