//! The crew of an evaluation whose trials are performed by workers of a fleet.
//!
//! An evaluation has no log of its orders. Every trial has one number, made from its name, so what an earlier session left
//! open follows from the trials that are not over: their orders and reports are looked up on the server. A report is
//! acknowledged when the line of its trial is on disk. Copies of an order that different sessions give have different numbers
//! ([`FleetOrder::again`]), for which [`FleetEvaluation`] counts the sessions.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use archeflow_core::eval::TrialKey;
use archeflow_core::model::{Reason, Seq};
use archeflow_core::sprint::event::RunEnd;
use archeflow_core::sprint::run_id;
use archeflow_host::clock;
use archeflow_host::eval::run::{EvalFolder, TrialAgent, TrialCrew, TrialRun, TrialRunEnd};
use archeflow_host::git::fresh;
use archeflow_host::platform::machine;
use archeflow_host::platform::removal::remove_tree;
use archeflow_host::store::files as disk;
use serde::{Deserialize, Serialize};

use super::{Conducting, Shared, Unordered, rounds, unreported};
use crate::bus::{Bus, BusError};
use crate::journal::{self, Found, JournalFault};
use crate::message::{self, FleetOrder, Repository, TRIAL_FORMAT, TrialPlayer, TrialWork, Work};
use crate::{files, names};

/// In the folder of an evaluation.
const FILE: &str = "fleet.json";
const FORMAT: u32 = 1;
/// What orders of all trials are known as to budgets and accounts.
const PROJECT: &str = "evaluation";
const BRANCH: &str = "refs/heads/main";
/// Of a trial's name in the name of its run, before the part that makes it unique.
const WORDS: usize = 60;
const CONFIG: &str = "arm.json";
const AGENTS: &str = "agents.json";

#[derive(Debug, thiserror::Error)]
pub enum EvaluationFault {
    #[error("{path}: {why}")]
    File { path: String, why: String },
    #[error("{path} has the format {found}, and this version reads {FORMAT}: update archeflow")]
    Newer { path: String, found: u32 },
    #[error("the evaluation has its repositories in {known}: --remotes {known}")]
    OtherRemotes { known: String },
    #[error("--remotes {0}: repositories can only be created in a folder")]
    NoFolder(String),
    #[error("--remotes {place}: {why}")]
    NoRemotes { place: String, why: String },
    #[error(transparent)]
    Bus(#[from] BusError),
}

/// What an evaluation is called on its fleet, kept in the evaluation's folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetEvaluation {
    v: u32,
    /// Unique among all evaluations and sprints of the fleet.
    pub evaluation: String,
    /// Where its repositories are, as workers get it.
    pub remotes: String,
    /// How often it was begun or resumed.
    pub sessions: u64,
}

impl FleetEvaluation {
    /// Of an evaluation that was begun on a fleet.
    pub fn read(folder: &Path) -> Result<Option<FleetEvaluation>, EvaluationFault> {
        let path = folder.join(FILE);
        let fault = |why: String| EvaluationFault::File { path: path.display().to_string(), why };
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(fault(error.to_string())),
        };
        let known: FleetEvaluation =
            serde_json::from_slice(&text).map_err(|error| fault(error.to_string()))?;
        if known.v > FORMAT {
            return Err(EvaluationFault::Newer { path: path.display().to_string(), found: known.v });
        }
        Ok(Some(known))
    }

    /// Begins the next session, if repositories can be created. The folder must be this process' own.
    pub fn begin(folder: &Path, remotes: &TrialRemotes) -> Result<FleetEvaluation, EvaluationFault> {
        let path = folder.join(FILE);
        let fault = |why: String| EvaluationFault::File { path: path.display().to_string(), why };
        let mut next = match FleetEvaluation::read(folder)? {
            Some(known) if known.remotes != remotes.url => {
                return Err(EvaluationFault::OtherRemotes { known: known.remotes });
            }
            Some(known) => known,
            None => FleetEvaluation {
                v: FORMAT,
                evaluation: new_name().map_err(|error| fault(format!("no random number: {error}")))?,
                remotes: remotes.url.clone(),
                sessions: 0,
            },
        };
        next.sessions += 1;
        remotes.prepare(&next.evaluation)?;
        let text = serde_json::to_string_pretty(&next).unwrap_or_default();
        disk::write_atomic(&path, (text + "\n").as_bytes()).map_err(|error| fault(error.to_string()))?;
        Ok(next)
    }
}

fn new_name() -> io::Result<String> {
    let mut bytes = [0_u8; 6];
    machine::random(&mut bytes)?;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("{}-eval-{hex}", clock::date(clock::now())))
}

/// Where the repositories of trials are, for this machine and for workers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrialRemotes {
    typed: String,
    folder: PathBuf,
    url: String,
}

impl TrialRemotes {
    /// A folder or its `file://` address; all workers have to see it at the same place. It has to be there, so that a folder
    /// that was not mounted is noticed.
    pub fn open(typed: &str, cwd: &Path) -> Result<TrialRemotes, EvaluationFault> {
        let (path, is_url) = match typed.strip_prefix("file://") {
            Some(path) if path.starts_with('/') => (PathBuf::from(path), true),
            Some(_) => return Err(EvaluationFault::NoFolder(typed.to_owned())),
            None => {
                let has_host = typed.split('/').next().is_some_and(|first| first.contains(':'));
                if typed.is_empty() || typed.contains("://") || has_host {
                    return Err(EvaluationFault::NoFolder(typed.to_owned()));
                }
                (cwd.join(typed), false)
            }
        };
        let fault = |why: String| EvaluationFault::NoRemotes { place: typed.to_owned(), why };
        let folder = path.canonicalize().map_err(|error| fault(error.to_string()))?;
        if !folder.is_dir() {
            return Err(fault("it is no folder".to_owned()));
        }
        let Some(text) = folder.to_str() else { return Err(fault("its path is no UTF-8".to_owned())) };
        let url = if is_url { format!("file://{text}") } else { text.to_owned() };
        Ok(TrialRemotes { typed: typed.to_owned(), folder, url })
    }

    /// Makes the folder of an evaluation, so that one that can't be written is noticed before anything is ordered.
    fn prepare(&self, evaluation: &str) -> Result<(), EvaluationFault> {
        let made = fs::create_dir_all(self.folder.join(evaluation));
        made.map_err(|error| EvaluationFault::NoRemotes { place: self.typed.clone(), why: error.to_string() })
    }
}

/// What a session of an evaluation is like.
#[derive(Debug)]
pub struct Trialling<'a> {
    pub folder: &'a EvalFolder,
    pub evaluation: FleetEvaluation,
    pub remotes: TrialRemotes,
    /// What a worker must offer.
    pub needs: BTreeSet<String>,
    pub lease: Duration,
    /// Every arm by its name, packed.
    pub arms: BTreeMap<String, Vec<u8>>,
    /// The most trials under way.
    pub most: usize,
    /// How many more than the workers have slots for: those that are measured here.
    pub spare: usize,
}

/// Trials of an evaluation on the workers of a fleet.
pub struct FleetTrials<'a> {
    shared: Arc<Shared>,
    how: Trialling<'a>,
}

impl FleetTrials<'_> {
    /// Listens to workers from now on. `left` are all trials that are not over: what the server has of their orders and
    /// reports is found here.
    pub fn start<'a>(
        bus: Arc<dyn Bus>,
        how: Trialling<'a>,
        left: &[TrialKey],
    ) -> Result<FleetTrials<'a>, EvaluationFault> {
        let mut needs = how.needs.clone();
        needs.insert(message::exactly(env!("CARGO_PKG_VERSION")));
        let conducting = Conducting {
            sprint: how.evaluation.evaluation.clone(),
            session: how.evaluation.sessions,
            projects: how.folder.path().to_owned(),
            needs,
            said: Vec::new(),
            lease: how.lease,
            ledger: None,
            most: None,
        };
        let left = left.iter().map(|key| seq_of(&item_of(key))).collect();
        let shared = Arc::new(Shared::new(bus, conducting, None, left)?);
        rounds::start(&shared);
        Ok(FleetTrials { shared, how })
    }

    fn run_of(&self, key: &TrialKey) -> String {
        run_id(&self.how.evaluation.evaluation, &item_of(key), 1)
    }

    fn remote(&self, key: &TrialKey) -> PathBuf {
        let name = format!("{}.git", item_of(key));
        self.how.remotes.folder.join(&self.how.evaluation.evaluation).join(name)
    }

    /// Asks again while the server does not answer.
    fn until_answered<T>(&self, ask: impl Fn() -> Result<T, BusError>) -> Result<T, Unordered> {
        let mut answer = None;
        self.shared.until(|| match ask() {
            Err(BusError::NoAnswer(why) | BusError::Full(why)) => Err(format!("the server: {why}")),
            other => {
                answer = Some(other);
                Ok(())
            }
        })?;
        match answer {
            Some(Ok(answer)) => Ok(answer),
            Some(Err(error)) => Err(Unordered::Unusable(error.to_string())),
            None => Err(Unordered::Stopped),
        }
    }

    /// The journal of a run as the server has it.
    fn found(&self, run: &str) -> Result<Found, Unordered> {
        let read = || match journal::read(&*self.shared.bus, &names::run_journal(run)) {
            Ok(found) => Ok(Ok(found)),
            Err(JournalFault::Bus(error)) => Err(error),
            Err(fault) => Ok(Err(fault.to_string())),
        };
        self.until_answered(read)?.map_err(Unordered::Unusable)
    }

    /// The order of a trial that no worker has. Its repository is made for workers unless its run has begun.
    fn order(&self, trial: &TrialRun<'_>, name: &str, run: &str) -> Result<FleetOrder, Unordered> {
        self.shared.pass_gates(PROJECT, run, None)?;
        let (remote, unusable) = (self.remote(trial.key), Unordered::Unusable);
        let has_begun = self.found(run)?.lines > 0;
        if !has_begun || !remote.exists() {
            let made = fresh::bare_copy(trial.repository, &remote);
            made.map_err(|error| unusable(format!("no repository for workers: {error}")))?;
        }
        let base = fresh::tip(trial.repository).map_err(|error| unusable(error.to_string()))?;
        let bus = &*self.shared.bus;
        let put =
            |name: &str, bytes: &[u8]| self.until_answered(|| files::put_for_order(bus, run, name, bytes));
        let packed = self.how.arms.get(&trial.key.arm);
        let packed = packed.ok_or_else(|| unusable(format!("the arm {} is not known", trial.key.arm)))?;
        let agent = match trial.agent {
            TrialAgent::Named(agent) => TrialPlayer::Named(agent.clone()),
            TrialAgent::Simulated(file) => {
                let setup =
                    fs::read(file).map_err(|error| unusable(format!("{}: {error}", file.display())))?;
                TrialPlayer::Simulated(put(AGENTS, &setup)?)
            }
        };
        let work = TrialWork {
            name: name.to_owned(),
            task: trial.task.text.clone(),
            base: base.to_string(),
            arm: put(CONFIG, packed)?,
            agent,
            test_command: trial.task.visible.as_ref().map(|visible| visible.command.clone()),
            budget_usd: trial.task.dollars,
            limit_ms: u64::try_from(trial.task.limit.as_millis()).unwrap_or(u64::MAX),
        };
        let evaluation = &self.how.evaluation.evaluation;
        let url = format!("{}/{evaluation}/{name}.git", self.how.remotes.url);
        Ok(FleetOrder {
            v: TRIAL_FORMAT,
            sprint: evaluation.clone(),
            seq: seq_of(name),
            again: self.shared.again(),
            work: Work::Trial { trial: work },
            repository: Repository { name: name.to_owned(), url, branch: BRANCH.to_owned() },
            needs: self.shared.how.needs.clone(),
            said: Vec::new(),
            min_version: env!("CARGO_PKG_VERSION").to_owned(),
        })
    }

    /// Keeps the journal of a run here. One that the server does not have is not kept either.
    fn keep_journal(&self, key: &TrialKey, run: &str) -> Result<(), Unordered> {
        let (found, path) = (self.found(run)?, self.journal(key));
        let failed = |error: String| Unordered::Unusable(format!("{}: {error}", path.display()));
        if found.lines == 0 {
            return match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(error.to_string())),
                Ok(()) | Err(_) => Ok(()),
            };
        }
        disk::write_atomic(&path, &found.text).map_err(|error| failed(error.to_string()))
    }
}

impl Drop for FleetTrials<'_> {
    fn drop(&mut self) {
        self.shared.abandon();
    }
}

impl TrialCrew for FleetTrials<'_> {
    fn most(&self) -> usize {
        self.how.most.max(1)
    }

    /// Slots of workers that perform trials, and what is measured here meanwhile. One order is always given: it waits at the
    /// server until a worker takes it.
    fn room(&self) -> usize {
        let slots = self.shared.desk().dispatch.room(&self.shared.how.needs, self.shared.now());
        let slots = usize::try_from(slots).unwrap_or(usize::MAX);
        let room = if slots == 0 { 1 } else { slots.saturating_add(self.how.spare) };
        room.min(self.most())
    }

    fn run(&self, trial: &TrialRun<'_>) -> TrialRunEnd {
        let (name, run) = (item_of(trial.key), self.run_of(trial.key));
        let end = match self.shared.answer_to(seq_of(&name), || self.order(trial, &name, &run)) {
            Ok(end) => {
                self.shared.settle(PROJECT, &run, false, &end);
                end
            }
            Err(why) => unreported(&run, why),
        };
        let is_late = end.status.is_none() && end.reason == Some(Reason::Budget);
        let is_given_up = end.status.is_none() && end.reason == Some(Reason::AgentFailures);
        let goes_on = !is_late && !is_given_up;
        let RunEnd { mut detail, stopped, .. } = end;
        if !stopped {
            match self.keep_journal(trial.key, &run) {
                Ok(()) => {}
                Err(Unordered::Stopped) => detail = "it was stopped".to_owned(),
                Err(Unordered::Unusable(why)) => detail = why,
            }
        }
        TrialRunEnd { detail, is_late, goes_on }
    }

    /// The server has the journal of the run, whose name is that of the trial.
    fn begins_anew(&self) -> bool {
        false
    }

    fn journal(&self, key: &TrialKey) -> PathBuf {
        self.how.folder.trial(key).join(format!("{}.jsonl", self.run_of(key)))
    }

    /// The one that workers push to: it has everything that the journal names.
    fn repository(&self, key: &TrialKey) -> PathBuf {
        self.remote(key)
    }

    fn recorded(&self, key: &TrialKey) {
        let tokens = self.shared.desk().recorded(&[seq_of(&item_of(key))]);
        self.shared.bus.done_with(&tokens);
    }

    /// What can't be removed stays where it is, and is removed by the next session.
    fn remove(&self, key: &TrialKey) {
        let remote = self.remote(key);
        if remote.exists() {
            let _ = remove_tree(&remote);
        }
    }

    fn warnings(&self) -> Vec<String> {
        let mut desk = self.shared.desk();
        let lack = desk.lack.take().map(|lack| format!("{lack}; trials wait"));
        let said = std::mem::take(&mut desk.warnings);
        lack.into_iter().chain(said).collect()
    }

    fn stop(&self) {
        self.shared.desk().is_stopping = true;
    }

    fn abandon(&self) {
        self.shared.abandon();
    }
}

/// The name of a trial as that of a run, unique by its end.
fn item_of(key: &TrialKey) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let words = format!("{}-{}-{}", key.task, key.arm, key.repeat);
    let words: String = words.chars().map(plain).take(WORDS).collect();
    let whole = format!("{}+{}+{}", key.task, key.arm, key.repeat);
    let hash = blake3::hash(whole.as_bytes()).to_hex();
    format!("{}-{}", words.trim_matches('-'), hash.get(..12).unwrap_or_default())
}

/// The number of a trial's order: the same in all sessions, and another for every trial.
fn seq_of(item: &str) -> Seq {
    let hash = blake3::hash(item.as_bytes());
    let number = hash.as_bytes().iter().take(8).fold(0_u64, |number, byte| (number << 8) | u64::from(*byte));
    // 53 bits: readers of JSON that have floats only read it exactly. 0 is no line of a log.
    (number >> 11).max(1)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use archeflow_host::store::names::valid_name;

    use super::*;

    fn key(task: &str, arm: &str, repeat: u32) -> TrialKey {
        TrialKey { task: task.to_owned(), arm: arm.to_owned(), repeat }
    }

    #[test]
    fn ev_154_every_trial_has_one_name_and_one_number() {
        let keys = [
            key("a", "b", 1),
            key("a", "b", 2),
            key("a-b", "c", 1),
            key("a", "b-c", 1),
            key("a_b", "c", 1),
            key(&"long".repeat(40), "x", 1),
            key(&"long".repeat(40), "y", 1),
            key("_", ".", 1),
        ];
        let names: BTreeSet<String> = keys.iter().map(item_of).collect();
        let numbers: BTreeSet<Seq> = names.iter().map(|name| seq_of(name)).collect();
        assert_eq!((names.len(), numbers.len()), (keys.len(), keys.len()), "{names:?}");
        for name in &names {
            assert!(valid_name(&run_id("2026-11-18-eval-0123456789ab", name, 1)), "{name}");
            assert!(seq_of(name) < 1 << 53, "{name}");
        }
    }

    #[test]
    fn ev_155_repositories_are_made_in_folders_only() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().canonicalize().unwrap();
        let file = real.join("file");
        fs::write(&file, "").unwrap();
        let text = real.to_str().unwrap();
        let opened = TrialRemotes::open(text, Path::new("/")).unwrap();
        assert_eq!((opened.folder.as_path(), opened.url.as_str()), (real.as_path(), text));
        let opened = TrialRemotes::open(".", &real).unwrap();
        assert_eq!(opened.url, text);
        let opened = TrialRemotes::open(&format!("file://{text}"), Path::new("/")).unwrap();
        assert_eq!((opened.folder.as_path(), opened.url), (real.as_path(), format!("file://{text}")));
        for (typed, words) in [
            ("ssh://git@host/x", "only be created in a folder"),
            ("git@host:x", "only be created in a folder"),
            ("https://host/x", "only be created in a folder"),
            ("file://host/x", "only be created in a folder"),
            ("", "only be created in a folder"),
            ("nowhere", "No such file"),
            ("file", "no folder"),
        ] {
            let fault = TrialRemotes::open(typed, &real).unwrap_err().to_string();
            assert!(fault.contains(words), "{typed}: {fault}");
        }
    }

    #[test]
    fn ev_156_a_session_keeps_the_name_and_is_counted() {
        let dir = tempfile::tempdir().unwrap();
        let remotes = TrialRemotes::open(".", dir.path()).unwrap();
        assert_eq!(FleetEvaluation::read(dir.path()).unwrap(), None);
        let first = FleetEvaluation::begin(dir.path(), &remotes).unwrap();
        let second = FleetEvaluation::begin(dir.path(), &remotes).unwrap();
        assert_eq!((first.sessions, second.sessions), (1, 2));
        assert_eq!(first.evaluation, second.evaluation);
        fs::create_dir(dir.path().join("other")).unwrap();
        let other = TrialRemotes::open("other", dir.path()).unwrap();
        assert!(FleetEvaluation::begin(dir.path(), &other).is_err());
        fs::write(dir.path().join(FILE), r#"{"v":2,"evaluation":"x","remotes":".","sessions":1}"#).unwrap();
        assert!(FleetEvaluation::read(dir.path()).unwrap_err().to_string().contains("update"));
    }
}
