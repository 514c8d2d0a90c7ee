//! The host's loop in miniature: hear, settle, write down, perform; and, when the schedule says so, die and come back.

use std::collections::BTreeMap;

use archeflow_core::event::{
    AgentFailed, AgentLost, Entry, Event, Failure, Order, Report, RunPaused, RunResumed, SessionEnd, Verb,
};
use archeflow_core::model::Seq;
use archeflow_core::run::Run;

use super::chance::{Chance, word};
use super::ledger::Ledger;
use super::world::{Reply, World};

/// A run that writes more than this is not coming to an end.
const LINES_AT_MOST: usize = 4_000;
const CRASHES_AT_MOST: u32 = 8;

/// Time passes only while people think: some come back before an account serves again, some after.
fn later(ledger: &Ledger) -> u64 {
    1_000 + ledger.acts * 250_000
}

const HOUR_MS: u64 = 3_600_000;
const TEN_YEARS_MS: u64 = 10 * 365 * 24 * HOUR_MS;

pub(crate) enum Schedule {
    /// Answers come in the order they were asked for.
    Calm,
    /// Answers come in any order, some of them twice.
    AnyOrder(Chance),
    /// The same, and the program dies now and then.
    Crashing(Chance),
}

pub(crate) struct Life {
    pub(crate) world: World,
    pub(crate) log: Vec<Entry>,
    /// What happened to the program itself, by kind.
    pub(crate) mishaps: BTreeMap<&'static str, u32>,
    /// A crash took an agent whose account is limited: it can't be sent again as it was, so this life may go another way
    /// than a calm one.
    pub(crate) parted: bool,
    run: Run,
    ledger: Ledger,
    schedule: Schedule,
    /// A person who pauses the run and resumes it, in every life that is not calm.
    pauses: Option<Chance>,
    /// Where the lines begin that one hearing wrote.
    batch: usize,
    pub(crate) crashes: u32,
    /// The clock on the wall goes back and forth.
    jumps: bool,
}

impl Life {
    /// Lives through a world. What went wrong comes with the name of the promise.
    pub(crate) fn live(world: World, schedule: Schedule) -> (Life, Result<(), String>) {
        Life::begin(world, schedule, false)
    }

    /// The same with a clock that goes back an hour, forward ten years and to 1970.
    pub(crate) fn live_through_jumps(world: World, schedule: Schedule) -> (Life, Result<(), String>) {
        Life::begin(world, schedule, true)
    }

    fn begin(world: World, schedule: Schedule, jumps: bool) -> (Life, Result<(), String>) {
        let pauses = match &schedule {
            Schedule::Calm => None,
            Schedule::AnyOrder(chance) | Schedule::Crashing(chance) => {
                Some(Chance::keyed(chance.clone().next(), &[word("pause")]))
            }
        };
        let mut life = Life {
            world,
            log: Vec::new(),
            mishaps: BTreeMap::new(),
            parted: false,
            run: Run::default(),
            ledger: Ledger::default(),
            schedule,
            pauses,
            batch: 0,
            crashes: 0,
            jumps,
        };
        let result = life.go();
        (life, result)
    }

    fn go(&mut self) -> Result<(), String> {
        let session = self.world.session(&self.ledger);
        let opened = self.world.opening();
        let request = [self.world.request.clone().into(), session.into()];
        self.hear(request.into_iter().chain(opened).collect())?;
        loop {
            if self.log.len() > LINES_AT_MOST {
                return Err("comes to an end: too many lines".to_owned());
            }
            if self.dies() {
                self.crash()?;
                continue;
            }
            self.is_settled()?;
            if let Some(complete) = self.run.complete.clone() {
                let Some(act) = self.world.person(
                    &self.ledger,
                    &complete,
                    self.run.work.is_some(),
                    &self.run.ways_back(),
                ) else {
                    return Ok(());
                };
                let mut next = self.ledger.clone();
                next.acts += 1;
                self.hear_at(self.clock(&next), vec![self.world.session(&next).into(), act])?;
                continue;
            }
            if let Some(report) = self.pause_or_resume() {
                self.hear(vec![report])?;
                continue;
            }
            if self.run.open.is_empty() {
                return Err("livelock: neither ends nor waits".to_owned());
            }
            if let Some(late) = self.late() {
                self.hear_late(late)?;
            }
            if let Some(stop) = self.world.stop(&self.ledger) {
                self.hear(vec![stop])?;
                continue;
            }
            let (seq, order) = self.choose();
            let report = match &order {
                Order::QuestionAsked(question) => {
                    if !self.run.attended() {
                        return Err("unattended sessions never wait on a question".to_owned());
                    }
                    match self.world.reply(&self.ledger, seq, question) {
                        Reply::Says(report) => report,
                        Reply::LeavesItOpen => return Ok(()),
                    }
                }
                order => self.world.answer(&self.ledger, seq, order),
            };
            self.hear(vec![report])?;
        }
    }

    /// What the clock on the wall says.
    fn clock(&self, ledger: &Ledger) -> u64 {
        let now = later(ledger);
        if !self.jumps {
            return now;
        }
        let mut chance = Chance::keyed(self.world.seed, &[word("clock"), self.log.len() as u64]);
        chance.pick(&[now, now, now.saturating_sub(HOUR_MS), now + HOUR_MS, now + TEN_YEARS_MS, 0])
    }

    /// One batch: reports, and everything that follows from them.
    fn hear(&mut self, reports: Vec<Report>) -> Result<(), String> {
        self.hear_at(self.clock(&self.ledger), reports)
    }

    fn hear_at(&mut self, at: u64, reports: Vec<Report>) -> Result<(), String> {
        self.batch = self.log.len();
        for report in reports {
            let entry = self.run.hear(at, report);
            self.put(entry);
        }
        self.settle()
    }

    fn settle(&mut self) -> Result<(), String> {
        for entry in self.run.settle(self.clock(&self.ledger)) {
            if entry.event.verb() == Verb::Reported {
                return Err(format!("the core never reports: {}", entry.event.name()));
            }
            self.put(entry);
        }
        Ok(())
    }

    fn put(&mut self, entry: Entry) {
        self.ledger.read(&entry);
        self.log.push(entry);
    }

    /// Nothing more follows from the same facts, and the log tells the whole story.
    fn is_settled(&self) -> Result<(), String> {
        if self.run.complete.is_none() && !self.log.len().is_multiple_of(16) {
            return Ok(());
        }
        let mut again = Run::replay(&self.log);
        if again != self.run {
            return Err("replay(log) is the live run".to_owned());
        }
        let more = again.settle(1_000);
        match more.first() {
            Some(entry) => Err(format!("a replayed run has nothing to add: {}", entry.event.name())),
            None => Ok(()),
        }
    }

    /// A paused run that waits for nobody waits for the person who paused it.
    fn pause_or_resume(&mut self) -> Option<Report> {
        let chance = self.pauses.as_mut()?;
        let by = "control".to_owned();
        match (self.run.paused.is_some(), self.run.open.is_empty()) {
            (true, true) => Some(RunResumed { by }.into()),
            (true, false) => chance.percent(30).then(|| RunResumed { by }.into()),
            (false, _) if chance.percent(5) => {
                *self.mishaps.entry("paused").or_default() += 1;
                Some(RunPaused { by }.into())
            }
            (false, _) => None,
        }
    }

    fn choose(&mut self) -> (Seq, Order) {
        let mut open: Vec<(Seq, Order)> =
            self.run.open.iter().map(|(seq, order)| (*seq, order.clone())).collect();
        if open.len() > 1 && !self.run.attended() {
            open.retain(|(_, order)| !matches!(order, Order::QuestionAsked(_)));
        }
        match &mut self.schedule {
            Schedule::Calm => open[0].clone(),
            Schedule::AnyOrder(chance) | Schedule::Crashing(chance) => chance.pick(&open),
        }
    }

    /// A report to an order that has had its report already.
    fn late(&mut self) -> Option<Report> {
        let (Schedule::AnyOrder(chance) | Schedule::Crashing(chance)) = &mut self.schedule else {
            return None;
        };
        // With time anything may follow, so it must not pass meanwhile.
        if self.jumps || !chance.percent(6) {
            return None;
        }
        let answered: Vec<Seq> = self.ledger.answered.iter().copied().collect();
        let seq = *answered.get(chance.index(answered.len().max(1)))?;
        let Event::Order(order) = &self.log.get(usize::try_from(seq).unwrap() - 1)?.event else {
            return None;
        };
        *self.mishaps.entry("late report").or_default() += 1;
        Some(match order {
            Order::QuestionAsked(question) => match self.world.reply(&self.ledger, seq, question) {
                Reply::Says(report @ Report::QuestionAnswered(_)) => report,
                Reply::Says(_) | Reply::LeavesItOpen => return None,
            },
            Order::AgentStart(start) if chance.percent(50) => {
                let (archetype, reason) = (start.archetype.clone(), "too late".to_owned());
                let kind = Failure::Exit;
                let failed = AgentFailed {
                    archetype,
                    start_seq: seq,
                    kind,
                    reason,
                    duration_ms: 0,
                    kept_as: None,
                    estimated_cost_usd: None,
                    cost_source: None,
                    tokens: None,
                    notes: Vec::new(),
                    reopens_in_ms: None,
                    played: None,
                    brief_chars: 0,
                    session: None,
                };
                failed.into()
            }
            Order::AgentStart(start) => self.world.agent(seq, start, chance.below(50)),
            order => self.world.answer(&self.ledger, seq, order),
        })
    }

    fn hear_late(&mut self, late: Report) -> Result<(), String> {
        let mut before = self.run.clone();
        let name = late.name();
        let lines = self.log.len();
        self.hear(vec![late])?;
        (before.lines, before.last) = (self.run.lines, self.run.last);
        if self.log.len() != lines + 1 || before != self.run {
            return Err(format!("a late report changes nothing: {name}"));
        }
        Ok(())
    }

    /// A calm life may have gone another way, and rightly: whoever a crash took, or kept from being sent, before an
    /// account was limited is not sent into that limit. In a review many are out side by side, so it is enough that
    /// both happened.
    pub(crate) fn went_apart(&self) -> bool {
        let busy = |entry: &Entry| match &entry.event {
            Event::Report(Report::AgentFailed(failed)) => failed.kind.is_busy(),
            _ => false,
        };
        self.parted || (self.crashes > 0 && self.log.iter().any(busy))
    }

    fn dies(&mut self) -> bool {
        let Schedule::Crashing(chance) = &mut self.schedule else { return false };
        self.crashes < CRASHES_AT_MOST && chance.percent(8)
    }

    /// Memory is gone, and with it perhaps the end of the last batch. What was ordered in the part that is gone was
    /// never performed; an agent that was out is lost or, seldom, still there.
    fn crash(&mut self) -> Result<(), String> {
        let Schedule::Crashing(chance) = &mut self.schedule else { return Ok(()) };
        self.crashes += 1;
        let lines = self.log.len();
        let mut cut = lines;
        let kind = match chance.below(4) {
            0 | 1 => {
                cut = (self.batch + chance.index(lines - self.batch + 1)).max(1);
                match cut {
                    cut if cut == lines => "crash after a batch",
                    cut if cut <= self.batch => "crash before a batch",
                    _ => "crash within a batch",
                }
            }
            2 => "crash between batches",
            _ => "interrupted",
        };
        let (all_lost, none_lost, piecemeal) = (chance.percent(60), chance.percent(40), chance.percent(40));
        *self.mishaps.entry(kind).or_default() += 1;
        if kind == "interrupted" && self.run.outcome.is_none() {
            self.batch = lines;
            let entry = self.run.hear(self.clock(&self.ledger), SessionEnd { signal: 15 });
            self.put(entry);
            self.lose(true, false);
        } else {
            self.log.truncate(cut);
            self.batch = cut;
            self.run = Run::replay(&self.log);
            self.ledger = Ledger::of(&self.log);
        }
        if self.run.outcome.is_some() {
            return Ok(());
        }
        let session = self.world.session(&self.ledger);
        self.batch = self.log.len();
        let entry = self.run.hear(self.clock(&self.ledger), session);
        self.put(entry);
        if self.run.review.is_none()
            && self.run.agent_loop.is_none()
            && let Some(opened) = self.world.opening()
        {
            let entry = self.run.hear(self.clock(&self.ledger), opened);
            self.put(entry);
        }
        if piecemeal {
            self.settle()?;
        }
        self.lose(all_lost, none_lost);
        self.settle()
    }

    fn lose(&mut self, all: bool, none: bool) {
        // Another that was turned away goes on meanwhile, and may be sent to the account that this one was to find out about.
        let others_wait = |name: &str| {
            let failures = self.run.cycle().into_iter().flat_map(|cycle| &cycle.last_failure);
            failures.into_iter().any(|(other, failed)| other != name && failed.kind.is_busy())
        };
        let out: Vec<(Seq, String, bool)> = self
            .run
            .open_agents()
            .map(|(seq, start)| {
                let limited = self.run.accounts.open.get(&start.account);
                // In a review many are tried again side by side, and one of them finds out for the others.
                let parts =
                    |since| since > seq || self.world.opened.is_some() || others_wait(&start.archetype);
                (seq, start.archetype.clone(), limited.is_some_and(|limited| parts(limited.since)))
            })
            .collect();
        for (start_seq, archetype, limited) in out {
            let Schedule::Crashing(chance) = &mut self.schedule else { return };
            if all || (!none && chance.percent(50)) {
                *self.mishaps.entry("agent lost").or_default() += 1;
                self.parted |= limited;
                let reason = "the program died".to_owned();
                let lost = AgentLost {
                    archetype,
                    start_seq,
                    reason,
                    kept_as: None,
                    estimated_cost_usd: None,
                    cost_source: None,
                    tokens: None,
                };
                let entry = self.run.hear(self.clock(&self.ledger), lost);
                self.put(entry);
            }
        }
    }
}
