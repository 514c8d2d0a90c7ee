//! Refs that a repository keeps as files: one each, or many in `packed-refs`. A reftable is git's matter.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use gix_object::bstr::BStr;

use super::{AskGit, Native, ask};
use crate::git::runner::WRITER;
use crate::git::user_config::LoggedRefs;
use crate::git::{ObjectId, files};
use crate::hands;
use crate::platform::table::Process;
use crate::platform::{files as os, process};

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

    /// Moves refs of our own in one step, as git does it: all are locked, compared with what they were, and replaced. They
    /// are on disk afterwards. What is not as expected is git's matter, and nothing has changed then.
    pub(in crate::git) fn change(&self, changes: &[RefChange<'_>], log: &RefLog<'_>) -> Native<()> {
        for change in changes {
            self.check_place(change.name)?;
        }
        let mut locks = Vec::new();
        let temporary =
            changes.iter().map(|change| Temporary::write(&self.common_dir.join(change.name), change));
        let temporary = temporary.collect::<io::Result<Vec<_>>>().map_err(ask)?;
        sync(&temporary).map_err(ask)?;
        for (change, temporary) in changes.iter().zip(&temporary) {
            locks.push(Lock::take(self.common_dir, change.name, &temporary.0).map_err(ask)?);
        }
        for change in changes {
            if self.find(change.name)?.as_ref() != change.old {
                return Err(AskGit);
            }
        }
        for change in changes {
            log.add(self.common_dir, change).map_err(ask)?;
        }
        for (change, lock) in changes.iter().zip(locks) {
            lock.release_as(&self.common_dir.join(change.name)).map_err(ask)?;
        }
        Ok(())
    }

    /// Makes refs that only we make and that are not there yet, each for itself. No lock is needed for that: a ref appears
    /// whole under its name, and not at all if the name is taken. A process that is killed meanwhile leaves a file in the
    /// git directory, which the next call removes, and nothing among the refs.
    pub(in crate::git) fn create(&self, new: &[RefChange<'_>], log: &RefLog<'_>) -> Native<()> {
        remove_temporary_files(self.common_dir);
        for change in new {
            self.check_place(change.name)?;
            let lock = self.common_dir.join(format!("{}.lock", change.name));
            let is_locked = files::exists(&lock) && !remove_left_over(&lock);
            if is_locked || self.find(change.name)?.is_some() {
                return Err(AskGit);
            }
        }
        let temporary = new.iter().map(|change| Temporary::write(&self.common_dir.join("new-ref"), change));
        let temporary = temporary.collect::<io::Result<Vec<_>>>().map_err(ask)?;
        sync(&temporary).map_err(ask)?;
        for (change, temporary) in new.iter().zip(&temporary) {
            log.add(self.common_dir, change).map_err(ask)?;
            let file = self.common_dir.join(change.name);
            fs::create_dir_all(file.parent().unwrap_or(self.common_dir)).map_err(ask)?;
            fs::hard_link(&temporary.0, &file).map_err(ask)?;
        }
        Ok(())
    }

    /// A ref can't be where another one has a folder, nor below another one.
    fn check_place(&self, name: &str) -> Native<()> {
        let is_ours = name.starts_with("refs/heads/archeflow/") || name.starts_with("refs/archeflow/");
        let mut above = name.match_indices('/').map(|(at, _)| &name[..at]).skip(2);
        let is_free = is_ours
            && is_ref_name(name)
            && above.all(|folder| matches!(self.find(folder), Ok(None)))
            && !self.any_below(&format!("{name}/"))?;
        if is_free { Ok(()) } else { Err(AskGit) }
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

/// A ref and where it is to move to.
#[derive(Debug, Clone, Copy)]
pub(in crate::git) struct RefChange<'a> {
    pub(in crate::git) name: &'a str,
    pub(in crate::git) new: &'a ObjectId,
    /// What it has to be before; `None` if there has to be no such ref.
    pub(in crate::git) old: Option<&'a ObjectId>,
}

/// What is written into the logs of refs.
#[derive(Debug, Clone, Copy)]
pub(in crate::git) struct RefLog<'a> {
    pub(in crate::git) which: LoggedRefs,
    pub(in crate::git) message: &'a str,
}

impl RefLog<'_> {
    fn add(&self, common_dir: &Path, change: &RefChange<'_>) -> io::Result<()> {
        let file = common_dir.join("logs").join(change.name);
        let wanted = match self.which {
            LoggedRefs::Known => false,
            LoggedRefs::Branches => change.name.starts_with("refs/heads/"),
            LoggedRefs::All => true,
        };
        if !wanted && !files::exists(&file) {
            return Ok(());
        }
        fs::create_dir_all(file.parent().unwrap_or(common_dir))?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_err(io::Error::other)?.as_secs();
        let old = change.old.cloned().unwrap_or_else(|| change.new.zero_like());
        let line = format!("{old} {} {WRITER} {now} +0000\t{}\n", change.new, self.message);
        let mut options = fs::File::options();
        let mut log = os::without_links(options.append(true).create(true)).open(&file)?;
        io::Write::write_all(&mut log, line.as_bytes())
    }
}

/// A file with what a ref will hold.
struct Temporary(PathBuf);

impl Temporary {
    /// In the same folder as `neighbour`, which is made.
    fn write(neighbour: &Path, change: &RefChange<'_>) -> io::Result<Temporary> {
        fs::create_dir_all(neighbour.parent().unwrap_or(neighbour))?;
        let temporary = Temporary(files::beside(neighbour));
        files::write_new(&temporary.0, format!("{}\n", change.new).as_bytes(), 0o666)?;
        Ok(temporary)
    }
}

fn sync(temporary: &[Temporary]) -> io::Result<()> {
    hands::sync_together(temporary.iter().map(|one| fs::File::open(&one.0)).collect::<io::Result<Vec<_>>>()?)
}

/// Removes temporary files of processes of ours that are gone.
fn remove_temporary_files(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Some(writer) = entry.file_name().to_str().and_then(files::writer_of) else { continue };
        if entry.metadata().is_ok_and(|meta| meta.is_file() && is_gone(writer, &meta)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Git's lock on a ref, which holds what the ref will be. It is a second name of a [`Temporary`]: a lock that a killed
/// process of ours left behind is known by that.
struct Lock(Option<PathBuf>);

impl Lock {
    fn take(common_dir: &Path, name: &str, temporary: &Path) -> io::Result<Lock> {
        let lock = common_dir.join(format!("{name}.lock"));
        match fs::hard_link(temporary, &lock) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && remove_left_over(&lock) => {
                fs::hard_link(temporary, &lock)?;
            }
            other => other?,
        }
        Ok(Lock(Some(lock)))
    }

    fn release_as(mut self, file: &Path) -> io::Result<()> {
        let lock = self.0.take_if(|lock| fs::rename(lock, file).is_ok());
        if lock.is_some() { Ok(()) } else { Err(io::Error::other("a ref could not be replaced")) }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if let Some(lock) = &self.0 {
            let _ = fs::remove_file(lock);
        }
    }
}

/// Removes a lock of ours whose process is gone, with the file that shows whose it was.
fn remove_left_over(lock: &Path) -> bool {
    let (Ok(held), Some(folder)) = (fs::symlink_metadata(lock), lock.parent()) else { return false };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_left = name.to_str().and_then(files::writer_of).is_some_and(|writer| is_gone(writer, &held));
        let is_same = entry.metadata().is_ok_and(|meta| os::identity(&meta) == os::identity(&held));
        if is_left && is_same {
            return fs::remove_file(lock).and_then(|()| fs::remove_file(entry.path())).is_ok();
        }
    }
    false
}

/// Whether the process with this number that wrote a file is gone. In a container all may have the same number.
fn is_gone(writer: u32, file: &fs::Metadata) -> bool {
    if writer == std::process::id() {
        return file.modified().is_ok_and(|written| written < files::began());
    }
    process::numbered(writer).and_then(Process::read).is_none()
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

/// Whether anything but folders is in a folder.
fn has_file(folder: &Path) -> Native<bool> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(false);
        }
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
