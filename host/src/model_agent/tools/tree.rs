//! The files beneath one folder. Every step of a path is opened for itself and no link is followed, so nothing outside
//! can be reached by whatever name; git's own folder is off limits.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use crate::platform::Errno;
use crate::platform::files::{
    AtFlags, FileType, Listing, Mode, OFlags, fstat, ftruncate, mkdirat, open, openat, permissions, statat,
};

pub(crate) struct ToolTree {
    root: PathBuf,
}

/// An entry of a folder.
pub(super) struct FolderEntry {
    pub(super) name: String,
    pub(super) kind: FolderEntryKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FolderEntryKind {
    Folder,
    File,
    Link,
    Other,
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const PLAIN: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// Names a file may have, from the root.
pub(crate) type Parts = Vec<String>;

impl ToolTree {
    pub(crate) fn new(root: &Path) -> ToolTree {
        ToolTree { root: root.to_owned() }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// The steps of a path as a model writes it. One that begins with the root is meant from there.
    pub(crate) fn parts(&self, path: &str) -> Result<Parts, String> {
        let absolute = path.starts_with('/');
        let inner = Path::new(path).strip_prefix(&self.root).ok().and_then(Path::to_str);
        let Some(inner) = inner.or((!absolute).then_some(path)) else {
            return Err(format!("{path} is outside of the working copy; give paths from its root"));
        };
        let parts: Parts =
            inner.split('/').filter(|part| !matches!(*part, "" | ".")).map(str::to_owned).collect();
        if parts.iter().any(|part| part == "..") {
            return Err(format!("{path}: `..` is not allowed; give paths from the root of the working copy"));
        }
        if path.contains('\0') || parts.iter().any(|part| part.len() > 255) || parts.len() > 100 {
            return Err("that is no path".to_owned());
        }
        if parts.iter().any(|part| part.eq_ignore_ascii_case(".git")) {
            return Err(format!("{path}: git's own folder is not for you"));
        }
        Ok(parts)
    }

    /// The text of a file, or of its first N bytes.
    pub(super) fn read(&self, parts: &[String], most: u64) -> Result<Vec<u8>, String> {
        let (name, above) = parts.split_last().ok_or("that is the working copy itself")?;
        let folder = self.folder(above, false)?;
        let fd = openat(&folder, name, OFlags::RDONLY | PLAIN, Mode::empty())
            .map_err(|error| describe_error(parts, error))?;
        let file = regular(fd, parts)?;
        let mut bytes = Vec::new();
        file.take(most).read_to_end(&mut bytes).map_err(|error| format!("{}: {error}", parts.join("/")))?;
        Ok(bytes)
    }

    /// Writes all of a file, and makes the folders above it.
    pub(crate) fn write(&self, parts: &[String], bytes: &[u8]) -> Result<(), String> {
        let (name, above) = parts.split_last().ok_or("that is the working copy itself")?;
        let folder = self.folder(above, true)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | PLAIN;
        let mode = permissions(0o666);
        let fd = openat(&folder, name, flags, mode).map_err(|error| describe_error(parts, error))?;
        let mut file = regular(fd, parts)?;
        ftruncate(&file, 0).map_err(|error| describe_error(parts, error))?;
        file.write_all(bytes).map_err(|error| format!("{}: {error}", parts.join("/")))
    }

    /// The entries of a folder, by name, without git's own. Names that are no text are left out.
    pub(super) fn entries(&self, parts: &[String]) -> Result<Vec<FolderEntry>, String> {
        let folder = self.folder(parts, false)?;
        let listing = Listing::read_from(&folder).map_err(|error| describe_error(parts, error))?;
        let mut entries = Vec::new();
        for entry in listing.flatten() {
            let Ok(name) = entry.file_name().to_str() else { continue };
            if matches!(name, "." | "..") || name.eq_ignore_ascii_case(".git") {
                continue;
            }
            let Ok(stat) = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            entries.push(FolderEntry {
                name: name.to_owned(),
                kind: kind(FileType::from_raw_mode(stat.st_mode)),
            });
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    /// What this path is, without following it.
    pub(super) fn kind(&self, parts: &[String]) -> Result<FolderEntryKind, String> {
        let Some((name, above)) = parts.split_last() else { return Ok(FolderEntryKind::Folder) };
        let folder = self.folder(above, false)?;
        let stat =
            statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW).map_err(|error| describe_error(parts, error))?;
        Ok(kind(FileType::from_raw_mode(stat.st_mode)))
    }

    fn folder(&self, parts: &[String], make: bool) -> Result<OwnedFd, String> {
        let mut at = open(&self.root, FOLDER, Mode::empty()).map_err(|error| describe_error(&[], error))?;
        for (n, part) in parts.iter().enumerate() {
            let here = parts.get(..=n).unwrap_or_default();
            if make {
                match mkdirat(&at, part, permissions(0o777)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(describe_error(here, error)),
                }
            }
            at = openat(&at, part, FOLDER, Mode::empty()).map_err(|error| describe_error(here, error))?;
        }
        Ok(at)
    }
}

fn kind(kind: FileType) -> FolderEntryKind {
    match kind {
        FileType::Directory => FolderEntryKind::Folder,
        FileType::RegularFile => FolderEntryKind::File,
        FileType::Symlink => FolderEntryKind::Link,
        FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => FolderEntryKind::Other,
    }
}

fn regular(fd: OwnedFd, parts: &[String]) -> Result<File, String> {
    let stat = fstat(&fd).map_err(|error| describe_error(parts, error))?;
    match kind(FileType::from_raw_mode(stat.st_mode)) {
        FolderEntryKind::File => Ok(File::from(fd)),
        FolderEntryKind::Folder => Err(format!("{} is a folder", parts.join("/"))),
        FolderEntryKind::Link | FolderEntryKind::Other => {
            Err(format!("{} is no ordinary file", parts.join("/")))
        }
    }
}

fn describe_error(parts: &[String], error: Errno) -> String {
    let path = if parts.is_empty() { ".".to_owned() } else { parts.join("/") };
    match error {
        Errno::LOOP | Errno::MLINK => format!("{path} is a link, and links are not followed"),
        Errno::NOENT => format!("{path} is not there"),
        Errno::NOTDIR => format!("{path} is no folder, or a link to one"),
        Errno::ISDIR => format!("{path} is a folder"),
        Errno::NXIO => format!("{path} is no ordinary file"),
        error => format!("{path}: {error}"),
    }
}
