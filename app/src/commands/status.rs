//! `archeflow status`: an inbox. First what needs a person, each with the command to type, then what runs, then what
//! ended last; with a name, one run.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use archeflow_core::model::{Outcome, Reason};
use archeflow_core::projections::inbox::{DamagedRun, InboxItem, InboxRun};
use archeflow_core::projections::view;
use archeflow_core::rules::run_names::{self, NamedRun};
use archeflow_core::run::Run;
use archeflow_host::open::Project;
use archeflow_host::store::{index, journal::Journal};
use archeflow_host::{clock, log};
use serde_json::{Value, json};

use crate::args::StatusArgs;
use crate::commands::list::{Around, ListedRun, UncheckedRun, ago, fold, look_around};
use crate::commands::views::{self, FleetView};
use crate::commands::{naming, open_project_to_read};
use crate::failure::Failure;
use crate::output::CommandOutput;
use crate::render::summary;
use crate::render::text::{Paint, cut, pad, pad_after, safe_line, stdout_width};

/// What is said about a run that is only shown.
const FOREIGN: &str = "foreign: this machine did not start it, so it is shown and never executed";

/// More runs than this that wait are not folded; `list` has them.
const MOST: usize = 50;

/// As many runs that have ended are listed; `list` has all.
const FINISHED: usize = 5;

pub(crate) fn run(args: &StatusArgs) -> Result<CommandOutput, Failure> {
    if let Some(fleet) = FleetView::asked_for(&args.view)? {
        return views::status::status(&fleet, args.id.as_deref(), args.place.json);
    }
    if let Some(name) = &args.id {
        let project = open_project_to_read(&args.place, false)?;
        let id = &naming::named(&project, name)?;
        let run = fold(&project, id)?;
        if args.place.json {
            return Ok(CommandOutput::json(one_json(&project, id, &run)));
        }
        let mut out = String::new();
        one(&mut out, project.is_own(id), id, &run);
        return Ok(CommandOutput::text(out));
    }
    let around = look_around(&args.place, args.place.repo.is_none())?;
    let inbox = Inbox::of(&around, args.place.repo.is_none(), args.all, args.place.json);
    if args.place.json {
        return Ok(CommandOutput::json(inbox.json(&around)?));
    }
    let mut out = String::new();
    inbox.print(&mut out, around.here.as_ref());
    around.print_missing();
    Ok(CommandOutput::text(out))
}

/// A run that waits for a person, as clients see it.
pub(crate) struct WaitingRun {
    /// What it waits for, in a word or two.
    pub(crate) status: String,
    pub(crate) task: String,
    pub(crate) question: Option<String>,
    /// The command to type.
    pub(crate) next: String,
}

/// What waits in this repository, without runs that came from elsewhere.
pub(crate) fn waiting(around: &Around) -> Vec<WaitingRun> {
    let inbox = Inbox::of(around, false, false, false);
    let own = inbox.active.into_iter().filter(|active| active.item.waiting && !active.seen.foreign);
    let told = own.map(|active| WaitingRun {
        status: word(&active.seen),
        task: active.seen.entry.task,
        question: active.item.question,
        next: active.item.next,
    });
    told.collect()
}

/// Everything that `status` lists, the newest first.
struct Inbox {
    active: Vec<Active>,
    finished: Vec<ListedRun>,
}

/// A run that is under way or waits, folded.
struct Active {
    seen: ListedRun,
    item: InboxItem,
}

impl Inbox {
    /// `everywhere`: also what other repositories wait for; `all`: also what ended there. `whole_ids`: for programs.
    fn of(around: &Around, everywhere: bool, all: bool, whole_ids: bool) -> Inbox {
        let here = around.here.as_ref().map(|project| project.places.root());
        let mut inbox = Inbox { active: Vec::new(), finished: Vec::new() };
        let runs = around.entries(everywhere);
        let shown = |seen: &UncheckedRun| all || here.is_none_or(|here| *here == *seen.root);
        let (mut folded, mut reviews, mut names) = (0, HashSet::new(), ShortNames::default());
        for seen in runs.iter().rev() {
            // A review is replaced by the next one of the same change.
            let replaced =
                seen.entry.status == "reviewed" && !reviews.insert((&*seen.root, seen.entry.task.as_str()));
            let ended = replaced || matches!(seen.entry.status.as_str(), "merged" | "dry_run");
            // Only what is listed is looked at, however many there are.
            let found = match ended {
                true if inbox.finished.len() < FINISHED && shown(seen) => {
                    Sorted::Finished(around.check(seen))
                }
                false if folded < MOST => {
                    folded += 1;
                    let id = &seen.entry.run_id;
                    let name = if whole_ids { id.clone() } else { names.of(id, &seen.root) };
                    sorted(around.check(seen), &name, here)
                }
                true | false => Sorted::Unread,
            };
            match found {
                Sorted::Active(active) => inbox.active.push(active),
                Sorted::Finished(seen) if all || here.is_none_or(|here| *here == *seen.root) => {
                    inbox.finished.push(seen);
                }
                Sorted::Finished(_) | Sorted::Unread => {}
            }
        }
        inbox.finished.truncate(FINISHED);
        inbox
    }

    fn groups(&self) -> [(&'static str, &'static str, Vec<&Active>); 2] {
        let (waiting, running) = self.active.iter().partition(|active| active.item.waiting);
        [("waiting", "Waiting for you", waiting), ("running", "Running", running)]
    }

    /// The newest run here as before, and all that are listed: `runs` by group, `now` what waits or runs.
    fn json(&self, around: &Around) -> Result<Value, Failure> {
        let latest = around.here.as_ref().and_then(|project| Some((project, latest_of(project)?)));
        let mut object = match &latest {
            Some((project, id)) => one_json(project, id, &fold(project, id)?),
            None => json!({ "run_id": null, "status": "none" }),
        };
        let mut runs = Vec::new();
        let mut add = |group: &str, mut run: Value| {
            run["group"] = group.into();
            runs.push(run);
        };
        for (group, _, some) in self.groups() {
            some.into_iter().for_each(|active| add(group, active.json()));
        }
        self.finished.iter().for_each(|seen| add("finished", seen.json()));
        object["now"] = self.active.iter().map(Active::json).collect();
        object["runs"] = Value::Array(runs);
        object["missing_repositories"] =
            around.missing.iter().map(|path| path.display().to_string()).collect();
        Ok(object)
    }

    fn print(&self, out: &mut String, here: Option<&Project>) {
        let paint = Paint::for_stdout();
        if self.active.is_empty() && self.finished.is_empty() {
            match here {
                Some(_) => put!(out, "No runs in this repository yet."),
                None => put!(out, "Nothing runs or waits for you."),
            }
            return;
        }
        let here = here.map(|project| project.places.root());
        for (group, title, some) in self.groups() {
            if some.is_empty() {
                if group == "waiting" {
                    put!(out, "Nothing waits for you.");
                }
                continue;
            }
            put!(out, "{}", paint.bold(title));
            some.into_iter().for_each(|active| active.print(out, paint, here));
        }
        if self.finished.is_empty() {
            return;
        }
        put!(out, "{}", paint.bold("Finished"));
        let widest = |of: &dyn Fn(&ListedRun) -> String| {
            self.finished.iter().map(|seen| of(seen).chars().count()).max().unwrap_or(0)
        };
        let now = clock::now();
        let (word, when) = (|seen: &ListedRun| word(seen), |seen: &ListedRun| ago(now, seen.at));
        let (word_wide, when_wide) = (widest(&word), widest(&when));
        for seen in &self.finished {
            let place = place_of(seen, here);
            let text = format!("{}  {place}{}", safe_line(&seen.entry.run_id), safe_line(&seen.entry.task));
            let room = stdout_width().unwrap_or(200).saturating_sub(word_wide + when_wide + 6);
            put!(
                out,
                "  {}  {}  {}",
                pad_after(&word(seen), &paint.tone(seen.tone(), &word(seen)), word_wide),
                paint.dim(&pad(&when(seen), when_wide)),
                cut(&text, room)
            );
        }
    }
}

fn word(seen: &ListedRun) -> String {
    seen.status().replace('_', " ")
}

/// The name of a repository that is not this one.
fn place_of(seen: &ListedRun, here: Option<&Path>) -> String {
    if here == Some(&*seen.root) { String::new() } else { format!("{}: ", seen.name()) }
}

/// What runs are called, the list of a repository read once.
#[derive(Default)]
struct ShortNames(HashMap<Arc<Path>, Vec<NamedRun>>);

impl ShortNames {
    fn of(&mut self, id: &str, root: &Arc<Path>) -> String {
        let known = self.0.entry(Arc::clone(root));
        let known = known.or_insert_with(|| naming::runs_in(&root.join(".archeflow/events")));
        let at = known.iter().position(|run| run.id == id);
        at.map_or_else(|| id.to_owned(), |at| run_names::short(at, known))
    }
}

/// Where a run belongs.
enum Sorted {
    Active(Active),
    Finished(ListedRun),
    /// It can't be read, or enough others are listed.
    Unread,
}

/// The run with what to do about it; without anything to do it is among those that have ended.
fn sorted(mut seen: ListedRun, name: &str, here: Option<&Path>) -> Sorted {
    let path = seen.root.join(".archeflow/events").join(format!("{}.jsonl", seen.entry.run_id));
    let (repository, here) = (&seen.root.display().to_string(), here == Some(&*seen.root));
    let run_id = seen.entry.run_id.as_str();
    let folded = Journal::read(&path)
        .map_err(|error| error.to_string())
        .and_then(|text| log::fold(&text).map_err(|error| error.to_string()));
    let run = match folded {
        Ok(run) => run,
        // One that was removed is not in the way of anything.
        Err(_) if !path.exists() => return Sorted::Unread,
        Err(why) => {
            let item = DamagedRun { run_id, name, repository, here, why: &why }.into();
            return Sorted::Active(Active { seen, item });
        }
    };
    let interrupted = seen.interrupted;
    let found = InboxItem::of(InboxRun { run_id, name, repository, here, interrupted, run: &run });
    let Some(mut item) = found else {
        if run.outcome.as_ref().is_some_and(|outcome| outcome.reason == Reason::Discarded) {
            Reason::Discarded.name().clone_into(&mut seen.entry.status);
        }
        return Sorted::Finished(seen);
    };
    if seen.foreign {
        FOREIGN.clone_into(&mut item.detail);
        item.next = format!("archeflow trust --run {name}");
    }
    Sorted::Active(Active { seen, item })
}

impl Active {
    fn json(&self) -> Value {
        let mut object = self.seen.json();
        let item = serde_json::to_value(&self.item).unwrap_or_default();
        if let (Value::Object(object), Value::Object(item)) = (&mut object, item) {
            object.extend(item);
        }
        object
    }

    fn print(&self, out: &mut String, paint: Paint, here: Option<&Path>) {
        let (seen, item) = (&self.seen, &self.item);
        let word = if item.paused && !seen.interrupted { "paused".to_owned() } else { word(seen) };
        let wide = stdout_width().unwrap_or(200).saturating_sub(4);
        let when = format!("{}  {}", ago(clock::now(), seen.at), safe_line(&seen.entry.run_id));
        put!(out, "  {}  {}", paint.tone(seen.tone(), &word), paint.dim(&when));
        put!(out, "    {}", cut(&format!("{}{}", place_of(seen, here), safe_line(&seen.entry.task)), wide));
        put!(out, "    {}", paint.dim(&cut(&safe_line(&item.detail), wide)));
        put!(out, "    {}", paint.accent(&safe_line(&item.next)));
    }
}

fn latest_of(project: &Project) -> Option<String> {
    Some(index::read(&project.places.events()).ok()?.runs.last()?.run_id.clone())
}

fn one_json(project: &Project, id: &str, run: &Run) -> Value {
    let code = run.outcome.as_ref().map_or(0, Outcome::exit_code);
    let mut object = summary::json(project.places.root(), id, run, run.outcome.as_ref(), code, None);
    if !project.is_own(id) {
        object["foreign"] = true.into();
    }
    object
}

fn one(out: &mut String, own: bool, id: &str, run: &Run) {
    let (title, second) = view::header(run);
    put!(out, "{}", safe_line(&title));
    put!(out, "Run ID: {id} | {second}");
    if !own {
        put!(out, "{FOREIGN}");
        put!(out, "  archeflow trust --run {id}  see what it would execute; take it over if it is yours");
        return;
    }
    match (&run.outcome, run.cycle()) {
        (Some(outcome), _) => {
            put!(
                out,
                "{} ({}): {}",
                outcome.status.name(),
                outcome.reason.name(),
                safe_line(&outcome.detail)
            );
            for line in [summary::parked(run), summary::reverted(run)].into_iter().flatten() {
                put!(out, "{line}");
            }
            for (command, meaning) in view::next_steps(id, run, outcome) {
                put!(out, "  {}  {meaning}", safe_line(&command));
            }
        }
        (None, Some(cycle)) => {
            let state = if run.paused.is_some() { "paused" } else { "not ended" };
            put!(out, "{state}: cycle {} of {}, {}", cycle.number, run.max_cycles, cycle.phase.name());
            for (_, start) in run.open_agents() {
                put!(out, "  {}", view::doing(start));
            }
            match &run.paused {
                Some(_) => put!(out, "  archeflow resume {id}"),
                None => put!(out, "  if no process drives it any more: archeflow resume {id}"),
            }
        }
        (None, None) => put!(out, "not begun: archeflow resume {id}"),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use std::fs;

    use super::{FINISHED, Inbox};
    use crate::commands::list::{Around, CHECKED};

    /// Only the runs that are listed, however many there are.
    #[test]
    fn bx_32_status_looks_into_as_many_runs_as_it_lists() {
        for (repositories, runs) in [(1, 10), (3, 100), (50, 40)] {
            let folder = tempfile::tempdir().unwrap();
            let root = |n: usize| {
                let root = folder.path().join(n.to_string());
                fs::create_dir_all(root.join(".archeflow/events")).unwrap();
                let line = |run: usize| {
                    let (status, ts) = ("merged", "2026-01-01T00:00:00Z");
                    let entry = serde_json::json!({ "run_id": format!("r{run}"), "status": status, "task": "t", "ts": ts });
                    format!("{entry}\n")
                };
                let lines: String = (0..runs).map(line).collect();
                fs::write(root.join(".archeflow/events/index.jsonl"), lines).unwrap();
                root
            };
            let around = Around::at((0..repositories).map(root).collect());
            let before = CHECKED.get();
            let inbox = Inbox::of(&around, true, true, true);
            let looked = CHECKED.get() - before;
            assert_eq!((inbox.finished.len(), looked), (FINISHED, FINISHED), "{repositories} x {runs}");
        }
    }
}
