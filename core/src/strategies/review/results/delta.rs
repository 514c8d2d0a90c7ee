//! How the findings moved between two reviews of the same subject.
//!
//! Each finding of before is paired with one of now at most: by its fingerprint, then by the same code under the same
//! rule elsewhere (the file was renamed), then by [`crate::rules::identity`]. What is left over is new, or resolved.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::PROGRAM;
use crate::rules::identity::FindingClaim;

use super::{KnownFinding, Listed, Reviewed, Since, Standing};

/// Says of every finding whether it is new, and which of those before are gone.
pub fn compare(reviewed: &mut Reviewed, earlier: &[KnownFinding]) {
    reviewed.compared = true;
    let mut open: BTreeSet<usize> = (0..earlier.len()).collect();
    pair(reviewed, earlier, &mut open, |found| found.fingerprint.clone(), |old| old.fingerprint.clone());
    let code = |rule: &str, anchor: &str| {
        if anchor.is_empty() { String::new() } else { format!("{rule}\n{anchor}") }
    };
    pair(
        reviewed,
        earlier,
        &mut open,
        |found| code(&found.rule, &found.anchor),
        |old| code(&old.rule, &old.anchor),
    );
    pair_by_words(reviewed, earlier, &mut open);
    for found in reviewed.findings.iter_mut().filter(|found| found.since.is_none()) {
        found.since = Some(Since::New);
    }
    let gone = open.iter().filter_map(|at| earlier.get(*at)).filter(|old| !old.resolved);
    reviewed.resolved = gone.filter(|old| was_looked_for(reviewed, old)).cloned().collect();
}

/// By a key that both have. An empty one is none.
fn pair(
    reviewed: &mut Reviewed,
    earlier: &[KnownFinding],
    open: &mut BTreeSet<usize>,
    key_now: impl Fn(&Listed) -> String,
    key_then: impl Fn(&KnownFinding) -> String,
) {
    let mut known: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for at in open.iter().rev() {
        let Some(old) = earlier.get(*at) else { continue };
        known.entry(key_then(old)).or_default().push(*at);
    }
    known.remove("");
    for found in reviewed.findings.iter_mut().filter(|found| found.since.is_none()) {
        let Some(at) = known.get_mut(&key_now(found)).and_then(Vec::pop) else { continue };
        open.remove(&at);
        known_again(found, earlier.get(at));
    }
}

/// What is left is compared word by word, as long as it is not a flood.
fn pair_by_words(reviewed: &mut Reviewed, earlier: &[KnownFinding], open: &mut BTreeSet<usize>) {
    const FLOOD: usize = 400;
    let left: Vec<usize> = open.iter().copied().take(FLOOD).collect();
    let mut known: Vec<(usize, &KnownFinding, FindingClaim<'_>)> =
        left.into_iter().filter_map(|at| earlier.get(at).map(|old| (at, old, claim_of(old)))).collect();
    for found in reviewed.findings.iter_mut().filter(|found| found.since.is_none()).take(FLOOD) {
        let now = super::merge::claim(found);
        let likeness = known.iter().enumerate().map(|(place, (_, _, then))| (place, now.compare(then)));
        let alike = likeness.filter(|(_, likeness)| likeness.is_same());
        // Of those that are equally alike, the first.
        let best = alike.max_by_key(|(place, likeness)| (likeness.points, std::cmp::Reverse(*place)));
        let Some((place, _)) = best else { continue };
        let (at, old, _) = known.remove(place);
        open.remove(&at);
        known_again(found, Some(old));
    }
}

fn claim_of(old: &KnownFinding) -> FindingClaim<'_> {
    FindingClaim::new(&old.file, old.line, &old.rule, &old.description)
        .by(old.sources.iter().map(String::as_str))
        .about(&old.anchor)
}

fn known_again(found: &mut Listed, old: Option<&KnownFinding>) {
    let Some(old) = old else { return };
    found.since = Some(if old.resolved { Since::Regressed } else { Since::Persistent });
    let first = if old.known_as.is_empty() { &old.fingerprint } else { &old.known_as };
    found.known_as = first.clone();
    if *first == found.fingerprint {
        found.known_as.clear();
    }
}

/// Nobody who did not look can say that something is gone: one of those who raised it has seen all parts.
fn was_looked_for(reviewed: &Reviewed, old: &KnownFinding) -> bool {
    let whole = u32::try_from(reviewed.parts.len()).is_ok_and(|parts| reviewed.parts_done >= parts);
    let looked = |name: &String| {
        let mut those = reviewed.reviewers.iter().filter(|one| one.missed == 0);
        name == PROGRAM || those.any(|one| one.archetype == *name)
    };
    whole && old.sources.iter().any(looked)
}

/// What the next review of this subject has to look for: what counts now, and what was resolved.
pub fn remember(reviewed: &Reviewed, earlier: &[KnownFinding]) -> Vec<KnownFinding> {
    let mut known: Vec<KnownFinding> = reviewed
        .findings
        .iter()
        .filter(|found| matches!(found.standing, Standing::Yes | Standing::Accepted(_)))
        .map(|found| KnownFinding {
            fingerprint: found.fingerprint.clone(),
            rule: found.rule.clone(),
            file: found.file.clone(),
            line: found.line,
            severity: found.severity,
            description: found.description.clone(),
            sources: found.sources.clone(),
            anchor: found.anchor.clone(),
            known_as: found.known_as.clone(),
            resolved: false,
        })
        .collect();
    let now: BTreeSet<&str> = reviewed.findings.iter().map(|found| found.fingerprint.as_str()).collect();
    let gone: BTreeSet<&str> = reviewed.resolved.iter().map(|old| old.fingerprint.as_str()).collect();
    // One that was looked for, is not gone and is not here under its old name has a new one.
    let renamed = |old: &KnownFinding| {
        !old.resolved && !gone.contains(old.fingerprint.as_str()) && was_looked_for(reviewed, old)
    };
    let kept = earlier.iter().filter(|old| !now.contains(old.fingerprint.as_str()) && !renamed(old));
    known.extend(kept.map(|old| {
        let resolved = old.resolved || gone.contains(old.fingerprint.as_str());
        KnownFinding { resolved, ..old.clone() }
    }));
    known.sort();
    known.dedup();
    known
}
