//! Performs the orders of a loop: a block in the cycle file, the Judge's checks, a snapshot.

use std::fmt::Write;

use archeflow_core::event::{
    BatteryDone, BatteryStart, Checked, LoopAppend, LoopAppended, LoopArchive, LoopArchived, LoopEdited,
    Report,
};
use archeflow_core::model::{CheckEnd, LoopPolicy, Seq};

use super::battery::{self, BatteryResults, CheckRun, Spotted, Wanted};
use super::cycle::{CycleFile, Error};
use super::{archive, hear};
use crate::executors::DeskError;
use crate::executors::context::artifact_text;
use crate::store::files;
use crate::world::World;
use crate::{clock, failpoint};

/// What of an artifact goes into the file; the rest stays in the artifact.
const BODY_AT_MOST: usize = 200_000;

/// `heard` is the digest of what was last read from the file.
pub(crate) fn append(world: &World, seq: Seq, order: &LoopAppend, heard: &str) -> Report {
    let body = match body(world, order) {
        Ok(body) => body,
        Err(error) => return edited(seq, 0, 0, error.to_string()),
    };
    let appended = file(world).append(&order.seal, order.speaker, &body);
    failpoint::pass("loop.appended");
    match appended {
        Ok(seen) => {
            let theirs = seen.unread(heard).trim().chars().take(hear::TEXT_AT_MOST).collect();
            LoopAppended { start_seq: seq, seal: seen.past.seal, blocks: order.number, theirs }.into()
        }
        Err(Error::Edited(found)) => edited(seq, found.first, found.last, found.what),
        Err(error @ Error::NotText { line }) => edited(seq, line, line, error.to_string()),
        Err(error @ (Error::Restless | Error::Files(_) | Error::Lock(_))) => {
            edited(seq, 0, 0, error.to_string())
        }
    }
}

fn body(world: &World, order: &LoopAppend) -> Result<String, DeskError> {
    let said = order.artifact.as_ref().map(|artifact| artifact_text(world, artifact)).transpose()?;
    let said = said.map(|said| shortened(&said)).unwrap_or_default();
    Ok(match (said.trim_end(), order.text.as_str()) {
        ("", text) => text.to_owned(),
        (said, "") => format!("{said}\n"),
        (said, text) => format!("{said}\n\n{text}"),
    })
}

/// The end is kept: it contains the block.
fn shortened(said: &str) -> String {
    let Some(over) = said.len().checked_sub(BODY_AT_MOST).filter(|over| *over > 0) else {
        return said.to_owned();
    };
    let from = (over..said.len()).find(|at| said.is_char_boundary(*at)).unwrap_or(0);
    format!("[{from} bytes are left out here; the whole answer is in the run's artifacts]\n{}", &said[from..])
}

fn edited(seq: Seq, first: usize, last: usize, what: String) -> Report {
    let narrow = |line: usize| u32::try_from(line).unwrap_or(u32::MAX);
    LoopEdited { start_seq: seq, first: narrow(first), last: narrow(last), what }.into()
}

fn file(world: &World) -> CycleFile {
    CycleFile::new(world.places.root(), &world.state)
}

pub(crate) fn snapshot(world: &World, seq: Seq, order: &LoopArchive) -> LoopArchived {
    let date = clock::date(clock::now());
    let kept = archive::write(&file(world), &date, order.ending, &order.blockers);
    failpoint::pass("loop.kept");
    match kept {
        Ok(path) => LoopArchived { start_seq: seq, path, trouble: String::new() },
        Err(error) => LoopArchived { start_seq: seq, path: String::new(), trouble: error.to_string() },
    }
}

/// `None` if the user stopped it: it runs again when the loop is resumed.
pub(crate) fn battery(
    world: &World,
    seq: Seq,
    order: &BatteryStart,
    policy: &LoopPolicy,
) -> Option<BatteryDone> {
    let begun = std::time::Instant::now();
    let wanted = Wanted {
        seq,
        base: &order.base,
        commit: &order.commit,
        tests: order.test_command.as_deref(),
        limit_ms: order.limit_ms,
        policy,
    };
    let report = battery::run(world, wanted)?;
    failpoint::pass("battery.ran");
    let artifact = format!("check-battery-{seq}.md");
    // For people only: what counts is in the log.
    let _ = files::write_atomic(&world.artifacts().join(&artifact), page(&report).as_bytes());
    Some(BatteryDone {
        start_seq: seq,
        commit: order.commit.clone(),
        tests: Checked { part: order.part, ..checked(&report, &["tests"]) },
        linter: checked(&report, &["linter", "formatter"]),
        security: scanned(&report),
        duration_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
        artifact,
    })
}

/// Several commands as one check: failed ones come first.
fn checked(report: &BatteryResults, whats: &[&str]) -> Checked {
    let ran: Vec<&CheckRun> = report.ran.iter().filter(|ran| whats.contains(&ran.what)).collect();
    let end = report.end(whats);
    let told = ran.iter().filter(|ran| ran.end == end && (end != CheckEnd::Passed || whats.len() == 1));
    let tail: Vec<String> = told.map(|ran| check_output(ran)).filter(|said| !said.is_empty()).collect();
    let commands = ran.iter().map(|ran| ran.command.as_str()).filter(|command| !command.is_empty());
    let counts = ran.iter().find_map(|ran| ran.counts);
    Checked {
        end,
        command: commands.collect::<Vec<_>>().join("; "),
        part: false,
        passed: counts.map(|counts| counts.passed),
        failed: counts.map(|counts| counts.failed),
        tail: tail.join("\n"),
    }
}

fn check_output(ran: &CheckRun) -> String {
    match (ran.why.as_str(), ran.tail.as_str()) {
        ("", tail) => tail.to_owned(),
        (why, "") => format!("{}: {why}", ran.what),
        (why, tail) => format!("{}: {why}\n{tail}", ran.what),
    }
}

fn scanned(report: &BatteryResults) -> Checked {
    let checked = |end, tail| Checked { end, tail, ..Checked::default() };
    match &report.scan {
        Ok(scan) if scan.spotted.is_empty() => checked(CheckEnd::Passed, String::new()),
        Ok(scan) => {
            let mut tail: Vec<String> = scan.spotted.iter().map(line).collect();
            if scan.left_out > 0 {
                tail.push(format!("and {} more", scan.left_out));
            }
            checked(CheckEnd::Failed, tail.join("\n"))
        }
        Err(why) => checked(CheckEnd::Missing, why.clone()),
    }
}

fn line(found: &Spotted) -> String {
    let Spotted { class, kind, path, line, shown } = found;
    format!("{path}:{line}: {}: {kind} ({shown})", class.name())
}

/// All of it, for people.
fn page(report: &BatteryResults) -> String {
    let mut text = "# What was run\n".to_owned();
    for ran in &report.ran {
        let exit = ran.exit.map(|code| format!(", exit {code}")).unwrap_or_default();
        let _ = write!(text, "\n## {}: {}{exit}\n\n", ran.what, ran.end.name());
        if !ran.command.is_empty() {
            let _ = writeln!(text, "    {}\n", ran.command.replace('\n', "\n    "));
        }
        let _ = writeln!(text, "{}", check_output(ran));
    }
    let scan = scanned(report);
    let _ = write!(text, "\n## security scan: {}\n\n{}\n", scan.end.name(), scan.tail);
    text
}
