//! `decide`: the person decides, never the model. The tool has no argument for an answer. The client asks the person, by a
//! request of ours in the older protocol and by a result that wants input in the newer one; a client that can't ask is told
//! what the person has to type.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use archeflow_core::event::QuestionKind;
use archeflow_core::projections::view::capital;
use archeflow_core::text::{short_line, short_text};
use archeflow_host::control::Requester;
use archeflow_host::detached::Detached;
use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationSchema, InputRequest, InputRequiredResult, ProtocolVersion, ServerRequest,
};
use rmcp::service::{PeerRequestOptions, RequestContext, ServiceError};
use serde_json::{Map, Value, json};

use super::tools::ToolFailure;
use super::wire::first_of;
use super::work::{Answer, Desk, FOREIGN, Progress, in_thread};
use crate::offers::{self, Offer};
use crate::run_model::{RunModel, Standing};
use crate::starting::{Came, Decision, JournalWatch, LOOK, decision_options};

/// How often it is looked whether the client is still there.
const BEAT: Duration = Duration::from_secs(1);
/// Of the text that the person is shown.
const SHOWN: usize = 4_000;
/// Of the text that the person writes.
const TEXT: usize = 20_000;
/// The name of our question in the newer protocol.
const KEY: &str = "decision";

/// What came of a call.
pub(super) enum Decided {
    Answer(Answer),
    /// The client is to ask the person and call again.
    Ask(InputRequiredResult),
}

/// What the person has to decide, for a result that tells the model so.
pub(super) fn open_choices(run: &RunModel) -> Option<Value> {
    let offers = offers::decisions(run);
    (!offers.is_empty()).then(|| {
        json!({
            "question": question(run),
            "choices": offers.iter().map(listed).collect::<Vec<_>>(),
            "who": "Only the person decides. Call `decide` to put it to them, or tell them what they can type.",
        })
    })
}

fn listed(offer: &Offer) -> Value {
    json!({ "choice": offer.title, "then": offer.then, "command": offer.command })
}

fn question(run: &RunModel) -> String {
    let state = run.run();
    let text = match (state.question(), &state.outcome, run.standing()) {
        (Some((_, question)), ..) => question.question.clone(),
        (None, Some(outcome), _) => outcome.detail.clone(),
        (None, None, Standing::Paused) => "It is paused: nothing new starts.".to_owned(),
        (None, None, _) => "It was interrupted: no process drives it any more. Its work is saved.".to_owned(),
    };
    short_line(&capital(&text), 900)
}

/// Whether a change may get into the user's branch by it.
fn lands(run: &RunModel, offer: &Offer) -> bool {
    let command = offer.command.as_str();
    // In the person's own words, `land` passes over a rejection, and `approve` lands a step.
    let answer_lands = run.run().question().is_some_and(|(_, question)| match question.kind {
        QuestionKind::Merge | QuestionKind::Rejection | QuestionKind::StepApproval => true,
        QuestionKind::NeedsContext
        | QuestionKind::LowConfidence
        | QuestionKind::DryRun
        | QuestionKind::RedBase
        | QuestionKind::Shadow
        | QuestionKind::GoalQuestions
        | QuestionKind::PlanApproval
        | QuestionKind::LoopPaused
        | QuestionKind::LoopEdited => false,
    });
    command.starts_with("archeflow merge ")
        || command.starts_with("archeflow loop approve")
        || command.starts_with("archeflow continue ") && command.contains(" --accept ")
        || answer_lands && command.starts_with("archeflow answer ") && !command.ends_with(" no")
}

/// What the person is asked: the choices that may be answered here, and those that have to be typed.
struct Asked {
    message: String,
    schema: ElicitationSchema,
    here: Vec<Offer>,
    /// The line of the journal that it is about.
    at: u64,
}

enum Open {
    Nothing,
    /// No choice may be answered in a client.
    Typed(Vec<Offer>),
    Asked(Box<Asked>),
}

fn open(run: &RunModel, may_land: bool) -> Result<Open, ToolFailure> {
    let offers = offers::decisions(run);
    if let Some(damage) = &run.damage {
        let words = format!(
            "the journal can't be read to its end, so nothing can be decided: {}",
            short_line(damage, 300)
        );
        return Err(ToolFailure::new(words));
    }
    if run.foreign {
        return Err(ToolFailure::new(format!(
            "{FOREIGN} The person can look at it and take it over with: archeflow trust --run {}",
            run.id
        )));
    }
    if offers.is_empty() {
        return Ok(Open::Nothing);
    }
    let (here, typed): (Vec<Offer>, Vec<Offer>) =
        offers.into_iter().partition(|offer| may_land || !lands(run, offer));
    if here.is_empty() {
        return Ok(Open::Typed(typed));
    }
    let state = run.run();
    let mut message = vec![
        format!("Task: {}", short_line(&run.story.overview.task, 300)),
        format!("Run {}, cycle {} of {}", run.id, state.number().max(1), state.max_cycles.max(1)),
        question(run),
    ];
    let details = state.question().map(|(_, question)| question.details.as_slice()).unwrap_or_default();
    message.extend(details.iter().take(10).map(|line| format!("- {}", short_line(line, 300))));
    message.push(String::new());
    let labels: Vec<String> = here.iter().enumerate().map(|(n, offer)| label(n, offer)).collect();
    for (label, offer) in labels.iter().zip(&here) {
        let cost = if offer.cost.is_empty() { String::new() } else { format!(" ({})", offer.cost) };
        message.push(format!("{label}: {}{cost}", offer.then));
    }
    for offer in &typed {
        let words = format!("{}. For this, type: {}", offer.title, offer.command);
        message.push(format!("{words} (or allow it here with mcp.decide: true in your own configuration)"));
    }
    let mut properties = Map::new();
    let choice = json!({ "type": "string", "title": "Decision", "enum": labels });
    properties.insert("choice".to_owned(), choice);
    if here.iter().any(|offer| offer.needs_text) {
        let words = numbers(&here, |offer| offer.needs_text && !offer.wants_amount);
        let amount = numbers(&here, |offer| offer.wants_amount);
        let mut what = Vec::new();
        what.extend((!words.is_empty()).then(|| format!("Your words, for choice {words}")));
        what.extend((!amount.is_empty()).then(|| format!("The new limit in dollars, for choice {amount}")));
        let text =
            json!({ "type": "string", "title": "Text", "maxLength": TEXT, "description": what.join("; ") });
        properties.insert("text".to_owned(), text);
    }
    if here.iter().any(|offer| offer.asks_again) {
        let which = numbers(&here, |offer| offer.asks_again);
        let sure = json!({
            "type": "boolean", "title": "I am sure", "default": false, "description": format!("Needed for choice {which}"),
        });
        properties.insert("sure".to_owned(), sure);
    }
    let schema = json!({ "type": "object", "properties": properties, "required": ["choice"] });
    let schema = serde_json::from_value(schema)
        .map_err(|error| ToolFailure::new(format!("the question can't be written: {error}")))?;
    let message = short_text(&message.join("\n"), SHOWN);
    Ok(Open::Asked(Box::new(Asked { message, schema, here, at: state.decision_line() })))
}

fn label(n: usize, offer: &Offer) -> String {
    format!("{}. {}", n + 1, short_line(&offer.title, 120))
}

fn numbers(offers: &[Offer], is: impl Fn(&Offer) -> bool) -> String {
    let some = offers.iter().enumerate().filter(|(_, offer)| is(offer)).map(|(n, _)| (n + 1).to_string());
    some.collect::<Vec<_>>().join(", ")
}

/// What the person has to type, for a client that can't ask or may not.
fn to_type(id: &str, question: &str, offers: &[Offer], why: &str) -> Value {
    json!({
        "run_id": id,
        "status": "person_has_to_type",
        "question": question,
        "choices": offers.iter().map(listed).collect::<Vec<_>>(),
        "tell_the_person": format!("{why} Type one of these commands in a terminal. Nothing was decided."),
    })
}

pub(super) async fn decide(
    desk: &Arc<Desk>,
    id: &str,
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Decided {
    match decided(desk, id, request, context).await {
        Ok(decided) => decided,
        Err(failure) => Decided::Answer(Err(failure)),
    }
}

async fn decided(
    desk: &Arc<Desk>,
    id: &str,
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<Decided, ToolFailure> {
    let named = id.to_owned();
    let look = move |desk: &Desk| {
        let run = desk.run(&named)?;
        let open = open(&run, desk.allowed()?.may_land)?;
        Ok::<_, ToolFailure>((question(&run), open, offers::decisions(&run)))
    };
    let (question, open, all) = in_thread(desk, look).await??;
    let asked = match open {
        Open::Asked(asked) => asked,
        Open::Nothing => {
            let words = "Nothing waits for a decision; `status` shows how the run is.";
            return Ok(answer(json!({ "run_id": id, "status": "nothing_to_decide", "detail": words })));
        }
        Open::Typed(typed) => {
            let why = "Landing is not decided in this client (mcp.decide is not set in the user's own configuration).";
            return Ok(answer(to_type(id, &question, &typed, why)));
        }
    };
    let can_ask = context
        .client_capabilities()
        .and_then(|capabilities| capabilities.elicitation)
        .is_some_and(|elicitation| elicitation.form.is_some() || elicitation.url.is_none());
    if !can_ask {
        let why = "This client can't ask you.";
        return Ok(answer(to_type(id, &question, &all, why)));
    }
    let is_new = context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
    let elicited = if is_new {
        match &request.input_responses {
            None => return Ok(Decided::Ask(input_required(id, &asked))),
            Some(given) => {
                let about = request
                    .request_state
                    .as_deref()
                    .and_then(|state| state.strip_prefix(id)?.strip_prefix('@'));
                if about.and_then(|at| at.parse().ok()) != Some(asked.at) {
                    return Ok(answer(moved(id)));
                }
                let given = given.get(KEY).cloned().unwrap_or_default();
                serde_json::from_value(given).map_err(|error| {
                    ToolFailure::new(format!(
                        "the person's answer can't be read: {}",
                        short_line(&error.to_string(), 200)
                    ))
                })?
            }
        }
    } else {
        match elicit(desk, &asked, context).await? {
            Some(elicited) => elicited,
            None => {
                return Ok(answer(not_answered(id)));
            }
        }
    };
    // In the newer era the answer is part of the call, so a cancelled call has none.
    if is_new && context.ct.is_cancelled() {
        return Ok(answer(not_answered(id)));
    }
    let named = id.to_owned();
    match in_thread(desk, move |desk| chosen(desk, &named, &asked, &elicited)).await?? {
        Chosen::Nothing(object) => Ok(answer(object)),
        Chosen::Started(started) => carried_out(desk, *started, context).await.map(answer),
    }
}

fn not_answered(id: &str) -> Value {
    json!({ "run_id": id, "status": "not_answered", "detail": "Nothing was decided." })
}

fn answer(object: Value) -> Decided {
    Decided::Answer(Ok(object))
}

fn moved(id: &str) -> Value {
    json!({
        "run_id": id, "status": "moved",
        "detail": "The run has moved since the person was asked, so nothing was done. Call `decide` again.",
    })
}

fn elicitation(asked: &Asked) -> ElicitRequest {
    ElicitRequest::new(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: asked.message.clone(),
        requested_schema: asked.schema.clone(),
    })
}

/// The client keeps the state for us. It needs no seal: all it says is which line the answer is about, and who could
/// change it could change the answer.
fn input_required(id: &str, asked: &Asked) -> InputRequiredResult {
    let requests = BTreeMap::from([(KEY.to_owned(), InputRequest::Elicitation(elicitation(asked)))]);
    InputRequiredResult::new(Some(requests), Some(format!("{id}@{}", asked.at)))
}

/// Nothing if the call was cancelled, or the client has gone, before the person answered. Of an answer and a cancellation
/// the first counts: the wire drops an answer that comes later.
async fn elicit(
    desk: &Arc<Desk>,
    asked: &Asked,
    context: &RequestContext<RoleServer>,
) -> Result<Option<ElicitResult>, ToolFailure> {
    if context.ct.is_cancelled() {
        return Ok(None);
    }
    let mut progress = Progress::to(context);
    let request = ServerRequest::ElicitRequest(elicitation(asked));
    let sent = context.peer.send_request_with_option(request, PeerRequestOptions::no_options()).await;
    let mut question = sent.map_err(|error| unasked(&error))?;
    desk.traffic.asked(&context.id, &question.id);
    let id = question.id.clone();
    let answered = loop {
        let over = tokio::time::timeout(BEAT, context.ct.cancelled());
        match first_of(&mut question.rx, over).await {
            Ok(Ok(Ok(ClientResult::ElicitResult(result)))) => break Ok(Some(result)),
            Ok(Ok(Ok(_))) => break Err(ToolFailure::new("the client gave no answer of a person")),
            Ok(Ok(Err(error))) => break Err(unasked(&error)),
            Ok(Err(_)) => break Ok(None),
            Err(_) if progress.is_for_nobody(desk) => {
                // A client that has gone reads it no more.
                let _ = question.cancel(Some("the call was cancelled".to_owned())).await;
                break Ok(None);
            }
            Err(_) => progress.still("waiting for the person").await,
        }
    };
    desk.traffic.answered(&id);
    answered
}

fn unasked(error: &ServiceError) -> ToolFailure {
    let why = if let ServiceError::McpError(error) = error {
        short_line(&error.message, 300)
    } else {
        "it gave no answer that can be read, or has gone".to_owned()
    };
    ToolFailure::new(format!("the client could not ask the person: {why}"))
}

/// What the person chose.
enum Chosen {
    /// With the result that says why nothing was done.
    Nothing(Value),
    Started(Box<StartedDecision>),
}

/// A decision whose command works.
struct StartedDecision {
    process: Detached,
    run: RunModel,
    offer: Offer,
    text: String,
    watch: JournalWatch,
}

/// Starts the command that the person chose, if the run is still where it was.
fn chosen(desk: &Desk, id: &str, asked: &Asked, elicited: &ElicitResult) -> Result<Chosen, ToolFailure> {
    let nothing = |status: &str, why: &str| {
        Ok(Chosen::Nothing(json!({ "run_id": id, "status": status, "detail": why })))
    };
    if elicited.action != ElicitationAction::Accept {
        return nothing(
            "declined",
            "The person did not decide. Nothing was done; don't ask again unless they want it.",
        );
    }
    let content = elicited.content.as_ref();
    let field = |name: &str| content.and_then(|content| content.get(name));
    let choice = field("choice").and_then(Value::as_str).unwrap_or_default();
    let offer =
        asked.here.iter().enumerate().find(|(n, offer)| label(*n, offer) == choice).map(|(_, offer)| offer);
    let Some(offer) = offer else {
        return nothing("not_understood", "The answer names none of the choices. Nothing was done.");
    };
    let text = field("text").and_then(Value::as_str).unwrap_or_default().trim().replace("\r\n", "\n");
    if offer.needs_text && (text.is_empty() || text.chars().count() > TEXT || text.contains('\0')) {
        return nothing("not_understood", "This choice needs a text of the person's. Nothing was done.");
    }
    if let Some(why) = offer.wrong_amount(&text) {
        return nothing("not_understood", &format!("{why} Nothing was done."));
    }
    if !offer.needs_text && !text.is_empty() {
        return nothing(
            "not_understood",
            "This choice passes no text on, so nothing was done. Ask the person again.",
        );
    }
    if offer.asks_again && field("sure").and_then(Value::as_bool) != Some(true) {
        return nothing("not_confirmed", "The person did not confirm this choice. Nothing was done.");
    }
    let run = desk.run(id)?;
    if run.run().decision_line() != asked.at {
        return Ok(Chosen::Nothing(moved(id)));
    }
    // It may have been forbidden while the person was asked.
    if lands(&run, offer) && !desk.allowed()?.may_land {
        return nothing(
            "not_allowed",
            "Landing is not decided in this client: mcp.decide is not set any more. Nothing was done.",
        );
    }
    let arguments = offer.arguments(&decision_options(&run, offer, Requester::Mcp, Some(asked.at)), &text);
    let process = Detached::start(&desk.program, &arguments, &desk.root, &desk.state)
        .map_err(|error| ToolFailure::new(format!("the command can't be started: {error}")))?;
    let (watch, offer) = (JournalWatch::of(&run), offer.clone());
    Ok(Chosen::Started(Box::new(StartedDecision { process, run, offer, text, watch })))
}

/// Waits until the decision is in the journal, or refused. No thread is kept by that.
async fn carried_out(
    desk: &Arc<Desk>,
    mut started: StartedDecision,
    context: &RequestContext<RoleServer>,
) -> Answer {
    let mut progress = Progress::to(context);
    loop {
        let came;
        (started, came) = in_thread(desk, move |_| {
            let StartedDecision { process, run, offer, text, watch } = &mut started;
            let decision = Decision { run, offer, text, by: Requester::Mcp, steers: false };
            let came = decision.came(process, watch);
            (started, came)
        })
        .await?;
        match came {
            None => {
                progress.still("the decision is being carried out").await;
                tokio::time::sleep(LOOK).await;
            }
            Some(Came::Begun) => {
                return Ok(json!({
                    "run_id": started.run.id, "status": "decided", "choice": started.offer.title,
                    "command": started.offer.command, "next": "Call `wait` with this run_id to see what comes of it.",
                }));
            }
            Some(Came::Refused(code)) => {
                let words = format!("nothing was done: {}", short_text(&started.process.said(), 2_000));
                return Err(ToolFailure { words, exit_code: code.map(i64::from) });
            }
        }
    }
}
