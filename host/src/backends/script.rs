//! `script:<file>`: a readable file with the answers for all roles, for demos and tests.
//!
//! A play is a list of scenes. A scene begins with `== <role> [cycle=<n>] [purpose=<p>] [attempt=<n>] ==`; the first
//! scene whose conditions all hold is run. A scene is a list of actions, one a line; text follows as a block
//! between `<<END` and `END`:
//!
//! | action | does |
//! |---|---|
//! | `say <<END` | prints the block |
//! | `complain <<END` | prints the block on standard error |
//! | `write <path> <<END` | writes a file, with the folders it needs |
//! | `append <path> <<END` | adds to a file |
//! | `replace <path> <<END` | replaces the text before a line `=====` by the text after it |
//! | `delete <path>` | removes a file |
//! | `commit <message>` | commits everything in the working copy |
//! | `sh <command>` | runs a shell command and waits |
//! | `leave <command>` | starts a command in a session of its own and does not wait |
//! | `noise <bytes>` | prints that many bytes |
//! | `usage <input> <output> <dollars>` | reports token use |
//! | `sleep <milliseconds>` | waits |
//! | `hang` | waits for ever |
//! | `deaf` | ignores the request to end |
//! | `exit <code>` | ends at once |
//!
//! Lines that begin with `#` between actions are remarks. A role without a scene fails loudly.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::Invocation;
use crate::platform::children;

/// The hidden command with which this program runs a script.
pub const PLAY: &str = "__play";

pub(super) fn invocation(path: &Path, me: &Path) -> Invocation {
    Invocation { program: me.into(), args: vec![PLAY.into(), path.into()] }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{path}:{line}: {what}")]
    Play { path: String, line: usize, what: String },
    #[error("{path} has no scene for {role} (cycle {cycle}, purpose {purpose}, attempt {attempt})")]
    NoScene { path: String, role: String, cycle: u32, purpose: String, attempt: u32 },
    #[error("{0}: {1}")]
    Io(String, std::io::Error),
}

/// The agent that is asked for, from the environment every agent is given.
#[derive(Debug, Clone, Default)]
pub struct Cue {
    pub role: String,
    pub cycle: u32,
    pub purpose: String,
    pub attempt: u32,
    pub usage_file: PathBuf,
}

#[derive(Debug, PartialEq, Eq)]
struct Scene {
    role: String,
    cycle: Option<u32>,
    purpose: Option<String>,
    attempt: Option<u32>,
    actions: Vec<(usize, Action)>,
}

#[derive(Debug, PartialEq, Eq)]
enum Action {
    Say(String),
    Complain(String),
    Write(String, String),
    Append(String, String),
    Replace(String, String, String),
    Delete(String),
    Commit(String),
    Sh(String),
    Leave(String),
    Noise(u64),
    Usage(String),
    Sleep(u64),
    Hang,
    Deaf,
    Exit(i32),
}

/// Runs the scene that fits the cue in the current directory; returns the exit code.
pub fn play(path: &Path, cue: &Cue) -> Result<i32, Error> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| Error::Io(name.clone(), error))?;
    let scenes = parse(&name, &text)?;
    // The brief is read to its end, as a real agent would.
    let _ = std::io::stdin().lock().read_to_end(&mut Vec::new());
    let scene = scenes.iter().find(|scene| fits(scene, cue)).ok_or_else(|| Error::NoScene {
        path: name.clone(),
        role: cue.role.clone(),
        cycle: cue.cycle,
        purpose: cue.purpose.clone(),
        attempt: cue.attempt,
    })?;
    for (line, action) in &scene.actions {
        let failed =
            |error: std::io::Error| Error::Play { path: name.clone(), line: *line, what: error.to_string() };
        if let Some(code) = perform(action, cue).map_err(failed)? {
            return Ok(code);
        }
    }
    Ok(0)
}

/// Checks a play without playing it.
pub fn check(path: &Path) -> Result<usize, Error> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| Error::Io(name.clone(), error))?;
    parse(&name, &text).map(|scenes| scenes.len())
}

fn fits(scene: &Scene, cue: &Cue) -> bool {
    (scene.role == cue.role || scene.role == "*")
        && scene.cycle.is_none_or(|cycle| cycle == cue.cycle)
        && scene.purpose.as_ref().is_none_or(|purpose| *purpose == cue.purpose)
        && scene.attempt.is_none_or(|attempt| attempt == cue.attempt)
}

fn perform(action: &Action, cue: &Cue) -> std::io::Result<Option<i32>> {
    match action {
        Action::Say(text) => std::io::stdout().lock().write_all(text.as_bytes())?,
        Action::Complain(text) => std::io::stderr().lock().write_all(text.as_bytes())?,
        Action::Write(path, text) => {
            make_folder(path)?;
            std::fs::write(path, text)?;
        }
        Action::Append(path, text) => {
            make_folder(path)?;
            std::fs::OpenOptions::new().create(true).append(true).open(path)?.write_all(text.as_bytes())?;
        }
        Action::Replace(path, old, new) => {
            let before = std::fs::read_to_string(path)?;
            if !before.contains(old.as_str()) {
                return Err(std::io::Error::other(format!("{path} does not contain the text to replace")));
            }
            std::fs::write(path, before.replacen(old.as_str(), new, 1))?;
        }
        Action::Delete(path) => std::fs::remove_file(path)?,
        Action::Commit(message) => commit(message)?,
        Action::Sh(command) => shell(command)?,
        Action::Leave(command) => {
            let mut leave = Command::new("setsid");
            leave
                .args(["sh", "-c", command])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            children::spawn(&mut leave)?;
        }
        Action::Noise(bytes) => noise(*bytes)?,
        Action::Usage(json) => std::fs::write(&cue.usage_file, json)?,
        Action::Sleep(ms) => std::thread::sleep(Duration::from_millis(*ms)),
        Action::Hang => loop {
            std::thread::sleep(Duration::from_secs(3_600));
        },
        Action::Deaf => {
            crate::proc::signals::listen(|_| {})?;
        }
        Action::Exit(code) => return Ok(Some(*code)),
    }
    Ok(None)
}

/// Commits everything in the working copy.
pub(super) fn commit(message: &str) -> std::io::Result<()> {
    shell("git add -A")?;
    let mut commit = Command::new("git");
    commit.args(["commit", "-q", "--allow-empty", "-m", message]).stdin(Stdio::null());
    wait(&mut commit)
}

fn shell(command: &str) -> std::io::Result<()> {
    wait(Command::new("sh").args(["-c", command]).stdin(Stdio::null()))
}

fn wait(command: &mut Command) -> std::io::Result<()> {
    let mut child = children::spawn(command)?;
    let status = children::wait(&mut child)?;
    if status.success() {
        Ok(())
    } else {
        Err(std::io::Error::other(format!("{command:?} ended with {status}")))
    }
}

pub(super) fn make_folder(path: &str) -> std::io::Result<()> {
    Path::new(path).parent().map_or(Ok(()), std::fs::create_dir_all)
}

fn noise(bytes: u64) -> std::io::Result<()> {
    let line = [b"all work and no play makes a dull agent\n".as_slice(); 1_000].concat();
    let mut out = std::io::stdout().lock();
    let mut left = bytes;
    while left > 0 {
        let part = usize::try_from(left).unwrap_or(usize::MAX).min(line.len());
        out.write_all(line.get(..part).unwrap_or_default())?;
        left -= part as u64;
    }
    Ok(())
}

fn parse(path: &str, text: &str) -> Result<Vec<Scene>, Error> {
    let mut scenes: Vec<Scene> = Vec::new();
    let mut lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    while let Some((number, line)) = lines.next() {
        let fault = |what: String| Error::Play { path: path.to_owned(), line: number, what };
        let line = line.trim_end();
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(head) = line.strip_prefix("== ").and_then(|rest| rest.strip_suffix(" ==")) {
            scenes.push(scene(head).map_err(fault)?);
            continue;
        }
        let (line, block) = match line.rsplit_once("<<") {
            Some((before, end)) if !end.is_empty() && end.chars().all(char::is_alphanumeric) => (
                before.trim_end(),
                Some(read_block(&mut lines, end).ok_or_else(|| fault(format!("no {end} ends the block")))?),
            ),
            _ => (line, None),
        };
        let action = action(line.trim(), block.as_deref()).map_err(fault)?;
        let scene = scenes.last_mut().ok_or_else(|| fault("an action before the first scene".to_owned()))?;
        scene.actions.push((number, action));
    }
    Ok(scenes)
}

fn read_block<'a>(lines: &mut impl Iterator<Item = (usize, &'a str)>, end: &str) -> Option<String> {
    let mut block = String::new();
    for (_, line) in lines {
        if line.trim_end() == end {
            return Some(block);
        }
        block.push_str(line);
        block.push('\n');
    }
    None
}

fn scene(head: &str) -> Result<Scene, String> {
    let mut words = head.split_whitespace();
    let role = words.next().ok_or("a scene needs a role")?.to_owned();
    let mut scene = Scene { role, cycle: None, purpose: None, attempt: None, actions: Vec::new() };
    for word in words {
        let number = |value: &str| value.parse().map_err(|_| format!("'{value}' is not a number"));
        match word.split_once('=') {
            Some(("cycle", value)) => scene.cycle = Some(number(value)?),
            Some(("attempt", value)) => scene.attempt = Some(number(value)?),
            Some(("purpose", value)) => scene.purpose = Some(value.to_owned()),
            _ => return Err(format!("'{word}' is not a condition; known: cycle=, purpose=, attempt=")),
        }
    }
    Ok(scene)
}

fn action(line: &str, block: Option<&str>) -> Result<Action, String> {
    let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
    let rest = rest.trim();
    let text = || block.map(str::to_owned).ok_or(format!("'{verb}' needs a block: {verb} … <<END"));
    let need = |what: &str| {
        if rest.is_empty() { Err(format!("'{verb}' needs {what}")) } else { Ok(rest.to_owned()) }
    };
    let number = || rest.parse::<u64>().map_err(|_| format!("'{verb}' needs a number, not '{rest}'"));
    match verb {
        "say" => text().map(Action::Say),
        "complain" => text().map(Action::Complain),
        "write" => Ok(Action::Write(need("a path")?, text()?)),
        "append" => Ok(Action::Append(need("a path")?, text()?)),
        "replace" => {
            let block = text()?;
            let (old, new) =
                block.split_once("=====\n").ok_or("'replace' needs a line of ===== in its block")?;
            Ok(Action::Replace(need("a path")?, old.to_owned(), new.to_owned()))
        }
        "delete" => need("a path").map(Action::Delete),
        "commit" => need("a message").map(Action::Commit),
        "sh" => need("a command").map(Action::Sh),
        "leave" => need("a command").map(Action::Leave),
        "noise" => number().map(Action::Noise),
        "usage" => usage(rest).map(Action::Usage),
        "sleep" => number().map(Action::Sleep),
        "hang" => Ok(Action::Hang),
        "deaf" => Ok(Action::Deaf),
        "exit" => rest.parse().map(Action::Exit).map_err(|_| format!("'exit' needs a code, not '{rest}'")),
        _ => Err(format!(
            "unknown action '{verb}'; known: say, complain, write, append, replace, delete, commit, sh, leave, noise, \
             usage, sleep, hang, deaf, exit"
        )),
    }
}

fn usage(rest: &str) -> Result<String, String> {
    match rest.split_whitespace().collect::<Vec<_>>().as_slice() {
        [input, output, dollars] => {
            Ok(format!("{{\"input_tokens\": {input}, \"output_tokens\": {output}, \"cost_usd\": {dollars}}}"))
        }
        _ => Err("'usage' needs input tokens, output tokens and dollars".to_owned()),
    }
}
