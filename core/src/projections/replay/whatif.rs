//! The same reports under another policy: what would have been decided, and how far that is known.
//!
//! The recorded reports are applied to a run with the changed policy, one by one, and [`decide`] says what follows. As long
//! as it decides as it did, the recording is the other course too. Where it decides otherwise, its orders are answered by
//! recorded facts as far as those answer the same order (`facts`); at the first order without a recorded answer,
//! the future is unknown and the replay ends.
//!
//! Without a change nothing differs: the simulation proves it, seed by seed, crashes included.

use std::collections::{BTreeMap, BTreeSet};

use crate::decide::decide;
use crate::event::{
    Conclusion, CycleBoundary, Decision, DecisionPoint, DecisionRecord, Entry, Event, Order,
    PolicyCheckpoint, QuestionAsked, Report, RunStart, WiggumBreak,
};
use crate::model::{Outcome, Phase, Seq};
use crate::run::Run;

use super::decision::{self, DecisionText};
use super::facts::{self, Asked, Recorded};

/// What is other than it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyChange {
    /// The first line as it would have been.
    pub start: RunStart,
    /// Whether landing was allowed beforehand; `None`: as in each session.
    pub auto_merge: Option<bool>,
}

/// What would have been.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WhatIf {
    /// Decisions that differ, in their order. Empty: the other policy changes nothing.
    pub differences: Vec<Difference>,
    pub end: End,
    /// Recorded reports that still count, and how many there are.
    pub used: u32,
    pub facts: u32,
    /// The last recorded line that still counts.
    pub carried_to: Seq,
    /// The run under the other policy, as far as it is known.
    pub run: Run,
}

/// A place where another decision is taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The recorded line; where there is none, the line after which something more would have been written.
    pub seq: Seq,
    pub cycle: u32,
    pub phase: Phase,
    pub was: Option<DecisionText>,
    pub would: Option<DecisionText>,
}

impl Difference {
    /// The rule behind it; that of the recorded decision first.
    pub fn rule(&self) -> &str {
        let rules = [&self.was, &self.would].map(|told| told.as_ref().map_or("", |told| told.rule.as_str()));
        rules.into_iter().find(|rule| !rule.is_empty()).unwrap_or_default()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The recorded facts carry to this end.
    Known(Outcome),
    /// The recording itself ends before the run does.
    StillOpen,
    /// Unknown from here on.
    Unknown(Unknown),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// The last recorded line before.
    pub after: Seq,
    pub cycle: u32,
    pub phase: Phase,
    /// What would have been ordered next.
    pub ordered: Vec<String>,
    pub why: String,
}

/// Tells the recorded reports to a run with another first line.
pub fn refold(log: &[Entry], change: &PolicyChange) -> WhatIf {
    let reports = log.iter().filter(|entry| matches!(entry.event, Event::Report(_))).count();
    let mut walk = Walk::new(log, change);
    let end = walk.go();
    WhatIf {
        differences: walk.differences,
        end,
        used: walk.used,
        facts: u32::try_from(reports).unwrap_or(u32::MAX),
        carried_to: walk.carried_to,
        run: walk.would,
    }
}

struct Walk<'a> {
    log: &'a [Entry],
    change: &'a PolicyChange,
    orders: Vec<Recorded>,
    /// Orders before this one are all taken.
    first_free: usize,
    would: Run,
    /// The recorded run, folded up to a line, for the few questions that need it.
    was: Run,
    was_at: usize,
    /// Line numbers of orders: recorded to other course, and back.
    there: BTreeMap<Seq, Seq>,
    back: BTreeMap<Seq, Seq>,
    /// Everything so far was decided as recorded.
    in_step: bool,
    /// Answers that came before the other course had asked, by recorded order.
    early: BTreeMap<Seq, usize>,
    differences: Vec<Difference>,
    used: u32,
    carried_to: Seq,
    /// Why the rest is unknown, once it is.
    unknown: Option<String>,
}

impl<'a> Walk<'a> {
    fn new(log: &'a [Entry], change: &'a PolicyChange) -> Walk<'a> {
        Walk {
            log,
            change,
            orders: facts::recorded(log),
            first_free: 0,
            would: Run::default(),
            was: Run::default(),
            was_at: 0,
            there: BTreeMap::new(),
            back: BTreeMap::new(),
            in_step: true,
            early: BTreeMap::new(),
            differences: Vec::new(),
            used: 0,
            carried_to: 0,
            unknown: None,
        }
    }

    fn go(&mut self) -> End {
        let mut at = 0;
        while at < self.log.len() {
            let next = self.after_conclusions(at + 1);
            self.hear(at);
            self.conclude(at + 1, next);
            self.catch_up(next);
            if let Some(end) = self.end(next) {
                return end;
            }
            at = next;
        }
        self.would.outcome.clone().map_or(End::StillOpen, End::Known)
    }

    /// The next report from here on.
    fn after_conclusions(&self, from: usize) -> usize {
        let rest = self.log.get(from..).unwrap_or_default();
        from + rest.iter().take_while(|entry| !matches!(entry.event, Event::Report(_))).count()
    }

    /// Tells the other course what was recorded here, if it concerns it.
    fn hear(&mut self, at: usize) {
        let Some(entry) = self.log.get(at) else { return };
        let Event::Report(report) = &entry.event else { return };
        match report.answers() {
            None => {
                if self.applies(at) {
                    self.take_in(entry, self.changed(report));
                }
            }
            Some(order) => match self.there.get(&order).copied() {
                Some(seq) if self.would.open.contains_key(&seq) => self.answer(entry, order, seq),
                Some(seq) if self.in_step => self.take_in(entry, report.clone().to_order(seq)),
                None if self.in_step => self.take_in(entry, report.clone()),
                Some(_) => {}
                None => {
                    self.early.entry(order).or_insert(at);
                }
            },
        }
    }

    fn changed(&self, report: &Report) -> Report {
        if let Report::RunStart(_) = report {
            return self.change.start.clone().into();
        }
        let mut report = report.clone();
        if let Report::SessionStart(session) = &mut report {
            session.auto_merge = self.change.auto_merge.unwrap_or(session.auto_merge);
        }
        report
    }

    /// A session or a person's decision is valid only if the run is in the same state: ended, or not.
    fn applies(&mut self, at: usize) -> bool {
        self.in_step || self.was_before(at).outcome.is_some() == self.would.outcome.is_some()
    }

    fn answer(&mut self, entry: &Entry, order: Seq, seq: Seq) {
        let Event::Report(report) = &entry.event else { return };
        let limits = self.recorded(order).zip(self.would.open.get(&seq));
        let late = limits.and_then(|(was, now)| facts::out_of_time(&was.asked.order, now, report));
        match late {
            Some(why) => self.unknown = self.unknown.take().or(Some(why)),
            None => self.take_in(entry, report.clone().to_order(seq)),
        }
    }

    fn take_in(&mut self, entry: &Entry, report: Report) {
        self.would.hear(entry.at, report);
        self.used += 1;
        self.carried_to = self.carried_to.max(entry.seq);
    }

    /// What follows, beside what was recorded between these two places.
    fn conclude(&mut self, from: usize, to: usize) {
        let (mut at, mut noted) = (from, false);
        let mut lines = 0_u32;
        loop {
            let events = decide(&self.would);
            if events.is_empty() || self.unknown.is_some() {
                break;
            }
            for (nth, conclusion) in events.into_iter().enumerate() {
                let asked = match &conclusion {
                    Conclusion::Order(order) => Some(Asked::of(&self.would, order)),
                    Conclusion::Decision(_) => None,
                };
                let event = Event::from(conclusion);
                let expected = self.log.get(at).filter(|_| at < to && !noted);
                let written_at = expected.map_or(self.would.last, |entry| entry.at);
                match expected {
                    Some(entry) if self.is_same(entry, &event, asked.as_ref()) => at += 1,
                    Some(entry) => {
                        self.differ(at, Some(&entry.event), Some(&event));
                        self.say_what_differs(entry.seq, asked.as_ref());
                        noted = true;
                    }
                    None if noted => {}
                    None if self.broke_off(to) || (nth > 0 && self.was_ended(to)) => return,
                    None => {
                        self.differ(to, None, Some(&event));
                        noted = true;
                    }
                }
                self.write(written_at, event, asked);
                lines += 1;
            }
            assert!(lines <= LINES_AT_MOST, "a rule feeds itself under another policy");
        }
        if at < to && !noted && self.unknown.is_none() {
            let was = self.log.get(at).map(|entry| entry.event.clone());
            self.differ(at, was.as_ref(), None);
        }
    }

    fn is_same(&self, entry: &Entry, event: &Event, asked: Option<&Asked>) -> bool {
        match asked {
            None => decides_the_same(&entry.event, &self.as_recorded(event)),
            Some(asked) => self
                .recorded(entry.seq)
                .is_some_and(|recorded| !recorded.taken && recorded.asked.is_same(asked)),
        }
    }

    fn recorded(&self, order: Seq) -> Option<&Recorded> {
        let at = self.orders.binary_search_by_key(&order, |recorded| recorded.seq).ok()?;
        self.orders.get(at)
    }

    /// The same event with the line numbers of the recording.
    fn as_recorded(&self, event: &Event) -> Event {
        let mut event = event.clone();
        let back = |seq: &mut Seq| *seq = self.back.get(seq).copied().unwrap_or(*seq);
        if let Event::Decision(Decision::ShadowDetected(seen)) = &mut event {
            back(&mut seen.looked_at);
        }
        if let Event::Decision(Decision::RunComplete(complete)) = &mut event {
            complete.question.iter_mut().for_each(back);
        }
        event
    }

    fn differ(&mut self, at: usize, was: Option<&Event>, would: Option<&Event>) {
        self.in_step = false;
        let before = at.checked_sub(usize::from(was.is_none())).and_then(|at| self.log.get(at));
        self.differences.push(Difference {
            seq: before.map_or(0, |entry| entry.seq),
            cycle: self.would.number(),
            phase: self.would.cycle().map_or(Phase::Plan, |cycle| cycle.phase),
            was: was.map(decision::describe),
            would: would.map(decision::describe),
        });
    }

    /// Somebody would be sent for the same as before, but would find something else there.
    fn say_what_differs(&mut self, seq: Seq, asked: Option<&Asked>) {
        let near = self.recorded(seq).zip(asked).filter(|(was, now)| was.asked.is_about_the_same(now));
        let what = near.and_then(|(was, now)| was.asked.differs_in(now));
        let would = self.differences.last_mut().and_then(|difference| difference.would.as_mut());
        if let (Some(what), Some(would)) = (what, would) {
            would.decision = format!("the same, but {what}");
        }
    }

    /// Writes a conclusion down; an order is paired with the recorded one it is the same as.
    fn write(&mut self, at: u64, event: Event, asked: Option<Asked>) {
        let seq = self.would.write(at, event, false).seq;
        let Some(asked) = asked else { return };
        while self.orders.get(self.first_free).is_some_and(|recorded| recorded.taken) {
            self.first_free += 1;
        }
        let free = self.orders.iter_mut().skip(self.first_free).filter(|recorded| !recorded.taken);
        let Some(recorded) = free.into_iter().find(|recorded| recorded.asked.is_same(&asked)) else { return };
        recorded.taken = true;
        self.there.insert(recorded.seq, seq);
        self.back.insert(seq, recorded.seq);
    }

    /// Answers that were recorded before the replay asked for them.
    fn catch_up(&mut self, next: usize) {
        while let Some((order, seq, at)) = self.waiting_answer() {
            self.early.remove(&order);
            let Some(entry) = self.log.get(at) else { return };
            self.answer(entry, order, seq);
            self.conclude(next, next);
            if self.unknown.is_some() {
                return;
            }
        }
    }

    fn waiting_answer(&self) -> Option<(Seq, Seq, usize)> {
        let open = |order: &Seq| self.there.get(order).filter(|seq| self.would.open.contains_key(seq));
        self.early.iter().find_map(|(order, at)| Some((*order, *open(order)?, *at)))
    }

    /// Whether it is over: an end that the recording does not have, or an order without a recorded answer.
    fn end(&mut self, next: usize) -> Option<End> {
        if let Some(why) = self.unknown.take() {
            return Some(self.lost_at(why, &BTreeSet::new()));
        }
        if self.in_step {
            return None;
        }
        if let Some(outcome) = self.would.outcome.clone() {
            let was = self.was_before(next).outcome.as_ref();
            let same = was.is_some_and(|was| (was.status, was.reason) == (outcome.status, outcome.reason));
            return (!same).then_some(End::Known(outcome));
        }
        let strange: BTreeSet<Seq> =
            self.would.open.keys().filter(|seq| !self.back.contains_key(seq)).copied().collect();
        let first = strange.first().and_then(|seq| self.would.open.get(seq))?;
        let why = self.why_unanswered(&first.clone());
        Some(self.lost_at(why, &strange))
    }

    fn lost_at(&self, why: String, strange: &BTreeSet<Seq>) -> End {
        let ordered = self
            .would
            .open
            .iter()
            .filter(|(seq, _)| strange.is_empty() || strange.contains(seq))
            .map(|(_, order)| decision::ordered(order))
            .collect();
        End::Unknown(Unknown {
            after: self.carried_to,
            cycle: self.would.number(),
            phase: self.would.cycle().map_or(Phase::Plan, |cycle| cycle.phase),
            ordered,
            why,
        })
    }

    /// The most similar recorded order gives the reason why its answer does not count.
    fn why_unanswered(&self, order: &Order) -> String {
        let asked = Asked::of(&self.would, order);
        let mut near = self.orders.iter().filter(|recorded| recorded.asked.is_about_the_same(&asked));
        let differs = near.find_map(|recorded| recorded.asked.differs_in(&asked));
        differs.map_or_else(
            || match order.body::<QuestionAsked>() {
                Some(_) => "this question was not asked in the recorded run".to_owned(),
                None => "nothing was recorded that answers this".to_owned(),
            },
            str::to_owned,
        )
    }

    /// The recorded run as it was before this line.
    fn was_before(&mut self, at: usize) -> &Run {
        let from = if self.was_at <= at { self.was_at } else { 0 };
        if from == 0 {
            self.was = Run::default();
        }
        let log = self.log;
        for entry in log.get(from..at).unwrap_or_default() {
            self.was.apply(entry);
        }
        self.was_at = at;
        &self.was
    }

    /// Whether the program was ended here before it could conclude everything, and went on later. Where the recording
    /// itself ends, the replay may still conclude something.
    fn broke_off(&mut self, at: usize) -> bool {
        (self.in_step || at < self.log.len()) && !decide(self.was_before(at)).is_empty()
    }

    /// Whether the program was ended before this line. Of conclusions that belong together the first ones may then be
    /// in the log and the others not, and those may have to wait for what the first ones ordered.
    fn was_ended(&self, at: usize) -> bool {
        self.log.get(at).is_some_and(|entry| matches!(entry.event, Event::Report(Report::SessionStart(_))))
    }
}

/// More conclusions than this from one report is a rule that feeds itself.
const LINES_AT_MOST: u32 = 5_000;

/// Whether two decisions are the same one. What they looked at may differ in the numbers of the policy itself, as in
/// `cycle 1 of 3`; what was decided may not.
fn decides_the_same(was: &Event, would: &Event) -> bool {
    let (Event::Decision(was), Event::Decision(would)) = (was, would) else { return was == would };
    let same = match was {
        Decision::DecisionPoint(was) => would.body::<DecisionPoint>().map(|would| {
            (&was.archetype, &was.rule, &was.decision) == (&would.archetype, &would.rule, &would.decision)
        }),
        Decision::DecisionRecord(was) => would.body::<DecisionRecord>().map(|would| {
            (&was.archetype, &was.rule, &was.chosen) == (&would.archetype, &would.rule, &would.chosen)
        }),
        Decision::CycleBoundary(was) => would
            .body::<CycleBoundary>()
            .map(|would| **was == CycleBoundary { max_cycles: was.max_cycles, ..would.clone() }),
        Decision::WiggumBreak(was) => would
            .body::<WiggumBreak>()
            .map(|would| **was == WiggumBreak { run_state: was.run_state.clone(), ..would.clone() }),
        Decision::PolicyCheckpoint(was) => would
            .body::<PolicyCheckpoint>()
            .map(|would| (was.number, &was.why, &was.stops) == (would.number, &would.why, &would.stops)),
        Decision::PhaseTransition(_)
        | Decision::WorkflowEscalated(_)
        | Decision::AgentSkipped(_)
        | Decision::ReviewVerdict(_)
        | Decision::EvidenceDowngrade(_)
        | Decision::FindingRaised(_)
        | Decision::FixApplied(_)
        | Decision::ShadowDetected(_)
        | Decision::BudgetStep(_)
        | Decision::LoopTurn(_)
        | Decision::LoopAlert(_)
        | Decision::RunComplete(_) => Some(was == would),
    };
    same == Some(true)
}
