//! The git directory in which a subject is put together, and the steps all kinds share.

use std::io;
use std::path::{Path, PathBuf};

use super::Error;
use crate::git::repo::{Repo, answered};
use crate::git::runner::{self, GitCommand};
use crate::git::side::{self, Layout};
use crate::git::{ObjectId, files};

/// Overrides the user's attributes: no filter program changes content on its way from the tree.
const NO_PROGRAMS: &[u8] = b"\n* -filter !working-tree-encoding\n";

/// Larger attribute files are not written by hand.
const ATTRIBUTES_CAP: u64 = 1024 * 1024;

const MESSAGE: &str = "The change under review\n";

pub(super) struct SubjectStore<'a> {
    pub(super) repo: &'a Repo,
    /// The repository, reading and writing through the store.
    pub(super) borrowing: Repo,
    pub(super) dir: PathBuf,
}

impl SubjectStore<'_> {
    pub(super) fn lay_out<'a>(repo: &'a Repo, dir: &Path) -> io::Result<SubjectStore<'a>> {
        let layout = Layout {
            bare: true,
            format: &repo.format,
            borrows: &[&repo.objects],
            head: "ref: refs/heads/none",
            config: "",
            exclude: &repo.exclude,
            shallow: None,
        };
        side::lay_out(dir, &layout)?;
        let store = SubjectStore { repo, borrowing: repo.lending(dir)?, dir: dir.to_owned() };
        store.attributes(true)?;
        Ok(store)
    }

    /// The user's own attributes, with or without the line that takes programs out of them.
    pub(super) fn attributes(&self, without_programs: bool) -> io::Result<()> {
        let theirs = files::read_beneath(&self.repo.common_dir, b"info/attributes", ATTRIBUTES_CAP)?;
        let mut lines = theirs.unwrap_or_default();
        if without_programs {
            lines.extend_from_slice(NO_PROGRAMS);
        }
        files::write(&self.dir.join("info/attributes"), &lines)
    }

    /// A command on our own git directory.
    pub(super) fn git(&self) -> Result<GitCommand, runner::Error> {
        Ok(self.repo.shallow(GitCommand::new(&self.dir)?.scratch()))
    }

    /// The index as a tree. What a partial clone has not fetched is no hindrance.
    pub(super) fn write_tree(&self) -> Result<ObjectId, runner::Error> {
        let args = ["write-tree", "--missing-ok"];
        answered(&args, &self.git()?.args(args).done()?)
    }

    /// The tree of `base`, but for one folder, which is as `commit` has it.
    pub(super) fn with_folder_of(
        &self,
        base: &ObjectId,
        commit: &ObjectId,
        folder: &str,
    ) -> Result<ObjectId, runner::Error> {
        let index = self.dir.join("narrowed");
        // Files are neither read nor written; some of these commands want a tree all the same.
        let git = || Ok::<_, runner::Error>(self.git()?.index_file(&index).work_tree(&self.dir));
        git()?.args(["read-tree", base.as_str()]).done()?;
        let listed = self.borrowing.list_dir(base, folder.as_bytes())?;
        let listed: Vec<u8> = listed.iter().flat_map(|entry| [&entry.path[..], b"\0"].concat()).collect();
        git()?.args(["update-index", "--force-remove", "-z", "--stdin"]).input(listed).done()?;
        if !self.borrowing.list_dir(commit, folder.as_bytes())?.is_empty() {
            let (prefix, tree) = (format!("--prefix={folder}/"), format!("{commit}:{folder}"));
            git()?.args(["read-tree", &prefix, &tree]).done()?;
        }
        let args = ["write-tree", "--missing-ok"];
        answered(&args, &git()?.args(args).done()?)
    }

    /// A commit whose name depends on nothing but content and base.
    pub(super) fn commit(&self, tree: &ObjectId, base: &ObjectId) -> Result<ObjectId, runner::Error> {
        let args = ["show", "-s", "--no-show-signature", "--format=%at %ct", base.as_str()];
        let dates = self.git()?.args(args).done()?;
        let dates = String::from_utf8_lossy(dates.line()).into_owned();
        let mut dates = dates.split(' ').map(|date| date.parse::<u64>().unwrap_or(0));
        let (author, committer) = (dates.next().unwrap_or(0), dates.next().unwrap_or(0));
        self.dated(&["commit-tree", "-p", base.as_str(), tree.as_str()], author, committer)
    }

    /// What the first commit of all is compared with.
    pub(super) fn empty_root(&self) -> Result<ObjectId, runner::Error> {
        let tree = answered(&["mktree"], &self.git()?.arg("mktree").done()?)?;
        self.dated(&["commit-tree", tree.as_str()], 0, 0)
    }

    fn dated(&self, args: &[&str], author: u64, committer: u64) -> Result<ObjectId, runner::Error> {
        let git = self.git()?.args(args).input(MESSAGE);
        let git = git.env("GIT_AUTHOR_DATE", format!("@{author} +0000"));
        answered(args, &git.env("GIT_COMMITTER_DATE", format!("@{committer} +0000")).done()?)
    }

    /// Leaves nothing in the store but what is read later.
    pub(super) fn clear_up(&self) -> io::Result<()> {
        for entry in std::fs::read_dir(&self.dir)? {
            let entry = entry?;
            let kept = ["objects", "refs", "HEAD", "config", "info"];
            if !kept.iter().any(|kept| entry.file_name() == *kept) {
                files::remove(&entry.path())?;
            }
        }
        Ok(())
    }

    pub(super) fn io(&self, source: io::Error) -> Error {
        Error::Io { path: self.dir.clone(), source }
    }
}
