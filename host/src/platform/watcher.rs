//! A process of our own that ends our agents when we are killed, for systems whose kernel does not.
//!
//! The program starts itself with [`ARGUMENT`] and keeps the writing end of the watcher's standard input. Every
//! leader of a session that must not outlive us is written there when it starts and again when it has been waited
//! for. The end of the input is the end of the program, however it came: the watcher then kills the sessions that
//! are still open, and what descends from them. It is a group of its own, so Ctrl-C does not reach it.
//!
//! Linux needs none of this and starts no watcher; it runs the same code in the tests.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, Write};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::children;
use super::process::{self, Pid, Signal};
use super::table::{self, Process, ProcessId};

/// The hidden subcommand that is the watcher.
pub const ARGUMENT: &str = "__watcher";

/// How often new members of the sessions are looked for before all are killed.
const FREEZES: usize = 16;

static INPUT: Mutex<Option<ChildStdin>> = Mutex::new(None);

/// Starts the watcher, once. Without it agents outlive a killed program until the run is resumed.
pub fn start() {
    let mut input = lock();
    if input.is_some() {
        return;
    }
    let Ok(program) = std::env::current_exe() else { return };
    let mut command = Command::new(program);
    command.arg(ARGUMENT).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).current_dir("/");
    // Never waited for: it ends after us.
    *input =
        children::spawn(process::own_group(&mut command)).ok().and_then(|mut watcher| watcher.stdin.take());
}

/// Says that this leader of a session must not outlive us.
pub fn cover(leader: Pid) {
    if let (Some(input), Some(found)) = (lock().as_mut(), Process::read(leader)) {
        let _ = input.write_all(format!("+{} {}\n", found.number(), found.start).as_bytes());
    }
}

/// Reports that a process was waited for; an unknown one is ignored.
pub fn uncover(number: u32) {
    if let Some(input) = lock().as_mut() {
        let _ = input.write_all(format!("-{number}\n").as_bytes());
    }
}

fn lock() -> MutexGuard<'static, Option<ChildStdin>> {
    INPUT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The watcher itself: reads to the end of its input, then ends the sessions that are left. Says how many processes
/// it killed.
pub fn watch(input: impl BufRead) -> usize {
    let mut leaders = BTreeMap::new();
    for line in input.lines().map_while(Result::ok) {
        note(&line, &mut leaders);
    }
    end(&leaders)
}

/// One line of the input. A line that was cut off by the end is ignored.
fn note(line: &str, leaders: &mut BTreeMap<i32, u64>) {
    let number = |text: &str| text.parse::<i32>().ok();
    if let Some((pid, start)) = line.strip_prefix('+').and_then(|rest| rest.split_once(' ')) {
        if let (Some(pid), Ok(start)) = (number(pid), start.parse()) {
            leaders.insert(pid, start);
        }
    } else if let Some(pid) = line.strip_prefix('-').and_then(number) {
        leaders.remove(&pid);
    }
}

/// Stops before it kills, because a process that is stopped cannot fork.
fn end(leaders: &BTreeMap<i32, u64>) -> usize {
    let mut frozen: BTreeMap<ProcessId, Process> = BTreeMap::new();
    for _ in 0..FREEZES {
        let table = table::all();
        let roots: Vec<Process> = table.iter().filter(|one| is_in(one, leaders, &table)).copied().collect();
        let mut members: Vec<Process> = table::families(&table, &roots);
        members.retain(|member| !frozen.contains_key(&member.id()));
        if members.is_empty() {
            break;
        }
        members.iter().for_each(|member| member.signal(Signal::STOP));
        frozen.extend(members.into_iter().map(|member| (member.id(), member)));
    }
    frozen.values().for_each(|member| member.signal(Signal::KILL));
    frozen.len()
}

/// In a session that one of the leaders opened. A number is not reused while its session has members, so a
/// living process of the leader's number that began at another time means that the session is another one.
fn is_in(process: &Process, leaders: &BTreeMap<i32, u64>, table: &[Process]) -> bool {
    let Some(start) = leaders.get(&process.session) else { return false };
    let leader = table.iter().find(|one| one.number() == process.session);
    process.start >= *start && leader.is_none_or(|leader| leader.start == *start)
}

/// The living processes of these sessions, for the sweep of systems that adopt no orphans.
pub(crate) fn members(sessions: &BTreeSet<i32>) -> Vec<Process> {
    table::all().into_iter().filter(|one| !one.dead && sessions.contains(&one.session)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{self, Cursor};
    use std::process::Child;

    fn leader() -> io::Result<Child> {
        let mut command = Command::new("sleep");
        command.arg("600");
        process::own_session(&mut command);
        command.spawn()
    }

    fn line(child: &Child) -> String {
        let found = Process::read(Pid::from_child(child)).expect("it runs");
        format!("+{} {}\n", found.number(), found.start)
    }

    #[test]
    fn the_end_of_the_input_ends_covered_sessions_and_no_others() -> io::Result<()> {
        let (mut covered, mut waited_for, mut other) = (leader()?, leader()?, leader()?);
        let stale = format!("+{} 0\n", other.id());
        let input =
            format!("{}{}{stale}-{}\nnonsense\n+12", line(&covered), line(&waited_for), waited_for.id());
        assert_eq!(watch(Cursor::new(input)), 1, "only the covered one");
        assert_eq!(process::killed_by(covered.wait()?), Some(9));
        for child in [&mut waited_for, &mut other] {
            assert!(child.try_wait()?.is_none(), "it still runs");
            child.kill()?;
            child.wait()?;
        }
        Ok(())
    }
}
