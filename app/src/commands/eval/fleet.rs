//! `archeflow eval run --fleet`: the same evaluation, with its trials on the workers of a fleet.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use archeflow_core::eval::{EvalPlan, TrialKey};
use archeflow_fleet::bus::Bus;
use archeflow_fleet::conductor::{EvaluationFault, FleetEvaluation, FleetTrials, TrialRemotes, Trialling};
use archeflow_fleet::names;
use archeflow_fleet::nats::NatsBus;
use archeflow_host::eval::pack;
use archeflow_host::eval::run::EvalFolder;

use super::{ENVIRONMENT, cores};
use crate::args::EvalRunArgs;
use crate::commands::fleet::as_conductor;
use crate::failure::Failure;

/// Trials at a time, whatever the workers have slots for: each is a thread here.
const MOST: usize = 256;

/// A fleet that was joined to evaluate on it.
pub(super) struct JoinedEvaluation {
    bus: Arc<NatsBus>,
    lease: Duration,
    remotes: TrialRemotes,
}

impl JoinedEvaluation {
    /// Nothing without `--fleet`. An evaluation stays where it was begun: trials under way are known to this machine or to
    /// the fleet.
    pub(super) fn join(
        args: &EvalRunArgs,
        cwd: &Path,
        folder: &Path,
        has_begun: bool,
    ) -> Result<Option<JoinedEvaluation>, Failure> {
        let known = FleetEvaluation::read(folder).map_err(failed)?;
        let place = folder.display();
        let (Some(join), Some(remotes)) = (&args.fleet, &args.remotes) else {
            return match known {
                None => Ok(None),
                Some(known) => Err(Failure::usage(
                    format!("the evaluation in {place} was begun on a fleet"),
                    format!(
                        "Add --fleet and --remotes {}, or name another folder with --output.",
                        known.remotes
                    ),
                )),
            };
        };
        if has_begun && known.is_none() {
            return Err(Failure::usage(
                format!("the evaluation in {place} was begun on this machine"),
                "Leave out --fleet, or name another folder with --output.",
            ));
        }
        let remotes = TrialRemotes::open(remotes, cwd).map_err(failed)?;
        let link = as_conductor(join, &args.need, args.lease_seconds)?;
        Ok(Some(JoinedEvaluation { bus: Arc::new(link.bus), lease: link.lease, remotes }))
    }

    /// The arms as workers get them.
    pub(super) fn packed(folder: &EvalFolder, plan: &EvalPlan) -> Result<BTreeMap<String, Vec<u8>>, Failure> {
        let packed = plan.arms.iter().map(|arm| {
            let packed = pack::packed(&folder.arm(&arm.name)).map_err(|why| {
                Failure::usage(
                    format!("the arm {} can't be sent to workers: {why}", arm.name),
                    "An arm on a fleet has no hooks, and only settings that an approved repository may have.",
                )
            })?;
            Ok((arm.name.clone(), packed))
        });
        packed.collect()
    }

    /// Begins a session. It gives no order yet.
    pub(super) fn crew<'a>(
        &self,
        args: &EvalRunArgs,
        folder: &'a EvalFolder,
        arms: BTreeMap<String, Vec<u8>>,
        left: &[TrialKey],
    ) -> Result<FleetTrials<'a>, Failure> {
        let how = Trialling {
            folder,
            evaluation: FleetEvaluation::begin(folder.path(), &self.remotes).map_err(failed)?,
            remotes: self.remotes.clone(),
            needs: args.need.iter().cloned().collect(),
            lease: self.lease,
            arms,
            most: args.jobs.map_or(MOST, NonZeroUsize::get).min(MOST),
            spare: cores(),
        };
        FleetTrials::start(Arc::clone(&self.bus) as Arc<dyn Bus>, how, left).map_err(failed)
    }

    /// What the server keeps for reports is of no use any more. If it stays, it costs only its name.
    pub(super) fn forget_reports(&self, folder: &Path) {
        if let Ok(Some(known)) = FleetEvaluation::read(folder) {
            let _ = self.bus.remove_queue(&names::reports(&known.evaluation));
        }
    }
}

fn failed(fault: EvaluationFault) -> Failure {
    let text = fault.to_string();
    match fault {
        EvaluationFault::NoFolder(_) => Failure::usage(
            text,
            "Name a folder that this machine and all workers see at the same path, such as a network mount; or its file:// address.",
        ),
        EvaluationFault::NoRemotes { .. } => {
            Failure::usage(text, "Create the folder, and let this user and the workers write there.")
        }
        EvaluationFault::OtherRemotes { .. } => {
            Failure::usage(text, "Or name another folder for the evaluation with --output.")
        }
        EvaluationFault::File { .. } | EvaluationFault::Newer { .. } => Failure::new(
            ENVIRONMENT,
            "environment",
            text,
            "Put that right, then repeat the command: it resumes.",
        ),
        EvaluationFault::Bus(error) => error.into(),
    }
}
