//! A finding that was reported twice is listed once (AF-094): same file, same category, and near or in the same words.
//!
//! Stricter than what is compared over the cycles of a run, where a file and a category are enough: in a list that
//! people work through, a second defect in the same file must not vanish behind the first.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::model::{AcceptedFinding, Convergence};
use crate::rules::convergence::keywords;

use super::{Listed, Remark, Standing};

pub(super) fn merge(found: Vec<Listed>, accepted: &[AcceptedFinding], policy: &Convergence) -> Vec<Listed> {
    let mut places: BTreeMap<(String, String), Vec<Listed>> = BTreeMap::new();
    for one in found {
        places.entry((one.file.clone(), one.rule.clone())).or_default().push(one);
    }
    let mut merged: Vec<Listed> = places.into_values().flat_map(|group| merge_place(group, policy)).collect();
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
fn merge_place(mut group: Vec<Listed>, policy: &Convergence) -> Vec<Listed> {
    group.sort_by_cached_key(rank);
    if group.len() > FLOOD {
        return merge_flood(group);
    }
    let mut merged: Vec<(BTreeSet<String>, Listed)> = Vec::new();
    for one in group {
        let words = keywords(&one.description);
        match merged.iter_mut().find(|(known, into)| is_same((known, into), (&words, &one), policy)) {
            Some((_, into)) => join(into, one),
            None => merged.push((words, one)),
        }
    }
    merged.into_iter().map(|(_, one)| one).collect()
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

fn is_same(
    (words_a, a): (&BTreeSet<String>, &Listed),
    (words_b, b): (&BTreeSet<String>, &Listed),
    policy: &Convergence,
) -> bool {
    // A refuted finding must not hide behind one that counts, nor give it a trial.
    if (a.standing == Standing::Refuted) != (b.standing == Standing::Refuted) {
        return false;
    }
    if a.file.is_empty() {
        return a.description == b.description;
    }
    let near = a.line == 0 || b.line == 0 || a.line.abs_diff(b.line) <= policy.line_window;
    if !near {
        return false;
    }
    let shared = words_a.intersection(words_b).count() * 100;
    let alike = shared > 0 && shared >= words_a.len().min(words_b.len()) * policy.overlap_percent as usize;
    let same_code = !a.anchor.is_empty() && a.anchor == b.anchor && a.line == b.line;
    alike || same_code
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
