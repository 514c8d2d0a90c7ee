//! Reads the user's own files. These are trusted, so they have to be the user's.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::shelf::ShelfKind;
use super::yaml::MOST_BYTES;
use super::{ConfigFile, Fault, Faults};
use crate::platform::files as os;
use crate::platform::process::acting_user;

/// The folder of the user's configuration: `$XDG_CONFIG_HOME/archeflow`, or `~/.config/archeflow`. A relative path
/// is ignored, as the XDG specification demands: it would depend on where the program is started.
pub fn folder(xdg_config_home: Option<&Path>, home: Option<&Path>) -> Option<PathBuf> {
    let absolute = |path: &&Path| path.is_absolute();
    let base = xdg_config_home.filter(absolute).map(Path::to_owned);
    base.or_else(|| home.filter(absolute).map(|home| home.join(".config"))).map(|base| base.join("archeflow"))
}

/// `config.yaml`, `hooks.yaml`, archetypes, teams, workflows, lenses and domains of the folder, as far as they exist. A folder inside the
/// repository at `root` is refused: a repository must not become its user's voice.
pub fn read(folder: &Path, root: &Path) -> Result<Vec<ConfigFile>, Faults> {
    if inside(folder, root) {
        let text =
            "the user's configuration is inside the repository, so it can't be trusted separately".to_owned();
        return Err(fault(folder, text).into());
    }
    let mut paths = vec![folder.join("config.yaml"), folder.join("hooks.yaml")];
    paths.extend(listed(&folder.join("archetypes"), &["md"])?);
    for kind in ShelfKind::ALL {
        paths.extend(listed(&folder.join(kind.folder()), &["yaml", "yml"])?);
    }
    let mut parts = Vec::new();
    for path in paths {
        parts.extend(part(&path)?);
    }
    Ok(parts)
}

/// The file the user named with `--config`; it has to exist.
pub fn read_named(path: &Path) -> Result<ConfigFile, Faults> {
    part(path)?.ok_or_else(|| fault(path, "there is no such file".to_owned()).into())
}

/// Whether a path leads into the folder `root`, links followed as far as they exist.
pub fn inside(path: &Path, root: &Path) -> bool {
    let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let real = path.ancestors().find_map(|above| {
        let real = above.canonicalize().ok()?;
        Some(path.strip_prefix(above).map_or(real.clone(), |rest| real.join(rest)))
    });
    real.as_deref().unwrap_or(path).starts_with(root)
}

fn listed(folder: &Path, endings: &[&str]) -> Result<Vec<PathBuf>, Fault> {
    let wrong = |error: &io::Error| fault(folder, format!("can't be listed: {error}"));
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(wrong(&error)),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| wrong(&error))?.path();
        if path.extension().is_some_and(|extension| endings.iter().any(|ending| extension == *ending)) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// Links are followed, since people keep their configuration elsewhere; what counts is the owner of the file.
fn part(path: &Path) -> Result<Option<ConfigFile>, Fault> {
    let wrong = |error: &io::Error| fault(path, format!("can't be read: {error}"));
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(wrong(&error)),
        Ok(data) if !data.is_file() => return Err(fault(path, "is not a file".to_owned())),
        Ok(_) => {}
    }
    let file = File::open(path).map_err(|error| wrong(&error))?;
    let data = file.metadata().map_err(|error| wrong(&error))?;
    if os::owner(&data) != acting_user() && os::owner(&data) != 0 {
        return Err(fault(path, "belongs to another user".to_owned()));
    }
    if os::mode(&data) & 0o002 != 0 {
        return Err(fault(
            path,
            "can be written by all users; remove that permission (chmod o-w)".to_owned(),
        ));
    }
    let mut bytes = Vec::new();
    file.take(MOST_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(|error| wrong(&error))?;
    Ok(Some((path.display().to_string(), bytes)))
}

fn fault(path: &Path, text: String) -> Fault {
    Fault { path: path.display().to_string(), line: 0, column: 0, text }
}
