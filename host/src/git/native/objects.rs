//! Objects: commits, trees and blobs of a store and of the stores it borrows from.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gix_object::bstr::ByteSlice;
use gix_object::tree::{EntryKind, name_order};
use gix_object::{CommitRef, Find, Kind, TreeRefIter};
use gix_odb::Header;

use super::{AskGit, Native, ask, hash_kind};
use crate::git::ObjectId;
use crate::git::change::{ChangedPath, PathStatus};
use crate::git::repo::TreeEntry;

/// Commits that are looked at to find out how two are related. Git has indexes for longer ways.
const MOST_COMMITS: usize = 64;
/// Folders within folders.
const DEEPEST: usize = 256;
/// A single object that is held in memory here.
const LARGEST: u64 = 64 * 1024 * 1024;
/// Commits and trees that are kept in memory.
const MOST_KNOWN: usize = 512 * 1024;
/// Objects that others are stored as differences to, kept in memory.
const BASES: usize = 2 * 1024 * 1024;
const ABSENT: &str = "000000";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::git) enum ObjectKind {
    Commit,
    Tree,
    Blob,
    Tag,
}

impl ObjectKind {
    fn of(kind: Kind) -> ObjectKind {
        match kind {
            Kind::Commit => ObjectKind::Commit,
            Kind::Tree => ObjectKind::Tree,
            Kind::Blob => ObjectKind::Blob,
            Kind::Tag => ObjectKind::Tag,
        }
    }

    pub(super) fn name(self) -> Kind {
        match self {
            ObjectKind::Commit => Kind::Commit,
            ObjectKind::Tree => Kind::Tree,
            ObjectKind::Blob => Kind::Blob,
            ObjectKind::Tag => Kind::Tag,
        }
    }
}

/// What a path of a tree is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::git) enum FileKind {
    File,
    Executable,
    Link,
    Submodule,
}

impl FileKind {
    fn of(kind: EntryKind) -> Option<FileKind> {
        match kind {
            EntryKind::Blob => Some(FileKind::File),
            EntryKind::BlobExecutable => Some(FileKind::Executable),
            EntryKind::Link => Some(FileKind::Link),
            EntryKind::Commit => Some(FileKind::Submodule),
            EntryKind::Tree => None,
        }
    }

    pub(super) fn entry(self) -> EntryKind {
        match self {
            FileKind::File => EntryKind::Blob,
            FileKind::Executable => EntryKind::BlobExecutable,
            FileKind::Link => EntryKind::Link,
            FileKind::Submodule => EntryKind::Commit,
        }
    }

    pub(in crate::git) fn mode(self) -> &'static str {
        match self {
            FileKind::File => "100644",
            FileKind::Executable => "100755",
            FileKind::Link => "120000",
            FileKind::Submodule => "160000",
        }
    }

    pub(in crate::git) fn of_mode(mode: &str) -> Option<FileKind> {
        [FileKind::File, FileKind::Executable, FileKind::Link, FileKind::Submodule]
            .into_iter()
            .find(|kind| kind.mode() == mode)
    }
}

/// A store of objects, kept open: its packs are looked up once and again when an object is not found.
#[derive(Clone)]
pub(in crate::git) struct Objects {
    pub(super) dir: PathBuf,
    pub(super) hash: gix_hash::Kind,
    store: Arc<Mutex<gix_odb::HandleArc>>,
    /// Small commits and trees that were read before. They are named by their content, so they are never out of date. Each
    /// store has its own: an agent without a sandbox could have reached into the store of its copy.
    known: Arc<Mutex<KnownObjects>>,
}

#[derive(Default)]
struct KnownObjects {
    objects: BTreeMap<gix_hash::ObjectId, (ObjectKind, Arc<[u8]>)>,
    bytes: usize,
}

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Objects").field("dir", &self.dir).finish_non_exhaustive()
    }
}

struct Entry {
    name: Vec<u8>,
    kind: EntryKind,
    oid: gix_hash::ObjectId,
}

struct Commit {
    tree: gix_hash::ObjectId,
    parents: Vec<gix_hash::ObjectId>,
}

impl Objects {
    /// `format` is git's name for the hash.
    pub(in crate::git) fn open(dir: &Path, format: &str) -> Native<Objects> {
        let hash = hash_kind(format)?;
        let options = gix_odb::store::init::Options {
            alloc_limit_bytes: usize::try_from(LARGEST).ok().map(|most| most * 4),
            ..Default::default()
        };
        let store = gix_odb::Store::at_opts(dir.to_owned(), hash, &mut std::iter::empty(), options);
        let handle = Arc::new(store.map_err(ask)?).to_cache_arc();
        let handle =
            handle.with_pack_cache(|| Box::new(gix_pack::cache::lru::MemoryCappedHashmap::new(BASES)));
        Ok(Objects { dir: dir.to_owned(), hash, store: Arc::new(Mutex::new(handle)), known: Arc::default() })
    }

    /// The same store with caches of its own, for another thread.
    pub(super) fn again(&self) -> Objects {
        let store = Arc::new(Mutex::new(self.store().clone()));
        Objects { dir: self.dir.clone(), hash: self.hash, store, known: Arc::clone(&self.known) }
    }

    pub(super) fn store(&self) -> MutexGuard<'_, gix_odb::HandleArc> {
        // Nothing is half-done in there when a thread panics: it only reads.
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn name(&self, oid: &ObjectId) -> Native<gix_hash::ObjectId> {
        let name = gix_hash::ObjectId::from_hex(oid.as_str().as_bytes()).map_err(ask)?;
        if name.kind() == self.hash { Ok(name) } else { Err(AskGit) }
    }

    /// Kind and size of an object; `None` if it is not there.
    pub(in crate::git) fn header(&self, oid: &ObjectId) -> Native<Option<(ObjectKind, u64)>> {
        let found = self.store().try_header(&self.name(oid)?).map_err(ask)?;
        Ok(found.map(|header| (ObjectKind::of(header.kind()), header.size())))
    }

    /// Whether the store has this commit.
    pub(in crate::git) fn has_commit(&self, oid: &ObjectId) -> Native<bool> {
        match self.header(oid)? {
            Some((ObjectKind::Commit, _)) => Ok(true),
            Some((ObjectKind::Tag, _)) => Err(AskGit),
            Some((ObjectKind::Tree | ObjectKind::Blob, _)) | None => Ok(false),
        }
    }

    /// The content of an object of this kind. One that is not there, of another kind or very large is git's matter.
    pub(in crate::git) fn read(&self, oid: &ObjectId, kind: ObjectKind) -> Native<Vec<u8>> {
        self.content(&self.name(oid)?, kind)
    }

    /// The same for commits and trees, which are asked for again and again.
    fn structure(&self, name: &gix_hash::oid, kind: ObjectKind) -> Native<Arc<[u8]>> {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, bytes)) = known().objects.get(name) {
            return if *known == kind { Ok(Arc::clone(bytes)) } else { Err(AskGit) };
        }
        let bytes: Arc<[u8]> = self.content(name, kind)?.into();
        let mut known = known();
        if known.bytes + bytes.len() > MOST_KNOWN {
            *known = KnownObjects::default();
        }
        if bytes.len() <= MOST_KNOWN / 8 {
            known.bytes += bytes.len();
            known.objects.insert(name.to_owned(), (kind, Arc::clone(&bytes)));
        }
        Ok(bytes)
    }

    pub(super) fn content(&self, name: &gix_hash::oid, kind: ObjectKind) -> Native<Vec<u8>> {
        let store = self.store();
        let header = store.try_header(name).map_err(ask)?.ok_or(AskGit)?;
        if ObjectKind::of(header.kind()) != kind || header.size() > LARGEST {
            return Err(AskGit);
        }
        let mut bytes = Vec::new();
        let found = store.try_find(name, &mut bytes).map_err(ask)?.ok_or(AskGit)?;
        let length = found.data.len();
        bytes.truncate(length);
        Ok(bytes)
    }

    fn commit(&self, name: &gix_hash::oid) -> Native<Commit> {
        let bytes = self.structure(name, ObjectKind::Commit)?;
        let commit = CommitRef::from_bytes(&bytes, self.hash).map_err(ask)?;
        Ok(Commit { tree: commit.tree(), parents: commit.parents().collect() })
    }

    /// The tree of a commit.
    pub(in crate::git) fn tree_of(&self, commit: &ObjectId) -> Native<ObjectId> {
        text(self.commit(&self.name(commit)?)?.tree)
    }

    /// The tree of a commit and its parents.
    pub(in crate::git) fn made_of(&self, commit: &ObjectId) -> Native<(ObjectId, Vec<ObjectId>)> {
        let commit = self.commit(&self.name(commit)?)?;
        Ok((text(commit.tree)?, commit.parents.into_iter().map(text).collect::<Native<_>>()?))
    }

    /// A commit's own tree, or the tree itself.
    pub(super) fn root(&self, treeish: &ObjectId) -> Native<gix_hash::ObjectId> {
        let name = self.name(treeish)?;
        if let Ok(commit) = self.commit(&name) {
            return Ok(commit.tree);
        }
        match self.header(treeish)? {
            Some((ObjectKind::Commit, _)) => Ok(self.commit(&name)?.tree),
            Some((ObjectKind::Tree, _)) => Ok(name),
            Some((ObjectKind::Blob | ObjectKind::Tag, _)) | None => Err(AskGit),
        }
    }

    /// Whether `old` is `new` or one of its ancestors.
    pub(in crate::git) fn is_ancestor(&self, old: &ObjectId, new: &ObjectId) -> Native<bool> {
        let (old, new) = (self.name(old)?, self.name(new)?);
        self.commit(&old)?;
        let (mut seen, mut next) = (BTreeSet::from([new]), vec![new]);
        while let Some(one) = next.pop() {
            if one == old {
                return Ok(true);
            }
            if seen.len() > MOST_COMMITS {
                return Err(AskGit);
            }
            // The nearest first.
            let parents = self.commit(&one)?.parents;
            next.splice(0..0, parents.into_iter().filter(|parent| seen.insert(*parent)));
        }
        Ok(false)
    }

    /// Where two lines of history parted, if one of the two is on the way to the other.
    pub(in crate::git) fn merge_base(&self, one: &ObjectId, other: &ObjectId) -> Native<ObjectId> {
        if self.is_ancestor(one, other)? {
            Ok(one.clone())
        } else if self.is_ancestor(other, one)? {
            Ok(other.clone())
        } else {
            Err(AskGit)
        }
    }

    /// How many commits lead from `base` to `commit`, if they are in one line.
    pub(in crate::git) fn distance(&self, base: &ObjectId, commit: &ObjectId) -> Native<u32> {
        let (base, mut at) = (self.name(base)?, self.name(commit)?);
        self.commit(&base)?;
        for count in 0..MOST_COMMITS {
            if at == base {
                return u32::try_from(count).map_err(ask);
            }
            match self.commit(&at)?.parents[..] {
                [parent] => at = parent,
                _ => return Err(AskGit),
            }
        }
        Err(AskGit)
    }

    /// The entries of a tree in git's order. One that is not in order, or has a name that no tree may have, is damaged.
    fn entries(&self, tree: &gix_hash::oid) -> Native<Vec<Entry>> {
        let bytes = self.structure(tree, ObjectKind::Tree)?;
        let mut entries: Vec<Entry> = Vec::with_capacity(bytes.len() / 40);
        for entry in TreeRefIter::from_bytes(&bytes, self.hash) {
            let entry = entry.map_err(ask)?;
            let (name, kind) = (entry.filename.as_bytes(), entry.mode.kind());
            let odd = matches!(name, b"" | b"." | b"..") || name.contains(&b'/');
            let is_tree = kind == EntryKind::Tree;
            let in_order = entries.last().is_none_or(|last| {
                let order = name_order(&last.name, last.kind == EntryKind::Tree, name, is_tree);
                order == Ordering::Less && last.name != name
            });
            if odd || !in_order {
                return Err(AskGit);
            }
            entries.push(Entry { name: name.to_vec(), kind, oid: entry.oid.to_owned() });
        }
        Ok(entries)
    }

    fn entry(&self, tree: &gix_hash::oid, name: &[u8]) -> Native<Option<Entry>> {
        Ok(self.entries(tree)?.into_iter().find(|entry| entry.name == name))
    }

    /// All files beneath `prefix`, at any depth, in git's order; an empty prefix means all files.
    pub(in crate::git) fn files(&self, treeish: &ObjectId, prefix: &[u8]) -> Native<Vec<TreeEntry>> {
        let (mut at, mut found) = (self.root(treeish)?, Vec::new());
        let parts: Vec<&[u8]> = prefix.split(|byte| *byte == b'/').collect();
        if !prefix.is_empty() {
            if parts.contains(&b"".as_slice()) {
                return Err(AskGit);
            }
            for (n, part) in parts.iter().enumerate() {
                match self.entry(&at, part)? {
                    Some(Entry { kind: EntryKind::Tree, oid, .. }) => at = oid,
                    Some(Entry { kind, oid, .. }) if n + 1 == parts.len() => {
                        let kind = FileKind::of(kind).ok_or(AskGit)?;
                        return Ok(vec![tree_entry(prefix.to_vec(), kind, oid)?]);
                    }
                    Some(_) | None => return Ok(found),
                }
            }
        }
        self.walk(&at, prefix, 0, &mut |path, kind, oid| {
            found.push(tree_entry(path, kind, oid)?);
            Ok(())
        })?;
        Ok(found)
    }

    fn walk(
        &self,
        tree: &gix_hash::oid,
        prefix: &[u8],
        depth: usize,
        each: &mut dyn FnMut(Vec<u8>, FileKind, gix_hash::ObjectId) -> Native<()>,
    ) -> Native<()> {
        if depth > DEEPEST {
            return Err(AskGit);
        }
        for Entry { name, kind, oid } in self.entries(tree)? {
            let path = joined(prefix, &name);
            match FileKind::of(kind) {
                Some(kind) => each(path, kind, oid)?,
                None => self.walk(&oid, &path, depth + 1, each)?,
            }
        }
        Ok(())
    }

    /// Object and size of a file of a commit; `None` if there is no such file.
    pub(in crate::git) fn file(&self, commit: &ObjectId, path: &[u8]) -> Native<Option<(ObjectId, u64)>> {
        let mut at = self.root(commit)?;
        let mut parts = path.split(|byte| *byte == b'/').peekable();
        while let Some(part) = parts.next() {
            match (self.entry(&at, part)?, parts.peek()) {
                (Some(Entry { kind: EntryKind::Tree, oid, .. }), Some(_)) => at = oid,
                (
                    Some(Entry {
                        kind: EntryKind::Blob | EntryKind::BlobExecutable | EntryKind::Link,
                        oid,
                        ..
                    }),
                    None,
                ) => {
                    let oid = text(oid)?;
                    return match self.header(&oid)? {
                        Some((ObjectKind::Blob, size)) => Ok(Some((oid, size))),
                        Some(_) | None => Err(AskGit),
                    };
                }
                (Some(_) | None, _) => return Ok(None),
            }
        }
        Ok(None)
    }

    /// The paths that differ, without line counts and sizes, in git's order.
    pub(in crate::git) fn touched(&self, old: &ObjectId, new: &ObjectId) -> Native<Vec<ChangedPath>> {
        let mut found = Vec::new();
        self.compare(Some(self.root(old)?), Some(self.root(new)?), &[], 0, &mut found)?;
        found.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(found)
    }

    fn compare(
        &self,
        old: Option<gix_hash::ObjectId>,
        new: Option<gix_hash::ObjectId>,
        prefix: &[u8],
        depth: usize,
        found: &mut Vec<ChangedPath>,
    ) -> Native<()> {
        if old == new {
            return Ok(());
        }
        if depth > DEEPEST {
            return Err(AskGit);
        }
        let entries =
            |tree: Option<gix_hash::ObjectId>| -> Native<BTreeMap<Vec<u8>, (EntryKind, gix_hash::ObjectId)>> {
                let entries = tree.map_or(Ok(Vec::new()), |tree| self.entries(&tree))?;
                Ok(entries.into_iter().map(|Entry { name, kind, oid }| (name, (kind, oid))).collect())
            };
        let (old, new) = (entries(old)?, entries(new)?);
        for name in old.keys().chain(new.keys()).collect::<BTreeSet<_>>() {
            let path = joined(prefix, name);
            let (old, new) = (old.get(name), new.get(name));
            if old == new {
                continue;
            }
            let folder = |side: Option<&(EntryKind, gix_hash::ObjectId)>| {
                side.filter(|(kind, _)| *kind == EntryKind::Tree).map(|(_, oid)| *oid)
            };
            let file = |side: Option<&(EntryKind, gix_hash::ObjectId)>| {
                side.and_then(|(kind, oid)| Some((FileKind::of(*kind)?, *oid)))
            };
            self.compare(folder(old), folder(new), &path, depth + 1, found)?;
            let (old, new) = (file(old), file(new));
            if old != new {
                found.push(self.difference(path, old, new)?);
            }
        }
        Ok(())
    }

    fn difference(
        &self,
        path: Vec<u8>,
        old: Option<(FileKind, gix_hash::ObjectId)>,
        new: Option<(FileKind, gix_hash::ObjectId)>,
    ) -> Native<ChangedPath> {
        let side = |side: Option<(FileKind, gix_hash::ObjectId)>| match side {
            Some((kind, oid)) => Ok((kind.mode(), text(oid)?)),
            None => Ok((ABSENT, text(self.hash.null())?)),
        };
        let status = match (old, new) {
            (None, _) => PathStatus::Added,
            (_, None) => PathStatus::Deleted,
            (Some((old, _)), Some((new, _))) if is_link_or_module(old) || is_link_or_module(new) => {
                if old == new { PathStatus::Modified } else { PathStatus::TypeChanged }
            }
            (Some(_), Some(_)) => PathStatus::Modified,
        };
        let ((old_mode, old_oid), (new_mode, new_oid)) = (side(old)?, side(new)?);
        Ok(ChangedPath {
            path,
            status,
            old_mode: old_mode.to_owned(),
            new_mode: new_mode.to_owned(),
            old_oid,
            new_oid,
            added: None,
            deleted: None,
            size_new: 0,
        })
    }

    /// The objects that this store itself holds as files and that `commit` needs: commits, trees and blobs. At most
    /// `most`; more are git's matter, as are objects in packs.
    pub(in crate::git) fn own_objects(
        &self,
        commit: &ObjectId,
        most: usize,
    ) -> Native<Vec<(ObjectId, ObjectKind)>> {
        if !files_only(&self.dir) {
            return Err(AskGit);
        }
        let (mut found, mut next) = (Vec::new(), vec![(commit.clone(), ObjectKind::Commit)]);
        let mut seen = BTreeSet::new();
        while let Some((oid, kind)) = next.pop() {
            if !self.has_loose(&oid) || !seen.insert(oid.clone()) {
                continue;
            }
            if found.len() >= most {
                return Err(AskGit);
            }
            match kind {
                ObjectKind::Commit => {
                    let (tree, parents) = self.made_of(&oid)?;
                    next.push((tree, ObjectKind::Tree));
                    next.extend(parents.into_iter().map(|parent| (parent, ObjectKind::Commit)));
                }
                ObjectKind::Tree => {
                    for Entry { kind, oid: entry, .. } in self.entries(&self.name(&oid)?)? {
                        match kind {
                            EntryKind::Tree => next.push((text(entry)?, ObjectKind::Tree)),
                            EntryKind::Blob | EntryKind::BlobExecutable | EntryKind::Link => {
                                next.push((text(entry)?, ObjectKind::Blob));
                            }
                            EntryKind::Commit => {}
                        }
                    }
                }
                ObjectKind::Blob | ObjectKind::Tag => {}
            }
            found.push((oid, kind));
        }
        // What is pointed at goes before what points at it.
        found.reverse();
        Ok(found)
    }
}

/// Whether a store holds objects as files only.
fn files_only(store: &Path) -> bool {
    fs::read_dir(store.join("pack")).map_or(true, |mut packs| packs.next().is_none())
}

fn is_link_or_module(kind: FileKind) -> bool {
    match kind {
        FileKind::Link | FileKind::Submodule => true,
        FileKind::File | FileKind::Executable => false,
    }
}

fn joined(prefix: &[u8], name: &[u8]) -> Vec<u8> {
    if prefix.is_empty() { name.to_vec() } else { [prefix, b"/", name].concat() }
}

fn tree_entry(path: Vec<u8>, kind: FileKind, oid: gix_hash::ObjectId) -> Native<TreeEntry> {
    Ok(TreeEntry { mode: kind.mode().to_owned(), oid: text(oid)?, path })
}

pub(super) fn text(name: gix_hash::ObjectId) -> Native<ObjectId> {
    ObjectId::parse(name.to_hex().to_string().as_bytes()).map_err(ask)
}
