//! Whether another cycle will help (AF-100..AF-113).
//!
//! A finding keeps its identity over the cycles, so the counts mean something. Everything is compared in whole
//! numbers, and everything is sorted by content first: the order in which findings arrive changes nothing (D-13).

use std::collections::{BTreeMap, BTreeSet};

use crate::event::{Hardness, Share, Stop, StuckKind, Tracked, Trend, TrendStatus};
use crate::model::{Convergence, Destination, Finding, Overlap, Reason, Remark, ZeroPolicy};
use crate::rules::identity::FindingClaim;
use crate::rules::routing::{route, route_by_category};

/// The findings of one cycle that count, merged over reviewers (AF-094) and in a canonical order. Ids are given
/// later, by [`follow`].
pub fn merge(findings: &[Finding], policy: &Convergence) -> Vec<Tracked> {
    if policy.overlap == Overlap::Weighed {
        return merge_alike(findings, policy);
    }
    let mut places: BTreeMap<(&str, &str), Vec<&Finding>> = BTreeMap::new();
    for finding in findings.iter().filter(|finding| finding.severity >= policy.tracked) {
        places.entry((&finding.file, &finding.category)).or_default().push(finding);
    }
    let mut merged: Vec<Tracked> = Vec::new();
    for ((file, _), mut group) in places {
        group.sort();
        if file.is_empty() {
            merged.extend(group.into_iter().map(|finding| tracked(finding, route_by_category)));
        } else {
            merged.extend(merge_place(&group));
        }
    }
    merged.sort();
    merged
}

/// From this many on, findings are compared within their file only: a flood is not compared one by one.
const FLOOD: usize = 400;

/// What two reviewers raised is one finding if it is the same by [`FindingClaim::compare`]. Two findings of one reviewer stay
/// two, and each joins the one it is most like.
fn merge_alike(findings: &[Finding], policy: &Convergence) -> Vec<Tracked> {
    let mut tracked_ones: Vec<&Finding> =
        findings.iter().filter(|finding| finding.severity >= policy.tracked).collect();
    // The gravest lead: their words are the ones the others are compared with.
    tracked_ones.sort_by(|a, b| b.severity.cmp(&a.severity).then_with(|| a.cmp(b)));
    let flood = tracked_ones.len() > FLOOD;
    let mut merged: Vec<(FindingClaim<'_>, Tracked)> = Vec::new();
    for finding in tracked_ones {
        let claim = FindingClaim::of(finding);
        let mut best: Option<(i32, usize)> = None;
        for (at, (lead, into)) in merged.iter().enumerate() {
            let comparable = !into.source.contains(&finding.source)
                && !finding.file.is_empty()
                && (!flood || into.file == finding.file);
            if !comparable {
                continue;
            }
            if let Some(points) = claim.points_if_same(lead)
                && best.is_none_or(|(most, _)| points > most)
            {
                best = Some((points, at));
            }
        }
        match best.and_then(|(_, at)| merged.get_mut(at)) {
            Some((_, into)) => join_kept(into, finding),
            None => merged.push((claim, tracked(finding, route))),
        }
    }
    let mut merged: Vec<Tracked> = merged.into_iter().map(|(_, found)| found).collect();
    merged.sort();
    merged
}

/// Joins a finding that is not graver; its description is kept beside the other.
fn join_kept(into: &mut Tracked, finding: &Finding) {
    if finding.description != into.description {
        let remark = Remark { source: finding.source.clone(), description: finding.description.clone() };
        into.also.push(remark);
        into.also.sort();
    }
    join(into, finding, route);
}

/// One file, one category. The reviewer with the most findings there sets their number; what the others say
/// joins the nearest of them.
fn merge_place(group: &[&Finding]) -> Vec<Tracked> {
    let mut by_source: BTreeMap<&str, Vec<&Finding>> = BTreeMap::new();
    for finding in group {
        by_source.entry(&finding.source).or_default().push(finding);
    }
    let most = by_source.values().map(Vec::len).max().unwrap_or(0);
    let Some(lead) = by_source.iter().find(|(_, found)| found.len() == most).map(|(source, _)| *source)
    else {
        return Vec::new();
    };
    let leads = by_source.get(lead).into_iter().flatten();
    let mut merged: Vec<Tracked> = leads.map(|finding| tracked(finding, route_by_category)).collect();
    let lines: Vec<u32> = merged.iter().map(|found| found.line).collect();
    for finding in group.iter().filter(|finding| finding.source != lead) {
        let nearest =
            (0..merged.len()).min_by_key(|i| lines.get(*i).map_or(0, |line| line.abs_diff(finding.line)));
        if let Some(into) = nearest.and_then(|i| merged.get_mut(i)) {
            join(into, finding, route_by_category);
        }
    }
    merged
}

/// Whether a finding is the one that a person accepted, whichever reviewer raises it.
pub fn is_same(finding: &Finding, known: &Tracked, policy: &Convergence) -> bool {
    if finding.file != known.file || finding.category != known.category {
        return false;
    }
    if policy.overlap == Overlap::Weighed {
        let accepted = FindingClaim::new(&known.file, known.line, &known.category, &known.description);
        return FindingClaim::of(finding).compare(&accepted.about(&known.anchor)).is_surely_same();
    }
    let near = finding.line.abs_diff(known.line) <= policy.line_window;
    let (a, b) = (keywords(&finding.description), keywords(&known.description));
    let shared = a.intersection(&b).count() * 100;
    let alike = shared >= a.len().min(b.len()) * policy.overlap_percent as usize && shared > 0;
    alike || (near && !finding.file.is_empty() && finding.line > 0 && finding.line == known.line)
}

/// Where a finding goes next.
type Route = fn(&Finding) -> Destination;

fn join(into: &mut Tracked, finding: &Finding, route: Route) {
    if finding.severity > into.severity {
        into.severity = finding.severity;
        into.description.clone_from(&finding.description);
        into.line = finding.line;
    }
    if !finding.fix.is_empty() && !into.fix.contains(finding.fix.as_str()) {
        into.fix =
            if into.fix.is_empty() { finding.fix.clone() } else { format!("{}; {}", into.fix, finding.fix) };
    }
    if !into.source.contains(&finding.source) {
        into.source.push(finding.source.clone());
        into.source.sort();
    }
    into.routes_to = into.routes_to.max(route(finding));
}

fn tracked(finding: &Finding, route: Route) -> Tracked {
    Tracked {
        id: String::new(),
        file: finding.file.clone(),
        line: finding.line,
        category: finding.category.clone(),
        severity: finding.severity,
        source: vec![finding.source.clone()],
        description: finding.description.clone(),
        fix: finding.fix.clone(),
        routes_to: route(finding),
        cycles_open: 1,
        regression_of: None,
        anchor: finding.anchor.clone(),
        also: Vec::new(),
    }
}

/// Gives this cycle's findings their identity from the cycles before, oldest first in `history`, and says how they
/// moved. On the first cycle there is no trend (AF-082).
pub fn follow(
    mut current: Vec<Tracked>,
    history: &[&[Tracked]],
    policy: &Convergence,
) -> (Vec<Tracked>, Option<Trend>) {
    let mut class: Vec<Option<Class>> = vec![None; current.len()];
    let previous: &[Tracked] = history.last().copied().unwrap_or(&[]);
    let mut seen_later: BTreeSet<&str> = BTreeSet::new();
    // What is read out of the findings is the same for every cycle they are compared with.
    let is_compared = policy.overlap == Overlap::Weighed && history.iter().any(|cycle| !cycle.is_empty());
    let claims: Vec<FindingClaim<'_>> =
        current.iter().filter(|_| is_compared).map(FindingClaim::of_tracked).collect();
    let mut known_as: Vec<(usize, &Tracked, u32)> = Vec::new();
    for (age, cycle) in history.iter().rev().enumerate() {
        let open: Vec<usize> =
            (0..current.len()).filter(|i| class.get(*i).is_some_and(Option::is_none)).collect();
        let gone: Vec<&Tracked> = cycle.iter().filter(|old| !seen_later.contains(old.id.as_str())).collect();
        for (i, old) in pair(&current, &claims, &open, &gone, policy) {
            if let Some(slot) = class.get_mut(i) {
                known_as.push((i, old, if age == 0 { old.cycles_open + 1 } else { 1 }));
                *slot = Some(match age {
                    0 => Class::Persistent,
                    1 => Class::Oscillating,
                    _ => Class::Regressed,
                });
            }
        }
        seen_later.extend(cycle.iter().map(|old| old.id.as_str()));
    }
    for (i, old, cycles_open) in known_as {
        if let Some(found) = current.get_mut(i) {
            found.id.clone_from(&old.id);
            found.cycles_open = cycles_open;
        }
    }
    name_the_new(&mut current, &seen_later);
    if history.is_empty() {
        return (current, None);
    }

    let ids = |wanted: &[Class]| -> Vec<String> {
        let mut ids: Vec<String> = current
            .iter()
            .zip(&class)
            .filter(|(_, class)| class.is_some_and(|class| wanted.contains(&class)))
            .map(|(found, _)| found.id.clone())
            .collect();
        ids.sort();
        ids
    };
    let persistent_ids = ids(&[Class::Persistent]);
    let regressed_ids = ids(&[Class::Regressed, Class::Oscillating]);
    let oscillating = ids(&[Class::Oscillating]);
    let known: BTreeSet<&String> = persistent_ids.iter().chain(&regressed_ids).collect();
    let mut new_ids: Vec<String> =
        current.iter().filter(|found| !known.contains(&found.id)).map(|found| found.id.clone()).collect();
    new_ids.sort();
    let resolved_findings: Vec<Tracked> =
        previous.iter().filter(|old| !persistent_ids.contains(&old.id)).cloned().collect();

    let counts = ConvergenceCounts {
        resolved: count(resolved_findings.len()),
        new: count(new_ids.len()),
        regressed: count(regressed_ids.len()),
        persistent: count(persistent_ids.len()),
    };
    let (score, status) = judge(counts, policy);
    let stuck_kind = (status == TrendStatus::Stuck).then_some(if counts.new + counts.regressed == 0 {
        StuckKind::AllPersistent
    } else {
        StuckKind::NoResolutionWithNew
    });
    let trend = Trend {
        score,
        status,
        resolved: counts.resolved,
        new: counts.new,
        regressed: counts.regressed,
        persistent: counts.persistent,
        oscillating,
        recommendation: String::new(),
        reason: String::new(),
        stuck_kind,
        resolved_findings,
        new_ids,
        persistent_ids,
        regressed_ids,
        untried: false,
    };
    (current, Some(trend))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Persistent,
    /// Present two cycles ago, absent in the last, back now.
    Oscillating,
    /// Seen still earlier (CL-19).
    Regressed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConvergenceCounts {
    pub resolved: u32,
    pub new: u32,
    pub regressed: u32,
    pub persistent: u32,
}

/// Score and band (AF-104..AF-106, CL-05, CL-07).
pub fn judge(counts: ConvergenceCounts, policy: &Convergence) -> (Share, TrendStatus) {
    let moved = counts.resolved + counts.new + counts.regressed;
    let open = counts.new + counts.regressed + counts.persistent;
    if open == 0 {
        return (Share::ONE, TrendStatus::Converging);
    }
    if counts.resolved == 0 {
        return (Share(0), TrendStatus::Stuck);
    }
    let percent = u64::from(counts.resolved) * 100;
    let status = if percent > u64::from(policy.converging_above_percent) * u64::from(moved) {
        TrendStatus::Converging
    } else if percent < u64::from(policy.diverging_below_percent) * u64::from(moved) {
        TrendStatus::Diverging
    } else {
        TrendStatus::Stalling
    };
    (Share::of(u64::from(counts.resolved), u64::from(moved)), status)
}

/// Whether to stop instead of cycling (AF-107, AF-108, CL-06..CL-08). `earlier` are the trends of the cycles
/// before, oldest first.
pub fn stop(trend: &Trend, earlier: &[&Trend], policy: &Convergence) -> Option<Stop> {
    let soft = |reason, detail: String| Some(Stop { reason, detail, breaks: Some(Hardness::Soft) });
    if count(trend.oscillating.len()) >= policy.oscillating {
        let detail = format!(
            "{} findings oscillate between cycles ({}): the fixes undo each other",
            trend.oscillating.len(),
            trend.oscillating.join(", ")
        );
        return Some(Stop { reason: Reason::Oscillation, detail, breaks: Some(Hardness::Hard) });
    }
    let shrinks = trend.resolved > trend.new + trend.regressed;
    if policy.one_oscillates && !trend.oscillating.is_empty() && !shrinks {
        let detail = format!(
            "a finding went away and came back ({}): its fix was undone",
            trend.oscillating.join(", ")
        );
        return soft(Reason::Oscillation, detail);
    }
    let is_idle = |trend: &Trend| trend.untried && trend.status == TrendStatus::Stuck;
    if is_idle(trend) && !earlier.last().is_some_and(|before| is_idle(before)) {
        return None;
    }
    if is_idle(trend) {
        let detail = format!(
            "{} findings persist, and for the second cycle running nothing was changed where they are",
            trend.persistent
        );
        return soft(Reason::StopStuck, detail);
    }
    let stuck_before = earlier.last().is_some_and(|before| before.status == TrendStatus::Stuck);
    let had_something_to_resolve = trend.persistent + trend.resolved > 0;
    let zero_stops = match policy.zero_policy {
        ZeroPolicy::Immediate => true,
        ZeroPolicy::TwoConsecutive => stuck_before,
    };
    let counts_as_stuck = had_something_to_resolve || policy.stop_without_baseline;
    if trend.status == TrendStatus::Stuck && counts_as_stuck && zero_stops {
        let open = trend.persistent + trend.new + trend.regressed;
        let persisted_before =
            earlier.last().is_some_and(|before| before.stuck_kind == Some(StuckKind::AllPersistent));
        if trend.stuck_kind == Some(StuckKind::AllPersistent) && persisted_before {
            return soft(
                Reason::StopStuck,
                format!("all {open} findings persist for the second cycle running"),
            );
        }
        if trend.stuck_kind == Some(StuckKind::AllPersistent) {
            return soft(
                Reason::StopIdenticalFindings,
                match open {
                    1 => {
                        "the one finding is the same as in the cycle before: nothing was resolved".to_owned()
                    }
                    open => {
                        format!(
                            "the {open} findings are the same as in the cycle before: nothing was resolved"
                        )
                    }
                },
            );
        }
        return soft(
            Reason::StopStuck,
            format!(
                "stalled: nothing was resolved, {} persist and {} came up",
                trend.persistent,
                trend.new + trend.regressed
            ),
        );
    }
    let diverging = |trend: &Trend| below(trend, policy.diverging_below_percent);
    let running = 1 + earlier.iter().rev().take_while(|trend| diverging(trend)).count();
    if diverging(trend) && count(running) >= policy.diverging_cycles {
        return soft(
            Reason::ConvergedStopDiverging,
            format!(
                "diverging for {running} cycles running: {} resolved against {} new or back",
                trend.resolved,
                trend.new + trend.regressed
            ),
        );
    }
    None
}

/// Whether a run that has no cycle left was getting there: more was resolved than came up.
pub fn gets_there(trend: &Trend) -> bool {
    trend.resolved > trend.new + trend.regressed && trend.oscillating.is_empty() && !trend.untried
}

/// Strictly below a percentage, by the counts. A cycle with nothing to resolve and nothing open is not.
fn below(trend: &Trend, percent: u32) -> bool {
    let moved = trend.resolved + trend.new + trend.regressed;
    let open = trend.new + trend.regressed + trend.persistent;
    open > 0 && u64::from(trend.resolved) * 100 < u64::from(percent) * u64::from(moved.max(1))
}

/// Pairs findings of two cycles one to one, the best overlap first.
fn pair<'a>(
    current: &[Tracked],
    claims: &[FindingClaim<'_>],
    open: &[usize],
    old: &[&'a Tracked],
    policy: &Convergence,
) -> Vec<(usize, &'a Tracked)> {
    if policy.overlap == Overlap::Weighed {
        return one_to_one(candidates(current, claims, open, old), old);
    }
    let mut places: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
    for (j, before) in old.iter().enumerate() {
        places.entry((&before.file, &before.category)).or_default().push(j);
    }
    let old_words: Vec<BTreeSet<String>> = old.iter().map(|before| keywords(&before.description)).collect();
    let mut candidates: Vec<Candidate> = Vec::new();
    for &i in open {
        let Some(found) = current.get(i) else { continue };
        let words = keywords(&found.description);
        for &j in places.get(&(found.file.as_str(), found.category.as_str())).into_iter().flatten() {
            let (Some(before), Some(before_words)) = (old.get(j), old_words.get(j)) else { continue };
            let Some((shared, of)) = overlap(&words, before_words, policy) else { continue };
            let Some(distance) = distance(found, before, policy) else { continue };
            if found.source.iter().any(|source| before.source.contains(source)) {
                candidates.push(Candidate { shared, of, distance, i, j });
            }
        }
    }
    one_to_one(candidates, old)
}

/// The pairs of findings of two cycles that are the same by [`FindingClaim::compare`].
fn candidates(
    current: &[Tracked],
    claims: &[FindingClaim<'_>],
    open: &[usize],
    old: &[&Tracked],
) -> Vec<Candidate> {
    let old_claims: Vec<FindingClaim<'_>> =
        old.iter().map(|before| FindingClaim::of_tracked(before)).collect();
    let flood = open.len().saturating_mul(old.len()) > FLOOD * FLOOD;
    let mut candidates = Vec::new();
    for &i in open {
        let (Some(found), Some(claim)) = (current.get(i), claims.get(i)) else { continue };
        for (j, (before, known)) in old.iter().zip(&old_claims).enumerate() {
            if flood && before.file != found.file {
                continue;
            }
            if let Some(points) = claim.points_if_same(known) {
                let shared = usize::try_from(points).unwrap_or(0);
                let distance = found.line.abs_diff(before.line);
                candidates.push(Candidate { shared, of: 100, distance, i, j });
            }
        }
    }
    candidates
}

/// Each finding is in one pair at most; the most alike are paired first.
fn one_to_one<'a>(mut candidates: Vec<Candidate>, old: &[&'a Tracked]) -> Vec<(usize, &'a Tracked)> {
    candidates.sort_by(Candidate::best_first);
    let (mut taken_i, mut taken_j) = (BTreeSet::new(), BTreeSet::new());
    let mut pairs = Vec::new();
    for candidate in candidates {
        if !taken_i.contains(&candidate.i) && !taken_j.contains(&candidate.j) {
            taken_i.insert(candidate.i);
            taken_j.insert(candidate.j);
            if let Some(before) = old.get(candidate.j) {
                pairs.push((candidate.i, *before));
            }
        }
    }
    pairs
}

struct Candidate {
    shared: usize,
    of: usize,
    distance: u32,
    i: usize,
    j: usize,
}

impl Candidate {
    /// Indices come last; both lists are in canonical order, so they depend on content, not on arrival.
    fn best_first(&self, other: &Candidate) -> std::cmp::Ordering {
        (other.shared * self.of)
            .cmp(&(self.shared * other.of))
            .then(self.distance.cmp(&other.distance))
            .then(self.i.cmp(&other.i))
            .then(self.j.cmp(&other.j))
    }
}

/// Lines apart, when near enough. An unknown line is near every line of its file.
fn distance(a: &Tracked, b: &Tracked, policy: &Convergence) -> Option<u32> {
    if a.line == 0 || b.line == 0 {
        return Some(policy.line_window);
    }
    let apart = a.line.abs_diff(b.line);
    (apart <= policy.line_window).then_some(apart)
}

/// Shared words and what they are measured against, when the share is great enough (CL-18).
fn overlap(a: &BTreeSet<String>, b: &BTreeSet<String>, policy: &Convergence) -> Option<(usize, usize)> {
    if a.is_empty() && b.is_empty() {
        return Some((1, 1));
    }
    let shared = a.intersection(b).count();
    let of = match policy.overlap {
        Overlap::Weighed | Overlap::Min => a.len().min(b.len()),
        Overlap::Jaccard => a.len() + b.len() - shared,
    };
    (of > 0 && shared * 100 >= of * policy.overlap_percent as usize).then_some((shared, of))
}

/// Lower-case words of three letters and more, without punctuation.
/// The words of a text in one order: the same whatever their order, punctuation and case.
pub fn canonical(text: &str) -> String {
    keywords(text).into_iter().collect::<Vec<_>>().join(" ")
}

pub fn keywords(text: &str) -> BTreeSet<String> {
    text.split_whitespace()
        .map(|word| {
            word.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect::<String>()
        })
        .filter(|word| word.chars().count() >= 3)
        .collect()
}

/// `<file>:<category>[:n]` for findings not seen before; numbers used by earlier cycles are not used again.
fn name_the_new(current: &mut [Tracked], seen: &BTreeSet<&str>) {
    let mut taken: BTreeSet<String> = seen.iter().map(|id| (*id).to_owned()).collect();
    taken.extend(current.iter().map(|found| found.id.clone()));
    for found in current.iter_mut().filter(|found| found.id.is_empty()) {
        let plain = if found.file.is_empty() {
            found.category.clone()
        } else {
            format!("{}:{}", found.file, found.category)
        };
        let id = std::iter::once(plain.clone())
            .chain((2..).map(|n: u32| format!("{plain}:{n}")))
            .find(|id| !taken.contains(id))
            .unwrap_or(plain);
        taken.insert(id.clone());
        found.id = id;
    }
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
