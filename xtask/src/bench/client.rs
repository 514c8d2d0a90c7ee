//! What we add to a step of a client: the engine's time with all that a client brings along, a home, a login, a
//! stream of JSON lines, a conversation to remember.
//!
//! This program is on the path under the client's name and records when it begins and ends, so that the
//! client's own time, its start-up included, is never part of a pause. In between it prints a recording of the real
//! client, or, where `cargo xtask clients` has fetched it, starts the real one, which asks a scripted model.

use std::fs::{create_dir, hard_link};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use serde_json::{Value, json};

use super::agent::{self, Appearance, appearances};
use super::engine::{best_pauses, command_with, millis, pauses, sample};
use super::{Bench, Goal, Row, Rows};
use crate::clients;
use crate::model::{Model, Reply};
use crate::wire::signed;

const NAME: &str = "claude";
/// Between two readers; what a Maker's working copy takes is measured with the engine.
const STEP: (&str, &str) = ("explorer", "creator");
const RUNS: usize = 6;
const REAL_RUNS: usize = 3;
const BARE_STEPS: usize = 60;

pub(super) fn measure(bench: &Bench) -> Rows {
    let floor = bare_loop(bench)?;
    let mut seen = Vec::new();
    for n in 0..RUNS {
        seen.push(ClientFolder::new(bench, &format!("recorded-{n}"), None)?.run(bench, &[])?);
    }
    let mut rows = vec![row("recorded", &seen, floor)?];
    let real = clients::claude(&bench.root);
    if real.is_file() {
        let seen = (0..REAL_RUNS).map(|n| with_real(bench, &real, n)).collect::<Result<Vec<_>, _>>()?;
        rows.push(row("real", &seen, floor)?);
    } else {
        println!("(no real client is measured: `cargo xtask clients` fetches them)");
    }
    Ok(rows)
}

/// The shortest pause of a loop that does only the necessary work.
fn bare_loop(bench: &Bench) -> Result<u128, Box<dyn std::error::Error>> {
    let place = ClientFolder::new(bench, "bare", None)?;
    for _ in 0..BARE_STEPS {
        place.bare_step()?;
    }
    Ok(pauses(&place.seen()?).into_values().flatten().min().ok_or("the bare loop has no steps")?)
}

fn with_real(bench: &Bench, real: &Path, n: usize) -> Result<Vec<Appearance>, Box<dyn std::error::Error>> {
    let say = |role: &str| Reply::Say(agent::answer(role, "2").to_owned());
    let work = "echo work > work-1.txt; mkdir tests; echo true > tests/test-1.sh";
    let work = Reply::Use("Bash", json!({"command": work, "description": "work"}));
    let model = Model::new(&[
        ("explorer", &[say("explorer")]),
        ("creator", &[say("creator")]),
        ("maker", &[work, say("maker")]),
        ("*", &[say("guardian")]),
    ]);
    let env = [("ANTHROPIC_API_KEY", "test"), ("ANTHROPIC_BASE_URL", &model.address)];
    ClientFolder::new(bench, &format!("real-{n}"), Some(real))?.run(bench, &env)
}

fn row(which: &str, seen: &[Vec<Appearance>], floor: u128) -> Result<Row, Box<dyn std::error::Error>> {
    let (from, to) = STEP;
    let best = best_pauses(seen).remove(&(from.to_owned(), to.to_owned())).ok_or("no such step was seen")?;
    Ok(Row {
        what: format!("client's step ({which}): {from} -> {to}"),
        floor: Some(millis(floor)),
        ours: millis(best.saturating_sub(floor)),
        unit: "ms",
        goal: Goal::AtMost(5.0),
    })
}

/// A folder with a path on which this program is the client, and with what it writes down.
struct ClientFolder {
    folder: PathBuf,
}

impl ClientFolder {
    fn new(
        bench: &Bench,
        name: &str,
        real: Option<&Path>,
    ) -> Result<ClientFolder, Box<dyn std::error::Error>> {
        let folder = bench.folder.path().join(format!("client-{name}"));
        for part in ["", BIN, SEEN] {
            create_dir(folder.join(part))?;
        }
        // A link of its own: the kernel gives the name by which a program was started.
        hard_link(&bench.me, folder.join(BIN).join(NAME))?;
        if let Some(real) = real {
            std::os::unix::fs::symlink(real, folder.join(REAL))?;
        }
        Ok(ClientFolder { folder })
    }

    fn seen(&self) -> std::io::Result<Vec<Appearance>> {
        appearances(&self.folder.join(SEEN))
    }

    /// Starts it, feeds it, takes what it prints.
    fn bare_step(&self) -> Result<(), Box<dyn std::error::Error>> {
        let mut child = Command::new(self.folder.join(BIN).join(NAME))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        child.stdin.take().ok_or("no input")?.write_all(&[b'x'; 8_000])?;
        child.stdout.take().ok_or("no output")?.read_to_end(&mut Vec::new())?;
        child.wait()?;
        Ok(())
    }

    fn run(
        &self,
        bench: &Bench,
        env: &[(&str, &str)],
    ) -> Result<Vec<Appearance>, Box<dyn std::error::Error>> {
        let repo = self.folder.join("repo");
        sample(&repo)?;
        let machines = std::env::var_os("PATH").unwrap_or_default();
        let path = std::iter::once(self.folder.join(BIN)).chain(std::env::split_paths(&machines));
        let mut command = command_with(bench, &repo, NAME);
        command.env("PATH", std::env::join_paths(path)?).env("HOME", self.folder.join("home"));
        let output = command.envs(env.iter().copied()).output()?;
        let seen = self.seen()?;
        if seen.len() < 4 {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(format!("a run sent {} clients, {}:\n{said}", seen.len(), output.status).into());
        }
        Ok(seen)
    }
}

const BIN: &str = "bin";
const SEEN: &str = "seen";
/// Where the real client is, if it is to be started.
const REAL: &str = "real";

/// Plays the client, if that is the name this program was started by.
pub(crate) fn relay() -> Option<ExitCode> {
    let me = std::env::current_exe().ok()?;
    if me.file_name()? != NAME {
        return None;
    }
    if std::env::args().any(|arg| arg == "--version") {
        println!("2.1.325 (Claude Code)");
        return Some(ExitCode::SUCCESS);
    }
    let folder = me.parent()?.parent()?;
    let real = folder.join(REAL);
    let code = agent::appear(&folder.join(SEEN), |role, cycle| {
        if real.exists() {
            let status = Command::new(&real).args(std::env::args_os().skip(1)).status();
            return if status.is_ok_and(|status| status.success()) { 0 } else { 1 };
        }
        let answer = signed(agent::act(role, cycle), &agent::brief());
        let _ = std::io::stdout().write_all(stream(&answer).as_bytes());
        0
    });
    Some(ExitCode::from(code))
}

/// What the real client printed once, with this as its last words.
fn stream(answer: &str) -> String {
    let recording = include_str!("../../../host/tests/captures/claude/success.jsonl");
    let mut lines: Vec<&str> = recording.lines().collect();
    let last = lines.pop().unwrap_or_default();
    let mut result: Value = serde_json::from_str(last).unwrap_or_default();
    result["result"] = json!(answer);
    let result = result.to_string();
    lines.push(&result);
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recording_ends_with_the_answer() {
        let stream = stream("STATUS: DONE\n");
        let last: Value =
            stream.lines().last().and_then(|line| serde_json::from_str(line).ok()).unwrap_or_default();
        assert_eq!((&last["type"], &last["result"]), (&json!("result"), &json!("STATUS: DONE\n")));
        assert!(stream.lines().count() > 4);
    }
}
