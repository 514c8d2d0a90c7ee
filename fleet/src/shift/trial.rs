//! Trials of evaluations on this worker. Each evaluation has a folder of its own with a state folder, so that nothing which is
//! remembered of other runs takes part, and with clones that are removed when their trial was reported.
//!
//! The command line of a trial is made here, out of what the order says. No word of the order becomes a flag.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use archeflow_core::model::Reason;
use archeflow_core::sprint::event::RunEnd;
use archeflow_core::sprint::queue::QueueItem;
use archeflow_host::eval::pack;
use archeflow_host::eval::run::{only_item, run_progress};
use archeflow_host::open::ProcessEnv;
use archeflow_host::platform::files as os;
use archeflow_host::platform::removal::remove_tree;
use archeflow_host::store::files as disk;

use super::patience::Patience;
use super::place::random;
use crate::bus::{Bus, BusError};
use crate::clones::Clones;
use crate::message::{FleetOrder, TrialPlayer, TrialWork};
use crate::{files, names};

/// An evaluation of which nothing was ordered for so long is removed when the worker starts.
const UNUSED: Duration = Duration::from_secs(14 * 86_400);
/// Touched by each order of an evaluation.
const USED: &str = "used";

const REPOS: &str = "repos";

/// The evaluations that this worker has trials of.
pub(super) struct Evaluations {
    folder: PathBuf,
    env: ProcessEnv,
    known: Mutex<BTreeMap<String, Arc<Evaluation>>>,
}

/// One of them, as its trials use it.
pub(super) struct Evaluation {
    folder: PathBuf,
    pub(super) clones: Clones,
}

impl Evaluations {
    pub(super) fn new(folder: PathBuf, env: ProcessEnv) -> Evaluations {
        Evaluations { folder, env, known: Mutex::default() }
    }

    /// Removes clones of trials that were under way when this worker was killed, but for those that it still holds, and
    /// evaluations that nobody has used for long. What can't be removed stays.
    pub(super) fn clean(&self, held: &[FleetOrder]) {
        let kept: BTreeSet<String> = held.iter().map(|order| Clones::name_of(&order.repository)).collect();
        for entry in entries(&self.folder) {
            let used = std::fs::metadata(entry.join(USED)).and_then(|data| data.modified()).ok();
            let age = used.and_then(|used| SystemTime::now().duration_since(used).ok());
            if age.is_some_and(|age| age > UNUSED) {
                let _ = remove_tree(&entry);
                continue;
            }
            let is_kept = |clone: &PathBuf| {
                clone.file_name().and_then(|name| name.to_str()).is_some_and(|name| kept.contains(name))
            };
            for clone in entries(&entry.join(REPOS)).filter(|clone| !is_kept(clone)) {
                let _ = remove_tree(&clone);
            }
        }
    }

    pub(super) fn of(&self, evaluation: &str) -> Result<Arc<Evaluation>, String> {
        let name: String = names::token(evaluation).chars().take(100).collect();
        let folder = self.folder.join(&name);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.entry(name).or_insert_with(|| {
            let of_user = self.env.variables.iter().filter(|(name, _)| name != "XDG_STATE_HOME");
            let state: (OsString, OsString) = ("XDG_STATE_HOME".into(), folder.join("state").into());
            let variables = of_user.cloned().chain([state]).collect();
            let env = ProcessEnv { variables, ..self.env.clone() };
            let clones = Clones::new(folder.join(REPOS), env);
            Arc::new(Evaluation { folder: folder.clone(), clones })
        });
        for part in ["state", REPOS, "arms", "agents"] {
            let path = folder.join(part);
            let made = os::private_directory().recursive(true).create(&path);
            made.map_err(|error| format!("{}: {error}", path.display()))?;
        }
        disk::write_atomic(&folder.join(USED), b"").map_err(|error| error.to_string())?;
        Ok(Arc::clone(found))
    }
}

/// A trial whose files are here.
pub(super) struct ReadyTrial {
    pub(super) item: QueueItem,
    /// Arguments for a run that begins.
    pub(super) said: Vec<OsString>,
    /// Arguments for a run that begins or is resumed.
    pub(super) always: Vec<OsString>,
    /// What is left of its time.
    pub(super) limit: Duration,
    /// It waits for its provider, and is to be asked to resume.
    pub(super) is_busy: bool,
}

/// Why a trial is not ready.
pub(super) enum NotReady {
    Bus(BusError),
    /// For the one who evaluates.
    Unusable(String),
}

impl From<String> for NotReady {
    fn from(why: String) -> NotReady {
        NotReady::Unusable(why)
    }
}

impl Evaluation {
    /// Brings here what the order names. `journal` is that of the run, if it has begun.
    pub(super) fn ready(
        &self,
        bus: &dyn Bus,
        patience: &Patience,
        run: &str,
        trial: &TrialWork,
        journal: &Path,
    ) -> Result<ReadyTrial, NotReady> {
        let arm = self.folder.join("arms").join(hash(&trial.arm)?);
        if !arm.exists() {
            let packed = fetched(bus, patience, run, &trial.arm)?;
            // Another order of the same arm may be here at the same time: the first one counts.
            let half = arm.with_file_name(format!("half-{}", random()));
            pack::unpack(&packed, &half).map_err(|why| format!("its arm is not accepted: {why}"))?;
            if std::fs::rename(&half, &arm).is_err() {
                let _ = remove_tree(&half);
            }
        }
        let agent = match &trial.agent {
            TrialPlayer::Named(agent) => format!("--agent={agent}").into(),
            TrialPlayer::Simulated(setup) => {
                // Trials of several arms have the same setup, and each removes its own.
                let place = self.agents(run);
                if !place.exists() {
                    let content = fetched(bus, patience, run, hash(setup)?)?;
                    disk::write_atomic(&place, &content).map_err(|error| error.to_string())?;
                }
                let mut agent = OsString::from("--agent=sim:");
                agent.push(&place);
                agent
            }
        };
        let tests: OsString = match &trial.test_command {
            Some(command) => format!("--test-command={command}").into(),
            None => "--no-tests".into(),
        };
        let progress = run_progress(journal);
        Ok(ReadyTrial {
            item: only_item(&trial.name, "", &trial.task),
            said: vec![agent, "--auto-merge".into(), tests],
            always: vec!["--config".into(), arm.into()],
            limit: Duration::from_millis(trial.limit_ms).saturating_sub(progress.active),
            is_busy: progress.is_busy,
        })
    }

    fn agents(&self, run: &str) -> PathBuf {
        self.folder.join("agents").join(format!("{}.json", names::token(run)))
    }

    /// Removes the files of a trial that was reported. What can't be removed is removed with the evaluation.
    pub(super) fn forget(&self, clone: &str, run: &str) {
        let _ = remove_tree(&self.clones.folder().join(clone));
        let _ = std::fs::remove_file(self.agents(run));
    }
}

/// A file that an order brings along.
fn fetched(bus: &dyn Bus, patience: &Patience, run: &str, hash: &str) -> Result<Vec<u8>, NotReady> {
    let found = patience.ask(|| files::get_for_order(bus, run, hash)).map_err(NotReady::Bus)?;
    found.ok_or_else(|| {
        let why = "the server has lost the files of the trial; evaluate again to send them";
        NotReady::Unusable(why.to_owned())
    })
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// Hashes become names of files, and come from elsewhere.
fn hash(text: &str) -> Result<&str, String> {
    let is_hash = text.len() == 64 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    if is_hash { Ok(text) } else { Err(format!("`{text}` is no hash of a file")) }
}

/// A run that was stopped at its limit, as it is reported.
pub(super) fn at_limit(end: RunEnd, limit: Duration) -> RunEnd {
    let has_ended = end.status.is_some() || end.stopped;
    if has_ended || Duration::from_millis(end.took_ms) < limit {
        return end;
    }
    let detail = "it reached the time limit of its task".to_owned();
    RunEnd { reason: Some(Reason::Budget), detail, ..end }
}

#[cfg(test)]
mod tests {
    use archeflow_host::sprint::local_crew::unstarted;

    use super::*;

    #[test]
    fn ev_152_only_hashes_become_names_of_files() {
        let good = "0123456789abcdef".repeat(4);
        assert_eq!(hash(&good), Ok(good.as_str()));
        for bad in ["", "..", "../../etc/passwd", &"A".repeat(64), &"a".repeat(63), &format!("/{good}")] {
            assert!(hash(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn ev_153_a_run_that_used_up_its_time_is_reported_so() {
        let limit = Duration::from_secs(1);
        for (took_ms, stopped, expected) in
            [(1_000, false, Some(Reason::Budget)), (999, false, None), (1_000, true, None)]
        {
            let end = RunEnd { took_ms, stopped, ..unstarted("r", String::new()) };
            assert_eq!(at_limit(end, limit).reason, expected, "{took_ms} {stopped}");
        }
    }
}
