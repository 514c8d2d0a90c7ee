//! How a pipeline is shown: its phases have names of their own (AF-192).

use crate::model::{Phase, Strategy, reviews_quality};
use crate::run::Run;
use crate::strategies::StrategyView;

use super::Pipeline;

impl StrategyView for Pipeline {
    fn title(&self) -> &'static str {
        "ArcheFlow Pipeline"
    }

    fn subtitle(&self, _: &Run) -> String {
        "Strategy: pipeline".to_owned()
    }

    fn label(&self, _: &'static str) -> &'static str {
        Strategy::Pipeline.name()
    }

    fn phase(&self, phase: Phase, archetype: &str) -> &'static str {
        match phase {
            Phase::Plan => "Plan",
            Phase::Do => "Implement",
            Phase::Check if reviews_quality(archetype) => "Quality",
            Phase::Check => "Spec",
            Phase::Act => "Verify",
        }
    }
}
