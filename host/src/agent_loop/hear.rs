//! What a person wrote into the cycle file, as a report. It is looked for while a loop waits for a person.

use archeflow_core::event::{LoopHeard, QuestionKind};
use archeflow_core::model::Seq;
use archeflow_core::run::Run;
use archeflow_core::strategies::agent_loop::signal;

use super::cycle::{CycleFile, Error, continues};
use crate::store::files;
use crate::world::World;

/// What of the text goes into the log; all of it stays in the file.
pub const TEXT_AT_MOST: usize = 4_000;

/// The question of a loop that is open.
pub fn question(run: &Run) -> Option<(Seq, QuestionKind)> {
    run.agent_loop.as_ref()?;
    let (seq, asked) = run.question()?;
    is_of_loop(asked.kind).then_some((seq, asked.kind))
}

fn is_of_loop(kind: QuestionKind) -> bool {
    match kind {
        QuestionKind::GoalQuestions
        | QuestionKind::PlanApproval
        | QuestionKind::StepApproval
        | QuestionKind::LoopPaused
        | QuestionKind::LoopEdited => true,
        QuestionKind::NeedsContext
        | QuestionKind::LowConfidence
        | QuestionKind::Merge
        | QuestionKind::DryRun
        | QuestionKind::RedBase
        | QuestionKind::Shadow
        | QuestionKind::Rejection => false,
    }
}

/// A block after our last mark that was not read yet, as the answer to the open question. A file with an edited past
/// is not read: that is reported when we append.
pub fn from_file(world: &World, run: &Run) -> Result<Option<LoopHeard>, Error> {
    let (Some((start_seq, _)), Some(agent_loop)) = (question(run), &run.agent_loop) else { return Ok(None) };
    let seen = CycleFile::new(world.places.root(), &world.state).look()?;
    if seen.text.trim().is_empty() {
        // It is gone, and nobody wrote in it; it is rendered again with the next block (L-06).
        return Ok(None);
    }
    // What was rendered again has another seal where people had written in it; that is seen when we append.
    continues(&seen, &agent_loop.seal)?;
    let fresh = &seen.past.fresh;
    let digest = files::digest(fresh.as_bytes());
    if signal::read(fresh).last().is_none() || digest == agent_loop.heard {
        return Ok(None);
    }
    let spoken = signal::spoken(fresh, &run.policy().looping);
    let text: String = fresh.trim().chars().take(TEXT_AT_MOST).collect();
    let (start_seq, spoken) = (Some(start_seq), Some(Box::new(spoken)));
    Ok(Some(LoopHeard { start_seq, spoken, text, digest, ..LoopHeard::default() }))
}
