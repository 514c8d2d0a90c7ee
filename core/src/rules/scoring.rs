//! How much a reviewer is worth (AF-170, AF-171, CL-29), from the log of a finished run. Ratios of whole numbers are
//! added exactly; what is written down is their sum in millionths, rounded down once.

use std::collections::{BTreeMap, BTreeSet};

use crate::event::{
    AgentComplete, AgentLine, AgentStart, CostSource, CycleBoundary, Entry, ReviewLine, RunContinued, Topic,
    Tracked, Unfounded,
};
use crate::model::named::named;
use crate::model::{
    AnswerBody, Disposition, Finding, Millionths, Money, Prior, Role, Seq, Severity, Tier, Verdict,
};
use crate::rules::{convergence, ledger};
use crate::run::Run;

/// Percent each dimension counts with: signal, fixes, cost, accuracy, impact.
pub const WEIGHTS: [u128; 5] = [30, 25, 20, 15, 10];
const _: () =
    assert!(WEIGHTS[0] + WEIGHTS[1] + WEIGHTS[2] + WEIGHTS[3] + WEIGHTS[4] == 100, "weights sum to 1");

/// The number of useful findings per dollar that scores highest.
const USEFUL_PER_DOLLAR: u128 = 100;

/// What one reviewer did in one run, counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Score {
    pub archetype: String,
    pub model: Tier,
    /// Findings above INFO it stated, each once however many cycles it stayed open.
    pub total: u32,
    /// INFO findings it stated, each once: noise beside the others (M-04).
    pub info: u32,
    /// Those above INFO that survived the look at their evidence.
    pub standing: u32,
    /// Of these, those that were fixed, or accepted by the agent that had to fix them or by a person.
    pub useful: u32,
    pub fixed: u32,
    /// Of all, those shown to be wrong.
    pub contradicted: u32,
    /// It had a part in the approval the run ended with.
    pub impact: bool,
    /// What its attempts count with in the budget.
    pub cost: Money,
    /// Every answer came with its cost or its tokens, or from a model that is never paid for. What was reserved for
    /// an agent that reports neither is a guess and says nothing about its efficiency (M-04).
    pub cost_is_known: bool,
    pub tokens: u64,
}

impl Score {
    pub fn signal_to_noise(&self) -> Ratio {
        Ratio::of(self.useful, self.total.saturating_add(self.info))
    }

    pub fn fix_rate(&self) -> Ratio {
        Ratio::of(self.fixed, self.standing)
    }

    /// Useful findings for each dollar; `None` where nothing was paid or the cost is not known.
    pub fn useful_per_dollar(&self) -> Option<Ratio> {
        let cost = u128::from(self.cost.0);
        (cost > 0 && self.cost_is_known).then(|| Ratio::new(u128::from(self.useful) * 1_000_000, cost))
    }

    /// The same between 0 and 1. A model that is known to cost nothing is as efficient as can be, if it is of any
    /// use. An unknown cost earns nothing: else keeping silent about it would be the cheapest way to a high score.
    pub fn cost_efficiency(&self) -> Ratio {
        match self.useful_per_dollar() {
            Some(Ratio(n, d)) => Ratio::new(n, d * USEFUL_PER_DOLLAR).at_most_one(),
            None if self.useful > 0 && self.cost_is_known => Ratio::ONE,
            None => Ratio::ZERO,
        }
    }

    pub fn accuracy(&self) -> Ratio {
        Ratio::of(self.total - self.contradicted, self.total)
    }

    pub fn composite(&self) -> Millionths {
        let impact = if self.impact { Ratio::ONE } else { Ratio::ZERO };
        let parts =
            [self.signal_to_noise(), self.fix_rate(), self.cost_efficiency(), self.accuracy(), impact];
        let weighed =
            WEIGHTS.into_iter().zip(parts).map(|(weight, Ratio(n, d))| Ratio::new(n * weight, d * 100));
        weighed.fold(Ratio::ZERO, Ratio::plus).millionths()
    }
}

/// A fraction in lowest terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ratio(pub u128, pub u128);

impl Ratio {
    pub const ZERO: Ratio = Ratio(0, 1);
    pub const ONE: Ratio = Ratio(1, 1);

    fn new(part: u128, whole: u128) -> Ratio {
        let common = greatest_common(part, whole).max(1);
        Ratio(part / common, (whole / common).max(1))
    }

    /// All of nothing is all: without findings there are no wrong ones.
    fn of(part: u32, whole: u32) -> Ratio {
        if whole == 0 { Ratio::ONE } else { Ratio::new(u128::from(part), u128::from(whole)) }
    }

    fn plus(self, other: Ratio) -> Ratio {
        Ratio::new(self.0 * other.1 + other.0 * self.1, self.1 * other.1)
    }

    fn at_most_one(self) -> Ratio {
        if self.0 > self.1 { Ratio::ONE } else { self }
    }

    /// Rounded down.
    pub fn millionths(self) -> Millionths {
        u32::try_from(self.0.saturating_mul(1_000_000) / self.1).unwrap_or(u32::MAX)
    }
}

fn greatest_common(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { greatest_common(b, a % b) }
}

/// The scores of all reviewers of this run, in alphabetical order.
pub fn scores(log: &[Entry]) -> Vec<Score> {
    let run = Run::replay(log);
    let facts = Facts::read(log, run.policy().convergence.line_window);
    let names: BTreeSet<&str> = facts.reviews.keys().map(|(name, _)| name.as_str()).collect();
    names.into_iter().map(|name| facts.score(&run, name)).collect()
}

/// Whether an answer came with what it cost. A reported cost of 0 says nothing, because many clients report it by
/// default (M-G10); journals of earlier versions do not say where a cost comes from.
fn is_cost_known(start: &AgentStart, complete: &AgentComplete) -> bool {
    let stated = complete.estimated_cost_usd.is_some_and(|cost| cost > Money::ZERO)
        && match complete.cost_source {
            Some(CostSource::Reported | CostSource::Priced) | None => true,
            Some(CostSource::Reserved) => false,
        };
    stated || ledger::is_unpaid(&start.agent)
}

/// A review as it stood when the Maker was done with one delivery.
#[derive(Default)]
struct Reviewed {
    findings: Vec<Finding>,
    approved: bool,
    downgraded: BTreeMap<u32, Unfounded>,
}

/// The reviews in the log, by archetype and by how often the Maker had delivered. A review that was corrected
/// takes the place of the one before.
#[derive(Default)]
struct Facts {
    reviews: BTreeMap<(String, u32), Reviewed>,
    models: BTreeMap<String, Tier>,
    /// Archetypes with an answer whose cost is not known.
    cost_unknown: BTreeSet<String>,
    boundaries: Vec<CycleBoundary>,
    /// The statements of each archetype about earlier findings.
    priors: Vec<(String, Prior)>,
    /// Findings a person accepted as they are, by id.
    accepted: BTreeSet<String>,
    window: u32,
}

impl Facts {
    fn read(log: &[Entry], window: u32) -> Facts {
        let mut facts = Facts { window, ..Facts::default() };
        let mut started: BTreeMap<Seq, &AgentStart> = BTreeMap::new();
        let mut delivered = 0;
        for entry in log {
            match entry.event.topic() {
                Topic::Agent(line) => match line {
                    AgentLine::AgentStart(start) => drop(started.insert(entry.seq, start)),
                    AgentLine::AgentComplete(complete) => {
                        let Some(start) = started.remove(&complete.start_seq) else { continue };
                        delivered += u32::from(start.role == Role::Maker);
                        if !is_cost_known(start, complete) {
                            facts.cost_unknown.insert(complete.archetype.clone());
                        }
                        facts.answer(complete, delivered);
                    }
                    AgentLine::AgentFailed(_)
                    | AgentLine::AgentTimeout(_)
                    | AgentLine::AgentLost(_)
                    | AgentLine::AgentUsage(_)
                    | AgentLine::AgentSkipped(_) => {}
                },
                Topic::Review(line) => match line {
                    ReviewLine::ReviewVerdict(verdict) => {
                        if let Some(review) = facts.reviews.get_mut(&(verdict.archetype.clone(), delivered)) {
                            review.approved = verdict.verdict == Verdict::Approved;
                        }
                    }
                    ReviewLine::EvidenceDowngrade(down) => {
                        if let Some(review) = facts.reviews.get_mut(&(down.archetype.clone(), delivered)) {
                            review.downgraded.insert(down.index, down.reason);
                        }
                    }
                    ReviewLine::ReviewOpened(_)
                    | ReviewLine::FindingRaised(_)
                    | ReviewLine::EvidenceStart(_)
                    | ReviewLine::EvidenceDone(_) => {}
                },
                Topic::Cycle(_) => facts.boundaries.extend(entry.event.body::<CycleBoundary>().cloned()),
                Topic::Run(_) => {
                    let accepted = entry.event.body::<RunContinued>().map(|continued| &continued.accept);
                    facts.accepted.extend(accepted.into_iter().flatten().cloned());
                }
                Topic::Correction(_) | Topic::Question(_) | Topic::Landing(_) | Topic::Loop(_) => {}
            }
        }
        facts
    }

    fn answer(&mut self, complete: &AgentComplete, delivered: u32) {
        let name = &complete.archetype;
        self.priors.extend(complete.answer.prior.iter().map(|prior| (name.clone(), prior.clone())));
        let AnswerBody::Review(review) = &complete.answer.said else { return };
        self.models.insert(name.clone(), complete.model);
        let reviewed = Reviewed { findings: review.findings.clone(), ..Reviewed::default() };
        self.reviews.insert((name.clone(), delivered), reviewed);
    }

    fn score(&self, run: &Run, name: &str) -> Score {
        let items = self.items(name, |severity| severity != Severity::Info);
        let info = self.items(name, |severity| severity == Severity::Info).len();
        let count = |test: &dyn Fn(&Item<'_>) -> bool| {
            u32::try_from(items.iter().filter(|item| test(item)).count()).unwrap_or(u32::MAX)
        };
        let fixed = |item: &Item<'_>| item.standing && self.fixed(name, item);
        let fixes = count(&fixed);
        let accounts = run.ledger.accounts.iter().filter(|((archetype, _), _)| archetype == name);
        let (mut cost, mut tokens) = (Money::ZERO, 0_u64);
        for (_, account) in accounts {
            cost = cost.plus(account.cost);
            tokens = tokens.saturating_add(account.tokens.input).saturating_add(account.tokens.output);
        }
        Score {
            archetype: name.to_owned(),
            model: self.models.get(name).copied().unwrap_or(Tier::Sonnet),
            total: count(&|_| true),
            info: u32::try_from(info).unwrap_or(u32::MAX),
            standing: count(&|item| item.standing),
            useful: count(&|item| item.standing && (self.fixed(name, item) || self.accepted(item))),
            fixed: fixes,
            contradicted: count(&|item| self.contradicted(name, item)),
            impact: self.impact(name, fixes),
            cost,
            cost_is_known: !self.cost_unknown.contains(name),
            tokens,
        }
    }

    /// Its findings of these severities, each once: one that stays open is the one of the review before.
    fn items(&self, name: &str, counts: impl Fn(Severity) -> bool) -> Vec<Item<'_>> {
        let mut items: Vec<Item<'_>> = Vec::new();
        for ((archetype, round), review) in &self.reviews {
            if archetype != name {
                continue;
            }
            let earlier = items.len();
            let mut taken = BTreeSet::new();
            for (index, finding) in (0_u32..).zip(&review.findings) {
                if !counts(finding.severity) {
                    continue;
                }
                let refuted = review.downgraded.get(&index).copied();
                let same = (0..earlier).find(|at| {
                    !taken.contains(at) && items.get(*at).is_some_and(|item| self.same(item.finding, finding))
                });
                match same.and_then(|at| items.get_mut(at).map(|item| (at, item))) {
                    Some((at, item)) => {
                        taken.insert(at);
                        item.last = *round;
                        item.standing |= refuted.is_none();
                    }
                    None => {
                        let standing = refuted.is_none();
                        items.push(Item { finding, first: *round, last: *round, standing, refuted });
                    }
                }
            }
        }
        items
    }

    fn same(&self, a: &Finding, b: &Finding) -> bool {
        a.category == b.category && a.file == b.file && self.near(a.line, b.line)
    }

    /// An unknown line is near every line of its file.
    fn near(&self, a: u32, b: u32) -> bool {
        a == 0 || b == 0 || a.abs_diff(b) <= self.window
    }

    fn is(&self, tracked: &Tracked, name: &str, finding: &Finding) -> bool {
        tracked.source.iter().any(|source| source == name)
            && tracked.file == finding.file
            && tracked.category == finding.category
            && self.near(tracked.line, finding.line)
    }

    /// Gone: a later cycle resolved it, or its own author looked again and did not find it any more; and it is not
    /// open at the end.
    fn fixed(&self, name: &str, item: &Item<'_>) -> bool {
        let open = |tracked: &&Tracked| self.is(tracked, name, item.finding);
        if self.boundaries.last().is_some_and(|last| last.open.iter().any(|tracked| open(&tracked))) {
            return false;
        }
        let trends = self.boundaries.iter().filter_map(|boundary| boundary.convergence.as_ref());
        let resolved = trends.flat_map(|trend| &trend.resolved_findings).any(|tracked| open(&tracked));
        let looked_again = self.reviews.keys().any(|(who, round)| who == name && *round > item.last);
        resolved || looked_again
    }

    fn accepted(&self, item: &Item<'_>) -> bool {
        let said =
            |prior: &Prior| prior.disposition == Disposition::Accepted && names(&prior.text, item.finding);
        let by_person =
            |id: &String| id.starts_with(&format!("{}:{}", item.finding.file, item.finding.category));
        self.priors.iter().any(|(_, prior)| said(prior)) || self.accepted.iter().any(by_person)
    }

    /// Something contradicts it: the place it cites is not there; another reviewer of the same delivery
    /// approved and had looked at that very place; or another reviewer disputes it later.
    fn contradicted(&self, name: &str, item: &Item<'_>) -> bool {
        let finding = item.finding;
        let looked = |other: &Finding| {
            !finding.file.is_empty()
                && other.file == finding.file
                && other.line != 0
                && finding.line != 0
                && self.near(other.line, finding.line)
        };
        let passed = self.reviews.iter().any(|((who, round), review)| {
            who != name
                && (item.first..=item.last).contains(round)
                && review.approved
                && review.findings.iter().any(|other| other.severity == Severity::Info && looked(other))
        });
        let disputed = self.priors.iter().any(|(who, prior)| {
            who != name
                && self.models.contains_key(who)
                && prior.disposition == Disposition::Disputed
                && names(&prior.text, finding)
        });
        item.refuted == Some(Unfounded::CitationNotFound) || passed || disputed
    }

    /// The run ended approved, and this reviewer approved what landed or had something mended on the way.
    fn impact(&self, name: &str, fixes: u32) -> bool {
        let approved = self.boundaries.last().is_some_and(|last| last.met);
        let last = self.reviews.keys().map(|(_, round)| *round).max().unwrap_or(0);
        let agreed = self.reviews.get(&(name.to_owned(), last)).is_some_and(|review| review.approved);
        approved && (agreed || fixes > 0)
    }
}

struct Item<'a> {
    finding: &'a Finding,
    /// The deliveries in whose reviews it is.
    first: u32,
    last: u32,
    standing: bool,
    refuted: Option<Unfounded>,
}

/// By its place and category, or in at least half of its words.
fn names(text: &str, finding: &Finding) -> bool {
    let wanted = convergence::keywords(&finding.description);
    let said = convergence::keywords(text);
    let by_id = !finding.file.is_empty() && text.contains(&format!("{}:{}", finding.file, finding.category));
    by_id || (!wanted.is_empty() && wanted.intersection(&said).count() * 2 >= wanted.len())
}

/// One line of the file of scores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub run_id: String,
    pub archetype: String,
    pub model: Tier,
    pub composite: Millionths,
    pub signal_to_noise: Millionths,
}

/// The recent scores of an archetype on a tier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScoreSummary {
    pub archetype: String,
    pub model: Tier,
    pub runs: usize,
    /// Of the last ten at most.
    pub mean: Millionths,
    pub signal: Millionths,
    pub trend: Option<Course>,
    pub advice: Option<Advice>,
}

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Course {
        Improving = "improving",
        Steady = "steady",
        Declining = "declining",
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Advice {
    pub value: ScoreAdvice,
    /// CL-29, the reading we recommend: a low score on a cheaper tier asks for the next dearer one.
    pub upgrade: Option<Tier>,
    /// CL-29, the founding text's wording: a cheap reviewer with a high signal has earned the next dearer one.
    pub promote: Option<Tier>,
}

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum ScoreAdvice {
        Keep = "keep",
        Optimize = "optimize",
        ConsiderRemoving = "consider_removing",
    }
}

/// Runs that are looked at, and that advice needs (AF-171).
pub const LOOKED_AT: usize = 10;
const HALF: usize = 5;
const KEEP_FROM: Millionths = 700_000;
const OPTIMIZE_FROM: Millionths = 400_000;
/// A change of the mean of more than this is a trend.
const TREND_ABOVE: u64 = 50_000;

/// The records come oldest first, one for each run and archetype.
pub fn report(records: &[Record]) -> Vec<ScoreSummary> {
    let mut groups: BTreeMap<(&str, Tier), Vec<&Record>> = BTreeMap::new();
    for record in records {
        groups.entry((&record.archetype, record.model)).or_default().push(record);
    }
    groups.into_iter().map(|((archetype, model), records)| standing(archetype, model, &records)).collect()
}

fn standing(archetype: &str, model: Tier, records: &[&Record]) -> ScoreSummary {
    let last = records.get(records.len().saturating_sub(LOOKED_AT)..).unwrap_or_default();
    let mean = mean(last.iter().map(|record| record.composite));
    let signal = self::mean(last.iter().map(|record| record.signal_to_noise));
    let enough = last.len() >= LOOKED_AT;
    ScoreSummary {
        archetype: archetype.to_owned(),
        model,
        runs: records.len(),
        mean,
        signal,
        trend: enough.then(|| course(last)),
        advice: enough.then(|| advise(model, mean, signal)),
    }
}

/// The sum of the last five against the sum of the five before; means would be the same, divided.
fn course(last: &[&Record]) -> Course {
    let (before, lately) = last.split_at(HALF);
    let sum = |records: &[&Record]| records.iter().map(|record| u64::from(record.composite)).sum::<u64>();
    let (before, lately) = (sum(before), sum(lately));
    let bar = TREND_ABOVE * HALF as u64;
    match (lately > before + bar, before > lately + bar) {
        (true, _) => Course::Improving,
        (false, true) => Course::Declining,
        (false, false) => Course::Steady,
    }
}

fn advise(model: Tier, mean: Millionths, signal: Millionths) -> Advice {
    let dearer = match model {
        Tier::Haiku => Some(Tier::Sonnet),
        Tier::Sonnet => Some(Tier::Opus),
        Tier::Opus => None,
    };
    let value = match mean {
        KEEP_FROM.. => ScoreAdvice::Keep,
        OPTIMIZE_FROM.. => ScoreAdvice::Optimize,
        _ => ScoreAdvice::ConsiderRemoving,
    };
    let promote = dearer.filter(|_| model == Tier::Haiku && signal >= KEEP_FROM);
    Advice { value, upgrade: dearer.filter(|_| mean < KEEP_FROM), promote }
}

/// Rounded down.
fn mean(numbers: impl Iterator<Item = Millionths>) -> Millionths {
    let (sum, n) = numbers.fold((0_u64, 0_u64), |(sum, n), number| (sum + u64::from(number), n + 1));
    u32::try_from(sum.checked_div(n).unwrap_or(0)).unwrap_or(0)
}
