//! Writing objects: files, trees and commits, each as a file of its own.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use gix_object::bstr::BStr;
use gix_object::{Exists, WriteTo};

use super::objects::{FileKind, ObjectKind, Objects, text};
use super::{AskGit, Native, ask};
use crate::git::{Identity, ObjectId, files};
use crate::hands;
use crate::platform::files as os;

/// Changes to a tree.
#[derive(Debug, Default)]
pub(in crate::git) struct NewTree {
    pub(in crate::git) removed: Vec<Vec<u8>>,
    pub(in crate::git) added: Vec<(Vec<u8>, FileKind, ObjectId)>,
}

impl Objects {
    /// The name an object with this content has.
    pub(in crate::git) fn name_of(&self, kind: ObjectKind, content: &[u8]) -> Native<ObjectId> {
        text(gix_object::compute_hash(self.hash, kind.name(), content).map_err(ask)?)
    }

    /// Whether this store has an object itself, as a file.
    pub(in crate::git) fn has_loose(&self, oid: &ObjectId) -> bool {
        files::is_plain_file(&self.loose(oid))
    }

    fn loose(&self, oid: &ObjectId) -> PathBuf {
        let (folder, file) = oid.as_str().split_at(2);
        self.dir.join(folder).join(file)
    }

    /// Writes an object, unless the store or one that it borrows from has it. `durable`: it is on disk afterwards.
    pub(in crate::git) fn write(&self, kind: ObjectKind, content: &[u8], durable: bool) -> Native<ObjectId> {
        let oid = self.name_of(kind, content)?;
        if !self.store().exists(&self.name(&oid)?) {
            self.write_loose(&oid, kind, content, durable).map_err(ask)?;
        }
        Ok(oid)
    }

    /// Writes objects that are on disk afterwards. None can be seen before all are.
    pub(in crate::git) fn write_durable(&self, all: &[(ObjectKind, Vec<u8>)]) -> Native<Vec<ObjectId>> {
        let mut names = Vec::new();
        let mut new: Vec<LooseFile> = Vec::new();
        for (kind, content) in all {
            let oid = self.name_of(*kind, content)?;
            if !self.store().exists(&self.name(&oid)?) && new.iter().all(|one| one.file != self.loose(&oid)) {
                new.push(self.prepare_loose(&oid, *kind, content).map_err(ask)?);
            }
            names.push(oid);
        }
        let open = new.iter().map(|one| File::open(&one.temporary)).collect::<io::Result<Vec<_>>>();
        hands::sync_together(open.map_err(ask)?).map_err(ask)?;
        for one in new {
            one.put_in_place().map_err(ask)?;
        }
        Ok(names)
    }

    fn write_loose(&self, oid: &ObjectId, kind: ObjectKind, content: &[u8], durable: bool) -> io::Result<()> {
        let prepared = self.prepare_loose(oid, kind, content)?;
        if durable {
            File::open(&prepared.temporary)?.sync_all()?;
        }
        prepared.put_in_place()
    }

    fn prepare_loose(&self, oid: &ObjectId, kind: ObjectKind, content: &[u8]) -> io::Result<LooseFile> {
        let file = self.loose(oid);
        let folder = file.parent().unwrap_or(&self.dir);
        // With the rights that git would give it: all users who can read the repository can read its objects.
        match fs::create_dir(folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let header = gix_object::encode::loose_header(kind.name(), content.len() as u64);
        let mut packed = gix_zlib::stream::deflate::Write::new(Vec::new(), gix_zlib::Compression::BEST_SPEED);
        packed.write_all(&header)?;
        packed.write_all(content)?;
        packed.flush()?;
        // Git removes one that is left behind by this name.
        let unique = files::beside(&file).file_name().map(|name| name.to_string_lossy().into_owned());
        let temporary = folder.join(format!("tmp_obj_{}", unique.unwrap_or_default()));
        let prepared = LooseFile { temporary, file };
        write_read_only(&prepared.temporary, &packed.into_inner())?;
        Ok(prepared)
    }

    /// Writes the tree that these changes make of another, with the folders on the way.
    pub(in crate::git) fn edit(&self, base: &ObjectId, changes: &NewTree) -> Native<ObjectId> {
        let root = self.root(base)?;
        let bytes = self.content(&root, ObjectKind::Tree)?;
        let tree = gix_object::TreeRef::from_bytes(&bytes, self.hash).map_err(ask)?.into_owned();
        let store = self.store().clone();
        let mut editor = gix_object::tree::Editor::new(tree, &store, self.hash);
        let parts =
            |path: &[u8]| -> Vec<Vec<u8>> { path.split(|byte| *byte == b'/').map(<[u8]>::to_vec).collect() };
        for path in &changes.removed {
            let parts = parts(path);
            editor.remove_if_leaf(parts.iter().map(BStr::new)).map_err(ask)?;
        }
        for (path, kind, oid) in &changes.added {
            let parts = parts(path);
            let oid = self.name(oid)?;
            editor.upsert(parts.iter().map(BStr::new), kind.entry(), oid).map_err(ask)?;
        }
        let written = editor.write(|tree| {
            let mut bytes = Vec::new();
            tree.write_to(&mut bytes).map_err(ask)?;
            self.name(&self.write(ObjectKind::Tree, &bytes, false)?)
        })?;
        text(written)
    }

    /// Writes a commit, dated now. A name or message that git would change or refuse is its matter.
    pub(in crate::git) fn commit_on(
        &self,
        tree: &ObjectId,
        parents: &[&ObjectId],
        message: &str,
        by: &Identity,
        durable: bool,
    ) -> Native<ObjectId> {
        let people = [(&by.name, &by.email), (&by.committer_name, &by.committer_email)];
        let plain = |text: &str| {
            let ends_well = |letter: char| letter > ' ' && !".,:;<>\"\\'".contains(letter);
            !text.contains(['<', '>', '\n', '\0']) && text.starts_with(ends_well) && text.ends_with(ends_well)
        };
        if message.contains('\0')
            || message.is_empty()
            || !people.iter().all(|(name, email)| plain(name) && plain(email))
        {
            return Err(AskGit);
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_err(ask)?.as_secs();
        let mut text = format!("tree {tree}\n");
        for parent in parents {
            text.push_str(&format!("parent {parent}\n"));
        }
        for (role, (name, email)) in ["author", "committer"].iter().zip(people) {
            text.push_str(&format!("{role} {name} <{email}> {now} +0000\n"));
        }
        text.push('\n');
        text.push_str(message);
        self.write(ObjectKind::Commit, text.as_bytes(), durable)
    }
}

/// An object in a file that has not got its name yet.
struct LooseFile {
    temporary: PathBuf,
    file: PathBuf,
}

impl LooseFile {
    fn put_in_place(&self) -> io::Result<()> {
        fs::rename(&self.temporary, &self.file)
    }
}

impl Drop for LooseFile {
    fn drop(&mut self) {
        // Gone after it was put in its place.
        let _ = fs::remove_file(&self.temporary);
    }
}

fn write_read_only(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = File::options();
    options.write(true).create_new(true);
    let mut new = os::with_mode(&mut options, 0o444).open(file)?;
    new.write_all(bytes)
}
