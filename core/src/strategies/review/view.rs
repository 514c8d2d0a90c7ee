//! How a review is shown: its cycles are the parts of a change.

use crate::event::{CycleBoundary, NextAction};
use crate::model::{Outcome, Reason, RunStatus, Strategy};
use crate::projections::view::Tone;
use crate::run::Run;
use crate::strategies::StrategyView;

use super::ReviewStrategy;

impl StrategyView for ReviewStrategy {
    fn title(&self) -> &'static str {
        "ArcheFlow Review"
    }

    fn subtitle(&self, run: &Run) -> String {
        let names: Vec<String> = run.seats().iter().map(|seat| seat.archetype.clone()).collect();
        format!("Reviewers: {}", names.join(", "))
    }

    fn label(&self, _: &'static str) -> &'static str {
        Strategy::Review.name()
    }

    fn cycle_heading(&self, number: u32, all: u32) -> String {
        format!("Part {number} of {all}")
    }

    fn boundary(&self, end: &CycleBoundary) -> Option<(&'static str, Tone)> {
        Some(match end.next_action {
            NextAction::CycleBack => ("This part", Tone::Plain),
            NextAction::Merge | NextAction::Stop => ("The last part", Tone::Plain),
        })
    }

    fn next_steps(&self, run_id: &str, run: &Run, outcome: &Outcome) -> Vec<(String, &'static str)> {
        let answer = || (format!("archeflow answer {run_id} \"…\""), "answer the question and continue");
        let discard = || (format!("archeflow discard {run_id}"), "give it up, keeping the work under a ref");
        let resume = || (format!("archeflow resume {run_id}"), "try again from where it stopped");
        let parked = run.complete.as_ref().is_some_and(|complete| complete.reopens_at.is_some());
        let wait = || {
            (format!("archeflow resume {run_id} --wait"), "resume as soon as the account is available again")
        };
        let result = || (format!("archeflow review --run {run_id}"), "see the findings again, in any format");
        match (outcome.status, outcome.reason) {
            (RunStatus::AwaitingAnswer, _) => vec![answer(), discard()],
            (RunStatus::Failed, _) => vec![resume(), result()],
            (_, Reason::ProviderBusy) if parked => vec![wait(), result()],
            (_, Reason::ProviderBusy | Reason::NotSignedIn | Reason::AgentFailures) => {
                vec![resume(), result()]
            }
            (_, Reason::Budget) => {
                let more = format!("archeflow continue {run_id} --one-more-cycle --budget <usd>");
                vec![(more, "go on with the parts that are left"), result()]
            }
            (_, _) => vec![result()],
        }
    }
}
