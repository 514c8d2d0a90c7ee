//! Performs the orders of a loop: a block in the cycle file, the Judge's checks, a snapshot.

use std::fmt::Write;

use archeflow_core::event::{
    BatteryDone, BatteryStart, Checked, LoopAppend, LoopAppended, LoopArchive, LoopArchived, LoopEdited,
    Report,
};
use archeflow_core::model::{CheckEnd, LoopPolicy, Seq};
use archeflow_core::strategies::agent_loop::rules::leaks::{self, LeakKind};

use super::battery::{self, BatteryResults, CheckRun, OLD_TESTS, Spotted, Wanted};
use super::cycle::{CycleFile, Error};
use super::{archive, hear, restore};
use crate::executors::DeskError;
use crate::executors::context::{artifact_text, diff_between};
use crate::store::files;
use crate::world::World;
use crate::{clock, failpoint};

/// What of an artifact goes into the file; the rest stays in the artifact.
const BODY_AT_MOST: usize = 200_000;

/// What of a step's diff goes into the file.
const DIFF_AT_MOST: usize = 60_000;

/// `heard` is the digest of what was last read from the file.
pub(crate) fn append(world: &World, seq: Seq, order: &LoopAppend, heard: &str) -> Report {
    let body = match body(world, order) {
        Ok(body) => body,
        Err(error) => return edited(seq, 0, 0, error.to_string()),
    };
    let file = file(world);
    let appended = match file.append(&order.seal, order.speaker, &body) {
        // L-06: a file that is gone is rendered again; so is told apart what was rendered before a crash.
        Err(Error::Edited(found)) => match restore::restore(world, &file, seq) {
            Some(seal) => file.append(&seal, order.speaker, &body).map_err(|error| match error {
                Error::Edited(_) => Error::Edited(found),
                other @ (Error::NotText { .. } | Error::Restless | Error::Files(_) | Error::Lock(_)) => other,
            }),
            None => Err(Error::Edited(found)),
        },
        other => other,
    };
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

pub(super) fn body(world: &World, order: &LoopAppend) -> Result<String, DeskError> {
    let said = order.artifact.as_ref().map(|artifact| artifact_text(world, artifact)).transpose()?;
    let said = said.map(|said| shortened(&said)).unwrap_or_default();
    let mut above = order.above.trim_end().to_owned();
    if let Some(range) = &order.diff
        && let Some(diff) = diff_between(world, &range.from, &range.to)?
    {
        above.push_str(&in_a_fence(&without_credentials(&diff)));
    }
    if !above.is_empty() {
        above.push_str("\n\n");
    }
    Ok(match (said.trim_end(), order.text.as_str()) {
        ("", text) => format!("{above}{text}"),
        (said, "") => format!("{above}{said}\n"),
        (said, text) => format!("{above}{said}\n\n{text}"),
    })
}

/// The file is for people and other tools: a credential that a step adds is not copied into it.
fn without_credentials(diff: &str) -> String {
    let masked = |line: &str| {
        let found = leaks::leaks_in("", line.trim_end()).into_iter();
        let mut found =
            found.filter(|leak| leak.class == LeakKind::Credential).map(|leak| (leak.kind, leak.shown));
        match found.next() {
            Some((kind, shown)) => {
                let mark = line.chars().next().filter(|c| matches!(c, '+' | '-' | ' ')).unwrap_or(' ');
                format!("{mark}[a line with a credential is not shown: {kind}, {shown}]\n")
            }
            None => line.to_owned(),
        }
    };
    diff.split_inclusive('\n').map(masked).collect()
}

/// M-02: the step's diff, cut to what people read, in a fence that nothing in it closes.
fn in_a_fence(diff: &str) -> String {
    let longest = diff.split(|c| c != '~').map(str::len).max().unwrap_or(0);
    let fence = "~".repeat(longest.max(2) + 1);
    let cut = (0..=DIFF_AT_MOST.min(diff.len())).rev().find(|at| diff.is_char_boundary(*at)).unwrap_or(0);
    let left_out = diff.len() - cut;
    let note = if left_out > 0 {
        format!("[{left_out} bytes of the diff are left out here]\n")
    } else {
        String::new()
    };
    format!("What the step changes:\n\n{fence}diff\n{}\n{note}{fence}", diff[..cut].trim_end_matches('\n'))
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
    let file = file(world);
    if file.look().is_ok_and(|seen| seen.text.trim().is_empty()) {
        // What can't be rendered is archived as it is.
        let _ = restore::restore(world, &file, seq);
    }
    let kept = archive::write(&file, &date, order.ending, &order.blockers);
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
        part: order.part,
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
        old_tests: report.ran.iter().any(|ran| ran.what == OLD_TESTS).then(|| checked(&report, &[OLD_TESTS])),
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
    let failing = || ran.iter().filter(|ran| ran.end == CheckEnd::Failed);
    let lines = |of: fn(&CheckRun) -> &[String]| {
        failing().flat_map(|ran| of(ran)).take(LINES_AT_MOST).cloned().collect::<Vec<String>>()
    };
    // Several commands failed before only if all did that fail now.
    let before = ran.iter().filter(|ran| ran.end == end).map(|ran| ran.before.as_ref().map(|base| base.end));
    let before = before.reduce(|one, other| if one == other { one } else { None }).flatten();
    let counted = ran.iter().find_map(|ran| ran.before.as_ref());
    Checked {
        end,
        command: commands.collect::<Vec<_>>().join("; "),
        part: false,
        passed: counts.map(|counts| counts.passed),
        failed: counts.map(|counts| counts.failed),
        tail: tail.join("\n"),
        lines: lines(|ran| &ran.failing.new),
        lines_before: lines(|ran| &ran.failing.old),
        before,
        passed_before: counted.and_then(|base| base.passed),
        failed_before: counted.and_then(|base| base.failed),
    }
}

/// Lines that say what fails, in the log.
const LINES_AT_MOST: usize = 10;

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
