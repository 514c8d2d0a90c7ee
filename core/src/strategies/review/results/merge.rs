//! A finding that was reported twice is listed once (AF-094), by the rule of [`crate::rules::identity`]. The other
//! reports are kept beside it.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::model::{AcceptedFinding, PROGRAM, Remark};
use crate::rules::identity::FindingClaim;

use super::{Listed, Standing};

pub(super) fn merge(found: Vec<Listed>, accepted: &[AcceptedFinding]) -> Vec<Listed> {
    let mut places: BTreeMap<String, Vec<Listed>> = BTreeMap::new();
    for one in found {
        places.entry(one.file.clone()).or_default().push(one);
    }
    let mut merged: Vec<Listed> = places.into_values().flat_map(merge_place).collect();
    accept(&mut merged, accepted);
    merged.sort_by_cached_key(rank);
    merged
}

/// People accept what they see in the list, so this comes after the merging: the same finding of another reviewer is accepted
/// with it.
fn accept(merged: &mut [Listed], accepted: &[AcceptedFinding]) {
    let known: BTreeMap<&str, &str> =
        accepted.iter().map(|known| (known.fingerprint.as_str(), known.reason.as_str())).collect();
    for one in merged.iter_mut().filter(|one| one.standing != Standing::Refuted) {
        if let Some(reason) = known.get(one.fingerprint.as_str()) {
            one.standing = Standing::Accepted((*reason).to_owned());
        }
    }
}

/// From this many on, the same place and the same words are all that makes two findings one: a flood is not compared
/// word by word.
const FLOOD: usize = 400;

/// Findings that count lead, most severe first; a merged one adds its source and its words.
fn merge_place(mut group: Vec<Listed>) -> Vec<Listed> {
    group.sort_by_cached_key(rank);
    if group.len() > FLOOD {
        return merge_flood(group);
    }
    let claims: Vec<FindingClaim<'_>> = group.iter().map(claim).collect();
    let mut leads: Vec<usize> = Vec::new();
    // The lead that each of them joins; its own place in the list if it leads.
    let mut joins: Vec<usize> = Vec::new();
    for (at, (one, its)) in group.iter().zip(&claims).enumerate() {
        let same = |lead: &&usize| match (group.get(**lead), claims.get(**lead)) {
            (Some(into), Some(known)) => is_same((into, known), (one, its)),
            _ => false,
        };
        let lead = leads.iter().find(same).copied();
        if lead.is_none() {
            leads.push(at);
        }
        joins.push(lead.unwrap_or(at));
    }
    let mut merged: BTreeMap<usize, Listed> = BTreeMap::new();
    for (at, (one, lead)) in group.into_iter().zip(joins).enumerate() {
        match merged.get_mut(&lead) {
            Some(into) => join(into, one),
            None => drop(merged.insert(at, one)),
        }
    }
    merged.into_values().collect()
}

pub(super) fn claim(one: &Listed) -> FindingClaim<'_> {
    FindingClaim::new(&one.file, one.line, &one.rule, &one.description)
        .by(one.sources.iter().map(String::as_str))
        .about(&one.anchor)
}

fn merge_flood(group: Vec<Listed>) -> Vec<Listed> {
    let mut places: BTreeMap<(u32, String), usize> = BTreeMap::new();
    let mut merged: Vec<Listed> = Vec::new();
    for one in group {
        let at = *places.entry((one.line, one.description.clone())).or_insert(merged.len());
        match merged.get_mut(at) {
            Some(into) => join(into, one),
            None => merged.push(one),
        }
    }
    merged
}

fn is_same((a, known): (&Listed, &FindingClaim<'_>), (b, claim): (&Listed, &FindingClaim<'_>)) -> bool {
    // A refuted finding must not hide behind one that counts, nor give it a trial.
    if (a.standing == Standing::Refuted) != (b.standing == Standing::Refuted) {
        return false;
    }
    // What the program sees stays beside what reviewers say about it.
    let by_program = |one: &Listed| one.sources.iter().any(|source| source == PROGRAM);
    if by_program(a) != by_program(b) {
        return false;
    }
    if a.file.is_empty() {
        return a.description == b.description;
    }
    // Two reports of one reviewer are two unless there is no doubt.
    let likeness = claim.compare(known);
    let one_reviewer = a.sources.iter().any(|source| b.sources.contains(source));
    if one_reviewer { likeness.is_surely_same() } else { likeness.is_same() }
}

fn join(into: &mut Listed, other: Listed) {
    let spoke = other.sources.join("+");
    for source in other.sources {
        if !into.sources.contains(&source) {
            into.sources.push(source);
        }
    }
    into.sources.sort();
    if other.description != into.description {
        match into.also.iter_mut().find(|said| said.description == other.description) {
            Some(said) => said.source = format!("{}+{spoke}", said.source),
            None => into.also.push(Remark { source: spoke, description: other.description }),
        }
    }
    into.also.extend(other.also);
    if into.fix.is_empty() {
        into.fix = other.fix;
    }
    if into.trial.is_none() {
        into.trial = other.trial;
    }
}

/// What people should read first: confirmed, then what counts by severity, then advice, what was accepted, what was
/// refuted.
fn rank(found: &Listed) -> impl Ord + use<> {
    let tried = found.trial.as_ref().map(|tried| tried.trial);
    let standing = match &found.standing {
        Standing::Yes => 0_u8,
        Standing::Unfounded(_) => 1,
        Standing::Accepted(_) => 2,
        Standing::Refuted => 3,
    };
    let confirmed = tried != Some(crate::model::ReproductionResult::Confirmed);
    let words = (found.rule.clone(), found.description.clone(), found.sources.clone());
    (standing, confirmed, Reverse(found.severity), found.file.clone(), found.line, words)
}
