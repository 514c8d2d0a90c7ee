//! What belongs to no run alone, or lies in the state folder beside those of other repositories: changes under review,
//! installed dependencies, build results, homes of clients, test results, records.

use std::path::{Path, PathBuf};

use archeflow_core::rules::keeping::{self, ReviewStoreFacts, RunFate, SetupFacts};

use super::{CleanedKind, Cleaner, copies, disk};
use crate::executors::{build_cache, client, preflight, setup};
use crate::git::subject;
use crate::store::names::valid_name;
use crate::store::own_runs::RecordedRun;

const REVIEWS: &str = "reviews";

/// The changes of one repository's reviews.
pub(crate) fn review_stores(state: &Path, repository: &str) -> PathBuf {
    state.join(REVIEWS).join(repository)
}

impl Cleaner<'_> {
    /// What every cleaning looks at, whatever its repository.
    pub(super) fn shared(&mut self) {
        self.setups();
        self.build_caches();
        self.homes();
        self.passed();
        self.records();
        self.leftovers();
    }

    /// What other repositories have in the state folder, also those that are gone.
    pub(super) fn everybodys(&mut self) {
        for pool in copies::pools(self.state) {
            self.copies(&pool);
        }
        let stores = disk::entries(&self.state.join(REVIEWS)).filter(|path| disk::is_real_folder(path));
        for stores in stores.collect::<Vec<_>>() {
            self.review_stores(&stores);
        }
    }

    pub(super) fn review_stores(&mut self, folder: &Path) {
        self.finish_earlier(folder);
        let mut stores: Vec<(u64, PathBuf)> = disk::entries(folder)
            .filter(|path| !disk::is_trash(path) && disk::is_real_folder(path))
            .map(|path| (disk::changed_at(&path), path))
            .collect();
        stores.sort();
        self.fates.listed();
        for (newer, (changed, path)) in stores.into_iter().rev().enumerate() {
            let name = disk::name(&path);
            let facts = ReviewStoreFacts {
                complete: !subject::is_unfinished(&name),
                run: self.fates.of_id(&name).fate,
                age_days: self.days_since(changed),
                newer: newer as u64,
            };
            let decided = keeping::review_store(facts);
            self.settle(CleanedKind::ReviewStore, &path, decided, || disk::remove_whole(&path));
        }
    }

    fn setups(&mut self) {
        let folder = self.state.join(setup::FOLDER);
        self.finish_earlier(&folder);
        let mut setups: Vec<(u64, PathBuf)> = disk::entries(&folder)
            .filter(|path| valid_name(&disk::name(path)) && disk::is_real_folder(path))
            .map(|path| (setup::last_use(&path), path))
            .collect();
        setups.sort();
        let mut newer_bytes = 0_u64;
        for (used, path) in setups.into_iter().rev() {
            let idle = match setup::reserve(self.state, &path) {
                Ok(idle) => idle,
                Err(error) => {
                    self.report.failed.push((path, error.to_string()));
                    continue;
                }
            };
            let bytes = setup::size(&path);
            let facts = SetupFacts {
                held: idle.is_none(),
                complete: setup::is_complete(&path),
                idle_days: self.days_since(used),
                megabytes: bytes.div_ceil(1024 * 1024),
                newer_megabytes: newer_bytes / (1024 * 1024),
            };
            newer_bytes = newer_bytes.saturating_add(bytes);
            let decided = keeping::setup(facts, self.keep);
            self.settle(CleanedKind::Setup, &path, decided, || disk::remove_whole(&path));
            drop(idle);
        }
    }

    fn build_caches(&mut self) {
        let places = disk::entries(&self.state.join(build_cache::FOLDER));
        let mut places: Vec<_> = places.map(|place| (build_cache::stored(&place), place)).collect();
        places.sort_by_key(|(stored, _)| std::cmp::Reverse(stored.last_use));
        let mut newer_bytes = 0_u64;
        for (stored, place) in places {
            self.finish_earlier(&place);
            self.set_aside_builds(&stored.of_runs);
            if !disk::is_real_folder(&stored.landed) {
                continue;
            }
            let bytes = disk::usage(&stored.landed);
            let facts = SetupFacts {
                // Whoever copies from it is waited for.
                held: false,
                complete: stored.is_complete,
                idle_days: self.days_since(stored.last_use),
                megabytes: bytes.div_ceil(1024 * 1024),
                newer_megabytes: newer_bytes / (1024 * 1024),
            };
            newer_bytes = newer_bytes.saturating_add(bytes);
            let decided = keeping::setup(facts, self.keep);
            self.settle(CleanedKind::BuildCache, &stored.landed, decided, || {
                build_cache::remove_landed(&place)
            });
        }
    }

    /// What passing tests left of trees that have not landed.
    fn set_aside_builds(&mut self, folder: &Path) {
        self.finish_earlier(folder);
        let of_runs: Vec<PathBuf> = disk::entries(folder).filter(|path| !disk::is_trash(path)).collect();
        self.fates.listed();
        for path in of_runs.into_iter().filter(|path| disk::is_real_folder(path)) {
            let decided = keeping::home(self.fates.of_id(&disk::name(&path)).fate);
            self.settle(CleanedKind::BuildCache, &path, decided, || disk::remove_whole(&path));
        }
    }

    fn homes(&mut self) {
        let folder = client::homes_of_all(self.state);
        self.finish_earlier(&folder);
        let homes = disk::entries(&folder).filter(|path| valid_name(&disk::name(path)));
        let homes: Vec<PathBuf> = homes.filter(|path| disk::is_real_folder(path)).collect();
        self.fates.listed();
        for path in homes {
            let decided = keeping::home(self.fates.of_id(&disk::name(&path)).fate);
            self.settle(CleanedKind::Home, &path, decided, || disk::remove_whole(&path));
        }
    }

    fn passed(&mut self) {
        let folder = self.state.join(preflight::FOLDER);
        for path in disk::entries(&folder) {
            let minutes = self.now.saturating_sub(disk::changed_at(&path)) / 60_000;
            self.settle(CleanedKind::Passed, &path, keeping::passed(minutes), || disk::remove(&path));
        }
    }

    /// Records of runs that have no journal any more.
    fn records(&mut self) {
        let records: Vec<RecordedRun> = self.fates.records().all().cloned().collect();
        for record in records {
            // Most have one, and a journal that is there is not read.
            let journal = record.root.join(".archeflow/events").join(format!("{}.jsonl", record.run_id));
            if disk::exists(&journal) || self.fates.of_record(&record).fate != RunFate::Gone {
                continue;
            }
            let decided = keeping::record(self.days_since(disk::changed_at(&record.file)), self.keep);
            self.settle(CleanedKind::Record, &record.file, decided, || disk::remove(&record.file));
        }
    }
}
