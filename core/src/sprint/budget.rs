//! One budget for all runs of a sprint, and what a project may take out of it (I4, BX-23).
//!
//! What a run under way may still spend is promised to it and counts as gone. A share is a ceiling, not a reserve:
//! projects without a share have no cap, and what a project leaves is there for the others.

use std::collections::{BTreeMap, BTreeSet};

use super::event::UnfinishedRun;
use super::fold::{ItemStage, ItemState, Sprint};
use super::policy::Room;
use super::queue::QueueItem;
use crate::model::{Money, Workflow};

/// What runs have spent, with its sums.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spending {
    runs: BTreeMap<String, (String, Money)>,
    projects: BTreeMap<String, u128>,
    total: u128,
}

impl Spending {
    /// A run reports its total cost, so the greater number is the later one.
    pub fn note(&mut self, run_id: &str, project: &str, cost: Money) {
        let before = self.runs.get(run_id).map(|(_, before)| *before);
        let cost = cost.max(before.unwrap_or(Money::ZERO));
        let more = u128::from(cost.0 - before.map_or(0, |before| before.0));
        let known = self.runs.entry(run_id.to_owned()).or_insert_with(|| (project.to_owned(), cost));
        known.1 = cost;
        *self.projects.entry(known.0.clone()).or_default() += more;
        self.total += more;
    }

    pub fn total(&self) -> Money {
        Money(u64::try_from(self.total).unwrap_or(u64::MAX))
    }

    pub fn of_run(&self, run_id: &str) -> Option<Money> {
        self.runs.get(run_id).map(|(_, cost)| *cost)
    }

    pub fn of_project(&self, project: &str) -> Money {
        Money(u64::try_from(self.projects.get(project).copied().unwrap_or_default()).unwrap_or(u64::MAX))
    }

    /// Every project that a run belongs to.
    pub fn projects(&self) -> impl Iterator<Item = &str> {
        self.projects.keys().map(String::as_str).filter(|project| !project.is_empty())
    }
}

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
    let promised = promises(sprint).map(|(_, promised)| promised).sum();
    SprintBudget { spent: sprint.spent.total(), promised, most: sprint.policy.budget_usd }
}

pub fn of_project(sprint: &Sprint, project: &str) -> SprintBudget {
    let promised = promises(sprint).filter(|(known, _)| known.item.project == project);
    let promised = promised.map(|(_, promised)| promised).sum();
    SprintBudget { spent: sprint.spent.of_project(project), promised, most: share(sprint, project) }
}

/// Every project in which something was spent or promised, or that has a share.
pub fn by_project(sprint: &Sprint) -> BTreeMap<&str, SprintBudget> {
    let spent = sprint.spent.projects();
    let running = sprint.ours().map(|known| known.item.project.as_str());
    let names = spent.chain(running).chain(sprint.policy.shares.keys().map(String::as_str));
    let names: BTreeSet<&str> = names.collect();
    names.into_iter().map(|project| (project, of_project(sprint, project))).collect()
}

/// What a run of this project may spend: an equal part of what is left for as many as may still begin, and not more
/// than is left of the project's share.
pub fn allowance(sprint: &Sprint, project: &str, room: Room) -> Option<Money> {
    Some(Allowances::of(sprint, room)?.of_project(project))
}

/// The same for every project, added up once.
#[derive(Debug)]
pub struct Allowances<'a> {
    sprint: &'a Sprint,
    part: u64,
    /// By project, what its runs may still spend.
    promised: BTreeMap<&'a str, Money>,
}

impl<'a> Allowances<'a> {
    /// Nothing if there is no bound.
    pub fn of(sprint: &'a Sprint, room: Room) -> Option<Allowances<'a>> {
        sprint.policy.budget_usd?;
        let mut promised: BTreeMap<&str, Money> = BTreeMap::new();
        for (known, money) in promises(sprint) {
            let sum = promised.entry(&known.item.project).or_default();
            *sum = [*sum, money].into_iter().sum();
        }
        let running = sprint.items.count_at(ItemStage::Running) as u64;
        let slots = u64::from(sprint.policy.most_at_once(room));
        let part = whole(sprint).left()?.0 / slots.saturating_sub(running).max(1);
        Some(Allowances { sprint, part, promised })
    }

    pub fn of_project(&self, project: &str) -> Money {
        let promised = self.promised.get(project).copied().unwrap_or_default();
        let (spent, most) = (self.sprint.spent.of_project(project), share(self.sprint, project));
        let budget = SprintBudget { spent, promised, most };
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
pub fn is_short(sprint: &Sprint, project: &str, room: Room) -> bool {
    allowance(sprint, project, room) == Some(Money::ZERO)
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
    share(sprint, project).is_some_and(|most| sprint.spent.of_project(project) >= most)
}

fn share(sprint: &Sprint, project: &str) -> Option<Money> {
    let percent = sprint.policy.shares.get(project)?;
    let budget = sprint.policy.budget_usd?;
    u64::try_from(u128::from(budget.0) * u128::from(*percent) / 100).ok().map(Money)
}

fn promises(sprint: &Sprint) -> impl Iterator<Item = (&ItemState, Money)> {
    let under_way = [ItemStage::Running, ItemStage::Parked].into_iter();
    let under_way = under_way.flat_map(|stage| sprint.items.at_stage(stage));
    under_way.filter_map(|known| Some((known, promise(sprint, known)?)))
}

/// What a run under way, or parked, may still spend. One that is resumed has spent some of it.
fn promise(sprint: &Sprint, known: &ItemState) -> Option<Money> {
    let gone =
        known.end.as_ref().filter(|end| end.busy.is_some()).and_then(|end| sprint.spent.of_run(&end.run_id));
    Some(Money(known.budget?.0.saturating_sub(gone.map_or(0, |gone| gone.0))))
}
