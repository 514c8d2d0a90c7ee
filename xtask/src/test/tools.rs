//! The step `tools`: what the suite needs is there or installed, and there is room to build it.

use std::path::Path;
use std::process::Stdio;

use archeflow_host::git::runner;
use archeflow_host::platform::machine;

use super::{Count, Done, command};
use crate::nats_server;

/// What a whole run leaves in `target`, the real clients included, and a reserve.
const ALL_BUILT: u64 = 10_000_000_000;
/// Below this nothing is begun.
const LEAST_FREE: u64 = 2_000_000_000;

/// Says loudly what is missing, and installs it where a package manager can.
pub(super) fn run(root: &Path, _: &mut Count) -> Result<Done, String> {
    println!("{}", enough_space(root, machine::free_space(root), used(&root.join("target")))?);
    if version(&["git", "--version"]).is_none() {
        install("git");
    }
    let git = version(&["git", "--version"]).ok_or("git is MISSING and could not be installed")?;
    runner::check_version_text(git.trim()).map_err(|error| error.to_string())?;
    println!("{}", git.trim());
    if cfg!(target_os = "linux") && !is_there("bwrap") {
        install("bubblewrap");
    }
    if let Some(bwrap) = version(&["bwrap", "--version"]) {
        println!("{}", bwrap.trim());
    }
    if cfg!(target_os = "linux") && !is_there("valgrind") {
        install("valgrind");
    }
    if let Some(valgrind) = version(&["valgrind", "--version"]) {
        println!("{}", valgrind.trim());
    }
    for (tool, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        if version(&["cargo", tool, "--version"]).is_none() {
            println!("MISSING: cargo {tool}; trying `rustup component add {component}`");
            let _ = command(&["rustup", "component", "add", component]).status();
        }
        let found = version(&["cargo", tool, "--version"]);
        println!("{}", found.ok_or(format!("cargo {tool} is MISSING and could not be installed"))?.trim());
    }
    println!("{}", version(&["cargo", "--version"]).ok_or("cargo is MISSING")?.trim());
    for shell in ["sh", "setsid", "flock", "timeout", "tar"] {
        if !is_there(shell) {
            return Err(format!("`{shell}` is MISSING: agents and tests are started with it"));
        }
    }
    match nats_server::fetch(root) {
        Ok(program) => println!("{}", version(&[&program, "--version"]).unwrap_or_default().trim()),
        // The step that needs it fails.
        Err(why) => println!("note: {why}"),
    }
    if !is_there("strace") {
        println!("note: strace is not there; no test needs it, and none that would use it runs");
    }
    Ok(Done::Well)
}

/// Refuses to begin where the first build would already fail: an error of the compiler about a temporary folder does not
/// say that the disk is full.
pub(super) fn enough_space(root: &Path, free: Option<u64>, built: u64) -> Result<String, String> {
    let Some(free) = free else { return Ok("free space unknown".to_owned()) };
    let needed = ALL_BUILT.saturating_sub(built).max(LEAST_FREE);
    let gb = |bytes: u64| format!("{}.{} GB", bytes / 1_000_000_000, bytes % 1_000_000_000 / 100_000_000);
    if free < LEAST_FREE {
        return Err(format!(
            "{} has {} free, too little to build anything: at least {} are needed. `cargo clean` frees {}",
            root.display(),
            gb(free),
            gb(needed),
            gb(built),
        ));
    }
    let word = if free < needed { "WARNING: " } else { "" };
    Ok(format!("{word}{} free, at most {} more are needed", gb(free), gb(needed)))
}

/// What is in a folder, in bytes on the disk.
fn used(folder: &Path) -> u64 {
    let folder = folder.display().to_string();
    let told = version(&["du", "-sk", &folder]);
    let kib = told.as_deref().and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0).saturating_mul(1024)
}

pub(super) fn install(package: &str) {
    println!("MISSING: {package}; trying the package manager");
    let root = rustix::process::getuid().is_root();
    let sudo: &[&str] = if root { &[] } else { &["sudo", "-n"] };
    for words in [&["apt-get", "update", "-qq"][..], &["apt-get", "install", "-y", "-qq", package]] {
        let line: Vec<&str> = sudo.iter().chain(words).copied().collect();
        let _ = command(&line).env("DEBIAN_FRONTEND", "noninteractive").status();
    }
}

pub(crate) fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

pub(crate) fn version(words: &[&str]) -> Option<String> {
    let output =
        command(words).stderr(Stdio::null()).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}
