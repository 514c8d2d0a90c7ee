//! The refs below `refs/archeflow/keep`, which keep what runs made.

use std::collections::BTreeMap;

use super::native::{AskGit, Native, RefChange, RefLog, Refs};
use super::runner::Error;
use super::{ObjectId, Repo};

const PREFIX: &str = "refs/archeflow/keep/";
const END_OF_PHASE: &str = "archeflow: end of a phase";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptRef {
    pub name: String,
    /// The part of the name after `keep/`.
    pub run_id: String,
    pub commit: ObjectId,
    /// In milliseconds since 1970; 0 if its commit can't be read.
    pub committed_at: u64,
}

impl Repo {
    pub fn kept_refs(&self) -> Result<Vec<KeptRef>, Error> {
        let format = "--format=%(objectname) %(refname) %(committerdate:unix)";
        let output = self.refs()?.args(["for-each-ref", format, PREFIX]).done()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let read = |line: &str| {
            let mut words = line.split(' ');
            let commit = ObjectId::parse(words.next()?.as_bytes()).ok()?;
            let name = words.next()?.to_owned();
            let run_id = name.strip_prefix(PREFIX)?.split('/').next()?.to_owned();
            let seconds: u64 = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
            Some(KeptRef { name, run_id, commit, committed_at: seconds.saturating_mul(1_000) })
        };
        Ok(text.lines().filter_map(read).collect())
    }

    /// Points refs at commits; those that are there already are left alone.
    pub(crate) fn keep(&self, wanted: &[(String, ObjectId)]) -> Result<(), Error> {
        let names: Vec<&str> = wanted.iter().map(|(name, _)| name.as_str()).collect();
        let now = self.resolve_all(&names)?;
        let new = wanted.iter().filter(|(name, commit)| now.get(name) != Some(commit));
        let commands: String = new.map(|(name, commit)| format!("update {name}\0{commit}\0\0")).collect();
        if commands.is_empty() || self.create_here(wanted, &now).is_ok() {
            return Ok(());
        }
        let args = ["update-ref", "-m", END_OF_PHASE, "-z", "--stdin"];
        self.refs()?.args(args).input(commands).done()?;
        Ok(())
    }

    /// Makes refs that are not there yet; fails if one can't be made this way.
    fn create_here(&self, wanted: &[(String, ObjectId)], now: &BTreeMap<String, ObjectId>) -> Native<()> {
        let refs = Refs::of(&self.common_dir)?;
        if wanted.iter().any(|(name, commit)| now.get(name).is_some_and(|now| now != commit)) {
            return Err(AskGit);
        }
        let new = wanted.iter().filter(|(name, _)| !now.contains_key(name));
        let new: Vec<RefChange<'_>> =
            new.map(|(name, commit)| RefChange { name, new: commit, old: None }).collect();
        let which = self.user.logged_refs(self.work_tree.is_some())?;
        refs.create(&new, &RefLog { which, message: END_OF_PHASE })
    }

    /// Removes refs in one step, each only if it is still at its commit.
    pub fn remove_refs(&self, refs: &[KeptRef]) -> Result<(), Error> {
        if refs.is_empty() {
            return Ok(());
        }
        let commands: String =
            refs.iter().map(|one| format!("delete {}\0{}\0", one.name, one.commit)).collect();
        let args = ["update-ref", "-m", "archeflow: clean up", "-z", "--stdin"];
        let Err(error) = self.refs()?.args(args).input(commands).done() else { return Ok(()) };
        // Another process may have been faster.
        let names: Vec<&str> = refs.iter().map(|one| one.name.as_str()).collect();
        let now = self.resolve_all(&names)?;
        let left: Vec<KeptRef> = refs.iter().filter(|one| now.contains_key(&one.name)).cloned().collect();
        if left.len() == refs.len() { Err(error) } else { self.remove_refs(&left) }
    }
}
