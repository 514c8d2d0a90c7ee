//! What a release contains: the program, its licence and changelog, completions and manual pages. Pages and completions
//! come from a build for this machine, since the program may be for another.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Map, Value};

use super::{Release, run_in};
use crate::test::{built, through};

/// Shell, file in the archive, place in a Debian system.
pub(super) const COMPLETIONS: [(&str, &str, &str); 3] = [
    ("bash", "completions/archeflow.bash", "usr/share/bash-completion/completions/archeflow"),
    ("zsh", "completions/_archeflow", "usr/share/zsh/vendor-completions/_archeflow"),
    ("fish", "completions/archeflow.fish", "usr/share/fish/vendor_completions.d/archeflow.fish"),
];

/// Fills the folder that becomes the archive.
pub(super) fn fill(release: &Release, program: &Path) -> Result<(), String> {
    let folder = release.folder();
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    copy(program, &folder.join("archeflow"), 0o755)?;
    for name in ["LICENSE", "CHANGELOG.md", "README.md"] {
        copy(&release.root.join(name), &folder.join(name), 0o644)?;
    }
    through(&release.root, &["cargo", "build", "--package", "archeflow", "--features", "man"], &[])?;
    let host = built(&release.root, "debug", "archeflow");
    for (shell, path, _) in COMPLETIONS {
        write(&folder.join(path), &run_in(&release.root, &[&host, "completions", shell], &[])?)?;
    }
    for (name, page) in pages(&run_in(&release.root, &[&host, "__man"], &[])?)? {
        write(&folder.join("man").join(name), page.as_str().unwrap_or_default())?;
    }
    Ok(())
}

fn pages(printed: &str) -> Result<Map<String, Value>, String> {
    match serde_json::from_str(printed) {
        Ok(Value::Object(pages)) if pages.contains_key("archeflow.1") => Ok(pages),
        Ok(_) => Err("`archeflow __man` printed no pages".to_owned()),
        Err(error) => Err(format!("`archeflow __man`: {error}")),
    }
}

pub(super) fn write(path: &Path, text: &str) -> Result<(), String> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    mode(path, 0o644)
}

pub(super) fn copy(from: &Path, to: &Path, bits: u32) -> Result<(), String> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    fs::copy(from, to).map_err(|error| format!("{}: {error}", from.display()))?;
    mode(to, bits)
}

fn mode(path: &Path, bits: u32) -> Result<(), String> {
    fs::set_permissions(path, fs::Permissions::from_mode(bits))
        .map_err(|error| format!("{}: {error}", path.display()))
}

/// The names in a folder, sorted.
pub(super) fn names(folder: &Path) -> Result<Vec<String>, String> {
    let listing = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut names: Vec<String> =
        listing.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    Ok(names)
}
