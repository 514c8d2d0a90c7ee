//! What the tools do: start commands, look at journals, and wait. Everything here may block for a moment and runs in a thread
//! for that; only waiting is done without one.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use archeflow_core::event::AgentStart;
use archeflow_core::model::{Money, Seq};
use archeflow_core::projections::view::{self, ProgressLine};
use archeflow_core::rules::signs::without_credentials;
use archeflow_core::run::Run;
use archeflow_core::text::{short_line, short_text};
use archeflow_host::clock;
use archeflow_host::detached::Detached;
use archeflow_host::platform::machine;
use archeflow_host::store::names;
use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::RequestContext;
use serde_json::{Value, json};

use super::decide;
use super::results::{self, Filter};
use super::tools::{QuickCall, ReviewCall, RunCall, ToolFailure};
use super::wire::Traffic;
use super::{McpSettings, SettingsReader};
use crate::catalog::{Catalog, Repository};
use crate::run_model::{RunModel, Standing};
use crate::starting::{self, FIRST_LINE};

/// How often it is looked whether a command has begun its journal.
const SOON: Duration = Duration::from_millis(40);
/// How often a journal is looked at while a call waits.
const BEAT: Duration = Duration::from_millis(250);
/// A process that drives a run may be about to begin, or have written its last lines just before it ended.
const GRACE: Duration = Duration::from_secs(2);
/// Progress is sent at least so often, so that a client that counts the time does not give up.
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);
/// Of the last lines in a result.
const LAST_LINES: usize = 5;
/// What a command refuses, it refuses soon: a client that has sent all it had is still told. The crate waits 5 s then.
const LAST_WORD: Duration = Duration::from_secs(4);
/// Commands that are remembered.
const REMEMBERED: usize = 500;
pub(super) const FOREIGN: &str = "This machine did not start this run, so nothing here is known to be true: somebody may have \
    written its journal by hand. It is shown and never executed.";

/// Everything that a call is answered from.
pub(super) struct Desk {
    /// This program.
    pub(super) program: PathBuf,
    /// The repository that the server is for.
    pub(super) root: PathBuf,
    pub(super) state: PathBuf,
    pub(super) catalog: Catalog,
    /// What the user allows, read whenever it is needed.
    pub(super) settings: SettingsReader,
    pub(super) traffic: Arc<Traffic>,
    /// What this server has started, by the id that it gave.
    pub(super) started: Mutex<BTreeMap<String, StartedCommand>>,
}

/// A command that should begin a journal.
pub(super) struct StartedCommand {
    process: Detached,
    /// Its exit code, once it has ended.
    ended: Option<Option<i32>>,
    begun: Instant,
    is_review: bool,
    /// Only what is new since the last review of the same subject is wanted.
    since_last: bool,
}

/// How far a run is that was asked for by its id.
pub(super) enum Found {
    /// There is a journal.
    Run(Box<Watcher>),
    /// The command works and has written nothing yet.
    Starting,
    /// The command has ended without a journal.
    Ended(Answer),
}

pub(super) type Answer = Result<Value, ToolFailure>;

impl Desk {
    pub(super) fn repository(&self) -> Arc<Repository> {
        self.catalog.at(&self.root)
    }

    pub(super) fn run(&self, id: &str) -> Result<RunModel, ToolFailure> {
        let found = names::valid_name(id).then(|| {
            let repository = self.repository();
            let foreign = self.catalog.is_foreign(&repository, id);
            RunModel::read(&repository, id, foreign)
        });
        found.flatten().ok_or_else(|| {
            let shown = short_line(id, 80);
            ToolFailure::new(match names::valid_name(id) && starting::length(&self.journal(id)) > 0 {
                true => format!(
                    "not one line of the journal of '{shown}' can be read; see: archeflow show {shown}"
                ),
                false => format!("there is no run '{shown}' here; `status` lists the runs"),
            })
        })
    }

    pub(super) fn allowed(&self) -> Result<McpSettings, ToolFailure> {
        (self.settings)().map_err(|why| {
            ToolFailure::new(format!(
                "the user's own configuration can't be read: {}",
                short_text(&why, 2_000)
            ))
        })
    }

    /// The object that a command prints with `--json`.
    pub(super) fn printed(&self, words: &[&str]) -> Answer {
        let text = self.printed_text(words)?;
        let object: Value = serde_json::from_slice(&text)
            .map_err(|error| ToolFailure::new(format!("what the program printed can't be read: {error}")))?;
        // A command that could not do it says so in an object too.
        let failed =
            object.get("hint").is_some() && object.get("status").is_some_and(|status| status == "failed");
        if !failed {
            return Ok(object);
        }
        let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
        let words = short_text(format!("{}\n{}", text("detail"), text("hint")).trim(), 2_000);
        Err(ToolFailure { words, exit_code: object.get("exit_code").and_then(Value::as_i64) })
    }

    pub(super) fn printed_text(&self, words: &[&str]) -> Result<Vec<u8>, ToolFailure> {
        let arguments: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        starting::printed(&self.program, &arguments, &self.root, &self.state).map_err(ToolFailure::new)
    }

    pub(super) fn at_once(&self, call: &QuickCall) -> Answer {
        match call {
            QuickCall::Status { run_id: None } => {
                let here = self.root.display().to_string();
                Ok(results::inbox(&self.printed(&["status", "--json"])?, &here))
            }
            QuickCall::Status { run_id: Some(id) } => match self.find(id)? {
                Found::Run(mut watcher) => self.how_it_is(&mut watcher),
                Found::Starting => Ok(starting_up(id)),
                Found::Ended(answer) => answer,
            },
            QuickCall::Findings { run_id, severity, file } => {
                let filter = Filter { severity: severity.clone(), file: file.clone() };
                let run = self.run(run_id)?;
                let listed = if run.run().review.is_some() {
                    let printed = self.printed(&["review", "--json", "--run", run_id])?;
                    results::review(run_id, &printed, &filter)
                } else {
                    let printed = self.printed(&["report", "--json", "--", run_id])?;
                    results::open_findings(run_id, &printed, &filter)
                };
                Ok(marked(listed, &run))
            }
            QuickCall::Why { run_id, rule } => {
                let run = self.run(run_id)?;
                let printed = self.printed(&["replay", "timeline", "--json", "--", run_id])?;
                Ok(marked(results::decisions(run_id, &printed, rule.as_deref()), &run))
            }
            QuickCall::SprintList => Ok(results::queue(&self.printed(&["sprint", "list", "--json"])?)),
            QuickCall::SprintAdd { task, project, priority, estimate } => {
                let (priority, estimate) =
                    (format!("--priority={priority}"), format!("--estimate={estimate}"));
                let words =
                    ["sprint", "add", "--json", "--propose", &priority, &estimate, "--", project, task];
                let printed = self.printed(&words)?;
                let item = printed.get("item").map(results::item).unwrap_or_default();
                let next = "The person approves it with: archeflow sprint approve <id>";
                Ok(json!({ "item": item, "next": next }))
            }
        }
    }

    fn journal(&self, id: &str) -> PathBuf {
        self.root.join(format!(".archeflow/events/{id}.jsonl"))
    }

    fn commands(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, StartedCommand>> {
        self.started.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A name for what is started now. Its last part is random, so that neither another call nor another server has it.
    fn own_id(&self, words: &str) -> Result<String, ToolFailure> {
        let wish = names::run_id(&clock::date(clock::now()), words);
        let failed = |error| ToolFailure::new(format!("no name can be made for it: {error}"));
        loop {
            let mut random = [0; 4];
            machine::random(&mut random).map_err(failed)?;
            let id = format!("{wish}-{:08x}", u32::from_be_bytes(random));
            if !self.journal(&id).exists() && !self.commands().contains_key(&id) {
                return Ok(id);
            }
        }
    }

    /// Starts a command that begins the journal of this id.
    fn start(
        &self,
        id: &str,
        arguments: &[String],
        is_review: bool,
        since_last: bool,
    ) -> Result<(), ToolFailure> {
        let process = Detached::start(&self.program, arguments, &self.root, &self.state)
            .map_err(|error| ToolFailure::new(format!("the command can't be started: {error}")))?;
        let begun = Instant::now();
        let mut commands = self.commands();
        if commands.len() >= REMEMBERED {
            let oldest = commands.iter().min_by_key(|(_, command)| command.begun).map(|(id, _)| id.clone());
            oldest.and_then(|id| commands.remove(&id));
        }
        commands.insert(id.to_owned(), StartedCommand { process, ended: None, begun, is_review, since_last });
        Ok(())
    }

    /// The run of this id, or what became of the command that should begin it.
    pub(super) fn find(&self, id: &str) -> Result<Found, ToolFailure> {
        // Asked first: what it wrote before it ended is in the journal then.
        let state = self.commands().get_mut(id).map(|command| {
            command.ended = command.ended.or_else(|| command.process.ended());
            (command.ended, command.is_review)
        });
        match (self.run(id), state) {
            (Ok(run), _) => Ok(Found::Run(Box::new(Watcher::of(run)))),
            (Err(_), Some((None, _))) => Ok(Found::Starting),
            (Err(_), Some((Some(code), is_review))) if starting::length(&self.journal(id)) == 0 => {
                let said = self.commands().get(id).map(|command| command.process.said()).unwrap_or_default();
                Ok(Found::Ended(without_journal(&said, code, is_review)))
            }
            (Err(failure), _) => Err(failure),
        }
    }

    /// Gives the id of the run, and what the model is to know beside it.
    pub(super) fn run_started(&self, call: &RunCall) -> Result<(String, Value), ToolFailure> {
        let RunCall { task, budget, workflow } = call;
        let asked = Money::parse(budget);
        let own = self.allowed()?.budget.filter(|own| asked.is_none_or(|asked| *own < asked));
        let id = self.own_id(task)?;
        let mut arguments = vec!["run".to_owned(), "--unattended".to_owned(), format!("--as={id}")];
        let limit = own.map_or_else(|| budget.clone(), Money::written);
        arguments.push(format!("--budget={limit}"));
        arguments.extend(workflow.as_ref().map(|workflow| format!("--workflow={workflow}")));
        arguments.extend(["--".to_owned(), task.to_owned()]);
        self.start(&id, &arguments, false, false)?;
        let mut object = json!({
            "run_id": id, "status": "working",
            "next": "Call `wait` with this run_id until the status is another.",
        });
        if let Some(own) = own {
            object["budget"] = format!(
                "{}: the user's own limit (costs.budget_usd) is lower than what was asked for",
                own.shown()
            )
            .into();
        }
        Ok((id, object))
    }

    pub(super) fn review_started(&self, call: &ReviewCall) -> Result<String, ToolFailure> {
        let id = self.own_id(&call.label)?;
        let mut arguments = vec!["review".to_owned(), "--unattended".to_owned(), format!("--as={id}")];
        arguments.extend(call.subject.iter().cloned());
        if !call.reviewers.is_empty() {
            arguments.push(format!("--reviewers={}", call.reviewers.join(",")));
        }
        self.start(&id, &arguments, true, call.since_last)?;
        Ok(id)
    }

    /// How a run is now, and what a person has to decide.
    pub(super) fn how_it_is(&self, watcher: &mut Watcher) -> Answer {
        watcher.look();
        let run = &watcher.model;
        let id = &run.id;
        if let Some(damage) = &run.damage {
            let words = format!("The journal can't be read to its end: {}", short_line(damage, 300));
            let object = json!({ "run_id": id, "status": "damaged", "detail": words, "progress": watcher.last_lines() });
            return Ok(marked(object, run));
        }
        let ended = matches!(run.standing(), Standing::Ended(_));
        if run.run().review.is_some() && ended {
            let since_last = self.commands().get(id).is_some_and(|command| command.since_last);
            let mut words = vec!["review", "--json", "--run", id.as_str()];
            words.extend(since_last.then_some("--since-last"));
            return Ok(marked(results::review(id, &self.printed(&words)?, &Filter::default()), run));
        }
        let mut object = results::run(&self.printed(&["status", "--json", "--", id])?);
        match run.standing() {
            Standing::Interrupted if run.foreign => {
                object.insert("status".to_owned(), "foreign".into());
            }
            Standing::Interrupted => {
                object.insert("status".to_owned(), "interrupted".into());
            }
            Standing::Paused => {
                object.insert("status".to_owned(), "paused".into());
            }
            Standing::Asks => {
                object.insert("status".to_owned(), "question".into());
            }
            Standing::Running | Standing::Ended(_) => {}
        }
        if !ended {
            object.insert("progress".to_owned(), watcher.last_lines().into());
        }
        if let Some(open) = decide::open_choices(run) {
            object.insert("decision".to_owned(), open);
        }
        Ok(marked(object.into(), run))
    }
}

/// Says of a foreign run that it is one, and drops what could be typed about it.
fn marked(mut object: Value, run: &RunModel) -> Value {
    if let Value::Object(fields) = &mut object
        && run.foreign
    {
        fields.remove("next");
        fields.insert("foreign".to_owned(), true.into());
        fields.insert("note".to_owned(), FOREIGN.into());
    }
    object
}

fn starting_up(id: &str) -> Value {
    json!({
        "run_id": id, "status": "working", "progress": ["starting"],
        "next": "Call `wait` with this run_id until the status is another.",
    })
}

/// What came of a command that has ended without a line in its journal.
fn without_journal(said: &str, code: Option<i32>, is_review: bool) -> Answer {
    if is_review && code == Some(0) {
        let said = short_line(&without_credentials(said), 300);
        return Ok(json!({ "status": "nothing_to_review", "detail": said }));
    }
    let said = short_text(said, 2_000);
    let words = if said.trim().is_empty() { "the command ended at once".to_owned() } else { said };
    Err(ToolFailure { words, exit_code: code.map(i64::from) })
}

/// Follows a run and draws its plain lines.
pub(super) struct Watcher {
    pub(super) model: RunModel,
    run: Run,
    /// Entries that were drawn.
    drawn: usize,
    starts: BTreeMap<Seq, AgentStart>,
    lines: Vec<String>,
    /// Since when no process drives it.
    alone: Option<Instant>,
}

impl Watcher {
    pub(super) fn of(model: RunModel) -> Watcher {
        let mut watcher = Watcher {
            model,
            run: Run::default(),
            drawn: 0,
            starts: BTreeMap::new(),
            lines: Vec::new(),
            alone: None,
        };
        watcher.draw();
        watcher
    }

    /// Reads what was added, and gives the new lines.
    pub(super) fn look(&mut self) -> Vec<String> {
        self.model.refresh();
        let before = self.lines.len();
        self.draw();
        let is_alone = self.model.standing() == Standing::Interrupted;
        self.alone = if is_alone { self.alone.or_else(|| Some(Instant::now())) } else { None };
        self.lines[before..].to_vec()
    }

    fn draw(&mut self) {
        for entry in &self.model.entries[self.drawn..] {
            self.run.apply(entry);
            if let Some(start) = entry.event.body::<AgentStart>() {
                self.lines.push(short_line(&without_credentials(&view::doing(start)), 200));
                self.starts.insert(entry.seq, start.clone());
            }
            let start = entry.event.answers().and_then(|order| self.starts.remove(&order));
            if let Some(ProgressLine { tag, doing, outcome, .. }) =
                view::line(&self.run, entry, start.as_ref())
            {
                let line = without_credentials(&format!("{tag} {doing} -> {outcome}"));
                self.lines.push(short_line(&line, 200));
            }
        }
        self.drawn = self.model.entries.len();
    }

    fn last_lines(&self) -> Vec<String> {
        self.lines[self.lines.len().saturating_sub(LAST_LINES)..].to_vec()
    }

    /// Nothing more happens by itself.
    fn rests(&self) -> bool {
        match self.model.standing() {
            Standing::Ended(_) | Standing::Asks | Standing::Paused => true,
            Standing::Interrupted => self.alone.is_some_and(|since| since.elapsed() >= GRACE),
            Standing::Running => self.model.damage.is_some(),
        }
    }
}

/// Sends progress to the client that asked for it.
pub(super) struct Progress<'a> {
    context: &'a RequestContext<RoleServer>,
    token: Option<ProgressToken>,
    count: u32,
    last: Instant,
}

impl<'a> Progress<'a> {
    pub(super) fn to(context: &'a RequestContext<RoleServer>) -> Progress<'a> {
        Progress { context, token: context.meta.get_progress_token(), count: 0, last: Instant::now() }
    }

    pub(super) async fn say(&mut self, line: &str) {
        self.last = Instant::now();
        let Some(token) = &self.token else { return };
        self.count += 1;
        let progress =
            ProgressNotificationParam::new(token.clone(), f64::from(self.count)).with_message(line);
        // A client that has gone is noticed elsewhere.
        let _ = self.context.peer.notify_progress(progress).await;
    }

    /// The client has gone, or has cancelled the call.
    pub(super) fn is_for_nobody(&self, desk: &Desk) -> bool {
        desk.traffic.is_closed() || self.is_cancelled()
    }

    fn is_cancelled(&self) -> bool {
        self.context.ct.is_cancelled()
    }

    pub(super) async fn still(&mut self, line: &str) {
        if self.last.elapsed() >= SIGN_OF_LIFE {
            self.say(line).await;
        }
    }
}

/// Starts a run and waits until its journal has begun, or it is refused. One that takes longer is under way.
pub(super) async fn run(desk: &Arc<Desk>, call: RunCall, context: &RequestContext<RoleServer>) -> Answer {
    let (id, object) = in_thread(desk, move |desk| desk.run_started(&call)).await??;
    match found(desk, &id, FIRST_LINE, &mut Progress::to(context)).await? {
        Found::Run(_) | Found::Starting => Ok(object),
        Found::Ended(answer) => answer,
    }
}

/// Waits until there is a journal, the command that should begin it has ended, the time is over, or nobody waits.
async fn found(
    desk: &Arc<Desk>,
    id: &str,
    limit: Duration,
    progress: &mut Progress<'_>,
) -> Result<Found, ToolFailure> {
    let begun = Instant::now();
    loop {
        let named = id.to_owned();
        let found = in_thread(desk, move |desk| desk.find(&named)).await??;
        let limit = if desk.traffic.is_closed() { LAST_WORD.min(limit) } else { limit };
        if !matches!(found, Found::Starting) || begun.elapsed() >= limit || progress.is_cancelled() {
            return Ok(found);
        }
        progress.still("starting").await;
        tokio::time::sleep(SOON).await;
    }
}

/// Waits until a run rests, the time is over, or nobody waits any more.
pub(super) async fn wait_for(
    desk: &Arc<Desk>,
    id: &str,
    seconds: u64,
    context: &RequestContext<RoleServer>,
) -> Answer {
    let begun = Instant::now();
    let limit = Duration::from_secs(seconds);
    let mut progress = Progress::to(context);
    let mut watcher = match found(desk, id, limit, &mut progress).await? {
        Found::Run(watcher) => watcher,
        Found::Starting => return Ok(starting_up(id)),
        Found::Ended(answer) => return answer,
    };
    loop {
        let looked = in_thread(desk, move |_| {
            let lines = watcher.look();
            (watcher, lines)
        });
        let lines;
        (watcher, lines) = looked.await?;
        for line in &lines {
            progress.say(line).await;
        }
        progress.still("still working").await;
        if watcher.rests() || begun.elapsed() >= limit || progress.is_for_nobody(desk) {
            break;
        }
        tokio::time::sleep(BEAT.min(limit.saturating_sub(begun.elapsed()))).await;
    }
    in_thread(desk, move |desk| desk.how_it_is(&mut watcher)).await?
}

/// Does something that may block. What fails unexpectedly there fails this call only.
pub(super) async fn in_thread<T: Send + 'static>(
    desk: &Arc<Desk>,
    work: impl FnOnce(&Desk) -> T + Send + 'static,
) -> Result<T, ToolFailure> {
    let desk = Arc::clone(desk);
    tokio::task::spawn_blocking(move || work(&desk))
        .await
        .map_err(|error| ToolFailure::new(format!("this failed inside of the program: {error}")))
}
