//! The runs of a fleet, seen from any machine with a person's or a conductor's join file. Its journals are copied to this
//! machine and only looked at: nothing here decides or changes anything.

pub(crate) mod list;
pub(crate) mod status;

use std::path::{Path, PathBuf};
use std::time::Duration;

use archeflow_core::model::Money;
use archeflow_core::rules::run_names::{self, Meaning, NamedRun, RunState};
use archeflow_core::run::Run;
use archeflow_core::text::shell_word;
use archeflow_fleet::bus::BusError;
use archeflow_fleet::join::{FleetRole, JoinFile};
use archeflow_fleet::mirror::{Mirror, MirrorError, MirroredRun};
use archeflow_fleet::nats::{NatsBus, NatsOptions};
use archeflow_host::store::journal::Journal;
use archeflow_host::store::places::Places;
use archeflow_host::{clock, log};

use crate::args::FleetViewArgs;
use crate::commands::list::ago;
use crate::commands::{naming, process_env};
use crate::failure::Failure;
use crate::render::text::safe_line;

/// How long a server may take for one answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often a server is asked while somebody looks.
pub(crate) const EVERY: Duration = Duration::from_secs(1);

/// The copies of a fleet's journals, as new as they could be made.
pub(crate) struct FleetView {
    pub(crate) mirror: Mirror,
    /// The join file, as it was named.
    file: PathBuf,
    /// Nothing with `--offline`.
    bus: Option<NatsBus>,
}

impl FleetView {
    /// The fleet that a command is about, if it is about one.
    pub(crate) fn asked_for(args: &FleetViewArgs) -> Result<Option<FleetView>, Failure> {
        args.fleet.as_deref().map(|file| FleetView::open(file, args.offline)).transpose()
    }

    pub(crate) fn open(file: &Path, offline: bool) -> Result<FleetView, Failure> {
        let join = JoinFile::read(file)?;
        match join.role {
            FleetRole::Person | FleetRole::Conductor => {}
            FleetRole::Worker | FleetRole::Serve => {
                return Err(Failure::usage(
                    format!("the join file {} is for a {}, which shows nothing", file.display(), join.role),
                    "Make one for a person where the server is: archeflow fleet add person <name>",
                ));
            }
        }
        let state = Places::state_dir_made_elsewhere(&process_env()?.places())?;
        let mirror = Mirror::open(&state, &join).map_err(|error| failed(&error))?;
        let mut view = FleetView { mirror, file: file.to_owned(), bus: None };
        if offline {
            match view.mirror.asked_at() {
                Some(at) => tell!("Read from the server {}.", ago(clock::now(), at)),
                None => {
                    return Err(Failure::usage(
                        "nothing was read from this fleet's server yet",
                        "Omit --offline.",
                    ));
                }
            }
            return Ok(view);
        }
        let options = NatsOptions { limit: PATIENCE, ..NatsOptions::default() };
        let bus = NatsBus::connect(&join, options).map_err(|error| view.with_age(error.into()))?;
        view.bus = Some(bus);
        view.refresh()?;
        Ok(view)
    }

    /// Reads what is new. Says whether anything was.
    pub(crate) fn refresh(&self) -> Result<bool, Failure> {
        let Some(bus) = &self.bus else { return Ok(false) };
        let done = self.mirror.refresh(bus).map_err(|error| self.with_age(failed(&error)))?;
        Ok(done.messages + done.replaced > 0)
    }

    /// Brings the artifacts of a run that are not here yet beside the copy of its journal.
    pub(crate) fn bring_artifacts(&self, run: &str) -> Result<(), String> {
        match &self.bus {
            Some(bus) => self.mirror.bring_artifacts(bus, run).map(drop).map_err(|error| error.to_string()),
            None => Err("the server is not asked with --offline".to_owned()),
        }
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.bus.is_some()
    }

    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// Reads what is new every second, until the process ends.
    pub(crate) fn follow(&self) {
        let mut is_away = false;
        loop {
            std::thread::sleep(EVERY);
            is_away = self.refresh_or_say(is_away);
        }
    }

    /// Says once that the server is away, and returns whether it is.
    pub(crate) fn refresh_or_say(&self, was_away: bool) -> bool {
        match self.refresh() {
            Ok(_) => {
                if was_away {
                    tell!("note: the fleet's server answers again");
                }
                false
            }
            Err(failure) => {
                if !was_away {
                    tell!("note: {}; asked again every second", safe_line(&failure.message));
                }
                true
            }
        }
    }

    /// What could be shown all the same.
    fn with_age(&self, mut failure: Failure) -> Failure {
        if let Some(at) = self.mirror.asked_at() {
            let words = format!("What was read {} is shown with --offline.", ago(clock::now(), at));
            failure.hint = format!("{} {words}", failure.hint).trim_start().to_owned();
        }
        failure
    }

    /// `--fleet <file>`, for commands that are proposed.
    pub(crate) fn flag(&self) -> String {
        format!("--fleet {}", shell_word(&self.file.display().to_string()))
    }

    /// All runs, the one with the newest line last.
    pub(crate) fn runs(&self) -> Result<Vec<FleetRun>, Failure> {
        let mut runs: Vec<FleetRun> =
            self.mirror.runs().map_err(|error| failed(&error))?.into_iter().map(FleetRun::of).collect();
        runs.sort_by(|one, other| (one.at, &one.id).cmp(&(other.at, &other.id)));
        Ok(runs)
    }

    /// The run that is named, or else the newest.
    pub(crate) fn run(&self, name: Option<&str>) -> Result<FleetRun, Failure> {
        let mut runs = self.runs()?;
        let named = |run: &FleetRun| NamedRun {
            id: run.id.clone(),
            task: run.task.clone(),
            state: RunState::Closed,
            asks: false,
        };
        let known: Vec<NamedRun> = runs.iter().map(named).collect();
        let at = match name.map(|name| (name, run_names::resolve(name, &known))) {
            None => known.len().checked_sub(1),
            Some((_, Meaning::One(at))) => Some(at),
            Some((name, Meaning::Several(found))) => {
                return Err(naming::several("run", &format!("'{name}' fits"), &known, &found));
            }
            Some((name, Meaning::None(near))) => {
                let all = || format!("What there is: archeflow list {}", self.flag());
                let hint = naming::did_you_mean(&known, &near).unwrap_or_else(all);
                let message = format!("the fleet has no run '{}'", safe_line(name));
                return Err(Failure::usage(message, hint));
            }
        };
        let Some(at) = at else {
            return Err(Failure::usage(
                "the fleet has no runs yet",
                "A conductor starts them: archeflow sprint run --fleet <file>",
            ));
        };
        if name != Some(runs[at].id.as_str()) {
            naming::chosen(&known[at]);
        }
        Ok(runs.swap_remove(at))
    }
}

/// A run of the fleet, as lists show it.
#[derive(Debug, Clone)]
pub(crate) struct FleetRun {
    pub(crate) id: String,
    pub(crate) repository: String,
    pub(crate) worker: String,
    pub(crate) status: String,
    pub(crate) task: String,
    pub(crate) ts: String,
    pub(crate) at: u64,
    pub(crate) cost: Money,
    /// Why it can't be read.
    pub(crate) broken: Option<String>,
    pub(crate) path: PathBuf,
}

impl FleetRun {
    fn of(run: MirroredRun) -> FleetRun {
        let entry = run.entry;
        let (status, task, ts) = match entry {
            Some(entry) if entry.reverted_at.is_some() && entry.status == "merged" => {
                ("merged, reverted".to_owned(), entry.task, entry.ts)
            }
            Some(entry) => (entry.status, entry.task, entry.ts),
            None => ("unreadable".to_owned(), String::new(), String::new()),
        };
        FleetRun {
            at: if ts.is_empty() { 0 } else { clock::read(&ts) },
            id: run.id,
            repository: run.project,
            worker: worker_of(&run.session).to_owned(),
            status,
            task,
            ts,
            cost: run.spent,
            broken: run.broken,
            path: run.path,
        }
    }

    /// Where a command about it has to be typed.
    pub(crate) fn place(&self) -> String {
        let worker = if self.worker.is_empty() { "its worker" } else { &self.worker };
        format!("Commands about this run are typed on {worker}, in its clone of {}.", self.repository)
    }

    /// The folder of its project among the copies.
    pub(crate) fn root(&self) -> &Path {
        self.path.ancestors().nth(3).unwrap_or(&self.path)
    }

    pub(crate) fn fold(&self) -> Result<Run, Failure> {
        Ok(log::fold(&Journal::read(&self.path)?)?)
    }
}

/// A session is named after its worker, with something that makes it unique behind a sign that names of members do not have.
fn worker_of(session: &str) -> &str {
    session.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').next().unwrap_or_default()
}

fn failed(error: &MirrorError) -> Failure {
    match error {
        MirrorError::Bus(BusError::Denied(_)) => Failure::new(
            30,
            "environment",
            error.to_string(),
            "Use the join file of a person: archeflow fleet add person <name>",
        ),
        MirrorError::Newer(_) => {
            Failure::new(30, "environment", error.to_string(), "Update archeflow, or remove the folder.")
        }
        MirrorError::Bus(_) | MirrorError::Files(_) | MirrorError::Lock(_) => {
            Failure::new(30, "environment", error.to_string(), "")
        }
    }
}
