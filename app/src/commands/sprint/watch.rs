//! `archeflow sprint watch`, and `archeflow watch` where a sprint is: all runs of a sprint at once. It reads and never
//! writes, and looks the same from any process.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use archeflow_core::projections::board::{BoardRow, RunProgress, SprintBoard, SprintFacts};
use archeflow_core::projections::prometheus;
use archeflow_core::projections::view::seconds;
use archeflow_core::rules::run_names::{self, Meaning};
use archeflow_host::sprint::queue::QueueFolder;
use archeflow_host::sprint::reading::{self, SprintReader};
use archeflow_host::sprint::runs::Runs;
use archeflow_host::store::places::Places;
use archeflow_host::store::presence::Presence;
use archeflow_host::{clock, proc};
use serde_json::json;

use super::{place, projects};
use crate::args::SprintLook;
use crate::commands::{self, naming};
use crate::failure::Failure;
use crate::output::CommandOutput;
use crate::render::text::{Paint, cut, pad, pad_after, safe_line, stdout_width};
use crate::render::tui::board::{Board, Wish};
use crate::render::tui::observer::no_screen;
use crate::render::tui::stage::Left;
use crate::render::tui::terminal::{self, Screen};

/// How often everything is read again.
const LOOK: Duration = Duration::from_millis(300);
/// The longest a key waits.
const KEYS: Duration = Duration::from_millis(100);

pub(super) fn run(args: &SprintLook) -> Result<CommandOutput, Failure> {
    let place = place(&args.place)?;
    let projects = projects(&args.place, &place)?;
    let reading = open(&place, args.id.as_deref())?;
    watch(reading, &projects, args.place.json)
}

/// A sprint by name, or the newest.
pub(crate) fn open(place: &QueueFolder, id: Option<&str>) -> Result<SprintReader, Failure> {
    let none = || {
        Failure::usage(
            "there is no sprint here",
            "Begin one: archeflow sprint run, or name the folder: --root <dir>",
        )
    };
    let id = match id {
        Some(name) => named(place, name)?,
        None => reading::newest(place).ok_or_else(none)?,
    };
    Ok(SprintReader::open(place, &id)?)
}

/// The id of the sprint that is named, by the rules for runs.
fn named(place: &QueueFolder, name: &str) -> Result<String, Failure> {
    let ids = reading::sprint_ids(place);
    let sprints = naming::bare(&ids);
    match run_names::resolve(name, &sprints) {
        Meaning::One(at) if sprints[at].id == name => Ok(name.to_owned()),
        Meaning::One(at) => {
            tell!("Sprint: {}", safe_line(&sprints[at].id));
            Ok(sprints[at].id.clone())
        }
        Meaning::Several(found) => {
            Err(naming::several("sprint", &format!("'{name}' fits"), &sprints, &found))
        }
        Meaning::None(near) => {
            let all = || format!("Known: {}", safe_line(&ids.join(", ")));
            let hint = naming::did_you_mean(&sprints, &near).unwrap_or_else(all);
            Err(Failure::usage(format!("there is no sprint '{}' here", safe_line(name)), hint))
        }
    }
}

pub(crate) fn watch(reading: SprintReader, projects: &Path, json: bool) -> Result<CommandOutput, Failure> {
    if json || !terminal::is_there() {
        return Ok(once(&reading, projects, json));
    }
    let signal = Arc::new(AtomicI32::new(0));
    let heard = Arc::clone(&signal);
    proc::signals::listen(move |signal| {
        if heard.swap(signal, Ordering::SeqCst) != 0 {
            terminal::leave();
            std::process::exit(128 + signal);
        }
    })
    .map_err(|error| no_screen(&error))?;
    play(reading, projects, &signal)
}

fn play(mut reading: SprintReader, projects: &Path, signal: &AtomicI32) -> Result<CommandOutput, Failure> {
    let mut screen = Screen::enter().map_err(|error| no_screen(&error))?;
    // While somebody looks, no message about the sprint and its runs is sent.
    let state = Places::state_dir_elsewhere(&commands::process_env()?.places())?;
    let _looks = state.and_then(|state| Presence::hold(&state, &reading.watched()).ok());
    let mut runs = Runs::default();
    let mut board = Board::new(Paint::for_stdout().0);
    let mut looked: Option<Instant> = None;
    loop {
        if signal.load(Ordering::SeqCst) != 0 || terminal::is_broken() {
            let code = 128 + signal.load(Ordering::SeqCst);
            return Ok(CommandOutput::done().with_code(u8::try_from(code).unwrap_or(130)));
        }
        let mut changed = screen.pause().map_err(|error| no_screen(&error))?;
        if looked.is_none_or(|last| last.elapsed() >= LOOK) {
            looked = Some(Instant::now());
            reading.more()?;
            let now = clock::now();
            changed |= board.show(board_of(&reading, &mut runs, projects, now));
        }
        changed |= board.fit(terminal::size());
        if changed && !terminal::is_hidden() {
            screen.draw_with(|frame| board.draw(frame)).map_err(|error| no_screen(&error))?;
        }
        if terminal::is_hidden() {
            std::thread::sleep(KEYS);
            continue;
        }
        for key in screen.keys(KEYS).map_err(|error| no_screen(&error))? {
            match board.act(&key) {
                None => {}
                Some(Wish::Leave) => return Ok(CommandOutput::done()),
                Some(Wish::Open { run, project }) => {
                    drop(screen);
                    if let Left::Signal(signal) = look_into(&run, &projects.join(project))? {
                        return Ok(CommandOutput::done().with_code(u8::try_from(128 + signal).unwrap_or(130)));
                    }
                    screen = Screen::enter().map_err(|error| no_screen(&error))?;
                    looked = None;
                    board.again();
                }
            }
        }
    }
}

/// The run's own view, until it is left. Whatever is wished there beyond looking is the run's own business.
fn look_into(run: &str, repository: &Path) -> Result<Left, Failure> {
    let place = crate::args::CommonArgs {
        repo: Some(repository.to_owned()),
        config: None,
        json: false,
        unsafe_no_sandbox: false,
    };
    commands::watch::look(&commands::open_project(&place, None, false)?, run)
}

/// The sprint as it is now.
fn board_of(reading: &SprintReader, runs: &mut Runs, projects: &Path, now: u64) -> SprintBoard {
    let SprintReader { id, sprint, chronicle, .. } = reading;
    let facts = SprintFacts { id, sprint, chronicle, driven: reading.is_driven() };
    SprintBoard::of(facts, now, |project, run| runs.look(&projects.join(project), run).map(RunProgress::of))
}

/// The numbers of the sprint as it is now.
pub(super) fn prometheus(reading: &SprintReader, projects: &Path, now: u64) -> String {
    let SprintReader { id, sprint, chronicle, .. } = reading;
    let facts = SprintFacts { id, sprint, chronicle, driven: reading.is_driven() };
    let mut runs = Runs::default();
    prometheus::sprint(facts, now, |project, run| {
        runs.look(&projects.join(project), run).map(RunProgress::of)
    })
}

/// Without a screen: the same once, as a table.
fn once(reading: &SprintReader, projects: &Path, json: bool) -> CommandOutput {
    let SprintBoard { heading, rows } = board_of(reading, &mut Runs::default(), projects, clock::now());
    if json {
        return CommandOutput::json(json!({
            "sprint_id": heading.id, "state": heading.state, "driven": reading.is_driven(),
            "cost_usd": reading.sprint.spent(), "items": rows,
        }));
    }
    let (paint, mut out) = (Paint::for_stdout(), String::new());
    put!(out, "{} {}", paint.bold(&heading.id), paint.tone(heading.tone, &safe_line(&heading.state)));
    put!(out, "{}", heading.counts);
    table(&mut out, paint, &rows);
    CommandOutput::text(out)
}

fn table(out: &mut String, paint: Paint, rows: &[BoardRow]) {
    let widest = |text: fn(&BoardRow) -> &str, least: usize, most: usize| {
        rows.iter().map(|row| safe_line(text(row)).chars().count()).max().unwrap_or(0).clamp(least, most)
    };
    let (item, project, state) =
        (widest(|row| &row.item, 4, 40), widest(|row| &row.project, 7, 24), widest(|row| row.state, 5, 13));
    let room = stdout_width().map_or(80, |wide| wide.saturating_sub(item + project + state + 49)).max(16);
    let heading = format!(
        "{}  {}  {}  PHASE  CYCLE  FINDINGS  COST      ELAPSED  TASK OR RUN",
        pad("ITEM", item),
        pad("PROJECT", project),
        pad("STATE", state)
    );
    put!(out, "{}", paint.dim(&heading));
    for row in rows {
        let text = row.run.as_ref().unwrap_or(&row.text);
        put!(
            out,
            "{}  {}  {}  {}  {}  {}  {}  {}  {}",
            pad(&cut(&safe_line(&row.item), item), item),
            pad(&cut(&safe_line(&row.project), project), project),
            pad_after(row.state, &paint.tone(row.tone, row.state), state),
            pad(row.phase, 5),
            pad(&row.cycle.map_or(String::new(), |cycle| cycle.to_string()), 5),
            pad(&row.findings.map_or(String::new(), |count| count.to_string()), 8),
            pad(&row.cost.shown(), 8),
            pad(&row.elapsed.map_or(String::new(), seconds), 7),
            if row.run.is_some() { safe_line(text) } else { cut(&safe_line(text), room) }
        );
    }
}
