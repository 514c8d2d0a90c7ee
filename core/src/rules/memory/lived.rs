//! What a finished run is worth remembering for, read out of its log.

use std::collections::{BTreeMap, BTreeSet};

use crate::event::{AgentStart, CycleBoundary, Entry, Past, RunComplete, RunStart, ShadowDetected, Tracked};
use crate::model::{Policy, RunStatus, SYSTEM, Severity, SystemShadow};

/// The facts of one run that memory is made of.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lived {
    pub run_id: String,
    /// When it ended, as it is written.
    pub ts: String,
    pub domain: String,
    /// How it ended last.
    pub status: Option<RunStatus>,
    pub past: Past,
    pub policy: Policy,
    /// At least one cycle was reviewed to its end.
    pub reviewed: bool,
    /// All agents that were started.
    pub sent: BTreeSet<String>,
    /// Every finding that was followed, with the longest time it was open.
    pub findings: Vec<Tracked>,
    /// Those of them that are gone at the end.
    pub resolved: Vec<Tracked>,
    /// WARNINGs open at the end.
    pub warnings: u32,
    /// Lessons that were injected and whose finding came back all the same (AF-145).
    pub blamed: BTreeSet<String>,
    /// Warnings have been put off for too long (AF-146).
    pub broken_window: bool,
}

impl Lived {
    pub fn of(run_id: &str, ts: &str, log: &[Entry]) -> Lived {
        let mut lived = Lived { run_id: run_id.to_owned(), ts: ts.to_owned(), ..Lived::default() };
        let mut found: BTreeMap<String, Tracked> = BTreeMap::new();
        let mut open: Vec<Tracked> = Vec::new();
        for entry in log {
            if let Some(start) = entry.event.body::<RunStart>() {
                lived.domain = start.domain.name().to_owned();
                lived.past = start.past.clone();
                lived.policy = start.config.clone();
            }
            if let Some(start) = entry.event.body::<AgentStart>() {
                lived.sent.insert(start.archetype.clone());
            }
            if let Some(boundary) = entry.event.body::<CycleBoundary>() {
                for tracked in &boundary.open {
                    let longest = found.get(&tracked.id).map_or(0, |before| before.cycles_open);
                    let cycles_open = tracked.cycles_open.max(longest);
                    found.insert(tracked.id.clone(), Tracked { cycles_open, ..tracked.clone() });
                }
                open.clone_from(&boundary.open);
                lived.reviewed = true;
            }
            if let Some(shadow) = entry.event.body::<ShadowDetected>().filter(|one| one.archetype == SYSTEM) {
                match SystemShadow::parse(&shadow.shadow) {
                    Some(SystemShadow::CargoCult) => lived.blamed.extend([shadow.target.clone()]),
                    Some(SystemShadow::BrokenWindow) => lived.broken_window = true,
                    _ => {}
                }
            }
            if let Some(complete) = entry.event.body::<RunComplete>() {
                lived.status = Some(complete.status);
            }
        }
        let is_open = |tracked: &Tracked| open.iter().any(|other| other.id == tracked.id);
        lived.resolved = found.values().filter(|tracked| !is_open(tracked)).cloned().collect();
        let warnings = open.iter().filter(|tracked| tracked.severity == Severity::Warning).count();
        lived.warnings = u32::try_from(warnings).unwrap_or(u32::MAX);
        lived.findings = found.into_values().collect();
        lived
    }

    /// A run that waits for an answer, or only planned, has not been judged yet; and where there was no review, nothing
    /// was seen and nothing was missing.
    pub fn is_over(&self) -> bool {
        let over = match self.status {
            Some(
                RunStatus::Merged
                | RunStatus::AwaitingMerge
                | RunStatus::Stopped
                | RunStatus::Failed
                | RunStatus::WiggumBreak,
            ) => true,
            Some(RunStatus::AwaitingAnswer | RunStatus::DryRun | RunStatus::Reviewed) | None => false,
        };
        over && self.reviewed
    }

    /// What never landed was never resolved in the project.
    pub fn landed(&self) -> bool {
        self.status == Some(RunStatus::Merged)
    }

    /// The lessons injected into prompts of agents that were started, each with these agents.
    pub fn injected_lessons(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut told: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (archetype, ids) in self.past.told.iter().filter(|(archetype, _)| self.sent.contains(*archetype))
        {
            for id in ids {
                told.entry(id).or_default().push(archetype);
            }
        }
        told
    }
}
