//! `archeflow sprint run`: drives a sprint with a person, or alone with `--autonomous`.

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use archeflow_core::model::{Money, Share, counted};
use archeflow_core::projections::board::tone;
use archeflow_core::projections::view::{Tone, seconds};
use archeflow_core::settings::share_of;
use archeflow_core::sprint::budget;
use archeflow_core::sprint::event::{RunEnd, SprintEntry, SprintEvent, SprintStop};
use archeflow_core::sprint::policy::SprintPolicy;
use archeflow_core::sprint::queue::{Graph, ItemStatus};
use archeflow_core::sprint::{ItemStage, ItemState, Sprint};
use archeflow_host::drive::Asked;
use archeflow_host::proc;
use archeflow_host::sprint::center;
use archeflow_host::sprint::crew::{SprintCrew, SprintSetup};
use archeflow_host::sprint::drive::{self, SprintDriver, SprintEnded, SprintMessage, SprintObserver};
use archeflow_host::sprint::local_crew::{LocalCrew, LocalRuns};
use archeflow_host::sprint::queue::Error;
use archeflow_host::sprint::settings;
use archeflow_host::store::places::Places;
use serde_json::{Value, json};

use super::{fleet, place, print_faults, projects};
use crate::args::SprintRun;
use crate::commands::{process_env, session};
use crate::failure::Failure;
use crate::output::CommandOutput;
use crate::render::line::read_line;
use crate::render::summary::when;
use crate::render::text::{Paint, cut, pad, pad_after, safe_line};

/// As many runs at a time as were ever measured (`cargo xtask bench sprint`): each is a process with an agent below it.
const MOST_SLOTS: u32 = 128;

pub(super) fn run(args: &SprintRun) -> Result<CommandOutput, Failure> {
    let place = place(&args.place)?;
    let queue = place.read()?;
    if !args.autonomous && !talks() {
        return Err(Failure::usage(
            "a sprint asks before each batch, and there is no terminal to answer",
            "Run it in a terminal, or say --autonomous.",
        ));
    }
    if queue.is_paused() {
        return Err(Failure::new(21, "paused", "the queue says PAUSED", "Take \"mode\" out of the file."));
    }
    print_faults(&queue);
    if let Some(circle) = Graph::of(queue.items()).cycle() {
        return Err(Error::Circle { circle: circle.into_iter().map(str::to_owned).collect() }.into());
    }
    let env = process_env()?;
    // Errors are reported before there is a sprint.
    policy(args, settings::policy(&env, place.root())?)?;
    let notify = settings::notify(&env, place.root())?;
    let state = Places::state_dir_elsewhere(&env.places())?
        .or_else(|| Places::at(place.root()).and_then(|places| places.state_dir(&env.places())).ok());
    let fleet = args.fleet.as_deref().map(|file| fleet::join(file, args)).transpose()?;
    let opened = match &fleet {
        Some(fleet) => fleet.open(&place, args.take_over.as_deref())?,
        None => drive::open(&place)?,
    };
    let before = opened.sprint.begun.then(|| opened.sprint.policy.clone());
    let mut policy = policy(args, before.map_or_else(|| settings::policy(&env, place.root()), Ok)?)?;
    if fleet.is_some() {
        // Workers land one run at a time; git decides between them.
        policy.landing_batch = 1;
    }
    let sprint_id = opened.journal.run_id().to_owned();
    if opened.sprint.begun {
        tell!("note: going on with {sprint_id}, which was interrupted");
    }
    let (projects, tag) = (projects(&args.place, &place)?, format!("{sprint_id}.{}", std::process::id()));
    let center = center::file(&place);
    let workers = match &fleet {
        Some(fleet) => Some(Arc::new(fleet.crew(args, &opened, &projects, texts(run_flags(args))?)?)),
        None => None,
    };
    let crew: Arc<dyn SprintCrew> = match &workers {
        Some(workers) => Arc::clone(workers) as Arc<dyn SprintCrew>,
        None => Arc::new(LocalCrew::new(LocalRuns {
            projects: projects.clone(),
            me: env.me,
            cwd: env.cwd,
            env: env.variables,
            said: run_flags(args),
            always: Vec::new(),
            no_sandbox: args.unsafe_no_sandbox,
            own_workflow: false,
            limit: None,
            tag: tag.clone(),
        })),
    };
    let setup = SprintSetup { sprint_id: sprint_id.clone(), place, projects, tag };
    proc::become_subreaper();
    let mut driver = SprintDriver::new(opened, setup, crew);
    if let Some(workers) = workers {
        workers.start(driver.post());
    }
    if let Some(state) = state {
        driver.notifier = session::notifier(&notify, &state, !args.autonomous)?;
    }
    let interrupted = Arc::new(AtomicBool::new(false));
    listen(&driver, Arc::clone(&interrupted));
    let mut observer = Lines { paint: Paint::for_stderr(), interrupted, center };
    driver.begin(&mut observer, policy, args.autonomous, env!("CARGO_PKG_VERSION"))?;
    let ended = driver.drive(&mut observer);
    proc::finish_all();
    let ended = ended?;
    let code = exit_code(&ended, &driver.sprint);
    let output = match args.place.json {
        true => CommandOutput::json(object(&sprint_id, &driver.sprint, &ended, code)),
        false => CommandOutput::text(summary(&sprint_id, &driver.sprint)),
    };
    Ok(output.with_code(code))
}

fn talks() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// What was typed wins over what the sprint began with, or what is configured.
fn policy(args: &SprintRun, before: SprintPolicy) -> Result<SprintPolicy, Failure> {
    let mut policy = before;
    policy.low_priority |= args.low_priority;
    if let Some(slots) = args.slots {
        if !(1..=MOST_SLOTS).contains(&slots) {
            return Err(Failure::usage(format!("--slots {slots} is not from 1 to {MOST_SLOTS}"), ""));
        }
        policy.slots = slots;
    }
    if let Some(batch) = args.batch {
        if !(1..=MOST_SLOTS).contains(&batch) {
            return Err(Failure::usage(format!("--batch {batch} is not from 1 to {MOST_SLOTS}"), ""));
        }
        policy.landing_batch = batch;
    }
    if let Some(text) = &args.budget {
        let budget = Money::parse(text).filter(|money| *money > Money::ZERO);
        let wrong =
            || Failure::usage(format!("--budget '{text}' is no amount"), "In dollars, e.g. --budget 5");
        policy.budget_usd = Some(budget.ok_or_else(wrong)?);
    }
    for text in &args.share {
        let wrong = || {
            let why = format!("--share '{text}' is no project with a percentage from 0 to 100");
            Failure::usage(why, "For example: --share shop=40%")
        };
        let (project, percent) = share_of(text).ok_or_else(wrong)?;
        policy.shares.insert(project, percent);
    }
    if !args.share.is_empty() && policy.budget_usd.is_none() {
        return Err(Failure::usage(
            "shares are shares of a budget, and there is none",
            "Say what all runs together may cost: --budget <USD>, or sprint.budget_usd in a configuration file",
        ));
    }
    Ok(policy)
}

/// Flags that every run gets.
fn run_flags(args: &SprintRun) -> Vec<OsString> {
    let mut said: Vec<OsString> = Vec::new();
    let mut say = |flag: &str, value: &str| said.extend([flag.into(), value.into()]);
    args.agent.iter().for_each(|spec| say("--agent", spec));
    args.agent_for.iter().for_each(|pair| say("--agent-for", pair));
    args.test_command.iter().for_each(|command| say("--test-command", command));
    said
}

/// As a message carries them.
fn texts(words: Vec<OsString>) -> Result<Vec<String>, Failure> {
    let text = |word: OsString| {
        word.into_string().map_err(|word| Failure::usage(format!("{} is no UTF-8", word.display()), ""))
    };
    words.into_iter().map(text).collect()
}

/// First signal: stop all agents and save their work. Second: kill at once.
fn listen(driver: &SprintDriver, interrupted: Arc<AtomicBool>) {
    let (post, crew) = (driver.post(), driver.crew());
    let heard = proc::signals::listen(move |signal| {
        if interrupted.swap(true, Ordering::SeqCst) {
            crew.kill_now();
        }
        let _ = post.send(SprintMessage::Signal(signal));
    });
    if let Err(error) = heard {
        tell!("warning: signals can't be heard ({error}); stopping will not be clean");
    }
}

fn exit_code(ended: &SprintEnded, sprint: &Sprint) -> u8 {
    let well = |known: &ItemState| match (known.fence, known.item.status) {
        (_, ItemStatus::Completed) => true,
        // Blocked in this sprint: what it depends on was lost (U-02).
        (None, status) => status != ItemStatus::Blocked || known.stand != ItemStage::Settled,
        (Some(_), _) => false,
    };
    match ended {
        SprintEnded::Signal(signal) => u8::try_from(128 + signal).unwrap_or(130),
        SprintEnded::Over(SprintStop::Budget) => 11,
        SprintEnded::Over(SprintStop::Done) if sprint.items.values().all(well) => 0,
        SprintEnded::Over(_) => 10,
    }
}

/// A line for everything that concerns a person.
struct Lines {
    paint: Paint,
    interrupted: Arc<AtomicBool>,
    center: PathBuf,
}

impl SprintObserver for Lines {
    fn wrote(&mut self, sprint: &Sprint, entry: &SprintEntry) {
        let item = |id: &str| {
            let known = sprint.items.get(id);
            known.map_or(String::new(), |known| {
                format!("{} ({})", safe_line(id), safe_line(&known.item.project))
            })
        };
        match &entry.event {
            SprintEvent::Run { item: id, attempt, workflow, .. } => {
                let again = if *attempt == 1 { String::new() } else { format!(" again, attempt {attempt}") };
                let less = workflow.map_or(String::new(), |less| {
                    format!(", as {} since little of the budget is left", less.name())
                });
                tell!("{} begins{again}{less}", item(id));
            }
            SprintEvent::Warning { spent_usd, percent } => {
                let word = format!("{percent} % of the budget are spent ({})", spent_usd.shown());
                tell!("{}", self.paint.tone(Tone::Caution, &word));
            }
            SprintEvent::Resume { item: id, run_id } => {
                tell!("{} resumes {}", item(id), safe_line(run_id));
            }
            SprintEvent::Ended { end: RunEnd { run_id, busy: Some(busy), .. }, .. } => {
                let account = safe_line(&busy.accounts.join(", "));
                let until = sprint.breakers.values().map(|breaker| breaker.until).max();
                tell!(
                    "{} waits for {account}, until {}",
                    safe_line(run_id),
                    until.map_or(String::new(), when)
                );
            }
            SprintEvent::Land { item: id, .. } => tell!("{} is approved; landing", item(id)),
            SprintEvent::BatchLand { candidates, .. } => {
                let names: Vec<String> = candidates.iter().map(|one| item(&one.item)).collect();
                tell!("{} are approved; landing together", names.join(", "));
            }
            SprintEvent::BatchLanded { came, .. } if !came.red.is_empty() => {
                let names: Vec<String> = came.red.iter().map(|id| safe_line(id)).collect();
                tell!("{} are red together; taking them apart", names.join(", "));
            }
            SprintEvent::Overlap { a, b, files } if !files.is_empty() => {
                tell!("{}", overlap(sprint, a, b, files));
            }
            SprintEvent::Settle { item: id, status, note, .. } => {
                let word = self.paint.tone(tone(*status), status.name());
                let note = cut(&safe_line(note), 200);
                let note = if note.is_empty() { note } else { format!(" {}", self.paint.dim(&note)) };
                tell!("{} {word}{note}", item(id));
            }
            SprintEvent::Checkpoint { tasks, spent_usd, first, last, .. } => {
                let percent = |share: Share| share.0 / 10_000;
                tell!(
                    "{} after {}: {} spent{}; first task {} %, last {} %; {}",
                    self.paint.bold("checkpoint"),
                    counted(*tasks, "task"),
                    spent_usd.shown(),
                    budget::whole(sprint).most.map_or(String::new(), |most| format!(" of {}", most.shown())),
                    percent(*first),
                    percent(*last),
                    safe_line(&self.center.display().to_string())
                );
            }
            SprintEvent::Break { why, detail, .. } => {
                tell!("{}", self.paint.tone(Tone::Bad, &format!("stops ({}): {detail}", why.name())));
            }
            // These concern nobody while they happen.
            SprintEvent::Start { .. }
            | SprintEvent::Session { .. }
            | SprintEvent::Seen { .. }
            | SprintEvent::Ask { .. }
            | SprintEvent::Answered { .. }
            | SprintEvent::Claim { .. }
            | SprintEvent::Claimed { .. }
            | SprintEvent::Ended { .. }
            | SprintEvent::Landed { .. }
            | SprintEvent::BatchLanded { .. }
            | SprintEvent::Overlap { .. }
            | SprintEvent::Settled { .. }
            | SprintEvent::Due { .. }
            | SprintEvent::Served { .. }
            | SprintEvent::Interrupted { .. }
            | SprintEvent::End { .. } => {}
        }
    }

    /// A batch, and after a checkpoint whether to continue at all. Everything but a clear yes is a no.
    fn ask(&mut self, sprint: &Sprint, items: &[String]) -> Option<bool> {
        tell!("\n{}", self.paint.bold("Next:"));
        for known in items.iter().filter_map(|id| sprint.items.get(id)) {
            let item = &known.item;
            let (id, project) = (safe_line(&item.id), safe_line(&item.project));
            tell!(
                "  {} {} {id} ({project}): {}",
                item.priority.name(),
                item.estimate.name(),
                safe_line(&item.task)
            );
        }
        let question = if sprint.at_checkpoint { "Go on with these?" } else { "Let them run?" };
        tell_part!("{} [y/N] ", self.paint.bold(question));
        let _ = std::io::stderr().flush();
        match read_line(&self.interrupted, &mut || false) {
            Asked::Answer(text) => Some(archeflow_core::run::is_yes(&text)),
            Asked::Left => Some(false),
            Asked::Interrupted | Asked::Elsewhere => None,
        }
    }

    fn warn(&mut self, text: &str) {
        tell!("warning: {}", safe_line(text));
    }
}

/// Who waits for whom, and why.
fn overlap(sprint: &Sprint, a: &str, b: &str, files: &[String]) -> String {
    let place = |id: &str| sprint.items.get(id).map(|known| (known.item.priority, known.number));
    let (first, second) = if place(a) <= place(b) { (a, b) } else { (b, a) };
    let files: Vec<String> = files.iter().map(|file| safe_line(file)).collect();
    let (first, second) = (safe_line(first), safe_line(second));
    format!("{first} and {second} both change {}: {second} waits for {first}", cut(&files.join(", "), 120))
}

fn in_order(sprint: &Sprint) -> Vec<&ItemState> {
    let mut items: Vec<&ItemState> =
        sprint.items.values().filter(|known| known.end.is_some() || known.fence.is_some()).collect();
    items.sort_by_key(|known| known.number);
    items
}

/// What became of what this sprint had taken.
fn summary(sprint_id: &str, sprint: &Sprint) -> String {
    let mut out = String::new();
    let paint = Paint::for_stdout();
    let items = in_order(sprint);
    let widest = items.iter().map(|known| known.item.id.chars().count()).max().unwrap_or(0).max(4);
    let project =
        items.iter().map(|known| known.item.project.chars().count()).max().unwrap_or(0).clamp(7, 24);
    let heading =
        format!("{}  {}  STATUS     CYCLES  COST      RUN", pad("ITEM", widest), pad("PROJECT", project));
    put!(out, "{}", paint.dim(&heading));
    for known in items {
        let word = known.item.status.name();
        let end = known.end.as_ref();
        put!(
            out,
            "{}  {}  {}  {}  {}  {}",
            pad(&safe_line(&known.item.id), widest),
            pad(&cut(&safe_line(&known.item.project), project), project),
            pad_after(word, &paint.tone(tone(known.item.status), word), 9),
            pad(&end.map_or(0, |end| end.cycles).to_string(), 6),
            pad(&end.map_or(Money::ZERO, |end| end.cost_usd).shown(), 8),
            end.map_or("", |end| &end.run_id)
        );
    }
    if sprint.policy.budget_usd.is_some() {
        purses(&mut out, sprint);
    }
    let left = sprint.items.values().filter(|known| known.item.status == ItemStatus::Pending).count();
    let ended = match &sprint.end {
        Some((why, detail)) => format!("{}, {}", why.name(), safe_line(detail)),
        None => "interrupted; resume with: archeflow sprint run".to_owned(),
    };
    put!(
        out,
        "{sprint_id}: {ended}; {} of work, {} spent, {left} pending",
        seconds(sprint.work_ms),
        sprint.spent().shown()
    );
    out
}

/// What each project spent of what it may.
fn purses(out: &mut String, sprint: &Sprint) {
    let of_project = budget::by_project(sprint).into_iter();
    let rows = of_project.map(|(name, purse)| (safe_line(name), purse));
    let rows: Vec<_> = rows.chain([("all".to_owned(), budget::whole(sprint))]).collect();
    let told: Vec<String> = rows
        .iter()
        .map(|(name, purse)| {
            let most = purse.most.map_or(String::new(), |most| format!(" of {}", most.shown()));
            format!("{name} {}{most}", purse.spent.shown())
        })
        .collect();
    put!(out, "spent: {}", told.join(", "));
}

fn object(sprint_id: &str, sprint: &Sprint, ended: &SprintEnded, code: u8) -> Value {
    let items: Vec<Value> = in_order(sprint)
        .into_iter()
        .map(|known| {
            let end = known.end.as_ref();
            json!({
                "id": known.item.id, "project": known.item.project, "status": known.item.status,
                "attempts": known.runs(), "run_id": end.map(|end| &end.run_id), "reason": end.and_then(|end| end.reason),
                "detail": end.map(|end| &end.detail), "cycles": end.map(|end| end.cycles), "cost_usd": end.map(|end| end.cost_usd),
            })
        })
        .collect();
    let why = match ended {
        SprintEnded::Over(why) => why.name(),
        SprintEnded::Signal(_) => "interrupted",
    };
    let detail = sprint.end.as_ref().map(|(_, detail)| detail);
    json!({ "sprint_id": sprint_id, "reason": why, "detail": detail, "exit_code": code, "items": items, "cost_usd": sprint.spent() })
}
