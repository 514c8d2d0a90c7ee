//! Which folders of `cache` may be kept between tests, and what of them. The rows are in `docs/rules/caches.md`.
//!
//! Deliberately absent: copying. The host asks here before each test and when a tree has landed.

use std::collections::{BTreeMap, BTreeSet};

/// A tool whose results may serve the tests of another tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheTool {
    Cargo,
}

/// The parts of a profile's folder (`target/debug`) that only Cargo reads.
pub const UNIT_FOLDERS: [&str; 3] = [".fingerprint", "build", "deps"];
/// Configuration of Cargo, in any folder.
const CONFIGS: [&str; 2] = [".cargo/config.toml", ".cargo/config"];
/// They choose the compiler.
const TOOLCHAINS: [&str; 2] = ["rust-toolchain.toml", "rust-toolchain"];
/// Words of a configuration that puts files of the tree, or others, in the place of locked packages. `\` may hide one.
const REPLACES: [&str; 4] = ["source", "paths", "include", "\\"];

/// Why a folder is empty in a test.
pub type WhyCold = &'static str;

const UNKNOWN: WhyCold = "only target beside Cargo.toml and Cargo.lock is known to be safe";
const IN_COMMIT: WhyCold = "it holds files of the commit";
const REPLACED: WhyCold = "a .cargo/config.toml may replace the sources of packages";

/// The tool that a folder belongs to, by the files of a commit.
pub fn tool_of(folder: &str, files: &[&str]) -> Result<CacheTool, WhyCold> {
    let below = |file: &str| file.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
    if files.iter().any(|file| *file == folder || below(file)) {
        return Err(IN_COMMIT);
    }
    let (parent, name) = folder.rsplit_once('/').unwrap_or(("", folder));
    let has = |name: &str| files.contains(&joined(parent, name).as_str());
    match name {
        "target" if has("Cargo.toml") && has("Cargo.lock") => Ok(CacheTool::Cargo),
        _ => Err(UNKNOWN),
    }
}

fn joined(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// Where the packages of a folder's tool are locked.
pub fn lock_of(folder: &str) -> String {
    joined(folder.rsplit_once('/').map_or("", |(parent, _)| parent), "Cargo.lock")
}

/// A file with which the same package is built otherwise: what was kept counts only while all of them are the same.
pub fn decides(path: &str) -> bool {
    is_config(path) || TOOLCHAINS.iter().any(|name| is_at_end(path, name))
}

pub fn is_config(path: &str) -> bool {
    CONFIGS.iter().any(|name| is_at_end(path, name))
}

fn is_at_end(path: &str, name: &str) -> bool {
    path.strip_suffix(name).is_some_and(|folder| folder.is_empty() || folder.ends_with('/'))
}

/// Whether packages are what the lock file says, as far as this configuration goes.
pub fn check_config(text: &str) -> Result<(), WhyCold> {
    if REPLACES.iter().any(|word| text.contains(word)) { Err(REPLACED) } else { Ok(()) }
}

/// The packages of a `Cargo.lock` that come from a registry or a repository. Their source is pinned there; that of the others
/// is in the tree.
pub fn pinned_packages(lock: &str) -> BTreeSet<String> {
    let mut pinned: BTreeMap<&str, bool> = BTreeMap::new();
    for package in lock.split("[[package]]").skip(1) {
        let value = |key: &str| {
            let lines = package.lines().take_while(|line| !line.starts_with('['));
            lines.filter_map(|line| line.strip_prefix(key)?.strip_prefix(" = \"")?.strip_suffix('"')).next()
        };
        if let Some(name) = value("name") {
            *pinned.entry(name).or_insert(true) &= value("source").is_some();
        }
    }
    pinned.into_iter().filter(|(_, pinned)| *pinned).map(|(name, _)| name.to_owned()).collect()
}

/// The name and the hash of a unit that Cargo built: `serde` and `0123456789abcdef` of `serde-0123456789abcdef`, or of a file
/// of that name with an ending.
pub fn unit_of(name: &str) -> Option<(&str, &str)> {
    let stem = name.split_once('.').map_or(name, |(stem, _)| stem);
    let (package, hash) = stem.rsplit_once('-')?;
    let is_hash = hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_hash && !package.is_empty()).then_some((package, hash))
}
