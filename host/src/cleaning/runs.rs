//! Old runs: artifacts first, then refs, and the journal last, so that a run that was removed in part is still a run
//! and the next cleaning finds it.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use archeflow_core::rules::keeping::{self, KeepDecision, LooseRefFacts, RunFacts, RunFate};
use archeflow_core::run::Run;

use super::fates::SeenRun;
use super::{CleanedItem, CleanedKind, CleanedRepository, Cleaner, disk, shared};
use crate::git::Repo;
use crate::git::kept::KeptRef;
use crate::store::journal::{self, Journal, Opened};
use crate::store::names::valid_run_id;
use crate::store::own_runs::OwnRun;
use crate::store::places::Places;
use crate::store::{files, index, notified, presence};
use crate::{clock, control, failpoint, log};

/// A journal that was found.
struct FoundJournal {
    run_id: String,
    /// When it was last written.
    changed: u64,
}

impl Cleaner<'_> {
    pub(super) fn runs(&mut self, here: &CleanedRepository, at_most: usize) {
        let CleanedRepository { places, repo } = here;
        if let Err(error) = places.check_owner() {
            self.report.failed.push((places.root().join(".archeflow"), error.to_string()));
            return;
        }
        self.finish_earlier(&places.artifacts());
        let others_driven = self.others_driven(here);
        let mut removed = 0;
        for (newer, found) in journals(places).into_iter().enumerate() {
            let facts = |seen: SeenRun| RunFacts {
                run: seen.fate,
                age_days: self.days_since(seen.last.max(found.changed)),
                newer: newer as u64,
                others_driven,
            };
            // A run that is recent either way is not read.
            let recent = keeping::run(facts(SeenRun { fate: RunFate::Closed, last: 0 }), self.keep);
            let decided = match recent {
                KeepDecision::Keep(_) => recent,
                KeepDecision::Remove(_) if removed >= at_most => return,
                KeepDecision::Remove(_) if self.fates.is_own(places.root(), &found.run_id) => continue,
                KeepDecision::Remove(_) => {
                    let seen = self.fates.of_run(places.root(), &found.run_id);
                    keeping::run(facts(seen), self.keep)
                }
            };
            let item = |why| self.run_item(places, repo, &found.run_id, why);
            match decided {
                KeepDecision::Keep(why) if self.asked => self.report.kept.push(item(why)),
                KeepDecision::Keep(_) => {}
                KeepDecision::Remove(why) => {
                    let item = item(why);
                    removed += 1;
                    if self.dry_run {
                        self.report.removed.push(item);
                        continue;
                    }
                    let still = |run: &Run| keeping::run(facts(SeenRun::of(run)), self.keep);
                    match remove_run(self.state, here, &found.run_id, still) {
                        Ok(KeepDecision::Remove(_)) => self.report.removed.push(item),
                        Ok(KeepDecision::Keep(why)) => self.report.kept.push(CleanedItem { why, ..item }),
                        Err((path, why)) => self.report.failed.push((path, why)),
                    }
                }
            }
        }
    }

    fn run_item(&self, places: &Places, repo: &Repo, run_id: &str, why: &'static str) -> CleanedItem {
        let path = places.events().join(format!("{run_id}.jsonl"));
        let parts = [
            path.clone(),
            places.artifacts().join(run_id),
            shared::review_stores(self.state, repo.id()).join(run_id),
        ];
        let bytes = if self.asked { parts.iter().map(|part| disk::usage(part)).sum() } else { 0 };
        CleanedItem { kind: CleanedKind::Run, path, bytes, why }
    }

    /// Whether another process drives a run in any checkout of the repository.
    fn others_driven(&self, here: &CleanedRepository) -> bool {
        let trees = here.repo.checkouts().unwrap_or_default().into_iter().map(|checkout| checkout.tree);
        let roots: BTreeSet<PathBuf> = trees.chain([here.places.root().to_path_buf()]).collect();
        roots.iter().any(|root| {
            let events = root.join(".archeflow/events");
            disk::entries(&events).any(|path| {
                let name = disk::name(&path);
                name.strip_suffix(".holder").is_some_and(|run_id| {
                    !self.fates.is_own(root, run_id) && Journal::driver(&events, run_id).is_some()
                })
            })
        })
    }

    /// Refs whose run is gone, and those that keep what a branch of ours had before.
    pub(super) fn loose_refs(&mut self, here: &CleanedRepository) {
        let refs = match here.repo.kept_refs() {
            Ok(refs) => refs,
            Err(error) => {
                self.report.failed.push((here.repo.common_dir().to_path_buf(), error.to_string()));
                return;
            }
        };
        let oldest = journals(&here.places).iter().map(|found| begun(&here.places, found)).min();
        let others_driven = self.others_driven(here);
        self.fates.listed();
        for kept in refs {
            let is_replaced = kept.run_id == REPLACED;
            let is_here = disk::exists(&here.places.events().join(format!("{}.jsonl", kept.run_id)));
            if !is_replaced && (is_here || self.fates.of_id(&kept.run_id).fate != RunFate::Gone) {
                continue;
            }
            let facts = LooseRefFacts {
                age_days: self.days_since(kept.committed_at),
                run_is_older: is_replaced && oldest.is_some_and(|oldest| oldest <= kept.committed_at),
                others_driven,
            };
            let path = PathBuf::from(&kept.name);
            let decided = keeping::loose_ref(facts, self.keep);
            let refs = [kept];
            self.settle(CleanedKind::Ref, &path, decided, || {
                here.repo.remove_refs(&refs).map_err(io::Error::other)
            });
        }
    }
}

/// Below `refs/archeflow/keep`, in the place of a run.
const REPLACED: &str = "replaced";

/// The journals of a repository, the one that was written last first.
fn journals(places: &Places) -> Vec<FoundJournal> {
    let mut found: Vec<FoundJournal> = disk::entries(&places.events())
        .filter_map(|path| {
            let run_id = disk::name(&path).strip_suffix(".jsonl")?.to_owned();
            let is_plain = std::fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_file());
            let changed = disk::changed_at(&path);
            (is_plain && valid_run_id(&run_id)).then_some(FoundJournal { run_id, changed })
        })
        .collect();
    found.sort_by(|a, b| b.changed.cmp(&a.changed).then_with(|| b.run_id.cmp(&a.run_id)));
    found
}

/// When a run began. One that can't be read counts as the oldest.
fn begun(places: &Places, found: &FoundJournal) -> u64 {
    let text = Journal::read_prefix(&places.events().join(format!("{}.jsonl", found.run_id)));
    text.ok().and_then(|(text, _)| text.get(0).map(|line| clock::exact(line.ts, line.ms))).unwrap_or(0)
}

/// A path and what went wrong with it.
type Fault = (PathBuf, String);

/// Removes a run, holding its journal, if it is still what it was taken for.
fn remove_run(
    state: &Path,
    here: &CleanedRepository,
    run_id: &str,
    still: impl FnOnce(&Run) -> KeepDecision,
) -> Result<KeepDecision, Fault> {
    let places = &here.places;
    let events = places.events();
    let path = events.join(format!("{run_id}.jsonl"));
    let fault = |error: &dyn std::fmt::Display| (path.clone(), error.to_string());
    let Opened { journal, lines, .. } = match Journal::open(&events, run_id) {
        Err(journal::Error::Held { .. }) => return Ok(KeepDecision::Keep("in use")),
        // Another cleaning was faster.
        Err(journal::Error::Missing { .. }) => return Ok(KeepDecision::Remove("old")),
        opened => opened.map_err(|error| fault(&error))?,
    };
    let run = log::fold(&lines).map_err(|error| fault(&error))?;
    let decided = still(&run);
    if let KeepDecision::Keep(_) = decided {
        return Ok(decided);
    }
    for folder in [places.artifacts().join(run_id), shared::review_stores(state, here.repo.id()).join(run_id)]
    {
        disk::remove_whole(&folder).map_err(|error| (folder.clone(), error.to_string()))?;
    }
    failpoint::pass("cleaning.part_removed");
    remove_refs(&here.repo, run_id, &run).map_err(|error| fault(&error))?;
    for path in disk::entries(&events).filter(|path| journal::is_cut_off(run_id, &disk::name(path))) {
        disk::remove(&path).map_err(|error| (path.clone(), error.to_string()))?;
    }
    let _ = std::fs::remove_file(control::socket(state, None, &events, run_id));
    notified::forget(state, places.root(), run_id);
    presence::forget(state, places.root(), run_id);
    index::remove(&events, run_id).map_err(|error: files::Error| fault(&error))?;
    failpoint::pass("cleaning.unlisted");
    journal.remove().map_err(|error| fault(&error))?;
    OwnRun { state, root: places.root(), run_id }.forget().map_err(|error| fault(&error))?;
    Ok(decided)
}

/// The run's refs, and its branch if it is where the run left it and nobody looks at it.
fn remove_refs(repo: &Repo, run_id: &str, run: &Run) -> Result<(), crate::git::runner::Error> {
    let kept = repo.kept_refs()?;
    let mut refs: Vec<KeptRef> = kept.into_iter().filter(|one| one.run_id == run_id).collect();
    let branch = run.request.as_ref().map(|request| request.branch.as_str()).unwrap_or_default();
    if branch.starts_with("archeflow/") {
        let name = format!("refs/heads/{branch}");
        let looked_at =
            repo.checkouts()?.iter().any(|checkout| checkout.branch.as_deref() == Some(name.as_str()));
        let tip = repo.resolve(&name)?;
        let known = refs.iter().find(|one| Some(&one.commit) == tip.as_ref());
        if let Some(known) = known.filter(|_| !looked_at) {
            refs.push(KeptRef { name, ..known.clone() });
        }
    }
    repo.remove_refs(&refs)
}
