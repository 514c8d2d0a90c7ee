//! Removes a folder with its content at any depth: agents, tests and foreign commits can nest thousands of folders,
//! and stack, paths and open files are limited.

use std::ffi::{CStr, CString};
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, chmodat, fchmod, openat, renameat, statat, unlinkat,
};

use super::Errno;

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// So deep is looked into a folder. What is below is moved up to the top and comes later.
const DEPTH: usize = 32;

/// For the owner alone: what is removed is nobody's business.
const OWN: Mode = Mode::RWXU;

/// Removes a file, a link, or a folder with everything in it. Links are not followed, and folders that may not be changed are
/// changed all the same, if their owner may allow it.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    if !fs::symlink_metadata(path)?.is_dir() {
        return fs::remove_file(path);
    }
    let root = open_at(CWD, &c_string(path)?)?;
    let mut removal = Removal { root: root.as_fd(), moved: 0 };
    loop {
        let names = list(root.as_fd())?;
        if names.is_empty() {
            break;
        }
        removal.clear(root.as_fd(), names, 0)?;
    }
    drop(root);
    fs::remove_dir(path)
}

struct Removal<'a> {
    root: BorrowedFd<'a>,
    /// Folders that were moved to the top.
    moved: u64,
}

impl Removal<'_> {
    fn clear(
        &mut self,
        folder: BorrowedFd<'_>,
        names: Vec<(CString, bool)>,
        depth: usize,
    ) -> Result<(), Errno> {
        for (name, is_folder) in names {
            let flags = if is_folder { AtFlags::REMOVEDIR } else { AtFlags::empty() };
            match in_own(folder, || unlinkat(folder, &name, flags)) {
                Ok(()) | Err(Errno::NOENT) => continue,
                Err(Errno::NOTEMPTY | Errno::EXIST) if is_folder => {}
                Err(error) => return Err(error),
            }
            if depth == DEPTH {
                self.move_up(folder, &name)?;
                continue;
            }
            let inner = open_at(folder, &name)?;
            let inside = list(inner.as_fd())?;
            self.clear(inner.as_fd(), inside, depth + 1)?;
            drop(inner);
            match unlinkat(folder, &name, AtFlags::REMOVEDIR) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// To a new name. A folder that is moved to another one has to be writable itself.
    fn move_up(&mut self, folder: BorrowedFd<'_>, name: &CStr) -> Result<(), Errno> {
        loop {
            self.moved += 1;
            let above = format!(".archeflow-removed-{}", self.moved);
            let moved = || renameat(folder, name, self.root, above.as_str());
            match moved().or_else(|error| allow(folder, name, error).and_then(|()| moved())) {
                Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => {}
                done => return done,
            }
        }
    }
}

/// Names and whether they are folders, without a link's target.
fn list(folder: BorrowedFd<'_>) -> Result<Vec<(CString, bool)>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        // Not every file system says it here.
        let known = Some(entry.file_type()).filter(|kind| *kind != FileType::Unknown);
        let kind = known.map_or_else(|| kind_at(folder, name), Ok)?;
        names.push((name.to_owned(), kind == FileType::Directory));
    }
    Ok(names)
}

fn kind_at(folder: BorrowedFd<'_>, name: &CStr) -> Result<FileType, Errno> {
    Ok(FileType::from_raw_mode(statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode))
}

fn open_at(folder: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    let open = || openat(folder, name, FOLDER, Mode::empty());
    open().or_else(|error| allow(folder, name, error).and_then(|()| open()))
}

/// Does this once more with all rights on the folder it is done in, if they were missing.
fn in_own(folder: BorrowedFd<'_>, act: impl Fn() -> Result<(), Errno>) -> Result<(), Errno> {
    match act() {
        Err(Errno::ACCESS) => {
            fchmod(folder, OWN)?;
            act()
        }
        done => done,
    }
}

/// Gives the owner all rights on a folder, if they were missing.
fn allow(folder: BorrowedFd<'_>, name: &CStr, error: Errno) -> Result<(), Errno> {
    if error != Errno::ACCESS || kind_at(folder, name)? != FileType::Directory {
        return Err(error);
    }
    chmodat(folder, name, OWN, AtFlags::empty())
}

fn c_string(path: &Path) -> io::Result<CString> {
    CString::new(super::files::bytes(path)).map_err(|_| io::ErrorKind::InvalidInput.into())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use rustix::fs::mkdirat;

    /// Folders in folders, beyond the length that a path can have.
    pub(crate) fn nest(top: &Path, depth: usize) -> io::Result<()> {
        let mut at = open_at(CWD, &c_string(top)?)?;
        for _ in 0..depth {
            mkdirat(&at, c"d", OWN)?;
            drop(openat(&at, c"f", OFlags::CREATE | OFlags::WRONLY, OWN)?);
            at = open_at(at.as_fd(), c"d")?;
        }
        Ok(())
    }

    #[test]
    fn r_09_m_c31_folders_are_removed_however_deep_they_are() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        for depth in [0, 1, 31, 32, 33, 34, 65, 5_000] {
            let top = folder.path().join("top");
            fs::create_dir(&top)?;
            nest(&top, depth)?;
            remove_tree(&top)?;
            assert!(!top.exists(), "{depth}");
        }
        assert_eq!(
            remove_tree(&folder.path().join("top")).map_err(|error| error.kind()),
            Err(io::ErrorKind::NotFound)
        );
        Ok(())
    }

    #[test]
    fn r_09_m_c31_links_are_not_followed_and_closed_folders_are_opened() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let (kept, top) = (folder.path().join("kept"), folder.path().join("top"));
        fs::create_dir(&kept)?;
        fs::write(kept.join("file"), "precious")?;
        fs::create_dir_all(top.join("a/b/c"))?;
        fs::write(top.join("a/b/file"), "")?;
        symlink(&kept, top.join("a/link"))?;
        let own_name = top.join(".archeflow-removed-1");
        fs::create_dir_all(own_name.join("x"))?;
        nest(&own_name, 100)?;
        for closed in ["a/b/c", "a/b", "a"] {
            fs::set_permissions(top.join(closed), fs::Permissions::from_mode(0o000))?;
        }
        remove_tree(&top)?;
        assert_eq!(fs::read_to_string(kept.join("file"))?, "precious");
        symlink(&kept, &top)?;
        remove_tree(&top)?;
        assert!(fs::symlink_metadata(&top).is_err() && kept.join("file").exists());
        Ok(())
    }
}
