//! What must hold in every log of a loop, counted from the lines alone.

use std::collections::BTreeMap;

use archeflow_core::event::{
    AgentStart, BatteryDone, Decision, Entry, Event, LoopTurn, Order, Report, RunStart,
};
use archeflow_core::model::{
    Approval, CheckEnd, LoopState, Reason, Risk, Seq, Speaker, TurnEvent, TurnSignal,
};
use archeflow_core::strategies::agent_loop::rules::states::{LoopPosition, after};

type Kept = Result<(), String>;

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

#[derive(Default)]
struct Auditor<'a> {
    request: Option<&'a RunStart>,
    place: Option<LoopPosition>,
    open: BTreeMap<Seq, &'a Event>,
    /// The answer of whoever spoke last, and which commit it was about.
    spoken: Option<(&'a str, &'a TurnSignal)>,
    battery: Option<&'a BatteryDone>,
    /// The commit a Judge passed with nothing against it, and whether a person said yes to it.
    passed: Option<String>,
    yes: bool,
    tip: String,
    before: String,
    /// What was counted from the Judge's verdicts alone.
    in_a_row: u32,
    steps: u32,
    /// Turns with words that are to stand in the file, and those that were ordered.
    owed: u32,
    appended: u32,
    blocks: u32,
    /// The line of a person's words that stand in the file already.
    in_file: Seq,
    /// The line of the goal, and whether it stands there too.
    goal: (Seq, bool),
    /// All loops are planned first, and nobody has said yes to that plan yet.
    unapproved: bool,
}

impl<'a> Auditor<'a> {
    fn line(&mut self, entry: &'a Entry) -> Kept {
        if let Some(seq) = entry.event.answers()
            && !matches!(entry.event, Event::Report(Report::QuestionDeferred(_)))
        {
            let Some(order) = self.open.remove(&seq) else { return Ok(()) };
            if let Event::Report(Report::LoopHeard(heard)) = &entry.event
                && heard.spoken.is_some()
            {
                self.in_file = entry.seq;
            }
            return self.answered(order, &entry.event);
        }
        match &entry.event {
            Event::Report(Report::RunStart(start)) => {
                self.request = Some(start);
                self.tip = start.base.commit.clone();
                self.place = Some(LoopPosition { state: LoopState::Idle, insufficient: 0, failed: Some(0) });
            }
            Event::Decision(Decision::PhaseTransition(transition)) if transition.cycle > self.steps => {
                self.steps = transition.cycle;
                self.before = self.tip.clone();
                self.battery = None;
            }
            Event::Order(Order::AgentStart(start)) => {
                self.open.insert(entry.seq, &entry.event);
                return self.sent(start);
            }
            Event::Report(Report::LoopOpened(opened)) => {
                self.goal = (entry.seq, opened.in_file);
                self.unapproved = opened.upfront;
                let failed = (opened.rules > 0).then_some(0);
                self.place = self.place.map(|place| LoopPosition { failed, ..place });
            }
            Event::Decision(Decision::LoopTurn(turn)) => return self.turn(turn),
            Event::Order(Order::LoopAppend(append)) => {
                self.open.insert(entry.seq, &entry.event);
                self.appended += 1;
                holds(append.number == self.blocks + 1, "blocks are numbered one by one")?;
                return holds(self.appended <= self.owed, "every block is ordered once");
            }
            Event::Order(Order::MergeIntent(_)) => {
                self.open.insert(entry.seq, &entry.event);
                holds(self.passed.as_ref() == Some(&self.tip), "what lands has passed, as it is")?;
                return holds(self.yes, "nothing lands without a person's yes");
            }
            Event::Order(Order::QuestionAsked(_)) => {
                holds(self.agents_out() == 0, "nobody is out while a person is asked")?;
                self.open.insert(entry.seq, &entry.event);
            }
            Event::Report(Report::LoopHeard(_)) => {
                // A stop that nobody asked for: whoever is out is forgotten.
                self.open.retain(|_, order| {
                    !matches!(order, Event::Order(Order::AgentStart(_) | Order::QuestionAsked(_)))
                });
            }
            Event::Report(Report::RunContinued(_)) => {
                self.open.retain(|_, order| !matches!(order, Event::Order(Order::QuestionAsked(_))));
            }
            Event::Report(Report::MergeRequested(_)) if self.state() == LoopState::Approval => {
                self.open.retain(|_, order| !matches!(order, Event::Order(Order::QuestionAsked(_))));
            }
            Event::Report(Report::RunDiscarded(_)) => self.open.clear(),
            Event::Decision(Decision::RunComplete(complete)) => {
                holds(self.agents_out() == 0, "nobody is out at the end")?;
                let landed = complete.merged_oid.is_some();
                let broken = complete.reason == Reason::PostMergeTests;
                holds(!landed || broken || self.state() == LoopState::Archived, "what landed is archived")?;
            }
            order if order.verb() == archeflow_core::event::Verb::Ordered => {
                self.open.insert(entry.seq, &entry.event);
            }
            _ => {}
        }
        Ok(())
    }

    fn state(&self) -> LoopState {
        self.place.map_or(LoopState::Idle, |place| place.state)
    }

    fn agents_out(&self) -> usize {
        self.open.values().filter(|order| matches!(order, Event::Order(Order::AgentStart(_)))).count()
    }

    fn sent(&mut self, start: &AgentStart) -> Kept {
        let asks = self.open.values().any(|order| matches!(order, Event::Order(Order::QuestionAsked(_))));
        holds(!asks, "nobody runs while a question is open")?;
        let whose = match start.archetype.as_str() {
            "planner" => LoopState::Align,
            "actor" => LoopState::Execute,
            "judge" => LoopState::Evaluate,
            other => return Err(format!("nobody else sits in a loop: {other}")),
        };
        holds(self.state() == whose, "only whoever's turn it is runs")?;
        holds(self.agents_out() == 1, "one at a time")?;
        holds(start.at == self.tip, "everybody sees what the loop stands on, and nothing that failed")?;
        let judged = start.archetype != "judge" || self.battery.is_some_and(|done| done.commit == start.at);
        holds(judged, "the battery has run on what the Judge sees")?;
        let unwritten = self.open.values().any(|order| matches!(order, Event::Order(Order::LoopAppend(_))));
        holds(
            !unwritten && self.owed == self.appended,
            "what was said stands in the file before the next one speaks",
        )
    }

    fn answered(&mut self, order: &'a Event, report: &'a Event) -> Kept {
        match (order, report) {
            (Event::Order(Order::AgentStart(start)), Event::Report(Report::AgentComplete(complete))) => {
                let spoken = complete.answer.spoken.as_deref();
                self.spoken = spoken.map(|spoken| (start.archetype.as_str(), spoken));
                if let Some(change) = &complete.change {
                    self.tip = change.commit.clone();
                }
            }
            (Event::Order(Order::BatteryStart(start)), Event::Report(Report::BatteryDone(done))) => {
                holds(start.commit == self.tip, "the battery runs on the step")?;
                self.battery = Some(done);
            }
            (Event::Order(Order::LoopAppend(_)), Event::Report(Report::LoopAppended(appended))) => {
                self.blocks = appended.blocks;
            }
            // It is owed again.
            (Event::Order(Order::LoopAppend(_)), Event::Report(Report::LoopEdited(_))) => self.appended -= 1,
            _ => {}
        }
        Ok(())
    }

    fn turn(&mut self, turn: &LoopTurn) -> Kept {
        let request = self.request.ok_or("a request comes first")?;
        let policy = &request.config.looping;
        let place = self.place.ok_or("a request comes first")?;
        holds(turn.from == place.state, "a turn begins where the loop is")?;
        let Some(heard) = turn.heard else {
            holds(
                (turn.to, turn.insufficient) == (place.state, place.insufficient),
                "what is refused changes nothing",
            )?;
            let told = turn.by == Some(Speaker::Human) && turn.from.whose() != Some(Speaker::Human);
            self.owed += u32::from(told && turn.line != self.in_file);
            return Ok(());
        };
        let then = after(place, heard, policy.pause_after).ok_or("only legal transitions")?;
        holds(
            (then.state, then.insufficient, then.failed) == (turn.to, turn.insufficient, turn.failed),
            "a turn ends where the table says",
        )?;
        holds(then.insufficient <= policy.pause_after, "at most so many INSUFFICIENT in a row")?;
        holds(then.failed.is_none_or(|n| n <= policy.pause_after), "at most so many failures in a row")?;
        self.place = Some(then);
        self.counts(heard, turn)?;
        self.judged(heard, turn, policy.approval)?;
        let (line, in_file) = self.goal;
        let stands_there = match heard {
            TurnEvent::Goal => in_file && (turn.line == line || turn.line == self.in_file),
            _ => turn.line == self.in_file,
        };
        self.owed += u32::from(turn.by.is_some() && !stands_there);
        Ok(())
    }

    /// The count, from the verdicts alone.
    fn counts(&mut self, heard: TurnEvent, turn: &LoopTurn) -> Kept {
        match heard {
            TurnEvent::Insufficient => self.in_a_row += 1,
            TurnEvent::Pass | TurnEvent::PassOn | TurnEvent::Restart | TurnEvent::Goal | TurnEvent::Clear => {
                self.in_a_row = 0;
            }
            _ => {}
        }
        holds(self.in_a_row == turn.insufficient, "INSUFFICIENT is counted")
    }

    fn judged(&mut self, heard: TurnEvent, turn: &LoopTurn, approval: Approval) -> Kept {
        let request = self.request.ok_or("a request comes first")?;
        match heard {
            TurnEvent::Plan => {
                let (_, spoken) = self.spoken.ok_or("somebody planned")?;
                let unsure = spoken.confidence.is_some_and(|n| n < request.config.looping.confidence_floor);
                let grave = spoken.risk == Some(Risk::High) || spoken.forbidden.is_some();
                holds(!unsure && !grave && !self.unapproved, "a plan that needs a yes waits for it")?;
                self.passed = None;
                self.yes = false;
            }
            TurnEvent::Fail | TurnEvent::GraveFail | TurnEvent::NeedsPerson => {
                self.tip.clone_from(&self.before);
            }
            TurnEvent::Pass | TurnEvent::PassOn => {
                let done = self.battery.ok_or("no PASS without a battery")?;
                let fails = |end| matches!(end, CheckEnd::Failed | CheckEnd::Crashed);
                holds(done.commit == self.tip, "the battery ran on what passes")?;
                holds(!fails(done.tests.end), "no PASS over red tests")?;
                holds(done.security.end == CheckEnd::Passed, "no PASS over a finding of the scan")?;
                let linter = request.config.looping.linter_counts && done.linter.end == CheckEnd::Failed;
                holds(!linter, "no PASS over a linter that counts")?;
                let said = self.spoken.is_some_and(|(who, _)| who == "judge");
                holds(said, "only a Judge passes")?;
                holds(
                    heard == TurnEvent::Pass || approval == Approval::GoalComplete,
                    "every PASS is asked about",
                )?;
                self.passed = Some(self.tip.clone());
                self.yes = false;
            }
            TurnEvent::Approve if turn.from == LoopState::Gate => self.unapproved = false,
            TurnEvent::Approve if turn.from == LoopState::Approval => {
                self.yes = turn.by == Some(Speaker::Human);
            }
            TurnEvent::NotLanded | TurnEvent::RequestChanges => self.yes = false,
            _ => {}
        }
        Ok(())
    }
}
