//! A directory held open, so that a name is used in the very directory that was checked.
//!
//! Below `.archeflow` no symbolic link is ever followed: a repository can contain links, and a link there would send
//! our writes to other files. Links above it are the user's choice.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use super::files::Error;
use crate::platform::Errno;
use crate::platform::files::{self as os, AtFlags, FileType, Mode, OFlags};

pub(crate) const STATE: &str = ".archeflow";

const OPEN_DIR: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// Non-blocking, because opening a FIFO that someone planted would otherwise wait for ever.
const OPEN_FILE: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

#[derive(Debug)]
pub(crate) struct Dir {
    fd: OwnedFd,
    path: PathBuf,
}

impl Dir {
    pub(crate) fn open(path: &Path) -> Result<Dir, Error> {
        let inside = path.components().skip_while(|part| part.as_os_str() != STATE);
        let outside: PathBuf = path.components().take_while(|part| part.as_os_str() != STATE).collect();
        let outside = if outside.as_os_str().is_empty() { PathBuf::from(".") } else { outside };

        let fd = os::open(&outside, OPEN_DIR, Mode::empty())
            .map_err(|e| Error::io("open the directory", &outside, e))?;
        let mut dir = Dir { fd, path: outside };
        for part in inside {
            match part {
                Component::Normal(name) => dir = dir.enter(name)?,
                Component::CurDir => {}
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                    return Err(Error::refused(path, "the path leaves the state directory"));
                }
            }
        }
        Ok(dir)
    }

    pub(crate) fn parent_of(path: &Path) -> Result<(Dir, &OsStr), Error> {
        let name = path.file_name().ok_or_else(|| Error::refused(path, "it does not name a file"))?;
        Ok((Dir::open(path.parent().unwrap_or(Path::new(".")))?, name))
    }

    pub(crate) fn enter(&self, name: &OsStr) -> Result<Dir, Error> {
        let path = self.path.join(name);
        match os::openat(&self.fd, name, OPEN_DIR.union(OFlags::NOFOLLOW), Mode::empty()) {
            Ok(fd) => Ok(Dir { fd, path }),
            Err(Errno::LOOP) => Err(Error::refused(&path, "it is a symbolic link")),
            Err(Errno::NOTDIR) => Err(Error::refused(&path, self.why_no_directory(name))),
            Err(e) => Err(Error::io("open the directory", &path, e)),
        }
    }

    /// Enters a directory and makes it first when it is missing.
    pub(crate) fn make(&self, name: &str, mode: u32) -> Result<Dir, Error> {
        match os::mkdirat(&self.fd, name, os::permissions(mode)) {
            Ok(()) => self.sync()?,
            Err(Errno::EXIST) => {}
            Err(e) => return Err(Error::io("create the directory", &self.path.join(name), e)),
        }
        self.enter(OsStr::new(name))
    }

    /// Opens a regular file of this directory; links, devices and the like are refused.
    pub(crate) fn file(&self, name: impl AsRef<OsStr>, flags: OFlags) -> Result<File, Error> {
        let name = name.as_ref();
        // Only an error needs it.
        let path = || self.path.join(name);
        let mode = Mode::RUSR | Mode::WUSR;
        let file = match os::openat(&self.fd, name, flags.union(OPEN_FILE), mode) {
            Ok(fd) => File::from(fd),
            Err(Errno::LOOP) => return Err(Error::refused(&path(), "it is a symbolic link")),
            Err(Errno::ISDIR) => return Err(Error::refused(&path(), "it is a directory")),
            Err(Errno::NXIO) => return Err(Error::refused(&path(), "it is not a regular file")),
            Err(e) => return Err(Error::io("open", &path(), e)),
        };
        if !file.metadata().map_err(|e| Error::io("look at", &path(), e))?.is_file() {
            return Err(Error::refused(&path(), "it is not a regular file"));
        }
        Ok(file)
    }

    pub(crate) fn kind(&self, name: impl AsRef<OsStr>) -> Result<Option<FileType>, Error> {
        match os::statat(&self.fd, name.as_ref(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(FileType::from_raw_mode(stat.st_mode))),
            Err(Errno::NOENT) => Ok(None),
            Err(e) => Err(Error::io("look at", &self.path.join(name.as_ref()), e)),
        }
    }

    pub(crate) fn rename(&self, from: &OsStr, to: &OsStr) -> Result<(), Error> {
        os::renameat(&self.fd, from, &self.fd, to).map_err(|e| Error::io("replace", &self.path.join(to), e))
    }

    /// Gives a file a second name that must not exist yet.
    pub(crate) fn link(&self, from: &OsStr, to: &OsStr) -> Result<(), Error> {
        os::linkat(&self.fd, from, &self.fd, to, AtFlags::empty())
            .map_err(|e| Error::io("create", &self.path.join(to), e))
    }

    pub(crate) fn remove(&self, name: impl AsRef<OsStr>) -> Result<(), Error> {
        os::unlinkat(&self.fd, name.as_ref(), AtFlags::empty())
            .map_err(|e| Error::io("remove", &self.path.join(name.as_ref()), e))
    }

    /// Makes new, renamed and removed names survive a power loss.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        os::sync(&self.fd).map_err(|e| Error::io("sync the directory", &self.path, e))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn stat(&self) -> Result<os::Stat, Error> {
        os::fstat(&self.fd).map_err(|e| Error::io("look at", &self.path, e))
    }

    /// The kernel gives one answer for a link and for a file where a directory should be; people need two.
    fn why_no_directory(&self, name: &OsStr) -> &'static str {
        match self.kind(name) {
            Ok(Some(FileType::Symlink)) => "it is a symbolic link",
            Ok(_) | Err(_) => "it is not a directory",
        }
    }
}
