//! Paths that the user's git converts with a program: clean and smudge filters, such as Git LFS (U-05).
//!
//! Working copies hold exactly the committed bytes, so agents and tests would see a pointer where the user sees the file.

use std::fs;

use super::repo::Repo;
use super::runner::{self, GitCommand};
use super::{ObjectId, content, files};
use crate::nonce::nonce;
use crate::platform::files as os;

/// A path of a commit with a filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilteredPath {
    pub path: Vec<u8>,
    pub filter: String,
}

impl Repo {
    /// The files of a commit that have a filter, by the attributes that the user's git would use for it.
    pub fn filtered_paths(&self, commit: &ObjectId) -> Result<Vec<FilteredPath>, runner::Error> {
        let entries = self.list_dir(commit, b"")?;
        let is_attributes = |path: &[u8]| path == b".gitattributes" || path.ends_with(b"/.gitattributes");
        let files = entries.iter().filter(|entry| entry.mode.starts_with("100"));
        let attributes: Vec<&ObjectId> =
            files.filter(|entry| is_attributes(&entry.path)).map(|entry| &entry.oid).collect();
        // A partial clone may lack one; the run then stops where it needs a file that is not there.
        let Ok(texts) = content::read_blobs(self, &attributes) else { return Ok(Vec::new()) };
        let named = texts.iter().any(|text| names_filter(text));
        if !named && !self.own_attributes_name_filters() {
            return Ok(Vec::new());
        }
        let index = self.side.join(format!("attributes-{}", nonce()));
        let paths: Vec<u8> =
            entries.iter().flat_map(|entry| [entry.path.as_slice(), b"\0"].concat()).collect();
        let listing = self
            .side()?
            .scratch()
            .index_file(&index)
            .args(["read-tree", commit.as_str()])
            .done()
            .and_then(|_| self.filter_attributes(&index, paths));
        // It is only ever read here.
        let _ = files::remove(&index);
        let listing = listing?;
        let fields: Vec<&[u8]> = listing.split(|byte| *byte == 0).collect();
        let filtered =
            fields.chunks_exact(3).filter(|row| !matches!(row[2], b"unspecified" | b"unset" | b"set"));
        let filtered = filtered.map(|row| FilteredPath {
            path: row[0].to_vec(),
            filter: String::from_utf8_lossy(row[2]).into_owned(),
        });
        Ok(filtered.collect())
    }

    /// Path, attribute and value of each path, by the attributes in an index and those of the user.
    fn filter_attributes(&self, index: &std::path::Path, paths: Vec<u8>) -> Result<Vec<u8>, runner::Error> {
        let mut git = GitCommand::with_user_config(&self.git_dir, &self.env)?;
        if let Some(tree) = &self.work_tree {
            git = git.work_tree(tree);
        }
        let args = ["check-attr", "--cached", "-z", "--stdin", "filter"];
        Ok(git.index_file(index).args(args).input(paths).done()?.stdout)
    }

    /// Whether attributes outside of the commit could name one: the repository's `info/attributes`, or the user's own.
    fn own_attributes_name_filters(&self) -> bool {
        let text = fs::read(self.common_dir.join("info/attributes")).unwrap_or_default();
        if names_filter(&text) {
            return true;
        }
        let place = self.work_tree.as_deref().unwrap_or(&self.git_dir);
        let ask = || {
            let git = GitCommand::as_user(place, &self.env).ok()?;
            let output = git.args(["config", "--type=path", "--get", "core.attributesFile"]).run().ok()?;
            output.status.success().then(|| files::owned_path(output.line()))
        };
        let file = match self.user.attributes_file(&self.env).unwrap_or_else(|_| ask()) {
            Some(file) => file,
            None => {
                let config = self.env.get("XDG_CONFIG_HOME").filter(|value| !value.is_empty());
                let home =
                    self.env.get("HOME").map(|home| os::path(os::bytes(home).to_vec()).join(".config"));
                let Some(config) = config.map(|config| os::path(os::bytes(config).to_vec())).or(home) else {
                    return false;
                };
                config.join("git/attributes")
            }
        };
        names_filter(&fs::read(file).unwrap_or_default())
    }
}

fn names_filter(attributes: &[u8]) -> bool {
    attributes.windows(6).any(|word| word == b"filter")
}
