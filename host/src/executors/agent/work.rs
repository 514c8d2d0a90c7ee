//! The Maker's work: taken in from its working copy, and kept reachable.

use archeflow_core::model::{Change, Role};

use super::super::looking;
use super::{Attempt, Fault, oid};
use crate::git::ObjectId;
use crate::git::change::quote_path;
use crate::git::workspace::{self, Collected, Slot};

impl Attempt<'_> {
    /// Takes in the Maker's work. `None` when the run's whole change is empty.
    pub(super) fn collect(&self, slot: Option<&mut Slot>) -> Result<Option<Change>, Fault> {
        let base = oid(&self.inputs.base)?;
        let keep = self.keep_ref();
        let (commit, collected) = match slot {
            Some(slot) => {
                let collected = self.collected(slot)?;
                let mut refs = wanted(&collected, &keep);
                refs.push((collected.commit.clone(), format!("refs/heads/{}", self.inputs.branch)));
                match slot.publish(&refs) {
                    // Somebody looks at the run's branch: the work is kept under its own ref all the same.
                    Err(workspace::Error::CheckedOut { .. }) => {
                        slot.publish(&wanted(&collected, &keep))?;
                    }
                    other => other?,
                }
                self.world.note_kept(refs.iter().map(|(_, name)| name.as_str()));
                (collected.commit.clone(), Some(collected))
            }
            // Published before a crash.
            None => match self.world.repo.resolve(&keep)? {
                Some(commit) => (commit, None),
                // Taken in before a crash and found to be nothing new.
                None if self.world.pool.settled(&self.world.run_id) => (oid(&self.inputs.start.at)?, None),
                None => return Ok(None),
            },
        };
        let mut change =
            looking::change_of(&self.world.repo, &base, &commit, &keep, self.inputs.wanted_signs())?;
        change.signs.seen.extend(looking::not_shown(&self.world.repo, &base, &commit)?);
        change.signs.seen.sort();
        if let Some(collected) = collected {
            change.uncommitted = collected.uncommitted;
            change.notes = notes(&collected);
        }
        let empty = change.files.is_empty();
        Ok((!empty).then_some(change))
    }

    pub(super) fn collected(&self, slot: &mut Slot) -> Result<Collected, Fault> {
        let base = oid(&self.inputs.start.at)?;
        let message = format!(
            "archeflow: work of the {} in cycle {}",
            self.inputs.start.archetype, self.inputs.start.cycle
        );
        Ok(slot.collect(&base, &message, self.world.repo.identity(), workspace::CollectLimits::default())?)
    }

    pub(super) fn keep_ref(&self) -> String {
        self.keep_ref_of(self.inputs.start.attempt)
    }

    pub(super) fn keep_ref_of(&self, attempt: u32) -> String {
        self.world.keep_ref(&format!("{}-{}.{attempt}", self.inputs.start.cycle, self.inputs.start.archetype))
    }

    /// I2: what a failed or lost Maker had done stays reachable.
    pub(super) fn keep(&self, slot: Option<&mut Slot>) -> Result<Option<String>, Fault> {
        // Without a slot, it was published before a crash, or there was nothing.
        let Some(slot) = slot else {
            let keep = self.keep_ref();
            let kept = self.world.repo.resolve(&keep)?.filter(|kept| kept.as_str() != self.inputs.start.at);
            return Ok(kept.map(|_| keep));
        };
        let collected = match self.collected(slot) {
            Ok(collected) => collected,
            Err(Fault::Workspace(workspace::Error::TreeGone { .. })) => {
                slot.abandon()?;
                return Ok(None);
            }
            Err(fault) => return Err(fault),
        };
        let keep = self.keep_ref();
        let refs = wanted(&collected, &keep);
        slot.publish(&refs)?;
        self.world.note_kept(refs.iter().map(|(_, name)| name.as_str()));
        let made_something =
            collected.commit.as_str() != self.inputs.start.at || !collected.stray_heads.is_empty();
        Ok(made_something.then_some(keep))
    }

    /// The Maker's working copy as a crash left it. Copies of earlier attempts may be there too, with what was too much
    /// to take in.
    pub(super) fn pending(&self) -> Result<Option<Slot>, Fault> {
        if self.inputs.start.role != Role::Maker {
            return Ok(None);
        }
        let left = self.world.pool.pending(Some(&self.world.run_id))?;
        Ok(left.into_iter().find(|slot| slot.is_of(&self.name())))
    }

    /// Of this attempt, among all of the run.
    pub(super) fn name(&self) -> String {
        format!("{}-{}", self.inputs.seq, self.inputs.start.archetype)
    }
}

fn notes(collected: &Collected) -> Vec<String> {
    let mut notes = collected.notes.clone();
    let listed =
        |paths: &[Vec<u8>]| paths.iter().take(5).map(|path| quote_path(path)).collect::<Vec<_>>().join(", ");
    if !collected.skipped.is_empty() {
        notes.push(format!(
            "{} paths were too much to take in: {}",
            collected.skipped.len(),
            listed(&collected.skipped)
        ));
    }
    if !collected.nested.is_empty() {
        notes.push(format!("git repositories inside the copy: {}", listed(&collected.nested)));
    }
    notes
}

/// The refs that keep what was collected: the work, and commits that are not part of it.
fn wanted(collected: &Collected, keep: &str) -> Vec<(ObjectId, String)> {
    let mut wanted = vec![(collected.commit.clone(), keep.to_owned())];
    let strays = collected.stray_heads.iter().enumerate();
    wanted.extend(strays.map(|(n, stray)| (stray.clone(), format!("{keep}-stray-{n}"))));
    wanted
}
