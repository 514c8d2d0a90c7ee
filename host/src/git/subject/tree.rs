//! What is not committed yet: the index, and the working tree.
//!
//! Both begin with a copy of the user's index, which knows what the files were like when git last looked: whatever has
//! not been touched since is not read. Links are never followed, submodules and nested repositories never entered, and
//! nothing but plain files is opened.

use std::collections::BTreeSet;
use std::fs::{self, File, FileTimes};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::store::SubjectStore;
use super::{Error, ResolvedSubject, checked_out, names};
use crate::git::change::quote_path;
use crate::git::runner::{self, GitCommand};
use crate::git::workspace::CollectLimits;
use crate::git::{ObjectId, Repo, files};
use crate::platform::files::check_readable;

/// The user may be at work in the tree while we look.
const TRIES: usize = 3;

const DEADLINE: Duration = Duration::from_secs(600);

pub(super) fn staged(store: &SubjectStore<'_>) -> Result<ResolvedSubject, Error> {
    let copy = Copy::of_index(store)?;
    let branch = checked_out(store.repo)?;
    let base = names::head(store)?;
    Ok(ResolvedSubject {
        commit: store.commit(&copy.store.write_tree()?, &base)?,
        base,
        title: format!("Staged changes on {branch}"),
        key: format!("staged@{branch}"),
        said: String::new(),
        notes: Vec::new(),
        nothing: "nothing is staged".to_owned(),
    })
}

pub(super) fn working(store: &SubjectStore<'_>) -> Result<ResolvedSubject, Error> {
    let copy = Copy::of_index(store)?;
    let branch = checked_out(store.repo)?;
    let base = names::head(store)?;
    let mut notes = BTreeSet::new();
    let tree = copy.taken_in(&mut notes)?;
    Ok(ResolvedSubject {
        commit: store.commit(&tree, &base)?,
        base,
        title: format!("Working tree on {branch}"),
        key: format!("working-tree@{branch}"),
        said: String::new(),
        notes: notes.into_iter().collect(),
        nothing: "the working tree is as it was committed".to_owned(),
    })
}

/// A copy of the user's index, with the user's tree beside it.
struct Copy<'a> {
    store: &'a SubjectStore<'a>,
    tree: &'a Path,
    /// How the user's git turns files into content; none of it names a program.
    settings: Vec<String>,
}

/// Paths whose content differs from the index.
#[derive(Default)]
struct Differences {
    gone: Vec<Vec<u8>>,
    /// Changed or new.
    there: Vec<Vec<u8>>,
}

impl<'a> Copy<'a> {
    fn of_index(store: &'a SubjectStore<'a>) -> Result<Copy<'a>, Error> {
        let tree = store.repo.work_tree().ok_or(Error::NoWorkingTree)?;
        let copy = Copy { store, tree, settings: settings(store, tree)? };
        copy.copy_files().map_err(|source| store.io(source))?;
        let unmerged = ["ls-files", "-u", "-z"];
        let mut listing = copy.git()?.args(unmerged).run()?;
        if !listing.status.success() {
            copy.rebuild()?;
            listing = copy.git()?.args(unmerged).done()?;
        }
        let mut paths: Vec<String> = split(&listing.stdout).filter_map(after_tab).map(quote_path).collect();
        paths.dedup();
        if paths.is_empty() { Ok(copy) } else { Err(Error::Unmerged { paths }) }
    }

    /// A command on the copy. Paths are the user's, so what the user keeps at home counts too.
    fn git(&self) -> Result<GitCommand, runner::Error> {
        let mut git = self.store.git()?.work_tree(self.tree).refreshing().deadline(DEADLINE);
        for name in ["HOME", "XDG_CONFIG_HOME"] {
            if let Some(value) = self.store.repo.env.get(name) {
                git = git.env(name, value);
            }
        }
        Ok(self.settings.iter().fold(git, |git, setting| git.setting(setting)))
    }

    /// The index with all it refers to: the shared part of a split one, and what a sparse one leaves out.
    fn copy_files(&self) -> io::Result<()> {
        let (theirs, ours) = (&self.store.repo.git_dir, &self.store.dir);
        copy_with_time(&index(self.store.repo), &ours.join("index"))?;
        copy_with_time(&theirs.join("info/sparse-checkout"), &ours.join("info/sparse-checkout"))?;
        for entry in fs::read_dir(theirs)?.flatten() {
            if entry.file_name().to_string_lossy().starts_with("sharedindex.") {
                copy_with_time(&entry.path(), &ours.join(entry.file_name()))?;
            }
        }
        Ok(())
    }

    /// From the entries alone, for an index that git reads only in its own place.
    fn rebuild(&self) -> Result<(), Error> {
        files::remove(&self.store.dir.join("index")).map_err(|source| self.store.io(source))?;
        let git = GitCommand::new(&self.store.repo.git_dir)?
            .work_tree(self.tree)
            .index_file(&index(self.store.repo));
        let listing = git.args(["ls-files", "-s", "-v", "-z"]).done()?.stdout;
        let entries: Vec<u8> = split(&listing).flat_map(|entry| [&entry[2..], b"\0"].concat()).collect();
        self.git()?.args(["update-index", "-z", "--index-info"]).input(entries).done()?;
        let marked = |wanted: fn(u8) -> bool| -> Vec<&[u8]> {
            split(&listing).filter(|entry| wanted(entry[0])).filter_map(after_tab).collect()
        };
        self.update(&["--skip-worktree"], &marked(|letter| letter.eq_ignore_ascii_case(&b'S')))?;
        self.update(&["--assume-unchanged"], &marked(|letter| letter.is_ascii_lowercase()))
    }

    /// Brings the copy up to the content of the tree, and writes that.
    fn taken_in(&self, notes: &mut BTreeSet<String>) -> Result<ObjectId, Error> {
        let mut tries = 0;
        loop {
            tries += 1;
            let found = self.differences(notes)?;
            match self.take_in(&found) {
                Ok(()) => return Ok(self.store.write_tree()?),
                // A file may disappear between two looks; the next look decides.
                Err(_) if tries < TRIES => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn take_in(&self, found: &Differences) -> Result<(), Error> {
        self.update(&["--force-remove"], &found.gone)?;
        self.update(&["--add", "--replace", "--remove"], &found.there)
    }

    fn update<P: AsRef<[u8]>>(&self, how: &[&str], paths: &[P]) -> Result<(), Error> {
        if !paths.is_empty() {
            // Everything is large, hence goes into one pack, as it comes: a file for each of many thousand objects
            // takes three times as long, and as long again to remove.
            let git = self.git()?.setting("core.bigFileThreshold=1").arg("update-index");
            git.args(how).args(["-z", "--stdin"]).input(lines(paths)).done()?;
        }
        Ok(())
    }

    fn differences(&self, notes: &mut BTreeSet<String>) -> Result<Differences, Error> {
        let mut found = Differences::default();
        let mut touched = Vec::new();
        for (letter, path) in self.touched("index")? {
            if letter == b'D' { found.gone.push(path) } else { touched.push(path) }
        }
        for path in self.without_filtered(touched, notes)? {
            if self.look(&path, notes)? { found.there.push(path) } else { found.gone.push(path) }
        }
        found.there.extend(self.untracked(notes)?);
        Ok(found)
    }

    /// The tracked paths that may differ from the index, each with git's letter. Submodules stay as the index has them.
    fn touched(&self, index: &str) -> Result<Vec<(u8, Vec<u8>)>, Error> {
        let args = ["diff-files", "-z", "--name-status", "--no-renames", "--ignore-submodules=all"];
        let output = self.git()?.index_file(&self.store.dir.join(index)).args(args).done()?;
        let mut fields = split(&output.stdout);
        let mut touched = Vec::new();
        while let (Some(letter), Some(path)) = (fields.next(), fields.next()) {
            touched.push((letter[0], path.to_vec()));
        }
        Ok(touched)
    }

    /// Leaves out files that a program would have to turn into content, as long as they are untouched: compared as
    /// they are on disk, they would differ although nothing was changed.
    fn without_filtered(
        &self,
        touched: Vec<Vec<u8>>,
        notes: &mut BTreeSet<String>,
    ) -> Result<Vec<Vec<u8>>, Error> {
        let filtered = self.filtered(&touched)?;
        if filtered.is_empty() {
            return Ok(touched);
        }
        let io = |source| self.store.io(source);
        // To a copy that is newer than all files, git trusts what it knows of them.
        let trusting = self.store.dir.join("trusting");
        fs::copy(self.store.dir.join("index"), &trusting).map_err(io)?;
        let later = FileTimes::new().set_modified(SystemTime::now() + Duration::from_secs(3600));
        File::options().write(true).open(&trusting).and_then(|copy| copy.set_times(later)).map_err(io)?;
        let really: BTreeSet<Vec<u8>> = self.touched("trusting")?.into_iter().map(|(_, path)| path).collect();
        for path in filtered.intersection(&really) {
            notes.insert(format!(
                "{} goes through a filter, which is not run here: it is compared as it is on disk",
                quote_path(path)
            ));
        }
        Ok(touched.into_iter().filter(|path| !filtered.contains(path) || really.contains(path)).collect())
    }

    fn filtered(&self, paths: &[Vec<u8>]) -> Result<BTreeSet<Vec<u8>>, Error> {
        if paths.is_empty() {
            return Ok(BTreeSet::new());
        }
        let io = |source| self.store.io(source);
        self.store.attributes(false).map_err(io)?;
        let args = ["check-attr", "-z", "--stdin", "filter", "working-tree-encoding"];
        let answer = self.git()?.args(args).input(lines(paths)).done();
        self.store.attributes(true).map_err(io)?;
        let answer = answer?;
        let mut fields = answer.stdout.split(|byte| *byte == 0);
        let mut filtered = BTreeSet::new();
        while let (Some(path), Some(_), Some(value)) = (fields.next(), fields.next(), fields.next()) {
            if !matches!(value, b"unspecified" | b"unset" | b"set") {
                filtered.insert(path.to_vec());
            }
        }
        Ok(filtered)
    }

    /// Whether a path has content to take in. What can't be determined is an error, what has none (a pipe, a socket)
    /// counts as gone.
    fn look(&self, path: &[u8], notes: &mut BTreeSet<String>) -> Result<bool, Error> {
        let file = self.tree.join(files::path(path));
        let unreadable = |source| Error::Unreadable { path: quote_path(path), source };
        let meta = match fs::symlink_metadata(&file) {
            Ok(meta) => meta,
            Err(error) if gone(&error) => return Ok(false),
            Err(error) => return Err(unreadable(error)),
        };
        if meta.is_file() {
            return match check_readable(&file) {
                Ok(()) => Ok(true),
                Err(error) if gone(&error) => Ok(false),
                Err(error) => Err(unreadable(error)),
            };
        }
        if !meta.is_symlink() && !meta.is_dir() {
            notes.insert(format!("{} is neither a file nor a link, and is left out", quote_path(path)));
        }
        Ok(meta.is_symlink())
    }

    fn untracked(&self, notes: &mut BTreeSet<String>) -> Result<Vec<Vec<u8>>, Error> {
        let output = self.git()?.args(["ls-files", "-o", "-z", "--exclude-standard"]).done()?;
        for line in String::from_utf8_lossy(&output.stderr).lines() {
            if let Some((_, what)) = line.split_once("could not open directory ") {
                notes.insert(format!("a directory could not be looked into: {what}"));
            }
        }
        let mut new = Vec::new();
        let mut bytes = 0;
        for path in split(&output.stdout).filter(|path| !path.starts_with(b".archeflow/")) {
            if let Some(nested) = path.strip_suffix(b"/") {
                notes.insert(format!("{} is a repository of its own, and is left out", quote_path(nested)));
            } else if self.look(path, notes)? {
                let meta = fs::symlink_metadata(self.tree.join(files::path(path)));
                bytes += meta.map_or(0, |meta| meta.len());
                new.push(path.to_vec());
            }
        }
        let limits = CollectLimits::default();
        if new.len() > limits.files || bytes > limits.bytes {
            return Err(Error::TooMuch { files: new.len(), bytes });
        }
        Ok(new)
    }
}

/// The user's index. To a hook git may name another one beside it, with what is about to be committed.
fn index(repo: &Repo) -> PathBuf {
    let usual = repo.git_dir.join("index");
    let Some((named, tree)) = repo.env.get("GIT_INDEX_FILE").zip(repo.work_tree()) else { return usual };
    let named = tree.join(named);
    let is_ours =
        named.parent().and_then(|dir| dir.canonicalize().ok()).is_some_and(|dir| dir == repo.git_dir);
    if is_ours { named } else { usual }
}

/// What decides how the user's files become content. Only plain words are taken over, and the place of a file with
/// attributes; neither can make git run anything.
fn settings(store: &SubjectStore<'_>, tree: &Path) -> Result<Vec<String>, runner::Error> {
    const WANTED: &str = r"^core\.(autocrlf|eol|filemode|symlinks|ignorecase|trustctime|checkstat|attributesfile|sparsecheckout|sparsecheckoutcone)$";
    let git = GitCommand::as_user(tree, &store.repo.env)?;
    let output = git.args(["config", "-z", "--get-regexp", WANTED]).run()?;
    let pairs = split(&output.stdout).filter_map(|pair| std::str::from_utf8(pair).ok());
    Ok(pairs.filter_map(|pair| setting(store, pair)).collect())
}

fn setting(store: &SubjectStore<'_>, pair: &str) -> Option<String> {
    let (name, value) = pair.split_once('\n').unwrap_or((pair, "true"));
    if name == "core.attributesfile" {
        let home = store.repo.env.get("HOME").and_then(|home| home.to_str());
        let place = match (value.strip_prefix("~/"), home) {
            (Some(rest), Some(home)) => format!("{home}/{rest}"),
            (Some(_), None) => return None,
            (None, _) => value.to_owned(),
        };
        return place.starts_with('/').then(|| format!("{name}={place}"));
    }
    let word = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_alphanumeric());
    word.then(|| format!("{name}={value}"))
}

/// With its time, by which git knows the files whose cached state it must not trust. What is not there is not copied.
fn copy_with_time(from: &Path, to: &Path) -> io::Result<()> {
    let mut source = match File::open(from) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let meta = source.metadata()?;
    if !meta.is_file() {
        return Err(io::Error::other(format!("{} is not a file", from.display())));
    }
    let mut copy = File::create(to)?;
    io::copy(&mut source, &mut copy)?;
    copy.set_times(FileTimes::new().set_modified(meta.modified()?))
}

fn gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn split(listing: &[u8]) -> impl Iterator<Item = &[u8]> {
    listing.split(|byte| *byte == 0).filter(|field| !field.is_empty())
}

fn after_tab(entry: &[u8]) -> Option<&[u8]> {
    entry.splitn(2, |byte| *byte == b'\t').nth(1)
}

/// Paths as `-z --stdin` wants them.
fn lines<P: AsRef<[u8]>>(paths: &[P]) -> Vec<u8> {
    paths.iter().flat_map(|path| [path.as_ref(), b"\0"]).collect::<Vec<_>>().concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::GitEnv;

    /// An index that can be read only in its own place is rare; its entries and marks must come over all the same.
    #[test]
    fn an_index_from_its_entries_alone() -> Result<(), Box<dyn std::error::Error>> {
        let dir = tempfile::tempdir()?;
        let (root, env) = (dir.path().join("repo"), GitEnv::default());
        fs::create_dir(&root)?;
        let git = |args: &[&str]| GitCommand::as_user(&root, &env)?.args(args).done();
        git(&["init", "-q"])?;
        for name in ["changed", "skipped", "trusted", "line\nbreak"] {
            fs::write(root.join(name), "1\n")?;
        }
        git(&["add", "-A"])?;
        git(&["update-index", "--skip-worktree", "skipped"])?;
        git(&["update-index", "--assume-unchanged", "trusted"])?;
        fs::remove_file(root.join("skipped"))?;
        fs::write(root.join("trusted"), "22\n")?;
        fs::write(root.join("changed"), "22\n")?;
        let repo = Repo::open(&root, &dir.path().join("state"), &env)?;
        let store = SubjectStore::lay_out(&repo, &dir.path().join("store"))?;
        let copy = Copy { store: &store, tree: &root, settings: Vec::new() };
        fs::write(store.dir.join("index"), "nonsense")?;
        copy.rebuild()?;
        let tree = copy.taken_in(&mut BTreeSet::new())?;
        let listing = store.git()?.args(["ls-tree", "-r", "-l", tree.as_str()]).done()?;
        let listing = String::from_utf8_lossy(&listing.stdout).into_owned();
        let sizes: Vec<_> = listing.lines().filter_map(|line| line.split_whitespace().nth(3)).collect();
        assert_eq!(sizes, ["3", "2", "2", "2"], "{listing}");
        Ok(())
    }
}
