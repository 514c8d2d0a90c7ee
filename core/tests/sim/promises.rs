//! What must hold in every log. Counted from the lines alone, never from the `Run` that wrote them: a promise must
//! not trust what it checks.

use std::collections::{BTreeMap, BTreeSet};

use archeflow_core::event::{
    AgentFailed, AgentStart, Built, CycleBoundary, Decision, DecisionPoint, Entry, Event, Failure, Hardness,
    MergeIntent, NextAction, Order, PreflightDone, QuestionAsked, QuestionKind, Report, RunComplete,
    RunStart, SessionStart, Tested, Tracked, Unfounded, Verb,
};
use archeflow_core::model::{
    Answer, AnswerBody, Change, Domain, FailAction, Finding, HookPoint, Oid, Overlap, Phase, Proposal,
    Purpose, Reason, Review, Role, RunStatus, SYSTEM, Seq, Severity, ShadowAction, Sign, Status, Strategy,
    Verdict, Workflow, pipeline_team, team,
};

use super::facts::{exit_code, fits};

mod orders;

#[path = "objections.rs"]
mod objections;

type Kept = Result<(), String>;

pub(crate) fn audit(log: &[Entry]) -> Kept {
    let mut auditor = Auditor::default();
    for entry in log {
        auditor.set_back |= entry.at < auditor.at;
        auditor.at = entry.at;
        auditor.line(entry).map_err(|why| format!("{why} (line {})", entry.seq))?;
    }
    Ok(())
}

/// The target branch has moved: what it holds now is tested, and taken back if the tests fail. And a run that ends has
/// its last hook.
fn finishes(order: &Event) -> bool {
    match order {
        Event::Order(Order::HookStart(hook)) => hook.point == HookPoint::RunComplete,
        Event::Order(Order::TestsStart(tests)) => tests.post_merge,
        Event::Order(Order::RevertIntent(_)) => true,
        _ => false,
    }
}

fn holds(kept: bool, promise: &str) -> Kept {
    if kept { Ok(()) } else { Err(promise.to_owned()) }
}

/// Cloned at the end of each phase: whoever goes back there (AF-188) is where it was.
#[derive(Default, Clone)]
struct Auditor<'a> {
    ends: BTreeMap<(u32, Phase), Box<Auditor<'a>>>,
    phase: Option<Phase>,
    lines: Seq,
    at: u64,
    /// The clock was set back: nobody can say how long a wait was.
    set_back: bool,
    request: Option<&'a RunStart>,
    /// How the base commit was, and whether a person accepted that.
    base: Option<&'a PreflightDone>,
    red_base: bool,
    session: Option<&'a SessionStart>,
    paused: bool,
    attended: bool,
    workflow: Option<Workflow>,
    escalated: bool,
    max_cycles: u32,
    open: BTreeMap<Seq, &'a Event>,
    orders: BTreeMap<Seq, &'a Event>,
    cycle: Cycle<'a>,
    /// The last boundary of each cycle.
    boundaries: BTreeMap<u32, &'a CycleBoundary>,
    work: Option<&'a Change>,
    waved: bool,
    dry_run_passed: bool,
    questions: BTreeMap<QuestionKind, u32>,
    agents: u32,
    fixes: u32,
    ended: Option<&'a RunComplete>,
    discarded: bool,
    broke: Option<(Reason, Hardness)>,
    /// The archetype a person has to decide about.
    escalation: BTreeSet<&'a str>,
    research_over: bool,
    /// What a person accepted as it is.
    accepted: Vec<&'a Tracked>,
    /// The last failures came one after the other, nobody else being out.
    alone_and_failing: u32,
    landing: Landing<'a>,
    landed: Option<&'a Oid>,
    revert_refused: bool,
    /// A person's request to take the landing back is under way.
    undo: bool,
    /// The revert that was built for it: old, new, tree.
    revert: Option<(&'a Oid, &'a Oid, &'a Oid)>,
    /// The landing that a person took back.
    taken_back: Option<&'a Oid>,
    hooks: BTreeMap<HookPoint, bool>,
    /// A person said land it, and nothing came of it yet.
    wish: bool,
    anchor: Seq,
    completed: Vec<Seq>,
    /// The last choice and its line.
    point: Option<(Seq, &'a DecisionPoint)>,
    /// Parent of the agents sent since the last report.
    together: Option<&'a [Seq]>,
    /// Accounts that turned somebody away and served nobody since.
    limited: BTreeMap<&'a str, Limited>,
    /// The account each archetype was last sent to.
    account: BTreeMap<&'a str, &'a str>,
}

#[derive(Default, Clone)]
struct Limited {
    since: Seq,
    opens: u64,
    parked: bool,
    /// How often each archetype was turned away since a person last opened the run again.
    again: BTreeMap<String, u32>,
}

#[derive(Default, Clone)]
struct Cycle<'a> {
    number: u32,
    entered: bool,
    answers: BTreeMap<&'a str, &'a Answer>,
    imported: bool,
    failures: BTreeMap<&'a str, u32>,
    busy: BTreeMap<&'a str, u32>,
    last_failure: BTreeMap<&'a str, Failure>,
    cramped: BTreeMap<&'a str, u32>,
    skipped: BTreeSet<&'a str>,
    shadowed: BTreeMap<&'a str, &'a Answer>,
    verdicts: BTreeMap<&'a str, Verdict>,
    downgraded: BTreeSet<(&'a str, u32)>,
    /// J-04: asked for evidence; passed over, and let count, by a person.
    evidence_asked: BTreeSet<&'a str>,
    overruled: BTreeSet<&'a str>,
    upheld: BTreeSet<&'a str>,
    raised: Vec<(Sign, &'a Finding)>,
    for_tests: u32,
    for_fix: u32,
    fixed: BTreeSet<&'a str>,
    boundary: Option<NextAction>,
    errand: Option<&'a AgentStart>,
    no_tests_came: bool,
    /// What was held against the version before; and CRITICALs of answers that their authors did not give again.
    before: Vec<(&'a str, Severity, &'a Finding)>,
    rejected_before: BTreeSet<&'a str>,
    /// Those of them that the answer of their author perhaps repeated.
    unsure_before: Vec<&'a Finding>,
    kept: Vec<LeftBehind<'a>>,
    /// Those of them that their successor is asked about, until it has answered.
    asked_about: Vec<LeftBehind<'a>>,
    /// What rejections among them said beside; first of the version before.
    aside_before: Aside<'a>,
    aside: Aside<'a>,
    /// Answers that were set aside, and who answers instead is another.
    replaced: BTreeSet<&'a str>,
    weakened: BTreeMap<(&'a str, u32), Severity>,
}

/// Rejections whose authors did not answer again: their WARNINGs, and those that had nothing that counts.
#[derive(Clone, Default)]
struct Aside<'a> {
    warnings: Vec<LeftBehind<'a>>,
    bare: BTreeSet<&'a str>,
}

impl Aside<'_> {
    fn has(&self, name: &str) -> bool {
        self.bare.contains(name) || self.warnings.iter().any(|left| left.author == name)
    }
}

/// A finding of an answer that its author did not give again.
#[derive(Clone, Copy)]
struct LeftBehind<'a> {
    author: &'a str,
    finding: &'a Finding,
    severity: Severity,
    /// Whether the answers since surely lack it.
    sure: bool,
}

impl<'a> Cycle<'a> {
    fn left_behind(&self) -> impl Iterator<Item = &LeftBehind<'a>> {
        self.kept.iter().chain(&self.asked_about)
    }

    /// What was set aside of this version, and of the one before by who has not looked at this one.
    fn all_set_aside(&self) -> Aside<'a> {
        let Aside { mut warnings, mut bare } = self.aside_before.clone();
        let over = |name: &str| self.answers.contains_key(name) || self.aside.has(name);
        warnings.retain(|left| !over(left.author));
        bare.retain(|name| !over(name));
        warnings.extend(&self.aside.warnings);
        bare.extend(&self.aside.bare);
        Aside { warnings, bare }
    }

    fn set_aside(&mut self, name: &'a str) {
        if let Some(answer) = self.answers.remove(name) {
            self.shadowed.insert(name, answer);
            self.verdicts.remove(name);
            self.downgraded.retain(|(source, _)| *source != name);
            self.weakened.retain(|(source, _), _| *source != name);
        }
    }

    /// Findings that are open although the present answers do not have them.
    fn still_open(&self) -> impl Iterator<Item = (&'a str, Severity, &'a Finding)> {
        let unseen = self.before.iter().filter(|(name, ..)| !self.answers.contains_key(name));
        unseen.copied().chain(self.left_behind().map(|left| (left.author, left.severity, left.finding)))
    }

    /// Of all these and of what was set aside, what the present answers perhaps have.
    fn unsure(&self, aside: &Aside<'a>) -> Vec<&'a Finding> {
        let left = self.left_behind().chain(&aside.warnings).filter(|left| !left.sure);
        let before = self.still_open().map(|(.., found)| found);
        let before =
            before.filter(|found| self.unsure_before.iter().any(|other| std::ptr::eq(*other, *found)));
        left.map(|left| left.finding).chain(before).collect()
    }

    /// Rejects, or rejected the version before and has not looked since.
    fn rejects(&self, name: &str) -> bool {
        self.verdicts.get(name) == Some(&Verdict::Rejected)
            || (self.rejected_before.contains(name) && !self.answers.contains_key(name))
    }

    /// What counts, of an answer that another author replaced: CRITICALs, and WARNINGs of a rejection.
    fn keep(&mut self, name: &'a str, earlier: &'a Answer) {
        let AnswerBody::Review(review) = &earlier.said else { return };
        let of = |severity| {
            let counts = move |found: &&'a Finding| found.severity == severity && founded(found);
            let left = move |finding| LeftBehind { author: name, finding, severity, sure: true };
            review.findings.iter().filter(counts).map(left)
        };
        self.kept.extend(of(Severity::Critical));
        if review.verdict == Some(Verdict::Rejected) {
            self.aside.warnings.extend(of(Severity::Warning));
            if of(Severity::Critical).chain(of(Severity::Warning)).next().is_none() {
                self.aside.bare.insert(name);
            }
        }
        self.compare(name);
    }

    /// What the present answer may repeat is not surely open beside it.
    fn compare(&mut self, name: &str) {
        let now = match self.answers.get(name).map(|answer| &answer.said) {
            Some(AnswerBody::Review(review)) => review.findings.as_slice(),
            Some(AnswerBody::Prose | AnswerBody::Proposal(_)) | None => &[],
        };
        let left = self.kept.iter_mut().chain(&mut self.aside.warnings);
        for left in left.filter(|left| left.author == name) {
            let finding = left.finding;
            let place = |other: &Finding| other.file == finding.file && other.category == finding.category;
            left.sure &= !now.iter().any(place);
        }
    }

    fn restore(&mut self, name: &'a str) {
        if let Some(answer) = self.shadowed.remove(name) {
            self.answers.insert(name, answer);
            self.last_failure.remove(name);
            self.failures.remove(name);
            // Nobody answered in its place: what it says itself from now on takes back what it said before.
            self.replaced.remove(name);
        }
    }
}

#[derive(Default, Clone)]
struct Landing<'a> {
    attempts: u32,
    candidate: Option<(&'a Oid, &'a Oid, &'a Oid)>,
    passed: Option<&'a Oid>,
    /// The tests fail as before, and nobody can tell whether in other tests.
    unclear: bool,
    red_after: bool,
    asked: bool,
    yes: bool,
    requested: bool,
    /// Others' work is in the candidate.
    together: bool,
    intent: Option<&'a MergeIntent>,
}

impl<'a> Auditor<'a> {
    fn line(&mut self, entry: &'a Entry) -> Kept {
        self.lines += 1;
        holds(entry.seq == self.lines, "lines are numbered densely")?;
        let first = entry.seq == 1;
        holds(
            first == matches!(entry.event, Event::Report(Report::RunStart(_))),
            "run.start is the first line and only that",
        )?;
        holds(first == entry.parent.is_empty(), "only the first line has no parent")?;
        holds(entry.parent.iter().all(|parent| *parent < entry.seq), "parents are earlier than children")?;
        if let Some(order) = entry.event.answers() {
            let known = self.orders.get(&order).is_some_and(|asked| fits(asked, &entry.event));
            holds(known, "a report answers an order")?;
            holds(entry.parent == [order], "the parent of a report is its order")?;
            if !self.open.contains_key(&order) {
                return Ok(());
            }
        }
        match entry.event.verb() {
            Verb::Reported => {
                self.together = None;
                self.reported(entry)
            }
            Verb::Decided => self.decided(entry),
            Verb::Ordered => {
                holds(!self.paused || finishes(&entry.event), "nothing is ordered while paused")?;
                self.ordered(entry)?;
                self.orders.insert(entry.seq, &entry.event);
                self.open.insert(entry.seq, &entry.event);
                Ok(())
            }
        }
    }

    fn request(&self) -> Result<&'a RunStart, String> {
        self.request.ok_or_else(|| "run.start comes first".to_owned())
    }

    fn pipeline(&self) -> bool {
        self.request.is_some_and(|request| request.strategy == Strategy::Pipeline)
    }

    fn agents_out(&self) -> impl Iterator<Item = &'a AgentStart> {
        self.open.values().filter_map(|order| match order {
            Event::Order(Order::AgentStart(start)) => Some(&**start),
            _ => None,
        })
    }

    fn question(&self) -> Option<Seq> {
        self.open
            .iter()
            .find(|(_, order)| matches!(order, Event::Order(Order::QuestionAsked(_))))
            .map(|(seq, _)| *seq)
    }

    // ---- reports

    fn reported(&mut self, entry: &'a Entry) -> Kept {
        self.paused = match entry.event {
            Event::Report(Report::RunPaused(_)) => true,
            Event::Report(Report::RunResumed(_)) => false,
            _ => self.paused,
        };
        if let Some(order) = entry.event.answers()
            && !matches!(entry.event, Event::Report(Report::QuestionDeferred(_)))
        {
            let order = self.open.remove(&order).ok_or("open")?;
            match (order, &entry.event) {
                (Event::Order(Order::AgentStart(start)), Event::Report(Report::AgentComplete(complete))) => {
                    self.completed.push(entry.seq);
                    self.served(start, complete.start_seq);
                    self.complete(start, &complete.answer, complete.change.as_ref());
                }
                (Event::Order(Order::AgentStart(start)), Event::Report(Report::AgentFailed(failed))) => {
                    self.failed(entry, start, failed);
                }
                (Event::Order(Order::AgentStart(start)), Event::Report(Report::AgentTimeout(failed))) => {
                    self.failed(entry, start, &failed.0);
                }
                (Event::Order(Order::AgentStart(start)), Event::Report(Report::AgentLost(_))) => {
                    self.cycle.for_tests -= u32::from(start.purpose == Purpose::Tests);
                    self.cycle.for_fix -= u32::from(start.purpose == Purpose::Fix);
                }
                (Event::Order(Order::TestsStart(start)), Event::Report(Report::TestsDone(done))) => {
                    holds(start.tree == done.tree, "what was tested is what was to be tested")?;
                    let before = self.base.and_then(|base| base.tests.as_ref());
                    let red = before.filter(|before| {
                        let accepted = self.red_base || self.request.is_some_and(|r| r.config.allow_red_base);
                        accepted && before.result == Tested::Failed && done.result == Tested::Failed
                    });
                    let unclear = red.is_some_and(|red| red.failing.is_empty() || done.failing.is_empty());
                    let as_before =
                        red.is_some_and(|red| done.failing.iter().all(|name| red.failing.contains(name)));
                    let fine = done.result == Tested::Passed || unclear || as_before;
                    if start.post_merge {
                        self.landing.red_after = !fine && done.result != Tested::Broken;
                    } else {
                        self.landing.passed = fine.then_some(&done.tree);
                        self.landing.unclear = unclear;
                    }
                }
                (_, Event::Report(Report::PreflightDone(done))) => self.base = Some(done),
                (_, Event::Report(Report::HookDone(done))) => {
                    self.hooks.insert(done.point, done.ok);
                }
                (_, Event::Report(Report::MergeBuilt(built))) => {
                    self.landing.candidate = match &built.built {
                        Built::Candidate { old, commit, tree } => Some((old, commit, tree)),
                        _ => None,
                    };
                    self.landing.together = !built.chain.is_empty();
                }
                (Event::Order(Order::MergeStart(start)), Event::Report(Report::RunMerged(merged))) => {
                    let with = start.with.as_ref().ok_or("a run lands by an intent, or with another run")?;
                    holds(with.commit == merged.commit, "run.merged has the commit of the other's landing")?;
                    holds(self.landed.is_none(), "never two merges without a revert between")?;
                    self.landed = Some(&merged.commit);
                }
                (Event::Order(Order::MergeIntent(intent)), Event::Report(Report::RunMerged(merged))) => {
                    holds(intent.new == merged.commit, "run.merged has the commit of its intent")?;
                    holds(self.landed.is_none(), "never two merges without a revert between")?;
                    self.landed = Some(&merged.commit);
                }
                (_, Event::Report(Report::RevertBuilt(built))) => {
                    self.revert = match &built.built {
                        Built::Candidate { old, commit, tree } => Some((old, commit, tree)),
                        _ => None,
                    };
                }
                (_, Event::Report(Report::RunReverted(_))) => {
                    self.taken_back = self.landed.filter(|_| self.undo);
                    self.landed = None;
                }
                (_, Event::Report(Report::RevertRefused(_))) => self.revert_refused = !self.undo,
                (
                    Event::Order(Order::QuestionAsked(question)),
                    Event::Report(Report::QuestionAnswered(answered)),
                ) => {
                    self.reopened(false);
                    self.words(question, &answered.text);
                }
                _ => {}
            }
        }
        match &entry.event {
            Event::Report(Report::RunStart(start)) => {
                self.request = Some(start);
                self.workflow = Some(start.workflow);
                self.max_cycles = start.max_cycles;
                self.anchor = entry.seq;
            }
            Event::Report(Report::SessionStart(session)) => {
                holds(session.fence > self.session.map_or(0, |before| before.fence), "fences rise")?;
                self.session = Some(session);
                self.attended = session.attended;
            }
            Event::Report(Report::QuestionDeferred(_)) => self.attended = false,
            Event::Report(Report::RunContinued(continued)) => {
                self.reopened(true);
                self.tries_base_again();
                self.max_cycles = self.max_cycles.max(self.cycle.number) + continued.cycles;
                self.alone_and_failing = 0;
                self.questions.clear();
                self.hooks.retain(|_, ok| *ok);
                self.cycle.failures.clear();
                self.cycle.busy.clear();
                self.cycle.last_failure.clear();
                self.cycle.cramped.clear();
                self.cycle.no_tests_came = false;
                if self.cycle.errand.is_some() {
                    (self.cycle.for_tests, self.cycle.for_fix) = (0, 0);
                }
                self.cycle.answers.retain(|_, answer| asks_nothing(answer));
                for name in std::mem::take(&mut self.escalation) {
                    self.cycle.restore(name);
                }
                let open = self.boundaries.get(&self.cycle.number).filter(|_| self.cycle.boundary.is_some());
                let open = open.into_iter().flat_map(|boundary| &boundary.open);
                self.accepted.extend(open.filter(|found| continued.accept.contains(&found.id)));
                if continued.cycles == 0 && !continued.accept.is_empty() {
                    self.cycle.boundary = None;
                    self.boundaries.remove(&self.cycle.number);
                }
                if continued.cycles > 0 && self.cycle.boundary.is_some() {
                    self.cycle.boundary = Some(NextAction::CycleBack);
                }
                // A person who goes on after a checkpoint gets the cycle that it lay before.
                if continued.cycles == 0 && self.cycle.boundary.is_some() {
                    let boundary = self.boundaries.get(&self.cycle.number);
                    self.cycle.boundary = boundary.map(|boundary| boundary.next_action);
                }
                self.landing = Landing::default();
            }
            Event::Report(Report::MergeRequested(_)) => {
                self.reopened(true);
                self.landing = Landing { requested: true, ..Landing::default() };
                self.wish = self.work.is_some();
            }
            Event::Report(Report::RevertRequested(_)) => {
                holds(self.landed.is_some(), "only what landed is taken back")?;
                self.reopened(false);
                self.undo = true;
            }
            Event::Report(Report::RunDiscarded(_)) => {
                self.reopened(true);
                self.open.clear();
                self.discarded = true;
            }
            Event::Report(Report::RunRolledBack(back)) => {
                holds(self.landed.is_none() && !self.discarded, "only what did not land goes back")?;
                self.go_back((back.cycle, back.phase), entry.seq)?;
            }
            Event::Report(Report::RunReentered(reentered)) => {
                self.phase = Some(reentered.phase);
                self.reopened(true);
                self.tries_base_again();
                self.open.clear();
                self.alone_and_failing = 0;
                self.questions.clear();
                self.landing = Landing::default();
                self.dry_run_passed = true;
                let fresh = self.cycle.number == 0 || reentered.phase == Phase::Plan;
                let number = self.cycle.number + u32::from(fresh);
                self.boundaries.remove(&number);
                self.max_cycles = self.max_cycles.max(number);
                let (before, rejected_before) = self.objections();
                let aside_before = self.cycle.all_set_aside();
                let unsure_before = self.cycle.unsure(&Aside::default());
                self.cycle = Cycle {
                    number,
                    entered: true,
                    unsure_before,
                    imported: true,
                    before,
                    rejected_before,
                    aside_before,
                    ..Cycle::default()
                };
                self.work = reentered.change.as_ref().or(self.work);
                let all = reentered.proposal.iter().chain(&reentered.making).chain(&reentered.reviews);
                for import in all {
                    self.cycle.answers.insert(&import.archetype, &import.answer);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn keep(&mut self, phase: Phase) {
        let kept = Auditor { ends: BTreeMap::new(), orders: BTreeMap::new(), ..self.clone() };
        self.ends.insert((self.cycle.number, phase), Box::new(kept));
    }

    /// What was decided and made since is gone; what was seen of the world, and what was paid, is not.
    fn go_back(&mut self, to: (u32, Phase), seq: Seq) -> Kept {
        let end = self.ends.get(&to).ok_or("only a phase that ended is gone back to")?;
        let end = (**end).clone();
        self.reopened(true);
        self.open.clear();
        self.ends.retain(|key, _| *key <= to);
        for point in [HookPoint::PreMerge, HookPoint::PostMerge] {
            self.hooks.remove(&point);
        }
        self.questions.clear();
        (self.phase, self.cycle, self.boundaries) = (end.phase, end.cycle, end.boundaries);
        (self.workflow, self.escalated, self.max_cycles) = (end.workflow, end.escalated, end.max_cycles);
        (self.work, self.waved, self.fixes) = (end.work, end.waved, end.fixes);
        (self.escalation, self.research_over, self.accepted) =
            (end.escalation, end.research_over, end.accepted);
        (self.alone_and_failing, self.wish, self.undo) = (0, false, false);
        self.landing = Landing::default();
        (self.anchor, self.completed) = (seq, Vec::new());
        Ok(())
    }

    /// A person did something: what was over is open again.
    fn reopened(&mut self, withdraws: bool) {
        self.ended = None;
        self.broke = None;
        self.revert_refused = false;
        self.hooks.remove(&HookPoint::RunComplete);
        // Whoever comes back gets one more chance for each time a person says so.
        self.limited.values_mut().for_each(|limited| limited.again.clear());
        if withdraws {
            self.open.retain(|_, order| !matches!(order, Event::Order(Order::QuestionAsked(_))));
        }
    }

    fn words(&mut self, question: &'a QuestionAsked, text: &str) {
        let text = text.trim().to_lowercase();
        let yes = matches!(text.as_str(), "y" | "yes" | "ok");
        match question.kind {
            QuestionKind::Merge => self.landing.yes = yes,
            QuestionKind::DryRun => self.dry_run_passed = yes,
            QuestionKind::RedBase => self.red_base = yes,
            QuestionKind::LowConfidence if text == "proceed" => self.waved = true,
            QuestionKind::LowConfidence => {
                self.cycle.answers.remove("creator");
            }
            QuestionKind::GoalQuestions
            | QuestionKind::PlanApproval
            | QuestionKind::StepApproval
            | QuestionKind::LoopPaused
            | QuestionKind::LoopEdited => {}
            QuestionKind::Rejection => {
                let name = question.archetype.as_str();
                match text.as_str() {
                    "land" | "accept" | "go on" | "proceed" => {
                        self.cycle.overruled.insert(name);
                        let left = self.cycle.kept.iter_mut().chain(&mut self.cycle.asked_about);
                        left.filter(|left| left.author == name)
                            .for_each(|left| left.severity = Severity::Warning);
                    }
                    "stop" => {}
                    _ => {
                        self.cycle.weakened.retain(|(source, _), _| *source != name);
                        self.cycle.upheld.insert(name);
                    }
                }
            }
            QuestionKind::NeedsContext => {
                self.cycle.answers.remove(question.archetype.as_str());
            }
            QuestionKind::Shadow => {
                let name = question.archetype.as_str();
                match text.as_str() {
                    "accept" | "go on" | "proceed" | "yes" | "y" | "ok" => self.cycle.restore(name),
                    "skip" if matches!(name, "skeptic" | "sage" | "trickster") => {
                        if let Some(earlier) = self.cycle.shadowed.remove(name) {
                            self.cycle.skipped.insert(name);
                            self.cycle.keep(name, earlier);
                        }
                    }
                    _ => drop(self.cycle.replaced.insert(name)),
                }
                self.escalation.remove(name);
            }
        }
    }

    fn complete(&mut self, start: &'a AgentStart, answer: &'a Answer, change: Option<&'a Change>) {
        self.alone_and_failing = 0;
        self.work = change.or(self.work);
        let name = start.archetype.as_str();
        let cycle = &mut self.cycle;
        cycle.failures.remove(name);
        cycle.busy.remove(name);
        cycle.last_failure.remove(name);
        cycle.cramped.remove(name);
        if start.purpose == Purpose::Research {
            return;
        }
        if start.role == Role::Maker {
            cycle.raised.clear();
            cycle.errand = None;
        }
        let earlier = cycle.shadowed.remove(name).filter(|_| cycle.replaced.remove(name));
        cycle.verdicts.remove(name);
        cycle.downgraded.retain(|(source, _)| *source != name);
        cycle.weakened.retain(|(source, _), _| *source != name);
        cycle.asked_about.retain(|left| left.author != name);
        cycle.answers.insert(name, answer);
        cycle.compare(name);
        if let Some(earlier) = earlier {
            cycle.keep(name, earlier);
        }
    }

    fn served(&mut self, start: &'a AgentStart, start_seq: Seq) {
        let account = start.account.as_str();
        if self.limited.get(account).is_some_and(|limited| limited.since < start_seq) {
            self.limited.remove(account);
        }
    }

    /// C6: the provider's word, and whatever was waited for already.
    fn turned_away(&mut self, entry: &'a Entry, start: &'a AgentStart, failed: &'a AgentFailed) {
        let limited = self.limited.entry(&start.account).or_default();
        let beside = failed.start_seq < limited.since;
        let opens = entry.at + failed.reopens_in_ms.unwrap_or(0);
        limited.opens = if beside { limited.opens.max(opens) } else { opens };
        limited.since = entry.seq;
        *limited.again.entry(start.archetype.clone()).or_default() += 1;
    }

    fn failed(&mut self, entry: &'a Entry, start: &'a AgentStart, failed: &'a AgentFailed) {
        match failed.kind {
            kind if kind.is_busy() => self.turned_away(entry, start, failed),
            Failure::Garbled | Failure::NoWork | Failure::PermissionDenied => {
                self.served(start, failed.start_seq);
            }
            _ => {}
        }
        let name = start.archetype.as_str();
        let tally = match failed.kind {
            kind if kind.is_busy() => &mut self.cycle.busy,
            _ => &mut self.cycle.failures,
        };
        *tally.entry(name).or_default() += 1;
        self.cycle.last_failure.insert(name, failed.kind);
        if failed.kind == Failure::ContextTooLong {
            *self.cycle.cramped.entry(name).or_default() += 1;
        }
        if !failed.kind.is_busy() && failed.kind != Failure::Auth {
            let alone = self.agents_out().next().is_none() && start.role != Role::Reviewer;
            self.alone_and_failing = if alone { self.alone_and_failing + 1 } else { 0 };
        }
        if failed.kind == Failure::NoWork && self.cycle.errand.is_some_and(|e| e.purpose == Purpose::Tests) {
            self.cycle.no_tests_came = true;
        }
    }

    // ---- orders

    fn ordered(&mut self, entry: &'a Entry) -> Kept {
        holds(self.ended.is_none(), "nothing is ordered after the end without a person's act")?;
        let last_hook = matches!(&entry.event, Event::Order(Order::HookStart(hook)) if hook.point == HookPoint::RunComplete);
        holds(!self.discarded || last_hook, "nothing is ordered for what was thrown away")?;
        holds(self.broke.is_none() || last_hook, "nothing is ordered after a break")?;
        holds(self.question().is_none() || last_hook, "nothing is ordered while a question is open")?;
        holds(
            self.open
                .values()
                .all(|order| matches!(order, Event::Order(Order::AgentStart(_) | Order::QuestionAsked(_)))),
            "one thing at a time",
        )?;
        match &entry.event {
            Event::Order(Order::AgentStart(start)) => {
                holds(self.broke.is_none(), "nobody is sent after a break")?;
                self.sent(entry, start)
            }
            Event::Order(Order::QuestionAsked(question)) => self.asked(question),
            Event::Order(Order::HookStart(hook)) => {
                let asked = self.request()?.config.hooks.iter().any(|wanted| wanted.point == hook.point);
                holds(asked, "hooks are configured")?;
                holds(!self.hooks.contains_key(&hook.point), "a hook runs once")
            }
            Event::Order(Order::MergeStart(start)) => {
                self.wish = false;
                let agreed = self.landing.requested || self.landing.yes;
                holds(agreed || self.cycle.boundary == Some(NextAction::Merge), "landing needs an approval")?;
                holds(
                    self.work.is_some_and(|work| work.commit == start.work),
                    "what lands is the latest work",
                )?;
                holds(start.attempt == self.landing.attempts + 1, "landings are counted")?;
                let tries = self.request()?.config.retries.moved_base.max(1);
                holds(start.attempt <= tries, "a moving target is followed so many times and no more")?;
                let (requested, yes) = (self.landing.requested, self.landing.yes);
                self.landing = Landing { attempts: start.attempt, requested, yes, ..Landing::default() };
                self.hooks.remove(&HookPoint::PreMerge);
                Ok(())
            }
            Event::Order(Order::PreflightStart(start)) => {
                let config = &self.request()?.config;
                holds(self.base.is_none(), "the base is tried once, and again only if a person repaired it")?;
                let commands = (&config.setup_command, &config.test_command);
                holds(commands == (&start.setup_command, &start.test_command), "the commands are the run's")
            }
            Event::Order(Order::TestsStart(start)) if self.undo => {
                let tree = self.revert.map(|(_, _, tree)| tree);
                holds(tree == Some(&start.tree) && !start.post_merge, "exactly the revert is tested")
            }
            Event::Order(Order::RevertStart(start)) => {
                holds(self.undo && self.landed == Some(&start.landed), "only our own merge is taken back")?;
                self.revert = None;
                self.landing.passed = None;
                Ok(())
            }
            Event::Order(Order::RevertIntent(intent)) if self.undo => {
                holds(self.landed == Some(&intent.landed), "only our own merge is taken back")?;
                let tested = intent.tested.as_ref().ok_or("a person's revert is built before")?;
                let built = self.revert == Some((&tested.old, &tested.new, &tested.tree));
                holds(built, "the revert that lands was built")?;
                let needs = self.request()?.config.test_command.is_some();
                holds(!needs || self.landing.passed == Some(&tested.tree), "the revert that lands was tested")
            }
            Event::Order(Order::TestsStart(start)) => {
                let tree = self.landing.candidate.map(|(_, _, tree)| tree);
                holds(tree == Some(&start.tree), "the merged tree is tested, nothing else")?;
                holds(start.post_merge == self.landed.is_some(), "the second net is after the landing")
            }
            Event::Order(Order::MergeIntent(intent)) => self.intent(intent),
            Event::Order(Order::RevertIntent(intent)) => {
                holds(self.landed == Some(&intent.landed), "only our own merge is taken back")?;
                holds(self.landing.red_after, "a merge is taken back for red tests only")
            }
            other => Err(format!("an order nobody knows: {}", other.name())),
        }
    }

    fn proposal(&self) -> Option<&'a Proposal> {
        match &self.cycle.answers.get("creator")?.said {
            AnswerBody::Proposal(proposal) => Some(proposal),
            AnswerBody::Prose | AnswerBody::Review(_) => None,
        }
    }

    fn review(&self, name: &str) -> Option<&'a Review> {
        match &self.cycle.answers.get(name)?.said {
            AnswerBody::Review(review) => Some(review),
            AnswerBody::Prose | AnswerBody::Proposal(_) => None,
        }
    }

    fn made(&self) -> bool {
        self.work.is_some() && (self.cycle.imported || self.cycle.answers.contains_key("maker"))
    }

    fn asked(&mut self, question: &'a QuestionAsked) -> Kept {
        let request = self.request()?;
        let times = self.questions.entry(question.kind).or_default();
        *times += 1;
        let times = *times;
        holds(self.agents_out().next().is_none(), "nobody is out while a person is asked")?;
        match question.kind {
            QuestionKind::Rejection => {
                let name = question.archetype.as_str();
                let asked = self.cycle.evidence_asked.contains(name) || self.cycle.imported;
                let asked = asked || self.cycle.skipped.contains(name);
                holds(
                    asked || !self.accepted.is_empty(),
                    "a reviewer is asked for evidence before a person is",
                )
            }
            QuestionKind::NeedsContext | QuestionKind::LowConfidence | QuestionKind::Shadow => holds(
                times <= request.config.retries.questions,
                "each question is asked so many times and no more",
            ),
            QuestionKind::GoalQuestions
            | QuestionKind::PlanApproval
            | QuestionKind::StepApproval
            | QuestionKind::LoopPaused
            | QuestionKind::LoopEdited => holds(false, "only loops ask that"),
            QuestionKind::DryRun => holds(request.dry_run && times == 1, "a dry run asks once"),
            QuestionKind::RedBase => {
                let tests = self.base.and_then(|base| base.tests.as_ref()).map(|tests| tests.result);
                let red = matches!(tests, Some(Tested::Failed | Tested::TimedOut));
                holds(
                    red && !request.config.allow_red_base,
                    "a person is asked about red tests that nobody allowed",
                )
            }
            QuestionKind::Merge => {
                holds(!self.landing.asked && !self.landing.requested, "the merge question is asked once")?;
                self.landing.asked = true;
                Ok(())
            }
        }
    }

    fn tries_base_again(&mut self) {
        if self.request.is_some_and(|request| !self.ground_is_firm(&request.config)) {
            (self.base, self.red_base) = (None, false);
        }
    }

    /// The setup and test commands worked on the base commit, or a person accepts how its tests fail.
    fn ground_is_firm(&self, policy: &archeflow_core::model::Policy) -> bool {
        let wanted = policy.setup_command.is_some() || policy.test_command.is_some();
        if !policy.preflight || !wanted {
            return true;
        }
        let Some(base) = self.base else { return false };
        let is_set_up = base.setup.as_ref().is_none_or(|setup| setup.result == Tested::Passed);
        let tests = base.tests.as_ref().map_or(Tested::Passed, |tests| tests.result);
        let accepted = policy.allow_red_base || self.red_base;
        is_set_up
            && match tests {
                Tested::Passed => true,
                Tested::Failed | Tested::TimedOut => accepted,
                Tested::Broken => false,
            }
    }

    fn intent(&mut self, intent: &'a MergeIntent) -> Kept {
        let request = self.request()?;
        let policy = &request.config;
        holds(self.landed.is_none(), "never two merges without a revert between")?;
        let (old, commit, tree) = self.landing.candidate.ok_or("what lands was built")?;
        holds((old, commit, tree) == (&intent.old, &intent.new, &intent.tree), "what lands was built")?;
        let tested = policy.test_command.is_some();
        holds(!tested || self.landing.passed == Some(tree), "tested is landed (I8)")?;
        for hook in policy.hooks.iter().filter(|hook| hook.point == HookPoint::PreMerge) {
            let done = self.hooks.get(&HookPoint::PreMerge);
            let fine = done == Some(&true) || (done.is_some() && hook.fail_action == FailAction::Warn);
            holds(fine, "the pre-merge hook comes before the merge")?;
        }
        let agreed = self.landing.requested || self.landing.yes;
        let approved = self.cycle.boundary == Some(NextAction::Merge) && self.review("guardian").is_some();
        holds(self.landing.requested || approved, "landing needs an approval")?;
        let auto = self.session.is_some_and(|session| session.auto_merge);
        let unasked = auto && (tested || policy.no_tests) && !self.doubtful() && !self.landing.unclear;
        holds(agreed || unasked, "landing needs an agreement")?;
        holds(self.landing.intent.is_none(), "one intent for one candidate")?;
        self.landing.intent = Some(intent);
        Ok(())
    }

    /// D-05.
    fn doubtful(&self) -> bool {
        self.findings().any(|(_, finding)| {
            finding.severity == Severity::Critical && finding.category == "security" && !founded(finding)
        })
    }

    /// Every finding with the severity it counts with; what is open of earlier answers, too.
    fn weighed(&self) -> Vec<(&'a str, Severity, &'a Finding)> {
        let mut weighed = Vec::new();
        for (name, answer) in &self.cycle.answers {
            let AnswerBody::Review(review) = &answer.said else { continue };
            for (index, found) in (0..).zip(&review.findings) {
                let counts = founded(found) || self.cycle.upheld.contains(name);
                let most = if counts { found.severity } else { Severity::Info };
                let least = self.cycle.weakened.get(&(*name, index)).copied().unwrap_or(most);
                weighed.push((*name, most.min(least), found));
            }
        }
        weighed.extend(self.cycle.still_open());
        weighed.extend(self.cycle.raised.iter().map(|(_, found)| ("program", found.severity, *found)));
        weighed
    }

    /// What the next version inherits: findings above INFO and rejections of this one.
    fn objections(&self) -> (Vec<(&'a str, Severity, &'a Finding)>, BTreeSet<&'a str>) {
        let mut open = self.weighed();
        open.retain(|(name, severity, _)| *severity > Severity::Info && *name != "program");
        let cycle = &self.cycle;
        let names = cycle.verdicts.keys().chain(&cycle.rejected_before).copied();
        let rejected = names.filter(|name| cycle.rejects(name) && !cycle.overruled.contains(name)).collect();
        (open, rejected)
    }

    fn findings(&self) -> impl Iterator<Item = (&'a str, &'a Finding)> {
        self.cycle
            .answers
            .iter()
            .filter_map(|(name, answer)| match &answer.said {
                AnswerBody::Review(review) => Some((*name, review)),
                AnswerBody::Prose | AnswerBody::Proposal(_) => None,
            })
            .flat_map(|(name, review)| review.findings.iter().map(move |finding| (name, finding)))
    }

    // ---- decisions

    fn decided(&mut self, entry: &'a Entry) -> Kept {
        holds(self.ended.is_none(), "nothing is decided after the end without a person's act")?;
        match &entry.event {
            Event::Decision(Decision::PhaseTransition(transition)) => {
                if !self.completed.is_empty() {
                    holds(entry.parent == self.completed, "a transition fans in what was completed")?;
                }
                (self.anchor, self.completed) = (entry.seq, Vec::new());
                self.together = None;
                holds(self.open.is_empty(), "a phase ends when everybody is back")?;
                holds(self.broke.is_none(), "no phase and no cycle begins after a break, hard or soft")?;
                // Whoever answers anew may have brought the cycle back to an earlier phase.
                let left = Phase::parse(&transition.from);
                self.phase = Some(transition.to);
                if transition.to != Phase::Plan {
                    if let Some(left) = left {
                        self.keep(left);
                    }
                    return holds(transition.cycle == self.cycle.number, "phases follow within a cycle");
                }
                if left.is_some() {
                    self.phase = left;
                    self.keep(Phase::Act);
                    self.phase = Some(Phase::Plan);
                }
                let back = self.cycle.boundary == Some(NextAction::CycleBack) || self.cycle.number == 0;
                holds(back, "a new cycle follows a boundary that says so")?;
                holds(transition.cycle == self.cycle.number + 1, "cycles count up by one")?;
                holds(transition.cycle <= self.max_cycles, "cycles never exceed their number")?;
                let (before, rejected_before) = self.objections();
                let number = transition.cycle;
                let aside_before = self.cycle.all_set_aside();
                let unsure_before = self.cycle.unsure(&Aside::default());
                self.cycle = Cycle {
                    number,
                    entered: true,
                    unsure_before,
                    before,
                    rejected_before,
                    aside_before,
                    ..Cycle::default()
                };
                self.landing = Landing::default();
                Ok(())
            }
            Event::Decision(Decision::WorkflowEscalated(escalated)) => {
                let from_to = (escalated.from, escalated.to) == (Workflow::Fast, Workflow::Standard);
                holds(
                    from_to && self.workflow == Some(Workflow::Fast),
                    "only a fast run escalates, to standard",
                )?;
                holds(!self.pipeline(), "the pipeline does not escalate")?;
                let floor = self.request()?.config.confidence_floor.0;
                if escalated.rule == "A3" {
                    let score =
                        self.proposal().ok_or("A3 looks at a proposal")?.confidence.solution_completeness;
                    holds(score.unwrap_or(0) < floor, "A3 escalates an incomplete solution")?;
                    self.cycle.answers.remove("creator");
                } else {
                    let upheld = self.cycle.upheld.contains("guardian");
                    let grave = |(name, finding): &(&str, &Finding)| {
                        let counts = upheld || founded(finding);
                        *name == "guardian" && finding.severity == Severity::Critical && counts
                    };
                    // Those of an author that was replaced stay (D6).
                    let kept = self.cycle.left_behind().filter(|left| left.author == "guardian").count();
                    holds(
                        self.findings().filter(grave).count() + kept >= 2,
                        "A1 needs two CRITICALs of the Guardian",
                    )?;
                }
                self.workflow = Some(escalated.to);
                self.escalated = true;
                self.max_cycles = self.max_cycles.max(escalated.max_cycles);
                Ok(())
            }
            Event::Decision(Decision::AgentSkipped(skipped)) => {
                let name = skipped.archetype.as_str();
                if name == "mini-explorer" {
                    let failed = self.cycle.last_failure.contains_key("explorer");
                    return holds(failed, "only who failed is given up");
                }
                self.cycle.skipped.insert(name);
                if name == "explorer" {
                    return holds(self.research_over, "the Explorer is spared when research is over");
                }
                if skipped.failed {
                    let reviewer = self.team().any(|(seat, role)| seat == name && role == Role::Reviewer);
                    let failed = self.cycle.last_failure.contains_key(name);
                    return holds(reviewer && failed, "only a reviewer who failed is given up");
                }
                let owes = self.cycle.before.iter().any(|(author, ..)| *author == name)
                    || self.cycle.rejected_before.contains(name);
                holds(
                    !owes || self.cycle.answers.contains_key(name),
                    "the author of an open objection looks again",
                )?;
                self.spared()
            }
            Event::Decision(Decision::ReviewVerdict(verdict)) => {
                let name = verdict.archetype.as_str();
                let review = self.review(name).ok_or("a verdict follows a review")?;
                let critical = review.findings.iter().any(|finding| finding.severity == Severity::Critical);
                let fair = verdict.verdict == Verdict::Rejected
                    || (review.verdict == Some(Verdict::Approved) && !critical);
                holds(fair, "no approval that was not said")?;
                holds(
                    self.cycle.verdicts.insert(name, verdict.verdict).is_none(),
                    "one verdict for one review",
                )
            }
            Event::Decision(Decision::EvidenceDowngrade(down)) => {
                let name = down.archetype.as_str();
                let review = self.review(name).ok_or("a downgrade follows a review")?;
                let finding =
                    review.findings.get(down.index as usize).ok_or("a downgrade names a finding")?;
                let outside = !objections::in_the_change(self.work, &finding.file);
                let fair = match down.reason {
                    Unfounded::BesideTheChange => outside && self.cycle.evidence_asked.contains(name),
                    Unfounded::LineUnrelated => !proven(finding) && self.cycle.overruled.contains(name),
                    _ => !founded(finding),
                };
                holds(finding.severity == down.from && fair, "what has evidence counts")?;
                objections::weakened(down)?;
                self.cycle.weakened.insert((name, down.index), down.to);
                holds(self.cycle.downgraded.insert((name, down.index)), "one downgrade for one finding")
            }
            Event::Decision(Decision::FindingRaised(raised)) => {
                let seen =
                    self.work.is_some_and(|work| work.signs.seen.iter().any(|seen| seen.sign == raised.sign));
                let red = raised.sign == Sign::TestsFailing
                    && (self.landing.red_after
                        || self.landing.candidate.is_some() && self.landing.passed.is_none());
                holds(seen || red, "the program raises what it saw")?;
                let again = self.cycle.raised.iter().any(|(_, finding)| **finding == raised.finding);
                holds(!again, "nothing is raised twice")?;
                let key =
                    |sign, finding: &'a Finding| (sign, &finding.file, finding.line, &finding.description);
                if let Some((sign, before)) = self.cycle.raised.last()
                    && raised.sign != Sign::TestsFailing
                    && *sign != Sign::TestsFailing
                {
                    let sorted = key(*sign, before) < key(raised.sign, &raised.finding);
                    holds(sorted, "what the program saw stands in one order")?;
                }
                self.cycle.raised.push((raised.sign, &raised.finding));
                if raised.sign == Sign::TestsFailing {
                    self.cycle.boundary = None;
                    self.boundaries.remove(&self.cycle.number);
                    self.landing = Landing::default();
                    self.hooks.remove(&HookPoint::PreMerge);
                    self.hooks.remove(&HookPoint::PostMerge);
                }
                Ok(())
            }
            Event::Decision(Decision::FixApplied(fix)) => {
                self.fixes += 1;
                self.repaired(fix)?;
                holds(self.cycle.fixed.insert(&fix.finding), "a fix is counted once")
            }
            Event::Decision(Decision::CycleBoundary(boundary)) => {
                (self.anchor, self.completed) = (entry.seq, Vec::new());
                self.together = None;
                self.boundary(boundary)
            }
            Event::Decision(Decision::ShadowDetected(seen)) => {
                let who = if seen.archetype == SYSTEM { &seen.target } else { &seen.archetype };
                let anew = matches!(seen.action, ShadowAction::Correct | ShadowAction::Replace)
                    || (seen.action == ShadowAction::Escalate && seen.archetype != SYSTEM);
                if anew {
                    self.cycle.set_aside(who);
                    self.cycle.replaced.remove(who.as_str());
                }
                if seen.action == ShadowAction::Replace {
                    self.cycle.replaced.insert(who);
                }
                if seen.action == ShadowAction::Escalate {
                    self.escalation.insert(seen.archetype.as_str());
                }
                self.research_over |= seen.shadow == "analysis_paralysis";
                Ok(())
            }
            Event::Decision(Decision::PolicyCheckpoint(_)) => {
                holds(self.open.is_empty(), "a checkpoint is between steps")
            }
            Event::Decision(Decision::WiggumBreak(stop)) => {
                holds(self.broke.is_none(), "one break for one end")?;
                self.broke = Some((stop.trigger, stop.hardness));
                // A checkpoint lies between a boundary and the cycle it asks for, and may say that there is none.
                if stop.trigger == Reason::Checkpoint {
                    self.cycle.boundary = self.cycle.boundary.map(|_| NextAction::Stop);
                }
                Ok(())
            }
            Event::Decision(Decision::RunComplete(complete)) => {
                if self.phase == Some(Phase::Act) && self.cycle.boundary.is_some() {
                    self.keep(Phase::Act);
                }
                self.completed_run(complete)
            }
            Event::Decision(Decision::DecisionRecord(record)) => {
                let (seq, point) = self.point.ok_or("a decision follows its choice (CL-31)")?;
                holds(
                    entry.parent == [seq] && point.archetype == record.archetype,
                    "a decision belongs to the last choice, which is its parent (CL-31)",
                )?;
                let of_it = record.rule == point.rule && record.chosen == point.decision;
                let others = !record.alternatives.is_empty() && !record.alternatives.contains(&record.chosen);
                holds(of_it && others, "a decision names what was chosen and what was not")
            }
            Event::Decision(Decision::DecisionPoint(point)) => {
                self.point = Some((entry.seq, point));
                if point.rule == "C6" {
                    holds(
                        !self.request()?.config.agents.fallback.is_empty(),
                        "somebody is there to take over",
                    )?;
                    let kind = self.cycle.last_failure.get(point.archetype.as_str());
                    if kind == Some(&Failure::NotStarted) {
                        self.alone_and_failing = self.alone_and_failing.saturating_sub(1);
                    }
                }
                if point.rule == "AF-138" {
                    self.cycle.restore(&point.archetype);
                }
                if point.rule == "J-04" {
                    holds(
                        self.cycle.evidence_asked.insert(&point.archetype),
                        "a reviewer is asked for evidence once",
                    )?;
                    self.cycle.set_aside(&point.archetype);
                    let (put, kept) = self.cycle.kept.iter().partition(|left| left.author == point.archetype);
                    self.cycle.kept = kept;
                    self.cycle.asked_about.extend::<Vec<_>>(put);
                }
                if point.rule == "AF-063" && self.cycle.no_tests_came {
                    self.cycle.last_failure.remove("maker");
                    self.cycle.failures.remove("maker");
                    self.cycle.errand = None;
                }
                Ok(())
            }
            other => Err(format!("a decision nobody knows: {}", other.name())),
        }
    }

    /// A2 and AF-190: who may be spared, and when.
    fn spared(&self) -> Kept {
        let review = self.review("guardian").ok_or("sparing reviewers needs the Guardian's review")?;
        holds(self.cycle.raised.is_empty(), "nobody is spared when the program raised a finding")?;
        if self.pipeline() {
            return holds(
                review.findings.is_empty(),
                "the Skeptic is spared when the Guardian has no findings",
            );
        }
        let clean = review.verdict == Some(Verdict::Approved)
            && review.findings.iter().all(|finding| finding.severity == Severity::Info);
        holds(clean, "nobody is spared unless the Guardian approves")?;
        let unverified = |name| {
            self.cycle.answers.get(name).is_none_or(|answer: &&Answer| answer.status == Status::Unverified)
        };
        holds(!unverified("guardian") && !unverified("maker"), "nobody is spared on an unverified answer")?;
        holds(!self.escalated, "nobody is spared when escalated")?;
        let first = self.workflow == Some(Workflow::Thorough) && self.cycle.number == 1;
        holds(!first, "nobody is spared in a thorough run's first cycle")
    }

    fn boundary(&mut self, boundary: &'a CycleBoundary) -> Kept {
        let policy = &self.request()?.config.convergence;
        holds(boundary.cycle == self.cycle.number, "a boundary is of its cycle")?;
        holds(boundary.max_cycles == self.max_cycles, "a boundary knows how many cycles there are")?;
        holds(
            boundary.convergence.is_some() == (boundary.cycle > 1),
            "convergence is compared from cycle 2",
        )?;
        holds(self.review("guardian").is_some(), "a cycle is concluded on a review")?;
        if !self.cycle.imported {
            for (name, role) in self.team().filter(|(_, role)| *role == Role::Reviewer) {
                let heard =
                    self.review(name).is_some() || self.cycle.skipped.contains(name) || self.escalated;
                holds(heard, &format!("every reviewer is heard or excused ({role:?})"))?;
            }
        }
        holds(self.cycle.shadowed.is_empty(), "no cycle is concluded while somebody has to answer anew")?;
        let mut weighed = self.weighed();
        let before_naming = weighed.len();
        let aside = self.cycle.all_set_aside();
        if boundary.next_action == NextAction::Merge {
            weighed.extend(aside.warnings.iter().map(|left| (left.author, left.severity, left.finding)));
        }
        let unsure = self.cycle.unsure(&aside).len();
        // Which findings are the accepted ones is a matter of words; where they are is not.
        let elsewhere = |found: &Finding| {
            self.accepted.iter().all(|known| known.file != found.file || known.category != found.category)
        };
        for (severity, told) in [
            (Severity::Critical, boundary.critical),
            (Severity::Warning, boundary.warning),
            (Severity::Info, boundary.info),
        ] {
            let alike = weighed.iter().filter(|(_, found, _)| *found == severity);
            let (most, told) = (alike.clone().count(), told as usize);
            let least = alike.filter(|(.., found)| elsewhere(found)).count().saturating_sub(unsure);
            holds((least..=most).contains(&told), "what counts is counted")?;
        }
        self.lists_what_is_open(boundary, &weighed)?;
        let still = |known: &&Tracked| {
            boundary.open.iter().any(|found| {
                (&found.file, &found.category, &found.description)
                    == (&known.file, &known.category, &known.description)
            })
        };
        holds(!self.accepted.iter().any(still), "what a person accepted stands in nobody's way")?;
        let signs = self.work.map_or(&[][..], |work| &work.signs.seen);
        let raised = |sign| self.cycle.raised.iter().any(|(raised, _)| *raised == sign);
        holds(signs.iter().all(|seen| raised(seen.sign)), "what the program sees is raised")?;
        let before = self.boundaries.get(&(boundary.cycle.saturating_sub(1))).map(|before| &before.open);
        let ago = self.boundaries.get(&(boundary.cycle.saturating_sub(2))).map(|ago| &ago.open);
        let has = |list: Option<&Vec<_>>, id: &str| {
            list.is_some_and(|list: &Vec<Tracked>| list.iter().any(|found| found.id == id))
        };
        let ids: BTreeSet<&str> = boundary.open.iter().map(|found| found.id.as_str()).collect();
        holds(ids.len() == boundary.open.len(), "every open finding has a name of its own")?;
        for found in &boundary.open {
            holds((found.cycles_open > 1) == has(before, &found.id), "a finding's age is counted")?;
        }
        if policy.overlap == Overlap::Jaccard {
            holds(keep_their_names(&boundary.open, before), "the same words keep their name")?;
        }
        // What is only named where the change lands neither blocks nor stops it.
        let named = |open: &Tracked| {
            let at_place = |left: &LeftBehind<'_>| {
                (&left.finding.file, &left.finding.category) == (&open.file, &open.category)
            };
            boundary.next_action == NextAction::Merge && aside.warnings.iter().any(at_place)
        };
        let swings = |f: &&Tracked| !has(before, &f.id) && has(ago, &f.id) && !named(f);
        let swinging = boundary.open.iter().filter(swings).count();
        let stops = boundary.next_action == NextAction::Stop;
        holds(swinging < policy.oscillating as usize || stops, "findings that oscillate stop the run")?;
        let stuck = |f: &Tracked| f.cycles_open > 1 && f.severity >= policy.persistent_floor;
        match boundary.next_action {
            NextAction::Merge => {
                let passes_over = self.passes_over(boundary)?;
                let against = |name: &str| {
                    weighed.iter().take(before_naming).any(|(source, severity, found)| {
                        *source == name && *severity > Severity::Info && elsewhere(found)
                    })
                };
                let names = self.cycle.verdicts.keys().chain(&self.cycle.rejected_before);
                for name in names.filter(|name| self.cycle.rejects(name)) {
                    let by_person = self.cycle.overruled.contains(name) || !self.accepted.is_empty();
                    holds(passes_over || !against(name) || by_person, "no founded rejection is passed over")?;
                    holds(
                        (passes_over && against(name)) || by_person,
                        "no rejection without evidence is passed over but by a person (J-04)",
                    )?;
                    let named = boundary.passed_over.iter().any(|over| over.archetype == *name);
                    holds(named, "a rejection that does not keep a change from landing is named")?;
                }
                let sure = aside.warnings.iter().filter(|left| left.sure).map(|left| left.author);
                for name in sure.chain(aside.bare.iter().copied()) {
                    let named = boundary.passed_over.iter().any(|over| over.archetype == name);
                    holds(named, "a rejection that was set aside for a shadow is named")?;
                }
                holds(self.cycle.upheld.is_empty(), "what a person lets count does not land")?;
            }
            NextAction::CycleBack => {
                holds(boundary.cycle < self.max_cycles, "cycles never exceed their number")?;
                holds(!self.pipeline(), "the pipeline does not cycle back")?;
                holds(!boundary.open.iter().any(stuck), "what stays grave for two cycles goes to a person")?;
            }
            NextAction::Stop => holds(boundary.stop.is_some(), "a stop says why")?,
        }
        self.cycle.boundary = Some(boundary.next_action);
        self.boundaries.insert(boundary.cycle, boundary);
        Ok(())
    }

    fn completed_run(&mut self, complete: &'a RunComplete) -> Kept {
        let request = self.request()?;
        holds(complete.exit_code == exit_code(complete), "the exit code matches the outcome")?;
        self.undo = false;
        let landed = self.landed.or(self.taken_back);
        let reverted = complete.reason == Reason::Reverted;
        holds(reverted == self.taken_back.is_some(), "reverted means reverted by a person")?;
        holds(complete.merged_oid.as_ref() == landed, "the end says what landed")?;
        let blamed =
            matches!(complete.reason, Reason::TestsFailed | Reason::MergeConflict | Reason::NoChange);
        holds(!(blamed && self.landing.together), "nobody is blamed for what several did together")?;
        let landed_but = complete.reason == Reason::PostMergeTests && self.revert_refused;
        let merged = complete.status == RunStatus::Merged;
        holds(merged == landed.is_some() || (landed_but && !merged), "merged means merged")?;
        let broke = self.broke.map(|(trigger, _)| trigger);
        let breaks = complete.status == RunStatus::WiggumBreak;
        holds(breaks == broke.is_some(), "a break comes before its end")?;
        holds(!breaks || broke == Some(complete.reason), "a break has the reason of its end")?;
        holds(
            complete.question == self.question() || self.discarded,
            "an end names the question it waits for",
        )?;
        holds(complete.question.is_none() || !self.attended, "a person who is there is waited for")?;
        holds(
            self.open.values().all(|order| matches!(order, Event::Order(Order::QuestionAsked(_)))),
            "nobody is out at the end",
        )?;
        let hook = request.config.hooks.iter().any(|hook| hook.point == HookPoint::RunComplete);
        holds(
            !hook || self.hooks.contains_key(&HookPoint::RunComplete),
            "the last hook runs before the end",
        )?;
        holds(complete.agents_total == self.agents, "agents are counted")?;
        holds(complete.fixes_total == self.fixes, "fixes are counted")?;
        self.ends_with_what_is_open(complete)?;
        holds(complete.cycles == self.cycle.number, "cycles are counted")?;
        holds(self.discarded == (complete.reason == Reason::Discarded), "discarded is discarded")?;
        holds(!self.wish || self.discarded, "a wish to land is tried")?;
        holds(
            self.cycle.boundary != Some(NextAction::CycleBack) || self.discarded,
            "a cycle back goes back",
        )?;
        let busy = complete.reason == Reason::ProviderBusy;
        holds(busy || complete.reopens_at.is_none(), "only a limited account says when it serves again")?;
        holds(!busy || !self.limited.is_empty(), "an account that serves stops nobody")?;
        if busy {
            for limited in self.limited.values_mut() {
                limited.parked = true;
                limited.again.clear();
            }
        }
        self.ended = Some(complete);
        Ok(())
    }
}

/// A finding that stands in the same words in both cycles, and only once in each, is the same finding.
fn keep_their_names(now: &[Tracked], before: Option<&Vec<Tracked>>) -> bool {
    let words = |found: &Tracked| -> BTreeSet<String> {
        let words = found.description.split(|c: char| !c.is_alphanumeric());
        words.filter(|word| word.len() > 2).map(str::to_lowercase).collect()
    };
    let twin =
        |a: &Tracked, b: &Tracked| (&a.file, &a.category) == (&b.file, &b.category) && words(a) == words(b);
    let only =
        |list: &[Tracked], found: &Tracked| list.iter().filter(|other| twin(found, other)).count() == 1;
    let before = before.map_or(&[][..], Vec::as_slice);
    now.iter().all(|found| {
        let Some(old) = before.iter().find(|old| twin(old, found)) else { return true };
        let near = found.line == 0 || old.line == 0 || found.line.abs_diff(old.line) <= 10;
        let heard = found.source.iter().any(|source| old.source.contains(source));
        !(near && heard && only(now, found) && only(before, found)) || found.id == old.id
    })
}

fn asks_nothing(answer: &Answer) -> bool {
    !matches!(answer.status, Status::NeedsContext | Status::Blocked)
}

/// By the kinds of evidence the made-up world gives.
pub(super) fn founded(finding: &Finding) -> bool {
    finding.severity == Severity::Info
        || finding.reproduction.is_some()
        || finding.evidence.contains("$ ")
        || finding.citations.iter().any(|citation| citation.line > 0 && citation.holds != Some(false))
}

/// The same, and more than a line that has nothing to do with it.
fn proven(finding: &Finding) -> bool {
    let related = finding
        .citations
        .iter()
        .any(|citation| citation.line > 0 && citation.holds == Some(true) && citation.related != Some(false));
    finding.reproduction.is_some() || finding.evidence.contains("$ ") || related
}
