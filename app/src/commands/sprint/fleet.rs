//! `archeflow sprint run --fleet`: the same loop, with the workers of a fleet as its crew.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use archeflow_fleet::bus::Bus;
use archeflow_fleet::conductor::{Conducting, FleetCrew, kept_log};
use archeflow_fleet::journal::{Found, JournalFault};
use archeflow_fleet::nats::NatsBus;
use archeflow_fleet::sprint_log::SprintLog;
use archeflow_host::platform::machine;
use archeflow_host::sprint::opening::{self, OpenedSprint};
use archeflow_host::sprint::queue::QueueFolder;

use crate::args::SprintRun;
use crate::commands::fleet::as_conductor;
use crate::failure::Failure;
use crate::render::text::safe_line;

/// A fleet that was joined as its conductor.
pub(super) struct JoinedFleet {
    bus: Arc<NatsBus>,
    name: String,
    lease: Duration,
}

pub(super) fn join(file: &Path, args: &SprintRun) -> Result<JoinedFleet, Failure> {
    let joined = as_conductor(file, &args.need, args.lease_seconds)?;
    Ok(JoinedFleet { bus: Arc::new(joined.bus), name: joined.name, lease: joined.lease })
}

impl JoinedFleet {
    /// The sprint that is continued, or a new one. What the server has of its log counts: another conductor may have
    /// continued it.
    pub(super) fn open(&self, place: &QueueFolder, taken: Option<&str>) -> Result<OpenedSprint, Failure> {
        if let Some(id) = taken {
            let found = self.log_of(id)?;
            if found.lines == 0 {
                return Err(Failure::usage(
                    format!("the fleet's server has no sprint {}", safe_line(id)),
                    "Name it as the conductor prints it, e.g. --take-over 2026-11-18-fleet-101500-0a1b2c",
                ));
            }
            let opened = opening::open_as_kept(place, id, found.text)?;
            if opened.sprint.end.is_some() {
                return Err(Failure::usage(format!("{} has ended", safe_line(id)), ""));
            }
            return Ok(opened);
        }
        loop {
            let opened = opening::open_of_fleet(place)?;
            let id = opened.journal.run_id().to_owned();
            drop(opened);
            let opened = opening::open_as_kept(place, &id, self.log_of(&id)?.text)?;
            // Else another conductor has ended it, and now the log here says so too.
            if opened.sprint.end.is_none() {
                return Ok(opened);
            }
        }
    }

    pub(super) fn crew(
        &self,
        args: &SprintRun,
        opened: &OpenedSprint,
        projects: &Path,
        said: Vec<String>,
    ) -> Result<FleetCrew, Failure> {
        let sprint = opened.journal.run_id();
        let mut random = [0; 8];
        machine::random(&mut random)
            .map_err(|error| Failure::new(21, "random", format!("no random number: {error}"), ""))?;
        let hex: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let session = format!("{}-{hex}", self.name);
        let bus = Arc::clone(&self.bus) as Arc<dyn Bus>;
        let found = self.log_of(sprint)?;
        let log = SprintLog::start(Arc::clone(&bus), sprint, &session, found, opened.journal.path());
        let how = Conducting {
            sprint: sprint.to_owned(),
            session: opened.sprint.fence + 1,
            projects: projects.to_owned(),
            needs: args.need.iter().cloned().collect::<BTreeSet<String>>(),
            said,
            lease: self.lease,
            ledger: args.ledger.clone(),
            most: args.slots,
        };
        FleetCrew::new(bus, how, log, &opened.sprint.open).map_err(Failure::from)
    }

    fn log_of(&self, sprint: &str) -> Result<Found, Failure> {
        kept_log(&*self.bus, sprint).map_err(|fault| match fault {
            JournalFault::Bus(error) => error.into(),
            JournalFault::Fenced { .. } | JournalFault::Local(_) | JournalFault::Broken { .. } => {
                Failure::new(21, "unreadable", fault.to_string(), "")
            }
        })
    }
}
