//! Bundles that carry a run from one clone of a repository to another.
//!
//! A bundle of ours has one ref. Its commit has the records of the run as files and the run's commits as parents, so that git's
//! own format carries both, with its checks. Commits that a remote has are left out: every clone has them.
//!
//! A bundle may come from anybody. It is unpacked into a git directory of its own and looked at there; nothing in it can run,
//! and only the commits that were asked for reach the user's store.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::ObjectId;
use super::files;
use super::repo::{Repo, answered};
use super::runner::{self, GitCommand};
use super::side::{self, Layout};

/// The one ref of a bundle.
const REFERENCE: &str = "refs/archeflow/run";
const DEADLINE: Duration = Duration::from_secs(600);
/// Of the lines before the pack.
const LONGEST_HEADER: u64 = 1 << 20;
/// In bytes, of a bundle that is read.
const LARGEST: u64 = 8 << 30;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Git(#[from] runner::Error),
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{} is not a file that `archeflow export run` wrote: {why}", path.display())]
    NotOurs { path: PathBuf, why: String },
    #[error("{} builds on commits that are not here: {}", path.display(), commits.join(", "))]
    NotFetched { path: PathBuf, commits: Vec<String> },
    #[error("{} is damaged: {why}", path.display())]
    Damaged { path: PathBuf, why: String },
}

/// A file of a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleRecord {
    pub path: String,
    pub bytes: u64,
    oid: ObjectId,
}

/// A git directory in which a bundle is made or looked at; removed with everything in it when dropped.
pub struct BundleStore<'a> {
    repo: &'a Repo,
    dir: PathBuf,
}

impl Drop for BundleStore<'_> {
    fn drop(&mut self) {
        // What is left is removed by the next one.
        let _ = files::remove(&self.dir);
    }
}

impl BundleStore<'_> {
    /// Makes the directory anew. One process at a time may use it.
    pub fn lay_out<'a>(repo: &'a Repo, dir: &Path) -> Result<BundleStore<'a>, Error> {
        let io = |source| Error::Io { path: dir.to_owned(), source };
        files::remove(dir).map_err(io)?;
        let layout = Layout {
            bare: true,
            format: &repo.format,
            borrows: &[&repo.objects],
            head: "ref: refs/heads/none",
            config: "",
            exclude: b"",
            shallow: None,
        };
        side::lay_out(dir, &layout).map_err(io)?;
        Ok(BundleStore { repo, dir: dir.to_owned() })
    }

    /// For files that are put together before they are packed.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    fn git(&self) -> Result<GitCommand, runner::Error> {
        Ok(self.repo.shallow(GitCommand::new(&self.dir)?.scratch()).deadline(DEADLINE))
    }

    /// Writes a bundle of these files, each with its name in the bundle, and these commits. The file appears when it is
    /// whole.
    pub fn pack(&self, records: &[(String, PathBuf)], tips: &[ObjectId], into: &Path) -> Result<(), Error> {
        let tree = self.tree(records)?;
        let mut git = self.git()?.args(["commit-tree", tree.as_str()]);
        for tip in tips {
            git = git.args(["-p", tip.as_str()]);
        }
        let git = git.input("A run of archeflow\n");
        let git = git.env("GIT_AUTHOR_DATE", "@0 +0000").env("GIT_COMMITTER_DATE", "@0 +0000");
        let commit = answered(&["commit-tree"], &git.done()?)?;
        self.git()?.args(["update-ref", REFERENCE, commit.as_str()]).done()?;
        let mut revisions = format!("{REFERENCE}\n");
        for known in self.on_remotes()? {
            revisions.push_str(&format!("^{known}\n"));
        }
        self.git()?.args(["bundle", "create", "-q"]).arg(into).arg("--stdin").input(revisions).done()?;
        Ok(())
    }

    fn tree(&self, records: &[(String, PathBuf)]) -> Result<ObjectId, Error> {
        let mut paths = Vec::new();
        for (_, file) in records {
            paths.extend_from_slice(crate::platform::files::bytes(file));
            paths.push(b'\n');
        }
        let hashed = self.git()?.args(["hash-object", "-w", "--no-filters", "--stdin-paths"]).input(paths);
        let hashed = hashed.done()?;
        let names: Vec<&[u8]> = hashed.line().split(|byte| *byte == b'\n').collect();
        let mut lines = Vec::new();
        for ((path, _), name) in records.iter().zip(names) {
            let oid = ObjectId::parse(name).map_err(|error| runner::Error::Unexpected {
                what: "hash-object".to_owned(),
                answer: error.to_string(),
            })?;
            lines.extend_from_slice(format!("100644 {oid}\t{path}\0").as_bytes());
        }
        self.git()?.args(["update-index", "--add", "-z", "--index-info"]).input(lines).done()?;
        Ok(answered(&["write-tree"], &self.git()?.arg("write-tree").done()?)?)
    }

    fn on_remotes(&self) -> Result<Vec<ObjectId>, runner::Error> {
        let output =
            self.repo.refs()?.args(["for-each-ref", "--format=%(objectname)", "refs/remotes"]).done()?;
        let mut known: Vec<ObjectId> = output
            .stdout
            .split(|byte| *byte == b'\n')
            .filter_map(|line| ObjectId::parse(line).ok())
            .collect();
        known.sort();
        known.dedup();
        Ok(known)
    }

    /// Unpacks a bundle into the directory, and gives the commit of its ref.
    pub fn unpack(&self, path: &Path) -> Result<ObjectId, Error> {
        let io = |source| Error::Io { path: path.to_owned(), source };
        let file = File::open(path).map_err(io)?;
        if !file.metadata().map_err(io)?.is_file() {
            return Err(Error::NotOurs { path: path.to_owned(), why: "it is not a regular file".to_owned() });
        }
        let mut reader = BufReader::new(file);
        let header = Header::read(&mut reader, &self.repo.format)
            .map_err(io)?
            .map_err(|why| Error::NotOurs { path: path.to_owned(), why })?;
        let mut missing = Vec::new();
        for commit in &header.needs {
            if !self.repo.has_commit(commit)? {
                missing.push(commit.to_string());
            }
        }
        if !missing.is_empty() {
            return Err(Error::NotFetched { path: path.to_owned(), commits: missing });
        }
        let mut file = reader.into_inner();
        file.seek(SeekFrom::Start(header.bytes)).map_err(io)?;
        let size = format!("--max-input-size={LARGEST}");
        let damaged = |error: runner::Error| match matches!(error, runner::Error::Failed { .. }) {
            true => Error::Damaged { path: path.to_owned(), why: error.to_string() },
            false => error.into(),
        };
        let unpack = self.git()?.args(["index-pack", "--stdin", "--fix-thin", "--strict", &size]);
        unpack.input_file(file).done().map_err(damaged)?;
        let mut walk = format!("{}\n", header.commit);
        for known in &header.needs {
            walk.push_str(&format!("^{known}\n"));
        }
        let walked = self.git()?.args(["rev-list", "--objects", "--quiet", "--stdin"]).input(walk);
        walked.done().map_err(damaged)?;
        Ok(header.commit)
    }

    /// The files of a bundle. Nothing but plain files is accepted.
    pub fn records(&self, commit: &ObjectId) -> Result<Result<Vec<BundleRecord>, String>, Error> {
        let listed =
            self.git()?.args(["ls-tree", "-r", "-l", "-z", "--full-tree", commit.as_str()]).done()?;
        let entries = listed.stdout.split(|byte| *byte == 0).filter(|entry| !entry.is_empty());
        Ok(entries.map(record).collect())
    }

    /// The bytes of one file. Its size was seen before.
    pub fn bytes(&self, record: &BundleRecord) -> Result<Vec<u8>, Error> {
        Ok(self.git()?.args(["cat-file", "blob", record.oid.as_str()]).done()?.stdout)
    }

    pub fn has_commit(&self, commit: &ObjectId) -> Result<bool, Error> {
        let object = format!("{commit}^{{commit}}");
        Ok(self.git()?.args(["cat-file", "-e", &object]).run()?.status.success())
    }

    /// Copies what these commits need and the user's store lacks.
    pub fn send(&self, commits: &[ObjectId]) -> Result<(), Error> {
        let wanted: String = commits.iter().map(|commit| format!("{commit}\n")).collect();
        let args = ["pack-objects", "--revs", "--local", "--stdout", "-q", "--delta-base-offset"];
        let pack = self.git()?.args(args).input(wanted);
        pack.pipe_into(self.repo.side()?.args(["index-pack", "--stdin", "--strict"]))?;
        Ok(())
    }
}

fn record(entry: &[u8]) -> Result<BundleRecord, String> {
    let shown = || format!("'{}'", entry.escape_ascii());
    let text = std::str::from_utf8(entry).map_err(|_| format!("{} has a name that is no text", shown()))?;
    let (about, path) = text.split_once('\t').ok_or_else(|| format!("{} can't be read", shown()))?;
    let words: Vec<&str> = about.split(' ').filter(|word| !word.is_empty()).collect();
    let &["100644", "blob", oid, size] = &words[..] else {
        return Err(format!("{} is not a plain file", shown()));
    };
    let oid = ObjectId::parse(oid.as_bytes()).map_err(|error| error.to_string())?;
    let bytes = size.parse().map_err(|_| format!("{} has no size", shown()))?;
    Ok(BundleRecord { path: path.to_owned(), bytes, oid })
}

/// What a bundle says before its pack.
struct Header {
    /// Commits that have to be there.
    needs: Vec<ObjectId>,
    commit: ObjectId,
    /// Where the pack begins.
    bytes: u64,
}

impl Header {
    fn read(reader: &mut impl BufRead, format: &str) -> io::Result<Result<Header, String>> {
        let (mut needs, mut commit, mut bytes, mut number) = (Vec::new(), None, 0u64, 0);
        loop {
            let mut line = Vec::new();
            let left = LONGEST_HEADER.saturating_sub(bytes);
            bytes += reader.by_ref().take(left).read_until(b'\n', &mut line)? as u64;
            let Some(text) = line.strip_suffix(b"\n") else {
                return Ok(Err("its first lines are not those of a git bundle".to_owned()));
            };
            number += 1;
            let text = String::from_utf8_lossy(text);
            match (number, text.as_ref()) {
                (1, "# v2 git bundle" | "# v3 git bundle") => {}
                (1, _) => return Ok(Err("it is not a git bundle".to_owned())),
                (_, "") => break,
                (_, line) if line.starts_with('@') => match line.strip_prefix("@object-format=") {
                    Some(theirs) if theirs == format => {}
                    Some(theirs) => {
                        return Ok(Err(format!(
                            "its repository names objects by {theirs}, this one by {format}"
                        )));
                    }
                    None => return Ok(Err(format!("it needs '{}'", line.escape_debug()))),
                },
                (_, line) if line.starts_with('-') => {
                    let name = line[1..].split(' ').next().unwrap_or_default();
                    match ObjectId::parse(name.as_bytes()) {
                        Ok(oid) => needs.push(oid),
                        Err(error) => return Ok(Err(error.to_string())),
                    }
                }
                (_, line) => match line.split_once(' ') {
                    Some((oid, REFERENCE)) if commit.is_none() => match ObjectId::parse(oid.as_bytes()) {
                        Ok(oid) => commit = Some(oid),
                        Err(error) => return Ok(Err(error.to_string())),
                    },
                    _ => return Ok(Err(format!("it has a ref that no run has: '{}'", line.escape_debug()))),
                },
            }
        }
        Ok(commit.map(|commit| Header { needs, commit, bytes }).ok_or_else(|| "it has no run".to_owned()))
    }
}
