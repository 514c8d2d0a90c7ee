//! System shadows (AF-140..AF-146): what goes wrong between the agents and belongs to none of them. Looked for at
//! the boundaries of the phases; one file each.
//!
//! Deliberately absent: the escalation steps. They are in `steps`; here are the checks and the texts.

mod analysis_paralysis;
mod broken_window;
mod cargo_cult;
mod echo_chamber;
mod gold_plating;
mod scope_creep;
mod tunnel_vision;

pub use analysis_paralysis::AnalysisParalysis;
pub use echo_chamber::{EchoChamber, agrees_on_evidence};
pub use scope_creep::{ScopeCreep, ScopeLevel};
pub use tunnel_vision::TunnelVision;

use crate::event::Tracked;
use crate::model::{
    Change, Finding, Lesson, Overlap, Prior, Proposal, Review, Sighting, SystemShadow, Verdict, Workflow,
};
use crate::settings::settings;

settings! {
    /// Thresholds of the system shadows (AF-140..AF-147).
    pub struct SystemShadows at "system_shadows." in (run.system_shadows) {
        tunnel_vision: TunnelVision = TunnelVision::default();
        echo_chamber: EchoChamber = EchoChamber::default();
        /// AF-143.
        gold_plating: Option<u32> = Some(1), "gold_plating", Limit(1, 1_000), GuardedAbove,
            "At least N unneeded fixes while a CRITICAL stayed open.";
        analysis_paralysis: AnalysisParalysis = AnalysisParalysis::default();
        /// AF-145.
        cargo_cult: Option<u32> = Some(1), "cargo_cult", Limit(1, 1_000), GuardedAbove,
            "At least N lessons that were given and came back as findings.";
        cargo_cult_percent: u32 = 50, "cargo_cult_percent", Whole(1, 100), GuardedAbove,
            "Least word overlap of a finding and the lesson it repeats, in percent of the shorter.";
        /// AF-146.
        broken_window: Option<u32> = Some(3), "broken_window", Limit(1, 1_000), GuardedAbove,
            "At least N WARNINGs left open by consecutive runs.";
        scope_creep: ScopeCreep = ScopeCreep::default();
    }
}

/// The state of a run at a boundary. All from the log.
#[derive(Debug, Clone)]
pub struct Situation<'a> {
    pub workflow: Workflow,
    /// Reviewers that answered in this cycle.
    pub reviews: Vec<(&'a str, &'a Review, Verdict)>,
    pub change: Option<&'a Change>,
    pub proposal: Option<&'a Proposal>,
    /// How long the agents of each phase took.
    pub check_ms: u64,
    pub plan_ms: u64,
    pub do_ms: u64,
    /// In the cycle, the mini-Explorer included.
    pub explorer_starts: u32,
    /// Open at the end of the last cycle.
    pub open_before: &'a [Tracked],
    /// What the Maker reports about them.
    pub maker_prior: &'a [Prior],
    /// Told in this run.
    pub lessons: &'a [Lesson],
    /// Findings of this cycle that still count as more than advice.
    pub grave: Vec<&'a Finding>,
    /// WARNINGs left open by the runs just before, and by this one.
    pub deferred_warnings: u32,
    /// How findings are compared.
    pub overlap: Overlap,
}

type SystemSightings = Vec<(SystemShadow, Sighting)>;

/// Scope creep, gold plating, analysis paralysis; in each the most severe trigger first.
pub fn after_do(now: &Situation<'_>, policy: &SystemShadows) -> SystemSightings {
    let mut seen = named(SystemShadow::ScopeCreep, scope_creep::check(now, &policy.scope_creep));
    seen.extend(named(SystemShadow::GoldPlating, gold_plating::check(now, policy.gold_plating)));
    let paralysis = analysis_paralysis::check(now, &policy.analysis_paralysis);
    seen.extend(named(SystemShadow::AnalysisParalysis, paralysis));
    seen
}

/// Tunnel vision, echo chamber, cargo cult.
pub fn after_check(now: &Situation<'_>, policy: &SystemShadows) -> SystemSightings {
    let mut seen = named(SystemShadow::TunnelVision, tunnel_vision::check(now, &policy.tunnel_vision));
    seen.extend(named(SystemShadow::EchoChamber, echo_chamber::check(now, &policy.echo_chamber)));
    let cult = cargo_cult::check(now, policy.cargo_cult, policy.cargo_cult_percent);
    seen.extend(named(SystemShadow::CargoCult, cult));
    seen
}

/// Broken window.
pub fn at_end(now: &Situation<'_>, policy: &SystemShadows) -> SystemSightings {
    named(SystemShadow::BrokenWindow, broken_window::check(now, policy.broken_window))
}

/// The text for the agent or the person concerned.
pub fn remedy(shadow: SystemShadow, sighting: &Sighting) -> String {
    let action = match shadow {
        SystemShadow::TunnelVision => tunnel_vision::REMEDY,
        SystemShadow::EchoChamber => echo_chamber::remedy(&sighting.trigger),
        SystemShadow::GoldPlating => gold_plating::REMEDY,
        SystemShadow::AnalysisParalysis => analysis_paralysis::REMEDY,
        SystemShadow::CargoCult => cargo_cult::REMEDY,
        SystemShadow::BrokenWindow => broken_window::REMEDY,
        SystemShadow::ScopeCreep => scope_creep::REMEDY,
    };
    format!("{}. {action}", sighting.detail)
}

fn named(shadow: SystemShadow, sightings: impl IntoIterator<Item = Sighting>) -> SystemSightings {
    sightings.into_iter().map(|sighting| (shadow, sighting)).collect()
}
