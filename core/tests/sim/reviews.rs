//! What must hold in every log of a review, counted from the lines alone.

use std::collections::{BTreeMap, BTreeSet};

use archeflow_core::event::{
    AgentStart, CycleBoundary, Decision, Entry, Event, EvidenceDone, EvidenceStart, NextAction, Order,
    Report, ReviewOpened, RunComplete, RunStart, ShadowDetected,
};
use archeflow_core::model::Strategy;
use archeflow_core::model::{
    Answer, AnswerBody, Finding, Phase, Reason, Role, RunStatus, Seq, Severity, ShadowAction, Sign, Status,
};
use archeflow_core::strategies::review::fingerprint;

use super::promises::founded;

type Kept = Result<(), String>;

/// What some review must have had; the beginnings of names.
pub(crate) const WANTED: [&str; 14] = [
    "end findings_open reviewed",
    "end approved reviewed",
    "end agent_failures",
    "end unparsable_review",
    "end needs_context",
    "end blocked",
    "given up",
    "run.continued",
    "merge.requested",
    "run.reentered",
    "tried and refuted",
    "tried and fails",
    "tried on the base",
    "several parts",
];

pub(crate) fn audit(log: &[Entry]) -> Kept {
    let mut auditor = Auditor { quiet: true, ..Auditor::default() };
    for entry in log {
        auditor.line(entry).map_err(|why| format!("{why} (line {})", entry.seq))?;
    }
    Ok(())
}

/// What was there, for [`WANTED`].
pub(crate) fn read(log: &[Entry], seen: &mut BTreeMap<String, u32>) {
    let mut note = |what: &str| *seen.entry(what.to_owned()).or_default() += 1;
    for entry in log {
        match &entry.event {
            Event::Report(Report::EvidenceDone(done)) => {
                note(if done.change.exit == Some(0) { "tried and refuted" } else { "tried and fails" });
                if done.base.is_some() {
                    note("tried on the base");
                }
            }
            Event::Decision(Decision::PhaseTransition(transition)) if transition.cycle > 1 => {
                note("several parts");
            }
            _ => {}
        }
    }
}

fn holds(kept: bool, promise: &str) -> Kept {
    if kept { Ok(()) } else { Err(promise.to_owned()) }
}

#[derive(Default)]
struct Auditor<'a> {
    request: Option<&'a RunStart>,
    opened: Option<&'a ReviewOpened>,
    open: BTreeMap<Seq, &'a Event>,
    part: Part<'a>,
    /// Everything above INFO at the ends of the parts so far.
    against: u32,
    /// Who was gone without, in any part.
    missed: BTreeSet<&'a str>,
    /// Nothing went wrong so far, and nobody meddled.
    quiet: bool,
    ended: bool,
}

#[derive(Default)]
struct Part<'a> {
    number: u32,
    answers: BTreeMap<&'a str, &'a Answer>,
    set_aside: BTreeMap<&'a str, &'a Answer>,
    evidence_asked: BTreeSet<&'a str>,
    /// Set aside for another author.
    replaced: BTreeSet<&'a str>,
    /// Set aside until a person decides.
    escalated: BTreeSet<&'a str>,
    /// CRITICALs of a replaced author; whether the answers since surely lack it.
    kept: Vec<(&'a str, &'a Finding, bool)>,
    /// Those that their successor is asked about, until it has answered.
    asked_about: Vec<(&'a str, &'a Finding, bool)>,
    sent: BTreeSet<&'a str>,
    skipped: BTreeSet<&'a str>,
    downgraded: BTreeSet<(&'a str, u32)>,
    tried: BTreeMap<(&'a str, u32), &'a EvidenceDone>,
    trials: u32,
    raised: Vec<(Sign, &'a Finding)>,
    boundary: Option<&'a CycleBoundary>,
}

impl<'a> Auditor<'a> {
    fn line(&mut self, entry: &'a Entry) -> Kept {
        if let Some(order) = entry.event.answers()
            && !matches!(entry.event, Event::Report(Report::QuestionDeferred(_)))
        {
            let Some(order) = self.open.remove(&order) else { return Ok(()) };
            return self.answered(order, &entry.event);
        }
        match &entry.event {
            Event::Report(Report::RunStart(start)) => self.request = Some(start),
            Event::Report(Report::ReviewOpened(opened)) => self.opened = Some(opened),
            Event::Order(Order::AgentStart(start)) => {
                self.open.insert(entry.seq, &entry.event);
                return self.sent(start);
            }
            Event::Order(Order::EvidenceStart(start)) => {
                self.open.insert(entry.seq, &entry.event);
                return self.tries(start);
            }
            Event::Order(Order::HookStart(_) | Order::QuestionAsked(_)) => {
                self.quiet &= matches!(entry.event, Event::Order(Order::HookStart(_)));
                self.open.insert(entry.seq, &entry.event);
            }
            Event::Order(Order::MergeStart(_) | Order::MergeIntent(_))
            | Event::Order(Order::RevertIntent(_) | Order::TestsStart(_) | Order::PreflightStart(_))
            | Event::Decision(Decision::FixApplied(_) | Decision::WorkflowEscalated(_)) => {
                return Err("a review lands nothing and makes nothing".to_owned());
            }
            Event::Decision(Decision::PhaseTransition(transition)) => {
                return self.enters(transition.to, transition.cycle);
            }
            Event::Decision(Decision::AgentSkipped(skipped)) => {
                self.quiet = false;
                self.part.skipped.insert(&skipped.archetype);
                self.missed.insert(&skipped.archetype);
            }
            Event::Decision(Decision::EvidenceDowngrade(down)) => {
                self.part.downgraded.insert((&down.archetype, down.index));
            }
            Event::Decision(Decision::FindingRaised(raised)) => {
                self.part.raised.push((raised.sign, &raised.finding));
            }
            Event::Decision(Decision::ShadowDetected(seen)) => self.shadow(seen),
            Event::Decision(Decision::DecisionPoint(point)) if point.rule == "AF-138" => {
                if let Some(answer) = self.part.set_aside.remove(point.archetype.as_str()) {
                    self.part.answers.insert(&point.archetype, answer);
                }
                self.part.replaced.remove(point.archetype.as_str());
            }
            Event::Decision(Decision::DecisionPoint(point)) if point.rule == "J-04" => {
                let name = point.archetype.as_str();
                holds(self.part.evidence_asked.insert(name), "a reviewer is asked for evidence once")?;
                if let Some(answer) = self.part.answers.remove(name) {
                    self.forget(name);
                    self.part.set_aside.insert(name, answer);
                }
                let (put, kept) = self.part.kept.iter().partition(|(author, ..)| *author == name);
                self.part.kept = kept;
                self.part.asked_about.extend::<Vec<_>>(put);
            }
            Event::Decision(Decision::CycleBoundary(boundary)) => return self.concludes(boundary),
            Event::Decision(Decision::RunComplete(complete)) => return self.ends(complete),
            Event::Report(Report::RunContinued(_)) => {
                self.meddled();
                self.part.answers.retain(|_, answer| asks_nothing(answer));
                // A person was asked about these; the others go on as they were.
                for name in std::mem::take(&mut self.part.escalated) {
                    if let Some(answer) = self.part.set_aside.remove(name) {
                        self.part.answers.insert(name, answer);
                    }
                }
            }
            // Neither means anything to a review.
            Event::Report(Report::MergeRequested(_) | Report::RunReentered(_)) => {
                (self.quiet, self.ended) = (false, false);
            }
            Event::Report(Report::RunDiscarded(_)) => {
                self.meddled();
                self.open.clear();
            }
            _ => {}
        }
        Ok(())
    }

    fn meddled(&mut self) {
        (self.quiet, self.ended) = (false, false);
        self.open.retain(|_, order| !matches!(order, Event::Order(Order::QuestionAsked(_))));
    }

    fn shadow(&mut self, seen: &'a ShadowDetected) {
        self.quiet &= seen.action == ShadowAction::Note;
        let system = seen.archetype == archeflow_core::model::SYSTEM;
        let who = if system { &seen.target } else { &seen.archetype };
        let anew = matches!(seen.action, ShadowAction::Correct | ShadowAction::Replace)
            || seen.action == ShadowAction::Escalate && !system;
        if anew && let Some(answer) = self.part.answers.remove(who.as_str()) {
            self.forget(who);
            self.part.set_aside.insert(who, answer);
            self.part.replaced.remove(who.as_str());
            self.part.escalated.remove(who.as_str());
        }
        if seen.action == ShadowAction::Replace {
            self.part.replaced.insert(who);
        }
        if seen.action == ShadowAction::Escalate {
            self.part.escalated.insert(who);
        }
    }

    /// CRITICALs that count, of an answer that another author replaced.
    fn keep(&mut self, name: &'a str, earlier: &'a Answer) {
        let counts = |finding: &&'a Finding| finding.severity == Severity::Critical && founded(finding);
        self.part.kept.extend(found_by(earlier).iter().filter(counts).map(|finding| (name, finding, true)));
        self.compare(name);
    }

    /// What the present answer may repeat is not surely open beside it.
    fn compare(&mut self, name: &str) {
        let now = self.part.answers.get(name).map_or(&[][..], |answer| found_by(answer));
        for (_, finding, sure) in self.part.kept.iter_mut().filter(|(author, ..)| *author == name) {
            let alike = |other: &Finding| other.file == finding.file && other.category == finding.category;
            *sure &= !now.iter().any(alike);
        }
    }

    fn forget(&mut self, name: &str) {
        self.part.downgraded.retain(|(who, _)| *who != name);
        self.part.tried.retain(|(who, _), _| *who != name);
    }

    fn seats(&self) -> Vec<&'a str> {
        let seats = self.request.and_then(|request| request.seats.get(Strategy::Review.name()));
        let once = |name: &&str| {
            let mut spared = self.opened.iter().flat_map(|opened| &opened.once);
            self.part.number > 1 && spared.any(|one| one == name)
        };
        seats.into_iter().flatten().map(|seat| seat.archetype.as_str()).filter(|name| !once(name)).collect()
    }

    fn opened(&self) -> Result<&'a ReviewOpened, String> {
        self.opened.ok_or_else(|| "a review is opened first".to_owned())
    }

    fn sent(&mut self, start: &'a AgentStart) -> Kept {
        let opened = self.opened()?;
        holds(!self.ended, "nobody is sent after the end")?;
        holds(start.role == Role::Reviewer, "nobody but reviewers works on a review")?;
        holds(self.seats().contains(&start.archetype.as_str()), "only who was asked reviews")?;
        holds(start.cycle == self.part.number, "everybody looks at the part under way")?;
        holds(start.at == opened.change.commit, "everybody looks at the change")?;
        holds(self.part.boundary.is_none(), "a part is looked at once to its end")?;
        self.part.sent.insert(&start.archetype);
        Ok(())
    }

    fn enters(&mut self, to: Phase, cycle: u32) -> Kept {
        let parts = self.opened()?.parts.len();
        holds(self.open.is_empty(), "a phase ends when everybody is back")?;
        match to {
            Phase::Plan | Phase::Do => Err("nothing is planned or made in a review".to_owned()),
            Phase::Act => holds(cycle == self.part.number, "a part ends in itself"),
            Phase::Check => {
                holds(cycle == self.part.number + 1, "one part after the other, each once")?;
                holds(cycle as usize <= parts, "no more parts than there are")?;
                let whole = self.part.boundary.is_some_and(|b| b.next_action == NextAction::CycleBack);
                holds(cycle == 1 || whole, "the next part begins when this one has ended")?;
                if cycle > 1 {
                    let gone =
                        |name: &&str| self.part.sent.contains(name) || self.part.skipped.contains(name);
                    holds(self.seats().iter().all(gone), "every reviewer is sent in every part")?;
                }
                self.part = Part { number: cycle, ..Part::default() };
                Ok(())
            }
        }
    }

    fn answered(&mut self, order: &'a Event, report: &'a Event) -> Kept {
        match (order, report) {
            (Event::Order(Order::AgentStart(start)), Event::Report(Report::AgentComplete(complete))) => {
                self.quiet &= asks_nothing(&complete.answer);
                self.forget(&start.archetype);
                let name = start.archetype.as_str();
                let earlier = self.part.set_aside.remove(name).filter(|_| self.part.replaced.remove(name));
                self.part.answers.insert(name, &complete.answer);
                self.part.asked_about.retain(|(author, ..)| *author != name);
                self.compare(name);
                if let Some(earlier) = earlier {
                    self.keep(name, earlier);
                }
            }
            (Event::Order(Order::AgentStart(_)), Event::Report(Report::AgentLost(_))) => {}
            (Event::Order(Order::EvidenceStart(start)), Event::Report(Report::EvidenceDone(done))) => {
                self.part.tried.insert((&start.archetype, start.index), done);
            }
            (
                Event::Order(Order::QuestionAsked(question)),
                Event::Report(Report::QuestionAnswered(answered)),
            ) => {
                self.ended = false;
                let name = question.archetype.as_str();
                let text = answered.text.trim().to_lowercase();
                self.part.escalated.remove(name);
                match question.kind {
                    archeflow_core::event::QuestionKind::Shadow => match text.as_str() {
                        "accept" | "go on" | "proceed" | "yes" | "y" | "ok" => {
                            if let Some(answer) = self.part.set_aside.remove(name) {
                                self.part.answers.insert(name, answer);
                            }
                        }
                        "skip" if self.part.set_aside.contains_key(name) => {
                            let earlier = self.part.set_aside.remove(name);
                            self.part.skipped.insert(name);
                            self.missed.insert(name);
                            if let Some(earlier) = earlier {
                                self.keep(name, earlier);
                            }
                        }
                        _ => drop(self.part.replaced.insert(name)),
                    },
                    _ => {
                        self.part.answers.remove(name);
                        self.forget(name);
                    }
                }
            }
            _ => self.quiet &= matches!(report, Event::Report(Report::HookDone(done)) if done.ok),
        }
        Ok(())
    }

    fn findings(&self) -> impl Iterator<Item = ((&'a str, u32), &'a Finding)> {
        let reviews = self.part.answers.iter().filter_map(|(name, answer)| match &answer.said {
            AnswerBody::Review(review) => Some((*name, review)),
            AnswerBody::Prose | AnswerBody::Proposal(_) => None,
        });
        reviews
            .flat_map(|(name, review)| (0..).zip(&review.findings).map(move |(n, found)| ((name, n), found)))
    }

    fn tries(&mut self, start: &'a EvidenceStart) -> Kept {
        let (opened, policy) = (self.opened()?, &self.request.ok_or("run.start")?.config.review);
        holds(opened.verify, "nothing is run that nobody allowed")?;
        let heard = |name: &&str| self.part.answers.contains_key(name) || self.part.skipped.contains(name);
        holds(self.seats().iter().all(heard), "reviewers are heard before anything is run")?;
        holds(self.open.len() == 1, "one reproduction at a time, and nobody is out meanwhile")?;
        let key = (start.archetype.as_str(), start.index);
        let found = self.findings().find(|(other, _)| *other == key).ok_or("a reproduction of a finding")?.1;
        holds(found.reproduction.as_ref() == Some(&start.reproduction), "what is run is what was attached")?;
        holds(!self.part.tried.contains_key(&key), "each reproduction is run once")?;
        holds(start.change == opened.change.commit, "it is run on the change")?;
        let base = &self.request.ok_or("run.start")?.base.commit;
        let wanted = start.reproduction.regression.then_some(base);
        holds(start.base.as_ref() == wanted, "a regression is run on the base too, and nothing else")?;
        holds(self.part.tried.len() < policy.trials as usize, "so many reproductions and no more")?;
        self.part.trials += 1;
        Ok(())
    }

    fn is_refuted(&self, key: (&str, u32)) -> bool {
        self.part.tried.get(&key).is_some_and(|done| done.change.exit == Some(0))
    }

    fn is_accepted(&self, finding: &Finding, sign: Option<Sign>) -> bool {
        let (rule, anchor) = sign
            .map_or((finding.category.as_str(), finding.anchor.as_str()), |sign| (sign.name(), sign.name()));
        let known = fingerprint(rule, &finding.file, anchor, &finding.description);
        self.opened.is_some_and(|opened| opened.accepted.iter().any(|one| one.fingerprint == known))
    }

    fn concludes(&mut self, boundary: &'a CycleBoundary) -> Kept {
        let parts = u32::try_from(self.opened()?.parts.len()).unwrap_or(0);
        holds(boundary.cycle == self.part.number, "a boundary is of its part")?;
        holds(self.part.boundary.is_none(), "a part is looked at once to its end")?;
        holds(self.part.set_aside.is_empty(), "no part is concluded while somebody has to answer anew")?;
        let heard = |name: &&str| self.part.answers.contains_key(name) || self.part.skipped.contains(name);
        holds(self.seats().iter().all(heard), "every reviewer is heard or excused")?;
        holds(!self.part.answers.is_empty(), "what nobody looked at is not concluded")?;
        let policy = &self.request.ok_or("run.start")?.config.review;
        let (mut graver, mut open_trials) = ([0_u32; 3], 0);
        for (key, finding) in self.findings() {
            let untried = finding.reproduction.is_some() && !self.part.tried.contains_key(&key);
            open_trials += u32::from(untried);
            let advice = self.part.downgraded.contains(&key) || self.is_refuted(key);
            let severity = if advice { Severity::Info } else { finding.severity };
            if !self.is_accepted(finding, None) {
                graver[severity as usize] += 1;
            }
        }
        for (sign, finding) in &self.part.raised {
            if !self.is_accepted(finding, Some(*sign)) {
                graver[finding.severity as usize] += 1;
            }
        }
        let left = self.part.kept.iter().chain(&self.part.asked_about);
        let (all, sure) = (left.clone().count(), left.filter(|(.., sure)| *sure).count());
        let critical = boundary.critical.checked_sub(graver[2]).map(|more| more as usize);
        // Which findings of a replaced author are accepted, or repeated, is a matter of words.
        let kept = critical.is_some_and(|more| {
            more <= all && (more >= sure || !self.opened.is_none_or(|o| o.accepted.is_empty()))
        });
        holds(
            [boundary.info, boundary.warning] == graver[..2] && kept,
            "what counts is counted; refuted and accepted findings don't",
        )?;
        let all = open_trials == 0 || self.part.tried.len() >= policy.trials as usize;
        holds(!self.opened()?.verify || all, "every reproduction is run, up to the limit")?;
        let last = boundary.cycle == parts;
        let wanted = if last { NextAction::Stop } else { NextAction::CycleBack };
        holds(boundary.next_action == wanted, "part after part, then the end")?;
        let signs = if boundary.cycle == 1 { &self.opened()?.change.signs.seen[..] } else { &[] };
        let raised = |sign| self.part.raised.iter().any(|(raised, _)| *raised == sign);
        holds(signs.iter().all(|seen| raised(seen.sign)), "what the program sees is raised, once")?;
        holds(boundary.cycle == 1 || self.part.raised.is_empty(), "what the program sees is raised, once")?;
        self.against += boundary.critical + boundary.warning;
        self.part.boundary = Some(boundary);
        Ok(())
    }

    fn ends(&mut self, complete: &'a RunComplete) -> Kept {
        self.ended = true;
        holds(complete.merged_oid.is_none() && complete.status != RunStatus::Merged, "nothing lands")?;
        let reviewed = complete.status == RunStatus::Reviewed;
        let whole = self.part.boundary.is_some_and(|boundary| boundary.next_action == NextAction::Stop);
        holds(!reviewed || whole, "a review is done when every part was looked at")?;
        holds(!self.quiet || reviewed, "a review in which nothing goes wrong ends as one")?;
        if reviewed {
            let wanted = if self.against == 0 { Reason::Approved } else { Reason::FindingsOpen };
            holds(complete.reason == wanted, "the end says whether anything stands against the change")?;
            holds(complete.exit_code == 0, "a review that was done is done")?;
            let told = self.missed.iter().all(|name| complete.detail.contains(name));
            holds(told, "who was not heard in some part is said")?;
            let unresolved =
                complete.unresolved.iter().filter(|found| found.severity > Severity::Info).count();
            holds((unresolved > 0) == (self.against > 0), "the end lists what stands against the change")?;
        }
        Ok(())
    }
}

fn found_by(answer: &Answer) -> &[Finding] {
    match &answer.said {
        AnswerBody::Review(review) => &review.findings,
        AnswerBody::Prose | AnswerBody::Proposal(_) => &[],
    }
}

fn asks_nothing(answer: &Answer) -> bool {
    !matches!(answer.status, Status::NeedsContext | Status::Blocked)
}
