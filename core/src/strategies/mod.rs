//! The ways of working: a folder for each, with its decisions, what it remembers, how it is shown, and its own rules.
//!
//! `StrategyRules` lists every point where they differ. The steps they share, the fold and the driver ask there; none
//! of them knows which strategies there are. Adding one is a folder and a line in `of`.

pub mod agent_loop;
mod pdca;
mod pipeline;
pub mod review;

use std::borrow::Cow;

use crate::event::{AgentFailed, Conclusion, CycleBoundary, Event, Failure, NextAction, Tracked};
use crate::model::{ExitWhen, Outcome, Participant, Phase, Reason, Role, RunStatus, Seq, Strategy, Workflow};
use crate::projections::view::{self, ProgressLine, Tone};
use crate::run::{Cycle, Run};
use crate::steps::{check, land, send, settle};

/// The rules of a strategy. The defaults are what a plain run does.
pub(crate) trait StrategyRules: StrategyView + Sync {
    /// The key of the participants in the first line.
    fn seats_key(&self, workflow: Workflow) -> &'static str;

    /// Everybody who takes part if the first line does not say so.
    fn team(&self, workflow: Workflow) -> Vec<Participant>;

    /// Everybody who takes part now.
    fn seats<'r>(&self, run: &'r Run) -> Cow<'r, [Participant]> {
        let workflow = run.current_workflow();
        let frozen = run.request.as_ref().and_then(|request| request.seats.get(self.seats_key(workflow)));
        let mut seats = frozen.map_or_else(|| Cow::Owned(self.team(workflow)), Cow::from);
        if seats.iter().any(|seat| self.skips(run, &seat.archetype)) {
            seats.to_mut().retain(|seat| !self.skips(run, &seat.archetype));
        }
        seats
    }

    /// Takes part in the run, and not in the cycle under way.
    fn skips(&self, _: &Run, _archetype: &str) -> bool {
        false
    }

    /// The number of cycles of a new run, given that of its workflow.
    fn max_cycles(&self, _of_workflow: u32) -> u32 {
        1
    }

    /// Before the first cycle: why this strategy, and the way into the first phase.
    fn begin(&self, run: &Run) -> Vec<Conclusion>;

    /// What follows when nothing is running and nobody is asked.
    fn next(&self, run: &Run, cycle: &Cycle) -> Vec<Conclusion>;

    /// Whether the lines that open a run of this kind are all there. Without them nothing can follow.
    fn is_opened(&self, _: &Run) -> bool {
        true
    }

    /// A person may write an answer into a file and only say that it is there.
    fn answers_in_file(&self) -> bool {
        false
    }

    /// The work of a run can get into its target branch.
    fn lands(&self) -> bool {
        true
    }

    /// The test command is tried on the base commit before the first agent starts (U-10).
    fn tests_base(&self) -> bool {
        self.lands()
    }

    /// A fast run can become a standard one (A1, A3).
    fn upgrades(&self) -> bool {
        false
    }

    /// Each cycle looks at another part of the same change, so that their findings are not compared and all count.
    fn cycles_are_parts(&self) -> bool {
        false
    }

    /// An answer whose shadow could not be corrected twice is taken as it is: nobody acts upon it, so there is nothing to
    /// stop.
    fn takes_shadowed_answers(&self) -> bool {
        false
    }

    /// Reviewers run in parallel once the gatekeeper has answered.
    fn reviews_in_parallel(&self) -> bool {
        true
    }

    /// Sends or skips the reviewers that still have to answer.
    fn reviewers(
        &self,
        run: &Run,
        cycle: &Cycle,
        gatekeeper: &str,
        waiting: &[&Participant],
    ) -> Vec<Conclusion> {
        check::in_parallel(run, cycle, gatekeeper, waiting)
    }

    /// How thorough the process is, compared with a workflow.
    fn depth(&self, _: &Run) -> Workflow {
        Workflow::Fast
    }

    /// What has to be true of the findings for a change to be approved, where the strategy says so.
    fn exit_of_strategy(&self) -> Option<ExitWhen> {
        None
    }

    /// What has to be true of the findings for a change to be approved.
    fn exit(&self, run: &Run) -> ExitWhen {
        self.exit_of_strategy().unwrap_or(run.overlay().exit)
    }

    fn is_last_cycle(&self, run: &Run, cycle: &Cycle) -> bool {
        cycle.number >= run.max_cycles
    }

    /// What comes before a cycle is concluded.
    fn before_conclusion(
        &self,
        _: &Run,
        _: &Cycle,
        _approved: bool,
        _: &[Tracked],
    ) -> Option<Vec<Conclusion>> {
        None
    }

    /// The Maker of [`StrategyRules::before_conclusion`], where a crash came between the way back to Do and sending it.
    fn unsent(&self, _: &Run, _: &Cycle) -> Option<Conclusion> {
        None
    }

    /// The work of a role in a few words.
    fn work(&self, run: &Run, role: Role) -> &'static str {
        send::work(run, role)
    }

    /// How long to wait before a failed attempt is repeated, where this strategy has a rule of its own for the failure.
    fn patience(&self, _: &Run, _: Failure, _tried: u32) -> Option<Patience> {
        None
    }

    /// Whether the run can't do without a reviewer whose attempt failed.
    fn needs_reviewer(&self, run: &Run, _: &Cycle, failed: &AgentFailed) -> bool {
        failed.kind == Failure::Garbled || run.seat(Role::Gatekeeper).is_none()
    }

    /// A person agreed to the landing under way.
    fn agreed_to_land(&self, run: &Run) -> bool {
        run.landing.agreed
    }

    /// The change is in its branch.
    fn landed(&self, run: &Run) -> Vec<Conclusion> {
        land::landed_for_good(run)
    }

    /// The change can't land.
    fn not_landed(&self, run: &Run, status: RunStatus, reason: Reason, detail: String) -> Vec<Conclusion> {
        settle::finish(run, status, reason, detail)
    }

    /// The tests failed after the landing, and the merge was taken back.
    fn taken_back(&self, run: &Run, cycle: &Cycle, detail: String) -> Vec<Conclusion> {
        land::after_revert(run, cycle, detail)
    }

    /// Remembers that a cycle has begun.
    fn cycle_began(&self, _: &mut Run) {}

    /// Remembers that agents have worked for so long.
    fn worked(&self, _: &mut Run, _ms: u64) {}

    /// Takes a request to land for itself; the rest of the fold does not see it then.
    fn asked_to_land(&self, _: &mut Run, _: Seq) -> bool {
        false
    }

    /// The same for a re-entry.
    fn reentered(&self, _: &mut Run) -> bool {
        false
    }

    /// Whether a run can go back to the end of a phase.
    fn can_roll_back(&self) -> bool {
        true
    }

    /// Whether a person's "go on" can still change something.
    fn can_continue(&self, _: &Run) -> bool {
        true
    }
}

/// How a run of a strategy is shown. The defaults are the words of a plain run.
pub(crate) trait StrategyView {
    /// The word for a run of this kind in its header.
    fn title(&self) -> &'static str;

    /// The line below the header.
    fn subtitle(&self, run: &Run) -> String;

    /// The short name of a run of this kind, given the name of its workflow.
    fn label(&self, workflow: &'static str) -> &'static str;

    /// The name of a phase before each line.
    fn phase(&self, phase: Phase, _archetype: &str) -> &'static str {
        match phase {
            Phase::Plan => "Plan",
            Phase::Do => "Do",
            Phase::Check => "Check",
            Phase::Act => "Act",
        }
    }

    /// Above the lines of a cycle that is not the first.
    fn cycle_heading(&self, number: u32, all: u32) -> String {
        format!("Cycle {number} of {all}")
    }

    /// What the end of a cycle is called; nothing, if other lines say it.
    fn boundary(&self, end: &CycleBoundary) -> Option<(&'static str, Tone)> {
        Some(match end.next_action {
            NextAction::Merge if end.passed_over.is_empty() => ("All approved", Tone::Good),
            NextAction::Merge => ("Nothing blocks", Tone::Caution),
            NextAction::CycleBack => ("Findings open, one more cycle", Tone::Caution),
            NextAction::Stop => ("Stop", Tone::Bad),
        })
    }

    /// The line of an event that only this strategy has.
    fn line(&self, _: &Event, _tag: &str) -> Option<ProgressLine> {
        None
    }

    /// What a person can type next, most likely first.
    fn next_steps(&self, run_id: &str, run: &Run, outcome: &Outcome) -> Vec<(String, &'static str)> {
        view::plain_next_steps(run_id, run, outcome)
    }

    /// Nobody has to do anything about it any more, whatever its outcome says.
    fn is_closed(&self, _: &Run) -> bool {
        false
    }
}

/// What a strategy does about a failure for which it has a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    RetryAfter(u64),
    Exhausted,
}

/// The rules of a strategy. The only place that lists them all.
pub(crate) fn of(strategy: Strategy) -> &'static dyn StrategyRules {
    match strategy {
        Strategy::Pdca => &pdca::Pdca,
        Strategy::Pipeline => &pipeline::Pipeline,
        Strategy::Review => &review::ReviewStrategy,
        Strategy::Loop => &agent_loop::LoopStrategy,
    }
}

impl Run {
    pub(crate) fn rules(&self) -> &'static dyn StrategyRules {
        of(self.strategy())
    }

    /// Whether the lines that open this run are all there.
    pub fn is_opened(&self) -> bool {
        self.rules().is_opened(self)
    }

    /// Whether its work can get into its target branch.
    pub fn lands(&self) -> bool {
        self.rules().lands()
    }

    /// A person may write the answer to an open question into a file and only say that it is there.
    pub fn answers_in_file(&self) -> bool {
        self.rules().answers_in_file()
    }
}

/// The key under which the first line of a run has its participants.
pub fn seats_key(strategy: Strategy, workflow: Workflow) -> &'static str {
    of(strategy).seats_key(workflow)
}

/// The number of cycles of a new run, given that of its workflow.
pub fn max_cycles(strategy: Strategy, of_workflow: u32) -> u32 {
    of(strategy).max_cycles(of_workflow)
}
