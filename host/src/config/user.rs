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

/// What `--config` names: a file, or a folder of the same shape as the user's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedConfig {
    pub config: ConfigFile,
    /// `hooks.yaml`, archetypes, teams, workflows, lenses and domains of a folder.
    pub others: Vec<ConfigFile>,
}

impl From<ConfigFile> for NamedConfig {
    fn from(config: ConfigFile) -> Self {
        NamedConfig { config, others: Vec::new() }
    }
}

const CONFIG: &str = "config.yaml";
const HOOKS: &str = "hooks.yaml";
const ARCHETYPES: &str = "archetypes";

/// `config.yaml`, `hooks.yaml`, archetypes, teams, workflows, lenses and domains of the folder, as far as they exist. A folder inside the
/// repository at `root` is refused: a repository must not become its user's voice.
pub fn read(folder: &Path, root: &Path) -> Result<Vec<ConfigFile>, Faults> {
    if inside(folder, root) {
        let text =
            "the user's configuration is inside the repository, so it can't be trusted separately".to_owned();
        return Err(fault(folder, text).into());
    }
    let mut parts = Vec::new();
    parts.extend(part(&folder.join(CONFIG))?);
    parts.extend(others(folder)?);
    Ok(parts)
}

/// All files of a folder that take part, but for `config.yaml`.
fn others(folder: &Path) -> Result<Vec<ConfigFile>, Fault> {
    let mut paths = vec![folder.join(HOOKS)];
    paths.extend(listed(&folder.join(ARCHETYPES), &["md"])?);
    for kind in ShelfKind::ALL {
        paths.extend(listed(&folder.join(kind.folder()), &["yaml", "yml"])?);
    }
    let mut parts = Vec::new();
    for path in paths {
        parts.extend(part(&path)?);
    }
    Ok(parts)
}

/// The file or folder that the user named with `--config`; it has to exist.
pub fn read_named(path: &Path) -> Result<NamedConfig, Faults> {
    if !path.is_dir() {
        let none = || fault(path, "there is no such file or folder".to_owned());
        return Ok(part(path)?.ok_or_else(none)?.into());
    }
    let mut faults = strangers(path)?;
    let config = part(&path.join(CONFIG))?;
    if config.is_none() {
        let text = format!("the folder has no {CONFIG}; create it (it may be empty), or name a file");
        faults.push(fault(path, text));
    }
    match config.filter(|_| faults.is_empty()) {
        Some(config) => Ok(NamedConfig { config, others: others(path)? }),
        None => Err(Faults(faults)),
    }
}

/// Folders and settings files of a folder that nobody would read: a misspelt name must not mean the default.
fn strangers(folder: &Path) -> Result<Vec<Fault>, Fault> {
    let wrong = |error: &io::Error| fault(folder, format!("can't be listed: {error}"));
    let folders: Vec<&str> =
        std::iter::once(ARCHETYPES).chain(ShelfKind::ALL.into_iter().map(ShelfKind::folder)).collect();
    let mut faults = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| wrong(&error))? {
        let path = entry.map_err(|error| wrong(&error))?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let is_settings = name.ends_with(".yaml") || name.ends_with(".yml");
        let (is_known, known) = match path.is_dir() {
            true => (folders.contains(&name.as_str()), format!("the folders {}", folders.join(", "))),
            false => {
                (!is_settings || name == CONFIG || name == HOOKS, format!("the files {CONFIG}, {HOOKS}"))
            }
        };
        if !is_known && !name.starts_with('.') {
            let text =
                format!("takes no part in the configuration; allowed here: {known}. Rename or move it");
            faults.push(fault(&path, text));
        }
    }
    faults.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(faults)
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
