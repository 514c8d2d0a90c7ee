//! Applies the lines of the journal to the state, one by one.

use std::sync::Arc;

use crate::event::{
    AgentComplete, AgentFailed, Artifact, Decision, DecisionPoint, DecisionRecord, Entry, Event, Failure,
    Imported, NextAction, Order, QuestionAsked, QuestionKind, Refusal, Report, RunContinued, RunReentered,
};
use crate::model::{HookPoint, Money, Phase, Purpose, Role, Seq, ShadowAction, Sign, Status, Verdict};
use crate::rules::alternatives;

use super::tally::{count_one_more, insert_new, set};
use super::{Answered, Author, Clarification, Cycle, Landing, LandingTests, Merged, Run, Undo, is_yes};

impl Run {
    /// Applies a line that is on disk, or about to be.
    pub fn apply(&mut self, entry: &Entry) {
        self.apply_in(entry, false);
    }

    pub(super) fn apply_in(&mut self, entry: &Entry, is_explained: bool) {
        // What is decided is remembered in part, so that nothing of it has to be copied first.
        match &entry.event {
            Event::Decision(decision) => {
                self.note_line(entry);
                self.remember_causes(entry);
                self.apply_decision(entry.seq, decision, is_explained);
            }
            Event::Order(_) | Event::Report(_) => self.take(entry.clone()),
        }
    }

    /// The same for a line that the caller no longer needs: bodies are moved, not copied.
    pub fn take(&mut self, entry: Entry) {
        self.take_in(entry, false);
    }

    /// The same, where the line after it is known. Of a choice that it explains only what the choice changes is
    /// remembered: what else could have been chosen is forgotten with that line anyway.
    pub fn take_before(&mut self, entry: Entry, next: Option<&Entry>) {
        let next = next.map(|next| &next.event);
        self.take_in(entry, matches!(next, Some(Event::Decision(Decision::DecisionRecord(_)))));
    }

    fn take_in(&mut self, entry: Entry, is_explained: bool) {
        self.note_line(&entry);
        if entry.event.answers().is_some_and(|order| !self.open.contains_key(&order)) {
            return;
        }
        self.remember_causes(&entry);
        match entry.event {
            Event::Decision(decision) => self.apply_decision(entry.seq, &decision, is_explained),
            Event::Order(order) => {
                self.apply_order(entry.at, &order);
                self.open.insert(entry.seq, order);
            }
            Event::Report(report) => self.apply_report(entry.seq, entry.at, report),
        }
    }

    fn note_line(&mut self, entry: &Entry) {
        self.lines = entry.seq;
        if self.began == 0 {
            self.began = entry.at;
        }
        self.last = entry.at;
    }

    fn apply_order(&mut self, at: u64, order: &Order) {
        match order {
            Order::AgentStart(start) => {
                self.agents_total += 1;
                self.note_account(start);
                if self.begins_a_step(&start.archetype) {
                    self.failures_in_a_row = self.failing_in_a_row();
                    self.ended.clear();
                }
                if let Some(rollback) = &mut self.rollback {
                    rollback.is_fresh = false;
                }
                let cycle = self.cycle_mut();
                let number = cycle.number;
                let starts = count_one_more(&mut cycle.starts, &start.archetype);
                self.attempts.insert((number, start.archetype.clone()), starts);
                let cycle = self.cycle_mut();
                insert_new(&mut cycle.sent, &start.archetype);
                cycle.lost.remove(&start.archetype);
                cycle.owed.remove(&start.archetype);
                if matches!(start.purpose, Purpose::Tests | Purpose::Fix) {
                    cycle.errand = Some((start.purpose, start.note.clone()));
                }
                match start.purpose {
                    Purpose::Tests => cycle.tests_asked = true,
                    Purpose::Fix => {
                        cycle.fix_asked = true;
                        cycle.forget_reviews();
                        self.landing = Landing { attempts: self.landing.attempts, ..Landing::default() };
                    }
                    Purpose::Work
                    | Purpose::Correct
                    | Purpose::Replace
                    | Purpose::Retry
                    | Purpose::Research => {}
                }
            }
            Order::MergeIntent(intent) => {
                self.landing.intent = Some((**intent).clone());
                self.landing.since = at;
            }
            Order::RevertIntent(_) => self.landing.since = at,
            Order::RevertStart(start) => {
                self.undo = Some(Undo { attempts: start.attempt, ..Undo::default() });
            }
            Order::MergeStart(start) => {
                let (agreed, answer, asked) = (self.landing.agreed, self.landing.answer, self.landing.asked);
                let (before, with) = (start.before.clone(), start.with.clone());
                let tested_before = self.landing.tested_before.take();
                self.landing = Landing {
                    attempts: start.attempt,
                    tested_before,
                    agreed,
                    answer,
                    asked,
                    before,
                    with,
                    ..Landing::default()
                };
                self.hooks.remove(&HookPoint::PreMerge);
            }
            Order::LoopAppend(_) => self.order_append(),
            Order::BatteryStart(start) => self.begin_battery(start),
            Order::QuestionAsked(question) => {
                *self.questions.entry(question.kind).or_default() += 1;
                if question.kind == QuestionKind::Merge {
                    self.landing.asked = true;
                }
            }
            Order::PreflightStart(_)
            | Order::EvidenceStart(_)
            | Order::LoopArchive(_)
            | Order::TestsStart(_)
            | Order::HookStart(_) => {}
        }
    }

    fn apply_decision(&mut self, seq: Seq, decision: &Decision, is_explained: bool) {
        match decision {
            Decision::PhaseTransition(transition) => match transition.to {
                Phase::Plan => {
                    self.note_phase_end(Phase::Act);
                    self.begin_cycle(transition.cycle);
                    self.landing = Landing::default();
                    self.rules().cycle_began(self);
                }
                // The next part of a review: nothing is planned or made in between.
                Phase::Check if transition.cycle > self.number() => {
                    self.begin_cycle(transition.cycle);
                    self.cycle_mut().phase = transition.to;
                }
                Phase::Do | Phase::Check | Phase::Act => {
                    let left = std::mem::replace(&mut self.cycle_mut().phase, transition.to);
                    self.note_phase_end(left);
                }
            },
            Decision::WorkflowEscalated(escalated) => {
                self.workflow = Some(escalated.to);
                self.escalated = true;
                self.max_cycles = self.max_cycles.max(escalated.max_cycles);
                let cycle = self.cycle_mut();
                if cycle.phase == Phase::Plan {
                    cycle.upgraded = true;
                    cycle.forget_proposal();
                    cycle.gate_noted = false;
                }
            }
            Decision::DecisionPoint(point) => {
                self.unexplained = if is_explained { None } else { self.alternatives_of(point) };
                self.apply_point(point);
            }
            Decision::DecisionRecord(_) => self.unexplained = None,
            Decision::AgentSkipped(skipped) => {
                if skipped.archetype == "mini-explorer" {
                    self.cycle_mut().mini_explorer_gone = true;
                } else {
                    self.leave_out(&skipped.archetype, &skipped.reason, skipped.failed);
                }
            }
            Decision::ReviewVerdict(verdict) => {
                // All parts are one change, looked at once.
                if !self.rules().cycles_are_parts() {
                    let reviews =
                        self.corrections.unapproving.entry(verdict.archetype.clone()).or_insert(Some(0));
                    *reviews =
                        reviews.filter(|_| verdict.verdict == Verdict::Rejected).map(|count| count + 1);
                }
                self.cycle_mut().verdicts.insert(verdict.archetype.clone(), verdict.verdict);
            }
            Decision::EvidenceDowngrade(downgrade) => {
                let key = (downgrade.archetype.clone(), downgrade.index);
                self.cycle_mut().downgrades.insert(key, downgrade.reason);
            }
            Decision::FindingRaised(raised) => {
                let pair = (raised.sign, raised.finding.clone());
                let cycle = self.cycle_mut();
                cycle.raised.push(pair);
                // By the tests of the candidate: the cycle is concluded again.
                if raised.sign == Sign::TestsFailing || cycle.boundary.is_some() {
                    cycle.boundary = None;
                    let tested = self.landing.tested.take().filter(|_| raised.sign == Sign::OldTestsFail);
                    self.landing = Landing { tested_before: tested, ..Landing::default() };
                    self.hooks.remove(&HookPoint::PreMerge);
                    self.hooks.remove(&HookPoint::PostMerge);
                }
            }
            Decision::FixApplied(fix) => {
                self.fixes_total += 1;
                self.cycle_mut().fixed.insert(fix.finding.clone());
            }
            Decision::ShadowDetected(seen) => self.apply_shadow(seen),
            Decision::PolicyCheckpoint(checkpoint) => {
                self.corrections.checkpoints = checkpoint.number;
                self.corrections.worked_ms = 0;
                self.corrections.cycles_at_checkpoint = self.finished_cycles();
                if let Some(stop) = &checkpoint.stops {
                    self.corrections.winding_down = Some(stop.clone());
                }
            }
            Decision::BudgetStep(step) => self.note_step(step),
            Decision::LoopTurn(turn) => self.apply_turn(turn),
            Decision::LoopAlert(alert) => self.note_alert(alert.alert),
            Decision::WiggumBreak(_) => self.broke = Some(seq),
            Decision::RunComplete(complete) => {
                if self.cycle().is_some_and(|cycle| cycle.phase == Phase::Act && cycle.boundary.is_some()) {
                    self.note_phase_end(Phase::Act);
                }
                self.outcome = Some(complete.outcome());
                self.undo = None;
                self.note_end(complete.reason);
                self.complete = Some(complete.clone());
            }
            Decision::CycleBoundary(boundary) => {
                if boundary.extra_cycle {
                    self.max_cycles = boundary.max_cycles;
                }
                self.cycle_mut().boundary = Some(boundary.clone());
            }
        }
    }

    /// What a choice changes; most change nothing.
    fn apply_point(&mut self, point: &DecisionPoint) {
        match point.rule.as_str() {
            "AF-063" => {
                let cycle = self.cycle_mut();
                cycle.tests_warned = true;
                if matches!(cycle.errand, Some((Purpose::Tests, _))) {
                    cycle.errand = None;
                    cycle.last_failure.remove(&point.archetype);
                    cycle.failures.remove(&point.archetype);
                }
            }
            "A3" => self.cycle_mut().gate_noted = true,
            "CL-12" => {
                let cycle = self.cycle_mut();
                if !cycle.absent.contains_key(&point.archetype) {
                    cycle.owed.insert(point.archetype.clone());
                }
            }
            "AF-138" => self.cycle_mut().restore(&point.archetype),
            "J-04" => {
                let cycle = self.cycle_mut();
                cycle.set_aside(&point.archetype, ShadowAction::Correct, &point.input);
                cycle.evidence_asked.insert(point.archetype.clone());
                let put = cycle.kept.extract_if(.., |finding| finding.source == point.archetype);
                cycle.asked_about.extend(put);
            }
            "U-10" => self.landing.red_noted = true,
            "C6" => self.give_up_account(&point.archetype),
            "I4" => self.note_used_up(&point.archetype),
            "AF-040" | "D-02" => {
                let archetype = point.archetype.clone();
                self.cycle_mut().noted.insert(archetype);
            }
            _ => {}
        }
    }

    /// What else a choice could have been; nothing in runs from before that was written down (CL-31).
    pub(crate) fn alternatives_of(&self, point: &DecisionPoint) -> Option<DecisionRecord> {
        let records = self.policy().records_alternatives;
        records.then(|| alternatives::of(point, self.current_workflow())).flatten()
    }

    fn apply_report(&mut self, seq: Seq, at: u64, report: Report) {
        match report {
            Report::AgentComplete(complete) => self.apply_answer(seq, *complete),
            Report::RunStart(start) => {
                self.workflow = Some(start.workflow);
                self.max_cycles = start.max_cycles;
                self.request = Some(start);
            }
            Report::SessionStart(session) => self.session = Some(session),
            Report::RunPaused(paused) => self.paused = Some(paused.by),
            Report::RunResumed(_) => self.paused = None,
            Report::LoopOpened(opened) => self.open_loop(seq, &opened),
            Report::LoopHeard(heard) => self.hear_person(seq, &heard),
            Report::LoopAppended(appended) => self.apply_appended(seq, &appended),
            Report::LoopEdited(edited) => self.apply_edited(&edited),
            Report::BatteryDone(done) => self.end_battery(*done),
            Report::LoopArchived(archived) => self.keep_archive(*archived),
            Report::RunReentered(reentered) => {
                if !self.rules().reentered(self) {
                    self.reenter(seq, &reentered);
                }
            }
            Report::RunRolledBack(back) => self.roll_back(seq, &back),
            Report::ReviewOpened(opened) => self.open_review(opened),
            Report::EvidenceDone(done) => {
                let Some(Order::EvidenceStart(start)) = self.open.remove(&done.start_seq) else { return };
                let (trial, detail) = crate::rules::trial::judge(start.reproduction.regression, &done);
                let key = (start.archetype.clone(), start.index);
                self.cycle_mut().trials.insert(key, (trial, detail, done.change.tail.clone()));
            }
            Report::RunContinued(continued) => {
                if self.rules().can_continue(self) {
                    self.go_on(&continued);
                }
            }
            Report::RunDiscarded(_) => {
                self.reopen();
                self.discarded = true;
                self.settle_open();
                self.open.clear();
            }
            Report::MergeRequested(requested) => {
                if self.rules().asked_to_land(self, seq) {
                    return;
                }
                self.reopen();
                self.overrule();
                let (before, with) = (requested.before.clone(), requested.with.clone());
                self.landing = Landing { agreed: true, before, with, ..Landing::default() };
                self.open.retain(|_, order| !matches!(order, Order::QuestionAsked(_)));
            }
            Report::AgentFailed(failed) => self.apply_failure(seq, at, *failed),
            Report::AgentTimeout(failed) => self.apply_failure(seq, at, failed.0),
            Report::AgentLost(lost) => {
                if let Some(Order::AgentStart(start)) = self.open.remove(&lost.start_seq) {
                    let seen = self.seen_of(lost.start_seq);
                    let at_least = Some(start.reserved_usd.max(seen)).filter(|money| *money > Money::ZERO);
                    let cost = lost.estimated_cost_usd.max(at_least);
                    self.settle_cost((lost.start_seq, &start), cost, lost.tokens);
                }
                self.cycle_mut().lost.insert(lost.archetype.clone());
            }
            Report::AgentUsage(usage) => self.note_usage(&usage),
            Report::MergeBuilt(built) => {
                self.open.remove(&built.start_seq);
                self.landing.built = Some(built.built.clone());
                self.landing.chain.clone_from(&built.chain);
                self.landing.left_out.clone_from(&built.left_out);
                self.landing.take_over_tests();
            }
            Report::TestsDone(done) => {
                if let Some(Order::TestsStart(start)) = self.open.remove(&done.start_seq) {
                    let tests = Some(LandingTests::of(*done));
                    self.last_tests.clone_from(&tests);
                    if let Some(undo) = &mut self.undo {
                        undo.tested = tests;
                    } else if start.post_merge {
                        self.landing.retested = tests;
                    } else {
                        self.landing.tested = tests;
                    }
                }
            }
            Report::PreflightDone(done) => {
                self.open.remove(&done.start_seq);
                self.preflight = Some(done);
            }
            Report::HookDone(done) => {
                self.open.remove(&done.start_seq);
                self.hooks.insert(done.point, *done);
            }
            Report::RunMerged(merged) => {
                self.open.remove(&merged.start_seq);
                let (old, commit, target) = (merged.old.clone(), merged.commit.clone(), merged.base.clone());
                self.landing.merged = Some(Merged { old, commit, target, moved: merged.moved });
            }
            Report::MergeRefused(refused) => {
                self.open.remove(&refused.start_seq);
                self.landing.refused = Some((refused.why, refused.detail.clone()));
            }
            Report::RevertRequested(_) => {
                if self.landing.merged.is_some() && self.landing.reverted.is_none() {
                    self.reopen();
                    self.undo = Some(Undo::default());
                    self.open.retain(|_, order| !matches!(order, Order::QuestionAsked(_)));
                }
            }
            Report::RevertBuilt(built) => {
                self.open.remove(&built.start_seq);
                if let Some(undo) = &mut self.undo {
                    undo.built = Some(built.built.clone());
                }
            }
            Report::RunReverted(reverted) => {
                self.open.remove(&reverted.start_seq);
                self.landing.reverted = Some(reverted.commit.clone());
                self.landing.reverted_at = at;
                self.reverts += u32::from(self.undo.is_none());
            }
            Report::RevertRefused(refused) => {
                self.open.remove(&refused.start_seq);
                match &mut self.undo {
                    Some(undo) => {
                        undo.refused = Some((refused.why.unwrap_or(Refusal::Fault), refused.detail.clone()));
                    }
                    None => self.landing.revert_refused = Some(refused.detail.clone()),
                }
            }
            Report::QuestionAnswered(answered) => {
                if let Some(Order::QuestionAsked(question)) = self.open.remove(&answered.start_seq) {
                    self.reopen();
                    self.apply_words(seq, &question, &answered.text);
                }
            }
            Report::QuestionDeferred(_) => {
                if let Some(session) = &mut self.session {
                    session.attended = false;
                }
            }
            Report::SessionEnd(_) => {}
        }
    }

    fn apply_answer(&mut self, seq: Seq, complete: AgentComplete) {
        let Some(Order::AgentStart(start)) = self.open.remove(&complete.start_seq) else { return };
        set(&mut self.ended, &complete.archetype, true);
        count_one_more(&mut self.corrections.completions, &complete.archetype);
        self.worked(complete.duration_ms);
        self.settle_cost((complete.start_seq, &start), complete.estimated_cost_usd, complete.tokens);
        self.note_served(&start, complete.start_seq);
        let author = Author { agent: start.agent, player: complete.played };
        if let Some(change) = complete.change {
            self.take_work(change);
            self.author = Some(author.clone());
        }
        let name = complete.archetype;
        let answered = Answered {
            role: start.role,
            start_seq: complete.start_seq,
            seq,
            answer: complete.answer,
            artifact: Artifact {
                name: complete.artifacts.into_iter().next().unwrap_or_default(),
                digest: complete.digest,
            },
            duration_ms: complete.duration_ms,
            purpose: start.purpose,
            notes: complete.notes,
            session: complete.session,
            author,
        };
        let cycle = self.cycle_mut();
        cycle.busy.remove(&name);
        cycle.last_failure.remove(&name);
        cycle.cramped.remove(&name);
        cycle.explored += u32::from(start.role == Role::Explorer);
        if start.purpose == Purpose::Research {
            cycle.mini_explorer = Some(Arc::new(answered));
            return;
        }
        if start.role == Role::Maker {
            cycle.changed = true;
            cycle.errand = None;
            cycle.raised.clear();
        }
        if start.role == Role::Creator {
            cycle.gate_noted = false;
        }
        let replaced = cycle.shadowed.remove(&name).filter(|earlier| earlier.action != ShadowAction::Correct);
        cycle.failures.remove(&name);
        cycle.noted.remove(&name);
        cycle.verdicts.remove(&name);
        cycle.downgrades.retain(|(archetype, _), _| *archetype != name);
        cycle.trials.retain(|(archetype, _), _| *archetype != name);
        cycle.asked_about.retain(|finding| finding.source != name);
        cycle.answers.insert(name.clone(), Arc::new(answered));
        match replaced {
            Some(earlier) => self.keep_objections(&name, &earlier.answered),
            None => self.forget_repeated(&name),
        }
    }

    fn apply_failure(&mut self, seq: Seq, at: u64, failed: AgentFailed) {
        let Some(Order::AgentStart(start)) = self.open.remove(&failed.start_seq) else { return };
        self.settle_cost((failed.start_seq, &start), failed.estimated_cost_usd, failed.tokens);
        self.worked(failed.duration_ms);
        self.note_failure(&start);
        let busy = failed.kind.is_busy();
        // A rejected key is not the agent's failure either (M-G2, M-G18).
        if !busy && failed.kind != Failure::Auth {
            set(&mut self.ended, &failed.archetype, false);
        }
        let cycle = self.cycle_mut();
        let tally = if busy { &mut cycle.busy } else { &mut cycle.failures };
        let times = count_one_more(tally, &failed.archetype);
        if failed.kind == Failure::ContextTooLong {
            cycle.cramped.entry(failed.archetype.clone()).or_insert((0, failed.brief_chars)).0 += 1;
        }
        if busy {
            self.note_limit(&start, seq, at, &failed, times);
        } else if failed.kind.was_served() {
            self.note_served(&start, failed.start_seq);
        }
        match self.cycle_mut().last_failure.get_mut(&failed.archetype) {
            Some(last) => *last = failed,
            None => drop(self.cycle_mut().last_failure.insert(failed.archetype.clone(), failed)),
        }
    }

    fn worked(&mut self, duration_ms: u64) {
        self.corrections.worked_ms += duration_ms;
        self.rules().worked(self, duration_ms);
        let cycle = self.cycle_mut();
        *cycle.worked.entry(cycle.phase).or_default() += duration_ms;
    }

    /// Whether all agents of the previous step have ended and this agent begins another step. An agent that was lost, or
    /// that answers again beside the others, still belongs to their step.
    fn begins_a_step(&self, archetype: &str) -> bool {
        self.open_agents().next().is_none()
            && self.missing_reviewers().iter().all(|seat| seat.archetype != archetype)
    }

    /// What a person's answer means depends on the question.
    fn apply_words(&mut self, seq: Seq, question: &QuestionAsked, text: &str) {
        match question.kind {
            QuestionKind::Merge => {
                self.landing.answer = Some(is_yes(text));
                self.landing.agreed = self.landing.agreed || is_yes(text);
            }
            QuestionKind::DryRun => self.dry_run_passed = is_yes(text),
            QuestionKind::RedBase => self.red_base = Some(is_yes(text)),
            QuestionKind::Shadow => self.apply_shadow_words(text),
            QuestionKind::Rejection => self.apply_rejection_words(question, text),
            QuestionKind::NeedsContext => {
                self.cycle_mut().forget(&question.archetype);
                self.clarify(question, text);
            }
            QuestionKind::GoalQuestions
            | QuestionKind::PlanApproval
            | QuestionKind::StepApproval
            | QuestionKind::LoopPaused
            | QuestionKind::LoopEdited => self.hear_answer(seq, question, text),
            QuestionKind::LowConfidence => {
                if matches!(text.trim().to_lowercase().as_str(), "proceed" | "go on" | "continue") {
                    self.waved_through = true;
                } else {
                    self.cycle_mut().forget_proposal();
                    self.clarify(question, text);
                }
            }
        }
    }

    fn clarify(&mut self, question: &QuestionAsked, text: &str) {
        self.clarifications.push(Clarification {
            archetype: question.archetype.clone(),
            question: question.question.clone(),
            answer: text.to_owned(),
        });
    }

    fn reenter(&mut self, seq: Seq, reentered: &RunReentered) {
        self.reopen();
        self.overrule();
        self.settle_open();
        self.open.clear();
        self.accounts.given_up.clear();
        self.landing = Landing::default();
        self.failures_in_a_row = 0;
        self.questions.clear();
        self.ended.clear();
        self.dry_run_passed = true;
        self.forget_failed_preflight();
        self.weigh_before_reentry();
        if self.cycles.is_empty() || reentered.phase == Phase::Plan {
            let number = self.number() + 1;
            self.max_cycles = self.max_cycles.max(number);
            self.begin_cycle(number);
        }
        if let Some(change) = &reentered.change {
            self.work = Some(change.clone());
            self.author = None;
        }
        let changed = self.work.is_some();
        let gatekeeper = self.seat(Role::Gatekeeper).map(|seat| seat.archetype);
        let cycle = self.cycle_mut();
        let fresh = Cycle { inherited: cycle.objections(), ..Cycle::new(cycle.number) };
        *cycle =
            Cycle { starts: std::mem::take(&mut cycle.starts), phase: reentered.phase, changed, ..fresh };
        cycle.gate_noted = true;
        cycle.tests_asked = true;
        let proposal = reentered.proposal.iter().map(|imported| (Role::Creator, imported));
        let making = reentered.making.iter().map(|imported| (Role::Maker, imported));
        let reviews = reentered.reviews.iter().map(|imported| {
            let first = gatekeeper.as_ref() == Some(&imported.archetype);
            (if first { Role::Gatekeeper } else { Role::Reviewer }, imported)
        });
        for (role, Imported { archetype, artifact, answer }) in proposal.chain(making).chain(reviews) {
            let answered = Answered {
                role,
                start_seq: seq,
                seq,
                answer: answer.clone(),
                artifact: artifact.clone(),
                duration_ms: 0,
                purpose: Purpose::Work,
                notes: Vec::new(),
                session: None,
                author: Author::default(),
            };
            cycle.answers.insert(archetype.clone(), Arc::new(answered));
        }
        self.note_unmade();
    }

    /// What was wrong with the base commit or the commands may have been repaired.
    fn forget_failed_preflight(&mut self) {
        if self.preflight.as_ref().is_some_and(|done| !done.is_passed()) && !self.accepts_red_base() {
            self.preflight = None;
            self.red_base = None;
        }
    }

    /// A person continues a run that has ended.
    fn go_on(&mut self, continued: &RunContinued) {
        self.reopen();
        self.allow(continued.budget_usd);
        self.accounts.given_up.clear();
        // The parts of a change are all there are.
        let parts = self.rules().cycles_are_parts();
        let cycles = if parts { 0 } else { continued.cycles };
        self.max_cycles = self.max_cycles.max(self.number()) + cycles;
        self.failures_in_a_row = 0;
        self.ended.clear();
        self.apply_ruling(continued);
        self.questions.clear();
        self.hooks.retain(|_, done| done.ok);
        self.landing = Landing::default();
        self.open.retain(|_, order| !matches!(order, Order::QuestionAsked(_)));
        let again = cycles > 0;
        self.forget_failed_preflight();
        let Some(cycle) = self.cycles.last_mut() else { return };
        cycle.failures.clear();
        cycle.busy.clear();
        cycle.last_failure.clear();
        cycle.cramped.clear();
        cycle.lost.clear();
        cycle.owed.clear();
        let waiting: Vec<String> = cycle
            .answers
            .iter()
            .filter(|(_, found)| matches!(found.answer.status, Status::Blocked | Status::NeedsContext))
            .map(|(name, _)| name.clone())
            .collect();
        waiting.iter().for_each(|name| cycle.forget(name));
        if !again && !parts && !continued.accept.is_empty() {
            cycle.boundary = None;
            cycle.judged_anew = true;
        }
        if again && let Some(boundary) = &mut cycle.boundary {
            boundary.next_action = NextAction::CycleBack;
            boundary.stop = None;
        }
    }

    fn begin_cycle(&mut self, number: u32) {
        self.keep_the_plan();
        let parts = self.rules().cycles_are_parts();
        let inherited = self.cycles.last().filter(|_| !parts).map(Cycle::objections).unwrap_or_default();
        if let Some(last) = self.cycles.last_mut() {
            last.close();
        }
        let starts = self.starts_in(number);
        self.cycles.push(Cycle { starts, inherited, ..Cycle::new(number) });
    }

    pub(crate) fn reopen(&mut self) {
        self.outcome = None;
        self.complete = None;
        self.broke = None;
        self.hooks.remove(&HookPoint::RunComplete);
    }
}
