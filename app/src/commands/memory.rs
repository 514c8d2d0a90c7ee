//! `archeflow memory`: the lessons of a repository, and what became of them.

use archeflow_core::model::{ARCHETYPES, Domain, Lesson, LessonKind, Memory as Policy};
use archeflow_core::rules::memory::GENERAL;
use archeflow_core::rules::run_names::RunUse;
use archeflow_core::text::short_line;
use archeflow_host::config::{Flags, personas};
use archeflow_host::memory::{self, Written};
use archeflow_host::open::Project;
use archeflow_host::store::memory::{Error, Item, MemoryFiles, MemoryStore};
use serde_json::{Value, json};

use crate::args::{CommonArgs, MemoryAdd, MemoryCommand, MemoryList, MemoryOne, MemoryWhy};
use crate::commands::{list, naming, open_project};
use crate::failure::Failure;
use crate::output::CommandOutput;
use crate::render::text::{cut, pad, safe_line};

pub(crate) fn run(command: &MemoryCommand) -> Result<CommandOutput, Failure> {
    match command {
        MemoryCommand::List(args) => list_lessons(args),
        MemoryCommand::Add(args) => add(args),
        MemoryCommand::Forget(args) => forget(args),
        MemoryCommand::Show(args) => show(args),
        MemoryCommand::Why(args) => why(args),
    }
}

/// The lessons of this repository and those the user keeps for all of them.
struct Room {
    project: Project,
    here: MemoryStore,
    shared: MemoryStore,
}

/// Names of lessons for all repositories begin with this letter.
const SHARED: char = 'u';
const OURS: char = 'm';

impl Room {
    fn open(place: &CommonArgs) -> Result<Room, Failure> {
        let project = open_project(place, None, false)?;
        let here = MemoryStore::of(&project.places, &project.state);
        let shared = MemoryStore::shared(&project.state);
        Ok(Room { project, here, shared })
    }

    fn policy(&self, place: &CommonArgs) -> Result<Policy, Failure> {
        Ok(self.project.settings(&Flags::default(), place.config.as_deref())?.policy().memory)
    }

    /// The file of a lesson with this name.
    fn of(&self, id: &str) -> &MemoryStore {
        if id.starts_with(SHARED) { &self.shared } else { &self.here }
    }

    fn shelves(&self) -> Result<[MemoryFiles; 2], Failure> {
        let shelves = [self.here.read()?, self.shared.read()?];
        for damage in shelves.iter().flat_map(MemoryFiles::damage) {
            tell!("warning: {}", safe_line(&damage.to_string()));
        }
        Ok(shelves)
    }

    /// No such lesson; these there are.
    fn unknown(&self, id: &str, archived: bool) -> Result<Failure, Failure> {
        let shelves = self.shelves()?;
        let ids = shelves.iter().flat_map(|shelf| {
            let lessons = if archived { &shelf.archive } else { &shelf.lessons };
            lessons.values().map(|lesson| lesson.id.clone()).collect::<Vec<_>>()
        });
        let known: Vec<String> = ids.take(40).collect();
        let (what, known) = match (archived, known.is_empty()) {
            (true, true) => ("in the archive", "The archive is empty.".to_owned()),
            (true, false) => ("in the archive", format!("There are: {}", known.join(", "))),
            (false, true) => ("here", "There are no lessons yet.".to_owned()),
            (false, false) => ("here", format!("There are: {}", known.join(", "))),
        };
        Ok(Failure::usage(format!("there is no lesson '{id}' {what}"), known))
    }
}

fn list_lessons(args: &MemoryList) -> Result<CommandOutput, Failure> {
    let mut out = String::new();
    let room = Room::open(&args.place)?;
    let shelves = room.shelves()?;
    let mut rows: Vec<(&Item<Lesson>, &Lesson)> = Vec::new();
    for shelf in &shelves {
        rows.extend(if args.archived { shelf.archive.items() } else { shelf.lessons.items() });
    }
    if args.place.json {
        let lessons: Vec<Value> = rows.iter().map(|(item, _)| Value::Object(item.fields())).collect();
        return Ok(CommandOutput::json(json!({ "lessons": lessons, "archived": args.archived })));
    }
    if rows.is_empty() {
        put!(
            out,
            "{}",
            if args.archived {
                "The archive is empty."
            } else {
                "No lessons yet. Runs teach them; or write one down: archeflow memory add \"<text>\""
            }
        );
        return Ok(CommandOutput::text(out));
    }
    let because = if args.archived { "BECAUSE" } else { "LAST SEEN" };
    put!(out, "{}", row(["ID", "TYPE", "FREQ", "DOMAIN", "FOR", because], "TEXT"));
    for (item, lesson) in rows {
        let last = if args.archived { item.text("archived_because") } else { None };
        let last = last.unwrap_or_else(|| lesson.last_seen_run.clone());
        let frequency = lesson.frequency.to_string();
        let cells = [
            &lesson.id,
            lesson.kind.name(),
            &frequency,
            &lesson.domain,
            lesson.archetype.as_deref().unwrap_or("everybody"),
            &last,
        ];
        put!(out, "{}", row(cells, &lesson.description));
    }
    Ok(CommandOutput::text(out))
}

fn row(cells: [&str; 6], text: &str) -> String {
    const WIDTHS: [usize; 6] = [6, 14, 4, 8, 10, 28];
    let cells: Vec<String> =
        cells.iter().zip(WIDTHS).map(|(cell, width)| pad(&cut(&safe_line(cell), width), width)).collect();
    format!("{}  {}", cells.join("  "), cut(&safe_line(text), 90))
}

fn add(args: &MemoryAdd) -> Result<CommandOutput, Failure> {
    let mut out = String::new();
    let room = Room::open(&args.place)?;
    let policy = room.policy(&args.place)?;
    let lesson = match (&args.from_archive, &args.text) {
        (Some(id), _) => match memory::restore(room.of(id), id, &policy)? {
            Some(lesson) => lesson,
            None => return Err(room.unknown(id, true)?),
        },
        (None, text) => {
            let written = written(&room, args, text.as_deref().unwrap_or_default())?;
            if !args.shared {
                room.project.places.make()?;
            }
            let (memory, letter) = if args.shared { (&room.shared, SHARED) } else { (&room.here, OURS) };
            memory::add(memory, letter, &written)?
        }
    };
    if args.place.json {
        return Ok(CommandOutput::json(json!({ "lesson": lesson })));
    }
    let told = lesson.archetype.as_deref().unwrap_or("everybody");
    put!(out, "{} is kept: {}", lesson.id, safe_line(&lesson.description));
    put!(out, "  given to {} from the next run on", safe_line(told));
    if args.shared && !policy.share {
        put!(
            out,
            "  not yet: lessons for all repositories are used if your own configuration sets memory.share: true"
        );
    }
    if !policy.enabled {
        put!(out, "  not yet: memory.enabled is false here");
    }
    Ok(CommandOutput::text(out))
}

fn written(room: &Room, args: &MemoryAdd, text: &str) -> Result<Written, Failure> {
    if safe_line(text).is_empty() {
        return Err(Failure::usage("the lesson is empty", "Say what is to be remembered."));
    }
    let kinds: Vec<&str> = LessonKind::ALL.iter().map(|kind| kind.name()).collect();
    let kind = LessonKind::parse(&args.kind).ok_or_else(|| unknown("type", &args.kind, &kinds))?;
    let domains = [Domain::Code.name(), Domain::Writing.name(), Domain::Research.name(), GENERAL];
    if !domains.contains(&args.domain.as_str()) {
        return Err(unknown("domain", &args.domain, &domains));
    }
    let own = personas::names(&room.project.offer.files, &room.project.user);
    let names: Vec<&str> =
        ARCHETYPES.iter().map(|(name, _)| *name).chain(own.iter().map(String::as_str)).collect();
    if let Some(name) = args.archetype.as_ref().filter(|name| !names.contains(&name.as_str())) {
        return Err(unknown("archetype", name, &names));
    }
    let tags =
        args.tags.iter().map(|tag| short_line(tag, 40)).filter(|tag| !tag.is_empty()).take(5).collect();
    let (domain, archetype) = (args.domain.clone(), args.archetype.clone());
    Ok(Written { kind, text: text.to_owned(), domain, archetype, tags })
}

fn unknown(what: &str, word: &str, known: &[&str]) -> Failure {
    Failure::usage(format!("unknown {what} '{word}'"), format!("Known: {}", known.join(", ")))
}

fn forget(args: &MemoryOne) -> Result<CommandOutput, Failure> {
    let mut out = String::new();
    let room = Room::open(&args.place)?;
    let Some(lesson) = memory::forget(room.of(&args.id), &args.id)? else {
        return Err(room.unknown(&args.id, false)?);
    };
    if args.place.json {
        return Ok(CommandOutput::json(json!({ "forgotten": lesson })));
    }
    put!(out, "{} is forgotten and will not be learned again: {}", lesson.id, safe_line(&lesson.description));
    put!(out, "  to take it back: archeflow memory add --from-archive {}", lesson.id);
    Ok(CommandOutput::text(out))
}

fn show(args: &MemoryOne) -> Result<CommandOutput, Failure> {
    let mut out = String::new();
    let room = Room::open(&args.place)?;
    let shelves = room.shelves()?;
    let all = shelves.iter().flat_map(|shelf| shelf.lessons.items().chain(shelf.archive.items()));
    let Some((item, lesson)) = all.into_iter().find(|(_, lesson)| lesson.id == args.id) else {
        return Err(room.unknown(&args.id, false)?);
    };
    let about: Vec<&Value> = shelves
        .iter()
        .flat_map(|shelf| shelf.audit.values())
        .filter(|line| concerns(line, &args.id))
        .collect();
    if args.place.json {
        return Ok(CommandOutput::json(json!({ "lesson": item.fields(), "audit": about })));
    }
    put!(out, "{}  {}", lesson.id, safe_line(&lesson.description));
    for (name, value) in
        item.fields().iter().filter(|(name, _)| !["id", "description"].contains(&name.as_str()))
    {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        put!(out, "  {} {}", pad(&safe_line(name), 22), safe_line(&value));
    }
    if about.iter().all(|line| line["lessons_injected"].is_null()) {
        put!(out, "It has not been given to any agent yet.");
    }
    for line in about {
        put!(out, "{}", safe_line(&sentence(line, Some(&args.id))));
    }
    Ok(CommandOutput::text(out))
}

fn concerns(line: &Value, id: &str) -> bool {
    let among = |list: &Value| list.as_array().is_some_and(|list| list.iter().any(|one| one == id));
    let changed = |list: &Value| list.as_array().is_some_and(|list| list.iter().any(|one| one["id"] == id));
    line["lesson_id"] == id || among(&line["lessons_injected"]) || changed(&line["lessons"])
}

fn why(args: &MemoryWhy) -> Result<CommandOutput, Failure> {
    let mut out = String::new();
    let room = Room::open(&args.place)?;
    // An unknown name is an error; a run without lessons is a valid result.
    let id = naming::run_id(&room.project, args.id.as_deref(), RunUse::Show)?;
    list::text(&room.project, &id)?;
    let [here, _] = room.shelves()?;
    let about: Vec<&Value> = here.audit.values().filter(|line| line["run_id"] == id.as_str()).collect();
    if args.place.json {
        let told: Vec<&&Value> = about.iter().filter(|line| !line["lessons_injected"].is_null()).collect();
        let effects: Vec<&&Value> =
            about.iter().filter(|line| line["type"] == "effectiveness_check").collect();
        let learned: Vec<&&Value> = about.iter().filter(|line| line["type"] == "learned").collect();
        return Ok(CommandOutput::json(
            json!({ "run_id": id, "told": told, "effects": effects, "learned": learned }),
        ));
    }
    if about.is_empty() {
        put!(out, "{} used no lessons and added none.", safe_line(&id));
    }
    for line in about {
        put!(out, "{}", safe_line(&sentence(line, None)));
    }
    Ok(CommandOutput::text(out))
}

/// A line of the audit in words; about one lesson only, where one is named.
fn sentence(line: &Value, only: Option<&str>) -> String {
    let word = |name: &str| line[name].as_str().unwrap_or("?").to_owned();
    let run = if only.is_some() { format!(" in {}", word("run_id")) } else { String::new() };
    let ids = |list: &Value| -> Vec<String> {
        let all = list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
        all.filter(|id| only.is_none_or(|only| only == id)).collect()
    };
    if line["type"] == "effectiveness_check" {
        let overlap = &line["keyword_overlap_pct"];
        return match word("effectiveness").as_str() {
            "helpful" => {
                format!("{} helped{run}: nothing like it came up ({overlap} % of words)", word("lesson_id"))
            }
            _ => format!(
                "{} did not help{run}: it came up all the same ({overlap} % of words)",
                word("lesson_id")
            ),
        };
    }
    if line["type"] == "learned" {
        let lessons = line["lessons"].as_array().into_iter().flatten();
        let lessons = lessons.filter(|lesson| only.is_none_or(|only| lesson["id"] == only));
        let told: Vec<String> = lessons.map(step).collect();
        let what = if told.is_empty() { "nothing new".to_owned() } else { told.join("; ") };
        return format!("learned{run}: {what}");
    }
    let told: Vec<String> = ids(&line["lessons_injected"])
        .into_iter()
        .map(|id| format!("{id} ({})", line["why"][&id].as_str().unwrap_or("?")))
        .collect();
    let more = line["fitted"].as_u64().filter(|_| only.is_none());
    let more = more.map_or_else(String::new, |fitted| format!("; {fitted} would have fitted"));
    format!("{} was given{run}: {}{more}", word("archetype"), told.join(", "))
}

fn step(lesson: &Value) -> String {
    let word = |name: &str| lesson[name].as_str().unwrap_or("?").replace('_', " ");
    let archived = lesson["archived"].as_str().map_or_else(String::new, |_| ", archived".to_owned());
    format!(
        "{} {}, now {}{archived}",
        lesson["id"].as_str().unwrap_or("?"),
        word("what"),
        lesson["frequency"]
    )
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let message = error.to_string();
        match error {
            Error::Files(error) => error.into(),
            Error::Lock(_) => Failure::new(30, "environment", message, "Try again in a moment."),
            Error::Pending { .. } => Failure::new(40, "damaged", message, "Nothing was touched."),
        }
    }
}
