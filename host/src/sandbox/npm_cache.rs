//! npm's cache. Unlike other tools npm writes to it even when it only reads: it rewrites the index entry of every package
//! it looks up, and adds every archive that it packs. So it gets a cache of its own, with links to the packages in the
//! user's, which stays read-only.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::platform::files as os;
use crate::platform::removal::remove_tree;

/// The part of the cache that is npm's store of packages.
pub(super) const STORE: &str = "_cacache";

/// Packages that `npx` has installed, a folder each.
pub(super) const INSTALLED: &str = "_npx";

/// Index entries by what they describe, and packages by their content.
const INDEX: &str = "index-v5";
const CONTENT: &str = "content-v2";

/// A larger index is only linked: making entries of one's own would take longer than most commands.
const MOST_ENTRIES: usize = 20_000;

/// A cache of the user's, and the one in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NpmCache {
    pub(super) users: PathBuf,
    pub(super) own: PathBuf,
}

impl NpmCache {
    /// Makes the cache anew. Where no project of npm's is to be worked on, links to the user's are all there is: a lock
    /// file can be installed from them.
    pub(super) fn prepare(&self, cwd: &Path) -> io::Result<()> {
        self.prepare_up_to(if has_package(cwd) { MOST_ENTRIES } else { 0 })
    }

    fn prepare_up_to(&self, most: usize) -> io::Result<()> {
        // A command before may have left a link here that leads anywhere.
        match fs::symlink_metadata(&self.own) {
            Ok(meta) if meta.is_dir() => remove_tree(&self.own)?,
            Ok(_) => fs::remove_file(&self.own)?,
            Err(_) => {}
        }
        let (users, own) = (self.users.join(STORE), self.own.join(STORE));
        os::private_directory().recursive(true).create(&own)?;
        for folder in children(&self.users.join(INSTALLED)) {
            fs::create_dir_all(self.own.join(INSTALLED))?;
            os::symlink(&folder, self.own.join(INSTALLED).join(name(&folder)))?;
        }
        if most == 0 || entries(&users.join(INDEX)) > most {
            for part in [INDEX, CONTENT].map(Path::new).into_iter().filter(|part| users.join(part).is_dir()) {
                os::symlink(users.join(part), own.join(part))?;
            }
            return Ok(());
        }
        // Entries are appended to, so they are copies. Packages are only ever read or added.
        mirror(&users.join(INDEX), &own.join(INDEX), &|from, to| fs::copy(from, to).map(drop))?;
        mirror(&users.join(CONTENT), &own.join(CONTENT), &|from, to| os::symlink(from, to))
    }
}

/// Whether npm has something to work on: in the folder or in one of the folders in it.
fn has_package(cwd: &Path) -> bool {
    let has = |folder: &Path| folder.join("package.json").is_file();
    has(cwd) || children(cwd).iter().any(|folder| has(folder))
}

/// About how many entries an index has: it is two folders deep, and hardly two entries are in one.
fn entries(index: &Path) -> usize {
    children(index).iter().map(|folder| children(folder).len()).sum()
}

/// The same folders, with something in place of each file.
fn mirror(from: &Path, to: &Path, put: &dyn Fn(&Path, &Path) -> io::Result<()>) -> io::Result<()> {
    fs::create_dir(to)?;
    for path in children(from) {
        let beside = to.join(name(&path));
        match fs::symlink_metadata(&path) {
            Ok(meta) if meta.is_dir() => mirror(&path, &beside, put)?,
            // The user's npm may be at work there: what is gone again was not needed.
            Ok(_) => put(&path, &beside).or_else(|error| if path.exists() { Err(error) } else { Ok(()) })?,
            Err(_) => {}
        }
    }
    Ok(())
}

fn children(folder: &Path) -> Vec<PathBuf> {
    let found = fs::read_dir(folder).map(|found| found.flatten().map(|entry| entry.path()).collect());
    found.unwrap_or_default()
}

fn name(path: &Path) -> &std::ffi::OsStr {
    path.file_name().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s_12_npm_gets_entries_of_its_own_and_links_to_packages() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let at = |below: &str| folder.path().join(below);
        for (file, text) in [
            ("users/_cacache/index-v5/aa/bb/entry", "known"),
            ("users/_cacache/content-v2/sha512/cc/dd/package", "package"),
            ("users/_npx/0123/package.json", "{}"),
            ("outside/kept", "precious"),
        ] {
            at(file).parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::write(at(file), text)?;
        }
        let cache = NpmCache { users: at("users"), own: at("own") };
        // What an earlier command left is taken away, and nothing that it leads to.
        os::symlink(at("outside"), at("own"))?;
        cache.prepare_up_to(9)?;
        assert_eq!(fs::read_to_string(at("outside/kept"))?, "precious");
        fs::write(at("own/_cacache/index-v5/aa/bb/entry"), "changed")?;
        assert_eq!(fs::read_to_string(at("users/_cacache/index-v5/aa/bb/entry"))?, "known");
        let package = at("own/_cacache/content-v2/sha512/cc/dd/package");
        assert_eq!(fs::read_link(package)?, at("users/_cacache/content-v2/sha512/cc/dd/package"));
        assert_eq!(fs::read_link(at("own/_npx/0123"))?, at("users/_npx/0123"));
        // One that is too large, or of no use here, is linked as a whole.
        cache.prepare_up_to(0)?;
        assert_eq!(fs::read_link(at("own/_cacache/index-v5"))?, at("users/_cacache/index-v5"));
        assert_eq!(fs::read_to_string(at("own/_cacache/index-v5/aa/bb/entry"))?, "known");
        Ok(())
    }

    #[test]
    fn s_12_a_package_is_looked_for_here_and_one_folder_below() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        assert!(!has_package(folder.path()));
        fs::create_dir_all(folder.path().join("web"))?;
        fs::write(folder.path().join("web/package.json"), "{}")?;
        assert!(has_package(folder.path()));
        assert!(has_package(&folder.path().join("web")));
        Ok(())
    }
}
