//! The questions of a loop (PJ-17): what is asked, what to look at first, and how the loop rests where nobody answers.

use crate::event::{Conclusion, LoopEdited, QuestionAsked, QuestionKind};
use crate::model::{Change, ChangedFile, FileStatus, Outcome, Reason, Role, RunStatus, Speaker, counted};
use crate::run::{AgentLoop, Run};

use super::view::{battery, step_signs, why_part};

/// PJ-01: nobody begins on a goal that says nothing.
pub(crate) fn vague(agent_loop: &AgentLoop) -> Vec<Conclusion> {
    let question =
        format!("The goal says too little to begin with: \"{}\". What is wanted?", agent_loop.goal);
    asked(QuestionKind::GoalQuestions, String::new(), question, Vec::new(), RunStatus::AwaitingAnswer)
}

/// PJ-02: the Planner asks, or a verdict can't be told.
pub(crate) fn waiting(run: &Run, agent_loop: &AgentLoop) -> Vec<Conclusion> {
    let (who, question) = match agent_loop.asked_by {
        Some(Speaker::Actor) => {
            (Role::Maker, "The Actor needs you before the step can be done. What should the Planner know?")
        }
        Some(Speaker::Judge) => {
            (Role::Gatekeeper, "The Judge's verdict can't be told. What should the Planner know?")
        }
        Some(Speaker::Human | Speaker::Planner) | None => {
            (Role::Creator, "The Planner asks before it goes on. What should it know?")
        }
    };
    let theirs = agent_loop.questions.iter().filter(|_| who != Role::Gatekeeper).cloned();
    let details = with_refusal(agent_loop, last_words(agent_loop).into_iter().chain(theirs).collect());
    let who = run.sitting(who);
    asked(QuestionKind::GoalQuestions, who, question.to_owned(), details, RunStatus::AwaitingAnswer)
}

/// PJ-51: the same agent was asked again and still can't be read.
pub(crate) fn unread(agent_loop: &AgentLoop, archetype: &str) -> Vec<Conclusion> {
    let question = format!(
        "The {archetype} was asked again, and its answer still can't be used. What should it be told? (stop ends the loop)"
    );
    let details = vec![agent_loop.refused.clone()];
    asked(QuestionKind::GoalQuestions, archetype.to_owned(), question, details, RunStatus::AwaitingAnswer)
}

/// Steps that neither pass nor come before a person would go on for ever.
pub(crate) fn alone(agent_loop: &AgentLoop, archetype: &str) -> Vec<Conclusion> {
    let rounds = agent_loop.rounds_alone;
    let question =
        format!("{rounds} rounds without a person. What should the {archetype} know? (stop ends the loop)");
    let details = last_words(agent_loop);
    asked(QuestionKind::GoalQuestions, archetype.to_owned(), question, details, RunStatus::AwaitingAnswer)
}

/// MX-02, MX-06.
pub(crate) fn gate(agent_loop: &AgentLoop) -> Vec<Conclusion> {
    let mut details = Vec::new();
    if let Some(plan) = &agent_loop.plan {
        details.push(format!("plan: {}", plan.summary));
        details.push(format!("risk: {}", plan.risk.name()));
        details.extend(plan.why.iter().map(|why| format!("asked because: {why}")));
        details.push(format!("the whole plan stands in {}", agent_loop.opened.path));
    }
    let question = "Act on this plan? Approve it, or say what to change.".to_owned();
    let details = with_refusal(agent_loop, details);
    asked(QuestionKind::PlanApproval, String::new(), question, details, RunStatus::AwaitingAnswer)
}

/// PJ-08, PJ-11: the one way into the branch.
pub(crate) fn approval(run: &Run, agent_loop: &AgentLoop) -> Vec<Conclusion> {
    let mut details = last_words(agent_loop);
    if let Some(work) = &run.work {
        let lines: u64 = work.files.iter().map(|file| u64::from(file.added) + u64::from(file.deleted)).sum();
        let (lines, files) = (counted(lines, "changed line"), counted(files_of(work), "file"));
        details.push(format!("{lines} in {files}, since the loop began"));
        if agent_loop.opened.rules > 0 {
            details.extend(looked_at(run, work));
        }
    }
    if let Some(done) = &agent_loop.battery {
        details.push(battery(done));
        details.extend(why_part(done));
    }
    if agent_loop.opened.rules > 0 {
        details.extend(step_signs(run, agent_loop).into_iter().map(|sign| format!("look at: {sign}")));
    }
    if !agent_loop.not_landed.is_empty() {
        details.push(format!("the last landing did not happen: {}", agent_loop.not_landed));
    }
    let question =
        "The Judge passes and nothing objects. Land it? Approve it, or say what to change.".to_owned();
    let details = with_refusal(agent_loop, details);
    asked(QuestionKind::StepApproval, String::new(), question, details, RunStatus::AwaitingMerge)
}

/// L-08: what would land, and how to look at it.
fn looked_at(run: &Run, work: &Change) -> Vec<String> {
    let file = |file: &ChangedFile| {
        format!("{} {} (+{} -{})", done_to(file.status), file.path, file.added, file.deleted)
    };
    let mut lines: Vec<String> = work.files.iter().take(FILES).map(file).collect();
    let more = files_of(work).saturating_sub(FILES);
    if more > 0 {
        lines.push(format!("and {}", counted(more, "more file")));
    }
    let branch = run.request.as_ref().map(|request| request.branch.as_str()).unwrap_or_default();
    lines.push(format!("see the change: git diff HEAD...{branch}"));
    lines
}

/// The most files that a question lists.
const FILES: usize = 10;

fn done_to(status: FileStatus) -> &'static str {
    match status {
        FileStatus::Added => "added",
        FileStatus::Modified => "changed",
        FileStatus::Deleted => "deleted",
        FileStatus::TypeChanged => "another type",
    }
}

fn files_of(work: &Change) -> usize {
    work.files.len() + work.files_left_out as usize
}

/// PJ-10, PJ-13.
pub(crate) fn paused(agent_loop: &AgentLoop, detail: String) -> Vec<Conclusion> {
    let question =
        "The loop is paused. Say what should be done differently and it starts again, or say stop.";
    let details = with_refusal(
        agent_loop,
        std::iter::once(detail).chain(agent_loop.blockers.iter().cloned()).collect(),
    );
    asked(QuestionKind::LoopPaused, String::new(), question.to_owned(), details, RunStatus::WiggumBreak)
}

/// PJ-32: nothing is written over somebody's edit, and nothing goes on beside it.
pub(crate) fn about_the_file(agent_loop: &AgentLoop, edited: &LoopEdited) -> Vec<Conclusion> {
    let place = match (edited.first, edited.last) {
        (0, _) => agent_loop.opened.path.clone(),
        (first, last) => format!("{}, lines {first} to {last}", agent_loop.opened.path),
    };
    let question = format!(
        "Nothing was appended to the cycle file: {} ({place}). Put it back as it was and answer \"again\", or say stop.",
        edited.what
    );
    asked(QuestionKind::LoopEdited, String::new(), question, Vec::new(), RunStatus::AwaitingAnswer)
}

fn last_words(agent_loop: &AgentLoop) -> Vec<String> {
    let last = agent_loop.notes.last().into_iter();
    last.map(|note| format!("{}: {}", note.by.map_or("the program", |by| by.name()), note.text)).collect()
}

fn with_refusal(agent_loop: &AgentLoop, mut details: Vec<String>) -> Vec<String> {
    if !agent_loop.refused.is_empty() {
        details.push(format!("your last words changed nothing: {}", agent_loop.refused));
    }
    details
}

fn asked(
    kind: QuestionKind,
    archetype: String,
    question: String,
    details: Vec<String>,
    status: RunStatus,
) -> Vec<Conclusion> {
    let reason = match kind {
        QuestionKind::StepApproval => Reason::Approved,
        QuestionKind::LoopPaused => Reason::LoopPaused,
        QuestionKind::LoopEdited => Reason::LoopEdited,
        QuestionKind::NeedsContext
        | QuestionKind::LowConfidence
        | QuestionKind::Merge
        | QuestionKind::DryRun
        | QuestionKind::RedBase
        | QuestionKind::Shadow
        | QuestionKind::Rejection
        | QuestionKind::GoalQuestions
        | QuestionKind::PlanApproval => Reason::NeedsContext,
    };
    let unanswered = Outcome { status, reason, detail: question.clone() };
    vec![QuestionAsked { kind, archetype, question, details, unanswered }.into()]
}
