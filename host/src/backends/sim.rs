//! `sim:<file>`: agents that take every role by chance, with error rates that are known. What they answer is
//! decided in [`archeflow_core::eval::sim`]; here it is read, written and printed.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::path::Path;

use archeflow_core::eval::sim::{self, SimCall, SimSetup};

use super::Invocation;
use super::script::{self, Cue};

/// The hidden command with which this program runs a simulated agent.
pub const SIM: &str = "__sim";

/// The longest setup that is read: the files of two solutions.
const MOST_BYTES: u64 = 64 * 1024 * 1024;

pub(super) fn invocation(path: &Path, me: &Path) -> Invocation {
    Invocation { program: me.into(), args: vec![SIM.into(), path.into()] }
}

#[derive(Debug, thiserror::Error)]
#[error("{path}: {what}")]
pub struct SimError {
    path: String,
    what: String,
}

fn failed(path: &Path, what: &dyn std::fmt::Display) -> SimError {
    SimError { path: path.display().to_string(), what: what.to_string() }
}

/// Reads and checks the file of `sim:<file>`.
pub fn read(path: &Path) -> Result<SimSetup, SimError> {
    let file = std::fs::File::open(path).map_err(|error| failed(path, &error))?;
    let mut text = String::new();
    file.take(MOST_BYTES + 1).read_to_string(&mut text).map_err(|error| failed(path, &error))?;
    if text.len() as u64 > MOST_BYTES {
        return Err(failed(path, &format!("longer than {MOST_BYTES} bytes; name fewer files")));
    }
    SimSetup::read(&text).map_err(|fault| failed(path, &fault))
}

/// Acts as the agent of the cue in the current directory. `phase` decides for archetypes that are not built in.
pub fn act(path: &Path, cue: &Cue, phase: &str) -> Result<(), SimError> {
    let setup = read(path)?;
    let mut prompt = Vec::new();
    std::io::stdin().lock().read_to_end(&mut prompt).map_err(|error| failed(path, &error))?;
    let work = work(&setup)?;
    let answer = sim::answer(
        &setup,
        SimCall {
            archetype: &cue.role,
            phase,
            cycle: cue.cycle,
            purpose: &cue.purpose,
            attempt: cue.attempt,
            work: &work,
            prompt: &String::from_utf8_lossy(&prompt),
        },
    );
    for (file, text) in &answer.write {
        write(file, text).map_err(|error| failed(Path::new(file), &error))?;
        commit(&format!("Change {file}"))?;
    }
    for file in &answer.remove {
        std::fs::remove_file(file).map_err(|error| failed(Path::new(file), &error))?;
        commit(&format!("Remove {file}"))?;
    }
    if !cue.usage_file.as_os_str().is_empty() {
        let usage = serde_json::json!({
            "input_tokens": answer.usage.input,
            "output_tokens": answer.usage.output,
            "cost_usd": answer.usage.dollars,
        });
        std::fs::write(&cue.usage_file, usage.to_string())
            .map_err(|error| failed(&cue.usage_file, &error))?;
    }
    std::io::stdout().lock().write_all(answer.text.as_bytes()).map_err(|error| failed(path, &error))
}

/// The files of both solutions that are in the working copy. A file that is not text is neither of them.
fn work(setup: &SimSetup) -> Result<BTreeMap<String, String>, SimError> {
    let mut work = BTreeMap::new();
    for file in setup.paths() {
        match std::fs::read(&file) {
            Ok(bytes) => drop(work.insert(file, String::from_utf8_lossy(&bytes).into_owned())),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            Err(error) => return Err(failed(Path::new(&file), &error)),
        }
    }
    Ok(work)
}

fn write(file: &str, text: &str) -> std::io::Result<()> {
    script::make_folder(file)?;
    std::fs::write(file, text)
}

fn commit(message: &str) -> Result<(), SimError> {
    script::commit(message).map_err(|error| SimError { path: "git".to_owned(), what: error.to_string() })
}
