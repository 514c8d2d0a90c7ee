//! Orders of a recorded run and their results: when a recorded result is valid for an order that another policy gives.
//!
//! Two orders are the same if an executor could not tell them apart: the same archetype for the same purpose
//! in the same cycle, with the same prompt. The prompt is not in the log, but everything it was made from is,
//! by digest or in words; so it is compared without a file being opened.

use std::collections::BTreeSet;

use crate::event::{
    AgentComplete, AgentFailed, AgentStart, AgentTimeout, Entry, Event, Failure, HookStart, MergeStart,
    Order, PreflightStart, QuestionAsked, Report, Tested, TestsDone, TestsStart,
};
use crate::feedback;
use crate::model::{Destination, Purpose, Role, Seq};
use crate::projections::view::seconds;
use crate::run::{Answered, Clarification, Run};

/// An order of the recorded run.
#[derive(Debug)]
pub(super) struct Recorded {
    pub(super) seq: Seq,
    pub(super) asked: Asked,
    /// Position of its answer in the log.
    pub(super) answer: Option<usize>,
    /// An order of the other course is answered by what answered this one.
    pub(super) taken: bool,
}

/// An order with everything its performer was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) order: Order,
    told: Option<Box<BriefInputs>>,
}

/// What an agent's brief is made from, beside the order itself.
#[derive(Debug, Clone, PartialEq, Eq)]
struct BriefInputs {
    task: String,
    research: Vec<String>,
    proposal: Option<String>,
    summary: Option<String>,
    feedback: Option<String>,
    clarifications: Vec<Clarification>,
    reflects_first: bool,
    useless_lessons: BTreeSet<String>,
    shortened: bool,
    prompt_percent: u32,
    window: u64,
}

impl Asked {
    /// An order that `run` is about to write down.
    pub(super) fn of(run: &Run, order: &Order) -> Asked {
        let start = if let Order::AgentStart(start) = order { Some(start) } else { None };
        Asked { order: order.clone(), told: start.map(|start| Box::new(BriefInputs::of(run, start))) }
    }

    /// Whether an executor could not tell the two apart.
    pub(super) fn is_same(&self, other: &Asked) -> bool {
        self.differs_in(other).is_none()
    }

    /// What differs, in words; `None` when nothing does that matters.
    pub(super) fn differs_in(&self, other: &Asked) -> Option<&'static str> {
        let differs = match &self.order {
            Order::AgentStart(one) => other.order.body::<AgentStart>().map(|two| {
                agents_differ(one, two).or_else(|| {
                    let (told, theirs) = (self.told.as_ref()?, other.told.as_ref()?);
                    told.differs_in(theirs, one.role)
                })
            }),
            Order::PreflightStart(one) => other.order.body::<PreflightStart>().map(|two| {
                let same = (&one.commit, &one.setup_command, &one.test_command)
                    == (&two.commit, &two.setup_command, &two.test_command);
                (!same).then_some("other commands would have been tried on the base commit")
            }),
            Order::TestsStart(one) => other.order.body::<TestsStart>().map(|two| {
                let same = (&one.commit, &one.tree, &one.command, one.post_merge)
                    == (&two.commit, &two.tree, &two.command, two.post_merge);
                (!same).then_some("other tests would have run, or on another tree")
            }),
            Order::MergeStart(one) => other.order.body::<MergeStart>().map(|two| {
                let same = (&one.work, &one.base, &one.target, one.strategy, &one.before, &one.with)
                    == (&two.work, &two.base, &two.target, two.strategy, &two.before, &two.with);
                (!same).then_some("another merge would have been built")
            }),
            Order::HookStart(one) => other.order.body::<HookStart>().map(|two| {
                let same = (one.point, &one.command, &one.env) == (two.point, &two.command, &two.env);
                (!same).then_some("another hook would have run")
            }),
            Order::QuestionAsked(one) => other.order.body::<QuestionAsked>().map(|two| {
                let same = (one.kind, &one.archetype, &one.question, &one.details)
                    == (two.kind, &two.archetype, &two.question, &two.details);
                (!same).then_some("a person would have been asked something else, or shown other facts")
            }),
            Order::EvidenceStart(_)
            | Order::LoopAppend(_)
            | Order::BatteryStart(_)
            | Order::LoopArchive(_)
            | Order::MergeIntent(_)
            | Order::RevertStart(_)
            | Order::RevertIntent(_) => (self.order == other.order).then_some(None),
        };
        differs.unwrap_or(Some("it would have been another step"))
    }

    /// Whether the two are about the same thing, so that it is worth saying what differs.
    pub(super) fn is_about_the_same(&self, other: &Asked) -> bool {
        let (one, two) = (&self.order, &other.order);
        let (agents, questions) = (
            one.body::<AgentStart>().zip(two.body::<AgentStart>()),
            one.body::<QuestionAsked>().zip(two.body::<QuestionAsked>()),
        );
        one.name() == two.name()
            && agents.is_none_or(|(one, two)| {
                (&one.archetype, one.cycle, one.purpose) == (&two.archetype, two.cycle, two.purpose)
            })
            && questions.is_none_or(|(one, two)| one.kind == two.kind)
    }
}

/// Time limits are no part of this: they matter only to an attempt that would have run into them.
fn agents_differ(one: &AgentStart, two: &AgentStart) -> Option<&'static str> {
    let checks = [
        ((&one.archetype, one.role) == (&two.archetype, two.role), "another agent would have been started"),
        (one.cycle == two.cycle, "it would have been sent in another cycle"),
        (one.purpose == two.purpose, "it would have been sent for another purpose"),
        (one.agent == two.agent, "another program would have been used"),
        (one.model == two.model, "it would have had another tier"),
        (one.at == two.at, "it would have looked at another commit"),
        (one.note == two.note, "its instructions would have differed"),
        (one.earlier == two.earlier, "it would have been shown another earlier answer"),
        (one.resumes == two.resumes, "it would have resumed another session"),
        (one.wait_ms == two.wait_ms, "it would have been asked again after another wait"),
    ];
    checks.into_iter().find(|(same, _)| !same).map(|(_, what)| what)
}

impl BriefInputs {
    /// As wide as a role may look; a persona that sees less makes no difference that was not there.
    fn of(run: &Run, start: &AgentStart) -> BriefInputs {
        let cycle = run.cycle();
        let digest = |answered: &Answered| answered.artifact.digest.clone();
        let of = |role: Role| cycle.and_then(|cycle| cycle.answer_of(role)).map(digest);
        let research = start.purpose == Purpose::Research;
        let (sees_research, sees_summary) =
            (start.role == Role::Creator, start.role == Role::Reviewer && !research);
        let sees_proposal = research || !matches!(start.role, Role::Explorer | Role::Creator);
        let mini = run.cycles.iter().rev().take(2).filter_map(|cycle| cycle.mini_explorer.as_ref());
        let feedback = match start.role {
            Role::Creator => feedback::for_role(run, Destination::Creator),
            Role::Maker => feedback::for_role(run, Destination::Maker),
            Role::Explorer | Role::Gatekeeper | Role::Reviewer => None,
        };
        let failed = cycle.and_then(|cycle| cycle.last_failure.get(&start.archetype));
        let heard = |said: &&Clarification| said.archetype.is_empty() || said.archetype == start.archetype;
        let price = run.policy().costs.prices.get(&start.model);
        BriefInputs {
            task: run.task(),
            research: match sees_research {
                true => of(Role::Explorer).into_iter().chain(mini.map(|mini| digest(mini))).collect(),
                false => Vec::new(),
            },
            proposal: of(Role::Creator).filter(|_| sees_proposal),
            summary: of(Role::Maker).filter(|_| sees_summary),
            feedback,
            clarifications: run.clarifications.iter().filter(heard).cloned().collect(),
            reflects_first: start.role == Role::Creator && run.reflects_first(),
            useless_lessons: run.corrections.ineffective.clone(),
            shortened: failed.is_some_and(|failed| failed.kind == Failure::ContextTooLong),
            prompt_percent: run.policy().boundaries.prompt_percent,
            window: price.map_or(0, |price| price.context_window),
        }
    }

    fn differs_in(&self, other: &BriefInputs, role: Role) -> Option<&'static str> {
        let feedback = match role {
            Role::Maker => "the Maker would have got other feedback",
            Role::Explorer | Role::Creator | Role::Gatekeeper | Role::Reviewer => {
                "the Creator would have got other feedback"
            }
        };
        let checks = [
            (self.task == other.task, "the task would have been another"),
            (self.research == other.research, "it would have seen other research"),
            (self.proposal == other.proposal, "it would have seen another proposal"),
            (self.summary == other.summary, "it would have seen another summary of the work"),
            (self.feedback == other.feedback, feedback),
            (self.clarifications == other.clarifications, "people would have answered differently"),
            (
                self.reflects_first == other.reflects_first,
                "it would have been asked to reflect first, or not",
            ),
            (self.useless_lessons == other.useless_lessons, "it would have been given other lessons"),
            (self.shortened == other.shortened, "its brief would have been shortened, or not"),
            (self.prompt_percent == other.prompt_percent, "its brief might have been shortened"),
            (self.window == other.window, "its brief might have been shortened"),
        ];
        checks.into_iter().find(|(same, _)| !same).map(|(_, what)| what)
    }
}

/// The orders of a log, each with the position of its answer.
pub(super) fn recorded(log: &[Entry]) -> Vec<Recorded> {
    let mut orders: Vec<Recorded> = Vec::new();
    let mut run = Run::default();
    for (index, entry) in log.iter().enumerate() {
        if let Event::Order(order) = &entry.event {
            let asked = Asked::of(&run, order);
            orders.push(Recorded { seq: entry.seq, asked, answer: None, taken: false });
        }
        if let Some(order) = entry.event.answers()
            && let Ok(at) = orders.binary_search_by_key(&order, |recorded| recorded.seq)
            && let Some(recorded) = orders.get_mut(at)
        {
            // A second answer came too late and was not taken.
            recorded.answer = recorded.answer.or(Some(index));
        }
        run.apply(entry);
    }
    orders
}

/// Whether the limits of `order` would have let happen what was recorded under those of `was`; else why not.
pub(super) fn out_of_time(was: &Order, order: &Order, report: &Report) -> Option<String> {
    if let Some((was, now)) = was.body::<AgentStart>().zip(order.body::<AgentStart>()) {
        let ended = report.body::<AgentComplete>().map(|done| done.duration_ms);
        let ended = ended.or_else(|| report.body::<AgentFailed>().map(|failed| failed.duration_ms));
        let late = ended.and_then(|duration_ms| beyond(was, now, duration_ms));
        return late.or_else(|| longer(was, now, report.body::<AgentTimeout>()?));
    }
    let (was, now) = was.body::<TestsStart>().zip(order.body::<TestsStart>())?;
    let done = report.body::<TestsDone>()?;
    if done.result == Tested::TimedOut {
        return (now.limit_ms > was.limit_ms).then(|| "the tests would have had more time".to_owned());
    }
    let limit = seconds(now.limit_ms);
    (done.duration_ms > now.limit_ms).then(|| format!("the tests would have been stopped after {limit}"))
}

/// How long an agent was silent is not in the log, only that it was not longer than allowed.
fn beyond(was: &AgentStart, now: &AgentStart, duration_ms: u64) -> Option<String> {
    let name = &now.archetype;
    if duration_ms > now.total_ms {
        let (took, limit) = (seconds(duration_ms), seconds(now.total_ms));
        return Some(format!("the {name} took {took} and would have been stopped after {limit}"));
    }
    (now.silence_ms < was.silence_ms && duration_ms > now.silence_ms)
        .then(|| format!("the {name} might have been silent for longer than {}", seconds(now.silence_ms)))
}

fn longer(was: &AgentStart, now: &AgentStart, failed: &AgentFailed) -> Option<String> {
    let more = if failed.kind == Failure::Silence {
        now.silence_ms > was.silence_ms
    } else {
        now.total_ms > was.total_ms
    };
    more.then(|| format!("the {} would have had more time", now.archetype))
}
