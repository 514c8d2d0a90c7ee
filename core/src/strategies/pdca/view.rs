//! How a plain run is shown.

use crate::run::Run;
use crate::strategies::StrategyView;

use super::Pdca;

impl StrategyView for Pdca {
    fn title(&self) -> &'static str {
        "ArcheFlow Run"
    }

    fn subtitle(&self, run: &Run) -> String {
        let workflow = run.current_workflow().name();
        format!("Workflow: {workflow} | Cycle: {}/{}", run.number().max(1), run.max_cycles)
    }

    fn label(&self, workflow: &'static str) -> &'static str {
        workflow
    }
}
