//! The diffs of runs, from git. Commits do not change, so the last few are kept.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use archeflow_core::event::ReviewOpened;
use archeflow_host::git::{GitEnv, ObjectId, Repo, change};
use archeflow_host::store::{files, names};

use crate::report::diff::{self, Diff};
use crate::run_model::RunModel;

/// Diffs that are kept.
const KEPT: usize = 8;

type Key = (PathBuf, String, String);

#[derive(Default)]
pub(crate) struct Changes(Mutex<Vec<(Key, Arc<Diff>)>>);

impl Changes {
    /// What landed, or else what is on the branch, or was reviewed.
    pub(crate) fn of(&self, state: Option<&Path>, run: &RunModel) -> Arc<Diff> {
        if let Some(review) = &run.run().review {
            return Arc::new(reviewed(run, review, Diff::read));
        }
        let Some((base, commit)) = run.story.span() else { return missing("Nothing was made.") };
        let key = (run.repository.root.clone(), base, commit);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = kept.iter().position(|(known, _)| *known == key) {
            let found = kept.remove(at);
            let diff = Arc::clone(&found.1);
            kept.push(found);
            return diff;
        }
        drop(kept);
        if run.repository.is_copy {
            return missing(&elsewhere(run, &key.1, &key.2));
        }
        let Some(state) = state else { return missing("There is no state folder to read git with.") };
        let diff = Arc::new(read(&key, state));
        if diff.missing.is_none() {
            let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.len() >= KEPT {
                kept.remove(0);
            }
            kept.push((key, Arc::clone(&diff)));
        }
        diff
    }
}

/// One file of the change, with more of its lines; read anew, since it is looked at once.
pub(crate) fn one_file(state: Option<&Path>, run: &RunModel, path: &str) -> Diff {
    if let Some(review) = &run.run().review {
        return reviewed(run, review, |text, _, command| Diff::read_file(text, path, command));
    }
    let (Some(state), Some((base, commit))) = (state, run.story.span()) else {
        return Diff::missing("Nothing was made.");
    };
    if run.repository.is_copy {
        return Diff::missing(elsewhere(run, &base, &commit));
    }
    let (text, _, command) = match diff_text(&(run.repository.root.clone(), base, commit), state, diff::BYTES)
    {
        Ok(read) => read,
        Err(why) => return Diff::missing(why),
    };
    Diff::read_file(&text, path, command)
}

/// The change as text, up to a limit in bytes; else why there is none.
pub(crate) fn text_of(state: Option<&Path>, run: &RunModel, most: usize) -> Result<String, String> {
    let (text, cut_at) = match (&run.run().review, state, run.story.span()) {
        (Some(review), ..) => shown_parts(run, review, most).ok_or_else(|| GONE.to_owned())?,
        (None, Some(state), Some((base, commit))) => {
            let (text, cut_at, _) = diff_text(&(run.repository.root.clone(), base, commit), state, most)?;
            (text, cut_at)
        }
        (None, ..) => return Err("Nothing was made.".to_owned()),
    };
    Ok(match cut_at {
        Some(whole) => format!("{text}\n(cut: the whole change has {whole} bytes)\n"),
        None => text,
    })
}

const GONE: &str = "The parts of the diff that reviewers were shown are gone.";

fn reviewed(
    run: &RunModel,
    review: &ReviewOpened,
    read: impl FnOnce(&str, Option<u64>, String) -> Diff,
) -> Diff {
    match shown_parts(run, review, diff::BYTES) {
        Some((text, cut_at)) => {
            read(&text, cut_at, format!("cat .archeflow/artifacts/{}/part-*.diff", run.id))
        }
        None => Diff::missing(GONE),
    }
}

/// What reviewers were shown, which may be in no commit: the diff is kept in parts, each a file of the run. With the size of
/// the whole, where only its beginning was read.
fn shown_parts(run: &RunModel, review: &ReviewOpened, most: usize) -> Option<(String, Option<u64>)> {
    let folder = run.repository.root.join(".archeflow/artifacts").join(&run.id);
    let (mut text, mut cut_at) = (String::new(), None);
    for part in &review.parts {
        let name = &part.artifact.name;
        let room = most.saturating_sub(text.len());
        let bytes = Some(()).filter(|()| names::valid_name(name) && part.bytes <= room as u64);
        match bytes.and_then(|()| files::read_capped(&folder.join(name), most as u64).ok()) {
            Some(bytes) => text.push_str(&String::from_utf8_lossy(&bytes)),
            None => {
                cut_at = Some(review.parts.iter().map(|part| part.bytes).sum());
                break;
            }
        }
    }
    (!text.is_empty()).then_some((text, cut_at))
}

/// Journals of a fleet are copied without commits. They are on the remote: behind its branch if the run landed, else kept there
/// for the run.
fn elsewhere(run: &RunModel, base: &str, commit: &str) -> String {
    let short = |id: &str| id.chars().take(12).collect::<String>();
    let refs = match run.story.overview.landed {
        Some(_) => String::new(),
        None => format!(" 'refs/archeflow/keep/{}/*:refs/archeflow/keep/{}/*'", run.id, run.id),
    };
    format!(
        "Its commits are on the repository's remote. In a clone of it: git fetch origin{refs} && git diff {}...{}",
        short(base),
        short(commit)
    )
}

fn missing(why: &str) -> Arc<Diff> {
    Arc::new(Diff::missing(why))
}

fn read(key: &Key, state: &Path) -> Diff {
    match diff_text(key, state, diff::BYTES) {
        Ok((text, cut_at, command)) => Diff::read(&text, cut_at, command),
        Err(why) => Diff::missing(why),
    }
}

/// With the size of the whole, where only its beginning was read, and the command that prints it.
fn diff_text(
    (root, base, commit): &Key,
    state: &Path,
    most: usize,
) -> Result<(String, Option<u64>, String), String> {
    let (Ok(from), Ok(to)) = (ObjectId::parse(base.as_bytes()), ObjectId::parse(commit.as_bytes())) else {
        return Err("The journal names no commits for it.".to_owned());
    };
    let repo = Repo::open(root, state, &GitEnv::of_process())
        .map_err(|error| format!("The repository can't be read: {error}"))?;
    let read = change::diff_text(&repo, &from, &to, most)
        .map_err(|error| format!("The commits are not in the repository any more: {error}"))?;
    Ok((read.text(), read.truncated_at, format!("git diff {from}...{to}")))
}
