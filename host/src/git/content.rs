//! Reading the files of one commit, for resolving what reviewers cite.

use std::collections::BTreeMap;
use std::io;

use super::change::LONG;
use super::native::{AskGit, Native, ObjectKind, Objects};
use super::repo::Repo;
use super::{ObjectId, runner};

const CAP: u64 = 10 * 1024 * 1024;

/// The files of one commit, read on demand and kept.
#[derive(Debug)]
pub struct CommitFiles<'a> {
    repo: &'a Repo,
    commit: ObjectId,
    cap: u64,
    known: BTreeMap<Vec<u8>, FileContent>,
}

#[derive(Debug)]
enum FileContent {
    Missing,
    TooLarge,
    Bytes(Vec<u8>),
}

impl<'a> CommitFiles<'a> {
    pub fn open(repo: &'a Repo, commit: &ObjectId) -> CommitFiles<'a> {
        CommitFiles { repo, commit: commit.clone(), cap: CAP, known: BTreeMap::new() }
    }

    /// Files larger than this are known to exist but have no lines.
    pub fn cap(self, cap: u64) -> CommitFiles<'a> {
        CommitFiles { cap, ..self }
    }

    pub fn exists(&mut self, path: &[u8]) -> Result<bool, runner::Error> {
        Ok(!matches!(self.find(path)?, FileContent::Missing))
    }

    /// The content of a file, unless it is missing or too large.
    pub fn bytes(&mut self, path: &[u8]) -> Result<Option<&[u8]>, runner::Error> {
        Ok(match self.find(path)? {
            FileContent::Missing | FileContent::TooLarge => None,
            FileContent::Bytes(bytes) => Some(bytes),
        })
    }

    pub fn line_count(&mut self, path: &[u8]) -> Result<Option<usize>, runner::Error> {
        Ok(self.bytes(path)?.map(|bytes| lines(bytes).count()))
    }

    /// Line `number`, counted from 1, without its newline.
    pub fn line(&mut self, path: &[u8], number: usize) -> Result<Option<Vec<u8>>, runner::Error> {
        let Some(before) = number.checked_sub(1) else { return Ok(None) };
        Ok(self.bytes(path)?.and_then(|bytes| lines(bytes).nth(before)).map(<[u8]>::to_vec))
    }

    fn find(&mut self, path: &[u8]) -> Result<&FileContent, runner::Error> {
        if !self.known.contains_key(path) {
            self.load(&[path])?;
        }
        Ok(self.known.get(path).unwrap_or(&FileContent::Missing))
    }

    /// Reads many files with two processes in all.
    pub fn load(&mut self, paths: &[&[u8]]) -> Result<(), runner::Error> {
        let mut blobs = Vec::new();
        for (path, answer) in paths.iter().zip(self.sizes(paths)?) {
            match answer {
                None => drop(self.known.insert(path.to_vec(), FileContent::Missing)),
                Some((_, size)) if size > self.cap => {
                    drop(self.known.insert(path.to_vec(), FileContent::TooLarge));
                }
                Some((oid, _)) => blobs.push((*path, oid)),
            }
        }
        let oids: Vec<&ObjectId> = blobs.iter().map(|(_, oid)| oid).collect();
        for ((path, _), bytes) in blobs.iter().zip(read_blobs(self.repo, &oids)?) {
            self.known.insert(path.to_vec(), FileContent::Bytes(bytes));
        }
        Ok(())
    }

    /// The object and size of each path that is a file.
    fn sizes(&self, paths: &[&[u8]]) -> Result<Vec<Option<(ObjectId, u64)>>, runner::Error> {
        if let Ok(found) = self.sizes_here(paths) {
            return Ok(found);
        }
        let names: Vec<Vec<u8>> = paths.iter().map(|path| self.object_name(path)).collect();
        let output = self
            .repo
            .side()?
            .args(["cat-file", "-z", "--batch-check=%(objecttype) %(objectname) %(objectsize)"])
            .input(names.iter().flat_map(|name| [name.as_slice(), b"\0"]).collect::<Vec<_>>().concat())
            .done()?;
        let mut rest = output.stdout.as_slice();
        Ok(names.iter().map(|name| next_size(&mut rest, name)).collect())
    }

    fn sizes_here(&self, paths: &[&[u8]]) -> Native<Vec<Option<(ObjectId, u64)>>> {
        let objects = self.repo.native()?;
        paths
            .iter()
            .map(|path| if is_odd(path) { Ok(None) } else { objects.file(&self.commit, path) })
            .collect()
    }

    /// A path that starts with a dot segment would be read relative to somewhere; no tree has such a name.
    fn object_name(&self, path: &[u8]) -> Vec<u8> {
        let path: &[u8] = if is_odd(path) { b".git" } else { path };
        [self.commit.as_str().as_bytes(), b":", path].concat()
    }
}

fn is_odd(path: &[u8]) -> bool {
    path.is_empty() || path.split(|byte| *byte == b'/').any(|part| matches!(part, b"" | b"." | b".."))
}

fn next_size(rest: &mut &[u8], name: &[u8]) -> Option<(ObjectId, u64)> {
    // A missing object is echoed with its name, which may itself hold newlines.
    if let Some(after) = rest.strip_prefix(name).and_then(|rest| rest.strip_prefix(b" missing\n")) {
        *rest = after;
        return None;
    }
    let end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
    let (line, after) = rest.split_at(end);
    *rest = after.get(1..).unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let mut words = line.split(' ');
    let blob = words.next()? == "blob";
    let oid = ObjectId::parse(words.next()?.as_bytes()).ok()?;
    let size = words.next()?.parse().ok()?;
    blob.then_some((oid, size))
}

/// The content of blobs, in the order asked for.
pub(crate) fn read_blobs(repo: &Repo, oids: &[&ObjectId]) -> Result<Vec<Vec<u8>>, runner::Error> {
    if oids.is_empty() {
        return Ok(Vec::new());
    }
    let read = |objects: &Objects| oids.iter().map(|oid| objects.read(oid, ObjectKind::Blob)).collect();
    if let Ok(all) = repo.native().and_then(read) {
        return Ok(all);
    }
    let input: String = oids.iter().map(|oid| format!("{oid}\n")).collect();
    let output = repo.side()?.args(["cat-file", "--batch"]).input(input).done()?;
    contents(&output.stdout, oids.len())
}

/// Passes on the content of blobs as it comes, in the order asked for: the number of the blob, and the next bytes of
/// it. An empty blob is not mentioned.
pub(crate) fn stream_blobs(
    repo: &Repo,
    oids: &[&ObjectId],
    take: &mut dyn FnMut(usize, &[u8]),
) -> Result<(), runner::Error> {
    if oids.is_empty() {
        return Ok(());
    }
    if repo.native().and_then(|objects| pass_on(objects, oids, take)).is_ok() {
        return Ok(());
    }
    let input: String = oids.iter().map(|oid| format!("{oid}\n")).collect();
    let mut reader = Batch::default();
    let git = repo.side()?.args(["cat-file", "--batch"]).input(input).deadline(LONG);
    git.stream(&mut |bytes| reader.feed(bytes, take))?;
    if reader.blob == oids.len() { Ok(()) } else { Err(unexpected(&reader.head)) }
}

/// Blobs that are read here one after the other; more of them are read by git while we work on what it sent.
const FEW_BYTES: u64 = 4 * 1024 * 1024;

/// Passes on blobs if there are few of them. Nothing was passed on when git has to be asked.
fn pass_on(objects: &Objects, oids: &[&ObjectId], take: &mut dyn FnMut(usize, &[u8])) -> Native<()> {
    let mut bytes = 0_u64;
    for oid in oids {
        match objects.header(oid)? {
            Some((ObjectKind::Blob, size)) => bytes = bytes.saturating_add(size),
            Some(_) | None => return Err(AskGit),
        }
    }
    if bytes > FEW_BYTES {
        return Err(AskGit);
    }
    let contents: Vec<Vec<u8>> =
        oids.iter().map(|oid| objects.read(oid, ObjectKind::Blob)).collect::<Native<_>>()?;
    for (blob, content) in contents.iter().enumerate().filter(|(_, content)| !content.is_empty()) {
        take(blob, content);
    }
    Ok(())
}

/// Where in the output of `cat-file --batch` we are.
#[derive(Default)]
struct Batch {
    blob: usize,
    /// The line before a blob, as far as it has come.
    head: Vec<u8>,
    /// Bytes of the blob that are still to come, and then a newline.
    left: Option<u64>,
}

impl Batch {
    fn feed(&mut self, mut bytes: &[u8], take: &mut dyn FnMut(usize, &[u8])) -> io::Result<()> {
        while let Some((first, rest)) = bytes.split_first() {
            match self.left {
                Some(0) => {
                    (self.left, self.blob, bytes) = (None, self.blob + 1, rest);
                }
                Some(left) => {
                    let now = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                    take(self.blob, &bytes[..now]);
                    (self.left, bytes) = (Some(left - now as u64), &bytes[now..]);
                }
                None if *first == b'\n' => {
                    self.left = Some(size_in(&self.head)?);
                    self.head.clear();
                    bytes = rest;
                }
                None => {
                    self.head.push(*first);
                    bytes = rest;
                }
            }
        }
        Ok(())
    }
}

/// `<oid> blob <size>`; a missing object has no size.
fn size_in(head: &[u8]) -> io::Result<u64> {
    let size = head.rsplit(|byte| *byte == b' ').next().and_then(|word| std::str::from_utf8(word).ok());
    size.and_then(|size| size.parse().ok()).ok_or_else(|| {
        let text = String::from_utf8_lossy(&head[..head.len().min(200)]).escape_debug().to_string();
        io::Error::other(format!("cat-file answered {text}"))
    })
}

/// Takes apart what `cat-file --batch` printed.
pub(super) fn contents(mut rest: &[u8], count: usize) -> Result<Vec<Vec<u8>>, runner::Error> {
    let mut all = Vec::with_capacity(count);
    for _ in 0..count {
        let (bytes, after) = one_content(rest).ok_or_else(|| unexpected(rest))?;
        all.push(bytes.to_vec());
        rest = after;
    }
    Ok(all)
}

fn one_content(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    let size: usize =
        std::str::from_utf8(rest[..end].rsplit(|byte| *byte == b' ').next()?).ok()?.parse().ok()?;
    let body = &rest[end + 1..];
    Some((body.get(..size)?, body.get(size + 1..)?))
}

fn unexpected(rest: &[u8]) -> runner::Error {
    let answer = String::from_utf8_lossy(&rest[..rest.len().min(200)]).escape_debug().to_string();
    runner::Error::Unexpected { what: "cat-file --batch".to_owned(), answer }
}

fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let count = if bytes.is_empty() { 0 } else { usize::MAX };
    bytes.split(|byte| *byte == b'\n').take(count)
}
