//! What must hold of corrections in every log: the ladder, its end, checkpoints. Counted from the lines alone.

use std::collections::{BTreeMap, BTreeSet};

use archeflow_core::event::{
    AgentStart, Decision, Entry, Event, Hardness, NextAction, Order, QuestionKind, Report, RunStart,
    ShadowDetected, Verb, WiggumBreak,
};
use archeflow_core::model::{Phase, Purpose, Reason, Role, RunStatus, SYSTEM, ShadowAction};

type Kept = Result<(), String>;
type Key<'a> = (&'a str, &'a str);

pub(crate) fn audit(log: &[Entry]) -> Kept {
    let mut auditor = Auditor::default();
    for entry in log {
        auditor.line(entry).map_err(|why| format!("{why} (line {})", entry.seq))?;
    }
    Ok(())
}

fn holds(kept: bool, promise: &str) -> Kept {
    if kept { Ok(()) } else { Err(promise.to_owned()) }
}

/// Cloned at the end of each phase: whoever goes back there (AF-188) is where it was.
#[derive(Default, Clone)]
struct Auditor<'a> {
    ends: BTreeMap<(u32, Phase), Box<Auditor<'a>>>,
    at: (u32, Option<Phase>),
    concluded: bool,
    request: Option<&'a RunStart>,
    in_run: BTreeMap<Key<'a>, u32>,
    in_cycle: BTreeMap<Key<'a>, u32>,
    /// Detections with no answer of the same archetype in between that was clean.
    in_a_row: BTreeMap<Key<'a>, (u32, u32)>,
    answers: BTreeMap<&'a str, u32>,
    tolerated: BTreeSet<Key<'a>>,
    /// Who has to answer anew, and how it must be sent.
    due: BTreeMap<&'a str, ShadowAction>,
    escalated: BTreeSet<Key<'a>>,
    asked: BTreeSet<u64>,
    broken: bool,
    /// Orders nobody has answered; a report to any other comes too late.
    open: BTreeSet<u64>,
    /// In this cycle.
    sent: BTreeSet<&'a str>,
    seen_in_cycle: BTreeSet<&'a str>,
    checkpoints: u32,
    worked_ms: u64,
    winding_down: bool,
    /// The last cycle ended because of one; that stays so until another cycle.
    wound_down: bool,
    attended: bool,
    /// Answers were brought in from elsewhere, without the conversations behind them.
    imported: bool,
}

impl<'a> Auditor<'a> {
    fn line(&mut self, entry: &'a Entry) -> Kept {
        if let Some(order) = entry.event.answers()
            && !matches!(entry.event, Event::Report(Report::QuestionDeferred(_)))
            && !self.open.remove(&order)
        {
            return Ok(());
        }
        if entry.event.verb() == Verb::Ordered {
            self.open.insert(entry.seq);
        }
        match &entry.event {
            Event::Report(Report::RunStart(start)) => self.request = Some(start),
            Event::Report(Report::SessionStart(session)) => self.attended = session.attended,
            Event::Report(Report::QuestionDeferred(_)) => self.attended = false,
            Event::Decision(Decision::PhaseTransition(transition)) => {
                self.onward()?;
                let (cycle, left) = (self.at.0, Phase::parse(&transition.from));
                let ended = if transition.to == Phase::Plan { Some(Phase::Act) } else { left };
                self.at = (transition.cycle, Some(transition.to));
                if let (Some(ended), true) = (ended, cycle > 0) {
                    let at = if ended == Phase::Act { (cycle, left) } else { self.at };
                    self.keep((cycle, ended), at);
                }
                if transition.to != Phase::Plan {
                    return Ok(());
                }
                self.concluded = false;
                self.in_cycle.clear();
                self.seen_in_cycle.clear();
                self.due.clear();
                self.sent.clear();
            }
            Event::Order(Order::AgentStart(start)) => return self.sent(start),
            Event::Report(Report::AgentFailed(failed)) => self.worked_ms += failed.duration_ms,
            Event::Report(Report::AgentTimeout(failed)) => self.worked_ms += failed.0.duration_ms,
            Event::Report(Report::AgentComplete(complete)) => {
                self.worked_ms += complete.duration_ms;
                *self.answers.entry(&complete.archetype).or_default() += 1;
                self.due.remove(complete.archetype.as_str());
            }
            Event::Decision(Decision::AgentSkipped(skipped)) => {
                self.due.remove(skipped.archetype.as_str());
            }
            // Asked for evidence (J-04): told like a correction, and no strike.
            Event::Decision(Decision::DecisionPoint(point)) if point.rule == "J-04" => {
                self.due.insert(&point.archetype, ShadowAction::Correct);
            }
            Event::Decision(Decision::DecisionPoint(point)) if point.rule == "AF-138" => {
                holds(
                    self.due.remove(point.archetype.as_str()).is_some(),
                    "only what was set aside comes back",
                )?;
            }
            Event::Decision(Decision::ShadowDetected(seen)) => return self.struck(seen),
            Event::Order(Order::QuestionAsked(question)) if question.kind == QuestionKind::Shadow => {
                holds(!self.escalated.is_empty(), "a person is asked after an escalation")?;
                self.asked.insert(entry.seq);
            }
            Event::Report(Report::QuestionAnswered(answered)) if self.asked.contains(&answered.start_seq) => {
                self.answered(&answered.text);
            }
            Event::Report(Report::RunContinued(_)) => {
                for key in std::mem::take(&mut self.escalated) {
                    self.tolerated.insert(key);
                    self.due.remove(key.0);
                }
                self.overruled();
            }
            Event::Report(Report::MergeRequested(_)) => self.overruled(),
            Event::Report(Report::RunDiscarded(_)) => self.open.clear(),
            Event::Report(Report::RunRolledBack(back)) => {
                let end = self
                    .ends
                    .get(&(back.cycle, back.phase))
                    .ok_or("only a phase that ended is gone back to")?;
                let mut end = (**end).clone();
                std::mem::swap(self, &mut end);
                (self.attended, self.imported, self.asked) = (end.attended, end.imported, end.asked);
                self.ends = end.ends;
                self.ends.retain(|key, _| *key <= (back.cycle, back.phase));
            }
            Event::Report(Report::RunReentered(reentered)) => {
                let fresh = self.at.0 == 0 || reentered.phase == Phase::Plan;
                self.at = (self.at.0 + u32::from(fresh), Some(reentered.phase));
                self.concluded = false;
                self.imported = true;
                self.open.clear();
                self.overruled();
                self.due.clear();
                self.sent.clear();
                self.in_cycle.clear();
                self.seen_in_cycle.clear();
            }
            Event::Decision(Decision::PolicyCheckpoint(checkpoint)) => {
                self.checkpoints += 1;
                holds(checkpoint.number == self.checkpoints, "checkpoints are counted")?;
                holds(checkpoint.worked_ms == self.worked_ms, "a checkpoint counts the work since the last")?;
                self.worked_ms = 0;
                self.winding_down |= checkpoint.stops.is_some();
            }
            Event::Decision(Decision::CycleBoundary(boundary)) => {
                self.concluded = true;
                let again = boundary.next_action == NextAction::CycleBack;
                holds(!(self.winding_down && again), "no cycle begins after a checkpoint that says stop")?;
                let why = boundary.stop.as_ref().map(|stop| stop.reason);
                self.wound_down = why == Some(Reason::Checkpoint);
                holds(!self.wound_down || self.winding_down, "a cycle winds down after a checkpoint")?;
                holds(self.due.is_empty(), "no cycle is concluded while somebody has to answer anew")?;
                return self.onward();
            }
            Event::Decision(Decision::WiggumBreak(stop)) => return self.broke(stop),
            Event::Decision(Decision::RunComplete(complete)) => {
                if let (cycle, Some(Phase::Act)) = self.at {
                    self.keep((cycle, Phase::Act), self.at);
                }
                let ends = !matches!(complete.status, RunStatus::Merged | RunStatus::AwaitingAnswer);
                holds(!self.broken || ends, "a strike that breaks is the end")?;
                let waits = complete.question.is_some_and(|question| self.asked.contains(&question));
                let ends = ends || waits || complete.status == RunStatus::AwaitingAnswer;
                holds(self.escalated.is_empty() || ends, "nothing lands while a person decides")?;
            }
            _ => {}
        }
        Ok(())
    }

    fn keep(&mut self, end: (u32, Phase), at: (u32, Option<Phase>)) {
        let kept = Auditor { ends: BTreeMap::new(), open: BTreeSet::new(), at, ..self.clone() };
        self.ends.insert(end, Box::new(kept));
    }

    /// A step that comes only when everything before it is settled.
    fn onward(&self) -> Kept {
        holds(!self.broken, "nothing goes on after a strike that breaks")?;
        holds(self.escalated.is_empty(), "nothing goes on while a person decides")?;
        let limit = self.request.ok_or("run.start comes first")?.config.boundaries.checkpoint_ms;
        holds(self.worked_ms < limit, "no checkpoint is passed over")
    }

    fn broke(&self, stop: &WiggumBreak) -> Kept {
        let policy = &self.request.ok_or("run.start comes first")?.config.shadows;
        let struck = self.in_cycle.keys().filter(|(who, _)| *who != SYSTEM).count();
        let many = policy.distinct_breaks && struck >= policy.distinct_in_cycle as usize;
        let fair = match (stop.trigger, stop.hardness) {
            (Reason::ShadowStrikes, Hardness::Hard) => self.broken || many,
            (Reason::ShadowStrikes, Hardness::Soft) => !self.escalated.is_empty() && !self.attended,
            (Reason::SystemShadow, _) => self.broken,
            (Reason::Checkpoint, hardness) => {
                (self.winding_down || self.wound_down) && hardness == Hardness::Soft
            }
            _ => true,
        };
        holds(fair, "a break has its strike, or its checkpoint")
    }

    /// A person takes over.
    fn overruled(&mut self) {
        (self.broken, self.winding_down) = (false, false);
        self.escalated.clear();
        self.in_run.clear();
        self.in_cycle.clear();
        self.in_a_row.clear();
    }

    fn sent(&mut self, start: &'a AgentStart) -> Kept {
        let beside = start.role == Role::Reviewer && self.sent.contains(start.archetype.as_str());
        holds(!self.broken || beside, "only reviewers sent before are heard after a strike that breaks")?;
        self.sent.insert(&start.archetype);
        holds(
            self.escalated.iter().all(|(who, _)| *who != start.archetype),
            "nobody is sent while a person decides",
        )?;
        let goes_on = start.resumes.as_ref().map(|session| &session.id);
        let corrected = start
            .earlier
            .as_ref()
            .filter(|_| start.purpose == Purpose::Correct)
            .map(|earlier| &earlier.digest);
        holds(
            goes_on == corrected || (goes_on.is_none() && self.imported),
            "a correction, and nothing else, goes on in the conversation of what it corrects",
        )?;
        let due = self.due.get(start.archetype.as_str());
        match start.purpose {
            Purpose::Correct => {
                holds(due == Some(&ShadowAction::Correct), "a correction follows a detection")?;
                holds(
                    start.earlier.is_some() && !start.note.is_empty(),
                    "it says what is wrong, and shows it",
                )
            }
            Purpose::Replace => {
                holds(
                    matches!(due, Some(ShadowAction::Replace | ShadowAction::Escalate)),
                    "a replacement follows a detection",
                )?;
                holds(start.earlier.is_none(), "somebody fresh is not shown the old answer")
            }
            Purpose::Work => holds(due.is_none(), "whoever was struck is not sent as if nothing had been"),
            Purpose::Retry | Purpose::Tests | Purpose::Research | Purpose::Fix => Ok(()),
        }
    }

    fn struck(&mut self, seen: &'a ShadowDetected) -> Kept {
        let policy = &self.request.ok_or("run.start comes first")?.config.shadows;
        holds(policy.enabled, "nothing is detected when detection is off")?;
        let key: Key<'a> = (&seen.archetype, &seen.shadow);
        let answers = self.answers.get(key.0).copied().unwrap_or(0);
        let count = *self.in_run.entry(key).and_modify(|count| *count += 1).or_insert(1);
        let in_cycle = *self.in_cycle.entry(key).and_modify(|count| *count += 1).or_insert(1);
        let (row, _) = *self
            .in_a_row
            .entry(key)
            .and_modify(|(row, at)| *row = if *at + 1 == answers { *row + 1 } else { 1 })
            .or_insert((1, 0));
        self.in_a_row.insert(key, (row, answers));
        holds(seen.count == count && seen.count_in_cycle == in_cycle, "strikes are counted")?;
        holds(!seen.sightings.is_empty() && !seen.detail.is_empty(), "a detection says what was seen")?;
        let tolerated = self.tolerated.contains(&key);
        if seen.archetype == SYSTEM {
            if seen.action == ShadowAction::Note {
                self.in_run.insert(key, count - 1);
            }
            holds(
                self.seen_in_cycle.insert(&seen.shadow),
                "a shadow of the system is acted upon once a cycle",
            )?;
            let expected = match count {
                _ if tolerated || seen.action == ShadowAction::Note => ShadowAction::Note,
                1 if seen.action == ShadowAction::Replace => ShadowAction::Replace,
                1 => ShadowAction::Correct,
                2 => ShadowAction::Escalate,
                _ => ShadowAction::Break,
            };
            holds(seen.action == expected, "the system's ladder (AF-147)")?;
            if matches!(seen.action, ShadowAction::Correct | ShadowAction::Replace) && !seen.target.is_empty()
            {
                self.due.insert(&seen.target, seen.action);
            }
        } else {
            let breaks = in_cycle >= policy.strikes_in_cycle
                || (policy.consecutive_break && row >= policy.strikes_in_cycle);
            let expected = match count {
                _ if tolerated => ShadowAction::Note,
                _ if breaks => ShadowAction::Break,
                1 => ShadowAction::Correct,
                2 => ShadowAction::Replace,
                _ => ShadowAction::Escalate,
            };
            holds(seen.action == expected, "the ladder (AF-138, CL-03)")?;
            holds(count <= 3 || tolerated, "no fourth strike")?;
            if matches!(seen.action, ShadowAction::Correct | ShadowAction::Replace | ShadowAction::Escalate) {
                self.due.insert(&seen.archetype, seen.action);
            }
        }
        match seen.action {
            ShadowAction::Escalate => drop(self.escalated.insert(key)),
            ShadowAction::Break => self.broken = true,
            ShadowAction::Note | ShadowAction::Correct | ShadowAction::Replace => {}
        }
        Ok(())
    }

    fn answered(&mut self, text: &str) {
        let Some(key) = self.escalated.pop_first() else { return };
        match text.trim().to_lowercase().as_str() {
            "accept" | "go on" | "proceed" | "yes" | "y" | "ok" => {
                self.tolerated.insert(key);
                self.due.remove(key.0);
            }
            "stop" => self.broken = true,
            // Whoever is skipped is back in the next cycle; whoever is told more begins anew.
            said => {
                if said == "skip" && matches!(key.0, "skeptic" | "sage" | "trickster") {
                    self.due.remove(key.0);
                }
                if key.0 != SYSTEM {
                    self.in_run.remove(&key);
                    self.in_cycle.remove(&key);
                    self.in_a_row.remove(&key);
                }
            }
        }
    }
}
