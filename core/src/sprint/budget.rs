//! One budget for all runs of a sprint, and what a project may take out of it (I4, BX-23).
//!
//! What a run under way may still spend is promised to it and counts as gone. A share is a ceiling, not a reserve:
//! projects without a share have no cap, and what a project leaves is there for the others.

use std::collections::BTreeMap;

use super::event::UnfinishedRun;
use super::fold::{ItemStage, ItemState, Sprint};
use super::queue::QueueItem;
use crate::model::{Money, Workflow};

/// The money of one project, or of all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SprintBudget {
    pub spent: Money,
    /// Reserved for running runs, beyond what they have spent.
    pub promised: Money,
    pub most: Option<Money>,
}

impl SprintBudget {
    /// Nothing if there is no bound.
    pub fn left(&self) -> Option<Money> {
        let most = self.most?;
        Some(Money(most.0.saturating_sub(self.spent.0).saturating_sub(self.promised.0)))
    }

    /// In percent of what there is, rounded down.
    pub fn percent(&self) -> Option<u64> {
        let most = self.most.filter(|most| *most > Money::ZERO)?;
        u64::try_from(u128::from(self.spent.0) * 100 / u128::from(most.0)).ok()
    }
}

pub fn whole(sprint: &Sprint) -> SprintBudget {
    SprintBudget { most: sprint.policy.budget_usd, ..add_up(sprint, |_| true) }
}

pub fn of_project(sprint: &Sprint, project: &str) -> SprintBudget {
    SprintBudget { most: share(sprint, project), ..add_up(sprint, |other| other == project) }
}

/// Every project in which something was spent or promised, or that has a share.
pub fn by_project(sprint: &Sprint) -> BTreeMap<&str, SprintBudget> {
    let spent = sprint.projects.values();
    let running = sprint.ours().map(|known| &known.item.project);
    let names = spent.chain(running).chain(sprint.policy.shares.keys());
    names.map(|project| (project.as_str(), of_project(sprint, project))).collect()
}

/// What a run of this project may spend: an equal part of what is left for as many as may still begin, and not more
/// than is left of the project's share.
pub fn allowance(sprint: &Sprint, project: &str) -> Option<Money> {
    Some(Allowances::of(sprint)?.of_project(project))
}

/// The same for every project, added up once.
#[derive(Debug)]
pub struct Allowances<'a> {
    sprint: &'a Sprint,
    part: u64,
    projects: BTreeMap<&'a str, SprintBudget>,
}

impl<'a> Allowances<'a> {
    /// Nothing if there is no bound.
    pub fn of(sprint: &'a Sprint) -> Option<Allowances<'a>> {
        sprint.policy.budget_usd?;
        let mut projects: BTreeMap<&str, SprintBudget> = BTreeMap::new();
        for (run_id, money) in &sprint.spent {
            let project = sprint.projects.get(run_id).map_or("", String::as_str);
            let budget = projects.entry(project).or_default();
            budget.spent = [budget.spent, *money].into_iter().sum();
        }
        let mut running = 0;
        for known in sprint.items.values().filter(|known| is_under_way(known)) {
            running += u64::from(known.stand == ItemStage::Running);
            let budget = projects.entry(&known.item.project).or_default();
            let promised = [Some(budget.promised), promise(sprint, known)];
            budget.promised = promised.into_iter().flatten().sum();
        }
        let whole = SprintBudget {
            spent: projects.values().map(|budget| budget.spent).sum(),
            promised: projects.values().map(|budget| budget.promised).sum(),
            most: sprint.policy.budget_usd,
        };
        let part = whole.left()?.0 / u64::from(sprint.policy.slots).saturating_sub(running).max(1);
        Some(Allowances { sprint, part, projects })
    }

    pub fn of_project(&self, project: &str) -> Money {
        let known = self.projects.get(project).copied().unwrap_or_default();
        let budget = SprintBudget { most: share(self.sprint, project), ..known };
        Money(self.part.min(budget.left().map_or(u64::MAX, |left| left.0)))
    }
}

/// BX-28: what an item's run is taken down to while little of the budget is left. What a person named stays as it is.
pub fn smaller(sprint: &Sprint, item: &QueueItem) -> Option<Workflow> {
    let left = 100_u64.saturating_sub(whole(sprint).percent()?);
    let most = if left < sprint.policy.fast_below_percent {
        Workflow::Fast
    } else if left < sprint.policy.standard_below_percent {
        Workflow::Standard
    } else {
        return None;
    };
    (item.workflow.is_none() && most < item.estimate.workflow()).then_some(most)
}

/// Nothing is left for this project just now.
pub fn is_short(sprint: &Sprint, project: &str) -> bool {
    allowance(sprint, project) == Some(Money::ZERO)
}

/// What a run that was left may still spend was decided by an earlier sprint. If it is more than there is now, the task
/// is started again with less.
pub fn bears(sprint: &Sprint, project: &str, left: &UnfinishedRun) -> bool {
    let purses = [whole(sprint), of_project(sprint, project)];
    let within = |most: Money| left.promised().is_some_and(|promised| promised <= most);
    purses.iter().filter_map(SprintBudget::left).all(within)
}

/// The project has spent what it may, whatever comes back from runs under way.
pub fn is_used_up(sprint: &Sprint, project: &str) -> bool {
    share(sprint, project).is_some_and(|most| of_project(sprint, project).spent >= most)
}

fn share(sprint: &Sprint, project: &str) -> Option<Money> {
    let percent = sprint.policy.shares.get(project)?;
    let budget = sprint.policy.budget_usd?;
    u64::try_from(u128::from(budget.0) * u128::from(*percent) / 100).ok().map(Money)
}

fn add_up(sprint: &Sprint, counts: impl Fn(&str) -> bool) -> SprintBudget {
    let project = |run_id: &str| sprint.projects.get(run_id).map_or("", String::as_str);
    let spent = sprint.spent.iter().filter(|(run_id, _)| counts(project(run_id)));
    let out = sprint.items.values().filter(|known| is_under_way(known));
    let promised = out.filter(|known| counts(&known.item.project)).filter_map(|known| promise(sprint, known));
    SprintBudget { spent: spent.map(|(_, money)| *money).sum(), promised: promised.sum(), most: None }
}

fn is_under_way(known: &ItemState) -> bool {
    matches!(known.stand, ItemStage::Running | ItemStage::Parked)
}

/// What a run under way, or parked, may still spend. One that is resumed has spent some of it.
fn promise(sprint: &Sprint, known: &ItemState) -> Option<Money> {
    let gone =
        known.end.as_ref().filter(|end| end.busy.is_some()).and_then(|end| sprint.spent.get(&end.run_id));
    Some(Money(known.budget?.0.saturating_sub(gone.map_or(0, |gone| gone.0))))
}
