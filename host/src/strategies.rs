//! Where a strategy does things its own way: one line for each hook. The driver and the executors ask here.

use archeflow_core::event::{AgentStart, Report};
use archeflow_core::model::Answer;
use archeflow_core::run::Run;

use crate::agent_loop;
use crate::executors::DeskError;
use crate::git::runner;
use crate::world::World;

/// A strategy that writes the briefs of its agents and reads their answers itself.
pub(crate) trait Conversation: Send {
    /// The answer by its words alone.
    fn read(&self, said: &[u8]) -> Answer;

    /// The answer together with what its author really did. `commit` is where the work is now.
    fn measure(&self, world: &World, said: &[u8], commit: &str) -> Result<Answer, MeasureFault>;

    /// Something about the answer that its readers should know.
    fn remark(&self, world: &World, said: &[u8]) -> Option<String>;
}

/// A brief that the strategy wrote, and the reader of the answer to it.
pub(crate) struct OwnBrief {
    pub(crate) text: String,
    pub(crate) conversation: Box<dyn Conversation>,
}

/// Why it is not known what an agent did.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MeasureFault {
    #[error("git: {0}")]
    Git(#[from] runner::Error),
    #[error("'{0}' is not an object name")]
    Oid(String),
}

/// The brief of an agent and the reader of its answer, if the strategy has its own.
pub(crate) fn conversation(
    world: &World,
    run: &Run,
    start: &AgentStart,
) -> Result<Option<OwnBrief>, DeskError> {
    agent_loop::conversation::open(world, run, start)
}

/// What a person wrote into a file as the answer to the open question, or why it can't be read.
pub(crate) fn answer_in_file(world: &World, run: &Run) -> Result<Option<Report>, String> {
    let heard = agent_loop::hear::from_file(world, run).map_err(|error| error.to_string())?;
    Ok(heard.map(Report::from))
}
