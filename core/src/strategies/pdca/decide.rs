//! The phases are the shared steps; a fast run can become a standard one.

use crate::event::Conclusion;
use crate::model::{Participant, Workflow, team};
use crate::run::{Cycle, Run};
use crate::steps::{self, plan};
use crate::strategies::StrategyRules;

use super::Pdca;

impl StrategyRules for Pdca {
    fn seats_key(&self, workflow: Workflow) -> &'static str {
        workflow.name()
    }

    fn team(&self, workflow: Workflow) -> Vec<Participant> {
        team(workflow)
    }

    fn max_cycles(&self, of_workflow: u32) -> u32 {
        of_workflow
    }

    fn begin(&self, run: &Run) -> Vec<Conclusion> {
        plan::begin(run)
    }

    fn next(&self, run: &Run, cycle: &Cycle) -> Vec<Conclusion> {
        steps::phase(run, cycle)
    }

    fn upgrades(&self) -> bool {
        true
    }

    fn depth(&self, run: &Run) -> Workflow {
        run.current_workflow()
    }
}
