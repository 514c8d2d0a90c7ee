//! What earlier reviews of the same subject saw, kept beside the runs of a repository.

use std::path::{Path, PathBuf};

use archeflow_core::event::{Artifact, ReviewOpened};
use archeflow_core::model::RunStatus;
use archeflow_core::run::Run;
use archeflow_core::strategies::review::{self, KnownFinding, Reviewed};
use serde::{Deserialize, Serialize};

use crate::log;
use crate::store::journal::Journal;
use crate::store::names::valid_name;
use crate::store::{files, places::Places};
use crate::world::World;

const NAME: &str = "earlier.json";
const BYTES_AT_MOST: u64 = 50_000_000;
/// Resolved findings are remembered up to this many: the oldest reviews are the least likely to come back.
const KNOWN_AT_MOST: usize = 20_000;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct History {
    schema: u32,
    /// What was reviewed.
    key: String,
    /// The latest review.
    run: String,
    known: Vec<KnownFinding>,
}

fn place(places: &Places, key: &str) -> PathBuf {
    let name = blake3::hash(key.as_bytes()).to_hex();
    places.runs().join("reviews").join(format!("{}.json", &name[..16]))
}

fn read(path: &Path, key: &str) -> Option<History> {
    let bytes = files::read_capped(path, BYTES_AT_MOST).ok()?;
    let history: History = serde_json::from_slice(&bytes).ok()?;
    (history.schema == 1 && history.key == key).then_some(history)
}

/// Lays what is known of this subject beside the artifacts of a new review: it is judged by the past as it was then.
pub(super) fn carried(places: &Places, key: &str, folder: &Path) -> Result<Option<Artifact>, files::Error> {
    let Some(history) = read(&place(places, key), key) else { return Ok(None) };
    let Ok(text) = serde_json::to_string(&history.known) else { return Ok(None) };
    files::write_atomic(&folder.join(NAME), text.as_bytes())?;
    Ok(Some(Artifact { name: NAME.to_owned(), digest: files::digest(text.as_bytes()) }))
}

/// What a review was given of the past; `None` where it was the first of its subject.
pub fn earlier(places: &Places, run_id: &str, opened: &ReviewOpened) -> Option<Vec<KnownFinding>> {
    let artifact = opened.earlier.as_ref()?;
    let bytes =
        files::read_capped(&places.artifacts().join(run_id).join(&artifact.name), BYTES_AT_MOST).ok()?;
    let same = files::digest(&bytes) == artifact.digest;
    serde_json::from_slice(&bytes).ok().filter(|_| same)
}

/// Records a completed review, once. Warnings, never a stop.
pub fn ended(world: &World, run: &Run) -> Vec<String> {
    let Some(opened) = run.review.as_deref() else { return Vec::new() };
    if run.outcome.as_ref().is_none_or(|outcome| outcome.status != RunStatus::Reviewed) {
        return Vec::new();
    }
    let path = place(&world.places, &opened.subject.key);
    if read(&path, &opened.subject.key).is_some_and(|history| history.run == world.run_id) {
        return Vec::new();
    }
    match remember(world, opened, &path) {
        Ok(()) => Vec::new(),
        Err(why) => vec![format!("the next review will not know this one: {why}")],
    }
}

fn remember(world: &World, opened: &ReviewOpened, path: &Path) -> Result<(), String> {
    let (reviewed, earlier) = looked_at(&world.places, &world.run_id, opened)?;
    let mut known = review::remember(&reviewed, &earlier);
    if known.len() > KNOWN_AT_MOST {
        known.sort_by_key(|one| one.resolved);
        known.truncate(KNOWN_AT_MOST);
    }
    let history = History { schema: 1, key: opened.subject.key.clone(), run: world.run_id.clone(), known };
    let text = serde_json::to_string(&history).map_err(|error| error.to_string())?;
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    }
    files::write_atomic(path, text.as_bytes()).map_err(|error| error.to_string())
}

/// The newest completed review of a subject.
pub(super) fn latest(places: &Places, key: &str) -> Option<String> {
    read(&place(places, key), key).map(|history| history.run).filter(|id| valid_name(id))
}

/// The commit that a review looked at.
pub(super) fn reviewed_commit(places: &Places, run_id: &str) -> Option<String> {
    let text = Journal::read(&places.events().join(format!("{run_id}.jsonl"))).ok()?;
    review::of(&log::entries(&text).ok()?).map(|reviewed| reviewed.commit)
}

fn looked_at(
    places: &Places,
    run_id: &str,
    opened: &ReviewOpened,
) -> Result<(Reviewed, Vec<KnownFinding>), String> {
    let path = places.events().join(format!("{run_id}.jsonl"));
    let text = Journal::read(&path).map_err(|error| error.to_string())?;
    let entries = log::entries(&text).map_err(|error| error.to_string())?;
    let mut reviewed = review::of(&entries).ok_or("its log holds no review")?;
    let earlier = earlier(places, run_id, opened).unwrap_or_default();
    review::compare(&mut reviewed, &earlier);
    Ok((reviewed, earlier))
}
