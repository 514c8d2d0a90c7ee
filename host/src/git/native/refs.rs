//! Refs that a repository keeps as files: one each, or many in `packed-refs`. A reftable is git's matter.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use gix_object::bstr::BStr;

use super::{AskGit, Native, ask};
use crate::git::{ObjectId, files};
use crate::platform::files as os;

/// Larger files are no refs.
const LONGEST: u64 = 4096;
const LONGEST_LIST: u64 = 1024 * 1024;

/// The refs of a repository, read anew each time.
#[derive(Debug)]
pub(in crate::git) struct Refs<'a> {
    common_dir: &'a Path,
}

/// Whether git takes this for the full name of a ref.
pub(in crate::git) fn is_ref_name(name: &str) -> bool {
    gix_validate::reference::name(BStr::new(name)).is_ok()
}

impl<'a> Refs<'a> {
    pub(in crate::git) fn of(common_dir: &'a Path) -> Native<Refs<'a>> {
        let plain =
            !files::exists(&common_dir.join("reftable")) && files::is_real_dir(&common_dir.join("refs"));
        if plain { Ok(Refs { common_dir }) } else { Err(AskGit) }
    }

    /// What a full ref name points at; `None` if there is no such ref.
    pub(in crate::git) fn find(&self, name: &str) -> Native<Option<ObjectId>> {
        if !is_ref_name(name) || !name.starts_with("refs/") {
            return Err(AskGit);
        }
        match read(&self.common_dir.join(name))? {
            Some(bytes) => ObjectId::parse(bytes.trim_ascii_end()).map(Some).map_err(ask),
            None => self.packed(name),
        }
    }

    /// The list of packed refs; empty if there is none. Git finds its way in a long one.
    fn packed_refs(&self) -> Native<Vec<u8>> {
        let file = self.common_dir.join("packed-refs");
        match fs::symlink_metadata(&file) {
            Ok(meta) if meta.is_file() && meta.len() <= LONGEST_LIST => fs::read(&file).map_err(ask),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Ok(_) | Err(_) => Err(AskGit),
        }
    }

    fn packed(&self, name: &str) -> Native<Option<ObjectId>> {
        for line in self.packed_refs()?.split(|byte| *byte == b'\n') {
            let Some(space) = line.iter().position(|byte| *byte == b' ') else { continue };
            if &line[space + 1..] == name.as_bytes() {
                return ObjectId::parse(&line[..space]).map(Some).map_err(ask);
            }
        }
        Ok(None)
    }

    /// All refs, with what they point at.
    pub(in crate::git) fn all(&self) -> Native<BTreeMap<String, ObjectId>> {
        let mut all = BTreeMap::new();
        for line in self.packed_refs()?.split(|byte| *byte == b'\n') {
            let Some(space) = line.iter().position(|byte| *byte == b' ').filter(|_| !line.starts_with(b"#"))
            else {
                continue;
            };
            let name = std::str::from_utf8(&line[space + 1..]).map_err(ask)?;
            all.insert(name.to_owned(), ObjectId::parse(&line[..space]).map_err(ask)?);
        }
        self.loose("refs", &mut all)?;
        Ok(all)
    }

    fn loose(&self, folder: &str, all: &mut BTreeMap<String, ObjectId>) -> Native<()> {
        for entry in fs::read_dir(self.common_dir.join(folder)).map_err(ask)? {
            let entry = entry.map_err(ask)?;
            let name = format!("{folder}/{}", entry.file_name().to_str().ok_or(AskGit)?);
            if entry.file_type().map_err(ask)?.is_dir() {
                self.loose(&name, all)?;
            } else if is_ref_name(&name) {
                let bytes = read(&entry.path())?.ok_or(AskGit)?;
                all.insert(name, ObjectId::parse(bytes.trim_ascii_end()).map_err(ask)?);
            }
        }
        Ok(())
    }

    /// Makes a ref below `refs/archeflow/keep/`, where git by default keeps no log, if there is none of that name. It is on disk
    /// afterwards.
    ///
    /// Nobody else makes refs there, so git's lock is not taken: one that this process left behind when it was killed
    /// would stay. A lock that is there is respected.
    pub(in crate::git) fn create(&self, name: &str, oid: &ObjectId) -> Native<()> {
        let in_the_way = name
            .match_indices('/')
            .map(|(at, _)| &name[..at])
            .skip(3)
            .any(|folder| !matches!(self.packed(folder), Ok(None)));
        let is_ours = name.starts_with("refs/archeflow/keep/") && is_ref_name(name);
        if !is_ours || in_the_way || self.any_below(&format!("{name}/"))? || self.packed(name)?.is_some() {
            return Err(AskGit);
        }
        let file = self.common_dir.join(name);
        let lock = self.common_dir.join(format!("{name}.lock"));
        let folder = file.parent().ok_or(AskGit)?;
        fs::create_dir_all(folder).map_err(ask)?;
        let temporary = files::beside(&file);
        let made = write_synced(&temporary, format!("{oid}\n").as_bytes()).and_then(|()| {
            if files::exists(&lock) {
                Err(io::ErrorKind::WouldBlock.into())
            } else {
                fs::hard_link(&temporary, &file)
            }
        });
        let _ = fs::remove_file(&temporary);
        made.map_err(ask)
    }

    /// Whether there is any ref whose name begins with this folder, such as `refs/replace/`.
    pub(in crate::git) fn any_below(&self, folder: &str) -> Native<bool> {
        let packed = self.packed_refs()?;
        let is_below = |line: &[u8]| {
            line.splitn(2, |byte| *byte == b' ')
                .nth(1)
                .is_some_and(|name| name.starts_with(folder.as_bytes()))
        };
        if packed.split(|byte| *byte == b'\n').any(|line| !line.starts_with(b"#") && is_below(line)) {
            return Ok(true);
        }
        has_file(&self.common_dir.join(folder.trim_end_matches('/')))
    }

    /// The branch that is checked out with this git directory, by its full name; `None` if HEAD is detached.
    pub(in crate::git) fn checked_out(&self, git_dir: &Path) -> Native<Option<String>> {
        let head = read(&git_dir.join("HEAD"));
        // A symbolic HEAD is what `read` refuses.
        if let Ok(Some(bytes)) = &head {
            return ObjectId::parse(bytes.trim_ascii_end()).map(|_| None).map_err(ask);
        }
        let text = files::read_beneath(git_dir, b"HEAD", LONGEST).map_err(ask)?.ok_or(AskGit)?;
        let name = text.strip_prefix(b"ref: ").ok_or(AskGit)?;
        let name = std::str::from_utf8(name.trim_ascii_end()).map_err(ask)?.to_owned();
        // A branch may stand for another one.
        let leads_on = matches!(read(&self.common_dir.join(&name)), Err(AskGit));
        if !is_ref_name(&name) || leads_on { Err(AskGit) } else { Ok(Some(name)) }
    }

    /// The git directories of linked working trees.
    pub(in crate::git) fn linked_trees(&self) -> Native<Vec<PathBuf>> {
        match fs::read_dir(self.common_dir.join("worktrees")) {
            Ok(entries) => Ok(entries.flatten().map(|entry| entry.path()).collect()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(_) => Err(AskGit),
        }
    }
}

/// The bytes of a ref that is a plain file and names an object; `None` if there is no file.
fn read(file: &Path) -> Native<Option<Vec<u8>>> {
    let meta = match fs::symlink_metadata(file) {
        Ok(meta) => meta,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(_) => return Err(AskGit),
    };
    if meta.is_dir() {
        return Ok(None);
    }
    if !meta.is_file() || meta.len() > LONGEST {
        return Err(AskGit);
    }
    let bytes = match fs::read(file) {
        Ok(bytes) => bytes,
        // Packed meanwhile.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(_) => return Err(AskGit),
    };
    if bytes.starts_with(b"ref:") { Err(AskGit) } else { Ok(Some(bytes)) }
}

fn write_synced(file: &Path, bytes: &[u8]) -> io::Result<()> {
    files::write_new(file, bytes, 0o666)?;
    fs::File::open(file)?.sync_all()
}

/// Whether anything but folders is in a folder.
fn has_file(folder: &Path) -> Native<bool> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(_) => return Err(AskGit),
    };
    for entry in entries {
        let entry = entry.map_err(ask)?;
        let name = entry.file_name();
        let is_lock = os::bytes(&name).ends_with(b".lock") || os::bytes(&name).starts_with(b".");
        if entry.file_type().map_err(ask)?.is_dir() {
            if has_file(&entry.path())? {
                return Ok(true);
            }
        } else if !is_lock {
            return Ok(true);
        }
    }
    Ok(false)
}
