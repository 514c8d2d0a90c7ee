//! The effect of a request in the current state of the run.

use archeflow_core::event::{QuestionAnswered, Report, RunPaused, RunResumed};
use archeflow_core::run::Run;
use serde_json::{Value, json};

use super::{ControlRefusal, Request};

pub(crate) enum Effect {
    /// A line for the journal.
    Write(Report),
    Stop,
    /// Nothing changes; this is the reply.
    Reply(Value),
}

pub(crate) fn effect(run: &Run, run_id: &str, request: &Request) -> Result<Effect, ControlRefusal> {
    if run.outcome.is_some() && *request != Request::Status {
        return Err(ControlRefusal::Ended);
    }
    match request {
        Request::Answer { text, question, by } => {
            let (start_seq, _) = run.question().ok_or(ControlRefusal::NothingAsked)?;
            if question.is_some_and(|meant| meant != start_seq) {
                return Err(ControlRefusal::OtherQuestion);
            }
            let by = by.name().to_owned();
            Ok(Effect::Write(QuestionAnswered { start_seq, text: text.clone(), by }.into()))
        }
        Request::Stop => Ok(Effect::Stop),
        Request::Pause { .. } if run.paused.is_some() => Err(ControlRefusal::AlreadyPaused),
        Request::Pause { by } => Ok(Effect::Write(RunPaused { by: by.name().to_owned() }.into())),
        Request::Resume { .. } if run.paused.is_none() => Err(ControlRefusal::NotPaused),
        Request::Resume { by } => Ok(Effect::Write(RunResumed { by: by.name().to_owned() }.into())),
        Request::Status => Ok(Effect::Reply(status(run, run_id))),
    }
}

fn status(run: &Run, run_id: &str) -> Value {
    let question = run.question().map(|(seq, asked)| {
        json!({
            "seq": seq, "kind": asked.kind, "archetype": asked.archetype, "question": asked.question,
            "details": asked.details,
        })
    });
    let agents: Vec<&str> = run.open_agents().map(|(_, start)| start.archetype.as_str()).collect();
    json!({
        "run_id": run_id,
        "pid": std::process::id(),
        "paused": run.paused.is_some(),
        "question": question,
        "cycle": run.number(),
        "phase": run.cycle().map(|cycle| cycle.phase.name()),
        "agents": agents,
    })
}
