//! Gathers the findings of all parts from the log.

use std::collections::{BTreeMap, BTreeSet};

use crate::event::{AgentComplete, AgentStart, CycleBoundary, Entry, ReviewOpened, RunComplete};
use crate::model::{Citation, Finding, PROGRAM, Proof, ReproductionResult, Severity, Sign, Verdict};
use crate::rules::evidence;
use crate::run::{Cycle, Run};

use super::merge::merge;
use super::{Listed, Reviewed, Reviewer, Standing, Tried, fingerprint};

/// The result of the review in this log so far; `None` where it is no review, or was not opened yet.
pub fn of(log: &[Entry]) -> Option<Reviewed> {
    let mut gathering = Gathering::default();
    for entry in log {
        gathering.take(entry);
    }
    gathering.done()
}

#[derive(Default)]
struct Gathering {
    run: Run,
    opened: Option<Box<ReviewOpened>>,
    /// By number. A part that was parked and resumed is collected again.
    parts: BTreeMap<u32, Gathered>,
    reviewers: BTreeMap<String, Reviewer>,
}

/// The result of one part.
#[derive(Default)]
struct Gathered {
    concluded: bool,
    found: Vec<Listed>,
    verdicts: BTreeMap<String, Verdict>,
    counts: BTreeMap<String, u32>,
    left_out: BTreeMap<String, u32>,
    missed: BTreeMap<String, String>,
}

impl Gathering {
    fn take(&mut self, entry: &Entry) {
        self.run.apply(entry);
        let event = &entry.event;
        if let Some(opened) = event.body::<ReviewOpened>() {
            self.opened = Some(Box::new(opened.clone()));
        }
        if let Some(start) = event.body::<AgentStart>() {
            let agent = start.agent.clone();
            let empty = || Reviewer { archetype: start.archetype.clone(), agent, ..Reviewer::unknown() };
            self.reviewers.entry(start.archetype.clone()).or_insert_with(empty);
        }
        if let Some(complete) = event.body::<AgentComplete>()
            && let Some(reviewer) = self.reviewers.get_mut(&complete.archetype)
        {
            if let Some(tokens) = complete.tokens {
                reviewer.tokens.input += tokens.input;
                reviewer.tokens.output += tokens.output;
                reviewer.tokens.cache_read += tokens.cache_read;
                reviewer.tokens.cache_write += tokens.cache_write;
            }
            reviewer.cost.0 += complete.estimated_cost_usd.map_or(0, |cost| cost.0);
            reviewer.player = complete.played.clone().or_else(|| reviewer.player.take());
        }
        if event.body::<CycleBoundary>().is_some() || event.body::<RunComplete>().is_some() {
            self.gather();
        }
    }

    /// The part under way, as far as it came.
    fn gather(&mut self) {
        let Some(cycle) = self.run.cycle() else { return };
        let mut gathered = Gathered { concluded: cycle.boundary.is_some(), ..Gathered::default() };
        let asked: BTreeSet<String> = self.run.seats().iter().map(|seat| seat.archetype.clone()).collect();
        for name in self.reviewers.keys() {
            gathered.verdicts.extend(cycle.verdicts.get(name).map(|verdict| (name.clone(), *verdict)));
            let review = cycle.review(name);
            let said = review.map_or(0, |review| review.findings.len());
            gathered.counts.insert(name.clone(), u32::try_from(said).unwrap_or(u32::MAX));
            gathered.left_out.insert(name.clone(), review.map_or(0, |review| review.left_out));
            if asked.contains(name) && !cycle.answers.contains_key(name) {
                let absent = cycle.absent.get(name).cloned();
                let failed = || cycle.last_failure.get(name).map(|failed| failed.reason.clone());
                let why = absent.or_else(failed).unwrap_or_else(|| "it was not heard".to_owned());
                gathered.missed.insert(name.clone(), why);
            }
        }
        // Its successor does not answer for it, and nothing of it could be listed instead.
        let bare = cycle.set_aside_rejections().into_iter().filter(|(_, rejection)| rejection.bare);
        gathered.verdicts.extend(bare.map(|(name, _)| (name.to_owned(), Verdict::Rejected)));
        gathered.found = listed(cycle, &self.run.overlay().evidence);
        self.parts.insert(cycle.number, gathered);
    }

    /// The reviewers with their results over all parts.
    fn judged(&self) -> Vec<Reviewer> {
        let mut reviewers = self.reviewers.clone();
        for part in self.parts.values() {
            for (name, reviewer) in &mut reviewers {
                reviewer.findings += part.counts.get(name).copied().unwrap_or(0);
                reviewer.left_out += part.left_out.get(name).copied().unwrap_or(0);
                if let Some(verdict) = part.verdicts.get(name) {
                    reviewer.verdict =
                        Some(reviewer.verdict.map_or(*verdict, |worst| worse(worst, *verdict)));
                }
                if let Some(why) = part.missed.get(name) {
                    reviewer.missed += 1;
                    reviewer.missed_why.clone_from(why);
                }
            }
        }
        reviewers.into_values().collect()
    }

    fn done(mut self) -> Option<Reviewed> {
        let opened = self.opened.take()?;
        if self.run.outcome.is_none() && self.run.cycle().is_some_and(|cycle| cycle.boundary.is_none()) {
            self.gather();
        }
        let reviewers = self.judged();
        let concluded = self.parts.values().filter(|part| part.concluded).count();
        let found = self.parts.into_values().flat_map(|part| part.found).collect();
        let count = |of: fn(&crate::model::ChangedFile) -> u32| {
            opened.change.files.iter().map(|file| u64::from(of(file))).sum()
        };
        let files = u32::try_from(opened.change.files.len()).unwrap_or(u32::MAX);
        let mut findings = merge(found, &opened.accepted);
        findings.iter_mut().for_each(Listed::mask);
        Some(Reviewed {
            title: self.run.task(),
            base: self.run.request.as_ref().map(|request| request.base.commit.clone()).unwrap_or_default(),
            commit: opened.change.commit.clone(),
            files: files.saturating_add(opened.change.files_left_out),
            added: count(|file| file.added),
            deleted: count(|file| file.deleted),
            parts: opened.parts,
            parts_done: u32::try_from(concluded).unwrap_or(u32::MAX),
            summarised: opened.summarised,
            verify: opened.verify,
            reviewers,
            findings,
            resolved: Vec::new(),
            compared: false,
            outcome: self.run.outcome.clone(),
            subject: opened.subject,
        })
    }
}

/// The kinds of evidence that lenses ask for, by category.
type Required = BTreeMap<String, BTreeSet<Proof>>;

/// All findings of a part, each for itself; also of a part that was broken off before anything was weighed.
fn listed(cycle: &Cycle, required: &Required) -> Vec<Listed> {
    let mut listed = Vec::new();
    for (name, review) in cycle.reviewers() {
        for (index, finding) in (0_u32..).zip(&review.findings) {
            let key = (name.to_owned(), index);
            let trial = cycle.trials.get(&key).map(|(trial, detail, tail)| Tried {
                trial: *trial,
                detail: detail.clone(),
                command: finding.reproduction.as_ref().map(|it| it.command.clone()).unwrap_or_default(),
                tail: tail.clone(),
            });
            let confirmed = trial.as_ref().is_some_and(|tried| tried.trial == ReproductionResult::Confirmed);
            let weighed = || evidence::weigh_by(finding, required).filter(|_| !confirmed);
            let early = cycle.boundary.is_none().then(weighed).flatten();
            let unfounded = cycle.downgrades.get(&key).copied().or(early);
            let mut one = list(finding, None, name);
            one.standing = match (&trial, unfounded) {
                (Some(Tried { trial: ReproductionResult::Refuted, .. }), _) => Standing::Refuted,
                (_, Some(why)) if why.counts_as() == Severity::Info => Standing::Unfounded(why),
                (_, Some(_) | None) => Standing::Yes,
            };
            if let Some(why) = unfounded {
                one.severity = one.severity.min(why.counts_as());
            }
            if matches!(one.standing, Standing::Refuted | Standing::Unfounded(_)) {
                one.severity = Severity::Info;
            }
            one.trial = trial;
            listed.push(one);
        }
    }
    listed.extend(cycle.still_open().map(|finding| list(finding, None, &finding.source)));
    let aside = cycle.set_aside_rejections().into_values().flat_map(|rejection| &rejection.findings);
    listed.extend(aside.map(|finding| list(finding, None, &finding.source)));
    listed.extend(cycle.raised.iter().map(|(sign, finding)| list(finding, Some(*sign), PROGRAM)));
    listed
}

fn list(finding: &Finding, sign: Option<Sign>, source: &str) -> Listed {
    Listed {
        rule: rule(finding, sign),
        severity: finding.severity,
        said: finding.severity,
        standing: Standing::Yes,
        trial: None,
        since: None,
        known_as: String::new(),
        file: finding.file.clone(),
        line: finding.line,
        location: finding.location.clone(),
        category: finding.category.clone(),
        description: finding.description.clone(),
        fix: finding.fix.clone(),
        evidence: finding.evidence.clone(),
        sources: vec![source.to_owned()],
        also: Vec::new(),
        anchor: finding.anchor.clone(),
        places: other_places(finding),
        fingerprint: of_finding(finding, sign),
    }
}

/// Lines it cites that are there, but for its own.
fn other_places(finding: &Finding) -> Vec<(String, u32)> {
    let own = |cited: &Citation| cited.file == finding.file && cited.line == finding.line;
    let there =
        finding.citations.iter().filter(|cited| cited.holds == Some(true) && cited.line > 0 && !own(cited));
    let places: BTreeSet<(String, u32)> = there.map(|cited| (cited.file.clone(), cited.line)).collect();
    places.into_iter().collect()
}

impl Reviewer {
    fn unknown() -> Reviewer {
        Reviewer {
            archetype: String::new(),
            verdict: None,
            findings: 0,
            left_out: 0,
            missed: 0,
            missed_why: String::new(),
            agent: String::new(),
            player: None,
            tokens: crate::event::Tokens::default(),
            cost: crate::model::Money::ZERO,
        }
    }
}

/// By what a finding is known again.
pub(crate) fn of_finding(finding: &Finding, sign: Option<Sign>) -> String {
    let anchor = sign.map_or(finding.anchor.as_str(), |sign| sign.name());
    fingerprint(&rule(finding, sign), &finding.file, anchor, &finding.description)
}

fn rule(finding: &Finding, sign: Option<Sign>) -> String {
    sign.map_or_else(|| finding.category.clone(), |sign| sign.name().to_owned())
}

fn worse(a: Verdict, b: Verdict) -> Verdict {
    if a == Verdict::Rejected { a } else { b }
}
