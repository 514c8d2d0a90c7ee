//! The prompt of an agent in a loop, and how its answer is read. The core decides what the prompt contains; the answer is
//! text, without findings.

use archeflow_core::event::AgentStart;
use archeflow_core::guide;
use archeflow_core::model::{Answer, LoopPolicy, Speaker};
use archeflow_core::run::Run;
use archeflow_core::strategies::agent_loop::brief::{self, Material};
use archeflow_core::strategies::agent_loop::signal::{self, ActorStep};

use super::{battery::added_text, diet};
use crate::executors::context::{artifact_text, conventions, diff_between, left_out};
use crate::executors::{DeskError, WantedSigns, change_of};
use crate::git::ObjectId;
use crate::nonce::nonce;
use crate::strategies::{Conversation, MeasureFault, OwnBrief};
use crate::world::World;

const ABSENT: &str = "Files that the plan points at and that are not there";
/// What of a step's added lines is looked through for forbidden commands.
const ADDED_AT_MOST: usize = 4_000_000;

/// Whose answer it is, and what a step of it is measured by.
#[derive(Debug)]
struct LoopSeat {
    speaker: Speaker,
    step_base: String,
    binary_bytes: u64,
    policy: LoopPolicy,
    /// The files an Actor's plan names.
    planned: Vec<String>,
}

/// Nothing, if the run is no loop.
pub(crate) fn open(world: &World, run: &Run, start: &AgentStart) -> Result<Option<OwnBrief>, DeskError> {
    if run.agent_loop.is_none() {
        return Ok(None);
    }
    let mut sections = Vec::new();
    for shown in brief::shown(run, start) {
        if let Some(text) = material(world, start, &shown.material)? {
            sections.push((shown.heading, text));
        }
    }
    let conventions = conventions(world, run)?;
    if !conventions.is_empty() {
        sections.push(("Conventions".to_owned(), guide::CONVENTIONS.to_owned()));
        sections.extend(conventions);
    }
    if let Some(list) = left_out(world, start)? {
        sections.push((guide::LEFT_OUT.to_owned(), format!("{}\n\n{list}", guide::left_out(start.role))));
    }
    sections.extend(absent(world, run, start)?.map(|list| (ABSENT.to_owned(), list)));
    let seat = LoopSeat {
        speaker: brief::speaker(start.role),
        step_base: run.step_base(),
        binary_bytes: run.policy().raised.binary_bytes,
        policy: run.policy().looping.clone(),
        planned: planned(world, run, start)?,
    };
    let text = brief::brief(run, start, &world.run_id, &nonce(), &sections);
    Ok(Some(OwnBrief { text, conversation: Box::new(seat) }))
}

/// PJ-33: the Actor reads which files its plan points at that are not there.
fn absent(world: &World, run: &Run, start: &AgentStart) -> Result<Option<String>, DeskError> {
    let plan = run.agent_loop.as_ref().and_then(|agent_loop| agent_loop.plan.as_ref());
    let plan = plan.filter(|_| brief::speaker(start.role) == Speaker::Actor);
    let (Some(plan), Ok(commit)) = (plan, ObjectId::parse(start.at.as_bytes())) else { return Ok(None) };
    let absent = diet::absent(&world.repo, &commit, &artifact_text(world, &plan.artifact)?)?;
    let list: Vec<String> = absent.iter().map(|path| format!("- `{path}`")).collect();
    Ok((!list.is_empty()).then(|| list.join("\n")))
}

/// L-09: what the step at hand was to change, as far as its plan names files.
fn planned(world: &World, run: &Run, start: &AgentStart) -> Result<Vec<String>, DeskError> {
    let plan = run.agent_loop.as_ref().and_then(|agent_loop| agent_loop.plan.as_ref());
    match plan.filter(|_| brief::speaker(start.role) == Speaker::Actor) {
        Some(plan) => Ok(diet::named(&artifact_text(world, &plan.artifact)?)),
        None => Ok(Vec::new()),
    }
}

fn material(world: &World, start: &AgentStart, material: &Material) -> Result<Option<String>, DeskError> {
    match material {
        Material::Text(text) => Ok(Some(text.clone())),
        Material::Artifact(artifact) => artifact_text(world, artifact).map(Some),
        Material::Diff { from, to } => diff_between(world, from, to),
        Material::Document(name) => match ObjectId::parse(start.at.as_bytes()) {
            Ok(commit) => Ok(diet::text(&world.repo, &commit, name)?),
            Err(_) => Ok(None),
        },
    }
}

impl Conversation for LoopSeat {
    fn read(&self, said: &[u8]) -> Answer {
        signal::answer(self.speaker, said, None, &self.policy)
    }

    /// With what a step really did (PJ-30, PJ-34).
    fn measure(&self, world: &World, said: &[u8], commit: &str) -> Result<Answer, MeasureFault> {
        if self.speaker != Speaker::Actor {
            return Ok(self.read(said));
        }
        let (base, commit) = (&oid(&self.step_base)?, &oid(commit)?);
        let wanted = WantedSigns { binary_bytes: self.binary_bytes, test_command: None };
        let step = change_of(&world.repo, base, commit, "", wanted)?;
        let added = added_text(&world.repo, base, commit, ADDED_AT_MOST)?;
        let planned = &self.planned;
        let (files, files_left_out) = (&step.files, step.files_left_out);
        let step = ActorStep { files, files_left_out, added: &added, planned };
        Ok(signal::answer(self.speaker, said, Some(step), &self.policy))
    }

    /// PJ-33: a plan may point at what is not there, and the agent that acts on it should know.
    fn remark(&self, world: &World, said: &[u8]) -> Option<String> {
        if self.speaker != Speaker::Planner {
            return None;
        }
        let commit = oid(&self.step_base).ok()?;
        let absent = diet::absent(&world.repo, &commit, &String::from_utf8_lossy(said)).ok()?;
        (!absent.is_empty()).then(|| format!("it points at files that are not there: {}", absent.join(", ")))
    }
}

fn oid(text: &str) -> Result<ObjectId, MeasureFault> {
    ObjectId::parse(text.as_bytes()).map_err(|_| MeasureFault::Oid(text.to_owned()))
}
