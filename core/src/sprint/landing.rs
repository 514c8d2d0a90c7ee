//! The merge queue of a project: what lands next, what lands together, what is taken apart, and what waits because it
//! changes what another changes.
//!
//! Candidates that wait at the same time land as one: each on top of the one before, tested once, moved in one step. If
//! that is red, half of it is tried, and so on down to one that is red by itself: only that one is refused.

use std::collections::BTreeMap;

use super::decide::{follows, in_order};
use super::event::{Candidate, SprintEvent};
use super::fold::{ItemStage, ItemState, Sprint};
use super::queue::ItemStatus;
use super::standing::Follows;

/// One landing at a time in a project. Projects have nothing to do with each other here.
pub(super) fn land(sprint: &Sprint) -> Vec<SprintEvent> {
    let ready = sprint.items.at_stage(ItemStage::Ended).filter(|known| is_ready(sprint, known));
    let mut projects: BTreeMap<&str, Vec<&ItemState>> = BTreeMap::new();
    for known in in_order(ready) {
        projects.entry(&known.item.project).or_default().push(known);
    }
    for known in sprint.items.at_stage(ItemStage::Landing) {
        projects.remove(known.item.project.as_str());
    }
    projects.iter().filter_map(|(project, here)| order(project, &next(sprint, here))).collect()
}

fn is_ready(sprint: &Sprint, known: &ItemState) -> bool {
    follows(sprint, known) == Some(Follows::Land) && waits_for(sprint, known).is_none()
}

/// What lands next of what is ready in a project, in its order. What was red together is taken apart before anything
/// else is tried. Two that change the same are never ready at the same time: one of them waits for the other.
fn next<'a>(sprint: &Sprint, ready: &[&'a ItemState]) -> Vec<&'a ItemState> {
    for red in sprint.reds.iter().rev() {
        let left: Vec<&ItemState> =
            ready.iter().copied().filter(|known| red.contains(&known.item.id)).collect();
        if !left.is_empty() {
            return left[..(left.len() / 2).max(1)].to_vec();
        }
    }
    let most = sprint.policy.landing_batch.max(1) as usize;
    match ready.split_first() {
        Some((first, _)) if first.alone => vec![first],
        Some(_) => ready.iter().copied().filter(|known| !known.alone).take(most).collect(),
        None => Vec::new(),
    }
}

/// One by itself is landed as a person would land it.
fn order(project: &str, items: &[&ItemState]) -> Option<SprintEvent> {
    let candidates: Vec<Candidate> = items.iter().filter_map(|known| candidate(known)).collect();
    match &candidates[..] {
        [] => None,
        [Candidate { item, run_id }] => {
            Some(SprintEvent::Land { item: item.clone(), run_id: run_id.clone() })
        }
        _ => Some(SprintEvent::BatchLand { project: project.to_owned(), candidates }),
    }
}

fn candidate(known: &ItemState) -> Option<Candidate> {
    Some(Candidate { item: known.item.id.clone(), run_id: known.end.as_ref()?.run_id.clone() })
}

/// Of two that change the same files, the second waits for the first.
pub fn waits_for<'a>(sprint: &'a Sprint, known: &ItemState) -> Option<&'a ItemState> {
    let mut others = sprint.overlapping(&known.item.id);
    others.find(|other| other.stand.is_ours() && comes_before(other, known))
}

/// It would only conflict: something landed that changes what it changes.
pub(super) fn is_overtaken(sprint: &Sprint, known: &ItemState) -> bool {
    let landed =
        |other: &ItemState| other.stand == ItemStage::Settled && other.item.status == ItemStatus::Completed;
    waits_for(sprint, known).is_none() && sprint.overlapping(&known.item.id).any(landed)
}

/// A run is active that once changed the same files as this one.
pub fn is_in_the_way(sprint: &Sprint, known: &ItemState) -> bool {
    let mut running = sprint.items.at_stage(ItemStage::Running);
    running.any(|other| sprint.is_kept_apart(&known.item.id, &other.item.id))
}

fn comes_before(one: &ItemState, other: &ItemState) -> bool {
    (one.item.priority, one.number) < (other.item.priority, other.number)
}
