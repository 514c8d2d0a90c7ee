//! How the findings moved between two reviews of the same subject.
//!
//! Each finding of before is paired with one of now at most: by its fingerprint, then by the same code under the same
//! rule elsewhere (the file was renamed), then by file, rule and words. What is left over is new, or resolved.

use std::collections::BTreeSet;

use crate::rules::convergence::keywords;
use crate::words::PROGRAM;

use super::{Known, Listed, Reviewed, Since, Standing};

/// Half of the rarer words have to be shared where only words are left to go by.
const ALIKE_PERCENT: usize = 50;

/// Says of every finding whether it is new, and which of those before are gone.
pub fn compare(reviewed: &mut Reviewed, earlier: &[Known]) {
    reviewed.compared = true;
    let mut open: BTreeSet<usize> = (0..earlier.len()).collect();
    let tests: [fn(&Listed, &Known) -> bool; 3] = [by_fingerprint, by_code, by_words];
    for is_known in tests {
        for found in reviewed.findings.iter_mut().filter(|found| found.since.is_none()) {
            let pair =
                open.iter().copied().find(|at| earlier.get(*at).is_some_and(|old| is_known(found, old)));
            let Some(at) = pair else { continue };
            open.remove(&at);
            let back = earlier.get(at).is_some_and(|old| old.resolved);
            found.since = Some(if back { Since::Regressed } else { Since::Persistent });
        }
    }
    for found in reviewed.findings.iter_mut().filter(|found| found.since.is_none()) {
        found.since = Some(Since::New);
    }
    let gone = open.iter().filter_map(|at| earlier.get(*at)).filter(|old| !old.resolved);
    reviewed.resolved = gone.filter(|old| was_looked_for(reviewed, old)).cloned().collect();
}

/// Nobody who did not look can say that something is gone: one of those who raised it has seen all parts.
fn was_looked_for(reviewed: &Reviewed, old: &Known) -> bool {
    let whole = u32::try_from(reviewed.parts.len()).is_ok_and(|parts| reviewed.parts_done >= parts);
    let looked = |name: &String| {
        let mut those = reviewed.reviewers.iter().filter(|one| one.missed == 0);
        name == PROGRAM || those.any(|one| one.archetype == *name)
    };
    whole && old.sources.iter().any(looked)
}

/// What the next review of this subject has to look for: what counts now, and what was resolved.
pub fn remember(reviewed: &Reviewed, earlier: &[Known]) -> Vec<Known> {
    let mut known: Vec<Known> = reviewed
        .findings
        .iter()
        .filter(|found| matches!(found.standing, Standing::Yes | Standing::Accepted(_)))
        .map(|found| Known {
            fingerprint: found.fingerprint.clone(),
            rule: found.rule.clone(),
            file: found.file.clone(),
            line: found.line,
            severity: found.severity,
            description: found.description.clone(),
            sources: found.sources.clone(),
            anchor: found.anchor.clone(),
            resolved: false,
        })
        .collect();
    let now: BTreeSet<&str> = reviewed.findings.iter().map(|found| found.fingerprint.as_str()).collect();
    let gone: BTreeSet<&str> = reviewed.resolved.iter().map(|old| old.fingerprint.as_str()).collect();
    let kept = earlier.iter().filter(|old| !now.contains(old.fingerprint.as_str()));
    known.extend(kept.map(|old| {
        let resolved = old.resolved || gone.contains(old.fingerprint.as_str());
        Known { resolved, ..old.clone() }
    }));
    known.sort();
    known.dedup();
    known
}

fn by_fingerprint(found: &Listed, old: &Known) -> bool {
    found.fingerprint == old.fingerprint
}

fn by_code(found: &Listed, old: &Known) -> bool {
    !found.anchor.is_empty() && found.anchor == old.anchor && found.rule == old.rule
}

fn by_words(found: &Listed, old: &Known) -> bool {
    if found.rule != old.rule || found.file != old.file || found.file.is_empty() {
        return false;
    }
    let (a, b) = (keywords(&found.description), keywords(&old.description));
    let shared = a.intersection(&b).count() * 100;
    shared > 0 && shared >= a.len().min(b.len()) * ALIKE_PERCENT
}
