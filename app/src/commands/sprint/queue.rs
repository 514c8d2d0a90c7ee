//! Looking after the queue: adding, listing, importing, approving, cancelling.

use archeflow_core::projections::view::Tone;
use archeflow_core::sprint::queue::{DependencyState, Graph, ItemStatus, Priority, QueueItem, TaskSize};
use archeflow_host::sprint::queue::{Error, Extra, Queue, wish};
use archeflow_host::store::files;
use serde_json::{Value, json};

use super::{place, print_faults, projects};
use crate::args::{SprintAdd, SprintImport, SprintItems, SprintList};
use crate::commands::process_env;
use crate::failure::Failure;
use crate::output::CommandOutput;
use crate::render::text::{Paint, cut, pad, pad_after, safe_line, stdout_width};

/// A list that people write by hand is not larger.
const LARGEST_LIST: u64 = 16 << 20;

pub(super) fn add(args: &SprintAdd) -> Result<CommandOutput, Failure> {
    let place = place(&args.place)?;
    let lies = projects(&args.place, &place)?.join(&args.project);
    // The author of a proposal can't make the folder.
    if args.propose && !lies.is_dir() {
        let message = format!("there is no folder {}", lies.display());
        return Err(Failure::usage(message, "Name a project that is there; . is the folder of the queue"));
    }
    let extra = Extra { notes: args.notes.clone(), source: None };
    let item = place.change(|queue| {
        let item = QueueItem {
            id: args.id.clone().unwrap_or_else(|| queue.free_id(&wish(&args.project, &args.task))),
            project: args.project.clone(),
            task: args.task.clone(),
            priority: Priority::P2,
            estimate: TaskSize::M,
            status: if args.propose { ItemStatus::Proposed } else { ItemStatus::Pending },
            depends_on: args.depends_on.clone(),
            workflow: args.workflow.clone(),
            files: args.files.clone(),
        };
        let unfit = |what: &str, given: &str, known: Vec<&str>| Error::Unfit {
            id: item.id.clone(),
            why: format!("'{given}' is no {what}; known: {}", known.join(", ")),
        };
        let priority = Priority::parse(&args.priority)
            .ok_or_else(|| unfit("priority", &args.priority, Priority::ALL.map(Priority::name).to_vec()))?;
        let estimate = TaskSize::parse(&args.estimate)
            .ok_or_else(|| unfit("estimate", &args.estimate, TaskSize::ALL.map(TaskSize::name).to_vec()))?;
        if let Some(known) = queue.same_task(&args.project, &args.task).filter(|_| args.id.is_none()) {
            let why = format!("the same task is there already: {}", known.id);
            return Err(Error::Unfit { id: item.id.clone(), why });
        }
        if let Some(missing) = args.depends_on.iter().find(|on| queue.get(on).is_none()) {
            return Err(Error::Unknown { id: missing.clone() });
        }
        let item = QueueItem { priority, estimate, ..item };
        queue.add(item.clone(), &extra)?;
        Ok(item)
    })?;
    if !lies.is_dir() {
        tell!("note: there is no folder {} yet", safe_line(&lies.display().to_string()));
    }
    if args.place.json {
        return Ok(CommandOutput::json(json!({ "item": item })));
    }
    Ok(CommandOutput::text(format!("{} is {}: {}\n", item.id, item.status.name(), safe_line(&item.task))))
}

pub(super) fn list(args: &SprintList) -> Result<CommandOutput, Failure> {
    Ok(listed(args, &place(&args.place)?.read()?))
}

fn listed(args: &SprintList, queue: &Queue) -> CommandOutput {
    let graph = Graph::of(queue.items());
    let mut items: Vec<&QueueItem> = queue
        .items()
        .filter(|item| args.all || !matches!(item.status, ItemStatus::Completed | ItemStatus::Cancelled))
        .collect();
    items.sort_by_key(|item| (rank(item.status), item.priority));
    if args.place.json {
        let items: Vec<Value> = items.iter().map(|item| one_json(queue, &graph, item)).collect();
        let faults: Vec<Value> =
            queue.faults().iter().map(|fault| json!({ "number": fault.number, "why": fault.why })).collect();
        return CommandOutput::json(json!({
            "items": items, "faults": faults, "paused": queue.is_paused(), "cycle": graph.cycle(),
            "last_maintained": queue.last_maintained(),
        }));
    }
    let mut out = String::new();
    if items.is_empty() {
        put!(out, "Nothing is in the queue. Put something in: archeflow sprint add <project> \"<task>\"");
    } else {
        table(&mut out, &graph, &items);
    }
    print_faults(queue);
    if let Some(circle) = graph.cycle() {
        tell!("warning: these wait for each other for ever: {}", safe_line(&circle.join(" → ")));
    }
    if queue.is_paused() {
        tell!("note: the queue says PAUSED; nothing is started from it");
    }
    CommandOutput::text(out)
}

/// Takes over a plain list.
pub(super) fn import(args: &SprintImport) -> Result<CommandOutput, Failure> {
    let place = place(&args.place)?;
    let file = match &args.file {
        Some(file) => process_env()?.cwd.join(file),
        None => place.root().join(".archeflow/queue.md"),
    };
    let bytes = files::read_capped(&file, LARGEST_LIST)?;
    let text = String::from_utf8_lossy(&bytes);
    let status = if args.approve { ItemStatus::Pending } else { ItemStatus::Proposed };
    let imported = place.change(|queue| queue.import(&text, &args.project, status))?;
    let name = safe_line(&file.display().to_string());
    for fault in &imported.faults {
        tell!("warning: {name}:{}: {}", fault.line, safe_line(&fault.why));
    }
    if args.place.json {
        let faults: Vec<Value> =
            imported.faults.iter().map(|fault| json!({ "line": fault.line, "why": fault.why })).collect();
        return Ok(CommandOutput::json(
            json!({ "added": imported.added, "known": imported.known, "faults": faults }),
        ));
    }
    let mut out = added(&imported.added);
    if !imported.known.is_empty() {
        put!(out, "{} were in the queue already", imported.known.len());
    }
    Ok(CommandOutput::text(out))
}

/// What is new, and what to do about it.
pub(super) fn added(added: &[QueueItem]) -> String {
    let mut out = String::new();
    for item in added {
        put!(out, "{} is {}: {}", item.id, item.status.name(), cut(&safe_line(&item.task), 80));
    }
    if added.is_empty() {
        put!(out, "Nothing was added.");
    }
    if added.iter().any(|item| item.status == ItemStatus::Proposed) {
        put!(out, "Let them run: archeflow sprint approve <id>…");
    }
    out
}

/// One change for each of the items, all or none.
pub(super) fn each(
    args: &SprintItems,
    word: &str,
    change: fn(&mut Queue, &str) -> Result<(), Error>,
) -> Result<CommandOutput, Failure> {
    place(&args.place)?.change(|queue| args.ids.iter().try_for_each(|id| change(queue, id)))?;
    if args.place.json {
        return Ok(CommandOutput::json(json!({ "items": args.ids, "now": word })));
    }
    let mut out = String::new();
    for id in &args.ids {
        put!(out, "{}: {word}", safe_line(id));
    }
    Ok(CommandOutput::text(out))
}

/// Items that need a person first, finished ones last.
fn rank(status: ItemStatus) -> u8 {
    match status {
        ItemStatus::Running => 0,
        ItemStatus::Failed | ItemStatus::Blocked => 1,
        ItemStatus::Pending => 2,
        ItemStatus::Proposed => 3,
        ItemStatus::Completed => 4,
        ItemStatus::Cancelled => 5,
    }
}

fn one_json(queue: &Queue, graph: &Graph<'_>, item: &QueueItem) -> Value {
    let extra = queue.extra(&item.id);
    let waits = match graph.standing(item) {
        DependencyState::Waits(on) if item.status.is_open() => on,
        DependencyState::Waits(_) | DependencyState::Ready | DependencyState::Lost(_) => Vec::new(),
    };
    let mut object = json!(item);
    object["notes"] = extra.notes.into();
    object["source"] = extra.source.into();
    object["waits_for"] = waits.into();
    object
}

fn table(out: &mut String, graph: &Graph<'_>, items: &[&QueueItem]) {
    let paint = Paint::for_stdout();
    // There may be many: every text is made safe once.
    let names: Vec<(String, String)> =
        items.iter().map(|item| (safe_line(&item.id), safe_line(&item.project))).collect();
    let widest =
        |widths: &mut dyn Iterator<Item = usize>, title: &str| widths.max().unwrap_or(0).max(title.len());
    let id = widest(&mut names.iter().map(|(id, _)| id.chars().count()), "ITEM");
    let project = widest(&mut names.iter().map(|(_, project)| project.chars().count()), "PROJECT").min(24);
    let status = widest(&mut items.iter().map(|item| item.status.name().len()), "STATUS");
    let room = stdout_width().map_or(60, |wide| wide.saturating_sub(id + project + status + 18)).max(20);
    let heading = format!(
        "{}  {}  {}  PRIO  SIZE  TASK",
        pad("ITEM", id),
        pad("PROJECT", project),
        pad("STATUS", status)
    );
    put!(out, "{}", paint.dim(&heading));
    for (item, (item_id, item_project)) in items.iter().zip(&names) {
        let word = item.status.name();
        put!(
            out,
            "{item_id:<id$}  {:<project$}  {}  {}    {:<4}  {}",
            cut(item_project, project),
            pad_after(word, &paint.tone(tone(item.status), word), status),
            item.priority.name(),
            item.estimate.name(),
            cut(&safe_line(&item.task), room)
        );
        if item.depends_on.is_empty() || !item.status.is_open() {
            continue;
        }
        if let DependencyState::Waits(on) = graph.standing(item) {
            put!(out, "{}", paint.dim(&format!("{}  waits for {}", pad("", id), safe_line(&on.join(", ")))));
        }
    }
}

fn tone(status: ItemStatus) -> Tone {
    match status {
        ItemStatus::Completed => Tone::Good,
        ItemStatus::Proposed | ItemStatus::Blocked => Tone::Caution,
        ItemStatus::Pending | ItemStatus::Running | ItemStatus::Cancelled => Tone::Plain,
        ItemStatus::Failed => Tone::Bad,
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use archeflow_host::sprint::entries::looks;
    use archeflow_host::sprint::queue::QueueFolder;

    use super::*;
    use crate::args::SprintPlace;

    /// Every entry is looked at a few times, however many there are.
    #[test]
    fn m_n8_listing_a_queue_grows_in_proportion_to_it() {
        let work = |count: usize, json: bool| {
            let dir = tempfile::tempdir().unwrap();
            std::fs::create_dir_all(dir.path().join("docs/orchestra")).unwrap();
            let item = |n: usize| {
                json!({ "id": format!("i{n}"), "project": "p", "task": "t", "priority": "P1", "estimate": "S",
                        "status": "pending", "notes": "a note", "depends_on": [format!("i{}", n + 1)] })
            };
            let items: Vec<Value> = (0..count).map(item).collect();
            std::fs::write(
                dir.path().join("docs/orchestra/queue.json"),
                json!({ "items": items }).to_string(),
            )
            .unwrap();
            let place = SprintPlace { root: None, projects: None, json };
            let before = looks()?;
            let queue = QueueFolder::at(dir.path()).read().unwrap();
            listed(&SprintList { all: true, place }, &queue);
            Some(looks()? - before)
        };
        for json in [false, true] {
            // Only debug builds count.
            let Some((few, many)) = work(100, json).zip(work(1_000, json)) else { continue };
            assert!(few > 0 && many <= 10 * few, "{few} looks at 100 items, {many} at 1,000; JSON: {json}");
        }
    }
}
