//! Open findings and fixes are the same numbers wherever they are told: in the run, the report, the lines of the screen and the
//! commit. In every recorded journal, and in every run of `docs/rules/objections.md` and `stops.md`.

#![expect(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    clippy::disallowed_methods,
    reason = "a test that panics has failed, reads recorded journals and asks for one kind of line"
)]

mod common {
    #[expect(dead_code, reason = "other pages use more of the reader than this one")]
    pub(crate) mod page;
    #[expect(dead_code, reason = "other pages ask the world for more than this one")]
    pub(crate) mod world;
}

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use archeflow_core::event::{CycleBoundary, Decision, Entry, Event};
use archeflow_core::model::{PROGRAM, Phase, RunStatus, Severity, Strategy};
use archeflow_core::projections::commit_message;
use archeflow_core::projections::story::{State, Story};
use archeflow_core::projections::view;
use archeflow_core::run::Run;

use common::page::Page;
use common::world::World;

/// The tables of `docs/rules/stops.md`.
const STOPS: [&str; 9] = [
    "Cycles",
    "Approval",
    "Landing",
    "Agents that fail",
    "Pipeline",
    "Teams without a plan or a review",
    "Switched off",
    "Accounts",
    "What the Maker is told again",
];

#[test]
fn numbers_agree_in_every_recorded_journal() {
    let tests = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../app/tests");
    let mut journals = 0;
    for folder in ["recorded", "logs"] {
        for file in std::fs::read_dir(tests.join(folder)).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "jsonl") {
                agree(&journal(&path), Since::Earlier)
                    .unwrap_or_else(|why| panic!("{}: {why}", path.display()));
                journals += 1;
            }
        }
    }
    assert!(journals >= 4, "only {journals} journals were found");
}

#[test]
fn numbers_agree_in_every_run_of_the_rule_pages() {
    let played = |page: &str, tables: &[&str]| {
        let mut page = Page::open(page);
        for table in tables {
            page.check(table, |row| {
                let played = World::script(row.get("run"), row.get("reviews"), row.get("world")).play();
                agree(&played.log, Since::Now).unwrap_or_else(|why| row.fail(&why));
            });
        }
        page.close();
    };
    played("objections", &["Ends", "Who looks again"]);
    played("stops", &STOPS);
}

fn journal(path: &Path) -> Vec<Entry> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            let name = line["type"].as_str().unwrap();
            Entry {
                seq: line["seq"].as_u64().unwrap(),
                at: 0,
                parent: serde_json::from_value(line["parent"].clone()).unwrap(),
                phase: Phase::ALL.into_iter().find(|phase| line["phase"] == phase.name()).unwrap(),
                agent: line["agent"].as_str().map(str::to_owned),
                event: Event::read(name, line["data"].clone()).unwrap().unwrap(),
            }
        })
        .collect()
}

/// By which version a log was written. Earlier ones noted a fix only where the Maker claimed it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Since {
    Earlier,
    Now,
}

/// Counted from the lines, and compared with what everybody else says.
fn agree(log: &[Entry], since: Since) -> Result<(), String> {
    let mut run = Run::default();
    let (mut fixes, mut screen) = (0, String::new());
    let mut ends: BTreeMap<u32, &CycleBoundary> = BTreeMap::new();
    for entry in log {
        run.apply(entry);
        match &entry.event {
            Event::Decision(Decision::FixApplied(_)) => fixes += 1,
            Event::Decision(Decision::CycleBoundary(boundary)) => {
                ends.insert(boundary.cycle, boundary);
                screen = view::line(&run, entry, None).map(|line| line.outcome).unwrap_or_default();
            }
            _ => {}
        }
    }
    let story = Story::of("run", log);
    same("the run's fixes", run.fixes_total, fixes)?;
    same("the report's fixes", story.overview.fixes, fixes)?;
    let of_cycles: u32 =
        story.cycles.iter().filter_map(|cycle| cycle.end.as_ref()).map(|end| end.fixes).sum();
    same("the fixes of the report's cycles", of_cycles, fixes)?;
    same("the fixes of the boundaries", ends.values().map(|end| end.fixes_applied).sum(), fixes)?;
    if let Some(complete) = &run.complete {
        same("the fixes of the end", complete.fixes_total, fixes)?;
    }
    if story.overview.strategy == Strategy::Pdca && since == Since::Now {
        // What is gone from one cycle to the next; a pipeline repairs within its cycle.
        // Tests that fail are listed as open and resolved, and are nobody's fix.
        let reviewed = story.lives.iter().filter(|life| !life.file.is_empty() || life.source != [PROGRAM]);
        let states = reviewed.flat_map(|life| &life.states);
        let resolved = states.filter(|state| **state == State::Resolved).count();
        same("the report's resolved findings", count(resolved), fixes)?;
    }
    open_ones_agree(&run, &story, &screen)
}

/// Where the last cycle has come to its end.
fn open_ones_agree(run: &Run, story: &Story, screen: &str) -> Result<(), String> {
    let Some(last) = run.cycle().and_then(|cycle| cycle.boundary.as_ref()) else { return Ok(()) };
    let open = count(last.open.len());
    same(
        "the report's open findings",
        count(story.lives.iter().filter(|life| life.is_open()).count()),
        open,
    )?;
    let of = |severity| last.open.iter().filter(|found| found.severity == severity).count();
    let counts = format!("{} CRITICAL, {} WARNING, ", of(Severity::Critical), of(Severity::Warning));
    if !screen.contains(&counts) {
        return Err(format!("the screen says '{screen}', but {counts}are open"));
    }
    let mut commit = commit_message::landing(run, "run");
    commit.retain(|c| c != '\n');
    let fixed = if run.fixes_total == 1 { "finding" } else { "findings" };
    let counts = format!("{} {fixed} fixed, {open} open", run.fixes_total);
    if !commit.contains(&counts) {
        return Err(format!("the commit does not say '{counts}': {commit}"));
    }
    let Some(complete) = &run.complete else { return Ok(()) };
    same("the findings of the end", count(complete.unresolved.len()), open)?;
    if complete.status == RunStatus::Merged {
        let gravest = last.open.iter().map(|found| found.severity).max();
        if story.overview.gravest_open != gravest {
            return Err(format!("the gravest is {gravest:?}, not {:?}", story.overview.gravest_open));
        }
    }
    Ok(())
}

fn same(what: &str, told: u32, counted: u32) -> Result<(), String> {
    if told == counted { Ok(()) } else { Err(format!("{what}: {told} instead of {counted}")) }
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap()
}
