//! The folders of a task: what may be in them.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Component, Path};

/// What is wrong with the content of a folder, each with the path from its root.
pub(super) struct FolderLook {
    pub(super) files: usize,
    pub(super) faults: Vec<FolderFault>,
}

pub(super) struct FolderFault {
    pub(super) path: String,
    pub(super) text: String,
    pub(super) remedy: &'static str,
}

const KEEP_INSIDE: &str = "Let the link name a file in the same folder by a relative path, or copy the file.";
const PLAIN: &str = "Keep plain files, folders and links only.";
const NO_REPOSITORY: &str = "Remove it: the repository is made from the files. To use one with its history, name it as `repository:`.";

/// Looks at all files below a folder, following no link.
pub(super) fn look(root: &Path) -> io::Result<FolderLook> {
    let mut found = FolderLook { files: 0, faults: Vec::new() };
    let mut folders = vec![Vec::<std::ffi::OsString>::new()];
    while let Some(parts) = folders.pop() {
        let folder = parts.iter().fold(root.to_path_buf(), |path, part| path.join(part));
        let mut entries = fs::read_dir(&folder)?.collect::<io::Result<Vec<_>>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let name = entry.file_name();
            let below: std::path::PathBuf = parts.iter().chain([&name]).collect();
            let mut fault = |text: &str, remedy| {
                let path = below.display().to_string();
                found.faults.push(FolderFault { path, text: text.to_owned(), remedy });
            };
            let kind = entry.file_type()?;
            if name.eq_ignore_ascii_case(".git") {
                fault("a git repository can't be part of the files", NO_REPOSITORY);
            } else if kind.is_symlink() {
                if !stays_inside(&fs::read_link(entry.path())?, parts.len()) {
                    fault("the link leads outside of its folder", KEEP_INSIDE);
                }
                found.files += 1;
            } else if kind.is_dir() {
                folders.push([parts.clone(), vec![name]].concat());
            } else if kind.is_file() {
                found.files += 1;
            } else {
                fault("neither a file, a folder nor a link", PLAIN);
            }
        }
    }
    Ok(found)
}

/// Paths of all files and links below a folder, with `/` between names. Folders that can't be read are left out, as are names
/// that are no text.
pub(super) fn files_below(root: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut folders = vec![String::new()];
    while let Some(below) = folders.pop() {
        for entry in fs::read_dir(root.join(&below)).into_iter().flatten().flatten() {
            let (Ok(name), Ok(kind)) = (entry.file_name().into_string(), entry.file_type()) else { continue };
            let path = if below.is_empty() { name } else { format!("{below}/{name}") };
            if kind.is_dir() {
                folders.push(path);
            } else {
                found.insert(path);
            }
        }
    }
    found
}

/// Whether a link that is this deep in a folder stays in it, also by way of other such links: `..` comes first or not at
/// all, because behind the name of another link it would count from where that one leads.
fn stays_inside(target: &Path, depth: usize) -> bool {
    let mut up = 0;
    let mut down = 0;
    for part in target.components() {
        match part {
            Component::ParentDir if down == 0 => up += 1,
            Component::Normal(_) => down += 1,
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return false,
        }
    }
    up <= depth
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ev_41_links_that_leave_their_folder() {
        for (target, depth, stays) in [
            ("a", 0, true),
            ("./a/b", 0, true),
            ("../a", 1, true),
            ("../../a", 2, true),
            ("..", 0, false),
            ("../a", 0, false),
            ("../../a", 1, false),
            ("a/../b", 3, false),
            ("/etc/passwd", 3, false),
        ] {
            assert_eq!(stays_inside(Path::new(target), depth), stays, "{target} at {depth}");
        }
    }
}
