//! Arms on their way to other machines: one text with all files of an arm, and what may be in it.
//!
//! The machine that gets an arm did not choose it, so it accepts less than the user's own `--config`: files of known places,
//! no hooks, and only settings that an approved repository may have. Nothing in it can open the sandbox or name an agent.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::arms;
use crate::config::shelf::ShelfKind;
use crate::config::yaml;
use crate::config::{ConfigFile, Flags, Inputs, Settings};
use crate::platform::files as os;
use crate::store::names;

const FORMAT: u32 = 1;
/// In bytes, of a packed arm.
const LARGEST: usize = 4 << 20;
const CONFIG: &str = "config.yaml";
const ARCHETYPES: &str = "archetypes";

#[derive(Serialize, Deserialize)]
struct PackedArm {
    v: u32,
    files: Vec<PackedFile>,
}

#[derive(Serialize, Deserialize)]
struct PackedFile {
    path: String,
    text: String,
}

/// The arm in this folder as other machines get it.
///
/// # Errors
/// In words for a person, if it can't be read, or other machines would refuse it.
pub fn packed(folder: &Path) -> Result<Vec<u8>, String> {
    let arm = arms::of_folder(folder).map_err(|fault| fault.to_string())?;
    let file = |(path, bytes): (String, Vec<u8>)| match String::from_utf8(bytes) {
        Ok(text) => Ok(PackedFile { path, text }),
        Err(_) => Err(format!("{path} is no UTF-8 text")),
    };
    let files = arm.files.into_iter().map(file).collect::<Result<Vec<_>, _>>()?;
    let packed = PackedArm { v: FORMAT, files };
    let bytes = serde_json::to_vec(&packed).map_err(|error| error.to_string())?;
    accepted(&bytes)?;
    Ok(bytes)
}

/// Writes a packed arm into a new folder.
///
/// # Errors
/// If something is in it that no order may bring, or the folder can't be written.
pub fn unpack(bytes: &[u8], folder: &Path) -> Result<(), String> {
    let files = accepted(bytes)?;
    for PackedFile { path, text } in files {
        let place = folder.join(&path);
        let failed = |error: io::Error| format!("{}: {error}", place.display());
        let parent = place.parent().unwrap_or(folder);
        os::private_directory().recursive(true).create(parent).map_err(failed)?;
        std::fs::write(&place, text).map_err(failed)?;
    }
    Ok(())
}

/// The files of an arm, if all of it may come from another machine.
fn accepted(bytes: &[u8]) -> Result<Vec<PackedFile>, String> {
    if bytes.len() > LARGEST {
        return Err(format!("it has more than {LARGEST} bytes"));
    }
    let arm: PackedArm = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if arm.v > FORMAT {
        return Err(format!("it has the format {}, and this version reads {FORMAT}", arm.v));
    }
    if let Some(file) = arm.files.iter().find(|file| !is_known_place(&file.path)) {
        return Err(format!(
            "`{}` is no file that an arm may have on a fleet; allowed: {CONFIG}, archetypes, teams, workflows, lenses and domains, but no hooks",
            file.path
        ));
    }
    if !arm.files.iter().any(|file| file.path == CONFIG) {
        return Err(format!("it has no {CONFIG}"));
    }
    for file in arm.files.iter().filter(|file| !file.path.ends_with(".md")) {
        let entries = yaml::read(&file.path, file.text.as_bytes()).map_err(|fault| fault.to_string())?;
        let is_shared = |key: &str| match file.path == CONFIG {
            true => arms::SHARED.contains(&key),
            false => key == arms::SHARED_MODELS,
        };
        if let Some(entry) = entries.iter().find(|entry| is_shared(&entry.key)) {
            return Err(format!("{}:{}: an arm can't set `{}`", file.path, entry.line, entry.key));
        }
    }
    let below = |file: &PackedFile| -> ConfigFile {
        (format!(".archeflow/{}", file.path), file.text.clone().into_bytes())
    };
    let files: Vec<ConfigFile> = arm.files.iter().map(below).collect();
    let flags = Flags::default();
    let inputs = Inputs { repository: &files, approved: true, user: &[], file: None, flags: &flags };
    Settings::resolve(&inputs).map_err(|faults| faults.to_string().replace(".archeflow/", ""))?;
    Ok(arm.files)
}

fn is_known_place(path: &str) -> bool {
    let named = |name: &str, endings: &[&str]| {
        let stem = endings.iter().find_map(|ending| name.strip_suffix(ending));
        stem.is_some_and(names::valid_name)
    };
    match path.split_once('/') {
        None => path == CONFIG,
        Some((ARCHETYPES, name)) => named(name, &[".md"]),
        Some((folder, name)) => {
            ShelfKind::ALL.iter().any(|kind| kind.folder() == folder) && named(name, &[".yaml", ".yml"])
        }
    }
}

/// The packed files of an arm that is not in a folder, for tests.
#[cfg(test)]
fn packed_files(files: &[(&str, &str)]) -> Vec<u8> {
    let file =
        |(path, text): &(&str, &str)| PackedFile { path: (*path).to_owned(), text: (*text).to_owned() };
    let packed = PackedArm { v: FORMAT, files: files.iter().map(file).collect() };
    serde_json::to_vec(&packed).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use super::*;

    #[test]
    fn ev_150_every_built_in_arm_arrives_as_it_was() {
        for arms::EvalArm { name, files, .. } in arms::built_in() {
            let dir = tempfile::tempdir().unwrap();
            let (from, to) = (dir.path().join(&name), dir.path().join("there"));
            for (path, bytes) in &files {
                let place = from.join(path);
                std::fs::create_dir_all(place.parent().unwrap()).unwrap();
                std::fs::write(place, bytes).unwrap();
            }
            unpack(&packed(&from).unwrap(), &to).unwrap();
            let sorted = |mut files: Vec<(String, Vec<u8>)>| {
                files.sort();
                files
            };
            assert_eq!(sorted(arms::of_folder(&to).unwrap().files), sorted(files), "{name}");
        }
    }

    #[test]
    fn ev_151_an_arm_from_elsewhere_opens_nothing() {
        let dir = tempfile::tempdir().unwrap();
        for (files, words) in [
            (&[("config.yaml", "sandbox:\n  network: full\n")][..], "sandbox.network"),
            (&[("config.yaml", "sandbox:\n  read: [~/.ssh]\n")], "sandbox.read"),
            (&[("config.yaml", "sandbox:\n  keys: agent\n")], "sandbox.keys"),
            (&[("config.yaml", "agents:\n  env: [HOME]\n")], "`agents`"),
            (&[("config.yaml", "models:\n  max_turns: 3\n")], "`models`"),
            (&[("config.yaml", "costs:\n  budget_usd: 1\n")], "`costs`"),
            (&[("config.yaml", ""), ("lenses/x.yaml", "model_overrides: {}\n")], "`model_overrides`"),
            (&[("config.yaml", ""), ("hooks.yaml", "")], "hooks.yaml"),
            (&[("config.yaml", ""), ("../config.yaml", "")], "../config.yaml"),
            (&[("config.yaml", ""), ("teams/../../x.yaml", "")], "teams/../../x.yaml"),
            (&[("config.yaml", ""), ("/tmp/x.yaml", "")], "/tmp/x.yaml"),
            (&[("config.yaml", ""), ("archetypes/x.sh", "")], "archetypes/x.sh"),
            (&[("config.yaml", ""), ("lenses/.yaml", "")], "lenses/.yaml"),
            (&[("teams/x.yaml", "")], "no config.yaml"),
            (&[("config.yaml", "wrokflow: fast\n")], "wrokflow"),
        ] {
            let refused = unpack(&packed_files(files), &dir.path().join("to")).unwrap_err();
            assert!(refused.contains(words), "{words}: {refused}");
            assert!(!dir.path().join("to").exists(), "{words}");
        }
        for bytes in [&b""[..], b"{}", br#"{"v":2,"files":[]}"#, b"\xff"] {
            assert!(unpack(bytes, &dir.path().join("to")).is_err());
        }
    }
}
