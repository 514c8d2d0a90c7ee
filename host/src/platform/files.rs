//! Files as Unix has them: modes, owners, links, and names that are bytes.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, FileExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

pub use rustix::fs::{
    AtFlags, Dir as Listing, FileType, Mode, OFlags, Stat, fstat, ftruncate, linkat, mkdirat, open, openat,
    renameat, statat, unlinkat,
};
pub use std::os::unix::fs::symlink;

use unicode_normalization::UnicodeNormalization;

use super::system;

/// The bytes of a name or path.
pub fn bytes<N: AsRef<OsStr> + ?Sized>(name: &N) -> &[u8] {
    name.as_ref().as_bytes()
}

/// A name of these bytes.
pub fn name(bytes: &[u8]) -> &OsStr {
    OsStr::from_bytes(bytes)
}

/// A path of these bytes.
pub fn path(bytes: Vec<u8>) -> PathBuf {
    PathBuf::from(owned_name(bytes))
}

/// A name that keeps its bytes.
pub fn owned_name(bytes: Vec<u8>) -> OsString {
    OsString::from_vec(bytes)
}

/// Kind and permissions, as `stat` has them.
pub fn mode(meta: &Metadata) -> u32 {
    meta.mode()
}

pub fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, Permissions::from_mode(mode))
}

/// An error where this user can't make anything in a folder, say because its file system is read-only.
pub fn check_writable(folder: &Path) -> io::Result<()> {
    Ok(rustix::fs::access(folder, rustix::fs::Access::WRITE_OK)?)
}

/// The mode of a file that is open already, whatever its name means by now.
pub fn set_mode_of(file: &File, mode: u32) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(mode))
}

/// Permissions for a new file or directory, before the user's umask.
pub fn permissions(mode: u32) -> Mode {
    Mode::from_raw_mode(system::raw_mode(mode))
}

/// Owner and mode of what [`fstat`] saw.
pub fn owner_and_mode(stat: &Stat) -> (u32, u32) {
    system::owner_and_mode(stat)
}

/// The owner of the file.
pub fn owner(meta: &Metadata) -> u32 {
    meta.uid()
}

/// Whether it is a pipe with a name, which whoever opens it waits for.
pub fn is_pipe(meta: &Metadata) -> bool {
    meta.file_type().is_fifo()
}

/// How many names the file has.
pub fn names(meta: &Metadata) -> u64 {
    meta.nlink()
}

/// The space that the file itself takes on its disk.
pub fn disk_space(meta: &Metadata) -> u64 {
    meta.blocks().saturating_mul(512)
}

/// Device and number: two paths with the same are one file.
pub fn identity(meta: &Metadata) -> (u64, u64) {
    (meta.dev(), meta.ino())
}

/// Number, mode, size and names.
pub fn shape(meta: &Metadata) -> [u64; 4] {
    [meta.ino(), u64::from(meta.mode()), meta.size(), meta.nlink()]
}

/// When content and properties were last changed, in seconds and nanoseconds. The second pair can't be set by hand.
pub fn times(meta: &Metadata) -> [i64; 4] {
    [meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec()]
}

/// Reads at an offset, without moving the file's own position.
pub fn read_at(file: &File, into: &mut [u8], offset: u64) -> io::Result<usize> {
    file.read_at(into, offset)
}

pub fn read_exact_at(file: &File, into: &mut [u8], offset: u64) -> io::Result<()> {
    file.read_exact_at(into, offset)
}

/// The options, with a mode for a file that is made by them.
pub fn with_mode(options: &mut OpenOptions, mode: u32) -> &mut OpenOptions {
    options.mode(mode)
}

/// The options, so that a symbolic link as the last name is an error.
pub fn without_links(options: &mut OpenOptions) -> &mut OpenOptions {
    options.custom_flags(i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or(0))
}

/// Opens a regular file below `root` for reading. A link on the way or in its place is an error, and nothing else that
/// another process may have put there (a FIFO, a device) is waited for.
pub fn open_beneath(root: &Path, below: &Path) -> io::Result<File> {
    let directory = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut at = open(root, directory, Mode::empty())?;
    let mut parts = below.components().peekable();
    while let Some(part) = parts.next() {
        let Component::Normal(name) = part else { break };
        if parts.peek().is_some() {
            at = openat(&at, name, directory, Mode::empty())?;
            continue;
        }
        let plain = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(openat(&at, name, plain, Mode::empty())?);
        if file.metadata()?.is_file() {
            return Ok(file);
        }
        break;
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "is not a regular file"))
}

/// A builder of directories that only the user may enter.
pub fn private_directory() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}

/// Makes a directory that only the user may enter, with those above it that are missing, whatever the umask allows.
pub fn make_private(folder: &Path) -> io::Result<()> {
    private_directory().recursive(true).create(folder)
}

/// Writes a file that only the user may read or write, if it is new.
pub fn write_private(path: &Path, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    let mut options = File::options();
    options.write(true).create(true).truncate(true);
    with_mode(&mut options, 0o600).open(path)?.write_all(bytes.as_ref())
}

/// The user may run this file as a program.
pub fn is_executable(file: &Path) -> bool {
    rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
}

/// Why the user may not read this file, if so.
pub fn check_readable(file: &Path) -> io::Result<()> {
    Ok(rustix::fs::access(file, rustix::fs::Access::READ_OK)?)
}

/// Waits for the lock on a file, however long that takes. It goes with the file or with the process.
pub fn lock_waiting(file: &File) -> io::Result<()> {
    use rustix::fs::{FlockOperation, flock};
    Ok(rustix::io::retry_on_intr(|| flock(file, FlockOperation::LockExclusive))?)
}

/// Makes a file or directory survive a power loss, down to the medium where the system can ask for that.
pub fn sync(file: impl AsFd) -> Result<(), super::Errno> {
    system::sync(file.as_fd())
}

/// The same for everything on the file system of this directory.
pub fn sync_all_around(directory: &File) -> io::Result<()> {
    Ok(system::sync_file_system(directory.as_fd())?)
}

/// Whether names in this place that differ only in case mean one file.
///
/// Looked at, not asked: a name that exists is looked up in the other case. Without a letter in the path there is
/// nothing to look up, and the usual answer of the system holds.
pub fn ignores_case(place: &Path) -> bool {
    let Ok(place) = fs::canonicalize(place) else { return system::IGNORES_CASE };
    let steps = place.ancestors().filter_map(|step| Some((step, other_case(step.file_name()?)?)));
    for (step, other) in steps {
        let (Ok(this), other) =
            (fs::symlink_metadata(step), fs::symlink_metadata(step.with_file_name(other)))
        else {
            continue;
        };
        return other.is_ok_and(|other| identity(&other) == identity(&this));
    }
    system::IGNORES_CASE
}

/// The name with its ASCII letters in the other case; nothing if there are none.
fn other_case(name: &OsStr) -> Option<OsString> {
    let flip = |byte: &u8| {
        if byte.is_ascii_lowercase() { byte.to_ascii_uppercase() } else { byte.to_ascii_lowercase() }
    };
    let other: Vec<u8> = name.as_bytes().iter().map(flip).collect();
    (other != name.as_bytes()).then(|| OsString::from_vec(other))
}

/// What a file system that ignores case, or that stores accents in one way only, takes a name for.
pub fn folded(name: &[u8]) -> String {
    let lower: String = String::from_utf8_lossy(name).nfd().flat_map(char::to_lowercase).collect();
    lower.nfc().collect()
}

/// The first two names in a sorted or unsorted list that differ only in case or in how their accents are written.
pub fn same_when_folded<'a>(names: impl IntoIterator<Item = &'a [u8]>) -> Option<(&'a [u8], &'a [u8])> {
    let mut seen = std::collections::BTreeMap::new();
    for name in names {
        match seen.insert(folded(name), name) {
            Some(earlier) if earlier != name => return Some((earlier, name)),
            Some(_) | None => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_case_needs_a_letter() {
        assert_eq!(other_case(OsStr::new("aB-9")), Some(OsString::from("Ab-9")));
        assert_eq!(other_case(OsStr::new("2026-01")), None);
    }

    #[test]
    fn two_names_for_one_file_are_found() {
        let rows: [(&[&str], bool); 5] = [
            (&["README.md", "src/main.rs"], false),
            (&["README.md", "Readme.md"], true),
            (&["src/A", "src/b", "SRC/a"], true),
            (&["straße", "STRAßE"], true),
            (&["same", "same"], false),
        ];
        for (names, clash) in rows {
            let found = same_when_folded(names.iter().map(|name| name.as_bytes()));
            assert_eq!(found.is_some(), clash, "{names:?}");
        }
    }

    #[test]
    fn the_temporary_folder_is_asked_by_looking() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let place = folder.path().join("Name");
        fs::create_dir(&place)?;
        let same = fs::symlink_metadata(folder.path().join("nAME")).is_ok();
        assert_eq!(ignores_case(&place), same);
        Ok(())
    }
}
